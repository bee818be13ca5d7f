"""The parts of an audit: a statement checked tool by tool, what is remembered, how it closes.

Source: HaluAgent 2.3 (tool selection, verification, the triple of sentence, label and evidence),
2.4.1 (thought, action, observation); CEDA 6 (a response checked while it is being written). Beyond
the paper, a statement is contested where the reading of evidence is not one: it goes to debate.
"""

from __future__ import annotations

import codecs
import itertools
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import msgspec
from rapidfuzz import fuzz

from core.agents.agent_runner import RunContext, calls_of, part_played
from core.baseline.audit_agents import places
from core.baseline.tool_picker import concludes, rest_of
from core.runtime.errors import InputError
from core.schema.events import (
    MOST_STEPS,
    Event,
    MemoryUpdated,
    PassagesFound,
    Remembered,
    ToolCalled,
    ToolUse,
)
from core.schema.records import (
    Case,
    Cause,
    Judgement,
    Label,
    MeasuredShare,
    Passage,
    Point,
    Project,
    ReaderView,
    Statement,
)
from core.schema.roles import AuditView, CaseView, Evidence, Step, ToolPicker
from core.tools.registry import Bench, read_input, toolbox, use

ALIKE_FROM = 80  # of 100: a model may drop or mend a word of the statement
LONGER_BY = 1.5  # times the statement; what is longer says something else as well
OTHER_WORDS = "It was asked about other words than the statement's, so nothing follows: "


def about_statement(use: ToolUse, statement: Statement | None, about: str = "text") -> ToolUse:
    """The use; without its label where the tool was given another text than the statement."""
    text = _text(use.given, about)
    if statement is None or use.label == "unclear" or not text:
        return use
    if is_cut_from(text, statement.text):
        return use
    for own in (statement.text, statement.rewrite):
        is_short = len(text) <= LONGER_BY * len(own)
        if is_short and (text in own or fuzz.partial_ratio(text, own) >= ALIKE_FROM):
            return use
    unsaid = replace(use, outcome="nothing", label="unclear", p=None, start=None, end=None)
    return replace(unsaid, words=f"{OTHER_WORDS}{use.words}")


def placed(use: ToolUse, statement: Statement | None, case: Case, about: str = "text") -> ToolUse:
    """The use with `[start, end)` in `Case.response`; without a place where it cannot be told.

    The field `about` of its input may hold the statement as it stands, its self-contained rewrite,
    or the whole response: the words are looked for where they can stand, and taken only where that
    is one place.
    """
    if use.start is None or use.end is None:
        return use
    low, high = (statement.start, statement.end) if statement else (0, len(case.response))
    text = _text(use.given, about)
    if 0 <= use.start < use.end <= len(text):
        if case.response[low:high] == text or is_cut_from(text, case.response[low:high]):
            return replace(use, start=low + use.start, end=low + use.end)
        words = text[use.start : use.end]
        if case.response.count(words, low, high) == 1:
            start = case.response.index(words, low, high)
            return replace(use, start=start, end=start + len(words))
    return replace(use, start=None, end=None)


def is_cut_from(text: str, whole: str) -> bool:
    """True for the whole with blanks for some of its characters: places stay what they are."""
    if len(text) != len(whole) or text == whole or not text.strip():
        return False
    return all(one in (own, " ") for one, own in zip(text, whole, strict=True))


def cut_alike(text: str, statement: Statement) -> Statement:
    """The statement with the same words blank as in `text`, which is cut from it.

    In its self-contained form they are blank where each stands once; else that is the text.
    """
    rewrite, whole = statement.rewrite, statement.text
    gone = [one != own or own == " " for one, own in zip(text, whole, strict=True)]
    for is_gone, run in itertools.groupby(zip(gone, whole, strict=True), key=lambda pair: pair[0]):
        words = "".join(own for _, own in run)
        if not is_gone or not words.strip():
            continue
        if rewrite.count(words) != 1:
            return replace(statement, text=text, rewrite=text)
        rewrite = rewrite.replace(words, " " * len(words))
    return replace(statement, text=text, rewrite=rewrite)


