"""What a protocol of debate is, and what it works with; each has a file of its own beside this one.

A protocol yields events from the first word to the judgement. What the run's progress holds of
them is not done again, so that a run that was cut off goes on where it was.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from core.agents.agent_runner import Play
from core.events import Event, PersonSpoke
from core.progress import Progress
from core.records import Context, ModelCall, Plan, Stance, Turn
from core.roles import CaseView
from core.seats import JudgeManner, Manner, Option
from core.store.ledger import AGAIN


@dataclass(frozen=True)
class Floor:
    """A case with its evidence, those who argue about it, and how far they have come.

    `progress` grows as the protocol's events are yielded. `heard` hands over, once each, what
    people have said into the debate since it was last asked.
    """

    play: Play
    view: CaseView
    progress: Progress
    plan: Plan
    heard: Callable[[], tuple[PersonSpoke, ...]] = tuple
    _told: list[ModelCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def calls_made(self, slot: str) -> tuple[tuple[ModelCall, ...], list[ModelCall]]:
        """(calls nobody has told of yet; all calls of that slot): turns are taken side by side."""
        with self._lock:
            new = self.play.roster.calls_made()
            self._told.extend(new)
            return new, [call for call in self._told if call.slot.split(AGAIN)[0] == slot]

    @property
    def debaters(self) -> tuple[str, ...]:
        """Their names in the order in which they speak."""
        names = tuple(self.play.roster.debaters)
        return names[::-1] if self.plan.options.is_swapped else names

    @property
    def context(self) -> Context:
        """What agent C wrote; where nobody was asked, all passages for everybody."""
        return self.progress.context or Context((), tuple(self.view.evidence.passages), "")

    @property
    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What people said into the debate so far, as (who, words)."""
        return tuple((said.by, said.text) for said in self.progress.remarks)

    @property
    def turns(self) -> tuple[Turn, ...]:
        """All that were taken, in the order in which they were asked for, whoever was quicker."""
        return tuple(sorted(self.progress.turns, key=lambda turn: turn.number))

    def turns_before(self, number: int) -> tuple[Turn, ...]:
        """Those before that one, in order; the same after a Resume."""
        return tuple(turn for turn in self.turns if turn.number < number)

    def turn(self, number: int) -> Turn | None:
        """The turn of that number, if it was taken and not lost."""
        return next((turn for turn in self.progress.turns if turn.number == number), None)


@dataclass(frozen=True)
class Speech:
    """A turn that is to be taken: by whom, in which manner, and which turns they hear before it.

    Numbers are fixed by the protocol's schedule, also where an earlier turn was lost, so that they
    name the same turn after a Resume. `about` is the debater whose answer is spoken of.
    """

    number: int
    debater: str
    round: int
    manner: Manner
    hears: tuple[Turn, ...] = ()
    about: str = ""
    assigned: Stance | None = None
    summary: str = ""


@dataclass(frozen=True)
class Calls:
    """The most calls that a protocol makes of each role, and the longest chain that must wait.

    `chain` counts calls in a row, of all roles; the rest goes out at the same time as others.
    `heard` counts the earlier turns that all prompts of debaters show together, which are paid for
    each time; a last message alone is none.
    """

    turns: int
    judgements: int
    chain: int
    context: int = 0
    summaries: int = 0
    revisions: int = 0
    heard: int = 0

    @property
    def total(self) -> int:
        """All calls."""
        return self.turns + self.judgements + self.context + self.summaries + self.revisions


@dataclass(frozen=True)
class DebateProtocol:
    """A way to argue. `calls(debaters, plan)` counts what `argue` asks for at most.

    `manners` are those that its debaters are asked in, `judging` those that its judge is;
    `options` are what can be chosen of it: pages offer these, and the command line takes no others.
    `is_judged_by_first`: the first debater's model judges where a roster of models seats no judge.
    `writing` names the prompts of the context writer's seat. `seats`: how many of the roster's
    debaters speak, the first so many; None: all. `is_weighed`: its roster's weigher says how
    much each answer counts.
    """

    name: str
    argue: Callable[[Floor], Iterator[Event]]
    calls: Callable[[int, Plan], Calls]
    manners: tuple[Manner, ...] = ()
    judging: tuple[JudgeManner, ...] = ()
    options: tuple[Option, ...] = ()
    is_judged_by_first: bool = False
    writing: tuple[str, ...] = ("context",)
    seats: int | None = None
    is_weighed: bool = False
