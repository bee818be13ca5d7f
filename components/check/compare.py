"""Compare: check one case in several ways within one budget, and see where the runs differ."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from components.app import state
from components.check.new_check import (
    draw_sources,
    draw_uploader,
    library_choice,
    project_roster,
    split_sources,
)
from components.check.roster_choice import (
    can_choose,
    chosen_options,
    draw_keys_of_rosters,
    draw_offer_note,
    draw_option_fields,
    expected_of,
    offered_protocols,
    planned,
    usual_options,
    usual_protocol,
)
from components.measure.calibration import past_of
from components.run.debate import chosen_words, cost_words, tokens_of
from components.run.run_view import STAGE_WORDS, classifier_card, stop
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
from components.widgets.html import Mark, marked_text, show
from components.widgets.wording import (
    LABEL_SIGNS,
    LABEL_WORDS,
    clipped,
    escaped,
    protocol_words,
    reused_words,
    roster_words,
    seconds,
    status_words,
    when,
)
from core.agents.rosters import sheets_of
from core.llm.limits import NANO_PER_CENT, money
from core.pipeline.comparison import (
    MOST_WAYS,
    Budget,
    Compared,
    LeftOut,
    Way,
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
from core.pipeline.streaming_input import Draft, store_case
from core.runtime.config import Settings
from core.runtime.errors import InputError
from core.schema.progress import Progress
from core.schema.records import Case, LibraryEntry, Plan, Run
from core.schema.reviews import Correction
from core.schema.rosters import BUILT_IN
from core.store import Store

MOST_LINES = 12


def draw_parting(case: Case, runs: Mapping[str, Progress]) -> None:
    """The heading, the labels where all are the same, and what differs."""
    st.subheader("Where they differ", anchor=False)
    labels = list(verdicts(runs))
    if len(labels) == 1:
        st.markdown(f"All verdicts are the same: **{labels[0]}**.")
    lines = parting_lines(case.response, runs)
    for line in lines or ["The same words are marked, and nobody changed their mind."]:
        st.markdown(f"- {escaped(line)}")


def parting_lines(response: str, runs: Mapping[str, Progress]) -> list[str]:
    """What differs, a sentence each: verdicts, statements, words, agents."""
    found = verdicts(runs)
    parts = (f"{', '.join(names)}: {label}" for label, names in found.items())
    lines = [f"The verdicts differ. {'; '.join(parts)}."] if len(found) > 1 else []
    apart = statements_apart(runs)
    for held in apart[:MOST_LINES]:
        lines.append(f"“{clipped(held.text, 90)}”: {_marking(held.is_marked)}.")
    # Words of these sentences were just told of.
    stretches = [
        own
        for own in words_apart(response, runs)
        if own.text.strip() and not any(h.start <= own.start and own.end <= h.end for h in apart)
    ]
    for own in stretches[:MOST_LINES]:
        is_marked = dict.fromkeys(own.marked_by, True) | dict.fromkeys(own.passed_by, False)
        lines.append(f"“{clipped(own.text.strip(), 60)}”: {_marking(is_marked)}.")
    for turn in turned(runs)[:MOST_LINES]:
        lines.append(
            f"{turn.run}: {turn.debater} turned from {turn.before} to {turn.after} in round "
            f"{turn.round}."
        )
    for agent, stances in same_agent_apart(runs)[:MOST_LINES]:
        parts = (f"{stance} in {', '.join(names)}" for stance, names in stances.items())
        lines.append(f"{agent} ended differently: {'; '.join(parts)}.")
    return lines


def _marking(is_marked: Mapping[str, bool]) -> str:
    """Who marks words there and who does not."""
    by = ", ".join(name for name, own in is_marked.items() if own)
    others = ", ".join(name for name, own in is_marked.items() if not own)
    return f"marked by {by}, not by {others}"


RULE = (
    "Ways are taken in the order of the list while what they are likely to take fits into the "
    "budget together; what is left over is dealt out in proportion. No run passes its share."
)


def draw_budget(settings: Settings, rosters: Sequence[str]) -> Budget:
    """The one budget; asked for only where a language model is seated."""
    if all(roster == BUILT_IN for roster in rosters):
        return Budget(settings.run_cents, settings.run_tokens)
    left, right = st.columns(2)
    cents = left.number_input(
        "Budget of all together, US cents",
        1,
        settings.day_cents,
        min(settings.run_cents, settings.day_cents),
        key="compare.cents",
        help=RULE,
        persist_state="session",
    )
    tokens = right.number_input(
        "Tokens of models of no known price",
        1,
        settings.day_tokens,
        min(settings.run_tokens, settings.day_tokens),
        step=10_000,
        key="compare.tokens",
        help=RULE,
        persist_state="session",
    )
    return Budget(int(cents), int(tokens))


def draw_expected(ways: Sequence[Way], paces: Sequence[float]) -> None:
    """What each way will take, its share, and what all will take together.

    `paces` are the seconds of the built-in part of each.
    """
    begun = [way for way in ways if not way.problem]
    table(
        [_expected_row(way, pace) for way, pace in zip(ways, paces, strict=True)],
        "compare.expected",
    )
    for problem in dict.fromkeys(way.problem for way in ways if way.problem):
        left = [protocol_words(w.plan.protocol, short=True) for w in ways if w.problem == problem]
        names = ", ".join(dict.fromkeys(left))
        st.warning(
            f"Not to be started: {escaped(names)}. {escaped(problem)}", icon=":material/money_off:"
        )
    needs = [need for way in begun if (need := needed(way)) is not None]
    used = [way.expected.likely for way in begun if way.expected is not None]
    if not needs:
        st.caption(f"{len(begun)} to be started · no language model is asked, so no cost")
        return
    st.caption(
        escaped(
            f"{len(begun)} to be started · about {sum(use.calls for use in used)} calls, "
            f"{sum(use.tokens for use in used):,} tokens and "
            f"{money(sum(need.cents for need in needs) * NANO_PER_CENT)} together. {RULE} The caps "
            "of the person and of the day hold beside it."
        )
    )


def _expected_row(way: Way, pace: float) -> dict[str, str]:
    likely = way.expected.likely if way.expected else None
    share = way.share
    return {
        "Protocol": chosen_words(way.plan),
        "Roster": roster_words(way.plan.roster, short=True),
        "Expected": way.expected.words if way.expected else "no cost",
        "Time": seconds(pace + (likely.seconds if likely else 0.0)),
        "At most": "not started" if way.problem else "–" if share is None
        else f"{money(share.cents * NANO_PER_CENT)} · {share.tokens:,} unpriced tokens",
    }  # fmt: skip


Loaded = tuple[Run, Case, Progress, list[Correction]]


def draw_comparison(before: Loaded, after: Loaded) -> None:
    """What changed in words, then both verdicts with their marked texts."""
    for line in differences(before, after):
        st.markdown(f"- {escaped(line)}")
    columns = st.columns(2, gap="large")
    for column, title, (run, case, progress, _) in zip(
        columns, ("Before", "After"), (before, after), strict=True
    ):
        with column:
            st.subheader(title, anchor=False)
            st.caption(escaped(_origin(run, progress)))
            if progress.verdict is not None:
                draw_verdict(progress, classifier_card(progress.classifier), past_of(run, progress))
            else:
                st.info("This run has no verdict.")
            marks = [Mark(s.start, s.end, str(n)) for n, s in enumerate(progress.spans, start=1)]
            show(marked_text(case.response, marks))
            link("pages/check/run.py", "Open this run", "open_in_new", run=run.id)


def _origin(run: Run, progress: Progress) -> str:
    """When and by whom it was checked, and what that cost where models were asked."""
    parts = [when(run.started_at), roster_words(run.plan.roster, short=True)]
    return " · ".join([*parts, *([cost_words(progress.cost)] if progress.calls else [])])


def differences(before: Loaded, after: Loaded) -> list[str]:
    """One line for each thing that differs, the verdict first."""
    (run_a, case_a, _, _), (run_b, case_b, _, _) = before, after
    lines: list[str] = []
    if after[2].reused is not None:
        lines.append(reused_words(after[2].reused))
    if run_a.label != run_b.label:
        first = LABEL_WORDS[run_a.label].lower() if run_a.label else "no verdict"
        second = LABEL_WORDS[run_b.label].lower() if run_b.label else "no verdict"
        lines.append(f"The verdict changed from {first} to {second}.")
    elif run_a.p_hallucinated is not None and run_b.p_hallucinated is not None:
        first, second = f"{run_a.p_hallucinated:.2f}", f"{run_b.p_hallucinated:.2f}"
        moved = f"is {second} again" if first == second else f"went from {first} to {second}"
        lines.append(f"The verdict is the same; p(hallucinated) {moved}.")
    sources_a = set(case_a.documents) | set(case_a.images)
    sources_b = set(case_b.documents) | set(case_b.images)
    if sources_b - sources_a:
        lines.append(f"Sources added: {_names(after, sources_b - sources_a)}.")
    if sources_a - sources_b:
        lines.append(f"Sources left out: {_names(before, sources_a - sources_b)}.")
    lines += _plan_differences(run_a.plan, run_b.plan)
    lines += _mark_differences(before, after)
    if case_a.response != case_b.response:
        lines.append("The two runs check different texts.")
    return lines or ["Nothing differs."]


def _plan_differences(a: Plan, b: Plan) -> list[str]:
    pairs = [
        ("Classifier", a.classifier, b.classifier),
        ("Roster", roster_words(a.roster, short=True), roster_words(b.roster, short=True)),
        (
            "Protocol",
            protocol_words(a.protocol, short=True),
            protocol_words(b.protocol, short=True),
        ),
        ("Debate turns at most", a.max_turns, b.max_turns),
        ("Passages per statement", a.passages, b.passages),
    ]
    return [f"{what}: {one} before, {two} after." for what, one, two in pairs if one != two]


def _mark_differences(before: Loaded, after: Loaded) -> list[str]:
    """Words that only one of the runs marks, where both check the same text."""
    if before[1].response != after[1].response:
        return []
    old, new = ({(s.start, s.end, s.text) for s in run[2].spans} for run in (before, after))
    pairs = (("Only marked before", old - new), ("Only marked after", new - old))
    return [
        f"{what}: " + ", ".join(f"“{clipped(text, 60)}”" for _, _, text in sorted(marks)) + "."
        for what, marks in pairs
        if marks
    ]


def _names(loaded: Loaded, ids: set[str]) -> str:
    """The sources' names as that run knew them, problems with them included."""
    _, _, progress, _ = loaded
    known = progress.source_names
    known |= {p.source_id: f"{p.source} (not readable)" for p in progress.problems if p.source_id}
    return ", ".join(sorted(known.get(i, "a file that was not read") for i in ids))


