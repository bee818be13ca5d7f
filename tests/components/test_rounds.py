"""A debate by rounds: headings while it is spoken, folds where it is long, sides that change."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from components.run.replay import find_landmarks, replay_until, schedule_events
from components.run.run_view import find_open_turns
from components.run.transcript import (
    MAX_UNFOLDED_TURNS,
    OpenTurn,
    collect_asides,
    list_spoken_texts,
    render_rounds,
    split_rounds,
)
from core.debate.colmad import COPMAD as COPMAD
from core.debate.sc_maks import SC_MAKS as SC_MAKS
from core.runtime.concurrency import StopSignal
from core.schema.events import (
    Event,
    JudgementReached,
    RoundSummarised,
    RunStarted,
    TurnFinished,
    TurnStarted,
)
from core.schema.records import Judgement, Plan, Stance, Turn
from core.schema.roles import DebateView, SpeakCallback
from core.schema.rosters import DebateOptions, TurnMode
from core.schema.run_state import RunState, fold_events
from tests.components.speaking import debate_html, under_way
from tests.debates import arguing, seated
from tests.fakes import make_case, make_passage, make_view

NAMES = ("Ada", "Ben", "Cleo")


@dataclass
class Arguer:
    """Argues its assigned side; free to choose, Ada calls it right and all others wrong."""

    name: str
    built_in: bool = False
    rule: str = "argues as the test says"

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        own: Stance = view.assigned or ("supported" if self.name == "Ada" else "hallucinated")
        speak("So.")
        return Turn(view.debater, self.name, view.number, view.round, "deny", own, "So.")


def turn(
    number: int, round_: int = 1, *, name: str = "Ada", assigned: Stance | None = None
) -> Turn:
    stance: Stance = assigned or "hallucinated"
    text = f"WRONG. Words {number}."
    return Turn(
        name, "m", number, round_, "deny", stance, text, manner="compete", assigned=assigned
    )


def long_debate(rounds: int = 8) -> list[Turn]:
    numbers = range(1, 3 * rounds + 1)
    return [turn(n, (n - 1) // 3 + 1, name=NAMES[(n - 1) % 3]) for n in numbers]


def test_who_speaks_stands_under_a_heading_with_what_was_asked_of_them() -> None:
    speaking = under_way(5, "Ada", "DENY, WR", manner="advise", round_=1, about="Ben")
    speaking |= under_way(6, "Cleo", "AGREE, CORRECT. So", manner="attack", round_=1, about="Ada")
    made = debate_html([], speaking)
    assert made.index("Round 1") < made.index("Ada")
    assert "advises: Ben’s answer" in made
    assert "challenges: Ada’s answer" in made
    assert ">agrees</span>" in made
    assert "answers alone" in debate_html([], under_way(1, "Ada", manner="answer", round_=0))


def test_an_assigned_side_is_said_before_the_first_word() -> None:
    made = debate_html([], under_way(1, "Ada", manner="compete", assigned="supported"))
    assert "argues, as assigned, that it is" in made
    assert ">supported</span>" in made
    odd = under_way(1, "Ada", "WRONG. No", manner="compete", assigned="supported")
    assert "although assigned supported" in debate_html([], odd)


def test_a_live_debate_knows_what_was_asked_of_those_who_speak() -> None:
    """As the engine tells it: at the start of each turn, in every phase."""
    case = make_case("The tower is 512 m tall.")
    view = make_view(case, [make_passage("The tower is 412 m tall.")])
    plan = Plan(protocol="sc_maks", options=DebateOptions(rounds=1))
    work = arguing(SC_MAKS.argue, view, seated({n: Arguer(n) for n in NAMES[:2]}), plan=plan)
    begun = [event for event in work.events() if event.kind == "turn_started"]
    kinds = {(one.manner, one.about) for one in begun}
    assert {("answer", ""), ("advise", "Ben"), ("attack", "Ada"), ("reconsider", "")} <= kinds
    told = {one.number: one for one in begun}
    for taken in work.state.progress.turns:
        asked = told[taken.number]
        assert (asked.manner, asked.about, asked.round) == (taken.manner, taken.about, taken.round)


def test_a_round_of_several_phases_is_cut_at_them() -> None:
    manners: tuple[TurnMode, ...] = ("advise", "attack", "reconsider")
    turns = [
        replace(turn(3 * n + place, 1, name=name), manner=manner)
        for n, manner in enumerate(manners)
        for place, name in enumerate(NAMES, start=1)
    ]
    headings = [one.heading for one in split_rounds(turns)]
    assert headings == ["Round 1, advice", "Round 1, challenges", "Round 1, answers again"]
    assert [one.heading for one in split_rounds(turns[:3])] == ["Round 1"]
    mixed = [turns[0], replace(turns[3], number=2), replace(turns[1], number=3)]
    assert [one.heading for one in split_rounds(mixed)] == ["Round 1"]


def test_runs_of_before_say_in_a_replay_what_was_asked() -> None:
    said = turn(1, assigned="supported")
    events: list[Event] = [
        RunStarted(0.5, make_case("a"), Plan(), ()),
        TurnStarted(1.0, "Ada", "m", 1, 1),  # nobody kept more
        TurnFinished(5.0, said, 4.0),
    ]
    _, speaking = replay_until(schedule_events(events, "recorded"), 1.0)
    assert (speaking[1].asked.manner, speaking[1].asked.assigned) == ("compete", "supported")
    assert find_open_turns(events[:2], None)[1].asked.manner == "debate"


@pytest.mark.parametrize("count", [1, MAX_UNFOLDED_TURNS])
def test_a_short_debate_is_not_folded(count: int) -> None:
    assert "<details" not in debate_html(long_debate()[:count])


def test_of_a_long_debate_all_rounds_but_the_last_are_folded() -> None:
    pieces = render_rounds(split_rounds(long_debate()))
    assert len(pieces) == 8
    assert ["<details" in piece for piece in pieces] == [True] * 7 + [False]
    assert "Round 1 · 3 turns · Ada hallucinated" in pieces[0]
    assert "Words 3." in pieces[0]


def test_a_round_in_which_somebody_speaks_is_never_folded() -> None:
    """Two debates side by side are spoken in at once."""
    turns = [one for one in long_debate() if one.number != 2]
    pieces = render_rounds(split_rounds(turns, under_way(2, "Ben", "It", manner="compete")))
    assert "<details" not in pieces[0]
    assert "<details" in pieces[1]


def test_rounds_that_are_over_do_not_change_while_others_are_spoken() -> None:
    """So that one which somebody has unfolded stays so."""
    turns = long_debate()
    before = render_rounds(split_rounds(turns[:-2]))
    after = render_rounds(split_rounds(turns, under_way(25, "Ada", "It", round_=9)))
    assert before[:-1] == after[: len(before) - 1]


@given(st.permutations(range(1, 19)), st.integers(0, 18))
def test_each_turn_stands_once_in_its_order_however_they_end(order: list[int], taken: int) -> None:
    turns = long_debate(6)
    done = [turns[n - 1] for n in order[:taken]]
    speaking: dict[int, OpenTurn] = {}
    for n in order[taken:]:
        speaking |= under_way(n, turns[n - 1].debater, f"Words {n}.", round_=turns[n - 1].round)
    made = debate_html(done, speaking)
    assert re.findall(r"Words (\d+)\.", made) == [str(n) for n in range(1, 19)]


def test_a_round_in_brief_stays_with_its_round() -> None:
    progress = RunState(turns=long_debate())
    progress.add(RoundSummarised(1.0, "Writer", 2, "In brief."))
    pieces = render_rounds(split_rounds(progress.turns), placed=collect_asides(progress))
    assert ["In brief." in piece for piece in pieces].index(True) == 1


def swapped() -> Sequence[Turn]:
    """CopMAD's two debates as the engine numbers them; each turn argues its side."""
    plan = Plan(protocol="copmad", options=DebateOptions(rounds=1, is_swapped=True))
    view = make_view(make_case("The tower is 512 m tall."), [make_passage("It is 412 m tall.")])
    work = arguing(COPMAD.argue, view, seated({n: Arguer(n) for n in NAMES[:2]}), plan=plan)
    assert list(work.events())
    return work.state.progress.turns


