"""Checks a case: the only file that knows the order of the stages.

`review_to_store` is a synchronous generator of events. What the events so far already hold is not
done again: an interrupted run is resumed by handing its events in as `past`, and a finished run
that is checked again as `earlier`. Source: CEDA 3.1, 3.2 (initial, intermediate and output state).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from core.agents.agent_runner import RunContext, calls_of, segmented
from core.debate.protocols import protocol_named
from core.debate.state import DebateState, judge_view, warned
from core.documents.library import Gathering, gather_sources, missed, sources_of
from core.documents.retrieval import Retriever, described_passages, described_texts
from core.llm.encoder import Embedder
from core.pipeline.audit_stage import AuditRun, audited, bare_bench, seen_after, statements_checked
from core.pipeline.run_factory import Earlier, code_digest, copies, reusable
from core.pipeline.span_stage import marked
from core.runtime.concurrency import Stop
from core.runtime.config import Settings
from core.runtime.errors import BudgetReached, ModelError, ReviewError, Stopped
from core.schema.events import (
    AUDIT,
    Event,
    LabelPredicted,
    PassagesFound,
    PersonSpoke,
    ProblemMet,
    ProgressMade,
    RunFailed,
    RunFinished,
    RunStarted,
    RunStopped,
    StepsReused,
)
from core.schema.progress import Progress, folded
from core.schema.records import Case, Cause, Passage, Plan, Source, Verdict, rule_digest
from core.schema.roles import CaseView, Evidence, JudgeView, Roster
from core.store import Store, open_store
from core.tools.registry import Bench
from core.verdict.classifier import Classifier


@dataclass(frozen=True)
class Search:
    """What a run's search works with; `ocr` names the agent whose texts of images are not read.

    `count` is how many passages a statement gets; `is_remote` says that the embedder is a
    provider's, which wants all queries in one call.
    """

    store: Store
    embedder: Embedder
    sources: Sequence[Source]
    count: int
    ocr: str
    is_remote: bool
    stop: Stop
    now: Callable[[], float]


def searched(search: Search, case: Case, progress: Progress) -> Iterator[Event]:
    """Passages for every statement that has none yet."""
    waiting = [s for i, s in sorted(progress.statements.items()) if i not in progress.passages]
    if not waiting:
        return
    seen = described_passages(progress.images.values(), case.language, search.ocr)
    retriever = Retriever(search.store, search.embedder, search.sources)
    queries = [f"{case.question} {statement.rewrite}".strip() for statement in waiting]
    if search.is_remote:
        retriever.prepare(queries, search.stop)
    for count, (statement, query) in enumerate(zip(waiting, queries, strict=True)):
        search.stop.check()
        note = "Searching the sources"
        yield ProgressMade(search.now(), "searching", note, count, len(waiting))
        found = retriever.retrieve(query, case.language, search.count)
        reason = "" if search.sources else "There is no source that could be searched."
        yield PassagesFound(search.now(), statement.index, (*found, *seen), reason)


def view_of(case: Case, progress: Progress, sources: Sequence[Source]) -> CaseView:
    """The case with what was found for it; of the sources those that hold any of it."""
    evidence = Evidence(
        progress.evidence,
        {index: tuple(p.id for p in found) for index, found in progress.passages.items()},
    )
    used = {passage.source_id for passage in evidence.passages.values()}
    texts = {s.id: s.text for s in sources} | described_texts(progress.images)
    return CaseView(
        case=case,
        statements=tuple(s for _, s in sorted(progress.statements.items())),
        evidence=evidence,
        sources={i: text for i, text in texts.items() if i in used},
        unreadable_images=progress.unreadable_images,
    )


CODE = code_digest()[:12]
Value = TypeVar("Value")
Heard = Callable[[], tuple[PersonSpoke, ...]]


@dataclass(frozen=True)
class Resources:
    """What a review works with; each thread opens the store for itself.

    `encoder` is the built-in agents' own; `bench` is what tools may reach beside the sources.
    """

    home: Path
    settings: Settings
    encoder: Embedder
    classifier: Classifier
    now: Callable[[], float]
    retriever: Embedder | None = None
    bench: Callable[[Case, Stop], Bench] = bare_bench
    reader_id: str = ""
    """Of an imported reader; the shipped one is part of the program."""

    @property
    def embedder(self) -> Embedder:
        """What embeds passages: CEDA's agent A; the built-in encoder unless the roster says so."""
        return self.retriever or self.encoder


