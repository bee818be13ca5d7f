"""How to check a text: roster, keys, protocol with its options, plan, expected cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

import streamlit as st

from components.app import state
from components.setup.settings import draw_keys_of
from components.widgets.wording import PROTOCOL_FITS, escaped, protocol_words, roster_words, seconds
from core.agents.rosters import sheet_named, sheets_of
from core.baseline.wording import capitalised
from core.debate import protocols
from core.debate.protocols import DEBATES, offered_to, options_of, then_of
from core.llm.limits import NANO_PER_CENT, money
from core.pipeline.cost_estimate import Expected, Use, expected_seconds, expected_use, sizes_of
from core.pipeline.streaming_input import PROTOCOLS
from core.runtime.errors import InputError
from core.schema.records import EXAMPLES, MOST_TOKENS, LibraryEntry, Plan, Project
from core.schema.rosters import AS_IS, BUILT_IN, MOST_ROUNDS, DebateOptions, Option, RosterConfig
from core.store import Store
from core.store.versions import NONE

MOST_SEED = 2**31 - 1
ITS_OWN = "The protocol's default"
STYLES = {
    "plain": "Plainly",
    "thought": "Thinking aloud, step by step",
    "examples": "With examples of both labels",
}
DRAWN: tuple[Option, ...] = ("then", "style", "samples", "rounds", "without", "is_swapped", "seed")
NUMBER_WORDS = {
    "samples": (
        "Judgements sampled",
        "The majority's label counts; without a majority the verdict is unclear. The built-in "
        "judge always says the same and is asked once.",
    ),
    "rounds": (
        "Rounds of debate",
        "Rounds after the first answers; every debater has a turn in each.",
    ),
}
PARTS_OUT = {
    "": "Nothing",
    "cooperation": "The advice that agents give each other",
    "adversary": "The attacks on each other’s answers",
    "weights": "Learned weights: all answers count alike",
}
# Protocols for everyday checks stand above the papers' other ones.
EVERYDAY = ("ceda", "audit", "single", "adaptive")
MODELS_ONLY = (
    "Built-in readers say the same in every round, so more protocols are offered where all "
    "debaters are language models."
)


def draw_protocol_options(page: str, protocol: str, usual: DebateOptions = AS_IS) -> DebateOptions:
    """Draw the protocol's options in an expander, if it has any, and return them."""
    if not can_choose(protocol):
        return AS_IS
    with st.expander("Options of the protocol", icon=":material/instant_mix:"):
        return draw_option_fields(page, protocol, usual)


def can_choose(protocol: str) -> bool:
    """Return True if the protocol has options that a person can choose."""
    return any(option in DRAWN for option in options_of(Plan(protocol)))


def draw_option_fields(page: str, protocol: str, usual: DebateOptions = AS_IS) -> DebateOptions:
    """Draw a field for each option and return the options; fields start with `usual`."""
    for option in DRAWN:
        if option in _available_options(page, protocol, usual):  # a follow-up debate has its own
            key = _field_key(page, protocol, option)
            value = getattr(usual, option)
            if key not in st.session_state and value != getattr(AS_IS, option):
                # Not as the field's default: a number field with a default cannot be emptied.
                st.session_state[key] = min(value, MOST_SEED) if option == "seed" else value
            _draw_option(option, key)
    return chosen_options(page, protocol, usual)


def chosen_options(page: str, protocol: str, usual: DebateOptions = AS_IS) -> DebateOptions:
    """Return the options in the fields: emptied ones as the default, undrawn ones as in `usual`."""
    values: dict[str, Any] = {}
    for option in _available_options(page, protocol, usual):
        if option in DRAWN:
            value = st.session_state.get(_field_key(page, protocol, option), getattr(usual, option))
            values[option] = getattr(AS_IS, option) if value is None else value
    options = replace(AS_IS, **values)
    return replace(options, style="") if options.style == "plain" else options


def forget_options(page: str) -> None:
    """Reset the option fields, so that they start with the project's defaults again."""
    for protocol in protocols.PROTOCOLS:
        for option in DRAWN:
            st.session_state.pop(_field_key(page, protocol, option), None)


def _field_key(page: str, protocol: str, option: Option) -> str:
    return f"{page}.{protocol}.{option}"


