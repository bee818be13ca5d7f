"""The whole loop in the browser: check → correct → retrain → promote → right → roll back."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.store import open_store
from core.store.versions import SEED_VERSION
from tests.browser.conftest import click_until, settle, verdict
from tests.browser.serving import Site
from tests.learning.recorded_runs import overturn, overturned

TRAINING_SECONDS = 400
STEPS = "24"  # enough to tell years from heights; a step takes seconds


@pytest.mark.timeout(600)
def test_corrections_overturn_the_next_verdict_of_their_kind_and_can_be_taken_back(
    make_site: Callable[..., Site], open_page: Callable[..., Page]
) -> None:
    server = make_site()
    *known, last = overturned()[4:]
    overturn(server.home, known)
    page = open_page(server)
    page.get_by_role("link", name="New check").click()
    page.get_by_label("Text to check").fill(last.claim)
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(
        {"name": last.name, "mimeType": "text/plain", "buffer": last.text.encode()}
    )
    page.get_by_text(re.compile("characters")).first.wait_for()
    page.get_by_role("button", name=re.compile("^Check.*Enter")).click()
    assert verdict(page).endswith("Hallucinated")
    run = page.url.removeprefix(server.url)
    page.keyboard.press("Alt+1")
    expect(page.get_by_label(re.compile("^Reason"))).to_be_focused()
    settle(page)
    page.keyboard.type("the foundation stone counts")
    page.keyboard.press("Control+Enter")
    page.get_by_text("said supported").first.wait_for()

    page.get_by_role("link", name="Retrain").click()
    start = page.get_by_role("button", name="Retrain", exact=True)
    expect(start).to_be_enabled()
    steps = page.get_by_role("spinbutton", name="Steps at most")
    click_until(page, page.get_by_text("Options", exact=True), steps)
    steps.fill(STEPS)
    steps.press("Enter")
    settle(page)
    start.click()
    page.get_by_text(re.compile("so far")).first.wait_for()
    page.get_by_role("link", name="History").click()
    page.get_by_role("heading", name="History").wait_for()
    page.get_by_role("link", name="Retrain").click()
    page.get_by_text("Which cases changed sides").first.wait_for(timeout=TRAINING_SECONDS * 1000)
    settle(page)
    reason = page.get_by_label(re.compile("^Reason")).first
    reason.fill("it has learned what we count")
    reason.press("Enter")
    settle(page)
    page.get_by_role("button", name="Activate").click()
    page.get_by_role("button", name="Roll back to this").wait_for()

    # what people taught overrules the judge, so that the two leave it open
    assert checked_again(page, server.url + run) == "Unclear", "it was taught"
    taught = page.url
    page.get_by_role("link", name="Compare with the previous check").click()
    page.get_by_text(re.compile(f"Classifier: {SEED_VERSION} before, v")).wait_for()
    page.get_by_role("link", name="Retrain").click()
    page.get_by_role("button", name="Roll back to this").click()
    page.get_by_text(f"{SEED_VERSION} is active").wait_for()
    assert checked_again(page, taught) == "Hallucinated", "it was rolled back"
    page.get_by_role("link", name="Retrain").click()
    page.get_by_role("button", name="Score old runs again").click()
    page.get_by_role("button", name="Score 1 run").click()
    page.get_by_text(f"1 run scored again by {SEED_VERSION}; 1 got another label").wait_for()
    with open_store(server.home) as store:
        assert store.versions.active() == SEED_VERSION
        assert store.versions.activations()[1].reason == "it has learned what we count"
        assert len(store.versions.activations()) == 2


def checked_again(page: Page, run: str) -> str:
    """What the machine says in a new check of the run's case, of which a person's verdict leads."""
    page.goto(run)
    page.get_by_role("button", name=re.compile("^Check again")).click()
    page.wait_for_url(lambda url: "run=" in url and url != run)
    assert verdict(page).endswith("Supported")
    machine = page.locator("summary").filter(has_text="The machine:").first.inner_text()
    return next(label for label in ("Unclear", "Hallucinated", "Supported") if label in machine)
