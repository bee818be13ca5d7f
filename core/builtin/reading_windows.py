"""Reads a statement against windows of the evidence and puts what each says together.

A window is a passage alone, or with its neighbours, which say whom "he" means; neighbouring
windows become one. One more joins several passages, for statements that need two. At most
MOST_WINDOWS are read: five passages make eleven at most, and further ones, which retrieval ranks
lower, change little but take time and could only err.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from core.builtin.claims import Claim
from core.builtin.reading import Unit
from core.builtin.reading import read as read_words
from core.builtin.statement_text import statement_text
from core.concurrency import Stop
from core.models.encoder import Matrix
from core.models.reader import EntailmentReader
from core.records import Passage

Numbers = npt.NDArray[np.float64]
MOST_WINDOWS = 12
# What a window that holds nothing of the statement's words still counts for, before it is squared:
# a paraphrase may share no word.
LEAST_BEARING = 0.1
MOST_JOINED = 3
VALUES = ("quantity", "date")
WIDEST = 900  # characters, some 200 tokens


@dataclass(frozen=True)
class Window:
    """A stretch of evidence as it was read with the statement, and what the reader said of it.

    `[start, end)` lies in the source's text; both are None where the window joins several places
    or the source's text is not at hand. `passages` are those it covers; `passage` is the first.
    `bearing` in (0, 1] is how much of the statement's words it holds beside the window with most.
    """

    text: str
    passages: tuple[Passage, ...]
    start: int | None = None
    end: int | None = None
    supported: float = 0.0
    contradicted: float = 0.0
    not_enough: float = 1.0
    bearing: float = 1.0

    @property
    def passage(self) -> Passage:
        """The first that it covers; which of several says what it says: `StatementReading`."""
        return self.passages[0]


@dataclass(frozen=True)
class StatementReading:
    """What the reader says of one statement; the three probabilities sum to 1.

    `carrying` is the window that supports it most, `contrary` the one that contradicts it most, by
    their bearing; None where nothing was read. `muted` where the reader does not know the words.
    """

    text: str
    supported: float = 0.0
    contradicted: float = 0.0
    not_enough: float = 1.0
    carrying: Window | None = None
    contrary: Window | None = None
    muted: bool = False
    windows: tuple[Window, ...] = ()

    @property
    def contrary_passage(self) -> Passage | None:
        """Of the passages that the contrary window covers the one that contradicts by itself.

        Words shared count less here than for the vote of the windows: those of one window speak of
        one thing, and a denial often has none of the statement's own words.
        """
        whole = self.contrary
        if whole is None:
            return None
        alone = [w for w in self.windows if len(w.passages) == 1 and w.passage in whole.passages]
        most = max(alone, key=lambda w: w.contradicted * (1.0 + w.bearing**0.5), default=whole)
        return most.passage


@dataclass(frozen=True)
class Said:
    """A text that is read against evidence, and its language."""

    text: str
    language: str


def read_statement(
    claim: Claim,
    passages: Sequence[Passage],
    sources: Mapping[str, str],
    reader: EntailmentReader,
    stop: Stop | None = None,
) -> StatementReading:
    """Read the claim against its passages, best first; `sources` maps ids to whole texts."""
    said = Said(_told(claim), claim.language)
    return read_text(said, passages, sources, reader, stop)


def read_text(
    said: Said,
    passages: Sequence[Passage],
    sources: Mapping[str, str],
    reader: EntailmentReader,
    stop: Stop | None = None,
) -> StatementReading:
    """Read any text against passages, best first, as `read_statement` does."""
    text, language = said.text, said.language
    if bool(reader.muted([text])[0]):
        return StatementReading(text, muted=True)
    windows = list(windows_of(passages, sources))[: MOST_WINDOWS - 1]
    if not windows:
        return StatementReading(text)
    heard = ~reader.muted([window.text for window in windows])
    windows = [window for window, is_heard in zip(windows, heard, strict=True) if is_heard]
    if not windows:
        return StatementReading(text, muted=True)
    read = _read(windows, text, reader, stop)
    if joined := _joined(read):
        read += _read([joined], text, reader, stop)
    shares = bearings([window.text for window in read], text, language)
    read = [replace(w, bearing=float(b)) for w, b in zip(read, shares, strict=True)]
    supported, contradicted, not_enough = aggregated(
        np.array([(w.supported, w.contradicted, w.not_enough) for w in read], dtype=np.float32),
        shares,
    )
    return StatementReading(
        text,
        supported,
        contradicted,
        not_enough,
        carrying=max(read, key=lambda window: window.supported * window.bearing),
        contrary=max(read, key=lambda window: window.contradicted * window.bearing),
        windows=tuple(read),
    )


def _told(claim: Claim) -> str:
    """The claim as one statement: with its question where it cannot stand alone."""
    if claim.answer is not None:
        return statement_text(claim.text, claim.answer_words)
    if claim.own_start:
        return statement_text(claim.text[: claim.own_start], claim.text[claim.own_start :])
    own = claim.statement
    return " ".join((own.rewrite if own.rewrite and claim.text == own.text else claim.text).split())


def bearings(windows: Sequence[str], text: str, language: str) -> Numbers:
    """(n,) in (0, 1]: how much of the text's words each window holds beside the one with most.

    Values are left out: who contradicts one says another.
    """
    weights = {_key(u): u.weight for u in read_words(text, language).units if u.kind not in VALUES}
    held = [{_key(unit) for unit in read_words(w, language).units} for w in windows]
    shares = np.array([sum(weights[k] for k in keys & weights.keys()) for keys in held])
    shares = shares / max(1e-9, sum(weights.values())) + LEAST_BEARING
    found: Numbers = (shares / shares.max()) ** 2
    return found


def _key(unit: Unit) -> tuple[str, ...]:
    return unit.words or (unit.text.casefold(),)


def aggregated(rows: Matrix, shares: Numbers) -> tuple[float, float, float]:
    """What (n, 3) readings of windows say together, each as far as it bears on it; sums to 1.

    The window that decides most decides: its not-enough is the least of all. Between support and
    contradiction all windows vote with the square of how far they decide at all, so that one that
    contradicts counts and twenty beside the point do not: the reader calls much a contradiction
    that is only about something else.
    """
    decided = 1.0 - rows[:, 2].astype(np.float64)
    weights = decided**2 * shares + 1e-9
    for_it, against = (float(weights @ rows[:, column]) for column in (0, 1))
    most = float((decided * shares).max())
    share = for_it / max(for_it + against, 1e-12)
    return most * share, most * (1.0 - share), 1.0 - most


def windows_of(passages: Sequence[Passage], sources: Mapping[str, str]) -> Iterator[Window]:
    """The windows around the passages: first with neighbours, then alone; each text once."""
    seen: set[str] = set()
    placed = [_with_neighbours(passage, sources) for passage in passages]
    alone = [_alone(passage, sources) for passage in passages]
    for window in (*_merged(placed, sources), *alone):
        if window.text and window.text not in seen:
            seen.add(window.text)
            yield window


def _read(
    windows: Sequence[Window], text: str, reader: EntailmentReader, stop: Stop | None
) -> list[Window]:
    rows = reader.read([(window.text, text) for window in windows], stop).tolist()
    return [
        replace(window, supported=s, contradicted=c, not_enough=n)
        for window, (s, c, n) in zip(windows, rows, strict=True)
    ]


def _alone(passage: Passage, sources: Mapping[str, str]) -> Window:
    at_hand = sources.get(passage.source_id, "")[passage.start : passage.end] == passage.text
    start, end = (passage.start, passage.end) if at_hand else (None, None)
    return Window(_plain(passage.text), (passage,), start, end)


def _with_neighbours(passage: Passage, sources: Mapping[str, str]) -> Window:
    """The passage with the sentences around it, as they stand in the source."""
    whole = sources.get(passage.source_id, "")
    if whole[passage.start : passage.end] != passage.text:
        parts = (passage.before, passage.text, passage.after)
        return Window(_plain(" ".join(parts)), (passage,))
    start, end = passage.start, passage.end
    if passage.before:
        found = whole.rfind(passage.before, max(0, start - WIDEST), start)
        start = found if found >= 0 else start
    if passage.after:
        found = whole.find(passage.after, end, end + WIDEST)
        end = found + len(passage.after) if found >= 0 else end
    if end - start > WIDEST:
        start, end = passage.start, passage.end
    return Window(_plain(whole[start:end]), (passage,), start, end)


def _merged(windows: Sequence[Window], sources: Mapping[str, str]) -> list[Window]:
    """Windows that overlap or touch as one, while that is not too wide; best passage first."""
    kept: list[Window] = []
    for window in windows:
        place = next((i for i, w in enumerate(kept) if _touch(w, window, sources)), None)
        if place is None:
            kept.append(window)
        else:
            kept[place] = _union(kept[place], window, sources)
    return kept if len(kept) == len(windows) else _merged(kept, sources)


def _touch(one: Window, other: Window, sources: Mapping[str, str]) -> bool:
    if one.passage.source_id != other.passage.source_id:
        return False
    start, end, from_, to = one.start, one.end, other.start, other.end
    if start is None or end is None or from_ is None or to is None:
        return False
    gap = sources[one.passage.source_id][min(end, to) : max(start, from_)]
    return not gap.strip() and max(end, to) - min(start, from_) <= WIDEST


def _union(one: Window, other: Window, sources: Mapping[str, str]) -> Window:
    start = min(one.start or 0, other.start or 0)
    end = max(one.end or 0, other.end or 0)
    text = _plain(sources[one.passage.source_id][start:end])
    return Window(text, (*one.passages, *other.passages), start, end)


def _joined(read: Sequence[Window]) -> Window | None:
    """One window of the passages that decide most, in the order of their sources."""
    by_id: dict[str, Window] = {}
    for window in sorted(read, key=lambda w: w.not_enough):
        if len(window.passages) == 1:
            by_id.setdefault(window.passage.id, window)
    chosen = list(by_id.values())[:MOST_JOINED]
    while len(chosen) > 1 and sum(len(w.text) for w in chosen) > WIDEST:
        chosen.pop()
    chosen.sort(key=lambda w: (w.passage.source_id, w.passage.start))
    text = " ".join(window.text for window in chosen)
    if len(chosen) < 2 or any(text in window.text for window in read):
        return None
    return Window(text, tuple(window.passage for window in chosen))


def _plain(text: str) -> str:
    return " ".join(text.split())
