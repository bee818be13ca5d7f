"""The tool `conditions`: checks the constraints that a question puts on the form of its answer.

Only explicit requests count; a length that describes a thing ("this 500-word article") does not.
Source: HaluAgent 2.1, 2.2 (condition verifier), table 5.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec
import regex

from core.documents.segmentation import UNKNOWN_LANGUAGE, detect_language, split_sentences
from core.runtime.errors import InputError
from core.schema.records import Case, Label, Statement
from core.tools.lengths import (
    REQUEST_PATTERNS,
    LengthConstraint,
    LengthUnit,
    cut_middle,
    find_asked_lengths,
)
from core.tools.numbers import parse_numeral
from core.tools.quantities import find_quantities
from core.tools.registry import Tool, ToolAnswer, ToolContext, load_examples
from core.tools.vocabulary import PatternTable, compile_list, get_locale, load_words

PATTERNS = PatternTable("constraints")
ConstraintKind = Literal["length", "format", "language", "wording"]
TextPlace = tuple[int, int]
# The middle between 5.1 %, the largest deviation labelled right in HaluAgent's 100 shared answers,
# and 10 %, the smallest labelled wrong, in non-blank characters. For "about 100" people accept 80.
LENGTH_TOLERANCE, ABOUT_TOLERANCE = 0.075, 0.2
FEW_CHARACTERS = (
    10  # up to here people count no punctuation ("two characters"); above it the sets do
)
# No error on 100 shared answers: with 95 % confidence the error rate is below 3 %.
ERROR_RATE, LOOSE_ERROR_RATE = 0.03, 0.1
# Shared answers labelled right deviate by up to 2/3 of the tolerance, wrong ones from 4/3 on.
KEPT_BELOW, BROKEN_FROM = 2 / 3, 4 / 3
NON_WORD_CHARS = regex.compile(r"[\s\p{P}\p{S}]+")
UNSPACED_SCRIPTS = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
EAST_ASIAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
PART_OF_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")
FormatName = Literal[
    "json", "table", "csv", "bullets", "numbers", "upper", "lower", "title", "no_commas"
]
FORMAT_NAMES: Mapping[FormatName, str] = {
    "json": "JSON", "table": "a table", "csv": "CSV", "bullets": "a bulleted list",
    "numbers": "a numbered list", "upper": "capital letters throughout",
    "lower": "small letters throughout", "title": "a title first", "no_commas": "no comma",
}  # fmt: skip
ITEM_PATTERNS = {
    "bullets": re.compile(r"^[ \t]*(?:[-*+–][ \t]+|[•◦▪·][ \t]*)(?=\S)", re.MULTILINE),
    "numbers": re.compile(r"^[ \t]*(?:\d{1,3}[.)、．]|[（(]\d{1,3}[)）])", re.MULTILINE),
}
# What each of these formats forbids: a test of characters, and its name.
FORBIDDEN_CHARS = {
    "upper": (str.islower, "a small letter"), "lower": (str.isupper, "a capital letter"),
    "no_commas": (",，".__contains__, "one"),
}  # fmt: skip
CONTRARY_FORMATS = ({"upper", "lower"}, {"json", "table"}, {"json", "bullets"}, {"csv", "table"})
NAMED_LANGUAGES = (
    "en fr de es zh ja ko ru it pt nl ar hi tr pl sv da no fi el he th vi uk cs hu ro id fa".split()
)
# Languages that the detector may confuse in a short text.
SIMILAR_LANGUAGES = tuple(
    frozenset(group.split())
    for group in "no da sv,id ms,es gl ca pt,cs sk,zh ja,ar fa ur,ru uk bg be sr mk,hi mr ne,"
    "de nl af lb".split(",")
)
WordingKind = Literal["has", "lacks", "starts", "ends", "asks"]


@dataclass(frozen=True)
class ConstraintResult:
    """The result for one constraint.

    `asked` and `found` are words for people ("100 words", "87 words"). `holds` is None if it cannot
    be checked. `p` is the probability that the constraint is broken. `[start, end)` in the answer
    are the words that break it, None if that is all of it.
    """

    kind: ConstraintKind
    asked: str
    found: str
    holds: bool | None
    p: float
    words: str
    start: int | None = None
    end: int | None = None


def _decide(
    kind: ConstraintKind, asked: str, found: str, holds: bool, place: TextPlace | None = None
) -> ConstraintResult:
    """Return the result of a constraint that is either kept or broken."""
    verb, p = ("and", LOOSE_ERROR_RATE) if holds else ("but", 1.0 - LOOSE_ERROR_RATE)
    words = f"{asked[0].upper()}{asked[1:]} was asked for {verb} the answer {found}."
    start, end = place or (None, None)
    return ConstraintResult(kind, asked, found, holds, round(p, 4), words, start, end)


def _leave_open(kind: ConstraintKind, asked: str, why: str) -> ConstraintResult:
    return ConstraintResult(
        kind, asked, why, None, 0.5, f"Asked for: {asked}. This cannot be told: {why}."
    )


class LengthCount(NamedTuple):
    """The length of a text; `least` and `most` come from other ways of counting."""

    main: int
    least: int
    most: int


def measure_length(text: str, unit: LengthUnit, language: str = "en") -> LengthCount | None:
    """Return the length of a text in a unit; None if it cannot be counted.

    That is words in a script without blanks between words, and lines of a text on one line. People
    count hyphens, punctuation and blanks differently: no answer is called wrong because of that.
    """
    if unit == "character":
        bare, inked = len(NON_WORD_CHARS.sub("", text)), len(regex.sub(r"\s+", "", text))
        # Blanks only count in scripts that write them between words.
        return LengthCount(inked, bare, inked if EAST_ASIAN.search(text) else len(text.strip()))
    if unit == "word":
        if UNSPACED_SCRIPTS.search(text):
            return None
        han, rest = len(EAST_ASIAN.findall(text)), EAST_ASIAN.sub(" ", text)
        joined = sum(1 for token in rest.split() if PART_OF_WORD.search(token))
        return LengthCount(
            han + joined, han + joined, han + max(joined, len(PART_OF_WORD.findall(rest)))
        )
    if unit == "sentence":
        number = len(split_sentences(text, language))
        return LengthCount(number, number, number)
    lines = sum(1 for line in text.splitlines() if line.strip())
    if unit == "line":
        return LengthCount(lines, lines, lines) if lines > 1 else None
    paragraphs = sum(1 for part in re.split(r"\n\s*\n", text) if part.strip())
    return LengthCount(paragraphs, paragraphs, lines)


def check_length(text: str, asked: LengthConstraint, language: str = "en") -> ConstraintResult:
    """Compare with the length asked for: certain far from the limit, open near it."""
    length = measure_length(text, asked.unit, language)
    if length is None:
        is_line = asked.unit == "line"
        why = "where a line breaks is up to the page" if is_line else "its script parts no words"
        return _leave_open("length", asked.words, why)
    deviation = _measure_deviation(length, asked)
    holds = deviation <= 1.0
    share = min(1.0, max(0.0, (deviation - KEPT_BELOW) / (BROKEN_FROM - KEPT_BELOW)))
    p = ERROR_RATE + share * (1.0 - 2 * ERROR_RATE)
    # At the limit the rule decides, not the rounding.
    p = round(min(p, 0.49) if holds else max(p, 0.51), 4)
    found_words = f"{length.main:,} {asked.unit}{'' if length.main == 1 else 's'}"
    was = "was" if asked.least == asked.most == 1 else "were"
    blanks = " (without blanks)" if asked.unit == "character" else ""
    begin = f"{asked.words} {was} asked for {'and' if holds else 'but'} the answer has"
    words = f"{begin[0].upper()}{begin[1:]} {length.main:,}{blanks}."
    return ConstraintResult("length", asked.words, found_words, holds, p, words)


def _measure_deviation(found: LengthCount, asked: LengthConstraint) -> float:
    """Return the deviation as a multiple of the tolerance: 1.0 is the limit."""
    wanted = asked.least or 0
    if asked.least is not None and asked.least == asked.most:
        counts = {found.main, found.most} | ({found.least} if wanted <= FEW_CHARACTERS else set())
        miss = min(abs(number - wanted) for number in counts)
        allowed = (ABOUT_TOLERANCE if asked.is_about else LENGTH_TOLERANCE) * wanted
        # Tolerances below one unit are zero: "three sentences" are exactly three.
        if allowed >= 1.0:
            return miss / allowed
        return 1.0 + miss if miss else 0.0
    short = max(0, wanted - found.most)
    long = 0 if asked.most is None else max(0, found.least - asked.most)
    edge = asked.most if long else asked.least
    return 1.0 + 20.0 * max(short, long) / max(1, edge or 0) if short or long else 0.0


@dataclass(frozen=True)
class FormatConstraint:
    """A format asked for; `items` is the number of entries of a list, None for any."""

    name: FormatName
    items: int | None = None


def find_asked_formats(question: str) -> tuple[FormatConstraint, ...]:
    """Return every format that the question asks for; none if two exclude each other."""
    excerpt = cut_middle(question)
    formats: dict[FormatName, FormatConstraint] = {}
    for name in FORMAT_NAMES if not REQUEST_PATTERNS.no_format.search(excerpt) else ():
        match = compile_list("requests", "formats", name).search(excerpt)
        if match and (
            name == "no_commas" or not REQUEST_PATTERNS.denied.search(excerpt[: match.start()])
        ):
            groups = match.groupdict()
            quantities = find_quantities(f"{groups.get('count') or ''} x", "en")
            items = parse_numeral(groups.get("han") or "") or (
                quantities[0].low if quantities else 0
            )
            formats[name] = FormatConstraint(name, int(items) or None)
    return () if any(pair <= set(formats) for pair in CONTRARY_FORMATS) else tuple(formats.values())


def check_format(text: str, asked: FormatConstraint) -> ConstraintResult:
    """Check the format of the text; a fence around it and words beside it do not matter."""
    wanted = FORMAT_NAMES[asked.name]
    if asked.name in ITEM_PATTERNS:  # the count may mean all depths or only the outermost
        signs = [match.group() for match in ITEM_PATTERNS[asked.name].finditer(text)]
        depths = [len(sign) - len(sign.lstrip(" \t")) for sign in signs]
        outermost, number = sum(depth == min(depths) for depth in depths), asked.items
        if number is None:
            return _decide("format", wanted, f"has {outermost}", bool(signs))
        wanted += f" of {number} {'entry' if number == 1 else 'entries'}"
        return _decide("format", wanted, f"has {outermost}", number in (outermost, len(signs)))
    if asked.name in FORBIDDEN_CHARS:
        is_wrong, what = FORBIDDEN_CHARS[asked.name]
        at = next((place for place, char in enumerate(text) if is_wrong(char)), None)
        found = "does" if at is None else f"has {what}"
        return _decide("format", wanted, found, at is None, None if at is None else (at, at + 1))
    if asked.name == "table":
        wrong = "" if PATTERNS.drawn.search(text) else "has none"
    else:
        faults = {"json": _find_json_fault, "csv": _find_csv_fault, "title": _find_title_fault}
        wrong = faults[asked.name](text)
    return _decide("format", wanted, wrong or "has that form", not wrong)


def _find_json_fault(text: str) -> str:
    """Return what is wrong with the text as JSON; empty if nothing is."""
    for part in (text, *PATTERNS.fenced.findall(text)):
        try:
            if isinstance(json.loads(part), dict | list):
                return ""
        except (ValueError, RecursionError):
            continue
    return "cannot be read as such"


def _find_csv_fault(text: str) -> str:
    for part in (*PATTERNS.fenced.findall(text), text):
        lines = [line for line in part.strip().splitlines() if line.strip()]
        try:
            widths = {len(row) for row in csv.reader(io.StringIO("\n".join(lines)))}
        except csv.Error:
            continue
        if len(lines) > 1 and len(widths) == 1 and widths != {1}:
            return ""
    return "has rows of different length, or no such rows"


def _find_title_fault(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    is_plain = len(lines) > 1 and len(lines[0]) <= 120 and not lines[0].endswith(tuple(".。,，;；"))
    is_marked = lines[0].startswith(("#", "**", "<<", "《", "【"))
    return "" if is_plain or is_marked else "begins with a sentence"


@lru_cache(maxsize=1)
def _language_names() -> Mapping[str, str]:
    names = {"mandarin": "zh", "castellano": "es", "汉语": "zh", "persian": "fa"}
    for tongue in ("en", "de", "fr", "es", "zh"):
        for code in NAMED_LANGUAGES:
            name = str(get_locale(tongue).languages.get(code, "")).lower()
            names |= {name: code, name.replace("语", "文") if tongue == "zh" else f"{name}e": code}
    return {name: code for name, code in names.items() if len(name) > 1}


@lru_cache(maxsize=1)
def _compile_language_request() -> re.Pattern[str]:
    """Compile how a language is asked for; the name is in one of the last groups."""
    names = "|".join(sorted(_language_names(), key=len, reverse=True))
    pattern = compile_list("requests", "in_language").pattern
    return re.compile(pattern.replace("@", names), re.IGNORECASE | re.MULTILINE)


def find_asked_language(question: str) -> str:
    """Return the ISO 639-1 code of the language asked for; empty if none or several."""
    excerpt, codes = cut_middle(question), set()
    for match in _compile_language_request().finditer(excerpt):
        before = excerpt[max(0, match.start() - 40) : match.start()] + (match["gap"] or "")
        if not re.search(r"\b(?:how|why|who|what|which)\b(?!.*[.?!:])", before, re.IGNORECASE):
            codes.add(_language_names()[str(match[match.lastindex or 0]).lower()])
    return codes.pop() if len(codes) == 1 else ""


def check_language(text: str, asked: str) -> ConstraintResult:
    """Check that the text, without its code, is in a language given as an ISO 639-1 code.

    A similar language is not told apart from it, and a text that is too short stays open.
    """
    language = detect_language(re.sub(r"(?s)```.*?(?:```|\Z)", " ", text))
    names = get_locale("en").languages
    wanted, detected = str(names.get(asked, asked)), str(names.get(language, language))
    if language == UNKNOWN_LANGUAGE:
        return _leave_open("language", wanted, "the answer is too short or too mixed to say")
    if language != asked and any({language, asked} <= group for group in SIMILAR_LANGUAGES):
        return _leave_open("language", wanted, f"it may be that or {detected}")
    return _decide("language", wanted, f"is in {detected}", language == asked)


@dataclass(frozen=True)
class WordingConstraint:
    """Words asked for: any one of `words`, `least` to `most` times in all.

    The kind `lacks` means forbidden words, `asks` an end with a question. `is_letter` looks for the
    words anywhere, not only as whole words.
    """

    kind: WordingKind
    words: tuple[str, ...] = ()
    least: int = 1
    most: int | None = None
    is_letter: bool = False


def find_asked_wordings(question: str) -> tuple[WordingConstraint, ...]:
    """Return every quoted word that the question requires or forbids, and names to mention."""
    wordings: list[WordingConstraint] = []
    for clause in re.split(r"(?<=[.?!])\s+|(?<=[。？！；;\n])", cut_middle(question)):
        is_question = clause.rstrip().endswith(("?", "？")) and not REQUEST_PATTERNS.polite.search(
            clause
        )
        if clause and not is_question and not REQUEST_PATTERNS.about_words.search(clause):
            wordings += _parse_wordings(clause)
    wanted, barred = (
        {word.casefold() for one in wordings if one.kind == kind for word in one.words}
        for kind in ("has", "lacks")
    )
    return () if wanted & barred else tuple(dict.fromkeys(wordings))


def _parse_wordings(clause: str) -> Iterator[WordingConstraint]:
    end = 0
    for match in PATTERNS.several.finditer(clause):
        head, tail, end = clause[end : match.start()], clause[match.end() :][:40], match.end()
        parts = ("".join(pair) for pair in PATTERNS.quoted.findall(match.group()))
        # American style puts the comma or full stop inside the quotes.
        words = tuple(word.strip().rstrip(",.") or word for word in parts)
        if REQUEST_PATTERNS.barred.search(head) or re.match(r"\s*nicht\b", tail):
            yield WordingConstraint(
                "lacks", words, is_letter=re.search(r"\bletters?\s*$", head) is not None
            )
        elif REQUEST_PATTERNS.starts.search(head) or re.match(
            r"(?:为|作为?)?(?:开头|开始|起头)", tail
        ):
            yield WordingConstraint("starts", words)
        elif REQUEST_PATTERNS.finishes.search(head) or re.match(
            r"(?:为|作为?)?(?:结尾|结束|收尾)", tail
        ):
            yield WordingConstraint("ends", words)
        elif REQUEST_PATTERNS.using.search(head) and not re.search(r"\bstring\b", head):
            each = [words] if PATTERNS.either.search(match.group()) else [(word,) for word in words]
            yield from (WordingConstraint("has", one, *_parse_times(tail)) for one in each)
    if REQUEST_PATTERNS.ends_asking.search(clause):
        yield WordingConstraint("asks")
    yield from (
        WordingConstraint("has", (match["name"],)) for match in PATTERNS.name.finditer(clause)
    )


def _parse_times(tail: str) -> tuple[int, int | None]:
    """Return the least and greatest number of times; (1, None) if nothing is said."""
    match = PATTERNS.times.match(tail)
    if match is None:
        return 1, None
    figures = find_quantities(f"{match['n']} x", "en")
    stated = parse_numeral(match["han"]) if match["han"] else None
    if stated is None:
        stated = figures[0].low if figures else 1
    number = {"once": 1, "twice": 2}.get((match["n"] or "").lower()) or int(stated)
    bound = " ".join((match["bound"] or "").lower().split())
    if bound in ("at most", "no more than"):
        return 0, number
    return number, number if bound == "exactly" else None


def check_wording(text: str, asked: WordingConstraint) -> ConstraintResult:
    """Check that the text keeps to the words asked of it, ignoring case."""
    named = " or ".join(f"“{word}”" for word in asked.words)
    if asked.kind in ("starts", "ends", "asks"):
        # Compare letters and digits only: punctuation makes no other beginning.
        bare, *words = (re.sub(r"[\W_]+", "", part.casefold()) for part in (text, *asked.words))
        at_end = text.rstrip("\"'“”‘’»«」』）)*_` \n\t")
        wanted, holds = {
            "starts": (f"{named} at the beginning", bare.startswith(tuple(words))),
            "ends": (f"{named} at the end", bare.endswith(tuple(words))),
            "asks": ("a question at the end", at_end.endswith(("?", "？", "؟"))),
        }[asked.kind]
        return _decide("wording", wanted, f"{'has' if holds else 'does not have'} it there", holds)
    places = [match.span() for word in asked.words for match in _find_words(text, word, asked)]
    if asked.kind == "lacks":
        found = "has it" if places else "does not have it"
        return _decide("wording", f"no {named}", found, not places, places[0] if places else None)
    # Some people count "solar" in "solarpunk", others do not.
    within = max(len(places), sum(text.casefold().count(word.casefold()) for word in asked.words))
    least, most = asked.least, asked.most
    holds = within >= least and (most is None or len(places) <= most)
    bound = f"at most {most}"
    if most is None or least == most:
        bound = f"{'at least' if most is None else 'exactly'} {least}"
    often = "" if (least, most) == (1, None) else f", {bound}×"
    return _decide("wording", f"{named}{often}", f"has it {len(places)}×", holds)


def _find_words(text: str, word: str, asked: WordingConstraint) -> list[re.Match[str]]:
    is_sign = not (word.isascii() or word[:1].isalpha())
    bare = re.escape(word.strip())
    is_anywhere = asked.is_letter or EAST_ASIAN.search(word) or is_sign
    return list(re.finditer(bare if is_anywhere else rf"(?<!\w){bare}(?!\w)", text, re.IGNORECASE))


class ConditionsInput(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole answer and what was asked of it: the question, or single conditions.

    `text` is the answer. Give `question` as it was put: its conditions are read from it. Or give
    them yourself: a length from `least` to `most` in `unit` (both the same for "in 100 words"), a
    `format` (with `items` entries for a list), `answer_in`, a language as "fr", and words that the
    answer `must_have` or `must_lack`.
    """

    text: str
    question: str = ""
    language: str = "und"
    unit: LengthUnit = "word"
    least: int | None = None
    most: int | None = None
    is_about: bool = False
    format: FormatName | None = None
    items: int | None = None
    answer_in: str = ""
    must_have: tuple[str, ...] = ()
    must_lack: tuple[str, ...] = ()


