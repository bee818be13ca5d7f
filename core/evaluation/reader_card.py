"""The entailment reader's card: what it learned from, under which licence, and how well."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from core.evaluation.datasets import rule_of
from core.evaluation.reader_figures import figures
from core.evaluation.reader_pairs import SOURCES, Pair
from core.models.export import sha256_of
from core.models.reader import CARD, OnnxReader

NAME = "entailment"
LEFT_OUT = (
    "Sets whose licence forbids commercial use (anli, averitec, ocnli, scifact_rte, sick), sets "
    "whose label shows in the claim alone (breaking_nli, conjnli, help, begin), and every set kept "
    "for measuring only (halueval, qags, faithbench, bamboo, refchecker)."
)
PURPOSE = (
    "Says whether a text carries, contradicts or does not decide a statement. English only: where "
    "more than a fifth of the tokens are unknown, its voice does not count."
)


def card_of(
    folder: Path,
    recipe: Mapping[str, Any],
    parts: Mapping[str, Sequence[Pair]],
    figures: Mapping[str, Any],
    temperature: float,
) -> dict[str, Any]:
    """The card; `parts` are the pairs by part, `figures` those of the part `dev`."""
    counts = {
        part: Counter((pair.name, pair.task) for pair in pairs) for part, pairs in parts.items()
    }
    return {
        "name": NAME,
        "purpose": PURPOSE,
        "base": "all-MiniLM-L6-v2 (Apache-2.0), as a cross-encoder with three classes",
        "temperature": round(temperature, 3),
        "recipe": dict(recipe),
        "trained_on": [_line(folder, source.name, source.task, counts) for source in SOURCES],
        "left_out": LEFT_OUT,
        "not_stated": (
            "Some sets state no licence for their data. They were used to learn weights from, "
            "and no row of theirs is kept."
        ),
        "splits": "by hash of the group: 70 % train, 10 % calibration, 20 % dev",
        "dev": dict(figures),
    }


def note_as_shipped(out: Path, pairs: Sequence[Pair]) -> dict[str, dict[str, float]]:
    """Read the same pairs with the int8 reader in `out`, and add its figures to its card."""
    read = OnnxReader(out).read([(pair.evidence, pair.statement) for pair in pairs])
    found = figures(pairs, np.log(read.astype(np.float64) + 1e-12))
    path = out / CARD
    card = json.loads(path.read_text()) | {"dev_as_shipped": found}
    path.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n")
    return found


def _line(
    folder: Path, name: str, task: str | None, counts: Mapping[str, Counter[tuple[str, str]]]
) -> dict[str, Any]:
    rule = rule_of(name, task)
    return {
        "set": name,
        "task": rule.task,
        **origin_of(folder, name, task),
        "pairs": {part: found[name, task or ""] for part, found in counts.items()},
    }


def origin_of(folder: Path, name: str, task: str | None = None) -> dict[str, Any]:
    """What a set permits, and which files of it were read."""
    rule = rule_of(name, task)
    return {
        "licence": rule.licence,
        "permits": rule.permits,
        "files": files_of(folder, name),
    }


def files_of(folder: Path, name: str) -> dict[str, str]:
    """The files of the set of that name with their sha256, by where they lie in the folder."""
    paths = sorted(path for path in (folder / name).rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): sha256_of(path) for path in paths}
