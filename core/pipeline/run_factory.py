"""Build a run's agents from its plan and what was learned, and reuse an earlier run's steps.

The engine, the encoder and litellm are loaded where a run needs them: pages that start no run open
sooner. A run that checks a case again reuses those steps of the finished run whose inputs are the
same; readings are kept by content in the store anyway.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from core.baseline.entailment import load_reader_choice
from core.llm.keys import Keys
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT
from core.runtime.errors import ConfigError, KeyMissing
from core.schema.events import AUDIT, Event, PersonSpoke
from core.schema.records import (
    CONSENSUS_KIND,
    EXAMPLES_KIND,
    MEMBER_KIND,
    THRESHOLD_KIND,
    Case,
    LearnedMarks,
    Plan,
    Run,
    SpanExample,
    SpanThresholds,
    choose_examples,
    parse_examples,
    parse_members,
    parse_thresholds,
)
from core.schema.roles import CaseView
from core.schema.rosters import RosterConfig, get_judge_prompt_name
from core.schema.run_state import RunState
from core.store import Store, open_store
from core.store.cases import compute_fingerprint
from core.store.versions import NOTHING_LEARNED, LearnedArtefact, parse_body

if TYPE_CHECKING:
    from core.agents.agent_runner import AgentContext
    from core.baseline.assessment import Assessor
    from core.llm.call import CallUnderWay
    from core.llm.encoder import Embedder
    from core.llm.prompting import PromptBook
    from core.pipeline.review import ReviewResources
    from core.pipeline.tool_context import AskerFactory
    from core.schema.roles import Roster

ReusedThrough = Literal["statements", "judgement"]
DEBATE_KINDS = (
    "passages_found", "context_built", "debate_noted", "turn_started", "turn_finished",
    "consensus_reached", "round_summarised", "debate_decided", "judgement_sampled",
    "consensus_weighed", "response_revised",
)  # fmt: skip
STEP_KINDS: dict[ReusedThrough, frozenset[str]] = {
    "statements": frozenset({"statement_found"}),
    "judgement": frozenset({"statement_found", *DEBATE_KINDS, "judgement_reached"}),
}

NO_SOURCE_NOTICE = (
    "There is no source that speaks of it: the models argue from what they know, which is what is "
    "in question. Add a document before you rely on the verdict."
)


@dataclass(frozen=True)
class EarlierRun:
    """The finished run that is checked again, with its events."""

    run_id: str
    events: tuple[Event, ...]


def find_reusable_step(
    before: RunState, now: RunState, read_at: Mapping[str, float]
) -> ReusedThrough | None:
    """Return the last step of `before` with the same inputs as `now`, which has read its sources.

    `read_at` says when each source's reading was made: a reading made after `before` used the
    source may hold another text.
    """
    if before.case is None or now.case is None or now.plan is None:
        return None
    if (
        not before.code
        or before.code != now.code
        or _segmentation_inputs(before) != _segmentation_inputs(now)
    ):
        return None
    sources = before.documents | before.images
    same_sources = _source_inputs(before) == _source_inputs(now) and all(
        i in read_at and read_at[i] <= event.at for i, event in sources.items()
    )
    # An audit's tools use more than the run's inputs, and people do not repeat their remarks.
    is_repeatable = now.plan.protocol != AUDIT and not before.remarks
    is_weighed = before.weighed is not None
    is_same_cast = _debate_inputs(before, is_weighed=is_weighed) == _debate_inputs(
        now, is_weighed=is_weighed
    )
    if same_sources and is_same_cast and is_repeatable:
        return "judgement"
    # A response too short for language detection takes the language of its sources.
    return "statements" if same_sources or now.case.language != "und" else None


def copy_steps(earlier: EarlierRun, through: ReusedThrough, now: float) -> Iterator[Event]:
    """Yield the earlier run's events of these steps, dated now, with no time and no cost."""
    finished = {e.turn.number for e in earlier.events if e.kind == "turn_finished"}
    started: set[int] = set()
    for event in earlier.events:
        if event.kind not in STEP_KINDS[through]:
            continue
        if event.kind == "turn_started":
            if event.number in started or event.number not in finished:
                continue  # cut off, and started again when that run was resumed
            started.add(event.number)
        if event.kind in ("turn_finished", "judgement_sampled", "judgement_reached"):
            yield replace(event, at=now, seconds=0.0, cost=0.0)
        else:
            yield replace(event, at=now)


