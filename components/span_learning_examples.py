"""Corrected cases that stand before the span extractor's question: seen, pinned, removed."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import streamlit as st

from components import state
from components.html import Mark, marked_text, show
from components.span_learning import (
    PROBLEM,
    Material,
    draw_choices,
    draw_take,
    language_words,
    used_now,
)
from components.wording import counted, escaped, when
from core.errors import ReviewError
from core.learning.span_tuning import Decision, body_of, chosen, decide, decided
from core.records import EXAMPLES, MOST_EXAMPLES, MOST_TOKENS, base_of, examples_from
from core.reviews import category_words
from core.store.versions import Learned

FEW = 4  # examples that are drawn unasked
HOW = (
    "A case is the better an example the less the machine's marks and people's overlap, the "
    "clearer the answer is (settled, agreed, sure) and the shorter it is; at most four of a "
    "language, of unlike kinds and questions. A check is shown at most "
    f"{MOST_EXAMPLES} of them, {MOST_TOKENS:,} tokens together, those in its own language first, "
    "and never its own case. Cases held out for the classifier are never examples."
)


def draw_examples(found: Material) -> None:
    """The examples in use and those that would be chosen now."""
    st.subheader("Examples", anchor=False, help=HOW)
    current = used_now(EXAMPLES, found.project_id, lambda body: (examples_from(body), _ids(body)))
    before = current.body if current else None
    st.caption(
        "Corrected cases that a language model is shown before it marks the words of another. The "
        "built-in span reader reads no examples: they change nothing in checks by the built-in "
        "engine."
    )
    if current is None:
        st.markdown("In use: **none**.")
    else:
        _draw_in_use(current, {one.id: list(one.answer.said) for one in found.candidates})
    pinned, removed = decided(before)
    proposed = body_of(chosen(found.candidates, pinned, removed), before)
    fresh = [one for one in proposed["examples"] if one["id"] not in removed]
    if not fresh:
        st.info(
            "No corrected case is fit to be an example yet. It takes words that people marked in a "
            "response that the machine called hallucinated and marked otherwise.",
            icon=":material/info:",
        )
    elif _ids(proposed) != _ids(before):
        _draw_proposed(fresh, before)
        draw_take(EXAMPLES, found.project_id, proposed)
    draw_choices(EXAMPLES, found.project_id)


def _ids(body: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The examples that are shown, with the answers that they rest on."""
    told = body or {}
    removed = set(told.get("removed", ()))
    kept = [one for one in told.get("examples", ()) if one["id"] not in removed]
    return sorted((one["id"], " ".join(one["said"])) for one in kept)


def _draw_proposed(fresh: list[dict[str, Any]], before: Mapping[str, Any] | None) -> None:
    """What would be taken into use; those already in use are drawn above."""
    known = {name for name, _ in _ids(before)}
    new = [one for one in fresh if one["id"] not in known]
    words = f"{counted(len(fresh), 'example')} would be in use, {len(new)} of them new"
    is_short = before is None and len(new) <= FEW
    with st.expander(f"Proposed: {words}", expanded=is_short, icon=":material/lightbulb:"):
        for one in new:
            with st.container(border=True):
                _draw_example(one)


def _draw_in_use(current: Learned, now: Mapping[str, list[str]]) -> None:
    """`now` are the answers that each case would be an example by, if it still would."""
    pinned, removed = decided(current.body)
    examples = current.body["examples"]
    shown = [one for one in examples if one["id"] not in removed]
    gone = [one for one in examples if one["id"] in removed]
    st.markdown(
        f"In use: **no. {current.number}**, {counted(len(shown), 'example')}, since "
        f"{when(current.at)}."
    )
    with st.expander("The examples in use", expanded=len(shown) <= FEW):
        for one in shown:
            is_pinned = one["id"] in pinned
            with st.container(border=True):
                _draw_example(one, is_pinned=is_pinned)
                if now.get(one["id"]) != one["said"]:
                    st.caption(
                        ":material/warning: It would not be chosen so any more: its answer, its "
                        "newest check or its side of the hold-out has changed."
                    )
                with st.container(horizontal=True):
                    _button("unpin" if is_pinned else "pin", one, current.project_id)
                    _button("remove", one, current.project_id)
    if gone:
        with st.expander(f"Removed: {counted(len(gone), 'example')}"):
            for one in gone:
                with st.container(border=True):
                    _draw_example(one)
                    _button("allow", one, current.project_id)


BUTTONS: dict[Decision, tuple[str, str]] = {
    "pin": ("Pin", ":material/keep:"),
    "unpin": ("Unpin", ":material/keep_off:"),
    "remove": ("Remove", ":material/delete:"),
    "allow": ("Allow again", ":material/undo:"),
}


def _button(decision: Decision, one: dict[str, Any], project_id: str) -> None:
    words, sign = BUTTONS[decision]
    st.button(
        words,
        key=f"spans.example.{decision}.{one['id'][:16]}",
        icon=sign,
        help="Pinned examples come first and stay when others are chosen."
        if decision == "pin"
        else None,
        on_click=_decide,
        args=(project_id, one["id"], decision),
    )


def _decide(project_id: str, example_id: str, decision: Decision) -> None:
    try:
        with state.open_store() as store, store.writing():
            by = state.require(store, project_id, "lead", "choose examples")
            decide(store, project_id, example_id, decision, by=by, now=time.time())
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
    st.toast("New checks go by it.", icon=":material/check:")


def _draw_example(one: dict[str, Any], *, is_pinned: bool = False) -> None:
    """The case as a person reads it, what people marked in it, and why it was chosen."""
    sign = ":material/keep: " if is_pinned else ""
    language = language_words(base_of(str(one["language"])))
    title = f"{sign}**{escaped(str(one['question']))}**" if one["question"] else sign
    if title:
        st.markdown(title)
    marks = [Mark(s["start"], s["end"], title=_title(s)) for s in one["spans"]]
    show(marked_text(str(one["response"]), marks))
    st.caption(f"{escaped(language)} · {escaped(str(one['why']))}")


def _title(span: Mapping[str, Any]) -> str:
    words = category_words(str(span["category"]))
    return f"{words}; instead: {span['instead']}" if span.get("instead") else words
