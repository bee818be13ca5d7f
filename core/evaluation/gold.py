"""A labelled row of a public set, whatever its format was.

What a public set's rows mean: label rule, unit, group key and licence, beside the loader.

Which part of a public set a row lies in: to train on, to calibrate with or to choose by. The part
follows from the row's group key alone: rows with one key (in small letters, letters and digits
only) lie in one part, in every set. That is all that holds. Rows with other keys may share a
claim or an evidence text all the same, and then lie in two parts; where more than a handful of a
set's texts do, its rule's note says so. The official test halves are not in the shared folder.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from core.exchange.rows import GoldSpan as GoldSpan
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


# May the stated licence's terms be met by weights trained on the set and shipped for any use?
# "copyleft": perhaps only if the whole were shipped under the same licence, which ours is not.
Permits = Literal["yes", "not stated", "non-commercial", "copyleft"]
# (the set's own folder, task, split of files or None for all) -> rows, lazily.
Loader = Callable[[Path, str, str | None], Iterator[GoldRow]]


@dataclass(frozen=True)
class Rule:
    """One task of one set. `task` is "" where the set has only one.

    `labels` maps the set's own words to ours; None there means that such rows are left out.
    `group` names the text that ties rows together. `note` says what else had to be decided.
    `is_recorded`: its rows are the verdicts of another detector, which are measured themselves.
    """

    name: str
    loader: Loader
    unit: str
    group: str
    licence: str
    permits: Permits
    task: str = ""
    labels: Mapping[str, Label | None] = field(default_factory=dict)
    note: str = ""
    is_recorded: bool = False


COLUMNS = ("set", "task", "unit", "labels", "group", "licence", "may be shipped", "note")


def as_table(rules: Iterable[Rule]) -> str:
    """The rules as one Markdown table, sorted by set; the first task is the one by default."""
    lines = [_line(COLUMNS), _line("---" for _ in COLUMNS)]
    for rule in sorted(rules, key=lambda rule: rule.name):
        words = ", ".join(f"{word} → {label or 'left out'}" for word, label in rule.labels.items())
        cells = (rule.name, rule.task, rule.unit, words, rule.group, rule.licence)
        lines.append(_line((*cells, rule.permits, rule.note)))
    return "\n".join(lines) + "\n"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
