"""`retrain` and `rescore` by command line: one object out, progress beside it, exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core.__main__ import main
from core.learning import command_line, retrain
from core.learning import train as training
from core.learning.retrain import begin_training
from core.store import Store, open_store
from core.store.versions import SEED_VERSION
from tests.learning.test_versions import finish, scripted

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """A command over the home: its exit code, output and complaints."""
    monkeypatch.setattr(command_line, "limit_process", lambda _: None)

    def command(*arguments: str) -> tuple[int, str, str]:
        code = main([*arguments, "--home", str(home)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return command


def test_retrain_prints_one_object_and_its_progress_beside_it(ready: Store, run: Run) -> None:
    code, out, err = run("retrain", "--by", "Nora", "--steps", "7", "--json")
    told = json.loads(out)
    assert code == 0
    assert told["version"] == ready.versions.all()[0].id
    assert told["options"]["steps"] == 7
    assert (told["compared_with"], told["promoted"]) == (SEED_VERSION, False)
    assert told["before"]["n"] == told["after"]["n"] == 6
    assert "--promote" in told["why_not"]
    assert "1/9 Collecting the corrections" in err
    assert ready.versions.active() == SEED_VERSION


@pytest.mark.parametrize("is_lower", [True, False])
def test_promote_says_why_not(
    ready: Store, run: Run, monkeypatch: pytest.MonkeyPatch, is_lower: bool
) -> None:
    before = {"n": 6, "balanced_accuracy": 0.5, "accuracy": 0.5}
    compared = {
        "before": before,
        "after": before | {"balanced_accuracy": 0.25 if is_lower else 0.5},
        "difference": {"value": -0.25, "low": -0.5, "high": 0.1},
        "rows": [],
        "reliability": {"before": [], "after": []},
    }
    monkeypatch.setattr(training, "compare_classifiers", lambda *_: compared)
    monkeypatch.setattr(retrain, "load_classifier", lambda home, _: scripted(home, "right"))
    monkeypatch.setattr(training, "render_card", lambda _: "")
    code, out, _ = run("retrain", "--by", "Nora", "--promote", "--json")
    told = json.loads(out)
    assert (code, told["promoted"]) == (0, not is_lower)
    assert (ready.versions.active() == SEED_VERSION) is is_lower
    words = "0.250 against 0.500 on 6", "-0.500 to +0.100"
    assert all((part in told["why_not"]) is is_lower for part in words)


def test_for_people_it_is_a_table_and_a_name_typed_in_a_browser_counts_for_nothing(
    ready: Store, run: Run
) -> None:
    ready.projects.save_note("person", "Karl")
    code, out, _ = run("retrain")
    assert code == 0
    for words in ("balanced accuracy", "always hallucinated", "Not promoted"):
        assert words in out


def test_a_training_that_fails_exits_with_one_and_says_why(
    ready: Store, run: Run, tmp_path: Path
) -> None:
    code, out, err = run("retrain", "--by", "Nora", "--encoder", str(tmp_path / "none"))
    assert (code, out) == (1, "")
    assert "found no config.json" in err.splitlines()[-1]
    assert ready.versions.active() == SEED_VERSION


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--steps", "0"), "from 1 to 100,000"),
        (("--seed", "x"), "found “x”"),
        (("--encoder", " "), "Expected a text in --encoder"),
        (("--by", " "), "Expected a text in --by"),
        (("--by", "Karl"), "To retrain takes the role lead"),
    ],
)
def test_bad_input_exits_with_two_and_one_line(
    ready: Store, run: Run, options: tuple[str, ...], words: str
) -> None:
    code, out, err = run("retrain", *options)
    assert (code, out, len(err.splitlines())) == (2, "", 1)
    assert words in err
    assert ready.versions.trainings(1.0, 1e9) == []


def test_it_never_trains_beside_the_page(ready: Store, home: Path, run: Run) -> None:
    begin_training(ready, home, "Nora", {})
    code, _, err = run("retrain", "--by", "Nora")
    assert (code, "under way already" in err) == (2, True)


def test_a_new_home_has_too_few_corrections(run: Run) -> None:
    code, _, err = run("retrain", "--json")
    assert (code, "8 more hallucinated and 8 more supported" in err) == (2, True)


def test_rescore_counts_what_it_scored(
    ready: Store, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrain, "load_classifier", scripted)
    for number in range(4):
        finish(ready, f"r{number}", 0.7)
    code, out, err = run("rescore", "--by", "Nora", "--json")
    assert (code, json.loads(out)) == (0, {"version": SEED_VERSION, "runs": 0, "changed": 0})
    with open_store(home) as store:
        store.db.execute("INSERT INTO versions VALUES ('wrong', 1.0, 'Nora', '{}')")
    code, out, err = run("rescore", "--by", "Nora", "--version", "wrong")
    assert (code, out) == (0, "4 runs scored under wrong, 4 with another label.\n")
    assert "4 of 4 runs scored" in err
    assert run("rescore", "--by", "Nora", "--version", "v9")[0] == 2


def test_an_interrupt_from_the_keyboard_ends_the_training(
    ready: Store, home: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(training, "fine_tune_encoder", interrupted)
    code, out, err = run("retrain", "--by", "Nora")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == "Stopped."
    ended = ready.versions.trainings(1.0, 1e9)[0]
    assert (ended.status, ended.message) == ("cancelled", "It was interrupted from the keyboard.")
    assert [path.name for path in (home / "models").iterdir()] == []
