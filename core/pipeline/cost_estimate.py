"""Estimate a check before it starts: seconds, and the models' calls, tokens and money.

The built-in agents' time is estimated from the lengths of response and files, at the pace of the
newest runs here by the same protocol. The models' use is the sum of each role's calls. A model on a
server of one's own keeps the pace of its past calls, one at a time; that of others is a guess.
“Likely” assumes a debate of three turns (none if a check is adaptive) and one wrong place, in an
audit three steps a statement and no contested statement; “at most” assumes that every turn and step
is taken, every statement is contested, every reply has the maximum length and every reply but
a turn is asked for twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from core.agents.qualification import AT_ONCE, CASES, PROMPT, ModelStanding, load_standing
from core.debate.protocols import (
    assign_judge,
    get_follow_up_debate,
    get_plan_protocol,
    list_deciding_agents,
)
from core.debate.state import DebateProtocol
from core.documents.segmentation import detect_language
from core.llm.call import is_on_own_server
from core.llm.keys import Keys
from core.llm.limits import estimate_tokens, format_dollars, price_of, window_of
from core.llm.prompting import PromptBook, load_shipped_prompt, prompt_language
from core.schema.events import AUDIT, MAX_STEPS_PER_STATEMENT
from core.schema.records import LibraryEntry, Plan
from core.schema.rosters import (
    DEFAULT_OPTIONS,
    AgentConfig,
    DebateOptions,
    RosterConfig,
    get_judge_prompt_name,
    limit_turn_tokens,
)
from core.store import Store

BASE_SECONDS = 0.2
PER_CHARACTER_SECONDS = 1.1 / 1000
MIN_PACES = 5  # earlier checks that show how much their pace varies
UNMEASURED_RATIO = 4.0  # of a busy computer's pace to that of an idle one
PER_MEGABYTE_SECONDS = 6.0
PER_IMAGE_SECONDS = 4.0
INDEXING_SECONDS = 0.3 / 1000  # for each character: 600,000 took three minutes on two idle cores
PACKED_CHARACTERS = 0.5  # for each byte of a file whose text is packed, before it is read
FIRST_WORD_SECONDS = 1.0
TOKENS_PER_SECOND = 40.0
CONCURRENT_CALLS = 8  # concurrent calls
STATEMENT_CHARACTERS = 120
PASSAGE_TOKENS, LONG_PASSAGE_TOKENS = 70, 200
PICTURE_TOKENS, LARGE_PICTURE_TOKENS = 1_100, 1_600
FRAME_TOKENS = 150
QUERY_TOKENS, BATCH_TOKENS = 40, 8_000  # of one statement; of passages that are embedded together
LIKELY_TURNS = 3
LIKELY_TURN_TOKENS = 100  # tokens of a turn
TURN_HEADER_TOKENS = 40  # the speaker, whose answer it is about, and the quote marks
MARK_TOKENS = 30  # of one marked span in a reply
DENSE_LANGUAGES = ("zh", "ja", "ko", "th")  # languages with many tokens for a character
LIKELY_STEPS = 3  # of a statement: search, compare, conclude
Paces = Mapping[tuple[str, str], float]  # tokens a second by model and address
NO_PACES: Paces = {}
STEP_TOKENS = 120  # one step's result, or a statement's memory entry, in a prompt


@dataclass(frozen=True)
class CheckSize:
    """The size of a check; lengths in characters. `sources` is the text that must be embedded anew.

    `examples` are the tokens of corrected cases that the span extractor is shown at most.
    `untested` are the models that take the judge test in the check.
    """

    response: int
    question: int = 0
    images: int = 0
    max_turns: int = 5
    passages: int = 5
    sources: int = 0
    language: str = "en"
    examples: int = 0
    protocol: str = "ceda"
    options: DebateOptions = DEFAULT_OPTIONS
    untested: tuple[AgentConfig, ...] = ()

    @property
    def plan(self) -> Plan:
        """The fields of the plan that a protocol depends on."""
        return Plan(self.protocol, max_turns=self.max_turns, options=self.options)


@dataclass(frozen=True)
class CallStep:
    """Equal calls of one agent; `prompt` and `reply` are tokens of each."""

    agent: AgentConfig
    calls: int
    prompt: int
    reply: int
    at_once: int = 1


def plan_calls(roster_config: RosterConfig, size: CheckSize, is_most: bool) -> Iterator[CallStep]:
    """Yield every role's calls in the order of a run."""
    tokens, roster_config = _measure_tokens(size, is_most), assign_judge(size.plan, roster_config)
    yield from _estimate_reading(roster_config, tokens)
    if size.protocol == AUDIT:
        yield from _estimate_audit(roster_config, tokens)
    if size.protocol != AUDIT or is_most:
        yield from _estimate_debate(roster_config, tokens)
    yield from (_estimate_judge_test(agent, tokens) for agent in size.untested)
    yield from _estimate_marking(roster_config, tokens)


