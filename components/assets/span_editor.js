// The span editor in the browser: marks in a text, by mouse or keyboard; offsets are code points.

const RIGHT_TO_LEFT = /[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC]/;

// What takes letters itself; any other place of the page leaves them to the words.
const TYPED = "input:not([type=checkbox], [type=radio]), textarea, select, [contenteditable], [role=dialog], .cp-be, .cp-se-text";

const CHOOSE_FIRST = "Choose first: s supported, h hallucinated, u unclear.";
const PRESS_SECONDS = 5; // for so long what was pressed outside may still bring a label

/** Both ways between UTF-16 places, as the page counts, and code points, as Python does. */
function placesOf(text) {
  const points = new Uint32Array(text.length + 1);
  const units = [];
  let unit = 0;
  for (const letter of text) {
    points.fill(units.length, unit, unit + letter.length);
    units.push(unit);
    unit += letter.length;
  }
  points[unit] = units.length;
  units.push(unit);
  return { toPoint: (i) => points[i], toUnit: (i) => units[Math.min(i, units.length - 1)] };
}

/** Where words and marks between them stand, as [start, end) pairs; in scripts without blanks too. */
function wordsOf(text, language) {
  let segmenter;
  try {
    segmenter = new Intl.Segmenter(language || undefined, { granularity: "word" });
  } catch {
    segmenter = new Intl.Segmenter(undefined, { granularity: "word" });
  }
  const found = [];
  for (const part of segmenter.segment(text)) {
    if (part.segment.trim()) found.push([part.index, part.index + part.segment.length]);
  }
  return found;
}

class SpanEditor extends Editor {
  constructor(root) {
    super(root, "se", "marks");
    this.box = this.part("text");
    this.text = null;
    this.plain = {
      0: () => this.nothing(), A: () => this.acceptAll(), c: () => this.toggleCaret(), n: () => this.nextNumber(),
      s: () => this.answer(0), h: () => this.answer(1), u: () => this.answer(2),
      a: () => this.settle("marked"), x: () => this.settle("rejected"),
      Home: () => this.toEnd(true), End: () => this.toEnd(false),
      Escape: () => (this.selected || this.active ? this.clear() : false),
    };
    this.graphemes = new Intl.Segmenter(undefined, { granularity: "grapheme" });
    this.listen();
  }

  /** Takes what Python says; what was done here since then stays. */
  take(data, send) {
    this.send = send;
    this.data = data;
    const isNew = this.text !== data.text;
    if (isNew) {
      this.text = data.text;
      this.places = placesOf(data.text);
      this.segmented = null;
      this.revision = -1;
      [this.done, this.undone] = [[], []];
      this.selected = this.active = null;
      this.isCaret = false;
      this.wantsSave = false;
    }
    if (data.revision >= this.revision) {
      this.revision = data.revision;
      this.state = { marks: data.marks.map((mark) => this.fromPython(mark)), none: data.none, label: data.label };
      if (data.label && this.said.textContent === CHOOSE_FIRST) this.say("");
    }
    this.box.tabIndex = 0;
    this.began = performance.now() - 1000 * data.seconds;
    this.draw();
    this.root.classList.toggle("cp-se-page", data.labels.length > 0);
    if (!data.labels.length) return;
    // An item that was saved is not drawn again: this one still stands.
    if (data.revision >= this.saving) this.hold(false);
    const isFirst = !this.elsewhere;
    this.attend();
    const isFree = [document.body, null].includes(document.activeElement);
    if (isFirst && (isFree || isNew)) this.box.focus({ preventScroll: true });
  }

  /** The whole page is for the words: their letters count anywhere but where one types. */
  hears(target) {
    return !target.closest?.(TYPED);
  }

  fromPython(mark) {
    const { toUnit } = this.places;
    return { ...mark, start: toUnit(mark.start), end: toUnit(mark.end) };
  }

  forPython() {
    const { toPoint } = this.places;
    const { marks, none, label } = this.state;
    const inPoints = (mark) => ({ ...mark, start: toPoint(mark.start), end: toPoint(mark.end) });
    return { marks: marks.map(inPoints), none, label };
  }

  // -- the answer on the whole -----------------------------------------------------------------

