"""What people's marks teach about marking words (MSA: few-shot extraction, 3.3, table 5).

Examples for a language model's span extractor, scored cases to fit the threshold of marked words,
and the best panel member. What is taken into use is appended with who took it and why; call inside
`Store.writing()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, Literal

import numpy as np
from rapidfuzz.fuzz import ratio

from core.baseline.panel import READER, free_words, shipped_rule
from core.baseline.span_reader import load_span_reader
from core.learning.metrics import FOLDS, Figure, Numbers, fold_numbers
from core.learning.span_threshold import (
    FEWEST_CASES,
    GRID,
    VOTE,
    Kind,
    Proposal,
    ScoredCase,
    mean_figures,
)
from core.llm.limits import estimated_tokens
from core.pipeline.span_stage import KEPT_FROM, hard_places, runs_of, soft_labels
from core.runtime.errors import InputError
from core.schema.progress import Progress, folded
from core.schema.records import EXAMPLES, MOST_TOKENS, Case, Span, WordScore, base_of
from core.schema.reviews import Correction, Gold, category_words
from core.schema.rosters import PANEL, PANEL_READERS
from core.store import Store
from core.store.cases import fingerprint
from core.store.queries import events_of, newest_finished
from core.store.versions import NONE, Choice, Learned, read_body

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
        """True where judge and first label let words be marked; a new score marks none anew."""
        run = self.run
        if (
            run is None
            or run.judgement is None
            or not (verdict := run.first_verdict or run.verdict)
        ):
            return False
        return run.judgement.label == verdict.label == "hallucinated"


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
    marked = [{i for s in c.spans for i in range(s.start, s.end)} for c in told]
    counts = Counter(i for own in marked for i in own)
    places = joined((i, i + 1) for i, count in counts.items() if 2 * count >= len(told))
    known: dict[tuple[int, int], Span] = {}
    for span in (span for c in told for span in c.spans):
        if any(start < span.end and span.start < end for start, end in places):
            known.setdefault((span.start, span.end), span)
    how = (
        "one" if len(told) == 1 else "several" if any(m != marked[0] for m in marked) else "agreed"
    )
    return SpanAnswer(
        case, group, how, tuple(known[place] for place in sorted(known)), places,
        said=tuple(c.id for c in told), people=len(told),
        sure=min((c.sure for c in told if c.sure is not None), default=None),
        reason=next((c.reason for c in told if c.reason.strip()), ""),
    )  # fmt: skip


def joined(places: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The places in their order; those that overlap or touch as one."""
    whole: list[tuple[int, int]] = []
    for start, end in sorted(places):
        if whole and start <= whole[-1][1]:
            start, end = whole[-1][0], max(end, whole.pop()[1])
        whole.append((start, end))
    return tuple(whole)


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
SPAN_KEYS = ("start", "end", "text", "category", "instead")
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
        clear = max(CLEAR[self.answer.how], self.answer.sure or 0.0)
        return (1 - self.iou) * clear / (1 + self.tokens / MOST_TOKENS)

    @property
    def kind(self) -> tuple[str, str]:
        """Its language, and the first category that people gave."""
        return base_of(self.answer.case.language), self.answer.spans[0].category

    @property
    def why(self) -> str:
        """Why it was chosen, for the page."""
        sure = self.answer.sure
        return (
            f"the machine's marks and people's overlap by {100 * self.iou:.0f}%; "
            f"{HOW_WORDS[self.answer.how]}{'' if sure is None else f', {100 * sure:.0f}% sure'}; "
            f"{category_words(self.kind[1])}; about {self.tokens} tokens"
        )

    @property
    def body(self) -> dict[str, Any]:
        """The example as plain values, as it is stored."""
        case = self.answer.case
        return {
            "id": self.id,
            "case_id": case.id,
            **{name: getattr(case, name) for name in ("language", "question", "response")},
            "spans": [{key: getattr(s, key) for key in SPAN_KEYS} for s in self.answer.spans],
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
    """Up to four of a language: pinned ones, then the most instructive that are unlike."""
    left = [one for one in known if one.id not in removed]
    found = [one for one in left if one.id in pinned]
    counts: Counter[tuple[str, str]] = Counter()
    foremost = []
    for one in left:
        if one.id not in pinned and counts[one.kind] < FOREMOST:
            counts[one.kind] += 1
            foremost.append(one)
    while len(found) < MOST_KEPT and (foremost := [o for o in foremost if _has_room(o, found)]):
        best = max(foremost, key=lambda one: _worth(one, found))
        found.append(best)
        foremost.remove(best)
    return found


def _worth(one: Candidate, found: Sequence[Candidate]) -> float:
    """Its score, less where its category is there already, and as far as its response is."""
    own = [other for other in found if other.kind[0] == one.kind[0]]
    response, *others = (c.answer.case.response.casefold() for c in (one, *own))
    likest = max((ratio(response, other) for other in others), default=0.0) / 100
    is_known = any(other.kind == one.kind for other in own)
    return one.score * (ALIKE if is_known else 1.0) * (1 - COPIED * likest)


def _has_room(one: Candidate, found: Sequence[Candidate]) -> bool:
    own = [other for other in found if other.kind[0] == one.kind[0]]
    question, *others = (c.answer.case.question.casefold().split() for c in (one, *own))
    return (not question or question not in others) and len(own) < MOST_OF_A_LANGUAGE


def body_of(
    examples: Sequence[Candidate], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The examples and what people decided; removed ones are kept, pinned ones always stay."""
    pinned, removed = decided(before)
    kept = [one.body for one in examples]
    known = {one["id"] for one in kept}
    old = [one for one in (before or {}).get("examples", ()) if one["id"] not in known]
    first, gone = ([one for one in old if one["id"] in ids] for ids in (pinned, removed))
    return {"examples": [*first, *kept, *gone], "pinned": pinned, "removed": removed}


def decided(body: Mapping[str, Any] | None) -> tuple[list[str], list[str]]:
    """(pinned, removed) fingerprints of a kept body."""
    return list((body or {}).get("pinned", ())), list((body or {}).get("removed", ()))


Decision = Literal["pin", "unpin", "remove", "allow"]
LEADS = "say what people's marks change"
LONGEST_REASON = 1000  # characters
DECISION_WORDS: dict[Decision, str] = {
    "pin": "Pinned an example",
    "unpin": "Unpinned an example",
    "remove": "Removed an example",
    "allow": "Allowed a removed example again",
}


def threshold_body(
    proposals: Mapping[Kind, Proposal], answers: Sequence[SpanAnswer]
) -> dict[str, Any]:
    """What is kept of thresholds: each kind's that do better, and what they rest on."""
    used = {case for found in proposals.values() for case in found.cases}
    said = [i for answer in answers if answer.case.id in used for i in answer.said]
    return {
        **{kind: found.body for kind, found in proposals.items() if found.is_better},
        "corrections": sorted(said),
    }


def take_into_use(store: Store, learned: Learned, reason: str) -> int:
    """Keep a learned thing, use it in new checks and return its number.

    Raises:
        NotAllowed: the author is no lead of the project.
        InputError: there is no reason, or it is too long.
    """
    store.projects.require(learned.project_id, learned.author, "lead", LEADS)
    words = _reason(reason)
    number = store.learned.add(learned)
    store.learned.use(
        Choice(learned.kind, learned.project_id, number, learned.at, learned.author, words)
    )
    return number


def go_back(store: Store, choice: Choice) -> None:
    """Use an earlier one again from now on, or (number 0) what ships."""
    store.projects.require(choice.project_id, choice.by, "lead", LEADS)
    _reason(choice.reason)
    choices = store.learned.choices(choice.kind, choice.project_id)
    # Not `in_use`: one that was tampered with cannot be read, and is what people go back from.
    if (choices[0].number if choices else NONE) == choice.number:
        raise InputError("That is in use already; nothing was changed.")
    store.learned.use(choice)


def decide(
    store: Store, project_id: str, example_id: str, decision: Decision, *, by: str, now: float
) -> int:
    """Pin or remove one of the examples in use, or take that back; the new number."""
    current = store.learned.in_use(EXAMPLES, project_id)
    known = read_body(current, lambda body: body["examples"]) if current else []
    if current is None or all(one["id"] != example_id for one in known):
        raise InputError("That example is not in use any more; reload the page.")
    pinned, removed = (set(part) - {example_id} for part in decided(current.body))
    if decision == "pin":
        pinned.add(example_id)
    elif decision == "remove":
        removed.add(example_id)
    body = current.body | {
        "examples": sorted(known, key=lambda one: one["id"] not in pinned),
        "pinned": sorted(pinned),
        "removed": sorted(removed),
    }
    return take_into_use(
        store, Learned(EXAMPLES, project_id, now, by, body), DECISION_WORDS[decision]
    )


def _reason(words: str) -> str:
    reason = " ".join(words.split())
    if not reason or len(reason) > LONGEST_REASON:
        raise InputError(
            f"Expected a reason of up to {LONGEST_REASON:,} characters, found {len(reason):,}; a "
            "few words are enough."
        )
    return reason


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
    """The cases by what scored their words; a panel whose votes are weighed counts apart."""
    found: dict[Kind, list[ScoredCase]] = {"reader": [], "votes": [], "panel": [], "weighted": []}
    for answer in answers:
        run = answer.run
        if run is None or not answer.was_marked_by_machine:
            continue
        if run.soft is not None:
            if not run.soft.used:  # where one member decides, no threshold of the vote does
                kind: Kind = "weighted" if _is_weighed(run) else "panel"
                levels = ((label.level, label.start, label.end) for label in run.soft.labels)
                found[kind].append(_case(answer, levels))
        elif not all(used.built_in for used in run.roles if used.role == "span adjudicator"):
            voted = ((r.span.p, r.span.start, r.span.end) for r in run.rulings)
            found["votes"].append(_case(answer, voted))
        elif run.words is not None:
            found["reader"].append(_case(answer, _read(run, answer.case.response)))
    return found


def _is_weighed(run: Progress) -> bool:
    """True for a panel of all built-in readers, the only one whose weights are known."""
    seats = [used for used in run.roles if used.role.startswith(PANEL)]
    return len({used.agent for used in seats if used.built_in}) == len(seats) == len(PANEL_READERS)


def _read(run: Progress, response: str) -> Iterator[Stretch]:
    """The debaters' kept marks, each free word, and what stands between two words of a stretch."""
    if run.words is None or run.judgement is None:
        return
    named = [span for span in run.proposed if span.source != READER]
    for ruling in run.rulings:
        if ruling.kept and ruling.span.source != READER:
            yield ALWAYS, ruling.span.start, ruling.span.end
    statements = [statement for _, statement in sorted(run.statements.items())]
    for part in free_words(statements, run.judgement, run.words.scores, named):
        yield from pieces(part, response)


def pieces(scores: Sequence[WordScore], response: str) -> Iterator[Stretch]:
    """The words, and between neighbours on one line the lower score of the two."""
    for score in scores:
        yield score.p, score.start, score.end
    for one, other in pairwise(scores):
        if "\n" not in response[one.end : other.start]:
            yield min(one.p, other.p), one.end, other.start


def _case(answer: SpanAnswer, found: Iterator[Stretch]) -> ScoredCase:
    case = answer.case
    language, length = base_of(case.language), len(case.response)
    return cut(case.id, answer.group, language, found, answer.places, length)


def cut(
    case_id: str, group: str, language: str,
    found: Iterator[Stretch], places: Sequence[tuple[int, int]], length: int,
) -> ScoredCase:  # fmt: skip
    """The case as the fit takes it; `places` are the characters that people marked."""
    is_marked = np.zeros(length + 1, dtype=np.int64)
    for start, end in places:
        is_marked[start + 1 : end + 1] = 1
    sums = is_marked.cumsum().tolist()
    parts = tuple(
        (p, end - start, sums[end] - sums[start])
        for p, start, end in found
        if start < end and p >= GRID[0]
    )
    return ScoredCase(case_id, group, language, parts, sums[length], length)


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
    """A language's best member; `gain` is that of choosing in folds over the vote (MSA table 5)."""

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
        """The figures of this language as plain values, as they are stored."""
        members = {name: figure.body for name, figure in self.members}
        own = {"language": self.language, "n": self.n, "member": self.member, "members": members}
        return own | {"vote": self.vote.body, "gain": self.gain.body}


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
        members = sorted(set.intersection(*(set(case.by_member) for case in own)))
        if len(own) >= FEWEST_CASES and members:
            found.append(_best(language, own, members))
    return found


def _best(language: str, cases: Sequence[MarkedByPanel], members: Sequence[str]) -> BestMember:
    ious: Numbers = np.array([[case.by_member[name] for name in members] for case in cases])
    vote: Numbers = np.array([case.vote for case in cases])
    groups = [case.group for case in cases]
    folds, chosen = fold_numbers(groups), vote.copy()
    for fold in range(FOLDS):
        here = folds == fold
        if here.any() and not here.all():
            chosen[here] = ious[here, int(ious[~here].mean(axis=0).argmax())]
    named = dict(zip(members, ious.T, strict=True)) | {"": vote, "gain ": chosen - vote}
    figures = mean_figures(named, groups)
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
