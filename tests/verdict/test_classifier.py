"""The classifier: plain arrays, guarded by a checksum, honest about unclear."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from core.runtime.errors import ConfigError
from core.schema.records import Judgement, Label
from core.verdict.classifier import (
    SEED_FOLDER,
    Calibrator,
    Classifier,
    ClassifierHead,
    find_own_encoder,
    get_version_folder,
    load_classifier,
    load_head,
    save_head,
)
from tests.fakes import FakeEmbedder

WRONG = (
    "All debaters call the statement wrong. “512 m” is wrong: the source says “412 m” (“The Halden "
    "Bridge is 412 m long.” (bridge.txt)). Verdict: INCORRECT, the statement is very likely "
    "hallucinated."
)
RIGHT = (
    "All debaters call the statement correct. The source says so: “The Halden Bridge is 412 m "
    "long.” (bridge.txt). Verdict: CORRECT, the statement is very likely supported."
)


def test_the_seed_tells_plain_verdicts_apart(home: Path) -> None:
    seed = load_classifier(home, "seed")
    assert seed.probability(WRONG) > 0.5 > seed.probability(RIGHT)


def test_the_seed_says_what_it_was_trained_on_and_how_it_did() -> None:
    _, card = load_head(SEED_FOLDER)
    assert set(card["trained_on"]) >= {"fever_symmetric", "entailment_fm2"}
    assert all(entry["licence"] for entry in card["trained_on"].values())
    for told in (card["text_alone"], card["judge_alone"]):
        share = told["always_hallucinated"]
        assert told["n"] > 400
        assert told["accuracy"] > max(share, 1.0 - share)


def test_a_verdict_has_the_papers_confidence(home: Path) -> None:
    verdict = load_classifier(home, "seed").verdict(Judgement("Judge", "supported", RIGHT))
    p = verdict.p_hallucinated
    assert p is not None
    assert verdict.confidence == pytest.approx(max(p, 1 - p), abs=1e-4)
    assert verdict.classifier == "seed"


def test_where_the_classifier_overrules_the_judge_the_verdict_is_open_and_names_both() -> None:
    always = Classifier("x", ClassifierHead((0.0,) * 32, 3.0), FakeEmbedder(), {})
    verdict = always.verdict(Judgement("Judge", "supported", RIGHT))
    assert (verdict.label, verdict.cause) == ("unclear", "classifier_disagrees")
    assert verdict.cause_words == (
        "The judge calls it supported, the classifier hallucinated (p = 0.95)."
    )
    assert (verdict.p_hallucinated, verdict.confidence) == (None, None)
    assert verdict.rationale == RIGHT
    assert always.verdict(Judgement("Judge", "hallucinated", WRONG)).label == "hallucinated"


def test_unclear_is_never_classified() -> None:
    always = Classifier("x", ClassifierHead((0.0,) * 32, 3.0), FakeEmbedder(), {})
    verdict = always.verdict(
        Judgement("Judge", "unclear", "No verdict.", cause="no_evidence", cause_words="Nothing.")
    )
    assert (verdict.label, verdict.p_hallucinated, verdict.confidence) == ("unclear", None, None)
    assert (verdict.cause, verdict.cause_words) == ("no_evidence", "Nothing.")


def test_a_head_survives_saving(tmp_path: Path) -> None:
    head = ClassifierHead((0.1, -2.5, 1e-17), -0.25, 0.75)
    save_head(tmp_path, head, {"name": "mine"})
    assert load_head(tmp_path) == (head, {"name": "mine"})


@pytest.mark.parametrize(
    ("schema", "more", "head"),
    [
        (1, {}, ClassifierHead((0.1, -2.5), -0.25, 0.0, 1.0)),  # reads the text alone
        (
            2,
            {"judge_weight": 0.75},
            ClassifierHead((0.1, -2.5), -0.25, 0.75, 1.0),
        ),  # counts it whole
        (
            3,
            {"judge_weight": 0.75, "text_gain": 0.5},
            ClassifierHead((0.1, -2.5), -0.25, 0.75, 0.5),
        ),
    ],
)
def test_a_version_from_before_is_read_as_its_schema_wrote_it(
    tmp_path: Path, schema: int, more: dict[str, float], head: ClassifierHead
) -> None:
    numbers = [schema, [0.1, -2.5], -0.25, *more.values()]
    digest = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()
    old = {"schema": schema, "weights": [0.1, -2.5], "intercept": -0.25, **more, "sha256": digest}
    (tmp_path / "head.json").write_text(json.dumps(old))
    (tmp_path / "card.json").write_text("{}")
    assert load_head(tmp_path)[0] == head
    sure, unsaid = head.probability(np.ones((2, 2), dtype=np.float32), [0.99, None])
    assert (sure == unsaid) is (schema == 1)


def test_the_judges_own_probability_moves_the_verdict() -> None:
    leaning = Classifier("x", ClassifierHead((0.0,) * 32, 0.0, 1.0), FakeEmbedder(), {})

    def p(own: float | None, label: Label = "hallucinated") -> float | None:
        return leaning.verdict(Judgement("Judge", label, WRONG, p=own)).p_hallucinated

    assert p(0.9) == pytest.approx(0.9, abs=1e-3)
    assert p(0.2, "supported") == pytest.approx(0.2, abs=1e-3)
    assert p(None) == 0.5
    assert p(1.0) == pytest.approx(0.999, abs=1e-3)


def test_the_gain_says_what_the_text_counts_beside_the_judge() -> None:
    vectors = np.ones((2, 1), dtype=np.float32)
    both = ClassifierHead((2.0,), 1.0, 1.0, 0.5).probability(vectors, [0.5, None])
    assert both == pytest.approx([1 / (1 + math.exp(-1.5)), 1 / (1 + math.exp(-3.0))])
    (alone,) = ClassifierHead((2.0,), 1.0, 1.0, 0.0).probability(vectors[:1], [0.7])
    assert alone == pytest.approx(0.7)


def save_old_head(folder: Path, card: object = None, **change: object) -> None:
    """A version as schema 3 wrote it."""
    numbers = [3, [0.1, -2.5], -0.25, 0.0, 1.0]
    body = {
        "schema": 3, "weights": [0.1, -2.5], "intercept": -0.25, "judge_weight": 0.0,
        "text_gain": 1.0, "sha256": hashlib.sha256(json.dumps(numbers).encode()).hexdigest(),
    }  # fmt: skip
    (folder / "head.json").write_text(json.dumps(body | change))
    (folder / "card.json").write_text(json.dumps(card or {}))


@pytest.mark.parametrize(
    "change",
    [
        {"intercept": 9.0},
        {"weights": [9.0, 9.0]},
        {"schema": 1},
        {"schema": 5},
        {"judge_weight": 0.5},
        {"text_gain": 0.5},
        {"sha256": "0" * 64},
    ],
)
def test_a_tampered_old_head_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    save_old_head(tmp_path)
    assert load_head(tmp_path)[0] == ClassifierHead((0.1, -2.5), -0.25)
    save_old_head(tmp_path, **change)
    with pytest.raises(ConfigError, match="not as it was written"):
        load_head(tmp_path)


def saved(folder: Path) -> Path:
    """A version with an encoder's file."""
    (folder / "encoder").mkdir(parents=True)
    (folder / "encoder" / "encoder.onnx").write_bytes(b"weights")
    save_head(folder, ClassifierHead((0.1, -2.5), -0.25), {"name": "mine"})
    return folder


