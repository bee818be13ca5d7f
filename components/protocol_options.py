"""What can be chosen of the chosen protocol: rounds, samples, places, parts, the coin, the debate.

Only what the protocol has is drawn; what is not drawn keeps to the protocol's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import streamlit as st

from components.wording import escaped, protocol_words
from core.debate.protocols import DEBATES, PROTOCOLS, options_of, then_of
from core.records import Plan
from core.seats import AS_IS, MOST_ROUNDS, DebateOptions, Option

MOST_SEED = 2**31 - 1
ITS_OWN = "As the protocol has it"
STYLES = {
    "plain": "Plainly",
    "thought": "Thinking aloud, step by step",
    "examples": "With examples of both labels",
}
PARTS_OUT = {
    "": "Nothing",
    "cooperation": "The advice that agents give each other",
    "adversary": "The attacks on each other’s answers",
    "weights": "Learned weights: all answers count alike",
}


def draw_protocol_options(page: str, protocol: str, usual: DebateOptions = AS_IS) -> DebateOptions:
    """The fields, folded away; nothing where nothing can be chosen. What they come to."""
    if not can_choose(protocol):
        return AS_IS
    with st.expander("Options of the protocol", icon=":material/instant_mix:"):
        return draw_option_fields(page, protocol, usual)


def can_choose(protocol: str) -> bool:
    """Whether there is anything to be chosen of the protocol."""
    return any(option in DRAWN for option in options_of(Plan(protocol)))


def draw_option_fields(page: str, protocol: str, usual: DebateOptions = AS_IS) -> DebateOptions:
    """The fields of what can be chosen, each protocol's own; at first they hold what is usual."""
    for option, draw in DRAWN.items():
        if option in _options(page, protocol, usual):  # the debate that is gone on to has its own
            key, value = _key(page, protocol, option), getattr(usual, option)
            if key not in st.session_state and value != getattr(AS_IS, option):
                # Not as the field's default: a number that has one cannot be emptied again.
                st.session_state[key] = min(value, MOST_SEED) if option == "seed" else value
            draw(key)
    return chosen_options(page, protocol, usual)


def chosen_options(page: str, protocol: str, usual: DebateOptions = AS_IS) -> DebateOptions:
    """What stands in the fields now, as far as the protocol has them; for callbacks too."""
    found = {
        option: _chosen(page, protocol, option, usual)
        for option in _options(page, protocol, usual)
        if option in DRAWN
    }
    options = replace(AS_IS, **found)
    return replace(options, style="") if options.style == "plain" else options


def forget_options(page: str) -> None:
    """The fields begin anew with what is usual: of another project, or as it is by now."""
    for protocol in PROTOCOLS:
        for option in DRAWN:
            st.session_state.pop(_key(page, protocol, option), None)


def _chosen(page: str, protocol: str, option: Option, usual: DebateOptions) -> Any:
    """A field's value; one that was emptied is the protocol's own, one never drawn is usual."""
    key = _key(page, protocol, option)
    value = st.session_state.get(key, getattr(usual, option))
    return getattr(AS_IS, option) if value is None else value


def _key(page: str, protocol: str, option: Option) -> str:
    return f"{page}.{protocol}.{option}"


def _options(page: str, protocol: str, usual: DebateOptions) -> tuple[Option, ...]:
    then = str(st.session_state.get(_key(page, protocol, "then"), usual.then) or "")
    return options_of(Plan(protocol, options=DebateOptions(then=then)))


def _draw_then(key: str) -> None:
    then = then_of(Plan("adaptive"))
    usual = f"{protocol_words(then.name, short=True)}, as is usual" if then else ITS_OWN
    st.selectbox(
        "The debate, where one is needed",
        ["", *DEBATES],
        format_func=lambda name: protocol_words(name, short=True) if name else usual,
        key=key,
        persist_state="session",
    )


def _draw_style(key: str) -> None:
    st.selectbox(
        "How the single judge is asked",
        list(STYLES),
        format_func=lambda style: STYLES[style],
        key=key,
        persist_state="session",
    )


def _draw_samples(key: str) -> None:
    _draw_number(
        "Judgements that are drawn",
        key,
        "The label that more than half of them give counts; else it stays unclear. The "
        "built-in judge always says the same and is asked once.",
    )


def _draw_rounds(key: str) -> None:
    _draw_number(
        "Rounds of debate",
        key,
        "Those after the first answers; in each, every debater has a turn.",
    )


def _draw_swap(key: str) -> None:
    st.toggle(
        "Debaters change places",
        key=key,
        help="Who speaks first can sway a debate.",
        persist_state="session",
    )


def _draw_without(key: str) -> None:
    st.selectbox(
        "Left out",
        list(PARTS_OUT),
        format_func=lambda part: PARTS_OUT[part],
        key=key,
        help="To see what a part of the protocol is worth, hold it without.",
        persist_state="session",
    )


def _draw_seed(key: str) -> None:
    st.number_input(
        "Seed of the coin",
        0,
        MOST_SEED,
        0,
        key=key,
        help="The same seed lets the coin fall the same way again for the same case.",
        persist_state="session",
    )


def _draw_number(label: str, key: str, words: str) -> None:
    """A number that stays empty until somebody chooses one."""
    st.number_input(
        label,
        1,
        MOST_ROUNDS,
        None,
        key=key,
        help=escaped(words),
        placeholder=ITS_OWN,
        persist_state="session",
    )


DRAWN: Mapping[Option, Callable[[str], None]] = {
    "then": _draw_then,
    "style": _draw_style,
    "samples": _draw_samples,
    "rounds": _draw_rounds,
    "without": _draw_without,
    "is_swapped": _draw_swap,
    "seed": _draw_seed,
}
