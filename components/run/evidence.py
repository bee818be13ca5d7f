"""Evidence by statement with the page behind each quote, and the response with its marks."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import streamlit as st

from components.app import state
from components.run.audit import list_link_targets, list_statement_labels
from components.widgets.annotation_editors import load_picture
from components.widgets.html import (
    Html,
    HtmlMark,
    build_heat_marks,
    div,
    draw_html,
    draw_question,
    element,
    group_marks_by_agent,
    join_html,
    list_missing_votes,
    paginate,
    render_marked_text,
)
from components.widgets.wording import (
    LABEL_SIGNS,
    clip_text,
    escape_markdown,
    format_percent,
    format_source,
)
from core.documents.library import load_file_bytes
from core.documents.quotes import relocate_words
from core.documents.rendering import (
    crop_around_boxes,
    find_quote_boxes,
    find_source_boxes,
    render_page,
)
from core.documents.retrieval import DESCRIPTION_SUFFIX
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import BoundingBox, Case, Passage, Quote, Source, Span
from core.schema.reviews import LABELS_BY_GRAVITY, format_category, introduce_correction
from core.schema.run_state import RunState

CONTEXT_CHARS = 900
WRITTEN_BY_MODEL = "written by a language model"
MAX_EXPANDED = 10
SourcePlace = Passage | Quote  # a stretch of a source


def draw_evidence(progress: RunState, key: str) -> None:
    """Draw each statement's passages, quoted ones first; a click shows the source."""
    if not progress.passages:
        st.caption("No evidence was looked up in this run.")
    labels = list_statement_labels(progress)
    several = len(progress.passages) > 1
    has_neighbours = any(p.before or p.after for p in progress.evidence.values())
    in_context = has_neighbours and st.toggle(
        "Show the sentences before and after", key="evidence.around", persist_state="session"
    )

    def gravest(item: tuple[int, tuple[Passage, ...]]) -> tuple[int, int]:
        label = labels[item[0]] if item[0] < len(labels) else "unclear"
        return LABELS_BY_GRAVITY.index(label), item[0]

    for index, passages in paginate(sorted(progress.passages.items(), key=gravest), key):
        label = labels[index] if index < len(labels) else "unclear"
        words = escape_markdown(clip_text(progress.statements[index].text, 140))
        with (
            st.expander(
                f"{LABEL_SIGNS[label]} {index + 1}. {words}",
                expanded=label == "hallucinated" and len(progress.passages) <= MAX_EXPANDED,
            )
            if several
            else contextlib.nullcontext()
        ):
            quotes = [quote for turn in progress.turns for quote in turn.quotes]
            if not passages:
                st.caption("No passage was found for this.")
            for passage in sorted(passages, key=lambda p: not is_quoted(p, quotes)):
                _draw_passage(passage, f"{key}.{index}", is_quoted(passage, quotes), in_context)


def is_quoted(passage: Passage, quotes: Sequence[Quote]) -> bool:
    """Return True if one of the quotes begins in the passage."""
    return any(
        quote.source_id == passage.source_id
        and quote.start is not None
        and passage.start <= quote.start < passage.end
        for quote in quotes
    )


def describe_origin(passage: Passage, is_quoted: bool) -> str:
    """Say how the passage was found, and that a model wrote it where it describes an image."""
    similarity = "" if passage.similarity is None else f" · similarity {passage.similarity:.2f}"
    origin = "quoted in the debate" if is_quoted else "found"
    if passage.source_id.endswith(DESCRIPTION_SUFFIX):
        origin = f"✎ {WRITTEN_BY_MODEL} about the image, not found in it; {origin}"
    return origin + similarity


def _draw_passage(passage: Passage, key: str, is_quoted: bool, in_context: bool) -> None:
    words: list[str | Html] = [passage.text]
    if in_context:
        words = [
            element("span", passage.before + " ", class_="cp-around"),
            element("mark", passage.text, class_="cp-mark cp-mark-evidence"),
            element("span", " " + passage.after, class_="cp-around"),
        ]
    origin = describe_origin(passage, is_quoted)
    with st.container(border=True, key=f"{key}.{passage.id}"):
        left, right = st.columns([4, 1.4], vertical_alignment="center")
        with left:
            draw_html(join_html([div("cp-passage", *words, dir="auto"), div("cp-quiet", origin)]))
        with right:  # without the quote, whose text is beside the button
            draw_place_button(passage, f"{key}.{passage.id}.show", is_quoted=False)


