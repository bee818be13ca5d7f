"""Settings with their defaults and bounds, and the paths of files.

Values enter at the edge (`Settings.from_mapping`, `resolve_home`) and are passed down. No other
module bases a decision on the environment, except for settings that its own process needs.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path

from core.runtime.errors import ConfigError

PROJECT_ROOT = Path(__file__).resolve().parents[2]
ENCODER_DIR = PROJECT_ROOT / ".models" / "encoder"
E5_DIR = PROJECT_ROOT / ".models" / "e5"
SAMPLE_FOLDER = "sample"  # in a home, of a sample project or of one for each login
SAMPLE_MARK = "sample"  # a file in it; without it, a removed folder was made anew by a late write
HOME_VARIABLE = "COUNTERPOINT_HOME"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Setting:
    """How one setting is displayed and bounded: `low <= value <= high`."""

    label: str
    unit: str
    low: int
    high: int
    help: str


@dataclass(frozen=True)
class Settings:
    """All values that an operator may change; labels and bounds are in `settings.csv`."""

    file_megabytes: int = 50
    pages: int = 500
    ocr_pages: int = 60
    megapixels: int = 40
    unpacked_megabytes: int = 200
    reading_seconds: int = 180
    source_characters: int = 3_000_000
    response_characters: int = 60_000
    table_claims: int = 500
    passages: int = 5
    max_turns: int = 5
    workers: int = 2
    lease_seconds: int = 6
    requests_per_second: int = 0
    run_cents: int = 100
    day_cents: int = 2000
    person_day_cents: int = 1000
    run_tokens: int = 200_000
    day_tokens: int = 4_000_000
    person_day_tokens: int = 2_000_000
    web_searches: int = 20
    web_days: int = 7

    @staticmethod
    def from_mapping(values: Mapping[str, object]) -> Settings:
        """Make settings from stored values.

        Raises ConfigError for unknown names and values out of bounds.
        """
        settings = Settings()
        for name, value in values.items():
            settings = settings.with_value(name, value)
        return settings

    def with_value(self, name: str, value: object) -> Settings:
        """Return a copy with one value changed.

        Raises ConfigError if there is no such setting, or the value is out of bounds.
        """
        if name not in SETTINGS:
            raise ConfigError(
                f"There is no setting called “{name}”; Settings lists those there are."
            )
        about = SETTINGS[name]
        if isinstance(value, bool) or not isinstance(value, int):
            raise ConfigError(f"{about.label}: expected a whole number, found {value!r}.")
        if not about.low <= value <= about.high:
            raise ConfigError(
                f"{about.label}: expected {about.low} to {about.high} {about.unit}, found {value}."
            )
        return replace(self, **{name: value})

    def as_dict(self) -> dict[str, int]:
        """Return the values by name, for storing."""
        return asdict(self)


with Path(__file__).with_name("settings.csv").open(encoding="utf-8", newline="") as _table:
    SETTINGS: dict[str, Setting] = {
        row["name"]: Setting(
            row["label"], row["unit"], int(row["low"]), int(row["high"]), row["help"]
        )
        for row in csv.DictReader(_table)
    }


def resolve_home(environment: Mapping[str, str], given: str | None = None) -> Path:
    """Return the data folder: `--home`, else the environment variable, else a folder in `~`."""
    path = given or environment.get(HOME_VARIABLE) or str(Path.home() / ".counterpoint")
    return _resolve_path(path, "" if os.path.isabs(path) else os.getcwd())  # noqa: PTH109, PTH117


@lru_cache(maxsize=64)  # each page asks dozens of times, and asks the system as seldom as possible
def _resolve_path(path: str, folder: str) -> Path:
    """Return the absolute path as seen from the folder."""
    try:
        return (folder / Path(path).expanduser()).resolve()
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigError(
            f"Expected a folder's path for the home, found “{replace_invalid_bytes(path)}”: "
            f"{error}."
        ) from error


def has_sample(folder: Path) -> bool:
    """Return True if the folder holds a sample project, whole or in part."""
    return (folder / SAMPLE_MARK).exists()


def replace_invalid_bytes(text: str) -> str:
    """Return the text with bytes replaced that are not UTF-8, as arguments may hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
