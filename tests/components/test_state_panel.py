"""How a run was checked: of an audit it is said that the debate is about a part of it."""

from __future__ import annotations

import re
from dataclasses import replace

from components.run.debate import contested_words, state_html
from core.schema.events import ContextBuilt, Event, MemoryUpdated, Remembered
from core.schema.progress import folded
from core.schema.records import Context, Plan, Run
from tests.audits_told import CASE, begun, told

RUN = Run("r" * 32, CASE.id, "project", Plan("audit"), "finished", 100.0, 110.0)
ARGUED = ContextBuilt(10.8, "Context", Context((), ("b:0",), "1 passage for 2 statements."))


def contested(*numbers: int) -> list[Event]:
    held = Remembered(0, "hallucinated", 0.6, "Not sure.", is_contested=True)
    return [MemoryUpdated(10.0, replace(held, statement=number)) for number in numbers]


def panel(*events: Event) -> str:
    made = state_html(RUN, CASE, folded(events))
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", made))


def test_the_context_of_an_audits_debate_is_not_told_as_the_whole() -> None:
    closed = MemoryUpdated(10.9, Remembered(1, "supported", 0.4, "The judge decides."))
    events = [*begun(), *contested(1, 3), ARGUED, closed]
    shown = panel(*events)
    assert "Passages 1 found" in shown
    assert "Debated only what stayed contested: statements 2, 4" in shown
    assert "Passages of the debate 1 passage for 2 statements." in shown
    assert contested_words(folded(events)) == "only what stayed contested: statements 2, 4"


def test_an_audit_without_a_debate_says_so_and_tells_of_no_turns() -> None:
    shown = panel(*told())
    assert "Debated nothing, for nothing stayed contested" in shown
    assert "turns" not in shown.partition("Intermediate state")[2]
    assert "Debated nothing so far" in panel(*begun(), *contested(0))
