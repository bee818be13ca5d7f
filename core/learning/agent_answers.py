"""What each agent said on decided cases, beside what people decided and the reasons they gave.

An agent is a name, its part in the run, its model and the digest of its prompts or rules: two
different models under one name are two agents. Source of the counts of reasons: ColMAD, figure 5b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from core.debate.protocols import assign_judge
from core.review.queue_ranking import collect_stances
from core.schema.events import AUDIT
from core.schema.records import Case, Label, Quote, Turn
from core.schema.reviews import EvidenceMark
from core.schema.run_state import RunState, fold_events
from core.store import Store
from core.store.ground_truth import UNANSWERED, GroundTruth
from core.store.queries import (
    CaseDecision,
    FinishedRun,
    RoleUsage,
    find_answered_runs,
    load_events,
    load_usage_by_role,
)
from core.verdict.consensus_weights import (
    Features,
    compute_answer_features,
    compute_debate_features,
)

MAX_DECIDED_RUNS = 4_000
RUNS_PER_QUERY = 500  # runs whose cases are looked up together
ANSWER_EVENT_KINDS = ("run_started", "statement_found", "turn_finished", "consensus_reached",
         "judgement_reached", "label_predicted", "run_finished")  # fmt: skip
LONG_RESPONSE_STATEMENTS = 4  # statements
VALUE_BY_LABEL: dict[Label, float] = {"hallucinated": 1.0, "supported": 0.0, "unclear": 0.5}
DEBATER, READER, JUDGE, CLASSIFIER = "debater", "reader", "judge", "classifier"
RunDecision = tuple[
    CaseDecision, tuple[str, ...], float | None, str, tuple[EvidenceMark, ...]
]  # as in `DecidedRun`
REASON_EVENT_KINDS = ("run_started", "statement_found", "passages_found", "turn_finished",
         "judgement_reached", "label_predicted", "run_finished")  # fmt: skip
MIN_COVERED_SHARE = 0.5  # share of a mark's characters
SourceRange = tuple[str, int, int]  # source, [start, end) in its text


@dataclass(frozen=True, order=True)
class SpeakingAgent:
    """An agent that spoke; `model` is empty if built in, `seat` only set to tell equals apart."""

    name: str
    part: str
    model: str = ""
    rules: str = ""
    seat: str = ""

    @property
    def key(self) -> str:
        """One text that is equal for the same agent only."""
        return "\x1f".join((self.name, self.part, self.model, self.rules, self.seat))


@dataclass(frozen=True)
class AgentAnswers:
    """What was said in a finished run: `last` and `opening` are each agent's last and first answer.

    Their numbers are as in `VoteMatrix.said`. `opener` spoke first. `seconds` run from start to
    end, `opening_seconds` to the end of the first turn. `answers` holds the features of debaters'
    answers.
    """

    run: FinishedRun
    form: str
    language: str
    has_image: bool
    has_documents: bool
    tool: str
    last: dict[SpeakingAgent, float]
    opening: dict[SpeakingAgent, float]
    opener: SpeakingAgent | None
    version: str
    features: Features
    seconds: float
    opening_seconds: float
    used: dict[str, RoleUsage] = field(default_factory=dict)
    answers: dict[SpeakingAgent, Features] = field(default_factory=dict)
    protocol: str = ""


@dataclass(frozen=True)
class DecidedRun:
    """A run with what people decided; `graded` is their rating of the response, 0 to 1, or None.

    `reason` and the marked `evidence` are of those whose answer counts for the case.
    """

    heard: AgentAnswers
    decision: CaseDecision
    categories: tuple[str, ...]
    graded: float | None
    reason: str
    evidence: tuple[EvidenceMark, ...]

    @property
    def is_wrong(self) -> bool:
        """True if people decided that the response is hallucinated."""
        return self.decision.label == "hallucinated"


AnswersByRun = MutableMapping[str, AgentAnswers]


def load_decided_runs(
    store: Store, project_id: str, known: AnswersByRun, *, most: int = MAX_DECIDED_RUNS
) -> list[DecidedRun]:
    """Return the newest finished runs of decided cases, newest first; `known` is a cache."""
    created_at = {version.id: version.created_at for version in store.versions.all()}
    taught_at = store.versions.taught_at()
    decided: dict[str, RunDecision | None] = {}
    rows: list[DecidedRun] = []
    for run, truth in _iter_decided(store, project_id):
        if run.case_id not in decided:
            decided[run.case_id] = _read_decision(run, truth)
        decision = decided[run.case_id]
        if decision is None:
            continue
        heard = known.get(run.id)
        if heard is None or heard.run != run:
            heard = known[run.id] = _read_run(store, run)
        taught_since, made_at = taught_at.get(run.group), created_at.get(heard.version)
        if made_at is not None and taught_since is not None and taught_since <= made_at:
            # A classifier that learned from this case, or an equal one, says nothing new about it.
            others = {a: said for a, said in heard.last.items() if a.part != CLASSIFIER}
            heard = replace(heard, last=others)
        rows.append(DecidedRun(heard, *decision))
        if len(rows) == most:
            break
    return rows


def _iter_decided(store: Store, project_id: str) -> Iterator[tuple[FinishedRun, GroundTruth]]:
    """Yield the runs of answered cases with what counts for them, newest first, read in batches."""
    runs = find_answered_runs(store, project_id)
    while batch := list(islice(runs, RUNS_PER_QUERY)):
        truths = store.truths.of_cases([run.case_id for run in batch])
        yield from ((run, truths.get(run.case_id, UNANSWERED)) for run in batch)


def _read_decision(run: FinishedRun, truth: GroundTruth) -> RunDecision | None:
    if truth.label is None or truth.label == "unclear":
        return None
    decision = CaseDecision(run.case_id, run.group, "+".join(truth.ids), truth.label)
    is_wrong = truth.label == "hallucinated"
    categories = sorted({span.category for span in truth.spans}) if is_wrong else ()
    evidence = dict.fromkeys(mark for one in truth.corrections for mark in one.evidence)
    rating = _compute_mean_rating(truth)
    return decision, tuple(categories), rating, truth.reason.strip(), tuple(evidence)


def _compute_mean_rating(truth: GroundTruth) -> float | None:
    """Return the mean rating of the response by those who agree, scaled to [0, 1], or None."""
    given = (rating for one in truth.corrections for rating in vars(one.ratings).values())
    ratings = [rating for rating in given if rating is not None]
    return (sum(ratings) / len(ratings) - 1.0) / 4.0 if ratings else None


def _read_run(store: Store, run: FinishedRun) -> AgentAnswers:
    events = load_events(store, run.id, ANSWER_EVENT_KINDS)
    progress = fold_events(events)
    ends = [event.at for event in events if event.kind == "turn_finished"]
    last, opening, opener = collect_agent_answers(progress)
    case = progress.case or store.cases.get(run.case_id)
    agents = identify_debaters(progress)
    return AgentAnswers(
        run=run,
        form=classify_response_form(case, len(progress.statements)) if case else "",
        language=case.language if case else "und",
        has_image=bool(case and case.images),
        has_documents=bool(case and case.documents),
        tool=progress.judgement.by_tool if progress.judgement else "",
        last=last,
        opening=opening,
        opener=opener,
        version=progress.verdict.classifier if progress.verdict else "",
        features=compute_debate_features(progress),
        seconds=progress.seconds(),
        opening_seconds=max(0.0, ends[0] - progress.began_at) if ends else 0.0,
        used=load_usage_by_role(store, run.id),
        answers={
            agents[config]: own for config, own in compute_answer_features(progress.turns).items()
        },
        protocol=progress.plan.protocol if progress.plan else "",
    )


def classify_response_form(case: Case, statements: int) -> str:
    """Return the kind of response in words."""
    if statements >= LONG_RESPONSE_STATEMENTS:
        return "long response"
    return "question and answer" if case.question.strip() else "claim"


def collect_agent_answers(
    progress: RunState,
) -> tuple[dict[SpeakingAgent, float], dict[SpeakingAgent, float], SpeakingAgent | None]:
    """Return (last answers, first answers, first speaker); an assigned side is no answer."""
    find_agent = _agent_finder(progress)
    agents = identify_debaters(progress)
    turns = _unassigned_turns(progress)
    last = {agents[turn.debater]: VALUE_BY_LABEL[turn.stance] for turn in turns}
    opening = {agents[turn.debater]: VALUE_BY_LABEL[turn.stance] for turn in reversed(turns)}
    opener = agents[turns[0].debater] if turns else None
    if progress.judgement is not None:
        judge = find_agent("judge", progress.judgement.agent, JUDGE)
        stance_of = dict(collect_stances(progress))
        reading_judge = _judge_of_readers(progress, judge)
        for reader in {view.reader for view in progress.judgement.readers}:
            stance = stance_of[f"{reader}, all evidence"]
            agent = SpeakingAgent(reader, READER, reading_judge.model, reading_judge.rules)
            last[agent] = VALUE_BY_LABEL[stance]
        last[judge] = VALUE_BY_LABEL[progress.judgement.label]
    verdict = progress.verdict
    if verdict is not None and verdict.classifier:
        p = verdict.p_hallucinated
        classifier = SpeakingAgent("Classifier", CLASSIFIER, verdict.classifier)
        last[classifier] = VALUE_BY_LABEL[verdict.label] if p is None else p
    return last, opening, opener


def _judge_of_readers(progress: RunState, judge: SpeakingAgent) -> SpeakingAgent:
    """Return the judge that the readers belong to; an audit borrows the built-in judge's."""
    judge_role = next((used for used in progress.roles if used.role == "judge"), None)
    is_audit = progress.plan is not None and progress.plan.protocol == AUDIT
    is_borrowed = is_audit and judge_role is not None and judge_role.built_in
    if judge_role and is_borrowed:
        return SpeakingAgent(judge_role.agent, JUDGE, "", judge_role.rule_hash)
    return judge


