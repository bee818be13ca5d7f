"""What agents answered, with the features of each answer and what people said: what w(Q; θ) learns.

Source: SC-MAKS 3.5, whose data are tuples (Q, O_i, C_ij, O_gold).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from core.learning.metrics import (
    HALLUCINATED,
    SUPPORTED,
    UNCLEAR,
    Flags,
    Numbers,
    Places,
    numbered,
    subset,
)
from core.learning.reasoning import Agent, Row
from core.schema.records import Stance
from core.verdict.consensus_weights import (
    NAMES,
    NOTHING,
    STANCES,
    Answerer,
    LearnedWeights,
    PastAnswers,
    softmax,
    vector,
    with_the_mean,
)

FEWEST_OF_AGENT = 10  # groups of cases that an agent must have answered to have a record
STRANGER = -1
VALUES = (HALLUCINATED, SUPPORTED, UNCLEAR)  # of STANCES


@dataclass(frozen=True)
class Answers:
    """n debates with up to s answers each.

    `said` is (n, s): 1 hallucinated, 0 supported, one half unclear, NaN where there is no answer.
    `who` is (n, s), the answerer's place in `agents`, -1 without a record. `features` is (n, s, d)
    in the order of `NAMES`. `labels` is (n,), 1 hallucinated. `graded` is (n,) how well people
    rated the response, from 0 to 1, NaN where they did not. Debates of one group lie on one side of
    a fold.
    """

    agents: tuple[Answerer, ...]
    said: Numbers
    who: Places
    features: Numbers
    labels: Numbers
    graded: Numbers
    groups: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    @property
    def is_there(self) -> Flags:
        """(n, s) True where there is an answer."""
        return np.asarray(~np.isnan(self.said))

    @property
    def is_right(self) -> Flags:
        """(n, s) True where the answer takes the side that people decided on; never for unclear."""
        decided = self.is_there & (self.said != UNCLEAR)
        return np.asarray(decided & ((self.said > UNCLEAR) == (self.labels[:, None] == 1.0)))

    def rows(self, which: Places | Flags) -> Answers:
        """The same of these debates only, in this order."""
        names = ("said", "who", "features", "labels", "graded", "groups")
        return subset(self, which, *names)


def answers_of(rows: Sequence[Row]) -> Answers:
    """The debates of these runs; a run in which nobody answered is left out."""
    heard = [row for row in rows if row.heard.answers]
    many = max((len(row.heard.answers) for row in heard), default=0)
    groups: dict[Answerer, set[str]] = {}
    for row in heard:
        for agent in row.heard.answers:
            groups.setdefault(answerer(agent), set()).add(row.decision.group)
    agents = tuple(sorted(a for a, own in groups.items() if len(own) >= FEWEST_OF_AGENT))
    shape = (len(heard), many)
    said, who = np.full(shape, np.nan), np.full(shape, STRANGER)
    features = np.full((*shape, len(NAMES)), np.nan)
    for n, row in enumerate(heard):
        for s, (agent, own) in enumerate(row.heard.answers.items()):
            said[n, s] = (1.0 + own.side) / 2.0
            who[n, s] = agents.index(answerer(agent)) if answerer(agent) in agents else STRANGER
            features[n, s] = vector(own)
    return Answers(
        agents,
        said,
        who.astype(np.int64),
        features,
        np.array([float(row.is_wrong) for row in heard]),
        np.array([np.nan if row.graded is None else row.graded for row in heard]),
        tuple(row.decision.group for row in heard),
    )


def answerer(agent: Agent) -> Answerer:
    """The agent as a run's weigher knows it."""
    return Answerer(agent.name, agent.model, agent.rules, agent.seat)


def past_of(answers: Answers) -> tuple[tuple[PastAnswers, ...], PastAnswers]:
    """Each agent's past, and that of everybody together."""
    counts = _counts(answers).sum(axis=0)
    each = tuple(_past(own) for own in counts[: len(answers.agents)])
    return each, _past(counts.sum(axis=0))


def read_of(answers: Answers, learned: LearnedWeights | None = None) -> Numbers:
    """(n, s, d + 1) features with the log-odds by the answerer's past; NaN where no answer is.

    Without learned weights each answer's past is that of the other groups: it must not know the
    debate's own right answer.
    """
    odds = np.full(answers.said.shape, np.nan)
    if learned is not None:
        past, whole = learned.past, learned.whole
        for n, s in np.argwhere(answers.is_there):
            own = past[answers.who[n, s]] if answers.who[n, s] != STRANGER else NOTHING
            odds[n, s] = own.log_odds(_stance(answers.said[n, s]), whole)
    else:
        _without_own_group(answers, odds)
    return np.concatenate([answers.features, odds[:, :, None]], axis=2)


def weights_for(learned: LearnedWeights, answers: Answers) -> Numbers:
    """(n, s) what the weigher in a run gives each answer; 0 where there is none."""
    there, known = answers.is_there, answers.who != STRANGER
    if learned.policy is not None:
        raw = softmax(learned.policy.scores(read_of(answers, learned)), there)
    elif learned.method == "uniform":
        raw = there.astype(np.float64)
    else:
        raw = np.where(known, np.array([*learned.fixed, 0.0])[answers.who], 0.0)
    found = np.zeros(answers.said.shape)
    for n in range(len(answers)):
        own = there[n]
        found[n, own] = with_the_mean(raw[n, own].tolist(), known[n, own].tolist())
    return found


def shares(weights: Numbers, answers: Answers) -> Numbers:
    """(n,) the weighted share of those who say hallucinated, unclear counting half."""
    return np.asarray((weights * np.nan_to_num(answers.said, nan=0.0)).sum(axis=1))


def _without_own_group(answers: Answers, odds: Numbers) -> None:
    counts = _counts(answers)
    whole, group = counts.sum(axis=0), numbered(answers.groups)
    for place in np.unique(group):
        rows = np.flatnonzero(group == place)
        rest = whole - counts[rows].sum(axis=0)
        past, everybody = [_past(own) for own in rest], _past(rest.sum(axis=0))
        for n, s in np.argwhere(answers.is_there[rows]):
            who = answers.who[rows[n], s]
            own = past[who] if who != STRANGER else NOTHING
            odds[rows[n], s] = own.log_odds(_stance(answers.said[rows[n], s]), everybody)


def _counts(answers: Answers) -> Numbers:
    """(n, agents + 1, 3, 2) of each debate: how many answers by stance, right and all.

    The last agent stands for all without a record.
    """
    found = np.zeros((len(answers), len(answers.agents) + 1, len(STANCES), 2))
    right = answers.is_right
    for n, s in np.argwhere(answers.is_there):
        place = VALUES.index(answers.said[n, s])
        found[n, answers.who[n, s], place] += (float(right[n, s]), 1.0)
    return found


def _past(counts: Numbers) -> PastAnswers:
    """Of (3, 2) counts."""
    right, n = counts.T.tolist()
    return PastAnswers(tuple(right), tuple(n))


def _stance(said: float) -> Stance:
    return STANCES[VALUES.index(said)]
