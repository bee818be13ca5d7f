"""A project's prompts: the text in use, its editor, the difference, earlier edits.

What is typed is kept as a draft until it is saved or discarded.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from components.app import state
from components.widgets import drafts
from components.widgets.controls import (
    ask_confirmation,
    draw_button,
    draw_confirmation,
    show_problem,
    store_problem,
)
from components.widgets.html import (
    count_changed_lines,
    draw_html,
    element,
    join_html,
    render_line_diff,
)
from components.widgets.wording import (
    LANGUAGE_WORDS,
    PROMPT_FIELD_WORDS,
    escape_markdown,
    format_count,
    format_time,
)
from core.llm import prompting
from core.store.projects import PromptEdit, has_rank

ABOUT_PROMPTS = (
    "What language models are told. An edit holds for this project’s new checks. Checks that "
    "were made keep the prompt they used: it stands with each role on their Run page."
)
ABOUT_FIELDS = (
    "A comment at the top is not sent. It must contain each of these fields, and no other; a "
    "dollar sign itself is \\$\\$."
)


@dataclass(frozen=True)
class ProjectPrompt:
    """A prompt in one language with its edits in this project, newest first."""

    project_id: str
    name: str
    language: str
    edits: Sequence[PromptEdit]

    @property
    def key(self) -> str:
        """The prefix of its widget keys, and the name of its draft."""
        return f"prompts.{self.project_id}.{self.name}.{self.language}"

    @property
    def newest(self) -> int:
        """The number of the newest edit; 0 if there is none."""
        return self.edits[0].number if self.edits else 0

    @property
    def shipped_text(self) -> str:
        """The text that comes with Counterpoint."""
        return prompting.load_shipped_prompt(self.name, self.language).text

    @property
    def in_use(self) -> prompting.Prompt:
        """The prompt that new checks use."""
        return self.after(self.newest)

    @property
    def typed(self) -> str:
        """The text in the field."""
        return str(st.session_state.get(f"{self.key}.text") or "")

    @property
    def base(self) -> int:
        """The number of the edit that was changed into the text in the field."""
        return int(st.session_state.get(f"{self.key}.base") or 0)

    def after(self, number: int) -> prompting.Prompt:
        """Return the prompt after that edit; 0 is before the first."""
        text = next((edit.text for edit in self.edits if edit.number == number), "")
        edits = {(self.name, self.language): text} if text else {}
        return prompting.PromptBook(edits).prompt(self.name, self.language)


def _fill_field(prompt: ProjectPrompt) -> None:
    """Fill the field with what was typed before, else with the text in use."""
    text_key, base_key = f"{prompt.key}.text", f"{prompt.key}.base"
    typing = st.session_state.pop(f"{prompt.key}.typed", None)
    if typing is not None:  # the page was left before the field sent its text
        st.session_state[text_key] = typing
    if text_key not in st.session_state:
        draft = drafts.load_draft_values(prompt.key)
        text, base = draft.get("text"), draft.get("base")
        if isinstance(text, str) and isinstance(base, int):
            st.session_state[text_key], st.session_state[base_key] = text, base
            return
    elif prompt.typed != prompt.after(prompt.base).text:
        return  # an unchanged text follows the one in use, a changed one stays
    st.session_state[text_key] = prompt.in_use.text
    st.session_state[base_key] = prompt.newest


def _save_typed(prompt: ProjectPrompt, typing: str | None = None) -> None:
    """Store the field's text as a draft, or `typing`, the text that is still being typed."""
    st.session_state.pop(f"{prompt.key}.typed", None)
    if typing is not None:
        st.session_state[f"{prompt.key}.typed"] = typing
    text = prompt.typed if typing is None else typing
    is_changed = text not in (prompt.in_use.text, prompt.after(prompt.base).text)
    values = {"text": text, "base": prompt.base} if is_changed else {}
    drafts.save_draft_values(prompt.key, values)


def _discard_typed(prompt: ProjectPrompt) -> None:
    drafts.save_draft_values(prompt.key, {})
    for name in ("text", "typed"):
        st.session_state.pop(f"{prompt.key}.{name}", None)


