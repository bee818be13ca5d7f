"""What of the evidence is read with a statement, and how a verdict on it is explained."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline import assessment
from core.baseline.assessment import (
    Assessment,
    explain_assessment,
    explain_label,
    find_wrong_words,
    locate_in_response,
)
from core.baseline.entailment import EntailmentReader, EntailmentReading, EvidenceClaimPair
from core.baseline.evidence_model import StatementFeatures
from core.baseline.evidence_windows import (
    MAX_WINDOW_CHARS,
    MAX_WINDOWS,
    SINGLE_PASSAGE_WINDOWS,
    build_claim,
    build_windows,
    find_nearest_windows,
    read_statement,
)
from core.baseline.segmenter import BuiltInSegmenter
from core.runtime.concurrency import StopSignal
from core.runtime.errors import Stopped
from core.schema.records import DebatePoint, Passage, Statement
from tests.fakes import make_case, make_passage, make_view
from tests.readers import (
    CONTRADICTS,
    NEUTRAL,
    SUPPORTS,
    UNKNOWN_SCRIPT,
    ScriptedReader,
    WordReader,
    assessor_with,
)
from tests.tools.corpus import table

TEXT = (
    "Lena Moor was an architect. She built the tower in 1932. It is 412 m tall. Swans nest there."
)
SENTENCES = [f"{part.strip()}." for part in TEXT.split(".") if part.strip()]


def passage(number: int, source: str = "facts.txt") -> Passage:
    """A sentence of the text with its neighbours."""
    text = SENTENCES[number]
    start = TEXT.index(text)
    before = SENTENCES[number - 1] if number else ""
    after = SENTENCES[number + 1] if number + 1 < len(SENTENCES) else ""
    return Passage(
        f"{source}:{number}", source, source, False, None, start, start + len(text), text, 1.0,
        0.8, before, after,
    )  # fmt: skip


def test_a_passage_is_read_with_the_sentences_around_it_as_they_stand_in_the_source() -> None:
    window, alone = build_windows([passage(1)], {"facts.txt": TEXT})
    assert alone.text == SENTENCES[1]
    assert window.text == " ".join(SENTENCES[:3])
    assert window.start is not None
    assert TEXT[window.start : window.end] == window.text


def test_the_best_passages_are_read_alone_too() -> None:
    found = [passage(number) for number in range(4)]
    texts = [w.text for w in build_windows(found, {"facts.txt": TEXT})]
    assert texts == [TEXT, *SENTENCES[:3]]


def test_windows_that_touch_become_one_and_no_text_is_read_twice() -> None:
    found = list(build_windows([passage(1), passage(2), passage(1)], {"facts.txt": TEXT}))
    assert found[0].text == TEXT
    assert [p.text for p in found[0].passages][:2] == SENTENCES[1:3]
    texts = [window.text for window in found]
    assert len(set(texts)) == len(texts)


def test_passages_of_two_sources_are_read_alone_and_together() -> None:
    other = replace(passage(3), source_id="b", id="b:3")
    texts = [w.text for w in build_windows([passage(1), other], {})]
    assert texts == [SENTENCES[1], SENTENCES[3], f"{SENTENCES[3]} {SENTENCES[1]}"]


def test_a_heading_that_the_text_does_not_hold_stands_before_it() -> None:
    (window,) = build_windows([replace(passage(2), heading="The Orrin tower:")], {})
    assert window.text == "The Orrin tower. It is 412 m tall."


@given(st.lists(st.tuples(st.integers(1, 400), st.booleans()), min_size=1, max_size=12))
def test_no_window_is_wider_than_is_read_whatever_the_passages(
    lengths: list[tuple[int, bool]],
) -> None:
    whole = ""
    found: list[Passage] = []
    for number, (length, is_found) in enumerate(lengths):
        text = f"{'word ' * length}{number}."[-MAX_WINDOW_CHARS:].strip()
        if is_found or not found:
            start = len(whole)
            item = passage(0)
            found.append(replace(
                item, id=f"f:{number}", start=start, end=start + len(text), text=text, after="",
            ))  # fmt: skip
        whole += text + " "
    windows = list(build_windows(found, {"facts.txt": whole}))
    # Words of several passages stand a blank apart where they are joined.
    assert all(len(w.text) <= MAX_WINDOW_CHARS + len(found) for w in windows)
    assert {p.id for window in windows for p in window.passages} == {p.id for p in found}


@pytest.mark.parametrize(*table("evidence: what cannot stand alone is read behind its question"))
def test_what_cannot_stand_alone_is_read_behind_its_question(
    question: str, response: str, statement: str, claim: str
) -> None:
    start = response.index(statement)
    own = Statement(0, start, start + len(statement), statement, statement)
    found, own_start = build_claim(make_case(response, question=question), own)
    assert found == claim
    assert found[own_start:] == statement


def test_the_window_that_says_most_for_and_against_is_kept_and_what_one_allows_is_not_doubted() -> (
    None
):
    claim = "She built the tower in 1932."
    own = Statement(0, 0, len(claim), claim, claim)
    items = [passage(1), replace(passage(3), source_id="b", id="b:3")]
    reader = ScriptedReader({"1932": SUPPORTS, "Swans": CONTRADICTS}, doubted=["1932"])
    found = read_statement(make_case(claim), own, items, {}, reader)
    assert found.supporting is not None
    assert found.contradicting is not None
    assert (found.supporting.passage, found.contradicting.passage) == tuple(items)
    doubted = [d for d in found.doubts if d.p > 0.5]
    assert [claim[d.start : d.end] for d in doubted] == ["1932"]


def test_reading_is_bounded_and_heeds_a_stop() -> None:
    many = [
        replace(passage(1), id=f"s{n}", source_id=f"s{n}", text=f"Fact {n}.") for n in range(30)
    ]
    own = Statement(0, 0, 8, "Fact 99.", "Fact 99.")
    reader = ScriptedReader()
    read = read_statement(make_case("Fact 99."), own, many, {}, reader)
    assert MAX_WINDOWS - 1 <= len(read.windows) <= MAX_WINDOWS + SINGLE_PASSAGE_WINDOWS
    stop = StopSignal()
    stop.set()
    with pytest.raises(Stopped):
        read_statement(make_case("Fact 99."), own, many, {}, reader, stop)


@pytest.mark.parametrize(
    ("response", "index", "is_copy"),
    [
        (SENTENCES[3], 0, True),
        (SENTENCES[3].upper(), 0, False),
        (f"{SENTENCES[0]} {SENTENCES[1]}", 1, True),
        (f"Anna Berg was an architect. {SENTENCES[1]}", 1, False),
    ],
)
def test_copied_sentence_is_supported_whatever_the_reader_says(
    response: str, index: int, is_copy: bool
) -> None:
    case = make_case(response)
    statement = BuiltInSegmenter().segment(case, StopSignal())[index]
    found = read_statement(
        case, statement, [passage(1), passage(3)], {"facts.txt": TEXT}, ScriptedReader()
    )
    assert found.supporting
    assert (found.supporting.reading.supported > 0.9) == is_copy


def test_copied_sentence_is_supported_in_an_unknown_language() -> None:
    text = f"{UNKNOWN_SCRIPT} 412."
    case = make_case(text)
    statement = Statement(0, 0, len(text), text, text)
    found = read_statement(case, statement, [make_passage(text)], {}, ScriptedReader())
    assert found.is_known
    assert found.supporting
    assert found.supporting.reading.supported > 0.9


@pytest.mark.parametrize(
    ("language", "texts", "claim", "nearest"),
    [
        ("en", ["Trees grow there. " * 60, "The tower is 412 m tall."], "The tower is 512 m tall.",
         "The tower is 412 m tall."),
        ("zh", ["这里有很多树。" * 60, "塔高412米。"], "塔高512米。", "塔高412米。"),
    ],
)  # fmt: skip
def test_of_plain_texts_the_nearest_windows_are_read_first(
    language: str, texts: list[str], claim: str, nearest: str
) -> None:
    assert find_nearest_windows(claim, texts, language)[0] == nearest


class CorrectedReader(WordReader):
    """Supports only the given claims, contradicts all others."""

    def __init__(self, *claims: str) -> None:
        self._claims = frozenset(claims)

    def read(
        self, pairs: Sequence[EvidenceClaimPair], stop: StopSignal | None = None
    ) -> list[EntailmentReading]:
        found = super().read(pairs, stop)
        return [
            EntailmentReading(*(SUPPORTS if claim in self._claims else CONTRADICTS), reading.words)
            for (_, claim), reading in zip(pairs, found, strict=True)
        ]


def assessed(claim: str, reader: EntailmentReader, *texts: str, question: str = "") -> Assessment:
    passages = [make_passage(t, number=n, source=f"{n}.txt") for n, t in enumerate(texts)]
    view = make_view(make_case(claim, question=question), passages)
    (item,) = assessor_with(reader).assess(view, StopSignal())
    return item


def explained(
    claim: str, reader: EntailmentReader, *texts: str
) -> tuple[tuple[DebatePoint, ...], str]:
    item = assessed(claim, reader, *texts)
    points = explain_assessment(item, reader, StopSignal())
    return points, explain_label(item, points)


class DocumentText(str):
    """A source's text that a weak reference can follow."""


