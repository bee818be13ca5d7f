"""A whole check: sources read and indexed, debate, verdict, spans; resumed and stopped."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from core.documents import library as gather
from core.documents.library import discard_reading, remove_file
from core.documents.retrieval import ensure_index
from core.llm.encoder import Matrix
from core.pipeline.review import ReviewResources
from core.runtime.concurrency import StopSignal
from core.runtime.errors import InputError, ModelError, ReplyError
from core.schema.events import TRANSIENT_KINDS, Event, RunResumed
from core.schema.records import Case, Judgement, Plan, Source, Statement
from core.schema.roles import JudgeView, Roster, Segmenter
from core.schema.run_state import fold_events
from core.store import Store, open_store
from tests.fakes import FakeEmbedder, Line, ScriptedDebater, ScriptedJudge, case_of, review

pytestmark = pytest.mark.usefixtures("without_weights")

CATS = (
    "Cats have five toes on each front paw, but only four toes on each back paw. Female cats tend "
    "to be right pawed, while male cats are more often left pawed. A female cat is called a queen."
)
PAPER_CLAIM = "Female cats tend to be right pawed."


def photograph() -> bytes:
    """A picture without any text: a soft gradient."""
    image = Image.linear_gradient("L").resize((400, 300)).convert("RGB")
    out = io.BytesIO()
    image.save(out, "JPEG")
    return out.getvalue()


def run(
    case: Case, roster: Roster, resources: ReviewResources, past: list[Event] | None = None
) -> list[Event]:
    return list(review(case, Plan(), roster, resources, StopSignal(), past=past or []))


def durable(events: list[Event]) -> list[str]:
    passing = ("turn_delta", "progress_made")
    return [event.kind for event in events if event.kind not in passing]


def test_the_papers_example_is_supported(roster: Roster, resources: ReviewResources) -> None:
    """CEDA A.3, example 1, against a page of our own."""
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    events = run(case, roster, resources)
    state = fold_events(events)
    assert state.verdict
    assert state.verdict.label == "supported"
    assert state.verdict.p_hallucinated is not None
    assert state.verdict.p_hallucinated < 0.5
    assert state.verdict.confidence == max(
        state.verdict.p_hallucinated, round(1 - state.verdict.p_hallucinated, 4)
    )
    assert state.spans == ()
    kinds = [kind for kind in durable(events) if kind != "consensus_reached"]
    turns = kinds.count("turn_finished")
    assert 3 <= turns <= 5, "three readers, each heard at least once"
    assert kinds == [
        *"run_started document_read statement_found passages_found context_built".split(),
        *["turn_started", "turn_finished"] * turns,
        *"judgement_reached label_predicted words_scored run_finished".split(),
    ]


def test_no_snapshot_is_open_while_models_work(
    roster: Roster, resources: ReviewResources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A snapshot keeps the write-ahead log from being emptied, so the file would only grow."""
    logs_in_use: list[int] = []

    def write_and_empty_log() -> None:
        with open_store(resources.home) as store:
            store.db.conn.execute("PRAGMA busy_timeout = 0")
            store.projects.save_note("written", str(len(logs_in_use)))
            (is_in_use, *_) = store.db.conn.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
            logs_in_use.append(is_in_use)

    class Retriever(FakeEmbedder):
        def encode(self, texts: Sequence[str], stop: StopSignal | None = None) -> Matrix:
            write_and_empty_log()
            return super().encode(texts, stop)

    segmenter = type(roster.segmenter)
    segment = segmenter.segment

    def watch(self: Segmenter, case: Case, stop: StopSignal) -> tuple[Statement, ...]:
        write_and_empty_log()
        return segment(self, case, stop)

    monkeypatch.setattr(segmenter, "segment", watch)
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    run(case, roster, replace(resources, retriever=Retriever()))
    assert len(logs_in_use) == 3, "index, statements, queries"
    assert not any(logs_in_use)


