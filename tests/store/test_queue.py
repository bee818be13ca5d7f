"""The review queue: everybody gets the right next item, nobody gets one too many, none is lost."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.review.adjudication import reopen_case
from core.runtime.errors import ConflictError
from core.schema.records import Case, Project
from core.schema.reviews import QueueItem
from core.store import Store, open_store
from core.store.queue_order import (
    CRITERION_SHARES,
    RANDOM_REASON,
    compute_unsureness,
    compute_worth,
    explain_item,
    leave_neutral_reasons,
)
from core.store.review_queue import NO_ITEM_FILTER, ItemFilter, QueueRules
from tests.fakes import make_case
from tests.soak import often

pytestmark = pytest.mark.timing

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = "p" * 32
TWO = QueueRules(people=2, seconds=60.0)


def filled(store: Store, count: int) -> list[str]:
    """A queue of items; each teaches less than the one before."""
    with store.writing():
        store.projects.save(Project(PROJECT, "House", 1.0))
        for n in range(count):
            case = replace(
                make_case(f"Claim {n}."), id=f"case{n:04}", project_id=PROJECT, documents=("s1",)
            )
            put(store, case, n, count)
    return [f"case{n:04}" for n in range(count)]


def put(store: Store, case: Case, n: int, count: int) -> None:
    store.cases.add(case, ())
    p = 0.5 + 0.5 * n / count
    item = QueueItem(
        case.id, case.project_id, None, float(n), "hallucinated", p, 0.0, "en", 1.0 - n / count
    )
    store.queue.add(item, lot=((n * 7919) % 1000) / 1000)


@pytest.fixture
def store() -> Store:
    return open_store(None)


def claimed(store: Store, person: str, now: float = 0.0, rules: QueueRules = TWO) -> str | None:
    with store.writing():
        found = store.queue.claim(PROJECT, person, rules, now)
    return found.case_id if found else None


def ended(store: Store, case_id: str, person: str, state: str = "submitted") -> None:
    with store.writing():
        store.queue.end(case_id, person, state, 5.0)  # type: ignore[arg-type]


def test_what_teaches_most_comes_first_and_stays_in_hand(store: Store) -> None:
    ids = filled(store, 4)
    assert [claimed(store, "Mira"), claimed(store, "Mira", 30.0)] == [ids[0], ids[0]]
    assert claimed(store, "Karl") == ids[0]
    assert claimed(store, "Ida") == ids[1], "two have the first in hand already"
    ended(store, ids[0], "Mira")
    assert claimed(store, "Mira") == ids[1]


def test_a_claim_runs_out_and_its_place_is_free_again(store: Store) -> None:
    ids = filled(store, 2)
    one = replace(TWO, people=1)
    assert claimed(store, "Mira", 0.0, one) == ids[0]
    assert claimed(store, "Karl", 59.0, one) == ids[1]
    assert claimed(store, "Ida", 59.0, one) is None
    assert claimed(store, "Ida", 61.0, one) == ids[0]
    ended(store, ids[0], "Mira")  # late, and still counted
    item = store.queue.get(ids[0])
    assert item is not None
    assert item.given == 1
    with store.writing():
        assert store.queue.take(ids[0], "Ida", one, 100.0).until == 160.0, "its time is renewed"
    assert claimed(store, "Ida", 150.0, one) == ids[0]


def test_what_was_passed_over_does_not_come_back_and_what_is_flagged_waits_for_a_lead(
    store: Store,
) -> None:
    ids = filled(store, 3)
    claimed(store, "Mira")
    ended(store, ids[0], "Mira", "skipped")
    assert claimed(store, "Mira") == ids[1]
    assert claimed(store, "Karl") == ids[0]
    ended(store, ids[0], "Karl", "flagged")
    item = store.queue.get(ids[0])
    assert item is not None
    assert (item.state, item.given) == ("flagged", 0)
    assert claimed(store, "Ida") == ids[1]
    store.queue.set_state(ids[0], "open")
    assert claimed(store, "Lea") == ids[0]


def test_what_a_lead_assigned_comes_first_to_that_person_and_to_nobody_else(store: Store) -> None:
    ids = filled(store, 4)
    with store.writing():
        assert store.queue.assign([ids[2], ids[3], "nowhere"], "Mira", "Lea", TWO, 0.0) == 2
        assert store.queue.assign(ids[2:], "Mira", "Tom", TWO, 1.0) == 0, "it is hers already"
    assert store.queue.count_assigned(PROJECT, TWO.people) == {"Mira": 2}
    assert store.queue.counts(PROJECT, TWO, 0.0)["in_hand"] == 0, "nobody has begun yet"
    assert claimed(store, "Mira") == ids[2]
    mine = store.queue.of(ids[2], "Mira")
    assert mine is not None
    assert (mine.why, mine.assigned_by) == ("assigned to you by Lea", "Lea")
    assert [claimed(store, "Karl"), claimed(store, "Ida")] == [ids[0], ids[0]]
    ended(store, ids[0], "Karl")
    assert claimed(store, "Karl") == ids[1]
    ended(store, ids[1], "Karl")
    assert claimed(store, "Karl") is None, "the two others are assigned to Mira"
    with store.writing(), pytest.raises(ConflictError, match="is assigned to Mira; take the next"):
        store.queue.take(ids[3], "Karl", TWO, 0.0)
    assert claimed(store, "Mira", 100.0) == ids[2], "her time ran out, it stays hers"
    ended(store, ids[2], "Mira")
    assert claimed(store, "Karl", 100.0) == ids[2], "two people review each item"
    assert claimed(store, "Mira", 100.0) == ids[3]


def test_assigned_items_are_released_and_assigned_to_several(store: Store) -> None:
    ids = filled(store, 2)
    with store.writing():
        for person in ("Mira", "Karl"):
            assert store.queue.assign(ids, person, "Lea", TWO, 0.0) == 2
        assert store.queue.release(ids[:1]) == 2
    assert store.queue.count_assigned(PROJECT, TWO.people) == {"Karl": 1, "Mira": 1}
    assert store.queue.count_assigned(PROJECT, 0) == {}, "enough have answered"
    assert claimed(store, "Mira") == ids[1]
    assert [claimed(store, "Ida"), claimed(store, "Tom")] == [ids[0], ids[0]]
    ended(store, ids[0], "Ida")
    ended(store, ids[0], "Tom")
    with store.writing():
        assert store.queue.assign(ids[:1], "Ben", "Lea", TWO, 0.0) == 0, "enough have answered"


def test_submitting_twice_counts_once(store: Store) -> None:
    ids = filled(store, 1)
    claimed(store, "Mira")
    ended(store, ids[0], "Mira")
    ended(store, ids[0], "Mira")
    item = store.queue.get(ids[0])
    assert item is not None
    assert item.given == 1
    for passed_on in ("skipped", "flagged"):
        with pytest.raises(ConflictError, match="take your answer back first"):
            ended(store, ids[0], "Mira", passed_on)
    with store.writing():
        store.queue.again(ids[0], "Mira", TWO, 6.0)
    ended(store, ids[0], "Mira", "skipped")
    again = store.queue.get(ids[0])
    assert again is not None
    assert again.given == 0


def test_who_flagged_an_item_gets_it_again_when_it_is_given_back(store: Store) -> None:
    ids = filled(store, 1)
    claimed(store, "Mira")
    ended(store, ids[0], "Mira", "flagged")
    assert claimed(store, "Mira") is None
    with store.writing():
        reopen_case(store, ids[0], "Lena", 7.0)
    assert claimed(store, "Mira", 8.0) == ids[0]


def test_a_random_draw_says_so_and_follows_the_lots(store: Store) -> None:
    filled(store, 20)
    with store.writing():
        found = store.queue.claim(PROJECT, "Mira", TWO, 0.0, is_random=True)
    assert found is not None
    assert (found.case_id, found.why) == ("case0000", RANDOM_REASON)
    ended(store, "case0000", "Mira")
    with store.writing():
        found = store.queue.claim(PROJECT, "Mira", TWO, 0.0, is_random=True)
    lots = {n: (n * 7919) % 1000 for n in range(1, 20)}
    assert found is not None
    assert found.case_id == f"case{min(lots, key=lambda n: lots[n]):04}"


def test_an_item_that_is_chosen_is_given_unless_enough_others_have_it(store: Store) -> None:
    ids = filled(store, 2)
    with store.writing():
        for person in ("Mira", "Karl"):
            assert store.queue.take(ids[1], person, TWO, 0.0).state == "claimed"
        with pytest.raises(ConflictError, match="as many as the project wants"):
            store.queue.take(ids[1], "Ida", TWO, 0.0)
        with pytest.raises(ConflictError, match="not in the queue"):
            store.queue.take("nowhere", "Ida", TWO, 0.0)
    ended(store, ids[1], "Mira")
    with store.writing():
        assert store.queue.take(ids[1], "Mira", TWO, 0.0).state == "submitted"
        assert store.queue.take(ids[0], "Mira", TWO, 0.0, "sent by Ida").case_id == ids[0]
        again = store.queue.take(ids[0], "Mira", TWO, 50.0)
        assert (again.why, again.claimed_at, again.until) == ("sent by Ida", 0.0, 110.0)
    assert store.queue.counts(PROJECT, TWO, 0.0) == {
        "flagged": 0, "adjudicated": 0, "done": 0, "pending": 2, "in_hand": 2
    }  # fmt: skip
    expected = {"claimed": 1, "submitted": 1, "skipped": 0, "flagged": 0}
    assert store.queue.counts_of(PROJECT, "Mira") == expected
    for place, other in enumerate(("a" * 32, "z" * 32)):
        with store.writing():
            store.projects.save(Project(other, f"House {other[0]}", 1.0))
            case = make_case("Another claim.", id=f"o{place}", project_id=other)
            put(store, case, place, 2)
            store.queue.end(case.id, "Mira", "submitted", 1.0)
        assert store.queue.counts_of(PROJECT, "Mira") == expected, (
            "another project's are not counted"
        )
        assert store.queue.counts_of(other, "Mira")["submitted"] == 1


@pytest.mark.parametrize(
    ("wanted", "first", "count"),
    [
        (NO_ITEM_FILTER, "case0000", 10),
        (ItemFilter(label="supported"), None, 0),
        (ItemFilter(language="en", p_from=0.7), "case0004", 6),
        (ItemFilter(p_from=0.6, p_to=0.8), "case0002", 5),
        (ItemFilter(disagreement_from=0.1), None, 0),
        (ItemFilter(older_than=95.0), "case0000", 6),
        (ItemFilter(source_id="s1"), "case0000", 10),
        (ItemFilter(source_id="zz"), None, 0),
        (ItemFilter(words="7. claim"), "case0007", 1),
        (ItemFilter(words="claim 7 sun"), None, 0),
        (ItemFilter(case_ids=("case0003", "case0005", "case0099")), "case0003", 2),
        (ItemFilter(case_ids=()), None, 0),
    ],
)
def test_filters_choose_what_is_listed_and_what_is_given(
    store: Store, wanted: ItemFilter, first: str | None, count: int
) -> None:
    filled(store, 10)
    items, total = store.queue.page(PROJECT, wanted, ["open"], limit=3, offset=0, now=100.0)
    assert (total, len(items)) == (count, min(3, count))
    with store.writing():
        found = store.queue.claim(PROJECT, "Mira", TWO, 100.0, wanted)
    assert (found.case_id if found else None) == first
    assert [item.case_id for item in items][:1] == ([first] if first else [])


def test_a_newer_run_renews_an_item_and_leaves_its_state(store: Store) -> None:
    ids = filled(store, 1)
    ended(store, ids[0], "Mira")
    item = store.queue.get(ids[0])
    assert item is not None
    store.queue.set_state(ids[0], "adjudicated")
    store.queue.add(replace(item, p=0.1, label="supported", state="open", given=0))
    again = store.queue.get(ids[0])
    assert again is not None
    assert (again.p, again.label, again.state, again.given) == (0.1, "supported", "adjudicated", 1)


def test_a_verdict_without_a_probability_is_not_called_missing() -> None:
    words, teaches = "the machine left it unclear", compute_worth(compute_unsureness(None), 0.0)
    item = QueueItem("c", "p", "r", 0.0, "unclear", None, 0.0, "en", teaches)
    assert explain_item(item) == words
    assert leave_neutral_reasons(words) == "", "a blind project does not tell it"


@pytest.mark.parametrize(
    ("p", "disagreement", "unlike", "words"),
    [
        (0.55, 0.5, 0.0, "unsure (55% likely hallucinated), agents disagree"),
        (0.95, 0.5, 0.1, "agents disagree"),
        (0.95, 0.5, 0.7, "agents disagree, unlike any answered"),
        (0.95, 0.0, 0.0, "the machine is sure: little is learned"),
        (0.95, 0.0, 1.0, "unlike any answered"),
        (None, 0.0, 0.0, "not judged by the machine"),
        (0.95, 0.5, -1.0, "agents disagree, much like another"),
    ],
)
def test_each_item_says_why_it_comes(
    p: float | None, disagreement: float, unlike: float, words: str
) -> None:
    teaches = compute_worth(compute_unsureness(p), disagreement) + CRITERION_SHARES.unlike * unlike
    assert explain_item(QueueItem("c", "p", None, 0.0, "", p, disagreement, "en", teaches)) == words


WORK = st.lists(
    st.tuples(
        st.sampled_from(("Mira", "Karl", "Ida")),
        st.sampled_from(("claim", "submitted", "skipped", "flagged", "wait")),
    ),
    max_size=40,
)


@given(WORK, st.integers(1, 3))
@settings(max_examples=often(60, 2000), deadline=None)
def test_whatever_people_do_nobody_gets_one_too_many(
    work: list[tuple[str, str]], people: int
) -> None:
    store = open_store(None)
    ids = filled(store, 3)
    rules, now = QueueRules(people, 10.0), 0.0
    hands: dict[str, str] = {}
    for person, what in work:
        now += 11.0 if what == "wait" else 1.0
        with store.writing():
            if what == "claim":
                found = store.queue.claim(PROJECT, person, rules, now)
                if found:
                    hands[person] = found.case_id
            elif what != "wait" and person in hands:
                store.queue.end(hands.pop(person), person, what, now)  # type: ignore[arg-type]
        for case_id in ids:
            given = store.queue.people_of(case_id)
            item = store.queue.get(case_id)
            assert item is not None
            assert item.given == sum(a.state == "submitted" for a in given)
            alive = sum(a.state == "claimed" and a.until > now for a in given)
            late = sum(a.ended_at is not None and a.ended_at > a.until for a in given)
            assert alive + item.given <= people + late
    store.close()


def test_twenty_annotators_at_once_are_given_every_item_three_times(home: Path) -> None:
    """Four processes with five threads each, all claiming from one queue."""
    with open_store(home) as store:
        ids = filled(store, often(50, 1000))
    command = [sys.executable, "-m", "tests.store.annotating", str(home), PROJECT]
    workers = [
        subprocess.Popen([*command, f"P{n}"], cwd=ROOT, stdout=subprocess.PIPE, text=True)
        for n in range(4)
    ]
    told = [worker.communicate(timeout=often(120, 1200))[0] for worker in workers]
    assert [worker.returncode for worker in workers] == [0] * 4
    got = [tuple(line.split()) for lines in told for line in lines.splitlines()]
    assert len(got) == 3 * len(ids), "none is lost, none over-assigned"
    assert len(set(got)) == len(got), "nobody got an item twice"
    assert Counter(case_id for case_id, _ in got) == dict.fromkeys(ids, 3)
