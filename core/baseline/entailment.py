"""Entailment readers: does the evidence support a claim, contradict it, or not decide it?

English is read by MiniLM as a cross-encoder, other languages by layers over multilingual-e5-small.
Pairs are read one by one, because int8 activations are scaled over everything in a batch. Imported
readers are exported to ONNX once, without running code of theirs.
"""

from __future__ import annotations

import inspect
import json
import re
import shutil
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec
import numpy as np
import numpy.typing as npt

from core.baseline.encoder import open_session, read_card, write_card
from core.baseline.tokenizer import encode_pair, load_vocabulary
from core.documents.segmentation import KNOWN_LANGUAGES, UNKNOWN_LANGUAGE, detect_language
from core.runtime.concurrency import StopSignal, cache_load, count_threads
from core.runtime.config import E5_DIR
from core.runtime.errors import ConfigError, InputError

if TYPE_CHECKING:
    from core.baseline.assessment import Assessor
    from core.baseline.evidence_model import EvidenceModel
    from core.store import Store

SHIPPED_READER = "shipped"
CARD_FILE = "card.json"
CALIBRATION_FILE = "calibration.json"
READER_NOTE_KEY = "reader"
READING_CACHE_SIZE = 8192
MAX_READER_THREADS = 4
EvidenceClaimPair = tuple[str, str]  # evidence and claim
MODEL_FILE = "model.onnx"
TOKENIZER_FILE = "tokenizer.json"
MAX_PAIR_TOKENS = (
    512  # most tokens of a pair, even if the model allows more; windows are far shorter
)
LabelScheme = Literal["inference", "consistency", "tokens"]
SUPPORTED_NAMES = re.compile(
    r"^(entail|support|consist|faithful|factual|true|yes|grounded|attribut)", re.I
)
CONTRADICTED_NAMES = re.compile(r"contra|refut", re.I)
NEUTRAL_NAMES = re.compile(r"neutral|not.?enough|unknown|nei\b", re.I)
WRONG_NAMES = re.compile(r"^(not|un|in|non)[ _-]?|halluc|false|refut|contra|^no\b", re.I)
Floats = npt.NDArray[np.float64]
ENGLISH_DIR = Path(__file__).parent / "weights" / "english"
MULTILINGUAL_DIR = Path(__file__).parent / "weights" / "multilingual"
MULTILINGUAL_MODEL_FILE = "reader.onnx"


def list_reader_folders(home: Path) -> dict[str, Path]:
    """Return the folders of a home's imported readers by name."""
    root = home / "readers"
    folders = sorted(root.iterdir()) if root.is_dir() else []
    return {folder.name: folder for folder in folders if (folder / CARD_FILE).is_file()}


def load_reader_choice(store: Store) -> str:
    """Return the name of the reader chosen in Settings."""
    return store.projects.note(READER_NOTE_KEY) or SHIPPED_READER


def choose_reader(store: Store, home: Path, name: str) -> None:
    """Make checks of this home use that reader from now on.

    Raises InputError if there is no such reader.
    """
    find_reader_folder(home, name)
    with store.writing():
        store.projects.save_note(READER_NOTE_KEY, name)


def find_reader_folder(home: Path, name: str) -> Path | None:
    """Return the reader's folder; None for the shipped one.

    Raises InputError if there is no such reader; the message names those there are.
    """
    if name in ("", SHIPPED_READER):
        return None
    folder = list_reader_folders(home).get(name)
    if folder is None:
        known = ", ".join((SHIPPED_READER, *list_reader_folders(home)))
        raise InputError(
            f"Expected a reader of {known}; found “{name}”. Import one with "
            "python -m core reader import NAME_OR_FOLDER."
        )
    return folder


def import_if_new(home: Path, source: str) -> str:
    """Return the reader's name for a name, Hub name or folder, importing it if it is new.

    Raises InputError if there is no such model, or none that can read pairs.
    """
    name = derive_reader_name(source)
    known = list_reader_folders(home)
    if source in ("", SHIPPED_READER) or source in known:
        return source
    if name not in known or _is_outdated(known[name], source):
        if "/" not in source and not Path(source).is_dir():
            find_reader_folder(home, source)
        import_reader(source, home / "readers" / name)
    return name


def _is_outdated(stored: Path, source: str) -> bool:
    """Return True if the stored model has another source, or its source folder changed since."""
    source_of_stored = str(read_reader_card(stored).get("source", ""))
    folder = Path(source)
    if not folder.is_dir():
        return source_of_stored != source
    changed = max((path.stat().st_mtime for path in folder.iterdir()), default=0.0)
    return (
        source_of_stored != str(folder.resolve()) or changed > (stored / CARD_FILE).stat().st_mtime
    )


