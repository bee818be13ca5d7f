"""The response with its wrong words marked, or as warm as the agents that one chooses hold them."""

from __future__ import annotations

import streamlit as st

from components.audit import parts_of
from components.evidence import Place, draw_place_button
from components.heat import heated, layers_of, missing_votes
from components.highlight import Mark, marked_text
from components.show import paged, show
from components.words import escaped, percent
from core.progress import Progress
from core.records import Case, Span
from core.reviews import category_words, instead_words


def draw_response(case: Case, progress: Progress, key: str) -> None:
    """The text under its question, a choice of layers, a line for each marked stretch."""
    st.subheader("The response", anchor=False)
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    layers = layers_of(progress)
    text = st.container()  # above the choice, which opens downwards and would cover it
    chosen = _chosen(list(layers), key)
    marks = heated(layers, chosen, progress) if chosen else span_marks(progress.spans)
    with text:
        show(marked_text(case.response, marks, parts_of(progress)))
        if chosen:
            st.caption(_legend(progress))
    _draw_spans(progress.spans, key)


def _chosen(names: list[str], key: str) -> list[str]:
    """The agents whose layers are laid over the text; none at first, and none where nobody spoke.

    The keys of the choice are places in the list: names may be anything.
    """
    if not names:
        return []
    with st.popover("Marks by agent", icon=":material/layers:", type="tertiary"):
        picked = st.pills(
            "Show how surely each agent holds words for wrong",
            range(len(names)),
            format_func=lambda place: escaped(names[place]),
            selection_mode="multi",
            key=f"{key}.layers",
        )
    return [names[place] for place in picked if place < len(names)]


def _legend(progress: Progress) -> str:
    words = (
        "The warmer, the surer; point at words, or go to them with Tab, to see who says what. "
        "Where agents differ the surest one colours. Between lines: marked in the end."
    )
    if progress.soft and progress.soft.used:
        words += f" The run of {progress.soft.used} alone decides."
    missing = missing_votes(progress)
    if missing:
        words += f" No vote came from {'; '.join(missing)}: it does not count in any mean."
    return escaped(words)


def span_marks(spans: tuple[Span, ...]) -> list[Mark]:
    """The spans with their numbers."""
    return [
        Mark(span.start, span.end, str(number), _span_words(span))
        for number, span in enumerate(spans, start=1)
    ]


def _span_words(span: Span) -> str:
    leads = instead_words(in_evidence=span.in_evidence)
    instead = f"; {leads} “{span.instead}”" if span.instead else ""
    return f"{category_words(span.category)} ({percent(span.p)}){instead}"


def _draw_spans(spans: tuple[Span, ...], key: str) -> None:
    """A line for each marked stretch: the words, what is wrong, where the evidence says so."""
    for number, span in paged(list(enumerate(spans, start=1)), f"{key}.spans"):
        left, right = st.columns([4, 1.4], vertical_alignment="center")
        with left:
            words = f"**{number}.** “{escaped(span.text)}” — {category_words(span.category)}"
            if span.instead:
                leads = instead_words(in_evidence=span.in_evidence)
                words += f"; {leads} “**{escaped(span.instead)}**”"
            st.markdown(f"{words}  \n:gray[marked by {escaped(span.source)} · {percent(span.p)}]")
        quote = span.quote
        with right:
            if quote is not None and quote.start is not None:
                end = quote.end or quote.start
                place = Place(
                    quote.source_id, quote.source, quote.page, quote.start, end, quote.text
                )
                draw_place_button(place, f"{key}.span.{number}", is_quoted=False)
