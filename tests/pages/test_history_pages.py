"""History: found, filtered, opened, brought in from a trace, scored again, told in one report."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import frame, state
from components.check.history import format_likelihood
from components.report import build_runs_report, load_reported_runs
from core.learning.retrain import rescore_runs
from core.review.people import ensure_project
from core.schema.events import ProblemMet, RunFailed, RunStarted
from core.schema.records import Label, Member, Plan, Run
from core.schema.reviews import Correction
from core.store import open_store
from core.store.ground_truth import GroundTruth, GroundTruths
from core.store.runs import RunFilter
from core.store.versions import ClassifierVersion
from core.verdict.classifier import ClassifierHead, get_version_folder, save_head
from tests.pages.conftest import CATS, WRONG, OpenApp, checked, drawn, query, stored_case


def rows(at: AppTest) -> list[str]:
    """The line under each listed run, in order."""
    return [
        re.sub(r"<[^>]+>", "", html.proto.body)
        for html in at.get("html")
        if html.proto.body.startswith('<div class="cp-quiet"><span class="cp-tag')
    ]


def claims(at: AppTest) -> list[str]:
    """The words of each link to a run, in order."""
    return [link.proto.label for link in at.get("page_link") if "run=" in link.proto.query_string]


def test_history_finds_and_filters(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py")
    (line,) = rows(at)
    for words in (
        "Hallucinated",
        "cats.txt",
        "Debate in turn (CEDA)",
        "Built-in engine",
        "by Mira",
    ):
        assert words in line
    at.text_input(key="history.search").set_value("pawed").run()
    assert len(rows(at)) == 1
    at.text_input(key="history.search").set_value("zebra").run()
    assert "No run matches" in at.info[0].value
    at.text_input(key="history.search").set_value("").run()
    for name, value in (("label", "supported"), ("protocol", "mad"), ("people", "corrected")):
        at.selectbox(key=f"history.{name}").set_value(value).run()
        assert "No run matches" in at.info[0].value
        assert query(at, name) == value
        at.selectbox(key=f"history.{name}").set_value("").run()
        assert len(rows(at)) == 1


def test_history_filters_by_document_person_and_dates(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py")
    document = at.selectbox(key="history.document")
    assert document.options == ["any", "cats.txt"]
    document.select("cats.txt").run()
    assert at.selectbox(key="history.person").options == ["any", "Mira"]
    at.selectbox(key="history.person").select("Mira").run()
    assert len(rows(at)) == 1
    today = date.today()
    at.date_input(key="history.dates").set_value((today - timedelta(9), today)).run()
    assert len(rows(at)) == 1
    at.date_input(key="history.dates").set_value((today - timedelta(9), today - timedelta(8))).run()
    assert "No run matches" in at.info[0].value
    days = [day.isoformat() for day in (today - timedelta(9), today - timedelta(8))]
    assert at.query_params["dates"] == days
    at = app("pages/check/history.py", dates=today.isoformat())
    assert len(rows(at)) == 1
    assert not app("pages/check/history.py", dates="yesterday").exception


def test_history_shows_the_whole_claim_and_leads_to_its_run(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py")
    assert [label.replace("\\", "") for label in claims(at)] == [WRONG]
    assert f"run={run_id}" in at.get("page_link")[-1].proto.query_string


def test_a_run_can_be_renamed_and_keeps_its_name(app: OpenApp, run_id: str, home: Path) -> None:
    at = app("pages/check/run.py", run=run_id)
    assert at.title[0].value.replace("\\", "").startswith("Female cats tend to be left pawed.")
    field = at.text_input(key=f"run.{run_id}.name")
    assert field.value == WRONG, "it begins with the present name, to be edited"
    at.text_input(key=f"run.{run_id}.name").set_value("  The *paws*  again ").run()
    assert not at.exception
    assert at.title[0].value == r"The \*paws\* again · Run"
    history = app("pages/check/history.py", search="paws")
    assert claims(history)[0].startswith(r"**The \*paws\* again** Female cats")
    at.text_input(key=f"run.{run_id}.name").set_value("").run()
    assert at.title[0].value.startswith("Female cats")


@pytest.mark.parametrize(
    ("p", "label", "words"),
    [
        (1.0, "hallucinated", "over 99% likely"),
        (0.0, "supported", "over 99% likely"),
        (0.17, "supported", "83% likely"),
        (None, "unclear", ""),
        (0.5, "unclear", ""),
    ],
)
def test_no_verdict_is_listed_as_certain(p: float | None, label: Label, words: str) -> None:
    run = Run("r", "c", "p", Plan(), "finished", 1.0, label=label, p_hallucinated=p)
    assert format_likelihood(run) == words


def test_in_a_blind_project_history_keeps_to_itself_what_others_said(
    app: OpenApp, run_id: str, home: Path
) -> None:
    correct(home, run_id)
    shown = rows(app("pages/check/history.py"))[0]
    assert "Overruled by Ana: ✓ Supported" in shown, "Mira is the admin"
    assert "the machine: ✗ Hallucinated" in shown
    assert shown.index("Overruled") < shown.index("the machine")
    with open_store(home) as store:
        project = store.projects.all()[0]
        store.projects.save(replace(project, is_blind=True))
        store.projects.save_note("person", "Ben")
    at = app("pages/check/history.py")
    assert "Ana" not in rows(at)[0]
    assert at.selectbox(key="history.person").options == ["any"], "nor who answered"


def test_in_a_blind_project_history_shows_a_person_what_they_said_themselves(
    app: OpenApp, run_id: str, home: Path
) -> None:
    correct(home, run_id)
    with open_store(home) as store:
        project = store.projects.all()[0]
        store.projects.save(replace(project, is_blind=True))
        store.projects.set_member(Member(project.id, "Ana", "annotator", 1.0))
        store.projects.save_note("person", "Ana")
    (shown,) = rows(app("pages/check/history.py"))
    assert "Overruled by Ana: ✓ Supported" in shown


def test_the_verdict_filter_goes_by_what_leads_on_the_row(
    app: OpenApp, run_id: str, home: Path
) -> None:
    correct(home, run_id)
    at = app("pages/check/history.py", label="supported")
    assert "Overruled by Ana: ✓ Supported" in rows(at)[0]
    at = app("pages/check/history.py", label="hallucinated")
    assert "No run matches" in at.info[0].value


def test_the_filters_read_all_answers_again_only_after_an_answer(
    app: OpenApp, run_id: str, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    labels, read = GroundTruths.labels, []

    def count_labels(
        self: GroundTruths, project_id: str | None = None, cases: Sequence[str] | None = None
    ) -> dict[str, GroundTruth]:
        read.append(cases)
        return labels(self, project_id, cases)

    monkeypatch.setattr(GroundTruths, "labels", count_labels)
    at = app("pages/check/history.py", label="supported")
    at.run()
    assert read.count(None) == 1
    assert "Ana" not in at.selectbox(key="history.person").options
    correct(home, run_id)
    at.run()
    assert read.count(None) == 2
    assert "Overruled by Ana: ✓ Supported" in rows(at)[0]
    assert "Ana" in at.selectbox(key="history.person").options


def test_a_broken_file_is_named_and_many_are_counted(app: OpenApp, home: Path) -> None:
    unread = ProblemMet(1.0, "reading", "It is damaged.", "broken.pdf")
    made = state.get_jobs().start(stored_case(home, WRONG), Plan(), unread=[unread])
    assert state.get_jobs().wait(made, 60)
    assert " · broken.pdf (not read) · " in rows(app("pages/check/history.py"))[0]
    checked(home, WRONG, *((f"cats{n}.txt", f"{CATS} {n}") for n in range(3)))
    at = app("pages/check/history.py")
    assert " · 3 files · " in rows(at)[0]
    titles = re.findall(r'title="([^"]+)"', "".join(h.proto.body for h in at.get("html")))
    assert sorted(titles[0].split(", ")) == ["cats0.txt", "cats1.txt", "cats2.txt"]


def test_a_root_address_with_a_run_leads_there(app: OpenApp, run_id: str) -> None:
    at = app(run=run_id)
    (script,) = [body for body in map(str, drawn(at).splitlines()) if "location.replace" in body]
    assert f'"run?run={run_id}"' in script
    evil = drawn(app(run="</script><b>")).split("location.replace")[1]
    assert "</script><b>" not in evil


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("many", "batch"),
        ("pending", "review"),
        ("curate", "adjudicate"),
        ("settle", "adjudicate_case"),
        ("confidence", "calibration"),
    ],
)
def test_an_address_of_an_earlier_release_leads_to_the_page_of_today(
    monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    monkeypatch.setattr(frame, "_read_page_address", lambda: old)
    at = AppTest.from_function(open_lost_page)
    at.query_params["case"] = ["c 1", "c2"]
    at.run()
    assert not at.exception
    assert f'location.replace("{new}?case=c+1&case=c2")' in drawn(at)
    assert not at.title


def open_lost_page() -> None:
    from components.app import frame

    frame.draw_lost()


def test_addresses_of_unknown_runs_say_what_was_not_found(app: OpenApp) -> None:
    at = app("pages/check/run.py", run="nobody")
    assert "There is no run “nobody” here" in at.info[0].value
    at = app("pages/check/replay.py")
    assert "The address names no run" in at.info[0].value


def test_a_trace_goes_out_and_comes_in(app: OpenApp, run_id: str, home: Path) -> None:
    from core.store.traces import export_trace

    with open_store(home) as store:
        trace = export_trace(store, run_id, time.time(), 6)
    at = app("pages/check/history.py")
    at.file_uploader(key="history.trace").set_value(("t.json", trace, "application/json")).run()
    assert not at.exception
    assert any(link.proto.label == "Play it" for link in at.get("page_link"))
    at.file_uploader(key="history.trace").set_value(("t.json", b"{}", "application/json")).run()
    assert "Counterpoint exported" in at.error[0].value


def test_historys_address_holds_its_filters(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py", search="pawed", label="hallucinated", status="nonsense")
    assert not at.exception
    assert at.text_input(key="history.search").value == "pawed"
    assert at.selectbox(key="history.label").value == "hallucinated"
    assert at.selectbox(key="history.status").value == ""
    at.selectbox(key="history.label").set_value("").run()
    assert "label" not in at.query_params
    assert query(at, "search") == "pawed"


@pytest.mark.parametrize("page", ["3", "0", "-1", "9" * 40, "x"])
def test_a_page_of_history_that_is_not_there_is_the_first(
    app: OpenApp, run_id: str, page: str
) -> None:
    at = app("pages/check/history.py", page=page)
    assert not at.exception
    assert len(rows(at)) == 1


def report(home: Path, wanted: RunFilter) -> str:
    with open_store(home) as store:
        return build_runs_report(
            *load_reported_runs(store, ensure_project(store, "Mira", 1.0).id, "Mira", wanted)
        )


def correct(home: Path, run_id: str) -> None:
    with open_store(home) as store, store.writing():
        run = store.runs.get(run_id, 0.0, 0.0)
        assert run is not None
        given = Correction("c", run_id, run.case_id, "Ana", 9.0, "supported", (), "<b>No</b>, p. 3")
        store.corrections.add(given, WRONG)


def test_every_run_is_told_with_its_quotes_and_corrections(home: Path, run_id: str) -> None:
    correct(home, run_id)
    html = report(home, RunFilter())
    assert ">1 run<" in html
    assert "Hallucinated" in html
    assert run_id in html
    assert CATS.split(",")[0] in re.sub(r"<[^>]+>", "", html), "a quote of the source"
    assert "&lt;b&gt;No&lt;/b&gt;, p. 3" in html
    assert "<b>No</b>" not in html
    assert not re.findall(r'(?:src|href)="', html), "nothing to fetch"


def test_the_filter_decides_which_runs_are_told(home: Path, run_id: str) -> None:
    assert run_id not in report(home, RunFilter(label="supported"))
    assert run_id not in report(home, RunFilter(corrected=True))
    assert run_id in report(home, RunFilter(label="hallucinated"))


def test_history_offers_the_report(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py")
    assert [b for b in at.get("download_button") if "Report of these runs" in b.proto.label]
    at.selectbox(key="history.label").set_value("supported").run()
    assert not [b for b in at.get("download_button") if "Report of these runs" in b.proto.label]


WIDTH = 384  # of the embedded encoder


def test_history_and_the_run_show_whose_verdict_it_is(
    app: OpenApp, run_id: str, home: Path
) -> None:
    at = app("pages/check/history.py")
    assert "classifier" not in rows(at)[0], "it is the seed's"
    save_head(get_version_folder(home, "v1"), ClassifierHead((0.0,) * WIDTH, -3.0), {})
    with open_store(home) as store:
        store.versions.add(ClassifierVersion("v1", 1.0, "Mira", {}))
        assert rescore_runs(store, home, "v1", by="Mira").changed == 1
    at.run()
    assert "classifier v1" in rows(at)[0]
    assert "Unclear" in rows(at)[0], "the judge called it hallucinated"
    at = app("pages/check/run.py", run=run_id)
    shown = " ".join(str(getattr(html, "value", "")) for html in at.get("html"))
    assert "Scored again by classifier v1" in shown
    assert "The run had ended with hallucinated" in shown
    assert "by seed" in shown


def test_a_run_that_failed_leads_to_the_verdict_of_an_earlier_one(
    app: OpenApp, run_id: str, home: Path
) -> None:
    failed = "f" * 32
    with open_store(home) as store, store.writing():
        first = store.runs.get(run_id, time.time(), 60.0)
        assert first
        case = store.cases.get(first.case_id)
        assert case
        now = time.time()
        store.runs.add(replace(first, id=failed, status="queued", label=None), "nobody", now)
        ending = RunFailed(now, "debating", "The service did not answer.")
        store.runs.append(failed, "nobody", [RunStarted(now, case, first.plan, ()), ending])
    links = app("pages/check/run.py", run=failed).get("page_link")
    labels = {link.proto.label: link.proto.query_string for link in links}
    (query_string,) = (q for label, q in labels.items() if label.startswith("Its run of"))
    assert run_id in query_string
