"""How far runs explain themselves as people do: rated by a language model, and counted in quotes.

    python -m core.evaluation.alignment --model openai/gpt-4o-mini --home FOLDER --json

Rated are runs whose verdict is the person's, on a scale from 1 (another reason) to 5 (the same), in
a structured reply. Beside each protocol's mean stands the mean for the same explanations against
reasons that people gave on other cases of that label: what sounding alike is worth. Calls go over
the ledger, within the caps, and what they came to is told; at temperature 0 what was rated before
is not paid for again, so that the same command goes on where a cap or a failing service ended it.
A reply that cannot be used is counted as such and rates nothing. The page shows the newest rating
that was not cut short. Without `--model` nothing is rated: there is no built-in stand-in, and only
quotes are counted. Source: ColMAD 4, figure 5b.
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

from core.agents.agent_runner import AgentContext, SeatAsker
from core.agents.rosters import chosen_roster
from core.evaluation.metrics import figures
from core.learning.metrics import Numbers, numbered
from core.learning.reasoning import Reasons, note_name, reasons_of, rows_of
from core.llm.keys import keys_here
from core.llm.limits import Caps
from core.llm.metering import Account, MeteredClient
from core.llm.prompting import Fence, PromptBook
from core.pipeline.streaming_input import calls_used
from core.runtime.concurrency import Stop
from core.runtime.config import PROJECT_ROOT, home_from
from core.runtime.errors import BudgetReached, InputError, ModelError, ReplyError, ReviewError
from core.schema.records import ModelCall, Project, new_id
from core.schema.rosters import Seat
from core.store import Store, open_store

SEED = 11
MOST = 200
Rate = Callable[[Reasons, str], int | None]  # with whose reason; None: no usable reply


@dataclass(frozen=True)
class Rated:
    """Runs by one protocol: each interval is 95 % of a bootstrap over cases, None where nothing is.

    `agreement` is the mean over the `rated` runs, `unlike` the same against other cases' reasons.
    `quoted` and `found` are shares of people's `marks`.
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
    """Two protocols on the `n` cases on which both were right: the first's mean lead in rating."""

    one: str
    other: str
    n: int
    lead: dict[str, float]


@dataclass(frozen=True)
class AlignmentRatings:
    """By run: how far its explanation gives the person's reason, and one from another case.

    `unusable` are the runs of which no usable reply came. `ended` says what ended the rating before
    all were rated; empty where nothing did.
    """

    own: Mapping[str, int]
    unlike: Mapping[str, int]
    unusable: frozenset[str] = frozenset()
    ended: str = ""


UNRATED = AlignmentRatings({}, {})


def ratings_of(reasons: Sequence[Reasons], rate: Rate, most: int = MOST) -> AlignmentRatings:
    """The ratings of `most` runs at most, where there is a reason and an explanation.

    Raises BudgetReached: a cap leaves no room for the first rating. Raises ModelError: the service
    failed; what was rated stays in the ledger.
    """
    own: dict[str, int] = {}
    other: dict[str, int] = {}
    unusable: set[str] = set()
    try:
        for reason in [r for r in reasons if r.reason and r.rationale][:most]:
            said = rate(reason, reason.reason)
            if said is None:
                unusable.add(reason.run_id)
                continue
            own[reason.run_id] = said
            unlike = _reason_of_another(reason, reasons)
            against = rate(reason, unlike) if unlike else None
            if against is not None:
                other[reason.run_id] = against
    except BudgetReached as error:
        if not own:
            raise
        return AlignmentRatings(own, other, frozenset(unusable), str(error))
    return AlignmentRatings(own, other, frozenset(unusable))


def aligned(
    reasons: Sequence[Reasons], ratings: AlignmentRatings = UNRATED
) -> tuple[list[Rated], list[AlignmentLead]]:
    """Every protocol's figures, and pairs of protocols; without ratings quotes are counted."""
    protocols = sorted({reason.protocol for reason in reasons})
    own = {name: [r for r in reasons if r.protocol == name] for name in protocols}
    return [_rated(name, own[name], ratings) for name in protocols], _paired(reasons, ratings.own)


def _reason_of_another(reason: Reasons, reasons: Sequence[Reasons]) -> str:
    same = [r for r in reasons if r.label == reason.label and r.reason]
    places = [place for place, r in enumerate(same) if r.run_id == reason.run_id]
    for step in range(1, len(same)):
        candidate = same[(places[0] + step) % len(same)]
        if candidate.group != reason.group:
            return candidate.reason
    return ""


def _rated(protocol: str, runs: Sequence[Reasons], ratings: AlignmentRatings) -> Rated:
    own, other = ratings.own, ratings.unlike
    marked = [run for run in runs if run.marks]
    marks = sum(run.marks for run in marked)
    quoted = [(float(run.quoted), float(run.marks), run.group) for run in marked]
    told = [(float(own[r.run_id]), 1.0, r.group) for r in runs if r.run_id in own]
    against = [(float(other[r.run_id]), 1.0, r.group) for r in runs if r.run_id in other]
    return Rated(
        protocol,
        len(runs),
        len(told),
        sum(run.run_id in ratings.unusable for run in runs),
        _share(told),
        _share(against),
        marks,
        _share(quoted),
        sum(run.found for run in marked) / marks if marks else None,
    )


