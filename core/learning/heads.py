"""A quick stand-in for the classifier: logistic regression over frozen embeddings and judge's p.

It is fitted hundreds of times where SetFit takes a minute, to look for wrong labels and to see what
more cases would add. Rows of one case never lie on both sides of a fold.

Vectors of verdict texts, kept in the home by the text's digest: embedding a thousand takes long.
Texts are embedded one by one, as the classifier reads them: int8 activations are scaled by batch.

Finds the encoder that a training starts from: embedded, a folder here, or one of the Hub. Weights
are read as safetensors only: a `.bin` is a pickle, and nothing is unpickled.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError
from core.learning.options import EMBEDDED
from core.learning.training_set import LABELS, Row
from core.learning.weights import grouped_folds
from core.llm.encoder import MAX_TOKENS, Embedder, Matrix
from core.llm.export import wheel_folder

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
NEEDED = ("config.json", WEIGHTS, TOKENIZER)
FILES = ["*.json", "*.txt", "*.model", WEIGHTS]
POOLINGS, MEAN = "pooling_mode_", "mean"
MODULES = ("Transformer", "Pooling", "Normalize")  # what an exported encoder does too
OWNER = "sentence-transformers"
REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)
USE_ANOTHER = f"Choose another encoder, or “{EMBEDDED}”."
NO_SPACE = (errno.ENOSPC, errno.EDQUOT)


def encoder_folder(name: str) -> Path:
    """The folder with the encoder's weights; one of the Hub is fetched where it is not here yet.

    Raises:
        ConfigError: it is not there, cannot be had, or is none that can be used.
    """
    if name == EMBEDDED:
        return wheel_folder()
    path = Path(name).expanduser()
    is_here = path.is_dir() or path.is_absolute() or name.startswith((".", "~"))
    folder = path if is_here else _of_the_hub(name)
    _require_usable(folder, name)
    return folder


def _of_the_hub(name: str) -> Path:
    """The newest copy in the cache, else a download."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    repository = name if "/" in name else f"{OWNER}/{name}"
    if not REPOSITORY.fullmatch(repository):
        raise ConfigError(
            f"Expected an encoder as a folder or as owner/name, found “{name}”. {USE_ANOTHER}"
        )
    try:
        try:
            found = snapshot_download(repository, allow_patterns=FILES, local_files_only=True)
            if (Path(found) / WEIGHTS).is_file():
                return Path(found)
        except LocalEntryNotFoundError:
            pass
        return Path(snapshot_download(repository, allow_patterns=FILES))
    except HfHubHTTPError as error:
        status = getattr(error.response, "status_code", "no answer")
        raise ConfigError(
            f"Expected the encoder {repository} on the Hugging Face Hub, found none that may be "
            f"downloaded ({status}). {USE_ANOTHER}"
        ) from error
    except Exception as error:
        if is_full(error):
            raise
        raise ConfigError(
            f"Expected the encoder {repository} in the Hugging Face cache of this machine or by "
            f"download, found neither: {_first_line(error)}. Connect it to the network, put the "
            f"encoder into a folder and give that, or choose “{EMBEDDED}”."
        ) from error


def is_full(error: BaseException | None) -> bool:
    """True for what says that the disk is full, or was caused by it; not all are OSErrors."""
    while error is not None:
        is_errno = isinstance(error, OSError) and error.errno in NO_SPACE
        if is_errno or "No space left" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _require_usable(folder: Path, name: str) -> None:
    missing = [file for file in NEEDED if not (folder / file).is_file()]
    if missing:
        pickled = " (its weights are a pickle, which is never opened)" * (
            WEIGHTS in missing and (folder / "pytorch_model.bin").is_file()
        )
        raise ConfigError(
            f"Expected a sentence-transformers encoder with {', '.join(NEEDED)} at “{name}”, "
            f"found no {' and no '.join(missing)}{pickled}. {USE_ANOTHER}"
        )
    modules = _json(folder / "modules.json", name)
    kinds = [str(m.get("type", "")).rpartition(".")[2] for m in modules if isinstance(m, dict)]
    if not set(kinds) <= set(MODULES):
        raise ConfigError(
            f"Expected an encoder of {', '.join(MODULES)}, found “{name}” with "
            f"{', '.join(kinds)}. {USE_ANOTHER}"
        )
    pooling = folder / "1_Pooling" / "config.json"
    chosen = _poolings(_json(pooling, name))
    if pooling.is_file() and chosen != [MEAN]:
        raise ConfigError(
            f"Expected an encoder that takes the mean of its tokens’ vectors, found “{name}” "
            f"with {', '.join(chosen) or 'none'}. {USE_ANOTHER}"
        )
    positions = _json(folder / "config.json", name).get("max_position_embeddings", MAX_TOKENS)
    if isinstance(positions, int) and positions < MAX_TOKENS:
        raise ConfigError(
            f"Expected an encoder for texts of {MAX_TOKENS} tokens, found “{name}” for "
            f"{positions}. {USE_ANOTHER}"
        )


def _poolings(config: Any) -> list[str]:
    """How the tokens' vectors become one, whichever release wrote it."""
    told = config.get("pooling_mode")
    if told is not None:
        return [told] if isinstance(told, str) else list(map(str, told))
    chosen = [key for key, value in config.items() if key.startswith(POOLINGS) and value is True]
    return [key.removeprefix(POOLINGS).removesuffix("_tokens") for key in chosen]


