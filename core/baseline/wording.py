"""How built-in agents put things: short quotes, lists, turns of at most 100 tokens (CEDA 4.4).

Also a verdict in the words of the built-in judge, on which the classifier's seed head was trained,
and the response with the evidence's own values in the places of wrong ones where they are of the
same make (SC-MAKS 3.2, the output O*); what has no such value is left as it is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from core.schema.records import Label, Passage, Point, Quote, Reply, Span, Stance, Turn

IN_WORDS: dict[Label, str] = {
    "supported": "The judge agrees that the statement is correct. "
    "Verdict: CORRECT, the statement is supported.",
    "hallucinated": "The judge agrees that the statement is wrong. "
    "Verdict: INCORRECT, the statement is hallucinated.",
}
MOST_PROSE = 300  # characters
TOLD = tomllib.loads(Path(__file__).with_name("rules.toml").read_text(encoding="utf-8"))
# What each built-in agent goes by, as people read it, and in what debaters may be mistaken.
RULES: Mapping[str, str] = TOLD["rules"]
DOUBTS: Mapping[str, Mapping[Stance, str]] = TOLD["doubts"]


def verdict_text(label: Label, prose: str) -> str:
    """What the classifier judges by (CEDA 3.4): the prose between verdicts in words that it knows.

    The seed head learned from the built-in judge's short texts: prose that weighs objections looks
    like blame to it, and long prose drowns the verdict. So the verdict stands around the prose's
    beginning and end. A head that people's corrections of such runs have taught weighs the prose
    itself.
    """
    words, half = IN_WORDS[label], MOST_PROSE // 2
    if len(prose) > MOST_PROSE:  # longer than the head takes in
        prose = f"{prose[:half].rsplit(' ', 1)[0]} … {prose[-half:].split(' ', 1)[-1]}"
    return " ".join([words, words, prose, words, words]) if prose else words


MOST_WORDS = 75
QUOTE_CHARACTERS = 160
WORDS_OF_STANCE: dict[Stance, str] = {
    "supported": "correct", "hallucinated": "wrong", "unclear": "not decided by this evidence"
}  # fmt: skip
DEGREES = ((0.95, "certainly"), (0.85, "very likely"), (0.7, "likely"), (0.0, "rather"))
"""How sure a verdict is, in words, by the probability of its side."""
# How an answer begins, and the sides that CopMAD assigns.
SIDES: dict[Stance, str] = {"supported": "CORRECT", "hallucinated": "WRONG", "unclear": "OPEN"}


def quote_of(passage: Passage) -> Quote:
    """The whole passage as a quote that is verified by being the source's own words."""
    return Quote(
        passage.text, "verified", 100.0, passage.source_id, passage.source, passage.page,
        passage.start, passage.end,
    )  # fmt: skip


def cited(passage: Passage) -> str:
    """The passage in quotation marks with where it stands, shortened for speaking."""
    return f"“{shortened(passage.text)}” ({place_of(passage)})"


def place_of(passage: Passage) -> str:
    """Source and page as people name them."""
    if passage.is_image or passage.page is None:
        return passage.source
    return f"{passage.source}, p. {passage.page}"


def shortened(text: str, limit: int = QUOTE_CHARACTERS) -> str:
    """The text on one line, cut at a word with an ellipsis where it is longer than the limit."""
    flat = " ".join(text.split())
    if len(flat) <= limit:
        return flat
    cut = flat[:limit]
    return (cut.rsplit(" ", 1)[0] if " " in cut[limit // 2 :] else cut).rstrip(" ,;:") + "…"


def listed(words: Sequence[str], most: int = 3) -> str:
    """“a”, “b” and “c”; what is beyond `most` is counted."""
    shown = [f"“{shortened(word, 60)}”" for word in words[:most]]
    return listed_plainly([*shown, f"{len(words) - most} more"] if len(words) > most else shown)


def listed_plainly(names: Sequence[str]) -> str:
    """Names as people list them: Ada, Ben and Cleo."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def counted(number: int, noun: str) -> str:
    """A number with its noun: “1 statement”, “2 statements”."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def reply_to(stance: Stance, turns: Sequence[Turn]) -> Reply:
    """Agree or deny with the last message; the first message is the claim itself."""
    last: Stance = turns[-1].stance if turns else "supported"
    return "agree" if stance == last else "deny"


def in_brief(sentences: Sequence[str]) -> str:
    """The sentences joined, the last ones dropped where they would pass the word limit."""
    said: list[str] = []
    for sentence in sentences:
        if said and sum(len(s.split()) for s in [*said, sentence]) > MOST_WORDS:
            break
        said.append(sentence)
    return " ".join(said)


def capitalised(sentence: str) -> str:
    """The sentence with a capital first letter."""
    return sentence[:1].upper() + sentence[1:]


VALUES = frozenset({"number_or_date", "wrong_entity"})
LONGEST = 60  # characters; longer ones are stretches of sentences, not values
DIGIT = re.compile(r"\d")
ELLIPSIS = "…"


@dataclass(frozen=True)
class TextEdit:
    """`instead` of the words at `[start, end)` of the response; the surer one goes first."""

    start: int
    end: int
    instead: str
    weight: float


def edits_of(points: Iterable[Point], response: str) -> list[TextEdit]:
    """The edits of the points whose value fits; equal ones once."""
    found = [
        TextEdit(point.start, point.end, _instead(point.text, point.evidence), point.weight)
        for point in points
        if point.finding == "contradicted"
        and response[point.start : point.end] == point.text
        and fits(point.text, point.evidence, point.category)
    ]
    return list(dict.fromkeys(found))


def edits_of_spans(spans: Iterable[Span], response: str) -> list[TextEdit]:
    """Those of the marked spans that say what should stand there."""
    return [
        TextEdit(span.start, span.end, _instead(span.text, span.instead), span.p)
        for span in spans
        if response[span.start : span.end] == span.text
        and fits(span.text, span.instead, span.category)
    ]


def with_edits(response: str, edits: Sequence[TextEdit]) -> str:
    """The response with these put in; of those that overlap the surer one.

    Where two that are equally sure want different words in one place, it is left as it is.
    """
    chosen: list[TextEdit] = []
    for one in sorted(edits, key=lambda m: (-m.weight, m.start)):
        if not any(one.start < other.end and other.start < one.end for other in chosen):
            chosen.append(one)
    for one in sorted(chosen, key=lambda m: -m.start):
        beside = [m for m in edits if one.start < m.end and m.start < one.end]
        if not any(m.weight == one.weight and m.instead != one.instead for m in beside):
            response = response[: one.start] + one.instead + response[one.end :]
    return response


def fits(words: str, value: str, category: str) -> bool:
    """True where the value can stand in the place of the words without changing their sentence.

    A value on one line and not long; figures for figures, and both with or both without letters
    before them, as bounds have (“more than 40”), and behind them, as units have.
    """
    if category not in VALUES or not value.strip() or not words.strip():
        return False
    if len(value) > LONGEST or ELLIPSIS in value or "\n" in value:
        return False
    if bool(DIGIT.search(words)) != bool(DIGIT.search(value)):
        return False
    one, other = words.strip(), value.strip()
    is_alike = all(one[at].isdigit() == other[at].isdigit() for at in (0, -1))
    return is_alike or not DIGIT.search(words)


def _instead(words: str, value: str) -> str:
    value = value.strip()
    return capitalised(value) if words[:1].isupper() else value
