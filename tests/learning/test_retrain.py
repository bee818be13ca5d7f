"""Retraining in earnest: a real process, real SetFit, a version that can be activated or not."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

from core.documents.library import store_file
from core.learning.options import TrainingOptions
from core.learning.retrain import (
    TRAINING_LEASE_SECONDS,
    activate_version,
    cancel_training,
    is_worse_version,
    start_training,
)
from core.learning.train import load_seed_claims
from core.pipeline.jobs import JobRunner
from core.pipeline.single_check import CaseDraft, store_case
from core.review.people import ensure_project
from core.runtime.config import Settings
from core.runtime.errors import ConfigError, ConflictError, InputError, NotAllowed, NotEnoughLabels
from core.schema.records import Label, Member, Plan, new_id
from core.schema.reviews import Correction
from core.store import Store, open_store
from core.store.versions import SEED_VERSION, ClassifierVersion, TrainingJob
from core.verdict.classifier import get_version_folder, load_classifier
from tests.fakes import get_last_person
from tests.waiting import wait_for

pytestmark = [pytest.mark.timing, pytest.mark.slow]

WIDTH, INNER, POSITIONS, BUCKETS, HEADS = 32, 64, 514, 32, 2
SPECIAL = ["<s>", "<pad>", "</s>", "<mask>", "[UNK]"]
WORDS = (
    "the statement is wrong correct verdict incorrect hallucinated supported both debaters agree "
    "that evidence says all nothing of it carried contradiction readers find clear . : , “ ”"
).split()
LAYER = "encoder.layer.0."
SHAPES = {
    "embeddings.position_embeddings.weight": (POSITIONS, WIDTH),
    "embeddings.word_embeddings.weight": (len(SPECIAL) + len(WORDS), WIDTH),
    "encoder.relative_attention_bias.weight": (BUCKETS, HEADS),
    "pooler.dense.bias": (WIDTH,),
    "pooler.dense.weight": (WIDTH, WIDTH),
    **{f"{LAYER}attention.attn.{part}.bias": (WIDTH,) for part in "koqv"},
    **{f"{LAYER}attention.attn.{part}.weight": (WIDTH, WIDTH) for part in "koqv"},
    f"{LAYER}intermediate.dense.bias": (INNER,),
    f"{LAYER}intermediate.dense.weight": (INNER, WIDTH),
    f"{LAYER}output.dense.bias": (WIDTH,),
    f"{LAYER}output.dense.weight": (WIDTH, INNER),
}
NORMS = ("embeddings", f"{LAYER}attention", f"{LAYER}output")
CONFIG = {
    "architectures": ["MPNetModel"], "model_type": "mpnet", "hidden_size": WIDTH,
    "intermediate_size": INNER, "num_attention_heads": HEADS, "num_hidden_layers": 1,
    "max_position_embeddings": POSITIONS, "relative_attention_num_buckets": BUCKETS,
    "vocab_size": len(SPECIAL) + len(WORDS), "pad_token_id": 1, "bos_token_id": 0,
    "eos_token_id": 2, "hidden_act": "gelu", "dtype": "float32",
}  # fmt: skip


def make_tiny_encoder(folder: Path) -> Path:
    """Write it, and return the folder."""
    random = np.random.default_rng(4)
    folder.mkdir(parents=True)
    arrays = {n: random.normal(0, 0.2, shape).astype(np.float32) for n, shape in SHAPES.items()}
    for name in NORMS:
        arrays[f"{name}.LayerNorm.weight"] = np.ones(WIDTH, np.float32)
        arrays[f"{name}.LayerNorm.bias"] = np.zeros(WIDTH, np.float32)
    save_file(arrays, folder / "model.safetensors", metadata={"format": "pt"})
    (folder / "config.json").write_text(json.dumps(CONFIG))
    names = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "[UNK]"}
    tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 256}
    (folder / "tokenizer_config.json").write_text(json.dumps(names | tokenizer))
    words = Tokenizer(
        models.WordLevel({w: n for n, w in enumerate(SPECIAL + WORDS)}, unk_token="[UNK]")
    )
    words.normalizer = normalizers.Lowercase()
    words.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    words.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    words.add_special_tokens(SPECIAL)
    words.save(str(folder / "tokenizer.json"))
    return folder


TEXT = (
    "The Nordre lighthouse is 38 m high. It was built in 1877. Its light is seen for 19 miles. "
    "The keeper Olga Strand lived there until 1956. The island has two wells. Seals breed on the "
    "northern shore. The path is closed in winter."
)
CLAIMS: list[tuple[str, Label]] = [
    *((claim, "supported") for claim in """\
