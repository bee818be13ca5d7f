"""Words that turn a statement round: negations, opposites, quantifiers, ranks, by language.

The lists lie beside this file as JSON, one a language. A language without a list uses English.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from core.evidence.terms import FUNCTION_WORDS, fold, stem

FOLDER = Path(__file__).parent / "lexicon"
DENYING = ("un", "in", "im", "ir", "il", "non")
SHORTEST_BASE = 6
QUANTITY_ORDER = ("none", "few", "some", "most", "all")


@dataclass(frozen=True)
class Lexicon:
    """One language's words, folded; sets hold words and their stems."""

    language: str
    negation: frozenset[str]
    functions: frozenset[str]
    quantifiers: Mapping[str, int]
    only: frozenset[str]
    also: frozenset[str]
    superlatives: frozenset[str]
    rank_words: frozenset[str]
    one_of: tuple[str, ...]
    hedges: frozenset[str]
    clause_breaks: tuple[str, ...]
    yes: frozenset[str]
    no: frozenset[str]
    total: frozenset[str]
    polar_openers: frozenset[str]
    coordinators: frozenset[str]
    articles: frozenset[str]
    prepositions: frozenset[str]
    negating_verbs: frozenset[str]
    exceptions: frozenset[str]
    conditions: frozenset[str]
    future: frozenset[str]
    past: frozenset[str]
    abstentions: tuple[str, ...]
    places: frozenset[frozenset[str]]
    opposed: Mapping[str, frozenset[str]]
    families: Mapping[str, frozenset[str]]

    def are_opposites(self, one: str, other: str) -> bool:
        """True for words of which only one can hold (left/right, rose/fell, stable/unstable)."""
        if self.language == "en" and (_denies(one, other) or _denies(other, one)):
            return True
        return any(
            form in self.opposed and not self.opposed[form].isdisjoint(self._forms(other))
            for form in self._forms(one)
        )

    def family_shared(self, one: str, other: str) -> str:
        """The name of a set of exclusive words that holds both, different, words; or empty."""
        if self._forms(one) & self._forms(other):
            return ""
        shared = self._families(one) & self._families(other)
        return min(shared, default="")

    def is_preposition(self, word: str) -> bool:
        """True for a folded word of the list; without a list for any function word but "and"."""
        if self.prepositions:
            return word in self.prepositions
        return word in self.functions and word not in self.coordinators

    def quantifier(self, word: str) -> int | None:
        """0 (none) to 4 (all) for a quantifier, or None."""
        return self.quantifiers.get(fold(word))

    def _families(self, word: str) -> frozenset[str]:
        empty: frozenset[str] = frozenset()
        return empty.union(*(self.families.get(form, empty) for form in self._forms(word)))

    def _forms(self, word: str) -> frozenset[str]:
        return _forms_of(word, self.language)


@lru_cache(maxsize=50_000)
def _forms_of(word: str, language: str) -> frozenset[str]:
    return frozenset(_forms(word, language))


@lru_cache(maxsize=32)
def lexicon(language: str) -> Lexicon:
    """The words of that language; English where there is no list."""
    # A tag may be what a model wrote: it is never made a path.
    known = language if language in {path.stem for path in FOLDER.glob("*.json")} else "en"
    data = json.loads((FOLDER / f"{known}.json").read_text(encoding="utf-8"))
    functions = set(data.get("functions", ()))
    if known == "en":
        functions |= FUNCTION_WORDS
    return Lexicon(
        language=known,
        negation=_folded(data["negation"]),
        functions=_folded(functions),
        quantifiers={
            fold(word): QUANTITY_ORDER.index(name)
            for name in ("some", "few", "most", "none", "all")
            for word in data["quantifiers"][name]
        },
        only=_folded(data["only"]),
        also=_folded(data.get("also", ())),
        superlatives=_folded(data["superlatives"]),
        rank_words=_folded(data["rank_words"]),
        one_of=tuple(data["one_of"]),
        hedges=_folded(data.get("hedges", ())),
        clause_breaks=tuple(data["clause_breaks"]),
        yes=_folded(data["yes"]),
        no=_folded(data["no"]),
        total=_folded(data["total"]),
        polar_openers=_folded(data.get("polar_openers", ())),
        coordinators=_folded(data.get("coordinators", ())),
        articles=_folded(data.get("articles", ())),
        prepositions=_folded(data.get("prepositions", ())),
        negating_verbs=_folded(data.get("negating_verbs", ())),
        exceptions=_folded(data.get("exceptions", ())),
        conditions=_folded(data.get("conditions", ())),
        future=_folded(data.get("future", ())),
        past=_folded(data.get("past", ())),
        abstentions=tuple(data.get("abstentions", ())),
        places=frozenset(frozenset(map(fold, pair)) for pair in data.get("places", ())),
        opposed=_opposed(data["opposites"], known),
        families=_families(data.get("exclusive", {}), known),
    )


def _denies(one: str, other: str) -> bool:
    """True for "unstable" of "stable"; short words meet by chance ("inform", "form")."""
    base = fold(other)
    return len(base) >= SHORTEST_BASE and fold(one) in {prefix + base for prefix in DENYING}


def _folded(words: object) -> frozenset[str]:
    return frozenset(fold(word) for word in words)  # type: ignore[attr-defined]


def _forms(word: str, language: str) -> tuple[str, str]:
    """The folded word and its stem; the stem is marked so that it never meets a whole word."""
    return fold(word), "~" + stem(fold(word), language)


def _opposed(pairs: list[list[str]], language: str) -> dict[str, frozenset[str]]:
    opposed: dict[str, set[str]] = {}
    for sides in pairs:
        left, right = ([f for w in side.split(",") for f in _forms(w, language)] for side in sides)
        for one, others in ((left, right), (right, left)):
            for form in one:
                opposed.setdefault(form, set()).update(others)
    return {form: frozenset(others) for form, others in opposed.items()}


def _families(families: dict[str, list[str]], language: str) -> dict[str, frozenset[str]]:
    of_word: dict[str, set[str]] = {}
    for name, words in families.items():
        for word in words:
            for form in _forms(word, language):
                of_word.setdefault(form, set()).add(name)
    return {form: frozenset(names) for form, names in of_word.items()}
