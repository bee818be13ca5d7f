"""Classifier versions with each case's permanent side, and other artefacts learned from answers.

A version is a folder with a row here; one is active, and running trainings are recorded.
Thresholds, examples and weights are plain JSON, appended, with which of each kind is in use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

from core.runtime.errors import ConfigError, ConflictError, InputError
from core.store.sqlite import Repository, fetch_first_row, get_columns, insert_row

ParsedBody = TypeVar("ParsedBody")
TrainingStatus = Literal["running", "finished", "failed", "cancelled", "interrupted"]
HoldoutSide = Literal["train", "calibration", "holdout"]
SEED_VERSION = "seed"
NOTHING_LEARNED = 0  # the number of the shipped default: nothing learned is in use


@dataclass(frozen=True)
class LearnedArtefact:
    """One artefact that a project learned; its `number` is assigned when it is stored."""

    kind: str
    project_id: str
    at: float
    author: str
    body: dict[str, Any]
    number: int = NOTHING_LEARNED


def parse_body(
    learned: LearnedArtefact, read: Callable[[dict[str, Any]], ParsedBody]
) -> ParsedBody:
    """Parse the body with `read`. Raises ConfigError: the body has another form."""
    try:
        return read(learned.body)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(
            f"Expected {learned.kind} {learned.number} in the form that this version keeps, "
            f"found another ({type(error).__name__}: {error}); it was not used. Put another in "
            "use, or update Counterpoint."
        ) from error


@dataclass(frozen=True)
class ArtefactChoice:
    """Somebody put a learned artefact into use, or the shipped default (`number` 0)."""

    kind: str
    project_id: str
    number: int
    at: float
    by: str
    reason: str


class LearnedArtefacts(Repository):
    """All learned artefacts, by kind and project, and every choice of which is in use."""

    def add(self, learned: LearnedArtefact) -> int:
        """Store a learned artefact and return its number; the number passed in is ignored."""
        body = json.dumps(learned.body, sort_keys=True, ensure_ascii=False, allow_nan=False)
        values = get_columns(learned) | {"body": body, "sha256": _digest(body)}
        del values["number"]
        return insert_row(self._db, "learned", values)

    def get(self, number: int) -> LearnedArtefact | None:
        """Return the artefact, or None. Raises ConfigError: its checksum does not match."""
        rows = self._db.query("SELECT * FROM learned WHERE number = ?", [number])
        return next(map(_parse_learned, rows), None)

    def all(self, kind: str, project_id: str) -> list[LearnedArtefact]:
        """Return all artefacts of that kind that the project learned, newest first."""
        return [_parse_learned(row) for row in self._rows("learned", kind, project_id)]

    def intact(self, kind: str, project_id: str) -> list[LearnedArtefact]:
        """Return the same as `all`, without those whose checksum does not match."""
        rows = self._rows("learned", kind, project_id)
        return [_parse_learned(row) for row in rows if _digest(row["body"]) == row["sha256"]]

    def newest(self, kind: str, project_id: str) -> LearnedArtefact | None:
        """Return the artefact of that kind that the project learned last, or None.

        Raises ConfigError: its checksum does not match; earlier artefacts are not checked.
        """
        return next(map(_parse_learned, self._rows("learned", kind, project_id)), None)

    def use(self, choice: ArtefactChoice) -> None:
        """Put a learned artefact into use from now on; number 0 goes back to the shipped default.

        Raises InputError: there is no such artefact of that kind in that project.
        """
        learned = self.get(choice.number) if choice.number != NOTHING_LEARNED else None
        exists = learned and (learned.kind, learned.project_id) == (choice.kind, choice.project_id)
        if choice.number != NOTHING_LEARNED and not exists:
            raise InputError(f"There is no {choice.kind} of number {choice.number} here.")
        values = get_columns(choice) | {"learned": choice.number}
        del values["number"]
        insert_row(self._db, "learned_choices", values)

    def choices(self, kind: str, project_id: str) -> list[ArtefactChoice]:
        """Return every choice of that kind, newest first."""
        return [
            ArtefactChoice(r["kind"], r["project_id"], r["learned"], r["at"], r["by"], r["reason"])
            for r in self._rows("learned_choices", kind, project_id)
        ]

    def in_use(self, kind: str, project_id: str) -> LearnedArtefact | None:
        """Return the artefact in use; None if the shipped default is."""
        row = next(self._rows("learned_choices", kind, project_id), None)
        return self.get(row["learned"]) if row and row["learned"] != NOTHING_LEARNED else None

    def _rows(self, table: str, kind: str, project_id: str) -> Iterator[dict[str, Any]]:
        which = "WHERE kind = ? AND project_id = ? ORDER BY number DESC"
        return self._db.query(f"SELECT * FROM {table} {which}", [kind, project_id])


def _digest(body: str) -> str:
    return hashlib.sha256(body.encode()).hexdigest()


def _parse_learned(row: Mapping[str, Any]) -> LearnedArtefact:
    if _digest(row["body"]) != row["sha256"]:
        raise ConfigError(
            f"Expected {row['kind']} {row['number']} as it was learned, found it changed "
            "(checksum differs); it was not used. Put another in use."
        )
    body = json.loads(row["body"])
    learned = LearnedArtefact(
        row["kind"], row["project_id"], row["at"], row["author"], body, row["number"]
    )
    return parse_body(learned, lambda checked_body: replace(learned, body={**checked_body}))


@dataclass(frozen=True)
class ClassifierVersion:
    """A trained classifier; `card` says what it was trained on and how it performed."""

    id: str
    created_at: float
    author: str
    card: dict[str, Any]


@dataclass(frozen=True)
class VersionActivation:
    """Somebody made a version the active one."""

    number: int
    version_id: str
    at: float
    by: str
    reason: str


@dataclass(frozen=True)
class TrainingJob:
    """A training job: its `options`, and as `progress` the last report of its process."""

    id: str
    author: str
    started_at: float
    status: TrainingStatus
    progress: dict[str, Any]
    version_id: str | None
    message: str
    finished_at: float | None
    pid: int | None = None
    options: dict[str, Any] = field(default_factory=dict)


class ClassifierVersions(Repository):
    """Append-only versions and activations; trainings; the hold-out."""

    def add(self, version: ClassifierVersion) -> None:
        """Store a new version."""
        insert_row(self._db, "versions", get_columns(version) | {"card": json.dumps(version.card)})

    def all(self) -> list[ClassifierVersion]:
        """Return all versions, newest first (the seed is not among them)."""
        rows = self._db.query("SELECT * FROM versions ORDER BY created_at DESC, id")
        return list(map(_parse_version, rows))

    def get(self, version_id: str) -> ClassifierVersion | None:
        """Return the version, or None."""
        rows = self._db.query("SELECT * FROM versions WHERE id = ?", [version_id])
        return next(map(_parse_version, rows), None)

    def activate(self, version_id: str, at: float, by: str, reason: str) -> None:
        """Make a version (or the seed) the active one from now on."""
        values = {"version_id": version_id, "at": at, "by": by, "reason": reason}
        insert_row(self._db, "activations", values)

    def activations(self) -> list[VersionActivation]:
        """Return every activation, newest first."""
        return self._all(VersionActivation, "SELECT * FROM activations ORDER BY number DESC")

    def active(self) -> str:
        """Return the active version's id; the seed if none was ever activated."""
        query = "SELECT version_id FROM activations ORDER BY number DESC LIMIT 1"
        row = fetch_first_row(self._db, query)
        return str(row["version_id"]) if row else SEED_VERSION

    def holdout(self) -> dict[str, bool]:
        """Return by case id whether the case is held out; an assignment never changes."""
        return {case_id: side == "holdout" for case_id, side in self.sides().items()}

    def sides(self) -> dict[str, HoldoutSide]:
        """Return each case's side by case id; an assignment never changes."""
        return {
            row["case_id"]: row["side"]
            for row in self._db.query(
                "SELECT case_id, CASE WHEN held THEN 'holdout' WHEN calibrates THEN 'calibration' "
                "ELSE 'train' END AS side FROM holdout"
            )
        }

    def taught_at(self) -> dict[str, float]:
        """Return by case when it was assigned a side that later versions may learn from."""
        rows = self._db.query("SELECT case_id, at FROM holdout WHERE held = 0")
        return {row["case_id"]: row["at"] for row in rows}

    def assign_sides(self, assigned: Mapping[str, HoldoutSide], now: float) -> None:
        """Assign cases that have no side yet."""
        for case_id, side in assigned.items():
            self._db.execute(
                "INSERT INTO holdout (case_id, held, calibrates, at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT DO NOTHING",
                [case_id, int(side == "holdout"), int(side == "calibration"), now],
            )

    def start_training(self, training: TrainingJob, now: float, lease: float) -> bool:
        """Store a training; return False if one is running. Call inside `Store.writing()`.

        A training whose process has been silent for longer than the lease is ended here for good.
        """
        if any(t.status == "running" for t in self.trainings(now, lease)):
            return False
        self._db.execute("UPDATE trainings SET status = 'interrupted' WHERE status = 'running'")
        values = {name: getattr(training, name) for name in ("id", "author", "started_at")}
        values |= {"options": json.dumps(training.options), "heartbeat_at": now}
        insert_row(self._db, "trainings", values | {"status": "running", "progress": "{}"})
        return True

    def report_training(
        self, training_id: str, progress: Mapping[str, Any], now: float, pid: int
    ) -> str:
        """Store a training's progress and return its status (it may have been cancelled)."""
        self._db.execute(
            "UPDATE trainings SET progress = ?, heartbeat_at = ?, pid = ? "
            "WHERE id = ? AND status = 'running'",
            [json.dumps(dict(progress)), now, pid, training_id],
        )
        row = next(self._db.query("SELECT status FROM trainings WHERE id = ?", [training_id]))
        return str(row["status"])

    def beat_training(self, training_id: str, now: float) -> None:
        """Renew a running training's lease. Raises ConflictError: it no longer runs."""
        cursor = self._db.execute(
            "UPDATE trainings SET heartbeat_at = ? WHERE id = ? AND status = 'running'",
            [now, training_id],
        )
        if not cursor.rowcount:
            raise ConflictError("The training is no longer running.")

    def end_training(
        self,
        training_id: str,
        status: TrainingStatus,
        now: float,
        *,
        message: str = "",
        version_id: str | None = None,
    ) -> bool:
        """Close a running training; return False if it had ended already and was left as it was."""
        cursor = self._db.execute(
            "UPDATE trainings SET status = ?, finished_at = ?, message = ?, version_id = ? "
            "WHERE id = ? AND status = 'running'",
            [status, now, message, version_id, training_id],
        )
        return cursor.rowcount > 0

    def training(self, training_id: str, now: float, lease: float) -> TrainingJob | None:
        """Return the training with its status as of now, or None."""
        rows = self._db.query("SELECT * FROM trainings WHERE id = ?", [training_id])
        return next((_parse_training(row, now, lease) for row in rows), None)

    def trainings(self, now: float, lease: float) -> list[TrainingJob]:
        """Return all trainings, newest first, with their status as of now."""
        rows = self._db.query("SELECT * FROM trainings ORDER BY started_at DESC")
        return [_parse_training(row, now, lease) for row in rows]


def _parse_version(row: dict[str, Any]) -> ClassifierVersion:
    return ClassifierVersion(**row | {"card": json.loads(row["card"])})


def _parse_training(row: dict[str, Any], now: float, lease: float) -> TrainingJob:
    is_silent = (row.pop("heartbeat_at") or 0) <= now - lease
    if row["status"] == "running" and is_silent:
        row["status"] = "interrupted"
    return TrainingJob(**row | {name: json.loads(row[name]) for name in ("progress", "options")})
