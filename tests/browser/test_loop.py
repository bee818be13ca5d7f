"""The loop in one line: correct → retrain → activate → check again → roll back, in the browser."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

from core.store import open_store
from core.store.versions import SEED_VERSION
from tests.browser.conftest import settle, verdict
from tests.browser.serving import Server
from tests.learning.corrected import CLAIMS, TEXT, correct_claims

TRAINING_SECONDS = 400


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.xdist_group("browser")
@pytest.mark.timeout(600)
def test_a_correction_teaches_the_next_check_and_can_be_taken_back(
    make_server: Callable[..., Server], open_page: Callable[..., Page]
) -> None:
    server = make_server()
    *known, (claim, _) = CLAIMS[:8] + CLAIMS[9:17]
    correct_claims(server.home, known)
    page = open_page(server, "/retrain")
    expect(page.get_by_role("button", name="Retrain")).to_be_disabled()
    page.get_by_role("link", name="New check").click()
    page.get_by_label("What should be checked").fill(claim)
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(
        {"name": "n.txt", "mimeType": "text/plain", "buffer": TEXT.encode()}
    )
    page.get_by_text(re.compile("characters")).first.wait_for()
    page.get_by_role("button", name=re.compile("^Check.*Enter")).click()
    assert verdict(page).endswith("Hallucinated")
    run = page.url.removeprefix(server.url)
    page.keyboard.press("Alt+2")
    page.get_by_role("button", name=re.compile("^Save")).wait_for()
    settle(page)
    page.keyboard.press("Control+Enter")
    page.get_by_text("said hallucinated").first.wait_for()
    page.get_by_role("link", name="Retrain").click()
    start = page.get_by_role("button", name="Retrain")
    expect(start).to_be_enabled()
    start.click()
    page.get_by_text(re.compile("so far")).first.wait_for()
    page.get_by_role("link", name="History").click()
    page.get_by_role("heading", name="History").wait_for()
    page.get_by_role("link", name="Retrain").click()
    page.get_by_role("button", name=re.compile("Activate")).wait_for(
        timeout=TRAINING_SECONDS * 1000
    )
    settle(page)
    reason = page.get_by_label("Reason for activating it all the same")
    if reason.count():
        reason.fill("to see the difference")
        reason.press("Enter")
        settle(page)
    page.get_by_role("button", name=re.compile("Activate")).click()
    page.get_by_role("button", name=re.compile("Roll back")).wait_for()
    page.goto(server.url + run)
    page.get_by_role("button", name=re.compile("^Check again")).click()
    page.wait_for_url(lambda url: url.startswith(server.url) and not url.endswith(run))
    verdict(page)
    page.get_by_role("link", name="Side by side with the check before").click()
    page.get_by_text(re.compile(f"Classifier: {SEED_VERSION} before, v")).wait_for()
    expect(page.locator(".cp-verdict")).to_have_count(2)
    page.get_by_role("link", name="Retrain").click()
    page.get_by_role("button", name=re.compile("Roll back")).click()
    page.get_by_text(f"{SEED_VERSION} is active").wait_for()
    with open_store(server.home) as store:
        assert store.versions.active() == SEED_VERSION
        assert store.versions.activations()[0].version_id == SEED_VERSION
        assert len(store.versions.activations()) == 2
