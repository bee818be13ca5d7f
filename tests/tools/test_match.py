"""Tools over texts: what match says of a statement, how a text is cut, and the whole answer."""

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
from core.tools.registry import ToolAnswer, use_tool
from core.tools.text_tools import (
    FINDING_LABELS,
    GET_ANSWER,
    SPLIT_TEXT,
    CheckedStatement,
    GetAnswerInput,
    MatchInput,
    SplitTextInput,
    split_into_passages,
)
from core.tools.text_tools import MATCH as TOOL
from tests.fakes import make_case
from tests.tools.benches import ScriptedAsker, bench, library_of

STATEMENT = "The bridge is 512 m long."


def reply(finding: str, **changes: object) -> dict[str, object]:
    made = {"reason": "The report says 412 m.", "finding": finding, "words": "512 m"}
    return {**made, "instead": "412 m", "p": 0.9, **changes}


def reader(**labels: Label) -> Any:
    """Readers that give a label by a word that stands in the passages."""

    def match(statement: str, passages: Sequence[Passage]) -> ToolAnswer:
        read = " ".join(p.text for p in passages)
        label: Label = next((value for word, value in labels.items() if word in read), "unclear")
        finding = {"hallucinated": "contradicted", "supported": "holds", "unclear": "open"}[label]
        p = 0.8 if "perhaps" in read else 0.95
        return ToolAnswer(label, f"Read {len(passages)}.", {"finding": finding}, p)

    return match


@pytest.mark.parametrize(("finding", "label"), FINDING_LABELS.items())
def test_every_finding_of_a_model_has_its_label(finding: str, label: Label) -> None:
    p = {"hallucinated": 0.9, "supported": 0.1, "unclear": 0.5}[label]
    ask = ScriptedAsker([reply(finding, p=p)])
    used = use_tool(TOOL, MatchInput(STATEMENT, "It is 412 m long."), bench(ask))
    assert (used.outcome, used.label) == ("found", label)
    assert used.p == (None if label == "unclear" else p)
    assert json.loads(used.gave)["finding"] == finding
    marked = (used.start, used.end) == (14, 19)
    assert marked == (label == "hallucinated")
    assert bool(used.instead) == bool(used.category) == (label == "hallucinated")


def test_words_that_stand_nowhere_are_not_marked() -> None:
    ask = ScriptedAsker([reply("contradicted", words="five hundred")])
    used = use_tool(TOOL, MatchInput(STATEMENT, "It is 412 m long."), bench(ask))
    assert (used.label, used.start, used.end) == ("hallucinated", None, None)


@pytest.mark.parametrize(("finding", "p"), [("contradicted", 0.2), ("holds", 0.8)])
def test_a_probability_against_its_own_finding_is_left_out(finding: str, p: float) -> None:
    used = use_tool(
        TOOL, MatchInput(STATEMENT, "x y z."), bench(ScriptedAsker([reply(finding, p=p)]))
    )
    assert used.p is None


def test_without_context_the_library_is_searched() -> None:
    ask = ScriptedAsker([reply("contradicted")])
    used = use_tool(
        TOOL, MatchInput(STATEMENT), bench(ask, library=library_of("It is 412 m long."))
    )
    assert ask.asked[0][1]["context"] == "s0.txt: It is 412 m long."
    sources = json.loads(used.gave)["sources"]
    assert sources == [{"title": "s0.txt", "text": "It is 412 m long."}]


def test_a_model_that_fails_is_no_label_even_beside_the_readers() -> None:
    ask = ScriptedAsker([ModelError("It is away.")])
    used = use_tool(
        TOOL, MatchInput(STATEMENT, "It is 412 m."), bench(ask, reader(m="hallucinated"))
    )
    assert (used.outcome, used.label, used.words) == ("failed", "unclear", "It is away.")


def test_without_a_model_the_readers_read_the_evidence() -> None:
    match = reader(report="supported")
    used = use_tool(TOOL, MatchInput(STATEMENT, "The report says so."), bench(match=match))
    assert (used.label, used.outcome) == ("supported", "found")
    assert json.loads(used.gave)["by"] == "built-in readers"


def test_a_contradiction_within_the_response_comes_before_evidence() -> None:
    match = reader(Earlier="hallucinated", report="supported")
    given = MatchInput(STATEMENT, "The report says so.", before="Earlier it was 412 m.")
    used = use_tool(TOOL, given, bench(match=match))
    assert (used.label, used.category) == ("hallucinated", "self_contradiction")
    assert json.loads(used.gave)["finding"] == "self_contradictory"


@pytest.mark.parametrize(
    ("given", "reads", "outcome", "said"),
    [
        # A doubtful contradiction within the response; and that it repeats itself.
        (MatchInput(STATEMENT, before="Earlier it was perhaps 412 m."), "Earlier", "found", ""),
        (MatchInput(STATEMENT, before="Said again."), "Said", "found", ""),
        (MatchInput(STATEMENT, question="Who?"), "", "nothing", "takes a language model"),
        (MatchInput(STATEMENT), "", "nothing", "nothing to compare"),
        (MatchInput(" ", "It is 412 m."), "", "failed", "Expected a statement"),
        (MatchInput(STATEMENT, "It is 412 m."), None, "off", "language model"),
    ],
)
def test_where_nothing_follows_there_is_no_label(
    given: MatchInput, reads: str | None, outcome: str, said: str
) -> None:
    labels: dict[str, Label] = {"Earlier": "hallucinated", "Said": "supported"}
    match = reader(**{word: labels[word] for word in [reads] if word})
    used = use_tool(TOOL, given, bench() if reads is None else bench(match=match))
    assert (used.outcome, used.label) == (outcome, "unclear")
    assert said in used.words


