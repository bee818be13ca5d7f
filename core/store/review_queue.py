"""The review queue: items, assignments, and the log of actions on cases.

Claiming, submitting and skipping happen inside `Store.writing()`: one IMMEDIATE transaction checks
that an item is free and takes it, so that of twenty concurrent people no two are given the same
place. An item never goes to more people than the project wants.
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from core.runtime.errors import ConflictError
from core.schema.records import Label, Project
from core.schema.reviews import Assignment, AssignmentState, ItemState, QueueEvent, QueueItem
from core.store.ground_truth import STANDING_GOLD_SQL
from core.store.queue_order import ASSIGNED_REASON, CHOSEN_REASON, RANDOM_REASON, explain_item
from core.store.sqlite import (
    Repository,
    fetch_first_row,
    from_json,
    get_columns,
    insert_row,
    to_json,
    upsert_row,
)

ITEM_COLUMNS = (
    "case_id", "project_id", "run_id", "added_at", "label", "p", "disagreement", "language",
    "teaches", "given", "state", "differ", "stances",
)  # fmt: skip


class QueueEvents(Repository):
    """The log of actions on all cases."""

    def add(self, event: QueueEvent) -> None:
        """Append one entry; call inside `Store.writing()`."""
        insert_row(self._db, "handlings", get_columns(event))

    def of_case(self, case_id: str) -> list[QueueEvent]:
        """Return all log entries of the case, oldest first."""
        query = "SELECT * FROM handlings WHERE case_id = ? ORDER BY rowid"
        return self._all(QueueEvent, query, case_id)


USES_SOURCE_SQL = "items.case_id IN (SELECT c.id FROM cases c WHERE instr(c.payload, :source) > 0)"
AMONG_IDS_SQL = (
    "(items.case_id IN (SELECT value FROM json_each(:among)) "
    "OR items.run_id IN (SELECT value FROM json_each(:among)))"
)
# The answers that `decide_truth` goes by: unlike `given` also of those who are to answer anew.
ANSWER_COUNT_SQL = (
    "(SELECT count(DISTINCT s.author) FROM standing s WHERE s.case_id = items.case_id)"
)
HAS_GOLD_SQL = (
    "EXISTS (SELECT 1 FROM golds g WHERE g.case_id = items.case_id "
    f"AND {STANDING_GOLD_SQL}) = :has_gold"
)
# Words as written, or with small letters for the capitals that SQLite knows.
HAS_WORDS_SQL = (
    "EXISTS (SELECT 1 FROM cases c WHERE c.id = items.case_id AND NOT EXISTS "
    "(SELECT 1 FROM json_each(:words) w "
    "WHERE instr(c.response || ' ' || c.question, w.value) = 0 "
    "AND instr(lower(c.response || ' ' || c.question), lower(w.value)) = 0))"
)
# Items that no run was ever started over.
UNCHECKED_SQL = (
    "items WHERE project_id = :project AND run_id IS NULL "
    "AND NOT EXISTS (SELECT 1 FROM runs WHERE runs.case_id = items.case_id)"
)
IS_AMONG_SQL = "items.case_id IN (SELECT value FROM json_each(:case_ids))"
HAS_ENDED_SQL = (
    "EXISTS (SELECT 1 FROM assignments m WHERE m.case_id = items.case_id "
    "AND m.person = :did_by AND m.state = :did)"
)


@dataclass(frozen=True)
class QueueRules:
    """A project's rules: people per item, seconds in hand, share of random items in [0, 1]."""

    people: int = 1
    seconds: float = 1800.0
    random_share: float = 0.2


def build_queue_rules(project: Project) -> QueueRules:
    """Return the project's rules in the form that the queue expects."""
    return QueueRules(project.people_each, 60.0 * project.hold_minutes, project.random_share)


