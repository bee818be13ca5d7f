"""Votes: the more frequent label, its share, and no label out of nothing."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from core.debate.votes import tally
from core.records import Label

LABELS = st.lists(st.sampled_from(["supported", "hallucinated", "unclear"]))
OTHER: dict[Label, Label] = {
    "supported": "hallucinated", "hallucinated": "supported", "unclear": "unclear",
}  # fmt: skip


@given(LABELS)
def test_the_label_is_the_more_frequent_and_neither_is_favoured(labels: Sequence[Label]) -> None:
    votes = tally(labels)
    turned = tally(OTHER[label] for label in labels)
    assert turned.label == OTHER[votes.label]
    assert votes.cast + votes.silent == len(labels)
    if votes.label != "unclear":
        assert labels.count(votes.label) > labels.count(OTHER[votes.label])


@given(LABELS)
def test_the_share_leans_to_the_label_and_silence_moves_nothing(labels: Sequence[Label]) -> None:
    votes, louder = tally(labels), tally([*labels, "unclear"], len(labels) + 3)
    assert (louder.label, louder.share) == (votes.label, votes.share)
    if votes.share is None:
        assert votes.label == "unclear"
    else:
        sides = {True: "hallucinated", False: "supported"}
        expected = "unclear" if votes.share == 0.5 else sides[votes.share > 0.5]
        assert votes.label == expected


def test_it_is_told_in_words() -> None:
    words = tally(["hallucinated", "hallucinated", "supported"], 4).words("judgement")
    assert words == "Of 4 judgements 2 say hallucinated, 1 supported, 1 gave no label."
