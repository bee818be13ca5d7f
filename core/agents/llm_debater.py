"""A debater, a writer of summaries and corrected texts, agent C and agent B, by a language model.

Source: CEDA A.3.3 (turns), 3.3 (C: shares, facts, conflicts; the judge gets all), A.3.2 (B writes
itself a prompt for the image); SC-MAKS 3.4, 3.2 (a round in brief; the output O*).
"""

from __future__ import annotations

import io
import re
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import msgspec
from PIL import Image

from core.agents.agent_runner import AgentContext, LlmAgent, PromptCall, case_fields, one_line
from core.agents.llm_judge import MARK, contested_in, marked_in, place_lines
from core.agents.reply_parser import (
    confidence_in,
    doubt_in,
    is_refusal,
    quotes_in,
    reason_in,
    reply_of,
    stance_of,
    stated_in,
    whole_sentences,
    without_name,
)
from core.agents.transcript import (
    conflict_lines,
    fitted_debate,
    heard,
    ids_of,
    last_message,
    passage_lines,
    ranked,
    transcript,
)
from core.baseline.wording import SIDES, cited, counted, reply_to
from core.documents.images import open_picture
from core.documents.library import file_bytes
from core.llm.call import (
    Completion,
    Picture,
    Shape,
    Unusable,
    ask_readable,
    ask_structured,
    with_items,
)
from core.llm.limits import estimated_tokens, fitting, window_of
from core.llm.prompting import FIELDS
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.runtime.errors import ModelRefused, ReplyError
from core.schema.records import (
    Case,
    Context,
    Fact,
    Judgement,
    Point,
    Reply,
    Share,
    Source,
    Stance,
    Turn,
)
from core.schema.roles import CaseView, DebateView, Evidence, JudgeView, Speak
from core.schema.rosters import ANSWERING, NAMING, Seat, turn_tokens

LONGEST_SIDE = 1568  # what Claude takes without scaling down itself; others take less or as much
MOST_BYTES = 3_500_000  # providers refuse images of 5 MB, which base64 makes of these


class LlmImageReader(LlmAgent):
    """Image reader with a language model that sees."""

    prompts = ("image_question", "image_reading")

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """One conclusive paragraph on what the image shows that matters to the claim.

        Raises:
            ModelRefused: the model declined, or says that it sees no image.
            ReplyError: it said nothing.
        """
        role, about = "image reader", f"image {image.id[:8]}"
        asking = self._asking("image_question", case, stop, role=role, slot=f"{about} question")
        name = asking.fields(image_name=image.name)
        with ThreadPoolExecutor(max_workers=1) as pool:  # while the model thinks of its question
            ready = pool.submit(picture_of, file_bytes(self._work.home, image.id), image.name)
            question = asking.say(asking.whole(case_fields(asking, case) | name))
            picture = ready.result()
        asking = self._asking("image_reading", case, stop, role=role, slot=f"{about} reading")
        prompt = asking.fields(image_prompt=_usable(question))
        seen = asking.say(asking.whole(prompt | name, (picture,)))
        text = " ".join(_usable(seen).split())
        return whole_sentences(text, case.language) if seen.finish == "length" else text


def picture_of(data: bytes, name: str) -> Picture:
    """The image upright, on white, at most `LONGEST_SIDE` pixels long, without its metadata.

    Photographs know where they were taken; a provider need not.
    """
    with Image.open(io.BytesIO(data)) as stored:
        is_photograph = stored.format == "JPEG"
    image, _ = open_picture(name, data, Settings().megapixels)
    image.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if not is_photograph:
        image.save(out, "PNG")
        if out.tell() <= MOST_BYTES:
            return Picture("image/png", out.getvalue())
        out = io.BytesIO()
    image.save(out, "JPEG", quality=90)
    return Picture("image/jpeg", out.getvalue())


def _usable(said: Completion) -> str:
    if not said.text.strip():
        raise ReplyError("Expected a text, found an empty reply.", reply=said.text)
    if is_refusal(said.text):
        raise ModelRefused("It declined to describe the image.", reply=said.text)
    return said.text.strip()


# The last closing mark counts: the text itself may hold one.
MARKED = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*?)\n?[ \t]*TEXT[ \t]*>>>\s*\Z",
    re.DOTALL | re.MULTILINE,
)
NO_CONTEXT = Context((), (), "")


