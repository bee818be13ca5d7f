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
from core.agents.llm_judge import TEXT_BLOCK_MARK, format_places, parse_contested, parse_text_block
from core.agents.reply_parser import (
    SENTENCE_END,
    cut_to_sentences,
    infer_stance,
    is_refusal,
    parse_confidence,
    parse_doubt,
    parse_quotes,
    parse_reason,
    parse_reply,
    parse_stated_verdict,
    strip_speaker_name,
)
from core.agents.transcript import (
    build_debater_transcript,
    build_judge_transcript,
    build_last_message,
    fit_debate,
    format_conflicts,
    format_passages,
    rank_passages,
    resolve_passage_ids,
)
from core.baseline.wording import SIDE_NAMES, choose_reply, cite_passage, format_count
from core.documents.images import open_picture
from core.documents.library import load_file_bytes
from core.llm.call import (
    Completion,
    Picture,
    ReplySchema,
    UnusableReply,
    ask_readable,
    ask_structured,
    with_property_schema,
)
from core.llm.limits import count_fitting, estimate_tokens, window_of
from core.llm.prompting import FIELDS
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import ModelRefused, ReplyError
from core.schema.records import (
    Case,
    ContextFact,
    DebatePoint,
    EvidenceContext,
    EvidenceShare,
    Judgement,
    Source,
    Stance,
    Turn,
    TurnReply,
)
from core.schema.roles import CaseView, DebateView, Evidence, JudgeView, SpeakCallback
from core.schema.rosters import ANSWERING_MODES, SPAN_NAMING_MODES, AgentConfig, limit_turn_tokens

MAX_IMAGE_PIXELS = 1568  # pixels; Claude scales larger images down, others do so earlier
MAX_IMAGE_BYTES = 3_500_000  # base64 makes 5 MB of these, the providers' limit
# Matches up to the last closing mark, as the text itself may hold one.
LONGEST_TEXT_BLOCK = re.compile(
    r"^[ \t]*<<<[ \t]*TEXT[ \t]*\n(?P<text>.*)\n[ \t]*TEXT[ \t]*>>>[ \t]*$",
    re.DOTALL | re.MULTILINE,
)
EMPTY_CONTEXT = EvidenceContext((), (), "")
PLACES_WINDOW_FRACTION = 8  # contested places may take one part in so many of a window


class LlmImageReader(LlmAgent):
    """Image reader on a vision language model."""

    prompts = ("image_question", "image_reading")

    def describe(self, case: Case, image: Source, stop: StopSignal) -> str:
        """Return one paragraph on what the image shows that matters to the claim.

        Raises:
            ModelRefused: The model declined, or says that it sees no image.
            ReplyError: The reply is empty, or two were cut off.
        """
        role, about = "image reader", f"image {image.id[:8]}"
        call = self._asking("image_question", case, stop, role=role, slot=f"{about} question")
        name = call.fields(image_name=image.name)
        with ThreadPoolExecutor(max_workers=1) as pool:  # prepares the image during the first call
            future = pool.submit(
                prepare_image, load_file_bytes(self._context.home, image.id), image.name
            )
            messages = call.whole(case_fields(call, case) | name)
            question = ask_readable(call.say, messages, _require_text, call.mend)
            picture = future.result()
        call = self._asking("image_reading", case, stop, role=role, slot=f"{about} reading")
        messages = call.whole(call.fields(image_prompt=question) | name, (picture,))
        return " ".join(ask_readable(call.say, messages, _require_text, call.mend).split())


def prepare_image(data: bytes, name: str) -> Picture:
    """Return the image upright, on white, at most `MAX_IMAGE_PIXELS` pixels long, without metadata.

    Photographs carry the place where they were taken, which a provider need not know.
    """
    with Image.open(io.BytesIO(data)) as stored:
        is_photograph = stored.format == "JPEG"
    image, _ = open_picture(name, data, Settings().megapixels)
    image.thumbnail((MAX_IMAGE_PIXELS, MAX_IMAGE_PIXELS), Image.Resampling.LANCZOS)
    out = io.BytesIO()
    if not is_photograph:
        image.save(out, "PNG")
        if out.tell() <= MAX_IMAGE_BYTES:
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

    def summarise(
        self, view: CaseView, turns: Sequence[Turn], before: str, stop: StopSignal
    ) -> str:
        """Return the key points of these turns and of the summary `before` them.

        Turns that do not fit the model's window are left out, earliest first. Raises ReplyError if
        the reply is empty, or two were cut off.
        """
        case, number = view.case, max((turn.round for turn in turns), default=0)
        slot = f"summary {number}"
        call = self._asking("summary", case, stop, role="context writer", slot=slot)
        seen = JudgeView(view, EMPTY_CONTEXT, tuple(turns), False, summary=before)
        fields = call.fields(claim=case.response, question=case.question)
        call, messages = fit_debate(call, build_judge_transcript(call, seen), fields)

        def read(reply: Completion) -> str:
            if not reply.text.strip():
                raise ReplyError("Expected a summary, found nothing.", reply=reply.text)
            return reply.text.strip()

        return ask_readable(call.say, messages, read, call.mend)


