"""What may be wrong with words of a response: the span categories every project begins with."""

from __future__ import annotations

from typing import Literal

Category = Literal[
    "contradicted", "not_in_source", "wrong_entity", "number_or_date", "reasoning",
    "instruction_not_followed", "self_contradiction", "harmless_addition",
]  # fmt: skip

CATEGORY_WORDS: dict[Category, str] = {
    "contradicted": "contradicted", "not_in_source": "not in source",
    "wrong_entity": "wrong entity",
    "number_or_date": "number or date",
    "reasoning": "reasoning",
    "instruction_not_followed": "instruction not followed",
    "self_contradiction": "self-contradiction",
    "harmless_addition": "harmless addition",
}  # fmt: skip
