"""The audit of a response on a page: what holds of the whole, then statement by statement."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.audit_html import head_html, row_html
from components.audit_rows import Row, has_audit, rows_of, summary_words, whole_uses
from components.audit_steps import whole_html
from components.highlight import Part
from components.show import paged, show
from core.audited import ToolUse
from core.progress import Progress
from core.records import Case

WRONG_FIRST, IN_ORDER = "Wrong ones first", "In their order"
PREFIX = "cp-statement"


def draw_audit(case: Case, progress: Progress, key: str) -> None:
    """Of a run that has ended: a table that can be put in another order; nothing without audit."""
    if not has_audit(progress):
        return
    rows = rows_of(progress)
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        st.subheader("Statement by statement", anchor=False)
    with right:
        order = IN_ORDER
        if len(rows) > 1:
            order = st.segmented_control(
                "Order",
                (WRONG_FIRST, IN_ORDER),
                default=WRONG_FIRST,
                required=True,
                label_visibility="collapsed",
                key=f"{key}.order",
            )
    st.caption(summary_words(rows))
    if order == WRONG_FIRST:
        rows.sort(key=lambda row: row.gravity)
    shown = len(case.response)
    _draw_rows(whole_uses(progress), paged(rows, f"{key}.statements"), is_over=True, shown=shown)


def draw_audit_so_far(progress: Progress, key: str, shown: int) -> None:
    """Of a run under way or played again: statements in their order, as far as it has come.

    `shown` is how many characters of the response are on the page, where links can lead.
    """
    if not has_audit(progress):
        return
    rows = rows_of(progress)
    st.caption(summary_words(rows))
    is_over, page = progress.ending is not None, paged(rows, f"{key}.statements")
    _draw_rows(whole_uses(progress), page, is_over=is_over, shown=shown)


def parts_of(progress: Progress) -> list[Part]:
    """Where each statement stands in the response, for links that lead there."""
    if not has_audit(progress):
        return []
    return [Part(s.start, s.end, f"{PREFIX}-{i + 1}") for i, s in progress.statements.items()]


def _draw_rows(whole: Sequence[ToolUse], rows: Sequence[Row], *, is_over: bool, shown: int) -> None:
    """Each row is an element of its own: one that has not changed stays open while others come."""
    with st.container(key="cp-statements", gap=None):
        if whole:
            show(whole_html(whole, is_open=False))
        if rows:
            show(head_html())
        for row in rows:
            anchor = f"{PREFIX}-{row.number}" if row.statement.end <= shown else ""
            show(row_html(row, anchor, is_over=is_over))
