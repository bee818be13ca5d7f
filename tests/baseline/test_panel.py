"""Readers in a panel, words that are marked without one, and words scored in any script."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from core.agents.rosters import SHIPPED_ROSTERS, find_roster, make_panel_reader
from core.baseline import span_panel as panel
from core.baseline.assessment import categorise_words
from core.baseline.evidence_model import BoostedTrees, load_trees
from core.baseline.span_features import (
    COMMON_TERMS_FILE,
    SPAN_READER_DIR,
    TermFrequencies,
    average_around,
    compute_word_features,
    index_evidence,
    shift_column,
    split_words,
)
from core.baseline.span_panel import (
    SPAN_READER_NAME,
    WHOLE_SOURCES_MAX_CHARS,
    PointSpanExtractor,
    ThresholdSpanAdjudicator,
    choose_evidence_texts,
)
from core.baseline.span_reader import (
    DoubtScorer,
    choose_word_scorer,
    fill_gaps,
    load_span_reader,
    merge_scored_words,
    read_sentences,
)
from core.llm.keys import Keys
from core.pipeline.jobs import JobRunner
from core.runtime.concurrency import StopSignal
from core.runtime.errors import ConfigError
from core.schema.records import (
    Category,
    DebatePoint,
    Judgement,
    Label,
    Passage,
    Span,
    Statement,
    WordScore,
)
from core.schema.roles import CaseView, Evidence, SpanPanelist, WordScorer
from core.schema.rosters import PANEL_READERS
from core.store import open_store
from tests.agents.seats import judge_view
from tests.fakes import case_of, make_case, make_passage, make_view
from tests.readers import DOUBTED, UNKNOWN_SCRIPT, ScriptedReader, WordReader, word_assessor
from tests.test_with_models import Bench
from tests.tools.corpus import table

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
    return {name: make_panel_reader(name, assessor=word_assessor()) for name in PANEL_READERS}


def span_of(claim: str, words: str) -> Span:
    start = claim.index(words)
    return Span(start, start + len(words), words, 0.9, "number_or_date", "somebody")


def test_the_value_checker_marks_the_value_that_the_evidence_has_otherwise(
    members: dict[str, SpanPanelist],
) -> None:
    (span,) = members["rules"].extract(view(), StopSignal())
    assert (span.text, span.category, span.source) == ("512 m", "number_or_date", "Value checker")
    wrong, other = members["rules"].vote(
        view(), [span_of(CLAIM, "512 m"), span_of(CLAIM, "The tower")], StopSignal()
    )
    assert wrong.p is not None
    assert wrong.p >= 0.5
    assert other.p is None  # it says nothing of words without a value
    (same,) = members["rules"].vote(view(FACT), [span_of(FACT, "412 m")], StopSignal())
    assert same.p is not None
    assert same.p <= 0.2


def test_the_overlap_reader_marks_words_that_no_source_has(
    members: dict[str, SpanPanelist],
) -> None:
    claim = "The tower is 412 m tall and painted crimson."
    spans = members["overlap"].extract(view(claim), StopSignal())
    assert "crimson" in " ".join(span.text for span in spans)
    lacking, carried = members["overlap"].vote(
        view(claim), [span_of(claim, "crimson"), span_of(claim, "412 m")], StopSignal()
    )
    assert lacking.p is not None
    assert carried.p is not None
    assert lacking.p > 0.5 > 0.1 > carried.p


def test_the_entailment_reader_marks_whole_statements_and_is_silent_where_it_cannot_read(
    members: dict[str, SpanPanelist],
) -> None:
    (span,) = members["entailment"].extract(view("The tower is not tall."), StopSignal())
    assert span.text == "The tower is not tall."
    claim = f"{UNKNOWN_SCRIPT} 512"
    assert members["entailment"].extract(view(claim), StopSignal()) == ()
    (vote,) = members["entailment"].vote(view(claim), [span_of(claim, "512")], StopSignal())
    assert vote.p is None


def test_the_span_reader_votes_with_the_mean_score_of_the_words(
    members: dict[str, SpanPanelist],
) -> None:
    words = members["words"]
    assert isinstance(words, panel.WordPanelist)
    scores = words.score_words(view(), StopSignal())
    inside = [s.p for s in scores if CLAIM.index("512") <= s.start < CLAIM.index("m tall") + 1]
    (vote,) = words.vote(view(), [span_of(CLAIM, "512 m")], StopSignal())
    assert vote.p == pytest.approx(sum(inside) / len(inside), abs=0.001)


def test_without_evidence_nobody_marks_and_nobody_votes(members: dict[str, SpanPanelist]) -> None:
    bare = make_view(make_case(CLAIM), [])
    for name, member in members.items():
        assert member.extract(bare, StopSignal()) == (), name
        (vote,) = member.vote(bare, [span_of(CLAIM, "512 m")], StopSignal())
        assert vote.p is None, name


def test_what_is_marked_stands_in_the_text(members: dict[str, SpanPanelist]) -> None:
    claim = "🌉 The tower is 512 m tall. It opened in 1950 in Paris."
    for member in members.values():
        for span in member.extract(view(claim, FACT, "It opened in 1932."), StopSignal()):
            assert claim[span.start : span.end] == span.text


def test_the_panel_that_needs_no_key_marks_a_whole_check(home: Path) -> None:
    case = case_of(home, CLAIM, ("facts.txt", FACT.encode()))
    bench = Bench(home, case, JobRunner(home, keys=Keys({})))
    with open_store(home) as store:
        sheet = find_roster("builtin-panel", store)
    assert sheet == SHIPPED_ROSTERS["builtin-panel"]
    assert sheet.is_built_in
    run, progress = bench.run(sheet)
    assert run.status == "finished"
    assert progress.soft is not None
    assert len(progress.soft.runs) == len(PANEL_READERS)
    assert progress.soft.threshold == panel.load_shipped_rule().levels.otherwise
    assert not progress.problems


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "panel_weights.json"
    monkeypatch.setattr(panel, "PANEL_WEIGHTS_FILE", path)
    panel.load_shipped_rule.cache_clear()
    yield path
    panel.load_shipped_rule.cache_clear()


@pytest.mark.parametrize("body", [None, "{", "[]", json.dumps({"weights": [["a", "b"]]})])
def test_weights_that_are_missing_or_broken_are_said_to_be(
    elsewhere: Path, body: str | None
) -> None:
    if body is not None:
        elsewhere.write_text(body, encoding="utf-8")
    with pytest.raises(ConfigError, match="panel's weights"):
        panel.load_shipped_rule()


def test_the_weights_that_ship_are_of_members_that_there_are(
    members: dict[str, SpanPanelist],
) -> None:
    names = {member.name for member in members.values()}
    for extractor, adjudicator, weight in panel.load_shipped_rule().weights:
        assert {extractor, adjudicator} <= names
        assert weight > 0


RESPONSE = "The hall opened in 1923. Henrik Dahl built it."
SOURCE = "The hall opened in 1987. Ole Berg built it."
CASE = make_case(RESPONSE)
STATEMENTS = (
    Statement(0, 0, 24, RESPONSE[:24], RESPONSE[:24]),
    Statement(1, 25, 46, RESPONSE[25:], RESPONSE[25:]),
)
PLACES = [(0, 3), (4, 8), (9, 15), (16, 18), (19, 23), (25, 31), (32, 36), (37, 42), (43, 45)]
YEAR = DebatePoint(0, "contradicted", 19, 23, "1923", "number_or_date", "1987", "", 0.9)


def hall() -> CaseView:
    seen = make_view(CASE, [make_passage(SOURCE)])
    return replace(seen, statements=STATEMENTS, sources={"facts.txt": SOURCE})


def judged(
    *labels: Label, label: Label = "hallucinated", points: tuple[DebatePoint, ...] = ()
) -> Judgement:
    return Judgement("judge", label, "It is so.", statement_labels=labels, points=points)


def marked(judgement: Judgement) -> list[Span]:
    extractor = PointSpanExtractor(word_assessor())
    return list(extractor.propose(judge_view(hall()), judgement, StopSignal()))


def test_a_point_keeps_its_place_and_what_the_source_says_and_nothing_is_added_beside_it() -> None:
    (span,) = marked(judged("hallucinated", "supported", points=(YEAR,)))
    assert (span.text, span.instead, span.category, span.source) == (
        "1923", "1987", "number_or_date", "judge",
    )  # fmt: skip


def test_wrong_statements_without_a_point_are_marked_by_the_word_scores() -> None:
    spans = marked(judged("hallucinated", "hallucinated", points=(YEAR,)))
    assert [(s.text, s.category, s.source) for s in spans] == [
        ("1923", "number_or_date", "judge"),
        ("Henrik Dahl", "wrong_entity", SPAN_READER_NAME),
    ]
    assert all(RESPONSE[s.start : s.end] == s.text for s in spans)


@pytest.mark.parametrize("other", ["supported", "unclear"])
def test_no_word_of_another_statement_is_marked(other: Label) -> None:
    assert [s.text for s in marked(judged(other, "hallucinated"))] == ["Henrik Dahl"]


@pytest.mark.parametrize("label", ["supported", "unclear"])
def test_nothing_is_marked_where_the_response_is_not_called_wrong(label: Label) -> None:
    assert marked(judged("hallucinated", label=label, points=(YEAR,))) == []


@pytest.mark.parametrize(*table("spans: the kind follows from the words"))
def test_the_kind_follows_from_the_words(text: str, opens: bool, category: Category) -> None:
    assert categorise_words(text, opens) == category


@pytest.mark.parametrize("source", [SPAN_READER_NAME, "judge"])
@pytest.mark.parametrize(
    ("label", "p", "is_kept"),
    [("hallucinated", 0.5, True), ("hallucinated", 0.49, False), ("unclear", 0.99, False),
     ("supported", 0.99, False)],
)  # fmt: skip
def test_words_are_kept_by_verdict_and_score(
    label: Label, p: float, is_kept: bool, source: str
) -> None:
    span = Span(19, 23, "1923", p, "number_or_date", source)
    agent = ThresholdSpanAdjudicator(word_assessor())
    ruling = agent.adjudicate(judge_view(make_view(CASE, [])), span, label, StopSignal())
    assert (ruling.kept, ruling.span) == (is_kept, span)


def test_short_sources_are_evidence_as_a_whole_and_long_ones_by_what_was_retrieved() -> None:
    passage = make_passage("It opened in 1987.", before="The hall is old.")
    hall = make_view(CASE, [passage])
    whole = replace(hall, sources={passage.source_id: "The hall is old. It opened in 1987. More."})
    assert choose_evidence_texts(whole) == ("The hall is old. It opened in 1987. More.",)
    long = replace(hall, sources={passage.source_id: "x " * WHOLE_SOURCES_MAX_CHARS})
    assert choose_evidence_texts(long) == ("The hall is old.", "It opened in 1987.")


def test_the_extractor_scores_every_word_and_none_without_evidence() -> None:
    extractor = PointSpanExtractor(word_assessor())
    assert isinstance(extractor, WordScorer)
    found = extractor.score_words(hall(), StopSignal())
    assert [(s.start, s.end) for s in found] == PLACES
    assert extractor.score_words(replace(hall(), sources={}), StopSignal()) == ()


EVIDENCE = (
    "The Harbour Museum opened in 1987 in Bergen. It was founded by Ingrid Solheim and shows "
    "ships of the nineteenth century."
)
QUESTION = "Who founded the Harbour Museum and when did it open?"


def scored(response: str, evidence: str, question: str, language: str) -> dict[str, float]:
    scores = load_span_reader().read(response, question, (evidence,), language)
    return {response[score.start : score.end]: score.p for score in scores}


def test_a_wrong_name_and_year_score_above_what_the_evidence_has() -> None:
    response = "The Harbour Museum was founded by Henrik Dahl and opened in 1923."
    found = scored(response, EVIDENCE, QUESTION, "en")
    wrong = min(found["Henrik"], found["Dahl"], found["1923"])
    right = max(found["Harbour"], found["Museum"], found["founded"], found["opened"])
    assert wrong > right + 0.2


@pytest.mark.parametrize(*table("span_reader: any script is scored at its own code points"))
def test_any_script_is_scored_at_its_own_code_points(
    language: str, question: str, evidence: str, response: str, wrong: str, right: str
) -> None:
    scores = load_span_reader().read(response, question, (evidence,), language)

    def mean(words: str) -> float:
        start = response.index(words)
        inside = [s.p for s in scores if start <= s.start and s.end <= start + len(words)]
        return sum(inside) / len(inside)

    assert mean(wrong) > mean(right) + 0.1


def test_digits_of_another_script_are_the_same_number() -> None:
    words = split_words("१९८७", "hi")
    assert words[0].term == "1987"
    names, columns = compute_word_features(
        "१९८७", words, index_evidence("", ["in 1987"], "hi", TermFrequencies({}))
    )
    assert columns[0][names.index("in_evidence")] == 1.0
    assert columns[0][names.index("off_by")] == 0.0


def test_no_evidence_gives_no_score() -> None:
    assert load_span_reader().read("It opened in 1987.", "", (), "en") == ()
    assert load_span_reader().read("", "", (EVIDENCE,), "en") == ()
    assert load_span_reader().read("… !", "", (EVIDENCE,), "en") == ()


def test_every_word_has_one_score_in_order_and_features_are_finite() -> None:
    response = "A 😀 b\n\nZürich’s (3,5) km — don't; 東京 and ١٢٣."
    words = split_words(response, "en")
    assert [response[w.start : w.end] for w in words] == [w.text for w in words]
    assert all(a.end <= b.start for a, b in itertools.pairwise(words))
    _, columns = compute_word_features(response, words, index_evidence("", [EVIDENCE], "en"))
    assert columns.shape[0] == len(words)
    assert np.isfinite(columns).all()
    scores = load_span_reader().read(response, "", (EVIDENCE,), "xx")
    assert [(s.start, s.end) for s in scores] == [
        (w.start, w.end) for w in split_words(response, "xx")
    ]
    assert all(0 < s.p < 1 for s in scores)


def test_stretches_join_neighbours_but_not_over_the_end_of_a_line() -> None:
    response = "one two, three\nfour five"
    scores = [
        WordScore(0, 3, 0.2), WordScore(4, 7, 0.6), WordScore(9, 14, 0.8), WordScore(15, 19, 0.9),
        WordScore(20, 24, 0.1),
    ]  # fmt: skip
    found = merge_scored_words(scores, response, 0.5)
    assert [response[s.start : s.end] for s in found] == ["two, three", "four"]
    assert found[0].p == 0.7


def test_what_stands_between_two_words_has_the_lower_score() -> None:
    whole = fill_gaps([WordScore(0, 3, 0.2), WordScore(4, 7, 0.6), WordScore(7, 8, 0.1)])
    assert whole == (
        WordScore(0, 3, 0.2), WordScore(3, 4, 0.2), WordScore(4, 7, 0.6), WordScore(7, 8, 0.1),
    )  # fmt: skip


def test_neighbours_and_means_stop_at_the_ends() -> None:
    values = np.array([1.0, 2.0, 6.0])
    assert shift_column(values, 1).tolist() == [2.0, 6.0, -1.0]
    assert shift_column(values, -2).tolist() == [-1.0, -1.0, 1.0]
    assert shift_column(values, 3).tolist() == [-1.0, -1.0, -1.0]
    assert average_around(values, 1).tolist() == [1.5, 3.0, 4.0]


def test_other_weights_than_the_cards_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    shutil.copytree(SPAN_READER_DIR, folder)
    (folder / "trees.npz").write_bytes((SPAN_READER_DIR / "trees.npz").read_bytes() + b" ")
    with pytest.raises(ConfigError, match="sha256"):
        load_span_reader(folder)
    (folder / "card.json").unlink()
    with pytest.raises(ConfigError, match="card"):
        load_span_reader(tmp_path / "weights" / "." / "")


@pytest.mark.parametrize("harm", ["no checksum", "other words"])
def test_a_card_that_does_not_fit_its_files_is_refused(tmp_path: Path, harm: str) -> None:
    folder = shutil.copytree(SPAN_READER_DIR, tmp_path / "weights")
    if harm == "other words":
        (folder / COMMON_TERMS_FILE).write_text("{}")
    else:
        card = json.loads((folder / "card.json").read_text())
        del card["sha256"]
        (folder / "card.json").write_text(json.dumps(card))
    with pytest.raises(ConfigError, match="Expected the span reader's card"):
        load_span_reader(folder)


def test_trees_come_back_as_they_were_saved(tmp_path: Path) -> None:
    trees = BoostedTrees(
        np.array([1, 0, 0], np.int32), np.array([0.5, np.inf, np.inf]),
        np.array([1, 1, 2], np.int32), np.array([2, 1, 2], np.int32),
        np.array([0.0, 0.25, 0.75]), np.array([0], np.int32), 1, 0.1,
    )  # fmt: skip
    again = load_trees(tmp_path / "t.npz", trees.save(tmp_path / "t.npz"))
    rows = np.array([[9.0, 0.5], [9.0, 0.6]], np.float32)
    assert again.predict(rows).tolist() == pytest.approx([0.35, 0.85])


def test_the_card_tells_what_was_trained_on_and_how_well_it_does_on_rows_unseen() -> None:
    card = json.loads((SPAN_READER_DIR / "card.json").read_text(encoding="utf-8"))
    measured = card["measured"]
    for kind in ("five_folds", "each_language_left_out"):
        assert measured[kind]["iou"] >= 0.55
        assert measured[kind]["correlation"] >= 0.55
        ours, all_marked = (measured[which]["iou_by_language"] for which in (kind, "mark_all"))
        assert all(ours[language] > all_marked[language] for language in all_marked)
    assert len(measured["five_folds"]["iou_by_language"]) == 14
    assert all(one["licence"] and one["files"] for one in card["trained_on"])
    assert not any(path.startswith("/") for one in card["trained_on"] for path in one["files"])


def test_one_word_again_and_again_takes_no_quadratic_time() -> None:
    began = time.process_time()
    load_span_reader().read("ha " * 3000, "", ("ha " * 3000,), "en")
    assert time.process_time() - began < 10


def test_the_readers_doubts_lie_in_the_response_whatever_the_question_before_it() -> None:
    response = "It opened in 1923. Henrik Dahl built it."
    reader = ScriptedReader(doubted=["1923", "Dahl", "museum"])
    read = read_sentences(response, "When did the museum open?", (EVIDENCE,), "en", reader)
    found = [doubt for sentence in read for doubt in sentence.doubts]
    assert [response[d.start : d.end] for d in found if d.p == DOUBTED] == ["1923", "Dahl"]


def test_a_reader_that_was_made_to_mark_words_scores_them_itself() -> None:
    reader = WordReader()
    scorer = choose_word_scorer(reader)
    assert isinstance(scorer, DoubtScorer)
    scores = scorer.read("It opened in 1923.", "", (EVIDENCE,), "en")
    assert [s.p >= scorer.threshold for s in scores] == [False, False, False, True]
    assert scorer.read("It opened in 1923.", "", (" ",), "en") == ()
