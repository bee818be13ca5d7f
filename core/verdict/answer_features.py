"""What one agent's answer looked like in a debate, as named numbers: what a consensus weighs it by.

SC-MAKS 3.5.1 scores an answer O_i by the critiques C_ij on it, revisions and citations. The names
and their order are a schema with a number of its own: whoever keeps numbers keeps it beside them,
and a change of meaning is a new number. NaN where nothing is known.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

from core.records import Stance, Turn

SCHEMA = 1
SIDES: Mapping[Stance, float] = {"hallucinated": 1.0, "supported": -1.0, "unclear": 0.0}


@dataclass(frozen=True)
class AnswerFeatures:
    """Schema 1. An agent's answers are its turns about nobody else's, for no side it had to take.

    side: 1 where its last answer says hallucinated, -1 supported, 0 unclear.
    attacked, backed: how many turns of others on its answers take another stance, and how many of
        these have a quote that our code found, each as log(1 + n). In protocols whose turns do not
        say whose answer they are about, a turn that denies the message before it is about that one.
    helped: log(1 + n) of the others that take its own stance.
    denied: the share of its own turns that deny the message before.
    revisions: how often its stance changed; towards: its last side less its first.
    quotes: log(1 + n) of its quotes; verified, not_found: the shares of them by check.
    agreement, opening_agreement: the share of the others whose last (first) answer takes its last
        (first) stance.
    confidence: the last one it stated.
    contradicted, carried: what its points found in the evidence, as shares of its points.
    """

    side: float
    attacked: float
    backed: float
    helped: float
    denied: float
    revisions: float
    towards: float
    quotes: float
    verified: float
    not_found: float
    agreement: float
    opening_agreement: float
    confidence: float
    contradicted: float
    carried: float


NAMES = tuple(item.name for item in fields(AnswerFeatures))


def vector(features: AnswerFeatures) -> tuple[float, ...]:
    """The numbers in the order of `NAMES`."""
    return astuple(features)


def answers_in(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """Each debater's answers in order, in the order in which the debaters first answered."""
    found: dict[str, list[Turn]] = {}
    for turn in sorted(turns, key=lambda turn: turn.number):
        if turn.assigned is None and turn.about in ("", turn.debater):
            found.setdefault(turn.debater, []).append(turn)
    return found


def answer_features(turns: Sequence[Turn]) -> dict[str, AnswerFeatures]:
    """The features of everyone who answered, by debater."""
    answers = answers_in(turns)
    critiques = _critiques(turns)
    return {
        debater: _features(
            own,
            [turn for turn in turns if turn.debater == debater],
            critiques.get(debater, ()),
            [said for other, said in answers.items() if other != debater],
        )
        for debater, own in answers.items()
    }


def _features(
    answers: Sequence[Turn],
    spoken: Sequence[Turn],
    critiques: Sequence[Turn],
    others: Sequence[Sequence[Turn]],
) -> AnswerFeatures:
    first, last = answers[0].stance, answers[-1].stance
    against = [turn for turn in critiques if turn.stance != last]
    quotes = [quote.status for turn in answers for quote in turn.quotes]
    points = [point.finding for turn in answers for point in turn.points]
    stated = [turn.confidence for turn in answers if turn.confidence is not None]
    changes = sum(a.stance != b.stance for a, b in itertools.pairwise(answers))
    backed = [turn for turn in against if any(q.status == "verified" for q in turn.quotes)]
    return AnswerFeatures(
        side=SIDES[last],
        attacked=math.log1p(len(against)),
        backed=math.log1p(len(backed)),
        helped=math.log1p(len(critiques) - len(against)),
        denied=_share(sum(turn.reply == "deny" for turn in spoken), len(spoken)),
        revisions=float(changes),
        towards=SIDES[last] - SIDES[first],
        quotes=math.log1p(len(quotes)),
        verified=_share(quotes.count("verified"), len(quotes)),
        not_found=_share(quotes.count("not_found"), len(quotes)),
        agreement=_share(sum(said[-1].stance == last for said in others), len(others)),
        opening_agreement=_share(sum(said[0].stance == first for said in others), len(others)),
        confidence=stated[-1] if stated else math.nan,
        contradicted=_share(points.count("contradicted"), len(points)),
        carried=_share(points.count("carried"), len(points)),
    )


def _critiques(turns: Iterable[Turn]) -> dict[str, list[Turn]]:
    """By debater, the turns of others that speak of its answers (C_ij)."""
    found: dict[str, list[Turn]] = {}
    before: Turn | None = None
    for turn in sorted(turns, key=lambda turn: turn.number):
        denied = before.debater if before is not None and turn.reply == "deny" else ""
        about = turn.about or denied
        if about and about != turn.debater:
            found.setdefault(about, []).append(turn)
        before = turn
    return found


def _share(part: int, whole: int) -> float:
    return part / whole if whole else math.nan
