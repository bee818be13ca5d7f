"""Locates quotes in a source (ColMAD 2.3) and words quoted from a response in it (MSA 3.4).

Exact words are tried first, then other spacing, case and typography, then the most similar
stretch: in a source at a `partial_ratio` of 90, in a response at a Levenshtein similarity of 0.9.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import regex
from rapidfuzz import fuzz
from rapidfuzz.distance import Levenshtein

from core.documents.segmentation import IS_UNSPACED
from core.schema.records import Passage, Quote

TextRange = tuple[int, int]

MIN_PARTIAL_RATIO = 90.0
MIN_FUZZY_LENGTH = 4
MIN_SIMILARITY = 0.9
# A stretch that is similar enough has at least this `partial_ratio`, which is much faster.
MIN_NEAR_RATIO = 75.0
MAX_FUNCTION_WORD_CHARS = 3  # such as “the”, “in”, “of”
WORD_PATTERN = regex.compile(r"\p{N}+(?:[.,:]\p{N}+)*|[\p{L}\p{M}]+(?:['’-][\p{L}\p{M}]+)*")
LONG_QUOTE_LETTERS = 300  # letters; a longer quote is sought only near one place
SEARCH_REACH_LETTERS = 40  # letters around that place
GRAPHEME_CLUSTER = regex.compile(r"\X")
WORD_END = regex.compile(r"[\p{L}\p{N}]\p{M}*\Z")
WORD_CONTINUATION = regex.compile(r"[\p{L}\p{N}\p{M}\u200d]")
TYPOGRAPHY_MAP = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"}
)
# Letters to which Arabic and Persian keyboards give different codes.
KEYBOARD_MAP = str.maketrans("\u0643\u064a\u0649", "\u06a9\u06cc\u06cc")


def verify_quote(text: str, passages: Iterable[Passage], sources: Mapping[str, str]) -> Quote:
    """Return the quote with its status, sought first in the passages, then in the sources.

    Offsets in the result are in the source's text.
    """
    wanted = text.strip()
    if not wanted:
        return Quote(text, "not_found", 0.0)
    passage_list = list(passages)
    for passage in passage_list:
        place = passage.text.find(wanted)
        if place >= 0:
            return _quote_at(wanted, passage, place, place + len(wanted))
    for passage in passage_list:
        match = find_folded(wanted, passage.text)
        if match:
            return _quote_at(wanted, passage, *match)
    for source_id, whole in sources.items():
        match = find_folded(wanted, whole)
        if match:
            name = next((p.source for p in passage_list if p.source_id == source_id), "")
            return Quote(wanted, "verified", 100.0, source_id, name, None, *match)
    return _find_fuzzy(wanted, passage_list)


def _quote_at(
    wanted: str, passage: Passage, start: int, end: int, fuzzy: float | None = None
) -> Quote:
    """Return the quote at `[start, end)` of the passage; `fuzzy` scores an inexact match."""
    return Quote(
        wanted,
        "verified" if fuzzy is None else "fuzzy",
        100.0 if fuzzy is None else fuzzy,
        passage.source_id,
        passage.source,
        passage.page,
        passage.start + start,
        passage.start + end,
    )


def _find_fuzzy(wanted: str, passages: Iterable[Passage]) -> Quote:
    best = Quote(wanted, "not_found", 0.0)
    if len(wanted) < MIN_FUZZY_LENGTH:
        return best
    for passage in passages:
        text = passage.text.casefold()
        if len(text) != len(passage.text) or len(text) < len(wanted) // 2:
            continue
        alignment = fuzz.partial_ratio_alignment(wanted.casefold(), text)
        if alignment is not None and alignment.score >= max(MIN_PARTIAL_RATIO, best.score):
            best = _quote_at(
                wanted, passage, alignment.dest_start, alignment.dest_end, round(alignment.score, 1)
            )
    return best


def fold_with_offsets(text: str) -> tuple[str, list[int]]:
    """Return the text folded for comparison, and the offset that each character comes from.

    Folding removes case, typography, invisible characters and repeated blanks.
    """
    letters: list[str] = []
    origin: list[int] = []
    for place, letter in enumerate(text):
        if letter > "\x7f" and unicodedata.category(letter) == "Cf":
            continue  # invisible, such as a soft hyphen, so nobody quotes it
        if letter.isspace():
            if letters and letters[-1] != " ":
                letters.append(" ")
                origin.append(place)
            continue
        for piece in unicodedata.normalize("NFKC", letter.translate(TYPOGRAPHY_MAP)).casefold():
            letters.append(piece)
            origin.append(place)
    return "".join(letters), origin


def find_folded(wanted: str, text: str) -> tuple[int, int] | None:
    """Return `[start, end)` of the wanted words in `text`, ignoring spacing and case, or None."""
    needle, _ = fold_with_offsets(wanted)
    needle = needle.strip()
    haystack, origin = fold_with_offsets(text)
    place = haystack.find(needle)
    if place < 0 or not needle:
        return None
    return origin[place], origin[place + len(needle) - 1] + 1


def find_absent_words(response: str, texts: Iterable[str]) -> TextRange | None:
    """Return the first number, else name, else word of the response that no text has, or None.

    Words of a few letters say little by themselves. Words are compared as written, but for their
    case and keyboard: no more than a reader with a search field would see. Scripts without blanks
    between words are compared by their numbers alone.
    """

    def fold(match: regex.Match[str]) -> str:
        return match.group().casefold().translate(KEYBOARD_MAP)

    known = {fold(match) for text in texts for match in WORD_PATTERN.finditer(text)}
    absent = [
        match
        for match in WORD_PATTERN.finditer(response)
        if fold(match) not in known
        and not IS_UNSPACED.search(match.group())
        and (match.group()[0].isnumeric() or len(match.group()) > MAX_FUNCTION_WORD_CHARS)
    ]

    def rank(match: regex.Match[str]) -> tuple[int, int]:
        word = match.group()
        return (0 if word[0].isnumeric() else 1 if word[0].isupper() else 2), match.start()

    return min(absent, key=rank).span() if absent else None


def relocate_words(text: str, start: int, end: int, words: str) -> tuple[int, int] | None:
    """Return where the words that stood at `[start, end)` of an earlier reading stand now, or None.

    A later reader may give a source another text; the occurrence nearest to the old place is taken.
    """
    if not words or text[start:end] == words:
        return start, end
    places = list(_find_exact(words, text))
    nearest = min(places, key=lambda place: abs(place[0] - start), default=None)
    return nearest or find_folded(words, text)


def locate_quote(
    quote: str, response: str, taken: Sequence[TextRange] = (), before: str = ""
) -> TextRange | None:
    """Return `[start, end)` of the quote in the response, in code points; unused places come first.

    Among equal matches the one that follows `before` (the preceding words as the model gives them)
    wins, then the first. Returns None if nothing is similar enough.
    """
    wanted = quote.strip()
    if not wanted:
        return None
    choice = _PlaceRanking(response, tuple(taken), _fold_clusters(before).text.strip())
    whole = _fold_clusters(response)
    needle = _fold_clusters(wanted).text.strip()
    exact = list(_find_exact(wanted, response)) or list(_find_same(needle, whole))
    if exact:
        return min(exact, key=choice.order)
    similar = list(_find_similar(needle, response, whole))
    return min(similar, key=lambda match: choice.order(match[1], match[0]))[1] if similar else None


@dataclass(frozen=True)
class _FoldedText:
    """A text folded for comparison; `starts` and `ends` map each letter to its grapheme cluster."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@lru_cache(maxsize=64)
