"""The classifier that reads the judge's text, and the folders its versions are stored in.

A version has a logistic head and, if it was fine-tuned, its own encoder (CEDA 3.4 eq. 1 and 3.5).
A folder holds plain arrays and a card. It is not trusted: nothing is unpickled, and every file has
a digest that is checked.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt
import regex

from core.llm.encoder import Embedder, Matrix, load_encoder
from core.llm.export import exported_is_current, sha256_of
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import ConfigError
from core.schema.records import Judgement, Label, Verdict
from core.store.versions import SEED_VERSION

FloatArray = npt.NDArray[np.float64]
CalibratorKind = Literal["none", "temperature", "platt", "isotonic"]
CALIBRATOR_KINDS: tuple[CalibratorKind, ...] = get_args(CalibratorKind)
MAX_LOG_ODDS = 30.0  # log odds; beyond it p would be rounded to 0 or 1
CALIBRATOR_ARRAYS: Mapping[CalibratorKind, tuple[str, ...]] = {
    "none": (),
    "temperature": ("slope",),
    "platt": ("slope", "shift"),
    "isotonic": ("knots", "shares"),
}
# Runs of letters or digits, and signs that stand in figures. Scripts that write no spaces are cut
# into single characters, so that pairs of them are n-grams.
NGRAM_WORD_PATTERN = regex.compile(
    r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Khmer}\p{Lao}\p{Myanmar}]"
    r"|[\p{L}\p{M}']+|\p{N}+|[$€£%]"
)
MAX_TEXT_CHARS = 20_000  # characters of a text that are read
NGRAM_SEPARATOR = "\n"  # separates stored n-grams; none contains one
MAX_JUDGE_PROBABILITY = 0.999  # a judge's p is not trusted beyond this
SHARES_ARRAY = "shares"
SCALAR_ARRAYS = ("intercept", "judge_weight", "text_gain")
CALIBRATION_PREFIX, NGRAM_PREFIX = "calibration.", "words."
DEFAULT_SHARES: FloatArray = np.asarray([1.0, 0.0, 0.0])
SEED_FOLDER = Path(__file__).parent / "seed"
HEAD_SCHEMA = 4
# The numbers that versions kept in `head.json` itself, before files had digests.
OLD_SCHEMA_SCALARS = {1: (), 2: ("judge_weight",), 3: ("judge_weight", "text_gain")}
VERSION_ID_PATTERN = re.compile(r"[a-z0-9-]{1,64}")
WEIGHTS_FILE, HEAD_FILE, CARD_FILE = "head.safetensors", "head.json", "card.json"
ENCODER_SUBFOLDER = "encoder"
READ_ERRORS = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
MAX_FILE_BYTES = 256 * 2**20  # of head.json or card.json: enough for a million corrections' ids
MIN_PROBABILITY = 0.0001  # p has four digits and stays strictly between 0 and 1


@dataclass(frozen=True)
class Calibrator:
    """Maps log odds to a probability: `sigmoid(slope·z + shift)` or a piecewise linear curve.

    `knots` are log odds in rising order, `shares` the probability at each of them. Temperature:
    Guo et al. 2017; Platt 1999; isotonic: Zadrozny and Elkan 2002.
    """

    kind: CalibratorKind = "none"
    slope: tuple[float, ...] = (1.0,)
    shift: tuple[float, ...] = (0.0,)
    knots: tuple[float, ...] = ()
    shares: tuple[float, ...] = ()

    def probability(self, log_odds: FloatArray) -> FloatArray:
        """Return a probability for each log odds value, strictly between 0 and 1."""
        if self.kind == "isotonic":
            return np.asarray(np.interp(log_odds, self.knots, self.shares))
        return sigmoid(self.slope[0] * log_odds + self.shift[0])

    def arrays(self) -> dict[str, FloatArray]:
        """Return the numbers that this kind of calibrator has, by name."""
        return {
            name: np.asarray(getattr(self, name), np.float64)
            for name in CALIBRATOR_ARRAYS[self.kind]
        }


IDENTITY_CALIBRATOR = Calibrator()


def restore_calibrator(kind: str, arrays: Mapping[str, FloatArray]) -> Calibrator:
    """Return the calibrator of these arrays. Raises ValueError: no rising curve inside (0, 1)."""
    if kind not in CALIBRATOR_KINDS or set(arrays) != set(CALIBRATOR_ARRAYS[kind]):
        raise ValueError(f"no calibration of the kind {kind!r:.40} from {sorted(arrays)}")
    calibrator = Calibrator(
        kind, **{name: tuple(map(float, arrays[name])) for name in CALIBRATOR_ARRAYS[kind]}
    )
    if kind == "isotonic":
        knots, shares = np.asarray(calibrator.knots), np.asarray(calibrator.shares)
        is_curve = len(knots) == len(shares) > 0 and bool((np.diff(knots) > 0).all())
        if not is_curve or not bool(((shares > 0) & (shares < 1)).all()):
            raise ValueError("an isotonic calibration that is no curve within (0, 1)")
    elif len(calibrator.slope) != 1 or len(calibrator.shift) != 1 or calibrator.slope[0] < 0:
        raise ValueError("a calibration that would turn the order of verdicts round")
    return calibrator


def sigmoid(log_odds: FloatArray) -> FloatArray:
    """Return 1 / (1 + exp(-z)), kept strictly between 0 and 1."""
    return np.asarray(1.0 / (1.0 + np.exp(-np.clip(log_odds, -MAX_LOG_ODDS, MAX_LOG_ODDS))))


@dataclass(frozen=True)
class NgramModel:
    """`score = intercept + Σ weight · tf-idf` over known n-grams, the tf-idf of length 1."""

    grams: tuple[str, ...]
    idf: tuple[float, ...]
    weights: tuple[float, ...]
    intercept: float
    places: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "places", {gram: n for n, gram in enumerate(self.grams)})

    def scores(self, texts: Sequence[str]) -> FloatArray:
        """Return (n,) log odds of hallucinated; the intercept for a text without known n-grams."""
        scores = []
        for text in texts:
            places = sorted(
                {self.places[gram] for gram in extract_ngrams(text) if gram in self.places}
            )
            length = sum(self.idf[place] ** 2 for place in places) ** 0.5
            total = sum(self.idf[place] * self.weights[place] for place in places)
            scores.append(self.intercept + (total / length if length else 0.0))
        return np.array(scores, dtype=np.float64)

    def arrays(self) -> dict[str, FloatArray]:
        """Return its numbers by name; the n-grams are the UTF-8 bytes of one joined text."""
        gram_bytes = np.frombuffer(NGRAM_SEPARATOR.join(self.grams).encode(), dtype=np.uint8)
        numbers = {"idf": self.idf, "weights": self.weights, "intercept": [self.intercept]}
        return {"grams": gram_bytes.astype(np.float64)} | {
            name: np.asarray(values, np.float64) for name, values in numbers.items()
        }


def restore_ngram_model(arrays: Mapping[str, FloatArray]) -> NgramModel:
    """Return the n-gram model stored as these arrays. Raises ValueError: they do not fit."""
    if set(arrays) != {"grams", "idf", "weights", "intercept"} or len(arrays["intercept"]) != 1:
        raise ValueError(f"arrays of no word part: {sorted(arrays)}")
    text = arrays["grams"].astype(np.uint8).tobytes().decode("utf-8")
    known_grams = tuple(text.split(NGRAM_SEPARATOR)) if text else ()
    idf, weights = (tuple(map(float, arrays[name])) for name in ("idf", "weights"))
    if not len(known_grams) == len(idf) == len(weights) == len(set(known_grams)):
        raise ValueError("words and weights of different numbers")
    return NgramModel(known_grams, idf, weights, float(arrays["intercept"][0]))


def extract_ngrams(text: str) -> Iterator[str]:
    """Yield the words of a text and its pairs of neighbouring words, case-folded."""
    words = NGRAM_WORD_PATTERN.findall(text[:MAX_TEXT_CHARS].casefold())
    yield from words
    yield from map(" ".join, itertools.pairwise(words))


@dataclass(frozen=True)
class ClassifierHead:
    """A logistic head: `m = g·(w·z + b) + a·logit(p_judge)`, `z` being the text's embedding.

    Without a p_judge it is `w·z + b`. CEDA has no p_judge: a text hardly tells 0.6 from 0.9, but
    the judge knows. If the words of the text helped on unseen cases, m becomes
    `d·m + e·words(text) + f`.

    `weights` w (width,), `intercept` b, `judge_weight` a, `text_gain` g; `shares` are d, e and f.
    """

    weights: tuple[float, ...]
    intercept: float
    judge_weight: float = 0.0
    text_gain: float = 1.0
    calibrator: Calibrator = IDENTITY_CALIBRATOR
    words: NgramModel | None = None
    shares: tuple[float, float, float] = (1.0, 0.0, 0.0)

    def log_odds(
        self,
        vectors: Matrix,
        judged: Sequence[float | None] | None = None,
        texts: Sequence[str] = (),
    ) -> FloatArray:
        """Return (n,) log odds before calibration; `judged` are the judge's p."""
        judge_ps = judged or [None] * len(vectors)
        scores = vectors.astype(np.float64) @ np.asarray(self.weights) + self.intercept
        scores *= np.asarray([1.0 if p is None else self.text_gain for p in judge_ps])
        scores += self.judge_weight * np.asarray([compute_logit(p) for p in judge_ps])
        if self.words is not None:
            main_share, word_share, shift = self.shares
            scores = main_share * scores + word_share * self.words.scores(texts) + shift
        return np.asarray(scores)

    def probability(
        self,
        vectors: Matrix,
        judged: Sequence[float | None] | None = None,
        texts: Sequence[str] = (),
    ) -> list[float]:
        """Return p_hallucinated of each row, inside (0, 1); arguments as `log_odds`."""
        probabilities = self.calibrator.probability(self.log_odds(vectors, judged, texts))
        return [float(p) for p in probabilities]

    def arrays(self) -> dict[str, FloatArray]:
        """Return all its numbers by name, as they are stored."""
        single = {name: np.asarray([getattr(self, name)], np.float64) for name in SCALAR_ARRAYS}
        curve = {
            CALIBRATION_PREFIX + name: value for name, value in self.calibrator.arrays().items()
        }
        arrays = {"weights": np.asarray(self.weights, np.float64)} | single | curve
        if self.words is None:
            return arrays
        words = {NGRAM_PREFIX + name: value for name, value in self.words.arrays().items()}
        return arrays | words | {SHARES_ARRAY: np.asarray(self.shares, np.float64)}


