"""What an audit's tools may reach beside the case's sources: the web, and a language model.

Both are off unless the operator has chosen them: a provider of searches under Settings, a model in
the tool picker's seat.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from core.concurrency import Stop
from core.models.keys import Keys
from core.records import Case
from core.store import Store
from core.tools.registry import Asker, Bench
from core.tools.web_search import Account, web_choice, web_search

if TYPE_CHECKING:
    from core.agents.prompt_call import Work
    from core.seats import Seat

MakeBench = Callable[[Case, Stop], Bench]
MakeAsker = Callable[[Case, Stop], Asker]


def bench_maker(
    store: Store, home: Path, run_id: str, keys: Keys, ask: MakeAsker | None, *, has_web: bool
) -> MakeBench:
    """Makes the bench of a run; its searches of the web go on the run's account."""
    choice, settings = web_choice(store), store.projects.settings()
    account = Account(run_id, settings.web_searches, settings.web_days)

    def make(case: Case, stop: Stop) -> Bench:
        web = web_search(choice, keys, home, account, case.language, stop) if has_web else None
        return Bench(stop, web=web, ask=ask(case, stop) if ask else None)

    return make


def asker_of(seat: Seat, work: Work) -> MakeAsker | None:
    """Lets tools ask the model in that seat; None where it is a built-in agent's."""
    if seat.is_built_in:
        return None
    from core.agents.prompt_call import SeatAsker

    return lambda case, stop: SeatAsker(seat, work, case.language, stop)
