"""The built-in judge: weighs the debate against the whole evidence and writes the verdict text.

Its text is what the classifier reads (CEDA 3.4), so it says plainly what was agreed, what was
disputed, how strong the contrast is and how much is carried; graded words stand for numbers,
which the encoder hardly tells apart. Source: CEDA A.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.builtin.assess import Assessment, assess
from core.builtin.claims import claim_of
from core.builtin.overlap import Overlap, measure
from core.builtin.overlap import points_of as overlap_points
from core.builtin.overlap import stance_of as overlap_stance
from core.builtin.rules import overall, points_of
from core.builtin.rules import stance_of as rule_stance
from core.builtin.speech import (
    WORDS_OF_STANCE,
    capitalised,
    cited,
    counted,
    joined_texts,
    listed,
    shortened,
)
from core.concurrency import Stop
from core.models.encoder import Embedder
from core.records import Cause, Judgement, Label, Point, Statement, Turn
from core.roles import JudgeView

STRONG_FROM = 0.8
LEAN_SUPPORTED_FROM = 0.6
RELATED_FROM = 0.45
RULE = """Reads the debate with the whole evidence before it, statement by statement.
1. No evidence at all, an unreadable image, or evidence that does not speak of the statement:
   unclear, with its cause. Sources that contradict each other: unclear.
2. A contrast of weight 0.5 or more that the evidence bears: hallucinated.
3. On the topic, but a name or value, or much of the statement, is carried by nothing: hallucinated.
4. Carried by three fifths or more without either: supported.
5. A response is wrong when one statement is; it is supported when all that say something are;
   else unclear.
The text it writes goes to the classifier, which sets label and probability."""


@dataclass(frozen=True)
class Finding:
    """The judge's finding on one statement, with its reason in one sentence."""

    statement: Statement
    label: Label
    strength: float
    reason: str
    cause: Cause | None = None
    points: tuple[Point, ...] = ()


