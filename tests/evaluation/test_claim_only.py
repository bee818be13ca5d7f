"""How much of the label shows in the claim alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.claim_only import claim_only_auroc, main
from core.evaluation.gold import GoldRow
from core.records import Label


def row(number: int, claim: str, label: Label) -> GoldRow:
    return GoldRow(str(number), f"own, line {number}", claim, label, f"group {number // 2}")


def test_a_set_whose_wrong_claims_share_a_word_is_found_out() -> None:
    rows = [
        row(n, f"Town {n} has {'no' if n % 2 else 'a'} port.", "unclear" if n % 2 else "supported")
        for n in range(80)
    ]
    found = claim_only_auroc(rows)
    assert found is not None
    assert found > 0.95


def test_claims_that_stand_under_both_labels_give_nothing_away() -> None:
    rows = [
        row(n, f"Town {n // 2} has a port.", "hallucinated" if n % 2 else "supported")
        for n in range(80)
    ]
    found = claim_only_auroc(rows)
    assert found is not None
    assert 0.4 < found < 0.6


def test_few_rows_say_nothing() -> None:
    assert claim_only_auroc([row(n, "It rains.", "supported") for n in range(20)]) is None


def test_a_wrong_folder_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--path", str(tmp_path / "nowhere"), "--dataset", "fever_symmetric"]
    assert main(given) == 2
    assert capsys.readouterr().err.count("\n") == 1
