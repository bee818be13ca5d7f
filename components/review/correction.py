"""The form for a person's answer on a case: label, wrong words, reason, the right answer.

Answers are only ever appended.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components.app import state
from components.check.history import draw_decided_before
from components.review import correction_draft as form
from components.review.review_queue import rules_of
from components.widgets import drafts
from components.widgets.annotation_editors import Marked, boxes_of, draw_box_fields, span_editor
from components.widgets.controls import button, problem_kept, show_problem
from components.widgets.wording import LABEL_WORDS, clipped, escaped, when
from core.review.adjudication import record
from core.runtime.errors import InputError, ReviewError
from core.schema.progress import Progress
from core.schema.records import Case, Label, PersonRole, Run, new_id
from core.schema.reviews import Correction, Gold, Ratings, category_words
from core.store import Store

RATING_WORDS: dict[str, str] = {
    "accuracy": "Accuracy: are its facts right?",
    "coherence": "Coherence: does it hold together?",
    "consistency": "Consistency: does it keep to its sources?",
}
BESIDE = "|"  # separates the newest right answer and correction on Adjudicate
SUPPORTS = "supports"  # the category of a box that confirms the response
LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def take_back(correction: Correction, asked_id: str) -> None:
    """Withdraw the person's own answer by another entry; its queue item is claimed again."""
    key = form.key_of(asked_id)
    with problem_kept(f"{key}.problem"):
        with state.open_store() as store, store.writing():
            person, case = state.person(store), store.cases.get(correction.case_id)
            if case is None or (project := store.projects.get(case.project_id)) is None:
                return
            store.projects.require(project.id, person, "annotator", "take an answer back")
            undo = Correction(
                new_id(),
                correction.run_id,
                correction.case_id,
                person,
                time.time(),
                correction.label,
                machine_label=correction.machine_label,
                withdraws=correction.id,
            )
            record(store, undo, case)
            if all(each.author != person for each in store.corrections.of_case(case.id)):
                store.queue.again(case.id, person, rules_of(project), undo.at)
        if typed := drafts.kept(key):
            drafts.keep(key, typed | {"seen": undo.id})
            st.session_state[f"{key}.seen"] = undo.id
            return
        st.session_state.pop(f"{key}.looked", None)
        drafts.keep(key, {"from": correction.id, "seen": undo.id})


@st.fragment
def _draw_editor(target: form.CorrectionTarget, agrees: bool) -> None:
    """Draw the span editor; its changes are kept in the draft."""
    key = form.key_of(target.id)

    def changed(marked: Marked) -> None:
        st.session_state[f"{key}.marked"] = marked
        if marked.did == "accept_all":
            st.session_state[f"{key}.all"] = True
        form.keep(target.id)

    marked = form.marked_of(key, target.offered)
    categories = target.words | {m.category: category_words(m.category) for m in marked.marks}
    span_editor(
        target.case.response,
        marked,
        categories,
        changed,
        key=f"{key}.editor",
        language=target.case.language,
        none_words="No single word is wrong",
    )
    if agrees and any(mark.status == "suggested" for mark in marked.marks):
        st.caption("Saving accepts the suggestions that are still open.")


def _draw_quote(target: form.CorrectionTarget) -> None:
    key = form.key_of(target.id)
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    label, field = "Other wrong words, exactly as written", f"{key}.quote"
    quote = words.text_input(label, key=field, **form.kept_field(target.id, "quote"))
    places = form.places_of(target.case.response, quote or "")
    many = max(1, len(places))
    which.selectbox(
        "Which one",
        range(many),
        format_func=lambda i: f"{i + 1} of {many}",
        key=f"{key}.which",
        disabled=many < 2,
        **form.kept_field(target.id),
    )
    categories = target.words
    category.selectbox(
        "What is wrong",
        tuple(categories),
        format_func=categories.__getitem__,
        key=f"{key}.category",
        **form.kept_field(target.id),
    )
    with add:
        button("Mark", f"{key}.mark", _add_mark, target)
    if quote and not places:
        st.caption("These words do not appear in the response like this.")


