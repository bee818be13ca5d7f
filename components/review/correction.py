"""The form for a person's answer on a case: label, wrong words, reason, the right answer.

Answers are only ever appended.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from components.app import state
from components.app.frame import ask_name, has_role
from components.check.history import draw_earlier_decisions
from components.review import correction_draft as form
from components.review.comments import send_typed_comment
from components.review.review_queue import QUEUE_PAGE, SETTLE_PAGE
from components.widgets import drafts
from components.widgets.annotation_editors import (
    SpanEditorState,
    draw_box_fields,
    draw_span_editor,
    list_drawn_boxes,
    take_unread_edits,
)
from components.widgets.controls import (
    SAVED_WORDS,
    draw_button,
    draw_link,
    show_problem,
    store_problem,
)
from components.widgets.wording import LABEL_WORDS, clip_text, escape_markdown, format_time
from core.documents.quotes import find_absent_words
from core.review.adjudication import record_correction
from core.review.people import can_see_answers
from core.runtime.errors import ConflictError, InputError, ReviewError
from core.schema.records import Case, Label, PersonRole, Project, Run, Span, new_id
from core.schema.reviews import (
    Correction,
    GoldAnswer,
    Ratings,
    StatementLabel,
    Suggestion,
    combine_statement_labels,
    format_category,
)
from core.schema.run_state import RunState
from core.store import Store
from core.store.projects import has_rank
from core.store.review_queue import build_queue_rules

RATING_WORDS: dict[str, str] = {
    "accuracy": "Accuracy: are its facts right?",
    "coherence": "Coherence: does it hold together?",
    "consistency": "Consistency: does it keep to its sources?",
}
FULL_WORDS = "Others have answered this case, as many as this project wants; a lead can settle it."
USUAL_REASONS: dict[Label, tuple[str, str, str]] = {
    "supported": (
        "The sources say so.", "The sources say the same in other words.",
        "The machine misread the response.",
    ),
    "hallucinated": (
        "The sources say otherwise.", "The sources do not say so.",
        "The machine overlooked wrong words.",
    ),
    "unclear": (
        "The sources do not decide it.", "It can be read in two ways.",
        "The sources contradict each other.",
    ),
}  # fmt: skip
REASON_KEYS = ("Alt+7", "Alt+8", "Alt+9")
ENTRY_SEPARATOR = "|"  # separates the newest right answer and correction on Adjudicate
SUPPORTING_CATEGORY = "supports"  # the category of a box that confirms the response
ANSWER_SAVED = "review.go"  # or the item was passed on: the page shows it, or the next one
ANSWER_LABELS: tuple[Label, ...] = ("supported", "hallucinated", "unclear")


def withdraw_answer(correction: Correction, asked_id: str) -> None:
    """Withdraw the person's own answer by another entry; its queue item is claimed again."""
    key = form.make_form_key(asked_id)
    with store_problem(f"{key}.problem"):
        with state.open_store() as store, store.writing():
            person, case = state.get_person(store), store.cases.get(correction.case_id)
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
            record_correction(store, undo, case)
            if all(each.author != person for each in store.corrections.of_case(case.id)):
                store.queue.again(case.id, person, build_queue_rules(project), undo.at)
        if typed := drafts.load_draft_values(key):
            drafts.save_draft_values(key, typed | {"newest_seen": undo.id})
            st.session_state[f"{key}.newest_seen"] = undo.id
            return
        st.session_state.pop(f"{key}.is_restored", None)
        # The draft as it was saved here, suggestions still open; else the answer alone.
        saved_id, draft = st.session_state.pop(f"{key}.saved", ("", {}))
        opened = draft if saved_id == correction.id else {"withdrawn": correction.id}
        drafts.save_draft_values(key, opened | {"newest_seen": undo.id})


