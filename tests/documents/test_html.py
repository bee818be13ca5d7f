"""A page is read as a person sees it."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.html import (
    MAX_NESTING,
    MAX_OPEN_FORMAT_TAGS,
    MAX_SPANNED_CELLS,
    flatten_nesting,
    read_html,
)
from core.documents.readers import decode_page
from core.documents.source_builder import STRUCK_TEXT_NOTE
from core.schema.records import Source
from tests.documents.builders import blocks_of, check_offsets, request


def read(page: str | bytes) -> Source:
    data = page.encode() if isinstance(page, str) else page
    source = read_html(request("a.html", data, "html"))
    check_offsets(source)
    return source


DEEP = "<div>" * (MAX_NESTING + 5)
MARKS = "10\u00a0%\u00a0of cafe\u0301 \U0001f600"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        (  # blocks become lines, inline elements do not
            "<h1>Big &amp; <i>bold</i></h1><p>One <b>two</b>\n  three<br>four</p>"
            "<div>five<p>six</div>",
            "Big & bold\n\nOne two three\nfour\n\nfive\n\nsix",
        ),
        (  # what is not shown is not read
            "<title>Title</title><style>p{}</style><nav>Home</nav><div role='navigation'>Menu</div>"
            "<p>Shown.</p><script>alert(1)</script><noscript>off</noscript><template>t</template>"
            "<p hidden>no</p><p style='display: none'>no</p>"
            "<span style='visibility:hidden'>no</span><!-- no --><select><option>no</select>"
            "<button>no</button><footer>© 2023</footer>",
            "Title\n\nShown.",
        ),
        ("<nav><a>Home</a> <a>News</a></nav>", "Home News"),  # nothing but menus
        ("<title>Report</title><h1>Report 2023</h1>", "Report 2023"),  # the title once
        ("<pre>a\n  b\tc\n\nd</pre><p> x \n y", "a\n  b\tc\n\nd\n\nx y"),
        (f"<p>{MARKS.replace(' of', '&nbsp;of')}", MARKS),
        (  # tables become rows with their names
            "<table><caption>Visitors</caption><thead><tr><th>Region<th>2022<th>2023</thead>"
            "<tr><td>North<td>400<td>412<tr><td>South<td>280<td>287</table>",
            "Visitors\n\nRegion North, 2022: 400; 2023: 412\nRegion South, 2022: 280; 2023: 287",
        ),
        (  # the text right above a table may name the unit of its values
            "<p>All amounts in thousands of euros. Losses are in parentheses.</p>"
            "<table><tr><th>Item<th>31 Mar<th>30 Jun<tr><td>Cash<td>22,402<td>23,075</table>",
            "All amounts in thousands of euros. Losses are in parentheses.\n\n"
            "Item Cash (thousands of euros), 31 Mar: 22,402; 30 Jun: 23,075",
        ),
        (  # cells that span others count for each of them
            "<table><tr><th rowspan=2>Region<th colspan=2>Visitors<tr><th>2022<th>2023"
            "<tr><td rowspan=2>North<td>1<td>2<tr><td>3<td>4</table>",
            "Region North, Visitors 2022: 1; Visitors 2023: 2\n"
            "Region North, Visitors 2022: 3; Visitors 2023: 4",
        ),
        *(  # absurd spans do no harm
            (f"<table><tr><td colspan='{span}' rowspan='{span}'>a<td>b</table>", "a: b")
            for span in ("0", "-1", "x", "99999999999", "1000000", "")
        ),
        (  # tables that lay out the page are blocks
            "<table><tr><td>Left<td><table><tr><td>a<td>b<tr><td>1<td>2</table></table>",
            "Left\n\na 1, b: 2",
        ),
        ("<table role=presentation><tr><td>One<td>Two</table>", "One\n\nTwo"),
        ("<table><tr><td>One<tr><td>Two</table>", "One\n\nTwo"),
        # malformed pages are read
        ("<p>unclosed <b>bold <p>next <i>", "unclosed bold\n\nnext"),
        ("</div></p>loose", "loose"),
        ("<p>a<table><tr><td>x<td>y", "a\n\nx: y"),
        ("<<p>>a&lt;b &notanentity; &#0;", "<\n\n>a<b ¬anentity; \ufffd"),
        ("<div>" * 3000 + "deep", "deep"),
        (  # what nests too deep is still read block by block
            f"{DEEP}one<p>two<b>!</b></p><table><tr><td>three<td>four</table></div>five",
            "one\n\ntwo!\n\nthree\n\nfour\n\nfive",
        ),
    ],
)
def test_a_page_is_read_as_it_is_shown(page: str, text: str) -> None:
    assert read(page).text == text


STRUCK_STYLE = """<style>
/* prices */ .old, .gone > b { color: red; text-decoration: line-through }
a:hover { text-decoration: line-through }
@media print { p { text-decoration: line-through } td { text-decoration: line-through } }
b { font-weight: bold } .broken( { text-decoration: line-through }
</style>"""


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>It costs <del>120</del> <ins>90</ins> euros.", "It costs 90 euros."),
        ("<p><s>Dogs are allowed.</s><p>Cats are.", "Cats are."),
        ("<p><strike>Dogs</strike> Cats are allowed.", "Cats are allowed."),
        ("<p style='text-decoration:red line-through'>Dogs.</p><p>Cats.", "Cats."),
        ("<p>Now <span style='text-decoration-line: line-through'>5</span> 7.", "Now 7."),
        (f"{STRUCK_STYLE}<p class=old>Dogs.</p><p class=gone><b>No.</b> Cats.", "Cats."),
        ("<del><table><tr><td>a<td>b</table></del>Cats.", "Cats."),
        ("<table><tr><td>a<td><s>5</s> 7<tr style='text-decoration:line-through'><td>b", "a: 7"),
    ],
)
def test_struck_text_is_left_out_and_noted(page: str, text: str) -> None:
    source = read(page)
    assert (source.text, source.notes) == (text, (STRUCK_TEXT_NOTE,))


RAISED_STYLE = "<style>.ref { vertical-align: super; font-size: 60% }</style>"


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("<p>120 people<sup>3</sup> and 1,250<sup>5</sup> pumps.", "120 people and 1,250 pumps."),
        ("<p>In 2021<sup><a href='#4'>4</a></sup> it rose.", "In 2021 it rose."),
        ("<p>3 × 10<sup>6</sup> litres on 25 m<sup>2</sup>", "3 × 10⁶ litres on 25 m²"),
        ("<p>10<span style='vertical-align:super'>6</span> litres", "10⁶ litres"),
        (f"{RAISED_STYLE}<p>120<i class=ref>1</i> people", "120 people"),
        ("<table><tr><th>Pumps<th>Year<tr><td>1,250<sup>5</sup><td>2021<sup>4</sup></table>",
         "Pumps 1,250, Year: 2021"),
        ("<p>10<sup hidden>x</sup><sup>6</sup>, 120<del><sup>1</sup></del><sup>3</sup> people",
         "10⁶, 120 people"),
        ("<p>about <sup>3</sup>/<sub>4</sub> of 1<sup>1</sup>&frasl;<sub>2</sub> cups",
         "about 3/4 of 1 1⁄2 cups"),
        ("<sup hidden>3</sup>One<sup><p>2</p></sup><p>two\x0e3\x0f</p>", "One\n\n2\n\ntwo 3"),
    ],
)  # fmt: skip
def test_raised_text_changes_no_number(page: str, text: str) -> None:
    assert read(page).text == text


@pytest.mark.parametrize("page", [f"{STRUCK_STYLE}<p><a>Cats.</a>", "<p><del> </del>Cats."])
def test_no_note_where_no_text_is_struck(page: str) -> None:
    source = read(page)
    assert (source.text, source.notes) == ("Cats.", ())


@pytest.mark.parametrize(
    ("above", "row"),
    [
        ("<h2>Sales in TEUR</h2>", "Town Moorton (TEUR), 2023: 5"),
        ("<h2>1. Sales in TEUR</h2>", "Town Moorton (TEUR), 2023: 5"),
        ("<p>Sales (in TEUR):</p>", "Town Moorton (TEUR), 2023: 5"),
        ("<p>In 2023 the towns grew. We list their sales (TEUR) below.</p>",
         "Town Moorton, 2023: 5"),
        ("<p>The towns reported sales (TEUR) as in earlier years.</p>", "Town Moorton, 2023: 5"),
        (f"<p>{'Sales and sales ' * 10}(TEUR)</p>", "Town Moorton, 2023: 5"),
        ("<table><tr><td>Sales in TEUR</table>", "Town Moorton, 2023: 5"),
        ("<table><tr><th>Town<th>2022<tr><td>Fenton<td>6<tr><td>Sales in TEUR<td></table>",
         "Town Moorton, 2023: 5"),
    ],
)  # fmt: skip
def test_only_a_heading_or_title_right_above_a_table_names_its_unit(above: str, row: str) -> None:
    page = f"{above}<table><tr><th>Town<th>2023<tr><td>Moorton<td>5</table>"
    assert blocks_of(read(page))[-1] == ("table row", row)


def test_elements_say_what_their_text_is() -> None:
    page = (
        "<title>Water report</title><h1>Report 2024</h1><h2>Prices</h2><p>One <b>two</b>.</p>"
        "<ul><li>Item<ol><li>Inner</ol></ul><table><caption>Prices (EUR)</caption>"
        "<tr><th>Tariff<th>2024<tr><td colspan=2>Homes<tr><td>Basic<td>1.20<tr><td>Large<td>1.10"
        "</table><dl><dt>Open</dt><dd>9 to 17</dd><dt>Alone</dt></dl><figcaption>Sales</figcaption>"
    )
    assert blocks_of(read(page)) == [
        ("heading", "Water report"),
        ("heading", "Report 2024"),
        ("heading", "Prices"),
        ("paragraph", "One two."),
        ("list item", "Item"),
        ("list item", "Inner"),
        ("caption", "Prices (EUR)"),
        ("table row", "Homes, Tariff Basic (EUR), 2024: 1.20"),
        ("table row", "Homes, Tariff Large (EUR), 2024: 1.10"),
        ("paragraph", "Open: 9 to 17"),
        ("paragraph", "Alone"),
        ("caption", "Sales"),
    ]
    assert [block.level for block in read(page).blocks[:3]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("picture", "is_chart"),
    [
        ("<img src='sales-chart.png'>", True),
        ("<img alt='Bar graph of visitors' src=x>", True),
        ("<figure><svg><text>100</text></svg></figure>", True),
        ("<img src='harbour.jpg' alt='The harbour'>", False),
        ("<svg class=icon></svg>", False),
    ],
)
def test_a_chart_in_a_page_is_noted(picture: str, is_chart: bool) -> None:
    source = read(f"<p>Words.</p>{picture}")
    assert source.text == "Words."
    noted = ("A picture seems to be a chart: its values cannot be read here.",)
    assert source.notes == (noted if is_chart else ())


def test_a_page_without_text_says_so() -> None:
    source = read("<html><body><script>draw()</script></body></html>")
    assert source.text == ""
    assert source.notes[0].startswith("There is no text to be seen in this page")


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("<meta charset='gb2312'>中文".encode("gb18030"), "中文"),
        ("<meta charset=iso-8859-1>caf\xe9 “q”".encode("cp1252"), "café “q”"),
        (
            "<meta http-equiv='Content-Type' content='text/html; charset=windows-1251'>Мир".encode(
                "cp1251"
            ),
            "Мир",
        ),
        ("<p>Grüße".encode(), "Grüße"),
        ("<p>Grüße".encode("cp1252"), "Grüße"),
        ("<meta charset='no-such-thing'><p>Grüße".encode(), "Grüße"),
        ("<meta charset='rot13'><p>Grüße".encode(), "Grüße"),
        ("<p>Grüße".encode("utf-16"), "Grüße"),
        (b"\xef\xbb\xbf<meta charset=latin1><p>Gr\xc3\xbc\xc3\x9fe", "Grüße"),
    ],
)
def test_declared_encodings_are_respected(data: bytes, text: str) -> None:
    source = read(data)
    assert (source.text, source.notes) == (text, ())


def test_bytes_that_fit_no_encoding_are_shown_and_said() -> None:
    assert decode_page("<meta charset=idna><p>é".encode())[0].endswith("é")
    text, remark = decode_page(b"<meta charset=utf-8><p>a\xffb")
    assert text.endswith("a\ufffdb")
    assert "do not fit the page's encoding (utf-8)" in remark


@given(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), max_size=6))
def test_escaped_words_come_back(words: list[str]) -> None:
    page = "".join(f"<p>{word.replace('&', '&amp;').replace('<', '&lt;')}</p>" for word in words)
    assert read(f"<body>{page}").text == "\n\n".join(words)


@pytest.mark.slow
def test_elements_nest_no_deeper_than_a_browser_lets_them() -> None:
    page = "<div>" * 100_000 + "deep"
    assert flatten_nesting(page).count("<div>") == MAX_NESTING
    assert read(page).text == "deep"
    formats = "".join(f"<p><font color={number}>{number}</p>" for number in range(5000))
    assert flatten_nesting(formats).count("<font") == MAX_OPEN_FORMAT_TAGS
    assert read(formats).text.count("\n\n") == 4999


@pytest.mark.parametrize(
    "page",
    [
        "<ul>" + "<li><p>item" * 5000 + "</ul>",
        "<div><span>text</div>" * 5000,
        "<table>" + "<tr><td><div><b>cell</b><td>b" * 5000 + "</table>",
        "<script>x = '" + "<div>" * 5000 + "'</script><table><tr><td>a<td>b</table>",
        "<!-- " + "<div>" * 5000 + " --><table><tr><td>a<td>b</table>",
        "<p title='" + "<div>" * 5000 + "'>text",
        "<b>" * 60 + "text" + "</b>" * 60 + "<i>more</i>" * 5000,
        "a < b, don't <p don't>x</p>",
    ],
)
def test_pages_that_do_not_nest_deep_are_not_touched(page: str) -> None:
    assert flatten_nesting(page) == page


@pytest.mark.parametrize("part", ["<a '", '<a b="', "<!--", "<script>", "<", "<a =  ", "</div"])
def test_unclosed_tags_and_quotes_are_gone_through_once(part: str) -> None:
    began = time.perf_counter()
    flatten_nesting(part * 200_000)
    assert time.perf_counter() - began < 20.0


@pytest.mark.slow
def test_spans_repeat_a_bounded_number_of_cells() -> None:
    row = "<tr>" + "<td colspan=200 rowspan=200>a" * 5
    assert len(read("<table>" + row * 400 + "</table>").text) < 2 * MAX_SPANNED_CELLS


def test_text_in_many_inline_elements_asks_no_ancestor() -> None:
    began = time.perf_counter()
    assert read("<pre>" + "<span>x  " * 50_000).text == ("x  " * 50_000)
    assert time.perf_counter() - began < 30.0
