"""HaluAgent's test sets: answers of models, judged right or wrong, mostly in Chinese.

HaluEval: made-up wrong answers beside right ones, marked chat answers, and a judge's words.

Sets that nobody labelled for hallucination: recorded debates, code and word problems.
"""

from __future__ import annotations

import json
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError
from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.factcheck import FACTOOL_CLAIMS_RULES
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import WRONG_IS_TRUE, Record, found_spans, label_of, word
from core.records import Label

MOST_BYTES = 4 * 2**20  # of one recorded debate; the largest has about a fiftieth
MOST_TOGETHER = 256 * 2**20


def load_debates(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a recorded debate: the translation that it ended with."""
    for path in data_files(folder, ("*.tar", "*.tar.gz", "*.tgz"), split):
        for name, record in _in_archive(path):
            yield GoldRow(
                id=name,
                place=record.place,
                response=record.text("debate translation"),
                label=None,
                group=record.text("source"),
                question=record.text("source"),
            )


def _in_archive(path: Path) -> Iterator[tuple[str, Record]]:
    """(name, object) of each JSON file in a tar, read in memory; links are passed over."""
    try:
        with tarfile.open(path) as archive:
            read = 0
            for member in archive:
                read += member.size
                if member.size > MOST_BYTES or read > MOST_TOGETHER:
                    raise InputError(f"{path}: expected small JSON files, found: {member.name}.")
                opened = archive.extractfile(member) if member.isreg() else None
                if opened and member.name.endswith(".json"):
                    yield member.name, _parsed(opened.read(), f"{path}/{member.name}")
    except (OSError, EOFError, tarfile.TarError, zlib.error) as error:
        raise InputError(f"Expected a tar archive at {path}, found: {error}.") from error


def _parsed(data: bytes, file: str) -> Record:
    try:
        value = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}, line 1: expected JSON, found: {error}.") from error
    if not isinstance(value, dict):
        raise InputError(f"{file}, line 1: expected a JSON object, found another kind.")
    return Record(value, file, 1)


def load_human_eval(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a code problem with its reference solution."""
    for path in data_files(folder, ("HumanEval*.jsonl",), split):
        for record in records(path):
            prompt = record.text("prompt")
            yield GoldRow(
                id=record.text("task_id"),
                place=record.place,
                response=record.text("canonical_solution"),
                label=None,
                group=prompt,
                question=prompt,
            )


def load_ape(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a word problem with its gold value."""
    for path in data_files(folder, ("*ape*.json", "*ape*.jsonl"), split):
        for record in records(path):
            question = record.text("original_text")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("ans"),
                label=None,
                group=question,
                language="zh",
                question=question,
            )


NO_LABEL = "No label: it can be run, not scored."
UNLABELLED_RULES = (
    Rule(
        name="mad_debates",
        loader=load_debates,
        unit="one recorded debate with the translation it ended with",
        group="source",
        licence="GPL-3.0",
        permits="copyleft",
        note=f"{NO_LABEL} The reference translations are not read.",
    ),
    Rule(
        name="human_eval",
        loader=load_human_eval,
        unit="one code problem with its reference solution",
        group="prompt",
        licence="MIT",
        permits="yes",
        note=NO_LABEL,
    ),
    Rule(
        name="ape210k",
        loader=load_ape,
        unit="one word problem with its gold value",
        group="original_text",
        licence="not stated (code: MIT)",
        permits="not stated",
        note=f"{NO_LABEL} Chinese.",
    ),
)


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


HALUEVAL_RULES = (
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
HALUAGENT_RULES = (
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
    *FACTOOL_CLAIMS_RULES,
)