def test_where_sides_change_hands_the_second_debate_says_so() -> None:
    first = "First debate: Ada argues that it is supported and Ben argues that it is hallucinated."
    second = (
        "Second debate, the sides change hands: Ada argues that it is hallucinated and Ben argues "
        "that it is supported."
    )
    turns = swapped()
    made = debate_html(turns)
    assert made.index(first) < made.index("Round 1") < made.index(second) < made.index("Round 2")
    texts = list_spoken_texts(RunState(turns=list(turns)))
    assert texts[0].startswith(first)
    assert texts[2].startswith(second)
    one_sided = [one for one in turns if (one.number, one.debater) != (1, "Ada")]
    assert "Second debate" in debate_html(one_sided), "also where a turn was lost"
    alone = [one for one in turns if one.number <= 2]
    assert "cp-sides" not in debate_html(alone)


def test_rounds_and_the_verdict_are_places_to_go_to() -> None:
    events: list[Event] = [RunStarted(100.0, make_case("a"), Plan(), ())]
    for one in long_debate(2):
        events += [
            TurnStarted(100.0 + one.number, one.debater, "m", one.number, one.round),
            TurnFinished(100.5 + one.number, one, 0.5),
        ]
    events.append(JudgementReached(109.0, Judgement("Judge", "hallucinated", "So."), 1.0))
    placed = schedule_events(events, "recorded")
    assert find_landmarks(placed) == {"Round 1": 1.0, "Round 2": 4.0, "The verdict": 9.0}
    progress, speaking = replay_until(placed, find_landmarks(placed)["Round 2"])
    assert len(progress.turns) == 3
    assert [one.asked.debater for one in speaking.values()] == ["Ada"]
    assert fold_events(events).judgement == replay_until(placed, 9.0)[0].judgement
    assert find_landmarks([]) == {}