def test_its_opposite_is_hallucinated_with_the_wrong_word_marked(
    roster: Roster, resources: ReviewResources
) -> None:
    claim = "Female cats tend to be left pawed."
    case = case_of(resources.home, claim, ("cats.txt", CATS.encode()))
    state = fold_events(run(case, roster, resources))
    assert state.verdict
    assert state.verdict.label == "hallucinated"
    assert [span.text for span in state.spans] == ["left"]
    assert state.spans[0].instead == "right"
    quote = state.spans[0].quote
    assert quote
    assert (quote.status, quote.source) == ("verified", "cats.txt")
    assert quote.start is not None
    assert "right pawed" in CATS[quote.start : quote.end]


def test_a_photograph_without_text_is_unclear(roster: Roster, resources: ReviewResources) -> None:
    files = ("dog.jpg", photograph()), ("cats.txt", CATS.encode())
    case = case_of(resources.home, "The dog in the picture is brown.", *files)
    state = fold_events(run(case, roster, resources))
    assert state.verdict
    assert (state.verdict.label, state.verdict.cause) == ("unclear", "image_not_readable")
    assert state.verdict.p_hallucinated is None
    assert "dog.jpg" in state.verdict.cause_words


def test_without_sources_the_cause_is_said(roster: Roster, resources: ReviewResources) -> None:
    state = fold_events(run(case_of(resources.home, PAPER_CLAIM), roster, resources))
    assert state.verdict
    assert (state.verdict.label, state.verdict.cause) == ("unclear", "no_evidence")


def test_a_source_that_cannot_be_read_costs_only_itself(
    roster: Roster, resources: ReviewResources
) -> None:
    files = ("broken.pdf", b"%PDF-1.4\n1 0 obj << truncated"), ("cats.txt", CATS.encode())
    case = case_of(resources.home, PAPER_CLAIM, *files)
    state = fold_events(run(case, roster, resources))
    assert state.verdict
    assert state.verdict.label == "supported"
    assert [problem.source for problem in state.problems] == ["broken.pdf"]


def test_a_deleted_source_is_a_problem_in_words(roster: Roster, resources: ReviewResources) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    (resources.home / "documents" / case.documents[0]).unlink()
    state = fold_events(run(case, roster, resources))
    assert state.verdict
    assert state.verdict.cause == "no_evidence"
    assert "cats.txt" in state.problems[0].message


def test_a_second_check_reads_nothing_anew(roster: Roster, resources: ReviewResources) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    first = fold_events(run(case, roster, resources))
    second = fold_events(run(case, roster, resources))
    assert not next(iter(first.documents.values())).reused
    assert next(iter(second.documents.values())).reused
    assert second.verdict == first.verdict
    assert [turn.text for turn in second.turns] == [turn.text for turn in first.turns]


@pytest.mark.slow
def test_a_run_cut_off_anywhere_resumes_to_the_same_end(
    roster: Roster, resources: ReviewResources
) -> None:
    """After every durable event: three statements, a broken file, a debate, its consensus."""
    agreeing = {name: roster.debaters[name] for name in ("Ada", "Cleo")}
    roster = replace(roster, debaters=agreeing)
    claim = (
        "Cats have six toes on each front paw. Female cats are right pawed. Cats have four toes."
    )
    files = [("cats.txt", CATS.encode()), ("broken.pdf", b"%PDF-1.7 and no more")]
    case = case_of(resources.home, claim, *files)
    whole = [e for e in run(case, roster, resources) if e.kind not in TRANSIENT_KINDS]
    complete = fold_events(whole)
    assert len(complete.statements) == 3
    assert complete.reached_consensus
    assert len(complete.problems) == 1
    for kept in range(len(whole)):
        rest = run(case, roster, resources, past=whole[:kept])
        joined = fold_events([*whole[:kept], *rest])
        assert joined.verdict == complete.verdict
        assert joined.statements == complete.statements
        assert [t.text for t in joined.turns] == [t.text for t in complete.turns]
        assert joined.spans == complete.spans
        assert joined.reached_consensus
        assert [p.message for p in joined.problems] == [p.message for p in complete.problems]
        finished = {e.turn.number for e in whole[:kept] if e.kind == "turn_finished"}
        again = {e.number for e in rest if e.kind == "turn_started"}
        assert not finished & again, "a finished turn was argued twice"


