"""The schema's history: the numbered scripts of `migrations.sql`, each applied once."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from core.store.sqlite import Database, Migrations

_SQL = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
_PARTS = re.split(r"^-- (m\d{3}_\w+)\n", _SQL, flags=re.MULTILINE)[1:]
MIGRATION_SCRIPTS = {
    name: re.sub(r"^--.*\n", "", script, flags=re.MULTILINE)
    for name, script in zip(_PARTS[::2], _PARTS[1::2], strict=True)
}


def _make_step(script: str) -> Callable[[Database], None]:
    def apply(db: Database) -> None:
        for statement in script.split(";"):  # `executescript` would commit, and lose the lock
            if statement.strip():
                db.execute(statement)

    return apply


migrations = Migrations("counterpoint")
for name, script in MIGRATION_SCRIPTS.items():
    migrations(name=name)(_make_step(script))
