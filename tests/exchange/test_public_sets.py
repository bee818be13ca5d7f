"""Public sets as they lie: read whole, moved through every format, once through the store."""

from __future__ import annotations

import gzip
import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from core.exchange.registry import FORMATS, WRITABLE_FORMATS, detect_format
from core.exchange.rows import ParsedFile
from core.store import open_store
from tests.exchange.stores import imported, kept
from tests.needs import need
from tests.test_architecture import ROOT

DATA = ROOT.parent / "shared" / "data"
FILES = {
    "mu-shroom": "mushroom/val/mushroom.hi-val.v2.jsonl.gz",
    "ragtruth": "ragtruth_sample/ragtruth_sample.jsonl",
    "faithbench": "faithbench/batch_1.json.gz",
    "haluquestqa": "haluquestqa/HaluQuestQA.csv.gz",
    "xsum": "xsum_hallucination/hallucination_annotations_xsum_summaries.csv.gz",
    "mad": "mad_debates/MAD_Debate_Process.tar.gz",
}


def file(name: str) -> Path:
    path = DATA / FILES[name]
    need(path.is_file(), f"{FILES[name]} in {DATA}")
    return path


@pytest.mark.parametrize("name", FILES)
def test_a_set_is_recognised_and_read_without_a_bad_row(name: str) -> None:
    path = file(name)
    data = path.read_bytes()
    assert detect_format(path.name, data) == name
    read = FORMATS[name].read(path.name, data)
    assert not read.problems
    assert len(read.rows) >= 30


@pytest.mark.parametrize("name", FILES)
def test_a_set_moves_through_every_format(name: str) -> None:
    path = file(name)
    read = FORMATS[name].read(path.name, path.read_bytes())
    rows = [replace(row, id=row.id or f"row {n}") for n, row in enumerate(read.rows[:300])]
    before = [kept(row) for row in rows]
    for target in WRITABLE_FORMATS:
        write = FORMATS[target].write
        assert write is not None
        assert [kept(row) for row in FORMATS[target].read("x", write(rows)).rows] == before


def test_mushroom_rows_go_out_to_the_letter(tmp_path: Path) -> None:
    path = file("mu-shroom")
    lines = gzip.decompress(path.read_bytes()).splitlines()
    read = FORMATS["mu-shroom"].read(path.name, path.read_bytes())
    write = FORMATS["mu-shroom"].write
    assert write is not None
    assert [json.loads(line) for line in write(read.rows).splitlines()] == [
        json.loads(line) for line in lines
    ]


@pytest.mark.slow
def test_a_large_set_comes_in_within_seconds() -> None:
    path = file("xsum")
    read = FORMATS["xsum"].read(path.name, path.read_bytes())
    began = time.monotonic()
    with open_store(None) as store:
        outcome = imported(store, ParsedFile(read.rows))
    assert (outcome.new, outcome.problems) == (len(read.rows), [])
    assert outcome.corrections > 2 * outcome.new, "several annotators a summary"
    assert time.monotonic() - began < 60


def test_experts_reasons_and_several_annotators_come_along(tmp_path: Path) -> None:
    path, other = file("haluquestqa"), file("faithbench")
    answers = FORMATS["haluquestqa"].read(path.name, path.read_bytes()).rows
    assert sum(bool(row.golds[0].reason) for row in answers) > 200
    batch = FORMATS["faithbench"].read(other.name, other.read_bytes())
    with open_store(tmp_path / "h") as store:
        imported(store, batch, home=tmp_path / "h")
        project = store.projects.all()[0]
        people = {c.author for c in store.corrections.newest_by_person(project.id)}
        assert len(people) >= 2
        assert all(name.endswith(" (imported)") for name in people)
        assert len(store.library.all(project.id)) < len(batch.rows), "equal texts are stored once"