def _draw_words(target: form.CorrectionTarget) -> None:
    """Draw the response to mark; as the page's form it takes the answer's keys too."""
    key = form.make_form_key(target.id)
    marked = form.get_marked(key, target.suggested_spans)
    chosen: Label | None = st.session_state.get(f"{key}.label")
    categories = target.category_words | {
        mark.category: format_category(mark.category) for mark in marked.marks
    }
    likely = None
    if target.is_page:
        texts = [source.text for source in form.load_case_sources(target.case)]
        likely = find_absent_words(target.case.response, texts)
    draw_span_editor(
        target.case.response,
        replace(marked, label=chosen or ""),
        categories,
        functools.partial(_take_edit, target),
        key=f"{key}.editor",
        language=target.case.language,
        none_words="No single word is wrong",
        instead_words="should say, if you know it",
        labels=ANSWER_LABELS if target.is_page else (),
        likely=likely,
        seconds=form.count_seconds(key),
    )
    has_open = any(mark.status == "suggested" for mark in marked.marks)
    if has_open and chosen == "hallucinated" == target.shown_label:
        st.caption("Saving accepts the suggestions that are still open.")


def _take_edit(target: form.CorrectionTarget, marked: SpanEditorState) -> None:
    """Keep what was done to the words; as the page's form they bring the label, and may save."""
    key = form.make_form_key(target.id)
    st.session_state[f"{key}.marked"] = marked
    if marked.did == "accept_all":
        st.session_state[f"{key}.accepted_all"] = True
    if target.is_page and marked.label:
        choose_label(target, marked.label)
    elif target.is_page:
        st.session_state[f"{key}.label"] = None
    form.save_draft(target.id)
    if marked.did == "save":
        save_answer(target)


def _draw_quote(target: form.CorrectionTarget) -> None:
    key = form.make_form_key(target.id)
    words, which, category, add = st.columns([4, 1, 2, 1], vertical_alignment="bottom")
    label, field = "Other wrong words, exactly as written", f"{key}.quote"
    quote = words.text_input(label, key=field, **form.draft_field_options(target.id, "quote"))
    places = form.find_exact_places(target.case.response, quote or "")
    many = max(1, len(places))
    which.selectbox(
        "Which one",
        range(many),
        format_func=lambda i: f"{i + 1} of {many}",
        key=f"{key}.occurrence",
        disabled=many < 2,
        **form.draft_field_options(target.id),
    )
    categories = target.category_words
    category.selectbox(
        "What is wrong",
        tuple(categories),
        format_func=categories.__getitem__,
        key=f"{key}.category",
        **form.draft_field_options(target.id),
    )
    with add:
        draw_button("Mark", f"{key}.mark", _add_mark, target)
    if quote and not places:
        st.caption("These words do not appear in the response like this.")


def _add_mark(target: form.CorrectionTarget) -> None:
    key = form.make_form_key(target.id)
    if not form.find_exact_places(
        target.case.response, str(st.session_state.get(f"{key}.quote") or "")
    ):
        return  # a caption below the field explains it
    marked = form.get_marked(key, target.suggested_spans)
    st.session_state[f"{key}.marked"] = form.add_own_mark(marked, *form.find_typed_place(target))
    st.session_state[f"{key}.quote"] = ""
    form.save_draft(target.id, "quote")


def get_newest_entry(store: Store, target: form.CorrectionTarget) -> str:
    """Return the newest entry that could conflict: only an own one if others' are not shown."""
    if target.settles:
        golds = store.golds.of_case(target.case.id)
        gold = golds[-1].id if golds else ""
        return f"{gold}{ENTRY_SEPARATOR}{store.corrections.newest_id(target.case.id)}"
    person = state.get_person(store)
    is_alone = target.is_alone or not can_see_answers(store, target.case.project_id, person)
    author = person if is_alone else ""
    return store.corrections.newest_id(target.case.id, author)


