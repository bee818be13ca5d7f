export default function({ data }) {
  const wanted = `${data.cookie}=${data.value}`;
  if (document.cookie.split("; ").includes(wanted)) return;
  document.cookie = `${wanted}; path=/; max-age=31536000; samesite=strict`;
}
