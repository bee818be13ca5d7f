"""Turns texts into token ids, and ids into the word vectors that the shipped models read.

The tokenizer is XLM-RoBERTa's SentencePiece unigram model; both it and the word vectors lie in the
packed weights (`e5_weights`). The models that ship hold layers only and share these vectors. A pair
is read as `<s> evidence </s></s> claim </s>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.baseline.e5_weights import PackedModel, WordVectors, open_word_vectors
from core.concurrency import loaded_once
from core.errors import ConfigError

BEGIN, PAD, END, UNKNOWN = 0, 1, 2, 3
MAX_TOKENS = 256
LONGEST = 512
"""Positions that the model has."""
LEAST_EVIDENCE = 64
"""Tokens of evidence that a long claim leaves room for."""
MUTED_ABOVE = 0.2
"""Share of unknown tokens above which a text cannot be read."""
SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TOKENIZER = "tokenizer.json"
Floats = npt.NDArray[np.float32]


def build_tokenizer(packed: PackedModel) -> Any:
    """A `tokenizers.Tokenizer` that neither cuts nor pads and adds no special tokens by itself."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.Unigram(packed.pieces(), unk_id=UNKNOWN, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


@dataclass(frozen=True)
class EncodedPair:
    """A pair's tokens."""

    ids: list[int]
    claim_start: int
    """Index of the claim's first token in `ids`; the last one is before the final `</s>`."""
    offsets: list[tuple[int, int]]
    """`[start, end)` in the claim, in code points, of each of the claim's tokens."""


def encode_pair(evidence: str, claim: str, tokenizer: Any) -> EncodedPair:
    """A pair as the reader reads it; evidence is cut so that the claim is whole, or nearly."""
    own = tokenizer.encode(claim, add_special_tokens=False)
    ids = own.ids[: MAX_TOKENS - 4 - LEAST_EVIDENCE]
    read = tokenizer.encode(evidence, add_special_tokens=False).ids[: MAX_TOKENS - 4 - len(ids)]
    first = [BEGIN, *read, END, END]
    return EncodedPair([*first, *ids, END], len(first), own.offsets[: len(ids)])


@dataclass(frozen=True)
class Vocabulary:
    """Tokenizer and word vectors, loaded once per process; safe to use from several threads."""

    tokenizer: Any
    vectors: WordVectors

    def vectors_of(self, ids: Sequence[int]) -> Floats:
        """(1, length, width) float32."""
        return self.vectors.rows(np.asarray(ids))[None]

    def is_unknown(self, text: str) -> bool:
        """True where more than a fifth of the text's tokens are unknown."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return bool(ids) and sum(i == UNKNOWN for i in ids) > MUTED_ABOVE * len(ids)


@loaded_once
def load_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary that `make setup` made, loaded once per process.

    Raises:
        ConfigError: it is missing.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER))
    except Exception as error:  # the loader raises its own, undocumented kinds
        raise ConfigError(
            f"Expected the reader's tokenizer in {folder}, found none; run `make setup`."
        ) from error
    return Vocabulary(tokenizer, open_word_vectors())
