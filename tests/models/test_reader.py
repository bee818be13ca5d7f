"""The entailment reader at run time: what it gives for a pair, and which folders it refuses."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from core.concurrency import Stop
from core.errors import ConfigError, Stopped
from core.models.export import sha256_of, wheel_folder
from core.models.reader import CARD, MAX_TOKENS, TOKENIZER, WEIGHTS, OnnxReader, load_reader
from core.models.reader_export import export_reader

BRIDGE = "The old bridge was opened by the mayor on 14 May 1932 and closed forty years later."
PAIRS = [
    (BRIDGE, "The bridge was opened in 1932."),
    (BRIDGE, "The bridge was opened in 1950 by a bishop."),
    ("Herons eat fish, frogs and small birds. " * 20, "Herons eat frogs."),
    ("Rain.", "The tower is 93 m tall, and it was designed by an architect from Elm."),
]


@pytest.fixture(scope="module")
def model() -> Any:
    """A cross-encoder of random weights, wide enough to disagree with itself."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    torch.manual_seed(7)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "intermediate_size": 64}
    config = BertConfig(num_attention_heads=4, num_labels=3, attn_implementation="eager", **sizes)
    config.initializer_range = 0.5
    return BertForSequenceClassification(config).eval()


@pytest.fixture(scope="module")
def folder(model: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reader") / "entailment"
    export_reader(model, wheel_folder() / TOKENIZER, out, {"name": "tiny", "temperature": 2.0})
    return out


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    return shutil.copytree(folder, tmp_path / "copy")


def probabilities(model: Any, pair: tuple[str, str], temperature: float) -> Any:
    """What transformers gives for the pair."""
    import torch
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(wheel_folder() / TOKENIZER), pad_token="[PAD]"
    )
    given = tokenizer(
        [pair[0]],
        [pair[1]],
        truncation="only_first",
        max_length=MAX_TOKENS,
        return_token_type_ids=True,
        return_tensors="pt",
    )
    with torch.no_grad():
        return torch.softmax(model(**given).logits[0] / temperature, -1).numpy()


def test_it_says_what_the_trained_model_says(model: Any, tmp_path: Path) -> None:
    tokenizer = wheel_folder() / TOKENIZER
    export_reader(model, tokenizer, tmp_path, {"temperature": 2.0}, weight_type=None)
    found = OnnxReader(tmp_path).read(PAIRS)
    expected = [probabilities(model, pair, 2.0) for pair in PAIRS]
    assert found.dtype == np.float32
    assert np.allclose(found, expected, atol=1e-4)
    assert len({tuple(row.round(3)) for row in found}) > 1


@pytest.mark.parametrize("weight_type", ["QUInt8", "QInt8"])
@pytest.mark.parametrize("keeps_head", [True, False])
def test_int8_is_a_quarter_of_the_size_and_nearly_the_same(
    model: Any, tmp_path: Path, weight_type: Any, keeps_head: bool
) -> None:
    tokenizer, card = wheel_folder() / TOKENIZER, {"temperature": 2.0}
    whole, small = tmp_path / "whole", tmp_path / "small"
    export_reader(model, tokenizer, whole, card, weight_type=None)
    export_reader(model, tokenizer, small, card, weight_type=weight_type, keeps_head=keeps_head)
    assert (small / WEIGHTS).stat().st_size < 0.45 * (whole / WEIGHTS).stat().st_size
    difference = OnnxReader(small).read(PAIRS) - OnnxReader(whole).read(PAIRS)
    assert 0 < np.abs(difference).max() < 0.15


def test_a_pair_is_read_the_same_in_any_company(folder: Path) -> None:
    alone = np.concatenate([OnnxReader(folder).read([pair]) for pair in PAIRS])
    together = OnnxReader(folder).read([*PAIRS, *reversed(PAIRS)])
    assert np.array_equal(together, np.concatenate([alone, alone[::-1]]))
    assert np.allclose(together.sum(axis=1), 1.0, atol=1e-6)
    assert OnnxReader(folder).read([]).shape == (0, 3)


