"""What people's marks teach about marking words (MSA: few-shot extraction, 3.3, table 5).

Examples for a language model's span extractor, scored cases for fitting the threshold of marked
words, and the best panel member. What is put in use is appended with who did it and why; call these
functions inside `Store.writing()`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import numpy as np
from rapidfuzz.fuzz import ratio

from core.baseline.span_panel import SPAN_READER_NAME, iterate_unmarked_words, load_shipped_rule
from core.baseline.span_reader import load_span_reader
from core.learning.metrics import FOLD_COUNT, FloatArray, MetricEstimate, get_folds
from core.learning.span_threshold import (
    MIN_SCORED_CASES,
    THRESHOLD_GRID,
    VOTE_THRESHOLD,
    ScoredCase,
    ScoreKind,
    ThresholdProposal,
    compute_mean_figures,
)
from core.llm.limits import estimate_tokens
from core.pipeline.span_stage import (
    DEFAULT_VOTE_THRESHOLD,
    compute_soft_labels,
    find_hard_spans,
    rebuild_voted_runs,
)
from core.runtime.errors import InputError
from core.schema.records import (
    EXAMPLES_KIND,
    MAX_EXAMPLE_TOKENS,
    Case,
    Span,
    WordScore,
    get_base_language,
)
from core.schema.reviews import format_category
from core.schema.rosters import PANEL_READERS, PANEL_ROLE_PREFIX
from core.schema.run_state import RunState, fold_events
from core.store import Store
from core.store.cases import compute_fingerprint
from core.store.ground_truth import GroundTruth, TruthBasis, merge_ranges
from core.store.queries import find_newest_finished_runs, find_runs_judged, load_events_by_run
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact, parse_body

AnswerSource = TruthBasis | Literal["several"]
# The kinds of events that say what was scored, proposed and ruled on in a run.
SPAN_EVENT_KINDS = (
    "run_started", "statement_found", "judgement_reached", "words_scored", "span_proposed",
    "span_voted", "soft_labelled", "span_adjudicated", "label_predicted", "run_finished",
)  # fmt: skip
MAX_EXAMPLES_PER_LANGUAGE = 4
MAX_EXAMPLES = 40
MAX_CANDIDATES_PER_KIND = (
    4 * MAX_EXAMPLES_PER_LANGUAGE
)  # candidates of a kind; some may share a question
MAX_TOKENS_PER_EXAMPLE = MAX_EXAMPLE_TOKENS // 2  # tokens of one example
MIN_SURENESS = 0.5  # of a guess
KNOWN_CATEGORY_FACTOR = 0.5  # factor for a case whose category has an example already
SIMILARITY_PENALTY = (
    0.95  # share of its score that a case loses if an example has the same response
)
CLARITY_BY_SOURCE = {"settled": 1.0, "agreed": 0.9, "gold": 0.8, "single": 0.6, "several": 0.5}
SOURCE_DESCRIPTIONS = {
    "settled": "settled by a lead",
    "agreed": "several people marked the same",
    "gold": "came with a file",
    "single": "one person's marks",
    "several": "what at least half of several people marked",
}
SPAN_KEYS = ("start", "end", "text", "category", "instead")
FENCE_TOKENS = 90  # tokens of an example's fences and layout
ExampleDecision = Literal["pin", "unpin", "remove", "allow"]
LEAD_ACTION = "say what people's marks change"
MAX_DECISION_REASON_CHARS = 1000  # characters
DECISION_WORDS: dict[ExampleDecision, str] = {
    "pin": "Pinned an example",
    "unpin": "Unpinned an example",
    "remove": "Removed an example",
    "allow": "Allowed a removed example again",
}
CERTAIN_SCORE = 1.0
ScoredRange = tuple[float, int, int]  # p, start, end


@dataclass(frozen=True)
class SpanAnswer:
    """The words of a case that people hold to be wrong; no spans mean that none is.

    `places` are the characters of `case.response` in `spans`, as `[start, end)`. `said` are the ids
    of their corrections or of the right answer. `sure` in [0, 1] is that of the least sure person,
    None if nobody said. `run` is the newest one, if its judge called the case hallucinated.
    """

    case: Case
    group: str
    how: AnswerSource
    spans: tuple[Span, ...]
    places: tuple[tuple[int, int], ...]
    said: tuple[str, ...]
    people: int
    sure: float | None
    reason: str
    run_id: str = ""
    run: RunState | None = None

    @property
    def was_marked_by_machine(self) -> bool:
        """True if judge and first label allowed marking words; a later score marks none."""
        run = self.run
        if run is None or run.judgement is None:
            return False
        verdict = run.first_verdict or run.verdict
        return verdict is not None and run.judgement.label == verdict.label == "hallucinated"


def load_span_answers(store: Store, project_id: str) -> list[SpanAnswer]:
    """Return one answer for each case whose wrong words people told, without held-out cases."""
    held = {group for group, is_held in store.versions.holdout().items() if is_held}
    truths = store.truths.of_project(project_id)
    runs = find_newest_finished_runs(store, project_id)
    built = (_build_answer(case, truths[case.id]) for case in store.cases.several(sorted(truths)))
    answers = [answer for answer in built if answer is not None and answer.group not in held]
    # Of other runs, which may be most, no words were marked: their events need not be read.
    judged = find_runs_judged(store, "hallucinated")
    wanted = sorted(judged & {runs.get(answer.case.id, "") for answer in answers})
    progress = {
        run_id: fold_events(events)
        for run_id, events in load_events_by_run(store, wanted, SPAN_EVENT_KINDS)
    }
    return [
        replace(answer, run_id=run_id, run=progress.get(run_id))
        for answer in answers
        for run_id in [runs.get(answer.case.id, "")]
    ]


def _build_answer(case: Case, truth: GroundTruth) -> SpanAnswer | None:
    if truth.basis is None or not truth.is_marked:
        return None
    marks = {tuple((s.start, s.end) for s in one.spans) for one in truth.corrections}
    how: AnswerSource = "several" if truth.basis == "agreed" and len(marks) > 1 else truth.basis
    return SpanAnswer(
        case,
        compute_fingerprint(case.response, case.question),
        how,
        spans=truth.spans,
        places=merge_ranges((s.start, s.end) for s in truth.spans),
        said=truth.ids,
        people=len(truth.records),
        sure=min((c.sure for c in truth.corrections if c.sure is not None), default=None),
        reason=truth.reason,
    )


@dataclass(frozen=True)
class ExampleCandidate:
    """A case that could be an example; `iou` compares the machine's marks with people's."""

    answer: SpanAnswer
    iou: float
    tokens: int

    @property
    def id(self) -> str:
        """The fingerprint of question and response."""
        return self.answer.group

    @property
    def score(self) -> float:
        """How instructive it is, in [0, 1]: wrong marks, clear answers, few words."""
        clear = max(CLARITY_BY_SOURCE[self.answer.how], self.answer.sure or 0.0)
        return (1 - self.iou) * clear / (1 + self.tokens / MAX_EXAMPLE_TOKENS)

    @property
    def kind(self) -> tuple[str, str]:
        """Its language, and the first category that people gave."""
        return get_base_language(self.answer.case.language), self.answer.spans[0].category

    @property
    def why(self) -> str:
        """Why it was chosen, for the page."""
        sure = self.answer.sure
        return (
            f"the machine's marks and people's overlap by {100 * self.iou:.0f}%; "
            f"{SOURCE_DESCRIPTIONS[self.answer.how]}"
            f"{'' if sure is None else f', {100 * sure:.0f}% sure'}; "
            f"{format_category(self.kind[1])}; about {self.tokens} tokens"
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


def list_example_candidates(answers: Iterable[SpanAnswer]) -> list[ExampleCandidate]:
    """Return all cases that could be an example, the most instructive first."""
    made = (_make_candidate(answer) for answer in answers)
    usable = [candidate for candidate in made if candidate is not None]
    return sorted(usable, key=lambda candidate: (-candidate.score, candidate.id))


def _make_candidate(answer: SpanAnswer) -> ExampleCandidate | None:
    run, case = answer.run, answer.case
    is_unsure = answer.sure is not None and answer.sure < MIN_SURENESS
    if answer.how == "single":  # nobody confirmed it: who marked it must have said it is no guess
        is_unsure = (answer.sure or 0.0) <= MIN_SURENESS
    if run is None or not answer.spans or not answer.was_marked_by_machine or is_unsure:
        return None
    machine = merge_ranges((r.span.start, r.span.end) for r in run.rulings if r.kept)
    marks = " ".join(f"{s.text} {s.category} {s.instead}" for s in answer.spans)
    words = "\n".join((case.question, case.response, answer.reason, marks))
    tokens = estimate_tokens(words) + FENCE_TOKENS
    iou = compute_range_iou(machine, answer.places)
    answer = replace(answer, run=None)  # candidates are cached, runs are large
    return (
        ExampleCandidate(answer, iou, tokens)
        if iou < 1 and tokens <= MAX_TOKENS_PER_EXAMPLE
        else None
    )


def compute_range_iou(one: Sequence[tuple[int, int]], other: Sequence[tuple[int, int]]) -> float:
    """Return the IoU of two sets of places over characters; 1 if both are empty."""
    first = {i for start, end in one for i in range(start, end)}
    second = {i for start, end in other for i in range(start, end)}
    return len(first & second) / len(first | second) if first | second else 1.0


def select_examples(
    known: Sequence[ExampleCandidate], pinned: Sequence[str] = (), removed: Sequence[str] = ()
) -> list[ExampleCandidate]:
    """Return up to four examples of a language: pinned, then the most instructive unlike ones."""
    allowed = [one for one in known if one.id not in removed]
    examples = [one for one in allowed if one.id in pinned]
    counts: Counter[tuple[str, str]] = Counter()
    foremost = []
    for one in allowed:
        if one.id not in pinned and counts[one.kind] < MAX_CANDIDATES_PER_KIND:
            counts[one.kind] += 1
            foremost.append(one)
    while len(examples) < MAX_EXAMPLES:
        foremost = [one for one in foremost if _has_room(one, examples)]
        if not foremost:
            break
        best = max(foremost, key=lambda one: _adjusted_score(one, examples))
        examples.append(best)
        foremost.remove(best)
    return examples


def _adjusted_score(one: ExampleCandidate, examples: Sequence[ExampleCandidate]) -> float:
    """Return its score, lowered if its category or a similar response is there already."""
    same_language = [other for other in examples if other.kind[0] == one.kind[0]]
    response, *others = (c.answer.case.response.casefold() for c in (one, *same_language))
    similarity = max((ratio(response, other) for other in others), default=0.0) / 100
    is_known = any(other.kind == one.kind for other in same_language)
    return (
        one.score
        * (KNOWN_CATEGORY_FACTOR if is_known else 1.0)
        * (1 - SIMILARITY_PENALTY * similarity)
    )


def _has_room(one: ExampleCandidate, examples: Sequence[ExampleCandidate]) -> bool:
    """Return True if its language has room and none of its examples has the same question."""
    same_language = [other for other in examples if other.kind[0] == one.kind[0]]
    question, *others = (c.answer.case.question.casefold().split() for c in (one, *same_language))
    return (not question or question not in others) and len(
        same_language
    ) < MAX_EXAMPLES_PER_LANGUAGE


def build_examples_body(
    examples: Sequence[ExampleCandidate], before: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return examples and people's decisions as stored; removed ones are kept, pinned ones stay."""
    pinned, removed = read_decisions(before)
    bodies = [one.body for one in examples]
    known = {one["id"] for one in bodies}
    earlier = [one for one in (before or {}).get("examples", ()) if one["id"] not in known]
    first, last = ([one for one in earlier if one["id"] in ids] for ids in (pinned, removed))
    return {"examples": [*first, *bodies, *last], "pinned": pinned, "removed": removed}


