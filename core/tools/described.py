"""The toolbox in words that an agent reads: how each tool is called, what for, with which input.

Source: HaluAgent A.1 and A.2 (table 5: names with their usage instructions).
"""

from __future__ import annotations

from collections.abc import Iterable
from inspect import cleandoc
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from core.tools.toolbox import Tool


def described(tools: Iterable[Tool[Any]]) -> str:
    """All these tools, one paragraph each, in their order."""
    return "\n\n".join(_described(tool) for tool in tools)


def signature(tool: Tool[Any]) -> str:
    """The tool's name with its fields, their types and defaults, as one would declare it."""
    return f"{tool.name}({_fields(tool.takes)})"


def _described(tool: Tool[Any]) -> str:
    words = f"{tool.description}\n{cleandoc(tool.takes.__doc__ or '')}"
    lines = (line.rstrip() for line in words.splitlines())
    return "\n  ".join([signature(tool), *filter(None, lines)])


def _fields(struct: type[msgspec.Struct]) -> str:
    hints = get_type_hints(struct)
    return ", ".join(
        f"{field.name}: {_type_words(hints[field.name])}{_default(field)}"
        for field in msgspec.structs.fields(struct)
    )


def _type_words(hint: Any) -> str:
    """A type as Python writes it; an object as its fields in braces."""
    if get_origin(hint) in (list, tuple):
        inner = ", ".join("..." if one is ... else _type_words(one) for one in get_args(hint))
        return f"{get_origin(hint).__name__}[{inner}]"
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return f"{{{_fields(hint)}}}"
    return hint.__name__ if isinstance(hint, type) else str(hint).replace("typing.", "")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default_factory is not msgspec.NODEFAULT:
        return f" = {field.default_factory()!r}"
    return "" if field.default is msgspec.NODEFAULT else f" = {field.default!r}"