def _available_options(page: str, protocol: str, usual: DebateOptions) -> tuple[Option, ...]:
    then = str(st.session_state.get(_field_key(page, protocol, "then"), usual.then) or "")
    return options_of(Plan(protocol, options=DebateOptions(then=then)))


def _draw_option(option: Option, key: str) -> None:
    field: dict[str, Any] = {"key": key, "persist_state": "session"}

    def draw_select(label: str, words: Mapping[str, str], about: str | None = None) -> None:
        st.selectbox(label, list(words), format_func=words.__getitem__, help=about, **field)

    match option:
        case "then":
            then = then_of(Plan("adaptive"))
            default = f"{protocol_words(then.name, short=True)}, as is usual" if then else ITS_OWN
            names = {name: protocol_words(name, short=True) for name in DEBATES}
            draw_select("The debate, where one is needed", {"": default} | names)
        case "style":
            draw_select("How the single judge is asked", STYLES)
        case "without":
            about = "Leave out a part of the protocol to see what it contributes."
            draw_select("Left out", PARTS_OUT, about)
        case "is_swapped":
            about = "Who speaks first can sway a debate."
            st.toggle("Swap the debaters", help=about, **field)
        case "seed":
            about = "With the same seed, a tie in the same case is broken the same way again."
            st.number_input("Seed for breaking ties", 0, MOST_SEED, 0, help=about, **field)
        case "samples" | "rounds":
            label, about = NUMBER_WORDS[option]
            # It stays empty until somebody chooses a number.
            field |= {"help": escaped(about), "placeholder": ITS_OWN}
            st.number_input(label, 1, MOST_ROUNDS, None, **field)


def draw_protocol_choice(key: str, roster: str) -> str:
    """Draw the choice of protocol by short names, describe the chosen one, and return it."""
    offered = offered_protocols([roster], key)
    with state.open_store() as store:
        default = usual_protocol(store, state.project(store))
    default = default if default in offered else offered[0]
    chosen = st.selectbox(
        "How to check",
        offered,
        index=offered.index(default),
        format_func=lambda name: protocol_words(name, short=True),
        key=key,
        help="\n".join(f"- {escaped(protocol_words(name))}" for name in offered),
        persist_state="session",
    )
    protocol = str(chosen or default)
    st.caption(escaped(f"{happens(protocol)} {PROTOCOL_FITS.get(protocol, '')}".strip()))
    draw_offer_note(offered)
    return protocol


def offered_protocols(rosters: Sequence[str], key: str) -> tuple[str, ...]:
    """Return the protocols that any of the rosters can run, everyday ones first.

    A choice in the widget `key` that is no longer offered is dropped.
    """
    with state.open_store() as store:
        sheets = {sheet.name: sheet for sheet in sheets_of(store)}
    runnable = {name for roster in rosters for name in offered_to(sheets.get(roster))}
    offered = (*EVERYDAY, *(name for name in PROTOCOLS if name not in EVERYDAY))
    current = st.session_state.get(key)
    if isinstance(current, list):
        st.session_state[key] = [name for name in current if name in runnable]
    elif current is not None and current not in runnable:
        del st.session_state[key]
    return tuple(name for name in offered if name in runnable)


def draw_offer_note(offered: Sequence[str]) -> None:
    """Say why the list of protocols is shorter than it could be, if it is."""
    if len(offered) < len(PROTOCOLS):
        st.caption(MODELS_ONLY)


def happens(protocol: str) -> str:
    """Describe in a sentence what a check by the protocol does."""
    name, colon, words = protocol_words(protocol).partition(": ")
    return capitalised(words) if colon else name


def usual_protocol(store: Store, project: Project) -> str:
    """Return what the current person chose in the project last, else the project's protocol."""
    protocol = store.projects.note(_protocol_note(project, state.person(store))) or project.protocol
    return protocol if protocol in PROTOCOLS else PROTOCOLS[0]


def usual_options(project: Project, protocol: str) -> DebateOptions:
    """Return the project's options of its own protocol; the defaults for any other."""
    return project.options if protocol == project.protocol else AS_IS


def keep_protocol(store: Store, project: Project, person: str, protocol: str) -> None:
    """Store the choice for the project; call it in the transaction that stores the case."""
    if store.projects.note(_protocol_note(project, person)) != protocol:
        store.projects.save_note(_protocol_note(project, person), protocol)


def _protocol_note(project: Project, person: str) -> str:
    return f"protocol.{project.id}.{person}"


