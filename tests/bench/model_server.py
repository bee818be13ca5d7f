"""The loopback models in a process of their own: `-m tests.bench.model_server SECONDS_A_CALL`.

Prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from tests.models.cast import Cast, as_json
from tests.models.loopback import Reply, loopback

SPANS = [
    {"reason": "r", "quote": q, "category": "number_or_date", "instead": i, "p": 0.9}
    for q, i in (("512 m", "412 m"), ("1931", "1932"))
]


def main() -> None:
    """Serve one debate after the other."""
    lines = {"debate": Reply("DENY, WRONG. The evidence says otherwise.")}
    cast = Cast(lines | {"spans": as_json({"spans": SPANS})}, pause=float(sys.argv[1]))
    with loopback(cast) as server:
        sys.stdout.write(f"{server.base}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
