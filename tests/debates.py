"""Has a protocol argue over a made-up case with scripted or built-in agents, as the engine does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.agents.agent_runner import AgentContext, RunContext
from core.agents.llm_debater import LlmContextWriter, LlmDebater
from core.agents.llm_judge import LlmJudge
from core.agents.rosters import make_built_in_roster
from core.debate.state import DebateState
from core.llm.prompting import PromptBook
from core.runtime.concurrency import StopSignal
from core.schema.events import Event, PersonSpoke
from core.schema.records import EvidenceContext, Judgement, Plan, Turn
from core.schema.roles import CaseView, Debater, Judge, Roster
from core.schema.rosters import AgentConfig
from core.schema.run_state import RunState
from tests.agents.seats import FENCE, SEAT
from tests.fakes import FakeDesk, ScriptedJudge, ticking
from tests.readers import word_assessor

Argue = Callable[[DebateState], Iterator[Event]]


def seated(debaters: Mapping[str, Debater], judge: Judge | None = None) -> Roster:
    """The built-in roster over a reader without weights, with these debaters and this judge."""
    return replace(
        make_built_in_roster("builtin", assessor=word_assessor()),
        debaters=debaters,
        judge=judge or ScriptedJudge("supported", "It holds."),
    )


@dataclass
class Arguing:
    """A protocol at work; `progress` holds what its events came to."""

    argue: Argue
    state: DebateState

    def events(self) -> Iterator[Event]:
        """The events, each taken into account before the next one is asked for."""
        for event in self.argue(self.state):
            self.state.progress.add(event)
            yield event


def arguing(
    argue: Argue,
    view: CaseView,
    roster: Roster,
    *,
    plan: Plan | None = None,
    context: EvidenceContext | None = None,
    past: Sequence[Event] = (),
    stop: StopSignal | None = None,
    heard: Callable[[], tuple[PersonSpoke, ...]] = tuple,
) -> Arguing:
    """The protocol before its first word; with a `context` agent C has done its part."""
    progress = RunState(context=context)
    for event in past:
        progress.add(event)
    run = RunContext(roster, stop or StopSignal(), ticking())
    return Arguing(argue, DebateState(run, view, progress, plan or Plan(), heard))


def kinds(events: Sequence[Event]) -> list[str]:
    """The kinds of the durable events."""
    return [event.kind for event in events if event.kind not in ("turn_delta", "progress_made")]


def turns(events: Sequence[Event]) -> list[Turn]:
    """The turns that were taken."""
    return [event.turn for event in events if event.kind == "turn_finished"]


def judgement_of(events: Sequence[Event]) -> Judgement:
    """What the debate came to, which is its last event."""
    (found,) = [event.judgement for event in events if event.kind == "judgement_reached"]
    assert events[-1].kind == "judgement_reached"
    return found


def desk_roster(
    desk: FakeDesk, *, debaters: int = 2, spare: bool = False, seat: AgentConfig = SEAT
) -> Roster:
    """A roster whose debaters, judge and context writer are language models behind that desk."""
    work = AgentContext(desk, PromptBook(), FENCE, Path("nowhere"))
    own = make_built_in_roster("builtin", assessor=word_assessor())
    names = ("Ada", "Ben", "Cleo", "Dora", "Emil", "Flo", "Gus", "Hana")[:debaters]
    return replace(
        own,
        context_writer=LlmContextWriter(seat, work),
        debaters={name: LlmDebater(seat, work) for name in names},
        judge=LlmJudge(seat, work),
        calls_made=desk.drain,
        notes_made=work.notes.drain,
        spare=own if spare else None,
    )


def built_in() -> Roster:
    """The built-in roster over a reader without weights."""
    return make_built_in_roster("builtin", assessor=word_assessor())
