"""The built-in judge, and the built-in matcher behind the match tool.

A response is as likely wrong as its worst statement and gets its label by the same limits (CEDA
A.3.4). Tools decide where the readers cannot, and overrule them with a refutation (HaluAgent 2.2,
2.3). The matcher does not say whether a statement answers a question (docs/search-and-match.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import msgspec

from core.baseline.assessment import (
    Assessment,
    Assessor,
    describe_conflict,
    explain_assessment,
    explain_label,
)
from core.baseline.debaters import DEBATER_KINDS, ENTAILMENT_READER, VALUE_CHECKER, combine_stances
from core.baseline.wording import (
    AGENT_RULES,
    CERTAINTY_WORDS,
    STANCE_WORDS,
    capitalise,
    format_count,
    join_quoted,
    shorten,
)
from core.runtime.concurrency import StopSignal
from core.schema.records import (
    Case,
    Category,
    DebatePoint,
    EvidenceContext,
    Judgement,
    Label,
    Passage,
    ReaderStance,
    Statement,
    Turn,
    UnclearCause,
)
from core.schema.roles import CaseView, Evidence, EvidenceReader, JudgeView
from core.tools import calculator, calendar, code, constraints
from core.tools.registry import Tool, ToolAnswer, ToolContext

# These readers see a statement denied; the overlap reader only misses its words.
DENYING_READERS = (ENTAILMENT_READER.name, VALUE_CHECKER.name)
TOOL_NAMES: Mapping[str, str] = {
    "conditions": "Length", "calendar": "Calendar", "code": "Code", "calculator": "Calculator"
}  # fmt: skip
"""The names that people see of the tools that the judge uses."""
OTHER_CONDITIONS_NAME = "Conditions"
JUDGE_TOOLS: tuple[Tool[Any], ...] = (constraints.TOOL, calendar.TOOL, code.TOOL)
NO_STATEMENT = "the text makes no statement that evidence could support or contradict"


@dataclass(frozen=True)
class BuiltInMatcher:
    """The implementation of `ToolContext.match` without a language model; deterministic.

    `question` is read with a short answer that cannot stand alone; `sources` maps ids to whole
    texts, in which the rows of a table are added up.
    """

    judge: EvidenceReader
    language: str
    stop: StopSignal
    question: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, statement: str, passages: Sequence[Passage]) -> ToolAnswer:
        """Label the statement against the passages; offsets are in `statement`.

        Raises Stopped if the person stopped the check.
        """
        case = Case("", "", statement, self.question, language=self.language)
        only = Statement(0, 0, len(statement), statement, statement)
        evidence = Evidence({passage.id: passage for passage in passages}, {})
        view = CaseView(case, (only,), evidence, self.sources)
        judgement = self.judge.read_statement(view, only, self.stop)
        answer = convert_to_answer(judgement, only)
        # Without a label, a probability would be mistaken for one.
        p = None if judgement.label == "unclear" else answer.p
        return replace(answer, p=p, has_something=bool(judgement.readers))


def convert_to_answer(found: Judgement, statement: Statement) -> ToolAnswer:
    """Convert a judge's finding on one statement to the match tool's answer.

    `gave["finding"]` is holds, contradicted, unsupported or open; contradicted only if a reader saw
    the statement denied. The offsets of the wrong words are those of the strongest point, in the
    statement's text; contradicted words go before missing ones.
    """
    gave: dict[str, Any] = {
        "finding": _match_finding(found),
        "readers": msgspec.to_builtins(found.readers),
        "measured": msgspec.to_builtins(found.measured),
        "points": msgspec.to_builtins(found.points),
        "cause": found.cause,
    }
    answer = ToolAnswer(found.label, found.prose or found.text, gave, found.p)
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


def _match_finding(found: Judgement) -> str:
    if found.label != "hallucinated":
        return "holds" if found.label == "supported" else "open"
    is_denied = any(
        v.stance == "hallucinated" and v.reader in DENYING_READERS for v in found.readers
    )
    is_denied = is_denied or any(point.finding == "contradicted" for point in found.points)
    return "contradicted" if is_denied else "unsupported"


@dataclass(frozen=True)
class ToolFinding:
    """A tool's result on the response; `p` is the probability that it is hallucinated.

    `sentence` is for people. `[start, end)` in `Case.response` are the words it is about, None for
    the whole response. `is_answer` is False for a condition on the answer: a correct length says
    nothing about the content. `instead` is what the words should say.
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


