"""A run as a file that plays on another machine. What comes in is not trusted.

What pages rely on (turns, judgements, weights, texts) is checked before anything is stored; each
check raises `InputError` with one sentence.
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
    ENDINGS,
    LONGEST_REMARK,
    ConsensusWeighed,
    Event,
    JudgementReached,
    JudgementSampled,
    RunStopped,
    SoftLabel,
    ToolUse,
)
from core.schema.records import Case, Passage, Plan, Point, Quote, Run, Span, Turn, WordScore
from core.schema.rosters import DEBATE_NAMES, MOST_ROUNDS
from core.store.database import Store
from core.store.sqlite import event_from_json, from_plain, to_plain

ROUNDING = 1e-9  # shares are sums of parts
DIGIT = 1e-4  # weights are told to so much each: three alike sum to 0.9999
MOST_TURNS = 100_000  # as many as a trace may have events
LONGEST_SAID = 1_000_000  # characters; as long as any setting lets a response be
LONGEST_TIME = 4e9  # seconds
MOST_DOLLARS = 1e9
MOST_TOKENS = 10**12


@dataclass
class Argued:
    """What a trace has told of its debate so far; `require` refuses what cannot follow it."""

    turns: set[int] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)
    samples: set[int] = field(default_factory=set)
    is_judged: bool = False

    def require(self, event: Event) -> None:
        """Plans, turns, judgements, weights and remarks as a debate of ours can have them."""
        _require_used(event)
        match event.kind:
            case "run_started":
                require_plan(event.plan)
            case "debate_decided":
                _require_debate(event.then)
            case "turn_started":
                _require_numbers(event.number, event.round)
            case "turn_finished":
                self._take_turn(event.turn)
            case "round_summarised":
                is_held, found = event.round in self.rounds, f"one of round {event.round}"
                _require(is_held, "summaries of rounds that were held", found)
            case "judgement_reached" | "judgement_sampled":
                self._take_judgement(event)
            case "consensus_weighed":
                _require_weights(event)
            case "person_spoke":
                is_said = bool(event.text.strip()) and len(event.text) <= LONGEST_REMARK
                most = f"remarks of 1 to {LONGEST_REMARK:,} characters"
                _require(is_said, most, f"one of {len(event.text):,}")

    def _take_turn(self, turn: Turn) -> None:
        _require_numbers(turn.number, turn.round)
        again = f"turn {turn.number}"
        _require(turn.number not in self.turns, "each turn once", f"{again} again")
        _require(not self.is_judged, "the judgement after all turns", f"{again} after it")
        require_shares(turn.confidence)
        self.turns.add(turn.number)
        self.rounds.add(turn.round)

    def _take_judgement(self, event: JudgementReached | JudgementSampled) -> None:
        require_shares(event.judgement.p)
        _require(not self.is_judged, "one judgement at the debate’s end", "another after it")
        if event.kind == "judgement_reached":
            self.is_judged = True
            return
        number = event.number
        _require(1 <= number <= MOST_TURNS, "judgements numbered from 1", f"number {number}")
        _require(number not in self.samples, "each judgement once", f"number {number} again")
        self.samples.add(number)


def _require(is_so: bool, expected: str, found: str) -> None:
    if not is_so:
        raise InputError(f"Expected {expected} in the trace, found {found}.")


def require_shares(*shares: float | None) -> None:
    """Probabilities, weights and confidences, where there are any."""
    for share in shares:
        is_share = share is None or -ROUNDING <= share <= 1 + ROUNDING
        _require(is_share, "probabilities from 0 to 1", f"{share}")


def require_lengths(body: object) -> None:
    """No text anywhere in a trace's plain values that pages could not draw."""
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            most = f"texts of at most {LONGEST_SAID:,} characters"
            _require(len(value) <= LONGEST_SAID, most, f"one of {len(value):,}")
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += (*value, *value.values())


