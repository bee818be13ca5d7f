"""Compare several ways to check one case within one budget, and find where their runs differ.

Ways are accepted in order as long as their likely use fits into the budget together, each in whole
cents and tokens and at least one of both; the rest of the budget is divided among them in
proportion. A run never exceeds its share, nor the caps of any run, of its person and of the day. A
way that does not fit is not started, and says why. Built-in agents use none of the budget.
"""

from __future__ import annotations

import itertools
import json
import math
import string
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace

from core.debate.protocols import require_protocol
from core.llm.keys import Keys
from core.llm.limits import NANO_PER_CENT, format_money
from core.pipeline.batch_check import format_csv
from core.pipeline.cost_estimate import CostEstimate
from core.pipeline.jobs import NO_TYPED_KEYS, JobRunner
from core.pipeline.run_factory import require_keys
from core.runtime.config import Settings
from core.runtime.errors import InputError, KeyMissing
from core.schema.events import ProblemMet
from core.schema.records import Case, Label, Plan, Run, Stance
from core.schema.run_state import RunState, fold_events
from core.store import Store

CENTS_PER_DOLLAR = 100
MAX_WAYS = 12
MAX_LISTED_CASES = 20  # compared cases that a project remembers
SKIPPED_WAYS_NOTE, COMPARED_CASES_NOTE = (
    "comparison.{}",
    "comparisons.{}",
)  # names of the notes of a case, of a project
COMPARISON_COLUMNS = (
    "way", "protocol", "options", "roster", "status", "label", "p_hallucinated", "confidence",
    "cause", "marked", "turns", "calls", "tokens", "us_dollars", "seconds", "problem", "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class DifferingStretch:
    """`[start, end)` of the response that some of the runs mark and others do not."""

    start: int
    end: int
    text: str
    marked_by: tuple[str, ...]
    passed_by: tuple[str, ...]


@dataclass(frozen=True)
class DifferingSentence:
    """A sentence of the response on which runs differ; by run, whether it marks words in it."""

    start: int
    end: int
    text: str
    is_marked: Mapping[str, bool]


@dataclass(frozen=True)
class StanceChange:
    """A debater of a run that took another stance in a later turn, and in which round."""

    run: str
    debater: str
    before: Stance
    after: Stance
    round: int


def group_runs_by_label(runs: Mapping[str, RunState]) -> dict[Label, tuple[str, ...]]:
    """Group the runs by label; runs without a verdict are left out."""
    by_label: dict[Label, tuple[str, ...]] = {}
    for name, progress in runs.items():
        if progress.verdict is not None:
            label = progress.verdict.label
            by_label[label] = (*by_label.get(label, ()), name)
    return by_label


def find_differing_words(response: str, runs: Mapping[str, RunState]) -> list[DifferingStretch]:
    """Return the longest stretches marked by the same runs, but not by others with a verdict."""
    spans = {
        name: [(span.start, span.end) for span in progress.spans]
        for name, progress in runs.items()
        if progress.verdict
    }
    cuts = sorted({offset for marked in spans.values() for span in marked for offset in span})
    stretches: list[DifferingStretch] = []
    for start, end in itertools.pairwise(cuts):
        markers = tuple(
            name
            for name, marked in spans.items()
            if any(first <= start and end <= last for first, last in marked)
        )
        if not markers or len(markers) == len(spans):
            continue
        begin = start
        if stretches and (stretches[-1].end, stretches[-1].marked_by) == (start, markers):
            begin = stretches.pop().start
        others = tuple(name for name in spans if name not in markers)
        stretches.append(DifferingStretch(begin, end, response[begin:end], markers, others))
    return stretches


def find_differing_sentences(runs: Mapping[str, RunState]) -> list[DifferingSentence]:
    """Return the sentences, of the run with most, in which only some runs mark words."""
    judged = {name: progress for name, progress in runs.items() if progress.verdict is not None}
    statements = max((progress.statements for progress in judged.values()), key=len, default={})
    sentences = []
    for _, statement in sorted(statements.items()):
        is_marked = {
            name: any(s.start < statement.end and statement.start < s.end for s in progress.spans)
            for name, progress in judged.items()
        }
        if len(set(is_marked.values())) > 1:
            sentences.append(
                DifferingSentence(statement.start, statement.end, statement.text, is_marked)
            )
    return sentences


def find_stance_changes(runs: Mapping[str, RunState]) -> list[StanceChange]:
    """Return every change of a debater's stance within a run, in order, without assigned sides."""
    changes = []
    for name, progress in runs.items():
        stances: dict[str, Stance] = {}
        for turn in sorted(progress.turns, key=lambda turn: turn.number):
            if turn.assigned is not None:
                continue
            before = stances.get(turn.debater)
            if before is not None and before != turn.stance:
                changes.append(StanceChange(name, turn.debater, before, turn.stance, turn.round))
            stances[turn.debater] = turn.stance
    return changes


def find_inconsistent_agents(
    runs: Mapping[str, RunState],
) -> list[tuple[str, dict[Stance, list[str]]]]:
    """Return (agent, runs by final stance) for agents that ended differently in two runs."""
    final_stances: dict[str, dict[Stance, list[str]]] = {}
    for name, progress in runs.items():
        # An assigned side says nothing about the agent's own stance.
        last_stances = {turn.agent: turn.stance for turn in progress.turns if turn.assigned is None}
        for agent, stance in last_stances.items():
            final_stances.setdefault(agent, {}).setdefault(stance, []).append(name)
    return [(agent, stances) for agent, stances in final_stances.items() if len(stances) > 1]


def assign_letters(count: int) -> Sequence[str]:
    """Return a letter for each run, as used for the marks in the text."""
    return string.ascii_uppercase[:count]


@dataclass(frozen=True)
class ComparisonBudget:
    """The limit of all runs of a comparison together: US cents, tokens of unpriced models."""

    cents: int
    tokens: int

    def lacks(self, need: ComparisonBudget) -> str:
        """Return the part of a need that does not fit; empty if all of it fits."""
        if need.cents > self.cents:
            return format_money(need.cents * NANO_PER_CENT)
        too_many = need.tokens > self.tokens
        return f"{need.tokens:,} tokens of unpriced models" if too_many else ""


@dataclass(frozen=True)
class ComparedWay:
    """A plan and its expected use of language models, None if it uses none.

    `share` is what its run may use, `problem` why it is not started.
    """

    plan: Plan
    expected: CostEstimate | None = None
    share: ComparisonBudget | None = None
    problem: str = ""


@dataclass(frozen=True)
class SkippedWay:
    """A way that was chosen but not started, and why."""

    protocol: str
    roster: str
    problem: str


@dataclass(frozen=True)
class ComparedRun:
    """The newest run of a way over the case, and its state so far."""

    run: Run
    progress: RunState


def share_budget(
    ways: Sequence[ComparedWay], budget: ComparisonBudget, settings: Settings
) -> list[ComparedWay]:
    """Return the ways with their shares, or why they get none, as the module describes."""
    most = ComparisonBudget(settings.run_cents, settings.run_tokens)
    left, shared, needs = budget, [], []
    for way in ways:
        need = estimate_need(way)
        if need is not None and not way.problem:
            if what := most.lacks(need):
                problem = f"It would take about {what}, more than a single check may use."
                way = replace(way, problem=problem)
            elif what := left.lacks(need):
                problem = f"It would take about {what}; that is more than the budget has left."
                way = replace(way, problem=problem)
            else:
                left = ComparisonBudget(left.cents - need.cents, left.tokens - need.tokens)
                needs.append(need)
        shared.append(way)
    all_cents, all_tokens = sum(n.cents for n in needs), sum(n.tokens for n in needs)
    for place, way in enumerate(shared):
        need = estimate_need(way)
        if need is not None and not way.problem:
            cents = need.cents + left.cents * need.cents // all_cents
            tokens = need.tokens + left.tokens * need.tokens // all_tokens
            share = ComparisonBudget(min(cents, most.cents), min(tokens, most.tokens))
            shared[place] = replace(way, share=share)
    return shared


def estimate_need(way: ComparedWay) -> ComparisonBudget | None:
    """Return what a way is likely to use, at least 1 of each; None if it uses no model."""
    if way.expected is None or not way.expected.most.calls:
        return None
    likely = way.expected.likely
    cents = math.ceil(likely.cost * CENTS_PER_DOLLAR)
    return ComparisonBudget(max(1, cents), max(1, likely.unpriced_tokens))


def flag_missing_keys(ways: Sequence[ComparedWay], keys: Keys) -> list[ComparedWay]:
    """Return the ways, with a problem for those that lack a key or a roster for the protocol."""
    checked = []
    for way in ways:
        try:
            require_protocol(way.plan)
            require_keys(way.plan, keys)
        except (InputError, KeyMissing) as error:
            way = replace(way, problem=way.problem or str(error))
        checked.append(way)
    return checked


def start_comparison(
    store: Store,
    jobs: JobRunner,
    case: Case,
    ways: Sequence[ComparedWay],
    *,
    by: str,
    unread: Sequence[ProblemMet] = (),
    typed: Mapping[str, str] = NO_TYPED_KEYS,
) -> list[str]:
    """Queue a run for every way without a problem and return their ids.

    `unread` are the files left out of the case, for the runs' record.
    Raises InputError: there is no such way, or there are too many ways.
    """
    if not ways or len(ways) > MAX_WAYS:
        raise InputError(
            f"Expected 1 to {MAX_WAYS} ways to check, found {len(ways)}; choose protocols and "
            "rosters."
        )
    payer = jobs.payer(by, typed)
    checked = flag_missing_keys(ways, payer.keys)
    plans = [_plan_within_share(way) for way in checked if not way.problem]
    if not plans:
        raise InputError(f"None of these ways can be started: {checked[0].problem}")
    left = [(w.plan.protocol, w.plan.roster, w.problem) for w in checked if w.problem]
    project = case.project_id
    with store.writing():
        store.projects.require(project, by, "annotator", "compare ways to check")
        run_ids = [jobs.queue(store, case, plan, unread=unread) for plan in plans]
        store.projects.save_note(SKIPPED_WAYS_NOTE.format(case.id), json.dumps(left))
        listed = [case.id, *(i for i in load_compared_cases(store, project) if i != case.id)]
        store.projects.save_note(
            COMPARED_CASES_NOTE.format(project), json.dumps(listed[:MAX_LISTED_CASES])
        )
    jobs.submit(store, run_ids, payer)
    return run_ids


def _plan_within_share(way: ComparedWay) -> Plan:
    if way.share is None:
        return way.plan
    return replace(way.plan, cent_cap=way.share.cents, token_cap=way.share.tokens)


def load_compared_cases(store: Store, project_id: str) -> list[str]:
    """Return the ids of the cases compared in a project, the newest first."""
    case_ids: list[str] = json.loads(
        store.projects.note(COMPARED_CASES_NOTE.format(project_id)) or "[]"
    )
    return case_ids


def load_skipped_ways(store: Store, case_id: str) -> list[SkippedWay]:
    """Return the ways that were chosen last for that case and not started."""
    text = store.projects.note(SKIPPED_WAYS_NOTE.format(case_id)) or "[]"
    return [SkippedWay(*values) for values in json.loads(text)]


def load_compared_runs(store: Store, case_id: str) -> list[ComparedRun]:
    """Return the newest run by protocol, roster and options, at most `MAX_WAYS`; oldest first."""
    lease = store.projects.settings().lease_seconds
    newest: dict[tuple[object, ...], Run] = {}
    for run in store.runs.of_case(case_id, time.time(), lease):
        plan = run.plan
        newest[plan.protocol, plan.roster, plan.options, plan.max_turns, plan.passages] = run
    runs = sorted(newest.values(), key=lambda run: run.started_at)[-MAX_WAYS:]
    return [ComparedRun(run, fold_events(e for _, e in store.runs.events(run.id))) for run in runs]


def format_comparison_csv(
    named: Mapping[str, ComparedRun], left: Sequence[SkippedWay], response: str
) -> bytes:
    """Return a row for each way as CSV, without columns that are empty for all ways.

    `marked` are the marked words as `[start, end)` of the response with their text; an unknown cost
    is empty.
    """
    rows: list[dict[str, object]] = [
        _format_row(name, item, response) for name, item in named.items()
    ]
    rows += [asdict(item) | {"status": "not started"} for item in left]
    titles = [
        title
        for title in COMPARISON_COLUMNS
        if any(row.get(title) not in (None, "") for row in rows)
    ]
    return format_csv([titles, *([row.get(title) for title in titles] for row in rows)])


def _format_row(name: str, compared_run: ComparedRun, response: str) -> dict[str, object]:
    run, progress = compared_run.run, compared_run.progress
    spans = (f"[{s.start}, {s.end}) {response[s.start : s.end]}" for s in progress.spans)
    options = (f"{option} {value}" for option, value in run.plan.options.chosen.items())
    calls = progress.calls.values()
    return {
        "way": name,
        "protocol": run.plan.protocol,
        "options": ", ".join(options),
        "roster": run.plan.roster,
        **{key: getattr(run, key) for key in ("status", "label", "p_hallucinated", "confidence")},
        "cause": run.cause,
        "marked": "; ".join(spans),
        "turns": len(progress.turns),
        "calls": len(calls),
        "tokens": sum(call.tokens_in + call.tokens_out for call in calls),
        "us_dollars": progress.cost,
        "seconds": round(progress.seconds(), 2),
        "run_id": run.id,
    }
