"""What earlier code kept opens with today's: a home, an archive and a trace file.

`released/` was written by the code before its packages were merged (commit 8c5be9e): built-in runs
under every protocol and as an audit, corrections, imported gold, and a promoted version whose
encoder is left out for its size.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tarfile
from pathlib import Path

import pytest

from core.__main__ import main
from core.store import open_store
from core.verdict.classifier import load_head
from tests.pages.conftest import OpenApp

RELEASED = Path(__file__).parent / "released"
RUNS = {  # of each protocol the earliest run
    "ceda", "single", "ensemble", "colmad", "copmad", "society", "mad", "mamm_refine", "sc_maks",
    "adaptive", "audit",
}  # fmt: skip
EXPORTED = "a59f71d3cea9096bf90b08c1b197ac44"
"""MD5 of what the code of that day exported as JSONL, but files of one name are numbered."""


@pytest.fixture
def released(home: Path) -> Path:
    """The earlier home, unpacked where the pages look for theirs."""
    with tarfile.open(RELEASED / "home.tar.xz") as packed:
        packed.extractall(home.parent, filter="data")
    return home


def test_every_run_of_an_earlier_home_is_drawn_and_replayed(app: OpenApp, released: Path) -> None:
    with open_store(released) as store:
        rows = store.db.query("SELECT id FROM runs ORDER BY rowid")
        runs = [store.runs.get(row["id"], 1e12, 6) for row in rows]
        version = store.versions.active()
    first = {run.plan.protocol: run.id for run in reversed(runs) if run}
    assert first.keys() == RUNS
    for run_id in first.values():
        assert len(app("pages/check/run.py", run=run_id).get("tab")) >= 2
        replay = app("pages/check/replay.py", run=run_id)
        assert replay.title[0].value.endswith("· Replay")
    retrain = app("pages/learn/retrain.py")
    assert any(version in frame.value.to_string() for frame in retrain.dataframe)
    folder = released / "models" / version
    for name, known in json.loads((folder / "head.json").read_text())["files"].items():
        if not (folder / name).exists():  # the encoder: as long as it was, and empty
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).touch()
            os.truncate(folder / name, known["bytes"])
    head, card = load_head(folder)
    assert head.calibrator.kind == "none"
    assert card["name"] == version


def test_earlier_cases_and_answers_are_exported_byte_for_byte(
    released: Path, tmp_path: Path
) -> None:
    assert exported(released, tmp_path / "cases.jsonl") == EXPORTED


def test_an_earlier_archive_restores_all_that_it_held(home: Path, tmp_path: Path) -> None:
    packed = tmp_path / "project.zip"
    shutil.copy(RELEASED / "project.zip", packed)
    assert main(["import", "--format", "archive", str(packed), "--home", str(home)]) == 0
    with open_store(home) as store:
        project = store.projects.all()[-1]
        assert len(list(store.db.query("SELECT 1 FROM runs"))) == 27
    assert exported(home, tmp_path / "cases.jsonl", project.name) == EXPORTED


def test_an_earlier_trace_file_is_replayed(app: OpenApp) -> None:
    at = app("pages/check/history.py")
    trace = (RELEASED / "sc_maks.trace.json").read_bytes()
    at.file_uploader(key="history.trace").set_value(("t.json", trace, "application/json")).run()
    assert not at.exception
    assert not at.error
    assert any(link.proto.label == "Play it" for link in at.get("page_link"))


def exported(home: Path, file: Path, project: str = "First project") -> str:
    """MD5 of a project's JSONL."""
    command = ["export", "--format", "jsonl", "--out", str(file), "--home", str(home)]
    assert main([*command, "--project", project]) == 0
    return hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()
