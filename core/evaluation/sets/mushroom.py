"""Mu-SHROOM: answers of models in fourteen languages with the words that people found wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, GoldSpan, Rule
from core.exchange.rows import Record, span

LANGUAGES = tuple("ar ca cs de en es eu fa fi fr hi it sv zh".split())
LABELLED = ("val/mushroom.*-val.*.jsonl", "test_labeled/mushroom.*-tst.*.jsonl")
LOOSE = ("mushroom.*-val.*.jsonl", "mushroom.*-tst.*.jsonl")
UNLABELLED = ("train_unlabeled/mushroom.*-train*.jsonl", "mushroom.*-train*.jsonl")
NAME = re.compile(r"mushroom\.([a-z]{2})-(val|tst|train)")


def load_mushroom(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Rows of one language, or of all; unlabelled ones only where the split `train` is asked for.

    Any hard span makes the answer hallucinated. What a search engine's model wrote to the same
    question (`context_val`, `context_tst`) is the row's document.
    """
    patterns = UNLABELLED if split == "train" else (*LABELLED, *LOOSE)
    language = task if task in LANGUAGES else "*"
    wanted = [pattern.replace("mushroom.*", f"mushroom.{language}", 1) for pattern in patterns]
    for path in data_files(folder, wanted, split):
        found = NAME.search(path.name)
        if found:
            context = _contexts(folder, found[2], found[1])
            for record in records(path):
                if record.plain("model_output_text").strip():
                    yield _row(record, path, found[1], context)


def _contexts(folder: Path, kind: str, language: str) -> dict[str, str]:
    """The evidence of each item by its id; none where the file is not there."""
    for name in (f"{language}.jsonl.gz", f"{language}.jsonl"):
        path = folder / f"context_{kind}" / name
        if path.is_file():
            return {one.text("id"): one.plain("context") for one in records(path)}
    return {}


def _row(record: Record, path: Path, language: str, contexts: dict[str, str]) -> GoldRow:
    response = record.text("model_output_text")
    question = record.text("model_input")
    is_labelled = "hard_labels" in record.fields
    hard = _hard(record, response) if is_labelled else None
    bare = path.name.split(".jsonl")[0]
    row_id = record.text("id") if is_labelled else f"{bare}:{record.line}"
    context = contexts.get(row_id, "")
    return GoldRow(
        id=row_id,
        place=record.place,
        response=response,
        label=None if hard is None else ("hallucinated" if hard else "supported"),
        group=question,
        language=language,
        question=question,
        documents=(context,) if context.strip() else (),
        spans=hard,
        soft=_soft(record, response) if is_labelled else (),
    )


def _hard(record: Record, response: str) -> tuple[GoldSpan, ...]:
    spans = []
    for pair in record.items("hard_labels"):
        if not isinstance(pair, list) or len(pair) != 2:
            raise record.broken("hard_labels to hold pairs of start and end", pair)
        spans.append(span(record, response, pair[0], pair[1]))
    return tuple(sorted(spans, key=lambda one: one.start))


def _soft(record: Record, response: str) -> tuple[GoldSpan, ...]:
    spans = []
    for one in record.records("soft_labels"):
        place = span(record, response, one.fields.get("start"), one.fields.get("end"))
        p = one.number("prob")
        if not 0 <= p <= 1:
            raise record.broken("prob to be a share from 0 to 1", p)
        spans.append(GoldSpan(place.start, place.end, p))
    return tuple(sorted(spans, key=lambda one: one.start))


RULES = tuple(
    Rule(
        name="mushroom",
        task=task,
        loader=load_mushroom,
        labels={"any hard span": "hallucinated", "no hard span": "supported"},
        unit="one answer of a model",
        group="model_input (the question)",
        licence="Apache-2.0 (repository of the copy and of the contexts); task data: not stated",
        permits="not stated",
        note="A task is a language; without one, all. The documents are search answers written "
        "by a model, joined by id. Unlabelled rows are read only for the split train. Empty "
        "answers are left out.",
    )
    for task in ("", *LANGUAGES)
)
