"""The review queue: items, who has them, their order, and the log of what was done with cases.

Who claims, submits or passes does so inside `Store.writing()`: one IMMEDIATE transaction looks
whether an item is free and takes it, so twenty people at once are never given the same place. An
item never goes to more people than the project wants.

Cases come first that teach most when people answer them. Uncertainty is the margin of p (Lewis and
Gale 1994), disagreement the vote entropy of a committee (Dagan and Engelson 1995), both known when
a run ends. Unlikeness to all that was answered, and to what is asked before (greedy k-center; Sener
and Savarese 2018), keeps near copies apart. How the three are mixed was measured: docs/learning.md.
"""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

from core.runtime.errors import ConflictError
from core.schema.records import Label
from core.schema.reviews import Assignment, AssignmentState, Handling, Item, ItemState
from core.store.sqlite import Repository, columns, first_row, from_json, insert, to_json, upsert

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Numbers = npt.NDArray[np.floating[Any]]

FIRST = 2.0  # from here on a rule puts an item before all others; it is added to what it teaches
DISTINCT = 0.4  # so unlike is worth saying
COPY = 0.95  # cosine of verdict texts from which on they ask nearly the same
UNJUDGED = 0.25  # how unsure a case counts that the machine could not judge
KINDS = 3  # labels that an agent can choose from


@dataclass(frozen=True)
class Shares:
    """How much each of the three counts; together 1, so that a worth lies in [0, 1]."""

    unsure: float
    apart: float
    unlike: float


# The most wrong verdicts found among the mixes that teach as fast as asking at random.
SHARES = Shares(0.45, 0.45, 0.1)


def unsureness(p: float | None) -> float:
    """1 where p is one half, 0 where it is sure."""
    return UNJUDGED if p is None else 1.0 - abs(2.0 * p - 1.0)


def vote_entropy(votes: Sequence[str]) -> float:
    """0 where all say the same, 1 where they are as far apart as so many voters can be."""
    if len(votes) < 2:
        return 0.0
    shares = [count / len(votes) for count in Counter(votes).values()]
    entropy = -sum(share * math.log(share) for share in shares)
    return max(0.0, entropy / math.log(min(KINDS, len(votes))))


def worth(unsure: float, apart: float, shares: Shares = SHARES) -> float:
    """What an answer teaches as far as its run tells; what is unlike comes on top."""
    return shares.unsure * unsure + shares.apart * apart


def unlikeness(teaches: float, told: float, shares: Shares = SHARES) -> float:
    """How unlike an item was found, from what it teaches and its `worth` (`told`).

    Below nought where it waits because it is nearly a copy.
    """
    above = teaches - (FIRST if teaches >= FIRST else 0.0) - told
    return above / (shares.unlike or 1.0)


def spread(
    worths: Numbers,
    vectors: Numbers,
    known: Numbers,
    share: float,
    *,
    most: int | None = None,
    copies_wait: bool = True,
) -> tuple[list[int], list[float]]:
    """The order in which to ask, best first, and what each then teaches.

    `vectors` (n, width) are of unit length, `known` (m, width) those of what was answered. The best
    is taken, then the best of the others given the first, and so on: `share` times its unlikeness
    to all before it is added to a worth, and of near copies (cosine above `COPY`) the worth itself
    shrinks. So what an item teaches never rises along the order. A vector of zeros is like nothing
    and unlike nothing.
    """
    import numpy as np

    silent = ~vectors.any(axis=1)
    near = np.clip(vectors @ known.T, 0.0, 1.0).max(axis=1, initial=0.0)
    order: list[int] = []
    teaches: list[float] = []
    waiting = np.ones(len(worths), dtype=bool)
    for _ in range(len(worths) if most is None else min(most, len(worths))):
        shrunk = np.minimum(1.0, (1.0 - near) / (1.0 - COPY)) if copies_wait else 1.0
        found = np.where(silent, worths, worths * shrunk + share * (1.0 - near))
        best = int(np.where(waiting, found, -np.inf).argmax())
        order.append(best)
        teaches.append(float(found[best]))
        waiting[best] = False
        near = np.maximum(near, np.clip(vectors @ vectors[best], 0.0, 1.0))
    return order, teaches


