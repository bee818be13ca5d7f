"""Rosters ("model sets") in Settings: choose, test, write, save, export and import them.

A roster that comes with Counterpoint never changes. A saved one gets a new version at each save;
its versions are its history. An imported file replaces no roster before the person agrees.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.run.debate import format_cost
from components.setup.local_models import draw_local_models, draw_standings
from components.setup.roster_fields import (
    DRAFT,
    FORM_PROBLEM,
    RosterDraft,
    capitalize_role,
    close_form,
    draw_form,
    open_form,
    read_form,
    render_roster,
)
from components.widgets.controls import (
    ask_confirmation,
    draw_button,
    draw_confirmation,
    draw_download,
    show_problem,
    store_problem,
)
from components.widgets.html import Html, draw_html, element, html_table, join_html, paginate
from components.widgets.wording import (
    ROSTER_TITLES,
    escape_markdown,
    format_count,
    format_roster,
    format_time,
)
from core.agents import roster_files as files
from core.agents.qualification import MIN_RIGHT_ANSWERS
from core.agents.rosters import SHIPPED_ROSTERS, find_roster, list_rosters, require_model_names
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConflictError, InputError, ReviewError, Stopped
from core.schema.records import new_id
from core.schema.rosters import RosterConfig
from core.schema.run_state import sum_costs
from core.store import Store
from core.store.projects import SavedRoster

if TYPE_CHECKING:
    from core.agents.qualification import Qualification
    from core.agents.roster_files import RoleTest, RoleTestOutcome
    from core.llm.metering import CallAccount

LOGGER = logging.getLogger(__name__)
CHOICE = "rosters.choice"
PROBLEM, NOTICE = "rosters.problem", "rosters.notice"
ASKED = "rosters.asked"
TESTS, TEST_PROBLEM = "rosters.trials", "rosters.trial_problem"
IMPORT_PROBLEM = "rosters.import_problem"
PENDING = "rosters.pending"  # the file that waits for an answer
UPLOADS = "rosters.uploads"  # counts uploads: each number is an uploader of its own
POLL_SECONDS = 0.3
STOPPED = "The test was stopped."
UNEXPECTED = "The test ended by an unexpected error; the server's log has the details."
OUTCOME_WORDS: dict[RoleTestOutcome, str] = {
    "works": "✓ works",
    "answers": "≈ answers, but not as asked",
    "fails": "✗ no answer",
}


@dataclass
class RosterTest:
    """A test of a roster, running or done; only its thread writes to it."""

    roster: RosterConfig
    started_at: float
    stop: StopSignal = field(default_factory=StopSignal)
    role_tests: list[RoleTest] = field(default_factory=list)
    qualifications: list[Qualification] = field(default_factory=list)
    problem: str = ""
    is_done: bool = False


def _get_test(name: str) -> RosterTest | None:
    tests: dict[str, RosterTest] = st.session_state.setdefault(TESTS, {})
    return tests.get(name)


def _draw_test_button(roster: RosterConfig) -> None:
    test = _get_test(roster.name)
    if test is not None and not test.is_done:
        draw_button("Stop the test", "rosters.untest", test.stop.set, icon="stop")
    elif not roster.is_built_in and has_role("annotator"):
        draw_button(
            "Test every role", "rosters.test", _start_test, roster.name,
            icon="network_check", type="primary",
            help="Asks each model for one word; those that can decide a verdict take the judge "
            "test of twelve fixed claims. Booked like any other call, under your caps.",
        )  # fmt: skip


def _start_test(name: str) -> None:
    """Start a test in a thread of its own, unless one is running."""
    from core.llm.metering import CallAccount

    running = _get_test(name)
    if running is not None and not running.is_done:
        return
    with store_problem(TEST_PROBLEM):
        with state.open_store() as store:
            roster = find_roster(name, store)
            project = state.get_project(store)
            person = state.require_role(store, project.id, "annotator", "test a model set")
        require_model_names(roster)
        test = st.session_state[TESTS][name] = RosterTest(roster, time.time())
        account = CallAccount(new_id(), person, project.id)
        arguments = (test, state.get_keys(), state.home_folder(), account)
        threading.Thread(target=_run_test, args=arguments, daemon=True, name="roster-test").start()


def _run_test(test: RosterTest, keys: Keys, home: Path, account: CallAccount) -> None:
    """Run the test, in its thread; whatever happens, it ends as done."""
    try:
        from core.agents.qualification import qualify_deciding_models
        from core.agents.roster_files import probe_models

        for role_test in probe_models(
            test.roster, keys, test.stop, home=home, account=account, clock=time.time
        ):
            test.role_tests.append(role_test)
        for qualification in qualify_deciding_models(
            test.roster,
            keys,
            test.stop,
            home=home,
            account=replace(account, run_id=new_id()),
            clock=time.time,
        ):
            test.qualifications.append(qualification)
    except Stopped:
        test.problem = STOPPED
    except ReviewError as error:
        test.problem = str(error)
    except Exception:  # noqa: BLE001 - otherwise the page would wait for ever
        LOGGER.error("a roster could not be tested: %s", keys.scrubbed(traceback.format_exc()))
        test.problem = UNEXPECTED
    finally:
        test.is_done = True


def _draw_test(roster: RosterConfig) -> None:
    show_problem(TEST_PROBLEM)
    test = _get_test(roster.name)
    if test is not None and test.roster == roster:
        if test.is_done:
            _draw_test_results(test)
        else:
            _follow_test(roster.name)


@st.fragment(run_every=POLL_SECONDS)
def _follow_test(name: str) -> None:
    """Draw the results so far; draw the whole page again when the test is done."""
    test = _get_test(name)
    if test is None or test.is_done:
        st.rerun()
    else:
        _draw_test_results(test)


def _draw_test_results(test: RosterTest) -> None:
    results = {role_test.role: role_test for role_test in list(test.role_tests)}
    pending = "not asked" if test.is_done else "asking …"
    rows: list[list[str | Html]] = [
        [
            capitalize_role(role),
            _render_role_test(results[role]) if role in results else pending,
        ]
        for role, agent in test.roster.agents_by_role()
        if not agent.is_built_in
    ]
    for result in list(test.qualifications):
        outcome = "✓ passed" if result.has_passed else "✗ failed"
        words = f"{outcome}: {result.words}; {MIN_RIGHT_ANSWERS} are needed"
        rows.append([f"{result.model.split('/', 1)[-1]}: judge test", words])
    draw_html(html_table(("Role", "Test"), rows, "cp-table"))
    if test.problem:
        st.error(escape_markdown(test.problem))
    if test.is_done:
        _draw_test_summary(test)


def _render_role_test(role_test: RoleTest) -> Html:
    outcome = element("strong", OUTCOME_WORDS[role_test.outcome])
    seconds = element("span", f" · {role_test.seconds:.1f} s", class_="cp-quiet")
    return join_html([outcome, f": {role_test.words}", seconds])


def _draw_test_summary(test: RosterTest) -> None:
    outcomes = Counter(role_test.outcome for role_test in test.role_tests)
    words = f"{outcomes['works']} of {format_count(outcomes.total(), 'role')} work"
    if others := outcomes["answers"]:
        words += f"; {others} answer, but not as asked"
    calls = [call for role_test in test.role_tests for call in role_test.calls]
    cost = format_cost(sum_costs(calls)) if calls else "no cost"
    words += f" · {format_count(len(calls), 'call')} · {cost}"
    if judged := sum(result.of for result in test.qualifications):
        words += f" · judge test: {format_count(judged, 'call')}"
    st.caption(escape_markdown(f"Tested {format_time(test.started_at)}: {words}."))


def _add_to_name(roster: RosterConfig, word: str) -> RosterConfig:
    """Return the roster with “(word)” after its name, which is cut where it would be too long."""
    end = f" ({word})"
    return replace(
        roster, name=f"{roster.name[: files.MAX_FIELD_CHARS['name'] - len(end)].rstrip()}{end}"
    )


def _draw_open_form() -> None:
    if DRAFT not in st.session_state:
        return
    with st.container(border=True, key="rosters.editor"):
        draw_form()
        if refused := st.session_state.get(FORM_PROBLEM):
            st.error(escape_markdown(str(refused)))
        with st.container(horizontal=True):
            draw_button("Save", "rosters.save", _save_form, type="primary")
            draw_button("Discard", "rosters.discard", close_form)


def _save_form() -> None:
    """Save the roster in the form and close it; on a problem it stays open."""
    draft: RosterDraft | None = st.session_state.get(DRAFT)
    if not draft:
        return  # the second half of a double click
    roster, fixed = read_form(), draft["fixed"]
    try:
        files.check_roster(roster)
        require_model_names(roster)
        with state.open_store() as store, store.writing():
            _save_roster(store, roster, fixed=fixed, seen=draft["seen"])
    except ReviewError as error:
        st.session_state[FORM_PROBLEM] = str(error)
        if isinstance(error, ConflictError) and fixed:
            # The person has now read of the other's version: saving again is meant to follow it.
            with state.open_store() as store:
                newest = store.rosters.newest(fixed)
            draft["seen"] = newest.number if newest else 0
        return
    close_form()
    st.session_state[CHOICE] = roster.name
    st.toast(f"Saved “{escape_markdown(roster.name)}”.", icon=":material/check:")


def _require_lead(store: Store) -> None:
    store.projects.require_for_all(state.get_person(store), "lead", "change model sets")


def _save_roster(store: Store, roster: RosterConfig, *, fixed: str = "", seen: int = 0) -> None:
    """Save a roster as a new version, within `Store.writing()`.

    `fixed` is the name of the roster that is changed, `seen` its newest version that the person
    knows. Raises InputError: the name is taken, or belongs to a roster of ours.
    """
    _require_lead(store)
    ours = {name.casefold() for name in (*SHIPPED_ROSTERS, *ROSTER_TITLES.values())}
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


def _draw_import() -> None:
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    problem = str(st.session_state.get(IMPORT_PROBLEM) or "")
    is_open = bool(pending or problem)
    with st.expander("Import a model set", icon=":material/upload:", expanded=is_open):
        key = f"rosters.import.{st.session_state.get(UPLOADS, 0)}"
        st.file_uploader(
            f"A file that was exported from Counterpoint, at most {files.MOST_BYTES // 1000} kB",
            type=["json"], key=key, on_change=_import_upload, args=(key,),
        )  # fmt: skip
        if problem:
            st.error(escape_markdown(problem))
        if pending:
            st.markdown(
                f"There is a model set “{escape_markdown(pending['name'])}”, saved "
                f"{format_time(pending['at'])} by {escape_markdown(pending['author'])}, with other "
                "models. Keep the one in the file as a new version?"
            )
            with st.container(horizontal=True):
                draw_button(
                    "New version", "rosters.import.sure", _import_as_new_version, type="primary"
                )
                draw_button("Keep the old one", "rosters.import.leave", _close_import)


def _import_upload(key: str) -> None:
    """Save a roster with a new name; ask before a known one gets a new version.

    One that is named like a roster of ours opens in the form, under another name.
    """
    upload = st.session_state.get(key)
    st.session_state.pop(PENDING, None)
    st.session_state.pop(IMPORT_PROBLEM, None)
    if upload is None:
        return
    with store_problem(IMPORT_PROBLEM), state.open_store() as store, store.writing():
        _require_lead(store)
        read = _read_file(store, upload.getvalue())
        name = read.sheet.name
        newest = store.rosters.newest(name)
        if name.casefold() in {ours.casefold() for ours in SHIPPED_ROSTERS}:
            _open_imported_copy(read)
        elif newest is None or newest.sheet is None:
            _save_roster(store, read.sheet)
            _finish_import(read)
        elif newest.sheet == replace(read.sheet, prompts=newest.sheet.prompts):
            _close_import(f"“{name}” is here already, just as in the file.")
        else:
            st.session_state[PENDING] = {
                "data": upload.getvalue(),
                "seen": newest.number,
                "name": name,
                "author": newest.author,
                "at": newest.at,
            }


def _read_file(store: Store, data: bytes) -> files.ReadRoster:
    book = PromptBook(store.prompt_edits.of_project(state.get_project(store).id))
    return files.read_roster(data, book.digest())


def _open_imported_copy(read: files.ReadRoster) -> None:
    name = read.sheet.name
    if DRAFT in st.session_state:
        raise InputError(
            f"“{name}” comes with Counterpoint, so the file's needs another name; save or "
            "discard the model set that you are writing, then import it again."
        )
    open_form(_add_to_name(read.sheet, "imported"))
    _close_import(
        f"“{name}” comes with Counterpoint and never changes. The file's model set is open below "
        f"under another name; nothing is kept until you save it. {read.notice}"
    )


def _import_as_new_version() -> None:
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    if not pending:
        return  # the second half of a double click
    _close_import()
    with store_problem(IMPORT_PROBLEM):
        with state.open_store() as store, store.writing():
            read = _read_file(store, pending["data"])
            _save_roster(store, read.sheet, fixed=read.sheet.name, seen=pending["seen"])
        _finish_import(read)


def _finish_import(read: files.ReadRoster) -> None:
    st.session_state[CHOICE] = read.sheet.name
    _close_import(f"Imported “{read.sheet.name}”. {read.notice}")


def _close_import(words: str = "") -> None:
    """Empty the uploader; `words` say what became of its file."""
    st.session_state.pop(PENDING, None)
    st.session_state.pop(IMPORT_PROBLEM, None)
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1
    if words:
        st.session_state[NOTICE] = words.strip()


def draw_rosters() -> None:
    """Draw the models on this computer, the choice of a roster, and what can be done with it."""
    if used := draw_local_models():
        st.session_state[CHOICE] = used
        _start_test(used)
        st.toast(f"New checks use “{escape_markdown(used)}” now.", icon=":material/check:")
    st.subheader("Model sets", anchor=False)
    with state.open_store() as store:
        project = state.get_project(store)
        rosters = {roster.name: roster for roster in list_rosters(store)}
        if st.session_state.get(CHOICE) not in rosters:  # at first, or once it was removed
            usual = project.roster if project.roster in rosters else next(iter(rosters))
            st.session_state[CHOICE] = usual
        name = str(
            st.selectbox(
                "Models",
                list(rosters),
                format_func=partial(format_roster, short=True),
                key=CHOICE,
                persist_state="session",
            )
        )
        roster = rosters[name]
        history = [] if name in SHIPPED_ROSTERS else store.rosters.history(name)
        book = PromptBook(store.prompt_edits.of_project(project.id))
    st.caption(escape_markdown(roster.words))
    draw_standings(roster)
    with st.expander("Who plays which role", expanded=name not in SHIPPED_ROSTERS):
        draw_html(render_roster(roster, book))
    st.caption(_describe_origin(roster, history, book.digest()))
    with st.container(horizontal=True):
        _draw_test_button(roster)
        if has_role("lead", for_all=True):
            _draw_edit_buttons(roster, history)
        _draw_export(roster, book.digest())
    for key, draw in ((PROBLEM, st.error), (NOTICE, st.info)):
        if message := st.session_state.pop(key, ""):
            draw(escape_markdown(message))
    if history and st.session_state.get(ASKED) == (number := history[0].number):
        question = (
            f"Remove “{escape_markdown(name)}”? Runs keep the models that they used, and its "
            f"history stays."
        )
        draw_confirmation(question, "Remove", "rosters", _remove, name, number, asked=ASKED)
    is_lead = has_role("lead", "change model sets", for_all=True)
    if is_lead:
        _draw_open_form()
    _draw_test(roster)
    if is_lead:
        _draw_history(history)
        _draw_import()


def _describe_origin(roster: RosterConfig, history: list[SavedRoster], digest: str) -> str:
    """Return where the roster comes from and, with models, which prompts it uses."""
    origin = "Comes with Counterpoint and never changes; a copy is yours to change."
    if history:
        newest = history[0]
        origin = (
            f"Saved {format_time(newest.at)} by {escape_markdown(newest.author)}, version "
            f"{len(history)}."
        )
    if roster.is_built_in:
        return origin
    written_for = ""
    if roster.prompts and roster.prompts != digest:
        written_for = f"; the model set was written for {escape_markdown(roster.prompts)}"
    return (
        f"{origin} Prompts in use: version {digest}{written_for}. Where a price is unknown, tokens "
        "are capped instead of money."
    )


def _draw_edit_buttons(roster: RosterConfig, history: list[SavedRoster]) -> None:
    """Draw the buttons to copy, change and remove; an open form must be closed first."""
    is_form_open, name = DRAFT in st.session_state, roster.name
    draw_button(
        "Make a copy", "rosters.copy", _copy, name, icon="content_copy", disabled=is_form_open
    )
    if history:
        draw_button("Change", "rosters.change", _change, name, icon="edit", disabled=is_form_open)
        draw_button(
            "Remove", "rosters.remove", ask_confirmation, ASKED, history[0].number, icon="delete"
        )


def _draw_export(roster: RosterConfig, digest: str) -> None:
    try:
        data = files.write_roster(roster, digest)
    except InputError as error:  # saved by an earlier Counterpoint with other rules
        st.error(escape_markdown(str(error)))
        return
    file_name = re.sub(r"[^\w.-]+", "-", roster.name).strip(".-") + files.SUFFIX
    about = "The model set as a file, without any key"
    draw_download("Export", data, file_name, "rosters.export", help=about)


def _copy(name: str) -> None:
    with store_problem(PROBLEM):
        with state.open_store() as store:
            _require_lead(store)
            roster = find_roster(name, store)
        open_form(_add_to_name(roster, "copy"))


def _change(name: str, number: int = 0) -> None:
    """Open the form on the version of that number, else on the newest."""
    with store_problem(PROBLEM):
        with state.open_store() as store:
            _require_lead(store)
            history = store.rosters.history(name)
        chosen = next((saved for saved in history if saved.number == number), None) or history[0]
        if chosen.sheet is not None:
            open_form(chosen.sheet, fixed=name, seen=history[0].number)


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
