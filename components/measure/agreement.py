"""Agreement screen: tables of how far people agree with each other and with the machine."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import streamlit as st

from components.app import state
from components.app.frame import FIGURES_OF_LEADS
from components.measure.summary import (
    draw_counts,
    draw_next_step,
)
from components.review.review_queue import ADJUDICATION_PAGE, QUEUE_PAGE
from components.widgets.controls import draw_choice_table, draw_table, open_run
from components.widgets.wording import LABEL_WORDS, clip_text, format_count, format_duration
from core.learning import agreement as stats
from core.learning.track_record import MIN_CASES
from core.review.adjudication import rate_difference
from core.review.people import can_see_answers
from core.review.work_time import PAUSE_SECONDS, WorkTime, measure_work_times
from core.runtime.concurrency import pause_collector
from core.schema.records import Label
from core.schema.reviews import Correction
from core.store import open_store
from core.store.projects import has_rank
from core.store.review_queue import LABELS_DIFFER, MARKS_DIFFER
from core.store.sqlite import ChangeMark

MACHINE_NAME = "the machine"
MAX_CACHED_PROJECTS = 8  # projects
MAX_LISTED_ROWS = 12  # rows; longer tables scroll
ITEM_PAGES = {True: "pages/review/adjudicate_case.py", False: "pages/review/label.py"}  # by is_lead
DIFFERENCE_WORDS = {LABELS_DIFFER: "label", MARKS_DIFFER: "only marked words or their kind"}
COLUMN_HELP = {
    "Agreement": (
        "Fleiss' kappa holds only for equally many answers on every item, alpha for any number."
    ),
    "Labels differ": "Of the cases that both answered: those on which they gave different labels.",
    "Only marks differ": (
        "Of the cases with the same label: those on which they marked other words, another kind of "
        "error, or labelled a statement differently."
    ),
    "Cohen's kappa": (
        "Agreement on labels beyond chance: 1 is full, 0 is chance. The lowest come first."
    ),
    "F1 of marked characters": "Over the cases on which at least one of the two marked words.",
    "Answered blind": (
        "First answers on a case, given while the verdict was hidden. One given again after Undo "
        "is none: the verdict and others' answers may have been seen in between."
    ),
    "Left unclear": "Cases on which the agent decided nothing. They count as differing.",
}
UNEVEN_WORDS = "uneven answers"
TableRows = list[dict[str, Any]]


class DifferingItem(NamedTuple):
    """A case on which two answers differ, and in what; `labels` are theirs."""

    case_id: str
    run_id: str | None
    difference: int
    labels: tuple[Label, Label]


@dataclass(frozen=True)
class AgreementTables:
    """All tables, and the items behind them by who differs.

    `judged` answers have a verdict beside them, which was `unclear` or was `overturned`. Of the
    cases not yet settled, `open_labels` differ in labels and `open_marks` only in marks.
    """

    together: TableRows
    pairs: TableRows
    machine: TableRows
    confusion: TableRows
    agents: TableRows
    judged: int
    unclear: int
    overturned: int
    shared: int
    open_labels: int
    open_marks: int
    differing: dict[tuple[str, str], list[DifferingItem]]
    answered: dict[str, set[str]]


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
        draw_next_step("answer the first cases.", QUEUE_PAGE, "Review")
        return
    if only:
        draw_next_step("answer more cases.", QUEUE_PAGE, "Review")
        draw_counts(f"Here count your own answers. {FIGURES_OF_LEADS}")
    else:
        _draw_next_step(tables)
        draw_counts(
            f"Here count all answers, {tables.shared:,} of the cases with those of two people or "
            "more."
        )
        st.subheader("Together", anchor=False)
        if not tables.together:
            st.caption("No item has answers of two people yet.")
    _draw_table(tables.together, "agreement.together")
    _draw_table(tables.pairs, "agreement.pairs", "In pairs")
    if tables.judged:
        st.subheader("People and the machine", anchor=False)
        total = format_count(tables.judged - tables.unclear, "answer")
        left = f"; it had left {tables.unclear:,} more unclear" if tables.unclear else ""
        st.markdown(f"The machine was overturned in **{tables.overturned:,} of {total}**{left}.")
    _draw_table(tables.machine, "agreement.machine")
    _draw_table(tables.confusion, "agreement.confusion")
    _draw_table(tables.agents, "agreement.agents", "People and each agent")
    st.caption(
        f"In brackets: 95% intervals over resampled items. Below {MIN_CASES} items a figure "
        "says little."
    )
    _draw_items(project_id, tables)


def _draw_next_step(tables: AgreementTables) -> None:
    differing = tables.open_labels + tables.open_marks
    if differing:
        words = (
            f"{format_count(differing, 'case')} {'differs' if differing == 1 else 'differ'}, "
            f"{tables.open_labels} in the label and {tables.open_marks} only in marks: adjudicate "
            f"{'it' if differing == 1 else 'them'}."
        )
        draw_next_step(words, ADJUDICATION_PAGE, "Adjudicate")
    elif not tables.shared:
        words = "no case has answers of two people: ask for more people per case."
        draw_next_step(words, "pages/setup/project.py", "Project")
    else:
        draw_next_step("nothing is left to adjudicate: answer more cases.", QUEUE_PAGE, "Review")


def _draw_items(project_id: str, tables: AgreementTables) -> None:
    """Draw the items on which two differ; a click opens one.

    Leads see all, others only those that they have answered themselves.
    """
    with state.open_store() as store:
        person = state.get_person(store)
        is_lead = has_rank(store.projects.role_of(project_id, person), "lead")
        is_shown = can_see_answers(store, project_id, person, is_settling=True)
    known = tables.answered.get(person, set())
    visible = {
        pair: shown
        for pair, items in tables.differing.items()
        if (shown := [item for item in items if is_lead or item.case_id in known])
    }
    if not visible or not is_shown:
        return
    st.subheader("The items behind a figure", anchor=False)
    pair = st.selectbox(
        "Items on which these differ",
        list(visible),
        format_func=lambda pair: f"{pair[0]} · {pair[1]} ({len(visible[pair])})",
        key="agreement.items.pair",
    )
    items = visible.get(pair) or next(iter(visible.values()))
    with state.open_store() as store:
        cases = {case.id: case for case in store.cases.several([item.case_id for item in items])}
    one, other = pair
    rows = [
        {
            "Claim": clip_text(cases[item.case_id].response, 200) if item.case_id in cases else "",
            "They differ in": DIFFERENCE_WORDS[item.difference],
            one: LABEL_WORDS[item.labels[0]],
            other: LABEL_WORDS[item.labels[1]],
        }
        for item in items
    ]
    chosen = draw_choice_table(
        rows,
        f"agreement.items.{one}.{other}",
        height=_choose_height(rows),
        column_config={"Claim": st.column_config.TextColumn(width="large")},
    )
    st.caption("A click opens the item.")
    if chosen is not None:
        _open_item(items[chosen], is_lead=is_lead)


def _open_item(item: DifferingItem, *, is_lead: bool) -> None:
    with state.open_store() as store:
        is_queued = store.queue.get(item.case_id) is not None
    if is_queued or item.run_id is None:
        st.switch_page(ITEM_PAGES[is_lead], query_params={"case": item.case_id})
    open_run(item.run_id)


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner="Counting over all answers")
@pause_collector()
def _build_tables(
    home: str, project_id: str, mark: ChangeMark, only: str
) -> AgreementTables | None:
    """Return the tables, cached until a new answer; None if there are no answers.

    `only` names the person whose answers alone are counted; empty for everybody's.
    """
    with open_store(Path(home)) as store:
        corrections = [
            correction
            for correction in store.corrections.newest_by_person(project_id)
            if only in ("", correction.author)
        ]
        stances = store.queue_lists.stances(project_id)
        lengths = store.cases.lengths(project_id)
        settled = store.truths.settled(project_id)
        blind = store.corrections.list_blind_ids(project_id)
    if not corrections:
        return None
    people = sorted({c.author for c in corrections})
    by_case: dict[str, dict[str, Correction]] = defaultdict(dict)
    for each in corrections:
        by_case[each.case_id][each.author] = each
    answers = {
        case_id: {who: c.label for who, c in own.items()} for case_id, own in by_case.items()
    }
    marks = {
        case_id: {who: [(span.start, span.end) for span in c.spans] for who, c in own.items()}
        for case_id, own in by_case.items()
    }
    judged = [c for c in corrections if c.machine_label is not None]
    differing = _list_differing(people, by_case)
    shared = [own for own in by_case.values() if len(own) > 1]
    differences = Counter(
        min(rate_difference(list(own.values())), LABELS_DIFFER)
        for case_id, own in by_case.items()
        if case_id not in settled
    )
    return AgreementTables(
        _compare_all(answers, marks, lengths),
        _compare_pairs(people, answers, marks, differing),
        _compare_machine(people, judged, blind),
        _count_confusion(judged),
        _compare_agents(answers, stances),
        len(judged),
        sum(c.machine_label == "unclear" for c in judged),
        sum(c.machine_label not in ("unclear", c.label) for c in judged),
        len(shared),
        differences[LABELS_DIFFER],
        differences[MARKS_DIFFER],
        dict(sorted(differing.items(), key=lambda own: (MACHINE_NAME in own[0], -len(own[1])))),
        {who: {c.case_id for c in corrections if c.author == who} for who in people},
    )


def _list_differing(
    people: Sequence[str], by_case: Mapping[str, Mapping[str, Correction]]
) -> dict[tuple[str, str], list[DifferingItem]]:
    """Return the items on which two people, or a person and the machine, differ, labels first."""
    found: dict[tuple[str, str], list[DifferingItem]] = defaultdict(list)
    for case_id, own in by_case.items():
        by_label: dict[Label, list[Correction]] = defaultdict(list)
        for correction in own.values():
            by_label[correction.label].append(correction)
        # Where all of the same label marked alike, as most do, no two need be compared.
        unlike = {label for label, said in by_label.items() if rate_difference(said)}
        for one, other in itertools.combinations(sorted(own), 2):
            first, second = own[one], own[other]
            labels = (first.label, second.label)
            difference = LABELS_DIFFER if labels[0] != labels[1] else 0
            if difference == 0 and first.label in unlike:
                difference = rate_difference([first, second])
            if difference:
                found[one, other].append(DifferingItem(case_id, first.run_id, difference, labels))
        for who, said in own.items():
            if said.machine_label is not None and said.machine_label != said.label:
                found[who, MACHINE_NAME].append(
                    DifferingItem(
                        case_id, said.run_id, LABELS_DIFFER, (said.label, said.machine_label)
                    )
                )
    return {pair: sorted(items, key=lambda i: -i.difference) for pair, items in found.items()}


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
            "Marks: Krippendorff's alpha",
            stats.measure_span_alpha(stats.count_marked_characters(marks, lengths)),
        ),
    ]
    is_uneven = len(set(counts.sum(axis=1).tolist())) > 1
    return [
        {
            "": words,
            "Agreement": UNEVEN_WORDS
            if is_uneven and "Fleiss" in words
            else _format_figure(figure),
            "Items": figure.n,
        }
        for words, figure in rows
    ]


def _compare_pairs(
    people: Sequence[str],
    answers: stats.ItemAnswers,
    marks: stats.ItemMarks,
    differing: Mapping[tuple[str, str], Sequence[DifferingItem]],
) -> TableRows:
    rows: list[tuple[stats.AgreementFigure, dict[str, Any]]] = []
    for one, other in itertools.combinations(people, 2):
        kappa = stats.measure_cohen_kappa(stats.pair_labels(answers, one, other))
        if kappa.n:
            counts = Counter(item.difference for item in differing.get((one, other), ()))
            by_label = counts[LABELS_DIFFER]
            cells = {
                "People": f"{one} · {other}",
                "Cohen's kappa": _format_figure(kappa),
                "Labels differ": f"{by_label} of {kappa.n}",
                "Only marks differ": f"{counts[MARKS_DIFFER]} of {kappa.n - by_label}",
                "F1 of marked characters": _format_figure(
                    stats.measure_marking_f1(marks, one, other)
                ),
            }
            rows.append((kappa, cells))
    return _sort_by_figure(rows)


def _sort_by_figure(rows: list[tuple[stats.AgreementFigure, dict[str, Any]]]) -> TableRows:
    """Return the rows' cells, the lowest figure first and those without one last."""
    rows.sort(key=lambda row: (row[0].value is None, row[0].value or 0.0, -row[0].n))
    return [cells for _, cells in rows]


