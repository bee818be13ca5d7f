"""A person's judgement on a case: label, exact words, reason, the right answer; appended.

Saving shows first what somebody else saved meanwhile. Undo is another entry, with the form open
again.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components.app import state
from components.check.history import draw_decided_before
from components.review.correction_draft import (
    RATINGS,
    SURE_WORDS,
    TEXTS,
    Asked,
    accepted_all,
    accepting_open,
    draw_evidence_marks,
    draw_said,
    draw_settled,
    evidence_of,
    forget,
    keep,
    keep_typed,
    kept_field,
    key_of,
    marked_of,
    places_of,
    rejected_of,
    restore,
    said_words,
    sources_of,
    spans_of,
    typed_place,
    with_words,
)
from components.review.review_queue import rules_of
from components.widgets import drafts
from components.widgets.annotation_editors import Marked, boxes_of, draw_box_fields, span_editor
from components.widgets.controls import button, problem_kept, show_problem
from components.widgets.wording import LABEL_WORDS, clipped, escaped
from core.review.adjudication import record
from core.runtime.errors import InputError, ReviewError
from core.schema.progress import Progress
from core.schema.records import Case, Label, Run, new_id
from core.schema.reviews import Correction, Gold, Ratings, category_words
from core.store import Store


def take_back(correction: Correction, asked_id: str) -> None:
    """Withdraw one's own answer: another entry.

    The form opens with it when the case is shown, unless something is being typed there: that
    stays. Where nothing else that they said stands, an item of the queue comes back into their
    hands.
    """
    key = key_of(asked_id)
    with problem_kept(f"{key}.problem"):
        with state.open_store() as store, store.writing():
            person, case = state.person(store), store.cases.get(correction.case_id)
            if case is None or (project := store.projects.get(case.project_id)) is None:
                return
            store.projects.require(project.id, person, "annotator", "take an answer back")
            undo = Correction(
                id=new_id(),
                run_id=correction.run_id,
                case_id=correction.case_id,
                author=person,
                at=time.time(),
                label=correction.label,
                machine_label=correction.machine_label,
                withdraws=correction.id,
            )
            record(store, undo, case)
            if all(said.author != person for said in store.corrections.of_case(case.id)):
                store.queue.again(case.id, person, rules_of(project), undo.at)
        if typed := drafts.kept(key):
            drafts.keep(key, typed | {"seen": undo.id})
            st.session_state[f"{key}.seen"] = undo.id
            return
        st.session_state.pop(f"{key}.looked", None)
        drafts.keep(key, {"from": correction.id, "seen": undo.id})


NONE_WORDS = "No single word is wrong"


def draw_span_fields(asked: Asked, *, agrees: bool) -> None:
    """The editor over the response, offered spans as suggestions, and a field for quotes."""
    _draw_editor(asked, agrees)
    with st.expander("Mark words by pasting them", icon=":material/content_paste:"):
        _draw_quote(asked)


@st.fragment
def _draw_editor(asked: Asked, agrees: bool) -> None:
    key = key_of(asked.id)

    def changed(marked: Marked) -> None:
        st.session_state[f"{key}.marked"] = marked
        if marked.did == "accept_all":
            st.session_state[f"{key}.all"] = True
        keep(asked.id)

    marked = marked_of(key, asked.offered)
    categories = asked.words | {m.category: category_words(m.category) for m in marked.marks}
    span_editor(
        asked.case.response,
        marked,
        categories,
        changed,
        key=f"{key}.editor",
        language=asked.case.language,
        none_words=NONE_WORDS,
    )
    if agrees and any(mark.status == "suggested" for mark in marked.marks):
        st.caption("Saving accepts the suggestions that are still open.")


def _draw_quote(asked: Asked) -> None:
    key = key_of(asked.id)
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    with words:
        quote = st.text_input(
            "Other wrong words, exactly as they stand",
            key=f"{key}.quote",
            **kept_field(asked.id, "quote"),
        )
    places = places_of(asked.case.response, quote or "")
    with which:
        st.selectbox(
            "Which one",
            options=range(max(1, len(places))),
            format_func=lambda i: f"{i + 1} of {max(1, len(places))}",
            key=f"{key}.which",
            **kept_field(asked.id),
            disabled=len(places) < 2,
        )
    with category:
        categories = asked.words
        st.selectbox(
            "What is wrong",
            options=tuple(categories),
            format_func=lambda c: categories[c],
            key=f"{key}.category",
            **kept_field(asked.id),
        )
    with add:
        button("Mark", f"{key}.mark", _add_mark, asked)
    if quote and not places:
        st.caption("These words do not stand in the response like this.")


def _add_mark(asked: Asked) -> None:
    key = key_of(asked.id)
    if not places_of(asked.case.response, str(st.session_state.get(f"{key}.quote") or "")):
        return  # the form says so below the field
    marked = marked_of(key, asked.offered)
    st.session_state[f"{key}.marked"] = with_words(marked, *typed_place(asked))
    st.session_state[f"{key}.quote"] = ""
    keep(asked.id, "quote")


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
        button("Save mine after it", f"{key}.conflict.save", _save_after, asked, newest)
        button("Keep that, discard mine", f"{key}.conflict.drop", forget, asked.id)


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


SUPPORTS = "supports"  # what a box shows that bears the response out
RATING_WORDS = {
    "accuracy": "Accuracy: are its facts right?",
    "coherence": "Coherence: does it hold together?",
    "consistency": "Consistency: does it keep to its sources?",
}


def draw_more(asked: Asked) -> None:
    """A switch, and behind it the fields; what stands in them counts also when it is off."""
    key = key_of(asked.id)
    marks = len(evidence_of(key)) + len(boxes_of(key))
    words = "More: how sure, ratings, comment, evidence" + (f" ({marks} marked)" if marks else "")
    if not st.toggle(words, key=f"{key}.more", persist_state="session"):
        return
    st.segmented_control(
        "How sure are you?",
        list(SURE_WORDS),
        format_func=lambda value: SURE_WORDS[value],
        key=f"{key}.sure",
        **kept_field(asked.id),
    )
    for column, name in zip(st.columns(len(RATINGS)), RATINGS, strict=True):
        column.segmented_control(
            RATING_WORDS[name],
            range(1, 6),
            key=f"{key}.{name}",
            **kept_field(asked.id),
            help="1 is poor, 5 is good",
        )
    st.text_area(
        "Comment",
        key=f"{key}.comment",
        height=68,
        **kept_field(asked.id, "comment"),
    )
    st.markdown("Words of the sources that support or contradict it")
    sources = sources_of(asked.case)
    draw_evidence_marks(key, sources, lambda: keep(asked.id))
    if images := [source for source in sources if source.is_image]:
        st.markdown("Regions of the images that show it wrong, or right")
        categories = {**asked.words, SUPPORTS: "supports it"}
        draw_box_fields(key, images, categories, lambda: keep(asked.id))


LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def draw_corrections(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """What people said so far, and the form to say something."""
    st.subheader("Your judgement", anchor=False)
    with state.open_store() as store:
        person, project = state.person(store), store.projects.get(case.project_id)
        suggestions = tuple(store.golds.suggestions(case.id))
        golds = store.golds.of_case(case.id)
    draw_settled(golds)
    draw_answers(corrections, person, run.id)
    asked = Asked(run, case, progress, suggestions=suggestions)
    if project is not None:
        # What was said in sight of the verdict is no blind answer: there they are still asked.
        after = asked.after if project.is_blind else _given
        asked = replace(asked, categories=project.categories, after=after)
    draw_judgement(asked)


def _given(store: Store, correction: Correction) -> None:
    """Who answers outside the queue is not asked the same there again."""
    if store.queue.get(correction.case_id) is not None:
        store.queue.end(correction.case_id, correction.author, "submitted", correction.at)


def draw_answers(corrections: Sequence[Correction], person: str, asked_id: str) -> None:
    """What was said; one's own newest answer can be taken back."""
    own = [c.id for c in corrections if c.author == person]
    for correction in corrections:
        if correction.id not in own[-1:]:
            draw_said(correction)
            continue
        left, right = st.columns([6, 1], vertical_alignment="center")
        with left:
            draw_said(correction)
        right.button(
            "Undo",
            key=f"said.{correction.id}.back",
            icon=":material/undo:",
            on_click=take_back,
            args=(correction, asked_id),
        )


