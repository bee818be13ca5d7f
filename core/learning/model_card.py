"""A version's card, and two versions side by side on the same held-out cases."""

from __future__ import annotations

import importlib.metadata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from core.learning.metrics import difference, reliability, scores
from core.learning.options import Options
from core.learning.training_set import Row, TrainingSet, digest_of, training_set
from core.store import Store
from core.verdict.classifier import Classifier, load_classifier

LONGEST_CLAIM = 300
DECIDES = "balanced_accuracy"  # or accuracy, where only one label is held out


def compare(store: Store, home: Path, one: str, other: str) -> dict[str, Any]:
    """Any two versions on today's hold-out, which neither has learned from.

    Takes some 10 ms a held-out row and version.

    Raises:
        ConfigError: a version is missing or was tampered with.
    """
    before, after = load_classifier(home, one), load_classifier(home, other)
    return {"versions": [one, other]} | side_by_side(training_set(store).held, before, after)


def side_by_side(held: Sequence[Row], before: Classifier, after: Classifier) -> dict[str, Any]:
    """Figures of both, the difference with its interval, and every row with both answers."""
    old, new = ([c.probability(row.text, row.p) for row in held] for c in (before, after))
    labels, groups = [row.label for row in held], [row.group for row in held]
    return {
        "before": scores(labels, old),
        "after": scores(labels, new),
        "difference": difference(labels, groups, old, new),
        "reliability": {"before": reliability(labels, old), "after": reliability(labels, new)},
        "rows": [
            {
                "run_id": row.run_id,
                "case_id": row.case_id,
                "claim": row.claim[:LONGEST_CLAIM],
                "label": row.label,
                "before": p,
                "after": q,
            }
            for row, p, q in zip(held, old, new, strict=True)
        ],
    }


def is_lower(held: dict[str, Any]) -> bool:
    """True when the figure that decides is lower after than before; equal is not lower."""
    before, after = held.get("before", {}), held.get("after", {})
    for key in (DECIDES, "accuracy"):
        if before.get(key) is not None and after.get(key) is not None:
            return bool(after[key] < before[key])
    return False


def difference_words(held: dict[str, Any]) -> str:
    """How far apart the two are and how sure that is, in words."""
    before, after = held.get("before", {}), held.get("after", {})
    key = DECIDES if None not in (before.get(DECIDES), after.get(DECIDES)) else "accuracy"
    if before.get(key) is None or after.get(key) is None:
        return "nothing is held out, so nothing can be compared"
    words = (
        f"{key.replace('_', ' ')} {after[key]:.3f} against {before[key]:.3f} on "
        f"{after.get('n', 'the')} held-out verdicts"
    )
    sure = held.get("difference")
    if sure is None or key != DECIDES:
        return words
    return (
        f"{words}; difference {sure['value']:+.3f}, "
        f"95 % interval {sure['low']:+.3f} to {sure['high']:+.3f}"
    )


PACKAGES = (
    "setfit", "sentence-transformers", "transformers", "torch", "scikit-learn", "onnx",
    "onnxruntime", "numpy",
)  # fmt: skip
LIMITS = (
    "It reads the judge's text and probability, not the sources: where the judge saw nothing, it "
    "cannot know.",
    "Figures are those of cases that people chose to correct here; elsewhere it may do otherwise.",
    "MiniLM's vocabulary is English: of verdict texts in other scripts it sees little.",
)
CROSS_FITTED = (
    "There were too few cases for a calibration split: probabilities were calibrated on training "
    "cases, each by a head that had not seen it, over an encoder that had. They were only "
    "allowed to become less sure."
)


def learned_from(data: TrainingSet, seed_texts: int, options: Options) -> dict[str, Any]:
    """What a version learned from, and with what."""
    return {
        "trained_on": {
            "corrections": sorted(row.correction_id for row in data.train),
            "corrections_sha256": digest_of(data.train),
            "calibration_corrections": sorted(row.correction_id for row in data.calibration),
            "labels": _counted(row.label for row in data.train),
            "seed_texts": seed_texts,
            "languages": _counted(row.language for row in data.train),
            "authors": _counted(row.author for row in data.train),
        },
        "splits": {
            "train": _cases(data.train),
            "calibration": _cases(data.calibration),
            "holdout": _cases(data.held),
        },
        "options": options.as_dict(),
        "packages": {name: importlib.metadata.version(name) for name in PACKAGES},
    }


def _counted(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _cases(rows: Iterable[Row]) -> int:
    return len({row.group for row in rows})


def limits_of(card: Mapping[str, Any]) -> list[str]:
    """What the version must not be relied on for."""
    known = [CROSS_FITTED] if card["calibration"]["cross_fitted"] else []
    return [*LIMITS, *known]


def card_text(card: Mapping[str, Any]) -> str:
    """The card as a page of Markdown."""
    trained, splits, held = card["trained_on"], card["splits"], card["holdout"]
    curve, after = card["calibration"], held["after"]
    pairs = {n: (held["before"][n], v) for n, v in after.items() if not isinstance(v, dict)}
    lines = [
        f"# Counterpoint classifier {card['name']}",
        "",
        "Reads the judge's text of a check with the judge's probability and gives the probability "
        "that the claim is hallucinated: a sentence encoder, fine-tuned on pairs (SetFit), with a "
        "logistic head, and the text's words where they told more.",
        "",
        f"- Trained by {card['author']}, from {len(trained['corrections'])} corrections "
        f"({_words(trained['labels'])}) and {trained['seed_texts']} texts of our own.",
        f"- Cases: {splits['train']} to train, {splits['calibration']} to calibrate, "
        f"{splits['holdout']} held out; no case is in two of them.",
        f"- Languages: {_words(trained['languages'])}.",
        f"- Options: {_words(card['options'])}.",
        f"- Reads: {card['reads']['read']}, by log loss on the calibration cases "
        f"({_words(card['reads']['log_loss'])}).",
        f"- Calibration: {curve['kind']}, chosen by log loss on {curve['n']} rows"
        f"{' (cross-fitted)' if curve['cross_fitted'] else ''}.",
        f"- Packages: {_words(card['packages'])}.",
        f"- It took {card['seconds']:.0f} s ({card['cpu_seconds']:.0f} s of processor time) and "
        f"{card['memory_mb']} MB of memory.",
        "",
        f"## On {after['n']} held-out verdicts, beside {card['compared_with']}",
        "",
        "| figure | before | this |",
        "|---|---|---|",
        *(
            " | ".join(("", name.replace("_", " "), *map(figure_words, both), "")).strip()
            for name, both in pairs.items()
        ),
        "",
        "## Limits",
        "",
        *(f"- {words}" for words in card["limits"]),
    ]
    return "\n".join(lines) + "\n"


def _words(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "none"


def figure_words(value: float | None) -> str:
    """A figure with three digits, a count as it is, a dash for none."""
    return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)
