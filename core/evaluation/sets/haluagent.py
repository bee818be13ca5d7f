"""Answers of models judged right or wrong: HaluAgent, FacTool and HaluEval.

Also sets that nobody labelled for hallucination: recorded debates, code and word problems.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.evaluation.files import data_files, json_object, rows_in
from core.evaluation.gold import GoldRow, Loader, answered
from core.exchange.packed import tarred
from core.exchange.rows import (
    FACT_IS_TRUE,
    WRONG_IS_TRUE,
    Record,
    found_spans,
    label_of,
    word,
)
from core.records import Label

CLAIM_FILES = {
    "sentence_math": "sentence/math*.jsonl",
    "sentence_science": "sentence/scientific*.jsonl",
    "sentence_kbqa": "sentence/knowledge_qa*.jsonl",
}
PAPER = ("paper_title", "paper_author(s)", "paper_pub_year")
COMPARED = "chinese_compared"
QA_FILES = ("qa_cleaned*.json*", "qa_data*.json*", "final_english*.json*")
YES_IS_WRONG: dict[str, Label] = {"yes": "hallucinated", "no": "supported"}
ANSWERS: tuple[tuple[str, Label], ...] = (
    ("right", "supported"),
    ("hallucinated", "hallucinated"),
)
JUDGE = "Llama-2-7B, fine-tuned (recorded)"
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
    for own, record in rows_in(folder, (pattern,), split):
        if _is_of(task, record):
            # `<e>` parts the answers that were found on the web.
            texts = (record.text(evidence).replace("<e>", "\n\n"),) if evidence else ()
            yield answered(
                own,
                record,
                record.text("question"),
                record.text("answer"),
                label_of(record, record.fields.get("judge"), WRONG_IS_TRUE),
                language=language,
                documents=texts,
            )


def _is_of(task: str, record: Record) -> bool:
    """Two tasks share a file: their questions tell them apart."""
    if task not in ("date", "translation"):
        return True
    return (TRANSLATE in record.text("question")) == (task == "translation")


def load_code(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a generated function: does it pass the tests of its problem?"""
    for own, record in rows_in(folder, ("code*.jsonl",), split):
        label = label_of(record, record.fields.get("label"), FACT_IS_TRUE)
        yield answered(own, record, record.text("prompt"), record.text("response"), label)


