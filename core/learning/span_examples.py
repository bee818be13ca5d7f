"""The most instructive corrected cases, as examples for the span extractor.

A case teaches much where the machine's marks were far from people's, and people's are clear, short
and unlike those chosen already. Source: MSA (few-shot extraction). Only cases whose response the
machine called hallucinated, with words that people marked: others say nothing on how to mark.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rapidfuzz.fuzz import ratio

from core.learned_marks import MOST_TOKENS, base_of
from core.learning.span_answers import SpanAnswer, joined
from core.models.limits import estimated_tokens
from core.reviews import category_words

MOST_OF_A_LANGUAGE = 4
MOST_KEPT = 40
FOREMOST = 4 * MOST_OF_A_LANGUAGE  # some may share a question
LONGEST = MOST_TOKENS // 2  # tokens of one example
LEAST_SURE = 0.5
ALIKE = 0.5  # what a case of a category that is there already still counts
COPIED = 0.95  # of a case's worth, what goes where its response is there to the letter
CLEAR = {"settled": 1.0, "agreed": 0.9, "imported": 0.8, "one": 0.6, "several": 0.5}
HOW_WORDS = {
    "settled": "settled by a lead",
    "agreed": "several people marked the same",
    "imported": "came with a file",
    "one": "one person's marks",
    "several": "what at least half of several people marked",
}
FENCES = 90  # tokens that an example's fences and its form take


@dataclass(frozen=True)
class Candidate:
    """A case that could be an example; `iou` is that of the machine's marks and people's."""

    answer: SpanAnswer
    iou: float
    tokens: int

    @property
    def id(self) -> str:
        """The fingerprint of question and response."""
        return self.answer.group

    @property
    def score(self) -> float:
        """How much it teaches, in [0, 1]: wrong marks, clear answers, few words."""
        sure = self.answer.sure
        clear = CLEAR[self.answer.how] if sure is None else max(CLEAR[self.answer.how], sure)
        return (1 - self.iou) * clear / (1 + self.tokens / MOST_TOKENS)

    @property
    def category(self) -> str:
        """The first category that people gave."""
        return self.answer.spans[0].category

    @property
    def why(self) -> str:
        """Why it was chosen, for the page."""
        sure = self.answer.sure
        parts = [
            f"the machine's marks and people's overlap by {100 * self.iou:.0f} %",
            HOW_WORDS[self.answer.how] + (f", {100 * sure:.0f} % sure" if sure is not None else ""),
            category_words(self.category),
            f"about {self.tokens} tokens",
        ]
        return "; ".join(parts)

    @property
    def body(self) -> dict[str, Any]:
        """As it is kept."""
        case = self.answer.case
        return {
            "id": self.id,
            "case_id": case.id,
            "language": case.language,
            "question": case.question,
            "response": case.response,
            "spans": [
                {
                    "start": s.start,
                    "end": s.end,
                    "text": s.text,
                    "category": s.category,
                    "instead": s.instead,
                }
                for s in self.answer.spans
            ],
            "reason": self.answer.reason,
            "tokens": self.tokens,
            "iou": round(self.iou, 4),
            "why": self.why,
            "said": list(self.answer.said),
        }


def candidates(answers: Iterable[SpanAnswer]) -> list[Candidate]:
    """All cases that could be an example, the most instructive first."""
    found = [one for answer in answers if (one := _candidate(answer)) is not None]
    return sorted(found, key=lambda one: (-one.score, one.id))


def _candidate(answer: SpanAnswer) -> Candidate | None:
    run, case = answer.run, answer.case
    unsure = answer.sure is not None and answer.sure < LEAST_SURE
    if run is None or not answer.spans or not answer.was_marked_by_machine or unsure:
        return None
    machine = joined((r.span.start, r.span.end) for r in run.rulings if r.kept)
    marks = " ".join(f"{s.text} {s.category} {s.instead}" for s in answer.spans)
    words = "\n".join((case.question, case.response, answer.reason, marks))
    tokens = estimated_tokens(words) + FENCES
    iou = overlap(machine, answer.places)
    answer = replace(answer, run=None)  # it is kept for long
    return Candidate(answer, iou, tokens) if iou < 1 and tokens <= LONGEST else None


def overlap(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> float:
    """IoU of two sets of places over characters; 1 where both are empty."""
    first = {i for start, end in one for i in range(start, end)}
    second = {i for start, end in other for i in range(start, end)}
    return len(first & second) / len(first | second) if first | second else 1.0


def chosen(
    known: Sequence[Candidate], pinned: Sequence[str] = (), removed: Sequence[str] = ()
) -> list[Candidate]:
    """Up to four of each language: pinned ones, then the most instructive that are unlike.

    Unlike in category and in text. What somebody removed stays out. One question gives one example.
    """
    left = [one for one in known if one.id not in removed]
    found = [one for one in left if one.id in pinned]
    left = _foremost([one for one in left if one.id not in pinned])
    while left and len(found) < MOST_KEPT:
        room = [one for one in left if _has_room(one, found)]
        if not room:
            break
        best = max(room, key=lambda one: _worth(one, found))
        found.append(best)
        left = [one for one in room if one is not best]
    return found


def _foremost(known: Sequence[Candidate]) -> list[Candidate]:
    """Of each language and category the first few: no more can be chosen."""
    counts: Counter[tuple[str, str]] = Counter()
    found = []
    for one in known:
        counts[_kind(one)] += 1
        if counts[_kind(one)] <= FOREMOST:
            found.append(one)
    return found


def _kind(one: Candidate) -> tuple[str, str]:
    return base_of(one.answer.case.language), one.category


def _worth(one: Candidate, found: Sequence[Candidate]) -> float:
    """Its score, less where its category is there already, and as far as its response is."""
    kind = _kind(one)
    own = [other for other in found if _kind(other)[0] == kind[0]]
    likest = max((ratio(_response(one), _response(other)) for other in own), default=0.0) / 100
    is_known = any(_kind(other) == kind for other in own)
    return one.score * (ALIKE if is_known else 1.0) * (1 - COPIED * likest)


def _response(one: Candidate) -> str:
    return one.answer.case.response.casefold()


def _has_room(one: Candidate, found: Sequence[Candidate]) -> bool:
    language = base_of(one.answer.case.language)
    own = [other for other in found if base_of(other.answer.case.language) == language]
    question = _plain(one)
    is_new = not question or all(_plain(other) != question for other in own)
    return is_new and len(own) < MOST_OF_A_LANGUAGE


def _plain(one: Candidate) -> str:
    return " ".join(one.answer.case.question.casefold().split())


def body_of(
    examples: Sequence[Candidate], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """What is kept: the examples in their order, and what people decided about those before.

    Pinned ones stay, whatever became of their case. Removed ones are kept among them, so that they
    can be allowed again; no model is shown them.
    """
    pinned, removed = decided(before)
    kept = [one.body for one in examples]
    known = {one["id"] for one in kept}
    old = [one for one in (before or {}).get("examples", ()) if one["id"] not in known]
    first = [one for one in old if one["id"] in pinned]
    gone = [one for one in old if one["id"] in removed]
    return {"examples": [*first, *kept, *gone], "pinned": pinned, "removed": removed}


def decided(body: Mapping[str, Any] | None) -> tuple[list[str], list[str]]:
    """(pinned, removed) fingerprints of a kept body."""
    return list((body or {}).get("pinned", ())), list((body or {}).get("removed", ()))
