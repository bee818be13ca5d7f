"""Turn a finished audit into a ReAct trajectory, and decide if it is fit to train on.

`⟨o0, t1, a1, o1, …, tn, an, on⟩`: o0 is the instruction with the question and the response, on the
final answer; thoughts and actions are trained on. Statements come in the order of the text.
Untrusted text is fenced or made harmless, so that it cannot pass for a turn of its own. As in the
paper, trajectories with wrong tool calls or a result that differs from people's label are excluded;
if people marked words, statements are compared too. Source: HaluAgent 2.3, 2.4.1, A.1.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

from core.llm.prompting import Fence, PromptBook, fill_prompt, prompt_language
from core.runtime.errors import InputError
from core.schema.events import Event, LabelRevision, MemoryEntry, ToolOutcome, ToolUse
from core.schema.records import Case, Label, Statement
from core.schema.reviews import StatementLabel
from core.schema.run_state import RunState, fold_events
from core.store.ground_truth import GroundTruth, find_majority_label
from core.store.sqlite import from_plain
from core.tools.registry import describe_tools, get_tool, load_tools, read_input

TRAJECTORY_EVENT_KINDS = (
    "run_started", "statement_found", "tool_called", "memory_updated", "reflection_changed",
    "judgement_reached", "run_finished",
)  # fmt: skip
SPLIT_TOOL, ANSWER_TOOL = "split_text", "get_answer"
MAX_OBSERVATION_CHARS = 1_500  # characters of a tool's output that an observation repeats
ExclusionCode = Literal[
    "not_decided", "wrong_label", "wrong_statement", "tool_failed", "wrong_call", "left_for_balance"
]
BALANCED_LABELS: tuple[Label, ...] = ("supported", "hallucinated")
REASON_WORDS: Mapping[ExclusionCode, str] = {
    "not_decided": "not decided by people",
    "wrong_label": "wrong label",
    "wrong_statement": "wrong statement",
    "tool_failed": "a tool failed or was off",
    "wrong_call": "a tool was called wrongly",
    "left_for_balance": "left out so that labels are as many as each other",
}


@dataclass(frozen=True)
class TrajectoryTexts:
    """The texts of one language from `trajectory_words.json`, with `{}` fields to fill."""

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


TEXTS_BY_LANGUAGE = from_plain(
    dict[str, TrajectoryTexts],
    json.loads(Path(__file__).with_name("trajectory_words.json").read_text(encoding="utf-8")),
)


def get_texts(language: str) -> TrajectoryTexts:
    """Return the texts for a case in this language (BCP 47 or `und`): Chinese, else English."""
    return TEXTS_BY_LANGUAGE["zh" if prompt_language(language) == "zh" else "en"]


@dataclass(frozen=True)
class ChatMessage:
    """A message of a chat; only `trained` ones contribute to the loss (HaluAgent 2.4.2)."""

    role: Literal["system", "user", "assistant"]
    content: str
    trained: bool = False


@dataclass(frozen=True)
class Trajectory:
    """An audit as a chat. `label` is the audit's own label, before any classifier."""

    run_id: str
    language: str
    label: Label
    messages: tuple[ChatMessage, ...]


@dataclass(frozen=True)
class TrajectoryTurn:
    """One step: the agent's thought, the tool it calls, the tool's input and the observation."""

    thought: str
    tool: str
    given: str
    told: str


def build_trajectory(run_id: str, events: Sequence[Event], book: PromptBook) -> Trajectory | None:
    """Build the trajectory from a run's events; None if it reached no judgement."""
    progress = fold_events(events)
    if progress.case is None or progress.judgement is None or not progress.memory:
        return None
    writer = _TrajectoryWriter(progress, collect_first_entries(events), Fence.of_run(run_id))
    instruction = fill_prompt(
        book.prompt("trajectory", progress.case.language), writer.instruction(progress.case)
    )
    messages = [
        ChatMessage(("system" if message.role == "system" else "user"), message.text)
        for message in instruction
    ]
    for turn in writer.turns():
        messages += writer.messages(turn)
    label = progress.judgement.label
    return Trajectory(run_id, progress.case.language, label, tuple(messages))


