"""What people say in mid-debate, to built-in debaters: they read the passages that it points to.

They follow no argument: words that name no passage and no value of the sources change nothing, and
they say so once. Source: SC-MAKS 5.4.
"""

from __future__ import annotations

import re

from core.builtin.speech import cited, shortened
from core.records import Passage
from core.roles import DebateView

QUOTED = re.compile(r"[“„«「『\"]([^“”„«»「」『』\"]{4,})[”»」』\"]")
VALUE = re.compile(r"\d+(?:[.,]\d+)*")
ENDING = re.compile(r"\.\w{1,5}$")
NAME_CHARACTERS = 40
LEAST_NAME = 4  # characters of a file's name that can be told from a word


def pointed_at(view: DebateView) -> tuple[Passage, ...]:
    """The passages that people's words quote, whose source they name, or that hold their values."""
    said = " ".join(words for _, words in view.remarks).casefold()
    quoted = [" ".join(found.split()) for found in QUOTED.findall(said)]
    values = set(VALUE.findall(said))
    return tuple(
        passage
        for passage in view.view.evidence.passages.values()
        if _is_named(passage, said)
        or any(quote in " ".join(passage.text.casefold().split()) for quote in quoted)
        or values & set(VALUE.findall(passage.text))
    )


def answered(view: DebateView) -> list[str]:
    """What is said to people, in one sentence, where it was not said yet; nothing unless asked."""
    if not view.remarks:
        return []
    who = shortened(" ".join(view.remarks[-1][0].split()) or "somebody", NAME_CHARACTERS)
    found = pointed_at(view)
    words = f"What {who} says names nothing in the sources; I go by the evidence alone."
    if found:
        words = f"I have read what {who} points to: {cited(found[0])}."
    own = (turn.text for turn in view.turns if turn.debater == view.debater)
    return [] if any(words in text for text in own) else [words]


def _is_named(passage: Passage, said: str) -> bool:
    name = ENDING.sub("", passage.source.casefold())
    return len(name) >= LEAST_NAME and name in said
