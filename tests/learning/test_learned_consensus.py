"""Weights of a project's agents are learned from enough answers, kept, used and put back."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from core.learning.learned_consensus import (
    KIND,
    choose,
    counts_for,
    learn,
    missing,
    opinion,
    weights_in,
)
from core.learning.reasoning import rows_of
from core.runtime.errors import InputError, NotAllowed
from core.schema.progress import folded
from core.schema.records import Label, Member, Stance
from core.store import Store, open_store
from core.store.versions import NONE
from tests.learning.runs_told import Told, tell

SIDES: tuple[Label, Label] = ("supported", "hallucinated")


def told(count: int, seed: int = 1) -> list[Told]:
    """Ada is right on nine of ten cases, Ben on every other one, the judge on eight of ten."""
    chance = random.Random(seed)
    found = []
    for number in range(count):
        is_wrong = number % 2 == 0

        def says(share: float, is_wrong: bool = is_wrong) -> Stance:
            return SIDES[is_wrong == (chance.random() < share)]

        turns = (("Ada", says(0.9)), ("Ben", says(0.5)))
        found.append(Told(turns, says(0.8), SIDES[is_wrong], claim=f"Claim {number}."))
    return found


@pytest.fixture
def store(home: Path) -> Store:
    return open_store(home)


def project_of(store: Store) -> str:
    return store.projects.all()[0].id


def test_weights_are_learned_used_on_a_run_and_put_back(store: Store) -> None:
    ids = tell(store, told(80))
    project_id = project_of(store)
    rows = rows_of(store, project_id, {})
    assert missing(rows) == ""
    number = learn(store, project_id, rows, "Mira", 5.0)
    learned = store.learned.get(number)
    assert learned is not None
    assert len(learned.body["decisions"]) == 80
    assert learned.body["compared"]["groups"] == 80
    assert store.learned.in_use(KIND, project_id) is None, "learned is not yet used"
    choose(store, project_id, number, by="Mira", reason="Ada is good", now=6.0)
    used = store.learned.in_use(KIND, project_id)
    assert used is not None
    progress = folded(event for _, event in store.runs.events(ids[0]))
    found = opinion(used, progress)
    assert found is not None
    assert 0 < found.p < 1
    assert (found.n, found.at, found.unknown) == (80, 5.0, ())
    said = {agent.name: value for agent, value, _ in found.parts}
    assert set(said) == {"Reader Ada", "Reader Ben", "Judge", "Classifier"}
    choose(store, project_id, NONE, by="Mira", reason="not yet", now=7.0)
    assert store.learned.in_use(KIND, project_id) is None
    assert [c.reason for c in store.learned.choices(KIND, project_id)] == ["not yet", "Ada is good"]


def test_who_is_right_more_often_is_seen_to_count_more(store: Store) -> None:
    tell(store, told(160))
    number = learn(store, project_of(store), rows_of(store, project_of(store), {}), "Mira", 5.0)
    learned = store.learned.get(number)
    assert learned is not None
    assert learned.body["compared"]["proposed"] != "uniform"
    counts = [row["agent"].name for row in counts_for(*weights_in(learned))]
    assert counts[0] == "Reader Ada"
    assert counts.index("Reader Ben") > 1


def test_a_run_of_other_agents_has_no_consensus(store: Store) -> None:
    tell(store, told(60))
    project_id = project_of(store)
    number = learn(store, project_id, rows_of(store, project_id, {}), "Mira", 5.0)
    learned = store.learned.get(number)
    other = replace(told(1)[0], models={"Ada": "openai/x", "Ben": "openai/y"}, classifier="v9")
    (run_id,) = tell(store, [other])
    progress = folded(event for _, event in store.runs.events(run_id))
    assert learned is not None
    assert opinion(learned, progress) is None, "only the judge is known"


@pytest.mark.parametrize(
    ("count", "words"),
    [
        (0, "40 more decided cases, among them 10 hallucinated and 10 supported"),
        (12, "28 more decided cases, among them 4 hallucinated and 4 supported"),
        (30, "10 more decided cases"),
        (40, ""),
    ],
)
def test_what_is_missing_is_said(store: Store, count: int, words: str) -> None:
    tell(store, told(count) or told(1)[:0])
    rows = rows_of(store, project_of(store), {}) if count else []
    assert missing(rows) == words
    if words:
        with pytest.raises(InputError, match="can be learned after"):
            learn(store, project_of(store), rows, "Mira", 5.0)


def test_only_a_lead_learns_and_chooses_and_gives_a_reason(store: Store) -> None:
    tell(store, told(40))
    project_id = project_of(store)
    with store.writing():
        store.projects.set_member(Member(project_id, "Karl", "annotator", 1.0))
    rows = rows_of(store, project_id, {})
    with pytest.raises(NotAllowed):
        learn(store, project_id, rows, "Karl", 5.0)
    number = learn(store, project_id, rows, "Mira", 5.0)
    with pytest.raises(NotAllowed):
        choose(store, project_id, number, by="Karl", reason="I like it", now=6.0)
    with pytest.raises(InputError, match="reason"):
        choose(store, project_id, number, by="Mira", reason="  ", now=6.0)
    with pytest.raises(InputError, match="no consensus of number"):
        choose(store, project_id, number + 1, by="Mira", reason="try", now=6.0)
    assert store.learned.in_use(KIND, project_id) is None
