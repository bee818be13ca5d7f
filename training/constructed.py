"""Pairs constructed from public sentences: one thing changed, and the changed words marked.

What people labelled teaches little about a single wrong digit or a swapped unit. Every change is
made from a claim that is known to be supported, so each wrong pair has its right twin.
"""

from __future__ import annotations

import json
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache, partial
from pathlib import Path

import regex
import sentencex
from babel import Locale, UnknownLocaleError
from babel.units import format_unit

from training.pairs import (
    CONTRADICTED,
    NEUTRAL,
    NOT_SUPPORTED,
    SUPPORTED,
    Allowed,
    Pair,
    claim_with_question,
)

HERE = Path(__file__).parent
OPPOSITES: dict[str, dict[str, list[str]]] = json.loads((HERE / "opposites.json").read_text())
TABLES: dict[str, dict[str, list[str]]] = json.loads((HERE / "table_claims.json").read_text())
UNSPACED = ("zh", "ja", "th")
PARALLEL = frozenset({"rte3", "xnli"})
"""Sets that hold the same pairs in several languages, under the same groups."""
NUMBER = regex.compile(r"(?<![\p{L}\p{N}])\p{Nd}+(?:[.,]\p{Nd}+)*(?![\p{L}\p{N}])")
NUMBER_UNSPACED = regex.compile(r"\p{Nd}+(?:[.,]\p{Nd}+)*")
NAME = regex.compile(r"(?<=[\p{Ll},;]\s)\p{Lu}[\p{L}\p{M}'’-]+(?:\s\p{Lu}[\p{L}\p{M}'’-]+)*")
WORD = regex.compile(r"[\p{L}\p{N}]{4,}")
UNIT_GROUPS = (
    ("duration-second", "duration-minute", "duration-hour", "duration-day", "duration-week",
     "duration-month", "duration-year"),
    ("length-millimeter", "length-centimeter", "length-meter", "length-kilometer", "length-mile"),
    ("mass-gram", "mass-kilogram", "mass-tonne", "mass-pound"),
    ("volume-liter", "volume-cubic-meter", "volume-milliliter"),
    ("area-hectare", "area-square-kilometer", "area-square-meter"),
)  # fmt: skip
SCALES = (
    ("thousand", "million", "billion", "trillion"), ("Tausend", "Millionen", "Milliarden"),
    ("Mio.", "Mrd."), ("milliers", "millions", "milliards"), ("mil", "millones", "billones"),
    ("mila", "milioni", "miliardi"), ("tusen", "miljoner", "miljarder"),
    ("tuhatta", "miljoonaa", "miljardia"), ("тысяч", "миллионов", "миллиардов"),
    ("тыс.", "млн", "млрд"), ("bin", "milyon", "milyar"), ("万", "亿"), ("ألف", "مليون", "مليار"),
    ("हजार", "लाख", "करोड़"), ("euros", "dollars", "pounds"), ("Euro", "Dollar", "Franken"),
)  # fmt: skip
TRIES = 60
MOST_CHARACTERS = 700


@dataclass(frozen=True)
class Reading:
    """A paragraph with questions and their accepted answers."""

    name: str
    language: str
    group: str
    context: str
    questions: tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=100_000)
def sentences_of(text: str, language: str) -> tuple[str, ...]:
    """The text's sentences; only those of some length."""
    found = (sentence.strip() for sentence in sentencex.segment(language, text))
    return tuple(sentence for sentence in found if 12 <= len(sentence) <= 400)


