"""Runs tests again and again beside two busy processes: `python -m tests.repeat 10 -m timing`.

A test that fails once in a hundred runs fails here. Prints each round, then the tests that failed.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence

BUSY_PROCESSES = 2
BUSY_LOOP = "while True: pass"
FAILED_TEST = re.compile(r"^(?:FAILED|ERROR) (\S+)", re.MULTILINE)


@contextlib.contextmanager
def keep_cores_busy() -> Iterator[None]:
    """Run busy loops beside the block."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(BUSY_PROCESSES)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run pytest so many times; return 1 if any test failed in any round."""
    parser = argparse.ArgumentParser(prog="python -m tests.repeat", description=__doc__)
    parser.add_argument("rounds", type=int)
    options, pytest_arguments = parser.parse_known_args(arguments)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *pytest_arguments]
    failures: collections.Counter[str] = collections.Counter()
    with keep_cores_busy():
        for number in range(1, options.rounds + 1):
            began = time.monotonic()
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            failures.update(FAILED_TEST.findall(done.stdout))
            last_line = (done.stdout.strip() or done.stderr.strip()).splitlines()[-1]
            seconds = time.monotonic() - began
            sys.stdout.write(f"{number} of {options.rounds}: {last_line} ({seconds:.0f} s)\n")
            if done.returncode:
                sys.stdout.write(done.stdout[-8000:])
                failures[f"round {number}"] += 1
            sys.stdout.flush()
    for name, count in failures.most_common():
        sys.stdout.write(f"failed {count} times: {name}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