def _compare_machine(
    people: Sequence[str], judged: Sequence[Correction], blind: set[str]
) -> TableRows:
    by_person: dict[str, list[Correction]] = defaultdict(list)
    for each in judged:
        by_person[each.author].append(each)
    rows: list[tuple[stats.AgreementFigure, dict[str, Any]]] = []
    for person in people:
        if own := by_person[person]:
            kappa = stats.measure_cohen_kappa((c.label, c.machine_label or "") for c in own)
            cells = {
                "Person": person,
                "Cohen's kappa": _format_figure(kappa),
                "Labels differ": f"{sum(c.label != c.machine_label for c in own)} of {len(own)}",
                "Answered blind": sum(c.id in blind for c in own),
            }
            rows.append((kappa, cells))
    return _sort_by_figure(rows)


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
    answers: stats.ItemAnswers, stances: Mapping[str, Sequence[tuple[str, Label]]]
) -> TableRows:
    """Compare each agent with people; each answer on a case that the agent spoke on counts once.

    Answers of several people on one case are no further cases: a figure is thin by its cases.
    """
    pairs: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    cases: dict[str, set[str]] = defaultdict(set)
    for case_id, said in answers.items():
        for agent, stance in stances.get(case_id, ()):
            cases[agent].add(case_id)
            for label in said.values():
                pairs[agent][label, stance] += 1
    rows: list[tuple[stats.AgreementFigure, dict[str, Any]]] = []
    for agent, labels in sorted(pairs.items()):
        kappa = replace(stats.measure_cohen_kappa(labels), n=len(cases[agent]))
        differing = sum(count for (label, said), count in labels.items() if label != said)
        cells = {
            "Agent": agent,
            "Cohen's kappa": _format_figure(kappa),
            "Cases": kappa.n,
            "Labels differ": f"{differing} of {labels.total()}",
            "Left unclear": sum(labels[label, "unclear"] for label in LABEL_WORDS),
        }
        rows.append((kappa, cells))
    return _sort_by_figure(rows)


