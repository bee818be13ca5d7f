"""How far people agree with each other and with the machine, as tables with intervals."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import streamlit as st

from components.app import state
from components.widgets.controls import table
from components.widgets.wording import LABEL_WORDS, counted
from core.review import agreement as stats
from core.schema.records import Label
from core.schema.reviews import Correction
from core.store import open_store
from core.store.sqlite import Mark

MACHINE = "the machine"
MOST_PEOPLE = 12
MOST_KEPT = 8  # projects
Rows = list[dict[str, Any]]


def between(
    value: float, low: float | None, high: float | None, digits: int = 2, sign: str = ""
) -> str:
    """“0.61 (0.40 to 0.79)”; of a figure without an interval the value alone."""
    form = f"{sign}.{digits}f"
    return f"{value:{form}}" + ("" if low is None else f" ({low:{form}} to {high:{form}})")


def draw_agreement() -> None:
    """Draw all figures over the project at hand."""
    with state.open_store() as store:
        project_id = state.project(store).id
    found = _tables(str(state.home()), project_id, state.answers_mark())
    if found is None:
        st.info("Nobody has said anything yet: what people save on Review and on runs counts here.")
        return
    together, pairs, machine, confusion, agents, judged, overturned = found
    st.subheader("Together", anchor=False)
    if not together:
        st.caption("No item has answers of two people yet.")
    _table(together, "agreement.together")
    _table(pairs, "agreement.pairs", "In pairs")
    if judged:
        st.subheader("People and the machine", anchor=False)
        of_all = counted(judged, "answer")
        st.markdown(f"The machine was overturned in **{overturned} of {of_all}**.")
    _table(machine, "agreement.machine")
    _table(confusion, "agreement.confusion")
    _table(agents, "agreement.agents", "People and each agent")
    st.caption(
        f"In brackets: 95% intervals over resampled items. Below {stats.FEWEST} items a figure "
        "says little."
    )


@st.cache_resource(max_entries=MOST_KEPT, show_spinner="Counting over all answers")
def _tables(
    home: str, project_id: str, mark: Mark
) -> tuple[Rows, Rows, Rows, Rows, Rows, int, int] | None:
    """The figures, kept until somebody says something; None where nobody has yet.

    At the end: how many answers were given beside a verdict, and how many of these overturned it.
    """
    with open_store(Path(home)) as store:
        said = store.corrections.newest_by_person(project_id)
        stances = store.queue_lists.stances(project_id)
        cases = {case_id: store.cases.get(case_id) for case_id in {c.case_id for c in said}}
    if not said:
        return None
    lengths = {case_id: len(case.response) for case_id, case in cases.items() if case is not None}
    people = sorted({c.author for c in said})[:MOST_PEOPLE]
    answers: dict[str, dict[str, str]] = defaultdict(dict)  # by case and person
    marks: dict[str, dict[str, list[tuple[int, int]]]] = defaultdict(dict)
    for one in said:
        answers[one.case_id][one.author] = one.label
        marks[one.case_id][one.author] = [(span.start, span.end) for span in one.spans]
    judged = [c for c in said if c.machine_label is not None]
    return (
        _together(answers, marks, lengths),
        _pairs(people, answers, marks, lengths),
        _against_machine(people, judged),
        _confusion(judged),
        _against_agents(said, stances),
        len(judged),
        sum(c.label != c.machine_label for c in judged),
    )


def _together(answers: stats.Answers, marks: stats.Marks, lengths: dict[str, int]) -> Rows:
    counts = stats.counted(answers)
    if not len(counts):
        return []
    rows = [
        ("Labels: same answer", stats.of_counts(counts, stats.raw_agreement)),
        ("Labels: Krippendorff's alpha", stats.of_counts(counts, stats.krippendorff_alpha)),
        ("Labels: Fleiss' kappa", stats.of_counts(counts, stats.fleiss_kappa)),
        (
            "Marked characters: Krippendorff's alpha",
            stats.span_alpha(stats.characters(marks, lengths)),
        ),
    ]
    return [{"": words, "Agreement": _words(figure), "Items": figure.n} for words, figure in rows]


def _pairs(
    people: Sequence[str], answers: stats.Answers, marks: stats.Marks, lengths: dict[str, int]
) -> Rows:
    rows: Rows = []
    for one, other in itertools.combinations(people, 2):
        first, second = stats.pair_of(answers, one, other)
        if first:
            same = sum(a == b for a, b in zip(first, second, strict=True))
            kappa = stats.cohen_of(answers, one, other)
            rows.append(
                {
                    "People": f"{one} · {other}",
                    "Same answer": f"{same} of {len(first)}",
                    "Cohen's kappa": _words(kappa),
                    "F1 of marked characters": _words(stats.f1_of(marks, lengths, one, other)),
                }
            )
    return rows


def _against_machine(people: Sequence[str], judged: Sequence[Correction]) -> Rows:
    rows: Rows = []
    for person in people:
        own = [c for c in judged if c.author == person]
        if own:
            both = {c.case_id: {person: c.label, MACHINE: c.machine_label or ""} for c in own}
            same = sum(c.label == c.machine_label for c in own)
            rows.append(
                {
                    "Person": person,
                    "Same answer": f"{same} of {len(own)}",
                    "Cohen's kappa": _words(stats.cohen_of(both, person, MACHINE)),
                    "Answered blind": sum(c.is_blind for c in own),
                }
            )
    return rows


def _confusion(judged: Sequence[Correction]) -> Rows:
    many = Counter((c.machine_label, c.label) for c in judged)
    return [
        {"The machine said": LABEL_WORDS[machine]}
        | {f"People: {words.lower()}": many[machine, label] for label, words in LABEL_WORDS.items()}
        for machine in (LABEL_WORDS if judged else ())
    ]


def _against_agents(
    said: Sequence[Correction], stances: Mapping[str, Sequence[tuple[str, Label]]]
) -> Rows:
    """Each agent beside people: every answer to a case that the agent spoke on counts once."""
    pairs: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for correction in said:
        for agent, stance in stances.get(correction.case_id, ()):
            pairs[agent].append((correction.label, stance))
    return [
        {
            "Agent": agent,
            "Same answer": f"{sum(a == b for a, b in own)} of {len(own)}",
            "Cohen's kappa": _words(
                stats.cohen_of(
                    {str(n): {"": a, agent: b} for n, (a, b) in enumerate(own)}, "", agent
                )
            ),
        }
        for agent, own in sorted(pairs.items())
    ]


def _words(figure: stats.AgreementFigure) -> str:
    if figure.value is None:
        return "not defined" if figure.n else "–"
    told = between(figure.value, figure.low, figure.high)
    return told + (", too few to say" if figure.is_thin else "")


def _table(rows: Rows, key: str, title: str = "") -> None:
    if rows and title:
        st.subheader(title, anchor=False)
    if rows:
        table(rows, key)
