"""Language-model agents of a debate: debater, context writer (agent C) and image reader (agent B).

The context writer also writes round summaries and the corrected response.
Source: CEDA A.3.3 (turns), 3.3 (C: shares, facts, conflicts; the judge gets all), A.3.2 (B writes
itself a prompt for the image); SC-MAKS 3.4, 3.2 (round summaries; the output O*).
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

LONGEST_SIDE = 1568  # pixels; Claude scales larger images down, others do so earlier
MOST_BYTES = 3_500_000  # base64 makes 5 MB of these, the providers' limit
# Matches up to the last closing mark, as the text itself may hold one.
MARKED = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*?)\n?[ \t]*TEXT[ \t]*>>>\s*\Z",
    re.DOTALL | re.MULTILINE,
)
NO_CONTEXT = Context((), (), "")
PLACES_SHARE = 8  # contested places may take one part in so many of a window


class LlmImageReader(LlmAgent):
    """Image reader on a vision language model."""

    prompts = ("image_question", "image_reading")

    def describe(self, case: Case, image: Source, stop: Stop) -> str:
        """Return one paragraph on what the image shows that matters to the claim.

        Raises:
            ModelRefused: The model declined, or says that it sees no image.
            ReplyError: The reply is empty.
        """
        role, about = "image reader", f"image {image.id[:8]}"
        call = self._asking("image_question", case, stop, role=role, slot=f"{about} question")
        name = call.fields(image_name=image.name)
        with ThreadPoolExecutor(max_workers=1) as pool:  # prepares the image during the first call
            future = pool.submit(picture_of, file_bytes(self._work.home, image.id), image.name)
            question = call.say(call.whole(case_fields(call, case) | name))
            picture = future.result()
        call = self._asking("image_reading", case, stop, role=role, slot=f"{about} reading")
        prompt = call.fields(image_prompt=_require_text(question))
        reading = call.say(call.whole(prompt | name, (picture,)))
        text = " ".join(_require_text(reading).split())
        return whole_sentences(text, case.language) if reading.finish == "length" else text


def picture_of(data: bytes, name: str) -> Picture:
    """Return the image upright, on white, at most `LONGEST_SIDE` pixels long, without metadata.

    Photographs carry the place where they were taken, which a provider need not know.
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


def _require_text(reply: Completion) -> str:
    """Return the reply's text. Raises ReplyError if it is empty, ModelRefused if it declines."""
    if not reply.text.strip():
        raise ReplyError("Expected a text, found an empty reply.", reply=reply.text)
    if is_refusal(reply.text):
        raise ModelRefused("It declined to describe the image.", reply=reply.text)
    return reply.text.strip()


class LlmSummariser(LlmAgent):
    """Summariser on a language model."""

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """Return the key points of these turns and of the summary `before` them.

        Turns that do not fit the model's window are left out, earliest first. Raises ReplyError if
        the reply is empty.
        """
        case, number = view.case, max((turn.round for turn in turns), default=0)
        slot = f"summary {number}"
        call = self._asking("summary", case, stop, role="context writer", slot=slot)
        seen = JudgeView(view, NO_CONTEXT, tuple(turns), False, summary=before)
        fields = call.fields(claim=case.response, question=case.question)
        call, messages = fitted_debate(call, transcript(call, seen), fields)
        reply = call.say(messages)
        text = reply.text.strip()
        if not text:
            raise ReplyError("Expected a summary, found nothing.", reply=reply.text)
        return whole_sentences(text, case.language) if reply.finish == "length" else text


class LlmReviser(LlmAgent):
    """Reviser on a language model."""

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """Return the whole response with its errors corrected.

        Raises ReplyError if two replies hold no text between the marks.
        """
        case = view.view.case
        call = self._asking("corrected", case, stop, role="context writer", slot="corrected")
        finding = judgement.prose or judgement.text
        fields = call.fields(question=case.question, finding=finding)
        fields["response"] = call.fenced("text", case.response)
        debate, lines = transcript(call, view), passage_lines(view.view.evidence)
        call, messages = fitted_debate(call, debate, fields, lines, "evidence")

        def read(reply: Completion) -> str:
            return revised_in(reply, case.response)

        return ask_readable(call.say, messages, read, call.mend)


