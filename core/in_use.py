"""What people have taught that a project goes by: named in a run's plan, and read for the run."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from core.baseline.readers import reader_in_use
from core.errors import ConfigError
from core.learned_marks import (
    CONSENSUS,
    EXAMPLES,
    MEMBER,
    THRESHOLD,
    LearnedMarks,
    SpanExample,
    SpanThreshold,
    examples_from,
    fitting_examples,
    members_from,
    threshold_from,
)
from core.records import Plan, Run
from core.store import Store
from core.store.cases import fingerprint
from core.store.versions import NONE, Learned, read_body


def as_learned(store: Store, project_id: str, plan: Plan) -> Plan:
    """The plan with what is in use now: classifier, reader and what was learned of marks.

    Raises:
        ConfigError: what was learned from people's marks is not as it was learned.
    """

    def number(kind: str) -> int:
        found = store.learned.in_use(kind, project_id)
        return found.number if found else NONE

    return replace(
        plan,
        classifier=plan.classifier or store.versions.active(),
        reader=plan.reader or reader_in_use(store),
        span_threshold=number(THRESHOLD),
        span_examples=number(EXAMPLES),
        span_member=number(MEMBER),
        agent_weights=number(CONSENSUS),
    )


def learned_marks(store: Store, run: Run) -> LearnedMarks:
    """What people's marks had taught when the run was planned, with the examples for its case.

    Raises:
        ConfigError: it is not here, or not as it was learned.
    """
    threshold = _learned(store, run, THRESHOLD, run.plan.span_threshold)
    examples = _learned(store, run, EXAMPLES, run.plan.span_examples)
    member = _learned(store, run, MEMBER, run.plan.span_member)
    case = store.cases.get(run.case_id) if examples else None
    chosen: tuple[SpanExample, ...] = ()
    if examples is not None and case is not None:
        own = fingerprint(case.response, case.question)
        known = read_body(examples, examples_from)
        chosen = fitting_examples(known, case.language, own)
    return LearnedMarks(
        read_body(threshold, partial(threshold_from, threshold.number))
        if threshold
        else SpanThreshold(),
        chosen,
        run.plan.span_examples,
        read_body(member, members_from) if member else (),
    )


def _learned(store: Store, run: Run, kind: str, number: int) -> Learned | None:
    found = store.learned.get(number) if number != NONE else None
    is_there = found is not None and (found.kind, found.project_id) == (kind, run.project_id)
    if number != NONE and not is_there:
        raise ConfigError(
            f"Expected {kind} number {number}, with which this run began, found none here; check "
            "the case again, and it goes by what is in use now."
        )
    return found
