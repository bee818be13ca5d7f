"""All protocols of debate by name; the audit, which debates only what stays open, is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from core.debate import NAMES
from core.debate.ceda import CEDA
from core.debate.colmad import COLMAD, COPMAD
from core.debate.independent import ENSEMBLE, SINGLE, next_of, over
from core.debate.mamm_refine import MAMM_REFINE
from core.debate.sc_maks import SC_MAKS
from core.debate.society import MAD, SOCIETY
from core.debate.state import DebateProtocol
from core.errors import InputError
from core.events import AUDIT
from core.records import Plan
from core.seats import (
    AS_IS,
    FOR_READERS,
    MOST_ROUNDS,
    JudgeManner,
    Manner,
    Option,
    RosterSheet,
)

DEBATES: Mapping[str, DebateProtocol] = {
    protocol.name: protocol
    for protocol in (
        CEDA,
        ENSEMBLE,
        COLMAD,
        COPMAD,
        SOCIETY,
        MAD,
        MAMM_REFINE,
        SC_MAKS,
    )
}
_ALL = {**DEBATES, "single": SINGLE, "adaptive": over(DEBATES)}
PROTOCOLS: Mapping[str, DebateProtocol] = {name: _ALL[name] for name in NAMES}
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
