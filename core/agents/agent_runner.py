"""Runs one role on a language model: fences, fills, fits and asks, and tries its spare model.

An unusable reply costs only its role; only the judge's leaves the verdict unclear. A service that
failed ends the run, which can be resumed: slots name calls and stay the same.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from core.llm.call import (
    Call,
    CallUnderWay,
    Completion,
    Message,
    ModelRequest,
    Picture,
    ReplySchema,
    RunClient,
    ask_structured,
    decodes_by_grammar,
    extract_answer,
    ignore_piece,
)
from core.llm.limits import count_fitting, count_message_tokens, truncate_to_tokens, window_of
from core.llm.prompting import LANGUAGES, Fence, Prompt, PromptBook, fill_prompt
from core.llm.reply_forms import REPLY_FORMS, ProseStream, ReplyForm
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError, ReplyError
from core.schema.events import (
    ContextBuilt,
    Event,
    JudgementReached,
    JudgementSampled,
    ModelCalled,
    ProblemMet,
    ProgressMade,
    Stage,
    StatementFound,
)
from core.schema.records import SHIPPED_MARKS, Case, Judgement, LearnedMarks, Project, Statement
from core.schema.roles import Agent, CaseView, JudgeView, Roster, SpeakCallback
from core.schema.rosters import AgentConfig
from core.schema.run_state import sum_costs
from core.store.ledger import RETRY_SLOT_SUFFIX

if TYPE_CHECKING:
    from core.baseline.assessment import Assessor

SPARE_SHARE = 0.05


class RunNotes:
    """Notices of agents for the trace that fit no record; thread-safe."""

    def __init__(self) -> None:
        self._sentences: list[str] = []
        self._known: set[str] = set()
        self._lock = threading.Lock()

    def add(self, words: str) -> None:
        """Add one sentence."""
        with self._lock:
            self._sentences.append(words)

    def once(self, words: str) -> None:
        """Add one sentence unless it was added before."""
        with self._lock:
            if words not in self._known:
                self._known.add(words)
                self._sentences.append(words)

    def drain(self) -> tuple[str, ...]:
        """Return all sentences since the last drain."""
        with self._lock:
            drained, self._sentences = tuple(self._sentences), []
        return drained


@dataclass(frozen=True)
class AgentContext:
    """What the agents of one run share: client, prompts in force, fence, files, learned marks.

    `turn_prompts`, `judge_prompts` and `writing` name the prompts that the run's protocol has its
    debaters, its judge and its context writer asked by: those rule them. Built-in agents beside the
    models read by the `assessor`; by the shipped reader where there is none. `under_way` holds the
    calls that models are answering now: appending and removing are atomic, so it needs no lock.
    """

    client: RunClient
    book: PromptBook
    fence: Fence
    home: Path
    notes: RunNotes = field(default_factory=RunNotes)
    learned: LearnedMarks = SHIPPED_MARKS
    turn_prompts: tuple[str, ...] = ("debate",)
    judge_prompts: tuple[str, ...] = ("judge",)
    writing: tuple[str, ...] = ("context",)
    assessor: Assessor | None = None
    under_way: list[CallUnderWay] = field(default_factory=list)


class LlmAgent:
    """An agent on a language model: its name and the prompts that rule it."""

    built_in = False
    prompts: tuple[str, ...] = ()

    def __init__(self, config: AgentConfig, agent_context: AgentContext) -> None:
        self._agent = config
        self._context = agent_context

    @property
    def name(self) -> str:
        """The model's name without its provider."""
        return self._agent.model.split("/", 1)[-1]

    @property
    def rule(self) -> str:
        """The prompts in force in every language; the case's language decides which is sent."""
        return self._prompts_words(*self.prompts)

    def _prompts_words(self, *names: str) -> str:
        book = self._context.book
        found = [book.prompt(name, language) for name in names for language in LANGUAGES]
        return "\n\n".join(f"{p.name} ({p.language}) {p.hash}\n{p.text.strip()}" for p in found)

    def _asking(
        self,
        prompt: str,
        case: Case,
        stop: StopSignal,
        *,
        role: str,
        slot: str,
        schema: Mapping[str, Any] | None = None,
    ) -> PromptCall:
        chosen = self._context.book.prompt(prompt, case.language)
        return PromptCall(self._agent, self._context, role, slot, chosen, stop, schema)


