"""Which member of a panel marks as people do, by language, and is it clearly better than the vote?

Each member's run alone (its spans, as all others voted on them, from the threshold on) against the
vote of all, on cases that people marked: IoU over characters, a mean over cases. In five folds the
member that is best on the other four is tried on the fifth; only where that gains over the vote
with a 95 % interval above 0 is the best of all cases proposed. Choosing the best of several on the
same cases that it is then praised for would find a better one in mere chance.
Source: MSA table 5, which names the best extractor of each language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from core.learning.calibration import fold_of
from core.learning.span_examples import SpanAnswer, overlap
from core.learning.span_threshold import FEWEST_CASES, FOLDS, Figure, Numbers, intervals
from core.pipeline.span_stage import runs_of
from core.pipeline.span_voting import hard_places, soft_labels
from core.records import base_of


@dataclass(frozen=True)
class MarkedByPanel:
    """A case: IoU of each member's run alone with people's marks, and of the vote of all."""

    id: str
    group: str
    language: str
    by_member: Mapping[str, float]
    vote: float


@dataclass(frozen=True)
class BestMember:
    """What a language's cases say; `gain` is that of choosing in folds, over the vote.

    `member` is the best of all cases, `members` each one's IoU, `vote` that of the vote of all.
    """

    language: str
    n: int
    member: str
    members: tuple[tuple[str, Figure], ...]
    vote: Figure
    gain: Figure

    @property
    def is_better(self) -> bool:
        """True where the best member clearly beats the vote of all."""
        return self.gain.low > 0

    @property
    def body(self) -> dict[str, Any]:
        """As it is kept."""
        return {
            "language": self.language,
            "n": self.n,
            "member": self.member,
            "members": {name: figure.body for name, figure in self.members},
            "vote": self.vote.body,
            "gain": self.gain.body,
        }


def marked_by_panels(answers: Sequence[SpanAnswer]) -> list[MarkedByPanel]:
    """The cases whose words a panel of two or more marked, under a verdict that lets it."""
    found = []
    for answer in answers:
        run = answer.run
        if run is None or run.soft is None or not answer.was_marked_by_machine:
            continue
        runs, at, response = runs_of(run), run.soft.threshold, answer.case.response
        if len(runs) < 2 or run.soft.used:
            continue
        alone = {
            one.extractor: overlap(hard_places(soft_labels([one]), at, response), answer.places)
            for one in runs
        }
        vote = overlap(hard_places(run.soft.labels, at, response), answer.places)
        language = base_of(answer.case.language)
        found.append(MarkedByPanel(answer.case.id, answer.group, language, alone, vote))
    return found


def best_members(cases: Sequence[MarkedByPanel]) -> list[BestMember]:
    """One for every language with enough cases; only members that marked all of them compete."""
    found = []
    for language in sorted({case.language for case in cases} - {"und"}):
        own = [case for case in cases if case.language == language]
        members = set.intersection(*(set(case.by_member) for case in own))
        if len(own) >= FEWEST_CASES and members:
            found.append(_best(language, own, sorted(members)))
    return found


def _best(language: str, cases: Sequence[MarkedByPanel], members: Sequence[str]) -> BestMember:
    ious: Numbers = np.array([[case.by_member[name] for name in members] for case in cases])
    vote: Numbers = np.array([case.vote for case in cases])
    folds = np.array([fold_of(case.group) for case in cases])
    chosen = vote.copy()
    for fold in range(FOLDS):
        here = folds == fold
        if here.any() and not here.all():
            chosen[here] = ious[here, int(ious[~here].mean(axis=0).argmax())]
    named = {name: ious[:, place] for place, name in enumerate(members)}
    figures = intervals({**named, "": vote, "gain ": chosen - vote}, [case.group for case in cases])
    best = members[int(ious.mean(axis=0).argmax())]
    told = tuple((name, figures[name]) for name in members)
    return BestMember(language, len(cases), best, told, figures[""], figures["gain "])


def member_body(
    found: Sequence[BestMember], cases: Sequence[MarkedByPanel], answers: Sequence[SpanAnswer]
) -> dict[str, Any]:
    """What is kept: the members that are clearly better, every figure, and what they rest on."""
    used = {case.id for case in cases}
    said = [i for answer in answers if answer.case.id in used for i in answer.said]
    return {
        "alone": {one.language: one.member for one in found if one.is_better},
        "figures": [one.body for one in found],
        "cases": sorted(used),
        "corrections": sorted(said),
    }
