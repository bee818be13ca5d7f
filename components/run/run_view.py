"""The page of a run: its verdict first, then words, evidence, debate, and downloads."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.measure.calibration import past_of
from components.report import draw_corrected, html_report, markdown_report
from components.review.correction import draw_corrections
from components.run.audit import draw_audit
from components.run.debate import (
    cost_words,
    draw_calls,
    draw_debate,
    draw_problems,
    kept_words,
    silence_words,
    state_html,
)
from components.run.evidence import draw_evidence, draw_response
from components.run.live import pasts_of
from components.run.playback import can_play, is_timed
from components.run.verdict import draw_consensus_line, draw_verdict
from components.setup.api_keys import draw_plan_keys
from components.widgets.controls import button, download, link, problem_kept, show_problem
from components.widgets.html import show
from components.widgets.wording import escaped, protocol_words, reused_words, roster_words, when
from core.errors import ConfigError
from core.progress import Progress, can_resume
from core.records import Case, Run
from core.reviews import Correction
from core.store.traces import export_trace
from core.verdict.classifier import load_head, version_folder


def draw_run(run: Run, case: Case, progress: Progress, corrections: list[Correction]) -> None:
    """Everything about a run that has ended, in the order in which people ask for it."""
    _draw_ending(run, progress)
    if progress.verdict is not None:
        draw_verdict(progress, classifier_card(progress.classifier), past_of(run, progress))
        draw_consensus_line(run.project_id, progress)
    draw_response(case, progress, f"run.{run.id}")
    if progress.verdict is not None and not can_resume(run):
        draw_corrected(run, case, progress)
    draw_audit(case, progress, f"run.{run.id}.audit")
    draw_problems(progress, run.id)
    if progress.verdict is not None and not can_resume(run):
        draw_corrections(run, case, progress, corrections)
    evidence, debate, inside = st.tabs(
        ["Evidence", "Debate", "How it was checked"], key=f"run.{run.id}.tabs"
    )
    with evidence:
        draw_evidence(progress, f"run.{run.id}.evidence")
    with debate:
        draw_debate(progress, f"run.{run.id}.debate", pasts_of(run.project_id))
    with inside:
        show(state_html(run, case, progress))
        draw_calls(progress)
        _draw_roles(progress)


def classifier_card(version: str) -> dict[str, Any] | None:
    """The card of a classifier version; None when it cannot be read any more."""
    try:
        return load_head(version_folder(state.home(), version))[1]
    except ConfigError:
        return None


def _draw_ending(run: Run, progress: Progress) -> None:
    ending = progress.ending
    if run.status == "failed" and ending is not None and ending.kind == "run_failed":
        st.error(
            f"The run failed while {ending.stage}: {escaped(ending.message)} "
            f"{escaped(kept_words(progress))}",
            icon=":material/error:",
        )
    elif run.status == "stopped":
        by = getattr(ending, "by", "")
        st.info(
            f"Stopped{f' by {escaped(by)}' if by else ''}. What was found so far is kept.",
            icon=":material/stop_circle:",
        )
    elif run.status == "interrupted":
        st.warning(
            "The process that ran this went away. What was found so far is kept; "
            "Resume goes on from there.",
            icon=":material/power_off:",
        )
    elif can_resume(run):
        st.warning(
            f"It ended without a verdict. {escaped(kept_words(progress))} Resume goes on from "
            "there and pays for nothing twice.",
            icon=":material/error:",
        )
    if can_resume(run) and run.origin == "here":
        draw_plan_keys(run.plan, "run")
        button(
            "Resume", "run.resume", _resume, run.id, run.project_id, icon="resume", type="primary"
        )
        show_problem("run.resume.problem")


def _resume(run_id: str, project_id: str) -> None:
    with problem_kept("run.resume.problem"):
        with state.open_store() as store:
            by = state.require(store, project_id, "annotator", "resume a check")
        resumed = state.jobs().resume(run_id, by, state.typed_keys())
        if not resumed:
            st.toast("Another process is running it already.")


def _draw_roles(progress: Progress) -> None:
    """Every role's agent with the prompt or rules it followed."""
    for used in progress.roles:
        kind = "built in" if used.built_in else "language model"
        with st.expander(escaped(f"{used.role}: {used.agent} ({kind}, {used.rule_hash})")):
            st.code(used.rule, language=None, wrap_lines=True)


def load_run(run_id: str) -> tuple[Run, Case, Progress, list[Correction]] | None:
    """A run with its case, state and corrections; None when there is none that one may see."""
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        run = store.runs.get(run_id, time.time(), lease)
        case = store.cases.get(run.case_id) if run else None
        if run is None or case is None or not state.may_see(store, run.project_id):
            return None
        progress = Progress()
        for _, event in store.runs.events(run_id):
            progress.add(event)
        return run, case, progress, store.corrections.of_run(run_id)


def draw_header(run: Run, progress: Progress) -> None:
    """When and how the run was made, on one line."""
    parts = [
        when(run.started_at),
        roster_words(run.plan.roster, short=True),
        protocol_words(run.plan.protocol, short=True),
    ]
    if run.finished_at and is_timed(progress):
        parts.append(f"{progress.seconds():.1f} s")
    if progress.calls:
        parts.append(cost_words(progress.cost))
    if run.origin == "imported":
        kind = "a trace file" if is_timed(progress) else "a record that knows no times"
        parts.append(f"imported from {kind}")
    st.caption(escaped(" · ".join(parts)))
    if progress.reused is not None:
        link(
            "pages/check/run.py",
            reused_words(progress.reused),
            "history",
            run=progress.reused.run_id,
        )


def draw_downloads(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """Buttons in one row; files are made when they are asked for."""
    card, past = classifier_card(progress.classifier), past_of(run, progress)
    name = f"counterpoint-{run.id[:8]}"
    st.subheader("Download", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        download(
            "Report (HTML)",
            lambda: html_report(run, case, progress, corrections, card, past),
            f"{name}.html",
            "run.report.html",
            "description",
        )
        download(
            "Report (Markdown)",
            lambda: markdown_report(run, case, progress, corrections, card, past),
            f"{name}.md",
            "run.report.md",
            "markdown",
        )
        if progress.began_at:  # of a run that was never begun there is nothing to play
            download(
                "Trace file", lambda: _trace(run.id), f"{name}.trace.json", "run.trace", "movie"
            )
        if can_play(progress):
            link(
                "pages/check/replay.py",
                "Replay the debate" if progress.turns else "Replay the check",
                "play_circle",
                run=run.id,
            )
    if not can_play(progress):
        st.caption(escaped(f"There is nothing to replay. {silence_words(progress)}"))


def _trace(run_id: str) -> bytes:
    with state.open_store() as store:
        lease = store.projects.settings().lease_seconds
        return export_trace(store, run_id, time.time(), lease)