def read_decisions(body: Mapping[str, Any] | None) -> tuple[list[str], list[str]]:
    """Return the (pinned, removed) fingerprints of a stored body."""
    return list((body or {}).get("pinned", ())), list((body or {}).get("removed", ()))


def build_threshold_body(
    proposals: Mapping[ScoreKind, ThresholdProposal], answers: Sequence[SpanAnswer]
) -> dict[str, Any]:
    """Return the stored form of thresholds: those that do better, and what they rest on."""
    used = {case for proposal in proposals.values() for case in proposal.cases}
    correction_ids = [i for answer in answers if answer.case.id in used for i in answer.said]
    return {
        **{kind: proposal.body for kind, proposal in proposals.items() if proposal.is_better},
        "corrections": sorted(correction_ids),
    }


def store_and_use(store: Store, learned: LearnedArtefact, reason: str) -> int:
    """Store a learned thing, use it in new checks and return its number.

    Raises:
        NotAllowed: the author is no lead of the project.
        InputError: there is no reason, or it is too long.
    """
    store.projects.require(learned.project_id, learned.author, "lead", LEAD_ACTION)
    reason_given = _require_reason(reason)
    number = store.learned.add(learned)
    store.learned.use(
        ArtefactChoice(
            learned.kind, learned.project_id, number, learned.at, learned.author, reason_given
        )
    )
    return number


