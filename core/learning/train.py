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
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from core.agents.rosters import make_built_in_roster
from core.learning.head_fit import encode_rows, fit_calibration, fit_head, select_head
from core.learning.metrics import (
    compare_classifiers,
    describe_training_data,
    list_card_limits,
    render_card,
)
from core.learning.options import (
    EMBEDDED_ENCODER,
    ENCODER_WEIGHTS_FILE,
    TOKENIZER_FILE,
    TrainingOptions,
    find_encoder_folder,
    is_disk_full,
    parse_options,
)
from core.learning.retrain import renew_lease
from core.learning.training_set import LabelledText, TrainingRow, TrainingSet, load_training_set
from core.llm.encoder import Embedder, OnnxEncoder, load_encoder
from core.llm.export import export_encoder
from core.pipeline.run_factory import compute_code_digest
from core.pipeline.temporary_home import CheckMaterial, open_temporary_home
from core.runtime.concurrency import StopSignal
from core.runtime.config import ENCODER_DIR, Settings
from core.runtime.errors import ConfigError, ReviewError, Stopped
from core.schema.records import Judgement, Label, Plan
from core.store import Store, open_store
from core.store.versions import ClassifierVersion
from core.verdict.classifier import (
    ENCODER_SUBFOLDER,
    Classifier,
    compute_json_digest,
    load_classifier,
    save_head,
)

