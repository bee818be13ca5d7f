"""A finished audit as a ReAct trajectory, and whether it is fit to learn from.

`⟨o0, t1, a1, o1, …, tn, an, on⟩`: o0 is the instruction with the question and the response, on the
final answer; thoughts and actions are what is learned. Statements come in the order of the text.
Untrusted words are fenced or made harmless, so that none can pass for a turn of its own. As in the
paper, wrong calls of tools and results that differ from people's label are left out; statements are
compared too, where people marked words. Source: HaluAgent 2.3, 2.4.1, A.1.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from core.llm.prompting import Fence, PromptBook, filled, prompt_language
from core.runtime.errors import InputError
from core.schema.events import Event, Reconsidered, Remembered, ToolOutcome, ToolUse
from core.schema.progress import Progress, folded
from core.schema.records import Case, Label, Statement
from core.schema.reviews import Correction, Gold
from core.store.sqlite import from_plain
from core.tools.registry import describe_tools, read_input, tool_named, toolbox


@dataclass(frozen=True)
class Words:
    """The texts of one language, of `trajectory_words.json`; `{}` fields are filled here."""

    thought: str
    action: str
    observation: str
    divide: str
    whole: str
    statement: str
    by_rule: str
    unchecked: str
    concluded: str
    looked_back: str
    stands: str
    changed: str
    final: str
    follows: str
    no_label: str
    did: Mapping[ToolOutcome, str]
    wrong: str
    nothing_wrong: str
    nothing_decided: str


WORDS = from_plain(
    dict[str, Words],
    json.loads(Path(__file__).with_name("trajectory_words.json").read_text(encoding="utf-8")),
)


def words_of(language: str) -> Words:
    """The words for a case in that language (a BCP 47 tag or `und`): Chinese, else English."""
    return WORDS["zh" if prompt_language(language) == "zh" else "en"]


KINDS = (
    "run_started", "statement_found", "tool_called", "memory_updated", "reflection_changed",
    "judgement_reached", "run_finished",
)  # fmt: skip
SPLIT, ANSWER = "split_text", "get_answer"
MOST_WORKED_OUT = 1_500  # characters of what a tool worked out that an observation repeats


@dataclass(frozen=True)
class ChatMessage:
    """One message of a chat; the loss is taken over `trained` ones only (HaluAgent 2.4.2)."""

    role: Literal["system", "user", "assistant"]
    content: str
    trained: bool = False


@dataclass(frozen=True)
class Trajectory:
    """An audit as a chat. `label` is what the audit itself came to, before any classifier."""

    run_id: str
    language: str
    label: Label
    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True)
class TrajectoryTurn:
    """What the agent thinks, what it calls with which input, and what it is told then."""

    thought: str
    tool: str
    given: str
    told: str


def trajectory_of(run_id: str, events: Sequence[Event], book: PromptBook) -> Trajectory | None:
    """The audit that these events (of `KINDS`) tell of; None where it came to no judgement."""
    progress = folded(events)
    if progress.case is None or progress.judgement is None or not progress.memory:
        return None
    told = _Told(progress, first_entries(events), Fence.of_run(run_id))
    instruction = filled(
        book.prompt("trajectory", progress.case.language), told.instruction(progress.case)
    )
    messages = [
        ChatMessage(("system" if one.role == "system" else "user"), one.text) for one in instruction
    ]
    for turn in told.turns():
        messages += told.messages(turn)
    label = progress.judgement.label
    return Trajectory(run_id, progress.case.language, label, tuple(messages))


def first_entries(events: Sequence[Event]) -> dict[int, Remembered]:
    """What was held of each statement when it had been checked, before anything was changed."""
    found: dict[int, Remembered] = {}
    for event in events:
        if event.kind == "memory_updated":
            found.setdefault(event.entry.statement, event.entry)
    return found


def given_of(text: str) -> dict[str, Any]:
    """A tool's input as the trace has it; empty where that is no JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class _Told:
    """One audit on its way into words."""

    progress: Progress
    first: Mapping[int, Remembered]
    fence: Fence

    @property
    def words(self) -> Words:
        return words_of(self.progress.case.language if self.progress.case else "")

    def instruction(self, case: Case) -> dict[str, str]:
        """The fields of the instruction."""
        return {
            "tools": describe_tools(toolbox().values()),
            "question": self.fence.around("question", case.question or "-"),
            "response": self.fence.around("response", case.response),
        }

    def messages(self, turn: TrajectoryTurn) -> tuple[ChatMessage, ChatMessage]:
        """A turn as the agent's message and what it is told then."""
        words, safe = self.words, self.fence.harmless
        given = json.dumps(_harmless(given_of(turn.given), safe), ensure_ascii=False)
        thought = " ".join(safe(turn.thought).split())
        said = f"{words.thought}: {thought}\n{words.action}: {turn.tool}({given})"
        told = f"{words.observation}: {self.fence.around('observation', turn.told)}"
        return ChatMessage("assistant", said, trained=True), ChatMessage("user", told)

    def turns(self) -> Iterator[TrajectoryTurn]:
        """Every step: the statements, each use of a tool, and the answer after looking back."""
        words = self.words
        statements = sorted(self.progress.statements.values(), key=lambda one: one.index)
        yield self._divided(statements)
        pending: list[str] = []
        for place in (None, *statements):
            number = None if place is None else place.index
            uses = (use for use in self.progress.tool_uses if use.tool not in (SPLIT, ANSWER))
            own = [use for use in uses if use.statement == number]
            pending += self._opening(place, bool(own))
            for use in own:
                thought = use.thought or words.by_rule.format(agent=use.agent, tool=use.tool)
                yield TrajectoryTurn(
                    " ".join([*pending, thought]), use.tool, use.given, self._observed(use)
                )
                pending = []
            if place is not None and place.index in self.first:
                pending.append(self._concluded(self.first[place.index]))
        yield self._answered([*pending, words.looked_back, *self._changes()])

    def _system_use(self, tool: str) -> ToolUse | None:
        return next((use for use in self.progress.tool_uses if use.tool == tool), None)

    def _divided(self, statements: Sequence[Statement]) -> TrajectoryTurn:
        """The first step; the statements are those of the run, whoever divided the response."""
        use = self._system_use(SPLIT)
        case = self.progress.case
        text, language = (case.response, case.language) if case else ("", "und")
        given = use.given if use else json.dumps({"text": text, "language": language})
        found = "\n".join(f"{one.index + 1}. {one.rewrite or one.text}" for one in statements)
        return TrajectoryTurn((use and use.thought) or self.words.divide, SPLIT, given, found)

    def _opening(self, place: Statement | None, has_uses: bool) -> list[str]:
        if place is None:
            return [self.words.whole] if has_uses else []
        words = self.words.statement if has_uses else self.words.unchecked
        return [words.format(number=place.index + 1, text=place.text)]

    def _concluded(self, entry: Remembered) -> str:
        number = entry.statement + 1
        words = self.words.concluded
        return words.format(number=number, label=entry.label, evidence=entry.evidence).strip()

    def _observed(self, use: ToolUse) -> str:
        words = self.words
        lines = [words.did.get(use.outcome, "") + use.words]
        if use.outcome == "found" and use.label != "unclear":
            lines.append(words.follows.format(label=use.label))
        else:
            lines.append(words.no_label)
        if use.gave not in ("", "{}"):
            is_long = len(use.gave) > MOST_WORKED_OUT
            lines.append(use.gave[:MOST_WORKED_OUT] + ("…" if is_long else ""))
        return "\n".join(lines)

    def _changes(self) -> list[str]:
        """What looking back changed: by reflection, or because a debate came to another label."""
        words, told = self.words, []
        final = {number: entry.label for number, entry in self.first.items()}
        for change in self.progress.reconsidered:
            told.append(self._changed(change))
            final[change.statement] = change.after
        for number, entry in sorted(self.progress.memory.items()):
            if entry.label != final.get(number, entry.label):
                before = final[number]
                change = Reconsidered(number, "local", before, entry.label, entry.evidence)
                told.append(self._changed(change))
        return told or [words.stands]

    def _changed(self, change: Reconsidered) -> str:
        return self.words.changed.format(**vars(change) | {"number": change.statement + 1})

    def _answered(self, thoughts: Sequence[str]) -> TrajectoryTurn:
        judgement = self.progress.judgement
        label: Label = judgement.label if judgement else "unclear"
        use = self._system_use(ANSWER)
        thought = " ".join([*thoughts, self.words.final.format(label=label)])
        given = use.given if use else json.dumps({"checked": self._checked()})
        return TrajectoryTurn(thought, ANSWER, given, self._result(label))

    def _checked(self) -> list[dict[str, str]]:
        """The statements that say something to check, as `get_answer` takes them; else all."""
        known = self.progress.statements
        entries = [e for n, e in sorted(self.progress.memory.items()) if n in known]
        return [
            {"statement": known[e.statement].text, "label": e.label, "evidence": e.evidence}
            for e in [e for e in entries if e.is_checkable] or entries
        ]

    def _result(self, label: Label) -> str:
        words = self.words
        if label != "hallucinated":
            return words.nothing_wrong if label == "supported" else words.nothing_decided
        wrong = [
            f"{number + 1}. “{self.progress.statements[number].text}”: {entry.evidence}"
            for number, entry in sorted(self.progress.memory.items())
            if entry.label == "hallucinated" and number in self.progress.statements
        ]
        return "\n".join([words.wrong, *wrong])


