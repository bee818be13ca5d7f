"""One rule for what counts as true, and what it keeps out: wrong labels, and cases in dispute."""

from __future__ import annotations

import random
import statistics
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.exchange.exporter import load_project_rows
from core.learning.training_set import count_disputed, grow_holdout
from core.review.adjudication import (
    rate_difference,
    record_correction,
    record_gold,
    reopen_case,
    request_new_answers,
)
from core.runtime.errors import ConflictError
from core.schema.events import Event, JudgementReached, RunStarted
from core.schema.records import Case, Judgement, Label, Plan, Project, Run, Span, TruthRule
from core.schema.reviews import Correction, GoldAnswer, ItemState, QueueItem, Suggestion
from core.store import Store, open_store
from core.store.ground_truth import GroundTruth, decide_truth, find_majority_label
from core.store.migrations import MIGRATION_SCRIPTS
from core.store.queries import count_answers_and_cases
from core.store.review_queue import (
    DISPUTED_STATES,
    ItemFilter,
    QueueRules,
    build_disputed_filter,
    build_queue_rules,
)
from tests.fakes import make_case
from tests.soak import often

TEXT = "alpha bravo carol delta"
LABELS: tuple[Label, ...] = ("supported", "hallucinated")


def say(who: str, label: Label, *words: str, at: float = 1.0) -> Correction:
    """What somebody answered on `TEXT`, with these of its words marked."""
    places = [(TEXT.index(word), word) for word in words]
    spans = tuple(Span(i, i + len(w), w, 1.0, "reasoning", who) for i, w in places)
    return Correction(f"{who}{at}", None, "c", who, at, label, spans, f"So says {who}.")


def give_gold(label: Label, settled: bool = False) -> GoldAnswer:
    return GoldAnswer("g", "c", "Lea", 1.0, "adjudicated" if settled else "imported", label)


WRONG, RIGHT, ALSO = say("A", "hallucinated"), say("B", "supported"), say("C", "supported")


@pytest.mark.parametrize(
    ("golds", "answers", "wanted", "rule", "expected"),
    [
        ([], [], 1, "majority", ("waiting", None, None)),
        ([], [WRONG], 1, "majority", ("decided", "single", "hallucinated")),
        ([], [WRONG], 2, "majority", ("waiting", None, None)),
        ([], [WRONG, RIGHT], 1, "majority", ("disputed", None, None)),
        ([], [WRONG, RIGHT], 3, "majority", ("waiting", None, None)),
        ([], [WRONG, RIGHT, ALSO], 3, "majority", ("decided", "agreed", "supported")),
        ([], [WRONG, RIGHT, ALSO], 3, "unanimity", ("disputed", None, None)),
        ([], [WRONG, RIGHT, say("C", "unclear")], 3, "majority", ("disputed", None, None)),
        ([], [RIGHT, ALSO], 2, "unanimity", ("decided", "agreed", "supported")),
        ([], [RIGHT], 1, "settled", ("waiting", None, None)),
        ([], [WRONG, RIGHT], 1, "settled", ("disputed", None, None)),
        ([give_gold("supported")], [WRONG], 1, "majority", ("decided", "gold", "supported")),
        ([give_gold("supported")], [], 3, "settled", ("decided", "gold", "supported")),
        (
            [give_gold("unclear", settled=True), give_gold("supported")],
            [WRONG], 1, "majority", ("decided", "settled", "unclear"),
        ),
    ],
)  # fmt: skip
def test_the_rule(
    golds: list[GoldAnswer],
    answers: list[Correction],
    wanted: int,
    rule: TruthRule,
    expected: tuple[str, str | None, str | None],
) -> None:
    found = decide_truth(golds, answers, wanted, rule)
    assert (found.state, found.basis, found.label) == expected


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", None),
        ("s", "s"),
        ("sh", None),
        ("ssh", "s"),
        ("shu", None),
        ("sshu", None),
        ("hu", None),
    ],
)
def test_the_label_of_more_than_half_is_the_majority(said: str, expected: str | None) -> None:
    words: dict[str, Label] = {"s": "supported", "h": "hallucinated", "u": "unclear"}
    found = find_majority_label(words[one] for one in said)
    assert found == (expected and words[expected])


