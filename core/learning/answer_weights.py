"""Learns weights w(Q; θ) of debaters' answers, compares them on the same folds and picks one.

By record, by a regression over signed answers, or by a policy: a network over the features of all
answers that PPO trains on a reward model. The one with the least log loss is used, among those that
are better than equal weights beyond chance. Source: SC-MAKS 3.2 (w_i(Q; θ)), 3.5; 4.10 (uniform
vote, no RLHF).
"""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from core.learning.agent_answers import DecidedRun, SpeakingAgent
from core.learning.consensus import build_weighting_measures, compute_scale, iter_fold_flags
from core.learning.head_fit import StackedModel, fit_stack
from core.learning.metrics import (
    HALLUCINATED_VALUE,
    SUPPORTED_VALUE,
    UNCLEAR_VALUE,
    BoolArray,
    FloatArray,
    IndexArray,
    MetricEstimate,
    bootstrap_measures,
    compute_log_losses,
    iter_grouped_folds,
    make_f_score,
    make_mean,
    number_names,
    select_rows,
)
from core.runtime.errors import ConfigError, InputError
from core.schema.records import Stance
from core.verdict.classifier import sigmoid
from core.verdict.consensus_weights import (
    ANSWER_FEATURES,
    METHODS,
    NETWORK_FEATURES,
    NO_PAST_ANSWERS,
    SHRINKAGE_ANSWERS,
    STANCES,
    AnsweringAgent,
    AnswerNetwork,
    LearnedWeights,
    Method,
    PastAnswers,
    normalize_weights,
    scale_features,
    softmax,
)

MIN_GROUPS_OF_AGENT = 10  # groups of cases that an agent must have answered to have a record
UNKNOWN_AGENT = -1
STANCE_VALUES = (HALLUCINATED_VALUE, SUPPORTED_VALUE, UNCLEAR_VALUE)  # the numbers of STANCES
POLICY_SEED = 5
REWARD_SEED = 23
HIDDEN_UNITS = 6
L2_PENALTY = 2.0  # on squared weights, beside a sum of losses over answers
MAX_ITERATIONS = 200
ENTROPY_BONUS = 0.1
MAX_POLICY_UPDATES = 60
PATIENCE_UPDATES = 10  # updates without a better validation reward
LEARNING_RATE = 6e-3
ADAPTATION_RATE = 5e-4  # for adapting a policy to a few new answers
POLICY_PACKAGE = "stable_baselines3"
MISSING_PACKAGE_MESSAGE = (
    "The policy is trained with stable-baselines3, which is not installed: "
    "pip install -r requirements-policy.txt, and start again. The other weightings need nothing."
)
CONSTANT_SYSTEM = "always"
ANSWER_WEIGHT_FIGURES = ("log_loss", "auroc", "balanced_accuracy", "f1", "f2")
ANSWER_BOOTSTRAP_DRAWS = 500
MIN_DIFFERENT_GROUPS = 6  # groups that differ, below which a signed-rank test cannot reach 5 %


@dataclass(frozen=True)
class AnswerMatrix:
    """n debates with up to s answers each: tuples (Q, O_i, C_ij, O_gold) of SC-MAKS 3.5.

    `said` is (n, s): 1 hallucinated, 0 supported, one half unclear, NaN if there is no answer.
    `who` is (n, s), the answerer's place in `agents`, -1 without a record. `features` is (n, s, d)
    in the order of `ANSWER_FEATURES`. `labels` is (n,), 1 hallucinated. `graded` is (n,) how well
    people rated the response, from 0 to 1, NaN if they did not. Debates of one group lie on one
    side of a fold.
    """

    agents: tuple[AnsweringAgent, ...]
    said: FloatArray
    who: IndexArray
    features: FloatArray
    labels: FloatArray
    graded: FloatArray
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_there(self) -> BoolArray:
        """(n, s) True where there is an answer."""
        return np.asarray(~np.isnan(self.said))

    @property
    def is_right(self) -> BoolArray:
        """(n, s) True where the answer takes the side that people decided on; never for unclear."""
        decided = self.is_there & (self.said != UNCLEAR_VALUE)
        return np.asarray(decided & ((self.said > UNCLEAR_VALUE) == (self.labels[:, None] == 1.0)))

    def rows(self, which: IndexArray | BoolArray) -> AnswerMatrix:
        """Return only these debates, in this order."""
        names = ("said", "who", "features", "labels", "graded", "groups")
        return select_rows(self, which, *names)