class LlmSummariser(LlmAgent):
    """Summariser with a language model."""

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """The key points of these turns and of the summary `before` them.

        Where they do not fit the model's window, the earliest are left out. Raises ReplyError: it
        says nothing.
        """
        case, number = view.case, max((turn.round for turn in turns), default=0)
        slot = f"summary {number}"
        asking = self._asking("summary", case, stop, role="context writer", slot=slot)
        seen = JudgeView(view, NO_CONTEXT, tuple(turns), False, summary=before)
        fields = asking.fields(claim=case.response, question=case.question)
        asking, messages = fitted_debate(asking, transcript(asking, seen), fields)
        said = asking.say(messages)
        text = said.text.strip()
        if not text:
            raise ReplyError("Expected a summary, found nothing.", reply=said.text)
        return whole_sentences(text, case.language) if said.finish == "length" else text


class LlmReviser(LlmAgent):
    """Reviser with a language model."""

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """The whole response with what is wrong put right.

        Raises ReplyError: twice no text between the marks.
        """
        case = view.view.case
        asking = self._asking("corrected", case, stop, role="context writer", slot="corrected")
        finding = judgement.prose or judgement.text
        fields = asking.fields(question=case.question, finding=finding)
        fields["response"] = asking.fenced("text", case.response)
        told, lines = transcript(asking, view), passage_lines(view.view.evidence)
        asking, messages = fitted_debate(asking, told, fields, lines, "evidence")

        def read(said: Completion) -> str:
            return revised_in(said, case.response)

        return ask_readable(asking.say, messages, read, asking.mend)


def revised_in(said: Completion, response: str) -> str:
    """The text between the marks, as it stands there.

    Raises Unusable: there is none, the reply was cut off within it, or there are several, as a
    draft before the last one, and the `response` holds no such marks itself.
    """
    match = MARKED.search(said.text)
    if match is None or not match["text"].strip():
        cut = " The reply was cut off at its token limit." if said.finish == "length" else ""
        raise Unusable(
            "Expected a line “<<<TEXT”, the whole text, and a line “TEXT>>>” at the end; found "
            f"none.{cut}"
        )
    if MARK.search(match["text"]) and not MARK.search(response):
        raise Unusable("Expected one text between “<<<TEXT” and “TEXT>>>”, found several.")
    return match["text"]


PLACES_SHARE = 8  # so much of a window is for contested places


