"""Processes are killed while they save: what was acknowledged is there, nothing is there by half.

Two processes of four people each answer, take back, pass over and settle until SIGKILL takes both
at an odd moment; the next round goes on with the same database.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from core.review.adjudication import rate_difference
from core.review.people import load_draft
from core.schema.records import Member, Project
from core.schema.reviews import Correction, GoldAnswer, QueueItem
from core.store import Store, open_store
from core.store.sqlite import from_json
from tests.fakes import make_case
from tests.soak import often
from tests.store.saving import THREADS

pytestmark = [pytest.mark.timing, pytest.mark.slow]

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = "p" * 32
PROCESSES = ("A", "B")
PEOPLE = tuple(f"{name}.{n}" for name in PROCESSES for n in range(THREADS))
KILLS = often(15, 100)
ITEMS = 10  # new ones before each round
PATIENCE = 60.0


@dataclass
class Told:
    """What the processes wrote into their files."""

    said: dict[str, Correction] = field(default_factory=dict)
    settled: dict[str, GoldAnswer] = field(default_factory=dict)
    handled: list[str] = field(default_factory=list)
    drafts: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list))
    count: int = 0

    @staticmethod
    def of(folder: Path, kind: str) -> Told:
        """All lines of one kind, in the order in which each process wrote them."""
        told = Told()
        for name in PROCESSES:
            for line in _lines(folder / f"{name}.{kind}"):
                told.take(*line.split(" ", 1))
        return told

    def take(self, what: str, text: str) -> None:
        self.count += 1
        if what == "said":
            said = from_json(Correction, text)
            self.said[said.id] = said
        elif what == "settled":
            gold = from_json(GoldAnswer, text)
            self.settled[gold.id] = gold
        elif what == "handled":
            self.handled.append(text)
        else:
            person, case_id, typed = text.split(" ", 2)
            self.drafts[person, case_id].append(typed)


def _lines(path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    assert text.endswith("\n") or not text, "a line is written whole or not at all"
    return text.splitlines()


@pytest.fixture
def savers(home: Path, tmp_path: Path) -> Iterator[list[subprocess.Popen[str]]]:
    """A program for each name that starts a process of people as often as it is told to."""
    command = [sys.executable, "-m", "tests.store.saving", str(home), str(tmp_path)]
    with contextlib.ExitStack() as stack:
        yield [
            stack.enter_context(
                subprocess.Popen(
                    command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
                )
            )
            for _ in PROCESSES
        ]


def test_what_was_acknowledged_outlives_every_kill(
    savers: list[subprocess.Popen[str]], home: Path, tmp_path: Path
) -> None:
    chance = random.Random(7)
    cut = lost = 0
    for number in range(KILLS):
        with open_store(home) as store:
            more_items(store, number)
        before = Told.of(tmp_path, "begun").count - Told.of(tmp_path, "kept").count
        kill_while_saving(savers, tmp_path, number, chance.uniform(0.0, 0.15))
        kept, begun = Told.of(tmp_path, "kept"), Told.of(tmp_path, "begun")
        with open_store(home) as store:
            require_sound(store)
            lost = require_kept(store, kept, begun)
            require_whole(store)
        cut += begun.count - kept.count > before
    sys.stdout.write(
        f"{KILLS} kills: {cut} hit a save under way, {lost} of {begun.count} saves were undone\n"
    )
    assert cut, "no kill hit a save that was under way"


def more_items(store: Store, number: int) -> None:
    """Fresh cases in the queue, and its people where they are not there yet."""
    with store.writing():
        if number == 0:
            store.projects.save(Project(PROJECT, "House", 1.0))
            for person in PEOPLE:
                store.projects.set_member(Member(PROJECT, person, "admin", 1.0))
        for n in range(ITEMS):
            words = f"Claim {n} of round {number}, by 👩🏽‍🚀 in Zürich."
            case = make_case(words, id=f"case{number:03}{n:03}", project_id=PROJECT)
            store.cases.add(case, ())
            store.queue.add(
                QueueItem(case.id, PROJECT, None, float(n), "hallucinated", 0.5, 0.0, "en", 0.5)
            )


def kill_while_saving(
    savers: list[subprocess.Popen[str]], folder: Path, seed: int, seconds: float
) -> None:
    """Start both processes, wait until both save and a little longer, and kill them."""
    sizes = {name: _size(folder / f"{name}.kept") for name in PROCESSES}
    for saver, name in zip(savers, PROCESSES, strict=True):
        assert saver.stdin is not None
        saver.stdin.write(f"{name} {seed}\n")
        saver.stdin.flush()
    started = [_number(saver) for saver in savers]
    try:
        end = time.monotonic() + PATIENCE
        while any(_size(folder / f"{name}.kept") == size for name, size in sizes.items()):
            for process in started:
                os.kill(process, 0)  # refused where it ended by itself; it printed why
            assert time.monotonic() < end, "the processes do not begin to save"
            time.sleep(0.002)
        time.sleep(seconds)
    finally:
        for process in started:
            os.kill(process, signal.SIGKILL)
    ended = [_number(saver) for saver in savers]
    assert ended == [-signal.SIGKILL] * len(savers), "one ended by itself"


def _number(saver: subprocess.Popen[str]) -> int:
    assert saver.stdout is not None
    return int(saver.stdout.readline())


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def require_sound(store: Store) -> None:
    """SQLite finds nothing wrong with the file."""
    assert [tuple(row.values()) for row in store.db.query("PRAGMA integrity_check")] == [("ok",)]
    assert list(store.db.query("PRAGMA foreign_key_check")) == []


def require_kept(store: Store, kept: Told, begun: Told) -> int:
    """What was acknowledged is there as it was written; nothing is there that was not begun.

    Returns how many saves were begun and are not there: their transactions were cut short.
    """
    lost = 0
    cases = _cases(store)
    entries = [said for case_id in cases for said in store.corrections.history(case_id)]
    said = {entry.id: entry for entry in entries}
    assert len(said) == len(entries), "an answer is there twice"
    golds = {gold.id: gold for case_id in cases for gold in store.golds.of_case(case_id)}
    handled = Counter(
        f"{h.case_id} {h.person} {h.at!r} {h.did}"
        for case_id in cases
        for h in store.queue_events.of_case(case_id)
        if h.did in ("skipped", "flagged")
    )
    for there, ours, tried in ((said, kept.said, begun.said), (golds, kept.settled, begun.settled)):
        assert ours.keys() <= there.keys() <= tried.keys()
        assert all(there[name] == tried[name] for name in there)
        lost += len(tried) - len(there)
    assert set(kept.handled) <= handled.keys() <= set(begun.handled)
    assert set(handled.values()) <= {1}
    for (person, case_id), typed in begun.drafts.items():
        mine = kept.drafts[person, case_id]
        there_now = load_draft(store, person, case_id)
        assert there_now in (typed[-1], mine[-1] if mine else "")
        lost += there_now != typed[-1]
    return lost + len(begun.handled) - len(handled)


def require_whole(store: Store) -> None:
    """No transaction is there by half: what belongs together was saved together."""
    for case_id in _cases(store):
        item = store.queue.get(case_id)
        assert item is not None
        states = {a.person: a.state for a in store.queue.people_of(case_id)}
        submitted = {person for person, state in states.items() if state == "submitted"}
        # who took back a second answer and passed the case over leaves the first one standing
        standing = {said.author for said in store.corrections.newest_of_case(case_id)}
        anew = {person for person, state in states.items() if state == "claimed"}
        assert item.given == len(submitted | standing - anew)
        last_said = {said.author: said for said in store.corrections.history(case_id)}
        answered = {author for author, said in last_said.items() if not said.withdraws}
        assert answered == submitted, "an answer without its item, or an item without its answer"
        assert item.differ == rate_difference(store.corrections.newest_of_case(case_id))
        did = [(h.did, h.person, h.at) for h in store.queue_events.of_case(case_id)]
        settled = [(g.author, g.at) for g in store.golds.of_case(case_id)]
        assert [(person, at) for what, person, at in did if what == "adjudicated"] == settled
        last = [what for what, _, _ in did if what in ("adjudicated", "reopened")][-1:]
        assert (item.state == "adjudicated") == (last == ["adjudicated"])


def _cases(store: Store) -> list[str]:
    return [row["case_id"] for row in store.db.query("SELECT case_id FROM items ORDER BY 1")]
