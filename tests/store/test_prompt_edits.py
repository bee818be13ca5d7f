"""Prompts as a project wrote them: appended, per project and language, with a way back to ours."""

from __future__ import annotations

import pytest

from core.runtime.errors import ConflictError, InputError
from core.schema.records import Project
from core.store import Store
from core.store.projects import PromptEdit


@pytest.fixture
def shelf(store: Store) -> Store:
    """A store with two projects."""
    store.projects.save(Project("p", "Ours", 1.0))
    store.projects.save(Project("q", "Theirs", 1.0))
    return store


def edit(text: str, *, project: str = "p", language: str = "en", author: str = "M") -> PromptEdit:
    return PromptEdit(0, project, "judge", language, text, 1.0, author)


def test_the_newest_edit_counts_for_its_project_and_language(shelf: Store) -> None:
    edits = shelf.prompt_edits
    edits.save(edit("one"))
    edits.save(edit("two"))
    edits.save(edit("二", language="zh"))
    edits.save(edit("theirs", project="q"))
    assert edits.of_project("p") == {("judge", "en"): "two", ("judge", "zh"): "二"}
    assert [kept.text for kept in edits.history("p", "judge", "en")] == ["two", "one"]


@pytest.mark.parametrize("empty", ["", " \n"])
def test_an_empty_text_goes_back_to_ours(shelf: Store, empty: str) -> None:
    shelf.prompt_edits.save(edit("one"))
    shelf.prompt_edits.save(edit(empty))
    assert shelf.prompt_edits.of_project("p") == {}
    assert [kept.text for kept in shelf.prompt_edits.history("p", "judge", "en")] == ["", "one"]


def test_what_somebody_else_wrote_meanwhile_is_not_covered(shelf: Store) -> None:
    first = shelf.prompt_edits.save(edit("one"), seen=0)
    shelf.prompt_edits.save(edit("two", author="Tom"), seen=first.number)
    with pytest.raises(ConflictError, match="“judge” was changed by Tom meanwhile"):
        shelf.prompt_edits.save(edit("three"), seen=first.number)
    assert shelf.prompt_edits.of_project("p") == {("judge", "en"): "two"}


def test_a_prompt_that_is_too_long_is_refused(shelf: Store) -> None:
    with pytest.raises(InputError, match="at most 20,000 characters, found 20,001"):
        shelf.prompt_edits.save(edit("x" * 20_001))
