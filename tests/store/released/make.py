"""Writes the newest schema's database beside this file: `python -m tests.store.released.make`.

Run once for every release that adds a migration; files of earlier releases are never written
again. It holds one finished check of our own text, its correction, a call to a language model, a
roster, an edited prompt, and a project's settings. It was checked without the weights, which
change between releases.
"""

from __future__ import annotations

import gzip
import sqlite3
import tempfile
from pathlib import Path

import core.baseline.entailment
from core.pipeline.single_check import CheckRequest, check_once
from core.schema.records import Run, Span, new_id
from core.schema.reviews import Correction
from core.schema.rosters import RosterConfig
from core.store import open_store
from core.store.database import DATABASE_FILE
from core.store.ledger import LedgerRow
from core.store.migrations import migrations
from core.store.projects import PromptEdit
from tests.readers import paw_assessor

FOLDER = Path(__file__).parent
CLAIM = "Female cats tend to be left pawed."
TEXT = "Female cats tend to be right pawed, while male cats are more often left pawed."


def main() -> None:
    """Make a home with one check in it and keep a packed copy of its database."""
    core.baseline.entailment.load_shared_assessor = paw_assessor
    ticks = iter(range(1_700_000_000, 1_700_001_000))
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        page = Path(folder) / "cats.txt"
        page.write_text(TEXT)
        request = CheckRequest(CLAIM, documents=[page])
        result, _ = check_once(home, request, lambda: float(next(ticks)))
        with open_store(home) as store:
            run = store.runs.get(result["run_id"], 1e12, 6)
            assert run is not None
            span = Span(23, 27, "left", 1.0, "contradicted", "Mira", "right")
            correction = Correction(
                new_id(), run.id, run.case_id, "Mira", 1_700_000_900.0, "hallucinated", (span,)
            )
            with store.writing():
                store.projects.save_setting("passages", 7)
                store.corrections.add(correction, CLAIM)
                store.ledger.put(answered_call(run))
                store.rosters.save(RosterConfig("Two of a kind", "Ours."), "Mira", 1_700_000_901.0)
                edit = PromptEdit(0, run.project_id, "judge", "en", "Decide.", 1.0, "Mira")
                store.prompt_edits.save(edit)
        connection = sqlite3.connect(home / DATABASE_FILE)
        packed = Path(folder) / "packed.db"
        connection.execute("VACUUM INTO ?", (str(packed),))
        connection.close()
        newest = [migration.name for migration in migrations._migrations][-1]
        target = FOLDER / f"{newest}.db.gz"
        target.write_bytes(gzip.compress(packed.read_bytes(), mtime=0))


def answered_call(run: Run) -> LedgerRow:
    """A call of the run as the ledger keeps it."""
    return LedgerRow(
        id="call",
        run_id=run.id,
        slot="verdict",
        digest="0" * 64,
        project_id=run.project_id,
        person="Mira",
        role="judge",
        model="openai/ours",
        prompt="judge",
        prompt_hash="0" * 12,
        cut="",
        at=1_700_000_900.0,
        reserved_nano=700_000,
        reserved_tokens=90,
        counts_nano=500_000,
        counts_tokens=0,
        status="done",
        tokens_in=40,
        tokens_out=4,
        is_counted=True,
        cost_nano=500_000,
        seconds=0.5,
        reply="Verdict: 0",
        finish="stop",
    )


if __name__ == "__main__":
    main()
