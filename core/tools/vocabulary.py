"""The words of a language for numbers, units, currencies, bounds and dates.

They come from CLDR (unicode-rbnf, Babel) and, for what it lacks, from a JSON file per language in
`words`. Texts are normalized one code point at a time, so offsets stay those of the text.
"""

from __future__ import annotations

import contextlib
import json
import re
import threading
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar, get_args

import regex
from babel import Locale, UnknownLocaleError
from babel.dates import get_day_names, get_month_names
from babel.numbers import get_currency_name
from babel.units import format_unit

PhraseValue = TypeVar("PhraseValue")
QuantityBound = Literal["exact", "about", "at_least", "at_most", "more_than", "less_than"]
DateBound = Literal["exact", "about", "before", "after", "since", "until"]

WORDS_DIR = Path(__file__).parent / "words"
PATTERN_TABLES = tomllib.loads((WORDS_DIR / "patterns.toml").read_text(encoding="utf-8"))
KEPT_WIDE_MARKS = (
    "，：；！？（）～＂＇"  # full-width marks that differ in meaning from the ASCII ones
)
UNSPACED_SCRIPTS = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}]"
)
SPACE_GROUP_LANGUAGES = frozenset(
    "fr sv fi cs ru uk pl nb no sk bg hu et lv lt es de it pt ca eu".split()
)
NORWEGIAN_CODES = {"nb": "no", "nn": "no"}
WORD_PATTERN = regex.compile(r"\p{L}[\p{L}\p{M}]*+")
SIGNED_DIGITS = regex.compile(r"[\d.,]+")
SCALE_FORMS: tuple[Literal["short", "long"], ...] = ("short", "long")
PER_PATTERN = re.compile(
    r"[ \u00a0]?(?:/|(?:an?|per|pro|par|por|al|na|za|på|за|प्रति|لكل)[ \u00a0]|每|毎)[ \u00a0]?"
)
FEET_INCHES = re.compile(r"'[ ]?\d{1,2}(?:\.\d+)?\"")
BLANK_PATTERN = "[ \u00a0]"
NEVER_PATTERN: re.Pattern[str] = re.compile(r"(?!)")
OTHER_SCRIPTS = frozenset("ar fa hi zh ja ko ru".split())  # texts in these often have English dates
MONTH_FORMS: tuple[Literal["abbreviated", "wide"], ...] = ("abbreviated", "wide")
NAME_CONTEXTS: tuple[Literal["format", "stand-alone"], ...] = ("format", "stand-alone")
DECADE_PATTERN = r"((?:1[0-9]|20|[2-9])?\d0|[2-9]0)"
CENTURY_PATTERN = r"(\d{1,2}|[ivxlc]{1,6}|[一二三四五六七八九十]{1,3})"
SEPARATE_TEMPLATE = r"(?<![^\W一-鿿가-힣])(?<!\d[.,])(?:{})(?![^\W一-鿿가-힣])"


class _PlainTable(dict[int, str]):
    """A translation table of code points, filled on first use."""

    def __missing__(self, code: int) -> str:
        char = chr(code)
        digit = unicodedata.decimal(char, None)
        if char in load_words("signs"):
            self[code] = load_words("signs")[char]
        elif digit is not None:
            self[code] = str(digit)
        else:
            is_wide = 0xFF01 <= code <= 0xFF5E and char not in KEPT_WIDE_MARKS
            self[code] = chr(code - 0xFEE0) if is_wide else char
        return self[code]


_PLAIN = _PlainTable()


def normalize_chars(text: str) -> str:
    """Return the text with digits, signs and blanks of any script as ASCII; same length."""
    return text.translate(_PLAIN)


