"""How far people agree with each other and with the machine, as tables with intervals."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components import state
from components.words import LABEL_WORDS, counted
from core.agreement import (
    FEWEST,
    Answers,
    Figure,
    Marks,
    characters,
    cohen_of,
    f1_of,
    fleiss_kappa,
    krippendorff_alpha,
    of_counts,
    pair_of,
    raw_agreement,
    span_alpha,
)
from core.agreement import counted as label_counts
from core.records import Label
from core.reviews import Correction

MACHINE = "the machine"
MOST_PEOPLE = 12


def draw_agreement() -> None:
    """All figures over the project at hand."""
    with state.open_store() as store:
        project = state.project(store)
        said = store.corrections.newest_by_person(project.id)
        stances = store.queue.stances(project.id)
        lengths = {
            case_id: len(case.response)
            for case_id in {c.case_id for c in said}
            if (case := store.cases.get(case_id)) is not None
        }
    if not said:
        st.info("Nobody has said anything yet: what people save on Review and on runs counts here.")
        return
    people = sorted({c.author for c in said})
    answers, marks = answers_of(said), marks_of(said)
    _draw_together(answers, marks, lengths)
    _draw_pairs(people[:MOST_PEOPLE], answers, marks, lengths)
    _draw_against_machine(people[:MOST_PEOPLE], said)
    _draw_against_agents(said, stances)
    st.caption(
        "In brackets: between which values a figure lies in 95 of 100 resamples of the items. "
        f"Below {FEWEST} items a figure says little."
    )


def answers_of(said: Sequence[Correction]) -> dict[str, dict[str, str]]:
    """Labels by case and person."""
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for correction in said:
        found[correction.case_id][correction.author] = correction.label
    return found


def marks_of(said: Sequence[Correction]) -> dict[str, dict[str, list[tuple[int, int]]]]:
    """Marked stretches by case and person; none where a person marked nothing."""
    found: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(dict)
    for c in said:
        found[c.case_id][c.author] = [(span.start, span.end) for span in c.spans]
    return found


def _draw_together(answers: Answers, marks: Marks, lengths: dict[str, int]) -> None:
    counts = label_counts(answers)
    st.subheader("Together", anchor=False)
    if not len(counts):
        st.caption("No item has answers of two people yet.")
        return
    rows = [
        ("Labels: same answer", of_counts(counts, raw_agreement)),
        ("Labels: Krippendorff's alpha", of_counts(counts, krippendorff_alpha)),
        ("Labels: Fleiss' kappa", of_counts(counts, fleiss_kappa)),
        ("Marked characters: Krippendorff's alpha", span_alpha(characters(marks, lengths))),
    ]
    _table([{"": words, **_cells(figure)} for words, figure in rows], "agreement.together")


def _draw_pairs(
    people: Sequence[str], answers: Answers, marks: Marks, lengths: dict[str, int]
) -> None:
    rows: list[dict[str, Any]] = []
    for one, other in itertools.combinations(people, 2):
        first, second = pair_of(answers, one, other)
        if first:
            same = sum(a == b for a, b in zip(first, second, strict=True))
            kappa = cohen_of(answers, one, other)
            rows.append(
                {
                    "People": f"{one} · {other}",
                    "Same answer": f"{same} of {len(first)}",
                    "Cohen's kappa": _words(kappa),
                    "F1 of marked characters": _words(f1_of(marks, lengths, one, other)),
                }
            )
    if rows:
        st.subheader("In pairs", anchor=False)
        _table(rows, "agreement.pairs")


def _draw_against_machine(people: Sequence[str], said: Sequence[Correction]) -> None:
    st.subheader("People and the machine", anchor=False)
    judged = [c for c in said if c.machine_label is not None]
    overturned = sum(c.label != c.machine_label for c in judged)
    st.markdown(
        f"The machine was overturned in **{overturned} of {counted(len(judged), 'answer')}**."
    )
    rows: list[dict[str, Any]] = []
    for person in people:
        own = [c for c in judged if c.author == person]
        if own:
            both = {c.case_id: {person: c.label, MACHINE: c.machine_label or ""} for c in own}
            same = sum(c.label == c.machine_label for c in own)
            rows.append(
                {
                    "Person": person,
                    "Same answer": f"{same} of {len(own)}",
                    "Cohen's kappa": _words(cohen_of(both, person, MACHINE)),
                    "Of these blind": sum(c.is_blind for c in own),
                }
            )
    _table(rows, "agreement.machine")
    table = [
        {"The machine said": LABEL_WORDS[machine]}
        | {
            f"People: {LABEL_WORDS[label].lower()}": sum(
                c.machine_label == machine and c.label == label for c in judged
            )
            for label in LABEL_WORDS
        }
        for machine in LABEL_WORDS
    ]
    _table(table, "agreement.confusion")


def _draw_against_agents(
    said: Sequence[Correction], stances: Mapping[str, Sequence[tuple[str, Label]]]
) -> None:
    """Each agent beside people: every answer to a case that the agent spoke on counts once."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for correction in said:
        for agent, stance in stances.get(correction.case_id, ()):
            pairs[agent].append((correction.label, stance))
    rows = [
        {
            "Agent": agent,
            "Same answer": f"{sum(a == b for a, b in own)} of {len(own)}",
            "Cohen's kappa": _words(
                cohen_of({str(n): {"": a, agent: b} for n, (a, b) in enumerate(own)}, "", agent)
            ),
        }
        for agent, own in sorted(pairs.items())
    ]
    if rows:
        st.subheader("People and each agent", anchor=False)
        _table(rows, "agreement.agents")


def _cells(figure: Figure) -> dict[str, Any]:
    return {"Agreement": _words(figure), "Items": figure.n}


def _words(figure: Figure) -> str:
    """“0.61 (0.40 to 0.79)”, with a remark where there are too few items."""
    if figure.value is None:
        return "not defined" if figure.n else "–"
    between = "" if figure.low is None else f" ({figure.low:.2f} to {figure.high:.2f})"
    return f"{figure.value:.2f}{between}" + (", too few to say" if figure.is_thin else "")


def _table(rows: list[dict[str, Any]], key: str) -> None:
    if rows:
        st.dataframe(rows, key=key, hide_index=True, height="content")
