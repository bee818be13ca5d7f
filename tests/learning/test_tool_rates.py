"""Tools are counted over stored audits: calls, what came of them, and whether people agree."""

from __future__ import annotations

import pytest

from core.learning.reliability import AuditRecord, ToolRate, ToolRates, measure_tools
from core.learning.track_record import WilsonShare
from core.review.people import ensure_project
from core.schema.records import Label
from core.schema.reviews import Correction
from core.store import Store, open_store
from tests.exchange.recorded_audits import Audit, own_tools, tell

__all__ = ["own_tools"]
pytestmark = pytest.mark.usefixtures("own_tools")
RIGHT: tuple[Label, Label] = ("supported", "supported")


def rates_in(
    store: Store, known: dict[str, AuditRecord] | None = None, most: int = 1000
) -> ToolRates:
    project = ensure_project(store, "Mira", 1.0)
    return measure_tools(store, project.id, {} if known is None else known, most=most)


def rates_of(*audits: Audit) -> ToolRates:
    with open_store(None) as store:
        tell(store, audits)
        return rates_in(store)


def adder(rates: ToolRates) -> ToolRate:
    return next(rate for rate in rates.tools if rate.tool == "adder")


def test_calls_are_counted_by_what_came_of_them() -> None:
    rates = rates_of(Audit(), Audit(outcome="nothing"), Audit(outcome="off"), Audit(outcome="off"))
    own = adder(rates)
    assert own.calls == 8
    assert own.outcomes == {"found": 2, "nothing": 2, "off": 4, "failed": 0}
    assert own.seconds == pytest.approx(0.8)
    assert own.used == WilsonShare(4, 4)


def test_tools_of_the_registry_that_were_never_called_are_told_too() -> None:
    rates = rates_of(Audit())
    assert [rate.tool for rate in rates.tools] == ["adder", "get_answer", "split_text"]
    assert rates.tools[1].calls == 0
    assert rates.tools[1].used == WilsonShare(0, 1)
    assert rates.tools[1].label_right.interval == (0.0, 1.0)


def test_a_tool_that_is_not_there_any_more_is_still_counted() -> None:
    rates = rates_of(Audit(tool="abacus"))
    assert rates.tools[0].tool == "abacus"
    assert rates.tools[0].where_meant == WilsonShare(0, 0)
    assert adder(rates).where_meant == WilsonShare(0, 2)


WRONG_FIRST = Audit(("hallucinated", "supported"), marks=(1,))


@pytest.mark.parametrize(
    ("audits", "decided", "shares"),
    [
        # `always` is what always saying hallucinated comes to
        ((Audit(marks=(1,)), WRONG_FIRST, Audit(RIGHT, "supported")), 3,
         {"label_right": (4, 6), "always": (2, 6), "statement_right": (4, 6)}),
        # what people did not say of a statement counts for nothing
        ((Audit(), Audit(right=None), Audit(right="unclear")), 2, {"label_right": (0, 0)}),
        # the label in the end is told apart from the tool's own
        ((Audit(final=RIGHT, right="supported"),), 1,
         {"label_right": (1, 2), "statement_right": (2, 2)}),
        ((Audit(outcome="off", marks=(1,)),), 1, {"label_right": (0, 0)}),
        # usage is of the statements that the tool reads something for
        ((Audit(sentences=("3 + 4 = 7.", "Hello.")), Audit()), 2, {"where_meant": (3, 3)}),
    ],
)  # fmt: skip
def test_its_labels_are_held_against_what_people_marked(
    audits: tuple[Audit, ...], decided: int, shares: dict[str, tuple[int, int]]
) -> None:
    rates = rates_of(*audits)
    assert (rates.audits, rates.decided) == (len(audits), decided)
    assert {name: getattr(adder(rates), name) for name in shares} == {
        name: WilsonShare(*share) for name, share in shares.items()
    }


def test_other_protocols_are_no_audits_and_the_newest_are_taken() -> None:
    with open_store(None) as store:
        tell(store, [Audit(marks=(0,)), Audit(protocol="ceda"), Audit(marks=(1,))])
        assert rates_in(store).audits == 2
        assert adder(rates_in(store, most=1)).label_right == WilsonShare(2, 2)


def test_runs_are_read_once_and_answers_every_time() -> None:
    with open_store(None) as store:
        (run_id,) = tell(store, [Audit(marks=(1,))])
        known: dict[str, AuditRecord] = {}
        assert adder(rates_in(store, known)).label_right == WilsonShare(2, 2)
        assert list(known) == [run_id]
        with store.writing():
            case = store.cases.get("case0")
            assert case is not None
            store.corrections.add(
                Correction("new", run_id, case.id, "Mira", 9e9, "supported", (), "It is 5."),
                case.response,
            )
            store.db.execute("DELETE FROM events WHERE run_id = ?", [run_id])
        assert adder(rates_in(store, known)).label_right == WilsonShare(1, 2)


def test_rules_are_asked_about_the_newest_audits_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.learning.reliability.MAX_MATCHED_AUDITS", 2)
    rates = rates_of(Audit(), Audit(), Audit())
    assert adder(rates).where_meant == WilsonShare(4, 4)
    assert adder(rates).calls == 6
