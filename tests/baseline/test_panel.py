"""The built-in readers in a panel: what each marks, votes on, and is silent about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from core.agents.rosters import SHIPPED, panel_reader, sheet_named
from core.baseline import panel
from core.llm.keys import Keys
from core.pipeline.jobs import Jobs
from core.runtime.concurrency import Stop
from core.runtime.errors import ConfigError
from core.schema.records import Passage, Span
from core.schema.roles import CaseView, Evidence, SpanPanelist
from core.schema.rosters import PANEL_READERS
from core.store import open_store
from tests.fakes import case_of, make_case, make_passage, make_view
from tests.readers import UNKNOWN_SCRIPT, word_assessor
from tests.test_with_models import Bench

CLAIM = "The tower is 512 m tall."
FACT = "The tower is 412 m tall."


def view(claim: str = CLAIM, *facts: str) -> CaseView:
    passages: list[Passage] = [
        make_passage(fact, number=n) for n, fact in enumerate(facts or (FACT,))
    ]
    made = make_view(make_case(claim), passages)
    by_statement = {s.index: tuple(p.id for p in passages) for s in made.statements}
    sources = {passage.source_id: passage.text for passage in passages}
    evidence = Evidence({p.id: p for p in passages}, by_statement)
    return CaseView(made.case, made.statements, evidence, sources)


@pytest.fixture(scope="module")
def members() -> dict[str, SpanPanelist]:
    return {name: panel_reader(name, assessor=word_assessor()) for name in PANEL_READERS}


def span_of(claim: str, words: str) -> Span:
    start = claim.index(words)
    return Span(start, start + len(words), words, 0.9, "number_or_date", "somebody")


def test_the_value_checker_marks_the_value_that_the_evidence_has_otherwise(
    members: dict[str, SpanPanelist],
) -> None:
    (span,) = members["rules"].extract(view(), Stop())
    assert (span.text, span.category, span.source) == ("512 m", "number_or_date", "Value checker")
    wrong, other = members["rules"].vote(
        view(), [span_of(CLAIM, "512 m"), span_of(CLAIM, "The tower")], Stop()
    )
    assert wrong.p is not None
    assert wrong.p >= 0.5
    assert other.p is None  # it says nothing of words without a value
    (same,) = members["rules"].vote(view(FACT), [span_of(FACT, "412 m")], Stop())
    assert same.p is not None
    assert same.p <= 0.2


def test_the_overlap_reader_marks_words_that_no_source_has(
    members: dict[str, SpanPanelist],
) -> None:
    claim = "The tower is 412 m tall and painted crimson."
    spans = members["overlap"].extract(view(claim), Stop())
    assert "crimson" in " ".join(span.text for span in spans)
    lacking, carried = members["overlap"].vote(
        view(claim), [span_of(claim, "crimson"), span_of(claim, "412 m")], Stop()
    )
    assert lacking.p is not None
    assert carried.p is not None
    assert lacking.p > 0.5 > 0.1 > carried.p


def test_the_entailment_reader_marks_whole_statements_and_is_silent_where_it_cannot_read(
    members: dict[str, SpanPanelist],
) -> None:
    (span,) = members["entailment"].extract(view("The tower is not tall."), Stop())
    assert span.text == "The tower is not tall."
    claim = f"{UNKNOWN_SCRIPT} 512"
    assert members["entailment"].extract(view(claim), Stop()) == ()
    (vote,) = members["entailment"].vote(view(claim), [span_of(claim, "512")], Stop())
    assert vote.p is None


def test_the_span_reader_votes_with_the_mean_score_of_the_words(
    members: dict[str, SpanPanelist],
) -> None:
    words = members["words"]
    assert isinstance(words, panel.WordPanelist)
    scores = words.score_words(view(), Stop())
    inside = [s.p for s in scores if CLAIM.index("512") <= s.start < CLAIM.index("m tall") + 1]
    (vote,) = words.vote(view(), [span_of(CLAIM, "512 m")], Stop())
    assert vote.p == pytest.approx(sum(inside) / len(inside), abs=0.001)


def test_without_evidence_nobody_marks_and_nobody_votes(members: dict[str, SpanPanelist]) -> None:
    bare = make_view(make_case(CLAIM), [])
    for name, member in members.items():
        assert member.extract(bare, Stop()) == (), name
        (vote,) = member.vote(bare, [span_of(CLAIM, "512 m")], Stop())
        assert vote.p is None, name


def test_what_is_marked_stands_in_the_text(members: dict[str, SpanPanelist]) -> None:
    claim = "🌉 The tower is 512 m tall. It opened in 1950 in Paris."
    for member in members.values():
        for span in member.extract(view(claim, FACT, "It opened in 1932."), Stop()):
            assert claim[span.start : span.end] == span.text


def test_the_panel_that_needs_no_key_marks_a_whole_check(home: Path) -> None:
    case = case_of(home, CLAIM, ("facts.txt", FACT.encode()))
    bench = Bench(home, case, Jobs(home, keys=Keys({})))
    with open_store(home) as store:
        sheet = sheet_named("builtin-panel", store)
    assert sheet == SHIPPED["builtin-panel"]
    assert sheet.is_built_in
    run, progress = bench.run(sheet)
    assert run.status == "finished"
    assert progress.soft is not None
    assert len(progress.soft.runs) == len(PANEL_READERS)
    assert progress.soft.threshold == panel.shipped_rule().levels.otherwise
    assert not progress.problems


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "panel_weights.json"
    monkeypatch.setattr(panel, "WEIGHTS", path)
    panel.shipped_rule.cache_clear()
    yield path
    panel.shipped_rule.cache_clear()


@pytest.mark.parametrize("body", [None, "{", "[]", json.dumps({"weights": [["a", "b"]]})])
def test_weights_that_are_missing_or_broken_are_said_to_be(
    elsewhere: Path, body: str | None
) -> None:
    if body is not None:
        elsewhere.write_text(body, encoding="utf-8")
    with pytest.raises(ConfigError, match="panel's weights"):
        panel.shipped_rule()


def test_the_weights_that_ship_are_of_members_that_there_are(
    members: dict[str, SpanPanelist],
) -> None:
    names = {member.name for member in members.values()}
    for extractor, adjudicator, weight in panel.shipped_rule().weights:
        assert {extractor, adjudicator} <= names
        assert weight > 0
