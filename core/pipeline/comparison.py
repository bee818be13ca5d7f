"""One case checked in several ways at once within one budget, and where their runs differ.

Ways are taken in their order as long as what they are likely to use fits into the budget together,
each in whole cents and tokens and at least one of both; what is left over is dealt out among them
in proportion. A run never passes its share, nor the caps of any run, of its person and of the day.
A way that does not fit is not started, and says why. Built-in agents use nothing of it.
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
from core.llm.limits import NANO_PER_CENT, money
from core.pipeline.batch_check import csv_of
from core.pipeline.cost_estimate import Expected
from core.pipeline.jobs import NOTHING_TYPED, Jobs
from core.pipeline.run_factory import require_keys
from core.runtime.config import Settings
from core.runtime.errors import InputError, KeyMissing
from core.schema.progress import Progress, folded
from core.schema.records import Case, Label, Plan, Run, Stance
from core.store import Store


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


def verdicts(runs: Mapping[str, Progress]) -> dict[Label, tuple[str, ...]]:
    """Which runs came to which label; runs without a verdict are in none."""
    found: dict[Label, tuple[str, ...]] = {}
    for name, progress in runs.items():
        if progress.verdict is not None:
            label = progress.verdict.label
            found[label] = (*found.get(label, ()), name)
    return found


def words_apart(response: str, runs: Mapping[str, Progress]) -> list[DifferingStretch]:
    """The longest stretches that the same runs mark, where others with a verdict do not."""
    spans = {
        name: [(s.start, s.end) for s in own.spans] for name, own in runs.items() if own.verdict
    }
    cuts = sorted({place for own in spans.values() for span in own for place in span})
    found: list[DifferingStretch] = []
    for start, end in itertools.pairwise(cuts):
        by = tuple(
            name for name, own in spans.items() if any(s <= start and end <= e for s, e in own)
        )
        if not by or len(by) == len(spans):
            continue
        begin = start
        if found and (found[-1].end, found[-1].marked_by) == (start, by):
            begin = found.pop().start
        others = tuple(name for name in spans if name not in by)
        found.append(DifferingStretch(begin, end, response[begin:end], by, others))
    return found


def statements_apart(runs: Mapping[str, Progress]) -> list[DifferingSentence]:
    """The sentences, of the run that cut most, in which some runs mark words and others none."""
    judged = {name: own for name, own in runs.items() if own.verdict is not None}
    parted = max((own.statements for own in judged.values()), key=len, default={})
    found = []
    for _, statement in sorted(parted.items()):
        inside = {
            name: any(s.start < statement.end and statement.start < s.end for s in own.spans)
            for name, own in judged.items()
        }
        if len(set(inside.values())) > 1:
            found.append(DifferingSentence(statement.start, statement.end, statement.text, inside))
    return found


def turned(runs: Mapping[str, Progress]) -> list[StanceChange]:
    """Every change of a debater's stance within a run, in order; assigned sides are passed over."""
    found = []
    for name, progress in runs.items():
        held: dict[str, Stance] = {}
        for turn in sorted(progress.turns, key=lambda own: own.number):
            if turn.assigned is not None:
                continue
            before = held.get(turn.debater)
            if before is not None and before != turn.stance:
                found.append(StanceChange(name, turn.debater, before, turn.stance, turn.round))
            held[turn.debater] = turn.stance
    return found


def same_agent_apart(runs: Mapping[str, Progress]) -> list[tuple[str, dict[Stance, list[str]]]]:
    """(agent, runs by the stance it ended with) of agents that ended differently in two runs."""
    ended: dict[str, dict[Stance, list[str]]] = {}
    for name, progress in runs.items():
        # A side that an agent was given says nothing of what it holds.
        last = {turn.agent: turn.stance for turn in progress.turns if turn.assigned is None}
        for agent, stance in last.items():
            ended.setdefault(agent, {}).setdefault(stance, []).append(name)
    return [(agent, stances) for agent, stances in ended.items() if len(stances) > 1]


