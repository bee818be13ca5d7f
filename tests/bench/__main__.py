"""Measures what a person waits for: `make bench`. Nothing here is a test; machines are noisy."""

from __future__ import annotations

import argparse
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from core.baseline.entailment import ENGLISH_DIR
from core.pipeline.jobs import warm_up
from core.pipeline.single_check import CheckRequest, check_once
from core.runtime.config import E5_DIR, ENCODER_DIR
from tests.bench.grid import RATE, run_grid
from tests.bench.large_queue import QUICK, make_large_home, reruns
from tests.bench.local_model import report as local_model
from tests.bench.one_call import middle, of_a_call
from tests.bench.protocols import all_protocols
from tests.bench.reader_speed import pairs_a_second
from tests.bench.rerun import Session
from tests.bench.retraining import report as retraining
from tests.bench.rows import measure_runs
from tests.bench.side_by_side import of_a_panel, of_an_audit
from tests.bench.thick_pdf import CLAIM, make_thick_pdf
from tests.bench.with_models import stop_to_closed, wall_over_critical_path
from tests.browser.serving import FLAGS, Server
from tests.needs import chromium

REPEATS = 5
RERUNS = 20
CALLS = 100
STEP = 0.01
STAGE = ".st-key-run-stage, .cp-verdict"
YARD = 10_000_000
PATIENCE = 60.0
CALL_SECONDS = 0.2  # of one call, where protocols are compared
SLOW = 1.0  # seconds from which on a page's first view is told too
PAGES = {"New check": "", "History": "history", "Library": "library", "Retrain": "retrain"}


def main() -> int:
    """Print each figure beside its goal; `--path` is the folder of the public sets."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--path", type=Path, help="the folder with ReaLMistake's")
    parser.add_argument(
        "--only",
        choices=(
            "retraining",
            "queue",
            "calls",
            "panel",
            "protocols",
            "local-model",
            "rows",
            "grid",
        ),
        help="nothing but this",
    )
    parser.add_argument("--rows", type=int, default=200, help="of the sets, with --only rows")
    parser.add_argument(
        "--whole", action="store_true", help="let SetFit's usual recipe run to its end (an hour)"
    )
    given = parser.parse_args()
    if given.only:
        if given.only == "retraining":
            retraining(given.path, is_whole=given.whole)
            return 0
        if given.only == "rows":
            _row_figures(given.path, given.rows)
            return 0
        with tempfile.TemporaryDirectory() as folder:
            if given.only == "queue":
                _queue_figures(Path(folder) / "queue")
            elif given.only == "grid":
                _grid_figures(Path(folder), given.rows)
            elif given.only == "calls":
                _call_figures(Path(folder))
            elif given.only == "protocols":
                _protocol_figures(Path(folder))
            elif given.only == "local-model":
                local_model(Path(folder), given.path)
            else:
                _side_by_side_figures(Path(folder))
        return 0
    sys.stdout.write(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; medians (least to most)\n"
    )
    _say_yardstick()
    _say_sizes()
    with tempfile.TemporaryDirectory() as folder:
        _page_figures(Path(folder))
        _engine_figures(Path(folder))
        _model_figures(Path(folder))
        _call_figures(Path(folder) / "calls")
        _side_by_side_figures(Path(folder))
        _protocol_figures(Path(folder))
        _reader_figures()
        _queue_figures(Path(folder) / "queue")
    _row_figures(given.path, given.rows)
    retraining(given.path, is_whole=given.whole)
    _say_yardstick()
    return 0


def _say_yardstick() -> None:
    """How fast this machine is just now: neighbours can halve it."""
    seconds = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        total = 0
        for number in range(YARD):
            total += number
        seconds.append(time.perf_counter() - began)
    _say("yardstick: ten million additions in a loop", seconds, "-")


def _say_sizes() -> None:
    """What the engine's weights take on disk: those that ship, and those that set-up makes."""
    for name, folder in (
        ("core/baseline/weights", ENGLISH_DIR.parent),
        (".models/e5", E5_DIR),
        (".models/encoder", ENCODER_DIR),
    ):
        size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        sys.stdout.write(f"{name}: {size / 1e6:.1f} MB\n")