def _share(parts: Sequence[tuple[float, float, str]]) -> dict[str, float] | None:
    """Sum of the first over sum of the second, with its interval; the third are groups."""
    if not parts:
        return None
    value, weight = (np.array([part[place] for part in parts]) for place in (0, 1))

    def share(times: Numbers) -> Numbers:
        return np.asarray((times @ value) / np.maximum(times @ weight, 1e-9))

    return figures({"": share}, numbered([part[2] for part in parts]), SEED)[""]


def _paired(reasons: Sequence[Reasons], own: Mapping[str, int]) -> list[AlignmentLead]:
    by_protocol: dict[str, dict[str, int]] = defaultdict(dict)
    for reason in reasons:
        if reason.run_id in own:
            by_protocol[reason.protocol][reason.group] = own[reason.run_id]
    found = []
    for (one, first), (other, second) in combinations(sorted(by_protocol.items()), 2):
        common = sorted(first.keys() & second.keys())
        lead = _share([(float(first[g] - second[g]), 1.0, g) for g in common])
        if lead is not None:
            found.append(AlignmentLead(one, other, len(common), lead))
    return found


ROLE = "alignment"


class Rating(msgspec.Struct, frozen=True):
    """The model's reply: what both reasons share, then how far they agree."""

    common: str
    agreement: Annotated[int, msgspec.Meta(ge=1, le=5)]


def work_of(
    home: Path, store: Store, project: Project, person: str, token_cap: int = 0
) -> tuple[AgentContext, MeteredClient]:
    """What a rating model works with, and its desk, on the project's account."""
    from core.llm.client import ModelClient

    keys = keys_here(os.environ, PROJECT_ROOT)
    account = Account(new_id(), person, project.id)
    caps = Caps.of(store.projects.settings(), token_cap)
    table = MeteredClient(ModelClient(keys), home, account, caps, time.time)
    book = PromptBook(store.prompt_edits.of_project(project.id))
    return AgentContext(table, book, Fence.of_run(account.run_id), home), table


def rated_at(work: AgentContext, seat: Seat) -> Rate:
    """Ratings by the model of a seat, over a desk."""

    def rate(reasons: Reasons, reason: str) -> int | None:
        ask = SeatAsker(seat, work, reasons.language, Stop(), ROLE)
        fields = {name: getattr(reasons, name) for name in ("claim", "label", "rationale")}
        try:
            return ask(ROLE, fields | {"reason": reason}, Rating).agreement
        except ReplyError:
            return None

    return rate


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a home's first project and print it; 1 where a service failed, 2 for bad input."""
    given = _parser().parse_args(arguments)
    home = home_from(os.environ, given.home)
    try:
        told = _measured(home, given)
    except ModelError as error:
        _say(f"{error} What was rated is kept; the same command goes on from there.")
        return 1
    except KeyboardInterrupt:
        _say("Stopped. What was rated is kept; the same command goes on from there.")
        return 1
    except ReviewError as error:
        _say(str(error))
        return 2
    sys.stdout.write(json.dumps(told, indent=None if given.json else 1, ensure_ascii=False) + "\n")
    return 0


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _measured(home: Path, given: argparse.Namespace) -> dict[str, Any]:
    """All figures; what was not cut short is kept beside the project, for the page."""
    if not home.is_dir():
        raise InputError(f"Expected a home at {home}, found none; give --home FOLDER.")
    with open_store(home) as store:
        project = store.projects.first()
        if project is None:
            raise InputError(f"Expected a project in {home}, found none; check something first.")
        reasons = reasons_of(store, rows_of(store, project.id, {}))
        ratings, used = UNRATED, calls_used([])
        if given.model:
            ratings, used = _asked(home, store, project, reasons, given)
        rated, paired = aligned(reasons, ratings)
        told = {
            "model": given.model,
            "at": time.time(),
            "by_protocol": [asdict(own) for own in rated],
            "paired": [asdict(own) for own in paired],
            "used": used,
            "note": ratings.ended if given.model else "No model was given: nothing was rated.",
        }
        if given.model and not ratings.ended:
            with store.writing():
                store.projects.save_note(note_name(project.id), json.dumps(told))
    return told


def _asked(
    home: Path,
    store: Store,
    project: Project,
    reasons: Sequence[Reasons],
    given: argparse.Namespace,
) -> tuple[AlignmentRatings, dict[str, Any]]:
    """The model's ratings, and what its calls came to, which is said where they break off too."""
    sheet = chosen_roster(home, "", given.model, given.api_base).sheet
    work, table = work_of(home, store, project, given.by, given.token_cap)
    rate = rated_at(work, replace(sheet.judge, temperature=0.0))
    try:
        ratings = ratings_of(reasons, rate, given.most)
    finally:
        first: dict[str, ModelCall] = {}
        for call in table.drain():  # the same question again is the same call, told once more
            first.setdefault(call.id, call)
        used = calls_used(list(first.values()))
        _say(_used_words(used))
    return ratings, used


def _used_words(used: Mapping[str, Any]) -> str:
    cost = "a cost that is not known" if used["cost"] is None else f"{used['cost']:.4f} US dollars"
    return (
        f"{used['calls']} calls, {used['tokens_in']:,} tokens in, {used['tokens_out']:,} out, "
        f"{cost}; {used['reused']} replies were there already"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core.evaluation.alignment")
    parser.add_argument("--model", default="", help="provider/model that rates")
    parser.add_argument("--api-base", default="")
    parser.add_argument("--most", type=int, default=MOST, help="runs that are rated at most")
    parser.add_argument("--token-cap", type=int, default=0)
    parser.add_argument("--by", default="me", help="on whose account")
    parser.add_argument("--home")
    parser.add_argument("--json", action="store_true", help="on one line")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
