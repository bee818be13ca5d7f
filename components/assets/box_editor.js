// The box editor in the browser: regions of an image, by pointer or keyboard; places are shares.
// Python holds the truth: the whole list of boxes goes there with a revision after every change.

const MOUNTED = new WeakMap();
const SHOWN_AT_ONCE = 12;
const MOST_UNDONE = 500;
const TYPING_MS = 400;
const REPEAT_MS = 150;
const SLOP = { mouse: 3, pen: 4, touch: 8 }; // pixels that a click may wander
const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];
const SMALL = 36; // pixels: a box of less has its handles outside, so that it can still be moved
const LABEL = 18; // pixels
const ZOOMS = [1, 1.5, 2, 3, 4];
const STEP = 0.01;
const NEW = 0.25; // of what is seen
// No green: what is marked is wrong.
const HUES = [5, 32, 275, 205, 325, 180, 245, 55, 225];

const clipped = (share, low = 0, high = 1) => Math.min(Math.max(share, low), high);
const rounded = (share) => Math.round(share * 1e6) / 1e6;

function made(tag, className, parent) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  parent?.append(element);
  return element;
}

class Editor {
  constructor(root) {
    this.root = root;
    this.bar = root.querySelector(".cp-be-bar");
    this.frame = root.querySelector(".cp-be-frame");
    this.stage = root.querySelector(".cp-be-stage");
    this.image = root.querySelector(".cp-be-image");
    this.over = root.querySelector(".cp-be-boxes");
    this.said = root.querySelector(".cp-be-said");
    this.keys = root.querySelector(".cp-be-keys");
    this.list = root.querySelector(".cp-be-list");
    this.address = null;
    this.revision = -1;
    this.pointers = new Map();
    this.listen();
  }

  /** Takes what Python says; what was done here since then stays. */
  take(data, send) {
    this.send = send;
    const { categories } = this.data ?? {};
    this.data = data;
    if (JSON.stringify(categories) === JSON.stringify(data.categories)) data.categories = categories;
    if (this.address !== data.address) this.begin(data);
    if (data.revision >= this.revision) {
      this.revision = data.revision;
      this.state = { boxes: data.boxes.map((box) => this.known(box)) };
      if (!this.box()) this.active = null;
    }
    this.draw();
  }

  /** The box that is held already where nothing differs, so that nothing is drawn again. */
  known(box) {
    const held = this.box(box.id);
    return held && held.category === box.category && held.comment === box.comment && this.isSame(held.box, box.box)
      ? held
      : box;
  }

  /** Another image: nothing of the one before stays. */
  begin(data) {
    clearTimeout(this.timer);
    this.timer = null;
    this.address = data.address;
    this.revision = -1;
    this.state = { boxes: [] };
    this.untold = null;
    this.done = [];
    this.undone = [];
    this.active = null;
    this.drag = null;
    this.typing = null;
    this.brush ??= 0;
    this.zoom = 1;
    this.nodes = new Map();
    this.rows = new Map();
    this.over.replaceChildren();
    this.list.replaceChildren();
    this.stage.style.setProperty("--cp-width", String(data.width));
    this.stage.style.setProperty("--cp-height", String(data.height));
    this.stage.style.setProperty("--cp-zoom", "1");
    this.image.src = data.address;
    this.image.alt = data.name;
    this.stage.setAttribute("aria-label", `${data.name}: press n for a new box, ? for all keys`);
  }

  // -- changes ---------------------------------------------------------------------------------

  /** Puts the new state in place of the old, which undo brings back, and tells Python. */
  change(state, did, isRepeated = false) {
    if (this.data.locked) return;
    if (!isRepeated) this.remember();
    this.typing = null;
    this.undone = [];
    this.put(state, did, isRepeated ? REPEAT_MS : 0);
  }

  remember() {
    this.done.push(this.state);
    if (this.done.length > MOST_UNDONE) this.done.shift();
  }