def find_tool_finding(
    case: Case, stop: StopSignal, statements: tuple[Statement, ...] = ()
) -> ToolFinding | None:
    """Return the decisive result of the tools; None if none applies. Refutations go first.

    The sums of `statements` are calculated too. Raises Stopped if the person stopped the check
    while code ran.
    """
    tool_context = ToolContext(stop)
    found = []
    for tool in JUDGE_TOOLS:
        tool_input = tool.reads(None, case) if tool.reads else None
        if tool_input is not None and not tool.why_off(tool_context):
            finding = _make_finding(tool.name, tool.work(tool_input, tool_context))
            found += [finding] if finding else []
    found += _check_sums(case, statements, tool_context)
    wrong = [finding for finding in found if finding.label == "hallucinated"]
    answers = [finding for finding in found if finding.is_answer]
    return next(iter((*wrong, *answers, *found)), None)


def _check_sums(
    case: Case, statements: tuple[Statement, ...], tool_context: ToolContext
) -> Iterator[ToolFinding]:
    """Yield the statements' wrong sums, and a correct one if all statements are correct sums."""
    correct = []
    for statement in statements:
        sums = calculator.read_calculation(statement, case)
        answer = calculator.check_calculations(sums, tool_context) if sums else None
        finding = _make_finding("calculator", answer) if answer else None
        if answer and finding and finding.label == "hallucinated":
            place = (statement.start + (answer.start or 0), statement.start + (answer.end or 0))
            is_placed = answer.start is not None
            yield replace(finding, start=place[0], end=place[1]) if is_placed else finding
        correct += [finding] if finding and finding.label == "supported" else []
    # If an answer says more than sums, correct sums do not decide it.
    if correct and len(correct) == len(statements):
        yield correct[0]


def _make_finding(name: str, answer: ToolAnswer) -> ToolFinding | None:
    if answer.label == "unclear" or answer.p is None:
        return None
    kinds = {condition["kind"] for condition in answer.gave.get("conditions", ())}
    # That an answer is in French does not make it right; a length is a task by itself.
    if kinds and "length" not in kinds and answer.label == "supported":
        return None
    return ToolFinding(
        answer.label,
        answer.p,
        answer.words,
        TOOL_NAMES[name] if kinds <= {"length"} else OTHER_CONDITIONS_NAME,
        answer.start,
        answer.end,
        is_answer=name not in ("conditions", "calculator"),
        instead=answer.instead,
        category=cast(Category, answer.category or "number_or_date"),
    )


def find_unavailable_tool(case: Case) -> str:
    """Return why a tool that this case needs cannot run here; usually empty."""
    for tool in JUDGE_TOOLS:
        why = tool.why_off(ToolContext(StopSignal()))
        if why and tool.reads and tool.reads(None, case) is not None:
            return why
    return ""


def apply_tools(judgement: Judgement, view: CaseView, stop: StopSignal) -> Judgement:
    """Return the judgement with the tools' results applied; usually it stays the same.

    Raises Stopped if the person stopped the check while code ran.
    """
    finding = find_tool_finding(view.case, stop, tuple(view.statements))
    is_open = judgement.label == "unclear" and judgement.cause != "image_not_readable"
    if finding and finding.label == judgement.label == "hallucinated":
        judgement = replace(  # the readers' objections are kept
            judgement,
            prose=f"{finding.sentence} {judgement.prose or judgement.text}",
            p=max(finding.p, judgement.p or 0.0),
            by_tool=finding.tool,
            statement_labels=_tool_verdict_labels(judgement, finding, view),
            points=(*judgement.points, *_finding_points(finding, view)),
        )
    elif finding and (
        finding.label == "hallucinated"
        or (is_open and (finding.is_answer or judgement.cause == "no_evidence"))
    ):
        judgement = _apply_finding(judgement, finding, view)
    note = find_unavailable_tool(view.case)
    if note and judgement.label == "unclear":
        return replace(judgement, cause_words=f"{judgement.cause_words} {note}".strip())
    if note:
        return replace(judgement, prose=f"{judgement.prose or judgement.text} {note}")
    return judgement


