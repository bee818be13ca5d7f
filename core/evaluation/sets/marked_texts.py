"""Load texts in which people marked wrong words or sentences: answers, summaries, hypotheses.

`core/exchange/public_sets.py` parses the rows of layouts that can be imported too (Mu-SHROOM,
HaluQuestQA, RAGTruth, FaithBench, XSum); an invalid row is an error here. ReaLMistake's zips are
read in memory: its authors ask that no example be published as plain text, so nothing is unpacked
or shown.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from core.evaluation.dataset_files import (
    GoldRow,
    GoldSpan,
    Loader,
    build_row_id,
    find_data_files,
    iter_rows,
    list_zip_members,
    parse_json_lines,
    read_listed_objects,
    read_records,
    read_zip_member,
)
from core.exchange.public_sets import (
    build_xsum_id,
    parse_faithbench_row,
    parse_haluquestqa_rows,
    parse_mushroom_row,
    parse_ragtruth_row,
    parse_xsum_row,
)
from core.exchange.rows import (
    LABEL_BY_TRUTH_VALUE,
    ExchangeRow,
    FileRecord,
    merge_spans,
    normalize_word,
    parse_set_label,
)
from core.runtime.errors import InputError
from core.schema.records import Label

# Its authors publish it with the data: it keeps crawlers out.
ZIP_PASSWORD = "open-realmistake"  # noqa: S105
# folder, task, answering model, detector, prompt: every model got its four plain prompts
PLAIN_PROMPT_PATTERN = re.compile(
    r".*simple_prompt_baseline/[^/]+/[^/]+/([^/]+)/[^/]*_prompt_(\d)\.jsonl"
)
LABEL_BY_ERROR_WORD: dict[str, Label] = {"error": "hallucinated", "no_error": "supported"}
LANGUAGES = tuple("ar ca cs de en es eu fa fi fr hi it sv zh".split())
LABELLED_FILES = ("val/mushroom.*-val.*.jsonl", "test_labeled/mushroom.*-tst.*.jsonl")
TOP_LEVEL_FILES = ("mushroom.*-val.*.jsonl", "mushroom.*-tst.*.jsonl")
UNLABELLED_FILES = ("train_unlabeled/mushroom.*-train*.jsonl", "mushroom.*-train*.jsonl")
MUSHROOM_NAME_PATTERN = re.compile(r"mushroom\.([a-z]{2})-(val|tst|train)")
NO_ANSWER_WORDS = ("null", "")


def load_responses(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per answer of a model to a prompt that holds task and evidence."""
    for path in find_data_files(folder, ("data.zip",)):
        for _, record in _iter_records(path, split):
            yield GoldRow(
                id=record.inner("metadata").text("id"),
                place=record.place,
                response=record.text("llm_response"),
                label=record.chosen(LABEL_BY_ERROR_WORD, "error_label"),
                group=record.text("input"),
                documents=(record.text("input"),),
            )


