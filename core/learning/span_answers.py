"""What people marked in a project's cases, beside what the newest run over each had marked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Literal

from core.progress import Progress, folded
from core.records import Case, Span
from core.reviews import Correction, Gold
from core.store import Store
from core.store.cases import fingerprint
from core.store.verdicts import events_of, newest_finished

How = Literal["settled", "agreed", "several", "one", "imported"]
# Of a run only these tell what was scored, proposed and ruled upon.
TOLD = (
    "run_started", "statement_found", "judgement_reached", "words_scored", "span_proposed",
    "span_voted", "soft_labelled", "span_adjudicated", "label_predicted", "run_finished",
)  # fmt: skip


@dataclass(frozen=True)
class SpanAnswer:
    """What people hold to be the wrong words of a case; no spans: they said that none is wrong.

    `spans` may overlap in what several people marked; `places` are the characters of
    `case.response` that at least half of them marked. `said` are the ids of their corrections or
    of the right answer; `sure` in [0, 1] is the least sure person's, None where nobody said.
    """

    case: Case
    group: str
    how: How
    spans: tuple[Span, ...]
    places: tuple[tuple[int, int], ...]
    said: tuple[str, ...]
    people: int
    sure: float | None
    reason: str
    run_id: str = ""
    run: Progress | None = None

    @property
    def was_marked_by_machine(self) -> bool:
        """True where judge and label let words be marked: only there do marks depend on scores.

        The label is the one that the run ended with: a new score marks no words anew.
        """
        run = self.run
        verdict = (run.first_verdict or run.verdict) if run else None
        return (
            run is not None
            and run.judgement is not None
            and verdict is not None
            and run.judgement.label == verdict.label == "hallucinated"
        )


def span_answers(store: Store, project_id: str) -> list[SpanAnswer]:
    """One for each case whose wrong words people told; held-out cases are left out."""
    held = {group for group, is_held in store.versions.holdout().items() if is_held}
    said = store.corrections.newest_by_person(project_id)
    by_case = {case_id: list(own) for case_id, own in groupby(said, key=lambda c: c.case_id)}
    golds = store.golds.of_project(project_id)
    runs = newest_finished(store, project_id)
    found = []
    for case in store.cases.several(sorted({*by_case, *golds})):
        answer = _answer(case, by_case.get(case.id, ()), golds.get(case.id))
        if answer is not None and answer.group not in held:
            run_id = runs.get(case.id, "")
            run = folded(events_of(store, run_id, TOLD)) if run_id else None
            found.append(replace(answer, run_id=run_id, run=run))
    return found


def _answer(case: Case, said: Sequence[Correction], gold: Gold | None) -> SpanAnswer | None:
    """What was settled here, else what people said, else what came with a file."""
    group = fingerprint(case.response, case.question)
    told = [c for c in said if c.spans or c.is_unmarked or c.label == "supported"]
    is_told = gold is not None and bool(gold.spans or gold.label == "supported")
    if gold is not None and is_told and (gold.origin != "imported" or not told):
        how: How = "imported" if gold.origin == "imported" else "settled"
        spans = tuple(sorted(gold.spans, key=lambda s: s.start))
        places = joined((s.start, s.end) for s in spans)
        return SpanAnswer(case, group, how, spans, places, (gold.id,), 1, None, gold.reason)
    if not told:
        return None
    places = _most_marked([c.spans for c in told])
    known: dict[tuple[int, int], Span] = {}
    for span in (span for c in told for span in c.spans):
        if any(start < span.end and span.start < end for start, end in places):
            known.setdefault((span.start, span.end), span)
    sure = [c.sure for c in told if c.sure is not None]
    alike = len({joined((s.start, s.end) for s in c.spans) for c in told}) == 1
    return SpanAnswer(
        case,
        group,
        "one" if len(told) == 1 else "agreed" if alike else "several",
        tuple(known[place] for place in sorted(known)),
        places,
        tuple(c.id for c in told),
        len(told),
        min(sure) if sure else None,
        next((c.reason for c in told if c.reason.strip()), ""),
    )


def joined(places: Iterator[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The places in their order; those that overlap or touch as one."""
    whole: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if whole and start <= whole[-1][1]:
            whole[-1] = (whole[-1][0], max(end, whole[-1][1]))
        else:
            whole.append((start, end))
    return tuple(whole)


def _most_marked(said: Sequence[Sequence[Span]]) -> tuple[tuple[int, int], ...]:
    """The characters that at least half of the people marked."""
    steps: Counter[int] = Counter()
    for spans in said:
        for start, end in joined((s.start, s.end) for s in spans):
            steps[start] += 1
            steps[end] -= 1
    cuts = sorted(steps)
    found, count = [], 0
    for cut, following in pairwise(cuts):
        count += steps[cut]
        if 2 * count >= len(said):
            found.append((cut, following))
    return joined(iter(found))
