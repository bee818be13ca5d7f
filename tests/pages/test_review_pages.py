"""The review pages: what waits, and how far people agree."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from components.app import state
from components.review import check_unchecked
from components.review.correction_draft import load_case_sources, make_suggestions
from components.review.review_queue import clean_categories
from components.widgets import annotation_editors
from components.widgets.annotation_editors import SpanEditorState, SpanMark
from components.widgets.wording import LABEL_WORDS
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.adjudication import record_correction, record_gold
from core.review.people import ensure_project, load_draft, save_draft
from core.review.queue_ranking import MIN_WAITING, QueueRanker, build_imported_item, enqueue_run
from core.schema.records import Label, Member, Plan, Run, Span
from core.schema.reviews import Correction, GoldAnswer, GoldOrigin, QueueItem, Suggestion
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.review_queue import QueueRules
from core.store.sqlite import to_plain
from tests.fakes import FakeEmbedder
from tests.pages.conftest import CATS, RUN, WRONG, OpenApp, checked, query, stored_case
from tests.pages.driving import Site, case_of, keys, press, project_of, put, run_of, told
from tests.waiting import wait_for


class Form:
    """The form of a correction on a page: `do` presses its buttons, `write` fills its fields."""

    def __init__(self, at: AppTest, asked: str) -> None:
        self.at, self.key = at, f"run.{asked}.correct"

    def do(self, *names: str) -> Form:
        for name in names:
            press(self.at, f"{self.key}.{name}")
        return self

    def write(self, name: str, value: str) -> Form:
        put(self.at, f"{self.key}.{name}", value)
        return self

    def holds(self, name: str) -> str | None:
        return self.at.text_area(key=f"{self.key}.{name}").value


def label_page(app: OpenApp, case_id: str) -> Form:
    return Form(app("pages/review/label.py", case=case_id), case_id)


def settle_page(app: OpenApp, case_id: str) -> Form:
    return Form(app("pages/review/adjudicate_case.py", case=case_id), f"{case_id}.settle")


def run_page(app: OpenApp, run_id: str) -> Form:
    return Form(app("pages/check/run.py", run=run_id), run_id)


def queued(home: Path, run_id: str) -> Run:
    """The run, whose case is in the queue."""
    with open_store(home) as store:
        enqueue_run(store, run_id, 9.0)
        return run_of(store, run_id)


def say(store: Store, run_id: str, author: str, label: Label, at: float = 1.0) -> None:
    case = case_of(store, run_id)
    spans = (Span(0, 6, case.response[:6], 1.0, "wrong_entity", author),)
    correction = Correction(
        f"{author}{at}", run_id, case.id, author, at, label, machine_label="hallucinated",
        spans=spans if label == "hallucinated" else (), reason="Because.",
    )  # fmt: skip
    with store.writing():
        record_correction(store, correction, case)


def differed(home: Path, run_id: str) -> str:
    """Karl and Ida differ on a run's case; its id."""
    with open_store(home) as store:
        say(store, run_id, "Karl", "hallucinated", 3.0)
        say(store, run_id, "Ida", "supported", 4.0)
        return case_of(store, run_id).id


def item_of(home: Path, case_id: str) -> QueueItem:
    with open_store(home) as store:
        item = store.queue.get(case_id)
    assert item is not None
    return item


def test_run_and_label_are_titled_with_the_first_words_of_the_claim(
    site: Site, run_id: str
) -> None:
    run = queued(site.home, run_id)
    with open_store(site.home) as store:
        start = case_of(store, run_id).response[:20]
    for at, name in (
        (site.open("pages/check/run.py", run=run_id), "Run"),
        (site.open("pages/review/label.py", case=run.case_id), "Label"),
    ):
        title = at.title[0].value.replace("\\", "")
        assert title.startswith(start)
        assert title.endswith(f" · {name}")


