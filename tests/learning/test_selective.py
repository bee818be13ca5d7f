"""Limits of confidence hold what they promise, and figures are those counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning.track_record import (
    ENOUGH_AT_RANDOM,
    THRESHOLDS,
    Share,
    area,
    curve,
    evidence,
    fewest_for,
    fit,
    fit_all,
    limit_of,
)
from core.review.queue_ranking import policy_of
from core.runtime.errors import InputError
from core.schema.records import Project
from core.store import Store
from core.store.versions import Version
from tests.learning.answered import OURS, add_run, say, verdicts


def test_coverage_and_risk_are_those_counted_by_hand() -> None:
    ones = verdicts([(0.9, True), (0.2, False), (0.8, True), (0.6, False), (0.45, True)])
    assert [(p.threshold, p.answered, p.wrong) for p in curve(ones)] == [
        (0.9, 0.2, Share(0, 1)),
        (0.8, 0.6, Share(1, 3)),
        (0.6, 0.8, Share(2, 4)),
        (0.55, 1.0, Share(2, 5)),
    ]
    # 0/1; two of 0.8 with one error between them: (0.5/2 + 1/3); 2/4; 2/5
    assert area(ones) == pytest.approx((0 + 0.25 + 1 / 3 + 0.5 + 0.4) / 5)
    assert area([]) == 0.0
    assert curve([]) == []


def test_an_order_that_says_nothing_has_the_area_of_a_random_one() -> None:
    assert area(verdicts([(0.8, n % 4 > 0) for n in range(40)])) == pytest.approx(0.25)


def test_of_very_many_confidences_a_curve_keeps_the_last() -> None:
    many = verdicts([(0.5 + n / 4000, True) for n in range(1000)])
    points = curve(many)
    assert len(points) <= 200
    assert (points[-1].answered, points[-1].wrong.n) == (1.0, 1000)


@pytest.mark.parametrize(("wanted", "fewest"), [(0.05, 45), (0.1, 22), (0.2, 11)])
def test_nothing_is_promised_on_fewer_than_could_tell(wanted: float, fewest: int) -> None:
    assert fewest_for(wanted) == fewest
    ones = [(0.92, True)] * fewest
    assert limit_of(verdicts(ones), wanted).threshold == 0.5
    few = limit_of(verdicts(ones[1:]), wanted)
    assert (few.threshold, few.n, few.answered) == (None, fewest - 1, 0)


def test_the_threshold_is_the_lowest_that_holds_and_says_on_what() -> None:
    ones = [*[(0.96, True)] * 60, *[(0.2, True)] * 30, *[(0.2, False)] * 2, *[(0.6, False)] * 20]
    found = limit_of(verdicts(ones), 0.1)
    assert (found.threshold, found.n, found.answered, found.wrong) == (0.65, 112, 92, 2)
    assert limit_of(verdicts([(0.9, False)] * 100), 0.1).threshold is None


@pytest.mark.parametrize("wanted", [0.0, 1.0, 0.6, -0.1])
def test_a_rate_that_cannot_be_meant_is_refused(wanted: float) -> None:
    with pytest.raises(InputError, match="wanted error rate"):
        limit_of(verdicts([(0.9, True)]), wanted)


def test_only_random_draws_are_taken_once_they_are_enough() -> None:
    drawn = verdicts([(0.9, True)] * ENOUGH_AT_RANDOM, is_random=True)
    chosen = verdicts([(0.9, False)] * 50)
    assert evidence([*drawn, *chosen]) == (drawn, True)
    assert evidence([*drawn[1:], *chosen])[1] is False
    assert limit_of([*drawn, *chosen], 0.05).threshold == 0.5


@pytest.mark.parametrize("skew", [(1.0, 1.0), (0.5, 2.0)])
def test_the_error_rate_stays_below_what_is_wanted_in_nine_of_ten_draws(
    skew: tuple[float, float],
) -> None:
    rng = np.random.default_rng(7)
    draws, wanted = 150, 0.15

    def confidences(n: int) -> np.ndarray:
        return 1.0 - 0.5 * rng.beta(*skew, n)

    world = confidences(200_000)  # calibrated: at confidence c a share c is right
    risks = {t: float((1.0 - world[world >= t]).mean()) for t in THRESHOLDS}
    failed = answered = 0
    for _ in range(draws):
        c = confidences(250)
        right = rng.random(250) < c
        found = limit_of(verdicts(zip(c.tolist(), right.tolist(), strict=True)), wanted)
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
    policy = fit(store, project, "Mira", 99.0)
    assert policy is not None
    (limit,) = policy.limits
    assert (limit.threshold, limit.n, limit.answered, limit.wrong) == (0.6, 40, 30, 0)
    kept = store.learned.in_use("selective", project.id)
    assert kept is not None
    assert (kept.author, kept.body["wanted"], kept.body["assurance"]) == ("Mira", 0.1, 0.9)
    assert policy_of(store, project) == policy
    stricter = Project(OURS.id, OURS.name, OURS.created_at, error_rate=0.05)
    assert policy_of(store, stricter).limits == ()  # type: ignore[union-attr]


@pytest.mark.parametrize("is_changed", [False, True], ids=["intact", "changed in the file"])
def test_a_project_that_wants_no_rate_any_more_goes_back_to_none(
    store: Store, is_changed: bool
) -> None:
    project = filled(store, 0.1)
    fit(store, project, "Mira", 99.0)
    assert max(i["teaches"] for i in store.db.query("SELECT teaches FROM items")) == 2.5
    if is_changed:
        store.db.execute("UPDATE learned SET body = replace(body, '0.6', '0.5')")
    without = Project(OURS.id, OURS.name, OURS.created_at)
    store.projects.save(without)
    assert fit(store, without, "Mira", 100.0) is None
    assert store.learned.in_use("selective", project.id) is None
    assert {i["teaches"] for i in store.db.query("SELECT teaches FROM items")} == {0.5}


def test_all_projects_are_fitted_when_another_version_is_active(store: Store) -> None:
    project = filled(store, 0.1)
    rows = [{"run_id": f"r-{n}", "after": 0.9 if n < 30 else 0.3} for n in range(40)]
    with store.writing():
        store.versions.add(Version("v1", 50.0, "Mira", {"holdout": {"rows": rows}}))
        store.versions.activate("v1", 51.0, "Mira", "")
    fit_all(store, "Karl", 99.0)
    policy = policy_of(store, project)
    assert policy is not None
    assert {limit.version: limit.threshold for limit in policy.limits} == {"seed": 0.6, "v1": 0.5}
