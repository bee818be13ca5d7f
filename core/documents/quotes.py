"""Checks in code whether a quote stands in a source, and where. Source: ColMAD 2.3.

First the exact words; then the same words under other spacing, case and typography; then the
likeliest stretch by rapidfuzz, kept only at a score of 90 or more of 100 (its `partial_ratio`,
which is Indel-based) and marked as fuzzy with that score. A quote of fewer than four letters
proves nothing and is never fuzzy.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping

from rapidfuzz import fuzz

from core.records import Passage, Quote

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
