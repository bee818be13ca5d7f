"""How labels, causes, prompts, times and numbers are put in words, the same on every page."""

from __future__ import annotations

import csv
import re
import time
from pathlib import Path

from core.agents.rosters import ROSTER_WORDS
from core.schema.events import StepsReused
from core.schema.progress import can_resume
from core.schema.records import Label, Passage, PersonRole, Quote, QuoteStatus, Run, RunStatus
from core.schema.rosters import BUILT_IN, PROTOCOL_INFOS


def _rows(name: str) -> list[dict[str, str]]:
    """The rows of a table beside this file."""
    with (Path(__file__).parent / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


LANGUAGE_WORDS = {"en": "English", "zh": "Chinese"}
FIELD_WORDS = {row["field"]: row["words"] for row in _rows("prompt_fields")}
_CAUSES = _rows("causes")
CAUSE_WORDS = {row["cause"]: row["words"] for row in _CAUSES}
CAUSE_ADVICE = {row["cause"]: row["advice"] for row in _CAUSES}


WORD_JOINER = "\u2060"
MADE_LATER = re.compile(r":(?=[^\W\d])|(?:https?|ftp)(?=://)|\bwww(?=\.)|@(?=\w)", re.IGNORECASE)
LABEL_WORDS: dict[Label, str] = {
    "supported": "Supported",
    "hallucinated": "Hallucinated",
    "unclear": "Unclear",
}
LABEL_SIGNS: dict[Label, str] = {"supported": "✓", "hallucinated": "✗", "unclear": "?"}
STATUS_WORDS: dict[RunStatus, str] = {
    "queued": "Waiting for its turn",
    "running": "Running",
    "finished": "Finished",
    "failed": "Failed",
    "stopped": "Stopped",
    "interrupted": "Interrupted",
}
QUOTE_SIGNS: dict[QuoteStatus, str] = {"verified": "✓", "fuzzy": "≈", "not_found": "✗"}
QUOTE_WORDS: dict[QuoteStatus, str] = {
    "verified": "found word for word",
    "fuzzy": "found almost word for word",
    "not_found": "not found in the sources",
}
ROLE_WORDS: dict[PersonRole, str] = {
    "annotator": "Annotator: checks and corrects",
    "lead": "Lead: also retrains and activates",
    "admin": "Admin: also sets up the project",
}
PROTOCOL_WORDS = {way.name: way.words for way in PROTOCOL_INFOS}
PROTOCOL_FITS = {way.name: way.fits for way in PROTOCOL_INFOS}


def roster_words(name: str, words: str = "", *, short: bool = False) -> str:
    """A roster as people know it; `words` are those of its sheet, where it is not one of ours."""
    known = ROSTER_WORDS.get(name, words)
    if name == BUILT_IN:
        return known.split(":")[0] if short else known
    return name if short or not known else f"{name}: {known}"


def status_words(run: Run) -> str:
    """How far a run came; an end for want of a model or of money is no verdict, and not the end."""
    if run.status == "finished" and can_resume(run):
        return "Can be resumed"
    return STATUS_WORDS[run.status]


def signed(label: Label | None) -> str:
    """A label with its sign; a dash for none."""
    return f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "–"


def p_words(p: float | None) -> str:
    """A probability of being hallucinated; empty for none."""
    return "" if p is None else f"{p:.2f}"


def protocol_words(name: str, *, short: bool = False) -> str:
    """A protocol as people know it; its name where we know nothing better."""
    words = PROTOCOL_WORDS.get(name, name)
    return words.split(":")[0] if short else words


def place_words(place: Passage | Quote) -> str:
    """The source with its page, in words."""
    return f"{place.source}, p. {place.page}" if place.page else place.source


def when(at: float) -> str:
    """A moment in local time, to the minute; an imported one may be none that a calendar knows."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def seconds(value: float) -> str:
    """A duration as people say it."""
    if value < 1:
        return "under a second"
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min"


def counted(number: int, noun: str) -> str:
    """“1 call”, “2 calls”, “2 summaries”."""
    if number == 1:
        return f"{number} {noun}"
    is_changed = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{number:,} {noun[:-1]}ies" if is_changed else f"{number:,} {noun}s"


def percent(value: float) -> str:
    """A share as a whole percentage that is never rounded to certainty."""
    if value >= 0.995:
        return "over 99%"
    if value <= 0.005:
        return "under 1%"
    return f"{100 * value:.0f}%"


def size(number: int) -> str:
    """A number of bytes in words, as kB or MB."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{max(1, number // 1000)} kB"


def clipped(text: str, limit: int) -> str:
    """One line of at most `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1].rstrip() + "…"


def escaped(text: str) -> str:
    """The text so that Streamlit's Markdown shows it letter by letter, on one line.

    Icons (`:material/home:`), emoji names and bare addresses are made of the text after backslashes
    are gone; an invisible word joiner keeps them apart.
    """
    flat = MADE_LATER.sub(lambda found: found[0] + WORD_JOINER, " ".join(text.split()))
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|<>~$:&^=" else c for c in flat)


def reused_words(reused: StepsReused) -> str:
    """What a run took over from an earlier one, whose inputs were the same."""
    if reused.through == "judgement":
        return "Evidence and debate are those of an earlier run; the classifier's label is new."
    return "The statements are those of an earlier run; evidence and debate are new."
