"""What each set's loader makes of small files of our own, under names of splits not seen here.

`cases.json` holds them: `files` as lines of JSON, as a `list`, or as a text as it lies; then either
the `rows`, with all that is not as usual, or a pattern of the `error` and the `place` it names.
"""

from __future__ import annotations

import json
import zipfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.evaluation.datasets import LOADERS, get_task_rule
from core.evaluation.datasets import load_dataset_rows as load_set
from core.evaluation.sets.answers import (
    ANSWER_FILES,
    CLAIM_FILES,
    load_chinese,
    load_chinese_checked,
)
from core.exchange.rows import compute_marked_shares, find_nearest_offset
from core.runtime.errors import InputError
from tests.evaluation.sets.files import load, write, write_lines, write_list

CASES = json.loads((Path(__file__).parent / "cases.json").read_text(encoding="utf-8"))
USUAL = {own.name: own.default for own in fields(GoldRow)}


def told(row: GoldRow, folder: Path) -> dict[str, Any]:
    """A row as the table of cases has it; its place where the id does not tell it."""
    found: dict[str, Any] = {
        name: value
        for name, value in vars(row).items()
        if name != "place" and (name == "label" or value != USUAL[name])
    }
    for name in {"spans", "soft"} & found.keys():
        places = ([one.start, one.end, one.p] for one in found[name])
        found[name] = [place if place[2] != 1 else place[:2] for place in places]
    if "images" in found:
        found["images"] = [path.relative_to(folder).as_posix() for path in row.images]
    if row.id.split(":")[1:2] != [row.place.rsplit(" ", 1)[-1]]:
        found["place"] = row.place.replace(f"{folder}/", "")
    return {name: list(own) if isinstance(own, tuple) else own for name, own in found.items()}


@pytest.mark.parametrize("case", CASES, ids=[case["says"] for case in CASES])
def test_a_set_is_read_row_by_row(tmp_path: Path, case: dict[str, Any]) -> None:
    for name, content in case["files"].items():
        if isinstance(content, str):
            write(tmp_path / name, content)
        elif isinstance(content, dict):
            write_list(tmp_path / name, content["list"])
        else:
            write_lines(tmp_path / name, content)
    asked = (LOADERS[case["set"]], tmp_path, case["task"], case["split"])
    if "error" in case:
        with pytest.raises(InputError, match=case["error"]) as caught:
            load(*asked)
        assert case["place"] in str(caught.value)
    else:
        assert [told(row, tmp_path) for row in load(*asked)] == case["rows"]


def test_breaking_nli_is_read_inside_its_zip(tmp_path: Path) -> None:
    path = tmp_path / "entailment_breaking_nli" / "breaking_nli_dataset.zip"
    path.parent.mkdir()
    row = {"sentence1": "It is white.", "sentence2": "It is red.", "gold_label": "contradiction"}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data/dataset.jsonl", json.dumps(row))
    (found,) = load_set("entailment_breaking_nli", tmp_path)
    assert (found.response, found.label) == ("It is red.", "hallucinated")
    assert found.place == f"{path}/data/dataset.jsonl, line 1"


@pytest.mark.parametrize("name", ["rte", "scifact_rte", "med", "help"])
def test_not_entailed_alone_does_not_say_that_the_evidence_decides(name: str) -> None:
    assert "does not decide" in get_task_rule(f"entailment_{name}").note


def test_every_task_of_the_paper_is_known() -> None:
    assert {*ANSWER_FILES, *CLAIM_FILES} == {
        *"word_count date translation code ape halueval_qa webqa halluqa halueval2".split(),
        *"sentence_math sentence_science sentence_kbqa".split(),
    }


def test_chinese_answers_take_their_label_from_the_other_set(tmp_path: Path) -> None:
    answers = [
        {"model_name": "b", "response": "四十八米。", "factuality": False},
        {"model_name": "c", "response": "不知道。", "factuality": None},
    ]
    gold = {"prompt": "灯塔有多高？", "responses_and_factuality": answers}
    write_lines(tmp_path / "factool" / "dataset_chinese.jsonl.gz", [gold])
    assert len(load(load_chinese, tmp_path / "factool")) == 1
    checked = {
        "prompt": "灯塔有多高？",
        "evidences": [{"evidence": ["高三十八米。", "高三十八米。"]}, {"evidence": None}],
        "response_level_factuality": True,
    }
    lines = [{**checked, "response": said} for said in ("四十八米。", "不知道。", "没有。")]
    write_lines(tmp_path / "haluagent" / "sentence" / "chinese.jsonl.gz", lines)
    [row] = load(load_chinese_checked, tmp_path / "haluagent")
    assert (row.response, row.label, row.recorded) == ("四十八米。", "hallucinated", "supported")
    assert (row.documents, row.language) == (("高三十八米。",), "zh")


def test_a_piece_stands_nearest_to_where_it_was_marked() -> None:
    text = "a tower, a Tower, a tower"
    assert [find_nearest_offset(text, "tower", place) for place in (0, 19)] == [2, 20]
    assert find_nearest_offset(text, "TOWER", 12) == 11
    assert find_nearest_offset(text, "mill", 0) == find_nearest_offset(text, "", 0) == -1


def test_shares_count_each_annotator_once() -> None:
    twice = [GoldSpan(0, 3), GoldSpan(1, 4)]
    assert compute_marked_shares([twice, []]) == (GoldSpan(0, 4, 0.5),)
