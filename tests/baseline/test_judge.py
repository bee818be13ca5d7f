"""The built-in judge: one probability for each statement, and a headline that follows from them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.baseline.entailment import EntailmentReader
from core.baseline.judge import BuiltInJudge, BuiltInMatcher, convert_to_answer
from core.runtime.concurrency import StopSignal
from core.runtime.errors import Stopped
from core.schema.records import (
    EvidenceContext,
    Judgement,
    Label,
    Passage,
    ReaderStance,
    Stance,
    Statement,
    Turn,
)
from core.schema.roles import CaseView, Evidence, JudgeView
from core.tools.registry import use_tool
from core.tools.text_tools import MATCH as TOOL
from core.tools.text_tools import MatchInput, split_into_passages
from core.verdict.classifier import Classifier, ClassifierHead, load_classifier
from tests.fakes import FakeEmbedder, make_case, make_passage, make_view
from tests.readers import (
    CONTRADICTS,
    NEUTRAL,
    SUPPORTS,
    UNKNOWN_SCRIPT,
    Odds,
    ScriptedReader,
    WordReader,
    assessor_with,
    small_model,
)
from tests.tools.benches import bench
from tests.tools.corpus import table

LORRIES = make_passage("The bridge was closed to lorries after the flood.", number=1)
TOLLS = make_passage("Drivers of cars pay a toll on the bridge.", number=2, source="tolls.txt")


def judged(
    claim: str,
    reader: EntailmentReader,
    *passages: Passage,
    images: tuple[str, ...] = (),
    turns: tuple[Turn, ...] = (),
) -> Judgement:
    view = replace(make_view(make_case(claim), passages), unreadable_images=images)
    return decided(view, reader, turns)


def decided(view: CaseView, reader: EntailmentReader, turns: tuple[Turn, ...] = ()) -> Judgement:
    seen = JudgeView(view, EvidenceContext((), tuple(view.evidence.passages), ""), turns, True)
    return BuiltInJudge(assessor_with(reader)).decide(seen, StopSignal())


def view_of(texts: Sequence[str], passages: Sequence[Passage]) -> CaseView:
    """A response of these statements; each has the passage in the same place as its evidence."""
    statements, start = [], 0
    for index, text in enumerate(texts):
        statements.append(Statement(index, start, start + len(text), text, text))
        start += len(text) + 1
    evidence = Evidence({p.id: p for p in passages}, {i: (p.id,) for i, p in enumerate(passages)})
    return CaseView(make_case(" ".join(texts)), tuple(statements), evidence, {})


@pytest.mark.parametrize(
    ("odds", "label", "words"),
    [
        (SUPPORTS, "supported", "The source says so: “The bridge was closed to lorries"),
        (CONTRADICTS, "hallucinated", "The source says otherwise: “The bridge was closed"),
    ],
)
def test_the_label_has_its_probability_and_quotes_what_decides(
    odds: Odds, label: str, words: str
) -> None:
    found = judged("Lorries may use the bridge.", ScriptedReader({"lorries": odds}), LORRIES)
    assert (found.label, found.statement_labels) == (label, (label,))
    assert found.p == pytest.approx(0.005 if label == "supported" else 0.982, abs=0.001)
    assert words in found.text
    assert found.text.endswith(f"the statement is certainly {label}.")


def test_a_response_is_as_likely_wrong_as_its_worst_statement() -> None:
    texts = ("Lorries were kept off the bridge.", "Cars go over the bridge for free.")
    reader = ScriptedReader({"lorries": SUPPORTS, "toll": CONTRADICTS})
    found = decided(view_of(texts, (LORRIES, TOLLS)), reader)
    assert (found.label, found.statement_labels) == ("hallucinated", ("supported", "hallucinated"))
    assert found.p == pytest.approx(0.982, abs=0.001)
    assert "1 of 2 statements is wrong." in found.text


def test_what_each_debaters_model_makes_of_it_is_kept_by_name() -> None:
    found = judged("Lorries may use the bridge.", ScriptedReader({"lorries": CONTRADICTS}), LORRIES)
    assert {view.reader for view in found.readers} == {
        "Value checker", "Overlap reader", "Entailment reader",
    }  # fmt: skip
    assert ReaderStance("Entailment reader", 0, "hallucinated") in found.readers


def test_without_evidence_there_is_no_probability() -> None:
    found = judged("Lorries may use the bridge.", ScriptedReader())
    assert (found.label, found.cause, found.p) == ("unclear", "no_evidence", None)


def test_a_statement_for_which_nothing_was_found_is_not_addressed() -> None:
    view = view_of(("Lorries were kept off the bridge.", "Swans nest below it."), (LORRIES,))
    found = decided(view, ScriptedReader({"lorries": SUPPORTS}))
    assert (found.label, found.cause) == ("unclear", "not_addressed")
    assert "1 of 2 statements, first “Swans nest below it.”" in found.cause_words


def test_an_image_that_cannot_be_read_is_its_own_cause() -> None:
    reader = ScriptedReader({"lorries": SUPPORTS})
    found = judged("Lorries may use it.", reader, LORRIES, images=("sign.png",))
    assert (found.label, found.cause, found.p) == ("unclear", "image_not_readable", None)
    assert "sign.png" in found.cause_words


def test_a_language_that_the_reader_does_not_know_is_its_own_cause() -> None:
    reader = ScriptedReader({UNKNOWN_SCRIPT: CONTRADICTS})
    for claim, text in ((UNKNOWN_SCRIPT, LORRIES.text), ("The bridge is old.", UNKNOWN_SCRIPT)):
        found = judged(claim, reader, make_passage(text))
        assert (found.label, found.cause) == ("unclear", "language_not_known")
    assert not reader.pairs, "what is not known is not read"


@pytest.mark.parametrize("claim", ["I don't know.", "…", "👋"])
def test_a_text_that_says_nothing_to_check_has_no_probability(claim: str) -> None:
    found = judged(claim, ScriptedReader({"lorries": SUPPORTS}), LORRIES)
    assert (found.label, found.cause, found.p) == ("unclear", "not_addressed", None)


def test_evidence_about_something_else_leaves_it_open_whatever_the_reader_says() -> None:
    reader = ScriptedReader({"lorries": CONTRADICTS})
    found = judged("Cormorants nest in tall old trees.", reader, LORRIES)
    assert (found.label, found.cause) == ("unclear", "not_addressed")


def test_between_the_limits_it_is_not_settled() -> None:
    found = judged("Lorries may use the bridge.", ScriptedReader(), LORRIES)
    assert (found.label, found.cause, found.p) == ("unclear", "not_settled", 0.5)


def test_two_sources_that_plainly_disagree_leave_it_open_and_are_named() -> None:
    view = make_view(make_case("The bridge is free for cars."), (LORRIES, TOLLS))
    found = decided(view, ScriptedReader({"lorries": SUPPORTS, "toll": CONTRADICTS}))
    assert (found.label, found.cause) == ("unclear", "sources_disagree")
    assert all(p.source in found.cause_words for p in (LORRIES, TOLLS))
    one_source = [replace(p, source_id="one", source="one") for p in (LORRIES, TOLLS)]
    alone = decided(
        make_view(view.case, one_source), ScriptedReader({"lorries": SUPPORTS, "toll": CONTRADICTS})
    )
    assert alone.cause != "sources_disagree"


def test_a_verdict_against_all_debaters_says_so() -> None:
    turns = tuple(Turn(n, n, i, 1, "agree", "hallucinated", "So.") for i, n in enumerate("AB", 1))
    reader = ScriptedReader({"lorries": SUPPORTS})
    found = judged("Lorries may use the bridge.", reader, LORRIES, turns=turns)
    assert "Both debaters call the statement wrong; all the evidence together says" in found.text


def test_a_side_that_was_assigned_is_not_told_as_an_opinion() -> None:
    sides: tuple[Stance, ...] = ("supported", "hallucinated")
    turns = tuple(
        Turn(side, side, n, 1, "deny", side, "So.", assigned=side)
        for n, side in enumerate(sides, 1)
    )
    reader = ScriptedReader({"lorries": SUPPORTS})
    found = judged("Lorries may use the bridge.", reader, LORRIES, turns=turns)
    assert "argued the sides that they were assigned" in found.text


SAID = st.lists(st.sampled_from([SUPPORTS, CONTRADICTS, NEUTRAL, None]), min_size=1, max_size=5)
"""What the reader makes of each statement's passage; None where it has no passage."""


