"""The acceptance corpora are well formed, and every report can be rendered from its JSON.

Nothing here runs a checker: the corpora are measured elsewhere and never tuned to.
"""

from collections import Counter
from pathlib import Path

import pypdfium2
import pytest

from tests.corpora.build_reports import build_report
from tests.corpora.loader import (
    FOLDER,
    GENERIC,
    LANGUAGES,
    REPORT_KINDS,
    RIGHT_KINDS,
    WRONG_KINDS,
    Chart,
    Heading,
    ReportCase,
    ReportStatement,
    StatementRow,
    Table,
    load_reports,
    load_statements,
)

ROWS = load_statements()
CASES = load_reports()


def is_consistent(row: StatementRow) -> bool:
    """Return True if label, kind, form and the marked words agree with one another."""
    is_wrong = row.label == "hallucinated"
    return (
        row.kind in (WRONG_KINDS if is_wrong else RIGHT_KINDS)
        and row.form in ("close", "paraphrase")
        and bool(row.wrong) == is_wrong
        and len(row.wrong) == len(row.right)
        and all(row.statement.count(words) == 1 for words in row.wrong)
        and not set(row.wrong) & {""}
    )


def places(case: ReportCase) -> set[str]:
    """Return what a statement may rest on: not charts whose values nobody can read."""
    found = set()
    for block in case.report.blocks:
        match block:
            case Heading(text):
                found.add(text)
            case Table() | Chart(printed_values=True):
                found.add(block.caption if isinstance(block, Table) else block.title)
    return found


def test_each_language_has_25_statements_numbered_from_one() -> None:
    numbers = [f"{language}-{n:02d}" for language in LANGUAGES for n in range(1, 26)]
    assert [row.id for row in ROWS] == numbers
    assert all(row.id.startswith(row.language) for row in ROWS)


def test_statements_are_consistent() -> None:
    assert [row.id for row in ROWS if not is_consistent(row)] == []
    assert len({row.statement for row in ROWS}) == len(ROWS)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_five_sources_and_every_kind(language: str) -> None:
    rows = [row for row in ROWS if row.language == language]
    assert set(Counter(row.source for row in rows).values()) == {5}
    assert Counter(row.label for row in rows) == {"supported": 12, "hallucinated": 13}
    kinds = Counter(row.kind for row in rows)
    assert kinds.keys() == {*RIGHT_KINDS, *WRONG_KINDS}
    assert kinds["verbatim"] == 4
    forms = Counter(row.form for row in rows if row.label == "hallucinated")
    assert min(forms["close"], forms["paraphrase"]) >= 6


def test_held_and_open_part_have_both_labels_in_every_language() -> None:
    parts = Counter((row.language, row.is_held, row.label) for row in ROWS)
    assert len(parts) == 4 * len(LANGUAGES)
    assert min(parts.values()) >= 5


def test_there_are_twenty_reports_in_the_promised_languages_and_formats() -> None:
    assert [case.number for case in CASES] == list(range(1, 21))
    languages = Counter(case.report.language for case in CASES)
    assert languages == {"en": 12, "de": 2, "fr": 2, "es": 1, "sv": 1, "zh": 1, "ar": 1}
    formats = Counter(case.report.format for case in CASES)
    assert formats == {"pdf": 11, "docx": 4, "html": 3, "md": 1, "csv+pdf": 1}
    assert sum(case.response.language != case.report.language for case in CASES) == 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_statements_of_a_response_are_where_they_say(case: ReportCase) -> None:
    response, end = case.response, 0
    for statement in response.statements:
        assert statement.start >= end
        end = statement.end
        assert response.text[statement.start : end] == statement.text
        assert_wrong_words(case, statement)
        assert set(statement.where) <= places(case)
        assert bool(statement.where) == (statement.kind != GENERIC)


def assert_wrong_words(case: ReportCase, statement: ReportStatement) -> None:
    is_wrong = statement.label == "hallucinated"
    kinds = (*WRONG_KINDS, *REPORT_KINDS) if is_wrong else (*RIGHT_KINDS, *REPORT_KINDS, GENERIC)
    assert statement.kind in kinds
    assert bool(statement.wrong) == is_wrong
    for words in statement.wrong:
        assert statement.start <= words.start < words.end <= statement.end
        assert case.response.text[words.start : words.end] == words.text
        assert words.text != words.right


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_report_writes_the_files_and_pages_it_promises(case: ReportCase, tmp_path: Path) -> None:
    written = build_report(case, tmp_path)
    assert [path.name for path in written] == list(case.report.files)
    assert sorted(tmp_path.iterdir()) == sorted(written)
    if case.report.pages:
        assert_pages(case, written[0])


def assert_pages(case: ReportCase, path: Path) -> None:
    document = pypdfium2.PdfDocument(path)
    pages = [page.get_textpage().get_text_range() for page in document]
    document.close()
    assert len(pages) == case.report.pages
    assert 6 <= len(pages) <= 12
    for number, text in enumerate(pages, start=1):
        assert case.report.footer.format(page=number, pages=len(pages)) in text


@pytest.mark.parametrize("number", [4, 6, 8, 17, 18])
def test_a_report_is_the_same_bytes_when_rendered_again(number: int, tmp_path: Path) -> None:
    first = build_report(CASES[number - 1], tmp_path / "first")
    second = build_report(CASES[number - 1], tmp_path / "second")
    assert [path.read_bytes() for path in first] == [path.read_bytes() for path in second]


def test_readme_counts_are_those_of_the_corpora() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    statements = [each for case in CASES for each in case.response.statements]
    for kind, count in Counter(row.kind for row in ROWS).items():
        assert f"| {kind} | {count} |" in text
    for kind in {each.kind for each in statements}:
        right = sum(each.kind == kind and not each.wrong for each in statements)
        wrong = sum(each.kind == kind and bool(each.wrong) for each in statements)
        assert f"| {kind} | {right} | {wrong} |" in text