def revised_in(reply: Completion, response: str) -> str:
    """Return the text between the marks, unchanged.

    Raises Unusable if there is none, if the reply was cut off within it, or if there are several,
    such as a draft before the last one, unless the `response` itself holds such marks.
    """
    match = MARKED.search(reply.text)
    if match is None or not match["text"].strip():
        cut = " The reply was cut off at its token limit." if reply.finish == "length" else ""
        raise Unusable(
            "Expected a line “<<<TEXT”, the whole text, and a line “TEXT>>>” at the end; found "
            f"none.{cut}"
        )
    if MARK.search(match["text"]) and not MARK.search(response):
        raise Unusable("Expected one text between “<<<TEXT” and “TEXT>>>”, found several.")
    return match["text"]


class LlmDebater(LlmAgent):
    """Debater on a language model; it sees only its own share of the evidence."""

    def __init__(self, seat: Seat, work: AgentContext) -> None:
        super().__init__(seat, work)
        self.prompts = work.manners

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        """Return one turn; the caller verifies its quotes.

        Raises ReplyError if the turn does not begin as its manner requires.
        """
        case, manner = view.view.case, view.manner
        role, slot = f"debater {view.debater}", f"turn {view.number}"
        call = self._asking(manner, case, stop, role=role, slot=slot)
        room = turn_tokens(manner, call.seat.max_tokens, estimated_tokens(case.response))
        call = replace(call, seat=replace(call.seat, max_tokens=room))
        fields, debate = _build_fields(call, view), None
        if "heard" in FIELDS[manner]:
            debate = heard(call, view)
        elif "last_message" in FIELDS[manner]:
            debate = last_message(call, view)
        lines = passage_lines(view.view.evidence, view.share)
        call, messages = fitted_debate(call, debate, fields, lines, "evidence")
        completion = call.say(messages, speak=speak)
        text = without_name(completion.text, view.debater)
        if manner == "revise":
            return self._build_revision(view, text)
        reply, stance = _read_position(view, text)
        is_cut = completion.finish == "length"
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
            points=self._find_points(view, text, stance),
            confidence=confidence_in(text),
            cut=is_cut,
            doubt=doubt_in(text),
        )

    def _find_points(self, view: DebateView, text: str, stance: Stance) -> tuple[Point, ...]:
        if view.manner not in NAMING or stance == "supported":
            return ()
        contested = contested_in(text, view.view.case, view.view.statements, confidence_in(text))
        for words in contested.nowhere:
            self._work.notes.add(
                f"{view.debater} contests “{one_line(words)}”, which the response does not say."
            )
        return contested.points

    def _build_revision(self, view: DebateView, text: str) -> Turn:
        """Return the debater's revision of the response as a turn.

        A revision was requested and is no new opinion on the claim, so it keeps the debater's last
        stance. If its earlier turns were lost, a changed text means `hallucinated`, the same text
        `unclear`, as the debater may not have looked. Raises ReplyError if there is no text
        between the marks.
        """
        revision = marked_in(text)
        if revision is None:
            raise ReplyError(
                "Expected the whole text between a line <<<TEXT and a line TEXT>>>, found none.",
                reply=text,
            )
        earlier = [turn for turn in view.turns if turn.debater == view.debater]
        stance: Stance
        if earlier:
            stance = earlier[-1].stance
        else:
            stance = "unclear" if revision == view.view.case.response else "hallucinated"
        reply = reply_to(stance, view.turns)
        return Turn(view.debater, self.name, view.number, view.round, reply, stance, revision)


