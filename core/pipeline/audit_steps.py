"""The parts of an audit: checking a statement tool by tool, its memory entry, and its conclusion.

Source: HaluAgent 2.3 (tool selection, verification, the triple of sentence, label and evidence),
2.4.1 (thought, action, observation); CEDA 6 (a response checked while it is being written). Beyond
the paper, a statement is contested if the readings of the evidence are not unanimous: it goes to
debate.
"""

from __future__ import annotations

import codecs
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec
import regex
from rapidfuzz import fuzz

from core.agents.agent_runner import RunContext, drain_calls, play_role
from core.baseline.segmenter import split_outside_code
from core.baseline.tool_picker import find_unchecked_text, is_conclusion
from core.runtime.errors import InputError
from core.schema.events import (
    MAX_STEPS_PER_STATEMENT,
    Event,
    MemoryEntry,
    MemoryUpdated,
    PassagesFound,
    ToolCalled,
    ToolUse,
)
from core.schema.records import (
    Case,
    DebatePoint,
    Judgement,
    Label,
    MeasuredAccuracy,
    Passage,
    Project,
    ReaderStance,
    Statement,
    UnclearCause,
)
from core.schema.roles import AuditView, CaseView, Evidence, ToolPicker, ToolStep
from core.tools.registry import ToolContext, load_tools, read_input, use_tool

MIN_SIMILARITY_PERCENT = (
    80  # similarity of 100: a model may drop or correct a word of the statement
)
MAX_LENGTH_RATIO = 1.5  # times the statement's length; a longer text says something else as well
MAX_REPEATED_CALLS = 2  # of repeated calls
# Tools that read texts. The others compute, and readings do not outvote them.
SEARCH_TOOL = "search"  # returns passages, and no label of the statement
READING_TOOLS = frozenset({SEARCH_TOOL, "match", "translate"})
# Tools for conditions on the answer (its length): meeting one says nothing about the content.
CONDITION_TOOLS = frozenset({"conditions"})
UNDECIDED_RANGE = (0.35, 0.65)  # a p in between is undecided
MAX_SUPPORTED_P, MIN_HALLUCINATED_P = 0.49, 0.51
OTHER_TEXT_PREFIX = "It was asked about other words than the statement's, so nothing follows: "
NO_FINDING_TEXT = "No tool says anything about it."
NOT_CHECKABLE_TEXT = "It says nothing that could be true or false."
CONTESTED_HEADING = "In question are only these statements of a longer response:"
UNFINISHED_WORD = regex.compile(r"(?:[\p{Lu}\p{Ll}]\p{M}*)+$")
CUT_OFF_MESSAGE = (
    "Standard input ended in the middle of a character: its last bytes ({lost}) are left out, and "
    "all that came before is checked."
)
REPEATED_CALL_MESSAGE = (
    "This very call was made before and is not made again: what came of it stands above. Call "
    "another tool, give another input, or conclude."
)
TOO_MANY_STEPS_MESSAGE = (
    "The picker came to no conclusion in {most} steps; what the tools said decides."
)


def drop_unrelated_label(use: ToolUse, statement: Statement | None, about: str = "text") -> ToolUse:
    """Return the use, without its label if the tool was given another text than the statement."""
    text = _get_text(use.given, about)
    if statement is None or use.label == "unclear" or not text:
        return use
    if is_blanked_copy(text, statement.text):
        return use
    for form in (statement.text, statement.rewrite):
        is_short = len(text) <= MAX_LENGTH_RATIO * len(form)
        if is_short and (text in form or fuzz.partial_ratio(text, form) >= MIN_SIMILARITY_PERCENT):
            return use
    unlabelled = replace(use, outcome="nothing", label="unclear", p=None, start=None, end=None)
    return replace(unlabelled, words=f"{OTHER_TEXT_PREFIX}{use.words}")


def locate_tool_finding(
    use: ToolUse, statement: Statement | None, case: Case, about: str = "text"
) -> ToolUse:
    """Return the use with `[start, end)` in `Case.response`; without offsets if ambiguous.

    The field `about` of its input may hold the statement as it stands, its self-contained rewrite,
    or the whole response: the words are searched for where they can stand, and located only if they
    occur exactly once.
    """
    if use.start is None or use.end is None:
        return use
    low, high = (statement.start, statement.end) if statement else (0, len(case.response))
    text = _get_text(use.given, about)
    if 0 <= use.start < use.end <= len(text):
        if case.response[low:high] == text or is_blanked_copy(text, case.response[low:high]):
            return replace(use, start=low + use.start, end=low + use.end)
        words = text[use.start : use.end]
        if case.response.count(words, low, high) == 1:
            start = case.response.index(words, low, high)
            return replace(use, start=start, end=start + len(words))
    return replace(use, start=None, end=None)


