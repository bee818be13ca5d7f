"""The public sets as they lie beside the project: every row is read, counted and labelled."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from core.evaluation.datasets import load
from core.evaluation.gold import part_of
from tests.needs import need

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
# (supported, hallucinated, unclear) of every set, task and split, as its manifest and files say.
COUNTS = {
    ("fever", None): (6567, 6547, 6662),
    ("fever_symmetric", None): (354, 354, 0),
    ("entailment_anli", None): (1070, 1062, 1066),
    ("entailment_averitec", None): (122, 305, 73),
    ("entailment_begin", None): (313, 835, 81),
    ("entailment_breaking_nli", None): (982, 7164, 47),
    ("entailment_cad_nli", None): (3096, 3131, 3103),
    ("entailment_climate_fever", None): (1943, 802, 4930),
    ("entailment_climate_fever", "claims"): (654, 253, 628),
    ("entailment_conjnli", None): (6024, 2561, 7038),
    ("entailment_control", None): (286, 276, 237),
    ("entailment_covidfact", None): (1166, 2516, 0),
    ("entailment_dialfact", None): (50, 46, 61),
    ("entailment_fm2", None): (596, 573, 0),
    ("entailment_fm2", "retrieved"): (596, 573, 0),
    ("entailment_healthver", None): (533, 391, 993),
    ("entailment_help", None): (3257, 0, 3257),
    ("entailment_lingnli", None): (17555, 17361, 17438),
    ("entailment_med", None): (2705, 0, 2677),
    ("entailment_ocnli", None): (4256, 4142, 4537),
    ("entailment_q2", None): (300, 300, 0),
    ("entailment_q2", "cross_annotation"): (628, 460, 0),
    ("entailment_rte", None): (1395, 0, 1372),
    ("entailment_sanli", None): (4507, 5358, 5238),
    ("entailment_scifact_rte", None): (508, 0, 265),
    ("entailment_sick", None): (1417, 712, 2805),
    ("entailment_wice", None): (342, 701, 0),
    ("entailment_wice", "pages"): (115, 234, 0),
    ("entailment_wice", "tokens"): (0, 498, 0),
}
SMALL = {  # sets too small, or of too few groups, for a fifth to be near a fifth
    "entailment_dialfact", "entailment_fm2", "fever_symmetric",
}  # fmt: skip


@pytest.mark.parametrize(("name", "task"), COUNTS)
def test_every_row_is_read_and_labelled(name: str, task: str | None) -> None:
    need((DATA / name).is_dir(), f"the public set {name} does not lie at {DATA}")
    rows = list(load(name, DATA, task=task))
    counts = Counter(row.label for row in rows)
    assert (
        tuple(counts[one] for one in ("supported", "hallucinated", "unclear"))
        == (COUNTS[name, task])
    )
    assert len(rows) == sum(COUNTS[name, task])
    assert len({row.id for row in rows}) == len(rows)
    assert all(row.response.strip() and row.group.strip() for row in rows)
    assert all(all(text.strip() for text in row.documents) for row in rows)
    assert all(row.documents for row in rows) is (name != "fever")
    share = sum(part_of(row.group) == "dev" for row in rows) / len(rows)
    assert abs(share - 0.2) < (0.07 if name in SMALL else 0.04)
