"""Layers of heat: each agent's own, the vote's mean, and what counts in the end outlined."""

from __future__ import annotations

import re
from dataclasses import replace

from components.widgets.html import (
    EACH_WORD,
    LEAST_SHOWN,
    MEAN,
    Mark,
    heated,
    layers_of,
    marked_text,
    missing_votes,
)
from core.schema.events import (
    RunStarted,
    SoftLabel,
    SoftLabelled,
    SpanAdjudicated,
    SpanProposed,
    SpanVoted,
    WordsScored,
)
from core.schema.progress import folded
from core.schema.records import Plan, RoleUsed, Span, WordScore
from tests.components.test_markup import NASTY, bare
from tests.fakes import make_case

CASE = make_case("The tower is 512 m tall.")
SPAN = Span(13, 18, "512 m", 0.9, "number_or_date", "Ada", "412 m")
SCORES = (WordScore(0, 3, 0.02), WordScore(13, 16, 0.6), WordScore(17, 18, 0.3))
PROGRESS = folded(
    [
        RunStarted(1.0, CASE, Plan(), (RoleUsed("span adjudicator", "Elder", True, "", ""),)),
        WordsScored(2.0, "Reader", SCORES, 0.4),
        SpanProposed(3.0, SPAN),
        SpanVoted(4.0, "Ada", "Ben", SPAN, 0.7, "The source says 412 m."),
        SpanVoted(4.1, "Ada", "Cleo", SPAN, None, "No reply."),
        SoftLabelled(5.0, (SoftLabel(13, 18, 0.7, 0.7),), 0.7, ("Ada",)),
        SpanAdjudicated(6.0, SPAN, True, NASTY),
    ]
)


def test_each_agent_has_its_layer_and_who_gave_no_vote_has_none() -> None:
    layers = layers_of(PROGRESS)
    assert list(layers) == [MEAN, "Ada", "Ben", "Elder", EACH_WORD]
    assert [mark.strength for mark in layers["Ben"]] == [0.7]
    assert [mark.strength for mark in layers[EACH_WORD]] == [0.6, 0.3]
    assert all((m.strength or 0) >= LEAST_SHOWN for own in layers.values() for m in own)
    assert missing_votes(PROGRESS) == ["Cleo on 1"]


def test_the_surest_colours_and_all_are_named() -> None:
    marks = heated(layers_of(PROGRESS), ["Ada", "Ben"], PROGRESS)
    shown = marked_text(CASE.response, marks)
    (mark,) = re.findall(r"<mark[^>]*>", shown)
    assert "--cp-heat: 90%" in mark
    assert "cp-mark-hard" in mark
    assert 'tabindex="0"' in mark
    assert "Ada: 90%, number or date, should say “412 m”\nBen: 70% – The source says" in mark
    assert 'aria-label="512 m: Ada: 90%' in mark
    assert bare(shown) == CASE.response


def test_only_what_is_chosen_is_warm() -> None:
    shown = marked_text(CASE.response, heated(layers_of(PROGRESS), ["Ben"], PROGRESS))
    assert "--cp-heat: 70%" in shown
    assert "Ada:" not in shown
    cold = marked_text(CASE.response, heated(layers_of(PROGRESS), ["nobody"], PROGRESS))
    assert "--cp-heat: 0%" in cold, "what counts is outlined all the same"


def test_reasons_are_text() -> None:
    shown = marked_text(CASE.response, heated(layers_of(PROGRESS), ["Elder"], PROGRESS))
    assert "<script" not in shown
    assert "kept – &lt;script&gt;" in shown


def test_marks_without_strength_are_plain() -> None:
    assert "cp-heat" not in marked_text("abc", [Mark(0, 1, "1", "x")])


def test_who_raised_words_together_has_a_layer_each() -> None:
    both = replace(SPAN, source="Ada, Zoe")
    layers = layers_of(folded([SpanProposed(1.0, SPAN), SpanProposed(2.0, both)]))
    assert {name: len(marks) for name, marks in layers.items()} == {"Ada": 2, "Zoe": 1}
