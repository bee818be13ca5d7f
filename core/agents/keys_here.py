"""The keys of this machine: the environment and `.streamlit/secrets.toml`, read without streamlit.

Streamlit would put every secret into the environment; here they stay where they are.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path

from core.errors import ConfigError
from core.models.keys import Keys

SECRETS = Path(".streamlit") / "secrets.toml"
TABLE = "keys"
MOST_BYTES = 1_000_000


def keys_here(environment: Mapping[str, str], root: Path) -> Keys:
    """Keys of the environment as it is now, and of the secrets file under the project's root.

    Raises:
        ConfigError: the file is there and cannot be read; the message shows nothing of it.
    """
    return Keys(dict(environment), _secrets(root / SECRETS))


def _secrets(path: Path) -> dict[str, str]:
    """Texts that stand in the file by themselves or under `[keys]`; the table goes first."""
    try:
        with path.open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ConfigError(f"Expected a small file of keys at {SECRETS}, found a large one.")
        parsed = tomllib.loads(data.decode("utf-8-sig"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        why = error.strerror or os.strerror(error.errno or 0)
        raise ConfigError(f"Expected to read keys from {SECRETS}, found: {why}.") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f'Expected TOML in {SECRETS}, such as OPENAI_API_KEY = "…"; found something else'
            f"{_place(error)}. Correct it there."
        ) from None  # the parser's own words may repeat a key
    table = parsed.get(TABLE)
    named = {**parsed, **(table if isinstance(table, dict) else {})}
    return {name: value for name, value in named.items() if isinstance(value, str)}


def _place(error: Exception) -> str:
    """Where the parser stumbled, without what it found there."""
    _, found, place = str(error).rpartition("(at ")
    return f" at {place.rstrip(')')}" if found and "line" in place else ""
