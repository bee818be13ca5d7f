"""Questions with right and wrong answers: TruthfulQA, HalluQA, PubMedQA, NQ-open."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.evaluation.sets.sentence_pairs import keyed
from core.exchange.rows import Record
from core.records import Label

JUDGED_ANSWER = re.compile(r"Q: (?P<question>.*?)\nA: (?P<answer>.*)\nTrue:\s*", re.DOTALL)
CHOICE = re.compile(r"\s([A-Z]):")
LISTS: tuple[tuple[str, Label], ...] = (
    ("Incorrect Answers", "hallucinated"),
    ("Correct Answers", "supported"),
)
DECISIONS = ("yes", "no", "maybe")


def load_truthfulqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row for each listed answer, true or false; there is no evidence."""
    for path in data_files(folder, ("TruthfulQA*.csv",), split):
        for record in records(path):
            base = row_id(path, folder, record.line)
            question = record.text("Question")
            listed = {answer: label for field, label in LISTS for answer in _listed(record, field)}
            for number, (answer, label) in enumerate(listed.items(), start=1):
                yield _answered(record, f"{base}:{number}", question, answer, label)


def _listed(record: Record, field: str) -> list[str]:
    """The answers that semicolons part."""
    return [one.strip() for one in record.text(field).split(";") if one.strip()]


def _answered(
    record: Record,
    name: str,
    question: str,
    answer: str,
    label: Label,
    *,
    language: str = "en",
) -> GoldRow:
    return GoldRow(
        id=name,
        place=record.place,
        response=answer,
        label=label,
        group=question,
        language=language,
        question=question,
    )


def load_truthfulqa_finetune(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers of models and people to the same questions, judged true or false."""
    meanings: dict[str, Label] = {"yes": "supported", "no": "hallucinated"}
    for path in data_files(folder, ("finetune_truth*.jsonl",), split):
        for record in records(path):
            found = JUDGED_ANSWER.fullmatch(record.text("prompt"))
            if not found:
                raise record.broken("a prompt “Q: …, A: …, True:”", record.text("prompt"))
            label = record.chosen(meanings, "completion")
            if found["answer"].strip():
                name = row_id(path, folder, record.line)
                yield _answered(record, name, found["question"], found["answer"], label)


def load_halluqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row for each best and each wrong answer, in Chinese."""
    kinds: tuple[tuple[str, Label], ...] = (
        ("Best Answer", "supported"),
        ("Wrong_Answer", "hallucinated"),
    )
    for path in data_files(folder, ("HalluQA.json*",), split):
        for record in records(path):
            question = record.text("Question")
            found = [
                (field, label)
                for start, label in kinds
                for field in record.fields
                if field.startswith(start) and record.spare(field)
            ]
            for number, (field, label) in enumerate(found, start=1):
                name = row_id(path, folder, record.line, number)
                yield _answered(record, name, question, record.spare(field), label, language="zh")


def load_halluqa_choices(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row for each choice of a question; one choice is right."""
    for path in data_files(folder, ("HalluQA_mc*.json*",), split):
        for record in records(path):
            question, *rest = CHOICE.split(record.text("question"))
            letters, texts = rest[::2], [text.strip() for text in rest[1::2]]
            right = record.text("answer").removeprefix("Answer:").strip()
            if right not in letters or not all(texts):
                raise record.broken(f"an answer among {', '.join(letters)}", right)
            asked = question.removeprefix("Question:").strip()
            for letter, text in zip(letters, texts, strict=True):
                name = f"{row_id(path, folder, record.line)}:{letter}"
                label: Label = "supported" if letter == right else "hallucinated"
                yield _answered(record, name, asked, text, label, language="zh")


def load_pubmedqa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question, “Yes” and “No”; the abstract without its conclusion is the document."""
    for path in data_files(folder, ("*pqa*.json",), split):
        for key, record in keyed(path):
            decision = record.plain("final_decision").strip().lower()
            if decision not in DECISIONS:
                raise record.broken("final_decision to be yes, no or maybe", decision)
            question = record.text("QUESTION")
            for answer in ("Yes", "No"):
                told: Label = "supported" if answer.lower() == decision else "hallucinated"
                yield GoldRow(
                    id=f"{key}:{answer.lower()}",
                    place=record.place,
                    response=answer,
                    label="unclear" if decision == "maybe" else told,
                    group=question,
                    question=question,
                    documents=("\n\n".join(record.texts("CONTEXTS")),),
                )


def load_nq_open(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """The first accepted answer to each question; there is neither evidence nor a wrong answer."""
    for path in data_files(folder, ("NQ-open*.jsonl",), split):
        for record in records(path):
            answers = [one.strip() for one in record.texts("answer") if one.strip()]
            if not answers:
                raise record.broken("at least one accepted answer")
            name = row_id(path, folder, record.line)
            yield _answered(record, name, record.text("question"), answers[0], "supported")


ANSWERS_RULES = (
    Rule(
        name="truthfulqa",
        loader=load_truthfulqa,
        task="pairs",
        labels={"Correct Answers": "supported", "Incorrect Answers": "hallucinated"},
        unit="one question with one listed answer (CEDA 4.3)",
        group="Question",
        licence="not stated (upstream TruthfulQA: Apache-2.0)",
        permits="not stated",
        note="No evidence. An answer listed twice for a question counts once.",
    ),
    Rule(
        name="truthfulqa",
        loader=load_truthfulqa_finetune,
        task="finetune",
        labels={"yes": "supported", "no": "hallucinated"},
        unit="one question with one answer",
        group="the question in the prompt",
        licence="not stated (upstream TruthfulQA: Apache-2.0)",
        permits="not stated",
        note="No evidence; the questions are those of the task pairs. Rows whose answer is "
        "empty are left out.",
    ),
    Rule(
        name="halluqa",
        loader=load_halluqa,
        task="answers",
        labels={"Best Answer": "supported", "Wrong_Answer": "hallucinated"},
        unit="one question with one listed answer",
        group="Question",
        licence="Apache-2.0",
        permits="yes",
        note="Chinese, no evidence.",
    ),
    Rule(
        name="halluqa",
        loader=load_halluqa_choices,
        task="mc",
        labels={"the letter of the answer": "supported", "another letter": "hallucinated"},
        unit="one question with one choice",
        group="the question",
        licence="Apache-2.0",
        permits="yes",
        note="Chinese, no evidence.",
    ),
    Rule(
        name="pubmedqa",
        loader=load_pubmedqa,
        labels={"the decision": "supported", "its opposite": "hallucinated", "maybe": "unclear"},
        unit="one question with the answer “Yes” or “No”, so two rows a question",
        group="QUESTION",
        licence="MIT",
        permits="yes",
        note="The contexts are one document; LONG_ANSWER, which gives the decision away, is not "
        "read. Where the decision is maybe, neither answer is decided.",
    ),
    Rule(
        name="nq_open",
        loader=load_nq_open,
        labels={"an accepted answer": "supported"},
        unit="one question with its first accepted answer",
        group="question",
        licence="CC BY-SA 3.0",
        permits="yes",
        note="No evidence and no wrong answer: the share called supported is all that it can "
        "tell (CEDA 4.3 counts it so).",
    ),
)
