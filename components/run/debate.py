"""A run's debate with its quotes as buttons, its state (CEDA fig. 2), and its model calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.run.audit import has_audit
from components.run.evidence import WRITTEN_BY_MODEL, draw_place_button
from components.run.transcript import (
    MAX_UNFOLDED_TURNS,
    SIGNALS_HELP,
    DebateRound,
    collect_asides,
    render_quote,
    render_turn,
    select_asides,
    split_rounds,
    summarize_round,
    summarize_signals,
)
from components.run.verdict import describe_readers
from components.widgets.controls import draw_table
from components.widgets.html import Html, div, draw_html, element, join_html, paginate
from components.widgets.wording import (
    LABEL_WORDS,
    QUOTE_SIGNS,
    QUOTE_WORDS,
    escape_markdown,
    format_count,
    format_percent,
    format_protocol,
)
from core.baseline.wording import join_names, shorten
from core.debate.protocols import PROTOCOLS, get_follow_up_debate, get_plan_protocol, has_turns
from core.debate.signals import AgentAccuracy, DebateSignal, find_signals
from core.debate.state import DebateProtocol
from core.llm.limits import format_dollars
from core.schema.records import Case, EvidenceContext, Judgement, ModelCall, Plan, Run, Turn
from core.schema.rosters import DebateOptions
from core.schema.run_state import RunState, sum_costs

ORIGIN_WORDS = {
    "called": "asked",
    "resumed": "kept from before the pause",
    "reused": "from another run",
}
NOTHING_CONTESTED = "Nothing stayed contested, so nobody had to argue."
NO_DEBATE = "Nobody argued: the label was found without a debate."
STYLE_WORDS = {"thought": "thinking aloud", "examples": "with examples"}
ABLATION_WORDS = {
    "cooperation": "without advice",
    "adversary": "without attacks",
    "weights": "all answers alike",
}
MAX_VALUE_CHARS = 300


def format_cost(cost: float | None) -> str:
    """Format US dollars; an unknown cost is never shown as none."""
    if cost is None:
        return "cost unknown"
    if cost == 0:
        return "no cost"
    return format_dollars(cost)


def count_tokens(calls: Sequence[ModelCall]) -> int:
    """Return the sum of input and output tokens of all calls."""
    return sum(call.tokens_in + call.tokens_out for call in calls)


def describe_stored_steps(progress: RunState) -> str:
    """Say what an unfinished run has stored, which Resume builds on."""
    counts = [
        format_count(len(progress.sources_read), "source") if progress.sources_read else "",
        format_count(len(progress.evidence), "passage") if progress.evidence else "",
        "the context" if progress.context else "",
        format_count(len(progress.turns), "turn") if progress.turns else "",
        "the judgement" if progress.judgement else "",
    ]
    stored = [words for words in counts if words]
    return f"Kept: {join_names(stored)}." if stored else "Nothing was done yet."


def draw_problems(progress: RunState, run_id: str) -> None:
    """Draw problems as warnings and, below them, the replies that were of no use.

    Problems with a reply share one warning, because a debate may lose every turn.
    """
    cause = progress.verdict.cause_words if progress.verdict else ""
    problems = [p for p in progress.problems if p.message != cause]  # the verdict shows the cause
    unusable = [p for p in problems if p.reply]
    for problem in paginate([p for p in problems if not p.reply], f"run.{run_id}.problems"):
        st.warning(escape_markdown(problem.message), icon=":material/warning:")
    if unusable:
        lines = [escape_markdown(problem.message) for problem in unusable]
        words = lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)
        st.warning(words, icon=":material/warning:")
    replies, key = [p for p in progress.problems if p.reply], f"run.{run_id}.replies"
    if replies:
        count = "" if len(replies) == 1 else f" ({len(replies)})"
        with st.expander(f"Everything said, in order{count}", key=key):
            for problem in paginate(replies, key):
                st.caption(escape_markdown(problem.message))
                st.code(problem.reply, language=None, wrap_lines=True)


def draw_calls(progress: RunState) -> None:
    """Draw cost, tokens and seconds by agent, and each call; nothing for built-in runs."""
    if not progress.calls:
        return
    calls = list(progress.calls.values())
    st.markdown(
        f"**Language models**: {escape_markdown(format_cost(progress.cost))} · "
        f"{format_count(len(calls), 'call')} · {count_tokens(calls):,} tokens"
    )
    draw_table(_sum_by_agent(calls), "run.calls")
    for words in describe_cuts(calls):
        st.caption(escape_markdown(words))
    with st.expander(f"Every call ({len(calls)})"):
        draw_table([_call_row(call) for call in calls])


def describe_cuts(calls: Sequence[ModelCall]) -> list[str]:
    """Say what did not fit each role's model; of several calls the last, as a debate grows."""
    last = {call.role: call.cut for call in calls if call.cut}
    times = Counter(call.role for call in calls if call.cut)
    return [
        f"Cut to fit the model: {role}, {format_count(times[role], 'call')}, the last: {cut}"
        if times[role] > 1
        else f"Cut to fit the model: {role}: {cut}"
        for role, cut in last.items()
    ]


