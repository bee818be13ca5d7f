"""Retrain as a lead uses it: what there is, what looks wrong, training, two versions compared."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from components.app import state as kept_results
from components.learn.retrain import compute_progress, format_progress
from components.learn.versions import (
    build_metric_rows,
    classify_change,
    compute_trivial_metrics,
    format_card_details,
    format_ece_chance,
    format_holdout_summary,
)
from core.learning.data_quality import LabelIssue, LabelIssues
from core.learning.retrain import RescoringResult
from core.learning.training_set import attribute_rows
from core.review.people import ensure_project
from core.review.queue_ranking import enqueue_run
from core.store import open_store
from core.store.review_queue import QueueRules
from core.store.versions import ClassifierVersion, TrainingJob
from tests.pages.conftest import OpenApp
from tests.pages.driving import Site, keys, member, press, run_of, told
from tests.pages.test_review_pages import say

PAGE = "pages/learn/retrain.py"
BEFORE = {
    "n": 4, "accuracy": 0.75, "balanced_accuracy": 0.75, "f1": 0.75, "brier": 0.2,
    "true_hallucinated": 2, "missed_hallucinated": 0, "false_alarms": 1, "true_supported": 1,
    "always_hallucinated": 0.5,
}  # fmt: skip
AFTER = BEFORE | {"accuracy": 1.0, "balanced_accuracy": 1.0, "brier": 0.1}
ROWS = [
    {"run_id": "r1", "claim": "<b>x</b>", "label": "supported", "before": 0.6, "after": 0.2},
    {"run_id": "r2", "claim": "y", "label": "hallucinated", "before": 0.9, "after": 0.8},
]
CARD: dict[str, Any] = {
    "author": "Mira",
    "trained_on": {"corrections": ["k"] * 12, "seed_texts": 40, "languages": {"en": 12}},
    "compared_with": "seed",
    "holdout": {"before": BEFORE, "after": AFTER, "rows": ROWS},
    "packages": {"setfit": "1.2.0"},
    "seconds": 50.0,
}
BINS = [{"low": 0.5, "high": 0.75, "n": 30, "right": 20}, {"low": 0.75, "high": 1.0, "n": 10,
        "right": 9}]  # fmt: skip
RICH = CARD | {
    "losses": [[5, 0.4], [10, 0.2]],
    "holdout": CARD["holdout"]
    | {
        "before": BEFORE | {"n": 40},
        "reliability": {"before": BINS, "after": BINS},
        "difference": {"value": 0.25, "low": -0.1, "high": 0.5},
        "after": AFTER | {"n": 40, "ece": 0.3, "ece_null": {"mean": 0.1, "low": 0.0, "high": 0.2}},
    },
}


def add_version(home: Path, name: str, card: dict[str, Any], at: float = 1.0) -> None:
    with open_store(home) as store:
        store.versions.add(ClassifierVersion(name, at, "Mira", card))


def test_what_is_missing_is_said_and_nothing_starts(app: OpenApp, project_id: str) -> None:
    at = app(PAGE)
    assert at.button(key="retrain.start").disabled
    assert any("8 more needed" in str(metric.delta) for metric in at.metric)
    assert "8 more hallucinated and 8 more supported cases are needed" in at.info[0].value


def test_where_labels_come_from_is_counted(site: Site, run_id: str) -> None:
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "hallucinated", 1.0)
    at = site.open(PAGE)
    assert "Of these 1 correction, 0 are trained on, 0 held out, 1 new" in told(at)
    people = next(table.value for table in at.dataframe if "Person" in table.value)
    assert people.to_dict("records") == [{"Person": "Mira", "Hallucinated": 1, "Supported": 0}]


def test_too_few_cases_are_said_where_wrong_labels_and_more_cases_are_asked_about(
    site: Site, run_id: str
) -> None:
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "hallucinated", 1.0)
    at = site.open(PAGE)
    press(at, "retrain.doubts.look")
    assert "Too few to say" in told(at)
    press(at, "retrain.curve.count")
    assert "Too few to say" in told(at)
    assert not at.exception


@pytest.fixture
def doubted(app: OpenApp, run_id: str, home: Path) -> str:
    """The case of a run whose label looks wrong, which Karl answered in the queue."""
    with open_store(home) as store:
        enqueue_run(store, run_id, 9.0)
        run = run_of(store, run_id)
        say(store, run_id, "Karl", "supported", 1.0)
        with store.writing():
            store.queue.take(run.case_id, "Karl", QueueRules(), 2.0)
            store.queue.end(run.case_id, "Karl", "submitted", 3.0)
        (one,) = attribute_rows(store)
    mark = kept_results.get_answers_mark()
    found = LabelIssues((LabelIssue(one, "hallucinated", 0.04),), 30, 30)
    kept_results.store_result("label doubts", found, mark, time.time())
    return run.case_id


def test_a_label_that_looks_wrong_goes_back_to_who_gave_it(site: Site, doubted: str) -> None:
    at = site.open(PAGE)
    assert "retrain.doubts.look" not in keys(at), "it is kept"
    assert "the model gives that 4% and thinks **hallucinated**" in told(at)
    press(at, f"retrain.doubts.ask.{doubted}")
    assert "with 1 person who answered it" in at.toast[0].value
    assert "back in the queue" in told(at)
    with open_store(site.home) as store:
        mine = store.queue.of(doubted, "Karl")
        assert mine is not None
        assert (mine.state, mine.why) == (
            "claimed", "its label looks wrong: others like it are hallucinated"
        )  # fmt: skip
        assert store.queue_events.of_case(doubted)[-1].person == "Mira"


def test_only_a_lead_asks_people_again(site: Site, doubted: str) -> None:
    with open_store(site.home) as store:
        project_id = ensure_project(store, "Mira", 1.0).id
    member(site.home, project_id, "Karl", "admin")
    at = site.open(PAGE)
    assert f"retrain.doubts.ask.{doubted}" in keys(at)
    member(site.home, project_id, "Mira", "annotator")  # while her page is open
    press(at, f"retrain.doubts.ask.{doubted}")
    assert "takes the role lead" in told(at)
    assert f"retrain.doubts.ask.{doubted}" not in keys(at)
    with open_store(site.home) as store:
        assert store.queue.of(doubted, "Karl").state == "submitted"  # type: ignore[union-attr]


def test_what_was_found_is_asked_for_anew_only_after_another_answer(
    site: Site, doubted: str, run_id: str
) -> None:
    with open_store(site.home) as store:
        say(store, run_id, "Ida", "supported", 4.0)
    at = site.open(PAGE)
    assert at.button(key="retrain.doubts.look").label == "Look again: answers came since"
    assert "thinks **hallucinated**" in told(at), "what was found is still there"


def test_a_failed_training_says_why_and_all_are_listed(site: Site, project_id: str) -> None:
    now = time.time()
    with open_store(site.home) as store:
        for name, at_, status in (("t1", now - 90, "finished"), ("t2", now - 9, "failed")):
            training = TrainingJob(name, "Mira", at_, "running", {}, None, "", None)
            store.versions.start_training(training, at_, 30)
            store.versions.end_training(name, status, at_ + 50, message="The disk is full.")  # type: ignore[arg-type]
    at = site.open(PAGE)
    assert "The disk is full" in told(at)
    past = next(table.value for table in at.dataframe if "Outcome" in table.value)
    assert list(past["Outcome"]) == ["failed", "finished"]
    assert "It takes about 50 s on this computer, as the last one took 50 s" in told(at)
    number = at.number_input(key="retrain.options.steps")
    number.set_value(4 * int(number.value or 0)).run()
    words = re.search(r"It takes about (\d+) s on this computer", told(at))
    assert words is None or int(words[1]) > 50, "more steps take longer"


def test_progress_is_told_with_steps_and_time_left(site: Site, project_id: str) -> None:
    now = time.time()
    progress = {
        "stage": "Fine-tuning", "stage_number": 5, "stages": 9, "step": 10, "steps": 40,
        "loss": 0.25, "losses": [[5, 0.4], [10, 0.25]], "eta": 21.0,
    }  # fmt: skip
    with open_store(site.home) as store:
        store.versions.start_training(
            TrainingJob("t", "Mira", now, "running", {}, None, "", None), now, 30
        )
        store.versions.report_training("t", progress, now, 1)
    at = site.open(PAGE)
    assert at.button(key="retrain.cancel")
    assert len(at.get("plotly_chart")) == 1
    assert "retrain.start" not in keys(at)
    assert format_progress(progress, 12.0) == (
        "5 of 9: Fine\\-tuning, step 10 of 40 · loss 0.250 · 12 s so far · "
        "about 21 s left in this stage"
    )
    assert compute_progress(progress) == pytest.approx(4.25 / 9)
    assert format_progress({}, 0.5).startswith("Starting the training process")


def test_a_version_stands_beside_the_one_before(site: Site, project_id: str) -> None:
    add_version(site.home, "v1", CARD)
    at = site.open(PAGE)
    table = next(t.value for t in at.dataframe if "Always hallucinated" in t.value)
    figures = {row[""]: row for row in table.to_dict("records")}
    assert figures["Accuracy"] == {
        "": "Accuracy", "seed": "0.75", "v1": "1.00", "Difference": "+0.25 better",
        "Always hallucinated": "0.50",
    }  # fmt: skip
    assert figures["F1 (hallucinated)"]["Difference"] == "no change"
    assert figures["Brier score (lower is better)"]["Difference"] == "-0.10 better"
    assert "Too few to be sure of any difference" in told(at)
    assert len(at.get("plotly_chart")) == 2, "an old card has neither losses nor bins"
    changed = next(t.value for t in at.dataframe if "Claim" in t.value)
    assert list(changed["Claim"]) == ["<b>x</b>"], "what it got right comes first"
    press(at, "retrain.activate.v1")
    assert "none that can be read" in told(at)


def test_a_rich_card_shows_calibration_and_losses(site: Site, project_id: str) -> None:
    add_version(site.home, "v1", RICH)
    at = site.open(PAGE)
    assert len(at.get("plotly_chart")) == 4
    few = [entry | {"n": 9} for entry in BINS]
    held = {**RICH["holdout"], "reliability": {"before": few, "after": few}}
    add_version(site.home, "v2", RICH | {"holdout": held}, 2.0)
    thin = site.open(PAGE)
    assert len(thin.get("plotly_chart")) == 3
    assert "no level has 30 held-out verdicts" in told(thin)
    assert "it may be chance" in told(at)
    assert "this one is beyond that" in told(at)
    assert "need both" not in told(at)
    one_label = AFTER | {"balanced_accuracy": None}
    held = CARD["holdout"] | {"before": one_label, "after": one_label}
    add_version(site.home, "v3", CARD | {"holdout": held}, 3.0)
    alone = site.open(PAGE)
    assert "have one label: balanced accuracy and AUROC need both" in told(alone)
    table = next(t.value for t in alone.dataframe if "Always hallucinated" in t.value)
    assert "Balanced accuracy" not in list(table[""])


def test_any_two_versions_have_an_address(site: Site, project_id: str) -> None:
    add_version(site.home, "v1", CARD, 1.0)
    add_version(site.home, "v2", CARD | {"compared_with": "v1"}, 2.0)
    at = site.open(PAGE)
    assert (at.query_params["version"], at.query_params["beside"]) == ("v2", "v1")
    at = site.open(PAGE, version="v1", beside="seed")
    assert at.selectbox(key="retrain.pair.version").value == "v1"
    assert at.selectbox(key="retrain.pair.beside").value == "seed"
    at = site.open(PAGE, version="gone", beside="nothing")
    assert at.selectbox(key="retrain.pair.version").value == "v2"


def test_two_versions_are_compared_anew_on_what_is_held_out_now(
    site: Site, project_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_version(site.home, "v1", CARD, 1.0)
    add_version(site.home, "v2", CARD, 2.0)
    found = CARD["holdout"] | {"after": AFTER | {"accuracy": 0.25}}
    compared = Mock(return_value=found)
    monkeypatch.setattr("components.learn.versions.compare_versions", compared)
    at = site.open(PAGE, version="v2", beside="v1")
    assert not at.get("plotly_chart"), "they were never measured beside each other"
    press(at, "retrain.pair.compare")
    table = next(t.value for t in at.dataframe if "Always hallucinated" in t.value)
    assert table.to_dict("records")[1]["v2"] == "0.25"
    assert compared.call_args.args[2:] == ("v1", "v2")
    assert "retrain.pair.compare" not in keys(at), "it is kept"


def test_a_reason_typed_just_before_the_click_counts(site: Site, project_id: str) -> None:
    held = {"before": {"n": 4, "accuracy": 0.75}, "after": {"n": 4, "accuracy": 0.5}, "rows": []}
    add_version(site.home, "v1", {"holdout": held})
    at = site.open(PAGE)
    press(at, "retrain.activate.v1")
    assert "takes a reason" in told(at)
    at.text_input(key="retrain.activate.v1.reason").set_value("It knows our terms.")
    press(at, "retrain.activate.v1")
    (error,) = at.error
    assert "takes a reason" not in error.value, "it is refused for its missing files only"


def test_a_version_in_the_list_stands_beside_the_same_figure_of_the_trivial_answer() -> None:
    new = {"balanced_accuracy": 0.66, "n": 15, "always_hallucinated": 0.47}
    words = format_holdout_summary({"before": {"balanced_accuracy": 0.6}, "after": new}).replace(
        "\\", ""
    )
    assert words == (
        "balanced accuracy 0.66 (0.60 before, 0.50 for always hallucinated), "
        "on 15 held-out verdicts"
    )
    assert format_holdout_summary({"after": {"accuracy": 0.5, "n": 1}}).replace("\\", "") == (
        "accuracy 0.50, on 1 held-out verdict"
    )


def test_figures_stand_beside_the_trivial_answer_and_chance() -> None:
    assert compute_trivial_metrics({"always_hallucinated": 0.5})["f1"] == pytest.approx(2 / 3)
    assert compute_trivial_metrics({}) == {}
    (row,) = build_metric_rows({"ece": 0.1}, {"ece": 0.3}, "a", "b")
    assert row["Difference"] == "+0.20 worse"
    null = {"mean": 0.1, "low": 0.0, "high": 0.2}
    assert "within that" in format_ece_chance({"n": 9, "ece": 0.15, "ece_null": null})
    assert format_ece_chance({"n": 9, "ece": 0.15}) == ""


def test_a_row_goes_one_of_four_ways() -> None:
    row = {"label": "hallucinated", "before": 0.2, "after": 0.7}
    assert classify_change(row) == "got right"
    assert classify_change(row | {"before": 0.9, "after": 0.1}) == "no longer right"
    assert classify_change(row | {"label": "supported", "after": 0.1}) == "right as before"
    assert classify_change(row | {"after": 0.5, "before": 0.5}) == "right as before"
    assert classify_change(row | {"after": 0.1}) == "not right, as before"
    unclear = row | {"verdicts": ["supported", "unclear"]}
    assert classify_change(unclear) == "not right, as before"
    assert classify_change(unclear | {"label": "supported"}) == "no longer right"


def test_details_are_text_whatever_the_card_holds() -> None:
    lines = format_card_details({"encoder": "![x](http://evil.example)", "options": {"pairs": 4}})
    assert "**Options**: pairs 4" in lines
    assert not any("](http" in line for line in lines)


def test_nothing_is_looked_for_or_counted_on_a_rerun(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked, counted = Mock(), Mock()
    monkeypatch.setattr("components.learn.retrain.find_doubtful_labels", looked)
    monkeypatch.setattr("components.learn.retrain.measure_learning_curve", counted)
    at = site.open(PAGE)
    at.run()
    assert not looked.called
    assert not counted.called


def test_old_runs_are_scored_again_only_once_somebody_has_agreed(site: Site, run_id: str) -> None:
    with open_store(site.home) as store:
        before = store.runs.last_seq(run_id)
    found = RescoringResult("seed", 1, 1)
    at = site.open(PAGE)
    press(at, "retrain.rescore")
    assert "Every run's verdict is by **seed** already" in told(at)
    with pytest.MonkeyPatch.context() as patch:
        done = Mock(return_value=found)
        patch.setattr("components.learn.versions.rescore_runs", done)
        patch.setattr("components.learn.versions.list_waiting_runs", lambda *_: [run_id])
        press(at, "retrain.rescore")
        assert "**1 run** of all projects" in told(at)
        assert not done.called
        press(at, "retrain.rescore.agree")
        assert done.call_args.kwargs["by"] == "Mira"
        at.run()
        assert done.call_count == 1, "a rerun scores nothing"
    with open_store(site.home) as store:
        assert store.runs.last_seq(run_id) == before
