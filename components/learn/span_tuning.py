"""Span tuning: thresholds, panel members and examples learned from the words that people marked."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from components.app import state
from components.learn import WORDS
from components.measure.agreement import between
from components.widgets.charts import threshold_figure
from components.widgets.controls import button, problem_kept, show_problem, table
from components.widgets.html import HtmlMark as TextMark
from components.widgets.html import marked_text, show
from components.widgets.wording import counted, escaped, when
from core.learning import span_tuning as tuning
from core.learning.metrics import Figure
from core.learning.span_threshold import (
    FEWEST_CASES,
    GRID,
    PRIOR_CASES,
    Fit,
    Kind,
    Proposal,
    proposal,
)
from core.runtime.errors import ConfigError
from core.schema.records import (
    EXAMPLES,
    MEMBER,
    MOST_EXAMPLES,
    MOST_TOKENS,
    THRESHOLD,
    Levels,
    SpanThreshold,
    base_of,
    examples_from,
    members_from,
    threshold_from,
)
from core.schema.reviews import category_words
from core.store import open_store
from core.store.sqlite import Mark
from core.store.versions import NONE, Choice, Learned, read_body

MOST_KEPT = 8  # projects
PROBLEM = "spans.problem"


@dataclass(frozen=True)
class SpanMaterial:
    """What there is to learn from; `scored` counts the cases that each kind's threshold rests on.

    `threshold` and `member` are what would be kept of the proposals.
    """

    project_id: str
    rows: list[dict[str, Any]]
    scored: Mapping[Kind, int]
    proposals: Mapping[Kind, Proposal]
    threshold: dict[str, Any]
    examples: list[tuning.Candidate]
    panel_cases: int
    members: list[tuning.BestMember]
    member: dict[str, Any]


def material() -> SpanMaterial:
    """What the project has to learn spans from, as it is now."""
    with state.open_store() as store:
        changes = store.changes
        mark = (*changes.of_corrections(), *changes.of_runs(), *changes.of_holdout())
        project = state.project(store).id
    return _material(str(state.home()), project, mark)


@st.cache_resource(
    max_entries=MOST_KEPT, show_spinner="Comparing people's marks with the machine's"
)
def _material(home: str, project_id: str, mark: Mark) -> SpanMaterial:
    with open_store(Path(home)) as store:
        answers = tuning.span_answers(store, project_id)
    scored, shipped = tuning.scored_cases(answers), tuning.shipped_thresholds()
    found = {kind: proposal(kind, cases, shipped[kind]) for kind, cases in scored.items()}
    proposals = {kind: one for kind, one in found.items() if one is not None}
    by_panels = tuning.marked_by_panels(answers)
    members = tuning.best_members(by_panels)
    usable = {case.id for cases in scored.values() for case in cases}
    rows = []
    for name in sorted({base_of(answer.case.language) for answer in answers}):
        own = [answer for answer in answers if base_of(answer.case.language) == name]
        rows.append(
            {
                "Language": _language_words(name),
                "Cases": len(own),
                "Words marked": sum(bool(answer.spans) for answer in own),
                "Nothing wrong": sum(not answer.spans for answer in own),
                "Count for the threshold": sum(answer.case.id in usable for answer in own),
            }
        )
    return SpanMaterial(
        project_id,
        rows,
        {kind: len(cases) for kind, cases in scored.items()},
        proposals,
        tuning.threshold_body(proposals, answers),
        tuning.candidates(answers),
        len(by_panels),
        members,
        tuning.member_body(members, by_panels, answers),
    )


def _language_words(name: str) -> str:
    return {"": "all together", "und": "not known"}.get(name, name)


def draw_marked(found: SpanMaterial) -> None:
    """The cases whose wrong words people told, by language."""
    st.subheader("What people marked", anchor=False)
    show_problem(PROBLEM)
    if not found.rows:
        st.info(WORDS["span_tuning.draw_marked_2"], icon=":material/info:")
        return
    table(found.rows, "spans.cases")
    st.caption(WORDS["span_tuning.draw_marked"])


def _used_now(
    kind: str, project_id: str, read: Callable[[dict[str, Any]], object]
) -> Learned | None:
    """What is in use; one that `read` cannot read, or that was changed, is named and not used."""
    try:
        with state.open_store() as store:
            found = store.learned.in_use(kind, project_id)
        if found is not None:
            read_body(found, read)
        return found
    except ConfigError as error:
        st.error(escaped(f"{error} Until then no check of this project starts."))
        return None


def _draw_choices(kind: str, project_id: str) -> None:
    with state.open_store() as store:
        choices = store.learned.choices(kind, project_id)
    if not choices:
        return
    with st.expander("Go back, and who chose what", icon=":material/history:"):
        numbers = dict.fromkeys([NONE, *(choice.number for choice in choices)])
        if others := [number for number in numbers if number != choices[0].number]:
            left, right = st.columns(2)
            left.selectbox("Use again", others, key=f"{kind}.back", format_func=_number_words)
            right.text_input("Reason", key=f"{kind}.back.reason")
            button("Go back to it", f"{kind}.back.go", _back, kind, project_id, icon="undo")
        for choice in choices:
            what = f"{_number_words(choice.number)}: {escaped(choice.reason)}"
            st.markdown(f"{when(choice.at)} · {escaped(choice.by)} · {what}")


def _number_words(number: int) -> str:
    return "what ships" if number == NONE else f"no. {number}"


def _draw_take(kind: str, project_id: str, body: dict[str, Any]) -> None:
    st.text_input("Reason", key=f"{kind}.reason", placeholder="Reason for using it")
    button(
        "Put in use", f"{kind}.take", _take, kind, project_id, body,
        icon="check_circle", type="primary",
    )  # fmt: skip
    st.caption("Only new checks go by it; runs that are there stay as they are. Leads decide.")


def _take(kind: str, project_id: str, body: dict[str, Any]) -> None:
    field = f"{kind}.reason"
    with problem_kept(PROBLEM):
        with state.open_store() as store, store.writing():
            by = state.require(store, project_id, "lead", "put what was learned in use")
            learned = Learned(kind, project_id, time.time(), by, body)
            tuning.take_into_use(store, learned, str(st.session_state.get(field) or ""))
        st.session_state[field] = ""
        st.toast("In use: new checks go by it.", icon=":material/check:")


def _back(kind: str, project_id: str) -> None:
    field, number = f"{kind}.back.reason", int(st.session_state.get(f"{kind}.back") or NONE)
    with problem_kept(PROBLEM):
        with state.open_store() as store, store.writing():
            by = state.require(store, project_id, "lead", "go back to what was in use")
            reason = str(st.session_state.get(field) or "")
            tuning.go_back(store, Choice(kind, project_id, number, time.time(), by, reason))
        st.session_state[field] = ""
        st.toast(f"In use: {_number_words(number)}.", icon=":material/undo:")


RULE: str = WORDS["span_tuning.rule"]


def draw_members(found: SpanMaterial) -> None:
    """Each member beside the vote of all; what is clearly better can be taken into use."""
    if not found.panel_cases:
        return
    st.subheader("Members of the panel", anchor=False, help=RULE)
    current = _used_now(MEMBER, found.project_id, members_from)
    st.markdown(f"In use: **{_learned_words(current, 'the vote of all')}.")
    if not found.members:
        told = f"{counted(found.panel_cases, 'case')} that people marked and a panel too"
        lacking = FEWEST_CASES - found.panel_cases
        more = f" ({counted(lacking, 'case')} more needed)" if lacking > 0 else ""
        st.info(f"{told}; a language needs {FEWEST_CASES}{more}.", icon=":material/info:")
    for one in found.members:
        figures = (("Vote of all", one.vote), *one.members)
        st.markdown(f"**{escaped(_language_words(one.language))}**, {counted(one.n, 'case')}")
        table(
            [{"Who marks": name, "IoU with people": _words(own, 3)} for name, own in figures],
            f"spans.member.{one.language}",
        )
        verdict = "decides alone" if one.is_better else "does not clearly beat the vote"
        gain = _words(one.gain, 3, "+").replace(" ", " IoU ", 1)
        st.caption(f"{escaped(one.member)} {verdict}: choosing in folds gains {gain}.")
    alone = found.member["alone"]
    if alone and (current is None or current.body != found.member):
        _draw_take(MEMBER, found.project_id, found.member)
    elif found.members and not alone:
        st.caption("No member is clearly closer to people than the vote of all, which stays.")
    _draw_choices(MEMBER, found.project_id)


def _learned_words(current: Learned | None, otherwise: str) -> str:
    """What is in use, after two asterisks that it closes."""
    if current is None:
        return f"{otherwise}**"
    return f"no. {current.number}**, learned {when(current.at)}"


FEW = 30
KIND_WORDS: dict[Kind, str] = WORDS["span_tuning.kind_words"]
KIND_HELP: dict[Kind, str] = WORDS["span_tuning.kind_help"]
THRESHOLD_RULE: str = WORDS["span_tuning.threshold_rule"].format(
    PRIOR_CASES=PRIOR_CASES, FEWEST_CASES=FEWEST_CASES
)


def draw_threshold(found: SpanMaterial) -> None:
    """Every kind of scores with its threshold; what is proposed can be taken into use."""
    st.subheader("Threshold", anchor=False, help=WORDS["span_tuning.iou_help"])
    current = _used_now(THRESHOLD, found.project_id, lambda body: threshold_from(0, body))
    used = threshold_from(current.number, current.body) if current else SpanThreshold()
    st.markdown(f"In use: **{_learned_words(current, 'the shipped threshold')}.")
    for kind in KIND_WORDS:
        if found.scored[kind] or getattr(used, kind).words:
            _draw_kind(kind, found, getattr(used, kind))
    if not any(found.scored.values()):
        st.info(_too_few("reader", found), icon=":material/info:")
    better = {kind for kind, one in found.proposals.items() if one.is_better}
    if better and (current is None or found.threshold != current.body):
        _draw_take(THRESHOLD, found.project_id, found.threshold)
    elif better:
        st.success("What people's marks suggest is in use.", icon=":material/check:")
    if found.proposals:
        with st.expander("How the threshold is chosen"):
            st.markdown(THRESHOLD_RULE)
    _draw_choices(THRESHOLD, found.project_id)


def _too_few(kind: Kind, found: SpanMaterial) -> str:
    count = found.scored[kind]
    more = FEWEST_CASES - count
    lacking = f"{counted(more, 'case')} more needed" if more > 0 else ""
    return (
        f"{counted(count, 'case')} with people's marks that the machine called hallucinated: "
        f"{lacking} before there is anything to say."
    )


def _draw_kind(kind: Kind, found: SpanMaterial, used: Levels) -> None:
    st.markdown(f"**{KIND_WORDS[kind]}**", help=KIND_HELP[kind])
    one = found.proposals.get(kind)
    if one is None:
        st.info(_too_few(kind, found), icon=":material/info:")
        return
    whole = one.whole
    if not one.is_better:
        st.info(
            f"No better threshold was found on {counted(one.n, 'case')}: the one that ships "
            f"({one.shipped:.2f}) stays. At it the mean IoU is {_words(whole.before)}. "
            f"{trivial_words(whole, whole.before)}",
            icon=":material/info:",
        )
    else:
        st.markdown(
            f"People's marks suggest **{one.levels.words}**. Mean IoU over "
            f"{counted(one.n, 'case')}, each with thresholds fitted without it: "
            f"**{_words(whole.after)}**, against {_words(whole.before)} at {one.shipped:.2f} as "
            f"shipped. {trivial_words(whole, whole.after)}"
        )
        if whole.gain.low <= 0:
            st.caption("The gain may be chance: its interval reaches 0 or below.")
    if one.n < FEW:
        st.caption(f"Only {one.n} cases: too few to be sure of any difference.")
    fits = {fit.language: fit for fit in (whole, *one.languages)}
    picked = whole
    if len(one.languages) > 1:
        name = st.selectbox(
            "Language", list(fits), key=f"spans.language.{kind}", format_func=_language_words
        )
        picked = fits[name]
    levels = {"as shipped": picked.shipped}
    if (now := used.at(picked.language)) is not None:
        levels["in use"] = now
    if picked.is_better:
        levels["proposed"] = picked.tau
    figure = threshold_figure([float(x) for x in GRID], picked.curve, levels)
    st.plotly_chart(figure, key=f"spans.curve.{kind}", width="stretch")
    table([_row(fit, used) for fit in fits.values()], f"spans.languages.{kind}")
    st.caption(WORDS["span_tuning.draw_kind"])


def trivial_words(fit: Fit, reached: Figure) -> str:
    """What marking all and nothing come to, and whether the machine's marks come to more."""
    words = (
        f"Marking everything would reach {fit.mark_all:.2f}, marking nothing "
        f"{fit.mark_nothing:.2f}."
    )
    if round(reached.value, 2) <= round(max(fit.mark_all, fit.mark_nothing), 2):
        words += " On these cases its marks come **no closer** to people's than that."
    return words


