"""The built-in judge: one probability from all readers, unclear with its cause, who said what."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.builtin.judge import OPEN_FROM, BuiltInJudge
from core.builtin.judge_words import Spoken, verdict_text
from core.builtin.weighing import Logistic, Weights
from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.models.encoder import load_encoder
from core.records import Context, Judgement, Passage, ReaderView, Statement, Turn
from core.roles import CaseView, Evidence, JudgeView
from tests.builtin.told_reader import CARRIES, CONTRADICTS, OPEN, Odds, ToldReader
from tests.fakes import make_case, make_passage, make_view

# p = 0.94 where the reader is sure of a contradiction or sees nothing, 0.06 where it is carried
WEIGHTS = Weights(
    {
        "wrong": Logistic({"read_against": 1.0}, 0.0),
        "wrong, muted": Logistic({"uncarried": 4.0}, -2.0),
        "open": Logistic({"read_open": 1.0}, 0.0),
        "open, muted": Logistic({}, -3.0),
    },
    {},
)
ENCODER = load_encoder(ENCODER_DIR)
BRIDGE = make_passage("The bridge was closed to lorries after the flood.", number=1)
TOLLS = make_passage("Drivers of cars pay a toll.", number=2)


def judged(
    claim: str, said: dict[str, Odds], *passages: Passage, images: tuple[str, ...] = ()
) -> Judgement:
    view = replace(make_view(make_case(claim), passages), unreadable_images=images)
    judge = BuiltInJudge(ENCODER, ToldReader(said), WEIGHTS)
    context = Context((), tuple(p.id for p in passages), "")
    return judge.decide(JudgeView(view, context, (), reached_consensus=False), Stop())


def test_a_contradiction_in_meaning_is_hallucinated_with_its_probability() -> None:
    found = judged("Lorries may use the bridge.", {"lorries": CONTRADICTS}, BRIDGE)
    assert (found.label, found.statement_labels) == ("hallucinated", ("hallucinated",))
    assert found.p == pytest.approx(0.97, abs=0.01)
    assert "Contradicted in meaning: “The bridge was closed to lorries" in found.text
    assert "INCORRECT" in found.text


def test_what_is_carried_is_supported_with_its_probability() -> None:
    found = judged("Lorries were kept off it.", {"lorries": CARRIES}, BRIDGE)
    assert found.label == "supported"
    assert found.p == pytest.approx(0.06, abs=0.01)
    assert "CORRECT" in found.text


def test_a_verdict_against_all_debaters_says_so() -> None:
    turns = [
        Turn(name, name, n, 1, "agree", "hallucinated", "WRONG.") for n, name in enumerate("AB", 1)
    ]
    spoken = [Spoken("supported", 0.2, "One reader finds all of it carried.")]
    against = verdict_text("supported", 0.2, spoken, turns, reached=False)
    assert "Both debaters agree that the statement is wrong. All the evidence" in against
    assert "weighed together, says otherwise" in against
    with_them = verdict_text("hallucinated", 0.9, [replace(spoken[0], label="hallucinated")],
                             turns, reached=True)  # fmt: skip
    assert "otherwise" not in with_them


def test_evidence_about_something_else_leaves_it_open_and_p_is_kept() -> None:
    assert OPEN_FROM < 0.9
    found = judged("Cormorants nest in its arches.", {"lorries": OPEN}, BRIDGE)
    assert (found.label, found.cause) == ("unclear", "not_addressed")
    assert found.p is not None
    assert found.p > 0.5


def test_a_response_is_as_wrong_as_its_worst_statement() -> None:
    texts = ("Lorries were kept off the bridge.", "Cars go over the bridge for free.")
    case = make_case(" ".join(texts))
    starts = (0, len(texts[0]) + 1)
    statements = tuple(
        Statement(n, start, start + len(text), text, text)
        for n, (start, text) in enumerate(zip(starts, texts, strict=True))
    )
    evidence = Evidence({p.id: p for p in (BRIDGE, TOLLS)}, {0: (BRIDGE.id,), 1: (TOLLS.id,)})
    view = CaseView(case, statements, evidence, {})
    judge = BuiltInJudge(ENCODER, ToldReader({"lorries": CARRIES, "toll": CONTRADICTS}), WEIGHTS)
    found = judge.decide(JudgeView(view, Context((), (), ""), (), reached_consensus=False), Stop())
    assert (found.label, found.statement_labels) == ("hallucinated", ("supported", "hallucinated"))
    assert found.p == pytest.approx(0.94, abs=0.01)
    assert "1 of 2 statements is wrong." in found.text


def test_each_readers_view_is_kept_by_name() -> None:
    found = judged("Lorries may use the bridge.", {"lorries": CONTRADICTS}, BRIDGE)
    assert ReaderView("Entailment reader", 0, "hallucinated") in found.readers
    assert [view.reader for view in found.readers] == [
        "Entailment reader", "Rule checker", "Overlap reader",
    ]  # fmt: skip


def test_without_evidence_there_is_no_probability() -> None:
    found = judged("Lorries may use the bridge.", {})
    assert (found.label, found.cause, found.p) == ("unclear", "no_evidence", None)


def test_an_image_that_cannot_be_read_is_its_own_cause() -> None:
    found = judged("Lorries may use it.", {}, BRIDGE, images=("sign.png",))
    assert (found.label, found.cause, found.p) == ("unclear", "image_not_readable", None)
    assert "sign.png" in found.cause_words


def test_a_text_that_says_nothing_to_check_has_no_probability() -> None:
    found = judged("I don't know.", {"lorries": CARRIES}, BRIDGE)
    assert (found.label, found.cause, found.p) == ("unclear", "not_addressed", None)


def test_what_is_hardly_carried_and_contested_by_nobody_is_left_open() -> None:
    never_open = Weights({**WEIGHTS.models, "open": Logistic({}, -9.0)}, {})
    view = make_view(make_case("Famous painters admired its quiet bridge."), (BRIDGE,))
    context = Context((), (BRIDGE.id,), "")
    asked = JudgeView(view, context, (), reached_consensus=False)
    judge = BuiltInJudge(ENCODER, ToldReader({"lorries": OPEN}), never_open)
    found = judge.decide(asked, Stop())
    assert found.p is not None
    assert found.p > 0.5
    assert [view.stance for view in found.readers] == ["unclear"] * 3
    assert (found.label, found.cause) == ("unclear", "not_addressed")
    contested = BuiltInJudge(ENCODER, ToldReader({"lorries": CONTRADICTS}), never_open)
    assert contested.decide(asked, Stop()).label == "hallucinated"


def decided(claim: str, said: Odds, weights: Weights) -> Judgement:
    view = make_view(make_case(claim), (BRIDGE,))
    asked = JudgeView(view, Context((), (BRIDGE.id,), ""), (), reached_consensus=False)
    return BuiltInJudge(ENCODER, ToldReader({"lorries": said}), weights).decide(asked, Stop())


def test_what_is_hardly_carried_and_by_no_reader_is_not_supported() -> None:
    carried = Weights({**WEIGHTS.models, "wrong": Logistic({}, -2.0)}, {})
    found = decided("The bridge keeper had three children.", OPEN, carried)
    assert [view.stance for view in found.readers] == ["unclear"] * 3
    assert (found.label, found.cause) == ("unclear", "not_addressed")
    known = decided("The bridge was closed to lorries.", OPEN, carried)
    assert "supported" in [view.stance for view in known.readers]
    assert known.label == "supported"


def test_a_side_that_was_assigned_is_not_told_as_an_opinion() -> None:
    first = Turn("Ada", "Rule checker", 1, 1, "deny", "hallucinated", "WRONG. So.")
    other = Turn(
        "Ben", "Overlap reader", 2, 1, "deny", "supported", "CORRECT. So.",
        manner="tit_for_tat", assigned="supported",
    )  # fmt: skip
    spoken = [Spoken("hallucinated", 0.9, "A clear contradiction.")]
    text = verdict_text("hallucinated", 0.9, spoken, [first, other], reached=False)
    assert "Rule checker calls it wrong, Overlap reader had to call it correct." in text
