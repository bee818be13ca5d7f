"""Which language a text is in: by its script where that decides, else by py3langid."""

from __future__ import annotations

import threading
from collections import Counter
from functools import lru_cache
from typing import Any

import regex

UNKNOWN = "und"
SAMPLE = 4000
FEWEST_WORDS = 6
# How much likelier some languages are before a word is read. Without it a sentence full of names
# is taken for a rare language ("Barack Obama was born in Hawaii" for Swahili).
COMMON = (
    {"en": 4.0}
    | dict.fromkeys("de fr es it pt nl sv da no fi pl cs tr id ro hu ru".split(), 2.0)
    | dict.fromkeys("sw af ga cy mt az is sq".split(), 0.5)
)
# On 2,736 sentences in seven languages (Mu-SHROOM, FEVER) these name 98% of those of six words
# or more, 99.8% of them rightly, and 72% of the shorter ones, all of them rightly.
SURE = 0.5
LIKELY = 0.25
TIMES = 2.0
VERY_SURE = 0.6
LEAST_SHARE = 0.3
# Scripts that one language is nearly always meant by.
SCRIPTS: dict[str, str] = {
    "Hangul": "ko",
    "Hebrew": "he",
    "Thai": "th",
    "Greek": "el",
    "Armenian": "hy",
    "Georgian": "ka",
    "Bengali": "bn",
    "Tamil": "ta",
    "Telugu": "te",
    "Gujarati": "gu",
    "Kannada": "kn",
    "Malayalam": "ml",
    "Gurmukhi": "pa",
    "Oriya": "or",
    "Sinhala": "si",
    "Khmer": "km",
    "Lao": "lo",
    "Myanmar": "my",
    "Ethiopic": "am",
}
# Scripts that several languages share: the candidates, the likeliest first.
SHARED: dict[str, tuple[str, ...]] = {
    "Latin": tuple(
        "en de fr es it pt nl sv da no fi pl cs sk hu ro hr sl et lv lt tr vi id ms ca eu gl sq "
        "is ga cy af sw mt az".split()
    ),
    "Cyrillic": ("ru", "uk", "bg", "sr", "mk", "be", "kk", "ky", "mn", "tg"),
    "Arabic": ("ar", "fa", "ur", "ps"),
    "Devanagari": ("hi", "mr", "ne"),
}
CJK = ("Han", "Hiragana", "Katakana")
# The languages whose text multilingual-e5-small, the base of the built-in reader, was trained on.
KNOWN_LANGUAGES = frozenset(
    "af am ar as az be bg bn br bs ca cs cy da de el en eo es et eu fa fi fr fy ga gd gl gu ha he "
    "hi hr hu hy id is it ja jv ka kk km kn ko ku ky la lo lt lv mg mk ml mn mr ms my ne nl no om "
    "or pa pl ps pt ro ru sa sd si sk sl so sq sr su sv sw ta te th tl tr ug uk ur uz vi xh yi "
    "zh".split()
)
LETTERS = {name: regex.compile(rf"\p{{{name}}}") for name in (*CJK, *SCRIPTS, *SHARED)}
WORD = regex.compile(r"\p{L}[\p{L}\p{M}'’]*")
# A character of these scripts says about as much as this many letters.
WEIGHT = dict.fromkeys(CJK, 3) | {"Hangul": 2}
KANA_SHARE = 0.05

_lock = threading.Lock()


def language_of(text: str) -> str:
    """The ISO 639-1 code of the text's main language, or "und" where that is a guess.

    Looks at the beginning and the middle only. Fewer than six words of a shared script are
    named only when py3langid is very sure.
    """
    sample = _sample(text)
    counts = Counter(
        {
            name: len(letters.findall(sample)) * WEIGHT.get(name, 1)
            for name, letters in LETTERS.items()
        }
    )
    cjk = sum(counts[name] for name in CJK)
    counts["CJK"] = cjk
    script, count = max(
        ((name, n) for name, n in counts.items() if name not in CJK), key=lambda item: item[1]
    )
    if count == 0 or count < LEAST_SHARE * (cjk + sum(counts[n] for n in (*SCRIPTS, *SHARED))):
        return UNKNOWN
    if script == "CJK":
        kana = counts["Hiragana"] + counts["Katakana"]
        return "ja" if kana > KANA_SHARE * cjk else "zh"
    if script in SCRIPTS:
        return SCRIPTS[script]
    return _among(SHARED[script], sample)


def language_note(language: str) -> str:
    """What to tell of a source in a language that the reader does not know; empty for others."""
    if language == UNKNOWN or language in KNOWN_LANGUAGES:
        return ""
    from babel import Locale

    name = Locale("en").languages.get(language, language)
    return (
        f"This seems to be {name}, which the built-in reader does not know: it compares numbers, "
        "dates and words, not what is meant."
    )


def _sample(text: str) -> str:
    """Two stretches of the text, so that a foreign title does not decide."""
    if len(text) <= 2 * SAMPLE:
        return text
    middle = len(text) // 2
    return text[:SAMPLE] + " " + text[middle : middle + SAMPLE]


def _among(candidates: tuple[str, ...], sample: str) -> str:
    """The likeliest candidate, if it is likely enough for so many words."""
    words = WORD.findall(sample)
    if len(words) < 2:
        return UNKNOWN
    with _lock:
        scores = dict(_identifier().rank(" ".join(words)))
    likely = sorted(
        ((scores.get(c, 0.0) * COMMON.get(c, 1.0), c) for c in candidates), reverse=True
    )
    total = sum(p for p, _ in likely) or 1.0
    best, second = likely[0][0] / total, likely[1][0] / total
    if len(words) < FEWEST_WORDS:
        return likely[0][1] if best >= VERY_SURE else UNKNOWN
    return likely[0][1] if best >= SURE or best >= max(LIKELY, TIMES * second) else UNKNOWN


@lru_cache(maxsize=1)
def _identifier() -> Any:
    """py3langid's model; loading takes most of a second, once."""
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
