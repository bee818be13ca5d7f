"""Wording of the built-in agents: short quotes, lists, turns of at most 100 tokens (CEDA 4.4).

The module also words verdicts as the built-in judge does, since the classifier's seed head was
trained on those, and corrects a response by replacing wrong values with the evidence's values of
the same form (SC-MAKS 3.2, the output O*). Words without such a value are left as they are.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.documents.readers import guess_file_type
from core.schema.records import DebatePoint, Label, Passage, Quote, Span, Stance, Turn, TurnReply

SEED_VERDICTS: dict[Label, str] = {
    "supported": "The judge agrees that the statement is correct. "
    "Verdict: CORRECT, the statement is supported.",
    "hallucinated": "The judge agrees that the statement is wrong. "
    "Verdict: INCORRECT, the statement is hallucinated.",
}
MAX_PROSE_CHARS = 300  # characters
RULES_FILE_CONTENT = tomllib.loads(
    Path(__file__).with_name("rules.toml").read_text(encoding="utf-8")
)
AGENT_RULES: Mapping[str, str] = RULES_FILE_CONTENT["rules"]
"""The rule that each built-in agent follows, as people read it."""
DEBATER_DOUBTS: Mapping[str, Mapping[Stance, str]] = RULES_FILE_CONTENT["doubts"]
"""How each debater may be mistaken, by stance."""
MAX_TURN_WORDS = 75
MAX_QUOTE_CHARS = 160
STANCE_WORDS: dict[Stance, str] = {
    "supported": "correct", "hallucinated": "wrong", "unclear": "not decided by this evidence"
}  # fmt: skip
CERTAINTY_WORDS = ((0.95, "certainly"), (0.85, "very likely"), (0.7, "likely"), (0.0, "rather"))
"""The certainty of a verdict in words, by the least probability of its side."""
SIDE_NAMES: dict[Stance, str] = {"supported": "CORRECT", "hallucinated": "WRONG", "unclear": "OPEN"}
"""The first word of an answer, and the sides that CopMAD assigns."""
REPLACEABLE_CATEGORIES = frozenset({"number_or_date", "wrong_entity"})
MAX_VALUE_CHARS = 60  # characters; longer texts are parts of sentences, not values
DIGIT = re.compile(r"\d")
ELLIPSIS = "…"


def frame_verdict(label: Label, prose: str) -> str:
    """Return the text that the classifier reads (CEDA 3.4): the prose between worded verdicts.

    The seed head learned from the built-in judge's short texts. It takes prose that weighs
    objections for blame, and long prose hides the verdict from it, so the verdict is repeated
    before and after the prose's beginning and end. A head trained on people's corrections of such
    runs weighs the prose itself.
    """
    words, half = SEED_VERDICTS[label], MAX_PROSE_CHARS // 2
    if len(prose) > MAX_PROSE_CHARS:  # longer than the head can read
        prose = f"{prose[:half].rsplit(' ', 1)[0]} … {prose[-half:].split(' ', 1)[-1]}"
    return " ".join([words, words, prose, words, words]) if prose else words


def quote_passage(passage: Passage) -> Quote:
    """Return the whole passage as a quote, verified because it is the source's own words."""
    return Quote(
        text=passage.text,
        status="verified",
        source_id=passage.source_id,
        source=passage.source,
        page=passage.page,
        start=passage.start,
        end=passage.end,
    )


def cite_passage(passage: Passage) -> str:
    """Return the passage in quotation marks with its source, shortened for a turn."""
    return f"“{shorten(passage.text)}” ({format_source(passage)})"


def cite_quote(quote: Quote) -> str:
    """Return the quote in quotation marks with its source."""
    return f"“{quote.text}” ({format_source(quote)})" if quote.source else f"“{quote.text}”"


def format_source(place: Passage | Quote) -> str:
    """Return source and page as people name them; an image has no pages."""
    kind = guess_file_type(place.source)
    is_image = isinstance(place, Passage) and place.is_image
    if place.page is None or is_image or (kind is not None and kind.kind == "image"):
        return place.source
    return f"{place.source}, p. {place.page}"


