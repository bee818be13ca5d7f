"""One case checked in several ways at once within one budget, and where their runs differ.

The rule of the budget: ways are taken in their order as long as what they are likely to use fits
into it together, each in whole cents and tokens and at least one of both. What is left over is
dealt out among those taken in proportion to that. A run then never passes its share, nor the caps
of any run, of its person and of the day. A way that does not fit is not started, and says why.
Built-in agents use nothing of it.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.debate.protocols import require_protocol
from core.documents.tables import safe_cell
from core.llm.keys import Keys
from core.llm.limits import NANO_PER_CENT, money
from core.pipeline.cost_estimate import Expected
from core.pipeline.jobs import NOTHING_TYPED, Jobs
from core.pipeline.run_factory import require_keys
from core.runtime.config import Settings
from core.runtime.errors import InputError, KeyMissing
from core.schema.progress import Progress, folded
from core.schema.records import Case, Label, Plan, Run, Stance
from core.store import Store


@dataclass(frozen=True)
class Stretch:
    """`[start, end)` of the response that some of the runs mark and others do not."""

    start: int
    end: int
    text: str
    marked_by: tuple[str, ...]
    passed_by: tuple[str, ...]


@dataclass(frozen=True)
class Held:
    """A sentence of the response on which runs differ; by run, whether it marks words in it."""

    start: int
    end: int
    text: str
    is_marked: Mapping[str, bool]


@dataclass(frozen=True)
class Turned:
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


def words_apart(response: str, runs: Mapping[str, Progress]) -> list[Stretch]:
    """The longest stretches that the same runs mark, where others with a verdict do not."""
    judged = {name: own for name, own in runs.items() if own.verdict is not None}
    spans = {name: [(s.start, s.end) for s in own.spans] for name, own in judged.items()}
    cuts = sorted({place for own in spans.values() for span in own for place in span})
    found: list[Stretch] = []
    for start, end in itertools.pairwise(cuts):
        by = tuple(
            name for name, own in spans.items() if any(s <= start and end <= e for s, e in own)
        )
        if not by or len(by) == len(judged):
            continue
        last = found[-1] if found else None
        begin = start
        if last is not None and last.end == start and last.marked_by == by:
            begin = found.pop().start
        others = tuple(name for name in judged if name not in by)
        found.append(Stretch(begin, end, response[begin:end], by, others))
    return found


def statements_apart(runs: Mapping[str, Progress]) -> list[Held]:
    """The sentences in which some runs mark words and others none.

    They are those of the run that parted the response into most; a run without a verdict is
    silent on all.
    """
    judged = {name: own for name, own in runs.items() if own.verdict is not None}
    parted = max((own.statements for own in judged.values()), key=len, default={})
    found = []
    for _, statement in sorted(parted.items()):
        inside = {
            name: any(s.start < statement.end and statement.start < s.end for s in own.spans)
            for name, own in judged.items()
        }
        if len(set(inside.values())) > 1:
            found.append(Held(statement.start, statement.end, statement.text, inside))
    return found


def turned(runs: Mapping[str, Progress]) -> list[Turned]:
    """Every change of a debater's stance within a run, in the order of turns.

    A side that it was assigned is not what it holds, and is passed over.
    """
    found = []
    for name, progress in runs.items():
        held: dict[str, Stance] = {}
        for turn in sorted(progress.turns, key=lambda own: own.number):
            if turn.assigned is not None:
                continue
            before = held.get(turn.debater)
            if before is not None and before != turn.stance:
                found.append(Turned(name, turn.debater, before, turn.stance, turn.round))
            held[turn.debater] = turn.stance
    return found


def same_agent_apart(runs: Mapping[str, Progress]) -> list[tuple[str, dict[Stance, list[str]]]]:
    """(agent, runs by the stance it ended with) of agents that ended differently in two runs."""
    ended: dict[str, dict[str, Stance]] = {}
    for name, progress in runs.items():
        for turn in progress.turns:
            if turn.assigned is None:  # a side that it was given says nothing of what it holds
                ended.setdefault(turn.agent, {})[name] = turn.stance
    found = []
    for agent, stances in ended.items():
        if len(set(stances.values())) > 1:
            by_stance: dict[Stance, list[str]] = {}
            for name, stance in stances.items():
                by_stance.setdefault(stance, []).append(name)
            found.append((agent, by_stance))
    return found


def letters(count: int) -> Sequence[str]:
    """A letter for each run, as the marks in the text have them."""
    return [chr(ord("A") + place) for place in range(count)]


CENTS_A_DOLLAR = 100
MOST_WAYS = 12
MOST_LISTED = 20
COLUMNS = (
    "way", "protocol", "options", "roster", "status", "label", "p_hallucinated", "confidence",
    "cause", "marked", "turns", "calls", "tokens", "us_dollars", "seconds", "problem", "run_id",
)  # fmt: skip


@dataclass(frozen=True)
class Budget:
    """What all runs of a comparison may use together: US cents, tokens of unpriced models."""

    cents: int
    tokens: int

    def __sub__(self, other: Budget) -> Budget:
        """What is left of it."""
        return Budget(self.cents - other.cents, self.tokens - other.tokens)

    def holds(self, other: Budget) -> bool:
        """The other one fits into it."""
        return other.cents <= self.cents and other.tokens <= self.tokens


@dataclass(frozen=True)
class Way:
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
class Compared:
    """One way's newest run over the case and what it has come to so far."""

    run: Run
    progress: Progress