def restore_head(arrays: Mapping[str, FloatArray], calibration: str) -> ClassifierHead:
    """Return the head of these arrays and calibrator kind. Raises ValueError: they do not fit."""
    curve, words = (
        {name.removeprefix(prefix): a for name, a in arrays.items() if name.startswith(prefix)}
        for prefix in (CALIBRATION_PREFIX, NGRAM_PREFIX)
    )
    main = {
        n: value
        for n, value in arrays.items()
        if not n.startswith((CALIBRATION_PREFIX, NGRAM_PREFIX))
    }
    shares = main.pop(SHARES_ARRAY, DEFAULT_SHARES) if words else DEFAULT_SHARES
    if set(main) != {"weights", *SCALAR_ARRAYS} or any(
        main[name].shape != (1,) for name in SCALAR_ARRAYS
    ):
        raise ValueError(f"arrays of another head: {sorted(main)}")
    if any(value.ndim != 1 or not np.isfinite(value).all() for value in arrays.values()):
        raise ValueError("arrays that are no rows of numbers")
    main_share, word_share, shift = map(float, shares)  # a ValueError where they are not three
    if main_share < 0 or word_share < 0:
        raise ValueError("shares that would turn the order of verdicts round")
    return ClassifierHead(
        tuple(map(float, main["weights"])),
        **{name: float(main[name][0]) for name in SCALAR_ARRAYS},
        calibrator=restore_calibrator(calibration, curve),
        words=restore_ngram_model(words) if words else None,
        shares=(main_share, word_share, shift),
    )