def _estimate_reading(roster_config: RosterConfig, tokens: _TokenSize) -> Iterator[CallStep]:
    size = tokens.size
    queries = tokens.statements * (QUERY_TOKENS + tokens.question)
    yield CallStep(roster_config.retriever, 1, queries, 0)  # all queries in one call
    if tokens.sources:
        batches = math.ceil(tokens.sources / BATCH_TOKENS)
        yield CallStep(roster_config.retriever, batches, math.ceil(tokens.sources / batches), 0)
    yield tokens.step(roster_config.segmenter, "segment", 2 * tokens.response, calls=tokens.again)
    picture = LARGE_PICTURE_TOKENS if tokens.is_most else PICTURE_TOKENS
    reader, images = roster_config.image_reader, size.images * tokens.again
    yield tokens.step(reader, "image_question", 150, calls=images, at_once=CONCURRENT_CALLS)
    beside = picture + 150
    yield tokens.step(
        reader, "image_reading", 150, beside=beside, calls=images, at_once=CONCURRENT_CALLS
    )


def _estimate_audit(roster_config: RosterConfig, tokens: _TokenSize) -> Iterator[CallStep]:
    """Yield the picker's steps, its tools' questions (at most two a step), and reflection."""
    picker, count, is_most = roster_config.tool_picker, tokens.statements, tokens.is_most
    read_tokens = tokens.evidence // count + STEP_TOKENS
    most_steps = MAX_STEPS_PER_STATEMENT * (count + 1) * tokens.again
    known_tokens = read_tokens + (0 if picker.is_built_in else _count_toolbox_tokens())
    picks, questions = (most_steps, 2 * most_steps) if is_most else (LIKELY_STEPS * count, count)
    yield tokens.step(
        picker, "pick_tool", 150, beside=known_tokens, calls=picks, at_once=CONCURRENT_CALLS
    )
    yield tokens.step(
        picker, "match", 120, beside=read_tokens, calls=questions, at_once=CONCURRENT_CALLS
    )
    reflections = 2 * tokens.again if is_most else 1
    yield tokens.step(
        roster_config.reflector, "reflect", 100, beside=STEP_TOKENS * count, calls=reflections
    )


@cache
def _count_toolbox_tokens() -> int:
    """Return the tokens of all tools with an example, as a picker reads them."""
    from core.agents.llm_audit import describe_toolbox  # loads all tools: 0.15 s

    return sum(estimate_tokens(text) for text in describe_toolbox())


def _estimate_debate(roster_config: RosterConfig, tokens: _TokenSize) -> Iterator[CallStep]:
    """Yield the calls up to the label; an adaptive check likely stops before the debate."""
    plan, options = tokens.size.plan, tokens.size.options
    then = get_follow_up_debate(plan)
    if then or plan.protocol == "single":  # a single judge's samples, all at once
        samples, style = max(1, options.samples), options.style or "plain"
        yield tokens.step(
            roster_config.judge,
            get_judge_prompt_name(style),
            350 if style == "thought" else 100,
            beside=tokens.evidence,
            calls=tokens.again * samples,
            at_once=samples,
        )
    if plan.protocol != "single" and (tokens.is_most or then is None):
        yield from _estimate_turns(roster_config, tokens, then or get_plan_protocol(plan), plan)


