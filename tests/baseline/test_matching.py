"""The built-in readers behind the match tool: one statement, a label, its words, never a guess."""

from __future__ import annotations

import json

import pytest

from core.baseline.entailment import Reader
from core.baseline.judge import BuiltInJudge
from core.baseline.matching import BuiltInMatcher, answer_of
from core.runtime.concurrency import Stop
from core.runtime.errors import Stopped
from core.schema.records import Label, Statement
from core.schema.roles import CaseView, Evidence
from core.tools.registry import use
from core.tools.text_tools import MATCH as TOOL
from core.tools.text_tools import Match, passages_of
from tests.fakes import make_case
from tests.readers import CONTRADICTS, NEUTRAL, ScriptedReader, WordReader, assessor_with
from tests.tools.benches import bench

SOURCE = "The Orrin bridge was opened in 1931. It is 412 m long and carries a tramway."


def judge(reader: Reader) -> BuiltInJudge:
    return BuiltInJudge(assessor_with(reader))


def matcher(stop: Stop | None = None, reader: Reader | None = None) -> BuiltInMatcher:
    return BuiltInMatcher(judge(reader or WordReader()), "en", stop or Stop())


@pytest.mark.parametrize(
    ("statement", "label", "finding"),
    [
        ("The Orrin bridge was opened in 1931.", "supported", "holds"),
        ("The Orrin bridge was opened in 1926.", "hallucinated", "contradicted"),
        ("The museum sells maps of the moon.", "unclear", "open"),
    ],
)
def test_a_statement_is_supported_contradicted_or_left_open(
    statement: str, label: Label, finding: str
) -> None:
    found = matcher()(statement, passages_of(SOURCE, "report"))
    assert (found.label, found.gave["finding"]) == (label, finding)
    assert (found.p is None) == (label == "unclear")
    assert found.p is None or (found.p >= 0.5) == (label == "hallucinated")


def test_the_wrong_words_are_marked_with_what_the_source_has() -> None:
    statement = "The Orrin bridge was opened in 1926."
    found = matcher()(statement, passages_of(SOURCE, "report"))
    assert statement[found.start : found.end] == "1926"
    assert (found.instead, found.category) == ("1931", "number_or_date")


def test_no_passage_and_no_statement_are_nothing_to_say() -> None:
    for found in (
        matcher()("It is 412 m long.", ()),
        matcher()("I do not know.", passages_of(SOURCE, "r")),
    ):
        assert (found.label, found.has_something, found.p) == ("unclear", False, None)


def test_it_stops_when_asked() -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        matcher(stop)("It is 412 m long.", passages_of(SOURCE, "r"))


@pytest.mark.parametrize(("odds", "is_caught"), [(CONTRADICTS, True), (NEUTRAL, False)])
def test_a_response_that_contradicts_itself_is_told_as_such(
    odds: tuple[float, float, float], is_caught: bool
) -> None:
    reader = matcher(reader=ScriptedReader({"carries a road": odds}))
    asked = Match("The bridge carries no road.", before="The bridge carries a road.")
    used = use(TOOL, asked, bench(match=reader))
    assert (used.label == "hallucinated") == is_caught
    if is_caught:
        assert json.loads(used.gave)["finding"] == "self_contradictory"


@pytest.mark.parametrize(
    "statement", ["The Orrin bridge was opened in 1926.", "The Orrin bridge is 412 m long."]
)
def test_an_audits_comparison_is_the_tools_own(statement: str) -> None:
    """A judge that reads a statement of a longer response says it in the tool's words too."""
    before = "All that follows was told by the guide. "
    case = make_case(before + statement)
    own = Statement(1, len(before), len(case.response), statement, statement)
    read = passages_of(SOURCE, "report")
    view = CaseView(case, (own,), Evidence({p.id: p for p in read}, {}), {})
    found = answer_of(judge(WordReader()).read_statement(view, own, Stop()), own)
    alone = matcher()(statement, read)
    assert (found.label, found.gave["finding"]) == (alone.label, alone.gave["finding"])
    assert (found.start, found.end, found.instead) == (alone.start, alone.end, alone.instead)
