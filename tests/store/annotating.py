"""Five annotators in one process, until a queue has nothing left: `python -m … HOME PROJECT NAME`.

Each claims, submits, and says on a line which item it was.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from core.store import open_store
from core.store.review_queue import QueueRules

PEOPLE = 3  # an item
SAYING = threading.Lock()


def annotate(home: Path, project: str, person: str) -> None:
    """Everything that comes to one person."""
    rules = QueueRules(PEOPLE, 60.0)
    with open_store(home) as store:
        while True:
            with store.writing():
                found = store.queue.claim(project, person, rules, 1.0)
            if found is None:
                return
            with store.writing():
                store.queue.end(found.case_id, person, "submitted", 2.0)
            with SAYING:
                sys.stdout.write(f"{found.case_id} {person}\n")


def main() -> int:
    """Five threads, each with a connection of its own."""
    home, project, name = sys.argv[1:]
    threads = [
        threading.Thread(target=annotate, args=(Path(home), project, f"{name}.{n}"))
        for n in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