def check_constraints(
    question: str, response: str, language: str = "en"
) -> tuple[ConstraintResult, ...]:
    """Check all constraints of a question against the answer; most questions have none."""
    wanted = find_asked_language(question)
    return (
        *(check_length(response, length, language) for length in find_asked_lengths(question)),
        *(check_format(response, asked) for asked in find_asked_formats(question)),
        *((check_language(response, wanted),) if wanted else ()),
        *(check_wording(response, asked) for asked in find_asked_wordings(question)),
    )


def _check_conditions(given: ConditionsInput, tool_context: ToolContext) -> ToolAnswer:
    """Check every condition against the text.

    `gave` has `conditions`, a list of objects: `kind` (length, format, language or wording),
    `asked` and `found` in words, `holds` (true, false, or null if it cannot be checked), and
    `start` and `end` of the words in the text that break it (null for all of it). Raises InputError
    if neither a question nor a condition is given.
    """
    checks = (
        *check_constraints(given.question, given.text, given.language),
        *_check_given_conditions(given),
    )
    if not checks and not given.question.strip():
        raise InputError("Expected a question or a condition such as least, found neither.")
    names = ("kind", "asked", "found", "holds", "start", "end")
    details: dict[str, Any] = {
        "conditions": [{n: getattr(one, n) for n in names} for one in checks]
    }
    if not checks:
        words = "The question sets no condition that can be counted or looked for."
        return ToolAnswer("unclear", words, details, has_something=False)
    known = [check for check in checks if check.holds is not None]
    worst = max(known, key=lambda check: (not check.holds, check.p), default=None)
    # If one cannot be checked and the others hold, the answer stays unclear.
    if worst is None or (worst.holds and len(known) < len(checks)):
        return ToolAnswer(
            "unclear", next(check.words for check in checks if check.holds is None), details
        )
    label: Label = "supported" if worst.holds else "hallucinated"
    category = "instruction_not_followed"
    return ToolAnswer(
        label, worst.words, details, worst.p, worst.start, worst.end, category=category
    )


def _check_given_conditions(given: ConditionsInput) -> Iterator[ConstraintResult]:
    if given.least is not None or given.most is not None:
        length = LengthConstraint(given.unit, given.least, given.most, given.is_about)
        yield check_length(given.text, length, given.language)
    if given.format:
        yield check_format(given.text, FormatConstraint(given.format, given.items))
    if given.answer_in:
        yield check_language(given.text, given.answer_in)
    asked = [WordingConstraint("has", (word,)) for word in given.must_have if word.strip()]
    asked += [WordingConstraint("lacks", (word,)) for word in given.must_lack if word.strip()]
    yield from (check_wording(given.text, one) for one in asked)


def _read_response(statement: Statement | None, case: Case) -> ConditionsInput | None:
    if statement is not None or not case.question.strip() or not case.response.strip():
        return None
    if not check_constraints(case.question, case.response, case.language):
        return None
    return ConditionsInput(case.response, case.question, case.language)


TOOL = Tool(
    name="conditions",
    description=load_words("descriptions")["conditions"],
    takes=ConditionsInput,
    work=_check_conditions,
    examples=load_examples("conditions", ConditionsInput),
    reads=_read_response,
)
