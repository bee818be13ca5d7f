"""Register the exchange formats by name, and detect the format of a file."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from core.exchange.annotation_tools import (
    read_argilla,
    read_label_studio,
    write_argilla,
    write_label_studio,
)
from core.exchange.file_decoding import decode_file_text, is_tar, iter_json_items
from core.exchange.mad import is_mad, read_mad
from core.exchange.native_formats import read_csv_table, read_jsonl, write_csv_table, write_jsonl
from core.exchange.public_sets import (
    HALUQUESTQA_COLUMNS,
    XSUM_COLUMNS,
    is_faithbench,
    join_sources_file,
    read_faithbench,
    read_haluquestqa,
    read_mushroom,
    read_ragtruth,
    read_xsum,
    write_mushroom,
    write_ragtruth,
)
from core.exchange.rows import ExchangeRow, ParsedFile, RowProblem
from core.runtime.errors import InputError

# The details that only JSONL has a place for.
_DETAILS = (
    "times, earlier answers, evidence, image regions, ratings, comments and sureness of answers, "
    "images, roles, instructions, and what was skipped or flagged"
)


@dataclass(frozen=True)
class ExchangeFormat:
    """A format of import and export; `write` is None for layouts that are only read.

    `leaves_out` is a sentence on what `write` has no place for; empty if nothing is written. A row
    that has all names of one of the sets in `knows` is in this format: a row of a table with that
    `delimiter`, or of JSON if it is empty.
    """

    words: str
    ending: str
    read: Callable[[str, bytes], ParsedFile]
    write: Callable[[Sequence[ExchangeRow]], bytes] | None = None
    leaves_out: str = ""
    knows: tuple[Set[str], ...] = ()
    delimiter: str = ""


FORMATS: dict[str, ExchangeFormat] = {
    "jsonl": ExchangeFormat(
        "JSONL (everything)",
        "jsonl",
        read_jsonl,
        write_jsonl,
        "Leaves out runs other than the newest verdict, and the bytes of images and of files that "
        "are not plain text; the archive has them.",
    ),
    "csv": ExchangeFormat(
        "CSV (for spreadsheets)",
        "csv",
        read_csv_table,
        write_csv_table,
        "Leaves out the verdict’s rationale, the bytes of files that are not plain text, "
        f"{_DETAILS}.",
    ),
    "label-studio": ExchangeFormat(
        "Label Studio",
        "json",
        read_label_studio,
        write_label_studio,
        f"Leaves out verdicts, files that are not plain text, {_DETAILS}.",
        ({"data"},),
    ),
    "argilla": ExchangeFormat(
        "Argilla",
        "json",
        read_argilla,
        write_argilla,
        "Leaves out verdicts, the names of sources (their texts become one), files that are not "
        f"plain text, how sure the newest suggestion is of single words, {_DETAILS}.",
        ({"fields"},),
    ),
    "mu-shroom": ExchangeFormat(
        "Mu-SHROOM",
        "jsonl",
        read_mushroom,
        write_mushroom,
        "Leaves out sources, suggestions, verdicts, who gave the answer that counts, "
        f"what each person said, {_DETAILS}.",
        ({"model_output_text"},),
    ),
    "ragtruth": ExchangeFormat(
        "RAGTruth",
        "jsonl",
        read_ragtruth,
        write_ragtruth,
        "Leaves out suggestions, verdicts, who gave the answer that counts, what each person said, "
        f"files that are not plain text, {_DETAILS}.",
        ({"response", "labels"}, {"source_id", "source_info"}),
    ),
    "faithbench": ExchangeFormat("FaithBench", "json", read_faithbench),
    "haluquestqa": ExchangeFormat(
        "HaluQuestQA", "csv", read_haluquestqa, knows=(HALUQUESTQA_COLUMNS,), delimiter="\t"
    ),
    "xsum": ExchangeFormat(
        "XSum annotations", "csv", read_xsum, knows=(XSUM_COLUMNS,), delimiter=","
    ),
    "mad": ExchangeFormat("Recorded debates (MAD)", "tar.gz", read_mad),
}
WRITABLE_FORMATS = tuple(name for name, one in FORMATS.items() if one.write)
READ_ONLY_FORMATS = tuple(
    name for name in FORMATS if name not in WRITABLE_FORMATS
)  # public sets as published


def detect_format(name: str, data: bytes) -> str:
    """Return the name of the file's format, detected by its first row.

    Raises InputError if it is empty, or not text.
    """
    if is_tar(data):
        return "mad"  # the only format that comes as several files
    text = decode_file_text(name, data)
    if text.lstrip()[:1] not in ("{", "["):
        return _detect_table_format(text)
    item = next(iter(iter_json_items(text)), None)
    value = None if item is None or isinstance(item, RowProblem) else item[1]
    if is_faithbench(value):
        return "faithbench"
    if is_mad(value):
        return "mad"
    keys = set(value) if isinstance(value, dict) else set()
    return "jsonl" if "schema" in keys else _match_names(keys, "") or "jsonl"


def _match_names(names: Set[str], delimiter: str) -> str:
    for name, known_format in FORMATS.items():
        if known_format.delimiter == delimiter and any(own <= names for own in known_format.knows):
            return name
    return ""


def _detect_table_format(text: str) -> str:
    head = text[:100_000]
    for delimiter in dict.fromkeys(one.delimiter for one in FORMATS.values() if one.delimiter):
        reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
        try:
            names = set(next(reader, []))
        except csv.Error:
            continue
        if name := _match_names(names, delimiter):
            return name
    return "csv"


def join_sources(read: ParsedFile, data: bytes, name: str) -> ParsedFile:
    """Return RAGTruth's responses joined with the sources of their second file.

    Raises InputError if the format has no second file.
    """
    if name != "ragtruth":
        raise InputError(f"Expected a second file only beside ragtruth, found one beside {name}.")
    return join_sources_file(read, data)
