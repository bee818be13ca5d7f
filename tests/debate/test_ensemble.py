"""An ensemble: everybody answers alone, most decide, and a coin is said to be one."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.reply_parser import argument_in
from core.debate.independent import argue_ensemble, coin
from core.debate.votes import tally
from core.llm.call import Asked
from core.runtime.errors import ReplyError, ReviewError
from core.schema.events import Event
from core.schema.records import Cause, Judgement, Label, Plan, Stance
from core.schema.roles import CaseView
from core.schema.rosters import DebateOptions
from core.verdict.classifier import load_classifier
from tests.debates import arguing, built_in, desk_roster, kinds, seated, turns
from tests.fakes import (
    FakeDesk,
    Line,
    ScriptedDebater,
    ScriptedJudge,
    make_case,
    make_passage,
    make_view,
)

REPORT = make_passage("The bridge was opened in 1931.", number=1, source="report.pdf")
VIEW = make_view(make_case("The bridge opened in 1926."), [REPORT])
LOST = ReplyError("mumbled", reply="mm")
SAID: dict[Stance, Line] = {
    "supported": ("agree", "supported", "CORRECT. It is borne out."),
    "hallucinated": ("deny", "hallucinated", "WRONG. It was 1931."),
    "unclear": ("deny", "unclear", "OPEN. It does not say."),
}


def answered(
    *stances: Stance | None, seed: int = 0, past: Sequence[Event] = (), view: CaseView = VIEW
) -> tuple[list[Event], list[ScriptedDebater]]:
    """The run's events where these were the answers, None for one that is lost."""
    lines: list[Line | ReviewError] = [SAID[s] if s else LOST for s in stances]
    debaters = [ScriptedDebater(f"m{n}", [line]) for n, line in enumerate(lines)]
    judge = ScriptedJudge("supported", "nobody asked")
    roster = seated({f"D{n}": debater for n, debater in enumerate(debaters)}, judge)
    plan = Plan(options=DebateOptions(seed=seed))
    events = list(arguing(argue_ensemble, view, roster, plan=plan, past=past).events())
    assert not judge.views, "an ensemble has no judge"
    return events, debaters


def judgement_of(events: Sequence[Event]) -> Judgement:
    last = events[-1]
    assert last.kind == "judgement_reached"
    return last.judgement


@pytest.mark.parametrize("label", ["supported", "hallucinated"])
def test_two_who_agree_give_the_label(label: Label) -> None:
    judgement = judgement_of(answered(label, label)[0])
    assert (judgement.label, judgement.p) == (label, float(label == "hallucinated"))
    assert "coin" not in judgement.prose


def test_nobody_hears_another() -> None:
    _, debaters = answered("supported", "hallucinated", "supported")
    views = [debater.views[0] for debater in debaters]
    assert [(view.manner, view.number, view.turns) for view in views] == [
        ("answer", n, ()) for n in (1, 2, 3)
    ]
    assert all(view.share == set(VIEW.evidence.passages) for view in views), "nothing is shared out"


def test_two_who_differ_leave_it_to_a_coin_that_says_so_and_falls_the_same_again() -> None:
    first = judgement_of(answered("supported", "hallucinated")[0])
    again = judgement_of(answered("supported", "hallucinated")[0])
    assert first == again
    assert first.label == coin(0, VIEW.case)
    assert first.p == 0.5
    assert f"a coin was thrown: {first.label}" in first.prose


def test_the_coin_is_fair_and_its_seed_matters() -> None:
    thrown = [[coin(seed, make_case(f"It is {n} m.")) for n in range(1000)] for seed in (0, 1)]
    for throws in thrown:
        assert 420 < throws.count("hallucinated") < 580
    first, again = (make_case("It is 1 m.", id=name) for name in ("one", "other"))
    assert coin(0, first) == coin(0, again), "an id is new each time that a row is read"
    assert 420 < sum(one == other for one, other in zip(*thrown, strict=True)) < 580


def test_most_of_all_decide_and_open_or_lost_answers_are_no_votes() -> None:
    events, _ = answered("hallucinated", "supported", "hallucinated")
    judgement = judgement_of(events)
    assert (judgement.label, judgement.p) == ("hallucinated", 2 / 3)
    events, _ = answered("unclear", None, "supported")
    judgement = judgement_of(events)
    assert (judgement.label, judgement.cause, judgement.p) == ("unclear", "not_settled", 0.25)
    assert "Of 3 debaters 0 say hallucinated, 1 supported, 2 gave no label." in judgement.text
    assert [event.message for event in events if event.kind == "problem_met"] == [
        "D1's turn 2 is lost: mumbled"
    ]


@pytest.mark.parametrize(
    ("stances", "p"),
    [
        (("hallucinated", "unclear"), 0.75),
        (("hallucinated", None), 1.0),
        (("hallucinated", "supported", "unclear"), 0.5),
        (("hallucinated", "supported", None), 0.5),
        (("supported", "supported", "unclear", None), 1 / 6),
    ],
)
def test_no_coin_and_no_minority_makes_a_label_of_silence(
    stances: Sequence[Stance | None], p: float
) -> None:
    judgement = judgement_of(answered(*stances)[0])
    assert (judgement.label, judgement.cause) == ("unclear", "not_settled")
    assert judgement.p == pytest.approx(p)
    assert "coin" not in judgement.text


def test_of_four_who_cancel_out_a_coin_decides() -> None:
    judgement = judgement_of(answered("supported", "supported", "hallucinated", "hallucinated")[0])
    assert (judgement.label, judgement.p) == (coin(0, VIEW.case), 0.5)
    assert "a coin was thrown" in judgement.prose


