"""A server process that a test or a measurement starts, kills and starts again."""

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
HURRY = "hurry"  # a file beside the home
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
class Server:
    """A server process over a home; it can be killed and started again."""

    home: Path
    port: int
    pace: float = 0.0
    module: tuple[str, ...] = ("tests.browser.paced_server",)
    account: Path | None = None  # the home of who runs it, where Streamlit looks for secrets
    address: str = ""  # of a proxy that stands before it
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def url(self) -> str:
        """Its address."""
        return self.address or f"http://127.0.0.1:{self.port}"

    def hurry(self) -> None:
        """From now on, and in runs to come, debaters speak without pausing."""
        (self.home.parent / HURRY).touch()

    def spawn(self) -> None:
        """Start its process."""
        log = self.log.open("ab")
        self.process = subprocess.Popen(
            [sys.executable, "-m", *self.module, str(self.port)],
            cwd=ROOT,
            env=os.environ
            | {
                "COUNTERPOINT_HOME": str(self.home),
                "PACE": str(self.pace),
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

    def dump_and_kill(self) -> None:
        """End it with a last word of where each of its threads was."""
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
