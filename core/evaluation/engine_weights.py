"""By which weights debaters' answers count in an evaluation, where its protocol weighs them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from core.baseline.wording import listed_plainly
from core.debate.protocols import is_weighed, may_be_learned
from core.errors import InputError
from core.records import CONSENSUS, Plan
from core.roles import Weigher
from core.store import Store
from core.store.versions import Learned, read_body
from core.verdict.weigher import LearnedWeigher, learned_in


def require_weighed(is_learned: bool, plans: Sequence[Plan]) -> None:
    """Refuse learned weights where nobody's answers are weighed.

    Raises:
        InputError: with the protocols that were chosen.
    """
    if is_learned and not any(may_be_learned(plan) for plan in plans):
        left_out = " without weights" if any(is_weighed(plan) for plan in plans) else ""
        names = ", ".join(dict.fromkeys(plan.protocol for plan in plans)) + left_out
        raise InputError(
            f"Expected a protocol that weighs answers beside --weights learned, found {names}; "
            "choose sc_maks, or leave --weights out."
        )


def weights_in_use(store: Store, home: Path) -> Learned:
    """The weights of debaters that the home's first project goes by.

    Raises:
        InputError: there are none, or they are of no debater's answers.
        ConfigError: they are not as they were learned.
    """
    project = store.projects.first()
    found = store.learned.in_use(CONSENSUS, project.id) if project else None
    if found is None or read_body(found, learned_in) is None:
        raise InputError(
            f"Expected learned weights of debaters in use in {home}, found none; learn them there "
            "with python -m core.learning.weigh --use REASON, or leave --weights out."
        )
    return found


def weights_said(weigher: Weigher) -> str:
    """The weigher's method, and which debaters it does not know.

    Raises:
        InputError: they are learned, of none of these debaters.
    """
    if not isinstance(weigher, LearnedWeigher):
        return weigher.method
    unknown = weigher.unknown
    if len(unknown) == len(weigher.seats):
        raise InputError(
            f"Expected weights of {listed_plainly(unknown)}, found none of them in "
            f"{weigher.method}; learn from checks with this roster, or leave --weights out."
        )
    return "; ".join([weigher.method, *(f"no record of {name}" for name in unknown)])
