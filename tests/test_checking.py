"""What a person has typed and not saved stays theirs."""

from __future__ import annotations

from core.checking import PERSON_NOTE, draft_of, first_project, keep_draft, rename_person
from core.store import Store


def test_drafts_go_along_to_a_new_name(store: Store) -> None:
    project = first_project(store, "Mira", 1.0)
    keep_draft(store, "Mira", "run.1.correct", "half a sentence")
    keep_draft(store, "Mira", f"new.{project.id}", "a claim")
    keep_draft(store, "Mira", "gone", "x")
    keep_draft(store, "Mira", "gone", "")
    keep_draft(store, "Berg.Mira", "new", "another person, whose name ends like hers")
    rename_person(store, "Mira", "Mira Berg", 2.0)
    assert store.projects.note(PERSON_NOTE) == "Mira Berg"
    assert draft_of(store, "Mira Berg", "run.1.correct") == "half a sentence"
    assert draft_of(store, "Mira Berg", f"new.{project.id}") == "a claim"
    assert draft_of(store, "Mira", "run.1.correct") == ""
    assert draft_of(store, "Berg.Mira", "new") != ""
    rename_person(store, "Mira Berg", "Mira", 3.0)
    assert draft_of(store, "Mira", "run.1.correct") == "half a sentence"


def test_a_draft_that_the_new_name_has_already_is_not_lost(store: Store) -> None:
    first_project(store, "Mira", 1.0)
    keep_draft(store, "Mira", "new", "Mira's")
    keep_draft(store, "Karl", "new", "Karl's")
    rename_person(store, "Mira", "Karl", 2.0)
    assert draft_of(store, "Karl", "new") == "Karl's"
    assert draft_of(store, "Mira", "new") == "Mira's"
    rename_person(store, "Karl", "Karl", 3.0)
    assert draft_of(store, "Karl", "new") == "Karl's"
