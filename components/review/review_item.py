"""Label and Adjudicate screens: one item of the review queue, its form, its history, the next."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import streamlit as st

from components.app import state
from components.app.frame import draw_keys
from components.measure.calibration import past_of
from components.review.correction import draw_answers, draw_judgement, newest_seen, take_back
from components.review.correction_draft import (
    CorrectionTarget,
    draw_settled,
    id_of,
    key_of,
    refill,
    restore,
    said_words,
    suggested,
)
from components.review.review_queue import (
    LABEL_PAGE,
    SETTLE_PAGE,
    VIEWS,
    go_on,
    rules_of,
    why_shown,
)
from components.run.debate import draw_debate
from components.run.evidence import draw_evidence
from components.run.run_view import classifier_card, load_run
from components.run.verdict import draw_verdict
from components.widgets.annotation_editors import Marked
from components.widgets.controls import button, link, problem_kept, show_problem
from components.widgets.html import HtmlMark, marked_text, rationale_words, show
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    escaped,
    protocol_words,
    when,
)
from core.review.adjudication import (
    AnswerVersion,
    merged,
    most_said,
    open_again,
    settle,
    version_of,
)
from core.runtime.errors import ReviewError
from core.schema.progress import Progress
from core.schema.records import Case, Project, Run, Span, new_id
from core.schema.reviews import (
    Assignment,
    Correction,
    Gold,
    GoldOrigin,
    Handling,
    Item,
    category_words,
)
from core.store import Store
from core.store.queue import EVERYTHING

HANDLING_WORDS: dict[str, str] = {
    "skipped": "skipped it",
    "flagged": "flagged it for a lead",
    "adjudicated": "settled it",
    "opened": "reopened it",
    "imported": "imported it",
}
KEYS: dict[str, str] = {
    "Alt+1, Alt+2, Alt+3": "say that it is supported, hallucinated, unclear",
    "Ctrl+Enter": "save and go on to the next item",
    "Alt+Z": "take back what was saved, skipped or flagged last",
    "Ctrl+Space": "skip the item",
    "Alt+F": "flag it for a lead",
    "Tab": "from field to field; the words of the response are one, with keys of its own",
    "? in the words": "the keys that mark words",
}
ADJUDICATION_KEYS: dict[str, str] = {
    "Alt+4 to Alt+9": "take the first to the sixth version",
    "Alt+1, Alt+2, Alt+3": "say that it is supported, hallucinated, unclear",
    "Ctrl+Enter": "save the right answer and go on to the next case",
    "Ctrl+Space": "leave this case, go on to the next",
    "Alt+Z": "back to the case that was settled last",
    "? in the words": "the keys that mark words",
}

Entry = Correction | Gold | Handling
RENEW_SECONDS = 60.0
QUEUE_PAGE = "pages/review/pending.py"
A_ROW = 4
FIRST_KEY, LAST_KEY = 4, 9  # Alt+1 to Alt+3 choose the label
LOOKED_AT = 500  # waiting cases searched for the next one
LIST_PAGE = "pages/review/curate.py"


def _list_history(store: Store, case_id: str, only: str = "") -> list[Entry]:
    """Return the case's entries by time; those of the person `only`, if given."""
    entries: list[Entry] = [
        *store.corrections.history(case_id),
        *store.golds.of_case(case_id),
        *store.handlings.of_case(case_id),
    ]
    shown = [entry for entry in entries if not only or _get_author(entry) == only]
    return sorted(shown, key=lambda entry: entry.at)


def _draw_history(entries: Sequence[Entry]) -> None:
    if not entries:
        return
    with st.expander(f"History ({len(entries)} {'entry' if len(entries) == 1 else 'entries'})"):
        for place, entry in enumerate(entries):
            words = f":gray[{when(entry.at)}] **{escaped(_get_author(entry))}** "
            st.markdown(words + _describe_entry(entry, entries[:place]))


def _get_author(entry: Entry) -> str:
    return entry.person if isinstance(entry, Handling) else entry.author


