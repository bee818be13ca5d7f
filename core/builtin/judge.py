"""The built-in judge: weighs what its readers find in the whole evidence, statement by statement.

Its p is calibrated (weighing.py); its text is what the classifier reads beside it (CEDA 3.4), so it
says plainly what was agreed, what was disputed and what decides. Source: CEDA A.3.4.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from core.builtin.alignment import may_be_name
from core.builtin.judge_words import Spoken, reason_for, verdict_text
from core.builtin.looks import CARRIED_FROM, Look, looks_at
from core.builtin.overlap import points_of as overlap_points
from core.builtin.rules import overall, points_of
from core.builtin.rules import stance_of as rule_stance
from core.builtin.speech import capitalised, listed, shortened
from core.builtin.tool_verdict import RULE as TOOL_RULE
from core.builtin.tool_verdict import with_tools
from core.builtin.weighing import (
    Weights,
    any_of,
    features_of,
    load_weights,
    probability,
    shifted,
)
from core.concurrency import Stop
from core.models.encoder import Embedder
from core.models.reader import EntailmentReader
from core.records import Cause, Context, Judgement, Label, Point, ReaderView, Statement, Turn
from core.roles import CaseView, Evidence, JudgeView

WRONG_FROM = 0.5
# On calibration rows a lower bound trades what is contradicted (of sets whose evidence always
# decides) for what is open (of sets that know of both), one for one; here both are served.
OPEN_FROM = 0.65
MOSTLY_ABSENT = 0.3  # carried share up to which it is left open where no reader objects
HARDLY_CARRIED = 0.5  # up to which nothing is supported that no reader carries
NO_STATEMENT = "the text makes no statement that evidence could support or contradict"
RULE = """Looks at each statement with the whole evidence before it, through three readers:
entailment, rules and overlap.
1. No evidence at all, an unreadable image, or sources that contradict each other: unclear, with
   its cause.
2. What the readers find, and how well the evidence fits, is weighed into one probability that the
   statement is not supported; the weights were learned from public data and are calibrated. A
   response of two or three short sentences is also read as one.
3. At one half or more it is hallucinated, unless the evidence most likely does not speak about it:
   the second model says so at 0.65 or more; or three tenths of it at most are carried and no reader
   calls it wrong; or no passage is like it, with a similarity of 0.35, none holds two fifths of it,
   no reader carries it and the rules name no contrast. Then it is unclear. Below one half it is
   supported, unless it opens with a name that no passage has and the entailment reader does not
   carry it, or no reader carries it and half of it at most is: then it is unclear too.
4. A response is wrong when one statement is. Each of several statements counts as wrong less
   readily than one alone: before anything is read, one response in two is, however long. It is
   supported when all that say something are; else unclear.
The text it writes goes to the classifier with the probability, which sets the label."""


@dataclass(frozen=True)
class Finding:
    """The judge's finding on one statement: its label, how likely it is wrong, and why."""

    look: Look
    label: Label
    p: float
    cause: Cause | None = None

    @property
    def spoken(self) -> Spoken:
        """As it is told."""
        return Spoken(self.label, self.p, reason_for(self.look, self.label))

    @property
    def points(self) -> tuple[Point, ...]:
        """Contested words, and of a hallucinated statement those that nothing carries."""
        if self.label != "hallucinated":
            return ()
        is_contrast = rule_stance(self.look.item) == "hallucinated"
        own = points_of(self.look.item) if is_contrast else []
        missing = [
            point
            for point in overlap_points(self.look.overlap)
            if not any(point.start < other.end and other.start < point.end for other in own)
        ]
        return (*own, *missing)


