"""Measure how well runs explain their verdicts as people do, by a model's ratings and by quotes.

    python -m core.evaluation.alignment --model openai/gpt-4o-mini --home FOLDER --json

A language model rates runs whose verdict is the person's, from 1 (another reason) to 5 (the same),
in a structured reply. As a baseline, the same explanations are rated against reasons that people
gave on other cases of that label: the value of merely sounding alike. Calls go through the ledger,
within the caps, and their totals are printed. At temperature 0 a rating is not paid for twice, so
the same command continues after a cap or a failing service. An unusable reply is counted and rates
nothing. The page shows the newest complete rating. Without `--model` nothing is rated, because
there is no built-in rater, and only quotes are counted. Source: ColMAD 4, figure 5b.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from core.agents.agent_runner import AgentContext, ToolPromptRunner
from core.agents.rosters import load_chosen_roster
from core.evaluation.metrics import estimate_figures
from core.learning.agent_answers import (
    CaseReasons,
    get_alignment_note_name,
    load_decided_runs,
    load_reasons,
)
from core.learning.metrics import FloatArray, number_names
from core.llm.keys import load_keys
from core.llm.limits import SpendingCaps
from core.llm.metering import CallAccount, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.pipeline.single_check import sum_calls
from core.runtime.concurrency import StopSignal
from core.runtime.config import PROJECT_ROOT, resolve_home
from core.runtime.errors import BudgetReached, InputError, ModelError, ReplyError, ReviewError
from core.schema.records import ModelCall, Project, new_id
from core.schema.rosters import AgentConfig
from core.store import Store, open_store

BOOTSTRAP_SEED = 11
MAX_RATED_RUNS = 200
# (run, a person's reason) -> rating, or None without a usable reply
ReasonRater = Callable[[CaseReasons, str], int | None]
ALIGNMENT_ROLE = "alignment"


@dataclass(frozen=True)
class ProtocolAlignment:
    """The figures of one protocol's runs, with 95 % intervals of a bootstrap over cases.

    `agreement` is the mean over the `rated` runs, `unlike` the mean against other cases' reasons.
    `quoted` and `found` are shares of people's `marks`. A figure without data is None.
    """

    protocol: str
    runs: int
    rated: int
    unusable: int
    agreement: dict[str, float] | None
    unlike: dict[str, float] | None
    marks: int
    quoted: dict[str, float] | None
    found: float | None


@dataclass(frozen=True)
class AlignmentLead:
    """The first protocol's mean lead in rating over the other, on `n` cases both got right."""

    one: str
    other: str
    n: int
    lead: dict[str, float]


@dataclass(frozen=True)
class AlignmentRatings:
    """Ratings by run of its explanation against the person's reason, and against another case's.

    `unusable` holds the runs without a usable reply. `ended` says what stopped the rating early;
    empty if it is complete.
    """

    own: Mapping[str, int]
    unlike: Mapping[str, int]
    unusable: frozenset[str] = frozenset()
    ended: str = ""


UNRATED = AlignmentRatings({}, {})


def rate_runs(
    reasons: Sequence[CaseReasons], rate: ReasonRater, most: int = MAX_RATED_RUNS
) -> AlignmentRatings:
    """Rate at most `most` runs that have a person's reason and an explanation.

    Raises BudgetReached if a cap leaves no room for the first rating, and ModelError if the service
    fails; finished ratings stay in the ledger.
    """
    own_ratings: dict[str, int] = {}
    unlike_ratings: dict[str, int] = {}
    unusable: set[str] = set()
    try:
        for reason in [r for r in reasons if r.reason and r.rationale][:most]:
            rating = rate(reason, reason.reason)
            if rating is None:
                unusable.add(reason.run_id)
                continue
            own_ratings[reason.run_id] = rating
            unlike = _find_other_reason(reason, reasons)
            baseline = rate(reason, unlike) if unlike else None
            if baseline is not None:
                unlike_ratings[reason.run_id] = baseline
    except BudgetReached as error:
        if not own_ratings:
            raise
        return AlignmentRatings(own_ratings, unlike_ratings, frozenset(unusable), str(error))
    return AlignmentRatings(own_ratings, unlike_ratings, frozenset(unusable))


