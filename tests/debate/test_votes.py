"""Votes: a label is what more than half of all say, and p is on its side."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.debate.votes import tally
from core.schema.records import Label

LABELS = st.lists(st.sampled_from(["supported", "hallucinated", "unclear", None]))
OTHER: dict[Label, Label] = {
    "supported": "hallucinated", "hallucinated": "supported", "unclear": "unclear",
}  # fmt: skip


@given(LABELS)
def test_the_label_is_what_more_than_half_say_and_neither_is_favoured(
    labels: Sequence[Label | None],
) -> None:
    votes = tally(labels)
    turned = tally(label and OTHER[label] for label in labels)
    assert turned.label == OTHER[votes.label]
    assert votes.cast + votes.silent == votes.asked == len(labels)
    most = [
        label for label in ("supported", "hallucinated") if 2 * labels.count(label) > len(labels)
    ]
    assert [votes.label] == (most or ["unclear"])


@given(LABELS, st.sampled_from(["unclear", None]), st.integers(0, 9))
def test_silence_and_faults_make_no_label(
    labels: Sequence[Label | None], silence: Label | None, place: int
) -> None:
    said = tally(labels)
    quieter = tally([*labels[:place], silence, *labels[place + 1 :]])
    louder = tally([*labels, silence])
    missing = tally(labels, len(labels) + 1)
    for votes in (quieter, louder, missing):
        assert votes.label in (said.label, "unclear")


@given(LABELS)
def test_p_is_on_the_side_of_the_label_and_who_was_lost_is_absent_from_it(
    labels: Sequence[Label | None],
) -> None:
    votes = tally(labels)
    assert tally([*labels, None]).p == votes.p == tally(labels, len(labels) + 2).p
    assert (votes.p is None) == (votes.cast == 0)
    if votes.p is None or votes.p == 0.5:
        assert votes.label == "unclear"
    elif votes.label != "unclear":
        assert votes.label == ("hallucinated" if votes.p > 0.5 else "supported")


def test_one_of_three_decides_nothing_whatever_keeps_the_others_silent() -> None:
    assert tally(["hallucinated", "unclear", "unclear"]).label == "unclear"
    assert tally(["hallucinated", "unclear", "unclear"]).p == pytest.approx(2 / 3)
    assert tally(["hallucinated", None, None]).label == "unclear"
    assert tally(["hallucinated", "hallucinated", "unclear"]).label == "hallucinated"


def test_a_tie_is_of_those_who_all_gave_a_label() -> None:
    assert tally(["hallucinated", "supported"]).is_tie
    assert not tally(["hallucinated", "supported", "unclear"]).is_tie
    assert not tally(["hallucinated", "supported"], 3).is_tie
    assert not tally([]).is_tie


def test_it_is_told_in_words() -> None:
    words = tally(["hallucinated", "hallucinated", "supported"], 4).words("judgement")
    assert words == "Of 4 judgements 2 say hallucinated, 1 supported, 1 gave no label."
