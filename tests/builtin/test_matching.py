"""The built-in readers behind the match tool: one statement, a label, its words, never a guess."""

from __future__ import annotations

import json
from functools import cache

import pytest

from core.builtin.judge import BuiltInJudge
from core.builtin.matching import BuiltInMatcher
from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.errors import Stopped
from core.models.encoder import load_encoder
from core.models.reader import load_reader
from core.records import Label
from core.tools.box.match import TOOL, Match, passages_of
from core.tools.toolbox import use
from tests.tools.box.benches import bench

SOURCE = "The Orrin bridge was opened in 1931. It is 412 m long and carries a tramway."
# (statement, what the rest of its response says, whether the two contradict each other)
OWN_EXAMPLES = [
    ("He died in 1890.", "Karl Brandt was born in 1899. He died in 1931.", True),
    ("The mayor opposed the plan.", "The mayor supported the plan from the start.", True),
    ("The film has no dialogue.", "The film is known for its long dialogues.", True),
    ("The lake freezes every year.", "The lake never freezes. It is 40 m deep.", True),
    ("The second step gives 15.", "First add 4 and 6. The second step gives 12.", True),
    ("The station was built before the war.", "The station was built after the war.", True),
    ("It was restored in 1980.", "The tower was completed in 1742. It has 12 floors.", False),
    ("Let it cool before serving.", "Beat two eggs. Bake for 30 minutes.", False),
    ("Families get a discount.", "Adults pay 8 euros. Children pay 4 euros.", False),
    ("Tickets cost 30 euros.", "The festival draws 20,000 visitors each July.", False),
    ("It charges in 90 minutes.", "Its battery lasts ten hours.", False),
    ("He became a judge in 1931.", "Karl Brandt was born in 1899 and studied law.", False),
]


@cache
def judge() -> BuiltInJudge:
    return BuiltInJudge(load_encoder(ENCODER_DIR), load_reader())


def matcher(language: str = "en", stop: Stop | None = None) -> BuiltInMatcher:
    return BuiltInMatcher(judge(), language, stop or Stop())


@pytest.mark.parametrize(
    ("statement", "label", "finding"),
    [
        ("The Orrin bridge was opened in 1931.", "supported", "holds"),
        ("The Orrin bridge was opened in 1926.", "hallucinated", "contradicted"),
        ("The museum sells maps of the moon.", "unclear", "open"),
    ],
)
def test_a_statement_is_carried_contradicted_or_left_open(
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
    assert "1931" in found.instead
    assert found.category == "number_or_date"


def test_chinese_is_read_by_the_rules() -> None:
    found = matcher("zh")("云溪桥建于1926年。", passages_of("云溪桥建于1931年。", "报告"))
    assert found.label == "hallucinated"


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
        matcher(stop=stop)("It is 412 m long.", passages_of(SOURCE, "r"))


def test_a_response_that_contradicts_itself_is_caught_more_often_than_not() -> None:
    """And none of its plain neighbours is: these would be false alarms."""
    said = {True: 0, False: 0}
    for statement, rest, contradicts in OWN_EXAMPLES:
        used = use(TOOL, Match(statement, before=rest), bench(match=matcher()))
        if used.label == "hallucinated":
            assert json.loads(used.gave)["finding"] == "self_contradictory"
            said[contradicts] += 1
    assert said[False] == 0
    assert said[True] >= 4