def save_answer(target: form.CorrectionTarget) -> None:
    """Append the answer; on a problem or conflict the form keeps what was typed."""
    key = form.make_form_key(target.id)
    take_unread_edits(key)
    chosen: Label | None = st.session_state.get(f"{key}.label")
    if chosen not in ANSWER_LABELS:
        if target.is_page and not st.session_state.get(ANSWER_SAVED):
            st.session_state[f"{key}.problem"] = "Expected an answer, found none; choose one first."
        return

    def build(store: Store, person: str) -> Correction:
        correction = _build_correction(target, chosen, person)
        return replace(correction, statements=_carry_statements(store, correction))

    try:
        correction = append_answer(target, key, build)
    except ReviewError as error:
        st.session_state[f"{key}.problem"] = str(error)
        st.session_state[f"{key}.stamp"] = time.time()  # moves the cursor to the reason
        return
    if correction is not None:
        if target.is_page:  # only now, or each attempt to save would add the comment again
            send_typed_comment(target.case)
        form.save_draft(target.id)
        st.session_state[f"{key}.saved"] = correction.id, drafts.load_draft_values(key)
        form.discard_draft(target.id)
        st.session_state[ANSWER_SAVED] = True
        # Drawn from a callback of the form's fragment, it would take the place of the style sheet.
        st.session_state[SAVED_WORDS] = f"Saved. {_describe_use(correction, target)}"


def _carry_statements(store: Store, correction: Correction) -> tuple[StatementLabel, ...]:
    """Return the labels that the person gave the statements before, if they imply this label."""
    given = find_own_answer(store, correction.case_id, correction.author)
    statements = given.statements if given else ()
    is_same = combine_statement_labels(one.label for one in statements) == correction.label
    return statements if is_same else ()


def find_own_answer(store: Store, case_id: str, person: str) -> Correction | None:
    """Return the person's newest answer on the case, by any check, taken back or not."""
    entries = [
        entry
        for entry in store.corrections.history(case_id)
        if entry.author == person and not entry.withdraws
    ]
    return entries[-1] if entries else None


def append_answer(
    target: form.CorrectionTarget, key: str, build: Callable[[Store, str], Correction]
) -> Correction | None:
    """Append what `build` makes for the person, unless somebody saved since they began.

    Then it is None, and the newer entry is kept for `draw_conflict`. Raises ReviewError: nothing
    was saved.
    """
    with state.open_store() as store:
        correction = build(store, state.get_person(store))
        with store.writing():
            role: PersonRole = "lead" if target.settles else "annotator"
            action = "settle a case" if target.settles else "correct a verdict"
            store.projects.require(target.case.project_id, correction.author, role, action)
            if not target.settles and _is_full(target):
                raise ConflictError(FULL_WORDS)
            newest = get_newest_entry(store, target)
            if newest != st.session_state.get(f"{key}.newest_seen", newest):
                st.session_state[f"{key}.conflict"] = newest
                return None
            target.record(store, correction, target.case)
            target.after(store, correction)
    return correction


def draw_conflict(
    case_id: str, key: str, save_after: Callable[[str], None], discard: Callable[[], None]
) -> None:
    """Draw what others saved while the form was open, with the two ways to go on."""
    newest = st.session_state.get(f"{key}.conflict")
    if not newest:
        return
    gold, _, correction_id = str(newest).rpartition(ENTRY_SEPARATOR)
    theirs: Correction | GoldAnswer | None
    with state.open_store() as store:
        if (
            gold
            and gold != str(st.session_state[f"{key}.newest_seen"]).rpartition(ENTRY_SEPARATOR)[0]
        ):
            theirs = store.golds.of_case(case_id)[-1]
        else:
            theirs = store.corrections.get(correction_id)
        person = state.get_person(store)
    if theirs is None:
        return
    who = (
        "You, in another window,"
        if theirs.author == person
        else f"**{escape_markdown(theirs.author)}**"
    )
    action = f"settled it: {LABEL_WORDS[theirs.label].lower()}"
    if isinstance(theirs, Correction):
        action = (
            "took an answer back" if theirs.withdraws else form.format_correction_markdown(theirs)
        )
    st.warning(
        f"{who} {action} while this was open. Nothing of yours was saved yet.",
        icon=":material/call_split:",
    )
    with st.container(horizontal=True):
        draw_button("Save mine after it", f"{key}.conflict.save", save_after, newest)
        draw_button("Keep that, discard mine", f"{key}.conflict.drop", discard)


