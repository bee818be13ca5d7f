"""The loopback models in a process of their own, as real ones are: `-m tests.bench.model_server`.

Prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from tests.models.cast import Cast, as_json
from tests.models.loopback import Reply, loopback

CALL_SECONDS = 0.2
SPANS = [
    {"reason": "r", "quote": q, "category": "number_or_date", "instead": i, "p": 0.9}
    for q, i in (("512 m", "412 m"), ("1931", "1932"))
]


def main() -> None:
    """Serve one debate after the other, 200 ms a call."""
    lines = {"debate": Reply("DENY, WRONG. The evidence says otherwise.")}
    cast = Cast(lines | {"spans": as_json({"spans": SPANS})}, pause=CALL_SECONDS)
    with loopback(cast) as server:
        sys.stdout.write(f"{server.base}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
