"""The options of a training with their bounds, and where its encoder comes from.

An encoder is embedded, a folder here, or one on the Hugging Face Hub. Weights are read as
safetensors only: a `.bin` is a pickle, and nothing is unpickled.
"""

from __future__ import annotations

import errno
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from core.llm.encoder import MAX_TOKENS
from core.llm.export import wheel_folder
from core.runtime.errors import ConfigError, InputError

EMBEDDED_ENCODER = "embedded"
MAX_ENCODER_NAME_CHARS = 1000
OPTION_BOUNDS: dict[str, tuple[float, float]] = {
    "pairs": (1, 100),
    "steps": (1, 100_000),
    "epochs": (1, 50),
    "batch": (2, 128),
    "seed": (0, 1_000_000_000),
    "regularisation": (0.0001, 10_000.0),
}
OPTION_NAMES = {
    "pairs": "pairs per text",
    "steps": "most steps",
    "epochs": "epochs",
    "batch": "texts in a batch",
    "seed": "the seed",
    "regularisation": "the regularisation",
}

ENCODER_WEIGHTS_FILE, TOKENIZER_FILE = "model.safetensors", "tokenizer.json"
REQUIRED_FILES = ("config.json", ENCODER_WEIGHTS_FILE, TOKENIZER_FILE)
DOWNLOAD_PATTERNS = ["*.json", "*.txt", "*.model", ENCODER_WEIGHTS_FILE]
POOLING_PREFIX, MEAN_POOLING = "pooling_mode_", "mean"
SUPPORTED_MODULES = ("Transformer", "Pooling", "Normalize")  # what an exported encoder supports
DEFAULT_HUB_OWNER = "sentence-transformers"
REPOSITORY_PATTERN = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
OTHER_ENCODER_ADVICE = f"Choose another encoder, or “{EMBEDDED_ENCODER}”."
DISK_FULL_ERRNOS = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class TrainingOptions:
    """The options of a training.

    `encoder` is "embedded" for MiniLM, a folder of this machine, or a name on the Hugging Face Hub.
    `pairs` is SetFit's iterations: texts paired with each text, once alike and once unlike. There
    is a step for each `batch` of pairs and epoch, `steps` at most. With 16 pairs in a batch, a
    training over 1,000 texts took 2.3 GB of memory. `regularisation` is the C of the logistic head:
    the larger, the more it trusts the corrections.
    """

    encoder: str = EMBEDDED_ENCODER
    pairs: int = 4
    steps: int = 48
    epochs: int = 1
    batch: int = 8
    seed: int = 7
    regularisation: float = 1.0

    def as_dict(self) -> dict[str, Any]:
        """Return the options as plain values, as they are stored and shown on a version's card."""
        return asdict(self)

    def steps_for(self, texts: int) -> int:
        """Return how many steps a training over that many texts takes."""
        return min(self.steps, self.epochs * -(-2 * self.pairs * texts // self.batch))


def parse_options(given: Mapping[str, Any]) -> TrainingOptions:
    """Return the given options, else defaults. Raises InputError: unknown or out of bounds."""
    known = {field.name for field in fields(TrainingOptions)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise InputError(
            f"Expected options of a training ({', '.join(sorted(known))}), "
            f"found “{unknown[0]:.40}”; leave it out."
        )
    encoder = given.get("encoder", EMBEDDED_ENCODER)
    if not isinstance(encoder, str) or not 0 < len(encoder.strip()) <= MAX_ENCODER_NAME_CHARS:
        raise InputError(
            "Expected the encoder as a name or a folder, found nothing of the kind; "
            f"give one, or “{EMBEDDED_ENCODER}”."
        )
    for name in OPTION_BOUNDS:
        if name in given:
            _require_number(name, given[name])
    return TrainingOptions(**{**given, "encoder": encoder.strip()})


def _require_number(name: str, value: object) -> None:
    least, most = OPTION_BOUNDS[name]
    is_whole = name != "regularisation"
    is_number = isinstance(value, int if is_whole else (int, float)) and not isinstance(value, bool)
    if not is_number or not least <= value <= most:  # type: ignore[operator]
        kind = "a whole number" if is_whole else "a number"
        raise InputError(
            f"Expected {kind} from {least:,g} to {most:,g} for {OPTION_NAMES[name]}, found "
            f"{value!r:.40}."
        )


def find_encoder_folder(name: str) -> Path:
    """Return the encoder's folder, downloaded if needed. Raises ConfigError: it is unusable."""
    if name == EMBEDDED_ENCODER:
        return wheel_folder()
    path = Path(name).expanduser()
    is_here = path.is_dir() or path.is_absolute() or name.startswith((".", "~"))
    folder = path if is_here else _download_encoder(name)
    _require_usable(folder, name)
    return folder


def _download_encoder(name: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    repository = name if "/" in name else f"{DEFAULT_HUB_OWNER}/{name}"
    if not REPOSITORY_PATTERN.fullmatch(repository):
        raise ConfigError(
            f"Expected an encoder as a folder or as owner/name, found “{name}”. "
            f"{OTHER_ENCODER_ADVICE}"
        )
    try:
        try:
            cached = snapshot_download(
                repository, allow_patterns=DOWNLOAD_PATTERNS, local_files_only=True
            )
            if (Path(cached) / ENCODER_WEIGHTS_FILE).is_file():
                return Path(cached)
        except LocalEntryNotFoundError:
            pass
        return Path(snapshot_download(repository, allow_patterns=DOWNLOAD_PATTERNS))
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "no answer")
        raise ConfigError(
            f"Expected the encoder {repository} on the Hugging Face Hub, found none that may be "
            f"downloaded ({status}). {OTHER_ENCODER_ADVICE}"
        ) from error
    except Exception as error:
        if is_disk_full(error):
            raise
        raise ConfigError(
            f"Expected the encoder {repository} in the Hugging Face cache of this machine or by "
            f"download, found neither: {_first_line(error)}. Connect it to the network, put the "
            f"encoder into a folder and give that, or choose “{EMBEDDED_ENCODER}”."
        ) from error


def is_disk_full(error: BaseException | None) -> bool:
    """Return True if the error or a cause of it, which need not be OSErrors, says disk full."""
    while error is not None:
        is_errno = isinstance(error, OSError) and error.errno in DISK_FULL_ERRNOS
        if is_errno or "No space left" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _require_usable(folder: Path, name: str) -> None:
    missing = [file for file in REQUIRED_FILES if not (folder / file).is_file()]
    if missing:
        pickled = " (its weights are a pickle, which is never opened)" * (
            ENCODER_WEIGHTS_FILE in missing and (folder / "pytorch_model.bin").is_file()
        )
        raise ConfigError(
            f"Expected a sentence-transformers encoder with {', '.join(REQUIRED_FILES)} at "
            f"“{name}”, "
            f"found no {' and no '.join(missing)}{pickled}. {OTHER_ENCODER_ADVICE}"
        )
    modules = _read_json(folder / "modules.json", name)
    kinds = [str(m.get("type", "")).rpartition(".")[2] for m in modules if isinstance(m, dict)]
    if not set(kinds) <= set(SUPPORTED_MODULES):
        raise ConfigError(
            f"Expected an encoder of {', '.join(SUPPORTED_MODULES)}, found “{name}” with "
            f"{', '.join(kinds)}. {OTHER_ENCODER_ADVICE}"
        )
    pooling = folder / "1_Pooling" / "config.json"
    chosen = _list_poolings(_read_json(pooling, name))
    if pooling.is_file() and chosen != [MEAN_POOLING]:
        raise ConfigError(
            f"Expected an encoder that takes the mean of its tokens’ vectors, found “{name}” "
            f"with {', '.join(chosen) or 'none'}. {OTHER_ENCODER_ADVICE}"
        )
    positions = _read_json(folder / "config.json", name).get("max_position_embeddings", MAX_TOKENS)
    if isinstance(positions, int) and positions < MAX_TOKENS:
        raise ConfigError(
            f"Expected an encoder for texts of {MAX_TOKENS} tokens, found “{name}” for "
            f"{positions}. {OTHER_ENCODER_ADVICE}"
        )


def _list_poolings(config: Any) -> list[str]:
    pooling = config.get("pooling_mode")  # newer releases
    if pooling is not None:
        return [pooling] if isinstance(pooling, str) else list(map(str, pooling))
    chosen = [
        key for key, value in config.items() if key.startswith(POOLING_PREFIX) and value is True
    ]
    return [key.removeprefix(POOLING_PREFIX).removesuffix("_tokens") for key in chosen]


def _read_json(path: Path, name: str) -> Any:
    if not path.is_file():
        return {}
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"Expected a readable {path.name} in the encoder “{name}”, found: "
            f"{_first_line(error)}. {OTHER_ENCODER_ADVICE}"
        ) from error


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]
