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

from core.agents.reply_parser import CONFIDENCE_LINE, DOUBT_LINE, QUOTED_TEXT, has_stated_stance
from core.baseline.wording import SIDE_NAMES, format_count, shorten
from core.documents.quotes import fold_with_offsets
from core.documents.segmentation import IS_UNSPACED, extract_query_terms
from core.schema.records import Quote, Turn
from core.schema.run_state import RunState

SignalKind = Literal["quote_not_found", "overconfident", "task_misread", "unmoved"]
CERTAINTY_CONFIDENCE = 0.95  # the confidence that words of certainty express
MIN_SURE_CONFIDENCE = 0.8  # a lower confidence is never overconfident about quotes
MIN_TURN_TERMS = 12  # content words; a shorter turn is never off topic
SIGNAL_LANGUAGES = ("en", "zh")  # turns are in these; evidence in others shares no words with them
CERTAINTY_WORDS = re.compile(
    r"(?<!not )(?<!n't )\b(?:certainly|undoubtedly|definitely|undeniabl[ey]|unquestionabl[ey]|"
    r"indisputabl[ey]|irrefutabl[ey]|conclusively|absolutely|obviously|no (?:possible )?doubt that|"
    r"(?:without|beyond) (?:(?:an?|any|all|the|shadow of) )*(?:reasonable )?(?:doubt|question)|"
    r"there (?:is|can be) no (?:doubt|question))\b"
    r"|毫无疑问|毋庸置疑|无可辩驳|不容置疑|确凿无疑|必定|铁证",
    re.IGNORECASE,
)
DEBATE_TERMS = frozenset(
    extract_query_terms(
        "claim claims statement answer response evidence source sources passage passages document "
        "text agree agrees deny denies correct incorrect wrong open supported hallucinated true "
        "false debater debaters message quote quoted says said say point reason verdict judge "
        "side case find nothing hold give gave stand still decide see",
        "en",
    )
)


@dataclass(frozen=True)
class DebateSignal:
    """A reason to look at a turn: its number, its debater, the kind, and a sentence."""

    turn: int
    debater: str
    kind: SignalKind
    words: str


@dataclass(frozen=True)
class AgentAccuracy:
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
    progress: RunState
    terms: frozenset[str]
    cited: Mapping[int, tuple[Quote, ...]]

    @property
    def mine(self) -> list[Turn]:
        return [turn for turn in self.before if turn.debater == self.turn.debater]


def find_signals(
    progress: RunState, pasts: Mapping[str, AgentAccuracy] | None = None
) -> tuple[DebateSignal, ...]:
    """Return all signals in the order of the turns; `pasts` maps an agent's name to its record."""
    turns = tuple(sorted(progress.turns, key=lambda turn: turn.number))
    case, language = progress.case, _language(progress)
    case_texts = [case.response, case.question] if case else []
    content = [*(passage.text for passage in progress.evidence.values()), *case_texts]
    terms = frozenset(term for text in content for term in extract_query_terms(text, language))
    texts = [("", _fold(text)) for text in case_texts]
    texts += [(turn.debater, _fold(turn.text)) for turn in turns]
    cited: dict[int, tuple[Quote, ...]] = {}
    signals: list[DebateSignal] = []
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
            DebateSignal(turn.number, turn.debater, kind, sentence)
            for kind, sentences in kinds
            for sentence in sentences
        ]
    return tuple(signals)


def _is_citation(quote: Quote, known: Sequence[str]) -> bool:
    words = _fold(quote.text).strip()
    return quote.status != "not_found" or not words or not any(words in text for text in known)


def count_signals(signals: Sequence[DebateSignal]) -> dict[str, Counter[SignalKind]]:
    """Count the signals of each kind by debater; debaters without any are left out."""
    counts: dict[str, Counter[SignalKind]] = defaultdict(Counter)
    for signal in signals:
        counts[signal.debater][signal.kind] += 1
    return dict(counts)


def _fold(text: str) -> str:
    """Normalise spacing, case and typography, as the search for quotes does."""
    return fold_with_offsets(text)[0]


def _find_missing_quotes(at: _TurnInContext) -> Iterator[str]:
    for quote in at.cited[at.turn.number]:
        if quote.status == "not_found":
            yield f"“{shorten(quote.text, 80)}” stands in no source."


def format_record_name(agent: str, config: str) -> str:
    """Return the name that a record is kept under; `seat` tells apart seats of one agent."""
    return f"{agent} ({config})" if config else agent


def _find_overconfidence(at: _TurnInContext, pasts: Mapping[str, AgentAccuracy]) -> Iterator[str]:
    """Compare the turn's confidence, stated or in words, with its record, else its quotes."""
    turn = at.turn
    is_certain = CERTAINTY_WORDS.search(QUOTED_TEXT.sub(" ", turn.text))
    sure = max(turn.confidence or 0.0, CERTAINTY_CONFIDENCE if is_certain else 0.0)
    if turn.stance == "unclear":
        return
    tone = f"Sounds {round(100 * sure)}% sure"
    past = pasts.get(format_record_name(turn.agent, turn.debater)) or pasts.get(turn.agent)
    if past is not None and turn.assigned is None:
        if sure > past.high:
            yield (
                f"{tone}, but was right in {past.right} of {format_count(past.n, 'answered case')}."
            )
        return
    if sure < MIN_SURE_CONFIDENCE or not at.progress.evidence:
        return
    quotes = [quote for each in (*at.mine, turn) for quote in at.cited[each.number]]
    found = sum(quote.status != "not_found" for quote in quotes)
    if not quotes:
        yield f"{tone}, but quotes nothing."
    elif sure > found / len(quotes):
        verb = "was" if found == 1 else "were"
        total = format_count(len(quotes), "quote")
        yield f"{tone}, but of its {total} so far {found} {verb} found."


def _find_misreading(at: _TurnInContext) -> Iterator[str]:
    """Report a missing stance of a model, a wrong side, or a turn that is off topic.

    Built-in debaters compute their stance; they need not state it.
    """
    turn, role = at.turn, f"debater {at.turn.debater}"
    is_model = any(used.role == role and not used.built_in for used in at.progress.roles)
    if turn.manner == "debate" and is_model and not has_stated_stance(turn.text):
        yield "Does not say whether the claim is correct: that follows from whom it agrees with."
    if turn.assigned is not None and turn.stance != turn.assigned:
        yield f"Does not argue the side that it was assigned, {SIDE_NAMES[turn.assigned]}."
    if _is_off_topic(at):
        yield "Shares no word of content with the claim, the question or the evidence."


def _is_off_topic(at: _TurnInContext) -> bool:
    """Return True if a long turn has no quote that was found and no word of the case."""
    language = _language(at.progress)
    argument = DOUBT_LINE.sub("", CONFIDENCE_LINE.sub("", at.turn.text))
    is_unspaced = IS_UNSPACED.search(argument) is not None
    # A turn in another language than the case shares no words with it, which means nothing.
    if language not in SIGNAL_LANGUAGES or is_unspaced != (language == "zh"):
        return False
    if any(quote.status != "not_found" for quote in at.turn.quotes):
        return False
    names = {turn.debater for turn in (*at.before, at.turn)}
    known = DEBATE_TERMS | {term for name in names for term in extract_query_terms(name, language)}
    terms = set(extract_query_terms(argument, language)) - known
    least = 2 * MIN_TURN_TERMS if is_unspaced else MIN_TURN_TERMS
    return len(terms) >= least and terms.isdisjoint(at.terms)


def _language(progress: RunState) -> str:
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
