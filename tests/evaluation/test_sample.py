"""Samples: each label with its share, the same every time; evidence taken away or exchanged."""

from __future__ import annotations

from collections import Counter

import pytest

from core.evaluation import dataset_files
from core.evaluation.dataset_files import GoldRow, normalize_key
from core.evaluation.evaluate import exchange_evidence, remove_evidence, sample_rows
from core.schema.records import Label


def rows(**counts: int) -> list[GoldRow]:
    labels: dict[str, Label] = {"s": "supported", "h": "hallucinated", "u": "unclear"}
    made = [
        GoldRow(f"{name}{n}", "a file, line 1", "It is so.", labels[name], f"group {name}{n}")
        for name, count in counts.items()
        for n in range(count)
    ]
    return sorted(made, key=lambda row: row.id[1:])


def counted(found: list[GoldRow]) -> dict[str, int]:
    return dict(Counter(row.id[0] for row in found))


@pytest.mark.parametrize(
    ("there", "limit", "expected"),
    [
        ({"s": 80, "h": 20}, 10, {"s": 8, "h": 2}),
        ({"s": 50, "h": 30, "u": 20}, 10, {"s": 5, "h": 3, "u": 2}),
        ({"s": 99, "h": 1}, 10, {"s": 9, "h": 1}),
        ({"s": 7, "h": 7, "u": 7}, 4, {"s": 1, "h": 2, "u": 1}),
        ({"s": 970, "h": 20, "u": 10}, 20, {"s": 18, "h": 1, "u": 1}),
        ({"s": 98, "h": 1, "u": 1}, 2, {"s": 1, "h": 1}),
        ({"s": 98, "h": 1, "u": 1}, 3, {"s": 1, "h": 1, "u": 1}),
        ({"s": 5, "h": 5}, 1, {"h": 1}),
        ({"s": 5, "h": 5}, 10, {"s": 5, "h": 5}),
        ({"s": 5, "h": 5}, 99, {"s": 5, "h": 5}),
    ],
)
def test_each_label_has_its_share(
    there: dict[str, int], limit: int, expected: dict[str, int]
) -> None:
    found = sample_rows(rows(**there), limit, seed=1)
    assert counted(found) == expected
    assert len({row.id for row in found}) == len(found)


def test_a_sample_is_seeded_and_keeps_the_sets_order() -> None:
    there = rows(s=60, h=40)
    first, again, other = (sample_rows(there, 20, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert [there.index(row) for row in first] == sorted(there.index(row) for row in first)
    assert sample_rows(there, None, 1) == there


def over(name: str, group: str, text: str, language: str = "en") -> GoldRow:
    documents = (text,) if text else ()
    return GoldRow(name, "a file", "So.", "supported", group, language, documents=documents)


def test_evidence_is_taken_away() -> None:
    (found,) = remove_evidence([over("1", "a", "The sky is blue.")])
    assert (found.documents, found.images, found.response) == ((), (), "So.")


def test_evidence_is_exchanged_for_that_of_another_group_in_the_same_language() -> None:
    there = [
        over("1", "A question?", "one"),
        over("2", "a question", "two"),  # the same group, otherwise written
        over("3", "b", "three"),
        over("4", "c", "fyra", "sv"),
        over("5", "d", ""),
    ]
    found = {row.id: row.documents for row in exchange_evidence(there, there, seed=1)}
    assert found["1"] == found["2"] == ("three",)
    assert found["3"][0] in ("one", "two")
    assert found["4"][0] in ("one", "two", "three")  # no other Swedish row
    assert "5" not in found
    assert exchange_evidence(there[:2], there[:2], seed=1) == []


def test_each_group_is_compared_in_one_form_that_is_made_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def counting(text: str) -> str:
        made.append(text)
        return normalize_key(text)

    monkeypatch.setattr(dataset_files, "normalize_key", counting)
    there = [over(str(n), f"group {n}", f"text {n}") for n in range(20)]
    assert len(exchange_evidence(there, there, seed=1)) == 20
    assert len(made) == 40, "one for each row and one for each donor"
