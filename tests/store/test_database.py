"""Opening: many at once, newer databases, foreign files."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core.runtime.errors import ConfigError
from core.schema.records import Member, Plan, Project
from core.schema.rosters import RosterConfig
from core.store import open_store
from core.store.cases import Cases
from core.store.database import DATABASE_FILE
from core.store.migrations import migrations
from core.store.projects import Projects, PromptEdit
from core.store.sqlite import Database
from core.store.versions import LearnedArtefact
from tests.fakes import make_case
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.timing

OPEN = """
import sys; from pathlib import Path
from core.store import open_store
open_store(Path(sys.argv[1])).close()
"""


def test_a_new_home_is_made_and_opens_again(home: Path) -> None:
    with open_store(home) as store:
        store.projects.save(Project("p", "Ours", 1.0))
    with open_store(home) as store:
        assert store.projects.get("p") == Project("p", "Ours", 1.0)


@pytest.mark.slow
def test_many_processes_may_open_a_new_home_at_once(home: Path) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", OPEN, str(home)], stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    results = [process.communicate(timeout=PATIENCE_SECONDS)[1].decode() for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, results


def test_who_opens_a_home_that_another_is_just_making_waits(home: Path) -> None:
    home.mkdir()
    other = sqlite3.connect(home / DATABASE_FILE, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")  # not yet WAL: SQLite refuses the switch without waiting
    threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
    with open_store(home) as store:
        assert store.db.conn.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_a_newer_database_is_refused_untouched(home: Path) -> None:
    open_store(home).close()
    with sqlite3.connect(home / DATABASE_FILE) as connection:
        connection.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) "
            "VALUES ('counterpoint', 'm999_from_the_future', 'x')"
        )
    connection.close()
    before = (home / DATABASE_FILE).read_bytes()
    with pytest.raises(ConfigError, match=r"newer version .*m999_from_the_future.* untouched"):
        open_store(home)
    assert (home / DATABASE_FILE).read_bytes() == before


def test_another_file_in_its_place_is_named(home: Path) -> None:
    home.mkdir()
    (home / DATABASE_FILE).write_text("this is no database, but long enough to be looked at" * 20)
    with pytest.raises(ConfigError, match="found another file"):
        open_store(home)


def test_a_home_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="Choose another with --home"):
        open_store(tmp_path / "file" / "home")


def test_read_then_write_from_many_threads_loses_nothing(home: Path) -> None:
    with open_store(home) as store:
        store.projects.save_note("count", "0")

    def add_one(_: int) -> None:
        with open_store(home) as mine, mine.writing():
            mine.projects.save_note("count", str(int(mine.projects.note("count")) + 1))

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(add_one, range(100)))
    with open_store(home) as store:
        assert store.projects.note("count") == "100"


def test_a_failed_transaction_leaves_nothing_behind(home: Path) -> None:
    with open_store(home) as store:
        with pytest.raises(RuntimeError), store.writing():
            store.projects.save(Project("p", "Ours", 1.0))
            raise RuntimeError("power cut")
        assert store.projects.all() == []


def test_reading_sees_one_state_whatever_is_written_meanwhile(home: Path) -> None:
    with open_store(home) as store, open_store(home) as other:
        with store.reading():
            assert store.projects.all() == []
            other.projects.save(Project("p", "Ours", 1.0))
            assert store.projects.all() == []
        assert [project.id for project in store.projects.all()] == ["p"]


def test_copied_configuration_holds_what_checks_use_and_nothing_else_that_people_wrote(
    home: Path, tmp_path: Path
) -> None:
    roster = RosterConfig("Ours")
    with open_store(home) as store:
        with store.writing():
            store.projects.save(Project("p", "Mira's", 1.0, "secret plans", role="Auditor"))
            store.projects.set_member(Member("p", "Mira", "admin", 1.0))
            store.projects.save_setting("passages", 7)
            notes = {
                "person": "Mira", "draft.answer.Mira": "a secret", "qualification.a": "passed",
                "model_trusted.p.a": "Mira: a secret",
            }  # fmt: skip
            for name, text in notes.items():
                store.projects.save_note(name, text)
            store.cases.add(make_case("A secret.", project_id="p"), [])
            for text in ("a secret of old", "Judge well."):
                edit = PromptEdit(0, "p", "judge", "en", text, 1.0, "Mira")
                store.prompt_edits.save(edit)
            store.rosters.save(roster, "Mira", 1.0)
            store.rosters.save(RosterConfig("secret"), "Mira", 1.0)
            used, unused = (
                store.learned.add(LearnedArtefact(kind, "p", 1.0, "Mira", body))
                for kind, body in (
                    ("span_threshold", {"limit": 0.4}),
                    ("span_examples", {"reason": "a secret"}),
                )
            )
        plan = Plan(sheet=roster, span_threshold=used)
        files = store.copy_configuration(tmp_path / "copy", ["p"], [plan])
    assert DATABASE_FILE in [path.name for path in files]
    content = b"".join(path.read_bytes() for path in files)
    assert b"Mira" not in content
    assert b"secret" not in content
    with open_store(tmp_path / "copy") as copied:
        assert copied.projects.settings().passages == 7
        assert copied.projects.all() == [Project("p", "p", 1.0, role="Auditor")]
        assert copied.projects.note("qualification.a") == "passed"
        assert copied.projects.note("model_trusted.p.a")
        assert copied.prompt_edits.of_project("p") == {("judge", "en"): "Judge well."}
        assert [saved.sheet for saved in copied.rosters.all()] == [roster]
        threshold = copied.learned.get(used)
        assert threshold is not None
        assert threshold.body == {"limit": 0.4}
        assert copied.learned.get(unused) is None
        assert copied.cases.get("case") is None


def test_rows_of_old_tables_get_the_questions_of_their_cases(home: Path) -> None:
    home.mkdir()
    db = Database(sqlite3.connect(home / DATABASE_FILE, isolation_level=None))
    migrations.apply(db, stop_before="m005_batch_questions")
    Projects(db).save(Project("p", "Ours", 1.0))
    Cases(db).add(make_case("Yes.", project_id="p", question="Do cats sleep?"), [])
    db.execute(
        "INSERT INTO batches (id, project_id, name, author, created_at, plan) "
        "VALUES ('b', 'p', 't.csv', 'Mira', 1.0, '{}')"
    )
    for row, case_id in ((1, "case"), (2, None)):
        db.execute(
            "INSERT INTO batch_rows (batch_id, row, case_id, claim, sources) "
            "VALUES ('b', ?, ?, 'Yes.', '[]')",
            [row, case_id],
        )
    db.close()
    with open_store(home) as store:
        assert [row.question for row in store.batches.rows("b")] == ["Do cats sleep?", ""]