@dataclass(frozen=True)
class _Review:
    """One run under way: its inputs and the state that its events have built up."""

    case: Case
    plan: Plan
    roster: Roster
    resources: Resources
    stop: Stop
    progress: Progress
    earlier: Earlier | None
    is_arriving: bool = False
    heard: Heard = tuple

    @property
    def now(self) -> Callable[[], float]:
        return self.resources.now

    @property
    def play(self) -> RunContext:
        """What the roles share."""
        return RunContext(self.roster, self.stop, self.now)


def review_to_store(
    case: Case,
    plan: Plan,
    roster: Roster,
    resources: Resources,
    stop: Stop,
    *,
    past: Sequence[Event] = (),
    earlier: Earlier | None = None,
    is_arriving: bool = False,
    heard: Heard = tuple,
) -> Iterator[tuple[Event, ...]]:
    """A run's events to its end, as they are to be stored: those of a tuple all or not at all.

    `past` are those that an earlier attempt stored. What has the same inputs as in `earlier`, the
    run that is checked again, is taken over as one tuple: half of it would look like the run's own.
    Of a response that `is_arriving` the statements that are there are checked, and nothing is
    concluded (CEDA 6). Every other run ends with `run_finished`, `run_stopped` or `run_failed`.
    """
    run = _Review(case, plan, roster, resources, stop, folded(past), earlier, is_arriving, heard)
    try:
        for found in _stages(run):
            together = found if isinstance(found, tuple) else (found,)
            for event in together:
                run.progress.add(event)
            yield together
    except Stopped:
        yield (*calls_of(run.play), RunStopped(resources.now()))
    except ModelError as error:
        yield (*calls_of(run.play), *_without_verdict(run, error))
    except ReviewError as error:
        stage = run.progress.stage
        yield (*calls_of(run.play), RunFailed(resources.now(), stage, str(error)))


def _stages(run: _Review) -> Iterator[Event | tuple[Event, ...]]:
    """All stages in their order; each does only what is not done yet."""
    progress = run.progress
    if progress.case is None:
        roles = run.roster.roles_used(rule_digest)
        yield RunStarted(run.now(), run.case, run.plan, roles, _code(run))
    gathering = _gathering(run)
    yield from gather_sources(gathering, progress.sources_read)
    with open_store(run.resources.home) as store, store.reading():
        yield from missed(gathering, store, progress.sources_read)
        sources = sources_of(store, run.case, progress.sources_read)
        run = replace(run, case=_with_language(run.case, sources))
        yield _taken_over(run, store)
        if progress.reused is None:
            yield from segmented(run.play, run.case, progress.statements)
        yield from searched(_search(run, store, sources), run.case, progress)
    if run.is_arriving:
        yield from statements_checked(_audit(run, sources), with_whole=False)
        return
    if run.plan.protocol == AUDIT:
        audit = _audit(run, sources)
        yield from audited(audit)
        yield from _conclude(run, seen_after(audit))
        return
    state = DebateState(
        run.play, view_of(run.case, progress, sources), progress, run.plan, run.heard
    )
    if progress.judgement is None:
        yield from warned(state)
        yield from protocol_named(run.plan.protocol).argue(state)
    yield from _conclude(run, judge_view(state))


def _code(run: _Review) -> str:
    """What runs now; a resumed run may have begun under another."""
    return f"{CODE} {run.resources.embedder.id} {run.resources.reader_id}".rstrip()


