"""Settings with their defaults and bounds, and where things lie on disk.

Values enter at the edge (`Settings.from_mapping`, `home_from`) and are passed down; no other
module takes a decision from the environment. Where a process of its own is started (reading a
file, training), its environment is made there: what loaders need, quiet and modest libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from core.runtime.errors import ConfigError

PROJECT_ROOT = Path(__file__).resolve().parents[2]
ENCODER_DIR = PROJECT_ROOT / ".models" / "encoder"
E5_DIR = PROJECT_ROOT / ".models" / "e5"
HOME_VARIABLE = "COUNTERPOINT_HOME"
MEGABYTE = 1024 * 1024


@dataclass(frozen=True)
class Setting:
    """How one setting is shown and bounded: `low <= value <= high`."""

    label: str
    unit: str
    low: int
    high: int
    help: str


def _setting(default: int, label: str, unit: str, low: int, high: int, help: str) -> Any:  # noqa: A002
    """A field of `Settings` with how it is shown and bounded."""
    return field(default=default, metadata={"about": Setting(label, unit, low, high, help)})


@dataclass(frozen=True)
class Settings:
    """Everything an operator may tune."""

    file_megabytes: int = _setting(
        50, "Largest file", "MB", 1, 500, "Larger files are refused unread."
    )
    pages: int = _setting(500, "Most pages", "pages", 1, 5000, "A longer document is refused.")
    ocr_pages: int = _setting(
        *(60, "Most pages read by OCR", "pages", 0, 1000),
        "Pages without text beyond this number are left out, and the run says so.",
    )
    megapixels: int = _setting(
        40, "Largest image", "megapixels", 1, 400, "Guards against image bombs."
    )
    unpacked_megabytes: int = _setting(
        200, "Largest unpacked size", "MB", 1, 2000, "Guards against zip bombs in DOCX files."
    )
    reading_seconds: int = _setting(
        180, "Longest reading time", "seconds", 5, 3600, "A file that takes longer is refused."
    )
    source_characters: int = _setting(
        *(3_000_000, "Most text in one source", "characters", 1000, 50_000_000),
        "Counted after reading.",
    )
    response_characters: int = _setting(
        60_000, "Longest response", "characters", 100, 1_000_000, "The text under review."
    )
    table_claims: int = _setting(500, "Most claims in a table", "rows", 1, 5000, "For Batch check.")
    passages: int = _setting(
        5, "Passages per statement", "passages", 1, 30, "n in CEDA 4.4; the paper uses 5."
    )
    max_turns: int = _setting(
        *(5, "Most debate turns", "turns", 1, 12),
        "N in CEDA 4.4; 1 is a plain judge, the paper uses 5.",
    )
    workers: int = _setting(2, "Runs at once", "runs", 1, 16, "Further runs wait their turn.")
    lease_seconds: int = _setting(
        *(6, "Run lease", "seconds", 3, 120),
        "A run whose process has been silent for so long counts as interrupted.",
    )
    run_cents: int = _setting(
        *(100, "Most money per run", "US cents", 0, 1_000_000),
        "A call to a language model that could pass it is not sent; 0 sends none that costs.",
    )
    day_cents: int = _setting(
        *(2_000, "Most money per day", "US cents", 0, 10_000_000),
        "Everybody together, by the UTC day.",
    )
    person_day_cents: int = _setting(
        1_000, "Highest cost per person and day", "US cents", 0, 10_000_000, "By the UTC day."
    )
    run_tokens: int = _setting(
        *(200_000, "Most tokens per run", "tokens", 0, 1_000_000_000),
        "For models of no known price, which never count as free; 0 sends none of them.",
    )
    day_tokens: int = _setting(
        *(4_000_000, "Most tokens per day", "tokens", 0, 10_000_000_000),
        "For models of no known price; everybody together, by the UTC day.",
    )
    person_day_tokens: int = _setting(
        *(2_000_000, "Most tokens per person and day", "tokens", 0, 10_000_000_000),
        "For models of no known price, by the UTC day.",
    )
    web_searches: int = _setting(
        *(20, "Most web searches per run", "searches", 0, 1000),
        "Only where a provider is chosen under Web search; one more is not sent, and the run "
        "says so. 0 sends none.",
    )
    web_days: int = _setting(
        *(7, "Web results kept", "days", 0, 30),
        "The same search is answered again from what was found; 0 always searches anew.",
    )

    @staticmethod
    def from_mapping(values: Mapping[str, object]) -> Settings:
        """Settings from stored values; unknown names and values out of bounds are refused."""
        settings = Settings()
        for name, value in values.items():
            settings = settings.with_value(name, value)
        return settings

    def with_value(self, name: str, value: object) -> Settings:
        """A copy with one value changed.

        Raises:
            ConfigError: the name is unknown or the value lies outside its bounds.
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
        """Name to value, for storing."""
        return {item.name: getattr(self, item.name) for item in fields(self)}


SETTINGS: dict[str, Setting] = {item.name: item.metadata["about"] for item in fields(Settings)}


def home_from(environment: Mapping[str, str], given: str | None = None) -> Path:
    """Where database, documents, indexes and models lie: `--home`, the variable, or `~`."""
    chosen = given or environment.get(HOME_VARIABLE) or str(Path.home() / ".counterpoint")
    try:
        return Path(chosen).expanduser().resolve()
    except (RuntimeError, ValueError, OSError) as error:
        raise ConfigError(
            f"Expected a folder's path for the home, found “{shown_safely(chosen)}”: {error}."
        ) from error


def shown_safely(text: str) -> str:
    """The text as UTF-8 can hold it: arguments may carry bytes that are none."""
    return text.encode("utf-8", "replace").decode("utf-8")