def _text(given: str, about: str) -> str:
    try:
        fields = msgspec.json.decode(given)
    except msgspec.MsgspecError:
        return ""
    text = fields.get(about) if isinstance(fields, dict) else None
    return text if isinstance(text, str) else ""


class ToolView(msgspec.Struct, frozen=True):
    """What a reading tool told beside its label; points lie in `Case.response`.

    Made of `ToolUse.gave`, in which an imported trace may hold anything.
    """

    readers: tuple[ReaderView, ...] = ()
    points: tuple[Point, ...] = ()
    cause: Cause | None = None
    measured: MeasuredShare | None = None


DECODER = msgspec.json.Decoder(ToolView)


def told_by(use: ToolUse) -> ToolView:
    """What the tool told of that shape; nothing where it is of another."""
    try:
        return DECODER.decode(use.gave.encode())
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return ToolView()


# Tools that read what others wrote; all others work something out, and are not outvoted by them.
SEARCH = "search"  # brings what can be read, and says nothing of the statement itself
READING = frozenset({SEARCH, "match", "translate"})
OPEN_MIDDLE = (0.35, 0.65)
NOTHING_SAID = "No tool says anything about it."
NOT_CHECKABLE = "It says nothing that could be true or false."


def concluded(
    statement: int, uses: Sequence[ToolUse], end: Step, passages: Sequence[str] = ()
) -> Remembered:
    """What is held of the statement once its picker has ended with the step `end`.

    The picker's own label counts where it gives one: it may overrule what a reading tool said
    (HaluAgent, figure 4), while against a tool that works something out it only contests.
    """
    words = end.evidence or _failures(uses) or NOTHING_SAID
    tools = tuple(dict.fromkeys(use.tool for use in uses))
    entry = Remembered(statement, "unclear", None, words, tools, tuple(passages))
    if not end.is_checkable:
        words = end.evidence or end.thought or NOT_CHECKABLE
        return replace(entry, evidence=words, is_checkable=False)
    said = [use for use in uses if use.outcome == "found" and use.label != "unclear"]
    label = end.label
    if label is None:
        return _by_tools(entry, said, uses)
    alike = [use for use in said if use.label == label]
    against = [use for use in said if use.label != label and use.tool not in READING]
    if label == "unclear":  # a right sum does not make right what stands beside it
        against = [use for use in against if use.label == "hallucinated"]
    words = end.evidence or (alike[-1].words if alike else end.thought) or entry.evidence
    entry = replace(entry, label=label, p=_p_of(alike, label), evidence=words)
    return replace(entry, is_contested=bool(against))


def _by_tools(entry: Remembered, said: Sequence[ToolUse], uses: Sequence[ToolUse]) -> Remembered:
    """What was worked out weighs more than what was read; the last reading counts."""
    worked = [use for use in said if use.tool not in READING]
    wrong = [use for use in worked if use.label == "hallucinated"]
    shown = [use for use in uses if use.tool in READING and use.outcome == "found"]
    read = [use for use in shown if use.tool != SEARCH][-1:] or shown[-1:]
    if wrong:
        return _as_told(entry, wrong, "hallucinated")
    decided = [use for use in read if use.label != "unclear"]
    if worked and not any(use.label == "hallucinated" for use in decided):
        return _as_told(entry, [*worked, *decided], "supported")
    if worked:
        return replace(_as_told(entry, decided, "hallucinated"), is_contested=True)
    is_open = any(_is_open(use) for use in read)
    if decided:
        return replace(_as_told(entry, decided, decided[0].label), is_contested=is_open)
    words = " ".join(filter(None, [*(use.words for use in read), _failures(uses)]))
    words = words or entry.evidence
    return replace(entry, p=_p_of(read, "unclear"), evidence=words, is_contested=is_open)


