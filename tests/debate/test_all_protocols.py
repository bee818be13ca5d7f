"""What every way to argue has in common: it ends, its calls are counted, Resume repeats nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from core.agents.rosters import make_single_model_roster
from core.debate import PROTOCOL_NAMES
from core.debate.protocols import PROTOCOLS, get_plan_protocol, require_options, require_protocol
from core.debate.state import ProtocolCalls
from core.llm.call import ModelRequest
from core.llm.limits import estimate_tokens
from core.pipeline.cost_estimate import CheckSize, plan_calls
from core.runtime.errors import InputError, ModelError
from core.schema.events import Event
from core.schema.records import Plan
from core.schema.rosters import READER_PROTOCOLS, DebateOptions, RosterConfig
from core.store.ledger import RETRY_SLOT_SUFFIX
from tests.agents.seats import SEAT
from tests.debate.scripts import USUAL, reply_to, way_name, ways
from tests.debates import arguing, built_in, desk_roster, judgement_of, kinds
from tests.fakes import FakeDesk, Scripted, make_case, make_passage, make_view

FACTS = make_passage("The tower is 412 m tall.", number=1)
VIEW = make_view(make_case("The tower is 512 m tall."), [FACTS])
BESIDE = make_view(make_case("The tower is 512 m tall."), [])
WAYS = ways()
LONG_WAYS = [
    (name, DebateOptions(rounds=8)) for name, p in PROTOCOLS.items() if "rounds" in p.options
]
CHARACTERS = 3  # of a token in those replies
CONTEXT = "en/context"  # nobody stands in for its writer here
DEBATERS = (2, 3)
Way = tuple[str, DebateOptions]


def plan_of(way: Way) -> Plan:
    """The plan of a check that goes that way, for three turns of CEDA."""
    return Plan(way[0], max_turns=3, options=way[1])


def reply(asked: ModelRequest) -> Scripted:
    """The script, for a desk in memory."""
    debater = asked.role.removeprefix("debater ")
    return reply_to(asked.prompt.removeprefix("en/"), debater, asked.slot)


def argued(
    way: Way,
    desk: FakeDesk,
    *,
    debaters: int = 2,
    past: Sequence[Event] = (),
    told: list[Event] | None = None,
) -> list[Event]:
    """The events of a check with models behind that desk; `told` keeps them where it fails."""
    plan, roster = plan_of(way), desk_roster(desk, debaters=debaters)
    events = told if told is not None else []
    for event in arguing(
        get_plan_protocol(plan).argue, VIEW, roster, plan=plan, past=past
    ).events():
        events.append(event)
    return events


def counted(asked: Sequence[ModelRequest]) -> tuple[int, int, int]:
    """(turns, judgements, all): a reply that is asked for again counts once."""
    roles = Counter(
        one.role.split()[0] for one in asked if not one.slot.endswith(RETRY_SLOT_SUFFIX)
    )
    return roles["debater"], roles["judge"], roles.total()


def test_every_name_has_its_protocol() -> None:
    assert tuple(PROTOCOLS) == PROTOCOL_NAMES
    assert all(protocol.name == name for name, protocol in PROTOCOLS.items())


@pytest.mark.parametrize("way", [way for way in WAYS if way[0] in READER_PROTOCOLS], ids=way_name)
def test_the_built_in_roster_comes_to_the_label_of_the_evidence(way: Way) -> None:
    plan = plan_of(way)
    events = list(arguing(get_plan_protocol(plan).argue, VIEW, built_in(), plan=plan).events())
    assert judgement_of(events).label == "hallucinated"
    assert all(0 <= (e.turn.confidence or 0) <= 1 for e in events if e.kind == "turn_finished")


@pytest.mark.parametrize("name", READER_PROTOCOLS)
def test_the_built_in_roster_makes_no_label_of_no_evidence(name: str) -> None:
    plan = plan_of((name, USUAL.get(name, DebateOptions())))
    events = list(arguing(get_plan_protocol(plan).argue, BESIDE, built_in(), plan=plan).events())
    judgement = judgement_of(events)
    assert judgement.label == "unclear"
    assert judgement.cause
    assert judgement.cause_words


@pytest.mark.parametrize("name", ["ensemble", "society", "mamm_refine", "sc_maks"])
def test_where_most_decide_an_image_that_nobody_could_read_bars_every_label(name: str) -> None:
    desk, view = FakeDesk(reply), replace(VIEW, unreadable_images=("chart.png",))
    run = arguing(PROTOCOLS[name].argue, view, desk_roster(desk), plan=Plan(name))
    judgement = judgement_of(list(run.events()))
    assert (judgement.label, judgement.cause) == ("unclear", "image_not_readable")
    assert not desk.asked


@pytest.mark.parametrize("name", sorted(set(PROTOCOL_NAMES) - set(READER_PROTOCOLS)))
def test_what_readers_could_only_act_out_is_refused_with_what_to_do(name: str) -> None:
    words = f"found {name}: built-in readers say the same in every round.*language models"
    mixed = RosterConfig("mixed").with_seat("debater Ada", SEAT)
    for sheet in (None, mixed):
        with pytest.raises(InputError, match=words):
            require_protocol(Plan(name, sheet=sheet))
    require_protocol(Plan(name, sheet=make_single_model_roster("openai/gpt-4o-mini")))


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_models_are_asked_exactly_as_often_as_is_counted(way: Way) -> None:
    for debaters in DEBATERS:
        desk = FakeDesk(reply)
        argued(way, desk, debaters=debaters)
        asked = get_plan_protocol(plan_of(way)).calls(debaters, plan_of(way))
        assert counted(desk.asked) == (asked.turns, asked.judgements, asked.total)
        assert asked.chain <= asked.total


@pytest.mark.parametrize("way", [*WAYS, *LONG_WAYS], ids=way_name)
def test_what_debaters_read_is_no_more_than_was_said_to_be_the_most(way: Way) -> None:
    """Every turn is as long as its seat allows, and is shown again to whoever hears it."""
    desk, plan = FakeDesk(at_length), plan_of(way)
    wide = replace(SEAT, window=200_000)
    roster = desk_roster(desk, debaters=3, seat=wide)
    list(arguing(get_plan_protocol(plan).argue, VIEW, roster, plan=plan).events())
    sheet = RosterConfig("ours")
    for debater in sheet.debaters:
        sheet = sheet.with_seat(f"debater {debater.name}", wide)
    size = CheckSize(len(VIEW.case.response), max_turns=3, protocol=way[0], options=plan.options)
    most = sum(s.calls * s.prompt for s in plan_calls(sheet, size, True) if not s.agent.is_built_in)
    asked = [one for one in desk.asked if one.role.startswith("debater")]
    assert sum(estimate_tokens(m.text) for one in asked for m in one.call.messages) <= most


def at_length(asked: ModelRequest) -> Scripted:
    """The script, with debaters who fill all the room that they have."""
    text = str(reply(asked))
    if not asked.role.startswith("debater") or asked.prompt == "en/revise":
        return text
    first, _, rest = text.partition(". ")
    room = CHARACTERS * asked.call.agent.max_tokens - len(text)
    return f"{first}. {('So high it is. ' * room)[:room]} {rest}"


@pytest.mark.parametrize("name", PROTOCOL_NAMES)
def test_what_changes_the_calls_is_said_to_be_an_option(name: str) -> None:
    def asked(options: DebateOptions) -> ProtocolCalls:
        return PROTOCOLS[name].calls(2, Plan(name, options=options))

    own = PROTOCOLS[name].options
    if asked(DebateOptions(rounds=2)) != asked(DebateOptions(rounds=3)):
        assert "rounds" in own or name == "adaptive"
    if asked(DebateOptions(samples=2)) != asked(DebateOptions(samples=3)):
        assert "samples" in own
    if PROTOCOLS[name].calls(2, Plan(max_turns=3)) != PROTOCOLS[name].calls(2, Plan(max_turns=4)):
        assert "turns" in own or name == "adaptive"


@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_nothing_is_asked_twice_after_a_resume(way: Way) -> None:
    """The service fails at one call after the other; each time the rest is asked, and no more."""
    whole = FakeDesk(reply)
    label = judgement_of(argued(way, whole)).label
    slots = [asked.slot for asked in whole.asked]
    for slot in slots:
        first, told = FakeDesk(failing(slot)), list[Event]()
        with pytest.raises(ModelError, match="out of order"):
            argued(way, first, told=told)
        rest = FakeDesk(reply)
        events = argued(way, rest, past=told)
        answered = Counter(asked.slot for asked in first.asked if asked.slot != slot)
        assert answered + Counter(asked.slot for asked in rest.asked) == Counter(slots), slot
        assert judgement_of(events).label == label
        numbers = [e.turn.number for e in (*told, *events) if e.kind == "turn_finished"]
        assert len(numbers) == len(set(numbers))


def failing(slot: str) -> Callable[[ModelRequest], Scripted]:
    """The script, but that the service is out of order when that call is made."""

    def answer(asked: ModelRequest) -> Scripted:
        return ModelError("The service is out of order.") if asked.slot == slot else reply(asked)

    return answer


USELESS = {
    "empty": "",
    "beside the point": "Hm, hard to say.",
    "JSON that breaks off": '{"facts": [',
}


@pytest.mark.parametrize("useless", USELESS)
@pytest.mark.parametrize("way", WAYS, ids=way_name)
def test_of_useless_replies_no_label_is_made(way: Way, useless: str) -> None:
    desk = FakeDesk(lambda asked: reply(asked) if asked.prompt == CONTEXT else USELESS[useless])
    events = argued(way, desk)
    judgement = judgement_of(events)
    assert (judgement.label, judgement.cause) == ("unclear", "unreadable_reply")
    assert "turn_finished" not in kinds(events)
    assert any(event.kind == "problem_met" for event in events)


@pytest.mark.parametrize("options", [DebateOptions(rounds=-5), DebateOptions(rounds=10**8)])
def test_rounds_beyond_all_measure_are_refused_wherever_they_come_from(
    options: DebateOptions,
) -> None:
    with pytest.raises(InputError, match="0 to 20 rounds and samples"):
        require_options(Plan("colmad", options=options))