def _add_mark(target: form.CorrectionTarget) -> None:
    key = form.key_of(target.id)
    if not form.places_of(target.case.response, str(st.session_state.get(f"{key}.quote") or "")):
        return  # a caption below the field explains it
    marked = form.marked_of(key, target.offered)
    st.session_state[f"{key}.marked"] = form.with_words(marked, *form.typed_place(target))
    st.session_state[f"{key}.quote"] = ""
    form.keep(target.id, "quote")


def newest_seen(store: Store, target: form.CorrectionTarget) -> str:
    """Return the newest entry that could conflict: the person's own if alone or blind."""
    if target.settles:
        golds = store.golds.of_case(target.case.id)
        gold = golds[-1].id if golds else ""
        return f"{gold}{BESIDE}{store.corrections.newest_id(target.case.id)}"
    author = state.person(store) if target.is_alone or target.is_blind else ""
    return store.corrections.newest_id(target.case.id, author)


def save(target: form.CorrectionTarget, chosen: Label) -> None:
    """Append the correction; on a problem or conflict the form keeps what was typed."""
    key = form.key_of(target.id)
    try:
        with state.open_store() as store:
            correction = _build_correction(target, chosen, state.person(store))
            with store.writing():
                role: PersonRole = "lead" if target.settles else "annotator"
                action = "settle a case" if target.settles else "correct a verdict"
                store.projects.require(target.case.project_id, correction.author, role, action)
                newest = newest_seen(store, target)
                if newest != st.session_state.get(f"{key}.seen", newest):
                    st.session_state[f"{key}.conflict"] = newest
                    return
                target.record(store, correction, target.case)
                target.after(store, correction)
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        st.session_state[f"{key}.stamp"] = time.time()  # moves the cursor to the reason
        return
    form.forget(target.id)
    st.toast(f"Saved. {_describe_use(correction, target)}", icon=":material/check:")


def _draw_conflict(target: form.CorrectionTarget) -> None:
    """Draw what others saved while the form was open, with the two ways to go on."""
    key = form.key_of(target.id)
    newest = st.session_state.get(f"{key}.conflict")
    if not newest:
        return
    gold, _, correction_id = str(newest).rpartition(BESIDE)
    theirs: Correction | Gold | None
    with state.open_store() as store:
        if gold and gold != str(st.session_state[f"{key}.seen"]).rpartition(BESIDE)[0]:
            theirs = store.golds.of_case(target.case.id)[-1]
        else:
            theirs = store.corrections.get(correction_id)
        person = state.person(store)
    if theirs is None:
        return
    who = "You, in another window," if theirs.author == person else f"**{escaped(theirs.author)}**"
    action = f"settled it: {LABEL_WORDS[theirs.label].lower()}"
    if isinstance(theirs, Correction):
        action = "took an answer back" if theirs.withdraws else form.said_words(theirs)
    st.warning(
        f"{who} {action} while this was open. Nothing of yours was saved yet.",
        icon=":material/call_split:",
    )
    with st.container(horizontal=True):
        button("Save mine after it", f"{key}.conflict.save", _save_after, target, newest)
        button("Keep that, discard mine", f"{key}.conflict.drop", form.forget, target.id)


def _save_after(target: form.CorrectionTarget, newest: str) -> None:
    """Save after a conflict that the person has seen; a newer entry is a conflict again."""
    key = form.key_of(target.id)
    st.session_state[f"{key}.seen"] = newest
    st.session_state.pop(f"{key}.conflict", None)
    chosen: Label = st.session_state[f"{key}.label"]
    save(target, chosen)


