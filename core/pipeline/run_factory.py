"""Seats a run's agents by its plan and what people taught, and reuses an earlier run's steps.

The engine, the encoder and litellm are loaded where a run needs them: a page that starts none opens
sooner. A finished run spares the one that checks its case again those steps whose inputs are the
same; reading is kept by content in the store anyway.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.baseline.entailment import reader_in_use
from core.llm.keys import Keys
from core.runtime.concurrency import Stop
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ConfigError, KeyMissing
from core.schema.events import AUDIT, Event, PersonSpoke
from core.schema.progress import Progress
from core.schema.records import (
    CONSENSUS,
    EXAMPLES,
    MEMBER,
    THRESHOLD,
    Case,
    LearnedMarks,
    Plan,
    Run,
    SpanExample,
    SpanThreshold,
    examples_from,
    fitting_examples,
    members_from,
    threshold_from,
)
from core.schema.roles import CaseView
from core.schema.rosters import RosterConfig, judge_prompt
from core.store import Store, open_store
from core.store.cases import fingerprint
from core.store.versions import NONE, Learned, read_body

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext
    from core.baseline.assessment import Assessor
    from core.llm.encoder import Embedder
    from core.pipeline.review import Resources
    from core.pipeline.tool_context import MakeAsker
    from core.schema.roles import Roster

Through = Literal["statements", "judgement"]
DEBATE = (
    "passages_found", "context_built", "debate_noted", "turn_started", "turn_finished",
    "consensus_reached", "round_summarised", "debate_decided", "judgement_sampled",
    "consensus_weighed", "response_revised",
)  # fmt: skip
STEPS: dict[Through, frozenset[str]] = {
    "statements": frozenset({"statement_found"}),
    "judgement": frozenset({"statement_found", *DEBATE, "judgement_reached"}),
}


@dataclass(frozen=True)
class Earlier:
    """The finished run that is checked again, with its events."""

    run_id: str
    events: tuple[Event, ...]


def reusable(before: Progress, now: Progress, read_at: Mapping[str, float]) -> Through | None:
    """The last step of `before` whose inputs are those of `now`, which has read its sources.

    `read_at` says when each source's reading was made: one made since `before` looked at it may
    hold another text.
    """
    if before.case is None or now.case is None or now.plan is None:
        return None
    if not before.code or before.code != now.code or _asked(before) != _asked(now):
        return None
    used = before.documents | before.images
    same_sources = _sources(before) == _sources(now) and all(
        i in read_at and read_at[i] <= event.at for i, event in used.items()
    )
    # An audit's tools answer from beyond the run's inputs, and nobody says the same again.
    is_repeatable = now.plan.protocol != AUDIT and not before.remarks
    is_weighed = before.weighed is not None
    is_same_cast = _cast(before, is_weighed=is_weighed) == _cast(now, is_weighed=is_weighed)
    if same_sources and is_same_cast and is_repeatable:
        return "judgement"
    # A response too short to tell its language takes that of its sources.
    return "statements" if same_sources or now.case.language != "und" else None


def copies(earlier: Earlier, through: Through, now: float) -> Iterator[Event]:
    """The earlier run's events of these steps as of now: they take no time and cost nothing."""
    finished = {e.turn.number for e in earlier.events if e.kind == "turn_finished"}
    started: set[int] = set()
    for event in earlier.events:
        if event.kind not in STEPS[through]:
            continue
        if event.kind == "turn_started":
            if event.number in started or event.number not in finished:
                continue  # cut off, and begun anew when that run was resumed
            started.add(event.number)
        if event.kind in ("turn_finished", "judgement_sampled", "judgement_reached"):
            yield replace(event, at=now, seconds=0.0, cost=0.0)
        else:
            yield replace(event, at=now)


