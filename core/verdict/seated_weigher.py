"""Seats what weighs the debaters' answers in a run: the weights that were in use when it began."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from core.errors import ConfigError
from core.learned_marks import CONSENSUS
from core.records import Run
from core.reuse import rule_digest
from core.roles import Roster
from core.seats import RosterSheet
from core.store import Store
from core.store.learned import NONE, read_body
from core.verdict.weigher import Answerer, LearnedWeigher, LearnedWeights, weights_from


def with_weigher(roster: Roster, store: Store, run: Run) -> Roster:
    """The roster with the weigher of the run's plan; as it is where nothing learned is in use.

    Raises:
        ConfigError: the weights are not here, or not as they were learned.
    """
    number = run.plan.agent_weights
    if number == NONE:
        return roster
    found = store.learned.get(number)
    if found is None or (found.kind, found.project_id) != (CONSENSUS, run.project_id):
        raise ConfigError(
            f"Expected weights of agents number {number}, with which this run began, found none "
            "here; check the case again, and it goes by what is in use now."
        )
    learned = read_body(found, learned_in)
    if learned is None:
        return roster
    return replace(
        roster, weigher=LearnedWeigher(learned, answerers(roster, run.plan.sheet), number)
    )


def learned_in(body: Mapping[str, Any]) -> LearnedWeights | None:
    """The weights of answers in use; None where none were learned, or there was too little.

    Raises:
        ConfigError: they are of another schema.
    """
    own = body.get("answers", {}).get("weights")
    return weights_from(own) if own else None


def answerers(roster: Roster, sheet: RosterSheet | None) -> dict[str, Answerer]:
    """Who answers under each name of the debate; a built-in agent has no model."""
    models = {role: seat.model for role, seat in sheet.seats()} if sheet else {}
    found = {
        name: Answerer(
            agent.name,
            "" if agent.built_in else models.get(f"debater {name}", ""),
            rule_digest(agent.rule),
        )
        for name, agent in roster.debaters.items()
    }
    count = Counter(found.values())
    return {name: replace(a, seat=name) if count[a] > 1 else a for name, a in found.items()}
