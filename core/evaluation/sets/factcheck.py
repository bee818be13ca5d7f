"""Factcheck-GPT: claims with the evidence found for them, its stance, and what is true.

FacTool's answers and their claims, also as HaluAgent's sentence sets hold them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import FACT_IS_TRUE, Record, label_of
from core.records import Label

CHINESE_FILES = ("dataset_chinese*.jsonl",)
CLAIM_FILES = {
    "sentence_math": "sentence/math*.jsonl",
    "sentence_science": "sentence/scientific*.jsonl",
    "sentence_kbqa": "sentence/knowledge_qa*.jsonl",
}
PAPER = ("paper_title", "paper_author(s)", "paper_pub_year")
UNLABELLED = "null"
COMPARED = "chinese_compared"


def load_code(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a generated function: does it pass the tests of its problem?"""
    for path in data_files(folder, ("code*.jsonl",), split):
        for record in records(path):
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("response"),
                label=label_of(record, record.fields.get("label"), FACT_IS_TRUE),
                group=record.text("prompt"),
                question=record.text("prompt"),
            )


def load_chinese(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of each of seven models; what nobody annotated is left out.

    For the task that compares them, what the other models answered to the same prompt is the
    evidence, annotated or not.
    """
    for path in data_files(folder, CHINESE_FILES, split):
        for record in records(path):
            prompt = record.text("prompt")
            answers = list(record.records("responses_and_factuality"))
            for number, answer in enumerate(answers, start=1):
                if answer.fields.get("factuality") is not None:
                    others = [one for one in answers if one is not answer]
                    yield GoldRow(
                        id=row_id(path, folder, record.line, number),
                        place=record.place,
                        response=_response(answer),
                        label=label_of(answer, answer.fields.get("factuality"), FACT_IS_TRUE),
                        group=prompt,
                        language="zh",
                        question=prompt,
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
    for path in data_files(folder, (CLAIM_FILES[task],), split):
        for record in records(path):
            for number, claim in enumerate(record.records("claims"), start=1):
                if claim.fields.get("label") not in (None, UNLABELLED):
                    yield GoldRow(
                        id=row_id(path, folder, record.line, number),
                        place=record.place,
                        response=_statement(claim),
                        label=label_of(claim, claim.fields.get("label"), FACT_IS_TRUE),
                        group=record.text("prompt"),
                        question=record.text("prompt"),
                    )


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
    gold = _gold(folder.parent / "factool")
    for path in data_files(folder, ("sentence/chinese*.jsonl",), split):
        for record in records(path):
            prompt, response = record.text("prompt"), _response(record)
            label = gold.get((prompt, response))
            if label:
                told = record.fields.get("response_level_factuality")
                yield GoldRow(
                    id=row_id(path, folder, record.line),
                    place=record.place,
                    response=response,
                    label=label,
                    group=prompt,
                    language="zh",
                    question=prompt,
                    documents=_found(record),
                    recorded=label_of(record, told, FACT_IS_TRUE),
                    recorded_by="FacTool",
                )


def _gold(folder: Path) -> Mapping[tuple[str, str], Label]:
    """The label of each annotated answer by prompt and answer."""
    rows = load_chinese(folder, "chinese", None)
    return {(row.question, row.response): row.label for row in rows if row.label}


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


TRUE_OR_FALSE: dict[str, Label | None] = {"true": "supported", "false": "hallucinated"}
FACTOOL_CLAIMS_RULES = (
    *(
        Rule(
            name="haluagent",
            task=task,
            loader=load_claims,
            labels={**TRUE_OR_FALSE, UNLABELLED: None},
            unit="one claim",
            group="prompt",
            licence="not stated (FacTool's data: Apache-2.0)",
            permits="not stated",
            note="No evidence. A calculation is written out with its result, a paper as title, "
            "authors, year.",
        )
        for task in CLAIM_FILES
    ),
    Rule(
        name="haluagent",
        task="sentence_chinese",
        loader=load_chinese_checked,
        labels=TRUE_OR_FALSE,
        unit="one answer: only whole answers have a gold label",
        group="prompt",
        licence="not stated (FacTool's data: Apache-2.0)",
        permits="not stated",
        note="The label is joined from factool/dataset_chinese on prompt and response; answers "
        "not found or not annotated there are left out. FacTool's own outputs are `recorded`; "
        "what it found on the web is the evidence.",
    ),
    Rule(
        name="factool",
        task="code",
        loader=load_code,
        labels=TRUE_OR_FALSE,
        unit="one generated function",
        group="prompt",
        licence="Apache-2.0",
        permits="yes",
        note="No evidence.",
    ),
    *(
        Rule(
            name="factool",
            task=task,
            loader=load_chinese,
            labels={**TRUE_OR_FALSE, UNLABELLED: None},
            unit="one answer of a model",
            group="prompt",
            licence="Apache-2.0",
            permits="yes",
            note=note,
        )
        for task, note in (
            ("chinese", "Chinese, no evidence."),
            (
                COMPARED,
                "Chinese. The documents are the other models' answers to the same prompt: "
                "what is measured is whether answers agree, not whether they are true.",
            ),
        )
    ),
)


FACTS: dict[str, Label] = {
    "true": "supported",
    "false": "hallucinated",
    "na": "unclear",
    "unknown": "unclear",
}
STANCES: dict[str, Label] = {
    "completely-support": "supported",
    "partially-support": "unclear",
    "irrelevant": "unclear",
    "refute": "hallucinated",
}
VERDICTS: dict[str, Label] = {
    "true": "supported",
    "false": "hallucinated",
    "not_enough_evidence": "unclear",
}
FACTBENCH = ("Factbench*.jsonl",)
STANCE_FILES = ("subtasks/subtask3*.jsonl",)


def load_factbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer of a model; there is no evidence."""
    for path in data_files(folder, FACTBENCH, split):
        for record in records(path):
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("response"),
                label=label_of(record, record.fields.get("response_label"), FACTS),
                group=record.text("prompt"),
                question=record.text("prompt"),
            )


