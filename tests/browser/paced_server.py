"""Counterpoint's server for browser tests: many homes, and debaters that speak at a human pace.

A browser chooses its home by a cookie, so one server process serves every test. The words are those
of the built-in debaters over a reader without weights; only the pauses between them are ours.
"""

from __future__ import annotations

import faulthandler
import signal
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

import core.baseline.entailment
import core.pipeline.jobs
from components.app import state
from components.app.launch import serve
from core.agents.rosters import make_built_in_roster
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.schema.records import Turn
from core.schema.roles import Debater, DebateView, Roster, SpeakCallback
from tests.browser.serving import HOME_COOKIE, read_pace
from tests.readers import paw_assessor

find_usual_home = state.own_home_folder


def find_home_of_browser() -> Path:
    """Return the home that the browser's cookie names; without one, that of the server."""
    cookie = st.context.cookies.get(HOME_COOKIE, "") if get_script_run_ctx() else ""
    return Path(unquote(str(cookie))) if cookie else find_usual_home()


class PacedDebater:
    """A debater that pauses after each word."""

    built_in = True

    def __init__(self, inner: Debater, find_pause: Callable[[], float]) -> None:
        self._inner = inner
        self._find_pause = find_pause
        self.name, self.rule = inner.name, inner.rule

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        """Return the inner debater's turn, spoken word by word."""
        turn = self._inner.argue(view, lambda _: None, stop)
        for word in turn.text.split(" "):
            speak(word + " ")
            stop.wait(self._find_pause())
        return turn


def make_paced_roster(home: Path, name: str) -> Roster:
    """Return the built-in roster at the pace that the test chose for its home."""
    roster = make_built_in_roster(name)
    pace = partial(read_pace, home)
    return replace(
        roster, debaters={key: PacedDebater(agent, pace) for key, agent in roster.debaters.items()}
    )


class PacedJobs(core.pipeline.jobs.JobRunner):
    """Runs whose debaters speak at that pace."""

    def __init__(self, home: Path, *, keys: Keys | None = None) -> None:
        super().__init__(home, partial(make_paced_roster, home), keys=keys)


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    core.baseline.entailment.load_shared_assessor = paw_assessor
    core.pipeline.jobs.JobRunner = PacedJobs  # type: ignore[assignment,misc]
    vars(state)["JobRunner"] = PacedJobs
    state.own_home_folder = find_home_of_browser
    serve(int(sys.argv[1]))
