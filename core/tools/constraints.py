"""Constraints: whether an answer keeps to what its question asks of its form.

Only what is plainly asked for counts, and a length that describes a thing ("this 500-word article")
is none. Source: HaluAgent 2.1, 2.2 (condition verifier), table 5.
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

from core.documents.segmentation import UNKNOWN, language_of, sentences
from core.runtime.errors import InputError
from core.schema.records import Case, Label, Statement
from core.tools.lengths import ASKED, Length, LengthUnit, asked_lengths, both_ends
from core.tools.numbers import value_of
from core.tools.quantities import find_quantities
from core.tools.registry import Answer, Bench, Tool, read_examples
from core.tools.vocabulary import PatternTable, list_pattern, locale_of, read_words

WRITTEN = PatternTable("constraints")
Kind = Literal["length", "format", "language", "wording"]
Place = tuple[int, int]
# Of HaluAgent's 100 shared answers none was called right above 5.1 % nor wrong below 10 %, counted
# in characters other than blanks: the middle of that gap. People asked for about 100 take 80.
TOLERANCE, ABOUT = 0.075, 0.2
FEW = 10  # asked for "two characters" people count no full stop; from here on the sets count it
# No error on 100 shared answers: with 95 % confidence fewer than three in a hundred go wrong.
DOUBT, LOOSE_DOUBT = 0.03, 0.1
# Shared answers called right strain up to two thirds of what is allowed, wrong ones from four.
SURE_BELOW, SURE_FROM = 2 / 3, 4 / 3


@dataclass(frozen=True)
class ConstraintResult:
    """One constraint and what became of it.

    `asked` and `found` are words for people ("100 words", "87 words"). `holds` is None where it
    cannot be told. `p` is the probability that it is broken. `[start, end)` in the answer are the
    words that break it, None where that is all of it.
    """

    kind: Kind
    asked: str
    found: str
    holds: bool | None
    p: float
    words: str
    start: int | None = None
    end: int | None = None


def _decided(
    kind: Kind, asked: str, found: str, holds: bool, place: Place | None = None
) -> ConstraintResult:
    """A constraint that is kept or is not, with nothing in between."""
    verb, p = ("and", LOOSE_DOUBT) if holds else ("but", 1.0 - LOOSE_DOUBT)
    words = f"{asked[0].upper()}{asked[1:]} was asked for {verb} the answer {found}."
    return ConstraintResult(kind, asked, found, holds, round(p, 4), words, *(place or (None, None)))


def _undecided(kind: Kind, asked: str, why: str) -> ConstraintResult:
    return ConstraintResult(
        kind, asked, why, None, 0.5, f"Asked for: {asked}. This cannot be told: {why}."
    )


MARK = regex.compile(r"[\s\p{P}\p{S}]+")
UNCOUNTABLE = regex.compile(r"[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
EAST_ASIAN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
PART_OF_WORD = regex.compile(r"[\p{L}\p{N}\p{M}]+")


class Count(NamedTuple):
    """How long a text is; `least` and `most` are what other ways of counting give."""

    main: int
    least: int
    most: int


def count(text: str, unit: LengthUnit, language: str = "en") -> Count | None:
    """The text's length in a unit; None where it cannot be told.

    That is words of a script that does not part them by blanks, and lines of a text on one line.
    Two people count differently (hyphens, punctuation, blanks): nobody is called wrong over that.
    """
    if unit == "character":
        bare, inked = len(MARK.sub("", text)), len(regex.sub(r"\s+", "", text))
        # Blanks count where a script writes them between words.
        return Count(inked, bare, inked if EAST_ASIAN.search(text) else len(text.strip()))
    if unit == "word":
        if UNCOUNTABLE.search(text):
            return None
        han, rest = len(EAST_ASIAN.findall(text)), EAST_ASIAN.sub(" ", text)
        joined = sum(1 for token in rest.split() if PART_OF_WORD.search(token))
        return Count(han + joined, han + joined, han + max(joined, len(PART_OF_WORD.findall(rest))))
    if unit == "sentence":
        return Count(*[len(sentences(text, language))] * 3)
    lines = sum(1 for line in text.splitlines() if line.strip())
    if unit == "line":
        return Count(lines, lines, lines) if lines > 1 else None
    paragraphs = sum(1 for part in re.split(r"\n\s*\n", text) if part.strip())
    return Count(paragraphs, paragraphs, lines)


def check_length(text: str, asked: Length, language: str = "en") -> ConstraintResult:
    """The text against the length asked for: sure that it is kept or not, evenly in between."""
    found = count(text, asked.unit, language)
    if found is None:
        is_line = asked.unit == "line"
        why = "where a line breaks is up to the page" if is_line else "its script parts no words"
        return _undecided("length", asked.words, why)
    strain = _strain(found, asked)
    holds = strain <= 1.0
    share = min(1.0, max(0.0, (strain - SURE_BELOW) / (SURE_FROM - SURE_BELOW)))
    p = DOUBT + share * (1.0 - 2 * DOUBT)
    # At the very edge the rule decides, not the rounding.
    p = round(min(p, 0.49) if holds else max(p, 0.51), 4)
    shown = f"{found.main:,} {asked.unit}{'' if found.main == 1 else 's'}"
    was = "was" if asked.least == asked.most == 1 else "were"
    blanks = " (without blanks)" if asked.unit == "character" else ""
    begin = f"{asked.words} {was} asked for {'and' if holds else 'but'} the answer has"
    words = f"{begin[0].upper()}{begin[1:]} {found.main:,}{blanks}."
    return ConstraintResult("length", asked.words, shown, holds, p, words)


def _strain(found: Count, asked: Length) -> float:
    """The deviation as a multiple of what is allowed: 1.0 is the edge."""
    wanted = asked.least or 0
    if asked.least is not None and asked.least == asked.most:
        counts = {found.main, found.most} | ({found.least} if wanted <= FEW else set())
        off = min(abs(counted - wanted) for counted in counts)
        allowed = (ABOUT if asked.is_about else TOLERANCE) * wanted
        # Below one unit nothing is allowed: "three sentences" are three.
        return off / allowed if allowed >= 1.0 else 1.0 + off if off else 0.0
    short = max(0, wanted - found.most)
    long = 0 if asked.most is None else max(0, found.least - asked.most)
    edge = asked.most if long else asked.least
    return 1.0 + 20.0 * max(short, long) / max(1, edge or 0) if short or long else 0.0


FormatName = Literal[
    "json", "table", "csv", "bullets", "numbers", "upper", "lower", "title", "no_commas"
]
FORMATS: Mapping[FormatName, str] = {
    "json": "JSON", "table": "a table", "csv": "CSV", "bullets": "a bulleted list",
    "numbers": "a numbered list", "upper": "capital letters throughout",
    "lower": "small letters throughout", "title": "a title first", "no_commas": "no comma",
}  # fmt: skip
ITEMS = {
    "bullets": re.compile(r"^[ \t]*(?:[-*+–][ \t]+|[•◦▪·][ \t]*)(?=\S)", re.MULTILINE),
    "numbers": re.compile(r"^[ \t]*(?:\d{1,3}[.)、．]|[（(]\d{1,3}[)）])", re.MULTILINE),
}
# What each of these formats must not have.
LACKED = {
    "upper": (str.islower, "a small letter"), "lower": (str.isupper, "a capital letter"),
    "no_commas": (",，".__contains__, "one"),
}  # fmt: skip
CONTRARY = ({"upper", "lower"}, {"json", "table"}, {"json", "bullets"}, {"csv", "table"})


@dataclass(frozen=True)
class FormatConstraint:
    """A format that is asked for; `items` is how many entries a list shall have, None for any."""

    name: FormatName
    items: int | None = None


def asked_formats(question: str) -> tuple[FormatConstraint, ...]:
    """Every format that the question asks of its answer; none where two exclude each other."""
    shown = both_ends(question)
    found: dict[FormatName, FormatConstraint] = {}
    for name in FORMATS if not ASKED.no_format.search(shown) else ():
        match = list_pattern("requests", "formats", name).search(shown)
        if match and (name == "no_commas" or not ASKED.denied.search(shown[: match.start()])):
            groups = match.groupdict()
            figures = find_quantities(f"{groups.get('count') or ''} x", "en")
            items = value_of(groups.get("han") or "") or (figures[0].low if figures else 0)
            found[name] = FormatConstraint(name, int(items) or None)
    return () if any(pair <= set(found) for pair in CONTRARY) else tuple(found.values())


def check_format(text: str, asked: FormatConstraint) -> ConstraintResult:
    """Whether the text has the format; a fence around it and words beside it do not matter."""
    wanted = FORMATS[asked.name]
    if asked.name in ITEMS:  # at every depth and at the outermost one: either may be meant
        signs = [match.group() for match in ITEMS[asked.name].finditer(text)]
        depths = [len(sign) - len(sign.lstrip(" \t")) for sign in signs]
        outermost, number = sum(depth == min(depths) for depth in depths), asked.items
        if number is None:
            return _decided("format", wanted, f"has {outermost}", bool(signs))
        wanted += f" of {number} {'entry' if number == 1 else 'entries'}"
        return _decided("format", wanted, f"has {outermost}", number in (outermost, len(signs)))
    if asked.name in LACKED:
        is_wrong, what = LACKED[asked.name]
        at = next((place for place, char in enumerate(text) if is_wrong(char)), None)
        found = "does" if at is None else f"has {what}"
        return _decided("format", wanted, found, at is None, None if at is None else (at, at + 1))
    if asked.name == "table":
        wrong = "" if WRITTEN.drawn.search(text) else "has none"
    else:
        wrong = {"json": _json, "csv": _csv, "title": _title}[asked.name](text)
    return _decided("format", wanted, wrong or "has that form", not wrong)


def _json(text: str) -> str:
    """What is wrong with it as JSON; empty where nothing is."""
    for part in (text, *WRITTEN.fenced.findall(text)):
        try:
            if isinstance(json.loads(part), dict | list):
                return ""
        except (ValueError, RecursionError):
            continue
    return "cannot be read as such"


def _csv(text: str) -> str:
    for part in (*WRITTEN.fenced.findall(text), text):
        lines = [line for line in part.strip().splitlines() if line.strip()]
        try:
            widths = {len(row) for row in csv.reader(io.StringIO("\n".join(lines)))}
        except csv.Error:
            continue
        if len(lines) > 1 and len(widths) == 1 and widths != {1}:
            return ""
    return "has rows of different length, or no such rows"


def _title(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()] or [""]
    is_plain = len(lines) > 1 and len(lines[0]) <= 120 and not lines[0].endswith(tuple(".。,，;；"))
    is_marked = lines[0].startswith(("#", "**", "<<", "《", "【"))
    return "" if is_plain or is_marked else "begins with a sentence"


NAMED = (
    "en fr de es zh ja ko ru it pt nl ar hi tr pl sv da no fi el he th vi uk cs hu ro id fa".split()
)
# Languages that the detector may take for each other in a short text.
ALIKE = tuple(
    frozenset(group.split())
    for group in "no da sv,id ms,es gl ca pt,cs sk,zh ja,ar fa ur,ru uk bg be sr mk,hi mr ne,"
    "de nl af lb".split(",")
)


@lru_cache(maxsize=1)
def _language_names() -> Mapping[str, str]:
    names = {"mandarin": "zh", "castellano": "es", "汉语": "zh", "persian": "fa"}
    for tongue in ("en", "de", "fr", "es", "zh"):
        for code in NAMED:
            name = str(locale_of(tongue).languages.get(code, "")).lower()
            names |= {name: code, name.replace("语", "文") if tongue == "zh" else f"{name}e": code}
    return {name: code for name, code in names.items() if len(name) > 1}


@lru_cache(maxsize=1)
def _asking_for_language() -> re.Pattern[str]:
    """How an answer in a language is asked for; the name stands in one of the last groups."""
    names = "|".join(sorted(_language_names(), key=len, reverse=True))
    pattern = list_pattern("requests", "in_language").pattern
    return re.compile(pattern.replace("@", names), re.IGNORECASE | re.MULTILINE)


def asked_language(question: str) -> str:
    """The ISO 639-1 code of the language asked for; empty for none, or for more than one."""
    shown, found = both_ends(question), set()
    for match in _asking_for_language().finditer(shown):
        before = shown[max(0, match.start() - 40) : match.start()] + (match["gap"] or "")
        if not re.search(r"\b(?:how|why|who|what|which)\b(?!.*[.?!:])", before, re.IGNORECASE):
            found.add(_language_names()[str(match[match.lastindex or 0]).lower()])
    return found.pop() if len(found) == 1 else ""


def check_language(text: str, asked: str) -> ConstraintResult:
    """Whether the text, without its code, is in a language given as an ISO 639-1 code.

    A language that resembles it is not told from it, nor is one of a text too short to say.
    """
    found = language_of(re.sub(r"(?s)```.*?(?:```|\Z)", " ", text))
    wanted, told = (str(locale_of("en").languages.get(code, code)) for code in (asked, found))
    if found == UNKNOWN:
        return _undecided("language", wanted, "the answer is too short or too mixed to say")
    if found != asked and any({found, asked} <= group for group in ALIKE):
        return _undecided("language", wanted, f"it may be that or {told}")
    return _decided("language", wanted, f"is in {told}", found == asked)


WordingKind = Literal["has", "lacks", "starts", "ends", "asks"]
QUOTED = (
    r"(?:[“\"„«‹「『]\s?([^“”\"„«»‹›「」『』\n]{1,60}?)\s?[”\"“»›」』]"
    r"|(?<!\w)['‘]([^'‘’\n]{1,60})['’](?!\w))"
)


@dataclass(frozen=True)
class Wording:
    """Words that are asked for: any one of `words`, `least` to `most` times in all.

    `lacks` are words that must not be there, `asks` is an end with a question. `is_letter` looks
    for the words anywhere and not as whole words.
    """

    kind: WordingKind
    words: tuple[str, ...] = ()
    least: int = 1
    most: int | None = None
    is_letter: bool = False


def asked_wordings(question: str) -> tuple[Wording, ...]:
    """Every quoted word that the question asks to be there, or not to be; names to be mentioned."""
    found: list[Wording] = []
    for clause in re.split(r"(?<=[.?!])\s+|(?<=[。？！；;\n])", both_ends(question)):
        is_question = clause.rstrip().endswith(("?", "？")) and not ASKED.polite.search(clause)
        if clause and not is_question and not ASKED.about_words.search(clause):
            found += _wordings_in(clause)
    wanted, barred = (
        {word.casefold() for one in found if one.kind == kind for word in one.words}
        for kind in ("has", "lacks")
    )
    return () if wanted & barred else tuple(dict.fromkeys(found))


def _wordings_in(clause: str) -> Iterator[Wording]:
    end = 0
    for match in WRITTEN.several.finditer(clause):
        head, tail, end = clause[end : match.start()], clause[match.end() :][:40], match.end()
        parts = ("".join(pair) for pair in re.findall(QUOTED, match.group()))
        # In American writing the comma or stop of the sentence stands within.
        words = tuple(word.strip().rstrip(",.") or word for word in parts)
        if ASKED.barred.search(head) or re.match(r"\s*nicht\b", tail):
            yield Wording("lacks", words, is_letter=re.search(r"\bletters?\s*$", head) is not None)
        elif ASKED.starts.search(head) or re.match(r"(?:为|作为?)?(?:开头|开始|起头)", tail):
            yield Wording("starts", words)
        elif ASKED.finishes.search(head) or re.match(r"(?:为|作为?)?(?:结尾|结束|收尾)", tail):
            yield Wording("ends", words)
        elif ASKED.using.search(head) and not re.search(r"\bstring\b", head):
            each = [words] if WRITTEN.either.search(match.group()) else [(word,) for word in words]
            yield from (Wording("has", one, *_times(tail)) for one in each)
    if ASKED.ends_asking.search(clause):
        yield Wording("asks")
    yield from (Wording("has", (match["name"],)) for match in WRITTEN.name.finditer(clause))


def _times(tail: str) -> tuple[int, int | None]:
    """How often at least and at most; once and without a bound where nothing is said."""
    said = WRITTEN.times.match(tail)
    if said is None:
        return 1, None
    figures = find_quantities(f"{said['n']} x", "en")
    number = {"once": 1, "twice": 2}.get((said["n"] or "").lower()) or int(
        value_of(said["han"]) if said["han"] else figures[0].low if figures else 1
    )
    bound = " ".join((said["bound"] or "").lower().split())
    if bound in ("at most", "no more than"):
        return 0, number
    return number, number if bound == "exactly" else None


def check_wording(text: str, asked: Wording) -> ConstraintResult:
    """Whether the text keeps to the words asked of it, capitals and small letters alike."""
    named = " or ".join(f"“{word}”" for word in asked.words)
    if asked.kind in ("starts", "ends", "asks"):
        # Letters and figures alone: a comma more or less is no other beginning.
        bare, *words = (re.sub(r"[\W_]+", "", part.casefold()) for part in (text, *asked.words))
        at_end = text.rstrip("\"'“”‘’»«」』）)*_` \n\t")
        wanted, holds = {
            "starts": (f"{named} at the beginning", bare.startswith(tuple(words))),
            "ends": (f"{named} at the end", bare.endswith(tuple(words))),
            "asks": ("a question at the end", at_end.endswith(("?", "？", "؟"))),
        }[asked.kind]
        return _decided("wording", wanted, f"{'has' if holds else 'does not have'} it there", holds)
    places = [match.span() for word in asked.words for match in _places(text, word, asked)]
    if asked.kind == "lacks":
        found = "has it" if places else "does not have it"
        return _decided("wording", f"no {named}", found, not places, places[0] if places else None)
    # "solar" stands in "solarpunk" for some who count, for others not.
    within = max(len(places), sum(text.casefold().count(word.casefold()) for word in asked.words))
    least, most = asked.least, asked.most
    holds = within >= least and (most is None or len(places) <= most)
    bound = "exactly" if least == most else "at least" if most is None else "at most"
    often = "" if (least, most) == (1, None) else f", {bound} {least if most is None else most}×"
    return _decided("wording", f"{named}{often}", f"has it {len(places)}×", holds)


def _places(text: str, word: str, asked: Wording) -> list[re.Match[str]]:
    is_sign = not (word.isascii() or word[:1].isalpha())
    bare = re.escape(word.strip())
    is_anywhere = asked.is_letter or EAST_ASIAN.search(word) or is_sign
    return list(re.finditer(bare if is_anywhere else rf"(?<!\w){bare}(?!\w)", text, re.IGNORECASE))


class Conditions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
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
    """The constraints of a question, each held against the answer; mostly none."""
    wanted = asked_language(question)
    return (
        *(check_length(response, length, language) for length in asked_lengths(question)),
        *(check_format(response, asked) for asked in asked_formats(question)),
        *((check_language(response, wanted),) if wanted else ()),
        *(check_wording(response, asked) for asked in asked_wordings(question)),
    )


def _work(given: Conditions, bench: Bench) -> Answer:
    """Hold every condition against the text.

    `gave` has `conditions`, a list of objects: `kind` (length, format, language or wording),
    `asked` and `found` in words, `holds` (true, false, or null where it cannot be told), and
    `start` and `end` of the words in the text that break it (null for all of it). Raises InputError
    where neither a question nor a condition is given.
    """
    checks = (*check_constraints(given.question, given.text, given.language), *_given(given))
    if not checks and not given.question.strip():
        raise InputError("Expected a question or a condition such as least, found neither.")
    names = ("kind", "asked", "found", "holds", "start", "end")
    gave: dict[str, Any] = {"conditions": [{n: getattr(one, n) for n in names} for one in checks]}
    if not checks:
        words = "The question sets no condition that can be counted or looked for."
        return Answer("unclear", words, gave, has_something=False)
    known = [check for check in checks if check.holds is not None]
    worst = max(known, key=lambda check: (not check.holds, check.p), default=None)
    # Where one cannot be told and the others hold, nothing follows for the answer.
    if worst is None or (worst.holds and len(known) < len(checks)):
        return Answer("unclear", next(check.words for check in checks if check.holds is None), gave)
    label: Label = "supported" if worst.holds else "hallucinated"
    place, category = (worst.start, worst.end), "instruction_not_followed"
    return Answer(label, worst.words, gave, worst.p, *place, category=category)


def _given(given: Conditions) -> Iterator[ConstraintResult]:
    if given.least is not None or given.most is not None:
        length = Length(given.unit, given.least, given.most, given.is_about)
        yield check_length(given.text, length, given.language)
    if given.format:
        yield check_format(given.text, FormatConstraint(given.format, given.items))
    if given.answer_in:
        yield check_language(given.text, given.answer_in)
    asked = [Wording("has", (word,)) for word in given.must_have if word.strip()]
    asked += [Wording("lacks", (word,)) for word in given.must_lack if word.strip()]
    yield from (check_wording(given.text, one) for one in asked)


def _reads(statement: Statement | None, case: Case) -> Conditions | None:
    if statement is not None or not case.question.strip() or not case.response.strip():
        return None
    if not check_constraints(case.question, case.response, case.language):
        return None
    return Conditions(case.response, case.question, case.language)


TOOL = Tool(
    name="conditions",
    description=read_words("descriptions")["conditions"],
    takes=Conditions,
    work=_work,
    examples=read_examples("conditions", Conditions),
    reads=_reads,
)