def summarize_alignment(
    reasons: Sequence[CaseReasons], ratings: AlignmentRatings = UNRATED
) -> tuple[list[ProtocolAlignment], list[AlignmentLead]]:
    """Return the figures of each protocol and each pair; without ratings only quotes count."""
    protocols = sorted({reason.protocol for reason in reasons})
    by_protocol = {name: [r for r in reasons if r.protocol == name] for name in protocols}
    rated = [_summarize_protocol(name, by_protocol[name], ratings) for name in protocols]
    return rated, _compare_protocols(reasons, ratings.own)


def _find_other_reason(reason: CaseReasons, reasons: Sequence[CaseReasons]) -> str:
    candidates = [r for r in reasons if r.label == reason.label and r.reason]
    positions = [place for place, r in enumerate(candidates) if r.run_id == reason.run_id]
    for offset in range(1, len(candidates)):
        candidate = candidates[(positions[0] + offset) % len(candidates)]
        if candidate.group != reason.group:
            return candidate.reason
    return ""


def _summarize_protocol(
    protocol: str, runs: Sequence[CaseReasons], ratings: AlignmentRatings
) -> ProtocolAlignment:
    own, unlike = ratings.own, ratings.unlike
    marked = [run for run in runs if run.marks]
    marks = sum(run.marks for run in marked)
    quoted = [(float(run.quoted), float(run.marks), run.group) for run in marked]
    rated = [(float(own[r.run_id]), 1.0, r.group) for r in runs if r.run_id in own]
    baseline = [(float(unlike[r.run_id]), 1.0, r.group) for r in runs if r.run_id in unlike]
    return ProtocolAlignment(
        protocol,
        len(runs),
        len(rated),
        sum(run.run_id in ratings.unusable for run in runs),
        _estimate_ratio(rated),
        _estimate_ratio(baseline),
        marks,
        _estimate_ratio(quoted),
        sum(run.found for run in marked) / marks if marks else None,
    )


def _estimate_ratio(parts: Sequence[tuple[float, float, str]]) -> dict[str, float] | None:
    """Return summed values over summed weights with an interval; parts are (v, w, group)."""
    if not parts:
        return None
    value, weight = (np.array([part[place] for part in parts]) for place in (0, 1))

    def share(weights: FloatArray) -> FloatArray:
        return np.asarray((weights @ value) / np.maximum(weights @ weight, 1e-9))

    return estimate_figures({"": share}, number_names([part[2] for part in parts]), BOOTSTRAP_SEED)[
        ""
    ]


def _compare_protocols(
    reasons: Sequence[CaseReasons], ratings: Mapping[str, int]
) -> list[AlignmentLead]:
    by_protocol: dict[str, dict[str, int]] = defaultdict(dict)
    for reason in reasons:
        if reason.run_id in ratings:
            by_protocol[reason.protocol][reason.group] = ratings[reason.run_id]
    leads = []
    for (name, first), (other, second) in combinations(sorted(by_protocol.items()), 2):
        common = sorted(first.keys() & second.keys())
        lead = _estimate_ratio([(float(first[g] - second[g]), 1.0, g) for g in common])
        if lead is not None:
            leads.append(AlignmentLead(name, other, len(common), lead))
    return leads


class Rating(msgspec.Struct, frozen=True):
    """The model's reply: what both reasons share, then how far they agree."""

    common: str
    agreement: Annotated[int, msgspec.Meta(ge=1, le=5)]


def open_rater_context(
    home: Path, store: Store, project: Project, person: str, token_cap: int = 0
) -> tuple[AgentContext, MeteredClient]:
    """Return the context and the metered client of a rating model, on the project's account."""
    from core.llm.client import ModelClient

    keys = load_keys(os.environ, PROJECT_ROOT)
    account = CallAccount(new_id(), person, project.id)
    settings = store.projects.settings()
    caps = SpendingCaps.of(settings, token_cap)
    sender = ModelClient(keys, requests_per_second=settings.requests_per_second)
    client = MeteredClient(sender, home, account, caps, time.time)
    book = PromptBook(store.prompt_edits.of_project(project.id))
    return AgentContext(client, book, Fence.of_run(account.run_id), home), client


