"""What a check will take before it starts: seconds, and the models' calls, tokens and money.

The built-in agents' part goes by the lengths of response and files, at the pace of the newest runs
here by the same protocol. The models' part sums up the calls of each role; their pace is a guess.
“Likely” supposes a debate of three turns (none where a check is adaptive) and one wrong place, in
an audit three steps a statement and nothing that stays contested; “at most” that every turn and
step is taken, every statement is contested, every reply is as long as its seat allows and every one
of a certain form is asked for twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from statistics import median

from core.debate.protocols import protocol_of, seated_for, then_of
from core.debate.state import DebateProtocol
from core.documents.segmentation import language_of
from core.llm.keys import Keys
from core.llm.limits import dollars_words, estimated_tokens, price_of, window_of
from core.llm.prompting import prompt_language, shipped
from core.schema.events import AUDIT, MOST_STEPS
from core.schema.records import LibraryEntry, Plan
from core.schema.rosters import AS_IS, DebateOptions, RosterConfig, Seat, judge_prompt, turn_tokens
from core.store import Store

AT_ONCE = 8
STATEMENT_CHARACTERS = 120
PASSAGE_TOKENS, LONG_PASSAGE_TOKENS = 70, 200
PICTURE_TOKENS, LARGE_PICTURE_TOKENS = 1_100, 1_600
FRAME_TOKENS = 150
QUERY_TOKENS, BATCH_TOKENS = 40, 8_000  # of one statement; of passages that are embedded together
LIKELY_TURNS = 3
LIKELY_SAID = 100  # tokens of a turn
NAMED_TOKENS = 40  # who spoke about whom, and the marks of the quotes
MARK_TOKENS = 30
DENSE = ("zh", "ja", "ko", "th")
LIKELY_STEPS = 3  # of a statement: search, compare, conclude
STEP_TOKENS = 120  # what a step brought, or what is held of a statement, in a prompt


@dataclass(frozen=True)
class Size:
    """What is to be checked; lengths in characters. `sources` is what is to be embedded anew.

    `examples` are the tokens of corrected cases that the span extractor is shown at most.
    """

    response: int
    question: int = 0
    images: int = 0
    max_turns: int = 5
    passages: int = 5
    sources: int = 0
    language: str = "en"
    examples: int = 0
    protocol: str = "ceda"
    options: DebateOptions = AS_IS

    @property
    def plan(self) -> Plan:
        """What of it a protocol goes by."""
        return Plan(self.protocol, max_turns=self.max_turns, options=self.options)


@dataclass(frozen=True)
class CallStep:
    """Equal calls of one seat; `prompt` and `reply` are tokens of each."""

    seat: Seat
    calls: int
    prompt: int
    reply: int
    at_once: int = 1


def steps_of(sheet: RosterConfig, size: Size, is_most: bool) -> Iterator[CallStep]:
    """Every role's calls in the order of a run."""
    about, sheet = _about(size, is_most), seated_for(size.plan, sheet)
    yield from _reading(sheet, about)
    if size.protocol == AUDIT:
        yield from _auditing(sheet, about)
    if size.protocol != AUDIT or is_most:
        yield from _debating(sheet, about)
    yield from _marking(sheet, about)


def _reading(sheet: RosterConfig, about: _About) -> Iterator[CallStep]:
    size = about.size
    queries = about.statements * (QUERY_TOKENS + about.question)
    yield CallStep(sheet.retriever, 1, queries, 0)  # all go together
    if about.sources:
        batches = math.ceil(about.sources / BATCH_TOKENS)
        yield CallStep(sheet.retriever, batches, math.ceil(about.sources / batches), 0)
    yield about.step(sheet.segmenter, "segment", 2 * about.response, calls=about.again)
    picture = LARGE_PICTURE_TOKENS if about.is_most else PICTURE_TOKENS
    many = {"calls": size.images, "at_once": AT_ONCE}
    yield about.step(sheet.image_reader, "image_question", 150, **many)
    yield about.step(sheet.image_reader, "image_reading", 150, beside=picture + 150, **many)


