"""Settings with their defaults and bounds, and where things lie on disk.

Values enter at the edge (`Settings.from_mapping`, `home_from`) and are passed down; no other
module takes a decision from the environment. Where a process of its own is started (reading a
file, training), its environment is made there: what loaders need, quiet and modest libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path

from core.errors import ConfigError

PROJECT_ROOT = Path(__file__).resolve().parent.parent
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


@dataclass(frozen=True)
class Settings:
    """Everything an operator may tune. Sizes in the units that `SETTINGS` names."""

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
    run_cents: int = 100
    day_cents: int = 2_000
    person_day_cents: int = 1_000
    run_tokens: int = 200_000
    day_tokens: int = 4_000_000
    person_day_tokens: int = 2_000_000
    web_searches: int = 20
    web_days: int = 7

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


SETTINGS: dict[str, Setting] = {
    "file_megabytes": Setting("Largest file", "MB", 1, 500, "Larger files are refused unread."),
    "pages": Setting("Most pages", "pages", 1, 5000, "A longer document is refused."),
    "ocr_pages": Setting(
        "Most pages read by OCR",
        "pages",
        0,
        1000,
        "Pages without text beyond this number are left out, and the run says so.",
    ),
    "megapixels": Setting("Largest image", "megapixels", 1, 400, "Guards against image bombs."),
    "unpacked_megabytes": Setting(
        "Largest unpacked size", "MB", 1, 2000, "Guards against zip bombs in DOCX files."
    ),
    "reading_seconds": Setting(
        "Longest reading time", "seconds", 5, 3600, "A file that takes longer is refused."
    ),
    "source_characters": Setting(
        "Most text in one source", "characters", 1000, 50_000_000, "Counted after reading."
    ),
    "response_characters": Setting(
        "Longest response", "characters", 100, 1_000_000, "The text under review."
    ),
    "table_claims": Setting("Most claims in a table", "rows", 1, 5000, "For Batch check."),
    "passages": Setting(
        "Passages per statement", "passages", 1, 30, "n in CEDA 4.4; the paper uses 5."
    ),
    "max_turns": Setting(
        "Most debate turns", "turns", 1, 12, "N in CEDA 4.4; 1 is a plain judge, the paper uses 5."
    ),
    "workers": Setting("Runs at once", "runs", 1, 16, "Further runs wait their turn."),
    "lease_seconds": Setting(
        "Run lease",
        "seconds",
        3,
        120,
        "A run whose process has been silent for so long counts as interrupted.",
    ),
    "run_cents": Setting(
        "Most money per run",
        "US cents",
        0,
        1_000_000,
        "A call to a language model that could pass it is not sent; 0 sends none that costs.",
    ),
    "day_cents": Setting(
        "Most money per day", "US cents", 0, 10_000_000, "Everybody together, by the UTC day."
    ),
    "person_day_cents": Setting(
        "Highest cost per person and day", "US cents", 0, 10_000_000, "By the UTC day."
    ),
    "run_tokens": Setting(
        "Most tokens per run",
        "tokens",
        0,
        1_000_000_000,
        "For models of no known price, which never count as free; 0 sends none of them.",
    ),
    "day_tokens": Setting(
        "Most tokens per day",
        "tokens",
        0,
        10_000_000_000,
        "For models of no known price; everybody together, by the UTC day.",
    ),
    "person_day_tokens": Setting(
        "Most tokens per person and day",
        "tokens",
        0,
        10_000_000_000,
        "For models of no known price, by the UTC day.",
    ),
    "web_searches": Setting(
        "Most web searches per run",
        "searches",
        0,
        1000,
        "Only where a provider is chosen under Web search; one more is not sent, and the run says "
        "so. 0 sends none.",
    ),
    "web_days": Setting(
        "Web results kept",
        "days",
        0,
        30,
        "The same search is answered again from what was found; 0 always searches anew.",
    ),
}


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