def _build_correction(target: form.CorrectionTarget, chosen: Label, person: str) -> Correction:
    """Return the form's fields as a correction. Raises InputError for unknown wrong words."""
    key = form.key_of(target.id)
    now = time.time()
    correction = Correction(
        id=new_id(),
        run_id=target.run.id if target.run else None,
        case_id=target.case.id,
        author=person,
        at=now,
        label=chosen,
        reason=_read_field(key, "reason"),
        corrected_answer=_read_field(key, "answer"),
        seconds=round(now - st.session_state.get(f"{key}.began", now), 1),
        machine_label=target.machine,
        is_blind=target.is_blind,
        evidence=form.evidence_of(key),
        boxes=boxes_of(key),
        ratings=Ratings(*(st.session_state.get(f"{key}.{name}") for name in form.RATINGS)),
        comment=_read_field(key, "comment"),
        sure=st.session_state.get(f"{key}.sure"),
    )
    if chosen != "hallucinated":
        return correction
    words = str(st.session_state.get(f"{key}.quote") or "")
    if words.strip() and not form.places_of(target.case.response, words):
        raise InputError(
            f"“{clipped(words, 60)}” does not appear in the response like this. Give the words "
            "exactly as written, or empty that field."
        )
    marked = form.marked_of(key, target.offered)
    if words.strip():  # words still in the field count too
        marked = form.with_words(marked, *form.typed_place(target))
    if target.told == "hallucinated":  # agreeing accepts open suggestions
        marked = form.accepting_open(marked)
    in_one_go = st.session_state.get(f"{key}.all") or marked.did == "accept_all"
    return replace(
        correction,
        spans=tuple(dict.fromkeys(form.spans_of(marked, target.case, target.offered, person))),
        rejected=tuple(form.rejected_of(marked, target.offered)),
        is_unmarked=marked.none,
        accepted_all=bool(in_one_go) and form.accepted_all(marked, target.offered),
    )


def _read_field(key: str, name: str) -> str:
    return str(st.session_state.get(f"{key}.{name}") or "").strip()


def _describe_use(correction: Correction, target: form.CorrectionTarget) -> str:
    """Return what the classifier can learn from it, by the rules of `training_set`."""
    if target.settles:
        return "It is the right answer from now on."
    if correction.label == "unclear":
        return "Nothing is learned from a case that is unclear to people too."
    judgement = target.progress.judgement
    if judgement is None or judgement.label == "unclear" or not judgement.text:
        return "The judge reached no verdict here, so there is no text to learn from."
    return "It will count at the next retraining."


def _draw_more(target: form.CorrectionTarget) -> None:
    """Draw a switch for more fields; their values count even if it is off."""
    key = form.key_of(target.id)
    marks = len(form.evidence_of(key)) + len(boxes_of(key))
    words = "More: how sure, ratings, comment, evidence" + (f" ({marks} marked)" if marks else "")
    if not st.toggle(words, key=f"{key}.more", persist_state="session"):
        return
    st.segmented_control(
        "How sure are you?",
        list(form.SURE_WORDS),
        format_func=form.SURE_WORDS.__getitem__,
        key=f"{key}.sure",
        **form.kept_field(target.id),
    )
    for column, name in zip(st.columns(len(form.RATINGS)), form.RATINGS, strict=True):
        column.segmented_control(
            RATING_WORDS[name],
            range(1, 6),
            key=f"{key}.{name}",
            help="1 is poor, 5 is good",
            **form.kept_field(target.id),
        )
    st.text_area(
        "Comment", key=f"{key}.comment", height=68, **form.kept_field(target.id, "comment")
    )
    st.markdown("Words of the sources that support or contradict it")
    sources = form.sources_of(target.case)
    form.draw_evidence_marks(key, sources, lambda: form.keep(target.id))
    if images := [source for source in sources if source.is_image]:
        st.markdown("Regions of the images that show it wrong, or right")
        categories = {**target.words, SUPPORTS: "supports it"}
        draw_box_fields(key, images, categories, lambda: form.keep(target.id))


