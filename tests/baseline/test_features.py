"""What is measured of a statement beside its evidence, in several languages."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.baseline.evidence import read_statement
from core.baseline.evidence_model import FARTHEST, FEATURES, StatementFeatures, log_odds, measure
from core.schema.records import Statement
from tests.fakes import make_case, make_passage
from tests.readers import (
    CONTRADICTS,
    NEUTRAL,
    SUPPORTS,
    UNKNOWN_SCRIPT,
    Odds,
    ScriptedReader,
    WordReader,
)


def measured(
    claim: str, *texts: str, language: str = "en", question: str = "", odds: Odds | None = None
) -> StatementFeatures:
    case = make_case(claim, language=language, question=question)
    own = Statement(0, 0, len(claim), claim, claim)
    items = [make_passage(text, number=n, source=f"{n}.txt") for n, text in enumerate(texts)]
    reader = WordReader() if odds is None else ScriptedReader({"": odds})
    return measure(case, own, items, read_statement(case, own, items, {}, reader))


@pytest.mark.parametrize(
    ("language", "claim", "text", "status"),
    [
        ("en", "The tower is 512 m tall.", "The tower is 412 m tall.", "different"),
        ("en", "The tower is 0.412 km tall.", "The tower is 412 m tall.", "same"),
        ("en", "Sales were 1,200,000 units.", "They sold 1.2 million units.", "same"),
        ("en", "Sales rose from 100 to 150 units, by 50 units.", "They were 100 units, then 150 "
         "units.", "derived"),
        ("en", "It opened on 4 May 1911.", "It opened on 5 May 1911.", "different"),
        ("de", "Es wurde am 4. Mai 1911 eröffnet.", "Eröffnet am 4. Mai 1911.", "same"),
        ("de", "Der Turm ist 1.512 m hoch.", "Der Turm ist 1.412 m hoch.", "different"),
        ("fr", "La tour mesure 512 m.", "La tour mesure 412 m.", "different"),
        ("zh", "塔高512米。", "塔高412米。", "different"),
        ("zh", "大桥于1911年5月4日通车。", "大桥于1911年5月4日通车。", "same"),
        ("hi", "मीनार 512 मीटर ऊँची है।", "मीनार 412 मीटर ऊँची है।", "different"),
        ("en", "The tower weighs 90 tons.", "The tower is 412 m tall.", "unmatched"),
    ],
)  # fmt: skip
def test_each_value_is_the_same_derived_different_or_without_a_match(
    language: str, claim: str, text: str, status: str
) -> None:
    found = measured(claim, text, language=language)
    assert status in [value.status for value in found.values], found.values
    assert found.numbers[f"values_{status}"] > 0
    assert all(claim[value.start : value.end] == value.text for value in found.values)


def test_a_value_that_differs_tells_the_sources_own() -> None:
    (value,) = measured(
        "The tower is 512 m tall.", "Trees grow.", "The tower is 412 m tall."
    ).values
    assert (value.text, value.instead, value.is_date) == ("512 m", "412 m", False)


def test_the_figures_of_a_question_are_none_of_the_answers() -> None:
    found = measured("412 m", "The tower is 412 m tall.", question="Is it 512 m or less?")
    assert [value.text for value in found.values] == ["412 m"]
    assert found.numbers["is_answer"] == 1.0


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("The tower was built by Lena Moor.", 0.0),
        ("The tower was built by Ole Moor.", 0.5),
        ("The tower was built by Ole Berg.", 1.0),
    ],
)
def test_names_that_no_source_has_are_counted(claim: str, missing: float) -> None:
    numbers = measured(claim, "Lena Moor built the tower.").numbers
    assert numbers["names_missing"] == missing
    assert numbers["names"] > 0


@pytest.mark.parametrize(
    ("language", "claim", "text"),
    [
        ("en", "The museum is not open.", "The museum is open."),
        ("de", "Das Museum ist nicht offen.", "Das Museum ist offen."),
        ("fr", "Le musée n'est pas ouvert.", "Le musée est ouvert."),
        ("es", "El museo no está abierto.", "El museo está abierto."),
        ("zh", "博物馆没有开放。", "博物馆开放了。"),
    ],
)
def test_a_denial_that_one_side_lacks_is_seen(language: str, claim: str, text: str) -> None:
    assert measured(claim, text, language=language).numbers["denials_differ"] == 1.0
    assert measured(text, text, language=language).numbers["denials_differ"] == 0.0
    assert measured(claim, claim, language=language).numbers["denials_differ"] == 0.0


def test_readings_are_best_second_and_joined() -> None:
    for odds, best in ((SUPPORTS, "support_best"), (CONTRADICTS, "contradiction_best")):
        numbers = measured("The tower is tall.", "The tower is tall.", odds=odds).numbers
        assert numbers[best] == pytest.approx(log_odds(0.94))
        assert numbers["neutral_least"] == pytest.approx(log_odds(0.03))
    neutral = measured("The tower is tall.", "The tower is tall.", odds=NEUTRAL).numbers
    assert neutral["contradiction_share"] == pytest.approx(0.5)


def test_how_much_of_the_words_the_evidence_has() -> None:
    whole = measured("The old tower is tall.", "The old tower is tall.").numbers
    assert (whole["terms_found"], whole["rare_terms_missing"], whole["longest_run"]) == (1, 0, 1)
    none = measured("Swans nest there.", "The old tower is tall.").numbers
    assert (none["terms_found"], none["longest_run"]) == (0, 0)


TEXTS = st.one_of(
    st.text(max_size=60),
    st.sampled_from(
        ["", "…", UNKNOWN_SCRIPT, "412 m 412 km 4/5/1911", "塔高412米", "٤١٢", "½ ² 𝟘"]
    ),
)


@given(TEXTS, st.lists(TEXTS, max_size=3), st.sampled_from(["en", "zh", "ar", "und", "xx"]), TEXTS)
def test_every_feature_is_a_finite_number_whatever_is_said(
    claim: str, texts: list[str], language: str, question: str
) -> None:
    found = measured(claim, *texts, language=language, question=question)
    assert set(found.numbers) == set(FEATURES)
    assert all(math.isfinite(number) for number in found.row())


@given(st.floats(0, 1), st.floats(0, 1))
def test_log_odds_are_bounded_and_keep_the_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert -FARTHEST <= log_odds(low) <= log_odds(high) <= FARTHEST