def is_blanked_copy(text: str, whole: str) -> bool:
    """Return True if `text` is `whole` with spaces for some characters: offsets stay the same."""
    if len(text) != len(whole) or text == whole or not text.strip():
        return False
    return all(cut_char in (char, " ") for cut_char, char in zip(text, whole, strict=True))


def blank_same_words(text: str, statement: Statement) -> Statement:
    """Return the statement with the same words blanked as in `text`, which is cut from it.

    In its self-contained form they are blanked if each occurs once; else that form becomes `text`.
    """
    rewrite, full_text = statement.rewrite, statement.text
    chars = list(zip(text, full_text, strict=True))
    for is_gone, run in itertools.groupby(
        chars, key=lambda pair: pair[0] != pair[1] or pair[1] == " "
    ):
        words = "".join(char for _, char in run)
        if not is_gone or not words.strip():
            continue
        if rewrite.count(words) != 1:
            return replace(statement, text=text, rewrite=text)
        rewrite = rewrite.replace(words, " " * len(words))
    return replace(statement, text=text, rewrite=rewrite)


def _get_text(tool_input: str, about: str) -> str:
    try:
        fields = msgspec.json.decode(tool_input)
    except msgspec.MsgspecError:
        return ""
    text = fields.get(about) if isinstance(fields, dict) else None
    return text if isinstance(text, str) else ""


class ReadingReport(msgspec.Struct, frozen=True):
    """The report of a reading tool beside its label; points lie in `Case.response`.

    Decoded from `ToolUse.gave`, in which an imported trace may hold anything.
    """

    readers: tuple[ReaderStance, ...] = ()
    points: tuple[DebatePoint, ...] = ()
    cause: UnclearCause | None = None
    measured: MeasuredAccuracy | None = None


REPORT_DECODER = msgspec.json.Decoder(ReadingReport)


