"""A long debate in a browser: rounds unfold, and stay so whatever else happens on the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.review.people import ensure_project
from core.schema.events import Event
from core.schema.records import Case, Plan, Run, new_id
from core.store import open_store
from tests.browser.conftest import settle
from tests.browser.serving import Site
from tests.learning.recorded_runs import Told, events_of

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
ROUNDS, EACH = 3, 6
TOLD = Told((("Ada", "supported"), ("Ben", "hallucinated")) * 9, "hallucinated", "hallucinated")


def by_rounds(event: Event) -> Event:
    if event.kind != "turn_finished":
        return event
    return replace(event, turn=replace(event.turn, round=(event.turn.number - 1) // EACH + 1))


@pytest.fixture
def long_run(tmp_path: Path) -> str:
    """A stored debate of three rounds."""
    with open_store(tmp_path / "home") as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        case = Case(new_id(), project.id, TOLD.claim, language="en", author="Mira")
        run = Run(new_id(), case.id, project.id, Plan("colmad"), "queued", TOLD.at)
        with store.writing():
            store.cases.add(case, [])
            store.runs.add(run, "told", run.started_at)
            store.runs.append(run.id, "told", [by_rounds(one) for one in events_of(TOLD, case)])
    return run.id


def test_rounds_that_somebody_unfolded_stay_so(
    long_run: str, make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site(), f"/run?run={long_run}")
    page.get_by_role("tab", name="Debate").click()
    turns = page.locator(".cp-turn")
    expect(turns).to_have_count(EACH)
    page.get_by_text(re.compile(r"^Round 1 · 6 turns")).click()
    expect(turns).to_have_count(2 * EACH)
    settle(page)
    page.keyboard.press("Alt+3")  # a judgement opens, above what is being read
    page.get_by_label(re.compile("^Reason")).wait_for()
    settle(page)
    expect(page.get_by_role("tab", name="Debate", selected=True)).to_be_visible()
    expect(turns).to_have_count(2 * EACH)
    page.get_by_role("link", name="Replay the debate").click()
    page.get_by_role("button", name="Go to").click()
    page.get_by_text("The verdict", exact=True).click()
    folds = page.locator("details.cp-round")
    expect(folds).to_have_count(ROUNDS - 1)
    folds.first.locator("summary").click()
    page.keyboard.press("Control+ArrowLeft")
    page.locator(".cp-verdict").wait_for(state="detached")
    settle(page)
    assert folds.first.evaluate("fold => fold.open")
    assert not folds.last.evaluate("fold => fold.open")
