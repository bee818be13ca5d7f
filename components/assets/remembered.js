// The menu's own links name no project: a new tab that one of them opens would be in another one.
// Streamlit also takes a click with Ctrl, Shift or Cmd for a plain one.
if (window.counterpointProject === undefined) {
  const findLink = (event) => event.target.closest?.('[data-testid="stSidebarNav"] a, [data-testid="stPageLink"] a');
  const addProject = (event) => {
    const link = event.target.closest?.('[data-testid="stSidebarNav"] a'), project = window.counterpointProject;
    if (link && project) link.href = `${link.href.split("?")[0]}?project=${project}`;
    const choice = event.target.closest?.(".st-key-project-choice");
    if (choice) choice.title = choice.querySelector("input").value;
  };
  // Also on press: a redraw under a resting pointer takes the project away again.
  for (const kind of ["pointerover", "pointerdown", "focusin"]) window.addEventListener(kind, addProject, true);
  window.addEventListener("click", (event) => {
    if ((event.ctrlKey || event.shiftKey || event.metaKey) && findLink(event)) event.stopImmediatePropagation();
  }, true);
  // For `st.switch_page` Streamlit first adds the new query to the address of the page that is left.
  // Back would lead to that address, so it is replaced by the page's own.
  const push = history.pushState;
  let addedQuery = "";
  history.pushState = (state, title, url) => {
    const target = new URL(url, location.href), isPage = target.pathname !== location.pathname;
    const isSecond = isPage && addedQuery && target.search === addedQuery;
    (isSecond ? history.replaceState : push).call(history, state, title, url);
    addedQuery = isPage ? "" : target.search;
  };
}

export default function({ data }) {
  window.counterpointProject = data.project;
  const wanted = `${data.cookie}=${data.value}`;
  if (data.value && !document.cookie.split("; ").includes(wanted))
    document.cookie = `${wanted}; path=/; max-age=31536000; samesite=strict`;
  const address = new URL(location.href);
  if (!data.project || address.searchParams.get("project") === data.project) return;
  address.searchParams.set("project", data.project);
  history.replaceState(history.state, "", address);
}