def require_plan(plan: Plan) -> None:
    """Turns, rounds, samples and a debate that can be chosen here: pages count calls by them."""
    _require(0 <= plan.max_turns <= MOST_TURNS, "a number of turns", f"{plan.max_turns:g} of them")
    for number in (plan.options.rounds, plan.options.samples):
        most = f"0 to {MOST_ROUNDS} rounds and samples"
        _require(0 <= number <= MOST_ROUNDS, most, f"{number}")
    _require_debate(plan.options.then)


def _require_debate(name: str) -> None:
    known = ", ".join(DEBATE_NAMES)
    _require(not name or name in DEBATE_NAMES, f"a debate of {known}", f"“{name[:40]}”")


def _require_numbers(number: int, round_: int) -> None:
    _require(1 <= number <= MOST_TURNS, "turns numbered from 1", f"number {number}")
    _require(0 <= round_ <= MOST_TURNS, "rounds numbered from 0", f"number {round_}")


def _require_used(event: Event) -> None:
    """Time, money and tokens that can have been used; a clock may have been set back."""
    used = event.call if event.kind == "model_called" else event
    seconds, cost = getattr(used, "seconds", 0.0), getattr(used, "cost", None) or 0.0
    _require(abs(seconds) <= LONGEST_TIME, "seconds that can have passed", f"{seconds:g}")
    _require(0 <= cost <= MOST_DOLLARS, "a cost that can have been paid", f"{cost:g} dollars")
    if event.kind == "model_called":
        for tokens in (event.call.tokens_in, event.call.tokens_out):
            _require(0 <= tokens <= MOST_TOKENS, "a number of tokens", f"{tokens:g}")


def _require_weights(event: ConsensusWeighed) -> None:
    """A weight for each agent once, and all of them together 1, but for their last digits."""
    require_shares(event.p, *(weight for _, weight in event.weights))
    names, whole = [name for name, _ in event.weights], math.fsum(w for _, w in event.weights)
    is_one = abs(whole - 1) <= DIGIT * (1 + len(names))
    is_sound = len(set(names)) == len(names) and is_one
    found = f"others: {len(names)} that sum to {whole:g}"
    _require(is_sound, "weights of unlike agents that sum to 1", found)


FORMAT = "counterpoint-trace"
VERSION = 1
MOST_BYTES = 64 * 1024 * 1024
MOST_EVENTS = 100_000
LATEST = 4e9
# A run that waits can be stopped, fail for want of a classifier, and be resumed, all unbegun.
BEFORE_START = frozenset({"run_resumed", "run_stopped", "run_failed"})


class _Trace(NamedTuple):
    """A trace file's content, checked."""

    case: Case
    plan: Plan
    started_at: float
    events: tuple[Event, ...]


def export_trace(store: Store, run_id: str, now: float, lease: float) -> bytes:
    """The run's case, plan and events as JSON.

    Raises InputError: there is no such run, or nothing has happened in it yet.
    """
    run = store.runs.get(run_id, now, lease)
    case = store.cases.get(run.case_id) if run else None
    if run is None or case is None:
        raise InputError("There is no such run here.")
    events = _from_its_start([event for _, event in store.runs.events(run_id)])
    if not events:
        raise InputError("This run has not begun yet: there is nothing to export.")
    rows = [{"kind": event.kind, "payload": to_plain(event)} for event in events]
    body = {
        "format": FORMAT,
        "version": VERSION,
        "case": to_plain(case),
        "plan": to_plain(run.plan),
    }
    body |= {"started_at": run.started_at, "events": rows}
    return msgspec.json.format(msgspec.json.encode(body), indent=1)


