"""What the readers found on a row is kept by all that it depends on, and by nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from core.evaluation import weighing_rows
from core.evaluation.gold import GoldRow
from core.evaluation.weighing_rows import feature_rows

ROW = GoldRow("1", "own, line 1", "It is 38 m high.", "supported", "masts", documents=("38 m.",))


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[GoldRow]:
    """The rows that were really read, in order."""
    found: list[GoldRow] = []

    class Reading:
        def __init__(self, bench: object) -> None:
            pass

        def features(self, row: GoldRow) -> tuple[dict[str, float], ...]:
            found.append(row)
            return ({"words": float(len(row.response))},)

    monkeypatch.setattr(weighing_rows, "Observing", Reading)
    return found


def test_a_row_is_read_once(read: list[GoldRow], tmp_path: Path) -> None:
    first, again = (list(feature_rows("own", [ROW], tmp_path)) for _ in range(2))
    assert first == again
    assert read == [ROW]


def test_label_and_group_are_those_of_the_row(read: list[GoldRow], tmp_path: Path) -> None:
    list(feature_rows("own", [ROW], tmp_path))
    other = replace(ROW, label="hallucinated", group="towers")
    (found,) = feature_rows("own", [other], tmp_path)
    assert (found.label, found.group, len(read)) == ("hallucinated", "towers", 1)


def test_a_changed_text_is_read_anew(read: list[GoldRow], tmp_path: Path) -> None:
    list(feature_rows("own", [ROW], tmp_path))
    changed = [replace(ROW, response="It is high."), replace(ROW, documents=("39 m.",))]
    found = list(feature_rows("own", changed, tmp_path))
    assert read == [ROW, *changed]
    assert [row.statements[0]["words"] for row in found] == [11, 16]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("builtin/rules.py", True),
        ("builtin/lexicon/en.json", True),
        ("intake/text.py", True),
        ("engine.py", True),
        ("learning/bench.py", True),
        ("builtin/judge_weights.json", False),
        ("builtin/span_weights/card.json", False),
        ("learning/train.py", False),
        ("builtin/__pycache__/rules.pyc", False),
    ],
)
def test_the_version_follows_every_file_that_features_depend_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, counts: bool
) -> None:
    for place in (*weighing_rows.DEPENDS_ON, name):
        path = tmp_path / "core" / place
        path = path if path.suffix else path / "one.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("one")
    monkeypatch.setattr(weighing_rows, "PROJECT_ROOT", tmp_path)
    before = weighing_rows._version()
    (tmp_path / "core" / name).write_text("two")
    assert (weighing_rows._version() != before) == counts
