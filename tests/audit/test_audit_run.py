"""A whole audit: statements, tools, reflection, debate on what is contested, verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from core.agents.rosters import make_built_in_roster
from core.pipeline.review import ReviewResources
from core.runtime.concurrency import StopSignal
from core.runtime.errors import BudgetReached, ModelError, ReplyError
from core.schema.events import (
    TRANSIENT_KINDS,
    Event,
    LabelRevision,
    MemoryEntry,
    RunResumed,
    ToolUse,
)
from core.schema.records import Case, EvidenceContext, Plan, Run
from core.schema.roles import AuditView, CaseView, Roster, ToolStep
from core.schema.run_state import RunState, can_resume, fold_events
from core.tools.registry import SearchResult, ToolContext
from tests.fakes import case_of, review
from tests.readers import SUPPORTS, ScriptedReader, assessor_with
from tests.waiting import PATIENCE_SECONDS

PLAN = Plan("audit")
TOWER = b"The Orrin tower is 412 m tall. It was opened in 1932. Its architect was Lena Moor."
MIXED = (
    "Great question! The Orrin tower was opened in 1932. It is 512 m tall. 3 + 4 = 8. "
    "So 8 * 2 = 16. I think it is beautiful."
)


class ScriptedPicker:
    """Takes the steps that the test wrote for each statement (None: the whole), in their order."""

    name = "Scripted picker"
    built_in = False
    rule = "as the test wrote"

    def __init__(self, steps: dict[int | None, list[ToolStep | Exception]]) -> None:
        self.steps = steps
        self.views: list[AuditView] = []

    def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
        self.views.append(view)
        index = view.statement.index if view.statement else None
        steps = self.steps.get(index, [])
        step = steps[len(view.used)] if len(view.used) < len(steps) else ToolStep("Done.")
        if isinstance(step, Exception):
            raise step
        return step


class ScriptedReflector:
    """Changes what the test wrote, or fails as it says."""

    name = "Scripted reflector"
    built_in = False
    rule = "as the test wrote"

    def __init__(self, *changes: LabelRevision, error: Exception | None = None) -> None:
        self.changes = changes
        self.error = error

    def reflect(
        self,
        view: CaseView,
        memory: Sequence[MemoryEntry],
        uses: Sequence[ToolUse],
        stop: StopSignal,
    ) -> tuple[LabelRevision, ...]:
        if self.error:
            raise self.error
        return self.changes


def audit(
    case: Case, roster: Roster, resources: ReviewResources, past: Sequence[Event] = ()
) -> list[Event]:
    return list(review(case, PLAN, roster, resources, StopSignal(), past=past))


def told(state: RunState) -> RunState:
    """The state, of which all holds that holds of every finished audit."""
    assert state.case
    assert state.judgement
    assert sorted(state.memory) == sorted(state.statements)
    labels = state.judgement.statement_labels
    assert len(labels) == len(state.statements)
    for label, (index, statement) in zip(labels, sorted(state.statements.items()), strict=True):
        entry = state.memory[index]
        assert label == (entry.label if entry.is_checkable else "unclear")
        assert not entry.is_contested
        assert state.case.response[statement.start : statement.end] == statement.text
    for use in state.tool_uses:
        if use.start is not None and use.end is not None:
            assert 0 <= use.start < use.end <= len(state.case.response)
    for span in state.spans:
        assert state.case.response[span.start : span.end] == span.text
    return state


def labels_of(state: RunState) -> list[str]:
    return [entry.label for _, entry in sorted(state.memory.items())]


def test_each_statement_has_a_label_of_its_own_and_a_wrong_one_decides(
    roster: Roster, resources: ReviewResources
) -> None:
    claim = "The Orrin tower was opened in 1932. It is 512 m tall."
    case = case_of(resources.home, claim, ("tower.txt", TOWER))
    state = told(fold_events(audit(case, roster, resources)))
    assert labels_of(state) == ["supported", "hallucinated"]
    assert state.verdict
    assert state.verdict.label == "hallucinated"
    assert [span.text for span in state.spans] == ["512 m"]
    assert "512 m tall" in state.verdict.rationale
    assert not state.turns, "nothing is contested, so nothing is debated"


def test_a_mixed_response_is_checked_with_the_tool_that_each_statement_wants(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, MIXED, ("tower.txt", TOWER))
    state = told(fold_events(audit(case, roster, resources)))
    used = {i: [u.tool for u in state.tool_uses if u.statement == i] for i in state.statements}
    assert used == {
        0: [],
        1: ["search", "match"],
        2: ["search", "match"],
        3: ["calculator"],
        4: ["calculator"],
        5: [],
    }
    assert labels_of(state) == [
        *("unclear", "supported", "hallucinated"),
        *("hallucinated", "hallucinated", "unclear"),
    ]
    change = state.reconsidered[0]
    assert (change.statement, change.reach, change.because_of) == (4, "global", (3,))
    greeting, opinion = state.statements[0], state.statements[5]
    for aside in (greeting, opinion):
        assert not any(aside.start <= s.start < aside.end for s in state.spans)


def test_no_word_is_marked_in_a_statement_that_was_found_right(
    roster: Roster, resources: ReviewResources
) -> None:
    facts = (
        b"The Velmora Ferry Company was founded on 14 March 1998 in Sarnby. It runs four ferries."
    )
    said = (
        "The Velmora Ferry Company was founded on 14 March 1998 in Sarnby. 14 March 1998 was a "
        "Saturday. It runs five ferries."
    )
    state = told(
        fold_events(audit(case_of(resources.home, said, ("f.txt", facts)), roster, resources))
    )
    assert labels_of(state) == ["supported", "supported", "hallucinated"]
    wrong = state.statements[2]
    assert state.spans
    assert all(wrong.start <= span.start for span in state.spans)


def test_a_chinese_response_is_audited_alike(roster: Roster, resources: ReviewResources) -> None:
    facts = "云溪桥长412米。云溪桥于1932年建成。".encode()
    claim = "你好！云溪桥于1932年建成。它长512米。3 + 4 = 8。所以8 * 2 = 16。"
    case = case_of(resources.home, claim, ("桥.txt", facts))
    state = told(fold_events(audit(case, roster, resources)))
    texts = {statement.text: index for index, statement in state.statements.items()}
    assert state.memory[texts["它长512米。"]].label == "hallucinated"
    assert state.memory[texts["云溪桥于1932年建成。"]].label == "supported"
    assert state.verdict
    assert state.verdict.label == "hallucinated"
    assert not state.memory[0].is_checkable


def test_the_question_s_length_is_checked_over_the_whole(resources: ReviewResources) -> None:
    reads = assessor_with(ScriptedReader({"1932": SUPPORTS}))
    roster = make_built_in_roster("builtin", assessor=reads)
    question = "Describe the Orrin tower in exactly 60 words."
    claim = "The Orrin tower was opened in 1932."
    case = case_of(resources.home, claim, ("tower.txt", TOWER), question=question)
    state = told(fold_events(audit(case, roster, resources)))
    assert [(u.tool, u.label) for u in state.tool_uses if u.statement is None] == [
        ("conditions", "hallucinated")
    ]
    assert labels_of(state) == ["supported"]
    assert state.verdict
    assert state.verdict.label == "hallucinated"


def test_without_any_source_facts_stay_open(roster: Roster, resources: ReviewResources) -> None:
    case = case_of(resources.home, "The Orrin tower was opened in 1932.")
    state = told(fold_events(audit(case, roster, resources)))
    assert state.verdict
    assert (state.verdict.label, state.verdict.cause) == ("unclear", "no_evidence")
    assert {use.outcome for use in state.tool_uses} == {"off"}


def test_a_right_sum_makes_nothing_else_right(roster: Roster, resources: ReviewResources) -> None:
    claim = "Lena Moor was born in Berlin and had 3 + 4 = 7 towers."
    alone = told(fold_events(audit(case_of(resources.home, claim), roster, resources)))
    assert labels_of(alone) == ["unclear"]
    assert "Nothing here speaks of the rest." in alone.memory[0].evidence
    case = replace(case_of(resources.home, claim), question="How many had Lena Moor of Berlin?")
    asked = told(fold_events(audit(case, roster, resources)))
    assert labels_of(asked) == ["supported"]


CONTEST = ToolStep("The sum is right, and still it is wrong.", label="hallucinated")
RIGHT_SUM = ToolStep("A sum.", "calculator", '{"text": "3 + 4 = 7."}')


def contested_case(resources: ReviewResources) -> Case:
    claim = "The Orrin tower was opened in 1932. 3 + 4 = 7."
    return case_of(resources.home, claim, ("tower.txt", TOWER))


def test_only_what_is_contested_goes_to_debate(roster: Roster, resources: ReviewResources) -> None:
    fine = ToolStep("Known.", label="supported", evidence="It was 1932.")
    picker = ScriptedPicker({0: [fine], 1: [RIGHT_SUM, CONTEST]})
    case = contested_case(resources)
    played = replace(roster, tool_picker=picker)
    events = audit(case, played, resources)
    before = fold_events(events[: [e.kind for e in events].index("context_built")])
    assert [i for i, entry in before.memory.items() if entry.is_contested] == [1]
    state = told(fold_events(events))
    assert state.turns
    points = [point.statement for turn in state.turns for point in turn.points]
    assert set(points) <= {1}
    assert state.memory[0] == before.memory[0]


def test_the_whole_is_one_stream_of_its_own(roster: Roster, resources: ReviewResources) -> None:
    picker = ScriptedPicker({None: [ToolStep("Nothing for the whole.")]})
    case = contested_case(resources)
    state = told(fold_events(audit(case, replace(roster, tool_picker=picker), resources)))
    assert sum(view.statement is None for view in picker.views) == 1
    assert not state.tool_uses
    assert labels_of(state) == ["unclear", "unclear"]


@pytest.mark.parametrize(
    "step",
    [
        ToolStep("No such tool.", "oracle", "{}"),
        ToolStep("No such field.", "calculator", '{"sum": "3 + 4"}'),
        ToolStep("No JSON.", "calculator", "3 + 4"),
    ],
)
def test_a_wrong_call_is_a_failed_use_and_no_label(
    step: ToolStep, roster: Roster, resources: ReviewResources
) -> None:
    picker = ScriptedPicker({1: [step]})
    case = contested_case(resources)
    state = told(fold_events(audit(case, replace(roster, tool_picker=picker), resources)))
    assert [(use.outcome, use.label) for use in state.tool_uses] == [("failed", "unclear")]
    assert state.tool_uses[0].words
    assert state.memory[1].label == "unclear"


def test_a_picker_that_never_ends_is_cut_off(roster: Roster, resources: ReviewResources) -> None:
    sums = [replace(RIGHT_SUM, given=f'{{"text": "3 + 4 = 7.{" " * n}"}}') for n in range(50)]
    picker = ScriptedPicker({1: [*sums]})
    case = contested_case(resources)
    state = told(fold_events(audit(case, replace(roster, tool_picker=picker), resources)))
    assert len(state.tool_uses) == 6
    assert state.memory[1].label == "supported", "what the tools said decides"


def test_a_call_that_was_made_before_is_refused_and_the_second_time_ends_the_statement(
    roster: Roster, resources: ReviewResources
) -> None:
    same = replace(RIGHT_SUM, given='{ "formula": "", "text": "3 + 4 = 7." }')
    other = replace(RIGHT_SUM, given='{"text": "Here 3 + 4 = 7."}')
    picker = ScriptedPicker({1: [RIGHT_SUM, same, other, RIGHT_SUM, other, other]})
    played = replace(roster, tool_picker=picker)
    case = contested_case(resources)
    whole = durable(audit(case, played, resources))
    state = told(fold_events(whole))
    assert [use.outcome for use in state.tool_uses] == ["found", "nothing", "found", "nothing"]
    again = state.tool_uses[1]
    assert (again.label, again.p, again.seconds, again.gave) == ("unclear", None, 0.0, "{}")
    assert "made before" in again.words
    assert picker.views[-1].used[1].words == again.words, "the picker is told"
    assert state.memory[1].label == "supported", "what the tools said decides"
    for cut in [n for n, event in enumerate(whole) if event.kind == "tool_called"]:
        past = whole[: cut + 1]
        both = [*past, *durable(audit(case, played, resources, past=[*past, RunResumed(9e9)]))]
        assert [replace(use, seconds=0.0) for use in fold_events(both).tool_uses] == [
            replace(use, seconds=0.0) for use in state.tool_uses
        ]


def test_an_unusable_picker_s_spare_stands_in_and_it_is_said(
    roster: Roster, resources: ReviewResources
) -> None:
    picker = ScriptedPicker({1: [ReplyError("It rambles.", reply="blah")]})
    case = contested_case(resources)
    played = replace(roster, tool_picker=picker, spare=roster)
    state = told(fold_events(audit(case, played, resources)))
    problem = next(p for p in state.problems if "rambles" in p.message)
    assert "stands in" in problem.message
    assert problem.reply == "blah"
    assert [(u.tool, u.agent) for u in state.tool_uses] == [("calculator", "Tool picker")]
    assert state.memory[1].label == "supported"


def test_an_unusable_reflector_s_spare_stands_in(
    roster: Roster, resources: ReviewResources
) -> None:
    reflector = ScriptedReflector(error=ReplyError("No object.", reply="?"))
    case = case_of(resources.home, MIXED, ("tower.txt", TOWER))
    played = replace(roster, reflector=reflector, spare=roster)
    state = told(fold_events(audit(case, played, resources)))
    assert any("No object." in problem.message for problem in state.problems)
    assert [change.agent for change in state.reconsidered] == ["Reflector"]


@pytest.mark.parametrize("role", ["tool_picker", "reflector"])
def test_a_service_that_fails_leaves_no_label_and_a_run_to_resume(
    role: str, roster: Roster, resources: ReviewResources
) -> None:
    away = ModelError("The service is away.")
    player = ScriptedPicker({1: [away]}) if role == "tool_picker" else ScriptedReflector(error=away)
    case = contested_case(resources)
    events = audit(case, replace(roster, **{role: player}), resources)  # type: ignore[arg-type]
    state = fold_events(events)
    assert state.verdict
    assert (state.verdict.label, state.verdict.cause) == ("unclear", "agent_failed")
    run = Run("r", case.id, case.project_id, PLAN, "finished", 0.0, cause="agent_failed")
    assert can_resume(run)
    rest = audit(case, roster, resources, past=[*events, RunResumed(9e9)])
    again = told(fold_events([*events, RunResumed(9e9), *rest]))
    assert again.verdict
    assert again.verdict.label != "unclear" or again.verdict.cause != "agent_failed"


def durable(events: Sequence[Event]) -> list[Event]:
    return [event for event in events if event.kind not in TRANSIENT_KINDS]


def steps_of(events: Sequence[Event]) -> list[tuple[int | None, str, str]]:
    uses = [event.use for event in events if event.kind == "tool_called"]
    return sorted((u.statement if u.statement is not None else -1, u.tool, u.given) for u in uses)


def test_a_run_cut_off_anywhere_goes_on_to_the_same_end(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, MIXED, ("tower.txt", TOWER))
    whole = durable(audit(case, roster, resources))
    expected = told(fold_events(whole))
    cuts = [n for n, e in enumerate(whole) if e.kind in ("tool_called", "memory_updated")]
    for cut in (cuts[0], cuts[3], cuts[7], cuts[-1]):
        past = whole[: cut + 1]
        rest = durable(audit(case, roster, resources, past=[*past, RunResumed(9e9)]))
        both = [*past, *rest]
        assert steps_of(both) == steps_of(whole), "no use is made twice and none is left out"
        state = told(fold_events(both))
        assert labels_of(state) == labels_of(expected)
        assert state.verdict
        assert expected.verdict
        assert state.verdict.label == expected.verdict.label
        assert state.verdict.p_hallucinated == expected.verdict.p_hallucinated
        kinds = [event.kind for event in both]
        assert kinds.count("judgement_reached") == 1


def test_statements_are_checked_at_the_same_time(
    roster: Roster, resources: ReviewResources
) -> None:
    import threading

    together = threading.Barrier(3, timeout=PATIENCE_SECONDS)

    class Waiting(ScriptedPicker):
        def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
            if view.statement is not None:
                together.wait()  # breaks where the three are not there at once
            return ToolStep("Known.", label="supported", evidence="It is.")

    claim = "The tower is old. The bridge is long. The river is deep."
    case = case_of(resources.home, claim, ("tower.txt", TOWER))
    played = replace(roster, tool_picker=Waiting({}))
    state = told(fold_events(audit(case, played, resources)))
    assert labels_of(state) == ["supported"] * 3


def test_stop_ends_an_audit_between_two_steps(roster: Roster, resources: ReviewResources) -> None:
    stop = StopSignal()

    class Stopping(ScriptedPicker):
        def next_step(self, view: AuditView, stop: StopSignal) -> ToolStep:
            stop.set()
            return RIGHT_SUM

    case = contested_case(resources)
    played = replace(roster, tool_picker=Stopping({}))
    events = list(review(case, PLAN, played, resources, stop))
    assert events[-1].kind == "run_stopped"
    assert fold_events(events).verdict is None


def test_a_resumed_conclusion_is_checked_over_the_same_memory(
    roster: Roster, resources: ReviewResources
) -> None:
    """Else a model's prompt differs from the one that is in the ledger, and is paid for again."""
    claim = "The tower has seven floors. Therefore it is tall. Thus it needs a lift."
    case = case_of(resources.home, claim)
    end = ToolStep("Said.", label="supported", evidence="So it is.")
    first = ScriptedPicker({0: [end], 1: [end], 2: [end]})
    whole = durable(audit(case, replace(roster, tool_picker=first), resources))
    kept = ("run_started", "statement_found", "passages_found")
    past: list[Event] = [e for e in whole if e.kind in kept]
    past += [e for e in whole if e.kind == "memory_updated" and e.entry.statement < 2]
    again = ScriptedPicker({2: [end]})
    list(audit(case, replace(roster, tool_picker=again), resources, past=past))
    seen = {view.statement.index: view.memory for view in again.views if view.statement}
    assert seen == {
        view.statement.index: view.memory
        for view in first.views
        if view.statement and view.statement.index == 2
    }
    assert [entry.statement for entry in seen[2]] == [0]