def load_factbench_claims(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim of an answer; there is no evidence."""
    for path in data_files(folder, FACTBENCH, split):
        for record in records(path):
            claims, labels = record.texts("claims"), record.items("claim_labels")
            if len(claims) != len(labels):
                raise record.broken(f"{len(claims)} labels in claim_labels", len(labels))
            for number, (claim, label) in enumerate(zip(claims, labels, strict=True), start=1):
                yield GoldRow(
                    id=row_id(path, folder, record.line, number),
                    place=record.place,
                    response=claim,
                    label=label_of(record, label, FACTS),
                    group=record.text("prompt"),
                    question=record.text("prompt"),
                )


def load_stances(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim with one piece of evidence: does this piece carry it?"""
    prompts = _prompts(folder)
    for path in data_files(folder, STANCE_FILES, split):
        for record in records(path):
            claim = record.text("claim")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=claim,
                label=record.chosen(STANCES, "stance"),
                group=prompts.get(claim, claim),
                documents=(record.text("evidence"),),
            )


def load_verdicts(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim; every piece of evidence that subtask 3 holds for it is a document."""
    prompts, evidence = _prompts(folder), _evidence(folder)
    for path in data_files(folder, ("subtasks/subtask4*.jsonl",), split):
        for record in records(path):
            claim = record.text("claim")
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=claim,
                label=label_of(record, record.fields.get("label"), VERDICTS),
                group=prompts.get(claim, claim),
                documents=tuple(dict.fromkeys(evidence.get(claim, ()))),
            )


def _prompts(folder: Path) -> dict[str, str]:
    """The prompt that each claim came from, as far as the whole benchmark is there."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("factcheck-GPT-benchmark.jsonl*")):
        for record in records(path):
            sentences = record.inner("sentences")
            for name in sentences.fields:
                for claim in sentences.inner(name).texts("claims"):
                    found.setdefault(claim, record.text("prompt"))
    return found


def _evidence(folder: Path) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for path in sorted(folder.glob(f"{STANCE_FILES[0]}*")):
        for record in records(path):
            found.setdefault(record.text("claim"), []).append(record.text("evidence"))
    return found


LICENCE = "Apache-2.0"
PROMPT = "the prompt that the claim came from, else the claim"
FACTCHECK_RULES = (
    Rule(
        name="factcheck_gpt",
        task="factbench",
        loader=load_factbench,
        labels={"true": "supported", "false": "hallucinated", "NA": "unclear"},
        unit="one answer of a model",
        group="prompt",
        licence=LICENCE,
        permits="yes",
        note="No evidence.",
    ),
    Rule(
        name="factcheck_gpt",
        task="factbench_claims",
        loader=load_factbench_claims,
        labels={"true": "supported", "false": "hallucinated", "unknown": "unclear"},
        unit="one claim of an answer",
        group="prompt",
        licence=LICENCE,
        permits="yes",
        note="No evidence.",
    ),
    Rule(
        name="factcheck_gpt",
        task="subtask3",
        loader=load_stances,
        labels={**STANCES},
        unit="one claim with one piece of evidence",
        group=PROMPT,
        licence=LICENCE,
        permits="yes",
        note="Evidence that carries only a part leaves the claim undecided, as irrelevant "
        "evidence does.",
    ),
    Rule(
        name="factcheck_gpt",
        task="subtask4",
        loader=load_verdicts,
        labels={**VERDICTS},
        unit="one claim",
        group=PROMPT,
        licence=LICENCE,
        permits="yes",
        note="The documents are all evidence of subtask3 for the same claim.",
    ),
)
