"""Compare: check one case in several ways within one budget, and see where the runs differ."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.app.frame import has_role
from components.check.new_check import (
    draw_source_fields,
    get_project_roster,
    list_unread,
    split_sources,
)
from components.check.roster_choice import (
    build_plan,
    draw_caps,
    draw_offer_note,
    draw_option_fields,
    draw_roster_keys,
    estimate_use,
    get_default_options,
    get_default_protocol,
    has_options,
    list_offered_protocols,
    list_roster_labels,
    load_library_entries,
    read_options,
)
from components.measure.calibration import load_past_verdicts
from components.run.debate import count_tokens, describe_choices, format_cost
from components.run.run_view import (
    ACTIVE_STATUSES,
    POLL_MANY_SECONDS,
    STAGE_WORDS,
    load_classifier_card,
    stop_runs,
)
from components.run.verdict import apply_person_marks, draw_verdict, load_person_verdict
from components.widgets.controls import (
    draw_button,
    draw_choice_table,
    draw_download,
    draw_link,
    draw_table,
    open_run,
    show_problems,
)
from components.widgets.html import HtmlMark, draw_html, number_spans, render_marked_text
from components.widgets.wording import (
    LABEL_WORDS,
    clip_text,
    describe_reuse,
    escape_markdown,
    format_duration,
    format_label,
    format_probability,
    format_protocol,
    format_roster,
    format_status,
    format_time,
    make_file_name,
)
from core.llm.limits import NANO_PER_CENT, format_money
from core.pipeline.comparison import (
    MAX_WAYS,
    ComparedRun,
    ComparedWay,
    ComparisonBudget,
    SkippedWay,
    assign_letters,
    estimate_need,
    find_differing_sentences,
    find_differing_words,
    find_inconsistent_agents,
    find_stance_changes,
    flag_missing_keys,
    format_comparison_csv,
    group_runs_by_label,
    load_compared_cases,
    load_compared_runs,
    load_skipped_ways,
    share_budget,
    start_comparison,
)
from core.pipeline.cost_estimate import estimate_seconds
from core.pipeline.single_check import CaseDraft, store_case
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.records import Case, Plan, Run
from core.schema.reviews import Correction
from core.schema.rosters import BUILT_IN_ROSTER
from core.schema.run_state import RunState

MAX_LINES = 12
PAGE_KEY = "compare"
STOPPING_KEY = "compare.stopping"  # key of the case whose runs are being stopped
BUDGET_RULE = (
    "Checks start in the order of the list while their likely costs fit into the budget "
    "together. What remains is shared out in proportion. No run exceeds its share."
)
RunsByLetter = Mapping[str, ComparedRun]
LoadedRun = tuple[Run, Case, RunState, list[Correction]]


def describe_disagreements(response: str, runs: Mapping[str, RunState]) -> list[str]:
    """Return a sentence for each difference: verdicts, statements, words, agents."""
    labels = group_runs_by_label(runs)
    parts = (f"{', '.join(names)}: {label}" for label, names in labels.items())
    lines = [f"The verdicts differ. {'; '.join(parts)}."] if len(labels) > 1 else []
    statements = find_differing_sentences(runs)
    for statement in statements[:MAX_LINES]:
        lines.append(f"“{clip_text(statement.text, 90)}”: {_marking_words(statement.is_marked)}.")
    words = [  # outside the statements above
        word
        for word in find_differing_words(response, runs)
        if word.text.strip()
        and not any(s.start <= word.start and word.end <= s.end for s in statements)
    ]
    for word in words[:MAX_LINES]:
        is_marked = dict.fromkeys(word.marked_by, True) | dict.fromkeys(word.passed_by, False)
        lines.append(f"“{clip_text(word.text.strip(), 60)}”: {_marking_words(is_marked)}.")
    for turn in find_stance_changes(runs)[:MAX_LINES]:
        way = f"{turn.run}: {turn.debater} turned from {turn.before} to {turn.after}"
        lines.append(f"{way} in round {turn.round}.")
    for agent, stances in find_inconsistent_agents(runs)[:MAX_LINES]:
        parts = (f"{stance} in {', '.join(names)}" for stance, names in stances.items())
        lines.append(f"{agent} ended differently: {'; '.join(parts)}.")
    return lines


def _marking_words(is_marked: Mapping[str, bool]) -> str:
    marking = ", ".join(name for name, marked in is_marked.items() if marked)
    others = ", ".join(name for name, marked in is_marked.items() if not marked)
    return f"marked by {marking}, not by {others}"


def _draw_budget(settings: Settings, rosters: Sequence[str]) -> ComparisonBudget:
    """Draw the shared budget and return it; built-in rosters are not asked for one."""
    if all(roster == BUILT_IN_ROSTER for roster in rosters):
        return ComparisonBudget(settings.run_cents, settings.run_tokens)
    most = settings.day_cents, settings.day_tokens
    usual = min(settings.run_cents, most[0]), min(settings.run_tokens, most[1])
    field = {"help": BUDGET_RULE, "persist_state": "session"}
    caps = draw_caps("compare", "Total budget, US cents", usual, most, least=1, **field)
    return ComparisonBudget(*caps)


def _draw_expected(ways: Sequence[ComparedWay], paces: Sequence[float]) -> None:
    """Draw what each way and all together will take; `paces` are seconds of built-in parts."""
    to_start = [way for way in ways if not way.problem]
    rows = [_expected_row(way, pace) for way, pace in zip(ways, paces, strict=True)]
    draw_table(rows, "compare.expected")
    for problem in dict.fromkeys(way.problem for way in ways if way.problem):
        protocols = [
            format_protocol(w.plan.protocol, short=True) for w in ways if w.problem == problem
        ]
        names = escape_markdown(", ".join(dict.fromkeys(protocols)))
        st.warning(
            f"Cannot be started: {names}. {escape_markdown(problem)}", icon=":material/money_off:"
        )
    needs = [need for way in to_start if (need := estimate_need(way)) is not None]
    if not needs:
        st.caption(f"{len(to_start)} to start · no language model is called, so no cost")
        return
    uses = [way.expected.likely for way in to_start if way.expected is not None]
    words = (
        f"{len(to_start)} to start · about {sum(use.calls for use in uses)} calls, "
        f"{sum(use.tokens for use in uses):,} tokens and "
        f"{format_money(sum(need.cents for need in needs) * NANO_PER_CENT)} together. "
        f"{BUDGET_RULE} Personal "
        "and daily limits apply as well."
    )
    st.caption(escape_markdown(words))


def _expected_row(way: ComparedWay, pace: float) -> dict[str, str]:
    seconds = pace + (way.expected.likely.seconds if way.expected else 0.0)
    is_timed = way.expected is None or way.expected.is_timed
    most = "–"
    if way.share is not None:
        cost = format_money(way.share.cents * NANO_PER_CENT)
        most = f"{cost} · {way.share.tokens:,} unpriced tokens"
    return {
        "Protocol": describe_choices(way.plan),
        "Models": format_roster(way.plan.roster, short=True),
        "Expected": way.expected.words if way.expected else "no cost",
        "Time": format_duration(seconds) if is_timed else "not measured yet",
        "At most": "not started" if way.problem else most,
    }


def draw_side_by_side(before: LoadedRun, after: LoadedRun) -> None:
    """Draw what changed between two runs, then both verdicts with their marked texts."""
    for line in describe_differences(before, after):
        st.markdown(f"- {escape_markdown(line)}")
    pairs = zip(st.columns(2, gap="large"), ("Before", "After"), (before, after), strict=True)
    for column, title, (run, case, progress, _) in pairs:
        with state.open_store() as store:
            person = load_person_verdict(store, case, state.get_person(store))
        origin = [format_time(run.started_at), format_roster(run.plan.roster, short=True)]
        origin += [format_cost(progress.cost)] if progress.calls else []
        with column:
            st.subheader(title, anchor=False)
            st.caption(escape_markdown(" · ".join(origin)))
            if progress.verdict is not None:
                draw_verdict(
                    progress,
                    load_classifier_card(progress.classifier),
                    load_past_verdicts(run, progress),
                    person,
                )
            else:
                st.info("This run has no verdict.")
            marks = number_spans(apply_person_marks(progress, person).spans)
            draw_html(render_marked_text(case.response, marks))
            draw_link("pages/check/run.py", "Open this run", "open_in_new", run=run.id)


def describe_differences(before: LoadedRun, after: LoadedRun) -> list[str]:
    """Return a line for each difference between two runs, the verdict first."""
    (run_a, case_a, _, _), (run_b, case_b, progress, _) = before, after
    lines = [describe_reuse(progress.reused)] if progress.reused is not None else []
    if run_a.label != run_b.label:
        labels = (LABEL_WORDS[r.label].lower() if r.label else "no verdict" for r in (run_a, run_b))
        lines.append(f"The machine’s verdict changed from {' to '.join(labels)}.")
    elif run_a.p_hallucinated is not None and run_b.p_hallucinated is not None:
        first, second = (
            format_probability(run_a.p_hallucinated),
            format_probability(run_b.p_hallucinated),
        )
        moved = f"is {second} again" if first == second else f"went from {first} to {second}"
        lines.append(f"The machine’s verdict is the same; p(hallucinated) {moved}.")
    old, new = ({*case.documents, *case.images} for case in (case_a, case_b))
    lines += [f"Sources added: {_source_names(after, new - old)}."] if new - old else []
    lines += [f"Sources left out: {_source_names(before, old - new)}."] if old - new else []
    plan_a, plan_b = _plan_words(run_a.plan), _plan_words(run_b.plan)
    for name, value in plan_a.items():
        if value != plan_b[name]:
            lines.append(f"{name}: {value} before, {plan_b[name]} after.")
    if case_a.response != case_b.response:
        lines.append("The two runs check different texts.")
    else:
        lines += _mark_differences(before, after)
    return lines or ["Nothing differs."]


def _plan_words(plan: Plan) -> dict[str, object]:
    return {
        "Classifier": plan.classifier,
        "Models": format_roster(plan.roster, short=True),
        "Protocol": format_protocol(plan.protocol, short=True),
        "Debate turns at most": plan.max_turns,
        "Passages per statement": plan.passages,
    }


def _mark_differences(before: LoadedRun, after: LoadedRun) -> list[str]:
    old, new = ({(s.start, s.end, s.text) for s in run[2].spans} for run in (before, after))
    pairs = (("Only marked before", old - new), ("Only marked after", new - old))
    return [
        f"{lead}: " + ", ".join(f"“{clip_text(text, 60)}”" for _, _, text in sorted(marks)) + "."
        for lead, marks in pairs
        if marks
    ]


def _source_names(loaded: LoadedRun, ids: set[str]) -> str:
    """Return the sources' names as that run knew them, those with problems included."""
    names = loaded[2].source_names
    names |= {p.source_id: f"{p.source} (not readable)" for p in loaded[2].problems if p.source_id}
    return ", ".join(sorted(names.get(i, "a file that was not read") for i in ids))


