"""A project's own wording of prompts: every edit is a row, an empty text goes back to ours."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from core.errors import ConflictError, InputError
from core.store.sqlite import Database

LONGEST_PROMPT = 20_000


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


class PromptEdits:
    """Append-only edits of prompts, per project, prompt name and language."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, edit: PromptEdit, *, seen: int | None = None) -> PromptEdit:
        """Keep an edit and return it with its number; the number it comes with is not looked at.

        `seen` is the number of the edit that was changed, 0 where there was none. Whether the text
        has the prompt's fields is for `core/models/prompting.py` to check.

        Raises:
            InputError: the text is too long.
            ConflictError: somebody else edited the prompt since; with `seen` None that is not
                asked.
        """
        if len(edit.text) > LONGEST_PROMPT:
            raise InputError(
                f"Expected a prompt of at most {LONGEST_PROMPT:,} characters, found "
                f"{len(edit.text):,}; please shorten it."
            )
        kept = replace(edit, text=edit.text if edit.text.strip() else "")
        cursor = self._db.execute(
            "INSERT INTO prompt_edits (project_id, name, language, text, at, author) "
            "SELECT :project, :name, :language, :text, :at, :author "
            "WHERE :seen IS NULL OR :seen = (SELECT COALESCE(MAX(number), 0) FROM prompt_edits "
            "WHERE project_id = :project AND name = :name AND language = :language)",
            {
                "project": kept.project_id,
                "name": kept.name,
                "language": kept.language,
                "text": kept.text,
                "at": kept.at,
                "author": kept.author,
                "seen": seen,
            },
        )
        if cursor.rowcount == 0:
            found = self.history(edit.project_id, edit.name, edit.language)
            who = found[0].author if found else "somebody"
            raise ConflictError(
                f"The prompt “{edit.name}” was changed by {who} meanwhile, so your text was not "
                "saved. Look at theirs, then save again."
            )
        return replace(kept, number=cursor.lastrowid or 0)

    def of_project(self, project_id: str) -> dict[tuple[str, str], str]:
        """The project's own texts by (name, language); what is back to ours is not among them."""
        rows = self._db.query(
            "SELECT name, language, text FROM prompt_edits WHERE text != '' AND number IN "
            "(SELECT MAX(number) FROM prompt_edits WHERE project_id = ? GROUP BY name, language)",
            [project_id],
        )
        return {(row["name"], row["language"]): row["text"] for row in rows}

    def all(self, project_id: str) -> list[PromptEdit]:
        """Every edit of the project's prompts, oldest first."""
        rows = self._db.query(
            "SELECT * FROM prompt_edits WHERE project_id = ? ORDER BY number", [project_id]
        )
        return [_edit(row) for row in rows]

    def history(self, project_id: str, name: str, language: str) -> list[PromptEdit]:
        """All edits of one prompt, newest first."""
        rows = self._db.query(
            "SELECT * FROM prompt_edits WHERE project_id = ? AND name = ? AND language = ? "
            "ORDER BY number DESC",
            [project_id, name, language],
        )
        return [_edit(row) for row in rows]


def _edit(row: dict[str, Any]) -> PromptEdit:
    return PromptEdit(**row)