def draw_corrections(
    run: Run, case: Case, progress: Progress, corrections: Sequence[Correction]
) -> None:
    """Draw people's answers and the form for another one."""
    st.subheader("Your judgement", anchor=False)
    with state.open_store() as store:
        person, project = state.person(store), store.projects.get(case.project_id)
        suggestions = tuple(store.golds.suggestions(case.id))
        golds = store.golds.of_case(case.id)
    form.draw_settled(golds)
    draw_answers(corrections, person, run.id)
    target = form.CorrectionTarget(run, case, progress, suggestions=suggestions)
    if project is not None:
        # An answer given in sight of the verdict is not blind, so blind review still asks for one.
        after = target.after if project.is_blind else _end_assignment
        target = replace(target, categories=project.categories, after=after)
    draw_judgement(target)


def _end_assignment(store: Store, correction: Correction) -> None:
    """End the author's queue item, so that the queue does not ask the same again."""
    if store.queue.get(correction.case_id) is not None:
        store.queue.end(correction.case_id, correction.author, "submitted", correction.at)


def draw_answers(corrections: Sequence[Correction], person: str, asked_id: str) -> None:
    """Draw the answers; the person's own newest one can be withdrawn."""
    own = [c.id for c in corrections if c.author == person][-1:]
    for correction in corrections:
        words = f"**{escaped(correction.author)}** {form.said_words(correction)}"
        words += f"  \n:gray[{when(correction.at)}]"
        if correction.id not in own:
            st.markdown(words)
            continue
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.markdown(words)
        with right:
            key = f"said.{correction.id}.back"
            button("Undo", key, take_back, correction, asked_id, icon="undo")


def draw_judgement(target: form.CorrectionTarget) -> None:
    """Draw the label buttons and, once one is chosen, the form."""
    key = form.key_of(target.id)
    form.restore(target)
    if not target.is_blind:
        draw_decided_before(target.case)
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            words = ("Agree: " if label == target.told else "It is ") + LABEL_WORDS[label].lower()
            keys, shortcut = f"{key}.choose.{label}", f"Alt+{number}"
            button(words, keys, choose, target, label, shortcut=shortcut)
    chosen = st.session_state.get(f"{key}.label")
    drafts.watch(
        f"{key}.watch",
        {name: f"{key}.{name}" for name in form.TEXTS},
        lambda texts: form.keep_typed(target.id, texts),
        focus=f"{key}.reason" if chosen in LABELS else "",
        stamp=float(st.session_state.get(f"{key}.stamp") or 0.0),
        shortcuts="".join(str(number) for number in range(1, len(LABELS) + 1)),
    )
    if chosen in LABELS:
        _draw_form(target, chosen)
    elif problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem))


def choose(target: form.CorrectionTarget, label: Label) -> None:
    """Open the form with that label, the cursor in its first field."""
    key = form.key_of(target.id)
    if f"{key}.seen" not in st.session_state:
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, target)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    st.session_state.setdefault(f"{key}.began", time.time())
    form.keep(target.id)


def _draw_form(target: form.CorrectionTarget, chosen: Label) -> None:
    """Draw the fields; until saved they outlive leaving or reloading the page."""
    key = form.key_of(target.id)
    needed = ""
    if target.corrects:
        needed = "correct the right answer so far"
    elif target.told not in (None, chosen):
        needed = "overturn the verdict"
    with st.container(border=True):
        intro = "The right answer is" if target.settles else "You say"
        st.markdown(f"{intro}: **{LABEL_WORDS[chosen].lower()}**")
        show_problem(f"{key}.problem")
        label = f"Reason ({f'needed to {needed}' if needed else 'if you like'})"
        st.text_area(label, key=f"{key}.reason", height=68, **form.kept_field(target.id, "reason"))
        if chosen == "hallucinated":
            _draw_editor(target, target.told == chosen)
            with st.expander("Mark words by pasting them", icon=":material/content_paste:"):
                _draw_quote(target)
        label = "The right answer, if you know it"
        st.text_area(label, key=f"{key}.answer", height=68, **form.kept_field(target.id, "answer"))
        if not target.settles:
            _draw_more(target)
        _draw_conflict(target)
        keys = {"type": "primary", "shortcut": "Ctrl+Enter"}
        with st.container(horizontal=True):
            button("Save", f"{key}.save", save, target, chosen, **keys)
            button("Discard", f"{key}.discard", form.forget, target.id)
