"""The commands `python -m core retrain` and `rescore`; progress goes to standard error."""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from core.learning.metrics import describe_difference, format_figure, is_figure_lower
from core.learning.options import OPTION_BOUNDS, TrainingOptions
from core.learning.retrain import activate_version, begin_training, rescore_runs
from core.learning.train import limit_process, run_training
from core.review.people import ensure_project, find_operator
from core.runtime.errors import InputError
from core.store import Store, open_store

RETRAIN_DESCRIPTION = """\
Train a classifier on all corrections of the home, and compare it with the active one.

Both are measured on the same held-out cases, which no version ever learns from. Nothing changes for
checks until a version is promoted. Progress goes to standard error. One training at a time: also
not while the page trains."""
RETRAIN_EXAMPLES = """\
examples:
  python -m core retrain --json
  python -m core retrain --promote --by Mira
  python -m core retrain --encoder sentence-transformers/paraphrase-mpnet-base-v2 --steps 200
  python -m core retrain --encoder /models/my-encoder --pairs 10 --seed 3

exit code: 0 trained, promoted or not; 1 the training failed or was stopped; 2 bad input, too few
corrections, or a training under way, with one line that says so."""
RESCORE_DESCRIPTION = """\
Score finished runs again under a version of the classifier: from the judge's text that is kept.

Each run gets a new label and probability as an event after its end; the first verdict stays in its
trace. Runs whose present verdict is by that version are left alone."""
RESCORE_EXAMPLES = """\
examples:
  python -m core rescore
  python -m core rescore --version seed --json

exit code: 0 scored; 1 it was stopped, and the same command goes on; 2 bad input, with one line."""
OPTION_HELP = {
    "pairs": "texts that each text is paired with, once alike and once unlike",
    "steps": "most steps of fine-tuning",
    "epochs": "how often the pairs are gone through",
    "seed": "of pairs and fits",
}
LinePrinter = Callable[[str], None]
OutputWriter = Callable[[str | bytes], None]
PROGRESS_SECONDS = 5.0
RETRAIN_FIGURES = (
    "n", "accuracy", "balanced_accuracy", "f1", "auroc", "brier", "log_loss", "ece",
    "always_hallucinated",
)  # fmt: skip


def add_commands(commands: Any, add_home: Any, whole: Callable[[str, int, int], int]) -> None:
    """Add both; `whole(text, least, most)` parses an integer, `add_home` adds `--home`."""

    def command(name: str, summary: str, description: str, examples: str) -> Any:
        parser = commands.add_parser(
            name,
            help=summary,
            description=description,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "--by", metavar="NAME", help="who asks for it (default: the first admin)"
        )
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    retrain = command(
        "retrain", "train a classifier on the corrections", RETRAIN_DESCRIPTION, RETRAIN_EXAMPLES
    )
    defaults = TrainingOptions()
    retrain.add_argument(
        "--encoder",
        metavar="NAME_OR_FOLDER",
        default=defaults.encoder,
        help="“embedded” (default: MiniLM), a sentence-transformers folder, or a name on the "
        "Hugging Face Hub",
    )
    for name, words in OPTION_HELP.items():
        default, bounds = getattr(defaults, name), tuple(map(int, OPTION_BOUNDS[name]))
        retrain.add_argument(
            f"--{name}",
            metavar="N",
            default=default,
            help=f"{words} (default: {default})",
            type=lambda text, bounds=bounds: whole(text, *bounds),
        )
    retrain.add_argument(
        "--promote", action="store_true", help="make it the active one unless it did worse"
    )
    rescore = command(
        "rescore",
        "score finished runs again under a version",
        RESCORE_DESCRIPTION,
        RESCORE_EXAMPLES,
    )
    rescore.add_argument("--version", metavar="ID", help="which version (default: the active one)")
    for parser in (retrain, rescore):
        add_home(parser)


