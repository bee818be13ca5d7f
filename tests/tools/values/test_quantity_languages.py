"""Quantities in other languages: digits and marks, number words, units, bounds."""

from __future__ import annotations

import pytest

from core.tools.values.quantities import find_quantities

YEAR = 31557600.0

CASES = [
    ("de", "etwa 1.234 Menschen", 1234, "mensch", "about"),
    ("de", "3,5 Millionen Euro", 3.5e6, "EUR", "exact"),
    ("de", "zweihundertfünf Häuser", 205, "haus", "exact"),
    ("de", "ein Drittel der Bevölkerung", 100 / 3, "percent", "exact"),
    ("de", "die 28-jährige Frau", 28 * YEAR, "second", "exact"),
    ("de", "im Alter von 28 Jahren", 28 * YEAR, "second", "exact"),
    ("de", "mehr als 2 Mio. Euro", 2e6, "EUR", "more_than"),
    ("de", "1 000 000 Einwohner", 1e6, "einwohn", "exact"),
    ("fr", "environ 1 234 personnes", 1234, "person", "about"),
    ("fr", "3,5 millions d'euros", 3.5e6, "EUR", "exact"),
    ("fr", "quatre-vingt-dix-sept ans", 97 * YEAR, "second", "exact"),
    ("fr", "deux cent cinq maisons", 205, "maison", "exact"),
    ("fr", "un tiers de la population", 100 / 3, "percent", "exact"),
    ("fr", "plus de 300 personnes", 300, "person", "more_than"),
    ("es", "unos 1.234 habitantes", 1234, "habit", "about"),
    ("es", "mil millones de euros", 1e9, "EUR", "exact"),
    ("es", "treinta y dos años", 32 * YEAR, "second", "exact"),
    ("es", "2.000 km²", 2e9, "meter ** 2", "exact"),
    ("it", "circa 1.234 abitanti", 1234, "abit", "about"),
    ("it", "duecentocinquanta metri", 250, "meter", "exact"),
    ("it", "almeno 300 persone", 300, "person", "at_least"),
    ("pt", "3,5 milhões de reais", 3.5e6, "BRL", "exact"),
    ("pt", "vinte e cinco anos", 25 * YEAR, "second", "exact"),
    ("nl", "tweehonderdvijftig meter", 250, "meter", "exact"),
    ("nl", "ongeveer 1.234 inwoners", 1234, "inwoner", "about"),
    ("da", "to hundrede og fem huse", 205, "", "exact"),
    ("sv", "tjugofem år", 25 * YEAR, "second", "exact"),
    ("sv", "mer än 300 personer", 300, "person", "more_than"),
    ("sv", "3,5 miljoner kronor", 3.5e6, "SEK", "exact"),
    ("fi", "kaksikymmentäviisi vuotta", 25 * YEAR, "second", "exact"),
    ("fi", "412 metriä", 412, "meter", "exact"),
    ("fi", "kaksi kolmasosaa", 200 / 3, "percent", "exact"),
    ("cs", "dvacet pět let", 25 * YEAR, "second", "exact"),
    ("cs", "více než 300 lidí", 300, "", "more_than"),
    ("cs", "3,5 milionu korun", 3.5e6, "CZK", "exact"),
    ("ca", "vint-i-cinc anys", 25 * YEAR, "second", "exact"),
    ("ca", "uns 1.234 habitants", 1234, "hab", "about"),
    ("eu", "hogeita bost urte", 25 * YEAR, "second", "exact"),
    ("eu", "ehuneko 15", 15, "percent", "exact"),
    ("eu", "300 pertsona baino gehiago", 300, "", "more_than"),
    ("ru", "двадцать пять лет", 25 * YEAR, "second", "exact"),
    ("ru", "около 1 234 жителей", 1234, "", "about"),
    ("ru", "3,5 млн рублей", 3.5e6, "RUB", "exact"),
    ("tr", "yüzde 15", 15, "percent", "exact"),
    ("tr", "300'den fazla kişi", 300, "", "more_than"),
    ("tr", "yirmi beş yıl", 25 * YEAR, "second", "exact"),
    ("pl", "3,5 mln zł", 3.5e6, "PLN", "exact"),
    ("ar", "حوالي ١٢٣٤ نسمة", 1234, "", "about"),
    ("ar", "٣٫٥ مليون دولار", 3.5e6, "USD", "exact"),
    ("ar", "خمسة وعشرون عاما", 25 * YEAR, "second", "exact"),
    ("ar", "١٥٪", 15, "percent", "exact"),
    ("fa", "۴۱۲ متر", 412, "meter", "exact"),
    ("fa", "بیست و پنج سال", 25 * YEAR, "second", "exact"),
    ("hi", "3.5 करोड़ रुपये", 3.5e7, "INR", "exact"),
    ("hi", "300 से अधिक लोग", 300, "", "more_than"),
    ("hi", "१२३४ मीटर", 1234, "meter", "exact"),
    ("bn", "৪১২ মিটার", 412, "meter", "exact"),
    ("th", "3.5 ล้านบาท", 3.5e6, "THB", "exact"),
    ("th", "๔๑๒ เมตร", 412, "meter", "exact"),
    ("zh", "塔高412米", 412, "meter", "exact"),
    ("zh", "约1200万人", 1.2e7, "人", "about"),
    ("zh", "两亿三千万", 2.3e8, "", "exact"),
    ("zh", "四百一十二", 412, "", "exact"),
    ("zh", "百分之十五", 15, "percent", "exact"),
    ("zh", "三分之一", 100 / 3, "percent", "exact"),
    ("zh", "一千二百万美元", 1.2e7, "USD", "exact"),
    ("zh", "3亿2000万元", 3.2e8, "CNY", "exact"),
    ("zh", "五万五千", 55000, "", "exact"),
    ("zh", "1小时30分", 5400, "second", "exact"),
    ("zh", "20多名", 20, "", "more_than"),
    ("zh", "两只猫", 2, "", "exact"),
    ("zh", "增长了两倍", 2, "time", "exact"),
    ("zh", "零下5℃", 268.15, "kelvin", "exact"),
    ("zh", "三成", 30, "percent", "exact"),
    ("ja", "1億2千万円", 1.2e8, "JPY", "exact"),
    ("ja", "三分の一", 100 / 3, "percent", "exact"),
    ("ja", "300人以上", 300, "人", "at_least"),
    ("ja", "二十五歳", 25 * YEAR, "second", "exact"),
    ("ko", "3만 5천 원", 35000, "KRW", "exact"),
    ("ko", "1억 2000만 달러", 1.2e8, "USD", "exact"),
    ("ko", "300명 이상", 300, "", "at_least"),
]


