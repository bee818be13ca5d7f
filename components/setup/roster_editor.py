"""The form in which a roster is written, its saving, and the test of every role."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

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
from components.widgets.controls import button, problem_kept, show_problem
from components.widgets.html import Html, element, show
from components.widgets.wording import counted, escaped, roster_words, when
from core.agents.rosters import ROSTER_WORDS, SHIPPED, one_model, require_filled_in, sheet_named
from core.agents.sheet_rules import LONGEST, check_sheet
from core.concurrency import Stop
from core.errors import ConflictError, InputError, ReviewError, Stopped
from core.llm.keys import Keys
from core.llm.prompting import PromptBook
from core.progress import total_cost
from core.records import new_id
from core.seats import BUILT_IN, RosterSheet
from core.store import Store

if TYPE_CHECKING:
    from core.agents.roster_test import Probe
    from core.llm.metering import Account

LOGGER = logging.getLogger(__name__)
TRIALS = "rosters.trials"
PROBLEM = "rosters.trial_problem"
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
    show_problem(PROBLEM)
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
    with problem_kept(PROBLEM):
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
        from core.agents.roster_test import probe

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
