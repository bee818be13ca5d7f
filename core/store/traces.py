"""Export and import a run as a trace file that replays on another machine.

Imported files are not trusted: what pages rely on (turns, judgements, weights, texts) is checked
before anything is stored; each check raises `InputError` with one sentence.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile
from typing import Any, NamedTuple

import msgspec

from core.runtime.errors import InputError
from core.schema.events import (
    ENDING_KINDS,
    MAX_REMARK_CHARACTERS,
    ConsensusWeighed,
    Event,
    JudgementReached,
    JudgementSampled,
    RunStopped,
    SoftLabel,
    ToolUse,
)
from core.schema.records import Case, DebatePoint, Passage, Plan, Quote, Run, Span, Turn, WordScore
from core.schema.rosters import DEBATE_PROTOCOL_NAMES, MAX_ROUNDS
from core.store.database import Store
from core.store.sqlite import event_from_json, from_plain, to_plain

TRACE_FORMAT = "counterpoint-trace"
TRACE_VERSION = 1
MAX_TRACE_BYTES = 64 * 1024 * 1024
MAX_TRACE_EVENTS = 100_000
MAX_TRACE_TURNS = 100_000  # as many as a trace may have events
MAX_COST_DOLLARS = 1e9
MAX_CALL_TOKENS = 10**12
MAX_TEXT_CHARACTERS = 1_000_000  # characters; the longest response that any setting allows
MAX_SECONDS = 4e9  # seconds
MAX_EVENT_TIMESTAMP = 4e9  # seconds since the epoch
PROBABILITY_TOLERANCE = 1e-9  # tolerance of probabilities, which are sums of parts
WEIGHT_TOLERANCE = 1e-4  # rounding of each weight: three equal ones sum to 0.9999
# A waiting run can be stopped, fail for want of a classifier, and be resumed, before it starts.
WAITING_KINDS = frozenset({"run_resumed", "run_stopped", "run_failed"})


@dataclass
class DebateValidator:
    """The debate of a trace so far; `require` refuses events that cannot follow it."""

    turns: set[int] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)
    samples: set[int] = field(default_factory=set)
    is_judged: bool = False

    def require(self, event: Event) -> None:
        """Require plans, turns, judgements, weights and remarks that a debate here can have."""
        _require_plausible_use(event)
        match event.kind:
            case "run_started":
                require_plan(event.plan)
            case "debate_decided":
                _require_known_debate(event.then)
            case "turn_started":
                _require_valid_numbers(event.number, event.round)
            case "turn_finished":
                self._check_turn(event.turn)
            case "round_summarised":
                _require(
                    event.round in self.rounds,
                    "summaries of rounds that were held",
                    f"one of round {event.round}",
                )
            case "judgement_reached" | "judgement_sampled":
                self._check_judgement(event)
            case "consensus_weighed":
                _require_valid_weights(event)
            case "person_spoke":
                is_valid = bool(event.text.strip()) and len(event.text) <= MAX_REMARK_CHARACTERS
                expected = f"remarks of 1 to {MAX_REMARK_CHARACTERS:,} characters"
                _require(is_valid, expected, f"one of {len(event.text):,}")

    def _check_turn(self, turn: Turn) -> None:
        _require_valid_numbers(turn.number, turn.round)
        found = f"turn {turn.number}"
        _require(turn.number not in self.turns, "each turn once", f"{found} again")
        _require(not self.is_judged, "the judgement after all turns", f"{found} after it")
        require_probabilities(turn.confidence)
        self.turns.add(turn.number)
        self.rounds.add(turn.round)

    def _check_judgement(self, event: JudgementReached | JudgementSampled) -> None:
        require_probabilities(event.judgement.p)
        _require(not self.is_judged, "one judgement at the debate’s end", "another after it")
        if event.kind == "judgement_reached":
            self.is_judged = True
            return
        number = event.number
        _require(1 <= number <= MAX_TRACE_TURNS, "judgements numbered from 1", f"number {number}")
        _require(number not in self.samples, "each judgement once", f"number {number} again")
        self.samples.add(number)


def _require(condition: bool, expected: str, found: str) -> None:
    if not condition:
        raise InputError(f"Expected {expected} in the trace, found {found}.")


def require_probabilities(*shares: float | None) -> None:
    """Require probabilities, weights and confidences in [0, 1], where not None."""
    for share in shares:
        is_share = share is None or -PROBABILITY_TOLERANCE <= share <= 1 + PROBABILITY_TOLERANCE
        _require(is_share, "probabilities from 0 to 1", f"{share}")


def require_lengths(body: object) -> None:
    """Require that no text in a trace's plain values is too long for pages to draw."""
    stack = [body]
    while stack:
        value = stack.pop()
        if isinstance(value, str):
            expected = f"texts of at most {MAX_TEXT_CHARACTERS:,} characters"
            _require(len(value) <= MAX_TEXT_CHARACTERS, expected, f"one of {len(value):,}")
        elif isinstance(value, list):
            stack += value
        elif isinstance(value, dict):
            stack += (*value, *value.values())


