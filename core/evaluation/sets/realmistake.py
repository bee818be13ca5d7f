"""ReaLMistake: answers that experts checked, with what detectors said; zips are read in memory.

The authors ask that no example be published as plain text: nothing is unpacked or shown.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from core.evaluation.files import data_files, json_lines, members, read_member
from core.evaluation.gold import GoldRow, Loader
from core.exchange.rows import Record
from core.records import Label

# Its authors print it beside the data: it keeps crawlers out.
PASSWORD = "open-realmistake"  # noqa: S105
# Folder, task, model that answered, detector, prompt: its four plain prompts asked of every model.
PLAIN = re.compile(r".*simple_prompt_baseline/[^/]+/[^/]+/([^/]+)/[^/]*_prompt_(\d)\.jsonl")
LABELS: dict[str, Label] = {"error": "hallucinated", "no_error": "supported"}


def load_responses(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of a model to a prompt that holds task and evidence."""
    for path in data_files(folder, ("data.zip",)):
        for _, record in _records(path, split):
            yield GoldRow(
                id=record.inner("metadata").text("id"),
                place=record.place,
                response=record.text("llm_response"),
                label=record.chosen(LABELS, "error_label"),
                group=record.text("input"),
                documents=(record.text("input"),),
            )


def load_recorded(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a detector's verdict on an answer; one that could not be read is `unclear`."""
    answers = {row.id: row for row in load_responses(folder, "responses", None)}
    for path in data_files(folder, ("error_detection_outputs.zip",)):
        for member, record in _records(path, split):
            row = _recorded(record, member, answers)
            if row:
                yield row


def load_cases(folder: Path) -> list[RecordedCase]:
    """Every answer with what each detector said of it under each of the four plain prompts."""
    answers = {row.id: row for row in load_responses(folder, "responses", None)}
    kinds: dict[str, str] = {}
    said: dict[str, dict[Detector, Said]] = defaultdict(dict)
    for path in data_files(folder, ("error_detection_outputs.zip",)):
        for member, record in _records(path, "simple_prompt_baseline"):
            plain = PLAIN.fullmatch(member)
            answer = record.inner("metadata").text("id")
            if plain is None or answer not in answers:
                continue
            kinds[answer] = record.inner("metadata").text("task_name")
            verdict = Said(_verdict(record), record.text("response"))
            said[answer][Detector(plain[1], plain[2])] = verdict
    return [RecordedCase(row, kinds.get(i, ""), said[i]) for i, row in answers.items()]


def _verdict(record: Record) -> Label:
    """What a detector said; `unclear` where it could not be read."""
    is_read = record.fields.get("prediction") is not None
    return record.chosen(LABELS, "prediction") if is_read else "unclear"


def _recorded(record: Record, member: str, answers: Mapping[str, GoldRow]) -> GoldRow | None:
    answer = answers.get(record.inner("metadata").text("id"))
    if not answer:
        return None
    return replace(
        answer,
        id=f"{member}:{answer.id}",
        place=record.place,
        recorded=_verdict(record),
        recorded_by=member.removeprefix("error_detection_outputs/").removesuffix(".jsonl"),
    )


def _records(path: Path, split: str | None) -> Iterator[tuple[str, Record]]:
    """(member, row) of every table in the zip; `split` may name a folder or file inside."""
    for member in members(path):
        if member.endswith(".jsonl") and (split is None or split in member):
            for record in json_lines(read_member(path, member, PASSWORD), f"{path}/{member}"):
                yield member, record


LOADERS: Mapping[str, Loader] = {
    "realmistake/responses": load_responses,
    "realmistake/recorded": load_recorded,
}


@dataclass(frozen=True, order=True)
class Detector:
    """A model under one of the prompts that it was asked with."""

    name: str
    prompt: str


@dataclass(frozen=True)
class Said:
    """A recorded verdict; `unclear` where it could not be read."""

    label: Label
    reasoning: str


@dataclass(frozen=True)
class RecordedCase:
    """A labelled answer, what kind of task it answers, and what each detector said of it."""

    row: GoldRow
    kind: str
    said: Mapping[Detector, Said]
