"""Explanations beside people's reasons: quotes counted, ratings by a scripted model, failures."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from core.agents.ask import Work
from core.errors import BudgetReached
from core.evaluation.alignment import aligned, main, rated_at
from core.learning.heard import rows_of
from core.learning.reasons import Reasons, is_covered, reasons_of
from core.models.fence import Fence
from core.models.prompting import PromptBook
from core.reviews import EvidenceMark
from core.seats import Seat
from core.store import open_store
from tests.fakes import FakeDesk, ScriptedModel
from tests.learning.runs_told import tell
from tests.learning.test_learned_consensus import told

ONE = Reasons(
    "r1", "ceda", "g1", "en", "The tower is 512 m tall.", "hallucinated",
    "The guide says 412 m.", "The source gives 412 m.", 2, 1, 2,
)  # fmt: skip
TWO = replace(ONE, run_id="r2", group="g2", reason="It was built later.", marks=0)
OTHER = replace(ONE, run_id="r3", protocol="single", rationale="It is not tall.")


def work(model: ScriptedModel, home: Path) -> Work:
    return Work(FakeDesk(model), PromptBook(), Fence("token"), home)


def reply(agreement: int) -> str:
    return json.dumps({"common": "Both name the height.", "agreement": agreement})


def test_half_of_a_mark_has_to_be_quoted() -> None:
    mark = EvidenceMark("s", 10, 20, "0123456789")
    assert is_covered(mark, [("s", 0, 15)])
    assert is_covered(mark, [("s", 10, 13), ("s", 12, 15)])
    assert not is_covered(mark, [("s", 0, 14), ("other", 10, 20)])


def test_without_a_model_quotes_are_counted_and_nothing_is_rated() -> None:
    rated, paired = aligned([ONE, TWO, OTHER], None)
    assert [(own.protocol, own.runs, own.marks) for own in rated] == [
        ("ceda", 2, 2),
        ("single", 1, 2),
    ]
    assert rated[0].quoted is not None
    assert rated[0].quoted["value"] == 0.5
    assert rated[0].found == 1.0
    assert rated[0].agreement is None
    assert rated[0].rated == 0
    assert paired == []


def test_a_model_rates_each_reason_and_one_of_another_case(home: Path) -> None:
    model = ScriptedModel([reply(n) for n in (5, 1, 4, 2, 2, 1)])
    rated, paired = aligned([ONE, TWO, OTHER], rated_at(work(model, home), Seat("fake/model")))
    model.finished()
    ceda, single = rated
    assert ceda.agreement is not None
    assert ceda.unlike is not None
    assert single.agreement is not None
    assert (ceda.agreement["value"], ceda.unlike["value"]) == (4.5, 1.5)
    assert single.agreement["value"] == 2.0
    assert [(own.one, own.other, own.n, own.lead["value"]) for own in paired] == [
        ("ceda", "single", 1, 3.0)
    ]
    asked = model.calls[0].messages[-1].text
    assert ONE.reason in asked
    assert ONE.rationale in asked
    assert TWO.reason in model.calls[1].messages[-1].text


def test_a_reply_off_the_scale_rates_nothing_and_is_counted(home: Path) -> None:
    model = ScriptedModel([reply(9), reply(0)])
    rated, _ = aligned([ONE], rated_at(work(model, home), Seat("fake/model")))
    assert (rated[0].rated, rated[0].unusable, rated[0].agreement) == (0, 1, None)


def test_a_cap_ends_the_rating_and_keeps_what_was_rated() -> None:
    said = iter([4, 1])

    def rate(_: Reasons, __: str) -> int | None:
        found = next(said, None)
        if found is None:
            raise BudgetReached("The cap is reached.")
        return found

    rated, _ = aligned([ONE, TWO], rate)
    assert rated[0].rated == 1
    with pytest.raises(BudgetReached):
        aligned([ONE], rate)


def test_only_runs_that_were_right_have_reasons_to_compare(home: Path) -> None:
    with open_store(home) as store:
        tell(store, told(20))
        rows = rows_of(store, store.projects.all()[0].id, {})
        found = reasons_of(store, rows)
    right = [row for row in rows if row.heard.last and row.decision.label]
    assert 0 < len(found) < len(right)
    labels = {row.heard.run.id: row.decision.label for row in rows}
    assert all(own.label == labels[own.run_id] for own in found)
    assert {own.reason for own in found} == {"The source says so."}


def test_the_command_says_that_nothing_was_rated(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(home) as store:
        tell(store, told(4))
    assert main(["--home", str(home), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "nothing was rated" in found["note"]
    assert [own["protocol"] for own in found["by_protocol"]] == ["ceda"]
    assert main(["--home", str(home / "none")]) == 2
    assert "found none" in capsys.readouterr().err
