"""Compare: check one case in several ways within one budget, and see where the runs differ."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.check.new_check import draw_source_fields, project_roster, split_sources
from components.check.roster_choice import (
    can_choose,
    chosen_options,
    draw_keys_of_rosters,
    draw_offer_note,
    draw_option_fields,
    entries_of,
    expected_of,
    offered_protocols,
    planned,
    rosters_offered,
    usual_options,
    usual_protocol,
)
from components.measure.calibration import past_of
from components.run.debate import chosen_words, cost_words, tokens_of
from components.run.run_view import ALIVE, POLL_ALL, STAGE_WORDS, classifier_card, stop
from components.run.verdict import draw_verdict
from components.widgets.controls import (
    button,
    choice_table,
    download,
    link,
    open_run,
    problem_shown,
    table,
)
from components.widgets.html import HtmlMark, marked_text, numbered, show
from components.widgets.wording import (
    LABEL_WORDS,
    clipped,
    escaped,
    p_words,
    protocol_words,
    reused_words,
    roster_words,
    seconds,
    signed,
    status_words,
    when,
)
from core.llm.limits import NANO_PER_CENT, money
from core.pipeline.comparison import (
    MOST_WAYS,
    Budget,
    ComparedRun,
    ComparedWay,
    LeftOut,
    compared,
    compared_cases,
    comparison_csv,
    left_out,
    letters,
    needed,
    same_agent_apart,
    shared_out,
    start_comparison,
    statements_apart,
    turned,
    verdicts,
    without_keys,
    words_apart,
)
from core.pipeline.cost_estimate import expected_seconds
from core.pipeline.streaming_input import CaseDraft, store_case
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.progress import Progress
from core.schema.records import Case, Plan, Run
from core.schema.reviews import Correction
from core.schema.rosters import BUILT_IN

MOST_LINES = 12
PAGE = "compare"
STOPPING = "compare.stopping"  # key of the case whose runs are being stopped
RULE = (
    "Checks start in the order of the list while their likely costs fit into the budget "
    "together. What remains is shared out in proportion. No run exceeds its share."
)
TOKENS = "Tokens for models with no known price"
Named = Mapping[str, ComparedRun]
Loaded = tuple[Run, Case, Progress, list[Correction]]


def parting_lines(response: str, runs: Mapping[str, Progress]) -> list[str]:
    """Return a sentence for each difference: verdicts, statements, words, agents."""
    labels = verdicts(runs)
    parts = (f"{', '.join(names)}: {label}" for label, names in labels.items())
    lines = [f"The verdicts differ. {'; '.join(parts)}."] if len(labels) > 1 else []
    statements = statements_apart(runs)
    for statement in statements[:MOST_LINES]:
        lines.append(f"“{clipped(statement.text, 90)}”: {_marking_words(statement.is_marked)}.")
    words = [  # outside the statements above
        word
        for word in words_apart(response, runs)
        if word.text.strip()
        and not any(s.start <= word.start and word.end <= s.end for s in statements)
    ]
    for word in words[:MOST_LINES]:
        is_marked = dict.fromkeys(word.marked_by, True) | dict.fromkeys(word.passed_by, False)
        lines.append(f"“{clipped(word.text.strip(), 60)}”: {_marking_words(is_marked)}.")
    for turn in turned(runs)[:MOST_LINES]:
        way = f"{turn.run}: {turn.debater} turned from {turn.before} to {turn.after}"
        lines.append(f"{way} in round {turn.round}.")
    for agent, stances in same_agent_apart(runs)[:MOST_LINES]:
        parts = (f"{stance} in {', '.join(names)}" for stance, names in stances.items())
        lines.append(f"{agent} ended differently: {'; '.join(parts)}.")
    return lines


def _marking_words(is_marked: Mapping[str, bool]) -> str:
    marking = ", ".join(name for name, marked in is_marked.items() if marked)
    others = ", ".join(name for name, marked in is_marked.items() if not marked)
    return f"marked by {marking}, not by {others}"


def _draw_budget(settings: Settings, rosters: Sequence[str]) -> Budget:
    """Draw the shared budget and return it; built-in rosters are not asked for one."""
    if all(roster == BUILT_IN for roster in rosters):
        return Budget(settings.run_cents, settings.run_tokens)
    left, right = st.columns(2)
    cents = left.number_input(
        "Total budget, US cents",
        1,
        settings.day_cents,
        min(settings.run_cents, settings.day_cents),
        step=1,
        key="compare.cents",
        help=RULE,
        persist_state="session",
    )
    tokens = right.number_input(
        TOKENS,
        1,
        settings.day_tokens,
        min(settings.run_tokens, settings.day_tokens),
        step=10_000,
        key="compare.tokens",
        help=RULE,
        persist_state="session",
    )
    return Budget(cents, tokens)


def _draw_expected(ways: Sequence[ComparedWay], paces: Sequence[float]) -> None:
    """Draw what each way and all together will take; `paces` are seconds of built-in parts."""
    to_start = [way for way in ways if not way.problem]
    rows = [_expected_row(way, pace) for way, pace in zip(ways, paces, strict=True)]
    table(rows, "compare.expected")
    for problem in dict.fromkeys(way.problem for way in ways if way.problem):
        protocols = [
            protocol_words(w.plan.protocol, short=True) for w in ways if w.problem == problem
        ]
        names = escaped(", ".join(dict.fromkeys(protocols)))
        st.warning(f"Cannot be started: {names}. {escaped(problem)}", icon=":material/money_off:")
    needs = [need for way in to_start if (need := needed(way)) is not None]
    if not needs:
        st.caption(f"{len(to_start)} to start · no language model is called, so no cost")
        return
    uses = [way.expected.likely for way in to_start if way.expected is not None]
    words = (
        f"{len(to_start)} to start · about {sum(use.calls for use in uses)} calls, "
        f"{sum(use.tokens for use in uses):,} tokens and "
        f"{money(sum(need.cents for need in needs) * NANO_PER_CENT)} together. {RULE} Personal "
        "and daily limits apply as well."
    )
    st.caption(escaped(words))


def _expected_row(way: ComparedWay, pace: float) -> dict[str, str]:
    likely = way.expected.likely if way.expected else None
    most = "–"
    if way.share is not None:
        cost = money(way.share.cents * NANO_PER_CENT)
        most = f"{cost} · {way.share.tokens:,} unpriced tokens"
    return {
        "Protocol": chosen_words(way.plan),
        "Models": roster_words(way.plan.roster, short=True),
        "Expected": way.expected.words if way.expected else "no cost",
        "Time": seconds(pace + (likely.seconds if likely else 0.0)),
        "At most": "not started" if way.problem else most,
    }


def draw_comparison(before: Loaded, after: Loaded) -> None:
    """Draw what changed between two runs, then both verdicts with their marked texts."""
    for line in differences(before, after):
        st.markdown(f"- {escaped(line)}")
    pairs = zip(st.columns(2, gap="large"), ("Before", "After"), (before, after), strict=True)
    for column, title, (run, case, progress, _) in pairs:
        origin = [when(run.started_at), roster_words(run.plan.roster, short=True)]
        origin += [cost_words(progress.cost)] if progress.calls else []
        with column:
            st.subheader(title, anchor=False)
            st.caption(escaped(" · ".join(origin)))
            if progress.verdict is not None:
                draw_verdict(progress, classifier_card(progress.classifier), past_of(run, progress))
            else:
                st.info("This run has no verdict.")
            show(marked_text(case.response, numbered(progress.spans)))
            link("pages/check/run.py", "Open this run", "open_in_new", run=run.id)


def differences(before: Loaded, after: Loaded) -> list[str]:
    """Return a line for each difference between two runs, the verdict first."""
    (run_a, case_a, _, _), (run_b, case_b, progress, _) = before, after
    lines = [reused_words(progress.reused)] if progress.reused is not None else []
    if run_a.label != run_b.label:
        labels = (LABEL_WORDS[r.label].lower() if r.label else "no verdict" for r in (run_a, run_b))
        lines.append(f"The verdict changed from {' to '.join(labels)}.")
    elif run_a.p_hallucinated is not None and run_b.p_hallucinated is not None:
        first, second = p_words(run_a.p_hallucinated), p_words(run_b.p_hallucinated)
        moved = f"is {second} again" if first == second else f"went from {first} to {second}"
        lines.append(f"The verdict is the same; p(hallucinated) {moved}.")
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
        "Models": roster_words(plan.roster, short=True),
        "Protocol": protocol_words(plan.protocol, short=True),
        "Debate turns at most": plan.max_turns,
        "Passages per statement": plan.passages,
    }


def _mark_differences(before: Loaded, after: Loaded) -> list[str]:
    old, new = ({(s.start, s.end, s.text) for s in run[2].spans} for run in (before, after))
    pairs = (("Only marked before", old - new), ("Only marked after", new - old))
    return [
        f"{lead}: " + ", ".join(f"“{clipped(text, 60)}”" for _, _, text in sorted(marks)) + "."
        for lead, marks in pairs
        if marks
    ]


def _source_names(loaded: Loaded, ids: set[str]) -> str:
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
    if len(chosen) > MOST_WAYS:
        words = f"Expected at most {MOST_WAYS} ways to check, found {len(chosen)}; choose fewer."
        st.error(words, icon=":material/error:")
        return
    draw_keys_of_rosters(rosters, PAGE)
    if not chosen or not response.strip():
        st.caption("Choose at least one protocol and one model set, and give a text to check.")
        return
    try:
        ways, paces = _expect_ways(sources, (response, question), chosen, settings)
        ways = shared_out(without_keys(ways, state.keys()), budget, settings)
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if not sources:
        words = "No file is chosen: without evidence every verdict is unclear."
        st.warning(words, icon=":material/warning:")
    _draw_expected(ways, paces)
    if st.button(
        "Compare",
        key="compare.start",
        type="primary",
        icon=":material/compare:",
        disabled=all(way.problem for way in ways),
    ):
        _start_comparison(case, CaseDraft(response, question, *split_sources(sources)), ways)


def _draw_case_fields() -> tuple[str, str, list[str]]:
    """Draw the fields; return (response, question, ids of sources)."""
    left, right = st.columns([3, 2], gap="large")
    response = left.text_area(
        "Text to check", key="compare.response", height=120, persist_state="session"
    )
    words = "The question it answers (optional)"
    question = left.text_input(words, key="compare.question", persist_state="session")
    with right:
        sources = draw_source_fields(PAGE, "Sources")
    return response or "", question or "", sources


def _draw_way_choice() -> list[tuple[str, str]]:
    """Draw the choice; return (protocol, roster) of each way, grouped by roster."""
    with state.open_store() as store:
        project = state.project(store)
        default_protocol = usual_protocol(store, project)
    words = rosters_offered()
    left, right = st.columns(2)
    default_roster = project_roster()
    rosters = right.multiselect(
        "Model sets",
        list(words),
        default=[default_roster if default_roster in words else BUILT_IN],
        format_func=words.__getitem__,
        key="compare.rosters",
        persist_state="session",
    )
    offered = offered_protocols(rosters or [BUILT_IN], "compare.protocols")
    default_protocols = [
        name for name in dict.fromkeys([default_protocol, "single"]) if name in offered
    ]
    st.session_state.setdefault("compare.protocols", default_protocols)
    protocols = left.multiselect(
        "Protocols",
        offered,
        format_func=lambda name: protocol_words(name, short=True),
        key="compare.protocols",
        persist_state="session",
    )
    with left:
        draw_offer_note(offered)
    if any(map(can_choose, protocols)):
        with st.expander("Options of the protocols", icon=":material/instant_mix:"):
            for protocol in filter(can_choose, protocols):
                st.markdown(f"**{escaped(protocol_words(protocol, short=True))}**")
                draw_option_fields(PAGE, protocol, usual_options(project, protocol))
    return [(protocol, roster) for roster, protocol in itertools.product(rosters, protocols)]


def _expect_ways(
    sources: Sequence[str],
    text: tuple[str, str],
    chosen: Sequence[tuple[str, str]],
    settings: Settings,
) -> tuple[list[ComparedWay], list[float]]:
    """Return (the ways with their expected use, the seconds of each one's built-in part)."""
    with state.open_store() as store:
        project, entries = state.project(store), entries_of(store, sources)
        ways, paces = [], []
        for protocol, roster in chosen:
            options = chosen_options(PAGE, protocol, usual_options(project, protocol))
            plan = planned(
                roster, settings.max_turns, settings.passages, protocol=protocol, options=options
            )
            ways.append(ComparedWay(plan, expected_of(store, entries, [text], plan)))
            paces.append(expected_seconds(store, entries, len(text[0]), protocol=protocol))
    return ways, paces


def _start_comparison(case: Case | None, draft: CaseDraft, ways: Sequence[ComparedWay]) -> None:
    with problem_shown():
        with state.open_store() as store, store.writing():
            project = state.project(store)
            person = state.require(store, project.id, "annotator", "compare ways to check")
            case = case or store_case(store, project, draft, person, time.time())
        with state.open_store() as store:
            start_comparison(store, state.jobs(), case, ways, by=person, typed=state.typed_keys())
        for name in ("response", "question", "library"):
            st.session_state.pop(f"compare.{name}", None)
        st.switch_page("pages/check/compare.py", query_params={"case": case.id})


def draw_compared(case: Case) -> None:
    """Draw the comparison of a case, refreshed while runs are under way."""
    named, left = _load_comparison(case)
    if any(entry.run.status in ALIVE for entry in named.values()):
        _follow(case)
        return
    _draw_rows(case, named, left, finished=True)
    if len(named) > 1:
        _draw_marks(case, named)
        runs = {name: entry.progress for name, entry in named.items()}
        st.subheader("Where they differ", anchor=False)
        labels = list(verdicts(runs))
        if len(labels) == 1:
            st.markdown(f"All verdicts are the same: **{labels[0]}**.")
        alike = ["The same words are marked, and nobody changed their mind."]
        for line in parting_lines(case.response, runs) or alike:
            st.markdown(f"- {escaped(line)}")
    with st.container(horizontal=True):
        for name, entry in named.items():
            words = escaped(f"{name}: {_way_words(entry)}")
            link("pages/check/run.py", words, "open_in_new", run=entry.run.id)


def _load_comparison(case: Case) -> tuple[Named, list[LeftOut]]:
    with state.open_store() as store:
        runs, left = compared(store, case.id), left_out(store, case.id)
    return dict(zip(letters(len(runs)), runs, strict=True)), left


@st.fragment(run_every=POLL_ALL)
def _follow(case: Case) -> None:
    named, left = _load_comparison(case)
    alive = [entry.run.id for entry in named.values() if entry.run.status in ALIVE]
    if not alive:
        st.session_state.pop(STOPPING, None)
        st.rerun()
        return
    words = f"{len(alive)} of {len(named)} under way"
    if st.session_state.get(STOPPING) == case.id:
        words += ", being stopped"
    st.progress(1 - len(alive) / len(named), text=words)
    button("Stop all", "compare.stop", _stop_runs, alive, case, icon="stop")
    _draw_rows(case, named, left, finished=False)


def _stop_runs(alive: Sequence[str], case: Case) -> None:
    with state.open_store() as store:
        role = store.projects.role_of(case.project_id, state.person(store))
    stop(alive, case.project_id)
    if role is not None:  # else `stop` was refused and has said so
        st.session_state[STOPPING] = case.id


def _draw_rows(case: Case, named: Named, left: Sequence[LeftOut], *, finished: bool) -> None:
    cells = [_run_row(name, entry) for name, entry in named.items()]
    chosen = choice_table(cells, f"compare.rows.{finished}")
    for way in left:
        name = f"{protocol_words(way.protocol, short=True)}, {roster_words(way.roster, short=True)}"
        st.warning(f"{escaped(name)} was not started: {escaped(way.problem)}")
    if finished:
        download(
            "Comparison (CSV)",
            lambda: comparison_csv(named, left, case.response),
            f"counterpoint-{case.id[:8]}.csv",
            "compare.csv",
        )
    if chosen is not None:
        open_run([*named.values()][chosen].run.id)


def _run_row(name: str, entry: ComparedRun) -> dict[str, Any]:
    run, progress = entry.run, entry.progress
    is_alive = run.status in ALIVE
    calls = list(progress.calls.values())
    return {
        "": name,
        "Protocol": chosen_words(run.plan),
        "Verdict": _verdict_words(entry),
        "p": p_words(run.p_hallucinated),
        "Marks": "" if is_alive else str(len(progress.spans)),
        "Turns": str(len(progress.turns)),
        "Seconds": f"{progress.seconds(time.time() if is_alive else None):.1f}",
        "Calls": str(len(calls)),
        "Tokens": f"{tokens_of(calls):,}",
        "Cost": "" if is_alive and not calls else cost_words(progress.cost),
        "Models": roster_words(run.plan.roster, short=True),
    }


def _verdict_words(entry: ComparedRun) -> str:
    """Return the label, or how far the run has come if it has none or may get another."""
    run, status = entry.run, status_words(entry.run)
    if run.status == "running":
        return STAGE_WORDS[entry.progress.stage]
    if run.label is None:
        return status
    is_final = run.status == status.lower()
    return signed(run.label) + ("" if is_final else f", {status[:1].lower()}{status[1:]}")


def _draw_marks(case: Case, named: Named) -> None:
    """Draw the response once with the marks of all ways; letters say whose they are."""
    st.subheader("Marked words", anchor=False)
    marks = [
        HtmlMark(span.start, span.end, name, f"{name} · {_way_words(entry)}: {span.p:.2f}")
        for name, entry in named.items()
        for span in entry.progress.spans
    ]
    show(marked_text(case.response, marks))
    words = [
        f"{name}: {_way_words(entry)}" for name, entry in named.items() if entry.progress.spans
    ]
    finished = {name: entry.progress for name, entry in named.items() if entry.progress.verdict}
    unmarked = [name for name, progress in finished.items() if not progress.spans]
    words += [f"{', '.join(unmarked)}: nothing marked"] if unmarked else []
    st.caption(escaped(" · ".join(words)))


def _way_words(entry: ComparedRun) -> str:
    return f"{chosen_words(entry.run.plan)}, {roster_words(entry.run.plan.roster, short=True)}"


def draw_comparisons() -> None:
    """Draw links to the cases that were compared before."""
    with state.open_store() as store:
        ids = compared_cases(store, state.project(store).id)
        cases = [case for case in map(store.cases.get, ids) if case is not None]
    if cases:
        st.subheader("Earlier comparisons", anchor=False)
    for case in cases:
        words = escaped(f"{clipped(case.response, 80)} · {case.author}")
        link("pages/check/compare.py", words, "compare", case=case.id)
