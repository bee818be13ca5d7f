"""Weights of a project's debaters are learned with the others, seated in runs, and adapted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.learning.answer_weights import is_installed, targets
from core.learning.answers import answers_of, weights_for
from core.learning.learned_consensus import (
    adapt,
    choose,
    kept_policy,
    kept_weights,
    learn,
    weights_of_answers,
)
from core.learning.reasoning import rows_of
from core.learning.weigh import main as weigh
from core.learning.weigh import plainly
from core.pipeline.run_factory import as_learned
from core.runtime.errors import ConfigError, InputError
from core.schema.records import CONSENSUS, Plan, Run, Stance, rule_digest
from core.schema.roles import UNIFORM
from core.store import Store, open_store
from core.store.versions import Learned
from core.verdict.consensus_weights import Answerer, LearnedWeigher, answerers, with_weigher
from tests.debates import seated
from tests.fakes import ScriptedDebater, make_case, make_view
from tests.learning.runs_told import tell
from tests.learning.test_answer_weights import NO_EXTRA
from tests.learning.test_learned_consensus import project_of, told
from tests.needs import need
from tests.verdict.test_answer_features import turn

SIDE_OF: dict[float, Stance] = {1.0: "hallucinated", 0.0: "supported", 0.5: "unclear"}
VIEW = make_view(make_case("The tower is 512 m tall."), [])


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home)


def learned_from(store: Store, count: int, *, with_policy: bool = False) -> Learned:
    tell(store, told(count))
    rows = rows_of(store, project_of(store), {})
    number = learn(store, project_of(store), rows, "Mira", 5.0, with_policy=with_policy)
    found = store.learned.get(number)
    assert found is not None
    return found


def run_of(store: Store, number: int) -> Run:
    plan = replace(Plan(), agent_weights=number)
    return Run("run", "case", project_of(store), plan, "queued", 1.0)


def test_answers_are_weighed_by_what_is_in_use(store: Store) -> None:
    """Ada is right on nine of ten cases and Ben on every other one: Ada weighs more in a run."""
    learned = learned_from(store, 120)
    project_id = project_of(store)
    assert learned.body["answers"]["compared"]["used"] in ("record", "logistic")
    assert as_learned(store, project_id, Plan()).agent_weights == 0, "learned is not yet used"
    choose(store, project_id, learned.number, by="Mira", reason="Ada is good", now=6.0)
    plan = as_learned(store, project_id, Plan())
    assert plan.agent_weights == learned.number
    ada, ben = ScriptedDebater("Reader Ada", []), ScriptedDebater("Reader Ben", [])
    roster = seated({"Ada": ada, "Ben": ben})
    assert with_weigher(roster, store, run_of(store, 0)).weigher is UNIFORM
    seats = answerers(roster, None)
    assert seats["Ada"] == Answerer("Reader Ada", rules=rule_digest(ada.rule))
    weigher = with_weigher(roster, store, run_of(store, learned.number)).weigher
    assert isinstance(weigher, LearnedWeigher)
    at_told_rules = {name: replace(seat, rules="r1") for name, seat in seats.items()}
    weigher = replace(weigher, seats=at_told_rules)
    turns = [turn(1, "Ada", "supported"), turn(2, "Ben", "hallucinated")]
    found = dict(weigher.weights(VIEW, turns))
    assert found["Ada"] > 0.7
    assert str(learned.number) in weigher.method


def test_in_a_run_an_answer_weighs_what_it_weighed_when_weights_were_compared(
    store: Store,
) -> None:
    learned = learned_from(store, 80)
    weights = kept_weights(learned)
    assert weights is not None
    rows = rows_of(store, project_of(store), {})
    answers = answers_of(rows)
    expected = weights_for(weights, answers)
    agents = {name: Answerer(f"Reader {name}", rules="r1") for name in ("Ada", "Ben")}
    seen = set()
    for n, row in enumerate(rows[:20]):
        said = [SIDE_OF[answers.said[n, s]] for s in range(2)]
        names = [agent.name.removeprefix("Reader ") for agent in row.heard.answers]
        turns = [turn(s + 1, names[s], said[s], quotes=("verified",)) for s in range(2)]
        own = dict(LearnedWeigher(weights, agents, 1).weights(VIEW, turns))
        assert [own[name] for name in names] == pytest.approx(expected[n].tolist())
        seen.add(tuple(said))
    assert len(seen) > 1


def test_ratings_of_people_reach_the_reward(store: Store) -> None:
    tell(store, told(12))
    rows = rows_of(store, project_of(store), {})
    assert all(row.graded is None for row in rows)
    rated = answers_of([replace(row, graded=1.0) for row in rows])
    plain = answers_of(rows)
    assert not np.allclose(targets(rated), targets(plain))


def test_a_run_whose_weights_are_gone_says_so(store: Store) -> None:
    tell(store, told(2))
    roster = seated({})
    with pytest.raises(ConfigError, match="check the case again"):
        with_weigher(roster, store, run_of(store, 99))


def test_too_few_debates_are_said_and_nothing_is_weighed(store: Store) -> None:
    learned = learned_from(store, 40)
    body = dict(learned.body)
    assert body["answers"]["lacking"] == ""
    few = rows_of(store, project_of(store), {})[:12]
    assert "expected 40 decided cases" in weights_of_answers(few, with_policy=False)["lacking"]


def test_a_policy_is_trained_kept_and_goes_on_with_newer_answers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(is_installed(), NO_EXTRA)
    monkeypatch.setattr(
        "core.learning.answer_weights.UPDATES", 5
    )  # how far it gets is tested elsewhere
    learned = learned_from(store, 60, with_policy=True)
    own = learned.body["answers"]
    assert set(own["compared"]["gains"]) == {"record", "logistic", "policy"}
    policy = kept_policy(learned)
    assert policy is not None
    assert policy.method == "policy"
    assert 0.5 < own["policy"]["reward_auroc"] <= 1.0
    project_id = project_of(store)
    with pytest.raises(InputError, match="answered since"):
        adapt(store, project_id, rows_of(store, project_id, {}), "Mira", 6.0)
    tell(store, [replace(one, claim=f"Newer {n}.") for n, one in enumerate(told(30, seed=2))])
    number = adapt(store, project_id, rows_of(store, project_id, {}), "Mira", 7.0)
    newer = store.learned.get(number)
    assert newer is not None
    assert newer.body["answers"]["adapted"]["groups"] == 30
    assert len(newer.body["answers"]["decisions"]) == 90
    is_used = newer.body["answers"]["adapted"]["is_used"]
    assert (kept_policy(newer) != policy) == is_used, "kept as it was unless it is better"


def test_adapting_needs_a_policy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    learned_from(store, 40)
    monkeypatch.setattr("core.learning.answer_weights.is_installed", lambda: True)
    with pytest.raises(InputError, match="train one first"):
        adapt(store, project_of(store), rows_of(store, project_of(store), {}), "Mira", 6.0)


def test_without_the_extra_a_policy_is_refused_before_any_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(store, told(40))
    monkeypatch.setattr("core.learning.answer_weights.PACKAGE", "no_such_package")
    rows = rows_of(store, project_of(store), {})
    with pytest.raises(ConfigError, match=r"requirements-policy\.txt"):
        learn(store, project_of(store), rows, "Mira", 5.0, with_policy=True)


def test_the_command_learns_prints_and_takes_into_use(
    store: Store, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(store, told(80))
    assert weigh(["--home", str(home), "--by", "Mira", "--use", "Ada is good", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["in_use"]
    used = store.learned.in_use(CONSENSUS, project_of(store))
    assert used is not None
    assert used.number == found["number"]
    lines = plainly(found)
    assert f"Used: {found['compared']['used']}." in lines
    assert "always" in lines, "the trivial answer stands beside"


def test_the_command_says_in_one_line_what_is_missing(
    store: Store, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(store, told(4))
    assert weigh(["--home", str(home), "--by", "Mira"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "Weights can be learned after 36 more decided cases" in said.err