def letters(count: int) -> Sequence[str]:
    """A letter for each run, as the marks in the text have them."""
    return string.ascii_uppercase[:count]


CENTS_A_DOLLAR = 100
MOST_WAYS = 12
MOST_LISTED = 20
LEFT_OUT, LIST = "comparison.{}", "comparisons.{}"  # notes of a case, of a project
COLUMNS = (
    "way", "protocol", "options", "roster", "status", "label", "p_hallucinated", "confidence",
    "cause", "marked", "turns", "calls", "tokens", "us_dollars", "seconds", "problem", "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """What all runs of a comparison may use together: US cents, tokens of unpriced models."""

    cents: int
    tokens: int

    def lacks(self, need: Budget) -> str:
        """The part of a need that there is no room for; empty where it fits."""
        if need.cents > self.cents:
            return money(need.cents * NANO_PER_CENT)
        too_many = need.tokens > self.tokens
        return f"{need.tokens:,} tokens of unpriced models" if too_many else ""


@dataclass(frozen=True)
class ComparedWay:
    """A plan and what it will use of language models, None where it asks none.

    `share` is what its run may use, `problem` why it is not started.
    """

    plan: Plan
    expected: Expected | None = None
    share: Budget | None = None
    problem: str = ""


@dataclass(frozen=True)
class LeftOut:
    """A way that was chosen and not started, and why."""

    protocol: str
    roster: str
    problem: str


@dataclass(frozen=True)
class ComparedRun:
    """One way's newest run over the case and what it has come to so far."""

    run: Run
    progress: Progress


def shared_out(
    ways: Sequence[ComparedWay], budget: Budget, settings: Settings
) -> list[ComparedWay]:
    """The ways with their shares, or why they get none, by the rule above."""
    most = Budget(settings.run_cents, settings.run_tokens)
    left, found, needs = budget, [], []
    for way in ways:
        need = needed(way)
        if need is not None and not way.problem:
            if what := most.lacks(need):
                problem = f"It would take about {what}, more than a single check may use."
                way = replace(way, problem=problem)
            elif what := left.lacks(need):
                problem = f"It would take about {what}; that is more than the budget has left."
                way = replace(way, problem=problem)
            else:
                left = Budget(left.cents - need.cents, left.tokens - need.tokens)
                needs.append(need)
        found.append(way)
    all_cents, all_tokens = sum(n.cents for n in needs), sum(n.tokens for n in needs)
    for place, way in enumerate(found):
        need = needed(way)
        if need is not None and not way.problem:
            cents = need.cents + left.cents * need.cents // all_cents
            tokens = need.tokens + left.tokens * need.tokens // all_tokens
            share = Budget(min(cents, most.cents), min(tokens, most.tokens))
            found[place] = replace(way, share=share)
    return found


def needed(way: ComparedWay) -> Budget | None:
    """What a way is likely to use, at least 1 of each; None where it asks no model."""
    if way.expected is None or not way.expected.most.calls:
        return None
    likely = way.expected.likely
    cents = math.ceil(likely.cost * CENTS_A_DOLLAR)
    return Budget(max(1, cents), max(1, likely.unpriced_tokens))


def without_keys(ways: Sequence[ComparedWay], keys: Keys) -> list[ComparedWay]:
    """The ways, those with a reason that lack a key, or whose roster cannot argue like that."""
    found = []
    for way in ways:
        try:
            require_protocol(way.plan)
            require_keys(way.plan, keys)
        except (InputError, KeyMissing) as error:
            way = replace(way, problem=way.problem or str(error))
        found.append(way)
    return found


def start_comparison(
    store: Store,
    jobs: Jobs,
    case: Case,
    ways: Sequence[ComparedWay],
    *,
    by: str,
    typed: Mapping[str, str] = NOTHING_TYPED,
) -> list[str]:
    """Queue a run for every way without a problem; their ids, or InputError where there is none."""
    if not ways or len(ways) > MOST_WAYS:
        raise InputError(
            f"Expected 1 to {MOST_WAYS} ways to check, found {len(ways)}; choose protocols and "
            "rosters."
        )
    payer = jobs.payer(by, typed)
    checked = without_keys(ways, payer.keys)
    plans = [  # what a run may use at most is its share
        replace(way.plan, cent_cap=way.share.cents, token_cap=way.share.tokens)
        if way.share
        else way.plan
        for way in checked
        if not way.problem
    ]
    if not plans:
        raise InputError(f"None of these ways can be started: {checked[0].problem}")
    left = [(w.plan.protocol, w.plan.roster, w.problem) for w in checked if w.problem]
    project = case.project_id
    with store.writing():
        store.projects.require(project, by, "annotator", "compare ways to check")
        run_ids = [jobs.queue(store, case, plan) for plan in plans]
        store.projects.save_note(LEFT_OUT.format(case.id), json.dumps(left))
        listed = [case.id, *(i for i in compared_cases(store, project) if i != case.id)]
        store.projects.save_note(LIST.format(project), json.dumps(listed[:MOST_LISTED]))
    jobs.submit(store, run_ids, payer)
    return run_ids


def compared_cases(store: Store, project_id: str) -> list[str]:
    """Ids of the cases that were compared in a project, the newest first."""
    found: list[str] = json.loads(store.projects.note(LIST.format(project_id)) or "[]")
    return found


def left_out(store: Store, case_id: str) -> list[LeftOut]:
    """The ways that were chosen last for that case and not started."""
    text = store.projects.note(LEFT_OUT.format(case_id)) or "[]"
    return [LeftOut(*own) for own in json.loads(text)]


def compared(store: Store, case_id: str) -> list[ComparedRun]:
    """The newest run by each protocol, roster and options, at most `MOST_WAYS`; oldest first."""
    lease = store.projects.settings().lease_seconds
    newest: dict[tuple[object, ...], Run] = {}
    for run in store.runs.of_case(case_id, time.time(), lease):
        plan = run.plan
        newest[plan.protocol, plan.roster, plan.options, plan.max_turns, plan.passages] = run
    runs = sorted(newest.values(), key=lambda run: run.started_at)[-MOST_WAYS:]
    return [ComparedRun(run, folded(e for _, e in store.runs.events(run.id))) for run in runs]


def comparison_csv(
    named: Mapping[str, ComparedRun], left: Sequence[LeftOut], response: str
) -> bytes:
    """A row for each way as CSV; columns that no way has anything in are left out.

    `marked` are the marked words as `[start, end)` of the response with their text; a cost that is
    not known is empty.
    """
    rows: list[dict[str, object]] = [_cells(name, own, response) for name, own in named.items()]
    rows += [asdict(own) | {"status": "not started"} for own in left]
    titles = [title for title in COLUMNS if any(row.get(title) not in (None, "") for row in rows)]
    return csv_of([titles, *([row.get(title) for title in titles] for row in rows)])


def _cells(name: str, own: ComparedRun, response: str) -> dict[str, object]:
    run, progress = own.run, own.progress
    marked = (f"[{s.start}, {s.end}) {response[s.start : s.end]}" for s in progress.spans)
    options = (f"{option} {value}" for option, value in run.plan.options.chosen.items())
    calls = progress.calls.values()
    return {
        "way": name,
        "protocol": run.plan.protocol,
        "options": ", ".join(options),
        "roster": run.plan.roster,
        **{key: getattr(run, key) for key in ("status", "label", "p_hallucinated", "confidence")},
        "cause": run.cause,
        "marked": "; ".join(marked),
        "turns": len(progress.turns),
        "calls": len(calls),
        "tokens": sum(call.tokens_in + call.tokens_out for call in calls),
        "us_dollars": progress.cost,
        "seconds": round(progress.seconds(), 2),
        "run_id": run.id,
    }
