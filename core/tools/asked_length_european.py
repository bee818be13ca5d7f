"""Reads from a question in German, French or Spanish which length its answer shall have.

Strict as its English and Chinese sister: the figure must hang on a request, on "in" or "en", or on
a text that is asked for ("un résumé de"); one that only tells of a text is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from core.tools.asked_bounds import agree, asked_range, asked_with_bound, both_ends
from core.tools.lengths import Length, LengthUnit
from core.tools.values.quantities import find_quantities

CLAUSE = re.compile(r"[.?!:](?=\s|$)|[;\n]")
DIGITS = r"\d{1,3}(?:[. ]\d{3})+|\d{1,6}"
WHOM = re.compile(r"\b(?:Sie|mir|uns|moi|nous)\b|[-,]")  # "write me"
ONE = re.compile(r"ein\w{0,2}|une?|una?", re.IGNORECASE)


@dataclass(frozen=True)
class _Tongue:
    """How one language asks for a length; each pattern is of words that stand side by side."""

    language: str
    numerals: str
    units: dict[LengthUnit, str]
    leads: dict[str, str]  # before the figure
    tails: dict[str, str]  # behind the unit
    request: str
    into: str  # "in 100 words"
    text: str  # "a text of 100 words"
    to: str
    about: str  # what a question asks, so that a length behind it is its matter
    each: str  # "a day", "per page"


GERMAN = _Tongue(
    "de",
    r"(?:[a-zäöüß]{0,40}(?:zwei|drei|vier|fünf|sechs|sieben|acht|neun|zehn|elf|zwölf|zig|ßig|hundert"
    r"|tausend)|ein(?:e[mnr]?)?)",
    {
        "word": r"w(?:ört|ort)(?:er|en|ern)?|wort",
        "character": r"zeichen|buchstaben?",
        "sentence": r"s(?:ä|a)tz(?:en?)?",
        "paragraph": r"abs(?:ä|a)tz(?:en?)?",
        "line": r"zeilen?",
    },
    {
        "least": r"mindestens|wenigstens|nicht weniger als",
        "most": r"höchstens|maximal|nicht mehr als|nicht länger als|bis zu|max\.",
        "more": r"mehr als|über",
        "less": r"weniger als|unter",
        "exact": r"genau|exakt",
        "about": r"etwa|ungefähr|circa|ca\.|rund",
    },
    {"most": r"oder weniger|maximal|höchstens", "least": r"oder mehr|mindestens"},
    r"schreib\w*|verfass\w*|beschreib\w*|erklär\w*|antwort\w*|beantwort\w*|gib|geben sie"
    r"|formulier\w*|fass\w*|schilder\w*|erläuter\w*|erzähl\w*|verwend\w*|nutze\w*|benutz\w*"
    r"|erstell\w*|skizzier\w*|stell\w*|soll\w*|muss|darf|dürfen|bitte",
    r"in|mit(?: nur)?",
    r"eine?n?\s+(?:\w+\s+){1,2}(?:von|mit|aus)",
    r"bis|oder",
    r"warum|wieso|weshalb|wie|wer|welche\w*|ob|dass|was",
    r"pro|am|je|jeden?",
)
FRENCH = _Tongue(
    "fr",
    r"(?:(?:une?|deux|trois|quatre|cinq|six|sept|huit|neuf|dix|onze|douze|treize|quatorze|quinze|seize"
    r"|vingts?|trente|quarante|cinquante|soixante|cents?|mille|et)(?:[- ](?=\w)|\b)){1,6}",
    {
        "word": r"mots?",
        "character": r"caractères?|signes?|lettres?",
        "sentence": r"phrases?",
        "paragraph": r"paragraphes?",
        "line": r"lignes?",
    },
    {
        "least": r"au moins|au minimum|pas moins de|minimum",
        "most": r"au plus|au maximum|pas plus de|maximum",
        "more": r"plus de",
        "less": r"moins de",
        "exact": r"exactement",
        "about": r"environ|à peu près|approximativement",
    },
    {
        "most": r"au plus|au maximum|maximum|ou moins",
        "least": r"au moins|au minimum|minimum|ou plus",
        "about": r"environ",
    },
    r"écri\w*|résum\w*|décri\w*|expliqu\w*|répond\w*|donne\w*|rédige\w*|présente\w*|utilis\w*|compose\w*"
    r"|formule\w*|raconte\w*|fais|faites|doit|doivent|veuillez",
    r"en|avec|par",
    r"une?\s+(?:[\w’'-]+\s+){1,2}(?:de|d['’]|en)",
    r"à|ou",
    r"pourquoi|comment|qui|quel\w*|si|que|combien",
    r"par",
)
SPANISH = _Tongue(
    "es",
    r"(?:(?:una?|dos|tres|cuatro|cinco|seis|siete|ocho|nueve|diez|once|doce|trece|catorce|quince"
    r"|dieci[a-zé]{3,6}|veinti?[a-zé]{0,6}|treinta|cuarenta|cincuenta|sesenta|setenta|ochenta|noventa"
    r"|cien|ciento|[a-z]{3,6}cient[ao]s|quinient[ao]s|mil|y)(?:[ ](?=\w)|\b)){1,6}",
    {
        "word": r"palabras?",
        "character": r"caracteres?|letras?",
        "sentence": r"frases?|oracion(?:es)?|oración",
        "paragraph": r"párrafos?",
        "line": r"líneas?|renglones",
    },
    {
        "least": r"al menos|como mínimo|por lo menos|no menos de|mínimo",
        "most": r"como máximo|a lo sumo|no más de|hasta|máximo",
        "more": r"más de",
        "less": r"menos de",
        "exact": r"exactamente",
        "about": r"unas|unos|aproximadamente|alrededor de|cerca de",
    },
    {
        "most": r"como máximo|máximo|o menos",
        "least": r"como mínimo|mínimo|o más",
        "about": r"aproximadamente",
    },
    r"escrib\w*|resum\w*|describ\w*|expli\w*|respond\w*|contest\w*|redact\w*|da|dé|dame|present\w*|usa|use"
    r"|utili[zc]\w*|cuenta|cuente|narra|debe|deben|haz|haga",
    r"en|con",
    r"una?\s+(?:\w+\s+){1,2}(?:de|con|en)",
    r"a|o",
    r"por qué|cómo|quién|qué|cuál|si|cuánt\w+",
    r"por|al|cada",
)


def european_lengths(question: str) -> tuple[Length, ...]:
    """Every length that a question in German, French or Spanish asks of its answer."""
    shown = both_ends(question)
    for tongue in (GERMAN, FRENCH, SPANISH):
        asking = _asking(tongue)
        clauses = CLAUSE.split(shown)
        found = [length for clause in clauses for length in _in_clause(clause, tongue, asking)]
        lengths = tuple(dict.fromkeys(length for length in found if length is not None))
        if lengths:
            return lengths if None not in found and agree(lengths) else ()
    return ()


def _asking(tongue: _Tongue) -> re.Pattern[str]:
    leads = "|".join(f"(?P<{name}>{words})" for name, words in tongue.leads.items())
    units = "|".join(f"(?P<{name}>{words})" for name, words in tongue.units.items())
    number = f"{DIGITS}|{tongue.numerals}"
    tails = "|".join(f"(?P<tail_{name}>{words})" for name, words in tongue.tails.items())
    return re.compile(
        rf"(?<![\w,.-])(?:(?:{leads})\s+)?(?P<low>{number})"
        rf"(?:\s*(?:-|–|\b(?:{tongue.to})\b)\s*(?P<high>{number}))?\s*(?:{units})\b"
        rf"(?:\s+(?:{tails})\b)?(?P<each>\s+(?:{tongue.each})\b)?",
        re.IGNORECASE,
    )


def _in_clause(clause: str, tongue: _Tongue, asking: re.Pattern[str]) -> Iterator[Length | None]:
    """The lengths asked for in one clause; None for one that cannot be read for sure."""
    request = re.search(rf"\b(?:{tongue.request})\b", clause, re.IGNORECASE)
    for match in asking.finditer(clause):
        head = clause[: match.start()]
        bound = next((name for name in tongue.leads if match[name]), "")
        tail = next((name for name in tongue.tails if match[f"tail_{name}"]), "")
        if match["each"] or not _hangs(head, tongue, request, is_led=bool(bound or tail)):
            continue
        low = _value(match["low"], tongue.language)
        high = _value(match["high"], tongue.language) if match["high"] else None
        unit = next(name for name in tongue.units if match[name])
        if low is None or (low == 1 and unit not in ("sentence", "paragraph")):
            continue
        yield asked_range(unit, low, high) if high else asked_with_bound(unit, low, tail or bound)


def _hangs(head: str, tongue: _Tongue, request: re.Match[str] | None, *, is_led: bool) -> bool:
    """Whether a figure behind `head` is one that is asked for."""
    is_into = re.search(rf"(?:^|\s)(?:{tongue.into})\s+$", head, re.IGNORECASE) is not None
    if re.match(rf"\W*(?:{tongue.about})\b", head, re.IGNORECASE):
        return False
    if request is None or request.start() >= len(head):
        return (is_into or is_led) and not head.strip().replace(tongue.into, "")[3:]
    between = head[request.end() :]
    matter = re.search(rf"\b(?:{tongue.about})\b", between, re.IGNORECASE)
    if matter:
        return is_into and between.rstrip().lower().endswith((", in", ", en"))
    # "this text of 500 words" is a thing.
    is_text = re.search(rf"\b(?:{tongue.text})\s*$", head, re.IGNORECASE) is not None
    return is_into or is_text or is_led or not WHOM.sub("", between).strip()


def _value(written: str, language: str) -> int | None:
    """A figure in digits or words; None where the words are none."""
    bare = re.sub(r"[. ]", "", written)
    if bare.isdigit():
        return int(bare)
    written = written.strip()
    if ONE.fullmatch(written):
        return 1
    found = find_quantities(f"{written} x", language)
    is_whole = len(found) == 1 and found[0].low.is_integer() and not found[0].ordinal
    is_all = is_whole and found[0].number_end - found[0].number_start == len(written)
    return int(found[0].low) if is_all else None
