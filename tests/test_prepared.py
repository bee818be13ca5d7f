"""What a newcomer sees first, with the reader that ships: the right words are marked."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageDraw, ImageFont

from core.baseline.evidence_model import load_evidence_model
from core.baseline.examples import PREPARED_CASES, PreparedCase
from core.pipeline.single_check import CheckRequest, check_once

MARKED = {
    "bridge": {"512 m": "412 m"},
    # of its five wrong sentences; the others are left open: what is meant is read too timidly
    "museum": {"3,200": "2,300"},
    "chart": {"412 thousand": "287"},
    "tea": {"1982年": ""},
    "plants": {"1,240": "1,260"},
}


def checked(example: PreparedCase, home: Path) -> dict[str, Any]:
    paths = []
    for name, data in example.files():
        path = home.parent / name
        path.write_bytes(data)
        paths.append(path)
    request = CheckRequest(example.response, example.question, documents=paths)
    result, complaints = check_once(home, request, time.time)
    assert complaints == []
    return result


@pytest.mark.parametrize(
    "example", [one for one in PREPARED_CASES if not one.note], ids=lambda example: example.name
)
def test_a_prepared_case_marks_the_wrong_words(example: PreparedCase, home: Path) -> None:
    result = checked(example, home)
    assert result["label"] == "hallucinated"
    assert result["p_hallucinated"] >= load_evidence_model().hallucinated_from
    spans = {span["text"]: span["instead"] for span in result["spans"]}
    assert spans.keys() == MARKED[example.name].keys()
    for wrong, instead in MARKED[example.name].items():
        assert instead in spans[wrong]
        assert " = " not in spans[wrong], "the result, not how it was worked out"


def test_the_case_that_is_said_to_be_wrong_is_wrong(home: Path) -> None:
    (example,) = [one for one in PREPARED_CASES if one.note]
    ((_, source),) = example.files()
    assert b"one of the largest of its kind" in source
    assert checked(example, home)["label"] == "supported"


FARMS = {"Lund": 640, "Berga": 385, "Torp": 512}


def harvest_chart() -> Image.Image:
    """Three bars, each with its value above and its farm below."""
    image = Image.new("RGB", (900, 600), "white")
    draw = ImageDraw.Draw(image)
    title, words = ImageFont.load_default(28), ImageFont.load_default(22)
    draw.text((200, 20), "Harvest by farm, 2022 (tonnes)", "black", title)
    for number, (farm, value) in enumerate(FARMS.items()):
        left, top = 120 + 250 * number, 540 - value // 2
        draw.rectangle((left, top, left + 120, 540), "#447799")
        draw.text((left + 60, top - 6), str(value), "black", words, anchor="mb")
        draw.text((left + 60, 550), farm, "black", words, anchor="mt")
    return image


def test_the_value_of_another_bar_is_wrong(home: Path) -> None:
    path = home.parent / "harvest.png"
    harvest_chart().save(path)
    for value, label in ((385, "supported"), (512, "hallucinated")):
        request = CheckRequest(f"Berga harvested {value} tonnes in 2022.", images=[path])
        found, _ = check_once(home, request, time.time)
        assert found["label"] == label, found["rationale"]
    assert any("512" in span["text"] for span in found["spans"])


COUNCIL = (
    "The council bought the old mill in March 2019. The mill employs 64 people in Tolsby. Its "
    "owners did not sell the orchard. Most of the visitors come in May. Ines Falk leads the tours."
)


@pytest.mark.parametrize(
    "claim",
    [
        "The council did not buy the old mill in March 2019.",
        "The mill does not employ 64 people in Tolsby.",
        "The owners of the mill sold the orchard.",
        "Ines Falk does not lead the tours.",
    ],
)
def test_what_is_denied_is_not_supported_among_other_sentences(claim: str, home: Path) -> None:
    path = home.parent / "mill.txt"
    path.write_text(COUNCIL, encoding="utf-8")
    found, _ = check_once(home, CheckRequest(claim, documents=[path]), time.time)
    assert found["label"] != "supported", found["rationale"]
