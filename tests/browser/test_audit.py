"""A mixed response audited with mouse and keyboard: a sum worked out, what reflection changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import open_way, settle, verdict
from tests.browser.serving import Server

pytestmark = [pytest.mark.browser, pytest.mark.xdist_group("browser")]
MakeServer = Callable[..., Server]
OpenPage = Callable[..., Page]
FACTS = "The Orrin bridge is 412 m long. It was opened in 1931."
RESPONSE = (
    "The Orrin bridge is 412 m long. The walk across took 2 + 3 = 6 hours. "
    "So all 6 hours were paid for."
)
IN_VIEW = """element => {
  const place = element.getBoundingClientRect();
  return place.top >= 0 && place.bottom <= window.innerHeight;
}"""


def audit(page: Page, tmp_path: Path) -> None:
    """Choose to audit, type the response, give a source, press Check, wait for the verdict."""
    path = tmp_path / "bridge.txt"
    path.write_text(FACTS)
    open_way(page)
    page.get_by_role("combobox", name=re.compile("How to check")).click()
    page.get_by_role("option", name=re.compile("^Audit")).click()
    expect(page.get_by_text(re.compile("fits a long response"))).to_be_visible()
    page.get_by_label("Text to check").fill(RESPONSE)
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(path)
    page.get_by_text(re.compile(r"characters")).first.wait_for(timeout=60_000)
    page.get_by_role("button", name=re.compile("Check.*Enter")).click()
    assert verdict(page).endswith("Hallucinated")


def test_an_audited_response_is_read_statement_by_statement(
    make_server: MakeServer, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(make_server(), viewport={"width": 1000, "height": 500})
    audit(page, tmp_path)
    rows = page.locator("summary.cp-row")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("2 + 3 = 6")
    expect(rows.nth(0).locator("mark")).to_have_text("6")
    expect(rows.nth(1)).to_contain_text("So all 6 hours")
    expect(rows.nth(2)).to_contain_text("Supported")
    # With the keyboard: the row opens on the sum, and closes.
    rows.nth(0).focus()
    page.keyboard.press("Enter")
    first = page.locator("details.cp-statement:has(summary.cp-row)").nth(0)
    expect(first.get_by_text("2 + 3 = 6 ✗")).to_be_visible()
    expect(first.get_by_text("It comes to 5.")).to_be_visible()
    page.keyboard.press("Enter")
    expect(first.get_by_text("It comes to 5.")).to_be_hidden()
    # What rests on the wrong sum was changed by reflection, which says because of what.
    rows.nth(1).click()
    second = page.locator("details.cp-statement:has(summary.cp-row)").nth(1)
    expect(
        second.get_by_text(re.compile("→.*Hallucinated.*Because of statement 2"))
    ).to_be_visible()
    # A link leads to the statement's words in the response.
    words = page.locator("#cp-statement-3")
    assert not words.evaluate(IN_VIEW)
    second.get_by_role("link", name="Show statement 3 in the response").click()
    expect(page.locator(".cp-part:target")).to_have_text(re.compile("^So all 6 hours"))
    assert words.evaluate(IN_VIEW)


def test_a_narrow_page_shows_the_same_without_scrolling_sideways(
    make_server: MakeServer, open_page: OpenPage, tmp_path: Path
) -> None:
    page = open_page(make_server(), viewport={"width": 390, "height": 800})
    audit(page, tmp_path)
    for row in page.locator("summary.cp-row").all():
        row.click()
    settle(page)
    main = page.locator('[data-testid="stMain"]')
    assert main.evaluate("element => element.scrollWidth <= element.clientWidth")
    expect(page.get_by_text("It comes to 5.").first).to_be_visible()
