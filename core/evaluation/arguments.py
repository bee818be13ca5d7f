"""What `evaluate` takes on the command line."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

WEIGHTS = ("uniform", "learned")
MOST_ROWS = 1_000_000_000
EVALUATE_WORDS = """\
Measure an engine on a labelled public set, and print figures with their 95 % intervals.

--path is the folder that holds the sets' folders, as they lie; a set's name is its folder's name.
Beside the engine's figures stand those of trivial answers and of the same engine with its evidence
taken away or exchanged. What is done is kept in the home, row by row: an evaluation that was
stopped, or killed, goes on where it was. Progress goes to standard error."""
EVALUATE_EXAMPLES = """\
examples:
  python -m core evaluate --dataset fever_symmetric --path data --json
  python -m core evaluate --dataset halueval --task qa --path data --split dev20 --limit 500
  python -m core evaluate --dataset qags --path data --model openai/gpt-4.1-mini --token-cap 900000
  python -m core evaluate --dataset realmistake --task recorded --system consensus --path data
  python -m core evaluate --dataset haluagent --task ape --tool calculator --path data

exit code: 0 measured; 1 the engine failed or was stopped; 2 bad input or a missing key, with one
line that says so."""


def add_commands(
    commands: Any, add_home: Any, add_who: Any, whole: Callable[[str, int, int], int]
) -> None:
    """Add it; `whole(text, least, most)` reads a number, `add_who` adds who checks."""
    parser = commands.add_parser(
        "evaluate",
        help="measure an engine on a labelled public set",
        description=EVALUATE_WORDS,
        epilog=EVALUATE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_which(parser, whole)
    _add_systems(parser)
    add_who(parser)
    add_weights(parser)
    parser.add_argument("--keep", metavar="DIR", help="also write the result there, as a file")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    add_home(parser)


def _add_which(parser: argparse.ArgumentParser, whole: Callable[[str, int, int], int]) -> None:
    """Which rows."""

    def count(text: str) -> int:
        return whole(text, 1, MOST_ROWS)

    def seed(text: str) -> int:
        return whole(text, 0, MOST_ROWS)

    parser.add_argument("--dataset", required=True, metavar="NAME", help="the set's name")
    parser.add_argument(
        "--path", required=True, metavar="DIR", help="the folder that holds the sets' folders"
    )
    parser.add_argument("--task", help="which task of the set (default: its first)")
    parser.add_argument(
        "--split",
        help="dev20, train80, train70 or calibration10 (by hash of the group), or a split of files "
        "such as train, dev or test (default: whatever files are there)",
    )
    parser.add_argument(
        "--limit", metavar="N", type=count, help="a seeded sample, each label with its share"
    )
    parser.add_argument("--seed", metavar="S", type=seed, default=0, help="of all samples")
    parser.add_argument(
        "--trivial-limit",
        metavar="N",
        type=count,
        default=200,
        help="rows that are checked again without, and with other, evidence (default: 200)",
    )


def add_weights(parser: argparse.ArgumentParser) -> None:
    """By which weights debaters' answers count, where a protocol weighs them."""
    parser.add_argument(
        "--weights",
        choices=WEIGHTS,
        default=WEIGHTS[0],
        help="how debaters' answers count where a protocol weighs them (sc_maks): all alike, or "
        "by the weights that are in use in the home's first project (default: uniform)",
    )


def _add_systems(parser: argparse.ArgumentParser) -> None:
    """What else than an engine may be measured."""
    parser.add_argument(
        "--system",
        help="where a set records what detectors said (realmistake, task recorded): own_answer, "
        "classifier, majority or consensus instead of an engine",
    )
    parser.add_argument("--detector", metavar="NAME", help="with --system: whose verdicts")
    parser.add_argument("--prompt", metavar="N", help="with --system: under which prompt (1 to 4)")
    parser.add_argument(
        "--fit",
        metavar="DIR",
        help="with --system: the folder that holds the sets' folders to learn from "
        "(default: five folds of --path)",
    )
    parser.add_argument(
        "--tool",
        metavar="NAME",
        help="one tool of an audit alone instead of an engine, on what it reads by itself",
    )
