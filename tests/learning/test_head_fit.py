"""A head reads the words of verdict texts where they tell more on cases it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning import head_fit
from core.learning.head_fit import (
    BOTH,
    TEXT,
    Fitted,
    Numbered,
    Reading,
    counted,
    fit_words,
    fitted_head,
    weighed,
)
from core.learning.options import Options
from core.verdict.classifier import Calibrator, grams, head_of, word_part_of

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


WORDS = {True: "contradicts the source", False: "the source carries it"}


def cases(count: int, seed: int, told_by: str) -> Numbered:
    """Cases whose label shows in the words of their texts, or in their vectors."""
    random = np.random.default_rng(seed)
    truth = np.arange(count) % 2 == 0
    vectors = random.normal(size=(count, 4)).astype(np.float32)
    if told_by == "vectors":
        vectors += 2.0 * truth[:, None]
    texts = tuple(
        f"Case {n}: {WORDS[bool(wrong)] if told_by == 'words' else 'nothing to say'}"
        for n, wrong in enumerate(truth)
    )
    groups = tuple(f"{told_by}{seed}-{n}" for n in range(count))
    return Numbered(texts, vectors, (None,) * count, truth, groups)


@pytest.mark.parametrize(("told_by", "read"), [("words", BOTH), ("vectors", TEXT)])
def test_the_head_reads_what_tells_more(told_by: str, read: str) -> None:
    learned, split, fresh = (cases(n, n, told_by) for n in (80, 60, 40))
    found = weighed(fitted_head(learned, Options()), learned, split)
    assert found.card()["read"] == read
    assert found.n == 60
    assert (found.log_loss[BOTH] < found.log_loss[TEXT]) == (read == BOTH)
    p = np.array(found.head.probability(fresh.vectors, fresh.judged, fresh.texts))
    assert ((p >= 0.5) == fresh.truth).mean() > 0.9


def test_what_was_weighed_on_a_split_is_not_sharpened_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    learned, split = cases(80, 80, "words"), cases(60, 60, "words")
    plain = fitted_head(learned, Options())
    told: list[bool] = []

    def looked(*given: object, may_sharpen: bool) -> Fitted:
        told.append(may_sharpen)
        return Fitted(Calibrator(), {}, 60)

    monkeypatch.setattr(head_fit, "calibrated", looked)
    for head in (plain, weighed(plain, learned, split).head):
        head_fit.fit_calibration(head, learned, cases(20, 20, "words"), split, Options())
    assert told == [True, False]


def test_too_small_a_split_decides_nothing() -> None:
    learned, split = cases(80, 80, "words"), cases(10, 10, "words")
    head = fitted_head(learned, Options())
    found = weighed(head, learned, split)
    assert (found.head, found.log_loss) == (head, {})


def test_a_head_with_words_is_stored_whole_and_nothing_turned_round_is_taken() -> None:
    learned, split = cases(80, 80, "words"), cases(60, 60, "words")
    head = weighed(fitted_head(learned, Options()), learned, split).head
    arrays = head.arrays()
    assert head_of(arrays, "none") == head
    with pytest.raises(ValueError, match="turn the order"):
        head_of(arrays | {"shares": np.array([1.0, -1.0, 0.0])}, "none")
    with pytest.raises(ValueError, match="another head"):
        head_of({n: a for n, a in arrays.items() if not n.startswith("words.")}, "none")
