"""Which reader a run uses: the one that ships, or one that people brought into their home.

An imported reader's readings go through the same evidence model; `calibration.json` in its folder
says what the model's scores are worth with this reader (`python -m core reader calibrate`).
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from core.errors import ConfigError, InputError

if TYPE_CHECKING:
    from core.baseline.assessment import Assessor
    from core.baseline.evidence_model import EvidenceModel
    from core.store import Store

SHIPPED = "shipped"
CARD = "card.json"
CALIBRATION = "calibration.json"
NOTE = "reader"


def reader_folders(home: Path) -> dict[str, Path]:
    """The imported readers of a home by name."""
    root = home / "readers"
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return {folder.name: folder for folder in folders if (folder / CARD).is_file()}


def reader_in_use(store: Store) -> str:
    """The name of the reader that Settings chose."""
    return store.projects.note(NOTE) or SHIPPED


def choose_reader(store: Store, home: Path, name: str) -> None:
    """Have checks of this home use that reader from now on.

    Raises:
        InputError: there is no such reader.
    """
    require_reader(home, name)
    with store.writing():
        store.projects.save_note(NOTE, name)


def require_reader(home: Path, name: str) -> Path | None:
    """The reader's folder; None for the one that ships.

    Raises:
        InputError: there is no such reader; the message names those there are.
    """
    if name in ("", SHIPPED):
        return None
    folder = reader_folders(home).get(name)
    if folder is None:
        known = ", ".join((SHIPPED, *reader_folders(home)))
        raise InputError(
            f"Expected a reader of {known}; found “{name}”. Import one with "
            "python -m core reader import NAME_OR_FOLDER."
        )
    return folder


def brought(home: Path, source: str) -> str:
    """The name of the reader of that name, or of that Hub name or folder, imported if it is new.

    Raises:
        InputError: there is no such model, or none that can read pairs.
    """
    name = name_of(source)
    known = reader_folders(home)
    if source in ("", SHIPPED) or source in known:
        return source
    if name not in known or _is_another(known[name], source):
        if "/" not in source and not Path(source).is_dir():
            require_reader(home, source)
        from core.baseline.onnx_reader import import_reader

        import_reader(source, home / "readers" / name)
    return name


def _is_another(kept: Path, source: str) -> bool:
    """True where the kept model was exported from elsewhere, or its folder was written since."""
    told = str(reader_card(kept).get("source", ""))
    folder = Path(source)
    if not folder.is_dir():
        return told != source
    written = max((path.stat().st_mtime for path in folder.iterdir()), default=0.0)
    return told != str(folder.resolve()) or written > (kept / CARD).stat().st_mtime


def name_of(source: str) -> str:
    """How a home names the model: the folder's last part, or the Hub's name on one level."""
    told = Path(source).resolve().name if Path(source).is_dir() else source
    return re.sub(r"[^A-Za-z0-9_.]+", "-", told).strip("-.") or "reader"


def reader_card(folder: Path) -> dict[str, Any]:
    """What is known of an imported reader.

    Raises:
        ConfigError: the card cannot be read.
    """
    try:
        return dict(json.loads((folder / CARD).read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Expected the card of the reader {folder.name}, found: {error!r}."
        ) from error


def calibration_of(folder: Path) -> dict[str, Any] | None:
    """What calibration found for the reader; None where it was never calibrated.

    Raises:
        ConfigError: it cannot be read.
    """
    path = folder / CALIBRATION
    if not path.is_file():
        return None
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Expected the calibration of the reader {folder.name}, found: {error!r}; calibrate it "
            "again."
        ) from error


def calibration_notice(home: Path, name: str) -> str:
    """What to say of a reader that was never calibrated; empty otherwise.

    Raises:
        InputError: there is no such reader.
    """
    folder = require_reader(home, name)
    if folder is None or calibration_of(folder) is not None:
        return ""
    return (
        f"The reader {name} is not calibrated, so its probabilities may be off: python -m core "
        f"reader calibrate {name} --dataset SET --path DIR"
    )


def assessor_of(home: Path, name: str) -> Assessor:
    """The assessor that works with that reader; one for each in a process.

    Raises:
        InputError: there is no such reader.
        ConfigError: it cannot be loaded.
    """
    folder = require_reader(home, name)
    if folder is None:
        return shared_assessor()
    calibration = folder / CALIBRATION
    changed = calibration.stat().st_mtime_ns if calibration.is_file() else 0
    return _imported(folder, changed)


@lru_cache(maxsize=1)
def shared_assessor() -> Assessor:
    """The assessor with the shipped reader: what one agent has read no other reads again."""
    from core.baseline.assessment import Assessor
    from core.baseline.shipped_reader import load_reader

    return Assessor(load_reader())


@lru_cache(maxsize=2)
def _imported(folder: Path, changed: int) -> Assessor:
    from core.baseline.assessment import Assessor
    from core.baseline.onnx_reader import OnnxReader

    return Assessor(OnnxReader(folder), model_for(folder))


def model_for(folder: Path) -> EvidenceModel:
    """The evidence model as calibrated for an imported reader; as shipped where it was not.

    Raises:
        ConfigError: the calibration is not as it was written.
    """
    from core.baseline.evidence_model import MATERIALS, load_evidence_model, logistic_of

    shipped, told = load_evidence_model(), calibration_of(folder)
    if told is None:
        return shipped
    try:
        return replace(
            shipped,
            calibration={m: logistic_of(told["calibration"][m]) for m in MATERIALS},
            supported_below=float(told["limits"]["supported_below"]),
            hallucinated_from=float(told["limits"]["hallucinated_from"]),
            card={
                **shipped.card,
                "measured": told["measured"],
                "reader": reader_card(folder)["id"],
            },
        )
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"Expected the calibration of the reader {folder.name}, found: {error!r}; calibrate it "
            "again."
        ) from error
