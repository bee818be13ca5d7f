"""sqlite-utils without pandas, which it imports only to accept data frames: we never give any."""

from core.late import without

with without("pandas"):  # a third of a second on every start
    from sqlite_utils import Database, Migrations

__all__ = ["Database", "Migrations"]
