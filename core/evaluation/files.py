"""Reads the files of public sets as they lie, plain, gzipped or in a zip, as labelled rows.

Files are untrusted: sizes are limited, nothing is unpacked to disk, and every error names file and
line. What the rows mean is said in `core.evaluation.sets`.

The part in which a row lies (to train on, to calibrate with or to choose by) follows from its group
key alone: rows with one key (in small letters, letters and digits only) lie in one part, in every
set. Rows with other keys may share a claim or an evidence text all the same, and then lie in two
parts; where more than a handful of a set's texts do, its rule's note says so.
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
from typing import Any, BinaryIO, Literal, cast

from core.exchange.rows import GoldSpan as GoldSpan
from core.exchange.rows import Record
from core.runtime.errors import InputError
from core.schema.records import Label

Part = Literal["train", "calibration", "dev"]

DEV_PERCENT = 20
CALIBRATION_PERCENT = 10
PARTS: dict[str, frozenset[Part]] = {
    "dev20": frozenset({"dev"}),
    "calibration10": frozenset({"calibration"}),
    "train70": frozenset({"train"}),
    "train80": frozenset({"train", "calibration"}),
}


def normalised(text: str) -> str:
    """The text as the data manifest compares keys: lower case, word characters alone."""
    return re.sub(r"\W+", "", text).lower()


def part_of(group: str) -> Part:
    """The part in which every row of this group lies; the same on every machine."""
    place = fold_of(group, 100)
    if place < DEV_PERCENT:
        return "dev"
    return "calibration" if place < DEV_PERCENT + CALIBRATION_PERCENT else "train"


def fold_of(group: str, folds: int) -> int:
    """Which of so many folds all rows of this group lie in; the same on every machine."""
    digest = hashlib.sha256(normalised(group).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest, "big") % folds


@dataclass(frozen=True)
class GoldRow:
    """A case with what people said of it.

    `id` is unique within a set and a task and stays the same between runs; `place` names file and
    line for messages. `label` is None where the set holds no label (it can be run, not scored);
    `unclear` where the evidence was found not to decide. `group` is the text that ties rows
    together (the question, prompt, title or evidence that the manifest splits by): related rows
    lie on one side of a split. `documents` is empty where the set has no evidence. `spans` is None
    where the set marks no words, () where it says that none is wrong; `soft` holds every marked
    stretch with its share. `recorded` is what another detector said, where the set records it.
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


def answered(
    own: str, record: Record, question: str, response: str, label: Label | None, **more: Any
) -> GoldRow:
    """The row of an answer to a question, which ties rows together."""
    return GoldRow(own, record.place, response, label, question, question=question, **more)


@lru_cache(maxsize=1)
def rule_lines() -> tuple[dict[str, str], ...]:
    """The lines of `sets/rules.csv`: what each set's rows and labels mean."""
    path = Path(__file__).parent / "sets" / "rules.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return tuple(csv.DictReader(file))


def meanings(name: str, task: str = "") -> dict[str, Label | None]:
    """What the words of a set's labels mean, as its first rule has them; None: left out."""
    told = next(r for r in rule_lines() if r["set"] == name and task in ("", r["task"]))
    pairs = (one.split(" → ") for one in told["labels"].split(", "))
    known: Mapping[str, Label] = {"supported": "supported", "hallucinated": "hallucinated",
                                  "unclear": "unclear"}  # fmt: skip
    return {word.lower(): known.get(label) for word, label in pairs}


# (the set's own folder, task, split of files or None for all) -> rows, lazily.
Loader = Callable[[Path, str, str | None], Iterator[GoldRow]]


MOST_BYTES = 256 * 2**20  # of one file, unpacked; the largest public file here has about a tenth
MOST_FIELD = 10 * 2**20  # characters of one field of a table
# Words in file names that mean the same split.
SPLIT_WORDS = (
    ("train", "training"),
    ("dev", "val", "valid", "validation", "trial"),
    ("test", "tst", "testsmall"),
)


