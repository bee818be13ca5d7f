"""Features of each word of a response over the evidence, for any language.

`compute_word_features` returns one row a word. No column holds a word or a language, so what is
learned in one language applies to others. In scripts without spaces every character counts as a
word. Offsets are half-open and count code points of the text as given.
"""

from __future__ import annotations

import itertools
import json
import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import regex

from core.baseline.entailment import TokenDoubt
from core.documents.segmentation import (
    IS_UNSPACED,
    WORD_TOKEN,
    fold_word,
    normalize_number,
    stem_word,
)

SPAN_READER_DIR = Path(__file__).parent / "weights" / "span"
COMMON_TERMS_FILE = "common_terms.json"
SENTENCE_END = regex.compile(r"[.!?。！？।؟\n]+(?=\s|$|[^\d])")
# A word with a frequency of one in 400 weighs half as much as a very rare one.
COMMONNESS_SCALE = 400.0
MIN_REPEATED_COUNT = 3
Numbers = npt.NDArray[np.float64]
PositionArray = npt.NDArray[np.int64]
CITATION_MARK = regex.compile(r"\[\d{1,3}\]")
LATER_SENTENCE_PENALTY = 0.02  # of the question's weight, for each later sentence
MAX_POSITIONS_OF_TERM = 30
MAX_RUN_WORDS = 40  # bounds the time for a text that repeats one word
MIN_CONTENT_WEIGHT = 0.35
NEIGHBOUR_WORDS = 8  # words of the response on either side that count as neighbours
CLOSE_WORDS = 12  # words of the evidence within which two words are close
NEAR_QUESTION_WORDS = 15
Columns = Mapping[str, Numbers]
MARKS_BEFORE = {"opened": "\"“«「'(（", "on_new_line": "\n"}
MARKS_AFTER = {"paused": ",，、،;", "ended": ".。।!?؟", "closed": ')）"”»」', "colon": ":："}
WINDOWED_COLUMNS = (
    "doubt", "held", "in_evidence", "in_question", "likeness", "lacking", "weight", "near",
    "in_run", "is_number", "is_capitalised",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ResponseWord:
    """A word at `[start, end)` in its text; `term` is compared, `sentence` counts from 0."""

    start: int
    end: int
    text: str
    folded: str
    term: str
    is_number: bool
    is_unspaced: bool
    sentence: int

    @property
    def is_capitalised(self) -> bool:
        """Return True for a word that begins with a capital letter."""
        return self.text[:1].isupper()


def split_words(text: str, language: str, sentence: int = 0) -> tuple[ResponseWord, ...]:
    """Return the words in order; sentences are counted from `sentence`."""
    ends = [match.end() for match in SENTENCE_END.finditer(text)]
    places: list[tuple[int, int, bool]] = []
    for match in WORD_TOKEN.finditer(text):
        start, end = match.span()
        if IS_UNSPACED.search(match.group()):
            places += [(i, i + 1, True) for i in range(start, end) if not text[i].isspace()]
        else:
            places.append((start, end, False))
    words: list[ResponseWord] = []
    for start, end, is_unspaced in places:
        written, number = text[start:end], sentence + bisect_right(ends, start)
        folded, is_number = fold_word(written), written[0].isnumeric() and not is_unspaced
        stemmed = folded if is_unspaced else stem_word(folded, language)
        term = normalize_number(written) if is_number else stemmed
        words.append(
            ResponseWord(start, end, written, folded, term, is_number, is_unspaced, number)
        )
    return tuple(words)


@dataclass(frozen=True)
class SentenceReading:
    """A reader's reading of `[start, end)` of the response over the nearest evidence."""

    start: int
    end: int
    supported: float
    contradicted: float
    doubts: tuple[TokenDoubt, ...]
    """The least doubt of each token over the windows, since what one does not say another may;
    offsets are those of the response."""


@dataclass(frozen=True)
class TermFrequencies:
    """The frequency of terms in a language, as shares of all its words."""

    shares: Mapping[str, float]

    def share(self, term: str) -> float:
        """Return the term's share; 0 for a term that is not among the common ones."""
        return self.shares.get(term, 0.0)

    def weight(self, term: str) -> float:
        """Return a weight near 1 for rare terms and near 0 for the commonest function words."""
        return 1.0 / (1.0 + COMMONNESS_SCALE * self.share(term))


def count_repeated_terms(evidence: Mapping[str, int]) -> TermFrequencies:
    """Return the terms that the evidence has three times or more, with their shares of it."""
    total = max(1, sum(evidence.values()))
    return TermFrequencies({t: n / total for t, n in evidence.items() if n >= MIN_REPEATED_COUNT})


@lru_cache(maxsize=1)
def _common_term_lists() -> Mapping[str, Mapping[str, float]]:
    lists: dict[str, dict[str, float]] = json.loads(
        (SPAN_READER_DIR / COMMON_TERMS_FILE).read_text(encoding="utf-8")
    )
    return lists


class TermSequence:
    """Terms in order, with the first few positions of each."""

    def __init__(self, words: Iterable[ResponseWord]) -> None:
        self.terms = tuple(word.term for word in words)
        places: dict[str, list[int]] = {}
        for i, term in enumerate(self.terms):
            places.setdefault(term, []).append(i)
        self.places: Mapping[str, PositionArray] = {
            term: np.array(found[:MAX_POSITIONS_OF_TERM], dtype=np.int64)
            for term, found in places.items()
        }

    def runs(self, other: Sequence[str]) -> Numbers:
        """Return (n,): for each term of `other` the longest run around it that occurs here too."""
        longest = np.zeros(len(other))
        for i, term in enumerate(other):
            best = 0
            for place in self.places.get(term, np.array([], dtype=np.int64)).tolist():
                pairs = zip(other[i : i + MAX_RUN_WORDS], self.terms[place:], strict=False)
                equal = itertools.takewhile(lambda pair: pair[0] == pair[1], pairs)
                best = max(best, sum(1 for _ in equal))
            longest[i : i + best] = np.maximum(longest[i : i + best], best)
        return longest


@dataclass(frozen=True)
class EvidenceIndex:
    """The evidence and question that a response is compared with.

    `sentences` holds the terms of each sentence of the evidence, `answer` is the number of the one
    that covers most of the question, `topic` the share of the question that it covers.
    """

    words: tuple[ResponseWord, ...]
    question: tuple[ResponseWord, ...]
    counts: Mapping[str, int]
    question_terms: frozenset[str]
    sequence: TermSequence
    question_sequence: TermSequence
    pairs: frozenset[tuple[str, str]]
    sentences: tuple[frozenset[str], ...]
    answer: int
    topic: float
    common: TermFrequencies

    def weight_of(self, terms: Iterable[str]) -> float:
        """Return the sum of the weights of these terms."""
        return math.fsum(map(self.common.weight, terms))


def index_evidence(
    question: str, texts: Sequence[str], language: str, common: TermFrequencies | None = None
) -> EvidenceIndex:
    """Index the evidence texts in order, without citation marks, and the question.

    `common` replaces the language's shipped list of common terms.
    """
    words: list[ResponseWord] = []
    for text in texts:
        next_sentence = words[-1].sentence + 1 if words else 0
        words += split_words(CITATION_MARK.sub("", text), language, next_sentence)
    counts = Counter(word.term for word in words)
    if common is None:
        listed = _common_term_lists().get(language)
        common = TermFrequencies(listed) if listed else count_repeated_terms(counts)
    question_words = split_words(question, language)
    question_terms = frozenset(word.term for word in question_words)
    terms: list[set[str]] = [set() for _ in range(words[-1].sentence + 1 if words else 0)]
    for word in words:
        terms[word.sentence].add(word.term)
    total = math.fsum(map(common.weight, question_terms)) or 1.0
    shares = [math.fsum(map(common.weight, own & question_terms)) / total for own in terms]
    ranking = [share - LATER_SENTENCE_PENALTY * min(i, 20) for i, share in enumerate(shares)]
    sequence = TermSequence(words)
    return EvidenceIndex(
        words=tuple(words),
        question=question_words,
        counts=counts,
        question_terms=question_terms,
        sequence=sequence,
        question_sequence=TermSequence(question_words),
        pairs=frozenset(itertools.pairwise(sequence.terms)),
        sentences=tuple(map(frozenset, terms)),
        answer=int(np.argmax(ranking)) if ranking else 0,
        topic=max(shares, default=0.0),
        common=common,
    )


def _column(values: Iterable[float]) -> Numbers:
    return np.array([float(value) for value in values], dtype=np.float64)


def compute_spelling_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex
) -> dict[str, Numbers]:
    """Return columns of spelling: nearest word, common prefix, shared n-grams, nearest number."""
    evidence_forms = sorted({word.folded for word in held.words if not word.is_number})
    question_forms = sorted({word.folded for word in held.question if not word.is_number})
    forms = [word.folded for word in words if not word.is_number and not word.is_unspaced]
    nearest = _greatest_similarity(forms, evidence_forms)
    question_nearest = _greatest_similarity(forms, question_forms)
    prefixes = {other[:k] for other in evidence_forms for k in range(1, len(other) + 1)}
    prefix_shares = {
        form: next((k for k in range(len(form), 0, -1) if form[:k] in prefixes), 0) / len(form)
        for form in forms
    }
    grams = {n: {gram for form in evidence_forms for gram in _ngrams(form, n)} for n in (3, 4)}
    in_evidence = _column(word.term in held.counts for word in words)
    in_question = _column(word.term in held.question_terms for word in words)
    similarity, question_similarity, prefix_similarity = (
        [found.get(word.folded, 0.0) for word in words]
        for found in (nearest, question_nearest, prefix_shares)
    )
    return {
        "likeness": np.maximum(in_evidence, similarity),
        "question_likeness": np.maximum(in_question, question_similarity),
        "begins_alike": np.maximum(in_evidence, prefix_similarity),
        **{
            name: _column(
                len(_ngrams(word.folded, n) & grams[n]) / len(_ngrams(word.folded, n))
                for word in words
            )
            for name, n in (("threes", 3), ("fours", 4))
        },
        "off_by": np.array(_number_distances(words, held)),
        "digits": _column(len(w.term) if w.is_number else 0 for w in words),
    }


