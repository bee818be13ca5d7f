"""What becomes of a call's row in the ledger: answered, failed, or taken from another run.

An answer settles the reservation at what was used. A failure that nothing is owed for (wrong key,
refused connection) releases it. One after which something may be owed (a silent service, a broken
stream, Stop, an unusable reply) keeps the prompt and what was heard of the reply counted, at an
unknown cost.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal

from core.config import shown_safely
from core.errors import ConfigError, ReplyError
from core.models.call import Completion
from core.models.caps import MOST_TOKENS, NANO, WorstCase, in_nano
from core.models.window import estimated_tokens
from core.records import ModelCall
from core.store.ledger import LedgerRow

Origin = Literal["called", "resumed", "reused"]


def counted(found: Completion, worst: WorstCase) -> Completion:
    """The completion with our figures where the service's are missing or make no sense."""
    tokens_in, tokens_out = (
        min(max(tokens, 0), MOST_TOKENS) for tokens in (found.tokens_in, found.tokens_out)
    )
    is_counted = found.is_counted and tokens_in + tokens_out > 0
    cost = found.cost
    if tokens_in + tokens_out == 0:
        tokens_in, tokens_out, cost = worst.prompt_tokens, estimated_tokens(found.text), None
    if cost is not None and not 0 <= cost < math.inf:
        cost = None
    if cost is None and worst.price is not None:
        cost = (worst.nano(tokens_in, tokens_out) or 0) / NANO
    return replace(
        found, tokens_in=tokens_in, tokens_out=tokens_out, is_counted=is_counted, cost=cost
    )


def answered(row: LedgerRow, completion: Completion, worst: WorstCase) -> LedgerRow:
    """A call that was answered counts with what it used."""
    cost = None if completion.cost is None else in_nano(completion.cost)
    nano, tokens = worst.counts(completion.tokens_in, completion.tokens_out)
    if worst.price is not None and cost is not None:
        nano = cost
    return replace(
        row,
        status="done",
        counts_nano=nano,
        counts_tokens=tokens,
        tokens_in=completion.tokens_in,
        tokens_out=completion.tokens_out,
        is_counted=completion.is_counted,
        cost_nano=cost,
        seconds=completion.seconds,
        reply=shown_safely(completion.text),
        finish=completion.finish,
    )


def failed(
    error: BaseException, row: LedgerRow, worst: WorstCase, heard: str, now: float
) -> LedgerRow:
    """A call that ended in this error: released, or kept at what may be owed for it."""
    problem = shown_safely(str(error) or type(error).__name__)
    seconds = max(0.0, now - row.at)
    if not heard and _is_unbilled(error):
        return replace(released(row, problem), seconds=seconds)
    reply = error.reply if isinstance(error, ReplyError) else ""
    tokens_out = min(estimated_tokens(max(heard, reply, key=len)), worst.reply_tokens)
    return replace(
        unanswered(row, worst, problem, tokens_out), seconds=seconds, reply=shown_safely(reply)
    )


def released(row: LedgerRow, problem: str) -> LedgerRow:
    """Nothing is owed: the reservation is given back."""
    return replace(
        row, status="failed", counts_nano=0, counts_tokens=0, cost_nano=0, problem=problem
    )


def _is_unbilled(error: BaseException) -> bool:
    """True where the service surely charges nothing: it was not reached, or it declined the key."""
    return isinstance(error, ConfigError) or getattr(error, "is_unbilled", False)


def unanswered(row: LedgerRow, worst: WorstCase, problem: str, tokens_out: int) -> LedgerRow:
    """Sent, without a usable answer: prompt and what was heard count, the cost is not known."""
    nano, tokens = worst.counts(worst.prompt_tokens, tokens_out)
    return replace(
        row,
        status="failed",
        counts_nano=nano,
        counts_tokens=tokens,
        tokens_in=worst.prompt_tokens,
        tokens_out=tokens_out,
        cost_nano=0 if worst.price is not None and nano == 0 else None,
        problem=problem,
    )


def reused(row: LedgerRow, other: LedgerRow) -> LedgerRow:
    """The other run's answer as this run's own, for nothing."""
    return replace(
        row,
        status="done",
        reserved_nano=0,
        reserved_tokens=0,
        counts_nano=0,
        counts_tokens=0,
        tokens_in=other.tokens_in,
        tokens_out=other.tokens_out,
        is_counted=other.is_counted,
        cost_nano=0,
        reply=other.reply,
        finish=other.finish,
        reused_from=other.id,
    )


def completion_of(row: LedgerRow) -> Completion:
    """The answer that the ledger kept."""
    return Completion(
        row.reply,
        "length" if row.finish == "length" else "stop",
        row.tokens_in,
        row.tokens_out,
        row.is_counted,
        _dollars(row),
        row.seconds,
    )


def model_call(row: LedgerRow, origin: Origin) -> ModelCall:
    """The row as the trace tells it."""
    return ModelCall(
        id=row.id,
        role=row.role,
        slot=row.slot,
        model=row.model,
        prompt=row.prompt,
        prompt_hash=row.prompt_hash,
        tokens_in=row.tokens_in,
        tokens_out=row.tokens_out,
        cost=_dollars(row),
        seconds=row.seconds,
        origin=origin,
        cut=row.cut,
        problem=row.problem,
    )


def _dollars(row: LedgerRow) -> float | None:
    return None if row.cost_nano is None else row.cost_nano / NANO
