"""The built-in debaters: three readers of one evidence who go by different things.

The entailment reader goes by what a passage means for the statement, the value checker by numbers,
dates and names, the overlap reader by how much of the words the sources have at all. Each has a
small model over its own features, fitted with the evidence model's; what they say is drawn from
what was measured. A passage that another debater quotes, or a person points to, is read too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from core.baseline.assessment import Assessment, Assessor
from core.baseline.debate_manners import (
    Own,
    Side,
    answered,
    is_spoken,
    new_words,
    pointed_at,
    turn_in_manner,
)
from core.baseline.evidence import Window
from core.baseline.evidence_model import Part
from core.baseline.explanation import best_passage, points_of
from core.baseline.wording import cited, counted, listed, quote_of, turn_said
from core.concurrency import Stop
from core.documents.terms import WORD, query_terms, terms
from core.records import Passage, Point, Quote, Stance, Turn
from core.roles import DebateView, Speak

MOST_QUOTES = 2
NO_STATEMENT = "There is nothing in this text that sources could speak about."
NO_PASSAGE = "I was given no passage that speaks about this."
NOT_KNOWN = "I do not know the language of this text or of its sources."
ON_THE_WHOLE = "No single place decides it; I go by the whole."
SAID_FROM = 0.5
"""From here on a passage is said to support or to contradict a statement."""


@dataclass(frozen=True)
class Opinion:
    """A debater's own view of one statement."""

    item: Assessment
    p: float
    stance: Stance
    points: tuple[Point, ...]


Says = Callable[[Opinion], list[str]]


@dataclass(frozen=True)
class Kind:
    """What makes a debater one of its kind."""

    name: str
    part: Part
    rule: str
    says: Mapping[Stance, Says]
    doubts: Mapping[Stance, str]


class BuiltInDebater:
    """A built-in debater of one kind; deterministic for one reader and one model."""

    built_in = True

    def __init__(self, kind: Kind, assessor: Assessor) -> None:
        self._kind = kind
        self._assessor = assessor

    @property
    def name(self) -> str:
        """The debater's name as people see it."""
        return self._kind.name

    @property
    def rule(self) -> str:
        """What it goes by."""
        return self._kind.rule

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn over all statements, the one that decides first."""
        allowed = view.share | quoted_ids(view)
        opinions = [
            self._opinion(item, stop)
            for item in self._assessor.assess(view.view, stop, allowed=allowed)
        ]
        stance = overall([opinion.stance for opinion in opinions])
        points = tuple(point for opinion in opinions for point in opinion.points)
        own = self._own(opinions, stance, points)
        if is_spoken(view.manner):
            turn = turn_in_manner(view, self.name, own)
        else:
            quotes = own.side.quotes
            said = [*answered(view), *new_words(own.side.words, stance, quotes, view)]
            turn = turn_said(view, self.name, stance, said, quotes=quotes, points=points)
        speak(turn.text)
        return turn

    def _opinion(self, item: Assessment, stop: Stop) -> Opinion:
        p = self._assessor.model.part(self._kind.part, item.measured)
        is_open = item.label == "unclear" and item.cause != "not_settled"
        stance = "unclear" if is_open else self._assessor.model.label(p)
        held = Assessment(item.measured, p, stance, None if stance != "unclear" else item.cause)
        return Opinion(held, p, stance, points_of(held, self._assessor.reader, stop))

    def _own(self, opinions: Sequence[Opinion], stance: Stance, points: tuple[Point, ...]) -> Own:
        """What it has for each side: the statement that speaks for it most, and how surely."""
        if not opinions:
            return Own(stance, {stance: Side((NO_STATEMENT,))}, "")
        if all(opinion.item.cause == "language_not_known" for opinion in opinions):
            return Own(stance, {stance: Side((NOT_KNOWN,))}, "")
        sides: dict[Stance, Side] = {}
        for side in ("supported", "hallucinated", "unclear"):
            chosen = _deciding(opinions, side)
            words = self._kind.says[side](chosen)
            if not words and side != stance:
                continue
            words = words or [ON_THE_WHOLE]
            if side == stance and len(opinions) > 1:
                count = sum(opinion.stance == stance for opinion in opinions)
                words = [f"In my view {count} of {counted(len(opinions), 'statement')} "
                         f"{'is' if count == 1 else 'are'} {VIEWS[stance]}.", *words]  # fmt: skip
            sides[side] = Side(tuple(words), _quotes(chosen, side), _strength(opinions, side))
        wrong = frozenset(o.item.statement.index for o in opinions if o.stance == "hallucinated")
        return Own(stance, sides, self._kind.doubts[stance], points, wrong)


VIEWS: Mapping[Stance, str] = {
    "supported": "right",
    "hallucinated": "wrong",
    "unclear": "not decided",
}


def overall(stances: Sequence[Stance]) -> Stance:
    """One wrong statement makes the response wrong; all must hold for it to be supported."""
    if "hallucinated" in stances:
        return "hallucinated"
    return "supported" if stances and set(stances) == {"supported"} else "unclear"


def quoted_ids(view: DebateView) -> frozenset[str]:
    """Ids of the passages that any debater has quoted so far, or a person has pointed to."""
    places = {(q.source_id, q.start) for turn in view.turns for q in turn.quotes}
    quoted = (
        p.id for p in view.view.evidence.passages.values() if (p.source_id, p.start) in places
    )
    return frozenset(quoted) | {passage.id for passage in pointed_at(view)}


def _deciding(opinions: Sequence[Opinion], side: Stance) -> Opinion:
    """The statement that speaks for the side most."""
    if side == "hallucinated":
        return max(opinions, key=lambda opinion: opinion.p)
    if side == "supported":
        return min(opinions, key=lambda opinion: opinion.p)
    return min(opinions, key=lambda opinion: abs(opinion.p - 0.5))


def _strength(opinions: Sequence[Opinion], side: Stance) -> float:
    """How far the debater is on that side by its own measure."""
    worst = max(opinion.p for opinion in opinions)
    if side == "unclear":
        return 1.0 - abs(2.0 * worst - 1.0)
    return worst if side == "hallucinated" else 1.0 - worst


def _quotes(opinion: Opinion, side: Stance) -> tuple[Quote, ...]:
    quoted = [point.quote for point in opinion.points if point.quote and opinion.stance == side]
    passage = _passage(opinion, side)
    if passage is not None:
        quoted.append(quote_of(passage))
    return tuple(dict.fromkeys(quoted))[:MOST_QUOTES]


def _passage(opinion: Opinion, side: Stance) -> Passage | None:
    """The passage that speaks for the side most."""
    window = _window(opinion, side)
    return best_passage(window, opinion.item) if window is not None else None


def _window(opinion: Opinion, side: Stance) -> Window | None:
    reading = opinion.item.measured.reading
    return reading.contradicting if side == "hallucinated" else reading.supporting


def _by_meaning(side: Stance) -> Says:
    """What the closest passage means for the statement; nothing where it speaks against that."""

    def says(opinion: Opinion) -> list[str]:
        passage, window = _passage(opinion, side), _window(opinion, side)
        if passage is None or window is None:
            return [NO_PASSAGE]
        if side == "hallucinated" and window.reading.contradicted >= SAID_FROM:
            return [f"{cited(passage)} cannot be true together with it."]
        if side == "supported":
            return [f"{cited(passage)} says so."] if window.reading.supported >= SAID_FROM else []
        if window.reading.supported >= SAID_FROM:
            return []
        return [f"{cited(passage)} comes closest; it neither says nor denies it."]

    return says


def _values_agree(opinion: Opinion) -> list[str]:
    same = [v.text for v in opinion.item.measured.values if v.status in ("same", "derived")]
    if same:
        return [f"The sources have {listed(same)} as the statement says."]
    return ["No number, date or name of the statement differs from the sources."]


def _values_differ(opinion: Opinion) -> list[str]:
    different = [v for v in opinion.item.measured.values if v.status == "different"]
    words = [f"The statement says “{v.text}”, the source “{v.instead}”." for v in different[:2]]
    unmatched = [v.text for v in opinion.item.measured.values if v.status == "unmatched"]
    if unmatched and not words:
        words = [f"No source has {listed(unmatched)}."]
    missing, _ = _missing_words(opinion)
    return words or ([f"No source has {listed(missing)}."] if missing else [])


def _no_values(opinion: Opinion) -> list[str]:
    values = opinion.item.measured.values
    if values and all(value.status in ("same", "derived") for value in values):
        return [f"The sources have {listed([v.text for v in values])}; whether of the same thing, "
                "I cannot tell."]  # fmt: skip
    if values:
        return ["I cannot tell whether the numbers and dates speak of the same thing."]
    return ["There is no number or date in it that I could compare."]


def _missing_words(opinion: Opinion) -> tuple[list[str], int]:
    """The statement's words that no passage has, and how many words it has."""
    reading = opinion.item.measured.reading
    own = reading.claim[reading.own_start :]
    held = {term for window in reading.windows for term in terms(window.text)}
    wanted = set(query_terms(own))
    by_word = {word: wanted & set(terms(word)) for word in WORD.findall(own)}
    telling = {word: found for word, found in by_word.items() if found}
    return [word for word, found in telling.items() if found.isdisjoint(held)], len(telling)