def rosters_offered() -> dict[str, str]:
    """Return the display names of all rosters by name."""
    with state.open_store() as store:
        return {sheet.name: roster_words(sheet.name, sheet.words) for sheet in sheets_of(store)}


def draw_roster_choice(key: str, chosen: str = BUILT_IN) -> str:
    """Draw a select box of all rosters and return the chosen one's name."""
    words = rosters_offered()
    if st.session_state.get(key) not in words:
        st.session_state.pop(key, None)
    names = list(words)
    name = st.selectbox(
        "Models",
        names,
        index=names.index(chosen) if chosen in words else 0,
        format_func=words.__getitem__,
        key=key,
        persist_state="session",
        help="The models that play the roles. Settings shows, tests and edits them.",
    )
    return str(name or BUILT_IN)


def roster_line(key: str) -> str:
    """Return the line under a page's title that says which roster will check."""
    name = str(st.session_state.get(key) or BUILT_IN)
    if name == BUILT_IN:
        return f":material/offline_bolt: {escaped(roster_words(name))}"
    sheet = sheet_of(name)
    return f":material/cloud: {escaped(roster_words(name, sheet.words if sheet else ''))}"


def entries_of(store: Store, sources: Sequence[str]) -> list[LibraryEntry]:
    """Return the library entries of the sources; those that are missing are left out."""
    project = state.project(store)
    return [e for e in (store.library.get(project.id, i) for i in sources) if e]


def expectation(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> str:
    """Return time, calls, cost and cap of checking (response, question) pairs, in Markdown."""
    duration = sum(
        expected_seconds(store, entries, len(text), protocol=plan.protocol) for text, _ in asked
    )
    use = expected_of(store, entries, asked, plan)
    if use is None:
        return f"expected time: {seconds(duration)} · no cost"
    settings = store.projects.settings()
    caps = []
    if use.most.cost or not use.unpriced:
        caps.append(money(settings.run_cents * NANO_PER_CENT))
    if use.unpriced:
        caps.append(f"{plan.token_cap or settings.run_tokens:,} tokens of unpriced models")
    words = escaped(f"{use.words} · never more than {' and '.join(caps)} a run")
    return f"expected time: {seconds(duration + use.likely.seconds)} · {words}"


def expected_of(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> Expected | None:
    """Return what the checks will use of language models; None if the plan has none."""
    if plan.sheet is None:
        return None
    sizes = sizes_of(store, entries, asked or [("", "")], plan)
    choices = store.learned.choices(EXAMPLES, state.project(store).id)
    example_tokens = (
        MOST_TOKENS if choices and choices[0].number != NONE else 0
    )  # of corrected cases
    uses = [expected_use(plan.sheet, replace(size, examples=example_tokens)) for size in sizes]

    unpriced = dict.fromkeys(name for use in uses for name in use.unpriced)
    likely = _sum_uses(use.likely for use in uses)
    most = _sum_uses(use.most for use in uses)
    return Expected(likely, most, tuple(unpriced))


def _sum_uses(uses: Iterable[Use]) -> Use:
    return Use(*map(sum, zip(*map(astuple, uses), strict=True)))


def sheet_of(name: str) -> RosterConfig | None:
    """Return the roster's settings; None for the built-in engine or a removed roster."""
    if name == BUILT_IN:
        return None
    try:
        with state.open_store() as store:
            return sheet_named(name, store)
    except InputError as error:
        st.error(escaped(str(error)))
        return None


def draw_keys_of_rosters(names: Sequence[str], page: str) -> None:
    """Draw fields for keys that these rosters need and the server lacks, each once."""
    sheets = [sheet for sheet in map(sheet_of, dict.fromkeys(names)) if sheet is not None]
    if sheets:
        seats = (seat for sheet in sheets for _, seat in sheet.seats() if not seat.is_built_in)
        state.warm_models(tuple(dict.fromkeys(seats)))
        draw_keys_of(sheets, page)


def planned(
    name: str,
    max_turns: int,
    passages: int,
    *,
    protocol: str = "ceda",
    options: DebateOptions = AS_IS,
) -> Plan:
    """Return a plan with the roster's current settings. Raises InputError: the roster is gone."""
    sheet = None
    if name != BUILT_IN:
        with state.open_store() as store:
            sheet = sheet_named(name, store)
    return Plan(
        protocol, name, max_turns=max_turns, passages=passages, sheet=sheet, options=options
    )
