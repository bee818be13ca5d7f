"""From a source to its passages, and from a statement to the passages that speak about it.

A source's index is built once: its sentences and table rows, their search terms (FTS5), their
embeddings. Retrieval fuses both by rank. Source: CEDA 3.1, agent A (cosine between prompt and
chunks, the n closest form the context); we add bm25 because an encoder knows numbers hardly at
all, and languages it was not trained on not either. What a model said of an image becomes passages
too, of a source of their own, so that quotes of it are never taken for words in the image.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import regex

from core.documents.segmentation import is_ended, query_terms, sentences, terms
from core.llm.encoder import Embedder, Matrix
from core.runtime.concurrency import Stop
from core.schema.events import ImageDescribed
from core.schema.records import Block, Passage, Source
from core.store import Store
from core.store.cases import IndexedPassage, Vectors

BATCH = 256
WORDS_COUNT = 0.5  # what the best match of words counts beside the best match of meaning
TINY = 1e-9
CANDIDATES = 50
SEEN = "#seen"
CONTEXT = frozenset({"heading", "chart label"})  # blocks that are no passages
BETWEEN_HEADINGS = " > "
LONGEST_HEADING = 120
DEEPEST_PATH = 3  # headings of a path beside the first
LETTERS = regex.compile(r"\p{L}\P{L}*\p{L}|[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
LETTER = regex.compile(r"\p{L}")
ADDRESS = regex.compile(r"\W*(?:https?://|www\.|doi:)\S+\W*", regex.I)

Progress = Callable[[int, int], None]


def passages_of(source: Source) -> list[IndexedPassage]:
    """The source's sentences and table rows in order.

    Headings, labels of charts and captions that are no sentences are context of other passages;
    lone figures and addresses are left out.
    """
    pages = [(page.start, page.number) for page in source.pages]
    found: list[IndexedPassage] = []
    for block in source.blocks or (Block("paragraph", 0, len(source.text)),):
        for start, end in _pieces(source, block):
            text = source.text[start:end]
            if LETTERS.search(text) and not ADDRESS.fullmatch(text):
                place = bisect_right(pages, (start, 1 << 62)) - 1
                page = pages[place][1] if place >= 0 else None
                found.append(IndexedPassage(source.id, len(found), page, start, end, text))
    return found


def _pieces(source: Source, block: Block) -> Iterator[tuple[int, int]]:
    """`[start, end)` of the block's sentences; a row is one piece.

    A piece without letters (“12.”) belongs to the one beside it.
    """
    text = source.text[block.start : block.end]
    if block.kind in CONTEXT or (block.kind == "caption" and not is_ended(text)):
        return
    if block.kind == "table row":
        yield block.start, block.end
        return
    held: tuple[int, int] | None = None
    for start, end in sentences(source.text, source.language, block.start, block.end):
        if held and not (
            LETTER.search(source.text, *held) and LETTER.search(source.text, start, end)
        ):
            held = held[0], end
            continue
        if held:
            yield held
        held = start, end
    if held:
        yield held


def heading_paths(source: Source) -> list[tuple[int, str]]:
    """(offset, path of the headings that hold from there on), in order.

    A caption belongs to the rows and labels right below it, a title to the whole source.
    """
    found = [(0, "")]
    open_headings: list[tuple[int, str]] = []
    caption = ""
    for block in source.blocks:
        text = " ".join(source.text[block.start : block.end].strip("# ").split())[:LONGEST_HEADING]
        if block.kind == "heading":
            open_headings = [h for h in open_headings if h[0] < block.level] + [(block.level, text)]
            caption = ""
        elif block.kind == "caption":
            caption = text
        elif block.kind not in ("table row", "chart label"):
            caption = ""
        names = [name for _, name in (*open_headings[:1], *open_headings[1:][-DEEPEST_PATH:])]
        names += [caption] if caption else []
        path = BETWEEN_HEADINGS.join(names)
        if path != found[-1][1]:
            found.append((block.start, path))
    return found


def heading_at(paths: Sequence[tuple[int, str]], start: int) -> str:
    """The path that holds at that offset."""
    return paths[bisect_right(paths, (start, "\U0010ffff")) - 1][1]


def _in_context(heading: str, text: str) -> str:
    """What is embedded: a sentence says most of it under its headings.

    With the page's title and section before them, 91 of 100 decisive sentences were among the five
    best where 79 were without (FM2, n = 390).
    """
    return f"{heading}: {text}" if heading else text


def ensure_index(
    store: Store, source: Source, encoder: Embedder, stop: Stop, progress: Progress
) -> bool:
    """Index the source unless that was done before; True when it was.

    `progress` gets (different passages done, different passages in all): what repeats is encoded
    once. One transaction: an index is there whole or not at all. None is kept where the reading
    was dropped or replaced meanwhile; who needs the index reads and asks again.
    """
    if store.readings.has_index(source.id, encoder.id):
        return True
    passages = passages_of(source)
    paths = heading_paths(source)
    texts = [_in_context(heading_at(paths, passage.start), passage.text) for passage in passages]
    distinct = list(dict.fromkeys(texts))
    parts = []
    for begin in range(0, len(distinct), BATCH):
        parts.append(encoder.encode(distinct[begin : begin + BATCH], stop))
        progress(min(begin + BATCH, len(distinct)), len(distinct))
    place = {text: number for number, text in enumerate(distinct)}
    rows = [place[text] for text in texts]
    vectors = np.concatenate(parts)[rows] if parts else np.zeros((0, encoder.width), np.float32)
    entries = [(passage, " ".join(terms(passage.text, source.language))) for passage in passages]
    muted = encoder.muted(texts).astype(np.uint8) if texts else np.zeros(0, np.uint8)
    with store.writing():
        kept = store.readings.get(source.id, source.name)
        is_current = kept is not None and kept.text == source.text
        if is_current and not store.readings.has_index(source.id, encoder.id):
            store.readings.save_index(
                source.id,
                encoder.id,
                entries,
                Vectors(len(texts), encoder.width, vectors.tobytes(), muted.tobytes()),
            )
    return False


@dataclass(frozen=True)
class _Index:
    """A source's embeddings in memory; `muted` rows take no part. `rows` are where rows begin."""

    source: Source
    vectors: Matrix
    muted: np.ndarray[tuple[int], np.dtype[np.bool_]]
    paths: Sequence[tuple[int, str]]
    rows: frozenset[int]


