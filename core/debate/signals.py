"""Signals of debate hacking in the turns of any protocol: computed from them, never stored.

A signal is a reason to look at a turn, and no finding about the claim. Source: ColMAD 2.2, fig. 4
(made-up evidence, misread tasks, tones that are surer than they may be, persuading for its own
sake). The rules and their limits are ours.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from core.agents.reply_parser import CONFIDENCE, DOUBT, QUOTED, is_stance_said
from core.baseline.wording import SIDES, counted, shortened
from core.documents.quotes import folded_with_map
from core.documents.segmentation import IS_UNSPACED, query_terms
from core.schema.progress import Progress
from core.schema.records import Quote, Turn

SignalKind = Literal["quote_not_found", "overconfident", "task_misread", "unmoved"]
SURE = 0.95  # what words of certainty stand for
SURE_FROM = 0.8  # below, quotes that were not found are no overconfidence
LEAST_TERMS = 12  # of content, below which a turn is too short to be beside the point
LANGUAGES = ("en", "zh")  # in which turns are spoken: others share no words with their evidence
CERTAIN = re.compile(
    r"(?<!not )(?<!n't )\b(?:certainly|undoubtedly|definitely|undeniabl[ey]|unquestionabl[ey]|"
    r"indisputabl[ey]|irrefutabl[ey]|conclusively|absolutely|obviously|no (?:possible )?doubt that|"
    r"(?:without|beyond) (?:(?:an?|any|all|the|shadow of) )*(?:reasonable )?(?:doubt|question)|"
    r"there (?:is|can be) no (?:doubt|question))\b"
    r"|毫无疑问|毋庸置疑|无可辩驳|不容置疑|确凿无疑|必定|铁证",
    re.IGNORECASE,
)
OF_DEBATES = frozenset(
    query_terms(
        "claim claims statement answer response evidence source sources passage passages document "
        "text agree agrees deny denies correct incorrect wrong open supported hallucinated true "
        "false debater debaters message quote quoted says said say point reason verdict judge "
        "side case find nothing hold give gave stand still decide see",
        "en",
    )
)


@dataclass(frozen=True)
class Signal:
    """One thing to look at: the turn's number, its debater, the kind, and a sentence."""

    turn: int
    debater: str
    kind: SignalKind
    words: str


@dataclass(frozen=True)
class PastRecord:
    """How often an agent was right where people have answered; `high` ends its interval."""

    right: int
    n: int
    high: float


@dataclass(frozen=True)
class _Said:
    """A turn with those before it, in order; `terms` are the words of all it may be about.

    `cited` are the citations of each turn so far, by its number.
    """

    turn: Turn
    before: tuple[Turn, ...]
    progress: Progress
    terms: frozenset[str]
    cited: Mapping[int, tuple[Quote, ...]]

    @property
    def mine(self) -> list[Turn]:
        return [turn for turn in self.before if turn.debater == self.turn.debater]


def signals_of(
    progress: Progress, pasts: Mapping[str, PastRecord] | None = None
) -> tuple[Signal, ...]:
    """All signals in the order of the turns; `pasts` are by agents' names."""
    turns = tuple(sorted(progress.turns, key=lambda turn: turn.number))
    case, language = progress.case, _language(progress)
    asked = [case.response, case.question] if case else []
    content = [*(passage.text for passage in progress.evidence.values()), *asked]
    terms = frozenset(term for text in content for term in query_terms(text, language))
    said_by = [("", _folded(text)) for text in asked]
    said_by += [(turn.debater, _folded(turn.text)) for turn in turns]
    cited: dict[int, tuple[Quote, ...]] = {}
    found: list[Signal] = []
    for place, turn in enumerate(turns):
        # A quote of the claim, or of another's words, does not claim to be evidence.
        before = said_by[: place + len(asked)]
        known = [words for debater, words in before if debater != turn.debater]
        cited[turn.number] = tuple(q for q in turn.quotes if _is_citation(q, known))
        said = _Said(turn, turns[:place], progress, terms, cited)
        kinds: tuple[tuple[SignalKind, Iterator[str]], ...] = (
            ("quote_not_found", _not_found(said)),
            ("overconfident", _overconfident(said, pasts or {})),
            ("task_misread", _misread(said)),
            ("unmoved", _unmoved(said)),
        )
        found += [
            Signal(turn.number, turn.debater, kind, sentence)
            for kind, sentences in kinds
            for sentence in sentences
        ]
    return tuple(found)


def _is_citation(quote: Quote, known: Sequence[str]) -> bool:
    words = _folded(quote.text).strip()
    return quote.status != "not_found" or not words or not any(words in text for text in known)


