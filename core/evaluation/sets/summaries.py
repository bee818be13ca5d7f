"""Summaries beside the text they sum up: QAGS, FaithBench, BAMBOO.

Statements and questions on images: HallusionBench, Bingo, Fakeddit.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, GoldSpan, Rule
from core.evaluation.sets.pairs import row_id
from core.evaluation.sets.sentence_pairs import listed_under
from core.exchange.rows import FACT_IS_TRUE, Record, joined, label_of, span, word
from core.records import Label

KEYS = ("category", "subcategory", "set_id", "figure_id", "question_id")
IMAGE_ENDINGS = ("", ".jpg", ".jpeg", ".png", ".webp")
COMMENTS = "comments"  # lies in the names of tables of comments, which are no posts
YES_OR_NO = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)
TRUE_IS_ONE: dict[str, Label] = {"1": "supported", "0": "hallucinated"}


def image_folders(folder: Path) -> tuple[Path, ...]:
    """The set's folder and those directly in it: images lie beside the table or in one of them."""
    inside = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return (folder, *inside)


def image_beside(folders: Sequence[Path], name: str) -> tuple[Path, ...]:
    """The image of this name or id in one of the folders; none where it is not there.

    A name comes from a row and may try to lead out of the set's folder, the first of them: such an
    image is not taken.
    """
    if not name.strip() or "\0" in name:
        return ()
    home = folders[0].resolve()
    for inside in folders:
        for ending in IMAGE_ENDINGS:
            path = (inside / f"{name}{ending}").resolve()
            if path.is_relative_to(home) and path.is_file():
                return (path,)
    return ()


def load_hallusionbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Two rows a question, “Yes” and “No”; `text` takes those that need no image."""
    images = image_folders(folder)
    for path in data_files(folder, ("HallusionBench.json*",), split):
        for record in records(path):
            if task == "all" or word(record.fields.get("visual_input")) == "0":
                right = _right_answer(record)
                for answer in ("Yes", "No"):
                    label: Label = "supported" if answer == right else "hallucinated"
                    name = f"{row_id(path, folder, record.line)}:{answer.lower()}"
                    yield _seen(record, images, name, answer, label)


def load_hallusionbench_recorded(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """What one model answered; an answer that begins with neither yes nor no is left out."""
    gold = {
        _key(record): _right_answer(record)
        for path in data_files(folder, ("HallusionBench.json*",))
        for record in records(path)
    }
    images = image_folders(folder)
    for path in data_files(folder, ("HallusionBench_result*.json*",), split):
        for record in records(path):
            said = YES_OR_NO.match(record.spare("model_prediction"))
            right = gold.get(_key(record))
            if said and right:
                label: Label = "supported" if said[1].title() == right else "hallucinated"
                name = row_id(path, folder, record.line)
                yield _seen(record, images, name, record.spare("model_prediction"), label)


def _key(record: Record) -> tuple[str, ...]:
    return tuple(word(record.fields.get(name)) for name in KEYS)


def _right_answer(record: Record) -> str:
    said = word(record.fields.get("gt_answer"))
    if said not in ("0", "1"):
        raise record.broken("gt_answer to be 1 (yes) or 0 (no)", said)
    return "Yes" if said == "1" else "No"


def _seen(record: Record, images: Sequence[Path], name: str, answer: str, label: Label) -> GoldRow:
    category, subcategory, set_id, *_ = _key(record)
    return GoldRow(
        id=name,
        place=record.place,
        response=answer,
        label=label,
        group=f"{category}/{subcategory}/{set_id}",
        question=record.text("question"),
        images=image_beside(images, record.spare("filename")),
    )


def load_bingo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """A question on an image with its reference answer; nobody labelled an answer."""
    images = image_folders(folder)
    for path in data_files(folder, ("annotation*.jsonl",), split):
        for record in records(path):
            question, answer = record.text("question"), record.spare("ground truth")
            if answer:
                yield GoldRow(
                    id=row_id(path, folder, record.line),
                    place=record.place,
                    response=answer,
                    label=None,
                    group=question,
                    question=question,
                    images=image_beside(images, record.text("image")),
                )


def load_fakeddit(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Titles of posts with their image: does the title say what the image shows?"""
    images = image_folders(folder)
    tables = data_files(folder, ("*.tsv",), split)
    for path in (one for one in tables if COMMENTS not in one.name):
        for record in records(path):
            title = record.spare("clean_title", "title")
            if title:
                yield GoldRow(
                    id=f"{row_id(path, folder, record.line)}:{record.text('id')}",
                    place=record.place,
                    response=title,
                    label=record.chosen(TRUE_IS_ONE, "2_way_label"),
                    group=title,
                    images=image_beside(images, record.text("id")),
                )