def _page_figures(folder: Path) -> None:
    path = chromium()
    if not path:
        sys.stdout.write("No Chromium found: the page's figures are left out.\n")
        return
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=path, args=FLAGS)
        paints, checks, gaps = [], [], []
        for number in range(REPEATS):
            with _server(folder / f"paint{number}") as server:
                paints.append(_first_paint(server, browser))
        for number in range(REPEATS):
            with _server(folder / f"check{number}") as server:
                seconds, gap = _first_check(server, browser)
                checks.append(seconds)
                gaps.append(gap)
        _say("server start to first paint", paints, "3 s")
        _say("first check on a fresh server, from the click", checks, "8 s")
        _say("longest time in it without a stage on screen", gaps, "1 s")
        browser.close()
    with _server(folder / "rerun") as server:
        server.start()
        _reruns(server)


@contextmanager
def _server(home: Path) -> Iterator[Server]:
    home.mkdir()
    server = Server(home / "home", module=("components.app.launch", "--port"))
    try:
        yield server
    finally:
        server.kill()


def _first_paint(server: Server, browser: Browser) -> float:
    """Seconds from the process's start until the claim box is on screen."""
    page = browser.new_page()
    began = time.perf_counter()
    server.spawn()
    _open(server, page)
    page.get_by_label("Text to check").wait_for()
    seconds = time.perf_counter() - began
    page.close()
    return seconds


