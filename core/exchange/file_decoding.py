"""Decode the bytes of an untrusted file into JSON values, or into the files of a tar archive.

Files may be gzipped, sizes are limited, and nothing is written to disk. JSON is strict where it
matters: NaN, a duplicate key or very deep nesting make a row a problem instead of being guessed at;
the other rows are read.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from itertools import chain
from typing import Any

from core.documents.readers import decode_text
from core.exchange.rows import RowProblem
from core.runtime.config import MEGABYTE
from core.runtime.errors import InputError, make_printable

MAX_FILE_MEGABYTES = 256  # of a file, uncompressed
MAX_ROW_CHARS = 16 * MEGABYTE  # characters
MAX_ROWS = 200_000
MAX_NESTING_DEPTH = 32
INVALID_BYTE_PATTERN = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8
CHARS_PER_INVALID_BYTE = 50  # at most one invalid byte in this many characters
GZIP_MAGIC = b"\x1f\x8b"
JSON_WHITESPACE = " \t\n\r"
TAR_MAGIC, TAR_MAGIC_OFFSET = b"ustar", 257


class _Refused:
    """Placeholder in a decoded value for what is not accepted; `why` ends the error message."""

    def __init__(self, why: str) -> None:
        self.why = why


def decode_file_text(name: str, data: bytes) -> str:
    """Return the text of a file, decompressed if it is gzipped, without a BOM.

    Raises InputError if it is empty, too large, cut off, or not UTF-8.
    """
    name = make_printable(name)
    if data.startswith(GZIP_MAGIC):
        data = decompress_gzip(name, data)
    if len(data) > MAX_FILE_MEGABYTES * MEGABYTE:
        raise InputError(
            f"{name}: expected at most {MAX_FILE_MEGABYTES} MB, found more; split the file."
        )
    if not data.strip():
        raise InputError(f"{name}: expected rows, found an empty file; choose the right one.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return decode_text(name, data)  # UTF-16, as spreadsheets save it
    # A NUL or bytes that are not UTF-8 make only their own row a problem: see
    # `describe_unfit_text`.
    text = data.decode("utf-8-sig", "surrogateescape")
    invalid_bytes = len(INVALID_BYTE_PATTERN.findall(text))
    if invalid_bytes * CHARS_PER_INVALID_BYTE > len(text):
        raise InputError(
            f"{name}: expected UTF-8 text, found another encoding or no text; save it as UTF-8."
        )
    return text


def decompress_gzip(name: str, data: bytes) -> bytes:
    """Return the decompressed bytes, at most one more than is allowed.

    Raises InputError if the file is cut off or damaged.
    """
    limit = MAX_FILE_MEGABYTES * MEGABYTE + 1
    output = io.BytesIO()
    try:
        while data and output.tell() < limit:
            decompressor = zlib.decompressobj(wbits=31)
            output.write(decompressor.decompress(data, limit - output.tell()))
            if not decompressor.eof and output.tell() < limit:
                raise InputError(
                    f"{name}: expected a whole gzip file, found one that is cut off; copy it again."
                )
            data = decompressor.unused_data.lstrip(b"\x00")
    except zlib.error as error:
        raise InputError(f"{name}: expected a gzip file, found: {error}; copy it again.") from error
    return output.getvalue()


def iter_json_lines(text: str) -> Iterator[tuple[int, object] | RowProblem]:
    """Yield (line, value) of each line that is not blank, or the problem with it."""
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip(JSON_WHITESPACE)
        if not stripped:
            continue
        if len(stripped) > MAX_ROW_CHARS:
            yield RowProblem(number, _describe_length(len(stripped)))
            continue
        try:
            value, end = _create_decoder().raw_decode(stripped)
        except (ValueError, RecursionError) as error:
            yield RowProblem(number, _describe_json_error(error))
            continue
        if stripped[end:].strip(JSON_WHITESPACE):
            yield RowProblem(
                number,
                "expected one JSON object on the line, found more; put each on a line of its own.",
            )
            continue
        yield _check_value(number, value)


def iter_json_items(text: str) -> Iterator[tuple[int, object] | RowProblem]:
    """Yield (number, value) of the items of a JSON list, of one object, or of JSON lines.

    After an item of a list that is not JSON nothing more can be read.
    """
    start = _skip_whitespace(text, 0)
    if text[start : start + 1] != "[":
        yield from _iter_object_or_lines(text, start)
        return
    position, number = _skip_whitespace(text, start + 1), 1
    while text[position : position + 1] != "]":
        try:
            value, end = _create_decoder().raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            yield RowProblem(
                number, f"{_describe_json_error(error)} What follows it could not be read."
            )
            return
        if end - position > MAX_ROW_CHARS:
            yield RowProblem(number, _describe_length(end - position))
        else:
            yield _check_value(number, value)
        position = _skip_whitespace(text, end)
        separator = text[position : position + 1]
        if separator not in (",", "]"):
            actual = "another character" if separator else "the end of the file"
            yield RowProblem(
                number + 1,
                f"expected a comma or ] between the rows, found {actual}; "
                "what follows could not be read.",
            )
            return
        position = _skip_whitespace(text, position + 1) if separator == "," else position
        number += 1
    if _skip_whitespace(text, position + 1) < len(text):
        yield RowProblem(number, "expected nothing behind the list, found more; it was left out.")


def _iter_object_or_lines(text: str, start: int) -> Iterator[tuple[int, object] | RowProblem]:
    try:
        value, end = _create_decoder().raw_decode(text, start)
    except (ValueError, RecursionError):
        end = 0
    if not end or _skip_whitespace(text, end) < len(text):
        yield from iter_json_lines(text)
    else:
        yield _check_value(1, value)


def _skip_whitespace(text: str, position: int) -> int:
    while position < len(text) and text[position] in JSON_WHITESPACE:
        position += 1
    return position


def _describe_length(length: int) -> str:
    return (
        f"expected at most {MAX_ROW_CHARS:,} characters in a row, found {length:,}; shorten or "
        f"split it."
    )


def _describe_json_error(error: Exception) -> str:
    finding = "nesting that is too deep" if isinstance(error, RecursionError) else str(error)
    return f"expected JSON, found: {finding}; correct or remove the row."


def _create_decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_build_object, parse_constant=_refuse_constant)


def _refuse_constant(word: str) -> object:
    return _Refused(f"found {word}; use a number or null.")


def _build_object(pairs: list[tuple[str, Any]]) -> object:
    mapping = dict(pairs)
    if len(mapping) == len(pairs):
        return mapping
    keys = [key for key, _ in pairs]
    duplicate = next(key for place, key in enumerate(keys) if key in keys[:place])
    return _Refused(
        f"found the key “{make_printable(duplicate, 40)}” twice in one object; keep one of them."
    )


def _check_value(place: int, value: object) -> tuple[int, object] | RowProblem:
    level, depth = [value], 0
    while level:
        for item in level:
            if why := _describe_unfit_value(item):
                return RowProblem(place, f"expected plain JSON, {why}")
        depth += 1
        if depth > MAX_NESTING_DEPTH:
            return RowProblem(
                place,
                f"expected at most {MAX_NESTING_DEPTH} levels of nesting, found more; flatten "
                f"the row.",
            )
        containers = [item for item in level if isinstance(item, dict | list)]
        parts = (chain(*item.items()) if isinstance(item, dict) else item for item in containers)
        level = list(chain.from_iterable(parts))
    return place, value


def _describe_unfit_value(value: object) -> str:
    if isinstance(value, _Refused):
        return value.why
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "found a number that is too large; write a smaller one."
    return describe_unfit_text(value) if isinstance(value, str) else ""


def describe_unfit_text(text: str) -> str:
    """Return why a text cannot be stored unchanged, or "" if it can."""
    if "\x00" in text:
        return f"found a NUL character at {text.index(chr(0))} of a text; remove it."
    try:
        text.encode()
    except UnicodeEncodeError as error:
        if INVALID_BYTE_PATTERN.match(text, error.start):
            return "found bytes that are no UTF-8; save the file as UTF-8."
        return f"found half a character at {error.start} of a text; write it whole."
    return ""


def is_tar(data: bytes) -> bool:
    """Return True if the bytes, decompressed if they are gzipped, begin like a tar archive."""
    head, end = data, TAR_MAGIC_OFFSET + len(TAR_MAGIC)
    if data.startswith(GZIP_MAGIC):
        try:
            head = zlib.decompressobj(wbits=31).decompress(data, end)
        except zlib.error:
            return False
    return head[TAR_MAGIC_OFFSET:end] == TAR_MAGIC


def read_tar_files(name: str, data: bytes) -> list[tuple[str, bytes]]:
    """Return (name, bytes) of each regular file in the archive, in its order.

    Raises InputError if the archive is damaged or too large.
    """
    files: list[tuple[str, bytes]] = []
    unpacked = decompress_gzip(make_printable(name), data) if data.startswith(GZIP_MAGIC) else data
    if len(unpacked) > MAX_FILE_MEGABYTES * MEGABYTE:
        raise InputError(
            f"{make_printable(name)}: expected at most {MAX_FILE_MEGABYTES} MB, found more; "
            f"split the archive."
        )
    try:
        with tarfile.open(fileobj=io.BytesIO(unpacked), mode="r:") as archive:
            for member in archive:
                is_regular = member.isfile() and not member.issparse()
                stream = archive.extractfile(member) if is_regular else None
                if stream is None:
                    continue
                if member.size > MAX_ROW_CHARS or len(files) >= MAX_ROWS:
                    raise InputError(
                        f"{make_printable(name)}: expected at most {MAX_ROWS:,} files of "
                        f"{MAX_ROW_CHARS:,} "
                        "bytes, found more; split the archive."
                    )
                files.append((member.name, stream.read(MAX_ROW_CHARS)))
    except (tarfile.TarError, ValueError, OSError) as error:
        raise InputError(
            f"{make_printable(name)}: expected a whole tar archive, found: {error}; copy it again."
        ) from error
    return files