def _save_edit(prompt: ProjectPrompt, text: str) -> bool:
    """Save a text as the newest edit; return True if it was saved.

    The shipped text is saved as "", so that it follows later versions of Counterpoint.
    """
    with store_problem(f"{prompt.key}.problem"):
        prompting.check_edit(prompt.name, prompt.language, text)
        with state.open_store() as store, store.writing():
            person = state.get_person(store)
            store.projects.require(prompt.project_id, person, "lead", "edit prompts")
            text = "" if text == prompt.shipped_text else text
            edit = PromptEdit(
                0, prompt.project_id, prompt.name, prompt.language, text, time.time(), person
            )
            store.prompt_edits.save(edit, seen=prompt.newest)
        return True
    return False


def _draw_changes(prompt: ProjectPrompt, is_changed: bool) -> None:
    choices = {"the default": prompt.shipped_text}
    if is_changed and prompt.in_use.is_edited:
        choices = {"the text in use": prompt.in_use.text} | choices
    against = next(iter(choices))
    if len(choices) > 1:
        chosen = st.segmented_control(
            "Compare with", list(choices), default=against, required=True,
            format_func=str.capitalize, key=f"{prompt.key}.against",
        )  # fmt: skip
        against = chosen or against
    _draw_difference(choices[against], prompt.typed, against)


def _draw_difference(before: str, after: str, against: str) -> None:
    removed, added = count_changed_lines(before, after)
    if removed or added:
        st.markdown(
            f"Difference from {against}: {format_count(removed, 'line')} removed (−), "
            f"{format_count(added, 'line')} added (+)"
        )
        draw_html(render_line_diff(before, after))


def _draw_history(prompt: ProjectPrompt) -> None:
    if not prompt.edits:
        return
    words = {}
    for number, edit in zip(range(len(prompt.edits), 0, -1), prompt.edits, strict=True):
        action = (
            f"version {prompt.after(edit.number).hash}" if edit.text else "restored the default"
        )
        words[edit.number] = f"{number}. {format_time(edit.at)} · {edit.author} · {action}"
    chosen = st.selectbox(
        f"Edits ({len(words)})",
        list(words),
        index=None,
        format_func=words.__getitem__,
        placeholder="Choose one to see it and to restore it",
        key=f"{prompt.key}.earlier",
    )
    if chosen is None:
        return
    text = prompt.after(chosen).text
    if text == prompt.in_use.text:
        st.caption("This is the text in use.")
        return
    _draw_difference(prompt.in_use.text, text, "the text in use")
    draw_button("Restore it", f"{prompt.key}.back", _restore_edit, prompt, chosen)


def _restore_edit(prompt: ProjectPrompt, number: int) -> None:
    """Save an earlier text as the newest edit; what was typed and not saved stays in the field."""
    if st.session_state.get(f"{prompt.key}.earlier") != number:
        return  # the second half of a double click
    if _save_edit(prompt, prompt.after(number).text):
        st.session_state[f"{prompt.key}.earlier"] = None
        st.toast("Restored. New checks use it.", icon=":material/check:")


FIELD_HEIGHT = 420


def draw_prompts() -> None:
    """Draw the prompts of the current project; leads and admins may edit them."""
    st.caption(ABOUT_PROMPTS)
    with state.open_store() as store:
        project, person = state.get_project(store), state.get_person(store)
        role = store.projects.role_of(project.id, person)
        edited = set(store.prompt_edits.of_project(project.id))
    prompt = _draw_prompt_choice(project.id, edited)
    origin = "the default prompt"
    if prompt.in_use.is_edited:
        newest = prompt.edits[0]
        origin = f"edited by {newest.author}, {format_time(newest.at)}"
    st.markdown(f"In use: {escape_markdown(origin)} · version `{prompt.in_use.hash}`")
    if has_rank(role, "lead"):
        _draw_editor(prompt)
    else:
        show_problem(f"{prompt.key}.problem")
        st.caption("Leads and admins may edit it.")
        st.code(prompt.in_use.text, language=None, wrap_lines=True)
        _draw_placeholders(prompt.name)
        _draw_difference(prompt.shipped_text, prompt.in_use.text, "the default")


