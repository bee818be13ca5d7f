"""The only package that writes SQL; what people enter is append-only, one transaction each."""

from core.store.database import Store, open_store

__all__ = ["Store", "open_store"]
