"""What people said about runs: appended, never overwritten."""

from __future__ import annotations

from core.errors import InputError
from core.reviews import Correction
from core.store.codec import from_json, to_json
from core.store.sqlite import Database


class Corrections:
    """All corrections, oldest first."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def add(self, correction: Correction, response: str) -> None:
        """Append a correction of a run on `response`; call inside `Store.writing()`.

        Raises:
            InputError: it overturns the machine without a reason, or a span's quote is not the
                text at its offsets (nothing is saved then).
        """
        for span in correction.spans:
            if not 0 <= span.start < span.end or response[span.start : span.end] != span.text:
                raise InputError(
                    f"The marked words “{span.text}” are not at characters {span.start} to "
                    f"{span.end} of the response; mark them again."
                )
        overturns = correction.machine_label not in (None, correction.label)
        overturns = overturns and not correction.is_blind  # nobody overturns what they do not see
        if overturns and not correction.reason.strip():
            raise InputError("Overturning the verdict takes a reason; a few words are enough.")
        self._db.execute(
            "INSERT INTO corrections (id, run_id, case_id, author, at, label, payload) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                correction.id,
                correction.run_id,
                correction.case_id,
                correction.author,
                correction.at,
                correction.label,
                to_json(correction),
            ],
        )

    def of_run(self, run_id: str) -> list[Correction]:
        """The run's corrections, oldest first."""
        rows = self._db.query(
            "SELECT payload FROM corrections WHERE run_id = ? ORDER BY at, rowid", [run_id]
        )
        return [from_json(Correction, row["payload"]) for row in rows]

    def of_case(self, case_id: str) -> list[Correction]:
        """The corrections of all runs over a case, oldest first."""
        rows = self._db.query(
            "SELECT payload FROM corrections WHERE case_id = ? ORDER BY at, rowid", [case_id]
        )
        return [from_json(Correction, row["payload"]) for row in rows]

    def newest_by_person(self, project_id: str) -> list[Correction]:
        """Each person's newest correction of each case of a project, by case and person."""
        rows = self._db.query(
            "SELECT k.payload FROM corrections k JOIN cases c ON c.id = k.case_id "
            "WHERE c.project_id = ? AND NOT EXISTS (SELECT 1 FROM corrections n WHERE "
            "n.case_id = k.case_id AND n.author = k.author AND (n.at, n.rowid) > (k.at, k.rowid)) "
            "ORDER BY k.case_id, k.author",
            [project_id],
        )
        return [from_json(Correction, row["payload"]) for row in rows]

    def newest_by_run(self) -> list[Correction]:
        """Each corrected run's newest correction, in order of the first correction."""
        rows = self._db.query(
            "SELECT payload FROM corrections k WHERE rowid = (SELECT rowid FROM corrections "
            "WHERE run_id = k.run_id ORDER BY at DESC, rowid DESC LIMIT 1) ORDER BY at, rowid"
        )
        return [from_json(Correction, row["payload"]) for row in rows]