SINGLE = "single"
PAGE = "compare"


def draw_new_comparison(case: Case | None) -> None:
    """Choose and start; over `case`, or over what is typed here."""
    response, question, sources = (
        (case.response, case.question, [*case.documents, *case.images]) if case else _typed_case()
    )
    with state.open_store() as store:
        settings = store.projects.settings()
    chosen = _chosen_ways()
    budget = draw_budget(settings, [roster for _, roster in chosen])
    if len(chosen) > MOST_WAYS:
        st.error(
            f"Expected at most {MOST_WAYS} ways to check, found {len(chosen)}; choose fewer.",
            icon=":material/error:",
        )
        return
    draw_keys_of_rosters([roster for _, roster in chosen], "compare")
    if not chosen or not response.strip():
        st.caption("Choose at least one protocol and one roster, and give a text to check.")
        return
    try:
        with state.open_store() as store:
            entries = _entries(store, sources)
            ways = _ways(store, entries, (response, question), chosen, settings)
            ways = shared_out(without_keys(ways, state.keys()), budget, settings)
            paces = [
                expected_seconds(store, entries, len(response), protocol=way.plan.protocol)
                for way in ways
            ]
    except InputError as error:
        st.error(escaped(str(error)), icon=":material/error:")
        return
    if not sources:
        st.warning(
            "No file is chosen: without evidence every verdict is unclear.",
            icon=":material/warning:",
        )
    draw_expected(ways, paces)
    begin = st.button(
        "Compare",
        key="compare.start",
        type="primary",
        icon=":material/compare:",
        disabled=all(way.problem for way in ways),
    )
    if begin:
        _start(case, response, question, sources, ways)


