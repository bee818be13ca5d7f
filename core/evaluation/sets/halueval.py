"""HaluEval: made-up wrong answers beside right ones, marked chat answers, and a judge's words."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import Record, found_spans, label_of, word
from core.records import Label

QA_FILES = ("qa_cleaned*.json*", "qa_data*.json*", "final_english*.json*")
GENERAL_FILES = ("general_data*.json*",)
JUDGED_FILES = ("qa_judgements*.json*",)
YES_IS_WRONG: dict[str, Label] = {"yes": "hallucinated", "no": "supported"}
JUDGE = "Llama-2-7B, fine-tuned (recorded)"


def load_qa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question: the right answer and the one that was made to be wrong."""
    for path in data_files(folder, QA_FILES, split):
        for record in records(path):
            name = row_id(path, folder, record.line)
            yield _answer(record, f"{name}:right", "right_answer", "supported")
            yield _answer(record, f"{name}:hallucinated", "hallucinated_answer", "hallucinated")


def _answer(record: Record, row_id: str, field: str, label: Label) -> GoldRow:
    question = record.text("question")
    return GoldRow(
        id=row_id,
        place=record.place,
        response=record.text(field),
        label=label,
        group=question,
        question=question,
        documents=(record.text("knowledge"),),
    )


def load_general(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Chat answers without evidence; marked pieces are found in the answer by their text."""
    for path in data_files(folder, GENERAL_FILES, split):
        for record in records(path):
            query = record.text("user_query")
            response = record.text("chatgpt_response")
            label = label_of(record, record.fields.get("hallucination"), YES_IS_WRONG)
            spans = found_spans(response, record.texts("hallucination_spans"))
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=response,
                label=label,
                group=query,
                question=query,
                # A wrong answer none of whose pieces stands in it: nobody knows which words.
                spans=spans if spans or label == "supported" else None,
            )


def load_judged(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers with what one small model said of them; an answer it did not give is `unclear`."""
    for path in data_files(folder, JUDGED_FILES, split):
        for record in records(path):
            question = record.text("question")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("answer"),
                label=label_of(record, record.fields.get("ground_truth"), YES_IS_WRONG),
                group=question,
                question=question,
                documents=(record.text("knowledge"),),
                recorded=YES_IS_WRONG.get(word(record.fields.get("judgement")), "unclear"),
                recorded_by=JUDGE,
            )


RULES = (
    Rule(
        name="halueval",
        task="qa",
        loader=load_qa,
        labels={"right_answer": "supported", "hallucinated_answer": "hallucinated"},
        unit="one answer; two a question",
        group="question",
        licence="not stated (copy cleaned by others); HaluEval: MIT",
        permits="not stated",
        note="The answers' style gives the label away: never trained or tuned on.",
    ),
    Rule(
        name="halueval",
        task="general",
        loader=load_general,
        labels={"yes": "hallucinated", "no": "supported"},
        unit="one chat answer",
        group="user_query",
        licence="MIT",
        permits="yes",
        note="No evidence. Pieces that are not in the answer (comments) mark nothing; a wrong "
        "answer without any found piece has unknown spans. Never trained or tuned on.",
    ),
    Rule(
        name="halueval",
        task="qa_judgements",
        loader=load_judged,
        labels={"Yes": "hallucinated", "No": "supported"},
        unit="one answer",
        group="question",
        licence="not stated",
        permits="not stated",
        note="`recorded` is what Llama-2-7B answered; “failed!” counts as unclear. These verdicts "
        "are measured, no engine is run.",
        is_recorded=True,
    ),
)
