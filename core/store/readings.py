"""What was read in each source, and the index over it: passages, terms (FTS5), embeddings.

Everything is kept by the sha256 of the bytes, so one content is read and indexed once, whoever
uploads it under whatever name. `reader` and `encoder` name the code's versions: another version
reads or indexes anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from core.records import Block, BoxedText, Page, Source
from core.store.codec import from_json, to_json
from core.store.sqlite import Database


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
class Vectors:
    """Embeddings of a source's passages: row-major float32, rows of unit length.

    `muted` holds one byte per row: 1 where too many tokens are unknown to the encoder.
    """

    rows: int
    width: int
    data: bytes
    muted: bytes


class Readings:
    """Readings and their indexes."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def save(self, source: Source, *, reader: str, seconds: float, now: float) -> None:
        """Keep a reading in place of an earlier one of the same content (and its index)."""
        self.forget(source.id)
        self._db.execute(
            "INSERT INTO readings (source_id, kind, text, pages, boxes, language, "
            "notes, width, height, blocks, reader, seconds, read_at) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                source.id,
                source.kind,
                source.text,
                to_json(source.pages),
                to_json(source.boxes),
                source.language,
                to_json(source.notes),
                source.width,
                source.height,
                to_json(source.blocks),
                reader,
                seconds,
                now,
            ],
        )

    def get(self, source_id: str, name: str, *, reader: str | None = None) -> Source | None:
        """The reading under that name; None when there is none (by that reader)."""
        row = next(self._db.query("SELECT * FROM readings WHERE source_id = ?", [source_id]), None)
        if row is None or (reader is not None and row["reader"] != reader):
            return None
        return Source(
            id=source_id,
            name=name,
            kind=row["kind"],
            text=row["text"],
            pages=from_json(tuple[Page, ...], row["pages"]),
            boxes=from_json(tuple[BoxedText, ...], row["boxes"]),
            language=row["language"],
            notes=from_json(tuple[str, ...], row["notes"]),
            width=row["width"],
            height=row["height"],
            blocks=from_json(tuple[Block, ...], row["blocks"]),
        )

    def read_at(self, source_id: str) -> float:
        """When the reading was made; infinity when there is none."""
        row = next(
            self._db.query("SELECT read_at FROM readings WHERE source_id = ?", [source_id]), None
        )
        return float(row["read_at"]) if row else float("inf")

    def text(self, source_id: str, start: int, end: int) -> str:
        """The characters `[start, end)` of a source's text, without reading the rest."""
        row = next(
            self._db.query(
                "SELECT substr(text, ?, ?) AS part FROM readings WHERE source_id = ?",
                [start + 1, max(0, end - start), source_id],
            ),
            None,
        )
        return str(row["part"]) if row else ""

    def forget(self, source_id: str) -> None:
        """Drop a reading and its index."""
        self.drop_index(source_id)
        self._db.execute("DELETE FROM readings WHERE source_id = ?", [source_id])

    def drop_index(self, source_id: str) -> None:
        """Drop the passages, terms and embeddings of a source."""
        self._db.execute(
            "DELETE FROM passage_terms WHERE rowid IN "
            "(SELECT id FROM passages WHERE source_id = ?)",
            [source_id],
        )
        self._db.execute("DELETE FROM passages WHERE source_id = ?", [source_id])
        self._db.execute("DELETE FROM embeddings WHERE source_id = ?", [source_id])

    def has_index(self, source_id: str, encoder: str) -> bool:
        """True when the source is indexed with that encoder."""
        row = next(
            self._db.query(
                "SELECT 1 AS yes FROM embeddings WHERE source_id = ? AND encoder = ?",
                [source_id, encoder],
            ),
            None,
        )
        return row is not None

    def save_index(
        self,
        source_id: str,
        encoder: str,
        passages: Sequence[tuple[IndexedPassage, str]],
        vectors: Vectors,
    ) -> None:
        """Keep an index: each passage with its search terms, and all embeddings.

        Other encoders' embeddings of the very same passages stay: a provider's were paid for.
        """
        if self.passages(source_id) != [passage for passage, _ in passages]:
            self.drop_index(source_id)
            self._save_passages(source_id, passages)
        self._db.execute(
            "INSERT OR REPLACE INTO embeddings (source_id, encoder, rows, width, data, muted) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            [source_id, encoder, vectors.rows, vectors.width, vectors.data, vectors.muted],
        )

    def _save_passages(
        self, source_id: str, passages: Sequence[tuple[IndexedPassage, str]]
    ) -> None:
        for passage, terms in passages:
            cursor = self._db.execute(
                'INSERT INTO passages (source_id, number, page, start, "end", text) '
                "VALUES (?, ?, ?, ?, ?, ?)",
                [
                    source_id,
                    passage.number,
                    passage.page,
                    passage.start,
                    passage.end,
                    passage.text,
                ],
            )
            self._db.execute(
                "INSERT INTO passage_terms (rowid, terms, source) VALUES (?, ?, ?)",
                [cursor.lastrowid, terms, source_id],
            )

    def passages(
        self, source_id: str, numbers: Sequence[int] | None = None
    ) -> list[IndexedPassage]:
        """The passages of a source in order, all or those of the given numbers."""
        where, values = "source_id = ?", [source_id]
        if numbers is not None:
            where += f" AND number IN ({','.join(str(int(n)) for n in numbers)})"
        rows = self._db.query(
            f'SELECT number, page, start, "end", text FROM passages WHERE {where} ORDER BY number',
            values,
        )
        return [
            IndexedPassage(
                source_id, row["number"], row["page"], row["start"], row["end"], row["text"]
            )
            for row in rows
        ]

    def vectors(self, source_id: str, encoder: str) -> Vectors | None:
        """The source's embeddings by that encoder, or None."""
        row = next(
            self._db.query(
                "SELECT rows, width, data, muted FROM embeddings "
                "WHERE source_id = ? AND encoder = ?",
                [source_id, encoder],
            ),
            None,
        )
        return Vectors(row["rows"], row["width"], row["data"], row["muted"]) if row else None

    def match(
        self, terms: Sequence[str], source_ids: Sequence[str], limit: int
    ) -> list[tuple[str, int, float]]:
        """(source id, passage number, bm25) of passages holding any term, best first."""
        if not terms or not source_ids:
            return []
        query = " OR ".join('"' + term.replace('"', "") + '"' for term in terms)
        marks = ",".join("?" * len(source_ids))
        rows = self._db.query(
            "SELECT p.source_id, p.number, bm25(passage_terms) AS rank FROM passage_terms "
            "JOIN passages p ON p.id = passage_terms.rowid "
            f"WHERE passage_terms MATCH ? AND p.source_id IN ({marks}) ORDER BY rank LIMIT ?",
            [query, *source_ids, limit],
        )
        return [(row["source_id"], row["number"], row["rank"]) for row in rows]
