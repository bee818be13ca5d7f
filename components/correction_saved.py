"""Saving a correction, and what happens where somebody saved one meanwhile."""

from __future__ import annotations

import time
from dataclasses import replace

import streamlit as st

from components import state
from components.box_fields import boxes_of
from components.correction_asked import Asked, said_words
from components.correction_draft import RATINGS, forget, key_of, places_of, typed_place
from components.correction_marks import (
    accepted_all,
    accepting_open,
    marked_of,
    rejected_of,
    spans_of,
    with_words,
)
from components.evidence_marks import evidence_of
from components.span_editor.marks import Marked
from components.words import LABEL_WORDS, clipped, escaped
from core.errors import InputError, ReviewError
from core.jobs import new_id
from core.progress import Progress
from core.records import Label
from core.reviews import Correction, Gold, Ratings
from core.store import Store

BESIDE = "|"  # between the newest right answer and the newest correction, for who settles


def newest_seen(store: Store, asked: Asked) -> str:
    """The newest entry that this form is about: everybody's, or one's own where people are alone.

    Blind, it is one's own too: that others have answered must not be told.
    """
    if asked.settles:
        golds = store.golds.of_case(asked.case.id)
        gold = golds[-1].id if golds else ""
        return f"{gold}{BESIDE}{store.corrections.newest_id(asked.case.id)}"
    author = state.person(store) if asked.is_alone or asked.is_blind else ""
    return store.corrections.newest_id(asked.case.id, author)


def save(asked: Asked, chosen: Label) -> None:
    """Append the correction; on a problem or a conflict nothing typed is lost."""
    key = key_of(asked.id)
    try:
        with state.open_store() as store:
            correction = _made(asked, chosen, state.person(store))
            with store.writing():
                store.projects.require(
                    asked.case.project_id, correction.author, asked.needs, asked.doing
                )
                newest = newest_seen(store, asked)
                if newest != st.session_state.get(f"{key}.seen", newest):
                    st.session_state[f"{key}.conflict"] = newest
                    return
                asked.record(store, correction, asked.case)
                asked.after(store, correction)
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        st.session_state[f"{key}.stamp"] = time.time()  # the cursor goes to the reason
        return
    forget(asked.id)
    st.toast(f"Saved. {_use_of(correction, asked)}", icon=":material/check:")


def draw_conflict(asked: Asked) -> None:
    """What was saved meanwhile, and the two ways out."""
    key = key_of(asked.id)
    newest = st.session_state.get(f"{key}.conflict")
    if not newest:
        return
    with state.open_store() as store:
        theirs = _saved_meanwhile(store, asked, newest, str(st.session_state[f"{key}.seen"]))
        person = state.person(store)
    if theirs is None:
        return
    who = "You, in another window," if theirs.author == person else f"**{escaped(theirs.author)}**"
    told = f"settled it: {LABEL_WORDS[theirs.label].lower()}"
    if isinstance(theirs, Correction):
        told = "took an answer back" if theirs.withdraws else said_words(theirs)
    st.warning(
        f"{who} {told} while this was open. Nothing of yours was saved yet.",
        icon=":material/call_split:",
    )
    with st.container(horizontal=True):
        st.button(
            "Save mine after it",
            key=f"{key}.conflict.save",
            on_click=_save_after,
            args=(asked, newest),
        )
        st.button(
            "Keep that, discard mine", key=f"{key}.conflict.drop", on_click=forget, args=(asked.id,)
        )


def _saved_meanwhile(
    store: Store, asked: Asked, newest: str, seen: str
) -> Correction | Gold | None:
    """What came after what the form was opened on: a right answer, where that is what is new."""
    gold, _, said = newest.rpartition(BESIDE)
    if gold and gold != seen.rpartition(BESIDE)[0]:
        return store.golds.of_case(asked.case.id)[-1]
    return store.corrections.get(said)


def _save_after(asked: Asked, newest: str) -> None:
    """They have seen what was saved meanwhile and go on; anything newer is a conflict again."""
    key = key_of(asked.id)
    st.session_state[f"{key}.seen"] = newest
    st.session_state.pop(f"{key}.conflict", None)
    chosen: Label = st.session_state[f"{key}.label"]
    save(asked, chosen)


def _made(asked: Asked, chosen: Label, person: str) -> Correction:
    """The correction as the form has it.

    Raises:
        InputError: words are still in the field for them, and do not stand in the response.
    """
    key = key_of(asked.id)
    now = time.time()
    made = Correction(
        id=new_id(),
        run_id=asked.run.id if asked.run else None,
        case_id=asked.case.id,
        author=person,
        at=now,
        label=chosen,
        reason=_typed(key, "reason"),
        corrected_answer=_typed(key, "answer"),
        seconds=round(now - st.session_state.get(f"{key}.began", now), 1),
        machine_label=asked.machine,
        is_blind=asked.is_blind,
        evidence=evidence_of(key),
        boxes=boxes_of(key),
        ratings=Ratings(*(st.session_state.get(f"{key}.{name}") for name in RATINGS)),
        comment=_typed(key, "comment"),
        sure=st.session_state.get(f"{key}.sure"),
    )
    if chosen != "hallucinated":
        return made
    words = str(st.session_state.get(f"{key}.quote") or "")
    if words.strip() and not places_of(asked.case.response, words):
        raise InputError(
            f"“{clipped(words, 60)}” does not stand in the response like this. Give the words "
            "exactly as they stand, or empty that field."
        )
    marked = _marked(asked, words)
    in_one_go = st.session_state.get(f"{key}.all") or marked.did == "accept_all"
    return replace(
        made,
        spans=tuple(dict.fromkeys(spans_of(marked, asked.case, asked.offered, person))),
        rejected=tuple(rejected_of(marked, asked.offered)),
        is_unmarked=marked.none,
        accepted_all=bool(in_one_go) and accepted_all(marked, asked.offered),
    )


def _typed(key: str, name: str) -> str:
    return str(st.session_state.get(f"{key}.{name}") or "").strip()


def _marked(asked: Asked, typed: str) -> Marked:
    """What stands in the editor, words still in the field too; who agrees accepts what is open."""
    marked = marked_of(key_of(asked.id), asked.offered)
    if typed.strip():
        marked = with_words(marked, *typed_place(asked))
    return accepting_open(marked) if asked.told == "hallucinated" else marked


def _use_of(correction: Correction, asked: Asked) -> str:
    """What the classifier can make of it; `training_set` counts corrections the same way."""
    if asked.settles:
        return "It is the right answer from now on."
    if correction.label == "unclear":
        return "Nothing is learned from a case that is unclear to people too."
    if not _has_text(asked.progress):
        return "The judge reached no verdict here, so there is no text to learn from."
    return "It will count at the next retraining."


def _has_text(progress: Progress) -> bool:
    judgement = progress.judgement
    return judgement is not None and judgement.label != "unclear" and bool(judgement.text)
