"""What code can and cannot do in the sandbox. Nothing here multiplies processes."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.runtime.concurrency import StopSignal
from core.runtime.errors import Stopped
from core.tools import sandbox
from core.tools.sandbox import explain_unavailable, run_python
from tests.needs import need
from tests.tools.corpus import table

pytestmark = pytest.mark.timing

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def _needed() -> None:
    need(not explain_unavailable(), explain_unavailable())


def test_what_it_prints_comes_back() -> None:
    ran = run_python("print('sum', 20 + 22)", StopSignal())
    assert (ran.ending, ran.printed, ran.complained) == ("finished", "sum 42\n", "")


def test_an_error_comes_back_with_its_words() -> None:
    ran = run_python("int('ten')", StopSignal())
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
    assert run_python(f"{code}\nprint('reached')", StopSignal()).ending == "failed"


@pytest.mark.parametrize(*table("sandbox: ways out are closed and say so"))
def test_ways_out_are_closed_and_say_so(code: str, said: str) -> None:
    ran = run_python(f"{code}\nprint('reached')", StopSignal())
    assert (ran.ending, ran.printed) == ("failed", "")
    assert said in ran.complained


def test_nothing_of_the_app_can_be_read(tmp_path: Path) -> None:
    database = tmp_path / "counterpoint.db"
    database.write_bytes(b"SQLite format 3\0 labels of people")
    database.chmod(0o644)
    for code in (f"open({str(database)!r}, 'rb')", f"import os; os.listdir({str(tmp_path)!r})"):
        ran = run_python(f"{code}\nprint('reached')", StopSignal())
        assert ran.ending == "failed"
        assert "FileNotFoundError" in ran.complained


def test_a_server_of_this_machine_is_not_reached() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        at = server.getsockname()
        ran = run_python(
            f"import socket; socket.create_connection({at!r}, timeout=2)", StopSignal()
        )
        assert ran.ending == "failed"
        assert "refused" in ran.complained
        with pytest.raises(TimeoutError):
            server.accept()


def test_other_processes_are_neither_seen_nor_ended() -> None:
    with subprocess.Popen(["sleep", "60"]) as other:
        try:
            code = (
                "import os, signal\n"
                "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit())[2:])\n"
                f"for pid in ({other.pid}, {os.getpid()}, {os.getppid()}, -1):\n"
                "    try:\n        os.kill(pid, signal.SIGKILL)\n        print('sent', pid)\n"
                "    except OSError as error:\n        print(type(error).__name__)\n"
            )
            ran = run_python(code, StopSignal())
            assert other.poll() is None
        finally:
            other.kill()
    assert ran.printed == "[]\n" + 4 * "ProcessLookupError\n"


def test_the_first_process_inside_has_no_rights_to_take_over() -> None:
    """Attaching to it is not refused, but it has the same walls around it and may do nothing."""
    code = (
        "import os\n"
        "print(all(os.readlink(f'/proc/1/ns/{n}') == os.readlink(f'/proc/self/ns/{n}')"
        " for n in ('pid', 'mnt', 'net', 'user', 'ipc')))\n"
        "print({line.split()[1] for line in open('/proc/1/status') if line.startswith('Cap')})\n"
        "print(sorted(os.listdir('/proc/1/root')) == sorted(os.listdir('/')))\n"
    )
    assert run_python(code, StopSignal()).printed == "True\n{'0000000000000000'}\nTrue\n"


def test_system_calls_that_would_lead_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    code = (
        "import ctypes\nlibc = ctypes.CDLL(None)\n"
        "print(libc.unshare(0x10000000), libc.mount(b'x', b'/box', b'tmpfs', 0, None),"
        " libc.chroot(b'/box'), libc.sethostname(b'x', 1), libc.setns(0, 0))\n"
    )
    assert run_python(code, StopSignal()).printed == "-1 -1 -1 -1 -1\n"
    # Watching the first process from inside only holds itself up, and ends by the clock.
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 2.0)
    watched = run_python("import ctypes; ctypes.CDLL(None).ptrace(16, 1, 0, 0)", StopSignal())
    assert watched.ending in ("overdue", "finished", "failed")


def test_no_child_is_ever_made() -> None:
    """What a fork bomb begins with; never more than these few tries, for the machine's sake."""
    code = (
        "import os\nmade = 0\nfor _ in range(8):\n    try:\n        child = os.fork()\n"
        "    except BlockingIOError:\n        continue\n    if child == 0:\n        os._exit(0)\n"
        "    made += 1\nprint(made)\n"
    )
    assert run_python(code, StopSignal()).printed == "0\n"


def test_a_loop_that_takes_memory_comes_to_an_end() -> None:
    ran = run_python("held = []\nwhile True: held.append(bytes(8 << 20))", StopSignal())
    assert ran.ending == "failed"
    assert "MemoryError" in ran.complained


def test_nothing_is_left_of_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    tmp_path.chmod(0o755)
    for parent in list(tmp_path.parents)[:3]:
        if parent.stat().st_uid == os.getuid():
            parent.chmod(parent.stat().st_mode | 0o005)
    assert run_python("open('a', 'w').write('a' * 1000)", StopSignal()).ending == "finished"
    assert list(tmp_path.iterdir()) == []


def test_small_files_of_its_own_can_be_written() -> None:
    code = "for at in ('/box/a', '/tmp/a', '/dev/shm/a'): open(at, 'w').write('a')"
    assert run_python(code, StopSignal()).ending == "finished"


def test_nothing_of_the_surroundings_is_to_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERPOINT_SECRET", "a key")
    ran = run_python("import os; print(sorted(os.environ), sorted(os.listdir('/')))", StopSignal())
    assert ran.ending == "finished"
    assert "SECRET" not in ran.printed
    assert "HOME" not in ran.printed
    assert "etc" not in ran.printed


def test_an_endless_loop_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "CPU_SECONDS", 1)
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 60.0)  # a busy machine takes longer for a second
    assert run_python("while True: pass", StopSignal()).ending == "out_of_time"


def test_sleeping_comes_to_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "WALL_SECONDS", 0.5)
    began = time.monotonic()
    assert run_python("import time; time.sleep(60)", StopSignal()).ending == "overdue"
    assert time.monotonic() - began < 10


def test_a_flood_of_output_is_cut() -> None:
    ran = run_python("for _ in range(10**6): print('flood' * 20)", StopSignal())
    assert ran.ending == "failed"
    assert len(ran.printed) <= sandbox.OUTPUT_BYTES


def test_a_stop_ends_it() -> None:
    stop = StopSignal()
    threading.Timer(0.3, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        run_python("import time; time.sleep(60)", stop)
    assert time.monotonic() - began < 5


@pytest.fixture
def _forgotten() -> Iterator[None]:
    explain_unavailable.cache_clear()
    yield
    explain_unavailable.cache_clear()


@pytest.mark.usefixtures("_forgotten")
def test_without_bubblewrap_nothing_is_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    assert "not installed" in explain_unavailable()
    with pytest.raises(RuntimeError, match="not installed"):
        run_python("print(1)", StopSignal())


@pytest.mark.usefixtures("_forgotten")
def test_a_bubblewrap_that_fails_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sandbox, "_command", lambda snippet: ("sh", "-c", "echo no room >&2; exit 1")
    )
    assert explain_unavailable() == "The code was not run: bubblewrap does not work here (no room)."
