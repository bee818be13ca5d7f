"""Cases in pieces by score, as the threshold is fitted to them: what would be marked from which p.

Only cases in which judge and label let words be marked: elsewhere no threshold changes anything.
The debaters' own marks stand at any threshold, and words beside them at none, as in a check.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

from core.baseline.panel import shipped_rule
from core.baseline.span_reader import load_span_reader
from core.baseline.spans import READER, free_words
from core.events import SoftLabelled
from core.learning.span_examples import SpanAnswer
from core.learning.span_threshold import GRID, VOTE, Kind, ScoredCase
from core.pipeline.span_voting import KEPT_FROM
from core.progress import Progress
from core.records import WordScore, base_of
from core.seats import PANEL, PANEL_READERS

ALWAYS = 1.0
Stretch = tuple[float, int, int]  # p, start, end


def shipped_thresholds() -> dict[Kind, float]:
    """From which p words are marked as long as nobody taught anything else."""
    return {
        "reader": load_span_reader().threshold,
        "votes": VOTE,
        "panel": KEPT_FROM,
        "weighted": shipped_rule().levels.otherwise or KEPT_FROM,
    }


def scored_cases(answers: Sequence[SpanAnswer]) -> dict[Kind, list[ScoredCase]]:
    """The cases by what scored their words: the span reader, one model's votes, or a panel's.

    A panel counts apart where its votes are weighed: its levels are others.
    """
    found: dict[Kind, list[ScoredCase]] = {"reader": [], "votes": [], "panel": [], "weighted": []}
    for answer in answers:
        run = answer.run
        if run is None or not answer.was_marked_by_machine:
            continue
        if run.soft is not None:
            if not run.soft.used:  # where one member decides, no threshold of the vote does
                kind: Kind = "weighted" if _is_weighed(run) else "panel"
                found[kind].append(_case(answer, _levels(run.soft)))
        elif not _is_ruled_by_rule(run):
            found["votes"].append(_case(answer, _voted(run)))
        elif run.words is not None:
            found["reader"].append(_case(answer, _read(run, answer.case.response)))
    return found


def _is_ruled_by_rule(run: Progress) -> bool:
    return all(used.built_in for used in run.roles if used.role == "span adjudicator")


def _is_weighed(run: Progress) -> bool:
    """True for a panel of all built-in readers, the only one whose weights are known."""
    seats = [used for used in run.roles if used.role.startswith(PANEL)]
    return len({used.agent for used in seats if used.built_in}) == len(seats) == len(PANEL_READERS)


def _levels(soft: SoftLabelled) -> Iterator[Stretch]:
    """Each stretch with the highest threshold at which the panel marks it."""
    yield from ((label.level, label.start, label.end) for label in soft.labels)


def _voted(run: Progress) -> Iterator[Stretch]:
    """Each span with the probability that its vote gave it."""
    yield from ((r.span.p, r.span.start, r.span.end) for r in run.rulings)


def _read(run: Progress, response: str) -> Iterator[Stretch]:
    """The debaters' kept marks, each free word, and what stands between two words of a stretch."""
    words, judgement = run.words, run.judgement
    if words is None or judgement is None:
        return
    named = [span for span in run.proposed if span.source != READER]
    for ruling in run.rulings:
        if ruling.kept and ruling.span.source != READER:
            yield ALWAYS, ruling.span.start, ruling.span.end
    statements = [statement for _, statement in sorted(run.statements.items())]
    for part in free_words(statements, judgement, words.scores, named):
        yield from pieces(part, response)


def pieces(scores: Sequence[WordScore], response: str) -> Iterator[Stretch]:
    """The words, and between neighbours on one line the lower score of the two."""
    for score in scores:
        yield score.p, score.start, score.end
    for one, other in itertools.pairwise(scores):
        if "\n" not in response[one.end : other.start]:
            yield min(one.p, other.p), one.end, other.start


def _case(answer: SpanAnswer, found: Iterator[Stretch]) -> ScoredCase:
    length = len(answer.case.response)
    return cut(
        answer.case.id, answer.group, base_of(answer.case.language), found, answer.places, length
    )


def cut(
    case_id: str,
    group: str,
    language: str,
    found: Iterator[Stretch],
    places: Sequence[tuple[int, int]],
    length: int,
) -> ScoredCase:
    """The case as the fit takes it; `places` are the characters that people marked."""
    sums = [0] * (length + 1)
    for start, end in places:
        for i in range(start, end):
            sums[i + 1] = 1
    sums = list(itertools.accumulate(sums))
    parts = tuple(
        (p, end - start, sums[end] - sums[start])
        for p, start, end in found
        if start < end and p >= GRID[0]
    )
    return ScoredCase(case_id, group, language, parts, sums[length], length)
