"""The classifier over the judge's text, and a version of it as a folder that is not trusted.

An encoder and a logistic head (`head.py`); where it was fine-tuned it has an encoder of its own.
`confidence = max(p, 1 - p)`. Source: CEDA 3.4 eq. 1 and 3.5.

A folder holds plain arrays and a card; nothing is unpickled. `head.json` names the arrays of
`head.safetensors` with their shapes, and size and sha256 of every other file; a digest guards it.
Schemas 1 to 3, from before, kept the weights in `head.json`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from core.config import ENCODER_DIR
from core.errors import ConfigError
from core.llm.encoder import Embedder, load_encoder
from core.llm.export import exported_is_current, sha256_of
from core.records import Judgement, Label, Verdict
from core.store.versions import SEED_VERSION
from core.verdict.head import Head, Numbers, head_of

SEED_FOLDER = Path(__file__).parent / "seed"
SCHEMA = 4
# Schemas of versions from before files had digests, texts had a gain, the judge gave a probability.
IN_ONE_FILE, WITHOUT_GAIN, WITHOUT_JUDGE = 3, 2, 1
KNOWN = (WITHOUT_JUDGE, WITHOUT_GAIN, IN_ONE_FILE, SCHEMA)
VERSION_ID = re.compile(r"[a-z0-9-]{1,64}")
WEIGHTS, HEAD, CARD = "head.safetensors", "head.json", "card.json"
ENCODER = "encoder"
UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, OverflowError, RecursionError)
MOST_BYTES = 256 * 2**20  # of a head's or card's file: a million corrections' ids and more


def version_folder(home: Path, version: str) -> Path:
    """Where a version lies; the seed lies in the code."""
    if version == SEED_VERSION:
        return SEED_FOLDER
    if not VERSION_ID.fullmatch(version):
        raise ConfigError(f"“{version}” is not the name of a classifier version.")
    return home / "models" / version


def save_head(folder: Path, head: Head, card: dict[str, Any]) -> None:
    """Write the head and its card, with digests of every file that lies in the folder already."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    arrays = head.arrays()
    save_file(arrays, folder / WEIGHTS)
    text = json.dumps(card, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    (folder / CARD).write_text(text, encoding="utf-8")
    body = {
        "schema": SCHEMA,
        "calibration": head.calibrator.kind,
        "arrays": {name: list(value.shape) for name, value in arrays.items()},
        "files": _files(folder),
        "card_sha256": json_digest(card),
    }
    (folder / HEAD).write_text(json.dumps(body | {"sha256": json_digest(body)}, indent=1) + "\n")


def _files(folder: Path) -> dict[str, dict[str, Any]]:
    """Size and sha256 of all but the two files that have digests of their own."""
    return {
        path.relative_to(folder).as_posix(): {
            "bytes": path.stat().st_size,
            "sha256": sha256_of(path),
        }
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path not in (folder / HEAD, folder / CARD)
    }


def load_head(folder: Path) -> tuple[Head, dict[str, Any]]:
    """The head and card in a folder; of its other files only that they are there and how long.

    Raises:
        ConfigError: they are missing, of another schema, or were changed.
    """
    try:
        body, card = _read(folder / HEAD), _read(folder / CARD)
        head, is_intact = _head_in(folder, body)
    except (OSError, *UNREADABLE) as error:
        raise ConfigError(
            f"Expected a classifier in {folder}, found none that can be read ({error}). "
            "Activate another version on Retrain."
        ) from error
    if not isinstance(card, dict):
        raise ConfigError(f"Expected a card in {folder}, found {type(card).__name__}.")
    if not is_intact:
        raise _changed("The classifier", folder)
    # Versions from before cards had a checksum are still there and still good.
    if body.get("card_sha256", json_digest(card)) != json_digest(card):
        raise ConfigError(
            f"The card in {folder} is not as it was written (checksum differs), so its figures "
            "cannot be shown and it was not loaded. Activate another version on Retrain."
        )
    return head, card


def encoder_in(folder: Path) -> Path | None:
    """The version's own encoder, every file of the version looked at; None where it has none.

    Raises:
        ConfigError: a file is missing or was changed.
    """
    own = folder / ENCODER
    files = _read(folder / HEAD).get("files")
    if files is None:
        if own.is_dir() and not exported_is_current(own):
            raise _changed("The encoder", own)
        return own if own.is_dir() else None
    for name, known in files.items():
        if sha256_of(folder / name) != known.get("sha256"):
            raise _changed("The encoder" if name.startswith(ENCODER) else name, folder)
    return own if any(name.startswith(f"{ENCODER}/") for name in files) else None


def _changed(what: str, where: Path) -> ConfigError:
    return ConfigError(
        f"{what} in {where} is not as it was written (checksum differs); it was not "
        "loaded. Activate another version on Retrain."
    )


def _read(path: Path) -> Any:
    """The JSON in a file of sensible length."""
    with path.open("rb") as file:
        data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path.name} has more than {MOST_BYTES // 2**20} MB")
    return json.loads(data)


def _head_in(folder: Path, body: Mapping[str, Any]) -> tuple[Head, bool]:
    """The head, and whether it is as it was written."""
    schema = body["schema"]
    if schema != SCHEMA:
        head = _old_head(body)
        return head, schema in KNOWN and body["sha256"] == _old_checksum(head, schema)
    rest = {name: value for name, value in body.items() if name != "sha256"}
    if body["sha256"] != json_digest(rest):
        return Head((), 0.0), False
    for name, known in body["files"].items():
        size = (folder / name).stat().st_size
        if size != known["bytes"]:
            raise ValueError(f"{name} has {size:,} bytes instead of {known['bytes']:,}")
    if sha256_of(folder / WEIGHTS) != body["files"][WEIGHTS]["sha256"]:
        return Head((), 0.0), False
    return head_of(_arrays(folder / WEIGHTS, body["arrays"]), body["calibration"]), True


def _arrays(path: Path, shapes: Mapping[str, list[int]]) -> dict[str, Numbers]:
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        found = load_file(path)
    except SafetensorError as error:
        raise ValueError(str(error)) from error
    if {name: list(value.shape) for name, value in found.items()} != dict(shapes):
        raise ValueError("its arrays are not those that head.json names")
    return found


def _old_head(body: Mapping[str, Any]) -> Head:
    """The head that an older file says; without what its schema did not know."""
    weights = tuple(float(w) for w in body["weights"])
    judge = float(body["judge_weight"]) if body["schema"] > WITHOUT_JUDGE else 0.0
    gain = float(body["text_gain"]) if body["schema"] > WITHOUT_GAIN else 1.0
    return Head(weights, float(body["intercept"]), judge, gain)


def _old_checksum(head: Head, schema: int) -> str:
    """Digest of a head's numbers as they were written under that schema."""
    numbers: list[object] = [schema, list(head.weights), head.intercept]
    numbers += [head.judge_weight] * (schema > WITHOUT_JUDGE)
    numbers += [head.text_gain] * (schema > WITHOUT_GAIN)
    return json_digest(numbers)


def json_digest(value: object) -> str:
    """Of what the value says, not of how the file lays it out."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


LEAST = 0.0001  # p is written with four digits and stays strictly between 0 and 1


@dataclass(frozen=True)
class Classifier:
    """A version ready for use; its card says what it learned from and how well."""

    version: str
    head: Head
    encoder: Embedder
    card: dict[str, Any]

    def probability(self, text: str, judged: float | None = None) -> float:
        """p_hallucinated of one verdict text with the judge's own p, rounded to 4 digits.

        Texts are embedded one by one: int8 activations are scaled by batch, so a text's vector
        would otherwise depend on its neighbours.
        """
        p = self.head.probability(self.encoder.encode([text]), [judged], [text])[0]
        return min(1.0 - LEAST, max(LEAST, round(p, 4)))

    def verdict(self, judgement: Judgement) -> Verdict:
        """The label that people see, with its probability; unclear stays unclear.

        Where the classifier, which people's corrections teach, comes to another label than the
        judge, the verdict is unclear and says so: headline and reasons never contradict each other.
        What a tool worked out it does not touch.
        """
        if judgement.label == "unclear":
            causes = judgement.cause, judgement.cause_words
            return Verdict("unclear", None, None, judgement.text, *causes, self.version)
        if judgement.by_tool and judgement.p is not None:
            p = min(1.0 - LEAST, max(LEAST, judgement.p))
        else:
            p = self.probability(judgement.text, judgement.p)
        label: Label = "hallucinated" if p > 0.5 else "supported"
        if p == 0.5:  # it tells nothing, as after a coin was thrown
            label = judgement.label
        if label != judgement.label:
            words = f"The judge calls it {judgement.label}, the classifier {label} (p = {p:.2f})."
            prose = judgement.prose or judgement.text
            return Verdict(
                "unclear", None, None, prose, "classifier_disagrees", words, self.version
            )
        confidence = round(max(p, 1.0 - p), 4)
        rationale = judgement.prose or judgement.text
        return Verdict(label, p, confidence, rationale, classifier=self.version)


@lru_cache(maxsize=4)
def load_classifier(home: Path, version: str) -> Classifier:
    """A version ready for use, loaded once per process.

    Raises:
        ConfigError: it is missing or was tampered with.
    """
    folder = version_folder(home, version)
    head, card = load_head(folder)
    encoder = load_encoder(encoder_in(folder) or ENCODER_DIR)
    if len(head.weights) != encoder.width:
        raise ConfigError(
            f"Expected a head of {encoder.width} weights in {folder}, found {len(head.weights)}."
        )
    return Classifier(version, head, encoder, card)
