"""What reports of runs say, to be read without the app, and the corrected text."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from components.app import login, state
from components.report_formats import (
    Block,
    Line,
    Paragraph,
    Report,
    ReportSection,
    ReportTable,
    TextStyle,
    Words,
    render_blocks,
    render_page,
    write_docx,
    write_html,
    write_markdown,
    write_pdf,
)
from components.review.correction_draft import (
    format_correction,
)
from components.run.audit import (
    MAX_TEXT_CHARS,
    NOTHING_TO_CHECK,
    OUTCOME_WORDS,
    StatementRow,
    build_statement_rows,
    has_audit,
    list_statement_labels,
    list_whole_response_calls,
    summarize_statements,
)
from components.run.corrected_text import list_changes, list_contested
from components.run.debate import explain_silence, format_cost, render_state
from components.run.transcript import (
    MAX_UNFOLDED_TURNS,
    collect_asides,
    list_spoken_texts,
    render_rounds,
    round_anchor,
    split_rounds,
)
from components.run.verdict import (
    NO_PAST_VERDICTS,
    PastVerdicts,
    PersonVerdict,
    apply_person_marks,
    describe_judge_dissent,
    describe_readers,
    describe_reliability,
    describe_rescoring,
    format_views,
    load_person_verdict,
)
from components.widgets.controls import draw_download
from components.widgets.html import (
    Html,
    describe_unchanged_spans,
    element,
    html_table,
    iter_changes,
    join_html,
    split_rationale,
)
from components.widgets.wording import (
    LABEL_WORDS,
    QUOTE_WORDS,
    clip_text,
    format_answer,
    format_label_probability,
    format_protocol,
    format_roster,
    format_source,
    format_status,
    format_time,
)
from core.baseline.wording import apply_edits, shorten
from core.debate.signals import find_signals
from core.pipeline.audit_steps import SEARCH_TOOL
from core.review.people import find_hidden_cases, list_visible_answers
from core.review.queue_ranking import load_policy
from core.schema.events import ToolUse
from core.schema.records import Case, Label, Passage, Quote, Run, Span, Statement
from core.schema.reviews import Correction, format_category
from core.schema.run_state import RunState, fold_events
from core.store import Store
from core.store import open_store as open_store_in
from core.store.queue_order import PEOPLE_DECIDE_REASON
from core.store.runs import RunFilter

MAX_SUMMARY_CHARS = 80  # characters of a line that is read at a glance
MAX_SPAN_CHARS = 600  # characters; thousands of long spans would each repeat half the response
MAX_REPORTED_RUNS = 500
MAX_FINDING_CHARS = 220  # characters of what was found, in a cell beside its statement


def build_report(
    run: Run,
    case: Case,
    progress: RunState,
    corrections: Sequence[Correction],
    card: dict[str, Any] | None,
    past: PastVerdicts = NO_PAST_VERDICTS,
    person: PersonVerdict | None = None,
) -> Report:
    """Return a run's report: what people decided, the verdict, the marked response; details."""
    spans = apply_person_marks(progress, person).spans
    summary: list[Block] = [Paragraph([Words(_describe_origin(run, progress), "quiet")])]
    summary += _list_person_blocks(person, case, progress) if person else []
    summary += _list_verdict_blocks(progress, card, past, is_overruled=person is not None)
    summary += [Paragraph([Words("Question: ", "quiet"), Words(case.question)])] * bool(
        case.question
    )
    if len(progress.statements) > 1 or has_audit(progress):
        heads = ("", "Statement", "Verdict", "What was found")
        cells = _list_statement_cells(case, progress, spans, person)
        summary.append(ReportTable(heads, (4, 39, 16, 41), cells))
    else:
        summary.append(Paragraph(_mark_words(case.response, 0, spans), "text"))
    if spans and (person or not has_audit(progress)):
        summary.append(_make_span_table(spans))
    summary.append(Paragraph(_describe_sources(progress)))
    return Report(
        clip_text(run.name or case.response, MAX_SUMMARY_CHARS),
        summary,
        _list_sections(run, case, progress, corrections, spans, person),
    )


