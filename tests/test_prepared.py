"""What a newcomer sees first: every prepared case ends with the right words marked."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.builtin.examples import EXAMPLES, Example
from core.checking import Request, check_once

MARKED = {
    "bridge": {"512 m": "412 m"},
    "museum": {
        "always": "",
        "3,200": "2,300",
        "largest": "one of the largest",
        "fewer": "more",
        "private customers": "not take orders from private customers",
    },
    "chart": {"412 thousand": "287"},
    "tea": {"红": "绿"},
    "plants": {"1,240": "420 + 510 + 330 = 1,260"},
}

# The chart is read by OCR alone, in words that the entailment reader hardly knows.
LEAST = {"chart": 0.7}


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.name)
def test_a_prepared_case_marks_the_wrong_words(example: Example, home: Path) -> None:
    paths = []
    for name, data in example.files():
        path = home.parent / name
        path.write_bytes(data)
        paths.append(path)
    request = Request(example.response, example.question, documents=paths)
    result, complaints = check_once(home, request, time.time)
    assert complaints == []
    assert result["label"] == "hallucinated"
    assert result["p_hallucinated"] > LEAST.get(example.name, 0.75)
    spans = {span["text"]: span["instead"] for span in result["spans"]}
    assert spans.keys() == MARKED[example.name].keys()
    for wrong, instead in MARKED[example.name].items():
        assert instead in spans[wrong]
