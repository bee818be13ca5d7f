"""Public sets as they lie: labels become ours, and what is broken is named with its place."""

from __future__ import annotations

import gzip
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from core.errors import InputError
from core.evaluation.datasets import LOADERS, load
from tests.evaluation.tiny_sets import FACTS, write_lines, write_sets

FEVER = "fever_symmetric/fever_symmetric_dev.jsonl.gz"
FM2 = "entailment_fm2/dev.jsonl.gz"
ZIP = "entailment_breaking_nli/breaking_nli_dataset.zip"
CAD = "entailment_cad_nli/dev.tsv"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with all sets."""
    write_sets(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", LOADERS)
def test_labels_become_ours_and_others_are_left_out(folder: Path, name: str) -> None:
    rows = load(name, folder)
    assert Counter(row.label for row in rows) == {"supported": 8, "hallucinated": 8}
    assert {row.group for row in rows} == {row.texts[0] for row in rows}
    assert len({row.group for row in rows}) == len(FACTS)
    for row, fact in zip(rows[:2], (FACTS[0], FACTS[0]), strict=True):
        assert row.texts[0].startswith(fact[0])


def test_which_label_means_what() -> None:
    assert set(LOADERS) == {
        "fever_symmetric",
        "entailment_fm2",
        "entailment_breaking_nli",
        "entailment_cad_nli",
    }


@pytest.mark.parametrize("name", LOADERS)
def test_the_contradicted_claim_is_the_hallucinated_one(folder: Path, name: str) -> None:
    _, right, wrong = FACTS[0]
    found = {row.claim: row.label for row in load(name, folder)}
    assert found[right] == "supported"
    assert found[wrong if wrong in found else f'Some say "{wrong}"'] == "hallucinated"


def test_quotes_in_a_tsv_are_only_letters(folder: Path) -> None:
    claims = [row.claim for row in load("entailment_cad_nli", folder)]
    assert 'Some say "It was built in 1897."' in claims


def test_an_unknown_set_is_refused(folder: Path) -> None:
    with pytest.raises(InputError, match=r"Expected a data set of fever_symmetric.*found “squad”"):
        load("squad", folder)


@pytest.mark.parametrize("name", LOADERS)
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match=r"Expected a data file at .*No such file"):
        load(name, tmp_path)


@pytest.mark.parametrize(
    ("name", "path", "data", "message"),
    [
        ("fever_symmetric", FEVER, b"plain text", "Expected a data file at"),
        (
            "fever_symmetric",
            FEVER,
            gzip.compress(b"{}" * 99, mtime=0)[:20],
            "Expected a data file at",
        ),
        ("fever_symmetric", FEVER, gzip.compress(b"\xff\xfe", mtime=0), "Expected UTF-8 text"),
        ("fever_symmetric", FEVER, gzip.compress(b"{", mtime=0), "line 1: expected JSON"),
        (
            "fever_symmetric",
            FEVER,
            gzip.compress(b"[1]", mtime=0),
            "line 1: expected a JSON object",
        ),
        (
            "fever_symmetric",
            FEVER,
            gzip.compress(b"{}", mtime=0),
            "line 1: expected a text called evidence",
        ),
        ("entailment_breaking_nli", ZIP, b"no zip", "Expected a data file at"),
        ("entailment_cad_nli", CAD, b"a\tb\n1\t2", "line 2: expected a text called gold_label"),
        ("entailment_cad_nli", CAD, b"\xff", "Expected UTF-8 text"),
    ],
)
def test_what_is_broken_is_named(
    folder: Path, name: str, path: str, data: bytes, message: str
) -> None:
    (folder / path).write_bytes(data)
    with pytest.raises(InputError, match=message) as raised:
        load(name, folder)
    assert str(folder) in str(raised.value)


@pytest.mark.parametrize("evidence", [None, "text", [1], [{}], [{"text": 1}]])
def test_evidence_of_another_shape_is_named(folder: Path, evidence: object) -> None:
    row: dict[str, object] = {"text": "A.", "label": "SUPPORTS", "gold_evidence": evidence}
    write_lines(folder / FM2, [row])
    with pytest.raises(InputError, match="line 1: expected a list of texts called gold_evidence"):
        load("entailment_fm2", folder)


def test_a_zip_without_the_set_is_named(folder: Path) -> None:
    with zipfile.ZipFile(folder / ZIP, "w") as archive:
        archive.writestr("other.txt", "x")
    with pytest.raises(InputError, match="Expected a data file at"):
        load("entailment_breaking_nli", folder)
