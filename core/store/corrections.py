"""What people said of cases, their right answers, and what agents outside suggest.

All of it is appended, never overwritten; undo is another entry.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.runtime.errors import ConflictError, InputError
from core.schema.records import Case, Span
from core.schema.reviews import Correction, EvidenceMark, Gold, Suggestion
from core.store.sqlite import Database, Repository, first_row, insert, records, to_json

LONGEST_COMMENT = 4_000  # characters
LONGEST_AUTHOR = 200  # characters
LATEST = 253_402_300_800.0  # the year 10,000


class Corrections(Repository):
    """All corrections, oldest first. Those that were taken back show only in the histories."""

    def add(
        self, correction: Correction, response: str, *, is_read_elsewhere: bool = False
    ) -> None:
        """Append a correction of `response`; call inside `Store.writing()`.

        `is_read_elsewhere`: its evidence was marked in what another home read of the sources, which
        another version of a reader may have read otherwise; their texts are not compared then.
        Raises InputError: it overturns the machine without a reason, a rating is not from 1 to 5, a
        box lies outside of its image, a comment is too long, or the quote of a span or of evidence
        is not the text at its offsets (nothing is saved then). Raises ConflictError: it takes back
        what is not there, is another's, or was taken back.
        """
        require_said(correction.author, correction.at)
        require_quotes(correction.spans, response)
        _require_places(correction)
        if not is_read_elsewhere:
            for mark in correction.evidence:
                self._require_text(mark)
        if correction.withdraws:
            self._require_own(correction)
        else:
            _require_sense(correction)
        _append(self._db, "corrections", correction, "run_id", "label", "withdraws")

    def get(self, correction_id: str) -> Correction | None:
        """The correction of that id, taken back or not."""
        return next(iter(self._read("corrections WHERE id = ?", [correction_id])), None)

    def of_run(self, run_id: str) -> list[Correction]:
        """The run's corrections, oldest first."""
        return self._read("standing WHERE run_id = ? ORDER BY at, place", [run_id])

    def of_case(self, case_id: str) -> list[Correction]:
        """The corrections of all runs over a case, oldest first."""
        return self._read("standing WHERE case_id = ? ORDER BY at, place", [case_id])

    def history(self, case_id: str) -> list[Correction]:
        """Every entry about a case as it was appended, also what was taken back and by what."""
        return self._read("corrections WHERE case_id = ? ORDER BY rowid", [case_id])

    def newest_id(self, case_id: str, author: str = "") -> str:
        """The id of the newest entry about a case, by one person where named; "" where none is.

        A form that was opened on it saves only while it still is the newest.
        """
        row = first_row(
            self._db,
            "SELECT id FROM corrections WHERE case_id = ? AND ? IN ('', author) "
            "ORDER BY rowid DESC LIMIT 1",
            [case_id, author],
        )
        return row["id"] if row else ""

    def newest_of_case(self, case_id: str) -> list[Correction]:
        """Each person's newest correction of a case, by person."""
        newest = {c.author: c for c in self.of_case(case_id)}
        return [newest[author] for author in sorted(newest)]

    def newest_by_person(self, project_id: str) -> list[Correction]:
        """Each person's newest correction of each case of a project, by case and person."""
        return self._read(
            "standing k WHERE case_id IN (SELECT id FROM cases WHERE project_id = ?) "
            "AND NOT EXISTS (SELECT 1 FROM standing n "
            "WHERE n.case_id = k.case_id AND n.author = k.author "
            "AND (n.at, n.place) > (k.at, k.place)) "
            "ORDER BY k.case_id, k.author",
            [project_id],
        )

    def newest_by_run(self) -> list[Correction]:
        """Each corrected run's newest correction, in order of the first correction."""
        return self._read(
            "standing k WHERE run_id IS NOT NULL AND place = (SELECT place FROM standing "
            "WHERE run_id = k.run_id ORDER BY at DESC, place DESC LIMIT 1) ORDER BY at, place"
        )

    def newest_by_case(self) -> dict[str, Correction]:
        """Of each corrected case the newest correction, whoever gave it and on whichever run."""
        found = self._read(
            "standing k WHERE place = (SELECT place FROM standing "
            "WHERE case_id = k.case_id ORDER BY at DESC, place DESC LIMIT 1)"
        )
        return {correction.case_id: correction for correction in found}

    def unchecked(self) -> int:
        """How many cases people answered without a run that they saw."""
        query = "SELECT count(DISTINCT case_id) AS n FROM standing WHERE run_id IS NULL"
        return int(next(self._db.query(query))["n"])

    def _require_text(self, mark: EvidenceMark) -> None:
        rows = self._db.query(
            "SELECT substr(text, ?, ?) AS part FROM readings WHERE source_id = ?",
            [mark.start + 1, mark.end - mark.start, mark.source_id],
        )
        if any(row["part"] != mark.text for row in rows):
            raise InputError(
                f"The evidence “{mark.text[:200]}” is not at characters {mark.start} to "
                f"{mark.end} of its source; mark it again."
            )

    def _require_own(self, correction: Correction) -> None:
        own = "SELECT author FROM standing WHERE id = ? AND case_id = ?"
        row = first_row(self._db, own, [correction.withdraws, correction.case_id])
        author = row["author"] if row else None
        if author is None:
            raise ConflictError(
                "Nothing was taken back: it is not there, or was taken back before."
            )
        if author != correction.author:
            raise ConflictError(f"Only {author} can take this back; give an answer of your own.")

    def _read(self, rest: str, values: Sequence[str] = ()) -> list[Correction]:
        return records(self._db, Correction, rest, values)


