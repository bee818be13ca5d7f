"""Chooses what of the evidence is read with a statement, and reads it.

A window is a passage with its neighbours, which say whom "he" means; a table row stands alone. The
best passages are read alone too, since a reader overlooks a denial among other sentences, and
joined in one more window, for statements that need several.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from core.baseline.entailment import PairReading, Reader, WordDoubt
from core.baseline.values import is_row
from core.documents.segmentation import (
    IS_UNSPACED,
    UNKNOWN,
    language_of,
    query_terms,
    sentences,
    terms,
)
from core.runtime.concurrency import Stop
from core.schema.records import Case, Passage, Statement

WIDEST = 350
"""Characters of a window, some 80 tokens; a third of it in scripts without blanks.

In wider windows readers overlook much: one of 800 characters beside these was no gain.
"""
MOST_WINDOWS = 10
ALONE = 3
"""Beside them so many of the best passages are read without their neighbours."""
SHORT_ANSWER_WORDS = 8
UNREAD = PairReading(0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Window:
    """A stretch of evidence as it is read with a statement."""

    text: str
    passages: tuple[Passage, ...]
    """Those that it covers; at least one."""
    start: int | None = None
    """`[start, end)` in the source's text; None where the window joins several places."""
    end: int | None = None
    reading: PairReading = UNREAD
    is_joined: bool = False
    """True where it joins passages that other windows hold too."""

    @property
    def passage(self) -> Passage:
        """The best-ranked passage that it covers."""
        return self.passages[0]


@dataclass(frozen=True)
class StatementReading:
    """What the reader made of one statement over all windows."""

    claim: str
    """What was read as the claim: the statement, behind its question where it answers one."""
    own_start: int
    """Where the statement's own words begin in `claim`."""
    windows: tuple[Window, ...]
    """In the order in which retrieval ranks them; the last one may join several passages."""
    is_known: bool = True
    """False where the reader does not know the language of the statement or of the evidence.

    The windows are unread then; values and words can still be compared.
    """
    is_comparable: bool = True
    """False where the statement is in another language than its evidence, and nothing is read."""

    @property
    def supporting(self) -> Window | None:
        """The window that supports the statement most."""
        return max(self.windows, key=lambda w: w.reading.supported, default=None)

    @property
    def contradicting(self) -> Window | None:
        """The window that contradicts the statement most."""
        return max(self.windows, key=lambda w: w.reading.contradicted, default=None)

    @property
    def doubts(self) -> tuple[WordDoubt, ...]:
        """Each piece of the statement's own words with its least doubt over windows that decide.

        What one window does not say another may; offsets are in `claim`.
        """
        read = sorted(self.windows, key=lambda w: w.reading.neutral)[:3]
        rows = [window.reading.words for window in read if window.reading.words]
        least = [min(column, key=lambda doubt: doubt.p) for column in zip(*rows, strict=False)]
        return tuple(doubt for doubt in least if doubt.end > self.own_start)


def claim_of(case: Case, statement: Statement) -> tuple[str, int]:
    """What is read as the claim, and where the statement's own words begin in it.

    An answer that is all of a response, or too short to stand alone, is read behind its question.
    """
    own = " ".join(statement.rewrite.split()) or " ".join(statement.text.split())
    question = " ".join(case.question.split())
    if not question:
        return own, 0
    is_whole = statement.text.strip() == case.response.strip()
    is_short = len(own.split()) <= SHORT_ANSWER_WORDS and not IS_UNSPACED.search(own)
    if not (is_whole or is_short):
        return own, 0
    return f"{question} {own}", len(question) + 1


def read_statement(
    case: Case,
    statement: Statement,
    passages: Sequence[Passage],
    sources: Mapping[str, str],
    reader: Reader,
    stop: Stop | None = None,
) -> StatementReading:
    """Read a statement against its passages, best first; `sources` maps ids to whole texts."""
    claim, own_start = claim_of(case, statement)
    windows = list(windows_of(passages, sources))
    is_known = reader.knows(claim) and any(reader.knows(window.text) for window in windows)
    if not windows or not is_known:
        # Two languages share hardly a word.
        own, other = language_of(claim), language_of(" ".join(window.text for window in windows))
        is_comparable = is_known or own == other or UNKNOWN in (own, other)
        return StatementReading(claim, own_start, tuple(windows), is_known, is_comparable)
    readings = reader.read([(window.text, claim) for window in windows], stop)
    pairs = zip(windows, readings, strict=True)
    return StatementReading(claim, own_start, tuple(replace(w, reading=r) for w, r in pairs))


