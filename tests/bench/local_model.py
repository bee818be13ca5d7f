"""The small local model in every protocol: replies that parse, tokens, seconds, ratios, accuracy.

`python -m tests.bench --only local-model [--path SETS]` needs `make local-model`. A proxy before
llama.cpp's server counts what the server says that it read and wrote.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import openai

from core.agents.agent_runner import AgentContext
from core.agents.qualification import qualify_model
from core.agents.roster_files import write_roster
from core.llm.call import Call, Message, ModelRequest
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.local_server import MODEL, PROVIDER, SERVER, WINDOW
from core.llm.metering import CallAccount, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.pipeline.single_check import CLI_PROTOCOLS, CheckRequest, check_once
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT, Settings
from core.schema.rosters import AgentConfig, RosterConfig
from core.schema.run_state import fold_events
from core.store import open_store
from core.store.ledger import RETRY_SLOT_SUFFIX
from tests.bench.with_models import models

FACT = "The tower is 412 m tall. It was opened in 1932."
CLAIMS = ("The tower is 512 m tall.", "The tower was opened in 1932.")
SECONDS = 300  # the longest silence: a slow machine is no failure here
CALLS = 10
GATED = 20  # rows with the gate: a model that failed its test decides none of them
PATIENCE = 600.0


@dataclass
class Recorded:
    """What went through the proxy: request bodies in order, and the server's own token counts."""

    base: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    tokens: Counter[str] = field(default_factory=Counter)


@contextmanager
def proxied(target: Callable[[], str]) -> Iterator[Recorded]:
    """Forward to an OpenAI-compatible address and record what passes."""
    recorded = Recorded()

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            root = target().removesuffix("/v1")
            answer = httpx.get(root + self.path, timeout=PATIENCE)
            with suppress(BrokenPipeError):  # whoever asked may have waited long enough
                self._begin(answer)
                self.wfile.write(answer.content)

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            recorded.bodies.append(json.loads(body))
            url = f"{target().removesuffix('/v1')}{self.path}"
            with httpx.stream("POST", url, content=body, timeout=PATIENCE) as answer:
                self._begin(answer)
                for line in answer.iter_lines():
                    self.wfile.write(line.encode() + b"\n")
                    self.wfile.flush()
                    if line.startswith("data: {"):
                        usage = json.loads(line[6:]).get("usage") or {}
                        recorded.tokens["in"] += usage.get("prompt_tokens", 0)
                        recorded.tokens["out"] += usage.get("completion_tokens", 0)

        def _begin(self, answer: httpx.Response) -> None:
            self.send_response(answer.status_code)
            self.send_header("Content-Type", answer.headers["Content-Type"])
            self.send_header("Connection", "close")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    Thread(target=server.serve_forever, daemon=True).start()
    recorded.base = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield recorded
    finally:
        server.shutdown()
        server.server_close()


def report(folder: Path, sets: Path | None) -> None:
    """Print all figures."""
    try:
        _report_runs(folder)
        _report_call_ratio(folder / "calls")
        _report_check_ratio(folder)
        if sets is not None:
            _report_accuracy(folder, sets)
    finally:
        SERVER.close()


def _report_runs(folder: Path) -> None:
    """Every protocol over two claims: which replies could be used, and at which price."""
    asked: Counter[str] = Counter()
    unusable: Counter[str] = Counter()
    equal = 0
    for protocol in CLI_PROTOCOLS:
        for number, claim in enumerate(CLAIMS):
            home = folder / f"{protocol}{number}"
            home.mkdir(parents=True)
            document = home / "tower.txt"
            document.write_text(FACT)
            with proxied(SERVER.address) as server:
                began = time.monotonic()
                request = CheckRequest(
                    claim,
                    documents=(document,),
                    protocol=protocol,
                    model=f"openai/{MODEL}",
                    api_base=server.base,
                    window=WINDOW,
                    seconds=SECONDS,
                )
                outcome, _ = check_once(home / "home", request, time.time, Keys({}))
                seconds = time.monotonic() - began
            run_id = str(outcome["run_id"])
            with open_store(home / "home") as store:
                state = fold_events(event for _, event in store.runs.events(run_id))
                rows = store.ledger.of_run(run_id)
            booked = (sum(r.tokens_in for r in rows), sum(r.tokens_out for r in rows))
            served = (server.tokens["in"], server.tokens["out"])
            equal += booked == served
            lost: Counter[str] = Counter()
            for row in rows:
                asked[row.prompt] += 1
                if row.slot.endswith(RETRY_SLOT_SUFFIX):  # the reply before it could not be read
                    lost[row.prompt] += 1
            twice = sum(bool(problem.reply) for problem in state.problems)
            unusable += lost
            unusable["(asked twice in vain)"] += twice
            sys.stdout.write(
                f"{protocol:22s} {outcome['label']:12s} {len(rows):3d} calls "
                f"{sum(lost.values()) + twice:2d} unusable  tokens {booked} "
                f"{'equal' if booked == served else f'server {served}'} {seconds:6.1f} s\n"
            )
            sys.stdout.flush()
    lost_count = unusable.total()
    share = 1 - lost_count / asked.total()
    sys.stdout.write(
        f"replies that could be used: {asked.total() - lost_count} of {asked.total()} "
        f"({share:.0%})  goal 90%\n"
        f"runs whose ledger equals the server's counts: {equal} of "
        f"{len(CLI_PROTOCOLS) * len(CLAIMS)}\n"
    )
    for prompt, count in unusable.most_common():
        sys.stdout.write(f"  unusable {prompt}: {count} of {asked[prompt]}\n")


