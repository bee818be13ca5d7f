"""The page of a run: its stage and debate while it goes on, everything once it has ended."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.measure.calibration import load_past_verdicts
from components.report import REPORT_FORMATS, write_report
from components.review.correction import draw_corrections
from components.run.audit import draw_audit, draw_audit_so_far, has_audit, list_link_targets
from components.run.corrected_text import draw_corrected_text
from components.run.debate import (
    describe_stored_steps,
    draw_calls,
    draw_debate,
    draw_problems,
    explain_silence,
    format_cost,
    render_state,
)
from components.run.evidence import draw_evidence, draw_response
from components.run.response_reader import draw_reader
from components.run.transcript import (
    SIGNALS_HELP,
    OpenTurn,
    collect_asides,
    render_rounds,
    split_rounds,
    summarize_signals,
)
from components.run.verdict import (
    apply_person_marks,
    draw_consensus_line,
    draw_verdict,
    load_person_verdict,
    render_reasons,
)
from components.setup.settings import draw_plan_keys
from components.widgets import drafts
from components.widgets.controls import (
    draw_button,
    draw_download,
    draw_link,
    show_problem,
    store_problem,
)
from components.widgets.html import Html, div, draw_html, join_html, render_marked_text
from components.widgets.wording import (
    describe_reuse,
    escape_markdown,
    format_count,
    format_elapsed,
    format_protocol,
    format_roster,
    format_time,
    make_file_name,
)
from core.baseline.wording import capitalise
from core.debate.signals import AgentAccuracy, DebateSignal, find_signals, format_record_name
from core.llm.call import CallUnderWay
from core.llm.limits import estimate_tokens
from core.pipeline.jobs import LiveState, is_debated
from core.review.people import list_visible_answers
from core.runtime.errors import ConfigError, ReviewError
from core.schema.events import MAX_REMARK_CHARACTERS, Event, ProgressMade, Stage
from core.schema.records import Case, Run, RunStatus
from core.schema.reviews import Correction
from core.schema.run_state import RunState, can_resume, fold_events
from core.store import Store, open_store
from core.store.ledger import RETRY_SLOT_SUFFIX
from core.store.sqlite import ChangeMark
from core.store.traces import export_trace
from core.verdict.classifier import get_version_folder, load_head

if TYPE_CHECKING:
    from core.learning.agent_answers import AgentAnswers

POLL_SECONDS = 0.25
POLL_MANY_SECONDS = 1.0  # seconds, for several runs on one page
STATUS_POLL_SECONDS = 2.0
ACTIVE_STATUSES = ("queued", "running")
MAX_SHOWN_CHARS = 600  # characters; a longer response would push the live debate out of sight
STAGE_WORDS: dict[Stage, str] = {
    "reading": "Reading the sources",
    "searching": "Searching for evidence",
    "auditing": "Checking statement by statement",
    "debating": "Debating",
    "judging": "Judging",
    "marking": "Marking the words",
}
RECORD_WAIT_SECONDS = 0.2
FOLLOWED_KEY = "run.followed"  # of the run that this session follows
SIGNAL_CACHE_SECONDS = 30.0  # seconds for which an agent's record is cached
PastRecords = Mapping[str, AgentAccuracy]
ProjectKey = tuple[str, str]  # a home, a project


def draw_remark_box(run: Run) -> None:
    """Draw the box to speak in the debate, if the run is debated on this server."""
    if not is_debated(run.plan) or state.get_jobs().live(run.id) is None:
        return
    key = _remark_key(run.id)
    if key not in st.session_state:
        st.session_state[key] = str(drafts.load_draft_values(key).get("text") or "")
    st.text_area(
        "Say something to the debaters",
        key=key,
        height=68,
        max_chars=MAX_REMARK_CHARACTERS,
        placeholder="Point to a passage, a value or a mistake. The next speaker reads it.",
        on_change=_save_remark,
        args=(key,),
        persist_state="session",
    )
    drafts.watch_fields(
        f"{key}.watch", {"text": key}, lambda texts: drafts.save_draft_values(key, texts)
    )
    draw_button(
        "Say it",
        f"{key}.send",
        _send_remark,
        run.id,
        run.project_id,
        icon="record_voice_over",
        shortcut="Ctrl+Enter",
    )
    show_problem(f"{key}.problem")


def draw_unsent_remark(run: Run) -> None:
    """Draw a remark that was typed but not sent before the debate ended, until it is discarded."""
    key = _remark_key(run.id)
    text = str(drafts.load_draft_values(key).get("text") or "").strip()
    if text:
        st.info(f"The debate was over before you said this: {escape_markdown(text)}")
        draw_button("Discard it", f"{key}.drop", drafts.save_draft_values, key, {})


def _remark_key(run_id: str) -> str:
    return f"run.{run_id}.say"


def _save_remark(key: str) -> None:
    text = str(st.session_state.get(key) or "")
    drafts.save_draft_values(key, {"text": text} if text else {})


def _send_remark(run_id: str, project_id: str) -> None:
    """Send the remark, if the current person may; else it stays in the box."""
    key = _remark_key(run_id)
    with store_problem(f"{key}.problem"):
        with state.open_store() as store:
            by = state.require_role(store, project_id, "annotator", "speak in a debate")
        state.get_jobs().say(run_id, by, str(st.session_state.get(key) or ""))
        st.session_state[key] = ""
        drafts.save_draft_values(key, {})


@st.cache_resource
def _record_worker() -> tuple[ThreadPoolExecutor, threading.Lock]:
    return ThreadPoolExecutor(1, "pasts"), threading.Lock()


@st.cache_resource
def _record_futures() -> tuple[
    dict[ProjectKey, tuple[ChangeMark, Future[PastRecords]]],
    dict[ProjectKey, dict[str, AgentAnswers]],
]:
    """Return the records being counted by project, and the answers read from its runs so far."""
    return {}, {}


def load_past_records(project_id: str) -> PastRecords:
    """Return debaters' records by agent, if people judged enough answers; {} while counting.

    Only the first view waits for the counting; the next need not wait for it again.
    """
    mark, key = state.get_answers_mark(), (str(state.home_folder()), project_id)
    (worker, lock), (futures, answers) = _record_worker(), _record_futures()
    with lock:
        is_new = key not in futures or futures[key][0] != mark
        if is_new:
            project_answers = answers.setdefault(key, {})
            futures[key] = (
                mark,
                worker.submit(count_past_records, state.home_folder(), project_id, project_answers),
            )
        future = futures[key][1]
    try:
        return future.result(timeout=RECORD_WAIT_SECONDS if is_new else 0.0)
    except NotYet:
        return {}


def count_past_records(home: Path, project_id: str, known: dict[str, AgentAnswers]) -> PastRecords:
    """Return debaters' records by agent (and seat if two share one); of equal names the larger."""
    from core.learning.agent_answers import DEBATER, load_decided_runs
    from core.learning.reliability import build_answer_table, measure_agent_records

    with open_store(home) as store:
        rows = load_decided_runs(store, project_id, known)
    pasts: dict[str, AgentAccuracy] = {}
    for record in measure_agent_records(build_answer_table(rows)):
        share = record.accuracy
        if record.agent.part == DEBATER and not share.is_thin:
            name = format_record_name(record.agent.name, record.agent.seat)
            pasts.setdefault(name, AgentAccuracy(share.right, share.n, share.interval[1]))
    return pasts


