"""Which roster checks: the choice, the keys it needs, the plan that comes of it.

How a text is to be checked: by which protocol, and with what an admin chose of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components import state
from components.api_keys import draw_keys_of
from components.wording import escaped, protocol_words, roster_words, seconds
from core.agents.rosters import sheet_named, sheets_of
from core.debate.protocols import offered_to
from core.errors import InputError
from core.llm.limits import NANO_PER_CENT, money
from core.pipeline.checking import PROTOCOLS
from core.pipeline.cost_estimate import Expected, Use, expected_seconds, expected_use, sizes_of
from core.records import EXAMPLES, MOST_TOKENS, LibraryEntry, Plan, Project
from core.seats import AS_IS, BUILT_IN, DebateOptions, RosterSheet
from core.store import Store
from core.store.versions import NONE

FITS = {
    "ceda": "It fits a single claim or a short answer that rests on your documents.",
    "single": "It is the quickest way, and the baseline of every debate.",
    "ensemble": "It shows what many heads come to without arguing; a coin that decided is told of.",
    "adaptive": "It saves calls: the debate is held only where the judge is unsure or the built-in "
    "readers contradict it.",
    "colmad": "It fits what is hard to see: debaters work towards one goal, say how sure they are "
    "and where they may be mistaken.",
    "copmad": "It shows the best case for either side. Who argues better may win: it is here to be "
    "compared with.",
    "society": "It fits questions that several can think through alone and then learn from each "
    "other; no judge decides.",
    "sc_maks": "It is the most thorough and the costliest, and what is wrong is written anew.",
    "mad": "It fits claims that look right at once: somebody has to speak against the first view.",
    "mamm_refine": "It fits a text that you want to put right: you take the better text or leave "
    "it.",
    "audit": "It fits a long response, and one with sums, dates, code or a length asked for.",
}
# Whoever only wants to check a text finds what fits above the papers' other ways to argue.
EVERYDAY = ("ceda", "audit", "single", "adaptive")
MODELS_ONLY = (
    "Built-in readers say the same in every round: a roster whose debaters are all language models "
    "has more ways to debate."
)


def draw_protocol_choice(key: str, roster: str) -> str:
    """The choice, with what happens and when it fits; at first what the person chose here last.

    Only what the roster can do is listed. Names alone are what a phone has room for in the list;
    the chosen one is told in whole below.
    """
    offered = offered_protocols([roster], key)
    with state.open_store() as store:
        usual = usual_protocol(store, state.project(store))
    usual = usual if usual in offered else offered[0]
    chosen = st.selectbox(
        "How to check",
        offered,
        index=offered.index(usual),
        format_func=lambda name: protocol_words(name, short=True),
        key=key,
        help="\n".join(f"- {escaped(protocol_words(name))}" for name in offered),
        persist_state="session",
    )
    protocol = str(chosen or usual)
    st.caption(escaped(f"{happens(protocol)} {FITS.get(protocol, '')}".strip()))
    draw_offer_note(offered)
    return protocol


def offered_protocols(rosters: Sequence[str], key: str) -> tuple[str, ...]:
    """What one of the rosters can check by, the everyday ones first; a choice beyond is dropped."""
    with state.open_store() as store:
        sheets = {sheet.name: sheet for sheet in sheets_of(store)}
    can = {name for roster in rosters for name in offered_to(sheets.get(roster))}
    offered = (*EVERYDAY, *(name for name in PROTOCOLS if name not in EVERYDAY))
    kept = st.session_state.get(key)
    if isinstance(kept, list):
        st.session_state[key] = [name for name in kept if name in can]
    elif kept is not None and kept not in can:
        del st.session_state[key]
    return tuple(name for name in offered if name in can)


def draw_offer_note(offered: Sequence[str]) -> None:
    """Why the list is shorter than it could be, where it is."""
    if len(offered) < len(PROTOCOLS):
        st.caption(MODELS_ONLY)


def happens(protocol: str) -> str:
    """What a check by that protocol does, in a sentence without its name."""
    name, colon, words = protocol_words(protocol).partition(": ")
    return f"{words[:1].upper()}{words[1:]}" if colon else name


def usual_protocol(store: Store, project: Project) -> str:
    """What whoever is here chose in the project last, else what the project says."""
    kept = store.projects.note(_note(project, state.person(store))) or project.protocol
    return kept if kept in PROTOCOLS else PROTOCOLS[0]


def usual_options(project: Project, protocol: str) -> DebateOptions:
    """What the project chose of its own protocol; of any other nothing is chosen yet."""
    return project.options if protocol == project.protocol else AS_IS


def keep_protocol(store: Store, project: Project, person: str, protocol: str) -> None:
    """Remember the choice in the project; call it in the transaction that stores the case."""
    if store.projects.note(_note(project, person)) != protocol:
        store.projects.save_note(_note(project, person), protocol)


def _note(project: Project, person: str) -> str:
    return f"protocol.{project.id}.{person}"


def draw_roster_choice(key: str, chosen: str = BUILT_IN) -> str:
    """A select box of all rosters; the name of the chosen one."""
    with state.open_store() as store:
        words = {sheet.name: roster_words(sheet.name, sheet.words) for sheet in sheets_of(store)}
    if st.session_state.get(key) not in words:
        st.session_state.pop(key, None)
    names = list(words)
    name = st.selectbox(
        "Roster",
        names,
        index=names.index(chosen) if chosen in words else 0,
        format_func=lambda name: words[name],
        key=key,
        persist_state="session",
        help="Who plays the roles. Settings shows every seat, tests it, and lets you make another.",
    )
    return str(name or BUILT_IN)


def roster_line(key: str) -> str:
    """The line under a page's title: who will check, as far as it is chosen by now."""
    name = str(st.session_state.get(key) or BUILT_IN)
    if name == BUILT_IN:
        return f":material/offline_bolt: {escaped(roster_words(name))}"
    sheet = sheet_of(name)
    return f":material/cloud: {escaped(roster_words(name, sheet.words if sheet else ''))}"


