"""Tools are counted over stored audits: calls, what came of them, and whether people agree."""

from __future__ import annotations

import pytest

from core.learning.reliability import Audited, ToolRate, ToolRates, tool_rates
from core.learning.track_record import Share
from core.review.people import first_project
from core.schema.records import Label
from core.schema.reviews import Correction
from core.store import Store, open_store
from tests.exchange.audits_told import Audit, own_tools, tell

__all__ = ["own_tools"]
pytestmark = pytest.mark.usefixtures("own_tools")
RIGHT: tuple[Label, Label] = ("supported", "supported")


def rates_in(store: Store, known: dict[str, Audited] | None = None, most: int = 1000) -> ToolRates:
    project = first_project(store, "Mira", 1.0)
    return tool_rates(store, project.id, {} if known is None else known, most=most)


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
    assert own.used == Share(4, 4)


def test_tools_of_the_registry_that_were_never_called_are_told_too() -> None:
    rates = rates_of(Audit())
    assert [rate.tool for rate in rates.tools] == ["adder", "get_answer", "split_text"]
    assert rates.tools[1].calls == 0
    assert rates.tools[1].used == Share(0, 1)
    assert rates.tools[1].label_right.interval == (0.0, 1.0)


def test_a_tool_that_is_not_there_any_more_is_still_counted() -> None:
    rates = rates_of(Audit(tool="abacus"))
    assert rates.tools[0].tool == "abacus"
    assert rates.tools[0].where_meant == Share(0, 0)
    assert adder(rates).where_meant == Share(0, 2)


def test_its_labels_are_held_against_what_people_marked() -> None:
    wrong_first = Audit(("hallucinated", "supported"), marks=(1,))
    rates = rates_of(Audit(marks=(1,)), wrong_first, Audit(RIGHT, "supported"))
    assert adder(rates).label_right == Share(4, 6)
    assert adder(rates).always == Share(2, 6), "what always saying hallucinated comes to"
    assert adder(rates).statement_right == Share(4, 6)
    assert rates.decided == rates.audits == 3


def test_what_people_did_not_say_of_a_statement_counts_for_nothing() -> None:
    rates = rates_of(Audit(), Audit(right=None), Audit(right="unclear"))
    assert adder(rates).label_right == Share(0, 0)
    assert rates.decided == 2
    assert rates.audits == 3


def test_the_label_in_the_end_is_told_apart_from_the_tools_own() -> None:
    rates = rates_of(Audit(final=RIGHT, right="supported"))
    assert adder(rates).label_right == Share(1, 2)
    assert adder(rates).statement_right == Share(2, 2)


def test_a_tool_that_is_off_gives_no_label_that_could_be_right() -> None:
    rates = rates_of(Audit(outcome="off", marks=(1,)))
    assert adder(rates).label_right == Share(0, 0)


def test_usage_is_of_the_statements_that_the_tool_reads_something_for() -> None:
    rates = rates_of(Audit(sentences=("3 + 4 = 7.", "Hello.")), Audit())
    assert adder(rates).where_meant == Share(3, 3)


def test_other_protocols_are_no_audits_and_the_newest_are_taken() -> None:
    with open_store(None) as store:
        tell(store, [Audit(marks=(0,)), Audit(protocol="ceda"), Audit(marks=(1,))])
        assert rates_in(store).audits == 2
        assert adder(rates_in(store, most=1)).label_right == Share(2, 2)


def test_runs_are_read_once_and_answers_every_time() -> None:
    with open_store(None) as store:
        (run_id,) = tell(store, [Audit(marks=(1,))])
        known: dict[str, Audited] = {}
        assert adder(rates_in(store, known)).label_right == Share(2, 2)
        assert list(known) == [run_id]
        with store.writing():
            case = store.cases.get("case0")
            assert case is not None
            store.corrections.add(
                Correction("new", run_id, case.id, "Lee", 9e9, "supported", (), "It is 5."),
                case.response,
            )
            store.db.execute("DELETE FROM events WHERE run_id = ?", [run_id])
        assert adder(rates_in(store, known)).label_right == Share(1, 2)


def test_rules_are_asked_about_the_newest_audits_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.learning.reliability.MOST_READ", 2)
    rates = rates_of(Audit(), Audit(), Audit())
    assert adder(rates).where_meant == Share(4, 4)
    assert adder(rates).calls == 6
