"""Detects a text's language (by script, else py3langid), its sentences and its search terms.

List items and rows are sentences; line ends within prose end none (CEDA 3.1). Terms are folded
stems, or bigrams in scripts without blanks: SQLite's tokenizers miss Chinese words of two
characters.
"""

from __future__ import annotations

import itertools
import re
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import regex

from core.documents.abbreviations import ends_sentence

UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
WORD_TOKEN = regex.compile(
    rf"\p{{N}}+(?:[.,]\p{{N}}+)*|[{UNSPACED}\p{{M}}]+|(?:[\p{{L}}--[{UNSPACED}]]\p{{M}}*)+"
    rf"(?:['’][\p{{L}}--[{UNSPACED}]]+)*",
    regex.V1,
)
IS_UNSPACED = regex.compile(rf"[{UNSPACED}]", regex.V1)
# Accents and Arabic and Hebrew points only: in Indic scripts the marks are the vowels.
IGNORED_MARKS = regex.compile(r"[\u0300-\u036f\u0591-\u05c7\u064b-\u065f\u0670\u0640\u200c\u200d]")
STEMMERS = {
    "ar": "arabic", "ca": "catalan", "da": "danish", "de": "german", "el": "greek",
    "en": "english", "es": "spanish", "et": "estonian", "eu": "basque", "fi": "finnish",
    "fr": "french", "ga": "irish", "hi": "hindi", "hu": "hungarian", "hy": "armenian",
    "id": "indonesian", "it": "italian", "lt": "lithuanian", "ne": "nepali", "nl": "dutch",
    "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian", "ru": "russian",
    "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "fa": "persian",
    "cs": "czech",
}  # fmt: skip
FUNCTION_WORDS = frozenset(
    """a an the and or but if of in on at to for from by with as is are was were be been being am
    do does did done has have had having will would shall should can could may might must it its
    this that these those there here he she they them his her their we you i me my our your who
    whom whose which what when where why how than then so such also too very just into onto over
    under about between through during before after above below up down out off again both each
    own same one ones s t""".split()
)
UNKNOWN_LANGUAGE = "und"
SAMPLE_CHARACTERS = 4000
MIN_SURE_WORDS = 6
# Prior weights of languages. Without them a sentence full of names is taken for a rare language
# ("Barack Obama was born in Hawaii" for Swahili).
LANGUAGE_PRIORS = (
    {"en": 4.0}
    | dict.fromkeys("de fr es it pt nl sv da no fi pl cs tr id ro hu ru".split(), 2.0)
    | dict.fromkeys("sw af ga cy mt az is sq".split(), 0.5)
)
# On 2,736 sentences in seven languages (Mu-SHROOM, FEVER) these name 98% of those of six words
# or more, 99.8% of them rightly, and 72% of the shorter ones, all of them rightly.
MIN_SURE_SHARE = 0.5
MIN_LIKELY_SHARE = 0.25
MIN_LEAD_FACTOR = 2.0
MIN_SHORT_TEXT_SHARE = 0.6
MIN_SCRIPT_SHARE = 0.3
# Scripts that nearly always mean one language.
LANGUAGE_OF_SCRIPT = dict(
    zip(
        "Hangul Hebrew Thai Greek Armenian Georgian Bengali Tamil Telugu Gujarati Kannada "
        "Malayalam Gurmukhi Oriya Sinhala Khmer Lao Myanmar Ethiopic".split(),
        "ko he th el hy ka bn ta te gu kn ml pa or si km lo my am".split(),
        strict=True,
    )
)
# Scripts that several languages share, the likeliest language first.
LANGUAGES_OF_SCRIPT: dict[str, tuple[str, ...]] = {
    "Latin": tuple(
        "en de fr es it pt nl sv da no fi pl cs sk hu ro hr sl et lv lt tr vi id ms ca eu gl sq "
        "is ga cy af sw mt az".split()
    ),
    "Cyrillic": ("ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg"),
    "Arabic": ("ar", "fa", "ur", "ps"),
    "Devanagari": ("hi", "mr", "ne"),
}
CJK_SCRIPTS = ("Han", "Hiragana", "Katakana")
# The languages whose text multilingual-e5-small, the base of the built-in reader, was trained on.
KNOWN_LANGUAGES = frozenset(
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he "
    "hi hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om "
    "or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi "
    "zh".split()
)
LETTER_OF_SCRIPT = {
    name: regex.compile(rf"\p{{{name}}}")
    for name in (*CJK_SCRIPTS, *LANGUAGE_OF_SCRIPT, *LANGUAGES_OF_SCRIPT)
}
LANGUAGE_WORD = regex.compile(r"\p{L}[\p{L}\p{M}'’]*")
# A character of these scripts says about as much as this many letters.
SCRIPT_WEIGHTS = dict.fromkeys(CJK_SCRIPTS, 3) | {"Hangul": 2}
MIN_KANA_SHARE = 0.05
MAX_SENTENCE_LENGTH = 600
# sentencex takes quadratic time in a paragraph's length if blanks do not separate sentences.
SEGMENTER_WINDOW = 6000
MIN_LOWERCASE_SHARE = 0.35
MIN_PROSE_LINES = 4
MIN_FULL_LINE_SHARE = 0.6
MAX_NARROW_LINE = 40
STOP_BEFORE_CAPITAL = regex.compile(r"\.\s+(?=\p{Lu})")
FINAL_PUNCTUATION = regex.compile(r"""[.!?。！？।؟…:][)"'”’\]]*\s*$""")
LABELLED_ROW = regex.compile(r"\s*[^:\n]{1,60}: \S")
LIST_ITEM_START = regex.compile(r"\s*(?:[-–—•*◦▪·]|\(?\d{1,3}[.)]|\(?[a-z][.)]|#{1,6})\s+")
CLAUSE_BREAK = regex.compile(r"[;:,،、，；]\s*|\s+")
LETTER_OR_NUMBER = regex.compile(r"[\p{L}\p{N}]")
BLANK_LINE = regex.compile(r"\r?\n[ \t]*(?:\r?\n)+|\f")
LINE_END = regex.compile(r"\r?\n")
END_MARKS = frozenset(".!?:;。！？：；।؟")
CLOSING_MARKS = "\"')]”’»」』）"
# Words cut at line ends, where a hyphen belongs to the typesetting, not to the text.
SOFT_HYPHEN = "\u00ad"
CUT_WORD_HEAD = regex.compile(r"([\p{L}\p{M}]+)[-\u2010]$")
CUT_WORD_TAIL = regex.compile(r"([\p{Ll}\p{Lo}][\p{L}\p{M}]*)\S*")
HYPHENATED_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010][^\W\d_]+)*")
# Compounds that are written with a hyphen wherever the line ends.
HYPHENATED_PREFIXES = frozenset("self well half all ex cross high low long short so state".split())
UNSPACED_CHARACTER = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}"
    r"，。、；：？！（）「」『』《》〈〉【】“”…—]"
)
MAX_WORD_LENGTH = 80


