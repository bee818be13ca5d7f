"""MAMM-REFINE: agents detect wrong words, criticise each place, and refine the text.

All agents look for wrong words alone. If anybody finds some and the majority does not call the
response correct, all judge every place, having read what the others found, and say how to correct
it; a place counts if more than half of the agents keep it, each in its last turn. Then all revise
the response there, and the judge picks the best version; without a judge that can rank, the version
that corrects most and changes least is taken. The label is the majority vote of the agents' last
stances. A response that the majority calls correct is not revised.
Source: SC-MAKS 2.1.4, table 2 (Wan et al.).
Calls: n detections, n critiques and n revisions, each stage in parallel, and one ranking of
revisions that differ: 3n turns and 1 judgement at most, 4 in sequence.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate

from rapidfuzz.distance import Levenshtein

from core.agents.agent_runner import drain_calls, drain_notes, unusable_reply_message
from core.baseline.wording import join_quoted
from core.debate.state import (
    DebateProtocol,
    DebateState,
    ProtocolCalls,
    TurnRequest,
    build_judge_view,
    collect_turns,
    conclude_debate,
    take_turns,
)
from core.debate.votes import (
    check_unreadable_images,
    count_votes,
    decide_by_majority,
    list_last_answers,
)
from core.runtime.errors import ReplyError
from core.schema.events import Event, ProblemMet, ResponseRevised
from core.schema.records import DebatePoint, Judgement, Label, Plan, Turn
from core.schema.roles import RevisionRanker
from core.schema.rosters import TurnMode

MAJORITY_AGENT = "Majority of the agents"
REFINE_STAGES: tuple[TurnMode, ...] = ("detect", "critique", "revise")
TOKEN_PATTERN = re.compile(r"\w+|\s+|[^\w\s]")
CharRange = tuple[int, int]


def list_contested_points(turns: Sequence[Turn]) -> tuple[DebatePoint, ...]:
    """Return the points of these turns that contest words, ordered by offset."""
    points = [p for turn in turns for p in turn.points if p.finding != "carried"]
    return tuple(sorted(points, key=lambda point: (point.start, point.end)))


def select_majority_points(critics: Sequence[Turn], asked: int = 0) -> tuple[DebatePoint, ...]:
    """Return the places that more than half of the agents keep, in order and without overlap.

    A critic that leaves the response open keeps none, and neither does an agent that was asked but
    is missing. A critic keeps a place if one of its own places overlaps it; shorter places are
    tried first, so that one long quotation does not swallow several. Each place is returned as its
    point of the highest weight, with the correction that most critics propose there.
    """
    points_by_critic = [
        list_contested_points([turn]) for turn in critics if turn.stance != "unclear"
    ]
    voters = max(asked, len(critics))
    places = {(p.start, p.end) for points in points_by_critic for p in points if p.start < p.end}
    chosen: dict[CharRange, DebatePoint] = {}
    for place in sorted(places, key=lambda place: (place[1] - place[0], place)):
        votes = sum(
            any(_do_overlap(place, (p.start, p.end)) for p in points) for points in points_by_critic
        )
        if 2 * votes > voters and not any(_do_overlap(place, other) for other in chosen):
            candidates = [
                p for points in points_by_critic for p in points if (p.start, p.end) == place
            ]
            surest = max(candidates, key=lambda point: point.weight)
            corrections = Counter(p.evidence for p in candidates if p.evidence).most_common(1)
            chosen[place] = replace(surest, evidence=corrections[0][0]) if corrections else surest
    return tuple(point for _, point in sorted(chosen.items(), key=lambda pair: pair[0]))


def rank_revisions(
    response: str, revisions: Sequence[str], kept: Sequence[DebatePoint]
) -> tuple[str, ...]:
    """Return the distinct revisions that change something, best first.

    The best one changes most of the kept places; ties go to the one that most agents wrote, then
    to the one that changes least elsewhere, then to the first.
    """
    counts = Counter(text for text in revisions if text != response and text.strip())

    def rank(text: str) -> tuple[int, int, int]:
        elsewhere = sum(
            last - first
            for first, last in _find_changes(response, text)
            if not any(_do_overlap((p.start, p.end), (first, last)) for p in kept)
        )
        longer = max(0, len(text) - len(response))
        return -count_corrected_places(response, text, kept), -counts[text], elsewhere + longer

    return tuple(sorted(counts, key=rank))


def count_corrected_places(response: str, revision: str, kept: Sequence[DebatePoint]) -> int:
    """Return how many of the kept places the revision changes."""
    changed = _find_changes(response, revision)
    return sum(any(_do_overlap((p.start, p.end), place) for place in changed) for p in kept)


def _find_changes(response: str, revision: str) -> list[CharRange]:
    """Return changed places, `[start, end)` in the response; an insertion is 1 character wide."""
    old, new = TOKEN_PATTERN.findall(response), TOKEN_PATTERN.findall(revision)
    starts = list(accumulate(map(len, old), initial=0))
    return [
        (starts[block.src_start], max(starts[block.src_end], starts[block.src_start] + 1))
        for block in Levenshtein.opcodes(old, new)
        if block.tag != "equal"
    ]


def _do_overlap(first: CharRange, second: CharRange) -> bool:
    return first[0] < second[1] and second[0] < first[1]


def argue_mamm_refine(state: DebateState) -> Iterator[Event]:
    """Detect, critique and revise; the judgement follows from the critiques."""
    began, debaters = state.run.now(), len(state.debaters)
    judgement = check_unreadable_images(MAJORITY_AGENT, state.view)
    if judgement is None:
        yield from _run_stage(state, 0, ())
        detections = _collect_turns(state, 0)
        votes = count_votes((turn.stance for turn in detections), debaters)
        if votes.hallucinated and votes.label != "supported" and list_contested_points(detections):
            yield from _run_stage(state, 1, detections)
        critics = _collect_turns(state, 1)
        last = list_last_answers((*detections, *critics))
        kept = select_majority_points(last, debaters) if critics else ()
        judgement = _decide(state, last, kept)
        if judgement.label == "hallucinated" and kept:
            # Everybody reads only the points that were kept, in the words of the majority.
            places_by_turn = [
                {(p.start, p.end) for p in list_contested_points([turn])} for turn in last
            ]
            critiques = [
                replace(turn, points=tuple(k for k in kept if (k.start, k.end) in places))
                for turn, places in zip(last, places_by_turn, strict=True)
            ]
            yield from _run_stage(state, 2, critiques)
            yield from _pick_revision(state, kept)
    yield from drain_notes(state.run, "judging")
    yield from conclude_debate(state, judgement, began)


def count_mamm_refine_calls(debaters: int, plan: Plan) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    later = len(REFINE_STAGES) - 1  # each of these reads all turns of the stage before it
    turns = len(REFINE_STAGES) * debaters
    return ProtocolCalls(turns, 1, chain=len(REFINE_STAGES) + 1, heard=later * debaters**2)


def _plan_turns(state: DebateState, stage: int, hears: Sequence[Turn] = ()) -> list[TurnRequest]:
    names = state.debaters
    first = stage * len(names) + 1
    return [
        TurnRequest(first + place, name, stage + 1, REFINE_STAGES[stage], tuple(hears))
        for place, name in enumerate(names)
    ]


def _run_stage(state: DebateState, stage: int, hears: Sequence[Turn]) -> Iterator[Event]:
    state.run.stop.check()
    yield from take_turns(state, _plan_turns(state, stage, hears))


def _collect_turns(state: DebateState, stage: int) -> tuple[Turn, ...]:
    return collect_turns(state, _plan_turns(state, stage))


def _decide(state: DebateState, turns: Sequence[Turn], kept: Sequence[DebatePoint]) -> Judgement:
    """Return the majority label of the last stances, with the places that were kept."""
    judgement = decide_by_majority(MAJORITY_AGENT, state, turns)
    if judgement.label == "unclear":
        return judgement
    if judgement.label == "supported":
        return replace(judgement, statement_labels=_label_statements(state, ()))
    if not kept:
        words = "They name no words that most of them hold to be wrong."
        return replace(judgement, prose=f"{judgement.prose} {words}")
    words = f"Most of them contest {join_quoted([point.text for point in kept])}."
    labels, prose = _label_statements(state, kept), f"{judgement.prose} {words}"
    return replace(judgement, prose=prose, points=tuple(kept), statement_labels=labels)


def _label_statements(state: DebateState, kept: Sequence[DebatePoint]) -> tuple[Label, ...]:
    """Label statements with a kept place as hallucinated, all others as supported."""
    return tuple(
        "hallucinated"
        if any(point.start < s.end and s.start < point.end for point in kept)
        else "supported"
        for s in state.view.statements
    )


def _pick_revision(state: DebateState, kept: Sequence[DebatePoint]) -> Iterator[Event]:
    """Pick the best revision, unless that is done already or nobody changed anything."""
    if state.progress.revised is not None:
        return
    revisions = _collect_turns(state, 2)
    ranked = rank_revisions(state.view.case.response, [turn.text for turn in revisions], kept)
    if not ranked:
        return
    best = ranked[0]
    judge, run = state.run.roster.judge, state.run
    if len(ranked) > 1 and isinstance(judge, RevisionRanker):
        run.stop.check()
        try:
            best = ranked[judge.best_of(build_judge_view(state), kept, ranked, run.stop)]
        except ReplyError as error:
            words = (
                f"{unusable_reply_message(judge, 'Judge', error)} So the version that mends "
                f"most and changes "
                "least is taken."
            )
            yield ProblemMet(run.now(), "judging", words, reply=error.reply)
        yield from drain_calls(run)
    author = next(turn for turn in revisions if turn.text == best)
    yield ResponseRevised(run.now(), f"{author.debater} ({author.agent})", best)


MAMM_REFINE = DebateProtocol(
    name="mamm_refine",
    argue=argue_mamm_refine,
    calls=count_mamm_refine_calls,
    turn_modes=REFINE_STAGES,
    judge_modes=("rerank",),
)