def _auditing(sheet: RosterConfig, about: _About) -> Iterator[CallStep]:
    """The picker's steps; what its tools ask, at most twice each; reflection."""
    picker, count, is_most = sheet.tool_picker, about.statements, about.is_most
    read = about.evidence // count + STEP_TOKENS
    most = MOST_STEPS * (count + 1) * about.again
    known = read + (0 if picker.is_built_in else _toolbox_tokens())
    picks, asked = (most, 2 * most) if is_most else (LIKELY_STEPS * count, count)
    yield about.step(picker, "pick_tool", 150, beside=known, calls=picks, at_once=AT_ONCE)
    yield about.step(picker, "match", 120, beside=read, calls=asked, at_once=AT_ONCE)
    times = 2 * about.again if is_most else 1
    yield about.step(sheet.reflector, "reflect", 100, beside=STEP_TOKENS * count, calls=times)


@cache
def _toolbox_tokens() -> int:
    """Of every tool with its two examples, as a picker reads them."""
    from core.agents.llm_audit import told_tools  # which loads all tools: 0.15 s

    return sum(estimated_tokens(text) for text in told_tools())


def _debating(sheet: RosterConfig, about: _About) -> Iterator[CallStep]:
    """What is asked before a label; whether an adaptive check goes on is likely not."""
    plan, options = about.size.plan, about.size.options
    then = then_of(plan)
    if then or plan.protocol == "single":  # a single judge's samples, all at once
        samples, style = max(1, options.samples), options.style or "plain"
        many = {"calls": about.again * samples, "at_once": samples, "beside": about.evidence}
        reply = 350 if style == "thought" else 100
        yield about.step(sheet.judge, judge_prompt(style), reply, **many)
    if plan.protocol != "single" and (about.is_most or then is None):
        yield from _argued(sheet, about, then or protocol_of(plan), plan)


