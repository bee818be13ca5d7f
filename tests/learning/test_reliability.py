"""How far agents can be trusted: intervals, kinds of cases, who is who, what counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from statsmodels.stats.proportion import confint_proportions_2indep  # type: ignore[import-untyped]
from statsmodels.stats.weightstats import DescrStatsW  # type: ignore[import-untyped]

from core.learning import weekly_quality
from core.learning.agent_answers import (
    AgentAnswers,
    DecidedRun,
    SpeakingAgent,
    collect_agent_answers,
    load_decided_runs,
    name_agents,
)
from core.learning.debate_worth import measure_debate_worth
from core.learning.reliability import (
    AgentRecord,
    AnswerTable,
    build_answer_table,
    drop_duplicate_voices,
    measure_agent_by_kind,
    measure_agent_records,
    measure_pair,
    measure_pairs,
)
from core.learning.track_record import WilsonShare
from core.review.adjudication import record_gold
from core.review.people import ensure_project
from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    RunResumed,
    RunStarted,
    StatementFound,
)
from core.schema.records import (
    Judgement,
    Label,
    Plan,
    ReaderStance,
    RoleAssignment,
    Statement,
    Verdict,
    new_id,
)
from core.schema.reviews import GoldAnswer
from core.schema.run_state import fold_events
from core.store import Store, open_store
from core.store.cases import compute_fingerprint
from core.store.ledger import LedgerRow
from core.store.sqlite import to_json
from core.store.versions import ClassifierVersion
from tests.fakes import make_case
from tests.learning.recorded_runs import Told, tell

MONDAY, WEEK = 4 * 86400.0, 7 * 86400.0
RIGHT = Told((("Ada", "hallucinated"), ("Ben", "supported")), "hallucinated", "hallucinated")


def test_a_kinds_interval_comes_from_its_own_cases_alone(store: Store) -> None:
    """Two cases say less than fifty-eight, whatever the agent did elsewhere."""
    many = [replace(RIGHT, claim=f"Claim {n}.") for n in range(58)]
    tell(store, [*many, *(replace(RIGHT, claim=f"Satz {n}.", language="de") for n in range(2))])
    rows, found = heard(store)
    table = build_answer_table(rows)
    english, german = measure_agent_by_kind(table, found["Judge"].agent, "language")
    assert (english.kind, english.accuracy) == ("en", WilsonShare(58, 58))
    assert (german.kind, german.accuracy) == ("de", WilsonShare(2, 2))
    widths = [high - low for low, high in (english.accuracy.interval, german.accuracy.interval)]
    assert widths[0] < 0.1 < 0.6 < widths[1]
    assert german.accuracy.is_thin


@given(
    said=st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0, float("nan")]), min_size=1),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_an_agents_record_adds_up_and_a_constant_answer_is_balanced_at_one_half(
    said: list[float], data: st.DataObject
) -> None:
    n = len(said)
    wrong = np.array(data.draw(st.lists(st.sampled_from([0.0, 1.0]), min_size=n, max_size=n)))
    agents = (SpeakingAgent("one", "debater"), SpeakingAgent("always", "debater"))
    table = AnswerTable(agents, np.column_stack([said, np.ones(n)]), wrong, ())
    by_name = {record.agent.name: record for record in measure_agent_records(table)}
    one, always = by_name["one"], by_name["always"]
    assert one.n == one.unclear + one.accuracy.n == n - int(np.isnan(said).sum())
    assert one.accuracy.n == one.sensitivity.n + one.specificity.n
    both = len(set(wrong.tolist())) == 2
    assert always.balanced == (0.5 if both else None)
    assert always.accuracy.value == pytest.approx(wrong.mean())


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home)


def heard(store: Store) -> tuple[list[DecidedRun], dict[str, AgentRecord]]:
    rows = load_decided_runs(store, store.projects.all()[0].id, {})
    table = build_answer_table(rows)
    shown = name_agents(table.agents)
    return rows, {shown[record.agent]: record for record in measure_agent_records(table)}


def test_each_agent_is_counted_by_what_it_said_last(store: Store) -> None:
    changed = replace(
        RIGHT, claim="Another.", right="supported",
        turns=(("Ada", "hallucinated"), ("Ben", "unclear"), ("Ada", "supported")),
    )  # fmt: skip
    tell(store, [RIGHT, changed, replace(RIGHT, claim="Open.", right="unclear")])
    rows, found = heard(store)
    assert len(rows) == 2, "what people left unclear has no right answer"
    ada, ben, judge = found["Reader Ada"], found["Reader Ben"], found["Judge"]
    assert (ada.accuracy.right, ada.accuracy.n, ada.unclear) == (2, 2, 0)
    assert (ben.accuracy.right, ben.accuracy.n, ben.unclear, ben.n) == (0, 1, 1, 2)
    assert ben.always == 1.0
    assert (judge.sensitivity.right, judge.sensitivity.n) == (1, 1)
    assert (judge.specificity.right, judge.specificity.n) == (0, 1)


def test_two_models_under_one_name_are_two_agents(store: Store) -> None:
    one = replace(RIGHT, models={"Ada": "openai/x", "Ben": "azure/x"})
    tell(store, [one])
    _, found = heard(store)
    told = [name for name in found if name.startswith("x")]
    assert sorted(told) == ["x, debater (azure/x)", "x, debater (openai/x)"]
    assert sorted(found[name].accuracy.right for name in told) == [0, 1]


def test_one_model_in_two_seats_is_told_apart_by_its_seat(store: Store) -> None:
    """Also where the other seat could not be heard."""
    both = replace(RIGHT, models={"Ada": "openai/x", "Ben": "openai/x"})
    tell(store, [both, replace(both, claim="Another.", turns=(("Ada", "hallucinated"),))])
    _, found = heard(store)
    assert {"x, debater Ada", "x, debater Ben"} <= set(found)
    assert found["x, debater Ada"].n == 2
    assert "x, debater" not in found


def test_equal_cases_count_once_and_the_newest_run_speaks(store: Store) -> None:
    wrong = replace(RIGHT, judge="supported")
    tell(store, [wrong, RIGHT])
    rows, found = heard(store)
    assert len(rows) == 2
    assert (found["Judge"].accuracy.right, found["Judge"].accuracy.n) == (1, 1)


def test_what_was_settled_overrules_the_newest_answer(store: Store) -> None:
    tell(store, [RIGHT])
    case = store.cases.all(store.projects.all()[0].id)[0]
    with store.writing():
        record_gold(
            store, GoldAnswer(new_id(), case.id, "Mira", 1e6, "adjudicated", "supported"), case
        )
    _, found = heard(store)
    assert found["Reader Ben"].accuracy.right == 1
    assert found["Judge"].accuracy.right == 0


def test_a_classifier_is_no_witness_on_a_text_that_taught_it(store: Store) -> None:
    with store.writing():
        store.versions.assign_sides({compute_fingerprint("Taught.", ""): "train"}, 4_000.0)
        store.versions.assign_sides(
            {compute_fingerprint("Calibrated with.", ""): "calibration"}, 4_000.0
        )
        store.versions.assign_sides({compute_fingerprint("Held out.", ""): "holdout"}, 4_000.0)
        store.versions.add(ClassifierVersion("v1", 5_000.0, "Mira", {}))
        store.versions.assign_sides(
            {compute_fingerprint("Taught others later.", ""): "train"}, 6_000.0
        )
    told = replace(RIGHT, classifier="v1", at=9_000.0)
    claims = ("Taught.", "Taught.", "Calibrated with.", "Held out.", "Taught others later.", "New.")
    tell(store, [replace(told, claim=claim) for claim in claims])
    rows, found = heard(store)
    assert found["Judge"].n == 5, "two of the six cases say the same"
    assert found["Classifier v1"].n == 3
    spoke = {
        row.decision.group
        for row in rows
        if any(agent.part == "classifier" for agent in row.heard.last)
    }
    known = ("Held out.", "Taught others later.", "New.")
    assert spoke == {compute_fingerprint(claim, "") for claim in known}


def test_kinds_of_cases_are_told_apart(store: Store) -> None:
    tell(
        store,
        [
            RIGHT,
            replace(RIGHT, claim="Zwei.", language="de", question="Was?", documents=("d",)),
            replace(RIGHT, claim="Drei.", language="de", category="contradicted"),
            replace(RIGHT, claim="Vier.", judge="supported", right="supported"),
        ],
    )
    rows, found = heard(store)
    table, judge = build_answer_table(rows), found["Judge"]

    def kinds(name: str) -> dict[str, int]:
        return {own.kind: own.accuracy.n for own in measure_agent_by_kind(table, judge.agent, name)}

    assert kinds("language") == {"de": 2, "en": 2}
    assert kinds("form") == {"claim": 3, "question and answer": 1}
    assert kinds("documents") == {"no documents": 3, "own documents": 1}
    assert kinds("category") == {"number_or_date": 2, "contradicted": 1}
    assert kinds("tool") == {"no tool decided": 4}


def test_a_run_is_heard_once_and_only_the_newest_are_looked_at(store: Store) -> None:
    ids = tell(store, [replace(RIGHT, claim=f"Claim {n}.") for n in range(4)])
    known: dict[str, AgentAnswers] = {}
    project_id = store.projects.all()[0].id
    rows = load_decided_runs(store, project_id, known, most=2)
    assert [row.heard.run.id for row in rows] == [ids[3], ids[2]]
    before = dict(known)
    load_decided_runs(store, project_id, known, most=3)
    assert len(known) == 3
    assert all(known[key] is own for key, own in before.items())


def test_a_run_that_was_scored_again_is_heard_again(store: Store) -> None:
    (run_id,) = tell(store, [RIGHT])
    known: dict[str, AgentAnswers] = {}
    project_id = store.projects.all()[0].id
    load_decided_runs(store, project_id, known)
    verdict = Verdict("supported", 0.2, 0.8, "Because.", classifier="v2")
    with store.writing():
        store.runs.append(run_id, None, [LabelPredicted(1e6, verdict, "Mira")])
    (row,) = load_decided_runs(store, project_id, known)
    said = {agent.model: p for agent, p in row.heard.last.items() if agent.part == "classifier"}
    assert said == {"v2": 0.2}
    assert list(known) == [run_id]


def test_complement_on_a_hand_example() -> None:
    # Of ten cases both get 4 right, only the first 3, only the second 1, neither 2.
    first = np.array([1] * 4 + [1] * 3 + [0] * 1 + [0] * 2, dtype=bool)
    second = np.array([1] * 4 + [0] * 3 + [1] * 1 + [0] * 2, dtype=bool)
    found = measure_pair("a", "b", first, second)
    assert (found.both_right, found.only_one, found.only_other) == (0.4, 0.3, 0.1)
    assert found.oracle == pytest.approx(0.8)
    assert found.gain == pytest.approx(0.1), "the first alone has 0.7"
    assert found.reduction == pytest.approx(1 - 2 / 3), "of its 3 errors 2 are left"
    assert (found.low or 0.0) < (found.reduction or 0.0) < (found.high or 0.0)
    turned = measure_pair("b", "a", second, first)
    assert turned.reduction == found.reduction


def test_who_errs_on_the_same_cases_adds_nothing_and_who_never_does_cannot_gain() -> None:
    right = np.array([True, False, True, False])
    assert measure_pair("a", "b", right, right).reduction == 0.0
    assert measure_pair("a", "b", right, ~right).reduction == 1.0
    assert measure_pair("a", "b", np.ones(4, bool), right).reduction is None


def test_pairs_are_counted_where_both_spoke_and_unclear_is_not_right() -> None:
    said = np.array([[1.0, 1.0, np.nan], [0.5, 0.0, np.nan], [np.nan, 1.0, 1.0]])
    found = measure_pairs(("a", "b", "c"), said, np.array([1.0, 0.0, 1.0]))
    assert [(own.one, own.other, own.n) for own in found] == [("a", "b", 2), ("b", "c", 1)]
    assert (found[0].both_right, found[0].only_other) == (0.5, 0.5)


def test_the_debates_lead_over_one_agent_alone(store: Store) -> None:
    better = replace(RIGHT, turns=(("Ada", "supported"), ("Ben", "hallucinated")))
    tell(store, [replace(better, claim=f"Claim {n}.") for n in range(12)])
    rows, _ = heard(store)
    found = measure_debate_worth(rows)
    assert found is not None
    steps = {step.step: step for step in found.steps}
    assert steps["opener"].accuracy.right == 0
    assert (steps["opener"].lead, steps["opener"].paired) == (1.0, 12)
    assert steps["openings"].unclear == 12, "one against one is no majority"
    assert steps["verdict"].accuracy.right == 12
    assert found.always == 1.0
    assert found.opening_seconds == 1.0
    assert all(cost.calls == 0 for cost in found.costs)


def call(run_id: str, role: str, number: int, nano: int | None) -> LedgerRow:
    return LedgerRow(
        id=f"{run_id}{number}", run_id=run_id, slot=f"{role} {number}", digest="d",
        project_id="p", person="Mira", role=role, model="openai/x", prompt="p", prompt_hash="h",
        cut="", at=1.0, reserved_nano=1, reserved_tokens=1, counts_nano=1, counts_tokens=1,
        status="done", tokens_in=90, tokens_out=10, cost_nano=nano, seconds=2.0,
    )  # fmt: skip


def test_what_a_run_costs_is_that_of_the_ledger(store: Store) -> None:
    one, other = tell(store, [RIGHT, replace(RIGHT, claim="Another.")])
    with store.writing():
        store.ledger.put(call(one, "debater Ada", 1, 2_000_000_000))
        store.ledger.put(call(one, "debater Ben", 2, 1_000_000_000))
        store.ledger.put(call(one, "judge", 3, None))
        store.ledger.put(call(other, "segmenter", 4, 0))
    rows, _ = heard(store)
    found = measure_debate_worth(rows)
    assert found is not None
    debaters, judge, others = found.costs
    assert (debaters.calls, debaters.tokens, debaters.dollars) == (1.0, 100.0, 1.5)
    assert (judge.calls, judge.dollars) == (0.5, None), "one price is not known"
    assert (others.calls, others.dollars) == (0.5, 0.0)


def test_names_are_as_short_as_they_can_be() -> None:
    one, other = (
        SpeakingAgent("x", "judge", "openai/x", "1"),
        SpeakingAgent("x", "judge", "openai/x", "2"),
    )
    shown = name_agents([one, other, SpeakingAgent("y", "debater", "m/y")])
    assert sorted(shown.values()) == [
        "x, judge (openai/x, rules 1)", "x, judge (openai/x, rules 2)", "y",
    ]  # fmt: skip


NONE = float("nan")


@pytest.mark.parametrize(
    ("debater", "reader", "left"),
    [
        ((1.0, 0.0, 0.5), (1.0, 0.0, 0.5), ["debater"]),
        ((NONE, 0.0, NONE), (1.0, 0.0, 0.5), ["reader"]),
        ((1.0, 0.0, NONE), (NONE, 0.0, NONE), ["debater"]),
        ((1.0, 0.0, 0.5), (1.0, 0.5, 0.5), ["debater", "reader"]),
        ((1.0, NONE, NONE), (NONE, 0.0, NONE), ["debater", "reader"]),
    ],
)
def test_a_built_in_voice_stands_once_unless_it_said_two_things(
    debater: tuple[float, ...], reader: tuple[float, ...], left: list[str]
) -> None:
    agents = (
        SpeakingAgent("Rules", "debater"),
        SpeakingAgent("Rules", "reader"),
        SpeakingAgent("Other", "reader"),
    )
    said = np.array([debater, reader, reader]).T
    found = drop_duplicate_voices(AnswerTable(agents, said, np.zeros(3), ()))
    assert [agent.part for agent in found.agents if agent.name == "Rules"] == left
    assert "Other" in {agent.name for agent in found.agents}
    kept = [agents.index(agent) for agent in found.agents]
    assert np.array_equal(found.said, said[:, kept], equal_nan=True)


def test_a_model_is_no_built_in_voice() -> None:
    agents = (SpeakingAgent("x", "debater", "openai/x"), SpeakingAgent("x", "reader"))
    said = np.ones((3, 2))
    assert drop_duplicate_voices(AnswerTable(agents, said, np.zeros(3), ())).agents == agents


@pytest.mark.parametrize("protocol", ["ceda", "audit"])
def test_the_readers_that_an_audit_borrows_are_the_judges_own(protocol: str) -> None:
    """A debate and an audit by one engine are read by the same readers, who stand there once."""
    views = (ReaderStance("Rules", 0, "supported"),)
    roles = (RoleAssignment("judge", "Judge", True, "", "j1"),)
    agent = "Audit" if protocol == "audit" else "Judge"
    events: list[Event] = [
        RunStarted(1.0, make_case("A."), Plan(protocol), roles),
        StatementFound(1.1, Statement(0, 0, 2, "A.", "A.")),
        JudgementReached(3.0, Judgement(agent, "supported", "", readers=views), 0.1),
    ]
    last, _, _ = collect_agent_answers(fold_events(events))
    assert SpeakingAgent("Rules", "reader", "", "j1") in last
    assert {own.name for own in last if own.part == "judge"} == {agent}


@pytest.mark.parametrize(
    ("now", "before"), [((3, 4), (0, 6)), ((0, 9), (0, 5)), ((40, 90), (9, 9))]
)
def test_drift_has_newcombes_interval(now: tuple[int, int], before: tuple[int, int]) -> None:
    drift = weekly_quality._estimate_drift(WilsonShare(*now), WilsonShare(*before))
    wanted = confint_proportions_2indep(*now, *before, method="newcomb", compare="diff")
    assert (drift.low, drift.high) == pytest.approx(wanted)
    assert drift.value == pytest.approx(now[0] / now[1] - before[0] / before[1])


def test_mean_cost_and_seconds_have_students_interval_never_below_nothing_nor_of_few_values() -> (
    None
):
    assert weekly_quality._estimate_mean([0.5]) == (0.5, None, None)
    assert weekly_quality._estimate_mean([1.0, 2.0, 4.0, 8.0]) == (3.75, None, None)
    assert weekly_quality._estimate_mean([0.0] * 5) == (0.0, 0.0, 0.0)
    assert weekly_quality._estimate_mean([1.0, 1.0, 1.0, 1.0, 40.0])[1] == 0.0
    values = [11.0, 12.0, 14.0, 13.0, 11.5]
    wanted = DescrStatsW(values).tconfint_mean()
    assert weekly_quality._estimate_mean(values)[1:] == pytest.approx(wanted)


def test_waiting_in_a_queue_and_pauses_are_no_seconds_of_a_run(store: Store) -> None:
    (run_id,) = tell(store, [replace(RIGHT, at=MONDAY)])
    project_id = ensure_project(store, "Mira", 1.0).id
    wanted = fold_events([event for _, event in store.runs.events(run_id)]).seconds()
    store.db.execute("UPDATE runs SET started_at = started_at - 500", [])  # it was queued then
    (week,) = weekly_quality.count_weeks(store, project_id)
    assert week.seconds.value == pytest.approx(wanted)
    # Stopped after its second event, and resumed a day later.
    store.db.execute("UPDATE events SET seq = seq + 100, at = at + 86400 WHERE seq > 2", [])
    store.db.execute("UPDATE runs SET finished_at = finished_at + 86400", [])
    store.db.execute("UPDATE events SET seq = seq - 96 WHERE seq > 100", [])
    resumed = to_json(RunResumed(MONDAY + 86400.0, "Mira"))
    store.db.execute(
        "INSERT INTO events VALUES (?, 3, 'run_resumed', ?, ?)", [run_id, MONDAY + 86400.0, resumed]
    )
    (week,) = weekly_quality.count_weeks(store, project_id)
    assert week.seconds.value == pytest.approx(wanted)


def test_a_case_counts_once_a_week_by_its_newest_run(store: Store) -> None:
    def check(claim: str, label: Label, at: float) -> Told:
        return replace(RIGHT, judge=label, right="supported", claim=claim, at=at)

    tell(store, [check("Same.", "hallucinated", MONDAY + n) for n in range(9)])
    tell(store, [check(claim, "supported", MONDAY + 9000) for claim in ("Same.", "Other.")])
    tell(store, [check("Same.", "hallucinated", MONDAY + WEEK)])
    project_id = ensure_project(store, "Mira", 1.0).id
    first, second = weekly_quality.count_weeks(store, project_id)
    assert (first.cases, first.hallucinated) == (2, WilsonShare(0, 2))
    assert first.overturned == WilsonShare(0, 2)
    assert (second.cases, second.hallucinated) == (1, WilsonShare(1, 1))


def test_weeks_that_are_alike_are_seldom_called_drifted_and_a_real_change_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where nothing changes, one project in twenty may have such a week; unadjusted, most have."""

    def pair(rights: Sequence[int]) -> list[tuple[WilsonShare, WilsonShare]]:
        sums = np.cumsum([0, *rights]).tolist()
        return [
            (WilsonShare(own, 40), WilsonShare(sums[n], 40 * n)) for n, own in enumerate(rights)
        ]

    monkeypatch.setattr("gc.collect", int)  # which statsmodels calls each time: half a second
    chance = np.random.default_rng(5)
    calm = [pair(chance.binomial(40, 0.3, 27).tolist()) for _ in range(40)]
    assert sum(any(weekly_quality.find_drifted(pairs)) for pairs in calm) <= 4
    assert weekly_quality.find_drifted(pair([12] * 26 + [30])) == [*[False] * 26, True]
    few = [(WilsonShare(10, 10), WilsonShare(0, 40))]
    assert weekly_quality.find_drifted(few) == [False], "ten cases are too few to say so"
