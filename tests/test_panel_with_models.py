"""A panel of four language models over a loopback server: its calls, all at once; its faults."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from core.schema.records import Plan
from core.schema.rosters import AgentConfig, RosterConfig
from core.schema.run_state import RunState
from tests.llm.loopback import Asked, Loopback, Reply, loopback
from tests.test_with_models import Bench, bench_in, load_litellm
from tests.waiting import PATIENCE_SECONDS

pytestmark = pytest.mark.usefixtures("without_weights")

MODELS = ("one", "two", "three", "four")


@pytest.fixture(autouse=True, scope="module")
def _loaded() -> None:
    load_litellm()


@pytest.fixture
def bench(home: Path) -> Bench:
    return bench_in(home)


def marked(quote: str = "512 m") -> str:
    mark = {"reason": "412", "quote": quote, "category": "number_or_date", "instead": "412 m"}
    return json.dumps({"spans": [{**mark, "p": 0.9, "before": "is"}]})


def voted(p: float = 0.9) -> str:
    return json.dumps({"votes": [{"number": 1, "reason": "It is 412 m.", "p": p}]})


def is_vote(asked: Asked) -> bool:
    return "Vote on every number" in asked.prompt


def run(bench: Bench, answer: Callable[[Asked], Reply]) -> tuple[RunState, Loopback]:
    """The run's end, on the built-in engine with a panel of four models."""
    with loopback(answer) as server:
        seats = tuple(AgentConfig(f"openai/{m}", server.base, seconds=5) for m in MODELS)
        sheet = RosterConfig("four", span_panel=seats, panel_sees_evidence=False)
        ended, progress = bench.run(sheet)
        assert ended.status == "finished"
        return progress, server


def test_four_models_make_four_extractions_and_twelve_adjudications_at_once(bench: Bench) -> None:
    all_four = threading.Barrier(4)

    def answer(asked: Asked) -> Reply:
        if not is_vote(asked):
            all_four.wait(PATIENCE_SECONDS)  # none is answered before all have been asked
            return Reply(marked())
        return Reply(voted(), pause=0.3)

    progress, server = run(bench, answer)
    kinds = [(asked.body["model"], is_vote(asked)) for asked in server.asked]
    assert sorted(kinds) == sorted([(m, False) for m in MODELS] + [(m, True) for m in MODELS] * 3)
    assert len(kinds) == 4 * 4
    votes = sorted(asked.at for asked in server.asked if is_vote(asked))
    assert votes[-1] - votes[0] < 12 * 0.3 / 2, "votes were asked for one by one"
    (span,) = progress.spans
    assert (span.text, span.p, span.source) == ("512 m", 0.9, "one, two, three, four")
    assert len(progress.votes) == 12
    assert all(vote.extractor != vote.adjudicator for vote in progress.votes)
    assert progress.soft is not None
    assert progress.soft.runs == MODELS
    assert progress.cost is None  # models of no known price
    assert len(progress.calls) == 16
    assert {role.role for role in progress.roles} >= {f"span panel {n}" for n in range(1, 5)}


def test_one_dead_one_babbling_one_inventing_and_the_spans_are_right(bench: Bench) -> None:
    def answer(asked: Asked) -> Reply:
        model = asked.body["model"]
        if model == "two":
            return Reply(status=401, message="no such key")
        if model == "three":
            return Reply("I am sure that something is wrong with it, but who knows what.")
        if model == "four" and not is_vote(asked):
            return Reply(marked("nine hundred storeys"))
        return Reply(voted() if is_vote(asked) else marked())

    progress, _ = run(bench, answer)
    assert progress.soft is not None
    assert progress.soft.runs == ("one",)
    (span,) = progress.spans
    assert (span.text, span.p, span.source) == ("512 m", 0.9, "one")
    given = {vote.adjudicator: vote.p for vote in progress.votes}
    assert given == {"two": None, "three": None, "four": 0.9}
    said = " ".join(problem.message for problem in progress.problems)
    for words in ("two marked nothing", "three marked nothing", "four marked nothing"):
        assert words in said
    for words in ("two did not vote", "three did not vote", "stands in the response"):
        assert words in said
    assert progress.verdict is not None
    assert progress.verdict.label == "hallucinated"


def test_words_that_nobody_could_vote_on_are_proposed_and_not_kept(bench: Bench) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply("Hm.") if is_vote(asked) else Reply(marked())

    progress, _ = run(bench, answer)
    assert progress.spans == ()
    assert {span.text for span in progress.proposed} == {"512 m"}
    assert [(r.kept, r.span.text) for r in progress.rulings] == [(False, "512 m")]
    assert "Nobody could vote" in progress.rulings[0].reason


def test_models_and_built_in_readers_sit_in_one_panel(bench: Bench) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(voted() if is_vote(asked) else marked())

    with loopback(answer) as server:
        seats = (
            AgentConfig("openai/one", server.base, seconds=5),
            AgentConfig(reader="rules"),
            AgentConfig(reader="overlap"),
        )
        _, progress = bench.run(RosterConfig("mixed panel", span_panel=seats))
    assert len(server.asked) == 3  # one extraction, and votes on two readers' marks
    assert progress.soft is not None
    assert progress.soft.runs == ("one", "Value checker", "Overlap reader")
    assert {vote.adjudicator for vote in progress.votes} == set(progress.soft.runs)
    assert [span.text for span in progress.spans] == ["512 m"]


def test_a_resumed_run_pays_for_no_call_twice_and_tells_nothing_twice(bench: Bench) -> None:
    all_asked, goes_on = threading.Semaphore(0), threading.Event()

    def answer(asked: Asked) -> Reply:
        if is_vote(asked):
            all_asked.release()
            return Reply(voted(), pause=0.0 if goes_on.is_set() else 20.0)
        return Reply(marked())

    with loopback(answer) as server:
        seats = tuple(AgentConfig(f"openai/{m}", server.base, seconds=30) for m in MODELS)
        sheet = RosterConfig("four", span_panel=seats, panel_sees_evidence=False)
        run_id = bench.jobs.start(bench.case, Plan(roster="four", sheet=sheet))
        for _ in range(12):
            assert all_asked.acquire(timeout=PATIENCE_SECONDS)
        bench.jobs.stop(run_id, "Mira")
        bench.ended(run_id)
        goes_on.set()
        assert bench.jobs.resume(run_id, "Mira")
        ended, progress = bench.ended(run_id)
    assert ended.status == "finished"
    extractions = [a for a in server.asked if not is_vote(a)]
    assert len(extractions) == 4
    assert len(progress.proposed) == 4
    assert len(progress.votes) == 12
    assert [span.text for span in progress.spans] == ["512 m"]