  /** How long this item has been open. */
  get clock() {
    const clock = made("span", "cp-se-clock");
    clock.title = "How long you have had this item open";
    const tell = () => {
      const seconds = Math.floor((performance.now() - this.began) / 1000);
      clock.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
    };
    clearInterval(this.ticking);
    this.ticking = setInterval(tell, 1000);
    tell();
    return clock;
  }

  leave() {
    clearInterval(this.ticking);
    super.leave();
  }

  /** Answers the item; a wrong one begins with the words that are likeliest to be wrong. */
  answer(number) {
    const label = this.data.labels[number];
    if (!label) return false;
    this.wantsSave = false; // it was meant for a label from outside
    this.change({ ...this.state, label: label.id }, "label");
    if (label.id === "hallucinated") this.toLikely();
    this.say(`${label.words}.${this.selected ? ` Selected: ${this.quoteOf(this.selected)}.` : ""}`);
    this.box.focus({ preventScroll: true });
  }

  toLikely() {
    const open = this.ordered().find((mark) => mark.status === "suggested");
    if (open) return this.choose(open.id);
    if (this.state.marks.some((mark) => mark.status === "marked")) return;
    const { toUnit } = this.places;
    const [start, end] = this.data.likely?.map(toUnit) ?? this.words[0] ?? [0, 0];
    this.select(start, end);
  }

  /** With an answer as a whole, words that are wrong make it wrong. */
  withLabel(state) {
    return this.data.labels.length ? { ...state, label: "hallucinated" } : state;
  }

  save() {
    if (!this.data.labels.length) return false;
    // A version or label that was just chosen outside comes from Python, maybe to another editor.
    this.wantsSave = !this.state.label && (isDrawing() || performance.now() - this.pressedAt < PRESS_SECONDS * 1000);
    clearTimeout(this.waiting);
    if (this.wantsSave) {
      this.waiting = setTimeout(() => this.root.isConnected && this.wantsSave && this.save(), 50);
      return;
    }
    if (!this.state.label) return this.say(CHOOSE_FIRST);
    this.revision += 1;
    this.saving = this.revision;
    this.say("Saving…");
    this.hold(true);
    this.tell("save");
  }

  /** Gives the selected words, or else the chosen mark, this category. */
  label(number) {
    const category = this.data.categories[number];
    if (!category) return;
    if (this.selected) {
      const [start, end] = this.trimmed(...this.selected);
      if (start >= end) return;
      const same = this.state.marks.find(
        (m) => m.start === start && m.end === end && m.status === "marked",
      );
      if (same) {
        this.active = same.id;
        this.change(this.replaced(same.id, { category: category.id }), "category");
      } else {
        const id = newId();
        const mark = { id, start, end, category: category.id, by: "", score: null };
        this.active = id;
        const marks = [...this.state.marks, { ...mark, status: "marked" }];
        this.change(this.withLabel({ ...this.state, marks, none: false }), "mark");
      }
      this.selected = null;
      document.getSelection().removeAllRanges();
      this.draw();
      this.say(`Marked as ${category.words}.`);
    } else if (this.active) {
      const change = { category: category.id };
      if (this.item().status === "suggested") change.status = "marked";
      this.change({ ...this.replaced(this.active, change), none: false }, "category");
      this.say(`Now ${category.words}.`);
    } else {
      this.say("Select words first, or choose a mark.");
    }
  }

  remove() {
    const mark = this.item();
    if (!mark) return;
    if (mark.by) {
      this.change(this.replaced(mark.id, { status: "rejected" }), "reject");
    } else {
      const marks = this.state.marks.filter((other) => other !== mark);
      this.change({ ...this.state, marks }, "remove");
    }
    this.say("Removed.");
  }

  /** Accepts or rejects the chosen suggestion, else the first that is open, and goes to the next. */
  settle(status) {
    const open = this.ordered().filter((mark) => mark.status === "suggested");
    const mark = open.find((other) => other.id === this.active) || open[0];
    if (!mark) return this.say("No suggestion is open.");
    const next = open[open.indexOf(mark) + 1] || open.find((other) => other !== mark);
    const state = this.replaced(mark.id, { status });
    if (status === "marked") state.none = false;
    this.active = next ? next.id : mark.id;
    this.change(status === "marked" ? this.withLabel(state) : state, status === "marked" ? "accept" : "reject");
    this.say(`${status === "marked" ? "Accepted" : "Rejected"}: ${this.quote(mark)}.`);
    this.show();
  }

