"""Confidence, and what past verdicts say on a run's page, through the app itself."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from unittest.mock import Mock

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from components.measure import calibration
from components.run import run_view
from core.debate.signals import AgentAccuracy
from core.learning.track_record import TrackRecord, build_risk_curve
from core.review.queue_ranking import load_policy
from core.store import open_store
from core.store.answered_verdicts import AnsweredVerdicts
from tests.learning.answered import add_run, say
from tests.pages.driving import Site, keys, member, press, told

PAGE = "pages/learn/calibration.py"


def fill(home: Path, near: float, right: int, wrong: int) -> str:
    """Past verdicts with a confidence of `near`, called hallucinated; the project's id."""
    with open_store(home) as store:
        project = store.projects.all()[0]
        for n in range(right + wrong):
            name = f"{near}-{n}"
            add_run(store, name, near, project=project.id)
            say(store, name, "hallucinated" if n < right else "supported")
    return project.id


def confidence_of(home: Path, run_id: str) -> float:
    with open_store(home) as store:
        run = store.runs.get(run_id, time.time(), 60.0)
    assert run is not None
    assert run.confidence is not None
    return run.confidence


def shown(at: AppTest) -> str:
    """All that stands on the page as markup."""
    return " ".join(str(html.proto.body) for html in at.get("html"))


