"""What the tests of ColMAD and CopMAD share: a case, debaters by script, and who heard whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.runtime.concurrency import Stop
from core.runtime.errors import ReplyError, ReviewError
from core.schema.records import Cause, Judgement, Label, Plan, Turn
from core.schema.roles import DebateView, JudgeView, Speak
from core.schema.rosters import DebateOptions
from tests.fakes import Line, ScriptedDebater, make_case, make_passage, make_view

FACT = make_passage("The Halden Bridge is 412 m long.", number=1)
OTHER = make_passage("It carries four lanes.", number=2, source="b.txt")
VIEW = make_view(make_case("The Halden Bridge is 600 m long."), [FACT, OTHER])
RIGHT: Line = ("agree", "supported", "CORRECT. It is.")
WRONG: Line = ("deny", "hallucinated", "WRONG. The source says “412 m long”.")
MUMBLED = ReplyError("mumbled", reply="mm")
Script = Sequence[Line | ReviewError]


def cast(**lines: Script) -> dict[str, ScriptedDebater]:
    """A debater for each name, who speaks these lines."""
    return {name: ScriptedDebater(name, own) for name, own in lines.items()}


class OneSided(ScriptedDebater):
    """Speaks for one side only; assigned the other, it mumbles."""

    def argue(self, view: DebateView, speak: Speak, stop: Stop) -> Turn:
        turn = super().argue(view, speak, stop)
        if view.assigned == "supported":
            raise MUMBLED
        return turn


def plan(protocol: str, *, rounds: int = 0, is_swapped: bool = False) -> Plan:
    return Plan(protocol, options=DebateOptions(rounds=rounds, is_swapped=is_swapped))


def heard_by(people: Mapping[str, ScriptedDebater]) -> dict[int, list[int]]:
    """Number of each turn to the numbers of those that were heard before it."""
    views = [view for debater in people.values() for view in debater.views]
    return {
        view.number: [turn.number for turn in view.turns]
        for view in sorted(views, key=lambda view: view.number)
    }


class JudgeInTurn:
    """Concludes the given labels in order, and keeps what it was shown."""

    name = "Judge in turn"
    built_in = False
    rule = "concludes what the test wrote"

    def __init__(self, *labels: Label, p: Sequence[float | None] = ()) -> None:
        self._labels = list(labels)
        self._p = list(p) or [None] * len(labels)
        self.views: list[JudgeView] = []

    def decide(self, view: JudgeView, stop: Stop) -> Judgement:
        """By the number of the judgement, whichever is asked for first."""
        self.views.append(view)
        place = view.number - 1
        label = self._labels[place]
        cause: Cause | None = "not_addressed" if label == "unclear" else None
        text = f"Judgement {view.number}."
        return Judgement(self.name, label, text, cause=cause, p=self._p[place], prose=text)
