"""Protocols on independent answers: a single judge, an ensemble, a debate only when unsure.

Single: one judge decides from the evidence, without a debate. It is asked directly, for its chain
of thought, or with examples; of several samples the label given by more than half counts
(self-consistency). The default is one judgement with the plain prompt.
Source: HaluAgent 3.2 and fig. 6, CEDA A.2, SC-MAKS 4.4.
Calls: as many judgements as samples, in parallel.

Ensemble: each debater answers alone, all in parallel, and the answers are counted. Two who agree
give the label; where they differ a coin decides, and the verdict says so. With more than two the
majority decides, and the coin where every one gave a label and both labels are as frequent. The
coin gives no label to open or lost answers: then nothing is settled. There is no judge. The coin
depends on the seed and on the content of the case, so that it falls the same again on any computer;
case ids would not do, as they are new each time. Source: ColMAD 4.1 (the baseline “Ensemble”, which
has two). Calls: one turn of each debater, in parallel.

Adaptive: a single judge first, and a debate only if that judgement is not certain enough: if the
judge leaves it open, if p (its own, or the share of its samples) is near one half, or if the
built-in readers contradict it: the majority of those that it weighed, or, for a language model, the
built-in judge that serves as its fallback. A debate cannot supply missing evidence or read an
image, so none is held for these causes. `then` names the debate; the default is ColMAD. Its own
options are `samples` and `style`; the debate's options apply to the debate. Source: SC-MAKS 2.2
(conditional debate, its reference 12). Calls: as many judgements as samples, in parallel; then
those of the debate, if it is held.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from core.agents.agent_runner import run_judge
from core.baseline.wording import format_count, frame_verdict
from core.debate.state import (
    DebateProtocol,
    DebateState,
    ProtocolCalls,
    TurnRequest,
    build_judge_view,
    collect_turns,
    conclude_debate,
    take_turns,
)
from core.debate.votes import (
    check_unreadable_images,
    count_useful_samples,
    count_votes,
    decide_by_samples,
    draw_samples,
    format_reason,
    list_samples,
    make_no_majority,
    make_no_votes,
    report_fewer_samples,
)
from core.schema.events import DebateDecided, Event
from core.schema.records import Case, Judgement, Label, Plan, Turn
from core.schema.roles import EvidenceReader, JudgeView

ENSEMBLE_AGENT = "Ensemble"
MAX_UNCERTAIN_DISTANCE = 0.2  # p from 0.3 to 0.7; there verdicts say “rather”
DEFAULT_DEBATES = ("colmad", "ceda")  # the default debates; the first available one is held
# No debate can supply what is missing there.
UNDEBATABLE_CAUSES = ("no_evidence", "image_not_readable")
OPPOSITE_LABEL: Mapping[Label, Label] = {"supported": "hallucinated", "hallucinated": "supported"}
SAMPLE_NOTE = "before any debate"
NO_DEBATE_NEEDED = "The single judge left nothing open that a debate could settle."


def argue_ensemble(state: DebateState) -> Iterator[Event]:
    """Ask every debater in parallel, then count the answers."""
    began = state.run.now()
    judgement = check_unreadable_images(ENSEMBLE_AGENT, state.view)
    if judgement is None:
        requests = [TurnRequest(n, name, 1, "answer") for n, name in enumerate(state.debaters, 1)]
        yield from take_turns(state, requests)
        judgement = _count_answers(state, collect_turns(state, requests))
    yield from conclude_debate(state, judgement, began)


def flip_coin(seed: int, case: Case) -> Label:
    """Draw a label with even odds; the same seed and case content always give the same one."""
    content = (seed, case.response, case.question, case.documents, case.images)
    first_byte = hashlib.sha256(repr(content).encode()).digest()[0]
    return "hallucinated" if first_byte % 2 else "supported"


def _count_answers(state: DebateState, turns: Sequence[Turn]) -> Judgement:
    """Count the answers; the prose quotes the first debater who gave the winning label."""
    votes = count_votes((turn.stance for turn in turns), len(state.debaters))
    if not votes.cast:
        return make_no_votes(ENSEMBLE_AGENT, state.view, len(turns))
    label = votes.label
    if votes.is_tie:
        label = flip_coin(state.plan.options.seed, state.view.case)
        reason = f"They cancel out, so a coin was thrown: {label}."
    elif label == "unclear":
        return make_no_majority(ENSEMBLE_AGENT, votes, "debater")
    else:
        reason = format_reason(next(turn for turn in turns if turn.stance == label))
    prose = f"{votes.words('debater')} {reason}"
    return Judgement(ENSEMBLE_AGENT, label, frame_verdict(label, prose), prose=prose, p=votes.p)


ENSEMBLE = DebateProtocol(
    name="ensemble",
    argue=argue_ensemble,
    calls=lambda debaters, _: ProtocolCalls(debaters, 0, chain=1),
    turn_modes=("answer",),
    options=("seed",),
)


def argue_single(state: DebateState) -> Iterator[Event]:
    """Ask the judge once, or several times and take the vote; nobody debates."""
    wanted = max(1, state.plan.options.samples)
    yield from report_fewer_samples(state, wanted)
    views = build_single_views(state, count_useful_samples(state, wanted))
    if len(views) == 1:
        yield from run_judge(state.run, views[0])
        return
    began = state.run.now()
    yield from draw_samples(state, views, "sample")
    yield from conclude_debate(state, decide_by_samples(list_samples(state, views)), began)


def build_single_views(state: DebateState, count: int, first: int = 1) -> list[JudgeView]:
    """Return `count` judge views without a debate, numbered from `first`."""
    mode = state.plan.options.style or "plain"
    is_sampled = count > 1
    return [
        build_judge_view(state, (), mode=mode, number=number, is_sampled=is_sampled)
        for number in range(first, first + count)
    ]


SINGLE = DebateProtocol(
    name="single",
    argue=argue_single,
    calls=lambda _, plan: ProtocolCalls(0, max(1, plan.options.samples), chain=1),
    judge_modes=("plain", "thought", "examples"),
    options=("samples", "style"),
)


def build_adaptive_protocol(debates: Mapping[str, DebateProtocol]) -> DebateProtocol:
    """Return the adaptive protocol, which may continue with any of these debates."""
    return DebateProtocol(
        name="adaptive",
        argue=partial(argue_adaptive, debates),
        calls=partial(count_adaptive_calls, debates),
        judge_modes=SINGLE.judge_modes,
        options=("samples", "style", "then"),
    )


def choose_debate(debates: Mapping[str, DebateProtocol], plan: Plan) -> DebateProtocol:
    """Return the debate that an adaptive check continues with."""
    names = (plan.options.then, *DEFAULT_DEBATES, *debates)
    return next(debates[name] for name in names if name in debates)


def argue_adaptive(debates: Mapping[str, DebateProtocol], state: DebateState) -> Iterator[Event]:
    """Ask the single judge, decide whether a debate is needed, and hold it if so."""
    debate, began = choose_debate(debates, state.plan), state.run.now()
    wanted = max(1, state.plan.options.samples)
    yield from report_fewer_samples(state, wanted)
    # Numbered after the debate's judgements, so that the two sets of samples never collide.
    first = debate.calls(len(state.debaters), state.plan).judgements + 1
    views = build_single_views(state, count_useful_samples(state, wanted), first)
    yield from draw_samples(state, views, SAMPLE_NOTE)
    judgement = decide_by_samples(list_samples(state, views))
    decided = state.progress.decided
    if decided is None:
        why_needed = " ".join(
            list_debate_reasons(judgement, *_find_contradiction(state, views[0], judgement))
        )
        decided = DebateDecided(
            state.run.now(), bool(why_needed), why_needed or NO_DEBATE_NEEDED, debate.name
        )
        yield decided
    if decided.is_needed:
        yield from debate.argue(state)
    else:
        yield from conclude_debate(state, judgement, began)


def count_adaptive_calls(
    debates: Mapping[str, DebateProtocol], debaters: int, plan: Plan
) -> ProtocolCalls:
    """Return the most calls that a check makes, by the formula in the module docstring."""
    debate = choose_debate(debates, plan).calls(debaters, plan)
    samples = max(1, plan.options.samples)
    return replace(debate, judgements=samples + debate.judgements, chain=1 + debate.chain)


def list_debate_reasons(judgement: Judgement, *against: str) -> tuple[str, ...]:
    """Return the reasons for a debate, one sentence each; empty if the judgement is enough."""
    if judgement.cause in UNDEBATABLE_CAUSES:
        return ()
    if judgement.label == "unclear":
        return (f"{judgement.agent} left it open: {judgement.cause_words or judgement.text}",)
    if judgement.p is not None and abs(judgement.p - 0.5) <= MAX_UNCERTAIN_DISTANCE:
        near = f"p = {judgement.p:.2f} of {judgement.agent} is near one half."
        return (near, *against)
    return against


def _find_contradiction(
    state: DebateState, seen: JudgeView, judgement: Judgement
) -> tuple[str, ...]:
    """Return a sentence saying that the built-in readers contradict the judgement, if they do."""
    from core.baseline.debaters import combine_stances  # slow import: pages only count calls

    other = OPPOSITE_LABEL.get(judgement.label)
    if other is None:
        return ()
    if judgement.readers:
        stances: dict[str, list[Label]] = {}
        for view in judgement.readers:
            stances.setdefault(view.reader, []).append(view.stance)
        against = sum(combine_stances(each) == other for each in stances.values())
        sentence = f"{against} of {format_count(len(stances), 'built-in reader')} call it {other}."
        return (sentence,) if 2 * against > len(stances) else ()
    spare = state.run.roster.spare
    if spare is None or not isinstance(spare.judge, EvidenceReader):
        return ()
    reading = spare.judge.read(seen, state.run.stop)
    return (f"{spare.judge.name} calls it {other}.",) if reading.label == other else ()