def load_chinese(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of each of seven models; what nobody annotated is left out.

    For the task that compares them, what the other models answered to the same prompt is the
    evidence, annotated or not.
    """
    for own, record in rows_in(folder, ("dataset_chinese*.jsonl",), split):
        answers = list(record.records("responses_and_factuality"))
        for number, answer in enumerate(answers, start=1):
            if answer.fields.get("factuality") is not None:
                others = [one for one in answers if one is not answer]
                yield answered(
                    f"{own}:{number}",
                    record,
                    record.text("prompt"),
                    _response(answer),
                    label_of(answer, answer.fields.get("factuality"), FACT_IS_TRUE),
                    language="zh",
                    documents=_texts(others) if task == COMPARED else (),
                )


def _texts(answers: Sequence[Record]) -> tuple[str, ...]:
    """What these say; an answer without any text says nothing."""
    return tuple(_response(one) for one in answers if one.fields.get("response") not in (None, ""))


def _response(answer: Record) -> str:
    """The answer's text; some answers are bare numbers."""
    said = answer.fields.get("response")
    return str(said) if isinstance(said, int | float) else answer.text("response")


def load_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim; those labelled “null” are left out."""
    for own, record in rows_in(folder, (CLAIM_FILES[task],), split):
        for number, claim in enumerate(record.records("claims"), start=1):
            if claim.fields.get("label") not in (None, "null"):
                label = label_of(claim, claim.fields.get("label"), FACT_IS_TRUE)
                said, prompt = _statement(claim), record.text("prompt")
                yield answered(f"{own}:{number}", record, prompt, said, label)


def _statement(claim: Record) -> str:
    """The claim as one line: a sentence, a calculation with its result, or a paper."""
    if all(name in claim.fields for name in PAPER):
        title, authors, year = (claim.spare(name) for name in PAPER)
        return f"“{title}”, {authors}, {year}"
    if isinstance(claim.fields.get("claim"), str):
        return claim.text("claim")
    sum_ = claim.inner("claim")
    answer = sum_.plain("calculated_answer")
    # An equation's solution is one itself: “2x = 10, so x = 5”.
    sign = ", so " if "=" in answer else " = "
    return f"{sum_.text('math_calculation')}{sign}{answer}"


def load_chinese_checked(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer whose label FacTool's own data holds, with what was found on the web.

    The file itself has no gold label, of claims or answers: what it says is FacTool's output and
    becomes `recorded`. Answers that FacTool's data does not hold or annotate are left out.
    """
    annotated = load_chinese(folder.parent / "factool", "chinese", None)
    gold = {(row.question, row.response): row.label for row in annotated if row.label}
    for own, record in rows_in(folder, ("sentence/chinese*.jsonl",), split):
        prompt, response = record.text("prompt"), _response(record)
        label = gold.get((prompt, response))
        if label:
            told = record.fields.get("response_level_factuality")
            yield answered(
                own,
                record,
                prompt,
                response,
                label,
                language="zh",
                documents=_found(record),
                recorded=label_of(record, told, FACT_IS_TRUE),
                recorded_by="FacTool",
            )


def _found(record: Record) -> tuple[str, ...]:
    """What was found on the web for each claim, each piece once; nothing where it is not kept."""
    if not isinstance(record.fields.get("evidences"), list):
        return ()
    pieces: dict[str, None] = {}
    for one in record.items("evidences"):
        found = one.get("evidence") if isinstance(one, dict) else None
        for piece in found if isinstance(found, list) else []:
            if isinstance(piece, str) and piece.strip():
                pieces[piece.strip()] = None
    return tuple(pieces)


def load_qa(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question: the right answer and the one that was made to be wrong."""
    for own, record in rows_in(folder, QA_FILES, split):
        for kind, label in ANSWERS:
            question, answer = record.text("question"), record.text(f"{kind}_answer")
            texts = (record.text("knowledge"),)
            yield answered(f"{own}:{kind}", record, question, answer, label, documents=texts)


def load_general(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Chat answers without evidence; marked pieces are found in the answer by their text."""
    for own, record in rows_in(folder, ("general_data*.json*",), split):
        query, response = record.text("user_query"), record.text("chatgpt_response")
        label = label_of(record, record.fields.get("hallucination"), YES_IS_WRONG)
        spans = found_spans(response, record.texts("hallucination_spans"))
        # A wrong answer none of whose pieces stands in it: nobody knows which words.
        known = spans if spans or label == "supported" else None
        yield answered(own, record, query, response, label, spans=known)


def load_judged(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Answers with what one small model said of them; an answer it did not give is `unclear`."""
    for own, record in rows_in(folder, ("qa_judgements*.json*",), split):
        yield answered(
            own,
            record,
            record.text("question"),
            record.text("answer"),
            label_of(record, record.fields.get("ground_truth"), YES_IS_WRONG),
            documents=(record.text("knowledge"),),
            recorded=YES_IS_WRONG.get(word(record.fields.get("judgement")), "unclear"),
            recorded_by=JUDGE,
        )


def load_debates(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a recorded debate: the translation that it ended with."""
    for path in data_files(folder, ("*.tar", "*.tar.gz", "*.tgz"), split):
        for name, data in tarred(str(path), path.read_bytes()):
            if name.endswith(".json"):
                record = json_object(data, f"{path}/{name}")
                said, source = record.text("debate translation"), record.text("source")
                yield answered(name, record, source, said, None)


def load_human_eval(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a code problem with its reference solution."""
    for _, record in rows_in(folder, ("HumanEval*.jsonl",), split):
        solution = record.text("canonical_solution")
        yield answered(record.text("task_id"), record, record.text("prompt"), solution, None)


def load_ape(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a word problem with its gold value."""
    for own, record in rows_in(folder, ("*ape*.json", "*ape*.jsonl"), split):
        question, value = record.text("original_text"), record.text("ans")
        yield answered(own, record, question, value, None, language="zh")


LOADERS: Mapping[str, Loader] = {
    "haluagent": load_answers,
    **{f"haluagent/{task}": load_claims for task in CLAIM_FILES},
    "haluagent/sentence_chinese": load_chinese_checked,
    "factool/code": load_code,
    "factool": load_chinese,
    "halueval/qa": load_qa,
    "halueval/general": load_general,
    "halueval/qa_judgements": load_judged,
    "mad_debates": load_debates,
    "human_eval": load_human_eval,
    "ape210k": load_ape,
}
