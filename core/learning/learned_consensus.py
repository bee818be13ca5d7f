"""The learned weights of a project's agents: fitting them, storing them, putting them in use.

The same stored record holds the weights w(Q; θ) of the debaters' answers, which are learned along
with them and adapted to newer answers. Once a lead puts a record in use, it weighs answers in
debates.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from core.learning.agent_answers import (
    DecidedRun,
    SpeakingAgent,
    classify_response_form,
    collect_agent_answers,
)
from core.learning.answer_weights import (
    MISSING_PACKAGE_MESSAGE,
    AnswerMatrix,
    FittedWeights,
    LogLossGain,
    build_answer_matrix,
    build_network_inputs,
    compare_answer_weights,
    compute_answer_weights,
    count_past_answers,
    fit_platt,
    has_policy_package,
    measure_log_loss_gain,
    predict_rewards,
    require_policy_package,
)
from core.learning.answer_weights import fit_answer_weights as fit_answers
from core.learning.consensus import (
    ConsensusWeights,
    VoteMatrix,
    Weighting,
    compare_weightings,
    fit_weighting,
    iter_fold_flags,
    parse_consensus_weights,
)
from core.learning.metrics import FloatArray, compute_auroc, number_names
from core.runtime.errors import ConfigError, InputError
from core.schema.records import CONSENSUS_KIND
from core.schema.run_state import RunState
from core.store import Store
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact, parse_body
from core.verdict.consensus_weights import (
    DEBATE_FEATURES,
    FEATURES_SCHEMA,
    METHODS,
    NO_PAST_ANSWERS,
    LearnedWeights,
    Method,
    compute_debate_features,
    parse_stored_weights,
)
from core.verdict.consensus_weights import parse_learned_weights as answer_weights_from

CONSENSUS_RECORD_KIND = CONSENSUS_KIND
MIN_DECIDED_CASES = 40  # cases, or groups of debates
MIN_DECIDED_PER_LABEL = 10
MIN_CASES_OF_AGENT = 10  # cases that an agent must have spoken on to get a weight
MIN_KNOWN_AGENTS = 2  # agents of a run that need a weight before there is a consensus
CONSENSUS_SEED = 11
MIN_NEW_GROUPS = 20  # newly answered groups of debates that adapting a policy needs
MIN_NEW_PER_LABEL = 5


@dataclass(frozen=True)
class ConsensusOpinion:
    """The consensus of a run's agents; `parts` are (agent, said, log odds added), largest first."""

    p: float
    weighting: Weighting
    at: float
    n: int
    parts: tuple[tuple[SpeakingAgent, float, float], ...]
    unknown: tuple[SpeakingAgent, ...]


def build_vote_matrix(rows: Sequence[DecidedRun]) -> tuple[VoteMatrix, tuple[SpeakingAgent, ...]]:
    """Return the runs as votes, one row each, and the agents that are the columns."""
    groups_of: dict[SpeakingAgent, set[str]] = {}
    for row in rows:
        for agent in row.heard.last:
            groups_of.setdefault(agent, set()).add(row.decision.group)
    agents = tuple(
        sorted(agent for agent, own in groups_of.items() if len(own) >= MIN_CASES_OF_AGENT)
    )
    said = [[row.heard.last.get(agent, np.nan) for agent in agents] for row in rows]
    votes = VoteMatrix(
        agents=tuple(agent.key for agent in agents),
        said=np.array(said, dtype=np.float64).reshape(len(rows), len(agents)),
        kinds=tuple(row.heard.form for row in rows),
        groups=tuple(row.decision.group for row in rows),
        labels=np.array([float(row.is_wrong) for row in rows]),
        features=np.array([list(row.heard.features.values()) for row in rows]),
        names=DEBATE_FEATURES,
    )
    return votes, agents


def describe_missing_cases(rows: Sequence[DecidedRun]) -> str:
    """Return in words what is missing before weights can be learned, or "" if nothing is."""
    counts = Counter({row.decision.group: row.is_wrong for row in rows}.values())
    labels = " and ".join(
        f"{MIN_DECIDED_PER_LABEL - counts[is_wrong]} {label}"
        for is_wrong, label in ((True, "hallucinated"), (False, "supported"))
        if counts[is_wrong] < MIN_DECIDED_PER_LABEL
    )
    case_count = max(MIN_DECIDED_CASES - counts.total(), 0)
    if not case_count:
        return labels and f"{labels} cases more"
    return f"{case_count} more decided cases" + (f", among them {labels}" if labels else "")


