"""What tools reach where no case is checked: the command line's own bench."""

from __future__ import annotations

from collections.abc import Sequence

from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.records import Passage
from core.tools.toolbox import Answer, Bench


def bench_here() -> Bench:
    """A bench with the built-in readers, which are loaded when a tool first asks them."""
    return Bench(Stop(), match=_match)


def _match(statement: str, passages: Sequence[Passage]) -> Answer:
    from core.builtin.judge import BuiltInJudge
    from core.builtin.matching import BuiltInMatcher
    from core.intake.language import language_of
    from core.models.encoder import load_encoder
    from core.models.reader import load_reader

    judge = BuiltInJudge(load_encoder(ENCODER_DIR), load_reader())
    return BuiltInMatcher(judge, language_of(statement), Stop())(statement, passages)
