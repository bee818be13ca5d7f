"""Which rows of a set are measured, and the same rows with their evidence taken or exchanged."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from core.evaluation.gold import GoldRow
from core.evaluation.splits import normalised


def sampled(rows: Sequence[GoldRow], limit: int | None, seed: int) -> list[GoldRow]:
    """At most `limit` rows, each label with its share of the set, in the set's order.

    Shares are rounded so that they add up. A label that is there gets one row at least, at the cost
    of the label with most rows, unless there are more labels than rows to choose. The same rows and
    seed always give the same sample.
    """
    if limit is None or limit >= len(rows):
        return list(rows)
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(row.label or "", []).append(place)
    chosen: list[int] = []
    for label, count in _counts({name: len(found) for name, found in places.items()}, limit):
        chosen += random.Random(f"{seed} {label}").sample(places[label], count)
    return [rows[place] for place in sorted(chosen)]


def _counts(there: dict[str, int], limit: int) -> list[tuple[str, int]]:
    """How many of each label: the whole part of its share, then the largest rests."""
    whole = sum(there.values())
    shares = {name: n * limit / whole for name, n in sorted(there.items())}
    counts = {name: int(share) for name, share in shares.items()}
    by_need = sorted(shares, key=lambda name: (counts[name] > 0, counts[name] - shares[name], name))
    for name in by_need[: limit - sum(counts.values())]:
        counts[name] += 1
    for name in [one for one, count in counts.items() if not count]:
        most = max(counts, key=lambda one: counts[one])
        if counts[most] > 1:
            counts[most], counts[name] = counts[most] - 1, 1
    return list(counts.items())


def without_evidence(rows: Sequence[GoldRow]) -> list[GoldRow]:
    """The same rows with nothing to check them against."""
    return [replace(row, documents=(), images=()) for row in rows]


def with_other_evidence(
    rows: Sequence[GoldRow], donors: Sequence[GoldRow], seed: int
) -> list[GoldRow]:
    """The same rows, each over the documents of a row of another group, in its language if any.

    What is still right then was read off the wording. Rows for which there is none are left out.
    """
    pool = [(normalised(row.group), row) for row in donors if row.documents or row.images]
    exchanged = []
    for row in rows:
        group = normalised(row.group)
        others = [d for own, d in pool if own != group and d.documents != row.documents]
        near = [d for d in others if d.language == row.language] or others
        if near and (row.documents or row.images):
            donor = random.Random(f"{seed} {row.id}").choice(near)
            exchanged.append(replace(row, documents=donor.documents, images=donor.images))
    return exchanged