def by_debater(signals: Sequence[Signal]) -> dict[str, Counter[SignalKind]]:
    """How many of each kind each debater has; those without any are left out."""
    found: dict[str, Counter[SignalKind]] = defaultdict(Counter)
    for signal in signals:
        found[signal.debater][signal.kind] += 1
    return dict(found)


def _folded(text: str) -> str:
    """Whatever its spacing, case and typography, as quotes are looked up."""
    return folded_with_map(text)[0]


def _not_found(said: _Said) -> Iterator[str]:
    for quote in said.cited[said.turn.number]:
        if quote.status == "not_found":
            yield f"“{shortened(quote.text, 80)}” stands in no source."


def held_by(agent: str, seat: str) -> str:
    """Under which name a record is kept; `seat` tells apart who are the same agent otherwise."""
    return f"{agent} ({seat})" if seat else agent


def _overconfident(said: _Said, pasts: Mapping[str, PastRecord]) -> Iterator[str]:
    """Surer, in words or as stated, than its record allows; without one, than its quotes so far."""
    turn = said.turn
    is_certain = CERTAIN.search(QUOTED.sub(" ", turn.text))
    sure = max(turn.confidence or 0.0, SURE if is_certain else 0.0)
    if turn.stance == "unclear":
        return
    tone = f"Sounds {round(100 * sure)}% sure"
    past = pasts.get(held_by(turn.agent, turn.debater)) or pasts.get(turn.agent)
    if past is not None and turn.assigned is None:
        if sure > past.high:
            yield f"{tone}, but was right in {past.right} of {counted(past.n, 'answered case')}."
        return
    if sure < SURE_FROM or not said.progress.evidence:
        return
    given = [quote for own in (*said.mine, turn) for quote in said.cited[own.number]]
    stand = sum(quote.status != "not_found" for quote in given)
    if not given:
        yield f"{tone}, but quotes nothing."
    elif sure > stand / len(given):
        of = counted(len(given), "quote")
        yield f"{tone}, but of its {of} so far {stand} {'was' if stand == 1 else 'were'} found."


def _misread(said: _Said) -> Iterator[str]:
    """Built-in debaters have their stance by what they compute, not by what they say of it."""
    turn, role = said.turn, f"debater {said.turn.debater}"
    is_model = any(used.role == role and not used.built_in for used in said.progress.roles)
    if turn.manner == "debate" and is_model and not is_stance_said(turn.text):
        yield "Does not say whether the claim is correct: that follows from whom it agrees with."
    if turn.assigned is not None and turn.stance != turn.assigned:
        yield f"Does not argue the side that it was assigned, {SIDES[turn.assigned]}."
    if _is_beside_the_point(said):
        yield "Shares no word of content with the claim, the question or the evidence."


def _is_beside_the_point(said: _Said) -> bool:
    """It argues at some length, quotes nothing that was found, and names nothing of the case."""
    language = _language(said.progress)
    told = DOUBT.sub("", CONFIDENCE.sub("", said.turn.text))
    is_unspaced = IS_UNSPACED.search(told) is not None
    # A turn in another language than the case's shares no words with it, and says nothing by that.
    if language not in LANGUAGES or is_unspaced != (language == "zh"):
        return False
    if any(quote.status != "not_found" for quote in said.turn.quotes):
        return False
    names = {turn.debater for turn in (*said.before, said.turn)}
    known = OF_DEBATES | {term for name in names for term in query_terms(name, language)}
    own = set(query_terms(told, language)) - known
    least = 2 * LEAST_TERMS if is_unspaced else LEAST_TERMS
    return len(own) >= least and own.isdisjoint(said.terms)


def _language(progress: Progress) -> str:
    return progress.case.language.split("-")[0].casefold() if progress.case else ""


def _unmoved(said: _Said) -> Iterator[str]:
    """It holds its stance without a new quote, though its own failed or another's answered it."""
    turn, mine = said.turn, [own for own in said.mine if own.assigned is None]
    if not mine or turn.assigned is not None or turn.stance == "unclear":
        return
    known = {quote.text for own in mine for quote in own.quotes}
    has_new = any(q.status != "not_found" and q.text not in known for q in turn.quotes)
    if has_new or {own.stance for own in mine} != {turn.stance}:
        return
    last = mine[-1]
    cited = said.cited[last.number]
    if cited and all(quote.status == "not_found" for quote in cited):
        yield "Keeps its stance, though none of the quotes of its last turn was found."
        return
    for other in said.before:
        is_new = any(q.status == "verified" and q.text not in known for q in other.quotes)
        is_another = other.number >= last.number and other.debater != last.debater
        is_against = other.assigned is None and other.stance not in (last.stance, "unclear")
        if is_another and is_against and is_new:
            yield f"Keeps its stance without a new quote, though {other.debater} answered with one."
            return
