"""A labelled row of a public set, whatever its format was."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.formats.rows import GoldSpan as GoldSpan  # of every row's marks
from core.records import Label


@dataclass(frozen=True)
class GoldRow:
    """A case with what people said of it.

    `id` is unique within a set and a task and stays the same between runs; `place` names file and
    line for messages. `label` is None where the set holds no label (it can be run, not scored);
    `unclear` where the evidence was found not to decide. `group` is the text that ties rows
    together (the question, prompt, title or evidence that the manifest splits by): related rows
    lie on one side of a split. `documents` is empty where the set has no evidence. `spans` is None
    where the set marks no words, () where it says that none is wrong; `soft` holds every marked
    stretch with its share. `recorded` is what another detector said, where the set records it.
    """

    id: str
    place: str
    response: str
    label: Label | None
    group: str
    language: str = "en"
    question: str = ""
    documents: tuple[str, ...] = ()
    images: tuple[Path, ...] = ()
    spans: tuple[GoldSpan, ...] | None = None
    soft: tuple[GoldSpan, ...] = ()
    recorded: Label | None = None
    recorded_by: str = ""