class QueueEvents(Repository):
    """The log of all cases."""

    def add(self, handling: Handling) -> None:
        """Append one; call inside `Store.writing()`."""
        insert(self._db, "handlings", columns(handling))

    def of_case(self, case_id: str) -> list[Handling]:
        """Everything that was done with the case, oldest first."""
        own = "SELECT * FROM handlings WHERE case_id = ? ORDER BY rowid"
        return self._all(Handling, own, case_id)


# As `worth`, with what puts an item before all others whatever it teaches.
WORTH = (
    "(:unsure * CASE WHEN p IS NULL THEN :unjudged ELSE 1.0 - abs(2.0 * p - 1.0) END "
    "+ :apart * disagreement)"
)
RULED = "CASE WHEN teaches >= :first THEN :first ELSE 0.0 END"
TERMS: dict[str, Any] = {
    "unsure": SHARES.unsure, "apart": SHARES.apart, "unjudged": UNJUDGED, "first": FIRST,
}  # fmt: skip
DIGITS = 6
SAME = 1e-5


@dataclass(frozen=True)
class PendingItem:
    """An item that waits for an answer, or has what the project wants, and what it teaches."""

    case_id: str
    run_id: str | None
    teaches: float


class QueueOrder(Repository):
    """Reads and writes what items teach; never who has them, nor their state."""

    def has(self, project_id: str, people: int, count: int) -> bool:
        """Whether so many items wait for an answer."""
        own = "project_id = ? AND state = 'open' AND given < ? LIMIT 1 OFFSET ?"
        rows = self._db.conn.execute(
            f"SELECT 1 FROM items WHERE {own}", [project_id, people, count - 1]
        )
        return rows.fetchone() is not None

    def waiting(self, project_id: str, people: int, most: int) -> list[PendingItem]:
        """The items that teach most as far as their runs tell, the most first."""
        rows = self._db.conn.execute(
            f"SELECT case_id, run_id, {WORTH} + {RULED} AS worth FROM items WHERE "
            "project_id = :project AND state = 'open' AND given < :people "
            "ORDER BY worth DESC, added_at, case_id LIMIT :most",
            TERMS | {"project": project_id, "people": people, "most": most},
        )
        return [PendingItem(*row) for row in rows]

    def answered(self, project_id: str, people: int, most: int) -> list[PendingItem]:
        """The newest items that enough people have answered, or that were settled."""
        rows = self._db.conn.execute(
            "SELECT case_id, run_id, teaches FROM items WHERE project_id = ? AND "
            "((state = 'open' AND given >= ?) OR state = 'adjudicated') "
            "ORDER BY added_at DESC, case_id LIMIT ?",
            [project_id, people, most],
        )
        return [PendingItem(*row) for row in rows]

    def put(self, items: Iterable[PendingItem]) -> None:
        """What these teach from now on; an item with another run by now keeps what that says."""
        self._db.conn.executemany(
            "UPDATE items SET teaches = :teaches "
            "WHERE case_id = :case AND run_id IS :run AND teaches != :teaches",
            [
                {"case": item.case_id, "run": item.run_id, "teaches": round(item.teaches, DIGITS)}
                for item in items
            ],
        )

    def reset(self, project_id: str, but: Sequence[str], most: int) -> int:
        """Open items but these teach what their runs tell; how many were changed, at most `most`.

        A long queue is taken in parts, so that nobody who claims an item waits for all of it.
        """
        cursor = self._db.conn.execute(
            f"UPDATE items SET teaches = round({WORTH}, {DIGITS}) + {RULED} WHERE case_id IN "
            "(SELECT case_id FROM items WHERE project_id = :project AND state = 'open' "
            f"AND abs(teaches - {WORTH} - {RULED}) > {SAME} "
            "AND case_id NOT IN (SELECT value FROM json_each(:but)) LIMIT :most)",
            TERMS | {"project": project_id, "but": json.dumps(list(but)), "most": most},
        )
        return cursor.rowcount


