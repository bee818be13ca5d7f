"""Writes small files of our own in the formats of the public sets."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from core.evaluation.dataset_files import GoldRow, Loader


def write(path: Path, text: str) -> Path:
    """The text under this name; gzipped where the name ends so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    data = text.encode()
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def write_lines(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """One JSON object a line."""
    return write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))


def write_list(path: Path, rows: Sequence[Mapping[str, object]]) -> Path:
    """One JSON list."""
    return write(path, json.dumps(rows, ensure_ascii=False, indent=1))


def write_table(path: Path, rows: Sequence[Mapping[str, object]], delimiter: str = ",") -> Path:
    """A table under the keys of its first row."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]), delimiter=delimiter)
    table.writeheader()
    table.writerows(rows)
    return write(path, text.getvalue())


def load(loader: Loader, folder: Path, task: str = "", split: str | None = None) -> list[GoldRow]:
    """All rows; their ids are unique and every span lies in its response."""
    rows = list(loader(folder, task, split))
    assert len({row.id for row in rows}) == len(rows)
    for row in rows:
        assert row.group.strip(), row.place
        for one in (*(row.spans or ()), *row.soft):
            assert 0 <= one.start < one.end <= len(row.response)
    return rows
