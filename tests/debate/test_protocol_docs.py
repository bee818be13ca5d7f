"""docs/protocols.md tells of the protocols that there are, counts as they do, and shows one."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from core.debate import NAMES
from core.debate.protocols import OPTION_WORDS, PROTOCOLS, options_of
from core.schema.records import Plan
from tests.debates import arguing, built_in, kinds, turns
from tests.fakes import make_case, make_passage, make_view
from tests.test_architecture import ROOT

DOCS = (ROOT / "docs/protocols.md").read_text(encoding="utf-8")
VIEW = make_view(make_case("The tower is 512 m tall."), [make_passage("The tower is 412 m tall.")])
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


@pytest.fixture
def hearing(tmp_path: Path) -> ModuleType:
    """The protocol that the docs show, as a file."""
    path = tmp_path / "hearing.py"
    path.write_text(DOCS.split("```python\n# core/debate/hearing.py\n")[1].split("```")[0])
    spec = importlib.util.spec_from_file_location("hearing", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_protocol_that_is_shown_works(hearing: ModuleType) -> None:
    protocol = hearing.PROTOCOL
    events = list(arguing(protocol.argue, VIEW, built_in()).events())
    counted = protocol.calls(len(built_in().debaters), Plan())
    assert len(turns(events)) == counted.turns
    assert kinds(events).count("judgement_reached") == counted.judgements
    last = next(event for event in events if event.kind == "judgement_reached")
    assert last.judgement.label == "hallucinated"
    said = [event for event in events if event.kind == "turn_finished"]
    again = list(arguing(protocol.argue, VIEW, built_in(), past=said).events())
    assert turns(again) == []
    assert kinds(again)[-1] == "judgement_reached"