def fold_word(word: str) -> str:
    """Return a word without case, compatibility forms and combining marks, for comparison only."""
    decomposed = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", word).casefold())
    return IGNORED_MARKS.sub("", decomposed).replace("’", "'")


@lru_cache(maxsize=64)
def _load_stemmer(language: str) -> Any:
    import snowballstemmer

    algorithm = STEMMERS.get(language, "english" if language == "und" else "")
    return snowballstemmer.stemmer(algorithm) if algorithm else None


@lru_cache(maxsize=100_000)
def stem_word(word: str, language: str) -> str:
    """Return the folded word's stem in that language; in unknown languages the word itself."""
    stemmer = _load_stemmer(language)
    if stemmer is None:
        return word
    with _stemmer_lock:  # a stemmer keeps the current word as state
        return str(stemmer.stemWord(word))


def normalize_number(text: str) -> str:
    """Return a number's digits as ASCII without grouping, so that 1,234 and ١٢٣٤ match 1234."""
    digits = "".join(
        str(unicodedata.decimal(c)) if unicodedata.decimal(c, None) is not None else c for c in text
    )
    groups = regex.split(r"[.,]", digits)
    if len(groups) > 1 and all(len(group) == 3 for group in groups[1:]) and len(groups[0]) <= 3:
        return "".join(groups)
    return digits.replace(",", ".")


