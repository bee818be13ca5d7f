"""Finds in code where a quote stands in a source, or words quoted from a response in it.

A quote of a source (ColMAD 2.3): first the exact words; then the same words under other spacing,
case and typography; then the likeliest stretch by rapidfuzz, kept only at a score of 90 or more of
100 (its `partial_ratio`, which is Indel-based) and marked as fuzzy with that score. A quote of
fewer than four letters proves nothing and is never fuzzy.

Words of a response (MSA 3.4): exact words first; then the same words under other spacing, case,
typography, Unicode form and digits; then the likeliest stretch between word edges, by rapidfuzz, at
a similarity of `1 - Levenshtein / longer` of 0.9 or more; else nowhere. A place is never looked for
in what people marked, and what is found is always the response's own text.
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

FUZZY_FROM = 90.0
SHORTEST = 4
TYPOGRAPHY = str.maketrans(
    {"“": '"', "”": '"', "„": '"', "«": '"', "»": '"', "‘": "'", "’": "'", "–": "-", "—": "-"}
)


def verify_quote(text: str, passages: Iterable[Passage], sources: Mapping[str, str]) -> Quote:
    """The quote with its status; places are sought in the passages first, then in the sources.

    Offsets in the result are in the source's text.
    """
    wanted = text.strip()
    if not wanted:
        return Quote(text, "not_found", 0.0)
    known = list(passages)
    for passage in known:
        place = passage.text.find(wanted)
        if place >= 0:
            return _at(wanted, passage, place, place + len(wanted))
    for passage in known:
        found = find_folded(wanted, passage.text)
        if found:
            return _at(wanted, passage, *found)
    for source_id, whole in sources.items():
        found = find_folded(wanted, whole)
        if found:
            name = next((p.source for p in known if p.source_id == source_id), "")
            return Quote(wanted, "verified", 100.0, source_id, name, None, *found)
    return _fuzzy(wanted, known)


def _at(wanted: str, passage: Passage, start: int, end: int, fuzzy: float | None = None) -> Quote:
    """The quote at `[start, end)` of the passage; `fuzzy` is the score where it is not the same."""
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


def _fuzzy(wanted: str, passages: Iterable[Passage]) -> Quote:
    best = Quote(wanted, "not_found", 0.0)
    if len(wanted) < SHORTEST:
        return best
    for passage in passages:
        text = passage.text.casefold()
        if len(text) != len(passage.text) or len(text) < len(wanted) // 2:
            continue
        near = fuzz.partial_ratio_alignment(wanted.casefold(), text)
        if near is not None and near.score >= max(FUZZY_FROM, best.score):
            best = _at(wanted, passage, near.dest_start, near.dest_end, round(near.score, 1))
    return best


def folded_with_map(text: str) -> tuple[str, list[int]]:
    """The text without case, typography, unseen and repeated blanks; each character's origin."""
    letters: list[str] = []
    origin: list[int] = []
    for place, letter in enumerate(text):
        if letter > "\x7f" and unicodedata.category(letter) == "Cf":
            continue  # a soft hyphen, a zero-width space: nobody sees it, so nobody quotes it
        if letter.isspace():
            if letters and letters[-1] != " ":
                letters.append(" ")
                origin.append(place)
            continue
        for piece in unicodedata.normalize("NFKC", letter.translate(TYPOGRAPHY)).casefold():
            letters.append(piece)
            origin.append(place)
    return "".join(letters), origin


def find_folded(wanted: str, text: str) -> tuple[int, int] | None:
    """`[start, end)` in `text` of the wanted words whatever their spacing and case, or None."""
    needle, _ = folded_with_map(wanted)
    needle = needle.strip()
    haystack, origin = folded_with_map(text)
    place = haystack.find(needle)
    if place < 0 or not needle:
        return None
    return origin[place], origin[place + len(needle) - 1] + 1


def relocate(text: str, start: int, end: int, words: str) -> tuple[int, int] | None:
    """Where the words stand now that stood at `[start, end)` of an earlier reading, or None.

    A source that is read anew by a later reader may have another text; the same words nearest to
    where they stood are meant.
    """
    if not words or text[start:end] == words:
        return start, end
    near, place = -1, text.find(words)
    while place >= 0:
        if near < 0 or abs(place - start) < abs(near - start):
            near = place
        place = text.find(words, place + 1)
    return (near, near + len(words)) if near >= 0 else find_folded(words, text)


LIKE_FROM = 0.9
# A stretch that is so like its quote has at least this `partial_ratio`; it is much faster.
NEAR_FROM = 75.0
LONG, REACH = 300, 40  # a quote of more letters is sought within so many of one place alone
CLUSTER = regex.compile(r"\X")
OF_A_WORD = regex.compile(r"[\p{L}\p{N}]\p{M}*\Z")
GOES_ON = regex.compile(r"[\p{L}\p{N}\p{M}\u200d]")
Place = tuple[int, int]


