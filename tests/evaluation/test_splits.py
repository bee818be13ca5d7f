"""Splits follow from the group alone: stable, disjoint, of the sizes that they are named after."""

from __future__ import annotations

from collections import Counter

from core.evaluation.dataset_files import PARTS_BY_SPLIT, assign_part, normalize_key

# Figures of earlier days stand on these parts: they never change.
WRITTEN_DOWN = {
    "group 0": "train",
    "group 1": "train",
    "group 10": "dev",
    "group 13": "dev",
    "group 18": "calibration",
    "group 20": "calibration",
}


def test_the_part_of_a_group_never_changes() -> None:
    known = {
        assign_part(text)
        for text in ("The Nordre lighthouse is 38 m high.", "the nordre LIGHTHOUSE is 38m high")
    }
    assert len(known) == 1
    assert {group: assign_part(group) for group in WRITTEN_DOWN} == WRITTEN_DOWN


def test_texts_are_compared_as_the_manifest_compares_them() -> None:
    assert normalize_key("  Is it 38 m – really?\n") == "isit38mreally"
    assert normalize_key("灯塔 高 38 米。") == "灯塔高38米"


def test_parts_have_the_sizes_of_their_names() -> None:
    counts = Counter(assign_part(f"question {number}") for number in range(20_000))
    assert abs(counts["dev"] / 20_000 - 0.2) < 0.01
    assert abs(counts["calibration"] / 20_000 - 0.1) < 0.01


def test_every_part_lies_on_one_side_of_dev20() -> None:
    assert PARTS_BY_SPLIT["dev20"].isdisjoint(PARTS_BY_SPLIT["train80"])
    assert PARTS_BY_SPLIT["train80"] == PARTS_BY_SPLIT["train70"] | PARTS_BY_SPLIT["calibration10"]
    assert PARTS_BY_SPLIT["train80"] | PARTS_BY_SPLIT["dev20"] == {"train", "calibration", "dev"}


def test_a_text_with_half_a_surrogate_has_a_part_too() -> None:
    assert assign_part("a\ud800b") in ("train", "calibration", "dev")
