"""Debates that outgrow a window of 8,192 tokens go on to their end, whatever the way to argue."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from core.agents.rosters import make_single_model_roster
from core.debate.protocols import PROTOCOLS, get_plan_protocol
from core.llm.call import ModelRequest
from core.llm.limits import count_message_tokens
from core.runtime.errors import ModelError
from core.schema.events import Event
from core.schema.records import Plan
from core.schema.roles import CaseView
from core.schema.rosters import AgentConfig, DebateOptions
from core.store import open_store
from tests.agents.seats import SEAT, many_passages
from tests.debate.scripts import prompt_of, reply_to
from tests.debates import arguing, desk_roster, kinds
from tests.fakes import FakeDesk, Scripted, make_case, make_passage, make_view
from tests.llm.loopback import Asked as Request
from tests.llm.loopback import Reply as Answer
from tests.llm.loopback import loopback
from tests.test_with_models import Bench, bench_in, sheet_at

ROUNDS = 8
DEBATERS = {"society": 6}  # who hear one answer of each
LONG = {
    "en": "So high it is by the report, and nobody has said otherwise. ",
    "zh": "报告是这样写的，没有人另有说法。",
}
LEFT_OUT = {"en": "left out)", "zh": "次发言已省略）"}
SHORTENED = {"en": "(shortened)", "zh": "（有删节）"}
OUTGREW = "The debate outgrew"
VIEWS = {
    "en": make_view(make_case("The tower is 512 m tall."), many_passages(30)),
    "zh": make_view(
        replace(make_case("这座塔高五百一十二米。"), language="zh"),
        [make_passage("报告说，" + "这座塔高四百一十二米。" * 8, number=n) for n in range(30)],
    ),
}
NAMES = [name for name, p in PROTOCOLS.items() if {"rounds", "turns"} & set(p.options)]
Reply = Callable[[ModelRequest], Scripted]


def plan_of(name: str) -> Plan:
    """A check of many rounds, or turns."""
    return Plan(name, max_turns=20, options=DebateOptions(rounds=ROUNDS))


def at_length(language: str) -> Reply:
    """The script, with debaters and summaries as long as their seat allows."""
    longest = "".join(LONG[language] for _ in range(100))
    per_token = 3 if language == "en" else 0.6

    def answer(asked: ModelRequest) -> Scripted:
        prompt = asked.prompt.split("/")[-1]
        text = reply_to(prompt, asked.role.removeprefix("debater "), asked.slot)
        room = int(per_token * asked.call.agent.max_tokens) - len(text)
        if prompt == "summary":
            return f"{asked.slot} begins. {longest[:room]}"
        if not asked.role.startswith("debater"):
            return text
        first, _, rest = text.partition(". ")
        return f"{first}. It is {asked.slot}. {longest[:room]} {rest}"

    return answer


def argued(
    name: str,
    desk: FakeDesk,
    view: CaseView,
    *,
    debaters: int = 2,
    seat: AgentConfig = SEAT,
    past: Sequence[Event] = (),
    told: list[Event] | None = None,
) -> list[Event]:
    """The events of a check with models behind that desk; `told` keeps them where it fails."""
    plan, roster = plan_of(name), desk_roster(desk, debaters=debaters, seat=seat)
    events = told if told is not None else []
    for event in arguing(
        get_plan_protocol(plan).argue, view, roster, plan=plan, past=past
    ).events():
        events.append(event)
    return events


@pytest.mark.parametrize("language", VIEWS)
@pytest.mark.parametrize("name", NAMES)
def test_a_long_debate_comes_to_its_end_in_a_small_window(name: str, language: str) -> None:
    view, wide = VIEWS[language], replace(SEAT, window=200_000)
    desk, free = FakeDesk(at_length(language)), FakeDesk(at_length(language))
    debaters = DEBATERS.get(name, 2)
    events = argued(name, desk, view, debaters=debaters)
    argued(name, free, view, debaters=debaters, seat=wide)
    assert "judgement_reached" in kinds(events)
    whole = {asked.slot: text_of(asked) for asked in free.asked}
    assert sorted(asked.slot for asked in desk.asked) == sorted(whole), "all goes its whole length"
    for asked in desk.asked:
        shown = text_of(asked)
        assert (
            count_message_tokens(asked.call.messages) + asked.call.agent.max_tokens <= SEAT.window
        )
        assert "[P1]" in shown or "[P1]" not in whole[asked.slot], asked.slot
        assert newest_in(whole[asked.slot]) in shown, asked.slot
        if "turn" in asked.cut:
            assert LEFT_OUT[language] in shown or SHORTENED[language] in shown, asked.slot
    outgrown = [e.message for e in events if e.kind == "problem_met" and OUTGREW in e.message]
    assert len(outgrown) == 1, "said once"


def text_of(asked: ModelRequest) -> str:
    """All that the model is shown."""
    return "\n".join(message.text for message in asked.call.messages)


def newest_in(text: str) -> str:
    """How the last turn that is shown begins; empty where none is."""
    found = re.findall(r"^\d+\. [A-Z][^:\n]*: [^\n]{20}", text, re.MULTILINE)
    return str(found[-1]) if found else ""


def test_earlier_rounds_of_sc_maks_stand_in_brief_in_every_prompt_after_them() -> None:
    desk = FakeDesk(at_length("en"))
    argued("sc_maks", desk, VIEWS["en"])
    a_round = 6  # turns of two debaters: advice, attacks, answers
    for asked in desk.asked:
        kind, _, number = asked.slot.partition(" ")
        held = {"turn": (int(number or 0) - 3) // a_round, "summary": int(number or 0) - 1}
        before = held.get(kind, ROUNDS)
        assert (f"Before, in brief: summary {before} begins." in text_of(asked)) == (before > 0)


@pytest.mark.parametrize("name", NAMES)
def test_after_a_resume_only_what_is_left_is_asked(name: str) -> None:
    """Also where turns are left out: prompts are the same, so that replies are found again."""
    answer = at_length("en")
    whole = FakeDesk(answer)
    argued(name, whole, VIEWS["en"])
    slots = [asked.slot for asked in whole.asked]
    late = slots[-3]
    first, told = FakeDesk(failing(answer, late)), list[Event]()
    with pytest.raises(ModelError, match="out of order"):
        argued(name, first, VIEWS["en"], told=told)
    rest = FakeDesk(answer)
    argued(name, rest, VIEWS["en"], past=told)
    answered = Counter(asked.slot for asked in first.asked if asked.slot != late)
    assert answered + Counter(asked.slot for asked in rest.asked) == Counter(slots)
    digests = {asked.slot: asked.call.digest for asked in whole.asked}
    assert all(asked.call.digest == digests[asked.slot] for asked in (*first.asked, *rest.asked))


def failing(answer: Reply, slot: str) -> Reply:
    """The script, but that the service is out of order when that call is made."""

    def fails(asked: ModelRequest) -> Scripted:
        return ModelError("The service is out of order.") if asked.slot == slot else answer(asked)

    return fails


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    """A home with one case for the tests over a real server."""
    return bench_in(tmp_path_factory.mktemp("long") / "home")


def over_the_wire(asked: Request) -> Answer:
    """Long turns for whoever is asked; who that is stands in the prompt."""
    debater = next((name for name in ("Ada", "Ben") if f"You are {name}" in asked.prompt), "")
    text = reply_to(prompt_of(asked), debater, "")
    return Answer(f"{text}\n{LONG['en'] * 16}" if debater else text)


def test_paid_calls_of_a_long_debate_are_found_again_over_a_real_server(bench: Bench) -> None:
    is_ill = threading.Event()

    def answer(asked: Request) -> Answer:
        judges = prompt_of(asked).startswith("judge")
        return Answer(status=400) if judges and is_ill.is_set() else over_the_wire(asked)

    is_ill.set()
    with loopback(answer) as server:
        sheet = sheet_at(server, seconds=30)
        for role, seat in list(sheet.agents_by_role()):
            sheet = sheet.with_seat(role, replace(seat, window=4096))  # fewer words to wait for
        run, _ = bench.run(sheet, protocol="colmad", options=DebateOptions(rounds=ROUNDS))
        assert (run.status, run.cause) == ("finished", "agent_failed")
        is_ill.clear()
        asked = len(server.asked)
        assert bench.jobs.resume(run.id, "Mira")
        run, progress = bench.ended(run.id)
        later = [prompt_of(one) for one in server.asked[asked:]]
    assert run.label == "supported"
    assert later == ["judge_collaborate"]
    roles = {call.role.split()[0] for call in progress.calls.values() if "turn" in call.cut}
    assert roles == {"debater", "judge"}
    assert sum(OUTGREW in problem.message for problem in progress.problems) == 1


def test_a_window_that_is_far_too_small_is_refused_until_the_roster_says_another(
    bench: Bench,
) -> None:
    """Nothing is asked before; Resume goes by the windows that the roster says by then."""
    with loopback(over_the_wire) as server:
        sheet = replace(sheet_at(server, seconds=30), name="ours")
        small = sheet.with_seat("judge", replace(sheet.judge, window=1024))
        run, _ = bench.run(small, protocol="colmad")
        assert (run.status, run.label, server.asked) == ("failed", None, [])
        (failed,) = [e for e in bench.stored(run.id)[1] if e.kind == "run_failed"]
        assert "judge's model openai/loopback takes 1,024 tokens" in failed.message
        with open_store(bench.home) as store:
            store.rosters.save(sheet, "Mira", 1.0)
        assert bench.jobs.resume(run.id, "Mira")
        run, _ = bench.ended(run.id)
        assert (run.status, run.label) == ("finished", "supported")


def test_windows_are_taken_over_for_the_same_models_alone() -> None:
    sheet = make_single_model_roster("openai/tiny-talker")
    other = sheet.with_seat("judge", replace(sheet.judge, model="openai/other", window=9_000))
    wide = replace(sheet.debaters[0].seat, window=32_000, max_tokens=7)
    found = sheet.with_windows_of(other.with_seat("debater Ada", wide))
    assert found.judge == sheet.judge
    assert found.debaters[0].seat == replace(sheet.debaters[0].seat, window=32_000)
