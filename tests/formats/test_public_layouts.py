"""Public sets' layouts: a wrong file says so, and soft labels alone are an answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from core.exchange.registry import FORMATS
from core.exchange.rows import ExchangeRow
from core.runtime.errors import InputError
from core.schema.records import WordScore


@pytest.mark.parametrize(
    ("name", "data", "missing"),
    [
        ("haluquestqa", b"question_text,ans1_text\nwhy,a\n", "ans1_text"),
        ("haluquestqa", b"id\tresponse\n", "factuality_label"),
        ("haluquestqa", b'{"id": 1, "response": "a"}\n', "factuality_label"),
        ("xsum", b"id,response\n1,a\n", "worker_id"),
        ("xsum", b"bbcid,system,summary\n", "hallucinated_span"),
        ("xsum", b'{"id": 1, "response": "a"}\n', "worker_id"),
    ],
)
def test_a_table_without_the_columns_is_refused(name: str, data: bytes, missing: str) -> None:
    with pytest.raises(InputError) as raised:
        FORMATS[name].read("wrong.csv", data)
    words = str(raised.value)
    assert words.startswith("wrong.csv: expected")
    assert missing in words.split("found")[0]
    assert words.count(". ") == 0


def test_what_a_wrong_header_says_is_shown_in_part_and_safely() -> None:
    data = ("a\x1b[2J\u202eb," + "c" * 5000).encode()
    with pytest.raises(InputError) as raised:
        FORMATS["xsum"].read("wrong.csv", data)
    words = str(raised.value)
    assert words.isprintable()
    assert len(words) < 600


def mushroom(**fields: Any) -> ExchangeRow:
    row = {"id": "1", "model_output_text": "abcdef", **fields}
    (read,) = FORMATS["mu-shroom"].read("rows", json.dumps(row).encode()).rows
    return read


def test_soft_labels_alone_tell_the_hard_ones() -> None:
    soft = [
        {"start": 0, "end": 1, "prob": 0.5},
        {"start": 1, "end": 2, "prob": 0.6},
        {"start": 2, "end": 4, "prob": 1.0},
        {"start": 5, "end": 6, "prob": 0.51},
    ]
    (gold,) = mushroom(soft_labels=soft).golds
    assert gold.label == "hallucinated"
    assert [(s.start, s.end, s.text) for s in gold.spans] == [(1, 4, "bcd"), (5, 6, "f")]
    assert gold.soft[0] == WordScore(0, 1, 0.5)
    assert len(gold.soft) == 4


def test_soft_labels_of_a_few_are_supported() -> None:
    (gold,) = mushroom(soft_labels=[{"start": 0, "end": 2, "prob": 0.5}]).golds
    assert (gold.label, gold.spans) == ("supported", ())


def test_hard_labels_are_believed_beside_soft_ones() -> None:
    soft = [{"start": 0, "end": 2, "prob": 1.0}]
    (gold,) = mushroom(soft_labels=soft, hard_labels=[]).golds
    assert (gold.label, gold.spans) == ("supported", ())


def test_rows_without_either_have_no_gold() -> None:
    assert mushroom().golds == ()
