"""The entailment reader as a debater: asks what the evidence means for a statement.

It compares no words and no values: it reads windows of the evidence with the statement and says
which of them carries or contradicts it. It sees a denial in other words, which the overlap reader
counts as carried, and misses a changed digit, which the rule checker sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.builtin.claims import claim_of
from core.builtin.manners import Own, Side, is_spoken, turn_in_manner, wrong_of
from core.builtin.nothing_new import new_words
from core.builtin.reading_windows import StatementReading, read_statement
from core.builtin.remarks import answered
from core.builtin.rules import overall, quoted_ids
from core.builtin.speech import cited, counted, quote_of, turn_said
from core.concurrency import Stop
from core.models.reader import EntailmentReader
from core.records import Passage, Quote, Stance, Turn
from core.roles import DebateView, Speak

NAME = "Entailment reader"
DECIDED_FROM = 0.5
MOST_QUOTES = 2
BEARS_FROM = 0.05  # below, a window says nothing for that side
NO_STATEMENT = "There is nothing in this text that evidence could mean anything for."
MUTED = "I cannot read this language well enough to say; the others must decide."
DOUBTS: dict[Stance, str] = {
    "supported": "I may have read past a changed number or name.",
    "hallucinated": "The passage may speak of another case than the statement does.",
    "unclear": "It may follow from passages that I did not read together.",
}
DEGREES = ((0.9, "plainly"), (0.7, "clearly"), (0.0, "rather"))
RULE = """Reads windows of its passages, each with its neighbours, against the statement; a small
trained model says of each how likely it carries the statement, contradicts it, or does not decide.
1. What carries it at one half or more: supported; what contradicts it at one half or more:
   hallucinated; otherwise unclear. One contradicting window counts, twenty beside the point do not.
2. A question's short answer is read as one statement.
3. It is silent where more than a fifth of the words are unknown to it (Chinese, Thai and others).
4. A passage that another debater quotes, or a person points to, is read too."""


class EntailmentDebater:
    """Built-in debater; deterministic for one reader."""

    name = NAME
    built_in = True
    rule = RULE

    def __init__(self, reader: EntailmentReader) -> None:
        self._reader = reader

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn over all statements."""
        allowed = view.share | quoted_ids(view)
        readings: list[StatementReading] = []
        statements: list[int] = []
        for statement in view.view.statements:
            stop.check()
            claim = claim_of(view.view.case, statement)
            if claim.has_content:
                passages = view.view.evidence.of(statement.index, allowed)
                sources = view.view.sources
                statements.append(statement.index)
                readings.append(read_statement(claim, passages, sources, self._reader, stop))
        stances = [stance_of(reading) for reading in readings]
        stance = overall(stances)
        quotes = _quotes(readings, stances)
        if is_spoken(view.manner):
            own = _own_of(readings, stances, stance, quotes)
            own = replace(own, wrong=wrong_of(statements, stances))
            turn = turn_in_manner(view, self.name, own)
        else:
            words = _speech(view, readings, stances, stance)
            said = [*answered(view), *new_words(words, stance, quotes, view)]
            turn = turn_said(view, self.name, stance, said, quotes=quotes, points=())
        speak(turn.text)
        return turn


def stance_of(reading: StatementReading) -> Stance:
    """The entailment reader's stance on one statement."""
    if reading.muted:
        return "unclear"
    if reading.contradicted >= DECIDED_FROM:
        return "hallucinated"
    return "supported" if reading.supported >= DECIDED_FROM else "unclear"


def _speech(
    view: DebateView,
    readings: Sequence[StatementReading],
    stances: Sequence[Stance],
    stance: Stance,
) -> list[str]:
    """The case in the first turn; an answer to the others' last words in later ones."""
    if not readings:
        return [NO_STATEMENT]
    heard = [reading for reading in readings if not reading.muted]
    if not heard:
        return [MUTED]
    mine = [turn for turn in view.turns if turn.debater == view.debater]
    other = view.turns[-1] if view.turns else None
    if mine and other and mine[-1].stance == stance:
        return _rejoinder(_deciding(readings, stances, stance), other, stance)
    return _opening(readings, stances, stance)


