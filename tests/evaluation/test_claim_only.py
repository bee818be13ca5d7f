"""How much of the label shows in the claim alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.claim_only import claim_only_auroc, main
from core.evaluation.gold import GoldRow
from core.records import Label


def row(number: int, claim: str, label: Label) -> GoldRow:
    return GoldRow(str(number), f"own, line {number}", claim, label, f"group {number // 2}")


@pytest.mark.parametrize(
    ("claim", "wrong_claim", "least", "most"),
    [
        ("Town {n} has a port.", "Town {n} has no port.", 0.95, 1.0),
        ("Town {pair} has a port.", "Town {pair} has a port.", 0.4, 0.6),
    ],
    ids=["wrong claims share a word", "every claim stands under both labels"],
)
def test_what_the_claims_give_away_is_found(
    claim: str, wrong_claim: str, least: float, most: float
) -> None:
    rows = [
        row(n, wrong_claim.format(n=n, pair=n // 2), "hallucinated")
        if n % 2
        else row(n, claim.format(n=n, pair=n // 2), "supported")
        for n in range(80)
    ]
    found = claim_only_auroc(rows)
    assert found is not None
    assert least < found <= most


def test_few_rows_say_nothing() -> None:
    assert claim_only_auroc([row(n, "It rains.", "supported") for n in range(20)]) is None


def test_a_wrong_folder_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--path", str(tmp_path / "nowhere"), "--dataset", "fever_symmetric"]
    assert main(given) == 2
    assert capsys.readouterr().err.count("\n") == 1