def windows_of(passages: Sequence[Passage], sources: Mapping[str, str]) -> Iterator[Window]:
    """The windows over the passages, each text once.

    Those with neighbours first, then the best passages alone, and the one that joins several.
    """
    seen: set[str] = set()
    single = _merged([_window(passage, sources, is_wide=True) for passage in passages], sources)
    alone = [_window(passage, sources, is_wide=False) for passage in passages[:ALONE]]
    joined = _joined(passages)
    for window in (*single[: MOST_WINDOWS - len(joined)], *alone, *joined):
        if window.text and window.text not in seen:
            seen.add(window.text)
            yield window


def _window(passage: Passage, sources: Mapping[str, str], *, is_wide: bool) -> Window:
    """The passage as it stands in its source, with the sentences around it where it `is_wide`."""
    whole = sources.get(passage.source_id, "")
    start, end = passage.start, passage.end
    if whole[start:end] != passage.text:
        return Window(_with_heading(passage, passage.text), (passage,))
    if is_wide and not is_row(passage.text):
        widest = _widest(passage.text)
        if passage.before:
            found = whole.rfind(passage.before, max(0, start - widest), start)
            start = found if found >= 0 else start
        if passage.after:
            found = whole.find(passage.after, end, end + widest)
            end = found + len(passage.after) if found >= 0 else end
        if end - start > widest:
            start, end = passage.start, passage.end
    return Window(_with_heading(passage, whole[start:end]), (passage,), start, end)


def _merged(windows: Sequence[Window], sources: Mapping[str, str]) -> list[Window]:
    """Windows that overlap or touch as one, while that is not too wide; best passage first."""
    kept: list[Window] = []
    for window in windows:
        unions = ((i, _union(one, window, sources)) for i, one in enumerate(kept))
        place, union = next((pair for pair in unions if pair[1]), (0, None))
        if union is None:
            kept.append(window)
        else:
            kept[place] = union
    return kept if len(kept) == len(windows) else _merged(kept, sources)


def _union(one: Window, other: Window, sources: Mapping[str, str]) -> Window | None:
    """Two windows as one; None where they lie apart, are of a table, or would be too wide."""
    if one.passage.source_id != other.passage.source_id:
        return None
    if is_row(one.passage.text) or is_row(other.passage.text):
        return None
    if one.start is None or one.end is None or other.start is None or other.end is None:
        return None
    source = sources[one.passage.source_id]
    low, high = min(one.end, other.end), max(one.start, other.start)
    start, end = min(one.start, other.start), max(one.end, other.end)
    if source[low:high].strip() or end - start > _widest(one.text):
        return None
    text = _with_heading(one.passage, source[start:end])
    return Window(text, (*one.passages, *other.passages), start, end)


def _joined(passages: Sequence[Passage]) -> list[Window]:
    """The best passages as one text, in the order of their sources; none where one is all."""
    chosen: list[Passage] = []
    room = _widest(passages[0].text) if passages else 0
    for passage in passages:
        if len(passage.text) <= room:
            chosen.append(passage)
            room -= len(passage.text)
    if len(chosen) < 2:
        return []
    in_order = sorted(chosen, key=lambda p: (p.source_id, p.start))
    text = " ".join(_plain(p.text) for p in in_order)
    return [Window(text, tuple(chosen), is_joined=True)]


def _with_heading(passage: Passage, text: str) -> str:
    """The text on one line under its heading, which often names what it is about."""
    heading, text = _plain(passage.heading), _plain(text)
    if not heading or heading in text or len(heading) > WIDEST // 3:
        return text
    return f"{heading.rstrip('.:')}{': ' if is_row(text) else '. '}{text}"


def _widest(text: str) -> int:
    return WIDEST // 3 if IS_UNSPACED.search(text) else WIDEST


def _plain(text: str) -> str:
    return " ".join(text.split())


def nearest_texts(claim: str, texts: Sequence[str], language: str, most: int = 3) -> list[str]:
    """Windows over plain texts whose words are most like the claim's; best first.

    For what is read without an index: short sources, or what retrieval has chosen already.
    """
    wanted = set(query_terms(claim, language))
    windows = _packed_windows(tuple(texts), language, _widest(claim))
    ranked = sorted(windows, key=lambda window: -len(wanted & window[1]))
    return [text for text, _ in ranked[:most]]


@lru_cache(maxsize=64)
def _packed_windows(
    texts: tuple[str, ...], language: str, width: int
) -> tuple[tuple[str, frozenset[str]], ...]:
    """Sentences in a row as windows of at most that width, each begun within the one before."""
    windows: list[str] = []
    for text in texts:
        run: list[str] = []
        for item in sentences(text, language):
            part = _plain(text[item.start : item.end])
            if run and sum(map(len, run)) + len(part) > width:
                windows.append(" ".join(run))
                run = run[-1:] if len(run[-1]) + len(part) <= width else []
            run.append(part)
        windows += [" ".join(run)] if run else []
    return tuple((window, frozenset(terms(window, language))) for window in windows)
