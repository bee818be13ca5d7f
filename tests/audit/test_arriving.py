"""A response checked while it arrives: whole statements at once, and in the end a stored run."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.as_it_arrives import Arriving, check_arriving
from core.audit.arriving import decoded, whole_so_far
from core.audited import Remembered
from core.checking import Request
from core.concurrency import Stop
from core.config import PROJECT_ROOT
from core.errors import InputError
from core.events import Event, MemoryUpdated, ProblemMet, RunFinished, StatementFound
from core.evidence.segment import sentences
from core.models.keys import Keys
from core.progress import folded
from core.records import Plan, Statement, Verdict
from core.store import open_store
from tests.fakes import make_case

FACTS = "The Orrin tower is 412 m tall. It was opened in 1932.\n"
FIRST, SECOND = "The Orrin tower is 512 m tall. ", "It was opened in 1932."
PATIENCE = 240.0


def test_a_sentence_is_whole_when_the_next_begins() -> None:
    pieces = ["The tower is", " tall. It", " was built", " in 1932. ", "Done."]
    seen = list(whole_so_far(pieces, "en"))
    assert seen == [
        "The tower is tall.",
        "The tower is tall. It was built in 1932.",
        "The tower is tall. It was built in 1932. Done.",
    ]


@given(st.text(max_size=80), st.integers(1, 7))
def test_what_comes_last_is_all_that_came(text: str, size: int) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    seen = list(whole_so_far(pieces, "en"))
    assert seen[-1] == text
    assert all(text.startswith(part) for part in seen)
    assert all(sentences(part, "en") for part in seen[:-1])


@given(st.text(max_size=60), st.integers(1, 5))
def test_characters_cut_in_two_by_the_pipe_come_whole(text: str, size: int) -> None:
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "ignore").encode()
    pieces = iter([data[i : i + size] for i in range(0, len(data), size)])
    assert "".join(decoded(lambda: next(pieces, b""), 10_000)) == data.decode()


def test_bytes_that_are_no_text_and_too_many_of_them_are_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        list(decoded(iter([b"\xff\xfe", b""]).__next__, 100))
    with pytest.raises(InputError, match="at most 3 bytes"):
        list(decoded(iter([b"four", b""]).__next__, 3))


def test_input_that_never_ends_is_left_at_the_limit(home: Path) -> None:
    taken: list[str] = []

    def endless() -> Iterator[str]:
        while len(taken) < 400:
            taken.append("3 + 4 = 7. ")
            yield taken[-1]

    with open_store(home) as store, store.writing():
        store.projects.save_setting("response_characters", 1000)
    request = Request("", protocol="audit")
    with pytest.raises(InputError, match="at most 1,000 characters"):
        check_arriving(home, request, endless(), lambda s, e: None, time.time, Keys({}))
    assert len(taken) == 1000 // len(taken[0]) + 1


@pytest.mark.slow
def test_the_first_finding_comes_before_the_input_ends(home: Path, tmp_path: Path) -> None:
    facts = tmp_path / "facts.txt"
    facts.write_text(FACTS, encoding="utf-8")
    command = [
        *(sys.executable, "-m", "core", "check", "--home", str(home), "--protocol", "audit"),
        *("--claim-file", "-", "--as-it-arrives", "--document", str(facts), "--json"),
    ]
    with subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=PROJECT_ROOT,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write(FIRST + "It was")
        process.stdin.flush()
        began = time.monotonic()
        line = process.stderr.readline()
        assert line.startswith("1. hallucinated"), line
        assert time.monotonic() - began < PATIENCE
        process.stdin.write(SECOND.removeprefix("It was"))
        process.stdin.close()
        result = json.loads(process.stdout.read())
        rest = process.stderr.read()
    assert process.returncode == 0, rest
    assert rest.startswith("2. supported"), rest
    assert result["label"] == "hallucinated"
    assert [s["label"] for s in result["statements"]] == ["hallucinated", "supported"]
    with open_store(home) as store:
        run = store.runs.get(result["run_id"], time.time(), 60)
        assert run
        events = [event for _, event in store.runs.events(run.id)]
        case = store.cases.get(run.case_id)
    state = folded(events)
    assert case
    assert state.case
    assert case.response == state.case.response == FIRST + SECOND
    assert [event.kind for event in events].count("run_started") == 1
    searched = [use for use in state.tool_uses if use.statement == 0 and use.tool == "match"]
    assert len(searched) == 1, "what was found while it arrived is not done again"


def test_a_service_that_fails_meanwhile_ends_nothing() -> None:
    """Else the stored run would begin with a verdict, and nothing after it would change that."""
    why = "The service is away."
    gone = Verdict("unclear", None, None, why, "agent_failed", why)
    failed = ProblemMet(1.0, "auditing", why, cause="agent_failed")
    entry = MemoryUpdated(0.5, Remembered(0, "supported", 0.1, "So it is."))

    class Failing:
        def review(self, *_: object, **__: object) -> Iterator[tuple[Event, ...]]:
            text = "It is so."
            yield (StatementFound(0.2, Statement(0, 0, len(text), text, text)),)
            yield (entry,)
            yield (failed,)
            yield (RunFinished(1.0, gone, 1.0, 0.0),)

    staff: Any = Failing()
    arriving = Arriving(make_case("It is so."), Plan("audit"), staff, Stop(), lambda *_: None)
    arriving.take("It is so.")
    assert [event.kind for event in arriving.events] == ["statement_found", "memory_updated"]
