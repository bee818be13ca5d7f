"""Answers given independently: a single judge, an ensemble, and a debate only when unsure."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.agents.llm_judge import SAMPLING_TEMPERATURE
from core.agents.reply_parser import parse_argument
from core.debate.independent import argue_ensemble, argue_single, flip_coin, list_debate_reasons
from core.debate.protocols import (
    PROTOCOLS,
    get_follow_up_debate,
    list_modes,
    list_options,
    require_options,
)
from core.debate.votes import count_votes
from core.llm.call import ModelRequest
from core.llm.prompting import load_shipped_prompt
from core.runtime.errors import InputError, ModelError, ReplyError, ReviewError
from core.schema.events import DebateDecided, Event
from core.schema.records import Judgement, Label, Plan, Stance, UnclearCause
from core.schema.roles import CaseView
from core.schema.rosters import DebateOptions
from core.verdict.classifier import load_classifier
from tests.agents.seats import SEAT
from tests.debates import arguing, built_in, desk_roster, judgement_of, kinds, seated, turns
from tests.fakes import (
    FakeDesk,
    Line,
    Scripted,
    ScriptedDebater,
    ScriptedJudge,
    make_case,
    make_passage,
    make_view,
)
from tests.waiting import PATIENCE_SECONDS

CLAIM = "The bridge opened in 1926."
REPORT = make_passage("The bridge was opened in 1931.", number=1, source="report.pdf")
VIEW = make_view(make_case(CLAIM), [REPORT])
WRONG, RIGHT = "The report gives 1931.\nVerdict: 0", "The report bears it out.\nVerdict: 1"


def judged_by(
    replies: Sequence[Scripted],
    options: DebateOptions,
    *,
    past: Sequence[Event] = (),
    view: CaseView = VIEW,
) -> tuple[list[Event], FakeDesk]:
    """The run's events and what was asked; the reply to “judge 3” is the third."""

    def reply(asked: ModelRequest) -> Scripted:
        number = asked.slot.removeprefix("judge").removesuffix(" again").strip()
        return replies[int(number or 1) - 1]

    desk = FakeDesk(reply)
    debating = arguing(argue_single, view, desk_roster(desk), plan=Plan(options=options), past=past)
    return list(debating.events()), desk