RESTS_ON = "items.case_id IN (SELECT c.id FROM cases c WHERE instr(c.payload, :source) > 0)"
AMONG = (
    "(items.case_id IN (SELECT value FROM json_each(:among)) "
    "OR items.run_id IN (SELECT value FROM json_each(:among)))"
)
# Also those whose answers were imported: they have no item in hand.
ANSWERED = "(SELECT count(DISTINCT s.author) FROM standing s WHERE s.case_id = items.case_id)"
HAS_GOLD = "EXISTS (SELECT :has_gold FROM golds g WHERE g.case_id = items.case_id)"
HAS_DONE = (
    "EXISTS (SELECT 1 FROM assignments m WHERE m.case_id = items.case_id "
    "AND m.person = :did_by AND m.state = :did)"
)
ROUNDED = 0.01  # how unlike an item is, as the store rounds what it teaches
AT_RANDOM = "picked at random"
FOR_PEOPLE = "for people to decide, below what this project answers by itself"


@dataclass(frozen=True)
class Rules:
    """How a project shares its work: people for each item, time in hand, random share in [0, 1]."""

    people: int = 1
    seconds: float = 1800.0
    random_share: float = 0.2


@dataclass(frozen=True)
class ItemFilter:
    """What the queue shows or gives; empty fields do not filter. Ages are in seconds.

    `given_from` and `given_below` bound how many people have answered; `differ`: whether they say
    different things. `person_did` is what that person made of it; `among` are ids of cases or runs.
    `has_gold`: a right answer is known.
    """

    label: str = ""
    language: str = ""
    source_id: str = ""
    p_from: float | None = None
    p_to: float | None = None
    disagreement_from: float = 0.0
    older_than: float | None = None
    given_from: int = 0
    given_below: int | None = None
    differ: bool | None = None
    person: str = ""
    person_did: AssignmentState | Literal[""] = ""
    among: tuple[str, ...] | None = None
    has_gold: bool = False

    def clauses(self, now: float) -> tuple[str, dict[str, Any]]:
        """SQL that every item fits, and its values."""
        differ = None if self.differ is None else int(self.differ)
        among = None if self.among is None else json.dumps(self.among)
        added = None if self.older_than is None else now - self.older_than
        limits: tuple[tuple[str, str, Any], ...] = (
            ("items.label = :label", "label", self.label or None),
            ("items.language = :language", "language", self.language or None),
            (RESTS_ON, "source", f'"{self.source_id}"' if self.source_id else None),
            ("items.p >= :p_from", "p_from", self.p_from),
            ("items.p <= :p_to", "p_to", self.p_to),
            ("items.disagreement >= :apart", "apart", self.disagreement_from or None),
            ("items.added_at <= :added", "added", added),
            (f"{ANSWERED} >= :given_from", "given_from", self.given_from or None),
            ("items.given < :given_below", "given_below", self.given_below),
            ("(items.differ > 0) = :differ", "differ", differ),
            (HAS_DONE, "did", self.person_did or None),
            ("1", "did_by", self.person if self.person_did else None),
            (AMONG, "among", among),
            (HAS_GOLD, "has_gold", self.has_gold or None),
        )
        found = [limit for limit in limits if limit[2] is not None]
        return " AND ".join(["1", *(f[0] for f in found)]), {name: v for _, name, v in found}


EVERYTHING = ItemFilter()


