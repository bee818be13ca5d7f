"""A newcomer with no key: four clicks to a live debate by a real model on this computer."""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from core.llm.local_server import find_weights
from tests.browser.conftest import settle
from tests.browser.test_with_models import plain_server

pytestmark = [
    pytest.mark.skipif(find_weights() is None, reason="`make local-model` was not run"),
]
OpenPage = Callable[..., Page]


def children(parent: int) -> list[int]:
    """The model's servers that a process has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            own = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            command = (folder / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if own == parent and b"core.llm.local_server" in command:
            found.append(int(folder.name))
    return found


@pytest.mark.timeout(900)
def test_from_an_empty_home_to_a_live_debate_that_survives_its_server(
    open_page: OpenPage, tmp_path: Path
) -> None:
    server = plain_server(tmp_path / "home")
    server.start()
    try:
        page = open_page(server)
        settle(page)
        page.get_by_role("link", name="Settings").click()  # 1
        box = page.locator(".st-key-local_models-use-box button")
        box.click()  # 2
        expect(page.get_by_text(re.compile("New checks use"))).to_be_visible()
        expect(page.get_by_text(re.compile("smollm2-135m: judge test")).first).to_be_visible(
            timeout=300_000
        )
        page.get_by_role("link", name="New check").click()  # 3
        settle(page)
        expect(page.get_by_text(re.compile("expected time"))).to_have_count(0)
        page.get_by_role("button", name="Check it").first.click()  # 4
        stage = page.locator(".st-key-run-stage")
        writer = stage.get_by_text(re.compile(r"Context writer \(smollm2-135m\) is writing: about"))
        expect(writer).to_be_visible(timeout=120_000)
        expect(stage).to_contain_text("Sharing out the evidence")
        before = writer.inner_text()
        expect(writer).not_to_have_text(before)
        page.locator(".cp-caret").first.wait_for(timeout=120_000)
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_text(re.compile("stopped", re.IGNORECASE)).first).to_be_visible()
        page.get_by_role("button", name="Resume").click()
        debater = re.compile(r"Debater \w+ \(smollm2-135m\) (is writing|has about)")
        expect(stage.get_by_text(debater).first).to_be_visible(timeout=120_000)
        expect(stage).to_contain_text("Debating")
        page.locator(".cp-caret").first.wait_for(timeout=120_000)
        assert server.process is not None
        (model,) = children(server.process.pid)
        os.kill(model, signal.SIGKILL)
        # A stream that had begun is told of and can be resumed; else the call starts a new server.
        resume = page.get_by_role("button", name="Resume")
        until = time.monotonic() + 120
        while children(server.process.pid) in ([], [model]):
            assert time.monotonic() < until, "no new server was started"
            if resume.is_visible() and not page.get_by_role("button", name="Stop").is_visible():
                expect(
                    page.get_by_text(re.compile("broke off|cannot be reached")).first
                ).to_be_visible()
                resume.click()
                settle(page)
            page.wait_for_timeout(250)
    finally:
        server.dump_and_kill()
