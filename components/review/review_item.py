"""Label and Adjudicate screens: one item of the review queue, its form, its history, the next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.app import state
from components.app.frame import draw_page_title, draw_shortcut_list
from components.check.history import draw_earlier_decisions
from components.measure.calibration import load_past_verdicts
from components.review.answer_versions import draw_difference, draw_versions, list_versions
from components.review.comments import draw_comments
from components.review.correction import (
    ANSWER_SAVED,
    draw_alternatives,
    draw_answers,
    draw_form,
    withdraw_answer,
)
from components.review.correction_draft import (
    CorrectionTarget,
    draw_right_answer,
    format_correction_markdown,
    get_marked,
    make_form_key,
    make_mark_id,
    make_suggestions,
    restore_draft,
)
from components.review.guidelines import draw_guidelines
from components.review.review_queue import (
    ADJUDICATION_PAGE,
    ADJUDICATION_VIEWS,
    LABEL_PAGE,
    QUEUE_PAGE,
    SETTLE_PAGE,
    format_item_reason,
    narrow_view,
    open_next_item,
)
from components.review.source_pane import draw_source_pane, list_verdict_quotes
from components.run.debate import draw_debate
from components.run.evidence import draw_evidence
from components.run.run_view import load_classifier_card, load_run
from components.run.verdict import draw_verdict
from components.widgets.controls import draw_button, draw_link, show_problem, store_problem
from components.widgets.html import draw_html, draw_question, render_marked_text
from components.widgets.wording import (
    LABEL_WORDS,
    clip_text,
    escape_markdown,
    format_protocol,
    format_time,
)
from core.review.adjudication import (
    AnswerVersion,
    choose_gold_origin,
    merge_answers,
    record_gold,
    reopen_case,
)
from core.review.people import can_see_answers
from core.runtime.errors import ReviewError
from core.schema.records import Case, Project, Quote, Run, Span, new_id
from core.schema.reviews import (
    Assignment,
    Correction,
    GoldAnswer,
    QueueEvent,
    QueueItem,
    format_category,
)
from core.schema.run_state import RunState
from core.store import Store
from core.store.projects import has_rank
from core.store.review_queue import NO_ITEM_FILTER, ItemFilter, build_queue_rules

HANDLING_WORDS: dict[str, str] = {
    "skipped": "skipped it",
    "flagged": "flagged it for a lead",
    "adjudicated": "settled it",
    "opened": "took it up again",
    "reopened": "gave it back to the queue",
    "imported": "imported it",
}
REVIEW_KEYS: dict[str, str] = {
    "s, h, u": "supported, hallucinated, unclear; Alt+1, Alt+2, Alt+3 from within a field",
    "n, arrows, 1 to 9": "the next number, other words; mark them (it is hallucinated then)",
    "Alt+7, Alt+8, Alt+9": "a usual reason, where the verdict is overturned",
    "Ctrl+Enter": "save and go on to the next item",
    "Alt+Z": "take back what was saved, skipped or flagged last",
    "Ctrl+Space": "skip the item",
    "Alt+F": "flag it for a lead",
    "Tab": "from field to field; the words of the response are the first, and have the focus",
    "? in the words": "the keys that mark words",
}
ADJUDICATION_KEYS: dict[str, str] = {
    "Alt+4 to Alt+9": "take the first to the sixth version",
    "s, h, u": "supported, hallucinated, unclear; Alt+1, Alt+2, Alt+3 from within a field",
    "n, arrows, 1 to 9": "the next number, other words; mark them (it is hallucinated then)",
    "a, x": "accept or reject a mark on which not everybody agrees",
    "Ctrl+Enter": "save the right answer and go on to the next case",
    "Ctrl+Space": "leave this case, go on to the next",
    "Alt+Z": "back to the case that was settled last",
    "? in the words": "the keys that mark words",
}

HistoryEntry = Correction | GoldAnswer | QueueEvent
RENEW_SECONDS = 60.0
FLAG_FIELD = "review.{}.flag"  # by case
MAX_REASON_CHARS = 300  # of why an item is flagged
MAX_WAITING_CASES = 500  # waiting cases searched for the next one
WAITING_VIEWS = ("people differ", "flagged")  # of Adjudicate's list


def _list_history(store: Store, case_id: str, only: str = "") -> list[HistoryEntry]:
    """Return the case's entries by time, without comments; those of the person `only`, if given."""
    entries: list[HistoryEntry] = [
        *store.corrections.history(case_id),
        *store.golds.of_case(case_id),
        *(each for each in store.queue_events.of_case(case_id) if each.did != "commented"),
    ]
    shown = [entry for entry in entries if not only or _get_author(entry) == only]
    return sorted(shown, key=lambda entry: entry.at)