def _apply_finding(judgement: Judgement, finding: ToolFinding, view: CaseView) -> Judgement:
    is_whole = finding.label == "hallucinated" or finding.is_answer
    unchecked = "" if is_whole else " Nothing else was checked: no evidence."
    return replace(
        judgement,
        label=finding.label,
        # The classifier learned from readers' findings and would only guess at a count or a
        # calendar: its text has the conclusion and p, the prose for people has the reason.
        text=_word_conclusion(finding.label, finding.p, "the statement"),
        prose=f"{finding.sentence}{unchecked}",
        cause=None,
        cause_words="",
        p=finding.p,
        by_tool=finding.tool,
        statement_labels=_tool_verdict_labels(judgement, finding, view),
        points=_finding_points(finding, view),
    )


def _word_conclusion(label: Label, p: float, subject: str) -> str:
    side = p if label == "hallucinated" else 1.0 - p
    degree = next(words for least, words in CERTAINTY_WORDS if side >= least)
    head = "INCORRECT" if label == "hallucinated" else "CORRECT"
    return f"Verdict: {head}, {subject} is {degree} {label}."


def _statement_of(finding: ToolFinding, view: CaseView) -> int | None:
    """Return the index of the statement that holds the words that the finding is about."""
    start = finding.start
    indices = (s.index for s in view.statements if start is not None and s.start <= start < s.end)
    return next(indices, None)


def _tool_verdict_labels(
    judgement: Judgement, finding: ToolFinding, view: CaseView
) -> tuple[Label, ...]:
    """Return the labels with the finding's on its statement; a length belongs to none."""
    index = _statement_of(finding, view)
    labels = dict(zip((s.index for s in view.statements), judgement.statement_labels, strict=False))
    return tuple(
        finding.label if s.index == index else labels.get(s.index, "unclear")
        for s in view.statements
    )


def _finding_points(finding: ToolFinding, view: CaseView) -> tuple[DebatePoint, ...]:
    index = _statement_of(finding, view)
    start, end = finding.start, finding.end
    if index is None or start is None or end is None or finding.label != "hallucinated":
        return ()
    point = DebatePoint(
        statement=index,
        finding="contradicted",
        start=start,
        end=end,
        text=view.case.response[start:end],
        category=finding.category,
        evidence=finding.instead,
        explanation=finding.sentence,
        weight=finding.p,
    )
    return (point,)


@dataclass(frozen=True)
class StatementFinding:
    """The judge's finding on one statement, with its points and its reason."""

    item: Assessment
    points: tuple[DebatePoint, ...]
    reason: str


