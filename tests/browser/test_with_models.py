"""The analyst with a key: a roster of models, its cost, a provider that fails, Resume."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.agents.rosters import make_single_model_roster
from core.store import open_store
from tests.browser.conftest import choose, open_way, settle
from tests.browser.serving import Server
from tests.llm.cast import Cast, judged, role_of
from tests.llm.loopback import Asked, Reply, loopback

OpenPage = Callable[..., Page]
CLAIM = "The tower is 512 m tall."
FACTS = "The tower is 412 m tall. It was opened in 1932."
KEY = "sk-only-for-this-session"
NAME = "HOUSE_API_KEY"


def plain_server(home: Path) -> Server:
    """The server as people start it."""
    return Server(home, module=("components.app.launch", "--port"))


def keep_roster(home: Path, base: str) -> None:
    """A roster of one model behind that address, which wants a key."""
    sheet = replace(make_single_model_roster("openai/loopback", base, NAME), name="house models")
    with open_store(home) as store, store.writing():
        store.rosters.save(sheet, "Mira", time.time())


def choose_roster(page: Page) -> None:
    open_way(page)
    models = page.get_by_role("combobox", name=re.compile("Models"))
    choose(page, models, re.compile("house models"))


def type_key(page: Page) -> None:
    field = page.get_by_label(NAME)
    field.fill(KEY)
    field.press("Enter")
    expect(page.get_by_role("button", name=f"Forget {NAME}")).to_be_visible()
    settle(page)


@pytest.mark.journey
def test_a_check_with_models_that_fails_in_the_middle_and_is_resumed(
    open_page: OpenPage, tmp_path: Path
) -> None:
    is_down = [True]

    def judge(_: Asked) -> Reply:
        return Reply(status=500, message="out of order") if is_down[0] else judged(0)

    said = 'DENY, WRONG. The source says "The tower is 412 m tall", not 512.'
    cast = Cast({"judge": judge, "debate": Reply(said, gap=0.05, piece=4)})
    home = tmp_path / "home"
    with loopback(cast) as models:
        keep_roster(home, models.base)
        server = plain_server(home)
        server.start()
        try:
            page = open_page(server)
            choose_roster(page)
            expect(page.get_by_text(re.compile(f"This model set needs {NAME}"))).to_be_visible()
            page.get_by_label("Text to check").fill(CLAIM)
            facts = tmp_path / "facts.txt"
            facts.write_text(FACTS)
            upload = page.locator('[data-testid="stFileUploader"] input[type=file]').first
            upload.set_input_files(facts)
            expect(page.get_by_text(re.compile("characters")).first).to_be_visible()
            expect(page.get_by_text(re.compile(r"about \d+ calls"))).to_be_visible()
            expect(page.get_by_text(re.compile("never more than"))).to_be_visible()
            page.get_by_role("button", name=re.compile("Check.*Enter")).click()
            expect(page.get_by_text(re.compile("Expected a key for house models"))).to_be_visible()
            assert not models.asked, "nothing is sent without the key"
            type_key(page)
            assert KEY not in page.content()
            page.get_by_role("button", name=re.compile("Check.*Enter")).click()
            # A cold server loads the engine and litellm first, beside another worker's tests.
            page.locator(".cp-caret").first.wait_for(timeout=60_000)
            resume = page.get_by_role("button", name="Resume")
            resume.wait_for(timeout=60_000)
            expect(
                page.get_by_text(re.compile("Judge .*loopback.*out of order")).first
            ).to_be_visible()
            expect(page.get_by_text(re.compile(r"Kept: .*turns?"))).to_be_visible()
            address = page.url
            before = len(models.asked)
            is_down[0] = False
            page.reload()  # another session: what was typed is gone
            page.get_by_role("button", name="Resume").click()
            expect(page.get_by_text(re.compile("Expected a key for house models"))).to_be_visible()
            type_key(page)
            page.get_by_role("button", name="Resume").click()
            # until the run has gone on, the page shows what the failed one left open
            shown = page.locator(".cp-verdict-label").first
            expect(shown).to_have_text("✗ Hallucinated", timeout=90_000)
            assert page.url == address
            assert {role_of(a) for a in models.asked[before:]} == {"judge", "spans"}
            page.get_by_role("tab", name="How it was checked").click()
            expect(page.get_by_text(re.compile("cost unknown")).first).to_be_visible()
            assert KEY not in page.content()
        finally:
            server.dump_and_kill()
    assert all(asked.bearer == KEY for asked in models.asked)
    for path in home.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes(), path
    assert KEY not in server.log.read_text()