def learn_weights(
    store: Store,
    project_id: str,
    rows: Sequence[DecidedRun],
    author: str,
    now: float,
    *,
    with_policy: bool = False,
) -> int:
    """Compare the weightings, with those of debaters' answers; store the proposed one.

    Returns its number. Raises InputError: too few cases were decided, or too few agents spoke on
    them.
    """
    what = "learn weights of agents"
    store.projects.require(project_id, author, "lead", what)  # before the work, and as it is kept
    lacking = describe_missing_cases(rows)
    if lacking:
        raise InputError(f"Weights can be learned after {lacking}; answer more on Review.")
    votes, agents = build_vote_matrix(rows)
    if len(agents) < MIN_KNOWN_AGENTS:
        raise InputError(
            f"Expected two agents that spoke on {MIN_CASES_OF_AGENT} cases or more, found "
            f"{len(agents)}; check more cases with the same roster."
        )
    if with_policy:
        require_policy_package()
    compared = compare_weightings(votes, CONSENSUS_SEED)
    body = {
        "weights": asdict(fit_weighting(votes, compared.proposed)),
        "agents": [asdict(agent) for agent in agents],
        "compared": asdict(compared),
        "features_schema": FEATURES_SCHEMA,
        "decisions": sorted({row.decision.id for row in rows}),
        "runs": len(rows),
        "seed": CONSENSUS_SEED,
        "answers": learn_answer_weights(rows, with_policy=with_policy),
    }
    return _store(
        store, LearnedArtefact(CONSENSUS_RECORD_KIND, project_id, now, author, body), what
    )


def adapt_policy(
    store: Store, project_id: str, rows: Sequence[DecidedRun], author: str, now: float
) -> int:
    """Adapt the newest policy to what was answered since; return the new number. See `adapted`."""
    what = "adapt weights of agents"
    store.projects.require(project_id, author, "lead", what)
    require_policy_package()
    newest = store.learned.newest(CONSENSUS_RECORD_KIND, project_id)
    if newest is None:
        raise InputError("Expected a policy to go on from, found none; train one first.")
    body = newest.body | {"answers": adapt_answer_weights(newest, rows)}
    return _store(
        store, LearnedArtefact(CONSENSUS_RECORD_KIND, project_id, now, author, body), what
    )


def _store(store: Store, learned: LearnedArtefact, what: str) -> int:
    with store.writing():
        store.projects.require(learned.project_id, learned.author, "lead", what)
        return store.learned.add(learned)


def activate_weights(
    store: Store, project_id: str, number: int, *, by: str, reason: str, now: float
) -> None:
    """Put learned weights in use, or none (number 0).

    Raises:
        NotAllowed: the person is no lead of the project.
        InputError: there is no reason, or no such weights.
        ConfigError: the weights are not as they were learned.
    """
    if not reason.strip():
        raise InputError("Expected a reason for the change, found none; a few words are enough.")
    with store.writing():
        store.projects.require(project_id, by, "lead", "put weights of agents in use")
        learned = store.learned.get(number) if number != NOTHING_LEARNED else None
        if learned is not None:
            parse_stored_consensus(learned)
            load_stored_weights(learned)
        store.learned.use(
            ArtefactChoice(CONSENSUS_RECORD_KIND, project_id, number, now, by, reason.strip())
        )


def parse_stored_consensus(
    learned: LearnedArtefact,
) -> tuple[ConsensusWeights, tuple[SpeakingAgent, ...]]:
    """Return the stored weights and their agents. Raises ConfigError: another schema."""
    weights = parse_consensus_weights(learned.body.get("weights"))
    agents = parse_body(
        learned, lambda body: tuple(SpeakingAgent(**fields) for fields in body["agents"])
    )
    schema = learned.body.get("features_schema")
    is_known = schema == FEATURES_SCHEMA and set(weights.names) <= set(DEBATE_FEATURES)
    if not is_known or tuple(agent.key for agent in agents) != weights.agents:
        raise ConfigError("Expected weights of this version's agents; learn them anew.")
    return weights, agents


