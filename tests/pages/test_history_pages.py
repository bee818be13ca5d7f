"""History: found, filtered, opened, brought in from a trace, scored again, told in one report."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from components.report import build_runs_report, load_reported_runs
from core.learning.retrain import rescore_runs
from core.review.people import ensure_project
from core.schema.reviews import Correction
from core.store import open_store
from core.store.runs import RunFilter
from core.store.versions import ClassifierVersion
from core.verdict.classifier import ClassifierHead, get_version_folder, save_head
from tests.pages.conftest import CATS, WRONG, OpenApp, query


def test_history_finds_and_filters(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py")
    assert len(at.dataframe[0].value) == 1
    assert at.dataframe[0].value["Models"][0] == "Built-in engine"
    at.text_input(key="history.search").set_value("pawed").run()
    assert len(at.dataframe[0].value) == 1
    at.text_input(key="history.search").set_value("zebra").run()
    assert "No run matches" in at.info[0].value
    at.text_input(key="history.search").set_value("").run()
    at.selectbox(key="history.label").set_value("supported").run()
    assert "No run matches" in at.info[0].value
    at.selectbox(key="history.label").set_value("").run()
    assert at.dataframe[0].value["Protocol"][0] == "Debate in turn (CEDA)"
    at.selectbox(key="history.protocol").set_value("mad").run()
    assert "No run matches" in at.info[0].value
    assert query(at, "protocol") == "mad"


def test_history_opens_a_run(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/history.py")
    at.session_state["history.table.1"] = {"selection": {"rows": [0], "columns": [], "cells": []}}
    at.run()
    assert not at.exception
    assert query(at, "run") == run_id


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
    assert len(at.dataframe[0].value) == 1


def report(home: Path, wanted: RunFilter) -> str:
    with open_store(home) as store:
        return build_runs_report(
            *load_reported_runs(store, ensure_project(store, "Mira", 1.0).id, wanted)
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
    assert "Classifier" not in at.dataframe[0].value.columns, "all are the seed's"
    save_head(get_version_folder(home, "v1"), ClassifierHead((0.0,) * WIDTH, -3.0), {})
    with open_store(home) as store:
        store.versions.add(ClassifierVersion("v1", 1.0, "Mira", {}))
        assert rescore_runs(store, home, "v1", by="Mira").changed == 1
    at.run()
    table = at.dataframe[0].value
    assert list(table["Classifier"]) == ["v1"]
    assert "Unclear" in table["Verdict"][0], "the judge called it hallucinated"
    at = app("pages/check/run.py", run=run_id)
    shown = " ".join(str(getattr(html, "value", "")) for html in at.get("html"))
    assert "Scored again by classifier v1" in shown
    assert "The run had ended with hallucinated" in shown
    assert "by seed" in shown