def test_what_was_settled_counts_until_the_case_is_given_back() -> None:
    settled = give_gold("hallucinated", settled=True)  # at 1.0
    agreed = [say(who, "supported", at=3.0) for who in "AB"]
    again = decide_truth([settled], agreed, 2, reopened_at=2.0)
    assert (again.state, again.basis, again.label) == ("decided", "agreed", "supported")
    assert decide_truth([settled], [WRONG, RIGHT], 2, reopened_at=2.0).state == "disputed"
    anew = replace(settled, id="h", at=4.0)
    assert decide_truth([settled, anew], agreed, 2, reopened_at=2.0).basis == "settled"
    imported = give_gold("supported")
    assert decide_truth([imported, settled], [], 2, reopened_at=2.0).ids == (imported.id,)
    with open_store(None) as store:
        case = make_case(TEXT, id="c")
        store.projects.save(Project(case.project_id, "Ours", 1.0, people_each=2))
        with store.writing():
            store.cases.add(case, [])
            store.queue.add(QueueItem("c", "project", None, 1.0, "", None, 0.0, "en", 0.0))
            record_gold(store, settled, case)
            assert store.truths.settled(case.project_id) == {case.id}
            reopen_case(store, case.id, "Lea", 2.0)
            for answer in agreed:
                record_correction(store, answer, case)
        truths = [store.truths.of_case(case.id), *store.truths.labels().values()]
        assert [truth.label for truth in truths] == ["supported"] * 2
        assert store.truths.settled(case.project_id) == set()
        assert store.golds.that_counts(case.id) is None


@pytest.mark.parametrize(
    ("marked", "expected"),
    [
        (["alpha"], ["alpha"]),
        (["alpha", "alpha"], ["alpha"]),
        (["alpha", "alpha bravo"], ["alpha"]),
        (["alpha", "bravo"], []),
        (["alpha", "alpha bravo", "alpha bravo carol"], ["alpha bravo"]),
        (["alpha", "bravo", "carol", "carol"], ["carol"]),
    ],
)
def test_words_count_that_both_of_two_or_half_of_more_marked(
    marked: list[str], expected: list[str]
) -> None:
    people = [say(str(n), "hallucinated", words) for n, words in enumerate(marked)]
    found = decide_truth([], [*people, say("B", "supported")] if len(people) > 1 else people)
    assert [span.text.strip() for span in found.spans] == expected
    assert all(TEXT[span.start : span.end] == span.text for span in found.spans)
    assert found.is_marked == bool(expected)


ANSWERS = st.lists(
    st.tuples(st.sampled_from([*LABELS, "unclear"]), st.lists(st.sampled_from(TEXT.split()))),
    max_size=7,
)


@given(ANSWERS, st.integers(1, 5), st.randoms())
def test_it_does_not_matter_in_which_order_people_answer(
    given_answers: list[tuple[Label, list[str]]], wanted: int, order: random.Random
) -> None:
    said = [say(str(n), label, *set(words)) for n, (label, words) in enumerate(given_answers)]
    shuffled = [replace(one, at=float(at)) for at, one in enumerate(order.sample(said, len(said)))]
    first, second = decide_truth([], said, wanted), decide_truth([], shuffled, wanted)
    assert (first.label, first.state) == (second.label, second.state)
    assert sorted(first.people) == sorted(second.people)
    assert {i for s in first.spans for i in range(s.start, s.end)} == {
        i for s in second.spans for i in range(s.start, s.end)
    }


ERROR_RATES = {"Ana": 0.1, "Bo": 0.2, "Cy": 0.3}
CASES = 200


@dataclass(frozen=True)
class Simulated:
    """The truth of each case, and who was wrong how often."""

    truth: dict[str, Label]
    wrong: dict[str, float]


