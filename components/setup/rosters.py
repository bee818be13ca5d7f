"""Rosters in Settings: the form, saving, a test of every role, the history, files out and in.

A file is read strictly, kept whole or not at all, and never over another unasked.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.app import state
from components.run.debate import format_cost
from components.setup.local_models import draw_local_models, draw_standings
from components.setup.roster_fields import (
    DRAFT,
    QUIET,
    REFUSED,
    begin_form,
    capitalize_role,
    close_form,
    draw_form,
    html_table_of,
    roster_table,
    typed_sheet,
)
from components.widgets.controls import (
    ask_confirmation,
    draw_button,
    draw_confirmation,
    draw_download,
    show_problem,
    store_problem,
)
from components.widgets.html import Html, draw_html, element, paginate
from components.widgets.wording import escape_markdown, format_count, format_roster, format_time
from core.agents import roster_files as files
from core.agents.qualification import MIN_RIGHT_ANSWERS
from core.agents.rosters import SHIPPED_ROSTERS, find_roster, list_rosters, require_model_names
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConflictError, InputError, ReviewError, Stopped
from core.schema.records import new_id
from core.schema.rosters import BUILT_IN_ROSTER, RosterConfig
from core.schema.run_state import sum_costs
from core.store import Store
from core.store.projects import SavedRoster

if TYPE_CHECKING:
    from core.agents.qualification import Qualification
    from core.agents.roster_files import RoleTest
    from core.llm.metering import CallAccount

LOGGER = logging.getLogger(__name__)
TRIALS, TRIAL_PROBLEM = "rosters.trials", "rosters.trial_problem"
POLL_SECONDS = 0.3
STOPPED = "The test was stopped."
UNEXPECTED = "The test broke off: an unexpected error, of which the server's log has the details."


@dataclass
class ModelTest:
    """A test under way or done; its thread adds to `found` and `judged`, the page only reads."""

    sheet: RosterConfig
    at: float
    stop: StopSignal = field(default_factory=StopSignal)
    found: list[RoleTest] = field(default_factory=list)
    judged: list[Qualification] = field(default_factory=list)
    problem: str = ""
    is_done: bool = False


def _trial_of(name: str) -> ModelTest | None:
    trials: dict[str, ModelTest] = st.session_state.setdefault(TRIALS, {})
    return trials.get(name)


def _draw_trial_button(roster: RosterConfig) -> None:
    trial = _trial_of(roster.name)
    if trial is not None and not trial.is_done:
        draw_button("Stop the test", "rosters.untest", trial.stop.set, icon="stop")
    elif not roster.is_built_in:
        draw_button(
            "Test every role", "rosters.test", _start, roster.name,
            icon="network_check", type="primary",
            help="Asks each model for one word; those that can decide a verdict take the judge "
            "test of twelve fixed claims. Booked like any other call, under your caps.",
        )  # fmt: skip


def _start(name: str) -> None:
    """Begin a test in a thread of its own; a click on a button that is gone starts no second."""
    from core.llm.metering import CallAccount

    under_way = _trial_of(name)
    if under_way is not None and not under_way.is_done:
        return
    with store_problem(TRIAL_PROBLEM):
        with state.open_store() as store:
            roster = find_roster(name, store)
            project = state.get_project(store)
            by = state.require_role(store, project.id, "annotator", "test a model set")
        require_model_names(roster)
        trial = st.session_state[TRIALS][name] = ModelTest(roster, time.time())
        work = (trial, state.get_keys(), state.home_folder(), CallAccount(new_id(), by, project.id))
        threading.Thread(target=_work, args=work, daemon=True, name="roster-test").start()


def _work(trial: ModelTest, keys: Keys, home: Path, account: CallAccount) -> None:
    """The thread: whatever happens, the test comes to an end that can be seen."""
    try:
        from core.agents.qualification import qualify_deciding_models
        from core.agents.roster_files import probe_models

        found = probe_models(
            trial.sheet, keys, trial.stop, home=home, account=account, clock=time.time
        )
        for one in found:
            trial.found.append(one)
        for result in qualify_deciding_models(
            trial.sheet,
            keys,
            trial.stop,
            home=home,
            account=replace(account, run_id=new_id()),
            clock=time.time,
        ):
            trial.judged.append(result)
    except Stopped:
        trial.problem = STOPPED
    except ReviewError as error:
        trial.problem = str(error)
    except Exception:  # noqa: BLE001 - a thread that dies in silence would never be done
        LOGGER.error("a roster could not be tested: %s", keys.scrubbed(traceback.format_exc()))
        trial.problem = UNEXPECTED
    finally:
        trial.is_done = True


def _draw_trial(roster: RosterConfig) -> None:
    show_problem(TRIAL_PROBLEM)
    trial = _trial_of(roster.name)
    if trial is not None and trial.sheet == roster:
        if trial.is_done:
            _draw_found(trial)
        else:
            _follow(roster.name)


@st.fragment(run_every=POLL_SECONDS)
def _follow(name: str) -> None:
    """Draw what has arrived; when all has, draw the page anew."""
    trial = _trial_of(name)
    if trial is None or trial.is_done:
        st.rerun()
    else:
        _draw_found(trial)


def _draw_found(trial: ModelTest) -> None:
    found = {probe.role: probe for probe in list(trial.found)}
    waits = "not asked" if trial.is_done else "asking …"
    rows: list[list[str | Html]] = []
    for role in (role for role, agent in trial.sheet.agents_by_role() if not agent.is_built_in):
        cell: str | Html = waits
        if one := found.get(role):
            sign = element("strong", "✓ works" if one.works else "✗ does not work")
            took = element("span", f" · {one.seconds:.1f} s · ", style=QUIET)
            cell = element("span", sign, took, one.words, dir="auto")
        rows.append([capitalize_role(role), cell])
    rows += [
        [f"{result.model.split('/', 1)[-1]}: judge test",
         f"{'✓ passed' if result.has_passed else '✗ failed'}: {result.words}; "
         f"{MIN_RIGHT_ANSWERS} are needed"]
        for result in list(trial.judged)
    ]  # fmt: skip
    draw_html(html_table_of(("Role", "Test"), rows))
    if trial.problem:
        st.error(escape_markdown(trial.problem))
    if trial.is_done:
        calls = [call for probe in trial.found for call in probe.calls]
        st.caption(
            escape_markdown(
                f"Tested {format_time(trial.at)}: {sum(probe.works for probe in trial.found)} of "
                f"{format_count(len(trial.found), 'role')} work · "
                f"{format_count(len(calls), 'call')} · "
                f"{format_cost(sum_costs(calls)) if calls else 'no cost'}."
            )
        )


CHOICE = "rosters.choice"


def _derived(roster: RosterConfig, word: str) -> RosterConfig:
    """The roster with a word behind its name, which stays no longer than names may be."""
    end = f" ({word})"
    return replace(roster, name=f"{roster.name[: files.LONGEST['name'] - len(end)].rstrip()}{end}")


def _draw_editor() -> None:
    if DRAFT not in st.session_state:
        return
    with st.container(border=True, key="rosters.editor"):
        draw_form()
        if refused := st.session_state.get(REFUSED):
            st.error(escape_markdown(str(refused)))
        with st.container(horizontal=True):
            draw_button("Save", "rosters.save", _save, type="primary")
            draw_button("Discard", "rosters.discard", close_form)


def _save() -> None:
    """Keep what stands in the form; on a refusal it stays open."""
    draft = st.session_state.get(DRAFT)
    if not draft:
        return  # the second half of a double click
    roster, fixed = typed_sheet(), str(draft["fixed"])
    try:
        files.check_roster(roster)
        require_model_names(roster)
        with state.open_store() as store, store.writing():
            _keep(store, roster, fixed=fixed, seen=int(draft["seen"]))
    except ReviewError as error:
        st.session_state[REFUSED] = str(error)
        if isinstance(error, ConflictError) and fixed:
            with state.open_store() as store:
                newest = store.rosters.newest(fixed)
            # Saving once more lays ours over theirs, which stays in the history.
            draft["seen"] = newest.number if newest else 0
        return
    close_form()
    st.session_state[CHOICE] = roster.name
    st.toast(f"Saved “{escape_markdown(roster.name)}”.", icon=":material/check:")


def _require_lead(store: Store) -> None:
    store.projects.require_for_all(state.get_person(store), "lead", "change model sets")


def _keep(store: Store, roster: RosterConfig, *, fixed: str = "", seen: int = 0) -> None:
    """Append a version of a roster, within `Store.writing()`, unless the name is another's."""
    _require_lead(store)
    ours = {
        name.casefold() for name in (*SHIPPED_ROSTERS, format_roster(BUILT_IN_ROSTER, short=True))
    }
    if roster.name.casefold() in ours:
        raise InputError(
            f"Roster, name: expected one of your own, found “{roster.name}”, which comes with "
            "Counterpoint and never changes; choose another."
        )
    newest = store.rosters.newest(roster.name)
    if not fixed:
        if newest is not None and newest.sheet is not None:
            raise InputError(
                f"Roster, name: expected a new one, found “{roster.name}”, which {newest.author} "
                "keeps already; choose another, or discard this and change that one."
            )
        seen = newest.number if newest else 0
    store.rosters.save(roster, state.get_person(store), time.time(), seen=seen)


