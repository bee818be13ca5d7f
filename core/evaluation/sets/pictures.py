"""Statements and questions on images: HallusionBench, Bingo, Fakeddit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from core.evaluation.files import data_files, records
from core.evaluation.gold import GoldRow, Rule
from core.evaluation.sets.pairs import row_id
from core.exchange.rows import Record, word
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
RULES = (
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