def _draw_history(entries: Sequence[HistoryEntry]) -> None:
    if not entries:
        return
    with st.expander(f"History ({len(entries)} {'entry' if len(entries) == 1 else 'entries'})"):
        for place, entry in enumerate(entries):
            words = f":gray[{format_time(entry.at)}] **{escape_markdown(_get_author(entry))}** "
            st.markdown(words + _describe_entry(entry, entries[:place]))


def _get_author(entry: HistoryEntry) -> str:
    return entry.person if isinstance(entry, QueueEvent) else entry.author


def _describe_entry(entry: HistoryEntry, before: Sequence[HistoryEntry]) -> str:
    """Return what the entry says, and what it changes against the author's earlier ones."""
    if isinstance(entry, QueueEvent):
        return HANDLING_WORDS[entry.did] + (
            f": {escape_markdown(entry.words)}" if entry.words else ""
        )
    if isinstance(entry, GoldAnswer):
        golds = [e for e in before if isinstance(e, GoldAnswer)]
        words = f"gave the right answer ({entry.origin}): {LABEL_WORDS[entry.label].lower()}"
        reason = f": {escape_markdown(entry.reason)}" if entry.reason else ""
        return words + reason + _describe_change(entry, golds[-1:])
    if entry.withdraws:
        return "took their answer back"
    corrections = [e for e in before if isinstance(e, Correction)]
    withdrawn = {e.withdraws for e in corrections}
    standing = [
        e
        for e in corrections
        if e.author == entry.author and not e.withdraws and e.id not in withdrawn
    ]
    return format_correction_markdown(entry) + _describe_change(entry, standing[-1:])


def _describe_change(
    entry: Correction | GoldAnswer, earlier: Sequence[Correction | GoldAnswer]
) -> str:
    if not earlier:
        return ""
    before = earlier[-1]
    parts: list[str] = []
    if before.label != entry.label:
        parts.append(f"{LABEL_WORDS[before.label].lower()} → {LABEL_WORDS[entry.label].lower()}")
    parts += [f"+ {_describe_span(s)}" for s in entry.spans if s not in before.spans]
    parts += [f"− {_describe_span(s)}" for s in before.spans if s not in entry.spans]
    if before.corrected_answer != entry.corrected_answer:
        old_answer = escape_markdown(clip_text(before.corrected_answer, 60)) or "nothing"
        parts.append(
            f"right answer: {old_answer} → {escape_markdown(clip_text(entry.corrected_answer, 60))}"
        )
    return f"  \n&emsp;changed: {'; '.join(parts)}" if parts else ""


def _describe_span(span: Span) -> str:
    return (
        f"“{escape_markdown(clip_text(span.text, 40))}” "
        f"({escape_markdown(format_category(span.category))})"
    )


def _draw_saved() -> None:
    if st.session_state.get("review.back"):  # Undo was pressed within the form's fragment
        st.rerun()
    last: dict[str, str] = st.session_state.get("review.last") or {}
    with state.open_store() as store:
        said = store.corrections.get(last.get("correction", ""))
        case = store.cases.get(last.get("case", ""))
    if case is None:
        return
    did = f"saved: {LABEL_WORDS[said.label].lower()}" if said else last["did"]
    did = escape_markdown(did[:1].upper() + did[1:])
    words = f"{did}, “{escape_markdown(clip_text(case.response, 60))}”"
    with _draw_last_row(words):
        options = {"icon": "undo", "shortcut": "Alt+Z"}
        draw_button("Undo", "review.undo", _undo, case.id, said, **options)


