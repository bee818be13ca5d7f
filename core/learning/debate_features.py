"""What a debate looked like, as named numbers: the features from which a consensus may learn.

SC-MAKS 3.5 learns from "debate dynamics (e.g., critique frequency, revision sentiment, citation
count)". The names and their order are a schema with a number of its own: whoever keeps numbers
keeps it beside them, and a change of meaning is a new number. NaN where nothing is known.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields

from core.progress import Progress
from core.records import Quote, Stance, Turn

SCHEMA = 1
SIDES: dict[Stance, float] = {"hallucinated": 1.0, "supported": -1.0, "unclear": 0.0}
ENTAILMENT = "entailment"


@dataclass(frozen=True)
class DebateFeatures:
    """Schema 1; a stance counts 1 hallucinated, -1 supported, 0 unclear.

    turns, rounds: how many turns were spoken, and the number of the last round.
    critiques: the share of turns that deny the message before them.
    critique_count: how many turns do.
    revisions: how often a debater's stance differs from its own last one.
    revised_towards: the mean of the stance a debater changed to, less the one it changed from.
    quotes: quotes of all turns. verified, fuzzy, not_found: the shares of them by check.
    quotes_hallucinated: verified quotes in turns that say hallucinated, less those in turns that
        say supported, as a share of all quotes.
    opening, closing: the mean of the debaters' first and last stances.
    agreement: the share of last stances that are the most common one. opening_agreement: of first.
    reached_consensus: 1 where the debate ended in agreement, else 0.
    confidence: the mean of the confidence that turns state; spread: the largest less the smallest.
    contradicted, carried, missing: what points of turns found in the evidence, as shares of points.
    readers: the mean stance of the judge's readers over all statements; readers_apart: the share
        of statements on which they differ.
    entailment: the mean stance of the entailment reader among them.
    statements: how many the response has, as log(1 + n).
    judge_p: the judge's own probability of hallucinated.
    record: the mean past accuracy of debaters that end on hallucinated less that of those that end
        on supported, where a history is given.
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
    quotes_hallucinated: float
    opening: float
    closing: float
    agreement: float
    opening_agreement: float
    reached_consensus: float
    confidence: float
    spread: float
    contradicted: float
    carried: float
    missing: float
    readers: float
    readers_apart: float
    entailment: float
    statements: float
    judge_p: float
    record: float

    def vector(self) -> tuple[float, ...]:
        """The numbers in the order of `NAMES`."""
        return tuple(asdict(self).values())


NAMES = tuple(item.name for item in fields(DebateFeatures))


def features_of(progress: Progress, history: Mapping[str, float] | None = None) -> DebateFeatures:
    """The features of one run; `history` is the past accuracy of agents by name.

    A history must not know the run's own right answer: count it over other cases.
    """
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
    entailed = [
        view.stance
        for view in (judgement.readers if judgement else ())
        if ENTAILMENT in view.reader.casefold()
    ]
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
        quotes_hallucinated=_leaning(turns, len(quotes)),
        opening=_mean([SIDES[stance] for stance in first]),
        closing=_mean([SIDES[stance] for stance in last]),
        agreement=_commonest(last),
        opening_agreement=_commonest(first),
        reached_consensus=float(progress.reached_consensus),
        confidence=_mean(stated),
        spread=max(stated) - min(stated) if stated else math.nan,
        contradicted=_share(found["contradicted"], found.total()),
        carried=_share(found["carried"], found.total()),
        missing=_share(found["missing"], found.total()),
        readers=_mean([SIDES[s] for said in by_statement.values() for s in said]),
        readers_apart=_share(
            sum(len(set(said)) > 1 for said in by_statement.values()), len(by_statement)
        ),
        entailment=_mean([SIDES[stance] for stance in entailed]),
        statements=math.log1p(len(progress.statements)),
        judge_p=math.nan if judgement is None or judgement.p is None else judgement.p,
        record=_record([said[-1] for said in own.values()], history or {}),
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


def _leaning(turns: Sequence[Turn], quotes: int) -> float:
    verified = [
        SIDES[turn.stance] * sum(quote.status == "verified" for quote in turn.quotes)
        for turn in turns
    ]
    return sum(verified) / quotes if quotes else math.nan


def _record(last: Sequence[Turn], history: Mapping[str, float]) -> float:
    """NaN where no debater is known; a side without one counts as a coin."""
    sides = {
        stance: [history[t.agent] for t in last if t.stance == stance and t.agent in history]
        for stance in ("hallucinated", "supported")
    }
    if not any(sides.values()):
        return math.nan
    means = {stance: _mean(own) if own else 0.5 for stance, own in sides.items()}
    return means["hallucinated"] - means["supported"]


def _commonest(stances: Sequence[Stance]) -> float:
    return _share(max((stances.count(stance) for stance in stances), default=0), len(stances))


def _share(part: float, whole: float) -> float:
    return part / whole if whole else math.nan


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