def _sum_by_agent(calls: Sequence[ModelCall]) -> list[dict[str, object]]:
    agents: dict[tuple[str, str], list[ModelCall]] = {}
    for call in calls:
        agents.setdefault((call.role, call.model), []).append(call)
    return [
        {
            "agent": role,
            "model": model,
            "calls": len(agent_calls),
            "tokens": count_tokens(agent_calls),
            "seconds": round(sum(call.seconds for call in agent_calls), 1),
            "cost": format_cost(sum_costs(agent_calls)),
        }
        for (role, model), agent_calls in agents.items()
    ]


def _call_row(call: ModelCall) -> dict[str, object]:
    return {
        "agent": call.role,
        "what for": call.slot,
        "model": call.model,
        "prompt": f"{call.prompt} {call.prompt_hash}".strip(),
        "tokens in": call.tokens_in,
        "tokens out": call.tokens_out,
        "seconds": round(call.seconds, 2),
        "cost": format_cost(call.cost),
        "how": ORIGIN_WORDS[call.origin],
        "problem": call.problem,
    }


def describe_plan(plan: Plan) -> str:
    """Return the protocol with the chosen options; those left to the protocol are omitted."""
    then = get_follow_up_debate(plan)
    parts = [
        format_protocol(plan.protocol, short=True),
        f"then {format_protocol(then.name, short=True)}" if then else "",
        f"at most {format_count(plan.max_turns, 'turn')}" if has_turns(plan) else "",
        _option_words(plan.options),
    ]
    return ", ".join(part for part in parts if part)


def describe_choices(plan: Plan) -> str:
    """Like `describe_plan` without turns, and with a follow-up debate only if it was chosen."""
    then = plan.options.then and f"then {format_protocol(plan.options.then, short=True)}"
    parts = (format_protocol(plan.protocol, short=True), then, _option_words(plan.options))
    return ", ".join(part for part in parts if part)


def _option_words(options: DebateOptions) -> str:
    """Return the chosen options but the follow-up debate; empty if there are none."""
    parts = [
        format_count(options.rounds, "round") if options.rounds else "",
        format_count(options.samples, "sample") if options.samples else "",
        STYLE_WORDS.get(options.style, ""),
        ABLATION_WORDS.get(options.without, ""),
        "debaters swapped" if options.is_swapped else "",
        f"seed {options.seed}" if options.seed else "",
    ]
    return ", ".join(part for part in parts if part)


def describe_debate(progress: RunState) -> str:
    """Say how long the debate was, or what it saved that none was held."""
    if progress.decided and not progress.decided.is_needed:
        plan = progress.plan or Plan("adaptive")
        then = get_follow_up_debate(plan)
        if then is None:
            return "not held, which saved up to a debate"
        saved = _calls_words(then, plan, progress)
        name = format_protocol(then.name, short=True)
        return f"not held, which saved up to {saved} of {name}"
    turns = format_count(len(progress.turns), "turn")
    if progress.plan and progress.plan.protocol in PROTOCOLS and not progress.turns:
        return turns
    return f"{turns}, {'consensus reached' if progress.reached_consensus else 'no consensus'}"


def explain_silence(progress: RunState) -> str:
    """Say why there is no turn: nobody had to speak, or nobody has spoken yet."""
    if progress.decided and not progress.decided.is_needed:
        return f"The debate was {describe_debate(progress)}. {progress.decided.why}"
    if progress.judgement is None:
        return "Nobody has spoken yet."
    return NOTHING_CONTESTED if has_audit(progress) else NO_DEBATE


def describe_expected_calls(progress: RunState) -> str:
    """Return the most calls that the run's plan makes; empty for an audit or without a plan."""
    plan = progress.plan
    if plan is None or plan.protocol not in PROTOCOLS:
        return ""
    return _calls_words(get_plan_protocol(plan), plan, progress)