class BuiltInJudge:
    """Built-in judge; deterministic for one encoder."""

    name = "Built-in judge"
    built_in = True
    rule = RULE

    def __init__(self, encoder: Embedder) -> None:
        self._encoder = encoder

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding over the whole response."""
        if view.view.unreadable_images:
            return self._unreadable(view)
        if not view.view.evidence.passages:
            return self._unclear(
                view, "no_evidence", "there is no evidence to check it against", ()
            )
        findings = []
        for statement in view.view.statements:
            stop.check()
            findings.append(self._finding(view, statement))
        spoken = [f for f in findings if f is not None]
        if not spoken:
            words = "the text makes no statement that evidence could support or contradict"
            return self._unclear(view, "not_addressed", words, ())
        label = overall([f.label for f in spoken])
        labels = tuple(f.label if f else "unclear" for f in findings)
        if label == "unclear":
            cause, words = _cause(spoken, view.context.conflicts)
            return self._unclear(view, cause, words, labels)
        return Judgement(
            agent=self.name,
            label=label,
            text=_text(label, spoken, view.turns, reached=view.reached_consensus),
            agreed=_agreed(view.turns),
            disputed=_disputed(view.turns),
            statement_labels=labels,
            points=tuple(point for f in spoken for point in f.points),
        )

    def _finding(self, view: JudgeView, statement: Statement) -> Finding | None:
        """None for a statement that says nothing to check."""
        claim = claim_of(view.view.case, statement)
        if not claim.has_content:
            return None
        passages = view.view.evidence.of(statement.index)
        item = assess(claim, passages, view.view.sources)
        overlap = measure(claim, passages, self._encoder)
        if item.conflict:
            return Finding(
                statement,
                "unclear",
                0.5,
                "One source carries it and another contradicts it.",
                "sources_disagree",
            )
        found = _weigh(statement, item, overlap)
        if found.label != "hallucinated":
            return found
        own = points_of(item) if rule_stance(item) == found.label else []
        missing = [
            point
            for point in overlap_points(overlap)
            if not any(point.start < other.end and other.start < point.end for other in own)
        ]
        return replace(found, points=(*own, *missing))

    def _unreadable(self, view: JudgeView) -> Judgement:
        names = listed(view.view.unreadable_images)
        words = f"{names} could not be read here: no text was found in it"
        return self._unclear(view, "image_not_readable", words, ())

    def _unclear(
        self, view: JudgeView, cause: Cause, words: str, labels: tuple[Label, ...]
    ) -> Judgement:
        return Judgement(
            agent=self.name,
            label="unclear",
            text=f"No verdict: {words}.",
            agreed=_agreed(view.turns),
            disputed=_disputed(view.turns),
            cause=cause,
            cause_words=capitalised(words) + ".",
            statement_labels=labels,
        )


def _weigh(statement: Statement, item: Assessment, overlap: Overlap) -> Finding:
    """Contrast first, then what is missing, then what is carried."""
    by_rules, by_overlap = rule_stance(item), overlap_stance(overlap)
    if by_rules == "hallucinated":
        return _contradicted(statement, item)
    carried = by_overlap == "supported" and not item.is_turned
    if by_rules == "supported" or carried:
        return _supported(statement, item, overlap, both=by_rules == by_overlap)
    if by_overlap == "hallucinated":
        return _not_carried(statement, overlap)
    related = (overlap.similarity or 0.0) >= RELATED_FROM
    whole = not overlap.apart and not item.is_turned
    if whole and overlap.carried >= LEAN_SUPPORTED_FROM and (related or overlap.similarity is None):
        return _supported(statement, item, overlap, both=False)
    return Finding(
        statement,
        "unclear",
        0.5,
        "The evidence does not speak about it.",
        "not_addressed",
    )


def _contradicted(statement: Statement, item: Assessment) -> Finding:
    if item.claim.denied or not item.contradictions:
        where = cited(item.closest) if item.closest else "the evidence"
        reason = f"The answer denies what the evidence affirms: {where}."
        return Finding(statement, "hallucinated", 0.8, reason)
    found = item.contradictions[0]
    weight = found.contrast.weight
    degree = "A clear" if weight >= STRONG_FROM else "A likely"
    reason = (
        f"{degree} contradiction: {found.contrast.explanation}, in a passage that carries "
        f"{_share_words(item.coverage)} of the rest."
    )
    return Finding(statement, "hallucinated", weight, reason)


def _not_carried(statement: Statement, overlap: Overlap) -> Finding:
    words = joined_texts(overlap.missing)
    verb = "stands" if len(words) < 2 else "stand"
    what = f"{listed(words)} {verb} in no passage" if words else "it stands in no passage"
    reason = (
        f"Not in the sources: {what}, though the evidence is on the topic and carries "
        f"{_share_words(overlap.carried)} of the statement."
    )
    vital = any(unit.kind in ("name", "quantity", "date") for unit in overlap.missing)
    return Finding(statement, "hallucinated", 0.65 if vital else 0.55, reason)


def _supported(statement: Statement, item: Assessment, overlap: Overlap, *, both: bool) -> Finding:
    carried = max(item.coverage, overlap.carried)
    found = "Both readers find" if both else "One reader finds"
    if item.adds_up and item.total:
        reason = f"{found} all of it carried and nothing contradicted."
        return Finding(statement, "supported", 0.9, reason)
    if item.claim.denied:
        reason = "The answer denies it, and so does the evidence."
        return Finding(statement, "supported", 0.8, reason)
    reason = f"{found} {_share_words(carried)} of it carried and nothing contradicted."
    return Finding(statement, "supported", carried if both else 0.9 * carried, reason)


def _share_words(share: float) -> str:
    for least, words in ((0.95, "all"), (0.8, "nearly all"), (0.6, "most"), (0.4, "about half")):
        if share >= least:
            return words
    return "little"


def _cause(findings: Sequence[Finding], conflicts: Sequence[str]) -> tuple[Cause, str]:
    if any(f.cause == "sources_disagree" for f in findings):
        return "sources_disagree", "the sources contradict each other: " + (
            conflicts[0].rstrip(".") if conflicts else "see the evidence"
        )
    open_ones = [f for f in findings if f.label == "unclear"]
    if len(findings) > 1:
        what = f"the sources say nothing about {len(open_ones)} of {len(findings)} statements"
        return "not_addressed", f"{what}, first “{shortened(open_ones[0].statement.text, 80)}”"
    return "not_addressed", "the sources do not speak about this"


def _text(
    label: Label, findings: Sequence[Finding], turns: Sequence[Turn], *, reached: bool
) -> str:
    """What was agreed and disputed, the decisive reason, the verdict."""
    decisive = sorted((f for f in findings if f.label == label), key=lambda f: -f.strength)
    subject = "the statement" if len(findings) == 1 else "the response"
    parts = [_debate_words(turns, subject, reached=reached)]
    if reached and turns[-1].stance != label:
        parts.append("All the evidence, of which each saw a part, says otherwise.")
    if len(findings) > 1:
        share = f"{len(decisive)} of {counted(len(findings), 'statement')}"
        parts.append(f"{share} {'is' if len(decisive) == 1 else 'are'} {WORDS_OF_STANCE[label]}.")
    parts += [f.reason for f in decisive[:2]]
    parts.append(
        f"Verdict: INCORRECT, {subject} is hallucinated."
        if label == "hallucinated"
        else f"Verdict: CORRECT, {subject} is supported."
    )
    return " ".join(part for part in parts if part)


def _debate_words(turns: Sequence[Turn], subject: str, *, reached: bool) -> str:
    if not turns:
        return "There was no debate."
    last: dict[str, Turn] = {turn.debater: turn for turn in turns}
    if len(last) == 1:
        only = turns[-1]
        return f"The single reading calls {subject} {WORDS_OF_STANCE[only.stance]}."
    if reached or len({turn.stance for turn in last.values()}) == 1:
        return f"Both debaters agree that {subject} is {WORDS_OF_STANCE[turns[-1].stance]}."
    views = [f"{turn.agent} calls it {WORDS_OF_STANCE[turn.stance]}" for turn in last.values()]
    return "The debaters disagree: " + ", ".join(views) + "."


def _agreed(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Words that both debaters contest or both carry."""
    return _points_by(turns, wanted=2)


def _disputed(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Words that only one debater contests."""
    return _points_by(turns, wanted=1)


def _points_by(turns: Sequence[Turn], *, wanted: int) -> tuple[str, ...]:
    debaters = {turn.debater for turn in turns}
    raised: dict[str, set[str]] = {}
    for turn in turns:
        for point in turn.points:
            if point.finding != "carried":
                raised.setdefault(point.text, set()).add(turn.debater)
    if len(debaters) < 2:
        return ()
    return tuple(text for text, by in raised.items() if len(by) == wanted)
