"""How to check a text: roster, keys, protocol with its options, plan, expected cost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from typing import Any

import streamlit as st

from components.app import state
from components.setup.settings import draw_keys_of
from components.widgets.wording import (
    PROTOCOL_USES,
    escape_markdown,
    format_duration,
    format_protocol,
    format_roster,
)
from core.agents.qualification import ModelStanding
from core.agents.rosters import find_roster, list_rosters
from core.baseline.wording import capitalise
from core.debate import protocols
from core.debate.protocols import (
    DEBATES,
    get_follow_up_debate,
    list_options,
    list_protocols,
)
from core.llm.call import is_on_own_server
from core.llm.limits import NANO_PER_CENT, format_money
from core.pipeline.cost_estimate import (
    CostEstimate,
    ModelUsage,
    estimate_duration,
    estimate_usage,
    load_paces,
    load_standings,
    measure_checks,
)
from core.pipeline.single_check import CLI_PROTOCOLS
from core.runtime.errors import InputError
from core.schema.records import EXAMPLES_KIND, MAX_EXAMPLE_TOKENS, LibraryEntry, Plan, Project
from core.schema.rosters import (
    BUILT_IN_ROSTER,
    DEFAULT_OPTIONS,
    MAX_ROUNDS,
    DebateOptions,
    ProtocolOption,
    RosterConfig,
)
from core.store import Store
from core.store.versions import NOTHING_LEARNED

MAX_SEED = 2**31 - 1
UNPRICED_LABEL = "Tokens for models with no known price"
PROTOCOL_DEFAULT = "The protocol's default"
STYLE_CHOICES = {
    "plain": "Plainly",
    "thought": "Thinking aloud, step by step",
    "examples": "With examples of both labels",
}
DRAWN_OPTIONS: tuple[ProtocolOption, ...] = (
    "then",
    "style",
    "samples",
    "rounds",
    "without",
    "is_swapped",
    "seed",
)
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
ABLATION_CHOICES = {
    "": "Nothing",
    "cooperation": "The advice that agents give each other",
    "adversary": "The attacks on each other’s answers",
    "weights": "Learned weights: all answers count alike",
}
# Protocols for everyday checks stand above the papers' other ones.
EVERYDAY_PROTOCOLS = ("ceda", "audit", "single", "adaptive")
BUILT_IN_SCOPE = (
    "The built-in engine is good at numbers, names and dates; often unsure, and sometimes wrong, "
    "where it takes reasoning."
)
SLOW_TOKENS_PER_SECOND = 60.0  # of a small model without a graphics card, before it is measured
MODELS_ONLY_NOTE = (
    "Built-in readers say the same in every round, so more protocols are offered where all "
    "debaters are language models."
)


def draw_protocol_options(
    page: str, protocol: str, usual: DebateOptions = DEFAULT_OPTIONS
) -> DebateOptions:
    """Draw the protocol's options in an expander, if it has any, and return them."""
    if not has_options(protocol):
        return DEFAULT_OPTIONS
    with st.expander("Options of the protocol", icon=":material/instant_mix:"):
        return draw_option_fields(page, protocol, usual)


def has_options(protocol: str) -> bool:
    """Return True if the protocol has options that a person can choose."""
    return any(option in DRAWN_OPTIONS for option in list_options(Plan(protocol)))


def draw_option_fields(
    page: str, protocol: str, usual: DebateOptions = DEFAULT_OPTIONS
) -> DebateOptions:
    """Draw a field for each option and return the options; fields start with `usual`."""
    for option in DRAWN_OPTIONS:
        if option in _available_options(page, protocol, usual):  # a follow-up debate has its own
            key = _field_key(page, protocol, option)
            value = getattr(usual, option)
            if key not in st.session_state and value != getattr(DEFAULT_OPTIONS, option):
                # Not as the field's default: a number field with a default cannot be emptied.
                st.session_state[key] = min(value, MAX_SEED) if option == "seed" else value
            _draw_option(option, key)
    return read_options(page, protocol, usual)


def read_options(page: str, protocol: str, usual: DebateOptions = DEFAULT_OPTIONS) -> DebateOptions:
    """Return the options in the fields: emptied ones as the default, undrawn ones as in `usual`."""
    values: dict[str, Any] = {}
    for option in _available_options(page, protocol, usual):
        if option in DRAWN_OPTIONS:
            value = st.session_state.get(_field_key(page, protocol, option), getattr(usual, option))
            values[option] = getattr(DEFAULT_OPTIONS, option) if value is None else value
    options = replace(DEFAULT_OPTIONS, **values)
    return replace(options, style="") if options.style == "plain" else options