def require_plan(plan: Plan) -> None:
    """Require a plan that can be chosen here: pages count calls by its turns and rounds."""
    _require(
        0 <= plan.max_turns <= MAX_TRACE_TURNS, "a number of turns", f"{plan.max_turns:g} of them"
    )
    for number in (plan.options.rounds, plan.options.samples):
        expected = f"0 to {MAX_ROUNDS} rounds and samples"
        _require(0 <= number <= MAX_ROUNDS, expected, f"{number}")
    _require_known_debate(plan.options.then)


def _require_known_debate(name: str) -> None:
    known = ", ".join(DEBATE_PROTOCOL_NAMES)
    _require(not name or name in DEBATE_PROTOCOL_NAMES, f"a debate of {known}", f"“{name[:40]}”")


def _require_valid_numbers(number: int, round_: int) -> None:
    _require(1 <= number <= MAX_TRACE_TURNS, "turns numbered from 1", f"number {number}")
    _require(0 <= round_ <= MAX_TRACE_TURNS, "rounds numbered from 0", f"number {round_}")


def _require_plausible_use(event: Event) -> None:
    """Require plausible time, money and tokens; time may be negative if a clock was set back."""
    spent = event.call if event.kind == "model_called" else event
    seconds, cost = getattr(spent, "seconds", 0.0), getattr(spent, "cost", None) or 0.0
    _require(abs(seconds) <= MAX_SECONDS, "seconds that can have passed", f"{seconds:g}")
    _require(0 <= cost <= MAX_COST_DOLLARS, "a cost that can have been paid", f"{cost:g} dollars")
    if event.kind == "model_called":
        for tokens in (event.call.tokens_in, event.call.tokens_out):
            _require(0 <= tokens <= MAX_CALL_TOKENS, "a number of tokens", f"{tokens:g}")


def _require_valid_weights(event: ConsensusWeighed) -> None:
    """Require one weight for each agent, and a total of 1 up to rounding."""
    require_probabilities(event.p, *(weight for _, weight in event.weights))
    names, total = [name for name, _ in event.weights], math.fsum(w for _, w in event.weights)
    is_one = abs(total - 1) <= WEIGHT_TOLERANCE * (1 + len(names))
    is_sound = len(set(names)) == len(names) and is_one
    found = f"others: {len(names)} that sum to {total:g}"
    _require(is_sound, "weights of unlike agents that sum to 1", found)


class _Trace(NamedTuple):
    """The checked content of a trace file."""

    case: Case
    plan: Plan
    started_at: float
    events: tuple[Event, ...]


def export_trace(store: Store, run_id: str, now: float, lease: float) -> bytes:
    """Return the run's case, plan and events as JSON.

    Raises InputError: there is no such run, or nothing has happened in it yet.
    """
    run = store.runs.get(run_id, now, lease)
    case = store.cases.get(run.case_id) if run else None
    if run is None or case is None:
        raise InputError("There is no such run here.")
    events = _drop_wait([event for _, event in store.runs.events(run_id)])
    if not events:
        raise InputError("This run has not begun yet: there is nothing to export.")
    rows = [{"kind": event.kind, "payload": to_plain(event)} for event in events]
    body = {
        "format": TRACE_FORMAT,
        "version": TRACE_VERSION,
        "case": to_plain(case),
        "plan": to_plain(run.plan),
        "started_at": run.started_at,
        "events": rows,
    }
    return msgspec.json.format(msgspec.json.encode(body), indent=1)


