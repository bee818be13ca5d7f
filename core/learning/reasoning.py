"""What each agent said on decided cases, beside what people decided and the reasons they gave.

An agent is a name, the part it played, its model and the digest of its prompts or rules: two unlike
models under one name are two agents. Source of what is counted of reasons: ColMAD, figure 5b.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field, replace

from core.debate.protocols import seated_for
from core.review.queue_ranking import stances
from core.schema.events import AUDIT
from core.schema.progress import Progress, folded
from core.schema.records import Case, Label, Quote, Turn
from core.schema.reviews import EvidenceMark
from core.store import Store
from core.store.queries import (
    Decision,
    RunDone,
    Used,
    answered_runs,
    categories_of,
    decision_of,
    events_of,
    graded_by,
    used_by,
)
from core.verdict.consensus_weights import (
    Features,
    answer_features,
    features_of,
)

MOST_RUNS = 4_000
TURN_KINDS = ("run_started", "statement_found", "turn_finished", "consensus_reached",
         "judgement_reached", "label_predicted", "run_finished")  # fmt: skip
LONG_FROM = 4  # statements
VALUES: dict[Label, float] = {"hallucinated": 1.0, "supported": 0.0, "unclear": 0.5}
DEBATER, READER, JUDGE, CLASSIFIER = "debater", "reader", "judge", "classifier"


@dataclass(frozen=True, order=True)
class SpeakingAgent:
    """Who spoke; `model` empty if built in, `seat` only where two seats are the same agent else."""

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
class Heard:
    """A finished run: `last` what each agent said at the end, `opening` in its first turn.

    Numbers as in `Votes.said`. `opener` is who spoke first, `seconds` from start to end and
    `opening_seconds` to the end of the first turn. `answers` are the debaters' answers in numbers.
    """

    run: RunDone
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
    used: dict[str, Used] = field(default_factory=dict)
    answers: dict[SpeakingAgent, Features] = field(default_factory=dict)
    protocol: str = ""


@dataclass(frozen=True)
class ReasoningRow:
    """A run with what people decided; `graded` is how they rated the response, 0 to 1, or None."""

    heard: Heard
    decision: Decision
    categories: tuple[str, ...]
    graded: float | None = None

    @property
    def is_wrong(self) -> bool:
        """People decided that the response is hallucinated."""
        return self.decision.label == "hallucinated"


Known = MutableMapping[str, Heard]
Decided = tuple[Decision, tuple[str, ...], float | None]


def rows_of(
    store: Store, project_id: str, known: Known, *, most: int = MOST_RUNS
) -> list[ReasoningRow]:
    """The newest finished runs over decided cases, newest first; `known` keeps those heard."""
    made = {version.id: version.created_at for version in store.versions.all()}
    taught = store.versions.taught_at()
    decided: dict[str, Decided | None] = {}
    found: list[ReasoningRow] = []
    for run in answered_runs(store, project_id):
        if run.case_id not in decided:
            decided[run.case_id] = _decided(store, run)
        own = decided[run.case_id]
        if own is None:
            continue
        heard = known.get(run.id)
        if heard is None or heard.run != run:
            heard = known[run.id] = _heard(store, run)
        since, at = taught.get(run.group), made.get(heard.version)
        if at is not None and since is not None and since <= at:
            # a classifier that has learned from a case, or one that says the same, is no witness
            others = {a: said for a, said in heard.last.items() if a.part != CLASSIFIER}
            heard = replace(heard, last=others)
        found.append(ReasoningRow(heard, *own))
        if len(found) == most:
            break
    return found


def _decided(store: Store, run: RunDone) -> Decided | None:
    decision = decision_of(store, run)
    if decision is None or decision.label == "unclear":
        return None
    is_wrong = decision.label == "hallucinated"
    categories = categories_of(store, decision) if is_wrong else ()
    return decision, categories, graded_by(store, decision)


def _heard(store: Store, run: RunDone) -> Heard:
    events = events_of(store, run.id, TURN_KINDS)
    progress = folded(events)
    ends = [event.at for event in events if event.kind == "turn_finished"]
    last, opening, opener = said_in(progress)
    case = progress.case or store.cases.get(run.case_id)
    agents = seated_agents(progress)
    return Heard(
        run=run,
        form=form_of(case, len(progress.statements)) if case else "",
        language=case.language if case else "und",
        has_image=bool(case and case.images),
        has_documents=bool(case and case.documents),
        tool=progress.judgement.by_tool if progress.judgement else "",
        last=last,
        opening=opening,
        opener=opener,
        version=progress.verdict.classifier if progress.verdict else "",
        features=features_of(progress),
        seconds=progress.seconds(),
        opening_seconds=max(0.0, ends[0] - progress.began_at) if ends else 0.0,
        used=used_by(store, run.id),
        answers={agents[seat]: own for seat, own in answer_features(progress.turns).items()},
        protocol=progress.plan.protocol if progress.plan else "",
    )


def form_of(case: Case, statements: int) -> str:
    """What kind of response it is, in words."""
    if statements >= LONG_FROM:
        return "long response"
    return "question and answer" if case.question.strip() else "claim"


def said_in(
    progress: Progress,
) -> tuple[dict[SpeakingAgent, float], dict[SpeakingAgent, float], SpeakingAgent | None]:
    """Last words, first words, and who spoke first; an assigned side is nobody's word."""
    played = _players(progress)
    agents = seated_agents(progress)
    turns = _own_turns(progress)
    last = {agents[turn.debater]: VALUES[turn.stance] for turn in turns}
    opening = {agents[turn.debater]: VALUES[turn.stance] for turn in reversed(turns)}
    opener = agents[turns[0].debater] if turns else None
    if progress.judgement is not None:
        judge = played("judge", progress.judgement.agent, JUDGE)
        whole = dict(stances(progress))
        reads = _reading_judge(progress, judge)
        for reader in {view.reader for view in progress.judgement.readers}:
            said = whole[f"{reader}, all evidence"]
            last[SpeakingAgent(reader, READER, reads.model, reads.rules)] = VALUES[said]
        last[judge] = VALUES[progress.judgement.label]
    verdict = progress.verdict
    if verdict is not None and verdict.classifier:
        p = verdict.p_hallucinated
        own = SpeakingAgent("Classifier", CLASSIFIER, verdict.classifier)
        last[own] = VALUES[verdict.label] if p is None else p
    return last, opening, opener