def code_digest() -> str:
    """Names the program as it lies on disk: rules live in code, and another rule reads otherwise.

    Taken once, when the engine is loaded: later the disk may hold another program. Everything in
    `core` counts, and the pinned packages: too much is only done anew once.
    """
    files = [p for p in (PROJECT_ROOT / "core").rglob("*") if p.suffix in (".py", ".json")]
    whole = hashlib.sha256()
    for path in sorted([*files, PROJECT_ROOT / "requirements.txt"]):
        whole.update(hashlib.sha256(path.read_bytes()).digest())
    return whole.hexdigest()


def _asked(progress: Progress) -> tuple[object, ...]:
    """What statements are cut from, and who cuts."""
    names = ("response", "question", "role", "instruction", "language")
    segmenter = [used for used in progress.roles if used.role == "segmenter"]
    return *(getattr(progress.case, name) for name in names), segmenter


def _sources(progress: Progress) -> tuple[object, ...]:
    """The case's sources in order, and what came of each: names are quoted in the debate.

    An agent's failure in the earlier debate counts too: another check should try again.
    """
    case = progress.case
    texts = {i: event.text for i, event in progress.images.items()}
    failed = {(problem.source_id, problem.message) for problem in progress.problems}
    return case and (case.documents, case.images), progress.source_names, texts, failed


def _cast(progress: Progress, *, is_weighed: bool) -> tuple[object, ...]:
    """Who plays which role under which rules, and the plan up to the label.

    Spans are always proposed and ruled upon anew, so who marks them, and what people's marks have
    taught them since, is no matter here; nor are weights of debaters where nobody weighed them.
    """
    roles = tuple(used for used in progress.roles if not used.role.startswith("span "))
    plan = progress.plan
    if plan is not None:
        plan = replace(plan, classifier="", span_threshold=0, span_examples=0, span_member=0)
        plan = plan if is_weighed else replace(plan, agent_weights=0)
    return roles, plan


def as_learned(store: Store, project_id: str, plan: Plan) -> Plan:
    """The plan with what is in use now. Raises ConfigError: that is not as it was learned."""

    def number(kind: str) -> int:
        found = store.learned.in_use(kind, project_id)
        return found.number if found else NONE

    return replace(
        plan,
        classifier=plan.classifier or store.versions.active(),
        reader=plan.reader or reader_in_use(store),
        span_threshold=number(THRESHOLD),
        span_examples=number(EXAMPLES),
        span_member=number(MEMBER),
        agent_weights=number(CONSENSUS),
    )


def learned_marks(store: Store, run: Run) -> LearnedMarks:
    """What people's marks had taught when the run was planned. Raises ConfigError: that is gone."""
    plan = run.plan
    threshold = _learned(store, run, THRESHOLD, plan.span_threshold)
    examples = _learned(store, run, EXAMPLES, plan.span_examples)
    member = _learned(store, run, MEMBER, plan.span_member)
    case = store.cases.get(run.case_id) if examples else None
    chosen: tuple[SpanExample, ...] = ()
    if examples is not None and case is not None:
        own = fingerprint(case.response, case.question)
        chosen = fitting_examples(read_body(examples, examples_from), case.language, own)
    marks = SpanThreshold()
    if threshold:
        marks = read_body(threshold, partial(threshold_from, threshold.number))
    alone = read_body(member, members_from) if member else ()
    return LearnedMarks(marks, chosen, plan.span_examples, alone)


def _learned(store: Store, run: Run, kind: str, number: int) -> Learned | None:
    found = store.learned.get(number) if number != NONE else None
    is_there = found is not None and (found.kind, found.project_id) == (kind, run.project_id)
    if number != NONE and not is_there:
        raise ConfigError(
            f"Expected {kind} number {number}, with which this run began, found none here; check "
            "the case again, and it goes by what is in use now."
        )
    return found


FROM_MEMORY = (
    "There is no source that speaks of it: the models argue from what they know, which is what is "
    "in question. Add a document before you rely on the verdict."
)


@dataclass(frozen=True)
class Payer:
    """Who started or resumed a run: the spending is theirs, and so are the keys they typed."""

    by: str
    keys: Keys