def data_files(folder: Path, patterns: Sequence[str], split: str | None = None) -> list[Path]:
    """The files under the folder that match, sorted; those of one split where it is named.

    Patterns are for the path relative to the folder, without a last `.gz`; `*` does not cross `/`.
    Raises InputError: there is no such folder, or no file in it matches.
    """
    if not folder.is_dir():
        raise InputError(
            f"Expected a data folder at {folder}, found none; give the folder that holds the "
            "data sets' folders."
        )
    # Hidden files are a file system's notes, such as those that an archive of another system holds.
    here = sorted(p for p in folder.rglob("*") if p.is_file() and not p.name.startswith("."))
    # A file that lies there both plain and gzipped is read once.
    once = {_inside(path, folder).removesuffix(".gz"): path for path in reversed(here)}
    fitting = [path for name, path in sorted(once.items()) if _matches(name, patterns)]
    chosen = [p for p in fitting if split is None or is_of_split(_inside(p, folder), split)]
    if not chosen:
        wanted = f"{' or '.join(patterns)} (plain or .gz)"
        wanted += f" of the split {split}" if split is not None else ""
        names = ", ".join(_inside(path, folder) for path in (fitting or here)[:12]) or "nothing"
        raise InputError(f"Expected a data file at {folder}/ named {wanted}, found: {names}.")
    return chosen


def _inside(path: Path, folder: Path) -> str:
    return path.relative_to(folder).as_posix()


def _matches(name: str, patterns: Sequence[str]) -> bool:
    bare = Path(name)
    return any(len(bare.parts) == p.count("/") + 1 and bare.match(p) for p in patterns)


def is_of_split(name: str, split: str) -> bool:
    """Whether a file (its path in the set's folder) is of a split, or is the file so named."""
    bare = name.removesuffix(".gz")
    stem = re.sub(r"\.(jsonl|json|tsv|csv|zip)$", "", bare)
    if split in (name, bare, stem, Path(name).name, Path(bare).name, Path(stem).name):
        return True
    wanted = split.lower()
    same = next((words for words in SPLIT_WORDS if wanted in words), (wanted,))
    return bool(set(re.split(r"[^a-z0-9]+", stem.lower())) & set(same))


def read_text(path: Path) -> str:
    """A file's text, plain or gzipped.

    Raises InputError: it cannot be read, is cut off, is too large or is not UTF-8.
    """
    return _decoded(str(path), lambda: _whole_file(path))


def read_member(path: Path, member: str, password: str = "") -> str:
    """The text of one file inside a zip, read in memory.

    Raises InputError: the zip holds no such file, or as `read_text`.
    """
    return _decoded(f"{path}/{member}", lambda: _whole_member(path, member, password))


def members(path: Path) -> tuple[str, ...]:
    """The names of the files inside a zip, sorted. Raises InputError: it is no zip."""
    try:
        with zipfile.ZipFile(path) as archive:
            return tuple(sorted(i.filename for i in archive.infolist() if not i.is_dir()))
    except (OSError, zipfile.BadZipFile) as error:
        raise InputError(f"Expected a data file at {path}, found: {error}.") from error


def _whole_file(path: Path) -> bytes:
    with path.open("rb") as raw:
        stream = gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw
        return _limited(cast("BinaryIO", stream))


def _whole_member(path: Path, member: str, password: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        return _limited(cast("BinaryIO", archive.open(member, pwd=password.encode() or None)))


def _limited(stream: BinaryIO) -> bytes:
    data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"more than {MOST_BYTES // 2**20} MiB of text")
    return data


def _decoded(place: str, read: Callable[[], bytes]) -> str:
    try:
        return read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"Expected UTF-8 text in {place}, found: {error}.") from error
    except (
        OSError, EOFError, KeyError, RuntimeError, NotImplementedError, zlib.error,
        zipfile.BadZipFile,
    ) as error:  # fmt: skip
        raise InputError(f"Expected a data file at {place}, found: {error}.") from error


def rows_in(
    folder: Path, patterns: Sequence[str], split: str | None = None, *, delimiter: str = ""
) -> Iterator[tuple[str, Record]]:
    """(id of the row, record) of every record of the files that match."""
    for path in data_files(folder, patterns, split):
        for record in records(path, delimiter=delimiter):
            yield row_id(path, folder, record.line), record


def row_id(path: Path, folder: Path, line: int) -> str:
    """File and line as an id: the same whether the file is gzipped or not."""
    return f"{_inside(path, folder).removesuffix('.gz')}:{line}"


def records(path: Path, *, delimiter: str = "") -> Iterator[Record]:
    """The rows of a file in the format that its name tells; `delimiter` overrides a table's."""
    text, name = read_text(path), path.name.removesuffix(".gz")
    if name.endswith((".tsv", ".csv")):
        separator = delimiter or ("\t" if name.endswith(".tsv") else ",")
        return table(text, str(path), separator, quoted=name.endswith(".csv"))
    is_list = name.endswith(".json") and text.lstrip()[:1] == "["
    return json_list(text, str(path)) if is_list else json_lines(text, str(path))


