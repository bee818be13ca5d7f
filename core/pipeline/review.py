"""Checks a case; this module alone defines the order of the stages.

`run_review` is a synchronous generator of events. It skips what earlier events already
contain: an interrupted run is resumed by passing its events as `past`. Source: CEDA 3.1, 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from core.agents.agent_runner import RunContext, drain_calls, segment_response
from core.debate.protocols import find_protocol
from core.debate.state import DebateState, build_judge_view, report_notices
from core.documents.library import GatherJob, gather_sources, load_sources, report_missing_sources
from core.documents.retrieval import Retriever, build_description_passages, map_description_texts
from core.documents.segmentation import describe_language_gap, detect_prose_language
from core.llm.encoder import Embedder
from core.pipeline.audit_stage import AuditRun, build_marking_view, check_statements, run_audit
from core.pipeline.run_factory import (
    EarlierRun,
    compute_code_digest,
    copy_steps,
    find_reusable_step,
)
from core.pipeline.span_stage import mark_spans
from core.runtime.concurrency import StopSignal
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
from core.schema.records import Case, Passage, Plan, Source, UnclearCause, Verdict, hash_rule
from core.schema.roles import CaseView, Evidence, ImageReader, JudgeView, Roster
from core.schema.run_state import RunState, fold_events
from core.store import open_store
from core.tools.registry import ToolContext
from core.verdict.classifier import Classifier

CODE_DIGEST = compute_code_digest()[:12]
RemarkSource = Callable[[], tuple[PersonSpoke, ...]]


def build_case_view(case: Case, progress: RunState, sources: Sequence[Source]) -> CaseView:
    """Return the case with its evidence, and only those sources that contain any of it."""
    by_statement = {i: tuple(p.id for p in passages) for i, passages in progress.passages.items()}
    evidence = Evidence(progress.evidence, by_statement)
    used = {passage.source_id for passage in evidence.passages.values()}
    texts = {s.id: s.text for s in sources} | map_description_texts(progress.images)
    return CaseView(
        case=case,
        statements=tuple(s for _, s in sorted(progress.statements.items())),
        evidence=evidence,
        sources={i: text for i, text in texts.items() if i in used},
        unreadable_images=progress.unreadable_images,
    )


@dataclass(frozen=True)
class ReviewResources:
    """The resources of a review; each thread opens the store for itself.

    `encoder` is the built-in agents' own; `tool_context` is what tools may use beside the sources;
    `reader_id` is that of an imported reader (the shipped one is part of the program).
    `why_disqualified` says which model that decides failed the judge test, and is empty where none
    has.
    """

    home: Path
    settings: Settings
    encoder: Embedder
    classifier: Classifier
    now: Callable[[], float]
    retriever: Embedder | None = None
    tool_context: Callable[[Case, StopSignal], ToolContext] = lambda _, stop: ToolContext(stop)
    reader_id: str = ""
    why_disqualified: Callable[[StopSignal], str] = lambda _: ""

    @property
    def embedder(self) -> Embedder:
        """The embedder of passages (CEDA's agent A): the roster's, else the built-in encoder."""
        return self.retriever or self.encoder


@dataclass(frozen=True)
class _Review:
    """A run in progress: its inputs, and the state built up from its events."""

    case: Case
    plan: Plan
    roster: Roster
    resources: ReviewResources
    stop: StopSignal
    progress: RunState
    earlier: EarlierRun | None
    is_arriving: bool = False
    heard: RemarkSource = tuple

    @property
    def now(self) -> Callable[[], float]:
        return self.resources.now

    @property
    def play(self) -> RunContext:
        return RunContext(self.roster, self.stop, self.now)

    @property
    def image_reader(self) -> ImageReader:
        """The image reader that works without a model."""
        return (self.roster.spare or self.roster).image_reader

    @property
    def code(self) -> str:
        """The program that runs now; a resumed run may have begun under another."""
        return f"{CODE_DIGEST} {self.resources.embedder.id} {self.resources.reader_id}".rstrip()


def run_review(
    case: Case,
    plan: Plan,
    roster: Roster,
    resources: ReviewResources,
    stop: StopSignal,
    *,
    past: Sequence[Event] = (),
    earlier: EarlierRun | None = None,
    is_arriving: bool = False,
    heard: RemarkSource = tuple,
) -> Iterator[tuple[Event, ...]]:
    """Yield a run's events to its end as they are to be stored: those of a tuple all or none.

    `past` are the events that an earlier attempt stored. Steps with the same inputs as in
    `earlier`, the run that is checked again, are copied as one tuple: a part of them would look
    like the run's own. If the response `is_arriving`, the statements so far are checked, and
    nothing is concluded (CEDA 6). Every other run ends with `run_finished`, `run_stopped` or
    `run_failed`.
    """
    run = _Review(
        case, plan, roster, resources, stop, fold_events(past), earlier, is_arriving, heard
    )
    progress, now = run.progress, resources.now
    try:
        for item in _run_stages(run):
            events = item if isinstance(item, tuple) else (item,)
            for event in events:
                progress.add(event)
            yield events
    except Stopped:
        yield (*drain_calls(run.play), RunStopped(now()))
    except ModelError as error:
        yield (
            *drain_calls(run.play),
            *_finish_without_verdict(run, error, str(error), f"No verdict: {error}"),
        )
    except ReviewError as error:
        yield (*drain_calls(run.play), RunFailed(now(), progress.stage, str(error)))


def _finish_without_verdict(
    run: _Review, error: ReviewError, words: str, rationale: str
) -> tuple[Event, ...]:
    """Return a run's end whose verdict is unclear and says why; the run can be resumed."""
    at, progress = run.now(), run.progress
    cause: UnclearCause = "budget_reached" if isinstance(error, BudgetReached) else "agent_failed"
    verdict = Verdict("unclear", None, None, rationale, cause, words)
    problem = ProblemMet(at, progress.stage, words, cause=cause)
    return problem, RunFinished(at, verdict, progress.seconds(at), progress.cost)


def _run_stages(run: _Review) -> Iterator[Event | tuple[Event, ...]]:
    """Yield the events of all stages in order; each does only what is not done yet."""
    progress, resources = run.progress, run.resources
    if progress.case is None:
        roles = run.roster.roles_used(hash_rule)
        yield RunStarted(run.now(), run.case, run.plan, roles, run.code)
    gathering = GatherJob(
        run.case,
        resources.home,
        resources.settings,
        resources.embedder,
        run.roster.image_reader,
        run.image_reader,
        run.stop,
        run.now,
    )
    yield from gather_sources(gathering, progress.sources_read)
    # The snapshot ends before any event or model: as long as it lasts, the WAL file only grows.
    with open_store(resources.home) as store, store.reading():
        missing = list(report_missing_sources(gathering, store, progress.sources_read))
        found = progress.sources_read - {problem.source_id for problem in missing}
        sources = load_sources(store, run.case, found)
        read_at = {i: store.readings.read_at(i) for i in progress.sources_read}
        retriever = Retriever(store, resources.embedder, sources)
    yield from missing
    yield from _report_language_gap(run, sources)
    run = replace(run, case=_detect_language(run.case, sources))
    yield _reuse_steps(run, read_at)
    if progress.reused is None:
        yield from segment_response(run.play, run.case, progress.statements)
    yield from _search_sources(run, retriever, sources)
    if run.is_arriving:
        yield from check_statements(_build_audit(run, retriever, sources), with_whole=False)
        return
    if run.plan.protocol == AUDIT:
        audit = _build_audit(run, retriever, sources)
        yield from run_audit(audit)
        yield from _conclude(run, build_marking_view(audit))
        return
    view = build_case_view(run.case, progress, sources)
    state = DebateState(run.play, view, progress, run.plan, run.heard)
    if progress.judgement is None:
        yield from report_notices(state)
        yield from find_protocol(run.plan.protocol).argue(state)
    yield from _conclude(run, build_judge_view(state))


def _search_sources(
    run: _Review, retriever: Retriever, sources: Sequence[Source]
) -> Iterator[Event]:
    progress, case, resources = run.progress, run.case, run.resources
    unsearched = [s for i, s in sorted(progress.statements.items()) if i not in progress.passages]
    if not unsearched:
        return
    image_texts = build_description_passages(
        progress.images.values(), case.language, run.image_reader.name
    )
    queries = [f"{case.question} {statement.rewrite}".strip() for statement in unsearched]
    if resources.retriever is not None:  # a provider's embedder takes all queries in one call
        retriever.prepare(queries, run.stop)
    for count, (statement, query) in enumerate(zip(unsearched, queries, strict=True)):
        run.stop.check()
        yield ProgressMade(run.now(), "searching", "Searching the sources", count, len(unsearched))
        passages = retriever.retrieve(query, case.language, run.plan.passages)
        reason = "" if sources else "There is no source that could be searched."
        yield PassagesFound(run.now(), statement.index, (*passages, *image_texts), reason)


def _reuse_steps(run: _Review, read_at: Mapping[str, float]) -> tuple[Event, ...]:
    """Return the earlier run's steps with the same inputs; empty if that is not certain.

    `read_at` says when each source was read.
    """
    progress, earlier = run.progress, run.earlier
    has_begun = any((progress.reused, progress.statements, progress.context, progress.turns))
    if earlier is None or has_begun or not run.roster.is_deterministic:
        return ()
    previous = fold_events(earlier.events)
    through = find_reusable_step(previous, progress, read_at) if previous.code == run.code else None
    if through is None:
        return ()
    now = run.now()
    return (*copy_steps(earlier, through, now), StepsReused(now, earlier.run_id, through))


def _detect_language(case: Case, sources: Sequence[Source]) -> Case:
    """Give a response too short for language detection the language of its sources."""
    if case.language != "und":
        return case
    languages = [source.language for source in sources if source.language != "und"]
    return replace(case, language=max(set(languages), key=languages.count) if languages else "en")


def _report_language_gap(run: _Review, sources: Sequence[Source]) -> Iterator[Event]:
    """Yield a problem if the built-in engine would have to compare across languages."""
    if run.plan.sheet is not None:
        return
    named = [(s.name, detect_prose_language(s.text, s.language)) for s in sources]
    gap = describe_language_gap(detect_prose_language(run.case.response), named)
    if gap and all(problem.message != gap for problem in run.progress.problems):
        yield ProblemMet(run.now(), "reading", gap)


def _build_audit(run: _Review, retriever: Retriever, sources: Sequence[Source]) -> AuditRun:
    resources, case = run.resources, run.case

    def search(query: str, count: int) -> Sequence[Passage]:
        return retriever.retrieve(query, case.language, count)

    return AuditRun(
        run.play,
        run.progress,
        lambda: build_case_view(case, run.progress, sources),
        resources.tool_context(case, run.stop),
        search if sources else None,
        run.plan.max_turns,
    )


def _conclude(run: _Review, seen: JudgeView) -> Iterator[Event]:
    progress, now = run.progress, run.now
    if progress.judgement is None:
        raise ModelError("The run has no judgement after the stage that makes it.")
    verdict = progress.verdict
    if verdict is None:
        run.stop.check()
        verdict = run.resources.classifier.verdict(progress.judgement)
        if progress.judgement.label != "unclear":  # another classifier may make a label of it
            if not run.play.roster.is_deterministic:
                yield ProgressMade(now(), "judging", "Judge test: may this model decide?")
            try:
                why = run.resources.why_disqualified(run.stop)
            except Stopped:
                raise
            except ReviewError as error:  # what the judge said is kept, and counts for nothing
                yield from drain_calls(run.play)
                words = f"The judge test broke off, so no verdict counts. {error}"
                yield from _finish_without_verdict(run, error, words, verdict.rationale)
                return
            if why:
                by, said = verdict.classifier, verdict.rationale
                verdict = Verdict("unclear", None, None, said, "model_not_fit", why, by)
        yield from drain_calls(run.play)
        yield LabelPredicted(now(), verdict)
    aside = [
        progress.statements[index]
        for index, entry in progress.memory.items()
        if not entry.is_checkable or entry.label != "hallucinated"
    ]
    yield from mark_spans(run.play, seen, progress.judgement, verdict, progress, aside=aside)
    end = now()
    yield RunFinished(end, verdict, progress.seconds(end), progress.cost)