def draw_debate_so_far(run: Run, progress: RunState, speaking: Mapping[int, OpenTurn]) -> None:
    """Draw each round as its own element: an unchanged one stays open or folded."""
    signals = _find_signals(run.id, run.project_id, len(progress.turns), progress)
    if progress.turns:
        debaters = dict.fromkeys(turn.debater for turn in progress.turns)
        words = summarize_signals(signals, list(debaters), so_far=progress.ending is None)
        st.caption(escape_markdown(words), help=SIGNALS_HELP)
    with st.container(key="cp-rounds", gap="xsmall"):
        for piece in render_rounds(
            split_rounds(progress.turns, speaking), signals, collect_asides(progress)
        ):
            draw_html(piece)


@st.cache_resource(max_entries=32, ttl=SIGNAL_CACHE_SECONDS, show_spinner=False)
def _find_signals(
    run_id: str, project_id: str, turns: int, _progress: RunState
) -> tuple[DebateSignal, ...]:
    """Return the signals in a run's first `turns` turns; cached, as it is drawn so often."""
    return find_signals(_progress, load_past_records(project_id)) if turns else ()


@dataclass
class FollowedRun:
    """A run under way in this session: it reads each event once, however often it is drawn."""

    run_id: str
    last_seq: int = 0
    events: list[Event] = field(default_factory=list)
    progress: RunState = field(default_factory=RunState)

    def read_new_events(self, store: Store) -> None:
        """Add the events that were stored since the last call."""
        for seq, event in store.runs.events(self.run_id, self.last_seq):
            self.events.append(event)
            self.progress.add(event)
            self.last_seq = seq