def shared_out(ways: Sequence[Way], budget: Budget, settings: Settings) -> list[Way]:
    """The ways with their shares, or why they get none, by the rule above."""
    own_caps = Budget(settings.run_cents, settings.run_tokens)
    left, taken = budget, []
    for way in ways:
        need = needed(way)
        problem = way.problem or ("" if need is None else _refused(need, left, own_caps))
        if not problem and need is not None:
            left -= need
        taken.append(replace(way, problem=problem))
    needs = [need for way in taken if not way.problem and (need := needed(way)) is not None]
    return [_with_share(way, needs, left, own_caps) for way in taken]


def needed(way: Way) -> Budget | None:
    """What a way is likely to use, at least 1 of each; None where it asks no model."""
    if way.expected is None or not way.expected.most.calls:
        return None
    likely = way.expected.likely
    cents = math.ceil(likely.cost * CENTS_A_DOLLAR)
    return Budget(max(1, cents), max(1, likely.unpriced_tokens))


def _with_share(way: Way, needs: Sequence[Budget], left: Budget, most: Budget) -> Way:
    """The way with its likely use and its part of what is left, no more than any run may use."""
    need = needed(way)
    if need is None or way.problem:
        return way
    cents = need.cents + left.cents * need.cents // sum(own.cents for own in needs)
    tokens = need.tokens + left.tokens * need.tokens // sum(own.tokens for own in needs)
    return replace(way, share=Budget(min(cents, most.cents), min(tokens, most.tokens)))


def _refused(need: Budget, left: Budget, own_caps: Budget) -> str:
    """Why a need cannot be met; empty where it can."""
    if not own_caps.holds(need):
        what = _words_of(need, own_caps)
        return f"It would take about {what}, more than a single check may use."
    if not left.holds(need):
        return (
            f"It would take about {_words_of(need, left)}; that is more than the budget has left."
        )
    return ""


def _words_of(need: Budget, cap: Budget) -> str:
    """The part of a need that a cap has no room for."""
    if need.cents > cap.cents:
        return money(need.cents * NANO_PER_CENT)
    return f"{need.tokens:,} tokens of unpriced models"


def without_keys(ways: Sequence[Way], keys: Keys) -> list[Way]:
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
    ways: Sequence[Way],
    *,
    by: str,
    typed: Mapping[str, str] = NOTHING_TYPED,
) -> list[str]:
    """Queue a run for every way without a problem, in one transaction; their ids.

    Raises:
        InputError: there is no way, too many, or none that can be started; nothing was stored.
    """
    if not ways or len(ways) > MOST_WAYS:
        raise InputError(
            f"Expected 1 to {MOST_WAYS} ways to check, found {len(ways)}; choose protocols and "
            "rosters."
        )
    payer = jobs.payer(by, typed)
    checked = without_keys(ways, payer.keys)
    begun = [way for way in checked if not way.problem]
    if not begun:
        raise InputError(f"None of these ways can be started: {checked[0].problem}")
    left = [LeftOut(w.plan.protocol, w.plan.roster, w.problem) for w in checked if w.problem]
    with store.writing():
        store.projects.require(case.project_id, by, "annotator", "compare ways to check")
        run_ids = [jobs.queue(store, case, _capped(way)) for way in begun]
        store.projects.save_note(_note(case.id), _written(left))
        listed = [case.id, *(i for i in compared_cases(store, case.project_id) if i != case.id)]
        store.projects.save_note(_list(case.project_id), json.dumps(listed[:MOST_LISTED]))
    jobs.submit(store, run_ids, payer)
    return run_ids


