"""`python -m core evaluate`: one object, trivial rows beside it, and going on after a kill."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main
from core.schema.records import Case
from tests.evaluation.tiny_sets import FACTS, write_lines
from tests.llm.cast import Cast
from tests.llm.loopback import Reply, loopback
from tests.waiting import wait_for

pytestmark = pytest.mark.timing

ROOT = Path(__file__).resolve().parent.parent.parent
FIGURE = {"value", "low", "high"}
TRIVIAL = {"always_hallucinated", "always_supported", "mark_all", "claim_only", "other_evidence"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Sets of our own writing: claims over facts, and an answer with marked words."""
    folder = tmp_path / "data"
    write_claims(folder, FACTS)
    answer = "The lighthouse is 48 m high."
    row = {
        "id": "tst-en-1",
        "lang": "EN",
        "model_input": "How high is the lighthouse?",
        "model_output_text": answer,
        "hard_labels": [[18, 20]],
        "soft_labels": [{"start": 18, "end": 20, "prob": 0.9}],
    }
    fine = row | {
        "id": "tst-en-2",
        "model_input": "Is the path open?",
        "model_output_text": "The path is closed.",
        "hard_labels": [],
        "soft_labels": [],
    }
    write_lines(folder / "mushroom/test_labeled/mushroom.en-tst.v1.jsonl.gz", [row, fine])
    context = [
        {"id": "tst-en-1", "context": "The Nordre lighthouse is 38 m high."},
        {"id": "tst-en-2", "context": "The path is closed."},
    ]
    write_lines(folder / "mushroom/context_tst/en.jsonl.gz", context)
    return folder


def write_claims(folder: Path, facts: list[tuple[str, str, str]]) -> None:
    rows = [
        {"evidence": text, "claim": claim, "gold_label": label}
        for text, right, wrong in facts
        for claim, label in ((right, "SUPPORTS"), (wrong, "REFUTES"))
    ]
    write_lines(folder / "fever_symmetric" / "fever_symmetric_dev.jsonl.gz", rows)


Run = tuple[int, dict[str, Any], str]


def evaluated(capsys: pytest.CaptureFixture[str], data: Path, name: str, *more: str) -> Run:
    """(exit code, the object on stdout, stderr)."""
    code = main(["evaluate", "--dataset", name, "--path", str(data), *more, "--json"])
    captured = capsys.readouterr()
    lines = captured.out.strip().splitlines()
    assert len(lines) <= 1, "exactly one JSON object"
    return code, json.loads(lines[0]) if lines else {}, captured.err


