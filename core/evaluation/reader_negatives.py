"""Hard cases made from labelled pairs: one value, name or word off, beside the point, half true.

What people labelled teaches little about a single wrong digit or about a passage that is on the
topic and still says nothing; both are what a checker meets all day.
"""

from __future__ import annotations

import itertools
import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from core.builtin.statement_text import statement_text
from core.evaluation.reader_near import Near
from core.evaluation.reader_pairs import (
    CONTRADICTED,
    NOT_ENOUGH,
    NOT_SUPPORTED,
    SUPPORTED,
    Pair,
    joined,
)
from core.evaluation.reader_words import (
    BE,
    BOUND,
    BOUND_OF,
    NAME,
    NUMBER,
    OPENING,
    OPPOSITES,
    PRONOUN,
    ROW_OF,
    ROW_WORD,
    WORD,
    sentences,
)

TRIES = 200
SHORTEST = 4  # characters of a statement
READ = 900  # characters of the evidence that stay within the reader's 256 tokens
LONGEST_EVIDENCE = 650  # characters; with a claim it stays within the reader's 256 tokens


class Maker:
    """Makes hard cases; deterministic for one seed and one list of pairs."""

    def __init__(self, pairs: Sequence[Pair], seed: int, near: Near | None = None) -> None:
        self._random = random.Random(seed)
        self._pairs = pairs
        self._near = near
        self._shares = list(itertools.accumulate(pair.times for pair in pairs))
        self._names = [n for p in pairs for n in NAME.findall(p.evidence)][:200_000]
        self._sentences = [s for p in pairs for s in sentences(p.evidence)]
        self._by_group: dict[tuple[str, str], list[Pair]] = defaultdict(list)
        for pair in pairs:
            self._by_group[pair.name, pair.evidence].append(pair)
        self._ways: tuple[tuple[float, Callable[[Pair], Pair | None]], ...] = (
            (3.0, self.other_value),
            (3.0, self.other_name),
            (1.5, self.other_of_row),
            (1.5, self.opposite),
            (1.5, self.denied),
            (1.0, self.swapped),
            (1.0, self.beside_the_point),
            (4.0 if near else 0.0, self.retrieved),
            (1.5, self.half_true),
            (1.5, self.among_others),
            (4.0, self.copied),
            (1.0, self.resolved),
            (3.0, self.asked),
        )

        self._changes = (self.other_value, self.other_name, self.other_of_row, self.opposite)

    def made(self, count: int) -> Iterator[Pair]:
        """That many cases, each way in its share."""
        weights = [weight for weight, _ in self._ways]
        ways = [way for _, way in self._ways]
        while count > 0:
            way = self._random.choices(ways, weights)[0]
            found = self._tried(way)
            if found is not None:
                count -= 1
                yield replace(found, times=1.0, name=f"made:{way.__name__}")

    def _tried(self, way: Callable[[Pair], Pair | None]) -> Pair | None:
        """What one way makes of the first pair that lends itself to it; None where few do."""
        for pair in self._random.choices(self._pairs, cum_weights=self._shares, k=TRIES):
            found = way(pair)
            if found is not None and len(found.statement) >= SHORTEST:
                return found
        return None

    def other_value(self, pair: Pair) -> Pair | None:
        """A number of a supported statement becomes another, best one of the evidence."""
        base = self._base(pair)
        if base is None:
            return None
        found = [match.span() for match in NUMBER.finditer(base.statement)]
        if not found:
            return None
        start, end = self._random.choice(found)
        old = base.statement[start:end]
        return self._with(base, start, end, self._number(old, base.evidence))

    def other_of_row(self, pair: Pair) -> Pair | None:
        """A weekday, month, colour, number word or bound becomes another of its row."""
        base = self._base(pair)
        if base is None:
            return None
        found = [m for m in ROW_WORD.finditer(base.statement) if m.group() in base.evidence]
        if found:
            match = self._random.choice(found)
            others = [word for word in ROW_OF[match.group()] if word not in base.evidence]
            if others:
                return self._with(base, match.start(), match.end(), self._random.choice(others))
        bound = BOUND.search(base.statement)
        if bound is None:
            return None
        new = self._random.choice(BOUND_OF[bound.group()])
        return replace(self._with(base, *bound.span(), new), allowed=NOT_SUPPORTED)

    def _number(self, old: str, evidence: str) -> str:
        others = [n for n in NUMBER.findall(evidence) if n != old and len(n) == len(old)]
        if others and self._random.random() < 0.6:
            return str(self._random.choice(others))
        digits = [i for i, char in enumerate(old) if char.isdigit()]
        place = self._random.choice(digits)
        choices = "123456789" if place == 0 else "0123456789"
        return old[:place] + self._random.choice(choices.replace(old[place], "")) + old[place + 1 :]

    def other_name(self, pair: Pair) -> Pair | None:
        """A name of a supported statement becomes another one of the evidence, or a stranger."""
        base = self._base(pair)
        if base is None:
            return None
        found = [m for m in NAME.finditer(base.statement) if m.group() in base.evidence]
        if not found:
            return None
        match = self._random.choice(found)
        old = match.group()
        near = [n for n in NAME.findall(base.evidence) if n not in old and old not in n]
        if near and self._random.random() < 0.7:
            return self._with(base, match.start(), match.end(), self._random.choice(near))
        stranger = self._random.choice(self._names)
        if stranger in old or old in stranger:
            return None
        made = self._with(base, match.start(), match.end(), stranger)
        return replace(made, allowed=NOT_SUPPORTED)

    def opposite(self, pair: Pair) -> Pair | None:
        """A word of a supported statement becomes its opposite or another of its kind."""
        base = self._base(pair)
        if base is None:
            return None
        found = [m for m in WORD.finditer(base.statement) if m.group() in OPPOSITES]
        if not found:
            return None
        match = self._random.choice(found)
        new = OPPOSITES[match.group()]
        if match.group() not in base.evidence:
            return None
        return self._with(base, match.start(), match.end(), new)

    def denied(self, pair: Pair) -> Pair | None:
        """A supported statement is denied."""
        base = self._base(pair)
        match = BE.search(base.statement) if base else None
        if base is None or match is None:
            return None
        return self._with(base, match.start(), match.end(), f"{match.group()} not")

    def swapped(self, pair: Pair) -> Pair | None:
        """Two names of a supported statement change places; some relations run both ways."""
        base = self._base(pair)
        if base is None:
            return None
        found = [m for m in NAME.finditer(base.statement) if m.group() in base.evidence]
        if len(found) < 2 or re.search(r"\b(and|or|with|both|married|met)\b", base.statement):
            return None
        one, other = found[0], found[1]
        if one.group() == other.group():
            return None
        before, between = base.statement[: one.start()], base.statement[one.end() : other.start()]
        text = before + other.group() + between + one.group() + base.statement[other.end() :]
        return replace(base, statement=text, allowed=NOT_SUPPORTED)

    def beside_the_point(self, pair: Pair) -> Pair | None:
        """A statement over evidence of another row that shares words with it."""
        words = {w for w in WORD.findall(pair.statement) if len(w) > 4}
        for _ in range(12):
            other = self._random.choice(self._pairs)
            if other.group == pair.group or other.evidence == pair.evidence:
                continue
            shared = sum(1 for w in words if w in other.evidence)
            if shared >= 1 or self._random.random() < 0.15:
                return replace(pair, evidence=other.evidence, allowed=NOT_ENOUGH)
        return None

    def retrieved(self, pair: Pair) -> Pair | None:
        """A statement, right or wrong, over what a search finds among other rows' evidence."""
        evidence = self._near.evidence(pair) if self._near else None
        return replace(pair, evidence=evidence, allowed=NOT_ENOUGH) if evidence else None

    def half_true(self, pair: Pair) -> Pair | None:
        """Two statements over one evidence, joined; one bad half makes the whole bad."""
        siblings = [p for p in self._by_group[pair.name, pair.evidence] if p is not pair]
        if siblings:
            other = self._random.choice(siblings)
        else:
            choices = sentences(pair.evidence)
            if not choices:
                return None
            text = self._random.choice(choices)
            other = replace(pair, statement=text, allowed=SUPPORTED)
            if self._random.random() < 0.5:
                other = self.other_value(other) or self.other_name(other) or other
        if len(pair.statement) + len(other.statement) > 400:
            return None
        allowed = joined(pair.allowed, other.allowed)
        one, two = self._random.sample([pair.statement, other.statement], 2)
        joint = f"{one.rstrip(' .')}, and {two}" if self._random.random() < 0.4 else f"{one} {two}"
        return replace(pair, statement=joint, allowed=allowed)

    def among_others(self, pair: Pair) -> Pair | None:
        """The evidence among sentences of other rows: the label stays."""
        count = min(self._random.randint(1, 5), len(self._sentences))
        if not count:
            return None
        parts = self._random.sample(self._sentences, count)
        parts.insert(self._random.randint(0, count), pair.evidence)
        text = " ".join(parts)
        return replace(pair, evidence=text) if len(text) <= LONGEST_EVIDENCE else None

    def copied(self, pair: Pair) -> Pair | None:
        """A sentence, or a clause, of the evidence itself; as it is or with one thing off."""
        choices = sentences(pair.evidence[:READ])
        if len(choices) < 2:
            return None
        text = self._random.choice(choices)
        if ", " in text and self._random.random() < 0.3:
            text = max(text.split(", "), key=len)
        base = replace(pair, statement=text, allowed=SUPPORTED)
        if self._random.random() < 0.4:
            return self._random.choice(self._changes)(base)
        if self._random.random() < 0.35:  # all the same without that very sentence: nothing says it
            rest = " ".join(c for c in choices if text not in c)
            return replace(base, evidence=rest, allowed=NOT_ENOUGH)
        return base

    def resolved(self, pair: Pair) -> Pair | None:
        """A later sentence about “he” or “she”, said of the one the evidence opens with."""
        choices = sentences(pair.evidence[:READ])
        who = OPENING.match(pair.evidence)
        about = [c for c in choices[1:] if PRONOUN.match(c)]
        if not about or who is None:
            return None
        first, rest = self._random.choice(about).split(" ", 1)
        owns = "'s" if first in ("His", "Her") else ""
        base = replace(pair, statement=f"{who['name']}{owns} {rest}", allowed=SUPPORTED)
        if self._random.random() < 0.5:
            return self._random.choice(self._changes)(base)
        return base

    def asked(self, pair: Pair) -> Pair | None:
        """A statement turned into a question with a short answer, right or wrong."""
        base = self._base(pair)
        if base is None:
            return None
        found = [*NUMBER.finditer(base.statement), *NAME.finditer(base.statement)]
        if not found:
            return None
        match = self._random.choice(found)
        answer = match.group()
        what = "how many" if NUMBER.fullmatch(answer) and len(answer) != 4 else "which"
        what = "when" if NUMBER.fullmatch(answer) and len(answer) == 4 else what
        question = base.statement[: match.start()] + what + base.statement[match.end() :]
        question = question.rstrip(" .") + "?"
        allowed = base.allowed
        if self._random.random() < 0.5:
            kind = NUMBER if answer[0].isdigit() else NAME
            found_too = kind.findall(base.evidence)
            others = [o for o in found_too if o not in answer and answer not in o]
            if not others:
                return None
            answer, allowed = self._random.choice(others), CONTRADICTED
        statement = statement_text(question, answer)
        return replace(base, statement=statement, allowed=allowed)

    def _base(self, pair: Pair) -> Pair | None:
        """A supported pair, which is seen as it stands too: each wrong one has its right twin."""
        return pair if pair.allowed == SUPPORTED else None

    def _with(self, base: Pair, start: int, end: int, new: str) -> Pair:
        text = base.statement[:start] + new + base.statement[end:]
        return replace(base, statement=text, allowed=CONTRADICTED)