def forget_options(page: str) -> None:
    """Reset the option fields, so that they start with the project's defaults again."""
    for protocol in protocols.PROTOCOLS:
        for option in DRAWN_OPTIONS:
            st.session_state.pop(_field_key(page, protocol, option), None)


def _field_key(page: str, protocol: str, option: ProtocolOption) -> str:
    return f"{page}.{protocol}.{option}"


def _available_options(
    page: str, protocol: str, usual: DebateOptions
) -> tuple[ProtocolOption, ...]:
    then = str(st.session_state.get(_field_key(page, protocol, "then"), usual.then) or "")
    return list_options(Plan(protocol, options=DebateOptions(then=then)))


def _draw_option(option: ProtocolOption, key: str) -> None:
    field: dict[str, Any] = {"key": key, "persist_state": "session"}

    def draw_select(label: str, words: Mapping[str, str], about: str | None = None) -> None:
        st.selectbox(label, list(words), format_func=words.__getitem__, help=about, **field)

    match option:
        case "then":
            then = get_follow_up_debate(Plan("adaptive"))
            default = (
                f"{format_protocol(then.name, short=True)}, as is usual"
                if then
                else PROTOCOL_DEFAULT
            )
            names = {name: format_protocol(name, short=True) for name in DEBATES}
            draw_select("The debate, where one is needed", {"": default} | names)
        case "style":
            draw_select("How the single judge is asked", STYLE_CHOICES)
        case "without":
            about = "Leave out a part of the protocol to see what it contributes."
            draw_select("Left out", ABLATION_CHOICES, about)
        case "is_swapped":
            about = "Who speaks first can sway a debate."
            st.toggle("Swap the debaters", help=about, **field)
        case "seed":
            about = "With the same seed, a tie in the same case is broken the same way again."
            st.number_input("Seed for breaking ties", 0, MAX_SEED, 0, help=about, **field)
        case "samples" | "rounds":
            label, about = NUMBER_WORDS[option]
            # It stays empty until somebody chooses a number.
            field |= {"help": escape_markdown(about), "placeholder": PROTOCOL_DEFAULT}
            st.number_input(label, 1, MAX_ROUNDS, None, **field)


def draw_protocol_choice(key: str, roster: str) -> str:
    """Draw the choice of protocol by short names, describe the chosen one, and return it."""
    offered = list_offered_protocols([roster], key)
    with state.open_store() as store:
        default = get_default_protocol(store, state.get_project(store))
    default = default if default in offered else offered[0]
    chosen = st.selectbox(
        "How to check",
        offered,
        index=offered.index(default),
        format_func=lambda name: format_protocol(name, short=True),
        key=key,
        help="\n".join(f"- {escape_markdown(format_protocol(name))}" for name in offered),
        persist_state="session",
    )
    protocol = str(chosen or default)
    st.caption(
        escape_markdown(f"{describe_protocol(protocol)} {PROTOCOL_USES.get(protocol, '')}".strip())
    )
    draw_offer_note(offered)
    return protocol


def list_offered_protocols(rosters: Sequence[str], key: str) -> tuple[str, ...]:
    """Return the protocols that any of the rosters can run, everyday ones first.

    A choice in the widget `key` that is no longer offered is dropped.
    """
    with state.open_store() as store:
        configs = {config.name: config for config in list_rosters(store)}
    runnable = {name for roster in rosters for name in list_protocols(configs.get(roster))}
    offered = (
        *EVERYDAY_PROTOCOLS,
        *(name for name in CLI_PROTOCOLS if name not in EVERYDAY_PROTOCOLS),
    )
    current = st.session_state.get(key)
    if isinstance(current, list):
        st.session_state[key] = [name for name in current if name in runnable]
    elif current is not None and current not in runnable:
        del st.session_state[key]
    return tuple(name for name in offered if name in runnable)


def draw_offer_note(offered: Sequence[str]) -> None:
    """Say why the list of protocols is shorter than it could be, if it is."""
    if len(offered) < len(CLI_PROTOCOLS):
        st.caption(MODELS_ONLY_NOTE)


def describe_protocol(protocol: str) -> str:
    """Describe in a sentence what a check by the protocol does."""
    name, colon, words = format_protocol(protocol).partition(": ")
    return capitalise(words) if colon else name


