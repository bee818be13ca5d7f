"""Words for labels, causes, prompts, times and numbers, the same on every page."""

from __future__ import annotations

import csv
import re
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from core.agents.rosters import ROSTER_DESCRIPTIONS
from core.baseline.wording import format_count as format_count
from core.baseline.wording import format_source as format_source
from core.baseline.wording import shorten
from core.documents.segmentation import detect_language, extract_terms, split_sentences
from core.schema.events import StepsReused
from core.schema.records import Label, PersonRole, QuoteStatus, Run, RunStatus
from core.schema.rosters import BUILT_IN_ROSTER, PROTOCOL_INFOS
from core.schema.run_state import can_resume
from core.store.ground_truth import GroundTruth


def _read_rows(name: str) -> list[dict[str, str]]:
    """Return the rows of a CSV file beside this module."""
    with (Path(__file__).parent / f"{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


LANGUAGE_WORDS = {"en": "English", "zh": "Chinese"}
PROMPT_FIELD_WORDS = {row["field"]: row["words"] for row in _read_rows("prompt_fields")}
_CAUSES = _read_rows("causes")
CAUSE_WORDS = {row["cause"]: row["words"] for row in _CAUSES}
CAUSE_ADVICE = {row["cause"]: row["advice"] for row in _CAUSES}
MAX_FILE_NAME_CHARS = 50
WORD_JOINER = "\u2060"
AUTOLINK_PATTERN = re.compile(
    r":(?=[^\W\d])|(?:https?|ftp)(?=://)|\bwww(?=\.)|@(?=\w)", re.IGNORECASE
)
# Long words such as file names, but no addresses, and where one may break: not within a number.
LONG_WORD = re.compile(r"(?<!\S)[^\s/\u2e80-\U0010ffff]{24,}(?!\S)")
NUMBER_START, NUMBER_REST = re.compile(r"\d[\d.,:/-]*$"), re.compile(r"[.,:/-]?\d")
WORD_BREAK = re.compile(r"(?<=[^\W\d][._-])(?=\w)|(?<=[._-])(?=[^\W\d_])")
ZERO_WIDTH_SPACE = "\u200b"
# The inside of a quote that holds right-to-left letters.
RIGHT_TO_LEFT_QUOTE = re.compile(
    r"(?<=[“„«])[^“”„«»]*[\u0590-\u08FF\uFB1D-\uFDFF\uFE70-\uFEFC][^“”„«»]*(?=[”»])"
)
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
ROSTER_TITLES = {
    BUILT_IN_ROSTER: "Built-in engine",
    "ceda": "Mistral and Claude (CEDA)",
    "ceda-mistral": "Mistral twice (CEDA)",
    "ceda-haiku": "Claude Haiku twice (CEDA)",
    "ollama": "Ollama",
    "address": "An address of yours",
    "mixed": "Value checker and Claude",
    "mixed-ollama": "Value checker and Ollama",
    "builtin-panel": "Built-in panel",
    "msa": "Panel of four models (MSA)",
    "local": "SmolLM2, very small",
}
PROTOCOL_WORDS = {info.name: info.words for info in PROTOCOL_INFOS}
PROTOCOL_USES = {info.name: info.fits for info in PROTOCOL_INFOS}


def format_roster(name: str, words: str = "", *, short: bool = False) -> str:
    """Return a roster's display name; `words` are its own description if it is not built in."""
    title = ROSTER_TITLES.get(name, name)
    description = ROSTER_DESCRIPTIONS.get(name, words)
    if short or not description:
        return title
    if name == BUILT_IN_ROSTER:
        return description
    return f"{title}: {description}" if title == name else f"{title} ({name}): {description}"


def format_status(run: Run) -> str:
    """Return a run's status; one that ended for want of a model or of money can be resumed."""
    if run.status == "finished" and can_resume(run):
        return "Can be resumed"
    return STATUS_WORDS[run.status]


def format_label(label: Label | None) -> str:
    """Return a label with its sign; a dash for None."""
    return f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "–"


def format_answer(author: str, label: Label) -> str:
    """Say what a person answered: “Mira says supported”."""
    return f"{author} says {LABEL_WORDS[label].lower()}"


def describe_overruling(
    author: str, label: Label, machine: Label | None, *, is_settled: bool = False
) -> str:
    """Say what a person did to the machine's label: “Overruled by Mira”."""
    if is_settled:
        done = "Settled"
    elif machine == label:
        done = "Confirmed"
    else:
        done = "Decided" if machine in (None, "unclear") else "Overruled"
    return f"{done} by {author}"


def format_probability(p: float | None) -> str:
    """Return a probability of being hallucinated with two decimals; empty for None."""
    return "" if p is None else f"{p:.2f}"


def format_language(code: str) -> str:
    """Return the code of a language; of a text too short or mixed to tell, in words."""
    return "not known" if code in ("", "und") else code


def format_protocol(name: str, *, short: bool = False) -> str:
    """Return a protocol's display name with its description; its id if it is unknown."""
    words = PROTOCOL_WORDS.get(name, name)
    return words.split(":")[0] if short else words


def format_label_probability(label: Label | None, p_hallucinated: float | None) -> str:
    """Return the probability of the label itself, in percent; empty if there is none."""
    if p_hallucinated is None or label in (None, "unclear"):
        return ""
    return format_percent(p_hallucinated if label == "hallucinated" else 1.0 - p_hallucinated)


def make_file_name(name: str, at: float, ending: str) -> str:
    """Return the name of a file that is downloaded: first words in any script, date, ending."""
    # Vowel signs of Indic scripts are marks, not letters.
    kept = (c if c.isalnum() or unicodedata.category(c)[0] == "M" else " " for c in name)
    words = "-".join("".join(kept).split())
    if len(words) > MAX_FILE_NAME_CHARS:
        words = words[: MAX_FILE_NAME_CHARS + 1].rpartition("-")[0] or words[:MAX_FILE_NAME_CHARS]
    return f"{words or 'counterpoint'}-{format_time(at).replace(' ', '-')[:10]}.{ending}"


def format_time(at: float) -> str:
    """Format a timestamp in local time to the minute; an imported one may be out of range."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "an unknown time"


def format_duration(value: float) -> str:
    """Format a duration."""
    if value < 1:
        return "under a second"
    if value < 90:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min"


def format_elapsed(value: float) -> str:
    """Format the time of something that still goes on, to the second."""
    minutes, seconds = divmod(int(value), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else format_duration(value)


def format_rows(numbers: Sequence[int]) -> str:
    """Format rows of a table by number: “Row 3”, “Rows 3, 5”."""
    return f"Row{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def format_percent(value: float) -> str:
    """Format a share as a whole percentage that is never rounded to certainty."""
    if value >= 0.995:
        return "over 99%"
    if value <= 0.005:
        return "under 1%"
    return f"{100 * value:.0f}%"


def format_bytes(number: int) -> str:
    """Format a number of bytes as kB or MB."""
    return f"{number / 1e6:.1f} MB" if number >= 1e6 else f"{max(1, number // 1000)} kB"


def clip_text(text: str, limit: int) -> str:
    """Return the text on one line of at most `limit` characters, not cut inside a number.

    A character that is as wide as two, such as a Chinese one, counts as two.
    """
    flat = " ".join(text.split())
    widths = (2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in flat[: limit + 1])
    ends = list(accumulate(widths))  # the width of the text up to and with each character
    if not ends or ends[-1] <= limit:
        return flat
    fitting = bisect_right(ends, limit - 1)
    head, rest = flat[:fitting], flat[fitting:]
    if NUMBER_REST.match(rest):  # part of a number is another number
        head = NUMBER_START.sub("", head) or head
    return head.rstrip() + "…"


def break_long_words(text: str, mark: str = ZERO_WIDTH_SPACE) -> str:
    """Put a mark where a file name may break onto the next line: after a dot, line or dash."""
    return LONG_WORD.sub(lambda match: WORD_BREAK.sub(mark, match[0]), text)


def clip_sentences(text: str, proof: str, claim: str, limit: int) -> str:
    """Return whole sentences of the text, as many as `limit` characters hold, on one line.

    The sentence with the words `proof` is among them, else the one that shares most words with the
    `claim`. One that is too long by itself is cut at word ends.
    """
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    places = split_sentences(flat, detect_language(flat))
    if not places:
        return shorten(flat, limit)
    words = set(extract_terms(claim))
    best = max(
        range(len(places)),
        key=lambda n: (
            bool(proof) and proof in flat[places[n].start : places[n].end],
            len(words & set(extract_terms(flat[places[n].start : places[n].end]))),
        ),
    )
    start, end = places[best].start, places[best].end
    if end - start > limit:
        at = max(start, flat.find(proof, start, end)) - (limit - len(proof)) // 2
        if at > start:
            at = min(at, end - limit)
            start = (flat.find(" ", at, end) + 1) or at
        clipped = shorten(flat[start:end], limit)
    else:
        # What follows explains more often than what precedes.
        for place in (*places[best + 1 :], *reversed(places[:best])):
            wider = min(start, place.start), max(end, place.end)
            if wider[1] - wider[0] > limit:
                break
            start, end = wider
        clipped = flat[start:end]
    more = end < len(flat) and not clipped.endswith("…")
    return ("… " if start else "") + clipped + (" …" if more else "")


def isolate_right_to_left(text: str) -> str:
    """Return our sentence with its right-to-left quotes kept in their own order, marks included."""
    return RIGHT_TO_LEFT_QUOTE.sub("\u2068\\g<0>\u2069", text)


def escape_markdown(text: str) -> str:
    """Escape the text so that Streamlit's Markdown shows it literally, on one line.

    Streamlit makes icons (`:material/home:`), emoji and links after it has removed backslashes; an
    invisible word joiner breaks them up.
    """
    flat = break_long_words(" ".join(text.split()))
    flat = AUTOLINK_PATTERN.sub(lambda match: match[0] + WORD_JOINER, flat)
    flat = isolate_right_to_left(flat)
    return "".join("\\" + c if c in "\\`*_{}[]()#+-.!|<>~$:&^=" else c for c in flat)


def describe_reuse(reused: StepsReused) -> str:
    """Say what a run took over from an earlier one with the same inputs."""
    if reused.through == "judgement":
        return "Evidence and debate are those of an earlier run; the classifier's label is new."
    return "The statements are those of an earlier run; evidence and debate are new."


def describe_people_verdict(truth: GroundTruth, machine: Label | None) -> str:
    """Say what people did to the machine's label: “Overruled by Mira: ✗ Hallucinated”."""
    words, label = describe_people(truth, machine), truth.common_label
    return f"{words}: {format_label(label)}" if label else words


def describe_people(truth: GroundTruth, machine: Label | None) -> str:
    """Say the same without the label; where answers differ and do not decide, that they do."""
    who = truth.people[0] if len(truth.people) == 1 else f"{len(truth.people)} people"
    label = truth.common_label
    if label is None:
        return f"{who} disagree"
    if truth.basis == "gold":
        return "By the imported answer"
    return describe_overruling(who, label, machine, is_settled=truth.basis == "settled")