def _save_after(target: form.CorrectionTarget, newest: str) -> None:
    """Save after a conflict that the person has seen; a newer entry is a conflict again."""
    key = form.make_form_key(target.id)
    st.session_state[f"{key}.newest_seen"] = newest
    st.session_state.pop(f"{key}.conflict", None)
    save_answer(target)


def _build_correction(target: form.CorrectionTarget, chosen: Label, person: str) -> Correction:
    """Return the form's fields as a correction. Raises InputError for unknown wrong words."""
    key = form.make_form_key(target.id)
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
        seconds=round(form.count_seconds(key), 1),
        machine_label=target.machine_label,
        is_blind=target.is_blind,
        evidence=form.list_evidence(key),
        boxes=list_drawn_boxes(key),
        ratings=Ratings(*(st.session_state.get(f"{key}.{name}") for name in form.RATING_FIELDS)),
        comment=_read_field(key, "comment"),
        sure=st.session_state.get(f"{key}.sure"),
    )
    if chosen != "hallucinated":
        return correction
    words = str(st.session_state.get(f"{key}.quote") or "")
    if words.strip() and not form.find_exact_places(target.case.response, words):
        raise InputError(
            f"“{clip_text(words, 60)}” does not appear in the response like this. Give the words "
            "exactly as written, or empty that field."
        )
    marked = form.get_marked(key, target.suggested_spans)
    if words.strip():  # words still in the field count too
        marked = form.add_own_mark(marked, *form.find_typed_place(target))
    if target.shown_label == "hallucinated":  # agreeing accepts open suggestions
        marked = form.accept_suggestions(marked)
    in_one_go = st.session_state.get(f"{key}.accepted_all") or marked.did == "accept_all"
    accepted = form.list_accepted_spans(marked, target.case, target.suggested_spans, person)
    reason = _describe_marks(accepted) if needs_reason(target, chosen) else ""
    return replace(
        correction,
        spans=tuple(dict.fromkeys(accepted)),
        reason=correction.reason or reason,
        rejected=tuple(form.list_rejected_spans(marked, target.suggested_spans)),
        is_unmarked=marked.none,
        accepted_all=bool(in_one_go) and form.has_accepted_all(marked, target.suggested_spans),
    )


def needs_reason(target: form.CorrectionTarget, chosen: Label) -> bool:
    """Return True if the answer overturns the verdict that the person was shown."""
    return target.shown_label not in (None, chosen)


def _describe_marks(spans: Sequence[Span]) -> str:
    """Return the reason that marked words are; "" without any."""
    words = (f"“{clip_text(s.text, 60)}” ({format_category(s.category)})" for s in spans)
    return f"Wrong words: {', '.join(words)}" if spans else ""


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
    return "It counts at the next retraining, if enough people answer and agree on it."