def _describe_entry(entry: Entry, before: Sequence[Entry]) -> str:
    """Return what the entry says, and what it changes against the author's earlier ones."""
    if isinstance(entry, Handling):
        return HANDLING_WORDS[entry.did] + (f": {escaped(entry.words)}" if entry.words else "")
    if isinstance(entry, Gold):
        golds = [e for e in before if isinstance(e, Gold)]
        words = f"gave the right answer ({entry.origin}): {LABEL_WORDS[entry.label].lower()}"
        reason = f": {escaped(entry.reason)}" if entry.reason else ""
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
    return said_words(entry) + _describe_change(entry, standing[-1:])


def _describe_change(entry: Correction | Gold, earlier: Sequence[Correction | Gold]) -> str:
    if not earlier:
        return ""
    before = earlier[-1]
    parts: list[str] = []
    if before.label != entry.label:
        parts.append(f"{LABEL_WORDS[before.label].lower()} → {LABEL_WORDS[entry.label].lower()}")
    parts += [f"+ {_describe_span(s)}" for s in entry.spans if s not in before.spans]
    parts += [f"− {_describe_span(s)}" for s in before.spans if s not in entry.spans]
    if before.corrected_answer != entry.corrected_answer:
        old_answer = escaped(clipped(before.corrected_answer, 60)) or "nothing"
        parts.append(f"right answer: {old_answer} → {escaped(clipped(entry.corrected_answer, 60))}")
    return f"  \n&emsp;changed: {'; '.join(parts)}" if parts else ""


def _describe_span(span: Span) -> str:
    return f"“{escaped(clipped(span.text, 40))}” ({escaped(category_words(span.category))})"


def _draw_saved() -> None:
    last: dict[str, str] = st.session_state.get("review.last") or {}
    with state.open_store() as store:
        said = store.corrections.get(last.get("correction", ""))
        case = store.cases.get(last.get("case", ""))
    if case is None:
        return
    left, right = st.columns([4, 1], vertical_alignment="center")
    did = f"Saved: {LABEL_WORDS[said.label].lower()}" if said else last["did"].capitalize()
    left.caption(f"{did}, “{escaped(clipped(case.response, 80))}”")
    with right:
        button("Undo", "review.undo", _undo, case.id, said, icon="undo", shortcut="Alt+Z")


def _undo(case_id: str, said: Correction | None) -> None:
    """Withdraw the last answer by another entry, or reopen the item passed on; then open it."""
    if said is not None:
        take_back(said, case_id)
    else:
        with problem_kept("review.problem"), state.open_store() as store, store.writing():
            project, person, now = state.project(store), state.person(store), time.time()
            store.projects.require(project.id, person, "annotator", "review")
            store.queue.again(case_id, person, rules_of(project), now)
            store.handlings.add(Handling(case_id, person, now, "opened"))
    st.session_state.pop("review.last", None)
    st.session_state["review.back"] = case_id


def draw_item(case_id: str) -> None:
    """Draw the item, claiming it first if it is open; one that cannot be claimed is read-only."""
    if reopened := st.session_state.pop("review.back", ""):
        st.switch_page(LABEL_PAGE, query_params={"case": reopened})
    is_over = st.session_state.pop("review.go", False)
    if is_over:
        go_on(st.session_state.get("review.wanted", EVERYTHING))
    link(QUEUE_PAGE, "The queue", "arrow_back")
    _draw_saved()
    if is_over:
        return
    with state.open_store() as store:
        item = store.queue.get(case_id) if case_id else None
        project = state.project(store)
        case = store.cases.get(case_id) if item else None
    if item is None or case is None or item.project_id != project.id:
        st.info("There is no item at this link in the queue of this project.")
        return
    show_problem("review.problem")
    _draw_open(item, case, project)


