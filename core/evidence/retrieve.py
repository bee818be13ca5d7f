"""Finds the passages that speak about a statement: embeddings and terms, fused by rank.

Source: CEDA 3.1, agent A (cosine between prompt and chunks, the n closest form the context). We
add FTS5's bm25 because MiniLM knows only English well and numbers hardly at all, and fuse both
lists by reciprocal rank. Passages of the same words are dropped, so that n say n things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.concurrency import Stop
from core.evidence.terms import query_terms, terms
from core.models.encoder import Matrix, PassageEmbedder
from core.records import Passage, Source
from core.store import Store
from core.store.readings import IndexedPassage

RANK_CONSTANT = 60
CANDIDATES = 50
SENTENCE_ENDS = (".", "!", "?", "。", "！", "？", "؟", "।", "…")
HEADING_CHARACTERS = 160


@dataclass(frozen=True)
class _Index:
    """A source's embeddings in memory; `muted` rows take no part."""

    source: Source
    vectors: Matrix
    muted: np.ndarray[tuple[int], np.dtype[np.bool_]]


class Retriever:
    """Searches the sources of one case; made once per run."""

    def __init__(self, store: Store, encoder: PassageEmbedder, sources: Sequence[Source]) -> None:
        self._store = store
        self._encoder = encoder
        self._sources = {source.id: source for source in sources}
        self._indexes = [self._load(source) for source in sources]
        self._known: dict[str, Matrix] = {}

    def _load(self, source: Source) -> _Index:
        stored = self._store.readings.vectors(source.id, self._encoder.id)
        if stored is None:
            raise LookupError(f"{source.name} is not indexed; ensure_index comes first")
        vectors = np.frombuffer(stored.data, np.float32).reshape(stored.rows, stored.width)
        return _Index(source, vectors, np.frombuffer(stored.muted, np.uint8).astype(bool))

    def prepare(self, queries: Sequence[str], stop: Stop) -> None:
        """Embed all queries in one go: a provider's model wants one call, not one a query."""
        if self._indexes:
            self._known.update(zip(queries, self._encoder.encode(queries, stop), strict=True))

    def retrieve(self, query: str, language: str, n: int) -> list[Passage]:
        """The n closest passages, best first, each with its neighbours for reading."""
        similar = self._by_meaning(query)
        matching = self._store.readings.match(
            query_terms(query, language), list(self._sources), CANDIDATES
        )
        scores: dict[tuple[str, int], float] = {}
        for ranking in (list(similar), [(source, number) for source, number, _ in matching]):
            for rank, key in enumerate(ranking):
                scores[key] = scores.get(key, 0.0) + 1.0 / (RANK_CONSTANT + rank)
        ranked = sorted(scores, key=lambda key: (-scores[key], key))
        return self._distinct(ranked, scores, similar, n)

    def _by_meaning(self, query: str) -> dict[tuple[str, int], float]:
        """(source id, passage number) to cosine, closest first; empty where muted."""
        if not self._indexes or bool(self._encoder.muted([query])[0]):
            return {}
        known = self._known.get(query)
        vector = self._encoder.encode([query])[0] if known is None else known
        found: list[tuple[float, str, int]] = []
        for index in self._indexes:
            cosines = np.where(index.muted, -1.0, index.vectors @ vector)
            for number in np.argsort(-cosines, kind="stable")[:CANDIDATES]:
                if not index.muted[number]:
                    found.append((float(cosines[number]), index.source.id, int(number)))
        found.sort(key=lambda item: (-item[0], item[1], item[2]))
        return {(source, number): cosine for cosine, source, number in found[:CANDIDATES]}

    def _distinct(
        self,
        ranked: Sequence[tuple[str, int]],
        scores: dict[tuple[str, int], float],
        similar: dict[tuple[str, int], float],
        n: int,
    ) -> list[Passage]:
        chosen: list[Passage] = []
        said: set[tuple[str, ...]] = set()
        for source_id, number in ranked:
            around = self._around(source_id, number)
            text = around[number].text
            says = _says(text, self._sources[source_id].language)
            if says in said:
                continue
            said.add(says)
            key = (source_id, number)
            chosen.append(self._passage(around, number, scores[key], similar.get(key)))
            if len(chosen) == n:
                break
        return chosen

    def _around(self, source_id: str, number: int) -> dict[int, IndexedPassage]:
        near = self._store.readings.passages(source_id, [number - 1, number, number + 1])
        return {passage.number: passage for passage in near}

    def _passage(
        self,
        around: dict[int, IndexedPassage],
        number: int,
        score: float,
        similarity: float | None,
    ) -> Passage:
        here = around[number]
        source = self._sources[here.source_id]
        before, after = around.get(number - 1), around.get(number + 1)
        return Passage(
            id=f"{source.id[:12]}:{number}",
            source_id=source.id,
            source=source.name,
            is_image=source.is_image,
            page=here.page,
            start=here.start,
            end=here.end,
            text=here.text,
            score=score,
            similarity=similarity,
            before=before.text if before else "",
            after=after.text if after else "",
            heading=heading_of(source),
        )


def _says(text: str, language: str) -> tuple[str, ...]:
    """The text's terms in order: two that differ in a number, name or negation say two things."""
    return tuple(terms(text, language))


def heading_of(source: Source) -> str:
    """The source's first line where it may be a title, which names what the rest is about.

    A line that ends as sentences do is no title: its words belong to it alone.
    """
    first = source.text.lstrip()[: 2 * HEADING_CHARACTERS].splitlines()
    line = first[0][:HEADING_CHARACTERS].strip("# ") if first else ""
    return "" if line.rstrip("”\"')»」 ").endswith(SENTENCE_ENDS) else line
