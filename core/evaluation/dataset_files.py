"""Read the files of public sets as published, plain, gzipped or in a zip, as labelled rows.

Files are untrusted: sizes are limited, nothing is unpacked to disk, and every error names file and
line. `core.evaluation.sets` defines what the rows mean.

The part of a row (train, calibration or dev) depends on its group key alone: rows with the same key
(in lower case, letters and digits only) are in the same part, in every set. Rows with different
keys may still share a claim or an evidence text, and then may be in different parts; if more than a
handful of a set's texts do, its rule's note says so.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Literal, cast, get_args

from core.exchange.rows import FileRecord
from core.exchange.rows import GoldSpan as GoldSpan
from core.runtime.errors import InputError
from core.schema.records import Label

SplitPart = Literal["train", "calibration", "dev"]

DEV_PERCENT = 20
CALIBRATION_PERCENT = 10
PARTS_BY_SPLIT: dict[str, frozenset[SplitPart]] = {
    "dev20": frozenset({"dev"}),
    "calibration10": frozenset({"calibration"}),
    "train70": frozenset({"train"}),
    "train80": frozenset({"train", "calibration"}),
}
MAX_FILE_BYTES = 256 * 2**20  # of one file, uncompressed; the largest public file is about a tenth
MAX_FIELD_CHARS = 10 * 2**20  # characters of one field of a table
READ_ERRORS = (
    OSError, EOFError, KeyError, RuntimeError, NotImplementedError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
# Words in file names that mean the same split.
SPLIT_WORDS = (
    ("train", "training"),
    ("dev", "val", "valid", "validation", "trial"),
    ("test", "tst", "testsmall"),
)


def normalize_key(text: str) -> str:
    """Return the text as the data manifest compares keys: lower case, word characters only."""
    return re.sub(r"\W+", "", text).lower()


def assign_part(group: str) -> SplitPart:
    """Return the part of every row of this group; the same on every machine."""
    percent = assign_fold(group, 100)
    if percent < DEV_PERCENT:
        return "dev"
    return "calibration" if percent < DEV_PERCENT + CALIBRATION_PERCENT else "train"


def assign_fold(group: str, folds: int) -> int:
    """Return the fold of every row of this group; the same on every machine."""
    digest = hashlib.sha256(normalize_key(group).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % folds


@dataclass(frozen=True)
class GoldRow:
    """A case with its gold label.

    `id` is unique within a set and a task and stays the same between runs; `place` names file and
    line for messages. `label` is None if the set holds no label (it can be run, not scored),
    `unclear` if the evidence does not decide. `group` is the text that ties rows together (the
    question, prompt, title or evidence that the manifest splits by): related rows are on one side
    of a split. `documents` is empty if the set has no evidence. `spans` is None if the set marks no
    words, () if it says that none is wrong; `soft` holds every marked stretch with its share.
    `recorded` is another detector's label, if the set records it, `category` the kind of claim or
    of error. `role` and `instruction` are None if they are the project's, where there is one.
    """

    id: str
    place: str
    response: str
    label: Label | None
    group: str
    language: str = "en"
    question: str = ""
    documents: tuple[str, ...] = ()
    images: tuple[Path, ...] = ()
    spans: tuple[GoldSpan, ...] | None = None
    soft: tuple[GoldSpan, ...] = ()
    recorded: Label | None = None
    recorded_by: str = ""
    category: str = ""
    role: str | None = None
    instruction: str | None = None

    @property
    def group_key(self) -> str:
        """The group as splits compare it; rows with the same key are related."""
        return normalize_key(self.group)


def build_answer_row(
    own: str, record: FileRecord, question: str, response: str, label: Label | None, **more: Any
) -> GoldRow:
    """Return the row of an answer, grouped by its question."""
    return GoldRow(own, record.place, response, label, question, question=question, **more)


@lru_cache(maxsize=1)
def load_rule_lines() -> tuple[dict[str, str], ...]:
    """Return the lines of `sets/rules.csv`, which define each set's rows and labels."""
    path = Path(__file__).parent / "sets" / "rules.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def load_label_meanings(name: str, task: str = "") -> dict[str, Label | None]:
    """Return the label of each label word by the set's first rule; None means left out."""
    rule = next(r for r in load_rule_lines() if r["set"] == name and task in ("", r["task"]))
    pairs = (one.split(" → ") for one in rule["labels"].split(", "))
    known: Mapping[str, Label] = {label: label for label in get_args(Label)}
    return {word.lower(): known.get(label) for word, label in pairs}


# (the set's own folder, task, split of files or None for all) -> lazy rows
Loader = Callable[[Path, str, str | None], Iterator[GoldRow]]