@st.fragment(run_every=POLL_SECONDS)
def follow_run(run_id: str) -> None:
    """Draw the run as it is now; when it has ended, redraw the page."""
    followed: FollowedRun | None = st.session_state.get(FOLLOWED_KEY)
    if followed is None or followed.run_id != run_id:
        followed = st.session_state[FOLLOWED_KEY] = FollowedRun(run_id)
    with state.open_store() as store:
        run = _load_current_run(store, run_id)
        followed.read_new_events(store)
        case = store.cases.get(run.case_id) if run else None
        if run is not None and not state.can_see_project(store, run.project_id):
            run = None  # the person lost their role meanwhile
    if run is None or case is None or run.status not in ACTIVE_STATUSES:
        del st.session_state[FOLLOWED_KEY]
        st.rerun()
        return
    progress = followed.progress
    live = state.get_jobs().live(run_id)
    left, right = st.columns([4, 1.4], vertical_alignment="center")
    with left, st.container(key="run.stage"):
        _draw_stage(progress, live, run.started_at, waiting=run.status == "queued")
        if live is not None:
            draw_html(join_html(map(render_call, list(live.under_way))))
    if has_role("annotator", project_id=run.project_id):
        with right:
            draw_button(
                "Stop",
                "run.stop",
                stop_runs,
                [run_id],
                run.project_id,
                icon="stop",
                shortcut="Ctrl+Shift+S",
                width="stretch",
            )
    more = "…" if len(case.response) > MAX_SHOWN_CHARS else ""
    shown = case.response[:MAX_SHOWN_CHARS]
    draw_html(render_marked_text(shown + more, [], list_link_targets(progress)))
    for problem in progress.problems:
        st.warning(escape_markdown(problem.message), icon=":material/warning:")
    draw_audit_so_far(progress, f"run.{run_id}.audit", len(shown))
    draw_debate_so_far(run, progress, find_open_turns(followed.events, live))


@st.fragment(run_every=STATUS_POLL_SECONDS)
def watch_status(run_id: str, status: RunStatus) -> None:
    """Redraw the page when another tab or person resumes a run that came to no end."""
    with state.open_store() as store:
        run = _load_current_run(store, run_id)
    if run is not None and run.status != status:
        st.rerun()


def _load_current_run(store: Store, run_id: str) -> Run | None:
    return store.runs.get(run_id, time.time(), store.projects.settings().lease_seconds)


def stop_runs(run_ids: Sequence[str], project_id: str) -> None:
    """Stop these runs of a project, if the current person may."""
    try:
        with state.open_store() as store:
            by = state.require_role(store, project_id, "annotator", "stop a check")
    except ReviewError as error:
        st.toast(escape_markdown(str(error)), icon=":material/error:")
        return
    for run_id in run_ids:
        state.get_jobs().stop(run_id, by)


def _draw_stage(
    progress: RunState, live: LiveState | None, started_at: float, *, waiting: bool
) -> None:
    note, share = current_stage(progress, live.progress if live else None)
    if waiting:
        note, share = "Waiting for its turn", None
    worked = count_worked_seconds(progress, started_at, time.time(), waiting=waiting)
    elapsed = escape_markdown(note if worked is None else f"{note} · {format_elapsed(worked)}")
    if share is None:
        st.markdown(f":material/progress_activity: {elapsed}")
    else:
        st.progress(share, text=elapsed)


def count_worked_seconds(
    progress: RunState, started_at: float, now: float, *, waiting: bool
) -> float | None:
    """Return seconds of work without pauses; None for a resumed run that has not started again."""
    if not progress.began_at:
        return now - started_at
    if waiting or progress.ending is not None:
        return None
    return progress.seconds(now)


def current_stage(progress: RunState, passing: ProgressMade | None) -> tuple[str, float | None]:
    """Return (what is being done, the share of it that is done or None if unknown)."""
    if passing is not None and passing.at >= progress.last_at:
        share = min(1.0, passing.done / passing.total) if passing.total else None
        return passing.note or STAGE_WORDS[passing.stage], share
    return STAGE_WORDS[progress.stage], None