def _draw_more(target: form.CorrectionTarget) -> None:
    """Draw a switch for more fields; their values count even if it is off."""
    key = form.make_form_key(target.id)
    marks = len(form.list_evidence(key)) + len(list_drawn_boxes(key))
    # Label has the comments on the case; one that an answer has already stays there to change.
    has_comment = not target.is_page or bool(st.session_state.get(f"{key}.comment"))
    words = f"More: how sure, ratings, {'comment, ' if has_comment else ''}evidence"
    words += f" ({marks} marked)" if marks else ""
    if not st.toggle(words, key=f"{key}.more", persist_state="session"):
        return
    st.segmented_control(
        "How sure are you?",
        list(form.SURE_WORDS),
        format_func=form.SURE_WORDS.__getitem__,
        key=f"{key}.sure",
        **form.draft_field_options(target.id),
    )
    for column, name in zip(st.columns(len(form.RATING_FIELDS)), form.RATING_FIELDS, strict=True):
        column.segmented_control(
            RATING_WORDS[name],
            range(1, 6),
            key=f"{key}.{name}",
            help="1 is poor, 5 is good",
            **form.draft_field_options(target.id),
        )
    if has_comment:
        options = form.draft_field_options(target.id, "comment")
        st.text_area("Comment", key=f"{key}.comment", height=68, **options)
    st.markdown("Words of the sources that support or contradict it")
    sources = form.load_case_sources(target.case)
    form.draw_evidence_marks(key, sources, lambda: form.save_draft(target.id))
    if images := [source for source in sources if source.is_image]:
        st.markdown("Regions of the images that show it wrong, or right")
        categories = {**target.category_words, SUPPORTING_CATEGORY: "supports it"}
        draw_box_fields(key, images, categories, lambda: form.save_draft(target.id))


def draw_corrections(
    run: Run, case: Case, progress: RunState, corrections: Sequence[Correction]
) -> None:
    """Draw people's answers and the form for another one."""
    st.session_state.pop(ANSWER_SAVED, None)  # it is drawn now
    st.subheader("Your judgement", anchor="your-judgement")  # to which the tour leads
    with state.open_store() as store:
        person, project = state.get_person(store), store.projects.get(case.project_id)
        suggestions = tuple(store.golds.suggestions(case.id))
        gold = store.golds.that_counts(case.id)
    form.draw_right_answer(gold)
    draw_answers(corrections, person, run.id)
    draw_judgement(build_run_target(run, case, progress, project, suggestions))


def build_run_target(
    run: Run,
    case: Case,
    progress: RunState,
    project: Project | None,
    suggestions: tuple[Suggestion, ...] = (),
) -> form.CorrectionTarget:
    """Return what a person who sees a run's verdict answers about."""
    target = form.CorrectionTarget(
        run, case, progress, suggestions=suggestions, after=_end_assignment
    )
    return target if project is None else replace(target, categories=project.categories)


def _end_assignment(store: Store, correction: Correction) -> None:
    """End the author's queue item, so that the queue does not ask the same again."""
    if store.queue.get(correction.case_id) is not None:
        store.queue.end(correction.case_id, correction.author, "submitted", correction.at)


def draw_answers(corrections: Sequence[Correction], person: str, asked_id: str) -> None:
    """Draw the answers; the person's own newest one can be withdrawn."""
    own = [c.id for c in corrections if c.author == person][-1:]
    for correction in corrections:
        words = (
            f"**{escape_markdown(correction.author)}** "
            f"{form.format_correction_markdown(correction)}"
        )
        words += f"  \n:gray[{format_time(correction.at)}]"
        if correction.id not in own:
            st.markdown(words)
            continue
        left, right = st.columns([6, 1], vertical_alignment="center")
        left.markdown(words)
        with right:
            key = f"said.{correction.id}.back"
            draw_button("Undo", key, withdraw_answer, correction, asked_id, icon="undo")


def draw_judgement(target: form.CorrectionTarget) -> None:
    """Draw the form for whoever may answer, with what people decided on cases like it."""
    if not (ask_name() and has_role("annotator", "answer", project_id=target.case.project_id)):
        return
    if _is_full(target):
        draw_alternatives(target.case, FULL_WORDS)
        return
    if not target.is_blind:
        draw_earlier_decisions(target.case)
    draw_form(target)


def draw_alternatives(case: Case, words: str) -> None:
    """Say why the person cannot answer the case, with links to what they can do instead."""
    st.info(escape_markdown(words), icon=":material/group:")
    with state.open_store() as store:
        role = store.projects.role_of(case.project_id, state.get_person(store))
    with st.container(horizontal=True):
        draw_link(QUEUE_PAGE, "Take another item from the queue", "checklist")
        if has_rank(role, "lead"):
            draw_link(SETTLE_PAGE, "Adjudicate it", "gavel", case=case.id)


