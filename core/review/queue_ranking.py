"""Decides which checks people review first, and which verdicts a project accepts automatically.

An answer teaches most where the machine was unsure or its agents disagreed, so those items come
first (`core.store.review_queue`); a random share keeps measurements unbiased. How unlike an item is
to the answered ones changes with every answer, so a background thread computes it for the items
that teach most. A project sets the error rate it tolerates among verdicts that nobody reviews; a
confidence limit fitted on people's answers (`core/learning/track_record.py`) keeps to it. If no
limit can be guaranteed, the project accepts nothing automatically.
"""

from __future__ import annotations

import logging
import math
import sqlite3
import threading
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.encoder import load_multilingual_encoder
from core.llm.encoder import Embedder
from core.review.adjudication import rate_difference
from core.runtime.errors import ConfigError, InputError, ReviewError
from core.schema.records import Case, Label, Project, Run, Stance
from core.schema.reviews import QueueItem
from core.schema.run_state import RunState, fold_events
from core.store import Store, open_store
from core.store.queue_order import (
    CRITERION_SHARES,
    PRIORITY_BONUS,
    PendingItem,
    compute_unsureness,
    compute_worth,
    rank_diverse_items,
    vote_entropy,
)
from core.store.sqlite import ChangeMark
from core.store.versions import SEED_VERSION, parse_body

LIMIT_KIND = "selective"
MIN_ERROR_RATE, MAX_ERROR_RATE = 0.005, 0.5  # error rates that may be set
ASSURANCE = 0.9  # probability that the error rate stays below the one set
LOGGER = logging.getLogger(__name__)
MIN_WAITING = 20  # fewer items are all answered soon, in whatever order
MAX_RANKED = 500  # claims take from the top, so the rest can wait
MAX_ANSWERED = 500
RESET_BATCH = 500  # items changed in one transaction
MAX_CACHED_VECTORS = 4000  # about 6 MB
CHECK_INTERVAL_SECONDS = 30.0
PAUSE_SECONDS = 0.005  # seconds between two texts or transactions, so that pages get their turn
FILL_BATCH = 100
EncoderLoader = Callable[[], Embedder]


@dataclass(frozen=True)
class ConfidenceLimit:
    """The confidence from which verdicts of one classifier version with one roster are accepted.

    `threshold` is None if nothing can be guaranteed. Of the `n` answered verdicts used for fitting,
    `answered` are at or above it and `wrong` of these were wrong; `is_random` says that only
    randomly drawn ones were used.
    """

    version: str
    roster: str
    threshold: float | None
    n: int
    answered: int
    wrong: int
    is_random: bool = False


@dataclass(frozen=True)
class AutomationPolicy:
    """The error rate a project tolerates and its fitted limits; `problem` says why none exist."""

    wanted: float
    limits: tuple[ConfidenceLimit, ...] = ()
    problem: str = ""

    def limit(self, version: str, roster: str) -> ConfidenceLimit | None:
        """Return the limit for that version and roster, or None if none was fitted."""
        limits = {(limit.version, limit.roster): limit for limit in self.limits}
        return limits.get((version or SEED_VERSION, roster))

    def threshold(self, version: str, roster: str) -> float | None:
        """Return the confidence from which such verdicts are accepted, or None if none is."""
        limit = self.limit(version, roster)
        return None if limit is None else limit.threshold

    def is_for_people(self, run: Run, version: str = "") -> bool:
        """Return True if the run has a confidence that is too low; unclear runs have none.

        `version` is the classifier of its present verdict, as a rescored run keeps its plan; if it
        is empty, the plan's classifier is used.
        """
        if run.confidence is None:
            return False
        threshold = self.threshold(version or run.plan.classifier, run.plan.roster)
        return threshold is None or run.confidence < threshold


def dump_limits(wanted: float, limits: Iterable[ConfidenceLimit]) -> dict[str, Any]:
    """Return the limits as plain values, as `store.learned` keeps them."""
    return {"wanted": wanted, "assurance": ASSURANCE, "limits": [asdict(limit) for limit in limits]}


def check_error_rate(wanted: float) -> None:
    """Raise InputError unless the rate is between half a percent and a half."""
    if not MIN_ERROR_RATE <= wanted <= MAX_ERROR_RATE:
        raise InputError(
            f"Expected a target error rate from {MIN_ERROR_RATE:.1%} to {MAX_ERROR_RATE:.0%}, "
            f"found "
            f"{wanted:.1%}; correct it."
        )


def load_policy(store: Store, project: Project | None) -> AutomationPolicy | None:
    """Return the project's current policy for automatic verdicts, or None if it has none."""
    if project is None or project.error_rate is None:
        return None
    wanted = project.error_rate
    try:
        stored = store.learned.in_use(LIMIT_KIND, project.id)
        if stored is None or stored.body.get("wanted") != wanted:
            return AutomationPolicy(wanted)
        return AutomationPolicy(wanted, parse_body(stored, _parse_limits))
    except ConfigError as error:
        return AutomationPolicy(wanted, problem=str(error))


