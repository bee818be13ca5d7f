"""The one rule for what counts as true for a case, given its right answers and people's answers.

A settled answer counts until its case is given back to the queue, else a gold that came with a
file, else what people agree on once as many as the project wants have answered. Where they do not
agree the case is disputed: nothing learns from it and nothing is exported for it until a lead
settles it. An agent's suggestion never counts.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Literal, NamedTuple

from core.schema.records import Label, Project, Span, TruthRule
from core.schema.reviews import Correction, GoldAnswer
from core.store.sqlite import (
    IS_REOPENED_SQL,
    Database,
    Repository,
    from_json,
    load_records,
)

TruthState = Literal["decided", "waiting", "disputed"]
TruthBasis = Literal["settled", "gold", "agreed", "single"]
TRUTH_RULE_WORDS: dict[TruthRule, str] = {
    "majority": "what most people say",
    "unanimity": "what all people say",
    "settled": "nothing: a lead must settle it",
}
# The plus keeps SQLite from looking up each of many cases by itself.
IN_PROJECT_SQL = "+case_id IN (SELECT id FROM cases WHERE project_id = ?)"
AMONG_SQL = "case_id IN (SELECT value FROM json_each(?))"
# Of golds `g` those that stand, as `select_standing_golds` says: one of them counts.
STANDING_GOLD_SQL = (
    "(json_extract(g.payload, '$.origin') = 'imported' OR g.at > (SELECT coalesce(max(h.at), 0.0) "
    f"FROM handlings h WHERE h.case_id = g.case_id AND {IS_REOPENED_SQL}))"
)


class GivenLabel(NamedTuple):
    """The label alone of a person's answer, for counts over very many of them."""

    id: str
    case_id: str
    author: str
    at: float
    label: Label
    spans: tuple[Span, ...] = ()
    is_unmarked: bool = False
    lacks_marks: bool = False
    reason: str = ""
    corrected_answer: str = ""


TruthRecord = GoldAnswer | Correction | GivenLabel


@dataclass(frozen=True)
class GroundTruth:
    """What counts as true for a case, if that is decided, and the answers that it rests on.

    `records` are the right answer, or the newest answers of those who agree; of an undecided case
    all people's. `is_marked`: `spans` are all words that are wrong; else nobody said which are, or
    people marked different ones.
    """

    state: TruthState
    basis: TruthBasis | None = None
    label: Label | None = None
    spans: tuple[Span, ...] = ()
    is_marked: bool = False
    records: tuple[TruthRecord, ...] = ()

    @property
    def is_decided(self) -> bool:
        """True if there is a label to learn from, though it may be `unclear`."""
        return self.state == "decided"

    @property
    def common_label(self) -> Label | None:
        """The label that all these answers have; None if they differ, or without any."""
        labels = {record.label for record in self.records}
        return labels.pop() if len(labels) == 1 else None

    @property
    def people(self) -> tuple[str, ...]:
        """Whose answers these are, the newest last."""
        return tuple(record.author for record in self.records)

    @property
    def ids(self) -> tuple[str, ...]:
        """The ids of the right answer, or of people's answers."""
        return tuple(record.id for record in self.records)

    @property
    def at(self) -> float:
        """When the newest of the answers was given."""
        return max((record.at for record in self.records), default=0.0)

    @property
    def reason(self) -> str:
        """The newest reason that somebody gave."""
        return self._find_newest_text("reason")

    @property
    def corrected_answer(self) -> str:
        """The newest corrected answer that somebody gave."""
        return self._find_newest_text("corrected_answer")

    @property
    def corrections(self) -> tuple[Correction, ...]:
        """Those of the answers that people gave, and no lead or file."""
        return tuple(record for record in self.records if isinstance(record, Correction))

    def _find_newest_text(self, name: str) -> str:
        texts: Iterable[str] = (getattr(record, name) for record in reversed(self.records))
        return next((text for text in texts if text.strip()), "")


def describe_truth_rule(project: Project) -> str:
    """Say in half a sentence what counts as true in a project."""
    people = "one person has" if project.people_each == 1 else f"{project.people_each} people have"
    when = "" if project.truth_rule == "settled" else f" once {people} answered"
    rule = TRUTH_RULE_WORDS[project.truth_rule]
    return f"what a lead settled, else what came with a file as right, else {rule}{when}"


UNANSWERED = GroundTruth("waiting")


def select_standing_golds(
    golds: Sequence[GoldAnswer], reopened_at: float = 0.0
) -> tuple[GoldAnswer, ...]:
    """Return the golds but for what was settled before the case was last given back."""
    return tuple(gold for gold in golds if gold.origin == "imported" or gold.at > reopened_at)