NOTICE = "rosters.notice"
IMPORT_PROBLEM = "rosters.import_problem"
PENDING = "rosters.pending"
UPLOADS = "rosters.uploads"  # counts them: a new number is an empty uploader


def _draw_import() -> None:
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    problem = str(st.session_state.get(IMPORT_PROBLEM) or "")
    is_open = bool(pending or problem)
    with st.expander("Import a model set", icon=":material/upload:", expanded=is_open):
        key = f"rosters.import.{st.session_state.get(UPLOADS, 0)}"
        st.file_uploader(
            f"A file that was exported from Counterpoint, at most {files.MOST_BYTES // 1000} kB",
            type=["json"], key=key, on_change=_take, args=(key,),
        )  # fmt: skip
        if problem:
            st.error(escape_markdown(problem))
        if pending:
            st.markdown(
                f"There is a model set “{escape_markdown(pending['name'])}”, saved "
                f"{format_time(pending['at'])} "
                f"by {escape_markdown(pending['author'])}, with other models. Keep the one in "
                f"the file as "
                "a new version?"
            )
            with st.container(horizontal=True):
                draw_button("New version", "rosters.import.sure", _confirm, type="primary")
                draw_button("Keep the old one", "rosters.import.leave", _let_go)


def _take(key: str) -> None:
    """Keep a new name, ask about a known one, open the form where the name is ours."""
    upload = st.session_state.get(key)
    st.session_state.pop(PENDING, None)
    st.session_state.pop(IMPORT_PROBLEM, None)
    if upload is None:
        return
    with store_problem(IMPORT_PROBLEM), state.open_store() as store, store.writing():
        _require_lead(store)
        read = _read(store, upload.getvalue())
        name = read.sheet.name
        newest = store.rosters.newest(name)
        if name.casefold() in {ours.casefold() for ours in SHIPPED_ROSTERS}:
            _open_copy(read)
        elif newest is None or newest.sheet is None:
            _keep(store, read.sheet)
            _kept(read)
        elif newest.sheet == replace(read.sheet, prompts=newest.sheet.prompts):
            _let_go(f"“{name}” is here already, just as in the file.")
        else:
            told = {"name": name, "author": newest.author, "at": newest.at}
            st.session_state[PENDING] = {
                "data": upload.getvalue(), "seen": newest.number, **told,
            }  # fmt: skip


