"""What is said of a run under way."""

from __future__ import annotations

import pytest

from components.live import STAGE_WORDS, stage_of
from core.events import (
    ConsensusReached,
    Event,
    LabelPredicted,
    ProgressMade,
    RunStarted,
    Stage,
    StatementFound,
)
from core.progress import folded
from core.records import Plan, Statement, Verdict
from tests.fakes import make_case

BEGUN = RunStarted(1.0, make_case("a"), Plan(), ())


@pytest.mark.parametrize(
    ("event", "stage"),
    [
        (BEGUN, "reading"),
        (StatementFound(2.0, Statement(0, 0, 1, "a", "a")), "searching"),
        (ConsensusReached(2.0, "supported", 4), "judging"),
        (LabelPredicted(2.0, Verdict("supported", 0.1, 0.9, "")), "marking"),
    ],
)
def test_the_stage_is_the_one_that_the_run_is_in(event: Event, stage: Stage) -> None:
    assert stage_of(folded([BEGUN, event]), None) == (STAGE_WORDS[stage], None)


def test_passing_news_counts_until_the_next_event() -> None:
    news = ProgressMade(3.0, "reading", "a.pdf: page 3 of 4", 3, 4)
    assert stage_of(folded([BEGUN]), news) == ("a.pdf: page 3 of 4", 0.75)
    found = StatementFound(4.0, Statement(0, 0, 1, "a", "a"))
    assert stage_of(folded([BEGUN, found]), news) == (STAGE_WORDS["searching"], None)
