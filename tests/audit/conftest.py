"""What an audit is run with: the built-in roster over an empty home."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.agents.rosters import roster_named
from core.config import ENCODER_DIR, Settings
from core.engine import Resources
from core.models.encoder import load_encoder
from core.roles import Roster
from core.verdict.classifier import load_classifier
from tests.fakes import ticking


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