def _draw_last_row(words: str) -> DeltaGenerator:
    """Draw what was done last; return the place of the way back to it."""
    row = st.container(horizontal=True, vertical_alignment="center", key="label-last")
    row.caption(words, width="content")
    return row


def _undo(case_id: str, said: Correction | None) -> None:
    """Withdraw the last answer by another entry, or reopen the item passed on; then open it."""
    if said is not None:
        withdraw_answer(said, case_id)
    else:
        with store_problem("review.problem"), state.open_store() as store, store.writing():
            project, person, now = state.get_project(store), state.get_person(store), time.time()
            store.projects.require(project.id, person, "annotator", "review")
            store.queue.again(case_id, person, build_queue_rules(project), now)
            store.queue_events.add(QueueEvent(case_id, person, now, "opened"))
    st.session_state.pop("review.last", None)
    st.session_state["review.back"] = case_id


def draw_item(case_id: str) -> None:
    """Draw the item, claiming it first if it is open; one that cannot be claimed is read-only."""
    if reopened := st.session_state.pop("review.back", ""):
        st.switch_page(LABEL_PAGE, query_params={"case": reopened})
    is_over = st.session_state.pop(ANSWER_SAVED, False)
    if is_over:
        open_next_item(st.session_state.get("review.wanted", NO_ITEM_FILTER))
    with state.open_store() as store:
        item = store.queue.get(case_id) if case_id and not is_over else None
        project = state.get_project(store)
        case = store.cases.get(case_id) if item and item.project_id == project.id else None
    draw_page_title("Label", claim=case.response if case else "")
    mine = _claim_item(case.id) if case and not is_over else None
    with st.container(horizontal=True, vertical_alignment="center", key="label-head"):
        draw_link(QUEUE_PAGE, "The queue", "arrow_back")
        if mine is not None:
            _draw_progress(project)
            _draw_ways_out(mine)
        else:
            _draw_saved()
    if is_over:
        return
    if item is None or case is None:
        st.info("There is no item at this link in the queue of this project.")
        return
    show_problem("review.problem")
    _draw_open(item, case, project, mine)


def _draw_progress(project: Project) -> None:
    """Draw how many of the queue's items the person has answered."""
    with state.open_store() as store:
        mine = store.queue.counts_of(project.id, state.get_person(store))["submitted"]
        counts = store.queue.counts(project.id, build_queue_rules(project), time.time())
    total = sum(counts[name] for name in ("pending", "done", "flagged", "adjudicated"))
    st.caption(f"**{mine} of {total}** answered", width="content")


def _draw_open(item: QueueItem, case: Case, project: Project, mine: Assignment | None) -> None:
    loaded = load_run(item.run_id) if item.run_id else None
    run, progress = (loaded[0], loaded[2]) if loaded else (None, RunState())
    with state.open_store() as store:
        corrections = store.corrections.of_case(case.id) if mine else []
    own = [each for each in corrections if mine and each.author == mine.person]
    is_blind = project.is_blind and not own  # an answer given, the machine's view may be shown
    # Quoted passages and wrong statements would reveal the verdict too.
    shown = progress.copy_evidence() if is_blind else progress
    draw_question(case.question)
    words = _draw_sources(case, () if is_blind else list_verdict_quotes(progress), "review")
    target = CorrectionTarget(run, case, progress, is_blind, is_alone=True)
    with words:
        if mine is None:
            draw_html(render_marked_text(case.response, []))
        else:
            _draw_answer(target, own, mine, project)
    if mine is not None:
        if not is_blind:
            draw_earlier_decisions(case)
        _draw_others(target, own, mine, project, is_blind)
    names = ["Evidence"] if is_blind or run is None else ["Verdict", "Evidence", "Debate"]
    tabs = dict(zip(names, st.tabs(names), strict=True))
    with tabs["Evidence"]:
        draw_evidence(shown, f"review.{case.id}.evidence")
        if run is None:
            st.caption("Nobody has checked it here: mark words of its sources under “More”.")
    if run is None or is_blind:
        return
    with tabs["Verdict"]:
        if progress.verdict is not None:
            card = load_classifier_card(progress.classifier)
            draw_verdict(progress, card, load_past_verdicts(run, progress))
            _draw_protocol_labels(run)
        draw_link("pages/check/run.py", "Its run", "open_in_new", run=run.id)
    with tabs["Debate"]:
        draw_debate(progress, f"review.{case.id}.debate")


