"""Stand-ins at the boundaries: a scripted debater and judge, an encoder of hashes, builders."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from core.concurrency import Stop
from core.errors import ReviewError
from core.models.encoder import Matrix, TokenVectors
from core.records import (
    Case,
    Judgement,
    Label,
    Passage,
    Quote,
    Reply,
    Stance,
    Statement,
    Turn,
)
from core.roles import CaseView, DebateView, Evidence, JudgeView, Speak

Line = tuple[Reply, Stance, str]


class ScriptedDebater:
    """Speaks the given lines in order, in chunks; complains when it runs out of them."""

    built_in = False
    rule = "says what the test wrote"

    def __init__(self, name: str, lines: Sequence[Line | ReviewError], chunk: int = 8) -> None:
        self.name = name
        self.lines = list(lines)
        self.views: list[DebateView] = []
        self._chunk = chunk

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
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

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        self.views.append(view)
        return self._judgement


class FakeEmbedder:
    """Sums of hashed words as unit vectors: same words, same direction; no meaning."""

    id = "fake-1"
    width = 32

    def encode(self, texts: Sequence[str], stop: Stop | None = None) -> Matrix:
        rows = [self._vector(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.width), np.float32)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.zeros(len(texts), dtype=bool)

    def tokens(self, text: str) -> TokenVectors:
        offsets: list[tuple[int, int]] = []
        start = 0
        for word in text.split():
            start = text.index(word, start)
            offsets.append((start, start + len(word)))
            start += len(word)
        vectors = self.encode([text[a:b] for a, b in offsets])
        return TokenVectors(tuple(offsets), vectors, False)

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