def _describe_origin(run: Run, progress: RunState) -> str:
    cost = f" · {format_cost(progress.cost)}" if progress.calls else ""
    return (
        f"Counterpoint report · {format_time(run.started_at)} · "
        f"{format_roster(run.plan.roster, short=True)} · "
        f"{format_protocol(run.plan.protocol, short=True)} · "
        f"classifier {progress.classifier or run.plan.classifier}{cost} · run {run.id}"
    )


def _list_person_blocks(person: PersonVerdict, case: Case, progress: RunState) -> list[Block]:
    truth, lead = person.truth, person.describe(progress.verdict)
    if person.label is None:
        said = [Words(f"\n{format_answer(one.author, one.label)}") for one in truth.records]
        return [Paragraph([Words(lead, "strong"), *said], "lead")]
    words = f"{lead}: {LABEL_WORDS[person.label]}"
    blocks: list[Block] = [Paragraph([Words(words, "strong")], "lead")]
    reasons = (person.describe_wrong_statements(case.response), truth.reason)
    blocks += [Paragraph([Words(reason)]) for reason in reasons if reason]
    if truth.corrected_answer:
        right = Words(truth.corrected_answer, "strong")
        blocks.append(Paragraph([Words("It should say: "), right]))
    return blocks


def _list_verdict_blocks(
    progress: RunState, card: dict[str, Any] | None, past: PastVerdicts, *, is_overruled: bool
) -> list[Block]:
    """Return the machine's verdict and why; an audit's reasons stand beside its statements."""
    verdict = progress.verdict
    if verdict is None:
        return []
    label = LABEL_WORDS[verdict.label]
    sure = format_label_probability(verdict.label, verdict.p_hallucinated)
    words = [Words(f"The machine: {label}" if is_overruled else label, "strong")]
    words += [Words(f", {sure} likely")] * bool(sure)
    blocks: list[Block] = [Paragraph(words, "" if is_overruled else "lead")]
    worth = (
        ""
        if verdict.p_hallucinated is None
        else describe_reliability(verdict, card, progress, past)
    )
    notes = [worth, describe_rescoring(progress), describe_judge_dissent(progress)]
    blocks += [Paragraph([Words(note, "quiet")]) for note in notes if note]
    blocks += [Paragraph([Words(past.for_people, "strong")])] * bool(past.for_people)
    reasons = split_rationale(verdict.cause_words or verdict.rationale)
    if has_audit(progress):
        counts = Words(f" {summarize_statements(build_statement_rows(progress))}", "quiet")
        return [*blocks, Paragraph([Words(reasons[0]), counts])]
    return [*blocks, *(Paragraph([Words(reason)]) for reason in reasons if reason)]


def _list_statement_cells(
    case: Case, progress: RunState, spans: Sequence[Span], person: PersonVerdict | None
) -> list[list[Line]]:
    """Return the whole response as rows: each statement, its label, what sources say of it.

    A label that the person gave stands before the machine's.
    """
    cells: list[list[Line]] = []
    place = 0
    labels = dict(zip(sorted(progress.statements), list_statement_labels(progress), strict=False))
    given = {(one.start, one.end): one.label for one in person.statements} if person else {}
    for row in sorted(build_statement_rows(progress), key=lambda row: row.statement.start):
        start, end = row.statement.start, row.statement.end
        if between := case.response[place:start].strip():
            cells.append([[], [Words(between)], [], []])
        marked = _mark_words(case.response[start:end], start, spans)
        own, machine = given.get((start, end)), labels.get(row.statement.index)
        verdict, found = _describe_statement(row, machine)
        is_marked = any(words.style == "wrong" for words in marked)
        if row.memory is None and (is_marked or {own, machine} & {"hallucinated", "unclear"}):
            found = _describe_findings(row.statement, progress, spans)
        if own:
            verdict = [
                Words(LABEL_WORDS[own], "strong"), Words("\nMachine: ", "quiet"), *verdict
            ]  # fmt: skip
        cells.append([[Words(str(row.number))], marked, verdict, found])
        place = max(place, end)
    if rest := case.response[place:].strip():
        cells.append([[], [Words(rest)], [], []])
    return cells


