"""Models that never agree, in a process of their own: `-m tests.bench.arguing_server SECONDS`.

Prints its address and serves until its standard input ends.
"""

from __future__ import annotations

import sys

from tests.debate.scripts import prompt_of, reply_to
from tests.llm.loopback import Asked, Reply, loopback

NAMES = ("Ada", "Ben", "Cleo", "Dora")


def main() -> None:
    """Serve one run after the other; every reply takes so many seconds."""
    seconds = float(sys.argv[1])

    def reply(asked: Asked) -> Reply:
        debater = next((name for name in NAMES if f"You are {name}" in asked.prompt), "")
        return Reply(reply_to(prompt_of(asked), debater, ""), pause=seconds)

    with loopback(reply) as server:
        sys.stdout.write(f"{server.base}\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
