// A response beside its sources: statements that are read, agreed with or corrected with one key.

const LABELS = ["supported", "hallucinated", "unclear"];
const CARD_SEEN = 120; // pixels of the card that must be in view
const PAUSE = 120; // milliseconds: a key held down goes over statements without asking for each source

class StatementEditor extends Editor {
  constructor(root) {
    super(root, "st", "statements");
    for (const name of ["text", "card", "source"]) this[name] = this.part(name);
    [this.saves, this.place, this.mark, this.least, this.isAsText] = [0, 0, null, 1, false];
    this.isSorted = false;
    this.off = new Set();
    [this.done, this.undone] = [[], []];
    this.plain = {
      j: () => this.cycle(1), k: () => this.cycle(-1), a: () => this.agree(), m: () => this.nextMark(),
      s: () => this.label(0), h: () => this.label(1), u: () => this.label(2),
      Home: () => this.toEnd(0), End: () => this.toEnd(-1),
      t: () => this.toggleText(), o: () => this.sort(!this.isSorted),
    };
    this.root.onkeydown = (event) => this.onKey(event);
    this.text.onclick = (event) => this.onClick(event);
  }

  take(data, send) {
    const isNew = JSON.stringify(this.data?.rows) !== JSON.stringify(data.rows);
    [this.send, this.data] = [send, data];
    this.saves = Math.max(this.saves, data.saves);
    if (data.revision >= this.revision) {
      this.revision = data.revision;
      this.state = { statements: data.statements };
    }
    if (this.active === undefined || !this.item()) [this.active, this.place] = [data.shown, data.place];
    if (isNew) this.build();
    this.draw();
    if (this.isSaving && data.saves === this.saves) this.say(data.problem ? `Not saved: ${data.problem}` : data.saved);
    this.isSaving &&= data.saves < this.saves;
    if (isNew) this.show();
    this.attend();
  }

  forPython() {
    return { statements: this.state.statements, shown: this.active, place: this.place, saves: this.saves };
  }

  get row() {
    return this.data.rows.find((row) => row.id === this.active);
  }

  // -- labels ----------------------------------------------------------------------------------

  ordered() {
    const rows = this.isSorted ? [...this.data.rows].sort((a, b) => a.gravity - b.gravity) : this.data.rows;
    return rows.map((row) => this.item(row.id));
  }

  label(number) {
    if (this.data.locked) return this.say("This run can be labelled once it has a verdict.");
    const label = LABELS[number];
    if (!label || !this.item()) return false;
    const before = this.row.number;
    if (this.item().label !== label) this.change(this.replaced(this.active, { label }), "label");
    this.advance();
    this.say(`${before}: ${this.data.words[label]}.`);
  }

  agree() {
    const { machine, isCheckable, number } = this.row;
    if (machine && isCheckable) return this.label(LABELS.indexOf(machine));
    this.advance();
    this.say(`${number}: ${isCheckable ? "the machine gave no label" : "nothing to check"}.`);
  }

  remove() {
    if (this.item().label) this.change(this.replaced(this.active, { label: "" }), "remove");
  }

  /** On to the next statement without a label, from the last one on to the first. */
  advance() {
    const all = this.ordered();
    const at = all.findIndex((one) => one.id === this.active);
    const isOpen = (one) => !one.label && this.data.rows.find((row) => row.id === one.id).isCheckable;
    const next = [...all.slice(at + 1), ...all.slice(0, at)].find(isOpen);
    if (next) this.choose(next.id);
    else this.draw();
    this.show();
  }

  save() {
    if (this.data.locked || !this.state.statements.some((one) => one.label)) return this.say("Nothing is labelled yet.");
    this.saves += 1;
    this.isSaving = true;
    this.say("Saving…");
    this.tell("save");
  }

  /** Sends everything; labels given in quick succession go together. */
  tell(did) {
    super.tell(did, did === "save" ? 0 : PAUSE);
  }

  // -- choosing --------------------------------------------------------------------------------

  choose(id, place = 0, mark = null) {
    [this.active, this.place, this.mark] = [id, place, mark];
    this.draw();
    this.tell("show");
  }

  show() {
    const one = this.elements?.get(this.active);
    if (!one) return;
    const { top, bottom } = one.getBoundingClientRect();
    const pane = this.text.getBoundingClientRect();
    if (top < pane.top + 8 || bottom > pane.bottom - 8) {
      this.text.scrollTop += top - pane.top - pane.height / 3;
    }
  }

  step(by) {
    const many = this.row.places.length;
    if (many > 1) this.choose(this.active, (this.place + by + many) % many, null);
  }

  toEnd(at) {
    this.choose(this.ordered().at(at).id);
    this.show();
  }

  nextMark() {
    const here = this.row.marks.filter((number) => this.isShown(number));
    if (!here.length) return this.say("No words are marked in it.");
    const mark = here[(here.indexOf(this.mark) + 1) % here.length];
    this.choose(this.active, this.data.marks[mark].place ?? this.place, mark);
  }

