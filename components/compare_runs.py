"""What several ways to check one case came to: a row each, all marks in one text, the parting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components import state
from components.calls import cost_words, tokens_of
from components.debate_calls import chosen_words
from components.highlight import Mark, marked_text
from components.live import STAGE_WORDS, stop
from components.show import open_run, rows_chosen, show
from components.words import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    escaped,
    protocol_words,
    roster_words,
    status_words,
)
from core.comparing import Compared, LeftOut, compared, compared_cases, comparison_csv, left_out
from core.parting import (
    letters,
    same_agent_apart,
    statements_apart,
    turned,
    verdicts,
    words_apart,
)
from core.progress import Progress
from core.records import Case

POLL_SECONDS = 1.0
ALIVE = ("queued", "running")
MOST_LINES = 12
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
        _draw_parting(case, {name: own.progress for name, own in named.items()})
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
        st.rerun()
        return
    st.progress(1 - len(alive) / len(named), text=f"{len(alive)} of {len(named)} under way")
    st.button(
        "Stop all",
        key="compare.stop",
        icon=":material/stop:",
        on_click=stop,
        args=(alive, case.project_id),
    )
    _draw_rows(case, named, left, finished=False)


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
    label = f"{LABEL_SIGNS[run.label]} {LABEL_WORDS[run.label]}" if run.label else "–"
    calls = list(progress.calls.values())
    return {
        "": name,
        "Protocol": chosen_words(run.plan),
        "Verdict": STAGE_WORDS[progress.stage] if run.status == "running" else label,
        "p": "" if run.p_hallucinated is None else f"{run.p_hallucinated:.2f}",
        "Marks": "" if is_alive else str(len(progress.spans)),
        "Turns": str(len(progress.turns)),
        "Seconds": f"{progress.seconds():.1f}",
        "Calls": str(len(calls)),
        "Tokens": f"{tokens_of(calls):,}",
        "Cost": cost_words(progress.cost),
        "Roster": roster_words(run.plan.roster, short=True),
        "Status": status_words(run),
    }


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


def _draw_parting(case: Case, runs: Mapping[str, Progress]) -> None:
    st.subheader("Where they part", anchor=False)
    labels = list(verdicts(runs))
    if len(labels) == 1:
        st.markdown(f"All verdicts are the same: **{labels[0]}**.")
    lines = parting_lines(case.response, runs)
    for line in lines or ["The same words are marked, and nobody turned."]:
        st.markdown(f"- {escaped(line)}")


def parting_lines(response: str, runs: Mapping[str, Progress]) -> list[str]:
    """What differs, a sentence each: verdicts, statements, words, agents."""
    found = verdicts(runs)
    parts = (f"{', '.join(names)}: {label}" for label, names in found.items())
    lines = [f"The verdicts differ. {'; '.join(parts)}."] if len(found) > 1 else []
    apart = statements_apart(runs)
    for held in apart[:MOST_LINES]:
        lines.append(f"“{clipped(held.text, 90)}”: {_marking(held.is_marked)}.")
    # Words of these sentences were just told of.
    stretches = [
        own
        for own in words_apart(response, runs)
        if own.text.strip() and not any(h.start <= own.start and own.end <= h.end for h in apart)
    ]
    for own in stretches[:MOST_LINES]:
        is_marked = dict.fromkeys(own.marked_by, True) | dict.fromkeys(own.passed_by, False)
        lines.append(f"“{clipped(own.text.strip(), 60)}”: {_marking(is_marked)}.")
    for turn in turned(runs)[:MOST_LINES]:
        lines.append(
            f"{turn.run}: {turn.debater} turned from {turn.before} to {turn.after} in round "
            f"{turn.round}."
        )
    for agent, stances in same_agent_apart(runs)[:MOST_LINES]:
        parts = (f"{stance} in {', '.join(names)}" for stance, names in stances.items())
        lines.append(f"{agent} ended differently: {'; '.join(parts)}.")
    return lines


def _marking(is_marked: Mapping[str, bool]) -> str:
    """Who marks words there and who does not."""
    by = ", ".join(name for name, own in is_marked.items() if own)
    others = ", ".join(name for name, own in is_marked.items() if not own)
    return f"marked by {by}, not by {others}"


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