def _estimate_turns(
    roster_config: RosterConfig, tokens: _TokenSize, protocol: DebateProtocol, plan: Plan
) -> Iterator[CallStep]:
    """Yield the calls of the debate; an audit's judge may also judge each contested statement."""
    is_most, again = tokens.is_most, tokens.again
    debaters = roster_config.debaters[: protocol.debater_count]
    seats = tuple(_raise_reply_limit(debater.seat, protocol, tokens) for debater in debaters)
    calls = protocol.calls(len(seats), plan)
    written_texts = calls.context + calls.summaries + calls.revisions
    context_tokens = 60 * tokens.statements + 200
    yield tokens.step(
        roster_config.context_writer,
        "context",
        context_tokens,
        beside=tokens.evidence,
        calls=again * written_texts,
    )
    ends_early = protocol.name == "ceda" and not is_most
    turns = min(calls.turns, LIKELY_TURNS) if ends_early else calls.turns
    at_once = max(1, math.ceil(calls.turns / max(1, calls.chain - written_texts - 1)))
    turn_length = (
        max((agent.max_tokens for agent in seats), default=0) if is_most else LIKELY_TURN_TOKENS
    )
    heard_tokens = math.ceil(calls.heard * (turn_length + TURN_HEADER_TOKENS) / max(1, calls.turns))
    share = (tokens.evidence if is_most else tokens.evidence // 2) + heard_tokens + 100
    manner = next(iter(protocol.turn_modes), "debate")
    for place, agent in enumerate(seats):
        own_turns = len(range(place, turns, len(seats)))
        yield tokens.step(
            agent, manner, LIKELY_TURN_TOKENS, beside=share, calls=own_turns, at_once=at_once
        )
    judgements = again * (calls.judgements + (tokens.statements if plan.protocol == AUDIT else 0))
    shown_tokens = tokens.evidence + turns * turn_length + context_tokens
    prompt = get_judge_prompt_name(next(iter(protocol.judge_modes), "debate"))
    yield tokens.step(
        roster_config.judge,
        prompt,
        200,
        beside=shown_tokens,
        calls=judgements,
        at_once=calls.judgements,
    )


def _estimate_judge_test(agent: AgentConfig, tokens: _TokenSize) -> CallStep:
    prompt = estimate_tokens(load_shipped_prompt(PROMPT, "en").text) + FRAME_TOKENS
    length = agent.max_tokens if tokens.is_most else min(100, agent.max_tokens)
    return CallStep(agent, tokens.again * len(CASES), prompt, length, AT_ONCE)


def _raise_reply_limit(
    agent: AgentConfig, protocol: DebateProtocol, tokens: _TokenSize
) -> AgentConfig:
    """Return the debater's configuration with the longest turn that the protocol asks for."""
    limits = [limit_turn_tokens(m, agent.max_tokens, tokens.response) for m in protocol.turn_modes]
    return replace(agent, max_tokens=max(limits, default=agent.max_tokens))


def _estimate_marking(roster_config: RosterConfig, tokens: _TokenSize) -> Iterator[CallStep]:
    """Yield the calls that mark words: by two agents, or by a panel whose members all vote."""
    again, evidence = tokens.again, tokens.evidence
    beside = evidence + 200 + tokens.size.examples
    if len(panel := roster_config.span_panel) > 1:
        member_beside = beside if roster_config.panel_sees_evidence else beside - evidence
        votes = again * (len(panel) - 1)
        for agent in panel:
            yield tokens.step(
                agent,
                "panel_spans",
                120,
                beside=member_beside,
                calls=again,
                at_once=CONCURRENT_CALLS,
            )
            yield tokens.step(
                agent,
                "panel_votes",
                100,
                beside=member_beside,
                calls=votes,
                at_once=CONCURRENT_CALLS,
            )
        return
    extractor, adjudicator = roster_config.span_extractor, roster_config.span_adjudicator
    yield tokens.step(extractor, "spans", 120, beside=beside, calls=again)
    votes = again * tokens.places(extractor) if tokens.is_most else 1
    yield tokens.step(
        adjudicator, "span_vote", 100, beside=evidence + 250, calls=votes, at_once=CONCURRENT_CALLS
    )


@dataclass(frozen=True)
class _TokenSize:
    """A size in tokens, likely or at most; `again` counts attempts at a reply in a given form."""

    size: CheckSize
    is_most: bool
    again: int
    statements: int
    response: int
    question: int
    sources: int
    evidence: int

    def places(self, extractor: AgentConfig) -> int:
        by_reply = max(1, extractor.max_tokens // MARK_TOKENS)
        by_length = 2 * self.statements
        return by_length if extractor.is_built_in else min(by_length, by_reply)

    def step(
        self,
        agent: AgentConfig,
        prompt: str,
        reply: int,
        *,
        beside: int = 0,
        calls: int = 1,
        at_once: int = 1,
    ) -> CallStep:
        """Return the calls with that prompt, the claim, and `beside` tokens of other text."""
        if agent.is_built_in:
            return CallStep(agent, 0, 0, 0)
        text = load_shipped_prompt(prompt, prompt_language(self.size.language)).text
        claim = self.response + self.question + FRAME_TOKENS
        room = max(1, window_of(agent) - agent.max_tokens)
        whole = min(estimate_tokens(text) + claim + beside, room)
        length = agent.max_tokens if self.is_most else min(reply, agent.max_tokens)
        return CallStep(agent, calls, whole, length, at_once)


def _measure_tokens(size: CheckSize, is_most: bool) -> _TokenSize:
    likely_rate, highest_rate = (
        (0.8, 1.5) if size.language.split("-")[0] in DENSE_LANGUAGES else (0.25, 0.5)
    )
    tokens_per_character = highest_rate if is_most else likely_rate
    response, question, sources = (
        math.ceil(count * tokens_per_character)
        for count in (size.response, size.question, size.sources)
    )
    statements = max(1, math.ceil(size.response / STATEMENT_CHARACTERS))
    passage_tokens, image_tokens = (LONG_PASSAGE_TOKENS, 400) if is_most else (PASSAGE_TOKENS, 150)
    evidence = statements * size.passages * passage_tokens + size.images * image_tokens
    again = 2 if is_most else 1
    return _TokenSize(size, is_most, again, statements, response, question, sources, evidence)


@dataclass(frozen=True)
class ModelUsage:
    """Calls to models, their tokens, and seconds; `cost` is that of priced models, in US dollars.

    `unpriced_tokens` are those of models of unknown price, which count against the token caps.
    """

    calls: int = 0
    tokens: int = 0
    unpriced_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class CostEstimate:
    """A check's expected use of language models; `unpriced` names those of unknown price.

    Its seconds mean nothing unless it `is_timed`: the pace of a model on a server of one's own was
    not measured yet.
    """

    likely: ModelUsage
    most: ModelUsage
    unpriced: tuple[str, ...]
    is_timed: bool = True

    @property
    def cost(self) -> float | None:
        """The likely cost in US dollars, None if part of it is not known."""
        return None if self.unpriced else self.likely.cost

    @property
    def words(self) -> str:
        """The estimate in one line for the page."""
        likely, most = self.likely, self.most
        if not most.calls:
            return "no cost"
        counts = (
            f"about {likely.calls} calls, {_round_up(likely.tokens):,} tokens "
            f"(at most {most.calls} and {_round_up(most.tokens):,})"
        )
        cost = f"about {format_dollars(likely.cost)}, at most {format_dollars(most.cost)}"
        if self.unpriced:
            besides = f", besides {cost}" if most.cost else ""
            return f"cost not known for {', '.join(self.unpriced)}{besides} · {counts}"
        return f"{cost if most.cost else 'nothing to pay'} · {counts}"


def measure_checks(
    store: Store,
    entries: Sequence[LibraryEntry],
    asked: Sequence[tuple[str, str]],
    plan: Plan,
    standings: Sequence[ModelStanding] = (),
) -> list[CheckSize]:
    """Return the size of each check of a (response, question) over the same sources.

    `standings` are those of the models that decide. Text that must be embedded anew, and a judge
    test, count for the first check; a source counts once it has been read.
    """
    size = CheckSize(
        0,
        images=sum(entry.kind == "image" for entry in entries),
        max_turns=plan.max_turns,
        passages=plan.passages,
        protocol=plan.protocol,
        options=plan.options,
        language=detect_language("\n".join(f"{question} {text}" for text, question in asked)),
    )
    sizes = [replace(size, response=len(text), question=len(question)) for text, question in asked]
    sizes[0] = replace(
        sizes[0],
        sources=_count_unembedded(store, entries, plan),
        untested=tuple(one.agent for one in standings if one.is_tested_in_runs),
    )
    return sizes


def load_standings(store: Store, project_id: str, plan: Plan) -> list[ModelStanding]:
    """Return how each language model that decides by the plan stands in the project."""
    book = PromptBook(store.prompt_edits.of_project(project_id))
    agents = list_deciding_agents(plan, plan.sheet) if plan.sheet else ()
    return [load_standing(store, project_id, agent, book) for agent in agents]


def _count_unembedded(store: Store, entries: Sequence[LibraryEntry], plan: Plan) -> int:
    """Return the number of characters that the roster's embedding model has not embedded yet."""
    if plan.sheet is None or plan.sheet.retriever.is_built_in:
        return 0
    from core.llm.encoder import LlmEmbedder

    model = LlmEmbedder(plan.sheet.retriever, Keys({})).id
    unembedded = (entry for entry in entries if not store.readings.has_index(entry.id, model))
    return sum(entry.characters for entry in unembedded)


def load_paces(store: Store, roster_config: RosterConfig) -> Paces:
    """Return the pace of each model on a server of one's own; without those never measured."""
    agents = {agent for _, agent in roster_config.agents_by_role() if not agent.is_built_in}
    places = {(agent.model, agent.api_base) for agent in agents if is_on_own_server(agent)}
    paces = {place: store.ledger.tokens_per_second(*place) for place in places}
    return {place: pace for place, pace in paces.items() if pace}


def estimate_usage(
    roster_config: RosterConfig, size: CheckSize, paces: Paces = NO_PACES
) -> CostEstimate:
    """Return a check's expected use of language models with that roster.

    `paces` are those of models on servers of one's own, in tokens a second.
    """
    steps = (
        [s for s in plan_calls(roster_config, size, is_most) if s.calls]
        for is_most in (False, True)
    )
    likely, most = ([s for s in group if not s.agent.is_built_in] for group in steps)
    unpriced = dict.fromkeys(step.agent.model for step in most if price_of(step.agent) is None)
    is_timed = not any(
        is_on_own_server(step.agent) and (step.agent.model, step.agent.api_base) not in paces
        for step in likely
    )
    return CostEstimate(
        _sum_steps(likely, paces), _sum_steps(most, paces), tuple(unpriced), is_timed
    )


def _sum_steps(steps: Iterable[CallStep], paces: Paces) -> ModelUsage:
    calls = tokens = unpriced = 0
    cost = seconds = 0.0
    for step in steps:
        calls += step.calls
        step_tokens = step.calls * (step.prompt + step.reply)
        tokens += step_tokens
        price = price_of(step.agent)
        if price is None:
            unpriced += step_tokens
        else:
            cost += step.calls * price.of(step.prompt, step.reply)
        if pace := paces.get((step.agent.model, step.agent.api_base)):
            seconds += step_tokens / pace
            continue
        waves = math.ceil(step.calls / step.at_once)
        seconds += waves * (FIRST_WORD_SECONDS + step.reply / TOKENS_PER_SECOND)
    return ModelUsage(calls, tokens, unpriced, cost, seconds)


def _round_up(tokens: int) -> int:
    """Round up to two significant digits, the precision of an estimate."""
    unit = int(10 ** max(0, len(str(tokens)) - 2))
    return math.ceil(tokens / unit) * unit


def estimate_seconds(
    store: Store,
    entries: Sequence[LibraryEntry],
    characters: int,
    roster: str = "builtin",
    protocol: str = "ceda",
    *,
    is_indexed_here: bool = True,
) -> float:
    """Estimate the seconds that a check of a response of that length usually takes."""
    return estimate_duration(
        store, entries, characters, roster, protocol, is_indexed_here=is_indexed_here
    )[0]


def estimate_duration(
    store: Store,
    entries: Sequence[LibraryEntry],
    characters: int,
    roster: str = "builtin",
    protocol: str = "ceda",
    *,
    is_indexed_here: bool = True,
) -> tuple[float, float]:
    """Estimate a check's (usual, longest) seconds for a response of that length.

    Sources that were read and indexed before cost no time. `is_indexed_here` is False if a
    provider's model embeds them. The pace is taken only from earlier checks by the
    same protocol: an audit takes longer the more of it is contested, or is code to run. A tenth of
    those took longer than the longest: this computer was busy then, and may be again.
    """
    recent = store.runs.seconds_of_recent(roster, protocol)
    paces = sorted(seconds / _compute_base_seconds(length) for seconds, length in recent)
    usual, slow = median(paces) if paces else 1.0, paces[9 * len(paces) // 10] if paces else 0.0
    slow = slow if len(paces) >= MIN_PACES else max(slow, UNMEASURED_RATIO * usual)
    reading = sum(
        PER_IMAGE_SECONDS if entry.kind == "image" else PER_MEGABYTE_SECONDS * entry.size / 1e6
        for entry in entries
        if entry.status in ("waiting", "reading")
    )
    indexing = 0.0
    if is_indexed_here:
        lengths = (_count_characters(e) for e in entries if not store.readings.has_index(e.id))
        indexing = INDEXING_SECONDS * sum(lengths)
    base = _compute_base_seconds(characters)
    return (
        base * usual + reading + indexing,
        base * slow + reading + UNMEASURED_RATIO * indexing,
    )


def _count_characters(entry: LibraryEntry) -> float:
    """Return the length of a file's text, or a guess before it is read."""
    if entry.status not in ("waiting", "reading") or entry.kind == "image":
        return entry.characters
    return entry.size * (PACKED_CHARACTERS if entry.kind in ("pdf", "docx") else 1.0)


def _compute_base_seconds(characters: int) -> float:
    return BASE_SECONDS + PER_CHARACTER_SECONDS * characters
