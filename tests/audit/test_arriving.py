"""A response checked while it arrives: whole statements at once, and in the end a stored run."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.segmenter import StatementSplitter
from core.documents.segmentation import split_sentences
from core.llm.keys import Keys
from core.pipeline.audit_steps import accumulate_statements, decode_stream
from core.pipeline.single_check import (
    ArrivingResponse,
    CheckRequest,
    check_arriving,
    check_stream,
)
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import InputError
from core.schema.events import (
    Event,
    MemoryEntry,
    MemoryUpdated,
    ProblemMet,
    RunFinished,
    StatementFound,
)
from core.schema.records import Plan, Statement, Verdict
from core.schema.rosters import AgentConfig, RosterConfig
from core.schema.run_state import fold_events
from core.store import open_store
from tests.fakes import make_case
from tests.llm.cast import Cast, as_json
from tests.llm.loopback import loopback

pytestmark = pytest.mark.timing

FACTS = "The Orrin tower is 412 m tall. It was opened in 1932.\n"
FIRST, SECOND = "The Orrin tower is 512 m tall. ", "It was opened in 1932."
PATIENCE = 240.0


def test_a_sentence_is_whole_when_the_next_begins() -> None:
    pieces = ["The tower is", " tall. It", " was built", " in 1932. ", "Done."]
    seen = list(accumulate_statements(pieces, "en"))
    assert seen == [
        "The tower is tall.",
        "The tower is tall. It was built in 1932.",
        "The tower is tall. It was built in 1932. Done.",
    ]


@given(st.text(max_size=80), st.integers(1, 7))
def test_what_comes_last_is_all_that_came(text: str, size: int) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    seen = list(accumulate_statements(pieces, "en"))
    assert seen[-1] == text
    assert all(text.startswith(part) for part in seen)
    assert all(split_sentences(part, "en") for part in seen[:-1])


@given(st.text(max_size=60), st.integers(1, 5))
def test_characters_cut_in_two_by_the_pipe_come_whole(text: str, size: int) -> None:
    data = text.encode("utf-8", "surrogatepass").decode("utf-8", "ignore").encode()
    pieces = iter([data[i : i + size] for i in range(0, len(data), size)])
    assert "".join(decode_stream(lambda: next(pieces, b""), 10_000)) == data.decode()


def test_bytes_that_are_no_text_and_too_many_of_them_are_refused() -> None:
    with pytest.raises(InputError, match="UTF-8"):
        list(decode_stream(iter([b"\xff\xfe", b""]).__next__, 100))
    with pytest.raises(InputError, match="at most 3 bytes"):
        list(decode_stream(iter([b"four", b""]).__next__, 3))


@given(st.text(min_size=1, max_size=20), st.integers(1, 3), st.integers(1, 5))
def test_what_came_before_half_a_character_is_kept_and_it_is_said(
    text: str, keep: int, size: int
) -> None:
    text = text.encode("utf-8", "ignore").decode()
    data = text.encode() + "👩".encode()[:keep]
    pieces = iter([data[i : i + size] for i in range(0, len(data), size)])
    said: list[str] = []
    assert "".join(decode_stream(lambda: next(pieces, b""), 10_000, said.append)) == text
    (words,) = said
    assert f"({keep})" in words


def test_a_stream_that_ends_within_a_character_is_checked_up_to_there(home: Path) -> None:
    data = "3 + 4 = 7. 2 + 2 = 5. Ende é".encode()[:-1]
    stream = io.TextIOWrapper(io.BufferedReader(io.BytesIO(data)))
    said: list[str] = []
    found, _ = check_stream(home, CheckRequest("", protocol="audit"), Keys({}), stream, said.append)
    assert found["status"] == "finished"
    assert [s["label"] for s in found["statements"]][:2] == ["supported", "hallucinated"]
    assert sum("middle of a character" in words for words in said) == 1


CODE = "\n```python\ndef a():\n    return 1\n\n\nassert a() == 1\n```\n"
TEXTS = st.lists(
    st.sampled_from(["The tower is old. ", "It is 3.5 m tall. ", "3 + 4 = 7.\n", "- one\n", CODE,
                     "Dr. Moor built it. ", "\n\n", "So 8 * 2 = 16. ", "云溪桥很长。", "and "]),
    max_size=8,
).map("".join)  # fmt: skip


@given(TEXTS, st.integers(1, 30))
def test_a_response_is_cut_once_however_it_arrives(text: str, size: int) -> None:
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    cutter = StatementSplitter()
    found = [s for part in accumulate_statements(pieces, "en") for s in cutter.take(part, "en")]
    assert [s.index for s in found] == list(range(len(found)))
    assert all(text[s.start : s.end] == s.text for s in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    cut = {place for s in found for place in range(s.start, s.end)}
    lost = "".join(char for place, char in enumerate(text) if place not in cut)
    assert not any(char.isalnum() for char in lost), "nothing is left out"
    assert not any("```" in s.text and not s.text.startswith("```") for s in found)


def test_input_that_never_ends_is_left_at_the_limit(home: Path) -> None:
    taken: list[str] = []

    def endless() -> Iterator[str]:
        while len(taken) < 400:
            taken.append("3 + 4 = 7. ")
            yield taken[-1]

    with open_store(home) as store, store.writing():
        store.projects.save_setting("response_characters", 1000)
    request = CheckRequest("", protocol="audit")
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
        assert line.startswith("1. "), line
        assert "512 m" in line
        assert time.monotonic() - began < PATIENCE
        process.stdin.write(SECOND.removeprefix("It was"))
        process.stdin.close()
        result = json.loads(process.stdout.read())
        rest = process.stderr.read()
    assert process.returncode == 0, rest
    assert rest.startswith("2. "), rest
    assert result["label"] == "hallucinated"
    assert result["statements"][0]["label"] == "hallucinated"
    with open_store(home) as store:
        run = store.runs.get(result["run_id"], time.time(), 60)
        assert run
        events = [event for _, event in store.runs.events(run.id)]
        case = store.cases.get(run.case_id)
    state = fold_events(events)
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
    entry = MemoryUpdated(0.5, MemoryEntry(0, "supported", 0.1, "So it is."))

    class Failing:
        def review(self, *_: object, **__: object) -> Iterator[tuple[Event, ...]]:
            text = "It is so."
            yield (StatementFound(0.2, Statement(0, 0, len(text), text, text)),)
            yield (entry,)
            yield (failed,)
            yield (RunFinished(1.0, gone, 1.0, 0.0),)

    staff: Any = Failing()
    arriving = ArrivingResponse(make_case("It is so."), Plan("audit"), staff, lambda *_: None)
    arriving.take("It is so.")
    assert [event.kind for event in arriving.events] == ["statement_found", "memory_updated"]


def test_a_model_that_cuts_otherwise_loses_and_doubles_no_statement(home: Path) -> None:
    """It is seated as segmenter, and would cut the whole into two: what was told stays."""
    pieces = ["3 + 4 = 7. ", "2 + 2 = 5. ", "1 + 1 = 2. ", "5 + 5 = 10."]
    whole = "".join(pieces)
    halves = [whole[:21], whole[22:]]
    cuts = {"statements": [{"quote": half, "rewrite": half} for half in halves]}
    told: list[tuple[int, str, str]] = []

    def tell(statement: Statement, entry: MemoryEntry) -> None:
        told.append((statement.index, statement.text, entry.label))

    with loopback(Cast({"segment": as_json(cuts)})) as server:
        sheet = RosterConfig("cutting", segmenter=AgentConfig("openai/loopback", server.base))
        with open_store(home) as store, store.writing():
            store.rosters.save(sheet, "Mira", 1.0)
        request = CheckRequest("", protocol="audit", roster="cutting")
        found, notices = check_arriving(home, request, pieces, tell, time.time, Keys({}))
        assert not server.asked, "nothing is cut a second time"
    assert any("built-in segmenter" in notice for notice in notices)
    assert [text for _, text, _ in told] == [piece.strip() for piece in pieces]
    with open_store(home) as store:
        events = [event for _, event in store.runs.events(found["run_id"])]
    state = fold_events(events)
    assert [(i, s.text) for i, s in state.statements.items()] == [one[:2] for one in told]
    assert sorted(state.memory) == [0, 1, 2, 3]
    assert [use.statement for use in state.tool_uses if use.statement is not None] == [0, 1, 2, 3]
    assert sum(event.kind == "statement_found" for event in events) == len(pieces)


@pytest.mark.slow
def test_the_work_for_a_statement_does_not_grow_with_those_before_it(home: Path) -> None:
    """What the last hundred of many statements cost, beside the second hundred.

    The machine is shared: growth is what shows each time.
    """
    growths = [_measure_growth(home)]
    while min(growths) >= 1.4 and len(growths) < 3:
        growths.append(_measure_growth(home / str(len(growths))))
    assert min(growths) < 1.4, f"{growths} times as long"


def _measure_growth(home: Path) -> float:
    count, ticks = 500, list[float]()

    def tell(statement: Statement, entry: MemoryEntry) -> None:
        ticks.append(time.process_time())

    pieces = [f"{n} + 1 = {n + 1}. " for n in range(100, 100 + count)]
    check_arriving(home, CheckRequest("", protocol="audit"), pieces, tell, time.time, Keys({}))
    assert len(ticks) == count
    took = [later - before for before, later in pairwise(ticks)]
    return median(took[-100:]) / median(took[100:200])
