"""Guidelines of a project: every version with its author, none overwritten unseen."""

from __future__ import annotations

import pytest

from core.runtime.errors import ConflictError, InputError
from core.schema.records import Project
from core.store import Store
from core.store.projects import Guideline


def version(text: str, author: str = "Lea", project: str = "p") -> Guideline:
    return Guideline(0, project, text, 1.0, author)


def test_every_version_is_kept_and_a_newer_one_is_not_covered(store: Store) -> None:
    for project in ("p", "q"):
        store.projects.save(Project(project, project, 1.0))
    store.guidelines.save(version("# One"), seen=0)
    store.guidelines.save(version("Theirs", project="q"), seen=0)
    seen = store.guidelines.history("p")[0].number
    store.guidelines.save(version("# Two", "Tom"), seen=seen)
    with pytest.raises(ConflictError, match="The guidelines were changed by Tom meanwhile"):
        store.guidelines.save(version("# Three"), seen=seen)
    with pytest.raises(InputError, match="at most 50,000 characters"):
        store.guidelines.save(version("x" * 50_001))
    assert [(v.text, v.author) for v in store.guidelines.history("p")] == [
        ("# Two", "Tom"), ("# One", "Lea")
    ]  # fmt: skip
