"""Rosters in Settings: the form, saving, a test of every role, the history, files out and in.

A file is read strictly, kept whole or not at all, and never over another unasked.
"""

from __future__ import annotations

import contextlib
import logging
import re
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import streamlit as st

from components.app import state
from components.run.debate import cost_words
from components.setup.roster_fields import (
    KEY,
    QUIET,
    SEAT,
    TEXTS,
    Place,
    draw_refusal,
    draw_seats,
    fill,
    forget,
    give_everywhere,
    place_of,
    roster_table,
    table,
    text,
    typed_sheet,
)
from components.widgets.controls import (
    ask,
    button,
    download,
    draw_question,
    problem_kept,
    show_problem,
)
from components.widgets.html import Html, element, paged, show
from components.widgets.wording import counted, escaped, roster_words, when
from core.agents.roster_files import (
    LONGEST,
    MOST_BYTES,
    SUFFIX,
    ReadRoster,
    check_sheet,
    read_roster,
    roster_file,
)
from core.agents.rosters import (
    ROSTER_WORDS,
    SHIPPED,
    one_model,
    require_filled_in,
    sheet_named,
    sheets_of,
)
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.runtime.concurrency import Stop
from core.runtime.errors import ConflictError, InputError, ReviewError, Stopped
from core.schema.progress import total_cost
from core.schema.records import new_id
from core.schema.rosters import BUILT_IN, RosterSheet
from core.store import Store
from core.store.projects import SavedRoster

if TYPE_CHECKING:
    from core.agents.roster_files import Probe
    from core.llm.metering import Account

LOGGER = logging.getLogger(__name__)
TRIALS = "rosters.trials"
TRIAL_PROBLEM = "rosters.trial_problem"
POLL_SECONDS = 0.3
STOPPED = "The test was stopped."
UNEXPECTED = "The test broke off: an unexpected error, of which the server's log has the details."


@dataclass
class Trial:
    """A test under way or done; its thread adds to `found`, the page only reads."""

    sheet: RosterSheet
    at: float
    stop: Stop = field(default_factory=Stop)
    found: list[Probe] = field(default_factory=list)
    problem: str = ""
    is_done: bool = False


def draw_trial_button(sheet: RosterSheet) -> None:
    """Start the test of the roster as it is now, or stop the one under way."""
    if sheet.is_built_in:
        return
    trial = _trial_of(sheet.name)
    if trial is not None and not trial.is_done:
        button("Stop the test", "rosters.untest", trial.stop.set, icon="stop")
        return
    button(
        "Test every role",
        "rosters.test",
        _start,
        sheet.name,
        icon="network_check",
        type="primary",
        help="Asks each model for one word; it is booked like any other call, under your caps.",
    )


def draw_trial(sheet: RosterSheet) -> None:
    """What the last test of this very sheet has found, as far as it is."""
    show_problem(TRIAL_PROBLEM)
    trial = _trial_of(sheet.name)
    if trial is None or trial.sheet != sheet:
        return
    if trial.is_done:
        _draw_found(trial)
    else:
        _follow(sheet.name)


@st.fragment(run_every=POLL_SECONDS)
def _follow(name: str) -> None:
    """Draw what has arrived; when all has, draw the page anew."""
    trial = _trial_of(name)
    if trial is None or trial.is_done:
        st.rerun()
        return
    _draw_found(trial)


def _trial_of(name: str) -> Trial | None:
    trials: dict[str, Trial] = st.session_state.setdefault(TRIALS, {})
    return trials.get(name)


def _start(name: str) -> None:
    """Begin a test in a thread of its own; a click on a button that is gone starts no second."""
    from core.llm.metering import Account

    under_way = _trial_of(name)
    if under_way is not None and not under_way.is_done:
        return
    with problem_kept(TRIAL_PROBLEM):
        with state.open_store() as store:
            sheet = sheet_named(name, store)
            project = state.project(store)
            by = state.require(store, project.id, "annotator", "test a roster")
            account = Account(new_id(), by, project.id)
        require_filled_in(sheet)
        trial = Trial(sheet, time.time())
        st.session_state[TRIALS][name] = trial
        threading.Thread(
            target=_work,
            args=(trial, state.keys(), state.home(), account),
            daemon=True,
            name="roster-test",
        ).start()


