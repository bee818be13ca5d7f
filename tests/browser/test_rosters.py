"""A roster is written seat by seat in a table, by keyboard, and outlives a look at another page."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from tests.browser.serving import Site

ROW = 35  # pixels of the table's heading and of each row


def test_a_seat_is_given_a_model_in_the_table(
    make_site: Callable[..., Site], open_page: Callable[..., Page]
) -> None:
    page = open_page(make_site(), "/settings")
    page.get_by_role("button", name="Make a copy").click()
    page.get_by_label("Name", exact=True).fill("Mine")
    table = page.get_by_test_id("stDataFrame")
    table.scroll_into_view_if_needed()
    settle(page)
    table.click(position={"x": 40, "y": ROW * 2 + 17})  # the second seat, the segmenter
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.locator(".gdg-input").wait_for()
    page.keyboard.type("openai/cutter", delay=20)
    page.keyboard.press("Enter")
    page.wait_for_timeout(1000)  # the table tells what was typed after a pause
    settle(page)
    page.get_by_role("link", name="Library").click(delay=90)
    page.get_by_role("heading", name="Library").wait_for()
    page.get_by_role("link", name="Settings").click()
    page.get_by_test_id("stDataFrame").wait_for()
    settle(page)
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("Saved “Mine”.")).to_be_visible()
    row = page.get_by_role("row").filter(has_text="Segmenter")
    expect(row).to_contain_text("openai/cutter")
