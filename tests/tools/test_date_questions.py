"""Questions about the calendar, and the answers they got."""

from __future__ import annotations

import pytest

from core.tools.date_questions import check_dates

DAYS = "How many days are there between 30 December 2023 and March 1, 2024?"


@pytest.mark.parametrize(
    ("question", "right", "wrong"),
    [
        (DAYS, "62", "64"),
        (DAYS, "There are 62 days between the two dates.", "It is 60 days."),
        (DAYS, "Eight weeks and six days.", "Eight weeks."),
        ("How many days from 2023-12-30 to 2024-03-01, inclusive?", "63 days", "62 days"),
        ("从2023-12-30到2024-03-01共有多少天？", "62", "72"),
        ("2023年12月30日到2024年3月1日之间有几天？", "一共有六十二天。", "共有64天"),
        ("2024年1月1日和2024年3月4日相隔多少周？", "9周", "10周"),
        ("How many weeks between 2024-01-01 and 2024-01-18?", "2 weeks and 3 days", "4 weeks"),
        ("How many months from 2023-01-15 to 2023-04-15?", "Three months.", "4 months"),
        ("How many years passed between 1 May 1990 and 1 May 2020?", "30 years", "31 years"),
        ("What day of the week was 1 January 2000?", "It was a Saturday.", "Sunday"),
        ("Which weekday is 2000-01-01?", "saturday", "friday"),
        ("2000年1月1日是星期几？", "星期六", "是周日。"),
        ("What date is 100 days after January 1, 2023?", "April 11, 2023", "April 10, 2023"),
        ("What date is one week after 2024-02-26?", "4 March 2024", "5 March 2024"),
        ("What is the date three weeks before 2024-03-01?", "9 February", "8 February"),
        ("2023年1月31日一个月后是几月几日？", "2023年2月28日", "2023年3月3日"),
        ("2024年3月1日之前10天是哪一天？", "2月20日", "2月19日"),
        ("What day of the week is ten days after 2000-01-01?", "Tuesday", "Monday"),
        (
            "How old was Mira Voss, born on 15 June 1990, on 14 June 2020?",
            "She was 29 years old.",
            "She was 30.",
        ),
        ("What date is two weeks and three days after 2024-01-01?", "2024-01-18", "2024-01-15"),
        ("What date is 1 month and 3 days after 2024-01-01?", "4 February", "1 February"),
        ("2024-01-01之后一个月零三天是哪一天？", "2024年2月4日", "2024年2月1日"),
        (
            "How many days from 2023-12-30 to 2024-03-01, counting both days?",
            "63 days",
            "62 days",
        ),
        (
            "Mira Voss died on 14 June 2020 and was born on 15 June 1990. How old was she?",
            "29",
            "30",
        ),
        ("李雷生于1990年6月15日，2020年6月15日他多少岁？", "30岁", "29岁"),
    ],
)
def test_right_and_wrong_answers(question: str, right: str, wrong: str) -> None:
    good, bad = check_dates(question, right), check_dates(question, wrong)
    assert good is not None
    assert bad is not None
    assert (good.holds, bad.holds) == (True, False)
    assert wrong[bad.start : bad.end] == bad.given


@pytest.mark.parametrize(
    ("question", "response"),
    [
        ("", "62 days"),
        ("How many rainy days were there between 2023-12-30 and 2024-03-01?", "17 days"),
        ("What happened on 14 July 1789?", "The Bastille was stormed on a Tuesday."),
        ("Which day did the war end after 8 May 1945?", "2 September 1945"),
        ("How many days are there between 03/04/2021 and 05/06/2021?", "63 days"),
        ("How many days are there between March and May 2021?", "61 days"),
        (DAYS, "I do not know."),
        (DAYS, "About two months."),
        (DAYS, "First 2 days, then 62 days, less 0 days gives 61 days."),
        ("从2023-12-30到2024-03-01下了多少天雨？", "9天"),
        ("How many days are there between 2023-02-30 and 2024-03-01?", "300"),
        (DAYS, "It is not 62 days."),
        (DAYS, "62 days or 70 days"),
        (DAYS, "63 days"),
        (DAYS, "61 days lie between them."),
        (DAYS, "43 business days."),
        ("How many days from 1 January 2023 to 1 March 2023?", "60"),
        ("How many weeks between 2024-01-01 and 2024-01-15?", "2 weeks and 1 day or so"),
        ("How many business days are there between 2023-12-30 and 2024-03-01?", "44"),
        ("How many working days between 2023-12-30 and 2024-03-01?", "44"),
        ("从2023-12-30到2024-03-01共有多少个工作日？", "44"),
        ("Which weekday is 2000-01-01?", "certainly not a Saturday"),
        ("Which weekday is 2000-01-01?", "a Sunday or a Saturday"),
        ("Which weekday is 2000-01-01?", "It was a saturday, not a Friday."),
        ("2000年1月1日是星期几？", "不是星期六"),
        ("Which weekday is 1500-01-01?", "Monday"),
        ("How many days from 1 January 1500 to 1 March 1500?", "70"),
        ("What date is 1 month and 1 day after 2023-01-30?", "1 March 2023"),
        ("How old was Ann, born 1 May 1950, when Bob was born on 3 June 1980?", "30"),
        ("How old was Ann, born 3 June 1990, on 1 May 1980?", "10"),
        ("How old was Ann's son, born 3 June 1980, on 1 May 1990?", "7"),
        ("How old was Ann, born 3 June 1980, on 1 May 1990 and in 1999?", "7"),
        ("What date is 10 days after 9999-12-31?", "1 January 2000"),
    ],
)
def test_what_the_calendar_cannot_decide_is_left_alone(question: str, response: str) -> None:
    assert check_dates(question, response) is None


