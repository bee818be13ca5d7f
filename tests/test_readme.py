"""README and docs promise nothing that is not there."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from core.__main__ import COMMANDS, main
from tests.test_architecture import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
DOCS = README + "".join(
    path.read_text(encoding="utf-8") for path in sorted((ROOT / "docs").glob("*.md"))
)
FOLDERS = "core|components|pages|tests|training|docs"
PATHS = sorted(set(re.findall(rf"`((?:{FOLDERS})/[\w./-]*|app\.py)`", DOCS)))
LINKS = sorted(
    {
        (path.relative_to(ROOT).as_posix(), link)
        for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))
        for link in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
    }
)


@pytest.mark.parametrize("path", PATHS)
def test_a_path_that_is_named_is_there(path: str) -> None:
    assert (ROOT / path).exists()


def test_a_module_that_is_named_is_there() -> None:
    prose = re.sub(r"```.*?```", "", DOCS, flags=re.DOTALL)  # examples make up modules
    names = set(re.findall(r"`(\w+\.py)`", prose))
    folders = "*.py", *(f"{folder}/**/*.py" for folder in FOLDERS.split("|"))
    assert names <= {path.name for pattern in folders for path in ROOT.glob(pattern)}


@pytest.mark.parametrize(("page", "link"), LINKS)
def test_a_link_leads_somewhere(page: str, link: str) -> None:
    assert (ROOT / page).parent.joinpath(link).exists()


@pytest.mark.parametrize("target", sorted(set(re.findall(r"make ([\w-]+)", README))))
def test_every_make_target_is_there(target: str) -> None:
    assert re.search(rf"^{target}:", MAKEFILE, re.MULTILINE)


def test_every_option_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    for command in COMMANDS:
        with pytest.raises(SystemExit):
            main([command, "--help"])
    help_texts = capsys.readouterr().out
    page = (ROOT / "docs" / "researchers.md").read_text(encoding="utf-8")
    section = page[page.index("## At the command line") : page.index("## The papers")]
    options = set(re.findall(r"--[a-z-]+", section))
    assert len(options) > 20
    for option in options:
        assert option in help_texts


def test_readme_fits_on_two_screens() -> None:
    assert len(README.splitlines()) < 150


def test_the_first_check_says_what_readme_shows(tmp_path: Path) -> None:
    text = re.search(r"`facts.txt` that says “(.*)”:", README)
    shown = re.search(r"```console\n\$ \.venv/bin/python (.*)\n([^`]*)```", README)
    assert text
    assert shown
    (tmp_path / "facts.txt").write_text(text[1], encoding="utf-8")
    command = [sys.executable, *shlex.split(shown[1])]
    environment = {**os.environ, "COUNTERPOINT_HOME": str(tmp_path), "PYTHONPATH": str(ROOT)}
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, env=environment
    ).stdout
    assert said.splitlines()[1:] == shown[2].splitlines()[1:]
    assert said.split("=")[0] == shown[2].split("=")[0], "the label; p may be rounded elsewhere"


def test_modules_that_are_run_are_there() -> None:
    for module in set(re.findall(r"-m ((?:core|tests|training)(?:\.\w+)*)", DOCS)):
        path = ROOT.joinpath(*module.split("."))
        assert path.with_suffix(".py").exists() or (path / "__main__.py").exists(), module
