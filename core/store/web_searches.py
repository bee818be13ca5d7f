"""Searches of the web: counted for their run before they are sent, kept to answer the same again.

Results are JSON of the caller's own making; here they are text.
"""

from __future__ import annotations

from dataclasses import dataclass

from core.store.sqlite import Database

DAY = 86_400
LONGEST_KEPT = 30  # days; whatever the setting says


@dataclass(frozen=True)
class WebQuery:
    """What is asked of whom: a service with its address, a language tag, and the words."""

    service: str
    language: str
    words: str


@dataclass(frozen=True)
class KeptSearch:
    """What a search found, and when, in seconds since 1970."""

    results: str
    at: float


class WebSearches:
    """All searches that were sent."""

    def __init__(self, db: Database) -> None:
        self._db = db

    def begin(self, run_id: str, query: WebQuery, now: float) -> int:
        """Enter a search that is about to be sent and return its number.

        What is too old to be used is dropped with it.
        """
        self._db.execute("DELETE FROM web_searches WHERE at < ?", [now - LONGEST_KEPT * DAY])
        cursor = self._db.execute(
            "INSERT INTO web_searches (run_id, service, language, query, at) "
            "VALUES (?, ?, ?, ?, ?)",
            [run_id, query.service, query.language, query.words, now],
        )
        return int(cursor.lastrowid or 0)

    def finish(self, number: int, results: str) -> None:
        """Keep what the search of that number found."""
        self._db.execute("UPDATE web_searches SET results = ? WHERE number = ?", [results, number])

    def sent(self, run_id: str) -> int:
        """How many searches were sent for a run, failed ones too."""
        sql = "SELECT count(*) FROM web_searches WHERE run_id = ?"
        return int(self._db.execute(sql, [run_id]).fetchone()[0])

    def kept(self, query: WebQuery, since: float) -> KeptSearch | None:
        """The newest answer to the very same question that is not older, or None."""
        rows = self._db.query(
            "SELECT results, at FROM web_searches WHERE service = ? AND language = ? "
            "AND query = ? AND at >= ? AND results IS NOT NULL ORDER BY number DESC LIMIT 1",
            [query.service, query.language, query.words, since],
        )
        row = next(rows, None)
        return KeptSearch(row["results"], row["at"]) if row else None
