"""Where several checks of one case part: verdicts, statements, words, agents."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from components.words import clipped, escaped
from core.parting import same_agent_apart, statements_apart, turned, verdicts, words_apart
from core.progress import Progress
from core.records import Case

MOST_LINES = 12


def draw_parting(case: Case, runs: Mapping[str, Progress]) -> None:
    """The heading, the labels where all are the same, and what differs."""
    st.subheader("Where they part", anchor=False)
    labels = list(verdicts(runs))
    if len(labels) == 1:
        st.markdown(f"All verdicts are the same: **{labels[0]}**.")
    lines = parting_lines(case.response, runs)
    for line in lines or ["The same words are marked, and nobody turned."]:
        st.markdown(f"- {escaped(line)}")


def parting_lines(response: str, runs: Mapping[str, Progress]) -> list[str]:
    """What differs, a sentence each: verdicts, statements, words, agents."""
    found = verdicts(runs)
    parts = (f"{', '.join(names)}: {label}" for label, names in found.items())
    lines = [f"The verdicts differ. {'; '.join(parts)}."] if len(found) > 1 else []
    apart = statements_apart(runs)
    for held in apart[:MOST_LINES]:
        lines.append(f"“{clipped(held.text, 90)}”: {_marking(held.is_marked)}.")
    # Words of these sentences were just told of.
    stretches = [
        own
        for own in words_apart(response, runs)
        if own.text.strip() and not any(h.start <= own.start and own.end <= h.end for h in apart)
    ]
    for own in stretches[:MOST_LINES]:
        is_marked = dict.fromkeys(own.marked_by, True) | dict.fromkeys(own.passed_by, False)
        lines.append(f"“{clipped(own.text.strip(), 60)}”: {_marking(is_marked)}.")
    for turn in turned(runs)[:MOST_LINES]:
        lines.append(
            f"{turn.run}: {turn.debater} turned from {turn.before} to {turn.after} in round "
            f"{turn.round}."
        )
    for agent, stances in same_agent_apart(runs)[:MOST_LINES]:
        parts = (f"{stance} in {', '.join(names)}" for stance, names in stances.items())
        lines.append(f"{agent} ended differently: {'; '.join(parts)}.")
    return lines


def _marking(is_marked: Mapping[str, bool]) -> str:
    """Who marks words there and who does not."""
    by = ", ".join(name for name, own in is_marked.items() if own)
    others = ", ".join(name for name, own in is_marked.items() if not own)
    return f"marked by {by}, not by {others}"
