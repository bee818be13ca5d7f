"""A real server and a real Chromium for each journey."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from components.app.login import COOKIE
from core.store import open_store
from tests.browser.serving import FLAGS, HOME_COOKIE, ROOT, Server, Site, free_port
from tests.fakes import get_last_person
from tests.needs import chromium, need

LOG_SHOWN = 6000
LONGEST_WAIT = 60_000  # milliseconds for whatever a page is to show
PATIENCE = 300
"""Seconds for a journey: on a busy machine a server alone can take 60 of them to start."""
SHOTS = ROOT / "test-results"
IS_IDLE = """began => {
  const isIdle = document.querySelector('[data-test-script-state="notRunning"]');
  const { idle } = window, now = performance.now();
  window.idle = isIdle ? { began, since: idle?.began === began ? idle.since : now } : null;
  return window.idle !== null && now - window.idle.since >= 200;
}"""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests here; those that are no person's journey are slow. Give them time."""
    here = Path(__file__).parent
    for item in items:
        if here not in item.path.parents:
            continue
        item.add_marker(pytest.mark.timing)
        if item.get_closest_marker("journey") is None:
            item.add_marker(pytest.mark.slow)
        if item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE))


@pytest.fixture(autouse=True)
def _without_weights(without_weights: None) -> None:
    """Runs that a test makes itself read as those of the paced server do."""


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = chromium()
    need(bool(path), "a Chromium for browser tests (set CHROMIUM or install the package chromium)")
    expect.set_options(timeout=LONGEST_WAIT)
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server of all tests that neither kill nor configure one."""
    server = Server(tmp_path_factory.mktemp("shared") / "home")
    server.start()
    yield server
    server.kill()


@pytest.fixture
def make_site(shared_server: Server, tmp_path: Path) -> Iterator[Callable[..., Site]]:
    """Makes homes on the shared server; beside a failure, shows what the server wrote."""
    if shared_server.process is None or shared_server.process.poll() is not None:
        shared_server.start()  # a test before this one brought it down
    before = shared_server.log.stat().st_size

    def make(pace: float = 0.0, name: str = "home") -> Site:
        site = Site(tmp_path / name, shared_server.url)
        site.set_pace(pace)
        return site

    yield make
    shared_server.dump_threads()
    print(shared_server.log.read_bytes()[before:].decode()[-LOG_SHOWN:])  # noqa: T201


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts server processes of the test's own, which are killed at its end."""
    servers: list[Server] = []

    def make(pace: float = 0.0, port: int = 0, account: Path | None = None) -> Server:
        server = Server(tmp_path / "home", port=port or free_port(), account=account)
        server.set_pace(pace)
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        written = server.log.read_text()  # before its threads' places push it out of sight
        server.dump_and_kill()
        print(written[-LOG_SHOWN:], server.log.read_text()[len(written) :][-LOG_SHOWN:])  # noqa: T201


@pytest.fixture
def open_page(
    browser: Browser, request: pytest.FixtureRequest, make_server: Callable[..., Server]
) -> Iterator[Callable[..., Page]]:
    """Opens pages that complain about any request that leaves this machine.

    Needs the servers, so that the last pictures are taken while they still answer.
    """
    contexts: list[BrowserContext] = []
    strangers: list[str] = []

    def opened(
        server: Site, path: str = "/", beside: str = "", *, is_new: bool = False, **options: Any
    ) -> Page:
        """`beside` is the address of another server of ours that the page may be sent to.

        The browser remembers the name that was last given in the home, unless it `is_new`.
        """
        values: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}} | options
        context = browser.new_context(**values)
        contexts.append(context)
        choose_home(context, server)
        if not is_new:
            with open_store(server.home) as store:
                name = quote(get_last_person(store), safe="")
            context.add_cookies([{"name": COOKIE, "value": name, "url": server.url}])
        page = context.new_page()
        page.set_default_timeout(LONGEST_WAIT)

        known = (
            server.url,
            "data:",
            "blob:",
            server.url.replace("http", "ws"),
            beside or server.url,
        )

        def noted(url: str) -> None:
            if not url.startswith(known):
                strangers.append(url)

        page.on("request", lambda r: noted(r.url))
        page.goto(server.url + path)
        return page

    yield opened
    SHOTS.mkdir(exist_ok=True)
    for number, context in enumerate(contexts):
        for page in context.pages:
            page.screenshot(path=SHOTS / f"{request.node.name}-{number}.png")
        context.close()
    assert strangers == [], "the page asked somebody else for something"


def choose_home(context: BrowserContext, site: Site) -> None:
    """Make the browser work in this home of the shared server."""
    value = quote(str(site.home), safe="")
    context.add_cookies([{"name": HOME_COOKIE, "value": value, "url": site.url}])


def settle(page: Page) -> None:
    """Wait until no script has been running for a fifth of a second."""
    page.wait_for_function(IS_IDLE, arg=time.monotonic(), polling=25)


def until_kept(page: Page, server: Site, words: str) -> None:
    """Wait, at most a minute, until the server has kept a draft that holds these words.

    A pause in typing has no length of its own: a machine that does much else takes longer to tell.
    """
    for _ in range(2400):
        page.wait_for_timeout(25)
        with closing(sqlite3.connect(server.home / "counterpoint.db")) as db:
            drafts = db.execute("SELECT value FROM settings WHERE name LIKE 'note.draft.%'")
            kept = [json.loads(json.loads(text) or "{}") for (text,) in drafts]
        if any(words in str(value) for draft in kept for value in draft.values()):
            return
    raise AssertionError(f"no draft was kept that holds {words!r}")


def check_prepared(page: Page, place: int = 0) -> None:
    """Check one of the prepared cases, by its key: a click would fall beside a page still drawn."""
    page.get_by_role("button", name="Check it").first.wait_for()
    settle(page)
    page.get_by_role("button", name="Check it").nth(place).press("Enter")


def click_until(page: Page, target: Locator, shown: Locator) -> None:
    """Click until something is shown: a redraw of the page may take back what a click did."""
    for _ in range(10):
        settle(page)
        if shown.is_visible():
            return
        target.click()
        with contextlib.suppress(PlaywrightTimeoutError):
            shown.wait_for(timeout=3000)
    raise AssertionError(f"no click showed {shown}")


def open_way(page: Page) -> None:
    """Open New check's line with protocol and models."""
    line = page.locator(".st-key-new-way summary")
    click_until(page, line, page.get_by_role("combobox", name="Models"))
    settle(page)


def choose(page: Page, box: Locator, option: str | re.Pattern[str]) -> None:
    """Choose from a list, which a redraw of the page may close while it is being opened."""
    wanted = page.get_by_role("option", name=option)
    for _ in range(10):
        settle(page)
        box.click()
        try:
            wanted.click(timeout=3000)
        except PlaywrightTimeoutError:
            page.keyboard.press("Escape")
        else:
            settle(page)
            return
    raise AssertionError(f"the list never showed {option!r}")


def verdict(page: Page) -> str:
    """The verdict's label once it is there."""
    shown = page.locator(".cp-verdict-label").first
    shown.wait_for(timeout=90_000)
    settle(page)
    return shown.inner_text()
