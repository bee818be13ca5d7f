"""The judge test: a model that cannot judge twelve fixed claims speaks, but decides nothing."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from core.agents.qualification import (
    CASES,
    MIN_RIGHT_ANSWERS,
    ModelStanding,
    Qualification,
    list_deciding_models,
    load_standing,
    qualify_deciding_models,
    save_qualification,
    save_waiver,
)
from core.agents.rosters import make_single_model_roster
from core.llm.keys import Keys
from core.llm.local_server import PROVIDER, SERVER
from core.llm.metering import CallAccount
from core.llm.prompting import PromptBook, load_shipped_prompt
from core.pipeline.single_check import CheckRequest, check_once
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.schema.records import Plan, Run, Verdict, new_id
from core.schema.rosters import AgentConfig, DebateOptions, RosterConfig
from core.schema.run_state import RunState
from core.store import open_store
from core.store.projects import PromptEdit
from core.store.queries import find_scorable_runs
from tests.llm.cast import USUAL, as_json, role_of
from tests.llm.loopback import Answer, Asked, Loopback, Reply, loopback
from tests.test_with_models import Bench, bench_in
from tests.waiting import wait_for

CLAIM, FACT = "The tower is 512 m tall.", "The tower is 412 m tall."
SHIPPED = load_shipped_prompt("judge_plain", "en")


def is_test(asked: Asked) -> bool:
    """Whether it is one of the fixed cases."""
    return any(claim in asked.prompt for _, claim, _ in CASES)


def knowing(asked: Asked) -> Reply:
    """A judge that has every fixed case right."""
    found = [label for _, claim, label in CASES if claim in asked.prompt]
    return Reply(f"So it is.\nVerdict: {int(found[:1] != ['hallucinated'])}")


def always_yes(asked: Asked) -> Reply:
    """What a very small model says of everything."""
    return Reply("It is true.\nVerdict: 1")


def silly(asked: Asked) -> Reply:
    return Reply("I like fashion week.")


def acting(asked: Asked) -> Reply:
    """A model that plays each role with sense, and as a judge calls everything true."""
    role = role_of(asked)
    if asked.body["model"] == "unsure":
        return silly(asked)
    if role == "pick_tool":
        step = {"thought": "412.", "tool": "", "input": {}, "label": "supported", "evidence": "412"}
        return as_json(step)
    if role == "judge":
        return always_yes(asked)
    if role == "debate" or role not in USUAL:
        return Reply("CORRECT.\nIt says 412 m.\nConfidence: 90")
    part = USUAL[role]
    assert isinstance(part, Reply)
    return part


def qualified(home: Path, server: Loopback, **settings: object) -> list[Qualification]:
    """Test the model at that address, as “Test every role” does."""
    with open_store(home) as store:
        project = ensure_project(store, "Mira", time.time())
    sheet = make_single_model_roster("openai/loopback", server.base)
    sheet = replace(sheet, judge=replace(sheet.judge, **settings))  # type: ignore[arg-type]
    found = qualify_deciding_models(
        sheet,
        Keys({}),
        StopSignal(),
        home=home,
        account=CallAccount(new_id(), "Mira", project.id),
        clock=time.time,
    )
    return list(found)


def standing_of(home: Path, server: Loopback) -> ModelStanding:
    """How the model at that address stands in the project."""
    agent = make_single_model_roster("openai/loopback", server.base).judge
    with open_store(home) as store:
        project = ensure_project(store, "Mira", time.time())
        book = PromptBook(store.prompt_edits.of_project(project.id))
        return load_standing(store, project.id, agent, book)


def waive(home: Path, server: Loopback, words: str) -> None:
    """Let the failed model's verdicts count in the project; no words undo that."""
    standing = standing_of(home, server)
    with open_store(home) as store, store.writing():
        save_waiver(store, ensure_project(store, "Mira", 1.0).id, standing, words)


def edit_prompt(home: Path, text: str) -> None:
    """Have the project's judge asked with that text."""
    with open_store(home) as store, store.writing():
        project = ensure_project(store, "Mira", time.time())
        store.prompt_edits.save(
            PromptEdit(0, project.id, "judge_plain", "en", text, time.time(), "Mira")
        )