def expectation(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> str:
    """Time, calls and cost of checking responses (each with its question), in Markdown."""
    time = sum(
        expected_seconds(store, entries, len(text), protocol=plan.protocol) for text, _ in asked
    )
    use = expected_of(store, entries, asked, plan)
    if use is None:
        return f"expected time: {seconds(time)} · no cost"
    words = escaped(f"{use.words} · {_caps(store, plan, use)}")
    return f"expected time: {seconds(time + use.likely.seconds)} · {words}"


def expected_of(
    store: Store, entries: Sequence[LibraryEntry], asked: Sequence[tuple[str, str]], plan: Plan
) -> Expected | None:
    """What checking responses will use of language models; None where none is seated."""
    if plan.sheet is None:
        return None
    sizes = sizes_of(store, entries, asked or [("", "")], plan)
    shown = _example_tokens(store)
    return _together([expected_use(plan.sheet, replace(size, examples=shown)) for size in sizes])


def _example_tokens(store: Store) -> int:
    """What corrected cases add to a prompt at most, where the project has some in use."""
    choices = store.learned.choices(EXAMPLES, state.project(store).id)
    return MOST_TOKENS if choices and choices[0].number != NONE else 0


def _together(uses: Sequence[Expected]) -> Expected:
    """What several checks will use in all."""

    def added(parts: Sequence[Use]) -> Use:
        return Use(
            sum(part.calls for part in parts),
            sum(part.tokens for part in parts),
            sum(part.unpriced_tokens for part in parts),
            sum(part.cost for part in parts),
            sum(part.seconds for part in parts),
        )

    unpriced = dict.fromkeys(name for use in uses for name in use.unpriced)
    return Expected(
        added([use.likely for use in uses]), added([use.most for use in uses]), tuple(unpriced)
    )


def _caps(store: Store, plan: Plan, use: Expected) -> str:
    """The caps of a run that these models come under, which are never passed."""
    settings = store.projects.settings()
    caps = []
    if use.most.cost or not use.unpriced:
        caps.append(money(settings.run_cents * NANO_PER_CENT))
    if use.unpriced:
        caps.append(f"{plan.token_cap or settings.run_tokens:,} tokens of unpriced models")
    return f"never more than {' and '.join(caps)} a run"


def expected_of_table(asked: Sequence[tuple[str, str]], sources: Sequence[str], plan: Plan) -> str:
    """The same for all rows of a table; sources that rows name themselves are not counted."""
    with state.open_store() as store:
        project = state.project(store)
        entries = [e for e in (store.library.get(project.id, i) for i in sources) if e]
        return expectation(store, entries, asked, plan)


def sheet_of(name: str) -> RosterSheet | None:
    """The roster's sheet; None for the built-in engine, or when it was removed meanwhile."""
    if name == BUILT_IN:
        return None
    try:
        with state.open_store() as store:
            return sheet_named(name, store)
    except InputError as error:
        st.error(escaped(str(error)))
        return None


def draw_roster_keys(name: str, page: str) -> None:
    """Fields for keys that this roster needs and that the server does not have."""
    draw_keys_of_rosters([name], page)


def draw_keys_of_rosters(names: Sequence[str], page: str) -> None:
    """The same for several rosters, each key once."""
    sheets = [sheet for sheet in map(sheet_of, dict.fromkeys(names)) if sheet is not None]
    if sheets:
        state.warm_models()
        draw_keys_of(sheets, page)


def planned(
    name: str,
    max_turns: int,
    passages: int,
    *,
    protocol: str = "ceda",
    reuses: bool = False,
    options: DebateOptions = AS_IS,
) -> Plan:
    """The plan of a check by that roster, with its sheet as it is now.

    Raises:
        InputError: there is no such roster (any more).
    """
    sheet = None
    if name != BUILT_IN:
        with state.open_store() as store:
            sheet = sheet_named(name, store)
    return Plan(
        protocol,
        name,
        max_turns=max_turns,
        passages=passages,
        sheet=sheet,
        reuses_replies=reuses,
        options=options,
    )
