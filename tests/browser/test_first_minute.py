"""A newcomer's first minute: a verdict in few clicks, a tour, and pages filled by a sample."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable
from contextlib import closing

from playwright.sync_api import Page, expect

from tests.browser.conftest import choose, open_way, settle, verdict
from tests.browser.serving import Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
SMALL = {"width": 1280, "height": 800}
BELONGINGS = ("cases", "runs", "corrections", "library", "events")


class Clicks:
    """Clicks, counted."""

    def __init__(self, page: Page) -> None:
        self.page, self.count = page, 0

    def press(self, name: str) -> None:
        self.page.get_by_role("button", name=re.compile(name)).first.click()
        self.count += 1


def belongings(server: Site) -> int:
    """How many rows there are of a person's own data."""
    with closing(sqlite3.connect(server.home / "counterpoint.db")) as db:
        return sum(db.execute(f"SELECT count(*) FROM {name}").fetchone()[0] for name in BELONGINGS)


def test_new_check_fits_a_small_screen_and_three_clicks_lead_to_a_verdict(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site(), viewport=SMALL)
    settle(page)
    clicks = Clicks(page)
    for name in ("Check.*Enter", "Check it", "Take the tour", "Open the sample project"):
        box = page.get_by_role("button", name=re.compile(name)).last.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= SMALL["height"], f"“{name}” is seen without scrolling"
    clicks.press("Check it")
    assert verdict(page).endswith("Hallucinated")
    assert clicks.count <= 3


def test_the_line_with_protocol_and_models_opens_and_says_what_was_chosen(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site(), viewport=SMALL)
    settle(page)
    line = page.locator(".st-key-new-way summary")
    expect(line).to_contain_text("Debate in turn (CEDA) · built-in, runs on this computer")
    expect(page.get_by_role("combobox", name="How to check")).to_be_hidden()
    open_way(page)
    choose(page, page.get_by_role("combobox", name="How to check"), "Single judge")
    expect(line).to_contain_text("Single judge · built-in")
    expect(page.get_by_role("combobox", name="Models")).to_be_visible()


def test_the_tour_leaves_no_trace_and_the_sample_survives_a_reload(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    page = open_page(server, viewport=SMALL)
    settle(page)
    page.get_by_label("Text to check").fill("half a sentence")
    clicks = Clicks(page)
    clicks.press("Take the tour")
    expect(page.get_by_text("1 of 5")).to_be_visible(timeout=60_000)
    expect(page.get_by_label("Text to check")).to_have_value(re.compile("512 m"))
    for step in (2, 3, 4):
        clicks.press("Next")
        expect(page.get_by_text(f"{step} of 5")).to_be_visible()
    assert verdict(page).endswith("Hallucinated")
    page.reload()
    assert verdict(page).endswith("Hallucinated")
    expect(page.get_by_text("Sample project:")).to_be_visible()
    clicks.press("Leave")
    expect(page.get_by_role("heading", name="New check")).to_be_visible()
    expect(page.get_by_label("Text to check")).to_have_value("half a sentence")
    assert belongings(server) == 0
    clicks.press("Open the sample project")
    expect(page.get_by_role("heading", name="Review", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("of 40 claims so far"))).to_be_visible()
    clicks.press("Remove it")
    clicks.press("^Remove$")
    expect(page.get_by_role("heading", name="New check")).to_be_visible()
    assert not (server.home / "sample").exists()
