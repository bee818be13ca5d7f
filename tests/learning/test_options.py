"""What may be chosen for a training, and the encoders that it may start from."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from core.learning.options import (
    EMBEDDED_ENCODER,
    TrainingOptions,
    find_encoder_folder,
    parse_options,
)
from core.llm.export import wheel_folder
from core.runtime.errors import ConfigError, InputError


def test_what_is_not_chosen_is_as_usual() -> None:
    assert parse_options({}) == TrainingOptions()
    assert parse_options({"steps": 7, "encoder": " x "}) == TrainingOptions(encoder="x", steps=7)
    assert parse_options(TrainingOptions().as_dict()) == TrainingOptions()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"pairs": 0}, "from 1 to 100 for pairs per text, found 0"),
        ({"steps": 10**9}, "from 1 to 100,000 for most steps"),
        ({"steps": 2.5}, "a whole number"),
        ({"seed": True}, "found True"),
        ({"seed": "7"}, "found '7'"),
        ({"regularisation": 0}, "a number from 0.0001 to 10,000"),
        ({"regularisation": float("nan")}, "found nan"),
        ({"encoder": "  "}, "Expected the encoder"),
        ({"encoder": None}, "Expected the encoder"),
        ({"stpes": 3}, "found “stpes”"),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(given: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_options(given)


def test_steps_follow_from_pairs_and_epochs_and_are_capped() -> None:
    assert TrainingOptions(pairs=4, batch=16, steps=1000).steps_for(10) == 5
    assert TrainingOptions(pairs=4, batch=16, steps=1000, epochs=3).steps_for(10) == 15
    assert TrainingOptions(pairs=20, batch=16, steps=40).steps_for(1000) == 40


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An encoder of nothing but its files."""
    made = tmp_path / "encoder"
    (made / "1_Pooling").mkdir(parents=True)
    (made / "config.json").write_text('{"max_position_embeddings": 512}')
    (made / "tokenizer.json").write_text("{}")
    (made / "model.safetensors").write_bytes(b"")
    (made / "1_Pooling" / "config.json").write_text('{"pooling_mode_mean_tokens": true}')
    modules = [{"type": "sentence_transformers.models.Transformer"}, {"type": "x.y.Pooling"}]
    (made / "modules.json").write_text(json.dumps(modules))
    return made


def test_encoders_are_embedded_or_a_folder_here(folder: Path) -> None:
    assert find_encoder_folder(EMBEDDED_ENCODER) == wheel_folder()
    assert find_encoder_folder(str(folder)) == folder
    (folder / "1_Pooling" / "config.json").write_text('{"pooling_mode": "mean"}')
    assert find_encoder_folder(str(folder)) == folder


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("model.safetensors", None, "found no model.safetensors"),
        ("tokenizer.json", None, "found no tokenizer.json"),
        ("config.json", "{", "readable config.json"),
        ("config.json", '{"max_position_embeddings": 128}', "found “.*” for 128"),
        ("1_Pooling/config.json", '{"pooling_mode_cls_token": true}', "with cls"),
        ("1_Pooling/config.json", '{"pooling_mode": "lasttoken"}', "with lasttoken"),
        ("modules.json", '[{"type": "x.Transformer"}, {"type": "x.Dense"}]', "Transformer, Dense"),
    ],
)
def test_an_encoder_that_cannot_be_used_says_why(
    folder: Path, file: str, text: str | None, words: str
) -> None:
    (folder / file).unlink()
    if text is not None:
        (folder / file).write_text(text)
    with pytest.raises(ConfigError, match=words):
        find_encoder_folder(str(folder))


def test_a_pickle_is_never_opened_and_a_missing_folder_not_looked_for_elsewhere(
    folder: Path,
) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(ConfigError, match="a pickle, which is never opened"):
        find_encoder_folder(str(folder))
    with pytest.raises(ConfigError, match=r"found no config\.json"):
        find_encoder_folder(str(folder / "none"))


def test_a_named_encoder_is_taken_from_the_cache_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, bool]] = []

    def snapshot(name: str, *, allow_patterns: list[str], local_files_only: bool = False) -> str:
        assert not any("bin" in pattern for pattern in allow_patterns)
        asked.append((name, local_files_only))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    assert find_encoder_folder("paraphrase-mpnet-base-v2") == folder
    assert asked == [("sentence-transformers/paraphrase-mpnet-base-v2", True)]


def test_without_a_network_a_named_encoder_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub.errors import LocalEntryNotFoundError

    def snapshot(*_: Any, **__: Any) -> str:
        raise LocalEntryNotFoundError("Cannot reach https://huggingface.co")

    monkeypatch.setattr("huggingface_hub.snapshot_download", snapshot)
    with pytest.raises(ConfigError, match=r"found neither: Cannot reach .*choose “embedded”"):
        find_encoder_folder("sentence-transformers/paraphrase-mpnet-base-v2")
    with pytest.raises(ConfigError, match="as a folder or as owner/name, found “a/b/c”"):
        find_encoder_folder("a/b/c")