def decode_reading_report(use: ToolUse) -> ReadingReport:
    """Decode the tool's view; empty if it has another shape."""
    try:
        return REPORT_DECODER.decode(use.gave.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ReadingReport()


def conclude_statement(
    statement: int, uses: Sequence[ToolUse], end: ToolStep, passages: Sequence[str] = ()
) -> MemoryEntry:
    """Return the memory entry of a statement after its picker has ended with the step `end`.

    The picker's own label counts if it gives one: it may overrule a reading tool (HaluAgent, figure
    4), but against a tool that computes it only makes the statement contested.
    """
    words = end.evidence or _describe_failures(uses) or NO_FINDING_TEXT
    tools = tuple(dict.fromkeys(use.tool for use in uses))
    entry = MemoryEntry(statement, "unclear", None, words, tools, tuple(passages))
    if not end.is_checkable:
        words = end.evidence or end.thought or NOT_CHECKABLE_TEXT
        return replace(entry, evidence=words, is_checkable=False)
    labelled = [use for use in uses if use.outcome == "found" and use.label != "unclear"]
    label = end.label
    if label is None:
        return _conclude_from_tools(entry, labelled, uses)
    agreeing = [use for use in labelled if use.label == label]
    opposing = [use for use in labelled if use.label != label and use.tool not in READING_TOOLS]
    if label == "unclear":  # a correct sum does not confirm the rest of the statement
        opposing = [use for use in opposing if use.label == "hallucinated"]
    words = end.evidence or (agreeing[-1].words if agreeing else end.thought) or entry.evidence
    entry = replace(entry, label=label, p=_choose_p(agreeing, label), evidence=words)
    return replace(entry, is_contested=bool(opposing))


def _conclude_from_tools(
    entry: MemoryEntry, labelled: Sequence[ToolUse], uses: Sequence[ToolUse]
) -> MemoryEntry:
    """Conclude from tools: computed results outweigh readings; the last reading counts."""
    computed = [use for use in labelled if use.tool not in READING_TOOLS]
    wrong = [use for use in computed if use.label == "hallucinated"]
    readings = [use for use in uses if use.tool in READING_TOOLS and use.outcome == "found"]
    last_reading = [use for use in readings if use.tool != SEARCH_TOOL][-1:] or readings[-1:]
    if wrong:
        return _set_label(entry, wrong, "hallucinated")
    decided = [use for use in last_reading if use.label != "unclear"]
    if computed and not any(use.label == "hallucinated" for use in decided):
        return _set_label(entry, [*computed, *decided], "supported")
    if computed:
        return replace(_set_label(entry, decided, "hallucinated"), is_contested=True)
    is_open = any(_is_undecided(use) for use in last_reading)
    if decided:
        return replace(_set_label(entry, decided, decided[0].label), is_contested=is_open)
    words = " ".join(filter(None, [*(use.words for use in last_reading), _describe_failures(uses)]))
    words = words or entry.evidence
    return replace(
        entry, p=_choose_p(last_reading, "unclear"), evidence=words, is_contested=is_open
    )


def _is_undecided(use: ToolUse) -> bool:
    """Return True if its readers contradict each other, or p is near one half."""
    if {"supported", "hallucinated"} <= {
        view.stance for view in decode_reading_report(use).readers
    }:
        return True
    low, high = UNDECIDED_RANGE
    return use.label != "unclear" and use.p is not None and low < use.p < high


def _describe_failures(uses: Sequence[ToolUse]) -> str:
    failed = (use for use in uses if use.outcome == "failed")
    return " ".join(dict.fromkeys(f"The tool {use.tool} failed: {use.words}" for use in failed))


def _set_label(entry: MemoryEntry, deciding: Sequence[ToolUse], label: Label) -> MemoryEntry:
    words = " ".join(dict.fromkeys(use.words for use in deciding))
    return replace(entry, label=label, p=_choose_p(deciding, label), evidence=words)


def _choose_p(uses: Sequence[ToolUse], label: Label) -> float | None:
    """Return the highest known p on the label's side, or None."""
    ps = [use.p for use in uses if use.p is not None]
    if label == "hallucinated":
        ps = [p for p in ps if p >= 0.5]
    elif label == "supported":
        ps = [p for p in ps if p < 0.5]
    return max(ps, default=None)


def restrict_view(view: CaseView, indices: Sequence[int], uses: Sequence[ToolUse] = ()) -> CaseView:
    """Return the view with these statements alone, without the parts that tools have computed.

    The rest of the response is blanked, so that offsets stay the same, and the instruction lists
    the statements in their self-contained form.
    """
    chosen = []
    for statement in (s for s in view.statements if s.index in indices):
        rest = find_unchecked_text(
            statement, [use for use in uses if use.statement == statement.index]
        ).text
        is_cut = is_blanked_copy(rest, statement.text)
        chosen.append(blank_same_words(rest, statement) if is_cut else statement)
    response = "".join(char if char.isspace() else " " for char in view.case.response)
    for statement in chosen:
        response = f"{response[: statement.start]}{statement.text}{response[statement.end :]}"
    instruction = view.case.instruction or Project.instruction
    listed = "\n".join(f"- {' '.join(statement.rewrite.split())}" for statement in chosen)
    instruction = f"{instruction}\n{CONTESTED_HEADING}\n{listed}"
    case = replace(view.case, response=response, instruction=instruction)
    ids_by_statement = {s.index: view.evidence.by_statement.get(s.index, ()) for s in chosen}
    ids = {i for statement_ids in ids_by_statement.values() for i in statement_ids}
    passages = {i: p for i, p in view.evidence.passages.items() if i in ids}
    evidence = Evidence(passages, ids_by_statement)
    return replace(view, case=case, statements=tuple(chosen), evidence=evidence)


def close_contested(
    memory: Mapping[int, MemoryEntry], found: Mapping[int, tuple[Label, Judgement]]
) -> Iterator[MemoryEntry]:
    """Yield the memory entry of each contested statement after the judge's decision on it.

    The judge's p is the statement's if the decision was on it alone; it stays on its label's side.
    A label that a tool read where the judge cannot look, for instance on the web, stands.
    """
    for index, (label, judgement) in sorted(found.items()):
        entry = memory[index]
        if judgement.cause == "no_evidence" and entry.label != "unclear":
            yield replace(entry, is_contested=False)
            continue
        is_alone = sum(other is judgement for _, other in found.values()) == 1
        p = judgement.p if is_alone else entry.p
        if p is not None and label != "unclear":
            p = max(p, MIN_HALLUCINATED_P) if label == "hallucinated" else min(p, MAX_SUPPORTED_P)
        # A judge without prose writes for the classifier; the earlier evidence is for people.
        reason = judgement.prose or (entry.evidence if label == entry.label else judgement.text)
        is_decision = label != entry.label and not judgement.cause
        words = f"The judge decides: {reason}" if is_decision else reason
        yield replace(entry, label=label, p=p, evidence=words or entry.evidence, is_contested=False)


def split_labels(judgement: Judgement, indices: Sequence[int]) -> dict[int, Label] | None:
    """Return each statement's label if the judgement distinguishes them, else None."""
    if len(judgement.statement_labels) == len(indices):
        return dict(zip(indices, judgement.statement_labels, strict=True))
    if len(indices) == 1 or judgement.label != "hallucinated":
        return dict.fromkeys(indices, judgement.label)
    return None


def accumulate_statements(pieces: Iterable[str], language: str) -> Iterator[str]:
    """Yield the text up to its last complete statement, each time that another is complete.

    A statement is complete when the next one begins, which its first whole word shows. The last
    text is everything, unchanged.
    """
    text, complete = "", 0
    for piece in pieces:
        text += piece
        whole_words = UNFINISHED_WORD.sub("", text[complete:])
        spans = list(split_outside_code(whole_words, language))
        if len(spans) > 1:  # complete statements stay as they are
            complete += spans[-2][1]
            yield text[:complete]
    yield text


def decode_stream(
    read: Callable[[], bytes], most: int, say: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Decode pieces of UTF-8 text as their bytes arrive.

    If the input ends within a character, that one is left out and `say` is called. Raises
    InputError: there are more than `most` bytes, or they are not UTF-8.
    """
    decoder = codecs.getincrementaldecoder("utf-8")()
    count, data = 0, b"."
    while data:
        data = read()
        count += len(data)
        if count > most:
            raise InputError(f"Expected at most {most:,} bytes to check, found more; send less.")
        try:
            text = decoder.decode(data)
        except UnicodeDecodeError as error:
            raise InputError(
                "Expected UTF-8 text on standard input, found another encoding; send it as UTF-8."
            ) from error
        if text:
            yield text
    lost = len(decoder.getstate()[0])
    if lost:
        say(CUT_OFF_MESSAGE.format(lost=lost))


def limit_characters(pieces: Iterable[str], most: int) -> Iterator[str]:
    """Pass on pieces of up to `most` characters in total, then raise InputError."""
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > most:
            raise InputError(
                f"Expected at most {most:,} characters to check, found more; check a part of it, "
                "or raise the limit on Settings."
            )
        yield piece


def find_refuting_uses(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the uses that show the whole response to be wrong."""
    return tuple(use for use in _filter_uses_of_whole(uses) if use.label == "hallucinated")


def find_confirming_uses(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """Return the uses that show it to be right; mere conditions come last."""
    supporting = [use for use in _filter_uses_of_whole(uses) if use.label == "supported"]
    return tuple(sorted(supporting, key=lambda use: use.tool in CONDITION_TOOLS))


def settle_refuted(
    statements: Sequence[Statement], memory: Mapping[int, MemoryEntry], uses: Sequence[ToolUse]
) -> Iterator[MemoryEntry]:
    """Yield new entries of statements with words that a tool refuted in the whole response."""
    for refuted in find_refuting_uses(uses):
        start = refuted.start
        indices = [s.index for s in statements if start is not None and s.start <= start < s.end]
        entry = memory.get(indices[0]) if indices else None
        if entry is not None and entry.label != "hallucinated":
            tools = (*entry.tools, refuted.tool)
            updated = replace(entry, label="hallucinated", p=refuted.p, evidence=refuted.words)
            yield replace(updated, tools=tools, is_contested=False, is_checkable=True)


def _filter_uses_of_whole(uses: Sequence[ToolUse]) -> Iterator[ToolUse]:
    return (use for use in uses if use.statement is None and use.outcome == "found")


def group_into_waves(
    statements: Sequence[Statement], language: str
) -> tuple[tuple[Statement, ...], ...]:
    """Group the statements: those that stand alone, then those that conclude from others.

    Within a wave none sees the results of another: a prompt, and its place in the ledger, is the
    same however long each check takes.
    """
    dependent = [s for s in statements[1:] if is_conclusion(s.text, language)]
    independent = [s for s in statements if s not in dependent]
    return tuple(tuple(wave) for wave in (independent, dependent) if wave)


class ShownPassages:
    """The passages that tools were shown for one statement, in order."""

    def __init__(self, known: Sequence[Passage]) -> None:
        self.known = {passage.id: passage for passage in known}
        self.shown: dict[str, Passage] = {}
        self._lock = threading.Lock()

    def add(self, passages: Sequence[Passage]) -> None:
        """Record that these passages were shown."""
        with self._lock:
            self.shown |= {passage.id: passage for passage in passages}


def check_statement(
    play: RunContext,
    view: CaseView,
    statement: Statement | None,
    bench_for: Callable[[Statement | None, ShownPassages], ToolContext],
    *,
    past: Sequence[ToolUse] = (),
    memory: Sequence[MemoryEntry] = (),
) -> Iterator[Event]:
    """Check one statement and yield its events; `past` are uses of an interrupted run.

    The response as a whole (None) gets no memory entry: its uses stand for themselves.
    """
    uses, picker = list(past), play.roster.tool_picker
    spare = play.roster.spare.tool_picker if play.roster.spare else None
    if spare and any(use.agent == spare.name for use in past):
        picker = spare  # it replaced the picker before
    index = statement.index if statement else None
    reading = ShownPassages(view.evidence.of(index) if index is not None else ())
    tool_context = bench_for(statement, reading)
    end = ToolStep(TOO_MANY_STEPS_MESSAGE.format(most=MAX_STEPS_PER_STATEMENT))
    refusals = sum(use.words == REPEATED_CALL_MESSAGE for use in uses)
    while len(uses) < MAX_STEPS_PER_STATEMENT and refusals < MAX_REPEATED_CALLS:
        seen = AuditView(view, statement, tuple(uses), tuple(memory))
        step, emitted = _pick_next_step(play, picker, seen)
        yield from emitted
        if spare and any(event.kind == "problem_met" for event in emitted):
            picker = spare
        if not step.tool:
            end = step
            break
        tool_use = _refuse_repetition(step, uses) or _call_tool(
            view.case, step, statement, tool_context
        )
        tool_use = replace(tool_use, statement=index, agent=picker.name, thought=step.thought)
        yield from drain_calls(play)
        uses.append(tool_use)
        refusals += tool_use.words == REPEATED_CALL_MESSAGE
        yield ToolCalled(play.now(), tool_use)
    if statement is not None:
        if not reading.shown.keys() <= reading.known.keys():
            everything = tuple((reading.known | reading.shown).values())
            yield PassagesFound(play.now(), statement.index, everything)
        read = tuple(reading.shown or reading.known)
        yield MemoryUpdated(play.now(), conclude_statement(statement.index, uses, end, read))


def _pick_next_step(
    play: RunContext, picker: ToolPicker, seen: AuditView
) -> tuple[ToolStep, list[Event]]:
    """Return the picker's next step, or its spare's after an unusable reply, with the events."""
    step, events = play_role(
        play,
        picker,
        "auditing",
        lambda: picker.next_step(seen, play.stop),
        lambda spare: spare.tool_picker.next_step(seen, play.stop),
        role="Tool picker",
    )
    problem = next((event.message for event in events if event.kind == "problem_met"), "")
    return step or ToolStep(problem), events


def _call_tool(
    case: Case, step: ToolStep, statement: Statement | None, tool_context: ToolContext
) -> ToolUse:
    """Call the step's tool; an unknown tool or an invalid input gives a failed use."""
    tool = load_tools().get(step.tool)
    try:
        if tool is None:
            known = ", ".join(load_tools())
            raise InputError(f"Expected one of the tools {known}, found “{step.tool}”.")
        result = locate_tool_finding(
            use_tool(tool, read_input(tool, step.given), tool_context), statement, case, tool.about
        )
        return drop_unrelated_label(result, statement, tool.about)
    except InputError as error:
        words = str(error)
        return ToolUse(step.tool, None, step.given or "{}", "{}", "failed", "unclear", words, 0.0)


def _refuse_repetition(step: ToolStep, uses: Sequence[ToolUse]) -> ToolUse | None:
    """Return the reply to a call that was made before; None for a new call."""
    tool_input = step.given or "{}"
    if tool := load_tools().get(step.tool):
        with suppress(InputError):
            tool_input = msgspec.json.encode(read_input(tool, tool_input)).decode()
    if all((earlier.tool, earlier.given) != (step.tool, tool_input) for earlier in uses):
        return None
    return ToolUse(
        step.tool, None, tool_input, "{}", "nothing", "unclear", REPEATED_CALL_MESSAGE, 0.0
    )