class BuiltInJudge:
    """Built-in judge; deterministic for one encoder, reader and set of weights."""

    name = "Built-in judge"
    built_in = True
    rule = f"{RULE}\n{TOOL_RULE}"

    def __init__(
        self, encoder: Embedder, reader: EntailmentReader, weights: Weights | None = None
    ) -> None:
        self._encoder = encoder
        self._reader = reader
        self._weights = weights

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding over the whole response, with what tools work out beside the evidence."""
        return with_tools(self.read(view, stop), view.view, stop)

    def read(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding by the evidence alone."""
        return self._barred(view) or self._concluded(view, self.findings(view, stop))

    def read_statement(self, view: CaseView, statement: Statement, stop: Stop) -> Judgement:
        """The finding on one statement over all passages of the view; its prose is the reason."""
        passages = dict(view.evidence.passages)
        evidence = Evidence(passages, {statement.index: tuple(passages)})
        alone = replace(view, statements=(statement,), evidence=evidence)
        seen = JudgeView(alone, Context((), tuple(passages), ""), (), reached_consensus=False)
        if barred := self._barred(seen):
            return replace(barred, prose=barred.cause_words)
        findings = self.findings(seen, stop)
        found = self._concluded(seen, findings)
        return replace(found, prose=findings[0].spoken.reason if findings else found.cause_words)

    def _barred(self, view: JudgeView) -> Judgement | None:
        """Unclear before anything is read: an image that cannot be, or nothing to read."""
        if view.view.unreadable_images:
            return self._unreadable(view)
        if view.view.evidence.passages:
            return None
        if view.view.case.documents and not view.view.statements:
            return self._unclear(view, "not_addressed", NO_STATEMENT)
        return self._unclear(view, "no_evidence", "there is no evidence to check it against")

    def _concluded(self, view: JudgeView, findings: Sequence[Finding]) -> Judgement:
        if not findings:
            return self._unclear(view, "not_addressed", NO_STATEMENT)
        label = overall([f.label for f in findings])
        if label == "unclear":
            cause, words = _cause(findings, view.context.conflicts)
            return self._unclear(view, cause, words, findings)
        p = _p_of(findings)
        spoken = [f.spoken for f in findings]
        return Judgement(
            agent=self.name,
            label=label,
            text=verdict_text(label, p, spoken, view.turns, reached=view.reached_consensus),
            agreed=_agreed(view.turns),
            disputed=_disputed(view.turns),
            statement_labels=_labels(view, findings),
            points=tuple(point for f in findings for point in f.points),
            p=p,
            readers=_readers(findings),
        )

    def looks(self, view: JudgeView, stop: Stop) -> list[Look]:
        """What the readers make of every statement that says something to check."""
        return looks_at(view, self._encoder, self._reader, stop)

    def findings(self, view: JudgeView, stop: Stop) -> list[Finding]:
        """What it finds on every statement that says something to check."""
        weights = self._weights or load_weights()
        looks = self.looks(view, stop)
        told = [features_of(look) for look in looks]
        scores = [weights.wrong(own) for own in told]
        odds = [probability(shifted(score, len(looks))) for score in scores]
        least = _wrong_from(odds)
        is_whole_wrong = any(p >= least for p in odds)
        # Of a response that is wrong anyway, people want to know all that would be wrong alone.
        wrong = [
            p >= least or (is_whole_wrong and probability(score) >= WRONG_FROM)
            for p, score in zip(odds, scores, strict=True)
        ]
        return [
            _finding(look, p, is_wrong, weights.left_open(own))
            for look, p, is_wrong, own in zip(looks, odds, wrong, told, strict=True)
        ]

    def _unreadable(self, view: JudgeView) -> Judgement:
        names = listed(view.view.unreadable_images)
        words = f"{names} could not be read here: no text was found in it"
        return self._unclear(view, "image_not_readable", words)

    def _unclear(
        self, view: JudgeView, cause: Cause, words: str, findings: Sequence[Finding] = ()
    ) -> Judgement:
        return Judgement(
            agent=self.name,
            label="unclear",
            text=f"No verdict: {words}.",
            agreed=_agreed(view.turns),
            disputed=_disputed(view.turns),
            cause=cause,
            cause_words=capitalised(words) + ".",
            statement_labels=_labels(view, findings) if findings else (),
            p=_p_of(findings) if findings else None,
            readers=_readers(findings),
        )


