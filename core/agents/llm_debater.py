"""A debater by a language model: one short turn of plain text in the manner that is asked for.

Each manner has a prompt of its name; what it may show of the debate so far is one fenced text.
Source: CEDA A.3.3 for the manner “debate”; core/roles.py says of the others what they are.
"""

from __future__ import annotations

from dataclasses import replace

from core.agents.ask import Asking, LlmAgent, case_fields, one_line
from core.agents.contested import contested_in, marked_in, place_lines
from core.agents.heard import quotes_in, reply_of, stance_of, whole_sentences, without_name
from core.agents.laid_out import conflict_lines, passage_lines
from core.agents.stated import confidence_in, doubt_in, reason_in, stated_in
from core.agents.told import Told, fitted_debate, heard, last_message
from core.baseline.wording import SIDES, reply_to
from core.concurrency import Stop
from core.errors import ReplyError
from core.manners import ANSWERING, NAMING, turn_tokens
from core.models.limits import estimated_tokens, fitting
from core.models.prices import window_of
from core.models.prompting import FIELDS
from core.records import Point, Reply, Stance, Turn
from core.roles import DebateView, Speak

PLACES_SHARE = 8  # so much of a window is for contested places


class LlmDebater(LlmAgent):
    """Debater with a language model; it sees its own share of the evidence alone."""

    @property
    def _ruling(self) -> tuple[str, ...]:
        """Those of the manners that the run's protocol asks for."""
        return self._work.manners

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn; what it quotes is verified by whoever runs the debate.

        Raises:
            ReplyError: it does not begin as its manner asks.
        """
        case, evidence = view.view.case, view.view.evidence
        asking = self._asking(
            view.manner, case, stop, role=f"debater {view.debater}", slot=f"turn {view.number}"
        )
        asking = _with_room(asking, view)
        fields = _fields(asking, view)
        lines = passage_lines(evidence, view.share)
        told = _told(asking, view)
        asking, messages = fitted_debate(asking, told, fields, lines, "evidence")
        said = asking.say(messages, speak=speak)
        text = without_name(said.text, view.debater)
        if view.manner == "revise":
            return self._revised(view, text)
        reply, stance = _position(view, text)
        is_cut = said.finish == "length"
        text = whole_sentences(text, case.language) if is_cut else text
        return Turn(
            debater=view.debater,
            agent=self.name,
            number=view.number,
            round=view.round,
            reply=reply,
            stance=stance,
            text=text,
            quotes=quotes_in(reason_in(text) if view.manner in NAMING else text),
            points=self._points(view, text, stance),
            confidence=confidence_in(text),
            cut=is_cut,
            doubt=doubt_in(text),
        )

    def _points(self, view: DebateView, text: str, stance: Stance) -> tuple[Point, ...]:
        """The places that it contests, if it does; what stands nowhere in the response is said."""
        if view.manner not in NAMING or stance == "supported":
            return ()
        case = view.view.case
        found = contested_in(text, case, view.view.statements, confidence_in(text))
        for words in found.nowhere:
            short = one_line(words)
            self._work.notes.add(
                f"{view.debater} contests “{short}”, which the response does not say."
            )
        return found.points

    def _revised(self, view: DebateView, text: str) -> Turn:
        """The response as it mends it: work that was asked for, and no new opinion on the claim.

        So its stance is the one that it took before. Of one whose earlier turns were lost a changed
        text says that it does not hold, and the same text says nothing: it may not have looked.

        Raises:
            ReplyError: there is no text between the marks.
        """
        mended = marked_in(text)
        if mended is None:
            raise ReplyError(
                "Expected the whole text between a line <<<TEXT and a line TEXT>>>, found none.",
                reply=text,
            )
        own = [turn for turn in view.turns if turn.debater == view.debater]
        is_same = mended == view.view.case.response
        stance = own[-1].stance if own else "unclear" if is_same else "hallucinated"
        reply = reply_to(stance, view.turns)
        return Turn(view.debater, self.name, view.number, view.round, reply, stance, mended)


def _with_room(asking: Asking, view: DebateView) -> Asking:
    """The asking with tokens enough for what the manner wants."""
    response = estimated_tokens(view.view.case.response)
    room = turn_tokens(view.manner, asking.seat.max_tokens, response)
    return replace(asking, seat=replace(asking.seat, max_tokens=room))


def _fields(asking: Asking, view: DebateView) -> dict[str, str]:
    """What the fields of the manner's prompt hold; debate and evidence go in last."""
    evidence, wanted = view.view.evidence, FIELDS[view.manner]
    conflicts = conflict_lines(view.conflicts, evidence, view.share)
    known = case_fields(asking, view.view.case) | {
        "debater": one_line(view.debater),
        "conflicts": asking.fenced("conflicts", conflicts),
        "about": one_line(view.about),
        "assigned": SIDES[view.assigned or "unclear"],
    }
    if "contested" in wanted:  # else what does not fit would be told of though nobody is shown it
        known["contested"] = asking.fenced("places", _places(asking, view))
    return {name: text for name, text in known.items() if name in wanted}


def _places(asking: Asking, view: DebateView) -> str:
    """The places that are contested, the first of them where not all fit their share."""
    lines = place_lines([p for turn in view.turns for p in turn.points]).splitlines()
    kept = fitting(lines, window_of(asking.seat) // PLACES_SHARE)
    if lost := len(lines) - kept:
        asking.work.notes.once(
            f"{lost} of {len(lines)} lines of contested words did not fit the window of "
            f"{asking.seat.model} beside the debate: they were not shown to it."
        )
    return "\n".join(lines[:kept])


def _told(asking: Asking, view: DebateView) -> Told | None:
    """What the manner's prompt shows of the debate so far; None where it shows nothing."""
    if "heard" in FIELDS[view.manner]:
        return heard(asking, view)
    return last_message(asking, view) if "last_message" in FIELDS[view.manner] else None


def _position(view: DebateView, text: str) -> tuple[Reply, Stance]:
    """Reply and stance as the turn begins; who begins with a stance agrees with an equal one."""
    about = [turn for turn in view.turns if turn.debater == view.about]
    heard = (about or view.turns)[-1:]
    last: Stance = heard[0].stance if heard else "supported"
    if view.manner in ANSWERING:
        reply, rest = reply_of(text)
        return reply, stance_of(reply, rest, last)
    stance = stated_in(text).stance
    return ("agree" if stance == last else "deny"), stance
