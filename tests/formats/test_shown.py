"""What a file says never steers the screen on which a reason for refusing it is read."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest

from core.exchange.registry import FORMATS, READ_ONLY_FORMATS, WRITABLE_FORMATS
from core.runtime.errors import InputError, make_printable

NASTY = "a\x1b[2J\x07\u202e\u2066\u200b\u2028\x9b\r\nb"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("plain, “quoted” – Ünïcode हिन्दी 😀", "plain, “quoted” – Ünïcode हिन्दी 😀"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202eabc", "\\u202eabc"),
        ("a\x00b\r\n", "a\\x00b\\r\\n"),
        ("\udce9", "\\udce9"),
        ("\U000e0041", "\\U000e0041"),
        ("a\u00a0b\u3000c", "a\u00a0b\u3000c"),
        (None, "None"),
    ],
)
def test_what_steers_is_shown_as_its_escape(text: object, words: str) -> None:
    assert make_printable(text) == words


def test_what_is_long_is_cut() -> None:
    assert make_printable("abcdef", 3) == "abc…"
    assert make_printable("abc", 3) == "abc"


def lines(*rows: Any) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def table(*rows: tuple[str, ...], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    csv.writer(out, delimiter=delimiter).writerows(rows)
    return out.getvalue().encode()


def mark(**value: Any) -> dict[str, Any]:
    item = {"type": "labels", "value": {"start": 0, "end": 1, **value}}
    return {"data": {"text": "abc"}, "annotations": [{"result": [item]}]}


GRADE = {"summary": "abc", "source": "s", "annotations": [{"label": [NASTY]}]}
BAD = [
    ("jsonl", lines({"response": "abc", "label": NASTY})),
    ("jsonl", lines({"response": "abc", "spans": [{"start": 0, "end": 1, "text": NASTY}]})),
    ("jsonl", lines({"response": NASTY, "spans": [{"start": 0, "end": 9, "text": "x"}]})),
    ("jsonl", lines({"response": "abc", "spans": [{"start": NASTY, "end": 1}]})),
    ("jsonl", lines({"response": "abc", "spans": [{"start": 0, "end": 1, "p": NASTY}]})),
    ("jsonl", lines({"response": "abc", "schema": NASTY})),
    ("jsonl", lines({"response": "abc", "id": NASTY})),
    ("jsonl", lines({"response": "abc", "documents": [{"id": NASTY}]})),
    ("jsonl", lines({"response": "abc", "others": NASTY})),
    ("jsonl", lines({"response": "abc", "golds": [{"label": NASTY, "at": NASTY}]})),
    ("jsonl", lines({"response": "abc", "verdict": {NASTY: NASTY, "label": NASTY}})),
    ("jsonl", lines({NASTY: "no response"})),
    ("jsonl", b'{"response": "abc", %s: 1, %s: 2}\n' % ((json.dumps(NASTY).encode(),) * 2)),
    ("csv", table(("response", "label"), ("abc", NASTY))),
    ("csv", table((NASTY, "b"), ("c", "d"))),
    ("csv", table(("response", "spans"), ("abc", NASTY))),
    ("csv", table(("response", NASTY, NASTY), ("abc", "a", "b"))),
    ("label-studio", lines(mark(text=NASTY))),
    ("label-studio", lines({"data": {NASTY: 1}})),
    ("argilla", lines({"fields": {"response": "abc"}, "metadata": NASTY})),
    ("mu-shroom", lines({"model_output_text": "abc", "hard_labels": [[NASTY, 1]]})),
    ("ragtruth", lines({"response": "abc", "source_id": 1, "source_info": [NASTY]})),
    ("faithbench", lines(GRADE)),
    ("haluquestqa", table((NASTY, "b"), ("c", "d"), delimiter="\t")),
    ("xsum", table((NASTY, "b"), ("c", "d"))),
]


@pytest.mark.parametrize(("name", "data"), BAD, ids=[f"{n}-{i}" for i, (n, _) in enumerate(BAD)])
def test_reasons_can_be_printed_anywhere(name: str, data: bytes) -> None:
    try:
        problems = FORMATS[name].read("file", data).problems
    except InputError as error:
        reasons = [str(error)]
    else:
        reasons = [problem.reason for problem in problems]
    assert reasons
    for reason in reasons:
        assert all(char.isprintable() for char in reason), ascii(reason)


@pytest.mark.parametrize("name", [*WRITABLE_FORMATS, *READ_ONLY_FORMATS])
def test_names_of_files_can_be_printed_too(name: str) -> None:
    with pytest.raises(InputError) as raised:
        FORMATS[name].read(NASTY, b"")
    assert str(raised.value).isprintable()