def _draw_open(item: Item, case: Case, project: Project) -> None:
    mine = _claim_item(case.id)
    loaded = load_run(item.run_id) if item.run_id else None
    run, progress = (loaded[0], loaded[2]) if loaded else (None, Progress())
    with state.open_store() as store:
        corrections = store.corrections.of_case(case.id) if mine else []
    own = [each for each in corrections if mine and each.author == mine.person]
    is_blind = project.is_blind and not own  # an answer given, the machine's view may be shown
    if mine is not None:
        _draw_assignment(mine, is_blind)
        draw_keys(KEYS, "review.keys", case.id)
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    show(marked_text(case.response, []))
    if not is_blind and run is not None and progress.verdict is not None:
        draw_verdict(progress, classifier_card(progress.classifier), past_of(run, progress))
        _draw_protocol_labels(run)
    if mine is not None:
        _draw_answer(
            CorrectionTarget(run, case, progress, is_blind, is_alone=True), own, mine, project
        )
    tabs = st.tabs(["Evidence"] if is_blind or run is None else ["Evidence", "Debate"])
    # Quoted passages and wrong statements would reveal the verdict too.
    shown = replace(progress, turns=[], judgement=None, verdict=None) if is_blind else progress
    with tabs[0]:
        draw_evidence(shown, f"review.{case.id}.evidence")
        if run is None:
            st.caption("Nobody has checked it here: mark words of its sources under “More”.")
    if len(tabs) > 1:
        with tabs[1]:
            draw_debate(progress, f"review.{case.id}.debate")


def _draw_protocol_labels(run: Run) -> None:
    """Draw the newest label by each protocol that checked the case."""
    with state.open_store() as store:
        runs = store.runs.of_case(run.case_id, time.time(), 0.0)
    newest = {each.plan.protocol: each for each in runs if each.label}
    words = [f"By {protocol_words(run.plan.protocol, short=True)}"]
    words += [
        f"{protocol_words(name, short=True)}: {LABEL_WORDS[each.label].lower()}"
        for name, each in sorted(newest.items(), key=lambda pair: -pair[1].started_at)
        if each.label and name != run.plan.protocol
    ]
    st.caption(escaped(" · ".join(words)))


def _draw_answer(
    target: CorrectionTarget, own: list[Correction], mine: Assignment, project: Project
) -> None:
    with state.open_store() as store:
        suggestions = tuple(store.golds.suggestions(target.case.id))
        golds = store.golds.of_case(target.case.id)
        is_lead = store.projects.role_of(project.id, mine.person) in ("lead", "admin")
        is_open = is_lead or (bool(own) and not project.is_blind)  # otherwise people answer alone
        entries = _list_history(store, target.case.id, only="" if is_open else mine.person)
    if not target.is_blind:
        draw_settled(golds)
    draw_answers(own, mine.person, target.id)
    draw_judgement(
        replace(target, after=_finish_item, suggestions=suggestions, categories=project.categories)
    )
    _draw_history(entries)
    if is_lead:
        link(SETTLE_PAGE, "Adjudicate it", "gavel", case=target.case.id)


def _claim_item(case_id: str) -> Assignment | None:
    """Return the person's assignment, claiming it if needed; None if that is refused."""
    now = time.time()
    try:
        with state.open_store() as store:
            project, person = state.project(store), state.person(store)
            current = store.queue.of(case_id, person)
            if current and current.state == "claimed" and current.until > now + RENEW_SECONDS:
                return current
            with store.writing():
                store.projects.require(project.id, person, "annotator", "review")
                return store.queue.take(case_id, person, rules_of(project), now)
    except ReviewError as error:
        st.warning(escaped(str(error)), icon=":material/group:")
        return None


def _draw_assignment(mine: Assignment, is_blind: bool) -> None:
    if mine.state != "claimed":
        st.caption(f"You have {mine.state} it; you may answer again.")
        return
    st.caption(f"Why this one: {escaped(why_shown(mine.why, is_blind))}.")
    with st.container(horizontal=True):
        for became, words, icon, keys in (
            ("skipped", "Skip", "skip_next", "Ctrl+Space"),
            ("flagged", "Flag for a lead", "flag", "Alt+F"),
        ):
            key = f"review.{became}"
            button(words, key, _pass_on, mine.case_id, became, icon=icon, shortcut=keys)


def _pass_on(case_id: str, became: Literal["skipped", "flagged"]) -> None:
    with problem_kept("review.problem"):
        with state.open_store() as store, store.writing():
            project, person, now = state.project(store), state.person(store), time.time()
            store.projects.require(project.id, person, "annotator", "review")
            store.queue.end(case_id, person, became, now)
            store.handlings.add(Handling(case_id, person, now, became))
        st.session_state["review.last"] = {"case": case_id, "did": became}
        st.session_state["review.go"] = True