def _greatest_similarity(forms: Sequence[str], others: Sequence[str]) -> dict[str, float]:
    """Return each form's greatest similarity in [0, 1] (1 - edit distance / longer length)."""
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    distinct = list(dict.fromkeys(forms))
    if not distinct or not others:
        return {}
    similarities = cdist(
        distinct, others, scorer=Levenshtein.normalized_similarity, dtype=np.float32, workers=1
    ).max(axis=1)
    return dict(zip(distinct, similarities.tolist(), strict=True))


def _ngrams(form: str, n: int) -> set[str]:
    edged = f"^{form}$"
    return {edged[i : i + n] for i in range(max(1, len(edged) - n + 1))}


def _number_distances(words: Sequence[ResponseWord], held: EvidenceIndex) -> list[float]:
    """Return each number's distance to the nearest one, relative to the greater.

    It is 2 if the evidence has none, and 0 for other words. `normalize_number` has already
    converted the digits of other scripts.
    """
    values = np.array([v for v in (_number_value(word) for word in held.words) if v is not None])
    distances = []
    for word in words:
        value = _number_value(word)
        if not word.is_number:
            distances.append(0.0)
        elif value is None or not len(values):
            distances.append(2.0)
        else:
            greater = np.maximum(np.maximum(abs(value), np.abs(values)), 1e-9)
            distances.append(float((np.abs(values - value) / greater).min()))
    return distances