def checked(home: Path, server: Loopback) -> dict[str, object]:
    path = home.parent / "fact.txt"
    path.write_text(FACT)
    request = CheckRequest(
        CLAIM, documents=(path,), protocol="single", model="openai/loopback", api_base=server.base
    )
    outcome, _ = check_once(home, request, time.time, Keys({}))
    return outcome


def test_half_of_the_cases_are_true_so_that_one_answer_for_all_fails() -> None:
    labels = [label for _, _, label in CASES]
    assert (
        labels.count("supported")
        == labels.count("hallucinated")
        == len(CASES) / 2
        < MIN_RIGHT_ANSWERS
    )


@pytest.mark.parametrize(
    ("answer", "right", "unreadable"), [(knowing, 12, 0), (always_yes, 6, 0), (silly, 0, 12)]
)
def test_each_model_is_asked_about_all_cases_once(
    home: Path, answer: Answer, right: int, unreadable: int
) -> None:
    with loopback(answer) as server:
        (result,) = qualified(home, server)
        assert standing_of(home, server).result == result
    assert (result.right, result.unreadable, result.of) == (right, unreadable, 12)
    assert result.has_passed == (right == 12)
    assert len(server.asked) == 12 * (2 if unreadable else 1), "an unreadable reply is mended once"


def test_the_judge_test_keeps_to_the_rate_of_the_home(home: Path) -> None:
    with open_store(home) as store, store.writing():
        store.projects.save_setting("requests_per_second", 6)
    with loopback(knowing) as server:
        qualified(home, server)
    times = sorted(asked.at for asked in server.asked)
    assert times[-1] - times[0] > 1, "twelve cases take two seconds"


def test_a_service_that_fails_leaves_no_result_and_is_not_asked_to_the_end(home: Path) -> None:
    with loopback(lambda asked: Reply(status=404, message="no such model")) as server:
        with pytest.raises(Exception, match="does not know that model"):
            qualified(home, server)
        assert standing_of(home, server).result is None
    assert len(server.asked) < 12


def test_a_judge_that_failed_speaks_and_its_verdict_is_unclear_until_a_lead_lets_it_count(
    home: Path,
) -> None:
    with loopback(always_yes) as server:
        assert checked(home, server)["label"] == "supported", "nobody has tested it yet"
        qualified(home, server)
        outcome = checked(home, server)
        assert outcome["label"] == "unclear"
        assert outcome["cause"] == "model_not_fit"
        assert "failed the judge test: 6 of 12 right;" in str(outcome)
        assert "It is true." in str(outcome), "what it said is shown all the same"
        waive(home, server, "Mira lets it count.")
        assert checked(home, server)["label"] == "supported"
        edit_prompt(home, f"{SHIPPED.text} ")
        assert checked(home, server)["label"] == "supported", "the lead let the model count"
        waive(home, server, "")
        assert checked(home, server)["label"] == "unclear"


def test_a_judge_that_passed_decides(home: Path) -> None:
    with loopback(knowing) as server:
        qualified(home, server)
        assert checked(home, server)["label"] == "supported"


def test_another_address_has_to_be_tested_anew(home: Path) -> None:
    with loopback(always_yes) as one, loopback(always_yes) as other:
        qualified(home, one)
        assert standing_of(home, one).has_failed
        assert standing_of(home, other).result is None


@pytest.mark.parametrize(
    ("model", "address"),
    [
        ("openai/Tiny", "HTTP://LOCALHOST:8080/v1/"),
        ("hosted_vllm/tiny", "http://127.0.0.2:8080//v1?x=1"),
        ("tiny", "http://127.0.0.1:8080/./v1#a"),
    ],
)
def test_another_spelling_of_model_and_address_does_not_undo_a_failure(
    home: Path, model: str, address: str
) -> None:
    tested = AgentConfig("openai/tiny", "http://127.0.0.1:8080/v1")
    with open_store(home) as store:
        with store.writing():
            failed = Qualification("openai/tiny", 3, 0, 12, 1.0, SHIPPED.hash)
            save_qualification(store, tested, failed)
        for agent in (tested, AgentConfig(model, address)):
            assert load_standing(store, "project", agent, PromptBook()).has_failed


def test_an_edited_prompt_does_not_undo_a_failure(home: Path) -> None:
    with loopback(always_yes) as server:
        qualified(home, server)
        edit_prompt(home, SHIPPED.text.replace("one or two sentences", "one, or two, sentences"))
        outcome = checked(home, server)
        assert (outcome["label"], outcome["cause"]) == ("unclear", "model_not_fit")
        assert "6 of 12 right (tested with another prompt)" in str(outcome)
        qualified(home, server)
        assert "another prompt" not in standing_of(home, server).words


