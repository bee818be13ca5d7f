"""Keys from the environment and the secrets file, which nothing but this reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from core.llm.keys import keys_here
from core.runtime.errors import ConfigError


def written(root: Path, text: str | bytes) -> Path:
    folder = root / ".streamlit"
    folder.mkdir()
    (folder / "secrets.toml").write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def test_flat_names_and_the_table_of_keys(tmp_path: Path) -> None:
    before = dict(os.environ)
    root = written(tmp_path, 'A_KEY = "flat-1"\nB_KEY = 5\n[keys]\nC_KEY = "table-1"\n[other]\nx=1')
    keys = keys_here({"A_KEY": "environment-1", "D_KEY": "environment-2"}, root)
    assert [keys.get(name) for name in ("A_KEY", "B_KEY", "C_KEY", "D_KEY", "keys")] == [
        "flat-1", None, "table-1", "environment-2", None,
    ]  # fmt: skip
    assert (keys.where("A_KEY"), keys.where("D_KEY")) == ("secrets", "environment")
    assert dict(os.environ) == before


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert keys_here({}, tmp_path).get("A_KEY") is None
    (tmp_path / ".streamlit").write_text("a file where a folder could be")
    assert keys_here({}, tmp_path).get("A_KEY") is None


@pytest.mark.parametrize(
    "text",
    ['A_KEY = "sk-secret-value', "A_KEY = sk-secret-value", b"A_KEY = '\xff sk-secret-value'"],
)
def test_a_broken_file_is_one_clear_sentence_without_its_content(
    tmp_path: Path, text: str | bytes
) -> None:
    with pytest.raises(ConfigError) as raised:
        keys_here({}, written(tmp_path, text))
    message = str(raised.value)
    assert "Expected TOML in .streamlit/secrets.toml" in message
    assert "\n" not in message
    assert "secret-value" not in message
    assert raised.value.__cause__ is None


def test_the_place_of_the_fault_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="line 2"):
        keys_here({}, written(tmp_path, 'A = "x"\nB = \n'))


def test_a_folder_or_a_flood_in_its_place_is_told(tmp_path: Path) -> None:
    (tmp_path / ".streamlit" / "secrets.toml").mkdir(parents=True)
    with pytest.raises(ConfigError, match="Expected to read keys from"):
        keys_here({}, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    with pytest.raises(ConfigError, match="found a large one"):
        keys_here({}, written(other, "#" * 1_000_001))
