"""What several ways to check one case came to: a row each, all marks in one text, the parting."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components import state
from components.calls import cost_words, tokens_of
from components.compare import draw_parting
from components.debate import chosen_words
from components.html import Mark, marked_text, open_run, rows_chosen, show
from components.live import STAGE_WORDS, stop
from components.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    escaped,
    protocol_words,
    roster_words,
    status_words,
)
from core.pipeline.comparison import (
    Compared,
    LeftOut,
    compared,
    compared_cases,
    comparison_csv,
    left_out,
    letters,
)
from core.records import Case

POLL_SECONDS = 1.0
STOPPING = "compare.stopping"  # the case whose runs were asked to stop
ALIVE = ("queued", "running")
Named = Mapping[str, Compared]


def draw_compared(case: Case) -> None:
    """The comparison of a case; redrawn while runs are under way."""
    named, left = _loaded(case)
    if any(own.run.status in ALIVE for own in named.values()):
        _follow(case)
        return
    _draw_rows(case, named, left, finished=True)
    if len(named) > 1:
        _draw_layers(case, named)
        draw_parting(case, {name: own.progress for name, own in named.items()})
    _draw_links(named)


def _loaded(case: Case) -> tuple[Named, list[LeftOut]]:
    with state.open_store() as store:
        found = compared(store, case.id)
        left = left_out(store, case.id)
    return dict(zip(letters(len(found)), found, strict=True)), left


@st.fragment(run_every=POLL_SECONDS)
def _follow(case: Case) -> None:
    named, left = _loaded(case)
    alive = [own.run.id for own in named.values() if own.run.status in ALIVE]
    if not alive:
        st.session_state.pop(STOPPING, None)
        st.rerun()
        return
    words = f"{len(alive)} of {len(named)} under way"
    if st.session_state.get(STOPPING) == case.id:
        words += ", being stopped"
    st.progress(1 - len(alive) / len(named), text=words)
    st.button(
        "Stop all",
        key="compare.stop",
        icon=":material/stop:",
        on_click=_stop_all,
        args=(alive, case),
    )
    _draw_rows(case, named, left, finished=False)


def _stop_all(alive: Sequence[str], case: Case) -> None:
    with state.open_store() as store:
        role = store.projects.role_of(case.project_id, state.person(store))
    stop(alive, case.project_id)
    if role is not None:  # else it was refused, which was said
        st.session_state[STOPPING] = case.id


def _draw_rows(case: Case, named: Named, left: Sequence[LeftOut], *, finished: bool) -> None:
    picked = st.dataframe(
        [_cells(name, own) for name, own in named.items()],
        key=f"compare.rows.{finished}",
        on_select="rerun",
        selection_mode=["single-row", "single-cell"],
        hide_index=True,
        height="content",
    )
    for own in left:
        name = f"{protocol_words(own.protocol, short=True)}, {roster_words(own.roster, short=True)}"
        st.warning(f"{escaped(name)} was not started: {escaped(own.problem)}")
    if finished:
        st.download_button(
            "Comparison (CSV)",
            data=lambda: comparison_csv(named, left, case.response),
            file_name=f"counterpoint-{case.id[:8]}.csv",
            mime="text/csv",
            key="compare.csv",
            icon=":material/download:",
            on_click="ignore",
        )
    chosen = rows_chosen(picked)
    if chosen and chosen[0] < len(named):
        open_run([*named.values()][chosen[0]].run.id)


def _cells(name: str, own: Compared) -> dict[str, Any]:
    run, progress = own.run, own.progress
    is_alive = run.status in ALIVE
    calls = list(progress.calls.values())
    return {
        "": name,
        "Protocol": chosen_words(run.plan),
        "Verdict": _verdict_words(own),
        "p": "" if run.p_hallucinated is None else f"{run.p_hallucinated:.2f}",
        "Marks": "" if is_alive else str(len(progress.spans)),
        "Turns": str(len(progress.turns)),
        "Seconds": f"{progress.seconds(time.time() if is_alive else None):.1f}",
        "Calls": str(len(calls)),
        "Tokens": f"{tokens_of(calls):,}",
        "Cost": "" if is_alive and not calls else cost_words(progress.cost),
        "Roster": roster_words(run.plan.roster, short=True),
    }


def _verdict_words(own: Compared) -> str:
    """The label; how far the run came where it has none, or may yet get another."""
    run = own.run
    if run.status == "running":
        return STAGE_WORDS[own.progress.stage]
    status = status_words(run)
    if run.label is None:
        return status
    label = f"{LABEL_SIGNS[run.label]} {LABEL_WORDS[run.label]}"
    return label if run.status == status.lower() else f"{label}, {status[:1].lower()}{status[1:]}"


def _draw_layers(case: Case, named: Named) -> None:
    """The response once, with every way's marks over it; their letters say whose they are."""
    st.subheader("Marked words", anchor=False)
    marks = [
        Mark(span.start, span.end, name, f"{name} · {way_words(own)}: {span.p:.2f}")
        for name, own in named.items()
        for span in own.progress.spans
    ]
    show(marked_text(case.response, marks))
    told = [f"{name}: {way_words(own)}" for name, own in named.items() if own.progress.spans]
    silent = [name for name, own in named.items() if own.progress.verdict and not
              own.progress.spans]  # fmt: skip
    words = [*told, *([f"{', '.join(silent)}: nothing marked"] if silent else [])]
    st.caption(escaped(" · ".join(words)))


def way_words(own: Compared) -> str:
    """Protocol, what was chosen of it, and roster, short."""
    return f"{chosen_words(own.run.plan)}, {roster_words(own.run.plan.roster, short=True)}"


def _draw_links(named: Named) -> None:
    with st.container(horizontal=True):
        for name, own in named.items():
            st.page_link(
                "pages/check/run.py",
                label=escaped(f"{name}: {way_words(own)}"),
                icon=":material/open_in_new:",
                query_params={"run": own.run.id},
            )


def draw_comparisons() -> None:
    """Cases that were compared before."""
    with state.open_store() as store:
        ids = compared_cases(store, state.project(store).id)
        cases = [case for case in map(store.cases.get, ids) if case is not None]
    if not cases:
        return
    st.subheader("Comparisons so far", anchor=False)
    for case in cases:
        st.page_link(
            "pages/check/compare.py",
            label=escaped(f"{clipped(case.response, 80)} · {case.author}"),
            icon=":material/compare:",
            query_params={"case": case.id},
        )
