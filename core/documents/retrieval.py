"""Splits sources into passages, indexes them, and retrieves the passages relevant to a statement.

Source: CEDA 3.1, agent A (cosine); bm25 is added because encoders represent numbers poorly. A
model's description of an image is a source of its own, so that it never passes for words in it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import regex

from core.documents.segmentation import (
    extract_query_terms,
    extract_terms,
    is_ended,
    split_sentences,
)
from core.llm.encoder import Embedder, Matrix
from core.runtime.concurrency import StopSignal
from core.schema.events import ImageDescribed
from core.schema.records import Passage, Source, TextBlock
from core.store import Store
from core.store.cases import IndexedPassage, PassageVectors

ENCODING_BATCH = 96  # texts between two reports of progress; what providers take at once
BM25_WEIGHT = 0.5  # weight of the best bm25 match relative to the best cosine match
BM25_K1, BM25_B, MIN_TERM_WEIGHT = 1.2, 0.75, 1e-6  # SQLite's
MIN_DIVISOR = 1e-9
MAX_CANDIDATES = 50
DESCRIPTION_SUFFIX = "#seen"
CONTEXT_KINDS = frozenset({"heading", "chart label"})  # blocks that are not passages
HEADING_SEPARATOR = " > "
MAX_HEADING_LENGTH = 120
MAX_PATH_HEADINGS = 3  # headings of a path besides the first
TWO_LETTERS = regex.compile(r"\p{L}\P{L}*\p{L}|[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
ANY_LETTER = regex.compile(r"\p{L}")
WEB_ADDRESS = regex.compile(r"\W*(?:https?://|www\.|doi:)\S+\W*", regex.I)

IndexProgress = Callable[[int, int], None]
PassageKey = tuple[str, int]  # a source and the number of its passage


def split_passages(source: Source) -> list[IndexedPassage]:
    """Return the source's sentences and table rows as passages, in order.

    Headings, chart labels and captions that are not sentences are context of other passages; lone
    numbers and web addresses are left out.
    """
    pages = [(page.start, page.number) for page in source.pages]
    passages: list[IndexedPassage] = []
    for block in source.blocks or (TextBlock("paragraph", 0, len(source.text)),):
        for start, end in _split_block(source, block):
            text = source.text[start:end]
            if TWO_LETTERS.search(text) and not WEB_ADDRESS.fullmatch(text):
                index = bisect_right(pages, (start, 1 << 62)) - 1
                page = pages[index][1] if index >= 0 else None
                passages.append(IndexedPassage(source.id, len(passages), page, start, end, text))
    return passages


def _split_block(source: Source, block: TextBlock) -> Iterator[tuple[int, int]]:
    """Yield `[start, end)` of each sentence of the block; a table row is one piece.

    A piece without letters (“12.”) is joined to its neighbour.
    """
    text = source.text[block.start : block.end]
    if block.kind in CONTEXT_KINDS or (block.kind == "caption" and not is_ended(text)):
        return
    if block.kind == "table row":
        yield block.start, block.end
        return
    pending: tuple[int, int] | None = None
    for start, end in split_sentences(source.text, source.language, block.start, block.end):
        if pending and not (
            ANY_LETTER.search(source.text, *pending) and ANY_LETTER.search(source.text, start, end)
        ):
            pending = pending[0], end
            continue
        if pending:
            yield pending
        pending = start, end
    if pending:
        yield pending


def list_heading_paths(source: Source) -> list[tuple[int, str]]:
    """Return (offset, path of the headings that apply from there on), in order.

    A caption applies to the rows and labels right below it, a title to the whole source.
    """
    paths = [(0, "")]
    open_headings: list[tuple[int, str]] = []
    caption = ""
    for block in source.blocks:
        text = " ".join(source.text[block.start : block.end].strip("# ").split())[
            :MAX_HEADING_LENGTH
        ]
        if block.kind == "heading":
            open_headings = [h for h in open_headings if h[0] < block.level] + [(block.level, text)]
            caption = ""
        elif block.kind == "caption":
            caption = text
        elif block.kind not in ("table row", "chart label"):
            caption = ""
        names = [name for _, name in (*open_headings[:1], *open_headings[1:][-MAX_PATH_HEADINGS:])]
        names += [caption] if caption else []
        path = HEADING_SEPARATOR.join(names)
        if path != paths[-1][1]:
            paths.append((block.start, path))
    return paths


def find_heading(paths: Sequence[tuple[int, str]], start: int) -> str:
    """Return the heading path that applies at that offset."""
    return paths[bisect_right(paths, (start, "\U0010ffff")) - 1][1]


def ensure_index(
    store: Store, source: Source, encoder: Embedder, stop: StopSignal, progress: IndexProgress
) -> bool:
    """Index the source unless it is indexed; return True if it was.

    `progress` gets (distinct passages done, distinct passages in total); repeated ones are encoded
    once. The index is written in one transaction. It is not kept if the reading was discarded or
    replaced meanwhile; the caller that needs it reads and indexes again.
    """
    if store.readings.has_index(source.id, encoder.id):
        return True
    passages = split_passages(source)
    paths = list_heading_paths(source)
    # With the page's title and section before each sentence, 91 of 100 decisive sentences were
    # among the five best; without them 79 were (FM2, n = 390).
    headings = [find_heading(paths, passage.start) for passage in passages]
    texts = [f"{h}: {p.text}" if h else p.text for h, p in zip(headings, passages, strict=True)]
    distinct = list(dict.fromkeys(texts))
    parts = []
    progress(0, len(distinct))
    for begin in range(0, len(distinct), ENCODING_BATCH):
        parts.append(encoder.encode(distinct[begin : begin + ENCODING_BATCH], stop))
        progress(min(begin + ENCODING_BATCH, len(distinct)), len(distinct))
    row_of_text = {text: number for number, text in enumerate(distinct)}
    rows = [row_of_text[text] for text in texts]
    vectors = np.concatenate(parts)[rows] if parts else np.zeros((0, encoder.width), np.float32)
    entries = [
        (passage, " ".join(extract_terms(passage.text, source.language))) for passage in passages
    ]
    muted = encoder.muted(texts).astype(np.uint8) if texts else np.zeros(0, np.uint8)
    with store.writing():
        reading = store.readings.get(source.id, source.name)
        is_current = reading is not None and reading.text == source.text
        if is_current and not store.readings.has_index(source.id, encoder.id):
            store.readings.save_index(
                source.id,
                encoder.id,
                entries,
                PassageVectors(len(texts), encoder.width, vectors.tobytes(), muted.tobytes()),
            )
    return False


@dataclass(frozen=True)
class _Index:
    """A source's passages and embeddings in memory; rows that are `muted` never match.

    `rows` holds the offsets where table rows begin.
    """

    source: Source
    passages: Sequence[IndexedPassage]
    vectors: Matrix
    muted: np.ndarray[tuple[int], np.dtype[np.bool_]]
    paths: Sequence[tuple[int, str]]
    rows: frozenset[int]


def _load_index(store: Store, source: Source, encoder: str) -> _Index:
    stored = store.readings.vectors(source.id, encoder)
    if stored is None:
        raise LookupError(f"{source.name} is not indexed; ensure_index comes first")
    vectors = np.frombuffer(stored.data, np.float32).reshape(stored.rows, stored.width)
    muted = np.frombuffer(stored.muted, np.uint8).astype(bool)
    rows = frozenset(block.start for block in source.blocks if block.kind == "table row")
    passages, paths = store.readings.passages(source.id), list_heading_paths(source)
    return _Index(source, passages, vectors, muted, paths, rows)


class TermIndex:
    """BM25 over the passages of some sources, as SQLite computes it.

    SQLite's own index is the whole home's: there other projects' documents decide how rare a term
    is, and so change the evidence.
    """

    def __init__(self, terms: Mapping[str, Sequence[Sequence[str]]]) -> None:
        """Index the terms of each source's passages, in order and with repeats."""
        self._keys = [(source, n) for source, rows in terms.items() for n in range(len(rows))]
        lengths = np.array([len(row) for rows in terms.values() for row in rows], float)
        self._lengths = lengths / max(1.0, lengths.sum() / max(1, len(lengths)))  # mean 1
        self._rows_by_term: defaultdict[str, list[int]] = defaultdict(list)
        for number, row in enumerate(chain.from_iterable(terms.values())):
            for term in row:
                self._rows_by_term[term].append(number)

    def score(self, terms: Iterable[str], limit: int) -> dict[PassageKey, float]:
        """Return the scores of the best passages with any of the terms, best first."""
        scores = np.zeros(len(self._keys))
        for term in terms:
            places = np.array(self._rows_by_term.get(term, ()), np.intp)
            rows, counts = np.unique(places, return_counts=True)
            odds = (len(self._keys) - len(rows) + 0.5) / (len(rows) + 0.5)
            length = 1 - BM25_B + BM25_B * self._lengths[rows]
            share = counts * (BM25_K1 + 1) / (counts + BM25_K1 * length)
            scores[rows] += max(MIN_TERM_WEIGHT, math.log(odds)) * share
        best = [row for row in np.argsort(-scores, kind="stable")[:limit] if scores[row] > 0]
        return {self._keys[row]: float(scores[row]) for row in best}


