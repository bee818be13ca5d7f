"""Where runs over one case part: words, statements, stances; nothing where they agree."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from core.pipeline.comparison import (
    same_agent_apart,
    statements_apart,
    turned,
    verdicts,
    words_apart,
)
from core.schema.events import LabelPredicted, SpanAdjudicated, StatementFound, TurnFinished
from core.schema.progress import Progress
from core.schema.records import Label, Span, Stance, Statement, Turn, Verdict

TEXT = "The tower is red. It is 512 m tall."
PARTS = (Statement(0, 0, 17, TEXT[:17], TEXT[:17]), Statement(1, 18, 35, TEXT[18:], TEXT[18:]))
Marked = tuple[int, int]


def run(label: Label | None, marked: list[Marked], *stances: tuple[str, Stance]) -> Progress:
    progress = Progress()
    for statement in PARTS:
        progress.add(StatementFound(1.0, statement))
    for number, (name, stance) in enumerate(stances, start=1):
        turn = Turn(name, f"Reader {name}", number, (number + 1) // 2, "agree", stance, "So.")
        progress.add(TurnFinished(float(number), turn, 1.0))
    if label is not None:
        progress.add(LabelPredicted(2.0, Verdict(label, 0.5, 0.5, "So.")))
    for start, end in marked:
        span = Span(start, end, TEXT[start:end], 0.9, "contradicted", "Value checker")
        progress.add(SpanAdjudicated(3.0, span, True, "kept"))
    return progress


def test_a_side_that_a_debater_was_assigned_is_no_change_of_mind() -> None:
    progress = Progress()
    sides: tuple[Stance, ...] = ("supported", "hallucinated")
    for number, side in enumerate(sides, start=1):
        turn = Turn("Ada", "Reader", number, number, "deny", side, "So.", assigned=side)
        progress.add(TurnFinished(float(number), turn, 1.0))
    assert turned({"A": progress}) == []
    for number, stance in enumerate(sides, start=3):
        progress.add(
            TurnFinished(1.0, Turn("Ada", "Reader", number, 2, "deny", stance, "So."), 1.0)
        )
    assert [(own.before, own.after) for own in turned({"A": progress})] == [sides]


def test_words_that_only_some_mark_are_named_with_who_does() -> None:
    runs = {
        "A": run("hallucinated", [(24, 29)]),
        "B": run("hallucinated", [(24, 34), (13, 16)]),
        "C": run(None, []),
    }
    found = words_apart(TEXT, runs)
    assert [(own.text, own.marked_by, own.passed_by) for own in found] == [
        ("red", ("B",), ("A",)),
        (" tall", ("B",), ("A",)),
    ]
    held = statements_apart(runs)
    assert [(own.text, dict(own.is_marked)) for own in held] == [
        (TEXT[:17], {"A": False, "B": True})
    ]


spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 5)).map(lambda s: (s[0], s[0] + s[1])), max_size=5
)


@given(spans, spans)
def test_each_character_lies_in_a_stretch_exactly_where_one_run_alone_marks_it(
    first: list[Marked], second: list[Marked]
) -> None:
    runs = {"A": run("hallucinated", first), "B": run("hallucinated", second)}
    found = words_apart(TEXT, runs)
    for place in range(len(TEXT)):
        by = {
            name
            for name, own in (("A", first), ("B", second))
            if any(start <= place < end for start, end in own)
        }
        over = [own for own in found if own.start <= place < own.end]
        assert len(over) == (len(by) == 1)
        assert all(set(own.marked_by) == by for own in over)
    assert all(own.text == TEXT[own.start : own.end] for own in found)
    assert not words_apart(TEXT, {"A": runs["A"], "B": runs["A"]})


def test_whose_mind_changed_within_a_run_and_between_runs() -> None:
    firm = run("supported", [], ("Ada", "supported"), ("Ben", "supported"))
    swayed = run(
        "hallucinated", [], ("Ada", "supported"), ("Ben", "supported"), ("Ada", "hallucinated")
    )
    runs = {"A": firm, "B": swayed}
    assert verdicts(runs) == {"supported": ("A",), "hallucinated": ("B",)}
    assert [(t.run, t.debater, t.before, t.after, t.round) for t in turned(runs)] == [
        ("B", "Ada", "supported", "hallucinated", 2)
    ]
    assert same_agent_apart(runs) == [("Reader Ada", {"supported": ["A"], "hallucinated": ["B"]})]