@pytest.mark.parametrize(
    ("stances", "cause"),
    [((None, None), "unreadable_reply"), (("unclear", None), "not_settled")],
)
def test_without_a_vote_there_is_no_label(stances: Sequence[Stance | None], cause: Cause) -> None:
    judgement = judgement_of(answered(*stances)[0])
    assert (judgement.label, judgement.cause, judgement.p) == ("unclear", cause, None)


def test_all_answer_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=10)

    def reply(_: Asked) -> str:
        meeting.wait()
        return "WRONG. It was 1931.\nConfidence: 80"

    desk = FakeDesk(reply)
    debating = arguing(argue_ensemble, VIEW, desk_roster(desk, debaters=3))
    events = list(debating.events())
    assert {asked.prompt for asked in desk.asked} == {"en/answer"}
    assert judgement_of(events).label == "hallucinated"
    assert [turn.confidence for turn in turns(events)] == [0.8] * 3


def test_the_built_in_readers_vote() -> None:
    events = list(arguing(argue_ensemble, VIEW, built_in()).events())
    assert kinds(events).count("turn_finished") == 3
    assert judgement_of(events).label == "hallucinated"
    nothing = make_view(make_case("The bridge opened in 1926."), [])
    judgement = judgement_of(list(arguing(argue_ensemble, nothing, built_in()).events()))
    assert (judgement.label, judgement.cause) == ("unclear", "no_evidence")


@pytest.mark.parametrize(
    "stances",
    [
        ("supported", "supported"),
        ("hallucinated", "hallucinated"),
        ("hallucinated", "supported", "hallucinated"),
        ("supported", "hallucinated", "supported"),
    ],
)
def test_the_classifier_follows_the_vote(stances: Sequence[Stance]) -> None:
    judgement = judgement_of(answered(*stances)[0])
    classifier = load_classifier(Path("nowhere"), "seed")
    assert classifier.verdict(judgement).label == judgement.label


@pytest.mark.parametrize("seed", range(4))
def test_the_classifier_follows_the_coin(seed: int) -> None:
    judgement = judgement_of(answered("supported", "hallucinated", seed=seed)[0])
    classifier = load_classifier(Path("nowhere"), "seed")
    assert classifier.verdict(judgement).label == judgement.label


def test_the_reason_is_told_without_the_lines_that_are_told_elsewhere() -> None:
    desk = FakeDesk(lambda _: "**WRONG**. it was 1931.\nConfidence: 80\nDoubt: another bridge")
    events = list(arguing(argue_ensemble, VIEW, desk_roster(desk, debaters=2)).events())
    told = judgement_of(events).prose
    assert told.endswith("): It was 1931.")
    assert argument_in("AGREE, WRONG. I keep it.\nWords: “1926” -> “1931”") == "I keep it."
    assert argument_in("OPEN.") == "OPEN."
    assert argument_in("Wrong figures stand there.") == "Wrong figures stand there."


LABELS = st.lists(st.sampled_from(["supported", "hallucinated", "unclear", None]))
OTHER: dict[Label, Label] = {
    "supported": "hallucinated", "hallucinated": "supported", "unclear": "unclear",
}  # fmt: skip


@given(LABELS)
def test_the_label_is_what_more_than_half_say_and_neither_is_favoured(
    labels: Sequence[Label | None],
) -> None:
    votes = tally(labels)
    turned = tally(label and OTHER[label] for label in labels)
    assert turned.label == OTHER[votes.label]
    assert votes.cast + votes.open + votes.lost == votes.asked == len(labels)
    most = [
        label for label in ("supported", "hallucinated") if 2 * labels.count(label) > len(labels)
    ]
    assert [votes.label] == (most or ["unclear"])


@given(LABELS, st.sampled_from(["unclear", None]), st.integers(0, 9))
def test_silence_and_faults_make_no_label(
    labels: Sequence[Label | None], silence: Label | None, place: int
) -> None:
    said = tally(labels)
    quieter = tally([*labels[:place], silence, *labels[place + 1 :]])
    louder = tally([*labels, silence])
    missing = tally(labels, len(labels) + 1)
    for votes in (quieter, louder, missing):
        assert votes.label in (said.label, "unclear")


@given(LABELS)
def test_p_is_on_the_side_of_the_label_and_who_was_lost_is_absent_from_it(
    labels: Sequence[Label | None],
) -> None:
    votes = tally(labels)
    assert tally([*labels, None]).p == votes.p == tally(labels, len(labels) + 2).p
    assert (votes.p is None) == (votes.cast == 0)
    if votes.p is None or votes.p == 0.5:
        assert votes.label == "unclear"
    elif votes.label != "unclear":
        assert votes.label == ("hallucinated" if votes.p > 0.5 else "supported")


def test_one_of_three_decides_nothing_whatever_keeps_the_others_silent() -> None:
    assert tally(["hallucinated", "unclear", "unclear"]).label == "unclear"
    assert tally(["hallucinated", "unclear", "unclear"]).p == pytest.approx(2 / 3)
    assert tally(["hallucinated", None, None]).label == "unclear"
    assert tally(["hallucinated", "hallucinated", "unclear"]).label == "hallucinated"


def test_a_tie_is_of_those_who_all_gave_a_label() -> None:
    assert tally(["hallucinated", "supported"]).is_tie
    assert not tally(["hallucinated", "supported", "unclear"]).is_tie
    assert not tally(["hallucinated", "supported"], 3).is_tie
    assert not tally([]).is_tie


def test_it_is_told_in_words() -> None:
    words = tally(["hallucinated", "hallucinated", "supported"], 4).words("judgement")
    assert words == "Of 4 judgements 2 say hallucinated, 1 supported, 1 gave no label."
