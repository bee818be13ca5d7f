"""A whole audit: statements, tools, reflection, debate on what is contested, verdict."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agents.rosters import roster_named
from core.concurrency import Stop
from core.config import ENCODER_DIR, Settings
from core.engine import Resources, review
from core.events import Event
from core.models.encoder import load_encoder
from core.progress import Progress, folded
from core.records import Case, Plan
from core.roles import Roster
from core.verdict.classifier import load_classifier
from tests.fakes import ticking
from tests.test_engine import case_of

PLAN = Plan("audit")
TOWER = b"The Orrin tower is 412 m tall. It was opened in 1932. Its architect was Lena Moor."


@pytest.fixture
def resources(home: Path) -> Resources:
    """The real encoder and the seed classifier over an empty home."""
    return Resources(
        home=home,
        settings=Settings(),
        encoder=load_encoder(ENCODER_DIR),
        classifier=load_classifier(home, "seed"),
        now=ticking(),
    )


@pytest.fixture
def roster(resources: Resources) -> Roster:
    """The built-in roster."""
    return roster_named("builtin", resources.encoder)


def audit(
    case: Case, roster: Roster, resources: Resources, past: list[Event] | None = None
) -> list[Event]:
    return list(review(case, PLAN, roster, resources, Stop(), past=past or []))


def told(state: Progress) -> None:
    """What holds of every audit, whatever it found."""
    assert state.case
    assert state.judgement
    assert sorted(state.memory) == sorted(state.statements)
    labels = state.judgement.statement_labels
    assert len(labels) == len(state.statements)
    for label, (index, statement) in zip(labels, sorted(state.statements.items()), strict=True):
        entry = state.memory[index]
        assert label == (entry.label if entry.is_checkable else "unclear")
        assert not entry.is_contested
        assert state.case.response[statement.start : statement.end] == statement.text
    for use in state.tool_uses:
        if use.start is not None and use.end is not None:
            assert 0 <= use.start < use.end <= len(state.case.response)
    for span in state.spans:
        assert state.case.response[span.start : span.end] == span.text


def test_each_statement_has_a_label_of_its_own_and_a_wrong_one_decides(
    roster: Roster, resources: Resources
) -> None:
    claim = "The Orrin tower was opened in 1932. It is 512 m tall."
    case = case_of(resources.home, claim, ("tower.txt", TOWER))
    state = folded(audit(case, roster, resources))
    told(state)
    assert [state.memory[i].label for i in (0, 1)] == ["supported", "hallucinated"]
    assert state.verdict
    assert state.verdict.label == "hallucinated"
    assert [span.text for span in state.spans] == ["512 m"]
    assert "512 m tall" in state.verdict.rationale
