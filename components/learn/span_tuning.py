"""Span tuning screen: thresholds, panel members and examples learned from people's marks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.app import state
from components.app.frame import has_role
from components.measure.agreement import format_interval
from components.measure.summary import draw_counts, draw_next_step
from components.review.review_queue import QUEUE_PAGE
from components.widgets.charts import threshold_figure
from components.widgets.controls import draw_button, draw_table, show_problem, store_problem
from components.widgets.html import HtmlMark as TextMark
from components.widgets.html import draw_html, render_marked_text
from components.widgets.wording import escape_markdown, format_count, format_language, format_time
from core.learning import span_tuning as tuning
from core.learning.metrics import MetricEstimate
from core.learning.span_threshold import (
    MIN_SCORED_CASES,
    PRIOR_CASES,
    THRESHOLD_GRID,
    ScoreKind,
    ThresholdFit,
    ThresholdProposal,
    propose_thresholds,
)
from core.learning.track_record import MIN_CASES
from core.runtime.concurrency import pause_collector
from core.runtime.errors import ConfigError
from core.schema.records import (
    EXAMPLES_KIND,
    MAX_EXAMPLE_TOKENS,
    MAX_PROMPT_EXAMPLES,
    MEMBER_KIND,
    THRESHOLD_KIND,
    MarkingLevels,
    SpanThresholds,
    get_base_language,
    parse_examples,
    parse_members,
    parse_thresholds,
)
from core.schema.reviews import format_category
from core.store import open_store
from core.store.sqlite import ChangeMark
from core.store.versions import NOTHING_LEARNED, ArtefactChoice, LearnedArtefact, parse_body

MEMBER_RULE = (
    "Each member's run alone is its own marks, as the others voted on them. It decides alone in a "
    "language only where it is clearly closer to people than the vote of all: chosen on four "
    "fifths of the cases, it gains on the other fifth, with an interval above 0."
)
KIND_WORDS: dict[ScoreKind, str] = {
    "reader": "Built-in span reader",
    "votes": "Votes of language models",
    "panel": "Panel in which most runs decide",
    "weighted": "Panel of the built-in readers",
}
KIND_HELP: dict[ScoreKind, str] = {
    "reader": (
        "It gives every word a probability of being wrong; from the threshold on it is marked."
    ),
    "votes": (
        "A language model that votes on a marked place gives a probability. As it ships, its yes "
        "or no decides, which counts here as 0.50; with a threshold the probability does."
    ),
    "panel": (
        "Each member marks words and the others vote on them; words count as wrong from the "
        "threshold at which more than half of the runs mark them."
    ),
    "weighted": (
        "The four built-in readers' votes are summed with weights; from the threshold on words are "
        "marked."
    ),
}
IOU_HELP = (
    "IoU (intersection over union): the characters that both the machine and people marked, as a "
    "share of those that either marked; 1 where neither marked any."
)
DECISION_BUTTONS: dict[str, Any] = {
    "pin": ["Pin", "keep", "Pinned examples come first and stay when others are chosen."],
    "unpin": ["Unpin", "keep_off", None],
    "remove": ["Remove", "delete", None],
    "allow": ["Allow again", "undo", None],
}
MARKED_HINT = (
    "Of several people's marks, the words that both of two, or at least half of more marked. Cases "
    "on which people mark different words are left out, and so are those held out for the "
    "classifier. For the threshold a case counts if the machine called it hallucinated: elsewhere "
    "it marks nothing at any threshold. Whoever saw the machine's marks before marking leans "
    "towards them."
)
EXAMPLES_HINT = (
    "Corrected cases that a language model is shown before it marks the words of another. The "
    "built-in span reader reads no examples: they change nothing in checks by the built-in engine."
)
NOTHING_MARKED = (
    "Nobody has marked wrong words yet, or said that none is wrong. Mark them on Review or on a "
    "run; right answers that come in with a file count too."
)
INTERVALS_HINT = (
    "In brackets: 95% intervals over resampled cases. “Mark all” and “mark nothing” are what a "
    "machine without any judgement would reach."
)
NO_EXAMPLES = (
    "No corrected case is fit to be an example yet. It takes words that people marked in a "
    "response that the machine called hallucinated and marked otherwise; the marks of one person "
    "count if they said how sure they are, or a lead settled the case."
)
NO_LONGER_CHOSEN = (
    ":material/warning: It would not be chosen so any more: its answer, its newest check or its "
    "side of the hold-out has changed."
)

MAX_CACHED_PROJECTS = 8  # projects
SPANS_PROBLEM = "spans.problem"
THRESHOLD_RULE = (
    "The best threshold is the one with the highest mean IoU, smoothed over its neighbours. Few "
    f"cases say little: it is drawn towards the one that ships as if {PRIOR_CASES} more cases had "
    "spoken for that, and a language's own in the same way towards the one of all. Each is then "
    "tried on cases it was not fitted to, in five parts; where it does no better there than the "
    f"one that ships, that one stays. A language gets its own from {MIN_SCORED_CASES} cases on; "
    f"one "
    "with fewer follows all, unless that does worse on the few it has. As the same five parts "
    "also decide what stays, the figures here are a little too kind."
)
MAX_EXPANDED_EXAMPLES = 4  # up to so many examples are shown expanded
EXAMPLES_HELP = (
    "A case is the better an example the less the machine's marks and people's overlap, the "
    "clearer the answer is (settled, agreed, sure) and the shorter it is; at most four of a "
    f"language, of unlike kinds and questions. A check is shown at most {MAX_PROMPT_EXAMPLES} "
    f"of them, "
    f"{MAX_EXAMPLE_TOKENS:,} tokens together, those in its own language first, and never its "
    f"own case. "
    "Cases held out for the classifier are never examples."
)


@dataclass(frozen=True)
class SpanMaterial:
    """What a project can learn spans from; `scored` counts the cases behind each threshold.

    `threshold` and `member` are the bodies that would be stored for the proposals.
    """

    project_id: str
    rows: list[dict[str, Any]]
    scored: Mapping[ScoreKind, int]
    proposals: Mapping[ScoreKind, ThresholdProposal]
    threshold: dict[str, Any]
    examples: list[tuning.ExampleCandidate]
    panel_cases: int
    members: list[tuning.BestMember]
    member: dict[str, Any]


def load_span_material() -> SpanMaterial:
    """Return what the current project can learn spans from."""
    with state.open_store() as store:
        changes = store.changes
        mark = (*changes.of_corrections(), *changes.of_runs(), *changes.of_holdout())
        project = state.get_project(store).id
    return _load_material(str(state.home_folder()), project, mark)


@st.cache_resource(
    max_entries=MAX_CACHED_PROJECTS, show_spinner="Comparing people's marks with the machine's"
)
@pause_collector()
def _load_material(home: str, project_id: str, mark: ChangeMark) -> SpanMaterial:
    with open_store(Path(home)) as store:
        answers = tuning.load_span_answers(store, project_id)
    scored, shipped = tuning.group_scored_cases(answers), tuning.load_shipped_thresholds()
    fitted = {
        kind: propose_thresholds(kind, cases, shipped[kind]) for kind, cases in scored.items()
    }
    proposals = {kind: each for kind, each in fitted.items() if each is not None}
    by_panels = tuning.measure_panel_marks(answers)
    members = tuning.find_best_members(by_panels)
    usable = {case.id for cases in scored.values() for case in cases}
    rows = []
    for name in sorted({get_base_language(answer.case.language) for answer in answers}):
        in_language = [
            answer for answer in answers if get_base_language(answer.case.language) == name
        ]
        rows.append(
            {
                "Language": _format_language(name),
                "Cases": len(in_language),
                "Words marked": sum(bool(answer.spans) for answer in in_language),
                "Nothing wrong": sum(not answer.spans for answer in in_language),
                "Count for the threshold": sum(answer.case.id in usable for answer in in_language),
            }
        )
    return SpanMaterial(
        project_id,
        rows,
        {kind: len(cases) for kind, cases in scored.items()},
        proposals,
        tuning.build_threshold_body(proposals, answers),
        tuning.list_example_candidates(answers),
        len(by_panels),
        members,
        tuning.build_member_body(members, by_panels, answers),
    )


def _format_language(name: str) -> str:
    return format_language(name) if name else "all together"


def _draw_next_step(data: SpanMaterial) -> None:
    lacking = MIN_SCORED_CASES - max(data.scored.values(), default=0)
    if lacking > 0:
        words = f"mark the wrong words of {format_count(lacking, 'more case')}"
        draw_next_step(f"{words} that the machine called hallucinated.", QUEUE_PAGE, "Review")
        return
    with state.open_store() as store:
        choices = store.learned.choices(THRESHOLD_KIND, data.project_id)
        learned = store.learned.intact(THRESHOLD_KIND, data.project_id)
    chosen = choices[0].number if choices else NOTHING_LEARNED
    is_used = any(own.number == chosen and own.body == data.threshold for own in learned)
    if any(proposal.is_better for proposal in data.proposals.values()) and not is_used:
        draw_next_step("people's marks suggest another threshold: compare it below, and use it.")
    else:
        draw_next_step("the best known threshold is in use: mark more cases.", QUEUE_PAGE, "Review")


def draw_marked(data: SpanMaterial) -> None:
    """Draw the numbers of cases whose wrong words people marked, by language."""
    _draw_next_step(data)
    draw_counts(
        f"Here count {format_count(sum(row['Cases'] for row in data.rows), 'case')} whose wrong "
        "words people marked, or said that none is wrong, and that are not held out."
    )
    st.subheader("What people marked", anchor=False)
    show_problem(SPANS_PROBLEM)
    if not data.rows:
        st.info(NOTHING_MARKED, icon=":material/info:")
        return
    draw_table(data.rows, "spans.cases")
    st.caption(MARKED_HINT)


def _load_in_use(
    kind: str, project_id: str, read: Callable[[dict[str, Any]], object]
) -> LearnedArtefact | None:
    """Return what is in use; None, with a message, if it was changed or `read` fails on it."""
    try:
        with state.open_store() as store:
            learned = store.learned.in_use(kind, project_id)
        if learned is not None:
            parse_body(learned, read)
        return learned
    except ConfigError as error:
        st.error(escape_markdown(f"{error} Until then no check of this project starts."))
        return None


def _draw_choices(kind: str, project_id: str) -> None:
    with state.open_store() as store:
        choices = store.learned.choices(kind, project_id)
    if not choices:
        return
    with st.expander("Go back, and who chose what", icon=":material/history:"):
        numbers = dict.fromkeys([NOTHING_LEARNED, *(choice.number for choice in choices)])
        others = [number for number in numbers if number != choices[0].number]
        if others and has_role("lead", "go back to what was in use"):
            left, right = st.columns(2)
            left.selectbox("Use again", others, key=f"{kind}.back", format_func=_format_number)
            right.text_input("Reason", key=f"{kind}.back.reason")
            draw_button("Go back to it", f"{kind}.back.go", _go_back, kind, project_id, icon="undo")
        for choice in choices:
            chosen = f"{_format_number(choice.number)}: {escape_markdown(choice.reason)}"
            st.markdown(f"{format_time(choice.at)} · {escape_markdown(choice.by)} · {chosen}")


def _format_number(number: int) -> str:
    return "what ships" if number == NOTHING_LEARNED else f"no. {number}"


def _draw_put_in_use(kind: str, project_id: str, body: dict[str, Any]) -> None:
    if not has_role("lead", "put what was learned in use"):
        return
    st.text_input("Reason", key=f"{kind}.reason", placeholder="Reason for using it")
    draw_button(
        "Put in use",
        f"{kind}.take",
        _put_in_use,
        kind,
        project_id,
        body,
        icon="check_circle",
        type="primary",
    )
    st.caption("Only new checks go by it; runs that are there stay as they are.")


def _put_in_use(kind: str, project_id: str, body: dict[str, Any]) -> None:
    field = f"{kind}.reason"
    with store_problem(SPANS_PROBLEM):
        with state.open_store() as store, store.writing():
            by = state.require_role(store, project_id, "lead", "put what was learned in use")
            learned = LearnedArtefact(kind, project_id, time.time(), by, body)
            tuning.store_and_use(store, learned, str(st.session_state.get(field) or ""))
        st.session_state[field] = ""
        st.toast("In use: new checks go by it.", icon=":material/check:")


def _go_back(kind: str, project_id: str) -> None:
    field, number = (
        f"{kind}.back.reason",
        int(st.session_state.get(f"{kind}.back") or NOTHING_LEARNED),
    )
    with store_problem(SPANS_PROBLEM):
        with state.open_store() as store, store.writing():
            by = state.require_role(store, project_id, "lead", "go back to what was in use")
            reason = str(st.session_state.get(field) or "")
            tuning.use_earlier(
                store, ArtefactChoice(kind, project_id, number, time.time(), by, reason)
            )
        st.session_state[field] = ""
        st.toast(f"In use: {_format_number(number)}.", icon=":material/undo:")


def draw_members(data: SpanMaterial) -> None:
    """Draw each member beside the vote of all; a clearly better one can be put in use."""
    if not data.panel_cases:
        return
    st.subheader("Members of the panel", anchor=False, help=MEMBER_RULE)
    current = _load_in_use(MEMBER_KIND, data.project_id, parse_members)
    st.markdown(f"In use: **{_format_learned(current, 'the vote of all')}.")
    if not data.members:
        summary = f"{format_count(data.panel_cases, 'case')} that people marked and a panel too"
        lacking = MIN_SCORED_CASES - data.panel_cases
        more = f" ({format_count(lacking, 'case')} more needed)" if lacking > 0 else ""
        st.info(f"{summary}; a language needs {MIN_SCORED_CASES}{more}.", icon=":material/info:")
    for best in data.members:
        figures = (("Vote of all", best.vote), *best.members)
        st.markdown(
            f"**{escape_markdown(_format_language(best.language))}**, "
            f"{format_count(best.n, 'case')}"
        )
        draw_table(
            [
                {"Who marks": name, "IoU with people": _format_figure(figure, 3)}
                for name, figure in figures
            ],
            f"spans.member.{best.language}",
        )
        verdict = "decides alone" if best.is_better else "does not clearly beat the vote"
        gain = _format_figure(best.gain, 3, "+").replace(" ", " IoU ", 1)
        st.caption(f"{escape_markdown(best.member)} {verdict}: choosing in folds gains {gain}.")
    alone = data.member["alone"]
    if alone and (current is None or current.body != data.member):
        _draw_put_in_use(MEMBER_KIND, data.project_id, data.member)
    elif data.members and not alone:
        st.caption("No member is clearly closer to people than the vote of all, which stays.")
    _draw_choices(MEMBER_KIND, data.project_id)


def _format_learned(current: LearnedArtefact | None, default: str) -> str:
    """Return what is in use; the caller opened bold text, which this closes."""
    if current is None:
        return f"{default}**"
    return f"no. {current.number}**, learned {format_time(current.at)}"


def draw_threshold(data: SpanMaterial) -> None:
    """Draw each kind of score with its threshold; proposals can be put in use."""
    st.subheader("Threshold", anchor=False, help=IOU_HELP)
    current = _load_in_use(THRESHOLD_KIND, data.project_id, lambda body: parse_thresholds(0, body))
    used = parse_thresholds(current.number, current.body) if current else SpanThresholds()
    st.markdown(f"In use: **{_format_learned(current, 'the shipped threshold')}.")
    for kind in KIND_WORDS:
        if data.scored[kind] or getattr(used, kind).words:
            _draw_kind(kind, data, getattr(used, kind))
    if not any(data.scored.values()):
        st.info(_explain_too_few("reader", data), icon=":material/info:")
    better = {kind for kind, one in data.proposals.items() if one.is_better}
    if better and (current is None or data.threshold != current.body):
        _draw_put_in_use(THRESHOLD_KIND, data.project_id, data.threshold)
    elif better:
        st.success("What people's marks suggest is in use.", icon=":material/check:")
    if data.proposals:
        with st.expander("How the threshold is chosen"):
            st.markdown(THRESHOLD_RULE)
    _draw_choices(THRESHOLD_KIND, data.project_id)


def _explain_too_few(kind: ScoreKind, data: SpanMaterial) -> str:
    count = data.scored[kind]
    more = MIN_SCORED_CASES - count
    lacking = f"{format_count(more, 'case')} more needed" if more > 0 else ""
    return (
        f"{format_count(count, 'case')} with people's marks that the machine called hallucinated: "
        f"{lacking} before there is anything to say."
    )


def _draw_kind(kind: ScoreKind, data: SpanMaterial, used: MarkingLevels) -> None:
    st.markdown(f"**{KIND_WORDS[kind]}**", help=KIND_HELP[kind])
    fitted = data.proposals.get(kind)
    if fitted is None:
        st.info(_explain_too_few(kind, data), icon=":material/info:")
        return
    whole = fitted.whole
    if not fitted.is_better:
        st.info(
            f"No better threshold was found on {format_count(fitted.n, 'case')}: the one that "
            f"ships "
            f"({fitted.shipped:.2f}) stays. At it the mean IoU is {_format_figure(whole.before)}. "
            f"{format_trivial_baselines(whole, whole.before)}",
            icon=":material/info:",
        )
    else:
        st.markdown(
            f"People's marks suggest **{fitted.levels.words}**. Mean IoU over "
            f"{format_count(fitted.n, 'case')}, each with thresholds fitted without it: "
            f"**{_format_figure(whole.after)}**, against {_format_figure(whole.before)} at "
            f"{fitted.shipped:.2f} as shipped. {format_trivial_baselines(whole, whole.after)}"
        )
        if whole.gain.low <= 0:
            st.caption("The gain may be chance: its interval reaches 0 or below.")
    if fitted.n < MIN_CASES:
        st.caption(f"Only {fitted.n} cases: too few to be sure of any difference.")
    fits = {fit.language: fit for fit in (whole, *fitted.languages)}
    picked = whole
    if len(fitted.languages) > 1:
        name = st.selectbox(
            "Language", list(fits), key=f"spans.language.{kind}", format_func=_format_language
        )
        picked = fits[name]
    levels = {"as shipped": picked.shipped}
    if (now := used.at(picked.language)) is not None:
        levels["in use"] = now
    if picked.is_better:
        levels["proposed"] = picked.tau
    if picked.n < MIN_SCORED_CASES:
        st.caption(f"A curve is drawn from {MIN_SCORED_CASES} cases on.")
    else:
        figure = threshold_figure([float(x) for x in THRESHOLD_GRID], picked.curve, levels)
        st.plotly_chart(figure, key=f"spans.curve.{kind}", width="stretch")
    draw_table([_build_row(fit, used) for fit in fits.values()], f"spans.languages.{kind}")
    st.caption(INTERVALS_HINT)


def format_trivial_baselines(fit: ThresholdFit, reached: MetricEstimate) -> str:
    """Return what marking all and nothing would reach, and whether the machine does better."""
    words = (
        f"Marking everything would reach {fit.mark_all:.2f}, marking nothing "
        f"{fit.mark_nothing:.2f}."
    )
    if round(reached.value, 2) <= round(max(fit.mark_all, fit.mark_nothing), 2):
        words += " On these cases its marks come **no closer** to people's than that."
    return words


def _build_row(fit: ThresholdFit, used: MarkingLevels) -> dict[str, Any]:
    now = used.at(fit.language)
    return {
        "Language": _format_language(fit.language),
        "Cases": fit.n,
        "In use": f"{fit.shipped if now is None else now:.2f}",
        "Proposed": f"{fit.tau:.2f}",
        "IoU, shipped": _format_figure(fit.before),
        "IoU, proposed": _format_figure(fit.after),
        "Gain": _format_figure(fit.gain, sign="+") if any(fit.gain.body) else "–",
        "Mark all": f"{fit.mark_all:.2f}",
        "Mark nothing": f"{fit.mark_nothing:.2f}",
        "Best on its cases alone": f"{fit.own:.2f}",
    }


def _format_figure(figure: MetricEstimate, digits: int = 2, sign: str = "") -> str:
    return format_interval(figure.value, figure.low, figure.high, digits, sign)


def draw_examples(data: SpanMaterial) -> None:
    """Draw the examples in use and those that would be chosen now."""
    st.subheader("Examples", anchor=False, help=EXAMPLES_HELP)
    current = _load_in_use(
        EXAMPLES_KIND, data.project_id, lambda body: (parse_examples(body), _list_examples(body))
    )
    before = current.body if current else None
    st.caption(EXAMPLES_HINT)
    if current is None:
        st.markdown("In use: **none**.")
    else:
        _draw_in_use(current, {each.id: list(each.answer.said) for each in data.examples})
    pinned, removed = tuning.read_decisions(before)
    proposed = tuning.build_examples_body(
        tuning.select_examples(data.examples, pinned, removed), before
    )
    usable = [each for each in proposed["examples"] if each["id"] not in removed]
    if not usable:
        st.info(NO_EXAMPLES, icon=":material/info:")
    elif _list_examples(proposed) != _list_examples(before):
        _draw_proposed(usable, before)
        _draw_put_in_use(EXAMPLES_KIND, data.project_id, proposed)
    _draw_choices(EXAMPLES_KIND, data.project_id)


def _list_examples(body: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    body = body or {}
    removed = set(body.get("removed", ()))
    kept = [each for each in body.get("examples", ()) if each["id"] not in removed]
    return sorted((each["id"], " ".join(each["said"])) for each in kept)


def _draw_proposed(examples: list[dict[str, Any]], before: Mapping[str, Any] | None) -> None:
    known = {name for name, _ in _list_examples(before)}
    new = [each for each in examples if each["id"] not in known]
    words = f"{format_count(len(examples), 'example')} would be in use, {len(new)} of them new"
    is_short = before is None and len(new) <= MAX_EXPANDED_EXAMPLES
    with st.expander(f"Proposed: {words}", expanded=is_short, icon=":material/lightbulb:"):
        for example in new:
            _draw_example(example)


def _draw_in_use(current: LearnedArtefact, now: Mapping[str, list[str]]) -> None:
    """Draw the examples in use; `now` maps a case to the answers it would be chosen by today."""
    pinned, removed = tuning.read_decisions(current.body)
    examples = current.body["examples"]
    shown = [example for example in examples if example["id"] not in removed]
    removed_examples = [example for example in examples if example["id"] in removed]
    st.markdown(
        f"In use: **no. {current.number}**, {format_count(len(shown), 'example')}, since "
        f"{format_time(current.at)}."
    )
    with st.expander("The examples in use", expanded=len(shown) <= MAX_EXPANDED_EXAMPLES):
        for example in shown:
            is_pinned = example["id"] in pinned
            decisions: tuple[tuning.ExampleDecision, ...] = (
                "unpin" if is_pinned else "pin",
                "remove",
            )
            with _draw_example(example, is_pinned=is_pinned):
                if now.get(example["id"]) != example["said"]:
                    st.caption(NO_LONGER_CHOSEN)
                with st.container(horizontal=True):
                    for decision in decisions:
                        _draw_button(decision, example, current.project_id)
    if removed_examples:
        with st.expander(f"Removed: {format_count(len(removed_examples), 'example')}"):
            for example in removed_examples:
                with _draw_example(example):
                    _draw_button("allow", example, current.project_id)


def _draw_button(
    decision: tuning.ExampleDecision, example: dict[str, Any], project_id: str
) -> None:
    if not has_role("lead", project_id=project_id):
        return
    words, icon, tip = DECISION_BUTTONS[decision]
    key = f"spans.example.{decision}.{example['id'][:16]}"
    draw_button(words, key, _decide, project_id, example["id"], decision, icon=icon, help=tip)


def _decide(project_id: str, example_id: str, decision: tuning.ExampleDecision) -> None:
    with store_problem(SPANS_PROBLEM):
        with state.open_store() as store, store.writing():
            by = state.require_role(store, project_id, "lead", "choose examples")
            tuning.decide_example(store, project_id, example_id, decision, by=by, now=time.time())
        st.toast("New checks go by it.", icon=":material/check:")


def _draw_example(example: dict[str, Any], *, is_pinned: bool = False) -> DeltaGenerator:
    sign = ":material/keep: " if is_pinned else ""
    title = (
        f"{sign}**{escape_markdown(str(example['question']))}**" if example["question"] else sign
    )
    marks = []
    for span in example["spans"]:
        instead = f"; instead: {span['instead']}" if span.get("instead") else ""
        words = format_category(str(span["category"])) + instead
        marks.append(TextMark(span["start"], span["end"], title=words))
    container = st.container(border=True)
    with container:
        if title:
            st.markdown(title)
        draw_html(render_marked_text(str(example["response"]), marks))
        language = _format_language(get_base_language(str(example["language"])))
        st.caption(f"{escape_markdown(language)} · {escape_markdown(str(example['why']))}")
    return container
