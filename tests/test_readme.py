"""README promises nothing that is not there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_architecture import ROOMS, ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`((?:core|components|pages|tests|app|docs)[\w./]*)`", README)))


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_line_of_rooms_is_the_one_that_is_enforced() -> None:
    line = re.search(r"inside `core` only to the left in\s+`([^`]+)`", README)
    assert line is not None
    named = re.findall(r"\w+", line.group(1))
    there = {p.stem for p in (ROOT / "core").iterdir() if not p.stem.startswith(("__", "."))}
    assert set(named) == there
    assert named == [room for room in ROOMS if room in there]


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make (\w+)", README))))
def test_every_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


def test_every_option_is_taken() -> None:
    told = ""
    for command in ("check", "evaluate", "tools", "import", "export", "retrain", "rescore"):
        told += subprocess.run(
            [sys.executable, "-m", "core", command, "--help"],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT,
        ).stdout
    section = README[README.index("At the command line") : README.index("## Where things are")]
    for option in set(re.findall(r"--[a-z-]+", section)):
        assert option in told


def test_modules_that_are_run_are_there() -> None:
    for module in set(re.findall(r"-m ((?:core|tests)[\w.]*)", README)):
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists()


def test_pictures_are_there() -> None:
    for picture in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", README):
        assert Path(ROOT / picture).exists()
