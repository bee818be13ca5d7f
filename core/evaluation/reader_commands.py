"""`python -m core reader import|calibrate|use|list`: readers that people bring into their home."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from core.baseline.readers import (
    SHIPPED,
    brought,
    calibration_of,
    choose_reader,
    reader_card,
    reader_folders,
    reader_in_use,
)
from core.store import open_store

Say = Callable[[str], None]
Out = Callable[[str | bytes], None]
WORDS = """\
Bring a reader of your own: a model of the Hugging Face Hub or of a folder that says whether a text
supports a claim (natural-language inference, or binary consistency), or that marks the words of an
answer that it does not support. It is exported to ONNX once and read on this computer."""
EXAMPLES = """\
examples:
  python -m core reader import MoritzLaurer/DeBERTa-v3-base-mnli-fever-anli
  python -m core reader calibrate MoritzLaurer-DeBERTa-v3-base-mnli-fever-anli \\
      --dataset fever_symmetric --dataset qags --path data
  python -m core reader calibrate my-reader --decided-here
  python -m core reader use my-reader
  python -m core check --claim "…" --document facts.pdf --reader my-reader

exit code: 0 done; 2 no such model, too few rows or another bad input, with one line."""


def add_commands(commands: Any, add_home: Any, whole: Callable[[str, int, int], int]) -> None:
    """Add `reader` with its actions."""
    parser = commands.add_parser(
        "reader",
        help="bring, calibrate and choose the model that reads evidence",
        description=WORDS,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = parser.add_subparsers(dest="action", required=True, parser_class=type(parser))
    brings = actions.add_parser("import", help="export a model to ONNX and keep it in the home")
    brings.add_argument("name", metavar="NAME_OR_FOLDER")
    calibrates = actions.add_parser("calibrate", help="fit its probabilities on labelled rows")
    calibrates.add_argument("name", metavar="NAME")
    calibrates.add_argument(
        "--dataset", action="append", default=[], metavar="SET[:TASK]", help="a public set"
    )
    calibrates.add_argument("--path", metavar="DIR", help="the folder that holds the sets' folders")
    calibrates.add_argument(
        "--limit", metavar="N", type=lambda text: whole(text, 1, 1_000_000), default=300,
        help="most rows of each set (default: 300)",
    )  # fmt: skip
    calibrates.add_argument(
        "--decided-here", action="store_true", help="also learn from cases that people decided here"
    )
    uses = actions.add_parser("use", help=f"read with it from now on; “{SHIPPED}” goes back")
    uses.add_argument("name", metavar="NAME")
    lists = actions.add_parser("list", help="the readers of this home")
    for action in (brings, calibrates, uses, lists):
        action.add_argument("--json", action="store_true", help="print one JSON object")
        add_home(action)


def run_reader(given: argparse.Namespace, home: Path, say: Say, out: Out) -> int:
    """Do what was asked; 0.

    Raises:
        ReviewError: the model cannot be had or used, or there are too few rows.
    """
    action = {"import": _import, "calibrate": _calibrate, "use": _use, "list": _list}[given.action]
    told, words = action(given, home, say)
    out((json.dumps(told, ensure_ascii=False) if given.json else words) + "\n")
    return 0


def _import(given: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    name = brought(home, given.name)
    card = reader_card(reader_folders(home)[name])
    return card | {"name": name}, (
        f"{name}: {card['architecture']}, labels read as {card['labels']['kind']}. Calibrate it "
        f"next: python -m core reader calibrate {name} --dataset SET --path DIR"
    )


def _calibrate(given: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    from core.evaluation.reader_calibration import (
        calibrate_reader,
        rows_decided_here,
        rows_of_sets,
    )

    rows = rows_of_sets(given.dataset, Path(given.path or "."), given.limit)
    if given.decided_here:
        with open_store(home) as store:
            rows += rows_decided_here(store)
    found = calibrate_reader(home, given.name, rows, say)
    own, limits = found["measured"]["all"], found["limits"]
    return found, (
        f"{given.name}: AUROC {own['auroc']:.3f}, balanced accuracy {own['balanced']:.3f}, ECE "
        f"{own['ece']:.3f} on {own['n']:,} statements; supported below "
        f"{limits['supported_below']:.2f}, hallucinated from {limits['hallucinated_from']:.2f}"
    )


def _use(given: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    with open_store(home) as store:
        choose_reader(store, home, given.name)
    return {"reader": given.name}, f"Checks read with {given.name} from now on."


def _list(given: argparse.Namespace, home: Path, say: Say) -> tuple[dict[str, Any], str]:
    with open_store(home) as store:
        used = reader_in_use(store)
    told = {SHIPPED: {"calibrated": True, "used": used == SHIPPED}}
    for name, folder in reader_folders(home).items():
        told[name] = {"calibrated": calibration_of(folder) is not None, "used": used == name}
    lines = [
        f"{'*' if own['used'] else ' '} {name}{'' if own['calibrated'] else ' (not calibrated)'}"
        for name, own in told.items()
    ]
    return told, "\n".join(lines)
