"""The logistic head over a verdict text's embedding and words and the judge's own probability.

`m = g·(w·z + b) + a·logit(p_judge)` with `z` the text's embedding and `p_judge` the judge's own
probability; where the judge gives none, `m = w·z + b`. Source: CEDA 3.4 eq. 1 and 3.5, which have
no `p_judge`: a text hardly tells 0.6 from 0.9, which the judge knows, and says the same again where
it is made from it. Where the text's words (known n-grams with a weight each) told more on cases not
seen, `m` becomes `d·m + e·words(text) + f`. With `c` the calibration, `p_hallucinated = c(m)`:
temperature (Guo et al. 2017), Platt's sigmoid (1999) or isotonic regression (Zadrozny and Elkan
2002). Fitted by `core/learning/head_fit.py` and `calibration.py`, applied with numpy alone.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
import regex

from core.llm.encoder import Matrix

Numbers = npt.NDArray[np.float64]
CalibratorKind = Literal["none", "temperature", "platt", "isotonic"]
KINDS: tuple[CalibratorKind, ...] = get_args(CalibratorKind)
FARTHEST = 30.0  # log odds; beyond it p would be written as 0 or 1
NAMES: Mapping[CalibratorKind, tuple[str, ...]] = {
    "none": (),
    "temperature": ("slope",),
    "platt": ("slope", "shift"),
    "isotonic": ("knots", "shares"),
}


@dataclass(frozen=True)
class Calibrator:
    """Log odds to probability: `sigmoid(slope·z + shift)`, or a line through `knots`.

    `knots` are log odds in rising order, `shares` the probability at each of them.
    """

    kind: CalibratorKind = "none"
    slope: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    knots: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def probability(self, log_odds: Numbers) -> Numbers:
        """Of each its p, strictly between 0 and 1."""
        if self.kind == "isotonic":
            return np.asarray(np.interp(log_odds, self.knots, self.shares))
        return sigmoid(self.slope[0] * log_odds + self.shift[0])

    def arrays(self) -> dict[str, Numbers]:
        """What its kind is made of, by name."""
        return {name: np.asarray(getattr(self, name), np.float64) for name in NAMES[self.kind]}


UNCHANGED = Calibrator()


def calibrator_of(kind: str, arrays: Mapping[str, Numbers]) -> Calibrator:
    """The calibrator that was stored as these arrays.

    Raises:
        ValueError: it is none, or would give what is no probability.
    """
    if kind not in KINDS or set(arrays) != set(NAMES[kind]):
        raise ValueError(f"no calibration of the kind {kind!r:.40} from {sorted(arrays)}")
    found = Calibrator(kind, **{name: tuple(map(float, arrays[name])) for name in NAMES[kind]})
    if kind == "isotonic":
        knots, shares = np.asarray(found.knots), np.asarray(found.shares)
        is_curve = len(knots) == len(shares) > 0 and bool((np.diff(knots) > 0).all())
        if not is_curve or not bool(((shares > 0) & (shares < 1)).all()):
            raise ValueError("an isotonic calibration that is no curve within (0, 1)")
    elif len(found.slope) != 1 or len(found.shift) != 1 or found.slope[0] < 0:
        raise ValueError("a calibration that would turn the order of verdicts round")
    return found


def sigmoid(log_odds: Numbers) -> Numbers:
    """1 / (1 + exp(-z)), never quite 0 or 1."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -FARTHEST, FARTHEST))))


# Runs of letters or digits, and signs that stand in figures. Scripts that write no spaces are cut
# into single characters, so that pairs of them are n-grams.
WORD = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}]"
    r"|[\p{L}\p{M}']+|\p{N}+|[$€£%]"
)
LONGEST = 20_000  # characters of a text that are read
BREAK = "\n"  # between n-grams as they are stored: none holds one


@dataclass(frozen=True)
class WordPart:
    """`score = intercept + Σ weight · tf-idf`, the tf-idf of a text's known n-grams of length 1.

    `idf` and `weights` are those of `grams`, in their order.
    """

    grams: tuple[str, ...]
    idf: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {gram: n for n, gram in enumerate(self.grams)})

    def scores(self, texts: Sequence[str]) -> Numbers:
        """(n,) how far each leans to hallucinated, in log odds; the intercept for unknown words."""
        return np.array([self._score(text) for text in texts], dtype=np.float64)

    def _score(self, text: str) -> float:
        found = sorted({self.places[gram] for gram in grams(text) if gram in self.places})
        length = sum(self.idf[place] ** 2 for place in found) ** 0.5
        total = sum(self.idf[place] * self.weights[place] for place in found)
        return self.intercept + (total / length if length else 0.0)

    def arrays(self) -> dict[str, Numbers]:
        """Its numbers by name, the n-grams as the bytes of one text."""
        written = np.frombuffer(BREAK.join(self.grams).encode(), dtype=np.uint8)
        return {
            "grams": written.astype(np.float64),
            "idf": np.asarray(self.idf, np.float64),
            "weights": np.asarray(self.weights, np.float64),
            "intercept": np.asarray([self.intercept], np.float64),
        }


