"""The debate in a prompt: laid out for whoever is asked, and cut to what its window takes of it.

Turns are lines, each quotation followed by what our code found of it. Whatever was said is made
harmless first, so that nobody but us can write a mark. Where debate and evidence do not fit
together, each has half of the room, and what the one leaves is the other's.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from core.agents.ask import SPARE_SHARE, Asking, one_line
from core.agents.heard import without_marks
from core.agents.laid_out import quote_mark
from core.agents.talk import ABOUT, ASSIGNED, BEFORE, PERSON, Line, Shown, Talk
from core.baseline.wording import SIDES
from core.errors import ModelError
from core.models.call import Message
from core.models.limits import estimated_tokens
from core.models.prices import window_of
from core.records import Turn
from core.roles import DebateView, JudgeView
from core.seats import Seat


@dataclass(frozen=True)
class Told:
    """A talk for the field `key` of a prompt; `kind` is what its fence says."""

    talk: Talk
    key: str
    kind: str
    has_marks: bool = True


def transcript(asking: Asking, view: JudgeView) -> Told:
    """What the judge reads of the debate: a summary of what is left out, the turns, remarks."""
    return Told(_spoken(asking, view), "transcript", "transcript")


def heard(asking: Asking, view: DebateView) -> Told:
    """What a debater hears of the debate, laid out as the judge reads it."""
    return Told(_spoken(asking, view), "heard", "heard")


def last_message(asking: Asking, view: DebateView) -> Told:
    """What is answered, as it stands, with what people have said into the debate."""
    harmless, person = asking.work.fence.harmless, PERSON[asking.prompt.language]
    remarks = [f"{person.format(one_line(who))}{words}" for who, words in view.remarks]
    lines = tuple(Line("", harmless(words)) for words in (view.last_message, *remarks))
    return Told(Talk(lines, asking.prompt.language), "last_message", "last message", False)


def last_turns(asking: Asking, view: JudgeView) -> Told:
    """How the debate ended: its last two turns as they stand."""
    lines = tuple(Line(f"{turn.debater}: ", turn.text) for turn in view.turns[-2:])
    return Told(Talk(lines, asking.prompt.language), "last_turns", "last turns", False)


def _spoken(asking: Asking, view: JudgeView | DebateView) -> Talk:
    fence, evidence = asking.work.fence, view.view.evidence
    language = asking.prompt.language

    def plain(words: str) -> str:
        return fence.harmless(" ".join(without_marks(words).split()))

    lines = [Line(BEFORE[language], plain(view.summary), is_turn=False)] if view.summary else []
    last = {(turn.debater, turn.about != ""): turn for turn in view.turns}
    for turn in view.turns:
        marks = tuple((fence.harmless(q.text), quote_mark(q, evidence)) for q in turn.quotes)
        stays = last[turn.debater, turn.about != ""] is turn
        head = f"{turn.number}. {fence.harmless(one_line(turn.debater))}{_how(asking, turn)}: "
        lines.append(Line(head, plain(turn.text), marks, stays))
    for who, words in view.remarks:
        person = PERSON[language].format(plain(one_line(who)))
        lines.append(Line(person, plain(words), is_turn=False))
    return Talk(tuple(lines), language)


def _how(asking: Asking, turn: Turn) -> str:
    """Of whose answer a turn speaks, and for which side."""
    about, language = asking.work.fence.harmless(one_line(turn.about)), asking.prompt.language
    to = ABOUT[language].format(about) if turn.about else ""
    return to + ASSIGNED[language].format(SIDES[turn.assigned]) if turn.assigned else to


def fitted_debate(
    asking: Asking,
    told: Told | None,
    fields: Mapping[str, str],
    passages: Sequence[str] = (),
    key: str = "",
) -> tuple[Asking, tuple[Message, ...]]:
    """The messages with as much of the debate, and of the passages in the field `key`, as fit.

    (The asking, which says what was cut; the messages.) None is for prompts that show no debate.

    Raises:
        ModelError: the window does not take the shortest form of the debate and one passage.
    """
    if told is None:
        return asking.fitted(passages, fields, key)[:2]
    with contextlib.suppress(ModelError):
        taught, messages, kept = _filled(asking, told, told.talk.whole, fields, passages, key)
        if kept == len(passages):
            return taught, messages
    empty = {**fields, told.key: _fenced(asking, told, "")}
    empty |= {key: asking.fenced(key, "")} if key else {}
    room = asking.room(empty)
    costs = [math.ceil((estimated_tokens(text) + 1) / (1 - SPARE_SHARE)) for text in passages]
    first, least = sum(costs[:1]) + 1, told.talk.least
    if first + least > room:
        used = window_of(asking.seat) - asking.seat.max_tokens - room
        raise asking.too_small(used + first + least)
    share = max(room // 2, room - sum(costs) - 1, least)
    shown = told.talk.within(min(share, room - first))
    if cut := shown.cut(window_of(asking.seat)):
        asking = replace(asking, cut=cut)
        asking.work.notes.once(_outgrown(asking.seat))
    taught, messages, _ = _filled(asking, told, shown, fields, passages, key)
    return taught, messages


def _filled(
    asking: Asking,
    told: Told,
    shown: Shown,
    fields: Mapping[str, str],
    passages: Sequence[str],
    key: str,
) -> tuple[Asking, tuple[Message, ...], int]:
    """(the asking, the messages with that much of the debate, how many passages are in them)."""
    known = {**fields, told.key: _fenced(asking, told, shown.text)}
    return asking.fitted(passages, known, key) if key else (asking, asking.whole(known), 0)


def _fenced(asking: Asking, told: Told, text: str) -> str:
    """The text in its fence; ours stand behind quotations, which `around` would take away."""
    fence = asking.work.fence
    return fence.enclosed(told.kind, text) if told.has_marks else fence.around(told.kind, text)


def _outgrown(seat: Seat) -> str:
    return (
        f"The debate outgrew what {seat.model.split('/', 1)[-1]} takes ({window_of(seat):,} "
        "tokens): it was shown the newest turns, and told where older ones were left out or "
        "shortened. The evidence kept its share."
    )
