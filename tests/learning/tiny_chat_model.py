"""A chat model of a few thousand random weights with a tokenizer of its own, made on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

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
