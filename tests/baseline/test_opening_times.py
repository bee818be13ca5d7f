"""Times of a statement about weekdays against the rows of a timetable."""

from __future__ import annotations

import pytest

from core.baseline.opening_times import compare_opening_times

BARE = "Hours: - Monday: closed - Tuesday to Thursday: 9–12, 14–18 - Fridays: 9–12"
CLOCK = "Mon–Thu 6:30–21:00, Fri 6:30–19:00, Saturday and Sunday 8 a.m. to 5:30 p.m."
GERMAN = "Di.–Do.: 10–18 Uhr, Fr.: 9.30–12 Uhr"
FRENCH = "Du lundi au jeudi : 10h-18h\nVendredi : 10h-14h"
SPANISH = "lunes a jueves: 10:00–18:00; viernes: 10:00–14:00"
AFTERNOON = "Mon–Fri: 9–5, Saturday: 9:00–1:00, Sunday: 2–6"
MIDNIGHT = "Thursday: 10:00–24:00, Friday: 10:00–00:00, Saturday: 22:00–02:00"
CHINESE = "周一至周四：10:00–18:00\n周五：10:00–14:00"


@pytest.mark.parametrize(
    ("claim", "source", "language", "status"),
    [
        ("It is open until 18 h on Wednesday.", BARE, "en", "same"),
        ("It is open until 12 on Friday.", BARE, "en", "same"),
        ("It is open until 18:00 on Friday.", BARE, "en", "different"),
        ("It opens at 14:00 on Tuesday.", BARE, "en", "same"),
        ("It is open from 9 to 12 on Friday.", BARE, "en", "same"),
        ("It is open from 9 to 18 on Friday.", BARE, "en", "different"),
        ("It is open until 12 on Monday.", BARE, "en", "different"),
        ("It is open until 12 on Saturday.", BARE, "en", "unmatched"),
        ("It is open until 7 pm on Friday.", CLOCK, "en", "same"),
        ("It is open until 9 pm on Friday.", CLOCK, "en", "different"),
        ("It is open until 9 pm on Tuesday.", CLOCK, "en", "same"),
        ("It is open until 6 pm on Sunday.", CLOCK, "en", "different"),
        ("It opens at 8:00 on Sunday.", CLOCK, "en", "same"),
        ("It is open until 8:00 on Sunday.", CLOCK, "en", "different"),
        ("The library is open on Monday from 9:00 am to 5:00 pm.", AFTERNOON, "en", "same"),
        ("It is open until 17:00 on Friday.", AFTERNOON, "en", "same"),
        ("It is open from 9 to 5 on Monday.", "Monday: 9 am to 5 pm", "en", "same"),
        ("It is open until 1 pm on Saturday.", AFTERNOON, "en", "same"),
        ("It is open until 6 pm on Saturday.", AFTERNOON, "en", "different"),
        ("It is open until 4 pm on Monday.", AFTERNOON, "en", "different"),
        ("It is open until 6 pm on Sunday.", AFTERNOON, "en", "unmatched"),
        ("It is open at 3 pm on Sunday.", AFTERNOON, "en", "unmatched"),
        ("It is open until 5 on Monday.", "Monday: 9:00–17:00", "en", "unmatched"),
        ("It is open until 5 am on Monday.", "Monday: 9:00–17:00", "en", "different"),
        ("It is open until 24:00 on Friday.", MIDNIGHT, "en", "same"),
        ("It is open until 0:00 on Thursday.", MIDNIGHT, "en", "same"),
        ("It is open at 20:00 on Friday.", MIDNIGHT, "en", "same"),
        ("It is open at 1:00 on Saturday.", MIDNIGHT, "en", "same"),
        ("It is open until 2 am on Saturday.", MIDNIGHT, "en", "same"),
        ("It is open until 2 pm on Saturday.", MIDNIGHT, "en", "different"),
        ("Am Mittwoch ist bis 18 Uhr offen.", GERMAN, "de", "same"),
        ("Am Freitag ist bis 18 Uhr offen.", GERMAN, "de", "different"),
        ("Le vendredi, c'est ouvert jusqu'à 18h.", FRENCH, "fr", "different"),
        ("El viernes abre hasta las 18:00.", SPANISH, "es", "different"),
        ("周三开放到18:00。", CHINESE, "zh", "same"),
        ("周五开放到18:00。", CHINESE, "zh", "different"),
    ],
)  # fmt: skip
def test_row_of_weekday_decides_about_time(
    claim: str, source: str, language: str, status: str
) -> None:
    found = compare_opening_times(claim, 0, [source], language)
    assert [value.status for value in found if not value.is_date][-1:] == [status]


@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("It is open until 18:00.", BARE),
        ("On Friday 20 people came.", "The talk on Friday drew 30 people."),
        ("On Friday it opens at 9:00.", "It is closed on Monday. It opens at 9:00."),
        (
            "The concert on Friday begins at 20:00.",
            "The concert on Friday begins at 20:00. Opening hours: Friday: 10:00–18:00",
        ),
    ],
)
def test_text_without_timetable_or_weekday_is_left_to_other_comparisons(
    claim: str, source: str
) -> None:
    assert [v for v in compare_opening_times(claim, 0, [source], "en") if not v.is_date] == []


def test_sentence_about_another_weekday_leaves_row_to_decide() -> None:
    source = "The concert on Thursday begins at 20:00. Opening hours: Friday: 10:00–18:00"
    time = compare_opening_times("It is open until 20:00 on Friday.", 0, [source], "en")[-1]
    assert time.status == "different"


def test_weekday_inside_range_of_days_is_the_same() -> None:
    [day] = compare_opening_times("It is open on Wednesday.", 0, [BARE], "en")
    assert (day.text, day.status, day.decided_by) == ("Wednesday", "same", "Tuesday to Thursday")


def test_time_inside_range_is_the_same_but_decides_nothing() -> None:
    """“It opens at 11” has the same words as “it is open at 11”."""
    time = compare_opening_times("On Friday it opens at 11:00.", 0, [BARE], "en")[-1]
    assert (time.status, time.decided_by) == ("same", "")


def test_row_without_times_differs_from_any_time() -> None:
    time = compare_opening_times("It is open until 18:00 on Monday.", 0, [BARE], "en")[-1]
    assert (time.status, time.instead, time.decided_by) == ("different", "closed", "")