def choose_counting_gold(
    golds: Sequence[GoldAnswer], reopened_at: float = 0.0
) -> GoldAnswer | None:
    """Return the gold that counts, of a case's golds from oldest to newest; None without any.

    It is the newest one settled since the case was last given back to the queue, else the newest
    imported one: an import never overrules what was settled here.
    """
    standing = select_standing_golds(golds, reopened_at)
    settled = [gold for gold in standing if gold.origin != "imported"]
    return next(reversed(settled or standing), None)


def find_majority_label(labels: Iterable[Label]) -> Label | None:
    """Return the label that more than half of these are, or None if there is none."""
    given = list(labels)
    return next((label for label in set(given) if 2 * given.count(label) > len(given)), None)


def decide_truth(
    golds: Sequence[GoldAnswer],
    answers: Sequence[Correction | GivenLabel],
    wanted: int = 1,
    rule: TruthRule = "majority",
    reopened_at: float = 0.0,
) -> GroundTruth:
    """Return what counts as true for a case.

    `golds` are all of its right answers from oldest to newest, `answers` each person's newest one,
    `wanted` is how many people the project wants to answer, `reopened_at` when the case was last
    given back to the queue.
    """
    gold = choose_counting_gold(golds, reopened_at)
    if gold is not None:
        basis: TruthBasis = "gold" if gold.origin == "imported" else "settled"
        is_marked = bool(gold.spans) or gold.label == "supported"
        return GroundTruth("decided", basis, gold.label, gold.spans, is_marked, (gold,))
    given = tuple(sorted(answers, key=attrgetter("at")))
    if len(given) < max(wanted, 1):
        return GroundTruth("waiting", records=given)
    label = find_majority_label(answer.label for answer in given)
    agreeing = tuple(answer for answer in given if answer.label == label)
    if label is None or (rule == "unanimity" and len(agreeing) < len(given)):
        return GroundTruth("disputed", records=given)
    if rule == "settled":
        return GroundTruth("waiting", records=given)
    spans, is_marked = merge_marks(agreeing)
    basis = "single" if len(given) == 1 else "agreed"
    return GroundTruth("decided", basis, label, spans, is_marked, agreeing)


def merge_marks(
    answers: Sequence[Correction | GivenLabel],
) -> tuple[tuple[Span, ...], bool]:
    """Return the words that people agree are wrong, and whether they agree on any, or on none.

    They agree on the characters that both of two, or at least half of more, marked. Only those
    count who said which words are wrong, or that no single word is.
    """
    # Marks that lack some of the wrong words would teach that those are right.
    said = [
        a
        for a in answers
        if (a.spans and not a.lacks_marks) or a.is_unmarked or a.label == "supported"
    ]
    if not said:
        return (), False
    enough = len(said) if len(said) <= 2 else len(said) / 2
    is_unmarked = sum(not answer.spans for answer in said) >= enough
    if len({tuple(sorted((s.start, s.end) for s in answer.spans)) for answer in said}) == 1:
        spans = tuple(_vote_on_category(s, (s.start, s.end), said) for s in said[0].spans)
        return tuple(sorted(spans, key=lambda span: span.start)), bool(spans) or is_unmarked
    marked = [{i for s in answer.spans for i in range(s.start, s.end)} for answer in said]
    counts = Counter(i for own in marked for i in own)
    letters = {
        s.start + n: letter for a in said for s in a.spans for n, letter in enumerate(s.text)
    }
    spans = tuple(
        _vote_on_category(
            Span(start, end, "".join(letters[i] for i in range(start, end)), 1.0, "", ""),
            (start, end),
            said,
        )
        for start, end in merge_ranges((i, i + 1) for i, n in counts.items() if n >= enough)
    )
    return spans, bool(spans) or is_unmarked


def _vote_on_category(
    span: Span, place: tuple[int, int], said: Sequence[Correction | GivenLabel]
) -> Span:
    """Return the span with the category that most people gave to words there."""
    start, end = place
    overlapping = [s for a in said for s in a.spans if s.start < end and start < s.end]
    category = Counter(one.category for one in overlapping).most_common(1)[0][0]
    return replace(span, category=category)