class Retriever:
    """Searches the sources of one case; made once per run.

    It uses the store only while it is made, as an embedder may take long to answer. Searches may
    then run on several threads.
    """

    def __init__(self, store: Store, encoder: Embedder, sources: Sequence[Source]) -> None:
        self._encoder = encoder
        self._indexes = {source.id: _load_index(store, source, encoder.id) for source in sources}
        self._terms = TermIndex({name: store.readings.terms(name) for name in self._indexes})
        self._known: dict[str, Matrix] = {}

    def prepare(self, queries: Sequence[str], stop: StopSignal) -> None:
        """Embed all queries in one call, as providers' models bill and wait per call."""
        if self._indexes:
            self._known.update(zip(queries, self._encoder.encode(queries, stop), strict=True))

    def retrieve(self, query: str, language: str, n: int) -> list[Passage]:
        """Return the n best passages, best first, each with its neighbours for reading.

        Two scores are added: the cosine as its share of the way from the sources' median to their
        best, and half of bm25's share of its best. Fusing by rank instead lost 2 to 7 of 100
        decisive sentences among the best five.
        """
        cosines = self._cosines(query)
        bm25 = self._terms.score(extract_query_terms(query, language), MAX_CANDIDATES)
        all_cosines = np.concatenate([*cosines.values(), np.zeros(0)])
        median, best = (
            (np.nanmedian(all_cosines), np.nanmax(all_cosines)) if len(all_cosines) else (0.0, 0.0)
        )
        most = max(bm25.values(), default=0.0)
        scores: dict[PassageKey, float] = {}
        for key in {*self._closest(cosines), *bm25}:
            cosine = float(cosines[key[0]][key[1]]) if key[0] in cosines else np.nan
            similarity = (
                0.0 if np.isnan(cosine) else (cosine - median) / max(best - median, MIN_DIVISOR)
            )
            scores[key] = float(
                similarity + BM25_WEIGHT * bm25.get(key, 0.0) / max(most, MIN_DIVISOR)
            )
        ranked = sorted(scores, key=lambda key: (-scores[key], key))
        return self._distinct(ranked, scores, cosines, n)

    def _cosines(self, query: str) -> dict[str, Matrix]:
        if not self._indexes or bool(self._encoder.muted([query])[0]):
            return {}
        prepared = self._known.get(query)
        vector = self._encoder.encode([query])[0] if prepared is None else prepared
        cosines = {
            name: np.where(index.muted, np.float32(np.nan), index.vectors @ vector)
            for name, index in self._indexes.items()
        }
        return cosines if any(not np.isnan(values).all() for values in cosines.values()) else {}

    def _closest(self, cosines: Mapping[str, Matrix]) -> list[PassageKey]:
        closest = [
            (float(values[number]), name, int(number))
            for name, values in cosines.items()
            for number in np.argsort(-values, kind="stable")[:MAX_CANDIDATES]
            if not np.isnan(values[number])
        ]
        closest.sort(key=lambda item: (-item[0], item[1], item[2]))
        return [(name, number) for _, name, number in closest[:MAX_CANDIDATES]]

    def _distinct(
        self,
        ranked: Sequence[PassageKey],
        scores: Mapping[PassageKey, float],
        cosines: Mapping[str, Matrix],
        n: int,
    ) -> list[Passage]:
        """Return the first n passages that differ in words, or as table rows in their heading too.

        Each comes with its neighbours in the same section; a table row comes alone.
        """
        chosen: list[Passage] = []
        seen: set[tuple[str, ...]] = set()
        for name, number in ranked:
            index = self._indexes[name]
            passage = index.passages[number]
            heading = find_heading(index.paths, passage.start)
            is_row = passage.start in index.rows
            content = (
                *extract_terms(passage.text, index.source.language),
                *((heading,) if is_row else ()),
            )
            if content in seen:
                continue
            seen.add(content)
            cosine = float(cosines[name][number]) if name in cosines else np.nan
            chosen.append(
                Passage(
                    id=f"{name[:12]}:{number}",
                    source_id=name,
                    source=index.source.name,
                    is_image=index.source.is_image,
                    page=passage.page,
                    start=passage.start,
                    end=passage.end,
                    text=passage.text,
                    score=scores[name, number],
                    before="" if is_row else _read_neighbour(index, number - 1, heading),
                    after="" if is_row else _read_neighbour(index, number + 1, heading),
                    similarity=None if np.isnan(cosine) else cosine,
                    heading=heading,
                )
            )
            if len(chosen) == n:
                break
        return chosen


