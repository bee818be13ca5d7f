"""Runs on language models from end to end: our code, litellm, and a server with real streams.

Every fault that a provider shows ends in its stated outcome, and none as a label.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from core.agents.rosters import make_single_model_roster
from core.documents.retrieval import DESCRIPTION_SUFFIX
from core.llm.call import Call, Message, ignore_piece
from core.llm.client import ModelClient
from core.llm.keys import Keys
from core.llm.prompting import Fence, load_shipped_prompt
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import build_outcome
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import KeyMissing
from core.schema.events import Event
from core.schema.records import Case, Plan, Run
from core.schema.rosters import AgentConfig, RosterConfig
from core.schema.run_state import RunState, fold_events
from core.store import open_store
from tests.documents.builders import bar_chart, png
from tests.fakes import case_of
from tests.llm.cast import Cast, Part, as_json, endless, in_turn, judged, oversized, role_of
from tests.llm.hostile import HOSTILE
from tests.llm.loopback import Asked, Loopback, Reply, loopback
from tests.waiting import wait_for

pytestmark = [pytest.mark.timing, pytest.mark.usefixtures("without_weights")]

CLAIM = "The tower is 512 m tall."
FACTS = b"The tower is 412 m tall. It was opened in 1932."
SECRET = "sk-secret-0123456789"
PATIENCE = 90.0


@dataclass
class Bench:
    """A home with one case, and the jobs over it."""

    home: Path
    case: Case
    jobs: JobRunner

    def run(self, sheet: RosterConfig, **plan: object) -> tuple[Run, RunState]:
        """A whole run by that roster."""
        values: dict[str, object] = {"roster": sheet.name, "sheet": sheet, "max_turns": 3}
        run_id = self.jobs.start(self.case, Plan(**(values | plan)))  # type: ignore[arg-type]
        return self.ended(run_id)

    def ended(self, run_id: str) -> tuple[Run, RunState]:
        """The run once it has ended."""
        assert self.jobs.wait(run_id, PATIENCE), "the run did not end"
        run, events = self.stored(run_id)
        return run, fold_events(events)

    def stored(self, run_id: str) -> tuple[Run, list[Event]]:
        """The run and its events as they are stored."""
        with open_store(self.home) as store:
            run = store.runs.get(run_id, 0.0, 5)
            assert run
            return run, [event for _, event in store.runs.events(run_id)]


def bench_in(home: Path) -> Bench:
    """A home with the claim and its facts."""
    return Bench(home, case_of(home, CLAIM, ("facts.txt", FACTS)), JobRunner(home, keys=Keys({})))


@pytest.fixture
def bench(home: Path) -> Bench:
    return bench_in(home)


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    load_litellm()


def load_litellm() -> None:
    """It takes seconds to load, and some of it only with the first call."""
    with loopback(Reply("OK")) as server:
        call = Call(AgentConfig("openai/loopback", server.base), (Message("user", "Say OK."),))
        ModelClient(Keys({})).complete(call, ignore_piece, StopSignal())


def sheet_at(server: Loopback, *, seconds: int = 2) -> RosterConfig:
    """Every speaking role to the model behind that server."""
    return sheet_of_base(server.base, seconds)


def sheet_of_base(base: str, seconds: int) -> RosterConfig:
    """Every speaking role to the model at that address."""
    sheet = make_single_model_roster("openai/loopback", base)
    for role, seat in list(sheet.agents_by_role()):
        if not seat.is_built_in:
            sheet = sheet.with_seat(role, replace(seat, seconds=seconds))
    return sheet


def outside_fences(prompt: str, token: str) -> str:
    """What a prompt says by itself; fails where a fence is opened or closed by something in it."""
    pieces = re.split(rf"⟦(/?)([a-z_ ]+) {token}⟧", prompt)
    outside, kind = [pieces[0]], ""
    for closing, name, text in zip(pieces[1::3], pieces[2::3], pieces[3::3], strict=True):
        assert bool(closing) == bool(kind), "fences do not nest and close once"
        assert not closing or name == kind
        kind = "" if closing else name
        if not kind:
            outside.append(text)
    assert not kind, "every fence is closed"
    return "".join(outside)


SPAN = {
    "reason": "412",
    "quote": "512 m",
    "category": "number_or_date",
    "instead": "412 m",
    "p": 0.9,
}


def test_every_role_is_seen_at_work_and_a_stop_in_mid_stream_ends_it(bench: Bench) -> None:
    """The context writer is seen while it reads and writes; nothing of it is stored."""
    slow = Reply(json.dumps({"facts": []}) + " " * 400, pause=0.5, gap=0.05, piece=4)
    with loopback(Cast({"context": slow})) as server:
        sheet = sheet_at(server)
        run_id = bench.jobs.start(bench.case, Plan(roster=sheet.name, sheet=sheet))
        live = bench.jobs.live(run_id)
        assert live
        wait_for(lambda: bool(live.under_way))
        (call,) = live.under_way
        assert call.asked.role == "context writer"
        assert call.pieces == [], "it reads first"
        assert call.prompt_tokens > 100
        assert live.progress
        assert live.progress.note == "Sharing out the evidence"
        wait_for(lambda: len(call.pieces) > 3)
        assert "".join(call.pieces).startswith('{"facts": [')
        bench.jobs.stop(run_id, "Mira")
        run, _ = bench.ended(run_id)
        assert run.status == "stopped"
        assert live.under_way == []
        server.wait_closed()


def test_all_agents_that_work_at_once_are_seen(bench: Bench) -> None:
    answer = Reply("CORRECT. " + "It holds. " * 40, gap=0.05, piece=4)
    with loopback(lambda _: answer) as server:
        sheet = sheet_at(server)
        run_id = bench.jobs.start(bench.case, Plan("ensemble", sheet.name, sheet=sheet))
        live = bench.jobs.live(run_id)
        assert live
        wait_for(lambda: sum(bool(call.pieces) for call in list(live.under_way)) == 2)
        assert {call.asked.role for call in live.under_way} == {"debater Ada", "debater Ben"}
        bench.jobs.stop(run_id, "Mira")
        bench.ended(run_id)
        assert live.under_way == []


def test_every_role_speaks_and_the_claim_is_refuted(bench: Bench) -> None:
    with loopback(Cast({"spans": as_json({"spans": [SPAN]})})) as server:
        run, progress = bench.run(sheet_at(server))
    assert (run.status, run.label) == ("finished", "hallucinated")
    assert {role_of(asked) for asked in server.asked} == {
        "context", "debate", "judge", "spans", "span_vote",
    }  # fmt: skip
    assert all(asked.body["stream"] for asked in server.asked)
    assert [span.text for span in progress.spans] == ["512 m"]
    assert progress.spans[0].instead == "412 m"
    assert not progress.problems
    assert progress.judgement
    assert progress.judgement.label == "hallucinated"
    assert len(progress.calls) == len(server.asked)
    assert progress.cost is None, "another server's price is not known"


def test_a_supported_claim_comes_out_so(bench: Bench) -> None:
    cast = Cast(
        {
            "debate": Reply('AGREE, CORRECT. It says "the tower is 412 m tall".'),
            "judge": judged(1, "Both debaters agree, and the evidence states the height."),
        }
    )
    with loopback(cast) as server:
        run, progress = bench.run(sheet_at(server))
    assert (run.status, run.label) == ("finished", "supported")
    assert progress.reached_consensus
    assert progress.turns[0].quotes[0].status == "verified"
    assert "spans" not in {role_of(asked) for asked in server.asked}, "there is nothing to mark"


FAILURES: dict[str, tuple[Part, str]] = {
    "500": (Reply(status=500), "agent_failed"),
    "hang before the stream": (Reply(fault="hang_before"), "agent_failed"),
    "hang within the stream": (Reply("The evidence " * 9, fault="hang_within"), "agent_failed"),
    "cut-off stream": (Reply("The evidence " * 9, fault="cut_off"), "agent_failed"),
    "stream without an end": (Reply("Good.\nVerdict: 1", fault="no_finish"), "agent_failed"),
    "malformed chunk": (Reply("The evidence " * 9, fault="malformed"), "agent_failed"),
    "error within the stream": (Reply("The evidence " * 9, fault="error_within"), "agent_failed"),
    "HTML instead of JSON": (Reply(fault="html"), "agent_failed"),
    "refusal": (Reply("I cannot judge this.", refusal=True), "unreadable_reply"),
    "content filter": (Reply("The ev", finish="content_filter"), "unreadable_reply"),
    "empty reply": (Reply(""), "unreadable_reply"),
    "no verdict line twice": (Reply("It is hard to say."), "unreadable_reply"),
    "a verdict in the middle": (Reply("Verdict: 1\nOr is it?"), "unreadable_reply"),
    "a reply without an end": (endless(), "unreadable_reply"),
    "far too long a reply": (oversized(), "unreadable_reply"),
}


@pytest.mark.parametrize("fault", FAILURES)
def test_a_fault_of_the_judge_is_never_a_label(bench: Bench, fault: str) -> None:
    part, cause = FAILURES[fault]
    with loopback(Cast({"judge": part})) as server:
        run, progress = bench.run(sheet_at(server, seconds=1))
    assert (run.status, run.label, run.cause) == ("finished", "unclear", cause)
    assert run.p_hallucinated is None
    assert progress.problems
    assert progress.turns, "what was said is kept"


WHOSE: dict[str, str | tuple[str, ...]] = {
    "context": "Context writer (",
    "debate": ("Ada's turn ", "Ben's turn "),
    "spans": "Span extractor (",
    "segment": "Segmenter (",
}


@pytest.mark.parametrize("role", list(WHOSE))
@pytest.mark.parametrize(
    "reply", [Reply("Hm."), Reply(""), Reply("No.", refusal=True), endless(), oversized()]
)
def test_an_unusable_reply_costs_only_its_role(bench: Bench, role: str, reply: Reply) -> None:
    with loopback(Cast({role: reply})) as server:
        sheet = sheet_at(server)
        run, progress = bench.run(replace(sheet, segmenter=sheet.judge))
    assert (run.status, run.label) == ("finished", "hallucinated")
    assert progress.problems
    assert all(problem.cause is None for problem in progress.problems)
    assert all(problem.message.startswith(WHOSE[role]) for problem in progress.problems)


@pytest.mark.slow
def test_what_a_model_sees_in_an_image_is_evidence(home: Path) -> None:
    charts = [(f"chart{n}.png", png(bar_chart(600 + n, 400, 20))) for n in range(4)]
    case = case_of(home, "Switzerland imported less than China in 2018.", *charts)
    with loopback(Cast()) as server:
        run, progress = Bench(home, case, JobRunner(home, keys=Keys({}))).run(sheet_at(server))
    assert run.label == "hallucinated"
    readings = [asked for asked in server.asked if role_of(asked) == "image_reading"]
    assert [len(asked.images) for asked in readings] == [1] * 4
    assert all(asked.body["stream"] for asked in server.asked)
    assert all(asked.images[0].startswith("data:image/png;base64,") for asked in readings)
    seen = [p for p in progress.evidence.values() if p.source_id.endswith(DESCRIPTION_SUFFIX)]
    assert len(seen) == 4
    assert "Switzerland" in seen[0].text
    judge = next(asked for asked in server.asked if role_of(asked) == "judge")
    assert judge.prompt.count("Switzerland imported the most") == 4


def test_passages_are_found_by_the_rosters_embedding_model(bench: Bench) -> None:
    with loopback(Cast()) as server:
        seat = AgentConfig("openai/embedder", server.base, max_tokens=0)
        run, progress = bench.run(replace(sheet_at(server), retriever=seat))
    embedded = [asked for asked in server.asked if asked.path.endswith("/embeddings")]
    assert run.label == "hallucinated"
    assert [len(asked.body["input"]) for asked in embedded] == [2, 1], "all passages, all queries"
    assert sum(call.role == "retriever" for call in progress.calls.values()) == 2


def test_without_sources_the_models_memory_is_said_to_be_all(home: Path) -> None:
    case = case_of(home, CLAIM)
    with loopback(Cast()) as server:
        _, progress = Bench(home, case, JobRunner(home, keys=Keys({}))).run(sheet_at(server))
    assert "argue from what they know" in progress.problems[0].message


def as_found(number: int, text: str) -> str:
    """The text with words in each line that searching finds, and that no other text's line has."""
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(f"{CLAIM[:-1]}, item {number}: {line}" for line in lines)


