"""Versions side by side: what all people agree on, who marked what else, and how they differ."""

from __future__ import annotations

from dataclasses import replace

from core.review.adjudication import (
    AnswerDifference,
    AnswerVersion,
    build_answer_version,
    choose_gold_origin,
    find_difference,
    list_visible_comments,
    merge_answers,
    rate_difference,
    record_correction,
    record_gold,
    reopen_case,
    request_new_answers,
)
from core.review.work_time import PAUSE_SECONDS, measure_work_times
from core.schema.records import Member, Project, Span
from core.schema.reviews import (
    Assignment,
    Correction,
    GoldAnswer,
    QueueEvent,
    QueueItem,
    StatementLabel,
)
from core.store import open_store
from core.store.review_queue import QueueRules
from tests.fakes import make_case

RESPONSE = "The bridge is 512 m long and opened in 1932."
PROJECT = "p" * 32
LENGTH = Span(14, 17, "512", 1.0, "number_or_date", "Mira")
YEAR = Span(39, 43, "1932", 1.0, "number_or_date", "Karl")


def said(author: str, label: str = "hallucinated", *spans: Span, at: float = 1.0) -> Correction:
    return Correction(f"{author}{at}", None, "case", author, at, label, spans)  # type: ignore[arg-type]


def test_what_all_people_marked_is_agreed_and_the_rest_names_who_marked_it() -> None:
    mira = build_answer_version(said("Mira", "hallucinated", LENGTH))
    karl = build_answer_version(said("Karl", "hallucinated", replace(LENGTH, source="Karl"), YEAR))
    machine = AnswerVersion("the machine", "hallucinated", (YEAR,))
    whole = merge_answers([mira, karl, machine])
    assert [(s.text, s.source, round(s.p, 2)) for s in whole.agreed] == [("512", "Mira, Karl", 1.0)]
    assert [(s.text, s.source) for s in whole.open] == [("1932", "Karl, the machine")]


def test_share_of_a_mark_counts_people_only() -> None:
    mira = build_answer_version(said("Mira", "hallucinated", LENGTH))
    karl = build_answer_version(said("Karl", "supported"))
    machine = AnswerVersion("the machine", "hallucinated", (replace(YEAR, p=0.8),))
    gold = AnswerVersion("right answer so far", "hallucinated", (LENGTH,), is_right=True)
    whole = merge_answers([mira, karl, machine, gold])
    assert [(s.text, s.p) for s in whole.open] == [("512", 0.5), ("1932", 0.8)]


def test_a_gold_that_changes_nothing_corrects_nothing() -> None:
    before = GoldAnswer("g", "case", "a set", 1.0, "imported", "hallucinated", (LENGTH,))
    same = replace(before, id="h", author="Lea", spans=(replace(LENGTH, p=0.5, source="Karl"),))
    assert choose_gold_origin(same, None) == "adjudicated"
    assert choose_gold_origin(same, before) == "adjudicated"
    for changed in (
        replace(same, label="supported"),
        replace(same, spans=(YEAR,)),
        replace(same, corrected_answer="503 m"),
    ):
        assert choose_gold_origin(changed, before) == "corrected"


def test_whoever_answered_alone_agrees_with_nobody() -> None:
    mira = build_answer_version(said("Mira", "hallucinated", YEAR))
    for alone in (AnswerVersion("the machine", "hallucinated", (YEAR,)), mira):
        whole = merge_answers([alone])
        assert (whole.agreed, len(whole.open)) == ((), 1)
    assert merge_answers([]) == merge_answers([AnswerVersion("an agent", None)])


def test_one_category_or_another_is_no_agreement() -> None:
    other = replace(LENGTH, category="wrong_entity")
    whole = merge_answers([build_answer_version(said("A", "hallucinated", LENGTH)),
                    build_answer_version(said("B", "hallucinated", other))])  # fmt: skip
    assert whole.agreed == ()
    assert {s.category for s in whole.open} == {"number_or_date", "wrong_entity"}


