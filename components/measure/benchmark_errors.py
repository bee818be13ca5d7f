"""The answers of a benchmark to look into, to open as a run, or to send to Review."""

from __future__ import annotations

import time
from collections.abc import Sequence
from operator import attrgetter
from typing import Any

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.roster_choice import draw_roster_keys
from components.review.review_queue import LABEL_PAGE, QUEUE_PAGE
from components.widgets.controls import (
    draw_button,
    draw_link,
    open_run,
    show_problem,
    show_problems,
    store_problem,
)
from components.widgets.html import strip_verdict_line
from components.widgets.wording import (
    CAUSE_WORDS,
    clip_text,
    escape_markdown,
    format_count,
    format_label,
    format_probability,
)
from core.evaluation.benchmark_results import (
    AnswerKind,
    MeasuredBenchmark,
    list_marked_words,
    sort_answers,
)
from core.evaluation.benchmark_review import send_rows_to_review, store_rows_as_cases
from core.evaluation.benchmarks import BenchmarkCell
from core.evaluation.dataset_files import GoldRow
from core.evaluation.outcomes import Prediction
from core.schema.records import LEARNED_FIELDS
from core.store.benchmarks import Benchmark
from core.store.review_queue import build_queue_rules

MAX_SHOWN_ROWS = 200
CHOSEN_HEIGHT = 380
SENT = "benchmark.sent"
ROLE_WORDS = "open rows as runs and send them to review"
REASONS: dict[AnswerKind, str] = {  # why answers of a kind are sent to review
    "wrong": "a benchmark found another label",
    "unclear": "a benchmark could not decide it",
    "failed": "a benchmark failed on it",
    "refused": "a benchmark could not check it",
    "right": "a benchmark found the same label",
}
SHOWN_COLUMNS = ("Response", "Right answer", "It says", "Why")


def draw_errors(benchmark: Benchmark, measured: MeasuredBenchmark) -> None:
    """Draw the answers of one kind of the chosen system, and what can be done with them."""
    st.subheader("Errors", anchor=False)
    chosen = str(st.session_state.get("benchmark.system") or "")
    system = next((s for s in measured.systems if s.name == chosen), measured.systems[0])
    answers = list(zip(system.outcomes.rows, system.outcomes.said, strict=True))
    kinds = sort_answers(system.outcomes)
    kind: AnswerKind = st.segmented_control(
        f"Answers of {escape_markdown(system.name)}",
        list(kinds),
        default="wrong",
        format_func=lambda kind: f"{kind.capitalize()} ({len(kinds[kind]):,})",
        key="benchmark.kind",
        required=True,
    )
    shown = [answers[place] for place in kinds[kind][:MAX_SHOWN_ROWS]]
    _draw_sent(benchmark.id)
    if not shown:
        st.caption("There are none.")
        return
    event = st.dataframe(
        [_build_row(*answer) for answer in shown],
        key=f"benchmark.errors.{chosen}.{kind}",
        on_select="rerun",
        selection_mode="multi-row",
        hide_index=True,
        height="content" if len(shown) < 10 else CHOSEN_HEIGHT,
        column_order=SHOWN_COLUMNS,
    )
    if len(kinds[kind]) > MAX_SHOWN_ROWS:
        st.caption(f"The first {MAX_SHOWN_ROWS}; Rows (CSV) has all.")
    picked = [shown[n] for n in event["selection"]["rows"] if n < len(shown)]
    if not picked:
        st.caption("Choose rows to read one, open it as a run, or send them to Review.")
        return
    _draw_answer(*picked[0])
    if not has_role("lead", ROLE_WORDS, project_id=benchmark.project_id):
        return
    rows = [row for row, _ in picked]
    with st.container(horizontal=True):
        if system.cell and st.button(
            "Open as a run", key="benchmark.open", icon=":material/open_in_new:",
            help="Checks it in this project by the same system, unless that was done before.",
        ):  # fmt: skip
            with show_problems():
                _open_as_run(benchmark, rows[0], system.cell)
        words = f"Send {format_count(len(rows), 'row')} to Review"
        draw_button(words, "benchmark.send", _send, benchmark, rows, kind, icon="checklist")
    if system.cell:
        draw_roster_keys([system.cell.roster], "benchmark.open")


