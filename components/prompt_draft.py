"""One prompt of a project on its way to a new wording: what is in force, what was typed, kept."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from components import drafts, state
from core.errors import ReviewError
from core.models.prompting import Prompt, PromptBook, check_edit, shipped
from core.store.prompt_edits import PromptEdit


@dataclass(frozen=True)
class PromptAtHand:
    """A prompt in one language with its edits in this project, newest first."""

    project_id: str
    name: str
    language: str
    edits: Sequence[PromptEdit]

    @property
    def key(self) -> str:
        """What the keys of its widgets begin with, and the name of its draft."""
        return f"prompts.{self.project_id}.{self.name}.{self.language}"

    @property
    def newest(self) -> int:
        """The number of the last edit; 0 when there was none."""
        return self.edits[0].number if self.edits else 0

    @property
    def ours(self) -> Prompt:
        """The prompt as we ship it."""
        return shipped(self.name, self.language)

    @property
    def in_force(self) -> Prompt:
        """The prompt that new checks use."""
        return self.after(self.newest)

    def after(self, number: int) -> Prompt:
        """The prompt as that edit left it; 0 is before the first."""
        text = next((edit.text for edit in self.edits if edit.number == number), "")
        edits = {(self.name, self.language): text} if text else {}
        return PromptBook(edits).prompt(self.name, self.language)


def load_prompt(project_id: str, name: str, language: str) -> PromptAtHand:
    """The prompt with its history, as the store has it now."""
    with state.open_store() as store:
        edits = store.prompt_edits.history(project_id, name, language)
    return PromptAtHand(project_id, name, language, edits)


def typed(prompt: PromptAtHand) -> str:
    """What stands in the field."""
    return str(st.session_state.get(f"{prompt.key}.text") or "")


def base_of(prompt: PromptAtHand) -> int:
    """The number of the edit from which the text in the field began."""
    return int(st.session_state.get(f"{prompt.key}.base") or 0)


def restore(prompt: PromptAtHand) -> None:
    """Fill the field before it is drawn: what was left there, else the text in force.

    A text that nobody touched follows the one in force when that changes.
    """
    text_key, base_key = f"{prompt.key}.text", f"{prompt.key}.base"
    left = st.session_state.pop(f"{prompt.key}.typed", None)
    if left is not None:  # the page was left without the field telling its text
        st.session_state[text_key] = left
    if text_key not in st.session_state:
        draft = drafts.kept(prompt.key)
        text, base = draft.get("text"), draft.get("base")
        if isinstance(text, str) and isinstance(base, int):
            st.session_state[text_key], st.session_state[base_key] = text, base
            return
    elif typed(prompt) != prompt.after(base_of(prompt)).text:
        return
    st.session_state[text_key] = prompt.in_force.text
    st.session_state[base_key] = prompt.newest


def keep(prompt: PromptAtHand) -> None:
    """Keep what the field has told."""
    st.session_state.pop(f"{prompt.key}.typed", None)
    _keep(prompt, typed(prompt))


def keep_typed(prompt: PromptAtHand, text: str | None) -> None:
    """Keep a text that is still being typed; None when the field is not on the page."""
    if text is not None:
        st.session_state[f"{prompt.key}.typed"] = text
        _keep(prompt, text)


def _keep(prompt: PromptAtHand, text: str) -> None:
    is_open = text not in (prompt.in_force.text, prompt.after(base_of(prompt)).text)
    drafts.keep(prompt.key, {"text": text, "base": base_of(prompt)} if is_open else {})


def forget(prompt: PromptAtHand) -> None:
    """Let go of what was typed; the field shows the text in force again."""
    drafts.keep(prompt.key, {})
    for name in ("text", "typed"):
        st.session_state.pop(f"{prompt.key}.{name}", None)


def append(prompt: PromptAtHand, text: str) -> bool:
    """Keep a text as the newest; our own is kept as “ours”, so that it follows our updates."""
    try:
        check_edit(prompt.name, prompt.language, text)
        with state.open_store() as store, store.writing():
            person = state.person(store)
            store.projects.require(prompt.project_id, person, "lead", "edit prompts")
            kept = "" if text == prompt.ours.text else text
            edit = PromptEdit(
                0, prompt.project_id, prompt.name, prompt.language, kept, time.time(), person
            )
            store.prompt_edits.save(edit, seen=prompt.newest)
    except ReviewError as error:
        st.session_state[f"{prompt.key}.problem"] = str(error)
        return False
    return True