def test_people_differ_in_labels_or_in_marks_or_not() -> None:
    one = said("A", "hallucinated", LENGTH)
    assert rate_difference([]) == rate_difference([one]) == 0
    assert rate_difference([one, said("B", "hallucinated", replace(LENGTH, source="B"))]) == 0
    assert rate_difference([one, said("B", "hallucinated")]) == 1
    assert rate_difference([one, said("B", "supported")]) == 3
    assert rate_difference([one, said("B", "supported"), said("C", "supported")]) == 2
    right, wrong, other = (
        replace(one, statements=(label,))
        for label in (
            StatementLabel(0, 29, "supported"),
            StatementLabel(0, 29, "hallucinated"),
            StatementLabel(0, 44, "hallucinated"),
        )
    )
    assert rate_difference([right, wrong]) == 1
    assert rate_difference([right, right]) == rate_difference([right, other]) == 0


def test_in_what_people_differ_is_named() -> None:
    one, contradicted = (
        said("A", "hallucinated", LENGTH),
        said("B", "hallucinated", replace(LENGTH, category="contradicted")),
    )
    assert find_difference([]) == AnswerDifference()
    assert find_difference([one, replace(one, author="B")]).kind == "nothing"
    only_kinds = find_difference([one, contradicted])
    assert (only_kinds.kind, only_kinds.kinds) == ("kinds", (("contradicted", "number_or_date"),))
    other_marks = find_difference([one, contradicted, said("C", "hallucinated", LENGTH, YEAR)])
    assert (other_marks.kind, other_marks.kinds) == ("marks", only_kinds.kinds)
    split = [replace(one, statements=(StatementLabel(0, 29, label),))
             for label in ("supported", "hallucinated")]  # fmt: skip
    assert find_difference(split).kind == "marks"
    labels = find_difference([one, said("B", "supported"), said("C", "supported")])
    assert (labels.kind, labels.has_other_marks) == ("labels", False)
    assert labels.labels == (("supported", 2), ("hallucinated", 1))
    assert labels.majority == "supported"
    tie = find_difference([one, said("B", "supported")])
    assert tie.majority is None
    assert find_difference([one]).majority is None, "one person is no majority"


def test_comments_of_others_are_shown_blind_only_after_answering() -> None:
    case = replace(make_case(RESPONSE), id="case", project_id=PROJECT)
    with open_store(None) as store, store.writing():
        store.projects.save(Project(PROJECT, "House", 1.0, is_blind=True))
        store.cases.add(case, ())
        for person, role in (("A", "annotator"), ("B", "annotator"), ("L", "lead")):
            store.projects.set_member(Member(PROJECT, person, role, 1.0))  # type: ignore[arg-type]
        for person, words in (("A", "which bridge?"), ("B", "the old one")):
            store.queue_events.add(QueueEvent("case", person, 1.0, "commented", words))
        store.queue_events.add(QueueEvent("case", "B", 2.0, "flagged", "two readings"))

        def seen(person: str, *, is_settling: bool = False) -> list[str]:
            shown = list_visible_comments(store, case, person, is_settling=is_settling)
            return [comment.person for comment in shown]

        assert (seen("A"), seen("B"), seen("L")) == (["A"], ["B"], [])
        assert seen("L", is_settling=True) == ["A", "B"]
        assert seen("A", is_settling=True) == ["A"], "only leads settle"
        record_correction(store, said("A", "hallucinated", LENGTH), case)
        assert (seen("A"), seen("B")) == (["A", "B"], ["B"])
        project = store.projects.get(PROJECT)
        assert project is not None
        store.projects.save(replace(project, is_blind=False))
        assert seen("B") == ["A", "B"]


def taken(person: str, start: float, end: float) -> Assignment:
    return Assignment("case", person, "submitted", "", start, 0.0, end)


def test_pauses_are_no_work() -> None:
    ida, karl = measure_work_times(
        [
            taken("Karl", 100.0, 100.0),
            taken("Ida", 100.0, 120.0),
            taken("Ida", 120.0, 150.0),
            taken("Ida", 160.0, 230.0),
            taken("Ida", 230.0, 231.0 + PAUSE_SECONDS),
        ]
    )
    assert (ida.person, ida.submitted, ida.median_seconds) == ("Ida", 4, 30.0)
    assert ida.items_per_hour == 90.0
    assert (karl.submitted, karl.median_seconds, karl.items_per_hour) == (1, None, None)


