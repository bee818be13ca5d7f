"""Sets that nobody labelled for hallucination: recorded debates, code and word problems."""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError
from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import Record

MOST_BYTES = 4 * 2**20  # of one recorded debate; the largest has about a fiftieth
MOST_TOGETHER = 256 * 2**20


def load_debates(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a recorded debate: the translation that it ended with."""
    for path in data_files(folder, ("*.tar", "*.tar.gz", "*.tgz"), split):
        for name, record in _in_archive(path):
            yield GoldRow(
                id=name,
                place=record.place,
                response=record.text("debate translation"),
                label=None,
                group=record.text("source"),
                question=record.text("source"),
            )


def _in_archive(path: Path) -> Iterator[tuple[str, Record]]:
    """(name, object) of each JSON file in a tar, read in memory; links are passed over."""
    try:
        with tarfile.open(path) as archive:
            read = 0
            for member in archive:
                read += member.size
                if member.size > MOST_BYTES or read > MOST_TOGETHER:
                    raise InputError(f"{path}: expected small JSON files, found: {member.name}.")
                opened = archive.extractfile(member) if member.isreg() else None
                if opened and member.name.endswith(".json"):
                    yield member.name, _parsed(opened.read(), f"{path}/{member.name}")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise InputError(f"Expected a tar archive at {path}, found: {error}.") from error


def _parsed(data: bytes, file: str) -> Record:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}, line 1: expected JSON, found: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{file}, line 1: expected a JSON object, found another kind.")
    return Record(value, file, 1)


def load_human_eval(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a code problem with its reference solution."""
    for path in data_files(folder, ("HumanEval*.jsonl",), split):
        for record in records(path):
            prompt = record.text("prompt")
            yield GoldRow(
                id=record.text("task_id"),
                place=record.place,
                response=record.text("canonical_solution"),
                label=None,
                group=prompt,
                question=prompt,
            )


def load_ape(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a word problem with its gold value."""
    for path in data_files(folder, ("*ape*.json", "*ape*.jsonl"), split):
        for record in records(path):
            question = record.text("original_text")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("ans"),
                label=None,
                group=question,
                language="zh",
                question=question,
            )


NO_LABEL = "No label: it can be run, not scored."
RULES = (
    Rule(
        name="mad_debates",
        loader=load_debates,
        unit="one recorded debate with the translation it ended with",
        group="source",
        licence="GPL-3.0",
        permits="copyleft",
        note=f"{NO_LABEL} The reference translations are not read.",
    ),
    Rule(
        name="human_eval",
        loader=load_human_eval,
        unit="one code problem with its reference solution",
        group="prompt",
        licence="MIT",
        permits="yes",
        note=NO_LABEL,
    ),
    Rule(
        name="ape210k",
        loader=load_ape,
        unit="one word problem with its gold value",
        group="original_text",
        licence="not stated (code: MIT)",
        permits="not stated",
        note=f"{NO_LABEL} Chinese.",
    ),
)
