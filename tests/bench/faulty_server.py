"""Models of which a fifth of the answers are faults: `-m tests.bench.faulty_server`.

Prints its address and serves until its standard input ends; then it prints how many faults it made
and when each request arrived, in seconds of a monotonic clock, as JSON.
"""

from __future__ import annotations

import json
import random
import sys
from collections import Counter

from tests.debate.test_all_protocols_served import sensible
from tests.llm.loopback import Asked, Fault, Reply, loopback

SHARE, SEED = 0.2, 7
FAULTS: tuple[Fault, ...] = ("hang_up", "cut_off", "malformed", "no_finish", "empty_body")


def main() -> None:
    """Serve one grid."""
    chance, faults = random.Random(SEED), Counter[str]()

    def answer(asked: Asked) -> Reply:
        if chance.random() >= SHARE:
            return sensible(asked)
        fault = chance.choice((*FAULTS, *["overloaded"] * len(FAULTS)))
        faults[fault] += 1
        if fault == "overloaded":
            return Reply(status=503, headers={"Retry-After": "0"})
        return Reply(sensible(asked).text, fault=fault)  # type: ignore[arg-type]

    with loopback(answer) as server:
        sys.stdout.write(f"{server.base}\n")
        sys.stdout.flush()
        sys.stdin.read()
        times = sorted(asked.at for asked in server.asked)
    json.dump({"faults": sum(faults.values()), "times": times}, sys.stdout)


if __name__ == "__main__":
    main()
