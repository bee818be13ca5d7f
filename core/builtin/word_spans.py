"""Marks from word scores: what stands wrong in a row, which kind it is, and what was marked before.

Debaters' points come first: they have the evidence's own words beside the response's. The scores
add what no point says.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from core.builtin.lexicon import lexicon
from core.builtin.span_reader import Stretch, stretches
from core.builtin.span_words import commonness, words_of
from core.categories import Category
from core.evidence.terms import WORD, fold
from core.records import Case, Judgement, Span, Statement, WordScore
from core.roles import CaseView

READER = "Span reader"
SURE_FROM = 0.6
LIKELY_FROM = 0.5
NAMED_FROM = 0.5  # weight from which a term is more than a function word
ON_TOPIC_FROM = 0.25
WHOLE_UP_TO = 12_000  # characters of all sources together


def evidence_texts(view: CaseView) -> tuple[str, ...]:
    """What words are scored against: short sources whole, of long ones what was retrieved."""
    if sum(len(text) for text in view.sources.values()) <= WHOLE_UP_TO:
        return tuple(view.sources.values())
    found = sorted(view.evidence.passages.values(), key=lambda p: (p.source_id, p.start))
    around = (text for p in found for text in (p.before, p.text, p.after) if text.strip())
    return tuple(dict.fromkeys(around))


def word_spans(
    case: Case,
    statements: Sequence[Statement],
    judgement: Judgement,
    scored: tuple[Sequence[WordScore], float],
    taken: Sequence[Span],
) -> tuple[Span, ...]:
    """Spans for stretches of `scored` (words and their threshold) that no span in `taken` holds.

    Where the judge is unclear only words that are sure count. A statement with a contrast has its
    wrong words named already: more marks would only blur them. In one that the judge calls
    supported a word must be wrong more likely than not.
    """
    scores, threshold = scored
    return tuple(
        _span(stretch, case)
        for part in free_words(statements, judgement, scores, taken)
        for stretch in stretches(part, case.response, threshold)
    )


def free_words(
    statements: Sequence[Statement],
    judgement: Judgement,
    scores: Sequence[WordScore],
    taken: Sequence[Span],
) -> Iterator[list[WordScore]]:
    """The words of each statement; p is 0 for those that no threshold would have marked."""
    contrasted = [s for s in statements if any(_is_in(t, s) and t.instead for t in taken)]
    labelled = zip(statements, judgement.statement_labels, strict=False)
    carried = [statement for statement, label in labelled if label == "supported"]
    least = SURE_FROM if judgement.label == "unclear" else 0.0
    free = []
    for score in scores:
        is_doubtful = any(_is_in(score, s) for s in carried)
        is_named = any(span.start < score.end and score.start < span.end for span in taken)
        is_out = is_named or any(_is_in(score, s) for s in contrasted)
        is_out = is_out or score.p < (max(least, LIKELY_FROM) if is_doubtful else least)
        free.append(replace(score, p=0.0) if is_out else score)
    return _by_statement(free, statements)


def _by_statement(
    scores: Sequence[WordScore], statements: Sequence[Statement]
) -> Iterator[list[WordScore]]:
    """Words of one statement together: a mark does not reach over its end."""
    which = [
        next((s.index for s in statements if _is_in(score, s)), -1 - i)
        for i, score in enumerate(scores)
    ]
    for _, part in itertools.groupby(zip(which, scores, strict=True), key=lambda pair: pair[0]):
        yield [score for _, score in part]


def speaks_of(response: str, texts: Sequence[str], language: str) -> bool:
    """True where the evidence has at least a quarter of what the response names.

    Words that other evidence may well carry are not wrong because this evidence is about
    something else.
    """
    counts = Counter(word.term for text in texts for word in words_of(text, language))
    common = commonness(language, counts)
    weights = {w.term: common.weight(w.term) for w in words_of(response, language)}
    named = {term: weight for term, weight in weights.items() if weight >= NAMED_FROM}
    held = sum(weight for term, weight in named.items() if term in counts)
    return held >= ON_TOPIC_FROM * sum(named.values())


def category_of(text: str, opens_sentence: bool, language: str) -> Category:
    """By rule: a number or date, a negation, a name, else words that the sources do not have."""
    if any(c.isnumeric() for c in text):
        return "number_or_date"
    words = [match.group() for match in WORD.finditer(text)]
    words_turned = lexicon(language)
    if any(fold(word) in words_turned.negation for word in words):
        return "contradicted"
    if any(word[:1].isupper() for word in words[int(opens_sentence) :]):
        return "wrong_entity"
    return "not_in_source"


def _is_in(part: WordScore | Span, statement: Statement) -> bool:
    return statement.start <= part.start and part.end <= statement.end


def _span(stretch: Stretch, case: Case) -> Span:
    text = case.response[stretch.start : stretch.end]
    before = case.response[: stretch.start].rstrip()
    opens = not before or before[-1] in ".!?。！？।؟:\n"
    category = category_of(text, opens, case.language)
    return Span(stretch.start, stretch.end, text, stretch.p, category, READER)
