"""Protocols as they are seated, told of in the docs, and refused where a window is too small."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.agents.rosters import build_roster, make_single_model_roster
from core.debate import PROTOCOL_NAMES
from core.debate.protocols import (
    OPTION_FLAGS,
    PROTOCOLS,
    assign_judge,
    get_plan_protocol,
    list_options,
    require_context_window,
)
from core.llm.call import ModelRequest
from core.llm.prompting import PromptBook
from core.pipeline.cost_estimate import CheckSize, plan_calls
from core.runtime.errors import InputError, ModelError
from core.schema.events import Event
from core.schema.records import Case, Plan
from core.schema.rosters import AgentConfig, DebateOptions, DebaterConfig, RosterConfig
from tests.agents.seats import SEAT, workplace
from tests.debate.scripts import reply_to
from tests.debates import arguing, desk_roster
from tests.fakes import FakeDesk, Scripted, make_case, make_passage, make_view
from tests.test_architecture import ROOT

CASE = make_case("The tower is 512 m tall.")
SHEET = make_single_model_roster("openai/tiny-talker")
MARGIN = 400  # what several debaters' shortest turns take, where two are counted


def reseated(role: str, **fields: int) -> RosterConfig:
    """The sheet of one model, with other numbers on the seat of that role."""
    return SHEET.with_seat(role, replace(dict(SHEET.agents_by_role())[role], **fields))  # type: ignore[arg-type]


def refused(plan: Plan, sheet: RosterConfig, case: Case = CASE) -> str:
    """Why such a check is refused; empty where it is not."""
    try:
        require_context_window(plan, sheet, case, PromptBook())
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_what_ships_has_room_for_a_claim(name: str) -> None:
    assert refused(Plan(name, options=DebateOptions(rounds=8)), SHEET) == ""
    assert refused(Plan(name), RosterConfig("builtin"), make_case("word " * 20_000)) == ""


def needed(told: str) -> int:
    """The tokens that the question is said to need."""
    found = re.search(r"form needs about ([\d,]+) and its answer up to", told)
    assert found, told
    return int(found[1].replace(",", ""))


def test_who_is_asked_with_which_window_and_what_it_needs_is_named() -> None:
    told = refused(Plan("colmad"), reseated("judge", window=1200))
    who = "Nothing was asked. The judge's model openai/tiny-talker takes 1,200 tokens; "
    assert told.startswith(who)
    least = 800 + needed(told)
    assert 1200 < least < 2400
    assert refused(Plan("colmad"), reseated("judge", window=least - 1))
    assert refused(Plan("colmad"), reseated("judge", window=least)) == ""


@pytest.mark.parametrize(
    ("name", "role", "is_refused"),
    [
        ("colmad", "debater Ben", True),
        ("single", "debater Ben", False),  # nobody argues
        ("society", "judge", False),  # nobody judges
        ("colmad", "context writer", False),
        ("sc_maks", "context writer", True),
        ("ceda", "context writer", True),
        ("ensemble", "span extractor", True),
    ],
)
def test_only_those_are_looked_at_who_will_be_asked(name: str, role: str, is_refused: bool) -> None:
    assert bool(refused(Plan(name), reseated(role, window=900))) == is_refused


def test_debaters_who_are_not_seated_are_not_looked_at() -> None:
    third = SHEET.debaters[0].seat
    three = replace(
        SHEET,
        debaters=(
            *SHEET.debaters,
            replace(SHEET.debaters[0], name="Cy", seat=replace(third, window=900)),
        ),
    )
    assert refused(Plan("mad"), three) == refused(Plan("copmad"), three) == ""
    assert "debater Cy's model" in refused(Plan("society"), three)


def test_of_a_single_judge_s_styles_only_the_chosen_one_counts() -> None:
    small = reseated("judge", window=900)
    plain, examples = (
        needed(refused(Plan("single", options=DebateOptions(style=style)), small))
        for style in ("", "examples")
    )
    assert plain < examples
    between = reseated("judge", window=800 + plain)
    assert refused(Plan("single"), between) == ""
    assert refused(Plan("single", options=DebateOptions(style="examples")), between)


def test_a_text_that_is_too_long_for_the_window_is_refused() -> None:
    assert "shorten the text" in refused(Plan("ceda"), SHEET, make_case("It stands. " * 3000))


def of_window(window: int) -> RosterConfig:
    """All who argue, judge and write have that window."""
    seat = replace(SEAT, window=window, max_tokens=300)
    sheet = RosterConfig("ours", judge=seat, context_writer=seat)
    for debater in sheet.debaters:
        sheet = sheet.with_seat(f"debater {debater.name}", seat)
    return sheet


@settings(max_examples=12)
@given(st.sampled_from(["colmad", "society", "mad", "sc_maks"]), st.integers(700, 3000))
def test_what_is_refused_could_not_have_been_asked_and_the_rest_goes_on(
    name: str, window: int
) -> None:
    """With a window for all seats: a check either is refused or comes to its end."""

    def answer(asked: ModelRequest) -> Scripted:
        prompt = asked.prompt.removeprefix("en/")
        text = reply_to(prompt, asked.role.removeprefix("debater "), asked.slot)
        return f"{text} " + "It says so in the report. " * 90 if "DENY" in text else text

    seat, sheet = replace(SEAT, window=window, max_tokens=300), of_window(window)
    view = make_view(CASE, [make_passage("The tower is 412 m tall.", number=1)])
    plan = Plan(name, options=DebateOptions(rounds=3))
    desk, told = FakeDesk(answer), list[Event]()
    roster = desk_roster(desk, debaters=3, seat=seat)
    try:
        told.extend(arguing(get_plan_protocol(plan).argue, view, roster, plan=plan).events())
        has_ended = any(event.kind == "judgement_reached" for event in told)
    except ModelError:
        has_ended = False
    if refused(plan, sheet, view.case):
        assert not has_ended
    elif not refused(plan, of_window(window - MARGIN), view.case):
        assert has_ended


ONE, OTHER, THIRD = (
    AgentConfig("openai/one", max_tokens=150),
    AgentConfig("openai/two"),
    AgentConfig("openai/three"),
)
MODELS = RosterConfig("two", debaters=(DebaterConfig("Ada", ONE), DebaterConfig("Ben", OTHER)))


@pytest.mark.parametrize("protocol", ["colmad", "copmad", "adaptive"])
def test_the_first_debaters_model_judges_where_no_model_does(protocol: str) -> None:
    judge = assign_judge(Plan(protocol), MODELS).judge
    assert judge.model == ONE.model
    assert judge.max_tokens == MODELS.judge.max_tokens  # a turn's length would cut its reasons


def test_another_model_in_the_judges_seat_keeps_it() -> None:
    sheet = replace(MODELS, judge=THIRD)
    assert assign_judge(Plan("colmad"), sheet) == sheet


@pytest.mark.parametrize("protocol", ["ceda", "single", "audit", "nothing"])
def test_other_protocols_change_no_seat(protocol: str) -> None:
    assert assign_judge(Plan(protocol), MODELS) == MODELS


def test_built_in_readers_are_judged_by_the_built_in_judge() -> None:
    assert assign_judge(Plan("colmad"), RosterConfig("builtin")) == RosterConfig("builtin")
    mixed = replace(MODELS, debaters=(MODELS.debaters[0], DebaterConfig("Cleo", AgentConfig())))
    assert assign_judge(Plan("colmad"), mixed) == mixed


def test_the_calls_that_are_expected_have_that_judge() -> None:
    steps = list(plan_calls(MODELS, CheckSize(100, protocol="colmad"), is_most=False))
    models = [step.agent.model for step in steps for _ in range(step.calls) if step.agent.model]
    asked = PROTOCOLS["colmad"].calls(2, Plan("colmad"))
    assert sorted(models) == ["openai/one"] * 4 + ["openai/two"] * 3
    assert len(models) == asked.total


def test_the_trace_names_that_judge() -> None:
    place = workplace([])
    roster = build_roster(assign_judge(Plan("colmad"), MODELS), place.work)
    used = {role.role: role for role in roster.roles_used(lambda text: text[:6])}
    assert (used["judge"].agent, used["judge"].built_in) == ("one", False)


DOCS = (ROOT / "docs/protocols.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells
    for cells in (
        [cell.strip() for cell in line.strip("|").split("|")] for line in DOCS.splitlines()
    )
    if re.fullmatch(r"`\w+`", cells[0])
}


def test_every_protocol_is_told_of_and_no_other() -> None:
    assert set(ROWS) == set(PROTOCOL_NAMES)
    assert set(re.findall(r"^\*\*`(\w+)`\*\*:", DOCS, re.MULTILINE)) == set(PROTOCOL_NAMES)


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_calls_are_those_of_the_formula(name: str) -> None:
    counted = [PROTOCOLS[name].calls(debaters, Plan(name)) for debaters in (2, 3, 4)]
    assert ROWS[name][2:5] == [f"{calls.total} ({calls.chain})" for calls in counted]


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_options_are_those_that_are_taken(name: str) -> None:
    told = set(re.findall(r"--[a-z]+", ROWS[name][5]))
    own = PROTOCOLS[name].options
    assert told == {"--seed" if one == "seed" else OPTION_FLAGS[one] for one in own
                    if one == "seed" or one in OPTION_FLAGS}  # fmt: skip
    assert set(own) <= set(list_options(Plan(name)))
