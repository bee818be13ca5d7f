"""Replies that any protocol can use, for whoever is asked: debaters never agree, nothing settles.

So every protocol goes its whole length. Prompts with a form of their own have it in `OWN`.
"""

from __future__ import annotations

from collections.abc import Mapping

from core.debate.protocols import DEBATES, PROTOCOLS
from core.llm.prompting import FIELDS, load_shipped_prompt
from core.schema.rosters import ABLATION_PARTS, ANSWERING_MODES, DebateOptions
from tests.llm.loopback import Asked

OWN: Mapping[str, str] = {
    "context": '{"facts": [], "conflicts": [], "shares": {}, "summary": "Its height is given."}',
    "segment": '{"statements": []}',
    "spans": '{"spans": []}',
    "summary": "Ben quotes the height, and Ada does not answer it.",
    "corrected": "<<<TEXT\nThe tower is 412 m tall.\nTEXT>>>",
    "span_vote": '{"reason": "It says otherwise.", "hallucinated": true, "p": 0.9}',
}
SIDES = {"Ada": "CORRECT", "Ben": "WRONG", "Cleo": "CORRECT"}
# Where its usual options would not have it go its whole length.
USUAL: Mapping[str, DebateOptions] = {
    "single": DebateOptions(samples=3),
    "adaptive": DebateOptions(samples=2),  # which divide
}


def reply_to(prompt: str, debater: str, slot: str) -> str:
    """What is said to that prompt; of a single judge's samples every other one is for the claim."""
    if prompt in OWN:
        return OWN[prompt]
    if prompt in ("detect", "critique", "revise"):
        return _mending(prompt, debater)
    if prompt == "judge_rerank":
        return "Both put the height right.\nBest: 1"
    if prompt == "judge_moderate":
        return "The last argument stands unanswered.\nVerdict: go on"
    if prompt.startswith("judge"):
        number = int(slot.removeprefix("judge").strip() or 1)
        return f"The source gives the height.\nVerdict: {number % 2}"
    side = SIDES.get(debater, "WRONG")
    first = f"DENY, {side}" if prompt in ANSWERING_MODES else side
    if prompt in ("advise", "attack") and side == "WRONG":  # so that the weights do not balance
        return f"{first}. It says “The tower is 412 m tall.”"
    return f"{first}. The source gives the height.\nConfidence: 80\nDoubt: another tower"


def _mending(prompt: str, debater: str) -> str:
    """All contest the height of the tower, and each mends it in words of its own."""
    if prompt == "revise":
        return f"<<<TEXT\nThe tower is 412 m tall, by {debater}.\nTEXT>>>"
    first = "AGREE, WRONG" if prompt in ANSWERING_MODES else "WRONG"
    place = "“512 m” -> “412 m”" if prompt == "critique" else "“512 m”"
    return f"{first}. The source gives the height.\nWords: {place}\nConfidence: 80"


def prompt_of(asked: Asked) -> str:
    """The prompt that a request is made of; of prompts that begin alike the first."""
    return next((name for name, start in _STARTS.items() if start in asked.prompt), "")


def ways() -> list[tuple[str, DebateOptions]]:
    """Every protocol, with what can be chosen of it, and adaptive over every debate."""
    found = [(name, USUAL.get(name, DebateOptions())) for name in PROTOCOLS]
    for name, protocol in PROTOCOLS.items():
        if "rounds" in protocol.options:
            found.append((name, DebateOptions(rounds=1)))
        if "is_swapped" in protocol.options:
            found.append((name, DebateOptions(is_swapped=True)))
        if "without" in protocol.options:
            found += [(name, DebateOptions(without=part)) for part in ABLATION_PARTS]
    return found + [("adaptive", DebateOptions(samples=2, then=then)) for then in DEBATES]


def way_name(way: tuple[str, DebateOptions]) -> str:
    """A way as a test names it."""
    name, options = way
    chosen = [f"{key}={value}" for key, value in vars(options).items() if value]
    return " ".join([name, *chosen])


def _start(name: str) -> str:
    """The first words of its system part up to the first field."""
    text = load_shipped_prompt(name, "en").text.split("## System", 1)[-1]
    return text.split("## User")[0].split("${")[0].strip()[:120]


_STARTS = {name: _start(name) for name in FIELDS if name != "mend"}