def _wrong_from(odds: Sequence[float]) -> float:
    """From which p a statement is wrong: one half; the worst also where only all together are."""
    worst = max(odds, default=0.0)
    return min(WRONG_FROM, worst) if any_of(odds) >= WRONG_FROM else WRONG_FROM


def _finding(look: Look, p: float, is_wrong: bool, left_open: float) -> Finding:
    """Unclear where sources disagree or the evidence does not speak about it."""
    if look.item.conflict:
        return Finding(look, "unclear", p, "sources_disagree")
    if not is_wrong:
        return _carried(look, p)
    if look.is_beside_the_point or left_open >= OPEN_FROM or _nobody_objects(look):
        return Finding(look, "unclear", p, "not_addressed")
    return Finding(look, "hallucinated", p)


def _carried(look: Look, p: float) -> Finding:
    """Supported, unless hardly carried and by no reader, or its name is nowhere, nor it sure."""
    nobody = all(view.stance != "supported" for view in look.stances)
    if nobody and not look.claim.denied and look.overlap.carried <= HARDLY_CARRIED:
        return Finding(look, "unclear", p, "not_addressed")
    opening = next(iter(look.claim.reading.units), None)
    is_named = opening is not None and may_be_name(opening) and not look.claim.own_start
    is_sure = look.reading.supported >= CARRIED_FROM
    if is_named and opening in look.overlap.missing and not is_sure:
        return Finding(look, "unclear", p, "not_addressed")
    return Finding(look, "supported", p)


def _nobody_objects(look: Look) -> bool:
    """Of what is hardly carried no reader calls it wrong: lacking support is no contradiction."""
    is_absent = look.overlap.carried <= MOSTLY_ABSENT and not look.claim.denied
    return is_absent and all(view.stance != "hallucinated" for view in look.stances)


def _p_of(findings: Sequence[Finding]) -> float:
    return round(any_of([f.p for f in findings]), 4)


def _labels(view: JudgeView, findings: Sequence[Finding]) -> tuple[Label, ...]:
    """One for each statement in order; unclear for those that say nothing to check."""
    found = {f.look.statement.index: f.label for f in findings}
    return tuple(found.get(s.index, "unclear") for s in view.view.statements)


def _readers(findings: Sequence[Finding]) -> tuple[ReaderView, ...]:
    return tuple(view for f in findings for view in f.look.stances)


def _cause(findings: Sequence[Finding], conflicts: Sequence[str]) -> tuple[Cause, str]:
    if any(f.cause == "sources_disagree" for f in findings):
        return "sources_disagree", "the sources contradict each other: " + (
            conflicts[0].rstrip(".") if conflicts else "see the evidence"
        )
    open_ones = [f for f in findings if f.label == "unclear"]
    if len(findings) > 1:
        what = f"the sources say nothing about {len(open_ones)} of {len(findings)} statements"
        return "not_addressed", f"{what}, first “{shortened(open_ones[0].look.statement.text, 80)}”"
    return "not_addressed", "the sources do not speak about this"


def _agreed(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Words that several debaters contest."""
    return tuple(text for text, by in _contested(turns).items() if len(by) > 1)


def _disputed(turns: Sequence[Turn]) -> tuple[str, ...]:
    """Words that only one debater contests."""
    return tuple(text for text, by in _contested(turns).items() if len(by) == 1)


def _contested(turns: Sequence[Turn]) -> dict[str, set[str]]:
    """Contested words with who contests them; none where only one debater spoke."""
    raised: dict[str, set[str]] = {}
    for turn in turns:
        for point in turn.points:
            if point.finding != "carried":
                raised.setdefault(point.text, set()).add(turn.debater)
    return raised if len({turn.debater for turn in turns}) > 1 else {}
