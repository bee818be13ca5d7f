"""A person's judgement on a case: label, exact words, reason, the right answer; appended."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import streamlit as st

from components.app import state
from components.check.history import draw_decided_before
from components.review import WORDS
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


def take_back(correction: Correction, asked_id: str) -> None:
    """Withdraw one's own answer by another entry; the queue's item comes back to hand."""
    key = form.key_of(asked_id)
    with problem_kept(f"{key}.problem"):
        with state.open_store() as store, store.writing():
            person, case = state.person(store), store.cases.get(correction.case_id)
            if case is None or (project := store.projects.get(case.project_id)) is None:
                return
            store.projects.require(project.id, person, "annotator", "take an answer back")
            undo = Correction(
                new_id(), correction.run_id, correction.case_id, person, time.time(),
                correction.label, machine_label=correction.machine_label, withdraws=correction.id,
            )  # fmt: skip
            record(store, undo, case)
            if all(said.author != person for said in store.corrections.of_case(case.id)):
                store.queue.again(case.id, person, rules_of(project), undo.at)
        if typed := drafts.kept(key):
            drafts.keep(key, typed | {"seen": undo.id})
            st.session_state[f"{key}.seen"] = undo.id
            return
        st.session_state.pop(f"{key}.looked", None)
        drafts.keep(key, {"from": correction.id, "seen": undo.id})


@st.fragment
def _draw_editor(asked: form.CorrectionTarget, agrees: bool) -> None:
    key = form.key_of(asked.id)

    def changed(marked: Marked) -> None:
        st.session_state[f"{key}.marked"] = marked
        if marked.did == "accept_all":
            st.session_state[f"{key}.all"] = True
        form.keep(asked.id)

    marked = form.marked_of(key, asked.offered)
    categories = asked.words | {m.category: category_words(m.category) for m in marked.marks}
    span_editor(
        asked.case.response, marked, categories, changed,
        key=f"{key}.editor", language=asked.case.language, none_words="No single word is wrong",
    )  # fmt: skip
    if agrees and any(mark.status == "suggested" for mark in marked.marks):
        st.caption("Saving accepts the suggestions that are still open.")


def _draw_quote(asked: form.CorrectionTarget) -> None:
    key = form.key_of(asked.id)
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    label, field = "Other wrong words, exactly as written", f"{key}.quote"
    quote = words.text_input(label, key=field, **form.kept_field(asked.id, "quote"))
    places = form.places_of(asked.case.response, quote or "")
    many = max(1, len(places))
    which.selectbox(
        "Which one", range(many), format_func=lambda i: f"{i + 1} of {many}",
        key=f"{key}.which", disabled=many < 2, **form.kept_field(asked.id),
    )  # fmt: skip
    categories = asked.words
    category.selectbox(
        "What is wrong", tuple(categories), format_func=categories.__getitem__,
        key=f"{key}.category", **form.kept_field(asked.id),
    )  # fmt: skip
    with add:
        button("Mark", f"{key}.mark", _add_mark, asked)
    if quote and not places:
        st.caption("These words do not appear in the response like this.")


def _add_mark(asked: form.CorrectionTarget) -> None:
    key = form.key_of(asked.id)
    if not form.places_of(asked.case.response, str(st.session_state.get(f"{key}.quote") or "")):
        return  # the form says so below the field
    marked = form.marked_of(key, asked.offered)
    st.session_state[f"{key}.marked"] = form.with_words(marked, *form.typed_place(asked))
    st.session_state[f"{key}.quote"] = ""
    form.keep(asked.id, "quote")


BESIDE = "|"  # between the newest right answer and the newest correction, for who settles


def newest_seen(store: Store, asked: form.CorrectionTarget) -> str:
    """The newest entry that this form is about: everybody's, or one's own if alone or blind."""
    if asked.settles:
        golds = store.golds.of_case(asked.case.id)
        gold = golds[-1].id if golds else ""
        return f"{gold}{BESIDE}{store.corrections.newest_id(asked.case.id)}"
    author = state.person(store) if asked.is_alone or asked.is_blind else ""
    return store.corrections.newest_id(asked.case.id, author)


def save(asked: form.CorrectionTarget, chosen: Label) -> None:
    """Append the correction; on a problem or a conflict nothing typed is lost."""
    key = form.key_of(asked.id)
    try:
        with state.open_store() as store:
            correction = _made(asked, chosen, state.person(store))
            with store.writing():
                needs: tuple[PersonRole, str] = ("annotator", "correct a verdict")
                if asked.settles:
                    needs = ("lead", "settle a case")
                store.projects.require(asked.case.project_id, correction.author, *needs)
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
    form.forget(asked.id)
    st.toast(f"Saved. {_use_of(correction, asked)}", icon=":material/check:")


def _draw_conflict(asked: form.CorrectionTarget) -> None:
    key = form.key_of(asked.id)
    newest = st.session_state.get(f"{key}.conflict")
    if not newest:
        return
    gold, _, said = str(newest).rpartition(BESIDE)
    theirs: Correction | Gold | None
    with state.open_store() as store:
        if gold and gold != str(st.session_state[f"{key}.seen"]).rpartition(BESIDE)[0]:
            theirs = store.golds.of_case(asked.case.id)[-1]
        else:
            theirs = store.corrections.get(said)
        person = state.person(store)
    if theirs is None:
        return
    who = "You, in another window," if theirs.author == person else f"**{escaped(theirs.author)}**"
    told = f"settled it: {LABEL_WORDS[theirs.label].lower()}"
    if isinstance(theirs, Correction):
        told = "took an answer back" if theirs.withdraws else form.said_words(theirs)
    st.warning(
        f"{who} {told} while this was open. Nothing of yours was saved yet.",
        icon=":material/call_split:",
    )
    with st.container(horizontal=True):
        button("Save mine after it", f"{key}.conflict.save", _save_after, asked, newest)
        button("Keep that, discard mine", f"{key}.conflict.drop", form.forget, asked.id)


def _save_after(asked: form.CorrectionTarget, newest: str) -> None:
    """They have seen what was saved meanwhile and go on; anything newer is a conflict again."""
    key = form.key_of(asked.id)
    st.session_state[f"{key}.seen"] = newest
    st.session_state.pop(f"{key}.conflict", None)
    chosen: Label = st.session_state[f"{key}.label"]
    save(asked, chosen)


def _made(asked: form.CorrectionTarget, chosen: Label, person: str) -> Correction:
    key = form.key_of(asked.id)
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
        evidence=form.evidence_of(key),
        boxes=boxes_of(key),
        ratings=Ratings(*(st.session_state.get(f"{key}.{name}") for name in form.RATINGS)),
        comment=_typed(key, "comment"),
        sure=st.session_state.get(f"{key}.sure"),
    )
    if chosen != "hallucinated":
        return made
    words = str(st.session_state.get(f"{key}.quote") or "")
    if words.strip() and not form.places_of(asked.case.response, words):
        raise InputError(
            f"“{clipped(words, 60)}” does not appear in the response like this. Give the words "
            "exactly as written, or empty that field."
        )
    marked = form.marked_of(key, asked.offered)
    if words.strip():  # those still in the field too
        marked = form.with_words(marked, *form.typed_place(asked))
    if asked.told == "hallucinated":  # who agrees accepts what is open
        marked = form.accepting_open(marked)
    in_one_go = st.session_state.get(f"{key}.all") or marked.did == "accept_all"
    return replace(
        made,
        spans=tuple(dict.fromkeys(form.spans_of(marked, asked.case, asked.offered, person))),
        rejected=tuple(form.rejected_of(marked, asked.offered)),
        is_unmarked=marked.none,
        accepted_all=bool(in_one_go) and form.accepted_all(marked, asked.offered),
    )


def _typed(key: str, name: str) -> str:
    return str(st.session_state.get(f"{key}.{name}") or "").strip()


def _use_of(correction: Correction, asked: form.CorrectionTarget) -> str:
    """What the classifier can make of it; `training_set` counts corrections the same way."""
    if asked.settles:
        return "It is the right answer from now on."
    if correction.label == "unclear":
        return "Nothing is learned from a case that is unclear to people too."
    judgement = asked.progress.judgement
    if judgement is None or judgement.label == "unclear" or not judgement.text:
        return "The judge reached no verdict here, so there is no text to learn from."
    return "It will count at the next retraining."


SUPPORTS = "supports"  # what a box shows that bears the response out
RATING_WORDS: dict[str, str] = WORDS["correction.rating_words"]


def _draw_more(asked: form.CorrectionTarget) -> None:
    """A switch, and behind it the fields; what stands in them counts also when it is off."""
    key = form.key_of(asked.id)
    marks = len(form.evidence_of(key)) + len(boxes_of(key))
    words = "More: how sure, ratings, comment, evidence" + (f" ({marks} marked)" if marks else "")
    if not st.toggle(words, key=f"{key}.more", persist_state="session"):
        return
    st.segmented_control(
        "How sure are you?", list(form.SURE_WORDS), format_func=form.SURE_WORDS.__getitem__,
        key=f"{key}.sure", **form.kept_field(asked.id),
    )  # fmt: skip
    for column, name in zip(st.columns(len(form.RATINGS)), form.RATINGS, strict=True):
        column.segmented_control(
            RATING_WORDS[name], range(1, 6), key=f"{key}.{name}", help="1 is poor, 5 is good",
            **form.kept_field(asked.id),
        )  # fmt: skip
    st.text_area("Comment", key=f"{key}.comment", height=68, **form.kept_field(asked.id, "comment"))
    st.markdown("Words of the sources that support or contradict it")
    sources = form.sources_of(asked.case)
    form.draw_evidence_marks(key, sources, lambda: form.keep(asked.id))
    if images := [source for source in sources if source.is_image]:
        st.markdown("Regions of the images that show it wrong, or right")
        categories = {**asked.words, SUPPORTS: "supports it"}
        draw_box_fields(key, images, categories, lambda: form.keep(asked.id))


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
    form.draw_settled(golds)
    draw_answers(corrections, person, run.id)
    asked = form.CorrectionTarget(run, case, progress, suggestions=suggestions)
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


def draw_judgement(asked: form.CorrectionTarget) -> None:
    """The form to say something; it opens with a label."""
    key = form.key_of(asked.id)
    form.restore(asked)
    if not asked.is_blind:
        draw_decided_before(asked.case)
    with st.container(horizontal=True):
        for number, label in enumerate(LABELS, start=1):
            words = ("Agree: " if label == asked.told else "It is ") + LABEL_WORDS[label].lower()
            keys, shortcut = f"{key}.choose.{label}", f"Alt+{number}"
            button(words, keys, choose, asked, label, shortcut=shortcut)
    chosen = st.session_state.get(f"{key}.label")
    drafts.watch(
        f"{key}.watch",
        {name: f"{key}.{name}" for name in form.TEXTS},
        lambda texts: form.keep_typed(asked.id, texts),
        focus=f"{key}.reason" if chosen in LABELS else "",
        stamp=float(st.session_state.get(f"{key}.stamp") or 0.0),
        shortcuts="".join(str(number) for number in range(1, len(LABELS) + 1)),
    )
    if chosen in LABELS:
        _draw_form(asked, chosen)
    elif problem := st.session_state.pop(f"{key}.problem", ""):
        st.error(escaped(problem))


def choose(asked: form.CorrectionTarget, label: Label) -> None:
    """Open the form on that label, with the cursor in its first field."""
    key = form.key_of(asked.id)
    if f"{key}.seen" not in st.session_state:
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, asked)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    st.session_state.setdefault(f"{key}.began", time.time())
    form.keep(asked.id)


def _draw_form(asked: form.CorrectionTarget, chosen: Label) -> None:
    """The fields; nothing is lost when the page is left or reloaded, until it is saved."""
    key = form.key_of(asked.id)
    needed = "overturn the verdict" if asked.told not in (None, chosen) else ""
    needed = "correct the right answer so far" if asked.corrects else needed
    with st.container(border=True):
        said = "The right answer is" if asked.settles else "You say"
        st.markdown(f"{said}: **{LABEL_WORDS[chosen].lower()}**")
        show_problem(f"{key}.problem")
        label = f"Reason ({f'needed to {needed}' if needed else 'if you like'})"
        st.text_area(label, key=f"{key}.reason", height=68, **form.kept_field(asked.id, "reason"))
        if chosen == "hallucinated":
            _draw_editor(asked, asked.told == chosen)
            with st.expander("Mark words by pasting them", icon=":material/content_paste:"):
                _draw_quote(asked)
        label = "The right answer, if you know it"
        st.text_area(label, key=f"{key}.answer", height=68, **form.kept_field(asked.id, "answer"))
        if not asked.settles:
            _draw_more(asked)
        _draw_conflict(asked)
        keys = {"type": "primary", "shortcut": "Ctrl+Enter"}
        with st.container(horizontal=True):
            button("Save", f"{key}.save", save, asked, chosen, **keys)
            button("Discard", f"{key}.discard", form.forget, asked.id)
