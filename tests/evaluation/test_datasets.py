"""The registry of public sets: what can be asked for, which rows come, what each set means."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.evaluation.dataset_files import assign_part
from core.evaluation.datasets import (
    DATASET_NAMES,
    TASK_RULES,
    format_rules_table,
    get_task_rule,
    list_tasks,
    load_dataset_rows,
)
from core.runtime.errors import InputError
from tests.evaluation.sets.files import write_lines
from training import pairs, train_evidence_model, train_seed_classifier, train_span_reader

SYMMETRIC = "fever_symmetric/fever_symmetric_dev.jsonl.gz"
LABELS = {"supported", "hallucinated", "unclear", "left out"}


def symmetric(number: int, label: str = "SUPPORTS") -> dict[str, object]:
    """A row over evidence of its own."""
    text = f"Well {number} of the island is {number + 3} m deep."
    return {"claim": f"{number + 3} m is the depth of well {number}.", "evidence": text,
            "gold_label": label}  # fmt: skip


def write_symmetric(folder: Path, count: int = 60) -> None:
    write_lines(folder / SYMMETRIC, [symmetric(number) for number in range(count)])


def test_every_rule_says_what_a_reader_of_figures_must_know() -> None:
    for rule in TASK_RULES:
        assert all((rule.unit, rule.group, rule.licence)), rule.name
        assert rule.permits in ("yes", "not stated", "non-commercial", "copyleft")
        meanings = (one.split(" → ")[1] for one in rule.labels.split(", ") if one)
        assert set(meanings) <= LABELS
        assert ("GPL" in rule.licence) == (rule.permits == "copyleft"), rule.name
        assert ("BY-NC" in rule.licence) == (rule.permits == "non-commercial"), rule.name
    keys = [(rule.name, rule.task) for rule in TASK_RULES]
    assert len(set(keys)) == len(keys)


def test_nothing_is_trained_on_that_forbids_it() -> None:
    trained: set[tuple[str, str | None]] = {(one.name, one.task) for one in pairs.SHARED_SETS}
    trained |= {*train_evidence_model.EXTRA_SETS, *train_span_reader.MARKED_SETS}
    trained |= {(name, None) for name in train_seed_classifier.ROWS_BY_SET}
    for name, task in trained:
        assert get_task_rule(name, task).permits in ("yes", "not stated"), name


def test_the_rules_are_printed_as_one_table() -> None:
    lines = format_rules_table(TASK_RULES).splitlines()
    assert len(lines) == len(TASK_RULES) + 2
    assert {line.count(" | ") for line in lines} == {lines[0].count(" | ")}
    (line,) = [one for one in lines if one.startswith("| entailment_ocnli |")]
    assert "contradiction → hallucinated, neutral → unclear, - → left out" in line
    assert "non-commercial" in line
    names = [line.split(" | ")[0] for line in lines[2:]]
    assert names == sorted(names)


def test_the_sets_that_must_be_there_are_there() -> None:
    entailment = (
        "anli averitec begin breaking_nli cad_nli climate_fever conjnli control covidfact dialfact "
        "fm2 healthver help lingnli med ocnli q2 rte sanli scifact_rte sick wice"
    )
    assert {f"entailment_{name}" for name in entailment.split()} <= set(DATASET_NAMES)
    assert {"fever", "fever_symmetric", "mushroom"} <= set(DATASET_NAMES)


def test_the_first_task_is_taken_where_none_is_named() -> None:
    assert list_tasks("fever_symmetric") == ("",)
    assert list_tasks("entailment_climate_fever") == ("pairs", "claims")
    assert get_task_rule("entailment_climate_fever").task == "pairs"
    assert get_task_rule("entailment_climate_fever", "claims").task == "claims"


def test_an_unknown_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Expected a data set of .*fever.*; found “squad”"):
        load_dataset_rows("squad", tmp_path)


def test_an_unknown_task_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"Expected a task of .*\(pairs, claims\); found “x”"):
        load_dataset_rows("entailment_climate_fever", tmp_path, task="x")
    with pytest.raises(InputError, match=r"\(none: leave the task out\); found “x”"):
        load_dataset_rows("fever", tmp_path, task="x")


def test_a_wrong_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="Expected a folder that holds the data sets' folders at"):
        load_dataset_rows("fever_symmetric", tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"Expected a data folder at .*fever_symmetric"):
        list(load_dataset_rows("fever_symmetric", tmp_path))


def test_a_hashed_split_takes_its_part_of_every_file(tmp_path: Path) -> None:
    write_symmetric(tmp_path)
    every = {row.id: row for row in load_dataset_rows("fever_symmetric", tmp_path)}
    dev = {row.id for row in load_dataset_rows("fever_symmetric", tmp_path, split="dev20")}
    train = {row.id for row in load_dataset_rows("fever_symmetric", tmp_path, split="train80")}
    assert dev
    assert train
    assert dev == {name for name, row in every.items() if assign_part(row.group) == "dev"}
    assert dev | train == set(every)
    assert not dev & train


def test_a_split_by_name_takes_the_files_of_that_name(tmp_path: Path) -> None:
    write_symmetric(tmp_path, 3)
    write_lines(tmp_path / "fever_symmetric" / "fever_symmetric_test.jsonl.gz", [symmetric(99)])
    assert len(list(load_dataset_rows("fever_symmetric", tmp_path))) == 4
    assert [
        row.documents for row in load_dataset_rows("fever_symmetric", tmp_path, split="test")
    ] == [("Well 99 of the island is 102 m deep.",)]
    with pytest.raises(InputError, match=r"of the split train, found: fever_symmetric_dev"):
        load_dataset_rows("fever_symmetric", tmp_path, split="train")


def test_rows_come_lazily(tmp_path: Path) -> None:
    rows = [{"claim": "A.", "label": "SUPPORTS"}, {"claim": "B.", "label": "PERHAPS"}]
    write_lines(tmp_path / "fever" / "x.jsonl", rows)
    found = load_dataset_rows("fever", tmp_path)
    assert next(found).response == "A."
    with pytest.raises(InputError, match=r"x\.jsonl, line 2: expected label to be one of supports"):
        next(found)


def test_ids_are_the_same_whether_a_file_is_gzipped_or_not(tmp_path: Path) -> None:
    write_symmetric(tmp_path / "one", 2)
    write_lines(tmp_path / "two" / SYMMETRIC.removesuffix(".gz"), [symmetric(0), symmetric(1)])
    one = [row.id for row in load_dataset_rows("fever_symmetric", tmp_path / "one")]
    assert one == [row.id for row in load_dataset_rows("fever_symmetric", tmp_path / "two")]
    assert one == ["fever_symmetric_dev.jsonl:1", "fever_symmetric_dev.jsonl:2"]
