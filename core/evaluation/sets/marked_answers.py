"""Texts in which people marked wrong words: HaluQuestQA, RAGTruth's sample, XSum summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, GoldSpan, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.haluquestqa import listed
from core.exchange.rows import Record, found_spans, joined, majority, nearest, shares, span, word
from core.records import Label

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
RULES = (
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
