"""What several judgements or stances come to: the label that more than half of all asked give.

Who leaves it open, or whose reply is lost, gives no label but is one of those who were asked: a
label never comes of others' silence, nor of a fault. p is the share of hallucinated among the
answers that could be read, an open one counting half; whoever was lost is absent from it. So p is
on the label's side of one half. Source: SC-MAKS 2.1.2 and 4.4 (majority voting), 2.1.3 (low
consensus abstains), ColMAD 4.1 (two agree).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.baseline.wording import capitalised, counted, listed
from core.records import Cause, Judgement, Label
from core.roles import CaseView


@dataclass(frozen=True)
class Tally:
    """How many say which; `open` are answers that could be read, `lost` are none."""

    hallucinated: int
    supported: int
    open: int = 0
    lost: int = 0

    @property
    def cast(self) -> int:
        """All votes for a label."""
        return self.hallucinated + self.supported

    @property
    def silent(self) -> int:
        """All who gave no label."""
        return self.open + self.lost

    @property
    def asked(self) -> int:
        """All who were asked."""
        return self.cast + self.silent

    @property
    def label(self) -> Label:
        """The one that more than half of all who were asked give; unclear where none is."""
        if 2 * self.hallucinated > self.asked:
            return "hallucinated"
        return "supported" if 2 * self.supported > self.asked else "unclear"

    @property
    def is_tie(self) -> bool:
        """True where everybody gave a label, and both are as frequent."""
        return self.hallucinated == self.supported and self.cast > 0 and not self.silent

    @property
    def p(self) -> float | None:
        """As the head of this file says; None where nobody gave a label."""
        answers = self.cast + self.open
        return (self.hallucinated + self.open / 2) / answers if self.cast else None

    def words(self, noun: str) -> str:
        """The vote in a sentence, as people read it; `noun` is what was counted."""
        whole = counted(self.asked, noun)
        verb = "says" if self.hallucinated == 1 else "say"
        said = f"{self.hallucinated} {verb} hallucinated, {self.supported} supported"
        rest = f", {self.silent} gave no label" if self.silent else ""
        return f"Of {whole} {said}{rest}."


def tally(labels: Iterable[Label | None], whole: int = 0) -> Tally:
    """The votes of these; None is a lost one, and so are those that are missing of `whole`."""
    given = list(labels)
    read = [label for label in given if label is not None]
    hallucinated, supported = read.count("hallucinated"), read.count("supported")
    lost = max(whole, len(given)) - len(read)
    return Tally(hallucinated, supported, len(read) - hallucinated - supported, lost)


def without_majority(agent: str, votes: Tally, noun: str) -> Judgement:
    """Unclear, of votes for labels of which none has more than half."""
    words = f"{votes.words(noun)} Neither label has the majority."
    text = f"No verdict: {words}"
    return Judgement(agent, "unclear", text, cause="not_settled", cause_words=words, p=votes.p)


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
