"""A comparison in a real browser: runs under way, gone away from, come back to, all stopped."""

from __future__ import annotations

import re
from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import settle
from tests.browser.serving import Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]


def test_a_comparison_is_left_found_again_and_stopped(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site(pace=2.0), "/compare")
    text = page.get_by_label("Text to check")
    text.fill("The tower is 512 m tall.")
    text.press("Control+Enter")
    settle(page)
    protocols = page.get_by_role("combobox", name=re.compile("Protocols"))
    protocols.fill("Ensemble")
    protocols.press("Enter")
    protocols.press("Escape")
    settle(page)
    page.get_by_role("button", name="Compare", exact=True).press("Enter")
    under_way = page.get_by_text(re.compile(r"[123] of 3 under way"))
    under_way.wait_for(timeout=60_000)
    address = page.url
    page.get_by_role("link", name="History").click()
    expect(page.get_by_text("3 runs")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(address)
    under_way.wait_for()
    page.get_by_role("link", name="New comparison").click()
    page.get_by_role("link", name=re.compile("The tower is 512 m tall")).click()
    under_way.wait_for()
    page.get_by_role("button", name="Stop all").press("Enter")
    under_way.wait_for(state="detached")
    rows = page.locator('[data-testid="stDataFrame"] canvas').first
    for _ in range(2):  # it stays so
        expect(rows).to_contain_text("Stopped")
        expect(rows).not_to_contain_text("Waiting")
        page.reload()