def load_recorded_verdicts(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per detector's verdict on an answer; an unreadable one is `unclear`."""
    answers = {row.id: row for row in load_responses(folder, "responses", None)}
    for path in find_data_files(folder, ("error_detection_outputs.zip",)):
        for member, record in _iter_records(path, split):
            if answer := answers.get(record.inner("metadata").text("id")):
                detector = member.removeprefix("error_detection_outputs/").removesuffix(".jsonl")
                key, verdict = f"{member}:{answer.id}", _get_verdict(record)
                place = record.place
                yield replace(answer, id=key, place=place, recorded=verdict, recorded_by=detector)


def load_recorded_cases(folder: Path) -> list[RecordedCase]:
    """Return each answer with every detector's verdict under each of the four plain prompts."""
    answers = {row.id: row for row in load_responses(folder, "responses", None)}
    kinds: dict[str, str] = {}
    verdicts: dict[str, dict[Detector, RecordedAnswer]] = defaultdict(dict)
    for path in find_data_files(folder, ("error_detection_outputs.zip",)):
        for member, record in _iter_records(path, "simple_prompt_baseline"):
            match = PLAIN_PROMPT_PATTERN.fullmatch(member)
            answer = record.inner("metadata").text("id")
            if match is None or answer not in answers:
                continue
            kinds[answer] = record.inner("metadata").text("task_name")
            verdict = RecordedAnswer(_get_verdict(record), record.text("response"))
            verdicts[answer][Detector(match[1], match[2])] = verdict
    return [RecordedCase(row, kinds.get(i, ""), verdicts[i]) for i, row in answers.items()]


def _get_verdict(record: FileRecord) -> Label:
    is_read = record.fields.get("prediction") is not None
    return record.chosen(LABEL_BY_ERROR_WORD, "prediction") if is_read else "unclear"


def _iter_records(path: Path, split: str | None) -> Iterator[tuple[str, FileRecord]]:
    """Yield (member, row) of every table in the zip; `split` may name a folder or file inside."""
    for member in list_zip_members(path):
        if member.endswith(".jsonl") and (split is None or split in member):
            for record in parse_json_lines(
                read_zip_member(path, member, ZIP_PASSWORD), f"{path}/{member}"
            ):
                yield member, record


REALMISTAKE_LOADERS: Mapping[str, Loader] = {
    "realmistake/responses": load_responses,
    "realmistake/recorded": load_recorded_verdicts,
}


@dataclass(frozen=True, order=True)
class Detector:
    """A model with one of the prompts it was given."""

    name: str
    prompt: str


@dataclass(frozen=True)
class RecordedAnswer:
    """A recorded verdict; `unclear` if it could not be read."""

    label: Label
    reasoning: str


@dataclass(frozen=True)
class RecordedCase:
    """A labelled answer, its kind of task, and each detector's verdict."""

    row: GoldRow
    kind: str
    said: Mapping[Detector, RecordedAnswer]


@contextmanager
def _name_place_in_errors(record: FileRecord) -> Iterator[None]:
    try:
        yield
    except InputError as error:
        message = str(error)
        if not message.startswith(record.place):
            message = f"{record.place}: {message}"
        raise InputError(message) from error


def _build_gold_row(
    key: str, record: FileRecord, row: ExchangeRow, group: str, language: str = "en"
) -> GoldRow:
    """Return an imported row as a gold row; if no wrong words were found, spans are unknown."""
    gold = row.golds[0] if row.golds else None
    spans = merge_spans(GoldSpan(s.start, s.end) for s in gold.spans) if gold else None
    if gold and gold.label == "hallucinated" and not spans:
        spans = None
    return GoldRow(
        key,
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
    """Yield rows of one language, or of all; unlabelled ones only for the split `train`.

    Any hard span makes the answer hallucinated. The document is what a search engine's model wrote
    on the same question (`context_val`, `context_tst`).
    """
    patterns = UNLABELLED_FILES if split == "train" else (*LABELLED_FILES, *TOP_LEVEL_FILES)
    language = task if task in LANGUAGES else "*"
    wanted = [pattern.replace("mushroom.*", f"mushroom.{language}", 1) for pattern in patterns]
    for path in find_data_files(folder, wanted, split):
        match = MUSHROOM_NAME_PATTERN.search(path.name)
        if match:
            context = _load_contexts(folder, match[2], match[1])
            for record in read_records(path):
                if record.plain("model_output_text").strip():
                    yield _build_mushroom_row(record, path, match[1], context)


def _load_contexts(folder: Path, kind: str, language: str) -> dict[str, str]:
    for name in (f"{language}.jsonl.gz", f"{language}.jsonl"):
        path = folder / f"context_{kind}" / name
        if path.is_file():
            return {one.text("id"): one.plain("context") for one in read_records(path)}
    return {}


def _build_mushroom_row(
    record: FileRecord, path: Path, language: str, contexts: Mapping[str, str]
) -> GoldRow:
    with _name_place_in_errors(record):
        row = parse_mushroom_row(record)
    key = row.id if row.golds else f"{path.name.split('.jsonl')[0]}:{record.line}"
    gold_row = _build_gold_row(key, record, row, record.text("model_input"), language)
    texts = tuple(text for text in (contexts.get(key, ""),) if text.strip())
    soft = tuple(sorted(gold_row.soft, key=lambda span: span.start))
    return replace(gold_row, documents=texts, soft=soft)


def load_haluquestqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield both answers of a judged question; one with a factual error is hallucinated."""
    for key, record in iter_rows(folder, ("*.csv",), split, delimiter="\t"):
        with _name_place_in_errors(record):
            rows = parse_haluquestqa_rows(record)
        for number, row in enumerate(rows, start=1):
            yield _build_gold_row(f"{key}:{number}", record, row, row.question)


def load_ragtruth(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield answers with marked spans; their sources are not in the sample."""
    for key, record in iter_rows(folder, ("*.jsonl",), split):
        with _name_place_in_errors(record):
            row = parse_ragtruth_row(record)
        yield _build_gold_row(key, record, row, record.text("source_id"))


def load_faithbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield summaries with spans that people marked as unwanted additions or contradictions."""
    for path in find_data_files(folder, ("*batch_*.json",), split):
        for number, record in enumerate(read_listed_objects(path, "samples"), start=1):
            with _name_place_in_errors(record):
                row = parse_faithbench_row(record)
            key = build_row_id(path, folder, number)
            yield _build_gold_row(key, record, row, row.documents[0].text or "")


def load_xsum(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per summary; spans that more than half of its annotators marked count."""
    for path in find_data_files(folder, ("hallucination_annotations*.csv",), split):
        for name, lines in _group_by_summary(path):
            with _name_place_in_errors(lines[0]):
                row = parse_xsum_row(lines)
            yield _build_gold_row(name, lines[0], row, lines[0].text("bbcid"))


def load_xsum_factuality(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per summary with its annotators' majority label, unclear on a tie."""
    answers: Mapping[str, Label] = {"yes": "supported", "no": "hallucinated"}
    for path in find_data_files(folder, ("factuality_annotations*.csv",), split):
        for name, lines in _group_by_summary(path):
            first, votes = (
                lines[0],
                Counter(normalize_word(one.fields.get("is_factual")) for one in lines),
            )
            if set(votes) - {*answers, *NO_ANSWER_WORDS}:
                raise first.broken("is_factual to be yes, no or NULL", dict(votes))
            label: Label = "unclear"
            if votes["yes"] != votes["no"]:
                label = "supported" if votes["yes"] > votes["no"] else "hallucinated"
            yield GoldRow(name, first.place, first.text("summary"), label, first.text("bbcid"))


def _group_by_summary(path: Path) -> Iterator[tuple[str, list[FileRecord]]]:
    records_by_summary: dict[str, list[FileRecord]] = {}
    for record in read_records(path):
        records_by_summary.setdefault(build_xsum_id(record), []).append(record)
    yield from records_by_summary.items()


def load_qags(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield one row per summary sentence with the workers' majority label."""
    for key, record in iter_rows(folder, ("*.jsonl",), split):
        article = record.text("article")
        for number, sentence in enumerate(record.records("summary_sentences"), start=1):
            name, text = f"{key}:{number}", sentence.text("sentence")
            label = _get_majority_label(sentence)
            yield GoldRow(name, record.place, text, label, article, documents=(article,))


def _get_majority_label(sentence: FileRecord) -> Label:
    votes = Counter(
        normalize_word(one.fields.get("response")) for one in sentence.records("responses")
    )
    if not votes or set(votes) - {"yes", "no"} or votes["yes"] == votes["no"]:
        raise sentence.broken("an odd number of responses, each yes or no", dict(votes))
    return "supported" if votes["yes"] > votes["no"] else "hallucinated"


def load_bamboo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Yield statements on long papers; wrong is one sentence of an abstract, or all of it."""
    for key, record in iter_rows(folder, (f"{task or '*'}hallu_*.jsonl",), split):
        label = parse_set_label(record, record.fields.get("answer"), LABEL_BY_TRUTH_VALUE)
        statement, title = record.text("hypothesis"), record.text("title")
        documents = (record.text("content"),)
        yield GoldRow(key, record.place, statement, label, title, documents=documents)


MARKED_TEXT_LOADERS: Mapping[str, Loader] = {
    "mushroom": load_mushroom,
    "haluquestqa": load_haluquestqa,
    "ragtruth_sample": load_ragtruth,
    "xsum_hallucination/spans": load_xsum,
    "xsum_hallucination/factuality": load_xsum_factuality,
    "qags": load_qags,
    "faithbench": load_faithbench,
    "bamboo": load_bamboo,
}
