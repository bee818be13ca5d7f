"""Small models with random weights, one of each architecture that people bring as readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = ["the bridge is 512 m long", "the tower was opened in 1932", "it is 412 m tall"]
INFERENCE = {0: "CONTRADICTION", 1: "NEUTRAL", 2: "ENTAILMENT"}
TURNED = {0: "entailment", 1: "neutral", 2: "contradiction"}
CONSISTENCY = {0: "LABEL_0", 1: "LABEL_1"}
SIZES = {
    "vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
    "intermediate_size": 64,
}  # fmt: skip


def written(folder: Path, architecture: str, labels: dict[int, str]) -> Any:
    """The model, saved in the folder with a tokenizer."""
    import torch

    torch.manual_seed(3)
    model = _model(architecture, labels).eval()
    model.save_pretrained(folder)
    with_types = architecture in ("bert", "deberta")
    _tokenizer(with_types=with_types).save_pretrained(folder)
    return model


def _model(architecture: str, labels: dict[int, str]) -> Any:
    import transformers as hf

    if architecture == "bert":
        return hf.BertForSequenceClassification(hf.BertConfig(**SIZES, id2label=labels))
    if architecture == "deberta":
        config = hf.DebertaV2Config(
            **SIZES, id2label=labels, type_vocab_size=0, relative_attention=True,
            pos_att_type=["p2c", "c2p"], position_buckets=16, max_relative_positions=-1,
            norm_rel_ebd="layer_norm", share_att_key=True, position_biased_input=False,
        )  # fmt: skip
        return hf.DebertaV2ForSequenceClassification(config)
    if architecture == "roberta":
        config = hf.RobertaConfig(**SIZES, id2label=labels, max_position_embeddings=514)
        return hf.RobertaForSequenceClassification(config)
    if architecture == "modernbert":
        config = hf.ModernBertConfig(
            **SIZES, id2label=labels, pad_token_id=0, reference_compile=False
        )
        return hf.ModernBertForTokenClassification(config)
    config = hf.T5Config(
        vocab_size=40, d_model=32, d_kv=16, d_ff=64, num_layers=2, num_decoder_layers=2,
        num_heads=2, id2label=labels, decoder_start_token_id=0, eos_token_id=3, pad_token_id=0,
    )  # fmt: skip
    return hf.T5ForSequenceClassification(config)


def _tokenizer(*, with_types: bool) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    made = Tokenizer(models.WordLevel(unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    made.train_from_iterator(WORDS, trainers.WordLevelTrainer(special_tokens=special))
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = ["input_ids", "attention_mask", *(["token_type_ids"] if with_types else [])]
    return PreTrainedTokenizerFast(
        tokenizer_object=made, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
        sep_token="[SEP]", model_input_names=names,
    )  # fmt: skip
