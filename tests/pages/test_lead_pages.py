"""What a lead does for annotators: guidelines of the project, and items assigned to a person."""

from __future__ import annotations

from dataclasses import replace

import pytest
from streamlit.testing.v1 import AppTest

from components.review.guidelines import disarm_markdown
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.review.queue_ranking import build_imported_item
from core.store import open_store
from tests.pages.driving import Site, keys, member, press, put, told

PROJECT_PAGE, REVIEW_PAGE = "pages/setup/project.py", "pages/review/pending.py"
GUIDELINES = "# What is wrong\n\n<script>alert(1)</script> ![pixel](https://example.org/x.png)"


def queue_cases(site: Site, count: int) -> list[str]:
    """Cases in the queue of the first project, that which teaches most first; their ids."""
    ids = []
    with open_store(site.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        for n in range(count):
            case = store_case(store, project, CaseDraft(f"Claim {n}."), "Mira", 2.0 + n)
            item = build_imported_item(case, 2.0 + n, None, 0.5)
            store.queue.add(replace(item, teaches=1.0 - n / 10))
            ids.append(case.id)
    return ids


def act_as(site: Site, person: str) -> None:
    with open_store(site.home) as store:
        store.projects.save_note("person", person)


def label_page(site: Site, case_id: str) -> AppTest:
    return site.open("pages/review/label.py", case=case_id)


def test_guidelines_are_kept_with_author_and_shown_safely_on_label(
    site: Site, project_id: str
) -> None:
    (case_id,) = queue_cases(site, 1)
    assert "Guidelines" not in {box.label for box in label_page(site, case_id).toggle}
    field = f"guidelines.{project_id}"
    save = site.open(PROJECT_PAGE).button(key=f"{field}.save")
    assert not save.disabled, "the click that leaves the field must save what was typed"
    assert "Nothing has changed" in told(save.click().run())
    with open_store(site.home) as store:
        assert not store.guidelines.history(project_id)
    press(put(site.open(PROJECT_PAGE), f"{field}.text", "First"), f"{field}.save")
    late = put(site.open(PROJECT_PAGE), f"{field}.text", "Third")
    with open_store(site.home) as store:
        seen = store.guidelines.history(project_id)[0]
        store.guidelines.save(replace(seen, text="Second", author="Tom"))
    press(late, f"{field}.save")
    assert "The guidelines were changed by Tom meanwhile" in told(late)
    assert late.text_area(key=f"{field}.text").value == "Third"
    at = site.open(PROJECT_PAGE)
    assert at.text_area(key=f"{field}.text").value == "Third", "nothing that was typed is lost"
    press(put(at, f"{field}.text", GUIDELINES), f"{field}.save")
    (box,) = (one for one in at.selectbox if one.key == f"{field}.earlier")
    assert [option.split(" · ")[1] for option in box.options] == ["Mira", "Tom", "Mira"]
    at = label_page(site, case_id)
    (shown,) = (one for one in at.markdown if one.value == GUIDELINES.replace("!", ""))
    assert not shown.proto.allow_html
    next(box for box in at.toggle if box.label == "Guidelines").set_value(False).run()
    assert GUIDELINES.replace("!", "") not in {one.value for one in at.markdown}


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![pixel](https://e.org/x.png)", "[pixel](https://e.org/x.png)"),
        ("!![a][b] \\![c](d)", "[a][b] \\[c](d)"),
        ("![](https://e.org/x.png)", "[image](https://e.org/x.png)"),
        ("Stop! [a](b) costs $5, not \\$6", "Stop! [a](b) costs \\$5, not \\$6"),
    ],
)
def test_guidelines_load_no_image(text: str, shown: str) -> None:
    assert disarm_markdown(text) == shown


def test_an_annotator_reads_guidelines_and_cannot_change_them(site: Site, project_id: str) -> None:
    member(site.home, project_id, "Ben", "annotator")
    act_as(site, "Ben")
    at = site.open(PROJECT_PAGE)
    assert "There are none yet; a lead may write them." in told(at)
    assert f"guidelines.{project_id}.text" not in keys(at)


def test_items_that_a_lead_assigned_go_to_that_person_alone(site: Site, project_id: str) -> None:
    ids = queue_cases(site, 3)
    for person in ("Ben", "Cem"):
        member(site.home, project_id, person, "annotator")
    at = put(site.open(REVIEW_PAGE), "assign.person", "Ben")
    press(put(at, "assign.many.3", 2), "assign.do")
    assert "Assigned 2 items to Ben." in told(at)
    assert "2 items assigned to them" in told(at)
    assert "Ben" in at.selectbox(key="assign.person").options, "a count in it would grow old"
    assert list(at.dataframe[0].value["Assigned to"]) == ["Ben", "Ben", ""]
    act_as(site, "Cem")
    at = site.open(REVIEW_PAGE)
    assert "assign.do" not in keys(at)
    press(at, "review.next")
    assert at.query_params["case"] == ids[2]
    assert "This case is assigned to Ben; take the next one." in told(label_page(site, ids[0]))
    act_as(site, "Ben")
    at = site.open(REVIEW_PAGE)
    assert "2 assigned to you" in told(at)
    press(at, "review.next")
    assert at.query_params["case"] == ids[0]
    assert "Why this one: assigned to you by Mira." in told(at)


def test_what_was_assigned_is_free_when_the_person_leaves(site: Site, project_id: str) -> None:
    queue_cases(site, 2)
    member(site.home, project_id, "Ben", "annotator")
    press(put(site.open(REVIEW_PAGE), "assign.person", "Ben"), "assign.do")
    press(site.open(PROJECT_PAGE), f"project.{project_id}.remove.Ben")
    with open_store(site.home) as store:
        assert store.queue.count_assigned(project_id, 1) == {}


def test_assigned_items_are_released(site: Site, project_id: str) -> None:
    queue_cases(site, 2)
    member(site.home, project_id, "Ben", "annotator")
    at = press(put(site.open(REVIEW_PAGE), "assign.person", "Ben"), "assign.do")
    press(put(at, "assign.person", ""), "assign.do")
    assert "Released 2 assignments." in told(at)
    with open_store(site.home) as store:
        assert store.queue.count_assigned(project_id, 1) == {}
