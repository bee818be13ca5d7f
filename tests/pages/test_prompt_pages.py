"""A project's prompts, through the app itself: read, edit, compare, go back."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.widgets.wording import PROMPT_FIELD_WORDS
from core.llm.prompting import FIELDS, NAMES, load_shipped_prompt
from core.review.people import ensure_project
from core.schema.records import Member
from core.store import open_store
from core.store.projects import PromptEdit
from tests.pages.conftest import OpenApp
from tests.pages.driving import Site, member, press, put, told

PAGE = "pages/setup/project.py"
OURS = load_shipped_prompt("debate", "en").text
MINE = OURS.replace("You are an expert debater.", "You are an <b>engineer</b> who debates.")
THEIRS = OURS.replace("You are an expert debater.", "You are a patient debater.")


@pytest.fixture
def project_id(home: Path) -> str:
    """A project whose admin is Mira, and where Karl is a lead."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        store.projects.set_member(Member(project.id, "Karl", "lead", 1.0))
    return project.id


def key_of(project_id: str, name: str = "debate", language: str = "en") -> str:
    return f"prompts.{project_id}.{name}.{language}"


def edits(home: Path, project_id: str, name: str = "debate", language: str = "en") -> list[str]:
    """The texts that were saved, newest first."""
    with open_store(home) as store:
        return [edit.text for edit in store.prompt_edits.history(project_id, name, language)]


def saved_by(home: Path, project_id: str, text: str, author: str = "Karl", at: float = 9.0) -> None:
    with open_store(home) as store:
        store.prompt_edits.save(PromptEdit(0, project_id, "debate", "en", text, at, author))


def difference(at: AppTest) -> str:
    return "\n".join(
        item.proto.body for item in at.get("html") if 'class="cp-diff"' in item.proto.body
    )


def typed(at: AppTest, key: str) -> str | None:
    return at.text_area(key=f"{key}.text").value


def open_at(app: OpenApp, name: str = "debate") -> AppTest:
    return put(app(PAGE), "prompts.name", name)


def test_every_field_has_words() -> None:
    assert set(PROMPT_FIELD_WORDS) == {field for fields in FIELDS.values() for field in fields}


def test_each_prompt_is_shown_with_its_version_and_its_fields(
    app: OpenApp, project_id: str
) -> None:
    at = open_at(app)
    assert "Debater’s turn" in at.selectbox(key="prompts.name").options
    assert at.text_area(key=f"{key_of(project_id)}.text").value == OURS
    assert load_shipped_prompt("debate", "en").hash in told(at)
    fields = "\n".join(
        item.proto.body for item in at.get("html") if 'class="cp-fields"' in item.proto.body
    )
    assert all(f"${{{field}}}" in fields for field in FIELDS["debate"])
    at.segmented_control(key="prompts.language").set_value("zh").run()
    ours = load_shipped_prompt("debate", "zh")
    assert at.text_area(key=f"{key_of(project_id, language='zh')}.text").value == ours.text
    assert ours.hash in told(at)
    for name in NAMES:
        put(at, "prompts.name", name)


def test_an_edit_is_saved_with_its_author_and_compared_with_ours(
    site: Site, project_id: str
) -> None:
    at, key = open_at(site.open), key_of(project_id)
    assert difference(at) == ""
    put(at, f"{key}.text", MINE)
    assert "&lt;b&gt;" in difference(at), "what is typed is compared before it is saved"
    assert edits(site.home, project_id) == []
    press(at, f"{key}.save")
    assert not at.error
    assert edits(site.home, project_id) == [MINE]
    with open_store(site.home) as store:
        (edit,) = store.prompt_edits.history(project_id, "debate", "en")
    assert edit.author == "Mira"
    shown = difference(at)
    assert "cp-diff-removed" in shown
    assert "cp-diff-added" in shown
    assert "<b>" not in shown
    assert typed(at, key) == MINE
    assert "Edited in this project: Debater’s turn." in told(at)


def test_what_cannot_be_filled_is_refused_and_nothing_typed_is_lost(
    site: Site, project_id: str
) -> None:
    at, key = open_at(site.open), key_of(project_id)
    broken = OURS.replace("${last_message}", "the last one")
    put(at, f"{key}.text", broken)
    press(at, f"{key}.save")
    (error,) = at.error
    assert "last" in error.value
    assert "must contain" in error.value
    assert typed(at, key) == broken
    assert edits(site.home, project_id) == []