@cache
def replacements(language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Words of which one may stand for another: months, weekdays, units, scales; by language."""
    rows: list[tuple[str, ...]] = list(SCALES)
    try:
        locale = Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        locale = Locale.parse("en")
    for names in (locale.months["format"]["wide"], locale.days["format"]["wide"]):
        rows.append(tuple(str(name) for name in names.values()))
    for group in UNIT_GROUPS:
        for amount in (1, 2, 5):  # the forms of the plural
            told = (format_unit(amount, unit, "long", locale=locale) for unit in group)
            units = (regex.sub(r"\p{Nd}+", "", words).strip() for words in told)
            rows.append(tuple(dict.fromkeys(unit for unit in units if len(unit) > 1)))
    return tuple(
        (word, tuple(other for other in row if other != word and word not in other))
        for row in rows
        for word in row
        if len(row) > 1
    )


def places_of(word: str, text: str, language: str) -> list[tuple[int, int]]:
    """Where the word stands in the text as a word."""
    edge = "" if language in UNSPACED else r"(?<![\p{L}\p{N}\p{M}])"
    after = "" if language in UNSPACED else r"(?![\p{L}\p{N}\p{M}])"
    return [m.span() for m in regex.finditer(edge + regex.escape(word) + after, text)]


class PairMaker:
    """Makes pairs; deterministic for one seed and the same pairs and readings."""

    def __init__(
        self, pairs: Sequence[Pair], readings: Sequence[Reading], seed: int, *, twins: float = 0.0
    ) -> None:
        """`twins`: how often the true pair is made in the place of the changed one."""
        self._random = random.Random(seed)
        self._twins, self._readings = twins, readings
        by_language: dict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            by_language[pair.language].append(pair)
        for r in readings:
            own = Pair(r.context, "", NEUTRAL, r.name, r.group, r.language)
            by_language[r.language].append(own)
        self._by_language = {k: v for k, v in by_language.items() if len(v) >= 50}
        self._languages = list(self._by_language)
        # English has most of the pairs and most of the use; the others share two fifths
        self._shares = [1.5 if language == "en" else 1.0 / max(1, len(self._languages) - 1)
                        for language in self._languages]  # fmt: skip
        self._near = _Near(pairs, self._random)
        by_meaning: dict[tuple[str, Allowed], list[Pair]] = defaultdict(list)
        for pair in pairs:
            if pair.name in PARALLEL:
                by_meaning[pair.group, pair.allowed].append(pair)
        self._parallel = [own for own in by_meaning.values() if len(own) > 1]
        self._names = {
            language: [n for p in self._random.sample(own, min(len(own), 20_000))
                       for n in NAME.findall(p.evidence)]
            for language, own in self._by_language.items()
        }  # fmt: skip
        changes = {
            "number": (3.0, self.other_number), "unit or month": (1.5, self.other_word),
            "name": (2.5, self.other_name), "opposite": (2.0, self.opposite),
            "denial": (1.0, self.denied), "roles": (1.0, self.roles_swapped),
        }  # fmt: skip
        self._ways: dict[str, tuple[float, Callable[[], Pair | None]]] = {
            **{name: (w, partial(self.changed, change)) for name, (w, change) in changes.items()},
            "half-true": (2.0, self.half_true),
            "copied": (2.5, self.copied),
            "among others": (2.0, self.among_others),
            "beside the point": (3.0, self.beside_the_point),
            "answer": (4.0 if readings else 0.0, self.answered),
            "table": (1.5, self.of_table),
            "across languages": (1.5 if self._parallel else 0.0, self.across_languages),
        }

    def make(self, count: int) -> Iterator[Pair]:
        """Make that many pairs, each way in its share."""
        weights = [weight for weight, _ in self._ways.values()]
        while count > 0:
            name = self._random.choices(list(self._ways), weights)[0]
            way = self._ways[name][1]
            found = next((p for p in (way() for _ in range(TRIES)) if p is not None), None)
            if found is not None and len(found.claim) >= 4:
                count -= 1
                yield replace(found, times=1.0, name=f"constructed {name}")

    def _any(self) -> Pair:
        language = self._random.choices(self._languages, self._shares)[0]
        return self._random.choice(self._by_language[language])

    def _true(self) -> Pair | None:
        """A supported pair: one that people labelled, or a sentence of the evidence itself."""
        pair = self._any()
        if pair.allowed == SUPPORTED and pair.claim and self._random.random() < 0.6:
            return replace(pair, wrong=())
        choices = _opening(pair)
        if not choices:
            return None
        return replace(pair, claim=self._random.choice(choices), allowed=SUPPORTED, wrong=())

    def changed(self, change: Callable[[Pair], Pair | None]) -> Pair | None:
        """A true pair with one thing changed; now and then with a second true sentence beside."""
        base = self._true()
        made = change(base) if base else None
        if base is None or made is None or made.claim == base.claim:
            return None
        if self._random.random() < self._twins:
            made = base
        return self._beside(made) if self._random.random() < 0.25 else made

    def _beside(self, pair: Pair) -> Pair:
        """The claim with a true sentence of the same evidence before or after it."""
        choices = [s for s in _opening(pair) if s not in pair.claim]
        if not choices or len(pair.claim) > 250:
            return pair
        return self._joined(pair, self._random.choice(choices), ())

    def _joined(self, pair: Pair, other: str, wrong: tuple[tuple[int, int], ...]) -> Pair:
        """The claim and another sentence in either order; marks move along."""
        own = pair.wrong or ()
        first, second = (pair.claim, other), (own, wrong)
        if self._random.random() < 0.5:
            first, second = (other, pair.claim), (wrong, own)
        begin = len(first[0]) + 1
        marks = (*second[0], *((start + begin, end + begin) for start, end in second[1]))
        return replace(pair, claim=f"{first[0]} {first[1]}", wrong=marks)

    def _with(self, base: Pair, start: int, end: int, new: str, allowed: Allowed) -> Pair:
        claim = base.claim[:start] + new + base.claim[end:]
        return replace(base, claim=claim, allowed=allowed, wrong=((start, start + len(new)),))

    def other_number(self, base: Pair) -> Pair | None:
        """A number that stands in the evidence becomes another, often one of the evidence."""
        pattern = NUMBER_UNSPACED if base.language in UNSPACED else NUMBER
        inside = [m.group() for m in pattern.finditer(base.evidence)]
        found = [m for m in pattern.finditer(base.claim) if m.group() in inside]
        if not found:
            return None
        match = self._random.choice(found)
        new = self._number(match.group(), inside)
        return self._with(base, *match.span(), new, CONTRADICTED) if new else None

    def _number(self, old: str, inside: Sequence[str]) -> str | None:
        others = [n for n in inside if n != old and abs(len(n) - len(old)) <= 1]
        if others and self._random.random() < 0.5:
            return self._random.choice(others)
        digits = [i for i, char in enumerate(old) if char.isdigit()]
        place = self._random.choice(digits)
        zero = ord(old[place]) - int(old[place])
        choices = [chr(zero + d) for d in range(1 if place == 0 else 0, 10)]
        choices = [c for c in choices if c != old[place]]
        if len(old) > 3 and self._random.random() < 0.3:  # near misses: 1998 for 1997
            step = self._random.choice((-1, 1))
            near = int(old[digits[-1]]) + step
            place, choices = digits[-1], [chr(zero + near)] if 0 <= near <= 9 else choices
        new = old[:place] + self._random.choice(choices) + old[place + 1 :]
        return None if new in inside else new

    def other_word(self, base: Pair) -> Pair | None:
        """A month, weekday, unit, scale or currency becomes another of its kind."""
        found = [
            (place, others)
            for word, others in replacements(base.language)
            if word in base.claim and word in base.evidence and others
            for place in places_of(word, base.claim, base.language)
        ]
        if not found:
            return None
        (start, end), others = self._random.choice(found)
        return self._with(base, start, end, self._random.choice(others), CONTRADICTED)

    def other_name(self, base: Pair) -> Pair | None:
        """A name becomes another one of the evidence, or a stranger."""
        found = [m for m in NAME.finditer(base.claim) if m.group() in base.evidence]
        if not found:
            return None
        match = self._random.choice(found)
        old = match.group()
        near = [n for n in NAME.findall(base.evidence) if n not in old and old not in n]
        if near and self._random.random() < 0.6:
            return self._with(base, *match.span(), self._random.choice(near), NOT_SUPPORTED)
        strangers = self._names.get(base.language)
        stranger = self._random.choice(strangers) if strangers else old
        if stranger in old or old in stranger or stranger in base.evidence:
            return None
        return self._with(base, *match.span(), stranger, NOT_SUPPORTED)

    def opposite(self, base: Pair) -> Pair | None:
        """A word that also stands in the evidence becomes its opposite."""
        return self._table(base, "opposites")

    def denied(self, base: Pair) -> Pair | None:
        """What is said is denied, or what is denied is said."""
        return self._table(base, "denials")

    def _table(self, base: Pair, table: str) -> Pair | None:
        found = []
        for row in OPPOSITES.get(base.language, {}).get(table, []):
            one, other = row.split("|")
            for old, new in ((one, other), (other, one)):
                if old in base.claim and (table == "denials" or old in base.evidence):
                    found += [(p, new) for p in places_of(old, base.claim, base.language)]
        # of "is not" and "is" at one place the longer is meant
        found = [f for f in found if not any(_within(f[0], g[0]) for g in found)]
        if not found:
            return None
        (start, end), new = self._random.choice(found)
        if base.claim[start:end][0].isupper():
            new = new[0].upper() + new[1:]
        return self._with(base, start, end, new, CONTRADICTED)

    def roles_swapped(self, base: Pair) -> Pair | None:
        """Two names change places; some relations run both ways, hence only "not supported"."""
        found = [m for m in NAME.finditer(base.claim) if m.group() in base.evidence]
        opening = regex.match(r"\p{Lu}[\p{L}\p{M}'’-]+(?:\s\p{Lu}[\p{L}\p{M}'’-]+)*", base.claim)
        if opening and opening.group() in base.evidence:
            found.insert(0, opening)
        if len(found) < 2 or found[0].group() == found[1].group():
            return None
        if regex.search(r"\b(and|or|with|both|married|met|und|et|y|e|och|ja|и|ve)\b", base.claim):
            return None
        one, two = found[0], found[1]
        between = base.claim[one.end() : two.start()]
        head = base.claim[: one.start()] + two.group()
        claim = head + between + one.group() + base.claim[two.end() :]
        second = len(head) + len(between)
        marks = ((one.start(), len(head)), (second, second + len(one.group())))
        return replace(base, claim=claim, allowed=NOT_SUPPORTED, wrong=marks)

    def half_true(self) -> Pair | None:
        """A true sentence with one that is true, changed, or from another text of the topic."""
        base = self._true()
        if base is None or len(base.claim) > 250:
            return None
        if self._random.random() < 0.35:
            return self._beside(base)
        other = self._near.other(base)
        choices = _opening(other) if other else ()
        if not choices:
            return None
        text = self._random.choice(choices)
        if len(text) > 250 or text in base.evidence:
            return None
        return self._joined(replace(base, allowed=NOT_SUPPORTED), text, ((0, len(text)),))

    def copied(self) -> Pair | None:
        """A sentence or clause of the evidence; or one that was taken out of it."""
        pair = self._any()
        choices = _opening(pair)
        if len(choices) < 2:
            return None
        text = self._random.choice(choices)
        clauses = [c.strip() for c in regex.split(r"[,;，；،]\s*", text)]
        if len(clauses) > 1 and self._random.random() < 0.3:
            text = max(clauses, key=len)
        if self._random.random() < 0.4:
            rest = " ".join(choice for choice in choices if text not in choice)
            marks = ((0, len(text)),)
            return replace(pair, evidence=rest, claim=text, allowed=NOT_SUPPORTED, wrong=marks)
        return replace(pair, claim=text, allowed=SUPPORTED, wrong=())

    def among_others(self) -> Pair | None:
        """The evidence among sentences of other texts: the label stays."""
        pair = self._any()
        if not pair.claim or len(pair.evidence) > MOST_CHARACTERS:
            return None
        parts: list[str] = []
        for _ in range(self._random.randint(1, 4)):
            other = self._near.other(pair) or self._random.choice(self._by_language[pair.language])
            if other.group != pair.group:
                parts += _opening(other)[:2]
        if pair.allowed != SUPPORTED and not parts:
            return None
        parts.insert(self._random.randint(0, len(parts)), pair.evidence)
        wrong = () if pair.allowed == SUPPORTED else pair.wrong
        return replace(pair, evidence=" ".join(parts), wrong=wrong)

    def beside_the_point(self) -> Pair | None:
        """A claim, right or wrong, over another text that shares its rare words."""
        pair = self._any()
        parts = sentences_of(pair.evidence, pair.language) if not pair.claim else ()
        claim = pair.claim or self._random.choice(parts or [""])
        other = self._near.other(replace(pair, claim=claim))
        if other is None or not claim or other.group == pair.group:
            return None
        marks, evidence = ((0, len(claim)),), other.evidence
        return replace(pair, claim=claim, evidence=evidence, allowed=NEUTRAL, wrong=marks)

    def answered(self) -> Pair | None:
        """A question with its answer, or with another answer of its kind from the same text."""
        reading = self._random.choice(self._readings)
        question, answers = self._random.choice(reading.questions)
        right = self._random.choice(answers)
        evidence = reading.context
        if self._random.random() < 0.5:
            evidence = _around(reading.context, right, reading.language, self._random)
        base = Pair(
            evidence, "", SUPPORTED, reading.name, reading.group, reading.language,
            question=" ".join(question.split()),
        )  # fmt: skip
        if self._random.random() < 0.45:
            return replace(base, claim=claim_with_question(question, right), wrong=())
        wrong = self._wrong_answer(reading, right, answers)
        if wrong is None:
            return None
        claim = claim_with_question(question, wrong)
        base = replace(base, claim=claim, wrong=((len(claim) - len(wrong), len(claim)),))
        if evidence == reading.context and self._random.random() < 0.2:
            other = self._random.choice(self._readings)
            if other.language == reading.language and other.group != reading.group:
                return replace(base, evidence=other.context, allowed=NEUTRAL)
        return replace(base, allowed=NOT_SUPPORTED)

    def _wrong_answer(self, reading: Reading, right: str, answers: Sequence[str]) -> str | None:
        """Another answer, number or name of the same text that looks like the right one."""
        others = [a for _, given in reading.questions for a in given]
        others += [m.group() for m in NAME.finditer(reading.context)]
        pattern = NUMBER_UNSPACED if reading.language in UNSPACED else NUMBER
        has_digit = any(char.isdigit() for char in right)
        others = [o for o in others if any(char.isdigit() for char in o) == has_digit]
        match = pattern.search(right) if has_digit else None
        if match:
            inside = [m.group() for m in pattern.finditer(reading.context)]
            if new := self._number(match.group(), inside):
                others += [right[: match.start()] + new + right[match.end() :]] * 2
        known = [answer.casefold() for answer in answers]
        fitting = [
            o for o in others
            if not any(o.casefold() in k or k in o.casefold() for k in known)
            and len(o) < 4 * len(right) + 10
        ]  # fmt: skip
        return " ".join(self._random.choice(fitting).split()) if fitting else None

    def across_languages(self) -> Pair | None:
        """Evidence in one language and the claim in another."""
        one, other = self._random.sample(self._random.choice(self._parallel), 2)
        if self._random.random() < 0.5 and "en" not in (one.language, other.language):
            return None  # most often one side is English
        wrong = () if other.allowed == SUPPORTED else None
        return replace(other, evidence=one.evidence, wrong=wrong)

    def of_table(self, language: str = "") -> Pair | None:
        """A claim about a table that is written row by row with its headers."""
        language = language or self._random.choice(list(TABLES))
        words, chance = TABLES[language], self._random
        years = sorted(chance.sample(range(1995, 2027), chance.randint(2, 4)), reverse=True)
        rows = chance.sample(words["rows"], chance.randint(2, 5))
        size = chance.choice((10, 100, 1000, 100_000))
        figures = {(r, y): _figure(chance, size) for r in rows for y in years}
        unit = chance.choice(words["units"])
        head = f" ({unit})" if unit else ""
        lines = [f"{r}{head}, " + "; ".join(f"{y}: {figures[r, y]}" for y in years) for r in rows]
        row = chance.choice(rows)
        one, two = sorted(chance.sample(years, 2))
        values = {"row": row, "u": unit, "c": str(two), "v": figures[row, two], "c1": str(one),
                  "c2": str(two), "a": figures[row, one], "b": figures[row, two]}  # fmt: skip
        first, second = (_number_of(figures[row, year]) for year in (one, two))
        if first == second:
            return None
        kind = chance.choice(("value", "value", "change", "compare"))
        right, wrong = {
            "value": ("value", "value"),
            "change": ("rose", "fell") if second > first else ("fell", "rose"),
            "compare": ("more", "less") if first > second else ("less", "more"),
        }[kind]
        is_wrong = chance.random() < 0.5
        if is_wrong and (kind == "value" or (chance.random() < 0.4 and kind == "change")):
            key = "v" if kind == "value" else "b"
            others = [f for f in figures.values() if f != values[key]]
            old, values[key] = values[key], chance.choice(others)
            right, wrong = right, right
            if values[key] == old or (kind == "change" and _number_of(values[key]) == second):
                return None
        claim = chance.choice(words[wrong if is_wrong else right])
        text = " ".join(claim.format(**values).split()).replace(" .", ".").replace(" 。", "。")
        evidence = " ".join(f"{line}." for line in lines)
        base = Pair(evidence, text, SUPPORTED, "constructed", f"table {text}", language, wrong=())
        at = text.find(values["v"]) if kind == "value" else -1
        # None where the direction is what is wrong
        marks = ((at, at + len(values["v"])),) if at >= 0 else None
        return replace(base, allowed=CONTRADICTED, wrong=marks) if is_wrong else base


class _Near:
    """Finds another pair whose evidence shares the rarest words of a claim."""

    MOST = 200

    def __init__(self, pairs: Sequence[Pair], chance: random.Random) -> None:
        self._random = chance
        self._count: Counter[str] = Counter()
        self._with: dict[str, list[Pair]] = defaultdict(list)
        for pair in pairs:
            for word in set(WORD.findall(pair.evidence)):
                self._count[word] += 1
                if len(self._with[word]) < self.MOST:
                    self._with[word].append(pair)

    def other(self, pair: Pair) -> Pair | None:
        """A pair of another group that shares one of the claim's rarest words."""
        words = {w for w in WORD.findall(pair.claim or pair.evidence) if self._count[w] > 3}
        rarest = sorted(words, key=lambda w: (self._count[w], w))[:4]
        pool = [p for w in rarest for p in self._with[w]]
        pool = [p for p in pool if p.group != pair.group and p.evidence != pair.evidence]
        return self._random.choice(pool) if pool else None


def _opening(pair: Pair) -> tuple[str, ...]:
    """The sentences of the evidence's beginning."""
    return sentences_of(pair.evidence[:MOST_CHARACTERS], pair.language)


def _within(place: tuple[int, int], other: tuple[int, int]) -> bool:
    """True where `other` is longer and holds the place."""
    inside = other[0] <= place[0] and place[1] <= other[1]
    return inside and other[1] - other[0] > place[1] - place[0]


def _around(context: str, answer: str, language: str, chance: random.Random) -> str:
    parts = sentences_of(context, language)
    at = next((i for i, part in enumerate(parts) if answer in part), None)
    if at is None:
        return context
    return " ".join(parts[max(0, at - chance.randint(0, 2)) : at + 1 + chance.randint(0, 2)])


def _figure(chance: random.Random, size: int) -> str:
    value = chance.uniform(size / 10, size)
    if size <= 100 or chance.random() < 0.3:
        return f"{value:.1f}"
    return f"{round(value):,}" if chance.random() < 0.6 else str(round(value))


def _number_of(figure: str) -> float:
    return float(figure.replace(",", ""))
