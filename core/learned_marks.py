"""What people's marks taught the span agents: thresholds by language, and cases as examples.

Bodies are those that `store/learned.py` keeps; a run's plan names them by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from core.records import Span

# Kinds of learned things.
THRESHOLD, EXAMPLES, MEMBER = "span_threshold", "span_examples", "span_member"
CONSENSUS = "consensus"
MOST_EXAMPLES = 4
MOST_TOKENS = 1200  # of all examples of one prompt together


@dataclass(frozen=True)
class Levels:
    """From which probability words are marked: by language, and elsewhere (None: as it ships)."""

    by_language: tuple[tuple[str, float], ...] = ()
    otherwise: float | None = None

    def at(self, language: str) -> float | None:
        """The level for a text in `language`, a BCP 47 tag; None where none was learned."""
        return dict(self.by_language).get(base_of(language), self.otherwise)

    @property
    def words(self) -> str:
        """“de 0.41, en 0.36, else 0.38”; empty where nothing was learned."""
        told = [f"{language} {level:.2f}" for language, level in self.by_language]
        return ", ".join(
            [*told, *([] if self.otherwise is None else [f"else {self.otherwise:.2f}"])]
        )


@dataclass(frozen=True)
class SpanThreshold:
    """`reader`: of the span reader's word scores; `votes`: of a language model's votes on spans.

    `panel`: of what the votes of a panel come to where most runs decide, `weighted` where weights
    do. `number` is the store's, 0 for what ships.
    """

    number: int = 0
    reader: Levels = Levels()
    votes: Levels = Levels()
    panel: Levels = Levels()
    weighted: Levels = Levels()


@dataclass(frozen=True)
class PanelRule:
    """How a panel's votes are counted; the defaults are the paper's (MSA 3.3).

    `levels`: from which p words are wrong. `alone`: by language the member whose run alone decides.
    `weights`: (extractor, adjudicator, weight), of the votes on a run or, where both are one, of
    the extractor's own p; without any all count alike and most runs decide.
    """

    levels: Levels = Levels()
    alone: tuple[tuple[str, str], ...] = ()
    weights: tuple[tuple[str, str, float], ...] = ()


AS_THE_PAPER = PanelRule()


@dataclass(frozen=True)
class SpanExample:
    """A corrected case as an extractor is shown it; `spans` lie in `response`.

    `id` is the fingerprint of question and response; `tokens` about how long it is in a prompt.
    """

    id: str
    case_id: str
    language: str
    question: str
    response: str
    spans: tuple[Span, ...]
    reason: str = ""
    tokens: int = 0


@dataclass(frozen=True)
class LearnedMarks:
    """What a run's span agents were taught; `examples` are chosen for its case already.

    `alone` names by language the member of a panel whose run alone decides.
    """

    threshold: SpanThreshold = SpanThreshold()
    examples: tuple[SpanExample, ...] = ()
    examples_number: int = 0
    alone: tuple[tuple[str, str], ...] = ()

    @property
    def examples_words(self) -> str:
        """Names the examples for the trace; empty where there are none."""
        if not self.examples:
            return ""
        cases = ", ".join(example.case_id for example in self.examples)
        return f"Examples from people's corrections (no. {self.examples_number}): cases {cases}."


SHIPPED = LearnedMarks()


def base_of(language: str) -> str:
    """“zh” of “zh-Hans”: thresholds and examples go by the language alone."""
    return language.strip().casefold().split("-")[0].split("_")[0] or "und"


def threshold_from(number: int, body: Mapping[str, Any]) -> SpanThreshold:
    """The thresholds of a kept body; this and its like are called through `read_body`."""
    kinds = ("reader", "votes", "panel", "weighted")
    return SpanThreshold(number, *(_levels(body.get(kind)) for kind in kinds))


def members_from(body: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """By language the member of a panel whose run alone decides, of a kept body."""
    return tuple(sorted((str(name), str(member)) for name, member in body["alone"].items()))


def _levels(told: Mapping[str, Any] | None) -> Levels:
    if not told:
        return Levels()
    own = tuple(sorted((str(name), float(tau)) for name, tau in told["by_language"].items()))
    return Levels(own, float(told["otherwise"]))


def examples_from(body: Mapping[str, Any]) -> tuple[SpanExample, ...]:
    """The examples of a kept body, best first; those that somebody removed are not among them."""
    removed = set(body.get("removed", ()))
    return tuple(_example(one) for one in body.get("examples", ()) if one["id"] not in removed)


def _example(told: Mapping[str, Any]) -> SpanExample:
    spans = tuple(
        Span(s["start"], s["end"], s["text"], 1.0, s["category"], "people", s.get("instead", ""))
        for s in told["spans"]
    )
    return SpanExample(
        told["id"], told["case_id"], told["language"], told["question"], told["response"], spans,
        told.get("reason", ""), int(told["tokens"]),
    )  # fmt: skip


def fitting_examples(
    known: Sequence[SpanExample], language: str, own: str
) -> tuple[SpanExample, ...]:
    """At most four for one case: first those in its language; never the case itself (`own`)."""
    other = [example for example in known if example.id != own]
    ranked = sorted(other, key=lambda example: base_of(example.language) != base_of(language))
    return tuple(_within(ranked))


def _within(ranked: Sequence[SpanExample]) -> Iterator[SpanExample]:
    """The first that fit the tokens together; one that is too long does not stop shorter ones."""
    count = used = 0
    for example in ranked:
        if count < MOST_EXAMPLES and used + example.tokens <= MOST_TOKENS:
            count, used = count + 1, used + example.tokens
            yield example
