"""The trainer of the entailment reader, end to end over a few rows of our own."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.config import READER_DIR
from core.errors import InputError
from core.evaluation import reader_card, reader_pairs, reader_training
from core.evaluation.gold import GoldRow
from core.evaluation.reader_batches import (
    WIDTHS,
    Recipe,
    batches,
    encoded,
    tokenizer_of,
    views_of,
)
from core.evaluation.reader_pairs import SUPPORTED, Pair, Source, labelled_pairs, pair_of
from core.models.export import wheel_folder
from core.models.reader import OnnxReader

TOWNS = ("Ardo", "Belin", "Corva", "Dunmor", "Elst", "Fara", "Gorin", "Hald", "Ister", "Jurm")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A data folder with one set of 80 rows, both labels over each of 40 evidences."""
    rows = []
    for number in range(40):
        town, year = f"{TOWNS[number % 10]}{'abcd'[number // 10]}", 1800 + number
        evidence = f"{town} got its railway in {year}. The station stands by the river."
        for label, told in (("SUPPORTS", year), ("REFUTES", year + 100)):
            claim = f"{town} got its railway in {told}."
            rows.append({"gold_label": label, "evidence": evidence, "claim": claim, "id": number})
    path = tmp_path / "data" / "fever_symmetric" / "fever_symmetric_dev.jsonl.gz"
    path.parent.mkdir(parents=True)
    path.write_bytes(gzip.compress("\n".join(json.dumps(row) for row in rows).encode()))
    return path.parent.parent


