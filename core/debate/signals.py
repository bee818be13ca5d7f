"""Signals of debate hacking, computed from the turns of any protocol and never stored.

A signal is a reason to look at a turn; it says nothing about the claim. Source: ColMAD 2.2, fig. 4
(invented evidence, misread tasks, overconfident tone, persuasion for its own sake). The rules and
their limits are ours.
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
SURE = 0.95  # the confidence that words of certainty express
SURE_FROM = 0.8  # a lower confidence is never overconfident about quotes
LEAST_TERMS = 12  # content words; a shorter turn is never off topic
LANGUAGES = ("en", "zh")  # turns are in these; evidence in others shares no words with them
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
    """A reason to look at a turn: its number, its debater, the kind, and a sentence."""

    turn: int
    debater: str
    kind: SignalKind
    words: str


@dataclass(frozen=True)
class PastRecord:
    """How often an agent agreed with people's answers; `high` is the interval's upper end."""

    right: int
    n: int
    high: float


@dataclass(frozen=True)
class _TurnInContext:
    """A turn with the turns before it, in order.

    `terms` are the content words of the case and its evidence; `cited` are the citations of each
    turn so far, by its number.
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
    """Return all signals in the order of the turns; `pasts` maps an agent's name to its record."""
    turns = tuple(sorted(progress.turns, key=lambda turn: turn.number))
    case, language = progress.case, _language(progress)
    case_texts = [case.response, case.question] if case else []
    content = [*(passage.text for passage in progress.evidence.values()), *case_texts]
    terms = frozenset(term for text in content for term in query_terms(text, language))
    texts = [("", _fold(text)) for text in case_texts]
    texts += [(turn.debater, _fold(turn.text)) for turn in turns]
    cited: dict[int, tuple[Quote, ...]] = {}
    signals: list[Signal] = []
    for place, turn in enumerate(turns):
        # A quote of the claim, or of another debater, does not claim to be evidence.
        earlier = texts[: place + len(case_texts)]
        known = [text for debater, text in earlier if debater != turn.debater]
        cited[turn.number] = tuple(q for q in turn.quotes if _is_citation(q, known))
        at = _TurnInContext(turn, turns[:place], progress, terms, cited)
        kinds: tuple[tuple[SignalKind, Iterator[str]], ...] = (
            ("quote_not_found", _find_missing_quotes(at)),
            ("overconfident", _find_overconfidence(at, pasts or {})),
            ("task_misread", _find_misreading(at)),
            ("unmoved", _find_stubbornness(at)),
        )
        signals += [
            Signal(turn.number, turn.debater, kind, sentence)
            for kind, sentences in kinds
            for sentence in sentences
        ]
    return tuple(signals)


def _is_citation(quote: Quote, known: Sequence[str]) -> bool:
    words = _fold(quote.text).strip()
    return quote.status != "not_found" or not words or not any(words in text for text in known)


def by_debater(signals: Sequence[Signal]) -> dict[str, Counter[SignalKind]]:
    """Count the signals of each kind by debater; debaters without any are left out."""
    counts: dict[str, Counter[SignalKind]] = defaultdict(Counter)
    for signal in signals:
        counts[signal.debater][signal.kind] += 1
    return dict(counts)


def _fold(text: str) -> str:
    """Normalise spacing, case and typography, as the search for quotes does."""
    return folded_with_map(text)[0]


def _find_missing_quotes(at: _TurnInContext) -> Iterator[str]:
    for quote in at.cited[at.turn.number]:
        if quote.status == "not_found":
            yield f"“{shortened(quote.text, 80)}” stands in no source."


def held_by(agent: str, seat: str) -> str:
    """Return the name that a record is kept under; `seat` tells apart seats of one agent."""
    return f"{agent} ({seat})" if seat else agent


def _find_overconfidence(at: _TurnInContext, pasts: Mapping[str, PastRecord]) -> Iterator[str]:
    """Compare the turn's confidence, stated or in words, with its record, else its quotes."""
    turn = at.turn
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
    if sure < SURE_FROM or not at.progress.evidence:
        return
    quotes = [quote for each in (*at.mine, turn) for quote in at.cited[each.number]]
    found = sum(quote.status != "not_found" for quote in quotes)
    if not quotes:
        yield f"{tone}, but quotes nothing."
    elif sure > found / len(quotes):
        verb = "was" if found == 1 else "were"
        total = counted(len(quotes), "quote")
        yield f"{tone}, but of its {total} so far {found} {verb} found."


def _find_misreading(at: _TurnInContext) -> Iterator[str]:
    """Report a missing stance of a model, a wrong side, or a turn that is off topic.

    Built-in debaters compute their stance; they need not state it.
    """
    turn, role = at.turn, f"debater {at.turn.debater}"
    is_model = any(used.role == role and not used.built_in for used in at.progress.roles)
    if turn.manner == "debate" and is_model and not is_stance_said(turn.text):
        yield "Does not say whether the claim is correct: that follows from whom it agrees with."
    if turn.assigned is not None and turn.stance != turn.assigned:
        yield f"Does not argue the side that it was assigned, {SIDES[turn.assigned]}."
    if _is_off_topic(at):
        yield "Shares no word of content with the claim, the question or the evidence."


def _is_off_topic(at: _TurnInContext) -> bool:
    """Return True if a long turn has no quote that was found and no word of the case."""
    language = _language(at.progress)
    argument = DOUBT.sub("", CONFIDENCE.sub("", at.turn.text))
    is_unspaced = IS_UNSPACED.search(argument) is not None
    # A turn in another language than the case shares no words with it, which means nothing.
    if language not in LANGUAGES or is_unspaced != (language == "zh"):
        return False
    if any(quote.status != "not_found" for quote in at.turn.quotes):
        return False
    names = {turn.debater for turn in (*at.before, at.turn)}
    known = OF_DEBATES | {term for name in names for term in query_terms(name, language)}
    terms = set(query_terms(argument, language)) - known
    least = 2 * LEAST_TERMS if is_unspaced else LEAST_TERMS
    return len(terms) >= least and terms.isdisjoint(at.terms)


def _language(progress: Progress) -> str:
    return progress.case.language.split("-")[0].casefold() if progress.case else ""


def _find_stubbornness(at: _TurnInContext) -> Iterator[str]:
    """Report a stance kept without a new quote, though its quotes failed or were answered."""
    turn, mine = at.turn, [each for each in at.mine if each.assigned is None]
    if not mine or turn.assigned is not None or turn.stance == "unclear":
        return
    known = {quote.text for each in mine for quote in each.quotes}
    has_new = any(q.status != "not_found" and q.text not in known for q in turn.quotes)
    if has_new or {each.stance for each in mine} != {turn.stance}:
        return
    last = mine[-1]
    cited = at.cited[last.number]
    if cited and all(quote.status == "not_found" for quote in cited):
        yield "Keeps its stance, though none of the quotes of its last turn was found."
        return
    for other in at.before:
        is_new = any(q.status == "verified" and q.text not in known for q in other.quotes)
        is_another = other.number >= last.number and other.debater != last.debater
        is_against = other.assigned is None and other.stance not in (last.stance, "unclear")
        if is_another and is_against and is_new:
            yield f"Keeps its stance without a new quote, though {other.debater} answered with one."
            return
