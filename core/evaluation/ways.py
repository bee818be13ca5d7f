"""A way to argue as it is named to be measured: a protocol, perhaps with options of its own.

`colmad:rounds=1` is ColMAD with one round, `copmad:swap` is CopMAD judged both ways round, and
`sc_maks:without=adversary` SC-MAKS without its attacks. What is not said is the protocol's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from core.debate.protocols import PROTOCOLS
from core.errors import InputError
from core.manners import AS_IS, DEBATE_NAMES, MOST_ROUNDS, PARTS, STYLES, DebateOptions

NUMBERS = ("rounds", "samples", "seed")
WORDS: Mapping[str, tuple[str, ...]] = {
    "style": STYLES, "then": DEBATE_NAMES, "without": PARTS,
}  # fmt: skip
DIGITS = len(str(MOST_ROUNDS))


@dataclass(frozen=True)
class Way:
    """One way that is measured; `name` is what it was asked for by."""

    name: str
    protocol: str
    options: DebateOptions = AS_IS


def ways_of(text: str) -> tuple[Way, ...]:
    """The ways that a list names, each once, in its order.

    Raises:
        InputError: a protocol or option is not known, or a value is none of its own.
    """
    named = dict.fromkeys(part.strip() for part in text.split(","))
    return tuple(_way(name) for name in named)


def _way(name: str) -> Way:
    protocol, *chosen = name.split(":")
    if protocol not in PROTOCOLS:
        known = ", ".join(PROTOCOLS)
        raise InputError(f"Expected protocols of {known}; found “{protocol[:80]}”.")
    options = AS_IS
    for one in chosen:
        key, _, value = one.partition("=")
        options = replace(options, **_option(key, value))
    return Way(name, protocol, options)


def _option(key: str, value: str) -> dict[str, Any]:
    """The option as `DebateOptions` has it."""
    if key == "swap" and not value:
        return {"is_swapped": True}
    is_number = value.isascii() and value.isdigit() and len(value) <= DIGITS
    if key in NUMBERS and is_number and 1 <= int(value) <= MOST_ROUNDS:
        return {key: int(value)}
    if key in WORDS and value in WORDS[key]:
        return {key: value}
    raise InputError(
        "Expected an option such as rounds=1, samples=5 (at most "
        f"{MOST_ROUNDS}), style=thought, then=ceda, without=adversary or swap, found "
        f"“{key[:40]}={value[:40]}”."
    )