def draw_new_comparison(case: Case | None) -> None:
    """Draw the form for a new comparison of `case`, or of a text that is typed here."""
    response, question, sources = (
        (case.response, case.question, [*case.documents, *case.images])
        if case
        else _draw_case_fields()
    )
    with state.open_store() as store:
        settings = store.projects.settings()
    chosen = _draw_way_choice()
    rosters = [roster for _, roster in chosen]
    budget = _draw_budget(settings, rosters)
    if len(chosen) > MAX_WAYS:
        words = f"Expected at most {MAX_WAYS} ways to check, found {len(chosen)}; choose fewer."
        st.error(words, icon=":material/error:")
        return
    draw_roster_keys(rosters, PAGE_KEY)
    # Above the table that appears once the text is known: a click leaves the field before it ends.
    start = st.container()
    ways: list[ComparedWay] = []
    if chosen:
        try:
            ways, paces = _expect_ways(sources, (response, question), chosen, settings)
            ways = share_budget(flag_missing_keys(ways, state.get_keys()), budget, settings)
        except InputError as error:
            st.error(escape_markdown(str(error)), icon=":material/error:")
    else:
        st.caption("Choose at least one protocol and one model set.")
    is_pressed = start.button(
        "Compare",
        key="compare.start",
        type="primary",
        icon=":material/compare:",
        disabled=all(way.problem for way in ways),
    )
    if is_pressed:
        _start_comparison(case, CaseDraft(response, question, *split_sources(sources)), ways)
    if not ways or not response.strip():
        return
    if not sources:
        words = "No file is chosen: without evidence every verdict is unclear."
        st.warning(words, icon=":material/warning:")
    _draw_expected(ways, paces)