def draw_judgement(asked: Asked) -> None:
    """The form to say something; it opens with a label."""
    key = key_of(asked.id)
    restore(asked)
    if not asked.is_blind:
        draw_decided_before(asked.case)
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            button(
                ("Agree: " if label == asked.told else "It is ") + LABEL_WORDS[label].lower(),
                f"{key}.choose.{label}",
                choose,
                asked,
                label,
                shortcut=f"Alt+{number}",
            )
    chosen = st.session_state.get(f"{key}.label")
    drafts.watch(
        f"{key}.watch",
        {name: f"{key}.{name}" for name in TEXTS},
        lambda texts: keep_typed(asked.id, texts),
        focus=f"{key}.reason" if chosen in LABELS else "",
        stamp=float(st.session_state.get(f"{key}.stamp") or 0.0),
        shortcuts="".join(str(number) for number in range(1, len(LABELS) + 1)),
    )
    if chosen in LABELS:
        _draw_form(asked, chosen)
    elif problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem))


def choose(asked: Asked, label: Label) -> None:
    """Open the form on that label, with the cursor in its first field."""
    key = key_of(asked.id)
    if f"{key}.seen" not in st.session_state:
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, asked)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    st.session_state.setdefault(f"{key}.began", time.time())
    keep(asked.id)


def _draw_form(asked: Asked, chosen: Label) -> None:
    """The fields; nothing is lost when the page is left or reloaded, until it is saved."""
    key = key_of(asked.id)
    needed = "overturn the verdict" if asked.told not in (None, chosen) else ""
    needed = "correct the right answer so far" if asked.corrects else needed
    with st.container(border=True):
        said = "The right answer is" if asked.settles else "You say"
        st.markdown(f"{said}: **{LABEL_WORDS[chosen].lower()}**")
        show_problem(f"{key}.problem")
        st.text_area(
            f"Reason ({f'needed to {needed}' if needed else 'if you like'})",
            key=f"{key}.reason",
            height=68,
            **kept_field(asked.id, "reason"),
        )
        if chosen == "hallucinated":
            draw_span_fields(asked, agrees=asked.told == chosen)
        st.text_area(
            "The right answer, if you know it",
            key=f"{key}.answer",
            height=68,
            **kept_field(asked.id, "answer"),
        )
        if not asked.settles:
            draw_more(asked)
        draw_conflict(asked)
        with st.container(horizontal=True):
            button(
                "Save", f"{key}.save", save, asked, chosen, type="primary", shortcut="Ctrl+Enter"
            )
            button("Discard", f"{key}.discard", forget, asked.id)