def _harmless(value: Any, safe: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, list):
        return [_harmless(one, safe) for one in value]
    if isinstance(value, dict):
        return {key: _harmless(one, safe) for key, one in value.items()}
    return value


Answer = Gold | Correction
Reason = Literal[
    "not_decided", "wrong_label", "wrong_statement", "tool_failed", "wrong_call", "left_for_balance"
]
LABELS: tuple[Label, ...] = ("supported", "hallucinated")
REASON_WORDS: Mapping[Reason, str] = {
    "not_decided": "not decided by people",
    "wrong_label": "wrong label",
    "wrong_statement": "wrong statement",
    "tool_failed": "a tool failed or was off",
    "wrong_call": "a tool was called wrongly",
    "left_for_balance": "left out so that labels are as many as each other",
}


@dataclass(frozen=True)
class ExclusionReason:
    """Why a trajectory is not learned from; `why` is a sentence about this one."""

    reason: Reason
    why: str


def faults_of(progress: Progress, answer: Answer | None) -> list[ExclusionReason]:
    """Everything that speaks against a finished audit, given the answer that counts, if any."""
    label: Label = progress.judgement.label if progress.judgement else "unclear"
    faults = [fault for use in progress.tool_uses for fault in _faults_of_use(use)]
    if answer is None or answer.label == "unclear":
        said = "nobody answered" if answer is None else "people left it unclear"
        return [ExclusionReason("not_decided", f"Of this case {said}."), *faults]
    if label != answer.label:
        why = f"The audit says {label}, people decided {answer.label}."
        return [ExclusionReason("wrong_label", why), *faults]
    return [*_wrong_statements(progress, answer), *faults]


