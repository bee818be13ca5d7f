"""Markdown: its marks are not read as words, its tables keep what their numbers are."""

from __future__ import annotations

import pytest

from core.documents.html import read_markdown
from core.documents.readers import read_file
from core.documents.source_builder import STRUCK_TEXT_NOTE
from core.runtime.errors import InputError
from tests.documents.builders import request

REPORT = """\ufeff# Coffee *cooperative*

The **cooperative** has `240` members
and ~~two~~ one office; see [the report](http://x.example/a_b "Report").

| Year | Members | Export (t) |
|------|--------:|------------|
| 2021 |     180 | **40**     |
| 2022 |     240 | 55         |

- Its director since 2015 is Lucia Fernandes.
  - She lives in Port Tano.

<script>steal()</script>
<p onclick="x()">Raw <b>HTML</b> is seen as it is shown.</p>

```
x = "a | b"
```
"""


def text_of(marked: str) -> str:
    return read_markdown(request("a.md", marked.encode(), "markdown")).text


def test_what_a_reader_sees_is_read() -> None:
    lines = [line for line in text_of(REPORT).splitlines() if line]
    assert lines == [
        "Coffee cooperative",
        "The cooperative has 240 members and one office; see the report.",
        "Year 2021, Members: 180; Export (t): 40",
        "Year 2022, Members: 240; Export (t): 55",
        "Its director since 2015 is Lucia Fernandes.",
        "She lives in Port Tano.",
        "Raw HTML is seen as it is shown.",
        'x = "a | b"',
    ]


def test_struck_text_is_left_out_and_noted() -> None:
    source = read_markdown(request("a.md", b"~~Dogs are allowed.~~\n\nCats are.", "markdown"))
    assert (source.text, source.notes) == ("Cats are.", (STRUCK_TEXT_NOTE,))


@pytest.mark.parametrize(
    ("marked", "text"),
    [
        ("120 people<sup>3</sup> and 1,250[^5] pumps.\n\n[^5]: Estimate.",
         "120 people and 1,250 pumps.\n\nEstimate."),
        ("3 × 10<sup>6</sup> litres, 10^6^ litres, 10^6 litres",
         "3 × 10⁶ litres, 10⁶ litres, 10^6 litres"),
        ("[See][here] and [^2021] and ^.\n\n[here]: http://x.example", "See and and ^."),
        ("`[^a]` and a^b and c^d", "[^a] and a^b and c^d"),
    ],
)  # fmt: skip
def test_raised_text_changes_no_number(marked: str, text: str) -> None:
    assert text_of(marked) == text


def test_plain_sentences_stay_as_they_are() -> None:
    plain = "Prices rose by 5 % in 2023 & fell <later>.\n\n2 * 3 * 4 is 24; snake_case_name."
    assert text_of(plain).startswith("Prices rose by 5 % in 2023 & fell")
    assert "2 * 3 * 4 is 24; snake_case_name." in text_of(plain)


def test_the_kind_chooses_this_reader_and_nothing_to_see_is_noted() -> None:
    source = read_file(request("a.md", b"<!-- nothing -->", "markdown"))
    assert (source.text, source.kind) == ("", "markdown")
    assert source.notes == ("There is no text to be seen in this file.",)


def test_other_encodings_are_refused_as_in_plain_text() -> None:
    with pytest.raises(InputError, match="is not UTF-8 text"):
        read_markdown(request("a.md", b"na\xefve", "markdown"))


@pytest.mark.parametrize("hostile", ["[" * 20_000, "> " * 80 + "x", "*a_ " * 20_000])
def test_hostile_marks_come_to_an_end_and_lose_nothing(hostile: str) -> None:
    seen = text_of(hostile)
    assert seen.count("x") == hostile.count("x")
    assert seen.count("[") == hostile.count("[")
    assert seen.count("a") == hostile.count("a")


def test_what_is_nested_beyond_all_measure_is_given_up_and_noted() -> None:
    source = read_markdown(request("a.md", ("> " * 5_000 + "x").encode(), "markdown"))
    assert source.text == ""
    assert source.notes
