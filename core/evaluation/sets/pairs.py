"""Reads rows of evidence, claim and label from tables and JSON, whatever the columns are called."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from core.evaluation.files import Record, data_files, json_lines, read_member, records
from core.evaluation.gold import GoldRow
from core.records import Label

TABLES = ("*.jsonl", "*.json", "*.tsv", "*.csv")
BRACKETS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
}  # fmt: skip
FEVER: Mapping[str, Label | None] = {
    "supports": "supported",
    "refutes": "hallucinated",
    "not enough info": "unclear",
    "not_enough_info": "unclear",
}
THREE: Mapping[str, Label | None] = {
    "entailment": "supported",
    "contradiction": "hallucinated",
    "neutral": "unclear",
}
LETTERS: Mapping[str, Label | None] = {"e": "supported", "c": "hallucinated", "n": "unclear"}


@dataclass(frozen=True)
class Columns:
    """Names of the fields, the first that a row has is read; `group` falls back to the evidence."""

    claim: tuple[str, ...]
    evidence: tuple[str, ...]
    label: tuple[str, ...]
    question: tuple[str, ...] = ()
    group: tuple[str, ...] = ()


@dataclass(frozen=True)
class PairLoader:
    """A loader for one set: files by pattern, one row a record."""

    columns: Columns
    labels: Mapping[str, Label | None]
    patterns: tuple[str, ...] = TABLES
    language: str = "en"
    member: str = ""  # the file to read inside each zip
    is_tied: bool = False

    def __call__(self, folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
        """The set's rows; the task is not looked at, a loader stands for one."""
        paths = data_files(folder, self.patterns, split)
        rows = (row for path in paths for row in self._rows(path, folder))
        return tied(rows) if self.is_tied else rows

    def _rows(self, path: Path, folder: Path) -> Iterator[GoldRow]:
        if path.suffix == ".zip":
            found = json_lines(read_member(path, self.member), f"{path}/{self.member}")
        else:
            found = records(path)
        for record in found:
            row = self._row(record, path, folder)
            if row.label is not None:
                yield row

    def _row(self, record: Record, path: Path, folder: Path) -> GoldRow:
        evidence = evidence_of(record, *self.columns.evidence)
        return GoldRow(
            id=row_id(path, folder, record.line),
            place=record.place,
            response=clean(record.text(*self.columns.claim)),
            label=record.chosen(self.labels, *self.columns.label),
            group=record.spare(*self.columns.group) or evidence,
            language=self.language,
            question=record.spare(*self.columns.question),
            documents=(evidence,),
        )


def evidence_of(record: Record, *names: str) -> str:
    """The evidence, a text or a list of sentences."""
    if any(isinstance(record.fields.get(name), list) for name in names):
        return clean(" ".join(record.texts(*names)))
    return clean(record.text(*names))


def clean(text: str) -> str:
    """The text with the brackets that treebank tokens stand for, without space around it."""
    for token, bracket in BRACKETS.items():
        text = text.replace(token, bracket)
    return text.strip()


def row_id(path: Path, folder: Path, line: int, *more: int) -> str:
    """File and line as an id: the same whether the file is gzipped or not."""
    name = re.sub(r"\.gz$", "", path.relative_to(folder).as_posix())
    return ":".join(map(str, (name, line, *more)))


def tied(rows: Iterable[GoldRow]) -> Iterator[GoldRow]:
    """The rows with one group wherever they share evidence or claim, directly or by other rows.

    Minimal edits of one sentence pair would otherwise lie on both sides of a split. The group is
    the first in the alphabet of the texts that hang together.
    """
    above: dict[str, str] = {}

    def root(text: str) -> str:
        while (higher := above.setdefault(text, text)) != text:
            above[text] = above.get(higher, higher)
            text = higher
        return text

    kept = list(rows)
    for row in kept:
        one, other = sorted((root(row.group), root(row.response)))
        above[other] = one
    return (replace(row, group=root(row.group)) for row in kept)
