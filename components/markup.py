"""The one builder of HTML: every piece of text is escaped, only these tags and attributes exist."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

TAGS = frozenset(
    """article b br dd div dl dt em figcaption figure h1 h2 h3 h4 header html body head img li main
    mark meta ol p section small span strong style sup table tbody td th thead title tr
    ul""".split()
)
ATTRIBUTES = frozenset(
    "class id title dir lang data-n style alt src role aria-label charset".split()
)
VOID = frozenset(["br", "img", "meta"])


class Html(str):
    """Markup that this builder made; anything else is text."""

    __slots__ = ()


def element(name: str, *children: str | Html, **attributes: str | None) -> Html:
    """An element; children that are not `Html` are escaped. `class_` gives `class`.

    Raises:
        ValueError: a tag or attribute that we do not use; a mistake in the code.
    """
    if name not in TAGS:
        raise ValueError(f"<{name}> is not among our tags")
    parts = [f"<{name}"]
    for key, value in attributes.items():
        attribute = key.rstrip("_").replace("_", "-")
        if attribute not in ATTRIBUTES:
            raise ValueError(f"{attribute} is not among our attributes")
        if value is not None:
            parts.append(f' {attribute}="{escape(value, quote=True)}"')
    parts.append(">")
    if name not in VOID:
        parts += [text(child) for child in children]
        parts.append(f"</{name}>")
    return Html("".join(parts))


def text(value: str | Html) -> Html:
    """The value as markup: `Html` as it is, all else escaped."""
    return value if isinstance(value, Html) else Html(escape(value, quote=False))


def joined(pieces: Iterable[str | Html]) -> Html:
    """Pieces one after the other."""
    return Html("".join(text(piece) for piece in pieces))