def page(count: int) -> None:
    """Draw a debate of so many turns by three debaters."""
    from components.run.debate import draw_debate
    from core.schema.records import Turn
    from core.schema.run_state import RunState

    progress = RunState()
    for number in range(1, count + 1):
        debater = ("Ada", "Ben", "Cleo")[(number - 1) % 3]
        stance: Stance = "supported" if debater == "Ben" else "hallucinated"
        progress.turns.append(
            Turn(debater, "m", number, (number - 1) // 3 + 1, "agree", stance, f"Words {number}.")
        )
    draw_debate(progress, "debate")


def opened(count: int) -> AppTest:
    at = AppTest.from_function(page, args=(count,), default_timeout=30).run()
    assert not at.exception
    return at


def shown(at: AppTest, count: int) -> list[int]:
    """The numbers of the turns that are on the page."""
    made = " ".join(block.proto.body for block in at.get("html"))
    return [number for number in range(1, count + 1) if f">Words {number}.</div>" in made]


def drawn(count: int) -> AppTest:
    """The page, with every turn on it once every round is unfolded."""
    at = opened(count)
    for fold in at.expander:
        at.session_state[str(fold.key)] = True
    at.run()
    assert shown(at, count) == list(range(1, count + 1))
    return at


@pytest.mark.parametrize("count", [0, 1, MAX_UNFOLDED_TURNS])
def test_a_short_debate_lies_open(count: int) -> None:
    assert not drawn(count).expander


def test_of_a_long_debate_the_last_round_is_open_and_the_others_say_who_said_what() -> None:
    assert len(drawn(MAX_UNFOLDED_TURNS + 2).expander) == 6
    folds = opened(MAX_UNFOLDED_TURNS + 2).expander
    assert [fold.label for fold in folds[:2]] == [
        f"Round {number} · 3 turns · Ada hallucinated, Ben supported, Cleo hallucinated"
        for number in (1, 2)
    ]
    assert folds[-1].label == "Round 6 · 2 turns · Ada hallucinated, Ben supported"
    assert [fold.proto.expanded for fold in folds] == [False] * 5 + [True]


def test_what_is_folded_is_not_drawn_before_somebody_unfolds_it() -> None:
    count = MAX_UNFOLDED_TURNS + 2
    at = opened(count)
    assert shown(at, count) == [16, 17]
    at.session_state["debate.round.2"] = True
    at.run()
    assert shown(at, count) == [4, 5, 6, 16, 17]


def twice() -> None:
    """Draw a debate in which two turns of each round have one number, as a file may say."""
    from components.run.debate import draw_debate
    from core.schema.records import Quote, Turn
    from core.schema.run_state import RunState

    quote = (Quote("As it says.", "verified", 100.0, "s", "s", None, 0, 11),)
    draw_debate(
        RunState(
            turns=[
                Turn(name, "m", number, number, "agree", "unclear", f"Words {name}{number}.", quote)
                for number in range(1, 10)
                for name in ("Ada", "Ben")
            ]
        ),
        "debate",
    )


def test_two_turns_of_one_number_are_both_drawn() -> None:
    at = AppTest.from_function(twice, default_timeout=30).run()
    for fold in at.expander:
        at.session_state[str(fold.key)] = True
    at.run()
    assert not at.exception
    made = " ".join(block.proto.body for block in at.get("html"))
    names = [f"{name}{number}" for number in range(1, 10) for name in ("Ada", "Ben")]
    assert all(made.count(f">Words {name}.</div>") == 1 for name in names)
