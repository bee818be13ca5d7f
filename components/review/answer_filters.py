"""How people's answers differ in words, and filters by it that are kept in the address."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import streamlit as st

from components.app import state
from components.widgets.wording import LABEL_WORDS
from core.review.adjudication import AnswerDifference, find_difference
from core.schema.reviews import Correction, format_category
from core.store import open_store
from core.store.review_queue import ItemFilter
from core.store.sqlite import ChangeMark

WORDS_FIELD = "words"
# By filter, the words of each value.
ANSWER_CHOICES: dict[str, dict[str, str]] = {
    "differ": {
        "": "anything or nothing",
        "labels": "the label",
        "marks": "the marked words",
        "kinds": "only the kind of error",
        "nothing": "nothing",
    },
    "majority": {"": "any or none", "yes": "more than half say the same", "no": "none, a tie"},
}
MAX_CACHED_PROJECTS = 8
Choices = Mapping[str, Mapping[str, str]]


def format_difference(difference: AnswerDifference, named: str = "") -> str:
    """Return in one line in what people differ; empty if fewer than two answered.

    `named`: which words they call which kind, said in place of the kinds alone.
    """
    total = sum(count for _, count in difference.labels)
    if total < 2:
        return ""
    kinds = named or "; ".join(" vs ".join(map(format_category, pair)) for pair in difference.kinds)
    if difference.kind == "kinds":
        return f"only the kind differs: {kinds}"
    parts: list[str] = []
    if difference.kind == "labels":
        counts = (f"{count} {LABEL_WORDS[label].lower()}" for label, count in difference.labels)
        parts.append(f"label: {', '.join(counts)}")
    parts += ["marks differ"] if difference.has_other_marks else []
    parts += [f"kind differs: {kinds}"] if kinds else []
    return " · ".join(parts) or f"none: {total} people agree"


def sync_address(page: str, choices: Choices, show_key: str = "") -> None:
    """Set the fields of a page from its address where a link led here, else write them into it.

    A field `name` has the key `page.name` (`show` has `show_key`) and the values of `choices`, or
    any if they are empty. A link that names one field sets all of them; one that names none leaves
    them as they were.
    """
    keys = {name: f"{page}.{name}" for name in choices} | ({"show": show_key} if show_key else {})
    linked = {name: value for name in choices if (value := st.query_params.get(name, ""))}
    if linked and linked != st.session_state.get(f"{page}.address"):
        for name, values in choices.items():
            value = linked.get(name, "")
            if not values or value in values:
                st.session_state[keys[name]] = value
            else:
                st.session_state.pop(keys[name], None)
    written = {}
    for name in choices:
        if value := str(st.session_state.get(keys[name]) or ""):
            written[name] = st.query_params[name] = value
        else:
            st.query_params.pop(name, None)
    st.session_state[f"{page}.address"] = written


def draw_answer_filters(page: str, wanted: ItemFilter, *, shows_answers: bool) -> ItemFilter:
    """Draw the fields and return the filter narrowed by them.

    `shows_answers`: the person may know how others answered.
    """
    columns = st.columns(3)
    words = columns[0].text_input(
        "Search",
        key=f"{page}.{WORDS_FIELD}",
        placeholder="Words of response or question",
        persist_state="session",
    )
    wanted = replace(wanted, words=(words or "").strip())
    if not shows_answers:
        return wanted
    chosen: list[str] = []
    for column, title, name in zip(
        columns[1:], ("People differ in", "Majority for a label"), ANSWER_CHOICES, strict=True
    ):
        values = ANSWER_CHOICES[name]
        value = column.selectbox(
            title,
            list(values),
            format_func=values.__getitem__,
            key=f"{page}.{name}",
            persist_state="session",
        )
        chosen.append(value or "")
    return replace(wanted, case_ids=_find_cases(*chosen)) if any(chosen) else wanted


def _find_cases(kind: str, majority: str) -> tuple[str, ...]:
    """Return the cases of several answers that differ in `kind`, with or without a majority."""
    with state.open_store() as store:
        project_id, mark = state.get_project(store).id, store.changes.of_corrections()
    differences = _find_differences(str(state.home_folder()), project_id, mark)
    return tuple(
        case_id
        for case_id, difference in differences.items()
        if kind in ("", difference.kind)
        and (not majority or (difference.majority is not None) == (majority == "yes"))
    )


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner="Comparing all answers")
def _find_differences(home: str, project_id: str, mark: ChangeMark) -> dict[str, AnswerDifference]:
    """Return how people differ on each case that several answered, cached until a new answer."""
    by_case: dict[str, list[Correction]] = {}
    with open_store(Path(home)) as store:
        for answer in store.corrections.newest_by_person(project_id):
            by_case.setdefault(answer.case_id, []).append(answer)
    return {case_id: find_difference(said) for case_id, said in by_case.items() if len(said) > 1}
