"""What many tests are run with; no test reaches the network or another test's state."""

from __future__ import annotations

import functools
import gc
import os
import socket
from collections.abc import Generator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from streamlit.components.v2 import manifest_scanner

from core.agents.roster_files import TEST_RETRY_POLICY
from core.agents.rosters import make_built_in_roster
from core.baseline.encoder import MultilingualEncoder, load_multilingual_encoder
from core.llm.failures import RetryPolicy
from core.pipeline.jobs import JobRunner
from core.pipeline.review import ReviewResources
from core.runtime.config import HOME_VARIABLE, Settings
from core.schema.roles import Roster
from core.store import Store, open_store
from core.verdict.classifier import load_classifier
from tests.fakes import ticking
from tests.needs import SKIPS
from tests.readers import paw_assessor

# The same examples every time, so that a change is judged by its own faults; a search for new ones
# is `HYPOTHESIS_PROFILE=search make test`.
settings.register_profile("steady", derandomize=True, deadline=None, max_examples=40)
settings.register_profile("search", max_examples=3000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

LOCAL = ("127.0.0.1", "localhost", "::1")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Where CI demands it, a test that was skipped has failed, whatever skipped it."""
    report = yield
    if report.skipped and os.environ.get(SKIPS) == "fail":
        report.outcome = "failed"
    return report


@pytest.fixture(autouse=True, scope="session")
def _frozen_modules() -> None:
    """Libraries collect garbage often: a third of a second if they look through all modules."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any connection that leaves this machine fails at once."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in LOCAL:
            raise AssertionError(f"a test tried to connect to {address}")
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True, scope="session")
def _no_component_scan() -> Iterator[None]:
    """AppTest reads the metadata of all installed packages at each start: a quarter of a second.

    It looks for packages that bring components; ours are not packages.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        yield


@pytest.fixture(autouse=True, scope="session")
def _no_pause_before_retries() -> Iterator[None]:
    """Calls that name no policy of their own retry at once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("core.llm.client.RetryPolicy", functools.partial(RetryPolicy, backoff=0.01))
        patch.setattr(
            "core.agents.roster_files.TEST_RETRY_POLICY", replace(TEST_RETRY_POLICY, backoff=0.01)
        )
        yield


@pytest.fixture(autouse=True, scope="session")
def _texts_encoded_once() -> Iterator[None]:
    """Tests check the same few texts again and again: each is encoded once in a process."""
    encode_one = functools.lru_cache(maxsize=10_000)(MultilingualEncoder._encode_one)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MultilingualEncoder, "_encode_one", encode_one)
        yield


@pytest.fixture(autouse=True)
def _own_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nobody writes into the home of whoever runs the tests."""
    monkeypatch.setenv(HOME_VARIABLE, str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def _no_runs_left(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """End what a test left running: its threads would take time from later tests."""
    made: list[JobRunner] = []
    init = JobRunner.__init__

    def record(self: JobRunner, *args: Any, **options: Any) -> None:
        init(self, *args, **options)
        made.append(self)

    monkeypatch.setattr(JobRunner, "__init__", record)
    yield
    for jobs in made:
        jobs.close()


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """An empty home."""
    return tmp_path / "home"


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store in memory."""
    with open_store(None) as opened:
        yield opened


@pytest.fixture
def resources(home: Path) -> ReviewResources:
    """The real encoder and the seed classifier over an empty home."""
    return ReviewResources(
        home=home,
        settings=Settings(),
        encoder=load_multilingual_encoder(),
        classifier=load_classifier(home, "seed"),
        now=ticking(),
    )


@pytest.fixture
def roster() -> Roster:
    """The built-in roster over a reader without weights."""
    return make_built_in_roster("builtin", assessor=paw_assessor())


@pytest.fixture
def without_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have everything in this process that takes the shipped reader take one without weights."""
    monkeypatch.setattr("core.baseline.entailment.load_shared_assessor", paw_assessor)