def _taken_over(run: _Review, store: Store) -> tuple[Event, ...]:
    """The steps that the run which is checked again did over the same inputs; none if not sure."""
    progress, earlier = run.progress, run.earlier
    if earlier is None or _has_begun(progress) or not run.roster.is_deterministic:
        return ()
    before = folded(earlier.events)
    read_at = {i: store.readings.read_at(i) for i in progress.sources_read}
    through = reusable(before, progress, read_at) if before.code == _code(run) else None
    if through is None:
        return ()
    now = run.now()
    return (*copies(earlier, through, now), StepsReused(now, earlier.run_id, through))


def _has_begun(progress: Progress) -> bool:
    """True when steps after reading are there; a response may come to no statement at all."""
    return any((progress.reused, progress.statements, progress.context, progress.turns))


def _with_language(case: Case, sources: Sequence[Source]) -> Case:
    """A response too short to tell its language is taken to be in that of its sources."""
    if case.language != "und":
        return case
    known = [source.language for source in sources if source.language != "und"]
    return replace(case, language=max(set(known), key=known.count) if known else "en")


def _gathering(run: _Review) -> Gathering:
    return Gathering(
        run.case,
        run.resources.home,
        run.resources.settings,
        run.resources.embedder,
        run.roster.image_reader,
        (run.roster.spare or run.roster).image_reader,
        run.stop,
        run.now,
    )


def _search(run: _Review, store: Store, sources: Sequence[Source]) -> Search:
    resources = run.resources
    return Search(
        store,
        resources.embedder,
        sources,
        run.plan.passages,
        (run.roster.spare or run.roster).image_reader.name,
        resources.retriever is not None,
        run.stop,
        run.now,
    )


def _audit(run: _Review, sources: Sequence[Source]) -> AuditRun:
    """The audit of this run, with the sources for its tools to search."""
    resources, case = run.resources, run.case

    def search(query: str, count: int) -> Sequence[Passage]:
        """Tools work on threads of their own, and a connection stays on its own thread."""
        with open_store(resources.home) as store, store.reading():
            retriever = Retriever(store, resources.embedder, sources)
            return retriever.retrieve(query, case.language, count)

    return AuditRun(
        run.play,
        run.progress,
        lambda: view_of(case, run.progress, sources),
        resources.bench(case, run.stop),
        search if sources else None,
        run.plan.max_turns,
    )


def _without_verdict(run: _Review, error: ModelError) -> Iterator[Event]:
    """The end of a run whose agent, or budget, failed: unclear, with why; it can be resumed."""
    now = run.now()
    cause: Cause = "budget_reached" if isinstance(error, BudgetReached) else "agent_failed"
    verdict = Verdict("unclear", None, None, f"No verdict: {error}", cause, str(error))
    yield ProblemMet(now, run.progress.stage, str(error), cause=cause)
    yield RunFinished(now, verdict, run.progress.seconds(now), run.progress.cost)


def _conclude(run: _Review, seen: JudgeView) -> Iterator[Event]:
    """Label, spans, end."""
    progress, now = run.progress, run.now
    judgement = _needed(progress.judgement, "judgement")
    if progress.verdict is None:
        run.stop.check()
        yield LabelPredicted(now(), run.resources.classifier.verdict(judgement))
    verdict = _needed(progress.verdict, "label")
    ruled = frozenset((ruling.span.start, ruling.span.end) for ruling in progress.rulings)
    known = progress.words is not None
    held = progress.memory.items()
    aside = [
        progress.statements[i] for i, m in held if not m.is_checkable or m.label != "hallucinated"
    ]
    yield from marked(
        run.play, seen, judgement, verdict, ruled, are_words_scored=known, aside=aside
    )
    end = now()
    yield RunFinished(end, verdict, progress.seconds(end), progress.cost)


def _needed(value: Value | None, what: str) -> Value:
    """The value that the stage before must have left."""
    if value is None:
        raise ModelError(f"The run has no {what} after the stage that makes it.")
    return value