  onClick(event) {
    const one = event.target.closest(".cp-st-one");
    if (!one || document.getSelection().toString()) return;
    const numbers = event.target.closest(".cp-st-mark")?.dataset.marks.split(" ").map(Number) || [];
    const mark = numbers.find((number) => this.isShown(number)) ?? null;
    this.choose(one.dataset.id, mark === null ? 0 : (this.data.marks[mark].place ?? 0), mark);
    // On a phone the card stands below the response.
    if (this.card.getBoundingClientRect().top > innerHeight - CARD_SEEN) {
      this.card.scrollIntoView({ block: "center", behavior: "smooth" });
    }
  }

  onKey(event) {
    if (event.target?.matches?.("input")) return;
    const isPressed = event.target?.matches?.("button, img") && [" ", "Enter"].includes(event.key);
    if (isPressed && !event.ctrlKey && !event.metaKey) return;
    super.onKey(event);
    if (event.defaultPrevented && !this.root.contains(document.activeElement)) {
      this.text.focus({ preventScroll: true });
    }
  }

  command(event) {
    if (event.key === "Enter") return this.isSubmit(event) ? this.save() : false;
    return this.item() ? super.command(event) : false;
  }

  arrow({ key, target, altKey, ctrlKey, shiftKey }) {
    if (altKey || ctrlKey || shiftKey || target === this.source) return false; // the source scrolls
    if (key === "ArrowDown" || key === "ArrowUp") return this.cycle(key === "ArrowDown" ? 1 : -1);
    return this.step(key === "ArrowRight" ? 1 : -1);
  }

  sort(isSorted) {
    this.isSorted = isSorted;
    this.build();
    if (isSorted) this.choose(this.ordered()[0].id);
    else this.draw();
    this.show();
  }

  toggleText() {
    this.isAsText = !this.isAsText;
    this.shownSource = null;
    this.draw();
  }

  // -- marks -----------------------------------------------------------------------------------

  isShown(number) {
    const mark = this.data.marks[number];
    return !this.off.has(mark.kind) && (!mark.isWeak || (this.least < 1 && mark.p >= this.least));
  }

  drawMarks() {
    for (const piece of this.pieces) {
      const shown = piece.dataset.marks.split(" ").map(Number).filter((number) => this.isShown(number));
      const isStrong = shown.some((number) => !this.data.marks[number].isWeak);
      piece.className = shown.length ? `cp-mark cp-st-mark${isStrong ? "" : " cp-st-weak"}` : "cp-st-off";
      if (shown.includes(this.mark)) piece.classList.add("cp-st-mark-active");
      piece.title = shown.map((number) => this.data.marks[number].title).filter(Boolean).join("\n");
    }
  }

  // -- drawing ---------------------------------------------------------------------------------

  build() {
    [this.elements, this.pieces] = [new Map(), []];
    const rows = this.ordered().map((one) => this.data.rows.find((row) => row.id === one.id));
    const parts = rows.map((row) => {
      const one = made("span", this.isSorted ? "cp-st-one cp-st-block" : "cp-st-one");
      Object.assign(one, { id: `cp-statement-${row.number}`, dir: this.isSorted ? "auto" : "" });
      one.setAttribute("role", "option");
      one.dataset.id = row.id;
      for (const [words, marks] of row.pieces) {
        if (!marks.length) {
          one.append(words);
          continue;
        }
        const piece = made("mark", "cp-st-off", one);
        piece.textContent = words;
        piece.dataset.marks = marks.join(" ");
        this.pieces.push(piece);
      }
      this.elements.set(row.id, one);
      return this.isSorted ? [one] : [row.before, one];
    });
    this.text.dir = "auto";
    this.text.replaceChildren(...parts.flat(), ...(this.isSorted ? [] : [this.data.after]));
  }

  draw() {
    if (!this.elements) return;
    for (const row of this.data.rows) {
      const one = this.elements.get(row.id);
      const said = this.item(row.id).label;
      const label = said || (row.isCheckable ? row.machine : "");
      one.classList.remove(...LABELS.map((name) => `cp-${name}`));
      if (label) one.classList.add(`cp-${label}`);
      one.dataset.sign = `${row.number}\u2009${row.isCheckable ? this.data.signs[row.machine] || "" : "–"}`;
      if (said && said !== row.machine) one.dataset.sign += `\u2009→\u2009${this.data.signs[said]}`;
      one.classList.toggle("cp-st-labelled", Boolean(said));
      const isActive = row.id === this.active;
      one.setAttribute("aria-selected", String(isActive));
      if (isActive) this.text.setAttribute("aria-activedescendant", one.id);
    }
    this.drawMarks();
    this.drawBar();
    this.drawCard();
    this.drawSource();
  }

