"""What a built-in debater says where it has nothing to add to what it has said already.

It reads the same evidence each time, so in later rounds it would say the whole again, word for
word. Instead it names the stance that it holds to and what it has quoted; its confidence and its
doubt stand on their own lines, as in every turn (ColMAD 2.3).
"""

from __future__ import annotations

from collections.abc import Sequence

from core.builtin.speech import WORDS_OF_STANCE, listed
from core.records import Quote, Stance, Turn
from core.roles import DebateView

PHRASE = "I have nothing new"
MOST_QUOTES = 2


def own_turns(view: DebateView) -> list[Turn]:
    """The debater's own turns that it is shown, in their order."""
    return [turn for turn in view.turns if turn.debater == view.debater]


def has_said(view: DebateView, sentence: str) -> bool:
    """True where it said so in a turn that it is shown."""
    return any(sentence.casefold() in turn.text.casefold() for turn in own_turns(view))


def new_words(
    sentences: Sequence[str], stance: Stance, quotes: Sequence[Quote], view: DebateView
) -> list[str]:
    """Those of the sentences for that stance that it has not said yet; without any, that it is so.

    Who came to an end of them before has none: turns from before that are not always shown.
    """
    own = own_turns(view)
    if not own or own[-1].stance != stance:
        return list(sentences)
    is_over = has_come_to_an_end(quotes, stance, view)
    fresh = [] if is_over else [said for said in sentences if not has_said(view, said)]
    return fresh or [nothing_new(stance, quotes)]


def has_come_to_an_end(quotes: Sequence[Quote], stance: Stance, view: DebateView) -> bool:
    """True where its last turn said that there was nothing new, and these are its quotes still."""
    last = own_turns(view)[-1:]
    return any(
        PHRASE in turn.text
        and turn.stance == stance
        and {quote.text for quote in quotes} <= {quote.text for quote in turn.quotes}
        for turn in last
    )


def nothing_new(stance: Stance, quotes: Sequence[Quote]) -> str:
    """In a few words: the stance that it holds to, and what it has quoted for it."""
    texts = list(dict.fromkeys(quote.text for quote in quotes))[:MOST_QUOTES]
    quoted = f"quoted {listed(texts)} and " if texts else ""
    return f"{PHRASE}: I {quoted}hold to “{WORDS_OF_STANCE[stance]}”."
