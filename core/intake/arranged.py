"""What a layout is made of: lines of pieces, each with the place where it was seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.intake.seen import Seen


@dataclass(frozen=True)
class Piece:
    """Some characters of a line; `seen` is None for what only joins the others."""

    text: str
    seen: Seen | None = None


Line = tuple[Piece, ...]


def piece(item: Seen) -> Piece:
    """The item's own text at its own place."""
    return Piece(item.text, item)


def joined(items: Sequence[Seen], by: str) -> Line:
    """The items' texts with `by` between them."""
    pieces: list[Piece] = []
    for item in items:
        if pieces:
            pieces.append(Piece(by))
        pieces.append(piece(item))
    return tuple(pieces)


def text_of(line: Line) -> str:
    """The line's characters."""
    return "".join(part.text for part in line)