def form_opinion(learned: LearnedArtefact, progress: RunState) -> ConsensusOpinion | None:
    """Return the agents' consensus, or None if fewer than two, or than half, have weights."""
    weights, agents = parse_stored_consensus(learned)
    answers, _, _ = collect_agent_answers(progress)
    known = [agent for agent in agents if agent in answers]
    if progress.case is None or len(known) < MIN_KNOWN_AGENTS or 2 * len(known) < len(answers):
        return None
    said = np.array([[answers.get(agent, np.nan) for agent in agents]])
    kinds, features = (
        (classify_response_form(progress.case, len(progress.statements)),),
        compute_debate_features(progress),
    )
    p = weights.p(said, kinds, np.array([[features[name] for name in weights.names]]))
    added = dict(zip(agents, weights.parts(said, kinds)[0].tolist(), strict=True))
    parts = [(agent, answers[agent], added[agent]) for agent in known]
    parts.sort(key=lambda part: -abs(part[2]))
    groups = parse_body(learned, lambda body: int(body["compared"]["groups"]))
    unknown = tuple(sorted(agent for agent in answers if agent not in agents))
    return ConsensusOpinion(
        float(p[0]), weights.weighting, learned.at, groups, tuple(parts), unknown
    )


def summarize_agent_weights(
    weights: ConsensusWeights, agents: Sequence[SpeakingAgent]
) -> list[dict[str, Any]]:
    """Return what each agent adds by saying hallucinated or supported, averaged over kinds."""
    table = np.array(weights.table)
    mean = (table[:-1] if len(table) > 1 else table).mean(axis=0)
    counts = [
        {"agent": agent, "hallucinated": float(added[0]), "supported": float(added[1])}
        for agent, added in zip(agents, mean, strict=True)
    ]
    return sorted(counts, key=lambda added: -abs(added["hallucinated"] - added["supported"]))


def describe_lacking_debates(
    answers: AnswerMatrix, fewest: int = MIN_DECIDED_CASES, of_label: int = MIN_DECIDED_PER_LABEL
) -> str:
    """Return in words why nothing can be learned from these debates, or "" if something can."""
    counts = Counter(dict(zip(answers.groups, answers.labels.tolist(), strict=True)).values())
    if not answers.agents:
        return "no debater has answered often enough"
    if counts.total() >= fewest and min(counts[0.0], counts[1.0]) >= of_label:
        return ""
    return (
        f"expected {fewest} decided cases with a debate, {of_label} of each label, found "
        f"{counts[1.0]} hallucinated and {counts[0.0]} supported"
    )


def learn_answer_weights(rows: Sequence[DecidedRun], *, with_policy: bool) -> dict[str, Any]:
    """Return what is stored of the weights of answers; `lacking` says why there are none."""
    answers = build_answer_matrix(rows)
    reason = describe_lacking_debates(answers)
    if reason:
        return {"lacking": reason}
    methods: tuple[Method, ...] = METHODS if with_policy else METHODS[:-1]
    compared = compare_answer_weights(answers, methods, seed=CONSENSUS_SEED)
    fitted = {method: fit_answers(answers, method) for method in {compared.used, methods[-1]}}
    body: dict[str, Any] = {
        "lacking": "",
        "weights": fitted[compared.used].weights.to_plain(),
        "compared": asdict(compared),
        "mean_weights": compute_mean_weights(fitted[compared.used].weights, answers),
        "decisions": sorted({row.decision.id for row in rows}),
    }
    if with_policy:
        body["policy"] = _describe_policy(fitted["policy"], answers)
    return body


