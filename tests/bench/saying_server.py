"""A model that answers at once, in a process of its own: `-m tests.bench.saying_server PIECES`.

Prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from tests.llm.loopback import Reply, loopback

PIECE = "word "


def main() -> None:
    """Serve one call after the other."""
    reply = Reply(PIECE * int(float(sys.argv[1])), piece=len(PIECE))
    with loopback(reply) as server:
        sys.stdout.write(f"{server.base}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
