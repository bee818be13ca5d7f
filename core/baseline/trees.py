"""Boosted regression trees kept as plain arrays and walked with numpy: nothing is unpickled."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.errors import ConfigError

Numbers = npt.NDArray[np.float64]
ARRAYS = ("feature", "threshold", "left", "right", "value", "root")


@dataclass(frozen=True)
class Trees:
    """All nodes of all trees, one after another; a leaf is its own left and right.

    A row goes left where its feature is at most the threshold.
    """

    feature: npt.NDArray[np.int32]
    threshold: Numbers
    left: npt.NDArray[np.int32]
    right: npt.NDArray[np.int32]
    value: Numbers
    root: npt.NDArray[np.int32]
    """Each tree's first node."""
    depth: int
    """The longest way down."""
    base: float
    """What is added to the sum of the leaves' values."""

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
        arrays: dict[str, Any] = {name: getattr(self, name) for name in ARRAYS}
        with path.open("wb") as file:
            np.savez_compressed(
                file, **arrays, depth=np.array(self.depth), base=np.array(self.base)
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
            f"Expected the weights in {path.name} with sha256 {sha256[:12]}…, found {found[:12]}. "
            "Restore the file from the repository."
        )
    with np.load(path, allow_pickle=False) as held:
        arrays = {name: held[name] for name in ARRAYS}
        return Trees(**arrays, depth=int(held["depth"]), base=float(held["base"]))


def trees_of(model: Any) -> Trees:
    """The trees of scikit-learn's HistGradientBoosting models, which nothing public hands out."""
    parts: dict[str, list[Any]] = {name: [] for name in ARRAYS}
    first, depth = 0, 0
    for (predictor,) in model._predictors:
        nodes = predictor.nodes
        count = len(nodes)
        own = np.arange(count)
        is_leaf = nodes["is_leaf"].astype(bool)
        parts["feature"].append(np.where(is_leaf, 0, nodes["feature_idx"]).astype(np.int32))
        parts["threshold"].append(np.where(is_leaf, np.inf, nodes["num_threshold"]))
        for side in ("left", "right"):
            children = np.where(is_leaf, own, nodes[side])
            parts[side].append((children + first).astype(np.int32))
        parts["value"].append(np.where(is_leaf, nodes["value"], 0.0))
        parts["root"].append(np.array([first], dtype=np.int32))
        depth = max(depth, int(nodes["depth"].max()))
        first += count
    joined = {name: np.concatenate(rows) for name, rows in parts.items()}
    return Trees(**joined, depth=depth, base=float(np.ravel(model._baseline_prediction)[0]))


def as_rows(rows: Sequence[Sequence[float]]) -> npt.NDArray[np.float32]:
    """(n, features) as the trees take them."""
    return np.asarray(rows, dtype=np.float32)
