"""How many turns and judgements a run's protocol asks for at most, and what was saved of them."""

from __future__ import annotations

from components.audit_rows import has_audit
from components.words import counted, protocol_words
from core.debate.floor import Calls
from core.debate.protocols import PROTOCOLS, has_turns, protocol_of, then_of
from core.manners import DebateOptions
from core.progress import Progress
from core.records import Plan

SETTLED = "Nothing stayed contested, so nobody had to argue."
UNARGUED = "Nobody argued: the label was found without a debate."
STYLE_WORDS = {"thought": "thinking aloud", "examples": "with examples"}
PART_WORDS = {
    "cooperation": "without advice",
    "adversary": "without attacks",
    "weights": "all answers alike",
}


def plan_words(plan: Plan) -> str:
    """The protocol and what was chosen of it; what was left to the protocol is not told."""
    then = then_of(plan)
    parts = [
        protocol_words(plan.protocol, short=True),
        f"then {protocol_words(then.name, short=True)}" if then else "",
        f"at most {counted(plan.max_turns, 'turn')}" if has_turns(plan) else "",
        _option_words(plan.options),
    ]
    return ", ".join(part for part in parts if part)


def chosen_words(plan: Plan) -> str:
    """The same without turns, which all plans have, and with no debate but one that was chosen."""
    then = plan.options.then and f"then {protocol_words(plan.options.then, short=True)}"
    parts = (protocol_words(plan.protocol, short=True), then, _option_words(plan.options))
    return ", ".join(part for part in parts if part)


def _option_words(options: DebateOptions) -> str:
    """What was chosen, but for the debate that is gone on to; empty where nothing was."""
    parts = [
        counted(options.rounds, "round") if options.rounds else "",
        counted(options.samples, "sample") if options.samples else "",
        STYLE_WORDS.get(options.style, ""),
        PART_WORDS.get(options.without, ""),
        "places changed" if options.is_swapped else "",
        f"seed {options.seed}" if options.seed else "",
    ]
    return ", ".join(part for part in parts if part)


def debate_words(progress: Progress) -> str:
    """What became of the debate: how long it was, or what it saved that there was none."""
    if progress.decided and not progress.decided.is_needed:
        return f"not held, which saved up to {_saved(progress)}"
    turns = counted(len(progress.turns), "turn")
    if progress.plan and progress.plan.protocol in PROTOCOLS and not progress.turns:
        return turns
    return f"{turns}, {'consensus reached' if progress.reached_consensus else 'no consensus'}"


def silence_words(progress: Progress) -> str:
    """Why there is no turn: nobody had to speak, or has yet."""
    if progress.decided and not progress.decided.is_needed:
        return f"The debate was {debate_words(progress)}. {progress.decided.why}"
    if progress.judgement is None:
        return "Nobody has spoken yet."
    return SETTLED if has_audit(progress) else UNARGUED


def expected_words(progress: Progress) -> str:
    """The most that the run's plan asks for; empty of an audit, and of runs that have no plan."""
    plan = progress.plan
    if plan is None or plan.protocol not in PROTOCOLS:
        return ""
    return _words(protocol_of(plan).calls(_debaters(progress), plan))


def _saved(progress: Progress) -> str:
    """What the debate that was not held would have asked for at most."""
    plan = progress.plan or Plan("adaptive")
    then = then_of(plan)
    if then is None:
        return "a debate"
    asked = _words(then.calls(_debaters(progress), plan))
    return f"{asked} of {protocol_words(then.name, short=True)}"


def _words(asked: Calls) -> str:
    """All calls by what they are for; none of a kind that is not asked for."""
    parts = (
        (asked.context, "context"),
        (asked.turns, "turn"),
        (asked.judgements, "judgement"),
        (asked.summaries, "summary"),
        (asked.revisions, "revision"),
    )
    return ", ".join(counted(number, noun) for number, noun in parts if number)


def _debaters(progress: Progress) -> int:
    """How many were seated."""
    return sum(used.role.startswith("debater ") for used in progress.roles)
