"""The entailment reader's card: what it learned from, under which licence, and how well."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.evaluation.datasets import rule_of
from core.evaluation.reader_pairs import SOURCES, Pair
from core.models.export import sha256_of

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
    counts = {part: Counter(pair.name for pair in pairs) for part, pairs in parts.items()}
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
            "and no row of theirs is kept or can be read back from the weights by design."
        ),
        "splits": "by hash of the group: 70 % train, 10 % calibration, 20 % dev",
        "dev": dict(figures),
    }


def _line(
    folder: Path, name: str, task: str | None, counts: Mapping[str, Counter[str]]
) -> dict[str, Any]:
    rule = rule_of(name, task)
    return {
        "set": name,
        "task": rule.task,
        "licence": rule.licence,
        "permits": rule.permits,
        "pairs": {part: found[name] for part, found in counts.items()},
        "files": {
            path.relative_to(folder).as_posix(): sha256_of(path) for path in _files(folder / name)
        },
    }


def _files(folder: Path) -> Iterable[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())