def _parse_limits(body: Mapping[str, Any]) -> tuple[ConfidenceLimit, ...]:
    limits = [ConfidenceLimit(**limit) for limit in body["limits"]]
    return tuple(
        replace(limit, threshold=limit.threshold and float(limit.threshold)) for limit in limits
    )


def apply_policy(store: Store, project: Project) -> None:
    """Reorder the whole queue by the project's policy; call inside `writing()`."""
    policy = load_policy(store, project)
    limits = None
    if policy is not None:
        thresholds = ((limit.version, limit.roster, limit.threshold) for limit in policy.limits)
        limits = [
            (version, roster, level) for version, roster, level in thresholds if level is not None
        ]
    store.queue_lists.put_first(project.id, limits)


class QueueRanker:
    """Ranks the queues of one home in a background thread; at most one ranking runs at a time."""

    def __init__(
        self,
        home: Path,
        load: EncoderLoader = load_multilingual_encoder,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home = home
        self._load = load
        self._clock = clock
        # By project: the store's mark when its queue was last ranked, and the time of that check.
        self._seen: dict[str, tuple[ChangeMark, float]] = {}
        self._vectors: OrderedDict[str, npt.NDArray[np.float32]] = OrderedDict()
        self._busy = threading.Lock()

    def ask(self, store: Store, project_id: str, people: int) -> bool:
        """Start ranking if anything has changed; return True if that begins now.

        Checks at most every half minute and never waits. `people` is how many answer each item.
        """
        now = self._clock()
        seen, at = self._seen.get(project_id, ((), -math.inf))
        if now - at < CHECK_INTERVAL_SECONDS:
            return False
        mark = (*_read_mark(store), float(people))
        if mark == seen or not store.queue_order.has(project_id, people, MIN_WAITING):
            self._seen[project_id] = (seen, now)
            return False
        if not self._busy.acquire(blocking=False):
            return False
        self._seen[project_id] = (mark, now)
        threading.Thread(
            target=self._work, args=(project_id, people), daemon=True, name="queue order"
        ).start()
        return True

    def wait(self, seconds: float) -> bool:
        """Wait until no ranking is running; return False if the time is up first."""
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
        """Rank the queue now; return how many items may have moved.

        The `MAX_RANKED` items that teach most are spread apart; the others keep the scores of
        their runs.
        """
        waiting = store.queue_order.waiting(project_id, people, MAX_RANKED)
        answered = store.queue_order.answered(project_id, people, MAX_ANSWERED)
        ranked = self._spread(store, waiting, answered) if len(waiting) >= MIN_WAITING else []
        case_ids = [item.case_id for item in ranked]
        with store.writing():
            store.queue_order.put(ranked)
            changed = store.queue_order.reset(project_id, case_ids, RESET_BATCH)
        while changed == RESET_BATCH:
            time.sleep(PAUSE_SECONDS)
            with store.writing():
                changed = store.queue_order.reset(project_id, case_ids, RESET_BATCH)
        return len(ranked)

    def _spread(
        self, store: Store, waiting: Sequence[PendingItem], answered: Sequence[PendingItem]
    ) -> list[PendingItem]:
        """Return the items with near copies scored lower; those that policy sends on come first."""
        answered_vectors = self._matrix(store, answered)
        ranked: list[PendingItem] = []
        for first in (PRIORITY_BONUS, 0.0):
            group = [item for item in waiting if (item.teaches >= PRIORITY_BONUS) == (first > 0.0)]
            vectors = self._matrix(store, group)
            worths = np.array([item.teaches - first for item in group])
            order, teaches = rank_diverse_items(
                worths, vectors, answered_vectors, CRITERION_SHARES.unlike
            )
            ranked += [
                replace(group[index], teaches=first + value)
                for index, value in zip(order, teaches, strict=True)
            ]
            answered_vectors = np.concatenate([answered_vectors, vectors])
        return ranked

    def _matrix(self, store: Store, items: Sequence[PendingItem]) -> npt.NDArray[np.float32]:
        encoder = self._load()
        rows = [self._vector(store, item, encoder) for item in items]
        return np.stack(rows) if rows else np.zeros((0, encoder.width), dtype=np.float32)

    def _vector(self, store: Store, item: PendingItem, encoder: Embedder) -> Any:
        """Return the embedding of the classifier's input; zeros if its language is unknown."""
        key = item.run_id or item.case_id
        vector = self._vectors.get(key)
        if vector is None:
            text = _load_text(store, item)
            time.sleep(PAUSE_SECONDS)
            is_mute = not text or bool(encoder.muted([text])[0])
            zeros = np.zeros(encoder.width, dtype=np.float32)
            vector = self._vectors[key] = zeros if is_mute else encoder.encode([text])[0]
            if len(self._vectors) > MAX_CACHED_VECTORS:
                self._vectors.popitem(last=False)
        self._vectors.move_to_end(key)
        return vector


def _read_mark(store: Store) -> ChangeMark:
    """Return a value that changes with each answer, finished run and version put into use."""
    changes = store.changes
    return (*changes.of_corrections(), *changes.of_runs(), *changes.of_learned())


def _load_text(store: Store, item: PendingItem) -> str:
    """Return what the judge wrote, or what was to be checked if nobody judged the case."""
    judgement = store.runs.judgement(item.run_id) if item.run_id else None
    if judgement is not None and judgement.text:
        return judgement.text
    case = store.cases.get(item.case_id)
    return f"{case.question} {case.response}".strip() if case else ""


def build_item(run: Run, case: Case, progress: RunState) -> QueueItem:
    """Return the case as a queue item, with its run's verdict and scores."""
    distance = measure_disagreement(progress)
    return QueueItem(
        case_id=case.id,
        project_id=case.project_id,
        run_id=run.id,
        added_at=run.finished_at or run.started_at,
        label=run.label or "",
        p=run.p_hallucinated,
        disagreement=round(distance, 4),
        language=case.language,
        teaches=round(compute_worth(compute_unsureness(run.p_hallucinated), distance), 4),
        stances=collect_stances(progress),
    )


def collect_stances(progress: RunState) -> tuple[tuple[str, Label], ...]:
    """Return each agent's final stance on the whole response, by name, the judge's included.

    A reader that was asked about several statements says `hallucinated` if one is, `supported` if
    none is and one is supported, as the judge decides over them.
    """
    by_agent: dict[str, Label] = {t.agent: t.stance for t in progress.turns if t.assigned is None}
    if progress.judgement is not None:
        by_reader: dict[str, list[Stance]] = defaultdict(list)
        for view in progress.judgement.readers:
            by_reader[f"{view.reader}, all evidence"].append(view.stance)
        for reader, reader_stances in by_reader.items():
            decided = [
                stance for stance in ("hallucinated", "supported") if stance in reader_stances
            ]
            by_agent[reader] = decided[0] if decided else "unclear"
        by_agent[progress.judgement.agent] = progress.judgement.label
    return tuple(sorted(by_agent.items()))


def build_imported_item(case: Case, now: float, label: Label | None, p: float | None) -> QueueItem:
    """Return a queue item for a case without a run, with an outside agent's suggestion, if any."""
    return QueueItem(
        case_id=case.id,
        project_id=case.project_id,
        run_id=None,
        added_at=now,
        label=label or "",
        p=p,
        disagreement=0.0,
        language=case.language,
        teaches=round(compute_worth(compute_unsureness(p), 0.0), 4),
    )


def measure_disagreement(progress: RunState) -> float:
    """Return how far the agents were apart at the end, in [0, 1]; 0 if all say the same.

    The larger of two entropies: of the debaters' last stances, and of the judge's readers averaged
    over the statements.
    """
    last_stances = {turn.debater: turn.stance for turn in progress.turns if turn.assigned is None}
    readers: dict[int, list[Stance]] = defaultdict(list)
    for view in progress.judgement.readers if progress.judgement else ():
        readers[view.statement].append(view.stance)
    entropies = [vote_entropy(votes) for votes in readers.values()]
    return max(
        vote_entropy(list(last_stances.values())),
        sum(entropies) / len(entropies) if entropies else 0.0,
    )


def enqueue_run(store: Store, run_id: str, now: float) -> bool:
    """Put a finished run's case into the queue; return False if the run is not to stand there.

    It is not finished, or it decided nothing and an earlier run in the queue did.

    Cases that people must decide by the project's policy get the highest rank.
    """
    lease = store.projects.settings().lease_seconds
    run = store.runs.get(run_id, now, lease)
    case = store.cases.get(run.case_id) if run else None
    if run is None or case is None or run.status != "finished":
        return False
    if store.queue_lists.find_run(case.id) != run_id:
        return False
    progress = fold_events(event for _, event in store.runs.events(run_id))
    item = build_item(run, case, progress)
    with store.writing():
        policy = load_policy(store, store.projects.get(item.project_id))
        if policy is not None and policy.is_for_people(run, progress.classifier):
            item = replace(item, teaches=item.teaches + PRIORITY_BONUS)
        is_new = store.queue.get(case.id) is None
        store.queue.add(item)
        if is_new:  # who answered before it came here is not asked again
            said = store.corrections.newest_of_case(case.id)
            store.queue.update_answers(case.id, rate_difference(said))
            for answer in said:
                if store.projects.role_of(case.project_id, answer.author) is not None:
                    store.queue.end(case.id, answer.author, "submitted", answer.at)
    return True


def try_enqueue(store: Store, run_id: str, now: float) -> None:
    """Call `enqueue_run` and only log a failure; `fill_queue` makes up for it later."""
    try:
        enqueue_run(store, run_id, now)
    except (ReviewError, sqlite3.Error) as error:
        LOGGER.warning("run %s is not in the review queue yet: %r", run_id, error)


def fill_queue(store: Store, project_id: str, now: float, most: int = FILL_BATCH) -> int:
    """Enqueue finished runs that are not in the queue, oldest first; return how many."""
    return sum(
        enqueue_run(store, run_id, now) for run_id in store.queue_lists.missing(project_id, most)
    )