def _read(store: Store, data: bytes) -> files.ReadRoster:
    book = PromptBook(store.prompt_edits.of_project(state.get_project(store).id))
    return files.read_roster(data, book.digest())


def _open_copy(read: files.ReadRoster) -> None:
    name = read.sheet.name
    if DRAFT in st.session_state:
        raise InputError(
            f"“{name}” comes with Counterpoint, so the file's needs another name; save or "
            "discard the model set that you are writing, then import it again."
        )
    begin_form(_derived(read.sheet, "imported"))
    _let_go(
        f"“{name}” comes with Counterpoint and never changes. The file's model set is open below "
        f"under another name; nothing is kept until you save it. {read.notice}"
    )


def _confirm() -> None:
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    if not pending:
        return  # the second half of a double click
    _let_go()
    with store_problem(IMPORT_PROBLEM):
        with state.open_store() as store, store.writing():
            read = _read(store, pending["data"])
            _keep(store, read.sheet, fixed=read.sheet.name, seen=pending["seen"])
        _kept(read)


def _kept(read: files.ReadRoster) -> None:
    st.session_state[CHOICE] = read.sheet.name
    _let_go(f"Imported “{read.sheet.name}”. {read.notice}")


def _let_go(words: str = "") -> None:
    """Empty the uploader, whose file has been dealt with, and say what became of it."""
    st.session_state.pop(PENDING, None)
    st.session_state.pop(IMPORT_PROBLEM, None)
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1
    if words:
        st.session_state[NOTICE] = words.strip()


PROBLEM = "rosters.problem"
ASKED = "rosters.asked"


