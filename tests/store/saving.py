"""People who save without end, until they are killed: `python -m … HOME FOLDER`.

For each line “NAME SEED” that it is given it forks a process, and prints that one's id and, once
somebody has killed it, by which signal it ended. In it four threads do what the pages do: drafts,
answers, answers taken back, items passed over, cases settled. Each writes what it saves into
FOLDER/NAME.begun inside of the transaction, and into FOLDER/NAME.kept only once that is committed;
a line is written in one go, so a kill leaves it whole or not at all.
"""

from __future__ import annotations

import os
import random
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from core.review.adjudication import record_correction, record_gold, reopen_case
from core.review.people import load_draft, save_draft
from core.schema.records import Case, Span, new_id
from core.schema.reviews import Correction, GoldAnswer, QueueEvent
from core.store import Store, open_store
from core.store.review_queue import QueueRules
from core.store.sqlite import to_json

RULES = QueueRules(people=3, seconds=1e6)
THREADS = 4
# One process that saves without a pause keeps another's out for as long as SQLite lets it wait.
PAUSE_SECONDS = 0.02
LABELS = ("supported", "hallucinated", "unclear")
LONG = "Because the page says otherwise, and here is where. " * 20


@dataclass
class Ledger:
    """Where the lines go: opened once, appended by all threads."""

    begun_file: int
    kept_file: int

    def begun(self, kind: str, text: str) -> None:
        """Said inside of the transaction."""
        os.write(self.begun_file, f"{kind} {text}\n".encode())

    def kept(self, kind: str, text: str) -> None:
        """Said once it is committed."""
        os.write(self.kept_file, f"{kind} {text}\n".encode())


@dataclass
class Person:
    """One who works through the queue of a project."""

    name: str
    project: str
    store: Store
    ledger: Ledger
    chance: random.Random

    def work(self) -> None:
        """One item: a draft, the answer or something else, now and then a settlement."""
        found = self._claimed()
        if found is None:  # the other process may have answered everything before this one began
            rows = list(self.store.db.query("SELECT case_id FROM items"))
            self._draft(self._case(self.chance.choice(rows)["case_id"]), f"{new_id()} {LONG}")
            return
        case = self._case(found)
        self._draft(case, f"{new_id()} {LONG}")
        what = self.chance.random()
        if what < 0.1:
            self._pass_on(case)
            return
        said = self._answer(case)
        self._draft(case, "")
        if what < 0.3:
            self._take_back(case, said)
        elif what < 0.5:
            self._settle(case)

    def _case(self, case_id: str) -> Case:
        case = self.store.cases.get(case_id)
        assert case is not None
        return case

    def _claimed(self) -> str | None:
        """What comes next; where nothing is left, an item that was answered before."""
        with self.store.writing():
            found = self.store.queue.claim(self.project, self.name, RULES, time.time())
        if found is not None:
            return found.case_id
        mine = [
            row["case_id"]
            for row in self.store.db.query(
                "SELECT case_id FROM assignments WHERE person = ? AND state = 'submitted'",
                [self.name],
            )
        ]
        return self.chance.choice(mine) if mine else None

    def _draft(self, case: Case, text: str) -> None:
        line = f"{self.name} {case.id} {text}"
        with self.store.writing():
            self.ledger.begun("draft", line)
            save_draft(self.store, self.name, case.id, text)
        assert load_draft(self.store, self.name, case.id) == text
        self.ledger.kept("draft", line)

    def _answer(self, case: Case) -> Correction:
        end = self.chance.randint(1, len(case.response))
        label = self.chance.choice(LABELS)
        spans = (Span(0, end, case.response[:end], 1.0, "wrong_entity", self.name),)
        said = Correction(
            new_id(), None, case.id, self.name, time.time(), label,  # type: ignore[arg-type]
            spans if label == "hallucinated" else (), LONG,
        )  # fmt: skip
        with self.store.writing():
            self.ledger.begun("said", to_json(said))
            self.store.projects.require(self.project, self.name, "annotator", "answer")
            record_correction(self.store, said, case)
            self.store.queue.end(case.id, self.name, "submitted", said.at)
        self.ledger.kept("said", to_json(said))
        return said

    def _take_back(self, case: Case, said: Correction) -> None:
        undo = Correction(
            new_id(), None, case.id, self.name, time.time(), said.label, withdraws=said.id
        )
        with self.store.writing():
            self.ledger.begun("said", to_json(undo))
            record_correction(self.store, undo, case)
            self.store.queue.again(case.id, self.name, RULES, undo.at)
        self.ledger.kept("said", to_json(undo))

    def _pass_on(self, case: Case) -> None:
        mine = self.store.queue.of(case.id, self.name)
        if mine is None or mine.state != "claimed":
            return
        became = self.chance.choice(("skipped", "flagged"))
        now = time.time()
        with self.store.writing():
            self.ledger.begun("handled", f"{case.id} {self.name} {now!r} {became}")
            self.store.queue.end(case.id, self.name, became, now)  # type: ignore[arg-type]
            self.store.queue_events.add(
                QueueEvent(case.id, self.name, now, became)  # type: ignore[arg-type]
            )
        self.ledger.kept("handled", f"{case.id} {self.name} {now!r} {became}")

    def _settle(self, case: Case) -> None:
        """Make one answer the right one, or give a settled case back."""
        with self.store.writing():
            item = self.store.queue.get(case.id)
            assert item is not None
            is_again = item.state == "adjudicated"
            gold = GoldAnswer(
                new_id(), case.id, self.name, time.time(), "adjudicated", "supported", reason=LONG
            )
            if is_again:
                reopen_case(self.store, case.id, self.name, gold.at)
            else:
                self.ledger.begun("settled", to_json(gold))
                record_gold(self.store, gold, case)
        if not is_again:
            self.ledger.kept("settled", to_json(gold))


def save_for_ever(home: Path, name: str, seed: int, ledger: Ledger) -> None:
    """What one thread does, on a connection of its own."""
    with open_store(home) as store:
        project = store.projects.all()[0].id
        person = Person(name, project, store, ledger, random.Random(f"{name} {seed}"))
        while True:
            person.work()
            time.sleep(person.chance.uniform(0.0, PAUSE_SECONDS))


def save_as(home: Path, folder: Path, name: str, seed: int) -> None:
    """Four threads that end only where something is wrong."""
    flags = os.O_CREAT | os.O_APPEND | os.O_WRONLY
    begun, kept = (os.open(folder / f"{name}.{kind}", flags) for kind in ("begun", "kept"))
    ledger = Ledger(begun, kept)
    threads = [
        threading.Thread(target=save_for_ever, args=(home, f"{name}.{n}", seed, ledger))
        for n in range(THREADS)
    ]
    threading.excepthook = _end
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _end(failed: threading.ExceptHookArgs) -> None:
    """What one thread meets ends the process, so that the test sees it."""
    traceback.print_exception(failed.exc_value)
    os._exit(1)


def main() -> int:
    """Fork on demand: what is imported once need not be imported before each kill."""
    home, folder = (Path(path) for path in sys.argv[1:])
    for line in sys.stdin:
        name, seed = line.split()
        child = os.fork()
        if not child:
            save_as(home, folder, name, int(seed))
            os._exit(1)
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.waitstatus_to_exitcode(status))
    return 0


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