def get_default_protocol(store: Store, project: Project) -> str:
    """Return what the current person chose in the project last, else the project's protocol."""
    protocol = (
        store.projects.note(_protocol_note(project, state.get_person(store))) or project.protocol
    )
    return protocol if protocol in CLI_PROTOCOLS else CLI_PROTOCOLS[0]


def get_default_options(project: Project, protocol: str) -> DebateOptions:
    """Return the project's options of its own protocol; the defaults for any other."""
    return project.options if protocol == project.protocol else DEFAULT_OPTIONS


def save_protocol_choice(store: Store, project: Project, person: str, protocol: str) -> None:
    """Store the choice for the project; call it in the transaction that stores the case."""
    if store.projects.note(_protocol_note(project, person)) != protocol:
        store.projects.save_note(_protocol_note(project, person), protocol)


def _protocol_note(project: Project, person: str) -> str:
    return f"protocol.{project.id}.{person}"


def list_roster_labels() -> dict[str, str]:
    """Return the display names of all rosters by name."""
    with state.open_store() as store:
        return {
            roster_config.name: format_roster(roster_config.name, roster_config.words)
            for roster_config in list_rosters(store)
        }


def draw_roster_choice(key: str, chosen: str = BUILT_IN_ROSTER) -> str:
    """Draw a select box of all rosters and return the chosen one's name."""
    words = list_roster_labels()
    if st.session_state.get(key) not in words:
        st.session_state.pop(key, None)
    names = list(words)
    about = "The models that play the roles. Settings shows, tests and edits them.\n\n"
    name = st.selectbox(
        "Models",
        names,
        index=names.index(chosen) if chosen in words else 0,
        format_func=lambda name: format_roster(name, short=True),
        key=key,
        persist_state="session",
        help=about + "\n".join(f"- {escape_markdown(label)}" for label in words.values()),
    )
    return str(name or BUILT_IN_ROSTER)


def describe_roster(key: str, default: str) -> str:
    """Return the line under a page's title that says what to expect of the chosen roster."""
    name = str(st.session_state.get(key) or default)
    roster = load_roster_config(name)
    if roster is None or roster.is_built_in:
        return f":material/offline_bolt: {BUILT_IN_SCOPE}"
    icon = "computer" if uses_own_servers_only(roster) else "cloud"
    return f":material/{icon}: {escape_markdown(format_roster(name, roster.words))}"


def describe_plan(protocol: str, name: str) -> str:
    """Return protocol and models in one line, with where the models run."""
    roster = load_roster_config(name)
    if roster is None or roster.is_built_in:
        where = "built-in, runs on this computer, no language model"
    else:
        place = "at addresses that you gave" if uses_own_servers_only(roster) else "of a provider"
        where = f"{format_roster(name, short=True)}, language models {place}"
    return escape_markdown(f"{format_protocol(protocol, short=True)} · {where}")


def uses_own_servers_only(roster: RosterConfig) -> bool:
    """Return True if no model of the roster is a provider's, which needs a key or money."""
    return all(agent.is_built_in or is_on_own_server(agent) for _, agent in roster.agents_by_role())


def draw_caps(
    key: str,
    label: str,
    usual: tuple[int, int],
    most: tuple[int | None, int | None] = (None, None),
    *,
    least: int = 0,
    **field: Any,
) -> tuple[int, int]:
    """Draw what may be spent in cents and, on models of no known price, in tokens; return both."""
    left, right = st.columns(2)
    return (
        left.number_input(label, least, most[0], usual[0], key=f"{key}.cents", **field),
        right.number_input(
            UNPRICED_LABEL, least, most[1], usual[1], step=10_000, key=f"{key}.tokens", **field
        ),
    )


def load_library_entries(store: Store, sources: Sequence[str]) -> list[LibraryEntry]:
    """Return the library entries of the sources; those that are missing are left out."""
    project = state.get_project(store)
    return [e for e in (store.library.get(project.id, i) for i in sources) if e]