def _calls_words(protocol: DebateProtocol, plan: Plan, progress: RunState) -> str:
    """Count the protocol's calls at most, by purpose; purposes without calls are omitted."""
    debaters = sum(used.role.startswith("debater ") for used in progress.roles)
    expected = protocol.calls(debaters, plan)
    parts = (
        (expected.context, "context"),
        (expected.turns, "turn"),
        (expected.judgements, "judgement"),
        (expected.summaries, "summary"),
        (expected.revisions, "revision"),
    )
    return ", ".join(format_count(number, noun) for number, noun in parts if number)


def render_state(run: Run, case: Case, progress: RunState) -> Html:
    """Render three boxes: initial, intermediate and output state."""
    boxes = {
        "Initial state": _initial_entries(run, case, progress),
        "Intermediate state": _intermediate_entries(progress),
        "Output state": _output_entries(progress),
    }
    return div("cp-state", *(_state_box(title, entries) for title, entries in boxes.items()))


def _state_box(title: str, entries: list[tuple[str, str]]) -> Html:
    pairs: list[Html] = []
    for name, value in entries:
        pairs += [element("dt", name), element("dd", shorten(value, MAX_VALUE_CHARS), dir="auto")]
    return div("cp-state-box", element("h4", title), element("dl", *pairs))


def _initial_entries(run: Run, case: Case, progress: RunState) -> list[tuple[str, str]]:
    documents = [
        f"{d.name} ({len(d.pages)} pages, {d.characters:,} characters)" if d.pages else d.name
        for d in progress.documents.values()
    ]
    images = [event.name for event in progress.images.values()]
    return [
        ("Input text", case.response),
        *([("Question", case.question)] if case.question else []),
        ("Documents", "; ".join(documents) or "none"),
        ("Images", "; ".join(images) or "none"),
        ("Role", case.role or "none"),
        ("Instruction", case.instruction or "none"),
        ("Plan", f"{describe_plan(run.plan)}, {run.plan.passages} passages a statement"),
        *([("Debate, at most", words)] if (words := describe_expected_calls(progress)) else []),
    ]


def _intermediate_entries(progress: RunState) -> list[tuple[str, str]]:
    context = progress.context
    described = [event.text or "not readable here" for event in progress.images.values()]
    images = [("Information from images", " ".join(described))] if described else []
    if has_audit(progress):
        return [
            ("Statements", str(len(progress.statements))),
            ("Passages", f"{len(progress.evidence)} found"),
            *images,
            ("Debated", describe_contested(progress)),
            *(_debate_entries(progress, context, "Passages of the debate") if context else []),
        ]
    passages, *debate = _debate_entries(progress, context, "Passages")
    return [("Statements", str(len(progress.statements))), passages, *images, *debate]


def describe_contested(progress: RunState) -> str:
    """Say which statements of an audit were debated."""
    if progress.context is None:
        return "nothing, for nothing stayed contested" if progress.judgement else "nothing so far"
    numbers = ", ".join(str(index + 1) for index in progress.contested)
    noun = "statement" if len(progress.contested) == 1 else "statements"
    return f"only what stayed contested: {noun} {numbers}" if numbers else "what stayed contested"


def _debate_entries(
    progress: RunState, context: EvidenceContext | None, passages: str
) -> list[tuple[str, str]]:
    """List the debate's context and course; `passages` is the name of its passages."""
    shares = "; ".join(
        f"{share.debater}: {format_count(len(share.passages), 'passage')}"
        for share in (context.shares if context else ())
    )
    found, conflicts = f"{len(progress.evidence)} found", "Conflicts"
    writer = next((used for used in progress.roles if used.role == "context writer"), None)
    notes: list[tuple[str, str]] = []
    if context and writer is not None and not writer.built_in:
        notes = [(f"Summary, {WRITTEN_BY_MODEL}, not found in the sources", context.summary)]
        conflicts = f"Conflicts, {WRITTEN_BY_MODEL}"
    elif context:
        found = context.summary
    return [
        (passages, found),
        *notes,
        ("Shares", shares if context else "none yet"),
        (conflicts, " ".join(context.conflicts if context else ()) or "none"),
        ("Debate", describe_debate(progress)),
        *([("Why", progress.decided.why)] if progress.decided else []),
    ]


def _reader_entries(judgement: Judgement, progress: RunState) -> list[tuple[str, str]]:
    judge = next((used for used in progress.roles if used.role == "judge"), None)
    if judge is not None and not judge.built_in:
        return []
    readers = [("Readers", describe_readers(judgement))] if judgement.readers else []
    if has_audit(progress):
        return readers
    return [
        *readers,
        ("Contested by several", ", ".join(judgement.agreed) or "nothing"),
        ("Contested by one", ", ".join(judgement.disputed) or "nothing"),
    ]