@st.fragment
def draw_form(
    target: form.CorrectionTarget,
    own: Sequence[Correction] = (),
    draw_last: Callable[[], None] = lambda: None,
) -> None:
    """Draw the words to mark, the answer's fields and its buttons.

    As the page's form it is open from the start, with the answer that stands of the person's `own`
    ones, and `draw_last` draws the way back to the last item below the buttons; else it opens once
    a label is chosen.
    """
    key = form.make_form_key(target.id)
    if st.session_state.get(ANSWER_SAVED):
        st.rerun()
    form.restore_draft(target)
    _notice_newer_answer(target)
    if own and f"{key}.label" not in st.session_state:
        form.fill_from_correction(target, own[-1], own[-1].id, is_draft=False)
    chosen: Label | None = st.session_state.get(f"{key}.label")
    is_chosen = chosen in ANSWER_LABELS
    if is_chosen or target.is_page:
        form.count_seconds(key)
    is_refused = f"{key}.problem" in st.session_state
    focus = f"{key}.reason" if is_chosen and (is_refused or not target.is_page) else ""
    _watch_fields(target, focus)
    if not target.is_page:
        with st.container(horizontal=True):
            _draw_choices(target)
    with st.container(border=is_chosen and not target.is_page):
        if target.is_page or chosen == "hallucinated":
            _draw_words(target)
        show_problem(f"{key}.problem")
        draw_conflict(
            target.case.id,
            key,
            functools.partial(_save_after, target),
            functools.partial(_start_over, target),
        )
        if chosen in ANSWER_LABELS:
            _draw_fields(target, chosen)
        if not (is_chosen or target.is_page):
            return
        # app.css keeps the page's buttons in view.
        with st.container(horizontal=True, key="label-answer" if target.is_page else None):
            if target.is_page:
                _draw_choices(target)
            keys = {"type": "primary", "shortcut": "Ctrl+Enter"}
            draw_button("Save", f"{key}.save", save_answer, target, **keys)
            if is_chosen:
                draw_button("Discard", f"{key}.discard", _start_over, target, type="tertiary")
            draw_last()


def _draw_choices(target: form.CorrectionTarget) -> None:
    """Draw a button for each label, the chosen one strong."""
    key = form.make_form_key(target.id)
    for number, label in enumerate(ANSWER_LABELS, start=1):
        agrees = label == target.shown_label
        words = ("Agree: " if agrees else "It is ") + LABEL_WORDS[label].lower()
        if target.is_page:  # its keys are letters too
            words = f"{'Agree' if agrees else LABEL_WORDS[label]} ({label[0]})"
        is_chosen = st.session_state.get(f"{key}.label") == label
        options = {"shortcut": f"Alt+{number}", "type": "primary" if is_chosen else "secondary"}
        draw_button(words, f"{key}.choose.{label}", choose_label, target, label, **options)


def _watch_fields(target: form.CorrectionTarget, focus: str) -> None:
    """Keep what is being typed; `focus` is the field that a chosen label leads to."""
    key = form.make_form_key(target.id)
    drafts.watch_fields(
        f"{key}.{form.WATCH}",
        {name: f"{key}.{name}" for name in form.TEXT_FIELDS},
        lambda texts: form.save_typed_texts(target.id, texts),
        focus=focus,
        stamp=float(st.session_state.get(f"{key}.stamp") or 0.0),
        shortcuts="" if target.is_page else "123",
        is_over=lambda: bool(st.session_state.get(ANSWER_SAVED)),
    )


def _start_over(target: form.CorrectionTarget) -> None:
    """Empty the form; where its editor stays on the page, the browser is told so."""
    key = form.make_form_key(target.id)
    revision = form.get_marked(key, target.suggested_spans).revision
    form.discard_draft(target.id)
    if target.is_page:  # the browser takes over only what is newer than its own
        suggestions = form.make_suggestions(target.suggested_spans)
        st.session_state[f"{key}.marked"] = SpanEditorState(revision + 1, suggestions)


