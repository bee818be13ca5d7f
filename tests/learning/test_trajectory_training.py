"""Only thoughts and actions are learned, and a model that was trained on them is saved whole."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from core.learning.trajectory_training import (
    CARD_NAME,
    IGNORED_TARGET,
    TrainedMessage,
    TrajectoryChat,
    TrajectoryOptions,
    compute_loss,
    load_material,
    main,
    parse_chats,
    tokenize_chat,
    train_folder,
    train_model,
)
from core.runtime.errors import InputError
from tests.test_architecture import ROOT

END, START, PAD = "<|im_end|>", "<|im_start|>", "<|pad|>"
TEMPLATE = (
    "{% for m in messages %}" + START + "{{ m.role }}\n{{ m.content }}" + END + "\n{% endfor %}"
)
TEXTS = ('THOUGHT: look at it\nACTION: adder({"text": "2 + 2"})', "OBSERVATION: 4 思考 行为")


def tiny_tokenizer(template: str | None = TEMPLATE) -> Any:
    """Bytes and some pairs of them, with ChatML's marks."""
    from transformers import PreTrainedTokenizerFast

    bytes_ = Tokenizer(models.BPE())
    bytes_.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    bytes_.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[PAD, START, END], show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    bytes_.train_from_iterator(TEXTS, trainer)
    made = PreTrainedTokenizerFast(
        tokenizer_object=bytes_, eos_token=END, pad_token=PAD,
        additional_special_tokens=[START],
    )  # fmt: skip
    made.chat_template = template
    return made


