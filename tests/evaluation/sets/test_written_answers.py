"""Answers in dialogues and claims of articles: labels, questions, documents and marked words."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.datasets import load
from core.evaluation.files import GoldRow
from core.runtime.errors import InputError
from tests.evaluation.sets.files import write, write_lines, write_table

ANSWER = "Yes, it opened in 1956."
KNOWN = "The school of the island opened in 1957."
TURN = "Is the school old?"
LABELS = ["supported", "hallucinated", "unclear"]


def rows_of(name: str, folder: Path, task: str | None = None) -> list[GoldRow]:
    rows = list(load(name, folder, task=task))
    assert len({row.id for row in rows}) == len(rows)
    return rows


def test_begin_asks_with_the_message(tmp_path: Path) -> None:
    words = ("Fully attributable", "Not fully attributable", "Generic")
    text = "model_name\tdata_source\tknowledge\tmessage\tresponse\tbegin_label\n"
    text += "".join(f"m\twow\t{KNOWN}\t{TURN}\t{ANSWER}\t{word}\n" for word in words)
    write(tmp_path / "entailment_begin" / "begin_test_cmu.tsv.gz", text)
    found = rows_of("entailment_begin", tmp_path)
    assert [row.label for row in found] == LABELS
    assert {(row.question, row.response, row.documents, row.group) for row in found} == {
        (TURN, ANSWER, (KNOWN,), KNOWN)
    }


def dialogue(**changed: object) -> dict[str, object]:
    return {
        "context": ["Hello.", f"{TURN} "],
        "response": ANSWER,
        "evidence_list": [["School", "https://example.org", KNOWN, "0"], ["Isle", "", " ", "1"]],
        "response_label": "SUPPORTS",
    } | changed


def test_dialfact_asks_with_the_last_turn(tmp_path: Path) -> None:
    words = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")
    rows = [dialogue(response_label=word) for word in words]
    write_lines(tmp_path / "entailment_dialfact" / "test_split.jsonl.gz", rows)
    found = rows_of("entailment_dialfact", tmp_path)
    assert [row.label for row in found] == LABELS
    assert {(row.question, row.documents, row.group) for row in found} == {
        (TURN, (f"School: {KNOWN}",), ANSWER)
    }


@pytest.mark.parametrize("piece", ["text", ["title", "address"], ["title", "address", 7]])
def test_evidence_of_another_shape_is_named(tmp_path: Path, piece: object) -> None:
    write_lines(tmp_path / "entailment_dialfact" / "x.jsonl", [dialogue(evidence_list=[piece])])
    with pytest.raises(InputError, match=r"x\.jsonl, line 1: expected evidence_list to hold lists"):
        rows_of("entailment_dialfact", tmp_path)


def test_the_files_of_q2_are_their_labels(tmp_path: Path) -> None:
    folder = tmp_path / "entailment_q2"
    row = {"message": TURN, "response": ANSWER, "knowledge": KNOWN, "gold": "x"}
    write_table(folder / "dodeca_consistent.csv", [row])
    write_table(folder / "memnet_inconsistent.csv", [row])
    crossed = {
        "message": TURN, "knowledge": KNOWN, "dodeca_response": "It is.",
        "memnet_response": "It is not.", "dodeca_label": 0, "memnet_label": 1,
    }  # fmt: skip
    write_table(folder / "cross_annotation.csv.gz", [crossed])
    assert [(row.label, row.question) for row in rows_of("entailment_q2", tmp_path)] == [
        ("supported", TURN), ("hallucinated", TURN),
    ]  # fmt: skip
    both = rows_of("entailment_q2", tmp_path, "cross_annotation")
    assert [(row.response, row.label) for row in both] == [
        ("It is.", "supported"), ("It is not.", "hallucinated"),
    ]  # fmt: skip


def cited(label: str = "supported", **more: object) -> dict[str, object]:
    return {
        "claim": ANSWER, "label": label, "evidence": ["# School", KNOWN],
        "meta": {"id": "dev1", "claim_title": "Isle"},
    } | more  # fmt: skip


def test_wice_stands_supported_against_not_supported(tmp_path: Path) -> None:
    folder = tmp_path / "entailment_wice"
    words = ("supported", "partially_supported", "not_supported")
    write_lines(folder / "oracle_chunks_claim_test.jsonl.gz", [cited(word) for word in words])
    write_lines(folder / "claim_test.jsonl.gz", [cited(evidence=["# School", KNOWN, "End."])])
    chunks = rows_of("entailment_wice", tmp_path)
    assert [row.label for row in chunks] == ["supported", "hallucinated", "hallucinated"]
    assert {(row.documents, row.group, row.spans) for row in chunks} == {
        ((f"# School\n{KNOWN}",), "Isle", None)
    }
    (page,) = rows_of("entailment_wice", tmp_path, "pages")
    assert page.documents == (f"# School\n{KNOWN}\nEnd.",)


def test_wice_takes_pages_where_no_chunks_lie(tmp_path: Path) -> None:
    write_lines(tmp_path / "entailment_wice" / "claim_test.jsonl", [cited()])
    assert len(rows_of("entailment_wice", tmp_path)) == 1


def marked(tokens: list[str], marks: list[object]) -> dict[str, object]:
    return cited("partially_supported", claim_tokens=tokens, non_supported_spans=marks)


def test_unsupported_tokens_become_spans_of_the_claim(tmp_path: Path) -> None:
    tokens = ["Yes", ",", "it", "opened", "in", "1956", "."]
    rows = [
        marked(tokens, [True, True, False, False, True, True, False]),
        marked(tokens, [False] * 7),
    ]
    write_lines(tmp_path / "entailment_wice" / "non_supported_tokens_test.jsonl.gz", rows)
    first, second = rows_of("entailment_wice", tmp_path, "tokens")
    assert first.spans is not None
    assert [first.response[one.start : one.end] for one in first.spans] == ["Yes,", "in 1956"]
    assert second.spans == ()


@pytest.mark.parametrize(
    ("tokens", "marks", "message"),
    [
        (["Yes", "sir"], [True, False], "claim_tokens to follow each other in the claim"),
        (["Yes", "opened"], [True, False], "claim_tokens to follow each other in the claim"),
        (["Yes", ","], [True], "one true or false for each token"),
        (["Yes", ","], [1, 0], "one true or false for each token"),
    ],
)
def test_tokens_that_do_not_fit_are_named(
    tmp_path: Path, tokens: list[str], marks: list[object], message: str
) -> None:
    path = tmp_path / "entailment_wice" / "non_supported_tokens_dev.jsonl"
    write_lines(path, [marked(tokens, marks)])
    with pytest.raises(InputError, match=rf"jsonl, line 1: expected .*{message}"):
        rows_of("entailment_wice", tmp_path, "tokens")