@pytest.mark.parametrize("style", ["", "plain", "thought", "examples"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_style_has_its_prompt(style: str, language: str) -> None:
    view = make_view(make_case(CLAIM, language=language), [REPORT])
    options = DebateOptions(style=style)  # type: ignore[arg-type]
    events, desk = judged_by([WRONG], options, view=view)
    assert judgement_of(events).label == "hallucinated"
    assert [asked.prompt for asked in desk.asked] == [f"{language}/judge_{style or 'plain'}"]
    assert desk.asked[0].call.agent.temperature == SEAT.temperature, "one judgement is not sampled"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_examples_favour_neither_label(language: str) -> None:
    examples = load_shipped_prompt("judge_examples", language).text.split("${claim}")[0]
    assert examples.count("Verdict: 1") == examples.count("Verdict: 0") == 2


def test_of_several_samples_the_label_counts_that_most_give() -> None:
    events, desk = judged_by([RIGHT, WRONG, WRONG], DebateOptions(samples=3))
    judgement = judgement_of(events)
    assert (judgement.label, judgement.p) == ("hallucinated", 2 / 3)
    assert judgement.prose.startswith("Of 3 judgements 2 say hallucinated, 1 supported.")
    assert "The report gives 1931." in judgement.prose
    assert sorted(asked.slot for asked in desk.asked) == ["judge", "judge 2", "judge 3"]
    assert {asked.call.agent.temperature for asked in desk.asked} == {SAMPLING_TEMPERATURE}
    assert kinds(events).count("judgement_sampled") == 3
    costs = [e.cost for e in events if e.kind == "judgement_sampled"]
    assert costs == [0.001] * 3, "each costs its own call"


def test_an_unreadable_sample_counts_for_no_label() -> None:
    mumbled = "It is hard to say."
    events, _ = judged_by([mumbled, RIGHT, RIGHT, RIGHT, WRONG], DebateOptions(samples=5))
    judgement = judgement_of(events)
    assert (judgement.label, judgement.p) == ("supported", 1 / 4)
    assert "1 gave no label" in judgement.prose
    told = [e for e in events if e.kind == "problem_met"]
    assert [event.reply for event in told] == [mumbled]
    assert told[0].message.endswith("So it counts for no label.")


@pytest.mark.parametrize(
    ("said", "p"),
    [((RIGHT, WRONG), 0.5), (("Hm.", RIGHT, RIGHT, WRONG), 1 / 3), ((RIGHT, "Hm.", "Hm."), 0.0)],
)
def test_without_a_majority_of_all_samples_nothing_is_settled(
    said: Sequence[str], p: float
) -> None:
    events, _ = judged_by(said, DebateOptions(samples=len(said)))
    judgement = judgement_of(events)
    assert (judgement.label, judgement.cause, judgement.p) == ("unclear", "not_settled", p)
    assert "Neither label has the majority" in judgement.cause_words


def test_samples_that_all_say_nothing_are_no_label() -> None:
    events, _ = judged_by(["Hm.", "Well."], DebateOptions(samples=2))
    judgement = judgement_of(events)
    assert (judgement.label, judgement.cause) == ("unclear", "unreadable_reply")


def test_without_evidence_nobody_is_asked() -> None:
    view = make_view(make_case(CLAIM), [])
    events, desk = judged_by([], DebateOptions(samples=3), view=view)
    assert judgement_of(events).cause == "no_evidence"
    assert not desk.asked


def test_a_service_that_fails_keeps_what_others_said_and_resume_asks_for_the_rest() -> None:
    options = DebateOptions(samples=3)
    desk = FakeDesk(lambda asked: ModelError("down") if asked.slot == "judge 2" else WRONG)
    roster = desk_roster(desk)
    debating = arguing(argue_single, VIEW, roster, plan=Plan(options=options))
    with pytest.raises(ModelError, match="down"):
        list(debating.events())
    events: list[Event] = list(debating.state.progress.samples.values())
    assert sorted(debating.state.progress.samples) == [1, 3]
    rest, again = judged_by([RIGHT] * 3, options, past=events)
    assert [asked.slot for asked in again.asked] == ["judge 2"]
    judgement = judgement_of(rest)
    assert (judgement.label, judgement.p) == ("hallucinated", 2 / 3)


def test_the_built_in_judge_is_asked_once_and_that_is_said() -> None:
    state = arguing(argue_single, VIEW, built_in(), plan=Plan(options=DebateOptions(samples=5)))
    events = list(state.events())
    assert kinds(events) == ["problem_met", "judgement_reached"]
    problem = events[0]
    assert problem.kind == "problem_met"
    assert "asked once instead of 5 times" in problem.message
    assert judgement_of(events).readers


@pytest.mark.parametrize("replies", [[WRONG] * 3, [RIGHT] * 3, [WRONG, WRONG, RIGHT]])
def test_the_classifier_follows_the_vote(replies: list[Scripted]) -> None:
    events, _ = judged_by(replies, DebateOptions(samples=3))
    judgement = judgement_of(events)
    verdict = load_classifier(Path("nowhere"), "seed").verdict(judgement)
    assert verdict.label == judgement.label


REPLIES = {
    "en/context": '{"facts": [], "conflicts": [], "shares": {"Ada": ["P1"]}, "summary": "1931."}',
    "en/debate": "DENY, WRONG. It was 1931.",
    "en/judge": WRONG,
}
ARGUE = PROTOCOLS["adaptive"].argue


def adaptive(
    alone: Sequence[Scripted],
    *,
    samples: int = 0,
    spare: bool = False,
    past: Sequence[Event] = (),
    view: CaseView = VIEW,
) -> tuple[list[Event], FakeDesk]:
    """An adaptive check in which the single judge says this, and a debate finds against it."""
    left = list(alone)

    def reply(asked: ModelRequest) -> Scripted:
        if asked.prompt.endswith("judge_plain"):
            return left.pop(0)
        return REPLIES[asked.prompt]

    desk = FakeDesk(reply)
    plan = Plan(max_turns=3, options=DebateOptions(samples=samples, then="ceda"))
    debating = arguing(ARGUE, view, desk_roster(desk, spare=spare), plan=plan, past=past)
    events = list(debating.events())
    assert not left, "the single judge was to be asked more often"
    return events, desk


def decided(events: Sequence[Event]) -> DebateDecided:
    (found,) = [event for event in events if event.kind == "debate_decided"]
    return found


def test_a_sure_judge_is_enough() -> None:
    events, desk = adaptive([WRONG])
    assert kinds(events) == [
        "model_called", "judgement_sampled", "debate_decided", "judgement_reached",
    ]  # fmt: skip
    assert (decided(events).is_needed, decided(events).then) == (False, "ceda")
    assert judgement_of(events).label == "hallucinated"
    assert len(desk.asked) == 1


def test_samples_that_divide_are_argued_about() -> None:
    events, desk = adaptive([WRONG, RIGHT, WRONG], samples=3)
    assert decided(events).is_needed
    assert "p = 0.67" in decided(events).why
    assert "turn_finished" in kinds(events)
    assert judgement_of(events).label == "hallucinated"
    assert desk.asked[-1].prompt == "en/judge", "the debate's judge has the last word"
    events, desk = adaptive([WRONG] * 3, samples=3)
    assert not decided(events).is_needed
    assert judgement_of(events).p == 1.0


def test_the_built_in_readers_may_contradict_the_judge() -> None:
    events, _ = adaptive([RIGHT], spare=True)
    assert decided(events).is_needed
    assert decided(events).why == "Built-in judge calls it hallucinated."
    events, _ = adaptive([WRONG], spare=True)
    assert not decided(events).is_needed


def test_an_unreadable_judge_is_argued_about() -> None:
    events, _ = adaptive(["Hm.", "Hm."])
    assert decided(events).is_needed
    assert "left it open" in decided(events).why


@pytest.mark.parametrize("cause", ["no_evidence", "image_not_readable"])
def test_no_debate_makes_up_for_what_is_missing(cause: UnclearCause) -> None:
    assert list_debate_reasons(Judgement("J", "unclear", "No verdict.", cause=cause)) == ()
    assert list_debate_reasons(Judgement("J", "unclear", "No verdict.", cause="not_addressed"))


def test_adaptive_without_evidence_asks_nobody() -> None:
    events, desk = adaptive([], view=make_view(make_case("It rises."), []))
    assert judgement_of(events).cause == "no_evidence"
    assert not desk.asked


@pytest.mark.parametrize(
    ("p", "is_near"), [(0.05, False), (0.29, False), (0.31, True), (0.5, True), (0.72, False)]
)
def test_p_near_one_half_is_not_sure(p: float, is_near: bool) -> None:
    label = "hallucinated" if p >= 0.5 else "supported"
    assert bool(list_debate_reasons(Judgement("J", label, "It is so.", p=p))) == is_near  # type: ignore[arg-type]


def test_the_built_in_roster_argues_only_about_what_is_not_plain() -> None:
    plan = Plan(options=DebateOptions(samples=4, then="ceda"))
    events = list(arguing(ARGUE, VIEW, built_in(), plan=plan).events())
    assert not decided(events).is_needed
    assert judgement_of(events).label == "hallucinated"
    beside = make_passage("The café serves excellent soup.", number=1)
    view = make_view(make_case("The bridge opened in 1926."), [beside])
    events = list(arguing(ARGUE, view, built_in(), plan=plan).events())
    assert decided(events).is_needed
    assert judgement_of(events).label == "unclear"


def test_what_it_goes_on_to_may_be_chosen_and_is_never_itself() -> None:
    for name in PROTOCOLS:
        then = get_follow_up_debate(Plan("adaptive", options=DebateOptions(then=name)))
        assert then is not None
        assert then.name not in ("adaptive", "single")
        assert then.name == name or name in ("adaptive", "single")
    assert get_follow_up_debate(Plan("ceda")) is None
    plan = Plan("adaptive", options=DebateOptions(then="ensemble"))
    assert list_modes(plan)[0] == ("answer",)
    assert list_options(plan) == ("samples", "style", "then", "seed")


@pytest.mark.parametrize(
    ("protocol", "options", "found"),
    [
        ("ceda", DebateOptions(samples=3), "Expected no --samples with protocol ceda"),
        ("audit", DebateOptions(is_swapped=True), "nothing can be chosen of it"),
        ("single", DebateOptions(then="ceda"), "it has --samples, --style."),
        ("adaptive", DebateOptions(then="single"), "found “single”"),
        ("adaptive", DebateOptions(then="ensemble", is_swapped=True), "Expected no --swap"),
    ],
)
def test_what_a_protocol_does_not_have_is_refused(
    protocol: str, options: DebateOptions, found: str
) -> None:
    with pytest.raises(InputError, match=re.escape(found)):
        require_options(Plan(protocol, options=options))


def test_what_a_protocol_has_and_any_seed_are_taken() -> None:
    require_options(Plan("adaptive", options=DebateOptions(0, 5, "thought", True, 7, "ceda")))
    for name in PROTOCOLS:
        require_options(Plan(name, options=DebateOptions(seed=3)))


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
    assert first.label == flip_coin(0, VIEW.case)
    assert first.p == 0.5
    assert f"a coin was thrown: {first.label}" in first.prose


def test_the_coin_is_fair_and_its_seed_matters() -> None:
    thrown = [[flip_coin(seed, make_case(f"It is {n} m.")) for n in range(1000)] for seed in (0, 1)]
    for throws in thrown:
        assert 420 < throws.count("hallucinated") < 580
    first, again = (make_case("It is 1 m.", id=name) for name in ("one", "other"))
    assert flip_coin(0, first) == flip_coin(0, again), "an id is new each time that a row is read"
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
    assert (judgement.label, judgement.p) == (flip_coin(0, VIEW.case), 0.5)
    assert "a coin was thrown" in judgement.prose


@pytest.mark.parametrize(
    ("stances", "cause"),
    [((None, None), "unreadable_reply"), (("unclear", None), "not_settled")],
)
def test_without_a_vote_there_is_no_label(
    stances: Sequence[Stance | None], cause: UnclearCause
) -> None:
    judgement = judgement_of(answered(*stances)[0])
    assert (judgement.label, judgement.cause, judgement.p) == ("unclear", cause, None)


def test_all_answer_at_the_same_time() -> None:
    meeting = threading.Barrier(3, timeout=PATIENCE_SECONDS)

    def reply(_: ModelRequest) -> str:
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
def test_the_classifier_follows_the_ensemble(stances: Sequence[Stance]) -> None:
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
    assert parse_argument("AGREE, WRONG. I keep it.\nWords: “1926” -> “1931”") == "I keep it."
    assert parse_argument("OPEN.") == "OPEN."
    assert parse_argument("Wrong figures stand there.") == "Wrong figures stand there."


LABELS = st.lists(st.sampled_from(["supported", "hallucinated", "unclear", None]))
OTHER: dict[Label, Label] = {
    "supported": "hallucinated", "hallucinated": "supported", "unclear": "unclear",
}  # fmt: skip


@given(LABELS)
def test_the_label_is_what_more_than_half_say_and_neither_is_favoured(
    labels: Sequence[Label | None],
) -> None:
    votes = count_votes(labels)
    turned = count_votes(label and OTHER[label] for label in labels)
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
    said = count_votes(labels)
    quieter = count_votes([*labels[:place], silence, *labels[place + 1 :]])
    louder = count_votes([*labels, silence])
    missing = count_votes(labels, len(labels) + 1)
    for votes in (quieter, louder, missing):
        assert votes.label in (said.label, "unclear")


@given(LABELS)
def test_p_is_on_the_side_of_the_label_and_who_was_lost_is_absent_from_it(
    labels: Sequence[Label | None],
) -> None:
    votes = count_votes(labels)
    assert count_votes([*labels, None]).p == votes.p == count_votes(labels, len(labels) + 2).p
    assert (votes.p is None) == (votes.cast == 0)
    if votes.p is None or votes.p == 0.5:
        assert votes.label == "unclear"
    elif votes.label != "unclear":
        assert votes.label == ("hallucinated" if votes.p > 0.5 else "supported")


def test_one_of_three_decides_nothing_whatever_keeps_the_others_silent() -> None:
    assert count_votes(["hallucinated", "unclear", "unclear"]).label == "unclear"
    assert count_votes(["hallucinated", "unclear", "unclear"]).p == pytest.approx(2 / 3)
    assert count_votes(["hallucinated", None, None]).label == "unclear"
    assert count_votes(["hallucinated", "hallucinated", "unclear"]).label == "hallucinated"


def test_a_tie_is_of_those_who_all_gave_a_label() -> None:
    assert count_votes(["hallucinated", "supported"]).is_tie
    assert not count_votes(["hallucinated", "supported", "unclear"]).is_tie
    assert not count_votes(["hallucinated", "supported"], 3).is_tie
    assert not count_votes([]).is_tie


def test_it_is_told_in_words() -> None:
    words = count_votes(["hallucinated", "hallucinated", "supported"], 4).words("judgement")
    assert words == "Of 4 judgements 2 say hallucinated, 1 supported, 1 gave no label."