def build_answer_matrix(rows: Sequence[DecidedRun]) -> AnswerMatrix:
    """Return the debates of these runs; a run in which nobody answered is left out."""
    answered = [row for row in rows if row.heard.answers]
    most_answers = max((len(row.heard.answers) for row in answered), default=0)
    groups: dict[AnsweringAgent, set[str]] = {}
    for row in answered:
        for agent in row.heard.answers:
            groups.setdefault(to_answering_agent(agent), set()).add(row.decision.group)
    often = [agent for agent, own in groups.items() if len(own) >= MIN_GROUPS_OF_AGENT]
    agents = tuple(sorted(often))
    shape = (len(answered), most_answers)
    said, who = np.full(shape, np.nan), np.full(shape, UNKNOWN_AGENT, dtype=np.int64)
    features = np.full((*shape, len(ANSWER_FEATURES)), np.nan)
    for n, row in enumerate(answered):
        for s, (agent, values) in enumerate(row.heard.answers.items()):
            said[n, s] = (1.0 + values["side"]) / 2.0
            who[n, s] = (
                agents.index(to_answering_agent(agent))
                if to_answering_agent(agent) in agents
                else UNKNOWN_AGENT
            )
            features[n, s] = list(values.values())
    labels = np.array([float(row.is_wrong) for row in answered])
    graded = np.array([np.nan if row.graded is None else row.graded for row in answered])
    names = tuple(row.decision.group for row in answered)
    return AnswerMatrix(agents, said, who, features, labels, graded, names)


def to_answering_agent(agent: SpeakingAgent) -> AnsweringAgent:
    """Return the agent as a run's weigher knows it."""
    return AnsweringAgent(agent.name, agent.model, agent.rules, agent.seat)


def count_past_answers(answers: AnswerMatrix) -> tuple[tuple[PastAnswers, ...], PastAnswers]:
    """Return the record of each agent, and that of all agents together."""
    counts = _count_answers(answers).sum(axis=0)
    each = tuple(_past_from(agent_counts) for agent_counts in counts[: len(answers.agents)])
    return each, _past_from(counts.sum(axis=0))


def build_network_inputs(
    answers: AnswerMatrix, learned: LearnedWeights | None = None
) -> FloatArray:
    """Return (n, s, d + 1): features, and log odds by past answers (`learned`, or other groups)."""
    odds = np.full(answers.said.shape, np.nan)

    def fill(rows: IndexArray, past: Sequence[PastAnswers], whole: PastAnswers) -> None:
        for n, s in np.argwhere(answers.is_there[rows]):
            agent, stance = answers.who[rows[n], s], _stance_from(answers.said[rows[n], s])
            agent_past = past[agent] if agent != UNKNOWN_AGENT else NO_PAST_ANSWERS
            odds[rows[n], s] = agent_past.log_odds(stance, whole)

    if learned is not None:
        fill(np.arange(len(answers)), learned.past, learned.whole)
    else:
        counts, group_of = _count_answers(answers), number_names(answers.groups)
        for place in np.unique(group_of):
            rest = counts[group_of != place].sum(axis=0)
            past = [_past_from(agent_counts) for agent_counts in rest]
            fill(np.flatnonzero(group_of == place), past, _past_from(rest.sum(axis=0)))
    return np.concatenate([answers.features, odds[:, :, None]], axis=2)


def compute_answer_weights(learned: LearnedWeights, answers: AnswerMatrix) -> FloatArray:
    """Return (n, s) the weight that a run's weigher gives each answer; 0 where there is none."""
    there, known = answers.is_there, answers.who != UNKNOWN_AGENT
    if learned.policy is not None:
        raw = softmax(learned.policy.scores(build_network_inputs(answers, learned)), there)
    elif learned.method == "uniform":
        raw = there.astype(np.float64)
    else:
        raw = np.where(known, np.array([*learned.fixed, 0.0])[answers.who], 0.0)
    weights = np.zeros(answers.said.shape)
    for n, present in enumerate(there):
        weights[n, present] = normalize_weights(
            raw[n, present].tolist(), known[n, present].tolist()
        )
    return weights


