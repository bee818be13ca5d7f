"""The formats by name: how each is read and written, and how a file is recognised."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from core.errors import InputError
from core.exchange import (
    argilla,
    csv_out,
    csv_table,
    faithbench,
    haluquestqa,
    jsonl,
    label_studio,
    mad,
    mushroom,
    ragtruth,
    xsum,
)
from core.exchange.packed import is_tar, json_items, text_of
from core.exchange.rows import ExchangeRow, Problem, Read


@dataclass(frozen=True)
class Format:
    """How a kind of file is read and written; `write` is None for layouts that are only read.

    `leaves_out` is a sentence on what `write` has no place for; empty where nothing is written.
    """

    words: str
    ending: str
    read: Callable[[str, bytes], Read]
    write: Callable[[Sequence[ExchangeRow]], bytes] | None = None
    leaves_out: str = ""


# What only JSONL has a place for.
_DETAILS = (
    "times, earlier answers, evidence, image regions, ratings, comments and sureness of answers, "
    "images, roles, instructions, and what was skipped or flagged"
)
FORMATS: dict[str, Format] = {
    "jsonl": Format(
        "JSONL (everything)",
        "jsonl",
        jsonl.read,
        jsonl.write,
        "Leaves out runs other than the newest verdict, and the bytes of images and of files that "
        "are not plain text; the archive has them.",
    ),
    "csv": Format(
        "CSV (for spreadsheets)",
        "csv",
        csv_table.read,
        csv_out.write,
        "Leaves out who gave the answer that counts, the verdict’s rationale, the bytes of files "
        f"that are not plain text, {_DETAILS}.",
    ),
    "label-studio": Format(
        "Label Studio",
        "json",
        label_studio.read,
        label_studio.write,
        f"Leaves out verdicts, files that are not plain text, {_DETAILS}.",
    ),
    "argilla": Format(
        "Argilla",
        "json",
        argilla.read,
        argilla.write,
        "Leaves out verdicts, the names of sources (their texts become one), files that are not "
        f"plain text, how sure the newest suggestion is of single words, {_DETAILS}.",
    ),
    "mu-shroom": Format(
        "Mu-SHROOM",
        "jsonl",
        mushroom.read,
        mushroom.write,
        "Leaves out sources, suggestions, verdicts, who gave the answer that counts, "
        f"what each person said, {_DETAILS}.",
    ),
    "ragtruth": Format(
        "RAGTruth",
        "jsonl",
        ragtruth.read,
        ragtruth.write,
        "Leaves out suggestions, verdicts, who gave the answer that counts, what each person said, "
        f"files that are not plain text, {_DETAILS}.",
    ),
    "faithbench": Format("FaithBench", "json", faithbench.read),
    "haluquestqa": Format("HaluQuestQA", "csv", haluquestqa.read),
    "xsum": Format("XSum annotations", "csv", xsum.read),
    "mad": Format("Recorded debates (MAD)", "tar.gz", mad.read),
}


def recognised(name: str, data: bytes) -> str:
    """The name of the format that the file is in, by its first row.

    Raises:
        InputError: it is empty, or no text.
    """
    if is_tar(data):
        return "mad"  # the only one of these that comes as many files
    text = text_of(name, data)
    if text.lstrip()[:1] not in ("{", "["):
        return _of_table(text)
    item = next(iter(json_items(text)), None)
    value = None if item is None or isinstance(item, Problem) else item[1]
    if faithbench.is_faithbench(value):
        return "faithbench"
    if mad.is_mad(value):
        return "mad"
    keys = set(value) if isinstance(value, dict) else set()
    for wanted, found in (
        ({"data"}, "label-studio"),
        ({"fields"}, "argilla"),
        ({"model_output_text"}, "mu-shroom"),
        ({"response", "labels"}, "ragtruth"),
        ({"source_id", "source_info"}, "ragtruth"),
    ):
        if wanted <= keys and "schema" not in keys:
            return found
    return "jsonl"


def _of_table(text: str) -> str:
    head = text[:100_000]
    for delimiter, columns, found in (
        ("\t", haluquestqa.COLUMNS, "haluquestqa"),
        (",", xsum.COLUMNS, "xsum"),
    ):
        reader = csv.reader(io.StringIO(head, newline=""), delimiter=delimiter)
        try:
            names = next(reader, [])
        except csv.Error:
            continue
        if columns <= set(names):
            return found
    return "csv"


def joined_sources(read: Read, data: bytes, name: str) -> Read:
    """RAGTruth's responses with the sources of their second file.

    Raises:
        InputError: the format has no second file, or nothing in it can be read.
    """
    if name != "ragtruth":
        raise InputError(f"Expected a second file only beside ragtruth, found one beside {name}.")
    return ragtruth.with_sources(read, data)
