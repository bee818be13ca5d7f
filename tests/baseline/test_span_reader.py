"""Words scored against evidence: in any script, at their code points, with whole weights."""

from __future__ import annotations

import itertools
import json
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from core.baseline.evidence_model import Trees, load_trees
from core.baseline.span_features import (
    FOLDER,
    TERMS,
    Commonness,
    grounds,
    mean_around,
    shifted,
    word_features,
    words_of,
)
from core.baseline.span_reader import (
    DoubtScorer,
    between,
    load_span_reader,
    read_sentences,
    stretches,
    word_scorer,
)
from core.runtime.errors import ConfigError
from core.schema.records import WordScore
from tests.readers import DOUBTED, ScriptedReader, WordReader

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


@pytest.mark.parametrize(
    ("language", "question", "evidence", "response", "wrong", "right"),
    [
        ("zh", "港口博物馆是哪一年开放的？", "港口博物馆于一九八七年在卑尔根开放。",
         "港口博物馆于一九八七年在奥斯陆开放。", "奥斯陆", "博物馆"),
        ("ar", "متى افتتح متحف الميناء؟", "افتتح متحف الميناء عام 1987 في بيرغن.",
         "افتتح متحف الميناء عام 1923 في بيرغن.", "1923", "متحف"),
        ("fa", "موزه بندر در کدام شهر است؟", "موزه بندر در شهر برگن قرار دارد و بزرگ است.",
         "موزه بندر در شهر استکهلم قرار دارد.", "استکهلم", "موزه"),
        ("th", "พิพิธภัณฑ์ท่าเรืออยู่ที่ไหน", "พิพิธภัณฑ์ท่าเรืออยู่ที่เบอร์เกน เปิดทุกวัน",
         "พิพิธภัณฑ์ท่าเรืออยู่ที่สตอกโฮล์ม", "สตอกโฮล์ม", "พิพิธภัณฑ์"),
        ("hi", "संग्रहालय कब खुला?", "संग्रहालय १९८७ में बर्गन में खुला।",
         "संग्रहालय १९२३ में बर्गन में खुला।", "१९२३", "संग्रहालय"),
    ],
)  # fmt: skip
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
    words = words_of("१९८७", "hi")
    assert words[0].term == "1987"
    names, columns = word_features("१९८७", words, grounds("", ["in 1987"], "hi", Commonness({})))
    assert columns[0][names.index("in_evidence")] == 1.0
    assert columns[0][names.index("off_by")] == 0.0


def test_no_evidence_gives_no_score() -> None:
    assert load_span_reader().read("It opened in 1987.", "", (), "en") == ()
    assert load_span_reader().read("", "", (EVIDENCE,), "en") == ()
    assert load_span_reader().read("… !", "", (EVIDENCE,), "en") == ()


def test_every_word_has_one_score_in_order_and_features_are_finite() -> None:
    response = "A 😀 b\n\nZürich’s (3,5) km — don't; 東京 and ١٢٣."
    words = words_of(response, "en")
    assert [response[w.start : w.end] for w in words] == [w.text for w in words]
    assert all(a.end <= b.start for a, b in itertools.pairwise(words))
    _, columns = word_features(response, words, grounds("", [EVIDENCE], "en"))
    assert columns.shape[0] == len(words)
    assert np.isfinite(columns).all()
    scores = load_span_reader().read(response, "", (EVIDENCE,), "xx")
    assert [(s.start, s.end) for s in scores] == [
        (w.start, w.end) for w in words_of(response, "xx")
    ]
    assert all(0 < s.p < 1 for s in scores)


def test_stretches_join_neighbours_but_not_over_the_end_of_a_line() -> None:
    response = "one two, three\nfour five"
    scores = [
        WordScore(0, 3, 0.2), WordScore(4, 7, 0.6), WordScore(9, 14, 0.8), WordScore(15, 19, 0.9),
        WordScore(20, 24, 0.1),
    ]  # fmt: skip
    found = stretches(scores, response, 0.5)
    assert [response[s.start : s.end] for s in found] == ["two, three", "four"]
    assert found[0].p == 0.7


def test_what_stands_between_two_words_has_the_lower_score() -> None:
    whole = between([WordScore(0, 3, 0.2), WordScore(4, 7, 0.6), WordScore(7, 8, 0.1)])
    assert whole == (
        WordScore(0, 3, 0.2), WordScore(3, 4, 0.2), WordScore(4, 7, 0.6), WordScore(7, 8, 0.1),
    )  # fmt: skip


def test_neighbours_and_means_stop_at_the_ends() -> None:
    values = np.array([1.0, 2.0, 6.0])
    assert shifted(values, 1).tolist() == [2.0, 6.0, -1.0]
    assert shifted(values, -2).tolist() == [-1.0, -1.0, 1.0]
    assert shifted(values, 3).tolist() == [-1.0, -1.0, -1.0]
    assert mean_around(values, 1).tolist() == [1.5, 3.0, 4.0]


def test_other_weights_than_the_cards_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    shutil.copytree(FOLDER, folder)
    (folder / "trees.npz").write_bytes((FOLDER / "trees.npz").read_bytes() + b" ")
    with pytest.raises(ConfigError, match="sha256"):
        load_span_reader(folder)
    (folder / "card.json").unlink()
    with pytest.raises(ConfigError, match="card"):
        load_span_reader(tmp_path / "weights" / "." / "")


@pytest.mark.parametrize("harm", ["no checksum", "other words"])
def test_a_card_that_does_not_fit_its_files_is_refused(tmp_path: Path, harm: str) -> None:
    folder = shutil.copytree(FOLDER, tmp_path / "weights")
    if harm == "other words":
        (folder / TERMS).write_text("{}")
    else:
        card = json.loads((folder / "card.json").read_text())
        del card["sha256"]
        (folder / "card.json").write_text(json.dumps(card))
    with pytest.raises(ConfigError, match="Expected the span reader's card"):
        load_span_reader(folder)


def test_trees_come_back_as_they_were_saved(tmp_path: Path) -> None:
    trees = Trees(
        np.array([1, 0, 0], np.int32), np.array([0.5, np.inf, np.inf]),
        np.array([1, 1, 2], np.int32), np.array([2, 1, 2], np.int32),
        np.array([0.0, 0.25, 0.75]), np.array([0], np.int32), 1, 0.1,
    )  # fmt: skip
    again = load_trees(tmp_path / "t.npz", trees.save(tmp_path / "t.npz"))
    rows = np.array([[9.0, 0.5], [9.0, 0.6]], np.float32)
    assert again.predict(rows).tolist() == pytest.approx([0.35, 0.85])


def test_the_card_tells_what_was_trained_on_and_how_well_it_does_on_rows_unseen() -> None:
    card = json.loads((FOLDER / "card.json").read_text(encoding="utf-8"))
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
    scorer = word_scorer(reader)
    assert isinstance(scorer, DoubtScorer)
    scores = scorer.read("It opened in 1923.", "", (EVIDENCE,), "en")
    assert [s.p >= scorer.threshold for s in scores] == [False, False, False, True]
    assert scorer.read("It opened in 1923.", "", (" ",), "en") == ()
