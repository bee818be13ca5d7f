"""A prompt that is being edited outlives whatever becomes of the page."""

from __future__ import annotations

from collections.abc import Callable

from playwright.sync_api import Page, expect

from tests.browser.conftest import settle, until_kept
from tests.browser.serving import Site

MakeSite = Callable[..., Site]
OpenPage = Callable[..., Page]


def typed(page: Page, words: str) -> None:
    """Put words at the prompt's end; the cursor stays there."""
    page.get_by_label("Text", exact=True).click()
    page.keyboard.press("Control+End")
    page.keyboard.type(words)


def open_prompts(page: Page) -> None:
    """Open the tab, which is not the first after the page was left."""
    page.get_by_role("tab", name="Prompts").click()
    page.get_by_label("Text", exact=True).wait_for()
    settle(page)


def there_and_back(page: Page) -> None:
    page.get_by_role("link", name="Settings").click(delay=90)  # as long as a person presses it
    page.get_by_role("heading", name="Settings").wait_for()
    page.get_by_role("link", name="Project").click()
    open_prompts(page)


def test_nothing_typed_into_a_prompt_is_lost(make_site: MakeSite, open_page: OpenPage) -> None:
    server = make_site()
    page = open_page(server, "/settings")
    page.get_by_role("link", name="Project").click()
    open_prompts(page)
    field = page.get_by_label("Text", exact=True)
    ours = field.input_value()
    typed(page, "One. ")
    there_and_back(page)
    expect(field).to_have_value(ours + "One. ")
    typed(page, "Two. ")
    until_kept(page, server, "One. Two. ")  # a pause in typing; the field has not been left
    page.go_back()
    page.get_by_role("heading", name="Settings").wait_for()
    page.go_forward()
    open_prompts(page)
    expect(field).to_have_value(ours + "One. Two. ")
    settle(page)
    typed(page, "Three.")
    until_kept(page, server, "Two. Three.")
    page.reload()
    open_prompts(page)
    expect(field).to_have_value(ours + "One. Two. Three.")
    settle(page)
    page.get_by_role("button", name="Save prompt").click()
    expect(page.get_by_text("In use: edited by")).to_be_visible()
    expect(page.get_by_text("Changed, not saved")).to_have_count(0)
    expect(field).to_have_value(ours + "One. Two. Three.")
