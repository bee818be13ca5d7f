"""`python -m core retrain` and `rescore`: in the foreground, progress on standard error."""

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

from core.learning.metrics import difference_words, figure_words, is_lower
from core.learning.options import BOUNDS, Options
from core.learning.retrain import activate, begin_training, rescore
from core.learning.train import be_modest, carry_out
from core.review.people import first_project, person_here
from core.runtime.errors import InputError
from core.store import Store, open_store

RETRAIN_WORDS = """\
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
RESCORE_WORDS = """\
Score finished runs again under a version of the classifier: from the judge's text that is kept.

Each run gets a new label and probability as an event after its end; the first verdict stays in its
trace. Runs whose present verdict is by that version are left alone."""
RESCORE_EXAMPLES = """\
examples:
  python -m core rescore
  python -m core rescore --version seed --json

exit code: 0 scored; 1 it was stopped, and the same command goes on; 2 bad input, with one line."""
SHORT = {
    "pairs": "texts that each text is paired with, once alike and once unlike",
    "steps": "most steps of fine-tuning",
    "epochs": "how often the pairs are gone through",
    "seed": "of pairs and fits",
}


def add_commands(commands: Any, add_home: Any, whole: Callable[[str, int, int], int]) -> None:
    """Add both; `whole(text, least, most)` reads a number, `add_home` adds `--home`."""

    def command(name: str, words: str, description: str, examples: str) -> Any:
        parser = commands.add_parser(
            name, help=words, description=description, epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )  # fmt: skip
        parser.add_argument("--by", metavar="NAME", help="who asks for it (default: who is here)")
        parser.add_argument("--json", action="store_true", help="print one JSON object")
        return parser

    words = "train a classifier on the corrections"
    retrain = command("retrain", words, RETRAIN_WORDS, RETRAIN_EXAMPLES)
    usual = Options()
    retrain.add_argument(
        "--encoder",
        metavar="NAME_OR_FOLDER",
        default=usual.encoder,
        help="“embedded” (default: MiniLM), a sentence-transformers folder, or a name on the "
        "Hugging Face Hub",
    )
    for name, words in SHORT.items():
        default, bounds = getattr(usual, name), tuple(map(int, BOUNDS[name]))
        retrain.add_argument(
            f"--{name}", metavar="N", default=default, help=f"{words} (default: {default})",
            type=lambda text, bounds=bounds: whole(text, *bounds),
        )  # fmt: skip
    retrain.add_argument(
        "--promote", action="store_true", help="make it the active one unless it did worse"
    )
    words = "score finished runs again under a version"
    rescore = command("rescore", words, RESCORE_WORDS, RESCORE_EXAMPLES)
    rescore.add_argument("--version", metavar="ID", help="which version (default: the active one)")
    for parser in (retrain, rescore):
        add_home(parser)


Say = Callable[[str], None]
Out = Callable[[str | bytes], None]
EVERY_SECONDS = 5.0
FIGURES = (
    "n", "accuracy", "balanced_accuracy", "f1", "auroc", "brier", "log_loss", "ece",
    "always_hallucinated",
)  # fmt: skip


def run_retrain(given: argparse.Namespace, home: Path, say: Say, out: Out) -> int:
    """Train, and promote where that was asked for; 0 when there is a version, else 1."""
    options = Options(given.encoder, given.pairs, given.steps, given.epochs, seed=given.seed)
    with open_store(home) as store:
        by = _person(store, given.by)
        training_id = begin_training(store, home, by, options)
        be_modest(options.encoder)
        with contextlib.redirect_stdout(sys.stderr):  # the one object is all that goes out
            version = carry_out(store, home, training_id, _teller(say))
        if not version:
            ended = store.versions.training(training_id, time.time(), 1e9)
            say(ended.message if ended and ended.message else "The training was stopped.")
            return 1
        told = _told(store, version) | _promoted(store, home, version, given.promote, by)
    out(json.dumps(told, ensure_ascii=False) + "\n" if given.json else _plainly(told))
    return 0


def run_rescore(given: argparse.Namespace, home: Path, say: Say, out: Out) -> int:
    """Score old runs again and return 0."""
    with open_store(home) as store:
        by = _person(store, given.by)
        version = given.version or store.versions.active()
        found = rescore(
            store, home, version, by=by, done=lambda n, of: say(f"{n:,} of {of:,} runs scored")
        )
    runs = "1 run" if found.runs == 1 else f"{found.runs:,} runs"
    words = f"{runs} scored under {found.version}, {found.changed:,} with another label."
    out((json.dumps(asdict(found)) if given.json else words) + "\n")
    return 0


def _person(store: Store, name: str | None) -> str:
    person = person_here(store) if name is None else name.strip()
    first_project(store, person, time.time())  # of a new home
    return person


def _teller(say: Say) -> Callable[[dict[str, Any]], None]:
    """A line at each new stage, and every few seconds within one."""
    last: dict[str, Any] = {"stage": "", "at": 0.0}

    def tell(progress: dict[str, Any]) -> None:
        now = time.monotonic()
        if progress["stage"] == last["stage"] and now - last["at"] < EVERY_SECONDS:
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


def _told(store: Store, version: str) -> dict[str, Any]:
    known = store.versions.get(version)
    card = known.card if known else {}
    held = card["holdout"]
    return {
        "version": version,
        "compared_with": card["compared_with"],
        "corrections": len(card["trained_on"]["corrections"]),
        **{name: card[name] for name in ("splits", "options", "encoder", "calibration")},
        **{name: held[name] for name in ("before", "after", "difference")},
        "is_worse": is_lower(held),
        **{name: card[name] for name in ("seconds", "cpu_seconds", "memory_mb")},
    }


def _promoted(store: Store, home: Path, version: str, is_wanted: bool, by: str) -> dict[str, Any]:
    if not is_wanted:
        return {"promoted": False, "why_not": "it was not asked for; --promote does"}
    try:
        activate(store, home, version, by=by, reason="")
    except InputError as error:
        return {"promoted": False, "why_not": str(error)}
    return {"promoted": True, "why_not": ""}


def _plainly(told: dict[str, Any]) -> str:
    lines = [
        f"{told['version']}: {told['corrections']} corrections, {told['seconds']:.0f} s",
        f"{'held out':20s} {told['compared_with'][:16]:>16s} {'this':>16s}",
    ]
    for name in FIGURES:
        before, after = (figure_words(told[side][name]) for side in ("before", "after"))
        lines.append(f"{name.replace('_', ' '):20s} {before:>16s} {after:>16s}")
    lines.append(difference_words(told))
    lines.append("Promoted." if told["promoted"] else f"Not promoted: {told['why_not']}")
    return "\n".join(lines) + "\n"