def require_quotes(spans: Sequence[Span], text: str) -> None:
    """Raise InputError for the first span whose quote is not the text at its offsets."""
    for span in spans:
        if not 0 <= span.start < span.end or text[span.start : span.end] != span.text:
            raise InputError(
                f"The marked words “{span.text}” are not at characters {span.start} to "
                f"{span.end} of the response; mark them again."
            )


def _require_places(correction: Correction) -> None:
    """Refuse evidence and boxes that lie nowhere, and comments that are too long."""
    for mark in correction.evidence:
        if not 0 <= mark.start < mark.end:
            raise InputError(
                f"Expected evidence at characters of its source, found {mark.start} to {mark.end}; "
                "mark it again."
            )
    for drawn in correction.boxes:
        box = drawn.box
        if not (0 <= box.left < box.right <= 1 and 0 <= box.top < box.bottom <= 1):
            raise InputError(
                f"Expected a box within its image (0 to 1), found {box.left:g} to {box.right:g} of "
                f"its width and {box.top:g} to {box.bottom:g} of its height; draw it again."
            )
    for comment in (correction.comment, *(drawn.comment for drawn in correction.boxes)):
        if len(comment) > LONGEST_COMMENT:
            raise InputError(
                f"Expected at most {LONGEST_COMMENT:,} characters in a comment, found "
                f"{len(comment):,}; shorten it."
            )


def require_said(author: str, at: float) -> None:
    """Raise InputError for a name that cannot be shown, or a time outside of 1970 to 9999."""
    if not 0 < len(author) <= LONGEST_AUTHOR or not author.isprintable():
        raise InputError(
            f"Expected a name of 1 to {LONGEST_AUTHOR} characters that can be shown, found "
            f"{len(author):,} characters; give the one who said it a name."
        )
    if not 0.0 <= at < LATEST:
        raise InputError(f"Expected a time in seconds since 1970, found {at:.6g}; correct it.")


