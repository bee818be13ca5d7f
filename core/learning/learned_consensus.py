"""The weights of a project's agents: learned from its answers, kept, taken into use and back.

Under the same number lie the weights w(Q; θ) of the debaters' answers, learned along with them and
adapted to newer ones: what a lead takes into use weighs answers in debates from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from core.learning.answer_weights import (
    MISSING,
    Answers,
    FittedWeights,
    Gain,
    answers_of,
    compare_answers,
    gain_over,
    is_installed,
    past_of,
    read_of,
    require_installed,
    rewards,
    weights_for,
    with_platt,
)
from core.learning.answer_weights import fit as fit_answers
from core.learning.consensus import Votes, Weighting, Weights, compare, fit, held_out, weights_from
from core.learning.metrics import Numbers, auroc, numbered
from core.learning.reasoning import ReasoningRow, SpeakingAgent, form_of, said_in
from core.runtime.errors import ConfigError, InputError
from core.schema.progress import Progress
from core.schema.records import CONSENSUS
from core.store import Store
from core.store.versions import NONE, Choice, Learned, read_body
from core.verdict.consensus_weights import (
    DEBATE_NAMES,
    FEATURES_SCHEMA,
    METHODS,
    NOTHING,
    LearnedWeights,
    Method,
    features_of,
    learned_in,
)
from core.verdict.consensus_weights import weights_from as answer_weights_from

KIND = CONSENSUS
FEWEST = 40  # cases, or groups of debates
FEWEST_PER_LABEL = 10
FEWEST_OF_AGENT = 10  # cases that an agent must have spoken on to get a weight
KNOWN_FROM = 2  # agents of a run that have a weight, for them to have a consensus
SEED = 11
FEWEST_NEW = 20  # groups of debates that were answered since, for a policy to go on with
FEWEST_PER_LABEL_NEW = 5


@dataclass(frozen=True)
class ConsensusOpinion:
    """What a run's agents come to; `parts` are (agent, said, log-odds added), weightiest first."""

    p: float
    weighting: Weighting
    at: float
    n: int
    parts: tuple[tuple[SpeakingAgent, float, float], ...]
    unknown: tuple[SpeakingAgent, ...]


def votes_of(rows: Sequence[ReasoningRow]) -> tuple[Votes, tuple[SpeakingAgent, ...]]:
    """The runs as votes, each a row, and the agents that are its columns."""
    cases: dict[SpeakingAgent, set[str]] = {}
    for row in rows:
        for agent in row.heard.last:
            cases.setdefault(agent, set()).add(row.decision.group)
    agents = tuple(sorted(a for a, own in cases.items() if len(own) >= FEWEST_OF_AGENT))
    said = [[row.heard.last.get(agent, np.nan) for agent in agents] for row in rows]
    votes = Votes(
        agents=tuple(agent.key for agent in agents),
        said=np.array(said, dtype=np.float64).reshape(len(rows), len(agents)),
        kinds=tuple(row.heard.form for row in rows),
        groups=tuple(row.decision.group for row in rows),
        labels=np.array([float(row.is_wrong) for row in rows]),
        features=np.array([list(row.heard.features.values()) for row in rows]),
        names=DEBATE_NAMES,
    )
    return votes, agents


def missing(rows: Sequence[ReasoningRow]) -> str:
    """What is missing before weights can be learned, in words; "" where nothing is."""
    counts = Counter({row.decision.group: row.is_wrong for row in rows}.values())
    sides = " and ".join(
        f"{FEWEST_PER_LABEL - counts[is_wrong]} {words}"
        for is_wrong, words in ((True, "hallucinated"), (False, "supported"))
        if counts[is_wrong] < FEWEST_PER_LABEL
    )
    many = max(FEWEST - counts.total(), 0)
    if not many:
        return sides and f"{sides} cases more"
    return f"{many} more decided cases" + (f", among them {sides}" if sides else "")


def learn(
    store: Store,
    project_id: str,
    rows: Sequence[ReasoningRow],
    author: str,
    now: float,
    *,
    with_policy: bool = False,
) -> int:
    """Compare the weightings, with those of debaters' answers; keep the proposed; their number."""
    what = "learn weights of agents"
    store.projects.require(project_id, author, "lead", what)  # before the work, and as it is kept
    lacking = missing(rows)
    if lacking:
        raise InputError(f"Weights can be learned after {lacking}; answer more on Review.")
    votes, agents = votes_of(rows)
    if len(agents) < KNOWN_FROM:
        raise InputError(
            f"Expected two agents that spoke on {FEWEST_OF_AGENT} cases or more, found "
            f"{len(agents)}; check more cases with the same roster."
        )
    if with_policy:
        require_installed()
    compared = compare(votes, SEED)
    body = {
        "weights": asdict(fit(votes, compared.proposed)),
        "agents": [asdict(agent) for agent in agents],
        "compared": asdict(compared),
        "features_schema": FEATURES_SCHEMA,
        "decisions": sorted({row.decision.id for row in rows}),
        "runs": len(rows),
        "seed": SEED,
        "answers": weights_of_answers(rows, with_policy=with_policy),
    }
    return _keep(store, Learned(KIND, project_id, now, author, body), what)


