"""Server processes that tests and measurements start, and homes that share one of them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from core.schema.reviews import Correction
from core.store import Store

ROOT = Path(__file__).resolve().parent.parent.parent
START_SECONDS = 60
PACE_FILE = "pace"
HOME_COOKIE = "counterpoint_test_home"
# The address bar's pop-ups are web pages of Chromium's own, for each window another process: more
# than a page of ours takes. The others are what Playwright leaves out; the last list alone counts.
LEFT_OUT = (
    "WebUIOmniboxPopup WebUIOmniboxAimPopup AimEnabled AvoidCorsURLLoaderRestartOnRedirect "
    "AvoidUnnecessaryBeforeUnloadCheckSync DestroyProfileOnBrowserClose HttpsUpgrades "
    "HttpsFirstBalancedModeAutoEnable LensOverlay MediaRouter NetworkTimeServiceQuerying "
    "OptimizationHints PaintHolding PreconnectToSearch ThirdPartyStoragePartitioning"
).split()
FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-quic"),
    f"--disable-features={','.join(LEFT_OUT)}",
]


@dataclass
class Site:
    """A home at the address of a server that serves many homes."""

    home: Path
    address: str

    @property
    def url(self) -> str:
        """Return the address without a slash at its end."""
        return self.address

    def set_pace(self, seconds: float) -> None:
        """Make debaters pause so long after each word, from now on."""
        self.home.parent.mkdir(parents=True, exist_ok=True)
        (self.home.parent / PACE_FILE).write_text(str(seconds))

    def hurry(self) -> None:
        """Make debaters speak without pausing, from now on."""
        self.set_pace(0.0)


def read_pace(home: Path) -> float:
    """Return the pause after each word, in seconds, that the test chose for its home."""
    path = home.parent / PACE_FILE
    return float(path.read_text() or 0.0) if path.is_file() else 0.0


@dataclass
class Server(Site):
    """A server process over a home; it can be killed and started again."""

    address: str = ""
    """The address of a proxy before it; empty without one."""
    port: int = field(default_factory=lambda: free_port())
    module: tuple[str, ...] = ("tests.browser.paced_server",)
    account: Path | None = None
    """The home folder of the operator's account, where Streamlit looks for secrets."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Return the proxy's address, else the server's own."""
        return self.address or f"http://127.0.0.1:{self.port}"

    def spawn(self) -> None:
        """Start its process."""
        log = self.log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *self.module, str(self.port)],
            cwd=ROOT,
            env=os.environ
            | {
                "COUNTERPOINT_HOME": str(self.home),
                "PYTHONFAULTHANDLER": "1",
            }
            | ({"HOME": str(self.account)} if self.account else {}),
            stdout=log,
            stderr=log,
        )
        log.close()

    def start(self) -> None:
        """Start it and wait until it answers."""
        self.spawn()
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            try:
                with urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=1) as answer:
                    if answer.status == 200:
                        return
            except OSError:
                time.sleep(0.1)
        raise AssertionError(self.log.read_text())

    @property
    def log(self) -> Path:
        """What it wrote."""
        return self.home.parent / "server.log"

    def dump_threads(self) -> None:
        """Write to the log what each thread is doing."""
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGUSR1)

    def dump_and_kill(self) -> None:
        """End it, and write to the log what each thread was doing."""
        if self.process is not None:
            self.process.send_signal(signal.SIGABRT)
            self.process.wait()
            self.process = None

    def kill(self) -> None:
        """End it as a power cut would."""
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process = None


def list_newest_corrections(store: Store) -> list[Correction]:
    """Each corrected run's newest correction, in order of time."""
    cases = [case for project in store.projects.all() for case in store.cases.all(project.id)]
    said = [one for case in cases for one in store.corrections.of_case(case.id)]
    return sorted({one.run_id: one for one in said if one.run_id}.values(), key=lambda one: one.at)


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
