"""What changed in a prompt, and every edit of it, which can be brought back."""

from __future__ import annotations

import streamlit as st

from components.difference import changed_lines, difference_html
from components.prompt_draft import PromptAtHand, append, typed
from components.show import show
from components.words import counted, when
from core.store.prompt_edits import PromptEdit


def draw_changes(prompt: PromptAtHand, is_open: bool) -> None:
    """The text in the field against ours, or against the one in force where that is another."""
    choices = {"ours": prompt.ours.text}
    if is_open and prompt.in_force.is_edited:
        choices = {"the text in force": prompt.in_force.text} | choices
    against = next(iter(choices))
    if len(choices) > 1:
        against = (
            st.segmented_control(
                "Compare with",
                list(choices),
                default=against,
                required=True,
                format_func=str.capitalize,
                key=f"{prompt.key}.against",
            )
            or against
        )
    draw_difference(choices[against], typed(prompt), against)


def draw_difference(before: str, after: str, against: str) -> None:
    """What is out of `before` and what is in `after`; nothing when they are equal."""
    gone, come = changed_lines(before, after)
    if gone or come:
        st.markdown(
            f"Difference from {against}: {counted(gone, 'line')} out (−), "
            f"{counted(come, 'line')} in (+)"
        )
        show(difference_html(before, after))


def draw_history(prompt: PromptAtHand) -> None:
    """Who edited when; each earlier text can be compared and brought back."""
    if not prompt.edits:
        return
    oldest = len(prompt.edits)
    words = {
        edit.number: f"{oldest - place}. {_edit_words(prompt, edit)}"
        for place, edit in enumerate(prompt.edits)
    }
    chosen = st.selectbox(
        f"Edits ({len(words)})",
        list(words),
        index=None,
        format_func=lambda number: words[number],
        placeholder="Choose one to see it and to bring it back",
        key=f"{prompt.key}.earlier",
    )
    if chosen is None:
        return
    text = prompt.after(chosen).text
    if text == prompt.in_force.text:
        st.caption("This is the text in force.")
        return
    draw_difference(prompt.in_force.text, text, "the text in force")
    st.button(
        "Bring it back", key=f"{prompt.key}.back", on_click=_bring_back, args=(prompt, chosen)
    )


def _edit_words(prompt: PromptAtHand, edit: PromptEdit) -> str:
    what = f"version {prompt.after(edit.number).hash}" if edit.text else "back to ours"
    return f"{when(edit.at)} · {edit.author} · {what}"


def _bring_back(prompt: PromptAtHand, number: int) -> None:
    """Append an earlier text once more; what was typed and not saved stays in the field."""
    if st.session_state.get(f"{prompt.key}.earlier") != number:
        return  # the second half of a double click
    if append(prompt, prompt.after(number).text):
        st.session_state[f"{prompt.key}.earlier"] = None
        st.toast("Brought back. New checks use it.", icon=":material/check:")
