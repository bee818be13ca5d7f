"""Readers as ONNX graphs with a tokenizer: the English one that ships, and those people bring.

Models of the Hugging Face Hub, or of a folder, are exported once, without running any code of
theirs; what they say of a pair takes the place of the shipped readers' in the features. Three kinds
are told apart by the model's configuration: classifiers of natural-language inference (entailment,
neutral, contradiction, in whatever order), binary consistency models (supported or not), and token
classifiers that mark wrong words of an answer.
"""

from __future__ import annotations

import re
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from core.baseline.export import open_session as open_onnx
from core.baseline.export import read_card, write_card
from core.baseline.reader import Pair, PairReading, PairwiseReader, WordDoubt
from core.documents.language import UNKNOWN, language_of
from core.errors import ConfigError, InputError

MODEL = "model.onnx"
TOKENIZER = "tokenizer.json"
LONGEST = 512
"""Tokens of a pair, where the model allows more; windows of evidence are far shorter."""
Kind = Literal["inference", "consistency", "tokens"]
SUPPORTED = re.compile(
    r"^(entail|support|consist|faithful|factual|true|yes|grounded|attribut)", re.I
)
CONTRADICTED = re.compile(r"contra|refut", re.I)
NEUTRAL = re.compile(r"neutral|not.?enough|unknown|nei\b", re.I)
WRONG = re.compile(r"^(not|un|in|non)[ _-]?|halluc|false|refut|contra|^no\b", re.I)
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Labels:
    """Which of a model's classes mean what; several may mean one thing."""

    kind: Kind
    supported: tuple[int, ...]
    contradicted: tuple[int, ...]
    neutral: tuple[int, ...] = ()


def labels_of(names: Mapping[int, str], *, is_tokens: bool) -> Labels:
    """The meaning of a model's classes by their names.

    Unnamed pairs of classes (LABEL_0, LABEL_1) follow the models that leave them so: of consistency
    models class 1 is supported, of token classifiers class 1 is wrong.

    Raises:
        InputError: the names say neither support nor its absence.
    """
    by_kind: dict[str, list[int]] = {"supported": [], "contradicted": [], "neutral": []}
    for place, name in sorted(names.items()):
        if NEUTRAL.search(name):
            by_kind["neutral"].append(place)
        elif CONTRADICTED.search(name) or WRONG.search(name):
            by_kind["contradicted"].append(place)
        elif SUPPORTED.search(name):
            by_kind["supported"].append(place)
    if len(names) == 2 and all(re.fullmatch(r"LABEL_\d", name) for name in names.values()):
        by_kind = {"supported": [0 if is_tokens else 1], "contradicted": [1 if is_tokens else 0],
                   "neutral": []}  # fmt: skip
    if not by_kind["supported"] or not (by_kind["contradicted"] or by_kind["neutral"]):
        told = ", ".join(names.values())
        raise InputError(
            "Expected a model whose labels name support and its absence (entailment, neutral, "
            f"contradiction; supported, unsupported), found {told}."
        )
    kind: Kind = "tokens" if is_tokens else "inference" if by_kind["neutral"] else "consistency"
    return Labels(
        kind,
        tuple(by_kind["supported"]),
        tuple(by_kind["contradicted"]),
        tuple(by_kind["neutral"]),
    )


