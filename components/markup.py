"""The one builder of HTML: every piece of text is escaped, only these tags and attributes exist."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape

TAGS = frozenset(
    """a article b br code dd del details div dl dt em figcaption figure h1 h2 h3 h4 header html
    body head img ins li main mark meta ol p pre section small span strong style summary sup
    table tbody td th thead title tr ul""".split()
)
ATTRIBUTES = frozenset(
    """class id title dir lang data-n data-say style alt src role aria-label charset colspan href
    open rel scope tabindex target""".split()
)
# A place on this page, or an address that a person may choose to open.
HREF = re.compile(r"#[\w-]+|https?://[^\s\"'<>\\]+", re.ASCII | re.IGNORECASE)
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
        if attribute == "href" and not HREF.fullmatch(value or ""):
            raise ValueError(f"{value!r} is no address that a link of ours may lead to")
        if value is not None:
            parts.append(f' {attribute}="{escape(value, quote=True)}"')
    parts.append(">")
    if name not in VOID:
        parts += [text(child) for child in children]
        parts.append(f"</{name}>")
    return Html("".join(parts))


def outward(address: str) -> Html:
    """An address as a link that says it leads away; as plain text where it is no web address."""
    if not HREF.fullmatch(address) or address.startswith("#"):
        return text(address)
    return element(
        "a",
        address,
        " ↗",
        href=address,
        rel="noopener noreferrer nofollow",
        target="_blank",
        title="Leads out of Counterpoint",
    )


def text(value: str | Html) -> Html:
    """The value as markup: `Html` as it is, all else escaped."""
    return value if isinstance(value, Html) else Html(escape(value, quote=False))


def joined(pieces: Iterable[str | Html]) -> Html:
    """Pieces one after the other."""
    return Html("".join(text(piece) for piece in pieces))
