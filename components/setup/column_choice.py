"""The choice of a file's columns at import, and of what each value of its labels means."""

from __future__ import annotations

import hashlib
from itertools import islice
from typing import Any

import streamlit as st

from components.widgets.controls import draw_table
from components.widgets.wording import LABEL_WORDS, clip_text, escape_markdown
from core.exchange.column_mapping import (
    ColumnMapping,
    FileTable,
    guess_columns,
    guess_label,
    list_label_values,
)
from core.schema.records import Label

NO_COLUMN, NO_LABEL = "", ""
PREVIEWED_ROWS = 3
FIELDS_PER_ROW = 4
FIELD_WORDS = {
    "response": "Response",
    "question": "Question",
    "document": "Sources",
    "label": "Label",
    "annotator": "Annotator",
    "id": "Id",
    "spans": "Marked words",
    "reason": "Reason",
    "corrected_answer": "Right answer",
    "language": "Language",
}
FIELD_HELP = {
    "document": "A text, a list of texts, or the name of a file in the library",
    "annotator": "Each label becomes that person’s answer; rows with the same texts are one case",
    "spans": "JSON: a list of [start, end], or of objects with start and end",
}
LABEL_CHOICES = {
    **{str(label): words for label, words in LABEL_WORDS.items()},
    NO_LABEL: "No label",
}


class ColumnChoice:
    """Draws the choice once for all files with the same columns, and each label value once."""

    def __init__(self) -> None:
        self._chosen: dict[str, Any] = {}

    def draw(self, table: FileTable) -> ColumnMapping | None:
        """Draw what is not drawn yet; return the mapping, or None while something is missing.

        Raises InputError: the column of labels has too many different values.
        """
        digest = hashlib.sha256("\n".join(table.columns).encode()).hexdigest()[:12]
        key = f"exchange.columns.{digest}"
        rows = list(islice(table.rows, PREVIEWED_ROWS))
        draw_table([{n: clip_text(_format_cell(row.get(n)), 80) for n in table.columns}
                    for row in rows])  # fmt: skip
        if f"{key}.response" in self._chosen:
            st.caption("Its columns are those of the file above.")
        else:
            self._draw_fields(table, key)
        columns = {field: self._chosen[f"{key}.{field}"] for field in FIELD_WORDS}
        columns = {field: column for field, column in columns.items() if column}
        if "response" not in columns:
            st.info("Choose the column that holds the responses.")
            return None
        labels = self._draw_labels(table, columns["label"], key) if "label" in columns else {}
        return None if labels is None else ColumnMapping(columns, labels)

    def _draw_fields(self, table: FileTable, key: str) -> None:
        guessed, options = guess_columns(table), [NO_COLUMN, *table.columns]
        for place, (field, words) in enumerate(FIELD_WORDS.items()):
            if place % FIELDS_PER_ROW == 0:
                columns = st.columns(FIELDS_PER_ROW)
            self._chosen[f"{key}.{field}"] = columns[place % FIELDS_PER_ROW].selectbox(
                words,
                options,
                index=options.index(guessed.get(field, NO_COLUMN)),
                format_func=lambda column: column or "–",
                key=f"{key}.{field}",
                help=FIELD_HELP.get(field),
            )

    def _draw_labels(
        self, table: FileTable, column: str, key: str
    ) -> dict[str, Label | None] | None:
        """Draw what each value means; None while a meaning is missing."""
        values = list_label_values(table, column)
        for value in values:
            field = f"{key}.{column}.means.{value}"
            if field not in self._chosen:
                self._chosen[field] = st.segmented_control(
                    f"“{escape_markdown(clip_text(value, 60))}” in {escape_markdown(column)} means",
                    list(LABEL_CHOICES),
                    default=guess_label(value),
                    format_func=LABEL_CHOICES.__getitem__,
                    key=field,
                )
        chosen = {value: self._chosen[f"{key}.{column}.means.{value}"] for value in values}
        missing = [f"“{clip_text(value, 60)}”" for value, label in chosen.items() if label is None]
        if missing:
            words = f"Choose what {', '.join(missing)} means: sets differ in it."
            st.info(escape_markdown(words))
            return None
        return {value: label or None for value, label in chosen.items()}


def _format_cell(value: object) -> str:
    return "" if value is None else str(value)