@dataclass(frozen=True)
class Staff:
    """The agents of one run with what they work with; `require_room` refuses too long a case."""

    roster: Roster
    resources: Resources
    require_room: Callable[[Case], None] | None = None

    def review(
        self,
        case: Case,
        plan: Plan,
        stop: Stop,
        *,
        past: Sequence[Event],
        earlier: Earlier | None,
        is_arriving: bool = False,
        heard: Callable[[], tuple[PersonSpoke, ...]] = tuple,
    ) -> Iterator[tuple[Event, ...]]:
        """The run's events as they are to be stored; all is as `review_to_store` says.

        Raises:
            InputError: at once, where no window of a model takes the questions about the case.
        """
        from core.pipeline.review import review_to_store

        if self.require_room and not is_arriving:
            self.require_room(case)
        return review_to_store(
            *(case, plan, self.roster, self.resources, stop),
            past=past,
            earlier=earlier,
            is_arriving=is_arriving,
            heard=heard,
        )


def require_keys(plan: Plan, keys: Keys) -> None:
    """Raise KeyMissing, with all names, before anything is stored or sent without its keys."""
    seats = plan.sheet.seats() if plan.sheet else ()
    missing = dict.fromkeys(
        name for _, seat in seats if not seat.is_built_in for name in keys.missing_for(seat)
    )
    if missing:
        names = ", ".join(missing)
        raise KeyMissing(
            f"Expected a key for {plan.roster}, found none: set {names} in the environment or in "
            ".streamlit/secrets.toml, or type it on the page for this session.",
            names=tuple(missing),
        )


def staffed(
    store: Store,
    home: Path,
    run: Run,
    payer: Payer,
    roster: Roster | None,
    *,
    sources: Path | None = None,
) -> Staff:
    """The agents that the run's plan names; `roster` is what a test or demo seats instead.

    Ledger, prompts and classifier are the home's; so are the sources, unless they lie elsewhere.

    Raises:
        KeyMissing: a key that the run needs is not at hand (any more).
        ConfigError: the encoder, the classifier or what was learned cannot be loaded.
    """
    from core.agents.rosters import roster_named
    from core.baseline.entailment import SHIPPED, assessor_of
    from core.baseline.export import load_multilingual_encoder
    from core.pipeline.review import Resources
    from core.pipeline.tool_context import bench_maker
    from core.verdict.classifier import load_classifier
    from core.verdict.consensus_weights import with_weigher

    learned = learned_marks(store, run)
    assessor = assessor_of(home, run.plan.reader)
    models = None
    if roster is None and run.plan.sheet is not None:
        models = _with_models(
            store, home, run, payer, learned, assessor, run.plan.sheet, sources or home
        )
        roster = models.roster
    roster = roster or roster_named(run.plan.roster, learned.threshold, assessor)
    ask = models.ask if models else None
    resources = Resources(
        sources or home,
        store.projects.settings(),
        load_multilingual_encoder(),
        load_classifier(home, run.plan.classifier),
        time.time,
        models.retriever if models else None,
        # Rows that are measured go nowhere.
        bench_maker(store, home, run.id, payer.keys, ask, has_web=sources is None),
        "" if run.plan.reader in ("", SHIPPED) else assessor.id,
        models.why_unfit if models else Resources.why_unfit,
    )
    require_room = models.require_room if models else None
    return Staff(with_weigher(roster, store, run), resources, require_room)


@dataclass(frozen=True)
class _Models:
    """A sheet's agents, its embedding model if it has one, and what its tools ask.

    `require_room` refuses too long a case; `why_unfit` is that of `Resources`.
    """

    roster: Roster
    retriever: Embedder | None
    ask: MakeAsker | None
    require_room: Callable[[Case], None]
    why_unfit: Callable[[Stop], str]