The Nordre lighthouse is 38 m high.
The Nordre lighthouse was built in 1877.
Its light is seen for 19 miles.
Olga Strand lived there until 1956.
The island has two wells.
Seals breed on the northern shore.
The path is closed in winter.
The keeper Olga Strand lived there until 1956.
The lighthouse was built in 1877.""".splitlines()),
    *((claim, "hallucinated") for claim in """\
The Nordre lighthouse is 48 m high.
The Nordre lighthouse was built in 1897.
Its light is seen for 29 miles.
Olga Strand lived there until 1966.
The island has three wells.
Seals breed on the southern shore.
The path is open in winter.
The keeper Maria Lund lived there until 1956.
The lighthouse was built in 1777.""".splitlines()),
]  # fmt: skip


def correct_claims(home: Path, claims: Sequence[tuple[str, Label]]) -> None:
    """Check each claim against the text and say what is right."""
    jobs = JobRunner(home)
    with open_store(home) as store:
        who = get_last_person(store)
        project = ensure_project(store, who, 1.0)
        entry = store_file(store, home, project.id, "n.txt", TEXT.encode(), who, 1.0, Settings())
        for claim, label in claims:
            case = store_case(store, project, CaseDraft(claim, documents=(entry.id,)), who, 1.0)
            run_id = jobs.start(case, Plan())
            assert jobs.wait(run_id, 60)
            correction = Correction(
                new_id(), run_id, case.id, who, time.time(), label, reason="the text says so"
            )
            with store.writing():
                store.corrections.add(correction, claim)


PATIENCE = 800.0  # other tests have the cores meanwhile


@pytest.fixture
def corrected(home: Path) -> Path:
    """A home with nine corrections of each label."""
    correct_claims(home, CLAIMS)
    return home


def led(store: Store) -> str:
    """The first project, with Mira as its lead."""
    project = ensure_project(store, "Mira", 1.0)
    store.projects.set_member(Member(project.id, "Nora", "admin", 1.0))
    store.projects.set_member(Member(project.id, "Mira", "lead", 1.0))
    return project.id


def wait_for_training(home: Path) -> str:
    """The training's status once it has ended."""
    with open_store(home) as store:

        def find_end() -> str:
            newest = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)[0]
            is_running = newest.status == "running"
            return "" if is_running else f"{newest.status} {newest.message}".strip()

        return wait_for(find_end, "the training's end")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_corrections_become_a_version_that_is_activated_and_rolled_back(
    corrected: Path, tmp_path: Path
) -> None:
    """From an encoder of the paper's kind, in a folder; the embedded one is the browser's test."""
    encoder = make_tiny_encoder(tmp_path / "encoder")
    with open_store(corrected) as store:
        led(store)
        start_training(store, corrected, "Mira", TrainingOptions(encoder=str(encoder), steps=12))
        with pytest.raises(ConflictError, match="under way already"):
            start_training(store, corrected, "Mira")
    assert wait_for_training(corrected) == "finished"
    with open_store(corrected) as store:
        version = store.versions.all()[0]
        folder = get_version_folder(corrected, version.id)
        held = version.card["holdout"]
        assert held["before"]["n"] == held["after"]["n"] == len(held["rows"]) >= 2
        trained = set(version.card["trained_on"]["corrections"])
        assert len(trained) == len(CLAIMS) - len(held["rows"])
        files = {path.name for path in folder.rglob("*") if path.is_file()}
        assert files >= {"head.safetensors", "encoder.onnx", "model.safetensors", "README.md"}
        assert not {name for name in files if name.endswith((".pkl", ".bin", ".pt"))}
        assert not list((corrected / "models").glob("*.part"))
        progress = store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)[0].progress
        assert [step for step, _ in progress["losses"]] == [*range(1, 13)]
        assert version.card["losses"] == progress["losses"]
        assert json.loads((folder / "card.json").read_text()) == version.card
        assert store.versions.active() == SEED_VERSION
        reason = "a test" if is_worse_version(store, version.id) else ""
        activate_version(store, corrected, version.id, by="Mira", reason=reason)
        assert store.versions.active() == version.id
        wrong, right = (
            load_classifier(corrected, version.id).probability(text)
            for text in ("Verdict: INCORRECT, it is hallucinated.", "Verdict: CORRECT.")
        )
        assert wrong > right
        activate_version(store, corrected, SEED_VERSION, by="Mira", reason="back")
        assert store.versions.active() == SEED_VERSION


