"""Verdicts whose right answer people have given, and lists over all items of a review queue."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.schema.records import Label
from core.store.ground_truth import UNANSWERED, GroundTruths
from core.store.queue_order import PRIORITY_BONUS, RANDOM_REASON
from core.store.sqlite import ChangeMarks, Repository, from_json
from core.store.versions import SEED_VERSION, ClassifierVersions

VerdictKey = tuple[str, str, str]  # (text, version, roster)
# The classifier behind a run's p: the plan's, or that of the newest score if runs were rescored.
PLANNED_CLASSIFIER_SQL = "json_extract(r.plan, '$.classifier')"
PRESENT_CLASSIFIER_SQL = f"""coalesce(
    (SELECT json_extract(e.payload, '$.verdict.classifier') FROM events e
    WHERE e.run_id = r.id AND e.kind = 'label_predicted' ORDER BY e.seq DESC LIMIT 1),
    {PLANNED_CLASSIFIER_SQL})"""

# The run that stands for a case in the queue: the newest finished one that decided something, else
# the newest finished one, so that a later check that came to nothing hides no verdict.
STANDING_RUN_SQL = """(SELECT n.id FROM runs n WHERE n.case_id = {} AND n.status = 'finished'
    ORDER BY n.label IN ('supported', 'hallucinated') DESC, n.started_at DESC, n.id DESC LIMIT 1)"""
AMONG_CASES_SQL = " AND {} IN (SELECT value FROM json_each(:cases))"
# Matches the JSON of a judgement that a tool decided; quotes within a text would be escaped.
DECIDED_BY_TOOL_SQL = """EXISTS (SELECT 1 FROM events e
    WHERE e.run_id = r.id AND e.kind = 'judgement_reached' AND
    instr(e.payload, '"by_tool":"') AND NOT instr(e.payload, '"by_tool":""'))"""


@dataclass(frozen=True, slots=True)
class AnsweredVerdict:
    """A verdict with the answer that counts for its case.

    `text` identifies the case by question and response. `is_random`: the answer was requested
    whatever the machine said, not because it was unsure. `was_known`: so it was because the answer
    came with the case, and nobody drew it. `by_tool`: a tool decided it.
    """

    run_id: str
    case_id: str
    text: str
    version: str
    roster: str
    p: float
    at: float
    answer: Label
    is_random: bool = False
    by_tool: bool = False
    was_known: bool = False

    @property
    def is_drawn(self) -> bool:
        """True if somebody was given the case at random."""
        return self.is_random and not self.was_known

    @property
    def confidence(self) -> float:
        """The classifier's confidence in its label, in [0.5, 1]."""
        return round(max(self.p, 1.0 - self.p), 4)

    @property
    def label(self) -> Label:
        """The classifier's label."""
        return "hallucinated" if self.p >= 0.5 else "supported"

    @property
    def is_right(self) -> bool:
        """True if people gave the same label."""
        return self.label == self.answer