def compute_logit(p: float | None) -> float:
    """Return the log odds of the judge's p as the head reads it, or 0 if the judge gave none."""
    if p is None:
        return 0.0
    bounded = max(1.0 - MAX_JUDGE_PROBABILITY, min(MAX_JUDGE_PROBABILITY, p))
    return math.log(bounded / (1.0 - bounded))


def get_version_folder(home: Path, version: str) -> Path:
    """Return a version's folder; the seed ships with the code. Raises ConfigError: bad name."""
    if version == SEED_VERSION:
        return SEED_FOLDER
    if not VERSION_ID_PATTERN.fullmatch(version):
        raise ConfigError(f"“{version}” is not the name of a classifier version.")
    return home / "models" / version


def save_head(folder: Path, head: ClassifierHead, card: dict[str, Any]) -> None:
    """Write the head and its card, with digests of all files that are already in the folder."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    arrays = head.arrays()
    save_file(arrays, folder / WEIGHTS_FILE)
    text = json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / CARD_FILE).write_text(text, encoding="utf-8")
    files = {  # head.json and card.json have digests of their own
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path not in (folder / HEAD_FILE, folder / CARD_FILE)
    }
    body = {
        "schema": HEAD_SCHEMA,
        "calibration": head.calibrator.kind,
        "arrays": {name: list(value.shape) for name, value in arrays.items()},
        "files": files,
        "card_sha256": compute_json_digest(card),
    }
    (folder / HEAD_FILE).write_text(
        json.dumps(body | {"sha256": compute_json_digest(body)}, indent=1) + "\n"
    )


def load_head(folder: Path) -> tuple[ClassifierHead, dict[str, Any]]:
    """Return the head and card of a folder, checking their digests.

    Its other files are only checked for being there with the right size; see `find_own_encoder`.

    Raises ConfigError: the files cannot be read, or are not as they were written.
    """
    try:
        body, card = _read_json(folder / HEAD_FILE), _read_json(folder / CARD_FILE)
        head = _read_head(folder, body)
    except (OSError, *READ_ERRORS) as error:
        raise ConfigError(
            f"Expected a classifier in {folder}, found none that can be read ({error}). "
            "Activate another version on Retrain."
        ) from error
    if not isinstance(card, dict):
        raise ConfigError(f"Expected a card in {folder}, found {type(card).__name__}.")
    if head is None:
        raise _changed_error("The classifier", folder)
    # Versions from before cards had a checksum are still there and still good.
    if body.get("card_sha256", compute_json_digest(card)) != compute_json_digest(card):
        raise ConfigError(
            f"The card in {folder} is not as it was written (checksum differs), so its figures "
            "cannot be shown and it was not loaded. Activate another version on Retrain."
        )
    return head, card


def find_own_encoder(folder: Path) -> Path | None:
    """Return a version's own encoder or None. Raises ConfigError: a file was changed."""
    encoder = folder / ENCODER_SUBFOLDER
    files = _read_json(folder / HEAD_FILE).get("files")
    if files is None:
        if encoder.is_dir() and not exported_is_current(encoder):
            raise _changed_error("The encoder", encoder)
        return encoder if encoder.is_dir() else None
    for name, stored in files.items():
        if sha256_of(folder / name) != stored.get("sha256"):
            raise _changed_error(
                "The encoder" if name.startswith(ENCODER_SUBFOLDER) else name, folder
            )
    return encoder if any(name.startswith(f"{ENCODER_SUBFOLDER}/") for name in files) else None


