"""Single facts that people judged: HELM/MIND, FActScore, HaluEval 2.0, RefChecker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.evaluation.sets.sentence_pairs import keyed
from core.exchange.rows import FACT_IS_TRUE, WRONG_IS_TRUE, Record, label_of, word
from core.records import Label

ATOMIC: dict[str, Label | None] = {"s": "supported", "ns": "hallucinated", "ir": None}
TRIPLETS: dict[str, Label] = {
    "entailment": "supported",
    "neutral": "unclear",
    "contradiction": "hallucinated",
}
SETTINGS = ("accurate_context/*.json", "noisy_context/*.json", "zero_context/*.json", "*.json")


def load_helm(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a sentence with which a model went on writing an article; there is no evidence."""
    for path in data_files(folder, ("helm/*.json", "*.json"), split):
        for key, record in keyed(path):
            prompt = record.text("prompt")
            for number, sentence in enumerate(record.records("sentences"), start=1):
                yield GoldRow(
                    id=f"{path.name.removesuffix('.gz')}:{key}:{number}",
                    place=record.place,
                    response=sentence.text("sentence"),
                    label=label_of(sentence, sentence.fields.get("label"), WRONG_IS_TRUE),
                    group=prompt,
                    question=prompt,
                )


def load_factscore(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an atomic fact of a biography; irrelevant facts and abstentions are left out."""
    for path in data_files(folder, ("*.jsonl",), split):
        for record in records(path):
            facts = [fact for part in _parts(record, "annotations") for fact in _facts(part)]
            for number, fact in enumerate(facts, start=1):
                label = fact.chosen(ATOMIC, "label")
                if label:
                    yield GoldRow(
                        id=row_id(path, folder, record.line, number),
                        place=record.place,
                        response=fact.text("text"),
                        label=label,
                        group=record.text("input"),
                        question=record.text("input"),
                    )


def _facts(sentence: Record) -> list[Record]:
    return _parts(sentence, "human-atomic-facts")


def _parts(record: Record, name: str) -> list[Record]:
    """The objects of a list that may be null."""
    return [] if record.fields.get(name) is None else record.records(name)


def load_halueval2(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a fact of an answer, with what another model had judged where that is recorded."""
    for path in data_files(folder, ("human_annotation/*.json",), split):
        judged = _judged(folder / "model_prediction", path.name.removesuffix(".gz"))
        for record in records(path):
            facts, labels = record.texts("chatgpt_fact"), record.items("human_judge")
            others = judged.get(_key(record), ())
            if labels and len(labels) != len(facts):
                raise record.broken(f"{len(facts)} labels in human_judge", len(labels))
            for number, (fact, said) in enumerate(zip(facts, labels, strict=False)):
                other = others[number] if number < len(others) else ""
                yield GoldRow(
                    id=row_id(path, folder, record.line, number + 1),
                    place=record.place,
                    response=fact,
                    label=label_of(record, said, FACT_IS_TRUE),
                    group=record.text("user_query"),
                    question=record.text("user_query"),
                    recorded=_first_word(other),
                    recorded_by="ChatGPT (recorded)" if other else "",
                )


def _judged(folder: Path, name: str) -> dict[str, tuple[str, ...]]:
    """What the model said of each fact of each answer; nothing where the file is not there."""
    for path in (folder / f"{name}.gz", folder / name):
        if path.is_file():
            found = {}
            for record in records(path):
                found[_key(record)] = tuple(map(word, record.items("chatgpt_judge")))
            return found
    return {}


def _key(record: Record) -> str:
    return record.text("user_query") + record.text("chatgpt_response")


def _first_word(said: str) -> Label | None:
    """A judgement may go on with a corrected fact; “unknown” is unclear."""
    known = (label for start, label in FACT_IS_TRUE.items() if said.startswith(start))
    return next(known, "unclear") if said else None


def load_triplets(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a claim triplet of an answer, its three parts as one statement."""
    for path in data_files(folder, SETTINGS, split):
        for record in records(path):
            for number, triplet in enumerate(record.records("claude2_response_kg"), start=1):
                yield GoldRow(
                    id=row_id(path, folder, record.line, number),
                    place=record.place,
                    response=" ".join(triplet.texts("triplet")),
                    label=triplet.chosen(TRIPLETS, "human_label"),
                    group=record.text("id"),
                )


def load_refchecker_responses(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row an answer that says something; its worst triplet is its label."""
    for path in data_files(folder, SETTINGS, split):
        for record in records(path):
            triplets = record.records("claude2_response_kg")
            labels = {triplet.chosen(TRIPLETS, "human_label") for triplet in triplets}
            worst: tuple[Label, ...] = ("hallucinated", "unclear", "supported")
            if labels:
                yield GoldRow(
                    id=row_id(path, folder, record.line),
                    place=record.place,
                    response=record.text("response"),
                    label=next(label for label in worst if label in labels),
                    group=record.text("id"),
                )


REFCHECKER = "CC BY 4.0 (annotations); Apache-2.0 (repository)"
FACTS_RULES = (
    Rule(
        name="helm_mind",
        loader=load_helm,
        labels={"0": "supported", "1": "hallucinated"},
        unit="one sentence",
        group="prompt",
        licence="not stated",
        permits="not stated",
        note="No evidence.",
    ),
    Rule(
        name="factscore",
        loader=load_factscore,
        labels={"S": "supported", "NS": "hallucinated", "IR": None},
        unit="one atomic fact",
        group="input (the question for a person's biography)",
        licence="MIT (labelled data); Apache-2.0 (repository)",
        permits="yes",
        note="No evidence. Answers without annotation (abstentions) are left out.",
    ),
    Rule(
        name="halueval2",
        loader=load_halueval2,
        labels={"true": "supported", "false": "hallucinated"},
        unit="one fact of an answer",
        group="user_query",
        licence="not stated",
        permits="not stated",
        note="No evidence. Answers whose facts nobody labelled are left out. `recorded` is "
        "ChatGPT's judgement; its “unknown” is unclear.",
    ),
    Rule(
        name="refchecker",
        task="triplets",
        loader=load_triplets,
        labels={
            "Entailment": "supported",
            "Neutral": "unclear",
            "Contradiction": "hallucinated",
        },
        unit="one claim triplet",
        group="id of the question, all models together",
        licence=REFCHECKER,
        permits="yes",
        note="Questions and references are not in the set: claim only. Neutral is what the "
        "reference does not decide. Never trained or tuned on.",
    ),
    Rule(
        name="refchecker",
        task="responses",
        loader=load_refchecker_responses,
        labels={
            "only Entailment": "supported",
            "any Neutral": "unclear",
            "any Contradiction": "hallucinated",
        },
        unit="one answer of a model",
        group="id of the question, all models together",
        licence=REFCHECKER,
        permits="yes",
        note="As triplets; answers without triplets (abstentions) are left out.",
    ),
)
