"""The debate protocols by name, what can be chosen of each, and whether models can hold them.

The audit, which debates only what stays open, is in `core/pipeline`. `require_context_window`
refuses models with too small a context window before any is asked: a question in its shortest form
is the prompt with the response, one passage of the evidence and the beginning of two turns, beside
the longest answer. What grows during a debate is cut to the window (`core/agents/transcript.py`);
these parts are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import chain, product

from core.agents.agent_runner import window_too_small_message
from core.agents.transcript import MIN_LINE_TOKENS
from core.debate import PROTOCOL_NAMES
from core.debate.independent import build_adaptive_protocol, choose_debate
from core.debate.sequential import CEDA
from core.debate.state import DebateProtocol
from core.llm.limits import count_message_tokens, estimate_tokens, window_of
from core.llm.prompting import FIELDS, Fence, PromptBook, fill_prompt
from core.runtime.errors import InputError
from core.schema.events import AUDIT
from core.schema.records import Case, Plan, Project
from core.schema.rosters import (
    DEBATE_PROTOCOL_NAMES,
    DEFAULT_OPTIONS,
    JUDGE_STYLES,
    MAX_ROUNDS,
    PROTOCOL_INFOS,
    READER_PROTOCOLS,
    AgentConfig,
    JudgeMode,
    ProtocolOption,
    RosterConfig,
    TurnMode,
    get_judge_prompt_name,
    limit_turn_tokens,
)

# Fields that a question in its shortest form leaves empty.
SHORT_FIELDS = frozenset({"debater", "debaters", "about", "assigned", "language", "revisions"})
DEBATE_FIELDS, EVIDENCE_FIELDS = (
    frozenset({"heard", "transcript"}),
    frozenset({"evidence", "passages"}),
)
SHORTEST_DEBATE_TURNS = 2
SHORTEST_TURN_TOKENS, SHORTEST_PASSAGE_TOKENS = MIN_LINE_TOKENS + 16, 70

_BY_NAME: dict[str, DebateProtocol] = {
    value.name: value
    for module in sorted({info.module for info in PROTOCOL_INFOS if info.module})
    for value in vars(import_module(f"core.debate.{module}")).values()
    if isinstance(value, DebateProtocol)
}
DEBATES: Mapping[str, DebateProtocol] = {name: _BY_NAME[name] for name in DEBATE_PROTOCOL_NAMES}
_BY_NAME["adaptive"] = build_adaptive_protocol(DEBATES)
PROTOCOLS: Mapping[str, DebateProtocol] = {name: _BY_NAME[name] for name in PROTOCOL_NAMES}
# The command-line options; turns belong to the project, and the seed fits every protocol.
OPTION_FLAGS: Mapping[ProtocolOption, str] = {
    "rounds": "--rounds", "samples": "--samples", "style": "--style",
    "is_swapped": "--swap", "then": "--then", "without": "--without",
}  # fmt: skip

READERS_CANNOT_DEBATE = "built-in readers say the same in every round, so they cannot debate in it."


def get_plan_protocol(plan: Plan) -> DebateProtocol:
    """Return the plan's protocol, or CEDA for an audit, which debates by it."""
    return PROTOCOLS.get(plan.protocol, CEDA)


def find_protocol(name: str) -> DebateProtocol:
    """Return the protocol of that name. Raises InputError if this version does not know it."""
    if name not in PROTOCOLS:
        raise InputError(
            f"Expected a protocol of {', '.join(PROTOCOLS)}; found “{name}”, which this version "
            "does not know: read the run as it is, or check its case again by another protocol."
        )
    return PROTOCOLS[name]


def list_protocols(roster: RosterConfig | None) -> tuple[str, ...]:
    """Return the protocols that fit a roster, the audit last; None is the built-in engine."""
    has_readers = roster is None or any(debater.seat.is_built_in for debater in roster.debaters)
    return (*(READER_PROTOCOLS if has_readers else PROTOCOL_NAMES), AUDIT)


def require_protocol(plan: Plan) -> None:
    """Raise InputError if the plan's protocol is unknown or does not fit its roster."""
    if plan.protocol == AUDIT:
        return
    find_protocol(plan.protocol)
    offered = list_protocols(plan.sheet)
    if plan.protocol not in offered:
        raise InputError(
            f"Expected a protocol of {', '.join(offered)} for roster {plan.roster}, found "
            f"{plan.protocol}: {READERS_CANNOT_DEBATE} Choose one of these, or a roster whose "
            f"debaters are "
            "all language models."
        )


