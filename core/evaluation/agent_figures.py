"""Figures of what agents said on the way to a verdict: CAAR, FCR and HR (SC-MAKS 4.7).

- CAAR, the cross-agent agreement rate, asks how often agents come to one stance independently. A
  first answer is independent where its debater heard nobody: the manners `answer` and `detect`
  (core/roles.py). `caar` is the share of pairs of such answers of a row that take the same stance,
  its mean over rows; `caar_all` the share of rows in which all take one. A row counts where two
  debaters or more answered so; in CEDA, where each hears the one before, it is left out.
  `caar_chance` is what it would be had the same answers fallen on debaters and rows by lot: the
  chance that two of all these answers are alike.
- FCR, the factual consistency ratio (`fcr`): the share of rows of whose statements the judgement
  found each carried by the evidence. HR, the hallucination rate (`hr`): the share with a statement
  found hallucinated. Where a judgement labels no statements, its label stands for them. What stays
  open counts in neither, so that both may sum to less than 1.

FCR and HR say how the engine reads a set; how many of its rows people hold to be supported stands
in `golds`. Rows that broke off or were refused have no figure.
"""

from __future__ import annotations

import itertools

import numpy as np

from core.evaluation.outcomes import Numbers, Outcomes, Prediction
from core.progress import Progress
from core.records import Label, Stance

STANCES: tuple[Stance, ...] = ("supported", "hallucinated", "unclear")
INDEPENDENT = ("answer", "detect")


def first_answers(progress: Progress) -> tuple[Stance, ...]:
    """The stance of each debater's first answer that was given alone, in the debaters' order."""
    found: dict[str, Stance] = {}
    for turn in sorted(progress.turns, key=lambda turn: turn.number):
        if turn.manner in INDEPENDENT and turn.assigned is None:
            found.setdefault(turn.debater, turn.stance)
    return tuple(found.values())


def statement_labels(progress: Progress) -> tuple[Label, ...]:
    """What the judgement found of each statement; of the whole where it tells none apart."""
    judgement = progress.judgement
    return (judgement.statement_labels or (judgement.label,)) if judgement is not None else ()


def agent_rows(found: Outcomes) -> dict[str, Numbers]:
    """(n,) each figure of each row, NaN where the row has none; a figure of no row is left out."""
    rows = np.array([_row(one) for one in found.said], dtype=np.float64).reshape(-1, 4)
    named = zip(("caar", "caar_all", "fcr", "hr"), rows.T, strict=True)
    return {name: values for name, values in named if not np.isnan(values).all()}


def openings(found: Outcomes) -> Numbers:
    """(n, 3) how many first answers took each stance, of rows that have an agreement."""
    rows = [one.openings if len(one.openings) > 1 else () for one in found.said]
    counts = [[row.count(stance) for stance in STANCES] for row in rows]
    return np.array(counts, dtype=np.float64).reshape(-1, len(STANCES))


def _row(said: Prediction) -> tuple[float, float, float, float]:
    pair = whole = carried = wrong = np.nan
    if len(said.openings) > 1:
        pairs = [a == b for a, b in itertools.combinations(said.openings, 2)]
        pair, whole = sum(pairs) / len(pairs), float(all(pairs))
    if said.statements and not said.is_failure:
        carried = float(all(label == "supported" for label in said.statements))
        wrong = float("hallucinated" in said.statements)
    return pair, whole, carried, wrong