def adapt(
    store: Store, project_id: str, rows: Sequence[ReasoningRow], author: str, now: float
) -> int:
    """Have the newest policy go on with what was answered since, and keep it; its number."""
    what = "adapt weights of agents"
    store.projects.require(project_id, author, "lead", what)
    require_installed()
    newest = store.learned.newest(KIND, project_id)
    if newest is None:
        raise InputError("Expected a policy to go on from, found none; train one first.")
    body = newest.body | {"answers": adapted(newest, rows)}
    return _keep(store, Learned(KIND, project_id, now, author, body), what)


def _keep(store: Store, learned: Learned, what: str) -> int:
    with store.writing():
        store.projects.require(learned.project_id, learned.author, "lead", what)
        return store.learned.add(learned)


def choose(store: Store, project_id: str, number: int, *, by: str, reason: str, now: float) -> None:
    """Take learned weights into use, or none (number 0).

    Raises:
        NotAllowed: the person is no lead of the project.
        InputError: there is no reason, or no such weights.
        ConfigError: the weights are not as they were learned.
    """
    if not reason.strip():
        raise InputError("Expected a reason for the change, found none; a few words are enough.")
    with store.writing():
        store.projects.require(project_id, by, "lead", "put weights of agents in use")
        known = store.learned.get(number) if number != NONE else None
        if known is not None:
            weights_in(known)
            kept_weights(known)
        store.learned.use(Choice(KIND, project_id, number, now, by, reason.strip()))


def weights_in(learned: Learned) -> tuple[Weights, tuple[SpeakingAgent, ...]]:
    """The weights and the agents that they are of."""
    weights = weights_from(learned.body.get("weights"))
    agents = read_body(learned, lambda body: tuple(SpeakingAgent(**own) for own in body["agents"]))
    schema = learned.body.get("features_schema")
    is_known = schema == FEATURES_SCHEMA and set(weights.names) <= set(DEBATE_NAMES)
    if not is_known or tuple(agent.key for agent in agents) != weights.agents:
        raise ConfigError("Expected weights of this version's agents; learn them anew.")
    return weights, agents


def opinion(learned: Learned, progress: Progress) -> ConsensusOpinion | None:
    """What the run's agents come to; None where fewer than two, or than half, are known."""
    weights, agents = weights_in(learned)
    last, _, _ = said_in(progress)
    known = [agent for agent in agents if agent in last]
    if progress.case is None or len(known) < KNOWN_FROM or 2 * len(known) < len(last):
        return None
    said = np.array([[last.get(agent, np.nan) for agent in agents]])
    kinds, looks = (form_of(progress.case, len(progress.statements)),), features_of(progress)
    p = weights.p(said, kinds, np.array([[looks[name] for name in weights.names]]))
    added = dict(zip(agents, weights.parts(said, kinds)[0].tolist(), strict=True))
    parts = sorted(((a, last[a], added[a]) for a in known), key=lambda part: -abs(part[2]))
    groups = read_body(learned, lambda body: int(body["compared"]["groups"]))
    unknown = tuple(sorted(agent for agent in last if agent not in agents))
    return ConsensusOpinion(
        float(p[0]), weights.weighting, learned.at, groups, tuple(parts), unknown
    )


def counts_for(weights: Weights, agents: Sequence[SpeakingAgent]) -> list[dict[str, Any]]:
    """How much each agent counts: what saying hallucinated or supported adds, mean over kinds."""
    table = np.array(weights.table)
    mean = (table[:-1] if len(table) > 1 else table).mean(axis=0)
    found = [
        {"agent": agent, "hallucinated": float(own[0]), "supported": float(own[1])}
        for agent, own in zip(agents, mean, strict=True)
    ]
    return sorted(found, key=lambda own: -abs(own["hallucinated"] - own["supported"]))


def lacking(answers: Answers, fewest: int = FEWEST, of_label: int = FEWEST_PER_LABEL) -> str:
    """Why none can be learned from these debates, in words; "" where it can."""
    sides = Counter(dict(zip(answers.groups, answers.labels.tolist(), strict=True)).values())
    if not answers.agents:
        return "no debater has answered often enough"
    if sides.total() >= fewest and min(sides[0.0], sides[1.0]) >= of_label:
        return ""
    return (
        f"expected {fewest} decided cases with a debate, {of_label} of each label, found "
        f"{sides[1.0]} hallucinated and {sides[0.0]} supported"
    )


