"""Each format says what it leaves out, and leaves out nothing else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from core.exchange.registry import FORMATS, READ_ONLY_FORMATS, WRITABLE_FORMATS
from core.exchange.rows import (
    ExchangeDocument,
    ExchangeRow,
    MachineVerdict,
    build_correction,
    build_gold,
)
from core.schema.records import Span
from core.schema.reviews import Suggestion

SPAN = Span(0, 1, "a", 0.25, "reasoning", "")
SHA = "f" * 64
ROW = ExchangeRow(
    "1",
    "abc",
    "What?",
    "en",
    "Role",
    "Instruction",
    (
        ExchangeDocument("one.txt", "First."),
        ExchangeDocument("two.txt", "Second."),
        ExchangeDocument("x.pdf", None, SHA),
    ),
    (ExchangeDocument("picture.png", None, SHA),),
    golds=(build_gold("hallucinated", [SPAN], author="zoe", reason="why"),),
    corrections=tuple(
        replace(build_correction(who, "unclear"), id=who, at=at, comment="hm")
        for who, at in (("ana", 4.0), ("bo", 5.0))
    ),
    suggestions=tuple(
        Suggestion(who, "", who, 3.0, "hallucinated", 0.7, (SPAN,)) for who in ("first", "second")
    ),
    verdict=MachineVerdict("e" * 32, "hallucinated", 0.9, 0.9, "because", None, 5.0),
)


@pytest.fixture(params=WRITABLE_FORMATS)
def moved(request: pytest.FixtureRequest) -> tuple[str, ExchangeRow, bytes]:
    """(what a format leaves out, a row that went through it, its file)."""
    own = FORMATS[request.param]
    assert own.write is not None
    data = own.write((ROW,))
    read = own.read("rows", data)
    assert not read.problems
    return own.leaves_out, read.rows[0], data


def test_what_is_written_says_in_a_sentence_what_is_not() -> None:
    for name in WRITABLE_FORMATS:
        words = FORMATS[name].leaves_out
        assert words.startswith("Leaves out "), name
        assert words.endswith("."), name
        assert words.count(". ") == 0, name
    assert not any(FORMATS[name].leaves_out for name in READ_ONLY_FORMATS)


def test_what_is_missing_is_named(moved: tuple[str, ExchangeRow, bytes]) -> None:
    says, row, data = moved
    people = {one.author for one in row.people}
    texts = [d.text for d in row.documents]
    lost = {
        "roles": row.role is None,
        "instructions": row.instruction is None,
        "images, ": not row.images,
        "sources": [d.name for d in row.documents][:2] != ["one.txt", "two.txt"],
        "out sources": not any(text and "Second." in text for text in texts),
        "files that are not plain text": bool(texts)
        and "x.pdf" not in [d.name for d in row.documents],
        "times, ": not any(one.at == 4.0 for one in row.people),
        "comments": b"hm" not in data,
        "what each person said": "ana" not in people,
        "who gave the answer that counts": b"bo" not in data,
        "suggestions,": len(row.suggestions) < 2,
        "verdicts": b"0.9" not in data,
    }
    for words, is_lost in lost.items():
        if is_lost:
            assert words in says
    kept = ("roles", "times, ", "comments", "what each person said", "suggestions,")
    for words in (*kept, "verdicts"):
        if not lost[words]:
            assert words not in says
