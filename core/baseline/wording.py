"""How built-in agents put things: short quotes, lists, turns of at most 100 tokens (CEDA 4.4)."""

from __future__ import annotations

from collections.abc import Sequence

from core.records import Passage, Point, Quote, Reply, Stance, Turn
from core.roles import DebateView

MOST_WORDS = 75
QUOTE_CHARACTERS = 160
WORDS_OF_STANCE: dict[Stance, str] = {
    "supported": "correct",
    "hallucinated": "wrong",
    "unclear": "not decided by this evidence",
}
# How a turn begins in every manner but CEDA's own.
DEGREES = ((0.95, "certainly"), (0.85, "very likely"), (0.7, "likely"), (0.0, "rather"))
"""How sure a verdict is, in words, by the probability of its side."""
SIDES: dict[Stance, str] = {
    "supported": "CORRECT",
    "hallucinated": "WRONG",
    "unclear": "OPEN",
}


def quote_of(passage: Passage) -> Quote:
    """The whole passage as a quote that is verified by being the source's own words."""
    return Quote(
        passage.text,
        "verified",
        100.0,
        passage.source_id,
        passage.source,
        passage.page,
        passage.start,
        passage.end,
    )


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
    if len(words) > most:
        shown.append(f"{len(words) - most} more")
    return shown[0] if len(shown) == 1 else ", ".join(shown[:-1]) + " and " + shown[-1]


def listed_plainly(names: Sequence[str]) -> str:
    """Ada, Ben and Cleo."""
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def counted(number: int, noun: str) -> str:
    """“1 statement”, “2 statements”."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def turn_said(
    view: DebateView,
    agent: str,
    stance: Stance,
    sentences: Sequence[str],
    *,
    quotes: Sequence[Quote],
    points: Sequence[Point],
) -> Turn:
    """The view's next turn: the reply to the last message, then the sentences, in brief."""
    reply = reply_to(stance, view.turns)
    return Turn(
        debater=view.debater,
        agent=agent,
        number=view.number,
        round=view.round,
        reply=reply,
        stance=stance,
        text=in_brief([f"{reply.upper()}.", *sentences]),
        quotes=tuple(quotes),
        points=tuple(points),
    )


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
