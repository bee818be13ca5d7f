"""Values against ranges, bounds and labelled rows, and what they decide."""

from __future__ import annotations

import pytest

from core.baseline.assessment import explain_assessment, explain_label
from core.baseline.entailment import EntailmentReading
from core.baseline.evidence_model import compare_words
from core.baseline.evidence_windows import StatementReading
from core.baseline.value_comparison import ValueFinding, compare_values
from core.documents.segmentation import split_sentences
from core.runtime.concurrency import StopSignal
from core.tools.quantities import find_quantities, match_claimed_quantity
from tests.fakes import make_case, make_passage, make_view
from tests.readers import CONTRADICTS, NEUTRAL, SUPPORTS, ScriptedReader, assessor_with
from tests.tools.corpus import Row, rows

FLOOR = 0.97  # 81 of 83 rows


def windows(row: Row) -> list[str]:
    """The windows of the row's source: each list row under its heading, or prose and sentences."""
    source, language = row["source"], row["language"]
    heading, *items = source.split("\n")
    sentences = [source[a:b] for a, b in split_sentences(source, language)]
    return [f"{heading}: {item}" for item in items] or [source, *sentences]


def compared(row: Row) -> tuple[ValueFinding, ...]:
    return compare_words(StatementReading(row["claim"], 0, ()), windows(row), row["language"])


def test_values_against_ranges_bounds_and_rows_of_the_corpus() -> None:
    corpus = rows("compare_ranges")
    wrong = []
    for row in corpus:
        statuses = {value.status for value in compared(row)}
        found = "different" if "different" in statuses else " ".join(sorted(statuses))
        wrong += [row] if found != row["status"] else []
    assert 1 - len(wrong) / len(corpus) >= FLOOR, wrong


@pytest.mark.parametrize(
    ("claimed", "source", "match"),
    [
        ("more than 500 people", "more than 400 people", "different"),
        ("more than 300 people", "more than 400 people", "same"),
        ("at least 12 km", "at least 16 km", "incomparable"),
        ("at least 18 km", "at least 16 km", "different"),
        ("at least 18 km", "more than 16 km", "different"),
        ("up to 2 hours", "up to 90 minutes", "different"),
        ("at least 16 months", "14–18 months", "incomparable"),
        ("less than 20 months", "14–18 months", "same"),
    ],
)
def test_claimed_bound_must_allow_what_source_allows(claimed: str, source: str, match: str) -> None:
    [one], [other] = find_quantities(claimed), find_quantities(source)
    assert match_claimed_quantity(one, other) == match


@pytest.mark.parametrize(
    ("supported", "label"),
    [(0.1, "unclear"), (0.25, "unclear"), (0.35, "hallucinated"), (0.9, "hallucinated")],
)
def test_reader_must_plainly_support_claim_with_range(supported: float, label: str) -> None:
    class RangeReader(ScriptedReader):
        """Supports claims with the source's range as far as the case says, and knows no others."""

        def _reading(self, evidence: str, claim: str) -> EntailmentReading:
            is_range = "85 to 95 grams" in claim
            return EntailmentReading(
                *((supported, 0.05, 0.95 - supported) if is_range else NEUTRAL)
            )

    view = make_view(
        make_case("The sensor weighs 120 grams."),
        [make_passage("The sensor weighs 85 to 95 grams.")],
    )
    [item] = assessor_with(RangeReader()).assess(view, StopSignal())
    assert item.label == label


def test_row_does_not_overrule_word_for_word_copy() -> None:
    claim = "On Friday Dr. Moor speaks until 20:00."
    view = make_view(
        make_case(claim),
        [make_passage(claim), make_passage("Opening hours: Friday: 10:00–18:00", number=1)],
    )
    [item] = assessor_with(ScriptedReader({"": SUPPORTS})).assess(view, StopSignal())
    assert "different" in {value.status for value in item.measured.values}
    assert item.label == "supported"


class SourceReader(ScriptedReader):
    """Supports only claims in the source's own words, and contradicts all others."""

    def _reading(self, evidence: str, claim: str) -> EntailmentReading:
        is_copied = claim.rstrip(".") in evidence
        return EntailmentReading(*(SUPPORTS if is_copied else CONTRADICTS))


