"""What a debate, and each agent's answer in it, looked like: the numbers a consensus learns from.

SC-MAKS 3.5 learns from "debate dynamics (e.g., critique frequency, revision sentiment, citation
count)" and scores an answer O_i by the critiques C_ij on it, revisions and citations (3.5.1). The
names and their order are a schema with a number of its own: whoever keeps numbers keeps it beside
them, and a change of meaning is a new number. NaN where nothing is known.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, fields

from core.progress import Progress
from core.records import Quote, Stance, Turn

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


@dataclass(frozen=True)
class DebateFeatures:
    """Schema 1; a stance counts 1 hallucinated, -1 supported, 0 unclear. None is a sum of votes.

    Those are there already, and would blur which agent counts how much.

    turns, rounds: how many turns were spoken, and the number of the last round.
    critiques: the share of turns that deny the message before them.
    critique_count: how many turns do.
    revisions: how often a debater's stance differs from its own last one.
    revised_towards: the mean of the stance a debater changed to, less the one it changed from.
    quotes: quotes of all turns. verified, fuzzy, not_found: the shares of them by check.
    agreement: the share of last stances that are the most common one. opening_agreement: of first.
    reached_consensus: 1 where the debate ended in agreement, else 0.
    confidence: the mean of the confidence that turns state; spread: the largest less the smallest.
    contradicted, carried, missing: what points of turns found in the evidence, as shares of points.
    readers_apart: the share of statements on which the judge's readers differ.
    statements: how many the response has, as log(1 + n).
    judge_p: the judge's own probability of hallucinated.
    """

    turns: float
    rounds: float
    critiques: float
    critique_count: float
    revisions: float
    revised_towards: float
    quotes: float
    verified: float
    fuzzy: float
    not_found: float
    agreement: float
    opening_agreement: float
    reached_consensus: float
    confidence: float
    spread: float
    contradicted: float
    carried: float
    missing: float
    readers_apart: float
    statements: float
    judge_p: float


DEBATE_NAMES = tuple(item.name for item in fields(DebateFeatures))


def features_of(progress: Progress) -> DebateFeatures:
    """The features of one run."""
    turns = progress.turns
    own: dict[str, list[Turn]] = defaultdict(list)
    for turn in turns:
        if turn.assigned is None:
            own[turn.debater].append(turn)
    first = [said[0].stance for said in own.values()]
    last = [said[-1].stance for said in own.values()]
    changes = _changes(own.values())
    quotes = [quote for turn in turns for quote in turn.quotes]
    found = Counter(point.finding for turn in turns for point in turn.points)
    stated = [turn.confidence for turn in turns if turn.confidence is not None]
    judgement = progress.judgement
    by_statement: dict[int, list[Stance]] = defaultdict(list)
    for view in judgement.readers if judgement else ():
        by_statement[view.statement].append(view.stance)
    denials = sum(turn.reply == "deny" for turn in turns)
    return DebateFeatures(
        turns=float(len(turns)),
        rounds=float(max((turn.round for turn in turns), default=0)),
        critiques=_share(denials, len(turns)),
        critique_count=float(denials),
        revisions=float(len(changes)),
        revised_towards=_mean(changes) if changes else 0.0,
        quotes=float(len(quotes)),
        verified=_checked(quotes, "verified"),
        fuzzy=_checked(quotes, "fuzzy"),
        not_found=_checked(quotes, "not_found"),
        agreement=_commonest(last),
        opening_agreement=_commonest(first),
        reached_consensus=float(progress.reached_consensus),
        confidence=_mean(stated),
        spread=max(stated) - min(stated) if stated else math.nan,
        contradicted=_share(found["contradicted"], found.total()),
        carried=_share(found["carried"], found.total()),
        missing=_share(found["missing"], found.total()),
        readers_apart=_share(
            sum(len(set(said)) > 1 for said in by_statement.values()), len(by_statement)
        ),
        statements=math.log1p(len(progress.statements)),
        judge_p=math.nan if judgement is None or judgement.p is None else judgement.p,
    )


def _changes(by_debater: Iterable[Sequence[Turn]]) -> list[float]:
    """How far each change of a debater's mind went, towards hallucinated."""
    return [
        SIDES[after.stance] - SIDES[before.stance]
        for said in by_debater
        for before, after in itertools.pairwise(said)
        if before.stance != after.stance
    ]


def _checked(quotes: Sequence[Quote], status: str) -> float:
    return _share(sum(quote.status == status for quote in quotes), len(quotes))


def _commonest(stances: Sequence[Stance]) -> float:
    return _share(max((stances.count(stance) for stance in stances), default=0), len(stances))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