def _draw_case_fields() -> tuple[str, str, list[str]]:
    """Draw the fields; return (response, question, ids of sources)."""
    left, right = st.columns([3, 2], gap="large")
    response = left.text_area(
        "Text to check", key="compare.response", height=120, persist_state="session"
    )
    words = "The question it answers (optional)"
    question = left.text_input(words, key="compare.question", persist_state="session")
    with right:
        sources = draw_source_fields(PAGE_KEY, "Sources")
    return response or "", question or "", sources


def _draw_way_choice() -> list[tuple[str, str]]:
    """Draw the choice; return (protocol, roster) of each way, grouped by roster."""
    with state.open_store() as store:
        project = state.get_project(store)
        default_protocol = get_default_protocol(store, project)
    words = list_roster_labels()
    left, right = st.columns(2)
    default_roster = get_project_roster()
    rosters = right.multiselect(
        "Model sets",
        list(words),
        default=[default_roster if default_roster in words else BUILT_IN_ROSTER],
        format_func=words.__getitem__,
        key="compare.rosters",
        persist_state="session",
    )
    offered = list_offered_protocols(rosters or [BUILT_IN_ROSTER], "compare.protocols")
    default_protocols = [
        name for name in dict.fromkeys([default_protocol, "single"]) if name in offered
    ]
    st.session_state.setdefault("compare.protocols", default_protocols)
    protocols = left.multiselect(
        "Protocols",
        offered,
        format_func=lambda name: format_protocol(name, short=True),
        key="compare.protocols",
        persist_state="session",
    )
    with left:
        draw_offer_note(offered)
    if any(map(has_options, protocols)):
        with st.expander("Options of the protocols", icon=":material/instant_mix:"):
            for protocol in filter(has_options, protocols):
                st.markdown(f"**{escape_markdown(format_protocol(protocol, short=True))}**")
                draw_option_fields(PAGE_KEY, protocol, get_default_options(project, protocol))
    return [(protocol, roster) for roster, protocol in itertools.product(rosters, protocols)]