class LlmReviser(LlmAgent):
    """Reviser on a language model."""

    def revise(self, view: JudgeView, judgement: Judgement, stop: StopSignal) -> str:
        """Return the whole response with its errors corrected.

        Raises ReplyError if two replies hold no text between the marks.
        """
        case = view.case_view.case
        call = self._asking("corrected", case, stop, role="context writer", slot="corrected")
        finding = judgement.prose or judgement.text
        fields = call.fields(question=case.question, finding=finding)
        fields["response"] = call.fenced("text", case.response)
        debate, lines = build_judge_transcript(call, view), format_passages(view.case_view.evidence)
        call, messages = fit_debate(call, debate, fields, lines, "evidence")

        def read(reply: Completion) -> str:
            return parse_revision(reply, case.response)

        return ask_readable(call.say, messages, read, call.mend)


def parse_revision(reply: Completion, response: str) -> str:
    """Return the text between the marks, unchanged.

    Raises UnusableReply if there is none, or if there are several, such as a draft before the last
    one, unless the `response` itself holds such marks.
    """
    match = LONGEST_TEXT_BLOCK.search(reply.text)
    if match is None or not match["text"].strip():
        raise UnusableReply(
            "Expected a line “<<<TEXT”, the whole text, and a line “TEXT>>>” at the end; found "
            "none."
        )
    if TEXT_BLOCK_MARK.search(match["text"]) and not TEXT_BLOCK_MARK.search(response):
        raise UnusableReply("Expected one text between “<<<TEXT” and “TEXT>>>”, found several.")
    return match["text"]