def merge_ranges(places: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return the places in order, with those that overlap or touch merged."""
    merged: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if merged and start <= merged[-1][1]:
            start, end = merged[-1][0], max(end, merged.pop()[1])
        merged.append((start, end))
    return tuple(merged)


def load_newest_corrections(db: Database, where: str, value: str) -> list[Correction]:
    """Return each person's newest correction of each case that meets the condition."""
    rows = db.conn.execute(
        f"SELECT case_id, author, payload FROM standing WHERE {where} ORDER BY at, place", [value]
    )
    newest = {(case_id, author): payload for case_id, author, payload in rows}
    return [from_json(Correction, payload) for payload in newest.values()]


class GroundTruths(Repository):
    """What counts as true for cases, each by the rule of its project."""

    def of_case(self, case_id: str) -> GroundTruth:
        """Return what counts for one case."""
        return self.of_cases([case_id]).get(case_id, UNANSWERED)

    def of_cases(self, cases: Sequence[str]) -> dict[str, GroundTruth]:
        """Return what counts for each of these cases that has any answer."""
        return self._decide(AMONG_SQL, json.dumps(cases))

    def of_project(self, project_id: str) -> dict[str, GroundTruth]:
        """Return what counts for each case of a project that has any answer."""
        return self._decide(IN_PROJECT_SQL, project_id)

    def labels(
        self, project_id: str | None = None, cases: Sequence[str] | None = None
    ) -> dict[str, GroundTruth]:
        """Return the same for one or all projects without marks, reasons and ratings, but quickly.

        `cases` restricts it to these case ids.
        """
        where, value = IN_PROJECT_SQL, project_id
        if cases is not None:
            where, value = AMONG_SQL, json.dumps(cases)
        elif project_id is None:
            where = "? IS NULL"
        corrections = self._db.conn.execute(
            f"SELECT id, case_id, author, at, label FROM standing WHERE {where} ORDER BY at, place",
            [value],
        )
        golds = self._db.conn.execute(
            "SELECT id, case_id, author, at, json_extract(payload, '$.origin'), label FROM golds "
            f"WHERE {where} ORDER BY rowid",
            [value],
        )
        return self._group(
            (GoldAnswer(*row) for row in golds),
            (GivenLabel(*row) for row in corrections),
            where,
            value,
        )

    def settled(self, project_id: str) -> set[str]:
        """Return the project's cases that a lead has settled."""
        query = f"golds WHERE {IN_PROJECT_SQL} ORDER BY rowid"
        golds = load_records(self._db, GoldAnswer, query, [project_id])
        truths = self._group(golds, (), IN_PROJECT_SQL, project_id)
        return {case_id for case_id, truth in truths.items() if truth.basis == "settled"}

    def _decide(self, where: str, value: str) -> dict[str, GroundTruth]:
        golds = load_records(self._db, GoldAnswer, f"golds WHERE {where} ORDER BY rowid", [value])
        corrections = load_newest_corrections(self._db, where, value)
        return self._group(golds, corrections, where, value)

    def _group(
        self,
        golds: Iterable[GoldAnswer],
        corrections: Iterable[Correction | GivenLabel],
        where: str,
        value: str | None,
    ) -> dict[str, GroundTruth]:
        golds_of: dict[str, list[GoldAnswer]] = defaultdict(list)
        answers_of: dict[str, dict[str, Correction | GivenLabel]] = defaultdict(dict)
        for gold in golds:
            golds_of[gold.case_id].append(gold)
        for correction in corrections:
            answers_of[correction.case_id][correction.author] = correction
        rows = self._db.conn.execute(
            "SELECT case_id, max(at) FROM handlings "
            f"WHERE {where} AND {IS_REOPENED_SQL} GROUP BY case_id",
            [value],
        )
        reopened_at = dict(rows.fetchall())
        rules = self._load_rules()
        cases = dict.fromkeys([*golds_of, *answers_of])
        projects = self._load_projects(list(cases)) if len(rules) > 1 else {}
        only = next(iter(rules.values())) if len(rules) == 1 else (1, "majority")
        return {
            case_id: decide_truth(
                golds_of.get(case_id, ()),
                tuple(answers_of.get(case_id, {}).values()),
                *rules.get(projects.get(case_id, ""), only),
                reopened_at.get(case_id, 0.0),
            )
            for case_id in cases
        }

    def _load_rules(self) -> dict[str, tuple[int, TruthRule]]:
        projects = load_records(self._db, Project, "projects")
        return {project.id: (project.people_each, project.truth_rule) for project in projects}

    def _load_projects(self, cases: Sequence[str]) -> dict[str, str]:
        rows = self._db.conn.execute(
            "SELECT id, project_id FROM cases WHERE id IN (SELECT value FROM json_each(?))",
            [json.dumps(cases)],
        )
        return dict(rows.fetchall())
