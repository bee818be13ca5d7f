"""A labelled row of a public set, and the part of the set in which it lies.

The part (to train on, to calibrate with or to choose by) follows from the row's group key alone:
rows with one key (in small letters, letters and digits only) lie in one part, in every set. Rows
with other keys may share a claim or an evidence text all the same, and then lie in two parts; where
more than a handful of a set's texts do, its rule's note says so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from core.exchange.rows import GoldSpan as GoldSpan
from core.exchange.rows import Record
from core.records import Label

Part = Literal["train", "calibration", "dev"]

DEV_PERCENT = 20
CALIBRATION_PERCENT = 10
PARTS: dict[str, frozenset[Part]] = {
    "dev20": frozenset({"dev"}),
    "calibration10": frozenset({"calibration"}),
    "train70": frozenset({"train"}),
    "train80": frozenset({"train", "calibration"}),
}


def normalised(text: str) -> str:
    """The text as the data manifest compares keys: lower case, word characters alone."""
    return re.sub(r"\W+", "", text).lower()


def part_of(group: str) -> Part:
    """The part in which every row of this group lies; the same on every machine."""
    place = fold_of(group, 100)
    if place < DEV_PERCENT:
        return "dev"
    return "calibration" if place < DEV_PERCENT + CALIBRATION_PERCENT else "train"


def fold_of(group: str, folds: int) -> int:
    """Which of so many folds all rows of this group lie in; the same on every machine."""
    digest = hashlib.sha256(normalised(group).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % folds


@dataclass(frozen=True)
class GoldRow:
    """A case with what people said of it.

    `id` is unique within a set and a task and stays the same between runs; `place` names file and
    line for messages. `label` is None where the set holds no label (it can be run, not scored);
    `unclear` where the evidence was found not to decide. `group` is the text that ties rows
    together (the question, prompt, title or evidence that the manifest splits by): related rows
    lie on one side of a split. `documents` is empty where the set has no evidence. `spans` is None
    where the set marks no words, () where it says that none is wrong; `soft` holds every marked
    stretch with its share. `recorded` is what another detector said, where the set records it.
    """

    id: str
    place: str
    response: str
    label: Label | None
    group: str
    language: str = "en"
    question: str = ""
    documents: tuple[str, ...] = ()
    images: tuple[Path, ...] = ()
    spans: tuple[GoldSpan, ...] | None = None
    soft: tuple[GoldSpan, ...] = ()
    recorded: Label | None = None
    recorded_by: str = ""


def answered(
    own: str, record: Record, question: str, response: str, label: Label | None, **more: Any
) -> GoldRow:
    """The row of an answer to a question, which ties rows together."""
    return GoldRow(own, record.place, response, label, question, question=question, **more)


# (the set's own folder, task, split of files or None for all) -> rows, lazily.
Loader = Callable[[Path, str, str | None], Iterator[GoldRow]]