def test_no_second_counts_for_two_items() -> None:
    """The first was taken back after the second and third, which two tabs had open at once."""
    (ida,) = measure_work_times(
        [taken("Ida", 0.0, 100.0), taken("Ida", 30.0, 60.0), taken("Ida", 40.0, 70.0)]
    )
    assert (ida.submitted, sorted(ida.seconds)) == (3, [10.0, 30.0, 60.0])
    (ida,) = measure_work_times([taken("Ida", 0.0, 100.0)] * 2)
    assert (ida.submitted, ida.seconds) == (2, (100.0,))


def test_the_queue_knows_at_once_whether_people_differ_and_what_is_settled() -> None:
    case = replace(make_case(RESPONSE), id="case", project_id=PROJECT)
    with open_store(None) as store, store.writing():
        store.projects.save(Project(PROJECT, "House", 1.0))
        store.cases.add(case, ())
        store.queue.add(QueueItem("case", PROJECT, None, 1.0, "", None, 0.0, "en", 0.5))
        record_correction(store, said("A", "hallucinated", LENGTH), case)
        record_correction(store, said("B", "supported", at=2.0), case)
        item = store.queue.get("case")
        assert item is not None
        assert item.differ == 3, "no majority"
        record_correction(store, replace(said("B", "supported", at=3.0), withdraws="B2.0"), case)
        item = store.queue.get("case")
        assert item is not None
        assert item.differ == 0, "what was taken back counts no more"
        gold = GoldAnswer(
            "g", "case", "Lena", 4.0, "adjudicated", "hallucinated", (LENGTH,), took=("A1.0",)
        )
        record_gold(store, gold, case)
        item = store.queue.get("case")
        assert item is not None
        assert item.state == "adjudicated"
        reopen_case(store, "case", "Lena", 5.0)
        item = store.queue.get("case")
        assert item is not None
        assert item.state == "open"
        assert [h.did for h in store.queue_events.of_case("case")] == ["adjudicated", "reopened"]
        assert store.golds.of_case("case") == [gold]


def test_a_case_that_is_asked_about_again_comes_back_to_who_answered_it_with_why() -> None:
    rules = QueueRules(people=1, seconds=60.0)
    with open_store(None) as store:
        store.projects.save(Project(PROJECT, "Ours", 1.0))
        case = make_case(RESPONSE, id="case", project_id=PROJECT)
        store.cases.add(case, [])
        store.queue.add(QueueItem("case", PROJECT, None, 1.0, "hallucinated", 0.5, 0.0, "en", 0.5))
        with store.writing():
            store.queue.take("case", "Mira", rules, 2.0)
            record_correction(store, said("Mira"), case)
            store.queue.end("case", "Mira", "submitted", 3.0)
            assert store.queue.claim(PROJECT, "Karl", rules, 4.0) is None
            assert request_new_answers(store, "case", "Lea", rules, 5.0, why="it looks wrong") == 1
        mine = store.queue.claim(PROJECT, "Mira", rules, 6.0)
        assert mine is not None
        assert (mine.case_id, mine.why) == ("case", "it looks wrong")
        assert store.queue.claim(PROJECT, "Karl", rules, 6.0) is None, "Mira has it in hand"
        assert store.queue.claim(PROJECT, "Karl", rules, 70.0) is not None, "her time ran out"
        assert [c.author for c in store.corrections.of_case("case")] == ["Mira"], "it stands"
        last = store.queue_events.of_case("case")[-1]
        assert (last.person, last.did, last.words) == ("Lea", "reopened", "it looks wrong")


def test_a_settled_case_that_is_asked_about_again_is_open_to_all() -> None:
    with open_store(None) as store:
        store.projects.save(Project(PROJECT, "Ours", 1.0))
        case = make_case(RESPONSE, id="case", project_id=PROJECT)
        store.cases.add(case, [])
        store.queue.add(QueueItem("case", PROJECT, None, 1.0, "hallucinated", 0.5, 0.0, "en", 0.5))
        with store.writing():
            record_gold(
                store, GoldAnswer("g", "case", "Lea", 2.0, "adjudicated", "supported"), case
            )
            assert (
                request_new_answers(store, "case", "Lea", QueueRules(), 5.0, why="it looks wrong")
                == 0
            )
            found = store.queue.claim(PROJECT, "Karl", QueueRules(), 6.0)
        assert found is not None
        assert found.case_id == "case"
