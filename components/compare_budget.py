"""The budget of a comparison, and what each way will take of it before anything is started."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from components.debate_calls import chosen_words
from components.words import escaped, protocol_words, roster_words, seconds
from core.comparing import Budget, Way, needed
from core.config import Settings
from core.models.caps import NANO_PER_CENT, money
from core.seats import BUILT_IN

RULE = (
    "Ways are taken in the order of the list while what they are likely to take fits into the "
    "budget together; what is left over is dealt out in proportion. No run passes its share."
)


def draw_budget(settings: Settings, rosters: Sequence[str]) -> Budget:
    """The one budget; asked for only where a language model is seated."""
    if all(roster == BUILT_IN for roster in rosters):
        return Budget(settings.run_cents, settings.run_tokens)
    left, right = st.columns(2)
    cents = left.number_input(
        "Budget of all together, US cents",
        1,
        settings.day_cents,
        min(settings.run_cents, settings.day_cents),
        key="compare.cents",
        help=RULE,
        persist_state="session",
    )
    tokens = right.number_input(
        "Tokens of models of no known price",
        1,
        settings.day_tokens,
        min(settings.run_tokens, settings.day_tokens),
        step=10_000,
        key="compare.tokens",
        help=RULE,
        persist_state="session",
    )
    return Budget(int(cents), int(tokens))


def draw_expected(ways: Sequence[Way], paces: Sequence[float]) -> None:
    """What each way will take, its share, and what all will take together.

    `paces` are the seconds of the built-in part of each.
    """
    begun = [way for way in ways if not way.problem]
    st.dataframe(
        [_expected_row(way, pace) for way, pace in zip(ways, paces, strict=True)],
        key="compare.expected",
        hide_index=True,
        height="content",
    )
    for problem in dict.fromkeys(way.problem for way in ways if way.problem):
        left = [protocol_words(w.plan.protocol, short=True) for w in ways if w.problem == problem]
        names = ", ".join(dict.fromkeys(left))
        st.warning(
            f"Not to be started: {escaped(names)}. {escaped(problem)}", icon=":material/money_off:"
        )
    needs = [need for way in begun if (need := needed(way)) is not None]
    used = [way.expected.likely for way in begun if way.expected is not None]
    if not needs:
        st.caption(f"{len(begun)} to be started · no language model is asked, so no cost")
        return
    st.caption(
        escaped(
            f"{len(begun)} to be started · about {sum(use.calls for use in used)} calls, "
            f"{sum(use.tokens for use in used):,} tokens and "
            f"{money(sum(need.cents for need in needs) * NANO_PER_CENT)} together. {RULE} The caps "
            "of the person and of the day hold beside it."
        )
    )


def _expected_row(way: Way, pace: float) -> dict[str, str]:
    likely = way.expected.likely if way.expected else None
    share = way.share
    return {
        "Protocol": chosen_words(way.plan),
        "Roster": roster_words(way.plan.roster, short=True),
        "Expected": way.expected.words if way.expected else "no cost",
        "Time": seconds(pace + (likely.seconds if likely else 0.0)),
        "At most": "not started" if way.problem else "–" if share is None
        else f"{money(share.cents * NANO_PER_CENT)} · {share.tokens:,} unpriced tokens",
    }  # fmt: skip
