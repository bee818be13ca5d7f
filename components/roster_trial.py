"""The test of a roster: one tiny call for each model, asked by a click and never by a rerun."""

from __future__ import annotations

import logging
import threading
import time
import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from components import state
from components.calls import cost_words
from components.markup import Html, element
from components.roster_table import QUIET, table
from components.show import show
from components.words import counted, escaped, when
from core.agents.rosters import require_filled_in, sheet_named
from core.concurrency import Stop
from core.errors import ReviewError, Stopped
from core.jobs import new_id
from core.models.keys import Keys
from core.progress import total_cost
from core.seats import RosterSheet

if TYPE_CHECKING:
    from core.agents.probe import Probe
    from core.models.desk import Account

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
        st.button(
            "Stop the test", key="rosters.untest", icon=":material/stop:", on_click=trial.stop.set
        )
        return
    st.button(
        "Test every role",
        key="rosters.test",
        icon=":material/network_check:",
        type="primary",
        on_click=_start,
        args=(sheet.name,),
        help="Asks each model for one word; it is booked like any other call, under your caps.",
    )


def draw_trial(sheet: RosterSheet) -> None:
    """What the last test of this very sheet has found, as far as it is."""
    problem = st.session_state.pop(PROBLEM, "")
    if problem:
        st.error(escaped(problem))
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
    from core.models.desk import Account

    under_way = _trial_of(name)
    if under_way is not None and not under_way.is_done:
        return
    try:
        with state.open_store() as store:
            sheet = sheet_named(name, store)
            project = state.project(store)
            by = state.require(store, project.id, "annotator", "test a roster")
            account = Account(new_id(), by, project.id)
        require_filled_in(sheet)
    except ReviewError as error:
        st.session_state[PROBLEM] = str(error)
        return
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
        from core.agents.probe import probe

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