def _draw_sources(case: Case, quotes: Sequence[Quote], page: str) -> DeltaGenerator:
    """Draw the guidelines and the sources on the right; return the place beside them."""
    words, sources = st.columns([11, 9])
    with sources:
        draw_guidelines(case.project_id, page, is_open=page == "review")
        draw_source_pane(case, quotes)
    return words


def _draw_protocol_labels(run: Run) -> None:
    """Draw the newest label by each protocol that checked the case."""
    with state.open_store() as store:
        runs = store.runs.of_case(run.case_id, time.time(), 0.0)
    newest = {each.plan.protocol: each for each in runs if each.label}
    words = [f"By {format_protocol(run.plan.protocol, short=True)}"]
    words += [
        f"{format_protocol(name, short=True)}: {LABEL_WORDS[each.label].lower()}"
        for name, each in sorted(newest.items(), key=lambda pair: -pair[1].started_at)
        if each.label and name != run.plan.protocol
    ]
    st.caption(escape_markdown(" · ".join(words)))


def _draw_answer(
    target: CorrectionTarget, own: list[Correction], mine: Assignment, project: Project
) -> None:
    with state.open_store() as store:
        suggestions = tuple(store.golds.suggestions(target.case.id))
    target = replace(
        target, after=_finish_item, suggestions=suggestions, categories=project.categories
    )
    draw_form(target, own, _draw_saved)


def _draw_others(
    target: CorrectionTarget,
    own: list[Correction],
    mine: Assignment,
    project: Project,
    is_blind: bool,
) -> None:
    """Draw what is known of the item besides its form: answers, its right answer, its history."""
    with state.open_store() as store:
        gold = store.golds.that_counts(target.case.id)
        is_lead = has_rank(store.projects.role_of(project.id, mine.person), "lead")
        is_open = can_see_answers(store, project.id, mine.person) and (is_lead or bool(own))
        entries = _list_history(store, target.case.id, only="" if is_open else mine.person)
    if mine.state == "claimed":
        if why := format_item_reason(mine.why, is_blind):
            st.caption(f"Why this one: {escape_markdown(why)}.")
    else:
        st.caption(f"You have {mine.state} it; you may answer again.")
    if not is_blind:
        draw_right_answer(gold)
    draw_answers(own, mine.person, target.id)
    draw_comments(target.case)
    _draw_history(entries)
    if is_lead:
        draw_link(SETTLE_PAGE, "Adjudicate it", "gavel", case=target.case.id)


def _claim_item(case_id: str) -> Assignment | None:
    """Return the person's assignment, claiming it if needed; None if that is refused."""
    now = time.time()
    try:
        with state.open_store() as store:
            project, person = state.get_project(store), state.get_person(store)
            current = store.queue.of(case_id, person)
            if current and current.state == "claimed" and current.until > now + RENEW_SECONDS:
                return current
            with store.writing():
                store.projects.require(project.id, person, "annotator", "review")
                return store.queue.take(case_id, person, build_queue_rules(project), now)
    except ReviewError as error:
        with state.open_store() as store:
            (case,) = store.cases.several([case_id])
        draw_alternatives(case, str(error))
        return None


def _draw_ways_out(mine: Assignment) -> None:
    """Draw the buttons that pass an item on, and the list of keys."""
    if mine.state == "claimed":
        for became, words, icon, keys in (
            ("skipped", "Skip", "skip_next", "Ctrl+Space"),
            ("flagged", "Flag for a lead", "flag", "Alt+F"),
        ):
            key = f"review.{became}"
            draw_button(words, key, _pass_on, mine.case_id, became, icon=icon, shortcut=keys)
        _draw_reasoned_flag(mine.case_id)
    draw_shortcut_list(REVIEW_KEYS, "review.keys", mine.case_id)