def _reading_judge(progress: Progress, judge: SpeakingAgent) -> SpeakingAgent:
    """Whose readers those of a judgement are: an audit borrows the built-in judge's."""
    own = next((used for used in progress.roles if used.role == "judge"), None)
    is_audit = progress.plan is not None and progress.plan.protocol == AUDIT
    is_borrowed = is_audit and own is not None and own.built_in
    return SpeakingAgent(own.agent, JUDGE, "", own.rule_hash) if own and is_borrowed else judge


def _own_turns(progress: Progress) -> list[Turn]:
    own = (turn for turn in progress.turns if turn.assigned is None)
    return sorted(own, key=lambda turn: turn.number)


def seated_agents(progress: Progress) -> dict[str, SpeakingAgent]:
    """Who each debater of the run is that spoke for itself, by the name in the debate."""
    played = _players(progress)
    names = {turn.debater: turn.agent for turn in _own_turns(progress)}
    agents = {seat: played(f"debater {seat}", name, DEBATER) for seat, name in names.items()}
    # By the roster, as weights are seated: a turn that was lost makes nobody another agent.
    seats = [used for used in progress.roles if used.role.startswith("debater ")]
    every = {u.role.split(" ", 1)[1]: played(u.role, u.agent, DEBATER) for u in seats}
    count = Counter((every | agents).values())
    twice = {agent for agent in agents.values() if count[agent] > 1}
    for seat, agent in agents.items():
        if agent in twice:
            agents[seat] = SpeakingAgent(agent.name, agent.part, agent.model, agent.rules, seat)
    return agents


def _players(progress: Progress) -> Callable[[str, str, str], SpeakingAgent]:
    """(role, agent's name, part) to the agent, with the model and rules of that run."""
    used = {role.role: role for role in progress.roles}
    plan = progress.plan
    sheet = seated_for(plan, plan.sheet) if plan and plan.sheet else None
    models = {role: seat.model for role, seat in sheet.seats()} if sheet else {}

    def agent(role: str, name: str, part: str) -> SpeakingAgent:
        own = used.get(role)
        if own is None or own.agent != name:  # a built-in agent stood in for it
            return SpeakingAgent(name, part)
        model = "" if own.built_in else models.get(role, "")
        return SpeakingAgent(name, part, model, own.rule_hash)

    return agent


def words_of(agents: Iterable[SpeakingAgent]) -> dict[SpeakingAgent, str]:
    """A name for each on screen, no longer than it takes to tell them apart."""
    left = sorted(set(agents))
    shown: dict[SpeakingAgent, str] = {}
    for step in range(5):
        told = [_words(agent, step) for agent in left]
        shown |= {a: w for a, w in zip(left, told, strict=True) if told.count(w) == 1}
        left = [agent for agent in left if agent not in shown]
    return shown | {agent: agent.key.replace("\x1f", " ") for agent in left}