def _explain(said: Prediction) -> str:
    """Return why it could not say more, else how the judge's text begins."""
    cause, _, more = said.cause.partition(": ")
    return more or CAUSE_WORDS.get(cause, cause) or strip_verdict_line(said.reason)


def _build_row(row: GoldRow, said: Prediction) -> dict[str, Any]:
    return {
        "Response": clip_text(row.response, 160),
        "Right answer": format_label(row.label),
        "It says": format_label(said.label),
        "p": format_probability(said.p),
        "Why": clip_text(_explain(said) or list_marked_words(row, said), 120),
        "Language": row.language,
        "Category": row.category,
    }


def _draw_answer(row: GoldRow, said: Prediction) -> None:
    p = f" (p {said.p:.2f})" if said.p is not None else ""
    parts = {
        "Question": row.question,
        "Response": row.response,
        "Right answer": format_label(row.label),
        "It says": format_label(said.label) + p,
        "Why": _explain(said),
        "It marked": list_marked_words(row, said),
    }
    with st.container(border=True):
        for title, text in parts.items():
            if text:
                st.markdown(f"**{title}:** {escape_markdown(text)}")
        for number, text in enumerate(row.documents, start=1):
            with st.expander(f"Source {number}", expanded=len(row.documents) == 1):
                st.text(text)
        st.caption(escape_markdown(row.place))


def _open_as_run(benchmark: Benchmark, row: GoldRow, cell: BenchmarkCell) -> None:
    """Open a run over the row by the same system, made now if there is none."""
    with state.open_store() as store:
        person = state.require_role(store, benchmark.project_id, "lead", ROLE_WORDS)
        project = store.projects.get(benchmark.project_id) or state.get_project(store)
        now = time.time()
        case = store_rows_as_cases(store, state.home_folder(), project, [row], person, now)[0]
        runs = store.runs.of_case(case.id, now, store.projects.settings().lease_seconds)
    read_system = attrgetter(
        "roster", "protocol", "options", "classifier", "reader", *LEARNED_FIELDS
    )
    same = [run.id for run in runs if run.status in ("queued", "running", "finished")
            and read_system(run.plan) == read_system(cell.plan)]  # fmt: skip
    open_run(
        same[0]
        if same
        else state.get_jobs().start(
            case, cell.plan, by=person, typed=state.get_typed_keys(), is_measured=True
        )
    )


def _send(benchmark: Benchmark, rows: Sequence[GoldRow], kind: AnswerKind) -> None:
    with store_problem("benchmark.sent.problem"), state.open_store() as store:
        person = state.require_role(store, benchmark.project_id, "lead", ROLE_WORDS)
        project = store.projects.get(benchmark.project_id) or state.get_project(store)
        cases = send_rows_to_review(
            store, state.home_folder(), project, rows, person, time.time(),
            build_queue_rules(project), REASONS[kind],
        )  # fmt: skip
        st.session_state[SENT] = (benchmark.id, [case.id for case in cases])


def _draw_sent(benchmark_id: str) -> None:
    show_problem("benchmark.sent.problem")
    sent_from, case_ids = st.session_state.get(SENT, ("", []))
    if sent_from == benchmark_id:
        count = format_count(len(case_ids), "row")
        words = f"{count} in the review queue, without the set’s label."
        st.success(words, icon=":material/check_circle:")
        with st.container(horizontal=True):
            draw_link(LABEL_PAGE, "Label it now", "rate_review", case=case_ids[0])
            draw_link(QUEUE_PAGE, "Review", "checklist")