def _number_value(word: ResponseWord) -> float | None:
    if not word.is_number:
        return None
    try:
        return float(word.term)
    except ValueError:
        return None


def compute_position_columns(
    text: str, words: Sequence[ResponseWord], held: EvidenceIndex
) -> dict[str, Numbers]:
    """Return columns of position, form and the characters on either side."""
    n = len(words)
    order = np.arange(n, dtype=np.float64)
    numbers = np.array([word.sentence for word in words])
    _, first, which, sizes = np.unique(
        numbers, return_index=True, return_inverse=True, return_counts=True
    )
    before = [text[word.start - 1] if word.start else "\n" for word in words]
    after = [text[word.end] if word.end < len(text) else "\n" for word in words]
    return {
        "is_number": _column(word.is_number for word in words),
        "is_capitalised": _column(word.is_capitalised for word in words),
        "is_shouted": _column(word.text.isupper() for word in words),
        "is_unspaced": _column(word.is_unspaced for word in words),
        "length": _column(len(word.text) for word in words),
        "place": order / max(1, n - 1),
        "from_start": order,
        "from_end": n - order,
        "in_sentence": order - first[which].astype(np.float64),
        "sentence_length": sizes[which].astype(np.float64),
        "sentence": _column(word.sentence for word in words),
        **{name: _column(c in marks for c in before) for name, marks in MARKS_BEFORE.items()},
        **{name: _column(c in marks for c in after) for name, marks in MARKS_AFTER.items()},
        "bracketed": _bracket_column(text, words),
    }


