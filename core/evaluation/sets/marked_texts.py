"""Texts in which people marked wrong words or sentences: answers, summaries, hypotheses.

The layouts that an import reads too (Mu-SHROOM, HaluQuestQA, RAGTruth, FaithBench, XSum) are read
by `core/exchange/public_sets.py`, row by row; what is no such row is an error here. ReaLMistake's
zips are read in memory: its authors ask that no example be published as plain text, so nothing is
unpacked or shown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.evaluation.files import (
    GoldRow,
    GoldSpan,
    Loader,
    data_files,
    json_lines,
    listed_under,
    members,
    read_member,
    records,
    row_id,
    rows_in,
)
from core.exchange.public_sets import (
    faithbench_row,
    haluquestqa_rows,
    mushroom_row,
    ragtruth_row,
    xsum_name,
    xsum_row,
)
from core.exchange.rows import FACT_IS_TRUE, ExchangeRow, Record, joined, label_of, word
from core.runtime.errors import InputError
from core.schema.records import Label

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
            if answer := answers.get(record.inner("metadata").text("id")):
                by = member.removeprefix("error_detection_outputs/").removesuffix(".jsonl")
                own, said = f"{member}:{answer.id}", _verdict(record)
                place = record.place
                yield replace(answer, id=own, place=place, recorded=said, recorded_by=by)


def load_cases(folder: Path) -> list[RecordedCase]:
    """Every answer with what each detector said of it under each of the four plain prompts."""
    answers = {row.id: row for row in load_responses(folder, "responses", None)}
    kinds: dict[str, str] = {}
    said: dict[str, dict[Detector, RecordedAnswer]] = defaultdict(dict)
    for path in data_files(folder, ("error_detection_outputs.zip",)):
        for member, record in _records(path, "simple_prompt_baseline"):
            plain = PLAIN.fullmatch(member)
            answer = record.inner("metadata").text("id")
            if plain is None or answer not in answers:
                continue
            kinds[answer] = record.inner("metadata").text("task_name")
            verdict = RecordedAnswer(_verdict(record), record.text("response"))
            said[answer][Detector(plain[1], plain[2])] = verdict
    return [RecordedCase(row, kinds.get(i, ""), said[i]) for i, row in answers.items()]


def _verdict(record: Record) -> Label:
    is_read = record.fields.get("prediction") is not None
    return record.chosen(LABELS, "prediction") if is_read else "unclear"


def _records(path: Path, split: str | None) -> Iterator[tuple[str, Record]]:
    """(member, row) of every table in the zip; `split` may name a folder or file inside."""
    for member in members(path):
        if member.endswith(".jsonl") and (split is None or split in member):
            for record in json_lines(read_member(path, member, PASSWORD), f"{path}/{member}"):
                yield member, record


REALMISTAKE: Mapping[str, Loader] = {
    "realmistake/responses": load_responses,
    "realmistake/recorded": load_recorded,
}


@dataclass(frozen=True, order=True)
class Detector:
    """A model under one of the prompts that it was asked with."""

    name: str
    prompt: str


@dataclass(frozen=True)
class RecordedAnswer:
    """A recorded verdict; `unclear` where it could not be read."""

    label: Label
    reasoning: str


@dataclass(frozen=True)
class RecordedCase:
    """A labelled answer, what kind of task it answers, and what each detector said of it."""

    row: GoldRow
    kind: str
    said: Mapping[Detector, RecordedAnswer]


LANGUAGES = tuple("ar ca cs de en es eu fa fi fr hi it sv zh".split())
LABELLED = ("val/mushroom.*-val.*.jsonl", "test_labeled/mushroom.*-tst.*.jsonl")
LOOSE = ("mushroom.*-val.*.jsonl", "mushroom.*-tst.*.jsonl")
UNLABELLED = ("train_unlabeled/mushroom.*-train*.jsonl", "mushroom.*-train*.jsonl")
NAME = re.compile(r"mushroom\.([a-z]{2})-(val|tst|train)")
NO_WORDS = ("null", "")


@contextmanager
def _at(record: Record) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        words = str(error)
        told = words if words.startswith(record.place) else f"{record.place}: {words}"
        raise InputError(told) from error


def _row(own: str, record: Record, row: ExchangeRow, group: str, language: str = "en") -> GoldRow:
    """A row that an import reads, with its gold; wrong words that are found nowhere are unknown."""
    gold = row.golds[0] if row.golds else None
    spans = joined(GoldSpan(s.start, s.end) for s in gold.spans) if gold else None
    if gold and gold.label == "hallucinated" and not spans:
        spans = None
    return GoldRow(
        own,
        record.place,
        row.response,
        gold.label if gold else None,
        group,
        language=language,
        question=row.question,
        documents=tuple(document.text or "" for document in row.documents),
        spans=spans,
        soft=tuple(GoldSpan(s.start, s.end, s.p) for s in gold.soft) if gold else (),
    )


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
                    yield _mushroom_row(record, path, found[1], context)


def _contexts(folder: Path, kind: str, language: str) -> dict[str, str]:
    for name in (f"{language}.jsonl.gz", f"{language}.jsonl"):
        path = folder / f"context_{kind}" / name
        if path.is_file():
            return {one.text("id"): one.plain("context") for one in records(path)}
    return {}


def _mushroom_row(
    record: Record, path: Path, language: str, contexts: Mapping[str, str]
) -> GoldRow:
    with _at(record):
        row = mushroom_row(record)
    own = row.id if row.golds else f"{path.name.split('.jsonl')[0]}:{record.line}"
    made = _row(own, record, row, record.text("model_input"), language)
    texts = tuple(text for text in (contexts.get(own, ""),) if text.strip())
    return replace(made, documents=texts, soft=tuple(sorted(made.soft, key=lambda s: s.start)))


def load_haluquestqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a judged question, one an answer; an answer with a factual error is hallucinated."""
    for own, record in rows_in(folder, ("*.csv",), split, delimiter="\t"):
        with _at(record):
            rows = haluquestqa_rows(record)
        for number, row in enumerate(rows, start=1):
            yield _row(f"{own}:{number}", record, row, row.question)