def lower_text(text: str) -> str:
    """Return the text in lower case, of the same length: letters that would become two stay."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(c.lower() if len(c.lower()) == 1 else c for c in text)


def is_unspaced(char: str) -> bool:
    """Return True for scripts that write words without blanks (Korean: with their endings)."""
    return char > "\u0e00" and UNSPACED_SCRIPTS.match(char) is not None


def is_inside_word(text: str, position: int) -> bool:
    """Return True if the position is inside a word of a script that separates words by blanks."""
    sides = text[position - 1 : position + 1] if position > 0 else ""
    return len(sides) == 2 and all(_is_word_char(c) and not is_unspaced(c) for c in sides)


def _is_word_char(char: str) -> bool:
    return char.isalnum() or (char > "\u02ff" and unicodedata.category(char)[0] == "M")


def skip_blank(text: str, position: int) -> int:
    """Return the position after one blank, if there is one."""
    return position + 1 if text[position : position + 1] in (" ", "\u00a0") else position


def skip_blank_back(text: str, position: int) -> int:
    """Return the position before one blank, if there is one."""
    return position - 1 if position and text[position - 1] in " \u00a0" else position


def _group_lengths(keys: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    """Group lengths by the first or last character or word of the keys, longest first."""
    lengths: dict[str, set[int]] = {}
    for part, size in keys:
        lengths.setdefault(part, set()).add(size)
    return {part: tuple(sorted(sizes, reverse=True)) for part, sizes in lengths.items()}


class PhraseTable(Generic[PhraseValue]):
    """Words and phrases with a value each, looked up at a position in plain lower-case text."""

    def __init__(self, values: Mapping[str, PhraseValue]) -> None:
        self.values = {key: value for key, value in values.items() if key}
        self._first, self._last = (
            _group_lengths((key[place], len(key)) for key in self.values) for place in (0, -1)
        )

    def at(self, text: str, position: int) -> tuple[int, PhraseValue] | None:
        """Return end and value of the longest phrase that starts here and ends at a word end."""
        for length in self._first.get(text[position : position + 1], ()):
            end = position + length
            piece = text[position:end]
            is_whole = end <= len(text) and not is_inside_word(text, end)
            if piece in self.values and is_whole:
                return end, self.values[piece]
        return None

    def before(self, text: str, position: int) -> tuple[int, PhraseValue] | None:
        """Return start and value of the longest phrase that ends here, starting a word."""
        for length in self._last.get(text[position - 1 : position], ()):
            start = position - length
            piece = text[max(0, start) : position]
            if start >= 0 and piece in self.values and not is_inside_word(text, start):
                return start, self.values[piece]
        return None


@dataclass(frozen=True)
class NumberWords:
    """Number words as tuples of words: cardinals up to 1,000 and ordinals up to 100.

    `point` is the word for a decimal mark ("two point five"). `longest` maps a first word to the
    lengths of the tuples that begin with it, longest first.
    """

    cardinals: Mapping[tuple[str, ...], int]
    ordinals: Mapping[tuple[str, ...], int]
    point: str
    longest: Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Vocabulary:
    """One language's words for values; `own` is its JSON file as read."""

    language: str
    locale: Locale
    decimal_mark: str
    groups_by_space: bool
    bounds_before: PhraseTable[QuantityBound]
    bounds_after: PhraseTable[QuantityBound]
    scales: PhraseTable[float]
    percent: PhraseTable[str]
    phrases: PhraseTable[str]
    and_half: PhraseTable[bool]
    ages: PhraseTable[bool]
    own: Mapping[str, Any]

    def listed(self, *names: str) -> frozenset[str]:
        """Return the words of these lists in the language's file."""
        return frozenset(word for name in names for word in self.own.get(name, ()))


def resolve_language(language: str) -> str:
    """Return the language whose file serves a tag ("en", "pt-BR"); English for unknown ones."""
    code = language.lower().replace("_", "-").split("-")[0]
    code = NORWEGIAN_CODES.get(code, code)
    return code if code in _list_languages() else "en"


