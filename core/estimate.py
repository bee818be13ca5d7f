"""What a check will take, before it starts: time, and calls, tokens and money of language models.

The built-in agents' part goes by the text's length and the files to read, at this computer's pace:
after reading, the time grows with the response: every statement is searched for, argued about and
judged. 1 to 400 sentences over sources of 20 to 2,000 sentences took a fifth of a second and about
1.1 s for each 1,000 characters (two cores of a noisy machine, 2026-11), and audits of 60 to 540
characters as long as debates of the same texts (medians of 2.2 s for each 1,000, n=9 each, on a
busier one); the newest runs here by the same protocol say how much faster or slower it goes.

The models' part sums up the calls that each role makes. Their pace is a guess: no provider
promises one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import median

from core.documents.language import language_of
from core.expected_calls import Size, Step, steps_of
from core.models.keys import Keys
from core.models.limits import dollars_words
from core.models.prices import price_of
from core.records import LibraryEntry, Plan
from core.seats import RosterSheet
from core.store import Store

BASE_SECONDS = 0.2
PER_CHARACTER_SECONDS = 1.1 / 1000
PER_MEGABYTE_SECONDS = 6.0
PER_IMAGE_SECONDS = 4.0

FIRST_WORD_SECONDS = 1.0
TOKENS_PER_SECOND = 40.0


@dataclass(frozen=True)
class Use:
    """Calls to models, their tokens, and seconds; `cost` is that of priced models, US dollars.

    `unpriced_tokens` are those of models of no known price, which count against the token caps.
    """

    calls: int = 0
    tokens: int = 0
    unpriced_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Expected:
    """What a check will use of language models; `unpriced` names those of no known price."""

    likely: Use
    most: Use
    unpriced: tuple[str, ...]

    @property
    def cost(self) -> float | None:
        """The likely cost in US dollars, None where a part of it is not known."""
        return None if self.unpriced else self.likely.cost

    @property
    def words(self) -> str:
        """One line for the page."""
        if not self.most.calls:
            return "no cost"
        counts = (
            f"about {self.likely.calls} calls, {_rounded(self.likely.tokens):,} tokens "
            f"(at most {self.most.calls} and {_rounded(self.most.tokens):,})"
        )
        known = f"about {dollars_words(self.likely.cost)}, at most {dollars_words(self.most.cost)}"
        if not self.most.cost and not self.unpriced:
            return f"nothing to pay · {counts}"
        if not self.unpriced:
            return f"{known} · {counts}"
        names = ", ".join(self.unpriced)
        rest = f", besides {known}" if self.most.cost else ""
        return f"cost not known for {names}{rest} · {counts}"


def sizes_of(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> list[Size]:
    """How large each check is: of each (response, question) over the same sources.

    What is embedded anew counts with the first, which finds it so; a source that is not read yet
    counts as soon as it is.
    """
    size = Size(
        0,
        images=sum(entry.kind == "image" for entry in entries),
        max_turns=plan.max_turns,
        passages=plan.passages,
        protocol=plan.protocol,
        options=plan.options,
        language=language_of("\n".join(f"{question} {text}" for text, question in asked)),
    )
    sizes = [replace(size, response=len(text), question=len(question)) for text, question in asked]
    sizes[0] = replace(sizes[0], sources=_to_embed(store, entries, plan))
    return sizes


def _to_embed(store: Store, entries: Sequence[LibraryEntry], plan: Plan) -> int:
    """The characters that the roster's embedding model has not seen yet."""
    if plan.sheet is None or plan.sheet.retriever.is_built_in:
        return 0
    from core.models.encoder import LlmEmbedder

    model = LlmEmbedder(plan.sheet.retriever, Keys({})).id
    new = (entry for entry in entries if not store.readings.has_index(entry.id, model))
    return sum(entry.characters for entry in new)


def expected_use(sheet: RosterSheet, size: Size) -> Expected:
    """What a check with that roster will use of language models; nothing where it has none."""
    likely, most = (
        [
            step
            for step in steps_of(sheet, size, is_most)
            if step.calls and not step.seat.is_built_in
        ]
        for is_most in (False, True)
    )
    unpriced = dict.fromkeys(step.seat.model for step in most if price_of(step.seat) is None)
    return Expected(_sum(likely), _sum(most), tuple(unpriced))


def _sum(steps: Iterable[Step]) -> Use:
    calls = tokens = unpriced = 0
    cost = seconds = 0.0
    for step in steps:
        calls += step.calls
        used = step.calls * (step.prompt + step.reply)
        tokens += used
        price = price_of(step.seat)
        if price is None:
            unpriced += used
        else:
            cost += step.calls * price.of(step.prompt, step.reply)
        waves = math.ceil(step.calls / step.at_once)
        seconds += waves * (FIRST_WORD_SECONDS + step.reply / TOKENS_PER_SECOND)
    return Use(calls, tokens, unpriced, cost, seconds)


def _rounded(tokens: int) -> int:
    """Two figures are all that an estimate knows."""
    unit = int(10 ** max(0, len(str(tokens)) - 2))
    return math.ceil(tokens / unit) * unit


def expected_seconds(
    store: Store,
    entries: Sequence[LibraryEntry],
    characters: int,
    roster: str = "builtin",
    protocol: str = "ceda",
) -> float:
    """Seconds for a check of a response of that length over these sources.

    Sources that are read already cost nothing more. Only earlier checks by the same protocol tell
    the pace: an audit takes longer the more of it is contested, or is code to be run.
    """
    recent = store.runs.seconds_of_recent(roster, protocol)
    paces = [seconds / _usual(length) for seconds, length in recent]
    waiting = [entry for entry in entries if entry.status in ("waiting", "reading")]
    reading = sum(
        PER_IMAGE_SECONDS if entry.kind == "image" else PER_MEGABYTE_SECONDS * entry.size / 1e6
        for entry in waiting
    )
    return _usual(characters) * (median(paces) if paces else 1.0) + reading


def _usual(characters: int) -> float:
    return BASE_SECONDS + PER_CHARACTER_SECONDS * characters
