"""A long debate is folded by rounds, so that somebody finds the last one; a short one lies open."""

from __future__ import annotations

import pytest
from streamlit.testing.v1 import AppTest

from components.run.transcript import MOST_UNFOLDED


def page(count: int) -> None:
    """Draw a debate of so many turns by three debaters."""
    from components.run.debate import draw_debate
    from core.schema.progress import Progress
    from core.schema.records import Stance, Turn

    progress = Progress()
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


@pytest.mark.parametrize("count", [0, 1, MOST_UNFOLDED])
def test_a_short_debate_lies_open(count: int) -> None:
    assert not drawn(count).expander


def test_of_a_long_debate_the_last_round_is_open_and_the_others_say_who_said_what() -> None:
    assert len(drawn(MOST_UNFOLDED + 2).expander) == 6
    folds = opened(MOST_UNFOLDED + 2).expander
    assert [fold.label for fold in folds[:2]] == [
        f"Round {number} · 3 turns · Ada hallucinated, Ben supported, Cleo hallucinated"
        for number in (1, 2)
    ]
    assert folds[-1].label == "Round 6 · 2 turns · Ada hallucinated, Ben supported"
    assert [fold.proto.expanded for fold in folds] == [False] * 5 + [True]


def test_what_is_folded_is_not_drawn_before_somebody_unfolds_it() -> None:
    count = MOST_UNFOLDED + 2
    at = opened(count)
    assert shown(at, count) == [16, 17]
    at.session_state["debate.round.2"] = True
    at.run()
    assert shown(at, count) == [4, 5, 6, 16, 17]


def twice() -> None:
    """Draw a debate in which two turns of each round have one number, as a file may say."""
    from components.run.debate import draw_debate
    from core.schema.progress import Progress
    from core.schema.records import Quote, Turn

    quote = (Quote("As it says.", "verified", 100.0, "s", "s", None, 0, 11),)
    draw_debate(
        Progress(
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