def _capped(way: Way) -> Plan:
    """The plan that its run goes by: what it may use at most is its share."""
    if way.share is None:
        return way.plan
    return replace(way.plan, cent_cap=way.share.cents, token_cap=way.share.tokens)


def _note(case_id: str) -> str:
    return f"comparison.{case_id}"


def _list(project_id: str) -> str:
    return f"comparisons.{project_id}"


def _written(left: Sequence[LeftOut]) -> str:
    return json.dumps([[own.protocol, own.roster, own.problem] for own in left])


def compared_cases(store: Store, project_id: str) -> list[str]:
    """Ids of the cases that were compared in a project, the newest first."""
    text = store.projects.note(_list(project_id))
    found: list[str] = json.loads(text) if text else []
    return found


def left_out(store: Store, case_id: str) -> list[LeftOut]:
    """The ways that were chosen last for that case and not started."""
    text = store.projects.note(_note(case_id))
    return [LeftOut(*own) for own in json.loads(text)] if text else []


def compared(store: Store, case_id: str) -> list[Compared]:
    """The newest run over the case by each protocol, roster and options; the first begun first.

    The newest `MOST_WAYS` of them.
    """
    lease = store.projects.settings().lease_seconds
    newest: dict[tuple[object, ...], Run] = {}
    for run in store.runs.of_case(case_id, time.time(), lease):
        plan = run.plan
        newest[plan.protocol, plan.roster, plan.options, plan.max_turns, plan.passages] = run
    runs = sorted(newest.values(), key=lambda run: run.started_at)[-MOST_WAYS:]
    return [Compared(run, folded(e for _, e in store.runs.events(run.id))) for run in runs]


def comparison_csv(named: Mapping[str, Compared], left: Sequence[LeftOut], response: str) -> bytes:
    """A row for each way as CSV (UTF-8 with BOM); formulas are neutralised.

    `marked` are the marked words as `[start, end)` of the response with their text; a cost that is
    not known is empty. Columns that no way has anything in are left out.
    """
    rows: list[dict[str, object]] = [_cells(name, own, response) for name, own in named.items()]
    rows += [
        {"protocol": own.protocol, "roster": own.roster, "status": "not started",
         "problem": own.problem}
        for own in left
    ]  # fmt: skip
    titles = [title for title in COLUMNS if any(row.get(title) not in (None, "") for row in rows)]
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(titles)
    writer.writerows([safe_cell(row.get(title)) for title in titles] for row in rows)
    return b"\xef\xbb\xbf" + out.getvalue().encode()


def _cells(name: str, own: Compared, response: str) -> dict[str, object]:
    run, progress = own.run, own.progress
    marked = (f"[{s.start}, {s.end}) {response[s.start : s.end]}" for s in progress.spans)
    calls = progress.calls.values()
    return {
        "way": name,
        "protocol": run.plan.protocol,
        "options": ", ".join(
            f"{option} {value}" for option, value in run.plan.options.chosen.items()
        ),
        "roster": run.plan.roster,
        "status": run.status,
        "label": run.label,
        "p_hallucinated": run.p_hallucinated,
        "confidence": run.confidence,
        "cause": run.cause,
        "marked": "; ".join(marked),
        "turns": len(progress.turns),
        "calls": len(calls),
        "tokens": sum(call.tokens_in + call.tokens_out for call in calls),
        "us_dollars": progress.cost,
        "seconds": round(progress.seconds(), 2),
        "run_id": run.id,
    }
