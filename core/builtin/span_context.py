"""What the whole response, the word's sentence and its name say of how far the word is carried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial

import numpy as np

from core.builtin.span_evidence import Grounds, Numbers
from core.builtin.span_words import Word

CONTENT_FROM = 0.35
BESIDE = 8  # words of the response that count as beside a word
CLOSE_BY = 12  # words of the evidence
NEAR_QUESTION = 15


def response_columns(
    words: Sequence[Word], held: Grounds, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Values of the response as a whole, the same for all its words."""
    n = len(words)
    weight, lacking = columns["weight"], columns["lacking"]
    terms = [word.term for word in words]
    said = frozenset(terms)
    answer = held.sentences[held.answer] - held.question_terms if held.sentences else frozenset()
    of_answer = [
        word
        for word in held.words
        if word.sentence == held.answer and word.term not in held.question_terms
    ]
    threes = Counter(zip(terms, terms[1:], terms[2:], strict=False))
    numbers = sum(word.is_number for word in held.words)
    values = {
        "answer_said": _share(held.weight_of(answer & said), held.weight_of(answer)),
        "answer_numbers_said": _said({w.term for w in of_answer if w.is_number}, said),
        "answer_names_said": _said({w.term for w in of_answer if w.is_capitalised}, said),
        "topic": held.topic,
        "echo": _share(
            held.weight_of(held.question_terms & said), held.weight_of(held.question_terms)
        ),
        "lacking_share": _share(lacking.sum(), weight.sum()),
        "words": np.log1p(n),
        "evidence_words": np.log1p(len(held.words)),
        "question_words": np.log1p(len(held.question)),
        "longer_than_evidence": np.log1p(n) - np.log1p(len(held.words)),
        "repeats": sum(count - 1 for count in threes.values()) / max(1, n),
        "evidence_numbers": numbers / max(1, len(held.words)),
        "numbers": sum(word.is_number for word in words) / max(1, n),
        "sentences": float(words[-1].sentence + 1),
    }
    return {name: np.full(n, float(value)) for name, value in values.items()}


def surrounding_columns(
    words: Sequence[Word], held: Grounds, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Values of the word's sentence, of its name, and of what came before it."""
    terms = [word.term for word in words]
    answer = held.sentences[held.answer] - held.question_terms if held.sentences else frozenset()
    opening = frozenset().union(*held.sentences[:2])
    counts = Counter(terms)
    return {
        "in_answer": np.array([float(term in answer) for term in terms]),
        "in_opening": np.array([float(term in opening) for term in terms]),
        "times": np.array([float(counts[term]) for term in terms]),
        **_near(words, held, columns),
        **_of_sentences(words, held, columns),
        **_of_names(words, columns),
        **_so_far(words, held, columns),
    }


def _share(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _said(wanted: set[str], said: frozenset[str]) -> float:
    return len(wanted & said) / len(wanted) if wanted else 0.5


def _of_sentences(
    words: Sequence[Word], held: Grounds, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """How much of its sentence one sentence of the evidence holds, and is the word among it?"""
    n = len(words)
    weight, lacking = columns["weight"], columns["lacking"]
    best, there, share = np.zeros(n), np.zeros(n), np.zeros(n)
    numbers = np.array([word.sentence for word in words])
    for number in np.unique(numbers):
        mine = np.flatnonzero(numbers == number).tolist()
        whole = weight[mine].sum() or 1.0
        share[mine] = lacking[mine].sum() / whole
        closest, most = frozenset[str](), 0.0
        for sentence in held.sentences:
            found = sum(weight[i] for i in mine if words[i].term in sentence) / whole
            if found > most:
                closest, most = sentence, found
        best[mine] = most
        there[mine] = [float(words[i].term in closest) for i in mine]
    return {"sentence_held": best, "in_closest": there, "sentence_lacking": share}


def _near(
    words: Sequence[Word], held: Grounds, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """The share of the words beside it, and of the question, that the evidence has close by."""
    weight = columns["weight"]
    places = held.sequence.places
    near, near_question = np.zeros(len(words)), np.zeros(len(words))
    content = [i for i in range(len(words)) if weight[i] > CONTENT_FROM]
    apart = lru_cache(None)(partial(_apart, held))
    asked = [
        term
        for term in dict.fromkeys(held.question_sequence.terms)
        if held.common.weight(term) > CONTENT_FROM and term in places
    ]
    for i, word in enumerate(words):
        if word.term not in places:
            continue
        beside = [j for j in content if abs(j - i) <= BESIDE and words[j].term != word.term]
        close = [weight[j] for j in beside if apart(word.term, words[j].term) <= CLOSE_BY]
        whole = float(sum(weight[j] for j in beside))
        near[i] = sum(close) / whole if whole else 0.5
        others = [term for term in asked if term != word.term]
        there = [apart(word.term, term) <= NEAR_QUESTION for term in others]
        near_question[i] = sum(there) / len(there) if there else 0.5
    return {"near": near, "near_question": near_question}


def _apart(held: Grounds, one: str, other: str) -> float:
    """Words between the two where the evidence has them closest together; infinite if not both."""
    mine, theirs = held.sequence.places.get(one), held.sequence.places.get(other)
    if mine is None or theirs is None:
        return np.inf
    return float(np.abs(mine[:, None] - theirs[None]).min())


def _of_names(words: Sequence[Word], columns: Mapping[str, Numbers]) -> dict[str, Numbers]:
    """Capitalised words and numbers in a row are one name: how long, and is any of it lacking?"""
    n = len(words)
    lengths, lacking = np.zeros(n), np.zeros(n)
    for run in _name_runs(words):
        lengths[run] = len(run)
        lacking[run] = columns["lacking"][run].max()
    return {"name_length": lengths, "name_lacking": lacking}


def _name_runs(words: Sequence[Word]) -> Iterable[list[int]]:
    run: list[int] = []
    for i, word in enumerate(words):
        goes_on = run and words[i - 1].end + 1 >= word.start
        if run and not (goes_on and (word.is_capitalised or word.is_number)):
            yield run
            run = []
        if word.is_capitalised or word.is_number:
            run = [*run, i]
    if run:
        yield run


def _so_far(
    words: Sequence[Word], held: Grounds, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """What was said before the word: how much of the question, how much that nothing carries."""
    n = len(words)
    weight, asked = columns["weight"], columns["in_question"]
    echoed, seen_before = np.zeros(n), np.zeros(n)
    seen: set[str] = set()
    so_far = 0.0
    for i, word in enumerate(words):
        echoed[i], seen_before[i] = so_far, float(word.term in seen)
        if asked[i] and word.term not in seen:
            so_far += weight[i]
        seen.add(word.term)
    whole = held.weight_of(held.question_terms) or 1.0
    lacked = np.cumsum(columns["lacking"]) - columns["lacking"]
    content = np.flatnonzero((asked > 0) & (weight > CONTENT_FROM))
    last = int(content[-1]) if len(content) else -1
    return {
        "echoed": echoed / whole,
        "said_before": seen_before,
        "lacked": lacked / (weight.sum() or 1.0),
        "after_question": np.arange(n, dtype=np.float64) - last,
    }
