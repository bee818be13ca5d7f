"""What was said of each row, kept in the home line by line: an evaluation goes on where it ended.

A line stands for a row by the digest of all that was read, so a row whose text changed is checked
anew, and a row without its evidence is another row. A process that is killed loses the row under
way; half a line is passed over.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from core.errors import ConfigError, InputError
from core.evaluation.gold import GoldRow, GoldSpan
from core.evaluation.outcomes import Prediction
from core.records import Label

FOLDER = "evaluations"
LABELS = ("supported", "hallucinated", "unclear")


def digest_of(row: GoldRow) -> str:
    """Names what an engine is shown of a row; its gold label is not among it.

    Raises:
        InputError: an image of the row cannot be read.
    """
    try:
        images = [hashlib.sha256(path.read_bytes()).hexdigest() for path in row.images]
    except OSError as error:
        raise InputError(
            f"{row.place}: expected an image at {error.filename}, found: {error.strerror}."
        ) from error
    shown = [row.id, row.response, row.question, row.documents, images]
    text = json.dumps(shown, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class Kept:
    """The predictions of one engine on one set; a file of JSON lines."""

    def __init__(self, home: Path, name: str, identity: Sequence[str]) -> None:
        """`identity` holds all that another prediction could come from.

        Raises:
            ConfigError: the home cannot be written.
        """
        digest = hashlib.sha256(json.dumps(list(identity)).encode()).hexdigest()[:16]
        self.path = home / FOLDER / f"{name}-{digest}.jsonl"
        self._known: dict[str, Prediction] = {}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = self.path.read_text("utf-8", "replace") if self.path.exists() else ""
            self._file = self.path.open("a", encoding="utf-8")
            if text and not text.endswith("\n"):
                self._file.write("\n")  # the rest of that line was never written
        except OSError as error:
            raise ConfigError(
                f"Expected a folder that can be written at {self.path.parent}, found: "
                f"{error.strerror}. Choose another with --home or COUNTERPOINT_HOME."
            ) from error
        for line in text.split("\n"):  # nothing else ends a line: a cause may hold U+2028
            self._take(line)

    def get(self, digest: str) -> Prediction | None:
        """What was said of that row, if it was."""
        return self._known.get(digest)

    def add(self, digest: str, said: Prediction) -> None:
        """Keep a prediction; it is on its way to the disk when this returns."""
        line: dict[str, object] = {
            "row": digest,
            "label": said.label,
            "p": said.p,
            "cause": said.cause,
        }
        line |= {"seconds": said.seconds, "turns": said.turns}
        line |= {name: own for name, own in _labels(said).items() if own}
        line |= {name: _plain(spans) for name, spans in _spans(said).items() if spans}
        self._file.write(json.dumps(line, ensure_ascii=False) + "\n")
        self._file.flush()
        self._known[digest] = said

    def close(self) -> None:
        """Write what is left, as safely as the system can."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()

    def _take(self, line: str) -> None:
        try:
            entry = json.loads(line)
            self._known[entry["row"]] = _prediction(entry)
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # half a line, or not ours: that row is checked again


def _spans(said: Prediction) -> dict[str, tuple[GoldSpan, ...]]:
    return {"spans": said.spans, "soft": said.soft, "shown": said.shown}


def _labels(said: Prediction) -> dict[str, tuple[Label, ...]]:
    return {"openings": said.openings, "statements": said.statements}


def _plain(spans: Sequence[GoldSpan]) -> list[tuple[int, int, float]]:
    return [(span.start, span.end, span.p) for span in spans]


def _prediction(entry: dict[str, Any]) -> Prediction:
    if entry["label"] not in LABELS:
        raise ValueError(entry["label"])
    spans, soft, shown = (
        tuple(GoldSpan(int(a), int(b), float(p)) for a, b, p in entry.get(name, ()))
        for name in ("spans", "soft", "shown")
    )
    openings, statements = (tuple(entry.get(name, ())) for name in ("openings", "statements"))
    if not {*openings, *statements} <= {*LABELS}:
        raise ValueError(entry)
    return Prediction(
        entry["label"],
        None if entry["p"] is None else float(entry["p"]),
        spans,
        soft,
        str(entry["cause"]),
        float(entry["seconds"]),
        shown,
        openings,
        statements,
        int(entry.get("turns", 0)),
    )
