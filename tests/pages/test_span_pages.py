"""Learn, Spans: what people marked, the threshold that it speaks for, and the examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from components.learn.span_tuning import format_trivial_baselines
from core.learning.metrics import MetricEstimate
from core.learning.span_threshold import ThresholdFit
from core.learning.span_tuning import store_and_use
from core.schema.records import EXAMPLES_KIND, MEMBER_KIND, THRESHOLD_KIND, Member, parse_examples
from core.store import open_store
from core.store.versions import LearnedArtefact
from tests.learning.marked import PROJECT, add_case, add_run, marked_case, say, span
from tests.learning.test_span_answers import panel_run
from tests.pages.driving import Site, member, press, put, told

PAGE = "pages/learn/spans.py"
SCORES = (0.9, 0.4, 0.39, 0.38, 0.1)


@pytest.fixture
def lead(home: Path) -> None:
    """Twelve cases: the reader gives four words more than its threshold, people mark one."""
    with open_store(home) as store:
        for n in range(12):
            marked_case(store, f"q{n}", SCORES, [0])
        case = add_case(store, "hostile", "alpha <b>bravo</b> :material/home:", language="de")
        add_run(store, case, rulings=[(span(2, case.response), True)])
        say(store, case, span(0, case.response), sure=0.9)
        store.projects.save_note("person", "Lea")
        store.projects.set_member(Member(PROJECT.id, "Lea", "lead", 1.0))


def in_use(home: Path, kind: str) -> LearnedArtefact | None:
    with open_store(home) as store:
        return store.learned.in_use(kind, PROJECT.id)


def used(home: Path, kind: str) -> LearnedArtefact:
    found = in_use(home, kind)
    assert found is not None
    return found


def take(at: AppTest, kind: str, reason: str) -> AppTest:
    put(at, f"{kind}.reason", reason)
    return press(at, f"{kind}.take")


def go_back(at: AppTest, kind: str, reason: str) -> AppTest:
    put(at, f"{kind}.back.reason", reason)
    return press(at, f"{kind}.back.go")


def test_without_marks_the_page_says_what_to_do(site: Site) -> None:
    at = site.open(PAGE)
    assert "Nobody has marked wrong words yet" in told(at)
    assert "10 cases more needed" in told(at)
    assert "No corrected case is fit to be an example yet" in told(at)
    assert [b for b in at.button if "take" in str(b.key)] == []


@pytest.mark.usefixtures("lead")
def test_a_lead_takes_the_threshold_into_use_and_goes_back(site: Site) -> None:
    at = site.open(PAGE)
    table = at.dataframe[0].value
    assert list(table["Cases"]) == [1, 12]
    assert list(table["Count for the threshold"]) == [0, 12]
    figures = at.dataframe[1].value
    assert list(figures["Cases"]) == [12, 12]
    assert figures["In use"][0] == "0.38"
    assert float(figures["Proposed"][0]) > 0.38
    assert "Only 12 cases" in told(at)
    assert "In use: **the shipped threshold**" in told(at)
    press(at, f"{THRESHOLD_KIND}.take")
    assert "Expected a reason" in at.error[0].value
    assert in_use(site.home, THRESHOLD_KIND) is None
    take(at, THRESHOLD_KIND, "people mark less")
    assert not at.error
    now = used(site.home, THRESHOLD_KIND)
    assert (now.author, now.body["reader"]["n"]) == ("Lea", 12)
    assert len(now.body["corrections"]) == 12
    assert "What people's marks suggest is in use." in [s.value for s in at.success]
    go_back(at, THRESHOLD_KIND, "too strict")
    assert in_use(site.home, THRESHOLD_KIND) is None
    with open_store(site.home) as store:
        reasons = [c.reason for c in store.learned.choices(THRESHOLD_KIND, PROJECT.id)]
    assert reasons == ["too strict", "people mark less"]


def test_marks_that_are_worth_no_more_than_none_are_said_to_be() -> None:
    reached, gain = MetricEstimate(0.31, 0.2, 0.4), MetricEstimate(0.0, 0.0, 0.0)
    fit = ThresholdFit("", 40, 0.4, 0.7, 0.4, reached, reached, gain, 0.1, 0.38, ())
    assert "**no closer**" in format_trivial_baselines(fit, reached)
    assert "closer" not in format_trivial_baselines(fit, MetricEstimate(0.5, 0.4, 0.6))


@pytest.mark.usefixtures("lead")
def test_examples_are_shown_marked_and_a_person_removes_one(site: Site) -> None:
    at = site.open(PAGE)
    drawn = "\n".join(item.proto.body for item in at.get("html"))
    assert "cp-mark" in drawn
    assert "<b>bravo</b>" not in drawn
    assert "The built-in span reader reads no examples" in told(at)
    take(at, EXAMPLES_KIND, "clear ones")
    now = used(site.home, EXAMPLES_KIND)
    names = {one.case_id: one.id[:16] for one in parse_examples(now.body)}
    assert "hostile" in names
    press(at, f"spans.example.remove.{names['hostile']}")
    now = used(site.home, EXAMPLES_KIND)
    assert "hostile" not in {one.case_id for one in parse_examples(now.body)}
    press(at, f"spans.example.allow.{names['hostile']}")
    press(at, f"spans.example.pin.{names['hostile']}")
    now = used(site.home, EXAMPLES_KIND)
    assert parse_examples(now.body)[0].case_id == "hostile"
    assert at.button(key=f"spans.example.unpin.{names['hostile']}")


@pytest.mark.usefixtures("lead")
def test_annotators_see_and_leads_decide(site: Site) -> None:
    member(site.home, PROJECT.id, "Lea", "annotator")
    at = site.open(PAGE)
    assert "Only leads and admins can put what was learned in use" in told(at)
    assert not [b for b in at.button if str(b.key).endswith(".take")]


@pytest.mark.usefixtures("lead")
def test_what_was_tampered_with_is_named_and_gone_back_from(site: Site) -> None:
    with open_store(site.home) as store:
        with store.writing():
            body = {"reader": {"by_language": {}, "otherwise": 0.5}, "corrections": []}
            store_and_use(
                store, LearnedArtefact(THRESHOLD_KIND, PROJECT.id, 1.0, "Lea", body), "better"
            )
        store.db.execute("UPDATE learned SET body = '{}'")
    at = site.open(PAGE)
    assert "checksum differs" in at.error[0].value
    go_back(at, THRESHOLD_KIND, "broken")
    assert not at.error
    assert in_use(site.home, THRESHOLD_KIND) is None


@pytest.mark.usefixtures("lead")
def test_an_example_whose_answer_has_changed_says_so(site: Site) -> None:
    at = site.open(PAGE)
    take(at, EXAMPLES_KIND, "clear ones")
    assert "would not be chosen so any more" not in told(at)
    with open_store(site.home) as store:
        case = store.cases.get("hostile")
        assert case
        say(store, case, span(1, case.response), author="Karl")
    assert "would not be chosen so any more" in told(at.run())


def test_members_of_a_panel_are_held_against_the_vote_and_taken_into_use(site: Site) -> None:
    with open_store(site.home) as store:
        for n in range(12):
            case = add_case(store, f"q{n}")
            panel_run(store, case, good=1, bad=3)
            say(store, case, span(1))
        store.projects.save_note("person", "Lea")
        store.projects.set_member(Member(PROJECT.id, "Lea", "lead", 1.0))
    at = site.open(PAGE)
    assert "In use: **the vote of all**" in told(at)
    assert "good decides alone" in told(at)
    take(at, MEMBER_KIND, "it is right")
    now = used(site.home, MEMBER_KIND)
    assert now.body["alone"] == {"en": "good"}
    at.selectbox(key=f"{MEMBER_KIND}.back").set_value(0)
    go_back(at, MEMBER_KIND, "not so sure")
    assert in_use(site.home, MEMBER_KIND) is None