def _finish_item(store: Store, correction: Correction) -> None:
    """End the assignment in the transaction that saves the answer; the next item follows."""
    store.queue.end(correction.case_id, correction.author, "submitted", correction.at)
    st.session_state["review.last"] = {"case": correction.case_id, "correction": correction.id}
    st.session_state["review.go"] = True


def versions_of(store: Store, case: Case, progress: Progress) -> list[AnswerVersion]:
    """Return people's newest answers, the machine's, outside agents' and the right one so far."""
    versions = [version_of(c) for c in store.corrections.newest_of_case(case.id)]
    if progress.verdict is not None:
        why = rationale_words(progress.verdict.rationale)
        versions.append(AnswerVersion("the machine", progress.verdict.label, progress.spans, why))
    for suggestion in store.golds.suggestions(case.id):
        versions.append(AnswerVersion(suggestion.agent, suggestion.label, suggestion.spans))
    if (last := store.golds.that_counts(case.id)) is not None:
        who = f"right answer so far ({last.origin}, {last.author})"
        versions.append(
            AnswerVersion(
                who, last.label, last.spans, last.reason, last.corrected_answer, is_right=True
            )
        )
    return versions


def _draw_versions(target: CorrectionTarget, versions: Sequence[AnswerVersion]) -> None:
    for first in range(0, len(versions), A_ROW):
        row = versions[first : first + A_ROW]
        columns = st.columns(A_ROW if first else len(row))
        for place, (column, version) in enumerate(zip(columns, row, strict=False), start=first):
            with column, st.container(border=True):
                _draw_version(target, version, place)


def _draw_version(target: CorrectionTarget, version: AnswerVersion, place: int) -> None:
    label = version.label
    verdict = f"{LABEL_SIGNS[label]} {LABEL_WORDS[label]}" if label else "marks words only"
    st.markdown(f"**{escaped(version.who)}**: {verdict}")
    marks = [HtmlMark(s.start, s.end, title=category_words(s.category)) for s in version.spans]
    show(marked_text(target.case.response, marks))
    if version.reason:
        st.caption(escaped(version.reason))
    if version.corrected_answer:
        st.caption(f"Right: {escaped(version.corrected_answer)}")
    number = FIRST_KEY + place
    shortcut = f"Alt+{number}" if number <= LAST_KEY else None
    button("Use this", f"settle.take.{place}", _use_version, target, version, shortcut=shortcut)


def _use_version(target: CorrectionTarget, version: AnswerVersion) -> None:
    """Put a version into the form, its spans as suggestions; the lead's own reason stays."""
    key = key_of(target.id)
    reason, answer = (
        str(st.session_state.get(f"{key}.{name}") or "") for name in ("reason", "answer")
    )
    with state.open_store() as store:
        seen = str(st.session_state.get(f"{key}.seen") or newest_seen(store, target))
    correction = Correction(
        "",
        None,
        target.case.id,
        version.who,
        time.time(),
        version.label or "hallucinated",
        version.spans,
        reason,
        version.corrected_answer or answer,
    )
    refill(target, correction, seen)


def draw_settlement(case_id: str) -> None:
    """Draw everything needed to adjudicate one case."""
    if after := st.session_state.pop("settle.go", ""):
        _open_next(after)
    link(LIST_PAGE, "All cases to settle", "arrow_back")
    _draw_last()
    with state.open_store() as store:
        project, item = state.project(store), store.queue.get(case_id)
        case = store.cases.get(case_id)
    if item is None or case is None or case.project_id != project.id:
        st.info("There is no case at this link in the queue of this project.")
        return
    loaded = load_run(item.run_id) if item.run_id else None
    progress = loaded[2] if loaded else Progress()
    with state.open_store() as store:
        versions = versions_of(store, case, progress)
        entries = _list_history(store, case_id)
        flags = [each for each in store.handlings.of_case(case_id) if each.did == "flagged"]
    if case.question:
        st.caption(f"Question: {escaped(case.question)}")
    target = _build_target(case, progress, versions, project)
    _open_form(target, versions)
    if item.state == "flagged" and flags:
        st.info(f"Flagged by **{escaped(flags[-1].person)}** on {when(flags[-1].at)}.")
    _draw_versions(target, versions)
    draw_keys(ADJUDICATION_KEYS, "settle.keys", case.id)
    with st.container(horizontal=True):
        button(
            "Next case", "settle.next", _skip_case, case_id, icon="skip_next", shortcut="Ctrl+Space"
        )
        if item.state != "open":
            button("Give it back to the queue", "settle.open", _open_again, case_id, icon="undo")
    show_problem("settle.problem")
    with st.expander("Evidence"):
        draw_evidence(progress, f"settle.{case_id}.evidence")
    draw_judgement(target)
    _draw_history(entries)


