"""What pages keep between reruns is counted anew as soon as something has changed."""

from __future__ import annotations

import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from components.app import state
from core.learning.agreement import count_answers
from core.learning.training_set import summarize_corrections
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.schema.records import Plan, Project
from core.store import Store, open_store
from tests.pages.driving import Site
from tests.pages.test_review_pages import say


def test_agreement_is_counted_once_and_again_after_the_next_answer(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = Mock(wraps=count_answers)
    monkeypatch.setattr("core.learning.agreement.count_answers", again)
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "supported", 1.0)
        say(store, run_id, "Karl", "hallucinated", 2.0)
    at = site.open("pages/review/agreement.py").run()
    assert list(at.dataframe[1].value["Labels differ"]) == ["1 of 1"]
    assert again.call_count == 1, "nothing has changed: nothing is counted again"
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "hallucinated", 3.0)
    at.run()
    assert list(at.dataframe[1].value["Labels differ"]) == ["0 of 1"]
    assert again.call_count == 2


def test_what_there_is_to_learn_is_counted_once_and_again_after_the_next_correction(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    again = Mock(wraps=summarize_corrections)
    monkeypatch.setattr("core.learning.training_set.summarize_corrections", again)
    at = site.open("pages/learn/retrain.py").run()
    assert [metric.value for metric in at.metric] == ["0", "0", "0", "0"]
    assert again.call_count == 1
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "hallucinated", 1.0)
    at.run()
    assert [metric.value for metric in at.metric] == ["1", "0", "0", "0"]
    assert again.call_count == 2


def test_the_queue_looks_for_missing_runs_once_and_again_after_the_next_run(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(site.home) as store:
        store.db.execute("DELETE FROM items")
    asked: list[str] = []
    ours = type(store.queue_lists).missing

    def missing(self: object, project_id: str, most: int) -> list[str]:
        asked.append(project_id)
        return ours(self, project_id, most)  # type: ignore[arg-type]

    monkeypatch.setattr(type(store.queue_lists), "missing", missing)
    at = site.open("pages/review/pending.py")
    assert len(at.dataframe[0].value) == 1
    at.run()
    looked = len(asked)
    at.run()
    assert len(asked) == looked, "it was found full, and no run has ended since"
    ended = another_run(site.home)
    with open_store(site.home) as store:
        store.db.execute("DELETE FROM items WHERE run_id = ?", [ended])
    assert len(at.run().dataframe[0].value) == 2
    assert len(asked) == looked + 1


def another_run(home: Path) -> str:
    """A finished run over a second claim; its id."""
    with open_store(home) as store:
        draft = CaseDraft("Male cats are more often right pawed.")
        case = store_case(store, _project(store), draft, "Mira", time.time())
    made = state.get_jobs().start(case, Plan())
    assert state.get_jobs().wait(made, 60)
    return made


def _project(store: Store) -> Project:
    return ensure_project(store, "Mira", 1.0)
