"""A debate that was held elsewhere and came with a row, stored as a run that can be replayed."""

from __future__ import annotations

from dataclasses import replace

from core.events import Event, RunFinished, RunStarted
from core.exchange.order import Order
from core.exchange.said import digest
from core.formats.row import RecordedRun
from core.records import Case, Plan, Run
from core.store import Store
from core.store.codec import to_json


def store_recorded(store: Store, recorded: RecordedRun, case: Case, order: Order) -> bool:
    """Store the run where the case does not have it yet; whether it is new.

    It happened at a time that nobody wrote down: it stands under the time at which it came in.
    """
    told = [to_json(event) for event in recorded.events]
    run_id = digest(case.id, "recorded run", recorded.roster, *told)
    if store.runs.get(run_id, 0.0, 0.0) is not None:
        return False
    plan = Plan(recorded.protocol, recorded.roster)
    run = Run(run_id, case.id, case.project_id, plan, "queued", order.now, origin="imported")
    store.runs.add(run, "", 0.0)
    store.runs.append(run_id, None, _events(recorded, case, plan, order.now))
    return True


def _events(recorded: RecordedRun, case: Case, plan: Plan, now: float) -> list[Event]:
    """The whole run, from its start, under times of here."""
    last = max((event.at for event in recorded.events), default=0.0)
    return [
        RunStarted(now, case, plan, recorded.roles),
        *(replace(event, at=now + event.at) for event in recorded.events),
        RunFinished(now + last, recorded.verdict, last, None),
    ]
