"""All protocols of debate by name, and whether a check's models have room for their questions.

The audit, which debates only what stays open, is elsewhere. A question in its shortest form is the
prompt around the response, one passage of the evidence and the beginning of two turns, beside the
longest answer: what grows in a debate is cut to the window (`core/agents/transcript.py`), and these
are not, so a window that is too small is found out before any model is asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from importlib import import_module

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
    RosterSheet,
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
    """The protocol that a run argues by.

    Raises:
        InputError: there is none of that name here, as in a run that came from another version.
    """
    if name not in PROTOCOLS:
        raise InputError(
            f"Expected a protocol of {', '.join(PROTOCOLS)}; found “{name}”, which this version "
            "does not know: read the run as it is, or check its case again by another protocol."
        )
    return PROTOCOLS[name]


def offered_to(sheet: RosterSheet | None) -> tuple[str, ...]:
    """The names of what a roster can be checked by, the audit last; None is the built-in engine."""
    has_readers = sheet is None or any(own.seat.is_built_in for own in sheet.debaters)
    return (*(FOR_READERS if has_readers else NAMES), AUDIT)


def require_protocol(plan: Plan) -> None:
    """Refuse a protocol that is not known here, or that the plan's roster cannot argue by.

    Raises:
        InputError: with the protocols that can be chosen instead.
    """
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
    manners = dict.fromkeys(manner for one in own for manner in one.manners)
    judging = dict.fromkeys(manner for one in own for manner in one.judging)
    return tuple(manners), tuple(judging)


def writing_of(plan: Plan) -> tuple[str, ...]:
    """The prompts that the context writer's seat is asked by in such a plan."""
    own = _held_in(plan)
    return tuple(dict.fromkeys(prompt for one in own for prompt in one.writing))


def is_weighed(plan: Plan) -> bool:
    """Whether debaters' answers are weighed in such a plan's debate."""
    return any(one.is_weighed for one in _held_in(plan))


def may_be_learned(plan: Plan) -> bool:
    """Whether learned weights would count in it: they are weighed, and not left out."""
    return is_weighed(plan) and plan.options.without != "weights"


def options_of(plan: Plan) -> tuple[Option, ...]:
    """What can be chosen of such a plan's protocol, and of the debate that it goes on to.

    Nothing of an audit: it debates only what stays contested.
    """
    if plan.protocol == AUDIT:
        return ()
    own = _held_in(plan)
    return tuple(dict.fromkeys(option for one in own for option in one.options))


def has_turns(plan: Plan) -> bool:
    """Whether the plan's `max_turns` bounds a debate in it; an audit debates as CEDA does."""
    return plan.protocol == AUDIT or "turns" in options_of(plan)


def require_options(plan: Plan) -> None:
    """Refuse what was chosen of a protocol that does not have it.

    The seed is never refused: whoever throws no coin is the same for every seed.

    Raises:
        InputError: with the option's name and those that the protocol has.
    """
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


def seated_for(plan: Plan, sheet: RosterSheet) -> RosterSheet:
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


BARE = frozenset({"debater", "debaters", "about", "assigned", "language", "revisions"})
DEBATE, EVIDENCE = frozenset({"heard", "transcript"}), frozenset({"evidence", "passages"})
SPEAKERS = 2
TURN_TOKENS, PASSAGE_TOKENS = LEAST_TOKENS + 16, 70


@dataclass(frozen=True)
class _Question:
    """A prompt by its name, and who is asked by it."""

    role: str
    seat: Seat
    prompt: str


def require_room(plan: Plan, sheet: RosterSheet, case: Case, book: PromptBook) -> None:
    """Refuse a check in which a model could be asked its question not even in the shortest form.

    Raises:
        InputError: with the role, the model, its window, and what is needed.
    """
    fence = Fence.of_run("")
    for asked in _questions(plan, seated_for(plan, sheet), case):
        if asked.seat.is_built_in:
            continue
        needed = _shortest(asked.prompt, case, book, fence)
        if needed + asked.seat.max_tokens > window_of(asked.seat):
            raise InputError(f"Nothing was asked. {too_small(asked.role, asked.seat, needed)}")


def _shortest(name: str, case: Case, book: PromptBook, fence: Fence) -> int:
    """Tokens of the shortest question by that prompt."""
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
    has_evidence = EVIDENCE.intersection(fields) and (case.documents or case.images)
    evidence = PASSAGE_TOKENS if has_evidence else 0
    debate = SPEAKERS * TURN_TOKENS if DEBATE.intersection(fields) else 0
    return words_tokens(filled(book.prompt(name, case.language), fields)) + evidence + debate


def _questions(plan: Plan, sheet: RosterSheet, case: Case) -> Iterator[_Question]:
    """What every such check asks where its debate goes its length; a picker's tools ask their own.

    Of an adaptive check these are also those of the debate that it may go on to.
    """
    yield _Question("segmenter", sheet.segmenter, "segment")
    if case.images:
        yield _Question("image reader", sheet.image_reader, "image_question")
    manners, judging = manners_of(plan)
    style = plan.options.style or STYLES[0]
    yield from _writing(plan, sheet)
    for name, seat in _speakers(plan, sheet):
        for manner in manners:
            mended = estimated_tokens(case.response) if manner == "revise" else 0
            longest = turn_tokens(manner, seat.max_tokens, mended)
            yield _Question(f"debater {name}", replace(seat, max_tokens=longest), manner)
    for asked in judging:
        if asked not in STYLES or asked == style:
            yield _Question("judge", sheet.judge, judge_prompt(asked))
    if len(sheet.span_panel) > 1:
        for number, seat in enumerate(sheet.span_panel, 1):
            yield _Question(f"span panel {number}", seat, "panel_spans")
            yield _Question(f"span panel {number}", seat, "panel_votes")
        return
    yield _Question("span extractor", sheet.span_extractor, "spans")
    yield _Question("span adjudicator", sheet.span_adjudicator, "span_vote")


def _writing(plan: Plan, sheet: RosterSheet) -> Iterator[_Question]:
    calls = (then_of(plan) or protocol_of(plan)).calls(len(sheet.debaters), plan)
    times = {"context": calls.context, "summary": calls.summaries, "corrected": calls.revisions}
    for prompt, asked in times.items():
        if asked:
            yield _Question("context writer", sheet.context_writer, prompt)


def _speakers(plan: Plan, sheet: RosterSheet) -> list[tuple[str, Seat]]:
    """Those who may speak."""
    protocol = then_of(plan) or protocol_of(plan)
    turns = protocol.calls(len(sheet.debaters), plan).turns
    speaking = sheet.debaters[: protocol.seats][:: -1 if plan.options.is_swapped else 1]
    return [(debater.name, debater.seat) for debater in speaking[:turns]]
