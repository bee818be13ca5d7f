"""Weights of debaters' answers: who is right counts more, the policy nears the best there is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from core.learning.agent_answers import load_decided_runs
from core.learning.answer_weights import (
    ENTROPY_BONUS,
    UNKNOWN_AGENT,
    AnswerMatrix,
    LogLossGain,
    RewardedDebates,
    build_answer_matrix,
    build_network_inputs,
    choose_best_method,
    compare_answer_weights,
    compute_answer_weights,
    compute_mean_reward,
    compute_mixture_reward,
    compute_reward_targets,
    compute_weighted_shares,
    fit_answer_weights,
    fit_network,
    fit_reward_model,
    has_policy_package,
    predict_rewards,
    train_policy,
)
from core.learning.learned_consensus import (
    activate_weights,
    adapt_policy,
    learn_answer_weights,
    learn_weights,
    load_stored_policy,
    load_stored_weights,
)
from core.learning.weigh import format_weighting_report
from core.learning.weigh import main as weigh
from core.pipeline.run_factory import apply_learned
from core.runtime.errors import ConfigError, InputError
from core.schema.records import CONSENSUS_KIND, Plan, Run, Stance, hash_rule
from core.schema.roles import UNIFORM_POLICY
from core.store import Store, open_store
from core.store.versions import LearnedArtefact
from core.verdict.consensus_weights import (
    ANSWER_FEATURES,
    NETWORK_FEATURES,
    AnsweringAgent,
    AnswerNetwork,
    LearnedConsensusPolicy,
    Method,
    add_weigher,
    identify_answerers,
    parse_network,
    softmax,
)
from tests.debates import seated
from tests.fakes import ScriptedDebater, make_case, make_view
from tests.learning.recorded_runs import tell
from tests.learning.test_consensus import project_of, told
from tests.needs import need
from tests.verdict.test_answer_features import turn

SHARES = (0.92, 0.7, 0.55)
SUPPORT = ANSWER_FEATURES.index("verified")


def made(
    n: int = 200, shares: Sequence[float] = SHARES, *, tell: float = 0.0, seed: int = 3
) -> AnswerMatrix:
    """N debates, two to a group; agent i is right on `shares[i]` of them, by chance.

    With `tell` above 0 the share of verified quotes is higher, by that much, where an answer is
    right: then a debate shows whom to believe in it, whatever the agents' records.
    """
    random = np.random.default_rng(seed)
    labels = (np.arange(n) // 2 % 2).astype(np.float64)
    right = random.random((n, len(shares))) < np.array(shares)
    said = np.where(right, labels[:, None], 1.0 - labels[:, None])
    features = np.zeros((*said.shape, len(ANSWER_FEATURES)))
    features[:, :, ANSWER_FEATURES.index("side")] = 2.0 * said - 1.0
    features[:, :, SUPPORT] = random.random(said.shape) * 0.5 + tell * right
    return AnswerMatrix(
        tuple(AnsweringAgent(f"agent {share}") for share in shares),
        said,
        np.tile(np.arange(len(shares)), (n, 1)),
        features,
        labels,
        np.full(n, np.nan),
        tuple(f"group {i // 2}" for i in range(n)),
    )


NO_EXTRA = "stable-baselines3 is not installed: pip install -r requirements-policy.txt"


@pytest.mark.parametrize("method", ["record", "logistic"])
def test_who_is_right_more_often_counts_more(method: Method) -> None:
    weights = compute_answer_weights(fit_answer_weights(made(), method).weights, made())
    assert weights.sum(axis=1) == pytest.approx(1.0)
    mean = weights.mean(axis=0)
    assert mean[0] > mean[1] > mean[2]


def test_an_agent_without_a_record_counts_as_the_mean_of_the_others() -> None:
    answers = made()
    learned = fit_answer_weights(answers, "record").weights
    who = answers.who.copy()
    who[:, 2] = UNKNOWN_AGENT
    found = compute_answer_weights(learned, replace(answers, who=who))
    assert found[:, 2] == pytest.approx(found[:, :2].mean(axis=1))


def test_a_past_does_not_know_the_right_answer_of_its_own_group() -> None:
    answers = made(60)
    before = build_network_inputs(answers)[:2, :, -1]
    labels = answers.labels.copy()
    labels[:2] = 1.0 - labels[:2]
    assert answers.groups[0] == answers.groups[1] != answers.groups[2]
    assert build_network_inputs(replace(answers, labels=labels))[:2, :, -1] == pytest.approx(before)


def test_the_reward_model_finds_what_tells_right_answers_from_wrong_ones() -> None:
    answers = made(tell=0.4, shares=(0.6, 0.6, 0.6))
    _, model = fit_reward_model(answers)
    right = answers.is_right
    assert np.nanmean(model[right]) > np.nanmean(model[~right]) + 0.3


def test_the_slope_of_the_reward_models_loss_is_right() -> None:
    """A network that was fitted is at a place where no small step is better."""
    random = np.random.default_rng(1)
    read = random.normal(size=(80, len(NETWORK_FEATURES)))
    wanted = (random.random(80) < 1 / (1 + np.exp(-read[:, 0]))).astype(float)
    model = fit_network(read, wanted, 2)

    def loss(own: AnswerNetwork) -> float:
        p = predict_rewards(own, read)
        flat = np.array([*np.array(own.hidden).ravel(), *own.hidden_shift, *own.out])
        return float(-(np.log(np.where(wanted == 1, p, 1 - p))).sum() + (flat**2).sum())

    best = loss(model)
    for step in (-0.05, 0.05):
        for place in range(len(model.out)):
            out = list(model.out)
            out[place] += step
            assert loss(replace(model, out=tuple(out))) > best


def test_ratings_move_what_an_answer_should_be_worth() -> None:
    answers = made(4)
    plain = compute_reward_targets(answers)
    assert plain == pytest.approx(answers.is_right.astype(float))
    rated = compute_reward_targets(replace(answers, graded=np.array([1.0, 0.0, np.nan, 0.5])))
    said = answers.said
    assert rated[0] == pytest.approx((plain[0] + (1.0 - said[0])) / 2.0), "good: supported is near"
    assert rated[1] == pytest.approx((plain[1] + said[1]) / 2.0)
    assert rated[2] == pytest.approx(plain[2])
    assert rated[3] == pytest.approx((plain[3] + 0.5) / 2.0)


def debates(n: int = 240, seed: int = 0) -> RewardedDebates:
    """Rewards that follow from one feature; some answers are missing."""
    random = np.random.default_rng(seed)
    read = random.normal(size=(n, 3, len(NETWORK_FEATURES)))
    there = random.random((n, 3)) < 0.9
    there[:, 0] = True
    return RewardedDebates(
        read, there, np.where(there, 1 / (1 + np.exp(-1.5 * read[:, :, 0])), np.nan)
    )


@pytest.mark.slow
def test_the_policy_nears_the_best_weights_there_are_and_is_the_same_again() -> None:
    """The best there is has w in proportion to exp(r / entropy): PPO must come near to it."""
    need(has_policy_package(), NO_EXTRA)
    own, held = debates(), debates(80, 1)
    trained = train_policy(own, held, 5)
    best = softmax(np.nan_to_num(held.rewards) / ENTROPY_BONUS, held.is_there)
    most = float(compute_mixture_reward(best, held.rewards, ENTROPY_BONUS).mean())
    alike = trained.curve[0][1]
    assert compute_mean_reward(trained.policy, held) > alike + 0.9 * (most - alike)
    assert compute_mean_reward(trained.policy, held) == pytest.approx(
        max(pair[1] for pair in trained.curve)
    )
    assert parse_network(asdict(trained.policy), NETWORK_FEATURES) == trained.policy
    on = train_policy(own, held, 5, trained.policy)
    assert on.curve[0] == pytest.approx(trained.curve[trained.best]), "it goes on from there"
    assert train_policy(own, held, 5).curve == trained.curve


def test_what_cannot_be_learned_is_refused_in_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InputError, match="both labels"):
        fit_answer_weights(replace(made(60), labels=np.ones(60)), "record")
    monkeypatch.setattr("core.learning.answer_weights.POLICY_PACKAGE", "no_such_package")
    with pytest.raises(ConfigError, match=r"requirements-policy\.txt"):
        fit_answer_weights(made(60), "policy")


def test_on_the_same_folds_a_record_beats_all_alike_and_is_used() -> None:
    found = compare_answer_weights(made(), ("uniform", "record", "logistic"), seed=1)
    assert (found.n, found.groups, found.hallucinated) == (200, 100, 100)
    assert found.used in ("record", "logistic")
    assert found.gains[found.used].low > 0.0
    assert found.figures[found.used]["log_loss"][0] < found.figures["uniform"]["log_loss"][0]
    assert found.figures["always"]["f1"][0] == pytest.approx(2 / 3)
    assert found.figures["always"]["f2"][0] == pytest.approx(5 / 6)
    alike = compare_answer_weights(made(shares=(0.75, 0.75, 0.75)), ("uniform", "record"), seed=1)
    assert alike.used == "uniform"


def test_what_is_used_is_better_than_all_alike_beyond_chance() -> None:
    chance = LogLossGain(0.30, -0.01, 0.6, 0.06)
    small, large = LogLossGain(0.02, 0.01, 0.03, 0.01), LogLossGain(0.2, 0.1, 0.3, 0.001)
    assert choose_best_method({"policy": chance}) == "uniform"
    assert choose_best_method({"record": small, "policy": chance}) == "record"
    assert choose_best_method({"record": small, "logistic": large}) == "logistic"
    assert choose_best_method({"record": large, "policy": large}) == "record", (
        "the simpler one on a tie"
    )
    assert choose_best_method({}) == "uniform"


def test_in_debates_that_show_whom_to_believe_the_policy_beats_any_fixed_weights() -> None:
    need(has_policy_package(), NO_EXTRA)
    answers = made(120, (0.6, 0.6, 0.6), tell=0.5)
    fixed, policy = fit_answer_weights(answers, "record"), fit_answer_weights(answers, "policy")
    other = made(120, (0.6, 0.6, 0.6), tell=0.5, seed=4)
    by = {
        name: compute_weighted_shares(compute_answer_weights(found.weights, other), other)
        for name, found in (("fixed", fixed), ("policy", policy))
    }
    right = {name: np.mean((share > 0.5) == (other.labels == 1.0)) for name, share in by.items()}
    assert right["policy"] > right["fixed"] + 0.1


SIDE_OF: dict[float, Stance] = {1.0: "hallucinated", 0.0: "supported", 0.5: "unclear"}
VIEW = make_view(make_case("The tower is 512 m tall."), [])


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home)


def learned_from(store: Store, count: int, *, with_policy: bool = False) -> LearnedArtefact:
    tell(store, told(count))
    rows = load_decided_runs(store, project_of(store), {})
    number = learn_weights(store, project_of(store), rows, "Mira", 5.0, with_policy=with_policy)
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
    assert apply_learned(store, project_id, Plan()).agent_weights == 0, "learned is not yet used"
    activate_weights(store, project_id, learned.number, by="Mira", reason="Ada is good", now=6.0)
    plan = apply_learned(store, project_id, Plan())
    assert plan.agent_weights == learned.number
    ada, ben = ScriptedDebater("Reader Ada", []), ScriptedDebater("Reader Ben", [])
    roster = seated({"Ada": ada, "Ben": ben})
    assert add_weigher(roster, store, run_of(store, 0)).weigher is UNIFORM_POLICY
    seats = identify_answerers(roster, None)
    assert seats["Ada"] == AnsweringAgent("Reader Ada", rules=hash_rule(ada.rule))
    weigher = add_weigher(roster, store, run_of(store, learned.number)).weigher
    assert isinstance(weigher, LearnedConsensusPolicy)
    at_told_rules = {name: replace(seat, rules="r1") for name, seat in seats.items()}
    weigher = replace(weigher, seats=at_told_rules)
    turns = [turn(1, "Ada", "supported"), turn(2, "Ben", "hallucinated")]
    found = dict(weigher.weights(VIEW, turns))
    assert found["Ada"] > 0.7
    assert str(learned.number) in weigher.method


def test_in_a_run_an_answer_weighs_what_it_weighed_when_weights_were_compared(store: Store) -> None:
    learned = learned_from(store, 80)
    weights = load_stored_weights(learned)
    assert weights is not None
    rows = load_decided_runs(store, project_of(store), {})
    answers = build_answer_matrix(rows)
    expected = compute_answer_weights(weights, answers)
    agents = {name: AnsweringAgent(f"Reader {name}", rules="r1") for name in ("Ada", "Ben")}
    seen = set()
    for n, row in enumerate(rows[:20]):
        said = [SIDE_OF[answers.said[n, s]] for s in range(2)]
        names = [agent.name.removeprefix("Reader ") for agent in row.heard.answers]
        turns = [turn(s + 1, names[s], said[s], quotes=("verified",)) for s in range(2)]
        own = dict(LearnedConsensusPolicy(weights, agents, 1).weights(VIEW, turns))
        assert [own[name] for name in names] == pytest.approx(expected[n].tolist())
        seen.add(tuple(said))
    assert len(seen) > 1


def test_ratings_of_people_reach_the_reward(store: Store) -> None:
    tell(store, told(12))
    rows = load_decided_runs(store, project_of(store), {})
    assert all(row.graded is None for row in rows)
    rated = build_answer_matrix([replace(row, graded=1.0) for row in rows])
    plain = build_answer_matrix(rows)
    assert not np.allclose(compute_reward_targets(rated), compute_reward_targets(plain))


def test_a_run_whose_weights_are_gone_says_so(store: Store) -> None:
    tell(store, told(2))
    roster = seated({})
    with pytest.raises(ConfigError, match="check the case again"):
        add_weigher(roster, store, run_of(store, 99))


def test_too_few_debates_are_said_and_nothing_is_weighed(store: Store) -> None:
    learned = learned_from(store, 40)
    body = dict(learned.body)
    assert body["answers"]["lacking"] == ""
    few = load_decided_runs(store, project_of(store), {})[:12]
    assert "expected 40 decided cases" in learn_answer_weights(few, with_policy=False)["lacking"]


@pytest.mark.slow
def test_a_policy_is_trained_kept_and_goes_on_with_newer_answers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    need(has_policy_package(), NO_EXTRA)
    monkeypatch.setattr(
        "core.learning.answer_weights.MAX_POLICY_UPDATES", 5
    )  # how far it gets is tested elsewhere
    learned = learned_from(store, 60, with_policy=True)
    own = learned.body["answers"]
    assert set(own["compared"]["gains"]) == {"record", "logistic", "policy"}
    policy = load_stored_policy(learned)
    assert policy is not None
    assert policy.method == "policy"
    assert 0.5 < own["policy"]["reward_auroc"] <= 1.0
    project_id = project_of(store)
    with pytest.raises(InputError, match="answered since"):
        adapt_policy(store, project_id, load_decided_runs(store, project_id, {}), "Mira", 6.0)
    tell(store, [replace(one, claim=f"Newer {n}.") for n, one in enumerate(told(30, seed=2))])
    number = adapt_policy(store, project_id, load_decided_runs(store, project_id, {}), "Mira", 7.0)
    newer = store.learned.get(number)
    assert newer is not None
    assert newer.body["answers"]["adapted"]["groups"] == 30
    assert len(newer.body["answers"]["decisions"]) == 90
    is_used = newer.body["answers"]["adapted"]["is_used"]
    assert (load_stored_policy(newer) != policy) == is_used, "kept as it was unless it is better"


def test_adapting_needs_a_policy(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    learned_from(store, 40)
    monkeypatch.setattr("core.learning.answer_weights.has_policy_package", lambda: True)
    with pytest.raises(InputError, match="train one first"):
        adapt_policy(
            store, project_of(store), load_decided_runs(store, project_of(store), {}), "Mira", 6.0
        )


def test_without_the_extra_a_policy_is_refused_before_any_work(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    tell(store, told(40))
    monkeypatch.setattr("core.learning.answer_weights.POLICY_PACKAGE", "no_such_package")
    rows = load_decided_runs(store, project_of(store), {})
    with pytest.raises(ConfigError, match=r"requirements-policy\.txt"):
        learn_weights(store, project_of(store), rows, "Mira", 5.0, with_policy=True)


def test_the_command_learns_prints_and_takes_into_use(
    store: Store, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tell(store, told(80))
    assert weigh(["--home", str(home), "--by", "Mira", "--use", "Ada is good", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["in_use"]
    used = store.learned.in_use(CONSENSUS_KIND, project_of(store))
    assert used is not None
    assert used.number == found["number"]
    lines = format_weighting_report(found)
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