def draw_rosters() -> None:
    """Choose a roster, see it, test it, change or copy it, pass it on."""
    if used := draw_local_models():
        st.session_state[CHOICE] = used
        _start(used)
        st.toast(f"New checks use “{escape_markdown(used)}” now.", icon=":material/check:")
    st.subheader("Model sets", anchor=False)
    with state.open_store() as store:
        project = state.get_project(store)
        sheets = {roster.name: roster for roster in list_rosters(store)}
        if st.session_state.get(CHOICE) not in sheets:  # at first, or once it was removed
            usual = project.roster if project.roster in sheets else next(iter(sheets))
            st.session_state[CHOICE] = usual
        words = partial(format_roster, short=True)
        name = str(
            st.selectbox(
                "Models", list(sheets), format_func=words, key=CHOICE, persist_state="session"
            )
        )
        roster = sheets[name]
        history = [] if name in SHIPPED_ROSTERS else store.rosters.history(name)
        book = PromptBook(store.prompt_edits.of_project(project.id))
    st.caption(escape_markdown(roster.words))
    draw_standings(roster)
    draw_html(roster_table(roster, book))
    st.caption(_origin(roster, history, book.digest()))
    with st.container(horizontal=True):
        _draw_trial_button(roster)
        _draw_changes(roster, history)
        _draw_export(roster, book.digest())
    for key, draw in ((PROBLEM, st.error), (NOTICE, st.info)):
        if told := st.session_state.pop(key, ""):
            draw(escape_markdown(told))
    if history and st.session_state.get(ASKED) == (number := history[0].number):
        question = (
            f"Remove “{escape_markdown(name)}”? Runs keep the models that they used, and its "
            f"history stays."
        )
        draw_confirmation(question, "Remove", "rosters", _remove, name, number, asked=ASKED)
    _draw_editor()
    _draw_trial(roster)
    _draw_history(history)
    _draw_import()


def _origin(roster: RosterConfig, history: list[SavedRoster], digest: str) -> str:
    first = "Comes with Counterpoint and never changes; a copy is yours to change."
    if history:
        saved = history[0]
        first = (
            f"Saved {format_time(saved.at)} by {escape_markdown(saved.author)}, version "
            f"{len(history)}."
        )
    if roster.is_built_in:
        return first
    written = ""
    if roster.prompts and roster.prompts != digest:
        written = f"; the model set was written for {escape_markdown(roster.prompts)}"
    return (
        f"{first} Prompts in use: version {digest}{written}. Where a price is unknown, tokens "
        "are capped instead of money."
    )


def _draw_changes(roster: RosterConfig, history: list[SavedRoster]) -> None:
    """Copy, change, remove; what is being written must be saved or discarded first."""
    is_writing, name = DRAFT in st.session_state, roster.name
    draw_button(
        "Make a copy", "rosters.copy", _copy, name, icon="content_copy", disabled=is_writing
    )
    if history:
        draw_button("Change", "rosters.change", _change, name, icon="edit", disabled=is_writing)
        draw_button(
            "Remove", "rosters.remove", ask_confirmation, ASKED, history[0].number, icon="delete"
        )


def _draw_export(roster: RosterConfig, digest: str) -> None:
    try:
        data = files.write_roster(roster, digest)
    except InputError as error:  # kept by an earlier version with other rules
        st.error(escape_markdown(str(error)))
        return
    file_name = re.sub(r"[^\w.-]+", "-", roster.name).strip(".-") + files.SUFFIX
    told = "The model set as a file, without any key"
    draw_download("Export", data, file_name, "rosters.export", help=told)


def _copy(name: str) -> None:
    with store_problem(PROBLEM):
        with state.open_store() as store:
            _require_lead(store)
            roster = find_roster(name, store)
        begin_form(_derived(roster, "copy"))


def _change(name: str, number: int = 0) -> None:
    """Open the form on the newest version of a roster, or on the one of that number."""
    with store_problem(PROBLEM):
        with state.open_store() as store:
            _require_lead(store)
            history = store.rosters.history(name)
        chosen = next((saved for saved in history if saved.number == number), None) or history[0]
        if chosen.sheet is not None:
            begin_form(chosen.sheet, fixed=name, seen=history[0].number)


def _remove(name: str, number: int) -> None:
    ask_confirmation(ASKED, None)
    with store_problem(PROBLEM):
        with state.open_store() as store, store.writing():
            _require_lead(store)
            store.rosters.remove(name, state.get_person(store), time.time(), seen=number)
        st.toast(f"“{escape_markdown(name)}” is removed.", icon=":material/delete:")


def _draw_history(history: list[SavedRoster]) -> None:
    if len(history) < 2:
        return
    with st.expander(f"History ({len(history)})", key="rosters.history"):
        for saved in paginate(history, "rosters.versions"):
            left, right = st.columns([3, 1], vertical_alignment="center")
            what = "saved" if saved.sheet else "removed"
            left.markdown(f"{format_time(saved.at)} · {escape_markdown(saved.author)} · {what}")
            if saved.sheet and saved != history[0]:
                with right:
                    draw_button(
                        "Take it up again", f"rosters.version.{saved.number}",
                        _change, saved.name, saved.number, disabled=DRAFT in st.session_state,
                    )  # fmt: skip