def _row(fit: Fit, used: Levels) -> dict[str, Any]:
    now = used.at(fit.language)
    return {
        "Language": _language_words(fit.language),
        "Cases": fit.n,
        "In use": f"{fit.shipped if now is None else now:.2f}",
        "Proposed": f"{fit.tau:.2f}",
        "IoU, shipped": _words(fit.before),
        "IoU, proposed": _words(fit.after),
        "Gain": _words(fit.gain, sign="+") if any(fit.gain.body) else "–",
        "Mark all": f"{fit.mark_all:.2f}",
        "Mark nothing": f"{fit.mark_nothing:.2f}",
        "Best on its cases alone": f"{fit.own:.2f}",
    }


def _words(figure: Figure, digits: int = 2, sign: str = "") -> str:
    return between(figure.value, figure.low, figure.high, digits, sign)


FEW_EXAMPLES = 4  # examples that are drawn unasked
HOW: str = WORDS["span_tuning.how"].format(MOST_EXAMPLES=MOST_EXAMPLES, MOST_TOKENS=MOST_TOKENS)


def draw_examples(found: SpanMaterial) -> None:
    """The examples in use and those that would be chosen now."""
    st.subheader("Examples", anchor=False, help=HOW)
    current = _used_now(EXAMPLES, found.project_id, lambda body: (examples_from(body), _ids(body)))
    before = current.body if current else None
    st.caption(WORDS["span_tuning.draw_examples"])
    if current is None:
        st.markdown("In use: **none**.")
    else:
        _draw_in_use(current, {one.id: list(one.answer.said) for one in found.examples})
    pinned, removed = tuning.decided(before)
    proposed = tuning.body_of(tuning.chosen(found.examples, pinned, removed), before)
    fresh = [one for one in proposed["examples"] if one["id"] not in removed]
    if not fresh:
        st.info(WORDS["span_tuning.draw_examples_2"], icon=":material/info:")
    elif _ids(proposed) != _ids(before):
        _draw_proposed(fresh, before)
        _draw_take(EXAMPLES, found.project_id, proposed)
    _draw_choices(EXAMPLES, found.project_id)