@dataclass(frozen=True)
class PromptCall:
    """One prompt of one role, up to its reply."""

    agent: AgentConfig
    context: AgentContext
    role: str
    slot: str
    prompt: Prompt
    stop: StopSignal
    schema: Mapping[str, Any] | None = None
    cut: str = ""
    preface: str = ""  # stands before the last message's words

    @property
    def form(self) -> ReplyForm | None:
        """The fields that the server is asked for instead of prose, if any."""
        is_prose = self.schema is None and decodes_by_grammar(self.agent)
        return REPLY_FORMS.get(self.prompt.name) if is_prose else None

    def fenced(self, kind: str, text: str) -> str:
        """Return the text as fenced material."""
        return self.context.fence.around(kind, text)

    def fields(self, **texts: str) -> dict[str, str]:
        """Return the texts by field name, each in a fence of that name."""
        return {name: self.fenced(name.replace("_", " "), text) for name, text in texts.items()}

    def whole(
        self, fields: Mapping[str, str], pictures: tuple[Picture, ...] = ()
    ) -> tuple[Message, ...]:
        """Return the filled prompt, uncut, with pictures in its last message.

        Raises ModelError: it does not fit the model's window.
        """
        *before, last = self._filled(fields)
        messages = (*before, replace(last, pictures=pictures))
        self._room_beside(messages)
        return messages

    def fitted(
        self, parts: Sequence[str], fields: Mapping[str, str], key: str
    ) -> tuple[PromptCall, tuple[Message, ...], int]:
        """Fit as many leading parts as the window takes, fenced in the field `key`.

        (The asking, which says what was cut; the messages; how many parts are in them.) Raises
        ModelError: even without any of them the question does not fit.
        """
        room = self._room_beside(self._filled({**fields, key: self.fenced(key, "")}))
        kept = count_fitting(parts, int(room * (1 - SPARE_SHARE)))
        messages = self._filled({**fields, key: self.fenced(key, "\n".join(parts[:kept]))})
        if kept == len(parts):
            return self, messages, kept
        window = window_of(self.agent)
        lost = f"{len(parts) - kept} of {len(parts)} passages"
        cut = f"{self.cut} {lost} did not fit the model's {window:,} tokens.".strip()
        return replace(self, cut=cut), messages, kept

    def _filled(self, fields: Mapping[str, str]) -> tuple[Message, ...]:
        *before, last = fill_prompt(self.prompt, fields)
        words = f"{self.preface}\n\n{last.text}" if self.preface else last.text
        return (*before, replace(last, text=words))

    def room(self, fields: Mapping[str, str]) -> int:
        """Return the tokens left in the window beside this prompt and the answer.

        Raises ModelError: they are less than none.
        """
        return self._room_beside(self._filled(fields))

    def _room_beside(self, messages: tuple[Message, ...]) -> int:
        needed = count_message_tokens(messages)
        room = window_of(self.agent) - self.agent.max_tokens - needed
        if room < 0:
            raise ModelError(window_too_small_message(self.role, self.agent, needed))
        return room

    def say(
        self,
        messages: tuple[Message, ...],
        *,
        again: bool = False,
        speak: SpeakCallback = ignore_piece,
    ) -> Completion:
        """Return the reply; a retry that shows the model its error has its own slot.

        A retry shows no more of the reply before it than its agent allows, and the window takes: a
        model that keeps to no limit would else use up the caps, and the run, for its role.
        """
        slot = self.slot
        if again:
            slot += RETRY_SLOT_SUFFIX
            *before, reply, mend = messages
            room = (
                window_of(self.agent)
                - self.agent.max_tokens
                - count_message_tokens((*before, mend))
            )
            kept = truncate_to_tokens(reply.text, min(room, self.agent.max_tokens))
            messages = (*before, replace(reply, text=kept or "…"), mend)
        form, schema = self.form, self.schema
        if form is not None:
            at = [message.role for message in messages].index("user")
            asked_so = replace(messages[at], text=messages[at].text + form.asked)
            messages = (*messages[:at], asked_so, *messages[at + 1 :])
            schema = form.schema
        call = Call(self.agent, messages, schema, self.context.fence.token)
        name = f"{self.prompt.language}/{self.prompt.name}"
        asked = ModelRequest(self.role, slot, call, name, self.prompt.hash, self.cut)
        under_way = CallUnderWay(asked, count_message_tokens(messages), time.monotonic())

        def receive(piece: str) -> None:
            under_way.pieces.append(piece)
            speak(piece)

        self.context.under_way.append(under_way)
        try:
            completion = self.context.client.ask(
                asked, self.stop, ProseStream(form, receive).add if form else receive
            )
        finally:
            self.context.under_way.remove(under_way)
        text = extract_answer(completion.text)
        if form is not None:  # half an object is not repaired
            is_cut = completion.finish == "length"
            text = (form.beginning(text) or text) if is_cut else form.prose(text)
        return replace(completion, text=text)

    def mend(self, error: str) -> Message:
        """Return the message that tells the model what was wrong with its reply."""
        prompt = self.context.book.prompt("mend", self.prompt.language)
        return fill_prompt(prompt, {"error": error})[-1]