def _work(trial: Trial, keys: Keys, home: Path, account: Account) -> None:
    """The thread: whatever happens, the test comes to an end that can be seen."""
    try:
        from core.agents.roster_files import probe

        for found in probe(
            trial.sheet, keys, trial.stop, home=home, account=account, clock=time.time
        ):
            trial.found.append(found)
    except Stopped:
        trial.problem = STOPPED
    except ReviewError as error:
        trial.problem = str(error)
    except Exception:  # noqa: BLE001 - a thread that dies in silence would never be done
        LOGGER.error("a roster could not be tested: %s", keys.scrubbed(traceback.format_exc()))
        trial.problem = UNEXPECTED
    finally:
        trial.is_done = True


def _draw_found(trial: Trial) -> None:
    found = {probe.role: probe for probe in list(trial.found)}
    roles = [role for role, seat in trial.sheet.seats() if not seat.is_built_in]
    waits = "not asked" if trial.is_done else "asking …"
    rows = [
        [role[:1].upper() + role[1:], _found_cell(found[role]) if role in found else waits]
        for role in roles
    ]
    show(table(("Role", "Test"), rows))
    if trial.problem:
        st.error(escaped(trial.problem))
    if trial.is_done:
        st.caption(escaped(_sum_words(trial)))


def _found_cell(probe: Probe) -> Html:
    sign = "✓ works" if probe.works else "✗ does not work"
    took = element("span", f" · {probe.seconds:.1f} s · ", style=QUIET)
    return element("span", element("strong", sign), took, probe.words, dir="auto")


def _sum_words(trial: Trial) -> str:
    """How it went and what it cost, in one line."""
    works = sum(probe.works for probe in trial.found)
    calls = [call for probe in trial.found for call in probe.calls]
    cost = cost_words(total_cost(calls)) if calls else "no cost"
    return (
        f"Tested {when(trial.at)}: {works} of {counted(len(trial.found), 'role')} work · "
        f"{counted(len(calls), 'call')} · {cost}."
    )


DRAFT = "rosters.draft"
CHOICE = "rosters.choice"
REFUSED = "rosters.refused"


def begin(sheet: RosterSheet, *, fixed: str = "", seen: int = 0) -> None:
    """Open the form on a sheet; `fixed` is the name of a kept roster that is being changed.

    `seen` is the number of its version that is changed. Call it from a callback.
    """
    if DRAFT in st.session_state:
        return  # a double click; what is being written stays
    fill(sheet)
    st.session_state[DRAFT] = {"fixed": fixed, "seen": seen}
    st.session_state[SEAT] = "judge"
    st.session_state.pop(REFUSED, None)


def derived_name(name: str, word: str) -> str:
    """The name with a word behind it, no longer than names may be."""
    end = f" ({word})"
    return f"{name[: LONGEST['name'] - len(end)].rstrip()}{end}"


def draw_editor(book: PromptBook) -> None:
    """The form, while a roster is being written, with the roster as it would be."""
    draft = st.session_state.get(DRAFT)
    if not draft:
        return
    message = str(st.session_state.get(REFUSED) or "")
    place = place_of(message) if message else None
    refused = {place: message} if place else {}
    with st.container(border=True, key="rosters.editor"):
        _draw_head(str(draft["fixed"]), refused)
        _draw_one_model()
        draw_seats(refused)
        if message and place is None:
            st.error(escaped(message))
        with st.container(horizontal=True):
            button("Save", "rosters.save", _save, type="primary")
            button("Discard", "rosters.discard", _close)
        with contextlib.suppress(InputError):  # Save says what is missing
            shown = roster_table(typed_sheet(), book)
            with st.expander("The roster as it would be", key="rosters.would_be"):
                show(shown)


def _draw_head(fixed: str, refused: Mapping[Place, str]) -> None:
    if fixed:
        st.markdown(f"**Change “{escaped(fixed)}”**  \nThe version before stays in its history.")
    else:
        st.markdown("**A roster of your own**")
        st.text_input("Name", key=f"{KEY}name", max_chars=LONGEST["name"], persist_state="session")
        draw_refusal("", "name", refused)
    st.text_input(
        "In a few words", key=f"{KEY}words", max_chars=LONGEST["words"], persist_state="session"
    )
    draw_refusal("", "words", refused)


