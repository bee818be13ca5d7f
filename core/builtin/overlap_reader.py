"""The overlap reader: a debater that asks how much of the statement the evidence carries.

It knows no rules. It therefore misses a denial that the rule checker sees, and sees an invention
that breaks no rule: two unlike debaters, as CEDA 4.1 asks. Told of a contrast, it reads that
clause again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from core.builtin.alignment import align, best_clause
from core.builtin.assess import evidence_reading
from core.builtin.claims import Claim, claim_of
from core.builtin.manners import Own, Side, is_spoken, turn_in_manner, wrong_of
from core.builtin.nothing_new import new_words
from core.builtin.overlap import TOPIC_FROM, Overlap, measure, points_of, stance_of
from core.builtin.reading import Unit
from core.builtin.remarks import answered
from core.builtin.rules import overall, quoted_ids
from core.builtin.speech import cited, counted, joined_texts, listed, quote_of, turn_said
from core.concurrency import Stop
from core.models.encoder import Embedder
from core.records import Passage, Point, Quote, Stance, Turn
from core.roles import DebateView, Speak

MOST_QUOTES = 2
AGAIN = "Read clause by clause"
ADDS_UP = "It says what its parts add up to, and the parts do stand there."
SUMMED = 0.9
LACKING = 0.6  # as its points say of a name or value that nothing mentions
DOUBTS: dict[Stance, str] = {
    "supported": "All words may stand there and be denied, or be said of something else.",
    "hallucinated": "What is missing may be said in words unlike these.",
    "unclear": "The passages may say it in words unlike these.",
}
NO_STATEMENT = "There is nothing in this text that evidence could carry."
NO_PASSAGE = "I was given no passage that speaks about this."
RULE = """Asks how much of the statement its passages carry; it applies no rules about values.
1. A word is carried when a passage holds it, or holds a word whose vector in context has a cosine
   of 0.45 or more; from 0.3 it is half carried. A capitalised word needs 0.6. Names, numbers
   and dates must stand there themselves, and in the passage that carries the rest.
2. Three quarters or more carried and nothing missing altogether: supported.
3. On the topic (half of it carried) but something that matters is missing: hallucinated, not in
   source. Otherwise unclear.
4. A passage that another debater quotes, or a person points to, is read too. Words that the other
   debater contests must be carried by the closest clause, not merely by the passage."""


class OverlapReader:
    """Built-in debater; deterministic for one encoder."""

    name = "Overlap reader"
    built_in = True
    rule = RULE

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn over all statements."""
        allowed = view.share | quoted_ids(view)
        measured = []
        for statement in view.view.statements:
            stop.check()
            claim = claim_of(view.view.case, statement)
            if claim.has_content:
                passages = view.view.evidence.of(statement.index, allowed)
                item = measure(claim, passages, self._encoder)
                measured.append(_looked_at_again(item, passages, view))
        stances = [stance_of(item) for item in measured]
        stance = overall(stances)
        points = tuple(point for item in measured for point in points_of(item))
        quotes = [quote_of(m.passage) for m in _worst_first(measured, stances) if m.passage]
        chosen = tuple(dict.fromkeys(quotes))[:MOST_QUOTES]
        if is_spoken(view.manner):
            own = _own_of(measured, stances, stance, points, chosen)
            statements = [item.claim.statement.index for item in measured]
            own = replace(own, wrong=wrong_of(statements, stances))
            turn = turn_in_manner(view, self.name, own)
        else:
            words = _speech(view, measured, stances, stance)
            said = [*answered(view), *new_words(words, stance, chosen, view)]
            turn = turn_said(view, self.name, stance, said, quotes=chosen, points=points)
        speak(turn.text)
        return turn


def _looked_at_again(item: Overlap, passages: Sequence[Passage], view: DebateView) -> Overlap:
    """The same with contested words held against the closest clause alone."""
    said = [
        point
        for turn in view.turns
        if turn.debater != view.debater
        for point in turn.points
        if point.statement == item.claim.statement.index
    ]
    if any(p.finding == "carried" and p.category == "reasoning" for p in said):
        return replace(item, adds_up=True, missing=())
    contested = [point for point in said if point.finding == "contradicted"]
    recanted: list[Unit] = []
    passage = item.passage
    for point in contested:
        quoted = next(
            (p for p in passages if point.quote and _is_quoted(p, point.quote)),
            None,
        )
        for unit in item.claim.own_units():
            place = item.claim.place(unit.start, unit.end)
            meant = place and place[0] < point.end and point.start < place[1]
            if meant and quoted and not _in_clause(item.claim, unit, quoted):
                recanted.append(unit)
                passage = quoted
    if not recanted:
        return item
    missing = tuple(dict.fromkeys([*item.missing, *recanted]))
    return replace(item, passage=passage, missing=missing, recanted=tuple(dict.fromkeys(recanted)))


def _is_quoted(passage: Passage, quote: Quote) -> bool:
    return (passage.source_id, passage.start) == (quote.source_id, quote.start)


def _in_clause(claim: Claim, unit: Unit, passage: Passage) -> bool:
    reading = claim.reading
    whole = align(reading, evidence_reading(passage, claim.language))
    return reading.units.index(unit) in best_clause(whole).matched