def draw_place_button(
    place: SourcePlace, key: str, *, sign: str = "", about: str = "", is_quoted: bool = True
) -> None:
    """Draw a button that opens the place in its source; `sign` and `about` say how it was found."""
    quote = f"“{clip_text(place.text, 60)}” " if place.text and is_quoted else ""
    if st.button(
        escape_markdown(f"{sign} {quote}{format_source(place)}".strip()),
        key=key,
        icon=":material/find_in_page:",
        help=f"{about.capitalize()}. Show it in its source" if about else "Show it in its source",
        wrap=True,
    ):
        _show_source(place)


@dataclass(frozen=True)
class SourceView:
    """A place as its source shows it: on a picture of its page, and with the text around it.

    `boxes` are drawn in the picture. `note` says what to know about it, or why nothing is shown.
    """

    words: str
    note: str = ""
    picture: bytes = b""
    media_type: str = "image/png"
    boxes: tuple[BoundingBox, ...] = ()
    before: str = ""
    text: str = ""
    after: str = ""


def load_source_view(place: SourcePlace) -> SourceView:
    """Return how the place is shown in its source, if the signed-in person may see that."""
    view = SourceView(format_source(place))
    with state.open_store() as store:
        may_see = state.can_see_source(store, place.source_id.removesuffix(DESCRIPTION_SUFFIX))
        source = store.readings.get(place.source_id, place.source) if may_see else None
    if may_see and place.source_id.endswith(DESCRIPTION_SUFFIX):
        return _view_described_image(place, view)
    if source is None:
        words = "This source is not in the library; the passage itself is kept in the run."
        return replace(view, note=words, text=place.text)
    start = place.start or 0
    offsets = relocate_words(source.text, start, place.end or start, place.text)
    if offsets is None:
        words = "The source was read again since, and these words no longer appear in it."
        return replace(view, note=words, text=place.text)
    start, end = offsets
    page = next((p.number for p in reversed(source.pages) if p.start <= start), None)
    view = replace(
        view,
        words=format_source(replace(place, page=page)),
        before=source.text[max(0, start - CONTEXT_CHARS) : start],
        text=source.text[start:end],
        after=source.text[end : end + CONTEXT_CHARS],
    )
    if source.kind not in ("pdf", "image"):
        return view
    try:
        data = load_file_bytes(state.home_folder(), source.id)
        with state.open_store() as store:
            settings = store.projects.settings()
        picture, boxes = _render_page(source.id, page or 1, start, end, source, data, settings)
    except (InputError, OSError) as error:
        return replace(view, note=f"The page cannot be shown as a picture: {error}")
    return replace(view, picture=picture, boxes=boxes)


def _view_described_image(place: SourcePlace, view: SourceView) -> SourceView:
    """Return the image that a model described, for people to compare with their own eyes."""
    words = "A language model said this of the image; the words do not stand in it."
    view = replace(view, note=f"{words} Look for yourself.", text=place.text)
    try:
        image = load_picture(place.source_id.removesuffix(DESCRIPTION_SUFFIX), place.source)
    except InputError as error:
        return replace(view, note=str(error))
    return replace(view, picture=image.data, media_type=image.media_type)


@st.cache_data(max_entries=64, show_spinner=False)
def _render_page(
    source_id: str,
    page: int,
    start: int,
    end: int,
    _source: Source,
    _data: bytes,
    _settings: Settings,
) -> tuple[bytes, tuple[BoundingBox, ...]]:
    """Return a PNG of the page with the passage boxed, and the boxes."""
    boxes = [box for number, box in find_source_boxes(_source, start, end) if number == page]
    if not boxes and _source.kind == "pdf":
        ends = next((p.end for p in _source.pages if p.number == page), end)
        boxes = find_quote_boxes(_data, page, _source.text[start : min(end, ends)])
    name, kind = _source.name, _source.kind
    return render_page(_data, kind, page, boxes, name=name, settings=_settings), tuple(boxes)