def get_follow_up_debate(plan: Plan) -> DebateProtocol | None:
    """Return the debate that an adaptive check may continue with; None for other protocols."""
    return choose_debate(DEBATES, plan) if plan.protocol == "adaptive" else None


def _list_protocols(plan: Plan) -> tuple[DebateProtocol, ...]:
    """Return the plan's protocol and, for an adaptive check, the debate it may continue with."""
    then = get_follow_up_debate(plan)
    return (get_plan_protocol(plan), then) if then else (get_plan_protocol(plan),)


def list_modes(plan: Plan) -> tuple[tuple[TurnMode, ...], tuple[JudgeMode, ...]]:
    """Return the modes in which the plan asks its debaters and its judge."""
    protocols = _list_protocols(plan)
    turn_modes = dict.fromkeys(chain.from_iterable(each.turn_modes for each in protocols))
    judge_modes = dict.fromkeys(chain.from_iterable(each.judge_modes for each in protocols))
    return tuple(turn_modes), tuple(judge_modes)


def list_writing_prompts(plan: Plan) -> tuple[str, ...]:
    """Return the names of the prompts that the plan gives the context writer."""
    return tuple(dict.fromkeys(chain.from_iterable(each.writing for each in _list_protocols(plan))))


def weighs_answers(plan: Plan) -> bool:
    """Return True if the plan's debate weighs the debaters' answers."""
    return any(each.is_weighed for each in _list_protocols(plan))


def uses_learned_weights(plan: Plan) -> bool:
    """Return True if learned weights would count in the plan's debate."""
    return weighs_answers(plan) and plan.options.without != "weights"


def list_options(plan: Plan) -> tuple[ProtocolOption, ...]:
    """Return the options of the plan's protocol and of its later debate; an audit has none."""
    protocols = () if plan.protocol == AUDIT else _list_protocols(plan)
    return tuple(dict.fromkeys(chain.from_iterable(each.options for each in protocols)))


def has_turns(plan: Plan) -> bool:
    """Return True if `max_turns` limits the plan's debate; an audit debates as CEDA does."""
    return plan.protocol == AUDIT or "turns" in list_options(plan)


def require_options(plan: Plan) -> None:
    """Raise InputError for an option that the plan's protocol lacks; a seed is always allowed."""
    options, available = plan.options, list_options(plan)
    for number in (options.rounds, options.samples):
        if not 0 <= number <= MAX_ROUNDS:
            raise InputError(
                f"Expected 0 to {MAX_ROUNDS} rounds and samples, 0 for the protocol's own; found "
                f"{number}."
            )
    if options.then and (options.then not in DEBATES and plan.protocol == "adaptive"):
        raise InputError(f"Expected a debate of {', '.join(DEBATES)}; found “{options.then}”.")
    for name, words in OPTION_FLAGS.items():
        if name not in available and getattr(options, name) != getattr(DEFAULT_OPTIONS, name):
            known = ", ".join(OPTION_FLAGS[each] for each in available if each in OPTION_FLAGS)
            advice = f"it has {known}" if known else "nothing can be chosen of it"
            raise InputError(
                f"Expected no {words} with protocol {plan.protocol}, found one: {advice}. Leave it "
                "out, or choose another protocol."
            )


def assign_judge(plan: Plan, roster: RosterConfig) -> RosterConfig:
    """Return the roster with the judge that the plan's protocol requires.

    Where the debaters are language models and the judge is built in, the first debater's model
    judges, if the protocol says so. A roster with a model as judge keeps it. Source: ColMAD 4.3
    (the first debater's model is the judge's by default).
    """
    seats = [debater.seat for debater in roster.debaters]
    are_models = bool(seats) and not any(agent.is_built_in for agent in seats)
    is_by_first = any(each.is_judged_by_first for each in _list_protocols(plan))
    if not (is_by_first and are_models and roster.judge.is_built_in):
        return roster
    longest = max(seats[0].max_tokens, roster.judge.max_tokens)
    return replace(roster, judge=replace(seats[0], max_tokens=longest))