def use_earlier(store: Store, choice: ArtefactChoice) -> None:
    """Use an earlier one again from now on, or the shipped one (number 0)."""
    store.projects.require(choice.project_id, choice.by, "lead", LEAD_ACTION)
    _require_reason(choice.reason)
    choices = store.learned.choices(choice.kind, choice.project_id)
    # Not `in_use`: one that was tampered with cannot be read, but people must get away from it.
    if (choices[0].number if choices else NOTHING_LEARNED) == choice.number:
        raise InputError("That is in use already; nothing was changed.")
    store.learned.use(choice)


def decide_example(
    store: Store,
    project_id: str,
    example_id: str,
    decision: ExampleDecision,
    *,
    by: str,
    now: float,
) -> int:
    """Pin or remove one of the examples in use, or undo that, and return the new number."""
    current = store.learned.in_use(EXAMPLES_KIND, project_id)
    known = parse_body(current, lambda body: body["examples"]) if current else []
    if current is None or all(one["id"] != example_id for one in known):
        raise InputError("That example is not in use any more; reload the page.")
    pinned, removed = (set(part) - {example_id} for part in read_decisions(current.body))
    if decision == "pin":
        pinned.add(example_id)
    elif decision == "remove":
        removed.add(example_id)
    body = current.body | {
        "examples": sorted(known, key=lambda one: one["id"] not in pinned),
        "pinned": sorted(pinned),
        "removed": sorted(removed),
    }
    return store_and_use(
        store, LearnedArtefact(EXAMPLES_KIND, project_id, now, by, body), DECISION_WORDS[decision]
    )