def lines_of(prompt: str, name: str) -> str:
    """What a prompt's evidence says from the file of that name."""
    return "\n".join(re.findall(rf"^\[P\d+\] \({re.escape(name)}\) (.*)$", prompt, re.MULTILINE))


@pytest.mark.parametrize("start", range(0, len(HOSTILE), 10))
def test_a_document_that_steers_stays_a_document(home: Path, start: int) -> None:
    """Ten hostile documents at a time: all reach the server, as fenced material, nothing else."""
    texts = HOSTILE[start : start + 10]
    files = [(f"facts{n}.txt", as_found(n, text).encode()) for n, text in enumerate(texts)]
    case = case_of(home, CLAIM, *files)
    with loopback(Cast()) as server:
        run, _ = Bench(home, case, JobRunner(home, keys=Keys({}))).run(
            sheet_at(server), passages=30
        )
    assert run.label == "hallucinated", "what the judge itself said counts"
    fence = Fence.of_run(run.id)
    judge = next(asked for asked in server.asked if role_of(asked) == "judge")
    for number, text in enumerate(texts):
        own = [word for word in fence.harmless(text).split() if word not in as_found(number, "x")]
        arrived = lines_of(judge.prompt, f"facts{number}.txt")
        assert any(word in arrived for word in own), f"{text!r} never reached the judge"
    for asked in server.asked:
        system, user = (message["content"] for message in asked.body["messages"][:2])
        outside = outside_fences(user, fence.token)
        ours = load_shipped_prompt(role_of(asked), "en").text
        for words in (text.strip()[:40] for text in texts):
            assert words not in system
            assert words not in outside or words in ours
        assert [message["role"] for message in asked.body["messages"][:2]] == ["system", "user"]


