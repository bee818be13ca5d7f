"""What votes come to: means over those that voted, most runs, weights, and one run alone."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.span_stage import (
    VotedRun,
    VotedSpan,
    compute_soft_labels,
    find_hard_spans,
    name_members,
    rotate_panel,
    rule_on_spans,
    tally_votes,
)
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ModelError, ReplyError, ReviewError, Stopped
from core.schema.events import Event, ProblemMet, SpanProposed, SpanVote, SpanVoted, WordsScored
from core.schema.records import MarkingLevels, PanelRule, Span, WordScore
from core.schema.roles import CaseView
from tests.fakes import make_case, make_view

TEXT = "alpha bravo carol delta erika"  # five letters each
NAMES = ("A", "B", "C", "D")


def voted(start: int, end: int, **votes: float) -> VotedSpan:
    span = Span(start, end, TEXT[start:end], 0.9, "wrong_entity", "?")
    return VotedSpan(span, tuple(votes.items()))


def run(name: str, *spans: VotedSpan, scores: tuple[WordScore, ...] = ()) -> VotedRun:
    return VotedRun(name, spans, scores)


@st.composite
def some_runs(draw: st.DrawFn) -> list[VotedRun]:
    """Up to four runs of any spans, each with votes of any of the others."""
    found = []
    for name in NAMES[: draw(st.integers(1, 4))]:
        spans = []
        for _ in range(draw(st.integers(0, 3))):
            start = draw(st.integers(0, len(TEXT) - 1))
            end = draw(st.integers(start + 1, len(TEXT)))
            others = [other for other in NAMES if other != name]
            names = draw(st.lists(st.sampled_from(others), unique=True))
            spans.append(voted(start, end, **{n: draw(st.floats(0, 1)) for n in names}))
        found.append(run(name, *spans))
    return found


def by_hand(runs: list[VotedRun]) -> tuple[list[float], list[float]]:
    """(p, level) of every character, straight from the definition."""
    means, levels = [], []
    for place in range(len(TEXT)):
        given, marked = [], []
        for one in runs:
            over = [s for s in one.spans if s.span.start <= place < s.span.end]
            ps = [float(np.mean([p for _, p in s.votes])) for s in over if s.votes]
            marked.append(max(ps, default=0.0))
            if ps or not over:
                given.append(max(ps, default=0.0))
        means.append(float(np.mean(given)) if given else 0.0)
        need = len(runs) // 2 + 1
        levels.append(sorted(marked)[-need])
    return means, levels


@given(some_runs())
def test_soft_labels_are_the_mean_of_the_runs_at_every_character(runs: list[VotedRun]) -> None:
    labels = compute_soft_labels(runs)
    means, levels = by_hand(runs)
    told = {i: label for label in labels for i in range(label.start, label.end)}
    for place in range(len(TEXT)):
        assert (told[place].p if place in told else 0.0) == pytest.approx(means[place], abs=1e-3)
        level = told[place].level if place in told else 0.0
        assert level == pytest.approx(levels[place], abs=1e-3)
    assert all(a.end <= b.start for a, b in pairwise(labels))


@given(some_runs(), st.floats(0.01, 1))
def test_hard_is_what_more_than_half_of_the_runs_mark_from_the_threshold_on(
    runs: list[VotedRun], threshold: float
) -> None:
    labels = compute_soft_labels(runs)
    marked = {
        i for start, end in find_hard_spans(labels, threshold, TEXT) for i in range(start, end)
    }
    for label in labels:
        times = [max((s.p or 0.0 for s in one.over(label.start)), default=0.0) for one in runs]
        is_hard = 2 * sum(round(p, 4) >= threshold for p in times) > len(runs)
        for place in range(label.start, label.end):
            if not TEXT[place].isspace():
                assert (place in marked) == is_hard


def test_who_gave_no_vote_is_absent_from_the_mean_and_is_not_one_half() -> None:
    (label,) = compute_soft_labels([run("A", voted(0, 5, B=0.9))])
    assert label.p == 0.9
    (label,) = compute_soft_labels([run("A", voted(0, 5, B=0.9, C=0.3))])
    assert label.p == pytest.approx(0.6)


def test_words_on_which_nobody_voted_stay_proposed_and_are_not_kept() -> None:
    found = tally_votes([run("A", voted(0, 5))], PanelRule(), TEXT, "en")
    (ruling,) = rule_on_spans(found, "hallucinated")
    assert not ruling.kept
    assert "Nobody could vote" in ruling.reason
    assert [(label.p, label.level) for label in found.labels] == [(0.0, 0.0)]


def test_a_run_that_nobody_voted_on_makes_no_majority() -> None:
    runs = [run("A", voted(0, 5)), run("B", voted(0, 5, A=0.9))]
    (label,) = compute_soft_labels(runs)
    assert (label.p, label.level) == (0.9, 0.0)
    assert find_hard_spans([label], 0.7, TEXT) == ()


def test_most_runs_decide_from_the_papers_threshold_on() -> None:
    runs = [
        run("A", voted(0, 11, B=0.9, C=0.8), voted(24, 29, B=0.9, C=0.9)),
        run("B", voted(6, 11, A=0.7, C=0.7), voted(12, 17, A=0.6, C=0.6)),
        run("C", voted(12, 17, A=0.9, B=0.9)),
    ]
    found = tally_votes(runs, PanelRule(), TEXT, "en")
    told = [(r.span.text, r.kept, r.span.source) for r in rule_on_spans(found, "hallucinated")]
    assert told == [("bravo", True, "A, B"), ("erika", False, "A"), ("carol", False, "B, C")]
    kept = next(rule_on_spans(found, "hallucinated"))
    assert kept.span.p == pytest.approx((0.85 + 0.7) / 3, abs=1e-3)
    why = [r.reason for r in rule_on_spans(found, "hallucinated")]
    assert why[0].startswith("Marked by more than half of 3 runs with p of 0.70 or more")
    assert why[1] == "Marked in 1 of 3 runs; more than half would have to."
    assert why[2] == "The votes come to 0.60, below 0.70."


def test_under_another_verdict_no_words_are_kept() -> None:
    runs = [run("A", voted(0, 5, B=0.9)), run("B", voted(0, 5, A=0.9))]
    found = tally_votes(runs, PanelRule(), TEXT, "en")
    assert [r.kept for r in rule_on_spans(found, "hallucinated")] == [True]
    assert [(r.kept, r.reason) for r in rule_on_spans(found, "unclear")] == [
        (False, "The verdict is unclear.")
    ]


def test_a_learned_threshold_and_a_learned_member_count_by_language() -> None:
    runs = [run("A", voted(0, 5, B=0.5)), run("B")]
    rule = PanelRule(MarkingLevels((("de", 0.4),), 0.7), alone=(("de", "A"),))
    german, english = tally_votes(runs, rule, TEXT, "de-AT"), tally_votes(runs, rule, TEXT, "en")
    assert (german.threshold, german.alone) == (0.4, "A")
    assert [r.kept for r in rule_on_spans(german, "hallucinated")] == [True]
    assert "A decides here" in next(rule_on_spans(german, "hallucinated")).reason
    assert (english.threshold, english.alone) == (0.7, "")
    assert [r.kept for r in rule_on_spans(english, "hallucinated")] == [False]
    gone = tally_votes(runs[1:], rule, TEXT, "de")
    assert gone.alone == ""  # who could not extract decides nothing


def test_words_that_scores_alone_make_wrong_are_marked_though_no_run_proposed_them() -> None:
    rule = PanelRule(MarkingLevels(otherwise=0.3), weights=(("A", "A", 0.9),))
    runs = [run("A", scores=(WordScore(0, 5, 0.4), WordScore(6, 11, 0.1))), run("B", voted(18, 23))]
    found = tally_votes(runs, rule, TEXT, "en")
    first, dropped = rule_on_spans(found, "hallucinated")
    assert (first.kept, first.span.text, first.span.p, first.span.source) == (
        True, "alpha", 0.36, "A",
    )  # fmt: skip
    assert (dropped.kept, dropped.span.text) == (False, "delta")


def test_weights_sum_the_votes_with_each_ones_own_p() -> None:
    scores = (WordScore(0, 5, 0.8), WordScore(6, 11, 0.2))
    runs = [run("A", voted(0, 5, B=0.5), scores=scores), run("B", voted(6, 11))]
    weights = (("A", "A", 0.5), ("A", "B", 0.2), ("B", "B", 0.3), ("gone", "A", 9.0))
    labels = compute_soft_labels(runs, weights)
    told = {label.start: label.p for label in labels}
    assert told[0] == pytest.approx(0.5 * 0.8 + 0.2 * 0.5)
    assert told[6] == pytest.approx(0.5 * 0.2 + 0.3 * 0.9)
    assert all(label.level == label.p for label in labels)


def test_an_absent_vote_counts_in_a_weighted_sum_as_the_others_do() -> None:
    weights = (("A", "B", 0.5), ("A", "C", 0.5))
    (label,) = compute_soft_labels([run("A", voted(0, 5, B=0.6))], weights)
    assert label.p == pytest.approx(0.6)


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

    def extract(self, view: CaseView, stop: StopSignal) -> tuple[Span, ...]:
        self.extracted += 1
        stop.wait(self._wait)
        if isinstance(self._words, ReviewError):
            raise self._words
        places = [(6 * n, 6 * n + 5) for n in self._words]
        return tuple(Span(a, b, TEXT[a:b], 0.9, "wrong_entity", "me") for a, b in places)

    def vote(self, view: CaseView, spans: Sequence[Span], stop: StopSignal) -> tuple[SpanVote, ...]:
        self.voted.append(tuple(spans))
        stop.wait(self._wait)
        if isinstance(self._p, ReviewError):
            raise self._p
        return tuple(SpanVote(self._p, "So it says.") for _ in spans)


class Scorer(Member):
    """A member that scores every word as well."""

    def threshold(self, language: str) -> float:
        return 0.4

    def score_words(self, view: CaseView, stop: StopSignal) -> tuple[WordScore, ...]:
        return (WordScore(0, 5, 0.9), WordScore(6, 11, 0.3))


def played(
    *panel: Member, stop: StopSignal | None = None
) -> tuple[list[Event], tuple[VotedRun, ...]]:
    work = rotate_panel(panel, VIEW, stop or StopSignal(), lambda: 1.0)
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
    assert name_members(panel) == ("m", "m (2)", "n", "m (3)")
    events, _ = played(*panel)
    proposed = [e.span.source for e in events if isinstance(e, SpanProposed)]
    assert sorted(proposed) == ["m", "m (2)", "n"]


def test_all_go_at_once_so_that_a_round_takes_as_long_as_two_calls() -> None:
    panel = [Member(f"m{n}", [n], wait=0.2) for n in range(4)]
    began = time.monotonic()
    played(*panel)
    assert time.monotonic() - began < 1.6  # sixteen calls one by one take 3.2 s


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
    stop = StopSignal()
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    with pytest.raises(Stopped):
        played(Member("one", [0], wait=5.0), Member("two", [1], wait=5.0), stop=stop)
    assert time.monotonic() - began < 2.0