def _draw_one_model() -> None:
    """The short way: one model for every role that speaks."""
    with st.expander("One model for every speaking role", icon=":material/group:"):
        for name, (label, words) in TEXTS.items():
            st.text_input(label, key=f"{KEY}all.{name}", help=words, persist_state="session")
        button("Use it everywhere", "rosters.everywhere", _give_everywhere)
        st.caption("Retrieval and the cutting into statements stay as they are.")


def _give_everywhere() -> None:
    model, api_base, key_name = (text(f"all.{name}") for name in TEXTS)
    if not model:
        st.toast("Write the model's name first.", icon=":material/edit:")
        return
    give_everywhere(model, api_base, key_name)
    if text("words") in ROSTER_WORDS.values():  # they tell of the models that are gone now
        st.session_state[f"{KEY}words"] = one_model(model, api_base).words[: LONGEST["words"]]
    st.toast(f"Every speaking role is {escaped(model)} now.", icon=":material/check:")


def _close() -> None:
    forget()
    st.session_state.pop(DRAFT, None)
    st.session_state.pop(REFUSED, None)


def _save() -> None:
    """Keep what stands in the form; on a refusal it stays open, at the seat in question."""
    draft = st.session_state.get(DRAFT)
    if not draft:
        return  # the second half of a double click
    try:
        sheet = typed_sheet()
        check_sheet(sheet)
        require_filled_in(sheet)
        with state.open_store() as store, store.writing():
            keep(store, sheet, fixed=str(draft["fixed"]), seen=int(draft["seen"]))
    except ReviewError as error:
        _refuse(error)
        return
    _close()
    st.session_state[CHOICE] = sheet.name
    st.toast(f"Saved “{escaped(sheet.name)}”.", icon=":material/check:")


def _refuse(error: ReviewError) -> None:
    draft = st.session_state[DRAFT]
    st.session_state[REFUSED] = str(error)
    place = place_of(str(error))
    if place and place[0]:
        st.session_state[SEAT] = place[0]
    if isinstance(error, ConflictError) and draft["fixed"]:
        with state.open_store() as store:
            newest = store.rosters.newest(str(draft["fixed"]))
        # Saving once more lays ours over theirs, which stays in the history.
        st.session_state[DRAFT] = draft | {"seen": newest.number if newest else 0}


def require_lead(store: Store) -> None:
    """Refuse whoever may not change rosters.

    Raises:
        NotAllowed: the person here is neither lead nor admin of the first project.
    """
    store.projects.require_for_all(state.person(store), "lead", "change rosters")


def keep(store: Store, sheet: RosterSheet, *, fixed: str = "", seen: int = 0) -> None:
    """Append a version of a roster; call it inside `Store.writing()`.

    Raises:
        NotAllowed: the person here is neither lead nor admin of the first project.
        InputError: the name belongs to another roster, a shipped or a kept one.
        ConflictError: somebody else changed the roster since the version `seen`.
    """
    require_lead(store)
    ours = {name.casefold() for name in (*SHIPPED, roster_words(BUILT_IN, short=True))}
    if sheet.name.casefold() in ours:
        raise InputError(
            f"Roster, name: expected one of your own, found “{sheet.name}”, which comes with "
            "Counterpoint and never changes; choose another."
        )
    newest = store.rosters.newest(sheet.name)
    if not fixed:
        if newest is not None and newest.sheet is not None:
            raise InputError(
                f"Roster, name: expected a new one, found “{sheet.name}”, which {newest.author} "
                "keeps already; choose another, or discard this and change that one."
            )
        seen = newest.number if newest else 0
    store.rosters.save(sheet, state.person(store), time.time(), seen=seen)


NOTICE = "rosters.notice"
ROSTER_IMPORT_PROBLEM = "rosters.import_problem"
PENDING = "rosters.pending"
UPLOADS = "rosters.uploads"  # counts them: a new number is an empty uploader
KILOBYTES = MOST_BYTES // 1000


def draw_import() -> None:
    """The field for a file, what is wrong with it, and the question before a new version."""
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    problem = str(st.session_state.get(ROSTER_IMPORT_PROBLEM) or "")
    with st.expander(
        "Import a roster", icon=":material/upload:", expanded=bool(pending or problem)
    ):
        key = f"rosters.import.{st.session_state.get(UPLOADS, 0)}"
        st.file_uploader(
            f"A file that was exported from Counterpoint, at most {KILOBYTES} kB",
            type=["json"],
            key=key,
            on_change=_take,
            args=(key,),
        )
        if problem:
            st.error(escaped(problem))
        if pending:
            _draw_question(pending)