def test_cached_features_keep_neither_sources_nor_stop_signal_alive() -> None:
    assessor = assessor_with(WordReader())
    text, stop = DocumentText(TEXT), StopSignal()
    references = weakref.ref(text), weakref.ref(stop)
    view = replace(make_view(make_case(SENTENCES[2]), [passage(2)]), sources={"facts.txt": text})
    first = assessor.measure(view, view.statements[0], [passage(2)], stop)
    again = replace(view, sources={"facts.txt": TEXT})
    del view, text, stop
    assert [reference() for reference in references] == [None, None]
    assert assessor.measure(again, again.statements[0], [passage(2)]) is first


def test_cached_features_are_those_of_the_same_source_text_and_question() -> None:
    assessor = assessor_with(WordReader())
    view = make_view(make_case("It is 412 m tall."), [passage(2)])
    views = [
        replace(view, sources={"facts.txt": TEXT}),
        replace(view, sources={"facts.txt": TEXT.replace("She built", "He built")}),
        replace(view, case=replace(view.case, question="How tall is it?")),
    ]
    found = [assessor.measure(one, one.statements[0], [passage(2)]) for one in views]
    assert len({features.reading for features in found}) == 3


def test_oldest_features_leave_a_full_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(assessment, "MEASUREMENT_CACHE_SIZE", 1)
    assessor = assessor_with(WordReader())
    view = make_view(make_case(SENTENCES[2]), [passage(2)])

    def measure(number: int) -> StatementFeatures:
        return assessor.measure(view, view.statements[0], [passage(number)])

    first = measure(1)
    assert measure(1) is first
    measure(2)
    assert measure(1) is not first


