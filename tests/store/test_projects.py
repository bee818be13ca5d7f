"""People, roles and settings."""

from __future__ import annotations

import pytest

from core.runtime.config import SETTINGS, Settings
from core.runtime.errors import ConfigError, ConflictError, InputError, NotAllowed
from core.schema.records import Member, Project
from core.store import Store


def test_settings_have_defaults_and_bounds(store: Store) -> None:
    assert store.projects.settings() == Settings()
    store.projects.save_setting("passages", 7)
    assert store.projects.settings().passages == 7
    with pytest.raises(ConfigError, match="expected 1 to 30 passages, found 0"):
        store.projects.save_setting("passages", 0)
    with pytest.raises(ConfigError, match="no setting called “colour”"):
        store.projects.save_setting("colour", 1)
    assert store.projects.settings().passages == 7


@pytest.mark.parametrize("value", ["", "abc", "{", "[" * 100_000])
def test_a_stored_setting_that_cannot_be_read_is_named(store: Store, value: str) -> None:
    store.projects.save_setting("passages", 7)
    store.db.execute("UPDATE settings SET value = ?", [value])
    with pytest.raises(ConfigError, match=r"stored setting “passages”.*remove that row") as raised:
        store.projects.settings()
    assert len(str(raised.value)) < 300
    store.projects.save_setting("passages", 8)
    assert store.projects.settings().passages == 8


def test_a_note_that_cannot_be_read_is_named(store: Store) -> None:
    store.projects.save_note("person", "Mira")
    store.db.execute("UPDATE settings SET value = 'Mira'")
    with pytest.raises(ConfigError, match=r"stored setting “note\.person”, found “Mira”"):
        store.projects.note("person")


def test_every_setting_is_described() -> None:
    assert set(SETTINGS) == set(Settings().as_dict())
    for name, about in SETTINGS.items():
        assert about.low <= Settings().as_dict()[name] <= about.high, name


def test_notes_are_not_settings(store: Store) -> None:
    store.projects.save_note("person", "Mira")
    assert store.projects.note("person") == "Mira"
    assert store.projects.note("other") == ""
    assert store.projects.settings() == Settings()


def test_a_member_goes_but_never_the_last_admin(store: Store) -> None:
    store.projects.save(Project("a", "Ours", 1.0))
    store.projects.set_member(Member("a", "Mira", "admin", 1.0))
    store.projects.set_member(Member("a", "Karl", "lead", 1.0))
    with pytest.raises(ConflictError, match="Mira is the only admin"):
        store.projects.remove_member("a", "Mira")
    store.projects.remove_member("a", "Karl")
    assert [member.person for member in store.projects.members("a")] == ["Mira"]
    assert store.projects.role_of("a", "Karl") is None
    store.projects.add_member(Member("a", "Karl", "annotator", 2.0))
    assert store.projects.role_of("a", "Karl") == "annotator"


def test_a_project_needs_a_name_of_its_own(store: Store) -> None:
    store.projects.save(Project("a", "Ours", 1.0))
    with pytest.raises(InputError, match="Expected a name"):
        store.projects.save(Project("b", "  ", 1.0))
    with pytest.raises(ConflictError, match="called “Ours” already"):
        store.projects.save(Project("b", "Ours", 2.0))
    store.projects.save(Project("a", "Ours", 1.0, description="new words"))
    assert [p.description for p in store.projects.all()] == ["new words"]


def test_roles_rank_and_are_enforced(store: Store) -> None:
    store.projects.save(Project("a", "Ours", 1.0))
    store.projects.set_member(Member("a", "Mira", "annotator", 1.0))
    store.projects.require("a", "Mira", "annotator", "correct")
    with pytest.raises(NotAllowed, match="To retrain takes the role lead; Mira has annotator"):
        store.projects.require("a", "Mira", "lead", "retrain")
    with pytest.raises(NotAllowed, match="nobody has none"):
        store.projects.require("a", "", "annotator", "correct")
    store.projects.set_member(Member("a", "Mira", "admin", 2.0))
    store.projects.require("a", "Mira", "lead", "retrain")
    assert store.projects.members("a") == [Member("a", "Mira", "admin", 1.0)]


def test_a_project_keeps_an_admin(store: Store) -> None:
    store.projects.save(Project("a", "Ours", 1.0))
    store.projects.set_member(Member("a", "Mira", "admin", 1.0))
    store.projects.set_member(Member("a", "Karl", "lead", 1.0))
    for role in ("lead", "annotator"):
        with pytest.raises(ConflictError, match=r"Mira is the only admin .* make somebody else"):
            store.projects.set_member(Member("a", " Mira ", role, 2.0))
    store.projects.set_member(Member("a", "Mira", "admin", 2.0))
    assert store.projects.role_of("a", "Mira") == "admin"
    store.projects.save(Project("b", "Theirs", 1.0))
    store.projects.set_member(Member("b", "Karl", "admin", 1.0))
    with pytest.raises(ConflictError, match="only admin"):
        store.projects.set_member(Member("a", "Mira", "lead", 3.0))
    store.projects.set_member(Member("a", "Karl", "admin", 3.0))
    store.projects.set_member(Member("a", "Mira", "lead", 3.0))
    assert store.projects.role_of("a", "Mira") == "lead"


def test_whoever_is_there_already_is_not_added_again(store: Store) -> None:
    store.projects.save(Project("a", "Ours", 1.0))
    store.projects.add_member(Member("a", "Mira", "admin", 1.0))
    store.projects.add_member(Member("a", "Karl", "lead", 1.0))
    with pytest.raises(ConflictError, match="Karl is in this project already, as lead"):
        store.projects.add_member(Member("a", " Karl", "annotator", 2.0))
    assert store.projects.role_of("a", "Karl") == "lead"
    with pytest.raises(InputError, match="Expected a name"):
        store.projects.add_member(Member("a", "  ", "annotator", 2.0))
