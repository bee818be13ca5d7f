"""Builds a source's index once: its sentences, their search terms, their embeddings."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from core.concurrency import Stop
from core.evidence.segment import sentences
from core.evidence.terms import terms
from core.models.encoder import PassageEmbedder
from core.records import Source
from core.store import Store
from core.store.readings import IndexedPassage, Vectors

BATCH = 256
BY_LINE = frozenset({"table", "image"})

Progress = Callable[[int, int], None]


def passages_of(source: Source) -> list[IndexedPassage]:
    """The source's sentences as passages, in order."""
    found = sentences(source.text, source.language, source.pages, by_line=source.kind in BY_LINE)
    return [
        IndexedPassage(
            source.id, number, item.page, item.start, item.end, source.text[item.start : item.end]
        )
        for number, item in enumerate(found)
    ]


def ensure_index(
    store: Store, source: Source, encoder: PassageEmbedder, stop: Stop, progress: Progress
) -> bool:
    """Index the source unless that was done before; True when it was.

    `progress` gets (different passages done, different passages in all): what repeats is encoded
    once. One transaction: an index is there whole or not at all. None is kept where the reading
    was dropped or replaced meanwhile; who needs the index reads and asks again.
    """
    if store.readings.has_index(source.id, encoder.id):
        return True
    passages = passages_of(source)
    texts = [passage.text for passage in passages]
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
