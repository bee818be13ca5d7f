"""What a person is asked to judge, and what others said of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import streamlit as st

from components.words import LABEL_WORDS, clipped, escaped, when
from core.progress import Progress
from core.records import Case, Label, Run
from core.reviews import Correction
from core.store import Store


def nothing(store: Store, correction: Correction) -> None:
    """What follows on a correction where nothing does."""


@dataclass(frozen=True)
class Asked:
    """What a person is asked about; `after` is called in the transaction that saves the answer.

    Blind, they are told nothing of what the machine found, neither label nor words.
    """

    run: Run
    case: Case
    progress: Progress
    is_blind: bool = False
    after: Callable[[Store, Correction], None] = nothing

    @property
    def machine(self) -> Label:
        """What the verdict says, also when the run was stopped after it."""
        return self.progress.verdict.label if self.progress.verdict else "unclear"

    @property
    def told(self) -> Label | None:
        """What the person is told of it."""
        return None if self.is_blind else self.machine

    @property
    def shown(self) -> Progress:
        """What the machine found, as far as the person is shown it."""
        return Progress() if self.is_blind else self.progress


def draw_said(correction: Correction) -> None:
    """What one person said."""
    words = f"**{escaped(correction.author)}** said {LABEL_WORDS[correction.label].lower()}"
    if correction.machine_label and correction.machine_label != correction.label:
        words += f" (the machine: {LABEL_WORDS[correction.machine_label].lower()})"
    if correction.reason:
        words += f": {escaped(correction.reason)}"
    if correction.spans:
        marked = ", ".join(f"“{escaped(clipped(s.text, 40))}”" for s in correction.spans)
        words += f". Wrong words: {marked}"
    if correction.is_unmarked:
        words += ". No single word is wrong"
    if correction.corrected_answer:
        words += f". Right: {escaped(correction.corrected_answer)}"
    st.markdown(f"{words}  \n:gray[{when(correction.at)}]")
