"""How long tests of saving and of the queue go on: shortly in the suite, long in `make soak`."""

from __future__ import annotations

import os

SOAK = "COUNTERPOINT_SOAK"


def often(usual: int, in_soak: int) -> int:
    """How many rounds, items or examples there are."""
    return in_soak if os.environ.get(SOAK) else usual
