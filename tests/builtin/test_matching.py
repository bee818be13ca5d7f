"""The built-in readers behind the match tool: one statement, a label, its words, never a guess."""

from __future__ import annotations

import json
from functools import cache

import pytest

from core.builtin.judge import BuiltInJudge
from core.builtin.matching import BuiltInMatcher, answer_of
from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.errors import Stopped
from core.models.encoder import load_encoder
from core.models.reader import load_reader
from core.records import Label, Statement
from core.roles import CaseView, Evidence
from core.tools.box.match import TOOL, Match, passages_of
from core.tools.toolbox import use
from tests.fakes import make_case
from tests.tools.box.benches import bench

SOURCE = "The Orrin bridge was opened in 1931. It is 412 m long and carries a tramway."
# (statement, what the rest of its response says, whether the two contradict each other)
OWN_EXAMPLES = [
    ("On Mondays it is closed.", "The museum is open every day.", True),
    (
        "The bridge is 512 m long.",
        "The Orrin bridge was opened in 1931. Its length is 412 m. It carries a road.",
        True,
    ),
    (
        "Anna Vell never left Norway.",
        "Anna Vell was a Norwegian painter. She lived in Paris from 1901 to 1908.",
        True,
    ),
    (
        "The recipe contains no eggs.",
        "Beat two eggs with the sugar. Fold in the flour. Bake for 30 minutes.",
        True,
    ),
    ("He died in 1890.", "Karl Brandt was born in 1899. He studied law in Jena.", True),
    (
        "The company lost money in 2020.",
        "The company made a profit of 3 million in 2020. It employs 40 people.",
        True,
    ),
    (
        "All passengers survived.",
        "Two passengers died in the accident. The ship sank within an hour.",
        True,
    ),
    (
        "The species lives only in Asia.",
        "The beetle is found in Africa and South America. It feeds on bark.",
        True,
    ),
    ("Entry is free for everyone.", "Adults pay 8 euros. Children pay 4 euros.", True),
    ("The tower was never finished.", "The tower was completed in 1742. It has 12 floors.", True),
    (
        "The festival takes place in winter.",
        "The festival is held every July. It draws 20,000 visitors.",
        True,
    ),
    (
        "The film has no dialogue.",
        "The film is known for its long dialogues. It was shot in Rome.",
        True,
    ),
    (
        "The second step gives 15.",
        "First add 4 and 6, which gives 10. The second step gives 12.",
        True,
    ),
    (
        "The drug is approved in Canada.",
        "The drug has not been approved in any country. Trials go on.",
        True,
    ),
    ("The river flows north.", "The river flows south to the sea. It is 90 km long.", True),
    (
        "The mayor opposed the plan.",
        "The mayor supported the plan from the start. It passed in May.",
        True,
    ),
    (
        "The station was built before the war.",
        "The station was built after the war, in 1949. It has four tracks.",
        True,
    ),
    ("The battery lasts four hours.", "The phone weighs 180 g. Its battery lasts ten hours.", True),
    ("The book has 12 chapters.", "The book was published in 2004. It has nine chapters.", True),
    ("The lake freezes every year.", "The lake never freezes. It is 40 m deep.", True),
    (
        "It carries a road and a tramway.",
        "The Orrin bridge was opened in 1931. Its length is 412 m.",
        False,
    ),
    (
        "She exhibited in Berlin in 1910.",
        "Anna Vell was a Norwegian painter. She lived in Paris from 1901 to 1908.",
        False,
    ),
    (
        "Let it cool before serving.",
        "Beat two eggs with the sugar. Fold in the flour. Bake for 30 minutes.",
        False,
    ),
    ("He became a judge in 1931.", "Karl Brandt was born in 1899. He studied law in Jena.", False),
    (
        "Its head office is in Lyon.",
        "The company made a profit of 3 million in 2020. It employs 40 people.",
        False,
    ),
    (
        "The captain was later tried.",
        "Two passengers died in the accident. The ship sank within an hour.",
        False,
    ),
    (
        "Males are smaller than females.",
        "The beetle is found in Africa and South America. It feeds on bark.",
        False,
    ),
    ("Families get a discount.", "Adults pay 8 euros. Children pay 4 euros.", False),
    ("It was restored in 1980.", "The tower was completed in 1742. It has 12 floors.", False),
    ("Tickets cost 30 euros.", "The festival is held every July. It draws 20,000 visitors.", False),
    (
        "It won two prizes in Cannes.",
        "The film is known for its long dialogues. It was shot in Rome.",
        False,
    ),
    (
        "Then multiply by 2, which gives 24.",
        "First add 4 and 6, which gives 10. The second step gives 12.",
        False,
    ),
    (
        "Results are expected in 2027.",
        "The drug has not been approved in any country. Trials go on.",
        False,
    ),
    ("Its source lies at 1,200 m.", "The river flows south to the sea. It is 90 km long.", False),
    (
        "The council voted 9 to 4.",
        "The mayor supported the plan from the start. It passed in May.",
        False,
    ),
    (
        "A fifth track was added in 1972.",
        "The station was built after the war, in 1949. It has four tracks.",
        False,
    ),
    ("It charges in 90 minutes.", "The phone weighs 180 g. Its battery lasts ten hours.", False),
    (
        "The second edition came out in 2010.",
        "The book was published in 2004. It has nine chapters.",
        False,
    ),
    ("Pike and perch live in it.", "The lake never freezes. It is 40 m deep.", False),
    ("Guided tours start at 10.", "The museum is open every day.", False),
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


def test_nine_of_twenty_contradictory_pairs_are_caught_and_no_plain_one() -> None:
    """Of twenty pairs each; docs/search-and-match.md tells these figures."""
    caught = {True: 0, False: 0}
    for statement, rest, contradicts in OWN_EXAMPLES:
        used = use(TOOL, Match(statement, before=rest), bench(match=matcher()))
        if used.label == "hallucinated":
            assert json.loads(used.gave)["finding"] == "self_contradictory"
            caught[contradicts] += 1
    assert caught == {True: 9, False: 0}


@pytest.mark.parametrize(
    ("statement", "source"),
    [(statement, rest) for statement, rest, contradicts in OWN_EXAMPLES if contradicts][:8],
)
def test_an_audits_comparison_is_the_tools_own(statement: str, source: str) -> None:
    """A judge that reads a statement of a longer response says it in the tool's words too."""
    before = "All that follows was told by the guide. "
    case = make_case(before + statement)
    own = Statement(1, len(before), len(case.response), statement, statement)
    read = passages_of(source, "report")
    view = CaseView(case, (own,), Evidence({p.id: p for p in read}, {}), {})
    found = answer_of(judge().read_statement(view, own, Stop()), own)
    alone = matcher()(statement, read)
    assert (found.label, found.gave["finding"]) == (alone.label, alone.gave["finding"])
    assert (found.start, found.end, found.instead) == (alone.start, alone.end, alone.instead)


@pytest.mark.parametrize(
    ("statement", "finding"),
    [
        ("The festival takes place in winter.", "contradicted"),
        ("The drug is approved in Canada.", "unsupported"),
    ],
)
def test_contradicted_is_what_a_reader_denies_and_not_what_none_carries(
    statement: str, finding: str
) -> None:
    """Of neither the rules name a contrast; the entailment reader denies the first alone."""
    source = next(rest for text, rest, _ in OWN_EXAMPLES if text == statement)
    found = matcher()(statement, passages_of(source, "report"))
    stances = {view["reader"]: view["stance"] for view in found.gave["readers"]}
    assert stances["Rule checker"] == "unclear"
    assert (found.label, found.gave["finding"]) == ("hallucinated", finding)