def test_a_judge_who_is_shown_the_error_may_mend_it(bench: Bench) -> None:
    with loopback(Cast({"judge": in_turn(Reply("It is wrong."), judged(0))})) as server:
        run, _ = bench.run(sheet_at(server))
    assert run.label == "hallucinated"
    assert sum(role_of(asked) == "judge" for asked in server.asked) == 2


def test_too_many_requests_are_waited_for(bench: Bench) -> None:
    busy = Reply(status=429, headers={"Retry-After": "1"})
    with loopback(Cast({"judge": in_turn(busy, judged(0))})) as server:
        run, _ = bench.run(sheet_at(server))
    first, second = (asked.at for asked in server.asked if role_of(asked) == "judge")
    assert run.label == "hallucinated"
    assert second - first >= 1.0


@pytest.mark.parametrize(("status", "words"), [(401, "key"), (404, "model")])
def test_a_wrong_key_or_model_fails_the_run_in_words(bench: Bench, status: int, words: str) -> None:
    with loopback(Reply(status=status, message=f"no such thing: {SECRET}")) as server:
        run, progress = bench.run(sheet_at(server))
        assert len(server.asked) == 1, "asking again would not help"
    assert (run.status, run.label) == ("failed", None)
    ending = progress.ending
    assert ending is not None
    assert ending.kind == "run_failed"
    assert words in ending.message


