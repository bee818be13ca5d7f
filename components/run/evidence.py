"""Evidence by statement with the page behind each quote, and the response with its marks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components.app import state
from components.run.audit import parts_of
from components.widgets.html import (
    Html,
    HtmlMark,
    div,
    element,
    heated,
    joined,
    layers_of,
    marked_text,
    missing_votes,
    paged,
    show,
)
from components.widgets.wording import LABEL_SIGNS, clipped, escaped, percent, place_words
from core.documents.library import file_bytes
from core.documents.quotes import relocate
from core.documents.rendering import boxes_of, page_picture, quote_boxes, strip_around
from core.documents.retrieval import SEEN
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.progress import Progress
from core.schema.records import Case, Passage, Quote, Source, Span
from core.schema.reviews import category_words, instead_words

AROUND = 900
MOST_OPEN = 10
Place = Passage | Quote  # a stretch of a source


def draw_evidence(progress: Progress, key: str) -> None:
    """Draw each statement's passages, quoted ones first; a click shows the source."""
    if not progress.passages:
        st.caption("No evidence was looked up in this run.")
    labels = progress.judgement.statement_labels if progress.judgement else ()
    several = len(progress.passages) > 1
    has_neighbours = any(p.before or p.after for p in progress.evidence.values())
    in_context = has_neighbours and st.toggle(
        "Show the sentences before and after", key="evidence.around", persist_state="session"
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
    return any(
        quote.source_id == passage.source_id
        and quote.start is not None
        and passage.start <= quote.start < passage.end
        for quote in quotes
    )


def _draw_passage(passage: Passage, key: str, is_quoted: bool, in_context: bool) -> None:
    similarity = "" if passage.similarity is None else f" · similarity {passage.similarity:.2f}"
    words: list[str | Html] = [passage.text]
    if in_context:
        words = [
            element("span", passage.before + " ", class_="cp-around"),
            element("mark", passage.text, class_="cp-mark cp-mark-evidence"),
            element("span", " " + passage.after, class_="cp-around"),
        ]
    origin = ("quoted in the debate" if is_quoted else "found") + similarity
    with st.container(border=True, key=f"{key}.{passage.id}"):
        left, right = st.columns([4, 1.4], vertical_alignment="center")
        with left:
            show(joined([div("cp-passage", *words, dir="auto"), div("cp-quiet", origin)]))
        with right:  # without the quote, whose text is beside the button
            draw_place_button(passage, f"{key}.{passage.id}.show", is_quoted=False)


def draw_place_button(
    place: Place, key: str, *, sign: str = "", about: str = "", is_quoted: bool = True
) -> None:
    """Draw a button that opens the place in its source; `sign` and `about` say how it was found."""
    quote = f"“{clipped(place.text, 60)}” " if place.text and is_quoted else ""
    if st.button(
        escaped(f"{sign} {quote}{place_words(place)}".strip()),
        key=key,
        icon=":material/find_in_page:",
        help=f"{about.capitalize()}. Show it in its source" if about else "Show it in its source",
        wrap=True,
    ):
        _show_source(place)


@st.dialog("Source", width="large")
def _show_source(place: Place) -> None:
    """Show the page with the passage boxed; for plain sources the text around it."""
    st.markdown(f"**{escaped(place_words(place))}**")
    with state.open_store() as store:
        may_see = state.may_see_source(store, place.source_id.removesuffix(SEEN))
        source = store.readings.get(place.source_id, place.source) if may_see else None
    if may_see and place.source_id.endswith(SEEN):
        _show_image(place)
        return
    if source is None:
        st.info("This source is not in the library; the passage itself is kept in the run.")
        return
    start = place.start or 0
    offsets = relocate(source.text, start, place.end or start, place.text)
    if offsets is None:
        st.info("The source was read again since, and these words no longer appear in it.")
        return
    page = next((p.number for p in reversed(source.pages) if p.start <= offsets[0]), None)
    words = place_words(replace(place, page=page))
    pictures = _render_page(source, page or 1, *offsets)
    if not pictures:
        _draw_source_text(source, *offsets)
        return
    whole, strip = pictures
    st.image(strip or whole, width="stretch", alt=f"{words} with the passage boxed")
    if strip:
        with st.expander("The whole page"):
            st.image(whole, width="stretch", alt=words)
    with st.expander("As text"):
        _draw_source_text(source, *offsets)


def _show_image(place: Place) -> None:
    """Show the image that a model described, for people to compare with their own eyes."""
    words = "A language model said this of the image; the words do not stand in it."
    st.caption(f"{words} Look for yourself.")
    if place.text:
        st.markdown(f"“{escaped(place.text)}”")
    try:
        data = file_bytes(state.home(), place.source_id.removesuffix(SEEN))
    except InputError as error:
        st.info(escaped(str(error)))
        return
    st.image(data, width="stretch", alt=place_words(place))


def _render_page(
    source: Source, page: int, start: int, end: int
) -> tuple[bytes, bytes | None] | None:
    """Return PNGs of the page with the passage boxed and of the strip around it, or None."""
    if source.kind not in ("pdf", "image"):
        return None
    try:
        data = file_bytes(state.home(), source.id)
        with state.open_store() as store:
            settings = store.projects.settings()
        return _render_page_cached(source.id, page, start, end, source, data, settings)
    except (InputError, OSError) as error:
        st.warning(f"The page cannot be shown as a picture: {escaped(str(error))}")
        return None


@st.cache_data(max_entries=64, show_spinner="Drawing the page…")
def _render_page_cached(
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


def _draw_source_text(source: Source, start: int, end: int) -> None:
    first = max(0, start - AROUND)
    mark = HtmlMark(start - first, end - first, kind="evidence")
    show(marked_text(source.text[first : end + AROUND], [mark]))


def draw_response(case: Case, progress: Progress, key: str) -> None:
    """Draw the question, the text, a choice of layers, and a line for each marked span."""
    st.subheader("The response", anchor=False)
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    layers = layers_of(progress)
    text = st.container()  # above the choice, which opens downwards and would cover the text
    chosen = _choose_layers(list(layers), key)
    marks = heated(layers, chosen, progress) if chosen else span_marks(progress.spans)
    with text:
        show(marked_text(case.response, marks, parts_of(progress)))
        if chosen:
            st.caption(_legend_words(progress))
    for number, span in paged(list(enumerate(progress.spans, start=1)), f"{key}.spans"):
        left, right = st.columns([4, 1.4], vertical_alignment="center")
        words = f"**{number}.** “{escaped(span.text)}” — {category_words(span.category)}"
        if span.instead:
            lead = instead_words(in_evidence=span.in_evidence)
            words += f"; {lead} “**{escaped(span.instead)}**”"
        left.markdown(f"{words}  \n:gray[marked by {escaped(span.source)} · {percent(span.p)}]")
        if (quote := span.quote) is not None and quote.start is not None:
            with right:
                draw_place_button(quote, f"{key}.span.{number}", is_quoted=False)


def _choose_layers(names: list[str], key: str) -> list[str]:
    """Return the agents whose layers are chosen; keys are indexes, as names may be anything."""
    if not names:
        return []
    with st.popover("Marks by agent", icon=":material/layers:", type="tertiary"):
        chosen = st.pills(
            "Show how likely each agent finds words to be wrong",
            range(len(names)),
            format_func=lambda index: escaped(names[index]),
            selection_mode="multi",
            key=f"{key}.layers",
        )
    return [names[index] for index in chosen if index < len(names)]


def _legend_words(progress: Progress) -> str:
    words = (
        "The stronger the colour, the surer an agent is. Point at words, or reach them with Tab, "
        "to see who says what. Where agents differ, the surest one sets the colour. Words "
        "between lines are marked in the end."
    )
    if progress.soft and progress.soft.used:
        words += f" The run of {progress.soft.used} alone decides."
    missing = missing_votes(progress)
    if missing:
        words += f" No vote came from {'; '.join(missing)}: it does not count in any mean."
    return escaped(words)


def span_marks(spans: tuple[Span, ...]) -> list[HtmlMark]:
    """Return the spans as numbered marks that say what is wrong with each."""
    marks = []
    for number, span in enumerate(spans, start=1):
        lead = instead_words(in_evidence=span.in_evidence)
        instead = f"; {lead} “{span.instead}”" if span.instead else ""
        title = f"{category_words(span.category)} ({percent(span.p)}){instead}"
        marks.append(HtmlMark(span.start, span.end, str(number), title))
    return marks
