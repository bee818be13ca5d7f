"""Whole journeys with mouse and keyboard, as journeys of analysts and presenters go."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.review.people import ensure_project
from core.schema.records import Member, Project
from core.store import open_store
from tests.browser.conftest import check_prepared, click_until, settle, verdict
from tests.browser.serving import Server, Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]

CATS = (
    "Cats have five toes on each front paw. Female cats tend to be right pawed, while male cats "
    "are more often left pawed. A female cat is called a queen."
)
WRONG = "Female cats do not tend to be right pawed."


def begin(page: Page, tmp_path: Path, claim: str = WRONG, name: str = "cats.txt") -> None:
    """Type a claim, upload a file, press Check."""
    path = tmp_path / name
    path.write_text(CATS)
    page.get_by_label("Text to check").fill(claim)
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(path)
    page.get_by_text(re.compile(r"characters")).first.wait_for(timeout=60_000)
    page.get_by_role("button", name=re.compile("Check.*Enter")).click()


@pytest.mark.journey
def test_upload_and_a_live_debate_that_nothing_disturbs(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    """Upload, watch, type elsewhere, reload, second tab: the debate goes on and ends the same."""
    server = make_site(pace=0.12)
    page = open_page(server)
    begin(page, tmp_path)
    said = page.locator(".cp-turn-said")
    said.first.wait_for()
    expect(page.locator(".cp-caret").first).to_be_visible()
    first = said.first.inner_text()
    address = page.url
    expect(said.first).not_to_have_text(first)
    page.get_by_role("link", name="New check").click()
    notes = page.get_by_label("Text to check")
    settle(page)
    notes.fill("notes typed while they speak")
    notes.press("Tab")
    settle(page)
    expect(notes).to_have_value("notes typed while they speak")
    page.goto(address)
    page.locator(".cp-turn-said").first.wait_for()
    page.reload()
    page.locator(".cp-turn-said").first.wait_for()
    second = open_page(server, address.removeprefix(server.url))
    second.locator(".cp-turn-said").first.wait_for()
    server.hurry()
    assert verdict(page).endswith("Hallucinated")
    assert verdict(second).endswith("Hallucinated")
    assert page.locator("mark").first.inner_text() == "not"
    page.get_by_role("tab", name="Debate").click()
    expect(page.locator(".cp-turn").filter(visible=True)).to_have_count(5)


def test_stop_stops_and_resume_goes_on(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    server = make_site(pace=0.12)
    page = open_page(server)
    begin(page, tmp_path)
    page.locator(".cp-turn").nth(1).wait_for()
    began = time.monotonic()
    page.get_by_role("button", name="Stop").click()
    page.get_by_text("What was found so far is kept").wait_for()
    assert time.monotonic() - began < 2.0, "the page itself takes a rerun to show it"
    settle(page)
    page.get_by_role("tab", name="Debate").click()
    with open_store(server.home) as store:
        events = store.runs.events(page.url.split("run=")[1])
    spoken = sum(event.kind == "turn_finished" for _, event in events)
    expect(page.locator(".cp-turn").filter(visible=True)).to_have_count(spoken)
    second = open_page(server, page.url.removeprefix(server.url))
    second.get_by_text("What was found so far is kept").wait_for()
    server.hurry()
    page.get_by_role("button", name="Resume").click()
    assert verdict(page).endswith("Hallucinated")
    assert verdict(second).endswith("Hallucinated"), "the other tab sees it go on"


def test_a_killed_server_leaves_a_run_that_its_own_link_resumes(
    make_server: Callable[..., Server], open_page: OpenPage, tmp_path: Path
) -> None:
    server = make_server(pace=0.12)
    page = open_page(server)
    begin(page, tmp_path)
    page.locator(".cp-turn").nth(1).wait_for()
    address = page.url.removeprefix(server.url)
    server.kill()
    server.hurry()
    server.start()
    again = open_page(server, address)
    again.get_by_text("The process that ran this check ended").wait_for()
    assert again.get_by_text("Page not found").count() == 0
    settle(again)
    again.get_by_role("button", name="Resume").click()
    assert verdict(again).endswith("Hallucinated")
    with open_store(server.home) as store:
        run_id = address.split("run=")[1]
        numbers = [
            event.turn.number
            for _, event in store.runs.events(run_id)
            if event.kind == "turn_finished"
        ]
    assert numbers == sorted(set(numbers)), "a finished turn was argued again"


def test_a_pages_own_address_opens_on_a_fresh_server(
    make_server: Callable[..., Server], open_page: OpenPage
) -> None:
    page = open_page(make_server(), "/calibration")
    page.get_by_role("heading", name="Calibration").wait_for()
    settle(page)
    assert page.get_by_text("Page not found").count() == 0
    assert page.get_by_role("dialog").count() == 0


def test_addresses_lead_where_they_say_or_say_what_was_not_found(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    page = open_page(server, "/no%20such%20page")
    page.get_by_role("heading", name="Page not found").wait_for()
    page.get_by_text("There is no page at “/no such page”.").wait_for()
    settle(page)
    page.get_by_role("link", name="New check").last.click()
    check_prepared(page)
    verdict(page)
    run = page.url
    page.goto(f"{server.url}/confidence")
    page.get_by_role("heading", name="Calibration").wait_for()
    expect(page).to_have_url(f"{server.url}/calibration")
    page.goto(server.url)
    page.get_by_role("heading", name="New check").wait_for()
    page.goto(f"{server.url}/?run={run.split('run=')[1]}")
    verdict(page)
    expect(page).to_have_url(run)
    page.go_back()  # not to the address that led on, which would lead on again
    page.get_by_role("heading", name="New check").wait_for()
    page.goto(f"{server.url}/?run=nobody")
    page.get_by_text("There is no run “nobody” here.").wait_for()


def test_a_new_tab_that_the_menu_opens_is_in_the_same_project(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    with open_store(server.home) as store, store.writing():
        ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        store.projects.save(Project("t" * 32, "Towers of the northern river valley", 5.0))
        store.projects.set_member(Member("t" * 32, "Mira", "admin", 5.0))
    page = open_page(server, f"/history?project={'t' * 32}")
    page.get_by_role("heading", name="History").wait_for()
    settle(page)
    page.wait_for_function(
        "window.counterpointProject"
    )  # which the page's own script adds to links
    for how in ({"button": "middle"}, {"modifiers": ["Control"]}):
        with page.context.expect_page() as opened:
            page.get_by_role("link", name="Library").click(**how)
        opened.value.get_by_role("heading", name="Library").wait_for()
        choice = opened.value.get_by_role("combobox", name="Project")
        expect(choice).to_have_value("Towers of the northern river valley")
        opened.value.close()
    expect(page.get_by_role("heading", name="History")).to_be_visible()


def test_evidence_replay_and_report_of_a_pdf(make_site: MakeSite, open_page: OpenPage) -> None:
    """A prepared case: its page picture with the quote boxed, its report, its replay."""
    server = make_site()
    page = open_page(server)
    check_prepared(page)
    assert verdict(page).endswith("Hallucinated")
    page.get_by_role("button", name="halden-bridge.pdf, p. 2").first.click()
    dialog = page.get_by_role("dialog")
    picture = dialog.locator("img").first
    picture.wait_for()
    assert picture.evaluate("image => image.naturalWidth") >= 800
    page.keyboard.press("Escape")
    settle(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Report (HTML)").click()
    report = Path(download.value.path()).read_text()
    assert "512 m" in report
    assert "412 m" in report
    for name, beginning in (("PDF", b"%PDF"), ("Word", b"PK")):
        with page.expect_download() as download:
            page.get_by_role("button", name=f"Report ({name})").click()
        assert Path(download.value.path()).read_bytes().startswith(beginning)
    page.get_by_role("link", name="Replay the debate").click()
    page.get_by_role("heading", name="Replay").wait_for()
    settle(page)
    page.get_by_role("button", name=re.compile("^Step Shortcut")).click()
    page.locator(".cp-turn").first.wait_for()
    settle(page)  # a click while the script runs can be lost
    page.get_by_role("button", name=re.compile("^Play")).click()
    page.get_by_role("button", name=re.compile("^Pause")).wait_for()
    page.get_by_text("4×", exact=True).click()
    page.locator(".cp-verdict").wait_for(timeout=60_000)


def test_a_trace_file_plays_on_another_machine(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    server = make_site()
    page = open_page(server)
    check_prepared(page)
    verdict(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Trace file").click()
    trace = tmp_path / "run.trace.json"
    download.value.save_as(trace)
    page = open_page(make_site(name="elsewhere"), "/history")
    upload = page.locator('[data-testid="stFileUploader"]')
    click_until(page, page.get_by_text("Open a trace file"), upload)
    upload.locator("input[type=file]").set_input_files(trace)
    page.get_by_role("link", name="Play it").click()
    page.get_by_role("heading", name="Replay").wait_for()
    settle(page)
    page.get_by_role("button", name=re.compile("^Step Shortcut")).click()
    page.locator(".cp-turn").first.wait_for()


@pytest.mark.parametrize("path", ["/", "/history", "/retrain", "/library", "/project"])
def test_narrow_and_dark_pages_do_not_overflow(
    make_site: MakeSite, open_page: OpenPage, path: str
) -> None:
    page = open_page(make_site(), path, viewport={"width": 390, "height": 844}, color_scheme="dark")
    page.locator("h1").first.wait_for()
    settle(page)
    wide = page.evaluate("document.documentElement.scrollWidth")
    assert wide <= 390, f"the page is {wide} px wide"
    background = page.evaluate(
        "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    )
    assert background == "rgb(18, 23, 29)", "the dark theme follows the system"
    for button in page.get_by_test_id("stBaseButton-primary").all():
        if button.is_enabled():
            ink = button.locator("p").first.evaluate("p => getComputedStyle(p).color")
            assert ink == "rgb(14, 20, 27)", "dark words on the dark theme's light button"


def test_a_run_reads_well_narrow_and_dark(make_site: MakeSite, open_page: OpenPage) -> None:
    server = make_site()
    page = open_page(server, viewport={"width": 390, "height": 844}, color_scheme="dark")
    check_prepared(page, 1)
    assert verdict(page).endswith("Hallucinated")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    mark = page.locator("mark").first.evaluate("m => getComputedStyle(m).borderBottomColor")
    assert mark == "rgb(251, 146, 60)", "the dark theme has its own token"


def test_back_after_a_check_is_one_step_to_its_text_and_file(
    make_site: MakeSite, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(make_site())
    begin(page, tmp_path)
    verdict(page)
    page.go_back()
    page.get_by_role("heading", name="New check").wait_for()
    settle(page)
    assert "run" not in page.url
    expect(page.get_by_label("Text to check")).to_have_value(WRONG)
    expect(page.get_by_text(re.compile("1 source: cats.txt"))).to_be_visible()
    page.go_forward()
    verdict(page)
