// What the box editor and the span editor share; this file stands before theirs in one module.
// Python holds the truth: the whole list goes there with a revision after every change.

const MOUNTED = new WeakMap();
const SHOWN_AT_ONCE = 12;
const MOST_UNDONE = 500;
// No green: what is marked is wrong.
const HUES = [5, 32, 275, 205, 325, 180, 245, 55, 225];

function made(tag, className, parent) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  parent?.append(element);
  return element;
}

const newId = () => (crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`);

class Editor {
  /** `kind` begins the names of the classes; `items` is the name of the state's list. */
  constructor(root, kind, items) {
    this.root = root;
    this.items = items;
    this.part = (name) => root.querySelector(`.cp-${kind}-${name}`);
    for (const name of ["bar", "said", "list", "keys"]) this[name] = this.part(name);
    this.revision = -1;
  }

  item(id = this.active) {
    return this.state?.[this.items].find((one) => one.id === id);
  }

  replaced(id, change) {
    const items = this.state[this.items].map((one) => (one.id === id ? { ...one, ...change } : one));
    return { ...this.state, [this.items]: items };
  }

  category(item) {
    return this.data.categories.find((other) => other.id === item.category)?.words ?? item.category;
  }

  hue(category) {
    const at = this.data.categories.findIndex((other) => other.id === category);
    return HUES[Math.max(0, at) % HUES.length];
  }

  // -- changes ---------------------------------------------------------------------------------

  /** Puts the new state in place of the old, which undo brings back unless more is to follow. */
  change(state, did, wait = 0) {
    if (this.data.locked) return;
    if (!wait) this.remember();
    this.typing = null;
    this.undone = [];
    this.put(state, did, wait);
  }

  remember() {
    this.done.push(this.state);
    if (this.done.length > MOST_UNDONE) this.done.shift();
  }

  put(state, did, wait = 0) {
    this.state = state;
    if (!this.item()) this.active = null;
    this.revision += 1;
    this.draw();
    this.tell(did, wait);
  }

  /** Sends everything, after a while where more is likely to follow. */
  tell(did, wait) {
    clearTimeout(this.timer);
    this.untold = did;
    if (wait) this.timer = setTimeout(() => this.flush(), wait);
    else this.flush();
  }

  flush() {
    clearTimeout(this.timer);
    if (!this.untold) return;
    const did = this.untold;
    this.untold = null;
    this.send({ revision: this.revision, ...this.forPython(), did });
  }

  undo() {
    if (!this.done.length || this.data.locked) return;
    this.typing = null;
    this.undone.push(this.state);
    this.put(this.done.pop(), "undo");
    this.say("Undone.");
  }

  redo() {
    if (!this.undone.length || this.data.locked) return;
    this.typing = null;
    this.remember();
    this.put(this.undone.pop(), "redo");
    this.say("Done again.");
  }

  // -- choosing --------------------------------------------------------------------------------

  choose(id) {
    this.active = id;
    this.draw();
    if (id) this.say(this.describe(this.item()));
  }

  /** Where several lie, one after the other, the smallest first. */
  chooseAmong(here, size) {
    here.sort((a, b) => size(a) - size(b));
    const at = here.findIndex((one) => one.id === this.active);
    this.choose(here.length ? here[(at + 1) % here.length].id : null);
  }

  cycle(step) {
    const items = this.ordered();
    if (!items.length) return;
    const at = items.findIndex((one) => one.id === this.active);
    const next = at < 0 ? (step > 0 ? 0 : items.length - 1) : (at + step + items.length) % items.length;
    this.choose(items[next].id);
    this.show();
  }

  // -- the keyboard ----------------------------------------------------------------------------

  onKey(event) {
    if (event.isComposing || this.command(event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Does what the key says; false where it says nothing here. */
  command(event) {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    const isCommand = ctrlKey || metaKey;
    const letter = isCommand && !altKey ? key.toLowerCase() : "";
    if (letter === "z") return shiftKey ? this.redo() : this.undo();
    if (letter === "y") return this.redo();
    if (key.startsWith("Arrow")) return this.arrow(event);
    if (isCommand || altKey) return false;
    if (/^[1-9]$/.test(key)) return this.label(Number(key) - 1);
    if (key === "Backspace" || key === "Delete") return this.active ? this.remove() : false;
    if (key === "?") return this.toggleKeys();
    return this.plain[key] ? this.plain[key]() : false;
  }

  toggleKeys() {
    this.keys.hidden = !this.keys.hidden;
  }

  // -- drawing ---------------------------------------------------------------------------------

  say(words) {
    this.said.textContent = words;
  }

  button(words, run, { pressed, hue, off, name, always } = {}) {
    const button = made("button");
    button.type = "button";
    button.textContent = words;
    button.disabled = Boolean(off) || (Boolean(this.data.locked) && !always);
    if (name) button.setAttribute("aria-label", name);
    if (pressed !== undefined) button.setAttribute("aria-pressed", String(pressed));
    if (hue !== undefined) button.style.setProperty("--cp-hue", String(hue));
    button.onclick = run;
    return button;
  }

  historyButtons() {
    return [
      this.button("↶", () => this.undo(), { off: !this.done.length, name: "Undo" }),
      this.button("↷", () => this.redo(), { off: !this.undone.length, name: "Redo" }),
    ];
  }

  keysButton() {
    return this.button("?", () => this.toggleKeys(), { name: "Keys", always: true });
  }

  shown(items) {
    return items.slice(0, this.isLong ? items.length : SHOWN_AT_ONCE);
  }

  /** The line below those of the list that are shown. */
  moreLine(count, options) {
    const line = made("li");
    line.append(this.button(`${count} more`, () => {
      this.isLong = true;
      this.drawList();
    }, options));
    return line;
  }
}

function mount(Kind, name, { data, parentElement, setStateValue }) {
  let editor = MOUNTED.get(parentElement);
  if (!editor) {
    editor = new Kind(parentElement.querySelector(name));
    MOUNTED.set(parentElement, editor);
  }
  editor.take(data, (edit) => setStateValue("edit", edit));
  return () => editor.flush();
}
