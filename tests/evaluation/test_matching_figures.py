"""What is counted of the readers behind match: alarms by article, likeness beside guessing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.evaluation.matching_figures import false_alarms, likeness, main
from core.records import Passage
from core.tools.toolbox import Answer
from tests.fakes import FakeEmbedder

ARTICLES = ["The bridge is red. It is long. It is old.", "The lake is deep. It is cold.", "Alone."]


def accuse_the_long(statement: str, passages: Sequence[Passage]) -> Answer:
    """Calls whatever is said to be long contradicted; never shown the sentence itself."""
    assert statement not in [passage.text for passage in passages]
    is_long = "red" in statement or "deep" in statement
    finding, p = ("contradicted", 0.8) if is_long else ("unsupported", 0.99)
    return Answer("hallucinated", "", {"finding": finding}, p)


def test_only_contradictions_are_alarms_and_lonely_sentences_are_not_tried() -> None:
    found = false_alarms(ARTICLES * 20, accuse_the_long)
    assert len(found.p) == 80
    share = found.share(0.5)
    assert 0.0 < share["low"] <= share["value"] <= share["high"] < 1.0
    assert share["value"] == pytest.approx(float((found.p > 0).mean()), abs=1e-4)
    assert found.share(0.9)["value"] == 0.0


def test_likeness_is_certain_for_same_words_and_even_for_none() -> None:
    same = [(f"alpha{n} beta{n}", f"alpha{n} beta{n}") for n in range(20)]
    assert likeness(same, FakeEmbedder()) == (1.0, 0.0)
    empty = [("one question", "one answer")] * 10
    assert likeness(empty, FakeEmbedder())[0] == 0.5


def test_a_folder_that_is_none_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--path", str(tmp_path / "nowhere")]) == 2
    assert "Expected a folder" in capsys.readouterr().err