TRAINING_STAGES = (
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
REPORT_SECONDS = 0.5
MAX_LOSS_POINTS = 400  # points of the loss curve; beyond it every second one is dropped
CANCELLED_MESSAGE = "The training was cancelled."
ProgressListener = Callable[[dict[str, Any]], None]
ReportCallback = Callable[..., None]  # as `TrainingReporter.__call__`
# Tokens of a text while pairs are learned; heads read twice as many. A batch is as long as its
# longest text: at 256, a step over long rationales took three times as long.
MAX_PAIR_TOKENS = 128
SEED_CASES_FILE = Path(__file__).parent / "seed_cases.json"
SEED_TEXTS_NAME = "seed_texts.json"
LOGGER = logging.getLogger(__name__)
WEIGHT_COPIES = 4  # of the weights that are on disk at once during training and export
SPARE_BYTES = 50 * 2**20
DISK_FULL_MESSAGE = (
    "The disk is full: free some space in {home} and train again. The active version stays."
)


@dataclass
class TrainingReporter:
    """Stores a training's progress twice a second; `tell` receives the same."""

    store: Store
    training_id: str
    began: float
    tell: ProgressListener = lambda _: None
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
            while len(self.losses) > MAX_LOSS_POINTS:  # keeps the newest
                self.losses = self.losses[-1::-2][::-1]
        if not is_new and step < steps and now - self._written < REPORT_SECONDS:
            return
        self._written = now
        progress: dict[str, Any] = {
            "stage": stage,
            "stage_number": TRAINING_STAGES.index(stage) + 1,
        }
        progress |= {"stages": len(TRAINING_STAGES), "seconds": round(now - self.began, 1)}
        if self.losses:
            progress["losses"] = self.losses
        if steps:
            loss = self.losses[-1][1] if self.losses else None
            progress |= {"step": step, "steps": steps, "loss": loss}
        if step:  # seconds left in this stage
            progress["eta"] = round((now - self._stage_began) / step * (steps - step), 1)
        status = self.store.versions.report_training(self.training_id, progress, now, os.getpid())
        if status != "running":
            raise Stopped(CANCELLED_MESSAGE)
        self.tell(progress)


def fine_tune_encoder(
    rows: Sequence[tuple[str, Label]],
    options: TrainingOptions,
    source: Path,
    out: Path,
    name: str,
    report: ReportCallback,
) -> None:
    """Fine-tune the encoder in `source` contrastively; write ONNX and safetensors to `out`."""
    report("Loading SetFit")
    from sentence_transformers import SentenceTransformer
    from setfit import SetFitModel
    from sklearn.linear_model import LogisticRegression
    from transformers.utils import logging as transformers_logging

    transformers_logging.disable_progress_bar()
    body = SentenceTransformer(str(source), device="cpu", local_files_only=True)
    body.max_seq_length = min(MAX_PAIR_TOKENS, body.max_seq_length or MAX_PAIR_TOKENS)
    model = SetFitModel(model_body=body, model_head=LogisticRegression())
    scratch = out.parent / "scratch"
    _train_body(model, rows, options, scratch, report)
    report("Exporting the encoder")
    shutil.rmtree(scratch, ignore_errors=True)
    tuned = body[0].auto_model.eval()
    tuned.zero_grad(set_to_none=True)
    gc.collect()  # the optimiser's state is three times as large as the weights
    tuned.config._attn_implementation = "eager"
    export_encoder(tuned, source / TOKENIZER_FILE, out, name=name)
    tuned.save_pretrained(str(out))


def _train_body(
    model: Any,
    rows: Sequence[tuple[str, Label]],
    options: TrainingOptions,
    scratch: Path,
    report: ReportCallback,
) -> None:
    from datasets import Dataset
    from setfit import Trainer, TrainingArguments
    from transformers import TrainerCallback
    from transformers.trainer_callback import PrinterCallback, ProgressCallback

    class Steps(TrainerCallback):
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


@dataclass(frozen=True)
class LabelledClaim:
    """A claim over texts, with the label people gave it; `group` keeps related rows together."""

    claim: str
    texts: tuple[str, ...]
    label: Label
    group: str
    question: str = ""


@dataclass(frozen=True)
class JudgedClaim:
    """A labelled claim with the built-in judge's judgement."""

    row: LabelledClaim
    judgement: Judgement


def judge_claims(rows: Iterable[LabelledClaim], encoder: Embedder) -> Iterator[JudgedClaim]:
    """Yield each row with its judgement, in order, judged in a temporary home (CEDA 4.2)."""
    with open_temporary_home(Settings()) as bench:
        agents = bench.build_agents(make_built_in_roster("builtin"), encoder)
        for row in rows:
            material = CheckMaterial(row.claim, row.question, row.texts)
            judgement = bench.check(material, agents, Plan(), StopSignal()).judgement
            if judgement is not None:
                yield JudgedClaim(row, judgement)


def load_seed_claims() -> list[LabelledClaim]:
    """Return the shipped cases: texts with claims that they support and that they contradict."""
    labels: tuple[Label, ...] = ("supported", "hallucinated")
    return [
        LabelledClaim(claim, (entry["text"],), label, str(number))
        for number, entry in enumerate(json.loads(SEED_CASES_FILE.read_text(encoding="utf-8")))
        for label in labels
        for claim in entry[label]
    ]


def judge_seed_claims(encoder: Embedder, done: Callable[[int, int], None]) -> list[LabelledText]:
    """Return the judge's texts of the seed cases; they keep plain verdicts known (setfit #430)."""
    claims, lessons = load_seed_claims(), []
    for number, item in enumerate(judge_claims(claims, encoder), start=1):
        done(number, len(claims))
        judgement = item.judgement
        if judgement.label != "unclear":
            group = f"seed {item.row.group}"
            lessons.append(LabelledText(judgement.text, item.row.label, judgement.p, group))
    return lessons


def load_seed_rows(
    folder: Path, encoder: Embedder, done: Callable[[int, int], None]
) -> list[LabelledText]:
    """Return the seed rows cached in the folder; make and cache them if there are none."""
    name = hashlib.sha256(f"{compute_code_digest()} {encoder.id}".encode()).hexdigest()
    path = folder / SEED_TEXTS_NAME
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        cached = json.loads(path.read_text(encoding="utf-8"))
        if cached["of"] == name and cached["sha256"] == compute_json_digest(cached["rows"]):
            return [LabelledText(**row) for row in cached["rows"]]
    rows = judge_seed_claims(encoder, done)
    plain = [asdict(row) for row in rows]
    folder.mkdir(parents=True, exist_ok=True)
    content = {"of": name, "rows": plain, "sha256": compute_json_digest(plain)}
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
        limit_process(
            str(training.options.get("encoder", EMBEDDED_ENCODER)) if training else EMBEDDED_ENCODER
        )
        return 0 if run_training(store, options.home, options.training_id) else 1


def run_training(
    store: Store, home: Path, training_id: str, tell: ProgressListener = lambda _: None
) -> str:
    """Train and return the new version's id, or "" if it failed: the store holds the message."""
    began = time.time()
    training = store.versions.training(training_id, began, 1e9)
    try:
        options = parse_options(training.options if training else {})
        report = TrainingReporter(store, training_id, began, tell)
        with renew_lease(home, training_id):
            return train_version(store, home, report, options)
    except Stopped:
        return ""
    except ReviewError as error:
        message = str(error)
    except KeyboardInterrupt:
        words = "It was interrupted from the keyboard."
        store.versions.end_training(training_id, "cancelled", time.time(), message=words)
        raise
    except Exception as error:
        if is_disk_full(error):
            message = DISK_FULL_MESSAGE.format(home=home)
        elif isinstance(error, OSError):
            message = f"The version could not be written: {error}."
        else:
            LOGGER.exception("training failed")
            words = f"Training failed ({type(error).__name__}); the log has the details"
            message = f"{words}. The active version stays."
    store.versions.end_training(training_id, "failed", time.time(), message=message)
    return ""


def limit_process(encoder: str) -> None:
    """Lower the process's priority, silence it, and go offline unless the Hub is needed."""
    if encoder == EMBEDDED_ENCODER or Path(encoder).expanduser().is_dir():
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


def train_version(
    store: Store, home: Path, report: TrainingReporter, options: TrainingOptions
) -> str:
    """Train, compare with the active version on the hold-out, and return the new version's id.

    Listing the version, moving its files into place and finishing the training happen all at once
    or not at all.

    Raises:
        Stopped: the training was cancelled meanwhile.
        NotEnoughLabels: corrections were taken back since it was started.
        ConfigError: the encoder cannot be used, the active version is damaged, or the disk is full.
    """
    report("Collecting the corrections")
    data = load_training_set(store).settled  # later corrections have no side yet
    data.require_enough()
    active = load_classifier(home, store.versions.active())
    report("Finding the encoder")
    source = find_encoder_folder(options.encoder)
    models = home / "models"
    models.mkdir(parents=True, exist_ok=True)
    _require_space(models, source)
    seeds = load_seed_rows(
        models,
        load_encoder(ENCODER_DIR),
        lambda done, of: report("Making the seed texts", done, of),
    )
    began = time.gmtime(report.began)
    version = f"v{time.strftime('%Y%m%d-%H%M%S', began)}-{report.training_id[:6]}"
    final_folder, folder = models / version, models / f"{version}.part"
    try:
        folder.mkdir()
        lessons: list[LabelledText | TrainingRow] = [*data.train, *seeds]
        texts = [(row.text, row.label) for row in lessons]
        fine_tune_encoder(texts, options, source, folder / ENCODER_SUBFOLDER, version, report)
        card = _fit_version(store, folder, active, data, seeds, options, report)
        report("Storing the version")
        with store.writing():
            now = time.time()
            store.versions.add(ClassifierVersion(version, now, str(card["author"]), card))
            if not store.versions.end_training(
                report.training_id, "finished", now, version_id=version
            ):
                raise Stopped(CANCELLED_MESSAGE)
            folder.rename(final_folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(final_folder, ignore_errors=True)
        raise
    return version


def _require_space(folder: Path, source: Path) -> None:
    needed = WEIGHT_COPIES * (source / ENCODER_WEIGHTS_FILE).stat().st_size + SPARE_BYTES
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
    seeds: Sequence[LabelledText],
    options: TrainingOptions,
    report: TrainingReporter,
) -> dict[str, Any]:
    """Fit and calibrate a head over the tuned encoder, compare, write, and return the card."""
    report("Fitting the head")
    encoder = OnnxEncoder(folder / ENCODER_SUBFOLDER)
    corrections, own, split = (
        encode_rows(rows, encoder) for rows in (data.train, seeds, data.calibration)
    )
    learned = corrections.with_others(own)
    selection = select_head(fit_head(learned, options), learned, split)
    curve, is_cross_fitted = fit_calibration(selection.head, corrections, own, split, options)
    head = replace(selection.head, calibrator=curve.calibrator)
    report("Comparing on the held-out cases")
    name = folder.name.removesuffix(".part")
    comparison = compare_classifiers(data.held, active, Classifier(name, head, encoder, {}))
    training = store.versions.training(report.training_id, time.time(), 1e9)
    usage = resource.getrusage(resource.RUSAGE_SELF)
    card: dict[str, Any] = {
        "name": name,
        "author": training.author if training else "",
        **describe_training_data(data, len(seeds), options),
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
    card["limits"] = list_card_limits(card)
    (folder / "README.md").write_text(render_card(card), encoding="utf-8")
    save_head(folder, head, card)
    return card


if __name__ == "__main__":
    sys.exit(main())