@lru_cache(maxsize=1)
def _list_languages() -> frozenset[str]:
    """Return the languages with a file: a tag, which a model may write, never becomes a path."""
    return frozenset(path.stem for path in WORDS_DIR.glob("??.json"))


@lru_cache(maxsize=64)
def load_words(name: str) -> dict[str, Any]:
    """Load one of the JSON files in `words`."""
    loaded: dict[str, Any] = json.loads((WORDS_DIR / f"{name}.json").read_text(encoding="utf-8"))
    return loaded


@lru_cache(maxsize=64)
def load_vocabulary(language: str) -> Vocabulary:
    """Return the vocabulary of a language by its tag."""
    lists, locale = load_words(resolve_language(language)), get_locale(language)
    percents = dict.fromkeys([*lists.get("percent", ()), "%"], "percent")
    percents |= {"‰": "permille"} | dict.fromkeys(lists.get("points", ()), "percentage_point")
    mark = str(locale.number_symbols.get("latn", {}).get("decimal", "."))
    return Vocabulary(
        language=resolve_language(language),
        locale=locale,
        decimal_mark=mark if mark in ".," else ".",
        groups_by_space=locale.language in SPACE_GROUP_LANGUAGES,
        bounds_before=_bound_phrases(lists, ""),
        bounds_after=_bound_phrases(lists, "_after"),
        scales=PhraseTable(_scale_words(locale) | lists.get("scales", {})),
        percent=PhraseTable(percents),
        phrases=PhraseTable(
            {normalize_chars(key): value for key, value in lists.get("phrases", {}).items()}
        ),
        and_half=make_phrase_set(lists.get("and_half", ())),
        ages=make_phrase_set(lists.get("ages", ())),
        own=lists,
    )


@lru_cache(maxsize=128)
def compile_list(name: str, *keys: str) -> re.Pattern[str]:
    """Compile the alternatives of a list in a JSON file, ignoring case.

    The name of another list of the file in capitals stands for any of that list's alternatives.
    """
    lists: Any = load_words(name)
    chosen = lists
    for key in keys:
        chosen = chosen[key]
    joined = "|".join(chosen)
    for word in re.findall(r"\b[A-Z]{5,}\b", joined):
        if word.lower() in lists:
            joined = joined.replace(word, f"(?:{'|'.join(lists[word.lower()])})")
    return re.compile(joined, re.IGNORECASE)


class ListPatterns:
    """The lists of a JSON file as compiled patterns, available as attributes."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, key: str) -> re.Pattern[str]:
        return compile_list(self._name, key)


class PatternTable:
    """A table of `patterns.toml` as compiled patterns, available as attributes.

    `compiled` is `regex.compile` for patterns that need its character classes. `words` are further
    patterns that the table's own may name.
    """

    def __init__(
        self,
        table: str,
        compiled: Callable[[str], Any] = re.compile,
        words: Mapping[str, str] | None = None,
    ) -> None:
        self._compiled = compiled
        self._known = dict(words or {})
        for name, written in PATTERN_TABLES[table].items():
            self._known[name] = re.sub(
                r"\{([a-z_]+)\}", lambda part: self._known[part[1]], "".join(written)
            )

    def __getattr__(self, name: str) -> re.Pattern[str]:
        pattern: re.Pattern[str] = self._compiled(self._known[name])
        self.__dict__[name] = pattern
        return pattern


def match_any(words: Iterable[str]) -> str:
    """Return a pattern that matches any of the words, the longest first."""
    ordered = sorted({normalize_chars(word) for word in words}, key=len, reverse=True)
    return "|".join(re.escape(word).replace(r"\ ", "[ \u00a0]") for word in ordered)


def make_phrase_set(words: Iterable[str]) -> PhraseTable[bool]:
    """Return phrases that have no value of their own."""
    return PhraseTable(dict.fromkeys(words, True))


def _bound_phrases(lists: Mapping[str, Any], suffix: str) -> PhraseTable[QuantityBound]:
    bounds: Iterable[QuantityBound] = get_args(QuantityBound)
    return PhraseTable({word: bound for bound in bounds for word in lists.get(bound + suffix, ())})


@lru_cache(maxsize=64)
def get_locale(language: str) -> Locale:
    """Return CLDR's locale for a tag, without its region if that is unknown; else English."""
    for tag in (language.replace("-", "_"), language.replace("_", "-").split("-")[0]):
        with contextlib.suppress(UnknownLocaleError, ValueError, TypeError):
            return Locale.parse(tag)
    return Locale("en")


