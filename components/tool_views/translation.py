"""A translation that was checked: the text, what was claimed for it, what that means put back."""

from __future__ import annotations

import msgspec

from components.html import Html
from components.tool_views.plain import pairs_table
from components.tool_views.view import View


class Translation(msgspec.Struct):
    """What the translate tool gives."""

    text: str
    claimed: str
    back: str


def _draw(given: Translation) -> Html:
    return pairs_table(
        {"Text": given.text, "Claimed translation": given.claimed, "Put back": given.back}
    )


TRANSLATE = View(Translation, _draw)
