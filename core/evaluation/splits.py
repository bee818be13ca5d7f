"""Which part of a public set a row lies in: to train on, to calibrate with or to choose by.

The part follows from the row's group key alone: rows with one key (in small letters, letters and
digits only) lie in one part, in every set. That is all that holds. Rows with other keys may share a
claim or an evidence text all the same, and then lie in two parts; where more than a handful of a
set's texts do, its rule's note says so. The official test halves are not in the shared folder.
"""

from __future__ import annotations

import hashlib
import re
from typing import Literal

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