def simulate(store: Store, seed: int, unclear: float) -> Simulated:
    """Three people answer 200 checked cases in any order, each wrong at a rate of their own.

    Of their wrong answers that share says `unclear`, the others the opposite.
    """
    chance = random.Random(seed)
    store.projects.save(Project("project", "Ours", 1.0, people_each=len(ERROR_RATES)))
    truth: dict[str, Label] = {}
    wrong: Counter[str] = Counter()
    with store.writing():
        for number in range(CASES):
            case = _add_checked_case(store, number)
            truth[case.id] = LABELS[chance.random() < 0.5]
            people = chance.sample(list(ERROR_RATES), len(ERROR_RATES))
            for at, person in enumerate(people):
                is_wrong = chance.random() < ERROR_RATES[person]
                wrong[person] += is_wrong
                label = LABELS[(truth[case.id] == "hallucinated") != is_wrong]
                label = "unclear" if is_wrong and chance.random() < unclear else label
                answer = Correction(
                    f"{case.id} {person}", f"r{number}", case.id, person, float(at), label
                )
                record_correction(store, answer, case)
    return Simulated(truth, {person: n / CASES for person, n in wrong.items()})


def _add_checked_case(store: Store, number: int) -> Case:
    case = make_case(f"Claim number {number}.", id=f"c{number}", project_id="project")
    store.cases.add(case, [])
    run = Run(f"r{number}", case.id, "project", Plan(), "queued", 1.0)
    store.runs.add(run, "me", 1.0)
    judgement = Judgement("Judge", "hallucinated", f"Verdict text {number}.", p=0.5)
    events: list[Event] = [RunStarted(1.0, case, Plan(), ()), JudgementReached(2.0, judgement, 0.1)]
    store.runs.append(run.id, "me", events)
    store.queue.add(QueueItem(case.id, "project", run.id, 1.0, "hallucinated", 0.5, 0.0, "en", 0.5))
    return case


def count_newest(store: Store, truth: dict[str, Label]) -> float:
    """The share of wrong labels where, as it once was, whoever answered last is right."""
    answers = sorted(store.corrections.newest_by_person("project"), key=lambda one: one.at)
    newest = {answer.case_id: answer.label for answer in answers}
    return share_of_wrong([one for one in newest.items() if one[1] != "unclear"], truth)


def share_of_wrong(found: Sequence[tuple[str, Label]], truth: dict[str, Label]) -> float:
    return sum(truth[case] != label for case, label in found) / len(found)


