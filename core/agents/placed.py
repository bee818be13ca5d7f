"""Finds where words that a model quotes from a response stand in it.

Exact words first, then the same words under other spacing, case and typography, then the likeliest
stretch by rapidfuzz at 90 or more of 100 (Indel-based `partial_ratio`); else nowhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz import fuzz

from core.evidence.quotes import FUZZY_FROM, SHORTEST, find_folded

SHORTEST_SHARE = 0.8
NO_BLANKS_FROM = "\u0e00"  # from here on lie Thai, Han and Kana, written without blanks


def placed(
    quote: str, response: str, taken: Sequence[tuple[int, int]] = ()
) -> tuple[int, int] | None:
    """`[start, end)` in the response, code points; a free place before one that is taken."""
    wanted = quote.strip()
    if not wanted:
        return None
    exact = _exact(wanted, response)
    free = [place for place in exact if not _overlaps(place, taken)]
    if exact:
        return (free or exact)[0]
    return find_folded(wanted, response) or _likeliest(wanted, response)


def _exact(wanted: str, response: str) -> list[tuple[int, int]]:
    """Every place of the words; at the edges of words before those inside others."""
    places = []
    start = response.find(wanted)
    while start >= 0:
        places.append((start, start + len(wanted)))
        start = response.find(wanted, start + 1)
    return sorted(places, key=lambda place: _is_inside_word(place, response))


def _is_inside_word(place: tuple[int, int], text: str) -> bool:
    """True for “5” within “1975”; scripts without blanks between words have no such edges."""
    start, end = place
    return _is_within_word(text, start) or _is_within_word(text, end)


def _likeliest(wanted: str, response: str) -> tuple[int, int] | None:
    if len(wanted) < SHORTEST or len(response) < len(wanted) * SHORTEST_SHARE:
        return None
    found = fuzz.partial_ratio_alignment(wanted, response, score_cutoff=FUZZY_FROM)
    if found is None or found.score < FUZZY_FROM or found.dest_end <= found.dest_start:
        return None
    start, end = found.dest_start, found.dest_end
    while start < end and response[start].isspace():
        start += 1
    while end > start and response[end - 1].isspace():
        end -= 1
    if end - start < len(wanted) * SHORTEST_SHARE:
        return None
    while _is_within_word(response, start):
        start -= 1
    while _is_within_word(response, end):
        end += 1
    return start, end


def _is_within_word(text: str, place: int) -> bool:
    """True where a cut would part a word of a script that puts blanks between words."""
    around = text[place - 1 : place + 1] if place else ""
    return len(around) == 2 and all(c.isalnum() and c < NO_BLANKS_FROM for c in around)


def _overlaps(place: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    return any(start < place[1] and place[0] < end for start, end in taken)
