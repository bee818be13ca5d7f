"""A case's answers side by side: in what people differ, who marked which words, and as what."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import streamlit as st

from components.app import state
from components.review.answer_filters import format_difference
from components.review.correction import get_newest_entry
from components.review.correction_draft import (
    CorrectionTarget,
    fill_from_correction,
    make_form_key,
)
from components.widgets.controls import draw_button
from components.widgets.html import (
    Html,
    HtmlMark,
    div,
    draw_html,
    element,
    render_marked_text,
    strip_verdict_line,
)
from components.widgets.wording import LABEL_SIGNS, LABEL_WORDS, clip_text, escape_markdown
from core.review.adjudication import (
    AnswerVersion,
    build_answer_version,
    find_difference,
)
from core.schema.records import Case, Span
from core.schema.reviews import Correction, format_category
from core.schema.run_state import RunState
from core.store import Store
from core.store.ground_truth import merge_ranges

FIRST_VERSION_KEY, LAST_VERSION_KEY = 4, 9  # Alt+1 to Alt+3 choose the label
KIND_COLOURS = 9  # of the style sheet, the same as in the span editor
ABOUT_SIGNS = (
    "The colour is the kind of error. Striped and dashed: not everybody with this label "
    "marked these words. Dotted: somebody else did."
)


def list_versions(store: Store, case: Case, progress: RunState) -> list[AnswerVersion]:
    """Return people's newest answers, the machine's, outside agents' and the right one so far."""
    versions = [build_answer_version(c) for c in store.corrections.newest_of_case(case.id)]
    if progress.verdict is not None:
        why = strip_verdict_line(progress.verdict.rationale)
        versions.append(AnswerVersion("the machine", progress.verdict.label, progress.spans, why))
    for suggestion in store.golds.suggestions(case.id):
        versions.append(AnswerVersion(suggestion.agent, suggestion.label, suggestion.spans))
    if (last := store.golds.that_counts(case.id)) is not None:
        who = f"right answer so far ({last.origin}, {last.author})"
        versions.append(
            AnswerVersion(
                who, last.label, last.spans, last.reason, last.corrected_answer, is_right=True
            )
        )
    return versions


def draw_difference(answers: Sequence[Correction]) -> None:
    """Draw in what people differ, and the words that they call different kinds of error."""
    difference = find_difference(answers)
    named = "; ".join(_describe_kinds(answers)) if difference.kinds else ""
    if words := format_difference(difference, named):
        st.markdown(f"**Differences:** {escape_markdown(words)}", help=ABOUT_SIGNS)


def _describe_kinds(answers: Sequence[Correction]) -> Iterator[str]:
    """Yield each stretch of words that people call different kinds, and who calls it which."""
    spans = {(s.start, s.end): s.text for answer in answers for s in answer.spans}
    for place, text in sorted(spans.items()):
        named = {
            answer.author: format_category(s.category)
            for answer in answers
            for s in answer.spans
            if (s.start, s.end) == place
        }
        if len(set(named.values())) > 1:
            kinds = ", ".join(f"{kind} ({who})" for who, kind in named.items())
            yield f"“{clip_text(text, 60)}” is {kinds}"


def draw_versions(target: CorrectionTarget, versions: Sequence[AnswerVersion]) -> None:
    """Draw all versions in one row of low cards, which app.css lets scroll sideways."""
    with st.container(horizontal=True, gap="small", key="settle-versions"):
        for place in range(len(versions)):
            with st.container(border=True, gap="xsmall", key=f"settle-version-{place}"):
                _draw_version(target, versions, place)


