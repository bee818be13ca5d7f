"""The pages' figures are those that other libraries compute from a project's exported file."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import krippendorff
import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    balanced_accuracy_score,
    brier_score_loss,
    cohen_kappa_score,
    log_loss,
    roc_auc_score,
)
from statsmodels.stats.proportion import proportion_confint  # type: ignore[import-untyped]

from core.learning.metrics import compute_classifier_figures
from core.review.people import ensure_project
from core.schema.records import Label, Member, Span, Stance, new_id
from core.schema.reviews import Correction
from core.store import open_store
from tests.exchange.stores import exported
from tests.learning.recorded_runs import Told, tell
from tests.pages.driving import Site
from tests.pages.driving import told as words_on

LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
PEOPLE = tuple(f"Person {n:02}" for n in range(14))
CASES = 70
JUDGE_WORDS: tuple[tuple[str, Stance], ...] = (("Ada", "hallucinated"), ("Ben", "supported"))


def read_export(home: Path) -> list[dict[str, Any]]:
    """The project's exported lines, read by nothing of ours."""
    with open_store(home) as store:
        person = store.projects.note("person")
        ensure_project(store, person, 1.0)
        return [json.loads(line) for line in exported(store, "jsonl").decode().splitlines()]


def newest(row: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each person's newest answer of an exported case."""
    return {answer["author"]: answer for answer in row["corrections"]}


def fill_with_people(home: Path) -> None:
    """Fourteen people who answer some cases each, and the last one as if by chance."""
    rng = np.random.default_rng(3)
    truth: list[Label] = [LABELS[n % 2] for n in range(CASES)]
    runs = [
        Told(JUDGE_WORDS, "hallucinated", right, claim=f"Claim number {n} stands here.")
        for n, right in enumerate(truth)
    ]
    with open_store(home) as store:
        tell(store, runs)
        cases = store.cases.all(store.projects.all()[0].id)
        with store.writing():
            for who, (case, right) in itertools.product(PEOPLE, zip(cases, truth, strict=True)):
                if rng.random() > 0.35:
                    continue
                errs = rng.random() < (0.6 if who == PEOPLE[-1] else 0.15)
                label = LABELS[rng.integers(3)] if errs else right
                start = int(rng.integers(0, 8))
                text = case.response[start : start + 5]
                spans = (Span(start, start + 5, text, 1.0, "number_or_date", who),)
                store.corrections.add(
                    Correction(
                        new_id(), None, case.id, who, 5e5, label,
                        spans if label == "hallucinated" else (), "So it is.",
                    ),
                    case.response,
                )  # fmt: skip


def test_agreement_is_what_krippendorff_and_scikit_learn_find_in_the_export(site: Site) -> None:
    fill_with_people(site.home)
    rows = read_export(site.home)
    answers = [newest(row) for row in rows]
    people = sorted({who for own in answers for who in own})
    assert len(people) == 15
    coded = np.full((len(people), len(rows)), np.nan)
    marked: list[np.ndarray[Any, Any]] = []
    for item, (row, own) in enumerate(zip(rows, answers, strict=True)):
        characters = np.full((len(people), len(row["response"])), np.nan)
        for who, answer in own.items():
            coded[people.index(who), item] = LABELS.index(answer["label"])
            characters[people.index(who)] = 0
            for span in answer["spans"]:
                characters[people.index(who), span["start"] : span["end"]] = 1
        if len(own) > 1:
            marked.append(characters)
    alpha = krippendorff.alpha(reliability_data=coded, level_of_measurement="nominal")
    by_character = krippendorff.alpha(
        reliability_data=np.concatenate(marked, axis=1), level_of_measurement="nominal"
    )
    at = site.open("pages/review/agreement.py")
    tables = [table.value for table in at.dataframe]
    together = dict(zip(tables[0][""], tables[0]["Agreement"], strict=True))
    assert together["Labels: Krippendorff's alpha"].startswith(f"{alpha:.2f} (")
    assert together["Marks: Krippendorff's alpha"].startswith(f"{by_character:.2f} (")
    assert together["Labels: Fleiss' kappa"] == "uneven answers"

    shown = tables[1].set_index("People")
    kappas: dict[str, float] = {}
    alike: set[str] = set()
    for one, other in itertools.combinations(people, 2):
        both = [(o[one]["label"], o[other]["label"]) for o in answers if one in o and other in o]
        name = f"{one} · {other}"
        differing = sum(a != b for a, b in both)
        assert shown.loc[name]["Labels differ"] == f"{differing} of {len(both)}"
        words = shown.loc[name]["Cohen's kappa"]
        if len({label for pair in both for label in pair}) == 1:
            assert words == "all answers are alike"
            alike.add(name)
            continue
        kappas[name] = cohen_kappa_score(*zip(*both, strict=True))
        assert float(words.split()[0]) == pytest.approx(kappas[name], abs=0.0051)
    assert len(kappas) + len(alike) == len(shown) == 15 * 14 / 2, "every pair is shown"
    ordered = [round(kappas[name], 9) for name in shown.index if name not in alike]
    assert ordered == sorted(ordered), "the lowest comes first"
    assert any(PEOPLE[-1] in name for name in shown.index[:5])


def fill_with_verdicts(home: Path) -> None:
    """Runs whose p is too sure, some without a verdict, each answered by one person."""
    rng = np.random.default_rng(5)
    runs = []
    for n in range(300):
        p = float(np.round(rng.beta(0.6, 0.6), 3))
        judge: Label = "unclear" if n % 6 == 0 else "hallucinated" if p >= 0.5 else "supported"
        right: Label = "hallucinated" if rng.random() < 0.2 + 0.6 * p else "supported"
        told = Told(JUDGE_WORDS, judge, right, claim=f"Claim number {n}.")
        runs.append(told if judge == "unclear" else Told(**vars(told) | {"p": p}))
    with open_store(home) as store:
        tell(store, runs)


def test_what_the_machine_got_right_is_what_the_libraries_find_in_the_export(site: Site) -> None:
    fill_with_verdicts(site.home)
    rows = read_export(site.home)
    assert len(rows) == 300
    judged = [row for row in rows if row["verdict"]["p_hallucinated"] is not None]
    p = np.array([row["verdict"]["p_hallucinated"] for row in judged])
    truth = np.array([row["label"] == "hallucinated" for row in judged])
    right = int(((p >= 0.5) == truth).sum())
    low, high = proportion_confint(right, len(p), method="wilson")
    balanced = balanced_accuracy_score(truth, p >= 0.5)

    at = site.open("pages/learn/reliability.py")
    agents = next(t.value for t in at.dataframe if "Balanced" in t.value).set_index("Agent")
    classifier = agents.loc["Classifier seed"]
    expected = f"{right / len(p):.2f} ({low:.2f} to {high:.2f}), n={len(p)}"
    assert classifier["Right"] == expected
    assert classifier["Balanced"] == f"{balanced:.2f}"
    assert agents.loc["Judge"]["Right of all"] == f"{right} of 300"
    assert agents.loc["Judge"]["Left unclear"] == 300 - len(p)
    constant = agents.loc["Reader Ada"]
    assert constant["Balanced"] == "0.50", "it says one word always"
    assert constant["Right"].endswith("n=300")
    assert "on 300 cases: 300 checked here, 250 with a probability" in words_on(at)

    at = site.open("pages/learn/calibration.py")
    assert [metric.value for metric in at.metric][:2] == ["250", f"{100 * right / 250:.0f}%"]
    levels = at.dataframe[0].value
    confidence = np.maximum(p, 1 - p)
    for place, row in levels.iterrows():
        edges = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.01)
        inside = (confidence >= edges[place]) & (confidence < edges[place + 1])
        assert row["Reviewed"] == inside.sum()
        if row["Between"]:
            ends = proportion_confint(
                int(((p >= 0.5) == truth)[inside].sum()), int(inside.sum()), method="wilson"
            )
            assert row["Between"] == f"{100 * ends[0]:.0f} and {100 * ends[1]:.0f}%"
    assert (levels["Between"] != "").sum() == (levels["Reviewed"] >= 30).sum() > 0
    assert "on 300 cases: 300 checked here, 250 with a probability" in words_on(at)
    assert "Here count 250 verdicts" in words_on(at)

    found = compute_classifier_figures(
        ["hallucinated" if own else "supported" for own in truth], p.tolist()
    )
    assert found["balanced_accuracy"] == pytest.approx(balanced)
    assert found["brier"] == pytest.approx(brier_score_loss(truth, p))
    assert found["auroc"] == pytest.approx(roc_auc_score(truth, p))
    bounded = np.clip(p, 1e-6, 1 - 1e-6)
    assert found["log_loss"] == pytest.approx(log_loss(truth, bounded))
    # scikit-learn's bins are closed on the right: values on an edge are moved into ours.
    inner = np.clip(p + 1e-9, 0.0, 1.0 - 1e-9)
    shares, means = calibration_curve(truth, inner, n_bins=10)
    sizes = [n for n in np.histogram(inner, np.linspace(0, 1, 11))[0] if n]
    assert found["ece"] == pytest.approx(np.average(np.abs(shares - means), weights=sizes))