def run_retrain(given: argparse.Namespace, home: Path, say: LinePrinter, out: OutputWriter) -> int:
    """Train, and promote if asked to; return 0 if there is a version, else 1."""
    options = TrainingOptions(
        given.encoder, given.pairs, given.steps, given.epochs, seed=given.seed
    )
    with open_store(home) as store:
        by = _find_person(store, given.by)
        training_id = begin_training(store, home, by, options)
        limit_process(options.encoder)
        with contextlib.redirect_stdout(sys.stderr):  # standard output holds only the result
            version = run_training(store, home, training_id, _make_reporter(say))
        if not version:
            training = store.versions.training(training_id, time.time(), 1e9)
            say(training.message if training and training.message else "The training was stopped.")
            return 1
        result = _describe_version(store, version) | _promote_if_wanted(
            store, home, version, given.promote, by
        )
    out(json.dumps(result, ensure_ascii=False) + "\n" if given.json else _format_result(result))
    return 0


def run_rescore(given: argparse.Namespace, home: Path, say: LinePrinter, out: OutputWriter) -> int:
    """Score old runs again and return 0."""
    with open_store(home) as store:
        by = _find_person(store, given.by)
        version = given.version or store.versions.active()
        outcome = rescore_runs(
            store, home, version, by=by, done=lambda n, of: say(f"{n:,} of {of:,} runs scored")
        )
    runs = "1 run" if outcome.runs == 1 else f"{outcome.runs:,} runs"
    words = f"{runs} scored under {outcome.version}, {outcome.changed:,} with another label."
    out((json.dumps(asdict(outcome)) if given.json else words) + "\n")
    return 0


def _find_person(store: Store, name: str | None) -> str:
    person = find_operator(store) if name is None else name.strip()
    ensure_project(store, person, time.time())  # creates it in a new home
    return person


def _make_reporter(say: LinePrinter) -> Callable[[dict[str, Any]], None]:
    """Return a callback that prints a line at each new stage, and every few seconds within one."""
    last: dict[str, Any] = {"stage": "", "at": 0.0}

    def tell(progress: dict[str, Any]) -> None:
        now = time.monotonic()
        if progress["stage"] == last["stage"] and now - last["at"] < PROGRESS_SECONDS:
            return
        last.update(stage=progress["stage"], at=now)
        words = f"{progress['stage_number']}/{progress['stages']} {progress['stage']}"
        if progress.get("step"):
            loss = progress.get("loss")
            words += f": {progress['step']} of {progress['steps']}"
            words += f", about {progress['eta']:.0f} s left"
            words += "" if loss is None else f", loss {loss:.3f}"
        say(words)

    return tell


def _describe_version(store: Store, version: str) -> dict[str, Any]:
    stored = store.versions.get(version)
    card = stored.card if stored else {}
    holdout = card["holdout"]
    return {
        "version": version,
        "compared_with": card["compared_with"],
        "corrections": len(card["trained_on"]["corrections"]),
        **{name: card[name] for name in ("splits", "options", "encoder", "calibration")},
        **{name: holdout[name] for name in ("before", "after", "difference")},
        "is_worse": is_figure_lower(holdout),
        **{name: card[name] for name in ("seconds", "cpu_seconds", "memory_mb")},
    }


def _promote_if_wanted(
    store: Store, home: Path, version: str, is_wanted: bool, by: str
) -> dict[str, Any]:
    if not is_wanted:
        return {"promoted": False, "why_not": "it was not asked for; --promote does"}
    try:
        activate_version(store, home, version, by=by, reason="")
    except InputError as error:
        return {"promoted": False, "why_not": str(error)}
    return {"promoted": True, "why_not": ""}


def _format_result(result: dict[str, Any]) -> str:
    lines = [
        f"{result['version']}: {result['corrections']} corrections, {result['seconds']:.0f} s",
        f"{'held out':20s} {result['compared_with'][:16]:>16s} {'this':>16s}",
    ]
    for name in RETRAIN_FIGURES:
        before, after = (format_figure(result[side][name]) for side in ("before", "after"))
        lines.append(f"{name.replace('_', ' '):20s} {before:>16s} {after:>16s}")
    lines.append(describe_difference(result))
    lines.append("Promoted." if result["promoted"] else f"Not promoted: {result['why_not']}")
    return "\n".join(lines) + "\n"
