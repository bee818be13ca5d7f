"""Every set and task of the shared folder loads, with the counts that its manifest gives.

`shared_rows.csv` has them; where its labels are counted, it has these counts, too.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from core.evaluation.dataset_files import GoldRow, assign_part
from core.evaluation.datasets import DATASET_NAMES, TASK_RULES, list_tasks, load_dataset_rows
from core.schema.records import Label
from tests.needs import need

pytestmark = pytest.mark.slow

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
NOT_SHARED = ("fakeddit",)
LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")
with (Path(__file__).parent / "shared_rows.csv").open(encoding="utf-8") as file:
    COUNTS = {(line["set"], line["task"]): line for line in csv.DictReader(file)}
SMALL = {  # sets too small, or of too few groups, for a fifth to be near a fifth
    "entailment_dialfact", "entailment_fm2", "fever_symmetric",
}  # fmt: skip


@pytest.fixture(autouse=True)
def shared() -> None:
    need(DATA.is_dir(), f"no shared data at {DATA}: the public sets are not loaded")


def test_every_set_of_the_shared_folder_has_a_loader() -> None:
    here = {path.name for path in DATA.iterdir() if path.is_dir()}
    assert here - set(DATASET_NAMES) == set()
    counted = {(name, task or list_tasks(name)[0]) for name, task in COUNTS}
    assert {(one.name, one.task) for one in TASK_RULES if one.name not in NOT_SHARED} == counted


@pytest.mark.parametrize(("name", "task"), sorted(COUNTS))
def test_every_row_of_a_set_is_read(name: str, task: str) -> None:
    told = COUNTS[name, task]
    rows = list(load_dataset_rows(name, DATA, task=task or None))
    count, ids = len(rows), len({row.id for row in rows})
    assert (count, ids) == (int(told["rows"]),) * 2
    # Places alone are shown: the texts of some sets must not be printed.
    assert [row.place for row in rows if not is_sound(row)] == []
    if told["supported"]:
        counts = Counter(row.label for row in rows)
        assert [counts[label] for label in LABELS] == [int(told[label]) for label in LABELS]
        assert all(row.documents for row in rows) is (name != "fever")
        share = sum(assign_part(row.group) == "dev" for row in rows) / len(rows)
        assert abs(share - 0.2) < (0.07 if name in SMALL else 0.04)


def is_sound(row: GoldRow) -> bool:
    marks = (*(row.spans or ()), *row.soft)
    return all(
        (
            row.response.strip(),
            row.group.strip(),
            all(text.strip() for text in row.documents),
            all(image.is_file() for image in row.images),
            all(0 <= one.start < one.end <= len(row.response) for one in marks),
            all(0 < one.p <= 1 for one in marks),
            not row.spans or row.label in ("hallucinated", None),
        )
    )


def test_the_languages_of_marked_answers_are_those_of_the_manifest() -> None:
    rows = list(load_dataset_rows("mushroom", DATA))
    assert sorted({row.language for row in rows}) == (
        "ar ca cs de en es eu fa fi fr hi it sv zh".split()
    )
    assert all(len(row.documents) == 1 for row in rows)
    assert sum(not row.spans for row in rows) == 21 + 28
    splits = {split: sum(1 for _ in load_dataset_rows("mushroom", DATA, split=split)) for split in
              ("val", "test", "train")}  # fmt: skip
    assert splits == {"val": 499, "test": 931, "train": 1501 - 42}  # 42 answers are empty


def test_halueval_is_balanced_and_its_parts_keep_questions_together() -> None:
    parts = {
        split: list(load_dataset_rows("halueval", DATA, split=split))
        for split in ("dev20", "calibration10", "train70")
    }
    assert sum(len(rows) for rows in parts.values()) == 5600
    for rows in parts.values():
        counts = Counter(row.label for row in rows)
        assert counts["supported"] == counts["hallucinated"]
    dev, train = ({row.group for row in parts[part]} for part in ("dev20", "train70"))
    assert not dev & train
