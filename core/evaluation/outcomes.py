"""Hold the predictions on labelled rows, and keep them in the home.

A kept prediction is found by the digest of all that was read, so a row whose text changed is
checked again, and a row without its evidence is another row. A process that is killed loses only
its current row; an incomplete line is skipped.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from core.evaluation.dataset_files import GoldRow, GoldSpan
from core.learning.metrics import BoolArray, FloatArray, IndexArray, number_names
from core.runtime.errors import ConfigError, InputError
from core.schema.records import Label

PRIOR_P = 0.5
FAILED_CAUSE, REFUSED_CAUSE = "failed", "refused"  # causes of rows without an answer
UNREADABLE_CAUSE = "unreadable_reply"
EVALUATIONS_FOLDER = "evaluations"
SPAN_FIELDS = ("spans", "soft", "shown")


@dataclass(frozen=True)
class Prediction:
    """The prediction on one row.

    `p` is p_hallucinated, for an abstention the one that the engine had before it abstained; None
    if it had none. `spans` are the words found wrong, `shown` those that a person sees under that
    verdict, `soft` every stretch with the probability that it is wrong; all are code points in the
    response. `cause` says why it was `unclear`. `openings` are the agents' first answers, given
    independently; `statements` holds the label of each statement, `turns` the debate's turns.
    `calls`, `tokens` and `cost` (US dollars, None if unknown) are those of language models.
    `reason` is how the judge's text begins.
    """

    label: Label
    p: float | None = None
    spans: tuple[GoldSpan, ...] = ()
    soft: tuple[GoldSpan, ...] = ()
    cause: str = ""
    seconds: float = 0.0
    shown: tuple[GoldSpan, ...] = ()
    openings: tuple[Label, ...] = ()
    statements: tuple[Label, ...] = ()
    turns: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float | None = 0.0
    reason: str = ""

    @property
    def is_failure(self) -> bool:
        """True if there is no answer: the row failed, or was refused."""
        return self.cause.split(":")[0] in (FAILED_CAUSE, REFUSED_CAUSE)


@dataclass(frozen=True)
class Outcomes:
    """Rows with their predictions, in the same order."""

    rows: Sequence[GoldRow]
    said: Sequence[Prediction]

    @property
    def has_open_golds(self) -> bool:
        """True if some gold labels are `unclear`."""
        return any(row.label == "unclear" for row in self.rows)

    @property
    def has_both(self) -> bool:
        """True if both classes occur among the golds."""
        return len(set(self.wrong.tolist())) == 2

    @property
    def wrong(self) -> BoolArray:
        """(n,) True where the gold is not `supported`: the positive class."""
        return np.array([row.label != "supported" for row in self.rows], dtype=bool)

    @property
    def told(self) -> tuple[Label, ...]:
        """The labels as they are scored: `unclear` counts as right if the gold is `unclear`.

        A failure stays `unclear`, which is never right.
        """
        return tuple(
            "hallucinated"
            if row.label == "unclear" == said.label and not said.is_failure
            else said.label
            for row, said in zip(self.rows, self.said, strict=True)
        )

    @property
    def right(self) -> BoolArray:
        """(n,) True where the label counts as right."""
        gold_labels = ("supported", "hallucinated")
        pairs = zip(self.told, self.wrong.tolist(), strict=True)
        return np.array([label == gold_labels[is_wrong] for label, is_wrong in pairs], dtype=bool)

    @property
    def exact(self) -> BoolArray:
        """(n,) True where the label equals the gold, of three; never for a failure."""
        pairs = zip(self.rows, self.said, strict=True)
        return np.array([r.label == s.label and not s.is_failure for r, s in pairs], dtype=bool)

    @property
    def forced(self) -> BoolArray:
        """(n,) True where there is evidence, so that a label can be forced."""
        return np.array([bool(row.documents or row.images) for row in self.rows], dtype=bool)

    @property
    def answered(self) -> BoolArray:
        """(n,) True where the label is not `unclear`."""
        return np.array([said.label != "unclear" for said in self.said], dtype=bool)

    @property
    def p(self) -> FloatArray:
        """(n,) p_hallucinated; one half if the engine had none."""
        return np.array([PRIOR_P if s.p is None else s.p for s in self.said], dtype=np.float64)

    @cached_property
    def group_keys(self) -> list[str]:
        """The group of each row; related rows share it."""
        return [row.group_key for row in self.rows]

    @property
    def groups(self) -> IndexArray:
        """(n,) the number of each row's group."""
        return number_names(self.group_keys, is_sorted=False)

    @property
    def languages(self) -> IndexArray:
        """(n,) the language number of each row."""
        return number_names([row.language for row in self.rows], is_sorted=False)


def predict_constant(label: Label, rows: Sequence[GoldRow]) -> Outcomes:
    """Return the trivial outcomes in which every row surely has the label; no word is marked."""
    prediction = Prediction(label, 1.0 if label == "hallucinated" else 0.0, statements=(label,))
    return Outcomes(rows, [prediction] * len(rows))