def _output_entries(progress: RunState) -> list[tuple[str, str]]:
    judgement, verdict = progress.judgement, progress.verdict
    entries: list[tuple[str, str]] = []
    if judgement:
        is_unfit = verdict is not None and verdict.cause == "model_not_fit"
        ignored = " (does not count, as its model failed the judge test)" if is_unfit else ""
        entries += [
            ("Judge", f"{judgement.agent}: {LABEL_WORDS[judgement.label].lower()}{ignored}"),
            ("Judge's text, which the classifier reads", judgement.text),
        ]
        entries += _reader_entries(judgement, progress)
    if verdict:
        entries.append(("Label", LABEL_WORDS[verdict.label].lower()))
        if verdict.p_hallucinated is not None and verdict.confidence is not None:
            entries += [
                ("p(hallucinated)", f"{verdict.p_hallucinated:.3f}"),
                ("Confidence, max(p, 1 − p)", format_percent(verdict.confidence)),
            ]
        entries.append(("Classifier", verdict.classifier))
    return entries or [("Nothing yet", "The run has not come to its output.")]


def draw_debate(
    progress: RunState, key: str, pasts: Mapping[str, AgentAccuracy] | None = None
) -> None:
    """Draw all turns by round with their signals; a quote that was found opens in its source."""
    if not progress.turns:
        st.caption(escape_markdown(explain_silence(progress)))
    elif has_audit(progress):
        st.caption(f"The debate is about {describe_contested(progress)}.")
    turns = sorted(progress.turns, key=lambda turn: turn.number)
    debaters = list(dict.fromkeys(turn.debater for turn in turns))
    signals = find_signals(progress, pasts)
    if turns:
        st.caption(escape_markdown(summarize_signals(signals, debaters)), help=SIGNALS_HELP)
    _draw_rounds(turns, signals, collect_asides(progress), key)


@st.fragment  # unfolding a round or opening a source redraws only this
def _draw_rounds(
    turns: Sequence[Turn],
    signals: Sequence[DebateSignal],
    placed: Mapping[int, Sequence[Html]],
    key: str,
) -> None:
    debaters = list(dict.fromkeys(turn.debater for turn in turns))
    numbers = [turn.number for turn in turns]
    _draw_asides(select_asides(placed, 0, numbers[0] if numbers else None))
    position = 0  # turns drawn so far; an imported trace may give two turns the same number
    for number, round_ in enumerate(split_rounds(turns), start=1):
        if round_.sides:
            draw_html(div("cp-sides", round_.sides, dir="auto"))
        is_last = position + len(round_.turns) == len(turns)
        place, is_shown = _open_round(round_, len(turns), f"{key}.round.{number}", is_last=is_last)
        for turn in round_.turns:
            position += 1
            if is_shown:
                following = numbers[position] if position < len(numbers) else None
                with place:
                    _draw_turn(turn, debaters, signals, f"{key}.{position}")
                    _draw_asides(select_asides(placed, turn.number, following))


def _open_round(
    round_: DebateRound, turns: int, key: str, *, is_last: bool
) -> tuple[DeltaGenerator, bool]:
    """Return where a round's turns are drawn, and whether they are: not while it is folded."""
    if turns <= MAX_UNFOLDED_TURNS:
        draw_html(div("cp-quiet", round_.heading))
        return st.container(), True
    words = escape_markdown(summarize_round(round_.heading, round_.turns))
    fold = st.expander(words, expanded=is_last, key=key, on_change="rerun")
    return fold, bool(fold.open)


def _draw_turn(
    turn: Turn, debaters: Sequence[str], signals: Sequence[DebateSignal], key: str
) -> None:
    turn_signals = [signal.words for signal in signals if signal.turn == turn.number]
    draw_html(
        render_turn(turn, debaters.index(turn.debater) + 1, with_quotes=False, signals=turn_signals)
    )
    if not turn.quotes:
        return
    with st.container(key=f"cp-quotes-{key}", horizontal=True):
        for number, quote in enumerate(turn.quotes):
            if quote.start is None:
                draw_html(render_quote(quote))
                continue
            symbol, about = QUOTE_SIGNS[quote.status], QUOTE_WORDS[quote.status]
            draw_place_button(quote, f"{key}.{number}", sign=symbol, about=about)


def _draw_asides(pieces: Sequence[Html]) -> None:
    if pieces:
        draw_html(join_html(pieces))