def collect_first_entries(events: Sequence[Event]) -> dict[int, MemoryEntry]:
    """Return each statement's first memory entry, from before any change."""
    entries: dict[int, MemoryEntry] = {}
    for event in events:
        if event.kind == "memory_updated":
            entries.setdefault(event.entry.statement, event.entry)
    return entries


def parse_tool_input(text: str) -> dict[str, Any]:
    """Return a tool's input from the trace; {} if it is not a JSON object."""
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


@dataclass(frozen=True)
class _TrajectoryWriter:
    """Writes one audit as text."""

    progress: RunState
    first: Mapping[int, MemoryEntry]
    fence: Fence

    @property
    def words(self) -> TrajectoryTexts:
        return get_texts(self.progress.case.language if self.progress.case else "")

    def instruction(self, case: Case) -> dict[str, str]:
        """Return the fields of the instruction prompt."""
        return {
            "tools": describe_tools(load_tools().values()),
            "question": self.fence.around("question", case.question or "-"),
            "response": self.fence.around("response", case.response),
        }

    def messages(self, turn: TrajectoryTurn) -> tuple[ChatMessage, ChatMessage]:
        """Return a turn as the agent's message and the observation that follows."""
        words, safe = self.words, self.fence.harmless
        tool_input = json.dumps(
            _make_harmless(parse_tool_input(turn.given), safe), ensure_ascii=False
        )
        thought = " ".join(safe(turn.thought).split())
        action = f"{words.thought}: {thought}\n{words.action}: {turn.tool}({tool_input})"
        observation = f"{words.observation}: {self.fence.around('observation', turn.told)}"
        return ChatMessage("assistant", action, trained=True), ChatMessage("user", observation)

    def turns(self) -> Iterator[TrajectoryTurn]:
        """Yield every step: the split, each tool use, and the answer after reflection."""
        words = self.words
        statements = sorted(self.progress.statements.values(), key=lambda one: one.index)
        yield self._build_split_turn(statements)
        pending: list[str] = []
        for statement in (None, *statements):
            number = None if statement is None else statement.index
            uses = (
                use for use in self.progress.tool_uses if use.tool not in (SPLIT_TOOL, ANSWER_TOOL)
            )
            statement_uses = [use for use in uses if use.statement == number]
            pending += self._introduce_statement(statement, bool(statement_uses))
            for use in statement_uses:
                thought = use.thought or words.by_rule.format(agent=use.agent, tool=use.tool)
                yield TrajectoryTurn(
                    " ".join([*pending, thought]),
                    use.tool,
                    use.given,
                    self._describe_observation(use),
                )
                pending = []
            if statement is not None and statement.index in self.first:
                pending.append(self._describe_conclusion(self.first[statement.index]))
        yield self._build_answer_turn([*pending, words.looked_back, *self._describe_changes()])

    def _find_tool_use(self, tool: str) -> ToolUse | None:
        return next((use for use in self.progress.tool_uses if use.tool == tool), None)

    def _build_split_turn(self, statements: Sequence[Statement]) -> TrajectoryTurn:
        """Return the first step; the statements are the run's, whoever split the response."""
        use = self._find_tool_use(SPLIT_TOOL)
        case = self.progress.case
        text, language = (case.response, case.language) if case else ("", "und")
        tool_input = use.given if use else json.dumps({"text": text, "language": language})
        thought = (use and use.thought) or self.words.divide
        listed = "\n".join(f"{one.index + 1}. {one.rewrite or one.text}" for one in statements)
        return TrajectoryTurn(thought, SPLIT_TOOL, tool_input, listed)

    def _introduce_statement(self, statement: Statement | None, has_uses: bool) -> list[str]:
        if statement is None:
            return [self.words.whole] if has_uses else []
        words = self.words.statement if has_uses else self.words.unchecked
        return [words.format(number=statement.index + 1, text=statement.text)]

    def _describe_conclusion(self, entry: MemoryEntry) -> str:
        number = entry.statement + 1
        words = self.words.concluded
        return words.format(number=number, label=entry.label, evidence=entry.evidence).strip()

    def _describe_observation(self, use: ToolUse) -> str:
        words = self.words
        lines = [words.did.get(use.outcome, "") + use.words]
        if use.outcome == "found" and use.label != "unclear":
            lines.append(words.follows.format(label=use.label))
        else:
            lines.append(words.no_label)
        if use.gave not in ("", "{}"):
            is_long = len(use.gave) > MAX_OBSERVATION_CHARS
            lines.append(use.gave[:MAX_OBSERVATION_CHARS] + ("…" if is_long else ""))
        return "\n".join(lines)

    def _describe_changes(self) -> list[str]:
        """Describe the changes after the first check: by reflection, or by a debate."""
        words, descriptions = self.words, []
        labels = {number: entry.label for number, entry in self.first.items()}
        for change in self.progress.reconsidered:
            descriptions.append(self._describe_change(change))
            labels[change.statement] = change.after
        for number, entry in sorted(self.progress.memory.items()):
            if entry.label != labels.get(number, entry.label):
                before = labels[number]
                change = LabelRevision(number, "local", before, entry.label, entry.evidence)
                descriptions.append(self._describe_change(change))
        return descriptions or [words.stands]

    def _describe_change(self, change: LabelRevision) -> str:
        return self.words.changed.format(**vars(change) | {"number": change.statement + 1})

    def _build_answer_turn(self, thoughts: Sequence[str]) -> TrajectoryTurn:
        judgement = self.progress.judgement
        label: Label = judgement.label if judgement else "unclear"
        use = self._find_tool_use(ANSWER_TOOL)
        thought = " ".join([*thoughts, self.words.final.format(label=label)])
        tool_input = use.given if use else json.dumps({"checked": self._list_checked()})
        return TrajectoryTurn(thought, ANSWER_TOOL, tool_input, self._describe_result(label))

    def _list_checked(self) -> list[dict[str, str]]:
        """Return the checkable statements, or all if none is, as input for `get_answer`."""
        known = self.progress.statements
        entries = [e for n, e in sorted(self.progress.memory.items()) if n in known]
        return [
            {"statement": known[e.statement].text, "label": e.label, "evidence": e.evidence}
            for e in [e for e in entries if e.is_checkable] or entries
        ]

    def _describe_result(self, label: Label) -> str:
        words = self.words
        if label != "hallucinated":
            return words.nothing_wrong if label == "supported" else words.nothing_decided
        wrong = [
            f"{number + 1}. “{self.progress.statements[number].text}”: {entry.evidence}"
            for number, entry in sorted(self.progress.memory.items())
            if entry.label == "hallucinated" and number in self.progress.statements
        ]
        return "\n".join([words.wrong, *wrong])


