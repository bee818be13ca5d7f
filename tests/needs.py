"""What a test needs of the machine: missing things are said loudly, and fail where CI demands."""

from __future__ import annotations

import os
import shutil

import pytest

SKIPS = "COUNTERPOINT_SKIPS"


def need(there: bool, what: str) -> None:
    """Skip the test with its reason on screen; conftest fails it where skipping is not allowed."""
    if not there:
        pytest.skip(what)


def chromium() -> str:
    """Path of a Chromium, from the variable CHROMIUM or the usual names."""
    given = os.environ.get("CHROMIUM", "")
    names = [given, "chromium", "chromium-browser", "google-chrome"]
    return next((path for name in names if name and (path := shutil.which(name))), "")
