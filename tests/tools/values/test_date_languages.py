"""Dates in other languages: months and weekdays, eras, decades, centuries, calendars."""

from __future__ import annotations

import pytest

from core.tools.values.dates import find_dates
from tests.tools.values.test_dates import expected, only, without_place

MAY = "y=1999 m=5 d=3"
NINETIES = "y=1990 ey=1999 k=decade"
CENTURY = "y=1801 ey=1900 k=century"
CAESAR = "y=44 e=bce"
RANGE = "y=1990 ey=1995 k=range"
CASES: list[tuple[str, str, str]] = [
    ("de", "am 3. Mai 1999", MAY),
    ("de", "am 3.5.1999", MAY),
    ("de", "im Jahr 2019", "y=2019"),
    ("de", "seit 1998", "y=1998 b=since"),
    ("de", "die 1990er Jahre", NINETIES),
    ("de", "im 19. Jahrhundert", CENTURY),
    ("de", "44 v. Chr.", CAESAR),
    ("de", "um 17:30 Uhr", "h=17 min=30 b=about"),
    ("de", "im März", "m=3"),
    ("de", "am Montag, 12. März", "m=3 d=12 w=0"),
    ("de", "von 1990 bis 1995", RANGE),
    ("fr", "le 3 mai 1999", MAY),
    ("fr", "le 1er mai", "m=5 d=1"),
    ("fr", "en 2019", "y=2019"),
    ("fr", "depuis 1998", "y=1998 b=since"),
    ("fr", "les années 1990", NINETIES),
    ("fr", "les années 90", NINETIES),
    ("fr", "au XIXe siècle", CENTURY),
    ("fr", "44 av. J.-C.", CAESAR),
    ("fr", "à 17h30", "h=17 min=30"),
    ("fr", "en mars", "m=3"),
    ("fr", "de 1990 à 1995", RANGE),
    ("es", "3 de mayo de 1999", MAY),
    ("es", "los años 90", NINETIES),
    ("es", "el siglo XIX", CENTURY),
    ("es", "44 a. C.", CAESAR),
    ("es", "entre 1990 y 1995", RANGE),
    ("es", "mayo de 1999", "y=1999 m=5"),
    ("it", "3 maggio 1999", MAY),
    ("it", "nel 2019", "y=2019"),
    ("it", "anni '90", NINETIES),
    ("it", "XIX secolo", CENTURY),
    ("it", "dal 1990 al 1995", RANGE),
    ("it", "alle ore 17:30", "h=17 min=30"),
    ("pt", "3 de maio de 1999", MAY),
    ("pt", "na segunda-feira", "w=0"),
    ("pt", "século XIX", CENTURY),
    ("nl", "3 mei 1999", MAY),
    ("nl", "19e eeuw", CENTURY),
    ("nl", "van 1990 tot 1995", RANGE),
    ("sv", "3 maj 1999", MAY),
    ("sv", "år 2019", "y=2019"),
    ("sv", "på 1990-talet", NINETIES),
    ("sv", "på 1800-talet", "y=1800 ey=1899 k=century"),
    ("sv", "44 f.Kr.", CAESAR),
    ("fi", "3. toukokuuta 1999", MAY),
    ("fi", "vuonna 2019", "y=2019"),
    ("fi", "1990-luvulla", NINETIES),
    ("fi", "maaliskuussa", "m=3"),
    ("cs", "3. května 1999", MAY),
    ("cs", "v roce 2019", "y=2019"),
    ("cs", "v 19. století", CENTURY),
    ("cs", "44 př. n. l.", CAESAR),
    ("ca", "3 de maig de 1999", MAY),
    ("ca", "1 d'abril de 2000", "y=2000 m=4 d=1"),
    ("ca", "des del 1998", "y=1998 b=since"),
    ("ca", "al segle XIX", CENTURY),
    ("eu", "1999ko maiatzaren 3an", MAY),
    ("eu", "1999ko maiatzean", "y=1999 m=5"),
    ("eu", "2019an", "y=2019"),
    ("eu", "1990eko hamarkadan", NINETIES),
    ("eu", "XIX. mendean", CENTURY),
    ("ru", "3 мая 1999 года", MAY),
    ("ru", "в 2019 году", "y=2019"),
    ("ru", "с 1998 года", "y=1998 b=since"),
    ("ru", "XIX век", CENTURY),
    ("ru", "в марте", "m=3"),
    ("ru", "44 г. до н. э.", CAESAR),
    ("tr", "3 Mayıs 1999", MAY),
    ("tr", "2019 yılında", "y=2019"),
    ("tr", "1998'den beri", "y=1998 b=since"),
    ("tr", "1990'larda", NINETIES),
    ("tr", "MÖ 44", CAESAR),
    ("pl", "3 maja 1999", MAY),
    ("ar", "3 مايو 1999", MAY),
    ("ar", "٣ أيار ١٩٩٩", MAY),
    ("ar", "عام ٢٠١٩", "y=2019"),
    ("ar", "القرن التاسع عشر", CENTURY),
    ("ar", "يوم الاثنين", "w=0"),
    ("fa", "۳ مه ۱۹۹۹", MAY),
    ("fa", "سال ۲۰۱۹", "y=2019"),
    ("fa", "۲۲ بهمن ۱۳۵۷", "y=1979 m=2 d=11"),
    ("fa", "سال ۱۳۵۷", "y=1978 ey=1979 k=range"),
    ("hi", "3 मई 1999", MAY),
    ("hi", "३ मई १९९९", MAY),
    ("hi", "2019 में", "y=2019"),
    ("hi", "19वीं सदी", CENTURY),
    ("hi", "सोमवार", "w=0"),
    ("zh", "1999年5月3日", MAY),
    ("zh", "一九九九年五月三日", MAY),
    ("zh", "二〇一九年", "y=2019"),
    ("zh", "十二月", "m=12"),
    ("zh", "1998年以来", "y=1998 b=since"),
    ("zh", "2019年前", "y=2019 b=before"),
    ("zh", "20世纪90年代", NINETIES),
    ("zh", "90年代", NINETIES),
    ("zh", "十九世纪", CENTURY),
    ("zh", "公元前44年", CAESAR),
    ("zh", "1990年至1995年", RANGE),
    ("zh", "1990-1995年", RANGE),
    ("zh", "下午5点30分", "h=17 min=30"),
    ("zh", "星期一", "w=0"),
    ("ja", "1999年5月3日", MAY),
    ("ja", "令和元年", "y=2019"),
    ("ja", "平成11年5月3日", MAY),
    ("ja", "19世紀", CENTURY),
    ("ja", "午後5時30分", "h=17 min=30"),
    ("ja", "月曜日", "w=0"),
    ("ja", "2019年頃", "y=2019 b=about"),
    ("ko", "1999년 5월 3일", MAY),
    ("ko", "1998년부터", "y=1998 b=since"),
    ("ko", "1990년대", NINETIES),
    ("ko", "기원전 44년", CAESAR),
    ("ko", "오후 5시 30분", "h=17 min=30"),
]


@pytest.mark.parametrize(("language", "text", "parts"), CASES)
def test_finds_one_date(language: str, text: str, parts: str) -> None:
    assert without_place(only(text, language)) == expected(parts)


NOTHING = [
    ("de", "1500 Menschen"),
    ("fr", "1500 personnes"),
    ("fr", "la planète Mars"),
    ("es", "1500 personas"),
    ("it", "1500 persone"),
    ("nl", "1500 mensen"),
    ("fi", "1500 ihmistä"),
    ("ru", "1500 человек"),
    ("ru", "мама"),
    ("tr", "1500 kişi"),
    ("zh", "10年"),
    ("zh", "5个月"),
    ("zh", "2019个"),
    ("ja", "10年間"),
    ("ko", "10년"),
    ("fa", "می‌شود"),
]


@pytest.mark.parametrize(("language", "text"), NOTHING)
def test_leaves_counts_and_words_alone(language: str, text: str) -> None:
    assert find_dates(text, language) == []


def test_english_dates_inside_other_scripts() -> None:
    assert without_place(only("في September 23, 2002", "ar")) == expected("y=2002 m=9 d=23")
