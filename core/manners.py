"""In which manner debaters and judges are asked, and what can be chosen of a protocol."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

# What a debater is asked for; core/roles.py says of each what it sees and says.
Manner = Literal[
    "debate", "answer", "reconsider", "collaborate", "compete", "tit_for_tat",
    "detect", "critique", "revise", "advise", "attack",
]  # fmt: skip
# These answer somebody: AGREE or DENY first, then the stance. All others begin with the stance.
ANSWERING: frozenset[Manner] = frozenset({"debate", "tit_for_tat", "critique", "advise", "attack"})
# These name words of the response, in lines of a form of their own (MAMM-REFINE).
NAMING: frozenset[Manner] = frozenset({"detect", "critique"})
# How a judge is asked; core/roles.py says what each of them reads.
JudgeManner = Literal[
    "debate", "plain", "thought", "examples", "collaborate", "compete", "moderate",
    "rerank",
]  # fmt: skip
# What a protocol can have chosen of it: `turns` is the plan's, the others are fields below.
Option = Literal["turns", "rounds", "samples", "style", "is_swapped", "seed", "then", "without"]
# What SC-MAKS can be held without, to see what it is worth (SC-MAKS 4.10).
Part = Literal["", "cooperation", "adversary", "weights"]
PARTS: tuple[Part, ...] = ("cooperation", "adversary", "weights")
# All ways to argue, in the order in which they are offered; `core/debate/protocols.py` has each
# with its code. Kept here, so that a page that only names them, or a trace, loads none.
NAMES = (
    "ceda",
    "single",
    "ensemble",
    "colmad",
    "copmad",
    "society",
    "mad",
    "mamm_refine",
    "sc_maks",
    "adaptive",
)
# Those that an adaptive check can go on to.
DEBATE_NAMES = tuple(name for name in NAMES if name not in ("single", "adaptive"))
STYLES: tuple[JudgeManner, ...] = ("plain", "thought", "examples")  # of a single judge
MOST_ROUNDS = 20  # and samples
LINES_TOKENS = 80  # for lines of their own after a turn
TEXT_SHARE = 1.5  # of the response's own tokens, for one that is given mended


@dataclass(frozen=True)
class DebateOptions:
    """What can be chosen of a protocol; 0 and "" are its own defaults.

    `rounds` are those of debate after the first answers. `samples` judgements are drawn and the
    label of more than half is taken (self-consistency); a coin that is needed comes from `seed`.
    `style` is how a single judge is asked: plainly, for its chain of thought, or by examples.
    `is_swapped`: debaters change places; CopMAD's judge hears both orders. `then` is the protocol
    that an adaptive check goes on to. `without` leaves one part of SC-MAKS out: its cooperative
    phase, its adversarial one, or learned weights, so that all count alike.
    """

    rounds: int = 0
    samples: int = 0
    style: Literal["", "plain", "thought", "examples"] = ""
    is_swapped: bool = False
    seed: int = 0
    then: str = ""
    without: Part = ""

    @property
    def chosen(self) -> dict[str, Any]:
        """What was chosen, by name; what is left to the protocol is not among it."""
        of_each = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return {name: own for name, own, usual in of_each if own != usual}


AS_IS = DebateOptions()


def judge_prompt(manner: JudgeManner) -> str:
    """The name of the prompt that asks a judge in that manner."""
    return "judge" if manner == "debate" else f"judge_{manner}"


def turn_tokens(manner: Manner, allowed: int, response: int) -> int:
    """The longest reply, in tokens, of a debater who is asked in that manner.

    What its seat allows is CEDA's turn (4.4); other manners want lines of their own after it:
    confidence, doubt, places. A mended text is as long as the `response`, in tokens.
    """
    if manner == "debate":
        return allowed
    longest = max(allowed, int(TEXT_SHARE * response)) if manner == "revise" else allowed
    return longest + LINES_TOKENS
