"""How far runs explain themselves as people do: rated by a language model, and counted in quotes.

    python -m core.evaluation.alignment --model openai/gpt-4o-mini --home FOLDER --json

Rated are runs whose verdict is the person's, on a scale from 1 (another reason) to 5 (the same), in
a structured reply. Beside each protocol's mean stands the mean for the same explanations against
reasons that people gave on other cases of that label: what sounding alike is worth. Calls go over
the ledger, within the caps; at temperature 0 what was rated before is not paid for again. A reply
that cannot be used is counted as such and rates nothing. Without `--model` nothing is rated: there
is no built-in stand-in, and only quotes are counted. Source: ColMAD 4, figure 5b.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from core.agents.ask import Work
from core.agents.asker import SeatAsker
from core.agents.chosen import chosen_roster
from core.agents.keys_here import keys_here
from core.concurrency import Stop
from core.config import PROJECT_ROOT, home_from
from core.errors import BudgetReached, InputError, ReplyError, ReviewError
from core.evaluation.bootstrap import figures
from core.evaluation.outcomes import Numbers
from core.jobs import new_id
from core.learning.heard import rows_of
from core.learning.reasons import Reasons, note_name, reasons_of
from core.learning.votes import numbered
from core.models import desk
from core.models.fence import Fence
from core.models.prompting import PromptBook
from core.records import Project
from core.seats import Seat
from core.store import Store, open_store

SEED = 11
MOST = 200
ROLE = "alignment"


class Rating(msgspec.Struct, frozen=True):
    """The model's reply: what both reasons share, then how far they agree."""

    common: str
    agreement: Annotated[int, msgspec.Meta(ge=1, le=5)]


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
class Paired:
    """Two protocols on the `n` cases on which both were right: the first's mean lead in rating."""

    one: str
    other: str
    n: int
    lead: dict[str, float]


def aligned(
    reasons: Sequence[Reasons], rate: Rate | None, most: int = MOST
) -> tuple[list[Rated], list[Paired]]:
    """Every protocol's figures, and pairs of protocols; `most` runs are rated.

    Raises:
        BudgetReached: a cap leaves no room for the first rating.
    """
    own: dict[str, int] = {}
    other: dict[str, int] = {}
    unusable: dict[str, int] = defaultdict(int)
    if rate is not None:
        for reason in [r for r in reasons if r.reason and r.rationale][:most]:
            try:
                said = rate(reason, reason.reason)
                unlike = _reason_of_another(reason, reasons)
                against = rate(reason, unlike) if unlike and said is not None else None
            except BudgetReached:
                if not own:
                    raise
                break  # what was rated so far stands, and says how much it is
            if said is None:
                unusable[reason.protocol] += 1
                continue
            own[reason.run_id] = said
            if against is not None:
                other[reason.run_id] = against
    protocols = sorted({reason.protocol for reason in reasons})
    rated = [
        _rated(name, [r for r in reasons if r.protocol == name], own, other, unusable[name])
        for name in protocols
    ]
    return rated, _paired(reasons, own)


def _reason_of_another(reason: Reasons, reasons: Sequence[Reasons]) -> str:
    """What a person gave on the next case of that label; empty where there is none."""
    same = [r for r in reasons if r.label == reason.label and r.reason]
    places = [place for place, r in enumerate(same) if r.run_id == reason.run_id]
    for step in range(1, len(same)):
        candidate = same[(places[0] + step) % len(same)]
        if candidate.group != reason.group:
            return candidate.reason
    return ""


def _rated(
    protocol: str,
    runs: Sequence[Reasons],
    own: dict[str, int],
    other: dict[str, int],
    unusable: int,
) -> Rated:
    marked = [run for run in runs if run.marks]
    marks = sum(run.marks for run in marked)
    quoted = [(float(run.quoted), float(run.marks), run.group) for run in marked]
    told = [(float(own[r.run_id]), 1.0, r.group) for r in runs if r.run_id in own]
    against = [(float(other[r.run_id]), 1.0, r.group) for r in runs if r.run_id in other]
    return Rated(
        protocol,
        len(runs),
        len(told),
        unusable,
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

    def measure(times: Numbers) -> Numbers:
        found: Numbers = (times @ value) / np.maximum(times @ weight, 1e-9)
        return found

    return figures({"share": measure}, numbered([part[2] for part in parts]), SEED)["share"]


def _paired(reasons: Sequence[Reasons], own: dict[str, int]) -> list[Paired]:
    """All pairs of protocols with a rated case in common."""
    by_protocol: dict[str, dict[str, int]] = defaultdict(dict)
    for reason in reasons:
        if reason.run_id in own:
            by_protocol[reason.protocol][reason.group] = own[reason.run_id]
    names = sorted(by_protocol)
    found = []
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            first, second = by_protocol[one], by_protocol[other]
            common = sorted(first.keys() & second.keys())
            lead = _share([(float(first[g] - second[g]), 1.0, g) for g in common])
            if lead is not None:
                found.append(Paired(one, other, len(common), lead))
    return found


def rating_of(
    home: Path, store: Store, project: Project, seat: Seat, person: str, token_cap: int = 0
) -> Rate:
    """Ratings by a language model, on the project's account."""
    from core.models.llm import LiteLlm

    keys = keys_here(os.environ, PROJECT_ROOT)
    account = desk.Account(new_id(), person, project.id)
    caps = desk.Caps.of(store.projects.settings(), token_cap)
    table = desk.LedgerDesk(LiteLlm(keys), home, account, caps, time.time)
    book = PromptBook(store.prompt_edits.of_project(project.id))
    return rated_at(Work(table, book, Fence.of_run(account.run_id), home), seat)


def rated_at(work: Work, seat: Seat) -> Rate:
    """Ratings by the model of a seat, over a desk."""

    def rate(reasons: Reasons, reason: str) -> int | None:
        ask = SeatAsker(seat, work, reasons.language, Stop(), ROLE)
        fields = {
            "claim": reasons.claim,
            "label": reasons.label,
            "reason": reason,
            "rationale": reasons.rationale,
        }
        try:
            return ask(ROLE, fields, Rating).agreement
        except ReplyError:
            return None

    return rate


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure a home's first project and print it; 0, or 2 with a line of what is wrong."""
    given = _parser().parse_args(arguments)
    home = home_from(os.environ, given.home)
    try:
        told = _measured(home, given)
    except ReviewError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(told, indent=None if given.json else 1, ensure_ascii=False) + "\n")
    return 0


def _measured(home: Path, given: argparse.Namespace) -> dict[str, Any]:
    """All figures, kept beside the project for the page.

    Raises:
        ReviewError: there is no project, the model's name is none, or the first call failed.
    """
    if not home.is_dir():
        raise InputError(f"Expected a home at {home}, found none; give --home FOLDER.")
    with open_store(home) as store:
        project = store.projects.first()
        if project is None:
            raise InputError(f"Expected a project in {home}, found none; check something first.")
        reasons = reasons_of(store, rows_of(store, project.id, {}))
        rate = None
        if given.model:
            sheet = chosen_roster(home, "", given.model, given.api_base).sheet
            seat = replace(sheet.judge, temperature=0.0)
            rate = rating_of(home, store, project, seat, given.by, given.token_cap)
        rated, paired = aligned(reasons, rate, given.most)
        told = {
            "model": given.model,
            "at": time.time(),
            "by_protocol": [asdict(own) for own in rated],
            "paired": [asdict(own) for own in paired],
            "note": "" if given.model else "No model was given: nothing was rated.",
        }
        if given.model:
            with store.writing():
                store.projects.save_note(note_name(project.id), json.dumps(told))
    return told


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
