"""A tool's own view: the shape in which it draws what the tool gave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from components.html import Html

Shape = TypeVar("Shape", bound=msgspec.Struct)


class View:
    """Draws what a tool gave where that has the shape; a trace file may hold anything."""

    def __init__(self, shape: type[Shape], draw: Callable[[Shape], Html]) -> None:
        # Made while modules are imported: two threads must not be the first to use a shape.
        self._decoder: msgspec.json.Decoder[Any] = msgspec.json.Decoder(shape)
        self._draw = draw

    def drawn(self, gave: str) -> Html | None:
        """The view; None where the text is no JSON of the shape."""
        try:
            shape = self._decoder.decode(gave.encode())
        except (msgspec.MsgspecError, RecursionError, UnicodeEncodeError):
            return None
        return self._draw(shape)