Key = tuple[str, int]  # a source and the number of its passage


class Retriever:
    """Searches the sources of one case; made once per run."""

    def __init__(self, store: Store, encoder: Embedder, sources: Sequence[Source]) -> None:
        self._store = store
        self._encoder = encoder
        self._indexes = {source.id: self._load(source) for source in sources}
        self._known: dict[str, Matrix] = {}

    def _load(self, source: Source) -> _Index:
        stored = self._store.readings.vectors(source.id, self._encoder.id)
        if stored is None:
            raise LookupError(f"{source.name} is not indexed; ensure_index comes first")
        vectors = np.frombuffer(stored.data, np.float32).reshape(stored.rows, stored.width)
        muted = np.frombuffer(stored.muted, np.uint8).astype(bool)
        rows = frozenset(block.start for block in source.blocks if block.kind == "table row")
        return _Index(source, vectors, muted, heading_paths(source), rows)

    def prepare(self, queries: Sequence[str], stop: Stop) -> None:
        """Embed all queries in one go: a provider's model wants one call, not one a query."""
        if self._indexes:
            self._known.update(zip(queries, self._encoder.encode(queries, stop), strict=True))

    def retrieve(self, query: str, language: str, n: int) -> list[Passage]:
        """The n best passages, best first, each with its neighbours for reading.

        Scores are fused: the cosine as its share of the way from the sources' median to their
        best, and half of bm25's share of the best. Fused by rank instead, 2 to 7 of 100 decisive
        sentences fewer were among five.
        """
        cosines = self._cosines(query)
        matches = self._store.readings.match(
            query_terms(query, language), list(self._indexes), CANDIDATES
        )
        words = {(source, number): max(0.0, -rank) for source, number, rank in matches}
        every = np.concatenate([*cosines.values(), np.zeros(0)])
        middle, best = (np.nanmedian(every), np.nanmax(every)) if len(every) else (0.0, 0.0)
        most = max(words.values(), default=0.0)
        scores: dict[Key, float] = {}
        for key in {*self._closest(cosines), *words}:
            cosine = float(cosines[key[0]][key[1]]) if key[0] in cosines else np.nan
            likeness = 0.0 if np.isnan(cosine) else (cosine - middle) / max(best - middle, TINY)
            scores[key] = float(likeness + WORDS_COUNT * words.get(key, 0.0) / max(most, TINY))
        ranked = sorted(scores, key=lambda key: (-scores[key], key))
        return self._distinct(ranked, scores, cosines, n)

    def _cosines(self, query: str) -> dict[str, Matrix]:
        if not self._indexes or bool(self._encoder.muted([query])[0]):
            return {}
        known = self._known.get(query)
        vector = self._encoder.encode([query])[0] if known is None else known
        found = {
            name: np.where(index.muted, np.float32(np.nan), index.vectors @ vector)
            for name, index in self._indexes.items()
        }
        return found if any(not np.isnan(own).all() for own in found.values()) else {}

    def _closest(self, cosines: Mapping[str, Matrix]) -> list[Key]:
        found = [
            (float(own[number]), name, int(number))
            for name, own in cosines.items()
            for number in np.argsort(-own, kind="stable")[:CANDIDATES]
            if not np.isnan(own[number])
        ]
        found.sort(key=lambda item: (-item[0], item[1], item[2]))
        return [(name, number) for _, name, number in found[:CANDIDATES]]

    def _distinct(
        self,
        ranked: Sequence[Key],
        scores: Mapping[Key, float],
        cosines: Mapping[str, Matrix],
        n: int,
    ) -> list[Passage]:
        """The first n that differ: in their words, and rows of tables in what they stand under."""
        chosen: list[Passage] = []
        said: set[tuple[str, ...]] = set()
        for name, number in ranked:
            around = {
                near.number: near
                for near in self._store.readings.passages(name, [number - 1, number, number + 1])
            }
            index, here = self._indexes[name], around[number]
            heading = heading_at(index.paths, here.start)
            under = (heading,) if here.start in index.rows else ()
            says = (*terms(here.text, index.source.language), *under)
            if says in said:
                continue
            said.add(says)
            cosine = float(cosines[name][number]) if name in cosines else np.nan
            found = self._passage(index, around, number, heading)
            similarity = None if np.isnan(cosine) else cosine
            chosen.append(replace(found, score=scores[name, number], similarity=similarity))
            if len(chosen) == n:
                break
        return chosen

    def _passage(
        self, index: _Index, around: Mapping[int, IndexedPassage], number: int, heading: str
    ) -> Passage:
        here, source = around[number], index.source

        def near(step: int) -> str:
            other = around.get(number + step)
            if other is None or {here.start, other.start} & index.rows:
                return ""
            return other.text if heading_at(index.paths, other.start) == heading else ""

        return Passage(
            id=f"{source.id[:12]}:{number}",
            source_id=source.id,
            source=source.name,
            is_image=source.is_image,
            page=here.page,
            start=here.start,
            end=here.end,
            text=here.text,
            score=0.0,
            before=near(-1),
            after=near(1),
            heading=heading,
        )


def described_passages(
    images: Iterable[ImageDescribed], language: str, by_ocr: str
) -> list[Passage]:
    """A passage for each sentence of each description that is not OCR's (`by_ocr` is its agent)."""
    found: list[Passage] = []
    for image in images:
        if image.agent == by_ocr or not image.readable:
            continue
        for number, item in enumerate(sentences(image.text, language)):
            found.append(
                Passage(
                    id=f"{image.source_id}{SEEN}:{number}",
                    source_id=f"{image.source_id}{SEEN}",
                    source=f"{image.name} (as {image.agent} sees it)",
                    is_image=True,
                    page=None,
                    start=item.start,
                    end=item.end,
                    text=image.text[item.start : item.end],
                    score=0.0,
                )
            )
    return found


def described_texts(images: Mapping[str, ImageDescribed]) -> dict[str, str]:
    """The text of every description under its source's id."""
    return {f"{i}{SEEN}": event.text for i, event in images.items()}