def test_evidence_is_cut_where_it_is_too_long_and_the_statement_is_not(folder: Path) -> None:
    reader = OnnxReader(folder)
    evidence = "the bridge was opened " * 100
    short, longer = "The bridge is old.", "The bridge is old. " * 40
    assert np.array_equal(
        reader.read([(evidence, short)]), reader.read([(evidence + "and closed again", short)])
    )
    changed = reader.read([(evidence, longer), (evidence, longer + " It is not red.")])
    assert not np.array_equal(changed[0], changed[1])
    assert reader.read([(evidence, "so long " * 600)]).shape == (1, 3)


def test_a_pair_that_was_read_is_not_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = OnnxReader(folder)
    first = reader.read(PAIRS)
    monkeypatch.setattr(reader, "_session", None)
    assert np.array_equal(reader.read(list(reversed(PAIRS))), first[::-1])
    with pytest.raises(AttributeError):
        reader.read([("Something new.", "Something else.")])


def test_a_stop_is_heeded_between_pairs(folder: Path) -> None:
    stop = Stop()
    stop.set()
    with pytest.raises(Stopped):
        OnnxReader(folder).read(PAIRS, stop)


def test_it_is_muted_where_it_knows_too_few_of_the_tokens(folder: Path) -> None:
    texts = ["The bridge is old.", "สะพานเก่าเปิดในปี", ""]
    assert OnnxReader(folder).muted(texts).tolist() == [False, True, False]


def test_it_is_loaded_once_and_without_torch(folder: Path) -> None:
    assert load_reader(folder) is load_reader(folder)
    code = (
        "import sys; from pathlib import Path; from core.models.reader import load_reader\n"
        "print(load_reader(Path(sys.argv[1])).read([('a', 'b')]).shape, 'torch' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)], capture_output=True, text=True, check=True
    )
    assert done.stdout == "(1, 3) False\n"


def test_the_card_names_the_weights_and_keeps_what_it_was_given(folder: Path) -> None:
    card = json.loads((folder / CARD).read_text())
    assert card["sha256"] == sha256_of(folder / WEIGHTS)
    assert card["id"] == f"tiny-{card['sha256'][:12]}" == OnnxReader(folder).id
    assert card["weights"] == "QInt8"
    assert card["temperature"] == 2.0


def test_the_weights_bear_no_trace_of_this_machine(folder: Path) -> None:
    data = (folder / WEIGHTS).read_bytes()
    assert b"site-packages" not in data
    assert str(Path(__file__).resolve().parent.parent.parent).encode() not in data


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER])
def test_a_file_that_is_not_the_card_s_is_refused(copy: Path, name: str) -> None:
    data = bytearray((copy / name).read_bytes())
    data[len(data) // 2] ^= 1
    (copy / name).write_bytes(data)
    with pytest.raises(ConfigError, match=rf"Expected the entailment reader's {name}.*restore"):
        load_reader(copy)


@pytest.mark.parametrize("name", [WEIGHTS, TOKENIZER, CARD])
def test_a_missing_file_is_named_in_one_sentence(copy: Path, name: str) -> None:
    (copy / name).unlink()
    with pytest.raises(ConfigError) as raised:
        load_reader(copy)
    assert name in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="restore the folder from the repository"):
        load_reader(tmp_path / "none")


@pytest.mark.parametrize(
    "change",
    [
        {"temperature": 0},
        {"temperature": "warm"},
        {"temperature": None},
        {"id": None},
        {"sha256": ""},
    ],
)
def test_a_card_that_says_nothing_usable_is_refused(copy: Path, change: dict[str, object]) -> None:
    card = json.loads((copy / CARD).read_text())
    (copy / CARD).write_text(json.dumps({**card, **change}))
    with pytest.raises(ConfigError, match="Expected the entailment reader's"):
        load_reader(copy)


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "{}"])
def test_a_card_that_is_none_is_refused(copy: Path, text: str) -> None:
    (copy / CARD).write_text(text)
    with pytest.raises(ConfigError, match="Expected the entailment reader's"):
        load_reader(copy)