def _scale_words(locale: Locale) -> dict[str, float]:
    """Return words such as "million" with their value, from CLDR's compact number patterns."""
    scales: dict[str, float] = {}
    for length in SCALE_FORMS:
        every = locale.compact_decimal_formats.get(length, {}).values()
        for power, pattern in (item for forms in every for item in forms.items()):
            written = str(pattern.pattern)
            word = lower_text(re.sub("[0']", "", written).replace("\u00a0", " ")).strip()
            zeros = written.count("0")
            # Short Latin forms ("kM", "mi", "Mr") are units and words as well.
            if zeros and len(word) > 1 and (length == "long" or not word.isascii()):
                scales[word] = int(power) / 10 ** (zeros - 1)
    return scales


@lru_cache(maxsize=64)
def load_unit_words(language: str) -> PhraseTable[str]:
    """Return unit words with pint's names, also the English ones, which other texts quote."""
    units: dict[str, str] = {}
    for code in dict.fromkeys(("en", resolve_language(language), language)):
        units |= _cldr_units(code)
        own_units = load_words(resolve_language(code)).get("units", {})
        units |= {normalize_chars(word): unit for word, unit in own_units.items()}
    return PhraseTable(units)


@lru_cache(maxsize=1)
def load_unit_symbols() -> PhraseTable[str]:
    """Return unit symbols with pint's names; upper and lower case differ."""
    return PhraseTable(load_words("units")["symbols"])


def _cldr_units(language: str) -> dict[str, str]:
    """Return all plural forms of the vetted units; short forms only in non-Latin scripts."""
    locale, words = get_locale(language), {}
    units = load_words("units")["cldr"].items()
    for (name, unit), length, sample in product(units, SCALE_FORMS, (1, 2, 5, 11, 100, 1.5)):
        written = format_unit(sample, name, length=length, locale=locale)
        word = (
            lower_text(normalize_chars(SIGNED_DIGITS.sub("", written)))
            .replace("\u00a0", " ")
            .strip()
        )
        is_latin = any("a" <= c <= "z" for c in word)
        if word and name not in written and (length == "long" or not is_latin):
            words[word] = unit
    return words


@lru_cache(maxsize=64)
def load_currency_words(language: str) -> tuple[PhraseTable[str], PhraseTable[str]]:
    """Return currency words before an amount, and after it, with their ISO 4217 codes.

    Before are signs and codes, after also words. "$" alone is the US dollar and "¥" the yen, in
    Chinese texts the yuan.
    """
    lists, code = load_words("currencies"), resolve_language(language)
    signs: dict[str, str] = lists["signs"]
    codes = {iso.lower(): iso for iso in lists["codes"]}
    before = signs | {low: iso for low, iso in codes.items() if iso not in lists["also_words"]}
    after = {s: iso for s, iso in signs.items() if len(s) == 1 or s in ("rmb", "us$")} | codes
    after |= {word: iso for word, iso in lists["after"].items() if word != "ft"}
    locale = get_locale(code)
    for iso, count in product(lists["codes"], (1, 2, 5, 1.5)):
        name = get_currency_name(iso, count=count, locale=locale)
        after[lower_text(normalize_chars(name)).replace("\u00a0", " ")] = iso
    after |= load_words(code).get("currencies", {})
    if code in lists["kronor"]:
        words = ("kr", "kr.", "kronor", "kroner", "krona", "krone")
        after |= dict.fromkeys(words, lists["kronor"][code])
    if code == "zh":
        before |= {"¥": "CNY"}
    return PhraseTable(before), PhraseTable(after)