class BuiltInJudge:
    """The built-in judge; deterministic for a given reader and evidence model."""

    name = "Built-in judge"
    built_in = True

    def __init__(self, assessor: Assessor) -> None:
        self._assessor = assessor

    @property
    def rule(self) -> str:
        """Return the rules with the current limits."""
        model = self._assessor.model
        rule = AGENT_RULES["judge"].format(
            hallucinated_from=model.hallucinated_from,
            supported_below=model.supported_below,
            supported_error=model.card["limits"]["supported_error"],
            hallucinated_error=model.card["limits"]["hallucinated_error"],
        )
        return f"{rule}\n{AGENT_RULES['tools']}"

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """Judge the whole response by the evidence and the tools."""
        return apply_tools(self.read(view, stop), view.case_view, stop)

    def read(self, view: JudgeView, stop: StopSignal) -> Judgement:
        """Judge the whole response by the evidence alone."""
        return self._check_input(view) or self._conclude(view, self.findings(view.case_view, stop))

    def read_statement(self, view: CaseView, statement: Statement, stop: StopSignal) -> Judgement:
        """Judge one statement over all passages of the view; its prose is the reason."""
        compared = _with_similarity(statement, tuple(view.evidence.passages.values()), stop)
        passages = {passage.id: passage for passage in compared}
        evidence = Evidence(passages, {statement.index: tuple(passages)})
        alone = replace(view, statements=(statement,), evidence=evidence)
        whole = JudgeView(
            alone, EvidenceContext((), tuple(passages), ""), (), reached_consensus=False
        )
        if unreadable := self._check_input(whole):
            return replace(unreadable, prose=unreadable.cause_words)
        findings = self.findings(alone, stop)
        judgement = self._conclude(whole, findings)
        return replace(judgement, prose=findings[0].reason if findings else judgement.cause_words)

    def findings(self, view: CaseView, stop: StopSignal) -> list[StatementFinding]:
        """Return a finding for every statement that says something to check."""
        findings = []
        for item in self._assessor.assess(view, stop):
            points = explain_assessment(item, self._assessor.reader, stop)
            findings.append(StatementFinding(item, points, explain_label(item, points)))
        return findings

    def _check_input(self, view: JudgeView) -> Judgement | None:
        """Return an unclear judgement if an image is unreadable or there is nothing to read."""
        if view.case_view.unreadable_images:
            names = join_quoted(view.case_view.unreadable_images)
            words = f"{names} could not be read here: no text was found in it"
            return self._make_unclear(view, "image_not_readable", words)
        if view.case_view.evidence.passages:
            return None
        if view.case_view.case.documents and not view.case_view.statements:
            return self._make_unclear(view, "not_addressed", NO_STATEMENT)
        return self._make_unclear(view, "no_evidence", "there is no evidence to check it against")

    def _conclude(self, view: JudgeView, findings: Sequence[StatementFinding]) -> Judgement:
        if not findings:
            return self._make_unclear(view, "not_addressed", NO_STATEMENT)
        p = round(self._assessor.model.response([f.item.p for f in findings]), 4)
        label = combine_stances([f.item.label for f in findings])
        if label == "unclear":
            cause, words = _find_cause(findings)
            return replace(self._make_unclear(view, cause, words, findings), p=p)
        worst = max(findings, key=lambda finding: finding.item.p)
        return Judgement(
            agent=self.name,
            label=label,
            text=word_verdict(label, p, findings, view.turns),
            agreed=_contested_words(view.turns, is_shared=True),
            disputed=_contested_words(view.turns, is_shared=False),
            statement_labels=_statement_labels(view, findings),
            points=tuple(point for f in findings for point in f.points),
            p=p,
            readers=tuple(v for f in findings for v in self._reader_views(f)),
            measured=self._assessor.model.measured_share(worst.item.measured, p),
        )

    def _make_unclear(
        self,
        view: JudgeView,
        cause: UnclearCause,
        words: str,
        findings: Sequence[StatementFinding] = (),
    ) -> Judgement:
        return Judgement(
            agent=self.name,
            label="unclear",
            text=f"No verdict: {words}.",
            agreed=_contested_words(view.turns, is_shared=True),
            disputed=_contested_words(view.turns, is_shared=False),
            cause=cause,
            cause_words=capitalise(words) + ".",
            statement_labels=_statement_labels(view, findings) if findings else (),
            readers=tuple(v for f in findings for v in self._reader_views(f)),
        )

    def _reader_views(self, finding: StatementFinding) -> tuple[ReaderStance, ...]:
        """Return the stance of each debater's model on the statement over the whole evidence."""
        model, index = self._assessor.model, finding.item.statement.index
        return tuple(
            ReaderStance(
                kind.name, index, model.label(model.part(kind.part, finding.item.measured))
            )
            for kind in DEBATER_KINDS.values()
        )


def _statement_labels(view: JudgeView, findings: Sequence[StatementFinding]) -> tuple[Label, ...]:
    labels = {f.item.statement.index: f.item.label for f in findings}
    return tuple(labels.get(s.index, "unclear") for s in view.case_view.statements)


