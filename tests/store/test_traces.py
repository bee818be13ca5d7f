"""Trace files: out, in again elsewhere, and never trusted."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from core.runtime.errors import InputError
from core.schema.events import (
    ConsensusWeighed,
    DebateDecided,
    DebateNoted,
    Event,
    JudgementReached,
    JudgementSampled,
    LabelPredicted,
    MemoryUpdated,
    ModelCalled,
    PassagesFound,
    PersonSpoke,
    Reconsidered,
    ReflectionChanged,
    Remembered,
    ResponseRevised,
    RoundSummarised,
    RunFailed,
    RunFinished,
    RunResumed,
    RunStarted,
    RunStopped,
    SoftLabel,
    SoftLabelled,
    SpanProposed,
    SpanVoted,
    StatementFound,
    ToolCalled,
    ToolUse,
    TurnFinished,
    TurnStarted,
    WordsScored,
)
from core.schema.records import (
    Judgement,
    ModelCall,
    Passage,
    Plan,
    Point,
    Project,
    Quote,
    Run,
    Span,
    Statement,
    Turn,
    Verdict,
    WordScore,
)
from core.store import Store, open_store
from core.store.runs import RunFilter
from core.store.sqlite import to_plain
from core.store.traces import LONGEST_SAID, export_trace, import_trace
from tests.fakes import make_case, make_passage

CASE = make_case("The tower is 512 m tall. 👩‍👩‍👧 <script>alert(1)</script>")
TURN = Turn("Ada", "Rule checker", 1, 1, "deny", "hallucinated", "DENY. <b>It is 412 m.</b>")
EVENTS: list[Event] = [
    RunStarted(100.0, CASE, Plan(), ()),
    TurnStarted(101.0, "Ada", "Rule checker", 1, 1),
    TurnFinished(103.0, TURN, 2.0),
    RunFinished(104.0, Verdict("hallucinated", 0.9, 0.9, "because"), 4.0),
]


@pytest.fixture
def trace(store: Store) -> bytes:
    """A finished run as a file."""
    store.projects.save(Project("project", "Ours", 1.0))
    store.cases.add(CASE, [])
    store.runs.add(Run("r", "case", "project", Plan(), "queued", 100.0), "me", 100.0)
    with store.writing():
        store.runs.append("r", "me", EVENTS)
    return export_trace(store, "r", 200.0, 6.0)


def words(text: str, _language: str) -> list[str]:
    return text.casefold().split()


def elsewhere() -> Store:
    other = open_store(None)
    other.projects.save(Project("theirs", "Theirs", 1.0))
    return other


def test_a_trace_plays_on_another_machine(trace: bytes) -> None:
    with elsewhere() as other:
        run_id = import_trace(other, trace, "theirs", words)
        run = other.runs.get(run_id, 1e9, 6.0)
        assert run
        assert (run.status, run.label, run.origin) == ("finished", "hallucinated", "imported")
        assert [event for _, event in other.runs.events(run_id)] == EVENTS
        case = other.cases.get(run.case_id)
        assert case
        assert case.response == CASE.response
        assert case.project_id == "theirs"
        found = RunFilter(terms=("tower",))
        _, total = other.runs.page("theirs", found, limit=9, offset=0, now=1e9, lease=6)
        assert total == 1, "History finds it by its words"


def test_the_same_trace_twice_is_one_run(trace: bytes) -> None:
    with elsewhere() as other:
        assert import_trace(other, trace, "theirs", words) == import_trace(
            other, trace, "theirs", words
        )


def test_a_trace_of_an_unfinished_run_counts_as_stopped(trace: bytes) -> None:
    body = json.loads(trace)
    body["events"] = body["events"][:3]
    with elsewhere() as other:
        run_id = import_trace(other, json.dumps(body).encode(), "theirs", words)
        run = other.runs.get(run_id, 1e9, 6.0)
        assert run
        assert run.status == "stopped"


STOPPED, RESUMED = RunStopped(90.0, "Mira"), RunResumed(95.0, "Mira")
FAILED = RunFailed(90.0, "reading", "There is no classifier v9.")


def exported(store: Store, *events: Event) -> bytes:
    store.projects.save(Project("project", "Ours", 1.0))
    store.cases.add(CASE, [])
    store.runs.add(Run("r", "case", "project", Plan(), "queued", 80.0), "me", 80.0)
    with store.writing():
        store.runs.append("r", "me", events)
    return export_trace(store, "r", 200.0, 6.0)


def imported(trace: bytes) -> tuple[str, list[Event]]:
    """(the run's status, its events) elsewhere."""
    with elsewhere() as other:
        run_id = import_trace(other, trace, "theirs", words)
        run = other.runs.get(run_id, 1e9, 6.0)
        assert run
        return run.status, [event for _, event in other.runs.events(run_id)]


@pytest.mark.parametrize("before", [[RESUMED], [STOPPED, RESUMED], [FAILED, RESUMED]])
def test_what_came_before_the_start_does_not_go_along(store: Store, before: list[Event]) -> None:
    """A run that waited when its process died, or was stopped meanwhile, and was resumed."""
    assert imported(exported(store, *before, *EVENTS)) == ("finished", EVENTS)


def test_a_trace_that_begins_before_the_start_is_taken_from_there(trace: bytes) -> None:
    body = json.loads(trace)
    body["events"].insert(0, {"kind": "run_resumed", "payload": to_plain(RESUMED)})
    assert imported(json.dumps(body).encode()) == ("finished", EVENTS)


@pytest.mark.parametrize(
    ("event", "status"), [(STOPPED, "stopped"), (FAILED, "failed"), (RESUMED, "stopped")]
)
def test_a_run_that_ended_before_it_began_plays_elsewhere_too(
    store: Store, event: Event, status: str
) -> None:
    found, events = imported(exported(store, event))
    assert (found, events[0]) == (status, event)


def test_a_run_that_still_waits_has_nothing_to_take_along(store: Store) -> None:
    with pytest.raises(InputError, match="has not begun yet: there is nothing to export"):
        exported(store)


STARTED = {"kind": "run_started", "payload": to_plain(EVENTS[0])}
LOST = {"at": 101.0, "statement": 3, "passages": []}
ASTRAY = to_plain(SpanProposed(101.0, Span(0, 9, "elsewhere", 0.5, "contradicted", "Ada")))
SURE = to_plain(SpanProposed(101.0, Span(0, 9, "The tower", 1.5, "contradicted", "Ada")))
FOUND = to_plain(StatementFound(101.0, Statement(0, 0, 9, "The tower", "The tower")))
BACKWARDS = Quote("tall", "verified", start=9, end=4)
PASSAGE = make_passage("It is 412 m tall.")
TOLD = {"kind": "turn_finished", "payload": to_plain(EVENTS[2])}
ANOTHER = {
    "kind": "run_started",
    "payload": to_plain(RunStarted(1.0, make_case("Hm."), Plan(), ())),
}


def told(**fields: Any) -> dict[str, Any]:
    turn = replace(TURN, **fields)
    return {"kind": "turn_finished", "payload": to_plain(TurnFinished(103.0, turn, 2.0))}


def pointed(start: int, end: int, weight: float = 0.5, quote: Quote | None = None) -> Any:
    point = Point(0, "missing", start, end, "x", "not_in_source", "", "", weight, quote)
    return told(points=(point,))


def found(*passages: Passage) -> list[dict[str, Any]]:
    payload = to_plain(PassagesFound(102.0, 0, passages))
    return [
        STARTED,
        {"kind": "statement_found", "payload": FOUND},
        {"kind": "passages_found", "payload": payload},
    ]


def concluded(p: float, confidence: float) -> dict[str, Any]:
    verdict = Verdict("hallucinated", p, confidence, "because")
    return {"kind": "label_predicted", "payload": to_plain(LabelPredicted(104.0, verdict))}


def weighed(*weights: tuple[str, float]) -> dict[str, Any]:
    payload = to_plain(ConsensusWeighed(103.0, "uniform", weights, 0.5))
    return {"kind": "consensus_weighed", "payload": payload}


def sampled(number: int, p: float = 0.5) -> dict[str, Any]:
    judgement = Judgement("Judge", "supported", "It holds.", p=p)
    payload = to_plain(JudgementSampled(103.0, judgement, number, "sample", 0.1))
    return {"kind": "judgement_sampled", "payload": payload}


def spoke(text: str) -> dict[str, Any]:
    return {"kind": "person_spoke", "payload": to_plain(PersonSpoke(103.0, "Mira", text))}


def as_row(event: Event) -> dict[str, Any]:
    return {"kind": event.kind, "payload": to_plain(event)}


CONCLUDED = as_row(JudgementReached(103.5, Judgement("Judge", "supported", "It holds."), 0.1))
CALL = ModelCall("1", "judge", "judge", "openai/x", "en/judge", "abc", 100, 20, 0.1, 1.0)


def begun(number: int) -> dict[str, Any]:
    return as_row(TurnStarted(101.0, "Ada", "m", number, 1))


def took(**fields: Any) -> dict[str, Any]:
    return as_row(TurnFinished(103.0, TURN, **({"seconds": 2.0} | fields)))


def called_up(**fields: Any) -> dict[str, Any]:
    return as_row(ModelCalled(102.0, replace(CALL, **fields)))


def revised(text: str) -> dict[str, Any]:
    return as_row(ResponseRevised(103.0, "Writer", text))


def noted(text: str) -> dict[str, Any]:
    return as_row(DebateNoted(101.0, text))


def decided(then: str) -> dict[str, Any]:
    return as_row(DebateDecided(101.0, True, "It is open.", then))


def summed_up(number: int) -> dict[str, Any]:
    return as_row(RoundSummarised(103.2, "Writer", number, "In brief."))


def changed(trace: bytes, **fields: Any) -> bytes:
    return json.dumps(json.loads(trace) | fields).encode()


def scored(*scores: WordScore, threshold: float = 0.4) -> dict[str, Any]:
    payload = to_plain(WordsScored(104.5, "Reader", scores, threshold))
    return {"kind": "words_scored", "payload": payload}


USE = ToolUse(
    "calculator", 0, '{"text":"1 + 1 = 3"}', '{"sums":[]}', "found", "hallucinated", "It is 2.", 0.1
)
ENTRY = Remembered(0, "hallucinated", 0.9, "1 + 1 is 2.", ("calculator",), ("p",))
CHANGE = Reconsidered(0, "local", "unclear", "hallucinated", "The sum is wrong.")
AUDIT: list[Event] = [
    StatementFound(101.0, Statement(0, 0, 9, "The tower", "The tower")),
    ToolCalled(101.1, USE),
    MemoryUpdated(101.2, ENTRY),
    ReflectionChanged(101.3, CHANGE),
]


def audited(event: Event) -> list[dict[str, Any]]:
    """A trace's start with one statement, and an event that tells of its audit."""
    return [
        STARTED,
        {"kind": "statement_found", "payload": FOUND},
        {"kind": event.kind, "payload": to_plain(event)},
    ]


def called(**fields: Any) -> list[dict[str, Any]]:
    return audited(ToolCalled(102.0, replace(USE, **fields)))


def test_an_audit_plays_on_another_machine(store: Store) -> None:
    events = [EVENTS[0], *AUDIT, EVENTS[-1]]
    assert imported(exported(store, *events)) == ("finished", events)


@pytest.mark.parametrize(
    ("events", "message"),
    [
        (called(statement=1), "an audit of known statements"),
        (called(statement=-1), "an audit of known statements"),
        (audited(MemoryUpdated(1.0, replace(ENTRY, statement=7))), "audit of known statements"),
        (audited(ReflectionChanged(1.0, replace(CHANGE, statement=7))), "known statements"),
        (audited(ReflectionChanged(1.0, replace(CHANGE, because_of=(0, 7)))), "known statements"),
        (called(start=4, end=9999), "a tool's finding to lie in the response"),
        (called(start=-4, end=9), "a tool's finding to lie in the response"),
        (called(start=9, end=9), "a tool's finding to lie in the response"),
        (called(start=4, end=None), "a tool's finding to lie in the response"),
        (called(start=None, end=9), "a tool's finding to lie in the response"),
        (called(given="1 + 1"), "input and output as JSON objects"),
        (called(given="[1]"), "input and output as JSON objects"),
        (called(gave='"two"'), "input and output as JSON objects"),
        (called(gave=""), "input and output as JSON objects"),
        (called(gave='{"a":' * 5000 + "1" + "}" * 5000), "input and output as JSON objects"),
        (called(p=1.5), "from 0 to 1"),
        (audited(MemoryUpdated(1.0, replace(ENTRY, p=-0.5))), "from 0 to 1"),
        (audited(StatementFound(1.0, Statement(1, 4, 9999, "x", "x"))), "statements that lie in"),
        (audited(StatementFound(1.0, Statement(1, 9, 4, "x", "x"))), "statements that lie in"),
    ],
)
def test_a_damaged_audit_is_refused_in_one_sentence(
    trace: bytes, events: list[dict[str, Any]], message: str
) -> None:
    with elsewhere() as other:
        with pytest.raises(InputError, match=message) as caught:
            import_trace(other, changed(trace, events=events), "theirs", words)
        assert "\n" not in str(caught.value)
        assert next(other.db.query("SELECT count(*) AS n FROM runs"))["n"] == 0


def voted(span: Span, p: float | None) -> dict[str, Any]:
    payload = to_plain(SpanVoted(104.5, "one", "other", span, p, ""))
    return {"kind": "span_voted", "payload": payload}


def softened(*labels: SoftLabel) -> dict[str, Any]:
    payload = to_plain(SoftLabelled(104.5, labels, 0.7, ("one", "other")))
    return {"kind": "soft_labelled", "payload": payload}


def test_what_a_panel_said_comes_along(trace: bytes) -> None:
    body = json.loads(trace)
    tower = Span(4, 9, "tower", 0.9, "wrong_entity", "one")
    said = [voted(tower, 0.8), voted(tower, None), softened(SoftLabel(4, 9, 0.4, 0.8))]
    body["events"][1:1] = said
    with elsewhere() as other:
        run_id = import_trace(other, json.dumps(body).encode(), "theirs", words)
        kinds = [event.kind for _, event in other.runs.events(run_id)]
    assert kinds[1:4] == ["span_voted", "span_voted", "soft_labelled"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": "other"}, "a trace that Counterpoint exported"),
        ({"version": 99}, "version 1, found 99"),
        ({"events": []}, "a list of 1 to"),
        ({"events": "none"}, "a list of 1 to"),
        ({"events": [{"payload": {}}]}, "name its kind"),
        ({"events": [{"kind": "lunch", "payload": {}}]}, "known kind of event, found “lunch”"),
        ({"events": [{"kind": "run_finished", "payload": {}}]}, "missing required field"),
        ({"case": {"id": 1}}, "Expected a Case"),
        ({"case": None}, "Expected a Case"),
        ({"plan": {"max_turns": "five"}}, "Expected a Plan"),
        ({"started_at": "yesterday"}, "Expected a float"),
        ({"started_at": 1e300}, "times after 1970"),
        ({"events": [STARTED, {"kind": "passages_found", "payload": LOST}]}, "known statements"),
        ({"events": [STARTED, {"kind": "span_proposed", "payload": ASTRAY}]}, "quote the response"),
        ({"events": [STARTED, {"kind": "span_proposed", "payload": SURE}]}, "from 0 to 1"),
        ({"events": [STARTED, scored(WordScore(4, 9999, 0.5))]}, "scores of words in their order"),
        (
            {"events": [STARTED, scored(WordScore(4, 9, 0.5), WordScore(8, 10, 0.5))]},
            "scores of words in their order",
        ),
        ({"events": [STARTED, scored(WordScore(4, 9, 1.5))]}, "from 0 to 1"),
        ({"events": [STARTED, scored(threshold=-1.0)]}, "from 0 to 1"),
        ({"events": [STARTED, voted(Span(0, 3, "You", 0.5, "x", "one"), 0.5)]}, "quote the resp"),
        ({"events": [STARTED, voted(Span(0, 3, "The", 0.5, "x", "one"), 1.5)]}, "from 0 to 1"),
        ({"events": [STARTED, softened(SoftLabel(4, 9, 0.4, 1.8))]}, "from 0 to 1"),
        (
            {"events": [STARTED, softened(SoftLabel(4, 9, 0.4, 0.8), SoftLabel(8, 9, 0.1, 0.0))]},
            "scores of words in their order",
        ),
        ({"events": [STARTED, TOLD, TOLD]}, "each turn once in the trace, found turn 1 again"),
        ({"events": found(PASSAGE, PASSAGE)}, "each passage of a statement once"),
        ({"events": found(replace(PASSAGE, start=9, end=3))}, "passages with a place"),
        ({"events": [STARTED, pointed(4, 9999)]}, "points that lie in the response"),
        ({"events": [STARTED, pointed(-4, 9)]}, "points that lie in the response"),
        ({"events": [STARTED, pointed(0, 9, weight=7.0)]}, "from 0 to 1 in the trace, found 7.0"),
        ({"events": [STARTED, pointed(0, 9, quote=BACKWARDS)]}, "quotes with a place"),
        ({"events": [STARTED, told(quotes=(BACKWARDS,))]}, "quotes with a place"),
        ({"events": [STARTED, told(confidence=-0.1)]}, "from 0 to 1"),
        ({"events": [STARTED, concluded(1.2, 0.9)]}, "from 0 to 1 in the trace, found 1.2"),
        ({"events": [STARTED, concluded(0.9, -0.9)]}, "from 0 to 1"),
        ({"events": [STARTED, ANOTHER]}, "one response in the trace, found two"),
        ({"events": [STARTED, weighed(("Ada", 0.9), ("Ben", 0.9))]}, "2 that sum to 1.8"),
        ({"events": [STARTED, weighed(("Ada", 0.5), ("Ada", 0.5))]}, "weights of unlike agents"),
        ({"events": [STARTED, weighed(("Ada", -1.0), ("Ben", 2.0))]}, "from 0 to 1"),
        ({"events": [STARTED, weighed()]}, "0 that sum to 0"),
        ({"events": [STARTED, sampled(0)]}, "numbered from 1 in the trace, found number 0"),
        ({"events": [STARTED, sampled(1, p=7.0)]}, "from 0 to 1 in the trace, found 7.0"),
        ({"events": [STARTED, sampled(1), sampled(1)]}, "each judgement once in the trace"),
        ({"events": [STARTED, CONCLUDED, CONCLUDED]}, "one judgement at the debate’s end"),
        ({"events": [STARTED, CONCLUDED, sampled(1)]}, "found another after it"),
        ({"events": [STARTED, CONCLUDED, TOLD]}, "the judgement after all turns in the trace"),
        ({"events": [STARTED, told(number=0)]}, "turns numbered from 1 .* found number 0"),
        ({"events": [STARTED, told(number=10**30)]}, "turns numbered from 1"),
        ({"events": [STARTED, begun(number=-1)]}, "turns numbered from 1"),
        ({"events": [STARTED, told(round=-1)]}, "rounds numbered from 0 .* found number -1"),
        ({"events": [STARTED, told(text="x" * (LONGEST_SAID + 1))]}, "texts of at most 1,000,000"),
        ({"events": [STARTED, revised("x" * 5_000_000)]}, "found one of 5,000,000"),
        ({"case": to_plain(make_case("x" * 5_000_000))}, "found one of 5,000,000"),
        ({"events": [STARTED, told(agent="x" * 5_000_000)]}, "found one of 5,000,000"),
        ({"events": [STARTED, noted("x" * 5_000_000)]}, "texts of at most 1,000,000"),
        ({"events": [STARTED, decided("tribunal")]}, "a debate of ceda, .*found “tribunal”"),
        ({"events": [STARTED, decided("adaptive")]}, "found “adaptive”"),
        ({"plan": {"options": {"then": "tribunal"}}}, "a debate of ceda, .*found “tribunal”"),
        ({"plan": {"max_turns": 10**30}}, "a number of turns in the trace, found 1e"),
        ({"events": [STARTED, summed_up(1)]}, "rounds that were held .* found one of round 1"),
        ({"events": [STARTED, TOLD, summed_up(2)]}, "rounds that were held"),
        ({"events": [STARTED, summed_up(1), TOLD]}, "rounds that were held"),
        ({"events": [STARTED, told(quotes=(Quote("q", "fuzzy", 1e308),))]}, "scored from 0 to 100"),
        ({"events": [STARTED, took(seconds=1e308)]}, "seconds that can have passed"),
        ({"events": [STARTED, took(cost=-1.0)]}, "a cost that can have been paid"),
        ({"events": [STARTED, called_up(tokens_in=-1)]}, "a number of tokens"),
        ({"events": [STARTED, called_up(cost=1e300)]}, "a cost that can have been paid"),
        ({"plan": {"options": {"rounds": 10**8}}}, "0 to 20 rounds and samples"),
        ({"plan": {"options": {"samples": -2}}}, "0 to 20 rounds and samples"),
        ({"events": [STARTED, spoke(" ")]}, "remarks of 1 to 2,000 characters"),
        ({"events": [STARTED, spoke("x" * 10**6)]}, "found one of 1,000,000"),
    ],
)
def test_a_damaged_trace_is_refused_and_leaves_nothing(
    trace: bytes, change: dict[str, Any], message: str
) -> None:
    with elsewhere() as other:
        with pytest.raises(InputError, match=message):
            import_trace(other, changed(trace, **change), "theirs", words)
        assert next(other.db.query("SELECT count(*) AS n FROM runs"))["n"] == 0
        assert next(other.db.query("SELECT count(*) AS n FROM cases"))["n"] == 0