def import_trace(
    store: Store, data: bytes, project_id: str, terms_of: Callable[[str, str], list[str]]
) -> str:
    """Store a trace file's run and return its id; the same file in a project is one run.

    `terms_of(text, language)` gives the search terms under which History finds it. Raises
    InputError: the file is no trace, damaged, or too large; nothing was stored.
    """
    trace = _read(data)
    digest = hashlib.sha256(project_id.encode() + b"\n" + data).hexdigest()
    case_id, run_id = digest[:32], digest[32:]
    case = replace(trace.case, id=case_id, project_id=project_id)
    at = trace.started_at
    run = Run(run_id, case_id, project_id, trace.plan, "queued", at, origin="imported")
    with store.writing():
        if store.runs.get(run_id, 0.0, 0.0) is None:
            store.cases.add(case, terms_of(f"{case.question} {case.response}", case.language))
            store.runs.add(run, "", 0.0)
            store.runs.append(run_id, None, _closed(trace.events))
    return run_id


def restore_trace(store: Store, data: bytes, run: Run, case: Case) -> None:
    """Store a trace as the very run that it was, of a case that is here; inside `writing()`.

    Raises InputError: the file is no trace, is damaged, or tells of another case.
    """
    trace = _read(data)
    told = trace.case
    if (told.id, told.response, told.question) != (case.id, case.response, case.question):
        raise InputError("Expected the trace of a run over its own case, found another’s.")
    store.runs.add(replace(run, plan=trace.plan, status="queued", origin="imported"), "", 0.0)
    store.runs.append(run.id, None, _closed(trace.events))


def _from_its_start(events: Sequence[Event]) -> tuple[Event, ...]:
    """The events without those of a wait in the queue; all of them when the run never began."""
    return tuple(dropwhile(lambda event: event.kind in BEFORE_START, events)) or tuple(events)


def _closed(events: Sequence[Event]) -> list[Event]:
    """The events with an ending: a trace taken from a run under way counts as stopped."""
    last = next((e.kind for e in reversed(events) if e.kind in ENDINGS | {"run_resumed"}), "")
    if last in ENDINGS:  # what comes after it are new scores
        return list(events)
    return [*events, RunStopped(events[-1].at, "trace")]


def _read(data: bytes) -> _Trace:
    if len(data) > MOST_BYTES:
        raise InputError(
            f"Expected a trace of at most {MOST_BYTES // 2**20} MB, found {len(data) // 2**20} MB."
        )
    try:
        body = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise InputError(f"Expected a trace file (JSON), found something else: {error}.") from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        raise InputError("Expected a trace that Counterpoint exported, found another JSON file.")
    if body.get("version") != VERSION:
        raise InputError(
            f"Expected a trace of version {VERSION}, found {body.get('version')!r}; "
            "open it with the Counterpoint that wrote it."
        )
    require_lengths(body)
    trace = _Trace(
        from_plain(Case, body.get("case")),
        from_plain(Plan, body.get("plan")),
        from_plain(float, body.get("started_at")),
        _events(body.get("events")),
    )
    _require_sense(trace)
    return trace


def _events(rows: object) -> tuple[Event, ...]:
    if not isinstance(rows, list) or not 0 < len(rows) <= MOST_EVENTS:
        raise InputError(f"Expected a list of 1 to {MOST_EVENTS} events in the trace.")
    events: list[Event] = []
    for row in rows:
        if not isinstance(row, dict) or not isinstance(row.get("kind"), str):
            raise InputError("Expected every event of the trace to name its kind.")
        payload = msgspec.json.encode(row.get("payload")).decode()
        events.append(event_from_json(row["kind"], payload))
    found = _from_its_start(events)
    if found[0].kind not in ("run_started", *BEFORE_START):
        raise InputError("Expected a trace that begins with a run's start, found another order.")
    return found


