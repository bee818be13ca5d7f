"""Loads labelled claims from folders of public data as they lie; one loader a set.

Label semantics differ from set to set; they become `supported` or `hallucinated` here and nowhere
else. `group` is the text that ties rows together, so that splits keep related rows on one side.
No row is kept in the project: the folder is given.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from core.errors import InputError
from core.learning.verdict_texts import LabelledClaim
from core.records import Label

BRACKETS = {"-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]"}


def load(name: str, folder: Path) -> list[LabelledClaim]:
    """All rows of a set; `folder` is the one that holds the sets' folders.

    Raises:
        InputError: the set is unknown, its files are missing, or a row is broken.
    """
    if name not in LOADERS:
        raise InputError(f"Expected a data set of {', '.join(LOADERS)}; found “{name}”.")
    return list(LOADERS[name](folder))


def _text(path: Path, inside: str = "") -> str:
    """A file's text: plain, gzipped, or the member `inside` of a zip."""
    try:
        if inside:
            with zipfile.ZipFile(path) as archive:
                data = archive.read(inside)
        else:
            data = path.read_bytes()
            data = gzip.decompress(data) if path.suffix == ".gz" else data
    except (OSError, EOFError, KeyError, zlib.error, zipfile.BadZipFile) as error:
        raise InputError(f"Expected a data file at {path}, found: {error}.") from error
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"Expected UTF-8 text in {path}, found: {error}.") from error


def _json_rows(path: Path, inside: str = "") -> Iterator[tuple[int, dict[str, object]]]:
    """(line number, object) of a file with one JSON object a line."""
    for number, line in enumerate(io.StringIO(_text(path, inside)), start=1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError(f"{path}, line {number}: expected JSON, found: {error}.") from error
        if not isinstance(row, dict):
            raise InputError(f"{path}, line {number}: expected a JSON object, found another kind.")
        yield number, row


def _field(row: Mapping[str, object], name: str, path: Path, number: int) -> str:
    value = row.get(name)
    if not isinstance(value, str):
        raise InputError(f"{path}, line {number}: expected a text called {name}.")
    return value


def _with_brackets(text: str) -> str:
    """The text with the brackets that treebank tokens stand for."""
    for token, bracket in BRACKETS.items():
        text = text.replace(token, bracket)
    return text


def _texts(row: Mapping[str, object], name: str, path: Path, number: int) -> list[str]:
    """The `text` of each object in a list."""
    items = row.get(name)
    texts = [i.get("text") for i in items if isinstance(i, dict)] if isinstance(items, list) else []
    found = [text for text in texts if isinstance(text, str)]
    if not isinstance(items, list) or len(found) != len(items):
        raise InputError(f"{path}, line {number}: expected a list of texts called {name}.")
    return found


def _fever_symmetric(folder: Path) -> Iterator[LabelledClaim]:
    """REFUTES: the claim is false given the evidence."""
    path = folder / "fever_symmetric" / "fever_symmetric_dev.jsonl.gz"
    labels: dict[str, Label] = {"REFUTES": "hallucinated", "SUPPORTS": "supported"}
    for number, row in _json_rows(path):
        evidence = _with_brackets(_field(row, "evidence", path, number))
        claim = _field(row, "claim", path, number)
        label = labels.get(_field(row, "gold_label", path, number))
        if label:
            yield LabelledClaim(claim, (evidence,), label, evidence)


def _fool_me_twice(folder: Path) -> Iterator[LabelledClaim]:
    """REFUTES: false claim; the gold evidence sentences make one text."""
    path = folder / "entailment_fm2" / "dev.jsonl.gz"
    labels: dict[str, Label] = {"REFUTES": "hallucinated", "SUPPORTS": "supported"}
    for number, row in _json_rows(path):
        label = labels.get(_field(row, "label", path, number))
        evidence = " ".join(_texts(row, "gold_evidence", path, number))
        if label and evidence:
            yield LabelledClaim(_field(row, "text", path, number), (evidence,), label, evidence)


def _breaking_nli(folder: Path) -> Iterator[LabelledClaim]:
    """Contradiction against entailment; neutral rows are left out. Read inside its zip."""
    path = folder / "entailment_breaking_nli" / "breaking_nli_dataset.zip"
    labels: dict[str, Label] = {"contradiction": "hallucinated", "entailment": "supported"}
    for number, row in _json_rows(path, "data/dataset.jsonl"):
        label = labels.get(_field(row, "gold_label", path, number))
        premise = _field(row, "sentence1", path, number)
        if label:
            claim = _field(row, "sentence2", path, number)
            yield LabelledClaim(claim, (premise,), label, premise)


def _cad_nli(folder: Path) -> Iterator[LabelledClaim]:
    """Human edits that flip the label; contradiction against entailment."""
    path = folder / "entailment_cad_nli" / "dev.tsv"
    labels: dict[str, Label] = {"contradiction": "hallucinated", "entailment": "supported"}
    rows = csv.DictReader(io.StringIO(_text(path)), delimiter="\t", quoting=csv.QUOTE_NONE)
    for number, row in enumerate(rows, start=2):
        label = labels.get(_field(row, "gold_label", path, number))
        premise = _field(row, "sentence1", path, number)
        if label:
            claim = _field(row, "sentence2", path, number)
            yield LabelledClaim(claim, (premise,), label, premise)


LOADERS: dict[str, Callable[[Path], Iterator[LabelledClaim]]] = {
    "fever_symmetric": _fever_symmetric,
    "entailment_fm2": _fool_me_twice,
    "entailment_breaking_nli": _breaking_nli,
    "entailment_cad_nli": _cad_nli,
}
