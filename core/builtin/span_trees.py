"""Boosted regression trees kept as plain arrays and walked with numpy: nothing is unpickled."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError

Numbers = npt.NDArray[np.float64]
ARRAYS = ("feature", "threshold", "left", "right", "value", "root")


@dataclass(frozen=True)
class Trees:
    """All nodes of all trees, one after another; a leaf is its own left and right.

    A row goes left where its feature is at most the threshold. `root` has each tree's first node,
    `depth` is the longest way down, `base` what is added to the sum of the leaves' values.
    """

    feature: npt.NDArray[np.int32]
    threshold: Numbers
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: Numbers
    root: npt.NDArray[np.int32]
    depth: int
    base: float

    def predict(self, rows: npt.NDArray[np.float32]) -> Numbers:
        """(n,) for (n, features)."""
        at = np.repeat(self.root[None], len(rows), axis=0)
        which = np.arange(len(rows))[:, None]
        for _ in range(self.depth):
            goes_left = rows[which, self.feature[at]] <= self.threshold[at]
            at = np.where(goes_left, self.left[at], self.right[at])
        summed: Numbers = self.base + self.value[at].sum(axis=1)
        return summed

    def save(self, path: Path) -> str:
        """Write them; the file's sha256."""
        with path.open("wb") as file:
            np.savez_compressed(
                file,
                **{name: getattr(self, name) for name in ARRAYS},
                depth=np.array(self.depth),
                base=np.array(self.base),
            )
        return hashlib.sha256(path.read_bytes()).hexdigest()


def load_trees(path: Path, sha256: str) -> Trees:
    """The trees that `save` wrote.

    Raises:
        ConfigError: the file is not there, or is not the one of that checksum.
    """
    found = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "no file"
    if found != sha256:
        raise ConfigError(
            f"Expected the span reader's weights in {path.name} with sha256 {sha256[:12]}…, found "
            f"{found[:12]}. Restore the file, or train again: python -m "
            "core.evaluation.span_training."
        )
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in ARRAYS}
        return Trees(**arrays, depth=int(held["depth"]), base=float(held["base"]))
