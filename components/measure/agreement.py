"""Agreement screen: tables of how far people agree with each other and with the machine."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import draw_table
from components.widgets.wording import LABEL_WORDS, format_count
from core.review import agreement as stats
from core.review.people import can_see_answers
from core.schema.records import Label
from core.schema.reviews import Correction
from core.store import open_store
from core.store.sqlite import ChangeMark

MACHINE_NAME = "the machine"
MAX_COMPARED_PEOPLE = 12
MAX_CACHED_PROJECTS = 8  # projects
TableRows = list[dict[str, Any]]


def format_interval(
    value: float, low: float | None, high: float | None, digits: int = 2, sign: str = ""
) -> str:
    """Return text such as “0.61 (0.40 to 0.79)”, or only the value without an interval."""
    form = f"{sign}.{digits}f"
    return f"{value:{form}}" + ("" if low is None else f" ({low:{form}} to {high:{form}})")


def draw_agreement() -> None:
    """Draw all tables for the current project."""
    with state.open_store() as store:
        project_id, person = state.get_project(store).id, state.get_person(store)
        only = "" if can_see_answers(store, project_id, person, is_settling=True) else person
    tables = _build_tables(str(state.home_folder()), project_id, state.get_answers_mark(), only)
    if tables is None:
        who = "You have not" if only else "Nobody has"
        st.info(f"{who} said anything yet: what people save on Review and on runs counts here.")
        return
    together, pairs, machine, confusion, agents, judged, overturned = tables
    st.subheader("Together", anchor=False)
    if not together:
        st.caption("No item has answers of two people yet.")
    _draw_table(together, "agreement.together")
    _draw_table(pairs, "agreement.pairs", "In pairs")
    if judged:
        st.subheader("People and the machine", anchor=False)
        total = format_count(judged, "answer")
        st.markdown(f"The machine was overturned in **{overturned} of {total}**.")
    _draw_table(machine, "agreement.machine")
    _draw_table(confusion, "agreement.confusion")
    _draw_table(agents, "agreement.agents", "People and each agent")
    st.caption(
        f"In brackets: 95% intervals over resampled items. Below {stats.MIN_ITEMS} items a figure "
        "says little."
    )


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner="Counting over all answers")
def _build_tables(
    home: str, project_id: str, mark: ChangeMark, only: str
) -> tuple[TableRows, TableRows, TableRows, TableRows, TableRows, int, int] | None:
    """Return the five tables, cached until a new answer; None if there are no answers.

    `only` names the person whose answers alone are counted; empty for everybody's.
    The last two values count the answers that have a verdict, and those that overturned it.
    """
    with open_store(Path(home)) as store:
        corrections = [
            correction
            for correction in store.corrections.newest_by_person(project_id)
            if only in ("", correction.author)
        ]
        stances = store.queue_lists.stances(project_id)
        cases = {case_id: store.cases.get(case_id) for case_id in {c.case_id for c in corrections}}
    if not corrections:
        return None
    lengths = {case_id: len(case.response) for case_id, case in cases.items() if case is not None}
    people = sorted({c.author for c in corrections})[:MAX_COMPARED_PEOPLE]
    answers: dict[str, dict[str, str]] = defaultdict(dict)  # by case and person
    marks: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(dict)
    for each in corrections:
        answers[each.case_id][each.author] = each.label
        marks[each.case_id][each.author] = [(span.start, span.end) for span in each.spans]
    judged = [c for c in corrections if c.machine_label is not None]
    return (
        _compare_all(answers, marks, lengths),
        _compare_pairs(people, answers, marks, lengths),
        _compare_machine(people, judged),
        _count_confusion(judged),
        _compare_agents(corrections, stances),
        len(judged),
        sum(c.label != c.machine_label for c in judged),
    )


def _compare_all(
    answers: stats.ItemAnswers, marks: stats.ItemMarks, lengths: dict[str, int]
) -> TableRows:
    counts = stats.count_answers(answers)
    if not len(counts):
        return []
    rows = [
        ("Labels: same answer", stats.measure_counts(counts, stats.measure_raw_agreement)),
        ("Labels: Krippendorff's alpha", stats.measure_counts(counts, stats.krippendorff_alpha)),
        ("Labels: Fleiss' kappa", stats.measure_counts(counts, stats.fleiss_kappa)),
        (
            "Marked characters: Krippendorff's alpha",
            stats.measure_span_alpha(stats.count_marked_characters(marks, lengths)),
        ),
    ]
    return [
        {"": words, "Agreement": _format_figure(figure), "Items": figure.n}
        for words, figure in rows
    ]


def _compare_pairs(
    people: Sequence[str],
    answers: stats.ItemAnswers,
    marks: stats.ItemMarks,
    lengths: dict[str, int],
) -> TableRows:
    rows: TableRows = []
    for one, other in itertools.combinations(people, 2):
        first, second = stats.pair_labels(answers, one, other)
        if first:
            same = sum(a == b for a, b in zip(first, second, strict=True))
            kappa = stats.measure_cohen_kappa(answers, one, other)
            rows.append(
                {
                    "People": f"{one} · {other}",
                    "Same answer": f"{same} of {len(first)}",
                    "Cohen's kappa": _format_figure(kappa),
                    "F1 of marked characters": _format_figure(
                        stats.measure_marking_f1(marks, lengths, one, other)
                    ),
                }
            )
    return rows


def _compare_machine(people: Sequence[str], judged: Sequence[Correction]) -> TableRows:
    rows: TableRows = []
    for person in people:
        own = [c for c in judged if c.author == person]
        if own:
            both = {c.case_id: {person: c.label, MACHINE_NAME: c.machine_label or ""} for c in own}
            same = sum(c.label == c.machine_label for c in own)
            rows.append(
                {
                    "Person": person,
                    "Same answer": f"{same} of {len(own)}",
                    "Cohen's kappa": _format_figure(
                        stats.measure_cohen_kappa(both, person, MACHINE_NAME)
                    ),
                    "Answered blind": sum(c.is_blind for c in own),
                }
            )
    return rows


def _count_confusion(judged: Sequence[Correction]) -> TableRows:
    counts = Counter((c.machine_label, c.label) for c in judged)
    return [
        {"The machine said": LABEL_WORDS[machine]}
        | {
            f"People: {words.lower()}": counts[machine, label]
            for label, words in LABEL_WORDS.items()
        }
        for machine in (LABEL_WORDS if judged else ())
    ]


def _compare_agents(
    corrections: Sequence[Correction], stances: Mapping[str, Sequence[tuple[str, Label]]]
) -> TableRows:
    """Compare each agent with people; each answer on a case that the agent spoke on counts once."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for correction in corrections:
        for agent, stance in stances.get(correction.case_id, ()):
            pairs[agent].append((correction.label, stance))
    return [
        {
            "Agent": agent,
            "Same answer": f"{sum(a == b for a, b in labels)} of {len(labels)}",
            "Cohen's kappa": _format_figure(
                stats.measure_cohen_kappa(
                    {str(n): {"": a, agent: b} for n, (a, b) in enumerate(labels)}, "", agent
                )
            ),
        }
        for agent, labels in sorted(pairs.items())
    ]


def _format_figure(figure: stats.AgreementFigure) -> str:
    if figure.value is None:
        return "not defined" if figure.n else "–"
    text = format_interval(figure.value, figure.low, figure.high)
    return text + (", too few to say" if figure.is_thin else "")


def _draw_table(rows: TableRows, key: str, title: str = "") -> None:
    if rows and title:
        st.subheader(title, anchor=False)
    if rows:
        draw_table(rows, key)
