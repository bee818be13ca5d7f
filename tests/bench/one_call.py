"""The processor time of one call to a model, in this process; the models are in another.

Wall time tells nothing of it on a busy machine, and side by side it is what calls wait for.
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from core.llm.call import Call, Message, ModelRequest, ignore_piece
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.schema.rosters import AgentConfig
from core.store import open_store
from tests.bench.with_models import models

SERVER = "tests.bench.saying_server"
WARM = 5
LINE = "The tower of the old town is 412 m tall and was opened in the year 1931."
PROMPT = "\n".join(f"{number}. {LINE}" for number in range(40))  # 3,000 characters


def of_a_call(folder: Path, repeats: int, pieces: int) -> tuple[list[float], list[float]]:
    """Milliseconds each of so many calls, whose answers come in so many pieces.

    By the client alone, and with the ledger and the caps around it.
    """
    # A run has a connection of its own open meanwhile: the last one to close tidies up.
    with models(pieces, SERVER) as base, open_store(folder):
        model, stop = ModelClient(Keys({})), StopSignal()
        account = CallAccount("run", "Mira", "project")
        desk = MeteredClient(model, folder, account, SpendingCaps.of(Settings()), time.time)
        numbers = itertools.count()

        def call() -> Call:
            text = f"{PROMPT}\nThis is question {next(numbers)}."
            return Call(
                AgentConfig("openai/saying", base, temperature=0.3), (Message("user", text),)
            )

        def booked() -> None:
            asked = call()
            desk.ask(ModelRequest("judge", asked.messages[0].text[-20:], asked), stop)

        alone = _spent(lambda: model.complete(call(), ignore_piece, stop), repeats)
        return alone, _spent(booked, repeats)


def _spent(act: Callable[[], object], repeats: int) -> list[float]:
    found = []
    for _ in range(WARM + repeats):
        before = time.process_time()
        act()
        found.append(1000 * (time.process_time() - before))
    return found[WARM:]


def middle(figures: list[float]) -> list[float]:
    """The quartiles: the least and the most of a hundred are other people's doing."""
    return statistics.quantiles(figures, n=4)
