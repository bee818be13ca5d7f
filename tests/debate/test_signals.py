"""Debate-hacking signals: made-up quotes, unwarranted certainty, misread tasks, deaf insistence."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.debate.protocols import PROTOCOLS
from core.debate.signals import AgentAccuracy, DebateSignal, SignalKind, count_signals, find_signals
from core.schema.records import Plan, Quote, QuoteStatus, RoleAssignment, Stance, Turn
from core.schema.run_state import RunState
from tests.debates import arguing, built_in
from tests.fakes import make_case, make_passage, make_view

FACT = make_passage("The Halden Bridge is 412 m long.", number=1)
CASE = make_case("The Halden Bridge is 600 m long.", question="How long is the bridge?")
FOUND = Quote("The Halden Bridge is 412 m long", "verified")
FORGED = Quote("the mayor had it measured twice", "not_found", 0.0)
MODELS = tuple(RoleAssignment(f"debater {name}", "m", False, "", "") for name in ("Ada", "Ben"))


def turn(
    number: int,
    debater: str,
    stance: Stance,
    text: str = "The bridge is what it is.",
    *quotes: Quote,
    confidence: float | None = None,
) -> Turn:
    return Turn(
        debater, f"agent {debater}", number, 1, "agree", stance, text, quotes,
        confidence=confidence, manner="answer",
    )  # fmt: skip


def of(
    *turns: Turn, pasts: dict[str, AgentAccuracy] | None = None, language: str = "en"
) -> tuple[DebateSignal, ...]:
    progress = RunState(
        case=replace(CASE, language=language),
        turns=list(turns),
        passages={0: (FACT,)},
        roles=MODELS,
    )
    return find_signals(progress, pasts)


def kinds(
    *turns: Turn, pasts: dict[str, AgentAccuracy] | None = None
) -> list[tuple[int, SignalKind]]:
    return [(signal.turn, signal.kind) for signal in of(*turns, pasts=pasts)]


def test_an_honest_debate_gives_no_signal() -> None:
    one = turn(1, "Ada", "hallucinated", "WRONG. The bridge is 412 m long.", FOUND, confidence=0.9)
    other = turn(2, "Ben", "hallucinated", "WRONG. So it is: 412 m.", FOUND)
    assert of(one, other) == ()


def test_a_quote_that_stands_nowhere_is_named() -> None:
    (signal,) = of(turn(3, "Ada", "hallucinated", "WRONG. “the mayor …”", FORGED))
    assert (signal.turn, signal.debater, signal.kind) == (3, "Ada", "quote_not_found")
    assert signal.words == "“the mayor had it measured twice” stands in no source."


@pytest.mark.parametrize("words", ["The Halden Bridge is 600 m long", "How long is the bridge"])
def test_words_of_claim_or_question_are_no_evidence_and_no_forgery(words: str) -> None:
    assert not of(turn(1, "Ada", "supported", "CORRECT.", Quote(words, "not_found", 0.0)))


def test_who_quotes_anothers_made_up_words_has_not_made_them_up() -> None:
    first = turn(1, "Ada", "hallucinated", f"WRONG. “{FORGED.text}”.", FORGED)
    second = turn(2, "Ben", "supported", f"“{FORGED.text}” stands nowhere in the bridge.", FORGED)
    assert kinds(first, second) == [(1, "quote_not_found")]


@pytest.mark.parametrize(
    ("confidence", "quotes", "is_flagged"),
    [
        (0.9, (FOUND,), False),
        (0.9, (FOUND, FORGED), True),
        (0.5, (FORGED,), False),
        (0.9, (), True),
        (None, (), False),
    ],
)
def test_without_a_record_certainty_is_held_against_the_quotes(
    confidence: float | None, quotes: tuple[Quote, ...], is_flagged: bool
) -> None:
    said = turn(1, "Ada", "hallucinated", "WRONG. The bridge.", *quotes, confidence=confidence)
    assert ((1, "overconfident") in kinds(said)) == is_flagged


def test_with_a_record_certainty_is_held_against_it() -> None:
    said = turn(1, "Ada", "hallucinated", "WRONG. The bridge.", FOUND, confidence=0.95)
    poor, good = AgentAccuracy(12, 20, 0.78), AgentAccuracy(19, 20, 0.99)
    (signal,) = of(said, pasts={"agent Ada": poor})
    assert signal.words == "Sounds 95% sure, but was right in 12 of 20 answered cases."
    assert of(said, pasts={"agent Ada": good}) == ()
    assert of(said, pasts={"agent Ben": poor}) == ()
    own = {"agent Ada (Ada)": good, "agent Ada (Ben)": poor}  # one model in two seats
    assert of(said, pasts=own) == ()
    assert of(said, pasts=own | {"agent Ada (Ada)": poor}) == (signal,)


@pytest.mark.parametrize(
    "words",
    ["This is undoubtedly a long bridge.", "It is beyond any doubt a bridge.", "桥毫无疑问很长。"],
)
def test_words_of_certainty_are_a_tone(words: str) -> None:
    assert (1, "overconfident") in kinds(turn(1, "Ada", "hallucinated", words))


@pytest.mark.parametrize(
    "words",
    ["It is not certainly the bridge.", "The bridge, says the source, “is certainly long”."],
)
def test_hedges_and_quotations_are_none(words: str) -> None:
    assert not of(turn(1, "Ada", "hallucinated", words))


def test_whoever_leaves_it_open_is_not_overconfident() -> None:
    assert not of(turn(1, "Ada", "unclear", "OPEN. The bridge.", confidence=0.95))


def test_a_debate_of_something_else_is_noticed() -> None:
    elsewhere = (
        "WRONG. Photosynthesis converts sunlight, water and carbon dioxide into glucose inside "
        "chloroplasts, releasing oxygen as leaves breathe."
    )
    assert kinds(turn(1, "Ada", "hallucinated", elsewhere)) == [(1, "task_misread")]
    near = elsewhere.replace("glucose", "a bridge")
    assert not of(turn(1, "Ada", "hallucinated", near))
    assert not of(turn(1, "Ada", "hallucinated", "WRONG. I agree with what Ben said."))
    assert not of(turn(1, "Ada", "hallucinated", elsewhere), language="de")
    assert not of(turn(1, "Ada", "hallucinated", elsewhere), language="zh")
    assert not of(turn(1, "Ada", "hallucinated", elsewhere, FOUND))


def test_so_it_is_in_chinese() -> None:
    elsewhere = "错误。植物的光合作用把阳光、水和二氧化碳转化为葡萄糖，并释放出氧气供动物呼吸使用。"
    said = turn(1, "Ada", "hallucinated", elsewhere)
    case = make_case("哈尔登大桥全长六百米。", language="zh")
    assert find_signals(RunState(case=case, turns=[said]))[0].kind == "task_misread"
    near = replace(said, text=f"{elsewhere}大桥不是这样。")
    assert find_signals(RunState(case=case, turns=[near])) == ()


def test_a_stance_that_had_to_be_inferred_is_said() -> None:
    bare = replace(turn(1, "Ada", "supported", "AGREE. The bridge it is."), manner="debate")
    (signal,) = of(bare)
    assert signal.kind == "task_misread"
    assert not of(replace(bare, text="AGREE, CORRECT. The bridge it is."))
    reader = replace(bare, debater="Cleo")  # a built-in reader's stance is what it computes
    assert not of(reader)


def test_who_leaves_the_assigned_side_is_noticed() -> None:
    said = replace(turn(1, "Ada", "supported"), manner="compete", assigned="hallucinated")
    (signal,) = of(said)
    assert (signal.kind, "WRONG" in signal.words) == ("task_misread", True)
    assert not of(replace(said, stance="hallucinated"))


def test_insisting_on_quotes_that_were_not_found() -> None:
    first = turn(1, "Ada", "hallucinated", "WRONG. The bridge.", FORGED)
    again = turn(3, "Ada", "hallucinated", "WRONG. The bridge, I insist.")
    assert (3, "unmoved") in kinds(first, again)
    assert (3, "unmoved") not in kinds(first, replace(again, quotes=(FOUND,)))
    assert (3, "unmoved") not in kinds(first, replace(again, stance="supported"))


def test_not_hearing_an_answer() -> None:
    first = turn(1, "Ada", "supported", "CORRECT. The bridge.")
    answer = turn(2, "Ben", "hallucinated", "WRONG. It is 412 m.", FOUND)
    again = turn(3, "Ada", "supported", "CORRECT. The bridge all the same.")
    (signal,) = of(first, answer, again)
    assert (signal.kind, "Ben answered" in signal.words) == ("unmoved", True)
    assert not of(first, replace(answer, stance="supported"), again)
    assert not of(replace(first, quotes=(FOUND,)), answer, replace(again, quotes=(FOUND,)))
    sides = [replace(t, assigned=t.stance, manner="compete") for t in (first, answer, again)]
    assert not of(*sides)  # who was assigned a side cannot move


@pytest.mark.parametrize("protocol", ["ceda", "ensemble"])
@pytest.mark.parametrize("claim", [CASE.response, "The Halden Bridge was built by monks."])
def test_readers_who_only_quote_and_measure_give_none(protocol: str, claim: str) -> None:
    view = make_view(make_case(claim), [FACT])
    roster = built_in()
    debating = arguing(PROTOCOLS[protocol].argue, view, roster, plan=Plan(protocol))
    assert list(debating.events())
    progress = debating.state.progress
    progress.case, progress.passages = view.case, {0: (FACT,)}
    assert find_signals(progress) == ()


def test_they_are_counted_by_debater() -> None:
    found = of(
        turn(1, "Ada", "hallucinated", "WRONG.", FORGED, confidence=0.9),
        turn(2, "Ben", "hallucinated", "WRONG. The bridge.", FOUND),
    )
    assert {name: dict(own) for name, own in count_signals(found).items()} == {
        "Ada": {"quote_not_found": 1, "overconfident": 1}
    }


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["Ada", "Ben"]),
            st.sampled_from(["supported", "hallucinated", "unclear"]),
            st.text(max_size=60),
            st.lists(st.tuples(st.text(max_size=20), st.sampled_from(["verified", "not_found"]))),
            st.one_of(st.none(), st.floats(0, 1)),
        ),
        max_size=5,
    )
)
def test_whatever_is_said_each_signal_names_a_turn_of_its_debater(
    said: list[tuple[str, Stance, str, list[tuple[str, QuoteStatus]], float | None]],
) -> None:
    turns = [
        turn(n, who, stance, text, *(Quote(q, status) for q, status in quotes), confidence=sure)
        for n, (who, stance, text, quotes, sure) in enumerate(said, 1)
    ]
    spoke = {(t.number, t.debater) for t in turns}
    assert all((s.turn, s.debater) in spoke and s.words for s in of(*turns))