  put(state, did, wait = 0) {
    this.state = state;
    if (!this.box()) this.active = null;
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
    this.send({ revision: this.revision, boxes: this.state.boxes, did });
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

  box(id = this.active) {
    return this.state?.boxes.find((box) => box.id === id);
  }

  replaced(id, change) {
    return { boxes: this.state.boxes.map((box) => (box.id === id ? { ...box, ...change } : box)) };
  }

  /** A new box of the category in hand; it is the chosen one then. */
  add(place) {
    if (this.state.boxes.length >= this.data.mostBoxes) {
      this.say(`${this.data.mostBoxes} boxes are the most that an image can have.`);
      this.draw();
      return;
    }
    const id = crypto.randomUUID ? crypto.randomUUID() : `${Date.now()}-${Math.random()}`;
    const category = this.data.categories[this.brush] || this.data.categories[0];
    this.active = id;
    const box = { id, box: place, category: category.id, comment: "" };
    this.change({ boxes: [...this.state.boxes, box] }, "draw");
    this.say(`${this.describe(this.box())} Enter: write a comment.`);
  }

  /** A new box in the middle of what is seen of the image, beside those that lie there already. */
  addInMiddle() {
    if (this.data.locked) return;
    const [seen, whole] = [this.frame.getBoundingClientRect(), this.stage.getBoundingClientRect()];
    const part = (low, high, from, length) => [
      clipped((low - from) / length),
      clipped((high - from) / length),
    ];
    const [left, right] = part(seen.left, seen.right, whole.left, whole.width);
    const [top, bottom] = part(seen.top, seen.bottom, whole.top, whole.height);
    const [width, height] = [(right - left) * NEW, (bottom - top) * NEW];
    const base = {
      left: (left + right - width) / 2, top: (top + bottom - height) / 2,
      right: (left + right + width) / 2, bottom: (top + bottom + height) / 2,
    };
    const isTaken = (place) => this.state.boxes.some(({ box }) =>
      Math.abs(box.left - place.left) < 1e-3 && Math.abs(box.top - place.top) < 1e-3);
    let place = this.fitted(base);
    for (let k = 1; k < 20 && isTaken(place); k++) place = this.moved(base, (k * width) / 5, (k * height) / 5);
    this.add(place);
    this.show();
  }

  /** Gives the chosen box this category, and the next new one too. */
  label(number, id = this.active) {
    const category = this.data.categories[number];
    if (!category || this.data.locked) return;
    this.brush = number;
    if (this.box(id)) {
      this.change(this.replaced(id, { category: category.id }), "category");
      this.say(`${this.title(id)} is now ${category.words}.`);
    } else {
      this.drawBar();
      this.say(`The next box will be ${category.words}.`);
    }
  }

  remove(id = this.active) {
    const at = this.state.boxes.findIndex((box) => box.id === id);
    if (at < 0 || this.data.locked) return;
    const words = this.title(id);
    const boxes = this.state.boxes.filter((box) => box.id !== id);
    this.change({ boxes }, "remove");
    this.say(`${words} is taken away; u brings it back.`);
  }

  /** Keeps what is typed at once; one undo takes all of it that was typed in one go. */
  comment(id, words) {
    if (this.data.locked) return;
    if (this.typing !== id) {
      this.remember();
      this.undone = [];
      this.typing = id;
    }
    this.state = this.replaced(id, { comment: words.toWellFormed?.() ?? words });
    this.revision += 1;
    this.drawOver();
    this.tell("comment", TYPING_MS);
  }

  // -- places ----------------------------------------------------------------------------------

  /** Within the image, of at least the smallest size, in millionths. */
  fitted(place) {
    const side = (low, high) => {
      const [a, b] = [rounded(clipped(Math.min(low, high))), rounded(clipped(Math.max(low, high)))];
      const least = this.data.smallest;
      if (b - a >= least) return [a, b];
      return a + least <= 1 ? [a, rounded(a + least)] : [rounded(1 - least), 1];
    };
    const [left, right] = side(place.left, place.right);
    const [top, bottom] = side(place.top, place.bottom);
    return { left, top, right, bottom };
  }

  moved(place, across, down) {
    const dx = clipped(across, -place.left, 1 - place.right);
    const dy = clipped(down, -place.top, 1 - place.bottom);
    return this.fitted({
      left: place.left + dx, top: place.top + dy, right: place.right + dx, bottom: place.bottom + dy,
    });
  }

  /** With the sides that `which` names (n, e, s, w) moved, none of them past its opposite. */
  resized(place, which, across, down) {
    const least = this.data.smallest;
    const next = { ...place };
    if (which.includes("w")) next.left = clipped(place.left + across, 0, place.right - least);
    if (which.includes("e")) next.right = clipped(place.right + across, place.left + least, 1);
    if (which.includes("n")) next.top = clipped(place.top + down, 0, place.bottom - least);
    if (which.includes("s")) next.bottom = clipped(place.bottom + down, place.top + least, 1);
    return this.fitted(next);
  }

  isSame(a, b) {
    return a.left === b.left && a.top === b.top && a.right === b.right && a.bottom === b.bottom;
  }

  /** Where on the image a point of the page lies; beyond its edges below 0 or above 1. */
  shareAt(x, y) {
    const whole = this.stage.getBoundingClientRect();
    return [(x - whole.left) / whole.width, (y - whole.top) / whole.height];
  }

  // -- choosing --------------------------------------------------------------------------------

  /** Chooses the box at this place; where several lie, one after the other, the smallest first. */
  chooseAt([x, y]) {
    const area = ({ box }) => (box.right - box.left) * (box.bottom - box.top);
    const here = this.state.boxes
      .filter(({ box }) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom)
      .sort((a, b) => area(a) - area(b));
    const at = here.findIndex((box) => box.id === this.active);
    this.choose(here.length ? here[(at + 1) % here.length].id : null);
  }

  choose(id) {
    this.active = id;
    this.draw();
    if (id) this.say(this.describe(this.box()));
    else this.say("");
  }

  cycle(step) {
    const { boxes } = this.state;
    if (!boxes.length) return;
    const at = boxes.findIndex((box) => box.id === this.active);
    const next = at < 0 ? (step > 0 ? 0 : boxes.length - 1) : (at + step + boxes.length) % boxes.length;
    this.choose(boxes[next].id);
    this.show();
  }

  show() {
    this.nodes.get(this.active)?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  number(id) {
    return this.state.boxes.findIndex((box) => box.id === id) + 1;
  }

  title(id) {
    return `Box ${this.number(id)}`;
  }

  category(box) {
    return this.data.categories.find((other) => other.id === box.category)?.words ?? box.category;
  }

  describe(box) {
    const percent = (share) => Math.round(share * 100);
    const { left, top, right, bottom } = box.box;
    const place = `${percent(left)} to ${percent(right)}% across, ${percent(top)} to ${percent(bottom)}% down`;
    const comment = box.comment.trim() ? ` “${box.comment.trim()}”` : "";
    return `${this.title(box.id)}: ${this.category(box)}, ${place}.${comment}`;
  }

  // -- zoom ------------------------------------------------------------------------------------

  /** Shows the image `zoom` times as large; what lies at this point of the page stays there. */
  zoomTo(zoom, x, y) {
    const next = clipped(zoom, 1, ZOOMS[ZOOMS.length - 1]);
    if (next === this.zoom) return;
    const [across, down] = this.shareAt(x, y);
    this.zoom = next;
    this.stage.style.setProperty("--cp-zoom", String(next));
    const whole = this.stage.getBoundingClientRect();
    this.frame.scrollBy(whole.left + across * whole.width - x, whole.top + down * whole.height - y);
    this.draw();
  }

  /** The next size up or down, around the chosen box or else the middle. */
  zoomBy(step) {
    const sizes = step > 0 ? ZOOMS.filter((z) => z > this.zoom + 0.01) : ZOOMS.filter((z) => z < this.zoom - 0.01);
    if (!sizes.length) return;
    const seen = (this.nodes.get(this.active) ?? this.frame).getBoundingClientRect();
    this.zoomTo(step > 0 ? sizes[0] : sizes[sizes.length - 1], seen.left + seen.width / 2, seen.top + seen.height / 2);
    if (this.active) this.show();
    this.say(`${Math.round(this.zoom * 100)}%`);
  }

  // -- the keyboard ----------------------------------------------------------------------------

  onKey(event) {
    if (event.isComposing || event.target !== this.stage) return;
    if (this.command(event) === false) return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** Does what the key says; false where it says nothing here. */
  command(event) {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    // With AltGr, which some keyboards need for them, Ctrl and Alt count as held.
    if (key === "]") return this.cycle(1);
    if (key === "[") return this.cycle(-1);
    const isCommand = ctrlKey || metaKey;
    if (isCommand && !altKey && key.toLowerCase() === "z") return shiftKey ? this.redo() : this.undo();
    if (isCommand && !altKey && key.toLowerCase() === "y") return this.redo();
    if (key.startsWith("Arrow")) return altKey || !this.box() ? false : this.arrow(event);
    if (isCommand || altKey) return false;
    if (/^[1-9]$/.test(key)) return this.label(Number(key) - 1);
    if (key === "Escape") return this.escape();
    if (key === "Enter") return this.openComment();
    if (key === "Backspace" || key === "Delete") return this.box() ? this.remove() : false;
    const plain = {
      n: () => this.addInMiddle(), u: () => this.undo(), U: () => this.redo(),
      "+": () => this.zoomBy(1), "=": () => this.zoomBy(1), "-": () => this.zoomBy(-1),
      "?": () => this.toggleKeys(),
    };
    return plain[key] ? plain[key]() : false;
  }

  arrow({ key, ctrlKey, metaKey, shiftKey, repeat }) {
    const box = this.box();
    const isSmall = ctrlKey || metaKey;
    const step = (side) => (isSmall ? 1 / side : STEP / this.zoom);
    const across = { ArrowLeft: -1, ArrowRight: 1 }[key] ?? 0;
    const down = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    const [dx, dy] = [across * step(this.data.width), down * step(this.data.height)];
    const place = shiftKey
      ? this.resized(box.box, across ? "e" : "s", dx, dy)
      : this.moved(box.box, dx, dy);
    if (this.isSame(place, box.box)) return;
    const did = shiftKey ? "resize" : "move";
    // A key that is held is one change.
    this.change(this.replaced(box.id, { box: place }), did, repeat && this.held === did);
    this.held = did;
    this.say(this.describe(this.box()));
    this.show();
  }

  escape() {
    if (this.drag) return this.cancel();
    if (!this.active) return false;
    return this.choose(null);
  }

  openComment() {
    if (!this.box()) {
      this.say("Choose a box first, or press n for a new one.");
      return;
    }
    this.rows.get(this.active)?.area.focus();
  }

  toggleKeys() {
    this.keys.hidden = !this.keys.hidden;
  }

  // -- the pointer -----------------------------------------------------------------------------

  onDown(event) {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    event.preventDefault();
    this.stage.focus({ preventScroll: true });
    this.stage.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (this.pointers.size > 1) {
      this.cancel();
      this.panned = this.middle();
      return;
    }
    const at = this.shareAt(event.clientX, event.clientY);
    const { which } = event.target.dataset;
    const box = this.box();
    const isWithin = event.target.closest(".cp-be-active") !== null;
    const kind = this.data.locked ? "look" : which ? "resize" : isWithin && !event.shiftKey ? "move" : "draw";
    const slop = SLOP[event.pointerType] ?? SLOP.mouse;
    this.drag = { kind, which, at, x: event.clientX, y: event.clientY, slop, id: box?.id, from: box?.box };
  }

  onMove(event) {
    if (!this.pointers.has(event.pointerId)) return;
    this.pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (this.panned) {
      const [x, y] = this.middle();
      this.frame.scrollBy(this.panned[0] - x, this.panned[1] - y);
      this.panned = [x, y];
      return;
    }
    const { drag } = this;
    if (!drag || drag.kind === "look") return;
    if (!drag.isMoved && Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < drag.slop) return;
    drag.isMoved = true;
    this.follow(event);
    drag.place = this.dragged(drag, this.shareAt(event.clientX, event.clientY));
    this.drawOver();
  }

  /** Where the dragged box is by now. */
  dragged({ kind, which, at, from }, [x, y]) {
    const [across, down] = [x - at[0], y - at[1]];
    if (kind === "move") return this.moved(from, across, down);
    if (kind === "resize") return this.resized(from, which, across, down);
    const side = (a, b) => [clipped(Math.min(a, b)), clipped(Math.max(a, b))].map(rounded);
    const [left, right] = side(at[0], x);
    const [top, bottom] = side(at[1], y);
    return { left, top, right, bottom };
  }

  /** Scrolls after a pointer that is dragged out of the frame. */
  follow({ clientX, clientY }) {
    const seen = this.frame.getBoundingClientRect();
    const beyond = (at, low, high) => (at > high ? at - high : at < low ? at - low : 0);
    const [dx, dy] = [beyond(clientX, seen.left, seen.right), beyond(clientY, seen.top, seen.bottom)];
    if (dx || dy) this.frame.scrollBy(clipped(dx, -20, 20), clipped(dy, -20, 20));
  }

  onUp(event) {
    this.pointers.delete(event.pointerId);
    if (this.panned) {
      this.panned = this.pointers.size ? this.middle() : null;
      return;
    }
    const { drag } = this;
    this.drag = null;
    if (!drag) return;
    if (!drag.isMoved) this.chooseAt(drag.at);
    else if (drag.kind === "draw") this.finish(drag.place);
    else if (this.box(drag.id) && !this.isSame(drag.place, drag.from)) {
      this.change(this.replaced(drag.id, { box: drag.place }), drag.kind);
      this.say(this.describe(this.box()));
    } else this.draw();
  }

  finish(place) {
    const { smallest } = this.data;
    if (place.right - place.left >= smallest && place.bottom - place.top >= smallest) {
      this.add(place);
      return;
    }
    this.draw();
    this.say("That is too small for a box: make the image larger with + and draw again.");
  }

  cancel() {
    this.drag = null;
    this.draw();
  }

  middle() {
    const points = [...this.pointers.values()];
    const mean = (k) => points.reduce((sum, point) => sum + point[k], 0) / points.length;
    return [mean(0), mean(1)];
  }

  // -- drawing ---------------------------------------------------------------------------------

  say(words) {
    this.said.textContent = words;
  }

  draw() {
    this.root.classList.toggle("cp-be-locked", Boolean(this.data.locked));
    this.drawOver();
    this.drawBar();
    this.drawList();
  }

  /** The boxes over the image; only those are touched that changed. */
  drawOver() {
    const shown = new Map();
    const { drag } = this;
    const isDrawn = drag?.isMoved && drag.kind === "draw";
    const whole = this.stage.getBoundingClientRect();
    this.state.boxes.forEach((box, i) => {
      const isDragged = drag?.isMoved && !isDrawn && drag.id === box.id;
      const place = isDragged ? drag.place : box.box;
      const node = this.nodes.get(box.id) ?? this.newNode(box.id);
      const isActive = box.id === this.active;
      const isSmall = Math.min((place.right - place.left) * whole.width, (place.bottom - place.top) * whole.height) < SMALL;
      // A label has its room above the box, or else within it.
      const isInside = place.top * whole.height < LABEL;
      const now = [box, place, i, isActive, isActive && isSmall, isInside, this.data.categories, this.data.locked];
      if (!node.now || now.some((value, k) => value !== node.now[k])) this.drawNode(node, now);
      shown.set(box.id, node);
    });
    for (const [id, node] of this.nodes) if (!shown.has(id)) node.remove();
    this.nodes = shown;
    this.drawNew(isDrawn ? drag.place : null);
  }

  newNode(id) {
    const node = made("div", "cp-be-box", this.over);
    node.setAttribute("role", "img");
    node.dataset.id = id;
    node.label = made("span", "cp-be-label", node);
    return node;
  }

  drawNode(node, now) {
    const [box, place, i, isActive, isSmall, isInside] = now;
    node.now = now;
    this.placeNode(node, place);
    node.style.setProperty("--cp-hue", String(this.hue(box.category)));
    node.classList.toggle("cp-be-active", isActive);
    node.classList.toggle("cp-be-small", isSmall);
    node.classList.toggle("cp-be-inside", isInside);
    node.classList.toggle("cp-be-right", place.left > 0.7);
    node.label.textContent = `${i + 1} ${this.category(box)}`;
    const words = this.describe(box);
    node.setAttribute("aria-label", words);
    node.title = words;
    const has = node.querySelector(".cp-be-handle") !== null;
    const wants = isActive && !this.data.locked;
    if (wants && !has) {
      for (const which of HANDLES) made("span", "cp-be-handle", node).dataset.which = which;
    } else if (!wants && has) {
      for (const handle of node.querySelectorAll(".cp-be-handle")) handle.remove();
    }
  }

  placeNode(node, { left, top, right, bottom }) {
    Object.assign(node.style, {
      left: `${left * 100}%`, top: `${top * 100}%`,
      width: `${(right - left) * 100}%`, height: `${(bottom - top) * 100}%`,
    });
  }

  /** The box that is being drawn. */
  drawNew(place) {
    if (!place) {
      this.fresh?.remove();
      this.fresh = null;
      return;
    }
    this.fresh ??= made("div", "cp-be-box cp-be-new", this.over);
    const category = this.data.categories[this.brush] || this.data.categories[0];
    this.fresh.style.setProperty("--cp-hue", String(this.hue(category.id)));
    this.placeNode(this.fresh, place);
  }

  hue(category) {
    const at = this.data.categories.findIndex((other) => other.id === category);
    return HUES[Math.max(0, at) % HUES.length];
  }

  drawBar() {
    const box = this.box();
    const buttons = this.data.categories.map((category, i) =>
      this.button(i < 9 ? `${i + 1} ${category.words}` : category.words, () => this.label(i), {
        pressed: box ? box.category === category.id : i === this.brush,
        hue: this.hue(category.id),
      }),
    );
    buttons.push(this.button("New box (n)", () => this.addInMiddle(), {}));
    if (box) buttons.push(this.button("Remove ⌫", () => this.remove(), {}));
    buttons.push(this.button("↶", () => this.undo(), { off: !this.done.length, name: "Undo" }));
    buttons.push(this.button("↷", () => this.redo(), { off: !this.undone.length, name: "Redo" }));
    const zoom = made("span", "cp-be-zoom");
    const last = ZOOMS[ZOOMS.length - 1];
    const size = made("output");
    size.textContent = `${Math.round(this.zoom * 100)}%`;
    zoom.append(
      this.button("−", () => this.zoomBy(-1), { off: this.zoom <= 1, name: "Smaller", always: true }),
      size,
      this.button("+", () => this.zoomBy(1), { off: this.zoom >= last, name: "Larger", always: true }),
      this.button("?", () => this.toggleKeys(), { name: "Keys", always: true }),
    );
    const name = (button) => button?.getAttribute("aria-label") || button?.textContent;
    const had = this.bar.contains(document.activeElement) ? name(document.activeElement) : null;
    this.bar.replaceChildren(...buttons, zoom);
    if (had === null) return;
    const same = [...this.bar.querySelectorAll("button:enabled")].find((button) => name(button) === had);
    (same || this.stage).focus({ preventScroll: true });
  }

  button(words, run, { pressed, hue, off, name, always }) {
    const button = made("button");
    button.type = "button";
    button.textContent = words;
    button.disabled = Boolean(off) || (Boolean(this.data.locked) && !always);
    if (name) {
      button.setAttribute("aria-label", name);
      button.title = name;
    }
    if (pressed !== undefined) button.setAttribute("aria-pressed", String(pressed));
    if (hue !== undefined) button.style.setProperty("--cp-hue", String(hue));
    button.onclick = run;
    return button;
  }

  /** A row for each box: what it is without being seen, its category, its comment. */
  drawList() {
    const { boxes } = this.state;
    if (this.active && this.number(this.active) > SHOWN_AT_ONCE) this.isLong = true;
    const shown = boxes.slice(0, this.isLong ? boxes.length : SHOWN_AT_ONCE);
    const ids = new Set(shown.map((box) => box.id));
    for (const [id, row] of this.rows) {
      if (ids.has(id)) continue;
      if (row.item.contains(document.activeElement)) this.stage.focus({ preventScroll: true });
      row.item.remove();
      this.rows.delete(id);
    }
    this.more?.remove();
    shown.forEach((box, i) => {
      const row = this.rows.get(box.id) ?? this.newRow(box.id);
      // What stands in its place is left there: moving it would take the focus from it.
      if (this.list.children[i] !== row.item) this.list.insertBefore(row.item, this.list.children[i] ?? null);
      this.drawRow(row, box, i);
    });
    if (boxes.length > shown.length) {
      this.more = made("li", "", this.list);
      this.more.append(this.button(`${boxes.length - shown.length} more`, () => {
        this.isLong = true;
        this.drawList();
      }, { always: true }));
    }
  }

  newRow(id) {
    const item = made("li");
    const pick = made("button", "cp-be-pick", item);
    pick.type = "button";
    pick.onclick = () => {
      this.choose(id);
      this.show();
    };
    const select = made("select", "", item);
    select.onchange = () => this.label(select.selectedIndex, id);
    const area = made("textarea", "", item);
    area.rows = 1;
    area.placeholder = "Comment";
    area.maxLength = this.data.longestComment;
    area.dir = "auto";
    area.oninput = () => this.comment(id, area.value);
    area.onfocus = () => {
      if (this.active !== id) this.choose(id);
    };
    area.onblur = () => {
      this.typing = null;
      this.flush();
      this.draw();
    };
    area.onkeydown = (event) => {
      event.stopPropagation(); // no key of the page's
      if (event.key === "Escape" && !event.isComposing) this.stage.focus();
    };
    const away = made("button", "", item);
    away.type = "button";
    away.textContent = "✕";
    away.onclick = () => this.remove(id);
    const row = { item, pick, select, area, away };
    this.rows.set(id, row);
    return row;
  }

  drawRow(row, box, i) {
    const { pick, select, area, away } = row;
    const isActive = box.id === this.active;
    const now = [box, i, isActive, this.data.categories, this.data.locked];
    if (row.now && now.every((value, k) => value === row.now[k])) return;
    if (row.now?.[3] !== this.data.categories) {
      select.replaceChildren(...this.data.categories.map(({ id, words }) => new Option(words, id)));
    }
    row.now = now;
    const words = `Box ${i + 1}`;
    pick.textContent = String(i + 1);
    pick.setAttribute("aria-label", this.describe(box));
    pick.setAttribute("aria-pressed", String(isActive));
    pick.style.setProperty("--cp-hue", String(this.hue(box.category)));
    select.value = box.category;
    select.setAttribute("aria-label", `${words}: category`);
    if (area.value !== box.comment) area.value = box.comment;
    area.setAttribute("aria-label", `${words}: comment`);
    away.setAttribute("aria-label", `Take box ${i + 1} away`);
    away.title = `Take box ${i + 1} away`;
    select.disabled = away.disabled = Boolean(this.data.locked);
    area.readOnly = Boolean(this.data.locked);
  }

  // -- events ----------------------------------------------------------------------------------

  listen() {
    const { stage, image } = this;
    stage.onkeydown = (event) => this.onKey(event);
    stage.onkeyup = () => {
      this.held = null;
      this.flush();
    };
    stage.onpointerdown = (event) => this.onDown(event);
    stage.onpointermove = (event) => this.onMove(event);
    stage.onpointerup = (event) => this.onUp(event);
    stage.onpointercancel = (event) => {
      this.pointers.delete(event.pointerId);
      if (!this.pointers.size) this.panned = null;
      this.cancel();
    };
    new ResizeObserver(() => this.state && this.drawOver()).observe(stage);
    // Ctrl + wheel would make the whole page larger; only a listener that is not passive may say no.
    this.frame.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomTo(this.zoom * Math.exp(-event.deltaY * 0.002), event.clientX, event.clientY);
    }, { passive: false });
    image.onerror = () => this.say("The image could not be fetched; reload the page to see it. The boxes are kept.");
  }
}

export default function ({ data, parentElement, setStateValue }) {
  let editor = MOUNTED.get(parentElement);
  if (!editor) {
    editor = new Editor(parentElement.querySelector(".cp-be"));
    MOUNTED.set(parentElement, editor);
  }
  editor.take(data, (edit) => setStateValue("edit", edit));
  return () => editor.flush();
}
