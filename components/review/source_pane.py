"""The sources of an item beside its words: read when it is opened, searched in the browser."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from components.app import state
from components.check.new_check import draw_sources
from components.review.correction_draft import load_case_sources
from components.widgets.annotation_editors import load_picture, serve_picture
from components.widgets.controls import get_component
from core.runtime.errors import InputError
from core.schema.records import Case, Quote, Source
from core.schema.run_state import RunState

MAX_TEXT_CHARS = 400_000  # of all sources; the browser searches them
MAX_QUOTES = 4
NO_SOURCES = "This item has no source that could be read."


def list_verdict_quotes(progress: RunState) -> tuple[Quote, ...]:
    """Return the quotes that the machine's marks and its judge rest on, each once."""
    points = progress.judgement.points if progress.judgement else ()
    found = [span.quote for span in progress.spans] + [point.quote for point in points]
    quotes = {(q.source_id, q.text): q for q in found if q is not None and q.status != "not_found"}
    return tuple(quotes.values())[:MAX_QUOTES]


def draw_source_pane(case: Case, quotes: Sequence[Quote]) -> None:
    """Draw the case's sources; those that nobody has read are read now, and a line says so."""
    with state.open_store() as store:
        library = [store.library.get(case.project_id, i) for i in (*case.documents, *case.images)]
    unread = [entry.id for entry in library if entry is not None and entry.status != "ready"]
    draw_sources(unread)
    get_component("source_reader")(
        key="label.sources",
        data={
            "case": case.id,  # what was sought for the last one is not said of this one
            "sources": _dump_sources(load_case_sources(case)),
            "quotes": [{"source": quote.source_id, "words": quote.text} for quote in quotes],
            "empty": "" if unread else NO_SOURCES,  # what is unread has a line above
        },
    )


def _dump_sources(sources: Sequence[Source]) -> list[dict[str, Any]]:
    """Return what the browser needs; texts beyond the limit end early, which their name says."""
    room, dumped = MAX_TEXT_CHARS, []
    for source in sources:
        text = source.text[:room]
        room -= len(text)
        name = source.name if len(text) == len(source.text) else f"{source.name} (the beginning)"
        picture = _serve_image(source) if source.is_image else ""
        dumped.append({"id": source.id, "name": name, "text": text, "picture": picture})
    return dumped


def _serve_image(source: Source) -> str:
    try:
        image = load_picture(source.id, source.name)
    except InputError:
        return ""
    return serve_picture(image.data, image.media_type, f"label.sources.{source.id}")