def _bracket_column(text: str, words: Sequence[ResponseWord]) -> Numbers:
    """Return 1 for words between round brackets, 0 for others."""
    depth, position = 0, 0
    inside = np.zeros(len(words))
    for i, word in enumerate(words):
        between = text[position : word.start]
        depth = max(0, depth + sum(c in "(（" for c in between) - sum(c in ")）" for c in between))
        inside[i] = float(depth > 0)
        position = word.end
    return inside


def compute_response_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Return columns of the whole response, equal for all its words."""
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
        "answer_said": _ratio(held.weight_of(answer & said), held.weight_of(answer)),
        "answer_numbers_said": _share_said({w.term for w in of_answer if w.is_number}, said),
        "answer_names_said": _share_said({w.term for w in of_answer if w.is_capitalised}, said),
        "topic": held.topic,
        "echo": _ratio(
            held.weight_of(held.question_terms & said), held.weight_of(held.question_terms)
        ),
        "lacking_share": _ratio(lacking.sum(), weight.sum()),
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


def compute_context_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Return columns of the word's sentence, of its name and of the words before it."""
    terms = [word.term for word in words]
    answer = held.sentences[held.answer] - held.question_terms if held.sentences else frozenset()
    opening = frozenset().union(*held.sentences[:2])
    counts = Counter(terms)
    return {
        "in_answer": _column(term in answer for term in terms),
        "in_opening": _column(term in opening for term in terms),
        "times": _column(counts[term] for term in terms),
        **_proximity_columns(words, held, columns),
        **_sentence_columns(words, held, columns),
        **_name_columns(words, columns),
        **_history_columns(words, held, columns),
    }


def _ratio(part: float, whole: float) -> float:
    return float(part / whole) if whole else 0.0


def _share_said(wanted: set[str], said: frozenset[str]) -> float:
    return len(wanted & said) / len(wanted) if wanted else 0.5


