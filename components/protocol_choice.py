"""How a text is to be checked: debated as a whole, or audited statement by statement."""

from __future__ import annotations

import streamlit as st

from components import state
from components.words import escaped, protocol_words
from core.checking import PROTOCOLS
from core.records import Project
from core.store import Store

FITS = {
    "ceda": "Debate fits a single claim or a short answer that rests on your documents: agents "
    "argue about the whole of it.",
    "single": "A single judge is the quickest way, and the baseline of every debate.",
    "ensemble": "An ensemble shows what many heads come to without arguing; where as many say yes "
    "as no, a coin decides and is said to.",
    "adaptive": "Adaptive saves calls: a single judge decides what is plain, and a debate is held "
    "only where the judge is unsure or the built-in readers contradict it.",
    "colmad": "ColMAD fits what is hard to see: debaters share one goal, add what the others "
    "missed, and say how sure they are and where they may be mistaken.",
    "copmad": "CopMAD shows the best case for either side. Who argues better may win: it is here "
    "to be compared with.",
    "society": "A society of minds fits questions that several can think through alone and then "
    "learn from each other: no judge decides, but most of the last answers do.",
    "sc_maks": "SC-MAKS is the most thorough and the costliest: every agent advises and attacks "
    "every other in each round, and what is wrong is written anew.",
    "mad": "Tit for tat fits claims that look right at once: somebody has to speak against the "
    "first view, and a judge ends the debate as soon as the answer is clear.",
    "mamm_refine": "MAMM-REFINE fits a text that you want to put right: what most agents hold to "
    "be wrong is mended, and you take the better text or leave it.",
    "audit": "Audit fits a long response, and one with sums, dates, code or a length asked for: "
    "each statement is checked with the tool that fits it, and only what stays contested is "
    "debated.",
}
NAMES = {
    "ceda": "Debate",
    "single": "Single judge",
    "ensemble": "Ensemble",
    "colmad": "ColMAD",
    "copmad": "CopMAD",
    "adaptive": "Adaptive",
    "society": "Society of minds",
    "mad": "Tit for tat",
    "mamm_refine": "MAMM-REFINE",
    "sc_maks": "SC-MAKS",
    "audit": "Audit",
}


# Whoever only wants to check a text finds what fits above the papers' other ways to argue.
EVERYDAY = ("ceda", "audit", "single", "adaptive")
OFFERED = (*EVERYDAY, *(name for name in PROTOCOLS if name not in EVERYDAY))


def draw_protocol_choice(key: str) -> str:
    """The choice with a sentence on when it fits; at first what the person chose here last."""
    with state.open_store() as store:
        usual = usual_protocol(store, state.project(store))
    chosen = st.selectbox(
        "How to check",
        OFFERED,
        index=OFFERED.index(usual),
        format_func=_sentence,
        key=key,
        persist_state="session",
    )
    protocol = str(chosen or usual)
    st.caption(escaped(FITS.get(protocol, protocol_words(protocol))))
    return protocol


def _sentence(name: str) -> str:
    """Its name on the page, with what happens in a sentence."""
    short, _, words = protocol_words(name).partition(":")
    return f"{NAMES.get(name, short)}:{words}" if words else NAMES.get(name, short)


def usual_protocol(store: Store, project: Project) -> str:
    """What whoever is here chose in the project last, else what the project says."""
    kept = store.projects.note(_note(project, state.person(store))) or project.protocol
    return kept if kept in PROTOCOLS else PROTOCOLS[0]


def keep_protocol(store: Store, project: Project, person: str, protocol: str) -> None:
    """Remember the choice in the project; call it in the transaction that stores the case."""
    if store.projects.note(_note(project, person)) != protocol:
        store.projects.save_note(_note(project, person), protocol)


def _note(project: Project, person: str) -> str:
    return f"protocol.{project.id}.{person}"
