"""What is learned is appended; what is in use can be told, gone back to, and trusted."""

from __future__ import annotations

import hashlib

import pytest

from core.runtime.errors import ConfigError, InputError
from core.store import Store
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact


def kept(store: Store, value: float, project: str = "p", kind: str = "threshold") -> int:
    return store.learned.add(LearnedArtefact(kind, project, 1.0, "Mira", {"tau": value}))


def test_the_newest_choice_is_in_use_and_what_ships_can_be_gone_back_to(store: Store) -> None:
    first, second = kept(store, 0.6), kept(store, 0.8)
    assert store.learned.in_use("threshold", "p") is None
    for number in (second, first):
        store.learned.use(ArtefactChoice("threshold", "p", number, 2.0, "Mira", "better"))
    found = store.learned.in_use("threshold", "p")
    assert found is not None
    assert (found.number, found.body) == (first, {"tau": 0.6})
    store.learned.use(ArtefactChoice("threshold", "p", NOTHING_LEARNED, 3.0, "Mira", ""))
    assert store.learned.in_use("threshold", "p") is None
    assert [c.number for c in store.learned.choices("threshold", "p")] == [
        NOTHING_LEARNED,
        first,
        second,
    ]
    assert [one.number for one in store.learned.all("threshold", "p")] == [second, first]


def test_a_thing_of_another_project_or_kind_cannot_be_used(store: Store) -> None:
    number = kept(store, 0.6, project="q")
    for kind, project in (("threshold", "p"), ("examples", "q")):
        with pytest.raises(InputError, match="There is no"):
            store.learned.use(ArtefactChoice(kind, project, number, 2.0, "Mira", ""))


def test_a_changed_body_is_refused(store: Store) -> None:
    number = kept(store, 0.6)
    store.db.execute("UPDATE learned SET body = '{\"tau\": 0.1}' WHERE number = ?", [number])
    with pytest.raises(ConfigError, match="checksum differs"):
        store.learned.get(number)


def test_the_mark_changes_with_each_thing_and_each_choice(store: Store) -> None:
    marks = [store.changes.of_learned()]
    number = kept(store, 0.6)
    marks.append(store.changes.of_learned())
    store.learned.use(ArtefactChoice("threshold", "p", number, 2.0, "Mira", ""))
    marks.append(store.changes.of_learned())
    assert len(set(marks)) == 3


@pytest.mark.parametrize("body", ["[]", '"tau"', "7", "null"])
def test_a_body_that_is_no_object_is_refused_in_one_sentence(store: Store, body: str) -> None:
    number = kept(store, 0.6)
    digest = hashlib.sha256(body.encode()).hexdigest()
    store.db.execute(
        "UPDATE learned SET body = ?, sha256 = ? WHERE number = ?", [body, digest, number]
    )
    with pytest.raises(ConfigError, match="another") as caught:
        store.learned.get(number)
    assert "\n" not in str(caught.value)
