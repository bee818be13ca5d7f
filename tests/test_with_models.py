"""Runs on language models from end to end: our code, litellm, and a server with real streams.

Every fault that a provider shows ends in its stated outcome, and none as a label.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from core.__main__ import main
from core.agents.rosters import one_model
from core.checking import Draft, first_project, store_case
from core.concurrency import Stop
from core.config import Settings
from core.errors import KeyMissing
from core.events import Event
from core.intake.library import store_file
from core.jobs import Jobs
from core.models.call import Call, Message, in_silence
from core.models.keys import Keys
from core.models.llm import LiteLlm
from core.outcome import outcome
from core.progress import Progress, folded
from core.records import Case, Plan, Run
from core.seats import RosterSheet, Seat
from core.store import open_store
from tests.models.cast import Cast, Part, as_json, in_turn, judged, role_of
from tests.models.loopback import Asked, Loopback, Reply, loopback

CLAIM = "The tower is 512 m tall."
FACTS = b"The tower is 412 m tall. It was opened in 1932."
SECRET = "sk-secret-0123456789"
PATIENCE = 60.0


@dataclass
class Bench:
    """A home with one case, and the jobs over it."""

    home: Path
    case: Case
    jobs: Jobs

    def run(self, sheet: RosterSheet, **plan: object) -> tuple[Run, Progress]:
        """A whole run by that roster."""
        values: dict[str, object] = {"roster": sheet.name, "sheet": sheet, "max_turns": 3}
        run_id = self.jobs.start(self.case, Plan(**(values | plan)))  # type: ignore[arg-type]
        return self.ended(run_id)

    def ended(self, run_id: str) -> tuple[Run, Progress]:
        """The run once it has ended."""
        assert self.jobs.wait(run_id, PATIENCE), "the run did not end"
        run, events = self.stored(run_id)
        return run, folded(events)

    def stored(self, run_id: str) -> tuple[Run, list[Event]]:
        """The run and its events as they are stored."""
        with open_store(self.home) as store:
            run = store.runs.get(run_id, 0.0, 5)
            assert run
            return run, [event for _, event in store.runs.events(run_id)]


@pytest.fixture
def bench(home: Path) -> Bench:
    return Bench(home, case_of(home, CLAIM, ("facts.txt", FACTS)), Jobs(home, keys=Keys({})))


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    """Litellm takes seconds to load, and some of it only with the first call."""
    with loopback(Reply("OK")) as server:
        call = Call(Seat("openai/loopback", server.base), (Message("user", "Say OK."),))
        LiteLlm(Keys({})).complete(call, in_silence, Stop())


def case_of(home: Path, claim: str, *files: tuple[str, bytes]) -> Case:
    """A stored case over stored files."""
    with open_store(home) as store:
        project = first_project(store, "Mira", 1.0)
        entries = [
            store_file(store, home, project.id, name, data, "Mira", 1.0, Settings())
            for name, data in files
        ]
        documents = tuple(e.id for e in entries if e.kind != "image")
        images = tuple(e.id for e in entries if e.kind == "image")
        return store_case(store, project, Draft(claim, "", documents, images), "Mira", 1.0)


def sheet_at(server: Loopback, *, seconds: int = 2) -> RosterSheet:
    """Every speaking role to the model behind that address."""
    sheet = one_model("openai/loopback", server.base)
    for role, seat in list(sheet.seats()):
        if not seat.is_built_in:
            sheet = sheet.with_seat(role, replace(seat, seconds=seconds))
    return sheet


SPAN = {
    "reason": "412",
    "quote": "512 m",
    "category": "number_or_date",
    "instead": "412 m",
    "p": 0.9,
}


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


@pytest.mark.parametrize("role", ["context", "debate", "spans", "segment"])
@pytest.mark.parametrize("reply", [Reply("Hm."), Reply(""), Reply("No.", refusal=True)])
def test_an_unusable_reply_costs_only_its_role(bench: Bench, role: str, reply: Reply) -> None:
    with loopback(Cast({role: reply})) as server:
        sheet = sheet_at(server)
        run, progress = bench.run(replace(sheet, segmenter=sheet.judge))
    assert (run.status, run.label) == ("finished", "hallucinated")
    assert progress.problems
    assert all(problem.cause is None for problem in progress.problems)


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
    jobs = Jobs(home, keys=Keys({"COUNTERPOINT_API_KEY": SECRET}))
    faulty = Reply(status=500, message=f"the key {SECRET} is fine but I am not")
    with loopback(Cast({"judge": faulty})) as server:
        run, progress = Bench(home, bench.case, jobs).run(sheet_at(server))
    sent = {name.lower(): value for name, value in server.asked[0].headers.items()}
    assert SECRET in sent["authorization"]
    assert run.cause == "agent_failed"
    for path in home.rglob("*"):
        assert not path.is_file() or SECRET.encode() not in path.read_bytes(), path
    assert SECRET not in caplog.text
    assert SECRET not in json.dumps(outcome(run, progress))
    assert SECRET not in repr(jobs.keys)


def test_a_key_typed_for_one_session_is_asked_for_again(bench: Bench) -> None:
    sheet = one_model("openai/gpt-4o-mini")
    with pytest.raises(KeyMissing) as caught:
        bench.run(sheet)
    assert caught.value.names == ("OPENAI_API_KEY",)
    with open_store(bench.home) as store:
        assert not store.runs.of_case(bench.case.id, 0.0, 5), "nothing was stored"


def test_a_providers_key_is_not_sent_to_another_address(bench: Bench, home: Path) -> None:
    jobs = Jobs(home, keys=Keys({"OPENAI_API_KEY": SECRET}))
    with loopback(Cast()) as server:
        Bench(home, bench.case, jobs).run(sheet_at(server))
    assert not [a for a in server.asked if SECRET in str(a.headers)]


def test_the_short_way_on_the_command_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = tmp_path / "facts.txt"
    facts.write_bytes(FACTS)
    with loopback(Cast()) as server:
        code = main(
            [
                *("check", "--claim", CLAIM, "--document", str(facts), "--json"),
                *("--model", "loopback", "--api-base", server.base),
            ]
        )
    found = json.loads(capsys.readouterr().out)
    assert (code, found["status"], found["label"]) == (0, "finished", "hallucinated")
    assert found["cost"] is None
