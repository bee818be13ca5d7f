"""Sets of claims checked against evidence that people chose: encyclopaedia, news and papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from core.evaluation.files import Record, data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import (
    FEVER,
    TABLES,
    Columns,
    PairLoader,
    clean,
    row_id,
)
from core.records import Label

SYMMETRIC = Columns(("claim", "sentence2"), ("evidence", "sentence1"), ("gold_label", "label"))
HEALTH = Columns(("claim",), ("evidence",), ("label",), group=("question",))
# The dev file of covidfact and both of scifact call the label's column "entailment".
FACT = Columns(
    ("Sentence2", "sentence2", "claim"), ("sentence1", "evidence"), ("label", "entailment")
)
HEALTHVER: Mapping[str, Label | None] = {
    "supports": "supported",
    "refutes": "hallucinated",
    "neutral": "unclear",
}
COVID: Mapping[str, Label | None] = {
    "entailment": "supported",
    "not_entailment": "hallucinated",
    "supported": "supported",
    "refuted": "hallucinated",
}
SCIFACT: Mapping[str, Label | None] = {"entailment": "supported", "not_entailment": "unclear"}
AVERITEC: Mapping[str, Label | None] = {
    "supported": "supported",
    "refuted": "hallucinated",
    "not enough evidence": "unclear",
    "conflicting evidence/cherrypicking": "unclear",
}
CLIMATE: Mapping[str, Label | None] = {**FEVER, "disputed": "unclear"}


def _each(
    folder: Path, patterns: tuple[str, ...], split: str | None
) -> Iterator[tuple[Record, str]]:
    """Every record of the files, with the id of its row."""
    for path in data_files(folder, patterns, split):
        for record in records(path):
            yield record, row_id(path, folder, record.line)


def _fever(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Claims alone: the evidence pages are titles without text."""
    for record, own in _each(folder, ("*.json", "*.jsonl"), split):
        claim, label = clean(record.text("claim")), record.chosen(FEVER, "label")
        yield GoldRow(own, record.place, claim, label, claim)


def _averitec(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Each question with its answers is one document."""
    for record, own in _each(folder, ("*.json", "*.jsonl"), split):
        claim, label = clean(record.text("claim")), record.chosen(AVERITEC, "label")
        texts = tuple(_answered(question) for question in record.records("questions"))
        yield GoldRow(own, record.place, claim, label, claim, documents=texts)


def _answered(question: Record) -> str:
    """Question and answers as one text; a yes or no is followed by its reason."""
    said = [question.text("question")]
    for answer in question.records("answers"):
        said += [answer.text("answer"), answer.spare("boolean_explanation")]
    return " ".join(part.strip() for part in said if part.strip())


def _climate(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`pairs`: a claim with each of its sentences; `claims`: with all of them."""
    for record, own in _each(folder, ("*.jsonl",), split):
        claim, items = clean(record.text("claim")), record.records("evidences")
        texts = tuple(clean(item.text("evidence")) for item in items)
        if task == "claims":
            label = record.chosen(CLIMATE, "claim_label")
            yield GoldRow(own, record.place, claim, label, claim, documents=texts)
            continue
        for number, (item, text) in enumerate(zip(items, texts, strict=True)):
            label = item.chosen(FEVER, "evidence_label")
            one = f"{own}:{number}"
            yield GoldRow(one, record.place, claim, label, claim, documents=(text,))


def _fool_me_twice(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """`gold`: the sentences that decide, as one text; `retrieved`: what a search found."""
    for record, own in _each(folder, ("*.jsonl",), split):
        gold = _texts(record, "gold_evidence")
        texts = _texts(record, "retrieved_evidence") if task == "retrieved" else (" ".join(gold),)
        page = record.spare("wikipedia_page")
        yield GoldRow(
            own,
            record.place,
            clean(record.text("text", "claim")),
            record.chosen(FEVER, "label"),
            page or " ".join(gold),
            documents=tuple(text for text in texts if text),
        )


def _texts(record: Record, name: str) -> tuple[str, ...]:
    return tuple(clean(item.text("text")) for item in record.records(name))


_claim = partial(Rule, unit="a claim")
# The keys stay as they are: the shipped weights were trained on the parts that follow from them.
SHARED_SENTENCES = (
    "claims may share sentences: 576 of the 5,231 sentences stand in more than one part of a split"
)

CLAIMS_RULES = (
    _claim(
        "fever",
        _fever,
        labels=FEVER,
        group="claim",
        licence="CC BY-SA 3.0",
        permits="yes",
        note="claims alone: the set names pages without their text",
    ),
    _claim(
        "fever_symmetric",
        PairLoader(SYMMETRIC, FEVER, is_tied=True),
        labels=FEVER,
        group="rows that share claim or evidence",
        licence="MIT (code); data: CC BY-SA via Wikipedia",
        permits="yes",
        note="each claim stands with evidence for and against it, so both tie",
    ),
    _claim(
        "entailment_averitec",
        _averitec,
        labels=AVERITEC,
        group="claim",
        licence="CC BY-NC 4.0",
        permits="non-commercial",
        note="each question with its answers is a document; conflicting evidence is unclear",
    ),
    _claim(
        "entailment_climate_fever",
        _climate,
        task="pairs",
        unit="a claim with one evidence sentence",
        labels=FEVER,
        group="claim",
        licence="not stated",
        permits="not stated",
        note=SHARED_SENTENCES,
    ),
    _claim(
        "entailment_climate_fever",
        _climate,
        task="claims",
        unit="a claim with its five sentences",
        labels=CLIMATE,
        group="claim",
        licence="not stated",
        permits="not stated",
        note=f"DISPUTED, sentences for and against it, is unclear; {SHARED_SENTENCES}",
    ),
    _claim(
        "entailment_covidfact",
        PairLoader(FACT, COVID),
        labels=COVID,
        group="evidence",
        licence="not stated",
        permits="not stated",
        note="not_entailment is a claim edited until its evidence refutes it",
    ),
    _claim(
        "entailment_fm2",
        _fool_me_twice,
        task="gold",
        labels=FEVER,
        group="encyclopaedia page",
        licence="Apache-2.0",
        permits="yes",
        note="the gold sentences make one document",
    ),
    _claim(
        "entailment_fm2",
        _fool_me_twice,
        task="retrieved",
        labels=FEVER,
        group="encyclopaedia page",
        licence="Apache-2.0",
        permits="yes",
        note="what a search found, each a document; the label holds for the gold sentences",
    ),
    _claim(
        "entailment_healthver",
        PairLoader(HEALTH, HEALTHVER),
        labels=HEALTHVER,
        group="question that claims and papers answer",
        licence="not stated",
        permits="not stated",
    ),
    _claim(
        "entailment_scifact_rte",
        PairLoader(FACT, SCIFACT, TABLES, is_tied=True),
        labels=SCIFACT,
        group="rows that share claim or evidence",
        licence="not stated (SciFact: CC BY-NC 2.0)",
        permits="non-commercial",
        note="not_entailment mixes refuted and undecided: the evidence does not decide",
    ),
)
