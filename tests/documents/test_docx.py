"""A Word document is read as it is shown."""

from __future__ import annotations

import io
import re
import zipfile
from typing import Any
from xml.etree.ElementTree import fromstring

import pytest
from PIL import Image

from core.documents import docx as reader
from core.documents.docx import read_docx
from core.documents.readers import read_file
from core.documents.source_builder import STRUCK_TEXT_NOTE
from core.runtime.errors import InputError
from core.schema.records import Source
from tests.documents.builders import blocks_of, check_offsets, edited, png, request, word, zipped

WHOLE_TEXT = "Dogs are allowed. Cats are."
BODY = "word/document.xml"
RELATIONS = (
    b'<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
    b'<Relationship Id="r" Type="http://x/officeDocument" Target="word/document.xml"/>'
    b"</Relationships>"
)


def read_word(data: bytes, **settings: int) -> Source:
    source = read_docx(request("a.docx", data, "docx", **settings))
    check_offsets(source)
    return source


def changed(old: str, new: str) -> bytes:
    """A document of one paragraph “Words.” with its XML changed."""
    data = word(lambda document: document.add_paragraph("Words."))
    return edited(data, {BODY: lambda xml: xml.replace(old, new)})


def packed(members: dict[str, bytes]) -> bytes:
    """A zip file of these members."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return stream.getvalue()


def fill(table: Any, rows: list[list[str]]) -> None:
    for number, row in enumerate(rows):
        for column, text in enumerate(row):
            table.cell(number, column).text = text


def test_paragraphs_and_tables_come_in_order() -> None:
    def build(document: Any) -> None:
        document.add_heading("Report")
        document.add_paragraph("Before\tthe table.")
        fill(
            document.add_table(3, 3),
            [["Region", "2022", "2023"], ["North", "1", "2"], ["South", "3", "4"]],
        )
        document.add_paragraph("After it.")

    assert read_word(word(build)).text == (
        "Report\n\nBefore\tthe table.\n\nRegion North, 2022: 1; 2023: 2\n"
        "Region South, 2022: 3; 2023: 4\n\nAfter it."
    )


def test_tables_in_tables_follow_the_row_they_stand_in() -> None:
    def build(document: Any) -> None:
        outer = document.add_table(2, 2)
        fill(outer, [["Name", "Details"], ["Tea", "see below"]])
        fill(outer.cell(1, 1).add_table(2, 2), [["Colour", "Price"], ["green", "3"]])

    assert read_word(word(build)).text == "Name Tea, Details: see below\nColour green, Price: 3"


def test_merged_cells_say_their_text_in_each_row() -> None:
    def build(document: Any) -> None:
        table = document.add_table(3, 3)
        fill(table, [["Depot", "Part", "Units"], ["North", "Drum", "1"], ["", "Motor", "2"]])
        table.cell(1, 0).merge(table.cell(2, 0))

    data = word(build)
    rows = "Depot North, Part: Drum; Units: 1\nDepot North, Part: Motor; Units: 2"
    assert read_word(data).text == rows
    is_left_out = '<w:tr><w:trPr><w:gridBefore w:val="1"/></w:trPr>'
    merged = re.compile(r"<w:tr><w:tc>(?:(?!</w:tc>).)*<w:vMerge/>.*?</w:tc>", re.S)
    without_cell = edited(data, {BODY: lambda xml: merged.sub(is_left_out, xml)})
    assert read_word(without_cell).text == rows


def test_tables_that_lay_out_the_page_are_blocks() -> None:
    def build(document: Any) -> None:
        fill(document.add_table(2, 1), [["One"], ["Two"]])
        fill(document.add_table(1, 2), [["x" * 500, "Side note"]])

    assert read_word(word(build)).text == "One\n\nTwo\n\n" + "x" * 500 + "\n\nSide note"


def test_tracked_changes_are_read_as_accepted() -> None:
    data = changed(
        "<w:r><w:t>Words.</w:t></w:r>",
        "<w:r><w:t xml:space='preserve'>It was </w:t></w:r>"
        "<w:del><w:r><w:delText>bad</w:delText></w:r></w:del>"
        "<w:ins><w:r><w:t>good</w:t></w:r></w:ins><w:r><w:t>.</w:t></w:r>",
    )
    source = read_word(data)
    assert source.text == "It was good."
    assert source.notes == (
        "The document has tracked changes; it was read as if all were accepted.",
    )


@pytest.mark.parametrize(
    ("xml", "text"),
    [
        ("<w:sdt><w:sdtContent><w:r><w:t>chosen</w:t></w:r></w:sdtContent></w:sdt>", "chosen"),
        (
            "<w:r><w:rPr><w:vanish/></w:rPr><w:t>secret</w:t></w:r><w:r><w:t>open</w:t></w:r>",
            "open",
        ),
        ("<w:r><w:rPr><w:vanish w:val='0'/></w:rPr><w:t>open</w:t></w:r>", "open"),
        ("<w:r><w:t>one</w:t><w:br/><w:t>two</w:t></w:r>", "one\ntwo"),
        ("<w:r><w:t>well</w:t><w:noBreakHyphen/><w:t>known</w:t></w:r>", "well\u2011known"),
        ("<w:r><w:fldChar/><w:instrText>PAGE</w:instrText><w:t>7</w:t></w:r>", "7"),
        ("<w:hyperlink><w:r><w:t>linked</w:t></w:r></w:hyperlink>", "linked"),
        (
            "<w:r><w:t>text</w:t><w:pict><w:txbxContent><w:p><w:r><w:t>box</w:t></w:r></w:p>"
            "</w:txbxContent></w:pict></w:r>",
            "text\n\nbox",
        ),
    ],
)
def test_runs(xml: str, text: str) -> None:
    assert read_word(changed("<w:r><w:t>Words.</w:t></w:r>", xml)).text == text


RAISED_STYLE = (
    "<w:style w:type='character' w:styleId='Mark'><w:rPr><w:vertAlign w:val='superscript'/>"
    "</w:rPr></w:style></w:styles>"
)
STRUCK_STYLES = (
    "<w:style w:type='paragraph' w:styleId='Gone'><w:rPr><w:strike/></w:rPr></w:style>"
    "<w:style w:type='character' w:styleId='Old'><w:rPr><w:dstrike/></w:rPr></w:style>"
    "<w:style w:type='character' w:styleId='Older'><w:basedOn w:val='Old'/></w:style></w:styles>"
)


@pytest.mark.parametrize(
    ("paragraph_style", "properties", "is_struck"),
    [
        ("", "<w:strike/>", True),
        ("", "<w:dstrike w:val='1'/>", True),
        ("", "<w:strike w:val='false'/>", False),
        ("", "<w:rStyle w:val='Older'/>", True),
        ("Gone", "", True),
        ("Gone", "<w:strike w:val='0'/>", False),
    ],
)
def test_struck_text_is_left_out_and_noted(
    paragraph_style: str, properties: str, is_struck: bool
) -> None:
    paragraph = (
        f"<w:pPr><w:pStyle w:val='{paragraph_style}'/></w:pPr>"
        f"<w:r><w:rPr>{properties}</w:rPr><w:t>Dogs are allowed. </w:t></w:r>"
        "<w:r><w:rPr><w:strike w:val='0'/></w:rPr><w:t>Cats are.</w:t></w:r>"
    )
    data = edited(
        changed("<w:r><w:t>Words.</w:t></w:r>", paragraph),
        {"word/styles.xml": lambda xml: xml.replace("</w:styles>", STRUCK_STYLES)},
    )
    source = read_word(data)
    text, notes = ("Cats are.", (STRUCK_TEXT_NOTE,)) if is_struck else (WHOLE_TEXT, ())
    assert (source.text.strip(), source.notes) == (text, notes)


@pytest.mark.parametrize(
    ("before", "properties", "raised", "text"),
    [
        ("120 people", "<w:vertAlign w:val='superscript'/>", "3", "120 people live."),
        ("1,250", "<w:rStyle w:val='Mark'/>", "5", "1,250 live."),
        ("3 × 10", "<w:vertAlign w:val='superscript'/>", "6", "3 × 10⁶ live."),
        ("CO", "<w:vertAlign w:val='subscript'/>", "2", "CO2 live."),
    ],
)
def test_raised_text_changes_no_number(
    before: str, properties: str, raised: str, text: str
) -> None:
    runs = (
        f"<w:r><w:t>{before}</w:t></w:r><w:r><w:rPr>{properties}</w:rPr><w:t>{raised}</w:t></w:r>"
        "<w:r><w:t xml:space='preserve'> live.</w:t></w:r>"
    )
    data = edited(
        changed("<w:r><w:t>Words.</w:t></w:r>", runs),
        {"word/styles.xml": lambda xml: xml.replace("</w:styles>", RAISED_STYLE)},
    )
    assert read_word(data).text == text


def test_headers_and_footers_are_not_read() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("Body.")
        document.sections[0].header.paragraphs[0].text = "Annual report"
        document.sections[0].footer.paragraphs[0].text = "12"
        document.add_section()

    assert read_word(word(build)).text == "Body."


def test_styles_say_what_paragraphs_are() -> None:
    def build(document: Any) -> None:
        document.add_heading("Annual report", 0)
        document.add_heading("Water", 1)
        document.add_heading("Prices", 2)
        document.add_paragraph("They rose.")
        document.add_paragraph("An item", style="List Bullet")
        document.add_paragraph("Table 1: Prices (EUR)", style="Caption")
        fill(document.add_table(2, 2), [["Tariff", "2024"], ["Basic", "1.20"]])
        document.add_paragraph("1 Prices 3", style=document.styles.add_style("toc 1", 1))
        derived = document.styles.add_style("House heading", 1)
        derived.base_style = document.styles["Heading 3"]
        document.add_paragraph("Derived", style=derived)

    source = read_word(word(build))
    assert blocks_of(source) == [
        ("heading", "Annual report"),
        ("heading", "Water"),
        ("heading", "Prices"),
        ("paragraph", "They rose."),
        ("list item", "An item"),
        ("caption", "Table 1: Prices (EUR)"),
        ("table row", "Tariff Basic (EUR), 2024: 1.20"),
        ("heading", "Derived"),
    ]
    assert [b.level for b in source.blocks if b.kind == "heading"] == [0, 1, 2, 3]
    assert "1 Prices 3" in source.text


@pytest.mark.parametrize("style", ["Normal", "Heading 1", "Caption"])
def test_text_right_above_a_table_names_the_unit_of_its_values(style: str) -> None:
    def build(document: Any) -> None:
        document.add_paragraph("Balance sheet in thousands of US$", style=style)
        fill(document.add_table(2, 2), [["Item", "31 Mar"], ["Cash", "22,402"]])
        document.add_paragraph("Visitors in 2023.")
        fill(document.add_table(2, 2), [["Town", "2023"], ["Moorton", "5"]])

    rows = [text for kind, text in blocks_of(read_word(word(build))) if kind == "table row"]
    assert rows == ["Item Cash (thousands of US$), 31 Mar: 22,402", "Town Moorton, 2023: 5"]


def test_text_apart_from_a_table_names_no_unit() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("Balance sheet in thousands of US$")
        document.add_paragraph(" ")
        fill(document.add_table(2, 2), [["Item", "31 Mar"], ["Cash", "22,402"]])
        outer = document.add_table(2, 2)
        fill(outer, [["Company", "Report"], ["Moor", "Sales in TEUR"]])
        fill(outer.cell(1, 1).add_table(2, 2), [["Town", "2023"], ["Moorton", "5"]])
        fill(document.add_table(2, 2), [["Town", "2023"], ["Fenton", "6"]])

    rows = [text for kind, text in blocks_of(read_word(word(build))) if kind == "table row"]
    assert rows == [
        "Item Cash, 31 Mar: 22,402",
        "Company Moor, Report: Sales in TEUR",
        "Town Moorton, 2023: 5",
        "Town Fenton, 2023: 6",
    ]


def test_cells_merged_across_name_their_columns_or_a_group_of_rows() -> None:
    def build(document: Any) -> None:
        table = document.add_table(5, 3)
        fill(table, [["", "2024", ""], ["", "net", "gross"], ["Homes", "", ""],
                     ["Basic", "12", "13"], ["Large", "11", "12"]])  # fmt: skip
        table.cell(0, 1).merge(table.cell(0, 2))
        table.cell(2, 0).merge(table.cell(2, 2))

    assert read_word(word(build)).text == (
        "Homes, Basic, 2024 net: 12; 2024 gross: 13\nHomes, Large, 2024 net: 11; 2024 gross: 12"
    )


def test_a_picture_is_noted() -> None:
    def build(document: Any) -> None:
        document.add_paragraph("Body.")
        document.add_picture(io.BytesIO(png(Image.new("RGB", (40, 30), "red"))))

    source = read_word(word(build))
    assert source.text == "Body."
    assert source.notes == (
        "A picture or chart in this document: text and values in them cannot be read here.",
    )


def test_a_document_without_text_says_so() -> None:
    source = read_word(word(lambda document: document.add_paragraph("")))
    assert (source.text, len(source.notes)) == ("", 1)


def test_bombs_are_refused_before_they_are_unpacked() -> None:
    bomb = zipped(_rels__x=RELATIONS, word__document_xml=b"<a>" + b" " * 30_000_000 + b"</a>")
    assert len(bomb) < 100_000
    with pytest.raises(InputError, match=r"“a\.docx” unpacks to 29 MB; at most 10 MB"):
        read_word(bomb, unpacked_megabytes=10)


def test_sizes_that_the_directory_hides_are_not_believed() -> None:
    data = word(lambda document: document.add_paragraph("x" * 5000))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo(BODY).file_size
    lying = data.replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))
    with pytest.raises(InputError, match="damaged"):
        read_word(lying)


BOMB = '<!DOCTYPE a [<!ENTITY b "boom">]><a>&b;</a>'


@pytest.mark.parametrize("before", ["", " " * 70_000, f"<!-- {'x' * 70_000} -->", "<?p <!?>\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_entities_are_not_expanded(before: str, encoding: str) -> None:
    bomb = (before + BOMB).encode(encoding)
    good = {"_rels/.rels": RELATIONS, BODY: b"<a><body/></a>"}
    for member in (*good, "word/footnotes.xml"):
        with pytest.raises(InputError, match="document type declaration"):
            read_word(packed(good | {member: bomb}))


def test_entities_are_not_expanded_under_a_declared_encoding() -> None:
    declared = "document type declaration"
    told = {"latin-1": declared, "cp1252": declared, "cp037": "it is damaged"}
    for encoding, words in told.items():
        bomb = f'<?xml version="1.0" encoding="{encoding}"?>{BOMB}'.encode(encoding)
        with pytest.raises(InputError, match=words):
            read_word(packed({"_rels/.rels": RELATIONS, BODY: bomb}))


def test_words_about_a_document_type_are_words() -> None:
    said = "<!-- <!DOCTYPE html> --><w:p><w:r><w:t><![CDATA[<!DOCTYPE html>]]></w:t></w:r></w:p>"
    data = changed("<w:body>", f"<w:body>{said}")
    assert read_word(data).text == "<!DOCTYPE html>\n\nWords."


def _with_body(xml: bytes) -> bytes:
    data = word(lambda document: document.add_paragraph("Words."))
    return edited(data, {BODY: lambda _old: xml.decode()})


@pytest.mark.parametrize("xml", [b"", b"<w:document", b"not xml at all", b"<a></b>"])
def test_broken_xml_is_refused(xml: bytes) -> None:
    with pytest.raises(InputError, match="could not be read as a Word document: it is damaged"):
        read_word(_with_body(xml))


def test_endless_nesting_is_refused() -> None:
    with pytest.raises(InputError) as caught:
        read_file(request("a.docx", _with_body(b"<a><body>" + b"<tbl><tr><tc>" * 5000), "docx"))
    assert "\n" not in str(caught.value)
    nested = b"<a><body>" + b"<x>" * 3000 + b"</x>" * 3000 + b"</body></a>"
    with pytest.raises(InputError, match="could not be read as a Word document"):
        read_file(request("a.docx", _with_body(nested), "docx"))


@pytest.mark.parametrize("part", ["<tbl><tr><tc>", "<p><r><txbxContent>", "<p>" + "<ins>" * 9])
def test_tables_in_tables_without_end_take_one_clear_sentence(part: str) -> None:
    names = [name.strip("<>") for name in part.replace("><", "> <").split()]
    close = "".join(f"</{name}>" for name in reversed(names))
    body = f"<a><body>{part * 3000}<p><r><t>x</t></r></p>{close * 3000}</body></a>"
    with pytest.raises(InputError, match="nested too deeply") as caught:
        read_file(request("a.docx", _with_body(body.encode()), "docx"))
    assert "recursion" not in str(caught.value).casefold()


def test_spans_do_not_make_a_table_wider_than_any_is() -> None:
    cell = (
        "<w:tc><w:tcPr><w:gridSpan w:val='200'/></w:tcPr><w:p><w:r><w:t>a</w:t></w:r></w:p></w:tc>"
    )
    row = fromstring(f"<w:tr xmlns:w='w'>{cell * 100}</w:tr>")  # noqa: S314 - our own
    assert len(reader._Walk({})._row(row, [], [])) < 400