def build_recorded_outcomes(rows: Sequence[GoldRow]) -> Outcomes:
    """Return the recorded verdicts of other detectors, which give no probability and count as sure.

    A verdict that could not be read is `unclear`.
    """
    sure: Mapping[Label, float] = {"hallucinated": 1.0, "supported": 0.0}
    verdicts = {label: Prediction(label, p) for label, p in sure.items()}
    verdicts["unclear"] = Prediction("unclear", cause=UNREADABLE_CAUSE)
    return Outcomes(rows, [verdicts[row.recorded or "unclear"] for row in rows])


def predict_all_marked(rows: Sequence[GoldRow]) -> Outcomes:
    """Return the trivial outcomes in which every row and every character is hallucinated."""
    predictions = []
    for row in rows:
        all_characters = (GoldSpan(0, len(row.response)),)
        predictions.append(
            Prediction("hallucinated", 1.0, all_characters, all_characters, shown=all_characters)
        )
    return Outcomes(rows, predictions)


def compute_row_digest(row: GoldRow) -> str:
    """Return a digest of what an engine sees of a row, which excludes the gold label.

    Raises InputError if an image of the row cannot be read.
    """
    try:
        images = [hashlib.sha256(path.read_bytes()).hexdigest() for path in row.images]
    except OSError as error:
        raise InputError(
            f"{row.place}: expected an image at {error.filename}, found: {error.strerror}."
        ) from error
    parts: list[object] = [row.id, row.response, row.question, row.documents, images]
    if (row.role, row.instruction) != (None, None):
        parts += [row.role, row.instruction]
    text = json.dumps(parts, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def compute_text_digest(row: GoldRow) -> str:
    """Return a digest of what an engine sees but for the id, which may hold a file's name."""
    return compute_row_digest(replace(row, id=""))


def compute_dataset_digest(rows: Sequence[GoldRow]) -> str:
    """Return a digest of the rows with labels and marked words, in order; ids do not count."""
    digest = hashlib.sha256()
    for row in rows:
        gold = [compute_text_digest(row), row.label, msgspec.to_builtins(row.spans)]
        digest.update(json.dumps(gold).encode())
    return digest.hexdigest()


class PredictionCache:
    """Keeps the predictions of one engine on one set in a file of JSON lines.

    The file is locked while it is open, so that no row is checked, and paid for, twice.
    """

    def __init__(
        self,
        home: Path,
        name: str,
        identity: Sequence[str],
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`identity` holds everything that could change a prediction.

        Waits, and says so, while another process has the file open. Raises ConfigError if the home
        cannot be written.
        """
        digest = hashlib.sha256(json.dumps(list(identity)).encode()).hexdigest()[:16]
        self.path = home / EVALUATIONS_FOLDER / f"{name}-{digest}.jsonl"
        self._known: dict[str, Prediction] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._file = self.path.open("a", encoding="utf-8")
            self._lock(tell)
            text = self.path.read_text("utf-8", "replace")
            if text and not text.endswith("\n"):
                self._file.write("\n")  # that line is incomplete
        except OSError as error:
            raise ConfigError(
                f"Expected a folder that can be written at {self.path.parent}, found: "
                f"{error.strerror}. Choose another with --home or COUNTERPOINT_HOME."
            ) from error
        for line in text.split("\n"):  # not splitlines: a cause may hold U+2028
            self._load_line(line)

    def get(self, digest: str) -> Prediction | None:
        """Return the kept prediction of that row, or None."""
        return self._known.get(digest)

    def add(self, digest: str, said: Prediction) -> None:
        """Keep a prediction, written and flushed when this returns."""
        line = {"row": digest} | encode_prediction(said)
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        self._known[digest] = said

    def close(self) -> None:
        """Flush the file to disk and close it."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _lock(self, tell: Callable[[str], None]) -> None:
        """Take the file's lock, which the kernel frees when its process ends."""
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"Another run checks the same rows; this one goes on when it ends ({self.path}).")
            fcntl.flock(self._file, fcntl.LOCK_EX)

    def _load_line(self, line: str) -> None:
        try:
            entry = json.loads(line)
            digest = entry["row"]
            self._known[digest] = decode_prediction(entry)
        except (ValueError, KeyError, TypeError, RecursionError, msgspec.MsgspecError):
            return  # incomplete or foreign line: that row is checked again


def encode_prediction(said: Prediction) -> dict[str, Any]:
    """Return a prediction as plain values, without those that are the default."""
    named = {field.name: (getattr(said, field.name), field.default) for field in fields(said)}
    plain = {name: value for name, (value, default) in named.items() if value != default}
    spans = {name: [astuple(span) for span in plain[name]] for name in SPAN_FIELDS if name in plain}
    return plain | spans


def decode_prediction(entry: Mapping[str, Any]) -> Prediction:
    """Return the prediction that `encode_prediction` wrote.

    Raises ValueError, TypeError or msgspec.MsgspecError for anything else.
    """
    names = [field.name for field in fields(GoldSpan)]
    spans = {
        name: [dict(zip(names, span, strict=True)) for span in entry.get(name, ())]
        for name in SPAN_FIELDS
    }
    return msgspec.convert({**entry, **spans}, Prediction)
