"""What is below a project's limit goes to people, first in the queue and with the reason."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

import pytest

from components.report import load_reported_runs
from core.__main__ import _plainly
from core.pipeline.single_check import CheckRequest, check_once
from core.review.queue_ranking import (
    LIMIT_KIND,
    AutomationPolicy,
    ConfidenceLimit,
    apply_policy,
    dump_limits,
    enqueue_run,
    load_policy,
)
from core.schema.events import LabelPredicted
from core.schema.records import Plan, Run, Verdict
from core.store import Store, open_store
from core.store.queue_order import PRIORITY_BONUS, RANDOM_REASON, explain_item
from core.store.review_queue import NO_ITEM_FILTER, QueueRules
from core.store.runs import RunFilter
from core.store.versions import ArtefactChoice, LearnedArtefact
from tests.learning.answered import OURS, add_run

pytestmark = pytest.mark.usefixtures("without_weights")

LIMIT = ConfidenceLimit("seed", "builtin", 0.8, 100, 60, 2)
PROJECT = replace(OURS, error_rate=0.1)


def run_of(confidence: float | None, version: str = "seed", roster: str = "builtin") -> Run:
    plan = Plan(classifier=version, roster=roster)
    return Run("r", "c", OURS.id, plan, "finished", 1.0, confidence=confidence)


@pytest.mark.parametrize(
    ("run", "is_for_people"),
    [
        (run_of(0.8), False),
        (run_of(0.7999), True),
        (run_of(None), False),
        (run_of(0.99, version="v1"), True),
        (run_of(0.99, roster="models"), True),
        (run_of(0.99, version=""), False),
    ],
)
def test_a_verdict_below_the_limit_of_its_version_is_for_people(
    run: Run, is_for_people: bool
) -> None:
    assert AutomationPolicy(0.1, (LIMIT,)).is_for_people(run) is is_for_people


def test_where_nothing_can_be_promised_all_are_for_people() -> None:
    assert AutomationPolicy(0.1, (replace(LIMIT, threshold=None),)).is_for_people(run_of(0.99))
    assert AutomationPolicy(0.1).is_for_people(run_of(0.99))


def keep(store: Store, wanted: float = 0.1) -> None:
    """Take the limit into use."""
    with store.writing():
        body = dump_limits(wanted, [LIMIT])
        number = store.learned.add(LearnedArtefact(LIMIT_KIND, OURS.id, 1.0, "Mira", body))
        store.learned.use(ArtefactChoice(LIMIT_KIND, OURS.id, number, 1.0, "Mira", ""))


def test_a_limit_that_was_changed_in_the_file_is_not_used(store: Store) -> None:
    store.projects.save(PROJECT)
    keep(store)
    assert load_policy(store, PROJECT) == AutomationPolicy(0.1, (LIMIT,))
    assert load_policy(store, OURS) is None
    store.db.execute("UPDATE learned SET body = replace(body, '0.8', '0.5')")
    policy = load_policy(store, PROJECT)
    assert policy is not None
    assert policy.is_for_people(run_of(0.99))
    assert "checksum" in policy.problem


def test_what_people_must_decide_comes_first_and_says_why(store: Store) -> None:
    store.projects.save(PROJECT)
    keep(store)
    for name, p in (("sure", 0.95), ("below", 0.25), ("unclear", None)):
        add_run(store, name, p)
    for name in ("sure", "below", "unclear"):
        assert enqueue_run(store, f"r-{name}", 50.0)
    items, _ = store.queue.page(OURS.id, NO_ITEM_FILTER, ["open"], limit=9, offset=0, now=60.0)
    assert [item.run_id for item in items] == ["r-below", "r-unclear", "r-sure"]
    assert [explain_item(item).endswith("for people to decide") for item in items] == [
        True,
        False,
        False,
    ]
    with store.writing():
        given = store.queue.claim(OURS.id, "Karl", QueueRules(), 60.0, is_random=True)
    assert given is not None
    assert given.why == RANDOM_REASON


def test_the_queue_is_put_in_order_again_and_loses_nothing(store: Store) -> None:
    store.projects.save(PROJECT)
    for name, p in (("sure", 0.95), ("below", 0.25), ("unclear", None), ("other", 0.05)):
        add_run(store, name, p, version="v1" if name == "other" else "seed")
    taught = {"c-sure": 0.5, "c-below": 2.5, "c-unclear": 0.5, "c-other": 2.5}
    for _ in range(2):
        keep(store)
        with store.writing():
            apply_policy(store, PROJECT)
        rows = store.db.query("SELECT case_id, teaches FROM items")
        assert {row["case_id"]: row["teaches"] for row in rows} == taught
    with store.writing():
        apply_policy(store, OURS)
    assert {row["teaches"] for row in store.db.query("SELECT teaches FROM items")} == {0.5}


def test_a_verdict_scored_again_goes_by_the_limit_of_who_scored_it(store: Store) -> None:
    store.projects.save(PROJECT)
    keep(store)
    for name in ("known", "unknown"):
        add_run(store, name, 0.95, version="v1" if name == "known" else "seed")
    scored = {"known": "seed", "unknown": "v2"}
    with store.writing():
        for name, version in scored.items():
            verdict = Verdict("hallucinated", 0.9, 0.9, "So.", classifier=version)
            store.runs.append(f"r-{name}", None, [LabelPredicted(30.0, verdict, "Mira")])
        store.learned.add(LearnedArtefact("rescoring", "", 30.0, "Mira", {}))
        apply_policy(store, PROJECT)
    rows = store.db.query("SELECT case_id, teaches >= 2.0 AS is_first FROM items")
    first = {"c-known": False, "c-unknown": True}
    assert {row["case_id"]: bool(row["is_first"]) for row in rows} == first
    for name in scored:
        assert enqueue_run(store, f"r-{name}", 50.0)
        item = store.queue.get(f"c-{name}")
        assert item is not None
        assert (item.teaches >= PRIORITY_BONUS) == first[f"c-{name}"]
    told, _ = load_reported_runs(store, OURS.id, "Mira", RunFilter())
    assert {one.run.id: one.is_for_people for one in told} == {"r-known": False, "r-unknown": True}


def test_the_command_line_says_who_decides(home: Path, tmp_path: Path) -> None:
    page = tmp_path / "cats.txt"
    page.write_text("Female cats tend to be right pawed.")
    wrong = CheckRequest("Female cats tend to be left pawed.", documents=[page])
    found, _ = check_once(home, wrong, time.time)
    assert found["for_people"] is None, "the project has not said what it bears"
    assert "people" not in _plainly(found)
    with open_store(home) as store:
        store.projects.save(replace(store.projects.all()[0], error_rate=0.1))
    found, _ = check_once(home, wrong, time.time)
    assert found["for_people"] is True
    assert "For people to decide" in _plainly(found)
    unclear, _ = check_once(home, CheckRequest("Paris is in France."), time.time)
    assert (unclear["label"], unclear["for_people"]) == ("unclear", None)
