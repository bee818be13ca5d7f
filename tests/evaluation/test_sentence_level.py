"""Claims of an answer are audited as one text, and each is measured by what is held of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.evaluation.command_line import result_name
from core.evaluation.outcomes import FAILED
from core.evaluation.sentence_level import joined, main, predictions
from core.events import Remembered
from core.progress import Progress
from core.records import Label, Statement, Verdict
from tests.evaluation.tiny_sets import write_lines

DONE = Verdict("unclear", None, None, "Because.")


@given(st.lists(st.text(min_size=1), min_size=1))
def test_each_claim_is_found_at_its_place(claims: list[str]) -> None:
    text, places = joined(claims)
    assert [text[start:end] for start, end in places] == claims


def held(
    *statements: tuple[int, int, Label, float | None], verdict: Verdict | None = DONE
) -> Progress:
    progress = Progress(verdict=verdict)
    for number, (start, end, label, p) in enumerate(statements):
        progress.statements[number] = Statement(number, start, end, "x", "x")
        progress.memory[number] = Remembered(number, label, p, "Why.")
    return progress


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (("supported", "hallucinated"), "hallucinated"),
        (("unclear", "hallucinated"), "hallucinated"),
        (("supported", "unclear"), "unclear"),
        (("supported", "supported"), "supported"),
    ],
)
def test_a_claim_of_two_statements_is_as_wrong_as_the_worse(
    labels: tuple[Label, Label], expected: Label
) -> None:
    progress = held((0, 5, labels[0], 0.2), (5, 9, labels[1], 0.7), (10, 20, "hallucinated", 0.9))
    [first, second] = predictions(progress, [(0, 9), (10, 20)])
    assert (first.label, first.p) == (expected, 0.7)
    assert (second.label, second.p) == ("hallucinated", 0.9)


def test_where_no_statement_is_nothing_is_known() -> None:
    [found] = predictions(held((0, 5, "supported", 0.1)), [(5, 9)])
    assert (found.label, found.p, found.is_failure) == ("unclear", None, False)


def test_a_run_that_broke_off_gave_no_answer() -> None:
    [found] = predictions(held((0, 5, "supported", 0.1), verdict=None), [(0, 5)])
    assert (found.label, found.cause) == ("unclear", FAILED)


def test_the_command_measures_every_claim_and_the_answers_without_reading(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [
        {"claim": "The lighthouse at Nordre stands on a rock.", "label": True},
        {"claim": "It was painted white by its first keeper.", "label": False},
    ]
    row = {"prompt": "What of the lighthouse?", "response": "…", "claims": claims, "label": False}
    other = row | {"prompt": "Who painted it?", "claims": claims[1:]}
    write_lines(tmp_path / "haluagent" / "sentence" / "knowledge_qa.jsonl.gz", [row, other])
    arguments = ["--path", str(tmp_path), "--home", str(tmp_path / "home"), "--json"]
    assert main([*arguments, "--task", "sentence_kbqa"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["rows"], found["groups"], found["protocol"]) == (3, 2, "audit")
    assert found["golds"] == {"hallucinated": 2, "supported": 1}
    assert set(found["trivial"]) == {"always_hallucinated", "always_supported"}
    assert found["trivial"]["always_hallucinated"]["recall"]["value"] == 1.0
    # Nothing was given that could show either: no evidence is no verdict, and no label is guessed.
    assert found["unclear"] == 3
    assert found["failed"] == 0


def test_a_folder_without_the_set_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--path", str(tmp_path / "none"), "--home", str(tmp_path / "home")]
    assert main([*arguments, "--task", "sentence_kbqa"]) == 2
    assert "found none" in capsys.readouterr().err


def test_results_of_an_audit_do_not_overwrite_those_of_a_debate() -> None:
    result = {"dataset": "qags", "task": None, "split": None, "roster": "builtin"}
    assert result_name(result | {"protocol": "ceda"}) == "qags.json"
    assert result_name(result | {"protocol": "audit"}) == "qags-audit.json"
    assert result_name(result | {"protocol": None, "task": "recorded"}) == "qags-recorded.json"
