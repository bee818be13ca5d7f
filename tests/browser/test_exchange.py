"""A small file comes in through the page in a real browser, and goes out again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from playwright.sync_api import Page

from tests.browser.conftest import settle
from tests.browser.serving import Server

MakeServer = Callable[..., Server]
OpenPage = Callable[..., Page]
TEXT = "👩‍👩‍👧 The tower is old."


def test_a_file_comes_in_and_goes_out(
    make_server: MakeServer, open_page: OpenPage, tmp_path: Path
) -> None:
    span = {"start": TEXT.index("tower"), "end": TEXT.index("tower") + 5, "text": "tower"}
    rows = tmp_path / "rows.jsonl"
    row = {"id": "a", "response": TEXT, "label": "hallucinated", "spans": [span]}
    rows.write_text(json.dumps(row) + "\nbroken\n", encoding="utf-8")
    page = open_page(make_server(), "/exchange")
    page.locator('[data-testid="stFileUploader"] input[type=file]').first.set_input_files(rows)
    page.get_by_text("1 new, 0 known, 1 cannot be read").wait_for()
    settle(page)
    page.get_by_role("button", name="Import", exact=True).click()
    page.get_by_text("1 new case,").wait_for()
    settle(page)
    page.get_by_text("0 new, 1 known").wait_for()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Mu-SHROOM", exact=True).click()
    given = json.loads(Path(downloading.value.path()).read_text(encoding="utf-8"))
    assert given["id"] == "a"
    assert given["model_output_text"] == TEXT
    assert given["hard_labels"] == [[span["start"], span["end"]]]