def test_what_was_typed_outlives_other_prompts_other_pages_and_reloads(
    site: Site, project_id: str
) -> None:
    at, key = open_at(site.open), key_of(project_id)
    put(at, f"{key}.text", MINE)
    at.selectbox(key="prompts.name").set_value("judge").run()
    assert at.text_area(key=f"{key_of(project_id, 'judge')}.text").value != MINE
    at.selectbox(key="prompts.name").set_value("debate").run()
    assert typed(at, key) == MINE
    at.switch_page("pages/setup/settings.py").run()
    at.switch_page(PAGE).run()
    assert at.selectbox(key="prompts.name").value == "debate"
    assert typed(at, key) == MINE
    again = open_at(site.open)
    assert typed(again, key) == MINE
    assert "not saved" in told(again)
    press(again, f"{key}.discard")
    assert typed(again, key) == OURS
    assert open_at(site.open).text_area(key=f"{key}.text").value == OURS
    assert edits(site.home, project_id) == []


def test_back_to_ours_asks_first_and_can_be_undone(site: Site, project_id: str) -> None:
    saved_by(site.home, project_id, THEIRS)
    at, key = open_at(site.open), key_of(project_id)
    assert typed(at, key) == THEIRS
    assert "Karl" in told(at)
    press(at, f"{key}.ours")
    assert edits(site.home, project_id) == [THEIRS], "it asks first"
    press(at, f"{key}.keep")
    assert edits(site.home, project_id) == [THEIRS]
    press(at, f"{key}.ours")
    press(at, f"{key}.sure")
    assert edits(site.home, project_id) == ["", THEIRS]
    assert typed(at, key) == OURS
    earlier = at.selectbox(key=f"{key}.earlier")
    assert len(earlier.options) == 2
    assert any("Karl" in option for option in earlier.options)
    with open_store(site.home) as store:
        number = store.prompt_edits.history(project_id, "debate", "en")[-1].number
    earlier.set_value(number).run()
    assert "patient" in difference(at)
    press(at, f"{key}.back")
    assert edits(site.home, project_id) == [THEIRS, "", THEIRS]
    earlier = at.selectbox(key=f"{key}.earlier")
    assert earlier.value is None
    assert len(set(earlier.options)) == 3, "no two read alike"
    assert typed(at, key) == THEIRS


def test_our_own_text_saved_again_is_ours(site: Site, project_id: str) -> None:
    saved_by(site.home, project_id, THEIRS)
    at, key = open_at(site.open), key_of(project_id)
    put(at, f"{key}.text", OURS)
    press(at, f"{key}.save")
    assert edits(site.home, project_id) == ["", THEIRS], "so that it follows us when we improve it"
    press(at, f"{key}.save")
    assert len(edits(site.home, project_id)) == 2, "nothing changed, nothing is kept"


def test_nobody_is_overwritten_unseen(site: Site, project_id: str) -> None:
    at, key = open_at(site.open), key_of(project_id)
    put(at, f"{key}.text", MINE)
    saved_by(site.home, project_id, THEIRS)
    press(at, f"{key}.save")
    assert "changed by Karl" in at.error[0].value
    assert edits(site.home, project_id) == [THEIRS]
    assert typed(at, key) == MINE
    assert "Karl" in at.warning[0].value
    assert "patient" in difference(at), "theirs is what it is compared with now"
    press(at, f"{key}.save")
    assert edits(site.home, project_id) == [MINE, THEIRS], "whoever has seen theirs may replace it"
    assert not at.warning


def test_a_text_that_nobody_touched_follows_the_one_in_force(site: Site, project_id: str) -> None:
    at, key = open_at(site.open), key_of(project_id)
    saved_by(site.home, project_id, THEIRS)
    at.run()
    assert typed(at, key) == THEIRS
    assert not at.warning


def test_an_annotator_reads_but_does_not_edit(site: Site, project_id: str) -> None:
    member(site.home, project_id, "Karl", "admin")
    member(site.home, project_id, "Mira", "annotator")
    at = open_at(site.open)
    assert OURS.strip() in [block.value.strip() for block in at.code]
    assert not [area for area in at.text_area if area.key and area.key.startswith("prompts.")]
    assert "Leads and admins" in told(at)


def test_a_lead_who_is_one_no_more_saves_nothing(site: Site, project_id: str) -> None:
    at, key = open_at(site.open), key_of(project_id)
    put(at, f"{key}.text", MINE)
    member(site.home, project_id, "Karl", "admin")
    member(site.home, project_id, "Mira", "annotator")
    press(at, f"{key}.save")
    assert "takes the role lead" in at.error[0].value
    assert edits(site.home, project_id) == []


def test_a_projects_edit_is_its_own(site: Site, project_id: str) -> None:
    saved_by(site.home, project_id, THEIRS)
    at = site.open(PAGE)
    at.text_input(key="project.new").set_value("Towers")
    press(at, "project.begin")
    at.selectbox(key="prompts.name").set_value("debate").run()
    other = at.session_state["project"]
    assert other != project_id
    assert at.text_area(key=f"{key_of(other)}.text").value == OURS
