"""Compares a statement with its evidence, its own response and its question.

A language model does where there is one; else the built-in readers, which say nothing of relevance.
Source: HaluAgent 2.2, A.2 (semantic checker, `match`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Annotated, Literal

import msgspec

from core.errors import InputError
from core.evidence.segment import sentences
from core.records import Case, Label, Passage, Statement
from core.tools.toolbox import Answer, Asker, Bench, Example, Tool

Finding = Literal[
    "holds", "contradicted", "unsupported", "irrelevant", "self_contradictory", "open"
]
LABELS: dict[Finding, Label] = {
    "holds": "supported",
    "contradicted": "hallucinated",
    "unsupported": "hallucinated",
    "irrelevant": "hallucinated",
    "self_contradictory": "hallucinated",
    "open": "unclear",
}
CATEGORIES: dict[Finding, str] = {
    "contradicted": "contradicted",
    "unsupported": "not_in_source",
    "irrelevant": "instruction_not_followed",
    "self_contradictory": "self_contradiction",
}
MOST_PASSAGES = 5
MOST_BESIDE = 4_000  # characters of the rest of a response that go along with a statement
# What the readers hold against a sentence that belongs to the same text is often nothing but a
# change of subject: one half as the limit accuses every tenth sentence of some news articles
# (docs/search-and-match.md).
SELF_FROM = 0.9
OWN = "the response itself"
OWN_WORDS = "It is read against the other statements of its own response."
GIVEN = "what it was given"
OFF = "The tool match needs a language model or the built-in readers; here is neither."
Matcher = Callable[[str, Sequence[Passage]], Answer]


class Match(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A statement and what it is compared with.

    statement: the words to check, exactly as they stand in the response.
    context: evidence, e.g. what a search found; empty: the project's library is searched.
    question: the question that the whole response answers, for relevance.
    before: other statements of the same response, for self-contradiction.
    """

    statement: str
    context: str = ""
    question: str = ""
    before: str = ""


class MatchReply(msgspec.Struct, frozen=True):
    """What a language model says; `words` are the statement's own that are wrong."""

    reason: str
    finding: Finding
    words: str
    instead: str
    p: Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]


def passages_of(text: str, source: str) -> tuple[Passage, ...]:
    """A text's sentences as passages of a source of that name, each with its neighbours.

    Offsets are half-open and count code points of `text`.
    """
    cuts = [(s.start, s.end) for s in sentences(text, "und")]
    words = ["", *(text[start:end] for start, end in cuts), ""]
    return tuple(
        Passage(
            id=f"{source}:{number}",
            source_id=source,
            source=source,
            is_image=False,
            page=None,
            start=start,
            end=end,
            text=words[number + 1],
            score=1.0,
            before=words[number],
            after=words[number + 2],
        )
        for number, (start, end) in enumerate(cuts)
    )


def _match(given: Match, bench: Bench) -> Answer:
    if not given.statement.strip():
        raise InputError("Expected a statement to compare, found none; give its words.")
    evidence = _evidence(given, bench)
    if not (evidence or given.before.strip() or given.question.strip()):
        return Answer(
            "unclear", "There is nothing to compare the statement with.", has_something=False
        )
    if bench.ask is not None:
        return _by_model(given, evidence, bench.ask)
    if bench.match is not None:
        return _by_readers(given, evidence, bench.match)
    raise InputError(OFF)


def _evidence(given: Match, bench: Bench) -> tuple[Passage, ...]:
    """The context's sentences, or what the library has on the statement."""
    if given.context.strip():
        return passages_of(given.context, GIVEN)
    if bench.library is None:
        return ()
    return tuple(bench.library(f"{given.question} {given.statement}".strip(), MOST_PASSAGES))