def _worst_first(measured: Sequence[Overlap], stances: Sequence[Stance]) -> list[Overlap]:
    order = {"hallucinated": 0, "unclear": 1, "supported": 2}
    paired = sorted(zip(measured, stances, strict=True), key=lambda item: order[item[1]])
    return [item for item, _ in paired]


def _speech(
    view: DebateView, measured: Sequence[Overlap], stances: Sequence[Stance], stance: Stance
) -> list[str]:
    """The case in the first turn; an answer to the other's last words in later ones."""
    if not measured:
        return [NO_STATEMENT]
    first = _worst_first(measured, stances)[0]
    if first.passage is None:
        return [NO_PASSAGE]
    mine = [turn for turn in view.turns if turn.debater == view.debater]
    other = view.turns[-1] if view.turns else None
    if first.adds_up:
        return [ADDS_UP]
    has_recanted = any(AGAIN in turn.text for turn in mine)
    if first.recanted and other and other.stance == "hallucinated" and not has_recanted:
        return [_recanting(first)]
    if mine and other and mine[-1].stance == stance:
        return _rejoinder(first, other, stance)
    return _opening(first, measured, stances, stance)


def _own_of(
    measured: Sequence[Overlap],
    stances: Sequence[Stance],
    stance: Stance,
    points: Sequence[Point],
    quotes: Sequence[Quote],
) -> Own:
    """What counting words has for each side: what is carried, and what nothing carries."""
    if not measured:
        return Own(stance, {stance: Side((NO_STATEMENT,))}, "")
    first = _worst_first(measured, stances)[0]
    if first.passage is None:
        return Own(stance, {stance: Side((NO_PASSAGE,))}, "")
    holds, fails = zip(*(_strengths(item) for item in measured), strict=True)
    strengths = {"supported": min(holds), "hallucinated": max(fails)}
    sides: dict[Stance, Side] = {
        "supported": Side(*_speaks_for(first), strengths["supported"]),
        "hallucinated": Side(*_speaks_against(first), strengths["hallucinated"]),
    }
    words = _opening(first, measured, stances, stance)
    if first.adds_up:
        words = [ADDS_UP]
    elif first.recanted:
        words = [_recanting(first)]
    sure = strengths.get(stance, 1.0 - max(strengths.values()))
    sides[stance] = Side(tuple(words), tuple(quotes), sure)
    return Own(stance, sides, DOUBTS[stance], tuple(points))


def _speaks_for(item: Overlap) -> tuple[tuple[str, ...], tuple[Quote, ...]]:
    """The passage that carries most of the statement."""
    if item.passage is None or item.claim.denied or not item.carried:
        return (), ()
    share = f"{round(100 * item.carried)} % of its words are carried by {cited(item.passage)}."
    return (share,), (quote_of(item.passage),)


def _speaks_against(item: Overlap) -> tuple[tuple[str, ...], tuple[Quote, ...]]:
    """The words that no passage on the topic carries."""
    if item.passage is None or not item.missing:
        return (), ()
    words = f"No passage on the topic carries {listed(joined_texts(item.missing))}."
    return (words,), (quote_of(item.passage),)


def _strengths(item: Overlap) -> tuple[float, float]:
    """(share that is carried, share that is not though the evidence is on the topic)."""
    stance, carried = stance_of(item), item.carried
    if item.claim.denied:
        return 1.0 - carried, carried
    if item.adds_up:
        return SUMMED, 1.0 - SUMMED
    if stance == "hallucinated":  # what is missing matters more than its share of the words
        return 1.0 - LACKING, LACKING
    return carried, 1.0 - carried if carried >= TOPIC_FROM else 0.0


def _recanting(item: Overlap) -> str:
    """What another debater's point has it see."""
    where = cited(item.passage) if item.passage else "what was quoted"
    return f"{AGAIN}, {where} does not carry {listed(joined_texts(item.recanted))}."


def _rejoinder(first: Overlap, other: Turn, stance: Stance) -> list[str]:
    if other.stance == stance:
        return ["My count comes to the same."]
    if stance == "supported":
        return ["All its words stand there; whether one denies another is not mine to say."]
    if stance == "hallucinated" and first.missing:
        words = listed(joined_texts(first.missing))
        return [f"Breaking no rule is not enough: still nothing carries {words}."]
    return ["I still find too little of it in the passages."]


def _opening(
    first: Overlap, measured: Sequence[Overlap], stances: Sequence[Stance], stance: Stance
) -> list[str]:
    passage = cited(first.passage) if first.passage else "none"
    share = f"{round(100 * first.carried)} %"
    sentences = []
    if len(measured) > 1:
        count = sum(1 for s in stances if s == stance)
        sentences.append(f"So I read {count} of {counted(len(measured), 'statement')}.")
    if stance == "supported" and first.claim.denied:
        sentences.append(f"What was asked is not carried; closest is {passage}.")
    elif stance == "supported":
        sentences.append(f"{share} of what matters is carried, most of it by {passage}.")
    elif stance == "hallucinated" and first.missing:
        words = listed(joined_texts(first.missing))
        sentences.append(f"No passage carries {words}; {share} of it stands in {passage}.")
    elif stance == "hallucinated":
        sentences.append(f"What the answer denies stands in {passage}.")
    else:
        sentences.append(f"Only {share} is carried; the closest passage is {passage}.")
    return sentences
