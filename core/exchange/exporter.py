"""Export a project's cases as rows, and its finished audits as trajectories to train on.

Trajectories go into two files: those to train on, and the others with the reasons against them.
Each row is one chat: `messages` with `role`, `content` and `trained`, as trainers of chat models
expect it. Of several audits of a case by one roster the newest counts. Source: HaluAgent 2.4.1.
"""

from __future__ import annotations

import io
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from core.documents.library import load_file_bytes
from core.documents.readers import FILE_TYPES
from core.exchange.fields import dump_json_lines
from core.exchange.rows import ExchangeDocument, ExchangeRow, MachineVerdict, get_copy_suffix
from core.exchange.trajectory import (
    REASON_WORDS,
    TRAJECTORY_EVENT_KINDS,
    ExclusionCode,
    ExclusionReason,
    Trajectory,
    balance_labels,
    build_trajectory,
    find_exclusion_reasons,
)
from core.llm.prompting import PromptBook
from core.runtime.errors import InputError
from core.schema.events import AUDIT
from core.schema.records import Case, Project
from core.schema.run_state import fold_events
from core.store import Store
from core.store.queries import LatestVerdict, load_events, load_newest_verdicts

CASE_FIELDS = ("id", "response", "question", "language", "role", "instruction", "others")
KEPT_FILE_NAME, FAILED_FILE_NAME = "trajectories.jsonl", "trajectories.failed.jsonl"


def load_project_rows(
    store: Store, home: Path, project: Project, which: str = "all"
) -> list[ExchangeRow]:
    """Return the project's cases in the order in which they were stored, with their ids of origin.

    `reviewed` leaves out cases that have neither an answer nor a gold.
    """
    shelf = ProjectFiles(store, home, project)
    with store.reading():
        verdicts = load_newest_verdicts(store, project.id)
        rows = (
            build_row(store, case, project, shelf, verdicts.get(case.id))
            for case in store.cases.all(project.id)
        )
        suffix = get_copy_suffix(project)
        return [
            replace(row, id=row.id.removesuffix(suffix))
            for row in rows
            if which == "all" or row.truth.records
        ]


class ProjectFiles:
    """The files of a project's library by id; each text is read once."""

    def __init__(self, store: Store, home: Path, project: Project) -> None:
        self._home = home
        self._names = {
            entry.id: (entry.name, entry.kind) for entry in store.library.all(project.id)
        }
        self._texts: dict[str, str | None] = {}

    def documents(self, ids: tuple[str, ...]) -> Iterator[ExchangeDocument]:
        """Yield the files with these ids, with their text if they are plain text."""
        for document_id in ids:
            name, kind = self._names.get(document_id, ("removed file", "pdf"))
            is_plain = any(one.is_text for one in FILE_TYPES if one.kind == kind)
            yield ExchangeDocument(
                name, self._read_text(document_id) if is_plain else None, document_id
            )

    def _read_text(self, document_id: str) -> str | None:
        if document_id not in self._texts:
            try:
                self._texts[document_id] = load_file_bytes(self._home, document_id).decode("utf-8")
            except (InputError, UnicodeDecodeError):  # gone, or in another encoding
                self._texts[document_id] = None
        return self._texts[document_id]


def build_row(
    store: Store,
    case: Case,
    project: Project,
    shelf: ProjectFiles | None = None,
    judged: LatestVerdict | None = None,
) -> ExchangeRow:
    """Return a case with all its records; without a shelf its files are left out."""
    return ExchangeRow(
        **{name: getattr(case, name) for name in CASE_FIELDS},
        documents=tuple(shelf.documents(case.documents)) if shelf else (),
        images=tuple(shelf.documents(case.images)) if shelf else (),
        golds=tuple(store.golds.of_case(case.id)),
        corrections=tuple(store.corrections.history(case.id)),
        suggestions=tuple(store.golds.suggested(case.id)),
        handlings=tuple(store.queue_events.of_case(case.id)),
        verdict=_build_machine_verdict(judged) if judged else None,
        wanted=project.people_each,
        truth_rule=project.truth_rule,
    )


