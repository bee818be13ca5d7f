"""What several judgements or stances come to: the label that most of them give, and its share.

Source: SC-MAKS 4.4 (self-consistency), ColMAD 4.1 (Ensemble).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.builtin.speech import counted
from core.records import Label


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