@pytest.mark.parametrize("is_blind", [False, True])
def test_an_item_links_to_its_run_and_back_but_not_where_review_is_blind(
    site: Site, run_id: str, is_blind: bool
) -> None:
    def addresses(at: AppTest) -> set[str]:
        return {link.proto.query_string for link in at.get("page_link")}

    run = queued(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save(replace(project, is_blind=is_blind))
    assert f"case={run.case_id}" in addresses(site.open(RUN, run=run_id))
    there = addresses(site.open("pages/review/label.py", case=run.case_id))
    assert (f"run={run_id}" in there) is not is_blind


@pytest.mark.parametrize("is_blind", [False, True])
def test_who_answered_on_the_run_page_is_not_asked_the_same_in_the_queue(
    site: Site, run_id: str, is_blind: bool
) -> None:
    run = queued(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        store.projects.save(replace(project, is_blind=is_blind))
    form = run_page(site.open, run_id).do("choose.hallucinated").write("reason", "It says so.")
    form.do("save")
    with open_store(site.home) as store:
        held, said = store.queue.of(run.case_id, "Mira"), store.corrections.of_case(run.case_id)
    assert [own.author for own in said] == ["Mira"]
    assert held is not None
    assert held.state == "submitted"
    press(form.at, f"said.{said[0].id}.back")
    with open_store(site.home) as store:
        held = store.queue.of(run.case_id, "Mira")
    assert held is not None
    assert held.state == "claimed"


def test_an_answer_on_a_run_counts_once_its_case_comes_to_the_queue(
    site: Site, run_id: str
) -> None:
    with open_store(site.home) as store:
        store.db.execute("DELETE FROM items")
    form = run_page(site.open, run_id).do("choose.hallucinated").write("reason", "It says so.")
    form.do("save")
    run = queued(site.home, run_id)
    assert item_of(site.home, run.case_id).given == 1
    assert "Nothing else is waiting for you." in told(site.open("pages/review/pending.py"))


def test_agreement_knows_agents_of_a_run_that_was_judged_outside_the_queue(
    site: Site, run_id: str
) -> None:
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "hallucinated", 1.0)
    at = site.open("pages/review/agreement.py")
    agents = [table.value for table in at.dataframe if "Agent" in table.value]
    told = dict(zip(agents[0]["Agent"], agents[0]["Labels differ"], strict=True))
    assert told["Entailment reader"] == "0 of 1"


def test_many_answers_on_few_cases_say_little_of_an_agent(site: Site) -> None:
    for n in range(16):
        case = stored_case(site.home, f"Cats sleep {n} hours a day.")
        item = build_imported_item(case, 2.0, None, 0.5)
        with open_store(site.home) as store, store.writing():
            label: Label = "hallucinated" if n % 2 else "supported"
            store.queue.add(replace(item, stances=(("Reader", label),)))
            for who in ("Ida", "Karl"):
                said = Correction(f"{who}{n}", None, case.id, who, 5.0, label)
                store.corrections.add(said, case.response)
    at = site.open("pages/review/agreement.py")
    (table,) = (table.value for table in at.dataframe if "Agent" in table.value)
    assert list(table["Labels differ"]) == ["0 of 32"]
    assert list(table["Cases"]) == [16]
    assert "too few to say" in table["Cohen's kappa"][0]


def test_agreement_does_not_count_verdicts_that_nobody_answered(site: Site, run_id: str) -> None:
    with open_store(site.home) as store, store.writing():
        case = case_of(store, run_id)
        said = Correction("outside", None, case.id, "Ida", 1.0, "supported")
        store.corrections.add(said, case.response)
    at = site.open("pages/review/agreement.py")
    assert "People and the machine" not in [item.value for item in at.subheader]
    assert not any("of 0" in item.value for item in at.markdown)
    assert not any("The machine said" in table.value for table in at.dataframe)


def test_agreement_does_not_call_what_the_machine_left_unclear_overturned(
    site: Site, run_id: str
) -> None:
    with open_store(site.home) as store, store.writing():
        case = case_of(store, run_id)
        verdicts: dict[str, Label] = {
            "Ida": "unclear", "Mira": "hallucinated", "Karl": "supported",
        }  # fmt: skip
        for person, machine in verdicts.items():
            answer = Correction(
                person,
                run_id,
                case.id,
                person,
                1.0,
                "supported",
                reason="p. 3",
                machine_label=machine,
            )
            store.corrections.add(answer, case.response)
    words = told(site.open("pages/review/agreement.py"))
    assert "The machine was overturned in **1 of 2 answers**; it had left 1 more unclear." in words


def test_agreement_counts_each_persons_newest_answer(site: Site, run_id: str) -> None:
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "supported", 1.0)
        say(store, run_id, "Mira", "hallucinated", 2.0)
        say(store, run_id, "Karl", "hallucinated", 3.0)
        say(store, run_id, "Ida", "supported", 4.0)
        with store.writing():
            enqueue_run(store, run_id, 5.0)
            for person in ("Mira", "Karl", "Ida"):
                store.queue.end(run_of(store, run_id).case_id, person, "submitted", 6.0)
    at = site.open("pages/review/agreement.py")
    together, pairs, machine, confusion, agents, items = (table.value for table in at.dataframe)
    told = dict(zip(agents["Agent"], agents["Labels differ"], strict=True))
    assert told["Entailment reader"] == told["Built-in judge"] == "1 of 3"
    assert told["Overlap reader"] == "2 of 3"
    assert dict(zip(agents["Agent"], agents["Left unclear"], strict=True))["Overlap reader"] == 0
    assert list(items["They differ in"]) == ["label"]
    assert list(together["Items"]) == [1, 1, 1, 1]
    assert together["Agreement"][0] == "0.33 (0.33 to 0.33), too few to say"
    told = dict(zip(pairs["People"], pairs["Labels differ"], strict=True))
    assert told == {"Ida · Karl": "1 of 1", "Ida · Mira": "1 of 1", "Karl · Mira": "0 of 1"}
    assert set(pairs["Only marks differ"]) == {"0 of 0", "0 of 1"}
    marks = dict(zip(pairs["People"], pairs["F1 of marked characters"], strict=True))
    assert marks["Karl · Mira"].startswith("1.00")
    assert marks["Ida · Karl"].startswith("0.00")
    assert dict(zip(machine["Person"], machine["Labels differ"], strict=True))["Ida"] == "1 of 1"
    assert any("1 of 3 answers" in item.value for item in at.markdown)
    row = list(confusion["The machine said"]).index("Hallucinated")
    assert (confusion["People: hallucinated"][row], confusion["People: supported"][row]) == (2, 1)


def test_a_project_nobody_has_reviewed_says_so(app: OpenApp) -> None:
    assert "Nobody has said anything yet" in app("pages/review/agreement.py").info[0].value
    assert "Nothing to review yet" in app("pages/review/pending.py").info[0].value


