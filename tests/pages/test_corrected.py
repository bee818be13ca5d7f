"""The corrected text on the Run page: shown as changes, taken into one's answer, or left."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.widgets.wording import escape_markdown
from core.store import open_store
from tests.pages.conftest import RUN, OpenApp, checked, drawn

FACT = "The Vidar bridge is 412 metres long and was opened in 1931."
TEXT = "The Vidar bridge is 530 metres long\nand was opened in 1931."
RIGHT = TEXT.replace("530", "412")


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


def test_it_is_left_and_shown_again(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    at.button(key=f"run.{wrong}.corrected.leave").click().run()
    assert "</del>" not in drawn(at)
    at = app(RUN, run=wrong)
    assert "</del>" not in drawn(at)
    at.button(key=f"run.{wrong}.corrected.show").click().run()
    assert ">412</ins>" in drawn(at)


def test_nothing_is_proposed_where_nothing_can_be_put_right(app: OpenApp, run_id: str) -> None:
    """The conftest's run is about a word that no value can take the place of."""
    assert "</del>" not in drawn(app(RUN, run=run_id))


def test_it_is_folded_under_a_line_that_says_what_would_change(app: OpenApp, wrong: str) -> None:
    at = app(RUN, run=wrong)
    (fold,) = (one for one in at.expander if one.label.startswith("Corrected text"))
    assert not fold.proto.expanded
    assert fold.label == escape_markdown("Corrected text: “530” → “412”")
    labels = [at.button(key=f"run.{wrong}.corrected.{name}").label for name in ("take", "leave")]
    assert labels == ["Use the corrected text", "Dismiss the corrected text"]
    assert all(at.button(key=f"run.{wrong}.corrected.{name}").help for name in ("take", "leave"))
