"""A stored debate before a room: the speaker in view, the verdict at the end, small controls."""

from __future__ import annotations

import re
import time
from collections.abc import Callable

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import check_prepared, settle, verdict
from tests.browser.serving import Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
PATIENCE = 60.0
IN_VIEW = """element => {
  const place = element.getBoundingClientRect();
  return place.top >= 0 && place.bottom <= window.innerHeight;
}"""


def soon_in_view(element: Locator) -> bool:
    """True once the page has scrolled to the element; a busy machine takes its time."""
    end = time.monotonic() + PATIENCE
    while not element.evaluate(IN_VIEW):
        if time.monotonic() > end:
            return False
        element.page.wait_for_timeout(100)
    return True


def opened(page: Page) -> None:
    """The replay of the prepared long response."""
    check_prepared(page, 1)
    verdict(page)
    page.get_by_role("link", name="Replay the debate").click()
    page.get_by_role("heading", name="Replay").wait_for()
    settle(page)


@pytest.mark.journey
def test_the_speaker_stays_in_view_and_the_marked_response_ends_the_play(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site(), viewport={"width": 900, "height": 480})
    opened(page)
    page.get_by_role("button", name="Full screen").click()
    page.get_by_role("button", name="Leave full screen").wait_for()
    controls = page.locator(".st-key-replay-controls")
    assert controls.evaluate("element => element.offsetHeight") < 80, "the debate comes first"
    assert controls.evaluate(IN_VIEW)
    turns = page.locator(".cp-turn")
    for number in range(1, 4):
        page.keyboard.press("Control+ArrowRight")
        expect(turns).to_have_count(number)
        assert soon_in_view(turns.last), f"turn {number} is out of sight"
    page.get_by_role("button", name=re.compile("^Play")).click()
    page.get_by_role("button", name=re.compile("^Pause")).wait_for()
    page.get_by_text("4×", exact=True).click()
    for name in ("Play", "Pause"):  # keys of the page, though a choice button has the focus
        page.keyboard.press("Control+Space")
        page.get_by_role("button", name=re.compile(f"^{name}")).wait_for()
        settle(page)
    page.locator(".cp-verdict").wait_for(timeout=60_000)
    page.get_by_role("button", name=re.compile("^Play")).wait_for()
    settle(page)
    assert soon_in_view(page.locator(".cp-text .cp-mark").first)
    expect(page.locator(".cp-text")).to_have_count(1)
    last, end = turns.last.bounding_box(), page.locator(".cp-verdict").bounding_box()
    assert last
    assert end
    assert end["y"] >= last["y"] + last["height"], "the verdict comes after the debate"
    assert page.get_by_text(re.compile("^Replay · ")).evaluate(IN_VIEW), "marked as a replay"


def test_who_scrolls_away_is_left_alone(make_site: MakeSite, open_page: OpenPage) -> None:
    page = open_page(make_site(), viewport={"width": 900, "height": 420})
    opened(page)
    for number in range(1, 3):
        page.keyboard.press("Control+ArrowRight")
        expect(page.locator(".cp-turn")).to_have_count(number)
        settle(page)
    page.keyboard.press("Control+Space")
    page.get_by_role("button", name=re.compile("^Pause")).wait_for()
    main = page.locator('[data-testid="stMain"]')
    page.mouse.move(600, 300)
    page.mouse.wheel(0, -3000)
    page.wait_for_timeout(2500)
    assert main.evaluate("element => element.scrollTop") == 0
    settle(page)
    page.keyboard.press("Control+ArrowRight")
    page.wait_for_timeout(1500)
    assert main.evaluate("element => element.scrollTop") > 0, "who steps wants to see it"
