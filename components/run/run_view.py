"""The page of a run: its stage and debate while it goes on, everything once it has ended."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.app import state
from components.measure.calibration import past_of
from components.report import draw_corrected, html_report, markdown_report
from components.review.correction import draw_corrections
from components.run.audit import draw_audit, draw_audit_so_far, has_audit, parts_of
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
from components.run.transcript import (
    WHAT_SIGNALS_ARE,
    Speaking,
    asides,
    rounds_html,
    rounds_of,
    signals_counted,
)
from components.run.verdict import draw_consensus_line, draw_verdict
from components.setup.settings import draw_plan_keys
from components.widgets import drafts
from components.widgets.controls import button, download, link, problem_kept, show_problem
from components.widgets.html import marked_text, show
from components.widgets.wording import (
    escaped,
    protocol_words,
    reused_words,
    roster_words,
    seconds,
    when,
)
from core.debate.signals import PastRecord, Signal, held_by, signals_of
from core.pipeline.jobs import Live, is_debated
from core.runtime.errors import ConfigError, ReviewError
from core.schema.events import LONGEST_REMARK, Event, ProgressMade, Stage
from core.schema.progress import Progress, can_resume, folded
from core.schema.records import Case, Run, RunStatus
from core.schema.reviews import Correction
from core.store import Store, open_store
from core.store.sqlite import Mark
from core.store.traces import export_trace
from core.verdict.classifier import load_head, version_folder

if TYPE_CHECKING:
    from core.learning.reasoning import Heard

POLL_SECONDS = 0.25
POLL_ALL = 1.0  # seconds, for several runs on one page
AWAY_SECONDS = 2.0
ALIVE = ("queued", "running")
MOST_SHOWN = 600  # characters; a longer response would push the live debate out of sight
STAGE_WORDS: dict[Stage, str] = {
    "reading": "Reading the sources",
    "searching": "Searching for evidence",
    "auditing": "Checking statement by statement",
    "debating": "Debating",
    "judging": "Judging",
    "marking": "Marking the words",
}
WAIT_SECONDS = 0.2
RECENT = 30.0  # seconds for which an agent's record is cached
Pasts = Mapping[str, PastRecord]
Key = tuple[str, str]  # a home, a project


def draw_speaking(run: Run) -> None:
    """Draw the box to speak in the debate, if the run is debated on this server."""
    if not is_debated(run.plan) or state.jobs().live(run.id) is None:
        return
    key = _remark_key(run.id)
    if key not in st.session_state:
        st.session_state[key] = str(drafts.kept(key).get("text") or "")
    st.text_area(
        "Say something to the debaters",
        key=key,
        height=68,
        max_chars=LONGEST_REMARK,
        placeholder="Point to a passage, a value or a mistake. The next speaker reads it.",
        on_change=_save_remark,
        args=(key,),
        persist_state="session",
    )
    drafts.watch(f"{key}.watch", {"text": key}, lambda texts: drafts.keep(key, texts))
    button(
        "Say it",
        f"{key}.send",
        _send_remark,
        run.id,
        run.project_id,
        icon="record_voice_over",
        shortcut="Ctrl+Enter",
    )
    show_problem(f"{key}.problem")


def draw_unsaid(run: Run) -> None:
    """Draw a remark that was typed but not sent before the debate ended, until it is discarded."""
    key = _remark_key(run.id)
    text = str(drafts.kept(key).get("text") or "").strip()
    if text:
        st.info(f"The debate was over before you said this: {escaped(text)}")
        button("Discard it", f"{key}.drop", drafts.keep, key, {})


def _remark_key(run_id: str) -> str:
    return f"run.{run_id}.say"


def _save_remark(key: str) -> None:
    text = str(st.session_state.get(key) or "")
    drafts.keep(key, {"text": text} if text else {})


def _send_remark(run_id: str, project_id: str) -> None:
    """Send the remark, if the current person may; else it stays in the box."""
    key = _remark_key(run_id)
    with problem_kept(f"{key}.problem"):
        with state.open_store() as store:
            by = state.require(store, project_id, "annotator", "speak in a debate")
        state.jobs().say(run_id, by, str(st.session_state.get(key) or ""))
        st.session_state[key] = ""
        drafts.keep(key, {})


@st.cache_resource
def _record_worker() -> tuple[ThreadPoolExecutor, threading.Lock]:
    return ThreadPoolExecutor(1, "pasts"), threading.Lock()


@st.cache_resource
def _record_futures() -> tuple[dict[Key, tuple[Mark, Future[Pasts]]], dict[Key, dict[str, Heard]]]:
    """Return the records being counted by project, and the answers read from its runs so far."""
    return {}, {}


def pasts_of(project_id: str) -> Pasts:
    """Return debaters' records by agent, if people judged enough answers; {} while counting."""
    mark, key = state.answers_mark(), (str(state.home()), project_id)
    (worker, lock), (futures, answers) = _record_worker(), _record_futures()
    with lock:
        if key not in futures or futures[key][0] != mark:
            project_answers = answers.setdefault(key, {})
            futures[key] = (
                mark,
                worker.submit(counted_pasts, state.home(), project_id, project_answers),
            )
        future = futures[key][1]
    try:
        return future.result(timeout=WAIT_SECONDS)
    except NotYet:
        return {}


