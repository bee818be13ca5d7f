"""Benches for tests of tools: an asker with scripted replies, readers and a library of texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec

from core.runtime.concurrency import StopSignal
from core.runtime.errors import ReviewError
from core.schema.records import Passage
from core.tools.registry import SearchResult, ToolAnswer, ToolContext
from tests.fakes import make_passage

Given = TypeVar("Given", bound=msgspec.Struct)


@dataclass
class ScriptedAsker:
    """Replies in order, each read in the kind that is asked for; keeps what was asked."""

    replies: list[Mapping[str, object] | ReviewError]
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __call__(self, prompt: str, fields: Mapping[str, str], kind: type[Given]) -> Given:
        self.asked.append((prompt, dict(fields)))
        reply = self.replies.pop(0)
        if isinstance(reply, ReviewError):
            raise reply
        return msgspec.convert(dict(reply), kind)


def bench(
    ask: ScriptedAsker | None = None,
    match: Callable[[str, Sequence[Passage]], ToolAnswer] | None = None,
    library: Callable[[str, int], Sequence[Passage]] | None = None,
    web: Callable[[str, int], Sequence[SearchResult]] | None = None,
) -> ToolContext:
    return ToolContext(StopSignal(), library, web, ask, match)


def library_of(*texts: str) -> Callable[[str, int], Sequence[Passage]]:
    """A library that finds its texts in their order, whatever is looked for."""
    passages = [make_passage(text, number=n, source=f"s{n}.txt") for n, text in enumerate(texts)]
    return lambda query, most: passages[:most]
