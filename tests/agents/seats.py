"""Builders for agents on scripted models: a seat, the work around a desk, views of a debate."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from core.agents.agent_runner import AgentContext
from core.llm.call import Call
from core.llm.prompting import Fence, PromptBook
from core.schema.records import Case, EvidenceContext, Passage, Turn
from core.schema.roles import CaseView, DebateView, Evidence, JudgeView
from core.schema.rosters import AgentConfig
from tests.fakes import FakeDesk, Script, ScriptedModel, make_passage, make_view

SEAT = AgentConfig("openai/tiny-talker", api_base="http://127.0.0.1:9/v1", window=8192)
FENCE = Fence.of_run("run-1")


@dataclass(frozen=True)
class Workplace:
    """A work over a scripted model, and what was asked of it."""

    work: AgentContext
    desk: FakeDesk
    model: ScriptedModel

    @property
    def prompt(self) -> str:
        """All text of the last call."""
        return text_of(self.model.calls[-1])


def workplace(script: Script, home: Path = Path("nowhere")) -> Workplace:
    model = ScriptedModel(script)
    desk = FakeDesk(model)
    return Workplace(AgentContext(desk, PromptBook(), FENCE, home), desk, model)


def text_of(call: Call) -> str:
    return "\n".join(message.text for message in call.messages)


def debate_view(
    view: CaseView,
    turns: tuple[Turn, ...] = (),
    *,
    share: frozenset[str] | None = None,
    conflicts: tuple[str, ...] = (),
    debater: str = "Ada",
) -> DebateView:
    number = len(turns) + 1
    return DebateView(
        case_view=view,
        debater=debater,
        share=frozenset(view.evidence.passages) if share is None else share,
        turns=turns,
        number=number,
        round=(number + 1) // 2,
        last_message=turns[-1].text if turns else view.case.response,
        conflicts=conflicts,
    )


def judge_view(view: CaseView, *turns: Turn, context: EvidenceContext | None = None) -> JudgeView:
    whole = tuple(view.evidence.passages)
    return JudgeView(
        view, context or EvidenceContext((), whole, ""), turns, reached_consensus=False
    )


def many_passages(count: int, words: int = 60) -> list[Passage]:
    text = "The report speaks of the bridge over the strait and of its towers. " * (words // 13)
    return [make_passage(f"{text}Line {n}.", number=n, source=f"s{n}.txt") for n in range(count)]


def view_by_statement(case: Case, *ranked: list[Passage]) -> CaseView:
    """A view with several statements, each with its own passages."""
    passages = {p.id: p for found in ranked for p in found}
    by_statement = {n: tuple(p.id for p in found) for n, found in enumerate(ranked)}
    made = make_view(case, [])
    return CaseView(case, made.statements, Evidence(passages, by_statement), {})
