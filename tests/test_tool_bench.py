"""What tools reach at the command line: the home's files, the built-in readers, nothing made."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.__main__ import main

pytestmark = pytest.mark.usefixtures("without_weights")

CATS = "Female cats tend to be right pawed. Male cats are more often left pawed. Cats sleep a lot."


def used(capsys: pytest.CaptureFixture[str], name: str, home: Path, **given: str) -> dict[str, str]:
    code = main(["tools", name, "--input", json.dumps(given), "--json", "--home", str(home)])
    told = json.loads(capsys.readouterr().out)
    assert code == (1 if told["outcome"] == "off" else 0)
    return dict(told)


def test_search_is_off_without_files_and_finds_what_a_check_has_read(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    home, cats = tmp_path / "home", tmp_path / "cats.txt"
    assert used(capsys, "search", home, query="right pawed cats")["outcome"] == "off"
    assert not home.exists()
    cats.write_text(CATS)
    asked = ["check", "--claim", "Cats sleep.", "--document", str(cats), "--home", str(home)]
    assert main(asked) == 0
    capsys.readouterr()
    told = used(capsys, "search", home, query="Which paw do female cats use?", where="library")
    assert told["outcome"] == "found"
    assert "right pawed" in json.dumps(told["gave"])


def test_match_reads_with_the_built_in_readers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    statement = "Female cats tend to be left pawed."
    told = used(capsys, "match", tmp_path / "home", statement=statement, context=CATS)
    assert (told["outcome"], told["label"]) == ("found", "hallucinated")
