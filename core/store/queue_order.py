"""How much items of the review queue teach: their order, and the reasons that people are shown.

Cases come first whose answers teach most. Uncertainty is the margin of p (Lewis and Gale 1994),
disagreement the vote entropy of a committee (Dagan and Engelson 1995), both known when a run ends.
Unlikeness to all that was answered, and to all that is asked before (greedy k-center; Sener and
Savarese 2018), keeps near copies apart. How the mix of the three was measured: docs/learning.md.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from core.schema.reviews import QueueItem
from core.store.sqlite import Repository

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.floating[Any]]

PRIORITY_BONUS = 2.0  # added to `teaches` of an item that a rule puts before all others
UNLIKE_THRESHOLD = 0.4  # unlikeness from which it is named as a reason
NEAR_COPY_COSINE = 0.95  # cosine of verdict texts from which they are near copies
UNJUDGED_UNSURENESS = 0.25  # unsureness of a case that the machine could not judge
LABEL_COUNT = 3  # labels that an agent can choose from
TEACHES_DIGITS = 6  # of `teaches` as stored
TEACHES_TOLERANCE = 1e-5  # smaller differences of `teaches` are ignored
UNLIKENESS_TOLERANCE = 0.01  # tolerance of unlikeness, for the rounding of `teaches`
RANDOM_REASON = "picked at random"
CHOSEN_REASON = "chosen"
UNLIKE_REASON, ALIKE_REASON = "unlike any answered", "much like another"
NEUTRAL_REASONS = (RANDOM_REASON, CHOSEN_REASON, UNLIKE_REASON, ALIKE_REASON)
ASSIGNED_REASON = "assigned to you by "
PEOPLE_DECIDE_REASON = "for people to decide, below what this project answers by itself"


@dataclass(frozen=True)
class CriterionShares:
    """The shares of the three criteria; together 1, so that a worth lies in [0, 1]."""

    unsure: float
    apart: float
    unlike: float


# Of the mixes that teach as fast as random order, the one that found most wrong verdicts.
CRITERION_SHARES = CriterionShares(0.45, 0.45, 0.1)


def compute_unsureness(p: float | None) -> float:
    """Return 1 where p is one half, 0 where it is 0 or 1."""
    return UNJUDGED_UNSURENESS if p is None else 1.0 - abs(2.0 * p - 1.0)


def vote_entropy(votes: Sequence[str]) -> float:
    """Return 0 if all votes agree, 1 if they differ as much as so many voters can."""
    if len(votes) < 2:
        return 0.0
    shares = [count / len(votes) for count in Counter(votes).values()]
    entropy = -sum(share * math.log(share) for share in shares)
    return max(0.0, entropy / math.log(min(LABEL_COUNT, len(votes))))


def compute_worth(unsure: float, apart: float, shares: CriterionShares = CRITERION_SHARES) -> float:
    """Return how much an answer teaches as far as its run tells; unlikeness is added on top."""
    return shares.unsure * unsure + shares.apart * apart


def compute_unlikeness(
    teaches: float, worth: float, shares: CriterionShares = CRITERION_SHARES
) -> float:
    """Return how unlike others an item was, from its `teaches` and its `worth`.

    Negative if it was ranked lower because it is nearly a copy.
    """
    above = teaches - (PRIORITY_BONUS if teaches >= PRIORITY_BONUS else 0.0) - worth
    return above / (shares.unlike or 1.0)


def rank_diverse_items(
    worths: Numbers,
    vectors: Numbers,
    known: Numbers,
    share: float,
    *,
    most: int | None = None,
    copies_wait: bool = True,
) -> tuple[list[int], list[float]]:
    """Return the order in which to ask, best first, and how much each item then teaches.

    `vectors` (n, width) are of unit length, `known` (m, width) those of what was answered. The best
    is taken, then the best of the others given the first, and so on: `share` times its unlikeness
    to all before it is added to an item's worth, and for near copies (cosine above
    `NEAR_COPY_COSINE`) the worth itself shrinks. So the values never rise along the order. A vector
    of zeros is neither like nor unlike anything.
    """
    import numpy as np

    is_zero = ~vectors.any(axis=1)
    near = np.clip(vectors @ known.T, 0.0, 1.0).max(axis=1, initial=0.0)
    order: list[int] = []
    teaches: list[float] = []
    waiting = np.ones(len(worths), dtype=bool)
    for _ in range(len(worths) if most is None else min(most, len(worths))):
        factor = np.minimum(1.0, (1.0 - near) / (1.0 - NEAR_COPY_COSINE)) if copies_wait else 1.0
        values = np.where(is_zero, worths, worths * factor + share * (1.0 - near))
        best = int(np.where(waiting, values, -np.inf).argmax())
        order.append(best)
        teaches.append(float(values[best]))
        waiting[best] = False
        near = np.maximum(near, np.clip(vectors @ vectors[best], 0.0, 1.0))
    return order, teaches


def explain_item(item: QueueItem) -> str:
    """Return why an item that would teach most comes up."""
    p, is_first = item.p, item.teaches >= PRIORITY_BONUS
    unlike = compute_unlikeness(
        item.teaches, compute_worth(compute_unsureness(p), item.disagreement)
    )
    reasons = {
        "the machine left it unclear": p is None and bool(item.label),
        "not judged by the machine": p is None and not item.label,
        f"unsure ({p or 0.0:.0%} likely hallucinated)": p is not None and abs(p - 0.5) <= 0.2,
        "agents disagree": item.disagreement > 0.0,
        UNLIKE_REASON: unlike >= UNLIKE_THRESHOLD,
    }
    words = [reason for reason, applies in reasons.items() if applies]
    if not words and not is_first:
        words.append("the machine is sure: little is learned")
    if unlike < -UNLIKENESS_TOLERANCE:
        words.append(ALIKE_REASON)
    if is_first:  # last: where a project answers little it is the same on every line
        words.append("for people to decide")
    return ", ".join(words)


def leave_neutral_reasons(why: str) -> str:
    """Return those of an item's reasons that say nothing about its verdict; empty if none do."""
    return ", ".join(
        reason
        for reason in why.split(", ")
        if reason in NEUTRAL_REASONS or reason.startswith(ASSIGNED_REASON)
    )