def _changed_error(what: str, where: Path) -> ConfigError:
    return ConfigError(
        f"{what} in {where} is not as it was written (checksum differs); it was not "
        "loaded. Activate another version on Retrain."
    )


def _read_json(path: Path) -> Any:
    with path.open("rb") as file:
        data = file.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise ValueError(f"{path.name} has more than {MAX_FILE_BYTES // 2**20} MB")
    return json.loads(data)


def _read_head(folder: Path, body: Mapping[str, Any]) -> ClassifierHead | None:
    """Return the head described by `body`, or None if its digest does not match."""
    if body["schema"] != HEAD_SCHEMA:
        return _read_old_head(body)
    content = {name: value for name, value in body.items() if name != "sha256"}
    if body["sha256"] != compute_json_digest(content):
        return None
    for name, stored in body["files"].items():
        size = (folder / name).stat().st_size
        if size != stored["bytes"]:
            raise ValueError(f"{name} has {size:,} bytes instead of {stored['bytes']:,}")
    if sha256_of(folder / WEIGHTS_FILE) != body["files"][WEIGHTS_FILE]["sha256"]:
        return None
    return restore_head(_load_arrays(folder / WEIGHTS_FILE, body["arrays"]), body["calibration"])


def _load_arrays(path: Path, shapes: Mapping[str, list[int]]) -> dict[str, FloatArray]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    if {name: list(value.shape) for name, value in arrays.items()} != dict(shapes):
        raise ValueError("its arrays are not those that head.json names")
    return arrays


