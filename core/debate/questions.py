"""Whether the windows of a check's models take its questions at all, found out before any is asked.

A question in its shortest form is the prompt around the response, one passage of the evidence and
the beginning of two turns, beside the longest answer: what grows in a debate is cut to the window
(`core/agents/transcript.py`), and these are not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from core.agents.prompt_call import too_small
from core.agents.transcript import LEAST_TOKENS
from core.debate.protocols import manners_of, protocol_of, seated_for, then_of
from core.errors import InputError
from core.llm.injection import Fence
from core.llm.limits import estimated_tokens, window_of, words_tokens
from core.llm.prompting import FIELDS, PromptBook, filled
from core.records import Case, Plan, Project
from core.seats import STYLES, RosterSheet, Seat, judge_prompt, turn_tokens

BARE = frozenset({"debater", "debaters", "about", "assigned", "language", "revisions"})
DEBATE, EVIDENCE = frozenset({"heard", "transcript"}), frozenset({"evidence", "passages"})
SPEAKERS = 2
TURN_TOKENS, PASSAGE_TOKENS = LEAST_TOKENS + 16, 70


@dataclass(frozen=True)
class _Question:
    """A prompt by its name, and who is asked by it."""

    role: str
    seat: Seat
    prompt: str


def require_room(plan: Plan, sheet: RosterSheet, case: Case, book: PromptBook) -> None:
    """Refuse a check in which a model could be asked its question not even in the shortest form.

    Raises:
        InputError: with the role, the model, its window, and what is needed.
    """
    fence = Fence.of_run("")
    for asked in _questions(plan, seated_for(plan, sheet), case):
        if asked.seat.is_built_in:
            continue
        needed = _shortest(asked.prompt, case, book, fence)
        if needed + asked.seat.max_tokens > window_of(asked.seat):
            raise InputError(f"Nothing was asked. {too_small(asked.role, asked.seat, needed)}")


def _shortest(name: str, case: Case, book: PromptBook, fence: Fence) -> int:
    """Tokens of the shortest question by that prompt."""
    known = {
        "role": case.role or Project.role,
        "instruction": case.instruction or Project.instruction,
        "claim": case.response,
        "response": case.response,
        "question": case.question,
    }
    fields = {
        field: "" if field in BARE else fence.around("field", known.get(field, ""))
        for field in FIELDS[name]
    }
    has_evidence = EVIDENCE.intersection(fields) and (case.documents or case.images)
    evidence = PASSAGE_TOKENS if has_evidence else 0
    debate = SPEAKERS * TURN_TOKENS if DEBATE.intersection(fields) else 0
    return words_tokens(filled(book.prompt(name, case.language), fields)) + evidence + debate


def _questions(plan: Plan, sheet: RosterSheet, case: Case) -> Iterator[_Question]:
    """What every such check asks where its debate goes its length; a picker's tools ask their own.

    Of an adaptive check these are also those of the debate that it may go on to.
    """
    yield _Question("segmenter", sheet.segmenter, "segment")
    if case.images:
        yield _Question("image reader", sheet.image_reader, "image_question")
    manners, judging = manners_of(plan)
    style = plan.options.style or STYLES[0]
    yield from _writing(plan, sheet)
    for name, seat in _speakers(plan, sheet):
        for manner in manners:
            mended = estimated_tokens(case.response) if manner == "revise" else 0
            longest = turn_tokens(manner, seat.max_tokens, mended)
            yield _Question(f"debater {name}", replace(seat, max_tokens=longest), manner)
    for asked in judging:
        if asked not in STYLES or asked == style:
            yield _Question("judge", sheet.judge, judge_prompt(asked))
    if len(sheet.span_panel) > 1:
        for number, seat in enumerate(sheet.span_panel, 1):
            yield _Question(f"span panel {number}", seat, "panel_spans")
            yield _Question(f"span panel {number}", seat, "panel_votes")
        return
    yield _Question("span extractor", sheet.span_extractor, "spans")
    yield _Question("span adjudicator", sheet.span_adjudicator, "span_vote")


def _writing(plan: Plan, sheet: RosterSheet) -> Iterator[_Question]:
    calls = (then_of(plan) or protocol_of(plan)).calls(len(sheet.debaters), plan)
    times = {"context": calls.context, "summary": calls.summaries, "corrected": calls.revisions}
    for prompt, asked in times.items():
        if asked:
            yield _Question("context writer", sheet.context_writer, prompt)


def _speakers(plan: Plan, sheet: RosterSheet) -> list[tuple[str, Seat]]:
    """Those who may speak."""
    protocol = then_of(plan) or protocol_of(plan)
    turns = protocol.calls(len(sheet.debaters), plan).turns
    speaking = sheet.debaters[: protocol.seats][:: -1 if plan.options.is_swapped else 1]
    return [(debater.name, debater.seat) for debater in speaking[:turns]]