def json_lines(text: str, file: str) -> Iterator[Record]:
    """One JSON object a line; empty lines are passed over."""
    for number, line in enumerate(io.StringIO(text), start=1):
        begins = _next(line, 0)
        if begins == len(line):
            continue
        value, end = _parsed(line, file, number, begins)
        if line[end:].strip():
            raise InputError(f"{file}, line {number}: expected one JSON object, found more.")
        yield _as_record(value, file, number)


def json_list(text: str, file: str) -> Iterator[Record]:
    """The objects of one JSON list, each at the line where it begins."""
    first = _next(text, text.index("[") + 1)
    return (record for _, record in _objects(text, file, first, "]", is_whole=True))


def keyed(path: Path) -> Iterator[tuple[str, Record]]:
    """(key, object) of a file that holds `{"key": {…}, …}`."""
    text, file = read_text(path), str(path)
    return _objects(text, file, _after(text, 0, "{", file, 1), "}")


def listed_under(path: Path, name: str) -> Iterator[Record]:
    """The objects of the list in a file that holds `{"name": […]}`."""
    text, file = read_text(path), str(path)
    key, end = _parsed(text, file, 1, _after(text, 0, "{", file, 1))
    start = _after(text, end, ":", file, 1)
    if key != name or text[start : start + 1] != "[":
        raise InputError(f"{file}, line 1: expected a JSON list called {name}, found {key!r}.")
    return (record for _, record in _objects(text, file, _next(text, start + 1), "]"))


def json_object(data: bytes, file: str) -> Record:
    """The one object of a file."""
    text = _decoded(file, lambda: data)
    value, _ = _parsed(text, file, 1, _next(text, 0))
    return _as_record(value, file, 1)


def _objects(
    text: str, file: str, here: int, close: str, *, is_whole: bool = False
) -> Iterator[tuple[str, Record]]:
    """The objects up to the closing bracket, with their keys where it closes an object."""
    line, seen, key = 1, 0, ""
    while text[here : here + 1] != close:
        line, seen = line + text.count("\n", seen, here), here
        if close == "}":
            name, end = _parsed(text, file, line, here)
            key, here = str(name), _after(text, end, ":", file, line)
        value, end = _parsed(text, file, line, here)
        yield key, _as_record(value, file, line)
        here = _next(text, end)
        if text[here : here + 1] != close:
            here = _after(text, here, ",", file, line)
    if is_whole and text[here + 1 :].strip():
        line += text.count("\n", seen, here)
        raise InputError(f"{file}, line {line}: expected nothing after the JSON list, found more.")


def _after(text: str, place: int, sign: str, file: str, line: int) -> int:
    place = _next(text, place)
    if text[place : place + 1] != sign:
        found = text[place : place + 20] or "the end of the file"
        raise InputError(f"{file}, line {line}: expected “{sign}”, found: {found!r}.")
    return _next(text, place + 1)


def _next(text: str, place: int) -> int:
    while text[place : place + 1].isspace():
        place += 1
    return place


def _parsed(text: str, file: str, line: int, place: int) -> tuple[object, int]:
    try:
        return json.JSONDecoder().raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}, line {line}: expected JSON, found: {error}.") from error


def _as_record(value: object, file: str, line: int) -> Record:
    if not isinstance(value, dict):
        raise InputError(f"{file}, line {line}: expected a JSON object, found another kind.")
    return Record(value, file, line)


def table(text: str, file: str, delimiter: str, *, quoted: bool) -> Iterator[Record]:
    """The lines of a table under its heading; a record lies at the line where it begins."""
    csv.field_size_limit(MOST_FIELD)
    lines = io.StringIO(text, newline="")
    if quoted:
        reader = csv.reader(lines, delimiter=delimiter)
    else:
        reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_NONE)
    heading: list[str] | None = None
    begins = 1
    try:
        for cells in reader:
            if heading is None:
                heading = cells
            elif cells:
                yield _line(heading, cells, file, begins)
            begins = reader.line_num + 1
    except csv.Error as error:
        raise InputError(f"{file}, line {begins}: expected a table, found: {error}.") from error


def _line(heading: Sequence[str], cells: Sequence[str], file: str, line: int) -> Record:
    if len(cells) != len(heading):
        raise InputError(
            f"{file}, line {line}: expected {len(heading)} columns, found {len(cells)}."
        )
    return Record(dict(zip(heading, cells, strict=True)), file, line)