def _unassigned_turns(progress: RunState) -> list[Turn]:
    turns = (turn for turn in progress.turns if turn.assigned is None)
    return sorted(turns, key=lambda turn: turn.number)


def identify_debaters(progress: RunState) -> dict[str, SpeakingAgent]:
    """Return the agent of each debater that spoke for itself, by the name in the debate."""
    find_agent = _agent_finder(progress)
    names = {turn.debater: turn.agent for turn in _unassigned_turns(progress)}
    agents = {
        config: find_agent(f"debater {config}", name, DEBATER) for config, name in names.items()
    }
    # Count by the roster, as weights do: a lost turn does not change who an agent is.
    roles = [used for used in progress.roles if used.role.startswith("debater ")]
    all_agents = {
        role.role.split(" ", 1)[1]: find_agent(role.role, role.agent, DEBATER) for role in roles
    }
    count = Counter((all_agents | agents).values())
    duplicates = {agent for agent in agents.values() if count[agent] > 1}
    for config, agent in agents.items():
        if agent in duplicates:
            agents[config] = SpeakingAgent(agent.name, agent.part, agent.model, agent.rules, config)
    return agents


def _agent_finder(progress: RunState) -> Callable[[str, str, str], SpeakingAgent]:
    """Return a function of (role, agent's name, part) that finds the agent of that run."""
    used = {role.role: role for role in progress.roles}
    plan = progress.plan
    roster = assign_judge(plan, plan.sheet) if plan and plan.sheet else None
    models = {role: config.model for role, config in roster.agents_by_role()} if roster else {}

    def agent(role: str, name: str, part: str) -> SpeakingAgent:
        role_used = used.get(role)
        if role_used is None or role_used.agent != name:  # a built-in agent replaced it
            return SpeakingAgent(name, part)
        model = "" if role_used.built_in else models.get(role, "")
        return SpeakingAgent(name, part, model, role_used.rule_hash)

    return agent


