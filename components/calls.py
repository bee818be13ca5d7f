"""What language models were asked in a run: what it cost, per agent, and what was of no use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import streamlit as st

from components.html import paged
from components.wording import counted, escaped
from core.events import ProblemMet
from core.llm.limits import dollars_words
from core.progress import Progress, total_cost
from core.records import ModelCall

ORIGIN_WORDS = {
    "called": "asked",
    "resumed": "kept from before the pause",
    "reused": "from another run",
}


def cost_words(cost: float | None) -> str:
    """US dollars as people read them; unknown is never shown as nothing."""
    if cost is None:
        return "cost unknown"
    if cost == 0:
        return "no cost"
    return dollars_words(cost)


def tokens_of(calls: Sequence[ModelCall]) -> int:
    """Tokens in and out of all calls."""
    return sum(call.tokens_in + call.tokens_out for call in calls)


def kept_words(progress: Progress) -> str:
    """What a run without a verdict has come to, so that people know what Resume builds on."""
    kept = [
        *([counted(len(progress.sources_read), "source")] if progress.sources_read else []),
        *([counted(len(progress.evidence), "passage")] if progress.evidence else []),
        *(["the context"] if progress.context else []),
        *([counted(len(progress.turns), "turn")] if progress.turns else []),
        *(["the judgement"] if progress.judgement else []),
    ]
    if not kept:
        return "Nothing was done yet."
    words = kept[0] if len(kept) == 1 else f"{', '.join(kept[:-1])} and {kept[-1]}"
    return f"Kept: {words}."


def draw_problems(progress: Progress, run_id: str) -> None:
    """Every problem as a warning; the replies of models that were of no use, each to be read.

    Replies stand together below the warnings: a debate may lose every turn.
    """
    told = progress.verdict.cause_words if progress.verdict else ""
    problems = [p for p in progress.problems if p.message != told]  # the verdict says it already
    lost = [p for p in problems if p.reply]
    for problem in paged([p for p in problems if not p.reply], f"run.{run_id}.problems"):
        st.warning(escaped(problem.message), icon=":material/warning:")
    if lost:
        lines = [escaped(problem.message) for problem in lost]
        words = lines[0] if len(lines) == 1 else "\n".join(f"- {line}" for line in lines)
        st.warning(words, icon=":material/warning:")
    _draw_replies([p for p in progress.problems if p.reply], f"run.{run_id}.replies")


def _draw_replies(problems: Sequence[ProblemMet], key: str) -> None:
    if not problems:
        return
    count = "" if len(problems) == 1 else f" ({len(problems)})"
    with st.expander(f"What was said, as it came{count}", key=key):
        for problem in paged(problems, key):
            st.caption(escaped(problem.message))
            st.code(problem.reply, language=None, wrap_lines=True)


def draw_calls(progress: Progress) -> None:
    """Cost, tokens and seconds per agent, and each call; nothing for built-in runs."""
    if not progress.calls:
        return
    calls = list(progress.calls.values())
    st.markdown(
        f"**Language models**: {escaped(cost_words(progress.cost))} · "
        f"{counted(len(calls), 'call')} · {tokens_of(calls):,} tokens"
    )
    st.dataframe(_by_agent(calls), hide_index=True, width="stretch", key="run.calls")
    for words in cut_words(calls):
        st.caption(escaped(words))
    with st.expander(f"Every call ({len(calls)})"):
        st.dataframe([_row(call) for call in calls], hide_index=True, width="stretch")


def cut_words(calls: Sequence[ModelCall]) -> list[str]:
    """What did not fit each role's model; a debate grows, so of several calls the last one says."""
    last = {call.role: call.cut for call in calls if call.cut}
    times = Counter(call.role for call in calls if call.cut)
    return [
        f"Cut to fit the model: {role}, {counted(times[role], 'call')}, the last: {cut}"
        if times[role] > 1
        else f"Cut to fit the model: {role}: {cut}"
        for role, cut in last.items()
    ]


def _by_agent(calls: Sequence[ModelCall]) -> list[dict[str, object]]:
    agents = dict.fromkeys((call.role, call.model) for call in calls)
    rows: list[dict[str, object]] = []
    for role, model in agents:
        own = [call for call in calls if (call.role, call.model) == (role, model)]
        rows.append(
            {
                "agent": role,
                "model": model,
                "calls": len(own),
                "tokens": tokens_of(own),
                "seconds": round(sum(call.seconds for call in own), 1),
                "cost": cost_words(total_cost(own)),
            }
        )
    return rows


def _row(call: ModelCall) -> dict[str, object]:
    return {
        "agent": call.role,
        "what for": call.slot,
        "model": call.model,
        "prompt": f"{call.prompt} {call.prompt_hash}".strip(),
        "tokens in": call.tokens_in,
        "tokens out": call.tokens_out,
        "seconds": round(call.seconds, 2),
        "cost": cost_words(call.cost),
        "how": ORIGIN_WORDS[call.origin],
        "problem": call.problem,
    }
