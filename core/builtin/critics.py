"""What built-in debaters say of another's answer: how it could be better, and what is against it.

By what the evidence gives; the stance stays the critic's own. Source: SC-MAKS 3.4 (cooperative and
adversarial phase).
"""

from __future__ import annotations

from core.builtin.found_out import Own, Said
from core.builtin.nothing_new import has_come_to_an_end, new_words, nothing_new
from core.builtin.speech import WORDS_OF_STANCE
from core.records import Stance, Turn
from core.roles import DebateView


def advise(view: DebateView, own: Own) -> Said:
    """What the answer that is spoken of leaves out, or how it should read (SC-MAKS 3.4)."""
    answer = _answer_of(view)
    words = [f"“{q.text}” stands in no source." for q in answer.quotes if q.status == "not_found"]
    said = answer.text.casefold()
    fresh = [sentence for sentence in own.side.words if sentence.casefold() not in said]
    quotes = own.side.quotes if fresh else ()
    if answer.stance != own.stance:
        words.append(f"It should read “{WORDS_OF_STANCE[own.stance]}”.")
    if fresh and has_come_to_an_end(quotes, own.stance, view):
        fresh = [nothing_new(own.stance, quotes)]
    elif fresh and answer.stance == own.stance:
        words.append(f"{answer.debater}’s answer could say besides:")
    elif not fresh and not words:
        words.append("I find nothing that it leaves out.")
    return Said([*words, *fresh], own.stance, quotes)


def attack(view: DebateView, own: Own) -> Said:
    """What the evidence has against the answer that is spoken of, whoever is right."""
    answer = _answer_of(view)
    if answer.stance != own.stance:
        quotes = own.side.quotes
        words = [
            "Against it stands what I find.",
            *new_words(own.side.words, own.stance, quotes, view),
        ]
        return Said(words, own.stance, quotes, own.points)
    rivals: list[Stance] = [stance for stance in own.sides if stance != own.stance]
    found = [own.sides[stance] for stance in rivals if own.sides[stance].words]
    if not found:
        return Said(["It withstands all that I find."], own.stance)
    strongest = max(found, key=lambda side: side.strength or 0.0)
    if has_come_to_an_end(own.side.quotes, own.stance, view):
        return Said(["I find no more against it than before."], own.stance, strongest.quotes)
    words = ["The most that I find against it:", *strongest.words, "It does not decide the matter."]
    return Said(words, own.stance, strongest.quotes)


def _answer_of(view: DebateView) -> Turn:
    """The answer that is spoken of; it was heard, or nobody could be asked about it."""
    return next(turn for turn in reversed(view.turns) if turn.debater == view.about)
