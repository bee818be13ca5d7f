"""What was said of labelled rows, laid beside what people said of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from core.evaluation.gold import GoldRow, GoldSpan
from core.records import Label

Flags = npt.NDArray[np.bool_]
Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
PRIOR = 0.5
FAILED, REFUSED = "failed", "refused"  # causes of rows that got no answer
UNREAD = "unreadable_reply"


@dataclass(frozen=True)
class Prediction:
    """What was said of one row.

    `p` is p_hallucinated, for an abstention the one that the engine had before it abstained; None
    where it had none. `spans` are the words found wrong, `shown` those that a person is shown under
    that verdict, `soft` every stretch with how likely it is wrong; all count code points of the
    response. `cause` is why it was `unclear`. `openings` are the first answers of agents who heard
    nobody, `statements` what was found of each statement; `turns`
    were taken in the debate.
    """

    label: Label
    p: float | None = None
    spans: tuple[GoldSpan, ...] = ()
    soft: tuple[GoldSpan, ...] = ()
    cause: str = ""
    seconds: float = 0.0
    shown: tuple[GoldSpan, ...] = ()
    openings: tuple[Label, ...] = ()
    statements: tuple[Label, ...] = ()
    turns: int = 0

    @property
    def is_failure(self) -> bool:
        """True where no answer was reached: the row broke off, or was refused."""
        return self.cause.split(":")[0] in (FAILED, REFUSED)


@dataclass(frozen=True)
class Outcomes:
    """Rows with their predictions, in the same order."""

    rows: Sequence[GoldRow]
    said: Sequence[Prediction]

    @property
    def has_open_golds(self) -> bool:
        """True where people found of some rows that the evidence does not decide."""
        return any(row.label == "unclear" for row in self.rows)

    @property
    def has_both(self) -> bool:
        """True where there is something to tell apart."""
        return len(set(self.wrong.tolist())) == 2

    @property
    def wrong(self) -> Flags:
        """(n,) True where the gold is not `supported`: the positive class."""
        return np.array([row.label != "supported" for row in self.rows], dtype=bool)

    @property
    def told(self) -> tuple[Label, ...]:
        """The labels as they count: `unclear` is right, so as good as any, on an open gold.

        A failure stays `unclear`, which is right nowhere.
        """
        return tuple(
            "hallucinated"
            if row.label == "unclear" == said.label and not said.is_failure
            else said.label
            for row, said in zip(self.rows, self.said, strict=True)
        )

    @property
    def right(self) -> Flags:
        """(n,) True where the label counts as right."""
        wanted = ("supported", "hallucinated")
        pairs = zip(self.told, self.wrong.tolist(), strict=True)
        return np.array([told == wanted[is_wrong] for told, is_wrong in pairs], dtype=bool)

    @property
    def exact(self) -> Flags:
        """(n,) True where the label is the gold one, of three; never for a failure."""
        pairs = zip(self.rows, self.said, strict=True)
        exact = [row.label == said.label and not said.is_failure for row, said in pairs]
        return np.array(exact, dtype=bool)

    @property
    def forced(self) -> Flags:
        """(n,) True where there is evidence, so that a label can be asked for."""
        return np.array([bool(row.documents or row.images) for row in self.rows], dtype=bool)

    @property
    def answered(self) -> Flags:
        """(n,) True where the label is not `unclear`."""
        return np.array([said.label != "unclear" for said in self.said], dtype=bool)

    @property
    def p(self) -> Numbers:
        """(n,) p_hallucinated; one half where the engine had none."""
        return np.array([PRIOR if s.p is None else s.p for s in self.said], dtype=np.float64)

    @property
    def groups(self) -> Places:
        """(n,) the number of each row's group; related rows share it."""
        return numbered([row.group for row in self.rows])

    @property
    def languages(self) -> Places:
        """(n,) the number of each row's language."""
        return numbered([row.language for row in self.rows])


def numbered(names: Sequence[str]) -> Places:
    """Each name's number, in order of first appearance."""
    known: Mapping[str, int] = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([known[name] for name in names], dtype=np.int64)


def always(label: Label, rows: Sequence[GoldRow]) -> Outcomes:
    """The trivial answer: every row gets the label, surely; no word is marked."""
    said = Prediction(label, 1.0 if label == "hallucinated" else 0.0, statements=(label,))
    return Outcomes(rows, [said] * len(rows))


def recorded(rows: Sequence[GoldRow]) -> Outcomes:
    """What the sets record of other detectors; they give no probability, so each verdict is sure.

    A verdict that could not be read is `unclear`.
    """
    verdicts: Mapping[Label, Prediction] = {
        "hallucinated": Prediction("hallucinated", 1.0),
        "supported": Prediction("supported", 0.0),
        "unclear": Prediction("unclear", cause=UNREAD),
    }
    return Outcomes(rows, [verdicts[row.recorded or "unclear"] for row in rows])


def mark_all(rows: Sequence[GoldRow]) -> Outcomes:
    """The trivial marking: every row is hallucinated, and so is every character of it."""
    said = []
    for row in rows:
        whole = (GoldSpan(0, len(row.response)),)
        said.append(Prediction("hallucinated", 1.0, whole, whole, shown=whole))
    return Outcomes(rows, said)