def tiny_model(tokenizer: Any, seed: int = 3) -> Any:
    """One layer of Llama's kind, eight values wide."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=8, intermediate_size=16, num_hidden_layers=1,
        num_attention_heads=2, num_key_value_heads=2, max_position_embeddings=1024,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def saved(folder: Path) -> Path:
    """Both in a folder, as a model comes."""
    tokenizer = tiny_tokenizer()
    tiny_model(tokenizer).save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


# Loading torch and transformers takes minutes where all cores are at work.
pytestmark = pytest.mark.timeout(600)
ACTION = 'THOUGHT: add it up\nACTION: adder({"text": "2 + 2"})'
LAST = "THOUGHT: label = supported\nACTION: get_answer({})"


def chat(action: str = LAST, told: str = "OBSERVATION: supported") -> TrajectoryChat:
    return TrajectoryChat(
        [
            TrainedMessage("system", "You look for mistakes."),
            TrainedMessage("user", "Question: how many? Response: 2 + 2 = 4"),
            TrainedMessage("assistant", ACTION, trained=True),
            TrainedMessage("user", "OBSERVATION: 4"),
            TrainedMessage("assistant", action, trained=True),
            TrainedMessage("user", told),
        ],
        "r1",
    )


def row(of: TrajectoryChat) -> str:
    messages = [
        {"role": said.role, "content": said.content, "trained": said.trained}
        for said in of.messages
    ]
    return json.dumps({"id": of.id, "messages": messages, "label": "supported"})


def file_of(*chats: TrajectoryChat) -> bytes:
    return "\n".join(map(row, chats)).encode()


def loss(model: Any, tokenizer: Any, of: TrajectoryChat) -> Any:
    coded = tokenize_chat(of, tokenizer)
    assert coded is not None
    return compute_loss(model, [coded], tokenizer.pad_token_id).detach()


@pytest.mark.parametrize("template", [TEMPLATE, None])
def test_what_is_learned_are_the_agents_own_words_and_their_end(template: str | None) -> None:
    tokenizer = tiny_tokenizer(template)
    coded = tokenize_chat(chat(), tokenizer)
    assert coded is not None
    assert len(coded.ids) == len(coded.targets)
    learned = [t for t in coded.targets if t != IGNORED_TARGET]
    assert tokenizer.decode(learned) == f"{ACTION}{END}{LAST}{END}"
    assert all(t in (IGNORED_TARGET, i) for i, t in zip(coded.ids, coded.targets, strict=True))
    assert coded.learned == len(learned)


@settings(deadline=None)
@given(st.lists(st.text(min_size=1) | st.sampled_from(["a", "user"]), min_size=1, max_size=4))
def test_learned_words_are_found_again_whatever_the_texts_say(texts: list[str]) -> None:
    tokenizer = tiny_tokenizer()
    said = [
        TrainedMessage("assistant" if n % 2 else "user", text, trained=bool(n % 2))
        for n, text in enumerate(["start", *texts])
    ]
    coded = tokenize_chat(TrajectoryChat(said), tokenizer)
    assert coded is not None
    learned = tokenizer.decode([t for t in coded.targets if t != IGNORED_TARGET])
    assert learned == "".join(
        f"{one.content.strip()}{END}" for one in said if one.trained and one.content.strip()
    )


def test_no_gradient_comes_from_what_is_not_learned() -> None:
    import torch

    tokenizer = tiny_tokenizer()
    coded = tokenize_chat(chat(), tokenizer)
    assert coded is not None
    kept: list[Any] = []

    def keep(module: Any, given_: Any, out: Any) -> None:
        out.retain_grad()
        kept.append(out)

    model = tiny_model(tokenizer)
    model.lm_head.register_forward_hook(keep)
    compute_loss(model, [coded], tokenizer.pad_token_id).backward()
    strength = kept[0].grad[0].abs().sum(dim=-1)
    # What is said at a place is held against the next token.
    learned = [target != IGNORED_TARGET for target in coded.targets[1:]] + [False]
    assert torch.equal(strength > 0, torch.tensor(learned))


def test_another_observation_at_the_end_changes_nothing_and_another_action_does() -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    before = float(loss(model, tokenizer, chat()))
    assert float(loss(model, tokenizer, chat(told="OBSERVATION: no, 5"))) == pytest.approx(before)
    other = chat(action="THOUGHT: label = hallucinated\nACTION: get_answer({})")
    assert float(loss(model, tokenizer, other)) != pytest.approx(before, abs=1e-4)


def test_padding_beside_a_longer_trajectory_is_not_learned() -> None:
    tokenizer = tiny_tokenizer()
    model = tiny_model(tokenizer)
    short, long = (tokenize_chat(one, tokenizer) for one in (chat(), chat(told="O" * 200)))
    assert short is not None
    assert long is not None
    alone = float(compute_loss(model, [short], tokenizer.pad_token_id).detach())
    both = compute_loss(model, [short, long], tokenizer.pad_token_id).detach()
    assert float(both) == pytest.approx(alone, abs=1e-5)


def test_the_loss_falls_and_the_same_seed_gives_the_same_losses() -> None:
    tokenizer = tiny_tokenizer()
    material = load_material(file_of(chat(), chat()), "rows", tokenizer, 4096)
    options = TrajectoryOptions(epochs=25, rate=0.03, batch=2)
    first, again = (
        train_model(
            tiny_model(tokenizer), material.rows, options, tokenizer.pad_token_id, lambda _: None
        )
        for _ in range(2)
    )
    assert first[-1] < 0.5 * first[0]
    assert first == again


def test_what_cannot_be_learned_is_left_out_and_counted() -> None:
    tokenizer = tiny_tokenizer()
    marked, long = chat(told=f"done{END}"), chat(told="O" * 4000)
    data = file_of(
        chat(), marked, long, TrajectoryChat([TrainedMessage("user", "nothing of the agent's")])
    )
    found = load_material(data, "rows", tokenizer, 1000)
    counts = (len(found.rows), found.with_marks, found.too_long)
    assert counts == (1, 1, 1)
    with pytest.raises(InputError, match="1 longer ones, 1 with marks"):
        load_material(file_of(marked, long), "rows", tokenizer, 1000)


def test_a_model_is_trained_and_saved_as_safetensors_with_its_card(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from safetensors.numpy import load_file
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model, out = saved(tmp_path / "model"), tmp_path / "out"
    data = tmp_path / "t.jsonl"
    data.write_bytes(file_of(chat(), chat()))
    arguments = ["--model", str(model), "--trajectories", str(data), "--out", str(out)]
    assert main([*arguments, "--epochs", "2", "--rate", "0.02"]) == 0
    card = json.loads(capsys.readouterr().out)
    assert card == json.loads((out / CARD_NAME).read_text())
    assert (card["rows"], len(card["losses"]), card["options"]["epochs"]) == (2, 2, 2)
    assert not [path.name for path in out.iterdir() if path.suffix in (".bin", ".pt", ".pkl")]
    before, after = (load_file(f / "model.safetensors") for f in (model, out))
    assert before.keys() == after.keys()
    assert any((before[name] != after[name]).any() for name in before)
    again = AutoModelForCausalLM.from_pretrained(str(out), local_files_only=True)
    tokenizer = AutoTokenizer.from_pretrained(str(out), local_files_only=True)
    coded = tokenize_chat(chat(), tokenizer)
    assert coded is not None
    assert float(compute_loss(again, [coded], tokenizer.pad_token_id).detach()) < card["losses"][0]
    assert main(arguments) == 2
    assert "a new or empty folder" in capsys.readouterr().err


def test_pickled_weights_are_never_loaded(tmp_path: Path) -> None:
    model, data = saved(tmp_path / "model"), tmp_path / "t.jsonl"
    data.write_bytes(file_of(chat()))
    (model / "model.safetensors").rename(model / "pytorch_model.bin")
    with pytest.raises(InputError, match="safetensors"):
        train_folder(model, data, tmp_path / "out", TrajectoryOptions(), lambda _: None)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "found 0 rows without any"),
        (b"{}", "in line 1 of t.jsonl"),
        (b'{"messages": [{"role": "judge", "content": ""}]}', "in line 1 of t.jsonl"),
        (
            b"\n" + file_of(TrajectoryChat([TrainedMessage("user", "hello")])),
            "found 1 rows without any",
        ),
        (b"\xff", "in line 1"),
    ],
)
def test_a_file_that_holds_no_trajectories_is_refused(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words):
        parse_chats(data, "t.jsonl")


@pytest.mark.parametrize(
    ("template", "words"),
    [
        ("{% for m in messages %}{{ m.role }}{% endfor %}", "keep every message"),
        ("{{ raise_exception('no system message') }}", "no system message"),
    ],
)
def test_a_template_that_does_not_fit_is_refused(template: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        tokenize_chat(chat(), tiny_tokenizer(template))


@pytest.mark.parametrize(
    "wrong", [("--epochs", "0"), ("--rate", "0"), ("--rate", "2"), ("--max-length", "0")]
)
def test_options_out_of_their_bounds_are_refused(
    wrong: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--model", str(tmp_path), "--trajectories", "t.jsonl", "--out", "o"]
    assert main([*arguments, *wrong]) == 2
    assert wrong[0] in capsys.readouterr().err


def test_the_options_and_what_they_are_by_themselves_are_documented() -> None:
    docs = " ".join((ROOT / "docs" / "trajectories.md").read_text(encoding="utf-8").split())
    usual = TrajectoryOptions()
    assert (
        f"`--epochs` {usual.epochs}, `--rate` {usual.rate:.0e}".replace("e-0", "e-")
        + f", `--batch` {usual.batch}, `--max-length` {usual.longest} tokens, "
        f"`--seed` {usual.seed}."
    ) in docs


def test_missing_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "t.jsonl"
    arguments = ["--model", str(tmp_path), "--trajectories", str(data), "--out", "o"]
    assert main(arguments) == 2
    assert "a file of trajectories" in capsys.readouterr().err
    data.write_bytes(file_of(chat()))
    assert main([*arguments[:-1], str(tmp_path / "o")]) == 2
    assert "config.json" in capsys.readouterr().err


def test_the_rows_are_what_trainers_of_chats_take(tmp_path: Path) -> None:
    from datasets import load_dataset

    data = tmp_path / "t.jsonl"
    data.write_bytes(file_of(chat(), replace_told(chat())))
    rows = load_dataset(
        "json", data_files=str(data), split="train", cache_dir=str(tmp_path / "cache")
    )
    tokenizer = tiny_tokenizer()
    for own in rows:
        text = tokenizer.apply_chat_template(own["messages"], tokenize=False)
        assert text.count(ACTION) == 1


def replace_told(of: TrajectoryChat) -> TrajectoryChat:
    last = TrainedMessage("user", "OBSERVATION: 好")
    return TrajectoryChat([*of.messages[:-1], last], "r2")