def derive_reader_name(source: str) -> str:
    """Return a home's name for the model: the folder's last part, or the Hub name without slash."""
    name = Path(source).resolve().name if Path(source).is_dir() else source
    return re.sub(r"[^A-Za-z0-9_.]+", "-", name).strip("-.") or "reader"


def read_reader_card(folder: Path) -> dict[str, Any]:
    """Read the card of an imported reader. Raises ConfigError if it cannot be read."""
    return _read_json(folder / CARD_FILE, "card", "")


def _read_json(path: Path, what: str, advice: str) -> dict[str, Any]:
    try:
        return dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"Expected the {what} of the reader {path.parent.name}, found: {error!r}{advice}."
        ) from error


def read_reader_calibration(folder: Path) -> dict[str, Any] | None:
    """Read the reader's calibration; None if it was never calibrated.

    Raises ConfigError if it cannot be read.
    """
    path = folder / CALIBRATION_FILE
    return _read_json(path, "calibration", "; calibrate it again") if path.is_file() else None


def get_calibration_notice(home: Path, name: str) -> str:
    """Return a notice about a reader that was never calibrated; empty otherwise.

    Raises InputError if there is no such reader.
    """
    folder = find_reader_folder(home, name)
    if folder is None or read_reader_calibration(folder) is not None:
        return ""
    return (
        f"The reader {name} is not calibrated, so its probabilities may be off: python -m core "
        f"reader calibrate {name} --dataset SET --path DIR"
    )


def load_assessor(home: Path, name: str) -> Assessor:
    """Return the assessor that uses that reader; one for each reader in a process.

    Raises:
        InputError: there is no such reader.
        ConfigError: it cannot be loaded.
    """
    folder = find_reader_folder(home, name)
    if folder is None:
        return load_shared_assessor()
    calibration = folder / CALIBRATION_FILE
    changed = calibration.stat().st_mtime_ns if calibration.is_file() else 0
    return _imported_assessor(folder, changed)


@lru_cache(maxsize=1)
def load_shared_assessor() -> Assessor:
    """Return the assessor with the shipped reader; agents share it so that pairs are read once."""
    from core.baseline.assessment import Assessor

    return Assessor(load_reader())


@lru_cache(maxsize=2)
def _imported_assessor(folder: Path, changed: int) -> Assessor:
    from core.baseline.assessment import Assessor

    return Assessor(OnnxReader(folder), load_calibrated_model(folder))


def load_calibrated_model(folder: Path) -> EvidenceModel:
    """Return the evidence model as calibrated for an imported reader, or else as shipped.

    Raises ConfigError if the calibration file is malformed.
    """
    from core.baseline.evidence_model import MATERIALS, load_evidence_model, parse_logistic

    shipped, calibration = load_evidence_model(), read_reader_calibration(folder)
    if calibration is None:
        return shipped
    try:
        return replace(
            shipped,
            calibration={m: parse_logistic(calibration["calibration"][m]) for m in MATERIALS},
            supported_below=float(calibration["limits"]["supported_below"]),
            hallucinated_from=float(calibration["limits"]["hallucinated_from"]),
            card={**shipped.card, "measured": calibration["measured"],
                  "reader": read_reader_card(folder)["id"]},
        )  # fmt: skip
    except (KeyError, TypeError, ValueError) as error:
        raise ConfigError(
            f"Expected the calibration of the reader {folder.name}, found: {error!r}; calibrate it "
            "again."
        ) from error


@dataclass(frozen=True)
class TokenDoubt:
    """The probability that a token of the claim, `[start, end)` in code points, is wrong."""

    start: int
    end: int
    p: float


@dataclass(frozen=True)
class EntailmentReading:
    """The reading of one pair; the three probabilities sum to 1."""

    supported: float
    contradicted: float
    neutral: float
    words: tuple[TokenDoubt, ...] = ()
    """One for each token of the claim; empty if the reader does not judge words."""


class EntailmentReader(Protocol):
    """Anything that reads a claim against evidence."""

    @property
    def id(self) -> str:
        """Return an id that changes whenever the same pair could be read differently."""

    def read(
        self, pairs: Sequence[EvidenceClaimPair], stop: StopSignal | None = None
    ) -> list[EntailmentReading]:
        """Return a reading of each (evidence, claim), in order and independent of the others."""

    @property
    def marks_words(self) -> bool:
        """Return True for a reader that was trained only to mark words."""

    def knows(self, text: str) -> bool:
        """Return False if too many of the text's tokens are unknown for a meaningful reading."""


