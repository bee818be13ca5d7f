"""A single judge: asked in three styles, once or for a vote of samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from core.agents.llm_judge import SAMPLED_AT
from core.debate.independent import argue_single
from core.llm.call import Asked
from core.llm.prompting import shipped
from core.runtime.errors import ModelError
from core.schema.events import Event
from core.schema.records import Judgement, Plan
from core.schema.roles import CaseView
from core.schema.rosters import DebateOptions
from core.verdict.classifier import load_classifier
from tests.agents.seats import SEAT
from tests.debates import arguing, built_in, desk_roster, kinds
from tests.fakes import FakeDesk, Scripted, make_case, make_passage, make_view

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

    def reply(asked: Asked) -> Scripted:
        number = asked.slot.removeprefix("judge").removesuffix(" again").strip()
        return replies[int(number or 1) - 1]

    desk = FakeDesk(reply)
    debating = arguing(argue_single, view, desk_roster(desk), plan=Plan(options=options), past=past)
    return list(debating.events()), desk


def judgement_of(events: Sequence[Event]) -> Judgement:
    last = events[-1]
    assert last.kind == "judgement_reached"
    return last.judgement


@pytest.mark.parametrize("style", ["", "plain", "thought", "examples"])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_each_style_has_its_prompt(style: str, language: str) -> None:
    view = make_view(make_case(CLAIM, language=language), [REPORT])
    options = DebateOptions(style=style)  # type: ignore[arg-type]
    events, desk = judged_by([WRONG], options, view=view)
    assert judgement_of(events).label == "hallucinated"
    assert [asked.prompt for asked in desk.asked] == [f"{language}/judge_{style or 'plain'}"]
    assert desk.asked[0].call.seat.temperature == SEAT.temperature, "one judgement is not sampled"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_examples_favour_neither_label(language: str) -> None:
    examples = shipped("judge_examples", language).text.split("${claim}")[0]
    assert examples.count("Verdict: 1") == examples.count("Verdict: 0") == 2


def test_of_several_samples_the_label_counts_that_most_give() -> None:
    events, desk = judged_by([RIGHT, WRONG, WRONG], DebateOptions(samples=3))
    judgement = judgement_of(events)
    assert (judgement.label, judgement.p) == ("hallucinated", 2 / 3)
    assert judgement.prose.startswith("Of 3 judgements 2 say hallucinated, 1 supported.")
    assert "The report gives 1931." in judgement.prose
    assert sorted(asked.slot for asked in desk.asked) == ["judge", "judge 2", "judge 3"]
    assert {asked.call.seat.temperature for asked in desk.asked} == {SAMPLED_AT}
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
