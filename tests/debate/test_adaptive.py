"""Adaptive: a debate is held only where the single judge is unsure or the readers contradict it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import pytest

from core.debate.independent import reasons
from core.debate.protocols import PROTOCOLS, manners_of, options_of, require_options, then_of
from core.llm.call import Asked
from core.runtime.errors import InputError
from core.schema.events import DebateDecided, Event
from core.schema.records import Cause, Judgement, Plan
from core.schema.roles import CaseView
from core.schema.rosters import DebateOptions
from tests.debates import arguing, built_in, desk_roster, kinds
from tests.fakes import FakeDesk, Scripted, make_case, make_passage, make_view

REPORT = make_passage("The bridge was opened in 1931.", number=1, source="report.pdf")
VIEW = make_view(make_case("The bridge opened in 1926."), [REPORT])
WRONG, RIGHT = "The report gives 1931.\nVerdict: 0", "The report bears it out.\nVerdict: 1"
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

    def reply(asked: Asked) -> Scripted:
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


def judgement_of(events: Sequence[Event]) -> Judgement:
    last = events[-1]
    assert last.kind == "judgement_reached"
    return last.judgement


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
def test_no_debate_makes_up_for_what_is_missing(cause: Cause) -> None:
    assert reasons(Judgement("J", "unclear", "No verdict.", cause=cause)) == ()
    assert reasons(Judgement("J", "unclear", "No verdict.", cause="not_addressed"))


def test_without_evidence_nobody_is_asked() -> None:
    events, desk = adaptive([], view=make_view(make_case("It rises."), []))
    assert judgement_of(events).cause == "no_evidence"
    assert not desk.asked


@pytest.mark.parametrize(
    ("p", "is_near"), [(0.05, False), (0.29, False), (0.31, True), (0.5, True), (0.72, False)]
)
def test_p_near_one_half_is_not_sure(p: float, is_near: bool) -> None:
    label = "hallucinated" if p >= 0.5 else "supported"
    assert bool(reasons(Judgement("J", label, "It is so.", p=p))) == is_near  # type: ignore[arg-type]


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
        then = then_of(Plan("adaptive", options=DebateOptions(then=name)))
        assert then is not None
        assert then.name not in ("adaptive", "single")
        assert then.name == name or name in ("adaptive", "single")
    assert then_of(Plan("ceda")) is None
    plan = Plan("adaptive", options=DebateOptions(then="ensemble"))
    assert manners_of(plan)[0] == ("answer",)
    assert options_of(plan) == ("samples", "style", "then", "seed")


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
