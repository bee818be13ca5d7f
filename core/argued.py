"""Events of debates beyond turns and judgement: people heard, rounds in brief, votes, revisions.

They are part of the one union in `core/events.py`, which says what holds of all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from core.records import Judgement

LONGEST_REMARK = 2000  # characters


@dataclass(frozen=True)
class PersonSpoke:
    """A person spoke in the middle of the debate (SC-MAKS 5.4); the next turns hear it."""

    at: float
    by: str
    text: str
    kind: Literal["person_spoke"] = "person_spoke"


@dataclass(frozen=True)
class DebateNoted:
    """How the debate is held where that is not as the roster or the plan would have it.

    Nothing failed: the same inputs come to the same note, and it keeps nobody from taking over.
    """

    at: float
    words: str
    kind: Literal["debate_noted"] = "debate_noted"


@dataclass(frozen=True)
class RoundSummarised:
    """What was said up to the end of a round, in brief, for the turns after it (SC-MAKS 3.4)."""

    at: float
    agent: str
    round: int
    text: str
    kind: Literal["round_summarised"] = "round_summarised"


@dataclass(frozen=True)
class DebateDecided:
    """Whether an adaptive check goes on to a debate, and why (SC-MAKS 2.2)."""

    at: float
    is_needed: bool
    why: str
    then: str
    kind: Literal["debate_decided"] = "debate_decided"


@dataclass(frozen=True)
class JudgementSampled:
    """One judgement of several that the run's own follows from; `number` starts at 1.

    `note` says what is different about it: a sample, an order of the debaters, a round.
    """

    at: float
    judgement: Judgement
    number: int
    note: str
    seconds: float
    cost: float | None = 0.0
    kind: Literal["judgement_sampled"] = "judgement_sampled"


@dataclass(frozen=True)
class ConsensusWeighed:
    """The agents' weights w(Q), which sum to 1, and what they come to (SC-MAKS 3.2, 3.5).

    `method` names where the weights come from; `p` is the weighted share of those who call the
    response hallucinated, an open stance counting half.
    """

    at: float
    method: str
    weights: tuple[tuple[str, float], ...]
    p: float
    kind: Literal["consensus_weighed"] = "consensus_weighed"


@dataclass(frozen=True)
class ResponseRevised:
    """The response as it should read (SC-MAKS 3.2, MAMM-REFINE); a person takes it or leaves it."""

    at: float
    agent: str
    text: str
    kind: Literal["response_revised"] = "response_revised"