def _draw_question(pending: dict[str, Any]) -> None:
    st.markdown(
        f"There is a roster “{escaped(pending['name'])}”, saved {when(pending['at'])} by "
        f"{escaped(pending['author'])}, with other seats. Keep the file's as a new version of it?"
    )
    with st.container(horizontal=True):
        button("New version", "rosters.import.sure", _confirm, type="primary")
        button("Leave it", "rosters.import.leave", _let_go)


def _take(key: str) -> None:
    """Read the file that was given; whatever is wrong with it, nothing of it is kept."""
    upload = st.session_state.get(key)
    st.session_state.pop(PENDING, None)
    st.session_state.pop(ROSTER_IMPORT_PROBLEM, None)
    if upload is None:
        return
    with problem_kept(ROSTER_IMPORT_PROBLEM), state.open_store() as store, store.writing():
        require_lead(store)
        _place(store, upload.getvalue())


def _place(store: Store, data: bytes) -> None:
    """Keep a new name, ask about a known one, open the form where the name is ours."""
    read = _read(store, data)
    name = read.sheet.name
    ours = next((ours for ours in SHIPPED if ours.casefold() == name.casefold()), None)
    newest = store.rosters.newest(name)
    if ours is not None:
        _open_copy(read)
    elif newest is None or newest.sheet is None:
        keep(store, read.sheet)
        _kept(read)
    elif newest.sheet == replace(read.sheet, prompts=newest.sheet.prompts):
        _say(f"“{name}” is here already, just as in the file.")
        _let_go()
    else:
        told = {"name": name, "author": newest.author, "at": newest.at}
        st.session_state[PENDING] = {"data": data, "seen": newest.number, **told}


def _read(store: Store, data: bytes) -> ReadRoster:
    book = PromptBook(store.prompt_edits.of_project(state.project(store).id))
    return read_roster(data, book.digest())


def _open_copy(read: ReadRoster) -> None:
    if DRAFT in st.session_state:
        raise InputError(
            f"“{read.sheet.name}” comes with Counterpoint, so the file's needs another name; "
            "save or discard the roster that you are writing, then import it again."
        )
    name = read.sheet.name
    begin(replace(read.sheet, name=derived_name(name, "imported")))
    _say(
        f"“{name}” comes with Counterpoint and never changes. The file's roster is open below "
        f"under another name; nothing is kept until you save it. {read.notice}"
    )
    _let_go()


def _confirm() -> None:
    pending: dict[str, Any] | None = st.session_state.get(PENDING)
    if not pending:
        return  # the second half of a double click
    try:
        with state.open_store() as store, store.writing():
            read = _read(store, pending["data"])
            keep(store, read.sheet, fixed=read.sheet.name, seen=pending["seen"])
    except ReviewError as error:
        _let_go()
        st.session_state[ROSTER_IMPORT_PROBLEM] = str(error)
        return
    _kept(read)


def _kept(read: ReadRoster) -> None:
    st.session_state[CHOICE] = read.sheet.name
    _say(f"Imported “{read.sheet.name}”. {read.notice}")
    _let_go()


def _say(words: str) -> None:
    st.session_state[NOTICE] = words.strip()


def _let_go() -> None:
    """Empty the uploader: its file has been dealt with."""
    st.session_state.pop(PENDING, None)
    st.session_state.pop(ROSTER_IMPORT_PROBLEM, None)
    st.session_state[UPLOADS] = st.session_state.get(UPLOADS, 0) + 1


PROBLEM = "rosters.problem"
ASKED = "rosters.asked"


def draw_rosters() -> None:
    """Choose a roster, see it, test it, change or copy it, pass it on."""
    st.subheader("Rosters", anchor=False)
    with state.open_store() as store:
        project = state.project(store)
        sheets = {sheet.name: sheet for sheet in sheets_of(store)}
        name = _chosen(list(sheets), project.roster)
        sheet = sheets[name]
        history = [] if name in SHIPPED else store.rosters.history(name)
        book = PromptBook(store.prompt_edits.of_project(project.id))
    st.caption(escaped(sheet.words))
    show(roster_table(sheet, book))
    st.caption(_origin(sheet, history, book.digest()))
    with st.container(horizontal=True):
        draw_trial_button(sheet)
        _draw_changes(sheet, history)
        _draw_export(sheet, book.digest())
    for key, draw in ((PROBLEM, st.error), (NOTICE, st.info)):
        words = st.session_state.pop(key, "")
        if words:
            draw(escaped(words))
    if history and st.session_state.get(ASKED) == (number := history[0].number):
        words = (
            f"Remove “{escaped(name)}”? Runs keep the seats that they used, and its history stays."
        )
        draw_question(words, "Remove", "rosters", _remove, name, number, asked=ASKED)
    draw_editor(book)
    draw_trial(sheet)
    _draw_history(history)
    draw_import()