@pytest.mark.parametrize(("language", "text", "low", "unit", "bound"), CASES)
def test_finds_one_quantity(language: str, text: str, low: float, unit: str, bound: str) -> None:
    [quantity] = find_quantities(text, language)
    assert quantity.low == pytest.approx(low)
    assert (quantity.unit or quantity.noun, quantity.bound) == (unit, bound)


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("de", "eine Katze und ein Hund"),
        ("fr", "un chat, une souris"),
        ("it", "secondo il governo"),
        ("pt", "segundo o governo"),
        ("es", "unos amigos"),
        ("ca", "La prova és des del principi"),
        ("zh", "一些人一般认为万一十分统一"),
        ("zh", "1. 中央舱"),
        ("ja", "一般的な一部"),
    ],
)
def test_leaves_articles_and_words_alone(language: str, text: str) -> None:
    assert find_quantities(text, language) == []


@pytest.mark.parametrize(
    ("text", "language", "value"),
    [
        ("1,234", "en", 1234),
        ("1,234", "de", 1.234),
        ("1.234", "en", 1.234),
        ("1.234", "de", 1234),
        ("1,5", "en", 1.5),
        ("0.500", "de", 0.5),
        ("1.234.567", "en", 1234567),
        ("1'234'567", "de", 1234567),
        ("1 234,5", "fr", 1234.5),
    ],
)
def test_grouping_is_decided_by_language(text: str, language: str, value: float) -> None:
    [quantity] = find_quantities(f"({text})", language)
    assert quantity.low == pytest.approx(value)


def test_rank_in_chinese() -> None:
    [quantity] = find_quantities("第三", "zh")
    assert (quantity.ordinal, quantity.low, quantity.text) == (True, 3, "第三")


@pytest.mark.parametrize("language", ["xx", "und", "en-GB", "zh-Hans-CN", "pt_BR", "", "nb"])
def test_any_language_tag_is_accepted(language: str) -> None:
    assert [q.low for q in find_quantities("5 km", language)] == [5000]
