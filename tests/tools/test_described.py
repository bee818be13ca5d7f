"""The words that agents read of a tool hold everything that they need to call it."""

from __future__ import annotations

from typing import Literal

import msgspec

from core.tools.described import described, signature
from core.tools.toolbox import Answer, Bench, Example, Tool


class Part(msgspec.Struct, frozen=True):
    """A part of a load."""

    name: str


class Weight(msgspec.Struct, frozen=True):
    """What is weighed.

    `load` is in kilograms.
    """

    load: float
    unit: Literal["kg", "lb"] = "kg"
    notes: tuple[str, ...] = ()
    parts: list[Part] = []


def weigh(given: Weight, bench: Bench) -> Answer:
    return Answer("supported", f"{given.load} {given.unit}")


def example(load: float) -> Example[Weight]:
    return Example("How heavy is it?", f"{load} kg.", Weight(load), "supported", "Weigh it.")


TOOL = Tool("scales", "Weighs a load.\nSays how heavy it is.", Weight, weigh,
            (example(1.0), example(2.0)))  # fmt: skip


def test_the_signature_names_fields_types_and_defaults() -> None:
    assert signature(TOOL) == (
        "scales(load: float, unit: Literal['kg', 'lb'] = 'kg', notes: tuple[str, ...] = (), "
        "parts: list[{name: str}] = [])"
    )


def test_the_description_and_the_input_stand_below_it_indented() -> None:
    own = [
        signature(TOOL),
        "  Weighs a load.",
        "  Says how heavy it is.",
        "  What is weighed.",
        "  `load` is in kilograms.",
    ]
    assert described([TOOL]).splitlines() == own
    assert described([TOOL, TOOL]).splitlines() == [*own, "", *own]
    assert described([]) == ""
