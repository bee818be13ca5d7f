"""Currency signs, codes and words beside a number, as ISO 4217 codes.

"$" alone is the US dollar and "¥" the yen (in Chinese texts the yuan); currencies never convert.
"""

from __future__ import annotations

from functools import lru_cache

from babel.numbers import get_currency_name

from core.tools.values.plain import NARROW, Phrases, lower, plain
from core.tools.values.value_words import file_of, locale_of, value_words

CODES = frozenset(
    """USD EUR GBP JPY CNY INR RUB CHF CAD AUD NZD HKD SGD TWD KRW SEK NOK DKK PLN CZK HUF TRY BRL
    MXN ZAR THB ILS SAR AED EGP IDR PHP VND NGN KES UAH RON ARS CLP COP PKR BDT IRR QAR KWD MYR
    DEM FRF ITL ESP XBT""".split()
)
WRITTEN_CODES = CODES - {"TRY", "RON", "COP", "ALL"}  # also words in capitals
SIGNS: dict[str, str] = {
    "$": "USD", "us$": "USD", "u.s.$": "USD", "us $": "USD", "a$": "AUD", "au$": "AUD",
    "c$": "CAD", "ca$": "CAD", "can$": "CAD", "nz$": "NZD", "hk$": "HKD", "s$": "SGD",
    "nt$": "TWD", "r$": "BRL", "mx$": "MXN", "€": "EUR", "£": "GBP", "¥": "JPY", "¥ ": "JPY",
    "₹": "INR", "rs.": "INR", "rs": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₪": "ILS",
    "₫": "VND", "฿": "THB", "₴": "UAH", "₦": "NGN", "₱": "PHP", "﷼": "IRR", "rmb": "CNY",
    "₿": "XBT", "dm": "DEM", "元": "CNY", "rp": "IDR",
}  # fmt: skip
AFTER: dict[str, str] = {
    "kč": "CZK", "zł": "PLN", "ft": "HUF", "元": "CNY", "块钱": "CNY",
    "人民币": "CNY", "元人民币": "CNY", "美元": "USD", "欧元": "EUR", "歐元": "EUR", "日元": "JPY",
    "英镑": "GBP", "英鎊": "GBP", "港元": "HKD", "港币": "HKD", "新台币": "TWD", "台币": "TWD",
    "韩元": "KRW", "卢布": "RUB", "卢比": "INR", "円": "JPY", "ドル": "USD", "米ドル": "USD",
    "ユーロ": "EUR", "ポンド": "GBP", "원": "KRW", "달러": "USD", "유로": "EUR", "엔": "JPY",
    "บาท": "THB", "ดอลลาร์": "USD",
}  # fmt: skip
KRONOR = {"sv": "SEK", "no": "NOK", "da": "DKK"}


@lru_cache(maxsize=64)
def _before(language: str) -> Phrases[str]:
    found = SIGNS | {code.lower(): code for code in WRITTEN_CODES}
    if file_of(language) == "zh":
        found |= {"¥": "CNY", "￥": "CNY"}
    return Phrases(found)


@lru_cache(maxsize=64)
def _after(language: str) -> Phrases[str]:
    code = file_of(language)
    found = {sign: iso for sign, iso in SIGNS.items() if len(sign) == 1 or sign == "rmb"}
    found |= {iso.lower(): iso for iso in CODES} | {k: v for k, v in AFTER.items() if k != "ft"}
    locale = locale_of(code)
    for iso in sorted(CODES - {"XBT"}):
        for count in (1, 2, 5, 1.5):
            name = lower(plain(get_currency_name(iso, count=count, locale=locale)))
            found[name.replace(NARROW, " ")] = iso
    found |= dict(value_words(code).own.get("currencies", {}))
    if code in KRONOR:
        found |= {"kr": KRONOR[code], "kr.": KRONOR[code], "kronor": KRONOR[code]}
        found |= {"kroner": KRONOR[code], "krona": KRONOR[code], "krone": KRONOR[code]}
    return Phrases(found)


def currency_before(text: str, low: str, position: int, language: str) -> tuple[int, str] | None:
    """The start and code of a currency that ends at a number's start, one blank between."""
    end = position
    if end and low[end - 1] in (" ", NARROW):
        end -= 1
    found = _before(language).before(low, end)
    if found is None:
        return None
    start, iso = found
    written = text[start:end]
    spoken = written.isalpha() and written.lower() not in ("rs", "rp")
    if spoken and written.isascii() and not written.isupper():
        return None
    if written in ("DM", "元") and end == position:
        return None
    return start, iso


def currency_after(text: str, low: str, position: int, language: str) -> tuple[int, str] | None:
    """The end and code of a currency that follows a number ending at `position`."""
    gap = low[position : position + 1]
    start = position + 1 if gap and gap in (" ", NARROW, "-") else position
    found = _after(language).at(low, start)
    if found is None:
        return None
    end, iso = found
    written = text[start:end]
    if len(written) == 3 and written.upper() in CODES and not written.isupper():
        return None
    if written in ("$", "£") and start > position:
        return None  # opens the next amount: "10 $5 notes"
    return end, iso