def test_a_source_that_went_away_before_resuming_is_missed_aloud(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    whole = [e for e in run(case, roster, resources) if e.kind not in TRANSIENT_KINDS]
    with open_store(resources.home) as store:
        remove_file(store, resources.home, case.project_id, case.documents[0], 1.0)
    joined = fold_events([*whole[:2], *run(case, roster, resources, past=whole[:2])])
    assert [p.source_id for p in joined.problems] == [case.documents[0]]
    assert joined.documents == {}


def test_an_index_that_went_away_before_resuming_is_made_anew(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    whole = [e for e in run(case, roster, resources) if e.kind not in TRANSIENT_KINDS]
    with open_store(resources.home) as store:
        discard_reading(store, case.documents[0])
    joined = fold_events([*whole[:2], *run(case, roster, resources, past=whole[:2])])
    assert joined.problems == []
    assert joined.verdict == fold_events(whole).verdict


@pytest.mark.parametrize("often", [1, 99])
def test_read_again_during_a_run_costs_at_most_the_source(
    roster: Roster, resources: ReviewResources, monkeypatch: pytest.MonkeyPatch, often: int
) -> None:
    """Somebody presses it between the reading and the indexing, or keeps on pressing."""
    files = ("cats.txt", CATS.encode()), ("dogs.txt", b"Dogs bark at night.")
    case = case_of(resources.home, PAPER_CLAIM, *files)
    pressed: list[str] = []

    def dropped(store: Store, source: Source, *rest: Any) -> bool:
        if source.name == "cats.txt" and len(pressed) < often:
            pressed.append(source.id)
            discard_reading(store, source.id)
        return ensure_index(store, source, *rest)

    monkeypatch.setattr(gather, "ensure_index", dropped)
    state = fold_events(run(case, roster, resources))
    assert state.verdict
    if often == 1:
        assert (state.problems, state.verdict.label) == ([], "supported")
    else:
        assert [p.source_id for p in state.problems] == [case.documents[0]]
        assert "is being read again" in state.problems[0].message
        assert list(state.documents) == [case.documents[1]]


@pytest.mark.parametrize("drop", ["reindex", "remove_file"])
def test_a_source_dropped_during_the_search_is_searched_as_it_was(
    roster: Roster, resources: ReviewResources, drop: str
) -> None:
    case = case_of(
        resources.home, f"{PAPER_CLAIM} A female cat is called a queen.", ("a.txt", CATS.encode())
    )
    events: list[Event] = []
    with open_store(resources.home) as store:
        for event in review(case, Plan(), roster, resources, StopSignal()):
            events.append(event)
            if event.kind == "statement_found" and event.statement.index == 0:
                if drop == "reindex":
                    discard_reading(store, case.documents[0])
                else:
                    remove_file(store, resources.home, case.project_id, case.documents[0], 1.0)
    state = fold_events(events)
    assert all(state.passages.values())
    assert state.verdict
    assert state.verdict.label == "supported"


def test_a_file_deleted_while_it_is_indexed_is_missed_aloud(
    roster: Roster, resources: ReviewResources, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))

    def deleted(store: Store, source: Source, *rest: Any) -> bool:
        remove_file(store, resources.home, case.project_id, source.id, 1.0)
        return ensure_index(store, source, *rest)

    monkeypatch.setattr(gather, "ensure_index", deleted)
    state = fold_events(run(case, roster, resources))
    assert [p.source_id for p in state.problems] == [case.documents[0]]
    assert state.verdict
    assert state.verdict.label == "unclear"


def test_stop_leaves_what_was_found_and_no_verdict(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    stop = StopSignal()
    events: list[Event] = []
    for event in review(case, Plan(), roster, resources, stop):
        events.append(event)
        if event.kind == "turn_finished":
            stop.set()
    assert events[-1].kind == "run_stopped"
    state = fold_events(events)
    assert len(state.turns) == 1
    assert state.verdict is None


def test_the_papers_illusion_ends_hallucinated(roster: Roster, resources: ReviewResources) -> None:
    """CEDA A.3, example 2: both agree with each other, and the claim is false."""
    source = ("lines.txt", b"The two horizontal lines are of exactly the same length.")
    case = case_of(resources.home, "The top line is shorter than the bottom line.", source)
    told = "Both debaters agree. Verdict: INCORRECT, the statement is hallucinated."
    judge = ScriptedJudge("hallucinated", told)
    said: list[Line] = [
        ("agree", "hallucinated", "AGREE. The lines are identical, so it is not shorter."),
        ("agree", "hallucinated", "AGREE. Measurement confirms equal lengths."),
    ]
    debaters = {n: ScriptedDebater(n, [line]) for n, line in zip("DE", said, strict=True)}
    cast = replace(roster, debaters=debaters, judge=judge)
    state = fold_events(run(case, cast, resources))
    assert state.reached_consensus
    assert [turn.reply for turn in state.turns] == ["agree", "agree"]
    assert state.verdict
    assert state.verdict.label == "hallucinated"
    assert judge.views[0].reached_consensus


class MumblingJudge(ScriptedJudge):
    """Answers, but not with a verdict."""

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        raise ReplyError(
            "Expected a last line “Verdict: 1” or “Verdict: 0”, found none.", reply="Hm."
        )


class FailingJudge(ScriptedJudge):
    """Cannot be reached."""

    def decide(self, view: JudgeView, stop: StopSignal) -> Judgement:
        raise ModelError("The judge could not be reached; try again.")


def test_a_failing_judge_leaves_the_run_without_a_verdict_until_it_is_resumed(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    events = run(case, replace(roster, judge=FailingJudge("supported", "")), resources)
    assert events[-1].kind == "run_finished"
    verdict = events[-1].verdict
    assert (verdict.label, verdict.cause) == ("unclear", "agent_failed")
    assert verdict.cause_words == "The judge could not be reached; try again."
    assert verdict.p_hallucinated is None
    problem = fold_events(events).problems[-1]
    assert (problem.stage, problem.cause) == ("judging", "agent_failed")
    past = [*events, RunResumed(1.0, "Mira")]
    state = fold_events([*past, *run(case, roster, resources, past=past)])
    assert state.verdict
    assert state.verdict.label == "supported"
    assert not state.problems
    assert len(state.turns) == len(fold_events(events).turns), "what was said is not said again"


def test_a_judge_that_cannot_be_read_leaves_it_unclear(
    roster: Roster, resources: ReviewResources
) -> None:
    case = case_of(resources.home, PAPER_CLAIM, ("cats.txt", CATS.encode()))
    events = run(case, replace(roster, judge=MumblingJudge("supported", "")), resources)
    assert events[-1].kind == "run_finished"
    assert (events[-1].verdict.label, events[-1].verdict.cause) == ("unclear", "unreadable_reply")
    assert fold_events(events).problems[-1].reply == "Hm."


def test_an_empty_claim_is_refused(home: Path) -> None:
    with pytest.raises(InputError, match="Enter a text to check"):
        case_of(home, "  \n ")


def test_too_long_a_response_is_refused(home: Path) -> None:
    with pytest.raises(InputError, match="at most 60,000 characters to check, found 60,001"):
        case_of(home, "x" * 60_001)


def test_the_response_is_kept_to_the_letter(roster: Roster, resources: ReviewResources) -> None:
    claim = "  Female cats 👩‍👩‍👧 tend\r\nto be left pawed.\t"
    case = case_of(resources.home, claim, ("cats.txt", CATS.encode()))
    assert case.response == claim
    state = fold_events(run(case, roster, resources))
    assert state.case
    assert state.case.response == claim
    for span in state.spans:
        assert claim[span.start : span.end] == span.text
