"""MAMM-REFINE: agents detect the words that do not hold, criticise each place, and mend the text.

All look alone for wrong words. Where anybody finds some and most do not call the response correct,
all judge every place, having read what the others found, and say how to mend it; a place counts
when more than half of the agents keep it, each in its last turn. Then all mend the response there,
and the judge picks the best version; without a judge who can, the one that mends most and changes
least is taken. Each agent's last stance votes, and most of them give the label. A response that
most call correct is not revised. Source: SC-MAKS 2.1.4, table 2 (Wan et al.).
Calls: n detections, n critiques and n revisions, each stage at once, and one ranking of revisions
that differ: 3n turns and 1 judgement at most, in a chain of 4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from rapidfuzz.distance import Levenshtein

from core.agents.agent_runner import calls_of, notes_of, why_unusable
from core.baseline.wording import listed
from core.debate.state import (
    Calls,
    DebateProtocol,
    DebateState,
    TurnRequest,
    concluded,
    judge_view,
    spoken,
    taken,
)
from core.debate.votes import barred, by_majority, last_answers, tally
from core.runtime.errors import ReplyError
from core.schema.events import Event, ProblemMet, ResponseRevised
from core.schema.records import Judgement, Label, Plan, Point, Turn
from core.schema.roles import Ranker
from core.schema.rosters import Manner

TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
Place = tuple[int, int]


def contested(turns: Sequence[Turn]) -> tuple[Point, ...]:
    """All points of these turns that contest words, in order of their place."""
    points = [p for turn in turns for p in turn.points if p.finding != "carried"]
    return tuple(sorted(points, key=lambda point: (point.start, point.end)))


def kept_by_most(critics: Sequence[Turn], asked: int = 0) -> tuple[Point, ...]:
    """The places that more than half of all who were asked keep, in order; no two overlap.

    Who leaves the response open keeps none, nor does who is missing of the `asked`. A critic keeps
    a place when a place of its own overlaps it; shorter ones go first, so that one long quotation
    does not swallow several. Of each the surest point counts, with the words that most put there.
    """
    own = [contested([turn]) for turn in critics if turn.stance != "unclear"]
    whole = max(asked, len(critics))
    places = {(p.start, p.end) for points in own for p in points if p.start < p.end}
    chosen: dict[Place, Point] = {}
    for place in sorted(places, key=lambda one: (one[1] - one[0], one)):
        votes = sum(any(_overlap(place, (p.start, p.end)) for p in points) for points in own)
        if 2 * votes > whole and not any(_overlap(place, other) for other in chosen):
            there = [p for points in own for p in points if (p.start, p.end) == place]
            surest = max(there, key=lambda point: point.weight)
            instead = Counter(p.evidence for p in there if p.evidence).most_common(1)
            chosen[place] = replace(surest, evidence=instead[0][0]) if instead else surest
    return tuple(point for _, point in sorted(chosen.items(), key=lambda one: one[0]))


def best_first(response: str, revisions: Sequence[str], kept: Sequence[Point]) -> tuple[str, ...]:
    """Unlike revisions that change something, the best first.

    Best is what changes most of the kept places, then what most wrote alike, then what changes
    least beside them, then the first.
    """
    counts = Counter(text for text in revisions if text != response and text.strip())

    def rank(text: str) -> tuple[int, int, int]:
        beside = sum(
            last - first
            for first, last in _changes(response, text)
            if not any(_overlap((p.start, p.end), (first, last)) for p in kept)
        )
        longer = max(0, len(text) - len(response))
        return -mended_places(response, text, kept), -counts[text], beside + longer

    return tuple(sorted(counts, key=rank))


def mended_places(response: str, revision: str, kept: Sequence[Point]) -> int:
    """How many of the kept places do not read as they did."""
    changed = _changes(response, revision)
    return sum(any(_overlap((p.start, p.end), place) for place in changed) for p in kept)


def _changes(response: str, revision: str) -> list[Place]:
    """Where the response was changed, `[start, end)` in it; an insertion is one character wide."""
    old, new = TOKEN.findall(response), TOKEN.findall(revision)
    starts = list(accumulate(map(len, old), initial=0))
    return [
        (starts[block.src_start], max(starts[block.src_end], starts[block.src_start] + 1))
        for block in Levenshtein.opcodes(old, new)
        if block.tag != "equal"
    ]


def _overlap(one: Place, other: Place) -> bool:
    return one[0] < other[1] and other[0] < one[1]


AGENT = "Majority of the agents"
STAGES: tuple[Manner, ...] = ("detect", "critique", "revise")


def argue_mamm_refine(state: DebateState) -> Iterator[Event]:
    """Detect, critique, revise; what was detected is the judgement."""
    began, debaters = state.run.now(), len(state.debaters)
    judgement = barred(AGENT, state.view)
    if judgement is None:
        yield from _stage(state, 0, ())
        found = _taken(state, 0)
        votes = tally((turn.stance for turn in found), debaters)
        if votes.hallucinated and votes.label != "supported" and contested(found):
            yield from _stage(state, 1, found)
        critics = _taken(state, 1)
        last = last_answers((*found, *critics))
        kept = kept_by_most(last, debaters) if critics else ()
        judgement = _judgement(state, last, kept)
        if judgement.label == "hallucinated" and kept:
            # Each hears of its critics' points only those that were kept, as most say them.
            own = [{(p.start, p.end) for p in contested([turn])} for turn in last]
            told = [
                replace(turn, points=tuple(k for k in kept if (k.start, k.end) in places))
                for turn, places in zip(last, own, strict=True)
            ]
            yield from _stage(state, 2, told)
            yield from _picked(state, kept)
    yield from notes_of(state.run, "judging")
    yield from concluded(state, judgement, began)


def calls(debaters: int, plan: Plan) -> Calls:
    """The calls that a check asks for at most, as the head of this file counts them."""
    later = len(STAGES) - 1  # each hears the whole stage before it
    turns = len(STAGES) * debaters
    return Calls(turns, 1, chain=len(STAGES) + 1, heard=later * debaters**2)


def _speeches(state: DebateState, stage: int, hears: Sequence[Turn] = ()) -> list[TurnRequest]:
    names = state.debaters
    first = stage * len(names) + 1
    return [
        TurnRequest(first + place, name, stage + 1, STAGES[stage], tuple(hears))
        for place, name in enumerate(names)
    ]


def _stage(state: DebateState, stage: int, hears: Sequence[Turn]) -> Iterator[Event]:
    state.run.stop.check()
    yield from spoken(state, _speeches(state, stage, hears))


def _taken(state: DebateState, stage: int) -> tuple[Turn, ...]:
    return taken(state, _speeches(state, stage))


def _judgement(state: DebateState, turns: Sequence[Turn], kept: Sequence[Point]) -> Judgement:
    """What most of the last stances say, with the places that most critics keep."""
    judgement = by_majority(AGENT, state, turns)
    if judgement.label == "unclear":
        return judgement
    if judgement.label == "supported":
        return replace(judgement, statement_labels=_labels(state, ()))
    if not kept:
        words = "They name no words that most of them hold to be wrong."
        return replace(judgement, prose=f"{judgement.prose} {words}")
    words = f"Most of them contest {listed([point.text for point in kept])}."
    labels, prose = _labels(state, kept), f"{judgement.prose} {words}"
    return replace(judgement, prose=prose, points=tuple(kept), statement_labels=labels)


def _labels(state: DebateState, kept: Sequence[Point]) -> tuple[Label, ...]:
    """Hallucinated for statements with a place that was kept, supported for all others."""
    return tuple(
        "hallucinated"
        if any(point.start < s.end and s.start < point.end for point in kept)
        else "supported"
        for s in state.view.statements
    )


def _picked(state: DebateState, kept: Sequence[Point]) -> Iterator[Event]:
    """The best of the revisions, unless it is picked already, or nobody changed anything."""
    if state.progress.revised is not None:
        return
    revised = _taken(state, 2)
    ranked = best_first(state.view.case.response, [turn.text for turn in revised], kept)
    if not ranked:
        return
    best = ranked[0]
    judge, run = state.run.roster.judge, state.run
    if len(ranked) > 1 and isinstance(judge, Ranker):
        run.stop.check()
        try:
            best = ranked[judge.best_of(judge_view(state), kept, ranked, run.stop)]
        except ReplyError as error:
            words = (
                f"{why_unusable(judge, 'Judge', error)} So the version that mends most and changes "
                "least is taken."
            )
            yield ProblemMet(run.now(), "judging", words, reply=error.reply)
        yield from calls_of(run)
    author = next(turn for turn in revised if turn.text == best)
    yield ResponseRevised(run.now(), f"{author.debater} ({author.agent})", best)


MAMM_REFINE = DebateProtocol(
    "mamm_refine", argue_mamm_refine, calls, manners=STAGES, judging=("rerank",)
)