def test_a_pass_with_another_prompt_is_no_test_of_this_one(home: Path) -> None:
    with loopback(knowing) as server:
        qualified(home, server)
        assert standing_of(home, server).has_passed
        edit_prompt(home, f"{SHIPPED.text} ")
        standing = standing_of(home, server)
        assert not standing.has_passed
        assert not standing.has_failed
        assert "another prompt" in standing.words
        assert checked(home, server)["label"] == "supported", "as one that was not tested"


def test_of_two_results_the_failure_counts_until_that_prompt_is_tested_anew(home: Path) -> None:
    answers = [always_yes]
    with loopback(lambda asked: answers[-1](asked)) as server:
        qualified(home, server)
        edit_prompt(home, f"{SHIPPED.text} ")
        answers.append(knowing)
        qualified(home, server)
        assert standing_of(home, server).has_passed, "the edited prompt made a judge of it"
        edit_prompt(home, "")
        assert standing_of(home, server).has_failed, "with this prompt it failed"
        qualified(home, server)
        assert standing_of(home, server).has_passed
        edit_prompt(home, f"{SHIPPED.text} ")
        answers.append(always_yes)
        qualified(home, server)
        edit_prompt(home, "")
        assert standing_of(home, server).has_failed, "it failed last, though by other words"


def test_a_test_anew_asks_the_model_anew(home: Path) -> None:
    answers = [always_yes]
    with loopback(lambda asked: answers[-1](asked)) as server:
        (first,) = qualified(home, server)
        answers.append(knowing)  # somebody serves a better model under that name
        (second,) = qualified(home, server)
        assert (first.right, second.right) == (6, 12)
        assert standing_of(home, server).has_passed


def test_other_settings_than_the_agents_are_told(home: Path) -> None:
    def answer(asked: Asked) -> Reply:
        is_cut = asked.body["max_tokens"] == 1
        return Reply("The", finish="length") if is_cut else knowing(asked)

    with loopback(answer) as server:
        qualified(home, server, max_tokens=1, temperature=0.5)
        told = standing_of(home, server).words
    assert told == (
        "0 of 12 right, 12 unreadable (tested with temperature 0.5 and at most 1 token a reply)"
    )


def keep_as_before(home: Path, server: Loopback, kind: str, value: str) -> None:
    """Write a note as earlier versions did: its key was of model, address, prompt and cases."""
    base = server.base.rstrip("/")
    whole = json.dumps(["openai/loopback", base, SHIPPED.hash, CASES])
    key = hashlib.sha256(whole.encode()).hexdigest()[:16]
    with open_store(home) as store, store.writing():
        project = ensure_project(store, "Mira", time.time())
        where = f"{project.id}." if kind == "model_trusted" else ""
        store.projects.save_note(f"{kind}.{where}{key}", value)


def test_what_earlier_versions_kept_still_counts(home: Path) -> None:
    body = {"model": "openai/loopback", "right": 6, "unreadable": 1, "of": 12, "at": 1.0}
    with loopback(always_yes) as server:
        keep_as_before(home, server, "qualification", json.dumps(body))
        assert standing_of(home, server).words == "6 of 12 right, 1 unreadable"
        edit_prompt(home, f"{SHIPPED.text} ")
        assert "another prompt" in standing_of(home, server).words
        assert checked(home, server)["label"] == "unclear"
        edit_prompt(home, "")
        keep_as_before(home, server, "model_trusted", "Mira lets it count.")
        assert checked(home, server)["label"] == "supported"
        waive(home, server, "")
        assert checked(home, server)["label"] == "unclear"


@pytest.mark.parametrize("kept", ["", "[]", "null", '{"right": "x"}', "{", "[" * 50_000])
def test_a_result_that_cannot_be_read_counts_as_none(home: Path, kept: str) -> None:
    with loopback(always_yes) as server:
        keep_as_before(home, server, "qualification", kept)
        assert standing_of(home, server).result is None