@lru_cache(maxsize=64)
def load_number_words(language: str) -> NumberWords:
    """Return a language's number words, by CLDR's spell-out rules in every gender and case."""
    from unicode_rbnf import RbnfEngine

    own_numbers: Mapping[str, int] = load_words(resolve_language(language)).get("numbers", {})
    cardinals = {_split_words(word): int(value) for word, value in own_numbers.items()}
    ordinals: dict[tuple[str, ...], int] = {}
    try:
        code = get_locale(language).language
        engine = RbnfEngine.for_language(NORWEGIAN_CODES.get(code, code))
    except ValueError:
        engine = None
    for name in engine.rulesets if engine else ():
        is_ordinal = "ordinal" in name
        if not name.startswith("spellout") or "year" in name or "verbose" in name:
            continue
        most = 101 if name != "spellout-numbering" else 1000
        for number in (*range(0 if not is_ordinal else 1, most), *range(200, 1001, 100)):
            words = _split_words(str(engine.format_number(number, ruleset_names=[name]).text))
            if words and (number < 1000 or len(words) == 1):
                (ordinals if is_ordinal else cardinals).setdefault(words, number)
    spoken = _split_words(str(engine.format_number(2.5).text)) if engine else ()
    sizes = _group_lengths((words[0], len(words)) for words in (*cardinals, *ordinals))
    return NumberWords(cardinals, ordinals, spoken[1] if len(spoken) == 3 else "", sizes)


def _split_words(spelled: str) -> tuple[str, ...]:
    """Split a spelled number into words; soft hyphens only mark where a line may break."""
    return tuple(WORD_PATTERN.findall(lower_text(normalize_chars(spelled.replace("\u00ad", "")))))


@dataclass(frozen=True)
class UnitBase:
    """A unit in base units: a value is `value * factor + offset` of `symbol`."""

    symbol: str
    factor: float = 1.0
    offset: float = 0.0


_pint_lock = threading.RLock()


@lru_cache(maxsize=1)
def _load_pint() -> Any:
    import pint  # half a second and 30 MB: only loaded if a text has a unit

    return pint.UnitRegistry(autoconvert_offset_to_baseunit=True)


@lru_cache(maxsize=1024)
def get_unit_base(unit: str) -> UnitBase:
    """Return the base of a unit by any of its names: pint's, percent, a currency code or ours."""
    if not unit or unit in ("percent", "percentage_point") or (len(unit) == 3 and unit.isupper()):
        return UnitBase(unit)
    if unit == "permille":
        return UnitBase("percent", 0.1)
    if unit in load_words("units")["own"]:
        return UnitBase(unit.rpartition(" ")[2], 1e6 if unit.startswith("1e6") else 1.0)
    with _pint_lock:  # two threads would make two registries, whose units do not mix
        registry = _load_pint()
        if unit in ("degC", "degF"):
            zero, one = (registry.Quantity(v, unit).to_base_units().magnitude for v in (0.0, 1.0))
            return UnitBase("kelvin", float(one - zero), float(zero))
        quantity = (1.0 * registry.parse_expression(unit)).to_base_units()
        return UnitBase(str(quantity.units), float(quantity.magnitude))


def find_unit(text: str, low: str, position: int, language: str) -> tuple[int, str] | None:
    """Return end and pint name of the unit that follows a number ending at `position`.

    `text` is plain, `low` the same in lower case. One blank or hyphen may stand between.
    """
    gap = text[position : position + 1]
    if gap in ("'", '"'):
        return _feet_or_inches(text, position)
    start = position + (gap in (" ", "\u00a0", "-"))
    found = find_unit_word(text, low, start, language)
    if found is None or not _is_unit(text, low, start, found[0], tight=start == position):
        return None
    end, unit = found
    end += 4 if low[end : end + 4] in ("-old", " old") else 0
    per = PER_PATTERN.match(low, end)
    other = find_unit_word(text, low, per.end(), language) if per else None
    own_units = load_words("units")["own"]
    if (
        other is None
        or {unit, other[1]} & {*own_units, "degC", "degF"}
        or low[end : end + 3] == " a "
    ):
        return end, unit
    return other[0], f"({unit}) / ({other[1]})"