def render_call(call: CallUnderWay) -> Html:
    """Render which agent is at work and how far it is, with its words if they are prose.

    A debater's words are shown in its turn; a reply in JSON is nothing to read.
    """
    agent, role, text = call.asked.call.agent, call.asked.role, "".join(call.pieces)
    who = f"{capitalise(role)} ({agent.model.split('/', 1)[-1]})"
    if not text:
        tokens = max(100, round(call.prompt_tokens, -2))
        reading = f"has about {tokens:,} tokens to read before it writes"
        waited = format_elapsed(time.monotonic() - call.began_at)
        return div("cp-quiet", f"{who} {reading} · {waited}", dir="auto")
    is_again = call.asked.slot.endswith(RETRY_SLOT_SUFFIX)
    again = " again, as its reply could not be used" if is_again else ""
    written = f"about {format_count(estimate_tokens(text), 'token')} so far"
    head = div("cp-quiet", f"{who} is writing{again}: {written}", dir="auto")
    if role.startswith("debater ") or text.lstrip().startswith(("{", "[", "```")):
        return head
    return join_html([head, div("cp-turn cp-turn-said cp-caret", text, dir="auto")])


def find_open_turns(events: list[Event], live: LiveState | None) -> dict[int, OpenTurn]:
    """Return turns under way by number, without lost ones and those that Resume starts again."""
    words = dict(live.words) if live else {}
    speaking: dict[int, OpenTurn] = {}
    for event in events:
        if event.kind == "turn_started":
            speaking[event.number] = OpenTurn(event, words.get(event.number, ""))
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


def draw_run(run: Run, case: Case, progress: RunState, corrections: list[Correction]) -> None:
    """Draw everything about an ended run, in the order in which people ask for it."""
    _draw_ending(run, progress)
    is_over = progress.verdict is not None and not can_resume(run)
    with state.open_store() as store:
        person = load_person_verdict(store, case, state.get_person(store))
        is_queued = store.queue.get(case.id) is not None
    if progress.verdict is not None:
        card, past = load_classifier_card(progress.classifier), load_past_verdicts(run, progress)
        draw_verdict(progress, card, past, person)
        draw_consensus_line(run.project_id, progress)
    shown = apply_person_marks(progress, person)
    if len(progress.statements) > 1:
        draw_reader(run, case, progress, shown, is_over=is_over)
    else:
        draw_response(case, shown, f"run.{run.id}")
    if is_over:
        draw_corrected_text(run, case, progress, person)
    draw_audit(case, shown, f"run.{run.id}.audit")
    draw_problems(progress, run.id)
    if is_over:
        draw_corrections(run, case, progress, corrections)
    if is_queued:
        draw_link("pages/review/label.py", "Its item in Review", "rate_review", case=case.id)
    titles = ["Evidence", "Debate", "How it was checked"]
    evidence, debate, details = st.tabs(titles, key=f"run.{run.id}.tabs")
    with evidence:
        draw_evidence(progress, f"run.{run.id}.evidence")
    with debate:
        draw_debate(progress, f"run.{run.id}.debate", load_past_records(run.project_id))
        draw_html(render_reasons(progress))
    with details:
        draw_html(render_state(run, case, progress))
        draw_calls(progress)
        for role in progress.roles:
            kind = "built in" if role.built_in else "language model"
            with st.expander(
                escape_markdown(f"{role.role}: {role.agent} ({kind}, {role.rule_hash})")
            ):
                st.code(role.rule, language=None, wrap_lines=True)


def draw_withheld_run(run: Run, progress: RunState) -> None:
    """Draw what somebody may know of a run who has not answered its case in a blind project."""
    if run.status in ACTIVE_STATUSES:
        if has_role("annotator", project_id=run.project_id):
            draw_button("Stop", "run.stop", stop_runs, [run.id], run.project_id, icon="stop")
        watch_status(run.id, run.status)
    else:
        _draw_ending(run, progress)


def load_classifier_card(version: str) -> dict[str, Any] | None:
    """Return the card of a classifier version; None if it cannot be read."""
    try:
        return load_head(get_version_folder(state.home_folder(), version))[1]
    except ConfigError:
        return None


