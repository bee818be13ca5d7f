"""Factcheck-GPT: claims with the evidence found for them, its stance, and what is true."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import label_of
from core.records import Label

FACTS: dict[str, Label] = {
    "true": "supported",
    "false": "hallucinated",
    "na": "unclear",
    "unknown": "unclear",
}
STANCES: dict[str, Label] = {
    "completely-support": "supported",
    "partially-support": "unclear",
    "irrelevant": "unclear",
    "refute": "hallucinated",
}
VERDICTS: dict[str, Label] = {
    "true": "supported",
    "false": "hallucinated",
    "not_enough_evidence": "unclear",
}
FACTBENCH = ("Factbench*.jsonl",)
STANCE_FILES = ("subtasks/subtask3*.jsonl",)


def load_factbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of a model; there is no evidence."""
    for path in data_files(folder, FACTBENCH, split):
        for record in records(path):
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("response"),
                label=label_of(record, record.fields.get("response_label"), FACTS),
                group=record.text("prompt"),
                question=record.text("prompt"),
            )


def load_factbench_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim of an answer; there is no evidence."""
    for path in data_files(folder, FACTBENCH, split):
        for record in records(path):
            claims, labels = record.texts("claims"), record.items("claim_labels")
            if len(claims) != len(labels):
                raise record.broken(f"{len(claims)} labels in claim_labels", len(labels))
            for number, (claim, label) in enumerate(zip(claims, labels, strict=True), start=1):
                yield GoldRow(
                    id=row_id(path, folder, record.line, number),
                    place=record.place,
                    response=claim,
                    label=label_of(record, label, FACTS),
                    group=record.text("prompt"),
                    question=record.text("prompt"),
                )


def load_stances(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim with one piece of evidence: does this piece carry it?"""
    prompts = _prompts(folder)
    for path in data_files(folder, STANCE_FILES, split):
        for record in records(path):
            claim = record.text("claim")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=claim,
                label=record.chosen(STANCES, "stance"),
                group=prompts.get(claim, claim),
                documents=(record.text("evidence"),),
            )


def load_verdicts(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim; every piece of evidence that subtask 3 holds for it is a document."""
    prompts, evidence = _prompts(folder), _evidence(folder)
    for path in data_files(folder, ("subtasks/subtask4*.jsonl",), split):
        for record in records(path):
            claim = record.text("claim")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=claim,
                label=label_of(record, record.fields.get("label"), VERDICTS),
                group=prompts.get(claim, claim),
                documents=tuple(dict.fromkeys(evidence.get(claim, ()))),
            )


def _prompts(folder: Path) -> dict[str, str]:
    """The prompt that each claim came from, as far as the whole benchmark is there."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("factcheck-GPT-benchmark.jsonl*")):
        for record in records(path):
            sentences = record.inner("sentences")
            for name in sentences.fields:
                for claim in sentences.inner(name).texts("claims"):
                    found.setdefault(claim, record.text("prompt"))
    return found


def _evidence(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob(f"{STANCE_FILES[0]}*")):
        for record in records(path):
            found.setdefault(record.text("claim"), []).append(record.text("evidence"))
    return found


LICENCE = "Apache-2.0"
PROMPT = "the prompt that the claim came from, else the claim"
RULES = (
    Rule(
        name="factcheck_gpt",
        task="factbench",
        loader=load_factbench,
        labels={"true": "supported", "false": "hallucinated", "NA": "unclear"},
        unit="one answer of a model",
        group="prompt",
        licence=LICENCE,
        permits="yes",
        note="No evidence.",
    ),
    Rule(
        name="factcheck_gpt",
        task="factbench_claims",
        loader=load_factbench_claims,
        labels={"true": "supported", "false": "hallucinated", "unknown": "unclear"},
        unit="one claim of an answer",
        group="prompt",
        licence=LICENCE,
        permits="yes",
        note="No evidence.",
    ),
    Rule(
        name="factcheck_gpt",
        task="subtask3",
        loader=load_stances,
        labels={**STANCES},
        unit="one claim with one piece of evidence",
        group=PROMPT,
        licence=LICENCE,
        permits="yes",
        note="Evidence that carries only a part leaves the claim undecided, as irrelevant "
        "evidence does.",
    ),
    Rule(
        name="factcheck_gpt",
        task="subtask4",
        loader=load_verdicts,
        labels={**VERDICTS},
        unit="one claim",
        group=PROMPT,
        licence=LICENCE,
        permits="yes",
        note="The documents are all evidence of subtask3 for the same claim.",
    ),
)