def _build_target(
    case: Case, progress: Progress, versions: Sequence[AnswerVersion], project: Project
) -> CorrectionTarget:
    whole = merged(versions)

    def record(store: Store, correction: Correction, case: Case) -> None:
        """Store the form's answer as the case's right one."""
        spans = tuple(replace(span, p=1.0) for span in correction.spans)
        origin: GoldOrigin = "corrected" if store.golds.of_case(case.id) else "adjudicated"
        adopted = tuple(version.correction_id for version in versions if version.is_persons)
        gold = Gold(
            new_id(),
            case.id,
            correction.author,
            correction.at,
            origin,
            correction.label,
            spans,
            corrected_answer=correction.corrected_answer,
            reason=correction.reason,
            took=adopted,
        )
        settle(store, gold, case)
        st.session_state["settle.go"] = st.session_state["settle.last"] = case.id

    return CorrectionTarget(
        None,
        case,
        progress,
        settles=True,
        corrects=any(version.is_right for version in versions),
        record=record,
        categories=project.categories,
        marked_by=(*whole.agreed, *whole.open),
    )


def _open_form(target: CorrectionTarget, versions: Sequence[AnswerVersion]) -> None:
    """Open the form with what people agree on, unless there is a draft."""
    key = key_of(target.id)
    restore(target)
    if f"{key}.marked" in st.session_state:
        return
    whole = merged(versions)
    agreed = {id_of(span) for span in whole.agreed}
    marks = tuple(
        replace(mark, status="marked") if mark.id in agreed else mark
        for mark in suggested(target.offered)
    )
    st.session_state[f"{key}.marked"] = Marked(marks=marks)
    label = whole.label or most_said(versions)
    if label and f"{key}.label" not in st.session_state:
        st.session_state[f"{key}.label"] = label
        with state.open_store() as store:
            st.session_state[f"{key}.seen"] = newest_seen(store, target)


def _open_again(case_id: str) -> None:
    with problem_kept("settle.problem"), state.open_store() as store, store.writing():
        person = state.require(store, state.project(store).id, "lead", "settle a case")
        open_again(store, case_id, person, time.time())


def _skip_case(case_id: str) -> None:
    """Skip a case: it is not offered again in this browser session."""
    st.session_state["settle.go"] = case_id
    st.session_state["settle.passed"] = [*st.session_state.get("settle.passed", []), case_id]


def _draw_last() -> None:
    """Draw a link back to the last adjudicated case; adjudicating it again adds an entry."""
    with state.open_store() as store:
        last = store.cases.get(str(st.session_state.get("settle.last", "")))
    if last is None:
        return
    left, right = st.columns([4, 1], vertical_alignment="center")
    left.caption(f"Settled: “{escaped(clipped(last.response, 80))}”")
    if right.button("Back to it", key="settle.back", icon=":material/undo:", shortcut="Alt+Z"):
        st.session_state.pop("settle.last", None)
        st.switch_page(SETTLE_PAGE, query_params={"case": last.id})


def _open_next(after: str) -> None:
    """Open the next case to adjudicate that was not skipped, else the list."""
    waiting: list[str] = []
    with state.open_store() as store:
        project = state.project(store)
        for name in ("people differ", "flagged"):
            items, _ = store.queue.page(
                project.id, *VIEWS[name], limit=LOOKED_AT, offset=0, now=time.time()
            )
            waiting += [item.case_id for item in items]
    skipped = {after, *st.session_state.get("settle.passed", [])}
    if remaining := [case_id for case_id in waiting if case_id not in skipped]:
        st.switch_page(SETTLE_PAGE, query_params={"case": remaining[0]})
    st.switch_page(LIST_PAGE)
