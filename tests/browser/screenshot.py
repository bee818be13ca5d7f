"""Takes README's picture: `python -m tests.browser.screenshot` writes docs/run.png."""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.serving import FLAGS, ROOT, Server
from tests.needs import chromium

SHOWN = ROOT / "docs" / "run.png"


def main() -> int:
    """Check the prepared long response and take the picture of its run, the debate open."""
    with sync_playwright() as play, tempfile.TemporaryDirectory() as folder:
        browser = play.chromium.launch(executable_path=chromium(), args=FLAGS)
        server = Server(Path(folder) / "home", module=("components.app.launch", "--port"))
        try:
            server.start()
            page = browser.new_page(viewport={"width": 1280, "height": 2100})
            page.goto(server.url)
            page.get_by_role("button", name="Check it").nth(1).click()
            page.locator(".cp-verdict-label").wait_for(timeout=60_000)
            page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
            page.get_by_role("tab", name=re.compile("Debate")).click()
            page.get_by_role("heading", name="Run").first.scroll_into_view_if_needed()
            page.wait_for_timeout(500)
            SHOWN.parent.mkdir(exist_ok=True)
            page.screenshot(path=SHOWN)
        finally:
            server.kill()
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
