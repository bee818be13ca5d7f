"""The built-in judge, and the built-in reader behind the match tool.

A response is as likely wrong as its worst statement, and its label follows by the same limits (CEDA
A.3.4). Tools decide where the readers cannot, or where one refutes them (HaluAgent 2.2, 2.3). The
matcher does not say whether a statement answers a question (docs/search-and-match.md has why).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import msgspec

from core.baseline.assessment import Assessment, Assessor, points_of, reason_of
from core.baseline.debaters import ENTAILMENT, KINDS, VALUES, overall
from core.baseline.wording import (
    DEGREES,
    RULES,
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
from core.schema.roles import CaseView, Evidence, EvidenceReader, JudgeView
from core.tools import calculator, calendar, code, constraints
from core.tools.registry import Answer, Bench, Tool

# What these call hallucinated they saw denied; the overlap reader only misses it.
DENYING = (ENTAILMENT.name, VALUES.name)


@dataclass(frozen=True)
class BuiltInMatcher:
    """What `Bench.match` is where no language model is asked; deterministic.

    `question` is read with a short answer that cannot stand alone; `sources` maps ids to whole
    texts, from which a table's rows are added up.
    """

    judge: EvidenceReader
    language: str
    stop: Stop
    question: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, statement: str, passages: Sequence[Passage]) -> Answer:
        """The statement's label; offsets lie in `statement`.

        Raises Stopped if the person stopped the check.
        """
        case = Case("", "", statement, self.question, language=self.language)
        alone = Statement(0, 0, len(statement), statement, statement)
        evidence = Evidence({passage.id: passage for passage in passages}, {})
        view = CaseView(case, (alone,), evidence, self.sources)
        found = self.judge.read_statement(view, alone, self.stop)
        answer = answer_of(found, alone)
        # Where no label follows, a number beside it would be taken for one.
        p = None if found.label == "unclear" else answer.p
        return replace(answer, p=p, has_something=bool(found.readers))


def answer_of(found: Judgement, statement: Statement) -> Answer:
    """A judge's finding on one statement as the match tool gives it.

    `gave["finding"]` is holds, contradicted, unsupported or open: contradicted only where a reader
    saw the statement denied. The place of the wrong words is that of the strongest point, in the
    statement's text, contradicted words before missing ones.
    """
    gave: dict[str, Any] = {
        "finding": _finding_of(found),
        "readers": msgspec.to_builtins(found.readers),
        "measured": msgspec.to_builtins(found.measured),
        "points": msgspec.to_builtins(found.points),
        "cause": found.cause,
    }
    answer = Answer(found.label, found.prose or found.text, gave, found.p)
    wrong = [point for point in found.points if point.finding == "contradicted"] or found.points
    if found.label != "hallucinated" or not wrong:
        return answer
    point = max(wrong, key=lambda point: point.weight)
    return replace(
        answer,
        start=point.start - statement.start,
        end=point.end - statement.start,
        instead=point.evidence if point.finding == "contradicted" else "",
        category=point.category,
    )


def _finding_of(found: Judgement) -> str:
    if found.label != "hallucinated":
        return "holds" if found.label == "supported" else "open"
    is_denied = any(v.stance == "hallucinated" and v.reader in DENYING for v in found.readers)
    is_denied = is_denied or any(point.finding == "contradicted" for point in found.points)
    return "contradicted" if is_denied else "unsupported"


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
    finding = tool_finding(view.case, stop, tuple(view.statements))
    is_open = judgement.label == "unclear" and judgement.cause != "image_not_readable"
    if finding and finding.label == judgement.label == "hallucinated":
        judgement = replace(  # what the readers found against it stays beside it
            judgement,
            prose=f"{finding.sentence} {judgement.prose or judgement.text}",
            p=max(finding.p, judgement.p or 0.0),
            by_tool=finding.tool,
            statement_labels=_tool_verdict_labels(judgement, finding, view),
            points=(*judgement.points, *_points(finding, view)),
        )
    elif finding and (
        finding.label == "hallucinated"
        or (is_open and (finding.is_answer or judgement.cause == "no_evidence"))
    ):
        judgement = _decided(judgement, finding, view)
    note = what_is_off(view.case)
    if note and judgement.label == "unclear":
        return replace(judgement, cause_words=f"{judgement.cause_words} {note}".strip())
    if note:
        return replace(judgement, prose=f"{judgement.prose or judgement.text} {note}")
    return judgement


def _decided(judgement: Judgement, finding: ToolFinding, view: CaseView) -> Judgement:
    is_whole = finding.label == "hallucinated" or finding.is_answer
    unchecked = "" if is_whole else " Nothing else was checked: no evidence."
    return replace(
        judgement,
        label=finding.label,
        # The classifier learned from what readers find in evidence and would guess at a count or a
        # calendar: it is told the conclusion and p, people are told the reason.
        text=_conclusion(finding.label, finding.p, "the statement"),
        prose=f"{finding.sentence}{unchecked}",
        cause=None,
        cause_words="",
        p=finding.p,
        by_tool=finding.tool,
        statement_labels=_tool_verdict_labels(judgement, finding, view),
        points=_points(finding, view),
    )


def _conclusion(label: Label, p: float, subject: str) -> str:
    side = p if label == "hallucinated" else 1.0 - p
    degree = next(words for least, words in DEGREES if side >= least)
    head = "INCORRECT" if label == "hallucinated" else "CORRECT"
    return f"Verdict: {head}, {subject} is {degree} {label}."


def _statement_of(finding: ToolFinding, view: CaseView) -> int | None:
    """The statement that holds the words that the finding is about."""
    start = finding.start
    held = (s.index for s in view.statements if start is not None and s.start <= start < s.end)
    return next(held, None)


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
    index = _statement_of(finding, view)
    start, end = finding.start, finding.end
    if index is None or start is None or end is None or finding.label != "hallucinated":
        return ()
    return (
        Point(
            index, "contradicted", start, end, view.case.response[start:end], finding.category,
            evidence=finding.instead, explanation=finding.sentence, weight=finding.p,
        ),
    )  # fmt: skip


NO_STATEMENT = "the text makes no statement that evidence could support or contradict"


@dataclass(frozen=True)
class Finding:
    """What the judge finds on one statement, and why."""

    item: Assessment
    points: tuple[Point, ...]
    reason: str


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
        told = RULES["judge"].format(
            hallucinated_from=model.hallucinated_from,
            supported_below=model.supported_below,
            supported_error=model.card["limits"]["supported_error"],
            hallucinated_error=model.card["limits"]["hallucinated_error"],
        )
        return f"{told}\n{RULES['tools']}"

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
        p = round(self._assessor.model.response([f.item.p for f in findings]), 4)
        label = overall([f.item.label for f in findings])
        if label == "unclear":
            cause, words = _cause(findings)
            return replace(self._unclear(view, cause, words, findings), p=p)
        worst = max(findings, key=lambda finding: finding.item.p)
        return Judgement(
            agent=self.name,
            label=label,
            text=verdict_text(label, p, findings, view.turns),
            agreed=_contested(view.turns, is_shared=True),
            disputed=_contested(view.turns, is_shared=False),
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
            agreed=_contested(view.turns, is_shared=True),
            disputed=_contested(view.turns, is_shared=False),
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
    found = {f.item.statement.index: f.item.label for f in findings}
    return tuple(found.get(s.index, "unclear") for s in view.view.statements)


def _cause(findings: Sequence[Finding]) -> tuple[Cause, str]:
    open_ones = [f for f in findings if f.item.label == "unclear"]
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
    decisive = [f for f in findings if f.item.label == label]
    decisive.sort(key=lambda f: -abs(f.item.p - 0.5))
    subject = "the statement" if len(findings) == 1 else "the response"
    parts = [_debate_words(turns, label, subject)]
    if len(findings) > 1:
        share = f"{len(decisive)} of {counted(len(findings), 'statement')}"
        parts.append(f"{share} {'is' if len(decisive) == 1 else 'are'} {WORDS_OF_STANCE[label]}.")
    parts += [f.reason for f in decisive[:2]]
    return " ".join(part for part in (*parts, _conclusion(label, p, subject)) if part)


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


def _contested(turns: Sequence[Turn], *, is_shared: bool) -> tuple[str, ...]:
    """Words that several debaters contest, or only one; none where only one debater spoke."""
    raised: dict[str, set[str]] = {}
    for turn in turns:
        for point in turn.points:
            if point.finding != "carried":
                raised.setdefault(point.text, set()).add(turn.debater)
    several = len({turn.debater for turn in turns}) > 1
    return tuple(text for text, by in raised.items() if several and (len(by) > 1) == is_shared)


def _compared(
    statement: Statement, passages: tuple[Passage, ...], stop: Stop
) -> tuple[Passage, ...]:
    """The passages with how like the statement they are, where no search of ours has told it.

    What a web search brings, or a person hands to a tool, would else pass for beside the point.
    """
    if not passages or any(passage.similarity is not None for passage in passages):
        return passages
    from core.baseline.export import load_multilingual_encoder

    texts = [statement.rewrite, *(passage.text for passage in passages)]
    own, *others = load_multilingual_encoder().encode(texts, stop)
    return tuple(
        replace(passage, similarity=float(own @ other))
        for passage, other in zip(passages, others, strict=True)
    )
