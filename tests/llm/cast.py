"""A cast for the loopback server: one sensible answer for each role, faults where a test wants."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.llm.loopback import Asked, Reply

SIGNS = {
    "image_question": "You prepare the reading of an image",
    "image_reading": "You read one image for a fact check",
    "context": "You put the evidence in order",
    "debate": "You are an expert debater",
    "judge": "You are the neutral judge",
    "segment": "You cut a text into its statements",
    "pick_tool": "You check one statement of a response",
    "reflect": "Each statement of a response was checked by itself",
    "spans": "You mark the words of a response",
    "span_vote": "You vote on whether certain words",
    "panel_spans": "You annotate answers for hallucinations",
    "panel_votes": "Somebody has marked words of an answer",
}
Part = Reply | Callable[[Asked], Reply]


def role_of(asked: Asked) -> str:
    """Whose prompt this is; empty for none of ours."""
    return next((role for role, sign in SIGNS.items() if sign in asked.prompt), "")


def as_json(value: object) -> Reply:
    """A reply that is a JSON object."""
    return Reply(json.dumps(value, ensure_ascii=False))


def judged(verdict: int, why: str = "The evidence decides it.") -> Reply:
    """A judge's reply."""
    return Reply(f"{why}\nVerdict: {verdict}")


def endless() -> Reply:
    """A reply that goes on beyond what any answer has."""
    return Reply("word " * 210_000, piece=200_000)


def oversized() -> Reply:
    """A reply far longer than its seat allows, and of no use."""
    return Reply("word " * 60_000, piece=50_000)


USUAL: Mapping[str, Part] = {
    "image_question": Reply("Say which bars there are and how tall each of them is."),
    "image_reading": Reply("The chart shows that Switzerland imported the most in 2018."),
    "context": as_json(
        {
            "facts": [{"claim": "The tower is 412 m tall.", "passages": ["P1"]}],
            "conflicts": [],
            "shares": {"Ada": ["P1"], "Ben": ["P1"]},
            "summary": "The sources speak of the tower's height.",
        }
    ),
    "debate": Reply("DENY, WRONG. The evidence says otherwise, so the claim fails."),
    "judge": judged(0),
    "segment": as_json({"statements": []}),
    "pick_tool": as_json(
        {"thought": "412.", "tool": "", "input": {}, "label": "hallucinated", "evidence": "412 m"}
    ),
    "reflect": as_json({"changes": []}),
    "spans": as_json({"spans": []}),
    "span_vote": as_json({"reason": "It says otherwise.", "hallucinated": True, "p": 0.9}),
}


@dataclass
class Cast:
    """Answers by role; `pause` seconds before each. A part may be a function of what was asked."""

    parts: Mapping[str, Part] = field(default_factory=dict)
    pause: float = 0.0

    def __call__(self, asked: Asked) -> Reply:
        role = role_of(asked)
        part = self.parts.get(role) or USUAL.get(role) or Reply("OK")
        reply = part(asked) if callable(part) else part
        if self.pause and not reply.pause:
            return Reply(**(reply.__dict__ | {"pause": self.pause}))
        return reply


def in_turn(*replies: Reply) -> Callable[[Asked], Reply]:
    """These replies one after the other; the last one again and again."""
    waiting = list(replies)

    def answer(_: Asked) -> Reply:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return answer