def find_unit_word(text: str, low: str, start: int, language: str) -> tuple[int, str] | None:
    """Return end and pint name of the single unit that begins at `start`."""
    return load_unit_symbols().at(text, start) or load_unit_words(language).at(low, start)


def _is_unit(text: str, low: str, start: int, end: int, *, tight: bool) -> bool:
    """Return True if a sign that may also be a word or a name is a unit here."""
    word, before = text[start:end], text[start - 1 : start]
    if word == "in":  # "5 in 10": inches only after feet, or at the end
        return bool(re.search(r"(?:ft|feet|foot|')\.?,? ?[\d.]+[ -]?$", low[:start])) or low[
            end : end + 1
        ] in (")", ".", "×")
    if len(word) == 1 and word.isascii() and (before == "-" or (tight and word in "KNJs")):
        return False  # "80s", "20K"
    if word in ("second", "pm", "pc"):  # a rank, the afternoon, a name
        return word == "second" and text[start - 1] == "-"
    # 分 is a minute after hours or before seconds, else mostly a score.
    is_time = word == "分" and re.search(
        r"[时時点點]\s?\w+$|[ぁ-ヿ]", text[:start] + text[end : end + 9]
    )
    return word != "分" or bool(is_time) or text[end : end + 1] in ("钟", "鐘", "间", "間")


def _feet_or_inches(text: str, position: int) -> tuple[int, str] | None:
    """Return end and unit of feet or inches written as 5'10"."""
    if FEET_INCHES.match(text, position):
        return position + 1, "foot"
    is_after_feet = re.search(r"\d'[ ]?\d{1,2}(?:\.\d+)?$", text[max(0, position - 8) : position])
    return (position + 1, "inch") if is_after_feet and text[position] == '"' else None


@dataclass(frozen=True)
class DateWords:
    """One language's date words; patterns are for plain lower-case text."""

    values: Vocabulary
    ordinals: Mapping[tuple[str, ...], int]
    months: PhraseTable[tuple[int, bool]]
    stems: tuple[tuple[str, int], ...]
    weekdays: PhraseTable[int]
    decades: re.Pattern[str]
    centuries: re.Pattern[str]
    eras: re.Pattern[str]
    bce: re.Pattern[str]
    years: PhraseTable[bool]
    years_after: PhraseTable[bool]
    suffixes: tuple[str, ...]
    to: str
    is_day_first: bool
    before: PhraseTable[DateBound]
    after: PhraseTable[DateBound]
    open_end: PhraseTable[bool]

    @property
    def language(self) -> str:
        """The language of the word lists."""
        return self.values.language