def test_a_long_queue_is_put_in_order_while_people_work(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("components.app.state.QueueRanker", partial(QueueRanker, load=FakeEmbedder))
    with open_store(site.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save_note("person", "Mira")
        with store.writing():
            texts = ["Cats sleep by day."] * MIN_WAITING + ["Bees make honey."]
            for n, text in enumerate(texts):
                case = store_case(store, project, CaseDraft(text, id=f"case-{n}"), "Mira", 1.0 + n)
                store.queue.add(build_imported_item(case, 1.0 + n, "hallucinated", 0.5 + n / 100))
    site.open("pages/review/pending.py")
    assert state.get_queue_ranker().wait(60)
    listed = site.open("pages/review/pending.py").dataframe[0].value
    assert list(listed["Claim"][:3]) == ["Cats sleep by day.", "Bees make honey.", texts[0]]
    assert listed["Why"][1] == "unsure (70% likely hallucinated), unlike any answered"
    assert listed["Why"][2] == "unsure (51% likely hallucinated), much like another"


def test_what_waits_is_listed_and_filtered(app: OpenApp, run_id: str) -> None:
    at = app("pages/review/pending.py")
    (table,) = at.dataframe
    assert list(table.value["Reviewed"]) == ["0 of 1"]
    assert table.value["Likely hallucinated"][0].endswith("%")
    assert at.button(key="review.next").proto.type == "primary"
    at.selectbox(key="review.label").set_value("supported").run()
    assert any("Nothing matches these filters" in item.value for item in at.caption)
    assert "Nothing else that matches these filters is waiting for you" in told(at)
    assert "Clear the filters" in told(at)
    assert at.button(key="review.next").proto.type == "secondary"
    at.query_params["filters"] = "none"  # where that link leads
    at.run()
    assert at.selectbox(key="review.label").value == ""
    assert at.button(key="review.next").proto.type == "primary"


def test_who_has_no_item_left_is_told_what_to_do_instead(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    form = label_page(site.open, run.case_id)
    differed(site.home, run_id)
    press(form.at, "review.skipped")
    for at in (form.at, site.open("pages/review/pending.py")):
        assert "Nothing else is waiting for you" in told(at)
        for words in (
            "Look again at the 1 item you skipped", "Adjudicate 1 case", "Learn from the answers",
            "See how far people agree", "Import cases", "Ask more people about each item",
            "Check something new",
        ):  # fmt: skip
            assert words in told(at)
    listed = site.open("pages/review/pending.py", show="I skipped").dataframe[0].value
    assert len(listed) == 1


def test_a_case_in_dispute_is_counted_nowhere_and_reached_from_every_page_that_counts(
    site: Site, run_id: str
) -> None:
    case_id = queued(site.home, run_id).case_id
    differed(site.home, run_id)
    pages = ("learn/retrain", "learn/calibration", "learn/reliability", "learn/spans")
    for page in (*pages, "setup/exchange"):
        shown = told(site.open(f"pages/{page}.py"))
        assert "what most people say once one person has answered" in shown, page
        assert "1 case in dispute" in shown, page
    at = site.open("pages/review/adjudicate.py", show="disputed")
    assert at.segmented_control(key="settling.view").value == "disputed"
    assert at.dataframe[0].value["They differ in"].to_list() == [
        "label: 1 hallucinated, 1 supported"
    ]
    assert "2 people disagree" in markup(site.open("pages/check/history.py"))
    with open_store(site.home) as store:
        say(store, run_id, "Lea", "supported", 5.0)
    assert "in dispute" not in told(site.open("pages/learn/retrain.py"))
    assert "by 2 people: ✓ Supported" in markup(site.open("pages/check/history.py"))
    at = site.open("pages/setup/project.py")
    project_id = project_with(site.home, case_id)
    put(at, f"project.{project_id}.truth", "unanimity")
    press(at, f"project.{project_id}.save")
    shown = told(site.open("pages/learn/retrain.py"))
    assert "what all people say once one person has answered" in shown
    assert "1 case in dispute" in shown


def test_what_was_settled_and_given_back_is_no_more_called_settled(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id
    with open_store(site.home) as store, store.writing():
        store.queue.take(case_id, "Mira", QueueRules(seconds=9e9), 1.0)
    differed(site.home, run_id)
    form = settle_page(site.open, case_id)
    form.do("choose.supported", "save")

    def shown() -> list[str]:
        pages = (RUN, "pages/review/label.py")
        return [told(site.open(page, run=run_id, case=case_id)) for page in pages]

    assert all("Settled by **Mira**" in words for words in shown())
    assert "in dispute" not in told(site.open("pages/learn/retrain.py"))
    press(site.open("pages/review/adjudicate_case.py", case=case_id), "settle.open")
    assert not any("Settled by" in words for words in shown())
    assert "1 case in dispute" in told(site.open("pages/learn/retrain.py"))
    at = site.open("pages/review/adjudicate.py", show="disputed")
    options = at.segmented_control(key="settling.view").options
    assert {"disputed (1)", "right answer known (0)"} <= set(options)
    settle_page(site.open, case_id).do("choose.supported", "save")
    with open_store(site.home) as store:
        assert [gold.origin for gold in store.golds.of_case(case_id)] == ["adjudicated"] * 2
    assert all("Settled by **Mira**" in words for words in shown())


def project_with(home: Path, case_id: str) -> str:
    with open_store(home) as store:
        (case,) = store.cases.several([case_id])
    return case.project_id


def markup(at: AppTest) -> str:
    """All that stands on the page as markup."""
    return " ".join(str(html.proto.body) for html in at.get("html"))


def test_answering_again_begins_with_the_answer_that_stands(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id
    with open_store(site.home) as store:  # what the machine marked
        spans = fold_events(event for _, event in store.runs.events(run_id)).spans
    rejected = replace(make_suggestions(spans)[0], status="rejected")
    own = SpanEditorState(2, (rejected, SpanMark("a", 0, 6, "reasoning")))
    form = label_page(site.open, case_id).do("choose.hallucinated").write("reason", "Not female.")
    form.at.session_state[f"{form.key}.marked"] = own
    form.do("save")
    form = label_page(site.open, case_id).do("choose.hallucinated")
    assert form.holds("reason") == "Not female."
    form.write("reason", "Not female, it says.").do("save")
    with open_store(site.home) as store:
        said = store.corrections.history(case_id)
    assert [[span.text for span in each.spans] for each in said] == [["Female"]] * 2
    assert [each.reason for each in said] == ["Not female.", "Not female, it says."]


def test_undo_opens_the_form_with_suggestions_as_they_were_left(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id
    form = label_page(site.open, case_id).do("choose.hallucinated").write("reason", "So.")
    form.do("save")
    press(form.at, "review.undo")
    assert form.holds("reason") == "So."
    marks = form.at.session_state[f"{form.key}.marked"]
    assert marks is None or {mark.status for mark in marks.marks} == {"suggested"}
    form.do("save")
    with open_store(site.home) as store:
        assert [span.text for span in store.corrections.of_case(case_id)[-1].spans] == ["left"]


def test_an_answer_given_again_after_undo_is_not_counted_as_blind(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id
    with open_store(site.home) as store, store.writing():
        store.projects.save(replace(ensure_project(store, "Mira", 1.0), is_blind=True))

    def count_blind() -> int:
        at = site.open("pages/review/agreement.py")
        (table,) = (each.value for each in at.dataframe if "Answered blind" in each.value)
        return int(table["Answered blind"][0])

    form = label_page(site.open, case_id).do("choose.supported", "save")
    assert count_blind() == 1
    press(form.at, "review.undo")
    form.do("save")
    assert count_blind() == 0, "what others said may have been seen in between"


@pytest.fixture
def browser(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the browser is given of the words; an edit in the session counts as just sent."""
    given: list[dict[str, Any]] = []

    def mount(
        *, key: str, data: dict[str, Any], on_edit_change: Callable[[], None], **_: Any
    ) -> None:
        given.append(data)
        if st.session_state.get(key):
            on_edit_change()  # which AppTest never does

    monkeypatch.setattr(annotation_editors, "get_component", lambda name: mount)
    return given


def test_words_label_and_save_are_one_message_of_the_browser(
    site: Site, run_id: str, browser: list[dict[str, Any]]
) -> None:
    case_id = queued(site.home, run_id).case_id
    with open_store(site.home) as store, store.writing():
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save(replace(project, is_blind=True))
    form = label_page(site.open, case_id)
    assert "0 of 1" in told(form.at)
    drawn, _ = form.at.session_state["review.clock"]
    assert drawn == form.key, "the clock runs from the first second"
    mark = {"id": "a", "start": 23, "end": 27, "category": "contradicted"}
    assert [label["id"] for label in browser[-1]["labels"]] == list(LABEL_WORDS)
    assert browser[-1]["likely"] is None, "each of its words is in the source"
    edit = {"revision": 1, "marks": [mark], "none": False, "did": "save", "label": "hallucinated"}
    form.at.session_state[f"{form.key}.editor"] = {"edit": edit}
    form.at.run()
    form.at.run()  # a browser's edit comes before the page is drawn
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_case(case_id)
    assert (saved.label, [span.text for span in saved.spans]) == ("hallucinated", ["left"])
    assert "Nothing else is waiting for you" in told(form.at)


def test_what_was_typed_last_is_saved_though_the_button_is_called_first(
    site: Site, run_id: str, browser: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where a key and a click come in one message, Streamlit calls the button, then the editor."""
    form = run_page(site.open, run_id).do("choose.hallucinated")
    mark = {"id": "a", "start": 23, "end": 27, "category": "contradicted", "instead": "right"}
    edit = {"revision": 9, "marks": [mark], "none": False, "did": "instead", "label": ""}
    form.at.session_state[f"{form.key}.editor"] = {"edit": edit}
    form.do("save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_run(run_id)
        assert load_draft(store, "Mira", form.key) == "", "no ghost of the draft is left"
    assert [(span.text, span.instead) for span in saved.spans] == [("left", "right")]


def test_a_clock_runs_only_while_its_item_is_on_screen(
    site: Site, run_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Undo brings the item before back, and its clock goes on where it was."""
    now = time.time()
    monkeypatch.setattr("components.review.correction_draft.time.time", lambda: now)
    first = queued(site.home, run_id).case_id
    with open_store(site.home) as store, store.writing():
        project = ensure_project(store, "Mira", 1.0)
        case = store_case(store, project, CaseDraft("Bees make honey."), "Mira", 1.0)
        store.queue.add(build_imported_item(case, 1.0, None, None))
    form = label_page(site.open, first)
    now += 10
    form.do("choose.hallucinated", "save")
    now += 20
    press(form.at, "review.undo")
    now += 5
    form.do("save")
    now += 7
    other = Form(form.at, case.id).do("choose.unclear")
    other.at.switch_page("pages/check/history.py").run()
    now += 1000
    other.at.switch_page("pages/review/label.py")
    other.at.query_params["case"] = case.id
    other.at.run()
    now += 2
    other.do("save")
    with open_store(site.home) as store:
        seconds = [store.corrections.of_case(case_id)[-1].seconds for case_id in (first, case.id)]
    assert seconds == [15.0, 29.0]


def test_a_save_without_an_answer_says_so(site: Site, run_id: str) -> None:
    form = label_page(site.open, queued(site.home, run_id).case_id).do("save")
    assert "found none; choose one first" in form.at.error[0].value


def test_a_verdict_is_overturned_by_a_usual_reason(site: Site, run_id: str) -> None:
    form = run_page(site.open, run_id).do("choose.supported", "save")
    assert "takes a reason" in form.at.error[0].value
    form.do("usual.7", "save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_run(run_id)
    assert (saved.label, saved.reason) == ("supported", "The sources say so.")


def test_marked_words_are_the_reason_that_overturns_a_verdict(site: Site, home: Path) -> None:
    right = checked(home, "Female cats tend to be right pawed.", ("cats.txt", CATS))
    form = run_page(site.open, right).do("choose.hallucinated")
    own = SpanEditorState(2, (SpanMark("a", 0, 6, "wrong_entity"),))
    form.at.session_state[f"{form.key}.marked"] = own
    form.do("save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_run(right)
    assert saved.machine_label == "supported"
    assert saved.reason == "Wrong words: “Female” (wrong entity)"


def imported(home: Path) -> str:
    """An item with a document that nobody has read or checked; its case's id."""
    case = stored_case(home, WRONG, ("cats.txt", CATS))
    with open_store(home) as store, store.writing():
        store.queue.add(build_imported_item(case, 1.0, None, None))
    return case.id


def test_an_unread_document_is_read_when_its_item_is_opened(site: Site) -> None:
    case_id = imported(site.home)
    form = label_page(site.open, case_id)
    with open_store(site.home) as store:
        case = store.cases.get(case_id)
        assert case is not None
        (source_id,) = case.documents
    assert "cats.txt" in told(form.at), "a line says that it is being read"
    with open_store(site.home) as store:
        wait_for(lambda: store.readings.get(source_id, ""), "the reading")
    form.at.run()
    assert "cats.txt" not in told(form.at)
    (pane,) = [load_case_sources(case)]
    assert [source.text for source in pane] == [CATS]


@pytest.mark.parametrize("page", ["review/pending", "setup/exchange"])
def test_all_items_that_nobody_checked_are_checked_in_one_batch(site: Site, page: str) -> None:
    case_id = imported(site.home)
    at = site.open(f"pages/{page}.py")
    assert "review.unchecked" not in keys(at), "its expectation is worked out once it is open"
    assert "1 item nobody has checked" in {fold.label for fold in at.expander}
    at.session_state["review.unchecked.fold"] = True
    assert at.run().button(key="review.unchecked").label == "Check it"
    press(at, "review.unchecked")
    with open_store(site.home) as store:
        (batch,) = store.batches.all(ensure_project(store, "Mira", 1.0).id)
        (row,) = store.batches.rows(batch.id)
    assert (row.case_id, row.sources) == (case_id, ("cats.txt",))
    assert row.run_id is not None
    assert state.get_jobs().wait(row.run_id, 60)
    assert "review.unchecked" not in keys(site.open(f"pages/{page}.py"))
    assert item_of(site.home, case_id).run_id == row.run_id
    assert not at.run().get("progress")[1:], "it is over"


def test_review_follows_the_checks_that_were_started_there(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(site.home)
    at = site.open("pages/review/pending.py")
    monkeypatch.setattr(check_unchecked, "count_active", lambda batch: (1, 2))
    at.session_state[check_unchecked.STARTED] = "b"
    assert "1 of 2 checks done" in [bar.proto.text for bar in at.run().get("progress")]


def test_a_language_that_is_not_known_is_called_so(site: Site, run_id: str) -> None:
    case = stored_case(site.home, "Zzz.")
    with open_store(site.home) as store:
        enqueue_run(store, run_id, 9.0)
        store.queue.add(replace(build_imported_item(case, 2.0, None, 0.5), language="und"))
    at = site.open("pages/review/pending.py")
    assert at.selectbox(key="review.language").options == ["any", "en", "not known"]


def test_a_blind_project_shows_nobody_elses_answer(site: Site, run_id: str) -> None:
    """Mira is its admin and works on its items like everyone; only where she settles she sees."""
    run = queued(site.home, run_id)
    differed(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        project = ensure_project(store, "Mira", 1.0)
        store.projects.save(replace(project, is_blind=True))
        case = case_of(store, run_id)
        store_case(store, project, CaseDraft(case.response[:-1] + " mostly."), "Mira", 5.0)

    def shown() -> dict[str, str]:
        new = site.open("pages/check/new.py")
        put(new, "new.response", case.response)
        pages = {
            "new": new,
            "run": site.open("pages/check/run.py", run=run_id),
            "label": site.open("pages/review/label.py", case=run.case_id),
            "history": site.open("pages/check/history.py"),
        }
        drawn = {
            name: [str(each.proto.body) for each in at.get("html")] for name, at in pages.items()
        }
        return {name: " ".join([told(at), *drawn[name]]) for name, at in pages.items()}

    for name, words in shown().items():
        assert "Karl" not in words, name
        assert "Ida" not in words, name
    assert "says supported" not in shown()["new"]
    assert "Karl" in told(settle_page(site.open, run.case_id).at)
    with open_store(site.home) as store, store.writing():
        store.projects.set_member(Member(project.id, "Lena", "admin", 1.0))
        store.projects.set_member(Member(project.id, "Mira", "annotator", 1.0))
    line = "Only leads and admins can settle"
    assert line in told(settle_page(site.open, run.case_id).at)
    assert line in told(site.open("pages/review/adjudicate.py"))
    with open_store(site.home) as store, store.writing():
        gold = GoldAnswer("g", case.id, "Lena", 7.0, "adjudicated", "hallucinated")
        record_gold(store, gold, case)
    assert "Karl" not in shown()["run"], "she may be asked yet"
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "supported", 9.0)
    assert "Karl" in shown()["run"], "a settled case shows what everybody said"


def test_an_item_in_other_hands_is_shown_and_not_given(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        store.queue.take(run.case_id, "Karl", QueueRules(seconds=9e9), 1.0)
    at = site.open("pages/review/label.py", case=run.case_id)
    assert "Others are on this case already" in told(at)
    assert "Take another item from the queue" in told(at)
    assert not any(str(button.key).endswith("choose.supported") for button in at.button)
    nowhere = site.open("pages/review/label.py", case="0" * 32)
    assert "no item at this link" in nowhere.info[0].value


def test_a_submitted_item_keeps_its_lines_and_cannot_be_skipped_away(
    site: Site, run_id: str
) -> None:
    run = queued(site.home, run_id)
    form = label_page(site.open, run.case_id)
    assert form.at.button(key="review.skipped").label == "Skip"
    form.do("choose.hallucinated")
    with open_store(site.home) as store:  # what the machine marked
        spans = fold_events(event for _, event in store.runs.events(run_id)).spans
    rejected = replace(make_suggestions(spans)[0], status="rejected")
    form.at.session_state[f"{form.key}.marked"] = SpanEditorState(
        2, (rejected,), none=True, did="none"
    )
    form.do("save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_run(run_id)
    assert (saved.spans, saved.is_unmarked) == ((), True)
    assert [span.text for span in saved.rejected] == ["left"]
    assert item_of(site.home, run.case_id).given == 1
    again = site.open("pages/review/label.py", case=run.case_id)
    assert "you may answer again" in told(again)
    assert "No single word is wrong" in told(again)
    assert "review.skipped" not in keys(again)


def test_a_lead_settles_what_people_differ_about(site: Site, run_id: str) -> None:
    site.open("pages/review/pending.py")
    case_id = differed(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        for person in ("Karl", "Ida"):
            store.queue.end(case_id, person, "submitted", 5.0)
    (table,) = site.open("pages/review/adjudicate.py").dataframe
    assert list(table.value["They differ in"]) == ["label: 1 hallucinated, 1 supported"]
    assert list(table.value["People"]) == ["Ida: ✓, Karl: ✗"]
    form = settle_page(site.open, case_id)
    assert all(f"**{who}**" in told(form.at) for who in ("Ida", "Karl", "the machine"))
    assert "**Differences:** label: 1 hallucinated, 1 supported" in told(form.at)
    press(form.at, "settle.take.1")
    assert form.at.button(key=f"{form.key}.choose.hallucinated").proto.type == "primary"
    form.do("save")
    with open_store(site.home) as store:
        (gold,) = store.golds.of_case(case_id)
        assert len(store.corrections.of_run(run_id)) == 2
    assert (gold.label, gold.origin, gold.took) == (
        "hallucinated", "adjudicated", ("Ida4.0", "Karl3.0")
    )  # fmt: skip
    assert [(s.text, s.source) for s in gold.spans] == [("Female", "Karl")]
    assert item_of(site.home, case_id).state == "adjudicated"


def test_an_annotator_settles_nothing_and_loses_nothing(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        store.projects.set_member(Member(run.project_id, "Karl", "lead", 1.0))
        store.projects.save_note("person", "Karl")
    form = settle_page(site.open, run.case_id).do("choose.supported").write("reason", "I think so")
    with open_store(site.home) as store, store.writing():
        store.projects.set_member(Member(run.project_id, "Karl", "annotator", 1.0))
    form.do("save")
    assert "Only leads and admins can settle a case" in told(form.at)
    with open_store(site.home) as store:
        assert "I think so" in load_draft(store, "Karl", form.key)
        assert store.golds.of_case(run.case_id) == []


def test_a_case_much_like_a_decided_one_shows_what_people_decided(site: Site, run_id: str) -> None:
    with open_store(site.home) as store:
        say(store, run_id, "Karl", "supported", 3.0)
        case, project = case_of(store, run_id), ensure_project(store, "Mira", 1.0)
        alike = [
            store_case(store, project, CaseDraft(text), "Mira", 5.0)
            for text in (case.response.upper(), case.response[:-1] + " mostly.", "Dogs bark.")
        ]
        with store.writing():
            for other in alike:
                store.queue.add(
                    QueueItem(other.id, project.id, None, 6.0, "", None, 0.0, "en", 0.5)
                )
    shown = [
        " ".join(
            item.proto.label.replace("\\", "")
            for item in site.open("pages/review/label.py", case=other.id).get("page_link")
        )
        for other in alike
    ]
    assert "The same text: Karl says supported" in shown[0]
    assert "Similar, “Female cats tend to be left pawed.”: Karl says supported" in shown[1]
    assert "Karl" not in shown[2]
    origins: dict[GoldOrigin, str] = {
        "imported": "hallucinated by an imported answer",
        "adjudicated": "settled as hallucinated",
    }
    for origin, said in origins.items():
        with open_store(site.home) as store, store.writing():
            gold = GoldAnswer(origin, case.id, "Lena", 7.0, origin, "hallucinated")
            record_gold(store, gold, case)
        at = site.open("pages/review/label.py", case=alike[0].id)
        words = [item.proto.label.replace("\\", "") for item in at.get("page_link")]
        assert any(f"The same text: {said}" in label for label in words), words


def test_a_case_that_nobody_checked_is_labelled_with_a_projects_own_category(
    site: Site, project_id: str
) -> None:
    with open_store(site.home) as store:
        project = ensure_project(store, "Mira", 1.0)
        with store.writing():
            store.projects.save(replace(project, categories=("contradicted", "made up source")))
        case = store_case(store, project, CaseDraft("Cats read Kant."), "Mira", 5.0)
        span = Span(10, 14, "Kant", 0.8, "invented", "")
        with store.writing():
            store.queue.add(QueueItem(case.id, project.id, None, 6.0, "", None, 0.0, "en", 0.5))
            store.golds.suggest(Suggestion("s", case.id, "Agent X", 5.0, None, None, (span,)), case)
    form = label_page(site.open, case.id).do("choose.hallucinated")
    assert form.at.selectbox(key=f"{form.key}.category").options == [
        "contradicted", "made up source", "invented"
    ]  # fmt: skip
    form.write("quote", "Cats").write("category", "made up source").do("mark", "save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_case(case.id)
    assert (saved.run_id, saved.machine_label) == (None, None)
    assert [(s.text, s.category) for s in saved.spans] == [("Cats", "made up source")]


def test_drafts_and_what_a_person_submitted_are_listed(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)

    def listed(view: str) -> int:
        return len(put(site.open("pages/review/pending.py"), "review.states", view).dataframe)

    assert [listed(view) for view in ("pending", "my drafts", "I submitted")] == [1, 0, 0]
    form = label_page(site.open, run.case_id).do("choose.unclear")
    assert listed("my drafts") == 1
    form.write("reason", "two readings").do("save")
    assert [listed(view) for view in ("my drafts", "I submitted", "I skipped")] == [0, 1, 0]


def test_a_project_keeps_its_own_categories_and_refuses_to_have_none(
    site: Site, project_id: str
) -> None:
    at = site.open("pages/setup/project.py")
    field = at.multiselect(key=f"project.{project_id}.categories")
    field.set_value([])
    press(at, f"project.{project_id}.save")
    assert "at least one thing that may be wrong" in at.error[0].value
    assert clean_categories(["wrong entity", " made  up ", "made up", ""]) == (
        "wrong_entity", "made up"
    )  # fmt: skip
    at.multiselect(key=f"project.{project_id}.categories").set_value(["reasoning"])
    press(at, f"project.{project_id}.save")
    assert project_of(site.home, project_id).categories == ("reasoning",)


def test_a_gold_answer_is_corrected_with_a_reason_and_the_old_one_stays(
    site: Site, run_id: str
) -> None:
    queued(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        case = case_of(store, run_id)
        gold = GoldAnswer("g", case.id, "a set", 1.0, "imported", "supported")
        store.golds.add(gold, case.response)
    at = put(site.open("pages/review/adjudicate.py"), "settling.view", "right answer known")
    assert len(at.dataframe[0].value) == 1
    assert "Adjudicate it" in told(site.open("pages/review/label.py", case=case.id))
    form = settle_page(site.open, case.id)
    assert "right answer so far" in told(form.at)
    form.do("choose.supported", "save")
    with open_store(site.home) as store:
        assert [one.origin for one in store.golds.of_case(case.id)] == ["imported", "adjudicated"]
    form = settle_page(site.open, case.id).do("choose.hallucinated", "save")
    assert "Correcting a gold answer takes a reason" in told(form.at)
    form.write("reason", "the source says right").do("save")
    with open_store(site.home) as store:
        old, _, new = store.golds.of_case(case.id)
    assert (old.label, new.label, new.origin) == ("supported", "hallucinated", "corrected")


def test_a_category_that_a_project_gave_up_keeps_the_marks_of_drafts(
    site: Site, run_id: str
) -> None:
    run = queued(site.home, run_id)
    own = SpanEditorState(
        2, (SpanMark("a", 0, 6, "reasoning"), SpanMark("b", 7, 11, "wrong_entity"))
    )
    draft = {"label": "hallucinated", "marked": to_plain(own)}
    with open_store(site.home) as store:
        save_draft(store, "Mira", f"run.{run.case_id}.correct", json.dumps(draft))
        with store.writing():
            project = ensure_project(store, "Mira", 1.0)
            store.projects.save(replace(project, categories=("wrong_entity",)))
    label_page(site.open, run.case_id).do("save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_case(run.case_id)
    assert {("Female", "reasoning"), ("cats", "wrong_entity")} <= {
        (span.text, span.category) for span in saved.spans
    }


def test_taking_an_answer_back_leaves_what_is_being_typed(site: Site, run_id: str) -> None:
    with open_store(site.home) as store:
        store.projects.save_note("person", "Mira")
    form = run_page(site.open, run_id).do("choose.unclear").write("reason", "first").do("save")
    form.do("choose.supported").write("reason", "a long second thought")
    next(button for button in form.at.button if button.label == "Undo").click().run()
    assert not form.at.exception
    assert form.holds("reason") == "a long second thought"
    form.do("save")
    with open_store(site.home) as store:
        (saved,) = store.corrections.of_run(run_id)
        assert len(store.corrections.history(saved.case_id)) == 3
    assert (saved.label, saved.reason) == ("supported", "a long second thought")


def test_a_draft_yields_to_an_answer_saved_on_the_run_page_and_is_offered_back(
    site: Site, run_id: str
) -> None:
    case = queued(site.home, run_id).case_id
    label = label_page(site.open, case).do("choose.hallucinated").write("reason", "Begun here.")
    run_page(site.open, run_id).do("choose.unclear").write("reason", "Said there.").do("save")
    label = label_page(site.open, case)
    assert "You, in another window, said unclear" in told(label.at)
    assert label.holds("reason") == "Begun here."
    label.do("save")
    assert "Nothing of yours was saved yet" in told(label.at), "the newer one is not overwritten"
    label.do("conflict.save")
    with open_store(site.home) as store:
        newest = store.corrections.of_case(case)[-1]
    assert (newest.label, newest.reason) == ("hallucinated", "Begun here.")


def test_a_draft_older_than_an_answer_can_be_discarded(site: Site, run_id: str) -> None:
    case = queued(site.home, run_id).case_id
    run = run_page(site.open, run_id).do("choose.unclear").write("reason", "Begun here.")
    label_page(site.open, case).do("choose.hallucinated").write("reason", "So.").do("save")
    run = run_page(site.open, run_id).do("conflict.drop")
    assert "choose.unclear" in " ".join(keys(run.at))
    run.do("choose.unclear")
    assert run.holds("reason") == "So."  # answering again begins with the answer that stands


def test_a_draft_outlives_what_another_tab_saved_on_the_same_form(site: Site, run_id: str) -> None:
    one = run_page(site.open, run_id).do("choose.hallucinated").write("reason", "Typed here.")
    run_page(site.open, run_id).do("choose.unclear").write("reason", "Quick.").do("save")
    one.at.run()
    assert "You, in another window, said unclear" in told(one.at)
    assert one.holds("reason") == "Typed here."
    one.do("conflict.save")
    with open_store(site.home) as store:
        assert store.corrections.of_run(run_id)[-1].reason == "Typed here."


def test_an_older_answer_that_was_imported_later_blocks_no_form(site: Site, run_id: str) -> None:
    with open_store(site.home) as store:
        store.projects.save_note("person", "Mira")
        say(store, run_id, "Mira", "unclear", at=100.0)
        say(store, run_id, "Ann", "hallucinated", at=50.0)
    form = run_page(site.open, run_id).do("choose.supported")
    assert f"{form.key}.reason" in keys(form.at)


def test_a_draft_stays_when_its_case_is_checked_again(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    label_page(site.open, run.case_id).do("choose.unclear").write("reason", "two readings")
    with open_store(site.home) as store:
        jobs = JobRunner(site.home)
        with store.writing():
            again = jobs.queue(store, case_of(store, run_id), Plan())
        jobs.submit(store, [again], jobs.payer("Mira", {}))
        assert jobs.wait(again, 60)
        enqueue_run(store, again, 9.0)
    assert item_of(site.home, run.case_id).run_id == again
    assert label_page(site.open, run.case_id).holds("reason") == "two readings"


def test_a_stale_tab_passes_no_submitted_answer_on(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    stale = site.open("pages/review/label.py", case=run.case_id)
    label_page(site.open, run.case_id).do("choose.unclear").write("reason", "two readings").do(
        "save"
    )
    press(stale, "review.skipped")
    assert "take your answer back first" in stale.error[0].value
    assert item_of(site.home, run.case_id).given == 1


def test_another_window_of_a_person_loses_nothing_that_was_typed(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    first, second = (label_page(site.open, run.case_id) for _ in range(2))
    first.do("choose.unclear").write("reason", "two readings")
    second.do("choose.unclear").write("answer", "right pawed")
    first.write("reason", "three readings")
    reloaded = label_page(site.open, run.case_id)
    assert (reloaded.holds("reason"), reloaded.holds("answer")) == ("three readings", "right pawed")
    second.do("discard")
    reloaded = label_page(site.open, run.case_id)
    assert reloaded.holds("reason") == "three readings"


def test_taking_a_version_keeps_the_leads_own_reason(site: Site, run_id: str) -> None:
    site.open("pages/review/pending.py")
    case_id = differed(site.home, run_id)
    form = settle_page(site.open, case_id).do("choose.supported")
    form.write("reason", "page 3 says so").write("answer", "right pawed")
    press(form.at, "settle.take.1")
    assert form.holds("reason") == "page 3 says so"
    with open_store(site.home) as store:
        say(store, run_id, "Lena", "unclear", 5.0)
    form.do("save")
    assert "Lena" in form.at.warning[0].value
    form.do("conflict.save")
    with open_store(site.home) as store:
        (gold,) = store.golds.of_case(case_id)
    assert (gold.label, gold.reason, gold.corrected_answer, len(gold.took)) == (
        "hallucinated", "page 3 says so", "right pawed", 3
    )  # fmt: skip
    form = settle_page(site.open, case_id)
    press(form.at, "settle.open")
    form.do("choose.supported")
    label = form.at.text_area(key=f"{form.key}.reason").label
    assert "if you like" in label, "what was settled no longer counts"


def test_what_people_agree_on_is_settled_with_their_names(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    with open_store(site.home) as store:
        say(store, run_id, "Karl", "hallucinated", 3.0)
        say(store, run_id, "Ida", "hallucinated", 4.0)
    form = settle_page(site.open, run.case_id).do("save")
    assert "Expected an answer, found none" in form.at.error[0].value
    form.do("choose.hallucinated", "save")
    with open_store(site.home) as store:
        (gold,) = store.golds.of_case(run.case_id)
    assert [(s.text, s.source, s.p) for s in gold.spans] == [("Female", "Ida, Karl", 1.0)]


def test_a_sole_answer_is_settled_only_once_somebody_took_it(site: Site, run_id: str) -> None:
    run = queued(site.home, run_id)
    with open_store(site.home) as store:
        say(store, run_id, "Karl", "hallucinated", 3.0)
    form = settle_page(site.open, run.case_id)
    marked = form.at.session_state[f"{form.key}.marked"]
    assert {mark.status for mark in marked.marks} == {"suggested"}
    form.do("save")
    with open_store(site.home) as store:
        assert store.golds.of_case(run.case_id) == []
    press(form.at, "settle.take.0")
    form.do("save")
    with open_store(site.home) as store:
        (gold,) = store.golds.of_case(run.case_id)
    assert (gold.label, [s.text for s in gold.spans]) == ("hallucinated", ["Female"])


def test_versions_show_kinds_by_colour_and_name_and_which_words_only_one_marked(
    site: Site, run_id: str
) -> None:
    queued(site.home, run_id)
    with open_store(site.home) as store:
        case = case_of(store, run_id)
        first, second = (
            Span(start, end, words, 1.0, "wrong_entity", "")
            for start, end, words in ((0, 6, "Female"), (7, 11, "cats"))
        )
        answers = {
            "Ida": (first, replace(second, category="reasoning")),
            "Karl": (replace(first, category="contradicted"),),
        }
        with store.writing():
            for name, spans in answers.items():
                answer = Correction(
                    name, run_id, case.id, name, 1.0, "hallucinated", spans, "Because."
                )
                record_correction(store, answer, case)
    at = settle_page(site.open, case.id).at
    line = "“Female” is wrong entity (Ida), contradicted (Karl)"
    assert f"marks differ · kind differs: {line}" in told(at)
    assert "Only the kind differs" not in told(at)
    ida, karl, _machine = (
        body for item in at.get("html") if '<div class="cp-text"' in (body := item.proto.body)
    )
    assert (
        'class="cp-mark cp-mark-alone cp-mark-kind-4" title="reasoning\nnot marked by Karl"' in ida
    )
    assert 'class="cp-mark cp-mark-kind-2" title="wrong entity">Female</mark>' in ida
    assert 'class="cp-mark cp-mark-kind-0" title="contradicted">Female</mark>' in karl
    assert 'class="cp-mark cp-mark-missing" title="marked by Ida">cats</mark>' in karl


def test_cases_are_filtered_by_how_people_differ_by_majority_and_by_words(
    site: Site, run_id: str
) -> None:
    page = "pages/review/adjudicate.py"
    site.open("pages/review/pending.py")
    case_id = differed(site.home, run_id)
    with open_store(site.home) as store, store.writing():
        for person in ("Karl", "Ida"):
            store.queue.end(case_id, person, "submitted", 5.0)

    def listed(**address: str) -> int:
        return len(site.open(page, show="people differ", **address).dataframe)

    assert listed() == listed(differ="labels", majority="no", words="CATS left") == 1
    assert listed(differ="marks") == listed(majority="yes") == listed(words="dogs") == 0
    at = put(site.open(page, differ="labels"), "settling.differ", "kinds")
    assert query(at, "differ") == "kinds"
    assert "No case here matches these filters" in told(at)
    at = site.open("pages/review/pending.py", words="dogs", differ="labels")
    assert "Nothing matches these filters" in told(at)
    put(at, "review.words", "")
    assert len(at.dataframe) == 0, "two of one wanted people have answered it"
    assert {"review.words", "review.differ", "review.majority"} <= keys(at)
    with open_store(site.home) as store, store.writing():
        store.projects.save(replace(ensure_project(store, "Mira", 1.0), is_blind=True))
    blind = keys(site.open("pages/review/pending.py", differ="labels"))
    assert "review.words" in blind
    assert blind.isdisjoint({"review.differ", "review.majority"}), "they tell what others said"


def test_a_flag_tells_the_lead_why_and_comments_go_both_ways(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id
    at = label_page(site.open, case_id).at
    put(at, f"comment.{case_id}", "Which cats?")
    at = site.open("pages/review/label.py", case=case_id)
    assert at.text_area(key=f"comment.{case_id}").value == "Which cats?", "a reload lost it"
    press(at, f"comment.{case_id}.add")
    assert "**Mira**: Which cats?" in told(at)
    at.text_input(key=f"review.{case_id}.flag").set_value("two readings")
    press(at, "review.flagged.why")
    assert "Flagged for a lead (two readings), “" in told(at)
    table = site.open("pages/review/adjudicate.py").dataframe[0].value
    assert list(table["Flagged"]) == ["Mira: two readings"]
    at = settle_page(site.open, case_id).at
    assert "Flagged by **Mira**" in told(at)
    assert "two readings" in told(at)
    put(at, f"comment.{case_id}", "All of them.")
    press(at, f"comment.{case_id}.add")
    with open_store(site.home) as store:
        events = [(each.did, each.words) for each in store.queue_events.of_case(case_id)]
    assert events == [
        ("commented", "Which cats?"), ("flagged", "two readings"), ("commented", "All of them.")
    ]  # fmt: skip


def test_typed_comment_is_stored_once_and_with_the_saved_answer(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id

    def list_comments() -> list[str]:
        with open_store(site.home) as store:
            events = store.queue_events.of_case(case_id)
        return [each.words for each in events if each.did == "commented"]

    form = label_page(site.open, case_id)
    put(form.at, f"comment.{case_id}", "Which cats?")
    form.do("save")
    assert "choose one first" in told(form.at)
    form.do("choose.supported", "save")
    assert "takes a reason" in told(form.at)
    assert list_comments() == []
    form.write("reason", "the source says so").do("save")
    assert list_comments() == ["Which cats?"]
    with open_store(site.home) as store:
        assert [one.label for one in store.corrections.of_case(case_id)] == ["supported"]


def test_label_has_one_place_for_comments(site: Site, run_id: str) -> None:
    case_id = queued(site.home, run_id).case_id
    on_run, on_label = run_page(site.open, run_id), label_page(site.open, case_id)
    for form in (on_run, on_label):
        put(form.do("choose.supported").at, f"{form.key}.more", True)
    assert f"{on_run.key}.comment" in keys(on_run.at), "a run has no other place"
    fields = {area.key for area in on_label.at.text_area}
    assert f"comment.{case_id}" in fields
    assert f"{on_label.key}.comment" not in fields
    on_label.do("discard")
    with open_store(site.home) as store, store.writing():
        case = case_of(store, run_id)
        said = Correction("old", run_id, case.id, "Mira", 1.0, "supported", reason="So.")
        store.corrections.add(replace(said, comment="See p. 2."), case.response)
    again = label_page(site.open, case_id)
    put(again.at, f"{again.key}.more", True)
    again.write("comment", "See p. 3.").do("save")
    with open_store(site.home) as store:
        assert store.corrections.of_case(case_id)[-1].comment == "See p. 3."


def test_what_i_submitted_shows_my_answer_and_time_and_leads_see_everybodys(
    site: Site, run_id: str
) -> None:
    case_id = queued(site.home, run_id).case_id
    with open_store(site.home) as store, store.writing():
        for person, end in (("Mira", 64.0), ("Karl", 5000.0)):
            store.queue.take(case_id, person, QueueRules(people=2), 10.0)
            store.queue.end(case_id, person, "submitted", end)
    with open_store(site.home) as store:
        say(store, run_id, "Mira", "supported")
    table = site.open("pages/review/pending.py", show="I submitted").dataframe[0].value
    assert (table["I said"][0], table["My time"][0]) == ("✓ Supported", "54 s")
    at = site.open("pages/review/agreement.py")
    times = next(one.value for one in at.dataframe if "Items per hour" in one.value)
    assert list(times["Person"]) == ["Karl", "Mira"]
    assert list(times["Items with a time"]) == [0, 1], "a pause is no work"
    assert times["Items per hour"][1] == round(3600 / 54, 1)
    assert "More than 15 min is a pause" in told(at)
    with open_store(site.home) as store:
        project_id = case_of(store, run_id).project_id
        store.projects.set_member(Member(project_id, "Karl", "annotator", 1.0))
        store.projects.save_note("person", "Karl")
    at = site.open("pages/review/agreement.py")
    assert "Time per person" not in told(at)