def counted_pasts(home: Path, project_id: str, known: dict[str, Heard]) -> Pasts:
    """Return debaters' records by agent (and seat if two share one); of equal names the larger."""
    from core.learning.reasoning import DEBATER, rows_of
    from core.learning.reliability import FEWEST, records, table_of

    with open_store(home) as store:
        rows = rows_of(store, project_id, known)
    pasts: dict[str, PastRecord] = {}
    for record in records(table_of(rows)):
        share = record.accuracy
        if record.agent.part == DEBATER and share.n >= FEWEST:
            name = held_by(record.agent.name, record.agent.seat)
            pasts.setdefault(name, PastRecord(share.right, share.n, share.high))
    return pasts


def draw_debate_so_far(run: Run, progress: Progress, speaking: Mapping[int, Speaking]) -> None:
    """Draw each round as its own element: an unchanged one stays open or folded."""
    signals = _find_signals(run.id, run.project_id, len(progress.turns), progress)
    if progress.turns:
        debaters = dict.fromkeys(turn.debater for turn in progress.turns)
        words = signals_counted(signals, list(debaters), so_far=progress.ending is None)
        st.caption(escaped(words), help=WHAT_SIGNALS_ARE)
    with st.container(key="cp-rounds", gap="xsmall"):
        for piece in rounds_html(rounds_of(progress.turns, speaking), signals, asides(progress)):
            show(piece)


@st.cache_resource(max_entries=32, ttl=RECENT, show_spinner=False)
def _find_signals(
    run_id: str, project_id: str, turns: int, _progress: Progress
) -> tuple[Signal, ...]:
    """Return the signals in a run's first `turns` turns; cached, as it is drawn so often."""
    return signals_of(_progress, pasts_of(project_id)) if turns else ()


@st.fragment(run_every=POLL_SECONDS)
def follow(run_id: str) -> None:
    """Draw the run as it is now; when it has ended, redraw the page."""
    with state.open_store() as store:
        run = _load_current_run(store, run_id)
        events = [event for _, event in store.runs.events(run_id)]
        case = store.cases.get(run.case_id) if run else None
        if run is not None and not state.may_see(store, run.project_id):
            run = None  # the person lost their role meanwhile
    if run is None or case is None or run.status not in ALIVE:
        st.rerun()
        return
    progress = folded(events)
    live = state.jobs().live(run_id)
    left, right = st.columns([4, 1.4], vertical_alignment="center")
    with left, st.container(key="run.stage"):
        _draw_stage(progress, live, run.started_at, waiting=run.status == "queued")
    with right:
        button(
            "Stop",
            "run.stop",
            stop,
            [run_id],
            run.project_id,
            icon="stop",
            shortcut="Ctrl+Shift+S",
            width="stretch",
        )
    more = "…" if len(case.response) > MOST_SHOWN else ""
    shown = case.response[:MOST_SHOWN]
    show(marked_text(shown + more, [], parts_of(progress)))
    for problem in progress.problems:
        st.warning(escaped(problem.message), icon=":material/warning:")
    draw_audit_so_far(progress, f"run.{run_id}.audit", len(shown))
    draw_debate_so_far(run, progress, speaking_now(events, live))


