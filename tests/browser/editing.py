"""What tests of both editors share: the page, its keys, and what Python was told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page

from tests.browser.serving import Server


def editors_server(folder: Path) -> Iterator[Server]:
    """One server for all texts and images: each has a name of its own."""
    (folder / "home" / "documents").mkdir(parents=True)
    server = Server(folder / "home", module=("tests.browser.editors_server",))
    server.start()
    yield server
    server.kill()


class EditorPage:
    """An editor on a page; its keys reach the part that the selector names."""

    def __init__(self, page: Page, out: Path, part: str) -> None:
        self.page = page
        self.part = page.locator(part)
        self._out = out
        self.part.wait_for()

    def press(self, *keys: str) -> None:
        """Press keys while the editor has the focus."""
        self.part.focus()
        for key in keys:
            self.page.keyboard.press(key)

    def told(self, revision: int) -> dict[str, Any]:
        """What Python holds once it has heard of that revision."""
        self.page.wait_for_timeout(100)
        for _ in range(1200):
            if self._out.is_file():
                told: dict[str, Any] = json.loads(self._out.read_text())
                if told["revision"] >= revision:
                    return told
            self.page.wait_for_timeout(50)
        raise AssertionError(f"revision {revision} never arrived")
