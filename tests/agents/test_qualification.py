"""A model that cannot judge twelve fixed claims speaks, but decides nothing."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from core.agents.qualification import (
    CASES,
    MIN_RIGHT_ANSWERS,
    Qualification,
    load_qualification,
    qualification_key,
    qualify_deciding_models,
    trust_model,
)
from core.agents.rosters import make_single_model_roster
from core.llm.keys import Keys
from core.llm.metering import CallAccount
from core.llm.prompting import PromptBook
from core.pipeline.single_check import CheckRequest, check_once
from core.review.people import ensure_project
from core.runtime.concurrency import StopSignal
from core.store import open_store
from tests.llm.loopback import Asked, Loopback, Reply, loopback

CLAIM, FACT = "The tower is 512 m tall.", "The tower is 412 m tall."


def knowing(asked: Asked) -> Reply:
    """A judge that has every fixed case right."""
    found = [label for evidence, claim, label in CASES if claim in asked.prompt]
    return Reply(f"So it is.\nVerdict: {int(found[:1] != ['hallucinated'])}")


def always_yes(asked: Asked) -> Reply:
    """What a very small model says of everything."""
    return Reply("It is true.\nVerdict: 1")


def silly(asked: Asked) -> Reply:
    return Reply("I like fashion week.")


def qualified(home: Path, server: Loopback) -> list[Qualification]:
    with open_store(home) as store:
        project = ensure_project(store, "Mira", time.time())
    account = CallAccount("test1", "Mira", project.id)
    sheet = make_single_model_roster("openai/loopback", server.base)
    found = qualify_deciding_models(
        sheet, Keys({}), StopSignal(), home=home, account=account, clock=time.time
    )
    return list(found)


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
    home: Path, answer: object, right: int, unreadable: int
) -> None:
    with loopback(answer) as server:  # type: ignore[arg-type]
        (result,) = qualified(home, server)
        key = qualification_key(
            make_single_model_roster("openai/loopback", server.base).judge, PromptBook()
        )
    assert (result.right, result.unreadable, result.of) == (right, unreadable, 12)
    assert result.has_passed == (right == 12)
    assert len(server.asked) == 12 * (2 if unreadable else 1), "an unreadable reply is mended once"
    with open_store(home) as store:
        assert load_qualification(store, key) == result


def test_a_service_that_fails_leaves_no_result(home: Path) -> None:
    with loopback(lambda asked: Reply(status=404, message="no such model")) as server:
        with pytest.raises(Exception, match="does not know that model"):
            qualified(home, server)
        key = qualification_key(
            make_single_model_roster("openai/loopback", server.base).judge, PromptBook()
        )
    with open_store(home) as store:
        assert load_qualification(store, key) is None


def test_a_judge_that_failed_speaks_and_its_verdict_is_unclear_until_a_lead_trusts_it(
    home: Path,
) -> None:
    with loopback(always_yes) as server:
        assert checked(home, server)["label"] == "supported", "nobody has tested it yet"
        qualified(home, server)
        outcome = checked(home, server)
        assert outcome["label"] == "unclear"
        assert outcome["cause"] == "model_not_fit"
        assert "6 of 12 right" in str(outcome)
        assert "It is true." in str(outcome), "what it said is shown all the same"
        key = qualification_key(
            make_single_model_roster("openai/loopback", server.base).judge, PromptBook()
        )
        with open_store(home) as store, store.writing():
            project = ensure_project(store, "Mira", time.time())
            trust_model(store, project.id, key, "Mira lets its verdicts count.")
        assert checked(home, server)["label"] == "supported"


def test_a_judge_that_passed_decides(home: Path) -> None:
    with loopback(knowing) as server:
        qualified(home, server)
        assert checked(home, server)["label"] == "supported"


def test_an_edited_prompt_or_another_address_has_to_be_tested_anew() -> None:
    seat = make_single_model_roster("openai/loopback", "http://127.0.0.1:9/v1").judge
    other = make_single_model_roster("openai/loopback", "http://127.0.0.1:8/v1").judge
    assert qualification_key(seat, PromptBook()) != qualification_key(other, PromptBook())
