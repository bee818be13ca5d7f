"""Pairs constructed from public sentences by changing one thing and marking the changed words.

Human labels teach little about a single wrong digit or a swapped unit. Every change starts from a
claim that is known to be supported, so each wrong pair has a correct twin.
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
    AllowedClasses,
    LabelledPair,
    join_question,
)

TRAINING_DIR = Path(__file__).parent
OPPOSITE_WORDS: dict[str, dict[str, list[str]]] = json.loads(
    (TRAINING_DIR / "opposites.json").read_text()
)
TABLE_TEMPLATES: dict[str, dict[str, list[str]]] = json.loads(
    (TRAINING_DIR / "table_claims.json").read_text()
)
UNSPACED_LANGUAGES = ("zh", "ja", "th")
PARALLEL_SETS = frozenset({"rte3", "xnli"})
"""Sets that have the same pairs in several languages, under the same groups."""
NUMBER_PATTERN = regex.compile(r"(?<![\p{L}\p{N}])\p{Nd}+(?:[.,]\p{Nd}+)*(?![\p{L}\p{N}])")
NUMBER_PATTERN_UNSPACED = regex.compile(r"\p{Nd}+(?:[.,]\p{Nd}+)*")
NAME_PATTERN = regex.compile(
    r"(?<=[\p{Ll},;]\s)\p{Lu}[\p{L}\p{M}'’-]+(?:\s\p{Lu}[\p{L}\p{M}'’-]+)*"
)
LONG_WORD = regex.compile(r"[\p{L}\p{N}]{4,}")
UNIT_GROUPS = (
    ("duration-second", "duration-minute", "duration-hour", "duration-day", "duration-week",
     "duration-month", "duration-year"),
    ("length-millimeter", "length-centimeter", "length-meter", "length-kilometer", "length-mile"),
    ("mass-gram", "mass-kilogram", "mass-tonne", "mass-pound"),
    ("volume-liter", "volume-cubic-meter", "volume-milliliter"),
    ("area-hectare", "area-square-kilometer", "area-square-meter"),
)  # fmt: skip
SCALE_WORDS = (
    ("thousand", "million", "billion", "trillion"), ("Tausend", "Millionen", "Milliarden"),
    ("Mio.", "Mrd."), ("milliers", "millions", "milliards"), ("mil", "millones", "billones"),
    ("mila", "milioni", "miliardi"), ("tusen", "miljoner", "miljarder"),
    ("tuhatta", "miljoonaa", "miljardia"), ("тысяч", "миллионов", "миллиардов"),
    ("тыс.", "млн", "млрд"), ("bin", "milyon", "milyar"), ("万", "亿"), ("ألف", "مليون", "مليار"),
    ("हजार", "लाख", "करोड़"), ("euros", "dollars", "pounds"), ("Euro", "Dollar", "Franken"),
)  # fmt: skip
MAX_TRIES = 60
MAX_EVIDENCE_CHARS = 700


@dataclass(frozen=True)
class QuestionedParagraph:
    """A paragraph with questions and their accepted answers."""

    name: str
    language: str
    group: str
    context: str
    questions: tuple[tuple[str, tuple[str, ...]], ...]


@lru_cache(maxsize=100_000)
def split_sentences(text: str, language: str) -> tuple[str, ...]:
    """Return the text's sentences of 12 to 400 characters."""
    stripped = (sentence.strip() for sentence in sentencex.segment(language, text))
    return tuple(sentence for sentence in stripped if 12 <= len(sentence) <= 400)


