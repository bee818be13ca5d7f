"""The weights of a project's agents: learned from its answers, kept, taken into use and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from core.errors import ConfigError, InputError
from core.learning.consensus import compare, fit
from core.learning.debate_features import NAMES, SCHEMA, DebateFeatures, features_of
from core.learning.learned_weights import adapted, kept_weights, weights_of_answers
from core.learning.reasoning import Agent, Row, form_of, said_in
from core.learning.reward_policy import require_installed
from core.learning.weights import Votes, Weighting, Weights, weights_from
from core.progress import Progress
from core.records import CONSENSUS
from core.store import Store
from core.store.versions import NONE, Choice, Learned, read_body

KIND = CONSENSUS
FEWEST = 40  # cases
FEWEST_PER_LABEL = 10
FEWEST_OF_AGENT = 10  # cases that an agent must have spoken on to get a weight
KNOWN_FROM = 2  # agents of a run that have a weight, for them to have a consensus
SEED = 11
# Of the debate's features those that are no sums of votes: these are there already, and would blur
# which agent counts how much.
SUMS_OF_VOTES = frozenset(
    {"opening", "closing", "readers", "entailment", "record", "quotes_hallucinated"}
)
BESIDE_VOTES = tuple(name for name in NAMES if name not in SUMS_OF_VOTES)


@dataclass(frozen=True)
class Opinion:
    """What the agents of a run come to by their weights.

    `parts` are what each one's word adds to the log-odds of hallucinated, the weightiest first.
    `unknown` agents spoke too, and have no weight.
    """

    p: float
    weighting: Weighting
    at: float
    n: int
    parts: tuple[tuple[Agent, float, float], ...]
    unknown: tuple[Agent, ...]


def votes_of(rows: Sequence[Row]) -> tuple[Votes, tuple[Agent, ...]]:
    """The runs as votes, each a row, and the agents that are its columns."""
    cases: dict[Agent, set[str]] = {}
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
        features=np.array([_numbers(row.heard.features, BESIDE_VOTES) for row in rows]),
        names=BESIDE_VOTES,
    )
    return votes, agents


def _numbers(features: DebateFeatures, names: Sequence[str]) -> list[float]:
    return [float(getattr(features, name)) for name in names]


def missing(rows: Sequence[Row]) -> str:
    """What is missing before weights can be learned, in words; "" where nothing is."""
    counts = Counter({row.decision.group: row.is_wrong for row in rows}.values())
    sides = [
        f"{FEWEST_PER_LABEL - counts[is_wrong]} {words}"
        for is_wrong, words in ((True, "hallucinated"), (False, "supported"))
        if counts[is_wrong] < FEWEST_PER_LABEL
    ]
    many = max(FEWEST - counts.total(), 0)
    if not many and not sides:
        return ""
    among = f", among them {' and '.join(sides)}" if many and sides else ""
    return f"{many} more decided cases{among}" if many else f"{' and '.join(sides)} cases more"


def learn(
    store: Store,
    project_id: str,
    rows: Sequence[Row],
    author: str,
    now: float,
    *,
    with_policy: bool = False,
) -> int:
    """Compare the weightings on these runs, keep the proposed one's weights; their number.

    Weights of debaters' answers are learned along with them, by a policy too where that is wanted.

    Raises:
        InputError: too little was decided yet, or fewer than two agents spoke often enough.
        NotAllowed: the author is no lead of the project.
        ConfigError: a policy is asked for, and what it is trained with is not installed.
    """
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
        "weights": fit(votes, compared.proposed).to_plain(),
        "agents": [asdict(agent) for agent in agents],
        "compared": asdict(compared),
        "features_schema": SCHEMA,
        "decisions": sorted({row.decision.id for row in rows}),
        "runs": len(rows),
        "seed": SEED,
        "answers": weights_of_answers(rows, with_policy=with_policy),
    }
    return _keep(store, Learned(KIND, project_id, now, author, body), what)


def adapt(store: Store, project_id: str, rows: Sequence[Row], author: str, now: float) -> int:
    """Have the newest policy go on with what was answered since, and keep it; its number.

    Raises:
        InputError: there is no policy yet, or too little was answered since.
        NotAllowed: the author is no lead of the project.
        ConfigError: what a policy is trained with is not installed, or the kept one is damaged.
    """
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
        store.projects.require(project_id, by, "lead", "take weights of agents into use")
        known = store.learned.get(number) if number != NONE else None
        if known is not None:
            weights_in(known)
            kept_weights(known)
        store.learned.use(Choice(KIND, project_id, number, now, by, reason.strip()))


def weights_in(learned: Learned) -> tuple[Weights, tuple[Agent, ...]]:
    """The weights and the agents that they are of.

    Raises:
        ConfigError: they are of another schema.
    """
    weights = weights_from(learned.body.get("weights"))
    agents = read_body(learned, lambda body: tuple(Agent(**own) for own in body["agents"]))
    is_known = learned.body.get("features_schema") == SCHEMA and set(weights.names) <= set(NAMES)
    if not is_known or tuple(agent.key for agent in agents) != weights.agents:
        raise ConfigError("Expected weights of this version's agents; learn them anew.")
    return weights, agents


def opinion(learned: Learned, progress: Progress) -> Opinion | None:
    """What the run's agents come to; None where fewer than two of them, or than half, are known.

    Raises:
        ConfigError: the weights are of another schema.
    """
    weights, agents = weights_in(learned)
    last, _, _ = said_in(progress)
    known = [agent for agent in agents if agent in last]
    if progress.case is None or len(known) < KNOWN_FROM or 2 * len(known) < len(last):
        return None
    said = np.array([[last.get(agent, np.nan) for agent in agents]])
    kinds = (form_of(progress.case, len(progress.statements)),)
    features = np.array([_numbers(features_of(progress), weights.names)])
    added = weights.parts(said, kinds)[0]
    parts = [(agent, last[agent], float(added[agents.index(agent)])) for agent in known]
    return Opinion(
        p=float(weights.p(said, kinds, features)[0]),
        weighting=weights.weighting,
        at=learned.at,
        n=read_body(learned, lambda body: int(body["compared"]["groups"])),
        parts=tuple(sorted(parts, key=lambda part: -abs(part[2]))),
        unknown=tuple(sorted(agent for agent in last if agent not in agents)),
    )


def counts_for(weights: Weights, agents: Sequence[Agent]) -> list[dict[str, Any]]:
    """How much each agent counts: what saying hallucinated or supported adds, mean over kinds."""
    table = np.array(weights.table)
    mean = table[:-1].mean(axis=0) if len(table) > 1 else table[0]
    found = [
        {"agent": agent, "hallucinated": float(own[0]), "supported": float(own[1])}
        for agent, own in zip(agents, mean, strict=True)
    ]
    return sorted(found, key=lambda own: -abs(own["hallucinated"] - own["supported"]))
