"""Evidence windows: choose the stretches of evidence to read with a statement, and read them.

A window is a passage with its neighbours, which show who "he" is; a table row stands alone. The
best passages are also read alone, because a reader overlooks a denial among other sentences, and
joined in one more window, for statements that need several passages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from core.baseline.entailment import EntailmentReader, EntailmentReading, TokenDoubt
from core.baseline.segmenter import find_opening_pronoun
from core.baseline.value_comparison import is_table_row
from core.documents.segmentation import (
    IS_UNSPACED,
    UNKNOWN_LANGUAGE,
    detect_language,
    extract_query_terms,
    extract_terms,
    split_sentences,
)
from core.runtime.concurrency import StopSignal
from core.schema.records import Case, Passage, Statement

MAX_WINDOW_CHARS = 350
"""Characters of a window, about 80 tokens; a third of that in scripts without spaces.

Readers overlook much in wider windows: adding one of 800 characters brought no gain.
"""
MAX_WINDOWS = 10
SINGLE_PASSAGE_WINDOWS = 3
"""Number of best passages that are also read without their neighbours."""
MAX_SHORT_ANSWER_WORDS = 8
UNREAD_WINDOW = EntailmentReading(0.0, 0.0, 1.0)
COPY_READING = EntailmentReading(0.99, 0.005, 0.005)
"""The reading of a window that has the statement word for word."""


@dataclass(frozen=True)
class EvidenceWindow:
    """A stretch of evidence that is read with a statement."""

    text: str
    passages: tuple[Passage, ...]
    """The passages that it covers, at least one; the best-ranked one first."""
    start: int | None = None
    """`[start, end)` in the source's text; None if the window joins several places."""
    end: int | None = None
    reading: EntailmentReading = UNREAD_WINDOW
    is_joined: bool = False
    """True if it joins passages that other windows hold too."""

    @property
    def passage(self) -> Passage:
        """Return the best-ranked passage that it covers."""
        return self.passages[0]


@dataclass(frozen=True)
class StatementReading:
    """The readings of one statement over all windows."""

    claim: str
    """The claim that was read: the statement, after its question if it answers one."""
    own_start: int
    """Offset in `claim` at which the statement's own words begin."""
    windows: tuple[EvidenceWindow, ...]
    """In retrieval's order of rank; the last one may join several passages."""
    is_known: bool = True
    """False if the reader does not know the language of the statement or of the evidence.

    The windows are then unread; values and words can still be compared.
    """
    is_comparable: bool = True
    """False if the statement and its evidence are in different languages and nothing is read."""

    @property
    def supporting(self) -> EvidenceWindow | None:
        """Return the window that supports the statement most."""
        return max(self.windows, key=lambda w: w.reading.supported, default=None)

    @property
    def contradicting(self) -> EvidenceWindow | None:
        """Return the window that contradicts the statement most."""
        return max(self.windows, key=lambda w: w.reading.contradicted, default=None)

    @property
    def doubts(self) -> tuple[TokenDoubt, ...]:
        """Return the least doubt of each token of the statement itself; offsets are in `claim`.

        The minimum is over the three most decided windows: what one does not say another may.
        """
        read = sorted(self.windows, key=lambda w: w.reading.neutral)[:3]
        rows = [window.reading.words for window in read if window.reading.words]
        least = [min(column, key=lambda doubt: doubt.p) for column in zip(*rows, strict=False)]
        return tuple(doubt for doubt in least if doubt.end > self.own_start)


def build_claim(case: Case, statement: Statement) -> tuple[str, int]:
    """Return the claim to read, and the offset in it at which the statement's own words begin.

    An answer that is the whole response, or too short to stand alone, is read after its question.
    """
    words = " ".join(statement.rewrite.split()) or " ".join(statement.text.split())
    question = " ".join(case.question.split())
    if not question:
        return words, 0
    is_whole = statement.text.strip() == case.response.strip()
    is_short = len(words.split()) <= MAX_SHORT_ANSWER_WORDS and not IS_UNSPACED.search(words)
    if not (is_whole or is_short):
        return words, 0
    return f"{question} {words}", len(question) + 1


def read_statement(
    case: Case,
    statement: Statement,
    passages: Sequence[Passage],
    sources: Mapping[str, str],
    reader: EntailmentReader,
    stop: StopSignal | None = None,
) -> StatementReading:
    """Read a statement against its passages, best first; `sources` maps ids to whole texts."""
    claim, own_start = build_claim(case, statement)
    windows = list(build_windows(passages, sources))
    copied = {p.id for p in passages if own_start == 0 and is_copy(case, statement, p)}
    can_read = reader.knows(claim) and any(reader.knows(window.text) for window in windows)
    is_known = can_read or bool(copied)
    if not windows or not is_known:
        # Texts in two languages share hardly any words.
        own = detect_language(claim)
        other = detect_language(" ".join(window.text for window in windows))
        is_comparable = is_known or own == other or UNKNOWN_LANGUAGE in (own, other)
        return StatementReading(claim, own_start, tuple(windows), is_known, is_comparable)
    pairs = [(window.text, claim) for window in windows]
    readings = reader.read(pairs, stop) if can_read else [UNREAD_WINDOW] * len(windows)
    return StatementReading(
        claim,
        own_start,
        tuple(
            replace(w, reading=COPY_READING if copied & {p.id for p in w.passages} else reading)
            for w, reading in zip(windows, readings, strict=True)
        ),
    )


def is_copy(case: Case, statement: Statement, passage: Passage) -> bool:
    """Return True if the passage is the statement word for word, so that it supports it.

    If the statement opens with a pronoun, the response must have the sentence before it too.
    """
    if _flatten(passage.text) != _flatten(statement.text):
        return False
    is_dependent = find_opening_pronoun(passage.text, case.language) is not None
    return not is_dependent or _flatten(passage.before) in _flatten(case.response)