def import_trace(
    store: Store, data: bytes, project_id: str, terms_of: Callable[[str, str], list[str]]
) -> str:
    """Store a trace file's run and return its id; importing a file twice gives the same run.

    `terms_of(text, language)` returns the search terms by which History finds it. Raises
    InputError: the file is not a trace, is damaged, or too large; nothing was stored.
    """
    trace = _parse_trace(data)
    digest = hashlib.sha256(project_id.encode() + b"\n" + data).hexdigest()
    case_id, run_id = digest[:32], digest[32:]
    case = replace(trace.case, id=case_id, project_id=project_id)
    at = trace.started_at
    run = Run(run_id, case_id, project_id, trace.plan, "queued", at, origin="imported")
    with store.writing():
        if store.runs.get(run_id, 0.0, 0.0) is None:
            store.cases.add(case, terms_of(f"{case.question} {case.response}", case.language))
            store.runs.add(run, "", 0.0)
            store.runs.append(run_id, None, _close_events(trace.events))
    return run_id


def restore_trace(store: Store, data: bytes, run: Run, case: Case) -> None:
    """Store a trace as the run it was exported from, over a stored case; call inside `writing()`.

    Raises InputError: the file is not a trace, is damaged, or belongs to another case.
    """
    trace = _parse_trace(data)
    names = ("id", "response", "question")
    if any(getattr(trace.case, name) != getattr(case, name) for name in names):
        raise InputError("Expected the trace of a run over its own case, found another’s.")
    store.runs.add(replace(run, plan=trace.plan, status="queued", origin="imported"), "", 0.0)
    store.runs.append(run.id, None, _close_events(trace.events))