def _require_reason(words: str) -> str:
    reason = " ".join(words.split())
    if not reason or len(reason) > MAX_DECISION_REASON_CHARS:
        raise InputError(
            f"Expected a reason of up to {MAX_DECISION_REASON_CHARS:,} characters, found "
            f"{len(reason):,}; a "
            "few words are enough."
        )
    return reason


def load_shipped_thresholds() -> dict[ScoreKind, float]:
    """Return the p from which words are marked by default, for each kind of scores."""
    return {
        "reader": load_span_reader().threshold,
        "votes": VOTE_THRESHOLD,
        "panel": DEFAULT_VOTE_THRESHOLD,
        "weighted": load_shipped_rule().levels.otherwise or DEFAULT_VOTE_THRESHOLD,
    }


def group_scored_cases(answers: Sequence[SpanAnswer]) -> dict[ScoreKind, list[ScoredCase]]:
    """Return the cases by what scored their words; panels with weighted votes are separate."""
    cases: dict[ScoreKind, list[ScoredCase]] = {
        "reader": [],
        "votes": [],
        "panel": [],
        "weighted": [],
    }
    for answer in answers:
        run = answer.run
        if run is None or not answer.was_marked_by_machine:
            continue
        if run.soft is not None:
            if not run.soft.used:  # if one member decides, the vote's threshold does not apply
                kind: ScoreKind = "weighted" if _has_all_readers(run) else "panel"
                levels = ((label.level, label.start, label.end) for label in run.soft.labels)
                cases[kind].append(_score_case(answer, levels))
        elif not all(used.built_in for used in run.roles if used.role == "span adjudicator"):
            voted = ((r.span.p, r.span.start, r.span.end) for r in run.rulings)
            cases["votes"].append(_score_case(answer, voted))
        elif run.words is not None:
            cases["reader"].append(_score_case(answer, _read_stretches(run, answer.case.response)))
    return cases


def _has_all_readers(run: RunState) -> bool:
    """Return True for a panel of all built-in readers, the only one whose weights are known."""
    seats = [used for used in run.roles if used.role.startswith(PANEL_ROLE_PREFIX)]
    return len({used.agent for used in seats if used.built_in}) == len(seats) == len(PANEL_READERS)


def _read_stretches(run: RunState, response: str) -> Iterator[ScoredRange]:
    """Yield the debaters' kept marks, each free word, and the gaps between words of a stretch."""
    if run.words is None or run.judgement is None:
        return
    marked_by_others = [span for span in run.proposed if span.source != SPAN_READER_NAME]
    for ruling in run.rulings:
        if ruling.kept and ruling.span.source != SPAN_READER_NAME:
            yield CERTAIN_SCORE, ruling.span.start, ruling.span.end
    statements = [statement for _, statement in sorted(run.statements.items())]
    for part in iterate_unmarked_words(
        statements, run.judgement, run.words.scores, marked_by_others
    ):
        yield from split_stretch(part, response)


def split_stretch(scores: Sequence[WordScore], response: str) -> Iterator[ScoredRange]:
    """Yield the words, and gaps between neighbours on one line with the lower score of the two."""
    for score in scores:
        yield score.p, score.start, score.end
    for one, other in pairwise(scores):
        if "\n" not in response[one.end : other.start]:
            yield min(one.p, other.p), one.end, other.start


def _score_case(answer: SpanAnswer, stretches: Iterator[ScoredRange]) -> ScoredCase:
    case = answer.case
    language, length = get_base_language(case.language), len(case.response)
    return build_scored_case(case.id, answer.group, language, stretches, answer.places, length)