def extract_terms(text: str, language: str = "und") -> Iterator[str]:
    """Yield the text's search terms in order, with repeats."""
    for match in WORD_TOKEN.finditer(text):
        word = match.group()
        if word[0].isnumeric() and not IS_UNSPACED.match(word[0]):
            yield normalize_number(word).replace(".", "d")
        elif IS_UNSPACED.search(word):
            folded = fold_word(word)
            yield from (folded[i : i + 2] for i in range(max(1, len(folded) - 1)))
        else:
            yield stem_word(fold_word(word), language).replace("'", "")


@lru_cache(maxsize=1)
def _load_function_terms() -> frozenset[str]:
    return FUNCTION_WORDS | {stem_word(word, "en") for word in FUNCTION_WORDS}


def extract_query_terms(text: str, language: str = "und") -> list[str]:
    """Return the distinct terms worth searching for; function words only if there are no others."""
    distinct = list(dict.fromkeys(extract_terms(text, language)))
    return [term for term in distinct if term and term not in _load_function_terms()] or distinct


_stemmer_lock = threading.Lock()
_identifier_lock = threading.Lock()


def detect_language(text: str) -> str:
    """Return the ISO 639-1 code of the text's main language, or "und" if that would be a guess.

    Reads only the beginning and the middle, so that a foreign title does not decide. Fewer than six
    words of a shared script are named only if py3langid is very sure.
    """
    if len(text) > 2 * SAMPLE_CHARACTERS:
        middle = len(text) // 2
        text = f"{text[:SAMPLE_CHARACTERS]} {text[middle : middle + SAMPLE_CHARACTERS]}"
    counts = {
        name: len(letters.findall(text)) * SCRIPT_WEIGHTS.get(name, 1)
        for name, letters in LETTER_OF_SCRIPT.items()
    }
    total = sum(counts.values())
    han, *kana = (counts.pop(name) for name in CJK_SCRIPTS)
    counts["CJK"] = han + sum(kana)
    script = max(counts, key=lambda name: counts[name])
    if counts[script] == 0 or counts[script] < MIN_SCRIPT_SHARE * total:
        return UNKNOWN_LANGUAGE
    if script == "CJK":
        return "ja" if sum(kana) > MIN_KANA_SHARE * counts["CJK"] else "zh"
    return (
        LANGUAGE_OF_SCRIPT[script]
        if script in LANGUAGE_OF_SCRIPT
        else _pick_language(LANGUAGES_OF_SCRIPT[script], text)
    )


def describe_unknown_language(language: str) -> str:
    """Return a note on a language that the built-in reader does not know; empty for others."""
    if language == UNKNOWN_LANGUAGE or language in KNOWN_LANGUAGES:
        return ""
    return (
        f"This seems to be {_name_language(language)}, which the built-in reader does not know: it "
        "compares numbers, dates and words, not what is meant."
    )


def detect_prose_language(text: str, language: str = "") -> str:
    """Return the language of the text if its words without capitals are in it too, else "und".

    Names and formulas alone are so in no language. `language` is the text's if it is known already.
    """
    language = language or detect_language(text)
    words = LANGUAGE_WORD.findall(text[: 2 * SAMPLE_CHARACTERS])
    prose = " ".join(word for word in words if len(word) > 1 and not word[0].isupper())
    return language if detect_language(prose) == language else UNKNOWN_LANGUAGE


