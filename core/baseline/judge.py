"""The built-in judge: the evidence model's probability for each statement, and what follows.

One chain leads from the statements to the headline: a response is as likely wrong as its worst
statement, its label follows from that probability by the same limits as a statement's, and the
reasons are drawn from what was read (CEDA A.3.4). Tools decide where the readers cannot, or where a
tool refutes them. Each reads the question and the response itself and speaks only where it is
meant: a length, a date, code that is run, and sums, which are worked out statement by statement in
every protocol (HaluAgent 2.2, 2.3: one tool per kind of statement).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from core.baseline.assessment import Assessment, Assessor, points_of, reason_of
from core.baseline.debaters import KINDS, overall
from core.baseline.wording import (
    DEGREES,
    WORDS_OF_STANCE,
    capitalised,
    cited,
    counted,
    listed,
    shortened,
)
from core.runtime.concurrency import Stop
from core.schema.records import (
    Case,
    Category,
    Cause,
    Context,
    Judgement,
    Label,
    Passage,
    Point,
    ReaderView,
    Statement,
    Turn,
)
from core.schema.roles import CaseView, Evidence, JudgeView
from core.tools import calculator, calendar, code, constraints
from core.tools.registry import Answer, Bench, Tool

TOOL_RULE = """\
Besides the evidence, tools look at the question: a length that it asks for is counted (a
bare figure may be missed by 7.5 %, "about" by 20 %, a bound not at all), a format, a language or
words that it plainly asks for are looked for, a date question that
states its dates is worked out, Python that comes with checks is run in a sandbox, the sums that a
statement states are worked out again. What a tool refutes is hallucinated whatever the readers
find. What the calendar or the run confirms is supported where the readers leave it open, and so is
an answer of right sums alone where there is no evidence; a length that is kept only where there is
none, and then nothing else was checked."""


# What people call each tool that the judge asks.
NAMES: Mapping[str, str] = {"conditions": "Length", "calendar": "Calendar", "code": "Code",
                              "calculator": "Calculator"}  # fmt: skip
OTHER_CONDITIONS = "Conditions"
TOOLS: tuple[Tool[Any], ...] = (constraints.TOOL, calendar.TOOL, code.TOOL)


@dataclass(frozen=True)
class ToolFinding:
    """A tool's word on the response; `p` is the probability that it is hallucinated.

    `sentence` is for people. `[start, end)` in `Case.response` is what it is about, None where
    that is all of it. `is_answer` tells the answer itself from a condition on it: a kept length
    says nothing about what is written. `instead` is what the words should say.
    """

    label: Literal["supported", "hallucinated"]
    p: float
    sentence: str
    tool: str
    start: int | None = None
    end: int | None = None
    is_answer: bool = False
    instead: str = ""
    category: Category = "number_or_date"


def tool_finding(
    case: Case, stop: Stop, statements: tuple[Statement, ...] = ()
) -> ToolFinding | None:
    """What the tools find; None where none applies. A broken condition weighs most.

    `statements` are those whose sums are worked out. Raises Stopped if the person stopped the
    check while code ran.
    """
    bench = Bench(stop)
    found = []
    for tool in TOOLS:
        given = tool.reads(None, case) if tool.reads else None
        if given is not None and not tool.why_off(bench):
            finding = _finding(tool.name, tool.work(given, bench))
            found += [finding] if finding else []
    found += _sum_findings(case, statements, bench)
    wrong = [finding for finding in found if finding.label == "hallucinated"]
    answers = [finding for finding in found if finding.is_answer]
    return next(iter((*wrong, *answers, *found)), None)


def _sum_findings(
    case: Case, statements: tuple[Statement, ...], bench: Bench
) -> Iterator[ToolFinding]:
    """Wrong sums of the statements; a right one where all statements are right sums."""
    right = []
    for statement in statements:
        given = calculator.reads(statement, case)
        answer = calculator.work(given, bench) if given else None
        finding = _finding("calculator", answer) if answer else None
        if answer and finding and finding.label == "hallucinated":
            place = (statement.start + (answer.start or 0), statement.start + (answer.end or 0))
            is_placed = answer.start is not None
            yield replace(finding, start=place[0], end=place[1]) if is_placed else finding
        right += [finding] if finding and finding.label == "supported" else []
    # Arithmetic alone says little: of an answer that says more, its sums are no verdict.
    if right and len(right) == len(statements):
        yield right[0]


def _finding(name: str, answer: Answer) -> ToolFinding | None:
    if answer.label == "unclear" or answer.p is None:
        return None
    kinds = {one["kind"] for one in answer.gave.get("conditions", ())}
    # That an answer is in French says too little to call it right; a length is its whole task.
    if kinds and "length" not in kinds and answer.label == "supported":
        return None
    return ToolFinding(
        answer.label,
        answer.p,
        answer.words,
        NAMES[name] if kinds <= {"length"} else OTHER_CONDITIONS,
        answer.start,
        answer.end,
        is_answer=name not in ("conditions", "calculator"),
        instead=answer.instead,
        category=cast(Category, answer.category or "number_or_date"),
    )


def what_is_off(case: Case) -> str:
    """Which tool this case would have needed that cannot work here, and why; mostly empty."""
    for tool in TOOLS:
        why = tool.why_off(Bench(Stop()))
        if why and tool.reads and tool.reads(None, case) is not None:
            return why
    return ""


def with_tools(judgement: Judgement, view: CaseView, stop: Stop) -> Judgement:
    """The judgement as it stands once the tools have spoken; mostly the same.

    Raises Stopped if the person stopped the check while code ran.
    """
    return _with_note(_weighed(judgement, view, stop), what_is_off(view.case))


def _weighed(judgement: Judgement, view: CaseView, stop: Stop) -> Judgement:
    finding = tool_finding(view.case, stop, tuple(view.statements))
    if finding is None:
        return judgement
    if finding.label == "hallucinated":
        return _refuted(judgement, finding, view)
    is_open = judgement.label == "unclear" and judgement.cause != "image_not_readable"
    if is_open and (finding.is_answer or judgement.cause == "no_evidence"):
        return _decided(judgement, finding, view)
    return judgement


def _with_note(judgement: Judgement, note: str) -> Judgement:
    """A tool that is off is told of where the verdict's reason stands."""
    if not note:
        return judgement
    if judgement.label == "unclear":
        return replace(judgement, cause_words=f"{judgement.cause_words} {note}".strip())
    return replace(judgement, prose=f"{judgement.prose or judgement.text} {note}")