def _draw_reasoned_flag(case_id: str) -> None:
    key = FLAG_FIELD.format(case_id)
    with (
        st.popover("Flag with a reason", key=f"{key}.open", icon=":material/flag:"),
        st.form(f"{key}.form", border=False),
    ):
        st.text_input("Why a lead should look at it", key=key, max_chars=MAX_REASON_CHARS)
        st.form_submit_button(
            "Flag it",
            key="review.flagged.why",
            icon=":material/flag:",
            on_click=_pass_on,
            args=(case_id, "flagged"),
        )


def _pass_on(case_id: str, became: Literal["skipped", "flagged"]) -> None:
    typed = str(st.session_state.get(FLAG_FIELD.format(case_id)) or "")
    reason = typed.strip() if became == "flagged" else ""
    with store_problem("review.problem"):
        with state.open_store() as store, store.writing():
            project, person, now = state.get_project(store), state.get_person(store), time.time()
            store.projects.require(project.id, person, "annotator", "review")
            store.queue.end(case_id, person, became, now)
            store.queue_events.add(QueueEvent(case_id, person, now, became, reason))
        did = f"{became} for a lead ({reason})" if reason else became
        st.session_state["review.last"] = {"case": case_id, "did": did}
        st.session_state[ANSWER_SAVED] = True


def _finish_item(store: Store, correction: Correction) -> None:
    """End the assignment in the transaction that saves the answer."""
    store.queue.end(correction.case_id, correction.author, "submitted", correction.at)
    st.session_state["review.last"] = {"case": correction.case_id, "correction": correction.id}


def draw_adjudication(case_id: str) -> None:
    """Draw everything needed to adjudicate one case."""
    if st.session_state.pop(ANSWER_SAVED, False):
        _open_next()
    with state.open_store() as store:
        project, item = state.get_project(store), store.queue.get(case_id)
        case = store.cases.get(case_id) if item and item.project_id == project.id else None
    with st.container(horizontal=True, vertical_alignment="center", key="label-head"):
        draw_link(ADJUDICATION_PAGE, "All cases to settle", "arrow_back")
        if item is not None and case is not None:
            _draw_settled_count(project)
            shortcut = "Ctrl+Space"
            draw_button(
                "Next case", "settle.next", _skip_case, case_id, icon="skip_next", shortcut=shortcut
            )
            if item.state != "open":
                words = "Give it back to the queue"
                draw_button(words, "settle.open", _open_again, case_id, icon="undo")
            draw_shortcut_list(ADJUDICATION_KEYS, "settle.keys", case_id)
        else:
            _draw_last()
    if item is None or case is None:
        st.info("There is no case at this link in the queue of this project.")
        return
    show_problem("settle.problem")
    _draw_case(item, case, project)


def _draw_settled_count(project: Project) -> None:
    """Draw how many of the cases that the list's filters leave are settled."""
    wanted: ItemFilter = st.session_state.get("settling.wanted", NO_ITEM_FILTER)
    with state.open_store() as store:
        settled, *waiting = (
            store.queue.count(
                project.id, *narrow_view(ADJUDICATION_VIEWS[name], wanted), time.time()
            )
            for name in ("settled", *WAITING_VIEWS)
        )
    st.caption(f"**{settled} of {settled + sum(waiting)}** settled", width="content")


def _draw_case(item: QueueItem, case: Case, project: Project) -> None:
    loaded = load_run(item.run_id) if item.run_id else None
    progress = loaded[2] if loaded else RunState()
    with state.open_store() as store:
        versions = list_versions(store, case, progress)
        answers = store.corrections.newest_of_case(case.id)
        entries = _list_history(store, case.id)
        flaggers = {e.person for e in store.queue.people_of(case.id) if e.state == "flagged"}
        events = store.queue_events.of_case(case.id)
    draw_question(case.question)
    target = _build_target(case, progress, versions, project)
    _open_form(target, versions)
    flags = {e.person: e for e in events if e.did == "flagged" and e.person in flaggers}
    for flag in flags.values() if item.state == "flagged" else ():
        why = f": {escape_markdown(flag.words)}" if flag.words else "."
        st.info(f"Flagged by **{escape_markdown(flag.person)}** on {format_time(flag.at)}{why}")
    draw_difference(answers)
    draw_versions(target, versions)
    with _draw_sources(case, list_verdict_quotes(progress), "settle"):
        draw_form(target, draw_last=_draw_last)
    with st.expander("Evidence"):
        draw_evidence(progress, f"settle.{case.id}.evidence")
    draw_comments(case, is_settling=True)
    _draw_history(entries)


