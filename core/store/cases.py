"""Cases, the files of each project's library with their readings, and tables of claims.

Readings and their index (passages, FTS5 terms, embeddings) are kept by the sha256 of the bytes, so
one content is read and indexed once, whoever uploads it under whatever name. `reader` and `encoder`
name versions of the code: another version reads or indexes again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from core.schema.records import (
    BoxedText,
    Case,
    LibraryEntry,
    Plan,
    Source,
    SourceKind,
    SourcePage,
    TextBlock,
)
from core.store.sqlite import (
    Repository,
    fetch_first_row,
    from_json,
    get_columns,
    insert_row,
    load_records,
    to_json,
    upsert_row,
)

ENTRY_COLUMNS = ("project_id", "name", "kind", "size", "status", "problem", "added_by", "added_at")
# How many files of the same name were added to the project before this one and are still there.
EARLIER_NAMESAKES = (
    "(SELECT count(*) FROM library o WHERE o.project_id = l.project_id AND o.name = l.name "
    "AND o.removed_at IS NULL AND o.rowid < l.rowid) AS earlier"
)
READING_COLUMNS = ("kind", "text", "language", "width", "height")
READING_LIST_TYPES: dict[str, Any] = {
    "pages": tuple[SourcePage, ...], "boxes": tuple[BoxedText, ...], "notes": tuple[str, ...],
    "blocks": tuple[TextBlock, ...],
}  # fmt: skip


@dataclass(frozen=True)
class Batch:
    """A table of claims checked under one plan."""

    id: str
    project_id: str
    name: str
    author: str
    created_at: float
    plan: Plan


@dataclass(frozen=True)
class BatchRow:
    """One claim of a table: its case and run once they exist, or the problem that prevents them.

    `others` are the table's further columns, as (header, cell).
    """

    batch_id: str
    row: int
    claim: str
    sources: tuple[str, ...]
    case_id: str | None = None
    run_id: str | None = None
    problem: str = ""
    question: str = ""
    others: tuple[tuple[str, str], ...] = ()


class Batches(Repository):
    """All batches and their rows."""

    def add(self, batch: Batch, rows: Sequence[BatchRow]) -> None:
        """Store a batch with all its rows; call inside `Store.writing()`."""
        insert_row(self._db, "batches", {**get_columns(batch), "plan": to_json(batch.plan)})
        for row in rows:
            texts = {"sources": to_json(row.sources), "others": to_json(row.others)}
            insert_row(self._db, "batch_rows", get_columns(row) | texts | {"batch_id": batch.id})

    def set_run(self, batch_id: str, row: int, run_id: str) -> None:
        """Store which run checks a row."""
        self._db.execute(
            "UPDATE batch_rows SET run_id = ? WHERE batch_id = ? AND row = ?",
            [run_id, batch_id, row],
        )

    def get(self, batch_id: str) -> Batch | None:
        """Return the batch, or None."""
        rows = self._db.query("SELECT * FROM batches WHERE id = ?", [batch_id])
        return next(map(_parse_batch, rows), None)

    def all(self, project_id: str) -> list[Batch]:
        """Return the project's batches, newest first."""
        query = "SELECT * FROM batches WHERE project_id = ? ORDER BY created_at DESC"
        return list(map(_parse_batch, self._db.query(query, [project_id])))

    def rows(self, batch_id: str) -> list[BatchRow]:
        """Return the batch's rows in order."""
        query = "SELECT * FROM batch_rows WHERE batch_id = ? ORDER BY row"
        kinds: dict[str, Any] = {"sources": tuple[str, ...], "others": tuple[tuple[str, str], ...]}
        return [
            BatchRow(**row | {name: from_json(kind, row[name]) for name, kind in kinds.items()})
            for row in self._db.query(query, [batch_id])
        ]


def _parse_batch(row: dict[str, Any]) -> Batch:
    return Batch(**row | {"plan": from_json(Plan, row["plan"])})