def word_part_of(arrays: Mapping[str, Numbers]) -> WordPart:
    """The part that was stored as these arrays.

    Raises:
        ValueError: they are others, or do not fit together.
    """
    if set(arrays) != {"grams", "idf", "weights", "intercept"} or len(arrays["intercept"]) != 1:
        raise ValueError(f"arrays of no word part: {sorted(arrays)}")
    text = arrays["grams"].astype(np.uint8).tobytes().decode("utf-8")
    found = tuple(text.split(BREAK)) if text else ()
    idf, weights = (tuple(map(float, arrays[name])) for name in ("idf", "weights"))
    if not len(found) == len(idf) == len(weights) == len(set(found)):
        raise ValueError("words and weights of different numbers")
    return WordPart(found, idf, weights, float(arrays["intercept"][0]))


def grams(text: str) -> Iterator[str]:
    """Words and pairs of neighbouring words, without regard to case."""
    words = WORD.findall(text[:LONGEST].casefold())
    yield from words
    for first, second in itertools.pairwise(words):
        yield f"{first} {second}"


SUREST = 0.999  # nothing said by one judge counts for more
SHARES = "shares"
SINGLE = ("intercept", "judge_weight", "text_gain")
CALIBRATION, WORDS = "calibration.", "words."


@dataclass(frozen=True)
class Head:
    """Logistic weights over an embedding: (width,) float64, the intercept, the judge's weight.

    `text_gain` is how much of what the text says counts where the judge gave a probability.
    `shares` are d, e and f: how much all that counts beside the words, these, and a shift.
    """

    weights: tuple[float, ...]
    intercept: float
    judge_weight: float = 0.0
    text_gain: float = 1.0
    calibrator: Calibrator = UNCHANGED
    words: WordPart | None = None
    shares: tuple[float, float, float] = (1.0, 0.0, 0.0)

    def log_odds(
        self,
        vectors: Matrix,
        judged: Sequence[float | None] | None = None,
        texts: Sequence[str] = (),
    ) -> Numbers:
        """(n,) before calibration; `judged` holds the judge's own p for each, None for none.

        `texts` are what the vectors are of; only a head with words reads them.
        """
        given = judged or [None] * len(vectors)
        scores = vectors.astype(np.float64) @ np.asarray(self.weights) + self.intercept
        scores *= np.asarray([1.0 if p is None else self.text_gain for p in given])
        scores += self.judge_weight * np.asarray([logit_of(p) for p in given])
        if self.words is not None:
            main, own, shift = self.shares
            scores = main * scores + own * self.words.scores(texts) + shift
        return np.asarray(scores)

    def probability(
        self,
        vectors: Matrix,
        judged: Sequence[float | None] | None = None,
        texts: Sequence[str] = (),
    ) -> list[float]:
        """p_hallucinated of each row, strictly between 0 and 1; reads what `log_odds` does."""
        told = self.log_odds(vectors, judged, texts)
        return [float(p) for p in self.calibrator.probability(told)]

    def arrays(self) -> dict[str, Numbers]:
        """All its numbers by name, as they are stored."""
        single = {name: np.asarray([getattr(self, name)], np.float64) for name in SINGLE}
        curve = {CALIBRATION + name: value for name, value in self.calibrator.arrays().items()}
        found = {"weights": np.asarray(self.weights, np.float64)} | single | curve
        if self.words is None:
            return found
        words = {WORDS + name: value for name, value in self.words.arrays().items()}
        return found | words | {SHARES: np.asarray(self.shares, np.float64)}


def head_of(arrays: Mapping[str, Numbers], calibration: str) -> Head:
    """The head that was stored as these arrays; `calibration` is its calibrator's kind.

    Raises:
        ValueError: they are others than a head is made of, or no numbers.
    """
    curve = {n.removeprefix(CALIBRATION): a for n, a in arrays.items() if n.startswith(CALIBRATION)}
    words = {n.removeprefix(WORDS): a for n, a in arrays.items() if n.startswith(WORDS)}
    own = {n: value for n, value in arrays.items() if not n.startswith((CALIBRATION, WORDS))}
    shares = own.pop(SHARES, np.asarray([1.0, 0.0, 0.0])) if words else np.asarray([1.0, 0.0, 0.0])
    if set(own) != {"weights", *SINGLE} or any(own[name].shape != (1,) for name in SINGLE):
        raise ValueError(f"arrays of another head: {sorted(own)}")
    if any(value.ndim != 1 or not np.isfinite(value).all() for value in arrays.values()):
        raise ValueError("arrays that are no rows of numbers")
    weights = tuple(map(float, own["weights"]))
    single = {name: float(own[name][0]) for name in SINGLE}
    main, of_words, shift = map(float, shares)  # a ValueError where they are not three
    if main < 0 or of_words < 0:
        raise ValueError("shares that would turn the order of verdicts round")
    return Head(
        weights,
        **single,
        calibrator=calibrator_of(calibration, curve),
        words=word_part_of(words) if words else None,
        shares=(main, of_words, shift),
    )


def logit_of(p: float | None) -> float:
    """The judge's p as the head takes it; 0, no leaning, where the judge gave none."""
    if p is None:
        return 0.0
    bounded = max(1.0 - SUREST, min(SUREST, p))
    return math.log(bounded / (1.0 - bounded))