def _ids(body: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    told = body or {}
    removed = set(told.get("removed", ()))
    kept = [one for one in told.get("examples", ()) if one["id"] not in removed]
    return sorted((one["id"], " ".join(one["said"])) for one in kept)


def _draw_proposed(fresh: list[dict[str, Any]], before: Mapping[str, Any] | None) -> None:
    known = {name for name, _ in _ids(before)}
    new = [one for one in fresh if one["id"] not in known]
    words = f"{counted(len(fresh), 'example')} would be in use, {len(new)} of them new"
    is_short = before is None and len(new) <= FEW_EXAMPLES
    with st.expander(f"Proposed: {words}", expanded=is_short, icon=":material/lightbulb:"):
        for one in new:
            _draw_example(one)


def _draw_in_use(current: Learned, now: Mapping[str, list[str]]) -> None:
    """`now` are the answers that each case would be an example by, if it still would."""
    pinned, removed = tuning.decided(current.body)
    examples = current.body["examples"]
    shown = [one for one in examples if one["id"] not in removed]
    gone = [one for one in examples if one["id"] in removed]
    st.markdown(
        f"In use: **no. {current.number}**, {counted(len(shown), 'example')}, since "
        f"{when(current.at)}."
    )
    with st.expander("The examples in use", expanded=len(shown) <= FEW_EXAMPLES):
        for one in shown:
            is_pinned = one["id"] in pinned
            decisions: tuple[tuning.Decision, ...] = ("unpin" if is_pinned else "pin", "remove")
            with _draw_example(one, is_pinned=is_pinned):
                if now.get(one["id"]) != one["said"]:
                    st.caption(WORDS["span_tuning.draw_in_use"])
                with st.container(horizontal=True):
                    for decision in decisions:
                        _button(decision, one, current.project_id)
    if gone:
        with st.expander(f"Removed: {counted(len(gone), 'example')}"):
            for one in gone:
                with _draw_example(one):
                    _button("allow", one, current.project_id)


BUTTONS: dict[str, Any] = WORDS["span_tuning.buttons"]


def _button(decision: tuning.Decision, one: dict[str, Any], project_id: str) -> None:
    words, icon, told = BUTTONS[decision]
    key = f"spans.example.{decision}.{one['id'][:16]}"
    button(words, key, _decide, project_id, one["id"], decision, icon=icon, help=told)


def _decide(project_id: str, example_id: str, decision: tuning.Decision) -> None:
    with problem_kept(PROBLEM):
        with state.open_store() as store, store.writing():
            by = state.require(store, project_id, "lead", "choose examples")
            tuning.decide(store, project_id, example_id, decision, by=by, now=time.time())
        st.toast("New checks go by it.", icon=":material/check:")


def _draw_example(one: dict[str, Any], *, is_pinned: bool = False) -> DeltaGenerator:
    sign = ":material/keep: " if is_pinned else ""
    title = f"{sign}**{escaped(str(one['question']))}**" if one["question"] else sign
    marks = []
    for span in one["spans"]:
        instead = f"; instead: {span['instead']}" if span.get("instead") else ""
        words = category_words(str(span["category"])) + instead
        marks.append(TextMark(span["start"], span["end"], title=words))
    around = st.container(border=True)
    with around:
        if title:
            st.markdown(title)
        show(marked_text(str(one["response"]), marks))
        language = _language_words(base_of(str(one["language"])))
        st.caption(f"{escaped(language)} · {escaped(str(one['why']))}")
    return around