def weights_of_answers(rows: Sequence[ReasoningRow], *, with_policy: bool) -> dict[str, Any]:
    """What is kept of the weightings of answers; `lacking` says why there are none."""
    answers = answers_of(rows)
    words = lacking(answers)
    if words:
        return {"lacking": words}
    methods: tuple[Method, ...] = METHODS if with_policy else METHODS[:-1]
    compared = compare_answers(answers, methods, seed=SEED)
    fitted = {method: fit_answers(answers, method) for method in {compared.used, methods[-1]}}
    found: dict[str, Any] = {
        "lacking": "",
        "weights": fitted[compared.used].weights.to_plain(),
        "compared": asdict(compared),
        "mean_weights": mean_weights(fitted[compared.used].weights, answers),
        "decisions": sorted({row.decision.id for row in rows}),
    }
    if with_policy:
        found["policy"] = _told(fitted["policy"], answers)
    return found


def adapted(kept: Learned, rows: Sequence[ReasoningRow]) -> dict[str, Any]:
    """The same of a kept policy that went on with what was answered since (SC-MAKS 3.5).

    It is used where it does better than the kept one on the new answers, beyond chance. The new
    answers are dealt into folds, and no case is judged by a policy that it taught.

    Raises:
        InputError: no policy was kept, or too little was answered since.
        ConfigError: the kept policy is of another schema, or what trains one is not installed.
    """
    before = kept_policy(kept)
    if before is None:
        raise InputError("Expected a policy to go on from, found none; train one first.")
    whole = answers_of(rows)
    known = set(kept.body["answers"]["decisions"])
    heard = [row for row in rows if row.heard.answers]
    new = whole.rows(np.array([row.decision.id not in known for row in heard], dtype=bool))
    words = lacking(new, FEWEST_NEW, FEWEST_PER_LABEL_NEW)
    if words:
        raise InputError(f"Of what was answered since the policy was trained: {words}.")
    gain = _adapted_gain(new, before)
    is_better = gain.low > 0.0
    own: dict[str, Any] = dict(kept.body["answers"])
    if is_better:
        found = fit_answers(new, "policy", before)
        past, everybody = past_of(whole)
        after = replace(found.weights, agents=whole.agents, past=past, whole=everybody)
        own["policy"] = _told(replace(found, weights=after), new)
        own |= {"weights": after.to_plain(), "mean_weights": mean_weights(after, whole)}
    counts = {"n": len(new), "groups": len(set(new.groups))}
    own["adapted"] = {"gain": asdict(gain), **counts, "is_used": is_better}
    own["decisions"] = sorted(known | {row.decision.id for row in rows})
    return own


def kept_policy(kept: Learned) -> LearnedWeights | None:
    """The policy that was trained with it; None where there was none.

    Raises ConfigError: it is of another schema.
    """
    own = read_body(kept, lambda body: body.get("answers", {}).get("policy"))
    return read_body(kept, lambda _: answer_weights_from(own["weights"])) if own else None


def kept_weights(kept: Learned) -> LearnedWeights | None:
    """The weights of answers that are used with it; None where nothing could be learned."""
    return read_body(kept, learned_in)


def mean_weights(weights: LearnedWeights, answers: Answers) -> list[list[Any]]:
    """Of each debater with a record: its name, seat, and its mean weight where it answered."""
    own = weights_for(weights, answers)
    found: list[list[Any]] = [
        [agent.name, agent.seat, float(own[answers.who == place].mean())]
        for place, agent in enumerate(answers.agents)
    ]
    return sorted(found, key=lambda row: -float(row[2]))


def _told(fitted: FittedWeights, answers: Answers) -> dict[str, Any]:
    if fitted.trained is None or fitted.reward_model is None:
        raise ConfigError("Expected a trained policy, found none.")
    expected: Numbers = rewards(fitted.reward_model, read_of(answers))
    there = answers.is_there
    return {
        "weights": fitted.weights.to_plain(),
        "curve": [list(pair) for pair in fitted.trained.curve],
        "best": fitted.trained.best,
        "reward_model": asdict(fitted.reward_model),
        "reward_auroc": auroc(answers.is_right[there], expected[there]),
        "answers": int(there.sum()),
    }


def _adapted_gain(new: Answers, before: LearnedWeights) -> Gain:
    """How much lower the log loss of the adapted policy is than that of the kept one."""
    past = dict(zip(before.agents, before.past, strict=True))
    same = tuple(past.get(agent, NOTHING) for agent in new.agents)
    kept = replace(before, agents=new.agents, past=same)
    adapted_p, kept_p = np.empty(len(new)), np.empty(len(new))
    for held in held_out(new.groups, new.labels, SEED):
        rest, asked = new.rows(~held), new.rows(held)
        adapted_p[held] = fit_answers(rest, "policy", before).p(asked)
        kept_p[held] = with_platt(kept, rest).p(asked)
    return gain_over(new.labels, kept_p, adapted_p, numbered(new.groups), SEED)


def policy_words() -> str:
    """What stands in the way of training a policy; "" where nothing does."""
    return "" if is_installed() else MISSING
