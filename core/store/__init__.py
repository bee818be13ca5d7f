"""The one place that writes SQL: append-only where people are concerned, one transaction each."""

from core.store.database import Store, open_store

__all__ = ["Store", "open_store"]