def _require_sense(trace: _Trace) -> None:  # noqa: C901 - one arm for each kind of event
    """What pages rely on: times that are times, numbers that name one thing, places in the text."""
    response = trace.case.response
    statements: set[int] = set()
    argued = Argued()
    require_plan(trace.plan)
    for at in (trace.started_at, *(event.at for event in trace.events)):
        _require(0 <= at <= LATEST, "times after 1970", f"{at}")
    for event in trace.events:
        argued.require(event)
        match event.kind:
            case "run_started":
                _require(event.case.response == response, "one response", "two")
            case "statement_found":
                own = event.statement
                lies_in_it = 0 <= own.start <= own.end <= len(response)
                _require(lies_in_it, "statements that lie in the response", "another place")
                statements.add(event.statement.index)
            case "passages_found":
                is_known = event.statement in statements
                _require(is_known, "passages of known statements", "others")
                _require_passages(event.passages)
            case "turn_finished":
                _require_quotes(event.turn.quotes)
                _require_points(event.turn.points, response)
            case "tool_called":
                _require_use(event.use, statements, response)
            case "memory_updated":
                _require_known(event.entry.statement, statements)
                require_shares(event.entry.p)
            case "reflection_changed":
                for index in (event.change.statement, *event.change.because_of):
                    _require_known(index, statements)
            case "judgement_reached" | "judgement_sampled":
                _require_points(event.judgement.points, response)
            case "span_proposed" | "span_adjudicated":
                _require_span(event.span, response)
            case "words_scored":
                _require_scores(event.scores, event.threshold, response)
            case "span_voted":
                _require_span(event.span, response)
                require_shares(event.p)
            case "soft_labelled":
                _require_scores(event.labels, event.threshold, response)
                require_shares(*(label.level for label in event.labels))
            case "label_predicted" | "run_finished":
                require_shares(event.verdict.p_hallucinated, event.verdict.confidence)
    if statements != set(range(len(statements))):
        raise InputError("Expected statements numbered from 0 in the trace.")


def _require_passages(passages: Sequence[Passage]) -> None:
    is_once = len({passage.id for passage in passages}) == len(passages)
    _require(is_once, "each passage of a statement once", "one again")
    have_place = all(0 <= passage.start < passage.end for passage in passages)
    _require(have_place, "passages with a place in their source", "others")


def _require_known(statement: int | None, statements: set[int]) -> None:
    is_known = statement is None or statement in statements
    _require(is_known, "an audit of known statements", "others")


def _require_use(use: ToolUse, statements: set[int], response: str) -> None:
    _require_known(use.statement, statements)
    require_shares(use.p)
    start, end = (-1 if side is None else side for side in (use.start, use.end))
    has_none = use.start is use.end is None  # half a place is none
    lies_in_it = has_none or 0 <= start < end <= len(response)
    _require(lies_in_it, "a tool's finding to lie in the response", "another place")
    for text in (use.given, use.gave):
        try:
            msgspec.json.decode(text.encode(), type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InputError(
                "Expected a tool's input and output as JSON objects in the trace, found others."
            ) from error


def _require_points(points: Sequence[Point], response: str) -> None:
    for point in points:
        lies_in_it = 0 <= point.start <= point.end <= len(response)
        _require(lies_in_it, "points that lie in the response", "another place")
        require_shares(point.weight)
        _require_quotes([point.quote] if point.quote else [])


def _require_quotes(quotes: Sequence[Quote]) -> None:
    for quote in quotes:
        _require(0 <= quote.score <= 100, "quotes scored from 0 to 100", f"{quote.score:g}")
        start, end = (-1 if side is None else side for side in (quote.start, quote.end))
        is_place = quote.start is quote.end is None or 0 <= start < end
        _require(is_place, "quotes with a place in their source, or none,", "others")


def _require_span(span: Span, response: str) -> None:
    is_there = 0 <= span.start < span.end <= len(response)
    is_quote = is_there and response[span.start : span.end] == span.text
    _require(is_quote, "spans that quote the response", "another text")
    require_shares(span.p)
    _require_quotes([span.quote] if span.quote else [])


def _require_scores(
    scores: Sequence[WordScore | SoftLabel], threshold: float, response: str
) -> None:
    last = 0
    for score in scores:
        is_next = last <= score.start < score.end <= len(response)
        _require(is_next, "scores of words in their order in the response", "others")
        last = score.end
    require_shares(threshold, *(score.p for score in scores))
