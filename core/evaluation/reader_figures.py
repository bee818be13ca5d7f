"""How well an entailment reader under training does on labelled pairs, and its temperature."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from core.evaluation.reader_batches import WIDTHS, Integers, encoded, padded
from core.evaluation.reader_pairs import Pair

Floats = npt.NDArray[np.float64]
EVALUATED = 32


def forward(model: Any, ids: Integers, mask: Integers, kinds: Integers) -> Any:
    """(n, 3) logits, computed in bfloat16."""
    import torch

    with torch.autocast("cpu", dtype=torch.bfloat16):
        return model(
            input_ids=torch.from_numpy(ids),
            attention_mask=torch.from_numpy(mask),
            token_type_ids=torch.from_numpy(kinds),
        ).logits.float()


def logits_of(model: Any, pairs: Sequence[Pair], tokenizer: Any) -> Floats:
    """(n, 3) logits, order as given."""
    import torch

    model.eval()
    out = np.zeros((len(pairs), 3))
    items = encoded(pairs, tokenizer)
    order = sorted(range(len(pairs)), key=lambda i: len(items[i].ids))
    with torch.no_grad():
        while order:
            length = next(w for w in WIDTHS if w >= len(items[order[-1]].ids))
            taken, order = order[-EVALUATED:], order[:-EVALUATED]
            out[taken] = forward(model, *padded([items[i] for i in taken], length)).numpy()
    model.train()
    return out


def figures(pairs: Sequence[Pair], logits: Floats) -> dict[str, dict[str, float]]:
    """A line a set: n, loss, three-way accuracy where known, balanced accuracy and AUROC.

    Balanced accuracy and AUROC: supported against all that is not.
    """
    from sklearn.metrics import balanced_accuracy_score, roc_auc_score

    shares = softmax(logits)
    found: dict[str, dict[str, float]] = {}
    rows: dict[str, list[int]] = defaultdict(list)
    for number, pair in enumerate(pairs):
        rows[pair.name].append(number)
    for name, numbers in rows.items():
        allowed = np.array([pairs[i].allowed for i in numbers])
        p = shares[numbers]
        right = (p * allowed).sum(axis=1)
        line = {"n": len(numbers), "loss": float(-np.log(right + 1e-9).mean())}
        if (allowed.sum(axis=1) == 1).all() and len(set(map(tuple, allowed))) == 3:
            line["accuracy3"] = float((p.argmax(1) == allowed.argmax(1)).mean())
        supported = allowed[:, 0] == 1
        if 0 < supported.sum() < len(numbers):
            has_third = bool((allowed[:, 2] == 1).any())
            score = p[:, 0] if has_third else p[:, 0] / (p[:, 0] + p[:, 1])
            said = p.argmax(1) == 0 if has_third else score > 0.5
            line["balanced_accuracy"] = float(balanced_accuracy_score(supported, said))
            line["auroc"] = float(roc_auc_score(supported, score))
        found[name] = {key: round(value, 4) for key, value in line.items()}
    return found


def softmax(logits: Floats) -> Floats:
    """(n, 3) shares that sum to one."""
    shifted = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))


def temperature_of(pairs: Sequence[Pair], logits: Floats) -> float:
    """The divisor of the logits that makes the calibration rows most likely."""
    allowed = np.array([pair.allowed for pair in pairs], dtype=float)

    def lost(temperature: float) -> float:
        shares = softmax(logits / temperature)
        return float(-np.log((shares * allowed).sum(axis=1) + 1e-12).mean())

    return float(min(np.arange(0.5, 3.01, 0.05), key=lost))
