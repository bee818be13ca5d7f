"""What past verdicts tell of one like them, against figures counted by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.learning.track_record import (
    CONFIDENCE_THRESHOLDS,
    LEVEL_EDGES,
    MIN_CASES,
    MIN_RANDOM_VERDICTS,
    LevelRecord,
    TrackRecord,
    WilsonShare,
    build_risk_curve,
    compute_aurc,
    count_needed_verdicts,
    count_track_record,
    find_level,
    fit_all_limits,
    fit_limit,
    fit_limits,
    group_by_level,
    group_into_cells,
    renew_track_record,
    select_fitting_verdicts,
)
from core.review.adjudication import reopen_case
from core.review.queue_ranking import load_policy
from core.runtime.errors import InputError
from core.schema.events import JudgementReached, LabelPredicted
from core.schema.records import Judgement, Label, Project, Verdict
from core.schema.reviews import GoldAnswer
from core.store import Store
from core.store.answered_verdicts import AnsweredVerdict
from core.store.versions import ClassifierVersion, HoldoutSide, LearnedArtefact
from tests.learning.answered import OURS, add_run, draw, say, verdicts


@pytest.fixture
def ours(store: Store) -> Store:
    """A store with a project."""
    store.projects.save(OURS)
    return store


def of(store: Store) -> dict[str, AnsweredVerdict]:
    """The answered verdicts by run."""
    return {one.run_id: one for one in store.answered.of(OURS.id)}


def as_record(ones: list[AnsweredVerdict]) -> TrackRecord:
    return TrackRecord(group_into_cells(ones))


@pytest.mark.parametrize(
    ("right", "n", "low", "high"),
    [(87, 100, 0.790, 0.922), (0, 10, 0.0, 0.278), (10, 10, 0.722, 1.0), (0, 0, 0.0, 1.0)],
)
def test_the_interval_is_wilsons(right: int, n: int, low: float, high: float) -> None:
    assert WilsonShare(right, n).interval == pytest.approx((low, high), abs=0.001)


@given(st.floats(0.5, 1.0))
def test_each_confidence_has_one_level(confidence: float) -> None:
    level = find_level(confidence)
    assert LEVEL_EDGES[level] <= confidence <= LEVEL_EDGES[level + 1]
    assert confidence < LEVEL_EDGES[level + 1] or confidence == 1.0


def test_verdicts_at_a_level_are_counted_by_label_and_at_random_where_that_is_enough() -> None:
    high = [(0.85, n >= 3) for n in range(35)]  # 32 of 35 right
    low = [(0.15, n >= 1) for n in range(10)]  # 9 of 10 right
    kept = as_record(verdicts([*high, *low, *[(0.65, False)] * 4]))
    found = kept.standing("seed", "builtin", "hallucinated", 0.83)
    assert found == LevelRecord(0.8, 0.9, 45, WilsonShare(32, 35), "hallucinated")
    both = kept.standing("seed", "builtin", "supported", 0.83)
    assert both == LevelRecord(0.8, 0.9, 45, WilsonShare(41, 45)), (
        "ten supported ones are too few alone"
    )
    assert kept.standing("seed", "builtin", "hallucinated", 0.65) == LevelRecord(0.6, 0.7, 4)
    assert kept.standing("v1", "builtin", "hallucinated", 0.83) == LevelRecord(0.8, 0.9, 0)
    assert kept.standing("seed", "models", "hallucinated", 0.83) == LevelRecord(0.8, 0.9, 0)


def test_those_drawn_at_random_go_before_all_that_were_answered() -> None:
    drawn = verdicts([(0.85, n >= 10) for n in range(MIN_CASES)], is_random=True)
    chosen = [replace(one, text=f"x{one.text}")
              for one in verdicts([(0.85, True)] * 30)]  # fmt: skip
    found = as_record([*drawn, *chosen]).standing("seed", "builtin", "hallucinated", 0.85)
    assert (found.share, found.is_random) == (WilsonShare(20, 30), True)
    fewer = as_record([*drawn[1:], *chosen]).standing("seed", "builtin", "hallucinated", 0.85)
    assert (fewer.share, fewer.is_random) == (WilsonShare(50, 59), False)


def test_the_answer_that_counts_is_settled_else_imported_else_agreed(ours: Store) -> None:
    for name in ("settled", "said", "imported", "disputed", "unclear", "nobody"):
        add_run(ours, name, 0.9)
    add_run(ours, "no-verdict", None)
    say(ours, "settled", "hallucinated")
    say(ours, "said", "hallucinated")
    say(ours, "said", "supported", at=30.0)
    say(ours, "imported", "hallucinated")
    say(ours, "disputed", "hallucinated")
    say(ours, "disputed", "supported", at=30.0, who="Karl")
    say(ours, "unclear", "unclear")
    say(ours, "no-verdict", "supported")
    with ours.writing():
        for name, origin in (("settled", "adjudicated"), ("imported", "imported")):
            gold = GoldAnswer(f"g-{name}", f"c-{name}", "Lea", 1.0, origin, "supported")  # type: ignore[arg-type]
            ours.golds.add(gold, f"Claim {name}.")
    found = of(ours)
    assert {name: one.answer for name, one in found.items()} == dict.fromkeys(
        ("r-settled", "r-said", "r-imported"), "supported"
    )
    assert not any(one.is_right for one in found.values())
    assert [name for name, one in found.items() if one.is_random] == ["r-imported"]
    assert not found["r-imported"].is_drawn
    draw(ours, "imported")
    assert of(ours)["r-imported"].is_drawn


def test_who_was_given_it_at_random_is_known(ours: Store) -> None:
    for name in ("drawn", "chosen"):
        add_run(ours, name, 0.9)
        say(ours, name, "hallucinated")
    draw(ours, "drawn")
    assert {name: one.is_random for name, one in of(ours).items()} == {
        "r-drawn": True, "r-chosen": False
    }  # fmt: skip


def test_a_text_counts_once_for_each_version(ours: Store) -> None:
    add_run(ours, "old", 0.9, claim="The same.", at=10.0)
    add_run(ours, "new", 0.6, claim="The same.", at=11.0)
    add_run(ours, "other", 0.7, claim="The same.", at=9.0, version="v1")
    for name in ("old", "new", "other"):
        say(ours, name, "hallucinated")
    assert set(of(ours)) == {"r-new", "r-other"}


def test_a_version_proves_nothing_on_what_it_was_trained_on(ours: Store) -> None:
    for name in ("trained", "held", "fresh"):
        for version in ("v1", "seed"):
            add_run(ours, f"{name}-{version}", 0.9, claim=f"{name}.", version=version)
            say(ours, f"{name}-{version}", "hallucinated")
    texts = {one.run_id: one.text for one in of(ours).values()}
    with ours.writing():
        sides: dict[str, HoldoutSide] = {
            texts["r-trained-v1"]: "train",
            texts["r-held-v1"]: "holdout",
        }
        ours.versions.assign_sides(sides, 40.0)
        ours.versions.add(ClassifierVersion("v1", 50.0, "Mira", {}))
        ours.versions.assign_sides({texts["r-fresh-v1"]: "train"}, 60.0)
    assert set(of(ours)) == {
        "r-held-v1", "r-fresh-v1", "r-trained-seed", "r-held-seed", "r-fresh-seed"
    }  # fmt: skip


def test_the_active_version_counts_with_what_was_held_out_of_its_training(ours: Store) -> None:
    for name, p in (("a", 0.9), ("b", 0.2)):
        add_run(ours, name, p)
        say(ours, name, "supported")
    rows = [{"run_id": "r-a", "after": 0.3}, {"run_id": "r-b", "after": 0.4}]
    with ours.writing():
        ours.versions.add(ClassifierVersion("v1", 50.0, "Mira", {"holdout": {"rows": rows}}))
    assert {one.version for one in ours.answered.of(OURS.id)} == {"seed"}
    with ours.writing():
        ours.versions.activate("v1", 51.0, "Mira", "")
        add_run(ours, "b2", 0.1, case="c-b", version="v1", at=60.0)
    mine = {one.run_id: one.p for one in ours.answered.of(OURS.id) if one.version == "v1"}
    assert mine == {"r-a": 0.3, "r-b2": 0.1}, "what it said itself goes before"


def test_what_a_tool_decided_is_kept_apart(ours: Store) -> None:
    for name, tool in (("tool", "Length"), ("readers", "")):
        add_run(ours, name, 0.97)
        say(ours, name, "hallucinated")
        text = 'It said "by_tool":"Length" once.'
        judged = JudgementReached(12.0, Judgement("Judge", "hallucinated", text, by_tool=tool), 0.1)
        with ours.writing():
            ours.runs.append(f"r-{name}", "me", [judged])
    assert {name: one.by_tool for name, one in of(ours).items()} == {
        "r-tool": True, "r-readers": False
    }  # fmt: skip
    by_tool = count_track_record(ours, OURS.id).standing(
        "seed", "builtin", "hallucinated", 0.97, by_tool=True
    )
    assert by_tool.looked_at == 1


def test_other_projects_do_not_count(ours: Store) -> None:
    ours.projects.save(Project("theirs", "Theirs", 1.0))
    add_run(ours, "theirs", 0.9, project="theirs")
    say(ours, "theirs", "hallucinated")
    assert not of(ours)


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4), st.sampled_from("rcgbx")),
                max_size=12))  # fmt: skip
def test_what_is_renewed_is_what_is_counted_anew(steps: list[tuple[int, int, str]]) -> None:
    from core.store import open_store

    labels: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
    with open_store(None) as store:
        store.projects.save(OURS)
        before = count_track_record(store, OURS.id)
        runs: dict[int, int] = {}
        for at, (case, value, what) in enumerate(steps):
            is_given_back = what == "b" and case in runs
            if what == "r" or case not in runs:
                number = runs[case] = runs.get(case, 0) + 1
                name = f"{case}" if number == 1 else f"{case}-{number}"
                add_run(store, name, value / 4, case=f"c-{case}", claim=f"T{case % 2}", at=at)
            elif what == "c":
                say(store, str(case), labels[value % 3], at=float(at), who=f"P{at}")
            elif what == "g":
                with store.writing():
                    gold = GoldAnswer(
                        f"g{at}", f"c-{case}", "L", 1.0, "adjudicated", labels[value % 3]
                    )
                    store.golds.add(gold, store.cases.several([f"c-{case}"])[0].response)
            elif what == "b":
                reopen_case(store, f"c-{case}", "L", 2.0)
            now = renew_track_record(store, OURS.id, before)
            anew = count_track_record(store, OURS.id)
            assert now == (None if is_given_back else anew), "other old verdicts count then"
            before = anew


def test_a_run_that_was_taken_up_again_is_counted_from_the_beginning(ours: Store) -> None:
    add_run(ours, "a", None)
    before = count_track_record(ours, OURS.id)
    assert renew_track_record(ours, OURS.id, before) == before
    ours.db.execute("UPDATE runs SET finished_at = 99.0")
    assert renew_track_record(ours, OURS.id, before) is None


def test_bands_hold_all_verdicts() -> None:
    ones = verdicts([(0.5, True), (0.59, True), (0.4, False), (0.95, True), (0.0, True)])
    assert [len(band) for band in group_by_level(ones)] == [2, 1, 0, 0, 0, 2]


def test_an_old_verdict_scored_again_counts_for_the_version_that_scored_it(ours: Store) -> None:
    add_run(ours, "old", 0.6)
    say(ours, "old", "supported")
    before = count_track_record(ours, OURS.id)
    again = Verdict("supported", 0.1, 0.9, "words", classifier="v2")
    with ours.writing():
        ours.runs.append("r-old", None, [LabelPredicted(90.0, again, "Mira")])
        ours.learned.add(
            LearnedArtefact("rescoring", "", 90.0, "Mira", {"version": "v2", "runs": 1})
        )
    (one,) = of(ours).values()
    assert (one.version, one.p, one.is_right) == ("v2", 0.1, True)
    assert renew_track_record(ours, OURS.id, before) is None


def test_coverage_and_risk_are_those_counted_by_hand() -> None:
    ones = verdicts([(0.9, True), (0.2, False), (0.8, True), (0.6, False), (0.45, True)])
    assert [(p.threshold, p.answered, p.wrong) for p in build_risk_curve(ones)] == [
        (0.9, 0.2, WilsonShare(0, 1)),
        (0.8, 0.6, WilsonShare(1, 3)),
        (0.6, 0.8, WilsonShare(2, 4)),
        (0.55, 1.0, WilsonShare(2, 5)),
    ]
    # 0/1; two of 0.8 with one error between them: (0.5/2 + 1/3); 2/4; 2/5
    assert compute_aurc(ones) == pytest.approx((0 + 0.25 + 1 / 3 + 0.5 + 0.4) / 5)
    assert compute_aurc([]) == 0.0
    assert build_risk_curve([]) == []


def test_an_order_that_says_nothing_has_the_area_of_a_random_one() -> None:
    assert compute_aurc(verdicts([(0.8, n % 4 > 0) for n in range(40)])) == pytest.approx(0.25)


def test_of_very_many_confidences_a_curve_keeps_the_last() -> None:
    many = verdicts([(0.5 + n / 4000, True) for n in range(1000)])
    points = build_risk_curve(many)
    assert len(points) <= 200
    assert (points[-1].answered, points[-1].wrong.n) == (1.0, 1000)


@pytest.mark.parametrize(("wanted", "fewest"), [(0.05, 45), (0.1, 22), (0.2, 11)])
def test_nothing_is_promised_on_fewer_than_could_tell(wanted: float, fewest: int) -> None:
    assert count_needed_verdicts(wanted) == fewest
    ones = [(0.92, True)] * fewest
    assert fit_limit(verdicts(ones), wanted).threshold == 0.5
    few = fit_limit(verdicts(ones[1:]), wanted)
    assert (few.threshold, few.n, few.answered) == (None, fewest - 1, 0)


def test_the_threshold_is_the_lowest_that_holds_and_says_on_what() -> None:
    ones = [*[(0.96, True)] * 60, *[(0.2, True)] * 30, *[(0.2, False)] * 2, *[(0.6, False)] * 20]
    found = fit_limit(verdicts(ones), 0.1)
    assert (found.threshold, found.n, found.answered, found.wrong) == (0.65, 112, 92, 2)
    assert fit_limit(verdicts([(0.9, False)] * 100), 0.1).threshold is None


@pytest.mark.parametrize("wanted", [0.0, 1.0, 0.6, -0.1])
def test_a_rate_that_cannot_be_meant_is_refused(wanted: float) -> None:
    with pytest.raises(InputError, match="target error rate"):
        fit_limit(verdicts([(0.9, True)]), wanted)


def test_only_random_draws_are_taken_once_they_are_enough() -> None:
    drawn = verdicts([(0.9, True)] * MIN_RANDOM_VERDICTS, is_random=True)
    chosen = verdicts([(0.9, False)] * 50)
    assert select_fitting_verdicts([*drawn, *chosen]) == (drawn, True)
    assert select_fitting_verdicts([*drawn[1:], *chosen])[1] is False
    assert fit_limit([*drawn, *chosen], 0.05).threshold == 0.5


@pytest.mark.parametrize("skew", [(1.0, 1.0), (0.5, 2.0)])
def test_the_error_rate_stays_below_what_is_wanted_in_nine_of_ten_draws(
    skew: tuple[float, float],
) -> None:
    rng = np.random.default_rng(7)
    draws, wanted = 150, 0.15

    def confidences(n: int) -> np.ndarray:
        return 1.0 - 0.5 * rng.beta(*skew, n)

    world = confidences(200_000)  # calibrated: at confidence c a share c is right
    risks = {t: float((1.0 - world[world >= t]).mean()) for t in CONFIDENCE_THRESHOLDS}
    failed = answered = 0
    for _ in range(draws):
        c = confidences(250)
        right = rng.random(250) < c
        found = fit_limit(verdicts(zip(c.tolist(), right.tolist(), strict=True)), wanted)
        if found.threshold is not None:
            answered += 1
            failed += risks[found.threshold] > wanted
    assert failed <= 0.1 * draws
    assert answered >= 0.5 * draws, "a limit that never answers would promise anything"


def filled(store: Store, wanted: float | None) -> Project:
    """A project with thirty sure verdicts that were right, and ten unsure ones that were not."""
    project = Project(OURS.id, OURS.name, OURS.created_at, error_rate=wanted)
    store.projects.save(project)
    for n in range(40):
        add_run(store, str(n), 0.95 if n < 30 else 0.55)
        say(store, str(n), "hallucinated" if n < 30 else "supported")
    return project


def test_a_fit_is_kept_and_counts_only_for_the_rate_it_was_made_for(store: Store) -> None:
    project = filled(store, 0.1)
    policy = fit_limits(store, project, "Mira", 99.0)
    assert policy is not None
    (limit,) = policy.limits
    assert (limit.threshold, limit.n, limit.answered, limit.wrong) == (0.6, 40, 30, 0)
    kept = store.learned.in_use("selective", project.id)
    assert kept is not None
    assert (kept.author, kept.body["wanted"], kept.body["assurance"]) == ("Mira", 0.1, 0.9)
    assert load_policy(store, project) == policy
    stricter = Project(OURS.id, OURS.name, OURS.created_at, error_rate=0.05)
    assert load_policy(store, stricter).limits == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("is_changed", [False, True], ids=["intact", "changed in the file"])
def test_a_project_that_wants_no_rate_any_more_goes_back_to_none(
    store: Store, is_changed: bool
) -> None:
    project = filled(store, 0.1)
    fit_limits(store, project, "Mira", 99.0)
    assert max(i["teaches"] for i in store.db.query("SELECT teaches FROM items")) == 2.5
    if is_changed:
        store.db.execute("UPDATE learned SET body = replace(body, '0.6', '0.5')")
    without = Project(OURS.id, OURS.name, OURS.created_at)
    store.projects.save(without)
    assert fit_limits(store, without, "Mira", 100.0) is None
    assert store.learned.in_use("selective", project.id) is None
    assert {i["teaches"] for i in store.db.query("SELECT teaches FROM items")} == {0.5}


def test_all_projects_are_fitted_when_another_version_is_active(store: Store) -> None:
    project = filled(store, 0.1)
    rows = [{"run_id": f"r-{n}", "after": 0.9 if n < 30 else 0.3} for n in range(40)]
    with store.writing():
        store.versions.add(ClassifierVersion("v1", 50.0, "Mira", {"holdout": {"rows": rows}}))
        store.versions.activate("v1", 51.0, "Mira", "")
    fit_all_limits(store, "Karl", 99.0)
    policy = load_policy(store, project)
    assert policy is not None
    assert {limit.version: limit.threshold for limit in policy.limits} == {"seed": 0.6, "v1": 0.5}
