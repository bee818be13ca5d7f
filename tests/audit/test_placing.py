"""Wrong words are placed by the text that the tool spoke of, whatever else it was given."""

from __future__ import annotations

import msgspec

from core.audit.placing import placed
from core.audited import ToolUse
from core.records import Statement
from core.tools.box.match import Match
from core.tools.toolbox import toolbox
from tests.fakes import make_case

TEXT = "Rome was founded in 1853."
QUESTION = "Tell me any fact on Rome and its kings."  # has “Rome” where the statement has the year


def test_a_longer_question_beside_the_statement_moves_no_place() -> None:
    given = msgspec.json.encode(Match(TEXT, question=QUESTION)).decode()
    use = ToolUse(
        "match", 0, given, "{}", "found", "hallucinated", "753 BC.", 0.0, start=20, end=24
    )
    statement = Statement(0, 0, len(TEXT), TEXT, TEXT)
    moved = placed(use, statement, make_case(TEXT, question=QUESTION), toolbox()["match"].about)
    assert (moved.start, moved.end) == (20, 24)


def test_every_tool_names_a_field_that_it_takes() -> None:
    gives_places = {name: tool for name, tool in toolbox().items() if not tool.is_system}
    for name in gives_places.keys() - {"search"}:
        assert gives_places[name].about in gives_places[name].takes.__struct_fields__, name