def find_data_files(folder: Path, patterns: Sequence[str], split: str | None = None) -> list[Path]:
    """Return the matching files under the folder, sorted; only those of one split if it is given.

    Patterns match the path relative to the folder, without a final `.gz`; `*` does not cross `/`.
    Raises InputError if there is no such folder, or no file in it matches.
    """
    if not folder.is_dir():
        raise InputError(
            f"Expected a data folder at {folder}, found none; give the folder that holds the "
            "data sets' folders."
        )
    # Hidden files are metadata, such as the resource forks that other systems put into archives.
    files = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    # A file that is there both plain and gzipped is read once.
    by_name = {_relative_path(path, folder).removesuffix(".gz"): path for path in reversed(files)}
    fitting = [path for name, path in sorted(by_name.items()) if _matches_any(name, patterns)]
    chosen = [p for p in fitting if split is None or is_of_split(_relative_path(p, folder), split)]
    if not chosen:
        wanted = f"{' or '.join(patterns)} (plain or .gz)"
        wanted += f" of the split {split}" if split is not None else ""
        listed = [_relative_path(path, folder) for path in (fitting or files)[:12]]
        names = ", ".join(listed) or "nothing"
        raise InputError(f"Expected a data file at {folder}/ named {wanted}, found: {names}.")
    return chosen


