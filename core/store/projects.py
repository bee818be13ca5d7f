"""Projects, people and their roles, the home's settings, rosters and edits of prompts.

Every save of a roster or of a project's own prompt is a row; the newest counts.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from core.runtime.config import Settings
from core.runtime.errors import ConfigError, ConflictError, InputError, NotAllowed
from core.schema.records import Member, PersonRole, Project
from core.schema.rosters import BUILT_IN_ROSTER, MAX_ROSTER_NAME_CHARACTERS, RosterConfig
from core.store.sqlite import (
    Database,
    Repository,
    fetch_first_row,
    from_json,
    get_columns,
    load_records,
    to_json,
    upsert_row,
)

MAX_PROMPT_CHARACTERS = 20_000  # characters
MAX_GUIDELINE_CHARACTERS = 50_000  # characters
ROLE_RANKS: dict[PersonRole, int] = {"annotator": 0, "lead": 1, "admin": 2}


def has_rank(role: PersonRole | None, at_least: PersonRole) -> bool:
    """Return True if the role, None for no role, permits what takes `at_least`."""
    return role is not None and ROLE_RANKS[role] >= ROLE_RANKS[at_least]


@dataclass(frozen=True)
class PromptEdit:
    """A prompt as somebody wrote it for a project; an empty text means the shipped one."""

    number: int
    project_id: str
    name: str
    language: str
    text: str
    at: float
    author: str


class PromptEdits(Repository):
    """Append-only edits of prompts, per project, prompt name and language."""

    def save(self, edit: PromptEdit, *, seen: int | None = None) -> PromptEdit:
        """Append an edit and return it with its new number; the number passed in is ignored.

        `seen` is the number of the edit that was changed, 0 if there was none. Whether the text has
        the prompt's fields is checked by `core/llm/prompting.py`. Raises InputError: the text is
        too long. Raises ConflictError: somebody else edited the prompt since; not checked if `seen`
        is None.
        """
        if len(edit.text) > MAX_PROMPT_CHARACTERS:
            raise InputError(
                f"Expected a prompt of at most {MAX_PROMPT_CHARACTERS:,} characters, found "
                f"{len(edit.text):,}; please shorten it."
            )
        saved = replace(edit, text=edit.text if edit.text.strip() else "")
        values = {name: value for name, value in get_columns(saved).items() if name != "number"}
        keys = ("project_id", "name", "language")
        number = _insert_if_newest(self._db, "prompt_edits", values, keys, seen)
        if number is None:
            edits = self.history(edit.project_id, edit.name, edit.language)
            raise _make_conflict(f"The prompt “{edit.name}”", edits, "your text was", "")
        return replace(saved, number=number)

    def of_project(self, project_id: str) -> dict[tuple[str, str], str]:
        """Return the project's texts by (name, language), except those reset to shipped."""
        rows = self._db.query(
            "SELECT name, language, text FROM prompt_edits WHERE text != '' AND number IN "
            "(SELECT MAX(number) FROM prompt_edits WHERE project_id = ? GROUP BY name, language)",
            [project_id],
        )
        return {(row["name"], row["language"]): row["text"] for row in rows}

    def all(self, project_id: str) -> list[PromptEdit]:
        """Return every edit of the project's prompts, oldest first."""
        query = "SELECT * FROM prompt_edits WHERE project_id = ? ORDER BY number"
        return self._all(PromptEdit, query, project_id)

    def history(self, project_id: str, name: str, language: str) -> list[PromptEdit]:
        """Return all edits of one prompt, newest first."""
        condition = "project_id = ? AND name = ? AND language = ? ORDER BY number DESC"
        query = f"SELECT * FROM prompt_edits WHERE {condition}"
        return self._all(PromptEdit, query, project_id, name, language)


@dataclass(frozen=True)
class Guideline:
    """A version of a project's guidelines for annotators, in Markdown; empty if there are none."""

    number: int
    project_id: str
    text: str
    at: float
    author: str