@settings(max_examples=60)
@given(SAID, st.sampled_from([-4.0, 0.0, 4.0, None]))
def test_headline_statements_judge_and_classifier_never_disagree(
    said: list[Odds | None], leaning: float | None
) -> None:
    """Each label follows from its probability; who is overruled is told, never contradicted."""
    words = ["lorries", "tolls", "ferries", "trams", "boats"][: len(said)]
    texts = [f"The bridge is open to {word}." for word in words]
    passages = [
        make_passage(f"Of {word}: the bridge is open.", number=n) for n, word in enumerate(words)
    ]
    view = view_of(texts, passages)
    without = {n: () for n, odds in enumerate(said) if odds is None}
    evidence = replace(view.evidence, by_statement={**view.evidence.by_statement, **without})
    told = {f"Of {w}:": odds for w, odds in zip(words, said, strict=True) if odds is not None}
    found = decided(replace(view, evidence=evidence), ScriptedReader(told))
    model, labels = small_model(), found.statement_labels
    expected = {SUPPORTS: "supported", CONTRADICTS: "hallucinated", NEUTRAL: "unclear"}
    assert list(labels) == [expected.get(odds or NEUTRAL) for odds in said]
    if "hallucinated" in labels:
        assert found.label == "hallucinated"
    else:
        assert found.label == ("supported" if set(labels) == {"supported"} else "unclear")
    assert (found.label == "unclear") == (found.cause is not None)
    if found.p is not None and found.label != "unclear":
        assert model.label(found.p) == found.label
    assert {p.statement for p in found.points if p.finding != "carried"} <= {
        n for n, label in enumerate(labels) if label == "hallucinated"
    }
    verdict = classifier(leaning).verdict(found)
    if verdict.label != found.label:
        assert (verdict.label, verdict.cause) == ("unclear", "classifier_disagrees")
    elif found.label != "unclear":
        assert verdict.p_hallucinated is not None
        if verdict.p_hallucinated != 0.5:  # there the classifier tells nothing
            assert (verdict.p_hallucinated > 0.5) == (found.label == "hallucinated")
    else:
        assert verdict.cause == found.cause


