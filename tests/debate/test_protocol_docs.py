"""docs/protocols.md tells of the protocols that there are, and counts as they do."""

from __future__ import annotations

import re

import pytest

from core.debate import NAMES
from core.debate.protocols import OPTION_WORDS, PROTOCOLS, options_of
from core.schema.records import Plan
from tests.test_architecture import ROOT

DOCS = (ROOT / "docs/protocols.md").read_text(encoding="utf-8")
ROWS = {
    cells[0].strip("`"): cells
    for cells in (
        [cell.strip() for cell in line.strip("|").split("|")] for line in DOCS.splitlines()
    )
    if re.fullmatch(r"`\w+`", cells[0])
}


def test_every_protocol_is_told_of_and_no_other() -> None:
    assert set(ROWS) == set(NAMES)
    assert set(re.findall(r"^\*\*`(\w+)`\*\*:", DOCS, re.MULTILINE)) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_calls_are_those_of_the_formula(name: str) -> None:
    counted = [PROTOCOLS[name].calls(debaters, Plan(name)) for debaters in (2, 3, 4)]
    assert ROWS[name][2:5] == [f"{calls.total} ({calls.chain})" for calls in counted]


@pytest.mark.parametrize("name", NAMES)
def test_options_are_those_that_are_taken(name: str) -> None:
    told = set(re.findall(r"--[a-z]+", ROWS[name][5]))
    own = PROTOCOLS[name].options
    assert told == {"--seed" if one == "seed" else OPTION_WORDS[one] for one in own
                    if one == "seed" or one in OPTION_WORDS}  # fmt: skip
    assert set(own) <= set(options_of(Plan(name)))