def build_scored_case(
    case_id: str,
    group: str,
    language: str,
    found: Iterator[ScoredRange],
    places: Sequence[tuple[int, int]],
    length: int,
) -> ScoredCase:
    """Return the case as the fit reads it; `places` are the characters that people marked."""
    is_marked = np.zeros(length + 1, dtype=np.int64)
    for start, end in places:
        is_marked[start + 1 : end + 1] = 1
    sums = is_marked.cumsum().tolist()
    parts = tuple(
        (p, end - start, sums[end] - sums[start])
        for p, start, end in found
        if start < end and p >= THRESHOLD_GRID[0]
    )
    return ScoredCase(case_id, group, language, parts, sums[length], length)


@dataclass(frozen=True)
class PanelMarks:
    """A case with the IoU of people's marks with each member's alone, and with the vote of all."""

    id: str
    group: str
    language: str
    by_member: Mapping[str, float]
    vote: float


@dataclass(frozen=True)
class BestMember:
    """A language's best member; `gain` is that over the vote, chosen in folds (MSA table 5)."""

    language: str
    n: int
    member: str
    members: tuple[tuple[str, MetricEstimate], ...]
    vote: MetricEstimate
    gain: MetricEstimate

    @property
    def is_better(self) -> bool:
        """True if the best member clearly beats the vote of all."""
        return self.gain.low > 0

    @property
    def body(self) -> dict[str, Any]:
        """The figures of this language as plain values, as they are stored."""
        members = {name: figure.body for name, figure in self.members}
        facts = {"language": self.language, "n": self.n, "member": self.member, "members": members}
        return facts | {"vote": self.vote.body, "gain": self.gain.body}


def measure_panel_marks(answers: Sequence[SpanAnswer]) -> list[PanelMarks]:
    """Return the cases whose words a panel of two or more marked, if the verdict allows it."""
    cases = []
    for answer in answers:
        run = answer.run
        if run is None or run.soft is None or not answer.was_marked_by_machine:
            continue
        runs, at, response = rebuild_voted_runs(run), run.soft.threshold, answer.case.response
        if len(runs) < 2 or run.soft.used:
            continue
        by_member = {
            one.extractor: compute_range_iou(
                find_hard_spans(compute_soft_labels([one]), at, response), answer.places
            )
            for one in runs
        }
        vote = compute_range_iou(find_hard_spans(run.soft.labels, at, response), answer.places)
        language = get_base_language(answer.case.language)
        cases.append(PanelMarks(answer.case.id, answer.group, language, by_member, vote))
    return cases


def find_best_members(cases: Sequence[PanelMarks]) -> list[BestMember]:
    """Return one for each language with enough cases, among members that marked all of them."""
    best = []
    for language in sorted({case.language for case in cases} - {"und"}):
        language_cases = [case for case in cases if case.language == language]
        members = sorted(set.intersection(*(set(case.by_member) for case in language_cases)))
        if len(language_cases) >= MIN_SCORED_CASES and members:
            best.append(_choose_best(language, language_cases, members))
    return best


def _choose_best(language: str, cases: Sequence[PanelMarks], members: Sequence[str]) -> BestMember:
    ious: FloatArray = np.array([[case.by_member[name] for name in members] for case in cases])
    vote: FloatArray = np.array([case.vote for case in cases])
    groups = [case.group for case in cases]
    folds, chosen = get_folds(groups), vote.copy()
    for fold in range(FOLD_COUNT):
        here = folds == fold
        if here.any() and not here.all():
            chosen[here] = ious[here, int(ious[~here].mean(axis=0).argmax())]
    values = dict(zip(members, ious.T, strict=True)) | {"": vote, "gain ": chosen - vote}
    figures = compute_mean_figures(values, groups)
    best = members[int(ious.mean(axis=0).argmax())]
    member_figures = tuple((name, figures[name]) for name in members)
    return BestMember(language, len(cases), best, member_figures, figures[""], figures["gain "])


def build_member_body(
    found: Sequence[BestMember], cases: Sequence[PanelMarks], answers: Sequence[SpanAnswer]
) -> dict[str, Any]:
    """Return the stored form: the members that are clearly better, all figures, and their basis."""
    used = {case.id for case in cases}
    correction_ids = [i for answer in answers if answer.case.id in used for i in answer.said]
    return {
        "alone": {one.language: one.member for one in found if one.is_better},
        "figures": [one.body for one in found],
        "cases": sorted(used),
        "corrections": sorted(correction_ids),
    }