def adapt_answer_weights(kept: LearnedArtefact, rows: Sequence[DecidedRun]) -> dict[str, Any]:
    """Return the stored part about answers, with the policy adapted to new ones (SC-MAKS 3.5).

    The adapted policy is used only if it does better than the stored one on the new answers, beyond
    chance. The new answers are dealt into folds, and no case is judged by a policy that it taught.

    Raises:
        InputError: no policy was stored, or too little was answered since.
        ConfigError: the stored policy is of another schema, or what trains one is not installed.
    """
    before = load_stored_policy(kept)
    if before is None:
        raise InputError("Expected a policy to go on from, found none; train one first.")
    answers = build_answer_matrix(rows)
    known = set(kept.body["answers"]["decisions"])
    with_answers = [row for row in rows if row.heard.answers]
    new = answers.rows(np.array([row.decision.id not in known for row in with_answers], dtype=bool))
    reason = describe_lacking_debates(new, MIN_NEW_GROUPS, MIN_NEW_PER_LABEL)
    if reason:
        raise InputError(f"Of what was answered since the policy was trained: {reason}.")
    gain = _measure_adapted_gain(new, before)
    is_better = gain.low > 0.0
    body: dict[str, Any] = dict(kept.body["answers"])
    if is_better:
        fitted = fit_answers(new, "policy", before)
        past, all_past = count_past_answers(answers)
        after = replace(fitted.weights, agents=answers.agents, past=past, whole=all_past)
        body["policy"] = _describe_policy(replace(fitted, weights=after), new)
        body |= {"weights": after.to_plain(), "mean_weights": compute_mean_weights(after, answers)}
    counts = {"n": len(new), "groups": len(set(new.groups))}
    body["adapted"] = {"gain": asdict(gain), **counts, "is_used": is_better}
    body["decisions"] = sorted(known | {row.decision.id for row in rows})
    return body


def load_stored_policy(kept: LearnedArtefact) -> LearnedWeights | None:
    """Return the stored policy, or None. Raises ConfigError: it is of another schema."""
    policy = parse_body(kept, lambda body: body.get("answers", {}).get("policy"))
    return parse_body(kept, lambda _: answer_weights_from(policy["weights"])) if policy else None


def load_stored_weights(kept: LearnedArtefact) -> LearnedWeights | None:
    """Return the weights of answers that are used with it, or None if none were learned."""
    return parse_body(kept, parse_stored_weights)


def compute_mean_weights(weights: LearnedWeights, answers: AnswerMatrix) -> list[list[Any]]:
    """Return for each debater with a record: name, seat, and its mean weight where it answered."""
    answer_weights = compute_answer_weights(weights, answers)
    rows: list[list[Any]] = [
        [agent.name, agent.seat, float(answer_weights[answers.who == place].mean())]
        for place, agent in enumerate(answers.agents)
    ]
    return sorted(rows, key=lambda row: -float(row[2]))


def _describe_policy(fitted: FittedWeights, answers: AnswerMatrix) -> dict[str, Any]:
    if fitted.trained is None or fitted.reward_model is None:
        raise ConfigError("Expected a trained policy, found none.")
    expected: FloatArray = predict_rewards(fitted.reward_model, build_network_inputs(answers))
    there = answers.is_there
    return {
        "weights": fitted.weights.to_plain(),
        "curve": [list(pair) for pair in fitted.trained.curve],
        "best": fitted.trained.best,
        "reward_model": asdict(fitted.reward_model),
        "reward_auroc": compute_auroc(answers.is_right[there], expected[there]),
        "answers": int(there.sum()),
    }


def _measure_adapted_gain(new: AnswerMatrix, before: LearnedWeights) -> LogLossGain:
    """Return how much lower the log loss of the adapted policy is than that of the stored one."""
    past = dict(zip(before.agents, before.past, strict=True))
    same_past = tuple(past.get(agent, NO_PAST_ANSWERS) for agent in new.agents)
    unadapted = replace(before, agents=new.agents, past=same_past)
    adapted_p, kept_p = np.empty(len(new)), np.empty(len(new))
    for held in iter_fold_flags(new.groups, new.labels, CONSENSUS_SEED):
        rest, part = new.rows(~held), new.rows(held)
        adapted_p[held] = fit_answers(rest, "policy", before).p(part)
        kept_p[held] = fit_platt(unadapted, rest).p(part)
    return measure_log_loss_gain(
        new.labels, kept_p, adapted_p, number_names(new.groups), CONSENSUS_SEED
    )


def describe_policy_obstacle() -> str:
    """Return what prevents training a policy, or "" if nothing does."""
    return "" if has_policy_package() else MISSING_PACKAGE_MESSAGE
