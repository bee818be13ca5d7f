"""Rosters of people: nothing is overwritten, a removed name leaves its history."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from core.runtime.errors import ConflictError, InputError
from core.schema.rosters import BUILT_IN_ROSTER, AgentConfig, DebaterConfig, RosterConfig
from core.store import Store

SHEET = RosterConfig(
    "Ours",
    "Two small models.",
    debaters=(
        DebaterConfig("Ada", AgentConfig(model="ollama/a", temperature=0.2)),
        DebaterConfig("B", AgentConfig()),
    ),
    judge=AgentConfig(
        model="openai/j", api_base="http://127.0.0.1:1/v1", price_in=0.5, max_tokens=300
    ),
)


def test_a_sheet_comes_back_as_it_was_saved(store: Store) -> None:
    saved = store.rosters.save(SHEET, "Mira", 1.0)
    assert store.rosters.get("Ours") == SHEET
    assert store.rosters.all() == [saved]
    assert (saved.author, saved.at) == ("Mira", 1.0)
    assert store.rosters.get("Theirs") is None


def test_every_save_is_kept_and_the_newest_counts(store: Store) -> None:
    store.rosters.save(SHEET, "Mira", 1.0)
    changed = replace(SHEET, words="Larger ones.")
    store.rosters.save(changed, "Tom", 2.0)
    assert store.rosters.get("Ours") == changed
    assert [(s.author, s.sheet) for s in store.rosters.history("Ours")] == [
        ("Tom", changed),
        ("Mira", SHEET),
    ]


def test_a_removed_name_is_gone_and_may_come_back(store: Store) -> None:
    store.rosters.save(SHEET, "Mira", 1.0)
    store.rosters.save(replace(SHEET, name="Alpha"), "Mira", 1.0)
    store.rosters.remove("Ours", "Tom", 2.0)
    assert store.rosters.get("Ours") is None
    assert [saved.name for saved in store.rosters.all()] == ["Alpha"]
    assert store.rosters.remove("Ours", "Tom", 3.0) is None
    assert len(store.rosters.history("Ours")) == 2
    store.rosters.save(SHEET, "Mira", 4.0)
    assert [saved.name for saved in store.rosters.all()] == ["Alpha", "Ours"]


def test_what_somebody_else_saved_meanwhile_is_not_covered(store: Store) -> None:
    first = store.rosters.save(SHEET, "Mira", 1.0, seen=0)
    second = store.rosters.save(SHEET, "Tom", 2.0, seen=first.number)
    attempts: list[Callable[[], object]] = [
        lambda: store.rosters.save(SHEET, "Mira", 3.0, seen=first.number),
        lambda: store.rosters.save(SHEET, "Mira", 3.0, seen=0),
        lambda: store.rosters.remove("Ours", "Mira", 3.0, seen=first.number),
    ]
    for attempt in attempts:
        with pytest.raises(ConflictError, match="“Ours” was changed by Tom meanwhile"):
            attempt()
    assert store.rosters.newest("Ours") == second


@pytest.mark.parametrize("name", ["", " ", " Ours", "x" * 81, BUILT_IN_ROSTER])
def test_a_name_that_is_none_is_refused(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="Expected a name for the roster"):
        store.rosters.save(replace(SHEET, name=name), "Mira", 1.0)
    assert store.rosters.all() == []
