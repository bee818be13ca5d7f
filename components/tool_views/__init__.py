"""What each tool worked out, drawn as people would check it; any other tool gets a plain table."""

from __future__ import annotations

from components.html import Html
from components.tool_views.calendar import CALENDAR
from components.tool_views.code import CODE
from components.tool_views.conditions import CONDITIONS
from components.tool_views.plain import pairs_table, read_object
from components.tool_views.sources import MATCH, SEARCH
from components.tool_views.sums import SUMS
from components.tool_views.translation import TRANSLATE
from components.tool_views.view import View
from core.events import ToolUse

VIEWS: dict[str, View] = {
    "calculator": SUMS,
    "calendar": CALENDAR,
    "code": CODE,
    "conditions": CONDITIONS,
    "match": MATCH,
    "search": SEARCH,
    "translate": TRANSLATE,
}


def tool_view(use: ToolUse) -> Html:
    """The tool's own view of what it gave; a plain table where that has another shape."""
    view = VIEWS.get(use.tool)
    drawn = view.drawn(use.gave) if view else None
    return pairs_table(read_object(use.gave)) if drawn is None else drawn