def _is_open(use: ToolUse) -> bool:
    """True where its readers contradict each other, or p is near one half."""
    if {"supported", "hallucinated"} <= {view.stance for view in told_by(use).readers}:
        return True
    low, high = OPEN_MIDDLE
    return use.label != "unclear" and use.p is not None and low < use.p < high


def _failures(uses: Sequence[ToolUse]) -> str:
    told = (f"The tool {use.tool} failed: {use.words}" for use in uses if use.outcome == "failed")
    return " ".join(dict.fromkeys(told))


def _as_told(entry: Remembered, deciding: Sequence[ToolUse], label: Label) -> Remembered:
    words = " ".join(dict.fromkeys(use.words for use in deciding))
    return replace(entry, label=label, p=_p_of(deciding, label), evidence=words)


def _p_of(uses: Sequence[ToolUse], label: Label) -> float | None:
    """The most doubtful of what is known; a p on the other side of the label is no p of it."""
    known = [use.p for use in uses if use.p is not None]
    if label == "hallucinated":
        known = [p for p in known if p >= 0.5]
    elif label == "supported":
        known = [p for p in known if p < 0.5]
    return max(known, default=None)


JUST_RIGHT, JUST_WRONG = 0.49, 0.51
IN_QUESTION = "In question are only these statements of a longer response:"


def cut_down(view: CaseView, indices: Sequence[int], uses: Sequence[ToolUse] = ()) -> CaseView:
    """The view with these statements alone, less what tools have worked out of them.

    All else of the response is blank, so that places stay what they are, and the instruction names
    the statements in their self-contained form.
    """
    chosen = []
    for whole in (s for s in view.statements if s.index in indices):
        rest = rest_of(whole, [use for use in uses if use.statement == whole.index]).text
        chosen.append(cut_alike(rest, whole) if is_cut_from(rest, whole.text) else whole)
    response = "".join(char if char.isspace() else " " for char in view.case.response)
    for own in chosen:
        response = f"{response[: own.start]}{own.text}{response[own.end :]}"
    asked = view.case.instruction or Project.instruction
    listed = "\n".join(f"- {' '.join(statement.rewrite.split())}" for statement in chosen)
    case = replace(view.case, response=response, instruction=f"{asked}\n{IN_QUESTION}\n{listed}")
    found = {s.index: view.evidence.by_statement.get(s.index, ()) for s in chosen}
    ids = {i for own_ids in found.values() for i in own_ids}
    passages = {i: p for i, p in view.evidence.passages.items() if i in ids}
    evidence = Evidence(passages, found)
    return replace(view, case=case, statements=tuple(chosen), evidence=evidence)


def closed(
    memory: Mapping[int, Remembered], found: Mapping[int, tuple[Label, Judgement]]
) -> Iterator[Remembered]:
    """What is held of each contested statement after the judge's word on it.

    The judge's p is the statement's where the word was on it alone; it stays on its label's side.
    What a tool read where the judge cannot look, on the web for one, stands as it was read.
    """
    for index, (label, judgement) in sorted(found.items()):
        entry = memory[index]
        if judgement.cause == "no_evidence" and entry.label != "unclear":
            yield replace(entry, is_contested=False)
            continue
        is_alone = sum(other is judgement for _, other in found.values()) == 1
        p = judgement.p if is_alone else entry.p
        if p is not None and label != "unclear":
            p = max(p, JUST_WRONG) if label == "hallucinated" else min(p, JUST_RIGHT)
        # A judge without prose writes for the classifier; what was read before says it to people.
        why = judgement.prose or (entry.evidence if label == entry.label else judgement.text)
        words = why if label == entry.label or judgement.cause else f"The judge decides: {why}"
        yield replace(entry, label=label, p=p, evidence=words or entry.evidence, is_contested=False)