def _relative_path(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _matches_any(name: str, patterns: Sequence[str]) -> bool:
    path = Path(name)
    return any(len(path.parts) == p.count("/") + 1 and path.match(p) for p in patterns)


def is_of_split(name: str, split: str) -> bool:
    """Return True if a file (its path in the set's folder) belongs to a split, or has that name."""
    plain_name = name.removesuffix(".gz")
    stem = re.sub(r"\.(jsonl|json|tsv|csv|zip)$", "", plain_name)
    if split in (name, plain_name, stem, Path(name).name, Path(plain_name).name, Path(stem).name):
        return True
    wanted = split.lower()
    synonyms = next((words for words in SPLIT_WORDS if wanted in words), (wanted,))
    return bool(set(re.split(r"[^a-z0-9]+", stem.lower())) & set(synonyms))


def read_text(path: Path) -> str:
    """Return a file's text, plain or gzipped.

    Raises InputError if it cannot be read, is cut off, is too large or is not UTF-8.
    """
    return _decode_text(str(path), lambda: _read_file(path))


def read_zip_member(path: Path, member: str, password: str = "") -> str:
    """Return the text of one file inside a zip, read in memory.

    Raises InputError if the zip holds no such file, or as `read_text` does.
    """
    return _decode_text(f"{path}/{member}", lambda: _read_zip_member(path, member, password))


def list_zip_members(path: Path) -> tuple[str, ...]:
    """Return the names of the files inside a zip, sorted. Raises InputError if it is no zip."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(sorted(i.filename for i in archive.infolist() if not i.is_dir()))
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"Expected a data file at {path}, found: {error}.") from error


def _read_file(path: Path) -> bytes:
    with path.open("rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        return _read_limited(cast("BinaryIO", stream))


def _read_zip_member(path: Path, member: str, password: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return _read_limited(cast("BinaryIO", archive.open(member, pwd=password.encode() or None)))


def _read_limited(stream: BinaryIO) -> bytes:
    data = stream.read(MAX_FILE_BYTES + 1)
    if len(data) > MAX_FILE_BYTES:
        raise OSError(f"more than {MAX_FILE_BYTES // 2**20} MiB of text")
    return data


def _decode_text(place: str, read: Callable[[], bytes]) -> str:
    try:
        return read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"Expected UTF-8 text in {place}, found: {error}.") from error
    except READ_ERRORS as error:
        raise InputError(f"Expected a data file at {place}, found: {error}.") from error


def iter_rows(
    folder: Path, patterns: Sequence[str], split: str | None = None, *, delimiter: str = ""
) -> Iterator[tuple[str, FileRecord]]:
    """Yield (row id, record) of every record in the matching files."""
    for path in find_data_files(folder, patterns, split):
        for record in read_records(path, delimiter=delimiter):
            yield build_row_id(path, folder, record.line), record


def build_row_id(path: Path, folder: Path, line: int) -> str:
    """Return file and line as an id, which is the same whether the file is gzipped or not."""
    return f"{_relative_path(path, folder).removesuffix('.gz')}:{line}"


def read_records(path: Path, *, delimiter: str = "") -> Iterator[FileRecord]:
    """Return a file's rows in the format that its name gives; `delimiter` overrides a table's."""
    text, name = read_text(path), path.name.removesuffix(".gz")
    if name.endswith((".tsv", ".csv")):
        separator = delimiter or ("\t" if name.endswith(".tsv") else ",")
        return parse_table(text, str(path), separator, quoted=name.endswith(".csv"))
    is_list = name.endswith(".json") and text.lstrip()[:1] == "["
    return parse_json_list(text, str(path)) if is_list else parse_json_lines(text, str(path))


def parse_json_lines(text: str, file: str) -> Iterator[FileRecord]:
    """Yield one JSON object per line; blank lines are skipped."""
    for number, line in enumerate(io.StringIO(text), start=1):
        start = _skip_whitespace(line, 0)
        if start == len(line):
            continue
        value, end = _parse_json(line, file, number, start)
        if line[end:].strip():
            raise InputError(f"{file}, line {number}: expected one JSON object, found more.")
        yield _build_record(value, file, number)


def parse_json_list(text: str, file: str) -> Iterator[FileRecord]:
    """Return the objects of one JSON list, each with the line where it begins."""
    first = _skip_whitespace(text, text.index("[") + 1)
    return (record for _, record in _iter_objects(text, file, first, "]", is_whole=True))


def read_keyed_objects(path: Path) -> Iterator[tuple[str, FileRecord]]:
    """Return the (key, object) pairs of a file that holds `{"key": {…}, …}`."""
    text, file = read_text(path), str(path)
    return _iter_objects(text, file, _skip_past(text, 0, "{", file, 1), "}")


def read_listed_objects(path: Path, name: str) -> Iterator[FileRecord]:
    """Return the objects of the list in a file that holds `{"name": […]}`."""
    text, file = read_text(path), str(path)
    key, end = _parse_json(text, file, 1, _skip_past(text, 0, "{", file, 1))
    start = _skip_past(text, end, ":", file, 1)
    if key != name or text[start : start + 1] != "[":
        raise InputError(f"{file}, line 1: expected a JSON list called {name}, found {key!r}.")
    return (
        record for _, record in _iter_objects(text, file, _skip_whitespace(text, start + 1), "]")
    )


def parse_json_object(data: bytes, file: str) -> FileRecord:
    """Return the single object of a file."""
    text = _decode_text(file, lambda: data)
    value, _ = _parse_json(text, file, 1, _skip_whitespace(text, 0))
    return _build_record(value, file, 1)


def _iter_objects(
    text: str, file: str, position: int, close: str, *, is_whole: bool = False
) -> Iterator[tuple[str, FileRecord]]:
    """Yield (key, object) up to the closing bracket; the key is "" in a list."""
    line, counted_to, key = 1, 0, ""
    while text[position : position + 1] != close:
        line, counted_to = line + text.count("\n", counted_to, position), position
        if close == "}":
            name, end = _parse_json(text, file, line, position)
            key, position = str(name), _skip_past(text, end, ":", file, line)
        value, end = _parse_json(text, file, line, position)
        yield key, _build_record(value, file, line)
        position = _skip_whitespace(text, end)
        if text[position : position + 1] != close:
            position = _skip_past(text, position, ",", file, line)
    if is_whole and text[position + 1 :].strip():
        line += text.count("\n", counted_to, position)
        raise InputError(f"{file}, line {line}: expected nothing after the JSON list, found more.")


def _skip_past(text: str, position: int, expected: str, file: str, line: int) -> int:
    position = _skip_whitespace(text, position)
    if text[position : position + 1] != expected:
        actual = text[position : position + 20] or "the end of the file"
        raise InputError(f"{file}, line {line}: expected “{expected}”, found: {actual!r}.")
    return _skip_whitespace(text, position + 1)


def _skip_whitespace(text: str, position: int) -> int:
    while text[position : position + 1].isspace():
        position += 1
    return position


def _parse_json(text: str, file: str, line: int, position: int) -> tuple[object, int]:
    try:
        return json.JSONDecoder().raw_decode(text, position)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}, line {line}: expected JSON, found: {error}.") from error


def _build_record(value: object, file: str, line: int) -> FileRecord:
    if not isinstance(value, dict):
        raise InputError(f"{file}, line {line}: expected a JSON object, found another kind.")
    return FileRecord(value, file, line)


def parse_table(text: str, file: str, delimiter: str, *, quoted: bool) -> Iterator[FileRecord]:
    """Yield the records of a table with a header, each with the line where it begins."""
    csv.field_size_limit(MAX_FIELD_CHARS)
    lines = io.StringIO(text, newline="")
    if quoted:
        reader = csv.reader(lines, delimiter=delimiter)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    header: list[str] | None = None
    start_line = 1
    try:
        for cells in reader:
            if header is None:
                header = cells
            elif cells:
                yield _build_line(header, cells, file, start_line)
            start_line = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{file}, line {start_line}: expected a table, found: {error}.") from error


def _build_line(header: Sequence[str], cells: Sequence[str], file: str, line: int) -> FileRecord:
    if len(cells) != len(header):
        raise InputError(
            f"{file}, line {line}: expected {len(header)} columns, found {len(cells)}."
        )
    return FileRecord(dict(zip(header, cells, strict=True)), file, line)