def compute_weighted_shares(weights: FloatArray, answers: AnswerMatrix) -> FloatArray:
    """Return (n,) the weighted share of those who say hallucinated; unclear counts half."""
    return np.asarray((weights * np.nan_to_num(answers.said, nan=0.0)).sum(axis=1))


def _count_answers(answers: AnswerMatrix) -> FloatArray:
    """Return (n, agents + 1, 3, 2): answers by stance, right and all; last without a record."""
    counts = np.zeros((len(answers), len(answers.agents) + 1, len(STANCES), 2))
    right = answers.is_right
    for n, s in np.argwhere(answers.is_there):
        stance = STANCE_VALUES.index(answers.said[n, s])
        counts[n, answers.who[n, s], stance] += (float(right[n, s]), 1.0)
    return counts


def _past_from(counts: FloatArray) -> PastAnswers:
    """Return a record from (3, 2) counts by stance: right answers, all answers."""
    right, n = counts.T.tolist()
    return PastAnswers(tuple(right), tuple(n))


def _stance_from(said: float) -> Stance:
    return STANCES[STANCE_VALUES.index(said)]


@dataclass(frozen=True)
class FittedWeights:
    """Weights, and the fit that turns their share into a probability; a policy's training too."""

    weights: LearnedWeights
    platt: StackedModel
    reward_model: AnswerNetwork | None = None
    trained: TrainedPolicy | None = None

    def p(self, answers: AnswerMatrix) -> FloatArray:
        """Return (n,) p_hallucinated of the debates."""
        return self.platt.p(
            compute_weighted_shares(compute_answer_weights(self.weights, answers), answers)[:, None]
        )


def fit_answer_weights(
    answers: AnswerMatrix, method: Method, start: LearnedWeights | None = None
) -> FittedWeights:
    """Learn weights from these debates; a policy starts from that of `start`.

    Raises:
        InputError: there is one label only, or there are too few groups.
        ConfigError: what a policy is trained with is not installed.
    """
    if len(np.unique(answers.labels)) < 2:
        raise InputError("Expected debates of both labels to learn weights from, found one label.")
    past, whole = count_past_answers(answers)
    fixed: tuple[float, ...] = ()
    if method == "policy":
        model, unseen_rewards = fit_reward_model(answers)
        debates = RewardedDebates(build_network_inputs(answers), answers.is_there, unseen_rewards)
        wrong, groups = answers.labels == 1.0, number_names(answers.groups)
        _, held = next(iter_grouped_folds(wrong, groups, POLICY_SEED))
        is_held = np.isin(np.arange(len(answers)), held)
        before = start.policy if start is not None else None
        trained = train_policy(debates.rows(~is_held), debates.rows(is_held), POLICY_SEED, before)
        weights = LearnedWeights("policy", answers.agents, (), past, whole, trained.policy)
        return replace(fit_platt(weights, answers), reward_model=model, trained=trained)
    if method == "record":
        fixed = tuple(_record_weight(agent_past, whole) for agent_past in past)
    elif method == "logistic" and answers.agents:
        fixed = _fit_logistic(answers)
    return fit_platt(LearnedWeights(method, answers.agents, fixed, past, whole), answers)


def fit_platt(weights: LearnedWeights, answers: AnswerMatrix) -> FittedWeights:
    """Return the weights with a probability fitted to these debates."""
    share = compute_weighted_shares(compute_answer_weights(weights, answers), answers)
    return FittedWeights(weights, fit_stack(share[:, None], answers.labels == 1.0))


def _record_weight(agent: PastAnswers, whole: PastAnswers) -> float:
    """Return log odds of being right where it decided, shrunk towards all agents'; at least 0."""
    overall = (sum(whole.right[:2]) + 1.0) / (sum(whole.n[:2]) + 2.0)
    share = (sum(agent.right[:2]) + SHRINKAGE_ANSWERS * overall) / (
        sum(agent.n[:2]) + SHRINKAGE_ANSWERS
    )
    return max(0.0, float(np.log(share / (1.0 - share))))