def _expect_ways(
    sources: Sequence[str],
    text: tuple[str, str],
    chosen: Sequence[tuple[str, str]],
    settings: Settings,
) -> tuple[list[ComparedWay], list[float]]:
    """Return (the ways with their expected use, the seconds of each one's built-in part)."""
    with state.open_store() as store:
        project, entries = state.get_project(store), load_library_entries(store, sources)
        ways, paces = [], []
        for protocol, roster in chosen:
            options = read_options(PAGE_KEY, protocol, get_default_options(project, protocol))
            plan = build_plan(
                roster, settings.max_turns, settings.passages, protocol=protocol, options=options
            )
            ways.append(ComparedWay(plan, estimate_use(store, entries, [text], plan)))
            paces.append(estimate_seconds(store, entries, len(text[0]), protocol=protocol))
    return ways, paces


def _start_comparison(case: Case | None, draft: CaseDraft, ways: Sequence[ComparedWay]) -> None:
    with show_problems():
        unread = [] if case else list_unread(PAGE_KEY)
        with state.open_store() as store, store.writing():
            project = state.get_project(store)
            person = state.require_role(store, project.id, "annotator", "compare ways to check")
            case = case or store_case(store, project, draft, person, time.time())
        with state.open_store() as store:
            start_comparison(
                store, state.get_jobs(), case, ways, by=person, unread=unread,
                typed=state.get_typed_keys(),
            )  # fmt: skip
        for name in ("response", "question", "library"):
            st.session_state.pop(f"compare.{name}", None)
        st.switch_page("pages/check/compare.py", query_params={"case": case.id})


def draw_case_comparison(case: Case) -> None:
    """Draw the comparison of a case, refreshed while runs are under way."""
    named, left = _load_comparison(case)
    if any(entry.run.status in ACTIVE_STATUSES for entry in named.values()):
        _follow(case)
        return
    _draw_rows(case, named, left, finished=True)
    if len(named) > 1:
        _draw_marks(case, named)
        runs = {name: entry.progress for name, entry in named.items()}
        st.subheader("Where they differ", anchor=False)
        labels = list(group_runs_by_label(runs))
        if len(labels) == 1:
            st.markdown(f"All verdicts are the same: **{labels[0]}**.")
        alike = ["The same words are marked, and nobody changed their mind."]
        for line in describe_disagreements(case.response, runs) or alike:
            st.markdown(f"- {escape_markdown(line)}")
    with st.container(horizontal=True):
        for name, entry in named.items():
            words = escape_markdown(f"{name}: {_way_words(entry)}")
            draw_link("pages/check/run.py", words, "open_in_new", run=entry.run.id)


def _load_comparison(case: Case) -> tuple[RunsByLetter, list[SkippedWay]]:
    with state.open_store() as store:
        runs, left = load_compared_runs(store, case.id), load_skipped_ways(store, case.id)
    return dict(zip(assign_letters(len(runs)), runs, strict=True)), left