def name_agents(agents: Iterable[SpeakingAgent]) -> dict[SpeakingAgent, str]:
    """Return a display name for each agent, no longer than needed to tell them apart."""
    left = sorted(set(agents))
    shown: dict[SpeakingAgent, str] = {}
    for step in range(5):
        names = [_describe_agent(agent, step) for agent in left]
        shown |= {a: w for a, w in zip(left, names, strict=True) if names.count(w) == 1}
        left = [agent for agent in left if agent not in shown]
    return shown | {agent: agent.key.replace("\x1f", " ") for agent in left}


def _describe_agent(agent: SpeakingAgent, step: int) -> str:
    """Return the agent in words; a higher step says more about it."""
    if step == 0:
        return f"{agent.name} {agent.model}".strip() if agent.part == CLASSIFIER else agent.name
    # A reader reads for the judge, who has all the evidence.
    words = f"{agent.name}, {'for the judge' if agent.part == READER else agent.part}"
    if step > 1:
        words = f"{words} {agent.seat}".rstrip()
    if step == 3:
        return f"{words} ({agent.model or 'built in'})"
    if step == 4:
        model = f"{agent.model}, " if agent.model else ""
        return f"{words} ({model}rules {agent.rules[:6] or 'unknown'})"
    return words


@dataclass(frozen=True)
class CaseReasons:
    """A person's reason and a run's; how many of the evidence `marks` were `quoted` and `found`."""

    run_id: str
    protocol: str
    group: str
    language: str
    claim: str
    label: Label
    reason: str
    rationale: str
    marks: int
    quoted: int
    found: int