def _fit_logistic(answers: AnswerMatrix) -> tuple[float, ...]:
    """Return (agents,) coefficients of answers as 1, -1, 0; who err together share weight."""
    signed = np.zeros((len(answers), len(answers.agents)))
    for n, s in np.argwhere(answers.is_there & (answers.who != UNKNOWN_AGENT)):
        signed[n, answers.who[n, s]] = 2.0 * (answers.said[n, s] - UNCLEAR_VALUE)
    stack = fit_stack(signed, answers.labels == 1.0)
    return tuple((stack.weights / stack.spreads).tolist())


def compute_reward_targets(answers: AnswerMatrix) -> FloatArray:
    """Return (n, s) the reward that each answer should get, from 0 to 1; NaN where there is none.

    It is 1 if the answer takes the side that people decided on. If they also rated the response
    (4.6), half of it is how near the answer is to their ratings.
    """
    right = answers.is_right.astype(np.float64)
    near = 1.0 - np.abs(np.nan_to_num(answers.said) - (1.0 - answers.graded[:, None]))
    both = np.where(np.isnan(near), right, (right + near) / 2.0)
    return np.where(answers.is_there, both, np.nan)


def fit_reward_model(answers: AnswerMatrix) -> tuple[AnswerNetwork, FloatArray]:
    """Return the reward model (3.5.1; labels weigh alike), (n, s) rewards blind to the group."""
    read, target, there = (
        build_network_inputs(answers),
        compute_reward_targets(answers),
        answers.is_there,
    )
    unseen_rewards, wrong = np.full(answers.said.shape, np.nan), answers.labels == 1.0
    share = (wrong.sum() + 1.0) / (len(answers) + 2.0)
    label_weights = np.where(wrong, 0.5 / share, 0.5 / (1.0 - share))
    case_weights = label_weights[:, None] + np.zeros(there.shape)
    for fit, test in iter_grouped_folds(wrong, number_names(answers.groups), REWARD_SEED):
        present = there[fit]
        model = fit_network(
            read[fit][present], target[fit][present], REWARD_SEED, case_weights[fit][present]
        )
        unseen_rewards[test] = np.where(there[test], predict_rewards(model, read[test]), np.nan)
    return fit_network(read[there], target[there], REWARD_SEED, case_weights[there]), unseen_rewards


def predict_rewards(model: AnswerNetwork, read: FloatArray) -> FloatArray:
    """Return (...,) the reward that the model expects of each answer, from 0 to 1."""
    return sigmoid(model.scores(read))


def fit_network(
    read: FloatArray, wanted: FloatArray, seed: int, worth: FloatArray | float = 1.0
) -> AnswerNetwork:
    """Fit a network of (m, d) features whose sigmoid is near `wanted` (m,), weighted by `worth`."""
    from scipy.optimize import minimize

    centres, scales = compute_scale(read)
    level = scale_features(read, centres, scales)
    width = level.shape[1]
    random = np.random.default_rng(seed)
    share = (wanted.sum() + 1.0) / (len(wanted) + 2.0)
    first_weights = random.normal(0.0, width**-0.5, width * HIDDEN_UNITS)
    # Noise breaks the tie between hidden units, whose gradient is 0 while `out` is.
    noise = random.normal(0.0, 0.1, HIDDEN_UNITS)
    base = float(np.log(share / (1.0 - share)))
    start = np.concatenate([first_weights, np.zeros(HIDDEN_UNITS), noise, [base]])

    def loss(values: FloatArray) -> tuple[float, FloatArray]:
        hidden, shift, out, last = _split_parameters(values, width)
        inner = np.tanh(level @ hidden + shift)
        score = inner @ out + last
        total = (worth * (np.logaddexp(0.0, score) - wanted * score)).sum()
        pull = worth * (sigmoid(score) - wanted)
        back = pull[:, None] * out * (1.0 - inner**2)
        slope = [(level.T @ back).ravel(), back.sum(axis=0), inner.T @ pull, [pull.sum()]]
        penalised = values.copy()
        penalised[-1] = 0.0  # the base rate is not penalised
        gradient = np.concatenate(slope) + L2_PENALTY * penalised
        return float(total + L2_PENALTY * (penalised**2).sum() / 2), gradient

    solution = minimize(
        loss, start, jac=True, method="L-BFGS-B", options={"maxiter": MAX_ITERATIONS}
    ).x
    return _make_network(centres, scales, *_split_parameters(solution, width))


