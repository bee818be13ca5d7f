"""What a bare number counts or ranks, and the label it belongs to ("Figure 3")."""

from __future__ import annotations

import re
from functools import lru_cache

from core.evidence.terms import stem
from core.tools.values.plain import is_unspaced
from core.tools.values.value_words import ValueWords
from core.tools.values.word_tokens import SENTENCE_END

AHEAD = re.compile(r"(?P<gap>[ \u00a0-])(?P<word>[^\W\d_]+)(?:'s)?")
BEHIND = re.compile(r"(?P<word>[^\W\d_]+\.?|[#№§]|n°)(?P<gap>[ \u00a0]?)$")
UNREAD_NOUN = re.compile(r"[ \u00a0][^\W\d_A-Z]")  # may be what is counted
WINDOW = 3
STOPS = frozenset(
    """is was are were be been being am of in on at to from by for with and or but as than that
    which who whom whose has have had will would can could may might must shall should do does
    did not if when where while after before during since until because so into onto over under
    about between the a an his her its their our my your this these those it he she they we you
    i per more less years year days months times then now there here up down out off again also
    only just even always yes was's versus vs plus minus via across along towards within
    without among amongst like such including except despite next last past other another all
    some any every each both nearly around""".split()
)
RANK_FILLERS = frozenset("full major official ever own such overall and only final last".split())
IRREGULAR = {
    "people": "person", "persons": "person", "men": "man", "women": "woman",
    "children": "child", "feet": "foot", "teeth": "tooth", "mice": "mouse", "geese": "goose",
    "wives": "wife", "lives": "life", "knives": "knife", "wolves": "wolf", "leaves": "leaf",
    "halves": "half", "selves": "self", "shelves": "shelf", "thieves": "thief",
    "oxen": "ox", "crises": "crisis", "analyses": "analysis", "bases": "base", "movies": "movie",
    "fish": "fish", "sheep": "sheep", "deer": "deer", "species": "species",
    "series": "series", "aircraft": "aircraft", "spacecraft": "spacecraft", "cattle": "cattle",
    "police": "police", "staff": "staff", "crew": "crew", "offspring": "offspring",
    "phenomena": "phenomenon", "criteria": "criterion", "bacteria": "bacterium",
    "alumni": "alumnus", "nuclei": "nucleus", "fungi": "fungus", "buses": "bus",
    "goods": "goods", "times": "time", "mammoths": "mammoth",
}  # fmt: skip
NOT_PLURAL = re.compile(
    r"(?:ss|us|is|ous|'s|news|perhaps|thus|always|(?:for|to|in|on|up|down|out|after|back|east|west|north|south)wards|overseas)$"
)
# Endings by which a counted noun may be known elsewhere; German ones by their capital.
PLURALS = {
    "fr": re.compile(r"[^\W\d_]+[sx]$"), "es": re.compile(r"[^\W\d_]+s$"),
    "pt": re.compile(r"[^\W\d_]+s$"), "ca": re.compile(r"[^\W\d_]+s$"),
    "it": re.compile(r"[^\W\d_]{3,}[ie]$"), "nl": re.compile(r"[^\W\d_]{2,}(?:en|s)$"),
    "sv": re.compile(r"[^\W\d_]{2,}(?:or|ar|er)$"), "da": re.compile(r"[^\W\d_]{2,}er$"),
}  # fmt: skip
FOREIGN_STOPS = frozenset(
    """des les dans ans fois plus mais puis vers dès après los las unos más tras dos dels uns das
    mais anos che come dove sono nelle delle alle tre anche per ogni van een het met aan der den
    die bij och eller efter under över har är var mer fler senare tidigare jaar sans sous chez très
    entre pas cas pero menos antes después meses años depois vezes veces""".split()
)
STEMMED = frozenset("fr es pt ca it nl sv da de".split())
PERSONS = "人名位"
NOT_PERSONS = frozenset(["位数", "位數", "位于", "位於", "位置", "名义"])


@lru_cache(maxsize=50_000)
def singular(word: str, language: str) -> str:
    """The folded form under which a noun is compared: English singular, else its stem."""
    if language != "en":
        return stem(word, language) if language in STEMMED else word
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("men") and len(word) > 5:
        return word[:-2] + "an"
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:ss|x|ch|sh|zz|o)es$", word) and len(word) > 4 and not word.endswith("shoes"):
        return word[:-1] if word.endswith(("toes", "oes")) and len(word) < 6 else word[:-2]
    return word[:-1] if _is_plural(word) else word


def _is_plural(word: str) -> bool:
    """English plurals, by their ending or a list."""
    if word in IRREGULAR:
        return True
    if word.endswith("men") and len(word) > 5:
        return True
    return len(word) > 3 and word.endswith("s") and not NOT_PLURAL.search(word)


def counted_noun(
    text: str, low: str, position: int, words: ValueWords, *, ranks: bool, one: bool = False
) -> str:
    """The folded noun after a number that ends at `position`, or "".

    English looks up to three words ahead for a plural ("12 large dogs" gives "dog"); after a rank,
    a hyphen or one it takes the next word.
    """
    if position < len(text) and is_unspaced(text[position]):
        person = text[position] in PERSONS and text[position : position + 2] not in NOT_PERSONS
        return "人" if person and not ranks else ""
    if words.language == "en":
        return _english_noun(low, position, ranks, one)
    return _foreign_noun(text, low, position, words.language, ranks)


def _english_noun(low: str, position: int, ranks: bool, one: bool) -> str:
    first = ""
    for _ in range(WINDOW):
        match = AHEAD.match(low, position)
        if match is None:
            break
        word = match["word"]
        if ranks and word in RANK_FILLERS:
            position = match.end()
            continue
        if word in STOPS and word != "times":
            break
        if not first and (ranks or one or match["gap"] == "-"):
            first = word
            if ranks or match["gap"] == "-":
                break
        if _is_plural(word) or one:
            return singular(word, "en")
        position = match.end()
    return singular(first, "en") if first else ""


def _foreign_noun(text: str, low: str, position: int, language: str, ranks: bool) -> str:
    match = AHEAD.match(low, position)
    if match is None:
        return ""
    word = match["word"]
    if language == "de":
        capital = text[match.start("word")].isupper()
        return singular(word, language) if capital else ""
    ending = PLURALS.get(language)
    known = ending is not None and (ranks or ending.match(word)) and word not in FOREIGN_STOPS
    return singular(word, language) if known and len(word) > 3 else ""


def label_before(text: str, low: str, start: int, end: int, words: ValueWords) -> str:
    """The label of a number `[start, end)`: "figure" for "Figure 3", "apollo" for "Apollo 11"."""
    match = BEHIND.search(low, max(0, start - 24), start)
    if match is None:
        return ""
    word, position = match["word"], match.start()
    bare = word.rstrip(".")
    if position and low[position - 1] not in " \u00a0([\"'“-/":
        return ""
    if word in words.labels or (bare in words.labels and word == bare):
        if bare in ("no", "nos", "n", "nr", "number", "n°", "№", "#"):
            return "number" if "." in word or text[position].isupper() or bare != "no" else ""
        return singular(bare, "en") if words.language == "en" else bare
    named = text[position].isupper() and match["gap"] and not word.endswith(".")
    if not named or words.language == "de" or _opens_sentence(text, position):
        return ""
    if words.language != "en" and UNREAD_NOUN.match(text, end):
        return ""
    return bare if bare not in STOPS else ""


def _opens_sentence(text: str, position: int) -> bool:
    before = text[:position].rstrip()
    return not before or before[-1] in SENTENCE_END
