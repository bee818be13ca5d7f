"""Which verdicts a project answers by itself, and which are for people to decide.

A project says how many of the verdicts that nobody looks at may be wrong; a limit on confidence,
fitted on people's answers (`core/learning/metrics.py`), holds that. Where nothing was fitted, or
nothing can be promised, the project answers nothing by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from core.errors import ConfigError, InputError
from core.records import Project, Run
from core.reviews import Item
from core.store import Store
from core.store.active_learning import FIRST
from core.store.versions import SEED_VERSION, read_body

KIND = "selective"
LOWEST, HIGHEST = 0.005, 0.5  # error rates that may be wanted
ASSURANCE = 0.9  # how sure it is that the errors stay below what is wanted


@dataclass(frozen=True)
class Limit:
    """From which confidence on verdicts of a classifier version stand, with one roster.

    `threshold` is None where nothing can be promised. Of the `n` answered verdicts that it was
    fitted on `answered` are at it or above, `wrong` of these; `is_random`: only those that were
    drawn at random were taken.
    """

    version: str
    roster: str
    threshold: float | None
    n: int
    answered: int
    wrong: int
    is_random: bool = False


@dataclass(frozen=True)
class Policy:
    """What a project wants, and the limits that hold it; `problem` says why there are none."""

    wanted: float
    limits: tuple[Limit, ...] = ()
    problem: str = ""

    def limit(self, version: str, roster: str) -> Limit | None:
        """The limit of that version with that roster; None where none was fitted."""
        known = ((limit.version, limit.roster) for limit in self.limits)
        return dict(zip(known, self.limits, strict=True)).get((version or SEED_VERSION, roster))

    def threshold(self, version: str, roster: str) -> float | None:
        """From which confidence on such verdicts stand; None where none does."""
        limit = self.limit(version, roster)
        return None if limit is None else limit.threshold

    def is_for_people(self, run: Run, version: str = "") -> bool:
        """True where a run has a probability that is not enough; what is unclear says so itself.

        `version` is the classifier of its present verdict: a run that was scored again keeps its
        plan. Without one it is the plan's.
        """
        if run.confidence is None:
            return False
        threshold = self.threshold(version or run.plan.classifier, run.plan.roster)
        return threshold is None or run.confidence < threshold


def body_of(wanted: float, limits: Iterable[Limit]) -> dict[str, Any]:
    """As `store.learned` keeps it."""
    return {"wanted": wanted, "assurance": ASSURANCE, "limits": [asdict(limit) for limit in limits]}


def require_rate(wanted: float) -> None:
    """Refuse a rate that cannot be meant.

    Raises:
        InputError: it is not between half a percent and a half.
    """
    if not LOWEST <= wanted <= HIGHEST:
        raise InputError(
            f"Expected a wanted error rate from {LOWEST:.1%} to {HIGHEST:.0%}, found {wanted:.1%}; "
            "correct it."
        )


def policy_of(store: Store, project: Project | None) -> Policy | None:
    """What the project answers by itself as of now; None where it wants nothing of the kind."""
    if project is None or project.error_rate is None:
        return None
    try:
        kept = store.learned.in_use(KIND, project.id)
        if kept is None or kept.body.get("wanted") != project.error_rate:
            return Policy(project.error_rate)
        return Policy(project.error_rate, read_body(kept, _limits_in))
    except ConfigError as error:
        return Policy(project.error_rate, problem=str(error))


def _limits_in(body: Mapping[str, Any]) -> tuple[Limit, ...]:
    found = [Limit(**limit) for limit in body["limits"]]
    return tuple(
        replace(limit, threshold=None if limit.threshold is None else float(limit.threshold))
        for limit in found
    )


def people_first(store: Store, item: Item, run: Run, version: str) -> Item:
    """The item, before all others where its verdict, by that version, is for people to decide."""
    policy = policy_of(store, store.projects.get(item.project_id))
    if policy is None or not policy.is_for_people(run, version):
        return item
    return replace(item, teaches=item.teaches + FIRST)


def reorder(store: Store, project: Project) -> None:
    """Bring the whole queue in line with what the project answers; call inside `writing()`."""
    policy = policy_of(store, project)
    limits = None
    if policy is not None:
        limits = [
            (limit.version, limit.roster, limit.threshold)
            for limit in policy.limits
            if limit.threshold is not None
        ]
    store.queue_lists.put_first(project.id, limits)
