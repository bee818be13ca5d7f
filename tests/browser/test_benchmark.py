"""A benchmark from a table with odd columns to an error that somebody labels, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page, expect

from core.review.people import ensure_project
from core.store import open_store
from tests.browser.conftest import choose, click_until, settle, verdict
from tests.browser.serving import Site
from tests.evaluation.tiny_sets import FACTS

HEADER = "Antwort;Beleg;Urteil\n"


def test_a_benchmark_is_run_paused_resumed_and_its_error_labelled(
    make_site: Callable[..., Site], open_page: Callable[..., Page], tmp_path: Path
) -> None:
    with open_store(tmp_path / "home") as store:
        ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
    lines = [
        f"{claim} {n};{evidence} {n};{mark}\n"
        for n in range(9)
        for evidence, right, wrong in FACTS
        for claim, mark in ((right, "ja"), (wrong, "nein"))
    ]
    lines.append(f"{FACTS[0][1]};{FACTS[0][0]};nein\n")  # a wrong label: the engine will differ
    table = tmp_path / "odd.csv"
    table.write_text(HEADER + "".join(lines), encoding="utf-8")
    page = open_page(make_site(), "/benchmarks")
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(table)
    for label, column in (("Response", "Antwort"), ("Sources", "Beleg"), ("Label", "Urteil")):
        choose(page, page.get_by_role("combobox", name=label, exact=True).first, column)
    for value, meaning in (("ja", "Supported"), ("nein", "Hallucinated")):
        group = page.get_by_test_id("stButtonGroup").filter(has_text=f"“{value}” in Urteil means")
        group.get_by_text(meaning).click()
        settle(page)
    page.get_by_role("spinbutton", name="Rows to measure").fill("145")
    page.get_by_role("spinbutton", name="Rows to measure").press("Enter")
    page.get_by_role("button", name="Measure 2 systems on 145 rows").click()
    page.get_by_role("button", name="Pause").click()
    page.get_by_text("Paused.").wait_for()
    page.reload()
    page.get_by_role("button", name="Resume").click()
    page.get_by_text("Finished: 290 of 290 answers").wait_for(timeout=90_000)
    settle(page)
    expect(page.get_by_text("Wrong (1)")).to_be_visible()
    errors = page.locator('[class*="st-key-benchmark-errors"]').first
    errors.scroll_into_view_if_needed()
    errors.locator("canvas").first.click(
        position={"x": 18, "y": 52}, force=True
    )  # the first row's box
    page.get_by_role("button", name="Send 1 row to Review").click()
    page.get_by_text("1 row in the review queue").wait_for()
    settle(page)
    page.get_by_role("button", name="Open as a run").click()
    assert verdict(page) == "✓ Supported"
    page.go_back()
    page.get_by_role("link", name="Label it now").click()
    page.wait_for_function("window.counterpointKeys?.taker")
    settle(page)
    page.keyboard.press("s")
    page.keyboard.press("Control+Enter")
    page.get_by_text("Nothing else is waiting for you").wait_for()
    page.goto(page.url.split("/label")[0] + "/benchmarks")
    measure = page.get_by_role("button", name="Measure 2 systems on 1 row")
    click_until(page, page.get_by_text("Cases decided here"), measure)
    measure.click()
    page.get_by_text("Finished: 2 of 2 answers").wait_for()
    expect(page.get_by_text("Right (1)")).to_be_visible()
