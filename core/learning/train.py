"""Train a version of the classifier: python -m core.learning.train --home DIR ID.

It fine-tunes the encoder on pairs of verdict texts (SetFit; CEDA 3.4), fits and calibrates a head,
and compares the result with the active version on held-out cases. The encoder is exported to ONNX,
because setfit's own `save_pretrained` writes a pickled head.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import hashlib
import json
import logging
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.learning.bench import LabelledClaim, judged
from core.learning.head_fit import encoded, fit_calibration, fit_head, weighed
from core.learning.metrics import card_text, learned_from, limits_of, side_by_side
from core.learning.options import (
    EMBEDDED,
    TOKENIZER,
    WEIGHTS,
    Options,
    encoder_folder,
    is_full,
    options_of,
)
from core.learning.retrain import beating
from core.learning.training_set import Lesson, TrainingRow, TrainingSet, training_set
from core.llm.encoder import Embedder, OnnxEncoder, load_encoder
from core.llm.export import export_encoder
from core.pipeline.run_factory import code_digest
from core.runtime.config import ENCODER_DIR
from core.runtime.errors import ConfigError, ReviewError, Stopped
from core.schema.records import Label
from core.store import Store, open_store
from core.store.versions import Version
from core.verdict.classifier import ENCODER, Classifier, json_digest, load_classifier, save_head

STAGES = (
    "Collecting the corrections",
    "Finding the encoder",
    "Making the seed texts",
    "Loading SetFit",
    "Fine-tuning",
    "Exporting the encoder",
    "Fitting the head",
    "Comparing on the held-out cases",
    "Storing the version",
)
EVERY_SECONDS = 0.5
MOST_LOSSES = 400  # points of the loss curve; beyond it every second one is dropped
CANCELLED = "The training was cancelled."
Tell = Callable[[dict[str, Any]], None]
Report = Callable[..., None]  # as `Reporter.__call__`
# Tokens of a text while pairs are learned; heads read twice as many. A batch is as long as its
# longest text: at 256, a step over long rationales took three times as long.
LONGEST = 128
SEED_CASES = Path(__file__).parent / "seed_cases.json"
KEPT = "seed_texts.json"
LOGGER = logging.getLogger(__name__)
COPIES = 4  # of the weights that are on disk at once during training and export
SPARE_BYTES = 50 * 2**20
FULL = "The disk is full: free some space in {home} and train again. The active version stays."


@dataclass
class Reporter:
    """Stores a training's progress twice a second; `tell` receives the same."""

    store: Store
    training_id: str
    began: float
    tell: Tell = lambda _: None
    losses: list[tuple[int, float]] = field(default_factory=list)
    _stage: str = ""
    _stage_began: float = 0.0
    _written: float = 0.0

    def __call__(
        self, stage: str, step: int = 0, steps: int = 0, loss: float | None = None
    ) -> None:
        """Store the progress. Raises Stopped: the training was cancelled or its lease ran out."""
        now = time.time()
        is_new = stage != self._stage
        if is_new:
            self._stage, self._stage_began = stage, now
        if loss is not None:
            self.losses = [*self.losses, (step, round(loss, 5))]
            while len(self.losses) > MOST_LOSSES:  # keeps the newest
                self.losses = self.losses[-1::-2][::-1]
        if not is_new and step < steps and now - self._written < EVERY_SECONDS:
            return
        self._written = now
        progress: dict[str, Any] = {"stage": stage, "stage_number": STAGES.index(stage) + 1}
        progress |= {"stages": len(STAGES), "seconds": round(now - self.began, 1)}
        if self.losses:
            progress["losses"] = self.losses
        if steps:
            loss = self.losses[-1][1] if self.losses else None
            progress |= {"step": step, "steps": steps, "loss": loss}
        if step:  # seconds left in this stage
            progress["eta"] = round((now - self._stage_began) / step * (steps - step), 1)
        status = self.store.versions.report_training(self.training_id, progress, now, os.getpid())
        if status != "running":
            raise Stopped(CANCELLED)
        self.tell(progress)


def fine_tuned(
    rows: Sequence[tuple[str, Label]],
    options: Options,
    source: Path,
    out: Path,
    name: str,
    report: Report,
) -> None:
    """Fine-tune the encoder in `source` contrastively; write ONNX and safetensors to `out`."""
    report("Loading SetFit")
    from sentence_transformers import SentenceTransformer
    from setfit import SetFitModel
    from sklearn.linear_model import LogisticRegression
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    body = SentenceTransformer(str(source), device="cpu", local_files_only=True)
    body.max_seq_length = min(LONGEST, body.max_seq_length or LONGEST)
    model = SetFitModel(model_body=body, model_head=LogisticRegression())
    scratch = out.parent / "scratch"
    _train_body(model, rows, options, scratch, report)
    report("Exporting the encoder")
    shutil.rmtree(scratch, ignore_errors=True)
    tuned = body[0].auto_model.eval()
    tuned.zero_grad(set_to_none=True)
    gc.collect()  # the optimiser's state is three times as large as the weights
    tuned.config._attn_implementation = "eager"
    export_encoder(tuned, source / TOKENIZER, out, name=name)
    tuned.save_pretrained(str(out))