def _describe_findings(
    statement: Statement, progress: RunState, spans: Sequence[Span]
) -> list[Words]:
    """Return what a source says about a statement that nobody's audit read, and what readers say.

    It is the quote of the first mark in it, else the passage that was found first.
    """
    inside = [s for s in spans if s.start < statement.end and statement.start < s.end]
    passages = progress.passages.get(statement.index, ())
    places: list[Quote | Passage] = [*(s.quote for s in inside if s.quote), *passages]
    found = [Words("No passage was found.")]
    for place in places[:1]:
        quote = Words(f"“{clip_text(place.text, MAX_FINDING_CHARS)}” ")
        found = [quote, Words(f"({format_source(place)})", "quiet")]
    readers = progress.judgement.readers if progress.judgement else ()
    views = [view for view in readers if view.statement == statement.index]
    return [*found, *[Words(f"\n{format_views(views)}", "quiet")] * bool(views)]


def _describe_statement(row: StatementRow, label: Label | None) -> list[list[Words]]:
    """Return the machine's label of the statement, and what an audit found."""
    memory = row.memory
    if memory is None and label is not None:
        return [[Words(LABEL_WORDS[label], "strong" if label == "hallucinated" else "")], []]
    if memory is None:
        return [[Words("Not checked", "quiet")], []]
    if not memory.is_checkable:
        return [[Words(NOTHING_TO_CHECK, "quiet")], []]
    words: list[Words] = [Words(clip_text(memory.evidence, MAX_FINDING_CHARS))]
    for change in row.changes:
        why = clip_text(change.reason, MAX_FINDING_CHARS)
        words.append(Words(f"\nReconsidered, {change.before} → {change.after}: {why}", "quiet"))
    sure = format_label_probability(memory.label, memory.p)
    style: TextStyle = "strong" if memory.label == "hallucinated" else ""
    return [
        [Words(LABEL_WORDS[memory.label], style), Words(f", {sure}" if sure else "", "quiet")],
        words,
    ]


def _mark_words(text: str, start: int, spans: Sequence[Span]) -> list[Words]:
    """Return the text, which stands at `start` of the response, with the spans' words as wrong."""
    words, place = [], 0
    for span in sorted(spans, key=lambda span: span.start):
        begin, end = max(span.start - start, place), min(span.end - start, len(text))
        if begin < end:
            words += [Words(text[place:begin]), Words(text[begin:end], "wrong")]
            place = end
    return [*words, Words(text[place:])]


def _make_span_table(spans: Sequence[Span]) -> ReportTable:
    """Return the wrong words, what is wrong with them, what they should say and where it stands."""
    rows: list[list[Line]] = []
    for number, span in enumerate(spans, start=1):
        quote = f"“{clip_text(span.quote.text, MAX_FINDING_CHARS)}” " if span.quote else ""
        place = f"({format_source(span.quote)})" if span.quote else ""
        rows.append(
            [
                [Words(str(number))],
                [Words(_span_text(span), "wrong")],
                [Words(format_category(span.category))],
                [Words(span.instead, "strong")],
                [Words(quote), Words(place, "quiet")],
            ]
        )
    heads = ("", "Wrong words", "What is wrong", "It should say", "The source says")
    return ReportTable(heads, (4, 25, 17, 19, 35), rows)


def _span_text(span: Span) -> str:
    return span.text if len(span.text) <= MAX_SPAN_CHARS else shorten(span.text, MAX_SPAN_CHARS)