@pytest.fixture
def one_source(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer with that one set."""
    sources = (Source("fever_symmetric", 2.0),)
    monkeypatch.setattr(reader_pairs, "SOURCES", sources)
    monkeypatch.setattr(reader_card, "SOURCES", sources)


@pytest.mark.usefixtures("one_source")
def test_parts_share_no_evidence(folder: Path) -> None:
    parts = {part: list(labelled_pairs(folder, [part])) for part in ("train", "calibration", "dev")}
    assert sum(len(pairs) for pairs in parts.values()) == 80
    assert all(parts.values())
    seen = [{pair.evidence for pair in pairs} for pairs in parts.values()]
    assert not seen[0] & seen[1] | seen[0] & seen[2] | seen[1] & seen[2]


def test_every_view_is_in_one_batch_of_a_known_shape() -> None:
    recipe = Recipe(views=300, tokens_per_batch=512)
    pairs = [
        Pair(
            f"{town} has a port. " * (1 + number),
            f"{town} has a port.",
            SUPPORTED,
            1.0,
            "own",
            town,
        )
        for number, town in enumerate(TOWNS)
    ]
    seen = views_of(pairs, recipe)
    assert len(seen) == 300
    made = list(batches(seen, tokenizer_of(wheel_folder()), recipe))
    assert sum(len(batch.allowed) for batch in made) == 300
    for batch in made:
        rows, length = batch.ids.shape
        assert length in WIDTHS
        assert rows == len(batch.allowed) <= max(1, 512 // length)
        assert (batch.mask.sum(axis=1) > 0).all()


@pytest.mark.parametrize(
    ("evidence", "statement"),
    [
        ("Elst has a port. " * 4, "Elst has a port. " * 4),
        ("Elst has a port. " * 100, "Elst has a port. " * 30),
        ("Elst has a port. " * 100, "Elst has a port. " * 80),
        ("Elst has a port. " * 100, "Elst has a port. " * 300),
        ("Elst. ", "Elst has a port. " * 300),
    ],
)
def test_a_pair_is_trained_on_as_the_reader_will_read_it(evidence: str, statement: str) -> None:
    given: list[dict[str, list[list[int]]]] = []

    class Session:
        def run(self, _: None, inputs: dict[str, Any]) -> tuple[Any]:
            given.append({name: value.tolist() for name, value in inputs.items()})
            return (np.zeros((1, 3)),)

    reader = OnnxReader(READER_DIR)
    reader._session = Session()
    reader.read([(evidence, statement)])
    (made,) = encoded(
        [Pair(evidence, statement, SUPPORTED, 1.0, "own", "g")], tokenizer_of(wheel_folder())
    )
    assert [made.ids] == given[0]["input_ids"]
    assert [made.type_ids] == given[0]["token_type_ids"]
    assert len(made.ids) <= WIDTHS[-1]


@pytest.mark.parametrize("evidence", ["", "Elst has a port. " * 40])
def test_no_pair_to_begin_with_is_said_instead_of_looked_for_for_ever(evidence: str) -> None:
    pairs = [Pair(evidence, "So.", SUPPORTED, 1.0, "own", "g")] if evidence else []
    with pytest.raises(InputError, match="Expected labelled pairs to train on"):
        views_of(pairs, Recipe(views=10))


@pytest.mark.usefixtures("one_source")
@pytest.mark.timeout(600)
def test_it_writes_a_reader_that_is_read_and_says_what_it_learned_from(
    folder: Path, tmp_path: Path
) -> None:
    out, kept = tmp_path / "reader", tmp_path / "kept.safetensors"
    given = ["--path", str(folder), "--out", str(out), "--kept", str(kept), "--views", "60"]
    assert reader_training.main(given) == 0
    reader = OnnxReader(out)
    read = reader.read([("Ardo has a port.", "Ardo has no port.")])
    assert read.shape == (1, 3)
    assert abs(float(read.sum()) - 1.0) < 1e-4
    card = json.loads((out / "card.json").read_text())
    (line,) = card["trained_on"]
    assert line["set"] == "fever_symmetric"
    assert set(line["files"]) == {"fever_symmetric/fever_symmetric_dev.jsonl.gz"}
    assert sum(line["pairs"].values()) == 80
    weights = reader_training.load(kept)
    assert weights["classifier.weight"].shape == (3, 384)


def test_the_card_counts_each_task_of_a_set_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sources = (Source("entailment_fm2", 2.0), Source("entailment_fm2", 0.5, task="retrieved"))
    monkeypatch.setattr(reader_card, "SOURCES", sources)
    gold, retrieved = (
        pair_of(GoldRow("1", "own, line 1", "So.", "supported", "g", documents=("So.",)), source)
        for source in sources
    )
    parts = {"train": [gold, retrieved, gold], "dev": [retrieved]}
    card = reader_card.card_of(tmp_path, {}, parts, {}, 1.0)
    assert [(line["task"], line["pairs"]) for line in card["trained_on"]] == [
        ("gold", {"train": 2, "dev": 0}),
        ("retrieved", {"train": 1, "dev": 1}),
    ]


def test_the_shipped_card_counts_no_task_twice() -> None:
    card = json.loads((READER_DIR / "card.json").read_text(encoding="utf-8"))
    found = [line["pairs"] for line in card["trained_on"] if line["set"] == "entailment_fm2"]
    assert sum(sum(pairs.values()) for pairs in found) == 1558 + 200 + 580


def test_a_folder_without_the_sets_is_refused_in_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert reader_training.main(["--path", str(tmp_path / "nowhere")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.usefixtures("one_source")
@pytest.mark.timeout(600)
def test_runs_that_were_kept_are_averaged_into_one_reader(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That a model is written as a reader that reads is the test of one run."""
    import torch

    name = "bert.encoder.layer.0.output.dense.weight"
    written: list[torch.Tensor] = []

    def write(model: Any, *_: Any) -> None:
        written.append(model.state_dict()[name].clone())

    monkeypatch.setattr(reader_training, "_write", write)
    runs = [tmp_path / f"{order}.safetensors" for order in ("7", "11")]
    for run in runs:
        given = ["--path", str(folder), "--kept", str(run), "--views", "200"]
        assert reader_training.main([*given, "--order", run.stem]) == 0
    one, other = (reader_training.load(run) for run in runs)
    assert not torch.equal(one[name], other[name])
    mean = reader_training.mean_of([one, other])
    assert torch.allclose(mean[name], (one[name] + other[name]) / 2)
    kept = tmp_path / "mean.safetensors"
    given = ["--path", str(folder), "--kept", str(kept), "--mean-of", *map(str, runs)]
    assert reader_training.main(given) == 0
    assert torch.equal(reader_training.load(kept)[name], mean[name])
    assert torch.equal(written[-1], mean[name]), "the mean is what becomes the reader"


def test_dropout_leaves_a_value_as_it_is_on_average_and_ends_with_training() -> None:
    import torch

    recipe = Recipe(dropout=0.25)
    model = reader_training.new_model(recipe)
    block = model.bert.encoder.layer[0].output.dense
    ones = torch.ones(64, block.in_features)
    whole = block(ones)
    hooks = reader_training.drop(model, recipe)
    model.train()
    dropped = block(ones)
    assert abs(float((dropped == 0).float().mean()) - 0.25) < 0.02
    kept = dropped != 0
    assert torch.allclose(dropped[kept], whole[kept] / 0.75, rtol=0.01)
    model.eval()
    assert torch.equal(block(ones), whole)
    for hook in hooks:
        hook.remove()