def classifier(leaning: float | None) -> Classifier:
    """The seed; or one that always leans to a side."""
    if leaning is None:
        return load_classifier(Path("no home: the seed ships"), "seed")
    return Classifier("x", ClassifierHead((0.0,) * FakeEmbedder.width, leaning), FakeEmbedder(), {})


def test_the_seed_does_not_overrule_the_judge_where_it_is_sure() -> None:
    for odds, label in ((SUPPORTS, "supported"), (CONTRADICTS, "hallucinated")):
        found = judged("Lorries may use the bridge.", ScriptedReader({"lorries": odds}), LORRIES)
        assert classifier(None).verdict(found).label == label


SOURCE = "The Orrin bridge was opened in 1931. It is 412 m long and carries a tramway."


def judge(reader: EntailmentReader) -> BuiltInJudge:
    return BuiltInJudge(assessor_with(reader))


def matcher(
    stop: StopSignal | None = None, reader: EntailmentReader | None = None
) -> BuiltInMatcher:
    return BuiltInMatcher(judge(reader or WordReader()), "en", stop or StopSignal())


@pytest.mark.parametrize(*table("matching: a statement is supported contradicted or left open"))
def test_a_statement_is_supported_contradicted_or_left_open(
    statement: str, label: Label, finding: str
) -> None:
    found = matcher()(statement, split_into_passages(SOURCE, "report"))
    assert (found.label, found.gave["finding"]) == (label, finding)
    assert (found.p is None) == (label == "unclear")
    assert found.p is None or (found.p >= 0.5) == (label == "hallucinated")


def test_the_wrong_words_are_marked_with_what_the_source_has() -> None:
    statement = "The Orrin bridge was opened in 1926."
    found = matcher()(statement, split_into_passages(SOURCE, "report"))
    assert statement[found.start : found.end] == "1926"
    assert (found.instead, found.category) == ("1931", "number_or_date")


def test_no_passage_and_no_statement_are_nothing_to_say() -> None:
    for found in (
        matcher()("It is 412 m long.", ()),
        matcher()("I do not know.", split_into_passages(SOURCE, "r")),
    ):
        assert (found.label, found.has_something, found.p) == ("unclear", False, None)


def test_it_stops_when_asked() -> None:
    stop = StopSignal()
    stop.set()
    with pytest.raises(Stopped):
        matcher(stop)("It is 412 m long.", split_into_passages(SOURCE, "r"))


@pytest.mark.parametrize(("odds", "is_caught"), [(CONTRADICTS, True), (NEUTRAL, False)])
def test_a_response_that_contradicts_itself_is_told_as_such(
    odds: tuple[float, float, float], is_caught: bool
) -> None:
    reader = matcher(reader=ScriptedReader({"carries a road": odds}))
    asked = MatchInput("The bridge carries no road.", before="The bridge carries a road.")
    used = use_tool(TOOL, asked, bench(match=reader))
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
    read = split_into_passages(SOURCE, "report")
    view = CaseView(case, (own,), Evidence({p.id: p for p in read}, {}), {})
    found = convert_to_answer(judge(WordReader()).read_statement(view, own, StopSignal()), own)
    alone = matcher()(statement, read)
    assert (found.label, found.gave["finding"]) == (alone.label, alone.gave["finding"])
    assert (found.start, found.end, found.instead) == (alone.start, alone.end, alone.instead)
