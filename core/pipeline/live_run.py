"""A run of this process under way: who pays, its stop, what it shows, what people say into it.

Source: SC-MAKS 5.4 (people give feedback while the agents argue).
"""

from __future__ import annotations

import queue
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from core.concurrency import Stop
from core.errors import InputError
from core.events import AUDIT, LONGEST_REMARK, Event, PersonSpoke, ProblemMet, ProgressMade
from core.pipeline.run_factory import Payer
from core.progress import Progress
from core.records import Plan

CONCLUDING = frozenset({"judgement_reached", "run_finished"})  # nobody listens after these


@dataclass
class Live:
    """What is under way in a run of this process and not stored: for the eye only."""

    words: dict[int, str] = field(default_factory=dict)
    progress: ProgressMade | None = None


@dataclass
class Active:
    """A run of this process."""

    run_id: str
    payer: Payer
    stop: Stop = field(default_factory=Stop)
    stopped_by: str = ""
    live: Live = field(default_factory=Live)
    said: queue.SimpleQueue[PersonSpoke] = field(default_factory=queue.SimpleQueue)

    def heard(self) -> tuple[PersonSpoke, ...]:
        """What people said since this was last asked, once each, in their order."""
        found: list[PersonSpoke] = []
        while not self.said.empty():
            found.append(self.said.get())
        return tuple(found)

    def taken(self, events: Sequence[Event]) -> list[Event]:
        """Those that are to be stored; what is for the eye only is shown.

        People's words are stored as they are said; those that nobody heard before the judgement
        are said to have come too late.
        """
        durable: list[Event] = []
        for event in events:
            if event.kind in CONCLUDING:
                durable += [_unheard(said) for said in self.heard()]
            if event.kind == "turn_delta":
                self.live.words[event.number] = self.live.words.get(event.number, "") + event.text
            elif event.kind == "progress_made":
                self.live.progress = event
            elif event.kind == "run_stopped":
                durable.append(replace(event, by=self.stopped_by))
            elif event.kind != "person_spoke":
                durable.append(event)
        return durable

    def stored(self, events: Sequence[Event]) -> None:
        """Turns that are stored, or lost, are under way no more."""
        for event in events:
            if event.kind == "turn_finished":
                self.live.words.pop(event.turn.number, None)
            elif event.kind == "problem_met" and event.turn:
                self.live.words.pop(event.turn, None)


def is_debated(plan: Plan) -> bool:
    """True where debaters speak, so that a person can speak to them; an audit hears nobody."""
    from core.debate.protocols import PROTOCOLS

    protocol = PROTOCOLS.get(plan.protocol)
    return plan.protocol != AUDIT and protocol is not None and bool(protocol.manners)


def remark_in(text: str) -> str:
    """What a person says, without the space around it.

    Raises:
        InputError: it says nothing, or too much.
    """
    words = text.strip()
    if not words:
        raise InputError("Expected something to say to the debaters, found nothing; type it first.")
    if len(words) > LONGEST_REMARK:
        raise InputError(
            f"Expected at most {LONGEST_REMARK:,} characters, found {len(words):,}; say what "
            "matters most."
        )
    return words


def require_debate(progress: Progress) -> None:
    """Refuse words that nobody would hear.

    Raises:
        InputError: nobody debates in this run, or the debate is over.
    """
    if progress.plan is not None and not is_debated(progress.plan):
        raise InputError("Expected a debate to speak in, found a check in which nobody debates.")
    if progress.ending is not None or progress.judgement is not None:
        raise InputError(
            "Expected a debate under way, found one that is over; say it in your judgement below."
        )


def _unheard(said: PersonSpoke) -> ProblemMet:
    """That words came when the judge had begun already."""
    who = said.by or "somebody"
    words = f"What {who} said last came too late: the verdict was being given already."
    return ProblemMet(said.at, "judging", words)