def _require_sense(correction: Correction) -> None:
    if not 0.0 <= correction.seconds < LATEST:
        raise InputError(f"Expected the seconds that it took, found {correction.seconds:.6g}.")
    overturns = correction.machine_label not in (None, correction.label)
    overturns = overturns and not correction.is_blind  # nobody overturns what they do not see
    if overturns and not correction.reason.strip():
        raise InputError("Overturning the verdict takes a reason; a few words are enough.")
    for rating in vars(correction.ratings).values():
        if rating is not None and not 1 <= rating <= 5:
            raise InputError(f"Expected ratings from 1 to 5, found {rating}.")
    if correction.sure is not None and not 0.0 <= correction.sure <= 1.0:
        raise InputError(f"Expected how sure you are from 0 to 1, found {correction.sure}.")


def counting(golds: Sequence[Gold]) -> Gold | None:
    """Of a case's golds, oldest first, the one that counts: what people settled, else the newest.

    What comes in with a file later never overrules what was settled here.
    """
    settled = [gold for gold in golds if gold.origin != "imported"]
    return next(reversed(settled or golds), None)


class Golds(Repository):
    """The golds of all cases; `counting` says which of a case counts."""

    def add(self, gold: Gold, response: str) -> None:
        """Append a gold of `response`; call inside `Store.writing()`.

        Raises InputError: a quote is not the text at its offsets, or a corrected gold has no
        reason.
        """
        require_said(gold.author, gold.at)
        require_quotes(gold.spans, response)
        if gold.origin == "corrected" and not gold.reason.strip():
            raise InputError("Correcting a gold answer takes a reason; a few words are enough.")
        _append(self._db, "golds", gold, "label")

    def of_case(self, case_id: str) -> list[Gold]:
        """The case's golds, oldest first."""
        return records(self._db, Gold, "golds WHERE case_id = ? ORDER BY rowid", [case_id])

    def that_counts(self, case_id: str) -> Gold | None:
        """The case's right answer as it stands, or None."""
        return counting(self.of_case(case_id))

    def settled(self) -> dict[str, Gold]:
        """By case, of all projects, what somebody here settled last; imported ones left out."""
        golds = records(self._db, Gold, "golds ORDER BY rowid")
        return {gold.case_id: gold for gold in golds if gold.origin != "imported"}

    def of_project(self, project_id: str) -> dict[str, Gold]:
        """Each right answer that counts, by case."""
        by_case: dict[str, list[Gold]] = {}
        own = "golds WHERE case_id IN (SELECT id FROM cases WHERE project_id = ?) ORDER BY rowid"
        for gold in records(self._db, Gold, own, [project_id]):
            by_case.setdefault(gold.case_id, []).append(gold)
        found = ((case_id, counting(golds)) for case_id, golds in by_case.items())
        return {case_id: gold for case_id, gold in found if gold is not None}

    def suggest(self, suggestion: Suggestion, case: Case) -> None:
        """Keep what an outside agent says of a case; call inside `Store.writing()`.

        Raises InputError: a span's quote is not the text at its offsets.
        """
        require_said(suggestion.agent, suggestion.at)
        require_quotes(suggestion.spans, case.response)
        _append(self._db, "suggestions", suggestion)

    def suggestions(self, case_id: str) -> list[Suggestion]:
        """What outside agents say of a case: of each agent the newest, by agent."""
        newest = {suggestion.agent: suggestion for suggestion in self.suggested(case_id)}
        return [newest[agent] for agent in sorted(newest)]

    def suggested(self, case_id: str) -> list[Suggestion]:
        """Everything that outside agents ever said of a case, oldest first."""
        own = "suggestions WHERE case_id = ? ORDER BY rowid"
        return records(self._db, Suggestion, own, [case_id])


def _append(db: Database, table: str, said: Correction | Gold | Suggestion, *columns: str) -> None:
    who = "agent" if isinstance(said, Suggestion) else "author"
    names = ("id", "case_id", who, "at", *columns)
    insert(db, table, {n: getattr(said, n) for n in names} | {"payload": to_json(said)})