class LlmDebater(LlmAgent):
    """Debater with a language model; it sees its own share of the evidence alone."""

    def __init__(self, seat: Seat, work: AgentContext) -> None:
        super().__init__(seat, work)
        self.prompts = work.manners

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """One turn; what it quotes is verified by whoever runs the debate.

        Raises ReplyError: it does not begin as its manner asks.
        """
        case, manner = view.view.case, view.manner
        role, slot = f"debater {view.debater}", f"turn {view.number}"
        asking = self._asking(manner, case, stop, role=role, slot=slot)
        room = turn_tokens(manner, asking.seat.max_tokens, estimated_tokens(case.response))
        asking = replace(asking, seat=replace(asking.seat, max_tokens=room))
        fields, told = _fields(asking, view), None
        if "heard" in FIELDS[manner]:
            told = heard(asking, view)
        elif "last_message" in FIELDS[manner]:
            told = last_message(asking, view)
        lines = passage_lines(view.view.evidence, view.share)
        asking, messages = fitted_debate(asking, told, fields, lines, "evidence")
        said = asking.say(messages, speak=speak)
        text = without_name(said.text, view.debater)
        if manner == "revise":
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
            quotes=quotes_in(reason_in(text) if manner in NAMING else text),
            points=self._points(view, text, stance),
            confidence=confidence_in(text),
            cut=is_cut,
            doubt=doubt_in(text),
        )

    def _points(self, view: DebateView, text: str, stance: Stance) -> tuple[Point, ...]:
        if view.manner not in NAMING or stance == "supported":
            return ()
        found = contested_in(text, view.view.case, view.view.statements, confidence_in(text))
        for words in found.nowhere:
            self._work.notes.add(
                f"{view.debater} contests “{one_line(words)}”, which the response does not say."
            )
        return found.points

    def _revised(self, view: DebateView, text: str) -> Turn:
        """The response as it mends it: work that was asked for, and no new opinion on the claim.

        So its stance is the one that it took before. Of one whose earlier turns were lost a changed
        text says that it does not hold, and the same text says nothing: it may not have looked.
        Raises ReplyError: there is no text between the marks.
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


def _fields(asking: PromptCall, view: DebateView) -> dict[str, str]:
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


def _places(asking: PromptCall, view: DebateView) -> str:
    """The places that are contested, the first of them where not all fit their share."""
    lines = place_lines([p for turn in view.turns for p in turn.points]).splitlines()
    kept = fitting(lines, window_of(asking.seat) // PLACES_SHARE)
    if lost := len(lines) - kept:
        asking.work.notes.once(
            f"{lost} of {len(lines)} lines of contested words did not fit the window of "
            f"{asking.seat.model} beside the debate: they were not shown to it."
        )
    return "\n".join(lines[:kept])


def _position(view: DebateView, text: str) -> tuple[Reply, Stance]:
    about = [turn for turn in view.turns if turn.debater == view.about]
    heard = (about or view.turns)[-1:]
    last: Stance = heard[0].stance if heard else "supported"
    if view.manner in ANSWERING:
        reply, rest = reply_of(text)
        return reply, stance_of(reply, rest, last)
    stance = stated_in(text).stance
    return ("agree" if stance == last else "deny"), stance


class _Fact(msgspec.Struct, frozen=True):
    claim: str
    passages: list[str]


class _Conflict(msgspec.Struct, frozen=True):
    about: str
    passages: list[str]


class _Sorted(msgspec.Struct, frozen=True):
    facts: list[_Fact]
    conflicts: list[_Conflict]
    shares: dict[str, list[str]]
    summary: str


SHAPE = Shape(_Sorted)


class LlmContextWriter(LlmSummariser, LlmReviser):
    """Context writer with a language model; its seat also writes what a debate comes to."""

    def __init__(self, seat: Seat, work: AgentContext) -> None:
        super().__init__(seat, work)
        self.prompts = work.writing

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Each debater's share, the judge's whole, facts and conflicts; no call over nothing.

        Facts that rest on no passage are the model's own opinion, and left out.
        """
        evidence = view.evidence
        whole = tuple(passage.id for passage in ranked(evidence))
        if not whole:
            empty = tuple(Share(name, ()) for name in debaters)
            return Context(empty, (), "There is no evidence to share out.")
        role, schema = "context writer", _schema_for(debaters, len(whole))
        asking = self._asking("context", view.case, stop, role=role, slot="context", schema=schema)
        fields = case_fields(asking, view.case)
        fields["debaters"] = ", ".join(one_line(name) for name in debaters)
        asking, messages, kept = asking.fitted(passage_lines(evidence), fields, "passages")
        answer = ask_structured(asking.say, messages, SHAPE, asking.mend)
        facts = (Fact(f.claim.strip(), ids_of(f.passages, evidence)) for f in answer.facts)
        return Context(
            shares=tuple(_share(name, answer, evidence, whole[kept:]) for name in debaters),
            whole=whole,
            summary=answer.summary.strip() or f"{counted(len(whole), 'passage')}.",
            conflicts=_conflicts(answer, evidence),
            facts=tuple(fact for fact in facts if fact.claim and fact.passages),
        )


def _schema_for(debaters: Sequence[str], passages: int) -> Mapping[str, Any]:
    """The schema with the passages' numbers, and a share for each debater by name.

    Some providers refuse open objects, and a small model that may name anything never ends.
    """
    ids = {"type": "array", "items": {"enum": [f"P{number}" for number in range(1, passages + 1)]}}
    names = [one_line(name) for name in debaters]
    shares = {
        "type": "object",
        "properties": dict.fromkeys(names, ids),
        "required": names,
        "additionalProperties": False,
    }
    schema = with_items(SHAPE.schema, "passages", ids)
    return {**schema, "properties": {**schema["properties"], "shares": shares}}


def _share(name: str, answer: _Sorted, evidence: Evidence, unseen: Sequence[str]) -> Share:
    """What the debater is given; all of it where nothing of its share can be found.

    Passages that the model had no room to see go to everybody.
    """
    by_name = {given.casefold().strip(): ids for given, ids in answer.shares.items()}
    ids = ids_of(by_name.get(one_line(name).casefold(), ()), evidence)
    return Share(name, (*ids, *unseen) if ids else tuple(p.id for p in ranked(evidence)))


def _conflicts(answer: _Sorted, evidence: Evidence) -> tuple[str, ...]:
    told = []
    for conflict in answer.conflicts:
        sides = [cited(evidence.passages[i]) for i in ids_of(conflict.passages, evidence)]
        about = conflict.about.strip().rstrip(".")
        if len(sides) > 1 and about:
            told.append(f"{about}: {' stands against '.join(sides)}.")
    return tuple(told)