def test_two_tests_at_once_leave_one_result(home: Path) -> None:
    done: list[Qualification] = []
    with loopback(lambda asked: replace(always_yes(asked), pause=0.05)) as server:
        threads = [
            threading.Thread(target=lambda: done.extend(qualified(home, server))) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [result.right for result in done] == [6, 6, 6]
        assert standing_of(home, server).result in done


ADAPTIVE = DebateOptions(then="ensemble")
DECIDERS: dict[str, tuple[str, dict[str, object]]] = {
    "the audit's picker": ("audit", {}),
    "the voters of an ensemble": ("ensemble", {}),
    "the voters of a society": ("society", {}),
    "the voters on a corrected text": ("mamm_refine", {}),
    "the weighed debaters": ("sc_maks", {}),
    "the judge of a debate": ("ceda", {}),
    "the voters after a judge who was not sure": ("adaptive", {"options": ADAPTIVE}),
}


@pytest.mark.parametrize("who", DECIDERS)
def test_whoever_decides_has_to_have_passed(home: Path, who: str) -> None:
    protocol, plan = DECIDERS[who]
    bench = bench_in(home)
    with loopback(acting) as server:
        sheet = make_single_model_roster("openai/loopback", server.base)
        if protocol == "adaptive":  # a judge that nobody has tested leaves it open
            sheet = replace(sheet, judge=replace(sheet.judge, model="openai/unsure"))
        before, _ = bench.run(sheet, protocol=protocol, **plan)
        qualified(home, server)
        after, progress = bench.run(sheet, protocol=protocol, **plan)
    assert before.label == "supported", "nobody has tested it yet"
    assert (after.label, after.cause) == ("unclear", "model_not_fit")
    assert progress.judgement
    assert progress.judgement.label == "supported", "what was said is kept"


def test_an_audits_reflector_decides_too(home: Path) -> None:
    change = {"statement": 1, "label": "hallucinated", "reason": "412.", "because_of": []}

    def answer(asked: Asked) -> Reply:
        return (
            Reply(json.dumps({"changes": [change]}))
            if role_of(asked) == "reflect"
            else silly(asked)
        )

    bench = bench_in(home)
    with loopback(answer) as server:
        seat = AgentConfig("openai/loopback", server.base)
        sheet = RosterConfig("ours", reflector=seat)
        assert list_deciding_models(sheet) == (seat,)
        qualified(home, server)
        run, _ = bench.run(sheet, protocol="audit")
    assert run.cause == "model_not_fit"


@pytest.fixture
def boxed(monkeypatch: pytest.MonkeyPatch) -> Callable[[Answer], AbstractContextManager[Loopback]]:
    """Have a server of ours stand for the one that comes with the model in the box."""

    @contextmanager
    def serve(answer: Answer) -> Iterator[Loopback]:
        with loopback(answer) as server:
            monkeypatch.setattr(SERVER, "address", lambda *_: server.base)
            yield server

    return serve


Boxed = Callable[[Answer], AbstractContextManager[Loopback]]
BOX = replace(make_single_model_roster(f"{PROVIDER}/tiny"), image_reader=AgentConfig())


def run_box(bench: Bench) -> tuple[Run, RunState]:
    """A single judge's check by the model in the box."""
    return bench.run(BOX, protocol="single")


def set_run_tokens(home: Path, most: int) -> None:
    with open_store(home) as store, store.writing():
        store.projects.save_setting("run_tokens", most)


def paid_slots(home: Path, run: Run) -> list[str]:
    """The slots of the run whose reply was paid for."""
    with open_store(home) as store:
        return [row.slot for row in store.ledger.of_run(run.id) if row.status == "done"]


def resumed(bench: Bench, run: Run) -> Run:
    """The run after Resume; it must have paid for nothing twice."""
    before = paid_slots(bench.home, run)
    assert bench.jobs.resume(run.id, "Mira")
    run, _ = bench.ended(run.id)
    after = paid_slots(bench.home, run)
    assert after[: len(before)] == before
    assert len(after) == len(set(after)), "nothing was paid for twice"
    return run


@pytest.mark.parametrize(("answer", "cause"), [(knowing, None), (always_yes, "model_not_fit")])
def test_the_model_in_the_box_is_tested_in_its_first_run(
    home: Path, boxed: Boxed, answer: Answer, cause: str | None
) -> None:
    bench = bench_in(home)
    with boxed(answer) as server:
        run, progress = run_box(bench)
        assert run.cause == cause
        assert sum(map(is_test, server.asked)) == 12
        assert len(progress.calls) == len(server.asked), "the test's calls are booked and shown"
        run_box(bench)
        assert sum(map(is_test, server.asked)) == 12, "once is enough"


def test_a_test_whose_replies_cannot_be_read_is_failed(home: Path, boxed: Boxed) -> None:
    with boxed(lambda asked: silly(asked) if is_test(asked) else knowing(asked)):
        run, progress = run_box(bench_in(home))
    assert (run.status, run.label, run.cause) == ("finished", "unclear", "model_not_fit")
    assert progress.verdict
    assert "0 of 12 right, 12 unreadable" in progress.verdict.cause_words


def expect_kept(run: Run, progress: RunState, cause: str) -> None:
    """The run ended with what the judge said, no verdict, and a sentence that says why."""
    assert (run.status, run.label, run.cause) == ("finished", "unclear", cause)
    assert progress.judgement
    assert progress.judgement.label == "supported"
    assert progress.verdict
    assert "So it is." in progress.verdict.rationale
    assert progress.verdict.cause_words.startswith("The judge test broke off, so no verdict counts")
    assert [p.message for p in progress.problems][-1] == progress.verdict.cause_words


def test_a_cap_that_is_reached_in_the_test_loses_no_judgement(home: Path, boxed: Boxed) -> None:
    bench = bench_in(home)
    set_run_tokens(home, 2000)
    with boxed(knowing):
        run, progress = run_box(bench)
        expect_kept(run, progress, "budget_reached")
        assert "used so far" in progress.verdict.cause_words  # type: ignore[union-attr]
        set_run_tokens(home, 1_000_000)
        assert resumed(bench, run).label == "supported"


@pytest.mark.parametrize(
    "fault", [Reply(status=500), Reply(status=404), Reply("So it", fault="cut_off")]
)
def test_a_server_that_fails_in_the_test_loses_no_judgement(
    home: Path, boxed: Boxed, fault: Reply
) -> None:
    faults = [fault]
    bench = bench_in(home)
    with boxed(lambda asked: faults[0] if faults and is_test(asked) else knowing(asked)):
        run, progress = run_box(bench)
        expect_kept(run, progress, "agent_failed")
        faults.clear()
        assert resumed(bench, run).label == "supported"


def test_a_run_that_is_stopped_in_the_test_resumes_there(home: Path, boxed: Boxed) -> None:
    bench, pauses = bench_in(home), [0.0, 0.0, 0.0, 0.0, 0.0]

    def answer(asked: Asked) -> Reply:
        waits = is_test(asked) and not pauses
        if is_test(asked) and pauses:
            pauses.pop()
        return replace(knowing(asked), pause=20.0 if waits else 0.0)

    with boxed(answer) as server:
        run_id = bench.jobs.start(bench.case, Plan("single", BOX.name, sheet=BOX))
        wait_for(lambda: sum(map(is_test, server.asked)) >= 8)
        bench.jobs.stop(run_id, "Mira")
        run, _ = bench.ended(run_id)
        assert run.status == "stopped"
        assert len(paid_slots(home, run)) >= 6
        pauses.extend([0.0] * 12)
        assert resumed(bench, run).label == "supported"


def test_two_first_runs_of_the_box_at_once_both_end_right(home: Path, boxed: Boxed) -> None:
    bench = bench_in(home)
    with boxed(lambda asked: replace(always_yes(asked), pause=0.05)):
        plan = Plan("single", BOX.name, sheet=BOX)
        ids = [bench.jobs.start(bench.case, plan) for _ in range(2)]
        runs = [bench.ended(run_id)[0] for run_id in ids]
    assert [run.cause for run in runs] == ["model_not_fit"] * 2


def test_a_label_that_the_classifier_doubts_is_no_way_around_the_test(home: Path) -> None:
    """Old runs are scored again by new classifiers, which may find a label."""
    bench = bench_in(home)
    with loopback(always_yes) as server:
        sheet = make_single_model_roster("openai/loopback", server.base)
        qualified(home, server)
        with pytest.MonkeyPatch.context() as patch:
            doubt = Verdict("unclear", 0.5, 0.5, "Hm.", "classifier_disagrees", "It doubts.")
            patch.setattr("core.verdict.classifier.Classifier.verdict", lambda *_: doubt)
            run, _ = bench.run(sheet, protocol="single")
    assert run.cause == "model_not_fit"
    with open_store(home) as store:
        assert run.id not in find_scorable_runs(store)