def compute_code_digest() -> str:
    """Return a digest of the program on disk: rules are code, so other code may read differently.

    Computed once, when the engine is loaded: later the disk may hold another program. All of `core`
    counts, and the pinned packages: at worst a step is repeated needlessly.
    """
    return digest_program(PROJECT_ROOT, lambda _: True)


def digest_program(root: Path, is_part: Callable[[Path], bool]) -> str:
    """Return a digest of the names and contents of those files of `core`, and of the packages."""
    digest = hashlib.sha256()
    for path in sorted([*(root / "core").rglob("*"), root / "requirements.txt"]):
        if path.is_file() and path.suffix != ".pyc" and is_part(path):
            digest.update(str(path.relative_to(root)).encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _segmentation_inputs(progress: RunState) -> tuple[object, ...]:
    """Return the texts that statements are cut from, and the segmenter."""
    names = ("response", "question", "role", "instruction", "language")
    segmenter = [used for used in progress.roles if used.role == "segmenter"]
    return *(getattr(progress.case, name) for name in names), segmenter


def _source_inputs(progress: RunState) -> tuple[object, ...]:
    """Return the case's sources in order, with their texts and names, which debaters quote.

    Failures of agents in the earlier debate count too: another check should try again.
    """
    case = progress.case
    texts = {i: event.text for i, event in progress.images.items()}
    failures = {(problem.source_id, problem.message) for problem in progress.problems}
    return case and (case.documents, case.images), progress.source_names, texts, failures


def _debate_inputs(progress: RunState, *, is_weighed: bool) -> tuple[object, ...]:
    """Return the agents with their rules, and the plan up to the label.

    Spans are always proposed and decided anew, so the agents that mark them, and what corrections
    have taught them since, do not matter here; nor do debaters' weights if nobody weighed the
    debaters.
    """
    roles = tuple(used for used in progress.roles if not used.role.startswith("span "))
    plan = progress.plan
    if plan is not None:
        plan = replace(plan, classifier="", span_threshold=0, span_examples=0, span_member=0)
        plan = plan if is_weighed else replace(plan, agent_weights=0)
    return roles, plan


def apply_learned(store: Store, project_id: str, plan: Plan) -> Plan:
    """Return the plan with what is in use now. Raises ConfigError: its checksum does not match."""

    def number(kind: str) -> int:
        in_use = store.learned.in_use(kind, project_id)
        return in_use.number if in_use else NOTHING_LEARNED

    return replace(
        plan,
        classifier=plan.classifier or store.versions.active(),
        reader=plan.reader or load_reader_choice(store),
        span_threshold=number(THRESHOLD_KIND),
        span_examples=number(EXAMPLES_KIND),
        span_member=number(MEMBER_KIND),
        agent_weights=number(CONSENSUS_KIND),
    )


def load_learned_marks(store: Store, run: Run, case: Case | None) -> LearnedMarks:
    """Load what span agents had learned when the run was planned, with examples for its case.

    Raises ConfigError: not found.
    """
    plan = run.plan
    threshold = _load_learned(store, run, THRESHOLD_KIND, plan.span_threshold)
    examples = _load_learned(store, run, EXAMPLES_KIND, plan.span_examples)
    member = _load_learned(store, run, MEMBER_KIND, plan.span_member)
    chosen: tuple[SpanExample, ...] = ()
    if examples is not None and case is not None:
        case_fingerprint = compute_fingerprint(case.response, case.question)
        chosen = choose_examples(
            parse_body(examples, parse_examples), case.language, case_fingerprint
        )
    thresholds = SpanThresholds()
    if threshold:
        thresholds = parse_body(threshold, partial(parse_thresholds, threshold.number))
    alone = parse_body(member, parse_members) if member else ()
    return LearnedMarks(thresholds, chosen, plan.span_examples, alone)


def _load_learned(store: Store, run: Run, kind: str, number: int) -> LearnedArtefact | None:
    learned = store.learned.get(number) if number != NOTHING_LEARNED else None
    exists = learned is not None and (learned.kind, learned.project_id) == (kind, run.project_id)
    if number != NOTHING_LEARNED and not exists:
        raise ConfigError(
            f"Expected {kind} number {number}, with which this run began, found none here; check "
            "the case again, and it goes by what is in use now."
        )
    return learned


@dataclass(frozen=True)
class RunPayer:
    """The person who started or resumed a run: they pay for it, with the keys they typed."""

    by: str
    keys: Keys


@dataclass(frozen=True)
class RunAgents:
    """A run's agents and resources; `require_room` refuses too long a case."""

    roster: Roster
    resources: ReviewResources
    require_room: Callable[[Case], None] | None = None

    def review(
        self,
        case: Case,
        plan: Plan,
        stop: StopSignal,
        *,
        past: Sequence[Event],
        earlier: EarlierRun | None,
        is_arriving: bool = False,
        heard: Callable[[], tuple[PersonSpoke, ...]] = tuple,
    ) -> Iterator[tuple[Event, ...]]:
        """Return the run's events as they are to be stored; parameters as for `run_review`.

        Raises:
            InputError: at once, if a model's window cannot hold the questions about the case.
        """
        from core.pipeline.review import run_review

        if self.require_room and not is_arriving:
            self.require_room(case)
        return run_review(
            case,
            plan,
            self.roster,
            self.resources,
            stop,
            past=past,
            earlier=earlier,
            is_arriving=is_arriving,
            heard=heard,
        )


def require_keys(plan: Plan, keys: Keys) -> None:
    """Raise KeyMissing, naming all missing keys, before anything is stored or sent."""
    seats = plan.sheet.agents_by_role() if plan.sheet else ()
    missing = dict.fromkeys(
        name for _, agent in seats if not agent.is_built_in for name in keys.missing_for(agent)
    )
    if missing:
        names = ", ".join(missing)
        raise KeyMissing(
            f"Expected a key for {plan.roster}, found none: set {names} in the environment or in "
            ".streamlit/secrets.toml, or type it on the page for this session.",
            names=tuple(missing),
        )


def build_run_agents(
    store: Store,
    home: Path,
    run: Run,
    payer: RunPayer,
    roster: Roster | None,
    *,
    case: Case | None = None,
    sources: Path | None = None,
    book: PromptBook | None = None,
    under_way: list[CallUnderWay] | None = None,
) -> RunAgents:
    """Build the agents that the run's plan names; `roster` replaces them in a test or demo.

    Ledger and classifier are the home's, and prompts the project's, unless there is another `book`.
    So are the sources, unless `sources` is another folder: then the run is only measured, and takes
    no other run's replies unless its plan says so. Without a `case` no examples are chosen. Calls
    are listed in `under_way` while models answer them.

    Raises:
        KeyMissing: a key that the run needs is not at hand (any more).
        ConfigError: the encoder, the classifier or what was learned cannot be loaded.
    """
    from core.agents.rosters import make_built_in_roster
    from core.baseline.encoder import load_multilingual_encoder
    from core.baseline.entailment import SHIPPED_READER, load_assessor
    from core.llm.prompting import PromptBook
    from core.pipeline.review import ReviewResources
    from core.pipeline.tool_context import make_context_factory
    from core.verdict.classifier import load_classifier
    from core.verdict.consensus_weights import add_weigher

    marks = load_learned_marks(store, run, case)
    assessor = load_assessor(home, run.plan.reader)
    models = None
    if roster is None and run.plan.sheet is not None:
        models = _build_llm_roster(
            store,
            home,
            run,
            payer,
            marks,
            assessor,
            run.plan.sheet,
            sources,
            book or PromptBook(store.prompt_edits.of_project(run.project_id)),
            under_way=[] if under_way is None else under_way,
        )
        roster = models.roster
    roster = roster or make_built_in_roster(run.plan.roster, marks.threshold, assessor)
    ask = models.ask if models else None
    resources = ReviewResources(
        home=sources or home,
        settings=store.projects.settings(),
        encoder=load_multilingual_encoder(),
        classifier=load_classifier(home, run.plan.classifier),
        now=time.time,
        retriever=models.retriever if models else None,
        # Data sets that are only measured are not sent to the web.
        tool_context=make_context_factory(
            store, home, run.id, payer.keys, ask, has_web=sources is None
        ),
        reader_id="" if run.plan.reader in ("", SHIPPED_READER) else assessor.id,
        why_disqualified=models.why_disqualified if models else ReviewResources.why_disqualified,
    )
    require_room = models.require_room if models else None
    return RunAgents(add_weigher(roster, store, run), resources, require_room)


@dataclass(frozen=True)
class _LlmRoster:
    """A roster of language models, its embedding model if any, and what its tools ask.

    `require_room` refuses too long a case; `why_disqualified` is that of `ReviewResources`.
    """

    roster: Roster
    retriever: Embedder | None
    ask: AskerFactory | None
    require_room: Callable[[Case], None]
    why_disqualified: Callable[[StopSignal], str]


def _build_llm_roster(
    store: Store,
    home: Path,
    run: Run,
    payer: RunPayer,
    learned: LearnedMarks,
    assessor: Assessor,
    roster_config: RosterConfig,
    sources: Path | None,
    book: PromptBook,
    *,
    under_way: list[CallUnderWay],
) -> _LlmRoster:
    from core.agents.agent_runner import AgentContext
    from core.agents.rosters import build_roster
    from core.agents.transcript import find_injection_notices
    from core.debate.protocols import (
        assign_judge,
        list_modes,
        list_writing_prompts,
        require_context_window,
    )
    from core.llm.client import ModelClient
    from core.llm.encoder import LlmEmbedder
    from core.llm.limits import SpendingCaps
    from core.llm.metering import CallAccount, MeteredClient
    from core.llm.prompting import Fence
    from core.pipeline.tool_context import make_asker_factory

    plan = run.plan
    if saved := store.rosters.get(roster_config.name):
        # A context window is a fact, not a choice of the run: use a corrected value on Resume.
        roster_config = roster_config.with_windows_of(saved)
    roster_config = assign_judge(plan, roster_config)
    require_keys(plan, payer.keys)
    settings = store.projects.settings()
    client = MeteredClient(
        ModelClient(payer.keys, requests_per_second=settings.requests_per_second),
        home,
        CallAccount(run.id, payer.by, run.project_id),
        SpendingCaps.of(settings, plan.token_cap, plan.cent_cap),
        time.time,
        reuses=plan.reuses_replies,
        is_fresh=sources is not None and not plan.reuses_replies,
    )
    turn_modes, judge_modes = list_modes(plan)
    context = AgentContext(
        client,
        book,
        Fence.of_run(run.id),
        sources or home,
        learned=learned,
        turn_prompts=turn_modes,
        judge_prompts=tuple(map(get_judge_prompt_name, judge_modes)),
        writing=list_writing_prompts(plan),
        assessor=assessor,
        under_way=under_way,
    )

    def warn(view: CaseView) -> tuple[str, ...]:
        return (
            find_injection_notices(view)
            if view.evidence.passages
            else (NO_SOURCE_NOTICE, *find_injection_notices(view))
        )

    roster = build_roster(roster_config, context)
    if not roster.is_deterministic:
        roster = replace(roster, notes_made=context.notes.drain, notices=warn)
    agent = roster_config.retriever
    return _LlmRoster(
        roster=roster,
        retriever=None if agent.is_built_in else LlmEmbedder(agent, payer.keys, client),
        ask=make_asker_factory(roster_config.tool_picker, context),
        require_room=lambda case: require_context_window(plan, roster_config, case, book),
        why_disqualified=lambda stop: _explain_disqualification(
            home, run, roster_config, context, stop
        ),
    )


def _explain_disqualification(
    home: Path, run: Run, roster_config: RosterConfig, context: AgentContext, stop: StopSignal
) -> str:
    """Say which model that decides the run failed the judge test; empty where none has.

    The model in the box is tested here, once; others are tested in Settings, as that may cost.
    """
    from core.agents.qualification import (
        MIN_RIGHT_ANSWERS,
        load_standing,
        qualify_model,
        save_qualification,
    )
    from core.debate.protocols import list_deciding_agents

    for agent in list_deciding_agents(run.plan, roster_config):
        with open_store(home) as store:
            standing = load_standing(store, run.project_id, agent, context.book)
        if standing.is_tested_in_runs:
            result = qualify_model(agent, context, stop, time.time())
            with open_store(home) as store, store.writing():
                save_qualification(store, agent, result)
            standing = replace(standing, result=result)
        if not standing.may_decide:
            return (
                f"{agent.model.split('/', 1)[-1]} failed the judge test: {standing.words}; "
                f"{MIN_RIGHT_ANSWERS} are needed. Read what it says, but do not rely on it."
            )
    return ""


def load_earlier_run(store: Store, run: Run, lease: float) -> EarlierRun | None:
    """Return the run that is checked again if it finished here; trace files are not trusted."""
    parent = store.runs.get(run.parent_id, time.time(), lease) if run.parent_id else None
    if parent is None or parent.status != "finished" or parent.origin != "here":
        return None
    return EarlierRun(parent.id, tuple(event for _, event in store.runs.events(parent.id)))