class Library(Repository):
    """Entries of the library; the bytes are in the home's `documents` folder.

    Names are unique in a project: a second file of one name is called “name [2].txt”.
    """

    def add(self, entry: LibraryEntry) -> None:
        """Add a file to the library; the same content again takes the newest name."""
        values = {name: getattr(entry, name) for name in ENTRY_COLUMNS}
        values |= {"source_id": entry.id, "removed_at": None}
        renewed = ("name", "kind", "status", "problem", "removed_at")
        upsert_row(self._db, "library", values, "project_id, source_id", renewed)

    def set_status(self, source_id: str, status: str, problem: str = "") -> None:
        """Store the result of reading a file, in every project that has it."""
        self._db.execute(
            "UPDATE library SET status = ?, problem = ? WHERE source_id = ?",
            [status, problem, source_id],
        )

    def get(self, project_id: str, source_id: str) -> LibraryEntry | None:
        """Return the entry, or None when it is not (or no longer) in this library."""
        return next(iter(self._select("l.source_id = ?", [project_id, source_id])), None)

    def all(self, project_id: str) -> list[LibraryEntry]:
        """Return all entries, newest first."""
        return self._select("1 = 1", [project_id])

    def by_name(self, project_id: str) -> dict[str, LibraryEntry]:
        """Return all entries by name; a file name that several were added under is the newest's."""
        rows = self._rows("1 = 1", [project_id])[::-1]
        entries = [_parse_entry(row) for row in rows]
        unique = {entry.name: entry for entry in entries}
        return unique | {row["name"]: entry for row, entry in zip(rows, entries, strict=True)}

    def is_held(self, source_id: str) -> bool:
        """Return True while any library holds that content."""
        query = "SELECT 1 FROM library WHERE source_id = ? AND removed_at IS NULL"
        return fetch_first_row(self._db, query, [source_id]) is not None

    def name_of(self, project_id: str, source_id: str) -> str:
        """Return that content's present or former name in the project, or an empty string."""
        where = "project_id = ? AND source_id = ?"
        query = f"SELECT name, {EARLIER_NAMESAKES} FROM library l WHERE {where}"
        row = fetch_first_row(self._db, query, [project_id, source_id])
        return _get_unique_name(row) if row else ""

    def kind_of(self, source_id: str) -> SourceKind | None:
        """Return the kind of file of that content, or None if it was never added."""
        row = fetch_first_row(self._db, "SELECT kind FROM library WHERE source_id = ?", [source_id])
        return row["kind"] if row else None

    def remove(self, project_id: str, source_id: str, now: float) -> bool:
        """Remove an entry; return True if no library holds that content any more."""
        self._db.execute(
            "UPDATE library SET removed_at = ? WHERE project_id = ? AND source_id = ?",
            [now, project_id, source_id],
        )
        return not self.is_held(source_id)

    def _select(self, where: str, values: Sequence[Any]) -> list[LibraryEntry]:
        return [_parse_entry(row) for row in self._rows(where, values)]

    def _rows(self, where: str, values: Sequence[Any]) -> list[dict[str, Any]]:
        rows = self._db.query(
            f"SELECT l.source_id, {', '.join(f'l.{name}' for name in ENTRY_COLUMNS)}, r.pages, "
            f"r.language, r.notes, length(r.text) AS characters, {EARLIER_NAMESAKES} "
            "FROM library l LEFT JOIN readings r ON r.source_id = l.source_id "
            f"WHERE l.project_id = ? AND l.removed_at IS NULL AND {where} "
            "ORDER BY l.added_at DESC, l.rowid DESC",
            list(values),
        )
        return list(rows)


def _get_unique_name(row: dict[str, Any]) -> str:
    if not row["earlier"]:
        return str(row["name"])
    stem, dot, ending = row["name"].rpartition(".")
    return f"{stem} [{row['earlier'] + 1}].{ending}" if dot else f"{ending} [{row['earlier'] + 1}]"


def _parse_entry(row: dict[str, Any]) -> LibraryEntry:
    pages = from_json(tuple[SourcePage, ...], row["pages"] or "[]")
    return LibraryEntry(
        id=row["source_id"],
        **{name: row[name] for name in ENTRY_COLUMNS} | {"name": _get_unique_name(row)},
        pages=len(pages),
        ocr_pages=tuple(page.number for page in pages if page.reading == "ocr"),
        characters=row["characters"] or 0,
        language=row["language"] or "und",
        notes=from_json(tuple[str, ...], row["notes"] or "[]"),
    )