def _make_harmless(value: Any, safe: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return safe(value)
    if isinstance(value, list):
        return [_make_harmless(item, safe) for item in value]
    if isinstance(value, dict):
        return {key: _make_harmless(item, safe) for key, item in value.items()}
    return value


@dataclass(frozen=True)
class ExclusionReason:
    """Why a trajectory is excluded from training; `why` is a sentence about this one."""

    reason: ExclusionCode
    why: str


def find_exclusion_reasons(progress: RunState, truth: GroundTruth) -> list[ExclusionReason]:
    """Return all reasons to exclude a finished audit, given what counts as true for its case."""
    label: Label = progress.judgement.label if progress.judgement else "unclear"
    faults = [fault for use in progress.tool_uses for fault in _find_tool_faults(use)]
    if truth.label is None or truth.label == "unclear":
        state = "people left it unclear" if truth.label else "nothing is decided"
        return [ExclusionReason("not_decided", f"Of this case {state}."), *faults]
    if label != truth.label:
        why = f"The audit says {label}, people decided {truth.label}."
        return [ExclusionReason("wrong_label", why), *faults]
    return [*_find_wrong_statements(progress, truth), *faults]


def _find_tool_faults(use: ToolUse) -> list[ExclusionReason]:
    if use.outcome in ("off", "failed"):
        was = "was off" if use.outcome == "off" else "failed"
        return [ExclusionReason("tool_failed", f"{use.tool} {was}: {use.words}")]
    try:
        read_input(get_tool(use.tool), use.given)
    except InputError as error:
        return [ExclusionReason("wrong_call", str(error))]
    return []


def _find_wrong_statements(progress: RunState, truth: GroundTruth) -> list[ExclusionReason]:
    """Return the statements whose label contradicts people's marks; [] if they marked no words.

    An undecided statement counts only if people marked words in it. If the response is wrong as a
    whole, for example too long, a statement that was not found wrong does not count.
    """
    labels = derive_statement_labels(progress.statements, truth)
    is_whole = any(u.statement is None and u.label == "hallucinated" for u in progress.tool_uses)
    faults = []
    for number, entry in sorted(progress.memory.items()):
        expected = labels.get(number, entry.label)
        is_missed = expected == "hallucinated" != entry.label and not is_whole
        if is_missed or (expected == "supported" and entry.label == "hallucinated"):
            why = f"Statement {number + 1} was found {entry.label}, people decided {expected}."
            faults.append(ExclusionReason("wrong_statement", why))
    return faults


def derive_statement_labels(
    statements: Mapping[int, Statement], truth: GroundTruth
) -> dict[int, Label]:
    """Return the label that people's answer implies for each statement, where it implies one.

    Statements that people labelled one by one have the label of most. Otherwise all statements of a
    supported response are supported; in a hallucinated one a statement with marked words, or the
    only statement, is hallucinated, and without marks several remain unknown.
    """
    statement_labels = [one for said in truth.corrections for one in said.statements]
    if statement_labels:
        by_place = _vote_on_statements(statement_labels)
        places = {number: (one.start, one.end) for number, one in statements.items()}
        return {n: by_place[place] for n, place in places.items() if place in by_place}
    if truth.label == "supported":
        return dict.fromkeys(statements, "supported")
    if truth.label != "hallucinated":
        return {}
    if len(statements) == 1:
        return dict.fromkeys(statements, "hallucinated")
    if not truth.spans:
        return {}
    return {
        number: "hallucinated"
        if any(span.start < one.end and one.start < span.end for span in truth.spans)
        else "supported"
        for number, one in statements.items()
    }


def _vote_on_statements(labelled: Iterable[StatementLabel]) -> dict[tuple[int, int], Label]:
    """Return the label that most people gave to each place; none where there is no majority."""
    votes: dict[tuple[int, int], list[Label]] = defaultdict(list)
    for one in labelled:
        votes[one.start, one.end].append(one.label)
    return {p: label for p, own in votes.items() if (label := find_majority_label(own))}


def balance_labels(found: Sequence[Trajectory]) -> tuple[list[Trajectory], list[Trajectory]]:
    """Return (equally many trajectories of each label in each language, the remaining ones).

    The choice depends on a digest of the run's id, so the same runs always give the same file.
    """
    cells: dict[str, dict[Label, list[Trajectory]]] = defaultdict(lambda: defaultdict(list))
    for one in sorted(found, key=lambda one: sha256(one.run_id.encode()).digest()):
        cells[one.language][one.label].append(one)
    kept_ids: set[str] = set()
    for cell in cells.values():
        fewest = min(len(cell[label]) for label in BALANCED_LABELS)
        kept_ids |= {one.run_id for label in BALANCED_LABELS for one in cell[label][:fewest]}
    return (
        [one for one in found if one.run_id in kept_ids],
        [one for one in found if one.run_id not in kept_ids],
    )
