"""The evidence and the debate as a model gets to see them: numbered, named, marked.

A passage has the same number in every prompt of a run. Numbers and marks are ours; whatever was
written by others stands inside a fence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

from core.agents.ask import Asking, one_line
from core.agents.heard import without_marks
from core.builtin.speech import SIDES, cited, place_of
from core.models.fence import steering
from core.records import Context, Passage, Quote, Turn
from core.roles import CaseView, DebateView, Evidence, JudgeView

NUMBER = re.compile(r"\[?\s*[Pp]?\s*(\d{1,5})\s*\]?")
LOOKS_NUMBERED = re.compile(r"\[(?=\s*[Pp]?\d+\s*\])")
CLOSING = r"[\s,.;:!?，。；：！？]*[”\"»」』“]"
MARKS = {"verified": "✓", "fuzzy": "≈", "not_found": "✗"}


def ranked(evidence: Evidence) -> tuple[Passage, ...]:
    """Every passage once: the best of each statement, then the second best, and so on.

    Cut anywhere, what is left still speaks of every statement.
    """
    by_rank = zip_longest(*(ids for _, ids in sorted(evidence.by_statement.items())))
    ids = dict.fromkeys(i for rank in by_rank for i in rank if i is not None)
    return tuple(evidence.passages[i] for i in ids)


def numbers(evidence: Evidence) -> dict[str, str]:
    """Each passage's number in all prompts of a run, by its id."""
    return {passage.id: f"P{n}" for n, passage in enumerate(ranked(evidence), 1)}


def passage_lines(evidence: Evidence, allowed: frozenset[str] | None = None) -> list[str]:
    """The passages as lines of a prompt, best first; only the allowed ones where given."""
    number = numbers(evidence)
    chosen = [p for p in ranked(evidence) if allowed is None or p.id in allowed]
    return [f"[{number[p.id]}] ({place_of(p)}) {_flat(p.text)}" for p in chosen]


def ids_of(named: Iterable[str], evidence: Evidence) -> tuple[str, ...]:
    """The passages that a model names by number; numbers that were never given are dropped."""
    by_number = {number: i for i, number in numbers(evidence).items()}
    found = (NUMBER.fullmatch(name.strip()) for name in named)
    ids = (by_number.get(f"P{int(match.group(1))}") for match in found if match)
    return tuple(dict.fromkeys(i for i in ids if i is not None))


def sides_of(conflict: str, evidence: Evidence) -> tuple[str, ...]:
    """The passages that a conflict's words cite."""
    return tuple(p.id for p in ranked(evidence) if cited(p) in conflict)


def conflict_lines(
    conflicts: Sequence[str], evidence: Evidence, share: frozenset[str] | None = None
) -> str:
    """The conflicts with their passages' numbers; for a debater only those it has whole."""
    number = numbers(evidence)
    lines = []
    for conflict in conflicts:
        sides = sides_of(conflict, evidence)
        if share is None or (len(sides) > 1 and share.issuperset(sides)):
            named = ", ".join(number[i] for i in sides)
            lines.append(f"- {_flat(conflict)}" + (f" [{named}]" if named else ""))
    return "\n".join(lines)


def fact_lines(context: Context, evidence: Evidence) -> str:
    """Agent C's facts, each with the numbers of its passages."""
    number = numbers(evidence)
    return "\n".join(
        f"- {_flat(fact.claim)} [{', '.join(number[i] for i in fact.passages if i in number)}]"
        for fact in context.facts
    )


def transcript(asking: Asking, view: JudgeView) -> str:
    """What the judge reads of the debate: a summary of what is left out, the turns, remarks."""
    return _spoken(asking, view, "transcript")


def heard_lines(asking: Asking, view: DebateView) -> str:
    """What a debater hears of the debate, laid out as the judge reads it."""
    return _spoken(asking, view, "heard")


def _spoken(asking: Asking, view: JudgeView | DebateView, kind: str) -> str:
    """Every turn on a line, each quotation followed by what our code found of it.

    Whatever was said is made harmless first, so that nobody but us can write a mark.
    """
    fence = asking.work.fence

    def plain(words: str) -> str:
        return fence.harmless(" ".join(without_marks(words).split()))

    spoken = [f"Before, in brief: {plain(view.summary)}"] if view.summary else []
    for turn in view.turns:
        text = plain(turn.text)
        for quote in turn.quotes:
            text = _with_mark(text, fence.harmless(quote.text), _mark(quote, view.view.evidence))
        to = f" on {fence.harmless(one_line(turn.about))}’s answer" if turn.about else ""
        side = f" (assigned {SIDES[turn.assigned]})" if turn.assigned else ""
        spoken.append(f"{turn.number}. {fence.harmless(one_line(turn.debater))}{to}{side}: {text}")
    spoken += [f"{plain(one_line(who))} (a person): {plain(words)}" for who, words in view.remarks]
    return fence.enclosed(kind, "\n".join(spoken))


def notices(view: CaseView, turns: Sequence[Turn] = ()) -> tuple[str, ...]:
    """A sentence for every source, text or name that speaks to the models instead of to people."""
    texts = [("The text under review", view.case.response), ("The question", view.case.question)]
    texts += [(p.source, p.text) for p in ranked(view.evidence)]
    names = dict.fromkeys(p.source for p in ranked(view.evidence))
    texts += [(f"The name “{name}”", name) for name in names]
    texts += [(f"Turn {turn.number} of {turn.debater}", turn.text) for turn in turns]
    told: dict[str, None] = {}
    for where, text in texts:
        if words := steering(text):
            told[
                f"{where} speaks to the models that check: “{words}”. They were shown it as "
                "material to examine, not as an instruction; look whether the verdict leans on it."
            ] = None
    return tuple(told)


def _mark(quote: Quote, evidence: Evidence) -> str:
    """✓, ≈ or ✗, with the number of the passage in which the quote stands."""
    within = [
        number
        for i, number in numbers(evidence).items()
        if quote.start is not None
        and quote.end is not None
        and evidence.passages[i].source_id == quote.source_id
        and evidence.passages[i].start < quote.end
        and quote.start < evidence.passages[i].end
    ]
    return " ".join([MARKS[quote.status], *within[:1]])


def _with_mark(text: str, quote: str, mark: str) -> str:
    """The mark behind the quotation, or behind the turn where its words were changed since."""
    match = re.search(re.escape(quote) + CLOSING, text)
    if match is None:
        return f"{text} “{quote}” {mark}"
    return f"{text[: match.end()]} {mark}{text[match.end() :]}"


def _flat(text: str) -> str:
    """On one line, and without what could pass for another passage's number."""
    return LOOKS_NUMBERED.sub("(", " ".join(text.split()))