def shorten(text: str, limit: int = MAX_QUOTE_CHARS) -> str:
    """Return the text on one line, cut at a word with an ellipsis if it exceeds the limit."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[:limit]
    return (cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut).rstrip(" ,;:") + "…"


def join_quoted(words: Sequence[str], most: int = 3) -> str:
    """Return “a”, “b” and “c”; items beyond `most` are only counted."""
    shown = [f"“{shorten(word, 60)}”" for word in words[:most]]
    return join_names([*shown, f"{len(words) - most} more"] if len(words) > most else shown)


def join_names(names: Sequence[str]) -> str:
    """Return the names as a list in words: Ada, Ben and Cleo."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun: “1 call”, “2 calls”, “2 summaries”."""
    if number == 1:
        return f"{number} {noun}"
    is_changed = noun.endswith("y") and noun[-2:-1] not in "aeiou"
    return f"{number:,} {noun[:-1]}ies" if is_changed else f"{number:,} {noun}s"


def choose_reply(stance: Stance, turns: Sequence[Turn]) -> TurnReply:
    """Return whether the stance agrees with the last turn; the first turn replies to the claim."""
    last: Stance = turns[-1].stance if turns else "supported"
    return "agree" if stance == last else "deny"


def join_briefly(sentences: Sequence[str]) -> str:
    """Join the sentences, dropping the last ones if they would exceed the word limit."""
    chosen: list[str] = []
    for sentence in sentences:
        if chosen and sum(len(s.split()) for s in [*chosen, sentence]) > MAX_TURN_WORDS:
            break
        chosen.append(sentence)
    return " ".join(chosen)


def capitalise(sentence: str) -> str:
    """Return the sentence with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


@dataclass(frozen=True)
class TextEdit:
    """A replacement for `[start, end)` of the response; edits of greater weight win."""

    start: int
    end: int
    instead: str
    weight: float


def find_edits(points: Iterable[DebatePoint], response: str) -> list[TextEdit]:
    """Return the distinct edits of those points whose value fits."""
    edits = [
        TextEdit(point.start, point.end, _match_case(point.text, point.evidence), point.weight)
        for point in points
        if point.finding == "contradicted"
        and response[point.start : point.end] == point.text
        and is_fitting_value(point.text, point.evidence, point.category)
    ]
    return list(dict.fromkeys(edits))


def find_span_edits(spans: Iterable[Span], response: str) -> list[TextEdit]:
    """Return the edits of those spans that have a replacement that fits."""
    return [
        TextEdit(span.start, span.end, _match_case(span.text, span.instead), span.p)
        for span in spans
        if response[span.start : span.end] == span.text
        and is_fitting_value(span.text, span.instead, span.category)
    ]


def apply_edits(response: str, edits: Sequence[TextEdit]) -> str:
    """Return the response with the edits applied; of overlapping edits the one of greater weight.

    A place for which edits of equal weight want different words is left as it is.
    """
    chosen: list[TextEdit] = []
    for edit in sorted(edits, key=lambda m: (-m.weight, m.start)):
        if not any(edit.start < other.end and other.start < edit.end for other in chosen):
            chosen.append(edit)
    for edit in sorted(chosen, key=lambda m: -m.start):
        overlapping = [m for m in edits if edit.start < m.end and m.start < edit.end]
        if not any(m.weight == edit.weight and m.instead != edit.instead for m in overlapping):
            response = response[: edit.start] + edit.instead + response[edit.end :]
    return response


def is_fitting_value(words: str, value: str, category: str) -> bool:
    """Return True if the value can replace the words without changing the rest of the sentence.

    The value must be short and on one line. Figures replace only figures, and both or neither must
    begin with letters, as bounds do (“more than 40”), and end with letters, as units do.
    """
    if category not in REPLACEABLE_CATEGORIES or not value.strip() or not words.strip():
        return False
    if len(value) > MAX_VALUE_CHARS or ELLIPSIS in value or "\n" in value:
        return False
    if bool(DIGIT.search(words)) != bool(DIGIT.search(value)):
        return False
    old, new = words.strip(), value.strip()
    is_alike = all(old[index].isdigit() == new[index].isdigit() for index in (0, -1))
    return is_alike or not DIGIT.search(words)


def _match_case(words: str, value: str) -> str:
    value = value.strip()
    return capitalise(value) if words[:1].isupper() else value