def placed(
    quote: str, response: str, taken: Sequence[Place] = (), before: str = ""
) -> Place | None:
    """`[start, end)` in the response, code points; a free place before one that is taken.

    Of equal words those after `before`, the words that a model says come first; else in order.
    """
    wanted = quote.strip()
    if not wanted:
        return None
    choice = _Choice(response, tuple(taken), _folded(before).text.strip())
    whole = _folded(response)
    needle = _folded(wanted).text.strip()
    found = list(_exact(wanted, response)) or list(_same(needle, whole))
    if found:
        return min(found, key=choice.order)
    like = list(_like(needle, response, whole))
    return min(like, key=lambda one: choice.order(one[1], one[0]))[1] if like else None


@dataclass(frozen=True)
class _Folded:
    """A text as it is compared; of each letter the cluster `[start, end)` that it is of."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]


@lru_cache(maxsize=64)
def _folded(text: str) -> _Folded:
    letters: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for cluster in CLUSTER.finditer(text):
        if cluster.group().isspace():
            pieces = "" if letters and letters[-1] == " " else " "
        else:
            pieces = "".join(_plain(cluster.group()))
        letters += pieces
        starts += [cluster.start()] * len(pieces)
        ends += [cluster.end()] * len(pieces)
    return _Folded("".join(letters), tuple(starts), tuple(ends))


def _plain(cluster: str) -> Iterator[str]:
    once = unicodedata.normalize("NFKD", cluster.translate(TYPOGRAPHY)).casefold()
    for letter in unicodedata.normalize("NFKD", once):
        digit = unicodedata.decimal(letter, None)
        if unicodedata.category(letter) != "Cf":
            yield letter if digit is None else str(digit)


@dataclass(frozen=True)
class _Choice:
    response: str
    taken: tuple[Place, ...]
    before: str

    def order(self, place: Place, likeness: float = 1.0) -> tuple[bool, float, bool, float, int]:
        """The least is the best: free, like, whole words, after the right words, first."""
        start, end = place
        is_taken = any(first < end and start < last for first, last in self.taken)
        is_cut = _is_within_word(self.response, start) or _is_within_word(self.response, end)
        return is_taken, -likeness, is_cut, -self._follows(start), start

    def _follows(self, start: int) -> float:
        """How like what stands before the place is to the words that should, in [0, 1]."""
        if not self.before:
            return 0.0
        there = _folded(self.response[:start]).text.rstrip()[-len(self.before) :]
        return Levenshtein.normalized_similarity(there, self.before)


def _exact(wanted: str, response: str) -> Iterator[Place]:
    start = response.find(wanted)
    while start >= 0:
        yield start, start + len(wanted)
        start = response.find(wanted, start + 1)


def _same(needle: str, whole: _Folded) -> Iterator[Place]:
    at = whole.text.find(needle) if needle else -1
    while at >= 0:
        last = at + len(needle) - 1
        begins = at == 0 or whole.starts[at - 1] != whole.starts[at]
        ends = last + 1 == len(whole.text) or whole.ends[last + 1] != whole.ends[last]
        if begins and ends:
            yield whole.starts[at], whole.ends[last]
        at = whole.text.find(needle, at + 1)


def _like(needle: str, response: str, whole: _Folded) -> Iterator[tuple[float, Place]]:
    near = fuzz.partial_ratio_alignment(needle, whole.text, score_cutoff=NEAR_FROM)
    if not needle or near is None:
        return
    least, most = int(len(needle) * LIKE_FROM), int(len(needle) / LIKE_FROM) + 1
    firsts, lasts = _edges(response, whole)
    if len(needle) > LONG:
        firsts = [place for place in firsts if abs(place - near.dest_start) <= REACH]
        lasts = [place for place in lasts if abs(place - near.dest_end) <= REACH]
    for first in firsts:
        for last in lasts[bisect_left(lasts, first + least) : bisect_right(lasts, first + most)]:
            part = whole.text[first:last]
            likeness = Levenshtein.normalized_similarity(part, needle, score_cutoff=LIKE_FROM)
            if likeness >= LIKE_FROM:
                yield likeness, (whole.starts[first], whole.ends[last - 1])


def _edges(response: str, whole: _Folded) -> tuple[list[int], list[int]]:
    """Where in the folded text a stretch may begin, and where it may end (exclusive)."""
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
    """True where a cut would part a cluster, or a word of a script that puts blanks between words.

    So “5” within “1975” is no word; Han, Kana and Thai have no such edges.
    """
    if not 0 < place < len(text):
        return False
    after = text[place]
    if unicodedata.category(after).startswith("M") or "\u200d" in (after, text[place - 1]):
        return True
    before = OF_A_WORD.search(text, max(0, place - 4), place)
    if before is None or not GOES_ON.match(after):
        return False
    return not IS_UNSPACED.match(after) and not IS_UNSPACED.match(before.group())
