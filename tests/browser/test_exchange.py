"""A small file comes in through the page in a real browser, and goes out again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page

from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.schema.records import Member, Plan, Project
from core.store import open_store
from tests.browser.conftest import choose, settle
from tests.browser.serving import Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
TEXT = "👩‍👩‍👧 The tower is old."


@pytest.fixture
def run_of_second(tmp_path: Path) -> str:
    """A finished run of the second of two projects, each with a case."""
    home = tmp_path / "home"
    with open_store(home) as store:
        first = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        second = Project("second", "Second", 2.0)
        with store.writing():
            store.projects.save(second)
            store.projects.set_member(Member("second", "Mira", "admin", 2.0))
        store_case(store, first, CaseDraft("Of the first."), "Mira", 3.0)
        case = store_case(store, second, CaseDraft("Of the second."), "Mira", 4.0)
    jobs = JobRunner(home)
    run_id = jobs.start(case, Plan())
    assert jobs.wait(run_id, 60)
    return run_id


def test_a_file_comes_in_and_goes_out(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    span = {"start": TEXT.index("tower"), "end": TEXT.index("tower") + 5, "text": "tower"}
    rows = tmp_path / "rows.jsonl"
    row = {"id": "a", "response": TEXT, "label": "hallucinated", "spans": [span]}
    rows.write_text(json.dumps(row) + "\nbroken\n", encoding="utf-8")
    page = open_page(make_site(), "/exchange")
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(rows)
    page.get_by_text("1 new, 0 known, 1 cannot be read").wait_for()
    settle(page)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("1 new case,").wait_for()
    settle(page)
    page.get_by_text("0 new, 1 known").wait_for()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Mu-SHROOM", exact=True).click()
    given = json.loads(Path(downloading.value.path()).read_text(encoding="utf-8"))
    assert given["id"] == "a"
    assert given["model_output_text"] == TEXT
    assert given["hard_labels"] == [[span["start"], span["end"]]]


def downloaded(page: Page, button: Locator) -> str:
    settle(page)
    with page.expect_download() as downloading:
        button.click()
    return Path(downloading.value.path()).read_text(encoding="utf-8")


def test_what_is_downloaded_is_of_the_project_at_hand(
    make_site: MakeSite, open_page: OpenPage, run_of_second: str
) -> None:
    page = open_page(make_site(), "/project")
    choose(page, page.get_by_role("combobox", name="Project").first, "Second")
    page.get_by_label("Name").and_(page.locator('[value="Second"]')).wait_for()
    settle(page)
    page.get_by_role("link", name="Import / export").click()
    lines = downloaded(page, page.get_by_role("button", name="JSONL (everything)")).splitlines()
    assert [json.loads(line)["response"] for line in lines] == ["Of the second."]
    page.get_by_role("link", name="History").click()
    report = downloaded(page, page.get_by_role("button", name="Report of these runs"))
    assert run_of_second in report
    assert "Of the second." in report
