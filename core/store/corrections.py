"""People's corrections of cases, right answers, and suggestions of outside agents.

All of it is appended, never overwritten; undo is another entry.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from operator import attrgetter

from core.runtime.errors import ConflictError, InputError
from core.schema.records import Case, Span
from core.schema.reviews import Correction, EvidenceMark, GoldAnswer, Suggestion
from core.store.ground_truth import (
    IN_PROJECT_SQL,
    choose_counting_gold,
    load_newest_corrections,
)
from core.store.sqlite import (
    IS_REOPENED_SQL,
    Database,
    Repository,
    fetch_first_row,
    insert_row,
    load_records,
    to_json,
)

MAX_COMMENT_CHARACTERS = 4_000  # characters
MAX_AUTHOR_CHARACTERS = 200  # characters
MAX_TIMESTAMP = 253_402_300_800.0  # the year 10,000


class Corrections(Repository):
    """All corrections, oldest first; withdrawn ones appear only in the histories."""

    def add(
        self, correction: Correction, response: str, *, is_read_elsewhere: bool = False
    ) -> None:
        """Append a correction of `response`; call inside `Store.writing()`.

        `is_read_elsewhere`: its evidence was marked in texts that another home read from the
        sources, perhaps with another version of a reader; those texts are not compared then. Raises
        InputError, and saves nothing, if it overturns the machine without a reason, a rating is not
        from 1 to 5, a box lies outside of its image, a statement outside of the response, a comment
        is too long, or the quote of a span or of evidence is not the text at its offsets. Raises
        ConflictError if the correction it withdraws does not exist, is another person's, or was
        withdrawn before.
        """
        require_author_and_time(correction.author, correction.at)
        require_quotes(correction.spans, response)
        _require_statements_within(correction, response)
        _require_valid_places(correction)
        if not is_read_elsewhere:
            for mark in correction.evidence:
                self._require_evidence_text(mark)
        if correction.withdraws:
            self._require_withdrawable(correction)
        else:
            _require_valid_answer(correction)
        _append(self._db, "corrections", correction, "run_id", "label", "withdraws")

    def get(self, correction_id: str) -> Correction | None:
        """Return the correction of that id, withdrawn or not, or None."""
        return next(iter(self._query("corrections WHERE id = ?", [correction_id])), None)

    def of_run(self, run_id: str) -> list[Correction]:
        """Return the run's corrections, oldest first."""
        return self._query("standing WHERE run_id = ? ORDER BY at, place", [run_id])

    def of_case(self, case_id: str) -> list[Correction]:
        """Return the corrections of all runs over a case, oldest first."""
        return self._query("standing WHERE case_id = ? ORDER BY at, place", [case_id])

    def history(self, case_id: str) -> list[Correction]:
        """Return every entry about a case as appended, including withdrawals and the withdrawn."""
        return self._query("corrections WHERE case_id = ? ORDER BY rowid", [case_id])

    def newest_id(self, case_id: str, author: str = "") -> str:
        """Return the id of the newest entry about a case (by one person if named), or "".

        A form that was opened on it saves only while it still is the newest.
        """
        row = fetch_first_row(
            self._db,
            "SELECT id FROM corrections WHERE case_id = ? AND ? IN ('', author) "
            "ORDER BY rowid DESC LIMIT 1",
            [case_id, author],
        )
        return row["id"] if row else ""

    def newest_of_case(self, case_id: str) -> list[Correction]:
        """Return each person's newest correction of a case, sorted by person."""
        newest = {c.author: c for c in self.of_case(case_id)}
        return [newest[author] for author in sorted(newest)]

    def newest_of_person(self, person: str, case_ids: Sequence[str]) -> dict[str, Correction]:
        """Return a person's newest correction of each of these cases that they answered."""
        from_clause = (
            "standing WHERE author = ? AND case_id IN (SELECT value FROM json_each(?)) "
            "ORDER BY at, place"
        )
        found = self._query(from_clause, [person, json.dumps(case_ids)])
        return {correction.case_id: correction for correction in found}

    def newest_by_person(self, project_id: str) -> list[Correction]:
        """Return each person's newest correction of each case of a project, by case and person."""
        newest = load_newest_corrections(self._db, IN_PROJECT_SQL, project_id)
        return sorted(newest, key=attrgetter("case_id", "author"))

    def list_blind_ids(self, project_id: str) -> set[str]:
        """Return the ids of the answers of a project that were given blind.

        Those are people's first answers on a case where the form hid the verdict: who takes one
        back may have seen the verdict, and what others said, before they answer again.
        """
        rows = self._db.conn.execute(
            "SELECT k.id FROM corrections k WHERE k.withdraws = '' AND k.payload ->> 'is_blind' "
            f"AND {IN_PROJECT_SQL} AND NOT EXISTS (SELECT 1 FROM corrections e "
            "WHERE e.case_id = k.case_id AND e.author = k.author AND e.withdraws = '' "
            "AND (e.at, e.rowid) < (k.at, k.rowid))",
            [project_id],
        )
        return {correction_id for (correction_id,) in rows}

    def unchecked(self) -> int:
        """Return how many cases people answered without having seen a run."""
        query = "SELECT count(DISTINCT case_id) AS n FROM standing WHERE run_id IS NULL"
        return int(next(self._db.query(query))["n"])

    def _require_evidence_text(self, mark: EvidenceMark) -> None:
        rows = self._db.query(
            "SELECT substr(text, ?, ?) AS part FROM readings WHERE source_id = ?",
            [mark.start + 1, mark.end - mark.start, mark.source_id],
        )
        if any(row["part"] != mark.text for row in rows):
            raise InputError(
                f"The evidence “{mark.text[:200]}” is not at characters {mark.start} to "
                f"{mark.end} of its source; mark it again."
            )

    def _require_withdrawable(self, correction: Correction) -> None:
        query = "SELECT author FROM standing WHERE id = ? AND case_id = ?"
        row = fetch_first_row(self._db, query, [correction.withdraws, correction.case_id])
        author = row["author"] if row else None
        if author is None:
            raise ConflictError(
                "Nothing was taken back: it is not there, or was taken back before."
            )
        if author != correction.author:
            raise ConflictError(f"Only {author} can take this back; give an answer of your own.")

    def _query(self, from_clause: str, values: Sequence[str] = ()) -> list[Correction]:
        return load_records(self._db, Correction, from_clause, values)