def test_only_what_opens_a_response_is_read_as_a_short_answer(
    roster: Roster, resources: ReviewResources
) -> None:
    """“桥长521米” was lost in the words of what was asked for, and called not spoken of."""
    facts = ("facts.txt", "云溪桥于1998年通车。桥长512米，宽24米。".encode())
    claim = "云溪桥于1998年通车。桥长521米，宽24米。"
    case = case_of(resources.home, claim, facts, question="用大约100字介绍云溪桥。")
    memory = fold_events(audit(case, roster, resources)).memory
    assert memory[1].label == "hallucinated"


class Cap:
    """A library that a cap keeps shut until it is raised; it counts how often it was asked."""

    def __init__(self) -> None:
        self.is_reached = True
        self.asked = 0

    def bench(self, case: Case, stop: StopSignal) -> ToolContext:
        def web(query: str, most: int) -> Sequence[SearchResult]:
            self.asked += 1
            if self.is_reached:
                raise BudgetReached("The web was not asked: the searches allowed are used up.")
            return (SearchResult("Ships", "https://ships.example", "The ship Lark sank in 1932."),)

        return ToolContext(stop, web=web)


class NoWriter:
    """A context writer that fails as the test says."""

    name = "Scripted writer"
    built_in = False
    rule = "as the test wrote"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def write(self, view: CaseView, debaters: Sequence[str], stop: StopSignal) -> EvidenceContext:
        raise self.error


