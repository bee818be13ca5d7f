"""All protocols of debate by name, and whether a check's models have room for their questions.

The audit, which debates only what stays open, is elsewhere. A question in its shortest form is the
prompt around the response, one passage of the evidence and the beginning of two turns, beside the
longest answer: what grows in a debate is cut to the window (`core/agents/transcript.py`), and these
are not, so a window that is too small is found out before any model is asked.
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

_FOUND: dict[str, DebateProtocol] = {
    value.name: value
    for module in sorted({way.module for way in PROTOCOL_INFOS if way.module})
    for value in vars(import_module(f"core.debate.{module}")).values()
    if isinstance(value, DebateProtocol)
}
DEBATES: Mapping[str, DebateProtocol] = {name: _FOUND[name] for name in DEBATE_NAMES}
_FOUND["adaptive"] = over(DEBATES)
PROTOCOLS: Mapping[str, DebateProtocol] = {name: _FOUND[name] for name in NAMES}
# As the command line has them; turns are the project's, and the seed goes with everything.
OPTION_WORDS: Mapping[Option, str] = {
    "rounds": "--rounds", "samples": "--samples", "style": "--style",
    "is_swapped": "--swap", "then": "--then", "without": "--without",
}  # fmt: skip

WHY_READERS = "built-in readers say the same in every round, so they cannot debate in it."


def protocol_of(plan: Plan) -> DebateProtocol:
    """The plan's own; CEDA's for an audit, which debates as it does."""
    return PROTOCOLS.get(plan.protocol, CEDA)


def protocol_named(name: str) -> DebateProtocol:
    """The protocol that a run argues by. Raises InputError: this version does not know it."""
    if name not in PROTOCOLS:
        raise InputError(
            f"Expected a protocol of {', '.join(PROTOCOLS)}; found “{name}”, which this version "
            "does not know: read the run as it is, or check its case again by another protocol."
        )
    return PROTOCOLS[name]


def offered_to(sheet: RosterConfig | None) -> tuple[str, ...]:
    """The names of what a roster can be checked by, the audit last; None is the built-in engine."""
    has_readers = sheet is None or any(own.seat.is_built_in for own in sheet.debaters)
    return (*(FOR_READERS if has_readers else NAMES), AUDIT)


def require_protocol(plan: Plan) -> None:
    """Refuse (InputError) a protocol that is not known here, or not the roster's to argue by."""
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
    """The debate that an adaptive check goes on to, where it has to; None of all others."""
    return next_of(DEBATES, plan) if plan.protocol == "adaptive" else None


def _held_in(plan: Plan) -> tuple[DebateProtocol, ...]:
    """The plan's protocol, and the debate that it goes on to where it has one."""
    then = then_of(plan)
    return (protocol_of(plan), then) if then else (protocol_of(plan),)


def manners_of(plan: Plan) -> tuple[tuple[Manner, ...], tuple[JudgeManner, ...]]:
    """How debaters, and the judge, are asked by such a plan."""
    own = _held_in(plan)
    manners = dict.fromkeys(chain.from_iterable(one.manners for one in own))
    return tuple(manners), tuple(dict.fromkeys(chain.from_iterable(one.judging for one in own)))


def writing_of(plan: Plan) -> tuple[str, ...]:
    """The prompts that the context writer's seat is asked by in such a plan."""
    return tuple(dict.fromkeys(chain.from_iterable(one.writing for one in _held_in(plan))))


def is_weighed(plan: Plan) -> bool:
    """Whether debaters' answers are weighed in such a plan's debate."""
    return any(one.is_weighed for one in _held_in(plan))


def may_be_learned(plan: Plan) -> bool:
    """Whether learned weights would count in it: they are weighed, and not left out."""
    return is_weighed(plan) and plan.options.without != "weights"


def options_of(plan: Plan) -> tuple[Option, ...]:
    """What can be chosen of the plan's protocol and of the debate it goes on to; of audits none."""
    own = () if plan.protocol == AUDIT else _held_in(plan)
    return tuple(dict.fromkeys(chain.from_iterable(one.options for one in own)))


def has_turns(plan: Plan) -> bool:
    """Whether the plan's `max_turns` bounds a debate in it; an audit debates as CEDA does."""
    return plan.protocol == AUDIT or "turns" in options_of(plan)


