"""The training process: a fine-tuned encoder, a logistic head, the comparison on the hold-out.

Runs as `python -m core.learning.train --home DIR ID`, reports its progress to the store, and sees
there that it was cancelled. Source: CEDA 3.4.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import logging
import os
import shutil
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from core.config import ENCODER_DIR
from core.errors import ReviewError, Stopped
from core.learning.fine_tune import Recipe, Report, fine_tuned
from core.learning.scores import reliability, scores
from core.learning.seed import seed_rows
from core.learning.training_set import Row, TrainingSet, digest_of, training_set
from core.learning.verdict_texts import Lesson
from core.models.encoder import Embedder, OnnxEncoder, load_encoder
from core.store import Store, open_store
from core.store.versions import Version
from core.verdict.classifier import Classifier, Head, load_classifier, logit_of, save_head

LOGGER = logging.getLogger(__name__)
BEAT_SECONDS = 5.0
CANCELLED = "The training was cancelled."


def main(arguments: Sequence[str] | None = None) -> int:
    """Train one version; 0 when it is there, 1 when not (the store says why)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("training_id")
    given = parser.parse_args(arguments)
    _be_modest()
    with open_store(given.home) as store:
        try:
            with _alive(given.home, given.training_id):
                train(store, given.home, given.training_id, Recipe())
        except Stopped:
            return 1
        except ReviewError as error:
            _fail(store, given.training_id, str(error))
            return 1
        except OSError as error:
            _fail(store, given.training_id, f"The version could not be written: {error}.")
            return 1
        except Exception:
            LOGGER.exception("training failed")
            _fail(store, given.training_id, "Training failed; models/training.log has the details.")
            return 1
    return 0


def _be_modest() -> None:
    """Leave the processor to the pages, and the terminal to nobody."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # threads that wait must sleep: on a busy machine spinning ones starved each other for minutes
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if hasattr(os, "nice"):
        os.nice(10)
    warnings.simplefilter("ignore")
    logging.basicConfig(level=logging.WARNING)


def _fail(store: Store, training_id: str, message: str) -> None:
    store.versions.end_training(training_id, "failed", time.time(), message=message)


def train(store: Store, home: Path, training_id: str, recipe: Recipe) -> str:
    """Train, compare with the active version on the hold-out, store; the new version's id.

    The version is listed, its files lie where it is looked for and the training is finished: all
    at once, or none of it.

    Raises:
        Stopped: the training was cancelled meanwhile.
    """
    began = time.time()
    report = _reporter(store, training_id, began)
    report("Collecting the corrections")
    data = training_set(store).settled  # what was corrected since the start has no side
    data.require_enough()
    base = load_encoder(ENCODER_DIR)
    report("Making the seed texts")
    seeds = seed_rows(base)
    rows = [Lesson(row.text, row.label, row.p) for row in data.train] + seeds
    version = f"v{time.strftime('%Y%m%d-%H%M%S', time.gmtime(began))}-{training_id[:6]}"
    kept = home / "models" / version
    folder = kept.with_name(f"{version}.part")
    try:
        fine_tuned(
            [(row.text, row.label) for row in rows], recipe, folder / "encoder", version, report
        )
        report("Fitting the head")
        encoder = OnnxEncoder(folder / "encoder")
        head = fit_head(rows, encoder, recipe)
        active = load_classifier(home, store.versions.active())
        card = {
            "author": _author(store, training_id),
            **_card(data, len(seeds), recipe),
            **_comparison(data.held, active, head, encoder),
            "encoder": encoder.id,
            "seconds": round(time.time() - began, 1),
        }
        save_head(folder, head, card)
        report("Storing the version")
        with store.writing():
            now = time.time()
            store.versions.add(Version(version, now, str(card["author"]), card))
            if not store.versions.end_training(training_id, "finished", now, version_id=version):
                raise Stopped(CANCELLED)
            folder.rename(kept)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)
        raise
    return version


@contextlib.contextmanager
def _alive(home: Path, training_id: str) -> Iterator[None]:
    """Keep the training's lease fresh through imports and exports that report nothing."""
    done = threading.Event()

    def beat() -> None:
        with open_store(home) as store:
            while not done.wait(BEAT_SECONDS):
                store.versions.beat_training(training_id, time.time())

    heart = threading.Thread(target=beat, daemon=True)
    heart.start()
    try:
        yield
    finally:
        done.set()
        heart.join()


def _reporter(store: Store, training_id: str, began: float) -> Report:
    """Tells the store how far training is; raises `Stopped` when it was cancelled."""

    def report(stage: str, step: int = 0, steps: int = 0, loss: float | None = None) -> None:
        now = time.time()
        progress: dict[str, Any] = {"stage": stage, "seconds": round(now - began, 1)}
        if steps:
            progress |= {"step": step, "steps": steps, "loss": loss}
        status = store.versions.report_training(training_id, progress, now, os.getpid())
        if status != "running":
            raise Stopped(CANCELLED)

    return report


def fit_head(rows: Sequence[Lesson], encoder: Embedder, recipe: Recipe) -> Head:
    """Logistic regression over the judge's p and its text's embedding, one text at a time.

    A row with a p is also shown without it: a language model as judge gives none, and its texts
    must be understood too.
    """
    from sklearn.linear_model import LogisticRegression

    texts = np.concatenate([encoder.encode([row.text]) for row in rows])
    with_p = [place for place, row in enumerate(rows) if row.p is not None]
    places = [*range(len(rows)), *with_p]
    own = [logit_of(row.p) for row in rows] + [0.0] * len(with_p)
    labels = [int(rows[place].label == "hallucinated") for place in places]
    fitted = LogisticRegression(
        C=recipe.regularisation, class_weight="balanced", max_iter=1000, random_state=recipe.seed
    ).fit(np.column_stack([texts[places], own]), labels)
    *weights, judge_weight = (float(w) for w in fitted.coef_[0])
    return Head(tuple(weights), float(fitted.intercept_[0]), judge_weight)


def _card(data: TrainingSet, seed_texts: int, recipe: Recipe) -> dict[str, Any]:
    """What a version learned from, and with what."""
    return {
        "trained_on": {
            "corrections": sorted(row.correction_id for row in data.train),
            "corrections_sha256": digest_of(data.train),
            "counts": data.counts(),
            "seed_texts": seed_texts,
        },
        "recipe": asdict(recipe),
        "packages": {
            name: importlib.metadata.version(name)
            for name in ("setfit", "sentence-transformers", "torch", "scikit-learn")
        },
    }


def _comparison(
    held: Sequence[Row], active: Classifier, head: Head, encoder: Embedder
) -> dict[str, Any]:
    """How the new head does beside the active version, on the same frozen hold-out."""
    before = [active.probability(row.text, row.p) for row in held]
    after = [head.probability(encoder.encode([row.text]), [row.p])[0] for row in held]
    labels = [row.label for row in held]
    return {
        "compared_with": active.version,
        "holdout": {
            "before": scores(labels, before),
            "after": scores(labels, after),
            "rows": [_held_row(row, p, q) for row, p, q in zip(held, before, after, strict=True)],
        },
        "reliability": reliability(labels, after),
    }


def _author(store: Store, training_id: str) -> str:
    trainings = store.versions.trainings(time.time(), 1e9)
    return next((t.author for t in trainings if t.id == training_id), "")


def _held_row(row: Row, before: float, after: float) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "claim": row.claim[:300],
        "label": row.label,
        "before": round(before, 4),
        "after": round(after, 4),
    }


if __name__ == "__main__":
    sys.exit(main())
