"""An audit that was really run leaves as a trajectory once a person has said that it is right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.__main__ import main
from core.schema.records import Label, Span
from core.schema.reviews import Correction
from core.store import open_store
from core.tools.registry import get_tool, read_input
from tests.exchange.recorded_audits import read_action

RESPONSE = "The Orrin bridge was opened in 1931. It is 512 m long."
FACTS = "The Orrin bridge was opened in 1931. It is 412 m long and carries two lanes."


def answered(home: Path, label: Label, words: str) -> None:
    """Mira says so of the one run, and marks these words."""
    start = RESPONSE.index(words)
    span = Span(start, start + len(words), words, 1.0, "number_or_date", "Mira")
    with open_store(home) as store, store.writing():
        (case,) = store.cases.all(store.projects.all()[0].id)
        (run,) = store.runs.of_case(case.id, 0.0, 1.0)
        said = Correction("c1", run.id, case.id, "Mira", 9e8, label, (span,), "The facts say so.")
        store.corrections.add(said, case.response)


@pytest.fixture
def home(tmp_path: Path, without_weights: None) -> Path:
    facts = tmp_path / "facts.txt"
    facts.write_text(FACTS, encoding="utf-8")
    home = tmp_path / "home"
    checked = main(
        [
            *("check", "--protocol", "audit", "--claim", RESPONSE, "--document", str(facts)),
            *("--question", "Tell me about the Orrin bridge.", "--home", str(home)),
        ]
    )
    assert checked == 0
    return home


def exported(home: Path, out: Path) -> tuple[list[str], list[str]]:
    """(rows to learn from, the others)."""
    assert main(["export", "--format", "trajectories", "--out", str(out), "--home", str(home)]) == 0
    beside = out.with_name(f"{out.name}.failed.jsonl")
    kept, failed = (path.read_text(encoding="utf-8").splitlines() for path in (out, beside))
    return kept, failed


def test_every_step_of_a_real_audit_is_a_call_that_its_tool_takes(
    home: Path, tmp_path: Path
) -> None:
    kept, failed = exported(home, tmp_path / "before.jsonl")
    assert (len(kept), len(failed)) == (0, 1)
    assert json.loads(failed[0])["reasons"][0]["reason"] == "not_decided"
    answered(home, "hallucinated", "512 m")
    kept, failed = exported(home, tmp_path / "after.jsonl")
    assert (len(kept), len(failed)) == (1, 0)
    row = json.loads(kept[0])
    assert row["label"] == "hallucinated"
    calls = [m["content"].split("\nACTION: ")[1] for m in row["messages"] if m["trained"]]
    read = [one for call in calls if (one := read_action(call)) is not None]
    assert len(read) == len(calls) > 3
    assert (read[0][0], read[-1][0]) == ("split_text", "get_answer")
    for tool, given in read:
        read_input(get_tool(tool), given)
    assert "It is 512 m long." in row["messages"][-1]["content"]


def test_an_audit_that_was_right_for_the_wrong_reason_is_kept_apart(
    home: Path, tmp_path: Path
) -> None:
    answered(home, "hallucinated", "1931")
    kept, failed = exported(home, tmp_path / "out.jsonl")
    assert not kept
    reasons = {one["reason"] for one in json.loads(failed[0])["reasons"]}
    assert reasons == {"wrong_statement"}