def test_a_version_is_arrays_and_digests_and_nothing_pickled(tmp_path: Path) -> None:
    body = json.loads((saved(tmp_path) / "head.json").read_text())
    assert body["schema"] == 4
    assert body["arrays"] == {
        "weights": [2], "intercept": [1], "judge_weight": [1], "text_gain": [1]
    }  # fmt: skip
    assert set(body["files"]) == {"head.safetensors", "encoder/encoder.onnx"}
    assert find_own_encoder(tmp_path) == tmp_path / "encoder"


@pytest.mark.parametrize("name", ["head.safetensors", "encoder/encoder.onnx"])
def test_a_file_that_is_missing_or_longer_is_refused_before_it_is_read(
    tmp_path: Path, name: str
) -> None:
    path = saved(tmp_path) / name
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(ConfigError, match=rf"{name} has .* bytes instead of"):
        load_head(tmp_path)
    path.unlink()
    with pytest.raises(ConfigError, match="found none that can be read"):
        load_head(tmp_path)


def test_a_file_whose_bytes_were_exchanged_is_refused(tmp_path: Path) -> None:
    weights = saved(tmp_path) / "head.safetensors"
    before = weights.read_bytes()
    weights.write_bytes(before[:-1] + bytes([before[-1] ^ 1]))
    with pytest.raises(ConfigError, match="not as it was written"):
        load_head(tmp_path)
    weights.write_bytes(before)
    (tmp_path / "encoder" / "encoder.onnx").write_bytes(b"weighty")
    with pytest.raises(ConfigError, match=r"encoder .* is not as it was written"):
        find_own_encoder(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"calibration": "isotonic"},
        {"arrays": {"weights": [3]}},
        {"files": {}},
        {"card_sha256": "0" * 64},
        {"schema": 3},
        {"sha256": "0" * 64},
    ],
)
def test_a_tampered_list_of_what_a_version_is_made_of_is_refused(
    tmp_path: Path, change: dict[str, object]
) -> None:
    body = json.loads((saved(tmp_path) / "head.json").read_text())
    (tmp_path / "head.json").write_text(json.dumps(body | change))
    with pytest.raises(ConfigError, match="Activate another version"):
        load_head(tmp_path)