def _sentence_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Return how much of a word's sentence one evidence sentence covers, and if it has the word."""
    n = len(words)
    weight, lacking = columns["weight"], columns["lacking"]
    best, in_closest, share = np.zeros(n), np.zeros(n), np.zeros(n)
    numbers = np.array([word.sentence for word in words])
    for number in np.unique(numbers):
        own = np.flatnonzero(numbers == number).tolist()
        total = weight[own].sum() or 1.0
        share[own] = lacking[own].sum() / total
        closest, most = frozenset[str](), 0.0
        for sentence in held.sentences:
            covered = sum(weight[i] for i in own if words[i].term in sentence) / total
            if covered > most:
                closest, most = sentence, covered
        best[own] = most
        in_closest[own] = [float(words[i].term in closest) for i in own]
    return {"sentence_held": best, "in_closest": in_closest, "sentence_lacking": share}


def _proximity_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Return the share of neighbours, and of the question, that the evidence has close by."""
    weight = columns["weight"]
    places = held.sequence.places
    near, near_question = np.zeros(len(words)), np.zeros(len(words))
    content = [i for i in range(len(words)) if weight[i] > MIN_CONTENT_WEIGHT]
    distance = lru_cache(None)(partial(_least_distance, held))
    question_terms = [
        term
        for term in dict.fromkeys(held.question_sequence.terms)
        if held.common.weight(term) > MIN_CONTENT_WEIGHT and term in places
    ]
    for i, word in enumerate(words):
        if word.term not in places:
            continue
        neighbours = [
            j for j in content if abs(j - i) <= NEIGHBOUR_WORDS and words[j].term != word.term
        ]
        close = [weight[j] for j in neighbours if distance(word.term, words[j].term) <= CLOSE_WORDS]
        total = float(sum(weight[j] for j in neighbours))
        near[i] = sum(close) / total if total else 0.5
        others = [term for term in question_terms if term != word.term]
        is_near = [distance(word.term, term) <= NEAR_QUESTION_WORDS for term in others]
        near_question[i] = sum(is_near) / len(is_near) if is_near else 0.5
    return {"near": near, "near_question": near_question}


def _least_distance(held: EvidenceIndex, one: str, other: str) -> float:
    """Return the least distance of two terms in the evidence, in words; infinite if not both."""
    mine, theirs = held.sequence.places.get(one), held.sequence.places.get(other)
    if mine is None or theirs is None:
        return np.inf
    return float(np.abs(mine[:, None] - theirs[None]).min())


def _name_columns(
    words: Sequence[ResponseWord], columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Return the length of the name, a run of capitalised words and numbers, and its lacking."""
    lengths, lacking = np.zeros(len(words)), np.zeros(len(words))
    names = [i for i, word in enumerate(words) if word.is_capitalised or word.is_number]
    starts = [
        k
        for k, i in enumerate(names)
        if not k or names[k - 1] != i - 1 or words[i - 1].end + 1 < words[i].start
    ]
    for begin, end in itertools.pairwise([*starts, len(names)]):
        run = names[begin:end]
        lengths[run] = len(run)
        lacking[run] = columns["lacking"][run].max()
    return {"name_length": lengths, "name_lacking": lacking}


def _history_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex, columns: Mapping[str, Numbers]
) -> dict[str, Numbers]:
    """Return how much of the question, and how much unsupported, was said before the word."""
    n = len(words)
    weight, in_question = columns["weight"], columns["in_question"]
    echoed, seen_before = np.zeros(n), np.zeros(n)
    seen: set[str] = set()
    weight_so_far = 0.0
    for i, word in enumerate(words):
        echoed[i], seen_before[i] = weight_so_far, float(word.term in seen)
        if in_question[i] and word.term not in seen:
            weight_so_far += weight[i]
        seen.add(word.term)
    total = held.weight_of(held.question_terms) or 1.0
    lacked = np.cumsum(columns["lacking"]) - columns["lacking"]
    content = np.flatnonzero((in_question > 0) & (weight > MIN_CONTENT_WEIGHT))
    last = int(content[-1]) if len(content) else -1
    return {
        "echoed": echoed / total,
        "said_before": seen_before,
        "lacked": lacked / (weight.sum() or 1.0),
        "after_question": np.arange(n, dtype=np.float64) - last,
    }