def require_quotes(spans: Sequence[Span], text: str) -> None:
    """Raise InputError for the first span whose quote is not the text at its offsets."""
    for span in spans:
        if not 0 <= span.start < span.end or text[span.start : span.end] != span.text:
            raise InputError(
                f"The marked words “{span.text}” are not at characters {span.start} to "
                f"{span.end} of the response; mark them again."
            )


def _require_statements_within(correction: Correction, response: str) -> None:
    for one in correction.statements:
        if not 0 <= one.start < one.end <= len(response):
            raise InputError(
                f"Expected statements within the {len(response):,} characters of the response, "
                f"found one from {one.start} to {one.end}; label it again."
            )


def _require_valid_places(correction: Correction) -> None:
    """Refuse evidence and boxes with impossible positions, and comments that are too long."""
    for mark in correction.evidence:
        if not 0 <= mark.start < mark.end:
            raise InputError(
                f"Expected evidence at characters of its source, found {mark.start} to {mark.end}; "
                "mark it again."
            )
    for region in correction.boxes:
        box = region.box
        if not (0 <= box.left < box.right <= 1 and 0 <= box.top < box.bottom <= 1):
            raise InputError(
                f"Expected a box within its image (0 to 1), found {box.left:g} to {box.right:g} of "
                f"its width and {box.top:g} to {box.bottom:g} of its height; draw it again."
            )
    for comment in (correction.comment, *(region.comment for region in correction.boxes)):
        if len(comment) > MAX_COMMENT_CHARACTERS:
            raise InputError(
                f"Expected at most {MAX_COMMENT_CHARACTERS:,} characters in a comment, found "
                f"{len(comment):,}; shorten it."
            )


