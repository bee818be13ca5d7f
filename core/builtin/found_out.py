"""What a built-in debater finds, and what it says of it in a manner, before that becomes a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from core.records import Point, Quote, Reply, Stance


@dataclass(frozen=True)
class Side:
    """What the evidence has for a stance: sentences, the passages quoted in them, their weight.

    `strength` in [0, 1] is the debater's own measure; None where it cannot measure.
    """

    words: tuple[str, ...] = ()
    quotes: tuple[Quote, ...] = ()
    strength: float | None = None


@dataclass(frozen=True)
class Own:
    """What a built-in debater finds, however it is asked.

    `sides` has what speaks for each stance, its own and the others; `doubt` is the one way in which
    it would most likely be mistaken; `points` are places in the response; `wrong` are the indices
    of the statements that it calls wrong.
    """

    stance: Stance
    sides: Mapping[Stance, Side]
    doubt: str
    points: tuple[Point, ...] = ()
    wrong: frozenset[int] = frozenset()

    @property
    def side(self) -> Side:
        """What speaks for its own stance."""
        return self.sides.get(self.stance, Side())


@dataclass(frozen=True)
class Said:
    """What is said in a manner: sentences after the stance, and what goes with them.

    `reply` is given where it is not about the last message; `lines` stand by themselves.
    """

    words: Sequence[str]
    stance: Stance
    quotes: Sequence[Quote] = ()
    points: Sequence[Point] = ()
    confidence: float | None = None
    doubt: str = ""
    lines: Sequence[str] = field(default_factory=tuple)
    reply: Reply | None = None