def _report_call_ratio(folder: Path) -> None:
    """One judge's call, ledger and caps around it, over the same by the openai client."""
    with models(1.0) as base, open_store(folder):
        client = openai.OpenAI(api_key="none", base_url=base)
        account = CallAccount("run", "Mira", "project")
        metered = MeteredClient(
            ModelClient(Keys({})), folder, account, SpendingCaps.of(Settings()), time.time
        )
        agent = AgentConfig("openai/loopback", base, temperature=0.3)

        def ours(number: int) -> None:
            call = Call(agent, (Message("user", f"Judge claim {number}."),))
            metered.ask(ModelRequest("judge", f"slot {number}", call), StopSignal())

        def theirs(number: int) -> None:
            stream = client.chat.completions.create(
                model="loopback",
                messages=[{"role": "user", "content": f"Judge claim {number}."}],
                temperature=0.3,
                stream=True,
                stream_options={"include_usage": True},
            )
            for _ in stream:
                pass

        ratio = _median_seconds(ours) / _median_seconds(theirs)
    sys.stdout.write(f"a judge's call / the openai client's, 1 s a call: {ratio:.3f}  goal 1.05\n")


def _median_seconds(act: Callable[[int], None]) -> float:
    act(-1)
    found = []
    for number in range(CALLS):
        began = time.monotonic()
        act(number)
        found.append(time.monotonic() - began)
    return statistics.median(found)


def _report_check_ratio(folder: Path) -> None:
    """A check by the command line over its prompts sent again to a fresh server, as they were."""
    document = folder / "tower.txt"
    document.write_text(FACT)
    with proxied(SERVER.address) as server:
        SERVER.close()  # its cache of prompts would serve one side only
        SERVER.address()
        began = time.monotonic()
        subprocess.run(
            [
                *(sys.executable, "-m", "core", "check", "--claim", CLAIMS[0]),
                *("--document", str(document), "--protocol", "single"),
                *("--model", f"openai/{MODEL}", "--api-base", server.base),
                *("--seconds", str(SECONDS), "--home", str(folder / "ratio")),
            ],
            cwd=PROJECT_ROOT,
            check=False,
            stdout=subprocess.DEVNULL,
        )
        whole = time.monotonic() - began
        bodies = list(server.bodies)
    SERVER.close()
    base = SERVER.address()
    began = time.monotonic()
    for body in bodies:
        with httpx.stream(
            "POST", f"{base}/chat/completions", json=body, timeout=PATIENCE
        ) as answer:
            for _ in answer.iter_lines():
                pass
    raw = time.monotonic() - began
    sys.stdout.write(
        f"a single check, {whole:.1f} s / its {len(bodies)} prompts alone, {raw:.1f} s: "
        f"{whole / raw:.2f}  goal 1.3\n"
    )


def _report_accuracy(folder: Path, sets: Path) -> None:
    """The judge alone, all other roles built in, without the gate and with it."""
    home = folder / "test"
    with open_store(home):
        pass
    free = AgentConfig(f"openai/{MODEL}", SERVER.address(), window=WINDOW, seconds=SECONDS)
    gated = AgentConfig(f"{PROVIDER}/{MODEL}", window=WINDOW, seconds=SECONDS)
    for name, agent, rows in (("without the gate", free, 100), ("with the gate", gated, GATED)):
        roster = folder / f"{name}.json"
        roster.write_bytes(write_roster(RosterConfig(f"judge {name}", judge=agent)))
        done = subprocess.run(
            [
                *(sys.executable, "-m", "core", "evaluate", "--dataset", "fever_symmetric"),
                *("--path", str(sets), "--split", "dev20", "--limit", str(rows)),
                *("--trivial-limit", "1", "--protocol", "single", "--roster", str(roster)),
                *("--json", "--home", str(folder / name)),
            ],
            cwd=PROJECT_ROOT,
            check=True,
            stdout=subprocess.PIPE,
        )
        metrics = json.loads(done.stdout)["metrics"]
        figures = ", ".join(
            f"{key} {metrics[key]['value']:.2f}"
            for key in ("coverage", "accuracy", "selective_accuracy", "balanced_accuracy")
            if key in metrics
        )
        sys.stdout.write(f"fever_symmetric, {rows} rows, {name}: {figures}\n")
    account = CallAccount("test", "Mira", "project")
    metered = MeteredClient(
        ModelClient(Keys({})), home, account, SpendingCaps.of(Settings()), time.time
    )
    context = AgentContext(metered, PromptBook(), Fence.of_run("test"), home)
    result = qualify_model(
        AgentConfig(f"{PROVIDER}/{MODEL}", window=WINDOW), context, StopSignal(), 0.0
    )
    sys.stdout.write(f"its test as a judge: {result.words}\n")