  acceptAll() {
    const open = this.state.marks.filter((mark) => mark.status === "suggested");
    if (!open.length) return;
    const marks = this.state.marks.map((mark) =>
      mark.status === "suggested" ? { ...mark, status: "marked" } : mark,
    );
    this.change(this.withLabel({ ...this.state, marks, none: false }), "accept_all");
    this.say(`Accepted all ${open.length}.`);
  }

  nothing() {
    if (!this.data.noneWords) return;
    const none = !this.state.none;
    if (none && this.state.marks.some((mark) => mark.status === "marked")) {
      this.say("Take the marks away first: nothing and something cannot both be wrong.");
      this.draw();
      return;
    }
    this.change(none ? this.withLabel({ ...this.state, none }) : { ...this.state, none }, none ? "none" : "not_none");
    this.say(none ? this.data.noneWords : "Taken back.");
  }

  // -- selecting -------------------------------------------------------------------------------

  ordered() {
    return this.state.marks
      .filter((mark) => mark.status !== "rejected")
      .sort((a, b) => a.start - b.start || b.end - a.end);
  }

  quote(mark) {
    const words = this.text.slice(mark.start, mark.end).replace(/\s+/g, " ");
    const shown = words.length > 60 ? words.slice(0, 57) + "…" : words;
    return RIGHT_TO_LEFT.test(shown) ? `“\u2068${shown}\u2069”` : `“${shown}”`;
  }

  select(start, end, isBackward = false) {
    this.selected = end > start ? [start, end] : null;
    this.isBackward = isBackward;
    this.active = null;
    this.paintSelection();
    if (this.selected) this.say(`Selected: ${this.quoteOf(this.selected)}.`);
    this.look(this.selected);
    this.drawBar();
  }

  quoteOf([start, end]) {
    return this.quote({ start, end });
  }

  /** The source beside the words goes to where they stand in it. */
  look(place) {
    if (!place || !this.data.labels.length) return;
    const words = this.text.slice(...place);
    document.dispatchEvent(new CustomEvent("counterpoint-look", { detail: { words } }));
  }

  paintSelection() {
    if (!this.selected) return;
    const [start, end] = this.selected.map((place) => this.pointAt(place));
    const [from, to] = this.isBackward ? [end, start] : [start, end];
    document.getSelection().setBaseAndExtent(...from, ...to);
    to[0].parentElement?.scrollIntoView?.({ block: "nearest" });
  }

