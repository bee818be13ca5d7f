"""Claims against chosen evidence: each set's words become our labels, under any split's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.datasets import load
from core.evaluation.files import GoldRow
from core.runtime.errors import InputError
from tests.evaluation.sets.files import write_lines, write_list, write_table

CLAIM = "The ferry takes 60 cars."
TEXT = "The ferry of the island takes 40 cars."
LABELS = ["supported", "hallucinated", "unclear"]
FEVER = ("SUPPORTS", "REFUTES", "NOT ENOUGH INFO")


def rows_of(name: str, folder: Path, task: str | None = None) -> list[GoldRow]:
    rows = list(load(name, folder, task=task))
    assert len({row.id for row in rows}) == len(rows)
    return rows


def test_fever_has_claims_and_no_evidence(tmp_path: Path) -> None:
    rows = [{"id": 1, "claim": CLAIM, "label": word, "evidence_pages": ["Ferry"]} for word in FEVER]
    write_list(tmp_path / "fever" / "fever_labelled_test.json.gz", rows)
    found = rows_of("fever", tmp_path)
    assert [row.label for row in found] == LABELS
    assert {(row.response, row.documents, row.group) for row in found} == {(CLAIM, (), CLAIM)}


@pytest.mark.parametrize("names", [("claim", "evidence"), ("sentence2", "sentence1")])
def test_symmetric_claims_have_their_brackets_back(tmp_path: Path, names: tuple[str, str]) -> None:
    row = {names[0]: CLAIM, names[1]: "Ferry -LRB- 1956 -RRB- .", "gold_label": "REFUTES"}
    write_lines(tmp_path / "fever_symmetric" / "fever_symmetric_test.jsonl.gz", [row])
    (found,) = rows_of("fever_symmetric", tmp_path)
    assert found.documents == ("Ferry ( 1956 ) .",)
    assert (found.response, found.label) == (CLAIM, "hallucinated")


def test_a_claim_with_evidence_for_and_against_it_lies_in_one_group(tmp_path: Path) -> None:
    rows = [
        {"claim": claim, "evidence": text, "gold_label": label}
        for claim, text, label in [
            ("A.", "One.", "SUPPORTS"), ("A.", "Two.", "REFUTES"),
            ("B.", "Two.", "SUPPORTS"), ("C.", "Three.", "REFUTES"),
        ]
    ]  # fmt: skip
    write_lines(tmp_path / "fever_symmetric" / "x.jsonl", rows)
    groups = [row.group for row in rows_of("fever_symmetric", tmp_path)]
    assert groups[0] == groups[1] == groups[2] != groups[3]


def test_each_question_of_averitec_is_a_document(tmp_path: Path) -> None:
    answers = [
        {"answer": "No", "answer_type": "Boolean", "boolean_explanation": "It takes 40."},
        {"answer": "40 cars.", "answer_type": "Extractive"},
    ]
    questions = [{"question": "Does it take 60?", "answers": answers},
                 {"question": "Who says so?", "answers": []}]  # fmt: skip
    words = ("Supported", "Refuted", "Not Enough Evidence", "Conflicting Evidence/Cherrypicking")
    rows = [{"claim": CLAIM, "label": word, "questions": questions} for word in words]
    write_list(tmp_path / "entailment_averitec" / "test.json.gz", rows)
    found = rows_of("entailment_averitec", tmp_path)
    assert [row.label for row in found] == [*LABELS, "unclear"]
    assert found[0].documents == ("Does it take 60? No It takes 40. 40 cars.", "Who says so?")
    assert found[0].group == CLAIM


def test_climate_fever_by_pairs_and_by_claims(tmp_path: Path) -> None:
    words = ("SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO")
    evidences = [{"evidence": f"{TEXT} {word}", "evidence_label": word} for word in words]
    row = {"claim": CLAIM, "claim_label": "DISPUTED", "evidences": evidences}
    write_lines(tmp_path / "entailment_climate_fever" / "test.jsonl.gz", [row])
    pairs = rows_of("entailment_climate_fever", tmp_path)
    assert [row.label for row in pairs] == LABELS
    assert [row.documents for row in pairs] == [(f"{TEXT} {word}",) for word in words]
    assert {row.group for row in pairs} == {CLAIM}
    (whole,) = rows_of("entailment_climate_fever", tmp_path, "claims")
    assert whole.label == "unclear"
    assert len(whole.documents) == 3


@pytest.mark.parametrize("heading", ["label", "entailment"])
def test_covidfact_from_its_tables(tmp_path: Path, heading: str) -> None:
    rows = [
        {"index": number, "sentence1": TEXT, "Sentence2": CLAIM, heading: word}
        for number, word in enumerate(("entailment", "not_entailment"))
    ]
    write_table(tmp_path / "entailment_covidfact" / "dev.tsv.gz", rows, "\t")
    found = rows_of("entailment_covidfact", tmp_path)
    assert [row.label for row in found] == LABELS[:2]
    assert {(row.response, row.documents) for row in found} == {(CLAIM, (TEXT,))}


def test_covidfact_from_lines_with_lists_of_sentences(tmp_path: Path) -> None:
    rows = [
        {"claim": CLAIM, "label": word, "evidence": [TEXT, "So it is."], "gold_source": "x"}
        for word in ("SUPPORTED", "REFUTED")
    ]
    write_lines(tmp_path / "entailment_covidfact" / "labelled.jsonl.gz", rows)
    found = rows_of("entailment_covidfact", tmp_path)
    assert [row.label for row in found] == LABELS[:2]
    assert {row.documents for row in found} == {(f"{TEXT} So it is.",)}


def test_fool_me_twice_with_gold_and_with_retrieved_evidence(tmp_path: Path) -> None:
    row = {
        "text": CLAIM,
        "label": "REFUTES",
        "wikipedia_page": "Ferry",
        "gold_evidence": [{"section_header": "", "text": TEXT}, {"text": "So it is."}],
        "retrieved_evidence": [{"text": "It is old."}, {"text": TEXT}],
    }
    write_lines(tmp_path / "entailment_fm2" / "test.jsonl.gz", [row])
    (gold,) = rows_of("entailment_fm2", tmp_path)
    assert (gold.label, gold.documents, gold.group) == (
        "hallucinated", (f"{TEXT} So it is.",), "Ferry",
    )  # fmt: skip
    (retrieved,) = rows_of("entailment_fm2", tmp_path, "retrieved")
    assert retrieved.documents == ("It is old.", TEXT)


@pytest.mark.parametrize("evidence", [None, "text", [1], [{}], [{"text": 1}]])
def test_evidence_of_another_shape_is_named(tmp_path: Path, evidence: object) -> None:
    row = {"text": "A.", "label": "SUPPORTS", "gold_evidence": evidence}
    write_lines(tmp_path / "entailment_fm2" / "dev.jsonl.gz", [row])
    with pytest.raises(InputError, match=r"gz, line 1: expected .*(gold_evidence|text)"):
        rows_of("entailment_fm2", tmp_path)


def test_healthver_ties_by_question(tmp_path: Path) -> None:
    rows = [
        {"id": 1, "evidence": f'{TEXT} "{word}"', "claim": CLAIM, "label": word, "topic_ip": 1,
         "question": "how many cars does it take"}
        for word in ("Supports", "Refutes", "Neutral")
    ]  # fmt: skip
    write_table(tmp_path / "entailment_healthver" / "healthver_test.csv.gz", rows)
    found = rows_of("entailment_healthver", tmp_path)
    assert [row.label for row in found] == LABELS
    assert {row.group for row in found} == {"how many cars does it take"}
    assert {row.question for row in found} == {""}
