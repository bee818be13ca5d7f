"""Cases as submitted, found again by words or by being the same text."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from core.records import Case
from core.store.codec import from_json, to_json
from core.store.sqlite import Database


def fingerprint(response: str, question: str) -> str:
    """Equal for the same question and response, whatever the spacing and capitals."""
    folded = " ".join(question.casefold().split()) + "\n" + " ".join(response.casefold().split())
    return hashlib.sha256(folded.encode()).hexdigest()


class Cases:
    """The cases of all projects; a case never changes once it is stored."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, case: Case, terms: Sequence[str]) -> None:
        """Store a new case with the terms it is found by."""
        self._db.execute(
            "INSERT INTO cases (id, project_id, response, question, fingerprint, author, "
            "created_at, payload) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                case.id,
                case.project_id,
                case.response,
                case.question,
                fingerprint(case.response, case.question),
                case.author,
                case.created_at,
                to_json(case),
            ],
        )
        self._db.execute(
            "INSERT INTO case_terms (terms, case_id) VALUES (?, ?)", [" ".join(terms), case.id]
        )

    def get(self, case_id: str) -> Case | None:
        """The case, or None."""
        row = next(self._db.query("SELECT payload FROM cases WHERE id = ?", [case_id]), None)
        return from_json(Case, row["payload"]) if row else None

    def several(self, case_ids: Sequence[str]) -> list[Case]:
        """The cases of these ids that are there, in this order."""
        found = (self.get(case_id) for case_id in case_ids)
        return [case for case in found if case is not None]

    def all(self, project_id: str) -> list[Case]:
        """All cases of a project in the order in which they were stored."""
        rows = self._db.query(
            "SELECT payload FROM cases WHERE project_id = ? ORDER BY rowid", [project_id]
        )
        return [from_json(Case, row["payload"]) for row in rows]

    def places(self) -> dict[str, tuple[str, str]]:
        """Project and language of every case of all projects, by id."""
        rows = self._db.conn.execute(
            "SELECT id, project_id, coalesce(json_extract(payload, '$.language'), 'und') FROM cases"
        )
        return {case_id: (project_id, language) for case_id, project_id, language in rows}

    def same(self, project_id: str, response: str, question: str) -> list[Case]:
        """Earlier cases with the same question and response, newest first."""
        rows = self._db.query(
            "SELECT payload FROM cases WHERE project_id = ? AND fingerprint = ? "
            "ORDER BY created_at DESC",
            [project_id, fingerprint(response, question)],
        )
        return [from_json(Case, row["payload"]) for row in rows]

    def like(self, case: Case) -> Case | None:
        """The newest case with all of it the same but who submitted it and when.

        Sources count in any order.
        """

        def told(one: Case) -> Case:
            documents, images = tuple(sorted(one.documents)), tuple(sorted(one.images))
            return replace(
                one, id="", author="", created_at=0.0, documents=documents, images=images
            )

        known = self.same(case.project_id, case.response, case.question)
        return next((one for one in known if told(one) == told(case)), None)

    def similar(self, project_id: str, terms: Sequence[str], limit: int) -> list[Case]:
        """Cases sharing terms, closest first."""
        if not terms:
            return []
        query = " OR ".join('"' + term.replace('"', "") + '"' for term in terms)
        rows = self._db.query(
            "SELECT c.payload FROM case_terms t JOIN cases c ON c.id = t.case_id "
            "WHERE case_terms MATCH ? AND c.project_id = ? ORDER BY bm25(case_terms) LIMIT ?",
            [query, project_id, limit],
        )
        return [from_json(Case, row["payload"]) for row in rows]
