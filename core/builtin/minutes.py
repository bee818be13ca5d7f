"""A round of a debate in brief, built in: what was newly quoted, by whom, for which stance.

Extractive: nothing is put in other words but who said it. Source: SC-MAKS 3.4.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.builtin.speech import WORDS_OF_STANCE, listed_plainly, shortened
from core.records import Quote, Stance, Turn

MOST_WORDS = 150


def minutes(turns: Sequence[Turn], before: str) -> str:
    """What stood `before`, and a line for every quote that is new, in the order of the turns.

    Only what our code found in the sources; the oldest lines go where they pass the limit.
    """
    quoting: dict[str, list[Turn]] = {}
    first: dict[str, Quote] = {}
    for turn in turns:
        for quote in turn.quotes:
            text = shortened(quote.text)
            if quote.status == "verified" and text not in before:
                first.setdefault(text, quote)
                quoting.setdefault(text, []).append(turn)
    lines = [*before.splitlines(), *(_line(text, first[text], quoting[text]) for text in first)]
    if not first:
        lines.append("Nothing new was quoted from the sources.")
    return "\n".join(_newest(list(dict.fromkeys(lines))))


def _line(text: str, quote: Quote, turns: Sequence[Turn]) -> str:
    where = f" ({quote.source})" if quote.source else ""
    by_stance: dict[Stance, dict[str, None]] = {}
    for turn in turns:
        by_stance.setdefault(turn.stance, {})[turn.debater] = None
    who = "; ".join(
        f"{listed_plainly(list(names))} for “{WORDS_OF_STANCE[stance]}”"
        for stance, names in by_stance.items()
    )
    return f"“{text}”{where}: quoted by {who}."


def _newest(lines: list[str]) -> list[str]:
    """The last lines that keep within the limit, at least one."""
    while len(lines) > 1 and sum(len(line.split()) for line in lines) > MOST_WORDS:
        lines = lines[1:]
    return lines
