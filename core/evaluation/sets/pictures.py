"""Statements and questions on images: HallusionBench, Bingo, Fakeddit."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from core.evaluation.files import data_files, records, row_id, rows_in
from core.evaluation.gold import GoldRow, Loader, answered
from core.exchange.rows import Record, word
from core.records import Label

KEYS = ("category", "subcategory", "set_id", "figure_id", "question_id")
QUESTIONS = ("HallusionBench.json*",)
IMAGE_ENDINGS = ("", ".jpg", ".jpeg", ".png", ".webp")
COMMENTS = "comments"  # lies in the names of tables of comments, which are no posts
YES_OR_NO = re.compile(r"\s*(yes|no)\b", re.IGNORECASE)
TRUE_IS_ONE: Mapping[str, Label] = {"1": "supported", "0": "hallucinated"}


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
    for own, record in rows_in(folder, QUESTIONS, split):
        if task == "all" or word(record.fields.get("visual_input")) == "0":
            right = _right_answer(record)
            for answer in ("Yes", "No"):
                yield _seen(record, images, f"{own}:{answer.lower()}", answer, answer == right)


def load_hallusionbench_recorded(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """What one model answered; an answer that begins with neither yes nor no is left out."""
    gold = {_key(record): _right_answer(record) for _, record in rows_in(folder, QUESTIONS)}
    images = image_folders(folder)
    for own, record in rows_in(folder, ("HallusionBench_result*.json*",), split):
        answer, right = record.spare("model_prediction"), gold.get(_key(record))
        said = YES_OR_NO.match(answer)
        if said and right:
            yield _seen(record, images, own, answer, said[1].title() == right)


def _key(record: Record) -> tuple[str, ...]:
    return tuple(word(record.fields.get(name)) for name in KEYS)


def _right_answer(record: Record) -> str:
    said = word(record.fields.get("gt_answer"))
    if said not in ("0", "1"):
        raise record.broken("gt_answer to be 1 (yes) or 0 (no)", said)
    return "Yes" if said == "1" else "No"


def _seen(record: Record, images: Sequence[Path], own: str, answer: str, is_right: bool) -> GoldRow:
    return GoldRow(
        own,
        record.place,
        answer,
        "supported" if is_right else "hallucinated",
        "/".join(_key(record)[:3]),
        question=record.text("question"),
        images=image_beside(images, record.spare("filename")),
    )


def load_bingo(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """A question on an image with its reference answer; nobody labelled an answer."""
    images = image_folders(folder)
    for own, record in rows_in(folder, ("annotation*.jsonl",), split):
        question, answer = record.text("question"), record.spare("ground truth")
        if answer:
            image = image_beside(images, record.text("image"))
            yield answered(own, record, question, answer, None, images=image)


def load_fakeddit(folder: Path, task: str, split: str | None) -> Iterator[GoldRow]:
    """Titles of posts with their image: does the title say what the image shows?"""
    images = image_folders(folder)
    tables = data_files(folder, ("*.tsv",), split)
    for path in (one for one in tables if COMMENTS not in one.name):
        for record in records(path):
            title = record.spare("clean_title", "title")
            if title:
                own = f"{row_id(path, folder, record.line)}:{record.text('id')}"
                label = record.chosen(TRUE_IS_ONE, "2_way_label")
                image = image_beside(images, record.text("id"))
                yield GoldRow(own, record.place, title, label, title, images=image)


LOADERS: Mapping[str, Loader] = {
    "hallusionbench": load_hallusionbench,
    "hallusionbench/recorded": load_hallusionbench_recorded,
    "bingo": load_bingo,
    "fakeddit": load_fakeddit,
}
