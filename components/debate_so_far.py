"""The debate of a run under way, or as it stood at a moment that is played, with its signals."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.agent_pasts import pasts_of
from components.asides import asides
from components.rounds import Speaking, rounds_of
from components.show import show
from components.trace import rounds_html
from components.turn_words import WHAT_SIGNALS_ARE, signals_counted
from components.words import escaped
from core.debate.signals import Signal, signals_of
from core.progress import Progress
from core.records import Run

RECENT = 30.0  # seconds, after which agents may have another record


def draw_debate_so_far(run: Run, progress: Progress, speaking: Mapping[int, Speaking]) -> None:
    """All rounds, each an element of its own: one that has not changed stays open or folded."""
    signals = _signals(run.id, run.project_id, len(progress.turns), progress)
    if progress.turns:
        debaters = dict.fromkeys(turn.debater for turn in progress.turns)
        words = signals_counted(signals, list(debaters), so_far=progress.ending is None)
        st.caption(escaped(words), help=WHAT_SIGNALS_ARE)
    with st.container(key="cp-rounds", gap="xsmall"):
        for piece in rounds_html(rounds_of(progress.turns, speaking), signals, asides(progress)):
            show(piece)


@st.cache_resource(max_entries=32, ttl=RECENT, show_spinner=False)
def _signals(run_id: str, project_id: str, turns: int, _progress: Progress) -> tuple[Signal, ...]:
    """Those of a run's first so many turns, which are drawn several times a second."""
    return signals_of(_progress, pasts_of(project_id)) if turns else ()
