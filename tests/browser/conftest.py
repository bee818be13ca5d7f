"""A real server and a real Chromium for each journey."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from tests.needs import chromium, need

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 60
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-quic"]
SHOTS = ROOT / "test-results"


@dataclass
class Server:
    """A server process over a home; it can be killed and started again."""

    home: Path
    port: int
    pace: float
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it answers."""
        log = (self.home.parent / "server.log").open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.browser.paced_server", str(self.port)],
            cwd=ROOT,
            env=os.environ | {"COUNTERPOINT_HOME": str(self.home), "PACE": str(self.pace)},
            stdout=log,
            stderr=log,
        )
        log.close()
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise AssertionError((self.home.parent / "server.log").read_text())

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    path = chromium()
    need(bool(path), "a Chromium for browser tests (set CHROMIUM or install the package chromium)")
    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=path, args=FLAGS)
        yield opened
        opened.close()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture
def make_server(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """Starts servers that are killed at the end."""
    servers: list[Server] = []

    def make(pace: float = 0.0) -> Server:
        server = Server(tmp_path / "home", _free_port(), pace)
        servers.append(server)
        server.start()
        return server

    yield make
    for server in servers:
        server.kill()


@pytest.fixture
def open_page(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Callable[..., Page]]:
    """Opens pages that complain about any request that leaves this machine."""
    contexts: list[BrowserContext] = []
    strangers: list[str] = []

    def opened(server: Server, path: str = "/", **options: Any) -> Page:
        values: dict[str, Any] = {"viewport": {"width": 1280, "height": 900}} | options
        context = browser.new_context(**values)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)

        def noted(url: str) -> None:
            if not url.startswith((server.url, "data:", "blob:", server.url.replace("http", "ws"))):
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


def settle(page: Page) -> None:
    """Wait until the script has run to its end."""
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
    page.wait_for_timeout(250)