def _make_network(
    centres: FloatArray,
    scales: FloatArray,
    hidden: FloatArray,
    shift: FloatArray,
    out: FloatArray,
    last: float,
) -> AnswerNetwork:
    scaling = tuple(centres.tolist()), tuple(scales.tolist())
    rows = tuple(tuple(row) for row in hidden.tolist())
    return AnswerNetwork(
        NETWORK_FEATURES, *scaling, rows, tuple(shift.tolist()), tuple(out.tolist()), last
    )


def _split_parameters(
    values: FloatArray, width: int
) -> tuple[FloatArray, FloatArray, FloatArray, float]:
    hidden, shift, out, last = np.split(
        values, np.cumsum([width * HIDDEN_UNITS, HIDDEN_UNITS, HIDDEN_UNITS])
    )
    return hidden.reshape(width, HIDDEN_UNITS), shift, out, float(last[0])


@dataclass(frozen=True)
class RewardedDebates:
    """What a policy is trained on: `read` (n, s, d), `is_there` (n, s) and `rewards` (n, s)."""

    read: FloatArray
    is_there: BoolArray
    rewards: FloatArray

    def rows(self, which: BoolArray) -> RewardedDebates:
        """Return only these debates."""
        return select_rows(self, which, "read", "is_there", "rewards")


@dataclass(frozen=True)
class TrainedPolicy:
    """The best policy, of update number `best`; `curve` holds mean rewards (own, validation)."""

    policy: AnswerNetwork
    curve: tuple[tuple[float, float], ...]
    best: int


def has_policy_package() -> bool:
    """Return True if a policy can be trained; imports nothing to find out."""
    return importlib.util.find_spec(POLICY_PACKAGE) is not None


def require_policy_package() -> None:
    """Raise ConfigError if no policy can be trained."""
    if not has_policy_package():
        raise ConfigError(MISSING_PACKAGE_MESSAGE)


def train_policy(
    own: RewardedDebates, validation: RewardedDebates, seed: int, start: AnswerNetwork | None = None
) -> TrainedPolicy:
    """Train a policy by PPO, stopping early when the validation reward no longer rises.

    One debate is one step, an action is a score for each answer, and the reward is
    `compute_mixture_reward`, so the best policy has w_i in proportion to exp(r_i / ENTROPY_BONUS).
    With a `start` it continues from that policy in small steps (3.5: domain adaptation). Raises
    ConfigError without stable-baselines3.
    """
    require_policy_package()
    from core.learning.ppo import PolicyTrainer

    if start is None:
        centres, scales = compute_scale(own.read[own.is_there])
    else:
        centres, scales = np.array(start.centres), np.array(start.scales)
    level = np.where(own.is_there[:, :, None], scale_features(own.read, centres, scales), 0.0)
    rate, known_rewards = (
        LEARNING_RATE if start is None else ADAPTATION_RATE,
        np.nan_to_num(own.rewards),
    )
    learner = PolicyTrainer(
        level, own.is_there, known_rewards, seed=seed, rate=rate, entropy=ENTROPY_BONUS
    )
    if start is not None:
        learner.begin_from(start)
    best, best_update = _make_network(centres, scales, *learner.arrays(), 0.0), 0
    curve = [(compute_mean_reward(best, own), compute_mean_reward(best, validation))]
    for update in range(1, MAX_POLICY_UPDATES + 1):
        learner.update()
        policy = _make_network(centres, scales, *learner.arrays(), 0.0)
        curve.append((compute_mean_reward(policy, own), compute_mean_reward(policy, validation)))
        if curve[-1][1] > curve[best_update][1]:
            best, best_update = policy, update
        if update - best_update >= PATIENCE_UPDATES:
            break
    return TrainedPolicy(best, tuple(curve), best_update)


def compute_mean_reward(policy: AnswerNetwork, debates: RewardedDebates) -> float:
    """Return the mean reward of the policy's weights, without sampling, entropy included."""
    weights = softmax(policy.scores(debates.read), debates.is_there)
    return float(compute_mixture_reward(weights, debates.rewards, ENTROPY_BONUS).mean())


