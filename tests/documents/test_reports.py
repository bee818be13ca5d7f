"""From the outside in: a report as people upload it, and the passages that come out for a query."""

from __future__ import annotations

from functools import lru_cache

import pytest

from core.documents.readers import read_file
from core.documents.rendering import find_source_boxes
from core.documents.retrieval import Retriever, ensure_index, split_passages
from core.llm.encoder import load_encoder
from core.runtime.concurrency import StopSignal
from core.runtime.config import ENCODER_DIR
from core.schema.records import Passage, Source, SourceKind
from core.store import Store
from tests.documents.builders import blocks_of as blocks
from tests.documents.builders import check_offsets, request
from tests.documents.reports import CSV_REPORT, FIRM, WEB_REPORT, nine_pages, word_report


@lru_cache(maxsize=8)
def source(name: str) -> Source:
    files: dict[str, tuple[bytes, SourceKind]] = {
        "report.pdf": (nine_pages(), "pdf"),
        "report.docx": (word_report(), "docx"),
        "report.html": (WEB_REPORT.encode(), "html"),
        "report.csv": (CSV_REPORT.encode(), "table"),
    }
    found = read_file(request(name, *files[name]))
    check_offsets(found)
    return found


def search(store: Store, name: str, query: str, n: int = 3) -> list[Passage]:
    encoder, item = load_encoder(ENCODER_DIR), source(name)
    store.readings.save(item, reader="test", seconds=0.0, now=1.0)
    ensure_index(store, item, encoder, StopSignal(), lambda done, total: None)
    return Retriever(store, encoder, [item]).retrieve(query, "en", n)


@pytest.mark.parametrize(
    ("name", "query", "text", "heading", "page"),
    [
        (
            "report.pdf", "How large was revenue in 2023?",
            "Income, Revenue, 2024 (EUR million): 131.5; 2023 (EUR million): 120.2; "
            "Change (%): 9.4",
            "Annual report 2024 > 2 Results > 2.1 Key figures > Table 1: Key figures of the group",
            3,
        ),
        (
            "report.pdf", "Other income of the group in 2023",
            "Income, Other income, 2023 (EUR million): 3.1",
            "Annual report 2024 > 2 Results > 2.1 Key figures > Table 1: Key figures of the group",
            3,
        ),
        (
            "report.pdf", "How many homes are there in Town 35?",
            "Town 35, Homes: 1035; Metres sold (m³): 35,450; Price (EUR): 1.35",
            "Annual report 2024 > 2 Results > 2.1 Key figures > Table 2: Sales by town in 2024",
            5,
        ),
        (
            "report.pdf", "Losses from leaking pipes",
            "Losses from leaking pipes fell to 11 percent of all water that was put into the "
            "network, the lowest share since records began in 1978.",
            "Annual report 2024 > 1 Supply", 2,
        ),
        (
            "report.pdf", "How often is the quality of the water tested?",
            "The number of employees rose to 412, of whom 97 work in the laboratory, where the "
            "quality of the water is tested every four hours by a team of chemists who are on "
            "constant call, also at night.",
            "Annual report 2024 > 3 People", 6,
        ),
        (
            "report.pdf", "What does the second spectrometer find?",
            "• The laboratory was given a second spectrometer, which finds traces of medicine that "
            "no one could measure before 2020.",
            "Annual report 2024 > 3 People", 7,
        ),
        (
            "report.pdf", "How many visitors did the museum have in June?",
            "Visitors of the museum by month (thousands), June: 31",
            "Annual report 2024 > 3 People > Figure 1: Visitors of the museum by month (thousands)",
            8,
        ),
        (
            "report.docx", "What is the gross price of the basic tariff for homes?",
            "Homes, Tariff Basic (EUR), 2024 net: 1.20; 2024 gross: 1.28",
            "Annual report 2024 > Water > Prices > Table 1: Prices by tariff (EUR)", None,
        ),
        (
            "report.html", "What is the net price of the large tariff?",
            "Homes, Tariff Large (EUR), 2024 net: 1.10",
            f"Water prices | {FIRM} > Water prices > Tariffs > Prices by tariff (EUR)", None,
        ),
        (
            "report.csv", "How many homes does Marlow have?",
            "Town Marlow, Homes: 8 310; Price (EUR): 1,18", "Sales by town", None,
        ),
    ],
)  # fmt: skip
def test_the_best_passage_says_all_by_itself(
    store: Store, name: str, query: str, text: str, heading: str, page: int | None
) -> None:
    found = search(store, name, query)
    assert text in [passage.text for passage in found]
    best = next(passage for passage in found if passage.text == text)
    assert (best.heading, best.page) == (heading, page)
    assert source(name).text[best.start : best.end] == text


