"""The Reliability page with too little and with enough to say, and its line on a run."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from components.measure.reliability import format_debate_finding
from core.learning.agent_answers import load_decided_runs
from core.learning.answer_weights import has_policy_package
from core.learning.debate_worth import DebateWorth, WorthStep
from core.learning.learned_consensus import CONSENSUS_RECORD_KIND, activate_weights, learn_weights
from core.learning.track_record import WilsonShare
from core.review.people import ensure_project
from core.schema.records import Label, Member
from core.store import open_store
from tests.exchange.recorded_audits import Audit, own_tools
from tests.exchange.recorded_audits import tell as tell_audits
from tests.learning.recorded_runs import Told, tell
from tests.learning.test_answer_weights import NO_EXTRA
from tests.learning.test_consensus import told as runs
from tests.needs import need
from tests.pages.conftest import OpenApp
from tests.pages.driving import Site, keys, press, told

__all__ = ["own_tools"]
PAGE = "pages/learn/reliability.py"


def table_with(at: AppTest, column: str) -> Any:
    """The table that has a column of that name."""
    return next(own.value for own in at.dataframe if column in own.value.columns)


def test_nothing_was_decided_yet(app: OpenApp) -> None:
    at = app(PAGE)
    assert "No agent has spoken on a case that people decided yet" in at.info[0].value
    assert not at.dataframe


def test_few_answers_are_shown_and_said_to_be_few(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, runs(6))
    at = site.open(PAGE)
    table = table_with(at, "Agent")
    assert set(table["Agent"]) == {"Reader Ada", "Reader Ben", "Judge", "Classifier seed"}
    assert all("too few" in words for words in table["Right"])
    decided = [int(words.split(" of ")[1].split(",")[0]) for words in table["Right"]]
    assert list(table["Cases"]) == list(table["Left unclear"] + decided)
    assert not at.get("plotly_chart"), "six cases make no chart"
    assert "4 of 4 decided fewer than 30 cases and are not drawn" in told(at)
    assert "Weights can be learned after 34 more decided cases" in told(at)
    assert "Too few cases to say" in told(at)


def test_a_single_case_is_not_told_in_the_plural(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, runs(1))
    said = told(site.open(PAGE))
    assert "1 case that people decided, each text once, and 1 run over them." in said
    assert "(over 1 run)" in said


def test_weights_are_learned_used_and_seen_on_a_run(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(site.home) as store:
        ids = tell(store, runs(80))
    looked = Mock(wraps=load_decided_runs)
    monkeypatch.setattr("components.measure.reliability_agents.load_decided_runs", looked)
    at = site.open(PAGE)
    assert looked.call_count == 1
    figures = [json.loads(own.proto.spec) for own in at.get("plotly_chart")]
    assert [trace["type"] for figure in figures for trace in figure["data"]].count("heatmap") == 1
    at.segmented_control(key="reliability.kind").set_value("category").run()
    assert "hallucinated responses only" in told(at)
    at.button(key="reliability.learn").click().run(timeout=60)
    assert not at.exception
    table = table_with(at, "Consensus")
    assert len(table) == 6
    assert "n=80 runs over 80 cases" in told(at)
    with open_store(site.home) as store:
        compared = store.learned.all(CONSENSUS_RECORD_KIND, ensure_project(store, "Mira", 1.0).id)[
            0
        ].body["compared"]
    assert ("has a lower log loss, which may be chance" in told(at)) == compared["is_tie"]
    press(at, "reliability.use")
    assert "Expected a reason" in at.error[0].value
    at.text_input(key="reliability.reason").set_value("better than a majority").run()
    press(at, "reliability.use")
    assert "In use: the weights of" in told(at)
    assert "better than a majority" in told(at)
    assert looked.call_count == 1, "nothing was answered: nothing is counted again"
    run = site.open("pages/check/run.py", run=ids[0])
    assert "Consensus of agents" in told(run)
    assert "n=80" in told(run)
    at.text_input(key="reliability.reason").set_value("look again").run()
    press(at, "reliability.back")
    assert "No weights are in use" in told(at)
    assert "Consensus of agents" not in told(site.open("pages/check/run.py", run=ids[0]))


def test_a_debate_is_laid_beside_all_first_turns_too() -> None:
    share = WilsonShare(30, 60)
    alone = WorthStep("opener", share, 28, 0.14, 0.06, 0.24, 60)
    same = WorthStep("openings", share, 3, -0.02, -0.05, 0.0, 60)
    worse = replace(same, high=-0.01)
    whole = DebateWorth((alone, same), (), 60, 1.0, 0.5, 0.5)
    assert "beats its first speaker alone, by **+14 points (+6 to +24)**" in format_debate_finding(
        whole
    )
    assert "No difference to the majority of all first turns" in format_debate_finding(whole)
    assert "**worse** than the majority" in format_debate_finding(
        replace(whole, steps=(alone, worse))
    )
    assert "majority" not in format_debate_finding(
        replace(whole, steps=(alone, replace(same, paired=9)))
    )


def test_an_annotator_sees_and_changes_nothing(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, runs(40))
        project = ensure_project(store, "Mira", 1.0)
        number = learn_weights(
            store, project.id, load_decided_runs(store, project.id, {}), "Mira", 5.0
        )
        activate_weights(store, project.id, number, by="Mira", reason="try", now=6.0)
        with store.writing():
            store.projects.set_member(Member(project.id, "Karl", "annotator", 1.0))
        store.projects.save_note("person", "Karl")
    at = site.open(PAGE)
    assert "Only leads and admins can learn weights and put them in use: Mira." in told(at)
    assert not [key for key in keys(at) if key.startswith(("reliability.learn", "reliability.use"))]
    assert "reliability.back" not in keys(at)
    with open_store(site.home) as store:
        assert store.learned.in_use(CONSENSUS_RECORD_KIND, project.id) is not None


def test_weights_that_were_changed_in_the_file_are_named_and_others_taken(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, runs(40))
        project = ensure_project(store, "Mira", 1.0)
        rows = load_decided_runs(store, project.id, {})
        number = learn_weights(store, project.id, rows, "Mira", 5.0)
        activate_weights(store, project.id, number, by="Mira", reason="try", now=6.0)
        store.db.execute("UPDATE learned SET body = body || ' '")
    at = site.open(PAGE)
    assert "checksum differs" in told(at)
    assert not [own for own in at.button if own.key == "reliability.use"]
    at.button(key="reliability.learn").click().run(timeout=60)
    at.text_input(key="reliability.reason").set_value("those were damaged").run()
    press(at, "reliability.use")
    assert "checksum" not in told(at)
    assert "In use: the weights of" in told(at)


@pytest.mark.usefixtures("own_tools")
def test_tools_stand_with_their_usage_and_success(site: Site) -> None:
    assert not any("Each tool" in own.value for own in site.open(PAGE).subheader)
    with open_store(site.home) as store:
        tell_audits(store, [Audit(marks=(1,)), Audit(outcome="off"), Audit(right=None)])
    at = site.open(PAGE)
    table = table_with(at, "Used in")
    (row,) = [own for _, own in table.iterrows() if own["Tool"] == "adder"]
    assert row["Calls"] == 6
    assert row["Used in"] == "100% (3 of 3)"
    assert row["Found / nothing / off / failed"] == "4 / 0 / 2 / 0"
    assert row["Its label is right"] == "2 of 2, too few"
    assert row["Always hallucinated"] == "0.50"
    assert "3 audits, 2 of them over responses that people answered" in told(at)


def test_pairs_without_a_figure_are_told_of_instead_of_an_empty_chart(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, runs(6))
    at = site.open(PAGE)
    figures = [json.loads(own.proto.spec) for own in at.get("plotly_chart")]
    assert "heatmap" not in [trace["type"] for figure in figures for trace in figure["data"]]
    assert "Which agents complement each other" in [own.value for own in at.subheader]
    assert "spoke on fewer than 30 of the same cases" in told(at)


def test_weights_of_answers_stand_beside_and_a_missing_extra_is_named(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("core.learning.answer_weights.POLICY_PACKAGE", "no_such_package")
    with open_store(site.home) as store:
        tell(store, runs(80))
    at = site.open(PAGE)
    assert at.checkbox(key="reliability.policy").disabled
    assert "requirements-policy.txt" in told(at)
    at.button(key="reliability.learn").click().run(timeout=60)
    assert not at.exception
    table = table_with(at, "Weights")
    assert [words.removesuffix(" (used)") for words in table["Weights"]] == [
        "Equal weights", "By track record", "Logistic", "Always the same answer",
    ]  # fmt: skip
    assert sum(words.endswith("(used)") for words in table["Weights"]) == 1
    assert next(iter(table_with(at, "Debater")["Debater"])) == "Reader Ada"


@pytest.mark.slow
def test_a_policy_is_trained_from_the_page_and_its_course_is_drawn(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(has_policy_package(), NO_EXTRA)
    monkeypatch.setattr("core.learning.answer_weights.MAX_POLICY_UPDATES", 2)
    with open_store(site.home) as store:
        tell(store, runs(40))
    at = site.open(PAGE)
    at.checkbox(key="reliability.policy").check().run()
    at.button(key="reliability.learn").click().run(timeout=100)
    assert not at.exception
    assert any(words.startswith("Policy (PPO)") for words in table_with(at, "Weights")["Weights"])
    assert "Kept is the policy after update" in told(at)
    at.run()
    at.button(key="reliability.adapt").click().run(timeout=60)
    assert "Of what was answered since the policy was trained" in at.error[0].value


def test_weights_of_answers_in_another_form_are_named_and_not_drawn(site: Site) -> None:
    with open_store(site.home) as store:
        tell(store, runs(40))
        project_id = ensure_project(store, "Mira", 1.0).id
        number = learn_weights(
            store, project_id, load_decided_runs(store, project_id, {}), "Mira", 5.0
        )
        found = store.learned.get(number)
        assert found is not None
        body = found.body | {"answers": {"lacking": ""}}
        store.learned.add(replace(found, body=body))
    at = site.open(PAGE)
    assert not at.exception
    assert "in the form that this version keeps" in at.error[0].value


def test_weeks_of_runs_stand_with_what_people_overturned_and_how_labels_drift(site: Site) -> None:
    def make(right: Label, at: float) -> Told:
        return Told([("Ada", "supported")], "supported", right, f"Claim {at}.", p=0.1, at=at)

    first, second = 4 * 86400.0, 11 * 86400.0  # two Mondays
    with open_store(site.home) as store:
        tell(store, [make("hallucinated" if n < 3 else "supported", first + n) for n in range(6)])
        wrong = [replace(make("hallucinated", second + n), judge="hallucinated", p=0.9)
                 for n in range(4)]  # fmt: skip
        tell(store, wrong)
    at = site.open(PAGE)
    table = table_with(at, "Overturned")
    assert list(table["Week of"]) == ["1970-01-12", "1970-01-05"], "the newest first"
    assert list(table["Cases"]) == [4, 6]
    assert table["Overturned"][0].startswith("0.00 (0.00 to 0.49), n=4")
    assert table["Overturned"][1].startswith("0.50 (0.19 to 0.81), n=6")
    assert table["Drift"][1] == "–"
    assert table["Drift"][0].startswith("+1.00"), "all were called hallucinated, none before"
    assert "drifted" not in table["Drift"][0], "four cases are too few to say so"
    assert list(table["US$ a run"]) == ["0.0000", "0.0000 (0.0000 to 0.0000)"]
