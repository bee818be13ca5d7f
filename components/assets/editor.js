// What the box editor and the span editor share; this file stands before theirs in one module.
// Python holds the truth: the whole list goes there with a revision after every change.

const MOUNTED = new WeakMap();
const SHOWN_AT_ONCE = 12;
const MOST_UNDONE = 500;
const AHEAD = 5_000; // milliseconds: keys pressed this long before the editor is there still count
const MOST_WAITING = 10_000; // milliseconds
// No green: what is marked is wrong.
const HUES = [5, 32, 275, 205, 325, 180, 245, 55, 225];

function made(tag, className, parent) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  parent?.append(element);
  return element;
}

const isDrawing = () => document.querySelector('[data-testid="stApp"]')?.dataset.testScriptState === "running";
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

  /** The page's editor: letters count as soon as it is there, unless a field or a button has them. */
  attend() {
    if (this.elsewhere) return;
    // What a press elsewhere does, it does after what was done here.
    this.pressed = () => {
      this.pressedAt = performance.now();
      this.flush(true);
    };
    window.addEventListener("pointerdown", this.pressed, true);
    this.elsewhere = (event) => {
      const isSubmit = this.isSubmit(event);
      if (event.altKey) this.pressedAt = performance.now();
      if (isSubmit && !this.root.contains(event.target)) this.flush(true);
      const isLetter = event.key.length === 1 && !event.ctrlKey && !event.metaKey && event.key !== "?";
      const isOurs = this.hears(event.target) ? isLetter || isSubmit : isSubmit && this.root.contains(event.target);
      if (!isOurs || window.counterpointKeys?.isSaving) return;
      this.onKey(event);
      // Before the page's own shortcuts hear of it: a button would save once more.
      if (event.defaultPrevented) event.stopImmediatePropagation();
    };
    window.addEventListener("keydown", this.elsewhere, true);
    this.takeKeys();
  }

  /** Takes the keys that waited; the script that keeps them may come a moment after the editor. */
  takeKeys() {
    const ahead = window.counterpointKeys;
    if (!this.elsewhere) return;
    if (!ahead) return setTimeout(() => this.takeKeys(), 50);
    ahead.taker = this;
    if (this.saving !== undefined) return; // drawn again before the next item came
    const { keys, isSaving } = ahead;
    Object.assign(ahead, { keys: [], isSaving: false });
    const fresh = keys.filter((init) => isSaving || performance.now() - init.at < AHEAD);
    if (fresh.length < keys.length) this.say("Keys pressed long before this was here did nothing.");
    for (const init of fresh) {
      // One of them may save this item: the rest are meant for the next one.
      if (ahead.isSaving) ahead.keys.push(init);
      else this.onKey(new KeyboardEvent("keydown", init));
    }
  }

  /** From now on keys are meant for what comes next; `isOver` says whether it came. */
  hold(isSaving) {
    const ahead = window.counterpointKeys;
    if (!ahead || ahead.taker !== this) return;
    if (!isSaving) this.saving = undefined;
    ahead.isSaving = isSaving;
    ahead.opened = performance.now();
    if (isSaving) return;
    const lost = ahead.keys.length;
    ahead.keys = [];
    this.say(lost ? `Not saved; the ${lost} ${lost > 1 ? "keys" : "key"} pressed since did nothing.` : "Not saved.");
  }

  /** Whether letters pressed there are the editor's. */
  hears(target) {
    return target === document.body;
  }

  isSubmit({ key, ctrlKey, metaKey }) {
    return key === "Enter" && (ctrlKey || metaKey);
  }

  leave() {
    if (this.elsewhere) {
      window.removeEventListener("keydown", this.elsewhere, true);
      window.removeEventListener("pointerdown", this.pressed, true);
    }
    this.elsewhere = null;
    if (window.counterpointKeys?.taker === this) window.counterpointKeys.taker = null;
    this.flush(!this.root.isConnected); // Streamlit calls this before each redrawing too
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
    this.unsentAt = this.unsent ? this.unsentAt : performance.now();
    this.unsent = did;
    if (wait) this.timer = setTimeout(() => this.flush(), wait);
    else this.flush();
  }

  flush(isUrgent = false) {
    clearTimeout(this.timer);
    if (!this.unsent) return;
    // What is told while the page is still being drawn may find its place in it gone.
    if (!isUrgent && this.elsewhere && isDrawing() && performance.now() - this.unsentAt < MOST_WAITING) {
      this.timer = setTimeout(() => this.flush(), 50);
      return;
    }
    const did = this.unsent;
    this.unsent = null;
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
    if (key === "?" || (key === "Escape" && !this.keys.hidden)) return this.toggleKeys();
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

const HELD = [
  "state", "revision", "active", "saving", "saves", "isSaving", "wantsSave", "pressedAt", "unsent", "unsentAt", "done", "undone", "text", "places",
];
const LEFT = new Map(); // editors that were taken off the page, by their keys, and when

function mount(Kind, name, { data, parentElement, setStateValue }) {
  let editor = MOUNTED.get(parentElement);
  if (!editor) {
    editor = new Kind(parentElement.querySelector(name));
    MOUNTED.set(parentElement, editor);
    // While a page is still being drawn it may put the same editor up anew.
    const [left, at] = LEFT.get(data.key) ?? [];
    const isSaved = left?.saving !== undefined && !window.counterpointKeys?.isSaving;
    if (left && performance.now() - at < AHEAD && !isSaved) {
      for (const held of HELD) if (left[held] !== undefined) editor[held] = left[held];
    }
  }
  editor.take(data, (edit) => setStateValue("edit", edit));
  if (editor.unsent) editor.tell(editor.unsent);
  if (editor.wantsSave) editor.save();
  return () => {
    LEFT.set(data.key, [editor, performance.now()]);
    editor.leave();
  };
}

/** Draws a place in its source: its page's picture, or its text with the passage marked. */
function drawPlace(container, place, { buttons = [], isAsText = false, toggleText } = {}) {
  const head = made("div", "cp-st-place");
  Object.assign(made("span", "", head), { dir: "auto", textContent: place.words });
  head.append(...buttons);
  const parts = [head];
  if (place.how) parts.push(Object.assign(made("div", "cp-quiet"), { dir: "auto", textContent: place.how }));
  if (place.picture && toggleText) head.append(toggleText);
  const excerpt = made("div", "cp-st-excerpt");
  excerpt.dir = "auto";
  const around = (words) => Object.assign(made("span", "cp-around", excerpt), { textContent: words });
  around(place.before || "");
  const passage = made("mark", "cp-mark cp-mark-evidence", place.text ? excerpt : null); // empty it would be a tick
  passage.textContent = place.text;
  around(place.after || "");
  const coming = Object.assign(made("div", "cp-quiet cp-st-coming"), { textContent: "Opening the source…" });
  if (place.picture && !isAsText) {
    place = { ...place, isComing: true };
    const picture = made("img");
    picture.alt = place.text ? `${place.words}, with the passage boxed: ${place.text}` : place.words;
    picture.onload = () => {
      coming.remove();
      container.scrollTop = picture.offsetTop + (place.top || 0) * picture.offsetHeight - container.clientHeight / 3;
      // Sideways only as far as the passage's end needs, and never past its beginning.
      const at = (share) => picture.offsetLeft + (share || 0) * picture.offsetWidth;
      container.scrollLeft = Math.min(at(place.right) + 24 - container.clientWidth, at(place.left) - 24);
    };
    picture.onerror = () => { coming.textContent = "The page’s picture did not come; Text shows its words."; };
    picture.src = place.picture;
    parts.push(picture);
  } else if (excerpt.textContent) {
    parts.push(excerpt);
  }
  if (place.isComing) parts.splice(1, 0, coming);
  container.replaceChildren(...parts);
  container.scrollTop = excerpt.isConnected && place.text ? passage.offsetTop - container.clientHeight / 3 : 0;
}