def _typed_case() -> tuple[str, str, list[str]]:
    """(response, question, ids of sources) as they stand in the fields."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        response = st.text_area(
            "What should be checked", key="compare.response", height=120, persist_state="session"
        )
        question = st.text_input(
            "The question it answers, if there was one",
            key="compare.question",
            persist_state="session",
        )
    with right:
        uploaded = draw_uploader("compare.upload", "Sources", choice="compare.library")
        chosen = library_choice("compare.library")
        sources = list(dict.fromkeys([*uploaded, *chosen]))
        draw_sources(sources)
    return response or "", question or "", sources


def _chosen_ways() -> list[tuple[str, str]]:
    """(protocol, roster) of every way that is chosen, protocols of a roster together."""
    with state.open_store() as store:
        usual = usual_protocol(store, state.project(store))
        words = {sheet.name: roster_words(sheet.name, sheet.words) for sheet in sheets_of(store)}
    left, right = st.columns(2)
    usual_roster = project_roster()
    rosters = right.multiselect(
        "Rosters",
        list(words),
        default=[usual_roster if usual_roster in words else BUILT_IN],
        format_func=lambda name: words[name],
        key="compare.rosters",
        persist_state="session",
    )
    offered = offered_protocols(rosters or [BUILT_IN], "compare.protocols")
    usual_ones = [name for name in dict.fromkeys([usual, SINGLE]) if name in offered]
    st.session_state.setdefault("compare.protocols", usual_ones)
    protocols = left.multiselect(
        "Protocols",
        offered,
        format_func=lambda name: protocol_words(name, short=True),
        key="compare.protocols",
        persist_state="session",
    )
    with left:
        draw_offer_note(offered)
    _draw_options(protocols)
    return [(protocol, roster) for roster, protocol in itertools.product(rosters, protocols)]


def _draw_options(protocols: Sequence[str]) -> None:
    """What can be chosen of each protocol, folded away; `_ways` reads it."""
    with state.open_store() as store:
        project = state.project(store)
    if not any(can_choose(protocol) for protocol in protocols):
        return
    with st.expander("Options of the protocols", icon=":material/instant_mix:"):
        for protocol in filter(can_choose, protocols):
            st.markdown(f"**{escaped(protocol_words(protocol, short=True))}**")
            draw_option_fields(PAGE, protocol, usual_options(project, protocol))


def _entries(store: Store, sources: Sequence[str]) -> list[LibraryEntry]:
    project = state.project(store)
    return [e for e in (store.library.get(project.id, i) for i in sources) if e]


def _ways(
    store: Store,
    entries: Sequence[LibraryEntry],
    asked: tuple[str, str],
    chosen: Sequence[tuple[str, str]],
    settings: Settings,
) -> list[Way]:
    project = state.project(store)
    plans = [
        planned(
            roster,
            settings.max_turns,
            settings.passages,
            protocol=protocol,
            options=chosen_options(PAGE, protocol, usual_options(project, protocol)),
        )
        for protocol, roster in chosen
    ]
    return [Way(plan, expected_of(store, entries, [asked], plan)) for plan in plans]


def _start(
    case: Case | None, response: str, question: str, sources: list[str], ways: Sequence[Way]
) -> None:
    """Store the case where it is new, start all that fits, go to the comparison."""
    with problem_shown():
        documents, images = split_sources(sources)
        with state.open_store() as store, store.writing():
            project = state.project(store)
            person = state.require(store, project.id, "annotator", "compare ways to check")
            if case is None:
                draft = Draft(response, question, tuple(documents), tuple(images))
                case = store_case(store, project, draft, person, time.time())
        with state.open_store() as store:
            start_comparison(store, state.jobs(), case, ways, by=person, typed=state.typed_keys())
        for name in ("response", "question", "library"):
            st.session_state.pop(f"compare.{name}", None)
        st.switch_page("pages/check/compare.py", query_params={"case": case.id})


POLL_SECONDS = 1.0
STOPPING = "compare.stopping"  # the case whose runs were asked to stop
ALIVE = ("queued", "running")
Named = Mapping[str, Compared]


def draw_compared(case: Case) -> None:
    """The comparison of a case; redrawn while runs are under way."""
    named, left = _loaded(case)
    if any(own.run.status in ALIVE for own in named.values()):
        _follow(case)
        return
    _draw_rows(case, named, left, finished=True)
    if len(named) > 1:
        _draw_layers(case, named)
        draw_parting(case, {name: own.progress for name, own in named.items()})
    _draw_links(named)


def _loaded(case: Case) -> tuple[Named, list[LeftOut]]:
    with state.open_store() as store:
        found = compared(store, case.id)
        left = left_out(store, case.id)
    return dict(zip(letters(len(found)), found, strict=True)), left


@st.fragment(run_every=POLL_SECONDS)
def _follow(case: Case) -> None:
    named, left = _loaded(case)
    alive = [own.run.id for own in named.values() if own.run.status in ALIVE]
    if not alive:
        st.session_state.pop(STOPPING, None)
        st.rerun()
        return
    words = f"{len(alive)} of {len(named)} under way"
    if st.session_state.get(STOPPING) == case.id:
        words += ", being stopped"
    st.progress(1 - len(alive) / len(named), text=words)
    button("Stop all", "compare.stop", _stop_all, alive, case, icon="stop")
    _draw_rows(case, named, left, finished=False)


def _stop_all(alive: Sequence[str], case: Case) -> None:
    with state.open_store() as store:
        role = store.projects.role_of(case.project_id, state.person(store))
    stop(alive, case.project_id)
    if role is not None:  # else it was refused, which was said
        st.session_state[STOPPING] = case.id


def _draw_rows(case: Case, named: Named, left: Sequence[LeftOut], *, finished: bool) -> None:
    chosen = choice_table(
        [_cells(name, own) for name, own in named.items()], f"compare.rows.{finished}"
    )
    for own in left:
        name = f"{protocol_words(own.protocol, short=True)}, {roster_words(own.roster, short=True)}"
        st.warning(f"{escaped(name)} was not started: {escaped(own.problem)}")
    if finished:
        download(
            "Comparison (CSV)",
            lambda: comparison_csv(named, left, case.response),
            f"counterpoint-{case.id[:8]}.csv",
            "compare.csv",
        )
    if chosen is not None:
        open_run([*named.values()][chosen].run.id)


def _cells(name: str, own: Compared) -> dict[str, Any]:
    run, progress = own.run, own.progress
    is_alive = run.status in ALIVE
    calls = list(progress.calls.values())
    return {
        "": name,
        "Protocol": chosen_words(run.plan),
        "Verdict": _verdict_words(own),
        "p": "" if run.p_hallucinated is None else f"{run.p_hallucinated:.2f}",
        "Marks": "" if is_alive else str(len(progress.spans)),
        "Turns": str(len(progress.turns)),
        "Seconds": f"{progress.seconds(time.time() if is_alive else None):.1f}",
        "Calls": str(len(calls)),
        "Tokens": f"{tokens_of(calls):,}",
        "Cost": "" if is_alive and not calls else cost_words(progress.cost),
        "Roster": roster_words(run.plan.roster, short=True),
    }


def _verdict_words(own: Compared) -> str:
    """The label; how far the run came where it has none, or may yet get another."""
    run = own.run
    if run.status == "running":
        return STAGE_WORDS[own.progress.stage]
    status = status_words(run)
    if run.label is None:
        return status
    label = f"{LABEL_SIGNS[run.label]} {LABEL_WORDS[run.label]}"
    return label if run.status == status.lower() else f"{label}, {status[:1].lower()}{status[1:]}"


def _draw_layers(case: Case, named: Named) -> None:
    """The response once, with every way's marks over it; their letters say whose they are."""
    st.subheader("Marked words", anchor=False)
    marks = [
        Mark(span.start, span.end, name, f"{name} · {way_words(own)}: {span.p:.2f}")
        for name, own in named.items()
        for span in own.progress.spans
    ]
    show(marked_text(case.response, marks))
    told = [f"{name}: {way_words(own)}" for name, own in named.items() if own.progress.spans]
    silent = [name for name, own in named.items() if own.progress.verdict and not
              own.progress.spans]  # fmt: skip
    words = [*told, *([f"{', '.join(silent)}: nothing marked"] if silent else [])]
    st.caption(escaped(" · ".join(words)))


def way_words(own: Compared) -> str:
    """Protocol, what was chosen of it, and roster, short."""
    return f"{chosen_words(own.run.plan)}, {roster_words(own.run.plan.roster, short=True)}"


def _draw_links(named: Named) -> None:
    with st.container(horizontal=True):
        for name, own in named.items():
            link(
                "pages/check/run.py",
                escaped(f"{name}: {way_words(own)}"),
                "open_in_new",
                run=own.run.id,
            )


def draw_comparisons() -> None:
    """Cases that were compared before."""
    with state.open_store() as store:
        ids = compared_cases(store, state.project(store).id)
        cases = [case for case in map(store.cases.get, ids) if case is not None]
    if not cases:
        return
    st.subheader("Comparisons so far", anchor=False)
    for case in cases:
        link(
            "pages/check/compare.py",
            escaped(f"{clipped(case.response, 80)} · {case.author}"),
            "compare",
            case=case.id,
        )