@lru_cache(maxsize=64)
def load_date_words(language: str) -> DateWords:
    """Return the date words of a language by its tag ("en", "pt-BR")."""
    values = load_vocabulary(language)
    lists = values.own
    months = _month_names(language) | {
        name: (n, True) for name, n in lists.get("months", {}).items()
    }
    names = (get_day_names("wide", context, get_locale(language)) for context in NAME_CONTEXTS)
    weekdays = {
        lower_text(normalize_chars(str(w))): day for named in names for day, w in named.items()
    }
    bce = match_any(lists.get("bce", ()))
    # "BC" follows its year in most languages and precedes it in some.
    beside = (
        rf"(?:{bce}){BLANK_PATTERN}?$"
        if lists.get("bce_first")
        else rf"{BLANK_PATTERN}?(?:{bce})(?!\w)"
    )
    is_declined = lists.get("month_stems", False)
    stems = tuple(  # full names without their ending
        (re.sub(r"(?:ta|a|ak)$", "", name), month)
        for name, (month, is_full) in months.items()
        if is_full and len(name) > 4
    )
    before, after = (
        PhraseTable({w: b for b in get_args(DateBound) for w in lists.get(f"date_{b}{suffix}", ())})
        for suffix in ("", "_after")
    )
    return DateWords(
        values=values,
        ordinals=load_number_words(values.locale.language).ordinals,
        months=PhraseTable({} if is_declined else months),
        stems=stems if is_declined else (),
        weekdays=PhraseTable(weekdays),
        decades=_compile_templates(lists.get("decades", ()), DECADE_PATTERN),
        centuries=_compile_templates(lists.get("centuries", ()), CENTURY_PATTERN),
        eras=_compile_eras(lists),
        bce=re.compile(beside) if bce else NEVER_PATTERN,
        years=make_phrase_set(lists.get("years", ())),
        years_after=make_phrase_set(lists.get("year_words_after", ())),
        suffixes=tuple(sorted(lists.get("year_suffixes", ()), key=len, reverse=True)),
        to=match_any(w for w in lists.get("to", ()) if w not in lists.get("and", ("and",))),
        is_day_first=language.replace("_", "-").lower() not in ("en", "en-us", "und"),
        before=before,
        after=after,
        open_end=make_phrase_set(lists.get("open_end", ["present"])),
    )


def _month_names(language: str) -> dict[str, tuple[int, bool]]:
    """Return month names with their number, and whether each is a full name."""
    locales = [get_locale(language)]
    if locales[0].language in OTHER_SCRIPTS:
        locales.insert(0, get_locale("en"))
    months: dict[str, tuple[int, bool]] = {}
    # Full names come last: a word that is also an abbreviation counts as a full name.
    for form, locale, context in product(MONTH_FORMS, locales, NAME_CONTEXTS):
        for month, name in get_month_names(form, context, locale).items():
            word = re.sub(
                r"^(?:de |d'|del |en )", "", lower_text(normalize_chars(str(name)))
            ).strip()
            if word and not any(c.isdigit() or c >= "\u3400" for c in word):
                months[word] = months[word.rstrip(".॰")] = (month, form == "wide")
    return months


def _compile_templates(templates: Iterable[str], number: str) -> re.Pattern[str]:
    """Compile all templates as one pattern; the "#" of a template becomes the number."""
    ordered = sorted(templates, key=len, reverse=True)
    choices = [
        number.join(match_any([part]) for part in template.split("#")) for template in ordered
    ]
    return re.compile(SEPARATE_TEMPLATE.format("|".join(choices))) if choices else NEVER_PATTERN


def _compile_eras(lists: Any) -> re.Pattern[str]:
    """Compile a pattern for years with an era: "44 BC", "AD 79", "300 v. Chr.", "公元前221年"."""
    number = r"\d{1,3}(?:[,. ]\d{3}){1,3}|\d{1,6}"
    choices = []
    for era, name in (("bce", "bce"), ("bce", "bce_led"), ("ce", "ce"), ("ce", "ce_led")):
        words = match_any(lists.get(era, ()))
        to = (
            rf"(?:(?:{BLANK_PATTERN}?[-–—]{BLANK_PATTERN}?| to "
            rf")(?P<{name}_to>{number}))?{BLANK_PATTERN}?"
        )
        pair = rf"(?P<{name}>{number}){to}"
        if words:
            choices.append(
                pair + rf"(?:{words})" if name == era else rf"(?:{words}){BLANK_PATTERN}?{pair}"
            )
    return (
        re.compile(rf"(?<!\.){SEPARATE_TEMPLATE.format('|'.join(choices))}")
        if choices
        else NEVER_PATTERN
    )