def _mostly_there(opinion: Opinion) -> list[str]:
    missing, count = _missing_words(opinion)
    there = count - len(missing)
    verb = "appears" if there == 1 else "appear"
    return [f"{there} of its {counted(count, 'word')} {verb} in the sources."]


def _mostly_missing(opinion: Opinion) -> list[str]:
    missing, count = _missing_words(opinion)
    if not missing:
        return []
    verb = "appears" if len(missing) == 1 else "appear"
    return [f"Of its {counted(count, 'word')} {listed(missing)} {verb} in none of my passages."]


ENTAILMENT = Kind(
    "Entailment reader",
    "reading",
    "Goes by what windows of its passages mean for the statement, as the reader reads them.",
    {
        "supported": _by_meaning("supported"),
        "hallucinated": _by_meaning("hallucinated"),
        "unclear": _by_meaning("unclear"),
    },
    {
        "supported": "I may have read past a changed number or name.",
        "hallucinated": "The passage may speak of another case than the statement does.",
        "unclear": "It may follow from passages that I did not read together.",
    },
)
VALUES = Kind(
    "Value checker",
    "values",
    "Goes by numbers, units, dates and names: which are in its passages, follow from them, or "
    "differ.",
    {"supported": _values_agree, "hallucinated": _values_differ, "unclear": _no_values},
    {
        "supported": "Equal values may belong to different things.",
        "hallucinated": "The two values may belong to different things.",
        "unclear": "What is wrong may be a word rather than a value.",
    },
)
OVERLAP = Kind(
    "Overlap reader",
    "coverage",
    "Goes by how many of the statement's words its passages have, and how like it they are.",
    {"supported": _mostly_there, "hallucinated": _mostly_missing, "unclear": _mostly_missing},
    {
        "supported": "The same words may say something else.",
        "hallucinated": "The sources may say it in other words.",
        "unclear": "The sources may say it in other words.",
    },
)
KINDS: Mapping[str, Kind] = {"entailment": ENTAILMENT, "rules": VALUES, "overlap": OVERLAP}
"""By the name under which rosters keep them."""