PAGES = (
    "review/agreement", "learn/calibration", "learn/reliability", "learn/retrain", "learn/spans",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES)
def test_every_page_of_figures_says_what_to_do_next(site: Site, page: str) -> None:
    with open_store(site.home) as store:
        store.projects.save_note("person", "Mira")
    at = site.open(f"pages/{page}.py")
    assert "**Next:**" in words_on(at)
    assert "Review" in [link.proto.label for link in at.get("page_link")]
    with open_store(site.home) as store:
        tell(store, [Told(JUDGE_WORDS, "hallucinated", "hallucinated")])
    at = site.open(f"pages/{page}.py")
    assert not at.exception
    assert words_on(at).count("**Next:**") == 1
    assert "This project has 1 answer on 1 case: 1 checked here, 1 with" in words_on(at)


@pytest.mark.parametrize("page", PAGES)
def test_the_next_step_is_one_that_its_reader_can_take(site: Site, page: str) -> None:
    """An annotator is sent to Review, whatever is left to a lead; who is nobody here is told so."""
    with open_store(site.home) as store:
        tell(store, [Told(JUDGE_WORDS, "hallucinated", "hallucinated", claim=f"{n}.")
                     for n in range(9)])  # fmt: skip
        project = store.projects.all()[0]
        with store.writing():
            store.projects.set_member(Member(project.id, "Ida", "annotator", 1.0))
            for case in store.cases.all(project.id):
                said = Correction(new_id(), None, case.id, "Ida", 5e5, "supported", reason="So.")
                store.corrections.add(said, case.response)
        store.projects.save_note("person", "Ida")
    at = site.open(f"pages/{page}.py")
    assert "**Next:**" in words_on(at)
    links = {link.proto.page for link in at.get("page_link")}
    assert "review" in links
    assert not links & {"project", "adjudicate", "exchange"}
    with open_store(site.home) as store:
        store.projects.save_note("person", "Otto")
    at = site.open(f"pages/{page}.py")
    assert "**Next:**" not in words_on(at)
    assert any("Only people of this project can answer cases" in own.value for own in at.caption)


def test_items_behind_a_figure_are_for_leads_and_for_who_answered_them(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, [Told(JUDGE_WORDS, "hallucinated", "hallucinated", claim=f"{n}.")
                     for n in range(2)])  # fmt: skip
        project = store.projects.all()[0]
        first, second = store.cases.all(project.id)
        with store.writing():
            for who in ("Ida", "Karl"):
                store.projects.set_member(Member(project.id, who, "annotator", 1.0))
            for who, case in (("Ida", first), ("Ida", second), ("Karl", second)):
                said = Correction(new_id(), None, case.id, who, 5e5, "supported", reason="So.")
                store.corrections.add(said, case.response)

    def listed(person: str) -> list[str]:
        with open_store(site.home) as store:
            store.projects.save_note("person", person)
        at = site.open("pages/review/agreement.py")
        tables = [table.value for table in at.dataframe if "They differ in" in table.value]
        return [claim for table in tables for claim in table["Claim"]]

    assert sorted(listed("Mira")) == ["0.", "1."], "Ida · Mira differ on both"
    assert listed("Karl") == ["1."], "he has answered only the second"