def _draw_version(target: CorrectionTarget, versions: Sequence[AnswerVersion], place: int) -> None:
    version, label = versions[place], versions[place].label
    others = [each for each in versions if each.is_persons and each is not version]
    verdict = f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "marks words only"
    number = FIRST_VERSION_KEY + place
    shortcut = f"Alt+{number}" if number <= LAST_VERSION_KEY else None
    with st.container(horizontal=True, vertical_alignment="center", gap="xsmall"):
        st.markdown(f"**{escape_markdown(version.who)}**: {verdict}", width="content")
        key = f"settle.take.{place}"
        draw_button("Use this", key, _use_version, target, version, shortcut=shortcut)
    kinds = list(target.category_words)
    answer = version.corrected_answer
    notes = [div("cp-quiet", version.reason, dir="auto")] if version.reason else []
    notes += [div("cp-quiet", element("bdi", "Right"), f": {answer}", dir="auto")] * bool(answer)
    marks = list_marks(version, others, kinds)
    # app.css gives all of them one low height, in which they scroll.
    draw_html(
        div(
            "cp-version",
            _render_kinds(version, others, kinds),
            render_marked_text(target.case.response, marks),
            *notes,
        )
    )


def list_marks(
    version: AnswerVersion, others: Sequence[AnswerVersion], kinds: Sequence[str]
) -> list[HtmlMark]:
    """Return a version's marks coloured by kind, and where other people's marks differ from them.

    Words that somebody with the same label did not mark are `alone`; words that only others marked
    are `missing`.
    """
    marks = [
        HtmlMark(
            span.start,
            span.end,
            title=format_category(span.category),
            kind=_format_colour(span, kinds),
        )
        for span in version.spans
    ]
    own = _list_places(version)
    for other in others:
        if other.label == version.label:
            marks += [
                HtmlMark(*stretch, title=f"not marked by {other.who}", kind="alone")
                for stretch in merge_ranges(own - _list_places(other))
            ]
        marks += [
            HtmlMark(*stretch, title=f"marked by {other.who}", kind="missing")
            for stretch in merge_ranges(_list_places(other) - own)
        ]
    return marks


def _format_colour(span: Span, kinds: Sequence[str]) -> str:
    number = kinds.index(span.category) if span.category in kinds else 0
    return f"kind-{number % KIND_COLOURS}"


def _list_places(version: AnswerVersion) -> set[tuple[int, int]]:
    """Return each marked character as a place of its own, so that sets of them can be compared."""
    return {(i, i + 1) for span in version.spans for i in range(span.start, span.end)}


def _render_kinds(
    version: AnswerVersion, others: Sequence[AnswerVersion], kinds: Sequence[str]
) -> Html:
    """Return the list of a version's marks: their words, their kind, and who marked otherwise."""
    if not version.spans:
        return Html()
    peers = [other for other in others if other.label == version.label]
    rows: list[Html] = []
    for span in version.spans:
        words = clip_text(span.text, 60)
        mark = element("mark", words, class_=f"cp-mark cp-mark-{_format_colour(span, kinds)}")
        notes = "; ".join(_describe_others(span, peers))
        quiet = element("small", f" ({notes})") if notes else Html()
        rows.append(element("div", mark, " ", format_category(span.category), quiet, dir="auto"))
    return div("cp-kinds", *rows)


def _describe_others(span: Span, others: Sequence[AnswerVersion]) -> Iterator[str]:
    """Yield how other people marked the span's words, if otherwise."""
    for other in others:
        same = [s for s in other.spans if (s.start, s.end) == (span.start, span.end)]
        if same and same[0].category != span.category:
            yield f"{other.who}: {format_category(same[0].category)}"
        elif not same and any(s.start < span.end and span.start < s.end for s in other.spans):
            yield f"{other.who} marked more or less of it"
        elif not same:
            yield f"not marked by {other.who}"


def _use_version(target: CorrectionTarget, version: AnswerVersion) -> None:
    """Put a version into the form, its spans as suggestions; the lead's own reason stays."""
    key = make_form_key(target.id)
    reason, answer = (
        str(st.session_state.get(f"{key}.{name}") or "") for name in ("reason", "answer")
    )
    with state.open_store() as store:
        seen = str(st.session_state.get(f"{key}.newest_seen") or get_newest_entry(store, target))
    correction = Correction(
        "",
        None,
        target.case.id,
        version.who,
        time.time(),
        version.label or "hallucinated",
        version.spans,
        reason,
        version.corrected_answer or answer,
    )
    fill_from_correction(target, correction, seen)