def load_reasons(store: Store, rows: Sequence[DecidedRun]) -> list[CaseReasons]:
    """Return the reasons of each case and protocol from its newest run, if the verdicts agree."""
    newest: dict[tuple[str, str], DecidedRun] = {}
    for row in rows:
        newest.setdefault((row.decision.group, row.heard.protocol), row)
    all_reasons = (_compare_reasons(store, row) for row in newest.values())
    return [reasons for reasons in all_reasons if reasons is not None]


def _compare_reasons(store: Store, row: DecidedRun) -> CaseReasons | None:
    if not (row.reason or row.evidence):
        return None
    progress = fold_events(load_events(store, row.heard.run.id, REASON_EVENT_KINDS))
    if progress.verdict is None or progress.verdict.label != row.decision.label:
        return None
    case = progress.case or store.cases.get(row.heard.run.case_id)
    quotes = [
        (quote.source_id, quote.start, quote.end)
        for quote in find_supporting_quotes(progress)
        if quote.status != "not_found" and quote.start is not None and quote.end is not None
    ]
    passages = [(p.source_id, p.start, p.end) for p in progress.evidence.values()]
    prose = progress.judgement.prose if progress.judgement else ""
    return CaseReasons(
        run_id=row.heard.run.id,
        protocol=row.heard.protocol,
        group=row.decision.group,
        language=row.heard.language,
        claim=case.response if case else "",
        label=progress.verdict.label,
        reason=row.reason,
        # The judge's rationale for people, else the verdict's.
        rationale=(prose or progress.verdict.rationale).strip(),
        marks=len(row.evidence),
        quoted=sum(is_covered(mark, quotes) for mark in row.evidence),
        found=sum(is_covered(mark, passages) for mark in row.evidence),
    )


def find_supporting_quotes(progress: RunState) -> list[Quote]:
    """Return the quotes for the verdict: the judge's, and those of last turns that agree."""
    if progress.verdict is None:
        return []
    label = progress.verdict.label
    last_turns = {turn.debater: turn for turn in progress.turns}
    agreeing = [turn for turn in last_turns.values() if turn.stance == label]
    judged = progress.judgement.points if progress.judgement else ()
    points = [*judged, *(point for turn in agreeing for point in turn.points)]
    quotes = [quote for turn in agreeing for quote in turn.quotes]
    return [*quotes, *(point.quote for point in points if point.quote is not None)]


def is_covered(mark: EvidenceMark, places: Sequence[SourceRange]) -> bool:
    """Return True if at least half of the mark's characters lie in these places of its source."""
    covered: set[int] = set()
    for source, start, end in places:
        if source == mark.source_id:
            covered.update(range(max(start, mark.start), min(end, mark.end)))
    length = mark.end - mark.start
    return length > 0 and len(covered) >= MIN_COVERED_SHARE * length


def get_alignment_note_name(project_id: str) -> str:
    """Return the name of the note that holds a project's newest ratings."""
    return f"alignment.{project_id}"
