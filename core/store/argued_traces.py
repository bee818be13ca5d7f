"""What pages rely on in a debate that comes from a file: its turns, judgements, weights and texts.

Each check raises `InputError` with one sentence; `core/store/traces.py` says when each is made.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from core.argued import LONGEST_REMARK, ConsensusWeighed, JudgementSampled, PersonSpoke
from core.errors import InputError
from core.events import Event, JudgementReached
from core.manners import DEBATE_NAMES, MOST_ROUNDS, DebateOptions
from core.records import Plan, Turn

ROUNDING = 1e-9  # shares are sums of parts
DIGIT = 1e-4  # weights are told to so much each: three alike sum to 0.9999
MOST_TURNS = 100_000  # as many as a trace may have events
LONGEST_SAID = 1_000_000  # characters; as long as any setting lets a response be
LONGEST_TIME = 4e9  # seconds
MOST_DOLLARS = 1e9
MOST_TOKENS = 10**12


@dataclass
class Argued:
    """What a trace has told of its debate so far; `require` refuses what cannot follow it."""

    turns: set[int] = field(default_factory=set)
    rounds: set[int] = field(default_factory=set)
    samples: set[int] = field(default_factory=set)
    is_judged: bool = False

    def require(self, event: Event) -> None:
        """Plans, turns, judgements, weights and remarks as a debate of ours can have them."""
        _require_used(event)
        match event.kind:
            case "run_started":
                require_plan(event.plan)
            case "debate_decided":
                _require_debate(event.then)
            case "turn_started":
                _require_numbers(event.number, event.round)
            case "turn_finished":
                self._take_turn(event.turn)
            case "round_summarised":
                _require(
                    event.round in self.rounds,
                    "summaries of rounds that were held",
                    f"one of round {event.round}",
                )
            case "judgement_reached" | "judgement_sampled":
                self._take_judgement(event)
            case "consensus_weighed":
                _require_weights(event)
            case "person_spoke":
                _require_remark(event)

    def _take_turn(self, turn: Turn) -> None:
        _require_numbers(turn.number, turn.round)
        again = f"turn {turn.number}"
        _require(turn.number not in self.turns, "each turn once", f"{again} again")
        _require(not self.is_judged, "the judgement after all turns", f"{again} after it")
        require_shares(turn.confidence)
        self.turns.add(turn.number)
        self.rounds.add(turn.round)

    def _take_judgement(self, event: JudgementReached | JudgementSampled) -> None:
        """A judgement with a p that is one; several are numbered from 1, each once."""
        require_shares(event.judgement.p)
        _require(not self.is_judged, "one judgement at the debate’s end", "another after it")
        if event.kind == "judgement_reached":
            self.is_judged = True
            return
        number = event.number
        _require(1 <= number <= MOST_TURNS, "judgements numbered from 1", f"number {number}")
        _require(number not in self.samples, "each judgement once", f"number {number} again")
        self.samples.add(number)


def _require(is_so: bool, expected: str, found: str) -> None:
    if not is_so:
        raise InputError(f"Expected {expected} in the trace, found {found}.")


def require_shares(*shares: float | None) -> None:
    """Probabilities, weights and confidences, where there are any."""
    for share in shares:
        if share is not None and not -ROUNDING <= share <= 1 + ROUNDING:
            raise InputError(f"Expected probabilities from 0 to 1 in the trace, found {share}.")


def require_lengths(body: object) -> None:
    """No text anywhere in a trace's plain values that pages could not draw."""
    waiting = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            if len(value) > LONGEST_SAID:
                raise InputError(
                    f"Expected texts of at most {LONGEST_SAID:,} characters in the trace, found "
                    f"one of {len(value):,}."
                )
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, dict):
            waiting += (*value, *value.values())


def require_plan(plan: Plan) -> None:
    """Turns, rounds, samples and a debate that can be chosen here: pages count calls by them."""
    _require(0 <= plan.max_turns <= MOST_TURNS, "a number of turns", f"{plan.max_turns:g} of them")
    _require_chosen(plan.options)
    _require_debate(plan.options.then)


def _require_chosen(options: DebateOptions) -> None:
    for number in (options.rounds, options.samples):
        if not 0 <= number <= MOST_ROUNDS:
            raise InputError(
                f"Expected 0 to {MOST_ROUNDS} rounds and samples in the trace, found {number}."
            )


def _require_debate(name: str) -> None:
    """One that an adaptive check goes on to, or none."""
    known = ", ".join(DEBATE_NAMES)
    _require(not name or name in DEBATE_NAMES, f"a debate of {known}", f"“{name[:40]}”")


def _require_numbers(number: int, round_: int) -> None:
    """A turn's number and round."""
    _require(1 <= number <= MOST_TURNS, "turns numbered from 1", f"number {number}")
    _require(0 <= round_ <= MOST_TURNS, "rounds numbered from 0", f"number {round_}")


def _require_used(event: Event) -> None:
    """Time, money and tokens that can have been used; a clock may have been set back."""
    used = event.call if event.kind == "model_called" else event
    seconds, cost = getattr(used, "seconds", 0.0), getattr(used, "cost", None) or 0.0
    _require(abs(seconds) <= LONGEST_TIME, "seconds that can have passed", f"{seconds:g}")
    _require(0 <= cost <= MOST_DOLLARS, "a cost that can have been paid", f"{cost:g} dollars")
    if event.kind == "model_called":
        for tokens in (event.call.tokens_in, event.call.tokens_out):
            _require(0 <= tokens <= MOST_TOKENS, "a number of tokens", f"{tokens:g}")


def _require_weights(event: ConsensusWeighed) -> None:
    """A weight for each agent once, and all of them together 1, but for their last digits."""
    require_shares(event.p, *(weight for _, weight in event.weights))
    names, whole = [name for name, _ in event.weights], math.fsum(w for _, w in event.weights)
    is_one = abs(whole - 1) <= DIGIT * (1 + len(names))
    if len(set(names)) < len(names) or not is_one:
        raise InputError(
            "Expected weights of unlike agents that sum to 1 in the trace, found others: "
            f"{len(names)} that sum to {whole:g}."
        )


def _require_remark(event: PersonSpoke) -> None:
    """Words that a person can have said here."""
    if not event.text.strip() or len(event.text) > LONGEST_REMARK:
        raise InputError(
            f"Expected remarks of 1 to {LONGEST_REMARK:,} characters in the trace, found one of "
            f"{len(event.text):,}."
        )