@cache
def load_replacements(language: str) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return interchangeable words of a language: months, weekdays, units and scales."""
    rows: list[tuple[str, ...]] = list(SCALE_WORDS)
    try:
        locale = Locale.parse(language)
    except (UnknownLocaleError, ValueError):
        locale = Locale.parse("en")
    for names in (locale.months["format"]["wide"], locale.days["format"]["wide"]):
        rows.append(tuple(str(name) for name in names.values()))
    for group in UNIT_GROUPS:
        for amount in (1, 2, 5):  # singular and plural forms
            formatted = (format_unit(amount, unit, "long", locale=locale) for unit in group)
            units = (regex.sub(r"\p{Nd}+", "", phrase).strip() for phrase in formatted)
            rows.append(tuple(dict.fromkeys(unit for unit in units if len(unit) > 1)))
    return tuple(
        (word, tuple(other for other in row if other != word and word not in other))
        for row in rows
        for word in row
        if len(row) > 1
    )


def find_word(word: str, text: str, language: str) -> list[tuple[int, int]]:
    """Return `[start, end)` of each occurrence of the word as a whole word."""
    before = "" if language in UNSPACED_LANGUAGES else r"(?<![\p{L}\p{N}\p{M}])"
    after = "" if language in UNSPACED_LANGUAGES else r"(?![\p{L}\p{N}\p{M}])"
    return [m.span() for m in regex.finditer(before + regex.escape(word) + after, text)]


class PairMaker:
    """Constructs pairs; deterministic for a given seed, pairs and readings."""

    def __init__(
        self,
        pairs: Sequence[LabelledPair],
        readings: Sequence[QuestionedParagraph],
        seed: int,
        *,
        twins: float = 0.0,
    ) -> None:
        """`twins` is the share of changes for which the unchanged pair is returned instead."""
        self._random = random.Random(seed)
        self._twins, self._readings = twins, readings
        by_language: dict[str, list[LabelledPair]] = defaultdict(list)
        for pair in pairs:
            by_language[pair.language].append(pair)
        for r in readings:
            pair = LabelledPair(r.context, "", NEUTRAL, r.name, r.group, r.language)
            by_language[r.language].append(pair)
        self._by_language = {k: v for k, v in by_language.items() if len(v) >= 50}
        self._languages = list(self._by_language)
        # English has most of the pairs and most of the use; the others share two fifths
        rest = 1.0 / max(1, len(self._languages) - 1)
        self._shares = [1.5 if language == "en" else rest for language in self._languages]
        self._index = _RareWordIndex(pairs, self._random)
        by_meaning: dict[tuple[str, AllowedClasses], list[LabelledPair]] = defaultdict(list)
        for pair in pairs:
            if pair.name in PARALLEL_SETS:
                by_meaning[pair.group, pair.allowed].append(pair)
        self._parallel = [group for group in by_meaning.values() if len(group) > 1]
        self._names: dict[str, list[str]] = {}
        for language, group in self._by_language.items():
            sample = self._random.sample(group, min(len(group), 20_000))
            self._names[language] = [n for p in sample for n in NAME_PATTERN.findall(p.evidence)]
        changes = {
            "number": (3.0, self.other_number),
            "unit or month": (1.5, self.other_word),
            "name": (2.5, self.other_name),
            "opposite": (2.0, self.opposite),
            "denial": (1.0, self.denied),
            "roles": (1.0, self.roles_swapped),
        }
        self._kinds: dict[str, tuple[float, Callable[[], LabelledPair | None]]] = {
            **{name: (w, partial(self.changed, change)) for name, (w, change) in changes.items()},
            "half-true": (2.0, self.half_true),
            "copied": (2.5, self.copied),
            "among others": (2.0, self.among_others),
            "beside the point": (3.0, self.beside_the_point),
            "answer": (4.0 if readings else 0.0, self.answered),
            "table": (1.5, self.of_table),
            "across languages": (1.5 if self._parallel else 0.0, self.across_languages),
        }

    def make(self, count: int) -> Iterator[LabelledPair]:
        """Yield that many pairs, each kind in its share."""
        weights = [weight for weight, _ in self._kinds.values()]
        while count > 0:
            name = self._random.choices(list(self._kinds), weights)[0]
            construct = self._kinds[name][1]
            attempts = (construct() for _ in range(MAX_TRIES))
            pair = next((p for p in attempts if p is not None), None)
            if pair is not None and len(pair.claim) >= 4:
                count -= 1
                yield replace(pair, times=1.0, name=f"constructed {name}")

    def _choose_pair(self) -> LabelledPair:
        language = self._random.choices(self._languages, self._shares)[0]
        return self._random.choice(self._by_language[language])

    def _choose_true(self) -> LabelledPair | None:
        """Return a supported pair: one labelled by people, or a sentence of the evidence itself."""
        pair = self._choose_pair()
        if pair.allowed == SUPPORTED and pair.claim and self._random.random() < 0.6:
            return replace(pair, wrong=())
        choices = _first_sentences(pair)
        if not choices:
            return None
        return replace(pair, claim=self._random.choice(choices), allowed=SUPPORTED, wrong=())

    def changed(self, change: Callable[[LabelledPair], LabelledPair | None]) -> LabelledPair | None:
        """Return a true pair with one thing changed, sometimes with a second true sentence."""
        base = self._choose_true()
        pair = change(base) if base else None
        if base is None or pair is None or pair.claim == base.claim:
            return None
        if self._random.random() < self._twins:
            pair = base
        return self._add_sentence(pair) if self._random.random() < 0.25 else pair

    def _add_sentence(self, pair: LabelledPair) -> LabelledPair:
        """Add a true sentence of the same evidence before or after the claim."""
        choices = [s for s in _first_sentences(pair) if s not in pair.claim]
        if not choices or len(pair.claim) > 250:
            return pair
        return self._join(pair, self._random.choice(choices), ())

    def _join(
        self, pair: LabelledPair, other: str, wrong: tuple[tuple[int, int], ...]
    ) -> LabelledPair:
        """Join the claim and another sentence in either order, and move their marks."""
        claim_marks = pair.wrong or ()
        first, second = (pair.claim, other), (claim_marks, wrong)
        if self._random.random() < 0.5:
            first, second = (other, pair.claim), (wrong, claim_marks)
        begin = len(first[0]) + 1
        marks = (*second[0], *((start + begin, end + begin) for start, end in second[1]))
        return replace(pair, claim=f"{first[0]} {first[1]}", wrong=marks)

    def _replace_span(
        self, base: LabelledPair, start: int, end: int, new: str, allowed: AllowedClasses
    ) -> LabelledPair:
        claim = base.claim[:start] + new + base.claim[end:]
        return replace(base, claim=claim, allowed=allowed, wrong=((start, start + len(new)),))

    def other_number(self, base: LabelledPair) -> LabelledPair | None:
        """Replace a number that the evidence has by another, often one of the evidence."""
        pattern = NUMBER_PATTERN_UNSPACED if base.language in UNSPACED_LANGUAGES else NUMBER_PATTERN
        in_evidence = [m.group() for m in pattern.finditer(base.evidence)]
        matches = [m for m in pattern.finditer(base.claim) if m.group() in in_evidence]
        if not matches:
            return None
        match = self._random.choice(matches)
        new = self._change_number(match.group(), in_evidence)
        return self._replace_span(base, *match.span(), new, CONTRADICTED) if new else None

    def _change_number(self, old: str, in_evidence: Sequence[str]) -> str | None:
        others = [n for n in in_evidence if n != old and abs(len(n) - len(old)) <= 1]
        if others and self._random.random() < 0.5:
            return self._random.choice(others)
        digits = [i for i, char in enumerate(old) if char.isdigit()]
        place = self._random.choice(digits)
        zero = ord(old[place]) - int(old[place])
        choices = [chr(zero + d) for d in range(1 if place == 0 else 0, 10)]
        choices = [c for c in choices if c != old[place]]
        if len(old) > 3 and self._random.random() < 0.3:  # near misses: 1998 for 1997
            step = self._random.choice((-1, 1))
            digit = int(old[digits[-1]]) + step
            place, choices = digits[-1], [chr(zero + digit)] if 0 <= digit <= 9 else choices
        new = old[:place] + self._random.choice(choices) + old[place + 1 :]
        return None if new in in_evidence else new

    def other_word(self, base: LabelledPair) -> LabelledPair | None:
        """Replace a month, weekday, unit, scale or currency by another of its kind."""
        occurrences = [
            (place, others)
            for word, others in load_replacements(base.language)
            if word in base.claim and word in base.evidence and others
            for place in find_word(word, base.claim, base.language)
        ]
        if not occurrences:
            return None
        (start, end), others = self._random.choice(occurrences)
        return self._replace_span(base, start, end, self._random.choice(others), CONTRADICTED)

    def other_name(self, base: LabelledPair) -> LabelledPair | None:
        """Replace a name by another one of the evidence, or by one from elsewhere."""
        matches = [m for m in NAME_PATTERN.finditer(base.claim) if m.group() in base.evidence]
        if not matches:
            return None
        match = self._random.choice(matches)
        old = match.group()
        names = [n for n in NAME_PATTERN.findall(base.evidence) if n not in old and old not in n]
        if names and self._random.random() < 0.6:
            return self._replace_span(
                base, *match.span(), self._random.choice(names), NOT_SUPPORTED
            )
        strangers = self._names.get(base.language)
        stranger = self._random.choice(strangers) if strangers else old
        if stranger in old or old in stranger or stranger in base.evidence:
            return None
        return self._replace_span(base, *match.span(), stranger, NOT_SUPPORTED)

    def opposite(self, base: LabelledPair) -> LabelledPair | None:
        """Replace a word that the evidence has by its opposite."""
        return self._replace_by_table(base, "opposites")

    def denied(self, base: LabelledPair) -> LabelledPair | None:
        """Negate the claim, or remove its negation."""
        return self._replace_by_table(base, "denials")

    def _replace_by_table(self, base: LabelledPair, table: str) -> LabelledPair | None:
        occurrences = []
        for row in OPPOSITE_WORDS.get(base.language, {}).get(table, []):
            left, right = row.split("|")
            for old, new in ((left, right), (right, left)):
                if old in base.claim and (table == "denials" or old in base.evidence):
                    occurrences += [(p, new) for p in find_word(old, base.claim, base.language)]
        # of "is not" and "is" at the same place the longer one is meant
        occurrences = [
            item
            for item in occurrences
            if not any(_is_within(item[0], longer[0]) for longer in occurrences)
        ]
        if not occurrences:
            return None
        (start, end), new = self._random.choice(occurrences)
        if base.claim[start:end][0].isupper():
            new = new[0].upper() + new[1:]
        return self._replace_span(base, start, end, new, CONTRADICTED)

    def roles_swapped(self, base: LabelledPair) -> LabelledPair | None:
        """Swap two names; some relations are symmetric, hence only "not supported"."""
        names = [m for m in NAME_PATTERN.finditer(base.claim) if m.group() in base.evidence]
        opening = regex.match(r"\p{Lu}[\p{L}\p{M}'’-]+(?:\s\p{Lu}[\p{L}\p{M}'’-]+)*", base.claim)
        if opening and opening.group() in base.evidence:
            names.insert(0, opening)
        if len(names) < 2 or names[0].group() == names[1].group():
            return None
        if regex.search(r"\b(and|or|with|both|married|met|und|et|y|e|och|ja|и|ve)\b", base.claim):
            return None
        left, right = names[0], names[1]
        between = base.claim[left.end() : right.start()]
        head = base.claim[: left.start()] + right.group()
        claim = head + between + left.group() + base.claim[right.end() :]
        second = len(head) + len(between)
        marks = ((left.start(), len(head)), (second, second + len(left.group())))
        return replace(base, claim=claim, allowed=NOT_SUPPORTED, wrong=marks)

    def half_true(self) -> LabelledPair | None:
        """Join a true sentence with another true one, or with one from a related text."""
        base = self._choose_true()
        if base is None or len(base.claim) > 250:
            return None
        if self._random.random() < 0.35:
            return self._add_sentence(base)
        other = self._index.other(base)
        choices = _first_sentences(other) if other else ()
        if not choices:
            return None
        text = self._random.choice(choices)
        if len(text) > 250 or text in base.evidence:
            return None
        return self._join(replace(base, allowed=NOT_SUPPORTED), text, ((0, len(text)),))

    def copied(self) -> LabelledPair | None:
        """Use a sentence or clause of the evidence, sometimes removing it from the evidence."""
        pair = self._choose_pair()
        choices = _first_sentences(pair)
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

    def among_others(self) -> LabelledPair | None:
        """Place the evidence among sentences of other texts; the label stays."""
        pair = self._choose_pair()
        if not pair.claim or len(pair.evidence) > MAX_EVIDENCE_CHARS:
            return None
        parts: list[str] = []
        for _ in range(self._random.randint(1, 4)):
            other = self._index.other(pair) or self._random.choice(self._by_language[pair.language])
            if other.group != pair.group:
                parts += _first_sentences(other)[:2]
        if pair.allowed != SUPPORTED and not parts:
            return None
        parts.insert(self._random.randint(0, len(parts)), pair.evidence)
        wrong = () if pair.allowed == SUPPORTED else pair.wrong
        return replace(pair, evidence=" ".join(parts), wrong=wrong)

    def beside_the_point(self) -> LabelledPair | None:
        """Pair a claim, right or wrong, with another text that shares its rare words."""
        pair = self._choose_pair()
        parts = split_sentences(pair.evidence, pair.language) if not pair.claim else ()
        claim = pair.claim or self._random.choice(parts or [""])
        other = self._index.other(replace(pair, claim=claim))
        if other is None or not claim or other.group == pair.group:
            return None
        marks, evidence = ((0, len(claim)),), other.evidence
        return replace(pair, claim=claim, evidence=evidence, allowed=NEUTRAL, wrong=marks)

    def answered(self) -> LabelledPair | None:
        """Pair a question with its answer, or with another of its kind from the same text."""
        reading = self._random.choice(self._readings)
        question, answers = self._random.choice(reading.questions)
        right = self._random.choice(answers)
        evidence = reading.context
        if self._random.random() < 0.5:
            evidence = _cut_around(reading.context, right, reading.language, self._random)
        base = LabelledPair(
            evidence=evidence,
            claim="",
            allowed=SUPPORTED,
            name=reading.name,
            group=reading.group,
            language=reading.language,
            question=" ".join(question.split()),
        )
        if self._random.random() < 0.45:
            return replace(base, claim=join_question(question, right), wrong=())
        wrong = self._wrong_answer(reading, right, answers)
        if wrong is None:
            return None
        claim = join_question(question, wrong)
        base = replace(base, claim=claim, wrong=((len(claim) - len(wrong), len(claim)),))
        if evidence == reading.context and self._random.random() < 0.2:
            other = self._random.choice(self._readings)
            if other.language == reading.language and other.group != reading.group:
                return replace(base, evidence=other.context, allowed=NEUTRAL)
        return replace(base, allowed=NOT_SUPPORTED)

    def _wrong_answer(
        self, reading: QuestionedParagraph, right: str, answers: Sequence[str]
    ) -> str | None:
        """Return a wrong answer, number or name of the text that resembles the right one."""
        others = [a for _, accepted in reading.questions for a in accepted]
        others += [m.group() for m in NAME_PATTERN.finditer(reading.context)]
        pattern = (
            NUMBER_PATTERN_UNSPACED if reading.language in UNSPACED_LANGUAGES else NUMBER_PATTERN
        )
        has_digit = any(char.isdigit() for char in right)
        others = [o for o in others if any(char.isdigit() for char in o) == has_digit]
        match = pattern.search(right) if has_digit else None
        if match:
            numbers = [m.group() for m in pattern.finditer(reading.context)]
            if new := self._change_number(match.group(), numbers):
                others += [right[: match.start()] + new + right[match.end() :]] * 2
        known = [answer.casefold() for answer in answers]
        fitting = [
            o
            for o in others
            if not any(o.casefold() in k or k in o.casefold() for k in known)
            and len(o) < 4 * len(right) + 10
        ]
        return " ".join(self._random.choice(fitting).split()) if fitting else None

    def across_languages(self) -> LabelledPair | None:
        """Pair evidence in one language with the claim in another."""
        one, other = self._random.sample(self._random.choice(self._parallel), 2)
        if self._random.random() < 0.5 and "en" not in (one.language, other.language):
            return None  # mostly one side is English
        wrong = () if other.allowed == SUPPORTED else None
        return replace(other, evidence=one.evidence, wrong=wrong)

    def of_table(self, language: str = "") -> LabelledPair | None:
        """Construct a claim about a table that is written row by row with its headers."""
        language = language or self._random.choice(list(TABLE_TEMPLATES))
        words, rng = TABLE_TEMPLATES[language], self._random
        years = sorted(rng.sample(range(1995, 2027), rng.randint(2, 4)), reverse=True)
        rows = rng.sample(words["rows"], rng.randint(2, 5))
        size = rng.choice((10, 100, 1000, 100_000))
        figures = {(r, y): _random_figure(rng, size) for r in rows for y in years}
        unit = rng.choice(words["units"])
        head = f" ({unit})" if unit else ""
        lines = [f"{r}{head}, " + "; ".join(f"{y}: {figures[r, y]}" for y in years) for r in rows]
        row = rng.choice(rows)
        early, late = sorted(rng.sample(years, 2))
        values = {
            "row": row, "u": unit, "c": str(late), "v": figures[row, late],
            "c1": str(early), "c2": str(late), "a": figures[row, early], "b": figures[row, late],
        }  # fmt: skip
        first, second = (_parse_figure(figures[row, year]) for year in (early, late))
        if first == second:
            return None
        kind = rng.choice(("value", "value", "change", "compare"))
        right, wrong = {
            "value": ("value", "value"),
            "change": ("rose", "fell") if second > first else ("fell", "rose"),
            "compare": ("more", "less") if first > second else ("less", "more"),
        }[kind]
        is_wrong = rng.random() < 0.5
        if is_wrong and (kind == "value" or (rng.random() < 0.4 and kind == "change")):
            key = "v" if kind == "value" else "b"
            others = [f for f in figures.values() if f != values[key]]
            old, values[key] = values[key], rng.choice(others)
            right, wrong = right, right
            if values[key] == old or (kind == "change" and _parse_figure(values[key]) == second):
                return None
        claim = rng.choice(words[wrong if is_wrong else right])
        text = " ".join(claim.format(**values).split()).replace(" .", ".").replace(" 。", "。")
        evidence = " ".join(f"{line}." for line in lines)
        base = LabelledPair(
            evidence, text, SUPPORTED, "constructed", f"table {text}", language, wrong=()
        )
        start = text.find(values["v"]) if kind == "value" else -1
        # None if the direction of the change is wrong
        marks = ((start, start + len(values["v"])),) if start >= 0 else None
        return replace(base, allowed=CONTRADICTED, wrong=marks) if is_wrong else base


class _RareWordIndex:
    """Index that finds another pair whose evidence shares the rarest words of a claim."""

    MOST = 200

    def __init__(self, pairs: Sequence[LabelledPair], chance: random.Random) -> None:
        self._random = chance
        self._count: Counter[str] = Counter()
        self._by_word: dict[str, list[LabelledPair]] = defaultdict(list)
        for pair in pairs:
            for word in set(LONG_WORD.findall(pair.evidence)):
                self._count[word] += 1
                if len(self._by_word[word]) < self.MOST:
                    self._by_word[word].append(pair)

    def other(self, pair: LabelledPair) -> LabelledPair | None:
        """Return a pair of another group that shares one of the claim's rarest words, if any."""
        words = {w for w in LONG_WORD.findall(pair.claim or pair.evidence) if self._count[w] > 3}
        rarest = sorted(words, key=lambda w: (self._count[w], w))[:4]
        pool = [p for w in rarest for p in self._by_word[w]]
        pool = [p for p in pool if p.group != pair.group and p.evidence != pair.evidence]
        return self._random.choice(pool) if pool else None


def _first_sentences(pair: LabelledPair) -> tuple[str, ...]:
    """Return the sentences at the evidence's beginning."""
    return split_sentences(pair.evidence[:MAX_EVIDENCE_CHARS], pair.language)


def _is_within(place: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return True if `other` is longer and contains the place."""
    inside = other[0] <= place[0] and place[1] <= other[1]
    return inside and other[1] - other[0] > place[1] - place[0]


def _cut_around(context: str, answer: str, language: str, chance: random.Random) -> str:
    parts = split_sentences(context, language)
    index = next((i for i, part in enumerate(parts) if answer in part), None)
    if index is None:
        return context
    return " ".join(parts[max(0, index - chance.randint(0, 2)) : index + 1 + chance.randint(0, 2)])


def _random_figure(chance: random.Random, size: int) -> str:
    value = chance.uniform(size / 10, size)
    if size <= 100 or chance.random() < 0.3:
        return f"{value:.1f}"
    return f"{round(value):,}" if chance.random() < 0.6 else str(round(value))


def _parse_figure(figure: str) -> float:
    return float(figure.replace(",", ""))