@dataclass(frozen=True)
class ItemFilter:
    """A filter of the queue; empty fields do not filter. Ages are in seconds.

    `answers_from` is at least how many answers stand, `given_below` bounds `QueueItem.given`;
    `differ`: whether answers differ, `differ_from`: at least how much. `person_did` is how `person`
    ended the item; `among` are ids of cases or runs. `has_gold`: whether a right answer counts.
    `words` are a search: all of them stand in response or question. `case_ids` are the cases to
    choose from.
    """

    label: str = ""
    language: str = ""
    source_id: str = ""
    p_from: float | None = None
    p_to: float | None = None
    disagreement_from: float = 0.0
    older_than: float | None = None
    answers_from: int = 0
    given_below: int | None = None
    differ: bool | None = None
    differ_from: int = 0
    person: str = ""
    person_did: AssignmentState | Literal[""] = ""
    among: tuple[str, ...] | None = None
    has_gold: bool | None = None
    words: str = ""
    case_ids: tuple[str, ...] | None = None

    def clauses(self, now: float) -> tuple[str, dict[str, Any]]:
        """Return an SQL condition that matching items meet, and its values."""
        differ = None if self.differ is None else int(self.differ)
        among = None if self.among is None else json.dumps(self.among)
        case_ids = None if self.case_ids is None else json.dumps(self.case_ids)
        added = None if self.older_than is None else now - self.older_than
        limits: tuple[tuple[str, str, Any], ...] = (
            ("items.label = :label", "label", self.label or None),
            ("items.language = :language", "language", self.language or None),
            (USES_SOURCE_SQL, "source", f'"{self.source_id}"' if self.source_id else None),
            ("items.p >= :p_from", "p_from", self.p_from),
            ("items.p <= :p_to", "p_to", self.p_to),
            ("items.disagreement >= :apart", "apart", self.disagreement_from or None),
            ("items.added_at <= :added", "added", added),
            (f"{ANSWER_COUNT_SQL} >= :answers_from", "answers_from", self.answers_from or None),
            ("items.given < :given_below", "given_below", self.given_below),
            ("(items.differ > 0) = :differ", "differ", differ),
            (HAS_ENDED_SQL, "did", self.person_did or None),
            ("1", "did_by", self.person if self.person_did else None),
            (AMONG_IDS_SQL, "among", among),
            ("items.differ >= :differ_from", "differ_from", self.differ_from or None),
            (HAS_GOLD_SQL, "has_gold", None if self.has_gold is None else int(self.has_gold)),
            (HAS_WORDS_SQL, "words", json.dumps(self.words.split()) if self.words else None),
            (IS_AMONG_SQL, "case_ids", case_ids),
        )
        active = [limit for limit in limits if limit[2] is not None]
        clauses = " AND ".join(["1", *(clause for clause, _, _ in active)])
        return clauses, {name: value for _, name, value in active}


NO_ITEM_FILTER = ItemFilter()
# How people's newest answers differ, as an item keeps it.
NO_MAJORITY, LABELS_DIFFER, MARKS_DIFFER = 3, 2, 1
DISPUTED_STATES: tuple[ItemState, ...] = ("open", "flagged")


def build_disputed_filter(project: Project) -> ItemFilter:
    """Return the filter of the cases that `decide_truth` calls disputed by the project's rule."""
    limit = LABELS_DIFFER if project.truth_rule == "unanimity" else NO_MAJORITY
    return ItemFilter(differ_from=limit, answers_from=project.people_each, has_gold=False)


# The one rule for how many others take a place of an item, of which there are as many as people are
# wanted: those who have it in hand, and those who have answered it, be it in a file, and are not to
# answer anew.
TAKEN_COUNT_SQL = (
    "(SELECT count(*) FROM (SELECT a.person FROM assignments a WHERE a.case_id = items.case_id "
    "AND (a.state = 'submitted' OR (a.state = 'claimed' AND a.until > :now)) "
    "UNION SELECT s.author FROM standing s WHERE s.case_id = items.case_id AND NOT EXISTS "
    "(SELECT 1 FROM assignments b WHERE b.case_id = s.case_id AND b.person = s.author "
    "AND b.state = 'claimed')) WHERE person != :person)"
)
HAS_PART_SQL = (
    "(EXISTS (SELECT 1 FROM standing s WHERE s.case_id = :case AND s.author = :person) OR EXISTS "
    "(SELECT 1 FROM assignments a WHERE a.case_id = :case AND a.person = :person))"
)
# A person gets no item twice, unless their claim of it expired.
NOT_ASSIGNED_SQL = (
    "NOT EXISTS (SELECT 1 FROM assignments a WHERE a.case_id = items.case_id "
    "AND a.person = :person AND NOT (a.state = 'claimed' AND a.until <= :now))"
)
# A lead assigned the item to somebody who has not ended it.
WAITING_SQL = "a.state = 'claimed' AND a.assigned_by != ''"
IS_ASSIGNED_SQL = (
    f"EXISTS (SELECT 1 FROM assignments a WHERE a.case_id = items.case_id AND {WAITING_SQL})"
)
ASSIGNED_TO_ME_SQL = (
    "items.case_id IN (SELECT a.case_id FROM assignments a WHERE a.person = :person "
    f"AND {WAITING_SQL})"
)