def _words(agent: SpeakingAgent, step: int) -> str:
    """The agent in words: with a higher step more of what it is."""
    if step == 0:
        return f"{agent.name} {agent.model}".strip() if agent.part == CLASSIFIER else agent.name
    # a reader reads for the judge, who has all the evidence
    words = f"{agent.name}, {'for the judge' if agent.part == READER else agent.part}"
    if step > 1:
        words = f"{words} {agent.seat}".rstrip()
    if step == 3:
        return f"{words} ({agent.model or 'built in'})"
    if step == 4:
        model = f"{agent.model}, " if agent.model else ""
        return f"{words} ({model}rules {agent.rules[:6] or 'unknown'})"
    return words


KINDS = ("run_started", "statement_found", "passages_found", "turn_finished",
         "judgement_reached", "label_predicted", "run_finished")  # fmt: skip
COVERED_FROM = 0.5  # of a mark's characters


@dataclass(frozen=True)
class Reasons:
    """A person's reason and a run's; of `marks` words so many are `quoted`, or `found`."""

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


def reasons_of(store: Store, rows: Sequence[ReasoningRow]) -> list[Reasons]:
    """Of the newest run of each case by each protocol, where its verdict is the person's."""
    newest: dict[tuple[str, str], ReasoningRow] = {}
    for row in rows:
        newest.setdefault((row.decision.group, row.heard.protocol), row)
    found = (_reasons(store, row) for row in newest.values())
    return [own for own in found if own is not None]


def _reasons(store: Store, row: ReasoningRow) -> Reasons | None:
    reason, marks = _said(store, row.decision)
    if not (reason or marks):
        return None
    progress = folded(events_of(store, row.heard.run.id, KINDS))
    if progress.verdict is None or progress.verdict.label != row.decision.label:
        return None
    case = progress.case or store.cases.get(row.heard.run.case_id)
    quotes = [
        (quote.source_id, quote.start, quote.end)
        for quote in arguing_for(progress)
        if quote.status != "not_found" and quote.start is not None and quote.end is not None
    ]
    passages = [(p.source_id, p.start, p.end) for p in progress.evidence.values()]
    prose = progress.judgement.prose if progress.judgement else ""
    return Reasons(
        run_id=row.heard.run.id,
        protocol=row.heard.protocol,
        group=row.decision.group,
        language=row.heard.language,
        claim=case.response if case else "",
        label=progress.verdict.label,
        reason=reason,
        # the judge's words for people, else the verdict's
        rationale=(prose or progress.verdict.rationale).strip(),
        marks=len(marks),
        quoted=sum(is_covered(mark, quotes) for mark in marks),
        found=sum(is_covered(mark, passages) for mark in marks),
    )


def _said(store: Store, decision: Decision) -> tuple[str, tuple[EvidenceMark, ...]]:
    """(reason, marked evidence) of what counts for the case."""
    if decision.is_settled:
        golds = (gold for gold in store.golds.of_case(decision.case_id) if gold.id == decision.id)
        return next((gold.reason.strip() for gold in golds), ""), ()
    correction = store.corrections.get(decision.id)
    return (correction.reason.strip(), correction.evidence) if correction else ("", ())


def arguing_for(progress: Progress) -> list[Quote]:
    """The quotes that argue for the verdict: the judge's, and last turns' of those who share it."""
    if progress.verdict is None:
        return []
    label = progress.verdict.label
    last = {turn.debater: turn for turn in progress.turns}
    judged = progress.judgement.points if progress.judgement else ()
    points = [*judged, *(p for t in last.values() if t.stance == label for p in t.points)]
    quotes = [quote for t in last.values() if t.stance == label for quote in t.quotes]
    return [*quotes, *(point.quote for point in points if point.quote is not None)]


Place = tuple[str, int, int]  # source, [start, end) in its text


def is_covered(mark: EvidenceMark, places: Sequence[Place]) -> bool:
    """At least half of the mark's characters lie in these places of its source."""
    inside: set[int] = set()
    for source, start, end in places:
        if source == mark.source_id:
            inside.update(range(max(start, mark.start), min(end, mark.end)))
    length = mark.end - mark.start
    return length > 0 and len(inside) >= COVERED_FROM * length


def note_name(project_id: str) -> str:
    """Under which note a project's newest ratings are kept."""
    return f"alignment.{project_id}"
