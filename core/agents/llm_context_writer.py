"""Agent C by a language model: facts, conflicts, and a share of the evidence for each debater.

Source: CEDA 3.3. The judge gets every passage whatever the model says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from core.agents.ask import case_fields, one_line
from core.agents.laid_out import ids_of, passage_lines, ranked
from core.agents.llm_writing import LlmReviser, LlmSummariser
from core.baseline.wording import cited, counted
from core.concurrency import Stop
from core.models.structured import Shape, ask_structured
from core.records import Context, Fact, Share
from core.roles import CaseView, Evidence


class _Fact(msgspec.Struct, frozen=True):
    claim: str
    passages: list[str]


class _Conflict(msgspec.Struct, frozen=True):
    about: str
    passages: list[str]


class _Sorted(msgspec.Struct, frozen=True):
    facts: list[_Fact]
    conflicts: list[_Conflict]
    shares: dict[str, list[str]]
    summary: str


SHAPE = Shape(_Sorted)


class LlmContextWriter(LlmSummariser, LlmReviser):
    """Context writer with a language model; its seat also writes what a debate comes to."""

    @property
    def _ruling(self) -> tuple[str, ...]:
        """Those that the run's protocol has it asked by."""
        return self._work.writing

    def write(self, view: CaseView, debaters: Sequence[str], stop: Stop) -> Context:
        """Each debater's share, the judge's whole, facts and conflicts; no call over nothing."""
        found = ranked(view.evidence)
        whole = tuple(passage.id for passage in found)
        if not found:
            empty = tuple(Share(name, ()) for name in debaters)
            return Context(empty, (), "There is no evidence to share out.")
        asking = self._asking(
            "context",
            view.case,
            stop,
            role="context writer",
            slot="context",
            schema=_schema_for(debaters),
        )
        fields = case_fields(asking, view.case)
        fields["debaters"] = ", ".join(one_line(name) for name in debaters)
        lines = passage_lines(view.evidence)
        asking, messages, kept = asking.fitted(lines, fields, "passages")
        answer = ask_structured(asking.say, messages, SHAPE, asking.mend)
        unseen = whole[kept:]
        return Context(
            shares=tuple(_share(name, answer, view.evidence, unseen) for name in debaters),
            whole=whole,
            summary=answer.summary.strip() or f"{counted(len(whole), 'passage')}.",
            conflicts=_conflicts(answer, view.evidence),
            facts=_facts(answer, view.evidence),
        )


def _schema_for(debaters: Sequence[str]) -> Mapping[str, Any]:
    """The schema with a share for each debater by name: some providers refuse open objects."""
    ids = {"type": "array", "items": {"type": "string"}}
    names = [one_line(name) for name in debaters]
    shares = {
        "type": "object",
        "properties": dict.fromkeys(names, ids),
        "required": names,
        "additionalProperties": False,
    }
    return {**SHAPE.schema, "properties": {**SHAPE.schema["properties"], "shares": shares}}


def _share(name: str, answer: _Sorted, evidence: Evidence, unseen: Sequence[str]) -> Share:
    """What the debater is given; all of it where nothing of its share can be found.

    Passages that the model had no room to see go to everybody.
    """
    by_name = {given.casefold().strip(): ids for given, ids in answer.shares.items()}
    ids = ids_of(by_name.get(one_line(name).casefold(), ()), evidence)
    return Share(name, (*ids, *unseen) if ids else tuple(p.id for p in ranked(evidence)))


def _facts(answer: _Sorted, evidence: Evidence) -> tuple[Fact, ...]:
    """Those that rest on a passage: what rests on none is the model's own opinion."""
    facts = (Fact(f.claim.strip(), ids_of(f.passages, evidence)) for f in answer.facts)
    return tuple(fact for fact in facts if fact.claim and fact.passages)


def _conflicts(answer: _Sorted, evidence: Evidence) -> tuple[str, ...]:
    """In words, each with the passages that stand against each other."""
    told = []
    for conflict in answer.conflicts:
        sides = [cited(evidence.passages[i]) for i in ids_of(conflict.passages, evidence)]
        about = conflict.about.strip().rstrip(".")
        if len(sides) > 1 and about:
            told.append(f"{about}: {' stands against '.join(sides)}.")
    return tuple(told)
