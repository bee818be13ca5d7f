"""Reads files that hold one JSON object: rows by their keys, each with the line it begins at."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from core.errors import InputError
from core.evaluation.files import read_text
from core.exchange.rows import Record

DECODER = json.JSONDecoder()


def keyed(path: Path) -> Iterator[tuple[str, Record]]:
    """(key, object) of `{"key": {…}, …}`.

    Raises:
        InputError: it is no such file, or it is cut off.
    """
    text = read_text(path)
    return _scanned(text, path, _after(text, 0, "{", path, 1), "}")


def listed_under(path: Path, name: str) -> Iterator[Record]:
    """The objects of the list in `{"name": […]}`.

    Raises:
        InputError: it is no such file, or it is cut off.
    """
    text = read_text(path)
    key, end = _value(text, _after(text, 0, "{", path, 1), path, 1)
    start = _after(text, end, ":", path, 1)
    if key != name or text[start : start + 1] != "[":
        raise InputError(f"{path}, line 1: expected a JSON list called {name}, found {key!r}.")
    first = _space(text, start + 1)
    return (record for _, record in _scanned(text, path, first, "]"))


def _scanned(text: str, path: Path, here: int, close: str) -> Iterator[tuple[str, Record]]:
    """The objects up to the closing bracket; with their keys where it closes an object."""
    line, seen, key = 1, 0, ""
    while text[here : here + 1] != close:
        line, seen = line + text.count("\n", seen, here), here
        if close == "}":
            name, end = _value(text, here, path, line)
            key, here = str(name), _after(text, end, ":", path, line)
        value, end = _value(text, here, path, line)
        if not isinstance(value, dict):
            raise InputError(f"{path}, line {line}: expected a JSON object, found another kind.")
        yield key, Record(value, str(path), line)
        here = _space(text, end)
        if text[here : here + 1] != close:
            here = _after(text, here, ",", path, line)


def _after(text: str, place: int, sign: str, path: Path, line: int) -> int:
    """The place of what follows the sign, which must come next."""
    place = _space(text, place)
    if text[place : place + 1] != sign:
        found = text[place : place + 20] or "the end of the file"
        raise InputError(f"{path}, line {line}: expected “{sign}”, found: {found!r}.")
    return _space(text, place + 1)


def _space(text: str, place: int) -> int:
    while text[place : place + 1].isspace():
        place += 1
    return place


def _value(text: str, place: int, path: Path, line: int) -> tuple[object, int]:
    try:
        return DECODER.raw_decode(text, place)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}, line {line}: expected JSON, found: {error}.") from error
