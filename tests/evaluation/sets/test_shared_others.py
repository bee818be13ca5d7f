"""Every other set and task of the shared folder loads, with the counts that its manifest gives."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from core.evaluation.datasets import NAMES, RULES, load
from core.evaluation.gold import GoldRow
from tests.needs import need

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"
ENTAILMENT = ("entailment_", "fever")
NOT_SHARED = ("fakeddit",)
# (set, task): rows. A row of the manifest is one file line; units of ours differ where it is said.
ROWS = {
    ("ape210k", ""): 5000,
    ("bamboo", ""): 104 + 113,
    ("bamboo", "sen"): 104,
    ("bamboo", "abs"): 113,
    ("bingo", ""): 45 - 2,  # two rows have no reference answer
    ("factcheck_gpt", "factbench"): 157,
    ("factcheck_gpt", "factbench_claims"): 697,
    ("factcheck_gpt", "subtask3"): 1680,
    ("factcheck_gpt", "subtask4"): 336,
    ("factool", "code"): 78,
    ("factool", "chinese_compared"): 384,
    ("factool", "chinese"): 384,  # 58 prompts, seven answers each, less what nobody annotated
    ("factscore", ""): 6954,
    ("faithbench", ""): 370,
    ("haluagent", "word_count"): 100,
    ("haluagent", "date"): 50,
    ("haluagent", "translation"): 50,
    ("haluagent", "code"): 34,
    ("haluagent", "ape"): 100,
    ("haluagent", "halueval_qa"): 53,
    ("haluagent", "webqa"): 59,
    ("haluagent", "halluqa"): 98,
    ("haluagent", "halueval2"): 54,
    ("haluagent", "sentence_math"): 144,
    ("haluagent", "sentence_science"): 101,
    ("haluagent", "sentence_kbqa"): 109,
    ("haluagent", "sentence_chinese"): 59,
    ("halluqa", "answers"): 1348,
    ("halluqa", "mc"): 994,
    ("hallusionbench", "text"): 2 * 85,
    ("hallusionbench", "all"): 2 * 522,
    ("hallusionbench", "recorded"): 78,  # 86 answers, eight of which say neither yes nor no
    ("halueval", "qa"): 2 * 2800,
    ("halueval", "general"): 2247,
    ("halueval", "qa_judgements"): 400,
    ("halueval2", ""): 1944,
    ("haluquestqa", ""): 2 * 698,
    ("helm_mind", ""): 1874,
    ("human_eval", ""): 164,
    ("mad_debates", ""): 200,
    ("mushroom", ""): 499 + 931,
    ("mushroom", "ar"): 50 + 81,
    ("mushroom", "ca"): 50,
    ("mushroom", "cs"): 53,
    ("mushroom", "de"): 50 + 71,
    ("mushroom", "en"): 50 + 65,
    ("mushroom", "es"): 50 + 68,
    ("mushroom", "eu"): 56,
    ("mushroom", "fa"): 44,
    ("mushroom", "fi"): 50 + 76,
    ("mushroom", "fr"): 50 + 75,
    ("mushroom", "hi"): 50 + 76,
    ("mushroom", "it"): 50 + 75,
    ("mushroom", "sv"): 49 + 70,
    ("mushroom", "zh"): 50 + 71,
    ("nq_open", ""): 3610 + 1800,
    ("pubmedqa", ""): 2 * 500,
    ("qags", ""): 483,
    ("ragtruth_sample", ""): 50,
    ("realmistake", "responses"): 485,
    ("realmistake", "recorded"): 29813,
    ("refchecker", "triplets"): 4900,
    ("refchecker", "responses"): 876,  # 959, less those without triplets
    ("truthfulqa", "pairs"): 5523,
    ("truthfulqa", "finetune"): 20985 - 54,  # 54 answers are empty
    ("xsum_hallucination", "spans"): 2500,
    ("xsum_hallucination", "factuality"): 1869,
}


@pytest.fixture(autouse=True)
def shared() -> None:
    need(DATA.is_dir(), f"no shared data at {DATA}: the public sets are not loaded")


def test_every_set_of_the_shared_folder_has_a_loader() -> None:
    here = {path.name for path in DATA.iterdir() if path.is_dir()}
    assert here - set(NAMES) == set()
    tasks = {(rule.name, rule.task) for rule in RULES}
    mine = {key for key in tasks if not key[0].startswith((*ENTAILMENT, *NOT_SHARED))}
    assert mine == set(ROWS)


@pytest.mark.parametrize(("name", "task"), sorted(ROWS))
def test_every_row_of_a_set_is_read(name: str, task: str) -> None:
    rows = list(load(name, DATA, task=task))
    count, ids = len(rows), len({row.id for row in rows})
    assert (count, ids) == (ROWS[name, task],) * 2
    # Places alone are shown: the texts of some sets must not be printed.
    assert [row.place for row in rows if not is_sound(row)] == []


def is_sound(row: GoldRow) -> bool:
    marks = (*(row.spans or ()), *row.soft)
    return all(
        (
            row.response.strip(),
            row.group.strip(),
            all(text.strip() for text in row.documents),
            all(image.is_file() for image in row.images),
            all(0 <= one.start < one.end <= len(row.response) for one in marks),
            all(0 < one.p <= 1 for one in marks),
            not row.spans or row.label in ("hallucinated", None),
        )
    )


def test_the_languages_of_marked_answers_are_those_of_the_manifest() -> None:
    rows = list(load("mushroom", DATA))
    assert sorted({row.language for row in rows}) == (
        "ar ca cs de en es eu fa fi fr hi it sv zh".split()
    )
    assert all(len(row.documents) == 1 for row in rows)
    assert sum(not row.spans for row in rows) == 21 + 28
    splits = {split: sum(1 for _ in load("mushroom", DATA, split=split)) for split in
              ("val", "test", "train")}  # fmt: skip
    assert splits == {"val": 499, "test": 931, "train": 1501 - 42}  # 42 answers are empty


def test_halueval_is_balanced_and_its_parts_keep_questions_together() -> None:
    parts = {
        split: list(load("halueval", DATA, split=split))
        for split in ("dev20", "calibration10", "train70")
    }
    assert sum(len(rows) for rows in parts.values()) == 5600
    for rows in parts.values():
        counts = Counter(row.label for row in rows)
        assert counts["supported"] == counts["hallucinated"]
    dev, train = ({row.group for row in parts[part]} for part in ("dev20", "train70"))
    assert not dev & train
