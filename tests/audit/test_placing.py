"""Wrong words are placed by the text that the tool spoke of, whatever else it was given."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.audit_steps import cut_alike, is_cut_from, placed
from core.schema.events import ToolUse
from core.schema.records import Statement
from core.tools.registry import toolbox
from core.tools.text_tools import Match
from tests.fakes import make_case

TEXT = "Rome was founded in 1853."
QUESTION = "Tell me any fact on Rome and its kings."  # has “Rome” where the statement has the year


def test_a_longer_question_beside_the_statement_moves_no_place() -> None:
    asked = msgspec.json.encode(Match(TEXT, question=QUESTION)).decode()
    use = ToolUse(
        "match", 0, asked, "{}", "found", "hallucinated", "753 BC.", 0.0, start=20, end=24
    )
    statement = Statement(0, 0, len(TEXT), TEXT, TEXT)
    moved = placed(use, statement, make_case(TEXT, question=QUESTION), toolbox()["match"].about)
    assert (moved.start, moved.end) == (20, 24)


def test_every_tool_names_a_field_that_it_takes() -> None:
    gives_places = {name: tool for name, tool in toolbox().items() if not tool.is_system}
    for name in gives_places.keys() - {"search"}:
        assert gives_places[name].about in gives_places[name].takes.__struct_fields__, name


@given(st.text(min_size=1, max_size=40), st.data())
def test_a_text_with_blanks_keeps_its_places(words: str, data: st.DataObject) -> None:
    gone = data.draw(st.sets(st.integers(0, len(words) - 1)))
    cut = "".join(" " if i in gone else char for i, char in enumerate(words))
    is_cut = cut != words and bool(cut.strip())
    assert is_cut_from(cut, words) is is_cut
    assert not is_cut_from(words, words)
    if not is_cut:
        return
    own = Statement(0, 2, 2 + len(words), words, f"In short: {words}")
    made = cut_alike(cut, own)
    assert (made.start, made.end, made.text) == (own.start, own.end, cut)
    assert made.rewrite == cut or is_cut_from(made.rewrite, own.rewrite)


def test_what_is_blank_in_a_statement_is_blank_where_it_stands_alone() -> None:
    own = "It is 500 m + 12 m = 512 m long."
    cut = own.replace("500 m + 12 m =", " " * 14)
    statement = Statement(0, 0, len(own), own, own.replace("It", "The bridge"))
    assert cut_alike(cut, statement).rewrite.split() == ["The", "bridge", "is", "512", "m", "long."]
    unlike = Statement(0, 0, len(own), own, "The bridge measures 512 m.")
    assert cut_alike(cut, unlike).rewrite == cut