@pytest.mark.parametrize(
    ("claim", "label"),
    [
        ("The sensor weighs 90 grams.", "supported"),
        ("The sensor weighs 120 grams.", "hallucinated"),
        ("The sensor weighs at least 85 grams.", "supported"),
        ("The sensor weighs more than 120 grams.", "hallucinated"),
        ("The sensor never weighs 90 grams.", "hallucinated"),
        ("The antenna weighs 90 grams.", "hallucinated"),
    ],
)
def test_range_decides_if_reader_supports_claim_with_range(claim: str, label: str) -> None:
    view = make_view(make_case(claim), [make_passage("The sensor weighs 85 to 95 grams.")])
    [item] = assessor_with(SourceReader()).assess(view, StopSignal())
    assert item.label == label


def test_range_of_something_else_decides_nothing() -> None:
    view = make_view(
        make_case("The antenna weighs 120 grams."),
        [make_passage("The sensor weighs 85 to 95 grams.")],
    )
    [item] = assessor_with(ScriptedReader({"": NEUTRAL})).assess(view, StopSignal())
    assert (item.label, [value.status for value in item.measured.values]) == (
        "unclear",
        ["different"],
    )


def test_row_that_claim_names_decides() -> None:
    """Thursday's row allows 18 h, Friday's does not."""
    hours = ("Hours: - Thursday: 10–18 h", "Hours: - Friday: 10–14 h")
    [right] = [v for v in compare_values("On Friday until 12 h.", 0, hours, "en") if not v.is_date]
    [wrong] = [v for v in compare_values("On Friday until 18 h.", 0, hours, "en") if not v.is_date]
    assert (right.status, wrong.status, wrong.instead) == ("same", "different", "10–14 h")


RESULTS = (
    "Item Operating result (thousands of euros), 2022: 1,275; 2023: (4,310)",
    "Item Fuel costs (thousands of euros), 2022: (7,120); 2023: (8,460)",
    "Item Cash and equivalents (thousands of euros), 31 Mar: 22,402; 30 Jun: 23,075",
)


@pytest.mark.parametrize(
    ("claim", "status", "label"),
    [
        ("The operating result was negative in 2023.", "same", "supported"),
        ("The operating result was positive in 2023.", "different", "hallucinated"),
        ("The operating result was negative in 2022.", "different", "hallucinated"),
        ("The operating result was -4,310 in 2023.", "same", "supported"),
        ("The operating result in 2023 was (4,310).", "same", "unclear"),
        ("The operating loss was 4.3 million euros in 2023.", "same", "supported"),
        ("The operating profit was 4.3 million euros in 2023.", "different", "hallucinated"),
        ("The operating loss was 1.3 million euros in 2022.", "different", "hallucinated"),
        ("Fuel costs were 8,460 in 2023.", "same", "unclear"),
        ("Fuel costs were 7,120 in 2023.", "different", "hallucinated"),
        ("Cash and equivalents were 22.4 million euros on 31 March.", "same", "supported"),
        ("Cash and equivalents were not 22.4 million euros on 31 March.", "same", "unclear"),
        ("Cash and equivalents fell to 22.4 million euros on 31 March.", "same", "unclear"),
        ("Cash and equivalents were 22.4 million euros on 30 June.", "different", "hallucinated"),
    ],
)
def test_signs_and_dates_of_table_cells_decide(claim: str, status: str, label: str) -> None:
    found = [value for value in compare_values(claim, 0, RESULTS, "en") if not value.is_date]
    assert [value.status for value in found] == [status]
    view = make_view(
        make_case(claim), [make_passage(row, number=n) for n, row in enumerate(RESULTS)]
    )
    [item] = assessor_with(ScriptedReader({"": NEUTRAL})).assess(view, StopSignal())
    assert item.label == label


def test_reason_cites_the_row_of_the_deciding_cell() -> None:
    claim, reader = "The operating result was positive in 2023.", ScriptedReader({"": NEUTRAL})
    items = [make_passage(row, number=n) for n, row in enumerate(reversed(RESULTS))]
    for word in ("positive", "negative"):
        view = make_view(make_case(claim.replace("positive", word)), items)
        [item] = assessor_with(reader).assess(view, StopSignal())
        assert RESULTS[0] in explain_label(item, explain_assessment(item, reader, StopSignal()))
