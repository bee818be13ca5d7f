"""The debate protocols by name, what can be chosen of each, and whether models can hold them.

The audit, which debates only what stays open, is in `core/pipeline`. `require_room` refuses models
with too small a context window before any is asked: a question in its shortest form is the prompt
with the response, one passage of the evidence and the beginning of two turns, beside the longest
answer. What grows during a debate is cut to the window (`core/agents/transcript.py`); these parts
are not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib import import_module
from itertools import chain, product

from core.agents.agent_runner import too_small
from core.agents.transcript import LEAST_TOKENS
from core.debate import NAMES
from core.debate.independent import next_of, over
from core.debate.sequential import CEDA
from core.debate.state import DebateProtocol
from core.llm.limits import estimated_tokens, window_of, words_tokens
from core.llm.prompting import FIELDS, Fence, PromptBook, filled
from core.runtime.errors import InputError
from core.schema.events import AUDIT
from core.schema.records import Case, Plan, Project
from core.schema.rosters import (
    AS_IS,
    DEBATE_NAMES,
    FOR_READERS,
    MOST_ROUNDS,
    PROTOCOL_INFOS,
    STYLES,
    JudgeManner,
    Manner,
    Option,
    RosterConfig,
    Seat,
    judge_prompt,
    turn_tokens,
)

# Fields that a question in its shortest form leaves empty.
BARE = frozenset({"debater", "debaters", "about", "assigned", "language", "revisions"})
DEBATE, EVIDENCE = frozenset({"heard", "transcript"}), frozenset({"evidence", "passages"})
SPEAKERS = 2
TURN_TOKENS, PASSAGE_TOKENS = LEAST_TOKENS + 16, 70

_BY_NAME: dict[str, DebateProtocol] = {
    value.name: value
    for module in sorted({info.module for info in PROTOCOL_INFOS if info.module})
    for value in vars(import_module(f"core.debate.{module}")).values()
    if isinstance(value, DebateProtocol)
}
DEBATES: Mapping[str, DebateProtocol] = {name: _BY_NAME[name] for name in DEBATE_NAMES}
_BY_NAME["adaptive"] = over(DEBATES)
PROTOCOLS: Mapping[str, DebateProtocol] = {name: _BY_NAME[name] for name in NAMES}
# The command-line options; turns belong to the project, and the seed fits every protocol.
OPTION_WORDS: Mapping[Option, str] = {
    "rounds": "--rounds", "samples": "--samples", "style": "--style",
    "is_swapped": "--swap", "then": "--then", "without": "--without",
}  # fmt: skip

WHY_READERS = "built-in readers say the same in every round, so they cannot debate in it."


def protocol_of(plan: Plan) -> DebateProtocol:
    """Return the plan's protocol, or CEDA for an audit, which debates by it."""
    return PROTOCOLS.get(plan.protocol, CEDA)


def protocol_named(name: str) -> DebateProtocol:
    """Return the protocol of that name. Raises InputError if this version does not know it."""
    if name not in PROTOCOLS:
        raise InputError(
            f"Expected a protocol of {', '.join(PROTOCOLS)}; found “{name}”, which this version "
            "does not know: read the run as it is, or check its case again by another protocol."
        )
    return PROTOCOLS[name]


def offered_to(sheet: RosterConfig | None) -> tuple[str, ...]:
    """Return the protocols that fit a roster, the audit last; None is the built-in engine."""
    has_readers = sheet is None or any(debater.seat.is_built_in for debater in sheet.debaters)
    return (*(FOR_READERS if has_readers else NAMES), AUDIT)


def require_protocol(plan: Plan) -> None:
    """Raise InputError if the plan's protocol is unknown or does not fit its roster."""
    if plan.protocol == AUDIT:
        return
    protocol_named(plan.protocol)
    offered = offered_to(plan.sheet)
    if plan.protocol not in offered:
        raise InputError(
            f"Expected a protocol of {', '.join(offered)} for roster {plan.roster}, found "
            f"{plan.protocol}: {WHY_READERS} Choose one of these, or a roster whose debaters are "
            "all language models."
        )


def then_of(plan: Plan) -> DebateProtocol | None:
    """Return the debate that an adaptive check may continue with; None for other protocols."""
    return next_of(DEBATES, plan) if plan.protocol == "adaptive" else None


def _list_protocols(plan: Plan) -> tuple[DebateProtocol, ...]:
    """Return the plan's protocol and, for an adaptive check, the debate it may continue with."""
    then = then_of(plan)
    return (protocol_of(plan), then) if then else (protocol_of(plan),)


def manners_of(plan: Plan) -> tuple[tuple[Manner, ...], tuple[JudgeManner, ...]]:
    """Return the manners in which the plan asks its debaters and its judge."""
    protocols = _list_protocols(plan)
    manners = dict.fromkeys(chain.from_iterable(each.manners for each in protocols))
    judging = dict.fromkeys(chain.from_iterable(each.judging for each in protocols))
    return tuple(manners), tuple(judging)


def writing_of(plan: Plan) -> tuple[str, ...]:
    """Return the names of the prompts that the plan gives the context writer."""
    return tuple(dict.fromkeys(chain.from_iterable(each.writing for each in _list_protocols(plan))))


def is_weighed(plan: Plan) -> bool:
    """Return True if the plan's debate weighs the debaters' answers."""
    return any(each.is_weighed for each in _list_protocols(plan))


def may_be_learned(plan: Plan) -> bool:
    """Return True if learned weights would count in the plan's debate."""
    return is_weighed(plan) and plan.options.without != "weights"


