"""What the readers make of a response: each statement alone, and a few short ones together."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from core.builtin.looks import LONGEST_TOGETHER, Look, looks_at
from core.builtin.weighing import features_of
from core.concurrency import Stop
from core.config import ENCODER_DIR
from core.models.encoder import Matrix, load_encoder
from core.records import Context, Statement
from core.roles import CaseView, Evidence, JudgeView
from tests.builtin.told_reader import CARRIES, OPEN, ToldReader
from tests.fakes import make_case, make_passage, make_view

ENCODER = load_encoder(ENCODER_DIR)
BRIDGE = make_passage("The bridge was closed to lorries after the flood.", number=1)
TOLLS = make_passage("Drivers of cars pay a toll.", number=2)


class WholeReader(ToldReader):
    """Finds two sentences carried together and none alone; keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[str] = []

    def read(self, pairs: Sequence[tuple[str, str]], stop: Stop | None = None) -> Matrix:
        self.asked += [statement for _, statement in pairs]
        rows = super().read(pairs, stop)
        for row, (_, statement) in zip(rows, pairs, strict=True):
            row[:] = CARRIES if statement.count(".") > 1 else OPEN
        return rows


def looked(*sentences: str) -> tuple[list[Look], WholeReader]:
    starts = [sum(len(s) + 1 for s in sentences[:n]) for n in range(len(sentences))]
    statements = tuple(
        Statement(n, start, start + len(text), text, text)
        for n, (start, text) in enumerate(zip(starts, sentences, strict=True))
    )
    by_statement = {n: (BRIDGE.id, TOLLS.id)[n % 2 :][:1] for n in range(len(sentences))}
    evidence = Evidence({p.id: p for p in (BRIDGE, TOLLS)}, by_statement)
    view = CaseView(make_case(" ".join(sentences)), statements, evidence, {})
    reader = WholeReader()
    judging = JudgeView(view, Context((), (), ""), (), reached_consensus=False)
    return looks_at(judging, ENCODER, reader, Stop()), reader


def test_a_few_short_sentences_are_read_together_too() -> None:
    looks, reader = looked("Lorries stay off the bridge.", "Cars pay.")
    assert "Lorries stay off the bridge. Cars pay." in reader.asked
    for look in looks:
        assert look.reading.not_enough > 0.9
        assert look.widest_reading.supported > 0.9
        told = features_of(look)
        assert told["together_against"] < 0 < told["read_against"]


@pytest.mark.parametrize(
    "sentences",
    [
        ("Lorries stay off the bridge.",),
        ("Lorries stay away.", "Cars pay.", "Trams run.", "Boats sail."),
        ("Lorries stay off the bridge.", "Cars " + "often " * (LONGEST_TOGETHER // 6) + "pay."),
    ],
)
def test_one_sentence_many_or_long_ones_are_not(sentences: tuple[str, ...]) -> None:
    looks, reader = looked(*sentences)
    assert len(looks) == len(sentences)
    assert all(look.together is None for look in looks)
    assert " ".join(sentences) not in reader.asked or len(sentences) == 1
    told = features_of(looks[0])
    assert told["together_against"] == told["read_against"]


@pytest.mark.parametrize(
    ("claim", "evidence", "is_firm"),
    [
        ("The bridge is 600 m long.", "The bridge is 512 m long.", True),
        ("Mozart was born in Vienna.", "Mozart was born in Salzburg.", True),
        (
            "The old hall by the river was built for Norway.",
            "The old hall was built for Sweden after the war.",
            False,
        ),
    ],
)
def test_a_contrast_is_firm_where_the_words_around_it_are_the_same(
    claim: str, evidence: str, is_firm: bool
) -> None:
    view = make_view(make_case(claim), (make_passage(evidence),))
    judging = JudgeView(view, Context((), (), ""), (), reached_consensus=False)
    (look,) = looks_at(judging, ENCODER, ToldReader(), Stop())
    told = features_of(look)
    assert (told["contrast"] > 0, told["soft_contrast"] > 0) == (is_firm, not is_firm)