@st.dialog("Source", width="large")
def _show_source(place: SourcePlace) -> None:
    """Show the page with the passage boxed; for plain sources the text around it."""
    view = load_source_view(place)
    st.markdown(f"**{escape_markdown(view.words)}**")
    if view.note:
        st.info(escape_markdown(view.note))
    if not view.picture:
        _draw_excerpt(view)
        return
    strip = crop_around_boxes(view.picture, view.boxes)
    st.image(strip or view.picture, width="stretch", alt=f"{view.words} with the passage boxed")
    if strip:
        with st.expander("The whole page"):
            st.image(view.picture, width="stretch", alt=view.words)
    with st.expander("As text", expanded=not view.boxes):
        _draw_excerpt(view)


def _draw_excerpt(view: SourceView) -> None:
    start = len(view.before)
    mark = HtmlMark(start, start + len(view.text), kind="evidence")
    draw_html(render_marked_text(view.before + view.text + view.after, [mark]))


def draw_response(case: Case, progress: RunState, key: str) -> None:
    """Draw the question, the text, a choice of layers, and a line for each marked span."""
    st.subheader("The response", anchor=False)
    draw_question(case.question)
    layers = group_marks_by_agent(progress)
    text = st.container()  # above the choice, which opens downwards and would cover the text
    chosen = _choose_layers(list(layers), key)
    marks = (
        build_heat_marks(layers, chosen, progress) if chosen else build_span_marks(progress.spans)
    )
    with text:
        draw_html(render_marked_text(case.response, marks, list_link_targets(progress)))
        if chosen:
            st.caption(_legend_words(progress))
    for number, span in paginate(list(enumerate(progress.spans, start=1)), f"{key}.spans"):
        left, right = st.columns([4, 1.4], vertical_alignment="center")
        words = f"**{number}.** “{escape_markdown(span.text)}” — {format_category(span.category)}"
        if span.instead:
            lead = introduce_correction(in_evidence=span.in_evidence)
            words += f"; {lead} “**{escape_markdown(span.instead)}**”"
        sure = "" if span.p >= 1.0 else f" · {format_percent(span.p)}"
        left.markdown(f"{words}  \n:gray[marked by {escape_markdown(span.source)}{sure}]")
        if (quote := span.quote) is not None and quote.start is not None:
            with right:
                draw_place_button(quote, f"{key}.span.{number}", is_quoted=False)


def draw_agent_marks(case: Case, progress: RunState, key: str) -> None:
    """Draw a choice of agents, and the text as each of those chosen marks it."""
    layers = group_marks_by_agent(progress)
    if chosen := _choose_layers(list(layers), key):
        draw_html(render_marked_text(case.response, build_heat_marks(layers, chosen, progress)))
        st.caption(_legend_words(progress))


def _choose_layers(names: list[str], key: str) -> list[str]:
    """Return the agents whose layers are chosen; keys are indexes, as names may be anything."""
    if not names:
        return []
    with st.popover("Marks by agent", icon=":material/layers:", type="tertiary"):
        chosen = st.pills(
            "Show how likely each agent finds words to be wrong",
            range(len(names)),
            format_func=lambda index: escape_markdown(names[index]),
            selection_mode="multi",
            key=f"{key}.layers",
        )
    return [names[index] for index in chosen if index < len(names)]


def _legend_words(progress: RunState) -> str:
    words = (
        "The stronger the colour, the surer an agent is. Point at words, or reach them with Tab, "
        "to see who says what. Where agents differ, the surest one sets the colour. Words "
        "between lines are marked in the end."
    )
    if progress.soft and progress.soft.used:
        words += f" The run of {progress.soft.used} alone decides."
    missing = list_missing_votes(progress)
    if missing:
        words += f" No vote came from {'; '.join(missing)}: it does not count in any mean."
    return escape_markdown(words)


def build_span_marks(spans: tuple[Span, ...]) -> list[HtmlMark]:
    """Return the spans as numbered marks that say what is wrong with each."""
    return [
        HtmlMark(span.start, span.end, str(number), describe_span(span))
        for number, span in enumerate(spans, start=1)
    ]


def describe_span(span: Span) -> str:
    """Say what is wrong with a span, how likely, and what it should say."""
    lead = introduce_correction(in_evidence=span.in_evidence)
    instead = f"; {lead} “{span.instead}”" if span.instead else ""
    return f"{format_category(span.category)} ({format_percent(span.p)}){instead}"
