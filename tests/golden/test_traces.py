"""What the prepared cases come to, event by event, is what it was."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.golden.traces import KEPT, traces_of

pytestmark = pytest.mark.slow


def test_every_event_of_the_prepared_cases_is_as_it_was(tmp_path: Path) -> None:
    kept: dict[str, list[str]] = json.loads(KEPT.read_text(encoding="utf-8"))
    found = traces_of(tmp_path)
    changed = {
        name: (kept.get(name), told)
        for name, told in found.items()
        if told not in kept.get(name, ())
    }
    assert changed == {}
    assert kept.keys() == found.keys()