def test_a_run_says_how_often_verdicts_at_its_level_were_right(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    near = confidence_of(site.home, run_id)
    at = site.open("pages/check/run.py", run=run_id)
    assert "past verdict" not in shown(at)
    project_id = fill(site.home, near, 3, 1)
    at.run()
    assert "past verdicts" not in shown(at), "four say less than what was measured on public data"
    with open_store(site.home) as store:
        for n in range(4, 30):
            add_run(store, f"{near}-{n}", near, project=project_id)
            say(store, f"{near}-{n}", "hallucinated")
    at.run()
    words = "Of past “hallucinated” verdicts at this level, 97% were right (n=30, between 83 and"
    assert words in shown(at)
    assert "People look at unsure cases first" in shown(at), "as a tooltip"
    asked: list[object] = []
    ours = AnsweredVerdicts.of

    def of(self: AnsweredVerdicts, project: str, cases: object = None) -> object:
        asked.append(cases)
        return ours(self, project, cases)  # type: ignore[arg-type]

    monkeypatch.setattr(AnsweredVerdicts, "of", of)
    at.run()
    assert not asked, "nothing has changed: nothing is counted again"
    with open_store(site.home) as store:
        say(store, f"{near}-0", "supported", at=99.0)
    at.run()
    assert asked == [[f"c-{near}-0"]], "only what changed is looked at"
    assert "93% were right (n=30" in shown(at)


def test_a_lead_fits_the_limit_and_the_run_says_who_decides(site: Site, run_id: str) -> None:
    fill(site.home, 0.97, 60, 0)
    fill(site.home, 0.55, 8, 22)
    at = site.open(PAGE)
    assert [metric.value for metric in at.metric][:2] == ["90", "76%"]
    table = at.dataframe[0].value
    assert list(table["Right"]) == ["27%", "–", "–", "–", "–", "over 99%"]
    assert table.iloc[0]["Right of “hallucinated”"] == "8 of 30"
    rates = at.dataframe[1].value.set_index("Target")
    assert list(rates.loc["5%"])[:4] == ["60%", "67%", "33%", "0 of 60"]
    assert rates.loc["1%"]["Why none"] == "230 are needed, if none is wrong"
    at.number_input[0].set_value(5.0)
    press(at, "confidence.fit")
    assert "from a confidence of 60% on" in " ".join(m.value for m in at.markdown)
    risk = json.loads(at.get("plotly_chart")[1].proto.spec)
    assert "in use" in [trace.get("name") for trace in risk["data"]]
    fill(site.home, 0.96, 0, 60)
    at.run()
    assert "60 verdicts more can be counted by now" in " ".join(c.value for c in at.caption)
    press(at, "confidence.fit")
    assert "nothing is answered by itself" in " ".join(m.value for m in at.markdown)
    run = site.open("pages/check/run.py", run=run_id)
    assert "answers nothing by itself yet" in shown(run)
    history = shown(site.open("pages/check/history.py"))
    assert "⚑ to decide" in history
    assert "by Mira: ✗ Hallucinated" in history
    queue = site.open("pages/review/pending.py")
    assert all(why.endswith("for people to decide") for why in queue.dataframe[0].value["Why"])


def test_of_a_single_verdict_only_the_count_is_shown(site: Site, run_id: str) -> None:
    fill(site.home, 0.97, 0, 1)
    at = site.open(PAGE)
    assert [metric.value for metric in at.metric] == ["1", "0 of 1", "1 of 1"]
    assert list(at.dataframe[0].value["Right"])[-1] == "0 of 1"
    assert "%" not in at.metric[1].delta
    assert not at.get("plotly_chart")
    assert any("Charts are drawn from 30 reviewed verdicts on" in c.value for c in at.caption)


def test_only_leads_change_what_is_answered(site: Site, run_id: str) -> None:
    project_id = fill(site.home, 0.97, 60, 0)
    at = site.open(PAGE)
    member(site.home, project_id, "Lea", "admin")
    member(site.home, project_id, "Mira", "annotator")
    at.number_input[0].set_value(5.0)
    at.button(key="confidence.fit").click().run()  # the page is from before that
    assert any("lead" in error.value for error in at.error)
    assert "confidence.fit" not in keys(at)
    assert "Only leads and admins can set the target error rate: Lea." in told(at)
    with open_store(site.home) as store:
        project = store.projects.get(project_id)
        assert project is not None
        assert project.error_rate is None
        assert load_policy(store, project) is None
        assert store.learned.all("selective", project_id) == []


def test_nothing_answered_says_what_would_count(site: Site) -> None:
    at = site.open(PAGE)
    assert "Nobody has answered a verdict" in at.info[0].value
    assert not at.get("plotly_chart")


def test_the_rate_is_also_a_field_of_the_project(site: Site, run_id: str) -> None:
    project_id = fill(site.home, 0.97, 60, 0)
    at = site.open("pages/setup/project.py")
    at.number_input(key=f"project.{project_id}.error_rate").set_value(5.0)
    press(at, f"project.{project_id}.save")
    with open_store(site.home) as store:
        policy = load_policy(store, store.projects.get(project_id))
    assert policy is not None
    assert [limit.threshold for limit in policy.limits] == [0.5]


def test_figures_are_kept_until_somebody_says_something(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(site.home, 0.97, 2, 1)
    at = site.open(PAGE)
    counted = Mock(wraps=build_risk_curve)
    monkeypatch.setattr("core.learning.track_record.build_risk_curve", counted)
    at.run()
    assert not counted.called
    with open_store(site.home) as store:
        say(store, "0.97-0", "supported", at=99.0)
    at.run()
    assert counted.call_count == 1


def test_only_the_first_view_waits_for_a_long_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is much to count, each key on Label waited for it again."""
    is_counted, record = threading.Event(), TrackRecord({}, corrections=1.0)

    def count(home: str, project_id: str) -> TrackRecord:
        is_counted.wait(20.0)
        return record

    monkeypatch.setattr(calibration, "_count_record", count)
    cache, key = calibration._RecordCache(), ("home", "project")
    assert calibration._await_count(cache, key, 0.01) is None
    began = time.monotonic()
    assert calibration._await_count(cache, key, 10.0) is None
    assert time.monotonic() - began < 5.0
    is_counted.set()
    assert calibration._await_count(cache, key, None) is record


def test_nor_do_later_views_of_a_run_wait_for_its_agents_records(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    is_counted, records = threading.Event(), {"Ada": AgentAccuracy(1, 1, 0.5)}

    def count(*given: object) -> dict[str, AgentAccuracy]:
        is_counted.wait(20.0)
        return records

    monkeypatch.setattr(run_view, "count_past_records", count)
    monkeypatch.setattr(state, "get_answers_mark", lambda: (1,))
    monkeypatch.setattr(state, "home_folder", lambda: tmp_path)
    monkeypatch.setattr(run_view, "RECORD_WAIT_SECONDS", 0.01)
    assert run_view.load_past_records("project") == {}
    monkeypatch.setattr(run_view, "RECORD_WAIT_SECONDS", 10.0)
    began = time.monotonic()
    assert run_view.load_past_records("project") == {}
    assert time.monotonic() - began < 5.0
    is_counted.set()
    monkeypatch.setattr(state, "get_answers_mark", lambda: (2,))
    assert run_view.load_past_records("project") == records
