"""Which statements can be checked at once, and which wait for what is found of the others."""

from __future__ import annotations

from collections.abc import Sequence

from core.baseline.tool_picker import concludes
from core.records import Statement


def waves(statements: Sequence[Statement], language: str) -> tuple[tuple[Statement, ...], ...]:
    """Those that stand alone, then those that say that they follow from others.

    Within a wave none sees what is found of another: so a picker's view, and with it a model's
    prompt and its place in the ledger, is the same however long each check takes.
    """
    later = [s for s in statements[1:] if concludes(s.text, language)]
    first = [s for s in statements if s not in later]
    return tuple(tuple(wave) for wave in (first, later) if wave)
