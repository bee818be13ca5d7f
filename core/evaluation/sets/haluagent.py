"""HaluAgent's test sets: answers of models, judged right or wrong, mostly in Chinese."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets import factool_claims
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import WRONG_IS_TRUE, Record, label_of

TRANSLATE = "翻译"  # the word for "translate": the file holds these questions and those on dates
# task -> (pattern of the file, language, field whose text is the evidence)
FILES: dict[str, tuple[str, str, str]] = {
    "word_count": ("word_cnt*.json", "zh", ""),
    "date": ("translation*date*.json", "zh", ""),
    "translation": ("translation*date*.json", "zh", ""),
    "code": ("*humaneval*.json", "zh", ""),
    "ape": ("ape_*.json", "zh", ""),
    "halueval_qa": ("halueval_qa*.json", "en", "knowledge"),
    "webqa": ("webqa*.json", "zh", "output"),
    "halluqa": ("halluqa*.json", "zh", ""),
    "halueval2": ("halueval2.0*.json", "en", ""),
}


def load_answers(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer; `judge` 1 says that it is hallucinated."""
    pattern, language, evidence = FILES[task]
    for path in data_files(folder, (pattern,), split):
        for record in records(path):
            if _is_of(task, record):
                question = record.text("question")
                yield GoldRow(
                    id=row_id(path, folder, record.line),
                    place=record.place,
                    response=record.text("answer"),
                    label=label_of(record, record.fields.get("judge"), WRONG_IS_TRUE),
                    group=question,
                    language=language,
                    question=question,
                    documents=(_evidence(record, evidence),) if evidence else (),
                )


def _is_of(task: str, record: Record) -> bool:
    """Two tasks share a file: their questions tell them apart."""
    if task not in ("date", "translation"):
        return True
    return (TRANSLATE in record.text("question")) == (task == "translation")


def _evidence(record: Record, field: str) -> str:
    """The evidence; `<e>` parts the answers that were found on the web."""
    return record.text(field).replace("<e>", "\n\n")


NOTES = {
    "word_count": "No evidence: the question states how many characters are asked for.",
    "date": "No evidence: the question is a count of days.",
    "translation": "No evidence: the question holds the text to translate.",
    "code": "No evidence: the question is a function's docstring in Chinese.",
    "ape": "No evidence: a word problem; its gold value (`result`) is not read.",
    "halueval_qa": "The knowledge is the document. Never trained or tuned on.",
    "webqa": "The document is what was found on the web, the reference answer among it.",
    "halluqa": "No evidence: the reference answers are not read.",
    "halueval2": "No evidence.",
}
RULES = (
    *(
        Rule(
            name="haluagent",
            task=task,
            loader=load_answers,
            labels={"judge 0": "supported", "judge 1": "hallucinated"},
            unit="one answer of a model",
            group="question",
            licence="not stated",
            permits="not stated",
            note=NOTES[task],
        )
        for task in FILES
    ),
    *factool_claims.RULES,
)
