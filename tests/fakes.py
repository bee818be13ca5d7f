"""Stand-ins at the boundaries: scripted agents and models, an encoder of hashes, builders."""

from __future__ import annotations

import getpass
import hashlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from core.documents.library import store_file
from core.llm.call import Call, Completion, Model, ModelRequest, ignore_piece
from core.llm.encoder import Matrix
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import ReviewError
from core.schema.events import Event
from core.schema.records import (
    Case,
    Judgement,
    Label,
    ModelCall,
    Passage,
    Plan,
    Quote,
    Stance,
    Statement,
    Turn,
    TurnReply,
)
from core.schema.roles import CaseView, DebateView, Evidence, JudgeView, Roster, SpeakCallback
from core.store import Store, open_store

if TYPE_CHECKING:
    from core.pipeline.review import ReviewResources
    from core.pipeline.run_factory import EarlierRun

Line = tuple[TurnReply, Stance, str]


class ScriptedDebater:
    """Speaks the given lines in order, in chunks; complains when it runs out of them."""

    built_in = False
    rule = "says what the test wrote"

    def __init__(self, name: str, lines: Sequence[Line | ReviewError], chunk: int = 8) -> None:
        self.name = name
        self.lines = list(lines)
        self.views: list[DebateView] = []
        self._chunk = chunk

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        self.views.append(view)
        if not self.lines:
            raise AssertionError(f"{self.name} has no lines left for turn {view.number}")
        line = self.lines.pop(0)
        if isinstance(line, ReviewError):
            raise line
        reply, stance, text = line
        for start in range(0, len(text), self._chunk):
            stop.check()
            speak(text[start : start + self._chunk])
        quotes = tuple(
            Quote(part, "verified") for part in text.split("“")[1:] for part in [part.split("”")[0]]
        )
        return Turn(
            debater=view.debater,
            agent=self.name,
            number=view.number,
            round=view.round,
            reply=reply,
            stance=stance,
            text=text,
            quotes=quotes,
        )


class ScriptedJudge:
    """Concludes what the test wrote, and keeps what it was shown."""

    name = "Scripted judge"
    built_in = False
    rule = "concludes what the test wrote"

    def __init__(self, label: Label, text: str) -> None:
        self._judgement = Judgement(self.name, label, text)
        self.views: list[JudgeView] = []

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        self.views.append(view)
        return self._judgement


@dataclass(frozen=True)
class Said:
    """A scripted reply with more to it than its text."""

    text: str
    finish: Literal["stop", "length"] = "stop"


Scripted = str | Said | ReviewError
Script = Sequence[Scripted] | Callable[[Call], Scripted]


class ScriptedModel:
    """Answers calls with replies in order, or with what a function makes of each call.

    Streams in chunks. Complains when it runs out; `finished` complains about replies left over.
    """

    def __init__(self, script: Script, chunk: int = 8) -> None:
        self._answer = script if callable(script) else None
        self._left: list[Scripted] = [] if callable(script) else list(script)
        self._chunk = chunk
        self._lock = threading.Lock()
        self.calls: list[Call] = []

    def complete(self, call: Call, speak: SpeakCallback, stop: StopSignal) -> Completion:
        with self._lock:
            self.calls.append(call)
            reply = self._next(call)
        if isinstance(reply, ReviewError):
            raise reply
        said = Said(reply) if isinstance(reply, str) else reply
        for start in range(0, len(said.text), self._chunk):
            stop.check()
            speak(said.text[start : start + self._chunk])
        words = sum(len(message.text.split()) for message in call.messages)
        return Completion(
            said.text, said.finish, words, len(said.text.split()), False, 0.001, seconds=0.2
        )

    def finished(self) -> None:
        assert not self._left, f"the model was not asked for {self._left}"

    def _next(self, call: Call) -> Scripted:
        if self._answer:
            return self._answer(call)
        if not self._left:
            raise AssertionError(f"the model has no reply left for {call.messages[-1].text[:200]}")
        return self._left.pop(0)