def describe_language_gap(language: str, sources: Iterable[tuple[str, str]]) -> str:
    """Return a warning if any source, a (name, language), is not in the text's language.

    It is empty if the languages are the same or unknown.
    """
    if language == UNKNOWN_LANGUAGE:
        return ""
    listed = ", ".join(
        f"“{name}” in {_name_language(other)}"
        for name, other in sources
        if other not in (language, UNKNOWN_LANGUAGE)
    )
    return listed and (
        f"The text is in {_name_language(language)}, {listed}. The built-in engine is seldom sure "
        "across languages: translate one of them, or check with language models."
    )


def _name_language(language: str) -> str:
    from babel import Locale

    return str(Locale("en").languages.get(language, language))


def _pick_language(candidates: tuple[str, ...], sample: str) -> str:
    words = LANGUAGE_WORD.findall(sample)
    if len(words) < 2:
        return UNKNOWN_LANGUAGE
    with _identifier_lock:
        scores = dict(_load_identifier().rank(" ".join(words)))
    likely = sorted(
        ((scores.get(c, 0.0) * LANGUAGE_PRIORS.get(c, 1.0), c) for c in candidates), reverse=True
    )
    total = sum(p for p, _ in likely) or 1.0
    best, second = likely[0][0] / total, likely[1][0] / total
    is_sure = best >= MIN_SURE_SHARE or best >= max(MIN_LIKELY_SHARE, MIN_LEAD_FACTOR * second)
    is_sure = best >= MIN_SHORT_TEXT_SHARE if len(words) < MIN_SURE_WORDS else is_sure
    return likely[0][1] if is_sure else UNKNOWN_LANGUAGE


@lru_cache(maxsize=1)
def _load_identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)


class SentenceRange(NamedTuple):
    """`[start, end)` in the given text, without blanks at either end."""

    start: int
    end: int


def split_sentences(
    text: str, language: str, start: int = 0, end: int | None = None
) -> list[SentenceRange]:
    """Return all sentences of `[start, end)` in order, with offsets in the whole text."""
    return [
        SentenceRange(a, b)
        for unit in split_text_units(text, start, len(text) if end is None else end, language)
        for a, b in _split_unit(text, *unit, language)
    ]


def split_text_units(
    text: str, start: int, end: int, language: str = UNKNOWN_LANGUAGE
) -> Iterator[tuple[int, int]]:
    """Yield stretches of lines that belong together: a wrapped paragraph, an item, a row."""
    for block_start, block_end in _split(text, start, end, BLANK_LINE):
        yield from _split_block(text, block_start, block_end, language)


def _split(
    text: str, start: int, end: int, separator: regex.Pattern[str]
) -> Iterator[tuple[int, int]]:
    position = start
    for match in separator.finditer(text, start, end):
        yield position, match.start()
        position = match.end()
    yield position, end