def _is_full(target: form.CorrectionTarget) -> bool:
    """Return True if as many others as the project wants have answered the case."""
    with state.open_store() as store:
        project = store.projects.get(target.case.project_id)
        people = project.people_each if project else 1
        person = state.get_person(store)
        return store.queue.is_full(target.case.id, person, people, time.time())


def _notice_newer_answer(target: form.CorrectionTarget) -> None:
    """Make an answer that the person saved elsewhere after beginning this draft a conflict."""
    key = form.make_form_key(target.id)
    has_draft = st.session_state.get(f"{key}.label") in ANSWER_LABELS
    if not has_draft or target.settles or st.session_state.get(f"{key}.conflict"):
        return
    with state.open_store() as store:
        person, entries = state.get_person(store), store.corrections.history(target.case.id)
    # In the order in which they were stored: imported answers keep their dates.
    seen = st.session_state.get(f"{key}.newest_seen")
    known = next((place for place, entry in enumerate(entries) if entry.id == seen), -1)
    own = [entry for entry in entries[known + 1 :] if entry.author == person]
    if own and not own[-1].withdraws:
        st.session_state[f"{key}.conflict"] = own[-1].id


def choose_label(target: form.CorrectionTarget, label: Label) -> None:
    """Open the form with that label, the cursor in its first field.

    Answering again begins with the person's standing answer.
    """
    key = form.make_form_key(target.id)
    if f"{key}.newest_seen" not in st.session_state:
        with state.open_store() as store:
            person, newest = state.get_person(store), get_newest_entry(store, target)
            standing = store.corrections.newest_of_case(target.case.id)
        st.session_state[f"{key}.newest_seen"] = newest
        own = [answer for answer in standing if answer.author == person]
        if own and not target.settles and f"{key}.label" not in st.session_state:
            form.fill_from_correction(target, own[0], newest)
    st.session_state[f"{key}.label"] = label
    st.session_state[f"{key}.stamp"] = time.time()
    form.save_draft(target.id)


def _draw_fields(target: form.CorrectionTarget, chosen: Label) -> None:
    """Draw the answer's fields; until saved they outlive leaving or reloading the page."""
    _draw_reason(target, chosen)
    if chosen == "hallucinated":
        with st.expander("Mark words by pasting them", icon=":material/content_paste:"):
            _draw_quote(target)
    st.text_area(
        "The right answer, if you know it",
        key=f"{form.make_form_key(target.id)}.answer",
        height=68,
        **form.draft_field_options(target.id, "answer"),
    )
    if not target.settles:
        _draw_more(target)


def _draw_reason(target: form.CorrectionTarget, chosen: Label) -> None:
    """Draw the reason; one that is needed may be marked words, or one of the usual reasons."""
    key = form.make_form_key(target.id)
    label = "Reason (needed only to change the right answer so far)"
    if not target.corrects:
        label = "Reason (if you like)"
    if is_needed := needs_reason(target, chosen):
        marks = "marked words, " if chosen == "hallucinated" else ""
        label = f"Reason to overturn the verdict: {marks}a usual one, or your own words"
    st.text_area(
        label, key=f"{key}.reason", height=68, **form.draft_field_options(target.id, "reason")
    )
    if not is_needed:
        return
    with st.container(horizontal=True):
        for words, keys in zip(USUAL_REASONS[chosen], REASON_KEYS, strict=True):
            name = f"{key}.usual.{keys[-1]}"
            draw_button(words, name, _take_reason, target, words, shortcut=keys, type="tertiary")


def _take_reason(target: form.CorrectionTarget, words: str) -> None:
    """Put a usual reason into the field, where it can be changed."""
    st.session_state[f"{form.make_form_key(target.id)}.reason"] = words
    form.save_draft(target.id, "reason")