def _with_models(
    store: Store,
    home: Path,
    run: Run,
    payer: Payer,
    learned: LearnedMarks,
    assessor: Assessor,
    sheet: RosterConfig,
    sources: Path,
) -> _Models:
    from core.agents.agent_runner import AgentContext
    from core.agents.rosters import seated
    from core.agents.transcript import notices
    from core.debate.protocols import manners_of, require_room, seated_for, writing_of
    from core.llm.client import ModelClient
    from core.llm.encoder import LlmEmbedder
    from core.llm.limits import Caps
    from core.llm.metering import Account, MeteredClient
    from core.llm.prompting import Fence, PromptBook
    from core.pipeline.tool_context import asker_of

    plan = run.plan
    if kept := store.rosters.get(sheet.name):
        # A window is no choice of the run's but a fact that people put right: Resume goes on.
        sheet = sheet.with_windows_of(kept)
    sheet = seated_for(plan, sheet)
    require_keys(plan, payer.keys)
    desk = MeteredClient(
        ModelClient(payer.keys),
        home,
        Account(run.id, payer.by, run.project_id),
        Caps.of(store.projects.settings(), plan.token_cap, plan.cent_cap),
        time.time,
        reuses=plan.reuses_replies,
    )
    book, fence = PromptBook(store.prompt_edits.of_project(run.project_id)), Fence.of_run(run.id)
    manners, asked = manners_of(plan)
    work = AgentContext(
        *(desk, book, fence, sources),
        learned=learned,
        manners=manners,
        judging=tuple(judge_prompt(manner) for manner in asked),
        writing=writing_of(plan),
        assessor=assessor,
    )

    def warn(view: CaseView) -> tuple[str, ...]:
        return notices(view) if view.evidence.passages else (FROM_MEMORY, *notices(view))

    roster = seated(sheet, work)
    if not roster.is_deterministic:
        roster = replace(roster, notes_made=work.notes.drain, notices=warn)
    seat = sheet.retriever
    retriever = None if seat.is_built_in else LlmEmbedder(seat, payer.keys, desk)
    ask = asker_of(sheet.tool_picker, work)
    return _Models(
        roster,
        retriever,
        ask,
        require_room=lambda case: require_room(plan, sheet, case, book),
        why_unfit=lambda stop: _why_unfit(home, run, sheet, work, stop),
    )


def _why_unfit(home: Path, run: Run, sheet: RosterConfig, work: AgentContext, stop: Stop) -> str:
    """Why a model that decides the run failed its test; empty where none is known to have failed.

    The model in the box is tested here, once; others are tested in Settings, for it may cost.
    """
    from core.agents.qualification import (
        NEEDED,
        load_qualification,
        qualification_key,
        qualify_model,
        save_qualification,
        trusted_by,
    )
    from core.debate.protocols import deciding_seats
    from core.llm.call import provider_of
    from core.llm.local_server import PROVIDER

    for seat in deciding_seats(run.plan, sheet):
        key = qualification_key(seat, work.book)
        with open_store(home) as store:
            result = load_qualification(store, key)
            trusted = trusted_by(store, run.project_id, key)
        if trusted:
            continue
        if result is None and provider_of(seat) == PROVIDER:
            result = qualify_model(seat, work, stop, time.time())
            with open_store(home) as store, store.writing():
                save_qualification(store, key, result)
        if result is not None and not result.has_passed:
            return (
                f"{seat.model.split('/', 1)[-1]} failed its test as a judge: {result.words}, "
                f"{NEEDED} are needed. Read what it says, but do not rely on it."
            )
    return ""


def earlier_of(store: Store, run: Run, lease: float) -> Earlier | None:
    """The run that is checked again, if it finished; what a trace file says is not trusted."""
    parent = store.runs.get(run.parent_id, time.time(), lease) if run.parent_id else None
    if parent is None or parent.status != "finished" or parent.origin != "here":
        return None
    return Earlier(parent.id, tuple(event for _, event in store.runs.events(parent.id)))