  /** The text node and the place in it where this UTF-16 place of the text lies. */
  pointAt(place) {
    let low = 0;
    let high = this.pieces.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.pieces[middle].start <= place) low = middle;
      else high = middle - 1;
    }
    const piece = this.pieces[low];
    return piece ? [piece.node, Math.min(place - piece.start, piece.node.length)] : [this.box, 0];
  }

  /** The UTF-16 place of the text where this point of the page lies; null outside of it. */
  placeOf(node, offset) {
    if (!this.box.contains(node)) return null;
    if (node.nodeType === Node.TEXT_NODE) {
      const piece = this.pieceOf.get(node);
      return piece === undefined ? null : piece.start + offset;
    }
    const range = document.createRange();
    range.setStart(this.box, 0);
    range.setEnd(node, offset);
    return range.toString().length;
  }

  fromMouse(isExact) {
    const chosen = document.getSelection();
    if (!chosen.rangeCount) return;
    const range = chosen.getRangeAt(0);
    if (!range.intersectsNode(this.box)) return;
    // what was dragged beyond the text ends with it
    let start = this.placeOf(range.startContainer, range.startOffset) ?? 0;
    let end = this.placeOf(range.endContainer, range.endOffset) ?? this.text.length;
    if (chosen.isCollapsed) return this.chooseAt(start);
    [start, end] = isExact || this.isCaret ? this.trimmed(start, end) : this.toWords(start, end);
    if (end > start) this.select(start, end);
  }

  trimmed(start, end) {
    while (start < end && /\s/.test(this.text[start])) start++;
    while (end > start && /\s/.test(this.text[end - 1])) end--;
    return [start, end];
  }

  toWords(start, end) {
    [start, end] = this.trimmed(start, end);
    if (start >= end) return [start, end];
    const first = this.wordAt(start);
    const last = this.wordAt(end - 1);
    return [first ? Math.min(first[0], start) : start, last ? Math.max(last[1], end) : end];
  }

  get words() {
    return (this.segmented ??= wordsOf(this.text, this.data.language));
  }

  wordIndex(place) {
    let low = 0;
    let high = this.words.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.words[middle][1] <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  wordAt(place) {
    const word = this.words[this.wordIndex(place)];
    return word && word[0] <= place ? word : null;
  }

  /** Chooses the mark at this place. */
  chooseAt(place) {
    const here = this.ordered().filter(
      (mark) => mark.start <= place && place < Math.max(mark.end, mark.start + 1),
    );
    this.chooseAmong(here, (mark) => mark.end - mark.start);
  }

  choose(id) {
    this.selected = null;
    super.choose(id);
    const mark = this.item();
    if (mark) this.look([mark.start, mark.end]);
  }

  show() {
    this.box.querySelector(".cp-se-active")?.scrollIntoView({ block: "nearest" });
  }

  describe(mark) {
    const by = mark.by ? `, ${mark.status === "suggested" ? "suggested" : "accepted"} from ${mark.by}` : "";
    const score = mark.by && mark.score !== null ? ` (${Math.round(mark.score * 100)}%)` : "";
    return `${this.quote(mark)}: ${this.category(mark)}${by}${score}.`;
  }

  // -- the keyboard ----------------------------------------------------------------------------

  /** Whether the line's first letter, which gives it its direction, is of a right-to-left script. */
  isRightToLeft(place) {
    const line = this.text.slice(this.text.lastIndexOf("\n", place - 1) + 1).split("\n", 1)[0];
    return RIGHT_TO_LEFT.test(line.match(/\p{L}/u)?.[0]);
  }

  moveWord(step) {
    if (!this.words.length) return;
    const mark = this.item();
    const last = this.words.length - 1;
    const [start, end] = this.selected || (mark ? [mark.start, mark.end] : [-1, -1]);
    const at = start < 0 ? (step > 0 ? 0 : last) : step > 0 ? this.wordIndex(end) : this.wordIndex(start) - 1;
    this.select(...this.words[Math.max(0, Math.min(last, at))]);
  }

  /** Moves the selection's far end; a selection that shrinks past its start turns round. */
  extend(step, byWord) {
    if (!this.selected) return this.moveWord(step);
    const [start, end] = this.selected;
    const fixed = this.isBackward ? end : start;
    const moving = this.isBackward ? start : end;
    const next = byWord ? this.wordEdge(moving, step) : this.graphemeEdge(moving, step);
    if (next === fixed) return;
    this.select(Math.min(fixed, next), Math.max(fixed, next), next < fixed);
  }

  wordEdge(place, step) {
    if (step > 0) {
      const word = this.words[this.wordIndex(place)];
      return word ? word[1] : this.text.length;
    }
    const word = this.words[this.wordIndex(Math.max(0, place - 1))];
    if (word && word[0] < place) return word[0];
    const before = this.words[this.wordIndex(Math.max(0, place - 1)) - 1];
    return before ? before[0] : 0;
  }

  /** The next border between characters as people see them: no emoji is cut in two. */
  graphemeEdge(place, step) {
    const from = Math.max(0, place - 64);
    const near = this.text.slice(from, place + 64);
    let before = 0;
    for (const part of this.graphemes.segment(near)) {
      const start = from + part.index;
      const end = start + part.segment.length;
      if (step > 0 && end > place) return end;
      if (step < 0 && end >= place) return start;
      before = start;
    }
    return step > 0 ? this.text.length : before;
  }

  /** Moves an end of the chosen mark. */
  resize(which, step, byWord) {
    const mark = this.item();
    if (!mark) return;
    const place = mark[which];
    const next = byWord ? this.wordEdge(place, step) : this.graphemeEdge(place, step);
    this.resizeTo(mark, which, next);
  }

  resizeTo(mark, which, place) {
    const { start, end } = { ...mark, [which]: place };
    if (start >= end || (start === mark.start && end === mark.end)) return;
    this.change(this.replaced(mark.id, { start, end }), "resize");
    this.say(`Now ${this.quote({ start, end })}.`);
  }

  caret(event, step) {
    const chosen = document.getSelection();
    const isLine = event.key === "ArrowUp" || event.key === "ArrowDown";
    const unit = isLine ? "line" : event.ctrlKey ? "word" : "character";
    const alter = event.shiftKey ? "extend" : "move";
    const side = isLine ? (step > 0 ? "forward" : "backward") : step > 0 ? "right" : "left";
    if (!chosen.rangeCount || !this.box.contains(chosen.anchorNode)) chosen.collapse(...this.pointAt(0));
    chosen.modify(alter, side, unit);
    const range = chosen.getRangeAt(0);
    const start = this.placeOf(range.startContainer, range.startOffset);
    const end = this.placeOf(range.endContainer, range.endOffset);
    if (start === null || end === null) return;
    this.active = null;
    this.selected = end > start ? [start, end] : null;
    this.isBackward = chosen.anchorNode === range.endContainer && chosen.anchorOffset === range.endOffset;
    this.drawBar();
  }

  command(event) {
    if (this.isSubmit(event)) return this.save();
    if (event.altKey && !event.ctrlKey && !event.metaKey) {
      if (event.key === "." || event.key === ">") return this.cycle(1);
      if (event.key === "," || event.key === "<") return this.cycle(-1);
    }
    return super.command(event);
  }

  arrow(event) {
    const { key, ctrlKey, metaKey, altKey, shiftKey } = event;
    const isLine = key === "ArrowUp" || key === "ArrowDown";
    let step = key === "ArrowRight" || key === "ArrowDown" ? 1 : -1;
    if (this.isCaret && !altKey) return this.caret(event, step);
    if (isLine) return altKey || shiftKey || ctrlKey ? false : this.byLine(step);
    const mark = this.item();
    const near = this.selected ? this.selected[1] - 1 : mark ? mark.end - 1 : 0;
    if (this.isRightToLeft(near)) step = -step;
    const byWord = ctrlKey || metaKey;
    if (mark && !this.selected && shiftKey) return this.resize(altKey ? "start" : "end", step, byWord);
    if (altKey) return false;
    if (shiftKey) return this.extend(step, byWord);
    return byWord ? false : this.moveWord(step);
  }

  /** The word that lies a line below or above. */
  byLine(step) {
    if (!this.selected) return this.moveWord(step);
    const chosen = document.getSelection();
    chosen.collapse(...this.pointAt(this.selected[0]));
    chosen.modify("move", step > 0 ? "forward" : "backward", "line");
    const place = this.placeOf(chosen.focusNode, chosen.focusOffset);
    const word = place === null ? null : this.wordAtOrBefore(place);
    if (word) this.select(...word);
  }

  /** Selects the next number: what is wrong is often one. */
  nextNumber() {
    const from = this.wordIndex(this.selected?.[1] ?? this.item()?.end ?? 0);
    const onward = [...this.words.slice(from), ...this.words.slice(0, from)];
    const word = onward.find(([start, end]) => /\p{N}/u.test(this.text.slice(start, end)));
    if (word) this.select(...word);
    else this.say("There is no number.");
  }

  toEnd(isStart) {
    const word = this.words.at(isStart ? 0 : -1);
    if (word) this.select(...word);
  }

  toggleCaret() {
    this.isCaret = !this.isCaret;
    if (this.isCaret) {
      const place = this.selected ? this.selected[0] : this.item()?.start ?? 0;
      document.getSelection().collapse(...this.pointAt(place));
      this.selected = null;
      this.active = null;
    }
    this.draw();
    this.say(this.isCaret ? "Caret: arrows move by characters, Shift selects." : "Arrows move by words.");
  }

  clear() {
    this.selected = null;
    this.active = null;
    document.getSelection().removeAllRanges();
    this.draw();
  }

  // -- drawing ---------------------------------------------------------------------------------

  draw() {
    this.drawText();
    this.drawBar();
    this.drawList();
    // A selection painted while somebody types in a field would take the next keys away from it.
    const focused = document.activeElement;
    if (this.selected && this.root.contains(focused) && !focused.dataset.of) this.paintSelection();
  }

  /** The text in pieces, cut wherever a mark begins or ends. */
  drawText() {
    const marks = this.ordered();
    const cuts = new Set([0, this.text.length]);
    for (const mark of marks) cuts.add(mark.start).add(mark.end);
    const borders = [...cuts].filter((place) => place <= this.text.length).sort((a, b) => a - b);
    const content = document.createDocumentFragment();
    this.pieces = [];
    this.pieceOf = new Map();
    let next = 0;
    let open = [];
    for (let i = 0; i + 1 < borders.length; i++) {
      const [start, end] = [borders[i], borders[i + 1]];
      open = open.filter((mark) => mark.end > start);
      while (next < marks.length && marks[next].start <= start) {
        if (marks[next].end > start) open.push(marks[next]);
        next++;
      }
      content.append(this.piece(start, end, open));
    }
    this.box.replaceChildren(content);
    this.box.classList.toggle("cp-se-caret", this.isCaret);
    this.box.lang = this.data.language || "";
    this.root.classList.toggle("cp-se-locked", Boolean(this.data.locked));
  }

  piece(start, end, open) {
    const node = document.createTextNode(this.text.slice(start, end));
    const piece = { node, start };
    this.pieces.push(piece);
    this.pieceOf.set(node, piece);
    if (!open.length) return node;
    const around = document.createElement("span");
    const top = open.reduce((a, b) => (b.end - b.start <= a.end - a.start ? b : a));
    const shown = open.find((mark) => mark.id === this.active) || top;
    around.className = `cp-se-mark cp-se-${shown.status}`;
    around.style.setProperty("--cp-hue", String(this.hue(shown.category)));
    if (open.length > 1) around.classList.add("cp-se-several");
    around.title = open.map((mark) => this.describe(mark)).join("\n");
    const active = open.find((mark) => mark.id === this.active);
    if (active) {
      around.classList.add("cp-se-active");
      if (active.start === start) around.append(this.handle("start"));
    }
    around.append(node);
    for (const mark of open) if (mark.end === end && mark.by) around.dataset.by = this.badge(mark);
    if (active && active.end === end) around.append(this.handle("end"));
    return around;
  }

  /** What stands behind a suggestion; drawn by the style sheet, so it is in no offset. */
  badge(mark) {
    const score = mark.score === null ? "" : ` ${Math.round(mark.score * 100)}`;
    return `${mark.status === "suggested" ? "?" : "✓"}${score}`;
  }

  handle(which) {
    const handle = document.createElement("span");
    handle.className = `cp-se-handle cp-se-${which}`;
    handle.dataset.which = which;
    return handle;
  }

  drawBar() {
    const mark = this.item();
    const buttons = this.data.categories.map((category, i) =>
      this.button(`${i + 1} ${category.words}`, () => this.label(i), {
        pressed: Boolean(mark && mark.category === category.id && !this.selected),
        hue: this.hue(category.id),
        off: !this.selected && !mark,
      }),
    );
    const open = this.state.marks.filter((other) => other.status === "suggested").length;
    if (open) {
      buttons.push(this.button("Accept (a)", () => this.settle("marked")));
      buttons.push(this.button("Reject (x)", () => this.settle("rejected")));
      buttons.push(this.button(`Accept all ${open}`, () => this.acceptAll()));
    }
    if (mark) buttons.push(this.button("Remove ⌫", () => this.remove()));
    if (this.data.noneWords) {
      const pressed = this.state.none;
      buttons.push(this.button(`0 ${this.data.noneWords}`, () => this.nothing(), { pressed }));
    }
    buttons.push(...this.historyButtons(), this.keysButton());
    if (this.data.labels.length) buttons.push(this.clock);
    const at = [...this.bar.children].indexOf(document.activeElement);
    this.bar.replaceChildren(...buttons);
    if (at >= 0) (this.bar.children[at] || this.box).focus({ preventScroll: true });
  }

  button(words, run, options) {
    const button = super.button(words, run, options);
    // The selection must outlive the click.
    button.onmousedown = (event) => event.preventDefault();
    return button;
  }

  drawList() {
    const marks = this.ordered();
    const shown = this.shown(marks);
    const field = document.activeElement;
    // Whoever is typing keeps the field, which a new list would take away.
    if (field?.dataset.of && this.list.contains(field) && this.item(field.dataset.of)) return;
    const lines = shown.map((mark) => {
      const line = made("li");
      const pick = () => {
        this.selected = null;
        this.active = mark.id;
        this.draw();
        this.show();
      };
      const pressed = mark.id === this.active;
      const options = { pressed, hue: this.hue(mark.category), always: true };
      line.append(this.button(this.describe(mark), pick, options));
      if (mark.status === "marked" && this.data.insteadWords) line.append(this.insteadField(mark));
      return line;
    });
    if (marks.length > shown.length) lines.push(this.moreLine(marks.length - shown.length));
    this.list.replaceChildren(...lines);
  }

  /** The field for what the marked words should say. */
  insteadField(mark) {
    const field = made("input", "cp-se-instead");
    field.dataset.of = mark.id;
    field.value = mark.instead || "";
    field.placeholder = this.data.insteadWords;
    field.setAttribute("aria-label", `${this.quote(mark)}: ${this.data.insteadWords}`);
    field.maxLength = this.data.longestInstead;
    field.disabled = Boolean(this.data.locked);
    field.oninput = () => this.replaceBy(mark.id, field.value);
    field.onblur = () => setTimeout(() => this.drawList());
    return field;
  }

  replaceBy(id, words) {
    if (this.typing !== id) this.remember();
    this.typing = id;
    this.undone = [];
    this.state = this.replaced(id, { instead: words.toWellFormed?.() ?? words });
    this.revision += 1;
    this.tell("instead"); // at once: the next key may save
  }

  // -- events ----------------------------------------------------------------------------------

  listen() {
    this.box.onkeydown = (event) => this.onKey(event);
    this.box.onmousedown = (event) => {
      if (this.dragged) return;
      // With Shift the browser would go on with what was selected before.
      if (event.shiftKey) document.getSelection().removeAllRanges();
      // wherever the button is let go
      document.addEventListener("mouseup", (event) => this.fromMouse(event.shiftKey), { once: true });
    };
    this.box.onpointerdown = (event) => {
      const which = event.target.dataset?.which;
      if (!which || this.data.locked) return;
      event.preventDefault(); // nor does a selection begin here
      // The knob hangs below its line: the pointer counts as if it were on the line.
      const line = [...event.target.parentElement.getClientRects()].at(which === "start" ? 0 : -1);
      const below = event.clientY - (line.top + line.bottom) / 2;
      this.dragged = { which, mark: this.item(), below };
      this.box.setPointerCapture(event.pointerId);
    };
    this.box.onpointermove = (event) => {
      if (!this.dragged) return;
      const place = this.placeAt(event.clientX, event.clientY - this.dragged.below);
      if (place === null) return;
      this.dragged.place = event.shiftKey ? place : this.snapped(place, this.dragged.which);
      this.previewDrag();
    };
    this.box.onpointerup = () => {
      const dragged = this.dragged;
      if (!dragged) return;
      setTimeout(() => (this.dragged = null));
      if (dragged.place !== undefined) {
        this.state = dragged.before ?? this.state;
        this.resizeTo(dragged.mark, dragged.which, dragged.place);
      }
      this.draw();
    };
  }

  previewDrag() {
    const { mark, which, place } = this.dragged;
    const { start, end } = { ...mark, [which]: place };
    if (start >= end) return;
    this.dragged.before ??= this.state;
    this.state = this.replaced(mark.id, { start, end });
    this.drawText();
  }

  snapped(place, which) {
    const word = this.wordAtOrBefore(place);
    return word ? word[which === "start" ? 0 : 1] : place;
  }

  wordAtOrBefore(place) {
    return this.words[Math.min(this.wordIndex(place), this.words.length - 1)];
  }

  placeAt(x, y) {
    const at = document.caretPositionFromPoint?.(x, y);
    if (at) return this.placeOf(at.offsetNode, at.offset);
    const range = document.caretPositionFromPoint ? null : document.caretRangeFromPoint?.(x, y);
    return range ? this.placeOf(range.startContainer, range.startOffset) : null;
  }
}

export default (mounting) => mount(SpanEditor, ".cp-se", mounting);