class Guidelines(Repository):
    """Append-only versions of the guidelines of all projects."""

    def save(self, version: Guideline, *, seen: int | None = None) -> None:
        """Append a version, under a number of its own; call inside `Store.writing()`.

        `seen` is the number of the version that was changed, 0 if there was none. Raises
        InputError: the text is too long. Raises ConflictError: somebody else saved one since; not
        checked if `seen` is None.
        """
        if len(version.text) > MAX_GUIDELINE_CHARACTERS:
            raise InputError(
                f"Expected guidelines of at most {MAX_GUIDELINE_CHARACTERS:,} characters, found "
                f"{len(version.text):,}; please shorten them."
            )
        values = {name: value for name, value in get_columns(version).items() if name != "number"}
        if _insert_if_newest(self._db, "guidelines", values, ("project_id",), seen) is None:
            raise _make_conflict(
                "The guidelines", self.history(version.project_id), "your text was", "", verb="were"
            )

    def newest(self, project_id: str) -> Guideline | None:
        """Return the newest version of a project's guidelines, or None."""
        query = "SELECT * FROM guidelines WHERE project_id = ? ORDER BY number DESC LIMIT 1"
        return next(iter(self._all(Guideline, query, project_id)), None)

    def history(self, project_id: str) -> list[Guideline]:
        """Return all versions of a project's guidelines, newest first."""
        query = "SELECT * FROM guidelines WHERE project_id = ? ORDER BY number DESC"
        return self._all(Guideline, query, project_id)


@dataclass(frozen=True)
class SavedRoster:
    """A roster as somebody saved it; `sheet` is None where it was removed."""

    number: int
    name: str
    at: float
    author: str
    sheet: RosterConfig | None


class Rosters(Repository):
    """Append-only rosters of the whole home."""

    def save(
        self, roster: RosterConfig, author: str, at: float, *, seen: int | None = None
    ) -> SavedRoster:
        """Append a roster under its name; `seen` is the number that was changed (0: a new name).

        Raises InputError: the name is empty, too long, or the built-in engine's. Raises
        ConflictError: somebody saved that name since; not checked if `seen` is None.
        """
        name = roster.name
        if (
            name != name.strip()
            or not 0 < len(name) <= MAX_ROSTER_NAME_CHARACTERS
            or name == BUILT_IN_ROSTER
        ):
            raise InputError(
                f"Expected a name for the roster of 1 to {MAX_ROSTER_NAME_CHARACTERS} "
                f"characters, without spaces "
                f"around it and other than “{BUILT_IN_ROSTER}”; found "
                f"“{name[:MAX_ROSTER_NAME_CHARACTERS]}”."
            )
        return self._insert_if_newest(SavedRoster(0, name, at, author, roster), seen)

    def remove(
        self, name: str, author: str, at: float, *, seen: int | None = None
    ) -> SavedRoster | None:
        """Take a name off the list; its history stays. Return None if there is no such name.

        Raises ConflictError: somebody saved that name since it was `seen`.
        """
        if self.get(name) is None:
            return None
        return self._insert_if_newest(SavedRoster(0, name, at, author, None), seen)

    def get(self, name: str) -> RosterConfig | None:
        """Return the current roster of that name, or None."""
        newest = self.newest(name)
        return newest.sheet if newest else None

    def newest(self, name: str) -> SavedRoster | None:
        """Return the newest row of that name, possibly a removal."""
        return next(iter(self.history(name)), None)

    def all(self) -> list[SavedRoster]:
        """Return every name's newest roster, by name."""
        rows = self._db.query(
            "SELECT * FROM rosters WHERE sheet IS NOT NULL AND number IN "
            "(SELECT MAX(number) FROM rosters GROUP BY name) ORDER BY name"
        )
        return list(map(_parse_roster, rows))

    def history(self, name: str) -> list[SavedRoster]:
        """Return all saves and removals of that name, newest first."""
        query = "SELECT * FROM rosters WHERE name = ? ORDER BY number DESC"
        return list(map(_parse_roster, self._db.query(query, [name])))

    def _insert_if_newest(self, saved: SavedRoster, seen: int | None) -> SavedRoster:
        roster = None if saved.sheet is None else to_json(saved.sheet)
        values = {"name": saved.name, "at": saved.at, "author": saved.author, "sheet": roster}
        number = _insert_if_newest(self._db, "rosters", values, ("name",), seen)
        if number is None:
            history, instead = self.history(saved.name), " or choose another name"
            raise _make_conflict(f"The roster “{saved.name}”", history, "yours was", instead)
        return replace(saved, number=number)