def _drop_wait(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events without those of a wait in the queue; all if the run never started."""
    return tuple(dropwhile(lambda event: event.kind in WAITING_KINDS, events)) or tuple(events)


def _close_events(events: Sequence[Event]) -> list[Event]:
    """Return the events with an ending: the trace of a running run counts as stopped."""
    last = next((e.kind for e in reversed(events) if e.kind in ENDING_KINDS | {"run_resumed"}), "")
    if last in ENDING_KINDS:  # only new scores follow an ending
        return list(events)
    return [*events, RunStopped(events[-1].at, "trace")]


def _parse_trace(data: bytes) -> _Trace:
    if len(data) > MAX_TRACE_BYTES:
        raise InputError(
            f"Expected a trace of at most {MAX_TRACE_BYTES // 2**20} MB, found "
            f"{len(data) // 2**20} MB."
        )
    try:
        body = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"Expected a trace file (JSON), found something else: {error}.") from error
    if not isinstance(body, dict) or body.get("format") != TRACE_FORMAT:
        raise InputError("Expected a trace that Counterpoint exported, found another JSON file.")
    if body.get("version") != TRACE_VERSION:
        raise InputError(
            f"Expected a trace of version {TRACE_VERSION}, found {body.get('version')!r}; "
            "open it with the Counterpoint that wrote it."
        )
    require_lengths(body)
    trace = _Trace(
        from_plain(Case, body.get("case")),
        from_plain(Plan, body.get("plan")),
        from_plain(float, body.get("started_at")),
        _parse_events(body.get("events")),
    )
    _require_consistent_trace(trace)
    return trace


def _parse_events(rows: object) -> tuple[Event, ...]:
    if not isinstance(rows, list) or not 0 < len(rows) <= MAX_TRACE_EVENTS:
        raise InputError(f"Expected a list of 1 to {MAX_TRACE_EVENTS} events in the trace.")
    events: list[Event] = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
            raise InputError("Expected every event of the trace to name its kind.")
        payload = msgspec.json.encode(row.get("payload")).decode()
        events.append(event_from_json(row["kind"], payload))
    events_from_start = _drop_wait(events)
    # Files that could not be read are known before a run starts.
    if events_from_start[0].kind not in ("run_started", "problem_met", *WAITING_KINDS):
        raise InputError("Expected a trace that begins with a run's start, found another order.")
    return events_from_start


def _require_consistent_trace(trace: _Trace) -> None:  # noqa: C901 - one arm for each kind of event
    """Require what pages rely on: plausible times, unique numbers, offsets within the text."""
    response = trace.case.response
    statements: set[int] = set()
    debate = DebateValidator()
    require_plan(trace.plan)
    for at in (trace.started_at, *(event.at for event in trace.events)):
        _require(0 <= at <= MAX_EVENT_TIMESTAMP, "times after 1970", f"{at}")
    for event in trace.events:
        debate.require(event)
        match event.kind:
            case "run_started":
                _require(event.case.response == response, "one response", "two")
            case "statement_found":
                statement = event.statement
                lies_in_it = 0 <= statement.start <= statement.end <= len(response)
                _require(lies_in_it, "statements that lie in the response", "another place")
                statements.add(event.statement.index)
            case "passages_found":
                is_known = event.statement in statements
                _require(is_known, "passages of known statements", "others")
                _require_valid_passages(event.passages)
            case "turn_finished":
                _require_valid_quotes(event.turn.quotes)
                _require_valid_points(event.turn.points, response)
            case "tool_called":
                _require_valid_use(event.use, statements, response)
            case "memory_updated":
                _require_known_statement(event.entry.statement, statements)
                require_probabilities(event.entry.p)
            case "reflection_changed":
                for index in (event.change.statement, *event.change.because_of):
                    _require_known_statement(index, statements)
            case "judgement_reached" | "judgement_sampled":
                _require_valid_points(event.judgement.points, response)
            case "span_proposed" | "span_adjudicated":
                _require_valid_span(event.span, response)
            case "words_scored":
                _require_valid_scores(event.scores, event.threshold, response)
            case "span_voted":
                _require_valid_span(event.span, response)
                require_probabilities(event.p)
            case "soft_labelled":
                _require_valid_scores(event.labels, event.threshold, response)
                require_probabilities(*(label.level for label in event.labels))
            case "label_predicted" | "run_finished":
                require_probabilities(event.verdict.p_hallucinated, event.verdict.confidence)
    if statements != set(range(len(statements))):
        raise InputError("Expected statements numbered from 0 in the trace.")


def _require_valid_passages(passages: Sequence[Passage]) -> None:
    is_once = len({passage.id for passage in passages}) == len(passages)
    _require(is_once, "each passage of a statement once", "one again")
    have_place = all(0 <= passage.start < passage.end for passage in passages)
    _require(have_place, "passages with a place in their source", "others")


def _require_known_statement(statement: int | None, statements: set[int]) -> None:
    is_known = statement is None or statement in statements
    _require(is_known, "an audit of known statements", "others")


def _require_valid_use(use: ToolUse, statements: set[int], response: str) -> None:
    _require_known_statement(use.statement, statements)
    require_probabilities(use.p)
    start, end = (-1 if side is None else side for side in (use.start, use.end))
    has_none = use.start is use.end is None  # one offset alone is not a place
    lies_in_it = has_none or 0 <= start < end <= len(response)
    _require(lies_in_it, "a tool's finding to lie in the response", "another place")
    for text in (use.given, use.gave):
        try:
            msgspec.json.decode(text.encode(), type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(
                "Expected a tool's input and output as JSON objects in the trace, found others."
            ) from error


def _require_valid_points(points: Sequence[DebatePoint], response: str) -> None:
    for point in points:
        lies_in_it = 0 <= point.start <= point.end <= len(response)
        _require(lies_in_it, "points that lie in the response", "another place")
        require_probabilities(point.weight)
        _require_valid_quotes([point.quote] if point.quote else [])


def _require_valid_quotes(quotes: Sequence[Quote]) -> None:
    for quote in quotes:
        _require(0 <= quote.score <= 100, "quotes scored from 0 to 100", f"{quote.score:g}")
        start, end = (-1 if side is None else side for side in (quote.start, quote.end))
        is_place = quote.start is quote.end is None or 0 <= start < end
        _require(is_place, "quotes with a place in their source, or none,", "others")


def _require_valid_span(span: Span, response: str) -> None:
    is_there = 0 <= span.start < span.end <= len(response)
    is_quote = is_there and response[span.start : span.end] == span.text
    _require(is_quote, "spans that quote the response", "another text")
    require_probabilities(span.p)
    _require_valid_quotes([span.quote] if span.quote else [])


def _require_valid_scores(
    scores: Sequence[WordScore | SoftLabel], threshold: float, response: str
) -> None:
    last = 0
    for score in scores:
        is_next = last <= score.start < score.end <= len(response)
        _require(is_next, "scores of words in their order in the response", "others")
        last = score.end
    require_probabilities(threshold, *(score.p for score in scores))
