"""Evidence: passages by statement, and the page picture with the quote boxed behind each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from components import state
from components.highlight import Mark, marked_text
from components.markup import Html, element, joined
from components.show import paged, show
from components.words import LABEL_SIGNS, clipped, escaped
from core.config import Settings
from core.documents.library import file_bytes
from core.documents.page_pictures import boxes_of, page_picture, quote_boxes, strip_around
from core.documents.quotes import relocate
from core.documents.retrieval import SEEN
from core.errors import InputError
from core.progress import Progress
from core.records import Passage, Quote, Source

AROUND = 900
MOST_OPEN = 10


@dataclass(frozen=True)
class Place:
    """A stretch of a source that somebody wants to see; offsets in the source's text."""

    source_id: str
    source: str
    page: int | None
    start: int
    end: int
    quote: str = ""


def place_words(place: Place | Passage) -> str:
    """Source and page."""
    return f"{place.source}, p. {place.page}" if place.page else place.source


def draw_evidence(progress: Progress, key: str) -> None:
    """Each statement's passages, those quoted in the debate first; a click shows the source."""
    if not progress.passages:
        st.caption("No evidence was looked up in this run.")
    labels = progress.judgement.statement_labels if progress.judgement else ()
    several = len(progress.passages) > 1
    has_neighbours = any(p.before or p.after for p in progress.evidence.values())
    in_context = has_neighbours and st.toggle(
        "Show the sentences before and after",
        key="evidence.around",
        persist_state="session",
    )

    def gravest(item: tuple[int, tuple[Passage, ...]]) -> tuple[int, int]:
        label = labels[item[0]] if item[0] < len(labels) else "unclear"
        return ("hallucinated", "unclear", "supported").index(label), item[0]

    for index, passages in paged(sorted(progress.passages.items(), key=gravest), key):
        label = labels[index] if index < len(labels) else "unclear"
        words = escaped(clipped(progress.statements[index].text, 140))
        with (
            st.expander(
                f"{LABEL_SIGNS[label]} {index + 1}. {words}",
                expanded=label == "hallucinated" and len(progress.passages) <= MOST_OPEN,
            )
            if several
            else contextlib.nullcontext()
        ):
            quotes = [quote for turn in progress.turns for quote in turn.quotes]
            if not passages:
                st.caption("No passage was found for this.")
            for passage in sorted(passages, key=lambda p: not _is_quoted(p, quotes)):
                _draw_passage(passage, f"{key}.{index}", _is_quoted(passage, quotes), in_context)


def _is_quoted(passage: Passage, quotes: Sequence[Quote]) -> bool:
    """True when a debater quoted words of the passage that were found there."""
    return any(
        quote.source_id == passage.source_id
        and quote.start is not None
        and passage.start <= quote.start < passage.end
        for quote in quotes
    )


def passage_html(passage: Passage, in_context: bool) -> Html:
    """The passage, between its neighbours if wanted; it is underlined there."""
    if not in_context:
        return element("div", passage.text, class_="cp-passage", dir="auto")
    return element(
        "div",
        element("span", passage.before + " ", class_="cp-around"),
        element("mark", passage.text, class_="cp-mark cp-mark-evidence"),
        element("span", " " + passage.after, class_="cp-around"),
        class_="cp-passage",
        dir="auto",
    )


def _draw_passage(passage: Passage, key: str, is_quoted: bool, in_context: bool) -> None:
    like = "" if passage.similarity is None else f" · similarity {passage.similarity:.2f}"
    with st.container(border=True, key=f"{key}.{passage.id}"):
        left, right = st.columns([4, 1.4], vertical_alignment="center")
        with left:
            words = passage_html(passage, in_context)
            found = "quoted in the debate" if is_quoted else "found"
            show(joined([words, element("div", f"{found}{like}", class_="cp-quiet")]))
        with right:
            draw_place_button(
                Place(
                    passage.source_id,
                    passage.source,
                    passage.page,
                    passage.start,
                    passage.end,
                    passage.text,
                ),
                f"{key}.{passage.id}.show",
                is_quoted=False,  # the words stand beside it
            )