def test_nobody_listens(bench: Bench) -> None:
    with loopback(Reply()) as server:
        sheet = sheet_at(server)
    run, progress = bench.run(sheet)
    assert (run.label, run.cause) == ("unclear", "agent_failed")
    assert server.base in progress.problems[-1].message


def test_resume_goes_on_and_pays_for_nothing_twice(bench: Bench) -> None:
    is_down = [True]

    def judge(_: Asked) -> Reply:
        return Reply(status=500) if is_down[0] else judged(0)

    with loopback(Cast({"judge": judge})) as server:
        run, before = bench.run(sheet_at(server))
        assert run.cause == "agent_failed"
        is_down[0] = False
        asked = len(server.asked)
        assert bench.jobs.resume(run.id, "Mira")
        run, progress = bench.ended(run.id)
    again = [role_of(item) for item in server.asked[asked:]]
    assert (run.status, run.label) == ("finished", "hallucinated")
    assert again == ["judge", "spans"], "context and debate are not asked again"
    assert progress.turns == before.turns
    assert not [p for p in progress.problems if p.cause == "agent_failed"]


KILLED = """
import sys, time
from pathlib import Path
from core.pipeline.jobs import JobRunner
from core.llm.keys import Keys
from core.schema.records import Plan
from core.store import open_store
from tests.test_with_models import sheet_of_base
home, case_id, base = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
with open_store(home) as store:
    case = store.cases.get(case_id)
    store.projects.save_setting("lease_seconds", 3)
sheet = sheet_of_base(base, 60)
print(JobRunner(home, keys=Keys({})).start(case, Plan(roster=sheet.name, sheet=sheet)), flush=True)
time.sleep(60)
"""


