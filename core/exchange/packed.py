"""Bytes of an untrusted file to lines and JSON values, or to the files of a tar archive.

Files may be gzipped, sizes are limited, and nothing is written anywhere. JSON is strict where it
matters: NaN, a key that is there twice, or nesting that nobody writes by hand make a bad row, not a
guess; the other rows are read.
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

from core.documents.readers import decoded
from core.exchange.rows import Problem
from core.runtime.config import MEGABYTE
from core.runtime.errors import InputError, shown

MOST_MEGABYTES = 256  # of a file, unpacked
MOST_ROW = 16 * MEGABYTE  # characters
MOST_ROWS = 200_000
DEEPEST = 32
ODD = re.compile("[\udc80-\udcff]")  # bytes that are no UTF-8
MOST_ODD = 50  # one of so many characters
GZIP = b"\x1f\x8b"
SPACE = " \t\n\r"


class _Refused:
    """Stands in a decoded value for what is not accepted; `why` ends the sentence."""

    def __init__(self, why: str) -> None:
        self.why = why


def text_of(name: str, data: bytes) -> str:
    """The whole text of a file, unzipped where it is gzipped, without a BOM.

    Raises InputError: it is empty, too large, cut off, or not UTF-8.
    """
    name = shown(name)
    if data.startswith(GZIP):
        data = unzipped(name, data)
    if len(data) > MOST_MEGABYTES * MEGABYTE:
        raise InputError(
            f"{name}: expected at most {MOST_MEGABYTES} MB, found more; split the file."
        )
    if not data.strip():
        raise InputError(f"{name}: expected rows, found an empty file; choose the right one.")
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return decoded(name, data)  # UTF-16, as spreadsheets save it
    # A NUL, or bytes that are no UTF-8, are a matter of the row in which they stand: `unfit_text`.
    text = data.decode("utf-8-sig", "surrogateescape")
    odd = len(ODD.findall(text))
    if odd * MOST_ODD > len(text):
        raise InputError(
            f"{name}: expected UTF-8 text, found another encoding or no text; save it as UTF-8."
        )
    return text


def unzipped(name: str, data: bytes) -> bytes:
    """The bytes of a gzip file, one more than is allowed at most.

    Raises InputError: it is cut off or damaged.
    """
    most = MOST_MEGABYTES * MEGABYTE + 1
    out = io.BytesIO()
    try:
        while data and out.tell() < most:
            unpacking = zlib.decompressobj(wbits=31)
            out.write(unpacking.decompress(data, most - out.tell()))
            if not unpacking.eof and out.tell() < most:
                raise InputError(
                    f"{name}: expected a whole gzip file, found one that is cut off; copy it again."
                )
            data = unpacking.unused_data.lstrip(b"\x00")
    except zlib.error as error:
        raise InputError(f"{name}: expected a gzip file, found: {error}; copy it again.") from error
    return out.getvalue()


def json_lines(text: str) -> Iterator[tuple[int, object] | Problem]:
    """(line, value) of each line that is not blank, or why it cannot be read."""
    for number, line in enumerate(text.split("\n"), start=1):
        bare = line.strip(SPACE)
        if not bare:
            continue
        if len(bare) > MOST_ROW:
            yield Problem(number, _too_long(len(bare)))
            continue
        try:
            value, end = _decoder().raw_decode(bare)
        except (ValueError, RecursionError) as error:
            yield Problem(number, _no_json(error))
            continue
        if bare[end:].strip(SPACE):
            yield Problem(number, "expected one JSON object on the line, found more; put each on a "
                          "line of its own.")  # fmt: skip
            continue
        yield _checked(number, value)


def json_items(text: str) -> Iterator[tuple[int, object] | Problem]:
    """(number, value) of the items of a JSON list, of one object, or of JSON lines.

    Behind an item of a list that is no JSON nothing can be read any more.
    """
    begins = _next(text, 0)
    if text[begins : begins + 1] != "[":
        yield from _one_or_lines(text, begins)
        return
    here, number = _next(text, begins + 1), 1
    while text[here : here + 1] != "]":
        try:
            value, end = _decoder().raw_decode(text, here)
        except (ValueError, RecursionError) as error:
            yield Problem(number, f"{_no_json(error)} What follows it could not be read.")
            return
        is_long = end - here > MOST_ROW
        yield Problem(number, _too_long(end - here)) if is_long else _checked(number, value)
        here = _next(text, end)
        mark = text[here : here + 1]
        if mark not in (",", "]"):
            found = "another character" if mark else "the end of the file"
            yield Problem(number + 1, f"expected a comma or ] between the rows, found {found}; "
                          "what follows could not be read.")  # fmt: skip
            return
        here = _next(text, here + 1) if mark == "," else here
        number += 1
    if _next(text, here + 1) < len(text):
        yield Problem(number, "expected nothing behind the list, found more; it was left out.")


def _one_or_lines(text: str, begins: int) -> Iterator[tuple[int, object] | Problem]:
    try:
        value, end = _decoder().raw_decode(text, begins)
    except (ValueError, RecursionError):
        end = 0
    if not end or _next(text, end) < len(text):
        yield from json_lines(text)
    else:
        yield _checked(1, value)


def _next(text: str, place: int) -> int:
    while place < len(text) and text[place] in SPACE:
        place += 1
    return place


def _too_long(found: int) -> str:
    return (
        f"expected at most {MOST_ROW:,} characters in a row, found {found:,}; shorten or split it."
    )


def _no_json(error: Exception) -> str:
    what = "nesting that is too deep" if isinstance(error, RecursionError) else str(error)
    return f"expected JSON, found: {what}; correct or remove the row."


def _decoder() -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)


def _constant(word: str) -> object:
    return _Refused(f"found {word}; use a number or null.")


def _object(pairs: list[tuple[str, Any]]) -> object:
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    keys = [key for key, _ in pairs]
    twice = next(key for place, key in enumerate(keys) if key in keys[:place])
    return _Refused(f"found the key “{shown(twice, 40)}” twice in one object; keep one of them.")


def _checked(place: int, value: object) -> tuple[int, object] | Problem:
    level, depth = [value], 0
    while level:
        for one in level:
            if why := _unfit(one):
                return Problem(place, f"expected plain JSON, {why}")
        depth += 1
        if depth > DEEPEST:
            return Problem(
                place, f"expected at most {DEEPEST} levels of nesting, found more; flatten the row."
            )
        parts = [chain(*one.items()) if isinstance(one, dict) else one for one in level
                 if isinstance(one, dict | list)]  # fmt: skip
        level = list(chain.from_iterable(parts))
    return place, value


def _unfit(value: object) -> str:
    if isinstance(value, _Refused):
        return value.why
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        return "found a number that is too large; write a smaller one."
    return unfit_text(value) if isinstance(value, str) else ""


def unfit_text(text: str) -> str:
    """Why a text cannot be stored to the letter; empty where it can."""
    if "\x00" in text:
        return f"found a NUL character at {text.index(chr(0))} of a text; remove it."
    try:
        text.encode()
    except UnicodeEncodeError as error:
        if ODD.match(text, error.start):
            return "found bytes that are no UTF-8; save the file as UTF-8."
        return f"found half a character at {error.start} of a text; write it whole."
    return ""


MAGIC, PLACE = b"ustar", 257


def is_tar(data: bytes) -> bool:
    """Whether the bytes, unzipped where they are gzipped, begin as an archive does."""
    head, end = data, PLACE + len(MAGIC)
    if data.startswith(GZIP):
        try:
            head = zlib.decompressobj(wbits=31).decompress(data, end)
        except zlib.error:
            return False
    return head[PLACE:end] == MAGIC


def tarred(name: str, data: bytes) -> list[tuple[str, bytes]]:
    """(name, bytes) of each ordinary file in the archive, in its order.

    Raises InputError: it is damaged, or holds too much.
    """
    found: list[tuple[str, bytes]] = []
    plain = unzipped(shown(name), data) if data.startswith(GZIP) else data
    if len(plain) > MOST_MEGABYTES * MEGABYTE:
        raise InputError(
            f"{shown(name)}: expected at most {MOST_MEGABYTES} MB, found more; split the archive."
        )
    try:
        with tarfile.open(fileobj=io.BytesIO(plain), mode="r:") as archive:
            for member in archive:
                stream = (
                    archive.extractfile(member)
                    if (member.isfile() and (not member.issparse()))
                    else None
                )
                if stream is None:
                    continue
                if member.size > MOST_ROW or len(found) >= MOST_ROWS:
                    raise InputError(
                        f"{shown(name)}: expected at most {MOST_ROWS:,} files of {MOST_ROW:,} "
                        "bytes, found more; split the archive."
                    )
                found.append((member.name, stream.read(MOST_ROW)))
    except (tarfile.TarError, ValueError, OSError) as error:
        raise InputError(
            f"{shown(name)}: expected a whole tar archive, found: {error}; copy it again."
        ) from error
    return found
