"""A statement read against windows of the evidence: which are made, and what they say together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.builtin.claims import claim_of
from core.builtin.reading_windows import (
    MOST_WINDOWS,
    WIDEST,
    StatementReading,
    aggregated,
    bearings,
    read_statement,
)
from core.concurrency import Stop
from core.errors import Stopped
from core.models.encoder import Matrix
from core.records import Case, Passage, Statement

SENTENCES = (
    "The Blue Tower stands in Elm.",
    "Ada Moon designed it.",
    "It was opened in 1932.",
    "Rain fell on that day.",
    "The mayor made a speech.",
)
SUPPORTED, CONTRADICTED, OPEN = (0.9, 0.05, 0.05), (0.05, 0.9, 0.05), (0.03, 0.03, 0.94)


class MarkedReader:
    """Knows what to say of evidence that holds all the words it was told of."""

    id = "marked"

    def __init__(self, known: dict[tuple[str, ...], tuple[float, float, float]]) -> None:
        self._known = known
        self.pairs: list[tuple[str, str]] = []

    def read(self, pairs: Sequence[tuple[str, str]], stop: Stop | None = None) -> Matrix:
        if stop is not None:
            stop.check()
        self.pairs += pairs
        return np.array([self._said(evidence) for evidence, _ in pairs], dtype=np.float32)

    def muted(self, texts: Sequence[str]) -> npt.NDArray[np.bool_]:
        return np.array(["ไทย" in text for text in texts], dtype=bool)

    def _said(self, evidence: str) -> tuple[float, float, float]:
        found = (said for words, said in self._known.items() if all(w in evidence for w in words))
        return next(found, OPEN)


def passages_of(
    texts: Sequence[str], source: str = "tower", wanted: Sequence[int] | None = None
) -> tuple[list[Passage], dict[str, str]]:
    whole = " ".join(texts)
    chosen = range(len(texts)) if wanted is None else wanted
    found = []
    for number in chosen:
        start = len(" ".join(texts[:number])) + (number > 0)
        found.append(
            Passage(
                id=f"{source}:{number}",
                source_id=source,
                source=f"{source}.txt",
                is_image=False,
                page=None,
                start=start,
                end=start + len(texts[number]),
                text=texts[number],
                score=1.0,
                before=texts[number - 1] if number else "",
                after=texts[number + 1] if number + 1 < len(texts) else "",
            )
        )
    return found, {source: whole}


def reading_of(
    reader: MarkedReader,
    passages: Sequence[Passage],
    sources: dict[str, str],
    *,
    response: str = "The tower was opened in 1932.",
    question: str = "",
) -> StatementReading:
    case = Case("c", "p", response, question, language="en")
    claim = claim_of(case, Statement(0, 0, len(response), response, response))
    return read_statement(claim, passages, sources, reader, Stop())


def test_a_passage_is_read_with_its_neighbours_and_alone() -> None:
    reader = MarkedReader({})
    passages, sources = passages_of(SENTENCES, wanted=[2])
    found = reading_of(reader, passages, sources)
    assert [window.text for window in found.windows] == [" ".join(SENTENCES[1:4]), SENTENCES[2]]
    for window in found.windows:
        assert sources["tower"][window.start : window.end] == window.text
        assert window.passage == passages[0]
    assert {statement for _, statement in reader.pairs} == {"The tower was opened in 1932."}


def test_neighbouring_windows_are_one_and_no_text_is_read_twice() -> None:
    reader = MarkedReader({})
    passages, sources = passages_of(SENTENCES)
    found = reading_of(reader, passages, sources)
    texts = [window.text for window in found.windows]
    assert texts[0] == sources["tower"]
    assert len(texts) == len(set(texts)) == 1 + len(SENTENCES)
    assert len(reader.pairs) == len(texts)


def test_the_passage_that_contradicts_is_told_from_its_neighbours() -> None:
    """The first of the window was quoted, which said nothing against the statement."""
    denial = "Nobody has lived in it since the keeper left."
    texts = ("The lighthouse was built in 1841.", "It is white.", denial)
    passages, sources = passages_of(texts)
    reader = MarkedReader({("Nobody",): CONTRADICTED, ("lighthouse",): (0.3, 0.2, 0.5)})
    said = "The lighthouse is inhabited by its keeper."
    found = reading_of(reader, passages, sources, response=said)
    assert found.contrary is not None
    assert found.contrary.passage.text == texts[0]
    assert found.contrary_passage is not None
    assert found.contrary_passage.text == denial


def test_windows_stay_narrow_and_few() -> None:
    texts = [f"Sentence {n} speaks of {'many ' * 60}things." for n in range(30)]
    passages, sources = passages_of(texts)
    found = reading_of(MarkedReader({}), passages, sources)
    assert 1 < len(found.windows) <= MOST_WINDOWS
    assert all(len(window.text) <= WIDEST for window in found.windows)


def test_one_that_contradicts_counts_and_twenty_beside_the_point_do_not() -> None:
    texts = [f"Sentence number {n} speaks of something else." for n in range(20)]
    passages, sources = passages_of(texts)
    rival, more = passages_of(["The tower was opened in 1950."], "rival")
    reader = MarkedReader({("1950",): CONTRADICTED})
    found = reading_of(reader, [passages[0], *rival, *passages[1:]], sources | more)
    assert found.contradicted > 0.8 > 0.1 > found.supported
    assert found.contrary is not None
    assert found.contrary.passage == rival[0]
    without = reading_of(reader, passages, sources)
    assert without.not_enough > 0.9


def test_what_needs_two_places_is_read_in_one_window() -> None:
    far = "Nothing else is said here of anything at all. " * 30
    passages, sources = passages_of([SENTENCES[1], far, SENTENCES[2]], wanted=[2, 0])
    reader = MarkedReader({("Ada Moon", "1932"): SUPPORTED})
    found = reading_of(reader, passages, sources)
    assert found.supported > 0.8
    assert found.carrying is not None
    assert found.carrying.text == f"{SENTENCES[1]} {SENTENCES[2]}"
    assert {p.id for p in found.carrying.passages} == {"tower:0", "tower:2"}
    assert (found.carrying.start, found.carrying.end) == (None, None)


def test_support_and_contradiction_leave_it_open_which() -> None:
    passages, sources = passages_of(["It was opened in 1932."], "one")
    rival, more = passages_of(["It was opened in 1950."], "two")
    known = {("1932", "1950"): OPEN, ("1932",): SUPPORTED, ("1950",): CONTRADICTED}
    found = reading_of(MarkedReader(known), [*passages, *rival], sources | more)
    assert found.supported == pytest.approx(found.contradicted, abs=0.05)
    assert found.carrying is not None
    assert found.contrary is not None
    assert (found.carrying.passage, found.contrary.passage) == (passages[0], rival[0])


def test_without_the_source_s_text_the_passage_s_own_neighbours_are_read() -> None:
    passages, _ = passages_of(SENTENCES, wanted=[2])
    found = reading_of(MarkedReader({}), passages, {"tower": "It was read anew since."})
    assert found.windows[0].text == " ".join(SENTENCES[1:4])
    assert found.windows[0].start is None


def test_without_passages_nothing_is_known() -> None:
    found = reading_of(MarkedReader({}), [], {})
    assert (found.supported, found.contradicted, found.not_enough) == (0.0, 0.0, 1.0)
    assert found.windows == ()
    assert not found.muted


@pytest.mark.parametrize(
    ("response", "texts"), [("ไทย.", SENTENCES), ("The tower was opened in 1932.", ("ไทย.",))]
)
def test_it_is_muted_where_the_words_are_unknown(response: str, texts: tuple[str, ...]) -> None:
    reader = MarkedReader({})
    passages, sources = passages_of(texts)
    found = reading_of(reader, passages, sources, response=response)
    assert found.muted
    assert found.not_enough == 1.0
    assert reader.pairs == []


@pytest.mark.parametrize(
    ("question", "response", "statement"),
    [
        ("When was the Blue Tower opened?", "1932", "The Blue Tower was opened in 1932."),
        ("Is the Blue Tower in Elm?", "No", "The Blue Tower is not in Elm."),
    ],
)
def test_a_short_answer_is_read_with_its_question(
    question: str, response: str, statement: str
) -> None:
    reader = MarkedReader({})
    passages, sources = passages_of(SENTENCES)
    found = reading_of(reader, passages, sources, response=response, question=question)
    assert found.text == statement
    assert {text for _, text in reader.pairs} == {statement}


def test_a_pronoun_is_read_as_the_name_it_stands_for() -> None:
    case = Case("c", "p", "It was opened in 1932.", language="en")
    own = Statement(1, 0, 22, "It was opened in 1932.", "The Blue Tower was opened in 1932.")
    reader = MarkedReader({})
    passages, sources = passages_of(SENTENCES)
    read_statement(claim_of(case, own), passages, sources, reader)
    assert {text for _, text in reader.pairs} == {own.rewrite}


def test_a_stop_is_heeded() -> None:
    stop = Stop()
    stop.set()
    passages, sources = passages_of(SENTENCES)
    case = Case("c", "p", SENTENCES[0], language="en")
    claim = claim_of(case, Statement(0, 0, 29, SENTENCES[0], SENTENCES[0]))
    with pytest.raises(Stopped):
        read_statement(claim, passages, sources, MarkedReader({}), stop)


ROWS = st.lists(
    st.tuples(*(st.floats(0.001, 1.0) for _ in range(3))).map(lambda r: [v / sum(r) for v in r]),
    min_size=1,
    max_size=12,
)


@given(ROWS)
def test_together_they_sum_to_one_whatever_the_order(rows: list[list[float]]) -> None:
    shares = np.linspace(0.1, 1.0, len(rows))
    found = aggregated(np.array(rows, dtype=np.float32), shares)
    assert sum(found) == pytest.approx(1.0)
    assert all(0.0 <= p <= 1.0 for p in found)
    turned = aggregated(np.array(rows[::-1], dtype=np.float32), shares[::-1])
    assert found == pytest.approx(turned, abs=1e-6)


def test_one_window_speaks_for_itself() -> None:
    alone = aggregated(np.array([[0.2, 0.5, 0.3]], dtype=np.float32), np.ones(1))
    assert alone == pytest.approx((0.2, 0.5, 0.3), abs=1e-6)


def test_what_is_about_something_else_does_not_outvote_what_says_it() -> None:
    """A reader calls much a contradiction that is only beside the point."""
    texts = [f"The {thing} was painted by Ola Lund." for thing in ("barn", "boat", "gate", "mill")]
    passages, sources = passages_of(["The tower was opened in 1932.", *texts])
    found = reading_of(
        MarkedReader({("1932",): SUPPORTED, ("Ola",): CONTRADICTED}), passages, sources
    )
    assert found.supported > 2 * found.contradicted
    assert found.carrying is not None
    assert "1932" in found.carrying.text


def test_a_window_bears_on_a_text_by_its_words_but_not_by_its_values() -> None:
    shares = bearings(
        ["It was opened in 1950.", "The mayor likes tea.", "It was opened in 1932."],
        "It was opened in 1932.", "en",
    )  # fmt: skip
    assert shares[0] == shares[2] == 1.0
    assert shares[1] < 0.05
