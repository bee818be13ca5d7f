"""The ledger over a real file: it survives reopening, and its sums are exact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.store import Store, open_store
from core.store.ledger import DAY_SECONDS, LedgerRow, SpendAmount

NOON = 20_000 * DAY_SECONDS + DAY_SECONDS / 2
ROW = LedgerRow(
    id="a",
    run_id="run",
    slot="turn 1",
    digest="d",
    project_id="p",
    person="Mira",
    role="judge",
    model="openai/x",
    prompt="judge",
    prompt_hash="h",
    cut="",
    at=NOON,
    reserved_nano=900,
    reserved_tokens=90,
    counts_nano=900,
    counts_tokens=0,
)
DONE = replace(
    ROW,
    status="done",
    counts_nano=510,
    tokens_in=10,
    tokens_out=5,
    is_counted=True,
    cost_nano=510,
    seconds=0.5,
    reply="Verdict: 1 ✓",
    finish="stop",
)


def test_it_survives_reopening(home: Path) -> None:
    with open_store(home) as store:
        store.ledger.put(ROW)
    with open_store(home) as store:
        assert store.ledger.of_run("run") == [ROW]
        assert store.ledger.finished("run", "turn 1", "d") is None
        assert store.ledger.lost("run", "turn 1", "d") == [ROW]
        store.ledger.put(DONE)
    with open_store(home) as store:
        assert store.ledger.of_run("run") == [DONE]
        assert store.ledger.finished("run", "turn 1", "d") == DONE
        assert store.ledger.lost("run", "turn 1", "d") == []
        assert store.ledger.finished("run", "turn 2", "d") is None


def test_a_call_belongs_to_the_day_on_which_it_was_sent(store: Store) -> None:
    store.ledger.put(replace(DONE, at=20_000 * DAY_SECONDS - 0.5, counts_nano=1))
    store.ledger.put(replace(DONE, id="b", at=20_000 * DAY_SECONDS, counts_nano=10))
    store.ledger.put(replace(DONE, id="c", person="Tom", run_id="other", counts_nano=100))
    store.ledger.put(replace(ROW, id="d", counts_nano=0, counts_tokens=7))
    spent = store.ledger.spent("run", "Mira", NOON + 60)
    assert spent.run == SpendAmount(11, 7, 0, 7)
    assert spent.day == SpendAmount(110, 7, 0, 7)
    assert spent.person_day == SpendAmount(10, 7, 0, 7)
    assert store.ledger.spent("new", "Ida", NOON + DAY_SECONDS).day == SpendAmount()


@pytest.mark.parametrize(
    "changes",
    [
        {"finish": "length"},
        {"status": "failed"},
        {"reused_from": "z"},
        {"digest": "e"},
        {"run_id": "new"},
        {"project_id": "another"},
    ],
)
def test_only_whole_paid_answers_of_the_projects_other_runs_are_reusable(
    store: Store, changes: dict[str, str]
) -> None:
    store.ledger.put(DONE)
    assert store.ledger.reusable("new", "turn 1", "d", DONE.project_id) == DONE
    store.ledger.put(replace(DONE, **changes))  # type: ignore[arg-type]
    assert store.ledger.reusable("new", "turn 1", "d", DONE.project_id) is None


def test_the_same_slots_answer_comes_first_and_goes_to_one_slot(store: Store) -> None:
    store.ledger.put(DONE)
    other = replace(DONE, id="b", slot="turn 2", at=NOON + 1)
    store.ledger.put(other)
    assert store.ledger.reusable("new", "turn 2", "d", DONE.project_id) == other
    store.ledger.put(replace(other, id="c", run_id="new", reused_from="b"))
    assert store.ledger.reusable("new", "turn 2", "d", DONE.project_id) == DONE


def test_a_reply_that_was_asked_for_again_serves_no_other_run(store: Store) -> None:
    store.ledger.put(DONE)
    store.ledger.put(replace(DONE, id="b", slot="turn 1 again", digest="e"))
    assert store.ledger.reusable("new", "turn 1", "d", DONE.project_id) is None
    assert store.ledger.reusable("new", "turn 1 again", "e", DONE.project_id) is None
    store.ledger.put(replace(DONE, id="c", run_id="third"))
    assert store.ledger.reusable("new", "turn 1", "d", DONE.project_id) == replace(
        DONE, id="c", run_id="third"
    )


def test_the_day_is_summed_without_reading_older_calls(store: Store) -> None:
    """New calls are checked before each is sent: months of them must not slow that."""
    query = "SELECT SUM(counts_nano) FROM calls WHERE at >= 5 AND person = 'Mira'"
    plan = " ".join(str(row) for row in store.db.execute(f"EXPLAIN QUERY PLAN {query}"))
    assert "calls_day (at>?)" in plan
