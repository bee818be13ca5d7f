"""Summaries beside the text they sum up: QAGS, FaithBench, BAMBOO."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, GoldSpan, Rule
from core.evaluation.sets.keyed import listed_under
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import FACT_IS_TRUE, Record, joined, label_of, span, word
from core.records import Label


def load_qags(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary sentence; what most of the workers said is its label."""
    for path in data_files(folder, ("*.jsonl",), split):
        for record in records(path):
            article = record.text("article")
            for number, sentence in enumerate(record.records("summary_sentences"), start=1):
                yield GoldRow(
                    id=row_id(path, folder, record.line, number),
                    place=record.place,
                    response=sentence.text("sentence"),
                    label=_majority(sentence),
                    group=article,
                    documents=(article,),
                )


def _majority(sentence: Record) -> Label:
    said = Counter(word(one.fields.get("response")) for one in sentence.records("responses"))
    if not said or set(said) - {"yes", "no"} or said["yes"] == said["no"]:
        raise sentence.broken("an odd number of responses, each yes or no", dict(said))
    return "supported" if said["yes"] > said["no"] else "hallucinated"


def load_faithbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Summaries with the spans that people marked as unwanted additions or contradictions."""
    for path in data_files(folder, ("*batch_*.json",), split):
        for number, sample in enumerate(listed_under(path, "samples"), start=1):
            yield _summary(sample, row_id(path, folder, number))


def _summary(sample: Record, row_id: str) -> GoldRow:
    source, summary = sample.text("source"), sample.text("summary")
    kinds: set[str] = set()
    unwanted: list[GoldSpan] = []
    for mark in sample.records("annotations"):
        found = {one.split(".")[0] for one in mark.texts("label")}
        unknown = found - {"Unwanted", "Questionable", "Benign"}
        if unknown:
            raise mark.broken("Unwanted, Questionable or Benign", ", ".join(sorted(unknown)))
        kinds |= found
        if "Unwanted" in found:
            ends = mark.fields.get("summary_start"), mark.fields.get("summary_end")
            unwanted.append(span(mark, summary, *ends))
    graded: Label = "unclear" if "Questionable" in kinds else "supported"
    return GoldRow(
        id=row_id,
        place=sample.place,
        response=summary,
        label="hallucinated" if unwanted else graded,
        group=source,
        documents=(source,),
        spans=joined(unwanted),
    )


def load_bamboo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """A statement on a long paper: one sentence of an abstract, or a whole abstract, is wrong."""
    pattern = f"{task or '*'}hallu_*.jsonl"
    for path in data_files(folder, (pattern,), split):
        for record in records(path):
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("hypothesis"),
                label=label_of(record, record.fields.get("answer"), FACT_IS_TRUE),
                group=record.text("title"),
                documents=(record.text("content"),),
            )


RULES = (
    Rule(
        name="qags",
        loader=load_qags,
        labels={"most say yes": "supported", "most say no": "hallucinated"},
        unit="one summary sentence, majority of three workers",
        group="article",
        licence="not stated",
        permits="not stated",
        note="Never trained or tuned on.",
    ),
    Rule(
        name="faithbench",
        loader=load_faithbench,
        labels={
            "Unwanted": "hallucinated",
            "Questionable": "unclear",
            "Benign": "supported",
            "no annotation": "supported",
        },
        unit="one summary",
        group="source",
        licence="CC BY-NC-SA 4.0",
        permits="non-commercial",
        note="The gravest mark of any annotator counts: Unwanted before Questionable (grey) "
        "before Benign. Spans are all Unwanted ones joined; how many annotators saw a sample "
        "without marking it is not recorded, so there are no shares. Never trained or tuned on.",
    ),
    *(
        Rule(
            name="bamboo",
            task=task,
            loader=load_bamboo,
            labels={"true": "supported", "false": "hallucinated"},
            unit="one hypothesis on a long paper",
            group="title",
            licence="MIT",
            permits="yes",
            note="Without a task both files: senhallu and abshallu. Never trained or tuned on.",
        )
        for task in ("", "sen", "abs")
    ),
)