def _describe_sources(progress: RunState) -> Line:
    """Name the sources that were read, and those that were not, with the reason."""
    names = ", ".join(progress.source_names.values()) or "no source"
    words = [Words("Checked against: ", "quiet"), Words(f"{names}. ")]
    unread = [p.message for p in progress.problems if p.source or p.source_id]
    return [*words, *(Words(f"\nNot read: {message}", "strong") for message in unread)]


def _list_sections(
    run: Run,
    case: Case,
    progress: RunState,
    corrections: Sequence[Correction],
    shown: Sequence[Span],
    person: PersonVerdict | None,
) -> list[ReportSection]:
    """Return the details; the spans `shown` are in the summary already."""
    sections = []
    if corrections:
        said = [Paragraph([Words(_describe_correction(one))]) for one in corrections]
        sections.append(ReportSection("What people said", said))
        is_shown = has_audit(progress) or progress.spans == shown
        if progress.spans and not is_shown:
            machine = _make_span_table(progress.spans)
            sections.append(ReportSection("Words that the machine marked", [machine]))
    if corrected := _list_corrected_blocks(case, progress, person):
        sections.append(ReportSection("Corrected text", corrected))
    sections.append(ReportSection("Evidence", _list_passages(progress)))
    if has_audit(progress):
        sections.append(_make_steps_section(progress))
    spoken = [_head_paragraph(text) for text in list_spoken_texts(progress)]
    if not progress.turns:
        spoken.append(Paragraph([Words(explain_silence(progress))]))
    sections.append(ReportSection("Debate", spoken, join_html(_debate_parts(progress))))
    return [*sections, _make_state_section(run, case, progress)]


def _list_passages(progress: RunState) -> list[Block]:
    """Return the passages in the order of their statements, with the numbers of these."""
    blocks: list[Block] = []
    for id_, passage in progress.evidence.items():
        found = [
            i + 1 for i, own in sorted(progress.passages.items()) if id_ in {p.id for p in own}
        ]
        noun = "statement" if len(found) == 1 else "statements"
        which = f"; {noun} {', '.join(map(str, found))}" if len(progress.statements) > 1 else ""
        place = Words(f" ({format_source(passage)}{which})", "quiet")
        blocks.append(Paragraph([Words(passage.text), place], "quote"))
    return blocks


def _head_paragraph(text: str) -> Paragraph:
    """Return a paragraph whose first line stands out."""
    head, *rest = text.split("\n", 1)
    return Paragraph([Words(head, "strong"), *(Words(f"\n{part}") for part in rest)])


def _list_corrected_blocks(
    case: Case, progress: RunState, person: PersonVerdict | None
) -> list[Block]:
    edits, by = list_changes(case, progress, person)
    if not edits:
        return []
    text = apply_edits(case.response, edits)
    changes: list[Words] = []
    for removed, added in iter_changes(case.response, text):
        same = removed == added
        changes += [Words(removed, "" if same else "removed")]
        changes += [] if same else [Words(added, "added")]
    contested = describe_unchanged_spans(
        case.response, text, list_contested(case, progress, person)
    )
    blocks = [Paragraph([Words(f"Proposed by {by}.", "quiet")]), Paragraph(changes, "text")]
    return [*blocks, *[Paragraph([Words(contested, "quiet")])] * bool(contested)]


def _make_steps_section(progress: RunState) -> ReportSection:
    """Return an audit's steps by the numbers of the statements, which the summary holds."""
    rows, whole = build_statement_rows(progress), list_whole_response_calls(progress)
    whole_lines = [f"The whole response: {_describe_tool_call(use)}" for use in whole]
    numbers = defaultdict[str, list[str]](list)
    for row in rows:
        numbers[", ".join(row.tools) or "no tool was called"].append(str(row.number))
    tools = [f"{names}: {', '.join(which)}" for names, which in numbers.items()]
    lines = [*whole_lines, *tools, *(line for row in rows for line in _list_further_steps(row))]
    blocks = [Paragraph([Words("\n".join(lines))])]
    return ReportSection("Step by step", blocks)


