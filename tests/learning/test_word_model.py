"""Words of verdict texts: counted once, weighed by how they part the labels, by kind of case."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning.word_model import Reading, counted, fit_words
from core.verdict.head import grams, word_part_of

WRONG = ["the sum is wrong", "a wrong date", "this is wrong again", "wrong in part"]
RIGHT = ["the sum holds", "the date holds", "this holds as well", "it holds in full"]
IS_WRONG = np.array([True] * 4 + [False] * 4)


def of_one_view(texts: list[str], kinds: list[str] | None = None) -> list[Reading]:
    return [
        Reading(((text,),), kind)
        for text, kind in zip(texts, kinds or [""] * len(texts), strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It IS 7.", ["it", "is", "7", "it is", "is 7"]),
        ("三艘船", ["三", "艘", "船", "三 艘", "艘 船"]),
        ("é́tude 5%", ["é́tude", "5", "%", "é́tude 5", "5 %"]),
        ("", []),
    ],
)
def test_words_and_pairs_in_any_script(text: str, expected: list[str]) -> None:
    assert list(grams(text)) == expected


def test_words_that_part_the_labels_decide_on_texts_not_seen() -> None:
    found = counted(of_one_view([*WRONG, *RIGHT, "plainly wrong here", "that holds"]))
    model = fit_words(found, np.arange(8), IS_WRONG)
    wrong, right = model.scores(found, np.array([8, 9]))
    assert wrong > 0 > right


def test_the_same_word_may_mean_another_thing_of_another_kind() -> None:
    texts = ["it is exact", "it is vague"] * 8
    kinds = (["sum"] * 2 + ["poem"] * 2) * 4
    is_wrong = np.array([False, True, True, False] * 4)
    found = counted(of_one_view(texts, kinds))
    model = fit_words(found, np.arange(16), is_wrong)
    sum_exact, sum_vague, poem_exact, poem_vague = model.scores(found, np.arange(4))
    assert sum_exact < sum_vague
    assert poem_exact > poem_vague


def test_a_kind_that_was_not_seen_is_judged_by_what_all_kinds_share() -> None:
    found = counted(of_one_view([*WRONG, *RIGHT, "wrong"], [*["sum"] * 8, "new"]))
    model = fit_words(found, np.arange(8), IS_WRONG)
    assert model.scores(found, np.array([8]))[0] > 0


def test_a_text_of_unknown_words_leans_nowhere() -> None:
    found = counted(of_one_view([*WRONG, *RIGHT, "xyzzy plugh", ""]))
    model = fit_words(found, np.arange(8), IS_WRONG)
    unknown, empty = model.scores(found, np.array([8, 9]))
    assert unknown == empty == pytest.approx(model.intercept)


def test_what_is_scored_teaches_nothing() -> None:
    """Vocabulary and weights come from the cases that are fitted on alone."""
    texts = [*WRONG, *RIGHT]
    alone = counted(of_one_view(texts))
    beside = counted(of_one_view([*texts, "wrong wrong wrong", "unseen words galore"]))
    first = fit_words(alone, np.arange(8), IS_WRONG)
    second = fit_words(beside, np.arange(8), IS_WRONG)
    assert first.scores(alone, np.arange(8)) == pytest.approx(
        second.scores(beside, np.arange(8)), abs=1e-3
    )


def test_views_are_read_apart() -> None:
    readings = [Reading(((text,), ("same words",)), "") for text in [*WRONG, *RIGHT]]
    found = counted(readings)
    of_text = fit_words(found.of_views([0]), np.arange(8), IS_WRONG)
    of_other = fit_words(found.of_views([1]), np.arange(8), IS_WRONG)
    assert np.ptp(of_text.scores(found.of_views([0]), np.arange(8))) > 1
    assert np.ptp(of_other.scores(found.of_views([1]), np.arange(8))) < 1e-6


def test_a_head_keeps_the_model_as_plain_numbers_that_say_the_same() -> None:
    texts = [*WRONG, *RIGHT, "plainly wrong", "三艘船 holds", "nothing known", ""]
    found = counted(of_one_view(texts))
    model = fit_words(found, np.arange(8), IS_WRONG)
    part = word_part_of(model.part(found).arrays())
    assert part == model.part(found)
    assert part.scores(texts) == pytest.approx(model.scores(found, np.arange(12)))


@pytest.mark.parametrize("name", ["grams", "idf", "weights"])
def test_words_that_do_not_fit_their_weights_are_refused(name: str) -> None:
    found = counted(of_one_view([*WRONG, *RIGHT]))
    arrays = fit_words(found, np.arange(8), IS_WRONG).part(found).arrays()
    with pytest.raises(ValueError, match="different numbers"):
        word_part_of({**arrays, name: arrays[name][:-30]})
    with pytest.raises(ValueError, match="no word part"):
        word_part_of({key: value for key, value in arrays.items() if key != name})
