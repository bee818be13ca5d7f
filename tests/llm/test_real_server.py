"""The small model on llama.cpp's real server: outcomes and counts are asserted, never a verdict."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from core.agents.agent_runner import AgentContext
from core.agents.llm_judge import LlmJudge
from core.agents.qualification import CASES, load_standing
from core.agents.rosters import SHIPPED_ROSTERS
from core.llm.call import Call, Message
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.limits import SpendingCaps
from core.llm.local_server import MODEL, PROVIDER, SERVER, SLOTS, LocalServer, find_weights
from core.llm.metering import CallAccount, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.llm.servers import find_slots
from core.pipeline.single_check import CheckRequest, check_once
from core.runtime.concurrency import StopSignal
from core.runtime.config import Settings
from core.runtime.errors import ModelError, Stopped
from core.schema.records import Case, EvidenceContext, Passage
from core.schema.roles import CaseView, Evidence, JudgeView
from core.schema.rosters import AgentConfig
from core.store import open_store

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timing,
    pytest.mark.skipif(find_weights() is None, reason="`make local-model` was not run"),
]
SEAT = AgentConfig(f"{PROVIDER}/{MODEL}", max_tokens=24, window=8192, seconds=60)
HELLO = (Message("user", "Say hello to Ada in one sentence."),)


@pytest.fixture(autouse=True, scope="module")
def _server_ends() -> Iterator[None]:
    yield
    SERVER.close()


def completed(call: Call, heard: list[str] | None = None, stop: StopSignal | None = None) -> object:
    pieces = heard if heard is not None else []
    return ModelClient(Keys({})).complete(call, pieces.append, stop or StopSignal())


def test_text_streams_and_its_tokens_are_the_servers_own() -> None:
    heard: list[str] = []
    said = ModelClient(Keys({})).complete(Call(SEAT, HELLO), heard.append, StopSignal())
    assert said.text == "".join(heard)
    assert len(heard) > 3, "it came in pieces"
    body = {
        "model": MODEL, "temperature": 0, "max_tokens": 24,
        "messages": [{"role": "user", "content": HELLO[0].text}],
    }  # fmt: skip
    asked = httpx.post(f"{SERVER.address()}/chat/completions", json=body, timeout=60)
    usage = asked.json()["usage"]
    assert said.is_counted
    assert (said.tokens_in, said.tokens_out) == (usage["prompt_tokens"], usage["completion_tokens"])


def test_a_schema_is_kept_to_within_its_bounds() -> None:
    schema = {
        "type": "object",
        "properties": {
            "colour": {"type": "string", "enum": ["red", "green"]},
            "words": {"type": "array", "items": {"type": "string", "maxLength": 8}, "maxItems": 2},
        },
        "required": ["colour", "words"],
        "additionalProperties": False,
    }
    said = completed(Call(replace(SEAT, max_tokens=200), HELLO, schema))
    body = json.loads(said.text)  # type: ignore[attr-defined]
    assert body["colour"] in ("red", "green")
    assert len(body["words"]) <= 2
    assert all(len(word) <= 8 for word in body["words"])


def test_a_stop_ends_a_long_answer_at_once() -> None:
    stop, heard = StopSignal(), []

    def listen(piece: str) -> None:
        heard.append(piece)
        stop.set()

    long = Call(replace(SEAT, max_tokens=2000), (Message("user", "Count to a thousand."),))
    began = time.monotonic()
    with pytest.raises(Stopped):
        ModelClient(Keys({})).complete(long, listen, stop)
    assert time.monotonic() - began < 10
    assert heard


def test_a_prompt_beyond_the_window_is_said_in_words() -> None:
    long = Call(SEAT, (Message("user", "word " * 10_000),))
    with pytest.raises(ModelError, match="longer than the window"):
        completed(long)


def test_calls_wait_for_one_of_its_slots_here_and_not_in_its_silence() -> None:
    assert find_slots(SERVER.address()) == SLOTS
    call = Call(replace(SEAT, seconds=20, max_tokens=200), HELLO)
    done: list[object] = []
    threads = [
        threading.Thread(target=lambda: done.append(completed(call))) for _ in range(3 * SLOTS)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 3 * SLOTS


def test_a_server_that_was_killed_is_started_again_for_the_next_call() -> None:
    completed(Call(SEAT, HELLO))
    first = SERVER.address()
    SERVER.close()
    assert completed(Call(SEAT, HELLO))
    assert SERVER.address() != first


def test_the_judges_reply_parses(home: Path) -> None:
    with open_store(home):
        pass
    desk = MeteredClient(
        ModelClient(Keys({})),
        home,
        CallAccount("run", "Mira", "p"),
        SpendingCaps.of(Settings()),
        time.time,
    )
    work = AgentContext(
        desk, PromptBook(), Fence.of_run("run"), home, judge_prompts=("judge_plain",)
    )
    evidence, claim, _ = CASES[0]
    passage = Passage("P1", "s", "Evidence", False, None, 0, len(evidence), evidence, 1.0)
    view = CaseView(Case("c", "p", claim), (), Evidence({"P1": passage}, {}), {})
    seen = JudgeView(view, EvidenceContext((), ("P1",), ""), (), False, "plain")
    judgement = LlmJudge(SHIPPED_ROSTERS["local"].judge, work).decide(seen, StopSignal())
    assert judgement.label in ("supported", "hallucinated")
    assert judgement.prose


def test_a_whole_check_ends_with_an_outcome_that_its_test_qualifies(home: Path) -> None:
    path = home.parent / "fact.txt"
    path.write_text("The tower is 412 m tall.")
    request = CheckRequest(
        "The tower is 512 m tall.", documents=(path,), protocol="single", roster="local"
    )
    outcome, _ = check_once(home, request, time.time, Keys({}))
    with open_store(home) as store:
        result = load_standing(store, "", SHIPPED_ROSTERS["local"].judge, PromptBook()).result
        rows = store.ledger.of_run(str(outcome["run_id"]))
    assert result is not None
    assert result.has_passed or outcome["label"] == "unclear"
    assert all(row.status == "done" for row in rows)
    assert len(rows) >= 13, "the judge's call and those of its test are booked"


def test_the_servers_child_gets_no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    given: dict[str, object] = {}

    def popen(*args: object, **options: object) -> object:
        given.update(options)
        raise OSError("far enough")

    monkeypatch.setattr(subprocess, "Popen", popen)
    with pytest.raises(OSError, match="far enough"):
        LocalServer().address()
    assert "OPENAI_API_KEY" not in str(given["env"])
