"""Imports as if an optional package were missing, where it would only cost time at the start."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import cast


@contextlib.contextmanager
def without(package: str) -> Iterator[None]:
    """Inside, importing the package fails as if it were not installed; one loaded before stays.

    `None` in `sys.modules` is Python's own way to say so. Only for imports of libraries that
    allow for the package's absence.
    """
    if package in sys.modules:
        yield
        return
    modules = cast("dict[str, object]", sys.modules)
    modules[package] = None
    try:
        yield
    finally:
        if modules.get(package) is None:
            modules.pop(package, None)