def build_windows(
    passages: Sequence[Passage], sources: Mapping[str, str]
) -> Iterator[EvidenceWindow]:
    """Yield the windows over the passages, each text once.

    Windows with neighbours come first, then the best passages alone, then one that joins several.
    """
    seen: set[str] = set()
    whole = _merge_windows(
        [_window(passage, sources, is_wide=True) for passage in passages], sources
    )
    singles = [
        _window(passage, sources, is_wide=False) for passage in passages[:SINGLE_PASSAGE_WINDOWS]
    ]
    joined = _join_passages(passages)
    for window in (*whole[: MAX_WINDOWS - len(joined)], *singles, *joined):
        if window.text and window.text not in seen:
            seen.add(window.text)
            yield window


def _window(passage: Passage, sources: Mapping[str, str], *, is_wide: bool) -> EvidenceWindow:
    """Return the passage as it is in its source, with the sentences around it if it `is_wide`."""
    whole = sources.get(passage.source_id, "")
    start, end = passage.start, passage.end
    if whole[start:end] != passage.text:
        return EvidenceWindow(_add_heading(passage, passage.text), (passage,))
    if is_wide and not is_table_row(passage.text):
        max_width = _max_width(passage.text)
        if passage.before:
            offset = whole.rfind(passage.before, max(0, start - max_width), start)
            start = offset if offset >= 0 else start
        if passage.after:
            offset = whole.find(passage.after, end, end + max_width)
            end = offset + len(passage.after) if offset >= 0 else end
        if end - start > max_width:
            start, end = passage.start, passage.end
    return EvidenceWindow(_add_heading(passage, whole[start:end]), (passage,), start, end)


def _merge_windows(
    windows: Sequence[EvidenceWindow], sources: Mapping[str, str]
) -> list[EvidenceWindow]:
    """Merge windows that overlap or touch unless they become too wide; best passage first."""
    merged: list[EvidenceWindow] = []
    for window in windows:
        unions = ((i, _merge_pair(other, window, sources)) for i, other in enumerate(merged))
        place, union = next((pair for pair in unions if pair[1]), (0, None))
        if union is None:
            merged.append(window)
        else:
            merged[place] = union
    return merged if len(merged) == len(windows) else _merge_windows(merged, sources)


def _merge_pair(
    one: EvidenceWindow, other: EvidenceWindow, sources: Mapping[str, str]
) -> EvidenceWindow | None:
    """Merge two windows; None if they lie apart, are table rows or would become too wide."""
    if one.passage.source_id != other.passage.source_id:
        return None
    if is_table_row(one.passage.text) or is_table_row(other.passage.text):
        return None
    if one.start is None or one.end is None or other.start is None or other.end is None:
        return None
    source = sources[one.passage.source_id]
    low, high = min(one.end, other.end), max(one.start, other.start)
    start, end = min(one.start, other.start), max(one.end, other.end)
    if source[low:high].strip() or end - start > _max_width(one.text):
        return None
    text = _add_heading(one.passage, source[start:end])
    return EvidenceWindow(text, (*one.passages, *other.passages), start, end)


def _join_passages(passages: Sequence[Passage]) -> list[EvidenceWindow]:
    """Return a window of the best passages in source order; empty if there is only one."""
    chosen: list[Passage] = []
    remaining = _max_width(passages[0].text) if passages else 0
    for passage in passages:
        if len(passage.text) <= remaining:
            chosen.append(passage)
            remaining -= len(passage.text)
    if len(chosen) < 2:
        return []
    in_order = sorted(chosen, key=lambda p: (p.source_id, p.start))
    text = " ".join(_flatten(p.text) for p in in_order)
    return [EvidenceWindow(text, tuple(chosen), is_joined=True)]


def _add_heading(passage: Passage, text: str) -> str:
    """Return the text on one line after its heading, which often names its subject."""
    heading, text = _flatten(passage.heading), _flatten(text)
    if not heading or heading in text or len(heading) > MAX_WINDOW_CHARS // 3:
        return text
    return f"{heading.rstrip('.:')}{': ' if is_table_row(text) else '. '}{text}"


def _max_width(text: str) -> int:
    return MAX_WINDOW_CHARS // 3 if IS_UNSPACED.search(text) else MAX_WINDOW_CHARS


def _flatten(text: str) -> str:
    return " ".join(text.split())


def find_nearest_windows(
    claim: str, texts: Sequence[str], language: str, most: int = 3
) -> list[str]:
    """Return the windows over plain texts that share most terms with the claim, best first.

    It is for texts without an index: short sources, or texts that retrieval has chosen already.
    """
    claim_terms = set(extract_query_terms(claim, language))
    windows = _packed_windows(tuple(texts), language, _max_width(claim))
    ranked = sorted(windows, key=lambda window: -len(claim_terms & window[1]))
    return [text for text, _ in ranked[:most]]


@lru_cache(maxsize=64)
def _packed_windows(
    texts: tuple[str, ...], language: str, width: int
) -> tuple[tuple[str, frozenset[str]], ...]:
    """Pack sentences into windows of at most `width` characters that overlap by a sentence."""
    windows: list[str] = []
    for text in texts:
        run: list[str] = []
        for item in split_sentences(text, language):
            part = _flatten(text[item.start : item.end])
            if run and sum(map(len, run)) + len(part) > width:
                windows.append(" ".join(run))
                run = run[-1:] if len(run[-1]) + len(part) <= width else []
            run.append(part)
        windows += [" ".join(run)] if run else []
    return tuple((window, frozenset(extract_terms(window, language))) for window in windows)