def _argued(
    sheet: RosterConfig, about: _About, protocol: DebateProtocol, plan: Plan
) -> Iterator[CallStep]:
    """The debate; an audit's judge is asked of each contested statement too, if need be."""
    is_most, again = about.is_most, about.again
    speaking = sheet.debaters[: protocol.seats]
    names = tuple(_with_room(debater.seat, protocol, about) for debater in speaking)
    asked = protocol.calls(len(names), plan)
    written = asked.context + asked.summaries + asked.revisions
    whole = 60 * about.statements + 200
    yield about.step(
        sheet.context_writer, "context", whole, beside=about.evidence, calls=again * written
    )
    ends_early = protocol.name == "ceda" and not is_most
    turns = min(asked.turns, LIKELY_TURNS) if ends_early else asked.turns
    at_once = max(1, math.ceil(asked.turns / max(1, asked.chain - written - 1)))
    said = max((seat.max_tokens for seat in names), default=0) if is_most else LIKELY_SAID
    heard = math.ceil(asked.heard * (said + NAMED_TOKENS) / max(1, asked.turns))
    share = (about.evidence if is_most else about.evidence // 2) + heard + 100
    manner = next(iter(protocol.manners), "debate")
    for place, seat in enumerate(names):
        taken = len(range(place, turns, len(names)))
        yield about.step(seat, manner, LIKELY_SAID, beside=share, calls=taken, at_once=at_once)
    judged = again * (asked.judgements + (about.statements if plan.protocol == AUDIT else 0))
    shown = about.evidence + turns * said + whole
    prompt = judge_prompt(next(iter(protocol.judging), "debate"))
    yield about.step(sheet.judge, prompt, 200, beside=shown, calls=judged, at_once=asked.judgements)


def _with_room(seat: Seat, protocol: DebateProtocol, about: _About) -> Seat:
    """The debater's seat with the tokens of the longest turn that the protocol asks for."""
    rooms = [turn_tokens(m, seat.max_tokens, about.response) for m in protocol.manners]
    return replace(seat, max_tokens=max(rooms, default=seat.max_tokens))


def _marking(sheet: RosterConfig, about: _About) -> Iterator[CallStep]:
    """Words are marked by extractor and adjudicator, or by a panel: all vote on each one's."""
    again, evidence = about.again, about.evidence
    extra = evidence + 200 + about.size.examples
    if len(panel := sheet.span_panel) > 1:
        shown = extra if sheet.panel_sees_evidence else extra - evidence
        votes = again * (len(panel) - 1)
        for seat in panel:
            yield about.step(seat, "panel_spans", 120, beside=shown, calls=again, at_once=AT_ONCE)
            yield about.step(seat, "panel_votes", 100, beside=shown, calls=votes, at_once=AT_ONCE)
        return
    extractor, adjudicator = sheet.span_extractor, sheet.span_adjudicator
    yield about.step(extractor, "spans", 120, beside=extra, calls=again)
    votes = again * about.places(extractor) if about.is_most else 1
    yield about.step(
        adjudicator, "span_vote", 100, beside=evidence + 250, calls=votes, at_once=AT_ONCE
    )


@dataclass(frozen=True)
class _About:
    """A size in tokens, likely or at most; `again` counts askings for a reply of a certain form."""

    size: Size
    is_most: bool
    again: int
    statements: int
    response: int
    question: int
    sources: int
    evidence: int

    def places(self, extractor: Seat) -> int:
        fitting = max(1, extractor.max_tokens // MARK_TOKENS)
        by_length = 2 * self.statements
        return by_length if extractor.is_built_in else min(by_length, fitting)

    def step(
        self,
        seat: Seat,
        prompt: str,
        reply: int,
        *,
        beside: int = 0,
        calls: int = 1,
        at_once: int = 1,
    ) -> CallStep:
        """Calls with that prompt around the claim and what is `beside` it."""
        if seat.is_built_in:
            return CallStep(seat, 0, 0, 0)
        text = shipped(prompt, prompt_language(self.size.language)).text
        claim = self.response + self.question + FRAME_TOKENS
        room = max(1, window_of(seat) - seat.max_tokens)
        whole = min(estimated_tokens(text) + claim + beside, room)
        length = seat.max_tokens if self.is_most else min(reply, seat.max_tokens)
        return CallStep(seat, calls, whole, length, at_once)


def _about(size: Size, is_most: bool) -> _About:
    is_dense = size.language.split("-")[0] in DENSE
    per = (1.5 if is_dense else 0.5) if is_most else (0.8 if is_dense else 0.25)
    response, question, sources = (
        math.ceil(count * per) for count in (size.response, size.question, size.sources)
    )
    statements = max(1, math.ceil(size.response / STATEMENT_CHARACTERS))
    each, image = (LONG_PASSAGE_TOKENS, 400) if is_most else (PASSAGE_TOKENS, 150)
    evidence = statements * size.passages * each + size.images * image
    again = 2 if is_most else 1
    return _About(size, is_most, again, statements, response, question, sources, evidence)


BASE_SECONDS = 0.2
PER_CHARACTER_SECONDS = 1.1 / 1000
PER_MEGABYTE_SECONDS = 6.0
PER_IMAGE_SECONDS = 4.0

FIRST_WORD_SECONDS = 1.0
TOKENS_PER_SECOND = 40.0


@dataclass(frozen=True)
class Use:
    """Calls to models, their tokens, and seconds; `cost` is that of priced models, US dollars.

    `unpriced_tokens` are those of models with no known price, which count against the token caps.
    """

    calls: int = 0
    tokens: int = 0
    unpriced_tokens: int = 0
    cost: float = 0.0
    seconds: float = 0.0


@dataclass(frozen=True)
class Expected:
    """What a check will use of language models; `unpriced` names those of no known price."""

    likely: Use
    most: Use
    unpriced: tuple[str, ...]

    @property
    def cost(self) -> float | None:
        """The likely cost in US dollars, None where a part of it is not known."""
        return None if self.unpriced else self.likely.cost

    @property
    def words(self) -> str:
        """The estimate in one line for the page."""
        likely, most = self.likely, self.most
        if not most.calls:
            return "no cost"
        counts = (
            f"about {likely.calls} calls, {_rounded(likely.tokens):,} tokens "
            f"(at most {most.calls} and {_rounded(most.tokens):,})"
        )
        known = f"about {dollars_words(likely.cost)}, at most {dollars_words(most.cost)}"
        if self.unpriced:
            rest = f", besides {known}" if most.cost else ""
            return f"cost not known for {', '.join(self.unpriced)}{rest} · {counts}"
        return f"{known if most.cost else 'nothing to pay'} · {counts}"


def sizes_of(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> list[Size]:
    """How large each check is: of each (response, question) over the same sources.

    What is embedded anew counts with the first, which finds it so; a source that is not read yet
    counts as soon as it is.
    """
    size = Size(
        0,
        images=sum(entry.kind == "image" for entry in entries),
        max_turns=plan.max_turns,
        passages=plan.passages,
        protocol=plan.protocol,
        options=plan.options,
        language=language_of("\n".join(f"{question} {text}" for text, question in asked)),
    )
    sizes = [replace(size, response=len(text), question=len(question)) for text, question in asked]
    sizes[0] = replace(sizes[0], sources=_to_embed(store, entries, plan))
    return sizes


def _to_embed(store: Store, entries: Sequence[LibraryEntry], plan: Plan) -> int:
    """The characters that the roster's embedding model has not seen yet."""
    if plan.sheet is None or plan.sheet.retriever.is_built_in:
        return 0
    from core.llm.encoder import LlmEmbedder

    model = LlmEmbedder(plan.sheet.retriever, Keys({})).id
    new = (entry for entry in entries if not store.readings.has_index(entry.id, model))
    return sum(entry.characters for entry in new)


def expected_use(sheet: RosterConfig, size: Size) -> Expected:
    """What a check with that roster will use of language models; nothing where it has none."""
    steps = ([s for s in steps_of(sheet, size, is_most) if s.calls] for is_most in (False, True))
    likely, most = ([s for s in own if not s.seat.is_built_in] for own in steps)
    unpriced = dict.fromkeys(step.seat.model for step in most if price_of(step.seat) is None)
    return Expected(_sum(likely), _sum(most), tuple(unpriced))


def _sum(steps: Iterable[CallStep]) -> Use:
    calls = tokens = unpriced = 0
    cost = seconds = 0.0
    for step in steps:
        calls += step.calls
        used = step.calls * (step.prompt + step.reply)
        tokens += used
        price = price_of(step.seat)
        if price is None:
            unpriced += used
        else:
            cost += step.calls * price.of(step.prompt, step.reply)
        waves = math.ceil(step.calls / step.at_once)
        seconds += waves * (FIRST_WORD_SECONDS + step.reply / TOKENS_PER_SECOND)
    return Use(calls, tokens, unpriced, cost, seconds)


def _rounded(tokens: int) -> int:
    """Two figures are all that an estimate knows."""
    unit = int(10 ** max(0, len(str(tokens)) - 2))
    return math.ceil(tokens / unit) * unit


def expected_seconds(
    store: Store,
    entries: Sequence[LibraryEntry],
    characters: int,
    roster: str = "builtin",
    protocol: str = "ceda",
) -> float:
    """Seconds for a check of a response of that length over these sources.

    Sources that are read already cost nothing more. Only earlier checks by the same protocol tell
    the pace: an audit takes longer the more of it is contested, or is code to be run.
    """
    recent = store.runs.seconds_of_recent(roster, protocol)
    pace = median(seconds / _usual(length) for seconds, length in recent) if recent else 1.0
    reading = sum(
        PER_IMAGE_SECONDS if entry.kind == "image" else PER_MEGABYTE_SECONDS * entry.size / 1e6
        for entry in entries
        if entry.status in ("waiting", "reading")
    )
    return _usual(characters) * pace + reading


def _usual(characters: int) -> float:
    return BASE_SECONDS + PER_CHARACTER_SECONDS * characters
