"""A debate cut into its rounds: turns that were taken and those under way, and who argues what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from components.turn_words import MANNER_WORDS, STANCE_WORDS, Asked, round_words
from core.baseline.wording import listed_plainly
from core.events import TurnStarted
from core.manners import Manner
from core.records import Stance, Turn

MOST_UNFOLDED = 15  # turns; beyond them nobody finds a round by scrolling
PHASES: Mapping[Manner, str] = {
    "advise": "advice",
    "attack": "challenges",
    "reconsider": "answers again",
}
ORDINALS = ("First", "Second", "Third")


@dataclass(frozen=True)
class Speaking:
    """A turn under way: what was asked of it, and its words so far."""

    asked: TurnStarted
    words: str


Part = Turn | Speaking


@dataclass(frozen=True)
class Round:
    """The turns of a round in their order; `number` is that of its first one.

    `sides` says who argues what in the debate that begins here, where sides change hands later.
    """

    number: int
    heading: str
    sides: str
    parts: tuple[Part, ...]

    @property
    def turns(self) -> list[Turn]:
        """Those that were taken."""
        return [part for part in self.parts if isinstance(part, Turn)]

    @property
    def is_over(self) -> bool:
        """Nobody speaks in it any more."""
        return len(self.turns) == len(self.parts)


def asked_of(part: Part) -> Asked:
    """What was asked: number, round, debater, manner, side."""
    return part.asked if isinstance(part, Speaking) else part


def rounds_of(turns: Sequence[Turn], speaking: Mapping[int, Speaking] | None = None) -> list[Round]:
    """All rounds in the order in which their turns were asked for, whoever was quicker.

    One in which all advise, then challenge, then answer again (SC-MAKS) is cut at these phases.
    """
    taken = {turn.number for turn in turns}
    under_way = [said for number, said in (speaking or {}).items() if number not in taken]
    # A trace from elsewhere may number two turns alike: both are shown.
    parts: list[Part] = [*turns, *under_way]
    ordered = sorted(parts, key=lambda part: asked_of(part).number)
    debates = _debates([asked_of(part) for part in ordered])
    sides = _sides([asked_of(part) for part in ordered], debates)
    found: list[Round] = []
    of_round = groupby(
        zip(ordered, debates, strict=True),
        key=lambda pair: (pair[1], round_words(asked_of(pair[0]))),
    )
    for (debate, heading), pairs in of_round:
        for words, own in _phases(heading, [part for part, _ in pairs]):
            told = sides.pop(debate, "")
            found.append(Round(asked_of(own[0]).number, words, told, tuple(own)))
    return found


def _phases(heading: str, parts: Sequence[Part]) -> list[tuple[str, list[Part]]]:
    """The round whole, unless each manner in it has its own time."""
    cut = [(m, list(own)) for m, own in groupby(parts, key=lambda part: asked_of(part).manner)]
    manners = [manner for manner, _ in cut]
    if len(cut) < 2 or len(set(manners)) < len(cut):
        return [(heading, list(parts))]
    return [(f"{heading}, {PHASES.get(m, MANNER_WORDS[m])}", own) for m, own in cut]


def sides_told(turns: Sequence[Turn]) -> dict[int, str]:
    """By the number of a debate's first turn, who argues what in it; none unless sides change."""
    return {one.number: one.sides for one in rounds_of(turns) if one.sides}


def _debates(asked: Sequence[Asked]) -> list[int]:
    """Of each turn the number of its debate: where sides change hands, another begins."""
    debate, held, numbers = 1, dict[str, Stance](), []
    for turn in asked:
        if turn.assigned is not None:
            others = {side for name, side in held.items() if name != turn.debater}
            if held.get(turn.debater, turn.assigned) != turn.assigned or turn.assigned in others:
                debate, held = debate + 1, {}
            held[turn.debater] = turn.assigned
        numbers.append(debate)
    return numbers


def _sides(asked: Sequence[Asked], debates: Sequence[int]) -> dict[int, str]:
    """By the number of the debate, who argues what in it; none where there is but one."""
    held: dict[int, dict[str, Stance]] = {}
    for turn, debate in zip(asked, debates, strict=True):
        if turn.assigned is not None:
            held.setdefault(debate, {})[turn.debater] = turn.assigned
    if len(held) < 2:
        return {}
    return {debate: _sides_words(debate, sides) for debate, sides in held.items()}


def _sides_words(debate: int, sides: Mapping[str, Stance]) -> str:
    name = f"{ORDINALS[debate - 1]} debate" if debate <= len(ORDINALS) else f"Debate {debate}"
    how = ", the sides change hands" if debate > 1 else ""
    told = [f"{who} argues that it is {STANCE_WORDS[side]}" for who, side in sides.items()]
    return f"{name}{how}: {listed_plainly(told)}."