def _list_further_steps(row: StatementRow) -> list[str]:
    """Return what tools said about a statement beside what its row in the table says."""
    finding = row.memory.evidence if row.memory else ""
    further = [use for use in row.uses if use.tool != SEARCH_TOOL or use.outcome != "found"]
    return [f"{row.number}. {_describe_tool_call(use)}" for use in further if use.words != finding]


def _describe_tool_call(use: ToolUse) -> str:
    result = f"{use.label}: " if use.outcome == "found" else f"{OUTCOME_WORDS[use.outcome]}: "
    return f"{clip_text(use.tool, 60)}: {result}{clip_text(use.words, MAX_TEXT_CHARS)}"


def _debate_parts(progress: RunState) -> list[Html]:
    """Return the debate of the HTML report; a long one has links and only its last round open."""
    rounds = split_rounds(progress.turns)
    pieces = render_rounds(rounds, find_signals(progress), collect_asides(progress))
    if not progress.turns:
        return [*pieces, element("p", explain_silence(progress))]
    if len(progress.turns) <= MAX_UNFOLDED_TURNS:
        return pieces
    links = (element("a", one.heading, href=f"#{round_anchor(one)}") for one in rounds)
    return [element("p", *(join_html([link, " "]) for link in links), class_="cp-rounds"), *pieces]


def _make_state_section(run: Run, case: Case, progress: RunState) -> ReportSection:
    cause = progress.verdict.cause_words if progress.verdict else ""
    problems = [p.message for p in progress.problems if p.message != cause and not p.source]
    judgement = progress.judgement
    has_views = judgement is not None and judgement.readers and not has_audit(progress)
    views = describe_readers(judgement).replace("; ", "\n") if judgement and has_views else ""
    agents = [f"{role.role}: {role.agent}" for role in progress.roles]
    built_in = bool(progress.roles) and all(role.built_in for role in progress.roles)
    own = ["By the built-in engine: no language model was asked."] if built_in else []
    notes = [Paragraph([Words(words)]) for words in [*own, views, *problems] if words]
    text = Paragraph([Words(" · ".join(agents))])
    html = join_html([render_blocks(notes), render_state(run, case, progress)])
    return ReportSection("How it was checked", [*notes, text], html)


def _describe_correction(correction: Correction) -> str:
    """Return what a person said, on one line."""
    words = format_correction(correction, MAX_SPAN_CHARS)
    return f"{correction.author}, {format_time(correction.at)}: {words}"


# By the ending of the file: what the button says, its icon, and what writes the file.
REPORT_FORMATS: Mapping[str, tuple[str, str, Callable[[Report], str | bytes]]] = {
    "html": ("Report (HTML)", "description", write_html),
    "pdf": ("Report (PDF)", "picture_as_pdf", write_pdf),
    "docx": ("Report (Word)", "docs", write_docx),
    "md": ("Report (Markdown)", "markdown", write_markdown),
}


def write_report(file_format: str, *run: Any) -> str | bytes:
    """Return a run's report in one of `REPORT_FORMATS`; `run` is what `build_report` takes."""
    _, _, write = REPORT_FORMATS[file_format]
    return write(build_report(*run))


@dataclass(frozen=True)
class ReportedRun:
    """A run with its case, state, corrections, and what people say of the case."""

    run: Run
    case: Case
    progress: RunState
    corrections: tuple[Correction, ...]
    person: PersonVerdict | None = None
    is_for_people: bool = False


