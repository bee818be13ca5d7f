"""The choice of a protocol on its pages, with what can be chosen of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.app import state
from components.check.roster_choice import MODELS_ONLY_NOTE
from components.widgets.wording import escape_markdown, format_protocol
from core.debate.protocols import PROTOCOLS, has_turns
from core.runtime.errors import InputError
from core.schema.records import Plan, Run
from core.schema.rosters import DEFAULT_OPTIONS, DebateOptions
from core.store import open_store
from tests.components.test_twisted_traces import trace_of
from tests.pages.conftest import OpenApp, brought, check, drawn, finish, kept, query, said

PHONE = 40  # characters of a choice that 390 pixels have room for
CLAIM = "The tower is 512 m tall."


def options_drawn(at: AppTest) -> set[str]:
    """The options that can be chosen now."""
    every = [*at.number_input, *at.selectbox, *at.toggle]
    chosen = at.selectbox(key="new.protocol").value
    keys = {str(widget.key).removeprefix(f"new.{chosen}.") for widget in every}
    return keys & {"rounds", "samples", "style", "is_swapped", "seed", "then", "without"}


def checked(at: AppTest, home: Path) -> Run:
    """The run that the page starts."""
    at.text_area(key="new.response").set_value(CLAIM)
    return kept(home, check(at))[0]


def choose(at: AppTest, protocol: str) -> AppTest:
    """New check by that protocol."""
    return at.selectbox(key="new.protocol").set_value(protocol).run()


def by_models(app: OpenApp, roster: str) -> AppTest:
    """New check with that roster chosen."""
    at = app()
    at.selectbox(key="new.roster").set_value(roster).run()
    assert not at.exception
    return at


def test_built_in_readers_are_offered_what_they_can_do_and_it_is_said_why(
    app: OpenApp, scripted: str
) -> None:
    at = choose(by_models(app, scripted), "colmad")
    assert not said(at.caption, MODELS_ONLY_NOTE)
    at.selectbox(key="new.roster").set_value("builtin").run()
    assert not at.exception
    choice = at.selectbox(key="new.protocol")
    assert (choice.value, len(choice.options)) == ("ceda", 4)
    assert said(at.caption, MODELS_ONLY_NOTE)


def test_an_old_check_by_readers_who_acted_is_read_and_not_made_again(
    app: OpenApp, home: Path
) -> None:
    run_id = brought(home, trace_of("colmad").encode())
    run, case = kept(home, run_id)
    at = app("pages/check/run.py", run=run_id)
    assert "The tower is 512 m tall." in drawn(at)
    with pytest.raises(InputError, match="say the same in every round"):
        state.get_jobs().start(case, replace(run.plan, roster="builtin", sheet=None))


def test_every_protocol_is_offered_with_a_sentence_and_its_own_options(
    app: OpenApp, scripted: str
) -> None:
    at = by_models(app, scripted)
    choice = at.selectbox(key="new.protocol")
    assert choice.options[0] == "Debate in turn (CEDA)"
    assert len(choice.options) == len(PROTOCOLS) + 1, "the audit too"
    assert all(len(words) <= PHONE for words in choice.options), "a phone shows no more"
    assert all(escape_markdown(format_protocol(name)) in choice.help for name in PROTOCOLS)
    for name, protocol in PROTOCOLS.items():
        at.selectbox(key="new.protocol").set_value(name).run()
        assert not at.exception
        own = {option for option in protocol.options if option != "turns"}
        assert own <= options_drawn(at), name
        happens = format_protocol(name).partition(": ")[2]
        assert any(escape_markdown(happens[1:]) in own.value for own in at.caption), name
        turns = [own for own in at.slider if own.key == "new.turns"]
        assert bool(turns) == has_turns(Plan(name)), name
    choose(at, "audit")
    assert not options_drawn(at)
    assert at.slider(key="new.turns"), "it debates what stays contested"


def test_what_is_chosen_reaches_the_plan_and_only_where_the_protocol_has_it(
    app: OpenApp, home: Path
) -> None:
    at = choose(app(), "single")
    at.number_input(key="new.single.samples").set_value(3)
    at.selectbox(key="new.single.style").set_value("thought").run()
    run = checked(at, home)
    assert run.plan.protocol == "single"
    assert run.plan.options == DebateOptions(samples=3, style="thought")
    assert said(at.warning, "asked once instead of 3 times")
    at = choose(app(), "ceda")
    assert checked(at, home).plan.options == DEFAULT_OPTIONS


def test_the_debate_that_is_gone_on_to_has_its_own_options(
    app: OpenApp, home: Path, scripted: str
) -> None:
    at = choose(by_models(app, scripted), "adaptive")
    at.selectbox(key="new.adaptive.then").set_value("ensemble").run()
    assert options_drawn(at) == {"then", "style", "samples", "seed"}
    at.number_input(key="new.adaptive.seed").set_value(7).run()
    run = checked(at, home)
    assert run.plan.options == DebateOptions(then="ensemble", seed=7)
    assert "not held, which saved up to 3 turns" in drawn(at), "no debate finds missing evidence"


def test_a_part_of_a_protocol_can_be_left_out(app: OpenApp, home: Path, scripted: str) -> None:
    at = choose(by_models(app, scripted), "sc_maks")
    at.number_input(key="new.sc_maks.rounds").set_value(1)
    at.selectbox(key="new.sc_maks.without").set_value("adversary").run()
    run = checked(at, home)
    assert run.plan.options == DebateOptions(rounds=1, without="adversary")


def test_a_tables_rows_are_checked_as_was_chosen(app: OpenApp, home: Path) -> None:
    at = app("pages/check/batch.py")
    at.text_area(key="many.pasted").set_value(f"claim\n{CLAIM}\n").run()
    at.selectbox(key="many.protocol").set_value("ensemble").run()
    at.number_input(key="many.ensemble.seed").set_value(3).run()
    at.button(key="many.start").click().run()
    assert not at.exception
    with open_store(home) as store:
        (row,) = store.batches.rows(query(at, "batch"))
    run, _ = kept(home, row.run_id or "")
    assert (run.plan.protocol, run.plan.options) == ("ensemble", DebateOptions(seed=3))
    assert state.get_jobs().wait(run.id, 60)


def test_a_prepared_case_is_checked_in_the_way_that_is_chosen(app: OpenApp, home: Path) -> None:
    at = choose(app(), "single")
    at.button(key="new.example.bridge").click().run()
    run, _ = kept(home, finish(at))
    assert (run.plan.protocol, run.plan.roster) == ("single", "builtin")


def test_what_most_people_need_is_offered_first_and_no_number_is_put_in_anyones_mouth(
    app: OpenApp, home: Path, scripted: str
) -> None:
    at = by_models(app, scripted)
    names = [words.partition(":")[0] for words in at.selectbox(key="new.protocol").options]
    assert names[:4] == ["Debate in turn (CEDA)", "Audit", "Single judge", "Adaptive"]
    assert len(set(names)) == len(names)
    choose(at, "society")
    assert at.number_input(key="new.society.rounds").value is None
    assert checked(at, home).plan.options == DEFAULT_OPTIONS


def test_who_is_not_seated_is_told_quietly_and_is_no_warning(
    app: OpenApp, home: Path, scripted: str
) -> None:
    at = choose(by_models(app, scripted), "mad")
    checked(at, home)
    assert "“Cleo” did not take part" in drawn(at)
    assert not said(at.warning, "Cleo")


@pytest.mark.parametrize("page", ["pages/check/run.py", "pages/check/replay.py"])
def test_a_run_of_a_protocol_that_is_not_known_here_is_read_all_the_same(
    app: OpenApp, home: Path, page: str
) -> None:
    data = trace_of("sc_maks").replace('"protocol": "sc_maks"', '"protocol": "tribunal"')
    run_id = brought(home, data.encode())
    at = app(page, run=run_id)
    assert not at.exception
    assert "The tower is 512 m tall." in drawn(at)
    if page.endswith("run.py"):
        assert "The source gives the height" in drawn(at), "what was said"
        assert "tribunal" in " ".join(caption.value for caption in at.caption)
    else:
        at.button(key=f"replay.{run_id}.step").click().run()
        assert not at.exception
        assert "The source gives the height" in drawn(at)


def test_what_a_project_chose_of_its_protocol_is_what_new_checks_begin_with(
    app: OpenApp, home: Path, scripted: str
) -> None:
    at = app("pages/setup/project.py")
    with open_store(home) as store:
        project_id = store.projects.all()[0].id
    key = f"project.{project_id}"
    assert not [own for own in at.number_input if own.key == f"{key}.society.rounds"]
    at.selectbox(key=f"{key}.roster").set_value(scripted).run()
    at.selectbox(key=f"{key}.protocol").set_value("society").run()
    at.number_input(key=f"{key}.society.rounds").set_value(3)
    at.button(key=f"{key}.save").click().run()
    assert not at.exception
    with open_store(home) as store:
        project = store.projects.get(project_id)
    assert project
    assert (project.protocol, project.options) == ("society", DebateOptions(rounds=3))
    at = by_models(app, scripted)
    assert at.number_input(key="new.society.rounds").value == 3
    run = checked(at, home)
    assert (run.plan.protocol, run.plan.options) == ("society", DebateOptions(rounds=3))
    at = by_models(app, scripted)
    at.number_input(key="new.society.rounds").set_value(None).run()
    assert checked(at, home).plan.options == DEFAULT_OPTIONS, (
        "what was emptied is the protocol's own"
    )
    at = choose(by_models(app, scripted), "mad")
    assert at.number_input(key="new.mad.rounds").value is None, "of another nothing is chosen"


def test_turns_of_a_debate_that_the_protocol_has_not_are_no_part_of_its_plan(
    app: OpenApp, home: Path
) -> None:
    at = app()
    at.slider(key="new.turns").set_value(2).run()
    choose(at, "single")
    assert checked(at, home).plan.max_turns == 5
    at = choose(app(), "ceda")
    at.slider(key="new.turns").set_value(2).run()
    assert checked(at, home).plan.max_turns == 2


def test_one_text_checked_in_two_ways_is_reviewed_once(app: OpenApp, home: Path) -> None:
    at = app()
    runs = []
    for protocol in ("ceda", "single"):
        at.selectbox(key="new.protocol").set_value(protocol).run()
        runs.append(checked(at, home))
        at = app()
    assert runs[0].case_id == runs[1].case_id
    (table,) = app("pages/review/pending.py").dataframe
    assert list(table.value["Checked by"]) == ["Single judge, Debate in turn (CEDA)"]
    item = app("pages/review/label.py", case=runs[0].case_id)
    assert not item.exception
    told = "By Single judge · Debate in turn (CEDA): unclear"
    assert any(own.value == escape_markdown(told) for own in item.caption)
    at.text_area(key="new.response").set_value(CLAIM).run()
    links = [link.proto.label.replace("\\", "") for link in at.get("page_link")]
    by = [label.partition(" by ")[2].partition(":")[0] for label in links]
    assert by == ["Single judge", "Debate in turn (CEDA)"]