def _fold_clusters(text: str) -> _FoldedText:
    letters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for cluster in GRAPHEME_CLUSTER.finditer(text):
        if cluster.group().isspace():
            pieces = "" if letters and letters[-1] == " " else " "
        else:
            pieces = "".join(_plain_letters(cluster.group()))
        letters += pieces
        starts += [cluster.start()] * len(pieces)
        ends += [cluster.end()] * len(pieces)
    return _FoldedText("".join(letters), tuple(starts), tuple(ends))


def _plain_letters(cluster: str) -> Iterator[str]:
    once = unicodedata.normalize("NFKD", cluster.translate(TYPOGRAPHY_MAP)).casefold()
    for letter in unicodedata.normalize("NFKD", once):
        digit = unicodedata.decimal(letter, None)
        if unicodedata.category(letter) != "Cf":
            yield letter if digit is None else str(digit)


@dataclass(frozen=True)
class _PlaceRanking:
    """Ranks the places in a response where a quote could stand."""

    response: str
    taken: tuple[TextRange, ...]
    before: str

    def order(
        self, place: TextRange, likeness: float = 1.0
    ) -> tuple[bool, float, bool, float, int]:
        """Return a sort key, least is best: unused, similar, whole words, after `before`, first."""
        start, end = place
        is_taken = any(first < end and start < last for first, last in self.taken)
        is_cut = _is_within_word(self.response, start) or _is_within_word(self.response, end)
        follows = 0.0  # similarity in [0, 1] of the preceding text to `before`
        if self.before:
            preceding = _fold_clusters(self.response[:start]).text.rstrip()[-len(self.before) :]
            follows = Levenshtein.normalized_similarity(preceding, self.before)
        return is_taken, -likeness, is_cut, -follows, start


