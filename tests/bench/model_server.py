"""The loopback models in a process of their own: `-m tests.bench.model_server SECONDS_A_CALL`.

Prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from core.agents.llm_audit import WHOLE_RESPONSE_TASK
from tests.llm.cast import Cast, Part, as_json
from tests.llm.loopback import Asked, Reply, loopback

SPANS = [
    {"reason": "r", "quote": q, "category": "number_or_date", "instead": i, "p": 0.9}
    for q, i in (("512 m", "412 m"), ("1931", "1932"))
]
VOTES = [{"number": 1, "reason": "r", "p": 0.9}]


def picked(asked: Asked) -> Reply:
    """A tool picker that searches for each statement once, and for the response as a whole not."""
    step = {"thought": "t", "tool": "", "input": {}, "label": "unclear", "evidence": ""}
    if "observation (" in asked.prompt:
        return as_json(step | {"label": "hallucinated", "evidence": "It says otherwise."})
    if WHOLE_RESPONSE_TASK in asked.prompt:
        return as_json(step)
    return as_json(step | {"tool": "search", "input": {"query": "<statement>"}, "label": ""})


def main() -> None:
    """Serve one run after the other."""
    parts: dict[str, Part] = {
        "debate": Reply("DENY, WRONG. The evidence says otherwise."),
        "spans": as_json({"spans": SPANS}),
        "panel_spans": as_json({"spans": [SPANS[0] | {"before": "is"}]}),
        "panel_votes": as_json({"votes": VOTES}),
        "pick_tool": picked,
    }
    with loopback(Cast(parts, pause=float(sys.argv[1]))) as server:
        sys.stdout.write(f"{server.base}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
