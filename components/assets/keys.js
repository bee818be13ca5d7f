export default function({ data, parentElement }) {
  const button = parentElement.querySelector(".cp-keys");
  const list = parentElement.querySelector(".cp-keys-list");
  list.replaceChildren(...data.keys.flatMap(([keys, words]) => {
    const term = document.createElement("dt"), meaning = document.createElement("dd");
    term.textContent = keys;
    meaning.textContent = words;
    return [term, meaning];
  }));
  const main = document.querySelector('[data-testid="stMain"]');
  if (parentElement.__place !== undefined && parentElement.__place !== data.place) {
    main?.scrollTo(0, 0);  // another item begins at its top
    list.hidden = true;
  }
  parentElement.__place = data.place;
  const toggle = () => {
    list.hidden = !list.hidden;
    button.setAttribute("aria-expanded", String(!list.hidden));
    if (!list.hidden) button.scrollIntoView({ block: "nearest" });
  };
  const pressed = (event) => {
    const fields = "input, textarea, select, [contenteditable], .cp-se, .cp-be";
    if (event.key !== "?" || event.defaultPrevented || event.target.closest?.(fields)) return;
    event.preventDefault();
    toggle();
  };
  const escaped = (event) => {  // wherever the focus is; nothing else is closed with it
    if (event.key !== "Escape" || list.hidden) return;
    event.stopImmediatePropagation();
    toggle();
  };
  button.onclick = toggle;
  document.addEventListener("keydown", pressed);
  window.addEventListener("keydown", escaped, true);
  return () => {
    document.removeEventListener("keydown", pressed);
    window.removeEventListener("keydown", escaped, true);
  };
}