def options_of(plan: Plan) -> tuple[Option, ...]:
    """Return the options of the plan's protocol and of its later debate; an audit has none."""
    protocols = () if plan.protocol == AUDIT else _list_protocols(plan)
    return tuple(dict.fromkeys(chain.from_iterable(each.options for each in protocols)))


def has_turns(plan: Plan) -> bool:
    """Return True if `max_turns` limits the plan's debate; an audit debates as CEDA does."""
    return plan.protocol == AUDIT or "turns" in options_of(plan)


def require_options(plan: Plan) -> None:
    """Raise InputError for an option that the plan's protocol lacks; a seed is always allowed."""
    options, available = plan.options, options_of(plan)
    for number in (options.rounds, options.samples):
        if not 0 <= number <= MOST_ROUNDS:
            raise InputError(
                f"Expected 0 to {MOST_ROUNDS} rounds and samples, 0 for the protocol's own; found "
                f"{number}."
            )
    if options.then and (options.then not in DEBATES and plan.protocol == "adaptive"):
        raise InputError(f"Expected a debate of {', '.join(DEBATES)}; found “{options.then}”.")
    for name, words in OPTION_WORDS.items():
        if name not in available and getattr(options, name) != getattr(AS_IS, name):
            known = ", ".join(OPTION_WORDS[each] for each in available if each in OPTION_WORDS)
            advice = f"it has {known}" if known else "nothing can be chosen of it"
            raise InputError(
                f"Expected no {words} with protocol {plan.protocol}, found one: {advice}. Leave it "
                "out, or choose another protocol."
            )


def seated_for(plan: Plan, sheet: RosterConfig) -> RosterConfig:
    """Return the roster with the judge that the plan's protocol requires.

    Where the debaters are language models and the judge is built in, the first debater's model
    judges, if the protocol says so. A roster with a model as judge keeps it. Source: ColMAD 4.3
    (the first debater's model is the judge's by default).
    """
    seats = [debater.seat for debater in sheet.debaters]
    are_models = bool(seats) and not any(seat.is_built_in for seat in seats)
    is_by_first = any(each.is_judged_by_first for each in _list_protocols(plan))
    if not (is_by_first and are_models and sheet.judge.is_built_in):
        return sheet
    longest = max(seats[0].max_tokens, sheet.judge.max_tokens)
    return replace(sheet, judge=replace(seats[0], max_tokens=longest))


def deciding_seats(plan: Plan, sheet: RosterConfig) -> tuple[Seat, ...]:
    """Return the language models whose word makes the plan's verdict, each once.

    These are the judge's, the debaters' where they vote, and an audit's tool picker and judge.
    """
    sheet = seated_for(plan, sheet)
    if plan.protocol == AUDIT:
        seats = [sheet.tool_picker, sheet.judge]
    elif set(manners_of(plan)[1]) - {"rerank"}:
        seats = [sheet.judge]
    else:
        seats = [debater.seat for debater in sheet.debaters]
    models = {(seat.model, seat.api_base): seat for seat in seats if not seat.is_built_in}
    return tuple(models.values())


def require_room(plan: Plan, sheet: RosterConfig, case: Case, book: PromptBook) -> None:
    """Raise InputError if a model's context window cannot take its shortest question."""
    fence = Fence.of_run("")
    for role, seat, prompt in _list_questions(plan, seated_for(plan, sheet), case):
        if not seat.is_built_in:
            needed = _count_shortest_tokens(prompt, case, book, fence)
            if needed + seat.max_tokens > window_of(seat):
                raise InputError(f"Nothing was asked. {too_small(role, seat, needed)}")


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
        field: "" if field in BARE else fence.around("field", values.get(field, ""))
        for field in FIELDS[name]
    }
    tokens = words_tokens(filled(book.prompt(name, case.language), fields))
    if EVIDENCE.intersection(fields) and (case.documents or case.images):
        tokens += PASSAGE_TOKENS
    return tokens + (SPEAKERS * TURN_TOKENS if DEBATE.intersection(fields) else 0)


def _list_questions(plan: Plan, sheet: RosterConfig, case: Case) -> Iterator[tuple[str, Seat, str]]:
    """Yield (role, seat, prompt) for everything that is asked if the debate runs to its end.

    For an adaptive check this includes the debate that it may continue with. Questions that a
    tool picker's tools ask are not included.
    """
    yield "segmenter", sheet.segmenter, "segment"
    if case.images:
        yield "image reader", sheet.image_reader, "image_question"
    manners, judging = manners_of(plan)
    protocol = then_of(plan) or protocol_of(plan)
    calls = protocol.calls(len(sheet.debaters), plan)
    times = {"context": calls.context, "summary": calls.summaries, "corrected": calls.revisions}
    for prompt, count in times.items():
        if count:
            yield "context writer", sheet.context_writer, prompt
    speaking = sheet.debaters[: protocol.seats][:: -1 if plan.options.is_swapped else 1]
    for debater, manner in product(speaking[: calls.turns], manners):
        revision_tokens = estimated_tokens(case.response) if manner == "revise" else 0
        longest = turn_tokens(manner, debater.seat.max_tokens, revision_tokens)
        yield f"debater {debater.name}", replace(debater.seat, max_tokens=longest), manner
    style = plan.options.style or STYLES[0]
    for judge_manner in judging:
        if judge_manner not in STYLES or judge_manner == style:
            yield "judge", sheet.judge, judge_prompt(judge_manner)
    if len(sheet.span_panel) > 1:
        for number, seat in enumerate(sheet.span_panel, 1):
            yield f"span panel {number}", seat, "panel_spans"
            yield f"span panel {number}", seat, "panel_votes"
    else:
        yield "span extractor", sheet.span_extractor, "spans"
        yield "span adjudicator", sheet.span_adjudicator, "span_vote"