def _open(server: Server, page: Page) -> None:
    """Open the page as soon as the server listens."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", server.port)) == 0:
                break
        time.sleep(STEP)
    page.goto(server.url, wait_until="commit")


def _first_check(server: Server, browser: Browser) -> tuple[float, float]:
    """(seconds from click to verdict, longest stretch of it without anything said)."""
    page = browser.new_page()
    server.spawn()
    _open(server, page)
    button = page.get_by_role("button", name="Check it").first
    button.wait_for()
    button.click()
    began = seen = time.perf_counter()
    longest = 0.0
    while not page.locator(".cp-verdict-label").count():
        now = time.perf_counter()
        if page.locator(STAGE).count():
            seen = now
        longest = max(longest, now - seen)
        if now - began > PATIENCE:
            raise TimeoutError("no verdict")
        time.sleep(STEP)
    page.close()
    return time.perf_counter() - began, longest


def _reruns(server: Server) -> None:
    """Reruns of pages before and after the engine is loaded."""
    with Session(server.port) as session:
        session.rerun()
        before = [session.rerun() for _ in range(3)]
        time.sleep(8)  # the engine loads in the background meanwhile
        for name, page in PAGES.items():
            session.rerun(page)
            _say(
                f"rerun of {name}, models loaded",
                [session.rerun(page) for _ in range(RERUNS)],
                "50 ms",
                unit="ms",
            )
        _say("(the first reruns of New check, models loading)", before, "-", unit="ms")


def _engine_figures(folder: Path) -> None:
    pdf = folder / "thick.pdf"
    make_thick_pdf(pdf)
    warm_up(folder / "engine")
    cold = []
    for number in range(3):
        home = folder / f"cold{number}"
        seconds, result = _check(home, pdf)
        cold.append(seconds)
    warm = [_check(home, pdf)[0] for _ in range(REPEATS)]
    _say("one claim against a 50-page PDF, nothing indexed", cold, "10 s")
    _say("the same again, indexed", warm, "0.7 s")
    sys.stdout.write(
        f"  (its verdict: {result['label']}, quoting {result['evidence'][0]['page']})\n"
    )


def _check(home: Path, pdf: Path) -> tuple[float, dict[str, Any]]:
    began = time.perf_counter()
    result, complaints = check_once(home, CheckRequest(CLAIM, documents=[pdf]), time.time)
    assert not complaints, complaints
    return time.perf_counter() - began, result


def _model_figures(folder: Path) -> None:
    for seconds, goal in ((0.2, "1.05"), (1.0, "-")):
        ratios = wall_over_critical_path(folder, 3, seconds)
        _say(f"debate with models, {seconds} s a call: wall / critical", ratios, goal, unit="x")
    _say("Stop to closed connection, in a stream", stop_to_closed(REPEATS), "500 ms", unit="ms")


def _call_figures(folder: Path) -> None:
    """Quartiles of the processor time that one call takes here, in milliseconds."""
    for pieces in (8, 100):
        alone, booked = of_a_call(folder, CALLS, pieces)
        _say(f"processor time of a call, {pieces} pieces, by the client", middle(alone), "-", "")
        _say("(the same with the ledger and the caps around it)", middle(booked), "-", unit="")


def _side_by_side_figures(folder: Path) -> None:
    kinds = {"panel of four": of_a_panel, "audit of ten statements": of_an_audit}
    for name, measured in kinds.items():
        for seconds in (0.2, 1.0):
            found = measured(folder, REPEATS, seconds)
            _say(f"{name}, {seconds} s a call: wall / critical", found.ratios, "1.1", unit="x")
            _say("(processor time a call, milliseconds)", found.processor, "-", unit="")


def _protocol_figures(folder: Path) -> None:
    """Every way to argue among four models, beside one judge alone (SC-MAKS 4.11: below 2.5×)."""
    found = all_protocols(folder, REPEATS, CALL_SECONDS)
    alone = statistics.median(found["single"].walls)
    for name, one in found.items():
        what = f"{name}, {one.calls} calls, {one.chain} in a row, {CALL_SECONDS} s each"
        _say(f"{what}: wall / critical", one.ratios, "1.1", unit="x")
        _say("(processor time a call, milliseconds)", one.processor, "-", unit="")
        _say("(wall / a single judge's)", [wall / alone for wall in one.walls], "-", unit="x")


def _reader_figures() -> None:
    for name, rates in pairs_a_second(REPEATS).items():
        _say(f"pairs of 128 tokens that the reader reads, {name}", rates, "-", unit="/s")


def _row_figures(path: Path | None, rows: int) -> None:
    """Rows of public sets through the built-in engine, one thread a worker."""
    if path is None:
        sys.stdout.write("No --path to the public sets: rows a second are left out.\n")
        return
    alone: dict[str, float] = {}
    for run, found in measure_runs(path, rows):
        what = f"rows a second, {run}; {found.different} results differ"
        _say(what, [found.rate], "-", unit="/s")
        by_one = alone.setdefault(run.executor, found.rate)
        if run.workers > 1:
            _say(f"(the same by one worker's, {run.executor})", [found.rate / by_one], "1.8", "x")


def _grid_figures(folder: Path, rows: int) -> None:
    """Eight ways to argue over a server with a rate, a fifth of whose answers are faults."""
    found = run_grid(folder / "grid", rows)
    ends = ", ".join(f"{count:,} {name}" for name, count in found.ends.items())
    sys.stdout.write(f"grid: {found.calls:,} calls, {found.faults:,} of them faults; {ends}\n")
    _say("(share of the allowed rate that was used)", [found.used], "0.95", unit="")
    _say(f"(most requests that arrived in a second, of {RATE})", [found.most], str(RATE), unit="")


def _queue_figures(folder: Path) -> None:
    """Pages where 20,000 runs have 100,000 corrections."""
    folder.mkdir()
    made = make_large_home(folder / "home", folder)
    _say(f"(a home of {made.runs:,} runs, {made.corrections:,} corrections)", [made.seconds], "-")
    server = Server(folder / "home", module=("components.app.launch", "--port"))
    server.start()
    try:
        with Session(server.port) as session:
            session.rerun()
            time.sleep(8)  # the engine loads in the background meanwhile
        for name, (first, again) in reruns(server.port, made).items():
            goal = "200 ms" if name in QUICK else "-"
            _say(f"rerun of {name} over them", again, goal, unit="ms")
            if first > SLOW:
                _say(f"(the first view of {name})", [first], "-")
    finally:
        server.kill()


def _say(what: str, values: list[float], goal: str, unit: str = "s") -> None:
    scaled = sorted(value * (1000 if unit == "ms" else 1) for value in values)
    digits = 0 if unit == "ms" else 2
    sys.stdout.write(
        f"{what:58s} {statistics.median(scaled):8.{digits}f} {unit:2s} "
        f"({scaled[0]:.{digits}f} to {scaled[-1]:.{digits}f})  goal {goal}\n"
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
