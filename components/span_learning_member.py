"""Which member of a panel marks as people do, by language: figures, and taking it into use."""

from __future__ import annotations

import streamlit as st

from components.span_learning import (
    Material,
    draw_choices,
    draw_take,
    language_words,
    needs_more,
    used_now,
)
from components.words import counted, escaped, when
from core.learned_marks import MEMBER, members_from
from core.learning.span_member import BestMember
from core.learning.span_threshold import FEWEST_CASES, Figure

RULE = (
    "Each member's run alone is its own marks, as the others voted on them. It decides alone in a "
    "language only where it is clearly closer to people than the vote of all: chosen on four "
    "fifths of the cases, it gains on the other fifth, with an interval above 0."
)


def draw_members(found: Material) -> None:
    """Each member beside the vote of all; what is clearly better can be taken into use."""
    if not found.panel_cases:
        return
    st.subheader("Members of the panel", anchor=False, help=RULE)
    current = used_now(MEMBER, found.project_id, members_from)
    st.markdown(
        f"In use: **no. {current.number}**, learned {when(current.at)}."
        if current
        else "In use: **the vote of all**."
    )
    if not found.members:
        more = needs_more(found.panel_cases, FEWEST_CASES)
        told = f"{counted(found.panel_cases, 'case')} that people marked and a panel too"
        words = f"{told}; a language needs {FEWEST_CASES}{f' ({more})' if more else ''}."
        st.info(words, icon=":material/info:")
    for one in found.members:
        _draw_language(one)
    alone = found.member["alone"]
    if alone and (current is None or current.body != found.member):
        draw_take(MEMBER, found.project_id, found.member)
    elif found.members and not alone:
        st.caption("No member is clearly closer to people than the vote of all, which stays.")
    draw_choices(MEMBER, found.project_id)


def _draw_language(one: BestMember) -> None:
    rows = [{"Who marks": "Vote of all", **_cells(one.vote)}]
    rows += [{"Who marks": name, **_cells(figure)} for name, figure in one.members]
    st.markdown(f"**{escaped(language_words(one.language))}**, {counted(one.n, 'case')}")
    st.dataframe(rows, key=f"spans.member.{one.language}", hide_index=True, height="content")
    gain = one.gain
    verdict = "decides alone" if one.is_better else "does not clearly beat the vote"
    st.caption(
        f"{escaped(one.member)} {verdict}: choosing in folds gains {gain.value:+.3f} IoU "
        f"({gain.low:+.3f} to {gain.high:+.3f})."
    )


def _cells(figure: Figure) -> dict[str, str]:
    return {"IoU with people": f"{figure.value:.3f} ({figure.low:.3f} to {figure.high:.3f})"}