def _draw_ending(run: Run, progress: RunState) -> None:
    ending = progress.ending
    if run.status == "failed" and ending is not None and ending.kind == "run_failed":
        words = f"The run failed while {ending.stage}: {escape_markdown(ending.message)}"
        st.error(
            f"{words} {escape_markdown(describe_stored_steps(progress))}", icon=":material/error:"
        )
    elif run.status == "stopped":
        by = getattr(ending, "by", "")
        who = f" by {escape_markdown(by)}" if by else ""
        st.info(f"Stopped{who}. What was found so far is kept.", icon=":material/stop_circle:")
    elif run.status == "interrupted":
        words = "The process that ran this check ended. What was found so far is kept; "
        st.warning(f"{words}Resume goes on from there.", icon=":material/power_off:")
    elif can_resume(run):
        words = (
            f"It ended without a verdict. {escape_markdown(describe_stored_steps(progress))} "
            f"Resume goes on from "
        )
        st.warning(f"{words}there and pays for nothing twice.", icon=":material/error:")
    is_resumable = can_resume(run) and run.origin == "here"
    if is_resumable and has_role("annotator", "resume a check", project_id=run.project_id):
        draw_plan_keys(run.plan, "run")
        draw_button(
            "Resume", "run.resume", _resume, run.id, run.project_id, icon="resume", type="primary"
        )
        show_problem("run.resume.problem")


def _resume(run_id: str, project_id: str) -> None:
    with store_problem("run.resume.problem"):
        with state.open_store() as store:
            by = state.require_role(store, project_id, "annotator", "resume a check")
        resumed = state.get_jobs().resume(run_id, by, state.get_typed_keys())
        if not resumed:
            st.toast("Another process is running it already.")


def load_run(run_id: str) -> tuple[Run, Case, RunState, list[Correction]] | None:
    """Return a run with its case, state and corrections; None if there is none that one may see."""
    with state.open_store() as store:
        run = _load_current_run(store, run_id)
        case = store.cases.get(run.case_id) if run else None
        if run is None or case is None or not state.can_see_project(store, run.project_id):
            return None
        progress = fold_events(event for _, event in store.runs.events(run_id))
        answers = store.corrections.of_run(run_id)
        return (
            run,
            case,
            progress,
            list_visible_answers(store, case, state.get_person(store), answers),
        )


def is_timed(progress: RunState) -> bool:
    """Return False for an imported debate whose record has no times."""
    return progress.last_at > progress.began_at


def can_replay(progress: RunState) -> bool:
    """Return True if there is something to replay before the verdict."""
    return bool(progress.turns or progress.samples or progress.remarks) or has_audit(progress)


def draw_header(run: Run, progress: RunState) -> None:
    """Draw when and how the run was made, on one line."""
    parts = [
        format_time(run.started_at),
        format_roster(run.plan.roster, short=True),
        format_protocol(run.plan.protocol, short=True),
    ]
    if run.finished_at and is_timed(progress):
        parts.append(f"{progress.seconds():.1f} s")
    if progress.calls:
        parts.append(format_cost(progress.cost))
    if run.origin == "imported":
        kind = "a trace file" if is_timed(progress) else "a recording without times"
        parts.append(f"imported from {kind}")
    st.caption(escape_markdown(" · ".join(parts)))
    if (reused := progress.reused) is not None:
        draw_link("pages/check/run.py", describe_reuse(reused), "history", run=reused.run_id)


def draw_downloads(
    run: Run, case: Case, progress: RunState, corrections: Sequence[Correction]
) -> None:
    """Draw download buttons in one row; files are built when they are pressed."""
    card, past = load_classifier_card(progress.classifier), load_past_verdicts(run, progress)
    with state.open_store() as store:
        person = load_person_verdict(store, case, state.get_person(store))
    make_name = functools.partial(make_file_name, run.name or case.response, run.started_at)
    st.subheader("Download", anchor=False)
    with st.container(horizontal=True, vertical_alignment="center"):
        parts = (run, case, progress, corrections, card, past, person)
        for file, (words, icon, _) in REPORT_FORMATS.items():
            report = functools.partial(write_report, file, *parts)
            draw_download(words, report, make_name(file), f"run.report.{file}", icon)
        if progress.began_at:  # a run that never started has no trace
            trace = functools.partial(_export_trace, state.home_folder(), run.id)
            draw_download("Trace file", trace, make_name("trace.json"), "run.trace", "movie")
        if can_replay(progress):
            words = "Replay the debate" if progress.turns else "Replay the check"
            draw_link("pages/check/replay.py", words, "play_circle", run=run.id)
    if not can_replay(progress):
        st.caption(escape_markdown(f"There is nothing to replay. {explain_silence(progress)}"))


def _export_trace(home: Path, run_id: str) -> bytes:
    """Return the trace; Streamlit calls this in a thread without a session."""
    with open_store(home) as store:
        return export_trace(store, run_id, time.time(), store.projects.settings().lease_seconds)