def _build_target(
    case: Case, progress: RunState, versions: Sequence[AnswerVersion], project: Project
) -> CorrectionTarget:
    whole = merge_answers(versions)

    def record(store: Store, correction: Correction, case: Case) -> None:
        """Store the form's answer as the case's right one."""
        spans = tuple(replace(span, p=1.0) for span in correction.spans)
        adopted = tuple(version.correction_id for version in versions if version.is_persons)
        gold = GoldAnswer(
            new_id(),
            case.id,
            correction.author,
            correction.at,
            "adjudicated",
            correction.label,
            spans,
            corrected_answer=correction.corrected_answer,
            reason=correction.reason,
            took=adopted,
        )
        origin = choose_gold_origin(gold, store.golds.that_counts(case.id))
        record_gold(store, replace(gold, origin=origin), case)
        st.session_state["settle.last"] = case.id

    return CorrectionTarget(
        None,
        case,
        progress,
        settles=True,
        corrects=any(version.is_right for version in versions),
        record=record,
        categories=project.categories,
        version_spans=(*whole.agreed, *whole.open),
    )


def _open_form(target: CorrectionTarget, versions: Sequence[AnswerVersion]) -> None:
    """Mark the words that all of several people marked, unless there is a draft.

    No label is chosen, however many agree: nobody settles a case without a look.
    """
    key = make_form_key(target.id)
    restore_draft(target)
    current = get_marked(key, target.suggested_spans)
    if current.did or f"{key}.label" in st.session_state:
        return
    agreed = {make_mark_id(span) for span in merge_answers(versions).agreed}
    marks = tuple(
        replace(mark, status="marked") if mark.id in agreed else mark
        for mark in make_suggestions(target.suggested_spans)
    )
    st.session_state[f"{key}.marked"] = replace(current, marks=marks)


def _open_again(case_id: str) -> None:
    with store_problem("settle.problem"), state.open_store() as store, store.writing():
        person = state.require_role(store, state.get_project(store).id, "lead", "settle a case")
        reopen_case(store, case_id, person, time.time())


def _skip_case(case_id: str) -> None:
    """Skip a case: it is not offered again in this browser session."""
    st.session_state[ANSWER_SAVED] = True
    st.session_state["settle.passed"] = [*st.session_state.get("settle.passed", []), case_id]


def _draw_last() -> None:
    """Draw a link back to the last adjudicated case; adjudicating it again adds an entry."""
    with state.open_store() as store:
        last = store.cases.get(str(st.session_state.get("settle.last", "")))
    if last is None:
        return
    with _draw_last_row(f"Settled: “{escape_markdown(clip_text(last.response, 60))}”"):
        is_back = st.button(
            "Back to it", key="settle.back", icon=":material/undo:", shortcut="Alt+Z"
        )
    if is_back:
        st.session_state.pop("settle.last", None)
        st.switch_page(SETTLE_PAGE, query_params={"case": last.id})


def _open_next() -> None:
    """Open the next case that the filters leave and that was not skipped, else the list."""
    wanted: ItemFilter = st.session_state.get("settling.wanted", NO_ITEM_FILTER)
    skipped = set(st.session_state.get("settle.passed", []))
    with state.open_store() as store:
        project = state.get_project(store)
        for name in WAITING_VIEWS:
            items, _ = store.queue.page(
                project.id,
                *narrow_view(ADJUDICATION_VIEWS[name], wanted),
                limit=MAX_WAITING_CASES,
                offset=0,
                now=time.time(),
            )
            for item in items:
                if item.case_id not in skipped:
                    st.switch_page(SETTLE_PAGE, query_params={"case": item.case_id})
    st.switch_page(ADJUDICATION_PAGE)