class ReviewQueue(Repository):
    """Items and their assignments."""

    def add(self, item: QueueItem, lot: float | None = None) -> None:
        """Add a case to the queue, or update its newest run's results; its state stays.

        `lot` in [0, 1) decides when it is drawn at random.
        """
        values: dict[str, Any] = {name: getattr(item, name) for name in ITEM_COLUMNS}
        values["stances"] = to_json(item.stances)
        values["lot"] = random.random() if lot is None else lot
        renewed = ("run_id", "label", "p", "disagreement", "teaches", "stances")
        upsert_row(self._db, "items", values, "case_id", renewed)

    def restore(self, item: QueueItem, people: Sequence[Assignment]) -> None:
        """Restore an item as it was elsewhere, with its assignments."""
        self.add(item)
        for assignment in people:
            self._save_assignment(assignment)
        self._count_answers([item.case_id])

    def get(self, case_id: str) -> QueueItem | None:
        """Return the item of a case, or None if it is not in the queue."""
        row = fetch_first_row(self._db, "SELECT * FROM items WHERE case_id = ?", [case_id])
        return _parse_item(row) if row else None

    def claim(
        self,
        project_id: str,
        person: str,
        rules: QueueRules,
        now: float,
        wanted: ItemFilter = NO_ITEM_FILTER,
        *,
        is_random: bool = False,
    ) -> Assignment | None:
        """Give the person the next item; None if none is left. Call inside `writing()`.

        An item that they have in hand comes first, then those assigned to them, then the one that
        teaches most, or a random one. What is assigned to others is theirs alone until they end it.
        """
        held = self.in_hand(project_id, person, now)
        if held is not None:
            return held
        order = "ORDER BY lot" if is_random else "ORDER BY teaches DESC, added_at"
        row = self._find_claimable(project_id, person, rules, now, wanted, order)
        if row is None:
            return None
        why = RANDOM_REASON if is_random else explain_item(_parse_item(row))
        assignment = Assignment(row["case_id"], person, "claimed", why, now, now + rules.seconds)
        mine = self.of(row["case_id"], person)
        if mine is not None and mine.assigned_by:
            assignment = replace(assignment, why=mine.why, assigned_by=mine.assigned_by)
        self._save_assignment(assignment)
        return assignment

    def has_next(
        self, project_id: str, person: str, rules: QueueRules, now: float, wanted: ItemFilter
    ) -> bool:
        """Return True if `claim` would give the person an item."""
        is_held = self.in_hand(project_id, person, now) is not None
        return is_held or bool(self._find_claimable(project_id, person, rules, now, wanted))

    def _find_claimable(
        self,
        project_id: str,
        person: str,
        rules: QueueRules,
        now: float,
        wanted: ItemFilter,
        order: str = "",
    ) -> dict[str, Any] | None:
        clauses, values = wanted.clauses(now)
        values |= {"project": project_id, "person": person, "now": now, "people": rules.people}
        rows = (  # two queries, so that each follows an index
            self._first(
                f"SELECT * FROM items WHERE project_id = :project AND state = 'open' AND {clauses} "
                f"AND {whose} AND given < :people AND {NOT_ASSIGNED_SQL} "
                f"AND {TAKEN_COUNT_SQL} < :people {order} LIMIT 1",
                values,
            )
            for whose in (ASSIGNED_TO_ME_SQL, f"NOT {IS_ASSIGNED_SQL}")
        )
        return next(filter(None, rows), None)

    def take(
        self, case_id: str, person: str, rules: QueueRules, now: float, why: str = CHOSEN_REASON
    ) -> Assignment:
        """Give the person this particular item; call inside `writing()`.

        Raises ConflictError: it is not in the queue, is settled, assigned to others, or enough
        others have it.
        """
        mine = self.of(case_id, person)
        if mine is not None and mine.state != "claimed":
            return mine
        row = self._first(
            f"SELECT items.*, {TAKEN_COUNT_SQL} AS taken FROM items WHERE case_id = :case",
            {"case": case_id, "person": person, "now": now},
        )
        if row is None or row["state"] == "adjudicated":
            raise ConflictError("This case is not in the queue, or was settled; take the next one.")
        holds = mine is not None and mine.until > now
        if row["taken"] >= rules.people and not holds:  # nobody loses an item they are working on
            is_answered = row["given"] >= rules.people
            did = "have answered this case" if is_answered else "are on this case"
            raise ConflictError(
                f"Others {did} already, as many as the project wants; take the next one."
            )
        waiting = [each.person for each in self.people_of(case_id) if each.is_waiting]
        if waiting and person not in waiting and not holds:
            raise ConflictError(
                f"This case is assigned to {' and '.join(waiting)}; take the next one."
            )
        assignment = Assignment(case_id, person, "claimed", why, now, now + rules.seconds)
        if mine is not None:  # renew its time
            assignment = replace(mine, until=now + rules.seconds)
        self._save_assignment(assignment)
        return assignment

    def assign(
        self, case_ids: Sequence[str], person: str, by: str, rules: QueueRules, now: float
    ) -> int:
        """Assign items to a person; return how many. Call inside `writing()`.

        Those are left out that are not open, have enough answers, or were this person's before.
        """
        cursor = self._db.execute(
            "INSERT INTO assignments (case_id, person, state, why, claimed_at, until, assigned_by) "
            "SELECT case_id, :person, 'claimed', :why, :now, :now, :by FROM items "
            "WHERE case_id IN (SELECT value FROM json_each(:cases)) AND state = 'open' "
            "AND given < :people ON CONFLICT (case_id, person) DO UPDATE SET why = excluded.why, "
            "assigned_by = excluded.assigned_by WHERE state = 'claimed' AND assigned_by = ''",
            {
                "cases": json.dumps(list(case_ids)),
                "person": person,
                "why": f"{ASSIGNED_REASON}{by}",
                "by": by,
                "now": now,
                "people": rules.people,
            },
        )
        self._count_answers(case_ids)
        return cursor.rowcount

    def release(self, case_ids: Sequence[str]) -> int:
        """Free items that were assigned and not ended for everybody; return how many."""
        cursor = self._db.execute(
            "UPDATE assignments SET assigned_by = '' WHERE state = 'claimed' "
            "AND assigned_by != '' AND case_id IN (SELECT value FROM json_each(?))",
            [json.dumps(list(case_ids))],
        )
        return cursor.rowcount

    def count_assigned(self, project_id: str, people: int) -> dict[str, int]:
        """Count, for each person, the assigned items that fewer than `people` have answered."""
        rows = self._db.query(
            "SELECT a.person AS person, count(*) AS n FROM assignments a "
            "INDEXED BY assignments_assigned CROSS JOIN items USING "
            f"(case_id) WHERE {WAITING_SQL} AND items.project_id = ? AND items.state = 'open' "
            "AND items.given < ? GROUP BY a.person ORDER BY a.person",
            [project_id, people],
        )
        return {row["person"]: int(row["n"]) for row in rows}

    def end(self, case_id: str, person: str, state: AssignmentState, now: float) -> None:
        """Record that the person submitted, skipped or flagged the item. Call inside `writing()`.

        A submission counts even after its time has run out: no work is thrown away. Raises
        ConflictError: they submitted it and now want to skip or flag it, without taking their
        answer back first.
        """
        mine = self.of(case_id, person)
        if mine is not None and mine.state == "submitted" != state:
            raise ConflictError("You have submitted this case; take your answer back first.")
        assignment = mine or Assignment(case_id, person, "claimed", CHOSEN_REASON, now, now)
        self._save_assignment(replace(assignment, state=state, ended_at=now))
        if state == "flagged":
            self._db.execute(
                "UPDATE items SET state = 'flagged' WHERE case_id = ? AND state = 'open'", [case_id]
            )

    def again(
        self, case_id: str, person: str, rules: QueueRules, now: float, why: str = ""
    ) -> None:
        """Give an item that the person had ended back into their hands. Call inside `writing()`."""
        previous = self.of(case_id, person)
        if previous is None or previous.state == "claimed":
            return
        renewed = replace(previous, state="claimed", until=now + rules.seconds, ended_at=None)
        self._save_assignment(replace(renewed, why=why or previous.why))
        self._db.execute(
            "UPDATE items SET state = 'open' WHERE case_id = ? AND state = 'flagged' AND NOT "
            "EXISTS (SELECT 1 FROM assignments a WHERE a.case_id = items.case_id AND "
            "a.state = 'flagged')",
            [case_id],
        )

    def unflag(self, case_id: str, now: float) -> None:
        """Let those who flagged the item get it again; call inside `writing()`."""
        self._db.execute(
            "UPDATE assignments SET state = 'claimed', until = ?, ended_at = NULL "
            "WHERE case_id = ? AND state = 'flagged'",
            [now, case_id],
        )
        self._count_answers([case_id])

    def hand_over(self, old: str, new: str) -> None:
        """Move a person's claimed items to another name that has not had them before."""
        self._db.execute(
            "UPDATE OR IGNORE assignments SET person = ? WHERE person = ? AND state = 'claimed'",
            [new, old],
        )

    def update_answers(self, case_id: str, differ: int) -> None:
        """Store how people's answers to an item differ, and count them."""
        self._db.execute("UPDATE items SET differ = ? WHERE case_id = ?", [differ, case_id])
        self._count_answers([case_id])

    def set_state(self, case_id: str, state: ItemState) -> None:
        """Settle an item, or open it again."""
        self._db.execute("UPDATE items SET state = ? WHERE case_id = ?", [state, case_id])

    def is_full(self, case_id: str, person: str, people: int, now: float) -> bool:
        """Return True if others have answered a case, as many as wanted, and it is none of theirs.

        Whoever was given the item or answered before may answer: no work is thrown away.
        """
        row = self._first(
            f"SELECT {TAKEN_COUNT_SQL} >= :people AND NOT {HAS_PART_SQL} AS is_full "
            "FROM (SELECT :case AS case_id) AS items",  # it may be no item yet
            {"case": case_id, "person": person, "people": people, "now": now},
        )
        return bool(row and row["is_full"])

    def answered_by(self, person: str, case_ids: Iterable[str]) -> set[str]:
        """Return those of the cases that the person has answered, and not taken it back."""
        rows = self._db.conn.execute(
            "SELECT DISTINCT case_id FROM standing WHERE author = :person "
            "AND case_id IN (SELECT value FROM json_each(:among))",
            {"person": person, "among": json.dumps(list(case_ids))},
        )
        return {case_id for (case_id,) in rows}

    def of(self, case_id: str, person: str) -> Assignment | None:
        """Return the person's assignment of the item, or None."""
        query = "SELECT * FROM assignments WHERE case_id = ? AND person = ?"
        return next(iter(self._all(Assignment, query, case_id, person)), None)

    def people_of(self, case_id: str) -> list[Assignment]:
        """Return all present and past assignments of the item, by person."""
        query = "SELECT * FROM assignments WHERE case_id = ? ORDER BY person"
        return self._all(Assignment, query, case_id)

    def submitted(self, project_id: str) -> list[Assignment]:
        """Return all submitted assignments of a project, in the order in which they ended."""
        query = (
            "SELECT a.* FROM assignments a JOIN items USING (case_id) "
            "WHERE items.project_id = ? AND a.state = 'submitted' ORDER BY a.ended_at"
        )
        return self._all(Assignment, query, project_id)

    def in_hand(self, project_id: str, person: str, now: float) -> Assignment | None:
        """Return the item that the person claimed last and has not ended."""
        row = self._first(
            # CROSS: one person holds few items; SQLite would begin with all open items.
            "SELECT a.* FROM assignments a CROSS JOIN items USING (case_id) WHERE "
            "a.person = :person "
            "AND a.state = 'claimed' AND a.until > :now AND items.project_id = :project "
            "AND items.state = 'open' ORDER BY a.claimed_at DESC LIMIT 1",
            {"person": person, "now": now, "project": project_id},
        )
        return Assignment(**row) if row else None

    def unchecked(self, project_id: str, most: int) -> list[str]:
        """Return the cases of items that no run was ever started over, oldest first."""
        rows = self._db.query(
            f"SELECT case_id FROM {UNCHECKED_SQL} ORDER BY added_at LIMIT :most",
            {"project": project_id, "most": most},
        )
        return [row["case_id"] for row in rows]

    def count_unchecked(self, project_id: str) -> int:
        """Return how many those are, without a limit."""
        row = self._first(f"SELECT count(*) AS n FROM {UNCHECKED_SQL}", {"project": project_id})
        return int(row["n"]) if row else 0

    def counts(self, project_id: str, rules: QueueRules, now: float) -> dict[str, int]:
        """Count items by state: pending, in hand, done (enough people), flagged, adjudicated."""
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
        counts = {name: int(value or 0) for name, value in (row or {}).items()}
        return counts | {"in_hand": int(held["n"]) if held else 0}

    def counts_of(self, project_id: str, person: str) -> dict[AssignmentState, int]:
        """Count the person's items in each state."""
        rows = self._db.conn.execute(
            # Without items of another project, which an index tells, nobody's items are looked up.
            "SELECT state, count(*) FROM assignments a WHERE person = :person AND ("
            "NOT EXISTS (SELECT 1 FROM items WHERE project_id < :project) "
            "AND NOT EXISTS (SELECT 1 FROM items WHERE project_id > :project) "
            "OR EXISTS (SELECT 1 FROM items WHERE case_id = a.case_id AND project_id = :project)) "
            "GROUP BY state",
            {"person": person, "project": project_id},
        )
        counts: dict[str, int] = dict(rows.fetchall())
        return {state: counts.get(state, 0) for state in get_args(AssignmentState)}

    def count(
        self, project_id: str, wanted: ItemFilter, states: Sequence[ItemState], now: float
    ) -> int:
        """Count the items in these states."""
        from_clause, values = _from_clause(project_id, wanted, states, now)
        total = self._first(f"SELECT count(*) AS n {from_clause}", values)
        return int(total["n"]) if total else 0

    def page(
        self,
        project_id: str,
        wanted: ItemFilter,
        states: Sequence[ItemState],
        *,
        limit: int,
        offset: int,
        now: float,
    ) -> tuple[list[QueueItem], int]:
        """Return a page of items in these states in queue order, and how many there are in all."""
        from_clause, values = _from_clause(project_id, wanted, states, now)
        rows = self._db.conn.execute(
            f"SELECT {', '.join(ITEM_COLUMNS)} {from_clause} ORDER BY teaches DESC, added_at "
            "LIMIT :limit OFFSET :offset",
            values | {"limit": limit, "offset": offset},
        )
        items = [_parse_item(dict(zip(ITEM_COLUMNS, row, strict=True))) for row in rows]
        return items, self.count(project_id, wanted, states, now)

    def _save_assignment(self, assignment: Assignment) -> None:
        upsert_row(self._db, "assignments", get_columns(assignment), "case_id, person")
        self._count_answers([assignment.case_id])

    def _count_answers(self, case_ids: Sequence[str]) -> None:
        """Store how many people have answered these items; a claim, which ends, is no answer."""
        self._db.execute(
            f"UPDATE items SET given = {TAKEN_COUNT_SQL} "
            "WHERE case_id IN (SELECT value FROM json_each(:cases))",
            {"cases": json.dumps(list(case_ids)), "person": "", "now": sys.float_info.max},
        )

    def _first(self, query: str, values: dict[str, Any]) -> dict[str, Any] | None:
        cursor = self._db.conn.execute(query, values)
        names = [column[0] for column in cursor.description]
        row = cursor.fetchone()
        return dict(zip(names, row, strict=True)) if row else None


def _parse_item(row: dict[str, Any]) -> QueueItem:
    values = {name: row[name] for name in ITEM_COLUMNS}
    stances = from_json(tuple[tuple[str, Label], ...], row["stances"] or "[]")
    return QueueItem(**values | {"stances": stances})


def _from_clause(
    project_id: str, wanted: ItemFilter, states: Sequence[ItemState], now: float
) -> tuple[str, dict[str, Any]]:
    clauses, values = wanted.clauses(now)
    marks = ", ".join(f":state{n}" for n in range(len(states)))
    values |= {f"state{n}": state for n, state in enumerate(states)} | {"project": project_id}
    return f"FROM items WHERE project_id = :project AND state IN ({marks}) AND {clauses}", values