def _split_block(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    lines = list(_split(text, start, end, LINE_END))
    if len(lines) == 1:
        yield lines[0]
        return
    longest = max(b - a for a, b in lines)
    flows = longest > MAX_NARROW_LINE and _may_be_prose(text, lines)
    opened = lines[0][0]
    for (a, b), (c, d) in itertools.pairwise(lines):
        is_full = flows and b - a >= MIN_FULL_LINE_SHARE * longest
        if not _continues(text[a:b], text[c:d], is_full, language):
            yield opened, b
            opened = c
    yield opened, end


def _continues(line: str, following: str, is_full: bool, language: str) -> bool:
    if LIST_ITEM_START.match(following) or not following.strip():
        return False
    if following.lstrip()[:1].islower():
        return True
    ends = FINAL_PUNCTUATION.search(line) and ends_sentence(line, following, language) is not False
    return is_full and not ends and not (LABELLED_ROW.match(line) and LABELLED_ROW.match(following))


def _may_be_prose(text: str, lines: Sequence[tuple[int, int]]) -> bool:
    openings = [text[a:b].lstrip()[:1] for a, b in lines[1:]]
    cased = [letter for letter in openings if letter.lower() != letter.upper()]
    small = sum(letter.islower() for letter in cased)
    return len(cased) < MIN_PROSE_LINES or small >= MIN_LOWERCASE_SHARE * len(cased)


def _split_unit(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    """Yield the unit's sentences by windows; what ends near a window's end is segmented again."""
    while end - start > SEGMENTER_WINDOW:
        edge = start + SEGMENTER_WINDOW - MAX_SENTENCE_LENGTH
        for sentence in _segment_window(text, start, start + SEGMENTER_WINDOW, language):
            if sentence[1] > edge:
                start = sentence[0]
                break
            yield sentence
        else:
            start = edge
    yield from _segment_window(text, start, end, language)


def _segment_window(text: str, start: int, end: int, language: str) -> Iterator[tuple[int, int]]:
    import sentencex  # here, because readers in the child process do not need it

    pieces = sentencex.segment("en" if language == "und" else language, text[start:end])
    ends = set(itertools.accumulate(map(len, pieces), initial=start)) - {start, end}
    possible_ends = {stop.end() for stop in STOP_BEFORE_CAPITAL.finditer(text, start, end)}
    for place in sorted(ends | possible_ends):
        is_end = ends_sentence(text[start:place], text[place : min(end, place + 80)], language)
        if is_end or (place in ends and (is_end is None or place - start > MAX_SENTENCE_LENGTH)):
            yield from _trim_and_cut(text, start, place)
            start = place
    yield from _trim_and_cut(text, start, end)


def _trim_and_cut(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    while start < end and text[start].isspace():
        start += 1
    while end > start and text[end - 1].isspace():
        end -= 1
    while end - start > MAX_SENTENCE_LENGTH:
        cuts = [
            m.end()
            for m in CLAUSE_BREAK.finditer(
                text, start + MAX_SENTENCE_LENGTH // 2, start + MAX_SENTENCE_LENGTH
            )
        ]
        cut = cuts[-1] if cuts else start + MAX_SENTENCE_LENGTH
        yield from _trim_and_cut(text, start, cut)
        start = cut
    if LETTER_OR_NUMBER.search(text, start, end):
        yield start, end


def is_ended(text: str) -> bool:
    """Return True for a text that ends like a sentence."""
    return text.rstrip().rstrip(CLOSING_MARKS)[-1:] in END_MARKS


def collect_words(texts: Iterable[str]) -> frozenset[str]:
    """Return all words of the texts, hyphenated ones too, to decide whether cut words are one."""
    return frozenset(word for text in texts for word in HYPHENATED_WORD.findall(text.casefold()))


def is_cut(above: str, below: str) -> bool:
    """Return True if a hyphen cuts a word between the lines."""
    if above[-1:] not in ("-", "\u2010"):
        return False
    return bool(CUT_WORD_HEAD.search(above[-MAX_WORD_LENGTH:]) and CUT_WORD_TAIL.match(below))


def join_lines(above: str, below: str, known: frozenset[str]) -> tuple[str, str]:
    """Return (the upper line without a hyphen that is only typesetting, the separator after it)."""
    if above.endswith(SOFT_HYPHEN):
        return above[:-1], ""
    if is_cut(above, below):
        cut, goes_on = CUT_WORD_HEAD.search(above[-MAX_WORD_LENGTH:]), CUT_WORD_TAIL.match(below)
        assert cut and goes_on  # noqa: PT018, S101 - is_cut checks both
        head, tail = cut[1].casefold(), goes_on[1].casefold()
        keeps = head + tail not in known and (
            f"{head}-{tail}" in known or head in HYPHENATED_PREFIXES
        )
        return (above, "") if keeps else (above[:-1], "")
    if below[:1] < "\u0e00":  # the first script without blanks
        return above, " "
    both_unspaced = all(UNSPACED_CHARACTER.fullmatch(c) for c in (above[-1:], below[:1]))
    return above, "" if both_unspaced else " "
