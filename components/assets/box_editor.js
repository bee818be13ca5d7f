// The box editor in the browser: regions of an image, by pointer or keyboard; places are shares.

const TYPING_MS = 400;
const REPEAT_MS = 150;
const SLOP = { mouse: 3, pen: 4, touch: 8 }; // pixels that a click may wander
const HANDLES = ["nw", "n", "ne", "e", "se", "s", "sw", "w"];
const SMALL = 36; // pixels: a box of less has its handles outside, so that it can still be moved
const LABEL = 18; // pixels
const ZOOMS = [1, 1.5, 2, 3, 4];
const STEP = 0.01;
const NEW = 0.25; // of what is seen
const clipped = (share, low = 0, high = 1) => Math.min(Math.max(share, low), high);
const rounded = (share) => Math.round(share * 1e6) / 1e6;

class BoxEditor extends Editor {
  constructor(root) {
    super(root, "be", "boxes");
    for (const name of ["frame", "stage", "image"]) this[name] = this.part(name);
    this.over = this.part("boxes");
    this.plain = {
      n: () => this.addInMiddle(), u: () => this.undo(), U: () => this.redo(),
      "+": () => this.zoomBy(1), "=": () => this.zoomBy(1), "-": () => this.zoomBy(-1),
      Escape: () => this.escape(), Enter: () => this.openComment(),
    };
    this.address = null;
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
      if (!this.item()) this.active = null;
    }
    this.draw();
  }

  /** The box that is held already where nothing differs, so that nothing is drawn again. */
  known(box) {
    const held = this.item(box.id);
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
    this.unsent = null;
    [this.done, this.undone] = [[], []];
    this.active = this.drag = this.typing = null;
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

  forPython() {
    return this.state;
  }

  /** A new box of the category in hand; it is the chosen one then. */
  add(place) {
    if (this.state.boxes.length >= this.data.mostBoxes) {
      this.say(`${this.data.mostBoxes} boxes are the most that an image can have.`);
      this.draw();
      return;
    }
    const id = newId();
    const category = this.data.categories[this.brush] || this.data.categories[0];
    this.active = id;
    const box = { id, box: place, category: category.id, comment: "" };
    this.change({ boxes: [...this.state.boxes, box] }, "draw");
    this.say(`${this.describe(this.item())} Enter: write a comment.`);
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
    if (this.item(id)) {
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

  /** Chooses the box at this place. */
  chooseAt([x, y]) {
    const area = ({ box }) => (box.right - box.left) * (box.bottom - box.top);
    const here = this.state.boxes.filter(
      ({ box }) => box.left <= x && x <= box.right && box.top <= y && y <= box.bottom,
    );
    this.chooseAmong(here, area);
  }

  choose(id) {
    super.choose(id);
    if (!id) this.say("");
  }

  ordered() {
    return this.state.boxes;
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

  command(event) {
    // With AltGr, which some keyboards need for them, Ctrl and Alt count as held.
    if (event.key === "]") return this.cycle(1);
    if (event.key === "[") return this.cycle(-1);
    return super.command(event);
  }

  arrow({ key, ctrlKey, metaKey, altKey, shiftKey, repeat }) {
    const box = this.item();
    if (altKey || !box) return false;
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
    this.change(this.replaced(box.id, { box: place }), did, repeat && this.held === did ? REPEAT_MS : 0);
    this.held = did;
    this.say(this.describe(this.item()));
    this.show();
  }

  escape() {
    if (this.drag) return this.cancel();
    if (!this.active) return false;
    return this.choose(null);
  }

  openComment() {
    if (this.item()) this.rows.get(this.active)?.area.focus();
    else this.say("Choose a box first, or press n for a new one.");
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
    const box = this.item();
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
    else if (this.item(drag.id) && !this.isSame(drag.place, drag.from)) {
      this.change(this.replaced(drag.id, { box: drag.place }), drag.kind);
      this.say(this.describe(this.item()));
    } else this.draw();
  }

  finish(place) {
    const { smallest } = this.data;
    if (place.right - place.left >= smallest && place.bottom - place.top >= smallest) return this.add(place);
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
    const looks = { active: isActive, small: isSmall, inside: isInside, right: place.left > 0.7 };
    for (const [look, has] of Object.entries(looks)) node.classList.toggle(`cp-be-${look}`, has);
    node.label.textContent = `${i + 1} ${this.category(box)}`;
    node.title = this.describe(box);
    node.setAttribute("aria-label", node.title);
    const has = node.querySelector(".cp-be-handle") !== null;
    const wants = isActive && !this.data.locked;
    if (wants === has) return;
    for (const handle of node.querySelectorAll(".cp-be-handle")) handle.remove();
    for (const which of wants ? HANDLES : []) made("span", "cp-be-handle", node).dataset.which = which;
  }

  placeNode(node, { left, top, right, bottom }) {
    Object.assign(node.style, {
      left: `${left * 100}%`, top: `${top * 100}%`,
      width: `${(right - left) * 100}%`, height: `${(bottom - top) * 100}%`,
    });
  }

  /** The box that is being drawn. */
  drawNew(place) {
    if (!place) this.fresh?.remove();
    if (!place) return (this.fresh = null);
    this.fresh ??= made("div", "cp-be-box cp-be-new", this.over);
    const category = this.data.categories[this.brush] || this.data.categories[0];
    this.fresh.style.setProperty("--cp-hue", String(this.hue(category.id)));
    this.placeNode(this.fresh, place);
  }

  drawBar() {
    const box = this.item();
    const buttons = this.data.categories.map((category, i) =>
      this.button(i < 9 ? `${i + 1} ${category.words}` : category.words, () => this.label(i), {
        pressed: box ? box.category === category.id : i === this.brush,
        hue: this.hue(category.id),
      }),
    );
    buttons.push(this.button("New box (n)", () => this.addInMiddle()));
    if (box) buttons.push(this.button("Remove ⌫", () => this.remove()));
    buttons.push(...this.historyButtons());
    const zoom = made("span", "cp-be-zoom");
    const last = ZOOMS[ZOOMS.length - 1];
    const size = made("output");
    size.textContent = `${Math.round(this.zoom * 100)}%`;
    zoom.append(
      this.button("−", () => this.zoomBy(-1), { off: this.zoom <= 1, name: "Smaller", always: true }),
      size,
      this.button("+", () => this.zoomBy(1), { off: this.zoom >= last, name: "Larger", always: true }),
      this.keysButton(),
    );
    const name = (button) => button?.getAttribute("aria-label") || button?.textContent;
    const had = this.bar.contains(document.activeElement) ? name(document.activeElement) : null;
    this.bar.replaceChildren(...buttons, zoom);
    if (had === null) return;
    const same = [...this.bar.querySelectorAll("button:enabled")].find((button) => name(button) === had);
    (same || this.stage).focus({ preventScroll: true });
  }

  button(words, run, options = {}) {
    const button = super.button(words, run, options);
    if (options.name) button.title = options.name;
    return button;
  }

  /** A row for each box: what it is without being seen, its category, its comment. */
  drawList() {
    const { boxes } = this.state;
    if (this.active && this.number(this.active) > SHOWN_AT_ONCE) this.isLong = true;
    const shown = this.shown(boxes);
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
      this.more = this.moreLine(boxes.length - shown.length, { always: true });
      this.list.append(this.more);
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
    away.title = `Take box ${i + 1} away`;
    away.setAttribute("aria-label", away.title);
    select.disabled = away.disabled = Boolean(this.data.locked);
    area.readOnly = Boolean(this.data.locked);
  }

  // -- events ----------------------------------------------------------------------------------

  listen() {
    const { stage, image } = this;
    stage.onkeydown = (event) => event.target === stage && this.onKey(event);
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

export default (mounting) => mount(BoxEditor, ".cp-be", mounting);
