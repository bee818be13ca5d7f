"""Results that somebody asked for, kept in this server process with what they were counted from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import streamlit as st

from components import state
from core.store.sqlite import Mark

MOST = 20


@dataclass(frozen=True)
class Kept:
    """A result; `mark` is that of the answers it rests on, `at` when it was counted."""

    value: Any
    mark: Mark
    at: float


@st.cache_resource
def _shelf() -> dict[tuple[str, str], Kept]:
    """By home and name, the newest last."""
    return {}


def keep(name: str, value: Any, mark: Mark, at: float) -> None:
    """Keep a result under its name; what was there before is gone, and at last the oldest."""
    shelf = _shelf()
    shelf.pop((str(state.home()), name), None)
    shelf[str(state.home()), name] = Kept(value, mark, at)
    while len(shelf) > MOST:
        shelf.pop(next(iter(shelf)), None)


def kept(name: str) -> Kept | None:
    """What is kept under a name, however old; None where nobody has asked for it yet."""
    return _shelf().get((str(state.home()), name))


def answers_mark() -> Mark:
    """Changes with every answer, settled case and ended run."""
    with state.open_store() as store:
        return (*store.changes.of_corrections(), *store.changes.of_runs())
