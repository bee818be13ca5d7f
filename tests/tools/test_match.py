"""The match tool: what a model or the readers say of a statement, as one answer."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.runtime.errors import ModelError
from core.schema.records import Label, Passage, Statement
from core.tools.registry import Answer, use
from core.tools.text_tools import LABELS, Match, passages_of
from core.tools.text_tools import MATCH as TOOL
from tests.fakes import make_case
from tests.tools.benches import ScriptedAsker, bench, library_of

STATEMENT = "The bridge is 512 m long."


def reply(finding: str, **changes: object) -> dict[str, object]:
    made = {"reason": "The report says 412 m.", "finding": finding, "words": "512 m"}
    return {**made, "instead": "412 m", "p": 0.9, **changes}


def reader(**labels: Label) -> Any:
    """Readers that give a label by a word that stands in the passages."""

    def match(statement: str, passages: Sequence[Passage]) -> Answer:
        read = " ".join(p.text for p in passages)
        label: Label = next((value for word, value in labels.items() if word in read), "unclear")
        finding = {"hallucinated": "contradicted", "supported": "holds", "unclear": "open"}[label]
        p = 0.8 if "perhaps" in read else 0.95
        return Answer(label, f"Read {len(passages)}.", {"finding": finding}, p)

    return match


@pytest.mark.parametrize(("finding", "label"), LABELS.items())
def test_every_finding_of_a_model_has_its_label(finding: str, label: Label) -> None:
    p = {"hallucinated": 0.9, "supported": 0.1, "unclear": 0.5}[label]
    ask = ScriptedAsker([reply(finding, p=p)])
    used = use(TOOL, Match(STATEMENT, "It is 412 m long."), bench(ask))
    assert (used.outcome, used.label) == ("found", label)
    assert used.p == (None if label == "unclear" else p)
    assert json.loads(used.gave)["finding"] == finding
    marked = (used.start, used.end) == (14, 19)
    assert marked == (label == "hallucinated")
    assert bool(used.instead) == bool(used.category) == (label == "hallucinated")


def test_words_that_stand_nowhere_are_not_marked() -> None:
    ask = ScriptedAsker([reply("contradicted", words="five hundred")])
    used = use(TOOL, Match(STATEMENT, "It is 412 m long."), bench(ask))
    assert (used.label, used.start, used.end) == ("hallucinated", None, None)


@pytest.mark.parametrize(("finding", "p"), [("contradicted", 0.2), ("holds", 0.8)])
def test_a_probability_against_its_own_finding_is_left_out(finding: str, p: float) -> None:
    used = use(TOOL, Match(STATEMENT, "x y z."), bench(ScriptedAsker([reply(finding, p=p)])))
    assert used.p is None


def test_without_context_the_library_is_searched() -> None:
    ask = ScriptedAsker([reply("contradicted")])
    used = use(TOOL, Match(STATEMENT), bench(ask, library=library_of("It is 412 m long.")))
    assert ask.asked[0][1]["context"] == "s0.txt: It is 412 m long."
    sources = json.loads(used.gave)["sources"]
    assert sources == [{"title": "s0.txt", "text": "It is 412 m long."}]


def test_a_model_that_fails_is_no_label_even_beside_the_readers() -> None:
    ask = ScriptedAsker([ModelError("It is away.")])
    used = use(TOOL, Match(STATEMENT, "It is 412 m."), bench(ask, reader(m="hallucinated")))
    assert (used.outcome, used.label, used.words) == ("failed", "unclear", "It is away.")


def test_without_a_model_the_readers_read_the_evidence() -> None:
    match = reader(report="supported")
    used = use(TOOL, Match(STATEMENT, "The report says so."), bench(match=match))
    assert (used.label, used.outcome) == ("supported", "found")
    assert json.loads(used.gave)["by"] == "built-in readers"


def test_a_contradiction_within_the_response_comes_before_evidence() -> None:
    match = reader(Earlier="hallucinated", report="supported")
    given = Match(STATEMENT, "The report says so.", before="Earlier it was 412 m.")
    used = use(TOOL, given, bench(match=match))
    assert (used.label, used.category) == ("hallucinated", "self_contradiction")
    assert json.loads(used.gave)["finding"] == "self_contradictory"


def test_a_doubtful_contradiction_within_the_response_is_none() -> None:
    match = reader(Earlier="hallucinated")
    given = Match(STATEMENT, before="Earlier it was perhaps 412 m.")
    assert use(TOOL, given, bench(match=match)).label == "unclear"


def test_that_a_response_repeats_itself_supports_nothing() -> None:
    used = use(TOOL, Match(STATEMENT, before="Said again."), bench(match=reader(Said="supported")))
    assert used.label == "unclear"


def test_the_readers_say_that_they_do_not_judge_relevance() -> None:
    used = use(TOOL, Match(STATEMENT, question="Who?"), bench(match=reader()))
    assert (used.label, used.outcome) == ("unclear", "nothing")
    assert "takes a language model" in used.words


def test_nothing_beside_the_statement_is_nothing_to_compare() -> None:
    used = use(TOOL, Match(STATEMENT), bench(match=reader()))
    assert (used.outcome, used.label) == ("nothing", "unclear")


def test_an_empty_statement_is_refused() -> None:
    used = use(TOOL, Match(" ", "It is 412 m."), bench(match=reader()))
    assert used.outcome == "failed"
    assert "Expected a statement" in used.words


def test_it_is_off_where_nobody_reads() -> None:
    used = use(TOOL, Match(STATEMENT, "It is 412 m."), bench())
    assert used.outcome == "off"
    assert "language model" in used.words


def test_the_chooser_hands_the_rest_of_the_response_over() -> None:
    response = "It opened in 1931. It is 512 m long. It is red."
    start = response.index("It is 512")
    statement = Statement(1, start, start + 17, "It is 512 m long.", "The bridge is 512 m long.")
    assert TOOL.reads is not None
    case = make_case(response, question="How long?")
    found = TOOL.reads(statement, case)
    assert found == Match("It is 512 m long.", "", "How long?", "It opened in 1931. It is red.")
    assert TOOL.reads(None, case) is None


@given(st.text(max_size=300))
def test_passages_of_a_text_are_its_own_words(text: str) -> None:
    found = passages_of(text, "here")
    assert all(text[p.start : p.end] == p.text for p in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    assert len({p.id for p in found}) == len(found)