class AnsweredVerdicts(Repository):
    """The answered verdicts of a project.

    What counts for a case is its ground truth; `unclear` cannot be compared with a probability, and
    an undecided case has none. A version's verdict on a text
    counts only if the version was made before the text came to the training side of the hold-out:
    otherwise it may have been trained on it.
    """

    def of(self, project_id: str, cases: Sequence[str] | None = None) -> list[AnsweredVerdict]:
        """Return, for each answered text, the newest verdict by each version and roster.

        `cases` restricts them to these case ids. The active version also counts with the
        probabilities it gave to held-out verdicts when it was trained, until it has checked the
        same text itself.
        """
        values = {"project": project_id, "cases": None if cases is None else json.dumps(cases)}
        truths = GroundTruths(self._db).labels(project_id, cases)
        random_cases = self._load_random_cases(values)
        versions = self._db.query("SELECT id, created_at FROM versions")
        created_at = {row["id"]: row["created_at"] for row in versions}
        active, held_out = self._load_holdout()
        own_verdicts: dict[VerdictKey, AnsweredVerdict] = {}
        holdout_verdicts: dict[VerdictKey, AnsweredVerdict] = {}
        for row in self._load_verdicts(values):
            truth = truths.get(row["case_id"], UNANSWERED)
            version = row["version"] or SEED_VERSION
            if truth.label is None or truth.label == "unclear":
                continue
            is_drawn, has_gold = row["case_id"] in random_cases, truth.basis == "gold"
            verdict = AnsweredVerdict(
                row["id"],
                row["case_id"],
                row["text"],
                version,
                row["roster"],
                row["p"],
                row["at"],
                truth.label,
                is_drawn or has_gold,
                bool(row["by_tool"]),
                has_gold and not is_drawn,
            )
            if row["sided_at"] is None or row["sided_at"] > created_at.get(version, 0.0):
                own_verdicts[verdict.text, version, verdict.roster] = verdict
            if row["id"] in held_out:
                retried = replace(verdict, version=active, p=held_out[row["id"]])
                holdout_verdicts[verdict.text, active, verdict.roster] = retried
        return list((holdout_verdicts | own_verdicts).values())

    def changed(
        self, project_id: str, corrections: float, golds: float, ended: float
    ) -> tuple[dict[str, str], int]:
        """Return the cases with news since these marks, and the number of runs ended since.

        (Texts by case id where something was said or a run ended; number of runs.) The number is of
        all projects: adding it to the runs known before shows whether a run was resumed, or was
        imported with an end long past.
        """
        values = {"corrections": corrections, "golds": golds, "ended": ended}
        rows = self._db.query(
            "SELECT o.id, o.fingerprint FROM cases o WHERE o.project_id = :project "
            "AND o.fingerprint IN ("
            "SELECT fingerprint FROM cases WHERE id IN ("
            "SELECT case_id FROM corrections WHERE rowid > :corrections "
            "UNION SELECT case_id FROM golds WHERE rowid > :golds "
            "UNION SELECT case_id FROM runs WHERE finished_at > :ended))",
            values | {"project": project_id},
        )
        runs = self._db.conn.execute("SELECT count(*) FROM runs WHERE finished_at > ?", [ended])
        return {row["id"]: row["fingerprint"] for row in rows}, int(runs.fetchone()[0])

    def _load_holdout(self) -> tuple[str, dict[str, float]]:
        """Return the active version and its p, by run, of verdicts held out of its training."""
        active = ClassifierVersions(self._db).active()
        rows = self._db.query(
            "SELECT json_extract(j.value, '$.run_id') AS run, json_extract(j.value, '$.after') "
            "AS p FROM versions v, json_each(v.card, '$.holdout.rows') j WHERE v.id = ?",
            [active],
        )
        return active, {row["run"]: row["p"] for row in rows if row["p"] is not None}

    def _load_random_cases(self, values: dict[str, Any]) -> set[str]:
        among = AMONG_CASES_SQL.format("a.case_id") if values["cases"] is not None else ""
        rows = self._rows(
            "SELECT a.case_id FROM assignments a JOIN items i USING (case_id) "
            f"WHERE +i.project_id = :project AND a.state = 'submitted' AND a.why = :why{among}",
            values | {"why": RANDOM_REASON},
        )
        return {row["case_id"] for row in rows}

    def _load_verdicts(self, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        among = AMONG_CASES_SQL.format("r.case_id") if values["cases"] is not None else ""
        # The plus keeps SQLite from scanning all runs of the project.
        no_index = "+" if among else ""
        version = (
            PRESENT_CLASSIFIER_SQL
            if ChangeMarks(self._db).of_runs()[-1]
            else PLANNED_CLASSIFIER_SQL
        )
        return self._rows(
            "SELECT r.id, r.case_id, c.fingerprint AS text, r.p_hallucinated AS p, "
            f"r.started_at AS at, {version} AS version, "
            "json_extract(r.plan, '$.roster') AS roster, "
            f"CASE h.held WHEN 0 THEN h.at END AS sided_at, {DECIDED_BY_TOOL_SQL} AS by_tool "
            "FROM runs r JOIN cases c ON c.id = r.case_id "
            "LEFT JOIN holdout h ON h.case_id = c.fingerprint "
            f"WHERE {no_index}r.project_id = :project AND r.status = 'finished' "
            f"AND r.p_hallucinated IS NOT NULL{among} ORDER BY r.started_at, r.id",
            values,
        )

    def _rows(self, query: str, values: dict[str, Any]) -> Iterator[dict[str, Any]]:
        bound = {name: value for name, value in values.items() if f":{name}" in query}
        return self._db.query(query, bound)


class QueueLists(Repository):
    """Lists over the items of a project."""

    def languages(self, project_id: str) -> list[str]:
        """Return the languages of the project's items, in order."""
        rows = self._db.query(
            "SELECT DISTINCT language FROM items WHERE project_id = ? ORDER BY language",
            [project_id],
        )
        return [row["language"] for row in rows]

    def stances(self, project_id: str) -> dict[str, tuple[tuple[str, Label], ...]]:
        """Return each agent's stance on each case that people answered, queued or on its run."""
        rows = self._db.query(
            "SELECT case_id, stances FROM items WHERE project_id = ? "
            "AND stances NOT IN ('', '[]') "
            "AND EXISTS (SELECT 1 FROM standing s WHERE s.case_id = items.case_id)",
            [project_id],
        )
        kind = tuple[tuple[str, Label], ...]
        return {row["case_id"]: from_json(kind, row["stances"]) for row in rows}

    def missing(self, project_id: str, most: int) -> list[str]:
        """Return the runs of cases that stand for them and are not in the queue, oldest first."""
        rows = self._db.query(
            "SELECT r.id FROM runs r LEFT JOIN items i ON i.case_id = r.case_id "
            "WHERE r.project_id = ? AND (i.run_id IS NOT r.id OR i.stances = '') "
            f"AND r.id = {STANDING_RUN_SQL.format('r.case_id')} "
            "ORDER BY r.started_at, r.id LIMIT ?",
            [project_id, most],
        )
        return [row["id"] for row in rows]

    def find_run(self, case_id: str) -> str:
        """Return the run that stands for a case in the queue, or "" if none has finished."""
        query = f"SELECT {STANDING_RUN_SQL.format('?')} AS id"
        return next(self._db.query(query, [case_id]))["id"] or ""

    def put_first(self, project_id: str, limits: Sequence[tuple[str, str, float]] | None) -> None:
        """Put the items first whose verdicts people must decide; call inside `writing()`.

        `limits` are (version, roster, confidence) from which on a verdict stands by itself; None:
        the project has no such limits, and no item goes first for that reason.
        """
        version = (
            PRESENT_CLASSIFIER_SQL
            if ChangeMarks(self._db).of_runs()[-1]
            else PLANNED_CLASSIFIER_SQL
        )
        stands_alone = (
            "EXISTS (SELECT 1 FROM runs r, json_each(:limits) l WHERE r.id = items.run_id "
            f"AND coalesce(nullif({version}, ''), :seed) = json_extract(l.value, '$[0]') "
            "AND json_extract(r.plan, '$.roster') = json_extract(l.value, '$[1]') "
            "AND r.confidence >= json_extract(l.value, '$[2]'))"
        )
        first = "0" if limits is None else f"(p IS NOT NULL AND NOT {stands_alone})"
        self._db.execute(
            "UPDATE items SET teaches = teaches - :more * (teaches >= :more) + :more * is_first "
            f"FROM (SELECT case_id AS own, {first} AS is_first FROM items "
            "WHERE project_id = :project) WHERE case_id = own "
            "AND is_first != (teaches >= :more)",
            {"more": PRIORITY_BONUS, "project": project_id}
            | ({} if limits is None else {"limits": json.dumps(limits), "seed": SEED_VERSION}),
        )
