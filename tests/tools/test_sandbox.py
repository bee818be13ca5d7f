"""What code can and cannot do in the sandbox. Nothing here multiplies processes."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.concurrency import Stop
from core.errors import Stopped
from core.tools import sandbox
from core.tools.sandbox import run_python, why_off
from tests.needs import need

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _needed() -> None:
    need(not why_off(), why_off())


def test_what_it_prints_comes_back() -> None:
    ran = run_python("print('sum', 20 + 22)", Stop())
    assert (ran.ending, ran.printed, ran.complained) == ("finished", "sum 42\n", "")


def test_an_error_comes_back_with_its_words() -> None:
    ran = run_python("int('ten')", Stop())
    assert ran.ending == "failed"
    assert ran.complained.strip().splitlines()[-1].startswith("ValueError: invalid literal")


@pytest.mark.parametrize(
    "code",
    [
        f"open({str(ROOT / 'README.md')!r})",
        "open('/etc/passwd')",
        "open('/in.py', 'w')",
        "import socket; socket.create_connection(('127.0.0.1', 9), timeout=2)",
        "import socket; socket.create_connection(('192.0.2.1', 80), timeout=2)",
        "open('/box/big', 'wb').write(bytes(5 << 20))",
        "bytearray(4 << 30)",
        "open('/left', 'w')",
        "open('/dev/left', 'w')",
        "open('/dev/shm/big', 'wb').write(bytes(2 << 20))",
        "import os; os.fork() or os._exit(0)",
        "import threading; threading.Thread(target=print).start()",
    ],
)
def test_files_network_and_memory_are_out_of_reach(code: str) -> None:
    assert run_python(f"{code}\nprint('reached')", Stop()).ending == "failed"


def test_small_files_of_its_own_can_be_written() -> None:
    code = "for at in ('/box/a', '/tmp/a', '/dev/shm/a'): open(at, 'w').write('a')"
    assert run_python(code, Stop()).ending == "finished"


def test_memory_is_not_multiplied_by_forks() -> None:
    code = (
        "import os\nheld = bytearray(8 << 20)\nchildren = 0\nfor _ in range(2):\n"
        "    try:\n        child = os.fork()\n    except OSError:\n        continue\n"
        "    if child == 0:\n        os._exit(0)\n    children += 1\nprint(children)\n"
    )
    assert run_python(code, Stop()).printed == "0\n"


def test_nothing_of_the_surroundings_is_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_SECRET", "a key")
    ran = run_python("import os; print(sorted(os.environ), sorted(os.listdir('/')))", Stop())
    assert ran.ending == "finished"
    assert "SECRET" not in ran.printed
    assert "HOME" not in ran.printed
    assert "etc" not in ran.printed


def test_an_endless_loop_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    assert run_python("while True: pass", Stop()).ending == "out_of_time"


def test_sleeping_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)
    began = time.monotonic()
    assert run_python("import time; time.sleep(60)", Stop()).ending == "overdue"
    assert time.monotonic() - began < 10


def test_a_flood_of_output_is_cut() -> None:
    ran = run_python("for _ in range(10**6): print('flood' * 20)", Stop())
    assert ran.ending == "failed"
    assert len(ran.printed) <= sandbox.OUTPUT_BYTES


def test_a_stop_ends_it() -> None:
    stop = Stop()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        run_python("import time; time.sleep(60)", stop)
    assert time.monotonic() - began < 5


@pytest.fixture
def _forgotten() -> Iterator[None]:
    why_off.cache_clear()
    yield
    why_off.cache_clear()


@pytest.mark.usefixtures("_forgotten")
def test_without_bubblewrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "not installed" in why_off()
    with pytest.raises(RuntimeError, match="not installed"):
        run_python("print(1)", Stop())


@pytest.mark.usefixtures("_forgotten")
def test_a_bubblewrap_that_fails_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sandbox, "_command", lambda snippet: ("sh", "-c", "echo no room >&2; exit 1")
    )
    assert why_off() == "The code was not run: bubblewrap does not work here (no room)."