class BaseReader:
    """Base of readers that read pairs one by one on a few threads and cache the readings.

    Subclasses read one pair; sessions of onnxruntime may be shared between threads.
    """

    id: str
    marks_words = False

    def __init__(self) -> None:
        self._workers = count_threads(MAX_READER_THREADS)
        self._cached_read = lru_cache(READING_CACHE_SIZE)(
            self.read_one
        )  # all agents read the same pairs

    def read_one(self, pair: EvidenceClaimPair) -> EntailmentReading:
        """Return the reading of one pair."""
        raise TypeError("a reader must read pairs")

    def knows(self, text: str) -> bool:
        """Return False if too many of the text's tokens are unknown for a meaningful reading."""
        raise TypeError("a reader must say what it knows")

    def read(
        self, pairs: Sequence[EvidenceClaimPair], stop: StopSignal | None = None
    ) -> list[EntailmentReading]:
        """Return a reading of each (evidence, claim), in order."""
        halt = stop or StopSignal()

        def reading(pair: EvidenceClaimPair) -> EntailmentReading:
            halt.check()
            return self._cached_read(pair)

        distinct = list(dict.fromkeys(pairs))
        if len(distinct) < 2 or self._workers < 2:
            found = [reading(pair) for pair in distinct]
        else:
            with ThreadPoolExecutor(min(self._workers, len(distinct))) as pool:
                found = list(pool.map(reading, distinct))
        known = dict(zip(distinct, found, strict=True))
        return [known[pair] for pair in pairs]


@dataclass(frozen=True)
class ClassLabels:
    """The meaning of a model's classes; several classes may mean the same."""

    kind: LabelScheme
    supported: tuple[int, ...]
    contradicted: tuple[int, ...]
    neutral: tuple[int, ...] = ()


def parse_class_labels(names: Mapping[int, str], *, is_tokens: bool) -> ClassLabels:
    """Return the meaning of a model's classes by their names.

    For unnamed pairs (LABEL_0, LABEL_1) the convention of published models holds: class 1 is
    supported in consistency models and wrong in token classifiers. Raises InputError if the names
    express neither support nor its absence.
    """
    by_kind: dict[str, list[int]] = {"supported": [], "contradicted": [], "neutral": []}
    for place, name in sorted(names.items()):
        if NEUTRAL_NAMES.search(name):
            by_kind["neutral"].append(place)
        elif CONTRADICTED_NAMES.search(name) or WRONG_NAMES.search(name):
            by_kind["contradicted"].append(place)
        elif SUPPORTED_NAMES.search(name):
            by_kind["supported"].append(place)
    if len(names) == 2 and all(re.fullmatch(r"LABEL_\d", name) for name in names.values()):
        wrong = int(is_tokens)
        by_kind = {"supported": [1 - wrong], "contradicted": [wrong], "neutral": []}
    if not by_kind["supported"] or not (by_kind["contradicted"] or by_kind["neutral"]):
        found = ", ".join(names.values())
        raise InputError(
            "Expected a model whose labels name support and its absence (entailment, neutral, "
            f"contradiction; supported, unsupported), found {found}."
        )
    kind: LabelScheme = "inference" if by_kind["neutral"] else "consistency"
    if is_tokens:
        kind = "tokens"
    return ClassLabels(kind, *map(tuple, by_kind.values()))


