"""How a text is to be checked: by which protocol, and with what an admin chose of it."""

from __future__ import annotations

import streamlit as st

from components import state
from components.words import escaped, protocol_words
from core.checking import PROTOCOLS
from core.manners import AS_IS, DebateOptions
from core.records import Project
from core.store import Store

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
OFFERED = (*EVERYDAY, *(name for name in PROTOCOLS if name not in EVERYDAY))


def draw_protocol_choice(key: str) -> str:
    """The choice, with what happens and when it fits; at first what the person chose here last.

    Names alone are what a phone has room for in the list; the chosen one is told in whole below.
    """
    with state.open_store() as store:
        usual = usual_protocol(store, state.project(store))
    chosen = st.selectbox(
        "How to check",
        OFFERED,
        index=OFFERED.index(usual),
        format_func=lambda name: protocol_words(name, short=True),
        key=key,
        help="\n".join(f"- {escaped(protocol_words(name))}" for name in OFFERED),
        persist_state="session",
    )
    protocol = str(chosen or usual)
    st.caption(escaped(f"{happens(protocol)} {FITS.get(protocol, '')}".strip()))
    return protocol


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
