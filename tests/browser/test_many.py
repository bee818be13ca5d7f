"""A table of claims in a real browser: from the form to its rows' runs and back again."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from tests.browser.serving import Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]

TABLE = (
    "claim,ticket,owner\nCats are mammals.,T-1,Ana\nCats sleep through most of the day.,T-2,Ben\n"
)


def with_a_table(page: Page) -> Page:
    """The page with the results of a table that was pasted."""
    page.get_by_label("Or paste it").fill(TABLE)
    page.get_by_label("Or paste it").press("Control+Enter")
    page.get_by_role("button", name="Check 2 rows").click()
    page.get_by_text("2 unclear").wait_for()
    return page


def choose_first_row(page: Page) -> None:
    """Click the first row's verdict; the table is drawn on a canvas, some time after the script."""
    table = page.locator('[data-testid="stDataFrame"]').first
    table.locator("canvas td").first.wait_for(state="attached")
    page.wait_for_timeout(1000)
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 130, box["y"] + 52)


def test_a_table_found_again_leads_to_its_rows_and_back(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = with_a_table(open_page(make_site(), "/batch"))
    expect(page).to_have_url(re.compile("batch="))
    page.get_by_role("link", name="All tables").click()
    page.get_by_role("heading", name="Earlier tables").wait_for()
    settle(page)
    page.get_by_role("link", name="pasted table").click()
    expect(page).to_have_url(re.compile("batch="))
    settle(page)
    choose_first_row(page)
    expect(page).to_have_url(re.compile("run="))
    page.get_by_text("Cats are mammals.").first.wait_for()
    settle(page)
    first = page.url
    page.get_by_role("button", name="Row 2").click()
    page.get_by_text("Cats sleep through most of the day.").first.wait_for()
    settle(page)
    assert page.url != first
    page.get_by_role("tab", name="Debate").click()  # whatever is drawn anew is of this row
    settle(page)
    page.get_by_text("Cats sleep through most of the day.").first.wait_for()
    page.keyboard.press("Alt+p")
    page.get_by_text("Cats are mammals.").first.wait_for()
    settle(page)
    page.get_by_role("link", name="The table").click()
    choose_first_row(page)
    page.get_by_text("Cats are mammals.").first.wait_for()
    settle(page)
    page.go_back()
    expect(page).to_have_url(re.compile("table.batch="))
    page.locator('[data-testid="stDataFrame"]').first.wait_for()


def test_back_leads_to_the_search_that_found_the_run(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = with_a_table(open_page(make_site(), "/batch"))
    page.get_by_role("link", name="History").click()
    search = page.get_by_role("textbox", name="Search")
    search.fill("mammals")
    search.press("Enter")
    page.get_by_text("1 run.").wait_for()
    settle(page)
    page.get_by_role("link", name="Cats are mammals.").click()
    page.get_by_text("Cats are mammals.").first.wait_for()
    settle(page)
    page.go_back()
    page.get_by_text("1 run.").wait_for()
    expect(search).to_have_value("mammals")