class OnnxReader(PairwiseReader):
    """An exported model as a reader; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises:
            ConfigError: the folder is missing, incomplete, or not what its card says.
        """
        super().__init__()
        card = read_card(folder, MODEL)
        body = card["labels"]
        self.id = str(card["id"])
        self.card = card
        self._labels = Labels(
            body["kind"], *(tuple(body[name]) for name in ("supported", "contradicted", "neutral"))
        )
        self.marks_words = self._labels.kind == "tokens"
        self._session = open_onnx(folder / MODEL)
        taken = {one.name for one in self._session.get_inputs()}
        self._inputs = [name for name in card["inputs"] if name in taken]  # unused ones are pruned
        self._tokenizer = _load_tokenizer(folder)
        self._max_tokens = int(card["max_tokens"])
        self._tokenizer.enable_truncation(self._max_tokens, strategy="only_first")
        self._unknown: int | None = card["unknown"]
        self._languages = frozenset(card.get("languages", ()))
        self._temperature = float(card.get("temperature", 1.0))

    def knows(self, text: str) -> bool:
        """False where more than a fifth of the text's tokens are unknown, or its language is.

        A card that names no languages tells nothing of them.
        """
        if self._languages and language_of(text) not in {UNKNOWN, *self._languages}:
            return False
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return not ids or sum(i == self._unknown for i in ids) <= len(ids) / 5

    def read_one(self, pair: Pair) -> PairReading:
        """The reading of one pair."""
        evidence, claim = pair
        item = self._tokenizer.encode(evidence, self._fitting(claim))
        given = {
            "input_ids": item.ids,
            "attention_mask": item.attention_mask,
            "token_type_ids": item.type_ids,
        }
        feed = {name: np.array([given[name]], dtype=np.int64) for name in self._inputs}
        (logits,) = self._session.run(None, feed)
        if self._labels.kind == "tokens":
            return self._of_tokens(_shares(logits[0]), item)
        shares = _shares(logits[0] / self._temperature)
        supported, contradicted, neutral = (
            float(shares[list(places)].sum())
            for places in (self._labels.supported, self._labels.contradicted, self._labels.neutral)
        )
        if self._labels.kind == "consistency":
            # it knows no difference between what is denied and what is not said
            return PairReading(supported, contradicted / 2, contradicted / 2)
        return PairReading(supported, contradicted, neutral)

    def _fitting(self, claim: str) -> str:
        """The claim, cut where it would leave no room for evidence."""
        most = max(1, self._max_tokens * 3 // 4)
        offsets = self._tokenizer.encode(claim, add_special_tokens=False).offsets
        return claim[: offsets[most - 1][1]] if len(offsets) > most else claim

    def _of_tokens(self, shares: Floats, item: Any) -> PairReading:
        """The claim is supported as far as its most doubted word is."""
        places = [
            (start, end, float(shares[at, list(self._labels.contradicted)].sum()))
            for at, ((start, end), side) in enumerate(
                zip(item.offsets, item.sequence_ids, strict=True)
            )
            if side == 1 and start < end
        ]
        words = tuple(WordDoubt(start, end, p) for start, end, p in places)
        worst = max((word.p for word in words), default=0.5)
        return PairReading(1.0 - worst, worst / 2, worst / 2, words)


def _shares(logits: npt.NDArray[np.float32]) -> Floats:
    """Softmax over the last axis."""
    scores = logits.astype(np.float64)
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def import_reader(source: str, out: Path) -> dict[str, Any]:
    """Export a model of the Hub, or of a folder, into the folder `out`; its card.

    Raises:
        InputError: there is no such model, or it is none that can read pairs.
    """
    import torch
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, use_fast=True)
        model = _model_of(source, config)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = (str(error) or type(error).__name__).splitlines()[0][:160]
        raise InputError(
            f"Expected a sequence or token classifier under “{source}”, found none that "
            f"transformers can load without running its code ({first})."
        ) from error
    is_tokens = type(model).__name__.endswith("ForTokenClassification")
    labels = labels_of(_names(config), is_tokens=is_tokens)
    inputs = [n for n in tokenizer.model_input_names if n in _accepted(model)]
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as made:
        folder = Path(made) / "reader"
        folder.mkdir()
        write_model(model, tokenizer, inputs, folder / MODEL)
        tokenizer.backend_tokenizer.save(str(folder / TOKENIZER))
        allowed = getattr(config, "max_position_embeddings", LONGEST) or LONGEST
        card = {
            "name": re.sub(r"[^A-Za-z0-9_.-]+", "-", source.strip("/").split("/")[-1]),
            "source": str(Path(source).resolve()) if Path(source).is_dir() else source,
            "architecture": type(model).__name__,
            "labels": {
                "kind": labels.kind,
                "supported": labels.supported,
                "contradicted": labels.contradicted,
                "neutral": labels.neutral,
            },
            "inputs": inputs,
            "max_tokens": min(LONGEST, allowed - (2 if allowed == LONGEST + 2 else 0)),
            "unknown": tokenizer.unk_token_id,
        }
        written = write_card(folder, MODEL, card)
        shutil.rmtree(out, ignore_errors=True)
        folder.rename(out)
    torch._dynamo.reset()
    return written


def _model_of(source: str, config: Any) -> Any:
    """The model under the head that its configuration names; NLI is a sequence classifier's."""
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    named = " ".join(config.architectures or ())
    kind = (
        AutoModelForTokenClassification
        if "TokenClassification" in named
        else AutoModelForSequenceClassification
    )
    if named and "Classification" not in named:
        raise ValueError(f"its architecture is {named}")
    return kind.from_pretrained(source, trust_remote_code=False, attn_implementation="eager").eval()


def _names(config: Any) -> dict[int, str]:
    return {int(place): str(name) for place, name in config.id2label.items()}


def _accepted(model: Any) -> frozenset[str]:
    import inspect

    return frozenset(inspect.signature(model.forward).parameters)


def write_model(model: Any, tokenizer: Any, inputs: Sequence[str], path: Path) -> None:
    """Trace the model with a free length, then quantize it to int8."""
    import onnx
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    class Logits(torch.nn.Module):
        """(1, classes), or (1, length, classes)."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(inputs, given, strict=True))).logits

    whole = path.with_name("whole.onnx")
    example = tokenizer("The source is here.", "The claim is here.", return_tensors="pt")
    values = [example[name] for name in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Logits().eval(), tuple(values), str(whole), dynamo=False, opset_version=17,
            input_names=list(inputs), output_names=["logits"],
            dynamic_axes={name: {1: "length"} for name in inputs},
        )  # fmt: skip
    onnx.checker.check_model(str(whole))
    quantize_dynamic(str(whole), str(path), per_channel=True, weight_type=QuantType.QInt8)
    whole.unlink()


def _load_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the loader raises its own, undocumented kinds
        raise ConfigError(f"Expected a tokenizer in {folder.name}, found none.") from error
