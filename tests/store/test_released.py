"""Databases of every released schema open with this code, and nothing in them is lost."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from core.store import open_store
from core.store.database import DATABASE_FILE
from core.store.migrations import migrations
from core.store.runs import RunFilter

RELEASED = sorted((Path(__file__).parent / "released").glob("*.db.gz"))


def test_the_newest_schema_has_its_fixture() -> None:
    newest = [migration.name for migration in migrations._migrations][-1]
    assert f"{newest}.db.gz" in {path.name for path in RELEASED}, (
        "a new migration: run python -m tests.store.released.make"
    )


@pytest.mark.parametrize("released", RELEASED, ids=lambda path: path.name)
def test_a_released_database_opens_whole(released: Path, home: Path) -> None:
    home.mkdir()
    (home / DATABASE_FILE).write_bytes(gzip.decompress(released.read_bytes()))
    with open_store(home) as store:
        assert store.projects.settings().passages == 7
        project = store.projects.all()[0]
        assert [entry.name for entry in store.library.all(project.id)] == ["cats.txt"]
        rows, total = store.runs.page(
            project.id, RunFilter(terms=("left",)), limit=25, offset=0, now=1e12, lease=6
        )
        assert total == 1
        run = rows[0].run
        assert (run.status, run.label) == ("finished", "hallucinated")
        assert rows[0].truth.label == "hallucinated"
        kinds = [event.kind for _, event in store.runs.events(run.id)]
        assert (kinds[0], kinds[-1]) == ("run_started", "run_finished")
        (correction,) = store.corrections.of_run(run.id)
        assert correction.spans[0].text == "left"
        knows_models = released.name >= "m006"
        replies = [call.reply for call in store.ledger.of_run(run.id)]
        assert replies == (["Verdict: 0"] if knows_models else [])
        names = [saved.name for saved in store.rosters.all()]
        assert names == (["Two of a kind"] if knows_models else [])
        edits = store.prompt_edits.of_project(project.id)
        assert edits == ({("judge", "en"): "Decide."} if knows_models else {})