def require_options(plan: Plan) -> None:
    """Refuse (InputError) what a protocol does not have; a seed is never refused."""
    options, has = plan.options, options_of(plan)
    for number in (options.rounds, options.samples):
        if not 0 <= number <= MOST_ROUNDS:
            raise InputError(
                f"Expected 0 to {MOST_ROUNDS} rounds and samples, 0 for the protocol's own; found "
                f"{number}."
            )
    if options.then and (options.then not in DEBATES and plan.protocol == "adaptive"):
        raise InputError(f"Expected a debate of {', '.join(DEBATES)}; found “{options.then}”.")
    for name, words in OPTION_WORDS.items():
        if name not in has and getattr(options, name) != getattr(AS_IS, name):
            can = ", ".join(OPTION_WORDS[own] for own in has if own in OPTION_WORDS)
            rest = f"it has {can}" if can else "nothing can be chosen of it"
            raise InputError(
                f"Expected no {words} with protocol {plan.protocol}, found one: {rest}. Leave it "
                "out, or choose another protocol."
            )


def seated_for(plan: Plan, sheet: RosterConfig) -> RosterConfig:
    """The sheet as the plan's protocol seats it: a built-in agent does not judge models' debates.

    A roster that seats a model as judge keeps it. Source: ColMAD 4.3 (the first debater's model
    is the judge's by default).
    """
    seats = [debater.seat for debater in sheet.debaters]
    are_models = bool(seats) and not any(seat.is_built_in for seat in seats)
    is_by_first = any(one.is_judged_by_first for one in _held_in(plan))
    if not (is_by_first and are_models and sheet.judge.is_built_in):
        return sheet
    longest = max(seats[0].max_tokens, sheet.judge.max_tokens)
    return replace(sheet, judge=replace(seats[0], max_tokens=longest))


def deciding_seats(plan: Plan, sheet: RosterConfig) -> tuple[Seat, ...]:
    """The language models whose word makes the plan's verdict, each once.

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


BARE = frozenset({"debater", "debaters", "about", "assigned", "language", "revisions"})
DEBATE, EVIDENCE = frozenset({"heard", "transcript"}), frozenset({"evidence", "passages"})
SPEAKERS = 2
TURN_TOKENS, PASSAGE_TOKENS = LEAST_TOKENS + 16, 70


def require_room(plan: Plan, sheet: RosterConfig, case: Case, book: PromptBook) -> None:
    """Refuse (InputError) a check in which a model could not be asked its shortest question."""
    fence = Fence.of_run("")
    for role, seat, prompt in _questions(plan, seated_for(plan, sheet), case):
        if not seat.is_built_in:
            needed = _shortest(prompt, case, book, fence)
            if needed + seat.max_tokens > window_of(seat):
                raise InputError(f"Nothing was asked. {too_small(role, seat, needed)}")


def _shortest(name: str, case: Case, book: PromptBook, fence: Fence) -> int:
    known = {
        "role": case.role or Project.role,
        "instruction": case.instruction or Project.instruction,
        "claim": case.response,
        "response": case.response,
        "question": case.question,
    }
    fields = {
        field: "" if field in BARE else fence.around("field", known.get(field, ""))
        for field in FIELDS[name]
    }
    tokens = words_tokens(filled(book.prompt(name, case.language), fields))
    if EVIDENCE.intersection(fields) and (case.documents or case.images):
        tokens += PASSAGE_TOKENS
    return tokens + (SPEAKERS * TURN_TOKENS if DEBATE.intersection(fields) else 0)


def _questions(plan: Plan, sheet: RosterConfig, case: Case) -> Iterator[tuple[str, Seat, str]]:
    """(role, seat, prompt) of all that is asked where the debate goes its length.

    Of an adaptive check these are also those of the debate that it may go on to; a picker's tools
    ask their own.
    """
    yield "segmenter", sheet.segmenter, "segment"
    if case.images:
        yield "image reader", sheet.image_reader, "image_question"
    manners, judging = manners_of(plan)
    protocol = then_of(plan) or protocol_of(plan)
    calls = protocol.calls(len(sheet.debaters), plan)
    times = {"context": calls.context, "summary": calls.summaries, "corrected": calls.revisions}
    for prompt, asked in times.items():
        if asked:
            yield "context writer", sheet.context_writer, prompt
    speaking = sheet.debaters[: protocol.seats][:: -1 if plan.options.is_swapped else 1]
    for debater, manner in product(speaking[: calls.turns], manners):
        mended = estimated_tokens(case.response) if manner == "revise" else 0
        longest = turn_tokens(manner, debater.seat.max_tokens, mended)
        yield f"debater {debater.name}", replace(debater.seat, max_tokens=longest), manner
    style = plan.options.style or STYLES[0]
    for own in judging:
        if own not in STYLES or own == style:
            yield "judge", sheet.judge, judge_prompt(own)
    if len(sheet.span_panel) > 1:
        for number, seat in enumerate(sheet.span_panel, 1):
            yield f"span panel {number}", seat, "panel_spans"
            yield f"span panel {number}", seat, "panel_votes"
    else:
        yield "span extractor", sheet.span_extractor, "spans"
        yield "span adjudicator", sheet.span_adjudicator, "span_vote"
