"""Measures w(Q; θ), and who makes up for whom, on recorded verdicts of language models.

`python -m core.evaluation.recorded_weights --path DATA`: on the same five folds, all alike, by
record, logistic, and by the policy where stable-baselines3 is installed (SC-MAKS 3.5, 4.10), beside
always saying hallucinated. `--pairs` prints instead, for each pair of models, the share of the
better one's errors that an oracle of both removes (ColMAD 2.1, fig. 2).
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from core.errors import ReviewError
from core.evaluation.recorded import answers_from, detectors_of
from core.evaluation.sets.realmistake import load_cases
from core.learning.answer_weights import MISSING, NAMES, compare_answers, is_installed
from core.learning.reliability import Pair, pairs
from core.verdict.weigher import METHODS, Method

SET = "realmistake"
SEED = 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; 0, or 2 where the set is not there."""
    parser = argparse.ArgumentParser(description=__doc__, prog="core.evaluation.recorded_weights")
    parser.add_argument("--path", type=Path, required=True, help="folder with the sets' folders")
    parser.add_argument("--prompt", help="only verdicts under this prompt (1 to 4; default: all)")
    parser.add_argument("--seed", type=int, default=SEED, help="of folds and intervals")
    parser.add_argument("--pairs", action="store_true", help="the table of pairs instead")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args(arguments)
    try:
        if given.pairs:
            two = measured_pairs(given.path, given.prompt)
            out = json.dumps([asdict(pair) for pair in two]) if given.json else matrix(two)
        else:
            found = measured(given.path, given.prompt, given.seed)
            out = json.dumps(found) if given.json else plainly(found)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(out + "\n")
    return 0


def measured(folder: Path, prompt: str | None, seed: int) -> dict[str, Any]:
    """How the weightings compare, as `ComparedAnswers`.

    Raises:
        InputError: the set or the prompt is not there.
    """
    cases = load_cases(folder / SET)
    answers = answers_from(cases, detectors_of(cases, None, prompt))
    found = compare_answers(answers, methods_here(), seed=seed, tell=_tell)
    return asdict(found) | {"answerers": len(answers.agents)}


def methods_here() -> tuple[Method, ...]:
    """All weightings that can be fitted here; where the policy cannot, that is said."""
    if is_installed():
        return METHODS
    _tell(MISSING)
    return METHODS[:-1]


def measured_pairs(folder: Path, prompt: str | None) -> list[Pair]:
    """Each pair of models over the cases; under several prompts a model is each of them in turn.

    A pair's figures are over cases times prompts, the same prompt for both.

    Raises:
        InputError: the set or the prompt is not there.
    """
    cases = load_cases(folder / SET)
    detectors = detectors_of(cases, None, prompt)
    names = sorted({detector.name for detector in detectors})
    prompts = sorted({detector.prompt for detector in detectors})
    said, labels = [], []
    for one in prompts:
        own = [d for d in detectors if d.prompt == one]
        answers = answers_from(cases, own)
        said.append(answers.said)
        labels.append(answers.labels)
    return pairs(names, np.concatenate(said), np.concatenate(labels))


def _tell(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def plainly(found: dict[str, Any]) -> str:
    """The figures in Markdown."""
    titles = [name.replace("_", " ").replace("auroc", "AUROC") for name in NAMES]
    lines = [
        f"{found['n']:,} cases in {found['groups']:,} groups, {found['hallucinated']:,} "
        f"hallucinated; {found['answerers']} answers to each",
        "",
        f"| weights | {' | '.join(titles)} | log loss below all alike | Wilcoxon's p |",
        "|---" * (len(NAMES) + 3) + "|",
    ]
    for system, figures in found["figures"].items():
        cells = [_cell(figures[name]) for name in NAMES]
        gain = found["gains"].get(system)
        cells += ["–", "–"] if gain is None else [_gain(gain), _chance(gain["p"])]
        lines.append(f"| {system} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"Used by the rule: {found['used']}"])


def matrix(found: Sequence[Pair]) -> str:
    """The share of the better one's errors that the oracle of two removes, in Markdown."""
    names = sorted({name for pair in found for name in (pair.one, pair.other)})
    by = {(pair.one, pair.other): pair for pair in found}
    lines = [f"| n={found[0].n:,} | {' | '.join(names[1:])} |", "|---" * len(names) + "|"]
    for row, one in enumerate(names[:-1]):
        cells = [
            "" if column <= row else _pair(by[one, names[column]])
            for column in range(1, len(names))
        ]
        lines.append(f"| {one} | {' | '.join(cells)} |")
    known = [pair for pair in found if pair.reduction is not None]
    ends = (max(known, key=_reduction), min(known, key=_reduction))
    lines += [""] + [
        f"{words}: {pair.one} and {pair.other}, {_pair(pair)} ({pair.low:.2f} to {pair.high:.2f}); "
        f"better one right on {pair.oracle - pair.gain:.3f}, oracle on {pair.oracle:.3f}"
        for words, pair in zip(("most", "least"), ends, strict=True)
    ]
    return "\n".join(lines)


def _reduction(pair: Pair) -> float:
    return pair.reduction or 0.0


def _pair(pair: Pair) -> str:
    return "–" if pair.reduction is None else f"{pair.reduction:.2f}"


def _cell(figure: Sequence[float]) -> str:
    value, low, high = figure
    return f"{value:.3f} ({low:.3f}–{high:.3f})"


def _gain(gain: dict[str, float]) -> str:
    return f"{gain['value']:+.4f} ({gain['low']:+.4f} to {gain['high']:+.4f})"


def _chance(p: float | None) -> str:
    return "–" if p is None else f"{p:.3f}" if p >= 0.001 else "<0.001"


if __name__ == "__main__":
    sys.exit(main())