def test_no_passage_is_furniture_a_fragment_or_a_lone_figure() -> None:
    texts = [passage.text for passage in split_passages(source("report.pdf"))]
    whole = " ".join(texts)
    for words in ("Page 3 of 9", FIRM + ".", "Annual report 2024", "2019", "EUR million)\n"):
        assert words not in texts
    assert "Page" not in whole
    assert FIRM not in whole
    for text in texts:
        assert len(text.split()) > 2
        assert text[0].isupper() or text[0] in "•" or text[0].isdigit()


def test_headings_and_captions_are_context_and_no_passages() -> None:
    found = source("report.pdf")
    texts = {passage.text for passage in split_passages(found)}
    headings = {text for kind, text in blocks(found) if kind in ("heading", "caption")}
    assert {"1 Supply", "2.1 Key figures", "Table 2: Sales by town in 2024"} <= headings
    assert not headings & texts


def test_a_table_over_two_pages_names_its_columns_on_both() -> None:
    rows = [p for p in split_passages(source("report.pdf")) if p.text.startswith("Town ")]
    assert len(rows) == 40
    assert all(", Homes: " in row.text and "Price (EUR): " in row.text for row in rows)
    assert [row.page for row in rows] == [4] * 30 + [5] * 10


def test_footnotes_do_not_break_a_sentence_that_goes_on_over_the_page() -> None:
    kinds = {text: kind for kind, text in blocks(source("report.pdf"))}
    note = "2 On 31 December; trainees are not counted."
    assert kinds[note] == "footnote"
    assert note in [passage.text for passage in split_passages(source("report.pdf"))]


def test_a_curve_is_noted_and_its_axes_are_no_evidence() -> None:
    found = source("report.pdf")
    assert found.notes == ("Page 8 with a chart: its values cannot be read here.",)
    labels = [text for kind, text in blocks(found) if kind == "chart label"]
    assert "Axis: 0, 10, 20, 30, 40, 50" in labels
    assert not any("Axis" in passage.text for passage in split_passages(found))


def test_the_cells_of_a_row_are_boxed_on_its_page() -> None:
    found = source("report.pdf")
    row = next(p for p in split_passages(found) if p.text.startswith("Town 33,"))
    boxes = find_source_boxes(found, row.start, row.end)
    assert {page for page, _ in boxes} == {5}
    values = [box for _, box in boxes if box.top > 0.14]
    assert len(values) == 4
    assert max(box.bottom for box in values) - min(box.top for box in values) < 0.03


def test_a_page_without_its_menus_and_footer() -> None:
    text = source("report.html").text
    assert "Jobs" not in text
    assert "Imprint" not in text
    assert source("report.html").notes == (
        "A picture seems to be a chart: its values cannot be read here.",
    )


def test_a_document_without_its_footer() -> None:
    assert "confidential" not in source("report.docx").text


@pytest.mark.parametrize("name", ["report.pdf", "report.docx", "report.html", "report.csv"])
def test_passages_slice_the_text_and_lie_in_their_block_and_page(name: str) -> None:
    found = source(name)
    spans = [(block.start, block.end) for block in found.blocks]
    pages = {page.number: page for page in found.pages}
    for passage in split_passages(found):
        assert found.text[passage.start : passage.end] == passage.text
        assert any(start <= passage.start and passage.end <= end for start, end in spans)
        if passage.page is not None:
            assert pages[passage.page].start <= passage.start < pages[passage.page].end
