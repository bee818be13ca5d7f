export default function({ data }) {
  const wanted = `${data.cookie}=${data.value}`;
  if (data.value && !document.cookie.split("; ").includes(wanted))
    document.cookie = `${wanted}; path=/; max-age=31536000; samesite=strict`;
  const address = new URL(location.href);
  if (!data.project || address.searchParams.get("project") === data.project) return;
  address.searchParams.set("project", data.project);
  history.replaceState(history.state, "", address);
}