def _make_conflict(
    what: str,
    newest: Sequence[PromptEdit | Guideline | SavedRoster],
    yours: str,
    instead: str,
    verb: str = "was",
) -> ConflictError:
    who = newest[0].author if newest else "somebody"
    return ConflictError(
        f"{what} {verb} changed by {who} meanwhile, so {yours} not saved. Look at theirs, then "
        f"save again{instead}."
    )


def _parse_roster(row: dict[str, Any]) -> SavedRoster:
    roster = None if row["sheet"] is None else from_json(RosterConfig, row["sheet"])
    return SavedRoster(**row | {"sheet": roster})


def _insert_if_newest(
    db: Database, table: str, values: dict[str, Any], key: Sequence[str], seen: int | None
) -> int | None:
    """Insert a row and return its number, or None if the key's newest row is not the `seen` one.

    One statement checks and writes, so that of two people at once only one succeeds.
    """
    columns, marks = ", ".join(values), ", ".join(f":{name}" for name in values)
    same = " AND ".join(f"{name} = :{name}" for name in key)
    cursor = db.execute(
        f"INSERT INTO {table} ({columns}) SELECT {marks} WHERE :seen IS NULL "
        f"OR :seen = (SELECT COALESCE(MAX(number), 0) FROM {table} WHERE {same})",
        {**values, "seen": seen},
    )
    return int(cursor.lastrowid or 0) if cursor.rowcount else None


GUEST = "guest"
"""Who works in a browser that has not been told a name; on a server with login there is none."""


