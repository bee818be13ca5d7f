"""A reader's training, in small: the file of pairs, the batches, and that something is learned."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from training.pairs import CONTRADICTED, NOT_SUPPORTED, SUPPORTED, LabelledPair
from training.reader_pairs import sample_pairs, weigh_pairs, write_pairs
from training.reader_training import (
    EncodedPairs,
    PairLayout,
    TrainingPair,
    TrainingRecipe,
    average_teachers,
    iterate_batch_rows,
    measure_by_set,
    predict_probabilities,
    read_pairs,
    train_model,
)
from training.train_reader import WORD_VECTORS, make_model

PAD, BEGIN, END, MASK = 0, 1, 2, 3
COLOURS = ("red", "blue", "green", "grey")
THINGS = ("boat", "house", "door", "car")


def layout(max_tokens: int = 24, least_evidence: int = 4) -> PairLayout:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = ["[PAD]", "[BEGIN]", "[END]", "[MASK]", "[UNK]", "the", "is", *COLOURS, *THINGS]
    vocabulary = {word: place for place, word in enumerate(words)}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PairLayout(
        tokenizer, BEGIN, (END, END), END, PAD, MASK,
        max_tokens=max_tokens, least_evidence=least_evidence,
    )  # fmt: skip


def pair(evidence: str, claim: str, wrong: tuple[tuple[int, int], ...] | None = ()) -> TrainingPair:
    allowed = CONTRADICTED if wrong else SUPPORTED
    return TrainingPair(evidence, claim, allowed, wrong, "toys", "en", 1.0)


def toys(count: int) -> list[TrainingPair]:
    """What is said to be grey is wrong, and the word is marked."""
    chance, made = random.Random(3), []
    for _ in range(count):
        thing, colour = chance.choice(THINGS), chance.choice(("red", "grey"))
        claim = f"the {thing} is {colour}"
        marks = ((len(claim) - len(colour), len(claim)),) if colour == "grey" else ()
        made.append(pair(f"the {thing} is {chance.choice(COLOURS)}", claim, marks))
    return made


def small_state(width: int = 24, layers: int = 1) -> dict[str, np.ndarray]:
    from transformers import BertConfig, BertModel

    config = BertConfig(
        vocab_size=20, hidden_size=width, num_hidden_layers=layers, num_attention_heads=12,
        intermediate_size=4 * width, max_position_embeddings=32,
    )  # fmt: skip
    model = BertModel(config, add_pooling_layer=False)
    return {n: v.numpy() for n, v in model.state_dict().items() if not n.endswith("position_ids")}


def test_pairs_come_back_as_they_were_written(tmp_path: Path) -> None:
    seen = [
        LabelledPair("The boat is red.", "It is red.", SUPPORTED, "one", "g1", times=1.5),
        LabelledPair(
            "The boat is red.", "It is blue.", CONTRADICTED, "one", "g1", wrong=((6, 10),)
        ),
        LabelledPair("Das Boot ist rot.", "The boat is red.", NOT_SUPPORTED, "two", "g2", "de"),
    ]
    write_pairs(tmp_path / "pairs.xz", seen, seen[:1])
    back, dev = read_pairs(tmp_path / "pairs.xz")
    assert [(p.evidence, p.claim, p.allowed, p.name, p.language) for p in back] == [
        (p.evidence, p.claim, p.allowed, p.name, p.language) for p in seen
    ]
    assert [p.wrong for p in back] == [(), ((6, 10),), None], "a right claim has no wrong word"
    assert [p.times for p in back] == [1.5, 1.0, 1.0]
    assert [p.claim for p in dev] == ["It is red."]


def test_a_large_set_is_seen_less_often_and_a_small_one_more() -> None:
    large = [LabelledPair(f"e{i}", "c", SUPPORTED, "large", str(i)) for i in range(40_000)]
    small = [LabelledPair(f"e{i}", "c", SUPPORTED, "small", str(i), times=2.0) for i in range(10)]
    told = {p.name: p.times for p in weigh_pairs([*large, *small])}
    assert told == {"large": 0.5, "small": 3.0}
    assert len(sample_pairs([*large, *small], 100)) == 110


def test_a_batch_holds_the_claim_whole_and_knows_its_wrong_words() -> None:
    long = "the boat is red " * 20
    encoded = EncodedPairs(
        [pair(long, "the car is blue", ((11, 15),)), pair("the car", "the car", None)], layout()
    )
    batch = encoded.batch([0, 1])
    assert batch.ids.shape == (2, 32), "padded up to a multiple of sixteen"
    assert batch.mask.sum(axis=1).tolist() == [24, 8]
    claim = batch.ids[0][batch.sides[0] == 1].tolist()
    assert layout().tokenizer.decode(claim[:-1]) == "the car is blue"
    assert claim[-1] == END
    assert batch.wrong[0][batch.sides[0] == 1].tolist() == [0, 0, 0, 1, -1]
    assert (batch.wrong[1] == -1).all(), "nobody marked the second"


def test_a_cut_down_vocabulary_gives_the_new_ids() -> None:
    from dataclasses import replace

    ids = np.full(20, -1, np.int32)
    ids[[0, 1, 2, 3, 5, 6, 7, 11]] = np.arange(8)
    cut = replace(layout(), ids=ids)
    (row,) = EncodedPairs([pair("the boat is red", "the boat is red")], cut).batch([0]).ids
    assert row[:6].tolist() == [BEGIN, 4, 7, 5, 6, END]


def test_every_pair_is_seen_as_often_as_it_says() -> None:
    encoded = EncodedPairs(toys(50), layout())
    rows = [
        row
        for batch in iterate_batch_rows(encoded, TrainingRecipe(views=150, tokens_per_batch=128))
        for row in batch
    ]
    assert sorted(rows) == sorted([*range(50)] * 3)


def test_a_small_model_learns_and_its_student_learns_from_it() -> None:
    layout_, rows = layout(), toys(200)
    encoded = EncodedPairs(rows, layout_)
    recipe = TrainingRecipe(
        views=2400, rate=4e-3, tokens_per_batch=700, averaging=0.9, hidden_words=0.0, decay=0.0
    )
    teacher = make_model(small_state(), 1)
    teacher["encoder"].embeddings.word_embeddings.weight.requires_grad_(True)
    train_model(teacher, encoded, recipe)
    told = predict_probabilities(teacher, encoded)
    assert told.sum(axis=1) == pytest.approx(np.ones(len(rows)), abs=1e-4)
    (line,) = measure_by_set(rows, 1.0 - told[:, 0].astype(np.float64)).values()
    assert line["auroc"] > 0.9
    student = make_model(small_state(), 2)
    student["encoder"].embeddings.word_embeddings.weight.requires_grad_(True)
    train_model(student, encoded, recipe, teachers=told)
    agrees = (predict_probabilities(student, encoded).argmax(axis=1) == told.argmax(axis=1)).mean()
    assert agrees > 0.8


def test_frozen_layers_stay_as_they_are() -> None:
    model = make_model(small_state(layers=2), 1, frozen_layers=1)
    free = {name for name, value in model.named_parameters() if value.requires_grad}
    assert any(name.startswith("encoder.encoder.layer.1.") for name in free)
    assert not any(name.startswith("encoder.encoder.layer.0.") for name in free)
    assert f"encoder.{WORD_VECTORS}" not in free


def test_teachers_are_averaged_where_they_speak() -> None:
    one = np.array([[0.8, 0.1, 0.1], [0.6, 0.2, 0.2]], np.float32)
    silent = np.array([[0.2, 0.4, 0.4], [0.0, 0.0, 0.0]], np.float32)
    first, second = average_teachers([one, silent])
    assert first[0] == pytest.approx((0.16**0.5) / (0.16**0.5 + 2 * 0.04**0.5), abs=1e-4)
    assert second == pytest.approx([0.6, 0.2, 0.2], abs=1e-5)