def _read_neighbour(index: _Index, number: int, heading: str) -> str:
    """Return the passage's text if it exists, is in that section and no table row, else ""."""
    if not 0 <= number < len(index.passages) or index.passages[number].start in index.rows:
        return ""
    neighbour = index.passages[number]
    return neighbour.text if find_heading(index.paths, neighbour.start) == heading else ""


def build_description_passages(
    images: Iterable[ImageDescribed], language: str, by_ocr: str
) -> list[Passage]:
    """Return a passage for each sentence of each description that is not OCR's (agent `by_ocr`)."""
    passages: list[Passage] = []
    for image in images:
        if image.agent == by_ocr or not image.readable:
            continue
        for number, item in enumerate(split_sentences(image.text, language)):
            passages.append(
                Passage(
                    id=f"{image.source_id}{DESCRIPTION_SUFFIX}:{number}",
                    source_id=f"{image.source_id}{DESCRIPTION_SUFFIX}",
                    source=f"{image.name} (as {image.agent} sees it)",
                    is_image=True,
                    page=None,
                    start=item.start,
                    end=item.end,
                    text=image.text[item.start : item.end],
                    score=0.0,
                )
            )
    return passages


def map_description_texts(images: Mapping[str, ImageDescribed]) -> dict[str, str]:
    """Return the text of every description under its source's id."""
    return {f"{i}{DESCRIPTION_SUFFIX}": event.text for i, event in images.items()}
