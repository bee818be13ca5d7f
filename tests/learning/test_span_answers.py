"""What people hold to be wrong, beside what the run over the case scored."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from core.learning.span_threshold import MIN_SCORED_CASES
from core.learning.span_tuning import (
    PanelMarks,
    SpanAnswer,
    build_member_body,
    find_best_members,
    group_scored_cases,
    load_span_answers,
    measure_panel_marks,
)
from core.pipeline.span_stage import (
    DEFAULT_VOTE_THRESHOLD,
    VotedRun,
    VotedSpan,
    rebuild_voted_runs,
    tally_votes,
)
from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    RunFinished,
    RunStarted,
    SoftLabelled,
    SpanProposed,
    SpanVoted,
)
from core.schema.records import (
    Case,
    Judgement,
    Label,
    PanelRule,
    Plan,
    RoleAssignment,
    Run,
    Verdict,
    new_id,
    parse_members,
    parse_thresholds,
)
from core.schema.reviews import GoldAnswer, GoldOrigin
from core.store import Store
from core.store.cases import compute_fingerprint
from tests.learning.marked import (
    MODEL,
    PROJECT,
    WORDS,
    add_case,
    add_run,
    marked_case,
    place,
    say,
    span,
)


def the_only(store: Store) -> SpanAnswer:
    (answer,) = load_span_answers(store, PROJECT.id)
    return answer


def gold(store: Store, name: str, origin: GoldOrigin, *numbers: int) -> None:
    case = store.cases.get(name)
    assert case
    spans = tuple(span(n) for n in numbers)
    label: Label = "hallucinated" if spans else "supported"
    with store.writing():
        kept = GoldAnswer(f"g-{origin}", name, "Lea", 4.0, origin, label, spans, reason="so")
        store.golds.add(kept, case.response)


def test_one_persons_marks(store: Store) -> None:
    marked_case(store, "a", [0.9, 0.1, 0.1, 0.1, 0.1], [0, 2])
    answer = the_only(store)
    assert (answer.how, answer.people, answer.places) == ("single", 1, (place(0), place(2)))
    assert answer.run
    assert answer.was_marked_by_machine


def test_half_of_the_people_are_enough_for_a_word(store: Store) -> None:
    case = add_case(store, "a")
    for author, numbers in (("A", (0, 1)), ("B", (1,)), ("C", (1, 2)), ("D", (1, 2))):
        say(store, case, *(span(n) for n in numbers), author=author, sure=0.7)
    answer = the_only(store)
    assert answer.places == (place(1), place(2))
    assert [s.start for s in answer.spans] == [6, 12]
    assert (answer.how, answer.sure) == ("several", 0.7)


def test_people_who_mark_alike_agree_and_nothing_wrong_is_an_answer(store: Store) -> None:
    for name, numbers in (("a", (0,)), ("b", ())):
        case = add_case(store, name)
        for author in "AB":
            say(store, case, *(span(n) for n in numbers), author=author)
    found = load_span_answers(store, PROJECT.id)
    assert [(a.how, a.places) for a in found] == [("agreed", (place(0),)), ("agreed", ())]


def test_who_only_gave_a_label_said_nothing_of_words(store: Store) -> None:
    case = add_case(store, "a")
    say(store, case, is_unmarked=False)
    assert load_span_answers(store, PROJECT.id) == []
    say(store, case, label="supported", is_unmarked=False, author="B")
    assert load_span_answers(store, PROJECT.id) == [], "they do not agree on the label"
    say(store, case, span(1), author="C")
    assert the_only(store).places == (place(1),)


def test_who_marks_other_words_agrees_on_none(store: Store) -> None:
    case = add_case(store, "a")
    for author, numbers in (("A", (0, 1)), ("B", (1, 2))):
        say(store, case, *(span(n) for n in numbers), author=author)
    assert the_only(store).places == (place(1),), "both of two"
    say(store, case, span(4), author="A")
    assert load_span_answers(store, PROJECT.id) == []


@pytest.mark.parametrize(("origin", "place_number"), [("imported", 3), ("adjudicated", 3)])
def test_a_right_answer_counts_before_people(
    store: Store, origin: GoldOrigin, place_number: int
) -> None:
    say(store, add_case(store, "a"), span(1))
    gold(store, "a", origin, 3)
    assert the_only(store).places == (place(place_number),)


def test_a_file_counts_where_nobody_said_anything(store: Store) -> None:
    add_case(store, "a")
    gold(store, "a", "imported", 2)
    assert (the_only(store).how, the_only(store).places) == ("gold", (place(2),))


def test_held_out_cases_teach_nothing(store: Store) -> None:
    case = marked_case(store, "a", [0.9] * 5, [0])
    assert load_span_answers(store, PROJECT.id)
    with store.writing():
        store.versions.assign_sides(
            {compute_fingerprint(case.response, case.question): "holdout"}, 5.0
        )
    assert load_span_answers(store, PROJECT.id) == []


def test_words_are_cut_into_pieces_as_the_engine_marks_them(store: Store) -> None:
    case = add_case(store, "a", WORDS.replace(" delta", "\ndelta"))
    add_run(store, case, [0.9, 0.6, 0.4, 0.7, 0.2])
    say(store, case, span(0), span(1))
    (scored,) = group_scored_cases([the_only(store)])["reader"]
    assert sorted(scored.pieces) == sorted(
        [
            (0.9, 5, 5),
            (0.6, 5, 5),
            (0.6, 1, 0),
            (0.4, 1, 0),
            (0.4, 5, 0),
            (0.7, 5, 0),  # a line ends before it
            (0.2, 1, 0),
            (0.2, 5, 0),
        ]
    )
    assert (scored.gold, scored.length, scored.language) == (10, 29, "en")


def test_where_a_statements_wrong_words_are_named_no_others_are_marked(store: Store) -> None:
    case = add_case(store, "a")
    add_run(store, case, [0.9, 0.6, 0.4, 0.7, 0.2], [(span(0, source="Ada", p=0.8), True)])
    say(store, case, span(0), span(1))
    (scored,) = group_scored_cases([the_only(store)])["reader"]
    assert scored.pieces == ((1.0, 5, 5),), "its own score is no matter"


def test_a_vote_scores_its_span(store: Store) -> None:
    case = add_case(store, "a")
    add_run(store, case, rulings=[(span(0, p=0.9), True), (span(2, p=0.3), False)], role=MODEL)
    say(store, case, span(0))
    found = group_scored_cases([the_only(store)])
    assert found["reader"] == []
    assert [one.pieces for one in found["votes"]] == [((0.9, 5, 5), (0.3, 5, 0))]


@pytest.mark.parametrize("label", ["supported", "unclear"])
def test_where_the_machine_marks_nothing_no_threshold_is_learned(store: Store, label: str) -> None:
    case = add_case(store, "a")
    add_run(store, case, [0.9] * 5, label=label)  # type: ignore[arg-type]
    say(store, case, span(0))
    assert the_only(store).run_id
    assert the_only(store).run is None, "its events need not be read"
    assert not any(group_scored_cases(load_span_answers(store, PROJECT.id)).values())


def test_a_case_without_a_run_still_counts_as_marked(store: Store) -> None:
    say(store, add_case(store, "a"), span(0))
    assert the_only(store).run is None
    assert not any(group_scored_cases([the_only(store)]).values())


@pytest.mark.parametrize(
    ("first", "then"), [("hallucinated", "supported"), ("supported", "hallucinated")]
)
def test_a_new_score_changes_nothing_about_which_words_could_be_marked(
    store: Store, first: Label, then: Label
) -> None:
    case = add_case(store, "a")
    run_id = add_run(store, case, [0.9] * 5, label=first)
    say(store, case, span(0))
    before = the_only(store).was_marked_by_machine
    with store.writing():
        scored = Verdict(then, 0.5, 0.5, "", classifier="v2")
        judged = Judgement("judge", "hallucinated", "So it is.")
        store.db.execute(
            "UPDATE events SET payload = json_set(payload, '$.judgement', json(?)) "
            "WHERE kind = 'judgement_reached'",
            [msgspec.json.encode(judged).decode()],
        )
        store.runs.append(run_id, None, [LabelPredicted(9.0, scored, "Nora")])
    assert the_only(store).was_marked_by_machine is before is (first == "hallucinated")


MEMBERS = ("good", "bad")
ROLES = tuple(
    RoleAssignment(f"span panel {n}", name, False, "", "") for n, name in enumerate(MEMBERS, 1)
)


def panel_run(store: Store, case: Case, good: int, bad: int, p: float = 0.9) -> None:
    """A finished run in which each of two members marked one word and the other voted p on it."""
    response = case.response
    runs = tuple(
        VotedRun(name, (VotedSpan(span(word, response, source=name), ((other, p),)),))
        for name, other, word in (("good", "bad", good), ("bad", "good", bad))
    )
    found = tally_votes(runs, PanelRule(), response, case.language)
    verdict = Verdict("hallucinated", 0.9, 0.9, "")
    told: list[Event] = [
        RunStarted(1.0, case, Plan(), ROLES),
        JudgementReached(1.0, Judgement("judge", "hallucinated", "So."), 0.1),
        LabelPredicted(1.0, verdict),
        *(SpanProposed(1.0, s.span) for run in runs for s in run.spans),
        *(
            SpanVoted(1.0, run.extractor, name, s.span, vote, "")
            for run in runs
            for s in run.spans
            for name, vote in s.votes
        ),
        SoftLabelled(1.0, found.labels, DEFAULT_VOTE_THRESHOLD, MEMBERS),
        RunFinished(2.0, verdict, 1.0),
    ]
    run = Run(new_id(), case.id, case.project_id, Plan(), "queued", 1.0)
    with store.writing():
        store.runs.add(run, "test", 1.0)
        store.runs.append(run.id, None, told)


def marked(number: int, good: float, bad: float, vote: float, language: str = "en") -> PanelMarks:
    return PanelMarks(f"c{number}", f"g{number}", language, {"good": good, "bad": bad}, vote)


def test_a_panels_runs_are_the_same_from_its_trace(store: Store) -> None:
    case = add_case(store, "one")
    panel_run(store, case, good=1, bad=3)
    say(store, case, span(1))
    (answer,) = load_span_answers(store, "p")
    assert answer.run is not None
    runs = rebuild_voted_runs(answer.run)
    assert [(r.extractor, [s.span.start for s in r.spans]) for r in runs] == [
        ("good", [6]), ("bad", [18]),
    ]  # fmt: skip
    assert [dict(s.votes) for r in runs for s in r.spans] == [{"bad": 0.9}, {"good": 0.9}]


def test_each_members_run_is_held_against_what_people_marked(store: Store) -> None:
    for n in range(3):
        case = add_case(store, f"c{n}")
        panel_run(store, case, good=1, bad=3)
        say(store, case, span(1))
    found = measure_panel_marks(load_span_answers(store, "p"))
    assert [(one.by_member, one.vote) for one in found] == [({"good": 1.0, "bad": 0.0}, 0.0)] * 3
    assert find_best_members(found) == []  # too few


def test_the_panels_votes_have_a_threshold_of_their_own(store: Store) -> None:
    case = add_case(store, "one")
    panel_run(store, case, good=1, bad=1, p=0.6)
    say(store, case, span(1))
    scored = group_scored_cases(load_span_answers(store, "p"))
    assert {kind: len(cases) for kind, cases in scored.items()} == {
        "reader": 0, "votes": 0, "panel": 1, "weighted": 0,
    }  # fmt: skip
    assert scored["panel"][0].pieces == ((0.6, 5, 5),)
    told = parse_thresholds(3, {"panel": {"by_language": {"en": 0.5}, "otherwise": 0.6}})
    assert told.panel.at("en-GB") == 0.5
    assert told.panel.at("de") == 0.6
    assert not told.weighted.words


def test_a_member_that_is_always_closer_decides_alone_in_its_language() -> None:
    cases = [marked(n, 0.9, 0.1, 0.4) for n in range(20)]
    cases += [marked(100 + n, 0.3, 0.3, 0.3, "de") for n in range(20)]
    german, english = find_best_members(cases)
    assert (english.language, english.member, english.n) == ("en", "good", 20)
    assert english.is_better
    assert english.gain.value == pytest.approx(0.5)
    assert not german.is_better
    body = build_member_body([german, english], cases, [])
    assert parse_members(body) == (("en", "good"),)
    assert len(body["cases"]) == 40
    assert [one["language"] for one in body["figures"]] == ["de", "en"]


def test_a_language_needs_enough_cases_and_nobody_is_chosen_for_none() -> None:
    few = [marked(n, 0.9, 0.1, 0.4) for n in range(MIN_SCORED_CASES - 1)]
    assert find_best_members(few) == []
    assert find_best_members([marked(n, 0.9, 0.1, 0.4, "und") for n in range(50)]) == []


def test_the_luckiest_of_equal_members_is_hardly_ever_called_better() -> None:
    random = np.random.default_rng(0)
    called = 0
    for _ in range(40):
        ious = random.uniform(0, 1, size=(30, 3))
        cases = [marked(n, a, b, vote) for n, (a, b, vote) in enumerate(ious.tolist())]
        called += sum(one.is_better for one in find_best_members(cases))
    assert called <= 4