def draw_place_button(
    place: Place, key: str, *, sign: str = "", about: str = "", is_quoted: bool = True
) -> None:
    """A button that shows the place in its source; `sign` and `about` say how it was found."""
    quote = f"“{clipped(place.quote, 60)}” " if place.quote and is_quoted else ""
    if st.button(
        escaped(" ".join([*([sign] if sign else []), f"{quote}{place_words(place)}"])),
        key=key,
        icon=":material/find_in_page:",
        help=f"{about.capitalize()}. Show it in its source" if about else "Show it in its source",
        wrap=True,
    ):
        show_source(place)


def page_of(source: Source, start: int) -> int | None:
    """The number of the page that the offset lies on; None where the source has no pages."""
    return next((p.number for p in reversed(source.pages) if p.start <= start), None)


@st.dialog("Source", width="large")
def show_source(place: Place) -> None:
    """The page picture with the passage boxed; for plain sources the text around it."""
    st.markdown(f"**{escaped(place_words(place))}**")
    with state.open_store() as store:
        may = state.may_see_source(store, place.source_id.removesuffix(SEEN))
        source = store.readings.get(place.source_id, place.source) if may else None
    if may and place.source_id.endswith(SEEN):
        _show_image(place)
        return
    if source is None:
        st.info("This source is not in the library; the passage itself is kept in the run.")
        return
    found = relocate(source.text, place.start, place.end, place.quote)
    if found is None:
        st.info("The source was read anew since, and these words do not stand in it any more.")
        return
    place = replace(place, start=found[0], end=found[1], page=page_of(source, found[0]))
    picture = source_picture(place, source)
    if picture is None:
        draw_around(source, place)
        return
    page, strip = picture
    st.image(strip or page, width="stretch", alt=f"{place_words(place)} with the passage boxed")
    if strip:
        with st.expander("The whole page"):
            st.image(page, width="stretch", alt=place_words(place))
    with st.expander("As text"):
        draw_around(source, place)


def _show_image(place: Place) -> None:
    """The image that a model described: people compare with their own eyes."""
    st.caption(
        "A language model said this of the image; the words do not stand in it. Look for yourself."
    )
    if place.quote:
        st.markdown(f"“{escaped(place.quote)}”")
    try:
        data = file_bytes(state.home(), place.source_id.removesuffix(SEEN))
    except InputError as error:
        st.info(escaped(str(error)))
        return
    st.image(data, width="stretch", alt=place_words(place))


def source_picture(place: Place, source: Source) -> tuple[bytes, bytes | None] | None:
    """PNGs of the page with the passage boxed and of the strip around it; None without pages."""
    if source.kind not in ("pdf", "image"):
        return None
    try:
        data = file_bytes(state.home(), source.id)
        with state.open_store() as store:
            settings = store.projects.settings()
        return _picture(source.id, place.page or 1, place.start, place.end, source, data, settings)
    except (InputError, OSError) as error:
        st.warning(f"The page cannot be shown as a picture: {escaped(str(error))}")
        return None


@st.cache_data(max_entries=64, show_spinner="Drawing the page…")
def _picture(
    source_id: str,
    page: int,
    start: int,
    end: int,
    _source: Source,
    _data: bytes,
    _settings: Settings,
) -> tuple[bytes, bytes | None]:
    boxes = [box for number, box in boxes_of(_source, start, end) if number == page]
    if not boxes and _source.kind == "pdf":
        ends = next((p.end for p in _source.pages if p.number == page), end)
        boxes = quote_boxes(_data, page, _source.text[start : min(end, ends)])
    picture = page_picture(_data, _source.kind, page, boxes, name=_source.name, settings=_settings)
    return picture, strip_around(picture, boxes)


def draw_around(source: Source, place: Place) -> None:
    """The text around the passage, the passage marked."""
    start = max(0, place.start - AROUND)
    end = min(len(source.text), place.end + AROUND)
    mark = Mark(place.start - start, place.end - start, kind="evidence")
    show(marked_text(source.text[start:end], [mark]))
