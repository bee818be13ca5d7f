"""Each member extracts once, all others vote on each of its spans; who fails is left out aloud."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

import pytest

from core.pipeline.span_stage import VotedRun, named, rotate
from core.runtime.concurrency import Stop
from core.runtime.errors import ModelError, ReplyError, ReviewError, Stopped
from core.schema.events import Event, ProblemMet, SpanProposed, SpanVote, SpanVoted, WordsScored
from core.schema.records import Span, WordScore
from core.schema.roles import CaseView
from tests.fakes import make_case, make_view

TEXT = "alpha bravo carol delta erika"
VIEW = make_view(make_case(TEXT), [])


class Member:
    """Marks the words at the given numbers and votes the given p; keeps what it was asked."""

    built_in = True
    rule = "does what the test wrote"

    def __init__(
        self,
        name: str,
        words: Sequence[int] | ReviewError,
        p: float | ReviewError | None = 0.8,
        wait: float = 0.0,
    ) -> None:
        self.name = name
        self._words, self._p, self._wait = words, p, wait
        self.voted: list[tuple[Span, ...]] = []
        self.extracted = 0

    def extract(self, view: CaseView, stop: Stop) -> tuple[Span, ...]:
        self.extracted += 1
        stop.wait(self._wait)
        if isinstance(self._words, ReviewError):
            raise self._words
        places = [(6 * n, 6 * n + 5) for n in self._words]
        return tuple(Span(a, b, TEXT[a:b], 0.9, "wrong_entity", "me") for a, b in places)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: Stop) -> tuple[SpanVote, ...]:
        self.voted.append(tuple(spans))
        stop.wait(self._wait)
        if isinstance(self._p, ReviewError):
            raise self._p
        return tuple(SpanVote(self._p, "So it says.") for _ in spans)


class Scorer(Member):
    """A member that scores every word as well."""

    def threshold(self, language: str) -> float:
        return 0.4

    def score_words(self, view: CaseView, stop: Stop) -> tuple[WordScore, ...]:
        return (WordScore(0, 5, 0.9), WordScore(6, 11, 0.3))


def played(*panel: Member, stop: Stop | None = None) -> tuple[list[Event], tuple[VotedRun, ...]]:
    work = rotate(panel, VIEW, stop or Stop(), lambda: 1.0)
    events: list[Event] = []
    while True:
        try:
            events.append(next(work))
        except StopIteration as end:
            return events, end.value


def of_kind(events: Sequence[Event], kind: str) -> list[Event]:
    return [event for event in events if event.kind == kind]


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_n_members_extract_once_and_vote_once_on_each_others_spans(count: int) -> None:
    panel = [Member(f"m{n}", [n % 5, (n + 1) % 5]) for n in range(count)]
    events, runs = played(*panel)
    assert [member.extracted for member in panel] == [1] * count
    assert [len(member.voted) for member in panel] == [count - 1] * count
    assert len(of_kind(events, "span_proposed")) == 2 * count
    assert len(of_kind(events, "span_voted")) == 2 * count * (count - 1)
    assert [run.extractor for run in runs] == [f"m{n}" for n in range(count)]
    for run in runs:
        for voted in run.spans:
            assert voted.span.source == run.extractor
            assert run.extractor not in dict(voted.votes)
            assert len(voted.votes) == count - 1


def test_nobody_is_asked_to_vote_on_nothing() -> None:
    silent, one, other = Member("silent", []), Member("one", [0]), Member("other", [1])
    _, runs = played(silent, one, other)
    assert (len(one.voted), len(other.voted), len(silent.voted)) == (1, 1, 2)
    assert [(run.extractor, len(run.spans)) for run in runs] == [
        ("silent", 0), ("one", 1), ("other", 1),
    ]  # fmt: skip


def test_who_cannot_extract_has_no_run_and_still_votes() -> None:
    dead = Member("dead", ModelError("It is down."), 0.6)
    events, runs = played(dead, Member("one", [0]), Member("two", [0]))
    assert [run.extractor for run in runs] == ["one", "two"]
    assert [dict(run.spans[0].votes) for run in runs] == [
        {"dead": 0.6, "two": 0.8}, {"dead": 0.6, "one": 0.8},
    ]  # fmt: skip
    (problem,) = of_kind(events, "problem_met")
    assert isinstance(problem, ProblemMet)
    assert problem.stage == "marking"
    assert problem.message == "dead marked nothing and is left out of the count: It is down."


def test_who_cannot_vote_is_absent_and_said_to_be() -> None:
    broken = Member("broken", [0], ReplyError("It said nothing.", reply="{"))
    events, runs = played(broken, Member("one", [1, 2]), Member("two", [1]))
    assert [dict(s.votes) for run in runs for s in run.spans] == [
        {"one": 0.8, "two": 0.8}, {"two": 0.8}, {"two": 0.8}, {"one": 0.8},
    ]  # fmt: skip
    absent = [e for e in events if isinstance(e, SpanVoted) and e.p is None]
    assert [(e.adjudicator, e.reason) for e in absent] == [("broken", "It gave no vote.")] * 3
    problems = of_kind(events, "problem_met")
    assert len(problems) == 2
    assert {p.reply for p in problems if isinstance(p, ProblemMet)} == {"{"}


def test_a_span_may_have_no_vote_of_a_member_that_works() -> None:
    events, runs = played(Member("mute", [], None), Member("one", [0]))
    assert runs[1].spans[0].votes == ()
    assert not of_kind(events, "problem_met")


def test_scores_of_every_word_are_told_and_kept() -> None:
    events, runs = played(Scorer("scorer", [0]), Member("one", []))
    (told,) = [e for e in events if isinstance(e, WordsScored)]
    assert (told.agent, told.threshold, len(told.scores)) == ("scorer", 0.4, 2)
    assert [score.p for score in runs[0].scores] == [0.9, 0.3, 0.3]
    assert runs[1].scores == ()


def test_equal_names_are_told_apart() -> None:
    panel = [Member("m", [0]), Member("m", [1]), Member("n", [2]), Member("m", [])]
    assert named(panel) == ("m", "m (2)", "n", "m (3)")
    events, _ = played(*panel)
    proposed = [e.span.source for e in events if isinstance(e, SpanProposed)]
    assert sorted(proposed) == ["m", "m (2)", "n"]


def test_all_go_at_once_so_that_a_round_takes_as_long_as_two_calls() -> None:
    panel = [Member(f"m{n}", [n], wait=0.2) for n in range(4)]
    began = time.monotonic()
    played(*panel)
    assert time.monotonic() - began < 0.4 * 1.5  # sixteen calls one by one would take 3.2 s


def test_votes_do_not_wait_for_slower_extractors() -> None:
    fast, slow = Member("fast", [0]), Member("slow", [1], wait=0.3)
    events, _ = played(fast, slow, Member("third", []))
    kinds = [(e.kind, getattr(e, "extractor", "")) for e in events]
    first_vote = kinds.index(("span_voted", "fast"))
    slow_marks = next(
        i for i, e in enumerate(events) if isinstance(e, SpanProposed) and e.span.source == "slow"
    )
    assert first_vote < slow_marks


def test_a_stop_ends_it_at_once() -> None:
    stop = Stop()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        played(Member("one", [0], wait=5.0), Member("two", [1], wait=5.0), stop=stop)
    assert time.monotonic() - began < 2.0