def _by_model(given: Match, evidence: Sequence[Passage], ask: Asker) -> Answer:
    context = given.context or "\n".join(f"{p.source}: {p.text}" for p in evidence)
    fields = {
        "question": given.question,
        "statement": given.statement,
        "before": given.before,
        "context": context,
    }
    reply = ask("match", fields, MatchReply)
    label = LABELS[reply.finding]
    start = given.statement.find(reply.words) if reply.words.strip() else -1
    is_placed = label == "hallucinated" and start >= 0
    # A probability on the other side of one half than the finding says nothing.
    is_meant = label != "unclear" and (reply.p >= 0.5) == (label == "hallucinated")
    return Answer(
        label,
        reply.reason.strip() or "The model gave no reason.",
        {"finding": reply.finding, "by": "language model", "sources": _sources(evidence)},
        reply.p if is_meant else None,
        start if is_placed else None,
        start + len(reply.words) if is_placed else None,
        reply.instead.strip() if label == "hallucinated" else "",
        CATEGORIES.get(reply.finding, ""),
    )


def _by_readers(given: Match, evidence: Sequence[Passage], match: Matcher) -> Answer:
    """Its own response first: a statement that contradicts that is wrong whatever evidence says."""
    own = passages_of(given.before, OWN)
    if own:
        answer = match(given.statement, own)
        if answer.gave["finding"] == "contradicted" and (answer.p or 0.0) >= SELF_FROM:
            return _told(answer, "self_contradictory", own)
    if not evidence:
        words = "No other statement of the response contradicts it"
        unread = "whether it answers the question takes a language model" if given.question else ""
        return Answer(
            "unclear",
            f"{words}; {unread}." if unread else f"{words}.",
            {"finding": "open", "by": "built-in readers", "sources": []},
            has_something=bool(own),
        )
    answer = match(given.statement, evidence)
    return _told(answer, answer.gave["finding"], evidence)


def _told(answer: Answer, finding: Finding, read: Sequence[Passage]) -> Answer:
    """A reader's answer under the tool's own names."""
    gave = {**answer.gave, "finding": finding, "by": "built-in readers", "sources": _sources(read)}
    is_own = finding == "self_contradictory"
    category = "" if is_own else answer.category
    words = f"{OWN_WORDS} {answer.words}" if is_own else answer.words
    return replace(answer, words=words, gave=gave, category=category or CATEGORIES.get(finding, ""))


def _sources(passages: Sequence[Passage]) -> list[dict[str, str]]:
    return [{"title": p.source, "text": p.text} for p in passages[:MOST_PASSAGES]]


def _reads(statement: Statement | None, case: Case) -> Match | None:
    """Every statement, beside the rest of its response."""
    if statement is None:
        return None
    rest = f"{case.response[: statement.start].strip()} {case.response[statement.end :].strip()}"
    return Match(statement.text, "", case.question, rest.strip()[:MOST_BESIDE])


def _why_off(bench: Bench) -> str:
    return OFF if bench.ask is None and bench.match is None else ""


TOOL = Tool(
    name="match",
    description=(
        "Compares one statement with evidence that was found, with the other statements of the "
        "same response, and with the question. Use it after a search, and wherever a statement "
        "may contradict its own response or not answer the question. Comes back with a label: "
        "hallucinated where it is contradicted, unsupported, irrelevant or contradicts itself, "
        "supported where the evidence says the same, unclear where nothing decides it."
    ),
    takes=Match,
    work=_match,
    examples=(
        Example(
            question="When was the Harlow lighthouse built?",
            response="The Harlow lighthouse was built in 1841.",
            given=Match(
                "The Harlow lighthouse was built in 1841.",
                "The lighthouse at Harlow was built in 1814 by the harbour board.",
                "When was the Harlow lighthouse built?",
            ),
            label="hallucinated",
            thought="The search found another year, so I compare the statement with it.",
        ),
        Example(
            question="Is the museum open on Mondays?",
            response="The museum is open every day. On Mondays it is closed.",
            given=Match(
                "On Mondays it is closed.",
                question="Is the museum open on Mondays?",
                before="The museum is open every day.",
            ),
            label="hallucinated",
            thought="Both sentences cannot hold, so I look at the statement beside the other one.",
        ),
    ),
    reads=_reads,
    why_off=_why_off,
    about="statement",
)