@st.fragment(run_every=AWAY_SECONDS)
def notice(run_id: str, status: RunStatus) -> None:
    """Redraw the page when another tab or person resumes a run that came to no end."""
    with state.open_store() as store:
        run = _load_current_run(store, run_id)
    if run is not None and run.status != status:
        st.rerun()


def _load_current_run(store: Store, run_id: str) -> Run | None:
    return store.runs.get(run_id, time.time(), store.projects.settings().lease_seconds)


def stop(run_ids: Sequence[str], project_id: str) -> None:
    """Stop these runs of a project, if the current person may."""
    try:
        with state.open_store() as store:
            by = state.require(store, project_id, "annotator", "stop a check")
    except ReviewError as error:
        st.toast(escaped(str(error)), icon=":material/error:")
        return
    for run_id in run_ids:
        state.jobs().stop(run_id, by)


def _draw_stage(progress: Progress, live: Live | None, started_at: float, *, waiting: bool) -> None:
    note, share = stage_of(progress, live.progress if live else None)
    if waiting:
        note, share = "Waiting for its turn", None
    worked = worked_seconds(progress, started_at, time.time(), waiting=waiting)
    elapsed = escaped(note if worked is None else f"{note} · {seconds(worked)}")
    if share is None:
        st.markdown(f":material/progress_activity: {elapsed}")
    else:
        st.progress(share, text=elapsed)


def worked_seconds(
    progress: Progress, started_at: float, now: float, *, waiting: bool
) -> float | None:
    """Return seconds of work without pauses; None for a resumed run that has not started again."""
    if not progress.began_at:
        return now - started_at
    if waiting or progress.ending is not None:
        return None
    return progress.seconds(now)


def stage_of(progress: Progress, passing: ProgressMade | None) -> tuple[str, float | None]:
    """Return (what is being done, the share of it that is done or None if unknown)."""
    if passing is not None and passing.at >= progress.last_at:
        share = min(1.0, passing.done / passing.total) if passing.total else None
        return passing.note or STAGE_WORDS[passing.stage], share
    return STAGE_WORDS[progress.stage], None


def speaking_now(events: list[Event], live: Live | None) -> dict[int, Speaking]:
    """Return turns under way by number, without lost ones and those that Resume starts again."""
    words = dict(live.words) if live else {}
    speaking: dict[int, Speaking] = {}
    for event in events:
        if event.kind == "turn_started":
            speaking[event.number] = Speaking(event, words.get(event.number, ""))
        elif event.kind == "turn_finished":
            speaking.pop(event.turn.number, None)
        elif event.kind == "run_resumed":
            speaking.clear()
        elif event.kind == "problem_met" and event.stage == "debating" and event.reply:
            if event.turn:
                speaking.pop(event.turn, None)
            else:  # an older run, in which debaters spoke one at a time
                speaking.clear()
    return speaking


def draw_run(run: Run, case: Case, progress: Progress, corrections: list[Correction]) -> None:
    """Draw everything about an ended run, in the order in which people ask for it."""
    _draw_ending(run, progress)
    is_over = progress.verdict is not None and not can_resume(run)
    if progress.verdict is not None:
        draw_verdict(progress, classifier_card(progress.classifier), past_of(run, progress))
        draw_consensus_line(run.project_id, progress)
    draw_response(case, progress, f"run.{run.id}")
    if is_over:
        draw_corrected(run, case, progress)
    draw_audit(case, progress, f"run.{run.id}.audit")
    draw_problems(progress, run.id)
    if is_over:
        draw_corrections(run, case, progress, corrections)
    titles = ["Evidence", "Debate", "How it was checked"]
    evidence, debate, details = st.tabs(titles, key=f"run.{run.id}.tabs")
    with evidence:
        draw_evidence(progress, f"run.{run.id}.evidence")
    with debate:
        draw_debate(progress, f"run.{run.id}.debate", pasts_of(run.project_id))
    with details:
        show(state_html(run, case, progress))
        draw_calls(progress)
        for role in progress.roles:
            kind = "built in" if role.built_in else "language model"
            with st.expander(escaped(f"{role.role}: {role.agent} ({kind}, {role.rule_hash})")):
                st.code(role.rule, language=None, wrap_lines=True)


