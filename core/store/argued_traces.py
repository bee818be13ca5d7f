"""What pages rely on in a debate that comes from a file: weights, judgements, people's words.

Each check raises `InputError` with one sentence; `core/store/traces.py` says when each is made.
"""

from __future__ import annotations

import math

from core.argued import LONGEST_REMARK, ConsensusWeighed, JudgementSampled, PersonSpoke
from core.errors import InputError
from core.events import Event, JudgementReached
from core.manners import MOST_ROUNDS, DebateOptions

ROUNDING = 1e-9  # shares are sums of parts
WHOLE = 1e-6  # how near to 1 weights have to come, which are normalised by division


def require_shares(*shares: float | None) -> None:
    """Probabilities, weights and confidences, where there are any."""
    for share in shares:
        if share is not None and not -ROUNDING <= share <= 1 + ROUNDING:
            raise InputError(f"Expected probabilities from 0 to 1 in the trace, found {share}.")


def require_chosen(options: DebateOptions) -> None:
    """Rounds and samples that can be chosen here: pages count calls by them."""
    for number in (options.rounds, options.samples):
        if not 0 <= number <= MOST_ROUNDS:
            raise InputError(
                f"Expected 0 to {MOST_ROUNDS} rounds and samples in the trace, found {number}."
            )


def _require_judgement(event: JudgementReached | JudgementSampled) -> None:
    """A judgement with a p that is one; several are numbered from 1."""
    require_shares(event.judgement.p)
    if event.kind == "judgement_sampled" and event.number < 1:
        raise InputError(
            f"Expected judgements numbered from 1 in the trace, found number {event.number}."
        )


def require_argued(event: Event) -> None:
    """Options, judgements, weights and remarks as a debate of ours can have them."""
    match event.kind:
        case "run_started":
            require_chosen(event.plan.options)
        case "judgement_reached" | "judgement_sampled":
            _require_judgement(event)
        case "consensus_weighed":
            _require_weights(event)
        case "person_spoke":
            _require_remark(event)


def _require_weights(event: ConsensusWeighed) -> None:
    """A weight for each agent once, and all of them together 1."""
    require_shares(event.p, *(weight for _, weight in event.weights))
    whole = math.fsum(weight for _, weight in event.weights)
    if len({name for name, _ in event.weights}) < len(event.weights) or abs(whole - 1) > WHOLE:
        raise InputError(
            "Expected weights of unlike agents that sum to 1 in the trace, found others: "
            f"{len(event.weights)} that sum to {whole:g}."
        )


def _require_remark(event: PersonSpoke) -> None:
    """Words that a person can have said here."""
    if not event.text.strip() or len(event.text) > LONGEST_REMARK:
        raise InputError(
            f"Expected remarks of 1 to {LONGEST_REMARK:,} characters in the trace, found one of "
            f"{len(event.text):,}."
        )
