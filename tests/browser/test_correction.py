"""Correcting from the keyboard, and what is typed there outlives the page."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.store import open_store
from tests.browser.conftest import check_prepared, click_until, settle, until_kept, verdict
from tests.browser.serving import Site, list_newest_corrections

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]
REASON = re.compile("^Reason")
ANSWER = "The right answer, if you know it"


def checked(page: Page) -> None:
    """Check the prepared case of the bridge, which is hallucinated."""
    check_prepared(page)
    assert verdict(page).endswith("Hallucinated")


def test_disagreeing_takes_two_keystrokes_and_a_reason(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    page = open_page(server)
    checked(page)
    page.keyboard.press("Alt+1")
    expect(page.get_by_label(REASON)).to_be_focused()
    settle(page)
    page.keyboard.type("measured with the approaches")
    page.keyboard.press("Control+Enter")
    page.get_by_text("measured with the approaches").first.wait_for()
    settle(page)
    with open_store(server.home) as store:
        corrections = list_newest_corrections(store)
    assert [(c.label, c.reason) for c in corrections] == [
        ("supported", "measured with the approaches")
    ]


def test_no_key_is_lost_between_the_shortcut_and_the_field(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    server = make_site()
    page = open_page(server)
    checked(page)
    settle(page)
    page.keyboard.press("Alt+2")
    page.keyboard.type("86 is right", delay=40)
    expect(page.get_by_label(REASON)).to_have_value("86 is right")
    page.keyboard.press("Control+Enter")
    page.get_by_text("86 is right").first.wait_for()
    settle(page)
    with open_store(server.home) as store:
        assert [c.reason for c in list_newest_corrections(store)] == ["86 is right"]


def test_what_is_typed_outlives_a_reload_until_it_is_saved(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    """Label, rejected mark, added mark, reason and answer; the last is never left before."""
    server = make_site()
    page = open_page(server)
    checked(page)
    page.keyboard.press("Alt+2")
    expect(page.get_by_label(REASON)).to_be_focused()
    settle(page)
    page.keyboard.type("it is")
    until_kept(page, server, "it is")
    page.keyboard.type(" longer")
    page.locator(".cp-se-text").focus()
    page.keyboard.press("x")
    expect(page.locator(".cp-se-said")).to_contain_text("Rejected: “512 m”")
    other = page.get_by_label("Other wrong words, exactly as written")
    click_until(page, page.get_by_text("Mark words by pasting them"), other)
    other.fill("1932")
    page.get_by_role("button", name="Mark", exact=True).click()
    marks = page.locator(".cp-se-list")
    expect(marks).to_contain_text("“1932”")
    settle(page)
    page.get_by_label(ANSWER).click()
    page.keyboard.type("412 m")
    expect(page.get_by_label(ANSWER)).to_be_focused()
    until_kept(page, server, "412 m")
    page.reload()
    verdict(page)
    expect(
        page.get_by_test_id("stBaseButton-primary").filter(has_text="hallucinated")
    ).to_be_visible()
    expect(page.get_by_label(REASON)).to_have_value("it is longer")
    expect(page.get_by_label(ANSWER)).to_have_value("412 m")
    expect(marks).to_contain_text("“1932”")
    expect(marks).not_to_contain_text("512 m")
    page.get_by_role("button", name=re.compile("^Save")).click()
    page.get_by_text("said hallucinated").wait_for()
    settle(page)
    with open_store(server.home) as store:
        (saved,) = list_newest_corrections(store)
    assert (saved.reason, saved.corrected_answer) == ("it is longer", "412 m")
    assert [span.text for span in saved.spans] == ["1932"]
    assert [span.text for span in saved.rejected] == ["512 m"]
    page.reload()
    verdict(page)
    page.get_by_text("said hallucinated").wait_for()
    expect(page.get_by_label(REASON)).to_have_count(0)


def test_what_is_typed_just_before_a_reload_outlives_it(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site())
    checked(page)
    page.keyboard.press("Alt+2")
    reason, kept = page.get_by_label(REASON), ""
    expect(reason).to_be_focused()
    for attempt in range(3):  # a run that is under way may be stopped together with its successor
        settle(page)
        reason.focus()
        page.keyboard.insert_text(f"{attempt}")
        page.reload()
        verdict(page)
        settle(page)
        if kept := reason.input_value():
            break
    assert kept in ("0", "1", "2")


def test_a_correction_leads_and_its_text_is_copied_with_the_changes_taken(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site(), permissions=["clipboard-read", "clipboard-write"])
    checked(page)
    settle(page)
    page.keyboard.press("Alt+2")
    expect(page.get_by_label(REASON)).to_be_focused()
    other = page.get_by_label("Other wrong words, exactly as written")
    click_until(page, page.get_by_text("Mark words by pasting them"), other)
    other.fill("1932")
    page.get_by_role("button", name="Mark", exact=True).click()
    words = page.get_by_role("textbox", name="“1932”: should say, if you know it")
    words.click()
    page.keyboard.type("1930", delay=60)
    expect(words).to_be_focused()
    settle(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("Confirmed by").wait_for()
    settle(page)
    assert page.locator(".cp-verdict-label").first.inner_text().startswith("Confirmed by ")
    expect(page.locator(".cp-text").first.locator("mark")).to_have_text(["512 m", "1932"])
    claim = "The Halden Bridge is 512 m long and was opened to traffic in "
    for copied in ("1930.", "1932."):  # taken, then left
        page.get_by_role("button", name="Apply corrections and copy").click()
        page.get_by_text("Copied.").wait_for()
        assert page.evaluate("navigator.clipboard.readText()") == claim + copied
        page.get_by_text("“1932” → “1930”", exact=True).click()
        page.get_by_text("Copied.").wait_for(state="hidden")
        settle(page)


@pytest.mark.parametrize(("width", "most"), [(1280, 5), (390, 8)])
def test_the_card_has_few_lines(
    make_site: MakeSite, open_page: OpenPage, width: int, most: int
) -> None:
    """The long response prepared for the first minute has several wrong statements."""
    page = open_page(make_site(), viewport={"width": width, "height": 800})
    check_prepared(page, 1)
    verdict(page)
    lines = page.locator(".cp-verdict").first.evaluate(
        """card => [...card.children].filter(e => e.className !== "cp-bar").reduce((n, e) => {
             const line = getComputedStyle(e).lineHeight, size = getComputedStyle(e).fontSize;
             return n + Math.round(e.offsetHeight / (parseFloat(line) || 1.5 * parseFloat(size)));
           }, 0)"""
    )
    assert 3 <= lines <= most


def test_a_quote_in_the_debate_opens_its_source_from_the_keyboard(
    make_site: MakeSite, open_page: OpenPage
) -> None:
    page = open_page(make_site())
    checked(page)
    page.get_by_role("tab", name="Debate").click()
    quotes = page.get_by_role("tabpanel").get_by_role("button", name=re.compile("^.*✓ “"))
    quotes.filter(visible=True).first.focus()
    page.keyboard.press("Enter")
    page.get_by_role("dialog").locator("img").first.wait_for()


def test_a_claim_that_was_typed_outlives_a_reload(make_site: MakeSite, open_page: OpenPage) -> None:
    page = open_page(make_site())
    field = page.get_by_label("Text to check")
    field.fill("The bridge is 512 m long.")
    field.press("Tab")
    page.wait_for_timeout(500)
    settle(page)
    page.reload()
    expect(field).to_have_value("The bridge is 512 m long.")