def require_author_and_time(author: str, at: float) -> None:
    """Raise InputError for a name that cannot be shown, or a time outside of 1970 to 9999."""
    if not 0 < len(author) <= MAX_AUTHOR_CHARACTERS or not author.isprintable():
        raise InputError(
            f"Expected a name of 1 to {MAX_AUTHOR_CHARACTERS} characters that can be shown, found "
            f"{len(author):,} characters; give the one who said it a name."
        )
    if not 0.0 <= at < MAX_TIMESTAMP:
        raise InputError(f"Expected a time in seconds since 1970, found {at:.6g}; correct it.")


def _require_valid_answer(correction: Correction) -> None:
    if not 0.0 <= correction.seconds < MAX_TIMESTAMP:
        raise InputError(f"Expected the seconds that it took, found {correction.seconds:.6g}.")
    differs = correction.machine_label not in (None, correction.label)
    overturns = differs and not correction.is_blind  # a blind answer did not see the verdict
    if overturns and not correction.reason.strip():
        raise InputError("Overturning the verdict takes a reason; a few words are enough.")
    for rating in vars(correction.ratings).values():
        if rating is not None and not 1 <= rating <= 5:
            raise InputError(f"Expected ratings from 1 to 5, found {rating}.")
    if correction.sure is not None and not 0.0 <= correction.sure <= 1.0:
        raise InputError(f"Expected how sure you are from 0 to 1, found {correction.sure}.")


class Golds(Repository):
    """The right answers of all cases; `that_counts` says which of a case's counts."""

    def add(self, gold: GoldAnswer, response: str) -> None:
        """Append a gold of `response`; call inside `Store.writing()`.

        Raises InputError: a quote is not the text at its offsets, or a corrected gold has no
        reason.
        """
        require_author_and_time(gold.author, gold.at)
        require_quotes(gold.spans, response)
        if gold.origin == "corrected" and not gold.reason.strip():
            raise InputError("Correcting a gold answer takes a reason; a few words are enough.")
        _append(self._db, "golds", gold, "label")

    def of_case(self, case_id: str) -> list[GoldAnswer]:
        """Return the case's golds, oldest first."""
        return load_records(
            self._db, GoldAnswer, "golds WHERE case_id = ? ORDER BY rowid", [case_id]
        )

    def that_counts(self, case_id: str) -> GoldAnswer | None:
        """Return the gold that counts for the case, or None."""
        reopened_at = self._db.conn.execute(
            f"SELECT coalesce(max(at), 0.0) FROM handlings WHERE case_id = ? AND {IS_REOPENED_SQL}",
            [case_id],
        ).fetchone()[0]
        return choose_counting_gold(self.of_case(case_id), reopened_at)

    def suggest(self, suggestion: Suggestion, case: Case) -> None:
        """Append an outside agent's suggestion about a case; call inside `Store.writing()`.

        Raises InputError: a span's quote is not the text at its offsets.
        """
        require_author_and_time(suggestion.agent, suggestion.at)
        require_quotes(suggestion.spans, case.response)
        _append(self._db, "suggestions", suggestion)

    def suggestions(self, case_id: str) -> list[Suggestion]:
        """Return each outside agent's newest suggestion about a case, sorted by agent."""
        newest = {suggestion.agent: suggestion for suggestion in self.suggested(case_id)}
        return [newest[agent] for agent in sorted(newest)]

    def suggested(self, case_id: str) -> list[Suggestion]:
        """Return everything that outside agents ever suggested about a case, oldest first."""
        query = "suggestions WHERE case_id = ? ORDER BY rowid"
        return load_records(self._db, Suggestion, query, [case_id])


def _append(
    db: Database, table: str, entry: Correction | GoldAnswer | Suggestion, *columns: str
) -> None:
    author_column = "agent" if isinstance(entry, Suggestion) else "author"
    names = ("id", "case_id", author_column, "at", *columns)
    insert_row(db, table, {n: getattr(entry, n) for n in names} | {"payload": to_json(entry)})
