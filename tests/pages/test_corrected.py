"""The corrected text on the Run page: shown as changes, taken into one's answer, or left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.widgets.wording import escape_markdown
from core.schema.records import Member
from core.store import open_store
from tests.pages.conftest import RUN, OpenApp, checked, drawn, ours

FACT = "The Vidar bridge is 412 metres long and was opened in 1931."
TEXT = "The Vidar bridge is 530 metres long\nand was opened in 1931."
RIGHT = TEXT.replace("530", "412")
MARKED = ">530 metres</mark>"


@pytest.fixture
def wrong(home: Path) -> str:
    """A finished debate over a wrong value."""
    return checked(home, TEXT, ("b.txt", FACT))


def answer(at: AppTest, run_id: str) -> str:
    return str(at.text_area(key=f"run.{run_id}.correct.answer").value)


def test_it_is_taken_into_the_answer_and_saved_with_it(
    app: OpenApp, home: Path, wrong: str
) -> None:
    at = app(RUN, run=wrong)
    assert ">530</del>" in drawn(at)
    assert ">412</ins>" in drawn(at)
    at.button(key=f"run.{wrong}.corrected.take").click().run()
    assert not at.exception
    assert answer(at, wrong) == RIGHT
    assert answer(app(RUN, run=wrong), wrong) == RIGHT, "a reload loses nothing"
    at.button(key=f"run.{wrong}.correct.save").click().run()
    with open_store(home) as store:
        (saved,) = store.corrections.of_run(wrong)
    assert (saved.label, saved.corrected_answer) == ("hallucinated", RIGHT)


def test_what_was_typed_before_can_be_put_back(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    at.button(key=f"run.{wrong}.correct.choose.unclear").click().run()
    at.text_area(key=f"run.{wrong}.correct.answer").set_value("My own words.").run()
    at.button(key=f"run.{wrong}.corrected.take").click().run()
    assert answer(at, wrong) == RIGHT
    assert at.session_state[f"run.{wrong}.correct.label"] == "unclear"
    at.button(key=f"run.{wrong}.corrected.back").click().run()
    assert answer(at, wrong) == "My own words."


def test_each_change_is_taken_or_left(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    (choice,) = at.checkbox
    assert choice.value
    choice.uncheck().run()
    assert "</del>" not in drawn(at)
    at.button(key=f"run.{wrong}.corrected.take").click().run()
    assert answer(at, wrong) == TEXT, "a change that was left is not in the answer"


def test_nothing_is_proposed_where_nothing_can_be_put_right(app: OpenApp, run_id: str) -> None:
    """The conftest's run is about a word that no value can take the place of."""
    assert "</del>" not in drawn(app(RUN, run=run_id))


def test_it_is_folded_under_a_line_that_says_what_would_change(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    (fold,) = (one for one in at.expander if one.label.startswith("Corrected text"))
    assert not fold.proto.expanded
    assert fold.label == escape_markdown("Corrected text: “530” → “412”")


def corrected(at: AppTest, run_id: str, label: str, reason: str = "") -> None:
    """Save this label and reason on the page."""
    at.button(key=f"run.{run_id}.correct.choose.{label}").click().run()
    at.text_area(key=f"run.{run_id}.correct.reason").set_value(reason).run()
    at.button(key=f"run.{run_id}.correct.save").click().run()
    assert not at.exception


def test_a_correction_leads_and_the_machine_stands_below(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    assert MARKED in drawn(at)
    corrected(at, wrong, "supported", "Measured with the approaches.")
    page = drawn(at)
    lead, machine = page.index("Overruled by Mira"), page.index("The machine: ✗ Hallucinated, ")
    assert lead < page.index("Measured with the approaches.") < machine
    assert MARKED not in page
    assert "</del>" not in page, "what is supported needs no other words"


def test_agreeing_confirms_the_verdict_and_keeps_its_marks(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    corrected(at, wrong, "hallucinated")
    page = drawn(at)
    assert "Confirmed by Mira: " in page
    assert MARKED in page
    assert ">412</ins>" in page


def test_side_by_side_begins_with_the_persons_verdict_too(app: OpenApp, wrong: str) -> None:
    corrected(app(RUN, run=wrong), wrong, "supported", "It is right.")
    page = drawn(app("pages/check/compare.py", before=wrong, after=wrong))
    assert page.count("Overruled by Mira") == 2
    assert MARKED not in page


def test_a_blind_project_shows_annotators_no_answer_of_others(
    app: OpenApp, home: Path, wrong: str
) -> None:
    corrected(app(RUN, run=wrong), wrong, "supported", "It is right.")
    with open_store(home) as store:
        project = ours(store)
        with store.writing():
            store.projects.save(replace(project, is_blind=True))
            store.projects.add_member(Member(project.id, "Jo", "annotator", 1.0))
        store.projects.save_note("person", "Jo")
    assert "Mira" not in drawn(app(RUN, run=wrong))