def classifier_card(version: str) -> dict[str, Any] | None:
    """Return the card of a classifier version; None if it cannot be read."""
    try:
        return load_head(version_folder(state.home(), version))[1]
    except ConfigError:
        return None


def _draw_ending(run: Run, progress: Progress) -> None:
    ending = progress.ending
    if run.status == "failed" and ending is not None and ending.kind == "run_failed":
        words = f"The run failed while {ending.stage}: {escaped(ending.message)}"
        st.error(f"{words} {escaped(kept_words(progress))}", icon=":material/error:")
    elif run.status == "stopped":
        by = getattr(ending, "by", "")
        who = f" by {escaped(by)}" if by else ""
        st.info(f"Stopped{who}. What was found so far is kept.", icon=":material/stop_circle:")
    elif run.status == "interrupted":
        words = "The process that ran this check ended. What was found so far is kept; "
        st.warning(f"{words}Resume goes on from there.", icon=":material/power_off:")
    elif can_resume(run):
        words = f"It ended without a verdict. {escaped(kept_words(progress))} Resume goes on from "
        st.warning(f"{words}there and pays for nothing twice.", icon=":material/error:")
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


def load_run(run_id: str) -> tuple[Run, Case, Progress, list[Correction]] | None:
    """Return a run with its case, state and corrections; None if there is none that one may see."""
    with state.open_store() as store:
        run = _load_current_run(store, run_id)
        case = store.cases.get(run.case_id) if run else None
        if run is None or case is None or not state.may_see(store, run.project_id):
            return None
        progress = folded(event for _, event in store.runs.events(run_id))
        return run, case, progress, store.corrections.of_run(run_id)


def is_timed(progress: Progress) -> bool:
    """Return False for an imported debate whose record has no times."""
    return progress.last_at > progress.began_at


def can_play(progress: Progress) -> bool:
    """Return True if there is something to replay before the verdict."""
    return bool(progress.turns or progress.samples or progress.remarks) or has_audit(progress)


def draw_header(run: Run, progress: Progress) -> None:
    """Draw when and how the run was made, on one line."""
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
        kind = "a trace file" if is_timed(progress) else "a recording without times"
        parts.append(f"imported from {kind}")
    st.caption(escaped(" · ".join(parts)))
    if (reused := progress.reused) is not None:
        link("pages/check/run.py", reused_words(reused), "history", run=reused.run_id)


def draw_downloads(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """Draw download buttons in one row; files are built when they are pressed."""
    card, past = classifier_card(progress.classifier), past_of(run, progress)
    name = f"counterpoint-{run.id[:8]}"
    st.subheader("Download", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        for words, file, icon, make in (
            ("Report (HTML)", "html", "description", html_report),
            ("Report (Markdown)", "md", "markdown", markdown_report),
        ):
            report = functools.partial(make, run, case, progress, corrections, card, past)
            download(words, report, f"{name}.{file}", f"run.report.{file}", icon)
        if progress.began_at:  # a run that never started has no trace
            trace = functools.partial(_export_trace, run.id)
            download("Trace file", trace, f"{name}.trace.json", "run.trace", "movie")
        if can_play(progress):
            words = "Replay the debate" if progress.turns else "Replay the check"
            link("pages/check/replay.py", words, "play_circle", run=run.id)
    if not can_play(progress):
        st.caption(escaped(f"There is nothing to replay. {silence_words(progress)}"))


def _export_trace(run_id: str) -> bytes:
    with state.open_store() as store:
        return export_trace(store, run_id, time.time(), store.projects.settings().lease_seconds)
