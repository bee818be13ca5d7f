"""Runs Python that nobody vouches for, walled off by bubblewrap: no network, no files, few means.

Without bubblewrap nothing is ever run: the caller is told why, and says so. Where this process is
root, the code runs as nobody, for the limit on processes does not bind root.
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

from core.runtime.concurrency import Stop

PYTHON = "/usr/bin/python3"  # readable by every user, unlike one in somebody's home
NOBODY = "65534"
CPU_SECONDS = 5
WALL_SECONDS = 8.0
MEMORY_BYTES = 1 << 30
SPACE_BYTES = 32 << 20
SHARED_BYTES = 1 << 20  # of /dev/shm, for locks
OUTPUT_BYTES = 1 << 16
STEP = 0.02  # seconds between two looks at whether it ended or is to be stopped
PROBE = "print('here')"

Ending = Literal["finished", "failed", "out_of_time", "overdue", "killed"]


@dataclass(frozen=True)
class Ran:
    """How code ended: by itself without an error or with one, by a limit, or by a signal.

    `out_of_time` used up its processor time; `overdue` took too long by the clock, which may be
    sleep or a busy machine.
    `printed` and `complained` are what it wrote on its two channels, the last OUTPUT_BYTES of each.
    """

    ending: Ending
    printed: str
    complained: str


@lru_cache(maxsize=1)
def why_off() -> str:
    """Why no code can be run here, as one sentence; empty where it can. Looked up once."""
    if shutil.which("bwrap") is None:
        return "The code was not run: bubblewrap (bwrap) is not installed here."
    if not os.access(PYTHON, os.X_OK):
        return f"The code was not run: there is no {PYTHON} here."
    try:
        ran = _run(PROBE, Stop())
    except OSError as error:
        return f"The code was not run: bubblewrap does not start here ({error})."
    if ran.ending == "finished" and ran.printed.strip() == "here":
        return ""
    reason = ran.complained.strip().splitlines()[-1:] or [ran.ending]
    return f"The code was not run: bubblewrap does not work here ({reason[0][:200]})."


def run_python(code: str, stop: Stop) -> Ran:
    """Run a program in the sandbox.

    Raises:
        RuntimeError: there is no sandbox here; ask `why_off` first.
        Stopped: the person stopped the check meanwhile; nothing is left running.
    """
    if off := why_off():
        raise RuntimeError(off)
    return _run(code, stop)


def _run(code: str, stop: Stop) -> Ran:
    with tempfile.TemporaryDirectory(prefix="counterpoint-code-") as name:
        folder = Path(name)
        folder.chmod(0o755)  # nobody must get to it
        snippet, out, err = (folder / part for part in ("in.py", "out", "err"))
        snippet.write_text(code, encoding="utf-8", errors="replace")
        snippet.chmod(0o644)
        began = time.monotonic()
        # Into files, not pipes: the limit on a file's size then bounds a flood of output.
        with out.open("wb") as printed, err.open("wb") as complained:
            process = subprocess.Popen(
                _command(snippet),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=complained,
                cwd="/",
                env={"PATH": "/usr/bin:/bin"},
            )
            try:
                while process.poll() is None and time.monotonic() - began <= WALL_SECONDS:
                    stop.check()
                    time.sleep(STEP)
                is_late = process.poll() is None
            finally:
                process.kill()  # with it goes all that it started
                process.wait()
        ending: Ending = "overdue" if is_late else _ending(process.returncode)
        return Ran(ending, _tail(out), _tail(err))


def _ending(code: int) -> Ending:
    if code == 0:
        return "finished"
    if code in (-signal.SIGXCPU, 128 + signal.SIGXCPU):  # what the limit on processor time sends
        return "out_of_time"
    return "killed" if code < 0 or code > 128 else "failed"


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - OUTPUT_BYTES))
        return file.read(OUTPUT_BYTES).decode("utf-8", "replace")


def _command(snippet: Path) -> Sequence[str]:
    as_nobody = ("setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups")
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
        # What holds the mounts is a file system in memory too, and has no limit of its own.
        *"--remount-ro /dev --remount-ro /".split(),
        *("prlimit", f"--as={MEMORY_BYTES}", f"--cpu={CPU_SECONDS}:{CPU_SECONDS + 1}"),
        # Memory is bounded for each process, so there is one: no forks, no threads.
        *("--nproc=1", "--fsize=1048576", "--nofile=64", "--core=0"),
        *(PYTHON, "-I", "-X", "utf8", "/in.py"),
    )