@dataclass(frozen=True)
class IndexedPassage:
    """A sentence of a source, `[start, end)` in its text; `number` counts from 0."""

    source_id: str
    number: int
    page: int | None
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class PassageVectors:
    """Embeddings of a source's passages: row-major float32, rows of unit length.

    `muted` holds one byte per row: 1 where too many tokens are unknown to the encoder.
    """

    rows: int
    width: int
    data: bytes
    muted: bytes


class Readings(Repository):
    """Readings of files, and their indexes."""

    def save(self, source: Source, *, reader: str, seconds: float, now: float) -> None:
        """Keep a reading, replacing an earlier one of the same content (and its index)."""
        self.forget(source.id)
        values: dict[str, Any] = {name: getattr(source, name) for name in READING_COLUMNS}
        values |= {name: to_json(getattr(source, name)) for name in READING_LIST_TYPES}
        values |= {"source_id": source.id, "reader": reader, "seconds": seconds, "read_at": now}
        insert_row(self._db, "readings", values)

    def get(self, source_id: str, name: str, *, reader: str | None = None) -> Source | None:
        """Return the reading under that name; None when there is none (by that reader)."""
        row = fetch_first_row(self._db, "SELECT * FROM readings WHERE source_id = ?", [source_id])
        if row is None or (reader is not None and row["reader"] != reader):
            return None
        lists = {name: from_json(kind, row[name]) for name, kind in READING_LIST_TYPES.items()}
        return Source(
            id=source_id, name=name, **{column: row[column] for column in READING_COLUMNS}, **lists
        )

    def read_at(self, source_id: str) -> float:
        """Return when the reading was made; infinity when there is none."""
        row = fetch_first_row(
            self._db, "SELECT read_at FROM readings WHERE source_id = ?", [source_id]
        )
        return float(row["read_at"]) if row else float("inf")

    def text(self, source_id: str, start: int, end: int) -> str:
        """Return the characters `[start, end)` of a source's text, without reading the rest."""
        query = "SELECT substr(text, ?, ?) AS part FROM readings WHERE source_id = ?"
        row = fetch_first_row(self._db, query, [start + 1, max(0, end - start), source_id])
        return str(row["part"]) if row else ""

    def forget(self, source_id: str) -> None:
        """Drop a reading and its index."""
        self.drop_index(source_id)
        self._db.execute("DELETE FROM readings WHERE source_id = ?", [source_id])

    def drop_index(self, source_id: str) -> None:
        """Drop the passages, terms and embeddings of a source."""
        is_own = "source_id = ?"
        for table, which in (
            ("passage_terms", f"rowid IN (SELECT id FROM passages WHERE {is_own})"),
            ("passages", is_own),
            ("embeddings", is_own),
        ):
            self._db.execute(f"DELETE FROM {table} WHERE {which}", [source_id])

    def has_index(self, source_id: str, encoder: str = "") -> bool:
        """Return True if the source is indexed with that encoder, or with any if none is given."""
        query = "SELECT 1 FROM embeddings WHERE source_id = ? AND ? IN (encoder, '')"
        return fetch_first_row(self._db, query, [source_id, encoder]) is not None

    def save_index(
        self,
        source_id: str,
        encoder: str,
        passages: Sequence[tuple[IndexedPassage, str]],
        vectors: PassageVectors,
    ) -> None:
        """Keep an index: each passage with its search terms, and all embeddings.

        Other encoders' embeddings of the same passages stay: a provider's embeddings cost money.
        """
        if self.passages(source_id) != [passage for passage, _ in passages]:
            self.drop_index(source_id)
            for passage, terms in passages:
                number = insert_row(self._db, "passages", get_columns(passage))
                indexed = {"rowid": number, "terms": terms, "source": source_id}
                insert_row(self._db, "passage_terms", indexed)
        values = {"source_id": source_id, "encoder": encoder, **get_columns(vectors)}
        upsert_row(self._db, "embeddings", values, "source_id, encoder")

    def passages(self, source_id: str) -> list[IndexedPassage]:
        """Return the passages of a source in order."""
        columns = 'source_id, number, page, start, "end", text'
        query = f"SELECT {columns} FROM passages WHERE source_id = ? ORDER BY number"
        return self._all(IndexedPassage, query, source_id)

    def vectors(self, source_id: str, encoder: str) -> PassageVectors | None:
        """Return the source's embeddings by that encoder, or None."""
        query = (
            "SELECT rows, width, data, muted FROM embeddings WHERE source_id = ? AND encoder = ?"
        )
        return next(iter(self._all(PassageVectors, query, source_id, encoder)), None)

    def terms(self, source_id: str) -> list[list[str]]:
        """Return the search terms of each passage of a source, in order and with repeats."""
        rows = self._db.query(
            "SELECT t.terms FROM passages p JOIN passage_terms t ON t.rowid = p.id "
            "WHERE p.source_id = ? ORDER BY p.number",
            [source_id],
        )
        return [row["terms"].split() for row in rows]