HALLUSION = "BSD-3-Clause"
PICTURES_RULES = (
    *(
        Rule(
            name="hallusionbench",
            task=task,
            loader=load_hallusionbench,
            labels={"gt_answer 1": "supported", "gt_answer 0": "hallucinated"},
            unit="one question with the answer “Yes” or “No”, so two rows a question",
            group="category/subcategory/set_id",
            licence=HALLUSION,
            permits="yes",
            note="The labels are those of the answer “Yes”; of “No” they are the opposite. "
            f"{note} The gold sentence in gt_answer_details is not read.",
        )
        for task, note in (
            ("text", "Questions that need no image (visual_input 0), without evidence."),
            ("all", "All questions; an image is added where its file lies in the folder."),
        )
    ),
    Rule(
        name="hallusionbench",
        task="recorded",
        loader=load_hallusionbench_recorded,
        labels={"same as gt_answer": "supported", "differs": "hallucinated"},
        unit="one answer of a model",
        group="category/subcategory/set_id",
        licence=HALLUSION,
        permits="yes",
        note="An answer that begins with neither yes nor no, or whose question is not there, is "
        "left out.",
    ),
    Rule(
        name="bingo",
        loader=load_bingo,
        unit="one question on an image with its reference answer",
        group="question",
        licence="not stated",
        permits="not stated",
        note="No label: it can be run, not scored. Rows without reference answer are left out.",
    ),
    Rule(
        name="fakeddit",
        loader=load_fakeddit,
        labels={"2_way_label 1 (true)": "supported", "2_way_label 0 (fake)": "hallucinated"},
        unit="one title with its image",
        group="clean_title",
        licence="not stated",
        permits="not stated",
        note="Not among the shared sets: the loader follows the published format. An image is "
        "found by the post's id beside the table or in a folder there; a post without title is "
        "left out.",
    ),
)


def load_qags(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """One row a summary sentence; what most of the workers said is its label."""
    for path in data_files(folder, ("*.jsonl",), split):
        for record in records(path):
            article = record.text("article")
            for number, sentence in enumerate(record.records("summary_sentences"), start=1):
                yield GoldRow(
                    id=row_id(path, folder, record.line, number),
                    place=record.place,
                    response=sentence.text("sentence"),
                    label=_majority(sentence),
                    group=article,
                    documents=(article,),
                )


def _majority(sentence: Record) -> Label:
    said = Counter(word(one.fields.get("response")) for one in sentence.records("responses"))
    if not said or set(said) - {"yes", "no"} or said["yes"] == said["no"]:
        raise sentence.broken("an odd number of responses, each yes or no", dict(said))
    return "supported" if said["yes"] > said["no"] else "hallucinated"


def load_faithbench(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Summaries with the spans that people marked as unwanted additions or contradictions."""
    for path in data_files(folder, ("*batch_*.json",), split):
        for number, sample in enumerate(listed_under(path, "samples"), start=1):
            yield _summary(sample, row_id(path, folder, number))


def _summary(sample: Record, row_id: str) -> GoldRow:
    source, summary = sample.text("source"), sample.text("summary")
    kinds: set[str] = set()
    unwanted: list[GoldSpan] = []
    for mark in sample.records("annotations"):
        found = {one.split(".")[0] for one in mark.texts("label")}
        unknown = found - {"Unwanted", "Questionable", "Benign"}
        if unknown:
            raise mark.broken("Unwanted, Questionable or Benign", ", ".join(sorted(unknown)))
        kinds |= found
        if "Unwanted" in found:
            ends = mark.fields.get("summary_start"), mark.fields.get("summary_end")
            unwanted.append(span(mark, summary, *ends))
    graded: Label = "unclear" if "Questionable" in kinds else "supported"
    return GoldRow(
        id=row_id,
        place=sample.place,
        response=summary,
        label="hallucinated" if unwanted else graded,
        group=source,
        documents=(source,),
        spans=joined(unwanted),
    )


def load_bamboo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """A statement on a long paper: one sentence of an abstract, or a whole abstract, is wrong."""
    pattern = f"{task or '*'}hallu_*.jsonl"
    for path in data_files(folder, (pattern,), split):
        for record in records(path):
            yield GoldRow(
                id=row_id(path, folder, record.line),
                place=record.place,
                response=record.text("hypothesis"),
                label=label_of(record, record.fields.get("answer"), FACT_IS_TRUE),
                group=record.text("title"),
                documents=(record.text("content"),),
            )


SUMMARIES_RULES = (
    Rule(
        name="qags",
        loader=load_qags,
        labels={"most say yes": "supported", "most say no": "hallucinated"},
        unit="one summary sentence, majority of three workers",
        group="article",
        licence="not stated",
        permits="not stated",
        note="Never trained or tuned on.",
    ),
    Rule(
        name="faithbench",
        loader=load_faithbench,
        labels={
            "Unwanted": "hallucinated",
            "Questionable": "unclear",
            "Benign": "supported",
            "no annotation": "supported",
        },
        unit="one summary",
        group="source",
        licence="CC BY-NC-SA 4.0",
        permits="non-commercial",
        note="The gravest mark of any annotator counts: Unwanted before Questionable (grey) "
        "before Benign. Spans are all Unwanted ones joined; how many annotators saw a sample "
        "without marking it is not recorded, so there are no shares. Never trained or tuned on.",
    ),
    *(
        Rule(
            name="bamboo",
            task=task,
            loader=load_bamboo,
            labels={"true": "supported", "false": "hallucinated"},
            unit="one hypothesis on a long paper",
            group="title",
            licence="MIT",
            permits="yes",
            note="Without a task both files: senhallu and abshallu. Never trained or tuned on.",
        )
        for task in ("", "sen", "abs")
    ),
)
