"""What was asked of a turn and what it states, in words: on the page, in a replay, in a report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.plain import places_told, spoken, stated, without_places
from components.words import LABEL_WORDS, counted, percent
from core.debate.signals import Signal, SignalKind, by_debater
from core.events import TurnStarted
from core.manners import ANSWERING, NAMING, Manner
from core.records import Reply, Stance, Turn

STANCE_WORDS: dict[Stance, str] = {label: word.lower() for label, word in LABEL_WORDS.items()}
REPLY_WORDS: dict[Reply, str] = {"agree": "agrees", "deny": "disagrees"}
MANNER_WORDS: Mapping[Manner, str] = {
    "debate": "",
    "answer": "answers alone",
    "reconsider": "reconsiders",
    "collaborate": "adds to what was said",
    "compete": "argues a side",
    "tit_for_tat": "argues tit for tat",
    "detect": "names words that do not hold",
    "critique": "examines the named words",
    "revise": "writes the response anew",
    "advise": "advises",
    "attack": "challenges",
}
SIGNAL_WORDS: Mapping[SignalKind, str] = {
    "quote_not_found": "not found in the sources",
    "overconfident": "surer than warranted",
    "task_misread": "beside the task",
    "unmoved": "insisting",
}
WHAT_SIGNALS_ARE = (
    "Looked for in every turn by our code, after ColMAD 2.2: quotes that stand in no source, a "
    "tone surer than the debater’s record or quotes allow, turns beside the point, and insisting "
    "without a new quote. A signal is a reason to look at the turn; the verdict does not depend "
    "on it."
)
# A turn that was taken, or one under way, of which no more is known than what was asked.
Asked = Turn | TurnStarted
# These are asked for confidence and for one doubt about their own claim (ColMAD 2.3).
AUDITED: frozenset[Manner] = frozenset({"answer", "reconsider", "collaborate"})


def round_words(turn: Asked) -> str:
    """The heading of the round that the turn belongs to."""
    is_first = turn.round == 0 or (turn.manner == "answer" and turn.round == 1)
    return "First answers" if is_first else f"Round {turn.round}"


def round_in_short(heading: str, turns: Sequence[Turn]) -> str:
    """A round's heading where its turns are folded: how many, and what each debater says last."""
    last = {turn.debater: turn for turn in turns if turn.assigned is None}
    said = ", ".join(f"{name} {STANCE_WORDS[turn.stance]}" for name, turn in last.items())
    parts = [heading, counted(len(turns), "turn"), said]
    return " · ".join(part for part in parts if part)


def manner_words(turn: Asked) -> str:
    """What was asked of the debater, and whose answer it speaks of; empty in CEDA's debate."""
    about = f"{turn.about}’s answer" if turn.about else ""
    # Of whoever was assigned a side, it is said beside the stance that they argue.
    words = MANNER_WORDS.get(turn.manner, "") if turn.assigned is None else ""
    return f"{words}: {about}" if words and about else words or (f"on {about}" if about else "")


def said_words(turn: Turn) -> str:
    """The turn's text without what is told beside it: reply, verdict, places, confidence, doubt."""
    if turn.manner == "debate":
        reply, words = spoken(turn.text)
        # What is said contradicts what was recorded: people must see it.
        return turn.text if reply is not None and reply != turn.reply else words
    reply, rest = spoken(turn.text) if turn.manner in ANSWERING else (None, turn.text)
    if reply is not None and reply != turn.reply:
        return turn.text
    stance, words = stated(rest)
    if stance is not None and stance != turn.stance:
        return rest
    return without_places(words) if turn.manner in NAMING else words


def stated_words(turn: Turn) -> str:
    """The words that it names, its confidence and its doubt.

    Where it was asked for confidence and doubt and gave none, that it did not.
    """
    is_asked = turn.manner in AUDITED
    parts = places_told(turn.text) if turn.manner in NAMING else []
    if turn.confidence is not None:
        parts.append(f"{percent(turn.confidence)} sure")
    elif is_asked:
        parts.append("states no confidence")
    if turn.doubt:
        parts.append(f"may be mistaken: {turn.doubt}")
    elif is_asked:
        parts.append("names no doubt")
    return " · ".join(parts)


def stance_words(turn: Asked, stance: Stance) -> tuple[str, str]:
    """(the words before the stance, the words after it); none for who only writes a text anew."""
    if turn.manner == "revise":  # what it calls wrong is not the text that it gives
        return "", ""
    if turn.assigned is None:
        return "calls it", ""
    if turn.assigned == stance:
        return "argues, as assigned, that it is", ""
    return "calls it", f"though assigned {STANCE_WORDS[turn.assigned]}"


def signals_counted(
    signals: Sequence[Signal], debaters: Sequence[str], *, so_far: bool = False
) -> str:
    """How many signals of debate hacking each debater's turns have, and which."""
    counts = by_debater(signals)
    name = "Signals of debate hacking" + (" so far" if so_far else "")
    if not counts:
        return f"{name}: none."
    parts = []
    for debater in debaters:
        kinds = counts.get(debater)
        if kinds is None:
            parts.append(f"{debater} none")
        else:
            told = ", ".join(f"{number} {SIGNAL_WORDS[kind]}" for kind, number in kinds.items())
            parts.append(f"{debater} {kinds.total()} ({told})")
    return f"{name}: {'; '.join(parts)}."


def told_in_short(turn: Turn) -> str:
    """Round, debater, what was asked and the stance, on one line of plain text."""
    before, after = stance_words(turn, turn.stance)
    asked = REPLY_WORDS[turn.reply] if turn.manner in ANSWERING else ""
    parts = [manner_words(turn), asked, f"{before} {turn.stance}" if before else "", after]
    who = f"{round_words(turn)}: {turn.debater} ({turn.agent})"
    return ", ".join([who, *(part for part in parts if part)])