def _find_exact(wanted: str, text: str) -> Iterator[TextRange]:
    for match in regex.finditer(regex.escape(wanted), text, overlapped=True):
        yield match.span()


def _find_same(needle: str, whole: _FoldedText) -> Iterator[TextRange]:
    for at, end in _find_exact(needle, whole.text) if needle else ():
        begins = at == 0 or whole.starts[at - 1] != whole.starts[at]
        ends = end == len(whole.text) or whole.ends[end] != whole.ends[end - 1]
        if begins and ends:
            yield whole.starts[at], whole.ends[end - 1]


def _find_similar(
    needle: str, response: str, whole: _FoldedText
) -> Iterator[tuple[float, TextRange]]:
    alignment = fuzz.partial_ratio_alignment(needle, whole.text, score_cutoff=MIN_NEAR_RATIO)
    if not needle or alignment is None:
        return
    least, most = int(len(needle) * MIN_SIMILARITY), int(len(needle) / MIN_SIMILARITY) + 1
    firsts, lasts = _find_edges(response, whole)
    if len(needle) > LONG_QUOTE_LETTERS:
        firsts = [
            place for place in firsts if abs(place - alignment.dest_start) <= SEARCH_REACH_LETTERS
        ]
        lasts = [
            place for place in lasts if abs(place - alignment.dest_end) <= SEARCH_REACH_LETTERS
        ]
    for first in firsts:
        for last in lasts[bisect_left(lasts, first + least) : bisect_right(lasts, first + most)]:
            part = whole.text[first:last]
            likeness = Levenshtein.normalized_similarity(part, needle, score_cutoff=MIN_SIMILARITY)
            if likeness >= MIN_SIMILARITY:
                yield likeness, (whole.starts[first], whole.ends[last - 1])


def _find_edges(response: str, whole: _FoldedText) -> tuple[list[int], list[int]]:
    """Return where a stretch of the folded text may begin, and where it may end (exclusive)."""
    firsts: list[int] = []
    lasts: list[int] = []
    for i, letter in enumerate(whole.text):
        if letter == " ":
            continue
        is_first = i == 0 or whole.starts[i - 1] != whole.starts[i]
        is_last = i + 1 == len(whole.text) or whole.ends[i + 1] != whole.ends[i]
        if is_first and not _is_within_word(response, whole.starts[i]):
            firsts.append(i)
        if is_last and not _is_within_word(response, whole.ends[i]):
            lasts.append(i + 1)
    return firsts, lasts


def _is_within_word(text: str, place: int) -> bool:
    """Return True if a cut here would split a grapheme cluster, or a word of a script with blanks.

    So “5” is no word within “1975”; Han, Kana and Thai have no such word edges.
    """
    if not 0 < place < len(text):
        return False
    after = text[place]
    if unicodedata.category(after).startswith("M") or "\u200d" in (after, text[place - 1]):
        return True
    before = WORD_END.search(text, max(0, place - 4), place)
    if before is None or not WORD_CONTINUATION.match(after):
        return False
    return not IS_UNSPACED.match(after) and not IS_UNSPACED.match(before.group())
