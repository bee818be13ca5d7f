"""The report of the runs that History shows: their counts, and each with what was said of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from streamlit.testing.v1 import AppTest

from components.check.batch import html_of_many, told_runs
from core.review.people import first_project
from core.schema.reviews import Correction
from core.store import open_store
from core.store.runs import RunFilter
from tests.pages.conftest import CATS, WRONG

OpenApp = Callable[..., AppTest]


def report(home: Path, wanted: RunFilter) -> str:
    with open_store(home) as store:
        return html_of_many(*told_runs(store, first_project(store, "Mira", 1.0).id, wanted))


def corrected(home: Path, run_id: str) -> None:
    with open_store(home) as store, store.writing():
        run = store.runs.get(run_id, 0.0, 0.0)
        assert run is not None
        given = Correction("c", run_id, run.case_id, "Ana", 9.0, "supported", (), "<b>No</b>, p. 3")
        store.corrections.add(given, WRONG)


def test_every_run_is_told_with_its_quotes_and_corrections(home: Path, run_id: str) -> None:
    corrected(home, run_id)
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