def _format_figure(figure: stats.AgreementFigure) -> str:
    if figure.value is None:
        return "all answers are alike" if figure.n else "–"
    text = format_interval(figure.value, figure.low, figure.high)
    return text + (", too few to say" if figure.is_thin else "")


def _choose_height(rows: TableRows) -> Any:
    return "content" if len(rows) <= MAX_LISTED_ROWS else 420


def _draw_table(rows: TableRows, key: str, title: str = "") -> None:
    if rows and title:
        st.subheader(title, anchor=False)
    if rows:
        columns = {
            name: st.column_config.Column(help=COLUMN_HELP.get(name), pinned=not place)
            for place, name in enumerate(rows[0])
        }
        draw_table(rows, key, height=_choose_height(rows), column_config=columns)


@st.cache_resource(max_entries=MAX_CACHED_PROJECTS, show_spinner=False)
def _measure_times(home: str, project_id: str, mark: ChangeMark) -> list[WorkTime]:
    """Return each person's times, cached until a new answer."""
    with open_store(Path(home)) as store:
        return measure_work_times(store.queue.submitted(project_id))


def draw_work_times() -> None:
    """Draw each person's items, median time and throughput; nothing for annotators."""
    with state.open_store() as store:
        project = state.get_project(store)
        role = store.projects.role_of(project.id, state.get_person(store))
    if not has_rank(role, "lead"):
        return
    times = _measure_times(str(state.home_folder()), project.id, state.get_answers_mark())
    if not any(time.seconds for time in times):
        return
    st.subheader("Time per person", anchor=False)
    rows = [
        {
            "Person": time.person,
            "Items": time.submitted,
            "Items with a time": len(time.seconds),
            "Seconds per item, median": time.median_seconds and round(time.median_seconds),
            "Items per hour": time.items_per_hour and round(time.items_per_hour, 1),
        }
        for time in times
    ]
    draw_table(rows, "agreement.times")
    st.caption(
        "From taking an item out of the queue to submitting it. More than "
        f"{format_duration(PAUSE_SECONDS)} is a pause and no work: such items have no time here, "
        "nor have those that were imported or answered on a run’s page. Time between two items "
        "does not count, and no second counts for two."
    )