def why_of(item: Item) -> str:
    """Why an item that would teach most comes up."""
    p, is_first = item.p, item.teaches >= FIRST
    unlike = unlikeness(item.teaches, worth(unsureness(p), item.disagreement))
    said = {
        "not judged by the machine": p is None,
        f"unsure (p {p or 0.0:.2f})": p is not None and abs(p - 0.5) <= 0.2,
        "agents disagree": item.disagreement > 0.0,
        "unlike any answered": unlike >= DISTINCT,
    }
    words = [reason for reason, is_so in said.items() if is_so]
    if not words and not is_first:
        words.append("the machine is sure: little is learned")
    words += ["much like another"] if unlike < -ROUNDED else []
    # last: where a project answers little it is the same on every line
    return ", ".join([*words, *(["for people to decide"] if is_first else [])])


COLUMNS = (
    "case_id", "project_id", "run_id", "added_at", "label", "p", "disagreement", "language",
    "teaches", "given", "state", "differ", "stances",
)  # fmt: skip
# Taken by somebody else: given already, or in hands whose time has not run out.
TAKEN = (
    "(SELECT count(*) FROM assignments a WHERE a.case_id = items.case_id AND a.person != :person "
    "AND (a.state = 'submitted' OR (a.state = 'claimed' AND a.until > :now)))"
)
# A person gets no item twice, but one that they had in hand and whose time ran out.
NOT_MINE = (
    "NOT EXISTS (SELECT 1 FROM assignments a WHERE a.case_id = items.case_id "
    "AND a.person = :person AND NOT (a.state = 'claimed' AND a.until <= :now))"
)