def test_the_calendars_answer_is_said_in_words() -> None:
    found = check_dates("How many weeks between 2024-01-01 and 2024-01-18?", "5 weeks")
    assert found is not None
    assert found.worked_out == "2 weeks and 3 days"


@pytest.mark.parametrize(
    ("language", "question", "right", "wrong"),
    [
        (
            "de",
            "Wie viele Tage liegen zwischen dem 30. Dezember 2023 und dem 1. März 2024?",
            "62 Tage",
            "64 Tage",
        ),
        ("de", "Welcher Wochentag war der 1. Januar 2000?", "Es war ein Samstag.", "Ein Sonntag."),
        (
            "de",
            "Welches Datum ist zehn Tage nach dem 1. Januar 2000?",
            "11. Januar 2000",
            "12. Januar 2000",
        ),
        (
            "de",
            "Wie alt war Mira, geboren am 15. Juni 1990, am 14. Juni 2020?",
            "29 Jahre",
            "31 Jahre",
        ),
        (
            "fr",
            "Combien de jours y a-t-il entre le 30 décembre 2023 et le 1er mars 2024 ?",
            "62 jours",
            "64 jours",
        ),
        ("fr", "Quel jour de la semaine était le 1er janvier 2000 ?", "Un samedi.", "Un dimanche."),
        (
            "fr",
            "Quelle est la date dix jours après le 1 janvier 2000 ?",
            "Le 11 janvier 2000",
            "Le 12 janvier 2000",
        ),
        (
            "fr",
            "Mira est née le 15 juin 1990. Quel âge avait-elle le 14 juin 2020 ?",
            "29 ans",
            "31 ans",
        ),
        (
            "es",
            "¿Cuántos días hay entre el 30 de diciembre de 2023 y el 1 de marzo de 2024?",
            "62 días",
            "64 días",
        ),
        ("es", "¿Qué día de la semana fue el 1 de enero de 2000?", "Fue sábado.", "Fue domingo."),
        (
            "es",
            "¿Qué fecha es diez días después del 1 de enero de 2000?",
            "11 de enero de 2000",
            "12 de enero de 2000",
        ),
        (
            "es",
            "Mira nació el 15 de junio de 1990. ¿Qué edad tenía el 14 de junio de 2020?",
            "29 años",
            "31 años",
        ),
    ],
)
def test_questions_in_other_languages(language: str, question: str, right: str, wrong: str) -> None:
    good, bad = (check_dates(question, answer, language) for answer in (right, wrong))
    assert good is not None
    assert bad is not None
    assert (good.holds, bad.holds) == (True, False)


@pytest.mark.parametrize(
    ("language", "question", "response"),
    [
        (
            "de",
            "Wie viele Arbeitstage liegen zwischen dem 30. Dezember 2023 und dem 1. März 2024?",
            "44",
        ),
        ("fr", "Combien de jours de pluie entre le 30 décembre 2023 et le 1 mars 2024 ?", "17"),
        (
            "es",
            "¿Cuántos días no hay clase entre el 30 de diciembre de 2023 y el 1 de marzo de 2024?",
            "17",
        ),
    ],
)
def test_what_asks_for_more_than_a_calendar_knows(
    language: str, question: str, response: str
) -> None:
    assert check_dates(question, response, language) is None
