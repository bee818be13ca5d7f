"""The parts of `make peers`: its files, thresholds and table, and what it says without UQLM."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.dataset_files import GoldRow
from core.runtime.errors import InputError
from core.schema.records import Label
from tests.bench.peer_files import SAMPLES_METHOD, PeerRow, PeerScore, read_lines, write_lines
from tests.bench.peers import (
    BEGIN_MARKER,
    END_MARKER,
    JUDGES,
    Measured,
    build_prompt,
    format_table,
    insert_table,
    main,
    measure_uqlm,
    predict,
)

LABELS: tuple[Label, ...] = ("hallucinated", "supported", "hallucinated", "supported")
ROWS = [
    GoldRow(str(n), f"rows:{n}", f"Answer {n}.", label, str(n), documents=("It is 412 m long.",))
    for n, label in enumerate(LABELS)
]


def test_rows_and_scores_come_back_as_they_were_written(tmp_path: Path) -> None:
    rows = [PeerRow("1", "How long?\nIt is “412 m”\u2028long.", "512 m 🌉"), PeerRow("2", "", "")]
    scores = [
        PeerScore("1", SAMPLES_METHOD, None, 0.5, 5.0, 812.5, samples=("412 m\n", "")),
        PeerScore("1", "exact_match", 0.2, 0.6, 5.0, 812.5),
        PeerScore("2", "judge likert", cause="unreadable: hm\x85"),
    ]
    for name, records in (("rows", rows), ("scores", scores)):
        for record in records:  # each is added as it is done
            write_lines(tmp_path / name, [record])
    assert read_lines(tmp_path / "rows", PeerRow) == rows
    assert read_lines(tmp_path / "scores", PeerScore) == scores


@pytest.mark.parametrize(
    ("p", "label", "is_failure"),
    [
        (0.51, "hallucinated", False),
        (0.49, "supported", False),
        (0.5, "unclear", False),
        (None, "unclear", True),
    ],
)
def test_half_is_the_threshold_and_a_failure_is_no_verdict(
    p: float | None, label: str, is_failure: bool
) -> None:
    said = predict(p)
    assert (said.label, said.p, said.is_failure) == (label, p, is_failure)


def test_a_row_without_a_question_is_asked_for_what_its_text_says() -> None:
    assert build_prompt(ROWS[0]).startswith("Say in one sentence")
    asked = GoldRow(
        "1", "a:1", "512 m", "supported", "1", question="How long?", documents=("A", "B")
    )
    assert build_prompt(asked) == "How long?\nGo by this text: A\nB"


def test_the_table_tells_right_wrong_failed_and_what_was_not_measured() -> None:
    confidences = {"exact_match": (0.1, 0.9, 0.2, 0.8), JUDGES[0]: (0.0, 1.0, None, 0.5)}
    scores = [
        PeerScore(row.id, name, value, seconds=1.5, calls=2, tokens=30)
        for name, values in confidences.items()
        for row, value in zip(ROWS, values, strict=True)
    ]
    table = format_table(ROWS, measure_uqlm(ROWS, scores), seed=0)
    cells = {line.split("|")[1].strip(): line.split("|")[2:-1] for line in table.splitlines()}
    exact, judge = (cells[f"UQLM {name}"] for name in confidences)
    assert [cell.strip()[:5] for cell in exact[:3]] == ["1.000"] * 3
    assert [cell.strip() for cell in exact[3:]] == ["100%", "0", "1.50", "2.0", "30"]
    assert judge[1].strip().startswith("0.500"), "neither a failure nor “not sure” is right"
    assert [cell.strip() for cell in judge[3:5]] == ["50%", "1"]
    assert cells["UQLM noncontradiction"][0].strip() == "not measured (needs --nli-model NAME)"
    assert "roberta-large" in cells["UQLM bert_score"][0]


def test_a_panel_is_the_mean_of_the_judges_that_could_be_read_and_costs_all_of_them() -> None:
    values = (1.0, 0.5, None, 0.0)
    scores = [
        PeerScore(row.id, judge, value, calls=1, tokens=10)
        for row in ROWS
        for judge, value in zip(JUDGES, values, strict=True)
    ]
    panel = next(one for one in measure_uqlm(ROWS, scores) if "panel" in one.name)
    assert (panel.said[0].p, panel.calls, panel.tokens) == (0.5, 4, 40)
    unread = [PeerScore(row.id, judge) for row in ROWS for judge in JUDGES]
    panel = next(one for one in measure_uqlm(ROWS, unread) if "panel" in one.name)
    assert all(said.is_failure for said in panel.said)


def test_the_table_takes_the_place_of_the_one_before() -> None:
    page = f"Before.\n{BEGIN_MARKER}\nold\n{END_MARKER}\nAfter.\n"
    table = format_table(ROWS, [Measured("x", missing=r"not measured (needs \1)")], seed=0)
    once = insert_table(page, table)
    assert once == f"Before.\n{BEGIN_MARKER}\n{table}{END_MARKER}\nAfter.\n"
    assert insert_table(once, table) == once
    with pytest.raises(InputError, match="peers: begin"):
        insert_table("no markers", table)


@pytest.mark.parametrize("python", ["missing/python", "/bin/false"])
def test_without_uqlm_one_sentence_says_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], python: str
) -> None:
    assert main(["--path", str(tmp_path), "--peers-python", python]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert len(told.err.splitlines()) == 1
    assert python in told.err
    assert "make peers SETS=dir" in told.err