class Queue(Repository):
    """Items and who has them."""

    def add(self, item: Item, lot: float | None = None) -> None:
        """Put a case into the queue, or renew what its newest run says; its state stays.

        `lot` in [0, 1) decides when it is drawn at random.
        """
        values: dict[str, Any] = {name: getattr(item, name) for name in COLUMNS}
        values["stances"] = to_json(item.stances)
        values["lot"] = random.random() if lot is None else lot
        renewed = ("run_id", "label", "p", "disagreement", "teaches", "stances")
        upsert(self._db, "items", values, "case_id", renewed)

    def restore(self, item: Item, people: Sequence[Assignment]) -> None:
        """Put an item back as it was elsewhere, with who has or had it."""
        self.add(item)
        for assignment in people:
            self._put(assignment)

    def get(self, case_id: str) -> Item | None:
        """The item of a case, or None where it is not in the queue."""
        row = first_row(self._db, "SELECT * FROM items WHERE case_id = ?", [case_id])
        return _item(row) if row else None

    def claim(
        self,
        project_id: str,
        person: str,
        rules: Rules,
        now: float,
        wanted: ItemFilter = EVERYTHING,
        *,
        is_random: bool = False,
    ) -> Assignment | None:
        """Give the person the next item; None where none is left. Call inside `writing()`.

        What they have in hand comes first; then what would teach most, or at random.
        """
        held = self.in_hand(project_id, person, now)
        if held is not None:
            return held
        clauses, values = wanted.clauses(now)
        order = "lot" if is_random else "teaches DESC, added_at"
        row = self._first(
            f"SELECT * FROM items WHERE project_id = :project AND state = 'open' AND {clauses} "
            f"AND given < :people AND {NOT_MINE} AND {TAKEN} < :people ORDER BY {order} LIMIT 1",
            values | {"project": project_id, "person": person, "now": now, "people": rules.people},
        )
        if row is None:
            return None
        why = AT_RANDOM if is_random else why_of(_item(row))
        found = Assignment(row["case_id"], person, "claimed", why, now, now + rules.seconds)
        self._put(found)
        return found

    def take(
        self, case_id: str, person: str, rules: Rules, now: float, why: str = "chosen"
    ) -> Assignment:
        """Give the person this very item; call inside `writing()`.

        Raises ConflictError: it is not in the queue, is settled, or enough others have it.
        """
        mine = self.of(case_id, person)
        if mine is not None and mine.state != "claimed":
            return mine
        row = self._first(
            f"SELECT items.*, {TAKEN} AS taken FROM items WHERE case_id = :case",
            {"case": case_id, "person": person, "now": now},
        )
        if row is None or row["state"] == "adjudicated":
            raise ConflictError("This case is not in the queue, or was settled; take the next one.")
        holds = mine is not None and mine.until > now
        if row["taken"] >= rules.people and not holds:  # nobody is sent away from their work
            raise ConflictError(
                "Others are on this case already, as many as the project wants; take the next one."
            )
        found = Assignment(case_id, person, "claimed", why, now, now + rules.seconds)
        if mine is not None:  # its time is renewed
            found = replace(found, why=mine.why, claimed_at=mine.claimed_at)
        self._put(found)
        return found

    def end(self, case_id: str, person: str, state: AssignmentState, now: float) -> None:
        """The person has submitted, skipped or flagged it. Call inside `writing()`.

        What is submitted counts even if its time had run out: no work is thrown away. Raises
        ConflictError: what they have submitted is to be passed on: it is taken back first.
        """
        mine = self.of(case_id, person)
        if mine is not None and mine.state == "submitted" != state:
            raise ConflictError("You have submitted this case; take your answer back first.")
        began = mine or Assignment(case_id, person, "claimed", "chosen", now, now)
        before = mine.state if mine else ""
        self._put(Assignment(case_id, person, state, began.why, began.claimed_at, began.until, now))
        step = int(state == "submitted") - int(before == "submitted")
        self._db.execute(
            "UPDATE items SET given = given + ?, state = CASE WHEN ? = 'flagged' AND "
            "state = 'open' THEN 'flagged' ELSE state END WHERE case_id = ?",
            [step, state, case_id],
        )

    def again(self, case_id: str, person: str, rules: Rules, now: float, why: str = "") -> None:
        """Give an item that the person had ended back into their hands. Call inside `writing()`."""
        mine = self.of(case_id, person)
        if mine is None or mine.state == "claimed":
            return
        why, until = why or mine.why, now + rules.seconds
        self._put(replace(mine, state="claimed", why=why, until=until, ended_at=None))
        self._db.execute(
            "UPDATE items SET given = given - ?, state = CASE WHEN state = 'flagged' AND NOT "
            "EXISTS (SELECT 1 FROM assignments a WHERE a.case_id = items.case_id AND "
            "a.state = 'flagged') THEN 'open' ELSE state END WHERE case_id = ?",
            [int(mine.state == "submitted"), case_id],
        )

    def unflag(self, case_id: str, now: float) -> None:
        """Whoever flagged the item may get it again; call inside `writing()`."""
        self._db.execute(
            "UPDATE assignments SET state = 'claimed', until = ?, ended_at = NULL "
            "WHERE case_id = ? AND state = 'flagged'",
            [now, case_id],
        )

    def hand_over(self, old: str, new: str) -> None:
        """What one name has in hand is the other's, who has not had it before."""
        self._db.execute(
            "UPDATE OR IGNORE assignments SET person = ? WHERE person = ? AND state = 'claimed'",
            [new, old],
        )

    def set_differ(self, case_id: str, differ: int) -> None:
        """Keep how people's answers to an item differ."""
        self._db.execute("UPDATE items SET differ = ? WHERE case_id = ?", [differ, case_id])

    def set_state(self, case_id: str, state: ItemState) -> None:
        """Settle an item, or open it again."""
        self._db.execute("UPDATE items SET state = ? WHERE case_id = ?", [state, case_id])

    def of(self, case_id: str, person: str) -> Assignment | None:
        """What the person has to do with the item."""
        own = "SELECT * FROM assignments WHERE case_id = ? AND person = ?"
        return next(iter(self._all(Assignment, own, case_id, person)), None)

    def people_of(self, case_id: str) -> list[Assignment]:
        """Everybody who has or had the item, by name."""
        own = "SELECT * FROM assignments WHERE case_id = ? ORDER BY person"
        return self._all(Assignment, own, case_id)

    def in_hand(self, project_id: str, person: str, now: float) -> Assignment | None:
        """The item that the person has claimed last and not ended."""
        row = self._first(
            # CROSS: what one person has in hand is little; SQLite would begin with all open items.
            "SELECT a.* FROM assignments a CROSS JOIN items USING (case_id) WHERE "
            "a.person = :person "
            "AND a.state = 'claimed' AND a.until > :now AND items.project_id = :project "
            "AND items.state = 'open' ORDER BY a.claimed_at DESC LIMIT 1",
            {"person": person, "now": now, "project": project_id},
        )
        return Assignment(**row) if row else None

    def counts(self, project_id: str, rules: Rules, now: float) -> dict[str, int]:
        """Items by state: pending, in hand, done (enough people), flagged, adjudicated."""
        row = self._first(
            "SELECT sum(state = 'flagged') AS flagged, sum(state = 'adjudicated') AS adjudicated, "
            "sum(state = 'open' AND given >= :people) AS done, "
            "sum(state = 'open' AND given < :people) AS pending FROM items "
            "WHERE project_id = :project",
            {"project": project_id, "people": rules.people},
        )
        held = self._first(
            "SELECT count(*) AS n FROM assignments a CROSS JOIN items USING (case_id) WHERE "
            "a.state = 'claimed' AND a.until > :now AND items.project_id = :project "
            "AND items.state = 'open'",
            {"now": now, "project": project_id},
        )
        found = {name: int(value or 0) for name, value in (row or {}).items()}
        return found | {"in_hand": int(held["n"]) if held else 0}

    def counts_of(self, project_id: str, person: str) -> dict[AssignmentState, int]:
        """How many items the person has in each state."""
        rows = self._db.query(
            "SELECT a.state AS state, count(*) AS n FROM assignments a JOIN items USING (case_id) "
            "WHERE a.person = ? AND items.project_id = ? GROUP BY a.state",
            [person, project_id],
        )
        found = {row["state"]: int(row["n"]) for row in rows}
        return {state: found.get(state, 0) for state in get_args(AssignmentState)}

    def count(
        self, project_id: str, wanted: ItemFilter, states: Sequence[ItemState], now: float
    ) -> int:
        """How many items are in these states."""
        where, values = _where(project_id, wanted, states, now)
        total = self._first(f"SELECT count(*) AS n {where}", values)
        return int(total["n"]) if total else 0

    def page(
        self, project_id: str, wanted: ItemFilter, states: Sequence[ItemState], *,
        limit: int, offset: int, now: float,
    ) -> tuple[list[Item], int]:  # fmt: skip
        """Items in these states in the order in which they would be given, and how many in all."""
        where, values = _where(project_id, wanted, states, now)
        rows = self._db.conn.execute(
            f"SELECT {', '.join(COLUMNS)} {where} ORDER BY teaches DESC, added_at "
            "LIMIT :limit OFFSET :offset",
            values | {"limit": limit, "offset": offset},
        )
        items = [_item(dict(zip(COLUMNS, row, strict=True))) for row in rows]
        return items, self.count(project_id, wanted, states, now)

    def _put(self, found: Assignment) -> None:
        upsert(self._db, "assignments", columns(found), "case_id, person")

    def _first(self, query: str, values: dict[str, Any]) -> dict[str, Any] | None:
        cursor = self._db.conn.execute(query, values)
        names = [column[0] for column in cursor.description]
        row = cursor.fetchone()
        return dict(zip(names, row, strict=True)) if row else None


def _item(row: dict[str, Any]) -> Item:
    values = {name: row[name] for name in COLUMNS}
    stances = from_json(tuple[tuple[str, Label], ...], row["stances"] or "[]")
    return Item(**values | {"stances": stances})


def _where(
    project_id: str, wanted: ItemFilter, states: Sequence[ItemState], now: float
) -> tuple[str, dict[str, Any]]:
    clauses, values = wanted.clauses(now)
    marks = ", ".join(f":state{n}" for n in range(len(states)))
    values |= {f"state{n}": state for n, state in enumerate(states)} | {"project": project_id}
    return f"FROM items WHERE project_id = :project AND state IN ({marks}) AND {clauses}", values