def test_the_chooser_hands_the_rest_of_the_response_over() -> None:
    response = "It opened in 1931. It is 512 m long. It is red."
    start = response.index("It is 512")
    statement = Statement(1, start, start + 17, "It is 512 m long.", "The bridge is 512 m long.")
    assert TOOL.reads is not None
    case = make_case(response, question="How long?")
    found = TOOL.reads(statement, case)
    assert found == MatchInput(
        "It is 512 m long.", "", "How long?", "It opened in 1931. It is red."
    )
    assert TOOL.reads(None, case) is None


@given(st.text(max_size=300))
def test_passages_of_a_text_are_its_own_words(text: str) -> None:
    found = split_into_passages(text, "here")
    assert all(text[p.start : p.end] == p.text for p in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    assert len({p.id for p in found}) == len(found)


SPLIT_LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def split(text: str, language: str = "en") -> list[dict[str, Any]]:
    used = use_tool(SPLIT_TEXT, SplitTextInput(text, language), bench())
    assert used.label == "unclear"
    found: list[dict[str, Any]] = json.loads(used.gave).get("sentences", [])
    return found


def test_sentences_come_with_what_their_pronouns_refer_to() -> None:
    rows = split("The bridge opened in 1931. It’s 412 m long. The deck is red.")
    assert [row["text"] for row in rows] == [
        "The bridge opened in 1931.",
        "It’s 412 m long.",
        "The deck is red.",
    ]
    assert [row["refers_to"] for row in rows] == ["", "The bridge opened in 1931.", ""]


def test_chinese_is_cut_and_referred_too() -> None:
    rows = split("云溪桥建于1931年。它长412米。", "zh")
    assert [row["refers_to"] for row in rows] == ["", "云溪桥建于1931年。"]


@given(st.text(max_size=400), st.sampled_from(["en", "zh", "und", "ar"]))
def test_every_sentence_stands_where_it_is_said_to(text: str, language: str) -> None:
    end = 0
    for row in split(text, language):
        assert text[row["start"] : row["end"]] == row["text"]
        assert end <= row["start"]
        end = row["end"]


def test_a_text_without_a_sentence_is_nothing_and_one_too_long_is_refused() -> None:
    assert use_tool(SPLIT_TEXT, SplitTextInput(" … "), bench()).outcome == "nothing"
    used = use_tool(SPLIT_TEXT, SplitTextInput("x" * 60_001), bench())
    assert used.outcome == "failed"
    assert "60,001" in used.words


def answer(*checked: CheckedStatement) -> tuple[Label, dict[str, object], str]:
    used = use_tool(GET_ANSWER, GetAnswerInput(list(checked)), bench())
    return used.label, json.loads(used.gave), used.words


def test_the_wrong_statements_are_listed_with_why() -> None:
    label, gave, words = answer(
        CheckedStatement("It opened in 1931.", "supported", "A report."),
        CheckedStatement("It is 512 m long.", "hallucinated", "The report says 412 m."),
        CheckedStatement("It is loved.", "unclear", ""),
    )
    assert label == "hallucinated"
    assert words == "1 of 3 statements is hallucinated. “It is 512 m long.”: The report says 412 m."
    assert gave["counts"] == {"supported": 1, "hallucinated": 1, "unclear": 1}
    assert gave["wrong"] == [
        {
            "statement": "It is 512 m long.",
            "label": "hallucinated",
            "evidence": "The report says 412 m.",
        }
    ]


@given(st.lists(st.sampled_from(SPLIT_LABELS), min_size=1, max_size=8))
def test_one_wrong_makes_all_wrong_and_all_must_hold(labels: list[Label]) -> None:
    label, gave, _ = answer(
        *(CheckedStatement(f"S{n}.", one, "E.") for n, one in enumerate(labels))
    )
    if "hallucinated" in labels:
        assert label == "hallucinated"
    else:
        assert (label == "supported") == all(one == "supported" for one in labels)
    counts = gave["counts"]
    assert isinstance(counts, dict)
    assert sum(counts.values()) == len(labels)


@pytest.mark.parametrize("evidence", ["", "  "])
def test_nothing_is_called_wrong_without_evidence(evidence: str) -> None:
    used = use_tool(
        GET_ANSWER, GetAnswerInput([CheckedStatement("S.", "hallucinated", evidence)]), bench()
    )
    assert (used.outcome, used.label) == ("failed", "unclear")


def test_no_statement_is_no_answer() -> None:
    assert use_tool(GET_ANSWER, GetAnswerInput([]), bench()).outcome == "failed"


def test_both_are_marked_as_the_audits_own() -> None:
    assert SPLIT_TEXT.is_system
    assert GET_ANSWER.is_system
