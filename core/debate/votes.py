"""What several judgements or stances come to: the label that most of them give, and its share.

Source: SC-MAKS 4.4 (self-consistency), ColMAD 4.1 (Ensemble).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.builtin.speech import capitalised, counted, listed
from core.records import Cause, Judgement, Label
from core.roles import CaseView


@dataclass(frozen=True)
class Tally:
    """How many say which; those that are open or lost are in `silent` and count for no label."""

    hallucinated: int
    supported: int
    silent: int = 0

    @property
    def cast(self) -> int:
        """All votes that count."""
        return self.hallucinated + self.supported

    @property
    def label(self) -> Label:
        """The most frequent one; unclear where both are as frequent, or nobody voted."""
        if self.hallucinated == self.supported:
            return "unclear"
        return "hallucinated" if self.hallucinated > self.supported else "supported"

    @property
    def share(self) -> float | None:
        """The share of hallucinated among the votes that count, which is the vote's p."""
        return self.hallucinated / self.cast if self.cast else None

    def words(self, noun: str) -> str:
        """The vote in a sentence, as people read it; `noun` is what was counted."""
        whole = counted(self.cast + self.silent, noun)
        said = f"{self.hallucinated} say hallucinated, {self.supported} supported"
        rest = f", {self.silent} gave no label" if self.silent else ""
        return f"Of {whole} {said}{rest}."


def tally(labels: Iterable[Label | None], whole: int = 0) -> Tally:
    """The votes of these; of `whole` who were asked, those that are missing are silent too."""
    given = list(labels)
    hallucinated, supported = given.count("hallucinated"), given.count("supported")
    return Tally(hallucinated, supported, max(whole, len(given)) - hallucinated - supported)


def barred(agent: str, view: CaseView) -> Judgement | None:
    """Unclear before anybody is asked: an image that cannot be read is not voted on."""
    if not view.unreadable_images:
        return None
    words = f"{listed(view.unreadable_images)} could not be read here"
    text = f"No verdict: {words}."
    cause_words = capitalised(words)
    return Judgement(agent, "unclear", text, cause="image_not_readable", cause_words=cause_words)


def nobody_voted(agent: str, view: CaseView, answered: int) -> Judgement:
    """Unclear, of a vote in which no label was given; `answered` could be read and left it open."""
    cause: Cause = "not_settled" if answered else "unreadable_reply"
    words = "Nobody gave an answer that could be read."
    if answered:
        words = "Everybody who answered left it open."
    if answered and not view.evidence.passages:
        cause, words = "no_evidence", "There is no evidence to check it against."
    return Judgement(agent, "unclear", f"No verdict: {words}", cause=cause, cause_words=words)