def _refuted(judgement: Judgement, finding: ToolFinding, view: CaseView) -> Judgement:
    """Hallucinated; what the readers found against it stays beside it."""
    if judgement.label != "hallucinated":
        return _decided(judgement, finding, view)
    return replace(
        judgement,
        prose=f"{finding.sentence} {judgement.prose or judgement.text}",
        p=max(finding.p, judgement.p or 0.0),
        by_tool=finding.tool,
        statement_labels=_tool_verdict_labels(judgement, finding, view),
        points=(*judgement.points, *_points(finding, view)),
    )


def _decided(judgement: Judgement, finding: ToolFinding, view: CaseView) -> Judgement:
    is_wrong = finding.label == "hallucinated"
    is_whole = is_wrong or finding.is_answer
    unchecked = "" if is_whole else " Nothing else was checked: no evidence."
    return replace(
        judgement,
        label=finding.label,
        # The classifier learned from what readers find in evidence and would guess at a count or a
        # calendar: it is told the conclusion and p, people are told the reason.
        text=_concluded(finding),
        prose=f"{finding.sentence}{unchecked}",
        cause=None,
        cause_words="",
        p=finding.p,
        by_tool=finding.tool,
        statement_labels=_tool_verdict_labels(judgement, finding, view),
        points=_points(finding, view),
    )


def _concluded(finding: ToolFinding) -> str:
    """As the judge concludes over what it read."""
    is_wrong = finding.label == "hallucinated"
    side = finding.p if is_wrong else 1.0 - finding.p
    degree = next(words for least, words in DEGREES if side >= least)
    head = "INCORRECT" if is_wrong else "CORRECT"
    return f"Verdict: {head}, the statement is {degree} {finding.label}."


def _statement_of(finding: ToolFinding, view: CaseView) -> int | None:
    """The statement that holds the words that the finding is about."""
    if finding.start is None:
        return None
    return next(
        (s.index for s in view.statements if s.start <= finding.start < s.end),
        None,
    )


def _tool_verdict_labels(
    judgement: Judgement, finding: ToolFinding, view: CaseView
) -> tuple[Label, ...]:
    """The label of the statement it is about is the finding's; a length is about none of them."""
    index = _statement_of(finding, view)
    before = dict(zip((s.index for s in view.statements), judgement.statement_labels, strict=False))
    return tuple(
        finding.label if s.index == index else before.get(s.index, "unclear")
        for s in view.statements
    )


def _points(finding: ToolFinding, view: CaseView) -> tuple[Point, ...]:
    """The refuted words, for marking."""
    index = _statement_of(finding, view)
    if index is None or finding.start is None or finding.end is None:
        return ()
    if finding.label != "hallucinated":
        return ()
    return (
        Point(
            statement=index,
            finding="contradicted",
            start=finding.start,
            end=finding.end,
            text=view.case.response[finding.start : finding.end],
            category=finding.category,
            evidence=finding.instead,
            explanation=finding.sentence,
            weight=finding.p,
        ),
    )


