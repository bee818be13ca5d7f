"""Sets of our own are measured with a reader without weights: what it says is foreseen."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _without_weights(without_weights: None) -> None:
    """Figures do not depend on what the shipped reader has learned."""