class FakeDesk:
    """Passes calls on to a model and keeps what was asked; knows no caps and no ledger.

    Instead of a model it takes a function from what is asked to the reply.
    """

    def __init__(self, model: Model | Callable[[ModelRequest], Scripted]) -> None:
        self._model = model
        self._made: list[ModelCall] = []
        self._lock = threading.Lock()
        self.asked: list[ModelRequest] = []

    def ask(
        self, asked: ModelRequest, stop: StopSignal, speak: SpeakCallback = ignore_piece
    ) -> Completion:
        with self._lock:
            self.asked.append(asked)
        model = self._model
        try:
            if not hasattr(model, "complete"):
                model = ScriptedModel([model(asked)])
            done = model.complete(asked.call, speak, stop)
        except ReviewError as error:
            self._keep(asked, None, str(error))
            raise
        self._keep(asked, done, "")
        return done

    def drain(self) -> tuple[ModelCall, ...]:
        with self._lock:
            made, self._made = tuple(self._made), []
        return made

    def _keep(self, asked: ModelRequest, done: Completion | None, problem: str) -> None:
        call = ModelCall(
            id=asked.slot,
            role=asked.role,
            slot=asked.slot,
            model=asked.call.agent.model,
            prompt=asked.prompt,
            prompt_hash=asked.prompt_hash,
            tokens_in=done.tokens_in if done else 0,
            tokens_out=done.tokens_out if done else 0,
            cost=done.cost if done else 0.0,
            seconds=done.seconds if done else 0.0,
            cut=asked.cut,
            problem=problem,
        )
        with self._lock:
            self._made.append(call)


class FakeEmbedder:
    """Sums of hashed words as unit vectors: same words, same direction; no meaning."""

    id = "fake-1"
    width = 32

    def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
        rows = [self._vector(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.zeros(len(texts), dtype=bool)

    def _vector(self, text: str) -> Matrix:
        total = np.zeros(self.width, np.float32)
        for word in text.casefold().split():
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
            total += np.random.default_rng(seed).standard_normal(self.width).astype(np.float32)
        return np.asarray(total / max(1e-9, float(np.linalg.norm(total))), np.float32)


def ticking(start: float = 1000.0, step: float = 1.0) -> Callable[[], float]:
    """A clock that moves one step at each look."""
    now = start - step

    def clock() -> float:
        nonlocal now
        now += step
        return now

    return clock


def make_case(response: str, **fields: object) -> Case:
    """A case in English over no sources, unless told otherwise."""
    values: dict[str, object] = {"id": "case", "project_id": "project", "language": "en"}
    return Case(response=response, **(values | fields))  # type: ignore[arg-type]


def make_passage(
    text: str, *, number: int = 0, source: str = "facts.txt", before: str = ""
) -> Passage:
    """A passage that stands at the start of its own source."""
    return Passage(
        id=f"{source}:{number}",
        source_id=source,
        source=source,
        is_image=False,
        page=None,
        start=0,
        end=len(text),
        text=text,
        score=1.0,
        similarity=0.8,
        before=before,
    )


def make_view(case: Case, passages: Sequence[Passage]) -> CaseView:
    """A view in which the response is one statement and every passage is its evidence."""
    statement = Statement(0, 0, len(case.response), case.response, case.response)
    evidence = Evidence({p.id: p for p in passages}, {0: tuple(p.id for p in passages)})
    return CaseView(case, (statement,), evidence, {p.source_id: p.text for p in passages})


def case_of(home: Path, claim: str, *files: tuple[str, bytes], **fields: Any) -> Case:
    """A stored case over stored files."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        entries = [
            store_file(store, home, project.id, name, data, "Mira", 1.0, Settings())
            for name, data in files
        ]
        images = tuple(e.id for e in entries if e.kind == "image")
        documents = tuple(e.id for e in entries if e.kind != "image")
        draft = CaseDraft(claim, documents=documents, images=images, **fields)
        return store_case(store, project, draft, "Mira", 1.0)


def get_last_person(store: Store) -> str:
    """The name last typed in a home, which its browser remembers, else the system's user."""
    return store.projects.note("person") or getpass.getuser()


def review(
    case: Case,
    plan: Plan,
    roster: Roster,
    resources: ReviewResources,
    stop: StopSignal,
    *,
    past: Sequence[Event] = (),
    earlier: EarlierRun | None = None,
) -> Iterator[Event]:
    """A run's events one by one."""
    from core.pipeline.review import run_review

    found = run_review(case, plan, roster, resources, stop, past=past, earlier=earlier)
    return chain.from_iterable(found)