@st.fragment(run_every=POLL_MANY_SECONDS)
def _follow(case: Case) -> None:
    named, left = _load_comparison(case)
    alive = [entry.run.id for entry in named.values() if entry.run.status in ACTIVE_STATUSES]
    if not alive:
        st.session_state.pop(STOPPING_KEY, None)
        st.rerun()
        return
    words = f"{len(alive)} of {len(named)} under way"
    if st.session_state.get(STOPPING_KEY) == case.id:
        words += ", being stopped"
    st.progress(1 - len(alive) / len(named), text=words)
    if has_role("annotator", project_id=case.project_id):
        draw_button("Stop all", "compare.stop", _stop_runs, alive, case, icon="stop")
    _draw_rows(case, named, left, finished=False)


def _stop_runs(alive: Sequence[str], case: Case) -> None:
    with state.open_store() as store:
        role = store.projects.role_of(case.project_id, state.get_person(store))
    stop_runs(alive, case.project_id)
    if role is not None:  # else `stop` was refused and has said so
        st.session_state[STOPPING_KEY] = case.id


def _draw_rows(
    case: Case, named: RunsByLetter, left: Sequence[SkippedWay], *, finished: bool
) -> None:
    cells = [_run_row(name, entry) for name, entry in named.items()]
    chosen = draw_choice_table(cells, f"compare.rows.{finished}")
    for way in left:
        name = (
            f"{format_protocol(way.protocol, short=True)}, {format_roster(way.roster, short=True)}"
        )
        st.warning(f"{escape_markdown(name)} was not started: {escape_markdown(way.problem)}")
    if finished:
        draw_download(
            "Comparison (CSV)",
            lambda: format_comparison_csv(named, left, case.response),
            make_file_name(case.response, case.created_at, "csv"),
            "compare.csv",
        )
    if chosen is not None:
        open_run([*named.values()][chosen].run.id)


def _run_row(name: str, entry: ComparedRun) -> dict[str, Any]:
    run, progress = entry.run, entry.progress
    is_alive = run.status in ACTIVE_STATUSES
    calls = list(progress.calls.values())
    return {
        "": name,
        "Protocol": describe_choices(run.plan),
        "Verdict": _verdict_words(entry),
        "p": format_probability(run.p_hallucinated),
        "Marks": "" if is_alive else str(len(progress.spans)),
        "Turns": str(len(progress.turns)),
        "Seconds": f"{progress.seconds(time.time() if is_alive else None):.1f}",
        "Calls": str(len(calls)),
        "Tokens": f"{count_tokens(calls):,}",
        "Cost": "" if is_alive and not calls else format_cost(progress.cost),
        "Models": format_roster(run.plan.roster, short=True),
    }


def _verdict_words(entry: ComparedRun) -> str:
    """Return the label, or how far the run has come if it has none or may get another."""
    run, status = entry.run, format_status(entry.run)
    if run.status == "running":
        return STAGE_WORDS[entry.progress.stage]
    if run.label is None:
        return status
    is_final = run.status == status.lower()
    return format_label(run.label) + ("" if is_final else f", {status[:1].lower()}{status[1:]}")


def _draw_marks(case: Case, named: RunsByLetter) -> None:
    """Draw the response once with the marks of all ways; letters say whose they are."""
    st.subheader("Marked words", anchor=False)
    marks = [
        HtmlMark(span.start, span.end, name, f"{name} · {_way_words(entry)}: {span.p:.2f}")
        for name, entry in named.items()
        for span in entry.progress.spans
    ]
    draw_html(render_marked_text(case.response, marks))
    words = [
        f"{name}: {_way_words(entry)}" for name, entry in named.items() if entry.progress.spans
    ]
    finished = {name: entry.progress for name, entry in named.items() if entry.progress.verdict}
    unmarked = [name for name, progress in finished.items() if not progress.spans]
    words += [f"{', '.join(unmarked)}: nothing marked"] if unmarked else []
    st.caption(escape_markdown(" · ".join(words)))


def _way_words(entry: ComparedRun) -> str:
    return f"{describe_choices(entry.run.plan)}, {format_roster(entry.run.plan.roster, short=True)}"


def draw_earlier_comparisons() -> None:
    """Draw links to the cases that were compared before."""
    with state.open_store() as store:
        ids = load_compared_cases(store, state.get_project(store).id)
        cases = [case for case in map(store.cases.get, ids) if case is not None]
    if cases:
        st.subheader("Earlier comparisons", anchor=False)
    for case in cases:
        words = escape_markdown(f"{clip_text(case.response, 80)} · {case.author}")
        draw_link("pages/check/compare.py", words, "compare", case=case.id)