def make_rater(context: AgentContext, agent: AgentConfig) -> ReasonRater:
    """Return a function that rates with the model of a seat."""

    def rate(reasons: CaseReasons, reason: str) -> int | None:
        ask = ToolPromptRunner(agent, context, reasons.language, StopSignal(), ALIGNMENT_ROLE)
        fields = {name: getattr(reasons, name) for name in ("claim", "label", "rationale")}
        try:
            return ask(ALIGNMENT_ROLE, fields | {"reason": reason}, Rating).agreement
        except ReplyError:
            return None

    return rate


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a home's first project; return 1 if a service failed, 2 for bad input."""
    given = _build_parser().parse_args(arguments)
    home = resolve_home(os.environ, given.home)
    try:
        result = _measure_alignment(home, given)
    except ModelError as error:
        _print_message(f"{error} What was rated is kept; the same command goes on from there.")
        return 1
    except KeyboardInterrupt:
        _print_message("Stopped. What was rated is kept; the same command goes on from there.")
        return 1
    except ReviewError as error:
        _print_message(str(error))
        return 2
    text = json.dumps(result, indent=None if given.json else 1, ensure_ascii=False)
    sys.stdout.write(text + "\n")
    return 0


def _print_message(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _measure_alignment(home: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Return all figures; store a complete rating with the project, for the page."""
    if not home.is_dir():
        raise InputError(f"Expected a home at {home}, found none; give --home FOLDER.")
    with open_store(home) as store:
        project = store.projects.first()
        if project is None:
            raise InputError(f"Expected a project in {home}, found none; check something first.")
        reasons = load_reasons(store, load_decided_runs(store, project.id, {}))
        ratings, used = UNRATED, sum_calls([])
        if options.model:
            ratings, used = _rate_with_model(home, store, project, reasons, options)
        rated, paired = summarize_alignment(reasons, ratings)
        result = {
            "model": options.model,
            "at": time.time(),
            "by_protocol": [asdict(record) for record in rated],
            "paired": [asdict(record) for record in paired],
            "used": used,
            "note": ratings.ended if options.model else "No model was given: nothing was rated.",
        }
        if options.model and not ratings.ended:
            with store.writing():
                store.projects.save_note(get_alignment_note_name(project.id), json.dumps(result))
    return result


def _rate_with_model(
    home: Path,
    store: Store,
    project: Project,
    reasons: Sequence[CaseReasons],
    options: argparse.Namespace,
) -> tuple[AlignmentRatings, dict[str, Any]]:
    """Return the model's ratings and call totals; the totals are printed after a failure too."""
    roster = load_chosen_roster(home, "", options.model, options.api_base).sheet
    context, client = open_rater_context(home, store, project, options.by, options.token_cap)
    rate = make_rater(context, replace(roster.judge, temperature=0.0))
    try:
        ratings = rate_runs(reasons, rate, options.most)
    finally:
        first: dict[str, ModelCall] = {}
        for call in client.drain():  # a repeated question is reported as the same call again
            first.setdefault(call.id, call)
        used = sum_calls(list(first.values()))
        _print_message(_format_usage(used))
    return ratings, used


def _format_usage(used: Mapping[str, Any]) -> str:
    cost = "a cost that is not known" if used["cost"] is None else f"{used['cost']:.4f} US dollars"
    return (
        f"{used['calls']} calls, {used['tokens_in']:,} tokens in, {used['tokens_out']:,} out, "
        f"{cost}; {used['reused']} replies were there already"
    )


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core.evaluation.alignment")
    parser.add_argument("--model", default="", help="provider/model that rates")
    parser.add_argument("--api-base", default="")
    parser.add_argument(
        "--most", type=int, default=MAX_RATED_RUNS, help="runs that are rated at most"
    )
    parser.add_argument("--token-cap", type=int, default=0)
    parser.add_argument("--by", default="me", help="on whose account")
    parser.add_argument("--home")
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
