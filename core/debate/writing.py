"""What the writer's seat adds to a debate: rounds in brief, and the response as it should read.

Source: SC-MAKS 3.4 (a light summariser keeps prompts within their limit), 3.2 (the output O*).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from core.acting import part_played
from core.argued import ResponseRevised, RoundSummarised
from core.debate.floor import Floor
from core.errors import ReplyError
from core.events import Event, ModelCalled, ProblemMet
from core.records import Judgement, Turn
from core.roles import JudgeView, Reviser, Roster, Summariser


def brief(floor: Floor, before_round: int) -> str:
    """The newest summary of rounds before that one; empty where there is none."""
    told = [said for said in floor.progress.summaries if said.round < before_round]
    return max(told, key=lambda said: said.round).text if told else ""


def summarised(floor: Floor, number: int, turns: Sequence[Turn]) -> Iterator[Event]:
    """The round's turns and what stood before them in brief, unless that is there already.

    Safe beside turns that are taken at the same time. Where the reply is unusable the spare's
    writer does it; where nobody can, later turns go by the last answers alone.
    """
    writer = _summariser(floor.play.roster)
    is_there = any(said.round == number for said in floor.progress.summaries)
    if writer is None or is_there or not turns:
        return
    play, before = floor.play, brief(floor, number)
    play.stop.check()
    spare = _summariser(play.roster.spare) if play.roster.spare else None
    try:
        text = writer.summarise(floor.view, turns, before, play.stop)
    except ReplyError as error:
        yield from _calls(floor)
        words = f"The summary of round {number} is lost ({writer.name}): {error}"
        yield ProblemMet(play.now(), "debating", words, reply=error.reply)
        if spare is None:
            return
        writer, text = spare, spare.summarise(floor.view, turns, before, play.stop)
    yield from _calls(floor)
    if text:
        yield RoundSummarised(play.now(), writer.name, number, text)


def revised(floor: Floor, seen: JudgeView, judgement: Judgement) -> Iterator[Event]:
    """The response as it should read, where it is judged wrong and somebody can put it right."""
    play, roster = floor.play, floor.play.roster
    writer = roster.context_writer
    has_to = judgement.label == "hallucinated" and floor.progress.revised is None
    if not has_to or not isinstance(writer, Reviser):
        return

    def stand_in(spare: Roster) -> str:
        other = spare.context_writer
        return other.revise(seen, judgement, play.stop) if isinstance(other, Reviser) else ""

    text, told = part_played(
        play,
        writer,
        "judging",
        lambda: writer.revise(seen, judgement, play.stop),
        stand_in,
        role="Reviser",
    )
    yield from told
    if text and text != seen.view.case.response:
        yield ResponseRevised(play.now(), writer.name, text)


def _summariser(roster: Roster) -> Summariser | None:
    writer = roster.context_writer
    return writer if isinstance(writer, Summariser) else None


def _calls(floor: Floor) -> Iterator[Event]:
    calls, _ = floor.calls_made("")
    yield from (ModelCalled(floor.play.now(), call) for call in calls)
