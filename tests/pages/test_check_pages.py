"""New check, Run, Compare, History and Check many, through the app itself."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from components.check import batch
from core.agents.rosters import make_single_model_roster
from core.documents.library import remove_file
from core.pipeline.batch_check import RunFindings
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.schema.events import RunFailed, RunStopped
from core.schema.records import Member, Plan, Project, Run
from core.schema.reviews import Correction
from core.store import Store, open_store
from core.store.cases import Batch, BatchRow
from tests.pages.conftest import (
    CATS,
    RUN,
    WRONG,
    OpenApp,
    check,
    checked,
    drawn,
    finish,
    kept,
    ours,
    query,
    said,
    typed,
)
from tests.pages.driving import press
from tests.waiting import wait_for


def judged(app: OpenApp, run_id: str, label: str) -> tuple[AppTest, str]:
    """(the run's page with that label chosen, how the form's keys begin)."""
    at, key = app(RUN, run=run_id), f"run.{run_id}.correct"
    at.button(key=f"{key}.choose.{label}").click().run()
    return at, key


def corrected(home: Path, run_id: str) -> Correction:
    """What a person said of the run."""
    with open_store(home) as store:
        return store.corrections.of_run(run_id)[0]


def test_new_check_is_usable_at_once(app: OpenApp) -> None:
    at = app()
    assert at.title[0].value == "New check"
    assert at.text_area(key="new.response").value == ""
    assert at.button(key="new.check")
    assert said(at.caption, "good at numbers, names and dates")
    (way,) = [one for one in at.expander if "no language model" in one.label]
    assert way.label.startswith("Debate in turn"), "protocol and models in one line"
    assert not way.proto.expanded
    assert at.selectbox(key="new.roster").options[1] == "Mistral and Claude (CEDA)", "no bare id"
    assert len([b for b in at.button if str(b.key).startswith("new.example.")]) == 6
    assert said(at.caption, "The engine supports this, wrongly")


def test_a_claim_with_a_file_is_checked(app: OpenApp) -> None:
    at = typed(app()).run()
    assert not at.exception
    check(at)
    markup = drawn(at)
    assert "Hallucinated" in markup
    assert '<mark class="cp-mark"' in markup
    assert ">left</mark>" in markup


def test_nothing_to_check_is_said_and_nothing_is_lost(app: OpenApp) -> None:
    at = app()
    at.text_input(key="new.question").set_value("Which paw?")
    at.file_uploader(key="new.upload").set_value([("cats.txt", CATS.encode(), "text/plain")])
    at.button(key="new.check").click().run()
    assert "Enter a text to check" in at.error[0].value
    assert at.text_input(key="new.question").value == "Which paw?"


def test_a_broken_file_is_named_and_the_other_used(app: OpenApp) -> None:
    at = typed(app(), WRONG, ("empty.txt", b""), ("cats.txt", CATS.encode())).run()
    assert said(at.error, "empty.txt")
    check(at)
    assert "Hallucinated" in drawn(at)
    assert said(at.warning, "“empty.txt” is empty"), "the run says what it did without"


def test_the_sources_that_go_into_a_check_are_named_beside_its_button(app: OpenApp) -> None:
    files = [(f"{name}*.txt", f"{CATS} {name}".encode()) for name in "abcdefg"]
    at = typed(app(), WRONG, files[0]).run()
    assert said(at.caption, "1 source: a*.txt · ")
    at = typed(at, WRONG, *files).run()
    assert said(at.caption, "7 sources: a*.txt, b*.txt, c*.txt, d*.txt, e*.txt and 2 more · ")


def test_a_source_in_another_language_is_warned_of(app: OpenApp) -> None:
    chinese = "母猫往往惯用右爪，而公猫更常惯用左爪。研究人员观察了四十多只猫。"
    at = typed(app(), WRONG, ("mao.txt", chinese.encode())).run()
    (source_id,) = at.session_state["new.upload.held"]
    with open_store(state.home_folder()) as store:
        wait_for(lambda: store.readings.get(source_id, "") is not None)
    at.run()
    assert said(at.warning, "The text is in English, “mao.txt” in Chinese.")
    check(at)
    assert said(at.warning, "The text is in English, “mao.txt” in Chinese.")


def test_a_files_name_is_never_markdown(app: OpenApp) -> None:
    """A remote picture in a message would leave this computer."""
    at = app()
    name = "a![x](http://evil.example/p.png).txt"
    at.file_uploader(key="new.upload").set_value([(name, b"", "text/plain")])
    at.run()
    assert said(at.error, "evil")
    for message in (*at.error, *at.markdown, *at.caption, *at.warning):
        assert "](http" not in message.value


def test_uploads_survive_a_visit_to_another_page(app: OpenApp, home: Path) -> None:
    at = typed(app()).run()
    at.switch_page("pages/check/history.py").run()
    at.switch_page("pages/check/new.py").run()
    assert at.text_area(key="new.response").value == WRONG
    assert len(at.multiselect(key="new.library").value) == 1
    at.button(key="new.check").click().run()
    with open_store(home) as store:
        (case,) = store.cases.same(store.projects.all()[0].id, WRONG, "")
        assert [store.library.name_of(case.project_id, i) for i in case.documents] == ["cats.txt"]


def test_a_new_check_waits_in_another_session_until_it_is_checked(app: OpenApp) -> None:
    at = app()
    at.text_area(key="new.response").set_value(WRONG)
    at.text_input(key="new.question").set_value("Which paw?")
    at.file_uploader(key="new.upload").set_value([("cats.txt", CATS.encode(), "text/plain")])
    at.run()
    again = app()
    assert again.text_area(key="new.response").value == WRONG
    assert again.text_input(key="new.question").value == "Which paw?"
    assert len(again.multiselect(key="new.library").value) == 1
    again.button(key="new.check").click().run()
    assert not again.exception
    assert state.get_jobs().wait(query(again, "run"), 60)
    again.query_params.clear()  # as a browser does with the page that is left
    again.switch_page("pages/check/new.py").run()
    assert again.text_area(key="new.response").value == WRONG, "the same session may change it"
    assert app().text_area(key="new.response").value == ""


def test_what_is_edited_just_before_the_click_is_what_is_checked(app: OpenApp, home: Path) -> None:
    at = typed(app())
    at.text_input(key="new.role").set_value("A vet")
    at.text_area(key="new.instruction").set_value("Look at the paws.")
    at.slider(key="new.turns").set_value(2)
    at.slider(key="new.passages").set_value(3)
    at.button(key="new.check").click().run()
    assert not at.exception
    run, case = kept(home, query(at, "run"))
    assert (case.role, case.instruction, len(case.documents)) == ("A vet", "Look at the paws.", 1)
    assert (run.plan.max_turns, run.plan.passages) == (2, 3)


def test_a_file_that_is_refused_with_the_click_holds_the_check_once(app: OpenApp) -> None:
    at = typed(app(), WRONG, ("empty.txt", b""))
    at.button(key="new.check").click().run()
    assert said(at.error, "was refused")
    assert said(at.error, "empty")
    at.button(key="new.check").click().run()
    assert query(at, "run")


def test_another_tab_takes_nothing_from_a_draft(app: OpenApp) -> None:
    first, second = app(), app()
    first.text_area(key="new.response").set_value(WRONG).run()
    second.run()
    assert app().text_area(key="new.response").value == WRONG, "the other one was empty all along"
    second.text_area(key="new.response").set_value("Cats sleep.").run()
    first.text_area(key="new.response").set_value(CATS).run()
    second.button(key="new.check").click().run()
    assert app().text_area(key="new.response").value == CATS, "what was checked is another text"
    first.text_area(key="new.response").set_value("").run()
    assert app().text_area(key="new.response").value == ""


def test_each_project_has_a_draft_of_its_own(app: OpenApp, home: Path) -> None:
    at = app()
    at.text_area(key="new.response").set_value(WRONG).run()
    with open_store(home) as store:
        (first,) = store.projects.all()
        store.projects.save(Project("p" * 32, "Towers", time.time(), role="A mason"))
        (who,) = (one.person for one in store.projects.members(first.id))
        store.projects.set_member(Member("p" * 32, who, "annotator", 1.0))
    at.session_state["project"] = "p" * 32
    at.run()
    assert at.text_area(key="new.response").value == ""
    assert at.text_input(key="new.role").value == "A mason"
    at.text_area(key="new.response").set_value("The tower is high.").run()
    at.session_state["project"] = first.id
    at.run()
    assert at.text_area(key="new.response").value == WRONG


@pytest.mark.parametrize("name", ["bridge", "museum", "tea"])
def test_prepared_cases_open_in_one_click(app: OpenApp, name: str) -> None:
    at = app()
    at.button(key=f"new.example.{name}").click().run()
    finish(at)
    assert "Hallucinated" in drawn(at)


def test_the_same_claim_again_shows_what_was_decided(app: OpenApp, run_id: str) -> None:
    at = app()
    at.text_area(key="new.response").set_value("  female cats TEND to be left pawed. ").run()
    links = [link.proto.label for link in at.get("page_link")]
    assert any("by Debate in turn" in label and "hallucinated" in label for label in links)


def test_a_run_shows_verdict_spans_evidence_and_debate(app: OpenApp, run_id: str) -> None:
    at = app(RUN, run=run_id)
    markup = drawn(at)
    for words in ("Hallucinated", "% likely", ">left</mark>", "Value checker", "disagrees"):
        assert words in markup
    read = markup.split("Judge's text, which the classifier reads")[0]
    for words in ("AGREE.", "DENY.", "INCORRECT"):
        assert words not in read, "machines' words face the reader"
    assert "Initial state" in markup
    assert said(at.caption, "Built-in engine · Debate in turn (CEDA)")
    assert any("cats" in str(button.label) for button in at.button)


def test_a_passages_neighbours_are_shown_on_demand(app: OpenApp) -> None:
    text = "A queen is a female cat. Female cats tend to be right pawed. They sleep by day."
    at = typed(app(), WRONG, ("cats.txt", text.encode())).run()
    check(at)
    around = '<span class="cp-around">A queen is a female cat. </span>'
    assert around not in drawn(at)
    at.toggle(key="evidence.around").set_value(True).run()
    assert around in drawn(at)
    assert '<span class="cp-around"> They sleep by day.</span>' in drawn(at)


def test_an_unknown_run_is_no_error_page(app: OpenApp) -> None:
    at = app(RUN, run="0" * 32)
    assert "There is no run “" in at.info[0].value


def test_a_correction_takes_a_label_and_a_reason(app: OpenApp, run_id: str, home: Path) -> None:
    at, key = judged(app, run_id, "supported")
    at.button(key=f"{key}.save").click().run()
    assert "takes a reason" in at.error[0].value
    at.text_area(key=f"{key}.reason").set_value("a local way of speaking").run()
    at.text_area(key=f"{key}.answer").set_value("left pawed").run()
    at.button(key=f"{key}.save").click().run()
    assert not at.exception
    saved = corrected(home, run_id)
    told = saved.label, saved.author, saved.reason, saved.machine_label, saved.corrected_answer
    way = "a local way of speaking"
    assert told == ("supported", "Mira", way, "hallucinated", "left pawed")
    assert said(at.markdown, "Mira")


@pytest.mark.parametrize(
    ("label", "words"),
    [("unclear", "Nothing is learned"), ("hallucinated", "It counts at the next retraining")],
)
def test_a_correction_says_whether_it_will_be_learned_from(
    app: OpenApp, run_id: str, label: str, words: str
) -> None:
    at, key = judged(app, run_id, label)
    at.text_area(key=f"{key}.reason").set_value("p. 3").run()
    at.button(key=f"{key}.save").click().run()
    assert not at.error
    assert any(words in toast.value for toast in at.toast)


def test_a_correction_of_a_run_without_the_judges_verdict_is_not_learned_from(
    app: OpenApp, home: Path
) -> None:
    at = app()
    at.text_area(key="new.response").set_value(WRONG).run()
    key = f"run.{check(at)}.correct"
    assert "Unclear" in drawn(at)
    at.button(key=f"{key}.choose.supported").click().run()
    at.text_area(key=f"{key}.reason").set_value("p. 3").run()
    at.button(key=f"{key}.save").click().run()
    assert said(at.toast, "no text to learn from")


def test_agreeing_keeps_the_machines_spans_and_adds_exact_words(
    app: OpenApp, run_id: str, home: Path
) -> None:
    at, key = judged(app, run_id, "hallucinated")
    at.text_input(key=f"{key}.quote").set_value("tend to be").run()
    at.button(key=f"{key}.mark").click().run()
    at.button(key=f"{key}.save").click().run()
    assert not at.exception
    saved = corrected(home, run_id)
    assert [(s.start, s.end, s.text, s.source) for s in saved.spans] == [
        (12, 22, "tend to be", saved.author),
        (23, 27, "left", "Built-in judge"),
    ]
    assert saved.rejected == ()


def test_words_that_do_not_stand_there_are_not_marked(app: OpenApp, run_id: str) -> None:
    at, key = judged(app, run_id, "hallucinated")
    at.text_input(key=f"{key}.quote").set_value("tended to be").run()
    assert said(at.caption, "do not appear in the response")
    at.button(key=f"{key}.mark").click().run()
    assert f"{key}.marked" not in at.session_state
    at.button(key=f"{key}.save").click().run()
    assert said(at.error, "does not appear in the response")
    assert at.text_input(key=f"{key}.quote").value == "tended to be", "what was typed is kept"


def test_words_that_were_typed_but_not_marked_are_saved_too(
    app: OpenApp, run_id: str, home: Path
) -> None:
    at, key = judged(app, run_id, "hallucinated")
    at.text_input(key=f"{key}.quote").set_value("tend to be").run()
    at.button(key=f"{key}.save").click().run()
    saved = corrected(home, run_id)
    assert [span.text for span in saved.spans] == ["tend to be", "left"]


def test_a_draft_waits_for_its_author_in_another_session(
    app: OpenApp, run_id: str, home: Path
) -> None:
    at, key = judged(app, run_id, "hallucinated")
    at.text_area(key=f"{key}.reason").set_value("p. 3").run()
    at.text_input(key=f"{key}.quote").set_value("tend to be").run()
    at.button(key=f"{key}.mark").click().run()
    again = app(RUN, run=run_id)
    assert again.text_area(key=f"{key}.reason").value == "p. 3"
    (mark,) = again.session_state[f"{key}.marked"].chosen
    assert (mark.start, mark.end, mark.category) == (12, 22, "contradicted")
    with open_store(home) as store:
        store.projects.save_note("person", "Karl")
    other = app(RUN, run=run_id)
    assert not any(str(area.key) == f"{key}.reason" for area in other.text_area)
    again.button(key=f"{key}.discard").click().run()
    with open_store(home) as store:
        store.projects.save_note("person", "Mira")
    emptied = app(RUN, run=run_id)
    assert not any(str(area.key) == f"{key}.reason" for area in emptied.text_area)


def test_a_draft_of_before_the_editor_is_understood_where_it_fits(
    app: OpenApp, run_id: str, home: Path
) -> None:
    key = f"run.{run_id}.correct"
    draft = {
        "label": "hallucinated", "kept": [7], "which": 3, "category": "odd", "reason": 5,
        "added": [[3, 900, "contradicted"], [0, 6, "odd"], "x", [0, 6, "reasoning"]],
    }  # fmt: skip
    with open_store(home) as store:
        store.projects.save_note(f"draft.{key}.Mira", json.dumps(draft))
    at = app(RUN, run=run_id)
    at.button(key=f"{key}.save").click().run()
    assert not at.exception
    with open_store(home) as store:
        (saved,) = store.corrections.of_run(run_id)
        assert store.projects.note(f"draft.{key}.Mira") == ""
    assert [(span.text, span.category) for span in saved.spans] == [
        ("Female", "odd"), ("Female", "reasoning")  # a project may have given “odd” up since
    ]  # fmt: skip
    assert [span.text for span in saved.rejected] == ["left"]


@pytest.mark.parametrize("mark", [{"start": 3, "end": 900}, {"status": "odd"}, {"start": "x"}])
def test_a_draft_that_does_not_fit_the_run_is_left_out(
    app: OpenApp, run_id: str, home: Path, mark: dict[str, object]
) -> None:
    key = f"run.{run_id}.correct"
    own: dict[str, object] = {"id": "a", "start": 0, "end": 6, "category": "reasoning"}
    draft = {"label": "hallucinated", "marked": {"revision": 1, "marks": [own | mark]}}
    with open_store(home) as store:
        store.projects.save_note(f"draft.{key}.Mira", json.dumps(draft))
    at = app(RUN, run=run_id)
    at.button(key=f"{key}.save").click().run()
    assert not at.exception
    saved = corrected(home, run_id)
    assert [span.text for span in saved.spans] == ["left"]


def test_checking_again_puts_both_verdicts_side_by_side(app: OpenApp, run_id: str) -> None:
    at = app(RUN, run=run_id)
    at.button(key=f"run.{run_id}.again.go").click().run()
    second = finish(at)
    assert second != run_id
    assert run_id in [link.proto.query_string.partition("=")[2] for link in at.get("page_link")]
    compare = app("pages/check/compare.py", before=run_id, after=second)
    assert any("debate are those of an earlier run" in item.value for item in compare.markdown)
    assert drawn(compare).count('class="cp-verdict ') == 2
    assert sum("Built\\-in engine" in item.value for item in compare.caption) == 2
    assert any("The machine’s verdict is the same" in item.value for item in compare.markdown)


def test_a_new_check_keeps_the_name_and_what_people_said(app: OpenApp, run_id: str) -> None:
    at = app(RUN, run=run_id)
    at.text_input(key=f"run.{run_id}.name").set_value("Paws").run()
    press(at, f"run.{run_id}.correct.choose.supported")
    at.text_area(key=f"run.{run_id}.correct.reason").set_value("It is so.").run()
    press(at, f"run.{run_id}.correct.save")
    assert "Overruled by Mira: " in drawn(at)
    at.button(key=f"run.{run_id}.again.go").click().run()
    second = finish(at)
    assert second != run_id
    assert at.title[0].value == "Paws · Run"
    assert "Overruled by Mira: " in drawn(at)
    compare = app("pages/check/compare.py", before=run_id, after=second)
    assert drawn(compare).count("Overruled by Mira: ") == 2


def test_a_broken_file_is_named_again_when_it_is_checked_again(app: OpenApp, home: Path) -> None:
    first = checked(home, WRONG, ("cats.txt", CATS), ("broken.pdf", "%PDF-1.4 broken"))
    at = app(RUN, run=first)
    assert said(at.warning, "broken")
    assert not said(at.error, "broken"), "once is enough"
    at.button(key=f"run.{first}.again.go").click().run()
    second = finish(at)
    assert second != first
    assert said(at.warning, "broken"), "and after"
    with open_store(home) as store:
        runs = store.runs.of_case(kept(home, first)[1].id, time.time(), 6)
    assert {run.id for run in runs} == {first, second}, "the case is the same"


def test_a_deleted_source_is_named_before_it_is_checked_again(
    app: OpenApp, run_id: str, home: Path
) -> None:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        (entry,) = store.library.all(project.id)
        remove_file(store, home, project.id, entry.id, 2.0)
    at = app(RUN, run=run_id)
    assert said(at.warning, "cats.txt")
    with open_store(home) as store:
        store.db.execute("DELETE FROM library")  # as with a run that came as a trace file
    at.run()
    assert said(at.warning, "a file that is not here")


def test_checking_again_with_another_source_makes_a_new_case(
    app: OpenApp, run_id: str, home: Path
) -> None:
    at = app(RUN, run=run_id)
    other = "Both female and male cats tend to be left pawed, says another book."
    key = f"run.{run_id}.again"
    at.file_uploader(key=f"{key}.upload").set_value([("other.txt", other.encode(), "text/plain")])
    at.run()
    at.button(key=f"{key}.go").click().run()
    second = finish(at)
    run, case = kept(home, second)
    assert len(case.documents) == 2
    assert run.parent_id == run_id


def test_a_replay_is_marked_and_steps(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/replay.py", run=run_id)
    assert at.title[0].value.endswith("· Replay")
    key = f"replay.{run_id}"
    assert "disagrees" not in drawn(at)
    at.button(key=f"{key}.step").click().run()
    assert "disagrees" in drawn(at)
    assert "DENY." not in drawn(at)
    at.button(key=f"{key}.back").click().run()
    assert "disagrees" not in drawn(at)
    for _ in range(6):
        at.button(key=f"{key}.step").click().run()
    assert "Hallucinated" in drawn(at)
    assert not at.exception


def test_many_claims_are_checked_and_open_as_runs(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/batch.py")
    table = f"claim,document\n{WRONG},cats.txt\nFemale cats tend to be right pawed.,cats.txt\n"
    at.text_area(key="many.pasted").set_value(table).run()
    assert said(at.markdown, "2 rows")
    at.button(key="many.start").click().run()
    assert not at.exception
    batch = query(at, "batch")
    with open_store(state.home_folder()) as store:
        runs = [row.run_id for row in store.batches.rows(batch)]
    assert all(run and state.get_jobs().wait(run, 60) for run in runs)
    at = app("pages/check/table.py", batch=batch)
    shown = at.dataframe[0].value
    assert list(shown["Verdict"]) == ["✗ Hallucinated", "✓ Supported"]
    at.session_state["many.results.True"] = {"selection": {"rows": [1], "columns": [], "cells": []}}
    at.run()
    assert query(at, "run") == runs[1]


def test_a_pasted_table_waits_in_another_session_until_it_is_checked(app: OpenApp) -> None:
    table = f"claim\n{WRONG}\n"
    at = app("pages/check/batch.py")
    at.text_area(key="many.pasted").set_value(table).run()
    again = app("pages/check/batch.py")
    assert again.text_area(key="many.pasted").value == table
    again.button(key="many.start").click().run()
    assert not again.exception
    assert app("pages/check/batch.py").text_area(key="many.pasted").value == ""


def test_a_tables_name_is_never_markdown(app: OpenApp, home: Path) -> None:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", 1.0)
        name = "a![x](http://evil.example/p.png).csv"
        store.batches.add(Batch("b" * 32, project.id, name, "*Mira*", 1.0, Plan()), [])
    at = app("pages/check/batch.py")
    labels = [link.proto.label for link in at.get("page_link")]
    assert any("evil" in label for label in labels)
    assert not any("](http" in label or " *Mira*" in label for label in labels)


def run_without_a_key(home: Path, ending: RunStopped | RunFailed | None = None) -> str:
    """A run that was stopped, or ended so, by a roster whose key nobody has set; in table `bb…`."""
    sheet = replace(
        make_single_model_roster("openai/tiny", "http://127.0.0.1:9/v1", "HOUSE_API_KEY"),
        name="Mine",
    )
    plan = Plan(roster="Mine", sheet=sheet)
    with open_store(home) as store:
        project = ours(store)
        case = store_case(store, project, CaseDraft(WRONG), "Mira", 1.0)
        run = Run("r" * 32, case.id, project.id, plan, "queued", 1.0)
        with store.writing():
            store.runs.add(run, "nobody", 1.0)
            store.runs.append(run.id, "nobody", [ending or RunStopped(2.0, "Mira")])
        store.batches.add(
            Batch("b" * 32, project.id, "t.csv", "Mira", 1.0, plan),
            [BatchRow("b" * 32, 1, WRONG, (), case.id, run.id)],
        )
    return run.id


def test_a_tables_rows_ask_for_the_key_that_resuming_them_needs(app: OpenApp, home: Path) -> None:
    run_without_a_key(home)
    at = app("pages/check/table.py", batch="b" * 32)
    assert "Mine" in at.markdown[0].value
    at.button(key="many.resume").click().run()
    assert "Expected a key for Mine" in at.error[0].value.replace("\\", "")
    at.text_input(key="many.key.HOUSE_API_KEY").set_value("sk-typed-here").run()
    assert not at.exception
    assert not at.error
    assert at.session_state["keys.typed.HOUSE_API_KEY"] == "sk-typed-here"


def test_a_failed_run_says_what_was_kept(app: OpenApp, home: Path) -> None:
    failed = RunFailed(2.0, "debating", "Judge (openai/tiny): refused the key (401).")
    at = app(RUN, run=run_without_a_key(home, failed))
    words = at.error[0].value.replace("\\", "")
    assert words.startswith("The run failed while debating: Judge (openai/tiny): refused the key")
    assert words.endswith("Nothing was done yet.")


def test_a_typed_key_that_is_wrong_can_be_typed_again_beside_resume(
    app: OpenApp, home: Path
) -> None:
    at = app(RUN, run=run_without_a_key(home))
    at.text_input(key="run.key.HOUSE_API_KEY").set_value("sk-wrong-one").run()
    at.button(key="run.forget.HOUSE_API_KEY").click().run()
    assert not at.exception
    assert "keys.typed.HOUSE_API_KEY" not in at.session_state
    assert at.text_input(key="run.key.HOUSE_API_KEY").value == ""


def test_rows_that_were_not_checked_are_counted_with_the_reason(app: OpenApp, run_id: str) -> None:
    at = app("pages/check/batch.py")
    table = f"claim,document\n{WRONG},cats.txt\na,nowhere.pdf\nb,nowhere.pdf\n"
    at.text_area(key="many.pasted").set_value(table).run()
    assert said(at.warning, "nowhere.pdf (rows 2, 3)")
    at.button(key="many.start").click().run()
    with open_store(state.home_folder()) as store:
        rows = store.batches.rows(query(at, "batch"))
    assert all(state.get_jobs().wait(row.run_id, 60) for row in rows if row.run_id)
    at = app("pages/check/table.py", batch=query(at, "batch"))
    assert said(
        at.caption, "3 rows: ✓ 0 supported · ✗ 1 hallucinated · ? 0 unclear · 2 not checked"
    )
    (warning,) = at.warning
    assert warning.value.startswith("Rows 2, 3 not checked")
    assert "nowhere" in warning.value


def test_a_table_says_which_columns_a_check_does_not_use(app: OpenApp) -> None:
    at = app("pages/check/batch.py")
    table = f"Ticket,claim,context,Owner\nT-1,{WRONG},{CATS!r},Ana\n".replace("'", '"')
    at.text_area(key="many.pasted").set_value(table).run()
    assert said(at.caption, "Not used for the check, returned with the results: Ticket, Owner.")
    assert not at.warning  # the column context is the source


def test_a_tables_progress_counts_the_rows_that_are_checked_and_reads_each_run_once(
    app: OpenApp, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run_without_a_key(home)
    read: list[str] = []
    with open_store(home) as store:
        project, plan, now = ours(store), Plan(), time.time()
        case = store_case(store, project, CaseDraft(WRONG), "Mira", 1.0)
        rows = [
            BatchRow("c" * 32, 1, WRONG, (), case.id, done),
            BatchRow("c" * 32, 2, WRONG, (), case.id, "s" * 32),
            *(BatchRow("c" * 32, n, "", (), problem="It has no text.") for n in (3, 4, 5)),
        ]
        with store.writing():
            store.runs.add(Run("s" * 32, case.id, project.id, plan, "queued", now), "me", now)
        store.db.execute("UPDATE runs SET label = 'unclear' WHERE id = ?", [done])
        store.batches.add(Batch("c" * 32, project.id, "t.csv", "Mira", 1.0, plan), rows)

    def summarize(store: Store, run: Run) -> RunFindings:
        read.append(run.id)
        return RunFindings(reason="So it says.")

    monkeypatch.setattr(batch, "summarize_run", summarize)
    at = app("pages/check/table.py", batch="c" * 32)
    assert at.get("progress")[0].proto.value == 50  # one of two: three rows are not checked
    at.run()
    assert at.dataframe[0].value["Reason"][0] == "So it says."
    assert read == [done]


def test_check_many_shows_its_sources_and_limits_from_the_start(
    app: OpenApp, run_id: str, home: Path
) -> None:
    with open_store(home) as store:
        store.projects.save_setting("file_megabytes", 7)
    at = app("pages/check/batch.py")
    assert at.file_uploader(key="many.table").proto.max_upload_size_mb == 7
    assert at.file_uploader(key="many.upload").proto.max_upload_size_mb == 7
    at.multiselect(key="many.library").set_value([at.multiselect(key="many.library").options[0]])
    at.text_area(key="many.pasted").set_value(f"claim\n{WRONG}\n").run()
    assert not at.exception
    at.button(key="many.start").click().run()
    with open_store(home) as store:
        (row,) = store.batches.rows(query(at, "batch"))
        assert row.case_id
        case = store.cases.get(row.case_id)
        assert case
        assert [store.library.name_of(case.project_id, i) for i in case.documents] == ["cats.txt"]
    history = app("pages/check/history.py")
    assert history.file_uploader(key="history.trace").proto.max_upload_size_mb < 500


def test_a_bad_table_is_refused_in_words(app: OpenApp) -> None:
    at = app("pages/check/batch.py")
    at.text_area(key="many.pasted").set_value("a,b\n1,2").run()
    assert "column called claim" in at.error[0].value


def test_a_recorded_debate_is_replayed_at_a_reading_pace(app: OpenApp, home: Path) -> None:
    from core.exchange.mad import read_mad as read
    from tests.exchange.stores import imported as brought
    from tests.formats.recorded_debates import archive, debate

    with open_store(home) as store:
        project = ensure_project(store, "lee", 1.0)
        store.projects.save_note("person", "lee")
        brought(store, read("debates.tar.gz", archive({"1.json": debate()})))
        (case,) = store.cases.all(project.id)
        (run,) = store.runs.of_case(case.id, 1.0, 6)
    at = app(RUN, run=run.id)
    assert said(at.caption, "without times")
    assert said(at.caption, "No evidence was looked up")
    assert not said(at.caption, "0.0 s")
    assert "I stand by it" in drawn(at)
    assert "preferred the translation of the negative side" in drawn(at)
    at = app("pages/check/replay.py", run=run.id)
    assert said(at.caption, "has no times")
    key = f"replay.{run.id}"
    assert list(at.segmented_control(key=f"{key}.pace").options) == ["reading"]
    for spoken in (
        "I stand by it", "The door is shut", "no clear preference", "You are right", "not agree at",
    ):  # fmt: skip
        assert spoken not in drawn(at)
        at.button(key=f"{key}.step").click().run()
        assert spoken in drawn(at)
    for _ in range(3):
        at.button(key=f"{key}.step").click().run()
    assert "no label" in drawn(at)
    assert not at.exception