def describe_expectation(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> str:
    """Return time, calls, cost and cap of checking (response, question) pairs, in Markdown.

    The time is a range: a busy computer takes longer, and a local model's pace may be unknown.
    """
    is_indexed_here = plan.sheet is None or plan.sheet.retriever.is_built_in
    durations = [
        estimate_duration(
            store,
            () if number else entries,  # the first check reads and indexes them for all
            len(text),
            protocol=plan.protocol,
            is_indexed_here=is_indexed_here,
        )
        for number, (text, _) in enumerate(asked)
    ]
    duration, longest = map(sum, zip((0.0, 0.0), *durations, strict=True))
    standings = load_standings(store, state.get_project(store).id, plan)
    use = estimate_use(store, entries, asked, plan, standings)
    if use is None:
        range_words = dict.fromkeys(map(format_duration, (duration, longest)))
        return f"expected time: {' to '.join(range_words)} · no cost"
    doubt = "".join(f"**{words}** · " for words in _list_failed_judges(standings))
    settings = store.projects.settings()
    caps = []
    if use.most.cost:
        caps.append(format_money(settings.run_cents * NANO_PER_CENT))
    if use.unpriced:
        caps.append(f"{plan.token_cap or settings.run_tokens:,} tokens of unpriced models")
    limit = f" · never more than {' and '.join(caps)} a run" if caps else ""
    words = f"{doubt}{escape_markdown(use.words + limit)}"
    quick = duration + use.likely.seconds
    if use.is_timed:
        return f"expected time: {format_duration(quick)} · {words}"
    slow = max(quick, duration + use.likely.tokens / SLOW_TOKENS_PER_SECOND)
    return (
        f"rough time: {format_duration(quick)} to {format_duration(slow)}, depending on this "
        f"computer; known after the first check · {words}"
    )


def _list_failed_judges(standings: Iterable[ModelStanding]) -> Iterator[str]:
    """Yield a clause, in Markdown, for each deciding model whose verdict will not count."""
    for standing in standings:
        if not standing.may_decide:
            name = escape_markdown(standing.agent.model.split("/", 1)[-1])
            yield f"{name} failed the judge test, so the verdict will be Unclear"


def estimate_use(
    store: Store,
    entries: Sequence[LibraryEntry],
    asked: Sequence[tuple[str, str]],
    plan: Plan,
    standings: Sequence[ModelStanding] | None = None,
) -> CostEstimate | None:
    """Return what the checks will use of language models; None if the plan has none.

    `standings` are those of the deciding models, read here if they are None.
    """
    if plan.sheet is None:
        return None
    project_id = state.get_project(store).id
    if standings is None:
        standings = load_standings(store, project_id, plan)
    sizes = measure_checks(store, entries, asked or [("", "")], plan, standings)
    choices = store.learned.choices(EXAMPLES_KIND, project_id)
    example_tokens = (
        MAX_EXAMPLE_TOKENS if choices and choices[0].number != NOTHING_LEARNED else 0
    )  # of corrected cases
    paces = load_paces(store, plan.sheet)
    uses = [
        estimate_usage(plan.sheet, replace(size, examples=example_tokens), paces) for size in sizes
    ]

    unpriced = dict.fromkeys(name for use in uses for name in use.unpriced)
    likely = _sum_uses(use.likely for use in uses)
    most = _sum_uses(use.most for use in uses)
    return CostEstimate(likely, most, tuple(unpriced), all(use.is_timed for use in uses))


def _sum_uses(uses: Iterable[ModelUsage]) -> ModelUsage:
    return ModelUsage(*map(sum, zip(*map(astuple, uses), strict=True)))


def load_roster_config(name: str) -> RosterConfig | None:
    """Return the roster's settings; None for the built-in engine or a removed roster."""
    if name == BUILT_IN_ROSTER:
        return None
    try:
        with state.open_store() as store:
            return find_roster(name, store)
    except InputError as error:
        st.error(escape_markdown(str(error)))
        return None


def draw_roster_keys(names: Sequence[str], page: str) -> None:
    """Draw fields for keys that these rosters need and the server lacks, each once."""
    configs = [config for config in map(load_roster_config, dict.fromkeys(names)) if config]
    if configs:
        models = [
            (agent.model, agent.api_base)
            for config in configs
            for _, agent in config.agents_by_role()
            if not agent.is_built_in
        ]
        state.warm_up_models(tuple(dict.fromkeys(models)))
        draw_keys_of(configs, page)


def build_plan(
    name: str,
    max_turns: int,
    passages: int,
    *,
    protocol: str = "ceda",
    options: DebateOptions = DEFAULT_OPTIONS,
) -> Plan:
    """Return a plan with the roster's current settings. Raises InputError: the roster is gone."""
    roster_config = None
    if name != BUILT_IN_ROSTER:
        with state.open_store() as store:
            roster_config = find_roster(name, store)
    return Plan(
        protocol, name, max_turns=max_turns, passages=passages, sheet=roster_config, options=options
    )