def compute_word_features(
    text: str,
    words: Sequence[ResponseWord],
    held: EvidenceIndex,
    read: Sequence[SentenceReading] = (),
) -> tuple[list[str], npt.NDArray[np.float32]]:
    """Return the columns' names and values, (n, columns); `words` are those of `text`."""
    columns: dict[str, Numbers] = compute_presence_columns(words, held)
    columns |= compute_reading_columns(words, read)
    columns |= compute_spelling_columns(words, held)
    columns |= compute_position_columns(text, words, held)
    columns |= compute_response_columns(words, held, columns)
    columns |= compute_context_columns(words, held, columns)
    for name in WINDOWED_COLUMNS:
        values = columns[name]
        columns |= {
            f"{name}{shift:+d}": shift_column(values, shift) for shift in (-3, -2, -1, 1, 2, 3)
        }
        columns |= {f"{name}~{half}": average_around(values, half) for half in (2, 5, 10, 25)}
    names = list(columns)
    return names, np.stack([columns[name] for name in names], axis=1).astype(np.float32)


def compute_reading_columns(
    words: Sequence[ResponseWord], read: Sequence[SentenceReading]
) -> dict[str, Numbers]:
    """Return the reader's doubt of each word, and its reading of the word's sentence."""
    doubt, supported, contradicted = (np.full(len(words), value) for value in (0.5, 0.0, 0.0))
    for item in read:
        for i, word in enumerate(words):
            if item.start <= word.start < item.end:
                supported[i], contradicted[i] = item.supported, item.contradicted
                doubts = [d.p for d in item.doubts if d.start < word.end and word.start < d.end]
                doubt[i] = max(doubts, default=0.5)
    return {"doubt": doubt, "sentence_supported": supported, "sentence_contradicted": contradicted}


def compute_presence_columns(
    words: Sequence[ResponseWord], held: EvidenceIndex
) -> dict[str, Numbers]:
    """Return columns of presence in evidence and question, of order and of frequency."""
    terms = [word.term for word in words]
    in_evidence = _column(term in held.counts for term in terms)
    in_question = _column(term in held.question_terms for term in terms)
    forms = {word.folded for word in held.words}
    weight = _column(map(held.common.weight, terms))
    present = np.maximum(in_evidence, in_question)
    runs = held.sequence.runs(terms)
    pairs = list(itertools.pairwise(terms))
    follows = _column(pair in held.pairs for pair in pairs)
    counts = _column(held.counts.get(term, 0) for term in terms)
    return {
        "in_evidence": in_evidence,
        "in_question": in_question,
        "held": present,
        "same_form": _column(word.folded in forms for word in words),
        "count": np.log1p(counts),
        "share": counts / max(1, len(held.words)) * 100,
        "run": runs,
        "in_run": (runs >= 3).astype(float),
        "question_run": held.question_sequence.runs(terms),
        "after_left": np.concatenate([[0.0], follows])[: len(terms)],
        "before_right": np.concatenate([follows, [0.0]])[: len(terms)],
        "weight": weight,
        "commonness": np.log(_column(map(held.common.share, terms)) + 1e-6),
        "lacking": (1 - present) * weight,
    }


def shift_column(values: Numbers, by: int) -> Numbers:
    """Return the value `by` words further on, -1 if there is no word."""
    moved = np.full(len(values), -1.0)
    if abs(by) >= len(values):
        return moved
    if by < 0:
        moved[-by:] = values[:by]
    else:
        moved[:-by] = values[by:]
    return moved


def average_around(values: Numbers, half: int) -> Numbers:
    """Return the mean over the word and `half` words on either side, fewer at the ends."""
    n = len(values)
    sums = np.concatenate([[0.0], np.cumsum(values)])
    first = np.maximum(np.arange(n) - half, 0)
    last = np.minimum(np.arange(n) + half + 1, n)
    means: Numbers = (sums[last] - sums[first]) / (last - first)
    return means
