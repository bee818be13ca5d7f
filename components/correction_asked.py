"""What a person is asked to judge, and what others said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace

import streamlit as st

from components.words import LABEL_WORDS, clipped, escaped, when
from core.categories import CATEGORY_WORDS
from core.curation import record
from core.progress import Progress
from core.records import Case, Label, PersonRole, Run, Span
from core.reviews import Correction, Gold, Suggestion, category_words
from core.store import Store

STANCE_WORDS = {"contradicts": "contradicts it", "supports": "supports it"}


def nothing(store: Store, correction: Correction) -> None:
    """What follows on a correction where nothing does."""


@dataclass(frozen=True)
class Asked:
    """What a person is asked about; `after` is called in the transaction that saves the answer.

    Without a run nobody has checked the case here; `suggestions` are what agents outside say of it.
    Blind, they are told nothing of what machines found, neither label nor words. Where people
    answer alone, what others say meanwhile is no conflict. `settles`: what they say becomes the
    case's right answer, in the way of `record`; `marked_by` are then the spans of all versions, and
    `corrects` says that there is a right answer already.
    """

    run: Run | None
    case: Case
    progress: Progress
    is_blind: bool = False
    is_alone: bool = False
    after: Callable[[Store, Correction], None] = nothing
    suggestions: tuple[Suggestion, ...] = ()
    categories: tuple[str, ...] = tuple(CATEGORY_WORDS)
    settles: bool = False
    corrects: bool = False
    record: Callable[[Store, Correction, Case], None] = record
    marked_by: tuple[Span, ...] | None = None

    @property
    def id(self) -> str:
        """What the form's fields are kept under."""
        if self.settles:
            return f"{self.case.id}.settle"
        # In the queue a case may be checked again while somebody writes: the case names the form.
        return self.case.id if self.is_alone or self.run is None else self.run.id

    @property
    def machine(self) -> Label | None:
        """What the verdict says, also when the run was stopped after it; None without a run."""
        if self.run is None:
            return None
        return self.progress.verdict.label if self.progress.verdict else "unclear"

    @property
    def needs(self) -> PersonRole:
        """The role that saving takes."""
        return "lead" if self.settles else "annotator"

    @property
    def doing(self) -> str:
        """What saving is, for those whose role does not permit it."""
        return "settle a case" if self.settles else "correct a verdict"

    @property
    def told(self) -> Label | None:
        """What the person is told of it; who settles weighs it as one version among others."""
        return None if self.is_blind or self.settles else self.machine

    @property
    def offered(self) -> tuple[Span, ...]:
        """The spans that machines found, as far as the person is shown them."""
        if self.marked_by is not None:
            return self.marked_by
        if self.is_blind:
            return ()
        outside = (
            replace(span, source=said.agent) for said in self.suggestions for span in said.spans
        )
        return (*self.progress.spans, *outside)

    @property
    def words(self) -> dict[str, str]:
        """The project's categories, and those of offered spans, in words."""
        used = [*self.categories, *(span.category for span in self.offered)]
        return {name: category_words(name) for name in used}


def draw_settled(golds: Sequence[Gold]) -> None:
    """What the case was settled as, if a lead has done so."""
    settled = [gold for gold in golds if gold.origin != "imported"]
    if not settled:
        return
    last = settled[-1]
    right = f" Right: {escaped(last.corrected_answer)}." if last.corrected_answer else ""
    reason = f": {escaped(last.reason)}" if last.reason else ""
    st.info(
        f"Settled by **{escaped(last.author)}** on {when(last.at)} as "
        f"{LABEL_WORDS[last.label].lower()}{reason}.{right} What you say is kept beside it.",
        icon=":material/gavel:",
    )


def draw_said(correction: Correction) -> None:
    """What one person said."""
    st.markdown(
        f"**{escaped(correction.author)}** {said_words(correction)}  \n:gray[{when(correction.at)}]"
    )


def said_words(correction: Correction) -> str:
    """What a person said, as Markdown without their name."""
    return escaped(f"said {plain_words(correction)}")


def plain_words(correction: Correction, clip: int = 60) -> str:
    """What a person said, as text on one line; quotes are cut after `clip` characters."""
    words = LABEL_WORDS[correction.label].lower()
    if correction.machine_label and correction.machine_label != correction.label:
        words += f" (the machine: {LABEL_WORDS[correction.machine_label].lower()})"
    parts = [f"{words}: {correction.reason}" if correction.reason else words]
    if correction.spans:
        marked = (f"“{clipped(s.text, clip)}”" for s in correction.spans)
        parts.append(f"Wrong words: {', '.join(marked)}")
    if correction.is_unmarked:
        parts.append("No single word is wrong")
    if correction.corrected_answer:
        parts.append(f"Right: {correction.corrected_answer}")
    for mark in correction.evidence:
        parts.append(f"“{clipped(mark.text, clip)}” {STANCE_WORDS[mark.stance]}")
    for box in correction.boxes:
        comment = f": {box.comment}" if box.comment else ""
        parts.append(f"A box in the image, {category_words(box.category)}{comment}")
    rated = asdict(correction.ratings)
    parts += [f"{name.capitalize()} {value} of 5" for name, value in rated.items() if value]
    if correction.comment:
        parts.append(f"Comment: {correction.comment}")
    return ". ".join(part.rstrip(".") for part in parts)
