"""Explanations beside people's reasons: quotes counted, ratings by a scripted model, failures."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from core.agents.agent_runner import AgentContext
from core.evaluation.alignment import main, make_rater, rate_runs, summarize_alignment
from core.learning.agent_answers import (
    CaseReasons,
    get_alignment_note_name,
    is_covered,
    load_decided_runs,
    load_reasons,
)
from core.llm.prompting import Fence, PromptBook
from core.runtime.errors import BudgetReached
from core.schema.reviews import EvidenceMark
from core.schema.rosters import AgentConfig
from core.store import open_store
from tests.fakes import FakeDesk, ScriptedModel
from tests.learning.recorded_runs import tell
from tests.learning.test_consensus import told
from tests.llm.loopback import Asked, Loopback, Reply, loopback

ONE = CaseReasons(
    "r1", "ceda", "g1", "en", "The tower is 512 m tall.", "hallucinated",
    "The guide says 412 m.", "The source gives 412 m.", 2, 1, 2,
)  # fmt: skip
TWO = replace(ONE, run_id="r2", group="g2", reason="It was built later.", marks=0)
OTHER = replace(ONE, run_id="r3", protocol="single", rationale="It is not tall.")


def work(model: ScriptedModel, home: Path) -> AgentContext:
    return AgentContext(FakeDesk(model), PromptBook(), Fence("token"), home)


def reply(agreement: int) -> str:
    return json.dumps({"common": "Both name the height.", "agreement": agreement})


def test_half_of_a_mark_has_to_be_quoted() -> None:
    mark = EvidenceMark("s", 10, 20, "0123456789")
    assert is_covered(mark, [("s", 0, 15)])
    assert is_covered(mark, [("s", 10, 13), ("s", 12, 15)])
    assert not is_covered(mark, [("s", 0, 14), ("other", 10, 20)])


def test_without_a_model_quotes_are_counted_and_nothing_is_rated() -> None:
    rated, paired = summarize_alignment([ONE, TWO, OTHER])
    assert [(own.protocol, own.runs, own.marks) for own in rated] == [
        ("ceda", 2, 2),
        ("single", 1, 2),
    ]
    assert rated[0].quoted is not None
    assert rated[0].quoted["value"] == 0.5
    assert rated[0].found == 1.0
    assert rated[0].agreement is None
    assert rated[0].rated == 0
    assert paired == []


def test_a_model_rates_each_reason_and_one_of_another_case(home: Path) -> None:
    model = ScriptedModel([reply(n) for n in (5, 1, 4, 2, 2, 1)])
    reasons = [ONE, TWO, OTHER]
    ratings = rate_runs(reasons, make_rater(work(model, home), AgentConfig("fake/model")))
    rated, paired = summarize_alignment(reasons, ratings)
    model.finished()
    ceda, single = rated
    assert ceda.agreement is not None
    assert ceda.unlike is not None
    assert single.agreement is not None
    assert (ceda.agreement["value"], ceda.unlike["value"]) == (4.5, 1.5)
    assert single.agreement["value"] == 2.0
    assert [(own.one, own.other, own.n, own.lead["value"]) for own in paired] == [
        ("ceda", "single", 1, 3.0)
    ]
    asked = model.calls[0].messages[-1].text
    assert ONE.reason in asked
    assert ONE.rationale in asked
    assert TWO.reason in model.calls[1].messages[-1].text


def test_a_reply_off_the_scale_rates_nothing_and_is_counted(home: Path) -> None:
    model = ScriptedModel([reply(9), reply(0)])
    rated, _ = summarize_alignment(
        [ONE], rate_runs([ONE], make_rater(work(model, home), AgentConfig("fake/model")))
    )
    assert (rated[0].rated, rated[0].unusable, rated[0].agreement) == (0, 1, None)


def test_a_cap_ends_the_rating_and_keeps_what_was_rated() -> None:
    said = iter([4, 1, 5])

    def rate(_: CaseReasons, __: str) -> int | None:
        found = next(said, None)
        if found is None:
            raise BudgetReached("The cap is reached.")
        return found

    found = rate_runs([ONE, TWO], rate)
    assert (found.own, found.unlike) == ({"r1": 4, "r2": 5}, {"r1": 1}), "what was paid for counts"
    assert found.ended == "The cap is reached."
    assert summarize_alignment([ONE, TWO], found)[0][0].rated == 2
    with pytest.raises(BudgetReached):
        rate_runs([ONE], rate)


def test_only_runs_that_were_right_have_reasons_to_compare(home: Path) -> None:
    with open_store(home) as store:
        tell(store, told(20))
        rows = load_decided_runs(store, store.projects.all()[0].id, {})
        found = load_reasons(store, rows)
    right = [row for row in rows if row.heard.last and row.decision.label]
    assert 0 < len(found) < len(right)
    labels = {row.heard.run.id: row.decision.label for row in rows}
    assert all(own.label == labels[own.run_id] for own in found)
    assert {own.reason for own in found} == {"The source says so."}


def test_the_command_says_that_nothing_was_rated(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(home) as store:
        tell(store, told(4))
    assert main(["--home", str(home), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert "nothing was rated" in found["note"]
    assert [own["protocol"] for own in found["by_protocol"]] == ["ceda"]
    assert main(["--home", str(home / "none")]) == 2
    assert "found none" in capsys.readouterr().err


GOOD = Reply(reply(4))
Rating = tuple[int, dict[str, Any], str]


@pytest.fixture
def rating(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Rating]:
    """The command over a home with four right runs and a server: (exit code, object, stderr)."""
    monkeypatch.setenv("COUNTERPOINT_API_KEY", "sk-of-a-test")
    with open_store(home) as store:
        right = [one for one in told(12) if one.judge == one.right]
        tell(store, right[:4])

    def rate(server: Loopback, *more: str) -> Rating:
        at = ("--model", "openai/loopback", "--api-base", server.base, "--token-cap", "90000")
        code = main(["--home", str(home), *at, "--json", *more])
        captured = capsys.readouterr()
        return code, json.loads(captured.out) if captured.out else {}, captured.err

    return rate


def note_of(home: Path) -> str:
    with open_store(home) as store:
        return store.projects.note(get_alignment_note_name(store.projects.all()[0].id))


def test_over_a_real_stream_what_calls_came_to_is_told_and_none_is_made_twice(
    home: Path, rating: Callable[..., Rating]
) -> None:
    with loopback(GOOD) as server:
        code, found, err = rating(server)
        own = found["by_protocol"][0]
        assert (code, own["rated"], own["unusable"]) == (0, 4, 0)
        # All reasons are alike here: a reason of another case is the same question again.
        assert len(server.asked) == found["used"]["calls"] == 4
        assert (found["used"]["tokens_in"], found["used"]["tokens_out"]) == (400, 80)
        assert found["used"]["cost"] is None, "nobody knows this model's price"
        assert "4 calls, 400 tokens in, 80 out, a cost that is not known" in err
        assert json.loads(note_of(home))["used"] == found["used"]
        code, again, _ = rating(server)
        assert (code, again["by_protocol"]) == (0, found["by_protocol"])
        assert len(server.asked) == 4
        assert (again["used"]["calls"], again["used"]["cost"]) == (0, 0.0)


@pytest.mark.parametrize(
    ("useless", "asked"),
    [
        (Reply(reply(9)), 8),
        (Reply("I would say four."), 8),
        (Reply(""), 4),
        (Reply("No.", refusal=True), 4),
    ],
)
def test_what_a_server_says_beside_the_scale_rates_nothing(
    home: Path, rating: Callable[..., Rating], useless: Reply, asked: int
) -> None:
    with loopback(useless) as server:
        code, found, _ = rating(server)
        assert len(server.asked) == asked, "what cannot be read is asked for twice"
    own = found["by_protocol"][0]
    assert (code, own["rated"], own["unusable"], own["agreement"]) == (0, 0, 4, None)


def test_a_service_that_dies_is_said_and_the_same_command_goes_on(
    home: Path, rating: Callable[..., Rating]
) -> None:
    state = {"is_dead": True, "asked": 0}

    def answer(_: Asked) -> Reply:
        state["asked"] += 1
        is_down = state["is_dead"] and state["asked"] > 2
        return Reply(status=500, headers={"Retry-After": "0"}) if is_down else GOOD

    with loopback(answer) as server:
        code, found, err = rating(server)
        assert (code, found) == (1, {})
        assert "2 calls" not in err, "the failed one is told too"
        assert "failed (500)" in err
        assert err.strip().endswith("the same command goes on from there.")
        assert note_of(home) == ""
        state["is_dead"], before = False, len(server.asked)
        code, found, _ = rating(server)
        assert (code, found["by_protocol"][0]["rated"]) == (0, 4)
        assert len(server.asked) == before + 2


def test_a_cap_in_between_is_told_and_does_not_take_an_earlier_ratings_place(
    home: Path, rating: Callable[..., Rating]
) -> None:
    usage = {"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020}
    with loopback(replace(GOOD, usage=usage)) as server:
        code, found, _ = rating(server, "--token-cap", "5000")
        assert code == 0
        assert found["by_protocol"][0]["rated"] == 2, "a third might go beyond it"
        assert "5,000 tokens" in found["note"]
        assert note_of(home) == ""
        code, found, _ = rating(server)
        assert (code, found["note"], len(server.asked)) == (0, "", 4)