def _draw_prompt_choice(project_id: str, edited: set[tuple[str, str]]) -> ProjectPrompt:
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    language = right.segmented_control(
        "Language", prompting.LANGUAGES, default="en", required=True,
        format_func=lambda code: LANGUAGE_WORDS.get(code, code),
        key="prompts.language", persist_state="session",
        help="A check uses the prompts in its text’s language, else the English ones.",
    ) or "en"  # fmt: skip
    name = left.selectbox(
        "Prompt", list(prompting.TITLES), index=list(prompting.TITLES).index("debate"),
        format_func=prompting.TITLES.__getitem__, key="prompts.name", persist_state="session",
    ) or "debate"  # fmt: skip
    titles = [title for key, title in prompting.TITLES.items() if (key, language) in edited]
    if titles:
        st.caption(f"Edited in this project: {', '.join(titles)}.")
    with state.open_store() as store:
        edits = store.prompt_edits.history(project_id, name, language)
    return ProjectPrompt(project_id, name, language, edits)


def _draw_placeholders(name: str) -> None:
    st.caption(ABOUT_FIELDS)
    rows = [
        join_html([element("dt", f"${{{field}}}"), element("dd", PROMPT_FIELD_WORDS[field])])
        for field in prompting.FIELDS[name]
    ]
    draw_html(element("dl", join_html(rows), class_="cp-fields"))


def _draw_editor(prompt: ProjectPrompt) -> None:
    """Draw the field with its buttons, the difference and the earlier edits."""
    _fill_field(prompt)
    with st.container(key="cp-prompt", gap=None):  # app.css gives it letters of one width
        drafts.watch_fields(
            f"{prompt.key}.watch",
            {"text": f"{prompt.key}.text"},
            lambda texts: (
                _save_typed(prompt, texts["text"]) if texts.get("text") is not None else None
            ),
        )
        st.text_area(
            "Text",
            height=FIELD_HEIGHT,
            key=f"{prompt.key}.text",
            on_change=_save_typed,
            args=(prompt,),
            persist_state="session",  # without it the field may come back empty from another page
        )
    is_changed = prompt.typed != prompt.in_use.text
    show_problem(f"{prompt.key}.problem")
    if is_changed and prompt.base != prompt.newest:
        newest = prompt.edits[0]
        st.warning(
            escape_markdown(
                f"{newest.author} changed this prompt on {format_time(newest.at)}, after you "
                "had begun. Compare below: what you save replaces it."
            )
        )
    _draw_buttons(prompt, is_changed)
    _draw_placeholders(prompt.name)
    _draw_changes(prompt, is_changed)
    _draw_history(prompt)


def _draw_buttons(prompt: ProjectPrompt, is_changed: bool) -> None:
    key = prompt.key
    with st.container(horizontal=True, vertical_alignment="center"):
        draw_button("Save prompt", f"{key}.save", _save_prompt, prompt, type="primary")
        if is_changed:
            draw_button("Discard changes", f"{key}.discard", _discard_typed, prompt)
        if prompt.in_use.is_edited:
            draw_button(
                "Restore the default", f"{key}.ours", ask_confirmation, f"{key}.asked", True
            )
        if is_changed:
            st.markdown(":material/edit: Changed, not saved")
    if st.session_state.get(f"{key}.asked") and prompt.in_use.is_edited:
        lost = " What you typed and did not save is dropped." if is_changed else ""
        words = (
            f"Use the default text for new checks again? The edited one stays under Edits.{lost}"
        )
        draw_confirmation(
            words, "Restore the default", key, _restore_default, prompt, asked=f"{key}.asked"
        )


def _save_prompt(prompt: ProjectPrompt) -> None:
    if f"{prompt.key}.text" not in st.session_state:
        return  # the second half of a double click
    if prompt.typed == prompt.in_use.text:
        st.toast("This text is in use already.")
    elif _save_edit(prompt, prompt.typed):
        _discard_typed(prompt)
        st.toast("Saved. New checks use it.", icon=":material/check:")


def _restore_default(prompt: ProjectPrompt) -> None:
    if not st.session_state.get(f"{prompt.key}.asked"):
        return  # the second half of a double click
    ask_confirmation(f"{prompt.key}.asked", None)
    if _save_edit(prompt, prompt.shipped_text):
        _discard_typed(prompt)
