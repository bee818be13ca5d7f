"""A head reads the words of verdict texts only where they tell more on cases it has not seen."""

from __future__ import annotations

import numpy as np
import pytest

from core.learning import head_fit
from core.learning.calibration import Fitted
from core.learning.head_fit import Numbered, fitted_head
from core.learning.options import Options
from core.learning.train import BOTH, TEXT, weighed
from core.verdict.head import Calibrator, head_of

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
