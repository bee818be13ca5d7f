"""The fields of a correction that few need: how sure, ratings, comment, evidence in sources."""

from __future__ import annotations

import streamlit as st

from components.box_fields import boxes_of, draw_box_fields
from components.correction_asked import Asked
from components.correction_draft import RATINGS, SURE_WORDS, keep, key_of
from components.evidence_marks import draw_evidence_marks, evidence_of, sources_of

SUPPORTS = "supports"  # what a box shows that bears the response out
RATING_WORDS = {
    "accuracy": "Accuracy: are its facts right?",
    "coherence": "Coherence: does it hold together?",
    "consistency": "Consistency: does it keep to its sources?",
}


def draw_more(asked: Asked) -> None:
    """A switch, and behind it the fields; what stands in them counts also when it is off."""
    key = key_of(asked.id)
    marks = len(evidence_of(key)) + len(boxes_of(key))
    words = "More: how sure, ratings, comment, evidence" + (f" ({marks} marked)" if marks else "")
    if not st.toggle(words, key=f"{key}.more", persist_state="session"):
        return
    st.segmented_control(
        "How sure are you?",
        list(SURE_WORDS),
        format_func=lambda value: SURE_WORDS[value],
        key=f"{key}.sure",
        on_change=keep,
        args=(asked.id,),
        persist_state="session",
    )
    for column, name in zip(st.columns(len(RATINGS)), RATINGS, strict=True):
        column.segmented_control(
            RATING_WORDS[name],
            range(1, 6),
            key=f"{key}.{name}",
            on_change=keep,
            args=(asked.id,),
            persist_state="session",
            help="1 is poor, 5 is good",
        )
    st.text_area(
        "Comment",
        key=f"{key}.comment",
        height=68,
        on_change=keep,
        args=(asked.id, "comment"),
        persist_state="session",
    )
    st.markdown("Words of the sources that support or contradict it")
    sources = sources_of(asked.case)
    draw_evidence_marks(key, sources, lambda: keep(asked.id))
    if images := [source for source in sources if source.is_image]:
        st.markdown("Regions of the images that show it wrong, or right")
        categories = {**asked.words, SUPPORTS: "supports it"}
        draw_box_fields(key, images, categories, lambda: keep(asked.id))
