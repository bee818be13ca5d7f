"""Runs in the background: start, follow, stop quickly, resume, survive a killed process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from core.agents.rosters import make_built_in_roster
from core.pipeline.jobs import JobRunner, require_debate
from core.pipeline.single_check import await_outcome
from core.runtime.concurrency import StopSignal
from core.runtime.errors import InputError
from core.schema.events import PersonSpoke, RunStarted, RunStopped
from core.schema.records import Case, Judgement, Plan, Run, Turn
from core.schema.roles import DebateView, Judge, JudgeView, Roster, SpeakCallback
from core.schema.run_state import RunState
from core.store import open_store
from core.verdict.classifier import ClassifierHead, get_version_folder, save_head
from tests.fakes import case_of
from tests.waiting import wait_for

pytestmark = [pytest.mark.timing, pytest.mark.usefixtures("without_weights")]

CATS = "Female cats tend to be right pawed, while male cats are more often left pawed."
PATIENCE = 30.0


class Slow:
    """A debater that speaks word by word and can be held up; otherwise the built-in one."""

    built_in = True
    rule = "speaks slowly"

    def __init__(self, inner: object, pause: float = 0.02) -> None:
        self._inner = inner
        self._pause = pause
        self.name = inner.name  # type: ignore[attr-defined]
        self.speaking = threading.Event()
        self.gate = threading.Event()
        self.gate.set()

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        turn: Turn = self._inner.argue(view, lambda _: None, stop)  # type: ignore[attr-defined]
        for word in turn.text.split(" "):
            speak(word + " ")
            self.speaking.set()
            while not self.gate.is_set():
                stop.wait(0.01)
            stop.wait(self._pause)
        return turn


def slow_roster(debaters: list[Slow], pause: float = 0.02) -> Callable[[str], Roster]:
    def make(name: str) -> Roster:
        roster = make_built_in_roster(name)
        slow = {key: Slow(agent, pause) for key, agent in roster.debaters.items()}
        debaters.extend(slow.values())
        return replace(roster, debaters=slow)

    return make


@pytest.fixture
def case(home: Path) -> Case:
    """A stored case over a small text."""
    return case_of(home, "Female cats tend to be left pawed.", ("cats.txt", CATS.encode()))


def look(home: Path, run_id: str) -> Run:
    with open_store(home) as store:
        run = store.runs.get(run_id, time.time(), store.projects.settings().lease_seconds)
    assert run
    return run


def kinds(home: Path, run_id: str) -> list[str]:
    with open_store(home) as store:
        return [event.kind for _, event in store.runs.events(run_id)]


def test_a_run_is_carried_out_and_stored(home: Path, case: Case) -> None:
    jobs = JobRunner(home)
    run_id = jobs.start(case, Plan())
    assert jobs.wait(run_id, PATIENCE)
    run = look(home, run_id)
    assert (run.status, run.label) == ("finished", "hallucinated")
    assert run.plan.classifier == "seed"
    assert kinds(home, run_id)[-1] == "run_finished"
    assert jobs.live(run_id) is None


def test_words_are_seen_while_they_are_spoken_and_never_stored(home: Path, case: Case) -> None:
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_id = jobs.start(case, Plan())
    wait_for(lambda: bool(debaters) and debaters[0].speaking.is_set())
    debaters[0].gate.clear()
    wait_for(lambda: bool(jobs.live(run_id) and jobs.live(run_id).words.get(1)))  # type: ignore[union-attr]
    live = jobs.live(run_id)
    assert live
    assert live.words[1].startswith("DENY.")
    assert "turn_finished" not in kinds(home, run_id)
    debaters[0].gate.set()
    assert jobs.wait(run_id, PATIENCE)
    assert not {"turn_delta", "progress_made"} & set(kinds(home, run_id))


def test_stop_takes_effect_within_a_turn_and_keeps_what_was_said(home: Path, case: Case) -> None:
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_id = jobs.start(case, Plan())
    wait_for(lambda: len(debaters) > 1 and debaters[1].speaking.is_set())
    debaters[1].gate.clear()
    jobs.stop(run_id, "Mira")
    wait_for(lambda: look(home, run_id).status == "stopped")
    assert kinds(home, run_id).count("turn_finished") == 1
    with open_store(home) as store:
        last = store.runs.events(run_id)[-1][1]
    assert last.kind == "run_stopped"
    assert last.by == "Mira"


def test_a_stopped_run_resumes_where_it_was(home: Path, case: Case) -> None:
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_id = jobs.start(case, Plan())
    wait_for(lambda: len(debaters) > 1 and debaters[1].speaking.is_set())
    jobs.stop(run_id, "Mira")
    wait_for(lambda: look(home, run_id).status == "stopped")
    assert jobs.resume(run_id, "Mira")
    assert jobs.wait(run_id, PATIENCE)
    assert look(home, run_id).status == "finished"
    found = kinds(home, run_id)
    assert found.count("run_resumed") == 1
    assert found.count("document_read") == 1
    with open_store(home) as store:
        numbers = [e.turn.number for _, e in store.runs.events(run_id) if e.kind == "turn_finished"]
    assert numbers == sorted(set(numbers)), "a turn was argued twice"


def test_a_run_of_a_protocol_that_is_not_known_here_stays_as_it_is(home: Path, case: Case) -> None:
    """It came from a newer version, and was cut off there."""
    with open_store(home) as store:
        run = Run("newer", case.id, case.project_id, Plan("tribunal"), "queued", 1.0)
        store.runs.add(run, "elsewhere", 1.0)
        with store.writing():
            ending = RunStopped(2.0, "Mira")
            store.runs.append(run.id, "elsewhere", [RunStarted(1.0, case, run.plan, ()), ending])
    with pytest.raises(InputError, match=r"Expected a protocol of ceda, .*found “tribunal”"):
        JobRunner(home).resume("newer", "Mira")
    assert look(home, "newer").status == "stopped"
    assert kinds(home, "newer") == ["run_started", "run_stopped"]
    jobs = JobRunner(home)
    with pytest.raises(InputError, match="found “tribunal”"):
        jobs.start(case, Plan("tribunal"))
    with open_store(home) as store:
        with store.writing():
            run_id = jobs.queue(store, case, Plan("tribunal"))
        jobs.submit(store, [run_id], jobs.payer("Mira"))
    assert jobs.wait(run_id, PATIENCE)
    with open_store(home) as store:
        last = store.runs.events(run_id)[-1][1]
    assert last.kind == "run_failed"
    assert "found “tribunal”, which this version does not know" in last.message


def test_a_stop_from_another_process_is_heard(home: Path, case: Case) -> None:
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_id = jobs.start(case, Plan())
    wait_for(lambda: bool(debaters) and debaters[0].speaking.is_set())
    JobRunner(home).stop(run_id, "Karl")
    wait_for(lambda: look(home, run_id).status == "stopped")


def test_a_run_that_waits_can_be_stopped(home: Path, case: Case) -> None:
    with open_store(home) as store:
        store.projects.save_setting("workers", 1)
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    first, second = jobs.start(case, Plan()), jobs.start(case, Plan())
    wait_for(lambda: bool(debaters) and debaters[0].speaking.is_set())
    assert look(home, second).status == "queued"
    jobs.stop(second, "Mira")
    jobs.stop(first, "Mira")
    assert jobs.wait(first, PATIENCE)
    assert jobs.wait(second, PATIENCE)
    assert look(home, second).status == "stopped"


def count_threads(*names: str) -> int:
    return sum(thread.name in names for thread in threading.enumerate())


def test_no_thread_is_left_once_the_runs_have_ended(home: Path, case: Case) -> None:
    jobs = JobRunner(home)
    assert jobs.wait(jobs.start(case, Plan()), PATIENCE)
    wait_for(
        lambda: count_threads("run worker", "heartbeat") == 0, "the end of worker and heartbeat"
    )
    assert jobs.wait(jobs.start(case, Plan()), PATIENCE), "the next run starts them again"


def test_close_stops_all_runs_and_ends_their_threads(home: Path, case: Case) -> None:
    with open_store(home) as store:
        store.projects.save_setting("workers", 1)
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_ids = [jobs.start(case, Plan()) for _ in range(2)]
    wait_for(lambda: bool(debaters) and debaters[0].speaking.is_set())
    assert jobs.close()
    assert [look(home, run_id).status for run_id in run_ids] == ["stopped", "stopped"]
    assert "passages_found" not in kinds(home, run_ids[1]), "a waiting run began its work"
    assert count_threads("run worker", "heartbeat") == 0


def test_a_lowered_limit_of_runs_at_once_holds_for_runs_that_wait(home: Path, case: Case) -> None:
    with open_store(home) as store:
        store.projects.save_setting("workers", 2)
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters, pause=PATIENCE))
    run_ids = [jobs.start(case, Plan()) for _ in range(3)]
    wait_for(lambda: sum(debater.speaking.is_set() for debater in debaters) == 2, "two runs")
    with open_store(home) as store:
        store.projects.save_setting("workers", 1)
    JobRunner(home).stop(run_ids[0], "Karl")
    wait_for(lambda: count_threads("run worker") == 1, "the end of one worker")
    assert [look(home, run_id).status for run_id in run_ids] == ["stopped", "running", "queued"]


def test_a_raised_limit_of_runs_at_once_holds_for_runs_that_wait(home: Path, case: Case) -> None:
    with open_store(home) as store:
        store.projects.save_setting("workers", 1)
    jobs = JobRunner(home, slow_roster([], pause=PATIENCE))
    run_ids = [jobs.start(case, Plan()) for _ in range(3)]
    with open_store(home) as store:
        store.projects.save_setting("workers", 3)
    wait_for(
        lambda: all(look(home, run_id).status == "running" for run_id in run_ids), "all three runs"
    )


def test_a_run_of_a_living_process_cannot_be_taken(home: Path, case: Case) -> None:
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_id = jobs.start(case, Plan())
    wait_for(lambda: bool(debaters) and debaters[0].speaking.is_set())
    assert not JobRunner(home).resume(run_id, "Karl")
    assert not jobs.resume(run_id, "Mira")
    jobs.stop(run_id, "Mira")
    assert jobs.wait(run_id, PATIENCE)


def test_a_missing_classifier_fails_the_run_in_words(home: Path, case: Case) -> None:
    jobs = JobRunner(home)
    run_id = jobs.start(case, Plan(classifier="v-gone"))
    assert jobs.wait(run_id, PATIENCE)
    assert look(home, run_id).status == "failed"
    with open_store(home) as store:
        last = store.runs.events(run_id)[-1][1]
    assert last.kind == "run_failed"
    assert "Activate another version" in last.message


def test_a_damaged_active_classifier_fails_the_run_in_words_and_gives_no_verdict(
    home: Path, case: Case
) -> None:
    folder = get_version_folder(home, "v1")
    save_head(folder, ClassifierHead((0.0,), 0.0), {})
    (folder / "head.safetensors").write_bytes(b"something else")
    with open_store(home) as store:
        store.versions.activate("v1", 1.0, "Mira", "")
    jobs = JobRunner(home)
    run_id = jobs.start(case, Plan())
    assert jobs.wait(run_id, PATIENCE)
    run = look(home, run_id)
    assert (run.status, run.label, run.p_hallucinated) == ("failed", None, None)
    with open_store(home) as store:
        last = store.runs.events(run_id)[-1][1]
    assert last.kind == "run_failed"
    assert "head.safetensors has 14 bytes" in last.message
    assert "Activate another version" in last.message


def test_a_bug_fails_the_run_and_not_the_worker(
    home: Path, case: Case, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(name: str) -> Roster:
        raise ZeroDivisionError("a bug")

    jobs = JobRunner(home, broken)
    first = jobs.start(case, Plan())
    assert jobs.wait(first, PATIENCE)
    assert look(home, first).status == "failed"
    assert "a bug" in caplog.text
    second = jobs.start(case, Plan())
    assert jobs.wait(second, PATIENCE)


KILLED = """
import sys, time
from pathlib import Path
from tests.test_jobs import slow_roster
from core.pipeline.jobs import JobRunner
from core.schema.records import Plan
from core.store import open_store
home, case_id = Path(sys.argv[1]), sys.argv[2]
with open_store(home) as store:
    case = store.cases.get(case_id)
    store.projects.save_setting("lease_seconds", 3)