@pytest.mark.parametrize(*table("explanation: corrected claims that are borne out"))
def test_the_source_says_the_other_where_the_corrected_claim_is_borne_out(
    claim: str, text: str, wrong: str, instead: str
) -> None:
    points, reason = explained(claim, CorrectedReader(claim.replace(wrong, instead)), text)
    assert (points[0].text, points[0].evidence, points[0].finding) == (
        wrong, instead, "contradicted",
    )  # fmt: skip
    assert claim[points[0].start : points[0].end] == wrong
    assert points[0].quote is not None
    assert points[0].quote.text == text
    assert reason == f"“{wrong}” is wrong: the source says “{instead}” (“{text}” (0.txt))."


def test_a_figure_of_something_else_is_not_put_in_the_place_of_the_wrong_one() -> None:
    """The reader does not bear out that the tower has 90 floors; 90 are the visitors' years."""
    claim, text = "The tower has 512 floors.", "The tower is tall. Its guide is 90 years old."
    points, reason = explained(claim, CorrectedReader(), text)
    assert [point.evidence for point in points] == [""] * len(points)
    assert {point.finding for point in points} == {"missing"}
    assert "the source says “90" not in reason


def test_what_a_replacement_is_taken_from_is_what_it_is_checked_against() -> None:
    claim = "The tower is 512 m tall."
    reader = ScriptedReader({"412": CONTRADICTS})
    item = assessed(claim, reader, "The tower is 412 m tall.", "Boats are 300 m long.")
    find_wrong_words(item, reader, StopSignal())
    corrected = [pair for pair in reader.pairs if pair[1] != claim]
    assert corrected
    assert all(value in evidence for evidence, said in corrected for value in ("412",))
    assert all("300" not in said for _, said in corrected)


def test_a_supported_statement_names_the_passage_and_no_wrong_words() -> None:
    points, reason = explained("The tower is tall.", WordReader(), "The tower is tall.", "Swans.")
    assert [(p.finding, p.evidence) for p in points] == [("carried", "The tower is tall.")]
    assert reason == "The source says so: “The tower is tall.” (0.txt)."


def test_at_most_two_places_are_named_and_none_overlap() -> None:
    claim = "Lena Berg built 9 red towers of glass in 1911."
    points, _ = explained(claim, CorrectedReader(), "Lena Moor built 8 blue huts of wood in 1910.")
    assert 1 <= len(points) <= 2
    spans = sorted((p.start, p.end) for p in points)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(spans))


def test_what_is_open_says_why_and_names_no_words() -> None:
    points, reason = explained(
        "The tower is tall.", ScriptedReader({"": NEUTRAL}), "The tower is old and tall."
    )
    assert points == ()
    assert reason == "The sources neither plainly support nor plainly contradict this."


@pytest.mark.parametrize(
    ("own", "claim", "words", "place"),
    [
        ("It is 5 m and 5 m.", "It is 5 m and 5 m.", (14, 17), (14, 17)),
        ("5 m.", "Is it 5 m? 5 m.", (11, 14), (0, 3)),
        ("It is  5\nm.", "It is 5 m.", (6, 9), (7, 10)),
        ("It is old.", "The tower is old.", (0, 9), None),
    ],
)
def test_words_of_the_claim_are_found_again_in_the_response(
    own: str, claim: str, words: tuple[int, int], place: tuple[int, int] | None
) -> None:
    statement = Statement(0, 100, 100 + len(own), own, claim)
    found = locate_in_response(statement, claim, *words)
    assert found == (place and (100 + place[0], 100 + place[1]))
