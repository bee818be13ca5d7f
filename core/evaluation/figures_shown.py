"""An evaluation's result for people, and as a file beside others."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from core.errors import ConfigError
from core.evaluation.arguments import WEIGHTS
from core.records import Plan

OF_VARIANTS = ("auroc", "balanced_accuracy", "ece", "ece_null")
NAME = re.compile(r"[^\w.-]+")


def plainly(result: Mapping[str, Any]) -> str:
    """The figures in a few lines, for a person at a terminal."""
    what = " ".join(str(result[key]) for key in ("dataset", "task", "split") if result[key])
    lines = [
        f"{what}: {result['rows']:,} rows in {result['groups']:,} groups, "
        f"{result['answered']:,} answered, {result['unclear']:,} unclear",
        *_figures(result["metrics"]),
    ]
    if result.get("weights"):
        lines.insert(1, f"  weights of answers: {result['weights']}")
    for name, figures in result.get("variants", {}).items():
        lines += [name, *_figures({f: figures[f] for f in OF_VARIANTS if f in figures})]
    for name, figures in result["trivial"].items():
        count = result["trivial_rows"][name]
        lines += [f"{name.replace('_', ' ')} ({count:,} rows)", *_figures(figures)]
    if result["rows_per_second"]:
        lines.append(f"{result['rows_per_second']:.1f} rows a second")
    return "\n".join(lines) + "\n"


def _figures(figures: Mapping[str, Mapping[str, float]]) -> list[str]:
    return [
        f"  {name:18} {figure['value']:.3f}  ({figure['low']:.3f} to {figure['high']:.3f})"
        for name, figure in figures.items()
    ]


def result_name(result: Mapping[str, Any]) -> str:
    """The file's name: one for each set, task and split, each engine and way to argue but ours."""
    parts = [result["dataset"], result["task"], result["split"]]
    if result["roster"] != "builtin":
        parts.append(result["roster"])
    if result.get("protocol") not in (None, Plan().protocol):
        parts.append(result["protocol"])
    chosen = result.get("options") or {}
    parts += [f"{name}={own}" for name, own in chosen.items() if name != "seed"]  # of the rows too
    if result.get("weights") not in (None, WEIGHTS[0]):
        parts.append(result["weights"].split(";")[0])
    return NAME.sub("_", "-".join(str(part) for part in parts if part)) + ".json"


def result_folder(folder: Path) -> Path:
    """The folder, made where it is not there; asked for before anything is measured.

    Raises:
        ConfigError: there can be no such folder, or nothing can be written in it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except OSError as error:
        raise _unwritable(folder, error) from error


def write_result(folder: Path, result: Mapping[str, Any]) -> Path:
    """Write the result to its file in the folder, over an earlier one, and say where.

    Raises:
        ConfigError: the folder cannot be written.
    """
    path = folder / result_name(result)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(result, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise _unwritable(folder, error) from error
    return path


def _unwritable(folder: Path, error: OSError) -> ConfigError:
    return ConfigError(
        f"Expected a folder that can be written at {folder}, found: {error.strerror}. "
        "Choose another with --keep."
    )
