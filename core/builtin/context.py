"""Agent C, built in: shares the evidence out so that debaters have something to tell each other.

Its seat also takes the minutes of long debates and puts values right in a response.

Source: CEDA 3.3 (debaters receive partly conflicting subsets, the judge the whole with conflicts
marked). Every debater gets the closer half of each statement's passages; the others alternate.
"""

from __future__ import annotations

from collections.abc import Sequence

from core.builtin.assess import assess
from core.builtin.claims import claim_of
from core.builtin.mended import mended, mendings_of
from core.builtin.minutes import minutes
from core.builtin.speech import cited, counted
from core.concurrency import Stop
from core.records import Context, Judgement, Share, Turn
from core.roles import CaseView, JudgeView

RULE = """The closer half of each statement's passages goes to every debater, the others to the
debaters in turn, so that each knows something the other does not until it is quoted. The judge
gets all. Where one source carries a statement that another contradicts, the conflict is written
down. Of a round of debate it notes what was newly quoted, by whom and for which side. In a response
that is wrong it puts the evidence's own value in the place of a wrong one, where one fits."""


class BuiltInContextWriter:
    """Built-in agent C."""

    name = "Context writer"
    built_in = True
    rule = RULE

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Each debater's share, the judge's whole, and the conflicts between sources."""
        shares: dict[str, list[str]] = {name: [] for name in debaters}
        whole: list[str] = []
        conflicts: list[str] = []
        for statement in view.statements:
            ids = view.evidence.by_statement.get(statement.index, ())
            whole.extend(ids)
            for place, passage_id in enumerate(ids):
                for number, name in enumerate(debaters):
                    if place < (len(ids) + 1) // 2 or place % len(debaters) == number:
                        shares[name].append(passage_id)
            claim = claim_of(view.case, statement)
            item = assess(claim, view.evidence.of(statement.index), view.sources)
            if item.conflict:
                one, other = item.conflict
                conflicts.append(
                    f"On “{statement.text}” {cited(one)} stands against {cited(other)}."
                )
        distinct = tuple(dict.fromkeys(whole))
        sources = len({view.evidence.passages[i].source_id for i in distinct})
        summary = (
            f"{counted(len(distinct), 'passage')} from {counted(sources, 'source')} "
            f"for {counted(len(view.statements), 'statement')}."
        )
        return Context(
            tuple(Share(name, tuple(dict.fromkeys(ids))) for name, ids in shares.items()),
            distinct,
            summary,
            tuple(conflicts),
        )

    def summarise(self, view: CaseView, turns: Sequence[Turn], before: str, stop: Stop) -> str:
        """What was newly quoted, by whom, for which stance."""
        stop.check()
        return minutes(turns, before)

    def revise(self, view: JudgeView, judgement: Judgement, stop: Stop) -> str:
        """The response with the evidence's values in the places of wrong ones."""
        stop.check()
        response = view.view.case.response
        said = [point for turn in view.turns for point in turn.points]
        return mended(response, mendings_of([*judgement.points, *said], response))
