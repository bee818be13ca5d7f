"""A project's prompts: the text in force, a field to edit it, what changed, how to go back."""

from __future__ import annotations

import streamlit as st

from components import drafts, state
from components.markup import element, joined
from components.prompt_draft import (
    PromptAtHand,
    append,
    base_of,
    forget,
    keep,
    keep_typed,
    load_prompt,
    restore,
    typed,
)
from components.prompt_history import draw_changes, draw_difference, draw_history
from components.prompt_words import FIELD_WORDS, LANGUAGE_WORDS, PROMPT_WORDS
from components.show import show
from components.words import escaped, when
from core.models.prompting import FIELDS
from core.store.projects import RANK

FIELD_HEIGHT = 420


def draw_prompts() -> None:
    """The prompts of the project at hand; leads and admins may edit them."""
    st.subheader("Prompts", anchor=False)
    st.caption(
        "What language models are told. An edit holds for this project’s new checks. Checks that "
        "were made keep the prompt they used: it stands with each role on their Run page."
    )
    with state.open_store() as store:
        project, person = state.project(store), state.person(store)
        role = store.projects.role_of(project.id, person)
        edited = set(store.prompt_edits.of_project(project.id))
    prompt = _choice(project.id, edited)
    _draw_in_force(prompt)
    if role is not None and RANK[role] >= RANK["lead"]:
        _draw_field(prompt)
    else:
        _draw_problem(prompt)
        st.caption("Leads and admins may edit it.")
        st.code(prompt.in_force.text, language=None, wrap_lines=True)
        _draw_fields(prompt.name)
        draw_difference(prompt.ours.text, prompt.in_force.text, "ours")


def _choice(project_id: str, edited: set[tuple[str, str]]) -> PromptAtHand:
    """Which prompt, in which language."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with right:
        language = st.segmented_control(
            "Language",
            list(LANGUAGE_WORDS),
            default="en",
            required=True,
            format_func=lambda code: LANGUAGE_WORDS[code],
            key="prompts.language",
            persist_state="session",
            help="Checks of Chinese texts use the Chinese prompts, all others the English ones.",
        )

    with left:
        name = st.selectbox(
            "Prompt",
            list(PROMPT_WORDS),
            index=list(PROMPT_WORDS).index("debate"),
            format_func=lambda name: PROMPT_WORDS[name],
            key="prompts.name",
            persist_state="session",
        )
    chosen = language or "en"
    here = [words for known, words in PROMPT_WORDS.items() if (known, chosen) in edited]
    if here:
        st.caption(f"Edited in this project: {', '.join(here)}.")
    return load_prompt(project_id, name or "debate", chosen)


def _draw_in_force(prompt: PromptAtHand) -> None:
    """Whose text new checks use, and its version."""
    whose = "ours, as shipped"
    if prompt.in_force.is_edited:
        newest = prompt.edits[0]
        whose = f"edited by {newest.author}, {when(newest.at)}"
    st.markdown(f"In force: {escaped(whose)} · version `{prompt.in_force.hash}`")


def _draw_fields(name: str) -> None:
    st.caption(
        "A comment at the top is not sent. Each of these fields must stand in it, and no other; "
        r"a dollar sign itself is \$\$."
    )
    rows = [
        joined([element("dt", f"${{{field}}}"), element("dd", FIELD_WORDS[field])])
        for field in FIELDS[name]
    ]
    show(element("dl", joined(rows), class_="cp-fields"))


def _draw_field(prompt: PromptAtHand) -> None:
    """The field with its buttons; what is typed is kept at each pause until it is saved."""
    restore(prompt)
    with st.container(key="cp-prompt", gap=None):  # app.css gives it letters of one width
        drafts.watch(
            f"{prompt.key}.watch",
            {"text": f"{prompt.key}.text"},
            lambda texts: keep_typed(prompt, texts.get("text")),
        )
        st.text_area(
            "Text",
            height=FIELD_HEIGHT,
            key=f"{prompt.key}.text",
            on_change=keep,
            args=(prompt,),
            persist_state="session",  # without it the field may come back empty from another page
        )
    is_open = typed(prompt) != prompt.in_force.text
    _draw_problem(prompt)
    if is_open and base_of(prompt) != prompt.newest:
        newest = prompt.edits[0]
        st.warning(
            escaped(
                f"{newest.author} changed this prompt on {when(newest.at)}, after you had begun. "
                "Compare below: what you save replaces it."
            )
        )
    _draw_buttons(prompt, is_open)
    _draw_fields(prompt.name)
    draw_changes(prompt, is_open)
    draw_history(prompt)


def _draw_problem(prompt: PromptAtHand) -> None:
    problem = st.session_state.pop(f"{prompt.key}.problem", "")
    if problem:
        st.error(escaped(problem))


def _draw_buttons(prompt: PromptAtHand, is_open: bool) -> None:
    key = prompt.key
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button("Save prompt", key=f"{key}.save", type="primary", on_click=_save, args=(prompt,))
        if is_open:
            st.button("Discard changes", key=f"{key}.discard", on_click=forget, args=(prompt,))
        if prompt.in_force.is_edited:
            st.button("Back to ours", key=f"{key}.ours", on_click=_ask, args=(key,))
        if is_open:
            st.markdown(":material/edit: Changed, not saved")
    if st.session_state.get(f"{key}.asked") and prompt.in_force.is_edited:
        _draw_question(prompt, is_open)


def _ask(key: str) -> None:
    st.session_state[f"{key}.asked"] = True


def _unask(key: str) -> None:
    st.session_state.pop(f"{key}.asked", None)


def _draw_question(prompt: PromptAtHand, is_open: bool) -> None:
    lost = " What you typed and did not save is dropped." if is_open else ""
    with st.container(border=True):
        st.markdown(f"Use our text for new checks again? The edited one stays under Edits.{lost}")
        with st.container(horizontal=True):
            st.button(
                "Back to ours",
                key=f"{prompt.key}.sure",
                type="primary",
                on_click=_back_to_ours,
                args=(prompt,),
            )
            st.button("Keep", key=f"{prompt.key}.keep", on_click=_unask, args=(prompt.key,))


def _save(prompt: PromptAtHand) -> None:
    """Make the text in the field the one in force; on a problem it stays in the field."""
    if f"{prompt.key}.text" not in st.session_state:
        return  # the second half of a double click
    text = typed(prompt)
    if text == prompt.in_force.text:
        st.toast("This text is in force already.")
    elif append(prompt, text):
        forget(prompt)
        st.toast("Saved. New checks use it.", icon=":material/check:")


def _back_to_ours(prompt: PromptAtHand) -> None:
    if not st.session_state.get(f"{prompt.key}.asked"):
        return  # the second half of a double click
    _unask(prompt.key)
    if append(prompt, prompt.ours.text):
        forget(prompt)
