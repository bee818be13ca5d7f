"""What the built-in judge says: per statement the reason that decides, then the verdict's text.

Graded words stand for numbers, which the encoder behind the classifier hardly tells apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.builtin.entailment_reader import stance_of as entailment_stance
from core.builtin.looks import Look
from core.builtin.overlap import stance_of as overlap_stance
from core.builtin.rules import stance_of as rule_stance
from core.builtin.speech import (
    WORDS_OF_STANCE,
    cited,
    counted,
    joined_texts,
    listed,
)
from core.records import Label, Stance, Turn

STRONG_FROM = 0.8
DEGREES = ((0.95, "certainly"), (0.85, "very likely"), (0.7, "likely"), (0.0, "rather"))


@dataclass(frozen=True)
class Spoken:
    """A statement's finding as it is told: its label, how sure, and the reason in a sentence."""

    label: Label
    p: float
    reason: str


def reason_for(look: Look, label: Label) -> str:
    """The reason that decides, in one sentence."""
    if label == "hallucinated":
        return _against(look)
    if label == "supported":
        return _in_favour(look)
    return "The evidence does not speak about it."


def _against(look: Look) -> str:
    if rule_stance(look.item) == "hallucinated":
        return _contradicted(look)
    if not look.reading.muted and entailment_stance(look.reading) == "hallucinated":
        passage = look.reading.contrary_passage
        where = cited(passage) if passage else "the evidence"
        return f"Contradicted in meaning: {where} says otherwise."
    if overlap_stance(look.overlap) == "hallucinated":
        return _not_carried(look)
    return "Not in the sources: no passage says it, though the evidence is on the topic."


def _contradicted(look: Look) -> str:
    item = look.item
    if item.claim.denied or not item.contradictions:
        where = cited(item.closest) if item.closest else "the evidence"
        return f"The answer denies what the evidence affirms: {where}."
    found = item.contradictions[0]
    degree = "A clear" if found.contrast.weight >= STRONG_FROM else "A likely"
    return (
        f"{degree} contradiction: {found.contrast.explanation}, in a passage that carries "
        f"{_share_words(item.coverage)} of the rest."
    )


def _not_carried(look: Look) -> str:
    words = joined_texts(look.overlap.missing)
    verb = "stands" if len(words) < 2 else "stand"
    what = f"{listed(words)} {verb} in no passage" if words else "it stands in no passage"
    return (
        f"Not in the sources: {what}, though the evidence is on the topic and carries "
        f"{_share_words(look.overlap.carried)} of the statement."
    )


def _in_favour(look: Look) -> str:
    item = look.item
    if item.adds_up:
        return "The evidence's own numbers add up to it."
    if item.claim.denied:
        return "The answer denies it, and so does the evidence."
    carried = max(item.coverage, look.overlap.carried)
    return f"{_finders(look)} {_share_words(carried)} of it carried and nothing contradicted."


def _finders(look: Look) -> str:
    """How many of the readers call it supported."""
    stances = [view.stance for view in look.stances]
    count = stances.count("supported")
    if count == len(stances):
        return "All readers find" if count > 2 else "Both readers find"
    if count == 0:
        return "Weighed together, the readers find"
    return f"{('One', 'Two')[count - 1]} of {len(stances)} readers {('finds', 'find')[count - 1]}"


def _share_words(share: float) -> str:
    for least, words in ((0.95, "all"), (0.8, "nearly all"), (0.6, "most"), (0.4, "about half")):
        if share >= least:
            return words
    return "little"


def verdict_text(
    label: Label, p: float, findings: Sequence[Spoken], turns: Sequence[Turn], *, reached: bool
) -> str:
    """What was agreed and disputed, the decisive reasons, the verdict."""
    decisive = sorted((f for f in findings if f.label == label), key=lambda f: -abs(f.p - 0.5))
    subject = "the statement" if len(findings) == 1 else "the response"
    parts = [_debate_words(turns, subject, reached=reached)]
    stances = _last_stances(turns)
    if len(set(stances)) == 1 and stances[0] != label:
        parts.append("All the evidence, weighed together, says otherwise.")
    if len(findings) > 1:
        share = f"{len(decisive)} of {counted(len(findings), 'statement')}"
        parts.append(f"{share} {'is' if len(decisive) == 1 else 'are'} {WORDS_OF_STANCE[label]}.")
    parts += [f.reason for f in decisive[:2]]
    parts.append(_concluded(label, p, subject))
    return " ".join(part for part in parts if part)


def _concluded(label: Label, p: float, subject: str) -> str:
    side = p if label == "hallucinated" else 1.0 - p
    degree = next(words for least, words in DEGREES if side >= least)
    head = "INCORRECT" if label == "hallucinated" else "CORRECT"
    return f"Verdict: {head}, {subject} is {degree} {label}."


def _debate_words(turns: Sequence[Turn], subject: str, *, reached: bool) -> str:
    if not turns:
        return "There was no debate."
    if all(turn.assigned is not None for turn in turns):
        return "The debaters argued the sides that they were assigned."
    last = {turn.debater: turn for turn in turns}
    if len(last) == 1:
        only = turns[-1]
        return f"The single reading calls {subject} {WORDS_OF_STANCE[only.stance]}."
    if reached or len(set(_last_stances(turns))) == 1:
        who = "Both debaters agree" if len(last) == 2 else "All debaters agree"
        return f"{who} that {subject} is {WORDS_OF_STANCE[turns[-1].stance]}."
    return "The debaters disagree: " + ", ".join(map(_view, last.values())) + "."


def _view(turn: Turn) -> str:
    """What it calls the statement; a side that was assigned is nobody's opinion."""
    had_to = turn.assigned is not None and turn.assigned == turn.stance
    verb = "had to call" if had_to else "calls"
    return f"{turn.agent} {verb} it {WORDS_OF_STANCE[turn.stance]}"


def _last_stances(turns: Sequence[Turn]) -> list[Stance]:
    """What each debater said last; where they reached consensus, these are the same."""
    return [turn.stance for turn in {turn.debater: turn for turn in turns}.values()]