class Projects(Repository):
    """Projects, their members and roles, and the home's settings."""

    def settings(self) -> Settings:
        """Return the home's settings; defaults where nothing is stored.

        Raises ConfigError: a stored one cannot be read.
        """
        rows = self._db.query("SELECT name, value FROM settings WHERE name NOT LIKE 'note.%'")
        return Settings.from_mapping({r["name"]: _parse_value(r["name"], r["value"]) for r in rows})

    def save_setting(self, name: str, value: int) -> None:
        """Store one setting. Raises ConfigError: unknown name or value out of bounds."""
        Settings().with_value(name, value)
        self._save_value(name, value)

    def note(self, name: str) -> str:
        """Return a text that the app itself stored (e.g. the last used name); empty if none."""
        query = "SELECT name, value FROM settings WHERE name = ?"
        row = fetch_first_row(self._db, query, [f"note.{name}"])
        return str(_parse_value(row["name"], row["value"])) if row else ""

    def save_note(self, name: str, value: str) -> None:
        """Store a text under a name."""
        self._save_value(f"note.{name}", value)

    def _save_value(self, name: str, value: object) -> None:
        upsert_row(self._db, "settings", {"name": name, "value": json.dumps(value)}, "name")

    def add_person(self, name: str, now: float) -> None:
        """Add a person; adding one twice changes nothing.

        Raises InputError: the name is empty, too long, or holds what cannot be shown.
        """
        if not name.strip() or len(name) > 80 or not name.isprintable():
            raise InputError(
                "Expected a name of 1 to 80 characters that can be shown; please type yours."
            )
        self._db.execute(
            "INSERT INTO people (name, added_at) VALUES (?, ?) ON CONFLICT DO NOTHING",
            [name.strip(), now],
        )

    def save(self, project: Project) -> None:
        """Add a project or change its settings.

        Raises:
            InputError: the name is empty.
            ConflictError: another project has that name.
        """
        if not project.name.strip():
            raise InputError("Expected a name for the project, found none; please type one.")
        query = "SELECT id FROM projects WHERE name = ? AND id != ?"
        if fetch_first_row(self._db, query, [project.name, project.id]):
            raise ConflictError(f"There is a project called “{project.name}” already.")
        values = {name: getattr(project, name) for name in ("id", "name", "created_at")}
        values |= {"payload": to_json(project)}
        upsert_row(self._db, "projects", values, "id", ("name", "payload"))

    def get(self, project_id: str) -> Project | None:
        """Return the project, or None."""
        return next(
            iter(load_records(self._db, Project, "projects WHERE id = ?", [project_id])), None
        )

    def all(self) -> list[Project]:
        """Return all projects, oldest first."""
        return load_records(self._db, Project, "projects ORDER BY created_at, id")

    def first(self) -> Project | None:
        """Return the oldest project, whose roles apply to the whole home; None in an empty home."""
        return next(iter(self.all()), None)

    def of(self, person: str) -> list[Project]:
        """Return the projects in which the person has a role, oldest first."""
        from_clause = "projects WHERE id IN (SELECT project_id FROM members WHERE person = ?)"
        return load_records(self._db, Project, f"{from_clause} ORDER BY created_at, id", [person])

    def add_member(self, member: Member) -> None:
        """Add a person to a project; call inside `Store.writing()`.

        Raises InputError: the name is empty or too long. Raises ConflictError: the person is a
        member already, perhaps in another role.
        """
        person = member.person.strip()
        role = self.role_of(member.project_id, person)
        if role is not None:
            raise ConflictError(
                f"{person} is in this project already, as {role}; change the role there instead."
            )
        self.set_member(member)

    def set_member(self, member: Member) -> None:
        """Give a person a role in a project, adding the person if needed.

        Call inside `Store.writing()`. Raises InputError: the name is empty or too long. Raises
        ConflictError: the project would be left without an admin, and nobody could name one.
        """
        person = member.person.strip()
        if member.role != "admin":
            self._require_another_admin(member.project_id, person)
        self.add_person(member.person, member.added_at)
        values = get_columns(replace(member, person=person))
        upsert_row(self._db, "members", values, "project_id, person", ("role",))

    def remove_member(self, project_id: str, person: str) -> None:
        """Remove a person's role in a project; all they did stays. Call inside `writing()`.

        What was assigned to them is free for others again.

        Raises ConflictError: the project would be left without an admin, and nobody could name one.
        """
        self._require_another_admin(project_id, person)
        self._db.execute(
            "DELETE FROM members WHERE project_id = ? AND person = ?", [project_id, person]
        )
        self._db.execute(
            "UPDATE assignments SET assigned_by = '' WHERE person = ? AND state = 'claimed' "
            "AND case_id IN (SELECT case_id FROM items WHERE project_id = ?)",
            [person, project_id],
        )

    def _require_another_admin(self, project_id: str, person: str) -> None:
        if self.admins(project_id) == [person]:
            raise ConflictError(
                f"{person} is the only admin of this project; make somebody else an admin first."
            )

    def admins(self, project_id: str) -> list[str]:
        """Return the names of those who may change the project, in order."""
        return [m.person for m in self.members(project_id) if m.role == "admin"]

    def members(self, project_id: str) -> list[Member]:
        """Return the project's members by name."""
        query = "SELECT * FROM members WHERE project_id = ? ORDER BY person"
        return self._all(Member, query, project_id)

    def role_of(self, project_id: str, person: str) -> PersonRole | None:
        """Return the person's role in the project, or None."""
        query = "SELECT role FROM members WHERE project_id = ? AND person = ?"
        row = fetch_first_row(self._db, query, [project_id, person])
        return row["role"] if row else None

    def require(self, project_id: str, person: str, at_least: PersonRole, what: str) -> None:
        """Raise NotAllowed for a person who has no role in the project, or a lesser one.

        A guest may do what an annotator may, except answer, which takes a name.
        """
        role = self.role_of(project_id, person) or ("annotator" if person == GUEST else None)
        if not has_rank(role, at_least):
            project = self.get(project_id)
            where = f"“{project.name}”" if project else "this project"
            raise NotAllowed(
                f"To {what} takes the role {at_least}; {person or 'nobody'} has "
                f"{role or 'none'} in {where}. An admin can change that on Project."
            )

    def require_for_all(self, person: str, at_least: PersonRole, what: str) -> None:
        """Check the person's role in the first project, which governs what applies to all projects.

        Raises NotAllowed: the person has no role there, or a lesser one.
        """
        first = self.first()
        self.require(first.id if first else "", person, at_least, what)


def _parse_value(name: str, stored: str) -> object:
    """Parse a stored setting or note; only another program can have written invalid JSON."""
    try:
        return cast("object", json.loads(stored))
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"Expected JSON as the stored setting “{name}”, found “{stored[:40]}”; remove that row "
            "from the table “settings” of counterpoint.db, and its default counts again."
        ) from error