def build_any_query(terms: Sequence[str]) -> str:
    """Return the FTS5 query for any of the terms."""
    return " OR ".join('"' + term.replace('"', "") + '"' for term in terms)


def compute_fingerprint(response: str, question: str) -> str:
    """Return a hash of question and response that ignores spacing and capitals."""
    folded = " ".join(question.casefold().split()) + "\n" + " ".join(response.casefold().split())
    return hashlib.sha256(folded.encode()).hexdigest()


class Cases(Repository):
    """The cases of all projects; a case never changes once it is stored."""

    def add(self, case: Case, terms: Sequence[str]) -> None:
        """Store a new case with its search terms."""
        names = ("id", "project_id", "response", "question", "author", "created_at")
        values = {name: getattr(case, name) for name in names}
        values["fingerprint"] = compute_fingerprint(case.response, case.question)
        insert_row(self._db, "cases", values | {"payload": to_json(case)})
        insert_row(self._db, "case_terms", {"terms": " ".join(terms), "case_id": case.id})

    def get(self, case_id: str) -> Case | None:
        """Return the case, or None."""
        return next(iter(load_records(self._db, Case, "cases WHERE id = ?", [case_id])), None)

    def several(self, case_ids: Sequence[str]) -> list[Case]:
        """Return the cases of these ids that exist, in this order."""
        from_clause = "cases WHERE id IN (SELECT value FROM json_each(?))"
        found = load_records(self._db, Case, from_clause, [json.dumps(list(case_ids))])
        by_id = {case.id: case for case in found}
        return [by_id[case_id] for case_id in case_ids if case_id in by_id]

    def all(self, project_id: str) -> list[Case]:
        """Return all cases of a project in the order in which they were stored."""
        return load_records(
            self._db, Case, "cases WHERE project_id = ? ORDER BY rowid", [project_id]
        )

    def lengths(self, project_id: str) -> dict[str, int]:
        """Return how many characters the response of each case of a project has, by id."""
        rows = self._db.conn.execute(
            "SELECT id, response FROM cases WHERE project_id = ?", [project_id]
        )
        return {case_id: len(response) for case_id, response in rows}

    def places(self) -> dict[str, tuple[str, str]]:
        """Return project and language of every case of all projects, by id."""
        rows = self._db.conn.execute(
            "SELECT id, project_id, coalesce(json_extract(payload, '$.language'), 'und') FROM cases"
        )
        return {case_id: (project_id, language) for case_id, project_id, language in rows}

    def same(self, project_id: str, response: str, question: str) -> list[Case]:
        """Return earlier cases with the same question and response, newest first."""
        return load_records(
            self._db,
            Case,
            "cases WHERE project_id = ? AND fingerprint = ? ORDER BY created_at DESC",
            [project_id, compute_fingerprint(response, question)],
        )

    def like(self, case: Case) -> Case | None:
        """Return the newest case that differs at most in id, author and time, or None.

        The order of the sources does not matter.
        """

        def content(one: Case) -> Case:
            documents, images = tuple(sorted(one.documents)), tuple(sorted(one.images))
            bare = replace(one, id="", author="", created_at=0.0)
            return replace(bare, documents=documents, images=images)

        known = self.same(case.project_id, case.response, case.question)
        return next((one for one in known if content(one) == content(case)), None)

    def similar(self, project_id: str, terms: Sequence[str], limit: int) -> list[Case]:
        """Return cases that share terms, closest first."""
        if not terms:
            return []
        return load_records(
            self._db,
            Case,
            "case_terms t JOIN cases c ON c.id = t.case_id WHERE case_terms MATCH ? "
            "AND c.project_id = ? ORDER BY bm25(case_terms) LIMIT ?",
            [build_any_query(terms), project_id, limit],
        )
