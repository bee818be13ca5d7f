"""How turns are taken: one after the other or several at once, with every quote checked in code."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import replace

from core.agents.agent_runner import context_built, notes_of
from core.concurrency import merged, streamed
from core.debate.floor import Floor, Speech
from core.documents.quotes import verify_quote
from core.errors import ModelError, ReplyError
from core.events import (
    DebateNoted,
    Event,
    ModelCalled,
    ProblemMet,
    TurnDelta,
    TurnFinished,
    TurnStarted,
)
from core.progress import total_cost
from core.records import Turn
from core.roles import CaseView, DebateView, JudgeView, Speak
from core.seats import JudgeManner

AT_ONCE = 16  # a model that is waited for costs no work here


def warned(floor: Floor) -> Iterator[Event]:
    """What people should know of the material before anybody speaks."""
    play, progress = floor.play, floor.progress
    if not (progress.context or progress.turns or progress.samples):
        yield from (ProblemMet(play.now(), "searching", w) for w in play.roster.notices(floor.view))


def noted(floor: Floor, words: str) -> Iterator[Event]:
    """A quiet line about how the debate is held, told once."""
    if words not in floor.progress.notes:
        yield DebateNoted(floor.play.now(), words)


def with_context(floor: Floor) -> Iterator[Event]:
    """Agent C's part, where it is not done yet (CEDA 3.3)."""
    if floor.progress.context is None:
        yield from context_built(floor.play, floor.view, list(floor.play.roster.debaters))
    if floor.progress.context is None:
        raise ModelError("The run has no context after the stage that makes it.")


def spoken(floor: Floor, speeches: Sequence[Speech]) -> Iterator[Event]:
    """The turns of these speeches that are not taken yet, all at once; first what people said.

    A turn whose reply is unusable is lost and counted; the debate goes on with what was said. What
    was lost before a later turn was taken stays lost when the run is resumed.

    Raises:
        ModelError: a debater's service failed; the run can be resumed at this turn.
    """
    yield from floor.heard()
    last = max((speech.number for speech in speeches), default=0)
    if any(turn.number > last for turn in floor.progress.turns):
        return
    waiting = [speech for speech in speeches if floor.turn(speech.number) is None]
    yield from merged([_speaking(floor, speech) for speech in waiting], workers=AT_ONCE)
    yield from notes_of(floor.play, "debating")


def taken(floor: Floor, speeches: Sequence[Speech]) -> tuple[Turn, ...]:
    """The turns of these speeches that were not lost, in their order."""
    found = (floor.turn(speech.number) for speech in speeches)
    return tuple(turn for turn in found if turn is not None)


def judge_view(
    floor: Floor,
    turns: Sequence[Turn] | None = None,
    *,
    manner: JudgeManner = "debate",
    number: int = 1,
    is_sampled: bool = False,
    summary: str = "",
) -> JudgeView:
    """What the judge sees; all turns in their order, unless given."""
    return JudgeView(
        floor.view,
        floor.context,
        floor.turns if turns is None else tuple(turns),
        floor.progress.reached_consensus,
        manner,
        number,
        is_sampled,
        floor.remarks,
        summary,
    )


def _speaking(floor: Floor, speech: Speech) -> Callable[[], Iterator[Event]]:
    """One turn's events, or that it is lost."""

    def events() -> Iterator[Event]:
        play, name = floor.play, speech.debater
        play.stop.check()
        try:
            yield from _one_turn(floor, speech)
        except ReplyError as error:
            calls, _ = floor.calls_made("")
            yield from (ModelCalled(play.now(), call) for call in calls)
            message = f"{name}'s turn {speech.number} is lost: {error}"
            number = speech.number
            yield ProblemMet(play.now(), "debating", message, reply=error.reply, turn=number)

    return events


def _one_turn(floor: Floor, speech: Speech) -> Generator[Event, None, None]:
    play, view = floor.play, floor.view
    debater, seen = play.roster.debaters[speech.debater], _view_of(floor, speech)
    started = play.now()
    yield TurnStarted(
        started, speech.debater, debater.name, speech.number, speech.round,
        speech.manner, speech.about, speech.assigned,
    )  # fmt: skip

    def argue(speak: Speak) -> Turn:
        return debater.argue(seen, speak, play.stop)

    speech_made = streamed(argue)
    while True:
        try:
            piece = next(speech_made)
        except StopIteration as ended:
            said = replace(
                ended.value, manner=speech.manner, about=speech.about, assigned=speech.assigned
            )
            turn = with_checked_quotes(said, view)
            break
        play.stop.check()
        yield TurnDelta(play.now(), speech.number, piece)
    finished = play.now()
    calls, own = floor.calls_made(f"turn {speech.number}")
    yield from (ModelCalled(finished, call) for call in calls)
    yield TurnFinished(finished, turn, finished - started, total_cost(own))


def _view_of(floor: Floor, speech: Speech) -> DebateView:
    about = next((t for t in reversed(speech.hears) if t.debater == speech.about), None)
    last = about or (speech.hears[-1] if speech.hears else None)
    return DebateView(
        view=floor.view,
        debater=speech.debater,
        share=_share_of(speech.debater, floor),
        turns=speech.hears,
        number=speech.number,
        round=speech.round,
        last_message=last.text if last else floor.view.case.response,
        conflicts=floor.context.conflicts,
        manner=speech.manner,
        about=speech.about,
        assigned=speech.assigned,
        remarks=floor.remarks,
        summary=speech.summary,
    )


def _share_of(name: str, floor: Floor) -> frozenset[str]:
    """The passages that a debater was given; all of them where nothing was shared out."""
    shares = {share.debater: frozenset(share.passages) for share in floor.context.shares}
    return shares.get(name, frozenset(floor.context.whole))


def with_checked_quotes(turn: Turn, view: CaseView) -> Turn:
    """The turn with every quote's status decided in code, whatever the debater claimed."""
    passages = list(view.evidence.passages.values())
    checked = tuple(verify_quote(quote.text, passages, view.sources) for quote in turn.quotes)
    by_text = dict(zip((quote.text for quote in turn.quotes), checked, strict=True))
    points = tuple(
        replace(
            point,
            quote=by_text.get(point.quote.text)
            or verify_quote(point.quote.text, passages, view.sources),
        )
        if point.quote
        else point
        for point in turn.points
    )
    return replace(turn, quotes=checked, points=points)