@pytest.mark.parametrize(
    "head",
    [
        ClassifierHead((0.1, float("nan")), 0.0),
        ClassifierHead((0.1,), 0.0, calibrator=Calibrator("platt", (-1.0,), (0.0,))),
        ClassifierHead(
            (0.1,), 0.0, calibrator=Calibrator("isotonic", knots=(0.0, 1.0), shares=(0.0, 1.0))
        ),
        ClassifierHead(
            (0.1,), 0.0, calibrator=Calibrator("isotonic", knots=(1.0, 0.0), shares=(0.2, 0.3))
        ),
    ],
)
def test_arrays_that_give_no_probability_are_refused_whatever_their_digest(
    tmp_path: Path, head: ClassifierHead
) -> None:
    save_head(tmp_path, head, {})
    with pytest.raises(ConfigError, match="none that can be read"):
        load_head(tmp_path)


@pytest.mark.parametrize(
    "calibrator",
    [
        Calibrator(),
        Calibrator("temperature", (0.5,)),
        Calibrator("platt", (0.7,), (-1.5,)),
        Calibrator("isotonic", knots=(-2.0, 0.0, 3.0), shares=(0.1, 0.2, 0.95)),
    ],
)
@pytest.mark.parametrize("score", [-1e9, -4.0, 0.0, 4.0, 1e9])
def test_every_calibration_survives_saving_and_gives_a_probability_strictly_inside(
    tmp_path: Path, calibrator: Calibrator, score: float
) -> None:
    head = ClassifierHead((1.0,), score, calibrator=calibrator)
    save_head(tmp_path, head, {})
    assert load_head(tmp_path)[0] == head
    (p,) = head.probability(np.zeros((1, 1), dtype=np.float32))
    assert 0.0 < p < 1.0
    assert (
        0.0
        < Classifier("x", ClassifierHead((0.0,) * 32, score), FakeEmbedder(), {}).probability("a")
        < 1
    )


def test_a_temperature_makes_no_other_label_and_platt_may() -> None:
    cooled, moved = Calibrator("temperature", (0.5,)), Calibrator("platt", (0.5,), (-1.0,))
    scores = np.array([-2.0, 0.0, 1.0])
    assert cooled.probability(scores) == pytest.approx([0.2689, 0.5, 0.6225], abs=1e-4)
    assert (moved.probability(scores) > 0.5).tolist() == [False, False, False]


def test_a_tampered_card_is_refused(tmp_path: Path) -> None:
    """Its figures stand beside every verdict."""
    save_head(tmp_path, ClassifierHead((0.1, -2.5), -0.25), {"out_of_fold": {"accuracy": 0.7}})
    (tmp_path / "card.json").write_text('{"out_of_fold": {"accuracy": 0.99}}')
    with pytest.raises(ConfigError, match=r"card .* is not as it was written"):
        load_head(tmp_path)


def test_a_card_may_be_laid_out_otherwise(tmp_path: Path) -> None:
    """Line ends differ from one checkout to the next."""
    save_head(tmp_path, ClassifierHead((0.1,), -0.25), {"name": "é", "n": 1})
    (tmp_path / "card.json").write_text('{"n":1,\r\n"name":"\\u00e9"}')
    assert load_head(tmp_path)[1] == {"name": "é", "n": 1}
    save_old_head(tmp_path, {"name": "old"})
    assert load_head(tmp_path)[1] == {"name": "old"}, "from before cards had a checksum"


def test_the_seeds_card_is_guarded() -> None:
    assert "card_sha256" in json.loads((SEED_FOLDER / "head.json").read_text())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"weights": "no"}'])
def test_a_broken_head_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "head.json").write_text(text)
    (tmp_path / "card.json").write_text("{}")
    with pytest.raises(ConfigError, match="none that can be read"):
        load_head(tmp_path)


def test_an_encoder_that_the_version_does_not_name_is_not_used(home: Path) -> None:
    folder = get_version_folder(home, "v1")
    shutil.copytree(SEED_FOLDER, folder)
    (folder / "encoder").mkdir()
    (folder / "encoder" / "encoder.onnx").write_bytes(b"something else")
    assert load_classifier(home, "v1").encoder.id == load_classifier(home, "seed").encoder.id


@pytest.mark.parametrize("name", ["../../etc", "a/b", "", "V1", "x" * 65])
def test_a_version_name_cannot_lead_elsewhere(home: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="not the name of a classifier version"):
        get_version_folder(home, name)


@pytest.mark.parametrize("files", [None, [], {}, {"head.safetensors": 1}])
def test_a_head_that_names_no_files_is_refused_even_where_its_digest_is_right(
    tmp_path: Path, files: object
) -> None:
    saved(tmp_path)
    body = json.loads((tmp_path / "head.json").read_text()) | {"files": files}
    rest = {name: value for name, value in body.items() if name != "sha256"}
    digest = hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
    (tmp_path / "head.json").write_text(json.dumps(rest | {"sha256": digest}))
    with pytest.raises(ConfigError, match="found none that can be read"):
        load_head(tmp_path)
