"""What texts state of dates, in five languages, held against the calendar."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.tools.age_claims import claims_in
from core.tools.calendar import weekday_name
from core.tools.date_claims import DateClaim

STATED = [
    ("en", "From 3 March 2020 to 5 May 2021 are {} days.", "428", "438", "428 days"),
    ("en", "There were {} days between March 3, 2020 and May 5, 2021.", "428", "438", "428 days"),
    ("en", "The siege lasted {} days, from 3 March 2020 to 5 May 2021.", "428", "382", "428 days"),
    ("en", "12 March 2024 was a {}.", "Tuesday", "Monday", "Tuesday"),
    ("en", "It was opened on 12 March 2024, which was a {}.", "Tuesday", "Monday", "Tuesday"),
    ("en", "It closed on 12 March 2024, and that day was a {}.", "Tuesday", "Monday", "Tuesday"),
    ("en", "It snowed on {}, 12 March 2024.", "Tuesday", "Monday", "Tuesday"),
    ("en", "Founded in 2021, it closed ten years later, in {}.", "2031", "2041", "2031"),
    ("en", "Built in 2004, it got engines in {}, 15 years later.", "2019", "2009", "2019"),
    ("en", "On 3 May 2020 it rained; two weeks later, on {} May 2020, it snowed.", "17", "27", "2"),
    ("en", "Born on 4 July 1976, she was {} in May 2000.", "23", "25", "23 years"),
    ("en", "He was born in 1900 and was {} years old in 1950.", "49", "52", "49 or 50 years"),
    ("en", "From 1998 to 2023 are {} years.", "25", "35", "25 years"),
    ("en", "Between 1998 and 2023 there were {} years.", "25", "20", "25 years"),
    ("en", "There are {} years between 1998 and 2023.", "25", "52", "25 years"),
    ("en", "The reign lasted {} years, from 1998 to 2023.", "25", "28", "25 years"),
    ("en", "The ferry ran from 1998 to 2023, that is {} years.", "25", "15", "25 years"),
    ("de", "Von 1998 bis 2023 sind es {} Jahre.", "25", "35", "25 years"),
    ("fr", "De 1998 à 2023, il y a {} ans.", "25", "35", "25 years"),
    ("es", "De 1998 a 2023 hay {} años.", "25", "35", "25 years"),
    ("zh", "从1998年到2023年共有{}年。", "25", "35", "25 years"),
    ("zh", "1998年至2023年相隔{}年。", "25", "35", "25 years"),
    ("de", "Vom 3. März 2020 bis zum 5. Mai 2021 sind es {} Tage.", "428", "438", "428 days"),
    ("de", "Der 12. März 2024 war ein {}.", "Dienstag", "Montag", "Tuesday"),
    ("de", "1990 gegründet, zehn Jahre später, im Jahr {}, verkauft.", "2000", "2010", "2000"),
    ("de", "Am 4. Juli 1976 geboren, war sie im Mai 2000 {} Jahre alt.", "23", "25", "23 years"),
    ("fr", "Du 3 mars 2020 au 5 mai 2021, il y a {} jours.", "428", "438", "428 days"),
    ("fr", "Le 12 mars 2024 était un {}.", "mardi", "lundi", "Tuesday"),
    ("fr", "Fondée en 1990, elle fut vendue dix ans plus tard, en {}.", "2000", "2010", "2000"),
    ("fr", "Née le 4 juillet 1976, elle avait {} ans en mai 2000.", "23", "25", "23 years"),
    ("es", "Del 3 de marzo de 2020 al 5 de mayo de 2021 hay {} días.", "428", "438", "428 days"),
    ("es", "El 12 de marzo de 2024 fue {}.", "martes", "lunes", "Tuesday"),
    ("es", "Fundada en 1990, fue vendida diez años después, en {}.", "2000", "2010", "2000"),
    ("es", "Nacida el 4 de julio de 1976, tenía {} años en mayo de 2000.", "23", "25", "23 years"),
    ("zh", "从2020年3月3日到2021年5月5日共有{}天。", "428", "438", "428 days"),
    ("zh", "2024年3月12日是{}。", "星期二", "星期一", "Tuesday"),
    ("zh", "大桥于2024年3月12日通车，那天是{}。", "星期二", "星期一", "Tuesday"),
    ("zh", "公司成立于1990年，十年后的{}年被出售。", "2000", "2010", "2000"),
    ("zh", "她出生于1976年7月4日，2000年5月时{}岁。", "23", "25", "23 years"),
]


def only(text: str, language: str) -> DateClaim:
    (claim,) = claims_in(text, language)
    return claim


@pytest.mark.parametrize(("language", "text", "right", "wrong", "worked_out"), STATED)
def test_a_claim_holds_or_not(
    language: str, text: str, right: str, wrong: str, worked_out: str
) -> None:
    good, bad = only(text.format(right), language), only(text.format(wrong), language)
    assert (good.finding.holds, bad.finding.holds) == (True, False)
    assert bad.finding.worked_out.startswith(worked_out)
    place = text.format(wrong)[bad.finding.start : bad.finding.end]
    assert place == bad.finding.given
    assert wrong in place


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("en", "12 March 2024 was not a Monday."),
        ("en", "He spent 20 days there between 3 March 2020 and 5 May 2021."),
        ("en", "From 3 March 2020 to 5 May 2021 are about 430 days."),
        ("en", "From 3 March 2020 to 5 May 2021 are 300 working days."),
        ("en", "From 3 March 2020 to 5 May 2021 are 429 days."),
        ("en", "Founded in 1990, it closed ten years later, in 2001."),
        ("en", "In 1980 and in 1990 it grew; ten years later, in 2030, it closed."),
        ("en", "Her son, born on 4 July 1976, was 25 in May 2000."),
        ("en", "Born on 4 July 1976, she won 25 medals in May 2000."),
        ("en", "Born on 4 July 1976, she was 25th in May 2000."),
        ("en", "It opened on 12 March 2024. Monday was a holiday."),
        ("en", "Some 100 years later, in 2024, it snowed."),
        ("en", "On 3 March 1520 it was a Monday."),
        ("en", "From 1990 to 2000 there were 3 years of drought."),
        ("en", "From 1998 to 2023 are 26 years."),
        ("en", "Built in 1990, it moved in 2000, five years later it closed."),
        ("en", "Built in 1990, it moved in 2000, 5 years later than planned."),
        ("en", "From 1998 to 2023 are not 35 years."),
        ("en", "From 1998 to 2023 are about 30 years."),
        ("en", "He lived there for 3 years between 1998 and 2023."),
        ("en", "There are 3 years between 1998 and 2023 of which nothing is known."),
        ("zh", "从1990年到2000年有3年干旱。"),
        ("de", "Der 12. März 2024 war kein Montag."),
        ("fr", "Le 12 mars 2024 n'était pas un lundi."),
        ("es", "El 12 de marzo de 2024 no fue lunes."),
        ("zh", "2024年3月12日不是星期一。"),
        ("en", ""),
    ],
)
def test_what_is_open_is_no_claim(language: str, text: str) -> None:
    assert claims_in(text, language) == []


def test_a_date_before_the_text_may_be_what_it_leans_on() -> None:
    text = "Ten years later, in 2010, it was sold."
    assert claims_in(text, "en") == []
    (claim,) = claims_in(text, "en", "The firm was founded in 1990. ")
    assert not claim.finding.holds
    assert text[claim.finding.start : claim.finding.end] == "2010"
    assert claims_in("It was sold.", "en", "12 March 2024 was a Monday. ") == []


@given(st.dates(min_value=date(1600, 1, 1), max_value=date(2400, 1, 1)), st.integers(0, 6))
def test_weekdays_of_any_date(day: date, said: int) -> None:
    name = weekday_name(date(2024, 1, 1 + said))
    claim = only(f"{day.day} {day:%B} {day.year} was a {name}.", "en")
    assert claim.finding.holds is (day.weekday() == said)


@given(st.integers(1700, 1950), st.integers(2, 90), st.integers(2, 90))
def test_years_between_any_two(first: int, apart: int, said: int) -> None:
    claims = claims_in(f"From {first} to {first + apart} are {said} years.", "en")
    assert [claim.finding.holds for claim in claims] == [apart == said] * (abs(apart - said) != 1)


BORNE_OUT = [
    ("en", "It was opened on 12 March 2024, which was a Tuesday.", ", which was a Tuesday"),
    ("en", "It was opened on 12 March 2024; that day was a Tuesday.", "; that day was a Tuesday"),
    ("en", "It ran from 1998 to 2023, which is 25 years.", ", which is 25 years"),
    ("en", "The siege lasted 428 days, from 3 March 2020 to 5 May 2021.", "428 days"),
    ("en", "Founded in 2021, it closed ten years later, in 2031.", "ten years later, "),
    ("en", "Built in 2004, it got engines in 2019, 15 years later.", ", 15 years later"),
    ("en", "Born on 4 July 1976, she was 23 in May 2000.", "she was 23 in May 2000"),
    ("en", "Born on 4 July 1976, he died in May 2000, aged 23.", "aged 23"),
    ("zh", "她出生于1976年7月4日，2000年5月时23岁。", "2000年5月时23岁"),
    ("zh", "大桥于2024年3月12日通车，那天是星期二。", "，那天是星期二"),
    ("zh", "大桥于2024年3月12日（星期二）通车。", "星期二"),
    ("zh", "渡轮从1998年到2023年共25年。", "共25年"),
]


@pytest.mark.parametrize(("language", "text", "words"), BORNE_OUT)
def test_the_dates_themselves_are_not_among_the_words_borne_out(
    language: str, text: str, words: str
) -> None:
    start, end = only(text, language).follows
    assert text[start:end] == words


@given(st.text(max_size=200), st.text(max_size=60))
def test_any_text_can_be_read(text: str, before: str) -> None:
    for led in (text, f"From 3 March 2020 {text} are 4 days", f"born 1976-07-04 {text} was 23"):
        for claim in claims_in(led, "en", before):
            assert 0 <= claim.start <= claim.finding.start < claim.finding.end <= len(led)