def _train_body(
    model: Any, rows: Sequence[tuple[str, Label]], options: Options, scratch: Path, report: Report
) -> None:
    from datasets import Dataset
    from setfit import Trainer, TrainingArguments
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    class Steps(TrainerCallback):  # type: ignore[misc]
        """Reports each step and its loss."""

        def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            report("Fine-tuning", int(state.global_step), int(state.max_steps))

        def on_log(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
            logs = rest.get("logs") or {}
            loss = logs.get("embedding_loss", logs.get("loss"))
            if loss is not None:
                report("Fine-tuning", int(state.global_step), int(state.max_steps), float(loss))

    texts = {"text": [t for t, _ in rows], "label": [int(y == "hallucinated") for _, y in rows]}
    arguments = TrainingArguments(
        output_dir=str(scratch),
        batch_size=options.batch,
        num_iterations=options.pairs,
        max_steps=options.steps_for(len(rows)),
        body_learning_rate=2e-5,
        seed=options.seed,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        show_progress_bar=False,
    )
    data = Dataset.from_dict(texts)
    trainer = Trainer(model=model, args=arguments, train_dataset=data, callbacks=[Steps()])
    for printing in (PrinterCallback, ProgressCallback):  # they print to standard output
        trainer.remove_callback(printing)
    trainer.train_embeddings(texts["text"], texts["label"], args=arguments)


def seed_claims() -> list[LabelledClaim]:
    """Return the shipped cases: texts with claims that they support and that they contradict."""
    labels: tuple[Label, ...] = ("supported", "hallucinated")
    return [
        LabelledClaim(claim, (entry["text"],), label, str(number))
        for number, entry in enumerate(json.loads(SEED_CASES.read_text(encoding="utf-8")))
        for label in labels
        for claim in entry[label]
    ]


def seed_rows(encoder: Embedder, done: Callable[[int, int], None]) -> list[Lesson]:
    """Return the judge's texts of the seed cases; they keep plain verdicts known (setfit #430)."""
    claims, lessons = seed_claims(), []
    for number, item in enumerate(judged(claims, encoder), start=1):
        done(number, len(claims))
        judgement = item.judgement
        if judgement.label != "unclear":
            group = f"seed {item.row.group}"
            lessons.append(Lesson(judgement.text, item.row.label, judgement.p, group))
    return lessons


def kept_seed_rows(
    folder: Path, encoder: Embedder, done: Callable[[int, int], None]
) -> list[Lesson]:
    """Return the seed rows cached in the folder; make and cache them if there are none."""
    name = hashlib.sha256(f"{code_digest()} {encoder.id}".encode()).hexdigest()
    path = folder / KEPT
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        cached = json.loads(path.read_text(encoding="utf-8"))
        if cached["of"] == name and cached["sha256"] == json_digest(cached["rows"]):
            return [Lesson(**row) for row in cached["rows"]]
    rows = seed_rows(encoder, done)
    plain = [asdict(row) for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    content = {"of": name, "rows": plain, "sha256": json_digest(plain)}
    new = path.with_suffix(".part")
    new.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    new.replace(path)
    return rows


def main(arguments: Sequence[str] | None = None) -> int:
    """Train one version; return 0 if there is one, else 1 (the store says why)."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("training_id")
    options = parser.parse_args(arguments)
    with open_store(options.home) as store:
        training = store.versions.training(options.training_id, time.time(), 1e9)
        be_modest(str(training.options.get("encoder", EMBEDDED)) if training else EMBEDDED)
        return 0 if carry_out(store, options.home, options.training_id) else 1


def carry_out(store: Store, home: Path, training_id: str, tell: Tell = lambda _: None) -> str:
    """Train and return the new version's id, or "" if it failed: the store holds the message."""
    began = time.time()
    training = store.versions.training(training_id, began, 1e9)
    try:
        options = options_of(training.options if training else {})
        report = Reporter(store, training_id, began, tell)
        with beating(home, training_id):
            return train(store, home, report, options)
    except Stopped:
        return ""
    except ReviewError as error:
        message = str(error)
    except KeyboardInterrupt:
        words = "It was interrupted from the keyboard."
        store.versions.end_training(training_id, "cancelled", time.time(), message=words)
        raise
    except Exception as error:
        if is_full(error):
            message = FULL.format(home=home)
        elif isinstance(error, OSError):
            message = f"The version could not be written: {error}."
        else:
            LOGGER.exception("training failed")
            words = f"Training failed ({type(error).__name__}); the log has the details"
            message = f"{words}. The active version stays."
    store.versions.end_training(training_id, "failed", time.time(), message=message)
    return ""


def be_modest(encoder: str) -> None:
    """Lower the process's priority, silence it, and go offline unless the Hub is needed."""
    if encoder == EMBEDDED or Path(encoder).expanduser().is_dir():
        os.environ["HF_HUB_OFFLINE"] = "1"
    for name in (
        "TQDM_DISABLE",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_DATASETS_DISABLE_PROGRESS_BARS",
    ):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # Waiting threads must sleep: on a busy machine spinning ones starved each other for minutes.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if hasattr(os, "nice"):
        os.nice(10)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def train(store: Store, home: Path, report: Reporter, options: Options) -> str:
    """Train, compare with the active version on the hold-out, and return the new version's id.

    Listing the version, moving its files into place and finishing the training happen all at once
    or not at all.

    Raises:
        Stopped: the training was cancelled meanwhile.
        NotEnoughLabels: corrections were taken back since it was started.
        ConfigError: the encoder cannot be used, the active version is damaged, or the disk is full.
    """
    report("Collecting the corrections")
    data = training_set(store).settled  # later corrections have no side yet
    data.require_enough()
    active = load_classifier(home, store.versions.active())
    report("Finding the encoder")
    source = encoder_folder(options.encoder)
    models = home / "models"
    models.mkdir(parents=True, exist_ok=True)
    _require_space(models, source)
    seeds = kept_seed_rows(
        models,
        load_encoder(ENCODER_DIR),
        lambda done, of: report("Making the seed texts", done, of),
    )
    began = time.gmtime(report.began)
    version = f"v{time.strftime('%Y%m%d-%H%M%S', began)}-{report.training_id[:6]}"
    final_folder, folder = models / version, models / f"{version}.part"
    try:
        folder.mkdir()
        lessons: list[Lesson | TrainingRow] = [*data.train, *seeds]
        texts = [(row.text, row.label) for row in lessons]
        fine_tuned(texts, options, source, folder / ENCODER, version, report)
        card = _fit_version(store, folder, active, data, seeds, options, report)
        report("Storing the version")
        with store.writing():
            now = time.time()
            store.versions.add(Version(version, now, str(card["author"]), card))
            if not store.versions.end_training(
                report.training_id, "finished", now, version_id=version
            ):
                raise Stopped(CANCELLED)
            folder.rename(final_folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(final_folder, ignore_errors=True)
        raise
    return version


def _require_space(folder: Path, source: Path) -> None:
    needed = COPIES * (source / WEIGHTS).stat().st_size + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            f"Expected {needed // 2**20:,} MB of free disk in {folder}, "
            f"found {free // 2**20:,} MB; free some and train again. The active version stays."
        )


def _fit_version(
    store: Store,
    folder: Path,
    active: Classifier,
    data: TrainingSet,
    seeds: Sequence[Lesson],
    options: Options,
    report: Reporter,
) -> dict[str, Any]:
    """Fit and calibrate a head over the tuned encoder, compare, write, and return the card."""
    report("Fitting the head")
    encoder = OnnxEncoder(folder / ENCODER)
    corrections, own, split = (
        encoded(rows, encoder) for rows in (data.train, seeds, data.calibration)
    )
    learned = corrections.with_others(own)
    selection = weighed(fit_head(learned, options), learned, split)
    curve, is_cross_fitted = fit_calibration(selection.head, corrections, own, split, options)
    head = replace(selection.head, calibrator=curve.calibrator)
    report("Comparing on the held-out cases")
    name = folder.name.removesuffix(".part")
    comparison = side_by_side(data.held, active, Classifier(name, head, encoder, {}))
    training = store.versions.training(report.training_id, time.time(), 1e9)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    card: dict[str, Any] = {
        "name": name,
        "author": training.author if training else "",
        **learned_from(data, len(seeds), options),
        "reads": selection.card(),
        "calibration": curve.card(is_cross_fitted=is_cross_fitted),
        "compared_with": active.version,
        "holdout": comparison,
        "reliability": comparison["reliability"]["after"],
        "losses": report.losses,
        "encoder": encoder.id,
        "seconds": round(time.time() - report.began, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
        "memory_mb": usage.ru_maxrss // 1024,
    }
    card["limits"] = limits_of(card)
    (folder / "README.md").write_text(card_text(card), encoding="utf-8")
    save_head(folder, head, card)
    return card


if __name__ == "__main__":
    sys.exit(main())
