"""The training process: contrastive fine-tuning (SetFit), ONNX export, logistic head, hold-out.

Runs as `python -m core.learning.train --home DIR ID`, reports its progress to the store, and sees
there that it was cancelled. setfit's own `save_pretrained` writes a pickled head: it is not used.
Source: CEDA 3.4; SetFit's default recipe makes far too many pairs, so steps are capped.
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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from core.config import ENCODER_DIR
from core.errors import ReviewError, Stopped
from core.learning.scores import reliability, scores
from core.learning.seed import seed_rows
from core.learning.training_set import Row, TrainingSet, digest_of, training_set
from core.models.encoder import Embedder, OnnxEncoder, load_encoder
from core.models.export import export_encoder, wheel_folder
from core.records import Label
from core.store import Store, open_store
from core.store.versions import Version
from core.verdict.classifier import Head, load_classifier, save_head

LOGGER = logging.getLogger(__name__)
BEAT_SECONDS = 5.0
Report = Callable[..., None]


@dataclass(frozen=True)
class Recipe:
    """Every training choice. `iterations` is SetFit's pairs per text; `most_steps` caps them."""

    iterations: int = 4
    most_steps: int = 40
    batch_size: int = 16
    learning_rate: float = 2e-5
    regularisation: float = 1.0
    seed: int = 7


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
                version = train(store, given.home, given.training_id, Recipe())
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
        store.versions.end_training(given.training_id, "finished", time.time(), version_id=version)
    return 0


def _be_modest() -> None:
    """Leave the processor to the pages, and the terminal to nobody."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    if hasattr(os, "nice"):
        os.nice(10)
    warnings.simplefilter("ignore")
    logging.basicConfig(level=logging.WARNING)


def _fail(store: Store, training_id: str, message: str) -> None:
    store.versions.end_training(training_id, "failed", time.time(), message=message)


def train(store: Store, home: Path, training_id: str, recipe: Recipe) -> str:
    """Train, compare with the active version on the hold-out, store; the new version's id."""
    began = time.time()
    report = _reporter(store, training_id, began)
    report("Collecting the corrections")
    data = training_set(store)
    data.require_enough()
    base = load_encoder(ENCODER_DIR)
    report("Making the seed texts")
    seeds = seed_rows(base)
    rows = [(row.text, row.label) for row in data.train] + seeds
    version = f"v{time.strftime('%Y%m%d-%H%M%S', time.gmtime(began))}-{training_id[:6]}"
    folder = home / "models" / f"{version}.part"
    try:
        _fine_tuned(rows, recipe, folder / "encoder", version, report)
        report("Fitting the head")
        encoder = OnnxEncoder(folder / "encoder")
        head = fit_head(rows, encoder, recipe)
        card = _card(store, home, training_id, data, seeds, head, encoder, recipe, began)
        save_head(folder, head, card)
        report("Storing the version")
        folder.rename(home / "models" / version)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    store.versions.add(Version(version, time.time(), str(card["author"]), card))
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
            raise Stopped("The training was cancelled.")

    return report


def _fine_tuned(
    rows: Sequence[tuple[str, Label]], recipe: Recipe, out: Path, name: str, report: Report
) -> None:
    """Contrastive fine-tuning of MiniLM on pairs of texts, then export."""
    report("Loading SetFit")
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from setfit import SetFitModel, Trainer, TrainingArguments
    from sklearn.linear_model import LogisticRegression
    from transformers import TrainerCallback

    class Progress(TrainerCallback):  # type: ignore[misc]
        """Passes each step on."""

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            losses = [e["embedding_loss"] for e in state.log_history if "embedding_loss" in e]
            report(
                "Fine-tuning",
                int(state.global_step),
                int(state.max_steps),
                float(losses[-1]) if losses else None,
            )

    source = wheel_folder()
    body = SentenceTransformer(str(source), device="cpu")
    model = SetFitModel(model_body=body, model_head=LogisticRegression())
    pairs = 2 * recipe.iterations * len(rows)
    steps = min(recipe.most_steps, -(-pairs // recipe.batch_size))
    arguments = TrainingArguments(
        output_dir=str(out.parent / "scratch"),
        batch_size=recipe.batch_size,
        num_iterations=recipe.iterations,
        max_steps=steps,
        body_learning_rate=recipe.learning_rate,
        seed=recipe.seed,
        logging_steps=5,
        save_strategy="no",
        report_to="none",
        show_progress_bar=False,
    )
    texts = {"text": [t for t, _ in rows], "label": [int(y == "hallucinated") for _, y in rows]}
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=Dataset.from_dict(texts),
        callbacks=[Progress()],
    )
    trainer.train_embeddings(texts["text"], texts["label"], args=arguments)
    report("Exporting the encoder")
    shutil.rmtree(out.parent / "scratch", ignore_errors=True)
    tuned = body[0].auto_model.eval()
    tuned.config._attn_implementation = "eager"
    export_encoder(tuned, source / "tokenizer.json", out, name=name)


def fit_head(rows: Sequence[tuple[str, Label]], encoder: Embedder, recipe: Recipe) -> Head:
    """Logistic regression over the exported encoder's own embeddings, one text at a time."""
    from sklearn.linear_model import LogisticRegression

    vectors = np.concatenate([encoder.encode([text]) for text, _ in rows])
    labels = [int(label == "hallucinated") for _, label in rows]
    fitted = LogisticRegression(
        C=recipe.regularisation, class_weight="balanced", max_iter=1000, random_state=recipe.seed
    ).fit(vectors, labels)
    return Head(tuple(float(w) for w in fitted.coef_[0]), float(fitted.intercept_[0]))


def _card(
    store: Store,
    home: Path,
    training_id: str,
    data: TrainingSet,
    seeds: Sequence[tuple[str, Label]],
    head: Head,
    encoder: Embedder,
    recipe: Recipe,
    began: float,
) -> dict[str, Any]:
    """What the version learned from and how it compares on the frozen hold-out."""
    active = store.versions.active()
    now_active = load_classifier(home, active)
    before = [now_active.probability(row.text) for row in data.held]
    after = [head.probability(encoder.encode([row.text]))[0] for row in data.held]
    labels = [row.label for row in data.held]
    author = next(
        (t.author for t in store.versions.trainings(time.time(), 1e9) if t.id == training_id), ""
    )
    return {
        "author": author,
        "trained_on": {
            "corrections": sorted(row.correction_id for row in data.train),
            "corrections_sha256": digest_of(data.train),
            "counts": data.counts(),
            "seed_texts": len(seeds),
        },
        "recipe": asdict(recipe),
        "compared_with": active,
        "holdout": {
            "before": scores(labels, before),
            "after": scores(labels, after),
            "rows": [
                _held_row(row, p, q) for row, p, q in zip(data.held, before, after, strict=True)
            ],
        },
        "reliability": reliability(labels, after),
        "encoder": encoder.id,
        "seconds": round(time.time() - began, 1),
        "packages": {
            name: importlib.metadata.version(name)
            for name in ("setfit", "sentence-transformers", "torch", "scikit-learn")
        },
    }


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