class LlmDebater(LlmAgent):
    """Debater on a language model; it sees only its own share of the evidence."""

    def __init__(self, config: AgentConfig, context: AgentContext) -> None:
        super().__init__(config, context)
        self.prompts = context.turn_prompts

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        """Return one turn; the caller verifies its quotes.

        A turn that was cut off keeps its whole sentences. Raises ReplyError if it has none, or does
        not begin as its manner requires.
        """
        case, manner = view.case_view.case, view.manner
        role, slot = f"debater {view.debater}", f"turn {view.number}"
        call = self._asking(manner, case, stop, role=role, slot=slot)
        room = limit_turn_tokens(manner, call.agent.max_tokens, estimate_tokens(case.response))
        call = replace(call, agent=replace(call.agent, max_tokens=room))
        fields, debate = _build_fields(call, view), None
        if "heard" in FIELDS[manner]:
            debate = build_debater_transcript(call, view)
        elif "last_message" in FIELDS[manner]:
            debate = build_last_message(call, view)
        lines = format_passages(view.case_view.evidence, view.share)
        call, messages = fit_debate(call, debate, fields, lines, "evidence")
        completion = call.say(messages, speak=speak)
        text = strip_speaker_name(completion.text, view.debater)
        if manner == "revise":
            return self._build_revision(view, text)
        reply, stance = _read_position(view, text)
        is_cut = completion.finish == "length"
        if is_cut:
            text = cut_to_sentences(text, case.language)
            if not SENTENCE_END.search(text):
                raise ReplyError("The turn was cut off within its first sentence.", reply=text)
        return Turn(
            debater=view.debater,
            agent=self.name,
            number=view.number,
            round=view.round,
            reply=reply,
            stance=stance,
            text=text,
            quotes=parse_quotes(parse_reason(text) if manner in SPAN_NAMING_MODES else text),
            points=self._find_points(view, text, stance),
            confidence=parse_confidence(text),
            cut=is_cut,
            doubt=parse_doubt(text),
        )

    def _find_points(self, view: DebateView, text: str, stance: Stance) -> tuple[DebatePoint, ...]:
        if view.manner not in SPAN_NAMING_MODES or stance == "supported":
            return ()
        contested = parse_contested(
            text, view.case_view.case, view.case_view.statements, parse_confidence(text)
        )
        for words in contested.nowhere:
            self._context.notes.add(
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
        revision = parse_text_block(text)
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
            stance = "unclear" if revision == view.case_view.case.response else "hallucinated"
        reply = choose_reply(stance, view.turns)
        return Turn(view.debater, self.name, view.number, view.round, reply, stance, revision)


def _build_fields(call: PromptCall, view: DebateView) -> dict[str, str]:
    evidence, field_names = view.case_view.evidence, FIELDS[view.manner]
    conflicts = format_conflicts(view.conflicts, evidence, view.share)
    values = case_fields(call, view.case_view.case) | {
        "debater": one_line(view.debater),
        "conflicts": call.fenced("conflicts", conflicts),
        "about": one_line(view.about),
        "assigned": SIDE_NAMES[view.assigned or "unclear"],
    }
    if "contested" in field_names:  # only then, as fitting may add a notice
        values["contested"] = call.fenced("places", _fit_places(call, view))
    return {name: text for name, text in values.items() if name in field_names}


def _fit_places(call: PromptCall, view: DebateView) -> str:
    """Return the contested places, or the first ones that fit their share of the window."""
    lines = format_places([p for turn in view.turns for p in turn.points]).splitlines()
    kept = count_fitting(lines, window_of(call.agent) // PLACES_WINDOW_FRACTION)
    if lost := len(lines) - kept:
        call.context.notes.once(
            f"{lost} of {len(lines)} lines of contested words did not fit the window of "
            f"{call.agent.model} beside the debate: they were not shown to it."
        )
    return "\n".join(lines[:kept])


def _read_position(view: DebateView, text: str) -> tuple[TurnReply, Stance]:
    about = [turn for turn in view.turns if turn.debater == view.about]
    latest = (about or view.turns)[-1:]
    last: Stance = latest[0].stance if latest else "supported"
    if view.manner in ANSWERING_MODES:
        reply, rest = parse_reply(text)
        return reply, infer_stance(reply, rest, last)
    stance = parse_stated_verdict(text).stance
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


CONTEXT_SCHEMA = ReplySchema(_Sorted)


class LlmContextWriter(LlmSummariser, LlmReviser):
    """Context writer on a language model; it also writes summaries and corrected responses."""

    def __init__(self, config: AgentConfig, context: AgentContext) -> None:
        super().__init__(config, context)
        self.prompts = context.writing

    def write(self, view: CaseView, debaters: Sequence[str], stop: StopSignal) -> EvidenceContext:
        """Return each debater's share, all passages for the judge, facts and conflicts.

        Without evidence no call is made. Facts that cite no passage are the model's own opinion and
        are left out.
        """
        evidence = view.evidence
        whole = tuple(passage.id for passage in rank_passages(evidence))
        if not whole:
            empty = tuple(EvidenceShare(name, ()) for name in debaters)
            return EvidenceContext(empty, (), "There is no evidence to share out.")
        role, schema = "context writer", _build_schema(debaters, len(whole))
        call = self._asking("context", view.case, stop, role=role, slot="context", schema=schema)
        fields = case_fields(call, view.case)
        fields["debaters"] = ", ".join(one_line(name) for name in debaters)
        call, messages, kept = call.fitted(format_passages(evidence), fields, "passages")
        answer = ask_structured(call.say, messages, CONTEXT_SCHEMA, call.mend)
        facts = (
            ContextFact(f.claim.strip(), resolve_passage_ids(f.passages, evidence))
            for f in answer.facts
        )
        return EvidenceContext(
            shares=tuple(_find_share(name, answer, evidence, whole[kept:]) for name in debaters),
            whole=whole,
            summary=answer.summary.strip() or f"{format_count(len(whole), 'passage')}.",
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
    schema = with_property_schema(CONTEXT_SCHEMA.json_schema, "passages", ids)
    return {**schema, "properties": {**schema["properties"], "shares": shares}}


def _find_share(
    name: str, answer: _Sorted, evidence: Evidence, unseen: Sequence[str]
) -> EvidenceShare:
    """Return the debater's share, or all passages if none of its share is known.

    Passages that did not fit the model's prompt go to everybody.
    """
    by_name = {key.casefold().strip(): ids for key, ids in answer.shares.items()}
    ids = resolve_passage_ids(by_name.get(one_line(name).casefold(), ()), evidence)
    return EvidenceShare(
        name, (*ids, *unseen) if ids else tuple(p.id for p in rank_passages(evidence))
    )


def _describe_conflicts(answer: _Sorted, evidence: Evidence) -> tuple[str, ...]:
    sentences = []
    for conflict in answer.conflicts:
        sides = [
            cite_passage(evidence.passages[i])
            for i in resolve_passage_ids(conflict.passages, evidence)
        ]
        about = conflict.about.strip().rstrip(".")
        if len(sides) > 1 and about:
            sentences.append(f"{about}: {' contradicts '.join(sides)}.")
    return tuple(sentences)