@pytest.mark.parametrize("data", [b"", b"not json", b"[]", b"\xff\xfe", b'{"a": 1}'])
def test_other_files_are_refused(data: bytes) -> None:
    with elsewhere() as other, pytest.raises(InputError, match="Expected a trace"):
        import_trace(other, data, "theirs", words)


def test_a_run_that_is_not_there_cannot_go_out(store: Store) -> None:
    with pytest.raises(InputError, match="no such run"):
        export_trace(store, "none", 1.0, 6.0)


ODD: list[Any] = [None, True, -1, 10**30, 10**400, 1e308, "x", "\x00", [], [[]], {"a": 1}]
PLACES = ("statement", "given", "gave", "outcome", "label", "words", "seconds", "p", "start", "end",
          "thought", "is_over_cap")  # fmt: skip


def refusal_of(other: Store, data: bytes) -> str:
    """Why the trace is not taken; empty where it is."""
    try:
        import_trace(other, data, "theirs", words)
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("place", PLACES)
def test_a_twisted_tool_use_is_taken_or_refused_in_one_sentence(trace: bytes, place: str) -> None:
    said: list[str] = []
    for odd in ODD:
        events = called(start=4, end=9)
        events[-1]["payload"]["use"][place] = odd
        with elsewhere() as other:
            said.append(refusal_of(other, changed(trace, events=events)))
    assert len(said) == len(ODD)
    assert any(said), "none of them was refused"
    assert not any("\n" in words for words in said)


def test_what_is_remembered_before_its_statement_is_refused(trace: bytes) -> None:
    start, found, entry = audited(MemoryUpdated(1.0, ENTRY))
    with elsewhere() as other, pytest.raises(InputError, match="known statements"):
        import_trace(other, changed(trace, events=[start, entry, found]), "theirs", words)