class OnnxReader(BaseReader):
    """An exported model as a reader; safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Load the model.

        Raises ConfigError if the folder is missing, incomplete, or not what its card says.
        """
        super().__init__()
        card = read_card(folder, MODEL_FILE)
        self.id, self.card = str(card["id"]), card
        self._labels = msgspec.convert(card["labels"], ClassLabels)
        self.marks_words = self._labels.kind == "tokens"
        self._session = open_session(folder / MODEL_FILE)
        # the exporter prunes unused inputs
        input_names = {node.name for node in self._session.get_inputs()}
        self._inputs = [name for name in card["inputs"] if name in input_names]
        self._tokenizer = _load_tokenizer(folder)
        self._max_tokens = int(card["max_tokens"])
        self._tokenizer.enable_truncation(self._max_tokens, strategy="only_first")
        self._unknown: int | None = card["unknown"]
        self._languages = frozenset(card.get("languages", ()))
        self._temperature = float(card.get("temperature", 1.0))

    def knows(self, text: str) -> bool:
        """Return False if over a fifth of the text's tokens are unknown, or its language is.

        Any language counts as known if the card names none.
        """
        if self._languages and detect_language(text) not in {UNKNOWN_LANGUAGE, *self._languages}:
            return False
        ids = self._tokenizer.encode(text, add_special_tokens=False).ids
        return not ids or sum(i == self._unknown for i in ids) <= len(ids) / 5

    def read_one(self, pair: EvidenceClaimPair) -> EntailmentReading:
        """Return the reading of one pair."""
        evidence, claim = pair
        # The claim is truncated if it would leave no room for evidence.
        max_claim = max(1, self._max_tokens * 3 // 4)
        offsets = self._tokenizer.encode(claim, add_special_tokens=False).offsets
        claim = claim[: offsets[max_claim - 1][1]] if len(offsets) > max_claim else claim
        item = self._tokenizer.encode(evidence, claim)
        features = {
            "input_ids": item.ids,
            "attention_mask": item.attention_mask,
            "token_type_ids": item.type_ids,
        }
        feed = {name: np.array([features[name]], dtype=np.int64) for name in self._inputs}
        (logits,) = self._session.run(None, feed)
        if self._labels.kind == "tokens":
            return self._token_reading(_softmax(logits[0]), item)
        shares = _softmax(logits[0] / self._temperature)
        supported, contradicted, neutral = (
            float(shares[list(places)].sum())
            for places in (self._labels.supported, self._labels.contradicted, self._labels.neutral)
        )
        if self._labels.kind == "consistency":
            # the model does not distinguish a denial from an omission
            return EntailmentReading(supported, contradicted / 2, contradicted / 2)
        return EntailmentReading(supported, contradicted, neutral)

    def _token_reading(self, shares: Floats, item: Any) -> EntailmentReading:
        """Return a reading whose support is that of the claim's most doubted word."""
        wrong = shares[:, list(self._labels.contradicted)]
        tokens = zip(item.offsets, item.sequence_ids, wrong, strict=True)
        words = tuple(
            TokenDoubt(start, end, float(odds.sum()))
            for (start, end), side, odds in tokens
            if side == 1 and start < end
        )
        worst = max((word.p for word in words), default=0.5)
        return EntailmentReading(1.0 - worst, worst / 2, worst / 2, words)


def _softmax(logits: npt.NDArray[Any]) -> Floats:
    """Return the softmax over the last axis."""
    scores = logits.astype(np.float64)
    odds = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return np.asarray(odds / odds.sum(axis=-1, keepdims=True))


def import_reader(source: str, out: Path) -> dict[str, Any]:
    """Export a model of the Hub or of a folder into the folder `out`, and return its card.

    Raises InputError if there is no such model, or it cannot read pairs.
    """
    import torch
    from transformers import AutoConfig, AutoTokenizer

    try:
        config = AutoConfig.from_pretrained(source, trust_remote_code=False)
        tokenizer = AutoTokenizer.from_pretrained(source, trust_remote_code=False, use_fast=True)
        model = _load_model(source, config)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = (str(error) or type(error).__name__).splitlines()[0][:160]
        raise InputError(
            f"Expected a sequence or token classifier under “{source}”, found none that "
            f"transformers can load without running its code ({first})."
        ) from error
    is_tokens = type(model).__name__.endswith("ForTokenClassification")
    names = {int(place): str(name) for place, name in config.id2label.items()}
    labels = parse_class_labels(names, is_tokens=is_tokens)
    parameters = inspect.signature(model.forward).parameters
    inputs = [name for name in tokenizer.model_input_names if name in parameters]
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent) as temporary:
        folder = Path(temporary) / "reader"
        folder.mkdir()
        export_reader_model(model, tokenizer, inputs, folder / MODEL_FILE)
        tokenizer.backend_tokenizer.save(str(folder / TOKENIZER_FILE))
        positions = getattr(config, "max_position_embeddings", MAX_PAIR_TOKENS) or MAX_PAIR_TOKENS
        card = {
            "name": re.sub(r"[^A-Za-z0-9_.-]+", "-", source.strip("/").split("/")[-1]),
            "source": str(Path(source).resolve()) if Path(source).is_dir() else source,
            "architecture": type(model).__name__,
            "labels": asdict(labels),
            "inputs": inputs,
            "max_tokens": min(
                MAX_PAIR_TOKENS, positions - (2 if positions == MAX_PAIR_TOKENS + 2 else 0)
            ),
            "unknown": tokenizer.unk_token_id,
        }
        written = write_card(folder, MODEL_FILE, card)
        shutil.rmtree(out, ignore_errors=True)
        folder.rename(out)
    torch._dynamo.reset()
    return written


def _load_model(source: str, config: Any) -> Any:
    from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

    architectures = " ".join(config.architectures or ())
    if architectures and "Classification" not in architectures:
        raise ValueError(f"its architecture is {architectures}")
    marks_tokens = "TokenClassification" in architectures
    kind = AutoModelForTokenClassification if marks_tokens else AutoModelForSequenceClassification
    return kind.from_pretrained(source, trust_remote_code=False, attn_implementation="eager").eval()


