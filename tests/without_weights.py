"""`python -m tests.without_weights` is `python -m core` with a reader that has no weights.

PAUSE in the environment is how many seconds the reader takes for what it is asked at once.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence

import core.baseline.entailment
from core.__main__ import main
from core.baseline.entailment import EntailmentReading, EvidenceClaimPair
from core.runtime.concurrency import StopSignal
from tests.readers import PawReader, assessor_with


class UnhurriedReader(PawReader):
    """Takes its time, so that a test can step in."""

    def read(
        self, pairs: Sequence[EvidenceClaimPair], stop: StopSignal | None = None
    ) -> list[EntailmentReading]:
        time.sleep(float(os.environ.get("PAUSE", "0")))
        return super().read(pairs, stop)


if __name__ == "__main__":
    # Tests that a shell runs in the background pass on that they ignore Ctrl-C.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assessor = assessor_with(UnhurriedReader())
    core.baseline.entailment.load_shared_assessor = lambda: assessor  # type: ignore[assignment]
    sys.exit(main())