NO_STATEMENT = "the text makes no statement that evidence could support or contradict"
RULE = """Reads each statement against windows of all its evidence and measures some twenty things:
what the reader says for and against, and how much of the words, names and values is in the sources.
A model fitted on public data weighs them into one calibrated probability that the statement is not
supported.
1. No evidence, or an unreadable image: unclear, with its cause. Evidence about something else
   altogether: unclear too. In a language that the reader does not know, another value than the
   sources' may decide, and where none does, that is the cause.
2. From {hallucinated_from:.2f} on a statement is hallucinated, below {supported_below:.2f} it is
   supported, between them unclear. The limits were chosen so that {hallucinated_error:.0%} of what
   is called hallucinated is right, and {supported_error:.0%} of what is called supported is wrong,
   among statements that people labelled, half of which are wrong.
3. A response is as likely wrong as its worst statement, and the same limits decide."""


@dataclass(frozen=True)
class Finding:
    """What the judge finds on one statement, and why."""

    item: Assessment
    points: tuple[Point, ...]
    reason: str

    @property
    def label(self) -> Label:
        """The statement's label."""
        return self.item.label

    @property
    def p(self) -> float:
        """How likely it is not supported."""
        return self.item.p


class BuiltInJudge:
    """Built-in judge; deterministic for one reader and one evidence model."""

    name = "Built-in judge"
    built_in = True

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    @property
    def rule(self) -> str:
        """The rules with the limits in force."""
        model = self._assessor.model
        told = RULE.format(
            hallucinated_from=model.hallucinated_from,
            supported_below=model.supported_below,
            supported_error=model.card["limits"]["supported_error"],
            hallucinated_error=model.card["limits"]["hallucinated_error"],
        )
        return f"{told}\n{TOOL_RULE}"

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding over the whole response, with what tools work out beside the evidence."""
        return with_tools(self.read(view, stop), view.view, stop)

    def read(self, view: JudgeView, stop: Stop) -> Judgement:
        """The finding by the evidence alone."""
        return self._barred(view) or self._concluded(view, self.findings(view.view, stop))

    def read_statement(self, view: CaseView, statement: Statement, stop: Stop) -> Judgement:
        """The finding on one statement over all passages of the view; its prose is the reason."""
        found = _compared(statement, tuple(view.evidence.passages.values()), stop)
        passages = {passage.id: passage for passage in found}
        evidence = Evidence(passages, {statement.index: tuple(passages)})
        alone = replace(view, statements=(statement,), evidence=evidence)
        seen = JudgeView(alone, Context((), tuple(passages), ""), (), reached_consensus=False)
        if barred := self._barred(seen):
            return replace(barred, prose=barred.cause_words)
        findings = self.findings(alone, stop)
        concluded = self._concluded(seen, findings)
        return replace(concluded, prose=findings[0].reason if findings else concluded.cause_words)

    def findings(self, view: CaseView, stop: Stop) -> list[Finding]:
        """What it finds on every statement that says something to check."""
        found = []
        for item in self._assessor.assess(view, stop):
            points = points_of(item, self._assessor.reader, stop)
            found.append(Finding(item, points, reason_of(item, points)))
        return found

    def _barred(self, view: JudgeView) -> Judgement | None:
        """Unclear before anything is read: an image that cannot be, or nothing to read."""
        if view.view.unreadable_images:
            names = listed(view.view.unreadable_images)
            words = f"{names} could not be read here: no text was found in it"
            return self._unclear(view, "image_not_readable", words)
        if view.view.evidence.passages:
            return None
        if view.view.case.documents and not view.view.statements:
            return self._unclear(view, "not_addressed", NO_STATEMENT)
        return self._unclear(view, "no_evidence", "there is no evidence to check it against")

    def _concluded(self, view: JudgeView, findings: Sequence[Finding]) -> Judgement:
        if not findings:
            return self._unclear(view, "not_addressed", NO_STATEMENT)
        p = round(self._assessor.model.response([f.p for f in findings]), 4)
        label = overall([f.label for f in findings])
        if label == "unclear":
            cause, words = _cause(findings)
            return replace(self._unclear(view, cause, words, findings), p=p)
        worst = max(findings, key=lambda finding: finding.p)
        return Judgement(
            agent=self.name,
            label=label,
            text=verdict_text(label, p, findings, view.turns),
            agreed=_agreed(view.turns),
            disputed=_disputed(view.turns),
            statement_labels=_labels(view, findings),
            points=tuple(point for f in findings for point in f.points),
            p=p,
            readers=tuple(v for f in findings for v in self._views(f)),
            measured=self._assessor.model.measured_share(worst.item.measured, p),
        )

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
            readers=tuple(v for f in findings for v in self._views(f)),
        )

    def _views(self, finding: Finding) -> tuple[ReaderView, ...]:
        """What each of the debaters' models makes of the statement in the whole evidence."""
        model, index = self._assessor.model, finding.item.statement.index
        return tuple(
            ReaderView(kind.name, index, model.label(model.part(kind.part, finding.item.measured)))
            for kind in KINDS.values()
        )


