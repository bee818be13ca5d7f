"""Texts in which people marked wrong words: HaluQuestQA, RAGTruth's sample, XSum summaries.

Mu-SHROOM: answers of models in fourteen languages with the words that people found wrong.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, GoldSpan, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.public_sets import listed
from core.exchange.rows import Record, found_spans, joined, majority, nearest, shares, span, word
from core.records import Label

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


MUSHROOM_RULES = tuple(
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


NO_WORDS = ("null", "")
FACTUAL: dict[str, Label] = {"yes": "supported", "no": "hallucinated"}


def load_haluquestqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a judged question, one an answer; an answer with a factual error is hallucinated."""
    for path in data_files(folder, ("*.csv",), split):
        for record in records(path, delimiter="\t"):
            pieces = listed(record, "factuality_span")
            answers = listed(record, "factuality_label")
            if len(pieces) != len(answers) or set(answers) - {"answer1", "answer2"}:
                raise record.broken("answer1 or answer2 in factuality_label for each span", answers)
            for number in (1, 2):
                wrong = [
                    piece
                    for piece, answer in zip(pieces, answers, strict=True)
                    if answer == f"answer{number}"
                ]
                yield _judged(record, row_id(path, folder, record.line, number), number, wrong)


def _judged(record: Record, name: str, number: int, wrong: Sequence[str]) -> GoldRow:
    response, question = record.text(f"ans{number}_text"), record.text("question_text")
    spans = found_spans(response, wrong)
    return GoldRow(
        id=name,
        place=record.place,
        response=response,
        label="hallucinated" if wrong else "supported",
        group=question,
        question=question,
        # Where no piece is found again, nobody knows which words are wrong.
        spans=spans if spans or not wrong else None,
    )


def load_ragtruth(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers with marked spans; their sources are not in the sample."""
    for path in data_files(folder, ("*.jsonl",), split):
        for record in records(path):
            response = record.text("response")
            spans = [
                span(record, response, one.fields.get("start"), one.fields.get("end"))
                for one in record.records("labels")
            ]
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=response,
                label="hallucinated" if spans else "supported",
                group=record.text("source_id"),
                spans=joined(spans),
            )


def load_xsum(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary; what more than half of its annotators marked counts."""
    for path in data_files(folder, ("hallucination_annotations*.csv",), split):
        for lines in _summaries(path):
            first = lines[0]
            marked = _marked(lines)
            is_wrong = 2 * len({_worker(line) for line in lines if _is_mark(line)}) > len(marked)
            soft = shares(marked)
            hard = majority(soft)
            yield GoldRow(
                id=_name(first),
                place=first.place,
                response=first.text("summary"),
                label="hallucinated" if is_wrong else "supported",
                group=first.text("bbcid"),
                # Most found something wrong but not the same words: nobody knows which.
                spans=hard if hard or not is_wrong else None,
                soft=soft,
            )


def load_xsum_factuality(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary; the label that most annotators gave, unclear where they are divided."""
    for path in data_files(folder, ("factuality_annotations*.csv",), split):
        for lines in _summaries(path):
            first = lines[0]
            said = Counter(word(line.fields.get("is_factual")) for line in lines)
            if set(said) - {*FACTUAL, *NO_WORDS}:
                raise first.broken("is_factual to be yes, no or NULL", dict(said))
            difference = said["yes"] - said["no"]
            clear: Label = "supported" if difference > 0 else "hallucinated"
            yield GoldRow(
                id=_name(first),
                place=first.place,
                response=first.text("summary"),
                label=clear if difference else "unclear",
                group=first.text("bbcid"),
            )


def _name(record: Record) -> str:
    return f"{record.text('bbcid')}:{record.text('system')}"


def _summaries(path: Path) -> Iterator[list[Record]]:
    """The lines on each summary: several annotators, several spans each."""
    found: dict[str, list[Record]] = {}
    for record in records(path):
        found.setdefault(_name(record), []).append(record)
    yield from found.values()


def _marked(lines: Sequence[Record]) -> list[list[GoldSpan]]:
    """The spans of each annotator, also of those who marked nothing."""
    found: dict[str, list[GoldSpan]] = {}
    for line in lines:
        spans = found.setdefault(_worker(line), [])
        if _is_mark(line):
            text = line.text("hallucinated_span").replace("\\n", "").strip()
            # Starts count from 1 and are often a few characters off: the text is what counts.
            start = nearest(line.text("summary"), text, int(line.number("hallucinated_span_start")))
            if start >= 0:
                spans.append(GoldSpan(start, start + len(text)))
    return list(found.values())


def _worker(line: Record) -> str:
    return line.text("worker_id")


def _is_mark(line: Record) -> bool:
    """Whether the line marks something; NULL says that the annotator found nothing."""
    return word(line.fields.get("hallucination_type")) not in NO_WORDS


XSUM = "CC BY 4.0"
MARKED_ANSWERS_RULES = (
    Rule(
        name="haluquestqa",
        loader=load_haluquestqa,
        labels={"no factual error": "supported", "any factuality_span": "hallucinated"},
        unit="one answer (of a person or a model) as one expert judged it",
        group="question_text",
        licence="Apache-2.0",
        permits="yes",
        note="No evidence. Only factual errors count, not gaps or irrelevance. Spans are found "
        "by text in any case; a wrong answer without found span has unknown spans.",
    ),
    Rule(
        name="ragtruth_sample",
        loader=load_ragtruth,
        labels={"any span": "hallucinated", "no span": "supported"},
        unit="one answer of a model",
        group="source_id",
        licence="MIT",
        permits="yes",
        note="No evidence: the sources are not in the sample. Never trained or tuned on.",
    ),
    Rule(
        name="xsum_hallucination",
        task="spans",
        loader=load_xsum,
        labels={"marked by most": "hallucinated", "not marked by most": "supported"},
        unit="one summary",
        group="bbcid",
        licence=XSUM,
        permits="yes",
        note="No evidence: the articles are not in the set. Soft spans hold the share of "
        "annotators; hard ones are those of more than half of them.",
    ),
    Rule(
        name="xsum_hallucination",
        task="factuality",
        loader=load_xsum_factuality,
        labels={"most say yes": "supported", "most say no": "hallucinated", "divided": "unclear"},
        unit="one summary",
        group="bbcid",
        licence=XSUM,
        permits="yes",
        note="No evidence. An annotator without answer (NULL) does not count.",
    ),
)
