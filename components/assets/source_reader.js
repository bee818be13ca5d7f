// The sources of an item beside its words: read whole, searched, or moved to words of the response.

const LEAST = 3; // letters of a word worth looking for by itself

// Letters to which Arabic and Persian keyboards give different codes.
const ALIKE = { "\u0643": "\u06a9", "\u064a": "\u06cc", "\u0649": "\u06cc" };

/** In lower case, letter by letter, so that places stay as they are. */
const folded = (text) => text.replace(/[\p{Lu}\u0643\u064a\u0649]/gu, (letter) => {
  const small = ALIKE[letter] ?? letter.toLowerCase();
  return small.length === letter.length ? small : letter;
});

class SourceReader {
  constructor(root) {
    for (const name of ["bar", "said", "source"]) this[name] = root.querySelector(`.cp-sr-${name}`);
    this.look = (event) => this.find(event.detail.words, event.detail.source);
    this.search = made("input");
    Object.assign(this.search, { type: "search", placeholder: "Search the sources" });
    this.search.setAttribute("aria-label", "Search the sources");
    this.search.oninput = () => this.find(this.search.value);
    this.search.onkeydown = (event) => {
      if (event.key !== "Enter" || event.ctrlKey || event.metaKey) return;
      event.preventDefault();
      this.find(this.search.value, this.at, this.end);
    };
    this.names = made("select");
    this.names.setAttribute("aria-label", "Source");
    this.names.onchange = () => this.show(this.names.value);
    this.places = made("span", "cp-sr-places");
    this.bar.append(this.names, this.search, this.places);
  }

  take(data) {
    document.addEventListener("counterpoint-look", this.look);
    if (JSON.stringify(this.data) === JSON.stringify(data)) return;
    this.data = data;
    [this.said.textContent, this.search.value] = ["", ""];
    this.folded = new Map(data.sources.map((source) => [source.id, folded(source.text)]));
    const options = data.sources.map((source) => Object.assign(made("option"), { value: source.id, textContent: source.name }));
    this.names.replaceChildren(...options);
    this.bar.hidden = !data.sources.length;
    this.names.hidden = data.sources.length < 2;
    this.places.replaceChildren(...data.quotes.map((quote) => this.place(quote)));
    if (data.sources.length) this.show(data.sources[0].id);
    else this.source.replaceChildren(Object.assign(made("div", "cp-quiet"), { textContent: data.empty }));
  }

  place({ source, words }) {
    const button = made("button");
    Object.assign(button, { type: "button", dir: "auto", textContent: `“${words.length > 40 ? words.slice(0, 39) + "…" : words}”` });
    button.onclick = () => this.find(words, source);
    return button;
  }

  show(id, start = 0, end = 0) {
    const { name, text, picture } = this.data.sources.find((source) => source.id === id);
    [this.at, this.end, this.names.value] = [id, end, id];
    const [before, passage, after] = [text.slice(0, start), text.slice(start, end), text.slice(end)];
    // What was found in a picture's text is shown in the text.
    drawPlace(this.source, { words: name, before, text: passage, after, picture: end > start ? "" : picture });
  }

  /** Goes to the words, else to the longest of them that a source has; `from` goes on from there. */
  find(words, first = this.at, from = 0) {
    const wanted = folded(words.trim());
    if (!wanted || !this.data.sources.length) return;
    const parts = [...new Intl.Segmenter(undefined, { granularity: "word" }).segment(wanted)]
      .filter((part) => part.isWordLike && (part.segment.length >= LEAST || /[\p{N}\p{Lo}]/u.test(part.segment)))
      .map((part) => part.segment).sort((a, b) => b.length - a.length);
    const ids = [first, ...this.data.sources.map((source) => source.id).filter((id) => id !== first)];
    for (const sought of [wanted, ...parts]) {
      for (const [id, start] of [...ids.map((id) => [id, id === first ? from : 0]), [first, 0]]) {
        const at = this.folded.get(id)?.indexOf(sought, start) ?? -1;
        if (at < 0) continue;
        this.said.textContent = sought === wanted ? "" : `Not “${words.trim()}”, but “${sought}” is here.`;
        return this.show(id, at, at + sought.length);
      }
    }
    this.said.textContent = `“${words.trim()}” is in no source.`;
  }

  leave() {
    document.removeEventListener("counterpoint-look", this.look);
  }
}

export default ({ data, parentElement }) => {
  let reader = MOUNTED.get(parentElement);
  if (!reader) {
    reader = new SourceReader(parentElement.querySelector(".cp-sr"));
    MOUNTED.set(parentElement, reader);
  }
  reader.take(data);
  return () => reader.leave();
};