def window_too_small_message(role: str, config: AgentConfig, needed: int) -> str:
    """Return the message for a prompt that does not fit the model's window."""
    return (
        f"The {role}'s model {config.model} takes {window_of(config):,} tokens; the question in "
        f"its shortest form needs about {needed:,} and its answer up to {config.max_tokens:,}. "
        "Choose a model with a larger window, allow it a shorter answer, or shorten the text."
    )


def case_fields(asking: PromptCall, case: Case) -> dict[str, str]:
    """Return the fields claim, question, role and instruction (CEDA A.3.1)."""
    return asking.fields(
        role=case.role or Project.role,
        instruction=case.instruction or Project.instruction,
        claim=case.response,
        question=case.question,
    )


def one_line(text: str, limit: int = 60) -> str:
    """Shorten a name to one line, for use outside fences."""
    return " ".join(text.split())[:limit]


Given = TypeVar("Given", bound=msgspec.Struct)
_get_reply_schema = cache(ReplySchema)
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class ToolPromptRunner:
    """The `PromptRunner` of tools over one model; thread-safe.

    `language` (a BCP 47 tag or `und`) picks the prompt's language; `role` names who asks in the
    ledger and in messages.
    """

    agent: AgentConfig
    context: AgentContext
    language: str
    stop: StopSignal
    role: str = "tool"

    def __call__(self, prompt: str, fields: Mapping[str, str], kind: type[Given]) -> Given:
        """Return the reply to the prompt of that name; every field is fenced, even an empty one.

        Its slot is the same for the same question, in whatever order a resumed run comes to it.

        Raises:
            ModelError: the service failed, or the question does not fit the model's window.
            ReplyError: two replies could not be read.
            ConfigError: there is no such prompt, or its fields are others.
        """
        with _one_at_a_time:  # msgspec's first look at a type is not safe in two threads
            schema: ReplySchema[Given] = _get_reply_schema(kind)
        chosen = self.context.book.prompt(prompt, self.language)
        digest = hashlib.sha256(msgspec.json.encode(sorted(fields.items()))).hexdigest()
        slot = f"{prompt} {digest[:12]}"
        asking = PromptCall(
            self.agent, self.context, self.role, slot, chosen, self.stop, schema.json_schema
        )
        fenced = asking.fields(**fields)
        return ask_structured(asking.say, asking.whole(fenced), schema, asking.mend)


Part = TypeVar("Part")
UNREADABLE = "The judge gave no reply that could be used, so there is no verdict."


@dataclass(frozen=True)
class RunContext:
    """What all roles of one run share."""

    roster: Roster
    stop: StopSignal
    now: Callable[[], float]


def drain_calls(run: RunContext) -> tuple[ModelCalled, ...]:
    """Return the model calls made since the last drain, as events."""
    return tuple(ModelCalled(run.now(), call) for call in run.roster.calls_made())


def drain_notes(run: RunContext, stage: Stage) -> Iterator[Event]:
    """Yield the agents' notices as events."""
    yield from (ProblemMet(run.now(), stage, words) for words in run.roster.notes_made())