@pytest.mark.parametrize("unclear", [0.0, 1 / 3])
@pytest.mark.parametrize("seed", range(3))
def test_fewer_wrong_labels_reach_training_and_exports_than_anyone_gives(
    store: Store, seed: int, unclear: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The goal, less wrong than each person, is met by all rules but in one case by the default.

    Where a wrong answer is always the opposite, a majority of people who are wrong in 10, 20 and
    30 % of cases is expected to be wrong in 9.8 %: 11 to 12.5 % here, as is the best person. There
    only the mean of the three is beaten; unanimity, at the price of half of the cases, meets it.
    """
    simulated = simulate(store, seed, unclear)
    truth, rates = simulated.truth, simulated.wrong.values()
    before = count_newest(store, truth)
    lines = [f"seed {seed}, {unclear:.2f} unclear: wrong by person {simulated.wrong}"]
    lines.append(f"newest answer: {before:.3f} wrong")
    rules: tuple[TruthRule, ...] = ("majority", "unanimity", "settled")
    for rule in rules:
        project = Project("project", "Ours", 1.0, people_each=len(ERROR_RATES), truth_rule=rule)
        store.projects.save(project)
        rows = load_project_rows(store, Path("/nowhere"), project)
        labels = [(row.id, row.answer.label) for row in rows if row.answer]
        exported = [(i, label) for i, label in labels if label and label != "unclear"]
        disputed = [row for row in rows if row.truth.state == "disputed"]
        trained = [(row.case_id, row.label) for row in grow_holdout(store, 1.0).rows]
        assert sorted(trained) == sorted(exported)
        assert len(disputed) == count_disputed(store, "project", 10.0), "as Adjudicate lists them"
        assert not {row.id for row in disputed} & {case for case, _ in exported}
        assert all(row.answer is None for row in disputed)
        wrong = share_of_wrong(exported, truth) if exported else 0.0
        lines.append(
            f"{rule}: {wrong:.3f} of {len(exported)} wrong, {len(disputed)} disputed, "
            f"{len(rows) - len(labels) - len(disputed)} waiting"
        )
        is_even = rule == "majority" and not unclear
        assert wrong < (statistics.mean(rates) if is_even else min(rates)), rule
        assert wrong < before
    with capsys.disabled():
        sys.stdout.write("\n".join(["", *lines, ""]))


def test_an_answer_of_ones_own_replaces_the_older_one_and_undo_takes_it_back(store: Store) -> None:
    store.projects.save(Project("project", "Ours", 1.0))
    with store.writing():
        case = _add_checked_case(store, 0)
        for at, label in enumerate(LABELS):
            answer = Correction(f"k{at}", "r0", case.id, "Ana", float(at), label)
            record_correction(store, answer, case)
    assert store.truths.of_case(case.id).label == "hallucinated"
    with store.writing():
        undo = Correction("k9", "r0", case.id, "Ana", 9.0, "hallucinated", withdraws="k1")
        record_correction(store, undo, case)
    found = store.truths.labels("project")[case.id]
    assert (found.label, found.ids) == ("supported", ("k0",))
    assert store.truths.of_case("nowhere") == GroundTruth("waiting")


@pytest.mark.parametrize(("labels", "differ"), [("sh", 3), ("ssh", 2), ("shu", 3), ("hsss", 2)])
def test_items_of_older_homes_learn_whether_there_is_a_majority(
    store: Store, labels: str, differ: int
) -> None:
    """The first person answers twice; only the second answer counts."""
    store.projects.save(Project("project", "Ours", 1.0))
    words: dict[str, Label] = {"s": "supported", "h": "hallucinated", "u": "unclear"}
    with store.writing():
        case = _add_checked_case(store, 0)
        for at, label in enumerate(["u", *labels]):
            person = str(max(at, 1))
            answer = Correction(f"k{at}", "r0", case.id, person, float(at), words[label])
            store.corrections.add(answer, case.response)
        store.queue.update_answers(case.id, 2)
        store.db.execute(MIGRATION_SCRIPTS["m015_disputed"])
    item = store.queue.get(case.id)
    assert item is not None
    assert item.differ == differ == rate_difference(store.corrections.newest_of_case(case.id))


def test_an_agents_suggestion_is_never_true(store: Store) -> None:
    store.projects.save(Project("project", "Ours", 1.0))
    with store.writing():
        case = _add_checked_case(store, 0)
        store.golds.suggest(Suggestion("s", case.id, "agent", 1.0, "hallucinated"), case)
    assert store.truths.of_project("project") == {}


PEOPLE = ("Ana", "Bo", "Cy (imported)")
BY_PERSON = ("answer", "withdraw", "claim", "skip", "flag")
BY_LEAD = ("settle", "import", "give back", "ask anew", "wait")
STEPS = st.lists(
    st.tuples(
        st.sampled_from(BY_PERSON + BY_LEAD), st.sampled_from(PEOPLE), st.sampled_from(LABELS)
    ),
    max_size=14,
)


@given(STEPS, st.integers(1, 3), st.sampled_from(["majority", "unanimity", "settled"]))
@settings(max_examples=often(60, 3000), deadline=None)
def test_the_queue_and_the_truth_count_the_same_after_whatever_happened(
    steps: list[tuple[str, str, Label]], wanted: int, rule: TruthRule
) -> None:
    project = Project("project", "Ours", 1.0, people_each=wanted, truth_rule=rule)
    rules = replace(build_queue_rules(project), seconds=3.0)
    with open_store(None) as store:
        store.projects.save(project)
        with store.writing():
            case = _add_checked_case(store, 0)
        for at, (what, person, label) in enumerate(steps, 1):
            with store.writing():
                if what in BY_LEAD:
                    _do_as_lead(store, case, rules, what, label, float(at))
                else:
                    _do_as_person(store, case, rules, what, person, label, float(at))
            require_same_counts(store, project, case, rules, float(at))


def _do_as_person(
    store: Store, case: Case, rules: QueueRules, what: str, person: str, label: Label, at: float
) -> None:
    """One thing that a person does to the case, or an import of their answer, if they can."""
    own = [c for c in store.corrections.of_case(case.id) if c.author == person]
    mine = store.queue.of(case.id, person)
    is_member = person != PEOPLE[-1]
    if what == "answer" and (not is_member or not store.queue.is_full(case.id, person, 3, at)):
        answer = Correction(f"k{at}", "r0", case.id, person, at, label)
        record_correction(store, answer, case)
        if is_member:
            store.queue.end(case.id, person, "submitted", at)
    elif what == "withdraw" and own:
        undo = Correction(f"k{at}", "r0", case.id, person, at, label, withdraws=own[-1].id)
        record_correction(store, undo, case)
        if len(own) == 1:
            store.queue.again(case.id, person, rules, at)
    elif what == "claim" and is_member:
        store.queue.claim("project", person, rules, at)
    elif what in ("skip", "flag") and mine and mine.state == "claimed":
        store.queue.end(case.id, person, "skipped" if what == "skip" else "flagged", at)


def _do_as_lead(
    store: Store, case: Case, rules: QueueRules, what: str, label: Label, at: float
) -> None:
    """One thing that a lead does to the case, if it can be done."""
    item = store.queue.get(case.id)
    assert item is not None
    if what == "settle":
        record_gold(store, GoldAnswer(f"g{at}", case.id, "Lea", at, "adjudicated", label), case)
    elif what == "import":
        gold = GoldAnswer(f"g{at}", case.id, "Lea", at, "imported", label)
        store.golds.add(gold, case.response)
    elif what == "give back" and item.state != "open":
        reopen_case(store, case.id, "Lea", at)
    elif what == "ask anew":
        request_new_answers(store, case.id, "Lea", rules, at, why="")


def require_same_counts(
    store: Store, project: Project, case: Case, rules: QueueRules, now: float
) -> None:
    truth, item = store.truths.of_case(case.id), store.queue.get(case.id)
    assert item is not None
    states = get_args(ItemState)
    has_gold = truth.basis in ("settled", "gold")
    assert store.queue.count("project", ItemFilter(has_gold=True), states, now) == has_gold
    assert count_answers_and_cases(store, "project").golds == has_gold
    disputed = store.queue.count("project", build_disputed_filter(project), DISPUTED_STATES, now)
    assert disputed == (truth.state == "disputed")
    hands = {one.person: one for one in store.queue.people_of(case.id)}
    asked = {person for person, one in hands.items() if one.state == "claimed"}
    answered = {c.author for c in store.corrections.newest_of_case(case.id)} - asked
    held = {person for person in asked if hands[person].until > now}
    assert item.given == len(answered)
    counts = store.queue.counts("project", rules, now)
    assert counts["done"] == (item.state == "open" and len(answered) >= project.people_each)
    is_full = len(answered | held) >= project.people_each
    assert store.queue.is_full(case.id, "Zoe", project.people_each, now) == is_full
    is_free = item.state == "open" and not is_full
    assert store.queue.has_next("project", "Zoe", rules, now, ItemFilter()) == is_free
    with store.writing():
        try:
            store.queue.take(case.id, "Zoe", rules, now)
        except ConflictError:
            is_taken = False
        else:
            is_taken = True
            store.db.execute("DELETE FROM assignments WHERE person = 'Zoe'")
        assert is_taken == (item.state != "adjudicated" and not is_full)