def _build_fields(call: PromptCall, view: DebateView) -> dict[str, str]:
    evidence, field_names = view.view.evidence, FIELDS[view.manner]
    conflicts = conflict_lines(view.conflicts, evidence, view.share)
    values = case_fields(call, view.view.case) | {
        "debater": one_line(view.debater),
        "conflicts": call.fenced("conflicts", conflicts),
        "about": one_line(view.about),
        "assigned": SIDES[view.assigned or "unclear"],
    }
    if "contested" in field_names:  # only then, as fitting may add a notice
        values["contested"] = call.fenced("places", _fit_places(call, view))
    return {name: text for name, text in values.items() if name in field_names}


def _fit_places(call: PromptCall, view: DebateView) -> str:
    """Return the contested places, or the first ones that fit their share of the window."""
    lines = place_lines([p for turn in view.turns for p in turn.points]).splitlines()
    kept = fitting(lines, window_of(call.seat) // PLACES_SHARE)
    if lost := len(lines) - kept:
        call.work.notes.once(
            f"{lost} of {len(lines)} lines of contested words did not fit the window of "
            f"{call.seat.model} beside the debate: they were not shown to it."
        )
    return "\n".join(lines[:kept])


def _read_position(view: DebateView, text: str) -> tuple[Reply, Stance]:
    about = [turn for turn in view.turns if turn.debater == view.about]
    latest = (about or view.turns)[-1:]
    last: Stance = latest[0].stance if latest else "supported"
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
    """Context writer on a language model; it also writes summaries and corrected responses."""

    def __init__(self, seat: Seat, work: AgentContext) -> None:
        super().__init__(seat, work)
        self.prompts = work.writing

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Return each debater's share, all passages for the judge, facts and conflicts.

        Without evidence no call is made. Facts that cite no passage are the model's own opinion and
        are left out.
        """
        evidence = view.evidence
        whole = tuple(passage.id for passage in ranked(evidence))
        if not whole:
            empty = tuple(Share(name, ()) for name in debaters)
            return Context(empty, (), "There is no evidence to share out.")
        role, schema = "context writer", _build_schema(debaters, len(whole))
        call = self._asking("context", view.case, stop, role=role, slot="context", schema=schema)
        fields = case_fields(call, view.case)
        fields["debaters"] = ", ".join(one_line(name) for name in debaters)
        call, messages, kept = call.fitted(passage_lines(evidence), fields, "passages")
        answer = ask_structured(call.say, messages, SHAPE, call.mend)
        facts = (Fact(f.claim.strip(), ids_of(f.passages, evidence)) for f in answer.facts)
        return Context(
            shares=tuple(_find_share(name, answer, evidence, whole[kept:]) for name in debaters),
            whole=whole,
            summary=answer.summary.strip() or f"{counted(len(whole), 'passage')}.",
            conflicts=_describe_conflicts(answer, evidence),
            facts=tuple(fact for fact in facts if fact.claim and fact.passages),
        )


def _build_schema(debaters: Sequence[str], passages: int) -> Mapping[str, Any]:
    """Return the schema restricted to the passages' numbers, with a share per debater.

    Some providers refuse open objects, and a small model that may name anything never stops.
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


def _find_share(name: str, answer: _Sorted, evidence: Evidence, unseen: Sequence[str]) -> Share:
    """Return the debater's share, or all passages if none of its share is known.

    Passages that did not fit the model's prompt go to everybody.
    """
    by_name = {key.casefold().strip(): ids for key, ids in answer.shares.items()}
    ids = ids_of(by_name.get(one_line(name).casefold(), ()), evidence)
    return Share(name, (*ids, *unseen) if ids else tuple(p.id for p in ranked(evidence)))


def _describe_conflicts(answer: _Sorted, evidence: Evidence) -> tuple[str, ...]:
    sentences = []
    for conflict in answer.conflicts:
        sides = [cited(evidence.passages[i]) for i in ids_of(conflict.passages, evidence)]
        about = conflict.about.strip().rstrip(".")
        if len(sides) > 1 and about:
            sentences.append(f"{about}: {' stands against '.join(sides)}.")
    return tuple(sentences)