  drawBar() {
    const focused = document.activeElement?.dataset?.name;
    const labelled = this.state.statements.filter((one) => one.label).length;
    const kinds = this.data.kinds.length > 1 ? this.data.kinds : [];
    const end = made("div", "cp-st-end");
    const count = made("span", "cp-st-count", end);
    count.textContent = `${labelled} of ${this.data.rows.length} labelled${this.data.saved ? ` · ${this.data.saved}` : ""}`;
    end.append(
      ...this.historyButtons(),
      this.tool("Save labels", () => this.save(), { off: !labelled }),
      this.keysButton(),
    );
    this.bar.replaceChildren(
      this.tool("In order", () => this.sort(false), { pressed: !this.isSorted }),
      this.tool("Wrong first", () => this.sort(true), { pressed: this.isSorted }),
      ...(this.data.marks.some((mark) => mark.isWeak) ? [this.slider()] : []),
      ...kinds.map((kind) => this.tool(kind.words, () => this.filter(kind.id), { pressed: !this.off.has(kind.id) })),
      end,
    );
    if (focused) [...this.bar.querySelectorAll("[data-name]")].find((one) => one.dataset.name === focused)?.focus();
  }

  /** A button that keeps the focus when the bar is drawn again. */
  tool(words, run, options) {
    const button = this.button(words, run, { ...options, always: words !== "Save labels" });
    button.dataset.name = words;
    return button;
  }

  filter(kind) {
    if (!this.off.delete(kind)) this.off.add(kind);
    this.draw();
  }

  slider() {
    const label = made("label");
    const words = made("span", "", label);
    const input = made("input", "", label);
    const percent = () => Math.round(this.least * 100);
    const tell = () => {
      words.textContent = this.least < 1 ? `Weak marks from ${percent()}%` : "Weak marks: hidden";
    };
    Object.assign(input, { type: "range", min: 10, max: 100, step: 5, value: percent() });
    input.setAttribute("aria-label", "Show weaker marks, from this probability on");
    input.dataset.name = "slider";
    input.oninput = () => {
      this.least = Number(input.value) / 100;
      tell();
      this.drawMarks();
      this.drawCard();
    };
    tell();
    return label;
  }

  drawCard() {
    const row = this.row;
    if (!row) return this.card.replaceChildren();
    const said = this.item().label;
    const head = made("div");
    head.append(`${row.number} of ${this.data.rows.length} · `);
    const tag = made("span", `cp-tag cp-${row.machine}`, head);
    tag.textContent = row.verdict;
    if (row.note) made("span", "cp-quiet", head).textContent = ` ${row.note}`;
    if (said) {
      head.append(" · you: ");
      made("span", `cp-tag cp-${said}`, head).textContent = `${this.data.signs[said]} ${this.data.words[said]}`;
    }
    const lines = row.lines.map((words) => this.line(words));
    const shown = row.marks.filter((number) => this.isShown(number) && this.data.marks[number].title);
    const marks = shown.filter((number) => this.data.marks[number].kind);
    const suspected = shown.filter((number) => !this.data.marks[number].kind);
    lines.push(...marks.slice(0, SHOWN_AT_ONCE).map((number) => {
      const { words, title } = this.data.marks[number];
      const line = made("div");
      made("bdi", "", line).textContent = `“${words}”`;
      line.append(`: ${title}`);
      if (number === this.mark) line.style.fontWeight = "600";
      return line;
    }));
    if (suspected.length) {
      const words = suspected.map((number) => `“${this.data.marks[number].words}” ${this.data.marks[number].title}`);
      lines.push(this.line(`Suspected words: ${words.join(", ")}`));
    }
    const choices = made("div", "cp-st-choices");
    const isAgreed = row.machine && row.isCheckable;
    if (isAgreed) choices.append(this.choice("a", `Agree: ${this.data.words[row.machine].toLowerCase()}`, () => this.agree()));
    for (const [at, label] of LABELS.entries()) {
      if (isAgreed && label === row.machine) continue;
      choices.append(this.choice(label[0], this.data.words[label], () => this.label(at), said === label));
    }
    this.card.replaceChildren(head, choices, ...lines);
  }

  line(words) {
    const line = made("div");
    line.dir = "auto";
    line.textContent = words;
    return line;
  }

  choice(key, words, run, pressed) {
    const button = this.button("", run, { pressed });
    made("kbd", "", button).textContent = key;
    button.append(` ${words}`);
    return button;
  }

  drawSource() {
    const row = this.row;
    if (!row) return;
    const isHere = this.data.source.statement === this.active && this.data.source.place === this.place;
    const [words = "", how = "", text = ""] = row.places[this.place] || [];
    // Until the server has sent the place in its source, the passage is read by itself.
    const source = isHere ? this.data.source : { words, how, text, isComing: true };
    const sign = JSON.stringify([this.active, this.place, source, this.isAsText]);
    if (sign === this.shownSource) return;
    this.shownSource = sign;
    const step = (words, by, name) => this.button(words, () => this.step(by), { name, always: true });
    const buttons = row.places.length > 1
      ? [step("‹", -1, "The passage before"), `${this.place + 1} of ${row.places.length}`, step("›", 1, "The next passage")]
      : [];
    const toggleText = this.button(this.isAsText ? "Page" : "Text", () => this.toggleText(), { always: true });
    drawPlace(this.source, source, { buttons, isAsText: this.isAsText, toggleText });
  }
}

export default (mounting) => mount(StatementEditor, ".cp-st", mounting);