jobs = JobRunner(home, slow_roster([], pause=0.1))
print(jobs.start(case, Plan()), flush=True)
time.sleep(60)
"""


@pytest.fixture
def killed_run(home: Path, case: Case) -> str:
    """A run whose process was killed after the first turn."""
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(home), case.id],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parent.parent,
    )
    assert process.stdout
    run_id = process.stdout.readline().strip()
    wait_for(lambda: "turn_finished" in kinds(home, run_id))
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    return run_id


@pytest.mark.slow
def test_a_killed_process_leaves_a_run_that_another_resumes(home: Path, killed_run: str) -> None:
    assert look(home, killed_run).status == "running"
    jobs = JobRunner(home)
    assert not jobs.resume(killed_run, "Mira"), "the lease had not run out yet"
    wait_for(lambda: look(home, killed_run).status == "interrupted")
    said = kinds(home, killed_run).count("turn_finished")
    assert jobs.resume(killed_run, "Mira")
    assert jobs.wait(killed_run, PATIENCE)
    assert look(home, killed_run).status == "finished"
    assert kinds(home, killed_run).count("turn_finished") > said
    assert kinds(home, killed_run).count("document_read") == 1
    with open_store(home) as store:
        row = next(store.db.query("PRAGMA integrity_check"))
    assert row["integrity_check"] == "ok"


def test_a_lapsed_lease_gives_no_second_worker_in_the_same_process(home: Path, case: Case) -> None:
    """A laptop slept: the lease ran out, but the worker is still here and goes on."""
    debaters: list[Slow] = []
    jobs = JobRunner(home, slow_roster(debaters))
    run_id = jobs.start(case, Plan())
    wait_for(lambda: bool(debaters) and debaters[0].speaking.is_set())
    debaters[0].gate.clear()
    with open_store(home) as store:
        store.db.execute("UPDATE runs SET heartbeat_at = 0 WHERE id = ?", [run_id])
    assert not jobs.resume(run_id, "Mira")
    debaters[0].gate.set()
    assert jobs.wait(run_id, PATIENCE)
    assert kinds(home, run_id).count("run_finished") == 1


def test_a_run_that_cannot_even_be_marked_as_failed_costs_no_worker(
    home: Path, case: Case, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    jobs = JobRunner(home)
    append = JobRunner._append

    def full(self: JobRunner, *_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(JobRunner, "_append", full)
    broken = [jobs.start(case, Plan()) for _ in range(3)]
    assert all(jobs.wait(run_id, PATIENCE) for run_id in broken)
    assert "database or disk is full" in caplog.text
    assert not any(record.exc_info for record in caplog.records)
    told = await_outcome(home, jobs, jobs.start(case, Plan()), "Mira", time.time)
    assert (told["status"], told["label"]) == ("interrupted", None)
    assert "could not be stored" in told["cause_words"]
    monkeypatch.setattr(JobRunner, "_append", append)
    run_id = jobs.start(case, Plan())
    assert jobs.wait(run_id, PATIENCE)
    assert look(home, run_id).status == "finished"


def test_who_interrupts_a_check_stops_it_whoever_first_submitted_its_text(
    home: Path, case: Case, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs, pressed, stopped = JobRunner(home), [KeyboardInterrupt()], list[str]()

    def wait(run_id: str, _: float = PATIENCE) -> bool:
        if pressed:
            raise pressed.pop()
        return JobRunner.wait(jobs, run_id, PATIENCE)

    monkeypatch.setattr(jobs, "wait", wait)
    monkeypatch.setattr(jobs, "stop", lambda _, by: stopped.append(by))
    other = f"not {case.author}"
    await_outcome(home, jobs, jobs.start(case, Plan(), by=other), other, time.time)
    assert stopped == [other]


def remarks(home: Path, run_id: str) -> list[PersonSpoke]:
    with open_store(home) as store:
        return [e for _, e in store.runs.events(run_id) if e.kind == "person_spoke"]


def problems(home: Path, run_id: str) -> list[str]:
    with open_store(home) as store:
        return [e.message for _, e in store.runs.events(run_id) if e.kind == "problem_met"]


class Hearing(Slow):
    """Keeps what it hears of people."""

    heard: list[tuple[tuple[str, str], ...]]

    def argue(self, view: DebateView, speak: SpeakCallback, stop: StopSignal) -> Turn:
        self.heard = [*getattr(self, "heard", []), view.remarks]
        return super().argue(view, speak, stop)


class HearingJudge:
    """Keeps what it hears of people, and can be held up."""

    name, built_in, rule = "Hearing judge", True, ""

    def __init__(self, inner: Judge) -> None:
        self._inner = inner
        self.remarks: tuple[tuple[str, str], ...] = ()
        self.asked, self.gate = threading.Event(), threading.Event()
        self.gate.set()

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        self.remarks = view.remarks
        self.asked.set()
        while not self.gate.is_set():
            stop.wait(0.01)
        return self._inner.decide(view, stop)


class Listening:
    """Runs whose debaters wait for a word of the test, and keep what they hear of people."""

    def __init__(self, home: Path) -> None:
        self.agents: list[Hearing] = []
        self.judges: list[HearingJudge] = []
        self.jobs = JobRunner(home, self._seated)

    def begin(self, case: Case) -> str:
        """The id of a run whose first debater is about to speak."""
        run_id = self.jobs.start(case, Plan())
        wait_for(lambda: bool(self.agents) and self.agents[0].speaking.is_set())
        return run_id

    def _seated(self, name: str) -> Roster:
        roster = make_built_in_roster(name)
        debaters = {key: Hearing(agent, 0.0) for key, agent in roster.debaters.items()}
        for debater in debaters.values():
            debater.gate.clear()
        judge = HearingJudge(roster.judge)
        self.judges.append(judge)
        self.agents.extend(debaters.values())
        return replace(roster, debaters=debaters, judge=judge)

    def go_on(self) -> None:
        """Let them speak."""
        for agent in self.agents:
            agent.gate.set()

    def to_its_end(self, run_id: str) -> None:
        """Let them speak, and wait for the verdict."""
        self.go_on()
        assert self.jobs.wait(run_id, PATIENCE)


def test_what_a_person_says_is_stored_at_once_and_heard_by_whoever_speaks_next(
    home: Path, case: Case
) -> None:
    listening = Listening(home)
    jobs, run_id = listening.jobs, listening.begin(case)
    agents = listening.agents
    judges = listening.judges
    jobs.say(run_id, "Mira", "  Look at the second sentence. ")
    assert [(r.by, r.text) for r in remarks(home, run_id)] == [
        ("Mira", "Look at the second sentence.")
    ]
    listening.to_its_end(run_id)
    said = (("Mira", "Look at the second sentence."),)
    assert agents[0].heard[0] == ()
    assert agents[1].heard[0] == said
    assert judges[0].remarks == said
    assert len(remarks(home, run_id)) == 1
    assert not any("too late" in words for words in problems(home, run_id))


def test_words_that_come_while_the_judge_decides_are_kept_and_said_to_be_too_late(
    home: Path, case: Case
) -> None:
    listening = Listening(home)
    jobs, run_id = listening.jobs, listening.begin(case)
    judges = listening.judges
    judges[0].gate.clear()
    listening.go_on()
    assert judges[0].asked.wait(PATIENCE)
    jobs.say(run_id, "Mira", "One more thing.")
    judges[0].gate.set()
    assert jobs.wait(run_id, PATIENCE)
    assert [r.text for r in remarks(home, run_id)] == ["One more thing."]
    assert any("What Mira said last came too late" in words for words in problems(home, run_id))
    with pytest.raises(InputError, match="ended or belongs"):
        jobs.say(run_id, "Mira", "And another.")


@pytest.mark.parametrize(
    ("text", "message"), [("  \n", "found nothing"), ("x" * 2001, "found 2,001")]
)
def test_empty_and_endless_words_are_refused(home: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        JobRunner(home).say("r", "Mira", text)


def test_nobody_speaks_in_another_process_s_run_or_where_nobody_debates(
    home: Path, case: Case
) -> None:
    listening = Listening(home)
    run_id = listening.begin(case)
    with pytest.raises(InputError, match="another process"):
        JobRunner(home).say(run_id, "Mira", "Hello.")
    listening.to_its_end(run_id)
    for protocol in ("single", "audit"):
        started = RunState(plan=Plan(protocol=protocol))
        with pytest.raises(InputError, match="nobody debates"):
            require_debate(started)


def test_a_resumed_run_still_hears_what_was_said_before_it_was_cut_off(
    home: Path, case: Case
) -> None:
    listening = Listening(home)
    jobs, run_id = listening.jobs, listening.begin(case)
    agents = listening.agents
    jobs.say(run_id, "Mira", "Mind the right paw.")
    jobs.stop(run_id, "Mira")
    assert jobs.wait(run_id, PATIENCE)
    agents.clear()
    assert jobs.resume(run_id, "Mira")
    wait_for(lambda: len(agents) == 3)
    listening.to_its_end(run_id)
    assert agents[0].heard[0] == (("Mira", "Mind the right paw."),)
    assert len(remarks(home, run_id)) == 1


def test_a_callback_that_was_taken_back_is_not_called() -> None:
    stop, called = StopSignal(), list[str]()
    stop.on_stop(lambda: called.append("first"))
    take_back = stop.on_stop(lambda: called.append("second"))
    take_back()
    take_back()
    stop.set()
    late = stop.on_stop(lambda: called.append("late"))
    late()
    stop.set()
    assert called == ["first", "late"]
