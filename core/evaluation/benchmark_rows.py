"""The labelled rows of a benchmark: those of a file, or the cases that people decided."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from core.documents.library import get_file_path
from core.documents.readers import guess_file_type
from core.documents.segmentation import detect_language
from core.evaluation.dataset_files import GoldRow, GoldSpan, normalize_key
from core.exchange.column_mapping import ColumnMapping, FileTable, format_cell_value, map_rows
from core.exchange.fields import expand_extra_columns
from core.exchange.importer import get_named_file
from core.exchange.rows import ExchangeDocument, RowProblem
from core.learning.metrics import number_names
from core.runtime.errors import InputError
from core.schema.records import Case
from core.store import Store
from core.store.ground_truth import GroundTruth

COMMON_SHARE = 0.9  # of the rows: what more of them share is common to the file


@dataclass(frozen=True)
class RowSource:
    """Where a benchmark's rows are from: a public set, a file with its name, or the project.

    `sampled_from` is the number of labelled rows there, `unread` that of rows that could not be
    read or used.
    """

    kind: Literal["set", "file", "project"]
    name: str
    task: str = ""
    split: str = ""
    sampled_from: int = 0
    unread: int = 0


class LibraryFiles:
    """The files of a project's library as the evidence of rows."""

    def __init__(self, store: Store, home: Path, project_id: str) -> None:
        self._store, self._home = store, home
        self._ids = {name: one.id for name, one in store.library.by_name(project_id).items()}

    def load(self, source_ids: Iterable[str]) -> tuple[list[str], tuple[Path, ...]] | None:
        """Return the texts and images of these files; None if one is not read, or not here."""
        texts, images = [], []
        for source_id in source_ids:
            if self._store.library.kind_of(source_id) == "image":
                images.append(get_file_path(self._home, source_id))
                if not images[-1].exists():
                    return None
            elif reading := self._store.readings.get(source_id, ""):
                texts += [reading.text] if reading.text.strip() else []
            else:
                return None
        return texts, tuple(images)

    def find(self, documents: Iterable[ExchangeDocument]) -> tuple[list[str], tuple[Path, ...]]:
        """Return the texts of a row's sources, and the files that are named instead of a text.

        Raises InputError if a named file is not here, or is not read.
        """
        texts: list[str] = []
        images: tuple[Path, ...] = ()
        for document in documents:
            name = get_named_file(document)
            if name not in self._ids:
                if name and guess_file_type(name):
                    raise InputError(
                        f"its source “{name}” is not in the project’s library; add it there."
                    )
                texts += [document.text] if document.text else []
            elif (found := self.load([self._ids[name]])) is None:
                raise InputError(f"its source “{name}” is not read yet; Library says why.")
            else:
                texts, images = texts + found[0], images + found[1]
        return texts, images


def map_labelled_rows(
    table: FileTable, mapping: ColumnMapping, name: str, files: LibraryFiles, category: str = ""
) -> tuple[list[GoldRow], list[RowProblem]]:
    """Return the labelled rows of a file by a mapping of its columns, and those without a use.

    `category` is the column that holds each row's category, if there is one.
    """
    read = map_rows(table, mapping)
    problems, rows = list(read.problems), []
    for row in read.rows:
        if row.answer is None:
            problems.append(RowProblem(row.place, "it has no label, or people differ about it."))
            continue
        try:
            sources = files.find(row.documents)
        except InputError as error:
            problems.append(RowProblem(row.place, str(error)))
            continue
        row_id, place = row.id or f"{name}:{row.place}", f"{name}, line {row.place}"
        case = Case(row_id, "", row.response, row.question, language=row.language)
        if not row.language:
            case = replace(case, language=detect_language(row.response))
        made = _make_row(case, row.answer, sources, place)
        kind = expand_extra_columns(row.others).get(category, made.category)
        rows.append(replace(made, category=format_cell_value(kind)))
    return group_related_rows(rows), problems


def group_related_rows(rows: Sequence[GoldRow]) -> list[GoldRow]:
    """Return the rows with those in one group that share a question or a source.

    A question of nearly all rows that have sources is an instruction, and relates none; neither
    does a source of nearly all rows in a row that has others.
    """
    questions = [normalize_key(row.question) for row in rows]
    sources = [(*row.documents, *map(str, row.images)) for row in rows]
    counts = Counter(key for pair in zip(questions, sources, strict=True)
                     for key in {pair[0], *pair[1]})  # fmt: skip
    common = {key for key, count in counts.items() if count > COMMON_SHARE * len(rows)}
    keys: list[list[str]] = []
    for row, question, texts in zip(rows, questions, sources, strict=True):
        own = [text for text in texts if text not in common] or [*texts]
        if question and not (own and question in common):
            own.append(question)
        keys.append(own or [normalize_key(row.response)])
    if not keys:
        return []
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    holders = np.repeat(np.arange(len(rows)), [len(own) for own in keys])
    held = len(rows) + number_names([key for own in keys for key in own], is_sorted=False)
    edges = coo_array((np.ones(len(held)), (holders, held)), shape=(held.max() + 1,) * 2)
    _, groups = connected_components(edges, directed=False)
    return [replace(row, group=str(n)) for row, n in zip(rows, groups, strict=False)]


def load_decided_rows(store: Store, home: Path, project_id: str) -> tuple[list[GoldRow], int]:
    """Return the project's cases that people decided, with the texts of their sources as read.

    Those of which a source is not read, or is not here any more, are only counted.
    """
    rows, unread = [], 0
    files, project = LibraryFiles(store, home, project_id), store.projects.get(project_id)
    for case_id, truth in store.truths.of_project(project_id).items():
        case = store.cases.get(case_id) if truth.is_decided else None
        if case is None:
            continue
        if (sources := files.load((*case.documents, *case.images))) is None:
            unread += 1
        else:
            row = _make_row(case, truth, sources, f"case {case_id}")
            if project and (case.role, case.instruction) != (project.role, project.instruction):
                row = replace(row, role=case.role, instruction=case.instruction)
            rows.append(row)
    return group_related_rows(rows), unread


def _make_row(
    case: Case, truth: GroundTruth, sources: tuple[Sequence[str], tuple[Path, ...]], place: str
) -> GoldRow:
    documents, images = sources
    spans = tuple(GoldSpan(span.start, span.end) for span in truth.spans)
    return GoldRow(
        case.id,
        place,
        case.response,
        truth.label,
        group="",
        language=case.language,
        question=case.question,
        documents=tuple(documents),
        images=images,
        spans=spans if truth.is_marked else None,
        category=truth.spans[0].category if truth.spans else "",
    )