def _json(path: Path, name: str) -> Any:
    """What a file of the encoder says; nothing where there is no such file."""
    if not path.is_file():
        return {}
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ConfigError(
            f"Expected a readable {path.name} in the encoder “{name}”, found: "
            f"{_first_line(error)}. {USE_ANOTHER}"
        ) from error
    return found


def _first_line(error: Exception) -> str:
    return (str(error) or type(error).__name__).splitlines()[0][:200]


MOST_KEPT = 20_000  # texts, some 30 MB
Told = Callable[[int, int], object]


def vectors_of(
    texts: Sequence[str], encoder: Embedder, home: Path, told: Told = lambda _done, _all: None
) -> Matrix:
    """(n, width) float32, rows of unit length; `told` hears how many of the new texts are done.

    What was embedded is kept, also where `told` raises because somebody has left.
    """
    path = kept_at(home, encoder)
    known = _read(path, encoder.width)
    names = [hashlib.sha256(text.encode()).hexdigest() for text in texts]
    new = {name: text for name, text in zip(names, texts, strict=True) if name not in known}
    try:
        for done, (name, text) in enumerate(new.items()):
            told(done, len(new))
            known[name] = encoder.encode([text])[0]
    finally:
        if new:
            _write(path, known, wanted=set(names))
    if not names:
        return np.zeros((0, encoder.width), dtype=np.float32)
    return np.stack([known[name] for name in names])


def kept_at(home: Path, encoder: Embedder) -> Path:
    """The file of one encoder's vectors; another encoder has another."""
    name = hashlib.sha256(encoder.id.encode()).hexdigest()[:16]
    return home / "cache" / f"vectors-{name}.safetensors"


def _read(path: Path, width: int) -> dict[str, Matrix]:
    """What is kept, by digest; nothing where the file is missing or cannot be read."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    try:
        arrays = load_file(path)
        digests, vectors = arrays["digests"], arrays["vectors"]
        is_whole = digests.shape == (len(vectors), 32) and vectors.shape == (len(digests), width)
    except (OSError, KeyError, ValueError, SafetensorError):  # it is only made again
        return {}
    if not is_whole or digests.dtype != np.uint8 or vectors.dtype != np.float32:
        return {}
    return {bytes(d).hex(): v for d, v in zip(digests, vectors, strict=True)}


def _write(path: Path, known: dict[str, Matrix], wanted: set[str]) -> None:
    """Keep the vectors, those of the present texts first; a full disk costs only time."""
    from safetensors.numpy import save_file

    names = sorted(known, key=lambda name: name not in wanted)[:MOST_KEPT]
    arrays: dict[str, np.ndarray[Any, Any]] = {
        "digests": np.array([list(bytes.fromhex(name)) for name in names], dtype=np.uint8),
        "vectors": np.stack([known[name] for name in names]).astype(np.float32),
    }
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(arrays, part)
        part.replace(path)


Numbers = npt.NDArray[np.float64]
Places = npt.NDArray[np.int64]
Truth = npt.NDArray[np.bool_]
SUREST = 0.999  # nothing said by one judge counts for more, as in the classifier
STRENGTH = 1.0  # of what is fitted against the wish for small weights (scikit-learn's C)


def inputs_of(rows: Sequence[Row], vectors: Matrix) -> Numbers:
    """(n, width + 1): each text's vector, and the judge's log-odds (0 where it gave no p)."""
    judged = np.array([0.5 if row.p is None else row.p for row in rows], dtype=np.float64)
    bounded = np.clip(judged, 1.0 - SUREST, SUREST)
    return np.column_stack([vectors.astype(np.float64), np.log(bounded / (1.0 - bounded))])


def truth_of(rows: Sequence[Row]) -> Truth:
    """(n,) True where people say hallucinated."""
    return np.array([row.label == "hallucinated" for row in rows], dtype=bool)


def cases_by_label(rows: Sequence[Row]) -> dict[str, int]:
    """How many different cases each label has."""
    return {label: len({row.group for row in rows if row.label == label}) for label in LABELS}


def probabilities(inputs: Numbers, truth: Truth, asked: Numbers) -> Numbers:
    """p_hallucinated of the rows asked about, learned from the others, which hold both labels."""
    from sklearn.linear_model import LogisticRegression

    head = LogisticRegression(C=STRENGTH, class_weight="balanced", max_iter=500)
    fitted = head.fit(inputs, truth)
    return np.asarray(fitted.predict_proba(asked)[:, 1], dtype=np.float64)


@contextlib.contextmanager
def on_one_core() -> Iterator[None]:
    """Sums this small only wait for each other on several cores: twenty times, on busy ones."""
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    with threadpool_limits(1):
        yield


def out_of_fold(
    inputs: Numbers, truth: Truth, groups: Sequence[str], many: int, seed: int
) -> Numbers:
    """(n,) p_hallucinated of each row by a head that saw none of its case."""
    found = np.full(len(truth), 0.5)
    with on_one_core():
        for known, asked in grouped_folds(truth, groups, seed, many):
            if truth[known].any() and not truth[known].all():
                found[asked] = probabilities(inputs[known], truth[known], inputs[asked])
    return found