def draw_report_button(wanted: RunFilter) -> None:
    """Draw the download of a report; Streamlit builds it in a thread without a session."""
    with state.open_store() as store:
        project_id, person = state.get_project(store).id, state.get_person(store)
    home, members_only = state.home_folder(), login.is_login_required()

    def make() -> str:
        with open_store_in(home) as store:
            if members_only:
                store.projects.require(project_id, person, "annotator", "read these runs")
            return build_runs_report(*load_reported_runs(store, project_id, person, wanted))

    draw_download(
        "Report of these runs",
        make,
        "counterpoint-runs.html",
        "history.report",
        "description",
        help=f"One HTML file with the newest {MAX_REPORTED_RUNS} of them.",
    )


def load_reported_runs(
    store: Store, project_id: str, person: str, wanted: RunFilter
) -> tuple[list[ReportedRun], int]:
    """Return (the newest matching runs as the person may see them, how many match in all)."""
    lease = store.projects.settings().lease_seconds
    rows, total = store.runs.page(
        project_id, wanted, limit=MAX_REPORTED_RUNS, offset=0, now=time.time(), lease=lease
    )
    policy = load_policy(store, store.projects.get(project_id))
    runs = []
    case_ids = [row.run.case_id for row in rows]
    hidden = find_hidden_cases(store, project_id, person, case_ids)
    for row in rows:
        case = store.cases.get(row.run.case_id)
        if case is not None and case.id not in hidden:
            progress = fold_events(event for _, event in store.runs.events(row.run.id))
            answers = store.corrections.of_run(row.run.id)
            corrections = tuple(list_visible_answers(store, case, person, answers))
            is_for_people = policy is not None and policy.is_for_people(
                row.run, progress.classifier
            )
            said = load_person_verdict(store, case, person)
            runs.append(ReportedRun(row.run, case, progress, corrections, said, is_for_people))
    return runs, total


def build_runs_report(found: Sequence[ReportedRun], total: int) -> str:
    """Return the report of several runs as one HTML file that loads nothing."""
    runs = f"{total} run{'' if total == 1 else 's'}"
    words = f"{len(found)} of {runs}" if total > len(found) else runs
    head = [element("h1", "Counterpoint report"), element("p", words, class_="cp-quiet")]
    sections = (_run_section(number, run) for number, run in enumerate(found, start=1))
    return str(
        render_page("Counterpoint report", join_html([*head, _label_counts(found), *sections]))
    )


def _label_counts(runs: Iterable[ReportedRun]) -> Html:
    verdicts: Counter[str] = Counter()
    people: Counter[tuple[str, str]] = Counter()
    for reported in runs:
        verdict = LABEL_WORDS[reported.run.label] if reported.run.label else "No verdict"
        verdicts[verdict] += 1
        if reported.person is not None and reported.person.label is not None:
            people[verdict, LABEL_WORDS[reported.person.label]] += 1
    labels = list(LABEL_WORDS.values())
    rows = (
        (verdict, str(count), *(str(people[verdict, label]) for label in labels))
        for verdict, count in verdicts.most_common()
    )
    names = ("Verdict", "Runs", *(f"People say: {label.lower()}" for label in labels))
    return html_table(names, rows)


def _run_section(number: int, reported: ReportedRun) -> Html:
    run, progress = reported.run, reported.progress
    report = build_report(
        run, reported.case, progress, reported.corrections, None, person=reported.person
    )
    parts: list[str | Html] = [
        element("h2", f"{number}. {report.title}", dir="auto"),
        *([] if run.label else [element("p", format_status(run))]),
        *([element("p", f"⚑ {PEOPLE_DECIDE_REASON.capitalize()}.")] * reported.is_for_people),
        render_blocks(report.summary),
    ]
    # Every quote of the debate once, in order.
    quotes = [quote for turn in progress.turns for quote in turn.quotes]
    for quote in {(quote.source, quote.text): quote for quote in quotes}.values():
        words = Words(f"{format_source(quote)} · {QUOTE_WORDS[quote.status]}\n", "quiet")
        parts.append(render_blocks([Paragraph([words, Words(quote.text)], "quote")]))
    parts += [
        element("p", _describe_correction(correction), dir="auto")
        for correction in reported.corrections
    ]
    return join_html(parts)