def _chosen(names: list[str], usual: str) -> str:
    """The roster to look at, at first the project's; one that was removed is let go of."""
    if st.session_state.get(CHOICE) not in names:
        st.session_state[CHOICE] = usual if usual in names else names[0]
    return str(
        st.selectbox(
            "Roster",
            names,
            format_func=partial(roster_words, short=True),
            key=CHOICE,
            persist_state="session",
        )
    )


def _origin(sheet: RosterSheet, history: list[SavedRoster], digest: str) -> str:
    """Where the roster comes from and which prompts are in force, in Markdown."""
    if history:
        saved = history[0]
        first = f"Saved {when(saved.at)} by {escaped(saved.author)}, version {len(history)}."
    else:
        first = "Comes with Counterpoint and never changes; a copy is yours to change."
    if sheet.is_built_in:
        return first
    written = ""
    if sheet.prompts and sheet.prompts != digest:
        written = f"; the roster was written for {escaped(sheet.prompts)}"
    return (
        f"{first} Prompts in force: version {digest}{written}. Where a price is unknown, tokens "
        "are capped instead of money."
    )


def _draw_changes(sheet: RosterSheet, history: list[SavedRoster]) -> None:
    """Copy, change, remove; what is being written must be saved or discarded first."""
    is_writing = DRAFT in st.session_state
    button(
        "Make a copy", "rosters.copy", _copy, sheet.name, icon="content_copy", disabled=is_writing
    )
    if history:
        button("Change", "rosters.change", _change, sheet.name, icon="edit", disabled=is_writing)
        button("Remove", "rosters.remove", ask, ASKED, history[0].number, icon="delete")


def _draw_export(sheet: RosterSheet, digest: str) -> None:
    try:
        data = roster_file(sheet, digest)
    except InputError as error:  # kept by an earlier version with other rules
        st.error(escaped(str(error)))
        return
    download(
        "Export",
        data,
        re.sub(r"[^\w.-]+", "-", sheet.name).strip(".-") + SUFFIX,
        "rosters.export",
        help="The roster as a file, without any key",
    )


def _copy(name: str) -> None:
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            require_lead(store)
            sheet = sheet_named(name, store)
        begin(replace(sheet, name=derived_name(name, "copy")))


def _change(name: str, number: int = 0) -> None:
    """Open the form on the newest version of a roster, or on the one of that number."""
    with problem_kept(PROBLEM):
        with state.open_store() as store:
            require_lead(store)
            history = store.rosters.history(name)
        chosen = next((saved for saved in history if saved.number == number), None) or history[0]
        if chosen.sheet is not None:
            begin(chosen.sheet, fixed=name, seen=history[0].number)


def _remove(name: str, number: int) -> None:
    ask(ASKED, None)
    with problem_kept(PROBLEM):
        with state.open_store() as store, store.writing():
            require_lead(store)
            store.rosters.remove(name, state.person(store), time.time(), seen=number)
        st.toast(f"“{escaped(name)}” is off the list.", icon=":material/delete:")


def _draw_history(history: list[SavedRoster]) -> None:
    if len(history) < 2:
        return
    with st.expander(f"History ({len(history)})", key="rosters.history"):
        for saved in paged(history, "rosters.versions"):
            left, right = st.columns([3, 1], vertical_alignment="center")
            what = "saved" if saved.sheet else "removed"
            left.markdown(f"{when(saved.at)} · {escaped(saved.author)} · {what}")
            if saved.sheet and saved != history[0]:
                right.button(
                    "Take it up again",
                    key=f"rosters.version.{saved.number}",
                    on_click=_change,
                    args=(saved.name, saved.number),
                    disabled=DRAFT in st.session_state,
                )
