let focused = 0;
let ahead = null;  // keys pressed after a shortcut, before its field is there; null: none awaited
const TEXT = "textarea, input";

function field(name) {
  return document.querySelector(`.st-key-${CSS.escape(name)}`)?.querySelector(TEXT);
}

function focusSoon(name, tries) {
  const found = field(name);
  if (found) {
    found.focus();
    found.scrollIntoView({ block: "nearest" });
    if (ahead) document.execCommand("insertText", false, ahead);
    ahead = null;
  } else if (tries > 0) {
    setTimeout(() => focusSoon(name, tries - 1), 50);
  }
}

export default function({ data, parentElement, setStateValue }) {
  const mine = (parentElement.__draft ??= { timer: 0 });
  mine.data = data;
  mine.tell = setStateValue;
  if (data.focus && data.stamp > focused) {
    focused = data.stamp;
    focusSoon(data.focus, 20);
  }
  const tell = () => {
    const texts = {};
    for (const [name, key] of Object.entries(mine.data.fields)) {
      const found = field(key);
      if (found) texts[name] = found.value;
    }
    mine.tell("typed", texts);
  };
  if (!mine.typing) {
    mine.typing = (event) => {
      const fields = Object.values(mine.data.fields);
      if (!fields.some((key) => field(key) === event.target)) return;
      clearTimeout(mine.timer);
      mine.timer = setTimeout(() => { mine.timer = 0; tell(); }, mine.data.pause);
    };
    mine.sending = (event) => {  // With Ctrl+Enter the field itself tells the server.
      if (!mine.timer || !(event.ctrlKey || event.metaKey || event.altKey)) return;
      clearTimeout(mine.timer);
      mine.timer = 0;
      // Another shortcut may lead away, with the field and what was typed last.
      if (event.key !== "Enter") tell();
    };
    mine.leaving = (event) => {  // A field that is left tells the server itself. Telling it twice,
      // just as a link opens another page, would leave that page empty.
      if (event.target.matches?.(TEXT)) clearTimeout(mine.timer);
    };
    mine.unloading = () => {  // Told any later, as at `pagehide`, it would not be sent.
      if (mine.timer) tell();
    };
    mine.hurrying = (event) => {
      const modified = event.altKey || event.ctrlKey || event.metaKey;
      if (event.altKey && mine.data.shortcuts.includes(event.key)) {
        ahead = "";
        clearTimeout(mine.patience);
        mine.patience = setTimeout(() => { ahead = null; }, mine.data.patience);
      } else if (ahead !== null && !modified && event.key.length === 1) {
        if (event.target.matches?.(TEXT)) return;
        ahead += event.key;
        event.preventDefault();
        event.stopPropagation();
      }
    };
    window.addEventListener("beforeunload", mine.unloading);
    document.addEventListener("keydown", mine.hurrying, true);
    document.addEventListener("input", mine.typing, true);
    document.addEventListener("keydown", mine.sending, true);
    document.addEventListener("focusout", mine.leaving, true);
    // What was typed before anybody listened is told too.
    if (Object.values(data.fields).some((key) => field(key) === document.activeElement)) {
      mine.timer = setTimeout(tell, data.pause);
    }
  }
  return () => {
    clearTimeout(mine.timer);
    window.removeEventListener("beforeunload", mine.unloading);
    document.removeEventListener("input", mine.typing, true);
    document.removeEventListener("keydown", mine.sending, true);
    document.removeEventListener("focusout", mine.leaving, true);
    document.removeEventListener("keydown", mine.hurrying, true);
    mine.typing = null;
  };
}
