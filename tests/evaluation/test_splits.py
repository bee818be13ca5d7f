"""Splits follow from the group alone: stable, disjoint, of the sizes that they are named after."""

from __future__ import annotations

from collections import Counter

from core.evaluation.files import PARTS, normalised, part_of

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
        part_of(text)
        for text in ("The Nordre lighthouse is 38 m high.", "the nordre LIGHTHOUSE is 38m high")
    }
    assert len(known) == 1
    assert {group: part_of(group) for group in WRITTEN_DOWN} == WRITTEN_DOWN


def test_texts_are_compared_as_the_manifest_compares_them() -> None:
    assert normalised("  Is it 38 m – really?\n") == "isit38mreally"
    assert normalised("灯塔 高 38 米。") == "灯塔高38米"


def test_parts_have_the_sizes_of_their_names() -> None:
    counts = Counter(part_of(f"question {number}") for number in range(20_000))
    assert abs(counts["dev"] / 20_000 - 0.2) < 0.01
    assert abs(counts["calibration"] / 20_000 - 0.1) < 0.01


def test_every_part_lies_on_one_side_of_dev20() -> None:
    assert PARTS["dev20"].isdisjoint(PARTS["train80"])
    assert PARTS["train80"] == PARTS["train70"] | PARTS["calibration10"]
    assert PARTS["train80"] | PARTS["dev20"] == {"train", "calibration", "dev"}


def test_a_text_with_half_a_surrogate_has_a_part_too() -> None:
    assert part_of("a\ud800b") in ("train", "calibration", "dev")
