"""Everything drawn is escaped; marks sit exactly on their words; copying copies the text alone."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamlit.testing.v1 import AppTest

from components.review.answer_versions import KIND_COLOURS
from components.widgets.controls import ASSETS
from components.widgets.html import (
    MAX_TITLES,
    MEAN_LAYER,
    MIN_SHOWN_P,
    WORD_LAYER,
    Html,
    HtmlMark,
    build_heat_marks,
    draw_html,
    element,
    group_marks_by_agent,
    join_html,
    list_missing_votes,
    render_marked_text,
    to_html,
)
from components.widgets.wording import escape_markdown, isolate_right_to_left
from core.schema.events import (
    RunStarted,
    SoftLabel,
    SoftLabelled,
    SpanAdjudicated,
    SpanProposed,
    SpanVoted,
    WordsScored,
)
from core.schema.records import Plan, RoleAssignment, Span, WordScore
from core.schema.run_state import fold_events
from tests.fakes import make_case

NASTY = "<script>alert(1)</script> & \"quotes\" 'single' <b onclick=x>bold</b> &amp; ]]>"


def bare(markup: str) -> str:
    """The text of markup as a browser would copy it."""
    return unescape(re.sub(r"<[^>]*>", "", markup))


def test_text_and_attributes_are_escaped() -> None:
    made = element("span", NASTY, title=NASTY, class_="cp-tag")
    assert "<script" not in made
    assert "<b" not in made.replace("<br>", "")
    assert 'title="&lt;script&gt;' in made
    assert bare(made) == NASTY


def test_only_our_tags_and_attributes_exist() -> None:
    with pytest.raises(ValueError, match="<script> is not among our tags"):
        element("script", "x")
    with pytest.raises(ValueError, match="onclick is not among our attributes"):
        element("span", "x", onclick="alert(1)")


def test_markup_is_not_escaped_twice() -> None:
    inner = element("em", "<")
    assert element("p", inner, "&") == "<p><em>&lt;</em>&amp;</p>"
    assert isinstance(join_html([inner, "<"]), Html)
    assert to_html(inner) is inner


def test_a_question_begins_where_its_own_letters_do() -> None:
    page = 'from components.widgets.html import draw_question\ndraw_question("كم <b>؟")'
    at = AppTest.from_string(page).run()
    (html,) = at.get("html")
    words = '<div class="cp-quiet" dir="auto"><bdi>Question</bdi>: كم &lt;b&gt;؟</div>'
    assert html.proto.body == words


def test_a_plain_string_is_never_drawn() -> None:
    with pytest.raises(TypeError, match="only markup"):
        draw_html("<b>hello</b>")  # type: ignore[arg-type]


def test_a_mark_sits_on_its_words_only() -> None:
    words = "The tower is 512 m tall, not 512 m wide."
    made = render_marked_text(words, [HtmlMark(13, 18, "1", "the evidence says 412 m")])
    assert made.count("<mark") == 1
    assert '<mark class="cp-mark" title="the evidence says 412 m">512 m</mark>' in made
    assert 'data-n="1"' in made


def test_overlapping_marks_show_all_their_numbers() -> None:
    made = render_marked_text("abcdef", [HtmlMark(0, 4, "1"), HtmlMark(2, 6, "2")])
    assert bare(made) == "abcdef"
    assert made.count("<mark") == 3
    assert made.index('data-n="1"') < made.index('data-n="2"')


LETTERS = "ab<>&\"' \n\r\té\u0301北京𝒳👩\u200d👧العربية"
scripts = st.text(alphabet=st.sampled_from(LETTERS), min_size=1, max_size=60)


@given(scripts, st.lists(st.tuples(st.integers(0, 60), st.integers(1, 20)), max_size=5))
def test_marking_never_changes_the_text(words: str, places: list[tuple[int, int]]) -> None:
    marks = [
        HtmlMark(start, min(len(words), start + length), str(number))
        for number, (start, length) in enumerate(places)
        if start < len(words)
    ]
    assert bare(render_marked_text(words, marks)) == words


@given(st.text(max_size=80))
def test_any_text_survives_escaping(words: str) -> None:
    assert bare(element("p", words)) == words


class Walked(list[HtmlMark]):
    """Marks that count how often they are gone through."""

    walks = 0

    def __iter__(self) -> Iterator[HtmlMark]:
        self.walks += 1
        return super().__iter__()


def test_marks_are_gone_through_a_few_times_however_many_they_are() -> None:
    marks = Walked(HtmlMark(n, 10_000 - n, str(n)) for n in range(2000))
    assert render_marked_text("word " * 2000, marks).count("<sup") == 2000
    assert marks.walks < 10


def test_a_stretch_under_very_many_marks_names_some_of_them() -> None:
    marks = [HtmlMark(n, 10_000 - n, title=f"mark {n}") for n in range(2000)]
    made = render_marked_text("word " * 2000, marks)
    assert len(made) < 3_000_000
    assert f"mark {MAX_TITLES - 1}\n…" in made
    assert f'mark {MAX_TITLES - 2}\nmark {MAX_TITLES - 1}">' in made


CASE = make_case("The tower is 512 m tall.")
SPAN = Span(13, 18, "512 m", 0.9, "number_or_date", "Ada", "412 m")
SCORES = (WordScore(0, 3, 0.02), WordScore(13, 16, 0.6), WordScore(17, 18, 0.3))
PROGRESS = fold_events(
    [
        RunStarted(1.0, CASE, Plan(), (RoleAssignment("span adjudicator", "Elder", True, "", ""),)),
        WordsScored(2.0, "Reader", SCORES, 0.4),
        SpanProposed(3.0, SPAN),
        SpanVoted(4.0, "Ada", "Ben", SPAN, 0.7, "The source says 412 m."),
        SpanVoted(4.1, "Ada", "Cleo", SPAN, None, "No reply."),
        SoftLabelled(5.0, (SoftLabel(13, 18, 0.7, 0.7),), 0.7, ("Ada",)),
        SpanAdjudicated(6.0, SPAN, True, NASTY),
    ]
)


def test_each_agent_has_its_layer_and_who_gave_no_vote_has_none() -> None:
    layers = group_marks_by_agent(PROGRESS)
    assert list(layers) == [MEAN_LAYER, "Ada", "Ben", "Elder", WORD_LAYER]
    assert [mark.strength for mark in layers["Ben"]] == [0.7]
    assert [mark.strength for mark in layers[WORD_LAYER]] == [0.6, 0.3]
    assert all((m.strength or 0) >= MIN_SHOWN_P for own in layers.values() for m in own)
    assert list_missing_votes(PROGRESS) == ["Cleo on 1"]


def test_the_surest_colours_and_all_are_named() -> None:
    marks = build_heat_marks(group_marks_by_agent(PROGRESS), ["Ada", "Ben"], PROGRESS)
    shown = render_marked_text(CASE.response, marks)
    (mark,) = re.findall(r"<mark[^>]*>", shown)
    assert "--cp-heat: 90%" in mark
    assert "cp-mark-hard" in mark
    assert 'tabindex="0"' in mark
    assert "Ada: 90%, number or date, should say “412 m”\nBen: 70% – The source says" in mark
    assert 'aria-label="512 m: Ada: 90%' in mark
    assert bare(shown) == CASE.response


def test_only_what_is_chosen_is_warm() -> None:
    shown = render_marked_text(
        CASE.response, build_heat_marks(group_marks_by_agent(PROGRESS), ["Ben"], PROGRESS)
    )
    assert "--cp-heat: 70%" in shown
    assert "Ada:" not in shown
    cold = render_marked_text(
        CASE.response, build_heat_marks(group_marks_by_agent(PROGRESS), ["nobody"], PROGRESS)
    )
    assert "--cp-heat: 0%" in cold, "what counts is outlined all the same"


def test_reasons_are_text() -> None:
    shown = render_marked_text(
        CASE.response, build_heat_marks(group_marks_by_agent(PROGRESS), ["Elder"], PROGRESS)
    )
    assert "<script" not in shown
    assert "kept – &lt;script&gt;" in shown


def test_marks_without_strength_are_plain() -> None:
    assert "cp-heat" not in render_marked_text("abc", [HtmlMark(0, 1, "1", "x")])


def test_who_raised_words_together_has_a_layer_each() -> None:
    both = replace(SPAN, source="Ada, Zoe")
    layers = group_marks_by_agent(fold_events([SpanProposed(1.0, SPAN), SpanProposed(2.0, both)]))
    assert {name: len(marks) for name, marks in layers.items()} == {"Ada": 2, "Zoe": 1}


def test_a_right_to_left_quote_keeps_its_order_within_our_sentence() -> None:
    ours = "The source says: “يبلغ طوله 412 مترا.” (p. 2), not “512 m”."
    shown = "The source says: “\u2068يبلغ طوله 412 مترا.\u2069” (p. 2), not “512 m”."
    assert isolate_right_to_left(ours) == shown
    assert escape_markdown(ours).count("\u2068") == 1
    assert isolate_right_to_left("“512 m” is wrong") == "“512 m” is wrong"


def test_kinds_have_the_same_colours_in_versions_as_in_the_editor() -> None:
    editor, styles = (
        (ASSETS / name).read_text(encoding="utf-8") for name in ("editor.js", "app.css")
    )
    hues = re.search(r"const HUES = \[(.*?)\]", editor)
    assert hues is not None
    shown = re.findall(r"\.cp-mark-kind-(\d) \{ --cp: hsl\((\d+) ", styles)
    assert shown == [(str(n), hue) for n, hue in enumerate(hues[1].split(", "))]
    assert len(shown) == KIND_COLOURS
