"""Sentences keep their offsets, languages are named where they are sure, terms meet."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.documents import segmentation
from core.documents.segmentation import (
    MAX_SENTENCE_LENGTH,
    collect_words,
    describe_language_gap,
    describe_unknown_language,
    detect_language,
    detect_prose_language,
    extract_query_terms,
    extract_terms,
    fold_word,
    join_lines,
    split_sentences,
)
from core.pipeline.audit_steps import accumulate_statements


def cut(text: str, language: str = "en") -> list[str]:
    return [text[s.start : s.end] for s in split_sentences(text, language)]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("One. Two!  Three?", "en", ["One.", "Two!", "Three?"]),
        ("北京是首都。人口很多！", "zh", ["北京是首都。", "人口很多！"]),
        ("القاهرة عاصمة. عدد سكانها كبير؟", "ar", ["القاهرة عاصمة.", "عدد سكانها كبير؟"]),
        ("दिल्ली राजधानी है। वह बड़ी है।", "hi", ["दिल्ली राजधानी है।", "वह बड़ी है।"]),
        ("Gegründet am 3. Mai 1999. Ende.", "de", ["Gegründet am 3. Mai 1999.", "Ende."]),
        (
            "It cost $3.50, e.g. on Jan. 5, 2019. Yes.",
            "en",
            ["It cost $3.50, e.g. on Jan. 5, 2019.", "Yes."],
        ),
    ],
)
def test_sentences_of_many_languages(text: str, language: str, expected: list[str]) -> None:
    assert cut(text, language) == expected


ABBREVIATIONS = [
    ("en", "It carries approx. 40 cars, incl. Vans. | Capt. J. R. Holt commands it."),
    ("en", "See Figs. 3 and 4, ed. by Dr. Kim. | Dogs, cats, etc. | The park is open."),
    ("en", "Take vitamin C. | It costs 5 km. | I am 30. | So?"),
    ("en", "It cost approx. $40 million, max. €30 a head. | Vol. II covers Jan. 5 to Feb. 7."),
    ("und", "Built in yard No. 7. | Carries approx. 40 cars."),
    ("de", "Sie gehört dem 1. FC Hafen. | Der 2. Weltkrieg endete. | Im 3. Jh. kam er."),
    (
        "de",
        "Er wurde 65. | Seine Frau kam. | Es gab Brot usw. | Der Bau kostete 5 Mrd. | Die Stadt.",
    ),
    (
        "de",
        "Er baute ca. 30 Häuser, insb. Hallen. | Sie ist Nr. 5. | Karl spielt beim FC. | Er auch.",
    ),
    (
        "fr",
        "M. le maire et Mme. Dupont vont à St. Loup. | La ligne no. 4. | M. Le Pen.",
    ),
    ("de", "Kap. IV. nennt 5 mln. litres. | In der 2. und 3. Etage wohnt er. | Er kam."),
    ("fr", "Il mesure 30 m. | Paul a dit non. | Pain, lait, etc. | Le parc est ouvert."),
    ("es", "Pagaron aprox. 30 mill. de euros. | La Sra. Díaz. | Leche, etc. | La tienda cerró."),
    ("it", "La chiesa di S. Maria ha ca. 400 posti. | Il n. 5 costa 30 mln. di euro. | Mele."),
    ("pt", "O n.º 5 da Av. Paulista. | A Dra. Lima mora na R. Augusta, pág. 5. | Um dia."),
    (
        "nl",
        "Mevr. De Vries betaalt ca. 30 mln. euro. | Het park is open. | Appels enz. | De markt.",
    ),
    ("sv", "Den kostar 30 milj. kronor. | Den 3. maj. | Han fyllde 30. | Hon fyllde 40."),
    ("da", "Sct. Olai ligger i nr. 5. | Den 1. FC vandt. | Den 3. maj. | Den er åben."),
    ("fi", "Ks. s. 12 ja nro 5. | Puisto on auki. | Pyh. Olavi."),
    ("pl", "Ok. 30 tys. zł. | Św. Jan i im. Mickiewicza. | W 2019 r. było inaczej."),
    ("cs", "Je mu 30. | Anně 40. | Krk. | Petr odešel. | Porazil je 1. FC Brno."),
    ("hu", "Szt. István, Bp. Fő u. 5. sz. 3. emelet. | A park nyitva van."),
    ("ro", "Dl. Popescu, str. Lungă nr. 5, pag. 3. | Parcul e deschis."),
    ("tr", "Dr. Yılmaz yakl. 30 mil. lira ödedi. | Park açık. | Sn. Kaya geldi."),
    ("ru", "Было 30 млн. рублей, т. е. около 5. | Это рис. 3, табл. 4. | Ему 30. | Ей 40."),
    ("el", "Ο κ. Παπάς πλήρωσε 30 εκ. ευρώ. | Το πάρκο είναι ανοιχτό. | Αγ. Ιωάννης."),
    ("hi", "डॉ. शर्मा आए। | वह गए।"),
]


@pytest.mark.parametrize(("language", "marked"), ABBREVIATIONS)
def test_full_stop_of_abbreviation_or_ordinal_ends_no_sentence(language: str, marked: str) -> None:
    assert cut(marked.replace(" | ", " "), language) == marked.split(" | ")


@pytest.mark.parametrize(("language", "marked"), ABBREVIATIONS)
def test_streamed_text_has_the_same_sentences(language: str, marked: str) -> None:
    text, found, start = marked.replace(" | ", " "), [], 0
    for complete in accumulate_statements(text, language):
        found += cut(complete[start:], language)
        start = len(complete)
    assert found == marked.split(" | ")


def test_line_ends_inside_wrapped_prose_are_no_sentence_ends() -> None:
    prose = (
        "The bridge was opened to traffic in the spring of 1932 after\n"
        "eight years of work and was paid for by tolls until the year\n"
        "1988. It is still in use.\n"
    )
    assert cut(prose) == [prose[: prose.index(" It is")], "It is still in use."]


def test_line_that_ends_with_abbreviation_ends_no_sentence() -> None:
    prose = (
        "The ferry was built for the southern islands at the yard No.\n"
        "7 in Marl, and carries on every one of its crossings approx.\n"
        "40 cars. Karl Berg has commanded it since then. It was sold.\n"
        "Vans are carried too.\n"
    )
    assert len(cut(prose)) == 4


def test_list_items_headings_and_rows_stand_alone() -> None:
    text = "Prices\n\n- Apples cost 3\n- Pears cost 4\nNorth: 412\nSouth: 287"
    assert cut(text) == ["Prices", "- Apples cost 3", "- Pears cost 4", "North: 412", "South: 287"]


def test_a_stretch_of_the_text_is_cut_alone() -> None:
    text = "First. Second page. More. Last."
    found = split_sentences(text, "en", 7, 25)
    assert [text[s.start : s.end] for s in found] == ["Second page.", "More."]


def test_text_without_stops_is_cut_at_blanks() -> None:
    text = "กรุงเทพมหานคร " * 200
    pieces = cut(text, "th")
    assert len(pieces) > 3
    assert all(len(piece) <= MAX_SENTENCE_LENGTH for piece in pieces)


def test_a_hundred_thousand_characters_take_no_time() -> None:
    began = time.perf_counter()
    assert len(cut("Dr. Smith paid 3.50 on Jan. 5. " * 3500)) >= 3500
    assert time.perf_counter() - began < 2.0


@given(st.text(max_size=400), st.sampled_from(["en", "zh", "ar", "th", "und"]))
def test_offsets_hold_for_any_text(text: str, language: str) -> None:
    end = 0
    for item in split_sentences(text, language):
        assert end <= item.start < item.end <= len(text)
        piece = text[item.start : item.end]
        assert piece == piece.strip()
        end = item.end


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("zh", "北京是首都。“好。”他说。"),
        ("en", "Dr. Smith paid $3.50 on Jan. 5. (One. Two.) "),
        ("de", "Gegründet am 3. Mai 1999. "),
    ],
)
def test_sentences_are_the_same_whatever_the_window(
    language: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = text * 200
    monkeypatch.setattr(segmentation, "SEGMENTER_WINDOW", len(long))
    whole = cut(long, language)
    for window in (1000, 1237, 2001):
        monkeypatch.setattr(segmentation, "SEGMENTER_WINDOW", window)
        assert cut(long, language) == whole


def test_no_window_is_longer_than_sentencex_can_take(monkeypatch: pytest.MonkeyPatch) -> None:
    lengths: list[int] = []

    def segmented(_language: str, text: str) -> list[str]:
        lengths.append(len(text))
        return [text[at : at + 6] for at in range(0, len(text), 6)]

    monkeypatch.setattr("sentencex.segment", segmented)
    text = "北京是首都。" * 50_000
    assert len(cut(text, "zh")) == 50_000
    assert max(lengths) <= segmentation.SEGMENTER_WINDOW
    assert sum(lengths) < 2 * len(text)


@pytest.mark.parametrize(
    ("above", "below", "known", "joined"),
    [
        ("an exam-", "ple here", "", "an example here"),
        ("a well-", "known case", "", "a well-known case"),
        ("a cross-", "border case", "", "a cross-border case"),
        ("two north-", "south lines", "north-south", "two north-south lines"),
        ("the re-", "form came", "reform", "the reform came"),
        ("soft\u00ad", "ware", "", "software"),
        ("in 2019-", "2020 it", "", "in 2019- 2020 it"),
        ("Rhein-", "Main", "", "Rhein- Main"),
        ("trailing -", "word", "", "trailing - word"),
        ("über-", "mäßig", "", "übermäßig"),
        ("one", "two", "", "one two"),
        ("文字", "接着", "", "文字接着"),
        ("文字", "and", "", "文字 and"),
    ],
)
def test_lines_of_a_paragraph_are_joined(above: str, below: str, known: str, joined: str) -> None:
    text, by = join_lines(above, below, collect_words([known]))
    assert text + by + below == joined


def test_words_are_found_with_their_hyphens() -> None:
    assert collect_words(["A well-known Thing"]) == {"a", "well-known", "thing"}


@given(st.text(st.characters(codec="utf-8")), st.text(st.characters(codec="utf-8")))
def test_nothing_but_a_hyphen_is_ever_lost_between_lines(above: str, below: str) -> None:
    text, by = join_lines(above, below, frozenset())
    assert text in (above, above[:-1])
    assert by in ("", " ")
    assert text == above or above[-1] in "-\u2010\u00ad"


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
    assert detect_language(text) == language


def test_a_foreign_title_does_not_decide() -> None:
    text = "Le Monde\n" + "The museum of the harbour was founded by two brothers in 1904. " * 500
    assert detect_language(text) == "en"


@given(st.text())
def test_any_text_has_a_code(text: str) -> None:
    assert detect_language(text).isalpha()


@pytest.mark.parametrize("language", ["en", "ru", "zh", "und"])
def test_languages_that_the_reader_knows_are_not_noted(language: str) -> None:
    assert describe_unknown_language(language) == ""


def test_a_language_that_the_reader_does_not_know_is_noted() -> None:
    assert describe_unknown_language("mt") == (
        "This seems to be Maltese, which the built-in reader does not know: it compares numbers, "
        "dates and words, not what is meant."
    )


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("The harbour handled 4,120 ships in 2023.", "en"),
        ("Der neue Kai wurde im Mai 2021 eröffnet.", "de"),
        ("新码头于2021年5月启用。", "zh"),
        ("Ludwig van Beethoven was born in Bonn.", "und"),
        ("Georges Gilles de la Tourette described literature.", "und"),
        ("Simón Bolívar y Palacios", "und"),
        ("p(x|y) = p(y|x) p(x) / p(y)", "und"),
        ("4,120", "und"),
    ],
)
def test_names_and_formulas_are_in_no_language(text: str, language: str) -> None:
    assert detect_prose_language(text) == language


@pytest.mark.parametrize("language", ["en", "und"])
def test_no_gap_is_seen_where_languages_meet_or_are_unknown(language: str) -> None:
    assert describe_language_gap(language, [("a.txt", "en"), ("b.png", "und")]) == ""


def test_sources_in_other_languages_are_named() -> None:
    sources = [("a.txt", "en"), ("b.pdf", "zh"), ("c.md", "ar")]
    words = describe_language_gap("en", sources)
    assert words.startswith("The text is in English, “b.pdf” in Chinese, “c.md” in Arabic. ")


@pytest.mark.parametrize(
    ("one", "other", "language"),
    [
        ("The Towers", "tower", "en"),
        ("ZÜRICH", "Zurich", "de"),
        ("1,234", "1234", "en"),
        ("٤١٢", "412", "ar"),
        ("العاصمةُ", "العاصمة", "ar"),
        ("employees", "employee’s", "en"),
        ("ﬁne", "fine", "en"),
        ("２０２３", "2023", "ja"),
    ],
)
def test_what_is_the_same_word_meets(one: str, other: str, language: str) -> None:
    assert set(extract_terms(one, language)) & set(extract_terms(other, language))


@pytest.mark.parametrize(
    ("text", "inside"), [("人口有两千万的北京市", "北京"), ("กรุงเทพมหานครเป็นเมืองหลวง", "เมือง")]
)
def test_a_word_inside_an_unspaced_run_is_found(text: str, inside: str) -> None:
    assert set(extract_terms(inside)) <= set(extract_terms(text))


def test_indic_vowels_are_kept() -> None:
    assert list(extract_terms("दिल्ली", "hi")) != list(extract_terms("दल्ला", "hi"))


def test_decimals_are_not_grouped_numbers() -> None:
    assert list(extract_terms("3.5")) == ["3d5"]
    assert list(extract_terms("1.234.567")) == ["1234567"]


def test_function_words_are_searched_only_when_there_is_nothing_else() -> None:
    assert extract_query_terms("What is the height of the tower?", "en") == ["height", "tower"]
    assert extract_query_terms("to be or not to be", "en")


@given(st.text(max_size=200))
def test_any_text_gives_terms_without_blanks(text: str) -> None:
    for term in extract_terms(text):
        assert term
        assert not any(letter.isspace() for letter in term)


@given(st.text(max_size=50))
def test_folding_twice_changes_nothing_more(text: str) -> None:
    assert fold_word(fold_word(text)) == fold_word(text)