def labels_told(judgement: Judgement, indices: Sequence[int]) -> dict[int, Label] | None:
    """The label of each statement where the judgement tells them apart; else None."""
    if len(judgement.statement_labels) == len(indices):
        return dict(zip(indices, judgement.statement_labels, strict=True))
    if len(indices) == 1 or judgement.label != "hallucinated":
        return dict.fromkeys(indices, judgement.label)
    return None


CUT_OFF = (
    "Standard input ended in the middle of a character: its last bytes ({lost}) are left out, and "
    "all that came before is checked."
)


def whole_so_far(pieces: Iterable[str], language: str) -> Iterator[str]:
    """The text up to the end of its last whole statement, each time that there is one more.

    A statement is whole when the next one begins. The last text is all that came, as it came.
    """
    text, whole = "", 0
    for piece in pieces:
        text += piece
        found = list(places(text[whole:], language))  # what is whole is not cut again
        if len(found) > 1:
            whole += found[-2][1]
            yield text[:whole]
    yield text


def decoded(
    read: Callable[[], bytes], most: int, say: Callable[[str], None] = lambda _: None
) -> Iterator[str]:
    """Pieces of UTF-8 text as their bytes come.

    Where it ends within a character, that one is left out, which `say` hears. Raises InputError:
    there are more than `most` bytes, or they are not UTF-8.
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
    if lost := len(decoder.getstate()[0]):
        say(CUT_OFF.format(lost=lost))


def no_longer(pieces: Iterable[str], most: int) -> Iterator[str]:
    """The pieces, of at most `most` characters; then InputError, after these were passed on."""
    count = 0
    for piece in pieces:
        count += len(piece)
        if count > most:
            raise InputError(
                f"Expected at most {most:,} characters to check, found more; check a part of it, "
                "or raise the limit on Settings."
            )
        yield piece


# A condition on the answer that is kept says nothing about what is written.
CONDITIONS = frozenset({"conditions"})


def refuting(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """The uses by which the whole response is wrong."""
    return tuple(use for use in _on_the_whole(uses) if use.label == "hallucinated")


def confirming(uses: Sequence[ToolUse]) -> tuple[ToolUse, ...]:
    """The uses by which it is right; what only keeps a condition comes last."""
    found = [use for use in _on_the_whole(uses) if use.label == "supported"]
    return tuple(sorted(found, key=lambda use: use.tool in CONDITIONS))


def settled(
    statements: Sequence[Statement], memory: Mapping[int, Remembered], uses: Sequence[ToolUse]
) -> Iterator[Remembered]:
    """The statements that hold words which a tool refuted in the whole response."""
    for refuted in refuting(uses):
        start = refuted.start
        holding = [s.index for s in statements if start is not None and s.start <= start < s.end]
        entry = memory.get(holding[0]) if holding else None
        if entry is not None and entry.label != "hallucinated":
            tools = (*entry.tools, refuted.tool)
            told = replace(entry, label="hallucinated", p=refuted.p, evidence=refuted.words)
            yield replace(told, tools=tools, is_contested=False, is_checkable=True)


def _on_the_whole(uses: Sequence[ToolUse]) -> Iterator[ToolUse]:
    return (use for use in uses if use.statement is None and use.outcome == "found")


def waves(statements: Sequence[Statement], language: str) -> tuple[tuple[Statement, ...], ...]:
    """Those that stand alone, then those that say that they follow from others.

    Within a wave none sees what is found of another: a prompt, and its place in the ledger, is
    the same however long each check takes.
    """
    later = [s for s in statements[1:] if concludes(s.text, language)]
    first = [s for s in statements if s not in later]
    return tuple(tuple(wave) for wave in (first, later) if wave)


MOST_REFUSALS = 2  # of a call that was made before
REPEATED = (
    "This very call was made before and is not made again: what came of it stands above. Call "
    "another tool, give another input, or conclude."
)
TOO_MANY = "The picker came to no conclusion in {most} steps; what the tools said decides."


class ShownPassages:
    """The passages that tools were shown for one statement, in the order of their showing."""

    def __init__(self, known: Sequence[Passage]) -> None:
        self.known = {passage.id: passage for passage in known}
        self.shown: dict[str, Passage] = {}
        self._lock = threading.Lock()

    def add(self, passages: Sequence[Passage]) -> None:
        """Remember that these passages were shown."""
        with self._lock:
            self.shown |= {passage.id: passage for passage in passages}


def checked(
    play: RunContext,
    view: CaseView,
    statement: Statement | None,
    bench_for: Callable[[Statement | None, ShownPassages], Bench],
    *,
    past: Sequence[ToolUse] = (),
    memory: Sequence[Remembered] = (),
) -> Iterator[Event]:
    """The events of one statement, to its conclusion; `past` are uses of an interrupted run.

    The response as a whole (None) is not remembered: its uses stand for themselves.
    """
    uses, picker = list(past), play.roster.tool_picker
    spare = play.roster.spare.tool_picker if play.roster.spare else None
    if spare and any(use.agent == spare.name for use in past):
        picker = spare  # which had to stand in before
    index = statement.index if statement else None
    reading = ShownPassages(view.evidence.of(index) if index is not None else ())
    bench = bench_for(statement, reading)
    end = Step(TOO_MANY.format(most=MOST_STEPS))
    refused = sum(use.words == REPEATED for use in uses)
    while len(uses) < MOST_STEPS and refused < MOST_REFUSALS:
        step, told = _next(play, picker, AuditView(view, statement, tuple(uses), tuple(memory)))
        yield from told
        if spare and any(event.kind == "problem_met" for event in told):
            picker = spare
        if not step.tool:
            end = step
            break
        made = _refused(step, uses) or _used(view.case, step, statement, bench)
        made = replace(made, statement=index, agent=picker.name, thought=step.thought)
        yield from calls_of(play)
        uses.append(made)
        refused += made.words == REPEATED
        yield ToolCalled(play.now(), made)
    if statement is not None:
        if not reading.shown.keys() <= reading.known.keys():
            everything = tuple((reading.known | reading.shown).values())
            yield PassagesFound(play.now(), statement.index, everything)
        read = tuple(reading.shown or reading.known)
        yield MemoryUpdated(play.now(), concluded(statement.index, uses, end, read))


def _next(play: RunContext, picker: ToolPicker, seen: AuditView) -> tuple[Step, list[Event]]:
    """The picker's next step, or its spare's for an unusable reply; with what there is to tell."""
    step, told = part_played(
        *(play, picker, "auditing"),
        lambda: picker.next_step(seen, play.stop),
        lambda spare: spare.tool_picker.next_step(seen, play.stop),
        role="Tool picker",
    )
    problem = next((event.message for event in told if event.kind == "problem_met"), "")
    return step or Step(problem), told


def _used(case: Case, step: Step, statement: Statement | None, bench: Bench) -> ToolUse:
    """The tool called as the step says; a tool or an input that there is not has failed."""
    tool = toolbox().get(step.tool)
    try:
        if tool is None:
            known = ", ".join(toolbox())
            raise InputError(f"Expected one of the tools {known}, found “{step.tool}”.")
        made = placed(use(tool, read_input(tool, step.given), bench), statement, case, tool.about)
        return about_statement(made, statement, tool.about)
    except InputError as error:
        words = str(error)
        return ToolUse(step.tool, None, step.given or "{}", "{}", "failed", "unclear", words, 0.0)


def _refused(step: Step, uses: Sequence[ToolUse]) -> ToolUse | None:
    """What a picker is told that makes the very call of an earlier step; None for a new call."""
    given = step.given or "{}"
    if tool := toolbox().get(step.tool):
        with suppress(InputError):
            given = msgspec.json.encode(read_input(tool, given)).decode()
    if all((one.tool, one.given) != (step.tool, given) for one in uses):
        return None
    return ToolUse(step.tool, None, given, "{}", "nothing", "unclear", REPEATED, 0.0)
