"""Systems over recorded verdicts: what each reads, what it may learn from, what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.__main__ import main
from core.evaluation import recorded_systems
from core.evaluation.command_line import format_result
from core.evaluation.dataset_files import GoldRow
from core.evaluation.evaluate import EvaluationRequest
from core.evaluation.recorded_systems import (
    RecordedSystemRequest,
    build_consensus,
    decide_cases,
    evaluate_recorded,
    find_detectors,
    plan_external_fit,
    plan_five_folds,
    predict_majority,
)
from core.evaluation.sets.marked_texts import Detector, RecordedAnswer, RecordedCase
from core.runtime.errors import InputError
from core.schema.records import Label

KEEN, DULL, MUTE = Detector("keen", "1"), Detector("dull", "1"), Detector("mute", "2")


def case(number: int, label: Label, keen: Label = "unclear", group: str = "") -> RecordedCase:
    """An answer; keen's words tell the label whatever it votes, dull says the same of all."""
    words = "a slip in the sum" if label == "hallucinated" else "each step holds up"
    row = GoldRow(f"{number}", "here", f"Answer {number}.", label, group or f"g{number}")
    said = {
        KEEN: RecordedAnswer(keen, f"{words}, on line {number}"),
        DULL: RecordedAnswer("supported", "fine"),
        MUTE: RecordedAnswer("unclear", ""),
    }
    return RecordedCase(row, "sum" if number % 2 else "fact", said)


def cases(n: int = 60) -> list[RecordedCase]:
    found = []
    for number in range(n):
        label: Label = "hallucinated" if number % 3 else "supported"
        found.append(case(number, label, label if number % 5 else "unclear"))
    return found


def test_votes_that_cannot_be_read_count_for_neither() -> None:
    one = [case(1, "hallucinated", "hallucinated"), case(2, "supported", "unclear")]
    said = predict_majority(one, [KEEN, DULL, MUTE])
    assert [(p.label, p.p) for p in said] == [("unclear", None), ("supported", 0.0)]
    assert [(p.label, p.p) for p in predict_majority(one, [KEEN])] == [
        ("hallucinated", 1.0),
        ("unclear", None),
    ]


def test_what_is_learned_from_never_holds_a_group_that_is_decided() -> None:
    learned = [*cases(30), case(90, "supported", group="shared")]
    asked = [case(91, "hallucinated", group="shared"), case(92, "supported", group="new")]
    fitting = plan_external_fit(learned, asked, 0)
    ((fit, test),) = fitting.folds
    assert len(fit) == 30
    assert [fitting.cases[place].row.id for place in test] == ["91", "92"]
    assert not {fitting.cases[p].row.group for p in fit} & {"shared", "new"}


@pytest.mark.parametrize("wrong", [1, 9])
def test_learning_takes_enough_of_both_labels_for_its_folds(wrong: int) -> None:
    cases = [case(n, "hallucinated" if n < wrong else "supported") for n in range(30)]
    with pytest.raises(InputError, match=rf"at least 10 .* found {30 - wrong} and {wrong}; take"):
        plan_five_folds(cases, 0)
    with pytest.raises(InputError, match="at least 10"):
        plan_external_fit(cases, [case(99, "supported")], 0)


def test_learning_takes_both_labels() -> None:
    with pytest.raises(InputError, match="supported and hallucinated cases to learn from"):
        plan_five_folds([case(n, "supported") for n in range(20)], 0)


def test_detectors_that_are_not_there_are_named() -> None:
    assert find_detectors(cases(2), None, "1") == [DULL, KEEN]
    with pytest.raises(InputError, match=r"dull, keen, mute .* found “loud prompt 1”"):
        find_detectors(cases(2), "loud", "1")


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setattr(recorded_systems, "load_recorded_cases", lambda folder: cases())
    return tmp_path


def order(folder: Path) -> EvaluationRequest:
    return EvaluationRequest("realmistake", folder, "recorded", None, None, 0)


@pytest.mark.parametrize("system", ["classifier", "consensus"])
def test_a_learned_system_reads_the_reasons_where_verdicts_fail(
    system: str, recorded: Path
) -> None:
    one = ("keen", "1") if system == "classifier" else (None, None)
    found = evaluate_recorded(
        order(recorded), RecordedSystemRequest(system, *one), lambda words: None
    )
    assert found["rows"] == 60
    assert found["metrics"]["auroc"]["value"] > 0.95
    assert found["metrics"]["balanced_accuracy"]["value"] > 0.9
    assert "ece_null" in found["metrics"]
    assert found["variants"]
    assert found["fit"] == "five folds by group, seed 0"
    assert json.dumps(found)
    assert set(found["trivial"]) == {"always_hallucinated", "always_supported"}
    assert all(f"\n{name}\n  auroc" in format_result(found) for name in found["variants"])


def test_labels_of_the_decided_cases_change_nothing() -> None:
    """With other labels on the cases that are decided, the same is said of them."""
    fitting = plan_external_fit(cases(40), [case(n, "supported") for n in range(50, 56)], 0)
    turned = plan_external_fit(cases(40), [case(n, "supported") for n in range(50, 56)], 0)
    for place in turned.folds[0][1]:
        old = turned.cases[place]
        row = GoldRow(old.row.id, "", old.row.response, "hallucinated", old.row.group)
        turned.cases[place] = RecordedCase(row, old.kind, old.said)  # type: ignore[index]
    first, second = (
        decide_cases(one, build_consensus(one, [DULL, KEEN]), lambda words: None)[""]
        for one in (fitting, turned)
    )
    assert [p.p for p in first] == pytest.approx([p.p for p in second])


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        (RecordedSystemRequest("oracle"), "Expected a system of own_answer"),
        (RecordedSystemRequest("classifier", "keen"), "Expected --detector and --prompt"),
        (RecordedSystemRequest("majority", fit=Path()), "learns nothing"),
        (
            RecordedSystemRequest("consensus", fit=Path("nowhere/at/all")),
            "folder that holds the data sets' folders",
        ),
    ],
)
def test_what_does_not_go_together_is_refused(
    wanted: RecordedSystemRequest, message: str, recorded: Path
) -> None:
    with pytest.raises(InputError, match=message):
        evaluate_recorded(order(recorded), wanted, lambda words: None)


def test_the_command_takes_a_system(
    recorded: Path, capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    asked = ["evaluate", "--dataset", "realmistake", "--path", str(recorded), "--home", str(home)]
    system = ["--task", "recorded", "--system", "majority", "--prompt", "1"]
    assert main([*asked, *system, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["system"] == "majority"
    assert main([*asked, "--system", "majority"]) == 2
    assert "--task recorded" in capsys.readouterr().err
