"""The training: a fine-tuned encoder, a calibrated head, the comparison on the hold-out.

Runs as `python -m core.learning.train --home DIR ID`, reports its progress to the store, and sees
there that it was cancelled. Source: CEDA 3.4.
"""

from __future__ import annotations

import argparse
import logging
import os
import resource
import shutil
import sys
import time
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from core.config import ENCODER_DIR
from core.errors import ConfigError, ReviewError, Stopped
from core.learning.comparison import side_by_side
from core.learning.encoders import WEIGHTS, encoder_folder, is_full
from core.learning.fine_tune import fine_tuned
from core.learning.head_fit import fit_calibration, fitted_head, lesson_of, numbered
from core.learning.head_words import weighed
from core.learning.model_card import card_text, learned_from, limits_of
from core.learning.options import EMBEDDED, Options, options_of
from core.learning.seed import kept_seed_rows
from core.learning.training_lease import beating
from core.learning.training_report import CANCELLED, Reporter, Tell
from core.learning.training_set import TrainingSet, training_set
from core.learning.verdict_texts import Lesson
from core.models.encoder import OnnxEncoder, load_encoder
from core.store import Store, open_store
from core.store.versions import Version
from core.verdict.classifier import ENCODER, Classifier, load_classifier, save_head

LOGGER = logging.getLogger(__name__)
COPIES = 4  # of the weights, on disk at once while they are trained and exported
SPARE_BYTES = 50 * 2**20
FULL = "The disk is full: free some space in {home} and train again. The active version stays."


def main(arguments: Sequence[str] | None = None) -> int:
    """Train one version; 0 when it is there, 1 when not (the store says why)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, required=True)
    parser.add_argument("training_id")
    given = parser.parse_args(arguments)
    with open_store(given.home) as store:
        training = store.versions.training(given.training_id, time.time(), 1e9)
        be_modest(str(training.options.get("encoder", EMBEDDED)) if training else EMBEDDED)
        return 0 if carry_out(store, given.home, given.training_id) else 1


def carry_out(store: Store, home: Path, training_id: str, tell: Tell = lambda _: None) -> str:
    """Carry out a training that was started; the new version's id, or nothing.

    Whatever goes wrong, the training ends with a message and nothing of it stays.
    """
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
        _fail(store, training_id, str(error))
    except KeyboardInterrupt:
        words = "It was interrupted from the keyboard."
        store.versions.end_training(training_id, "cancelled", time.time(), message=words)
        raise
    except Exception as error:
        if is_full(error):
            _fail(store, training_id, FULL.format(home=home))
        elif isinstance(error, OSError):
            _fail(store, training_id, f"The version could not be written: {error}.")
        else:
            LOGGER.exception("training failed")
            words = f"Training failed ({type(error).__name__}); the log has the details"
            _fail(store, training_id, f"{words}. The active version stays.")
    return ""


def be_modest(encoder: str) -> None:
    """Leave the processor to the pages, and the terminal to what we say ourselves.

    The network is left to whoever names an encoder of the Hub.
    """
    if encoder == EMBEDDED or Path(encoder).expanduser().is_dir():
        os.environ["HF_HUB_OFFLINE"] = "1"
    for name in (
        "TQDM_DISABLE",
        "HF_HUB_DISABLE_PROGRESS_BARS",
        "HF_DATASETS_DISABLE_PROGRESS_BARS",
    ):
        os.environ[name] = "1"
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    # threads that wait must sleep: on a busy machine spinning ones starved each other for minutes
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    if hasattr(os, "nice"):
        os.nice(10)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


def _fail(store: Store, training_id: str, message: str) -> None:
    store.versions.end_training(training_id, "failed", time.time(), message=message)


def train(store: Store, home: Path, report: Reporter, options: Options) -> str:
    """Train, compare with the active version on the hold-out, store; the new version's id.

    The version is listed, its files lie where it is looked for and the training is finished: all
    at once, or none of it.

    Raises:
        Stopped: the training was cancelled meanwhile.
        NotEnoughLabels: corrections were taken back since it was started.
        ConfigError: the encoder cannot be used, the active version is damaged, the disk is full.
    """
    report("Collecting the corrections")
    data = training_set(store).settled  # what was corrected since the start has no side
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
    kept = models / version
    folder = kept.with_name(f"{version}.part")
    try:
        folder.mkdir()
        lessons = [*map(lesson_of, data.train), *seeds]
        texts = [(row.text, row.label) for row in lessons]
        fine_tuned(texts, options, source, folder / ENCODER, version, report)
        card = _fitted(store, folder, active, data, seeds, options, report)
        report("Storing the version")
        with store.writing():
            now = time.time()
            store.versions.add(Version(version, now, str(card["author"]), card))
            is_finished = store.versions.end_training(
                report.training_id, "finished", now, version_id=version
            )
            if not is_finished:
                raise Stopped(CANCELLED)
            folder.rename(kept)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(kept, ignore_errors=True)
        raise
    return version


def _require_space(folder: Path, source: Path) -> None:
    """Find out that the disk is too full before the work of minutes, not after."""
    needed = COPIES * (source / WEIGHTS).stat().st_size + SPARE_BYTES
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise ConfigError(
            f"Expected {needed // 2**20:,} MB of free disk in {folder}, "
            f"found {free // 2**20:,} MB; free some and train again. The active version stays."
        )


def _fitted(
    store: Store,
    folder: Path,
    active: Classifier,
    data: TrainingSet,
    seeds: Sequence[Lesson],
    options: Options,
    report: Reporter,
) -> dict[str, Any]:
    """Fit and calibrate the head over the tuned encoder, compare, write; the version's card."""
    report("Fitting the head")
    encoder = OnnxEncoder(folder / ENCODER)
    corrections, own = numbered([*map(lesson_of, data.train)], encoder), numbered(seeds, encoder)
    split = numbered([*map(lesson_of, data.calibration)], encoder)
    learned = corrections.with_others(own)
    reads = weighed(fitted_head(learned, options), learned, split)
    head = reads.head
    curve, is_cross_fitted = fit_calibration(head, corrections, own, split, options)
    head = replace(head, calibrator=curve.calibrator)
    report("Comparing on the held-out cases")
    name = folder.name.removesuffix(".part")
    held = side_by_side(data.held, active, Classifier(name, head, encoder, {}))
    training = store.versions.training(report.training_id, time.time(), 1e9)
    used = resource.getrusage(resource.RUSAGE_SELF)
    card: dict[str, Any] = {
        "name": name,
        "author": training.author if training else "",
        **learned_from(data, len(seeds), options),
        "reads": reads.card(),
        "calibration": curve.card(is_cross_fitted=is_cross_fitted),
        "compared_with": active.version,
        "holdout": held,
        "reliability": held["reliability"]["after"],
        "losses": report.losses,
        "encoder": encoder.id,
        "seconds": round(time.time() - report.began, 1),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 1),
        "memory_mb": used.ru_maxrss // 1024,
    }
    card["limits"] = limits_of(card)
    (folder / "README.md").write_text(card_text(card), encoding="utf-8")
    save_head(folder, head, card)
    return card


if __name__ == "__main__":
    sys.exit(main())