def _read_old_head(body: Mapping[str, Any]) -> ClassifierHead | None:
    """Return the head of an older schema; weights which that schema lacked count nothing."""
    weights = [float(weight) for weight in body["weights"]]
    intercept, names = float(body["intercept"]), OLD_SCHEMA_SCALARS.get(body["schema"], ())
    single = [float(body[name]) for name in names]
    digest = compute_json_digest([body["schema"], weights, intercept, *single])
    is_intact = body["schema"] in OLD_SCHEMA_SCALARS and body["sha256"] == digest
    judge, gain = (*single, *(0.0, 1.0)[len(single) :])
    return ClassifierHead(tuple(weights), intercept, judge, gain) if is_intact else None


def compute_json_digest(value: object) -> str:
    """Return the SHA-256 of a value, independent of how a file lays it out."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def combine_labels(judged: Label, p: float) -> Label:
    """Return the label by judge and classifier together; unclear if they disagree."""
    if p == 0.5:  # no information, as after a coin toss
        return judged
    return judged if (p > 0.5) == (judged == "hallucinated") else "unclear"


@dataclass(frozen=True)
class Classifier:
    """A version ready for use; its `card` says what it learned from and how well it does."""

    version: str
    head: ClassifierHead
    encoder: Embedder
    card: dict[str, Any]

    def probability(self, text: str, judged: float | None = None) -> float:
        """Return p_hallucinated, 4 digits; encoded alone, as int8 is scaled by batch."""
        p = self.head.probability(self.encoder.encode([text]), [judged], [text])[0]
        return min(1.0 - MIN_PROBABILITY, max(MIN_PROBABILITY, round(p, 4)))

    def verdict(self, judgement: Judgement) -> Verdict:
        """Return the label that people see, with its probability; unclear stays unclear.

        If the classifier, which people's corrections teach, and the judge disagree, the verdict is
        unclear and says so: headline and reasons never contradict each other. The probability of a
        result that a tool computed is left as it is.
        """
        if judgement.label == "unclear":
            causes = judgement.cause, judgement.cause_words
            return Verdict("unclear", None, None, judgement.text, *causes, self.version)
        if judgement.by_tool and judgement.p is not None:
            p = min(1.0 - MIN_PROBABILITY, max(MIN_PROBABILITY, judgement.p))
        else:
            p = self.probability(judgement.text, judgement.p)
        label = combine_labels(judgement.label, p)
        if label == "unclear":
            other = "hallucinated" if p > 0.5 else "supported"
            words = f"The judge calls it {judgement.label}, the classifier {other} (p = {p:.2f})."
            prose = judgement.prose or judgement.text
            return Verdict(
                "unclear", None, None, prose, "classifier_disagrees", words, self.version
            )
        confidence = round(max(p, 1.0 - p), 4)
        rationale = judgement.prose or judgement.text
        return Verdict(label, p, confidence, rationale, classifier=self.version)


@lru_cache(maxsize=4)
def load_classifier(home: Path, version: str) -> Classifier:
    """Load a version, once per process. Raises ConfigError: it is damaged."""
    folder = get_version_folder(home, version)
    head, card = load_head(folder)
    encoder = load_encoder(find_own_encoder(folder) or ENCODER_DIR)
    if len(head.weights) != encoder.width:
        raise ConfigError(
            f"Expected a head of {encoder.width} weights in {folder}, found {len(head.weights)}."
        )
    return Classifier(version, head, encoder, card)
