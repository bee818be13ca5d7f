"""Languages are named only where the script or enough words tell."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents.segmentation import language_note, language_of


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Barack Obama was born in Hawaii in 1961.", "en"),
        ("La Tour Eiffel a été construite en 1889 pour une exposition.", "fr"),
        ("Das Museum hatte im Jahr 2023 über fünfzigtausend Besucher.", "de"),
        ("El museo recibió cincuenta mil visitantes el año pasado.", "es"),
        ("Kungen bor i Stockholm med sin familj.", "sv"),
        ("Kissa istuu pöydällä ja koira nukkuu lattialla.", "fi"),
        ("Euskal Herria oso toki polita da eta jende asko bizi da bertan", "eu"),
        ("2023年有五万人参观了博物馆", "zh"),
        ("博物館には2023年に五万人が訪れました", "ja"),
        ("박물관에 방문했다", "ko"),
        ("זה משפט", "he"),
        ("พิพิธภัณฑ์", "th"),
        ("Το μουσείο", "el"),
        ("زار المتحف خمسون ألف شخص في عام 2023", "ar"),
        ("این یک جمله فارسی است که برای آزمایش نوشته شده", "fa"),
        ("Музей посетили 50 тысяч человек в 2023 году", "ru"),
        ("Музей відвідали п'ятдесят тисяч осіб минулого року", "uk"),
        ("संग्रहालय में पचास हजार लोग आए", "hi"),
        ("The word 汉字 means Chinese characters in that language.", "en"),
        ("Hello", "und"),
        ("Der Hund", "und"),
        ("North: 412\nSouth: 287", "und"),
        ("12.5 % – 2023", "und"),
        ("", "und"),
    ],
)
def test_languages(text: str, language: str) -> None:
    assert language_of(text) == language


def test_a_foreign_title_does_not_decide() -> None:
    text = "Le Monde\n" + "The museum of the harbour was founded by two brothers in 1904. " * 500
    assert language_of(text) == "en"


@given(st.text())
def test_any_text_has_a_code(text: str) -> None:
    assert language_of(text).isalpha()


@pytest.mark.parametrize("language", ["en", "ru", "zh", "und"])
def test_languages_that_the_reader_knows_are_not_noted(language: str) -> None:
    assert language_note(language) == ""


def test_a_language_that_the_reader_does_not_know_is_noted() -> None:
    assert language_note("mt") == (
        "This seems to be Maltese, which the built-in reader does not know: it compares numbers, "
        "dates and words, not what is meant."
    )