def compute_mixture_reward(weights: FloatArray, rewards: FloatArray, entropy: float) -> FloatArray:
    """Return (n,) Σ w_i r_i plus `entropy` times the entropy of the weights, in nats."""
    value = (weights * np.nan_to_num(rewards)).sum(axis=-1)
    spread = -(weights * np.log(np.where(weights > 0.0, weights, 1.0))).sum(axis=-1)
    return np.asarray(value + entropy * spread)


@dataclass(frozen=True)
class LogLossGain:
    """How much the log loss falls, with its interval; `p` is of Wilcoxon's test if it applies."""

    value: float
    low: float
    high: float
    p: float | None


@dataclass(frozen=True)
class AnswerWeightComparison:
    """Figures by method and name; `always` is the constant share of hallucinated cases."""

    figures: dict[str, dict[str, MetricEstimate]]
    gains: dict[str, LogLossGain]
    n: int
    groups: int
    hallucinated: int
    used: Method


def compare_answer_weights(
    answers: AnswerMatrix, methods: Sequence[Method] = METHODS, *, seed: int
) -> AnswerWeightComparison:
    """Compare these weightings on the same folds; `uniform` must be among them.

    Raises:
        InputError: there are fewer groups than folds, or one label only.
        ConfigError: a policy is asked for, and what it is trained with is not installed.
    """
    p: dict[str, FloatArray] = {
        name: np.empty(len(answers)) for name in (*methods, CONSTANT_SYSTEM)
    }
    for held in iter_fold_flags(answers.groups, answers.labels, seed):
        rest, part = answers.rows(~held), answers.rows(held)
        for method in methods:
            p[method][held] = fit_answer_weights(rest, method).p(part)
        p[CONSTANT_SYSTEM][held] = (rest.labels.sum() + 1.0) / (len(rest) + 2.0)
    places = number_names(answers.groups)
    figures = {
        name: _compute_figures(answers.labels, method_p, places, seed)
        for name, method_p in p.items()
    }
    coin = MetricEstimate(0.5, 0.5, 0.5)
    always = _compute_figures(answers.labels, np.ones(len(answers)) - 1e-9, places, seed)
    figures[CONSTANT_SYSTEM] |= {"auroc": coin, "balanced_accuracy": coin}
    figures[CONSTANT_SYSTEM] |= {name: always[name] for name in ("f1", "f2")}
    gains: dict[str, LogLossGain] = {
        name: measure_log_loss_gain(answers.labels, p["uniform"], p[name], places, seed)
        for name in methods
        if name != "uniform"
    }
    groups, hallucinated = int(places.max()) + 1, int(answers.labels.sum())
    return AnswerWeightComparison(
        figures, gains, len(answers), groups, hallucinated, choose_best_method(gains)
    )


def choose_best_method(gains: Mapping[str, LogLossGain]) -> Method:
    """Return the method with the least log loss among those clearly better than equal weights."""
    better = [name for name in METHODS if name in gains and gains[name].low > 0.0]
    return max(better, key=lambda name: gains[name].value, default="uniform")


def _compute_figures(
    labels: FloatArray, p: FloatArray, groups: IndexArray, seed: int
) -> dict[str, MetricEstimate]:
    wrong, said = labels == 1.0, p > UNCLEAR_VALUE
    by_name = build_weighting_measures(labels, p, is_probability=True)
    by_name |= {"f1": make_f_score(wrong, said), "f2": make_f_score(wrong, said, 4.0)}
    return bootstrap_measures(
        {name: by_name[name] for name in ANSWER_WEIGHT_FIGURES},
        groups,
        seed,
        ANSWER_BOOTSTRAP_DRAWS,
    )


def measure_log_loss_gain(
    labels: FloatArray, before: FloatArray, after: FloatArray, places: IndexArray, seed: int
) -> LogLossGain:
    """Return how much lower the log loss of p `after` is than that of p `before`, case by case."""
    wrong = labels == 1.0
    gains = compute_log_losses(wrong, before) - compute_log_losses(wrong, after)
    figure = bootstrap_measures({"": make_mean(gains)}, places, seed, ANSWER_BOOTSTRAP_DRAWS)[""]
    by_group = np.bincount(places, weights=gains)
    different = by_group[np.abs(by_group) > 1e-12]
    if len(different) < MIN_DIFFERENT_GROUPS:
        return LogLossGain(*figure, None)
    from scipy.stats import wilcoxon

    return LogLossGain(*figure, float(wilcoxon(different).pvalue))