def _build_machine_verdict(judged: LatestVerdict) -> MachineVerdict:
    verdict = judged.verdict
    names = ("label", "p_hallucinated", "confidence", "rationale", "cause")
    fields = {name: getattr(verdict, name) for name in names}
    return MachineVerdict(judged.run_id, **fields, finished_at=judged.finished_at)


@dataclass(frozen=True)
class TrajectoryExport:
    """The audits of a project: those to train on, and the others with the reasons against them."""

    kept: Sequence[Trajectory]
    failed: Sequence[tuple[Trajectory, Sequence[ExclusionReason]]]

    @property
    def kept_file(self) -> bytes:
        """JSON lines with one row per trajectory to train on."""
        return dump_json_lines(_dump_trajectory(one) for one in self.kept)

    @property
    def failed_file(self) -> bytes:
        """JSON lines with one row per trajectory not to train on, with its reasons."""
        return dump_json_lines(
            _dump_trajectory(trajectory) | {"reasons": [asdict(fault) for fault in faults]}
            for trajectory, faults in self.failed
        )

    @property
    def reasons(self) -> dict[ExclusionCode, int]:
        """The number of trajectories by reason; one trajectory may have several reasons."""
        counts = Counter(r for _, faults in self.failed for r in {fault.reason for fault in faults})
        return {reason: counts[reason] for reason in REASON_WORDS if counts[reason]}

    @property
    def words(self) -> str:
        """The counts and reasons in one line for a person."""
        reasons = ", ".join(f"{n} {REASON_WORDS[r]}" for r, n in self.reasons.items())
        return f"{len(self.kept)} to learn from, {len(self.failed)} not" + (
            f" ({reasons})" if reasons else ""
        )


def export_trajectories(
    store: Store, project: Project, which: str = "all", *, balance: bool
) -> TrajectoryExport:
    """Return the project's audits, oldest first; `reviewed` leaves out cases without an answer."""
    book = PromptBook(store.prompt_edits.of_project(project.id))
    kept: list[Trajectory] = []
    failed: list[tuple[Trajectory, Sequence[ExclusionReason]]] = []
    with store.reading():
        for run_id, case_id in find_newest_audits(store, project.id):
            truth = store.truths.of_case(case_id)
            if which == "reviewed" and not truth.records:
                continue
            events = load_events(store, run_id, TRAJECTORY_EVENT_KINDS)
            trajectory = build_trajectory(run_id, events, book)
            if trajectory is None:
                continue
            faults = find_exclusion_reasons(fold_events(events), truth)
            if faults:
                failed.append((trajectory, faults))
            else:
                kept.append(trajectory)
    if balance:
        kept, unbalanced = balance_labels(kept)
        fault = ExclusionReason("left_for_balance", "The other label has no more in its language.")
        failed += [(one, [fault]) for one in unbalanced]
    return TrajectoryExport(kept, failed)


def find_newest_audits(store: Store, project_id: str) -> Iterator[tuple[str, str]]:
    """Yield (run, case) of each case's newest finished audit by each roster, oldest first."""
    audits = reversed(store.runs.finished(project_id, AUDIT))
    newest = {(case_id, roster): run_id for run_id, case_id, roster in audits}
    yield from ((run_id, case_id) for (case_id, _), run_id in newest.items())


def zip_trajectories(found: TrajectoryExport) -> bytes:
    """Return both files packed into one zip."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(KEPT_FILE_NAME, found.kept_file)
        packed.writestr(FAILED_FILE_NAME, found.failed_file)
    return stream.getvalue()


def _dump_trajectory(trajectory: Trajectory) -> dict[str, Any]:
    plain = asdict(trajectory)
    return {"id": plain.pop("run_id"), **plain}