def _find_cause(findings: Sequence[StatementFinding]) -> tuple[UnclearCause, str]:
    open_ones = [f for f in findings if f.item.label == "unclear"]
    causes = [f.item.cause for f in open_ones]
    first = shorten(open_ones[0].item.statement.text, 80)
    share = f"{len(open_ones)} of {format_count(len(findings), 'statement')}"
    if "language_not_known" in causes:
        return "language_not_known", (
            "the reader does not know the language of text or sources, and words and values do not "
            "settle it"
        )
    conflict = next((f.item.conflict for f in open_ones if f.item.conflict), None)
    if conflict is not None:
        return "sources_disagree", describe_conflict(conflict)
    if causes.count("not_addressed") == len(causes):
        if len(findings) == 1:
            return "not_addressed", "the sources do not speak about this"
        return "not_addressed", f"the sources do not speak about {share}, first “{first}”"
    if len(findings) == 1:
        return "not_settled", "the sources neither plainly support nor plainly contradict it"
    return "not_settled", f"the sources do not settle {share}, first “{first}”"


def word_verdict(
    label: Label, p: float, findings: Sequence[StatementFinding], turns: Sequence[Turn]
) -> str:
    """Return the debate's outcome, the decisive reasons and the verdict; the classifier reads it.

    Certainty is given in graded words, since the classifier's encoder hardly distinguishes numbers.
    """
    decisive = [f for f in findings if f.item.label == label]
    decisive.sort(key=lambda f: -abs(f.item.p - 0.5))
    subject = "the statement" if len(findings) == 1 else "the response"
    parts = [_word_debate(turns, label, subject)]
    if len(findings) > 1:
        share = f"{len(decisive)} of {format_count(len(findings), 'statement')}"
        parts.append(f"{share} {'is' if len(decisive) == 1 else 'are'} {STANCE_WORDS[label]}.")
    parts += [f.reason for f in decisive[:2]]
    return " ".join(part for part in (*parts, _word_conclusion(label, p, subject)) if part)


def _word_debate(turns: Sequence[Turn], label: Label, subject: str) -> str:
    """Return how the debate ended, and whether the judge, who sees all evidence, agrees."""
    if not turns:
        return ""
    if all(turn.assigned is not None for turn in turns):
        return "The debaters argued the sides that they were assigned."
    last = {turn.debater: turn for turn in turns}
    stances = {turn.stance for turn in last.values()}
    if len(stances) > 1:
        views = (f"{t.agent} calls it {STANCE_WORDS[t.stance]}" for t in last.values())
        return "The debaters disagree: " + ", ".join(views) + "."
    (stance,) = stances
    callers = {1: "The debater calls", 2: "Both debaters call"}.get(len(last), "All debaters call")
    view = f"{callers} {subject} {STANCE_WORDS[stance]}"
    return f"{view}." if stance == label else f"{view}; all the evidence together says otherwise."


def _contested_words(turns: Sequence[Turn], *, is_shared: bool) -> tuple[str, ...]:
    """Return the words that several debaters contest, or only one; none with a single debater."""
    raised: dict[str, set[str]] = {}
    for turn in turns:
        for point in turn.points:
            if point.finding != "carried":
                raised.setdefault(point.text, set()).add(turn.debater)
    several = len({turn.debater for turn in turns}) > 1
    return tuple(text for text, by in raised.items() if several and (len(by) > 1) == is_shared)


def _with_similarity(
    statement: Statement, passages: tuple[Passage, ...], stop: StopSignal
) -> tuple[Passage, ...]:
    """Add the passages' similarity to the statement if no search of ours has set it.

    Otherwise results of a web search, or passages given by a person, would count as unrelated.
    """
    if not passages or any(passage.similarity is not None for passage in passages):
        return passages
    from core.baseline.encoder import load_multilingual_encoder

    texts = [statement.rewrite, *(passage.text for passage in passages)]
    statement_vector, *vectors = load_multilingual_encoder().encode(texts, stop)
    return tuple(
        replace(passage, similarity=float(statement_vector @ vector))
        for passage, vector in zip(passages, vectors, strict=True)
    )