@pytest.mark.slow
@pytest.mark.timeout(200)
def test_a_cancelled_training_leaves_no_version_and_no_files(corrected: Path) -> None:
    with open_store(corrected) as store:
        led(store)
        training = start_training(store, corrected, "Mira")
        wait_for(lambda: store.versions.trainings(time.time(), TRAINING_LEASE_SECONDS)[0].progress)
        cancel_training(store, training, "Mira")
        assert wait_for_training(corrected) == "cancelled Cancelled by Mira."
        models = corrected / "models"
        wait_for(lambda: not any(path.is_dir() for path in models.iterdir()), "the clearing up")
        assert store.versions.all() == []


def test_a_worse_version_takes_a_reason(home: Path) -> None:
    before = {"balanced_accuracy": 0.9, "accuracy": 0.9}
    after = {"balanced_accuracy": 0.7, "accuracy": 0.8}
    with open_store(home) as store:
        card = {"holdout": {"before": before, "after": after}}
        store.versions.add(ClassifierVersion("v1", 1.0, "Mira", card))
        led(store)
        with pytest.raises(InputError, match="activating it takes a reason"):
            activate_version(store, home, "v1", by="Mira", reason="  ")
        with pytest.raises(ConfigError, match="found none that can be read"):
            activate_version(store, home, "v1", by="Mira", reason="I know better")
        with pytest.raises(InputError, match="no version v9"):
            activate_version(store, home, "v9", by="Mira", reason="")
        assert store.versions.active() == SEED_VERSION


def test_whoever_lost_the_role_meanwhile_changes_nothing(home: Path) -> None:
    """The page was drawn for a lead; the role counts when it is written."""
    with open_store(home) as store:
        project = led(store)
        store.versions.start_training(
            TrainingJob("t", "Mira", 1.0, "running", {}, None, "", None), time.time(), 60.0
        )
        store.projects.set_member(Member(project, "Mira", "annotator", 2.0))
        with pytest.raises(NotAllowed, match="To cancel a training takes the role lead"):
            cancel_training(store, "t", "Mira")
        with pytest.raises(NotAllowed, match="To activate a version takes the role lead"):
            activate_version(store, home, SEED_VERSION, by="Mira", reason="")
        assert [t.status for t in store.versions.trainings(time.time(), 60.0)] == ["running"]
        assert store.versions.activations() == []
        assert not store.db.conn.in_transaction


def test_a_training_takes_the_role_of_a_lead(corrected: Path) -> None:
    with open_store(corrected) as store:
        led(store)
        with pytest.raises(NotAllowed, match="To retrain takes the role lead; Karl has none"):
            start_training(store, corrected, "Karl")
        assert store.versions.trainings(time.time(), 1.0) == []
        assert store.versions.holdout() == {}


def test_a_training_that_does_not_start_leaves_the_hold_out_as_it_was(home: Path) -> None:
    correct_claims(home, CLAIMS[:2])
    with open_store(home) as store:
        led(store)
        with pytest.raises(NotEnoughLabels):
            start_training(store, home, "Mira")
        assert store.versions.trainings(time.time(), 1.0) == []
        store.versions.start_training(
            TrainingJob("t", "Mira", 1.0, "running", {}, None, "", None), time.time(), 60.0
        )
        with pytest.raises(ConflictError):
            start_training(store, home, "Mira")
        assert store.versions.holdout() == {}


def test_seed_cases_are_balanced_and_hold_what_they_say() -> None:
    claims = load_seed_claims()
    labels = [claim.label for claim in claims]
    assert abs(labels.count("supported") - labels.count("hallucinated")) <= 4
    assert len(claims) >= 40
    assert len({claim.claim for claim in claims}) == len(claims)
