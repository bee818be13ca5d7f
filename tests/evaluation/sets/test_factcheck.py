"""Claims with evidence: stance, truth, and the prompt that ties the claims of one answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.sets.answers import (
    load_factbench,
    load_factbench_claims,
    load_stances,
    load_verdicts,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write_lines

CLAIM = "The bridge was built in 1877."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sentence = {"text": CLAIM, "claims": [CLAIM]}
    write_lines(
        tmp_path / "factcheck-GPT-benchmark.jsonl.gz",
        [{"prompt": "When was it built?", "sentences": {"sentence1": sentence}}],
    )
    stances = ["refute", "completely-support", "partially-support", "irrelevant"]
    rows = [
        {"claim": CLAIM, "evidence": f"Piece {number}.", "stance": stance}
        for number, stance in enumerate(stances)
    ]
    other = {"claim": "It is red.", "evidence": "Piece 0.", "stance": "irrelevant"}
    write_lines(tmp_path / "subtasks" / "subtask3_claim_evidence_stance.jsonl.gz", [*rows, other])
    verdicts = [
        {"claim": CLAIM, "label": "true"},
        {"claim": "It is red.", "label": "not_enough_evidence"},
    ]
    write_lines(tmp_path / "subtasks" / "subtask4_claim_factuality.jsonl", verdicts)
    return tmp_path


def test_only_evidence_that_carries_the_whole_claim_supports_it(folder: Path) -> None:
    rows = load(load_stances, folder, "subtask3")
    assert [row.label for row in rows] == [
        "hallucinated",
        "supported",
        "unclear",
        "unclear",
        "unclear",
    ]
    assert rows[0].documents == ("Piece 0.",)
    assert rows[0].group == "When was it built?"
    assert rows[-1].group == "It is red."


def test_a_claim_is_checked_against_all_its_evidence(folder: Path) -> None:
    true, open_ = load(load_verdicts, folder, "subtask4")
    assert true.documents == ("Piece 0.", "Piece 1.", "Piece 2.", "Piece 3.")
    assert (true.label, open_.label) == ("supported", "unclear")


def test_an_answer_and_each_of_its_claims(tmp_path: Path) -> None:
    answer = {
        "prompt": "When was it built?",
        "response": "In 1877, of wood.",
        "response_label": False,
        "claims": [CLAIM, "It is of wood.", "It is old."],
        "claim_labels": [True, False, "unknown"],
    }
    path = tmp_path / "Factbench.subset.jsonl.gz"
    write_lines(path, [answer, {**answer, "response_label": "NA"}])
    assert [row.label for row in load(load_factbench, tmp_path)] == ["hallucinated", "unclear"]
    rows = load(load_factbench_claims, tmp_path)
    assert [row.label for row in rows[:3]] == ["supported", "hallucinated", "unclear"]
    assert rows[1].response == "It is of wood."
    write_lines(path, [{**answer, "claim_labels": [True]}])
    with pytest.raises(InputError, match="expected 3 labels in claim_labels, found: “1”"):
        load(load_factbench_claims, tmp_path)