SEARCHED = ToolStep("A fact.", "search", '{"query": "Lark", "where": "web"}')
SUNK = ToolStep("It says so.", label="supported", evidence="It sank in 1932.")


@pytest.mark.parametrize("ended_in", ["tool_picker", "reflector", "context_writer"])
def test_what_failed_at_a_cap_is_done_again_when_the_run_is_resumed(
    ended_in: str, roster: Roster, resources: ReviewResources
) -> None:
    """Wherever the run then came to its end, and however much of it was done by then."""
    cap = Cap()
    resources = replace(resources, tool_context=cap.bench)
    away = BudgetReached("The cap is reached.")
    case = case_of(resources.home, "The ship Lark sank in 1932. 3 + 4 = 7. 4 + 4 = 8.")
    blind: list[ToolStep | Exception] = [SEARCHED, ToolStep("Nothing was found.")]
    steps: dict[int | None, list[ToolStep | Exception]] = {0: blind, 1: [RIGHT_SUM, CONTEST]}
    blocked = replace(roster, tool_picker=ScriptedPicker(steps))
    if ended_in == "tool_picker":
        blocked = replace(roster, tool_picker=ScriptedPicker({**steps, 2: [away]}))
    elif ended_in == "reflector":
        blocked = replace(blocked, reflector=ScriptedReflector(error=away))
    else:
        blocked = replace(blocked, context_writer=NoWriter(away))
    first = durable(audit(case, blocked, resources))
    before = fold_events(first)
    assert before.verdict
    assert before.verdict.cause == "budget_reached"
    assert [u.outcome for u in before.tool_uses if u.statement == 0] == ["failed"]
    cap.is_reached = False
    picker = ScriptedPicker({**steps, 0: [SEARCHED, SUNK]})
    past = [*first, RunResumed(9e9)]
    rest = durable(audit(case, replace(roster, tool_picker=picker), resources, past=past))
    state = told(fold_events([*past, *rest]))
    assert [u.outcome for u in state.tool_uses if u.statement == 0] == ["found"]
    assert cap.asked == 2
    assert labels_of(state)[0] == "supported"
    sums = [e.use for e in [*first, *rest] if e.kind == "tool_called" and e.use.statement == 1]
    assert len(sums) == 1, "what was done is not done again"