def test_an_evaluation_prints_one_object(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    code, found, err = evaluated(capsys, data, "fever_symmetric")
    assert code == 0
    assert "16 of 16 rows" in err
    assert (found["dataset"], found["task"], found["split"]) == ("fever_symmetric", None, None)
    assert (found["rows"], found["groups"], found["failed"]) == (16, 8, 0)
    assert found["answered"] + found["unclear"] == 16
    assert found["golds"] == {"hallucinated": 8, "supported": 8}
    metrics = found["metrics"]
    assert set(metrics) >= {
        "accuracy", "balanced_accuracy", "precision", "recall", "f1", "f2", "f1_supported",
        "mcc", "auroc", "brier", "ece", "ece_null", "coverage",
    }  # fmt: skip
    assert not {"accuracy3", "iou", "correlation", "char_f1"} & set(metrics)
    for figure in metrics.values():
        assert set(figure) == FIGURE
        assert figure["low"] <= figure["high"]
    assert metrics["coverage"]["value"] == pytest.approx(found["answered"] / 16, abs=1e-4)
    assert metrics["balanced_accuracy"]["value"] >= 0.75, "plain claims over plain facts"
    assert re.fullmatch("[0-9a-f]{64}", found["dataset_sha256"])
    assert found["machine"]["cores"] == os.cpu_count()
    assert found["machine"]["packages"]["onnxruntime"]
    assert found["seconds"] > 0


def test_trivial_answers_stand_beside(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    _, found, _ = evaluated(capsys, data, "fever_symmetric", "--trivial-limit", "8")
    trivial = found["trivial"]
    assert set(trivial) == TRIVIAL
    assert trivial["always_hallucinated"]["recall"]["value"] == 1
    assert trivial["always_supported"]["f1_supported"]["value"] == pytest.approx(2 / 3, abs=1e-4)
    assert trivial["claim_only"]["coverage"]["value"] == 0, "without evidence it is unclear"
    assert trivial["claim_only"]["accuracy"]["value"] == 0
    counts = {"claim_only": 8, "other_evidence": 8}
    assert found["trivial_rows"] == dict.fromkeys(TRIVIAL, 16) | counts


def test_words_are_measured_where_people_marked_them(
    capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    code, found, _ = evaluated(capsys, data, "mushroom", "--task", "en")
    assert code == 0
    assert found["task"] == "en"
    assert set(found["metrics"]) >= {"iou", "correlation", "char_f1"}
    whole = found["trivial"]["mark_all"]
    assert whole["iou"]["value"] == pytest.approx((2 / 28 + 0) / 2, abs=1e-4)
    assert whole["correlation"]["value"] == 0.5  # one of two texts is constant on both sides
    assert found["metrics"]["iou"]["value"] > whole["iou"]["value"]


def test_people_get_a_table_and_a_file(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    kept = data.parent / "kept"
    arguments = ["--dataset", "fever_symmetric", "--path", str(data), "--limit", "6"]
    assert main(["evaluate", *arguments, "--split", "dev", "--keep", str(kept)]) == 0
    out = capsys.readouterr().out
    assert out.startswith("fever_symmetric dev: 6 rows in ")
    assert "balanced_accuracy" in out
    assert "claim only (6 rows)" in out
    (path,) = kept.iterdir()
    assert path.name == "fever_symmetric-dev.json"
    result = json.loads(path.read_text())
    assert (result["rows"], result["limit"], result["seed"]) == (6, 6, 0)


def test_what_is_known_is_not_checked_again(capsys: pytest.CaptureFixture[str], data: Path) -> None:
    _, first, _ = evaluated(capsys, data, "fever_symmetric", "--limit", "8")
    _, again, err = evaluated(capsys, data, "fever_symmetric", "--limit", "8")
    assert "8 of 8 rows are known already" in err
    assert "a second" not in err
    assert again | {"created": ""} == first | {"created": ""}
    _, other, _ = evaluated(capsys, data, "fever_symmetric", "--limit", "8", "--seed", "4")
    assert other["dataset_sha256"] != first["dataset_sha256"], "another sample"
    write_claims(data, [*FACTS, ("The path is open.", "The path is open.", "The path is closed.")])
    _, more, err = evaluated(capsys, data, "fever_symmetric")
    assert "8 of 18 rows are known already" in err
    assert more["rows"] == 18


def test_several_workers_give_the_figures_of_one(
    capsys: pytest.CaptureFixture[str], data: Path, tmp_path: Path
) -> None:
    homes = [str(tmp_path / name) for name in ("one", "three")]
    _, one, _ = evaluated(capsys, data, "fever_symmetric", "--home", homes[0])
    more = ("--home", homes[1], "--workers", "3")
    code, three, err = evaluated(capsys, data, "fever_symmetric", *more)
    assert code == 0, err
    assert (three["metrics"], three["trivial"]) == (one["metrics"], one["trivial"])


def begun(data: Path, home: Path) -> subprocess.Popen[str]:
    """An evaluation of 60 rows in a process of its own."""
    facts = [
        (
            f"The roof of house {n} is {n + 3} m high.",
            f"It is {n + 3} m high.",
            f"It is {n} m high.",
        )
        for n in range(30)
    ]
    write_claims(data, facts)
    arguments = ["evaluate", "--dataset", "fever_symmetric", "--path", str(data), "--json"]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.without_weights", *arguments, "--home", str(home)],
        cwd=ROOT,
        env=os.environ | {"PAUSE": "0.1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def ended_by(process: subprocess.Popen[str], sign: signal.Signals, home: Path) -> tuple[int, str]:
    """(how many rows were done before the signal, what the process said on stderr)."""
    try:
        done = _wait_for_rows(home, 5)
    finally:
        process.send_signal(sign)
        out, err = process.communicate()
    assert out == ""
    assert 5 <= done < 60
    return done, err


@pytest.mark.slow
def test_a_killed_evaluation_goes_on_where_it_was(
    capsys: pytest.CaptureFixture[str], data: Path, home: Path, tmp_path: Path
) -> None:
    process = begun(data, home)
    done, _ = ended_by(process, signal.SIGKILL, home)
    assert process.returncode == -signal.SIGKILL
    code, resumed, err = evaluated(capsys, data, "fever_symmetric", "--home", str(home))
    known = int(err.split(" of 60 rows are known already")[0].split()[-1])
    assert code == 0
    assert done <= known < 60
    other = str(tmp_path / "another home")
    _, whole, err = evaluated(capsys, data, "fever_symmetric", "--home", other)
    assert "known already" not in err.split("claim only")[0]
    assert resumed["metrics"] == whole["metrics"]
    assert resumed["trivial"] == whole["trivial"]


@pytest.mark.slow
@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_from_outside_leaves_what_is_done_and_says_so(
    sign: signal.Signals, data: Path, home: Path
) -> None:
    process = begun(data, home)
    done, err = ended_by(process, sign, home)
    assert process.returncode == 1
    assert err.splitlines()[-1].startswith("Stopped. What is done is kept")
    assert "Traceback" not in err
    (kept,) = (home / "evaluations").glob("*.jsonl")
    assert done <= len(kept.read_text().splitlines()) < 60


def _wait_for_rows(home: Path, wanted: int) -> int:
    def count_rows() -> int:
        files = list((home / "evaluations").glob("*.jsonl")) if home.is_dir() else []
        done = sum(path.read_text().count("\n") for path in files)
        return done if done >= wanted else 0

    return wait_for(count_rows, "rows")


def at(base: str, *more: str) -> tuple[str, ...]:
    return ("--model", "openai/loopback", "--api-base", base, "--limit", "4", *more)


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A machine with a key for the loopback server alone."""
    for name in [n for n in os.environ if n.endswith("_KEY")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COUNTERPOINT_API_KEY", "test-key-0123456789")
    monkeypatch.setattr("core.__main__.PROJECT_ROOT", tmp_path)


@pytest.mark.usefixtures("no_keys")
def test_models_are_measured_alike_and_paid_for_once(
    capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    with loopback(Cast()) as server:
        arguments = at(server.base, "--trivial-limit", "1")
        code, found, err = evaluated(capsys, data, "fever_symmetric", *arguments)
        asked = len(server.asked)
        again = evaluated(capsys, data, "fever_symmetric", *arguments)[1]
        assert len(server.asked) == asked
    assert code == 0, err
    assert (found["roster"], found["answered"]) == ("openai/loopback", 4)
    assert found["metrics"] == again["metrics"]


@pytest.mark.usefixtures("no_keys")
@pytest.mark.parametrize(
    ("parts", "cap", "why"),
    [({"judge": Reply(status=500)}, "900000", "agent_failed"), ({}, "1", "budget_reached")],
)
def test_a_service_that_fails_and_a_spent_budget_are_no_answers(
    capsys: pytest.CaptureFixture[str],
    data: Path,
    home: Path,
    parts: Mapping[str, Reply],
    cap: str,
    why: str,
) -> None:
    with loopback(Cast(parts)) as server:
        arguments = at(server.base, "--token-cap", cap, "--home", str(home))
        code, found, err = evaluated(capsys, data, "fever_symmetric", *arguments)
    assert (code, found) == (1, {})
    assert why in err.splitlines()[-1]
    assert "the same command goes on from there" in err.splitlines()[-1]
    (kept,) = (home / "evaluations").glob("*.jsonl")
    assert kept.read_text() == ""


BAD = [
    (["--dataset", "squad", "--path", "{data}"], "“squad”"),
    (["--dataset", "fever_symmetric", "--path", "{data}/none"], "none"),
    (["--dataset", "entailment_fm2", "--path", "{data}"], "entailment_fm2"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--task", "qa"], "“qa”"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--split", "moon"], "moon"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--roster", "titans"], "titans"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--protocol", "duel"], "duel"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--limit", "0"], "--limit"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--limit", "many"], "--limit"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--seed", "-1"], "--seed"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--task", ""], "--task"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--api-base", "http://x"], "--model"),
    (["--dataset", "fever_symmetric", "--path", ""], "--path"),
    (["--dataset", "", "--path", "{data}"], "--dataset"),
    (["--dataset", "\udcff", "--path", "{data}"], "--dataset"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--keep", ""], "--keep"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--keep", "/dev/null"], "--keep"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--workers", "0"], "--workers"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--workers", "999"], "256 workers"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--rate", "openai"], "openai=50/s"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--rate", "openai=5/s"], "no model"),
    (["--dataset", "fever_symmetric", "--path", "{data}", "--address", "x:1"], "--executor ray"),
    (["--path", "{data}"], "--dataset"),
    (["--dataset", "fever_symmetric"], "--path"),
    (["--dataset", "mushroom", "--path", "{data}", "--split", "train"], "without any"),
]


@pytest.mark.parametrize(("arguments", "named"), BAD)
def test_bad_input_takes_one_line_and_exits_with_2(
    capsys: pytest.CaptureFixture[str], data: Path, arguments: list[str], named: str
) -> None:
    unlabelled = {"model_input": "How high?", "model_output_text": "Two metres.", "lang": "EN"}
    folder = data / "mushroom" / "train_unlabeled"
    write_lines(folder / "mushroom.en-train_nolabel.v1.jsonl.gz", [unlabelled])
    code = main(["evaluate", *(part.format(data=data) for part in arguments), "--json"])
    captured = capsys.readouterr()
    assert (code, captured.out) == (2, "")
    assert captured.err.count("\n") == 1, captured.err
    assert named in captured.err


def test_a_broken_row_is_named_with_its_place(
    capsys: pytest.CaptureFixture[str], data: Path
) -> None:
    path = data / "fever_symmetric" / "fever_symmetric_dev.jsonl"
    path.write_text('{"claim": "x"}\n')
    code, _, err = evaluated(capsys, data, "fever_symmetric")
    assert code == 2
    assert "line 1" in err
    assert err.count("\n") == 1


def test_one_broken_row_of_the_engines_costs_only_itself(
    capsys: pytest.CaptureFixture[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.pipeline import temporary_home

    store_case = temporary_home.TemporaryHome.store_case

    def faulty(self: temporary_home.TemporaryHome, material: temporary_home.CheckMaterial) -> Case:
        if material.response.startswith("The school has seven"):
            raise RuntimeError("a fault of ours")
        return store_case(self, material)

    with monkeypatch.context() as patched:
        patched.setattr(temporary_home.TemporaryHome, "store_case", faulty)
        code, found, err = evaluated(capsys, data, "fever_symmetric", "--trivial-limit", "1")
    assert (code, found["failed"], found["causes"]["failed"]) == (0, 1, 1)
    assert found["trivial_failed"] == 0
    assert "a fault of ours" in err
    _, again, err = evaluated(capsys, data, "fever_symmetric", "--trivial-limit", "1")
    assert "15 of 16 rows are known already" in err
    assert again["failed"] == 0


def test_rows_that_break_off_without_their_evidence_are_counted_too(
    capsys: pytest.CaptureFixture[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.pipeline import temporary_home

    store_case = temporary_home.TemporaryHome.store_case

    def faulty(self: temporary_home.TemporaryHome, material: temporary_home.CheckMaterial) -> Case:
        if not material.texts:
            raise RuntimeError("a fault of ours")
        return store_case(self, material)

    monkeypatch.setattr(temporary_home.TemporaryHome, "store_case", faulty)
    given = ("--limit", "4", "--trivial-limit", "2")
    code, found, _ = evaluated(capsys, data, "fever_symmetric", *given)
    assert (code, found["failed"], found["trivial_failed"]) == (0, 0, 2)


def test_recorded_verdicts_are_measured_without_an_engine(
    capsys: pytest.CaptureFixture[str], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from core.pipeline import temporary_home

    rows = [
        {
            "question": f"How high is mast {n}?",
            "answer": f"{n} m",
            "knowledge": f"Mast {n} is {n} m high.",
            "ground_truth": gold,
            "judgement": said,
        }
        for n, (gold, said) in enumerate(
            [("No", "No"), ("No", "Yes"), ("Yes", "Yes"), ("Yes", "failed!")]
        )
    ]
    write_lines(data / "halueval" / "qa_judgements_own.jsonl.gz", rows)
    monkeypatch.setattr(temporary_home.TemporaryHome, "store_case", None)
    code, found, err = evaluated(capsys, data, "halueval", "--task", "qa_judgements")
    assert code == 0, err
    assert "no engine is run" in err
    assert (found["roster"], found["protocol"], found["engine"]) == ("recorded", None, None)
    assert (found["rows"], found["answered"], found["failed"]) == (4, 3, 0)
    assert found["metrics"]["accuracy"]["value"] == 0.5
    assert set(found["trivial"]) == {"always_hallucinated", "always_supported", "mark_all"}