def _own_of(
    readings: Sequence[StatementReading],
    stances: Sequence[Stance],
    stance: Stance,
    quotes: Sequence[Quote],
) -> Own:
    """What the reader has for each side: the window that speaks for it most, and how surely."""
    heard = [reading for reading in readings if not reading.muted]
    if not heard:
        return Own(stance, {stance: Side((MUTED if readings else NO_STATEMENT,))}, "")
    against = max(heard, key=lambda reading: reading.contradicted)
    carrying = max(heard, key=lambda reading: reading.supported)
    carried = carrying.carrying.passage if carrying.carrying else None
    sides: dict[Stance, Side] = {
        "supported": _side(
            carried, carrying.supported, "may mean it", min(r.supported for r in heard)
        ),
        "hallucinated": _side(
            against.contrary_passage,
            against.contradicted,
            "may contradict it",
            against.contradicted,
        ),
    }
    strengths = [side.strength or 0.0 for side in sides.values()]
    sure = sides[stance].strength if stance in sides else 1.0 - max(strengths)
    words = tuple(_opening(readings, stances, stance))
    sides[stance] = Side(words, tuple(quotes), sure)
    return Own(stance, sides, DOUBTS[stance])


def _side(passage: Passage | None, p: float, says: str, strength: float) -> Side:
    """The passage as the best there is for a side that is not its own."""
    if passage is None or p < BEARS_FROM:
        return Side(strength=strength)
    words = f"{cited(passage)} {says}, with a probability of {round(100 * p)} %."
    return Side((words,), (quote_of(passage),), strength)


def _deciding(
    readings: Sequence[StatementReading], stances: Sequence[Stance], stance: Stance
) -> StatementReading:
    """The reading that the stance rests on most."""
    own = [r for r, s in zip(readings, stances, strict=True) if s == stance and not r.muted]
    return max(own or readings, key=lambda reading: _certainty(reading, stance))


def _certainty(reading: StatementReading, stance: Stance) -> float:
    if stance == "hallucinated":
        return reading.contradicted
    return reading.supported if stance == "supported" else reading.not_enough


def _opening(
    readings: Sequence[StatementReading], stances: Sequence[Stance], stance: Stance
) -> list[str]:
    first = _deciding(readings, stances, stance)
    sentences = []
    if len(readings) > 1:
        count = sum(1 for s in stances if s == stance)
        sentences.append(f"So I read {count} of {counted(len(readings), 'statement')}.")
    passage = _deciding_passage(first, stance)
    if passage is None:
        sentences.append("I was given no passage that speaks about this.")
    elif stance == "hallucinated":
        sentences.append(f"{cited(passage)} {_degree(first.contradicted)} contradicts it.")
    elif stance == "supported":
        sentences.append(f"{cited(passage)} {_degree(first.supported)} says so.")
    else:
        sentences.append(f"{_leaning(first)} Closest is {cited(passage)}.")
    return sentences


def _leaning(reading: StatementReading) -> str:
    """Which way an undecided reading leans."""
    if reading.not_enough >= DECIDED_FROM:
        return "Nothing here says it, and nothing denies it."
    if reading.contradicted > reading.supported:
        return "One passage nearly contradicts it, but not plainly enough."
    return "One passage nearly says so, but not plainly enough."


def _rejoinder(reading: StatementReading, other: Turn, stance: Stance) -> list[str]:
    if other.stance == stance:
        return ["By its meaning I come to the same."]
    passage = _deciding_passage(reading, stance)
    if stance == "supported" and passage is not None:
        return [f"Whatever its words, {cited(passage)} means the same as the statement."]
    if stance == "hallucinated" and passage is not None:
        return [f"Shared words or not, {cited(passage)} cannot hold together with it."]
    return ["By its meaning I still cannot decide it."]


def _deciding_passage(reading: StatementReading, stance: Stance) -> Passage | None:
    """What contradicts, under that stance; else where it is carried most."""
    if stance == "hallucinated":
        return reading.contrary_passage
    return reading.carrying.passage if reading.carrying else None


def _degree(p: float) -> str:
    return next(words for least, words in DEGREES if p >= least)


def _quotes(readings: Sequence[StatementReading], stances: Sequence[Stance]) -> tuple[Quote, ...]:
    """The passages that decide, those that contradict first."""
    order = {"hallucinated": 0, "supported": 1, "unclear": 2}
    paired = sorted(zip(readings, stances, strict=True), key=lambda item: order[item[1]])
    passages = [_deciding_passage(reading, stance) for reading, stance in paired]
    return tuple(dict.fromkeys(quote_of(p) for p in passages if p))[:MOST_QUOTES]
