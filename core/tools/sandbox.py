"""Runs untrusted Python in bubblewrap: no network, no files, little memory and time.

Without bubblewrap nothing is ever run, and the caller is told why. If this process is root, the
code runs as nobody, because the limit on processes does not bind root.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Literal

from core.runtime.concurrency import StopSignal

PYTHON_PATH = "/usr/bin/python3"  # readable by every user, unlike one in somebody's home
NOBODY_ID = "65534"
CPU_SECONDS = 5
WALL_SECONDS = 8.0
MEMORY_BYTES = 1 << 30
SPACE_BYTES = 32 << 20
SHARED_BYTES = 1 << 20  # of /dev/shm, for locks
OUTPUT_BYTES = 1 << 16
POLL_SECONDS = 0.02  # seconds between two checks for the end or a stop
PROBE_CODE = "print('here')"

SandboxEnding = Literal["finished", "failed", "out_of_time", "overdue", "killed"]


@dataclass(frozen=True)
class SandboxRun:
    """How code ended: without an error or with one, by a limit, or by a signal.

    `out_of_time` exceeded its CPU time; `overdue` exceeded the wall-clock time, which may be due to
    sleep or a busy machine. `printed` and `complained` are the last OUTPUT_BYTES of its standard
    output and standard error.
    """

    ending: SandboxEnding
    printed: str
    complained: str


@lru_cache(maxsize=1)
def explain_unavailable() -> str:
    """Return why no code can be run here, as one sentence, or an empty string. Cached."""
    if shutil.which("bwrap") is None:
        return "The code was not run: bubblewrap (bwrap) is not installed here."
    if not os.access(PYTHON_PATH, os.X_OK):
        return f"The code was not run: there is no {PYTHON_PATH} here."
    try:
        ran = _run_sandboxed(PROBE_CODE, StopSignal())
    except OSError as error:
        return f"The code was not run: bubblewrap does not start here ({error})."
    if ran.ending == "finished" and ran.printed.strip() == "here":
        return ""
    reason = ran.complained.strip().splitlines()[-1:] or [ran.ending]
    return f"The code was not run: bubblewrap does not work here ({reason[0][:200]})."


def run_python(code: str, stop: StopSignal) -> SandboxRun:
    """Run a program in the sandbox.

    Raises:
        RuntimeError: there is no sandbox here; ask `explain_unavailable` first.
        Stopped: the person stopped the check meanwhile; nothing is left running.
    """
    if off := explain_unavailable():
        raise RuntimeError(off)
    return _run_sandboxed(code, stop)


def _run_sandboxed(code: str, stop: StopSignal) -> SandboxRun:
    with tempfile.TemporaryDirectory(prefix="counterpoint-code-") as directory:
        folder = Path(directory)
        folder.chmod(0o755)  # readable for the user nobody
        snippet, out, err = (folder / part for part in ("in.py", "out", "err"))
        snippet.write_text(code, encoding="utf-8", errors="replace")
        snippet.chmod(0o644)
        began = time.monotonic()
        # Files instead of pipes: the limit on file sizes then bounds the output.
        with out.open("wb") as stdout, err.open("wb") as stderr:
            process = subprocess.Popen(
                _command(snippet),
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
            )
            try:
                while process.poll() is None and time.monotonic() - began <= WALL_SECONDS:
                    stop.check()
                    time.sleep(POLL_SECONDS)
                is_late = process.poll() is None
            finally:
                process.kill()  # also ends everything it started
                process.wait()
        ending: SandboxEnding = "overdue" if is_late else _classify_exit(process.returncode)
        return SandboxRun(ending, _read_tail(out), _read_tail(err))


def _classify_exit(code: int) -> SandboxEnding:
    if code == 0:
        return "finished"
    if code in (-signal.SIGXCPU, 128 + signal.SIGXCPU):  # sent by the CPU limit
        return "out_of_time"
    return "killed" if code < 0 or code > 128 else "failed"


def _read_tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - OUTPUT_BYTES))
        return file.read(OUTPUT_BYTES).decode("utf-8", "replace")


def _command(snippet: Path) -> Sequence[str]:
    as_nobody = ("setpriv", "--reuid", NOBODY_ID, "--regid", NOBODY_ID, "--clear-groups")
    return (
        *(as_nobody if os.geteuid() == 0 else ()),
        *"bwrap --unshare-all --unshare-user --disable-userns --die-with-parent".split(),
        *"--new-session --clearenv --setenv PATH /usr/bin:/bin --cap-drop ALL".split(),
        *"--ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib".split(),
        *"--symlink usr/lib64 /lib64 --proc /proc --dev /dev".split(),
        *("--size", str(SPACE_BYTES), "--tmpfs", "/tmp"),  # noqa: S108 - its own, empty
        *("--size", str(SPACE_BYTES), "--tmpfs", "/box"),
        *("--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm"),  # noqa: S108 - its own, empty
        *("--ro-bind", str(snippet), "/in.py", "--chdir", "/box"),
        # The root of the mounts is in memory too, and has no size limit.
        *"--remount-ro /dev --remount-ro /".split(),
        *("prlimit", f"--as={MEMORY_BYTES}", f"--cpu={CPU_SECONDS}:{CPU_SECONDS + 1}"),
        # The memory limit is per process, so only one is allowed: no forks, no threads.
        *("--nproc=1", "--fsize=1048576", "--nofile=64", "--core=0"),
        *(PYTHON_PATH, "-I", "-X", "utf8", "/in.py"),
    )