def export_reader_model(model: Any, tokenizer: Any, inputs: Sequence[str], path: Path) -> None:
    """Export the model with a dynamic length, then quantize it to int8."""
    import onnx
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    class Logits(torch.nn.Module):
        """The model's logits: (1, classes), or (1, length, classes)."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *given: Any) -> Any:
            return self.model(**dict(zip(inputs, given, strict=True))).logits

    unquantized = path.with_name("whole.onnx")
    example = tokenizer("The source is here.", "The claim is here.", return_tensors="pt")
    values = [example[name] for name in inputs]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            Logits().eval(),
            tuple(values),
            str(unquantized),
            dynamo=False,
            opset_version=17,
            input_names=list(inputs),
            output_names=["logits"],
            dynamic_axes={name: {1: "length"} for name in inputs},
        )
    onnx.checker.check_model(str(unquantized))
    quantize_dynamic(str(unquantized), str(path), per_channel=True, weight_type=QuantType.QInt8)
    unquantized.unlink()


def _load_tokenizer(folder: Path) -> Any:
    from tokenizers import Tokenizer

    try:
        return Tokenizer.from_file(str(folder / TOKENIZER_FILE))
    except Exception as error:  # the loader raises undocumented types of its own
        raise ConfigError(f"Expected a tokenizer in {folder.name}, found none.") from error


class MultilingualReader(BaseReader):
    """The shipped reader of languages other than English; safe to use from several threads."""

    def __init__(self, folder: Path = MULTILINGUAL_DIR) -> None:
        """Load the model.

        Raises ConfigError if the folder is missing, incomplete, or not what its card says.
        """
        super().__init__()
        self.card = read_card(folder, MULTILINGUAL_MODEL_FILE)
        self.id = str(self.card["id"])
        self._temperature = float(self.card["temperature"])
        self._vocabulary = load_vocabulary(E5_DIR)
        self._session = open_session(folder / MULTILINGUAL_MODEL_FILE)

    def knows(self, text: str) -> bool:
        """Return False if over a fifth of the text's tokens are unknown, or its language is."""
        if detect_language(text) not in {UNKNOWN_LANGUAGE, *KNOWN_LANGUAGES}:
            return False
        return not self._vocabulary.is_unknown(text)

    def read_one(self, pair: EvidenceClaimPair) -> EntailmentReading:
        """Return the reading of one pair."""
        item = encode_pair(*pair, self._vocabulary.tokenizer)
        classes, words = self._session.run(None, {"vectors": self._vocabulary.vectors_of(item.ids)})
        shares = _softmax(classes[0].astype(np.float64) / self._temperature)
        supported, contradicted, neutral = shares.tolist()
        logits = words[0][item.claim_start : item.claim_start + len(item.offsets)]
        doubts = (1.0 / (1.0 + np.exp(-logits.astype(np.float64)))).tolist()
        word_doubts = []
        for (start, end), p in zip(item.offsets, doubts, strict=True):
            start += pair[1][start:end].startswith(" ")  # skip the blank before a word
            word_doubts += [TokenDoubt(start, end, p)] if start < end else []
        return EntailmentReading(supported, contradicted, neutral, tuple(word_doubts))


@cache_load
def load_multilingual_reader() -> MultilingualReader:
    """Load the shipped multilingual reader, once per process.

    Raises ConfigError if it is missing, incomplete, or not what its card says.
    """
    return MultilingualReader()


class LanguageRoutingReader(BaseReader):
    """Passes each pair to the reader of its language; safe to use from several threads."""

    def __init__(self, english: BaseReader, multilingual: BaseReader) -> None:
        super().__init__()
        self._english, self._multilingual = english, multilingual
        self.id = f"{english.id}-{multilingual.id}"

    def knows(self, text: str) -> bool:
        """Return False if too many of the text's tokens are unknown, or its language is."""
        return self._multilingual.knows(text)

    def read_one(self, pair: EvidenceClaimPair) -> EntailmentReading:
        """Return the reading of one pair."""
        is_english = all(detect_language(text) in {"en", UNKNOWN_LANGUAGE} for text in pair)
        return (self._english if is_english else self._multilingual).read_one(pair)


@cache_load
def load_reader() -> LanguageRoutingReader:
    """Load the shipped readers, once per process.

    Raises ConfigError if one is missing, incomplete, or not what its card says.
    """
    return LanguageRoutingReader(OnnxReader(ENGLISH_DIR), load_multilingual_reader())