def list_deciding_agents(plan: Plan, roster: RosterConfig) -> tuple[AgentConfig, ...]:
    """Return the language models whose word makes the plan's verdict, each once.

    These are the judge's, the debaters' where they vote, and an audit's tool picker, reflector and
    judge.
    """
    roster = assign_judge(plan, roster)
    seats: list[AgentConfig] = []
    for protocol in _list_protocols(plan):
        if plan.protocol == AUDIT:
            seats += [roster.tool_picker, roster.reflector, roster.judge]
        elif set(protocol.judge_modes) - {"rerank"}:
            seats.append(roster.judge)
        else:
            seats += [debater.seat for debater in roster.debaters[: protocol.debater_count]]
    models = {(agent.model, agent.api_base): agent for agent in seats if not agent.is_built_in}
    return tuple(models.values())


def require_context_window(plan: Plan, roster: RosterConfig, case: Case, book: PromptBook) -> None:
    """Raise InputError if a model's context window cannot take its shortest question."""
    fence = Fence.of_run("")
    for role, agent, prompt in _list_questions(plan, assign_judge(plan, roster), case):
        if not agent.is_built_in:
            needed = _count_shortest_tokens(prompt, case, book, fence)
            if needed + agent.max_tokens > window_of(agent):
                raise InputError(
                    f"Nothing was asked. {window_too_small_message(role, agent, needed)}"
                )


def _count_shortest_tokens(name: str, case: Case, book: PromptBook, fence: Fence) -> int:
    """Return the tokens of the shortest question that this prompt can become."""
    values = {
        "role": case.role or Project.role,
        "instruction": case.instruction or Project.instruction,
        "claim": case.response,
        "response": case.response,
        "question": case.question,
    }
    fields = {
        field: "" if field in SHORT_FIELDS else fence.around("field", values.get(field, ""))
        for field in FIELDS[name]
    }
    tokens = count_message_tokens(fill_prompt(book.prompt(name, case.language), fields))
    if EVIDENCE_FIELDS.intersection(fields) and (case.documents or case.images):
        tokens += SHORTEST_PASSAGE_TOKENS
    return tokens + (
        SHORTEST_DEBATE_TURNS * SHORTEST_TURN_TOKENS if DEBATE_FIELDS.intersection(fields) else 0
    )


def _list_questions(
    plan: Plan, roster: RosterConfig, case: Case
) -> Iterator[tuple[str, AgentConfig, str]]:
    """Yield (role, agent, prompt) for everything that is asked if the debate runs to its end.

    For an adaptive check this includes the debate that it may continue with. Questions that a
    tool picker's tools ask are not included.
    """
    yield "segmenter", roster.segmenter, "segment"
    if case.images:
        yield "image reader", roster.image_reader, "image_question"
    turn_modes, judge_modes = list_modes(plan)
    protocol = get_follow_up_debate(plan) or get_plan_protocol(plan)
    calls = protocol.calls(len(roster.debaters), plan)
    times = {"context": calls.context, "summary": calls.summaries, "corrected": calls.revisions}
    for prompt, count in times.items():
        if count:
            yield "context writer", roster.context_writer, prompt
    speaking = roster.debaters[: protocol.debater_count][:: -1 if plan.options.is_swapped else 1]
    for debater, mode in product(speaking[: calls.turns], turn_modes):
        revision_tokens = estimate_tokens(case.response) if mode == "revise" else 0
        longest = limit_turn_tokens(mode, debater.seat.max_tokens, revision_tokens)
        yield f"debater {debater.name}", replace(debater.seat, max_tokens=longest), mode
    style = plan.options.style or JUDGE_STYLES[0]
    for judge_mode in judge_modes:
        if judge_mode not in JUDGE_STYLES or judge_mode == style:
            yield "judge", roster.judge, get_judge_prompt_name(judge_mode)
    if len(roster.span_panel) > 1:
        for number, agent in enumerate(roster.span_panel, 1):
            yield f"span panel {number}", agent, "panel_spans"
            yield f"span panel {number}", agent, "panel_votes"
    else:
        yield "span extractor", roster.span_extractor, "spans"
        yield "span adjudicator", roster.span_adjudicator, "span_vote"