def _faults_of_use(use: ToolUse) -> list[ExclusionReason]:
    if use.outcome in ("off", "failed"):
        was = "was off" if use.outcome == "off" else "failed"
        return [ExclusionReason("tool_failed", f"{use.tool} {was}: {use.words}")]
    try:
        read_input(tool_named(use.tool), use.given)
    except InputError as error:
        return [ExclusionReason("wrong_call", str(error))]
    return []


def _wrong_statements(progress: Progress, answer: Answer) -> list[ExclusionReason]:
    """Statements whose label people's marks deny; nothing where they marked no words at all.

    A statement that could not be found out is none, unless people marked words in it; nor is one
    that holds where the response is wrong as a whole, such as one that is too long.
    """
    told = statement_answers(progress.statements, answer)
    is_whole = any(u.statement is None and u.label == "hallucinated" for u in progress.tool_uses)
    faults = []
    for number, entry in sorted(progress.memory.items()):
        right = told.get(number, entry.label)
        is_missed = right == "hallucinated" != entry.label and not is_whole
        if is_missed or (right == "supported" and entry.label == "hallucinated"):
            why = f"Statement {number + 1} was found {entry.label}, people decided {right}."
            faults.append(ExclusionReason("wrong_statement", why))
    return faults


def statement_answers(statements: Mapping[int, Statement], answer: Answer) -> dict[int, Label]:
    """By statement what people's answer says of it; statements of which it says nothing left out.

    Of a supported response every statement is. Of a hallucinated one those are that hold marked
    words, or the only one there is; where no words are marked nothing is known of several.
    """
    if answer.label == "supported":
        return dict.fromkeys(statements, "supported")
    if answer.label != "hallucinated":
        return {}
    if len(statements) == 1:
        return dict.fromkeys(statements, "hallucinated")
    if not answer.spans:
        return {}
    return {
        number: "hallucinated"
        if any(span.start < one.end and one.start < span.end for span in answer.spans)
        else "supported"
        for number, one in statements.items()
    }


def balanced(found: Sequence[Trajectory]) -> tuple[list[Trajectory], list[Trajectory]]:
    """(as many of each label in each language, those left over).

    Which stay is drawn by a digest of the run's id: the same runs always give the same file.
    """
    cells: dict[str, dict[Label, list[Trajectory]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(found, key=lambda one: sha256(one.run_id.encode()).digest()):
        cells[one.language][one.label].append(one)
    kept: set[str] = set()
    for cell in cells.values():
        fewest = min(len(cell[label]) for label in LABELS)
        kept |= {one.run_id for label in LABELS for one in cell[label][:fewest]}
    return (
        [one for one in found if one.run_id in kept],
        [one for one in found if one.run_id not in kept],
    )