@pytest.mark.slow
def test_a_killed_process_is_paid_for_nothing_twice(bench: Bench) -> None:
    asked_judge = threading.Event()

    def judge(_: Asked) -> Reply:
        if asked_judge.is_set():
            return judged(0)
        asked_judge.set()
        return Reply(fault="hang_before")

    with loopback(Cast({"judge": judge})) as server:
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(bench.home), bench.case.id, server.base],
            stdout=subprocess.PIPE,
            text=True,
            cwd=PROJECT_ROOT,
        )
        assert process.stdout
        run_id = process.stdout.readline().strip()
        assert asked_judge.wait(PATIENCE)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        before = [role_of(asked) for asked in server.asked]
        wait_for(lambda: bench.jobs.resume(run_id, "Mira"), "the lease's end")
        run, progress = bench.ended(run_id)
    assert (run.status, run.label) == ("finished", "hallucinated")
    again = [role_of(asked) for asked in server.asked[len(before) :]]
    assert again == ["judge", "spans"], "what was answered before is not asked again"
    lost = [call for call in progress.calls.values() if call.problem]
    assert [call.role for call in lost] == ["judge"], "the call that died is not forgotten"


def test_a_run_on_an_unpriced_model_keeps_to_its_token_cap(bench: Bench) -> None:
    with loopback(Cast()) as server:
        run, progress = bench.run(sheet_at(server), token_cap=300)
        assert len(server.asked) <= 2
    assert (run.label, run.cause) == ("unclear", "budget_reached")
    assert "300" in progress.problems[-1].message


def test_no_key_is_stored_or_logged(
    bench: Bench, caplog: pytest.LogCaptureFixture, home: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    jobs = JobRunner(home, keys=Keys({"COUNTERPOINT_API_KEY": SECRET}))
    faulty = Reply(status=500, message=f"the key {SECRET} is fine but I am not")
    with loopback(Cast({"judge": faulty})) as server:
        run, progress = Bench(home, bench.case, jobs).run(sheet_at(server))
    sent = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert SECRET in sent["authorization"]
    assert run.cause == "agent_failed"
    for path in home.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps(build_outcome(run, progress))
    assert SECRET not in repr(jobs.keys)


def test_a_key_typed_for_one_session_is_asked_for_again(bench: Bench) -> None:
    sheet = make_single_model_roster("openai/gpt-4o-mini")
    with pytest.raises(KeyMissing) as caught:
        bench.run(sheet)
    assert caught.value.names == ("OPENAI_API_KEY",)
    with open_store(bench.home) as store:
        assert not store.runs.of_case(bench.case.id, 0.0, 5), "nothing was stored"


def test_a_providers_key_is_not_sent_to_another_address(bench: Bench, home: Path) -> None:
    jobs = JobRunner(home, keys=Keys({"OPENAI_API_KEY": SECRET}))
    with loopback(Cast()) as server:
        Bench(home, bench.case, jobs).run(sheet_at(server))
    assert not [a for a in server.asked if SECRET in str(a.headers)]
