"""Counterpoint's server with debaters that speak at a human pace, so that a test can step in.

The words are those of the built-in debaters over a reader without weights; only the waiting between
them is ours.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import core.baseline.entailment
import core.pipeline.jobs
from components.app.launch import serve
from core.agents.rosters import make_built_in_roster
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.schema.records import Turn
from core.schema.roles import Debater, DebateView, Roster, SpeakCallback
from tests.browser.serving import HURRY
from tests.readers import paw_assessor

HURRIED = Path(os.environ["COUNTERPOINT_HOME"]).parent / HURRY


class Paced:
    """A debater that takes its time."""

    built_in = True

    def __init__(self, inner: Debater, pause: float) -> None:
        self._inner = inner
        self._pause = pause
        self.name, self.rule = inner.name, inner.rule

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        """The inner debater's turn, word by word."""
        turn = self._inner.argue(view, lambda _: None, stop)
        for word in turn.text.split(" "):
            speak(word + " ")
            stop.wait(0.0 if HURRIED.exists() else self._pause)
        return turn


def paced_roster(name: str) -> Roster:
    """The built-in roster at the pace that the environment gives."""
    roster = make_built_in_roster(name)
    pause = float(os.environ.get("PACE", "0.15"))
    return replace(
        roster, debaters={key: Paced(agent, pause) for key, agent in roster.debaters.items()}
    )


class PacedJobs(core.pipeline.jobs.JobRunner):
    """Runs whose debaters speak so."""

    def __init__(self, home: Path, *, keys: Keys | None = None) -> None:
        super().__init__(home, paced_roster, keys=keys)


if __name__ == "__main__":
    core.baseline.entailment.load_shared_assessor = paw_assessor
    core.pipeline.jobs.JobRunner = PacedJobs  # type: ignore[assignment,misc]
    serve(int(sys.argv[1]))
