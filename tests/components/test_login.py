"""Whether the door is there: as Streamlit reads the operator's secrets, and never by accident."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit import config
from streamlit.runtime.secrets import Secrets

from components.app import login
from core.runtime.errors import ConfigError
from tests.test_login import GOOD, toml


@pytest.fixture
def secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The only place where Streamlit looks; nothing lies there yet."""
    path = tmp_path / "secrets.toml"
    before = config.get_option("secrets.files")
    config.set_option("secrets.files", [str(path)])
    monkeypatch.setattr(st, "secrets", Secrets())
    st.cache_resource.clear()
    yield path
    st.cache_resource.clear()
    config.set_option("secrets.files", before)


def test_there_is_no_door_without_a_section(secrets: Path) -> None:
    assert not login.is_login_required()


def test_other_secrets_make_no_door(secrets: Path) -> None:
    secrets.write_text('[keys]\nOPENAI_API_KEY = "sk"\n')
    assert not login.is_login_required()


@pytest.mark.parametrize("text", ["[auth", "[auth]\n", "auth = 7\n", "[auth]\nclient_id = 7\n"])
def test_a_broken_or_half_written_file_opens_no_door(secrets: Path, text: str) -> None:
    secrets.write_text(text)
    for _ in range(2):
        with pytest.raises(ConfigError):
            login.is_login_required()


def test_a_door_stays_where_it_is_when_the_file_goes(
    secrets: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets.write_text(toml(GOOD))
    assert login.is_login_required()
    secrets.unlink()
    monkeypatch.setattr(st, "secrets", Secrets())
    assert login.is_login_required()
    assert login.is_logged_out()