def load_ragtruth(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers with marked spans; their sources are not in the sample."""
    for own, record in rows_in(folder, ("*.jsonl",), split):
        with _at(record):
            row = ragtruth_row(record)
        yield _row(own, record, row, record.text("source_id"))


def load_faithbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Summaries with the spans that people marked as unwanted additions or contradictions."""
    for path in data_files(folder, ("*batch_*.json",), split):
        for number, record in enumerate(listed_under(path, "samples"), start=1):
            with _at(record):
                row = faithbench_row(record)
            own = row_id(path, folder, number)
            yield _row(own, record, row, row.documents[0].text or "")


def load_xsum(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary; what more than half of its annotators marked counts."""
    for path in data_files(folder, ("hallucination_annotations*.csv",), split):
        for name, lines in _summaries(path):
            with _at(lines[0]):
                row = xsum_row(lines)
            yield _row(name, lines[0], row, lines[0].text("bbcid"))


def load_xsum_factuality(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary; the label that most annotators gave, unclear where they are divided."""
    answers: Mapping[str, Label] = {"yes": "supported", "no": "hallucinated"}
    for path in data_files(folder, ("factuality_annotations*.csv",), split):
        for name, lines in _summaries(path):
            first, said = lines[0], Counter(word(one.fields.get("is_factual")) for one in lines)
            if set(said) - {*answers, *NO_WORDS}:
                raise first.broken("is_factual to be yes, no or NULL", dict(said))
            label: Label = "unclear"
            if said["yes"] != said["no"]:
                label = "supported" if said["yes"] > said["no"] else "hallucinated"
            yield GoldRow(name, first.place, first.text("summary"), label, first.text("bbcid"))


def _summaries(path: Path) -> Iterator[tuple[str, list[Record]]]:
    found: dict[str, list[Record]] = {}
    for record in records(path):
        found.setdefault(xsum_name(record), []).append(record)
    yield from found.items()


def load_qags(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary sentence; what most of the workers said is its label."""
    for own, record in rows_in(folder, ("*.jsonl",), split):
        article = record.text("article")
        for number, one in enumerate(record.records("summary_sentences"), start=1):
            name, said = f"{own}:{number}", one.text("sentence")
            yield GoldRow(name, record.place, said, _voted(one), article, documents=(article,))


def _voted(sentence: Record) -> Label:
    said = Counter(word(one.fields.get("response")) for one in sentence.records("responses"))
    if not said or set(said) - {"yes", "no"} or said["yes"] == said["no"]:
        raise sentence.broken("an odd number of responses, each yes or no", dict(said))
    return "supported" if said["yes"] > said["no"] else "hallucinated"


def load_bamboo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """A statement on a long paper: one sentence of an abstract, or a whole abstract, is wrong."""
    for own, record in rows_in(folder, (f"{task or '*'}hallu_*.jsonl",), split):
        label = label_of(record, record.fields.get("answer"), FACT_IS_TRUE)
        said, title, texts = record.text("hypothesis"), record.text("title"), record.text("content")
        yield GoldRow(own, record.place, said, label, title, documents=(texts,))


MARKED_TEXTS: Mapping[str, Loader] = {
    "mushroom": load_mushroom,
    "haluquestqa": load_haluquestqa,
    "ragtruth_sample": load_ragtruth,
    "xsum_hallucination/spans": load_xsum,
    "xsum_hallucination/factuality": load_xsum_factuality,
    "qags": load_qags,
    "faithbench": load_faithbench,
    "bamboo": load_bamboo,
}
