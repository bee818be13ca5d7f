"""Keeps a queue's order fresh in the background: what is unlike all that was answered moves up.

What an item's run tells (unsure, disagreed on) is known when it is queued; how unlike it is to the
others changes with every answer. So it is worked out for the items that teach most, in a thread of
its own, and stored: whoever claims an item only looks it up.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.baseline.encoder import load_multilingual_encoder
from core.choosing import FIRST, SHARES, spread
from core.errors import ReviewError
from core.models.encoder import Embedder
from core.store import Store, open_store
from core.store.queue import Asked
from core.store.sqlite import Mark

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vector = npt.NDArray[np.float32]

LOGGER = logging.getLogger(__name__)
FEWEST = 20  # of fewer all are answered soon, in whatever order
MOST = 500  # a claim gives what stands on top: the others wait for their turn
MOST_ANSWERED = 500
AT_ONCE = 500  # items changed in one transaction
VECTORS_KEPT = 4000  # some 6 MB
EVERY_SECONDS = 30.0
BREATH = 0.005  # seconds between two texts, or transactions: pages want their turn, too
Load = Callable[[], Embedder]


@dataclass(frozen=True)
class _Seen:
    """As what a queue was known when its order was worked out, and when it was last looked at."""

    mark: Mark
    at: float


class Reordering:
    """The orders of all queues of one home; at most one is worked out at a time."""

    def __init__(
        self,
        home: Path,
        load: Load = load_multilingual_encoder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` is in seconds."""
        self.home = home
        self._load = load
        self._clock = clock
        self._seen: dict[str, _Seen] = {}
        self._vectors: OrderedDict[str, Vector] = OrderedDict()
        self._busy = threading.Lock()

    def ask(self, store: Store, project_id: str, people: int) -> bool:
        """Have the order worked out if anything has changed; True where that begins now.

        It costs a glance at most every half minute, and never waits. `people` answer each item.
        """
        now = self._clock()
        seen = self._seen.get(project_id)
        if seen is not None and now - seen.at < EVERY_SECONDS:
            return False
        mark = (*_mark(store), float(people))
        is_same = seen is not None and seen.mark == mark
        if is_same or not store.queue_order.has(project_id, people, FEWEST):
            self._seen[project_id] = _Seen(seen.mark if seen else (), now)
            return False
        if not self._busy.acquire(blocking=False):
            return False
        self._seen[project_id] = _Seen(mark, now)
        threading.Thread(
            target=self._work, args=(project_id, people), daemon=True, name="queue order"
        ).start()
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until no order is being worked out; False when the time is up first."""
        has_ended = self._busy.acquire(timeout=seconds)
        if has_ended:
            self._busy.release()
        return has_ended

    def _work(self, project_id: str, people: int) -> None:
        try:
            with open_store(self.home) as store:
                self.refresh(store, project_id, people)
        except (ReviewError, sqlite3.Error) as error:
            LOGGER.warning("the queue of %s keeps its order for now: %r", project_id, error)
            self._seen.pop(project_id, None)
        finally:
            self._busy.release()

    def refresh(self, store: Store, project_id: str, people: int) -> int:
        """Work the order out now; how many items may have moved.

        The `MOST` items that teach most are spread; the others follow as their runs tell.
        """
        waiting = store.queue_order.waiting(project_id, people, MOST)
        answered = store.queue_order.answered(project_id, people, MOST_ANSWERED)
        placed = self._spread(store, waiting, answered) if len(waiting) >= FEWEST else []
        names = [item.case_id for item in placed]
        with store.writing():
            store.queue_order.put(placed)
            changed = store.queue_order.reset(project_id, names, AT_ONCE)
        while changed == AT_ONCE:
            time.sleep(BREATH)
            with store.writing():
                changed = store.queue_order.reset(project_id, names, AT_ONCE)
        return len(placed)

    def _spread(
        self, store: Store, waiting: Sequence[Asked], answered: Sequence[Asked]
    ) -> list[Asked]:
        """The items with what they teach once near copies are told apart.

        What a rule puts first is spread first; the others keep apart from that, too.
        """
        import numpy as np

        known = self._matrix(store, answered)
        placed: list[Asked] = []
        for first in (FIRST, 0.0):
            own = [item for item in waiting if (item.teaches >= FIRST) == (first > 0.0)]
            vectors = self._matrix(store, own)
            worths = np.array([item.teaches - first for item in own])
            order, teaches = spread(worths, vectors, known, SHARES.unlike)
            placed += [
                replace(own[place], teaches=first + value)
                for place, value in zip(order, teaches, strict=True)
            ]
            known = np.concatenate([known, vectors])
        return placed

    def _matrix(self, store: Store, items: Sequence[Asked]) -> npt.NDArray[np.float32]:
        import numpy as np

        encoder = self._load()
        rows = [self._vector(store, item, encoder) for item in items]
        return np.stack(rows) if rows else np.zeros((0, encoder.width), dtype=np.float32)

    def _vector(self, store: Store, item: Asked, encoder: Embedder) -> Any:
        """Of what the classifier reads; zeros where the encoder does not know the language."""
        import numpy as np

        key = item.run_id or item.case_id
        found = self._vectors.get(key)
        if found is None:
            text = _text(store, item)
            time.sleep(BREATH)
            is_mute = not text or bool(encoder.muted([text])[0])
            none = np.zeros(encoder.width, dtype=np.float32)
            found = self._vectors[key] = none if is_mute else encoder.encode([text])[0]
            if len(self._vectors) > VECTORS_KEPT:
                self._vectors.popitem(last=False)
        self._vectors.move_to_end(key)
        return found


def _mark(store: Store) -> Mark:
    """Changes with each answer, each run that ends, and each version taken into use."""
    changes = store.changes
    return (*changes.of_corrections(), *changes.of_runs(), *changes.of_learned())


def _text(store: Store, item: Asked) -> str:
    """What the judge wrote; of a case that nobody judged, what was to be checked."""
    judgement = store.runs.judgement(item.run_id) if item.run_id else None
    if judgement is not None and judgement.text:
        return judgement.text
    case = store.cases.get(item.case_id)
    return f"{case.question} {case.response}".strip() if case else ""