# SQL of `worth`, and of the bonus that puts an item before all others.
WORTH_SQL = (
    "(:unsure * CASE WHEN p IS NULL THEN :unjudged ELSE 1.0 - abs(2.0 * p - 1.0) END "
    "+ :apart * disagreement)"
)
PRIORITY_SQL = "CASE WHEN teaches >= :first THEN :first ELSE 0.0 END"
WORTH_PARAMETERS: dict[str, Any] = {
    "unsure": CRITERION_SHARES.unsure,
    "apart": CRITERION_SHARES.apart,
    "unjudged": UNJUDGED_UNSURENESS,
    "first": PRIORITY_BONUS,
}


@dataclass(frozen=True)
class PendingItem:
    """An item with its value `teaches`, whether it waits for answers or has enough of them."""

    case_id: str
    run_id: str | None
    teaches: float


class QueueOrder(Repository):
    """Reads and writes how much items teach; never their assignments or state."""

    def has(self, project_id: str, people: int, count: int) -> bool:
        """Return True if at least `count` items wait for an answer."""
        condition = "project_id = ? AND state = 'open' AND given < ? LIMIT 1 OFFSET ?"
        rows = self._db.conn.execute(
            f"SELECT 1 FROM items WHERE {condition}", [project_id, people, count - 1]
        )
        return rows.fetchone() is not None

    def waiting(self, project_id: str, people: int, most: int) -> list[PendingItem]:
        """Return the waiting items that teach most as far as their runs tell, best first."""
        rows = self._db.conn.execute(
            f"SELECT case_id, run_id, {WORTH_SQL} + {PRIORITY_SQL} AS worth FROM items WHERE "
            "project_id = :project AND state = 'open' AND given < :people "
            "ORDER BY worth DESC, added_at, case_id LIMIT :most",
            WORTH_PARAMETERS | {"project": project_id, "people": people, "most": most},
        )
        return [PendingItem(*row) for row in rows]

    def answered(self, project_id: str, people: int, most: int) -> list[PendingItem]:
        """Return the newest items that enough people have answered, or that were settled."""
        rows = self._db.conn.execute(
            "SELECT case_id, run_id, teaches FROM items WHERE project_id = ? AND "
            "((state = 'open' AND given >= ?) OR state = 'adjudicated') "
            "ORDER BY added_at DESC, case_id LIMIT ?",
            [project_id, people, most],
        )
        return [PendingItem(*row) for row in rows]

    def put(self, items: Iterable[PendingItem]) -> None:
        """Store how much these items teach; skip an item whose run has changed meanwhile."""
        self._db.conn.executemany(
            "UPDATE items SET teaches = :teaches "
            "WHERE case_id = :case AND run_id IS :run AND teaches != :teaches",
            [
                {
                    "case": item.case_id,
                    "run": item.run_id,
                    "teaches": round(item.teaches, TEACHES_DIGITS),
                }
                for item in items
            ],
        )

    def reset(self, project_id: str, but: Sequence[str], most: int) -> int:
        """Reset open items, except `but`, to the worth by their runs; return how many changed.

        At most `most` at a time, so that nobody who claims an item waits for all of a long queue.
        """
        cursor = self._db.conn.execute(
            f"UPDATE items SET teaches = round({WORTH_SQL}, {TEACHES_DIGITS}) + {PRIORITY_SQL} "
            f"WHERE case_id IN "
            "(SELECT case_id FROM items WHERE project_id = :project AND state = 'open' "
            f"AND abs(teaches - {WORTH_SQL} - {PRIORITY_SQL}) > {TEACHES_TOLERANCE} "
            "AND case_id NOT IN (SELECT value FROM json_each(:but)) LIMIT :most)",
            WORTH_PARAMETERS | {"project": project_id, "but": json.dumps(list(but)), "most": most},
        )
        return cursor.rowcount