def segment_response(
    run: RunContext, case: Case, known: Mapping[int, Statement]
) -> Iterator[Event]:
    """Segment the response; statements that are known already stay as they are."""
    segmenter = run.roster.segmenter
    yield ProgressMade(run.now(), "searching", "Splitting the text into statements")
    statements, events = play_role(
        run,
        segmenter,
        "searching",
        lambda: segmenter.segment(case, run.stop),
        lambda spare: spare.segmenter.segment(case, run.stop),
        role="Segmenter",
    )
    yield from events
    end = max((statement.end for statement in known.values()), default=0)
    rest = [statement for statement in statements or () if statement.start >= end]
    for index, statement in enumerate(rest, max(known, default=-1) + 1):
        yield StatementFound(run.now(), replace(statement, index=index))


def write_context(run: RunContext, view: CaseView, names: Sequence[str]) -> Iterator[Event]:
    """Have agent C write the context for debaters of these names (CEDA 3.3)."""
    writer = run.roster.context_writer
    yield ProgressMade(run.now(), "debating", "Sharing out the evidence")
    context, events = play_role(
        run,
        writer,
        "debating",
        lambda: writer.write(view, names, run.stop),
        lambda spare: spare.context_writer.write(view, names, run.stop),
        role="Context writer",
    )
    yield from events
    if context is None:
        raise ModelError(f"{writer.name} put no context together and nobody stands in for it.")
    yield ContextBuilt(run.now(), writer.name, context)
    yield from drain_notes(run, "debating")


def run_judge(run: RunContext, seen: JudgeView) -> Iterator[Event]:
    """Have the judge decide; nobody stands in for it: an unusable reply is no verdict."""
    run.stop.check()
    yield ProgressMade(run.now(), "judging", "Weighing what was said")
    judgement, seconds, cost = yield from _heard_out(run, seen, "So there is no verdict.")
    yield JudgementReached(run.now(), judgement, seconds, cost)


def sample_judgement(run: RunContext, seen: JudgeView, note: str) -> Iterator[Event]:
    """Sample one judgement; an unusable reply is `unclear` and counts for no label."""
    yield ProgressMade(run.now(), "judging", "Asking the judge")
    judgement, seconds, cost = yield from _heard_out(run, seen, "So it counts for no label.")
    yield JudgementSampled(run.now(), judgement, seen.number, note, seconds, cost)


def _heard_out(
    run: RunContext, seen: JudgeView, so: str
) -> Generator[Event, None, tuple[Judgement, float, float | None]]:
    """Yield one judgement's events; `so` says what an unusable reply means.

    Returns it, the seconds it took and the cost of its calls.
    """
    run.stop.check()
    began = run.now()
    judge = run.roster.judge
    unusable: list[Event] = []
    try:
        judgement = judge.decide(seen, run.stop)
    except ReplyError as error:
        words = f"{unusable_reply_message(judge, 'Judge', error)} {so}"
        unusable = [ProblemMet(run.now(), "judging", words, reply=error.reply)]
        judgement = Judgement(
            agent=judge.name,
            label="unclear",
            text=UNREADABLE,
            cause="unreadable_reply",
            cause_words=words,
        )
    calls = drain_calls(run)
    yield from (*calls, *unusable, *drain_notes(run, "judging"))
    return judgement, run.now() - began, sum_costs(event.call for event in calls)


def play_role(
    run: RunContext,
    agent: Agent,
    stage: Stage,
    act: Callable[[], Part],
    stand_in: Callable[[Roster], Part],
    *,
    role: str,
) -> tuple[Part | None, list[Event]]:
    """Return what the agent did, or its spare for an unusable reply, and the events."""
    run.stop.check()
    try:
        return act(), [*drain_calls(run)]
    except ReplyError as error:
        spare = run.roster.spare
        rest = "The built-in agent stands in." if spare else "Nobody stands in."
        message = f"{unusable_reply_message(agent, role, error)} {rest}"
        unusable = ProblemMet(run.now(), stage, message, reply=error.reply)
        return (stand_in(spare) if spare else None), [*drain_calls(run), unusable]


def unusable_reply_message(agent: Agent, role: str, error: ReplyError) -> str:
    """Say whose reply is unusable and why; a refusal names its role itself."""
    words = str(error)
    return words if words.startswith(f"{role} (") else f"{role} ({agent.name}): {words}"