def _labels(view: JudgeView, findings: Sequence[Finding]) -> tuple[Label, ...]:
    """One for each statement in order; unclear for those that say nothing to check."""
    found = {f.item.statement.index: f.label for f in findings}
    return tuple(found.get(s.index, "unclear") for s in view.view.statements)


def _cause(findings: Sequence[Finding]) -> tuple[Cause, str]:
    open_ones = [f for f in findings if f.label == "unclear"]
    causes = [f.item.cause for f in open_ones]
    first = shortened(open_ones[0].item.statement.text, 80)
    share = f"{len(open_ones)} of {counted(len(findings), 'statement')}"
    if "language_not_known" in causes:
        return "language_not_known", (
            "the reader does not know the language of text or sources, and words and values do not "
            "settle it"
        )
    conflict = next((f.item.conflict for f in open_ones if f.item.conflict), None)
    if conflict is not None:
        one, other = (cited(passage) for passage in conflict)
        return "sources_disagree", f"the sources disagree: {one} stands against {other}"
    if causes.count("not_addressed") == len(causes):
        if len(findings) == 1:
            return "not_addressed", "the sources do not speak about this"
        return "not_addressed", f"the sources do not speak about {share}, first “{first}”"
    if len(findings) == 1:
        return "not_settled", "the sources neither plainly support nor plainly contradict it"
    return "not_settled", f"the sources do not settle {share}, first “{first}”"


def verdict_text(label: Label, p: float, findings: Sequence[Finding], turns: Sequence[Turn]) -> str:
    """What the debaters came to, the decisive reasons, the verdict; the classifier reads it too.

    Graded words stand for numbers, which its encoder hardly tells apart.
    """
    decisive = sorted((f for f in findings if f.label == label), key=lambda f: -abs(f.p - 0.5))
    subject = "the statement" if len(findings) == 1 else "the response"
    parts = [_debate_words(turns, label, subject)]
    if len(findings) > 1:
        share = f"{len(decisive)} of {counted(len(findings), 'statement')}"
        parts.append(f"{share} {'is' if len(decisive) == 1 else 'are'} {WORDS_OF_STANCE[label]}.")
    parts += [f.reason for f in decisive[:2]]
    side = p if label == "hallucinated" else 1.0 - p
    degree = next(words for least, words in DEGREES if side >= least)
    head = "INCORRECT" if label == "hallucinated" else "CORRECT"
    parts.append(f"Verdict: {head}, {subject} is {degree} {label}.")
    return " ".join(part for part in parts if part)


def _debate_words(turns: Sequence[Turn], label: Label, subject: str) -> str:
    """How the debate ended, and whether the judge, who sees all the evidence, agrees with it."""
    if not turns:
        return ""
    if all(turn.assigned is not None for turn in turns):
        return "The debaters argued the sides that they were assigned."
    last = {turn.debater: turn for turn in turns}
    stances = {turn.stance for turn in last.values()}
    if len(stances) > 1:
        views = (f"{t.agent} calls it {WORDS_OF_STANCE[t.stance]}" for t in last.values())
        return "The debaters disagree: " + ", ".join(views) + "."
    (stance,) = stances
    who = {1: "The debater calls", 2: "Both debaters call"}.get(len(last), "All debaters call")
    told = f"{who} {subject} {WORDS_OF_STANCE[stance]}"
    return f"{told}." if stance == label else f"{told}; all the evidence together says otherwise."


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


def _compared(
    statement: Statement, passages: tuple[Passage, ...], stop: Stop
) -> tuple[Passage, ...]:
    """The passages with how like the statement they are, where no search of ours has told it.

    What a web search brings, or a person hands to a tool, would else pass for beside the point.
    """
    if not passages or any(passage.similarity is not None for passage in passages):
        return passages
    from core.baseline.encoder import load_multilingual_encoder

    texts = [statement.rewrite, *(passage.text for passage in passages)]
    own, *others = load_multilingual_encoder().encode(texts, stop)
    return tuple(
        replace(passage, similarity=float(own @ other))
        for passage, other in zip(passages, others, strict=True)
    )
