"""Which member of a panel marks as people do: figures, and a choice only where it is clear."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning.span_threshold import FEWEST_CASES
from core.learning.span_tuning import (
    MarkedByPanel,
    best_members,
    marked_by_panels,
    member_body,
    scored_cases,
    span_answers,
)
from core.pipeline.span_stage import KEPT_FROM, VotedRun, VotedSpan, runs_of, tally
from core.schema.events import (
    Event,
    JudgementReached,
    LabelPredicted,
    RunFinished,
    RunStarted,
    SoftLabelled,
    SpanProposed,
    SpanVoted,
)
from core.schema.records import (
    Case,
    Judgement,
    PanelRule,
    Plan,
    RoleUsed,
    Run,
    Verdict,
    members_from,
    new_id,
    threshold_from,
)
from core.store import Store
from tests.learning.marked import add_case, say, span

MEMBERS = ("good", "bad")
ROLES = tuple(RoleUsed(f"span panel {n}", name, False, "", "") for n, name in enumerate(MEMBERS, 1))


def panel_run(store: Store, case: Case, good: int, bad: int, p: float = 0.9) -> None:
    """A finished run in which each of two members marked one word and the other voted p on it."""
    response = case.response
    runs = tuple(
        VotedRun(name, (VotedSpan(span(word, response, source=name), ((other, p),)),))
        for name, other, word in (("good", "bad", good), ("bad", "good", bad))
    )
    found = tally(runs, PanelRule(), response, case.language)
    verdict = Verdict("hallucinated", 0.9, 0.9, "")
    told: list[Event] = [
        RunStarted(1.0, case, Plan(), ROLES),
        JudgementReached(1.0, Judgement("judge", "hallucinated", "So."), 0.1),
        LabelPredicted(1.0, verdict),
        *(SpanProposed(1.0, s.span) for run in runs for s in run.spans),
        *(
            SpanVoted(1.0, run.extractor, name, s.span, vote, "")
            for run in runs
            for s in run.spans
            for name, vote in s.votes
        ),
        SoftLabelled(1.0, found.labels, KEPT_FROM, MEMBERS),
        RunFinished(2.0, verdict, 1.0),
    ]
    run = Run(new_id(), case.id, case.project_id, Plan(), "queued", 1.0)
    with store.writing():
        store.runs.add(run, "test", 1.0)
        store.runs.append(run.id, None, told)


def marked(
    number: int, good: float, bad: float, vote: float, language: str = "en"
) -> MarkedByPanel:
    return MarkedByPanel(f"c{number}", f"g{number}", language, {"good": good, "bad": bad}, vote)


def test_a_panels_runs_are_the_same_from_its_trace(store: Store) -> None:
    case = add_case(store, "one")
    panel_run(store, case, good=1, bad=3)
    say(store, case, span(1))
    (answer,) = span_answers(store, "p")
    assert answer.run is not None
    runs = runs_of(answer.run)
    assert [(r.extractor, [s.span.start for s in r.spans]) for r in runs] == [
        ("good", [6]), ("bad", [18]),
    ]  # fmt: skip
    assert [dict(s.votes) for r in runs for s in r.spans] == [{"bad": 0.9}, {"good": 0.9}]


def test_each_members_run_is_held_against_what_people_marked(store: Store) -> None:
    for n in range(3):
        case = add_case(store, f"c{n}")
        panel_run(store, case, good=1, bad=3)
        say(store, case, span(1))
    found = marked_by_panels(span_answers(store, "p"))
    assert [(one.by_member, one.vote) for one in found] == [({"good": 1.0, "bad": 0.0}, 0.0)] * 3
    assert best_members(found) == []  # too few


def test_the_panels_votes_have_a_threshold_of_their_own(store: Store) -> None:
    case = add_case(store, "one")
    panel_run(store, case, good=1, bad=1, p=0.6)
    say(store, case, span(1))
    scored = scored_cases(span_answers(store, "p"))
    assert {kind: len(cases) for kind, cases in scored.items()} == {
        "reader": 0, "votes": 0, "panel": 1, "weighted": 0,
    }  # fmt: skip
    assert scored["panel"][0].pieces == ((0.6, 5, 5),)
    told = threshold_from(3, {"panel": {"by_language": {"en": 0.5}, "otherwise": 0.6}})
    assert told.panel.at("en-GB") == 0.5
    assert told.panel.at("de") == 0.6
    assert not told.weighted.words


def test_a_member_that_is_always_closer_decides_alone_in_its_language() -> None:
    cases = [marked(n, 0.9, 0.1, 0.4) for n in range(20)]
    cases += [marked(100 + n, 0.3, 0.3, 0.3, "de") for n in range(20)]
    german, english = best_members(cases)
    assert (english.language, english.member, english.n) == ("en", "good", 20)
    assert english.is_better
    assert english.gain.value == pytest.approx(0.5)
    assert not german.is_better
    body = member_body([german, english], cases, [])
    assert members_from(body) == (("en", "good"),)
    assert len(body["cases"]) == 40
    assert [one["language"] for one in body["figures"]] == ["de", "en"]


def test_a_language_needs_enough_cases_and_nobody_is_chosen_for_none() -> None:
    few = [marked(n, 0.9, 0.1, 0.4) for n in range(FEWEST_CASES - 1)]
    assert best_members(few) == []
    assert best_members([marked(n, 0.9, 0.1, 0.4, "und") for n in range(50)]) == []


def test_the_luckiest_of_equal_members_is_hardly_ever_called_better() -> None:
    random = np.random.default_rng(0)
    called = 0
    for _ in range(40):
        ious = random.uniform(0, 1, size=(30, 3))
        cases = [marked(n, a, b, vote) for n, (a, b, vote) in enumerate(ious.tolist())]
        called += sum(one.is_better for one in best_members(cases))
    assert called <= 4
