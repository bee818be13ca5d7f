"""The weights w(Q; θ) of a project's debaters: learned from its answers, and adapted to newer ones.

They are kept beside the weights of all agents (`learned_consensus.py`), under the same number: what
a lead takes into use there is what weighs answers in debates from then on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from core.errors import ConfigError, InputError
from core.learning.answer_figures import Gain, compare_answers, gain_over
from core.learning.answer_weights import Fitted, fit, with_platt
from core.learning.answers import Answers, answers_of, past_of, read_of, weights_for
from core.learning.metrics import auroc
from core.learning.reasoning import Row
from core.learning.reward_policy import MISSING, is_installed, rewards
from core.learning.weights import Numbers, folds, numbered
from core.store.versions import Learned, read_body
from core.verdict.weigher import METHODS, NOTHING, LearnedWeights, Method, learned_in, weights_from

SEED = 11
FEWEST = 40  # groups of debates
FEWEST_NEW = 20  # groups of debates that were answered since, for a policy to go on with
FEWEST_PER_LABEL = 10
FEWEST_PER_LABEL_NEW = 5


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


def weights_of_answers(rows: Sequence[Row], *, with_policy: bool) -> dict[str, Any]:
    """What is kept of the weightings of debaters' answers, as JSON can hold it.

    `lacking` says why there are none. `weights` are those of the method that is used, `policy` the
    policy's own where one was trained, used or not.

    Raises:
        ConfigError: a policy is asked for, and what it is trained with is not installed.
    """
    answers = answers_of(rows)
    words = lacking(answers)
    if words:
        return {"lacking": words}
    methods: tuple[Method, ...] = METHODS if with_policy else METHODS[:-1]
    compared = compare_answers(answers, methods, seed=SEED)
    fitted = {method: fit(answers, method) for method in {compared.used, methods[-1]}}
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


def adapted(kept: Learned, rows: Sequence[Row]) -> dict[str, Any]:
    """The same of a kept policy that went on with what was answered since (SC-MAKS 3.5).

    It is used where it does better than the kept one on the new answers, beyond chance; the new
    ones are dealt into folds, and no case is judged by a policy that it taught.

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
    found = fit(new, "policy", before)
    past, everybody = past_of(whole)
    after = replace(found.weights, agents=whole.agents, past=past, whole=everybody)
    is_better = gain.low > 0.0
    own: dict[str, Any] = dict(kept.body["answers"])
    own["policy"] = _told(replace(found, weights=after), new) if is_better else own["policy"]
    if is_better:
        own |= {"weights": after.to_plain(), "mean_weights": mean_weights(after, whole)}
    own["adapted"] = {
        "gain": asdict(gain),
        "n": len(new),
        "groups": len(set(new.groups)),
        "is_used": is_better,
    }
    own["decisions"] = sorted(known | {row.decision.id for row in rows})
    return own


def kept_policy(kept: Learned) -> LearnedWeights | None:
    """The policy that was trained with it; None where there was none.

    Raises:
        ConfigError: it is of another schema.
    """

    def read(body: Mapping[str, Any]) -> LearnedWeights | None:
        own = body.get("answers", {}).get("policy")
        return weights_from(own["weights"]) if own else None

    return read_body(kept, read)


def kept_weights(kept: Learned) -> LearnedWeights | None:
    """The weights of answers that are used with it; None where nothing could be learned of them.

    Raises:
        ConfigError: they are of another schema.
    """
    return read_body(kept, learned_in)


def mean_weights(weights: LearnedWeights, answers: Answers) -> list[list[Any]]:
    """Of each debater with a record: its name, seat, and its mean weight where it answered."""
    own = weights_for(weights, answers)
    found: list[list[Any]] = []
    for place, agent in enumerate(answers.agents):
        spoke = answers.who == place
        found.append([agent.name, agent.seat, float(own[spoke].mean())])
    return sorted(found, key=lambda row: -float(row[2]))


def _told(fitted: Fitted, answers: Answers) -> dict[str, Any]:
    """A policy with how its training went, and how well the reward model ranks answers."""
    if fitted.trained is None or fitted.reward_model is None:
        raise ConfigError("Expected a trained policy, found none.")
    expected: Numbers = rewards(fitted.reward_model, read_of(answers))
    there = answers.is_there
    return {
        "weights": fitted.weights.to_plain(),
        "curve": [list(pair) for pair in fitted.trained.curve],
        "best": fitted.trained.best,
        "reward_model": fitted.reward_model.to_plain(),
        "reward_auroc": auroc(answers.is_right[there], expected[there]),
        "answers": int(there.sum()),
    }


def _adapted_gain(new: Answers, before: LearnedWeights) -> Gain:
    """How much lower the log loss of the adapted policy is than that of the kept one."""
    fold = folds(new.groups, new.labels, SEED)
    adapted_p, kept_p = np.empty(len(new)), np.empty(len(new))
    for own in np.unique(fold):
        held = fold == own
        rest, asked = new.rows(~held), new.rows(held)
        adapted_p[held] = fit(rest, "policy", before).p(asked)
        kept_p[held] = with_platt(_of(before, new), rest).p(asked)
    return gain_over(new.labels, kept_p, adapted_p, numbered(new.groups), SEED)


def _of(before: LearnedWeights, new: Answers) -> LearnedWeights:
    """The kept weights with its agents in the order of these answers."""
    place = {agent: number for number, agent in enumerate(before.agents)}
    past = tuple(before.past[place[a]] if a in place else NOTHING for a in new.agents)
    return replace(before, agents=new.agents, past=past)


def policy_words() -> str:
    """What stands in the way of training a policy; "" where nothing does."""
    return "" if is_installed() else MISSING
