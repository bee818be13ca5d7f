"""Pages are driven through app.py, with a home and process-wide caches of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parent.parent.parent
TIMEOUT = 60


@pytest.fixture(autouse=True)
def _fresh_caches() -> Iterator[None]:
    """Streamlit's caches belong to the process and would leak between tests."""
    st.cache_resource.clear()
    st.cache_data.clear()
    yield
    st.cache_resource.clear()
    st.cache_data.clear()


@pytest.fixture
def app() -> Callable[..., AppTest]:
    """Opens the app, on a page if one is named, with query parameters."""

    def open_app(page: str = "", /, **query: str) -> AppTest:
        at = AppTest.from_file(str(ROOT / "app.py"), default_timeout=TIMEOUT).run()
        assert not at.exception
        if page:
            at.switch_page(page)
        for name, value in query.items():
            at.query_params[name] = value
        at.run()
        assert not at.exception, at.exception[0].message
        return at

    return open_app
